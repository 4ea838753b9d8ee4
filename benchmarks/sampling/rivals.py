"""COUNT beside what was published in 2026, re-implemented plainly: `python -m uql.benchmarks.sampling.rivals`.

Every method sees the same embeddings and asks the labels. For each predicate: the error of each method at equal calls, then the calls
that a rival needs for the error that the engine has with the first budget, by the line through its errors at the larger ones.

Sources, read in their abstracts and documentation; what those leave open is a constant below:
- OLLA: Hui et al. (2026), *LLM-Driven Online Aggregation for Unstructured Text Analytics*: semantic strata, sampled in rounds.
- CSV: Hou et al. (2026), *Beyond Linear LLM Invocation*: cluster, sample, vote; clusters that do not agree are split.
- logistic proxy: BigQuery's optimized mode of AI.IF: a logistic model over embeddings, trained on a labelled sample and checked on a
  part of it; the query fails where the check does.
- soft proxy: the same model in two phases: its chances, added up, and the mean of its residuals over the second phase.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from uql.benchmarks.datasets.labelled import Predicate, data_folder, predicates
from uql.benchmarks.sampling.aggregates import HARD, geometric, rms
from uql.benchmarks.sampling.worlds import CLUSTERINGS, World, samplers, strata, world
from uql.sampling.base import Floats, Indices
from uql.sampling.clusters import clusters
from uql.sampling.stratified import allocate
from uql.sampling.surrogate import Matrix

BUDGETS = (128, 256, 512, 1024)
FEWEST = 16  # calls that a line is followed down to
ROUNDS = 4  # of OLLA
CSV_CLUSTERS, CSV_VOTES = 4, 16  # of a clustering, and calls of a cluster
CSV_LOW, CSV_HIGH = 0.15, 0.85  # shares of yes at which a cluster is decided
CHECKED, PASSES = 0.2, 0.9  # share of the sample that checks the logistic proxy, and the accuracy that it needs there

Count = Callable[[World, int, np.random.Generator, int], float | None]


def olla(w: World, budget: int, rng: np.random.Generator, seed: int) -> float:
    """Strata by k-means: the first round in proportion to their sizes, the later ones by size and spread so far (Neyman)."""
    found = strata(w.predicate.data)[seed % CLUSTERINGS]
    names = np.unique(found)
    orders = [rng.permutation(np.flatnonzero(found == h)) for h in names]
    sizes = np.array([len(order) for order in orders])
    taken = allocate(sizes, budget // ROUNDS)
    for part in range(2, ROUNDS + 1):
        seen = [w.truth[o[:n]] for o, n in zip(orders, taken, strict=True)]
        spread = np.array([np.sqrt((y.sum() + 0.5) * (len(y) - y.sum() + 0.5)) / (len(y) + 1) for y in seen])
        wanted = sizes * spread / (sizes * spread).sum() * budget * part / ROUNDS
        room = np.maximum(wanted - taken, 0.0)
        more = np.floor(room / max(room.sum(), 1e-9) * (budget * part // ROUNDS - taken.sum()))
        taken = np.minimum(taken + more.astype(np.int64), sizes)
    return float(
        sum(size * w.truth[o[:n]].mean() for o, n, size in zip(orders, taken, sizes, strict=True) if n and size)
    )


def csv(w: World, budget: int, rng: np.random.Generator, seed: int) -> float:
    """Clusters vote as wholes; the largest that does not agree is split again while calls are left, then goes by its share."""
    rows, decided = csv_votes(w.matrix, lambda asked: w.truth[asked], budget, rng, seed)
    return float(sum(len(members) * share for members, share in zip(rows, decided, strict=True)))


def csv_votes(
    matrix: Matrix, ask: Callable[[Indices], Floats], budget: int, rng: np.random.Generator, seed: int
) -> tuple[list[Indices], list[float]]:
    """The clusters, and of each 1 or 0 where its votes agree, else its share of yes.

    Args:
        matrix: (N, d) features of the rows.
        ask: the answers of rows, 1 or 0.
        budget: calls at most; one clustering takes CSV_CLUSTERS · CSV_VOTES of them.
    """
    rows: list[Indices] = []
    shares: list[float] = []
    undecided = [(np.arange(len(matrix)), 0.5)]
    while undecided:
        undecided.sort(key=lambda cluster: len(cluster[0]))
        members, share = undecided.pop()
        labels = clusters(matrix[members], CSV_CLUSTERS, seed)
        parts = [members[labels == h] for h in np.unique(labels)]
        if budget < CSV_CLUSTERS * CSV_VOTES or len(parts) == 1:
            rows.append(members)
            shares.append(share)
            continue
        for part in parts:
            votes = min(CSV_VOTES, len(part))
            budget -= votes
            share = float(ask(rng.choice(part, votes, replace=False)).mean())
            if CSV_LOW < share < CSV_HIGH and votes < len(part):
                undecided.append((part, share))
            else:
                rows.append(part)
                shares.append(share if votes == len(part) else float(share >= CSV_HIGH))
    return rows, shares


def logistic_proxy(w: World, budget: int, rng: np.random.Generator, seed: int) -> float | None:
    """The rows that the proxy says yes to; None where its check fails."""
    found = proxy_of(w.matrix, lambda asked: w.truth[asked], budget, rng)
    return None if found is None else float((found > 0.5).sum())


def proxy_of(matrix: Matrix, ask: Callable[[Indices], Floats], budget: int, rng: np.random.Generator) -> Floats | None:
    """(N,) the chances of a logistic model over the features, trained on a uniform sample of `budget` rows, a part of which checks it.

    None where the part has one answer alone in training, or where the mean of the accuracies among its yeses and noes is below PASSES.
    """
    drawn = rng.choice(len(matrix), min(budget, len(matrix)), replace=False)
    answers = ask(drawn)
    cut = int(len(drawn) * CHECKED)
    if len(np.unique(answers[cut:])) < 2:
        return None
    model = _fitted(matrix[drawn[cut:]], answers[cut:])
    said = model(matrix[drawn[:cut]]) > 0.5
    right = [float((said == answers[:cut])[answers[:cut] == kind].mean()) for kind in np.unique(answers[:cut])]
    return model(matrix) if np.mean(right) >= PASSES else None


def soft_proxy(w: World, budget: int, rng: np.random.Generator, seed: int) -> float:
    """Chances of a proxy from the first half of the calls, corrected by the mean residual of the second half."""
    drawn = rng.choice(w.n, budget, replace=False)
    first, second = drawn[: budget // 2], drawn[budget // 2 :]
    if len(np.unique(w.truth[first])) < 2:
        return float(w.n * w.truth[drawn].mean())
    chances = _fitted(w.matrix[first], w.truth[first], balanced=False)(w.matrix)
    return float(chances.sum() + w.n * (w.truth[second] - chances[second]).mean())


def _fitted(matrix: Matrix, answers: Floats, balanced: bool = True) -> Callable[[Matrix], Floats]:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=300, class_weight="balanced" if balanced else None).fit(matrix, answers)

    def chances(rows: Matrix) -> Floats:
        found: Floats = model.predict_proba(rows)[:, 1]
        return found

    return chances


RIVALS: dict[str, Count] = {"olla": olla, "csv": csv, "logistic proxy": logistic_proxy, "soft proxy": soft_proxy}


@dataclass(frozen=True, slots=True)
class RivalRow:
    """One predicate and method: root mean square relative error by budget (NaN: every run failed), and the share of runs that failed."""

    predicate: str
    rows: int
    method: str
    errors: tuple[float, ...]
    failed: tuple[float, ...]

    def calls_for(self, error: float, budgets: Sequence[int]) -> float:
        """Calls for that error, by a line through the logarithms; at least FEWEST, at most every row: that many where most runs fail, or
        the error does not fall."""
        known = [(b, e) for b, e, f in zip(budgets, self.errors, self.failed, strict=True) if e > 0 and f <= 0.5]
        if len(known) < 2:
            return float(self.rows)
        slope, at = np.polyfit(np.log([b for b, _ in known]), np.log([e for _, e in known]), 1)
        if slope >= 0:
            return float(known[0][0] if known[0][1] <= error else self.rows)
        return float(np.exp(np.clip((np.log(error) - at) / slope, np.log(FEWEST), np.log(self.rows))))


def rival_rows(predicate: Predicate, seeds: int, budgets: Sequence[int] = BUDGETS) -> Iterator[RivalRow]:
    """A row for each method, the engine's own (asd) and UQE's strata (uqe) first."""
    w = world(predicate, False)
    total = float(w.truth.sum())
    for name in ("asd", "uqe"):
        errors = [
            rms([(s.estimate().value or 0.0) / total - 1 for _, s in samplers(w, budget, range(seeds), (name,))])
            for budget in (budgets if name != "asd" else budgets[:1])
        ]
        yield RivalRow(predicate.name, w.n, name, tuple(errors), (0.0,) * len(errors))
    for name, count in RIVALS.items():
        made = [
            [count(w, budget, np.random.default_rng([seed, 3]), seed) for seed in range(seeds)] for budget in budgets
        ]
        yield RivalRow(
            predicate.name,
            w.n,
            name,
            tuple(rms([v / total - 1 for v in m if v is not None]) if any(v is not None for v in m) else float("nan") for m in made),
            tuple(float(np.mean([v is None for v in m])) for m in made),
        )  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 2 where the data is not there."""
    parser = argparse.ArgumentParser(
        prog="python -m uql.benchmarks.sampling.rivals", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--predicate", action="append", help="one by name; may be given several times")
    given = parser.parse_args(arguments)
    try:
        data_folder()
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    chosen = [p for p in predicates() if p.name in given.predicate] if given.predicate else predicates()[:HARD]
    print(
        f"COUNT, {given.seeds} seeds, no example rows: relative error by calls; calls for the engine's error at {BUDGETS[0]}"
    )
    print(f"{'predicate':<14}{'method':<16}" + "".join(f"{b:>9,}" for b in BUDGETS) + f"{'calls':>9}{'failed':>8}")
    needs: dict[str, list[float]] = {}
    failed: dict[str, list[float]] = {}
    for predicate in chosen:
        ours = float("nan")
        for row in rival_rows(predicate, given.seeds):
            if row.method == "asd":
                ours = row.errors[0]
            need = float(BUDGETS[0]) if row.method == "asd" else row.calls_for(ours, BUDGETS)
            needs.setdefault(row.method, []).append(need)
            failed.setdefault(row.method, []).append(float(np.mean(row.failed)))
            shown = "".join(f"{e:>9.3f}" for e in row.errors) + " " * 9 * (len(BUDGETS) - len(row.errors))
            print(f"{row.predicate:<14}{row.method:<16}{shown}{need:>9,.0f}{np.mean(row.failed):>8.2f}", flush=True)
    print(f"\n{'method':<16}{'calls, geometric mean':>23}{'over asd':>10}{'runs without an answer':>24}")
    for method, calls in needs.items():
        mean = geometric(calls)
        print(f"{method:<16}{mean:>23,.0f}{mean / BUDGETS[0]:>10.2f}{np.mean(failed[method]):>24.2f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
