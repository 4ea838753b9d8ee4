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
_PEOPLE = _words("someone somebody everyone everybody nobody people you there i")
_POINTERS = _words("this that these those both")
_BE = _words("is are was were isn't aren't wasn't weren't")
_FINITE = _BE | _words(
    """has had have hasn't doesn't don't didn't does did can cannot can't could will won't would should must may might"""
)
_OPENING = _BE | _words("has have had hasn't does do did doesn't didn't")  # behind these no name of a value begins
_VERBS_ALONE = _words(
    """contains describes says includes expresses depicts refers complains criticizes criticises recommends suggests involves belongs
    speaks seems agrees disagrees contradicts tells explains asks thinks knows believes likes dislikes hates loves requires warns"""
)  # no name of a thing
_VERBS = _VERBS_ALONE | _words(
    "mentions shows praises wants discusses looks sounds deals gives makes takes gets comes goes wears holds carries"
)
_WANTED_TO = _words("asked wanted tried refused failed decided hoped threatened agreed")
_RELATIVE_ENDS = _words(
    "has had have did does made got gave took bought paid left lost won saw said use like want need"
)
_SUBORDINATE = _words("who whom whose that which what how where when why whether if because while as than")
_QUANTITIES = _words("how many much number numbers amount score rating rate scale percent percentage years")
_TIMES = _words("day week month year night time morning evening hour season quarter")
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
    elif words[:1] and words[0] in ("it's", "that's", "there's", "he's", "she's"):
        words[:1] = [words[0][:-2], "is"]
    elif words[:2] == ["no", "one"]:
        words[:2] = ["nobody"]
    if len(words) < 2:
        return False
    if words[0] in _SUBJECTS and words[1] not in _LINKS | _SUBORDINATE:
        return _is_clause(words)
    if words[0] in _POINTERS and words[1] in _BE:
        return len(words) > 2
    if words[0] in _OPENING or words[0] in _VERBS_ALONE:
        return words[1] not in _SUBORDINATE or words[0] in _VERBS_ALONE
    if words[0] in _VERBS and words[1] in ("a", "an", "no", "any"):
        return True
    return any(_is_subject(words[:at], words[at]) and _is_verb(words, at) for at in range(1, len(words)))


def names_quantity(text: str) -> bool:
    """Does a statement that is cast to a number speak of that number?

    >>> names_quantity("the review gives a rating from 1 to 5"), names_quantity("it says how many came"), names_quantity("it is good")
    (True, True, False)
    """
    words = _WORD.findall(text.lower())
    return any(word in _QUANTITIES or word[0].isdigit() for word in words)


def _is_clause(words: list[str]) -> bool:
    """Does a verb come behind it, someone, people …? (something positive, one reason, everyone involved: no)"""
    subject, second = words[:2]
    if subject in _PRONOUNS:
        return True
    if len(words) == 2:
        return False
    if subject in _PEOPLE:
        return second not in _DETERMINERS and (
            not second.endswith(("ed", "ible", "able", "ing")) or _is_verb(words, 1, 1)
        )
    return second in _FINITE or second in _VERBS


def _is_subject(words: list[str], verb: str) -> bool:
    """Is it one noun phrase, without a clause in it? A second one begins behind a link alone: the name of the film."""
    if (
        any(word in _SUBORDINATE - {"that"} for word in words)
        or "that" in words[1:]
        or words[-1] in _DETERMINERS | _LINKS
    ):
        return False
    inner = [i for i in range(1, len(words)) if words[i] in _DETERMINERS | _SUBJECTS]
    if words[-1] == "hole" and len(words) > 1 and words[-2].endswith("s") and verb not in _BE:
        return False  # the points {name} had
    return all(words[i - 1] in _LINKS | _DETERMINERS for i in inner)


def _is_verb(words: list[str], at: int, least: int = 2) -> bool:
    """Is this word, behind a subject, the verb of a statement?

    Args:
        words: of the text.
        at: the place of the word.
        least: the words that a subject has at least, before a verb that may be a noun or a participle.
    """
    word, rest = words[at], words[at + 1 :]
    if rest[2:] == ["hole"]:
        del rest[2:]  # the film {f.plot}
    if not rest:
        return at >= least and word in ("complains", "agrees", "disagrees")
    if word in _FINITE:
        return True
    if words[at - 1].endswith("'s"):
        return False  # the player's points this season
    if word in _VERBS_ALONE:
        return True
    opens = rest[0] in _DETERMINERS - {"that"}
    # the side effects the patient had: a clause about a noun, which ends in its verb
    is_relative = opens and len(rest) > 2 and (rest[-1] in _RELATIVE_ENDS or rest[-1].endswith(("s", "ed")))
    if word in _VERBS:
        return not is_relative
    ends = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    opens = opens and rest[0] not in ("each", "every") and rest[-1] not in _TIMES
    if ends and opens and at >= least:
        return len(rest) == 2 or (rest[0] in ("a", "an", "no", "another") and not is_relative)
    if not word.endswith("ed") or at < least:
        return False
    if rest[0] == "to":
        return word in _WANTED_TO and not words[at - 1].endswith("s")
    return opens or rest[0] == "that"
