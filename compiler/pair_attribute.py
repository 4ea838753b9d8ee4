"""What a condition on two texts says by its words: that one attribute of both is the same, or that it is not."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

_RULES = {
    "same": "same identical equal matching",
    "different": "different differing unequal distinct",
    "opposite": "opposite opposing contrary contrasting",
}
_RULE_OF = {word: rule for rule, words in _RULES.items() for word in words.split()}
_WORD = "|".join(_RULE_OF)
_WHAT = r"(?P<what>[^\W\d_][\w'-]*(?: [\w'-]+){0,4}?)"
_HOLE = re.compile(r"\{[^{}]*\}")
_AFTER = re.compile(rf"(?P<before>.*)\b(?P<word>{_WORD}) {_WHAT}(?: (?:as|to|from|than)\b.*)?", re.IGNORECASE)
_BEFORE = re.compile(
    rf"(?:the )?{_WHAT} of (?P<before>.*)\b(?:is|are)(?P<not> not)?(?: the)? (?P<word>{_WORD})", re.IGNORECASE
)
_NOT = re.compile(r"\b(?:not|no|never|hardly|cannot)\b|n't\b", re.IGNORECASE)
_MORE = re.compile(r"\b(?:and|or|but|nor|if|unless|while)\b|[,;:]", re.IGNORECASE)  # says more than the one comparison
_SIDES = re.compile(r"\b(?:it|first|one|former)(?: \w+)? and (?:the )?(?:it|second|other|latter)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AttributeComparison:
    """The attribute, and the rule: same, different, or opposite, which listed pairs of values tell."""

    attribute: str
    rule: str

    def matches(self, values: Sequence[str], listed: Collection[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """The pairs of values (left, right) for which the condition holds. `listed`: those that a model named for it.

        >>> sorted(AttributeComparison("mood", "different").matches(("good", "bad"), ()))
        [('bad', 'good'), ('good', 'bad')]
        """
        equal = self.rule == "same"
        pairs = {(a, b) for a, b in listed if a != b}
        if self.rule == "opposite" and pairs:
            return frozenset(pairs | {(b, a) for a, b in pairs})
        return frozenset((a, b) for a in values for b in values if (a == b) == equal)


def attribute_comparison(condition: str) -> AttributeComparison | None:
    """The comparison that a condition on two texts is by its words; None where it is another, or says more than that.

    >>> attribute_comparison("the tweets {a.text} and {b.text} have the same sentiment")
    AttributeComparison(attribute='sentiment', rule='same')
    >>> attribute_comparison("the topic of {a.text} and {b.text} is not the same")
    AttributeComparison(attribute='topic', rule='different')
    >>> attribute_comparison("{a.text} and {b.text} describe the same person, and one is angry") is None
    True
    """
    text = " ".join(_HOLE.sub("it", condition).split()).rstrip(".?! ")
    match = _AFTER.fullmatch(text) or _BEFORE.fullmatch(text)
    if match is None:
        return None
    before = _SIDES.sub("both", match["before"], count=1)
    attribute = match["what"]
    if _MORE.search(before) or _MORE.search(attribute) or _NOT.search(attribute):
        return None
    rule = _RULE_OF[match["word"].lower()]
    if match.groupdict().get("not") or _NOT.search(before):
        rule = {"same": "different", "different": "same"}.get(rule, "")
    return AttributeComparison(attribute, rule) if rule else None
