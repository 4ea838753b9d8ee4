"""What a row shows to a request, as a number: rows that show the same have the same, and are asked once."""

from __future__ import annotations

from uql.compiler.syntax import Column
from uql.kernels.duck import quote


def content(columns: tuple[Column, ...]) -> str:
    """SQL of the number of what a row shows of these columns: 0 where a table of them shows nothing."""
    tables: dict[str, list[str]] = {}
    for c in columns:
        tables.setdefault(c.table, []).append(f"{quote(c.label)} IS NOT NULL")
    condition = " AND ".join(f"({' OR '.join(parts)})" for parts in tables.values())
    cells = ", ".join(f"CAST({quote(c.label)} AS VARCHAR)" for c in columns)
    return f"CASE WHEN {condition} THEN hash({cells}) ELSE 0 END"
