"""The grammar of CASE, CAST and types."""

from __future__ import annotations

from dataclasses import replace

from uql.compiler import syntax as ast
from uql.compiler.grammar_expressions import P, Rules, append, span, upper, whole_number

RULES: Rules = {
    "primary : CASE whens END | CASE whens ELSE expr END": lambda p: ast.Case(
        None, tuple(p[2]), p[4] if len(p) == 6 else None
    ),
    "primary : CASE expr whens END | CASE expr whens ELSE expr END": lambda p: ast.Case(
        p[2], tuple(p[3]), p[5] if len(p) == 7 else None
    ),
    "when : WHEN expr THEN expr": lambda p: ast.When(p[2], p[4]),
    "primary : CAST LPAREN expr AS type RPAREN | TRY_CAST LPAREN expr AS type RPAREN": lambda p: ast.Cast(
        p[3], p[5], lenient=p[1].upper() == "TRY_CAST"
    ),
    "type : NAME": lambda p: ast.TypeName(_type_name(p[1])),
    "type : NAME WITH_TIME_ZONE": lambda p: ast.TypeName(
        _type_name(p[1]) + (" WITH TIME ZONE" if p[2].upper() == "WITH" else "")
    ),
    "type : LONG_TYPE | LONG_TYPE LPAREN sizes RPAREN": lambda p: ast.TypeName(
        "DOUBLE" if p[1].upper() == "DOUBLE" else "VARCHAR"
    ),
    "type : NAME LPAREN sizes RPAREN": lambda p: ast.TypeName(_type_name(p[1]), sizes=tuple(p[3])),
    "type : NAME LPAREN labels RPAREN": lambda p: ast.TypeName(upper(p[1]), labels=tuple(p[3])),
    "type : NAME LPAREN fields RPAREN | UNION LPAREN fields RPAREN": lambda p: ast.TypeName(
        upper(p[1]), fields=tuple(p[3])
    ),
    "type : type LBRACKET RBRACKET": lambda p: replace(p[1], dims=(*p[1].dims, None), span=span(p)),
    "type : type LBRACKET NUMBER RBRACKET": lambda p: replace(
        p[1], dims=(*p[1].dims, whole_number(p, 3)), span=span(p)
    ),
    "type : MAP LPAREN type COMMA type RPAREN": lambda p: ast.TypeName("MAP", fields=((None, p[3]), (None, p[5]))),
    "size : NUMBER": lambda p: whole_number(p, 1),
    "label : STRING | QUOTED": lambda p: p[1],
    "field : identifier type": lambda p: (p[1], p[2]),
}
"""Productions, and what each makes of its symbols; those that need more than one expression are functions."""


def p_types_lists(p: P) -> None:
    """whens : when
          | whens when
    sizes : size
          | sizes COMMA size
    labels : label
           | labels COMMA label
    fields : field
           | fields COMMA field"""
    append(p)


_ALIASES = {  # of types in DuckDB, with the name that it gives them: one text has one type, however that is written
    **dict.fromkeys(("BOOL", "LOGICAL"), "BOOLEAN"),
    **dict.fromkeys(("INT", "INT4", "SIGNED"), "INTEGER"),
    **dict.fromkeys(("INT8", "LONG"), "BIGINT"),
    **dict.fromkeys(("INT2", "SHORT"), "SMALLINT"),
    **dict.fromkeys(("FLOAT4", "REAL"), "FLOAT"),
    **dict.fromkeys(("NUMERIC", "DEC"), "DECIMAL"),
    **dict.fromkeys(("STRING", "TEXT", "CHAR", "BPCHAR", "NVARCHAR"), "VARCHAR"),
    "INT1": "TINYINT",
    "FLOAT8": "DOUBLE",
}


def _type_name(word: str) -> str:
    name = upper(word)
    return _ALIASES.get(name, name)
