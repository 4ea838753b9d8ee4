"""The whole grammar: the productions of its parts, precedence where one token must choose, and a signature of it all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

from uql.compiler import (
    grammar_calls,
    grammar_expressions,
    grammar_query,
    grammar_sources,
    grammar_statements,
    grammar_types,
)
from uql.compiler.grammar_expressions import span
from uql.compiler.lexer import tokens
from uql.compiler.syntax import NO_SPAN, Node

Production = Callable[[Any], None]
START = "statement"
PARTS = (grammar_statements, grammar_query, grammar_sources, grammar_expressions, grammar_types, grammar_calls)

PRECEDENCE = (
    ("nonassoc", "ROWS"),
    ("nonassoc", "COMMA"),  # FROM VALUES (1), (2): a row more, not a table
    ("nonassoc", "PASTED"),
    ("nonassoc", "CONCAT"),  # j -> 'a' || 'b' is the field ab, as in DuckDB
    ("nonassoc", "IN_PARENTHESES"),
    ("nonassoc", "DOT"),  # (x).a is a field of what stands in parentheses
    ("nonassoc", "SCALAR"),  # ((SELECT 1)): the outer parentheses belong to the sub-query …
    ("nonassoc", "RPAREN"),  # … as long as they can
    ("nonassoc", "TRY"),
    ("nonassoc", "DCOLON"),  # TRY "a"::INTEGER tries the cast too
    ("nonassoc", "LBRACKET"),  # x::VARCHAR[] casts to a list; (x::VARCHAR[])[1] takes an item of it
    ("nonassoc", "DOTTED"),
    ("nonassoc", "LPAREN"),  # f(x).g(y) calls g
)


def _written(part: ModuleType) -> Iterator[tuple[str, Production]]:
    """The productions of a part: its functions, whose docstrings are the grammar, and the rows of its table."""
    for name, function in vars(part).items():
        if name.startswith("p_") and function.__module__ == part.__name__:
            yield name, _placing(function.__doc__, function)
    for rule, make in part.RULES.items():
        yield rule.replace(" ", "_"), _placing(rule.replace(" | ", "\n| "), _production(make))


def _production(make: Callable[[Any], Any]) -> Production:
    """A row of a table as ply has it: the result in p[0]."""

    def production(p: Any) -> None:
        p.slice[0].value = make(p)  # what p[0] sets

    return production


def _placing(rule: str, make: Production) -> Production:
    """The production with its rule in the docstring; a node that it makes stands where all its symbols stand, unless it says where."""

    def production(p: Any) -> None:
        make(p)
        made = p.slice[0]
        if isinstance(made.value, Node) and made.value.span is NO_SPAN:
            made.value = replace(made.value, span=span(p))

    production.__doc__ = rule
    return production


PRODUCTIONS: dict[str, Production] = {name: function for part in PARTS for name, function in _written(part)}
"""Name of the function → the function; its docstring is the grammar."""


def signature() -> str:
    """Changes whenever the parser's tables must be made anew."""
    pieces = [START, *tokens, repr(PRECEDENCE)]
    pieces += [f"{name} {' '.join((function.__doc__ or '').split())}" for name, function in PRODUCTIONS.items()]
    return hashlib.sha256("\n".join(pieces).encode()).hexdigest()
