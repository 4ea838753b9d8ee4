"""Which rows of another table a row must have, or must not have: both of two values, none of one, nothing in a year.

In lines:

    WHERE with skills of skill = 'sql' AND with skills of skill = 'python'      who know both sql and python
    WHERE with usage of feature = 'exports' AND without usage of feature = 'api'      exports but not the api
    WHERE without ingredients of food_group = 'dairy'                              that contain no dairy
    WHERE without orders of year(ordered_on) = 2024                                who did not order in 2024

A condition on a joined row cannot say it: that no row is of dairy is another thing than that some row is not. It is asked of what the
question is about, where the values stand in a table of which each of its rows may have several.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from uql.nl.schema.discover import words_of
from uql.nl.schema.join_paths import Path, named
from uql.nl.schema.scope import Column as End
from uql.nl.schema.scope import Scope
from uql.nl.small.lines.gbnf import safe
from uql.nl.small.meaning.dates import years_of
from uql.nl.small.meaning.likeness import COMMON
from uql.nl.small.meaning.naming import Place
from uql.nl.small.word_forms import root

_DENIED = re.compile(r"\b(?:never|not|no|none|neither|nor|without|except)\b|n't\b")
_ONLY = re.compile(r"\bonly\b(?! (?:\d|one|two|three|once|the (?:first|last)))")
_BOTH = re.compile(r"\bboth\b|\bas well as\b|\bbut also\b|\band also\b")
_PARTS = re.compile(r",|\bbut\b|\band\b(?! \d)|\bwhile\b|\bthough\b")
_COMPARED = re.compile(r"\b(?:compare\w*|difference|versus|vs|how many more|than|percent\w*|share)\b")
_LINE = re.compile(r"(with|without) (\w+|\"[^\"]*\") of (.+)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A condition on rows of another table: with or without them, what they are, in lines, and the table whose rows are asked for."""

    kind: str
    table: str
    held: str
    about: str

    @property
    def text(self) -> str:
        return f"{self.kind} {named(self.table)} of {self.held}"


@dataclass(frozen=True, slots=True)
class Way:
    """How rows of one table lead to those of another: the tables that are read, their column, and the column that it meets."""

    tables: frozenset[str]
    source: str
    theirs: End
    mine: End


def elsewhere(question: str, scope: Scope, asked: frozenset[Place]) -> tuple[Elsewhere, ...]:
    """What a question asks of rows of other tables.

    Args:
        asked: the columns that it asks for: they stand in the table that it is about, else that is the first that it names.
    """
    low = question.lower()
    about = _about(low, scope, asked)
    if not about or _COMPARED.search(low):
        return ()
    both, only = _BOTH.search(low) is not None, _ONLY.search(low)
    denied = [part for part in _parts(low) if _DENIED.search(part[1])]
    if not (both or only or denied):
        return ()
    said = sorted(_values_said(low, scope, about), key=lambda each: each[3])
    without = [(t, c, v) for t, c, v, at in said if any(_is_behind(at, part, _DENIED) for part in denied)]
    found = [Elsewhere("without", t, f"{named(c)} = '{v}'", about) for t, c, v in without]
    found += _years_without(denied, scope, about)
    others = [(t, c, v) for t, c, v, _ in said if (t, c, v) not in without]
    if found or (both and len({v for _, _, v in others}) > 1):
        tables = {each.table for each in found} or {t for t, _, _ in others}
        found = [Elsewhere("with", t, f"{named(c)} = '{v}'", about) for t, c, v in others if t in tables] + found
    if not found and only is not None:
        found = [
            Elsewhere("without", t, f"NOT {named(c)}", about) for t, c in _flags_behind(low[only.end() :], scope, about)
        ]
        behind = [(t, c, v) for t, c, v, at in said if at > only.start()]
        if len(behind) == 1:
            t, c, v = behind[0]
            found = [
                Elsewhere("with", t, f"{named(c)} = '{v}'", about),
                Elsewhere("without", t, f"{named(c)} <> '{v}'", about),
            ]
    return tuple(dict.fromkeys(found)) if len({each.table for each in found}) == 1 else ()


def _about(low: str, scope: Scope, asked: frozenset[Place]) -> str:
    """The table whose rows a question asks for; "" where it is not one."""
    tables = {table for table, _ in asked}
    if len(tables) == 1:
        return next(iter(tables))
    for word in re.findall(r"[a-z]+", low):
        found = [name for name in scope.sources if words_of(word) and words_of(name) == words_of(word)]
        if found and (not tables or found[0] in tables):
            return found[0]
    ends = [
        name for name in scope.sources for word in re.findall(r"[a-z]+", low)[:3] if words_of(word) & words_of(name)
    ]
    return ends[0] if len(set(ends)) == 1 else ""


