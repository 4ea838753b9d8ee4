"""How the words of a question stand to a database: which it holds, which only a text or an image can tell, which are nowhere.

What is asked for must be somewhere. A noun that is counted or asked for (`how many employees`, `what was the profit`) and that is near to
no name, comment or value, and stands in no text, cannot be answered; nor can the best of anything where nothing says by what.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from uql.base.schema import Modality
from uql.nl.schema.discover import stem, words_of
from uql.nl.schema.join_paths import NUMBERS, is_key_name
from uql.nl.schema.name_words import spaced
from uql.nl.schema.scope import Scope, Source
from uql.nl.small.meaning.implied import implied, numbers_called
from uql.nl.small.meaning.likeness import COMMON, DAYS, MONTHS, date_words, names_of
from uql.nl.small.word_forms import (
    contrary,
    is_another_form,
    is_doing,
    is_participle,
    is_saying,
    meant_among,
    meant_columns,
    measures,
    root,
    units_said,
)

Near = Callable[[str, Sequence[str]], Sequence[float]]
NEAR = 0.3  # similarity from which a word is one for a name
_ASIDE = re.compile(r"([a-z]{3,}) \(([^)]*)\)")  # the euro (EUR)
_SUPERLATIVE = re.compile(
    r"(?!for|inter|near|har|mod|hon|prot|dig|inv|sugg|requ|cont|arr|ear)[a-z]{3,}(?<!b|t)est"
    r"|longest|shortest|greatest|fastest|lightest|latest"
)
_RELATION = (
    r"(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )(?<!\bbe )(?<!\bbeen )\b{}"
    r"(?: (?:a|an|the|any|more|fewer|most|no|\d+|their|his|her|its))+ (\w+)"
)
_COUNTED = re.compile(r"\bhow (?:many|much) ((?:[a-z]+ ?){1,3})|\bnumber of ((?:[a-z]+ ?){1,3})")
_ASKED = re.compile(r"\b(?:what|which|who) (?:is|was|are|were) (?:the |its |their |his |her )?((?:[a-z]+ ?){1,3})")
_TOPIC = re.compile(
    r"^\W*(?:(?:show|list|plot|give|get)(?: me)? )?(?:the )?((?:[a-z]\w* ?){1,4}?) (?:by|per|for each|for every)\b"
)
_COSTS = re.compile(r"\bhow much (?:does|do|did|would|will) .* ([a-z]+)\W*$")  # how much does it cost
_STOPS = frozenset(
    ("of", "in", "on", "at", "for", "with", "that", "who", "whose", "which", "and", "or", "is", "are", "was", "were", "have", "has", "had",
     "do", "does", "did", "by", "from", "there", "than", "to", "per", "each")
)  # fmt: skip
_PROPER = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b(?! [A-Z])")
_VAGUE = re.compile(r"\b(best|worst|favou?rite|most important|top)\b")
# Nouns for what somebody says, or what happened: a text tells of them in other words.
_TOLD_WORDS = (
    "complaint praise opinion criticism thanks request mention suggestion problem issue feedback question remark comment defect fault "
    "error damage accident injury death event incident reason cause topic subject theme feeling mood tone sentiment emotion concern advice "
    "recommendation warning wrong name person people place thing fact detail number year date colour color object animal winner loser "
    "result"
)
TOLD = frozenset(map(stem, _TOLD_WORDS.split()))
# What is reckoned from several columns, and is not one of them.
_DERIVED = re.compile(r"\b(profits?|profitable|profitability|margins?|growth|churn|retention|conversion rates?)\b")
_SAID = frozenset(
    ("complaint", "praise", "criticism", "compliment", "suggestion", "apology", "mention", "remark")
)  # only texts hold them


def unknown_words(question: str, scope: Scope, near: Near | None) -> list[str]:
    """The words of a question that are near to no name, comment or value of the scope."""
    return [word for word, likeness in unsaid_words(question, scope, near) if likeness < NEAR]


def unsaid_words(question: str, scope: Scope, near: Near | None) -> list[tuple[str, float]]:
    """The words of a question that stand in no name, comment or value of the scope in any form, with how near they are to one.

    A word before a value in brackets, as in `the euro (EUR)`, says what the value does; a verb between two things that are there, as in
    `members borrowed more books`, is how their tables are linked.
    """
    low = question.lower()
    names = names_of(scope, read=False)
    known, dates = words_of(names), date_words(scope)
    numbers = any(f.type.startswith(NUMBERS) for source in scope.sources.values() for f in source.shown)
    values = {value.lower() for source in scope.sources.values() for _, value in source.matches}
    explained = {word for word, value in _ASIDE.findall(low) if value in values}
    columns = [word.lower() for word in re.findall(r"[A-Za-z]+", spaced(names))]
    others = sorted({word for word in columns if len(word) > 2})
    explained |= units_said(question, columns, numbers=numbers) | {w for i in implied(question, scope) for w in i.words}
    explained |= {word for word in re.findall(r"[a-z]+", low) if known & frozenset().union(*measures([word]))}
    explained |= {name.lower() for name in _PROPER.findall(question) if stem(name.lower()) in _in_values(scope)}
    roots = {root(word) for word in others}
    forms = [value for _, value in (match for source in scope.sources.values() for match in source.matches)]
    things = words_of(" ".join([*scope.sources, *values])) | numbers_called(scope)
    found: list[tuple[str, float]] = []
    for word in sorted({w.lower() for w in re.findall(r"[A-Za-z]{3,}", question)} - explained):
        stems = words_of(word)
        if not stems or stems & known or stems <= COMMON or word in COMMON or word in dates or root(word) in roots:
            continue
        if is_doing(word) or meant_columns(word) & known or any(is_another_form(word, value) for value in forms):
            continue
        if contrary(word) != word and words_of(contrary(word)) & known:
            continue
        if numbers and _SUPERLATIVE.fullmatch(word):  # the dearest: by a number
            continue
        relates = word.endswith("ed") or (word.endswith("s") and re.search(rf"\b(?:which \w+|who) {word}\b", low))
        next_ = re.search(_RELATION.format(word), low) if relates and not is_saying(word) else None
        if next_ and words_of(next_[1]) & things:
            continue
        found.append((word, _likeness(word, others, near)))
    return found


def _in_values(scope: Scope) -> set[str]:
    """The stems of those words of the question that stand in a value of some column."""
    return {
        stem(word.lower())
        for source in scope.sources.values()
        for f in source.shown
        if f.modality is Modality.STRUCTURED
        for word in source.words.get(f.name, ())
    }


def _likeness(word: str, others: Sequence[str], near: Near | None) -> float:
    """How near a word is to the nearest of some; 1 where it is unknown."""
    if near is None:
        return 1.0
    return 0.0 if not others or stem(word) in _SAID else max(near(word, others))


def tables_near(question: str, scope: Scope, near: Near | None) -> frozenset[str]:
    """The tables that the words of a question may mean: those that have one in a name or comment, else the nearest by likeness."""
    said = {name: _said(source) for name, source in scope.sources.items()}
    keys = {name: words_of(" ".join(f.name for f in source.shown)) for name, source in scope.sources.items()}
    columns = set().union(*keys.values())
    found: set[str] = set()
    for word in sorted({w.lower() for w in re.findall(r"[A-Za-z]{3,}", question)}):
        stems = words_of(word)
        stems = stems if stems & columns else stems | meant_among(word, columns)
        if not stems or (stems <= COMMON and word not in ("order", "orders")):
            continue
        mine = {name for name, words in said.items() if stems & words}
        mine = mine or {name for name, words in keys.items() if stems & words}
        mine = mine or {name for name, source in scope.sources.items() if stems & _in_values(scope.only([name]))}
        if not mine and near is not None and any(said.values()):
            every = sorted({w for words in said.values() for w in words})
            scores = near(word, every)
            top = max(scores)
            nearest = {w for w, score in zip(every, scores, strict=True) if score > top - 0.02}
            mine = {name for name, words in said.items() if nearest & words} if top >= NEAR else set()
        found |= mine
    return frozenset(found)


def _said(source: Source) -> set[str]:
    """The words of a table's names, comments and values in the question, but for those of keys, which point to another table."""
    columns = [f"{f.name} {f.description}" for f in source.shown if not is_key_name(f.name)]
    values = [value for _, value in source.matches]
    return words_of(" ".join([source.name, source.description, *columns, *values]))


