"""Conditions that a phrase implies without a value: `won` is the first place, `out of stock` none in stock, `without a club` no club.

Each counts only where a column is so called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from uql.base.schema import Modality
from uql.nl.schema.discover import stem, words_of
from uql.nl.schema.join_paths import NUMBERS, is_key_name
from uql.nl.schema.name_words import spaced
from uql.nl.schema.scope import Scope
from uql.nl.small.meaning.naming import UNITS, Place
from uql.nl.small.word_forms import contrary

_WON = re.compile(r"\b(won|wins?|winners?|winning|first place|finish(?:ed|es)? first|came (?:in )?first|champions?)\b")
_GONE = re.compile(
    r"\b(left|leave|leaves|leaving|leavers?|quit|resigned|departed|lost|churned|leaver)\b(?! (?:in|on|at|over|luggage|to)\b)"
)
_WHY = re.compile(r"\b(?:why|because|reasons?|due to)\b")
_STILL = re.compile(r"\b(overdue|open|ongoing|pending|outstanding|unfinished|unresolved|unsettled)\b")
_OVER = frozenset(
    ("close", "clos", "end", "finish", "complete", "resolve", "resolv", "settle", "return", "paid", "pay")
)
_LEAVING = frozenset(
    map(stem, ("end", "term", "termination", "exit", "left", "leave", "leaving", "departure", "churned", "resigned"))
)
_RANKS = frozenset(("place", "rank", "position", "standing", "ranking", "placing"))
_NONE_OF = re.compile(r"\b(?:out of|no(?: more)?) (\w+)|\bzero (\w+)")
_WITHOUT = re.compile(
    r"\b(?:without|no|not have|n't have|lack(?:s|ing)?|missing"
    r"|(?:not|n't) (?:in|part of|(?:a )?member of|assigned to)(?= any\b))(?: (?:an?|any|the|their|its|his|her))? ((?:\w+ ?){1,3})"
)
_IDIOMS = re.compile(
    r"\b(?:tak(?:e|es|en|ing)|took) place\b|\bin order\b(?= to\b)|\bof (?:these|those|them)\b"
    r"|\bin (?:office|service|business|post)\b(?= the longest)|\b(?:with (?:the company|the firm|us)|on the job|here)\b(?= the longest)"
)
_TRADED = (
    r"(?:sold|sells?|bought|buys?|order(?:ed|s)?|ship(?:ped|s)?|deliver(?:ed|s)?|purchased?s?|produced?s?|rent(?:ed|s)?|consumed?s?|used?s?"
    r"|donated?s?|caught|harvest(?:ed|s)?|issued?s?)"
)
_OBJECT = re.compile(
    rf"\bhow many (\w+)(?: \w+){{0,3}}? (?:did|do|does)\b.*\b{_TRADED}\b"
    rf"|\bhow many (\w+)(?: \w+){{0,3}}? (?:were|was|are|is|(?:have|has|had) been) {_TRADED}\b"
    rf"|\b{_TRADED} (?:the )?(?:most|fewest|least|best|worst|more|fewer|less)(?: (\w+))?"
    r"|\b(?:best|most|least)[- ](?:selling|sold|ordered|bought|used|rented|popular)\b()"
)
_QUANTITIES = frozenset(map(stem, ("quantity", "qty", "amount", "units", "copies", "pieces", "items")))
_COUNTED = re.compile(r"\b(?:how many|number of|most|fewest|least|more|fewer) ((?:\w+ ?){1,2})")
_KINDS = re.compile(r"\b(?:different|distinct|unique|(?:kinds|types|sorts) of)\b")
_ALTOGETHER = re.compile(
    r"\bhow much\b|\bthe (?:most|least)\b(?= (?:in|on|at|for|of|during|since|from|overall|altogether)\b|\W*$)"
)


@dataclass(frozen=True, slots=True)
class Implied:
    """A condition on a column: what stands behind its name, and the words that say it."""

    place: Place
    condition: str
    words: frozenset[str]


def plainly(question: str) -> str:
    """A question without phrases whose words name nothing.

    >>> plainly("How many races took place in May, in order to plan?")
    'How many races happened in May, to plan?'
    """
    question = re.sub(r"\bhead ?counts?\b", "number of people", question, flags=re.IGNORECASE)
    said = _IDIOMS.sub(lambda m: "happened" if m[0].lower().endswith("place") else "", question)
    return " ".join(said.split())


def implied(question: str, scope: Scope) -> Iterator[Implied]:
    """The conditions that phrases of a question imply."""
    low = question.lower()
    won = frozenset(word for found in _WON.findall(low) for word in found.split())
    gone = frozenset(_GONE.findall(low)) if not _WHY.search(low) else frozenset()
    none = {stem(word) for found in _NONE_OF.findall(low) for word in found if word}
    lacking = [words_of(found[1]) for found in _WITHOUT.finditer(low)]
    for table, source in scope.sources.items():
        for f in source.shown:
            if f.modality is not Modality.STRUCTURED or f.type == "BOOLEAN":
                continue
            words = words_of(f.name)
            last = last_word(f.name)
            if f.type.startswith(NUMBERS):
                if won and last in _RANKS:
                    yield Implied((table, f.name), " = 1", won)
                if words and words & none and last in none:
                    yield Implied((table, f.name), " = 0", frozenset())
            elif f.type.startswith(("DATE", "TIMESTAMP")) and (open_ := _not_yet(low, words)):
                yield Implied((table, f.name), " IS NULL", open_)
            elif f.type.startswith(("DATE", "TIMESTAMP")) and gone and words & _LEAVING:
                yield Implied((table, f.name), " IS NOT NULL", gone)
            elif words and any((words - {"name"} or words) <= said for said in lacking):
                yield Implied((table, f.name), " IS NULL", frozenset())


def _not_yet(low: str, words: set[str]) -> frozenset[str]:
    """The words that say that a day has not come: of closed_on open, of shipped_on unshipped."""
    still = frozenset(_STILL.findall(low)) if words & _OVER else frozenset()
    return still | {
        word for word in re.findall(r"\bun[a-z]{4,}", low) if words & (words_of(contrary(word)) - words_of(word))
    }


def amounts(question: str, scope: Scope) -> frozenset[Place]:
    """The columns that say how many of a thing there were, where the question asks how many: of visitors those called so, of what was
    sold or ordered the quantity. Not where it asks how many sales or orders there were, which are rows.
    """
    low = question.lower()
    if _KINDS.search(low):
        return frozenset()
    found = _OBJECT.search(low)
    traded = {stem(word) for word in found.groups() if word} if found is not None else None
    nouns = {
        stem(word)
        for match in _COUNTED.finditer(low)
        for n, word in enumerate(match[1].split()[:2])
        if (not n or word[-2:] != "ed") and word != "per"
    }
    return frozenset(
        (table, f.name)
        for table, source in scope.sources.items()
        for f in source.shown
        if f.type.startswith(NUMBERS)
        and not f.type.endswith("[]")
        and not is_key_name(f.name)
        and (
            (last_word(f.name) in nouns and not any(words_of(name) == {last_word(f.name)} for name in scope.sources))
            or (traded is not None and last_word(f.name) in _QUANTITIES and not traded & words_of(table))
        )
    )


def numbers_called(scope: Scope) -> set[str]:
    """What the columns of numbers are called, units aside."""
    return {
        last_word(f.name)
        for source in scope.sources.values()
        for f in source.shown
        if f.type.startswith(NUMBERS) and not is_key_name(f.name)
    }


def last_word(name: str) -> str:
    """The noun of a column's name, units aside: the last word of it.

    >>> last_word("delay_min"), last_word("unitPrice")
    ('delay', 'price')
    """
    words = [stem(word) for word in re.split(r"[\W_]+", spaced(name).lower()) if word]
    return next((word for word in reversed(words) if word not in UNITS), "")


def adds(question: str) -> bool:
    """Does it ask how much there is altogether, or who has the most of it?

    >>> adds("How much did it cost?"), adds("Who spent the most in May?"), adds("Who wrote the most letters?")
    (True, True, False)
    """
    return _ALTOGETHER.search(question.lower()) is not None
