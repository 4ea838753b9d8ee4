"""Is a text a statement ("the painting shows a horse") or the name of a value ("the name of the painter")?

By its words alone, for English. Where the words leave it open, it is the name of a value.
"""

from __future__ import annotations

import re

_HOLE = re.compile(r"\{[^{}]*\}")
_WORD = re.compile(r"[\w'’-]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DETERMINERS = _words(
    "a an the this that these those no some any every each all its his her their our my your both another more less"
)
_SUBJECTS = _words(
    "it he she they we i you there someone somebody everyone everybody nobody nothing something people one"
)
_PRONOUNS = _words("it he she they we")
_FINITE = _words(
    """is are was were isn't aren't wasn't weren't has had have hasn't doesn't don't didn't does did can cannot can't could will
    won't would should must may might"""
)
_VERBS = _words(
    """mentions contains describes shows says includes expresses depicts refers complains praises wants discusses criticizes
    criticises recommends suggests involves belongs speaks seems looks sounds deals agrees disagrees contradicts gives tells
    makes takes gets comes goes wears holds carries explains"""
)
_SUBORDINATE = _words("who whom whose that which what how where when why whether if because while as than")
_LINKS = _words(
    "of in on at by for with from to about and or under over after before between into through during without against"
)


def is_statement(text: str) -> bool:
    """Does the text say something that is true or false?

    >>> is_statement("the painting shows a horse"), is_statement("it is a refund"), is_statement("the customer asked to cancel")
    (True, True, True)
    >>> is_statement("the reason the customer is angry"), is_statement("the names of those who are ill"), is_statement("topic")
    (False, False, False)
    """
    words = _WORD.findall(_HOLE.sub("hole", text).replace("’", "'").lower())
    if words[:3] == ["hole", "and", "hole"]:
        words = ["they", *words[3:]]
    elif words[:1] == ["hole"]:
        words[0] = "it"
    if len(words) < 2:
        return False
    if words[0] in _SUBJECTS and words[1] not in _LINKS | _SUBORDINATE:
        return len(words) > 2 or words[0] in _PRONOUNS
    return any(_is_subject(words[:at]) and _is_verb(words, at) for at in range(1, len(words)))


def _is_subject(words: list[str]) -> bool:
    """Is it one noun phrase, without a clause in it? A second one begins behind a link alone: the name of the film."""
    if (
        any(word in _SUBORDINATE - {"that"} for word in words)
        or "that" in words[1:]
        or words[-1] in _DETERMINERS | _LINKS
    ):
        return False
    inner = [i for i in range(1, len(words)) if words[i] in _DETERMINERS | _SUBJECTS]
    return all(words[i - 1] in _LINKS | _DETERMINERS for i in inner)


def _is_verb(words: list[str], at: int) -> bool:
    """Is this word, behind a subject, the verb of a statement?"""
    word, after = words[at], words[at + 1 : at + 2]
    if not after:
        return False
    if word in _FINITE or word in _VERBS:
        return True
    ends = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    opens = after[0] in _DETERMINERS - {"that"} and at >= 2
    if ends and opens:  # the reasons the customer gives: a clause without a verb's object at its end
        return not words[-1].endswith("s") or len(words) - at <= 3
    return at >= 2 and word.endswith("ed") and (after[0] in _DETERMINERS or after[0] in ("to", "that"))