def absent(question: str, unknown: Sequence[str], scope: Scope) -> list[str]:
    """The nouns that are counted or asked for, and that nothing of the database is about.

    Args:
        unknown: the words that are near to no name, comment or value.
    """
    fields = [(source, f) for source in scope.sources.values() for f in source.shown if f.is_unstructured]
    if any(f.modality is not Modality.TEXT or f.name not in source.words for source, f in fields):
        return []  # an image may show it, a long text may tell it
    told = {word for source, f in fields for word in (*source.words[f.name], *words_of(f.name))} | _in_values(scope)
    low = question.lower()
    found = [word for word in _DERIVED.findall(low) if stem(word) not in told | words_of(names_of(scope))]
    for match in [*_COUNTED.finditer(low), *_ASKED.finditer(low), *_COSTS.finditer(low), *_TOPIC.finditer(low)]:
        words = next(filter(None, match.groups()), "").split()
        end = next((i for i, word in enumerate(words) if word in _STOPS), len(words))
        noun = [
            word
            for word in words[:end]
            if word.isalpha() and not is_participle(word) and word not in COMMON and not words_of(word) <= COMMON
        ]
        if noun and all(word in unknown and stem(word) not in told and stem(word) not in TOLD for word in noun):
            found += noun
    return list(dict.fromkeys(found))


