"""What DuckDB writes in the place of a function, a type or a form that another system has and DuckDB does not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from uql.base.errors import UQLError
from uql.base.sqlglot_trees import read_sql, write_sql
from uql.compiler.bind.types import other_model_call
from uql.compiler.lexer import UNITS
from uql.compiler.parser import tree_of
from uql.compiler.syntax import Call, Expr, Name, Quoted, TypeName
from uql.compiler.walk import walk

DIALECTS = ("postgres", "snowflake", "bigquery", "tsql", "mysql", "spark")
LONGEST = 160
"""Characters of an expression that a help still shows."""
_REFUSED = re.compile(r"with name (\w+) does not exist|^no column (\w+)|syntax error at or near \"(any|all)\"")
_UNITS = {unit.lower() for unit in UNITS} | {"isoweek", "dayofweek", "dayofyear"}


def add_translation(error: UQLError, query: Any, text: str) -> None:
    """Puts into the help of an error of the binder how DuckDB writes what stands at its place.

    Args:
        query: the parsed statement.
        text: the statement as written.
    """
    error.help = error.help or other_model_call(text)
    match = _REFUSED.search(error.message) if error.code != "UQL205" else None  # what stands in a hole is UQL's own
    word = next((group.lower() for group in match.groups() if group), "") if match else ""
    if not word or error.start < 0 or (error.code == "UQL202" and word not in _UNITS):
        return
    for part in _around(query, error.start, error.end):
        written = translation(text[part.span.start : part.span.end], word)
        if written is not None:
            error.help = f"write {written}"
            return


def translation(expression: str, refused: str) -> str | None:
    """An expression as DuckDB writes it, where it is that of another system.

    Args:
        refused: the function, the type or the name that DuckDB does not have, in small letters.
    """
    texts = re.findall(r'"[^"]*"', expression)  # one that a system reads as a string is none for the model any more
    for dialect in DIALECTS:
        try:
            written = "; ".join(map(write_sql, read_sql(expression, dialect)))
        except ValueError:
            continue
        if (
            written.lower() == expression.lower()
            or len(written) > LONGEST
            or any(part not in written for part in texts)
        ):
            continue
        tree = tree_of(f"SELECT {written}")
        if tree is not None and refused not in _names(tree):
            return written
    return None


def _names(tree: Any) -> Iterator[str]:
    """The functions, columns and types that a statement names, in small letters."""
    for node in walk(tree):
        match node:
            case Call(name=name) | TypeName(name=name):
                yield name.lower().rpartition(".")[2]
            case Name(parts=parts):
                yield parts[-1].lower()


def _around(query: Any, start: int, end: int) -> list[Expr]:
    """The expressions that hold this place and are not long, the smallest first."""
    nodes = (node for node in walk(query, queries=True) if isinstance(node, Expr) and not isinstance(node, Quoted))
    holding = [node for node in nodes if node.span.start <= start and end <= node.span.end <= node.span.start + LONGEST]
    return sorted(holding, key=lambda node: node.span.end - node.span.start)
