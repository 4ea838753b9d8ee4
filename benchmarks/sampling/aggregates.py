"""COUNT, SUM, AVG and GROUP BY against the baseline: root mean square errors as ratios, coverage of the intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from uql.benchmarks.datasets.labelled import Predicate, labels
from uql.benchmarks.sampling.worlds import CLUSTERINGS, features, samplers, strata, told, world
from uql.sampling.base import Estimate
from uql.sampling.groupby import GroupBySampler
from uql.sampling.stratified import StratifiedSampler

SUMS = ("abcd_acct", "abcd_item", "air_book", "air_cancel", "tw_neg", "tw_cancelled", "sgd_movies")
GROUPS = (("airdialogue", "status", 0.75), ("abcd", "flow_silver", 0.65))
HARD = 17  # the first 17 predicates are those of the targets


def rms(errors: Sequence[float]) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(errors))))


def geometric(ratios: Sequence[float]) -> float:
    """Geometric mean."""
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else float("nan")


def holds(found: Estimate, truth: float) -> bool:
    """Whether the interval holds the truth."""
    assert found.low is not None and found.high is not None
    return bool(found.low <= truth + 1e-9 * abs(truth) and truth <= found.high + 1e-9 * abs(truth))


def count_table(chosen: Sequence[Predicate], budget: int, seeds: int, examples: bool) -> None:
    """COUNT: relative errors over those of UQE's algorithm 1."""
    target = {64: "-", 128: "0.75" if examples else "0.80", 256: "0.57", 512: "0.53"}.get(budget, "-")
    print(f"\nCOUNT, B = {budget}, {seeds} seeds, example rows {'on' if examples else 'off'}")
    print(f"{'predicate':<14}{'share':>8}{'UQE rmse':>10}{'uniform':>9}{'ASD':>7}{'bias':>8}{'cover':>7}{'width':>7}")
    ratios, against, covers = [], [], []
    for predicate in chosen:
        w = world(predicate, examples)
        total = float(w.truth.sum())
        errors, covered, widths = defaultdict(list), [], []
        for name, sampler in samplers(w, budget, seeds, ("asd", "uqe", "uniform")):
            found = sampler.estimate()
            errors[name].append((found.value or 0.0) / total - 1)
            if name == "asd" and found.low is not None and found.high is not None:
                covered.append(holds(found, total))
                widths.append((found.high - found.low) / total)
        base = rms(errors["uqe"])
        ratios.append(rms(errors["asd"]) / base)
        against.append(rms(errors["asd"]) / rms(errors["uniform"]))
        covers.append(float(np.mean(covered)))
        print(
            f"{predicate.name:<14}{total / w.n:>8.4f}{base:>10.3f}{rms(errors['uniform']) / base:>9.2f}{ratios[-1]:>7.2f}"
            f"{np.mean(errors['asd']):>+8.3f}{covers[-1]:>7.2f}{np.mean(widths):>7.2f}",
            flush=True,
        )
    print(f"geometric mean of ASD/UQE, first {HARD}: {geometric(ratios[:HARD]):.2f} (at most {target})")
    print(
        f"worst predicate: {max(ratios):.2f} (at most 1.12); worst against uniform: {max(against):.2f} (at most 1.10)"
    )
    print(f"coverage: mean {np.mean(covers):.3f} (0.94 to 0.98), least {min(covers):.2f} (at least 0.92)", flush=True)


def sum_table(chosen: Sequence[Predicate], budget: int, seeds: int, examples: bool) -> None:
    """SUM and AVG of the texts' lengths over a predicate."""
    print(f"\nSUM and AVG of a stored column, B = {budget}, {seeds} seeds, example rows {'on' if examples else 'off'}")
    print(f"{'predicate':<14}{'SUM/UQE':>9}{'AVG/UQE':>9}{'cover SUM':>11}{'cover AVG':>11}{'open AVG':>10}")
    sums, means = [], []
    for predicate in chosen:
        if predicate.name not in SUMS:
            continue
        w = world(predicate, examples)
        total = float((w.lengths * w.truth).sum())
        mean = total / float(w.truth.sum())
        errors, cover, opened = defaultdict(list), defaultdict(list), 0
        for name, sampler in samplers(w, budget, seeds, ("asd", "uqe"), size=True):
            y = w.lengths[sampler.told] * sampler.answers
            added, average = sampler.total(y, weights=w.lengths), sampler.ratio(y, sampler.answers, weights=w.lengths)
            errors[name, "sum"].append((added.value or 0.0) / total - 1)
            if average.value is not None:
                errors[name, "avg"].append(average.value / mean - 1)
            if name == "asd":
                cover["sum"].append(holds(added, total))
                cover["avg"].append(holds(average, mean))
                opened += average.low == -np.inf
        sums.append(rms(errors["asd", "sum"]) / rms(errors["uqe", "sum"]))
        means.append(rms(errors["asd", "avg"]) / rms(errors["uqe", "avg"]))
        print(
            f"{predicate.name:<14}{sums[-1]:>9.2f}{means[-1]:>9.2f}{np.mean(cover['sum']):>11.2f}"
            f"{np.mean(cover['avg']):>11.2f}{opened / seeds:>10.2f}",
            flush=True,
        )
    print(
        f"geometric mean: SUM {geometric(sums):.2f} (at most 0.65), AVG {geometric(means):.2f} (at most 0.55)",
        flush=True,
    )


def group_table(budget: int, seeds: int) -> None:
    """GROUP BY counts: total variation distance over that of the baseline's clusters."""
    print(f"\nGROUP BY, total variation distance, B = {budget}, {seeds} seeds")
    for data, column, target in GROUPS:
        names, classes = np.unique(labels(data, column), return_inverse=True)
        n, k = len(classes), len(names)
        shares = np.bincount(classes) / n
        matrix = features(data).matrix
        ours, theirs, cover = [], [], []
        for seed in range(seeds):
            sampler = GroupBySampler(n, budget, rng=np.random.default_rng(seed), features=matrix)
            told(sampler, classes.astype(np.float64))
            counts = sampler.counts(k)
            values = np.array([c.value or 0.0 for c in counts])
            ours.append(float(np.abs(values / values.sum() - shares).sum()) / 2)
            cover.append([holds(c, s * n) for c, s in zip(counts, shares, strict=True)])
            base = StratifiedSampler(
                n, budget, rng=np.random.default_rng(seed), strata=strata(data)[seed % CLUSTERINGS]
            )
            told(base, np.ones(n))
            drawn = classes[base.told]
            guess = np.array([base.total((drawn == g).astype(np.float64)).value or 0.0 for g in range(k)]) / n
            theirs.append(float(np.abs(guess - shares).sum()) / 2)
        print(
            f"{data:<14}{k:>3} groups  UQE {np.mean(theirs):.4f}  ours/UQE {np.mean(ours) / np.mean(theirs):.2f} "
            f"(at most {target})  coverage {np.mean(cover):.2f}, least {np.min(np.mean(cover, axis=0)):.2f}",
            flush=True,
        )
