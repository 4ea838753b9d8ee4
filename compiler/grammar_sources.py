"""The grammar of FROM: tables, files, functions, sub-queries, VALUES, samples, and joins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from uql.compiler import syntax as ast
from uql.compiler.grammar_expressions import P, Rules, append, lower, span

RULES: Rules = {
    "sources : source | sources COMMA source": lambda p: p[1] if len(p) == 2 else ast.Join("CROSS", p[1], p[3]),
    "source : table | joined": lambda p: p[1],
    "joined : source CROSS JOIN table | source POSITIONAL JOIN table": lambda p: ast.Join(p[2].upper(), p[1], p[4]),
    "kind : INNER | LEFT | LEFT OUTER | RIGHT | RIGHT OUTER | FULL | FULL OUTER | SEMI | ANTI": lambda p: p[1].upper(),
    "asof : ASOF | ASOF INNER | ASOF LEFT | ASOF LEFT OUTER": lambda p: (
        "ASOF LEFT" if len(p) > 2 and p[2].upper() == "LEFT" else "ASOF"
    ),
    "table : LPAREN joined RPAREN": lambda p: p[2],
    "table : LPAREN joined RPAREN named": lambda p: ast.Derived(
        ast.Select((ast.SelectItem(ast.Star()),), p[2], span=span(p)), **_alias(p)
    ),
    "table : identifier COLON table": lambda p: replace(p[3], alias=p[1]),
    "bracketed_values : LPAREN values RPAREN": lambda p: p[2],
    "values : VALUES value_rows %prec ROWS": lambda p: ast.TableFunction(ast.Call("values", tuple(p[2]), span=span(p))),
    "value_row : LPAREN expressions RPAREN": lambda p: ast.Call("row", tuple(p[2])),
    "function : dotted LPAREN RPAREN | dotted LPAREN arguments RPAREN": lambda p: ast.Call(
        lower(".".join(p[1])), tuple(p[3]) if len(p) == 5 else ()
    ),
    "named : NAME | AS identifier": lambda p: (p[len(p) - 1], ()),
    "sampled : sample_size | NAME LPAREN sample_size RPAREN": lambda p: p[1] if len(p) == 2 else f"{p[1]}({p[3]})",
    "sampled : sample_size LPAREN NAME RPAREN": lambda p: f"{p[3]}({p[1]})",
    "sampled : sample_size LPAREN NAME COMMA NUMBER RPAREN": lambda p: f"{p[3]}({p[1]}) REPEATABLE ({p[5]})",
    "sampled : NAME LPAREN sample_size RPAREN REPEATABLE LPAREN NUMBER RPAREN": lambda p: (
        f"{p[1]}({p[3]}) REPEATABLE ({p[7]})"
    ),
    # joins
    "joined : source NATURAL JOIN table": lambda p: ast.Join("INNER", p[1], p[4], natural=True),
    "joined : source NATURAL kind JOIN table": lambda p: ast.Join(p[3], p[1], p[5], natural=True),
    "joined : source JOIN table ON expr": lambda p: ast.Join("INNER", p[1], p[3], p[5]),
    "joined : source kind JOIN table ON expr | source asof JOIN table ON expr": lambda p: ast.Join(
        p[2], p[1], p[4], p[6]
    ),
    "joined : source JOIN table USING LPAREN identifiers RPAREN": lambda p: ast.Join(
        "INNER", p[1], p[3], using=tuple(p[6])
    ),
    "joined : source kind JOIN table USING LPAREN identifiers RPAREN": lambda p: ast.Join(
        p[2], p[1], p[4], using=tuple(p[7])
    ),
    "joined : source asof JOIN table USING LPAREN identifiers RPAREN": lambda p: ast.Join(
        p[2], p[1], p[4], using=tuple(p[7])
    ),
    # tables
    "table : dotted | dotted named": lambda p: ast.TableName(p[1], **_alias(p)),
    "table : STRING | STRING named": lambda p: ast.TableName((p[1],), file=True, **_alias(p)),
    "table : dotted TABLESAMPLE sampled | dotted named TABLESAMPLE sampled": lambda p: ast.TableName(
        p[1], sample=p[len(p) - 1], **_alias(p)
    ),
    "table : subquery | subquery named | LATERAL subquery | LATERAL subquery named": lambda p: ast.Derived(
        _listed(p), **_alias(p)
    ),
    "table : function | function named | LATERAL function | LATERAL function named": lambda p: ast.TableFunction(
        _listed(p), **_alias(p)
    ),
    "listed_rows : values | bracketed_values | LATERAL values | LATERAL bracketed_values": lambda p: _listed(p),
    "table : listed_rows | listed_rows named": lambda p: ast.TableFunction(p[1].call, **_alias(p)),
    "named : NAME LPAREN identifiers RPAREN | AS identifier LPAREN identifiers RPAREN": lambda p: (
        p[len(p) - 4],
        tuple(p[len(p) - 2]),
    ),
}
"""Productions, and what each makes of its symbols; those that need more than one expression are functions."""


def _listed(p: P) -> Any:
    """What stands in FROM, perhaps behind LATERAL."""
    return p[2] if p.slice[1].type == "LATERAL" else p[1]


def _alias(p: P) -> dict[str, Any]:
    """The alias of what stands in FROM and the names of its columns."""
    alias, columns = next((part.value for part in p.slice if part.type == "named"), (None, ()))
    return {"alias": alias, "columns": columns}


def p_value_rows(p: P) -> None:
    """value_rows : value_row
    | value_rows COMMA value_row"""
    append(p)


def p_sample_size(p: P) -> None:
    """sample_size : NUMBER
    | NUMBER PERCENT
    | NUMBER FRAME
    | NUMBER SLASH"""
    words = {"%": "PERCENT"}
    p[0] = p[1] + (f" {words.get(p[2], p[2].upper())}" if len(p) == 3 else " ROWS")
