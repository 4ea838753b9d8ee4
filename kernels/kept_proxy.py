"""The score of a stated set, kept with a semantic table, and what it says of rows that come later.

The score of a search rests on features of all its rows together. What is kept is fitted to the same labelled rows, and rests on what a row
shows alone: its vector by the embedder of words, and the log-odds of the small model of `models = [small, large]`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from uql.sampling import surrogate
from uql.sampling.base import Floats, Indices, Matrix
from uql.sampling.surrogate import SEARCH_DIRECTIONS

if TYPE_CHECKING:
    from uql.features.table import Block

LEAST_ROWS = 32  # labelled rows that a score is fitted to


@dataclass(frozen=True, slots=True)
class RowInputs:
    """What the score of a row rests on.

    Attributes:
        embedder: its name, and `vectors` of the rows; "" and None where there is none.
        small: the small model, and `odds` (N,) that it gives, NaN where it has no answer; "" and None where there is none.
    """

    embedder: str
    vectors: Block | None
    small: str
    odds: Floats | None

    def labelled(self, rows: Indices) -> Matrix:
        """(m, e + 1) the vectors of rows, and their log-odds, NaN where there are none."""
        odds = np.full(len(rows), np.nan) if self.odds is None else self.odds[rows]
        if self.vectors is None:
            return odds[:, None].astype(np.float32)
        own = self.vectors.vectors[self.vectors.index[rows]].astype(np.float32)
        return np.concatenate([own, odds[:, None].astype(np.float32)], axis=1)


@dataclass(frozen=True, slots=True)
class KeptProxy:
    """A logistic score of single rows: log-odds = vector · weights + slope × odds + constant.

    Attributes:
        embedder: whose vectors the weights are for; "": none.
        small: the model whose log-odds `slope` is for, `usual` in the place of those that are missing; "": none.
        labelled: rows that it was fitted to.
    """

    embedder: str
    weights: tuple[float, ...]
    small: str
    slope: float
    usual: float
    constant: float
    labelled: int

    def chance(self, inputs: RowInputs) -> Floats | None:
        """(N,) the chance of each row to match; None where the embedder or the small model is another one now."""
        if (self.embedder, self.small) != (inputs.embedder, inputs.small):
            return None
        odds: Any = self.constant
        if inputs.vectors is not None:
            if inputs.vectors.vectors.shape[1] != len(self.weights):
                return None
            odds = odds + inputs.vectors.products(np.array(self.weights, np.float32))
        if inputs.odds is not None:
            odds = odds + self.slope * np.where(np.isnan(inputs.odds), self.usual, inputs.odds)
        return surrogate.sigmoid(odds)


@dataclass(frozen=True, slots=True)
class StatedSet:
    """What a run stated of the rows that it chose, and its score: numbers alone.

    Attributes:
        rows, asked: candidates, and those that the large model answered.
        proxy: None where nothing of single rows guides the choice.
    """

    precision: float
    recall: float
    confidence: float
    rows: int
    asked: int
    proxy: KeptProxy | None

    def numbers(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)

    @classmethod
    def of(cls, numbers: dict[str, Any]) -> StatedSet:
        """From a JSON object."""
        proxy = numbers["proxy"]
        kept = None if proxy is None else KeptProxy(**{**proxy, "weights": tuple(proxy["weights"])})
        return cls(**{**numbers, "proxy": kept})


def fitted(inputs: RowInputs, rows: Indices, answers: Floats) -> KeptProxy | None:
    """The score by labelled rows; None where they are too few or all alike.

    Args:
        rows: (m,) that were asked, with their answers (m,): 1, 0, NaN.
    """
    rows, y = rows[~np.isnan(answers)], answers[~np.isnan(answers)]
    if len(y) < LEAST_ROWS or y.min() == y.max():
        return None
    columns = inputs.labelled(rows).astype(np.float64)
    has_odds = ~np.isnan(columns[:, -1])
    usual = float(columns[has_odds, -1].mean()) if has_odds.any() else 0.0
    columns[~has_odds, -1] = usual
    middle = columns.mean(axis=0)
    columns -= middle
    scale = np.full(columns.shape[1], max(float(np.sqrt((columns[:, :-1] ** 2).sum(axis=1).mean())), 1e-9))
    scale[-1] = max(float(columns[:, -1].std()), 1e-9)
    columns = (columns / scale).astype(np.float32)
    best, kept = np.inf, None
    # the small model alone says more than many columns where few rows are labelled
    for first in (0, columns.shape[1] - 1) if inputs.odds is not None else (0,):
        fit = surrogate.probability(columns[:, first:], y, directions=SEARCH_DIRECTIONS)
        loss = surrogate.log_loss(surrogate.sigmoid(fit.loo), y)
        if fit.weights is None or loss >= best:
            continue
        weights = np.zeros(len(scale))
        weights[first:] = fit.weights / scale[first:]
        constant = fit.constant - float(middle @ weights)
        own = tuple(weights[:-1].tolist())
        best = loss
        kept = KeptProxy(inputs.embedder, own, inputs.small, float(weights[-1]), usual, constant, len(y))
    return kept
