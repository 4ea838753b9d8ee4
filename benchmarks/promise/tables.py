"""The tables of the benchmark: labels as the dear model, and cheap models made of them or of embeddings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from uql.sampling.base import Floats, Indices, Matrix
from uql.sampling.surrogate import logit, sigmoid

# fixed before anything was tuned; HELD_OUT was looked at once, at the end
TUNED = ("imdb_pos", "abcd_acct", "air_cancel", "tw_neg", "tw_cancelled", "bk_lost", "sgd_movies", "bbc_tech")
HELD_OUT = ("imdb_10", "abcd_item", "abcd_manage", "air_book", "rt_pos", "sgd_failed", "bk_cheque", "bbc_politics")
CHEAP = ("good", "noisy", "overconfident", "random", "embeddings")
WRONG = {"good": 0.03, "noisy": 0.1, "overconfident": 0.1}  # share of a balanced table on which the cheap model errs


@dataclass
class Dear:
    """The dear model: answers rows, and counts each once."""

    truth: Floats
    asked: set[int] = field(default_factory=set)

    def __call__(self, rows: Indices) -> Floats:
        """(n,) the answers, 1 or 0."""
        self.asked.update(np.asarray(rows).tolist())
        return self.truth[rows]

    def matches(self) -> Indices:
        """The rows asked so far that are yes, in their order."""
        return np.array(sorted(i for i in self.asked if self.truth[i]), np.int64)


@dataclass(frozen=True)
class Table:
    """One predicate, with what a cheap model says of its rows.

    Attributes:
        truth: (N,) 1 or 0.
        score: (N,) in [0, 1], the chance that the cheap model gives.
        features: (N, d) and prior (N,), as the engine's search takes them: embeddings beside the score.
        alone: (N, 1) the score without embeddings.
    """

    truth: Floats
    score: Floats
    features: Matrix
    prior: Floats
    alone: Matrix


Method = Callable[[Table, Dear, np.random.Generator, float, float, float], Indices]


def cheap(kind: str, truth: Floats, rng: np.random.Generator) -> Floats:
    """(N,) the chances that a cheap model gives: those of a normal score that errs on WRONG of a balanced table.

    Args:
        kind: "good" and "noisy" are calibrated; "overconfident" has three times their log-odds, two too high; "random" knows nothing.
        truth: (N,) 1 or 0.
    """
    if kind == "random":
        return rng.random(len(truth))
    from scipy.special import ndtri

    apart = -2 * float(ndtri(WRONG[kind]))
    share = float(truth.mean())
    odds = apart * (rng.normal(size=len(truth)) + apart * (truth - 0.5)) + float(logit(np.array(share)))
    return sigmoid(3 * odds + 2 if kind == "overconfident" else odds)


def table(kind: str, truth: Floats, embeddings: Matrix, prior: Floats, rng: np.random.Generator) -> Table:
    """A predicate with a cheap model of that kind.

    Args:
        kind: of `CHEAP`.
        truth: (N,) 1 or 0.
        embeddings: (N, d) features of the rows, and prior (N,), their similarity to the condition: the score of the kind "embeddings".
    """
    score = None if kind == "embeddings" else cheap(kind, truth, rng)
    odds = prior if score is None else logit(score)
    odds = (odds - odds.mean()) / max(float(odds.std()), 1e-9)
    alone = odds.astype(np.float32)[:, None]
    if score is None:
        return Table(truth, sigmoid(odds), embeddings, odds, alone)
    return Table(truth, score, np.concatenate([embeddings, alone], axis=1), odds, alone)
