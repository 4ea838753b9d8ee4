"""Pictures one at a time: the model counts the objects of each of B random pictures, and the condition is checked on the counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from uql.benchmarks.uqe.data import Condition
from uql.benchmarks.uqe.model import Model

COUNTED: dict[str, tuple[str, Callable[[float], bool]]] = {  # condition → what is counted, and when it holds
    "clevr_few_objects": ("the number of objects in the image", lambda n: n < 4),
    "clevr_many_spheres": ("the number of spheres in the image", lambda n: n > 3),
}


def count(model: Model, condition: Condition, budget: int, rng: np.random.Generator) -> float:
    """N times the share of pictures whose count meets the condition."""
    text, holds = COUNTED[condition.name]
    n = model.world.n
    rows = rng.choice(n, min(budget, n), replace=False).tolist()
    numbers = [value for value in model.number(text, rows) if value is not None]
    return n * sum(holds(value) for value in numbers) / len(numbers) if numbers else float("nan")
