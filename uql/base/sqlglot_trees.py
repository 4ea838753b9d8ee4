"""DuckDB's SQL as sqlglot's trees and back. Text that sqlglot cannot read makes it fail with errors of any type, not only its own."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import pairwise
from typing import Any

MOST_TYPES = 8  # nested names of types: reading 14 takes a second of CPU


def read_sql(text: str, dialect: str = "duckdb") -> list[Any]:
    """The trees of the statements of a text.

    Args:
        dialect: the system whose SQL it is, by sqlglot's name.

    >>> [type(tree).__name__ for tree in read_sql("SELECT 1; SELECT 2")]
    ['Select', 'Select']
    >>> write_sql(read_sql("IFF(a > 1, 'x', 'y')", "snowflake")[0])
    "CASE WHEN a > 1 THEN 'x' ELSE 'y' END"

    Raises: ValueError where it cannot be read, or would take endless time; its message is one line.
    """
    import sqlglot

    try:
        system = sqlglot.Dialect.get_or_raise(dialect)
        tokens = system.tokenize(text)
        if _nested_types(tokens, system.parser_class.TYPE_TOKENS) > MOST_TYPES:
            raise ValueError
        trees = system.parser(error_level=sqlglot.ErrorLevel.RAISE).parse(tokens, text)
    except sqlglot.errors.SqlglotError as error:
        raise ValueError(str(error).splitlines()[0]) from error
    except Exception as error:
        raise ValueError("it is not SQL that can be read") from error
    return [tree for tree in trees if tree is not None]


def _nested_types(tokens: Sequence[Any], types: Container[Any]) -> int:
    """How deep brackets after names of types nest, as in DATE(DATE(x)). The parser tries each as a type, then as a call: it takes
    twice as long for each one more."""
    depths, deepest = [0], 0  # of the brackets that are open
    for before, token in pairwise(tokens):
        if token.token_type.name == "L_PAREN":
            depths.append(depths[-1] + (before.token_type in types))
            deepest = max(deepest, depths[-1])
        elif token.token_type.name == "R_PAREN" and len(depths) > 1:
            depths.pop()
    return deepest


def write_sql(tree: Any) -> str:
    """A tree as text, without comments. Raises: ValueError where it cannot be written."""
    try:
        return str(tree.sql(dialect="duckdb", comments=False))
    except Exception as error:
        raise ValueError("it is not SQL that can be written") from error
