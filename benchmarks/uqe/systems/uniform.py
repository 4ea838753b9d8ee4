"""Uniform sampling: ask B random rows and scale the yes answers up."""

from __future__ import annotations

import numpy as np

from uql.base.errors import ModelReplyError
from uql.benchmarks.uqe.data import Condition, Grouping
from uql.benchmarks.uqe.model import Model

TAXONOMY_ROWS = 16  # rows that name the groups, as in the paper's appendix C.2


def count(model: Model, condition: Condition, budget: int, rng: np.random.Generator) -> float:
    """N times the share of yes among the answers."""
    n = model.world.n
    rows = rng.choice(n, min(budget, n), replace=False)
    said = [answer for answer in model.is_so(condition.text, rows.tolist()) if answer is not None]
    return n * sum(said) / len(said) if said else float("nan")


def find(model: Model, condition: Condition, budget: int, rng: np.random.Generator) -> list[int]:
    """The rows among B random ones that the model says yes to."""
    rows = rng.choice(model.world.n, min(budget, model.world.n), replace=False).tolist()
    return [row for row, answer in zip(rows, model.is_so(condition.text, rows), strict=True) if answer]


def group(model: Model, grouping: Grouping, budget: int, rng: np.random.Generator) -> dict[str, float]:
    """Groups named from 16 random rows; B random rows put into them, scaled up."""
    n = model.world.n
    labels = named(model, grouping, rng.choice(n, min(TAXONOMY_ROWS, n), replace=False).tolist())
    rows = rng.choice(n, min(budget, n), replace=False).tolist()
    said = model.which(grouping.text, labels, rows)
    return {label: n * said.count(label) / len(rows) for label in labels}


def named(model: Model, grouping: Grouping, rows: list[int]) -> list[str]:
    """The names of the groups that the model sees in some rows: one call.

    Raises: ModelReplyError where the model names none.
    """
    schema = '{"type": "object", "properties": {"groups": {"type": "array", "items": {"type": "string"}}}}'
    found = model.write(grouping.text, rows, "taxonomy", schema)
    names = found.get("groups") if isinstance(found, dict) else None
    if not isinstance(names, list) or not names:
        raise ModelReplyError(f"the model named no groups for {grouping.text!r}")
    return list(dict.fromkeys(map(str, names)))