def _parts(low: str) -> Iterator[tuple[int, str]]:
    """The parts of a question between commas, and and but, with where they begin."""
    start = 0
    for cut in _PARTS.finditer(low):
        yield start, low[start : cut.start()]
        start = cut.end()
    yield start, low[start:]


def _is_behind(at: int, part: tuple[int, str], pattern: re.Pattern[str]) -> bool:
    found = pattern.search(part[1])
    return found is not None and part[0] + found.start() < at < part[0] + len(part[1])


def _values_said(low: str, scope: Scope, about: str) -> Iterator[tuple[str, str, str, int]]:
    """The values of tables of which a row of that one may have several, with where they stand in the question."""
    for table, source in scope.sources.items():
        if table == about or way_to(scope, (about,), table) is None:
            continue
        for column, value in source.matches:
            at = low.find(value.lower())
            if at >= 0 and safe(value) and not words_of(value) <= words_of(" ".join(scope.sources)) | COMMON:
                yield table, column, value, at


def _flags_behind(low: str, scope: Scope, about: str) -> Iterator[Place]:
    """The columns of booleans of such tables that a text names."""
    for table, source in scope.sources.items():
        if table != about and way_to(scope, (about,), table) is not None:
            yield from (
                (table, f.name)
                for f in source.shown
                if f.type == "BOOLEAN" and words_of(f.name) - COMMON <= words_of(low)
            )


def _years_without(denied: list[tuple[int, str]], scope: Scope, about: str) -> list[Elsewhere]:
    """Of `did not order in 2024` the orders of that year."""
    found = []
    for _, part in denied:
        behind = part[_first(part) :]
        roots = {root(word) for word in re.findall(r"[a-z]{3,}", behind)}
        for table, source in scope.sources.items():
            dates = [f.name for f in source.shown if f.type.startswith(("DATE", "TIMESTAMP"))]
            called = {root(word) for word in words_of(table)}
            dates = [name for name in dates if roots & {root(word) for word in words_of(name)}] or dates
            if table != about and dates and called & roots and way_to(scope, (about,), table) is not None:
                found += [
                    Elsewhere("without", table, f"year({named(dates[0])}) = {year}", about) for year in years_of(behind)
                ]
    return found


def _first(part: str) -> int:
    found = _DENIED.search(part)
    return found.start() if found is not None else 0


# ------------------------------------------------------------------------------------------------- the grammar, the reading
def may_ask(tables: tuple[str, ...], found: tuple[Elsewhere, ...], scope: Scope) -> bool:
    """May a join of these tables have these conditions: it holds what is asked for, and no table on the way to the others?"""
    ways = [(each.about, way_to(scope, (each.about,), each.table)) for each in found]
    return all(about in tables and way is not None and way.tables.isdisjoint(tables) for about, way in ways)


def way_to(scope: Scope, tables: tuple[str, ...], other: str) -> Way | None:
    """How one of some tables leads to another of which its rows may have several, straight or by a table between."""
    for link in scope.links:
        if link.left.table == other and link.right.table in tables:
            return Way(frozenset((other,)), named(other), link.left, link.right)
    for link in scope.links:
        between = link.left.table
        if link.right.table not in tables or between in tables:
            continue
        for far in scope.links:
            if {far.left.table, far.right.table} == {between, other}:
                on = " = ".join(named(end.table, end.name) for end in (far.left, far.right))
                read = frozenset((between, other))
                return Way(read, f"{named(between)} JOIN {named(other)} ON {on}", link.left, link.right)
    return None


def sql_of(text: str, path: Path, scope: Scope) -> str | None:
    """A condition on rows elsewhere as SQL; None where a text is nothing of the kind, or no such rows are linked."""
    found = _LINE.fullmatch(text)
    if found is None:
        return None
    kind, table, held = found.groups()
    way = way_to(scope, path.tables, table.strip('"'))
    if way is None:
        return None
    held = re.sub(r"^(NOT )?(year\()?(?=[\w\"])", lambda m: f"{m[1] or ''}{m[2] or ''}{table}.", held, count=1)
    theirs = named(way.theirs.table, way.theirs.name)
    sign = "IN" if kind == "with" else "NOT IN"
    return f"{named(way.mine.table, way.mine.name)} {sign} (SELECT {theirs} FROM {way.source} WHERE {held} AND {theirs} IS NOT NULL)"
