"""Ask–tell: a sampler proposes rows, is told the answers, gives an estimate. Arrays in, arrays out, no model, no plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]
Matrix = NDArray[np.float32]  # a vector a row
Bounds = tuple[float, float] | None  # the least and the greatest that a value may be, where known
Stored = Floats | None  # (N,) a number of every row, where it is known


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
    """Chooses which of N rows to ask, for estimates of totals over all N. Every y and x is in the order of `labelled`."""

    n_rows: int
    groups: Indices | None  # (N,) the concrete group of each row

    @property
    def labelled(self) -> Indices:
        """(n,) the rows with an answer: the ones known before the query first, then those told, in order."""

    @property
    def answers(self) -> Floats:
        """(n,) their answers: 1, 0 or NaN."""

    def propose(self, k: int) -> Indices:
        """At most k rows not proposed before; empty when the plan of the sample is done."""

    def tell(self, indices: Indices, answers: Floats) -> None:
        """The truth of the rows proposed: 1, 0, or NaN where there is no answer."""

    def more(self, budget: int, look: int = 0) -> None:
        """Go on sampling up to `budget` rows in all; at look j of a stopping rule intervals are made at 1 − α/2^j."""

    def expected_draws(self) -> Floats:
        """(N,) how often each row was to be expected among the random draws told; inf where it was asked for sure."""

    def estimate(self) -> Estimate:
        """The number of rows whose answer is 1."""

    def total(self, y: Floats, bounds: Bounds = None, *, weights: Stored = None, domain: int | None = None) -> Estimate:
        """The sum of any y over all N rows, or over those of one group, from the same draws.

        Args:
            y: (n,) in the order of `labelled`; NaN where unknown. The value counts such rows as 0, as SQL does with NULL.
            bounds: what an unknown y may be; [0, 1] for 0/1 values, else the range seen, 0 included.
            weights: (N,) where y = weight · (0 or 1) and the weight of every row is known, as in the SUM of a stored column.
            domain: a value of `groups`: the sum of that group alone, whose known size is used. y of rows of other
                groups adds nothing to it; a method may learn from it.
        """
        ...

    def ratio(
        self, y: Floats, x: Floats, *, weights: Stored = None, counts: Stored = None, domain: int | None = None
    ) -> Estimate:
        """total(y) / total(x), with Fieller's interval, open where that of x touches 0: AVG with x = 1 on the rows that count,
        a share, or a ratio of two sums; None where x adds up to 0.

        Args:
            y, x: (n,) in the order of `labelled`; NaN where unknown.
            weights, counts: (N,) where y, x = weight · (0 or 1) and the weight of every row is known.
            domain: a value of `groups`: the ratio within that group alone.
        """
        ...


class RetrievalSampler(Protocol):
    """Chooses which rows to ask to find as many matching ones as it can."""

    def propose(self, k: int) -> Indices: ...

    def tell(self, indices: Indices, answers: Floats) -> None: ...

    def learn(self, indices: Indices, answers: Floats) -> None:
        """The answers of rows that it has not proposed."""
        ...

    def more(self, budget: int) -> None:
        """Go on searching up to `budget` rows in all: the rows so far are those that fewer calls would have asked."""
        ...

    def matches(self) -> Indices:
        """The rows known to match, in the order they were found."""
