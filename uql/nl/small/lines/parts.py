"""A query in lines as it was written: its parts, without those that say nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from uql.base.errors import QuestionError
from uql.nl.schema.join_paths import Path, from_text, joins, path_of
from uql.nl.schema.scope import Scope
from uql.nl.small.meaning.opinions import SUMMARY

_LINE = re.compile(r"\n(?=(?:WHERE|GROUP BY|SELECT|HAVING|ORDER BY|LIMIT|PLOT) )")
_NAME = r'(?:"[^"]*"|\w+)(?:\.(?:"[^"]*"|\w+))*'
_EQUAL = re.compile(rf"({_NAME}) = '([^']*)'")
_LIKE = re.compile(rf"{_NAME} LIKE '%([^']*)%'")
_NAMES = (("firstname", "lastname"), ("forename", "surname"), ("firstname", "surname"), ("givenname", "familyname"))
_OF_READ = re.compile(r"(?:percent|count)\((ask\('[^']*'\))\)")
READ = "answer"  # name of what a model reads


@dataclass(slots=True)
class Lines:
    """The parts of a query in lines, each as it was written."""

    path: Path
    where: list[str] = field(default_factory=list)
    group: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    having: str = ""
    order: str = ""
    down: bool = False
    limit: int = 0
    mark: str = ""
    distinct: bool = False
    who: bool = False  # the question asks which row it is
    of_each: bool = False  # it asks for the first of each group
    unsigned: bool = False  # it asks how far apart two figures are
    sorted_by: str = ""  # what the rows are the first by, beside a figure: no plot shows it
    before: list[dict[str, Any]] = field(default_factory=list)  # nodes that the query joins


def read(text: str, scope: Scope) -> Lines:
    """The parts of a query in lines. Raises QuestionError (UQL631)."""
    parts = _LINE.split(text.strip())
    found = next((each for each in joins(scope) if f"FROM {from_text(*each)}" == parts[0]), None)
    if found is None:
        raise QuestionError(f"a query begins with FROM and tables in scope, not {parts[0][:60]!r}", code="UQL631")
    made = Lines(path_of(scope, *found))
    for part in parts[1:]:
        if part.startswith("WHERE "):
            made.where = split(part[6:], " AND ")
        elif part.startswith("GROUP BY "):
            made.group = split(part[9:], ", ")
        elif part.startswith("SELECT "):
            made.distinct = part.startswith("SELECT DISTINCT ")
            made.items = split(part[16 if made.distinct else 7 :], ", ")
        elif part.startswith("HAVING "):
            made.having = part[7:]
        elif part.startswith("ORDER BY "):
            made.order, _, way = part[9:].rpartition(" ")
            made.down = way == "DESC"
        elif part.startswith("LIMIT "):
            made.limit = int(part[6:])
        else:
            made.mark = part[5:].strip()
    if not made.items:
        raise QuestionError("a query without SELECT", code="UQL631")
    return made


def split(text: str, between: str) -> list[str]:
    """The parts of a text between separators that stand outside of quotes and brackets.

    >>> split("max(a, b), ask('x, y')", ", ")
    ['max(a, b)', "ask('x, y')"]
    """
    found, depth, quoted, start, i = [], 0, "", 0, 0
    while i < len(text):
        c = text[i]
        if quoted:
            quoted = "" if c == quoted else quoted
        elif c in "'\"":
            quoted = c
        elif c in "()":
            depth += 1 if c == "(" else -1
        elif not depth and text.startswith(between, i):
            found.append(text[start:i])
            i += len(between)
            start = i
            continue
        i += 1
    return [*found, text[start:]]


def pruned(lines: Lines, scope: Scope) -> None:
    """Leaves out tables of which nothing is named, where rows are not counted or added up."""
    whole = " ".join([*lines.where, *lines.group, *lines.items, lines.having, lines.order])
    if re.search(r"\b(count|sum|avg|median|percent|share)\(", whole) or any(
        part.startswith(("with ", "without ")) for part in lines.where
    ):
        return
    used = {c.table for c in lines.path.columns if re.search(rf"(?<![\w.]){re.escape(c.name)}(?!\w)", whole)}
    if any(f"{call}(" in whole for call in ("ask", "ask_number", SUMMARY)):
        used |= {c.table for c in lines.path.columns if c.field.is_unstructured}
    if used and used < set(lines.path.tables):
        smaller = next((each for each in joins(scope) if used <= set(each[0]) < set(lines.path.tables)), None)
        if smaller is not None:
            best = path_of(scope, *smaller)  # it gives FROM; the names stay as they were
            lines.path = Path(best.tables, best.source, lines.path.columns, best.reads, best.others)


def cleared(lines: Lines, title: str) -> None:
    """Leaves out conditions that are there twice, that deny another, or that keep one group where the question names no such value.

    What is shown and is a condition too is not shown: it is the same for every row.
    """
    low = title.lower()
    kept: list[str] = []
    for part in dict.fromkeys(lines.where):
        denied = part.removeprefix("NOT ") if part.startswith("NOT ") else f"NOT {part}"
        held = _EQUAL.fullmatch(part)
        one_group = held is not None and held[1] in lines.group and held[2].lower() not in low
        again = _LIKE.fullmatch(part)  # what a condition on another column says already
        if denied not in kept and not one_group and not (again is not None and any(again[1] in k for k in kept)):
            kept.append(part)
    of_items = {text for item in lines.items for text in _OF_READ.findall(item)}
    lines.where = [part for part in kept if part not in of_items]  # a share of the rows that are so is no share of them
    shown = [
        item for item in lines.items if item.removesuffix(f" AS {READ}") not in kept
    ]  # what a condition says is so
    if shown and len(shown) < len(lines.items):
        lines.items = shown
        if lines.order == READ and not any(item.endswith(f" AS {READ}") for item in shown):
            lines.order, lines.limit = "", 0


def whole_names(items: Sequence[str], path: Path) -> list[str]:
    """Items in which a first name has the last name behind it, and the other way round."""
    made: list[str] = []
    for item in items:
        c = next((c for c in path.columns if c.name == item), None)
        both = [item]
        if c is not None:
            others = {o.field.name.lower().replace("_", ""): o.name for o in path.columns if o.table == c.table}
            bare = c.field.name.lower().replace("_", "")
            for first, last in _NAMES:
                if bare in (first, last) and first in others and last in others:
                    both = [others[first], others[last]]
        made += [name for name in both if name not in made]
    return made
