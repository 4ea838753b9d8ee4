"""How a cell of trials is judged: binomial bounds over its seeds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from uql.sampling.intervals import clopper_pearson

SLACK = 0.02  # below nominal, at most, of a coverage
CERTAIN = 0.999  # of the binomial bound of a coverage


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table: a cell, what was promised, and how often it held."""

    table: str
    cell: str  # the data
    statistic: str
    seeds: int
    nominal: float  # what was promised: a coverage, or 1 − δ
    held: int  # seeds in which it held
    passed: bool
    cost: float  # mean width relative to the truth, or share of the rows asked
    value: float = math.nan  # what the promise bought: mean F1, recall or relative error

    @property
    def coverage(self) -> float:
        """The share of seeds in which it held."""
        return self.held / self.seeds


def at_most(held: int, seeds: int) -> float:
    """The 99.9 % binomial upper bound of a coverage."""
    return float(clopper_pearson(held, seeds, CERTAIN, two_sided=False)[1])


def covers(held: int, seeds: int, nominal: float) -> bool:
    """Whether the 99.9 % binomial upper bound of the coverage reaches nominal − .02."""
    return at_most(held, seeds) >= nominal - SLACK


def allowed(seeds: int, delta: float) -> float:
    """How many runs may miss: nδ + 2.33·√(nδ(1 − δ))."""
    return seeds * delta + 2.33 * math.sqrt(seeds * delta * (1 - delta))


def keeps(misses: int, seeds: int, delta: float) -> bool:
    """Whether no more runs miss than may."""
    return misses <= allowed(seeds, delta)
