"""Groups that only the texts tell: the most frequent destination, reviews by the genre of the film, what kinds of problems there are.

In lines:

    GROUP BY ask('the destination that is asked for') SELECT count(*) ORDER BY count(*) DESC LIMIT 1
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from uql.nl.small.word_forms import singular

_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_N = rf"(?:(?P<n>\d{{1,3}}|{'|'.join(_NUMBERS)}) )?"
_SAID = "mentioned|discussed|requested|reported|cited|named|used|asked|shown|seen"
_ADVERB = "(?:often |frequently |commonly )?"
_FREQUENT = rf"(?:(?P<way>most|least) (?:common|frequent|{_ADVERB}(?:{_SAID})|typical|prevalent|widespread)|commonest)"
_OFTEN = r"(?P<way>most|least) (?:often|frequently|commonly)"
_OF = r"(?P<of> (?:of|about|with|in|for|from) .*)?"
_BY = "(?:(?<!ed )(?<!en )by|(?<=grouped )by|per|of each|for each|in each|for every)"
_KINDS = frozenset(("kind", "kinds", "type", "types", "sort", "sorts", "category", "categories"))
_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:.*?\b)?{_N}{_FREQUENT} {_N.replace('n>', 'm>')}(?P<noun>[a-z]+){_OF}",
        rf"(?:which|what) (?P<noun>[a-z]+) (?P<aux>do|does|did|is|are|was|were)? ?(?P<verb>.+?) {_OFTEN}(?P<rest> .*)?",
        rf"what (?P<aux>do|does|did) (?P<what>.+?) {_OFTEN}(?P<rest> .*)?",
        rf"(?:.*?\b)?top (?P<n>\d{{1,3}}|{'|'.join(_NUMBERS)}) (?P<noun>[a-z]+){_OF}",
        r"(?:what|which) (?:are the )?(?P<kind>kinds?|types?|sorts?|categor(?:y|ies)) of (?P<noun>[a-z]+)(?P<rest> .*)?",
        r"(?:.*\b)?distribution of (?:the )?(?P<noun>[a-z]+)(?P<of> of the [a-z]+)?(?: .*)?",
        rf"(?=.*\b(?:count|how many|number|share|group|break|split|tally|plot|chart)\b).*\b{_BY}"
        r" (?:the )?(?P<noun>[a-z]+)(?P<of> of (?:the )?[a-z]+)?(?:,? and (?:count|plot|show|tell|sort) .*)?",
    )
)


@dataclass(frozen=True, slots=True)
class Kinds:
    """Groups that a model finds.

    Attributes:
        noun: what they are: destination.
        text: what is asked of each row.
        first: how many are wanted, the most frequent first; 0: all.
        least: the least frequent first.
    """

    noun: str
    text: str
    first: int = 0
    least: bool = False


def kinds_in(low: str, unknown: Collection[str]) -> Kinds | None:
    """The groups of texts that a question asks for by what no name or value says; None: it asks for none.

    Args:
        low: the question in small letters.
        unknown: its words that no name or value says.

    >>> kinds_in("which destination is asked for most often?", {"destination"})
    Kinds(noun='destination', text='the destination that is asked for', first=1, least=False)
    >>> kinds_in("what are the five most common topics?", {"topics"})
    Kinds(noun='topic', text='the topic', first=5, least=False)
    >>> kinds_in("group the reviews by genre of the film and count them.", {"genre"})
    Kinds(noun='genre', text='the genre of the film', first=0, least=False)
    >>> kinds_in("how many reviews are there per month?", set())
    """
    low = " ".join(low.split()).rstrip(" ?.!")
    for pattern in _PATTERNS:
        found = pattern.fullmatch(low)
        if found is None:
            continue
        parts = {name: value for name, value in found.groupdict().items() if value}
        noun = parts.get("noun", "")
        if noun in _KINDS and "of" in parts:
            noun = parts["of"].split()[-1]
        if noun not in unknown and "what" not in parts:
            continue
        return _kinds(parts, noun)
    return None


def _kinds(parts: dict[str, str], noun: str) -> Kinds:
    one, rest = singular(parts.get("noun", noun)), parts.get("rest", "")
    number = parts.get("n") or parts.get("m") or ""
    first = 2 + _NUMBERS.index(number) if number in _NUMBERS else int(number or 0)
    least = parts.get("way") == "least"
    if "what" in parts:
        return Kinds("answer", f"what {parts['what']}{rest}", first, least)
    if "verb" in parts:
        helps = f" {parts['aux']}" if parts.get("aux", "do") not in ("do", "does", "did") else ""
        return Kinds(one, f"the {one} that{helps} {parts['verb']}{rest}", 1 if one == noun else 0, least)
    if "kind" in parts:
        return Kinds("kind", f"the kind of {one}")
    alone = "way" in parts or "commonest" in parts
    return Kinds(one, f"the {one}{parts.get('of', '')}", first or (1 if alone and one == noun else 0), least)
