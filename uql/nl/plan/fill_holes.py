"""Texts with holes for names alone: what they are asked of is added.

A model writes "the points of {name}" and means those that the report tells; UQL shows a model what stands in the holes. So the texts and
images of the tables read get holes of their own, those first whose name or comment has a word of the text. A text without holes is asked
of those alone, where it names some of several: a condition on the review is not asked of the picture beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from uql.base.schema import Field
from uql.compiler.parser import tree_of
from uql.compiler.syntax import Name, Quoted, Select, TableName
from uql.compiler.unparse import unparse
from uql.compiler.walk import walk
from uql.nl.guard.guard import rebuilt
from uql.nl.schema.discover import words_of

_HOLE = re.compile(r"\{([^{}]+)\}")


def completed(text: str, tables: Mapping[str, Sequence[Field]]) -> str:
    """A query of one SELECT whose texts with holes for structured columns alone have holes for what is read too.

    Args:
        tables: the columns of every table in scope.

    >>> from uql.base.schema import Modality
    >>> played = {"played": [Field("name", "VARCHAR"), Field("report", "VARCHAR", Modality.TEXT)]}
    >>> completed('SELECT PROMPT "the points of {name}" AS points FROM played', played)
    'SELECT PROMPT "the points of {name}, according to {report}" AS points FROM played'
    >>> sold = {"sold": [Field("photo", "BLOB", Modality.IMAGE), Field("review", "VARCHAR", Modality.TEXT)]}
    >>> completed('SELECT 1 FROM sold WHERE PROMPT "the review complains"', sold)
    'SELECT 1 FROM sold WHERE PROMPT "the review complains" USING (review)'
    """
    tree = tree_of(text)
    if not isinstance(tree, Select) or tree.source is None:
        return text
    low = {name.lower(): fields for name, fields in tables.items()}
    read = [
        (t.alias or t.parts[-1], f)
        for t in walk(tree.source, queries=True)
        if isinstance(t, TableName)
        for f in low.get(t.parts[-1].lower(), ())
    ]
    readable = [(table, f) for table, f in read if f.is_unstructured and not f.private]
    if not readable:
        return text
    names = [f.name.lower() for _, f in read]

    def more(quoted: Any) -> Any:
        if not isinstance(quoted, Quoted):
            return quoted
        holes = {hole.rpartition(".")[2].lower() for hole in _HOLE.findall(quoted.text)}
        if not (quoted.forced or " " in quoted.text) or quoted.using or holes & {f.name.lower() for _, f in readable}:
            return quoted
        text_words = words_of(quoted.text)
        near = [(t, f) for t, f in readable if text_words & words_of(f"{f.name} {f.description}")] or readable
        if not holes:
            parts = [(f.name,) if names.count(f.name.lower()) == 1 else (t, f.name) for t, f in near]
            return quoted if len(near) == len(readable) else replace(quoted, using=tuple(map(Name, parts)))
        holes_text = " and ".join(
            f"{{{f.name if names.count(f.name.lower()) == 1 else f'{t}.{f.name}'}}}" for t, f in near
        )
        return replace(quoted, text=f"{quoted.text}, according to {holes_text}")

    new_tree = rebuilt(tree, more)
    return text if new_tree == tree else unparse(new_tree)
