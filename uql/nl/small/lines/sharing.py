"""Texts that several rows share: what is asked of one of the rows names it.

A report of a game tells of each of its players. `the number of assists`, asked of a player's row, means those of that player; a text that
belongs to one row alone, as a review does to its album, needs no name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from uql.nl.schema.join_paths import Path, is_called
from uql.nl.schema.scope import Scope

_ASKED = re.compile(r"\b(ask|ask_number)\('((?:[^'{])*)'\)")


def naming_rows(parts: Sequence[str], shown: Sequence[str], path: Path, scope: Scope) -> list[str]:
    """Items or conditions of a query in lines, whose texts without a hole name the row that they are asked of.

    Args:
        parts: of the query.
        shown: its keys and columns: a name among them is the one.
    """
    name = _row_name(shown, path, scope)
    if not name:
        return list(parts)
    return [_ASKED.sub(lambda m: f"{m[1]}('{m[2]}, for {{{name}}}')", part) for part in parts]


def _row_name(shown: Sequence[str], path: Path, scope: Scope) -> str:
    """What the rows that share a text are called; "" where none do."""
    read = {c.table for c in path.columns if c.field.is_unstructured}
    shared = {
        link.left.table
        for link in scope.links
        if link.right.table in read and link.left.table in path.tables and link.left.table not in read
    }
    if not shared or not read & set(path.tables):
        return ""
    called = [c for c in path.columns if c.table not in read and c.is_text and is_called(c.name)]
    return next((c.name for c in [*(c for c in called if c.name in shown), *called]), "")
