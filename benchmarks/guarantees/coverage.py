"""Coverage of the intervals of COUNT, SUM, AVG, ratios, groups, and of the one-sided bounds of MIN and MAX.

`python -m uql.benchmarks.guarantees.coverage`
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from uql.benchmarks.datasets.labelled import Predicate, labels, predicates
from uql.benchmarks.guarantees.bounds import SLACK, Row, at_most, covers
from uql.benchmarks.sampling.worlds import features, told, world
from uql.sampling.base import AggregateSampler, Estimate, Floats, Indices, Matrix
from uql.sampling.groupby import GroupBySampler
from uql.sampling.methods import AGGREGATE

ROWS = 4_000
SHARES = (0.01, 0.05, 0.3, 0.8)
VALUES = ("even", "heavy", "signed")
GROUPED = (("airdialogue", "status"), ("abcd", "flow_silver"), ("airline_tweets", "reason"))
ONE_SIDED = ("MAX", "MIN")  # bounds that always hold
REAL = ("air_cancel", "abcd_item", "tw_neg", "tw_lines", "bk_cheque")
HEADER = f"{'data':<26}{'statistic':<22}{'seeds':>6}{'held':>8}{'bound':>8}{'at least':>10}{'width':>8}{'error':>8}"


@dataclass(frozen=True)
class Case:
    """A table whose answers and stored values are known."""

    name: str
    features: Matrix
    prior: Floats | None
    truth: Floats
    value: Floats
    groups: Indices


def made_up(share: float, kind: str, seed: int = 0) -> Case:
    """4,000 rows: truth a noisy function of the features; values even (gamma), heavy (lognormal, σ = 1.5), or signed,
    higher where the truth is likelier."""
    rng = np.random.default_rng(seed)
    d = 16
    matrix = (rng.normal(size=(ROWS, d)) / np.sqrt(d)).astype(np.float32)
    score = matrix[:, 0] * np.sqrt(d) + 0.7 * rng.normal(size=ROWS)
    truth = np.zeros(ROWS)
    truth[np.argsort(-score)[: round(share * ROWS)]] = 1.0
    value = {
        "even": rng.gamma(4.0, 1.0, ROWS),
        "heavy": np.exp(1.5 * rng.normal(size=ROWS)),
        "signed": 2.0 * rng.standard_t(4, ROWS) + score,
    }[kind]
    groups = rng.choice(3, ROWS, p=(0.7, 0.25, 0.05))
    return Case(f"{share:g} {kind}", matrix, matrix[:, 0] + 0.3 * rng.normal(size=ROWS), truth, value, groups)


def real(predicate: Predicate, kind: str) -> Case:
    """A labelled predicate on its texts' features; values are lengths of texts, less their mean where signed."""
    w = world(predicate, True)
    value = w.lengths - (w.lengths.mean() if kind == "signed" else 0.0)
    rng = np.random.default_rng(0)
    return Case(f"{predicate.name} {kind}", w.matrix, w.prior, w.truth, value, rng.choice(3, w.n, p=(0.7, 0.25, 0.05)))


def statistics(case: Case, sampler: AggregateSampler) -> Iterator[tuple[str, Estimate, float]]:
    """Name, estimate and truth of each number that one sample gives."""
    rows, y = sampler.labelled, sampler.answers
    v, inside = case.value[rows] * y, case.groups == 2
    total, count = float((case.value * case.truth).sum()), float(case.truth.sum())
    yield "COUNT", sampler.estimate(), count
    yield "SUM", sampler.total(v, weights=case.value), total
    yield "AVG", sampler.ratio(v, y, weights=case.value), total / count
    large = (case.value > np.median(case.value)).astype(np.float64)
    yield "ratio of counts", sampler.ratio(large[rows] * y, y), float((large * case.truth).sum()) / count
    yield "COUNT of a small group", sampler.total(y, domain=2), float(case.truth[inside].sum())
    if case.truth[inside].any():
        mean = float((case.value * case.truth)[inside].sum() / case.truth[inside].sum())
        yield "AVG of a small group", sampler.ratio(v, y, weights=case.value, domain=2), mean
    seen = case.value[rows][y == 1.0]
    if len(seen):  # one-sided: at least the largest seen
        largest = float(case.value[case.truth == 1.0].max())
        yield "MAX, at least", Estimate(float(seen.max()), float(seen.max()), float("inf")), largest
        smallest = float(case.value[case.truth == 1.0].min())
        yield "MIN, at most", Estimate(float(seen.min()), float("-inf"), float(seen.min())), smallest


def rows(
    seeds: int, *, budget: int = 128, confidence: float = 0.95, method: str = "asd", data: bool = True
) -> list[Row]:
    """Every cell over that many seeds; `data`: also the labelled data sets, where they are at hand."""
    cases = [made_up(share, kind) for share in SHARES for kind in VALUES]
    if data:
        cases += [real(p, kind) for p in predicates() if p.name in REAL for kind in ("lengths", "signed")]
    found: list[Row] = []
    for case in cases:
        found += _case(case, seeds, budget, confidence, method)
    if data:
        found += groups(seeds, budget=budget, confidence=confidence)
    return found


