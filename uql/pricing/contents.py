"""What a row shows to a request, as a number: rows that show the same have the same, and are asked once."""

from __future__ import annotations

from collections.abc import Mapping

from uql.base.schema import Field
from uql.base.sql_text import number_of, quote
from uql.compiler.syntax import Column


def content(columns: tuple[Column, ...], fields: Mapping[Column, Field]) -> str:
    """SQL of the number of what a row shows of these columns: 0 where a table of them shows nothing.

    Args:
        fields: the types of those that hold bytes.
    """
    tables: dict[str, list[str]] = {}
    for c in columns:
        tables.setdefault(c.table, []).append(f"{quote(c.label)} IS NOT NULL")
    condition = " AND ".join(f"({' OR '.join(parts)})" for parts in tables.values())
    cells = ((f"CAST({quote(c.label)} AS VARCHAR)", fields[c].type if c in fields else "") for c in columns)
    return f"CASE WHEN {condition} THEN {number_of(cells)} ELSE 0 END"
