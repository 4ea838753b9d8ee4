"""Which figure a question means that names a number and says neither total nor average: of `revenue per month` the sum.

What flows adds up (revenue, quantities); of anything else (prices, grades) it may be an average too. `The store with the lowest revenue` is
told by all its sales, where they stand in another table; `who earns most` by one row, where a row is a person.
"""

from __future__ import annotations

import re

from uql.nl.schema.discover import words_of
from uql.nl.schema.join_paths import NUMBERS, is_called, is_key_name
from uql.nl.schema.scope import Scope
from uql.nl.small.meaning.implied import last_word
from uql.nl.small.meaning.naming import Place
from uql.nl.small.word_forms import AMOUNTS, FLOWS, meant_among

_BY = re.compile(r"\bby (?:the |their |its )?((?:[\w-]+ ?){1,2})")
_SAID_OF_NAMES = frozenset(("name", "title", "label", "first", "last", "full"))


def numbers_named(text: str, scope: Scope) -> frozenset[Place]:
    """The columns of numbers that a text names by the noun of their name, or means by another word."""
    low = text.lower()
    there = words_of(low)
    linked = {(c.table, c.name) for link in scope.links for c in (link.left, link.right)}
    numbers = [
        ((table, f.name), last_word(f.name))
        for table, source in scope.sources.items()
        for f in source.shown
        if f.type.startswith(NUMBERS)
        and not f.type.endswith("[]")
        and not is_key_name(f.name)
        and (table, f.name) not in linked
    ]
    called = {last for _, last in numbers}
    there = there.union(*(meant_among(word, called) for word in re.findall(r"[a-z]+", low) if not {word} & called))
    return frozenset(place for place, last in numbers if last in there)


def numbers_by(question: str, scope: Scope) -> frozenset[Place]:
    """Of `top customers by revenue` the revenue."""
    return frozenset().union(*(numbers_named(found[1], scope) for found in _BY.finditer(question.lower())))


def flows(low: str, places: frozenset[Place], *, amounts: bool) -> bool:
    """Do these add up: what is called revenue, by the question or the column; with `amounts` quantities and amounts too?"""
    kinds = AMOUNTS if amounts else FLOWS
    return bool(places) and (bool(words_of(low) & FLOWS) or all(last_word(column) in kinds for _, column in places))


def is_entity(place: Place, scope: Scope) -> bool:
    """Does a column say what a row of its table is called, each row otherwise?"""
    table, column = place
    source = scope.sources[table]
    values = source.values.get(column)
    repeated = values is not None and len(values) < 0.5 * source.row_count and not words_of(column) & {"first", "last"}
    return is_called(column) and words_of(column) - _SAID_OF_NAMES <= words_of(table) and not repeated
