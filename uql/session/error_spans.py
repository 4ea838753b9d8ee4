"""Where in a statement DuckDB refused a value: its messages name what was done, and mostly one expression of the statement does that."""

from __future__ import annotations

import re
from collections.abc import Iterator

from uql.compiler.bound import BoundQuery
from uql.compiler.sql import type_sql
from uql.compiler.subqueries import expressions, selects
from uql.compiler.syntax import Binary, Call, Case, Cast, Column, Node, ScalarQuery, Span, String
from uql.compiler.walk import walk

_TYPES = {
    "INT8": "TINYINT",
    "INT16": "SMALLINT",
    "INT32": "INTEGER",
    "INT64": "BIGINT",
    "INT128": "HUGEINT",
    "BOOL": "BOOLEAN",
}
_TYPES |= {"UINT8": "UTINYINT", "UINT16": "USMALLINT", "UINT32": "UINTEGER", "UINT64": "UBIGINT"}
_TO_TYPE = re.compile(r"(?:\bto(?: type)?|->) ([A-Z]\w*(?:\([\d,]+\))?)")
_VALUE = re.compile(r"Could not convert string '(.*?)' to")
_COLUMN = re.compile(r"from source column ((?:[\w ]+\.)*\S+)")
_FIELD = re.compile(r"(date|timestamp|time) field")
_OVERFLOW = re.compile(r"Overflow in (addition|subtraction|multiplication)")
_OPERATORS = {"addition": ("+",), "subtraction": ("-",), "multiplication": ("*",)}


def place(message: str, query: BoundQuery) -> Span | None:
    """The one expression of a query that a message of DuckDB's can be about; the first of several; None where there is none."""
    for is_about in (_is_about, _holds, _is_value):
        spans = {node.span for node in _nodes(query) if is_about(message, node) and node.span.start >= 0}
        if spans:
            return spans.pop() if len(spans) == 1 else min(spans, key=lambda span: span.start)
    return None


def is_value_of_case(query: BoundQuery, span: Span) -> bool:
    """Is the expression at this place one of the values of a CASE?"""
    cases = (node for node in _nodes(query) if isinstance(node, Case))
    values = (value for case in cases for value in (*(when.value for when in case.whens), case.default))
    return any(value is not None and value.span == span for value in values)


def _holds(message: str, node: Node) -> bool:
    """Is it the constant or the column whose value DuckDB could not convert where nothing was written to convert it?"""
    column = _COLUMN.search(message)
    if column is not None and not column[1].startswith("'"):  # DuckDB calls a constant by its value
        return isinstance(node, Column) and node.name == column[1].split(".")[-1].strip('"')
    return _is_value(message, node)


def _is_value(message: str, node: Node) -> bool:
    """Is it the constant whose value DuckDB could not convert, by whatever name DuckDB calls its column?"""
    value = _VALUE.search(message)
    return value is not None and isinstance(node, String) and node.value == value[1]


def _nodes(query: BoundQuery) -> Iterator[Node]:
    for part in selects(query):
        for expr in expressions(part):
            yield from walk(expr)


def _is_about(message: str, node: Node) -> bool:
    """Can the expression have failed with such a message?"""
    if message.startswith("Conversion Error"):
        target = _TO_TYPE.search(message) or _FIELD.search(message)
        if not isinstance(node, Cast) or node.lenient or target is None:
            return False
        name = target[1].upper()
        return type_sql(node.type).split("(")[0] == _TYPES.get(name, name).split("(")[0]
    overflow = _OVERFLOW.search(message)
    if overflow is not None:
        return isinstance(node, Binary) and node.op in _OPERATORS[overflow[1]]
    if "Division by zero" in message:
        return isinstance(node, Binary) and node.op in ("/", "//", "%")
    if "More than one row returned by a subquery" in message:
        return isinstance(node, ScalarQuery)
    if "according to format specifier" in message:
        return isinstance(node, Call) and node.name.lower() == "strptime"
    return False
