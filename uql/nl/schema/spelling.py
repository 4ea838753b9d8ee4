"""Misspelt names and values of a question, where nothing else can be meant: Germny, custmers, Gremany.

A word that stands in no name, value or text of the database would be refused. It is read as a name or value of it that has one letter
more, one less, or two changed places; never with another letter, which makes another name of it (Hansen, Hanson).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from uql.nl.schema.name_words import singular, spaced, stem
from uql.nl.schema.scope import Source

NAME_CHARS, WORD_CHARS = 5, 7  # the shortest that may be misspelt: a proper name, any other word
_WORD = re.compile(r"[^\W\d_]+")


def well_spelt(question: str, sources: Sequence[Source], usual: Iterable[str]) -> str:
    """A question with its misspelt words as the tables have them.

    Args:
        sources: with their values and the words of the question that stand in them.
        usual: words that every question may have.
    """
    there = {w for s in sources for value in _values(s) for w in _WORD.findall(value)}
    names = {
        w
        for s in sources
        for name in (s.name, *(f.name for f in s.visible_fields))
        for w in _WORD.findall(spaced(name).lower())
    }
    forms = {form for word in {*there, *names, *usual} for form in _forms(word)}
    forms |= {form for s in sources for words in s.words.values() for word in words for form in _forms(word)}
    long = {w for w in {*there, *names} if len(w) >= NAME_CHARS}

    def here(match: re.Match[str]) -> str:
        word = match[0]
        is_name = word[0].isupper() and match.start() > 0
        if len(word) < (NAME_CHARS if is_name else WORD_CHARS) or forms & _forms(word):
            return word
        plural = word.lower().endswith("s") and singular(word.lower()) != word.lower()
        near = sorted(
            {
                w
                for w in long
                if is_misspelt(word.lower(), w.lower()) or (plural and is_misspelt(singular(word.lower()), w.lower()))
            }
        )
        return word if len({w.lower() for w in near}) != 1 else near[0]

    return _WORD.sub(here, question)


def _values(source: Source) -> Iterable[str]:
    return (value for values in source.values.values() for value in values)


def _forms(word: str) -> set[str]:
    return {word.lower(), stem(word.lower()), singular(word.lower())}


def is_misspelt(word: str, right: str) -> bool:
    """Is a word another with one letter more or less before its end, or two that stand side by side changed?

    >>> is_misspelt("germny", "germany"), is_misspelt("gremany", "germany"), is_misspelt("hanson", "hansen"), is_misspelt("fire", "first")
    (True, True, False, False)
    >>> is_misspelt("complain", "complaint")
    False
    """
    if abs(len(word) - len(right)) == 1:
        short, long = sorted((word, right), key=len)
        return any(long[:i] + long[i + 1 :] == short for i in range(len(long) - 1))
    same = len(word) == len(right) and word != right
    return same and any(word[:i] + word[i + 1] + word[i] + word[i + 2 :] == right for i in range(len(word) - 1))