def unheard(question: str, scope: Scope) -> list[str]:
    """The proper names in a question that stand in no name, value or text of the database; none where not all of it was searched."""
    fields = [(source, f) for source in scope.sources.values() for f in source.shown]
    if any(f.modality not in (Modality.STRUCTURED, Modality.TEXT) for _, f in fields):
        return []  # an image may show it
    words = [(source, f) for source, f in fields if f.type == "VARCHAR" and source.row_count]
    if any(f.name not in source.words for source, f in words):
        return []
    heard = {word.lower() for source, f in words for word in source.words[f.name]}
    heard |= {
        word
        for source in scope.sources.values()
        for _, value in source.matches
        for word in re.findall(r"\w+", value.lower())
    }
    known = words_of(names_of(scope)) | COMMON | date_words(scope) | frozenset(day.lower() for day in (*MONTHS, *DAYS))
    return [
        name
        for name in dict.fromkeys(_PROPER.findall(question))
        if name.lower() not in heard | known
        and stem(name.lower()) not in heard | known
        and not any(is_another_form(name, value) for source in scope.sources.values() for _, value in source.matches)
    ]


def vague(question: str, scope: Scope, near: Near | None) -> tuple[str, list[str]]:
    """The best of something, where nothing of the question says by what, and what it may be by; ("", []) where all is said."""
    low = question.lower()
    said = _VAGUE.search(low)
    numbers = [
        (name, f.name)
        for name, source in scope.sources.items()
        for f in source.shown
        if f.type.startswith(NUMBERS) and not f.type.endswith("[]") and not is_key_name(f.name)
    ]
    behind = re.search(r"\b(?:best|worst)(?: \w+)?? (\w+)", low)  # the best grades
    if behind is not None and any(stem(behind[1]) in words_of(column) for _, column in numbers):
        return "", []
    if said is None or len(numbers) < 2 or re.search(r"\btop \d|\btop (two|three|four|five|ten)\b", low):
        return "", []
    tables = {word for name in scope.sources for word in words_of(name)}
    left = [w for w in re.findall(r"[a-z]{3,}", low) if (s := words_of(w)) and not s <= COMMON and not s <= tables]
    left = [
        w
        for w in left
        if not any(w in value.lower() for source in scope.sources.values() for _, value in source.matches)
    ]
    if left or re.search(r"\bby\b|\bat\b|\bpaid\b|\bsell", low):
        return "", []
    return said[1], [f"{table}.{spaced(column)}" for table, column in numbers]
