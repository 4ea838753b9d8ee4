"""What a query in lines may be that asks many texts together: a summary, groups that only they tell, shares, counts beside each other.

A question that asks so leaves a model only the words of what is read, and of a summary or of groups not even those.
"""

from __future__ import annotations

from collections.abc import Sequence

from uql.nl.schema.join_paths import Column, Path, is_called, is_key
from uql.nl.small.lines.gbnf import either, literal
from uql.nl.small.meaning.narrow import Narrow
from uql.nl.small.meaning.opinions import SUMMARY

_QUOTES = str.maketrans({"'": "’", '"': "’", "\\": " "})


def only(path: Path, plain: Sequence[Column], narrow: Narrow, question: str, asked: str, group: str, told: str) -> str:
    """The rule of what stands behind FROM and the conditions on columns, where the question can mean nothing else; "" where it may.

    Args:
        plain: the columns of the path that hold values.
        asked: the rule of a condition that a model reads.
        group: the rule of the columns to group by.
        told: the rule of conditions of which a model reads one at least, to stand behind WHERE.
    """
    if narrow.opinions.summed == "must":
        return summary(narrow, question, group)
    if (kinds := narrow.kinds) is not None:
        first = f"\\nLIMIT {kinds.first}" if kinds.first else ""
        by = literal(f"ask('{kinds.text.translate(_QUOTES)}')")
        return f'"\\nGROUP BY " {by} "\\nSELECT count(*)\\nORDER BY count(*) {"ASC" if kinds.least else "DESC"}{first}"'
    if not asked:
        return ""
    shares = narrow.share != "no" and narrow.best  # the highest share of angry letters
    if (
        (narrow.opinions.ranked or shares)
        and narrow.which
        and not narrow.tallied
        and (of := _told_of(path, plain, narrow))
    ):
        way = "ASC" if narrow.opinions.least or (shares and not narrow.high) else "DESC"
        return f'"\\nGROUP BY " ({of}) "\\nSELECT percent(" {asked} ")\\nORDER BY percent {way}" limit'
    if narrow.compound.of_read:
        return f'"\\nSELECT {narrow.compound.compare}(count(" {asked} "), count(" {asked} "))"'
    if narrow.several and narrow.ask == "must" and not narrow.best and not narrow.than:
        keys = f'"\\nGROUP BY " {group} ' if narrow.group == "must" else ""
        counted = f'count(" {told} ")'
        return f'{keys}"\\nSELECT {counted}, {counted}" (", {counted}")?'
    return ""


def conditions(narrow: Narrow, asked: str, told: str) -> tuple[str, str, int]:
    """The rule of the first condition that a model reads, that of more of them, and how many there may be."""
    match narrow.opinions.denied:
        case "neither":
            return f'"NOT " {asked} (" AND NOT " {asked})?', "", 1
        case "second":
            return f'{asked} " AND NOT " {asked}', "", 1
    return asked, told, narrow.reads


def summary(narrow: Narrow, question: str, group: str) -> str:
    """The rule of what the texts say in all: the question itself is asked of them."""
    keys = f'("\\nGROUP BY " {group})' + ("" if narrow.named.groups else "?") if narrow.group != "no" else ""
    return f'{keys} "\\nSELECT " ' + literal(f"{SUMMARY}('{' '.join(question.split()).translate(_QUOTES)}')")


def _told_of(path: Path, plain: Sequence[Column], narrow: Narrow) -> str:
    """The rule of the columns asked for that several texts may share; "" where there are none."""
    texts = {c.table for c in path.columns if c.field.is_unstructured}
    return either(
        literal(c.name)
        for c in plain
        if (c.table, c.field.name) in narrow.named.asked
        and (c.table not in texts or not (is_key(c) or is_called(c.name)))
    )
