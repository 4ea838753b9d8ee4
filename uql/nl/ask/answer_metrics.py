"""Measures of an answer in words against a reference: token F1, Hit, Coverage, Semantic Hit.

Each is between 0 and 1. Words are compared in lower case, without punctuation, numbers by their value. Sources: Meta Engine, section
5.1.3, for F1, Hit and Semantic Hit (equations 3 to 7); its Coverage has a name and no equation, and is read here as the recall of
equation 4. SQuAD for leaving articles out.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uql.nl.ask.context import AskContext

_ARTICLES = frozenset({"a", "an", "the"})
_TOKEN = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?|[^\W\d_]+")


def tokens(text: str) -> list[str]:
    """The words and numbers of a text without articles, as equal texts are compared.

    >>> tokens("The Heat won 1,250.0 games!")
    ['heat', 'won', '1250', 'games']
    """
    return [token for token in _all_tokens(text) if token not in _ARTICLES]


def _all_tokens(text: str) -> list[str]:
    words = []
    for token in _TOKEN.findall(text.casefold()):
        if token[0].isdigit() or (token[0] in "+-" and len(token) > 1):
            words.append(f"{float(token.replace(',', '')):.10g}")
        else:
            words.append(token)
    return words


def _bags(answer: str, reference: str) -> tuple[int, int, int]:
    """The multisets T(ŷ) and T(y): how many tokens they have in common (equation 3), and how many each has."""
    answer_tokens, reference_tokens = Counter(_all_tokens(answer)), Counter(_all_tokens(reference))
    return (answer_tokens & reference_tokens).total(), answer_tokens.total(), reference_tokens.total()


def token_f1(answer: str, reference: str) -> float:
    """F1 of the words said, as a multiset (equation 5); 1 where both are empty.

    >>> token_f1("Miami Heat", "the Heat")
    0.5
    """
    both, answer_size, reference_size = _bags(answer, reference)
    return 2 * both / (answer_size + reference_size) if answer_size + reference_size else 1.0


def hit(answer: str, reference: str) -> float:
    """1 where what was said shares a word with the reference (equation 6).

    >>> hit("Heat of Miami", "Miami Heat"), hit("the Suns", "Miami Heat")
    (1.0, 0.0)
    """
    return float(_bags(answer, reference)[0] > 0)


def contains(answer: str, reference: str) -> float:
    """1 where the reference stands in what was said, word for word without articles.

    >>> contains("It was the Miami Heat, by ten", "Miami Heat"), contains("Heat of Miami", "Miami Heat")
    (1.0, 0.0)
    """
    answer_tokens, reference_tokens = tokens(answer), tokens(reference)
    if not reference_tokens:
        return float(not answer_tokens)
    return float(
        any(
            answer_tokens[i : i + len(reference_tokens)] == reference_tokens
            for i in range(len(answer_tokens) - len(reference_tokens) + 1)
        )
    )


def coverage(answer: str, reference: str) -> float:
    """The share of the reference's words that were said: the recall of equation 4.

    >>> coverage("Heat of Miami", "Miami Heat")
    1.0
    """
    both, _, reference_size = _bags(answer, reference)
    return both / reference_size if reference_size else 1.0


async def semantic_hit(ctx: AskContext | None, question: str, answer: str, reference: str) -> float:
    """1 where a judge finds that what was said answers as the reference does (equation 7).

    Where the reference stands in the answer word for word, or both have the same words, no judge is asked; without a judge all else is 0.

    Args:
        ctx: whose planning model is the judge; one call, none where the words settle it.
    """
    if not tokens(answer):
        return 0.0
    if contains(answer, reference) or sorted(tokens(answer)) == sorted(tokens(reference)):
        return 1.0
    if ctx is None:
        return 0.0
    from uql.llm.prompts.json_schema import closed
    from uql.nl.prompts import BOOLEAN, Wording

    wording = Wording(
        "judge",
        "",
        "You judge answers. Other words for the same thing are right; a missing, wrong or contradicting fact is not.",
        f"Question: {question}\nReference answer: {reference}\nAnswer given: {answer}\n"
        "Does the answer given say the same as the reference answer to this question?",
        closed({"same": BOOLEAN}),
        max_tokens=20,
    )
    return float(bool((await ctx.say(wording)).get("same")))
