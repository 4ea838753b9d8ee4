"""A question in the words of a database: short forms in full, `monthly` as per month, and a thing that is called otherwise there.

Of `which products have no sales` the sales are orders, where the database has orders and nothing called sales.
"""

from __future__ import annotations

import re

from uql.base.schema import Modality
from uql.nl.schema.discover import stem, words_of
from uql.nl.schema.name_words import in_full, spaced
from uql.nl.schema.scope import Scope
from uql.nl.small.meaning.implied import plainly
from uql.nl.small.meaning.naming import are_people
from uql.nl.small.word_forms import singular

# Words for one thing, of which a database has one.
_ALIKE = tuple(
    frozenset(line.split())
    for line in """
    sale purchase order transaction
    employee worker staff personnel
    customer client buyer shopper
    product item article goods
    email mail message
    film movie
    photo picture image photograph
    house home listing property flat apartment
    student pupil
    teacher instructor lecturer
    firm company business enterprise corporation
    vendor supplier seller
    doctor physician
    drug medication medicine
    car vehicle automobile
    invoice bill
    country nation
    city town
    carrier airline
    fixture match game
    club team
    recipe dish
    wage salary pay
    """.strip().splitlines()
)
_PARTS = {
    "monthly": "month",
    "yearly": "year",
    "annual": "year",
    "annually": "year",
    "quarterly": "quarter",
    "weekly": "week",
    "daily": "day",
    "hourly": "hour",
}
_OFTEN = re.compile(
    rf"\b({'|'.join(_PARTS)}) ((?:\w+ ?){{1,2}}?)(?=\W*$|,| (?:in|of|for|by|as|since|from|\d))", re.IGNORECASE
)
_WEEKDAY = re.compile(r"\b(?:week day|day of (?:the|a) week)(s?)\b", re.IGNORECASE)
_AT = r"(?:(?:on|at|during|in) )?(?:the )?"
_WEEKEND = re.compile(
    rf"\b{_AT}week-?(day|end)s?,? (?:vs\.?|versus|and|or|than|against|compared (?:to|with)) {_AT}week-?(?!\1)(?:day|end)s?\b",
    re.IGNORECASE,
)
_HOUR = re.compile(r"\b(?:at )?what time of (?:the )?day\b", re.IGNORECASE)
_QUARTER = re.compile(r"\b(?:Q([1-4])|(first|second|third|fourth|1st|2nd|3rd|4th) quarter)\b", re.IGNORECASE)
_ORDINALS = ("first", "second", "third", "fourth")
_PEOPLE = re.compile(
    r"()\b(?:people|persons)(?= (?:who|that) )|(^|\b(?:how many|most|fewest|number of|which|list|all) )(?:people|persons)\b",
    re.IGNORECASE,
)
_TIMES = {"once": "one time", "twice": "two times", "thrice": "three times"}
_OFTEN_THAN = re.compile(r"\b(than|least|most|exactly|only) (once|twice|thrice)\b(?! (?:as|the)\b)", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]{3,}")


def _shows(scope: Scope) -> bool:
    """May an image show people?"""
    return any(
        f.is_unstructured and f.modality is not Modality.TEXT for source in scope.sources.values() for f in source.shown
    )


def _quarter(said: str) -> int:
    """The number of a quarter.

    >>> _quarter("3"), _quarter("second"), _quarter("4th")
    (3, 2, 4)
    """
    return 1 + _ORDINALS.index(said.lower()) if said.lower() in _ORDINALS else int(said[0])


def in_its_words(question: str, scope: Scope) -> str:
    """A question as a database says it.

    Args:
        scope: a word that stands in a name or value of it stays as it is.
    """
    plain, compared = _WEEKEND.subn("", _WEEKDAY.sub(r"weekday\1", in_full(plainly(question))))
    plain = f"{plain.strip(' ?.:,')} by weekend" if compared else plain
    plain = _QUARTER.sub(lambda found: f"quarter {_quarter(found[1] or found[2])}", _HOUR.sub("in which hour", plain))
    plain = _OFTEN.sub(lambda found: f"{found[2].strip()} per {_PARTS[found[1].lower()]}", plain)
    plain = _OFTEN_THAN.sub(lambda found: f"{found[1]} {_TIMES[found[2].lower()]}", plain)
    called = {name: words_of(name) for name in scope.sources}
    columns = words_of(" ".join(f.name for source in scope.sources.values() for f in source.shown))
    known = columns.union(*called.values()) if called else columns
    values = words_of(" ".join(value for source in scope.sources.values() for _, value in source.matches))

    people = [name for name, words in called.items() if are_people(words)]
    if len(people) == 1 and "person" not in known and not _shows(scope):  # most people hired: most employees
        one_of_them = in_full(spaced(people[0])).lower()
        plain = _PEOPLE.sub(lambda found: f"{found[1] or found[2] or ''}{singular(one_of_them)}s", plain)

    def here(found: re.Match[str]) -> str:
        word = found[0]
        one = singular(word.lower())
        if stem(one) in known | values:
            return word
        others = sorted(next((group for group in _ALIKE if one in group), frozenset()) - {one})
        others = [other for other in others if stem(other) in known]
        tables = [other for other in others if any(stem(other) in words for words in called.values())]
        chosen = tables or others
        return word if not chosen else chosen[0] + ("s" if one != word.lower() else "")

    return _WORD.sub(here, plain)
