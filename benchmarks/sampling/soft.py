"""What probabilities are worth instead of yes and no: a model that doubts, calibrated or too sure of itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from uql.benchmarks.datasets.labelled import Predicate, predicates
from uql.benchmarks.sampling.aggregates import holds, rms
from uql.benchmarks.sampling.worlds import told, world
from uql.sampling import surrogate
from uql.sampling.calibration import calibration, soft_total
from uql.sampling.methods import AGGREGATE

DOUBTED = ("abcd_acct", "air_book", "tw_neg")
LABELLED = 600  # rows from which the simulated model's chances are fitted
AUDITED = 200
KINDS = ("calibrated", "too sure")


@dataclass(frozen=True, slots=True)
class SoftRow:
    """COUNT by one model: errors relative to the truth.

    Attributes:
        accepted: share of seeds in which the audit let the probabilities stand for answers.
        hard_rmse: of the count of yes, in those seeds; soft_rmse, coverage, width: of the soft count.
    """

    predicate: str
    model: str
    budget: int
    seeds: int
    accepted: float
    hard_rmse: float
    soft_rmse: float
    coverage: float
    width: float


def soft_rows(seeds: int, *, budget: int = 128, chosen: Sequence[Predicate] | None = None) -> Iterator[SoftRow]:
    """A row for each of three predicates (or those chosen) and each model.

    The chances of a model are a calibrated surrogate of 600 labelled rows; the truth is drawn from them anew for every
    seed. The model says yes where its chance is above one half; "too sure" doubles its log-odds.
    """
    for predicate in [p for p in predicates() if p.name in DOUBTED] if chosen is None else chosen:
        w = world(predicate, True)
        rows = np.random.default_rng(0).choice(w.n, min(LABELLED, w.n), replace=False)
        chance = surrogate.probability(w.matrix[rows], w.truth[rows]).predict(w.matrix)
        odds = np.log(chance / (1 - chance))
        for kind in KINDS:
            p = chance if kind == "calibrated" else surrogate.sigmoid(2 * odds)
            hard, soft, held, wide = [], [], [], []
            for seed in range(seeds):
                rng = np.random.default_rng(seed)
                truth = (rng.random(w.n) < chance).astype(np.float64)
                total = float(truth.sum())
                sampler = told(
                    AGGREGATE["asd"](w.n, budget, rng=rng, features=w.matrix, prior=w.prior),
                    (p > 0.5).astype(np.float64),
                )
                audited = rng.choice(w.n, AUDITED, replace=False)
                found = soft_total(
                    sampler, p[sampler.labelled], sampler.answers, calibration(p[audited], truth[audited])
                )
                if found is None or found.value is None or found.low is None or found.high is None:
                    continue
                hard.append((sampler.estimate().value or 0.0) / total - 1)
                soft.append(found.value / total - 1)
                held.append(holds(found, total))
                wide.append((found.high - found.low) / total)
            some = bool(soft)
            yield SoftRow(
                predicate.name,
                kind,
                budget,
                seeds,
                len(soft) / seeds,
                rms(hard) if some else float("nan"),
                rms(soft) if some else float("nan"),
                float(np.mean(held)) if some else float("nan"),
                float(np.mean(wide)) if some else float("nan"),
            )


def soft_table(seeds: int, budget: int = 128) -> None:
    """Print what probabilities are worth."""
    print(f"\nCOUNT from probabilities, B = {budget}, {seeds} seeds, {AUDITED} audited rows")
    print(f"{'predicate':<13}{'model':<12}{'accepted':>9}{'rmse of yes':>13}{'of soft':>9}{'cover':>7}{'width':>7}")
    for row in soft_rows(seeds, budget=budget):
        print(
            f"{row.predicate:<13}{row.model:<12}{row.accepted:>9.2f}{row.hard_rmse:>13.3f}{row.soft_rmse:>9.3f}"
            f"{row.coverage:>7.2f}{row.width:>7.2f}",
            flush=True,
        )
