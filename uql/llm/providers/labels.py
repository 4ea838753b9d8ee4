"""Probabilities of labels from those of tokens."""

from __future__ import annotations

from collections.abc import Sequence


def yes_no(top: dict[str, float]) -> tuple[float, float]:
    """The mass on the spellings of yes and of no.

    >>> yes_no({"Yes": 0.5, " yes": 0.25, "No": 0.125, "Now": 0.1})
    (0.75, 0.125)
    """
    words = {"yes": 0.0, "no": 0.0}
    for token, share in top.items():
        word = token.strip().lower()
        if word in words:
            words[word] += share
    return words["yes"], words["no"]


def label_masses(steps: Sequence[dict[str, float]], labels: Sequence[str], decoded: Sequence[str]) -> list[float]:
    """The probability of each label, from the likely tokens at each step of one decoded label.

    At the first step every token gives its mass to the labels that begin with it; what several labels share is told apart at
    the next step where it was the token decoded, and is shared equally where it was not.

    Args:
        steps: for each decoded position, token → probability given what was decoded before.
        decoded: the tokens decoded; empty where only the first step is to be read.
    >>> label_masses([{"red": 0.5, "re": 0.25, "blue": 0.25}], ["red", "reach", "blue"], [])
    [0.625, 0.125, 0.25]
    """
    masses = [0.0] * len(labels)
    prefix, reach = "", 1.0
    for n, step in enumerate(steps):
        went_on = decoded[n] if n < len(decoded) else None
        next_reach = 0.0
        for token, share in step.items():
            text = prefix + (token.lstrip() if not prefix else token)
            if not text.strip() or text == prefix:
                continue
            fits = [i for i, label in enumerate(labels) if label.casefold().startswith(text.casefold())]
            if not fits:
                continue
            if token == went_on and len(fits) > 1 and n + 1 < len(steps):
                next_reach += reach * share
                continue
            for i in fits:
                masses[i] += reach * share / len(fits)
        if went_on is None or not next_reach:
            break
        prefix += went_on.lstrip() if not prefix else went_on
        reach = next_reach
    return masses
