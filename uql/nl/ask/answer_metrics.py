"""Measures of an answer in words against a reference: token F1, exact match, Hit, Coverage, F1 of lists, Semantic Hit.

Each is between 0 and 1. Words are compared in lower case, without punctuation and articles, numbers by their value. Sources: SQuAD (F1,
exact match), Meta Engine (Hit, Coverage, Semantic Hit).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uql.nl.ask.context import AskContext

_ARTICLES = frozenset({"a", "an", "the"})
_TOKEN = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?|[^\W\d_]+")


def tokens(text: str) -> list[str]:
    """The words and numbers of a text as they are compared.

    >>> tokens("The Heat won 1,250.0 games!")
    ['heat', 'won', '1250', 'games']
    """
    found = []
    for token in _TOKEN.findall(text.casefold()):
        if token[0].isdigit() or (token[0] in "+-" and len(token) > 1):
            found.append(f"{float(token.replace(',', '')):.10g}")
        elif token not in _ARTICLES:
            found.append(token)
    return found


def token_f1(said: str, reference: str) -> float:
    """F1 of the words said, as a multiset; 1 where both are empty.

    >>> token_f1("Miami Heat", "the Heat")
    0.6666666666666666
    """
    found, wanted = Counter(tokens(said)), Counter(tokens(reference))
    if not found and not wanted:
        return 1.0
    both = sum((found & wanted).values())
    return 2 * both / (found.total() + wanted.total())


def exact(said: str, reference: str) -> float:
    """1 where the words are the same, in the same order.

    >>> exact("The 12 games.", "12.0 games")
    1.0
    """
    return float(tokens(said) == tokens(reference))


def hit(said: str, reference: str) -> float:
    """1 where the reference stands in what was said, word for word.

    >>> hit("It was the Miami Heat, by ten", "Miami Heat"), hit("Heat of Miami", "Miami Heat")
    (1.0, 0.0)
    """
    found, wanted = tokens(said), tokens(reference)
    if not wanted:
        return float(not found)
    return float(any(found[i : i + len(wanted)] == wanted for i in range(len(found) - len(wanted) + 1)))


def coverage(said: str, reference: str) -> float:
    """The share of the reference's words that were said.

    >>> coverage("Heat of Miami", "Miami Heat")
    1.0
    """
    found, wanted = Counter(tokens(said)), Counter(tokens(reference))
    return sum((found & wanted).values()) / wanted.total() if wanted else 1.0


def list_f1(said: Sequence[str], reference: Sequence[str]) -> float:
    """F1 of two lists as multisets of items, each compared word for word.

    >>> list_f1(["Rome", "the Hague"], ["Hague", "Paris"])
    0.5
    """
    found, wanted = (Counter(" ".join(tokens(item)) for item in items) for items in (said, reference))
    if not found and not wanted:
        return 1.0
    return 2 * sum((found & wanted).values()) / (found.total() + wanted.total())


async def semantic_hit(ctx: AskContext | None, question: str, said: str, reference: str) -> float:
    """1 where a judge finds that what was said answers as the reference does; where there is no judge, Hit or equal lists of words.

    Args:
        ctx: whose planning model is the judge; one call, none where the words settle it.
    """
    if not tokens(said):
        return 0.0
    if hit(said, reference) or sorted(tokens(said)) == sorted(tokens(reference)):
        return 1.0
    if ctx is None:
        return 0.0
    from uql.nl.prompts import BOOLEAN, obj

    reply = await ctx.ask(
        f"Question: {question}\nReference answer: {reference}\nAnswer given: {said}\n"
        "Does the answer given say the same as the reference answer to this question?",
        obj({"same": BOOLEAN}),
        system="You judge answers. Other words for the same thing are right; a missing, wrong or contradicting fact is not.",
        task="judge",
        max_tokens=20,
    )
    return float(bool(reply.get("same")))
