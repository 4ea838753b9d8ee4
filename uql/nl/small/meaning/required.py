"""The values and flags that a question names, which its query has to hold: the genre of `jazz albums`, the flag of `remote jobs`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from uql.nl.schema.discover import STOP, words_of
from uql.nl.schema.scope import Scope
from uql.nl.small.meaning.grounding import NEAR, Near
from uql.nl.small.meaning.likeness import COMMON
from uql.nl.small.meaning.naming import Place
from uql.nl.small.word_forms import ADJECTIVES, contrary, is_another_form, is_doing, root

_TOLD = (
    r"\b(?:(?:dis)?lik(?:e|es|ed)|lov(?:e|es|ed)|hate[sd]?|enjoy(?:s|ed)?|prais\w+|critici\w+|mention\w*|(?:ask\w*|call\w*) for"
    r"|complain\w* (?:about|of)|about|regard\w*|concern\w*|discuss\w*|request\w*)(?: an?| the| any)?"
)


@dataclass(frozen=True, slots=True)
class Required:
    """A value, and the columns that hold it."""

    value: str
    places: frozenset[Place]


def required_values(question: str, scope: Scope) -> tuple[Required, ...]:
    """The values that a question names and that mean nothing else: no word of a name, no part of a longer one.

    None of a column of which it names two: those it compares, or groups by.
    """
    words = re.findall(r"[A-Za-z]+", question)
    names = words_of(" ".join(part for name, s in scope.sources.items() for part in (name, *(f.name for f in s.shown))))
    reads = any(f.is_unstructured for source in scope.sources.values() for f in source.shown)
    held: dict[str, set[Place]] = {}
    for table, source in scope.sources.items():
        for column, value in source.matches:
            held.setdefault(value, set()).add((table, column))
    whole = {
        value: places
        for value, places in held.items()
        if not any(re.search(rf"\b{re.escape(value)}\b", other, re.IGNORECASE) for other in held if other != value)
    }
    several = {place for place in set().union(*whole.values()) if sum(place in places for places in whole.values()) > 1}
    found = []
    for value, places in whole.items():
        said = words_of(value)
        is_short = len(value) == 1 or any(map(str.isdigit, value))  # room B, form 7A
        is_sure = is_short or (said and not said <= names | COMMON) or any(is_another_form(w, value) for w in words)
        is_sure = is_sure and _stands_together(value, question)
        is_sure = is_sure and not _is_qualified(value, question, names)
        is_sure = is_sure and not (reads and _is_told_of(value, question))
        if is_sure and not places & several:
            found.append(Required(value, frozenset(places)))
    return tuple(found)


def _stands_together(value: str, question: str) -> bool:
    """Do the words of a value that are said stand side by side in the question, in some form?"""
    parts = re.findall(r"\w+", value.lower())
    words = re.findall(r"\w+", question.lower())
    at = [next((i for i, word in enumerate(words) if word[:4] == part[:4]), -1) for part in parts]
    there = sorted(i for i in at if i >= 0)
    return not there or there[-1] - there[0] < len(parts) + 1


def told_of(question: str, scope: Scope) -> set[str]:
    """The words of values that are what somebody says: a text may be asked for them too."""
    values = {value for source in scope.sources.values() for _, value in source.matches}
    told = (_said_so(value, question) for value in values if _is_told_of(value, question))
    return {word for phrase in told for word in phrase.split()}


def _is_told_of(value: str, question: str) -> bool:
    """Is a value the common noun of what somebody says: asks for a meeting, complains about the merger?"""
    return _said_so(value, question).islower()


def _said_so(value: str, question: str) -> str:
    """A value behind a verb of saying, as it stands in the question; "" where it does not."""
    found = re.search(rf"{_TOLD} ({re.escape(value)}(?:e?s)?)\b", question, re.IGNORECASE)
    return found[1] if found is not None else ""


def _is_qualified(value: str, question: str, names: set[str]) -> bool:
    """Does a word before the value make another thing of it: an assistant professor is no professor?"""
    found = re.search(rf"(\w+) {re.escape(value)}", question, re.IGNORECASE)
    before = found[1].lower() if found is not None else "the"
    told = before in STOP | COMMON | ADJECTIVES or before.endswith("est") or is_doing(before) or len(before) < 3
    return not (told or words_of(before) <= names | COMMON)


def flags(
    question: str, scope: Scope, near: Near | None
) -> tuple[frozenset[Place], frozenset[Place], frozenset[Place]]:
    """The columns of booleans that a question may mean, those that it names, and of these those it names by their contrary."""
    words = {w.lower() for w in re.findall(r"[A-Za-z]{3,}", question)}
    stems, roots = words_of(question), set(map(root, words))
    reads = any(f.is_unstructured for source in scope.sources.values() for f in source.shown)
    turned = {contrary(word) for word in words} - words
    meant, named, denied = set(), set(), set()
    for table, source in scope.sources.items():
        for f in source.shown:
            if f.type != "BOOLEAN":
                continue
            mine = words_of(f.name) - COMMON
            is_told = reads and any(_is_told_of(word, question) for word in words if words_of(word) & mine)
            if is_told:
                meant.add((table, f.name))
            elif mine & stems or {root(w) for w in mine} & roots:
                named.add((table, f.name))
            elif turned & mine or {root(word) for word in turned} & {root(word) for word in mine}:
                denied.add((table, f.name))
            elif near is None or any(
                max(near(w, sorted(mine)), default=0.0) >= NEAR for w in sorted(words) if mine and w not in COMMON
            ):
                meant.add((table, f.name))
    return frozenset(meant | named | denied), frozenset(named | denied), frozenset(denied)
