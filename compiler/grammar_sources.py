"""The grammar of FROM: tables, files, functions, sub-queries, VALUES, samples, and joins."""

from __future__ import annotations

from typing import Any

from uql.compiler import syntax as ast
from uql.compiler.grammar_expressions import P, Rules, append, lower, span

RULES: Rules = {
    "sources : source | sources COMMA source": lambda p: (
        p[1] if len(p) == 2 else ast.Join("CROSS", p[1], p[3], span=span(p))
    ),
    "source : table | joined": lambda p: p[1],
    "joined : source CROSS JOIN table | source POSITIONAL JOIN table": lambda p: ast.Join(
        p[2].upper(), p[1], p[4], span=span(p)
    ),
    "kind : INNER | LEFT | LEFT OUTER | RIGHT | RIGHT OUTER | FULL | FULL OUTER | SEMI | ANTI": lambda p: p[1].upper(),
    "asof : ASOF | ASOF INNER | ASOF LEFT | ASOF LEFT OUTER": lambda p: (
        "ASOF LEFT" if len(p) > 2 and p[2].upper() == "LEFT" else "ASOF"
    ),
    "table : LPAREN joined RPAREN": lambda p: p[2],
    "bracketed_values : LPAREN values RPAREN": lambda p: p[2],
    "values : VALUES value_rows": lambda p: ast.TableFunction(
        ast.Call("values", tuple(p[2]), span=span(p)), span=span(p)
    ),
    "value_row : LPAREN expressions RPAREN": lambda p: ast.Call("row", tuple(p[2]), span=span(p)),
    "function : dotted LPAREN RPAREN | dotted LPAREN arguments RPAREN": lambda p: ast.Call(
        lower(".".join(p[1])), tuple(p[3]) if len(p) == 5 else (), span=span(p)
    ),
    "named : NAME | AS identifier": lambda p: (p[len(p) - 1], ()),
    "sampled : sample_size | NAME LPAREN sample_size RPAREN": lambda p: p[1] if len(p) == 2 else f"{p[1]}({p[3]})",
    "sampled : sample_size LPAREN NAME RPAREN": lambda p: f"{p[3]}({p[1]})",
    "sampled : NAME LPAREN sample_size RPAREN REPEATABLE LPAREN NUMBER RPAREN": lambda p: (
        f"{p[1]}({p[3]}) REPEATABLE ({p[7]})"
    ),
}
"""Productions, and what each makes of its symbols; those that need more than one expression are functions."""


def p_join_natural(p: P) -> None:
    """joined : source NATURAL JOIN table
    | source NATURAL kind JOIN table"""
    kind = p[3] if len(p) == 6 else "INNER"
    p[0] = ast.Join(kind, p[1], p[len(p) - 1], natural=True, span=span(p))


def p_join_on(p: P) -> None:
    """joined : source JOIN table ON expr
    | source kind JOIN table ON expr
    | source asof JOIN table ON expr"""
    n = len(p)
    p[0] = ast.Join("INNER" if n == 6 else p[2], p[1], p[n - 3], p[n - 1], span=span(p))


def p_join_using(p: P) -> None:
    """joined : source JOIN table USING LPAREN identifiers RPAREN
    | source kind JOIN table USING LPAREN identifiers RPAREN
    | source asof JOIN table USING LPAREN identifiers RPAREN"""
    n = len(p)
    p[0] = ast.Join("INNER" if n == 8 else p[2], p[1], p[n - 5], using=tuple(p[n - 2]), span=span(p))


def p_table(p: P) -> None:
    """table : dotted
    | dotted named"""
    alias, columns = _alias(p)
    p[0] = ast.TableName(p[1], alias, columns=columns, span=span(p))


def p_table_file(p: P) -> None:
    """table : STRING
    | STRING named"""
    alias, columns = _alias(p)
    p[0] = ast.TableName((p[1],), alias, True, columns, span=span(p))


def p_table_sample(p: P) -> None:
    """table : dotted TABLESAMPLE sampled
    | dotted named TABLESAMPLE sampled"""
    alias, columns = p[2] if len(p) == 5 else (None, ())
    p[0] = ast.TableName(p[1], alias, False, columns, p[len(p) - 1], span=span(p))


def p_table_query(p: P) -> None:
    """table : subquery
    | subquery named
    | LATERAL subquery
    | LATERAL subquery named"""
    query, alias, columns = _aliased(p)
    p[0] = ast.Derived(query, alias, columns, span=span(p))


def p_table_values(p: P) -> None:
    """table : bracketed_values
    | bracketed_values named
    | LATERAL bracketed_values
    | LATERAL bracketed_values named"""
    values, alias, columns = _aliased(p)
    p[0] = ast.TableFunction(values.call, alias, columns, span=span(p))


def p_table_function(p: P) -> None:
    """table : function
    | function named
    | LATERAL function
    | LATERAL function named"""
    function, alias, columns = _aliased(p)
    p[0] = ast.TableFunction(function, alias, columns, span=span(p))


def p_value_rows(p: P) -> None:
    """value_rows : value_row
    | value_rows COMMA value_row"""
    append(p)


def p_named_columns(p: P) -> None:
    """named : NAME LPAREN identifiers RPAREN
    | AS identifier LPAREN identifiers RPAREN"""
    n = len(p)
    p[0] = (p[n - 4], tuple(p[n - 2]))


def _aliased(p: P) -> tuple[Any, str | None, tuple[str, ...]]:
    """What stands in FROM, perhaps behind LATERAL, with its alias and the names of its columns."""
    _, what, *named = [part for part in p.slice if part.type != "LATERAL"]
    alias, columns = named[0].value if named else (None, ())
    return what.value, alias, columns


def _alias(p: P) -> tuple[str | None, tuple[str, ...]]:
    """The alias of a table and the names of its columns."""
    alias, columns = p[2] if len(p) > 2 else (None, ())
    return alias, columns


def p_sample_size(p: P) -> None:
    """sample_size : NUMBER
    | NUMBER PERCENT
    | NUMBER FRAME
    | NUMBER SLASH"""
    words = {"%": "PERCENT"}
    p[0] = p[1] + (f" {words.get(p[2], p[2].upper())}" if len(p) == 3 else " ROWS")
