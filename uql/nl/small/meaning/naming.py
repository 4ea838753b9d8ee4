"""Which tables and columns the words of a question name: those that its query has to read, to show, or to group by.

A table or column is named where all words of its name stand in the question (`birth date`, `orders`); units and keys (`area_km2`, `id`) do
not count. Nothing here knows a database: a question that names no table leaves all of them open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from uql.base.schema import Modality
from uql.nl.schema.discover import stem, words_of
from uql.nl.schema.join_paths import is_called, is_key_name
from uql.nl.schema.name_words import spaced
from uql.nl.schema.scope import Scope
from uql.nl.small.meaning.likeness import COMMON
from uql.nl.small.word_forms import is_participle, meant_among, root

Place = tuple[str, str]  # table, column
PARTS = ("year", "month", "century", "decade", "quarter", "weekday", "weekend", "week", "day", "hour")
UNITS = frozenset(
    map(
        stem,
        ("km", "km2", "usd", "eur", "gbp", "pct", "ppp", "kg", "cm", "sqm", "min", "sec", "hr", "ms", "mi", "lb", "mm"),
    )
)
_HEAD = re.compile(
    r"\b(?:which|what|list|show|name|get|find|top|bottom)\b(?:'s)?(?: (?:is|are|was|were|all|me|of|us))*"
    r"(?: (?:the|a|an|all|two|three|four|five|\d+))* ((?:[\w-]+ ?){1,4})"
)
_ONE = re.compile(r"\bof (?:all )?(?:the|those|these) ((?:[\w-]+ ?){1,3})")  # of the books that …, which one
_EACH = re.compile(r"\b(?:per|each|every)\b(?: of)?(?: the)?(?: different| distinct| single)* ((?:[\w-]+ ?){1,3})")
_BY = re.compile(
    r"(?<!\bsort )(?<!order )(?<!rank )(?<!ed )(?<!ten )(?<!axis )(?<!ing )(?<!desc )(?<!asc )(?<!low )(?<!high )\bby (?:the )?"
    r"((?:[\w-]+ ?){1,2})(?=\W*$|,| and | in | as | for )"
)
_PART = re.compile(rf"\b(?:per|each|every|by)(?: the)? ({'|'.join(PARTS)})\b")
_END_WORDS = (
    "of in on at to for with that who whose which where when and or is are was were has have had do does did by from there if than as "
    "it they he she we you i"
)
_DENIES = re.compile(r"\b(?:never|without|not|no|none|neither|nor|lack(?:s|ing)?)\b|n't\b")
_SORTED = re.compile(
    r"\b(?:(?:in|by) )?(?:the )?(?:ascending|descending|alphabetical|reverse)? ?order\b|\border(?:ed)? by\b"
)
_ANOTHER = re.compile(
    r",? and (?:also |then )?(?=(?:get|show|list|find|compute|plot|draw|create|count|retrieve|give|tell|calculate|display|determine|"
    r"what|which|who|how many|how much)\b)|\? +(?=(?:what|which|who|how) )",
    re.IGNORECASE,
)
_PEOPLE_WORDS = (
    "person people player customer member employee staff author artist singer student teacher driver patient doctor user client worker "
    "actor director writer painter owner manager reader visitor guest passenger athlete scientist professor politician child friend "
    "agent tenant candidate applicant resident cook chef coach judge pilot nurse host guide clerk"
)
_PEOPLE = frozenset(map(stem, _PEOPLE_WORDS.split()))
_OF_PEOPLE = frozenset(
    map(
        stem,
        ("birth", "born", "birthday", "age", "gender", "sex", "surname", "salary", "email", "nationality", "firstname"),
    )
)
_WHO = re.compile(r"\W*who\b")
_DOES = re.compile(r"\W*who (?:(?:has|have|had|is|are|was|were|did|does|do|will|would|can) )*(\w{4,})")
# What ends as those who do something, and is none of them.
_THINGS_WORDS = (
    "number order letter paper river tower computer printer quarter chapter power water weather center theater colour floor error factor "
    "sensor motor door flavour vector sector corridor mirror answer offer transfer filter folder parameter meter diameter perimeter "
    "register counter timer poster summer winter september october november december corner border layer super inner outer other "
    "list playlist checklist wishlist median newsletter chart container trailer scooter server router laser copper silver butter pepper "
    "gender semester trimester dinner supper monitor calculator elevator generator tractor reactor color flavor humor major minor "
    "prior interior"
)
_THINGS = frozenset(map(stem, _THINGS_WORDS.split()))
_DOER = re.compile(r"\w{3,}(?:er|or|ist|ian)\Z")
_OBJECTS = frozenset(
    ("the", "a", "an", "us", "me", "them", "him", "her", "most", "more", "less", "least", "over", "under")
)
_BEHIND_VERBS = frozenset(("above", "below", "after", "before", "in", "at", "by", "for", "since", "from", "with", "to"))
_ENDS = frozenset(_END_WORDS.split())  # they end a noun with what stands before it
_LEAD_WORDS = (
    "one ones single different distinct most least new old total average mean number amount count highest lowest"
)
_LEADS = frozenset(_LEAD_WORDS.split())


@dataclass(frozen=True, slots=True)
class Named:
    """What a question names.

    Attributes:
        needed: sets of tables; of each a query reads one at least, as far as one join does.
        asked: columns of which one is shown first: of `which country` what a country is called.
        groups: columns of which one is the first key of a group: of `per city` the cities.
        part: the part of a date that is the key instead: of `each year`.
    """

    needed: tuple[frozenset[str], ...] = ()
    asked: frozenset[Place] = frozenset()
    groups: frozenset[Place] = frozenset()
    part: str = ""
    held: tuple[frozenset[str], ...] = ()


def named_in(question: str, scope: Scope) -> Named:
    """What a question names of a scope."""
    low = " ".join(question.lower().replace("-", " ").split())
    there = words_of(_SORTED.sub(" ", _DENIES.split(low)[0])) or words_of(low)  # of `farms without notes` the farms
    held = list(_values_named(there, scope))
    asked = _first(low, (_HEAD, _ONE), scope)
    if not asked and _WHO.match(low):
        asked = _doers(low, scope) or people(scope)
    groups = frozenset(
        p for p in _first(low, (_EACH,), scope, keys=False) if not _is_measure(p, scope)
    ) or _told_apart_by(low, scope)
    held += [frozenset(table for table, _ in places) for places in (asked, groups) if places]
    needed = dict.fromkeys(filter(None, [*_tables_named(there, scope), *held]))
    part = found[1] if (found := _PART.search(low)) is not None and not groups else ""
    return Named(tuple(needed), asked, groups, part, tuple(dict.fromkeys(held)))


def _is_measure(place: Place, scope: Scope) -> bool:
    """Is a column no group, but a number with a fraction?"""
    kinds = {f.name: f.type for f in scope.sources[place[0]].fields}
    return kinds[place[1]].startswith(("DOUBLE", "FLOAT", "REAL", "DECIMAL"))


def _told_apart_by(low: str, scope: Scope) -> frozenset[Place]:
    """Of `how many …, by country` the countries: columns of words behind `by`, where nothing is sorted by them or made by somebody."""
    texts = {(name, f.name) for name, source in scope.sources.items() for f in source.shown if f.type == "VARCHAR"}
    found = _BY.search(low)
    return _first(low[found.start() :], (_BY,), scope) & texts if found is not None else frozenset()


def _doers(low: str, scope: Scope) -> frozenset[Place]:
    """Of `who manages …` the column manager."""
    found = _DOES.match(low)
    return frozenset(
        (name, f.name)
        for name, source in scope.sources.items()
        for f in source.shown
        if found is not None
        and f.type == "VARCHAR"
        and f.modality is Modality.STRUCTURED
        and root(found[1]) in map(root, re.split(r"[\W_]+", spaced(f.name).lower()))
    )


def people(scope: Scope) -> frozenset[Place]:
    """The columns that name people: names in tables of them, an author or a winner in others; else all names."""
    named: list[Place] = []
    roles: list[Place] = []
    sure: set[str] = set()
    for name, source in scope.sources.items():
        for f in source.shown:
            if f.type != "VARCHAR" or f.modality is not Modality.STRUCTURED:
                continue
            if f.name.lower().endswith("name"):
                named.append((name, f.name))
            elif are_people(words_of(f.name)):
                roles.append((name, f.name))
        if (
            are_people(words_of(name))
            or words_of(source.description) & _PEOPLE
            or any(words_of(f.name) & _OF_PEOPLE for f in source.shown)
        ):
            sure.add(name)
    found = [*roles, *(place for place in named if place[0] in sure)]
    return frozenset(found or named)


def are_people(words: set[str]) -> bool:
    """Is one of these stems a word for people: customers, or runners, pianists, librarians?"""
    return bool(words & _PEOPLE) or any(_DOER.match(word) and word not in _THINGS for word in words)


def requests_in(question: str, scope: Scope) -> list[str]:
    """The requests of a question that asks for two or three things, each of which names a table or column; else the question.

    A value that the first request names may be meant in the others too: then they stay together.
    """
    parts = [part.strip(" ,;") for part in _ANOTHER.split(" ".join(question.split())) if part.strip(" ,;")]
    if not 1 < len(parts) < 4:
        return [question]
    values = [value.lower() for source in scope.sources.values() for _, value in source.matches]
    alone = all(any(_tables_named(words_of(part), scope)) for part in parts)
    return parts if alone and not any(value in parts[0].lower() for value in values) else [question]


def covered(tables: Sequence[str], needed: Sequence[frozenset[str]]) -> int:
    """How many of the sets some tables meet."""
    return sum(not wanted.isdisjoint(tables) for wanted in needed)


def _tables_named(there: set[str], scope: Scope) -> Iterator[frozenset[str]]:
    """For each table or column whose whole name stands in the question: the tables with all its words in their names or columns."""
    inside = words_of(" ".join(f.name for s in scope.sources.values() for f in s.shown))
    for word in sorted(there):
        is_table = any(words_of(name) == {word} for name in scope.sources)
        meant = frozenset[str]() if is_table or word in inside else meant_among(word, inside)
        yield frozenset(n for n, s in scope.sources.items() if any(meant & words_of(f.name) for f in s.shown))
    for name, source in scope.sources.items():
        columns = (phrase for f in source.shown if not (phrase := _telling(f.name)) <= COMMON)
        for phrase in (_telling(name), *columns):
            if phrase and phrase <= there:
                yield frozenset(other for other in scope.sources if _has(phrase, other, scope))


def _has(phrase: frozenset[str], table: str, scope: Scope) -> bool:
    """Is this what a table, or one of its columns, is called? A table that links two is called by both, a key is not what it points to."""
    source = scope.sources[table]
    return phrase <= words_of(table) or any(phrase <= _telling(f.name) for f in source.shown)


def _values_named(there: set[str], scope: Scope) -> Iterator[frozenset[str]]:
    """For each value that stands in the question and is no word of a name: the tables that hold it."""
    names = frozenset(
        word
        for name, source in scope.sources.items()
        for said in (name, *(f.name for f in source.shown))
        for word in words_of(said)
    )
    for source in scope.sources.values():
        for _, value in source.matches:
            words = words_of(value)
            if words and words <= there and not words & names and not words <= COMMON:
                yield frozenset(
                    n for n, s in scope.sources.items() if any(v.lower() == value.lower() for _, v in s.matches)
                )


def _first(low: str, patterns: Sequence[re.Pattern[str]], scope: Scope, *, keys: bool = True) -> frozenset[Place]:
    """The columns that the first noun behind a pattern names; none where it names none.

    Args:
        keys: of a table whose rows have no name its key.
    """
    for pattern in patterns:
        for found in pattern.finditer(low):
            if places := places_behind(found[1].split(), scope, keys=keys):
                return places
    return frozenset()


def places_behind(words: Sequence[str], scope: Scope, *, keys: bool = False) -> frozenset[Place]:
    """The columns so called, or those that say what a row of the table so called is called."""
    inside = {word for s in scope.sources.values() for f in s.shown for word in words_of(f.name)}
    for i, word in enumerate(words):
        if word in _ENDS:
            return frozenset()
        for j in range(len(words), i, -1):
            phrase = words_of(" ".join(words[i:j])) if not _ENDS & set(words[i:j]) else set()
            if not phrase:
                continue
            is_verb = j + 1 < len(words) and (  # which patient cost the clinic most, which homes sold above
                words[j + 1] in _OBJECTS or (is_participle(words[j]) and words[j + 1] in _BEHIND_VERBS)
            )
            after = stem(words[j]) if j < len(words) and not is_verb else ""
            if after not in inside and any(words_of(name) == phrase for name in scope.sources):
                return _called(phrase, scope, keys=keys)
            columns = frozenset(
                (name, f.name)
                for name, source in scope.sources.items()
                for f in source.shown
                if f.modality is Modality.STRUCTURED
                and f.type != "BOOLEAN"
                and (_telling(f.name) == phrase or (after not in inside and _telling(f.name) - {"name"} == phrase))
            )
            if columns and word not in _LEADS:
                return columns
    return _ends_so(words[0], scope) if words else frozenset()


def _ends_so(word: str, scope: Scope) -> frozenset[Place]:
    """Of `by type` the one column of words whose name ends so: case_type."""
    found = [
        (name, f.name)
        for name, source in scope.sources.items()
        for f in source.shown
        if f.modality is Modality.STRUCTURED
        and f.type == "VARCHAR"
        and word not in _ENDS
        and stem(re.split(r"[\W_]+", spaced(f.name).lower())[-1]) == stem(word)
    ]
    return frozenset(found if len(found) == 1 else ())


def _called(phrase: set[str], scope: Scope, *, keys: bool) -> frozenset[Place]:
    """What rows of a table of this name are called, else their key; of tables that have the name among others, where none has it alone.

    The name of a person is not what anything else is called: of a flat that of its agent.
    """
    alone = [name for name in scope.sources if words_of(name) == phrase]
    tables = alone and [name for name in scope.sources if phrase <= words_of(name)]
    texts = [
        (name, f.name)
        for name in tables
        for f in scope.sources[name].shown
        if f.modality is Modality.STRUCTURED and f.type == "VARCHAR"
    ]
    found = [place for place in texts if is_called(place[1])]
    found = [(t, c) for t, c in found if are_people(words_of(t)) or not are_people(words_of(c) - words_of(t))]
    found = [place for place in found if place[1].lower() in ("name", "title", "label")] or found
    found = found or [place for place in texts if words_of(place[1]) == phrase]  # races.race
    found = found or [place for place in texts if _is_apart(place, scope)]  # accounts.company
    return frozenset(found or (place for name in tables if keys for place in _keys(name, scope)))


def _is_apart(place: Place, scope: Scope) -> bool:
    """Has a column another value in each row of its table?"""
    source = scope.sources[place[0]]
    return len(source.values.get(place[1], ())) == source.row_count > 1 and not is_key_name(place[1])


def _keys(table: str, scope: Scope) -> Iterator[Place]:
    """The key of a table whose rows have no name, and what they are about in a few words."""
    for n, f in enumerate(scope.sources[table].shown):
        words = words_of(f.name) - {"id", "key", "no", "number", "code"}
        if (is_key_name(f.name) and (n == 0 or words == words_of(table))) or (
            f.modality is Modality.STRUCTURED and words & {"subject", "headline", "heading"}
        ):
            yield table, f.name


def _telling(name: str) -> frozenset[str]:
    """The words of a name but for units; none of a key, which only points to what has that name."""
    last = re.split(r"[\W_]+", spaced(name).lower())[-1]
    return frozenset() if last in ("id", "ids", "key") else frozenset(words_of(name) - UNITS)
