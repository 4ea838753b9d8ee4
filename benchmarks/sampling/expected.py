"""Expected errors: what the draws of each wave give on average, so that few seeds tell what hundreds of errors would.

Given the cells of a sample, the predictions and all labels, the variance of the estimate over the draws is known exactly;
only the cells vary from seed to seed. What it leaves out is how the waves depend on each other (a fit of one wave sees the
draws of the others), and bias: the trials of `count` have both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from uql.benchmarks.datasets.labelled import Predicate, predicates
from uql.benchmarks.sampling.aggregates import HARD, TARGETS, geometric
from uql.benchmarks.sampling.worlds import World, strata, told, world
from uql.sampling.asd import AsdSampler
from uql.sampling.base import Floats, Indices
from uql.sampling.stratified import allocate


@dataclass(frozen=True, slots=True)
class ExpectedRow:
    """COUNT over one predicate: the expected error over that of UQE, and over that of a uniform sample."""

    predicate: str
    budget: int
    seeds: int
    to_uqe: float
    to_uniform: float


def within(values: Floats, place: Indices) -> tuple[Floats, Floats]:
    """(H,) sizes of the parts that `place` names, and the variance of the values within each."""
    sizes = np.bincount(place).astype(np.float64)
    means = np.bincount(place, values) / sizes
    squares = np.maximum(np.bincount(place, values * values) - sizes * means**2, 0.0)
    return sizes, squares / np.maximum(sizes - 1, 1)


def of_strata(truth: Floats, clusters: Sequence[Indices], budget: int) -> float:
    """The root mean square error of a count from proportional draws of strata, over several clusterings."""
    errors = []
    for labels in clusters:
        _, place = np.unique(labels, return_inverse=True)
        sizes, variances = within(truth, place)
        drawn = allocate(sizes.astype(np.int64), budget)
        errors.append(float((sizes**2 * (1 - drawn / sizes) * variances / np.maximum(drawn, 1)).sum()))
    return float(np.sqrt(np.mean(errors)))


def of_sample(sampler: AsdSampler, truth: Floats) -> float:
    """The standard error of the sampler's count over the draws, its cells and predictions given."""
    complete, total = sampler._complete(), 0.0
    predicted = sampler._predictions(sampler.answers, None, complete, np.ones(sampler.n_rows, bool), False)
    for t, share, (mean, *_) in zip(complete, sampler._shares(complete), predicted, strict=True):
        cells = sampler._waves[t].cells
        residual = ((truth - mean) * share)[cells.order]
        place = np.repeat(np.arange(len(cells.sizes)), cells.sizes)
        sizes, variances = within(residual, place)
        total += float((sizes**2 * (1 - 2 / sizes) * variances / 2).sum())
    return float(np.sqrt(total))


def expected_row(w: World, budget: int, seeds: int) -> ExpectedRow:
    """The row of one predicate."""
    errors = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        sampler = AsdSampler(w.n, budget, rng=rng, features=w.matrix, prior=w.prior)
        told(sampler, w.truth)
        errors.append(of_sample(sampler, w.truth))
    ours, share = float(np.sqrt(np.mean(np.square(errors)))), float(w.truth.mean())
    uniform = w.n * float(np.sqrt(share * (1 - share) / budget * (1 - budget / w.n)))
    theirs = of_strata(w.truth, strata(w.predicate.data), budget)
    return ExpectedRow(w.predicate.name, budget, seeds, ours / theirs, ours / uniform)


def expected_rows(
    seeds: int, *, budget: int = 128, examples: bool = True, chosen: Sequence[Predicate] | None = None
) -> Iterator[ExpectedRow]:
    """A row for each predicate of more than `budget` rows, all of them where none are chosen."""
    for predicate in predicates() if chosen is None else chosen:
        yield expected_row(world(predicate, examples), budget, seeds)


def expected_table(chosen: Sequence[Predicate], budget: int, seeds: int, examples: bool) -> None:
    """Print the expected errors of COUNT."""
    print(f"\nCOUNT, expected errors, B = {budget}, {seeds} seeds, example rows {'on' if examples else 'off'}")
    print(f"{'predicate':<14}{'ASD/UQE':>9}{'ASD/uniform':>13}")
    rows = []
    for row in expected_rows(seeds, budget=budget, examples=examples, chosen=chosen):
        rows.append(row)
        print(f"{row.predicate:<14}{row.to_uqe:>9.2f}{row.to_uniform:>13.2f}", flush=True)
    wanted = TARGETS.get(budget) if examples else 0.80 if budget == 128 else None
    hard = [row.to_uqe for row in rows[:HARD]]
    print(
        f"geometric mean of ASD/UQE, first {len(hard)}: {geometric(hard):.2f}"
        + (f" (at most {wanted})" if wanted is not None else "")
        + f"; worst {max(r.to_uqe for r in rows):.2f} (at most 1.12), against uniform "
        f"{max(r.to_uniform for r in rows):.2f} (at most 1.10)",
        flush=True,
    )
