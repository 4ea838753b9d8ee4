"""The grammar of FROM: tables, files, functions, sub-queries, VALUES, samples, and joins."""

from __future__ import annotations

from typing import Any

from uql.compiler import syntax as ast
from uql.compiler.grammar_expressions import P, append, lower, span


def p_sources(p: P) -> None:
    """sources : source
    | sources COMMA source"""
    p[0] = p[1] if len(p) == 2 else ast.Join("CROSS", p[1], p[3], span=span(p))


def p_source(p: P) -> None:
    """source : table
    | joined"""
    p[0] = p[1]


def p_join_natural(p: P) -> None:
    """joined : source NATURAL JOIN table
    | source NATURAL kind JOIN table"""
    kind = p[3] if len(p) == 6 else "INNER"
    p[0] = ast.Join(kind, p[1], p[len(p) - 1], natural=True, span=span(p))


def p_join_cross(p: P) -> None:
    """joined : source CROSS JOIN table
    | source POSITIONAL JOIN table"""
    p[0] = ast.Join(p[2].upper(), p[1], p[4], span=span(p))


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


def p_kind(p: P) -> None:
    """kind : INNER
    | LEFT
    | LEFT OUTER
    | RIGHT
    | RIGHT OUTER
    | FULL
    | FULL OUTER
    | SEMI
    | ANTI"""
    p[0] = p[1].upper()


def p_asof(p: P) -> None:
    """asof : ASOF
    | ASOF INNER
    | ASOF LEFT
    | ASOF LEFT OUTER"""
    p[0] = "ASOF LEFT" if len(p) > 2 and p[2].upper() == "LEFT" else "ASOF"


def p_table_in_parentheses(p: P) -> None:
    """table : LPAREN joined RPAREN"""
    p[0] = p[2]


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


def p_bracketed_values(p: P) -> None:
    """bracketed_values : LPAREN values RPAREN"""
    p[0] = p[2]


def p_table_function(p: P) -> None:
    """table : function
    | function named
    | LATERAL function
    | LATERAL function named"""
    function, alias, columns = _aliased(p)
    p[0] = ast.TableFunction(function, alias, columns, span=span(p))


def p_values(p: P) -> None:
    """values : VALUES value_rows"""
    p[0] = ast.TableFunction(ast.Call("values", tuple(p[2]), span=span(p)), span=span(p))


def p_value_rows(p: P) -> None:
    """value_rows : value_row
    | value_rows COMMA value_row"""
    append(p)


def p_value_row(p: P) -> None:
    """value_row : LPAREN expressions RPAREN"""
    p[0] = ast.Call("row", tuple(p[2]), span=span(p))


def p_function(p: P) -> None:
    """function : dotted LPAREN RPAREN
    | dotted LPAREN arguments RPAREN"""
    p[0] = ast.Call(lower(".".join(p[1])), tuple(p[3]) if len(p) == 5 else (), span=span(p))


def p_named(p: P) -> None:
    """named : NAME
    | AS identifier"""
    p[0] = (p[len(p) - 1], ())


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


def p_sampled(p: P) -> None:
    """sampled : sample_size
    | NAME LPAREN sample_size RPAREN"""
    p[0] = p[1] if len(p) == 2 else f"{p[1]}({p[3]})"


def p_sampled_by(p: P) -> None:
    """sampled : sample_size LPAREN NAME RPAREN"""
    p[0] = f"{p[3]}({p[1]})"


def p_sampled_repeatable(p: P) -> None:
    """sampled : NAME LPAREN sample_size RPAREN REPEATABLE LPAREN NUMBER RPAREN"""
    p[0] = f"{p[1]}({p[3]}) REPEATABLE ({p[7]})"


def p_sample_size(p: P) -> None:
    """sample_size : NUMBER
    | NUMBER PERCENT
    | NUMBER FRAME
    | NUMBER SLASH"""
    words = {"%": "PERCENT"}
    p[0] = p[1] + (f" {words.get(p[2], p[2].upper())}" if len(p) == 3 else " ROWS")
