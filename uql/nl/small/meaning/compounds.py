"""Figures made of figures: differences, ratios, shares of the whole, aggregates of groups, rows against the average of their own group.

In lines:

    SELECT difference(count(city = 'York'), count(city = 'Bath'))     two figures, each with the rows it is about
    SELECT times(sum(amount, city = 'York'), sum(amount, city = 'Bath'))
    SELECT difference(max(price), min(price))
    GROUP BY city … SELECT share(sum(amount))                         of each group, in percent of all
    SELECT percent(sum(amount), city = 'York')                        the same of one group
    GROUP BY customer … SELECT avg(count(*))                          over what the groups have
    WHERE price > avg(price) of kind                                  the average of the row's own group

Each is offered where the words of the question ask for it, so that the grammar of other questions does not grow. What is made of figures
is computed in a second step, so that the figures stand beside it in the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from uql.nl.schema.discover import words_of
from uql.nl.schema.join_paths import Column, is_key
from uql.nl.schema.scope import Scope
from uql.nl.small.lines.gbnf import either, literal
from uql.nl.small.meaning.implied import numbers_called
from uql.nl.small.meaning.likeness import COMMON
from uql.nl.small.meaning.naming import Place, places_behind
from uql.nl.small.word_forms import meant_among

COMPARING = ("difference", "times")
SHARE = "share"
_TIMES = re.compile(
    r"\b(?:how many|what) times (?:as|more|\w+er|the)\b|\btimes (?:as \w+|more|higher|larger|bigger|greater|\w+er than)\b"
    r"|\bratio\b"
)
_DIFFERENCE = re.compile(
    r"\b(?:difference|gap)\b|\bhow (?:many|much) (?:more|less|fewer|\w+er)\b|\bhow (?:many|much)\b.* more\b"
    r"(?! than (?:\d|an? |one\b|two\b|three\b|four\b|five\b|six\b|ten\b|half\b|once\b|twice\b|(?:the )?(?:average|mean|median)\b)).* than\b"
)
_AVERAGED = re.compile(
    r"\b(average|mean|median|typical)(?: \w+){0,2} (number|count|total|sum)\b.*\b(?:per|each|every|an?|by)\b"
    r"|\b(on average)\b.*\bhow many\b|\bhow many\b.*\b(on average)\b"
)
_TOPPED = re.compile(
    r"\b(highest|largest|biggest|greatest|maximum|lowest|smallest|minimum) (average|mean|total|sum|number|count)\b"
    r".*\b(?:per|any|each|every|among|an?)\b"
)
_OWN = re.compile(
    r"\b(?:average|mean)\b(?: [\w']+){0,3}? (?:of|in|for|within|at|among) (?:all )?(?:the )?(?:[\w']+ (?:of|in|from) )?"
    r"(?:its|their|his|her|the same|own)(?: own| same)? ((?:\w+ ?){1,2})"
    r"|\b(?:its|their|his|her)(?: own)? ((?:\w+ ?){1,2})['’]?s? (?:average|mean)\b"
)
_NUMBER_OF = re.compile(r"\bnumber of ((?:\w+ ?){1,2})")
_COUNT = re.compile(r"\b(?:how many|many|number|count|fewer)\b")
_UP = re.compile(r"\b(?:highest|largest|biggest|greatest|most|maximum|max|dearest|best|longest|oldest|latest)\b")
_DOWN = re.compile(r"\b(?:lowest|smallest|least|fewest|minimum|min|cheapest|worst|shortest|youngest|earliest)\b")
OF_TIME = frozenset(("date", "time", "day", "at", "on"))  # shipped_date says when it was shipped
_TOP = {"lowest": "min", "smallest": "min", "minimum": "min"}


@dataclass(frozen=True, slots=True)
class Compound:
    """Which figures of figures a question asks for.

    Attributes:
        compare: "difference" or "times" of two figures; "": neither.
        figure: count, sum or avg, that is compared; spread: the greatest against the least instead.
        nested: the aggregate over groups; "": none. must: nothing else will do.
        inner: of each group: count, sum, avg.
        own: the row is compared with the average of its own group; groups: by which columns, none where it is not said.
        named: the columns of numbers that the question names.
        of_read: the two that are compared are counts of what a model reads.
    """

    compare: str = ""
    figure: str = "count"
    spread: bool = False
    nested: str = ""
    must: bool = False
    inner: str = "count"
    own: bool = False
    groups: frozenset[Place] = frozenset()
    named: frozenset[Place] = frozenset()
    of_read: bool = False


def compounds_in(question: str, scope: Scope, *, plot: bool = False) -> Compound:
    """What a question asks for of this kind.

    Args:
        plot: it asks for one: then the groups themselves are wanted.
    """
    low = " ".join(question.lower().split())
    compare = "times" if _TIMES.search(low) else "difference" if _DIFFERENCE.search(low) else ""
    spread = _UP.search(low) is not None and _DOWN.search(low) is not None
    figure = "avg" if re.search(r"\b(average|mean)\b", low) else "count" if _COUNT.search(low) else "sum"
    averaged, topped = _AVERAGED.search(low), _TOPPED.search(low)
    columns = {word for s in scope.sources.values() for f in s.shown for word in words_of(f.name)}
    if averaged is not None and (of := _NUMBER_OF.search(low)) is not None and words_of(of[1]) & numbers_called(scope):
        averaged = None  # of what a column holds
    nested, must, inner = "", False, "count"
    if averaged is not None and not plot and not (averaged[2] in ("total", "sum") and words_of(averaged[2]) & columns):
        nested, must = ("median" if averaged[1] == "median" else "avg"), True
        inner = "sum" if averaged[2] in ("total", "sum") else "count"
    elif topped is not None and not plot and re.search(r"\b(what|how)\b", low):
        nested = _TOP.get(topped[1], "max")
        inner = {"average": "avg", "mean": "avg", "total": "sum", "sum": "sum"}.get(topped[2], "count")
    own = _OWN.search(low)
    return Compound(
        compare,
        figure,
        spread and figure != "count",
        nested,
        must,
        inner,
        own is not None,
        places_behind((own[1] or own[2]).split(), scope) if own is not None else frozenset(),
        _named(low, scope),
    )


def _named(low: str, scope: Scope) -> frozenset[Place]:
    """The columns whose names have a word of the question; one that every question has counts where the name is nothing else."""
    there = words_of(low)
    columns = words_of(" ".join(f.name for source in scope.sources.values() for f in source.shown))
    there = there.union(*(meant_among(word, columns) for word in re.findall(r"[a-z]+", low)))
    return frozenset(
        (name, f.name)
        for name, source in scope.sources.items()
        for f in source.shown
        if (words := words_of(f.name) - OF_TIME) & (there - COMMON) or (words and words <= there)
    )


# ----------------------------------------------------------------------------------------------------------- the grammar
def numbers(plain: Sequence[Column], compound: Compound) -> list[str]:
    """The columns of numbers, as a grammar has them: those that the question names, else all."""
    there = [c for c in plain if c.is_number and not is_key(c)]
    said = [c for c in there if (c.table, c.field.name) in compound.named]
    return [literal(c.name) for c in said or there]


def compared(plain: Sequence[Column], compound: Compound, cond: str) -> str:
    """The rule of a difference or a ratio of two figures; "" where the columns have none."""
    of = either(numbers(plain, compound))
    if compound.spread:
        return f'"{compound.compare}(max(" ({of}) "), min(" ({of}) "))"' if of else ""
    if compound.figure == "count":
        one = f'"count(" {cond} ")"'
    elif of:
        one = f'"{compound.figure}(" ({of}) ", " {cond} ")"'
    else:
        return ""
    return f'"{compound.compare}(" {one} ", " {one} ")"'


def shares(plain: Sequence[Column], compound: Compound) -> str:
    """The rule of what each group has of the whole."""
    said = [
        literal(c.name) for c in plain if c.is_number and not is_key(c) and (c.table, c.field.name) in compound.named
    ]
    added = f' | "{SHARE}(sum(" ({either(said)}) "))"' if said else ""
    return f'"{SHARE}(count(*))"{added}'


def percents(plain: Sequence[Column], compound: Compound, cond: str) -> str:
    """The rule of what some rows have of a sum; "" where the question names no number."""
    said = [
        literal(c.name) for c in plain if c.is_number and not is_key(c) and (c.table, c.field.name) in compound.named
    ]
    return f'"percent(sum(" ({either(said)}) "), " {cond} ")"' if said else ""


def over_groups(plain: Sequence[Column], compound: Compound) -> str:
    """The rule of an aggregate of the figures of groups; "" where the columns have none."""
    if compound.inner == "count":
        return f'"{compound.nested}(count(*))"'
    of = either(numbers(plain, compound))
    return f'"{compound.nested}({compound.inner}(" ({of}) "))"' if of else ""


def own_averages(plain: Sequence[Column], compound: Compound) -> Iterator[str]:
    """Conditions on a number against the average of the row's own group."""
    keys = [c for c in plain if (c.table, c.field.name) in compound.groups]
    keys = keys or [c for c in plain if c.is_text and c.values]
    for number in numbers(plain, compound):
        bare = number[1:-1]
        yield from (f'"{bare} {way} avg({bare}) of " ({either(literal(c.name) for c in keys)})' for way in "<>" if keys)


# ----------------------------------------------------------------------------------------------------------- the reading
def of_two(kind: str, first: str, second: str, *, unsigned: bool) -> str:
    """What is made of two columns.

    >>> of_two("difference", "a", "b", unsigned=False), of_two("times", "a", "b", unsigned=False)
    ('a - b', 'round(CAST(a AS DOUBLE) / nullif(b, 0), 4)')
    """
    if kind == "times":
        return f"round(CAST({first} AS DOUBLE) / nullif({second}, 0), 4)"
    return f"abs({first} - {second})" if unsigned else f"{first} - {second}"


def wants_distance(question: str) -> bool:
    """Does it ask how far apart two figures are, and not by how much the first is above the second?"""
    return re.search(r"\b(difference|gap)\b", question.lower()) is not None
