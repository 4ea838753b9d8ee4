"""Groups against the group that the question names: customers with more orders than Acme.

In lines:

    GROUP BY customer … SELECT count(*) … HAVING count(*) > that of customer = 'Acme'

A row against another row (`dearer than the Kettle`) is a condition of WHERE; here what is compared is counted or added up over rows of
another table, or averaged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from uql.nl.schema.discover import words_of
from uql.nl.schema.join_paths import NUMBERS, is_key_name
from uql.nl.schema.scope import Scope
from uql.nl.small.lines.gbnf import safe
from uql.nl.small.meaning.figures import numbers_named
from uql.nl.small.meaning.implied import last_word
from uql.nl.small.meaning.naming import Place
from uql.nl.small.word_forms import measures

_MORE = re.compile(
    r"\b(more|fewer|less|\w{3,}er)\b((?: [\w'-]+){0,5}?) than (?:the )?(?:one |ones )?(?:in |of |from |called )?"
)
_LESS = frozenset(("fewer", "less", "lower", "smaller", "shorter", "cheaper", "lighter", "slower", "worse"))
_OVER_ROWS = re.compile(r"\b(?:on average|average|mean|total|in total|altogether|overall)\b")


@dataclass(frozen=True, slots=True)
class Rival:
    """The column whose groups are compared, the sign, the group that they are compared with, and the numbers by which."""

    place: Place
    sign: str
    value: str
    by: frozenset[Place] = frozenset()


def rival_in(question: str, scope: Scope) -> Rival | None:
    """The group that others are compared with; None where there is none."""
    low = " ".join(question.lower().split())
    for found in _MORE.finditer(low):
        if re.search(r"\bhow (?:much|many)\b", low[: found.start()]) or re.match(
            r"\W*(?:is|are|do|does|did|was|were|has|have)\b", low
        ):
            continue  # a difference, or whether it is so
        for table, source in scope.sources.items():
            for column, value in source.matches:
                if not low[found.end() :].startswith(value.lower()) or not safe(value):
                    continue
                if _OVER_ROWS.search(low) or _of_other_rows(found[2], table, scope):
                    sign = "<" if found[1] in _LESS else ">"
                    return Rival((table, column), sign, value, _by(found[1], found[2], scope))
    return None


def _by(adjective: str, phrase: str, scope: Scope) -> frozenset[Place]:
    """The numbers that a noun names, or that an adjective measures."""
    most, least = measures([adjective])
    meant = (
        (name, f.name)
        for name, source in scope.sources.items()
        for f in source.shown
        if last_word(f.name) in most | least
    )
    return numbers_named(phrase, scope) or frozenset(meant)


def _of_other_rows(phrase: str, table: str, scope: Scope) -> bool:
    """Does a noun name another table, or a number that stands in one alone?"""
    said = words_of(phrase)
    if any(last_word(name) in said for name in scope.sources if name != table):
        return True
    numbers = {
        name
        for name, source in scope.sources.items()
        for f in source.shown
        if f.type.startswith(NUMBERS) and not is_key_name(f.name) and last_word(f.name) in said
    }
    return bool(numbers) and table not in numbers
