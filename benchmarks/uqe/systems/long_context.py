"""A sample of rows in one long prompt, and one reply for all: prompts in the form of the paper's appendix D.1.

A label table reads no prompt. For it this is the ceiling of the approach: a reader that judges each row as the label table does and
never miscounts. Any other model gets the prompt, and the reply must be a number or a list of indices. A request that carries r rows
is r calls, as everywhere (DECISIONS.md §1).
"""

from __future__ import annotations

import re

import numpy as np

from uql.base.errors import ModelReplyError
from uql.benchmarks.runner.suite import is_simulated
from uql.benchmarks.uqe.data import Condition, Grouping
from uql.benchmarks.uqe.model import Model
from uql.benchmarks.uqe.systems.uniform import TAXONOMY_ROWS, named

CONTEXT_TOKENS = 120_000  # of the models that the paper puts rows into
LOCAL_TOKENS = 3_000
PROMPT_TOKENS = 300
WORD = {"imdb": "review", "abcd": "dialog", "airdialogue": "dialog", "sgd": "dialog", "clevr": "image"}
KIND = {"imdb": "movie reviews", "clevr": "images"}


def count_prompt(condition: Condition, texts: list[str]) -> str:
    """Asks how many of the rows meet the condition, for one number alone."""
    word = WORD[condition.source]
    head = f"Read the following {KIND.get(condition.source, 'dialogs')} and decide of each whether {condition.text}. "
    return head + (
        f"In the end, please output a single number only: the total number of {word}s of which this holds.\n\n"
        f"Below are the {word}s:\n\n{_numbered(word, texts)}"
    )


def find_prompt(condition: Condition, texts: list[str]) -> str:
    """Asks for the indices of the rows that meet the condition."""
    word = WORD[condition.source]
    head = f"Read the following {KIND.get(condition.source, 'dialogs')} and find those of which this holds: {condition.text}. "
    return head + (
        f"In the end, please output a list of indices only, in the format of [{word}_3, {word}_7, ...]\n\n"
        f"Below are the {word}s:\n\n{_numbered(word, texts)}"
    )


def _numbered(word: str, texts: list[str]) -> str:
    return "\n\n".join(f"**{word}_{i}**:\n{text}" for i, text in enumerate(texts))


def fitting(model: Model, budget: int, rng: np.random.Generator) -> list[int]:
    """Random rows, at most B and as many as fit the context."""
    room = (CONTEXT_TOKENS if is_simulated(model.name) else LOCAL_TOKENS) - PROMPT_TOKENS
    chosen: list[int] = []
    for row in rng.permutation(model.world.n)[:budget].tolist():
        room -= 8 + len(model.world.shown[row]) // 4
        if room < 0:
            break
        chosen.append(row)
    return chosen


def count(model: Model, condition: Condition, budget: int, rng: np.random.Generator) -> float:
    """N times the share that the model says of the sample."""
    rows = fitting(model, budget, rng)
    if is_simulated(model.name):
        yes = sum(bool(answer) for answer in model.is_so(condition.text, rows))
    else:
        reply = str(model.write(count_prompt(condition, [model.world.shown[i] for i in rows])))
        model.calls = len(rows)
        numbers = re.findall(r"\d+", reply)
        if not numbers or int(numbers[-1]) > len(rows):
            raise ModelReplyError(f"asked for a number up to {len(rows)}, got {reply[:80]!r}")
        yes = int(numbers[-1])
    return model.world.n * yes / len(rows)


def find(model: Model, condition: Condition, budget: int, rng: np.random.Generator) -> list[int]:
    """The rows of the sample that the model names."""
    rows = fitting(model, budget, rng)
    if is_simulated(model.name):
        return [row for row, answer in zip(rows, model.is_so(condition.text, rows), strict=True) if answer]
    reply = str(model.write(find_prompt(condition, [model.world.shown[i] for i in rows])))
    model.calls = len(rows)
    named_ = {int(i) for i in re.findall(rf"{WORD[condition.source]}_(\d+)", reply)}
    return [rows[i] for i in sorted(named_) if i < len(rows)]


def group(model: Model, grouping: Grouping, budget: int, rng: np.random.Generator) -> dict[str, float]:
    """The groups of the sample with their sizes, as a perfect reader of it would say them."""
    rows = fitting(model, budget, rng)
    labels = named(model, grouping, rows[: max(TAXONOMY_ROWS, len(rows))])
    said = model.which(grouping.text, labels, rows)
    model.calls = len(rows)
    return {label: model.world.n * said.count(label) / len(rows) for label in labels}
