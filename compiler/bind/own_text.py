"""A statement with nothing semantic in it as DuckDB's own: its text as the user wrote it.

Only tokens change whose meaning is UQL's: a double-quoted text that stands for a string becomes one, a parameter its value. What
DuckDB reads otherwise (clauses in another order, TO, a data frame) has no such text; SQL is then written from the bound query.
"""

from __future__ import annotations

from collections.abc import Mapping

from uql.compiler.bind.parameters import constant
from uql.compiler.bind.types import DuckTypes
from uql.compiler.bound import BoundItem
from uql.compiler.lexer import Token, tokenize
from uql.compiler.sql import expression, literal, quote
from uql.compiler.syntax import NO_SPAN, Cast, Column, ListExpr, Query, Quoted, Select, String, Union
from uql.compiler.walk import walk


def checked_text(
    query: Query, text: str, parameters: Mapping[str, object], items: tuple[BoundItem, ...], types: DuckTypes
) -> str | None:
    """The text of a bound query for DuckDB, None where DuckDB does not read it alike: as these columns of these types.

    Args:
        text: the statement, which the places of the query are in.
        parameters: values of `$name`, written as constants.
        items: the columns that the query gives.
        types: asks DuckDB.
    """
    sql = duckdb_text(query, text, parameters)
    if sql is None:
        return None
    try:
        columns = types.catalog.describe(sql)
    except types.error:
        return None
    return sql if len(columns) == len(items) and all(map(_alike, columns, items)) else None


def duckdb_text(query: Query, text: str, parameters: Mapping[str, object]) -> str | None:
    """The text of a query without texts for a model, for DuckDB; None where it holds what DuckDB has not: TO, WITH (…), lists.

    Args:
        text: the statement, which the places of the query are in.
        parameters: values of `$name`, written as constants.
    """
    if not isinstance(query, Select | Union) or query.to is not None or query.options:
        return None
    start, end = query.span.start, query.span.end
    if not 0 <= start < end <= len(text):
        return None
    if '"' not in text and "$" not in text:
        return text[start:end]
    strings = {node.span.start for node in walk(query, queries=True) if isinstance(node, String) and node.double}
    pieces = []
    for token in tokenize(text, start, end):
        if token.type not in ("QUOTED", "PARAMETER"):
            continue
        replacement = _written(token, strings, parameters)
        if replacement is None:
            return None
        pieces += [text[start : token.lexpos], replacement]
        start = token.endlexpos
    return "".join([*pieces, text[start:end]])


def _written(token: Token, strings: set[int], parameters: Mapping[str, object]) -> str | None:
    """A double-quoted text or a parameter as DuckDB has it; None: a list, which may stand for several values, or a text for a model."""
    if token.type == "QUOTED":
        return literal(token.value) if token.lexpos in strings else quote(token.value)
    if token.value not in parameters:
        return None
    value = constant(parameters[token.value], token.value, NO_SPAN)
    return None if isinstance(value, ListExpr | Quoted | Cast) else f"({expression(value)})"


def _alike(column: tuple[str, str], item: BoundItem) -> bool:
    """Is it this column? Its name is compared where it is a column's, since stars give their columns in an order."""
    name, type = column
    same_name = not isinstance(item.expr, Column) or name.lower().startswith(item.name.lower())
    return same_name and type == item.type
