"""The grammar of CASE, CAST and types."""

from __future__ import annotations

from dataclasses import replace

from uql.compiler import syntax as ast
from uql.compiler.grammar_expressions import P, append, span, upper, whole_number


def p_case(p: P) -> None:
    """primary : CASE whens END
    | CASE whens ELSE expr END"""
    p[0] = ast.Case(None, tuple(p[2]), p[4] if len(p) == 6 else None, span=span(p))


def p_case_operand(p: P) -> None:
    """primary : CASE expr whens END
    | CASE expr whens ELSE expr END"""
    p[0] = ast.Case(p[2], tuple(p[3]), p[5] if len(p) == 7 else None, span=span(p))


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


def p_when(p: P) -> None:
    """when : WHEN expr THEN expr"""
    p[0] = ast.When(p[2], p[4], span=span(p))


def p_cast(p: P) -> None:
    """primary : CAST LPAREN expr AS type RPAREN
    | TRY_CAST LPAREN expr AS type RPAREN"""
    p[0] = ast.Cast(p[3], p[5], lenient=p[1].upper() == "TRY_CAST", span=span(p))


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


def p_type(p: P) -> None:
    """type : NAME
    | NAME WITH_TIME_ZONE"""
    zoned = len(p) == 3 and p[2].upper() == "WITH"
    p[0] = ast.TypeName(_type_name(p[1]) + (" WITH TIME ZONE" if zoned else ""), span=span(p))


def p_type_long(p: P) -> None:
    """type : LONG_TYPE
    | LONG_TYPE LPAREN sizes RPAREN"""
    p[0] = ast.TypeName("DOUBLE" if p[1].upper() == "DOUBLE" else "VARCHAR", span=span(p))


def p_type_sizes(p: P) -> None:
    """type : NAME LPAREN sizes RPAREN"""
    p[0] = ast.TypeName(_type_name(p[1]), sizes=tuple(p[3]), span=span(p))


def p_type_labels(p: P) -> None:
    """type : NAME LPAREN labels RPAREN"""
    p[0] = ast.TypeName(upper(p[1]), labels=tuple(p[3]), span=span(p))


def p_type_fields(p: P) -> None:
    """type : NAME LPAREN fields RPAREN"""
    p[0] = ast.TypeName(upper(p[1]), fields=tuple(p[3]), span=span(p))


def p_type_list(p: P) -> None:
    """type : type LBRACKET RBRACKET"""
    p[0] = replace(p[1], dims=(*p[1].dims, None), span=span(p))


def p_type_array(p: P) -> None:
    """type : type LBRACKET NUMBER RBRACKET"""
    p[0] = replace(p[1], dims=(*p[1].dims, whole_number(p, 3)), span=span(p))


def p_type_of_types(p: P) -> None:
    """type : MAP LPAREN type COMMA type RPAREN"""
    p[0] = ast.TypeName("MAP", fields=((None, p[3]), (None, p[5])), span=span(p))


def p_size(p: P) -> None:
    """size : NUMBER"""
    p[0] = whole_number(p, 1)


def p_label(p: P) -> None:
    """label : STRING
    | QUOTED"""
    p[0] = p[1]


def p_field(p: P) -> None:
    """field : identifier type"""
    p[0] = (p[1], p[2])
