"""What the words of a question leave open of its query: groups or none, the greatest or the least, what a model must read.

A small model that may write anything in scope takes the wrong of two directions, or a column that sounds alike for what only a text says.
These are rules of English words, not of a database: `oldest` is the earliest date, `per` is a group, and a word that is near to no
name, value or comment of the database is something to be read where there are texts or images.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from uql.nl.discover import Scope, words_of
from uql.nl.likeness import COMMON, names_of

Near = Callable[[str, Sequence[str]], Sequence[float]]
NEAR = 0.3  # similarity from which a word is one for a name
_RECENT = re.compile(r"\b(most|least) recent(ly)?\b")
_UP = re.compile(
    r"\b(highest|largest|biggest|tallest|longest|greatest|most|maximum|max|top|heaviest|strongest|richest|dearest)\b"
)
_DOWN = re.compile(r"\b(lowest|smallest|shortest|least|fewest|minimum|min|lightest|weakest|poorest|cheapest)\b")
_EARLY = re.compile(r"\b(oldest|earliest|eldest)\b")
_LATE = re.compile(r"\b(youngest|newest|latest|recent)\b")
_DESC = re.compile(r"\b(desc|descending|(high|large|big)(est)? to (low|small)(est)?|z to a)\b")
_ASC = re.compile(r"\b(asc|ascending|(low|small)(est)? to (high|large|big)(est)?|a to z|alphabetical(ly)?)\b")
_GROUP = re.compile(r"\b(per|each|every)\b")
_GROUPS = re.compile(r"\b(different|distribution|group(ed)?|respectively|by|all|distinct|categor\w+|kinds?|types?)\b")
_HAVING = re.compile(r"\b(more|less|fewer|at least|at most|over|under)\b.*\d")
_MEASURED = re.compile(
    r"\b(highest|lowest|most|least|largest|smallest|fewest|maximum|minimum|average|mean|total)\s+(number|percentage|percent|amount|count|share)\b"
)
_COUNTED = re.compile(r"\b(most|fewest|least|number|many|more|less|fewer)\b")
_ADDED = re.compile(r"\b(total|sum|average|mean|altogether)\b")
_ROW = re.compile(r"\b(who|which|whose)\b|\bof the \w+ (that|with|who|which|whose)\b")
_PARTS = ("year", "month", "century", "decade")
SUPERLATIVES = frozenset(
    word
    for line in (
        "highest largest biggest tallest longest greatest most maximum top lowest smallest shortest least fewest minimum",
        "oldest earliest youngest newest latest average total plot chart per each every",
    )
    for word in line.split()
)


@dataclass(frozen=True, slots=True)
class Narrow:
    """What a query may be.

    Attributes:
        group: "must", "may", "count" (only to count, and then the first of them or those above a number), or "no".
        keys: of a group at most.
        high, low: the greatest, the least of numbers may be asked for.
        late, early: of dates.
        down, up: rows may be sorted so, where no superlative says it.
        parts: of dates that may be named.
        ask: "must", "number": a number is read; "may".
        plot: a plot ends it.
        added: sums or averages are asked for; best: the greatest or the least are; timed: by date or age.
        read: words of which one stands in what is read.
        values: "named": only values that the question names; "all".
        which: it asks for rows: who, which.
        row: it asks which row has the greatest or least of what is read.
        numbers: it has one, that a condition may compare with.
    """

    group: str = "may"
    keys: int = 2
    high: bool = True
    low: bool = True
    late: bool = True
    early: bool = True
    down: bool = True
    up: bool = True
    parts: tuple[str, ...] = _PARTS
    ask: str = "may"
    plot: bool = False
    added: bool = True
    best: bool = True
    timed: bool = False
    read: tuple[str, ...] = ()
    values: str = "all"
    which: bool = False
    row: bool = False
    numbers: bool = True

    def aggregates(self, *, dated: bool = False, aged: bool = False) -> tuple[str, ...]:
        """min, max or both, of a column of numbers or dates; of an age the oldest is the greatest."""
        high, low = (
            (self.late, self.early)
            if dated
            else (self.early and self.high, self.late and self.low)
            if aged
            else (self.high, self.low)
        )
        return tuple(name for name, may in (("min", low), ("max", high)) if may) or ("min", "max")


def narrowed(question: str, scope: Scope, near: Near | None, *, plot: bool) -> Narrow:
    """What the question leaves open.

    Args:
        near: similarities of words; None: nothing must be read.
        plot: it asks for one.
    """
    low = _RECENT.sub("recent", question.lower())
    high, least = _UP.search(low) is not None, _DOWN.search(low) is not None
    early, late = _EARLY.search(low) is not None, _LATE.search(low) is not None
    down, up = _DESC.search(low) is not None, _ASC.search(low) is not None
    unknown = unknown_words(question, scope, near)
    reads = any(f.is_unstructured for source in scope.sources.values() for f in source.shown)
    ask = "may"
    if unknown and reads:
        ask = "number" if _MEASURED.search(low) else "must"
    group = "must" if _GROUP.search(low) else "may" if plot or _GROUPS.search(low) or _HAVING.search(low) else "no"
    group = "count" if group == "no" and ask == "may" and _COUNTED.search(low) else group
    dated = re.search(r"\b\d{4}\b", low) is not None
    parts = tuple(
        part
        for part in _PARTS
        if part[:6] in low or (part == "year" and dated) or (part == "century" and "centur" in low)
    )
    superlative = high or least or early or late
    return Narrow(
        group,
        2 if re.search(r"\b(and|stack\w*|group\w*|colou?r)\b", low) else 1,
        high or not least,
        least or not high,
        late or not early,
        early or not late,
        down or not up or superlative,
        up or not down or superlative,
        parts,
        ask,
        plot,
        _ADDED.search(low) is not None,
        superlative,
        (early or late) and not (high or least),
        tuple(w for w in dict.fromkeys(re.findall(r"[A-Za-z]+", question)) if w.lower() in unknown) if reads else (),
        "all" if unknown and not reads else "named",
        _ROW.search(low) is not None,
        ask == "number" and group not in ("must", "may") and high != least and _ROW.search(low) is not None,
        re.search(r"\d", question) is not None,
    )


def unknown_words(question: str, scope: Scope, near: Near | None) -> list[str]:
    """The words of a question that are near to no name, comment or value of the scope."""
    if near is None:
        return []
    names = names_of(scope, read=False)
    known = words_of(names)
    written = {w.lower() for w in re.findall(r"[A-Za-z]{3,}", question)}
    found = []
    for word in sorted(written):
        stems = words_of(word)
        if not stems or stems & known or stems <= COMMON or word in COMMON:
            continue
        others = sorted({w.lower() for w in re.findall(r"[A-Za-z]{3,}", names.replace("_", " "))})
        if not others or max(near(word, others)) < NEAR:
            found.append(word)
    return found
