"""Which signs a question's numbers may stand behind: `fewer than 5` is no `> 5`.

Only where every comparison that the question makes is one of amounts; words of time and age (`before`, `older than`) may turn round what
is stored.
"""

from __future__ import annotations

import re

SIGNS = ("=", "<>", "<", "<=", ">", ">=")
_MORE = r"(?:more|greater|higher|larger|bigger|longer|taller|heavier|dearer|pricier|costlier)"
_LESS = r"(?:less|fewer|lower|smaller|shorter|lighter|cheaper)"
_WORDS = "a|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|hundred"
_FIGURE = rf"(?= (?:(?:usd|eur|gbp|about|some|an?) )?[$€£]?\d| (?:{_WORDS})\b)"
_PHRASES: tuple[tuple[str, str], ...] = (  # read in this order, each taken out of the question
    (rf"\b(?:no|not) {_MORE} than{_FIGURE}|\bat (?:the )?most{_FIGURE}|\bup to{_FIGURE}|\bmaximum of{_FIGURE}", "<="),
    (rf"\b(?:no|not) {_LESS} than{_FIGURE}|\bat (?:the )?least{_FIGURE}|\bminimum of{_FIGURE}", ">="),
    (rf"\b{_MORE} than{_FIGURE}|\b(?:over|above|exceed(?:s|ing|ed)?|upwards? of){_FIGURE}", ">"),
    (rf"\b{_LESS} than{_FIGURE}|\b(?:under|below|beneath){_FIGURE}", "<"),
    (r"\bor (?:more|above|higher|longer|over)\b|\d\+", ">="),
    (r"\bor (?:less|fewer|below|lower|shorter|under)\b", "<="),
)
_OPEN = re.compile(  # what may be compared either way
    r"\b(between|from|before|after|since|until|till|by|within|older|younger|newer|earlier|later|ago|last|past|faster|slower|sooner|"
    r"not|never|than (?:the|that|any|all|its|their|average|in)|other than|different)\b|n't\b|[<>]"
)


def signs(question: str, numbers: int) -> tuple[str, ...]:
    """The signs that may stand before a number: those that the question says; all where it says none, or what is open.

    Args:
        numbers: how many the question has; where they are more than it compares, one may stand behind `=`.

    >>> signs("Which clubs have fewer than 20 members?", 1), signs("How many rooms of 2023 had at least 3 beds under 80 euros?", 3)
    (('<',), ('=', '<', '>='))
    >>> signs("people older than 30", 1) == signs("orders of 2023", 1) == SIGNS
    True
    """
    low = " ".join(question.lower().split())
    said: list[str] = []
    for phrase, sign in _PHRASES:
        low, count = re.subn(phrase, " ", low)
        said += [sign] * count
    if not said or _OPEN.search(low):
        return SIGNS
    return tuple(sign for sign in SIGNS if sign in said or (sign == "=" and numbers > len(said)))
