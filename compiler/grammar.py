"""The whole grammar: the productions of its parts, precedence where one token must choose, and a signature of it all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from uql.compiler import (
    grammar_calls,
    grammar_expressions,
    grammar_query,
    grammar_sources,
    grammar_statements,
    grammar_types,
)
from uql.compiler.lexer import tokens

START = "statement"
PARTS = (grammar_statements, grammar_query, grammar_sources, grammar_expressions, grammar_types, grammar_calls)

PRECEDENCE = (
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

PRODUCTIONS: dict[str, Callable[[Any], None]] = {
    name: function
    for part in PARTS
    for name, function in vars(part).items()
    if name.startswith("p_") and function.__module__ == part.__name__
}
"""Name of the function → the function; its docstring is the grammar."""


def signature() -> str:
    """Changes whenever the parser's tables must be made anew."""
    pieces = [START, *tokens, repr(PRECEDENCE)]
    pieces += [f"{name} {' '.join((function.__doc__ or '').split())}" for name, function in PRODUCTIONS.items()]
    return hashlib.sha256("\n".join(pieces).encode()).hexdigest()
