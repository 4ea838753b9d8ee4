"""A model that errs: what a count then means, and Rogan and Gladen's correction from audited rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from uql.benchmarks.datasets.labelled import Predicate, predicates
from uql.benchmarks.sampling.aggregates import holds, rms
from uql.benchmarks.sampling.worlds import World, told, world
from uql.sampling.base import Floats
from uql.sampling.methods import AGGREGATE
from uql.sampling.model_errors import Audit, corrected

# name, chance of a yes where the truth is yes, and where it is no
MODELS = (("5 % flips", 0.95, 0.05), ("10 % flips", 0.90, 0.10), ("10 % misses, 1 % false alarms", 0.90, 0.01))
NEAREST = 0.1  # of the rows, nearest the boundary, that a model errs on where its errors depend on the row
NOISY = ("abcd_acct", "abcd_manage", "air_book", "tw_neg", "bk_cheque")
AUDITED = 100  # rows of each kind that a person judged


@dataclass(frozen=True, slots=True)
class NoiseRow:
    """COUNT with one erring model: errors relative to the truth.

    Attributes:
        reads_as: the rows the model says yes to, all of them asked, over the rows that are.
        raw_rmse, raw_coverage: of the estimate, against the truth.
        said_coverage: of the estimate's interval, against the rows the model says yes to.
        corrected_rmse, corrected_coverage, corrected_width: after the correction; without value where the audit does
        not show that the model knows anything.
    """

    predicate: str
    model: str
    budget: int
    seeds: int
    share: float
    reads_as: float
    raw_rmse: float
    raw_coverage: float
    said_coverage: float
    corrected_rmse: float
    corrected_coverage: float
    corrected_width: float


def said(w: World, tpr: float, fpr: float, rng: np.random.Generator) -> Floats:
    """(N,) what a model says that errs independently of the row."""
    return np.where(w.truth == 1.0, rng.random(w.n) < tpr, rng.random(w.n) < fpr).astype(np.float64)


def said_near_the_boundary(w: World, rng: np.random.Generator) -> Floats:
    """(N,) what a model says that errs on half of the rows nearest the boundary of the prior: errors depend on the row."""
    cut = np.quantile(w.prior, 1 - float(w.truth.mean()))
    near = np.argsort(np.abs(w.prior - cut))[: int(NEAREST * w.n)]
    out = w.truth.copy()
    flip = near[rng.random(len(near)) < 0.5]
    out[flip] = 1 - out[flip]
    return out


def noise_rows(seeds: int, *, budget: int = 128, chosen: Sequence[Predicate] | None = None) -> Iterator[NoiseRow]:
    """A row for each of five predicates (or those chosen) and each erring model."""
    for predicate in [p for p in predicates() if p.name in NOISY] if chosen is None else chosen:
        w = world(predicate, True)
        for name, tpr, fpr in (*MODELS, ("half of the 10 % nearest", np.nan, np.nan)):
            yield _row(w, name, tpr, fpr, budget, seeds)


def _row(w: World, name: str, tpr: float, fpr: float, budget: int, seeds: int) -> NoiseRow:
    total = float(w.truth.sum())
    raw, fixed, yes, held, held_said, fixed_held, wide = [], [], [], [], [], [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        answers = said_near_the_boundary(w, rng) if np.isnan(tpr) else said(w, tpr, fpr, rng)
        sampler = told(AGGREGATE["asd"](w.n, budget, rng=rng, features=w.matrix, prior=w.prior), answers)
        found = sampler.estimate()
        yes.append(float(answers.sum()) / total)
        raw.append((found.value or 0.0) / total - 1)
        held.append(holds(found, total))
        held_said.append(holds(found, float(answers.sum())))
        true, false = np.flatnonzero(w.truth == 1.0), np.flatnonzero(w.truth == 0.0)
        right, wrong = (rng.choice(part, min(AUDITED, len(part)), replace=False) for part in (true, false))
        audit = Audit(len(right), int(answers[right].sum()), len(wrong), int(answers[wrong].sum()))
        better = corrected(found, w.n, audit)
        fixed_held.append(holds(better, total))
        if better.value is not None and better.low is not None and better.high is not None:
            fixed.append(better.value / total - 1)
            wide.append((better.high - better.low) / total)
    return NoiseRow(
        w.predicate.name,
        name,
        budget,
        seeds,
        total / w.n,
        float(np.mean(yes)),
        rms(raw),
        float(np.mean(held)),
        float(np.mean(held_said)),
        rms(fixed),
        float(np.mean(fixed_held)),
        float(np.mean(wide)),
    )


def noise_table(seeds: int, budget: int = 128) -> None:
    """Print what a count means under a model that errs."""
    print(f"\nCOUNT by a model that errs, B = {budget}, {seeds} seeds; corrected by 100 audited rows of each kind")
    print(
        f"{'predicate':<13}{'share':>7}  {'errors':<31}{'reads as':>9}{'rmse':>7}{'cover':>7}{'of said':>9}"
        f"{'corrected: rmse':>17}{'cover':>7}{'width':>7}"
    )
    for row in noise_rows(seeds, budget=budget):
        print(
            f"{row.predicate:<13}{row.share:>7.4f}  {row.model:<31}{row.reads_as:>8.2f}x{row.raw_rmse:>7.2f}"
            f"{row.raw_coverage:>7.2f}{row.said_coverage:>9.2f}{row.corrected_rmse:>17.2f}"
            f"{row.corrected_coverage:>7.2f}{row.corrected_width:>7.2f}",
            flush=True,
        )
    print(
        "an estimate counts the rows that the model says yes to: its interval covers those, not the truth", flush=True
    )