def _case(case: Case, seeds: int, budget: int, confidence: float, method: str) -> list[Row]:
    held: dict[str, list[tuple[bool, float, float]]] = {}
    for seed in range(seeds):
        sampler = AGGREGATE[method](
            len(case.truth),
            budget,
            rng=np.random.default_rng(seed),
            confidence=confidence,
            features=case.features,
            prior=case.prior,
            size=np.abs(case.value),
            groups=case.groups,
        )
        for name, found, truth in statistics(case, told(sampler, case.truth)):
            held.setdefault(name, []).append(judged(found, truth))
    return [_row("coverage", case.name, name, outcomes, confidence) for name, outcomes in held.items()]


def groups(seeds: int, *, budget: int = 128, confidence: float = 0.95) -> list[Row]:
    """Counts of the groups that a model gives, each group a row, and all of one data set together."""
    out: list[Row] = []
    for data, column in GROUPED:
        outcomes = group_outcomes(data, column, range(seeds), budget, confidence)
        for name, each in outcomes.items():
            out.append(_row("groups", f"{data[:8]} {name}", "COUNT of a group", each, confidence))
    return out


def group_outcomes(
    data: str, column: str, seeds: Iterable[int], budget: int, confidence: float = 0.95
) -> dict[str, list[tuple[bool, float, float]]]:
    """Of each group of a labelled column, with its share of the rows, what `judged` says of its count; the largest group first."""
    names, classes = np.unique(labels(data, column), return_inverse=True)
    truth = np.bincount(classes)
    matrix = features(data).matrix
    outcomes: list[list[tuple[bool, float, float]]] = [[] for _ in names]
    for seed in seeds:
        sampler = GroupBySampler(
            len(classes), budget, rng=np.random.default_rng(seed), confidence=confidence, features=matrix
        )
        told(sampler, classes.astype(np.float64))
        for g, found in enumerate(sampler.counts(len(names))):
            outcomes[g].append(judged(found, float(truth[g])))
    return {f"{names[g][:16]} {truth[g] / len(classes):.3f}": outcomes[g] for g in np.argsort(-truth)}


def judged(found: Estimate, truth: float) -> tuple[bool, float, float]:
    """Whether the interval holds the truth, its width and the error, both relative to the truth."""
    assert found.low is not None and found.high is not None
    slack = 1e-9 * max(1.0, abs(truth))
    scale = abs(truth) or 1.0
    error = np.nan if found.value is None else found.value / scale - np.sign(truth)
    return bool(found.low - slack <= truth <= found.high + slack), (found.high - found.low) / scale, float(error)


def _row(table: str, cell: str, name: str, outcomes: Sequence[tuple[bool, float, float]], nominal: float) -> Row:
    held = sum(o[0] for o in outcomes)
    nominal = 1.0 if name.startswith(ONE_SIDED) else nominal
    passed = covers(held, len(outcomes), nominal)
    errors = np.array([o[2] for o in outcomes])
    wide = float(np.median([o[1] for o in outcomes]))
    return Row(table, cell, name, len(outcomes), nominal, held, passed, wide, float(np.sqrt(np.nanmean(errors**2))))


def show(found: Sequence[Row]) -> None:
    """The table with the 99.9 % upper bound of each coverage, and the least and mean coverage by statistic."""
    print(HEADER)
    for row in found:
        flag = "" if row.passed else "  FAILS"
        print(
            f"{row.cell:<26}{row.statistic:<22}{row.seeds:>6}{row.coverage:>8.3f}"
            f"{at_most(row.held, row.seeds):>8.3f}{row.nominal - SLACK:>10.2f}"
            f"{row.cost:>8.2f}{row.value:>8.2f}{flag}"
        )
    print()
    for name in dict.fromkeys(row.statistic for row in found):
        each = [row.coverage for row in found if row.statistic == name]
        print(f"{name:<24} least {min(each):.3f} (at least 0.92), mean {np.mean(each):.3f} (0.94 to 0.98)")


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 where a cell fails."""
    parser = argparse.ArgumentParser(prog="python -m uql.benchmarks.guarantees.coverage", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--budget", type=int, default=128)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--method", choices=sorted(AGGREGATE), default="asd")
    parser.add_argument("--no-data", action="store_true", help="made-up tables only")
    given = parser.parse_args(arguments)
    found = rows(
        given.seeds,
        budget=given.budget,
        confidence=given.confidence,
        method=given.method,
        data=not given.no_data,
    )
    print(f"Coverage at {given.confidence:g}, B = {given.budget}, {given.seeds} seeds, method {given.method}")
    show(found)
    return 0 if all(row.passed for row in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
