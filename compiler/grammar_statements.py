"""The grammar of statements: queries, EXPLAIN, SET, CREATE TABLE … AS, INSERT, COPY, and those of semantic tables."""

from __future__ import annotations

from dataclasses import replace as replaced
from typing import Any

from uql.compiler import syntax as ast
from uql.compiler.grammar_expressions import P, Rules, append, lower, span, whole_number
from uql.compiler.grammar_query import checked_options
from uql.compiler.syntax import Query


def p_statements_same(p: P) -> None:
    """statement : query
              | explain
              | set
              | create
              | insert
              | copy
              | semantic_table
              | refresh
              | drop
    explained : query
              | create
              | insert
              | copy
              | semantic_table
              | refresh
    copy_option : NAME
                | NAME copy_value
                | NAME LPAREN copy_values RPAREN
    copy_value : STRING
               | QUOTED
               | NUMBER
               | NAME
               | boolean"""
    p.slice[0].value = p.slice[1].value


RULES: Rules = {
    # EXPLAIN
    "explain : EXPLAIN explained | EXPLAIN format explained": lambda p: ast.Explain(
        p[len(p) - 1], format=p[2] if len(p) == 4 else "text"
    ),
    "explain : EXPLAIN ANALYZE explained | EXPLAIN ANALYZE format explained": lambda p: ast.Explain(
        p[len(p) - 1], "ANALYZE", format=p[3] if len(p) == 5 else "text"
    ),
    "explain : EXPLAIN SAMPLE NUMBER query": lambda p: ast.Explain(p[4], "SAMPLE", whole_number(p, 3)),
    "explain : EXPLAIN SAMPLE NUMBER format query": lambda p: ast.Explain(p[5], "SAMPLE", whole_number(p, 3), p[4]),
    # settings
    "set : SET NAME DOT NAME EQUALS constant | SET NAME DOT NAME TO constant": lambda p: ast.SetOption(
        _setting(p), p[6]
    ),
    "set : RESET NAME DOT NAME": lambda p: ast.SetOption(_setting(p), None),
    # tables
    "made : OR REPLACE | OR REPLACE TEMPORARY | TEMPORARY": lambda p: (len(p) > 2, len(p) != 3),
    "keyed : KEY LPAREN identifiers RPAREN | KEY LPAREN identifiers RPAREN WITH LPAREN options RPAREN": lambda p: (
        tuple(p[3]),
        checked_options(p, p[7]) if len(p) == 9 else (),
    ),
    "refresh : REFRESH dotted": lambda p: ast.Refresh(p[2]),
    "drop : DROP SEMANTIC TABLE dotted | DROP SEMANTIC TABLE IF EXISTS dotted": lambda p: ast.DropSemanticTable(
        p[len(p) - 1], len(p) == 7
    ),
    "create : CREATE made TABLE dotted AS query | CREATE made TABLE IF NOT EXISTS dotted AS query": lambda p: _create(
        p, *p[2]
    ),
    "create : CREATE TABLE dotted AS query | CREATE TABLE IF NOT EXISTS dotted AS query": lambda p: _create(
        p, False, False
    ),
    "semantic_table : CREATE SEMANTIC TABLE dotted AS query keyed": lambda p: _semantic(p, replace=False),
    "semantic_table : CREATE SEMANTIC TABLE IF NOT EXISTS dotted AS query keyed": lambda p: _semantic(p, replace=False),
    "semantic_table : CREATE OR REPLACE SEMANTIC TABLE dotted AS query keyed": lambda p: _semantic(p, replace=True),
    "insert : INSERT INTO dotted query": lambda p: ast.Insert(p[3], _stored(p, p[4])),
    "insert : INSERT INTO dotted LPAREN identifiers RPAREN query": lambda p: ast.Insert(
        p[3], _stored(p, p[7]), tuple(p[5])
    ),
}
"""Productions, and what each makes of its symbols; those that need more than one expression are functions."""


def p_format(p: P) -> None:
    """format : LPAREN FORMAT NAME RPAREN"""
    p[0] = p[3].lower()
    if p[0] not in ("text", "json", "mermaid"):
        raise p.lexer.error_at(f"no format {p[3]}", span(p, 3), help="choose text, json or mermaid")


# -------------------------------------------------------------------------------------------------------------- settings
def _setting(p: P) -> str:
    if p[2].lower() != "uql":
        raise p.lexer.error_at(
            f"{p[2]}.{p[4]} is not a setting of UQL", span(p, 2, 4), help=f"write {p[1].upper()} uql.{p[4]}"
        )
    return lower(p[4])


# ---------------------------------------------------------------------------------------------------------------- tables


def _create(p: P, replace: bool, temporary: bool) -> ast.CreateTable:
    n = len(p)
    guarded = p[n - 4].upper() == "EXISTS"
    return ast.CreateTable(p[n - 3], _stored(p, p[n - 1]), replace, temporary, guarded)


def _semantic(p: P, replace: bool) -> ast.CreateSemanticTable:
    n = len(p)
    key, options = p[n - 1]
    query: Any = _stored(p, p[n - 2])
    if options and query.options:
        raise p.lexer.error_at("WITH is given twice", p.lexer.last_word("WITH", span(p)), code="UQL104")
    if options:
        query = replaced(query, options=options)
    guarded = p[n - 5].upper() == "EXISTS"
    return ast.CreateSemanticTable(p[n - 4], query, key, replace, guarded)


def p_copy(p: P) -> None:
    """copy : COPY LPAREN bare_query RPAREN TO STRING
    | COPY LPAREN bare_query RPAREN TO STRING LPAREN copy_options RPAREN"""
    options = ""
    if len(p) == 10:
        inside = span(p, 8)
        options = p.lexer.text[inside.start : inside.end]
    p[0] = ast.CopyQuery(_stored(p, p[3]), p[6], options)


def _stored(p: P, query: Query) -> Query:
    to: Any = getattr(query, "to", None)
    if to is not None:
        raise p.lexer.error_at(
            "TO cannot stand here: the statement already says where the rows go",
            p.lexer.last_word("TO", span(p)),
            code="UQL106",
            help="leave TO out",
        )
    return query


def p_statements_lists(p: P) -> None:
    """copy_options : copy_option
                 | copy_options COMMA copy_option
    copy_values : copy_value
                | copy_values COMMA copy_value"""
    append(p)
