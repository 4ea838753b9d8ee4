"""Ask–tell: a sampler proposes rows, is told the answers, and gives an estimate. Arrays in, arrays out: no model, no plan, no DuckDB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with what is known about it; `low` and `high` at the level `confidence`, −inf / inf where open."""

    value: float | None
    low: float | None
    high: float | None
    confidence: float = 0.95
    exact: bool = False
    calls: int = 0  # rows asked for it
    unknown: int = 0  # rows asked that gave no answer: the interval spans all-no to all-yes of them
    method: str = "exact"


class AggregateSampler(Protocol):
    """Chooses which of N rows to ask, for estimates of totals over all N. Every y below is in the order the rows were told."""

    def propose(self, k: int) -> Indices:
        """At most k rows not proposed before; empty when the plan of the sample is done."""

    def tell(self, indices: Indices, answers: Floats, probabilities: Floats | None = None) -> None:
        """The truth of the rows proposed: 1, 0, or NaN where no answer could be had."""

    def estimate(self) -> Estimate:
        """The number of rows whose answer is 1."""

    def total(self, y: Floats, bounds: tuple[float, float] | None = None) -> Estimate:
        """The sum of any y over all N rows from the same draws; y is NaN where unknown, then `bounds` of one value widen the interval."""

    def ratio(self, y: Floats, x: Floats) -> Estimate:
        """total(y) / total(x), with Fieller's interval, open where that of x touches 0."""


class RetrievalSampler(Protocol):
    """Chooses which rows to ask to find as many matching ones as it can."""

    def propose(self, k: int) -> Indices: ...

    def tell(self, indices: Indices, answers: Floats, probabilities: Floats | None = None) -> None: ...

    def found(self) -> Indices:
        """The rows known to match, in the order they were found."""
