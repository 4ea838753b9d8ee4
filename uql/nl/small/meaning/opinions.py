"""What a question asks of many texts together: what they say in all, or which of those that they are about is the friendliest.

In lines:

    SELECT summary('what people like about the hotel')                          one text over all rows, or each group
    GROUP BY hotel SELECT percent(ask('staff is friendly')) ORDER BY … LIMIT 1  the friendliest staff
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from uql.nl.small.word_forms import stem

SUMMARY = "summary"
_SUMMED = re.compile(
    r"\W*(?:please )?(?:can you |could you )?(?:summari[sz]e|sum up|(?:give|write|make|show)(?: me| us)? an? (?:short |brief |quick )?"
    r"(?:summary|overview|gist) of)\b"
)
_MAIN = re.compile(
    r"\W*what(?: are|'s| is| were| was)(?: the)? (?:(?!most|least)\w+ )?"
    r"(?:main|biggest|typical|usual|recurring|key|chief|general|overall|common|frequent) (\w+)"
)
_SAY = re.compile(
    r"\W*what (?:do|did)(?: \w+){1,3}? (?:say|think|like|dislike|love|hate|complain|praise|critici[sz]e|feel|want|mention|report|enjoy|"
    r"appreciate|recommend|suggest)\b"
)
_NEITHER = re.compile(r"\bneither\b.*\bnor\b")
_BUT_NOT = re.compile(
    r"\b(?:but|and) (?:(?:do|does|did|is|are|was|were|has|have|can|could)(?:n't| not)|not|never|without|nothing)\b|\bwithout \w+ing\b"
)
_EACH = re.compile(r"\b(?:each|every|per)\b")
_EST = re.compile(r"\b(?:(most|least) (?!of\b|recent)(\w+)|(best|worst)|(\w{3,}est))\b")
# rud, nic, rar; larg, brav, loos, simpl: without their last letter
_E_MISSING = re.compile(r"(?:(?:^|[^aeiou])[aeiou](?<!e(?=r))[^aeiouwxyl]|rg|[cvz]|(?<!s)s|[^aeioul]l)\Z")
_GOOD = {"best": "good", "worst": "bad"}


@dataclass(frozen=True, slots=True)
class Opinions:
    """What is asked of many texts together.

    Attributes:
        summed: "must": what they say in all; "may"; "no".
        ranked: those that the texts are about, by how many of their texts are so: the harshest, the most helpful.
        positive: adjectives without most and least, as the texts have them: harsh, helpful.
        superlative: the words that stood for them.
        least: those of which the fewest are so.
        denied: "neither": of two things none is said; "second": the first and not the second; "": other.
    """

    summed: str = "no"
    ranked: bool = False
    positive: tuple[str, ...] = ()
    superlative: frozenset[str] = frozenset()
    least: bool = False
    denied: str = ""


def opinions_in(low: str, unknown: Collection[str], names: Collection[str], *, measured: bool) -> Opinions:
    """What a question over texts asks of them together.

    Args:
        low: the question in small letters.
        unknown: its words that no name or value says.
        names: the stems of the words of names and values.
        measured: its superlatives are of a column.
    """
    denied = "neither" if _NEITHER.search(low) else "second" if _BUT_NOT.search(low) else ""
    if denied:
        return Opinions(denied=denied)
    main = _MAIN.match(low)
    if not _EACH.search(low) and (_SUMMED.match(low) or (main is not None and main[1] in unknown)):
        return Opinions("must")
    if measured or _EACH.search(low):
        return Opinions()
    positive: dict[str, None] = {}
    superlative: set[str] = set()
    for way, adjective, odd, est in _EST.findall(low):
        if adjective.endswith("s") or not {stem(adjective), stem(est)}.isdisjoint(names):
            continue
        positive[adjective or _GOOD.get(odd) or positive_of(est)] = None
        superlative |= {way or odd or est}
    return Opinions(
        "may" if _SAY.match(low) else "no",
        bool(positive),
        tuple(positive),
        frozenset(superlative),
        "least" in superlative,
    )


def positive_of(word: str) -> str:
    """An adjective from its superlative.

    >>> [positive_of(word) for word in ("friendliest", "harshest", "rudest", "saddest", "largest", "cleanest", "newest", "smallest")]
    ['friendly', 'harsh', 'rude', 'sad', 'large', 'clean', 'new', 'small']
    """
    short = word.removesuffix("est")
    if short.endswith("i"):
        return short[:-1] + "y"
    if len(short) > 3 and short[-1] == short[-2] and short[-1] not in "ls":
        return short[:-1]
    return short + "e" if _E_MISSING.search(short) else short
