"""Ways to count that were published in 2026, re-implemented plainly. Every method sees the same embeddings and asks the labels.

Sources, read in their abstracts and documentation; what those leave open is a constant below:
- OLLA: Hui et al. (2026), *LLM-Driven Online Aggregation for Unstructured Text Analytics*: semantic strata, sampled in rounds.
- CSV: Hou et al. (2026), *Beyond Linear LLM Invocation*: cluster, sample, vote; clusters that do not agree are split.
- logistic proxy: BigQuery's optimized mode of AI.IF: a logistic model over embeddings, trained on a labelled sample and checked on a
  part of it; the query fails where the check does.
- soft proxy: the same model in two phases: its chances, added up, and the mean of its residuals over the second phase.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from uql.benchmarks.promise.tables import Dear
from uql.benchmarks.sampling.worlds import World, strata_of
from uql.sampling.base import Floats, Indices, Matrix
from uql.sampling.clusters import clusters
from uql.sampling.stratified import allocate

ROUNDS = 4  # of OLLA
CSV_CLUSTERS, CSV_VOTES = 4, 16  # of a clustering, and calls of a cluster
CSV_LOW, CSV_HIGH = 0.15, 0.85  # shares of yes at which a cluster is decided
CHECKED, PASSES = 0.2, 0.9  # share of the sample that checks the logistic proxy, and the accuracy that it needs there

Count = Callable[[World, Dear, int, np.random.Generator, int], float | None]  # None: the statement fails


def olla(w: World, ask: Dear, budget: int, rng: np.random.Generator, seed: int) -> float:
    """Strata by k-means: the first round in proportion to their sizes, the later ones by size and spread so far (Neyman)."""
    found = strata_of(w, seed)
    names = np.unique(found)
    orders = [rng.permutation(np.flatnonzero(found == h)) for h in names]
    sizes = np.array([len(order) for order in orders])
    taken = allocate(sizes, budget // ROUNDS)
    for part in range(2, ROUNDS + 1):
        seen = [ask(o[:n]) for o, n in zip(orders, taken, strict=True)]
        spread = np.array([np.sqrt((y.sum() + 0.5) * (len(y) - y.sum() + 0.5)) / (len(y) + 1) for y in seen])
        wanted = sizes * spread / (sizes * spread).sum() * budget * part / ROUNDS
        room = np.maximum(wanted - taken, 0.0)
        more = np.floor(room / max(room.sum(), 1e-9) * (budget * part // ROUNDS - taken.sum()))
        taken = np.minimum(taken + more.astype(np.int64), sizes)
    return float(sum(size * ask(o[:n]).mean() for o, n, size in zip(orders, taken, sizes, strict=True) if n and size))


def csv(w: World, ask: Dear, budget: int, rng: np.random.Generator, seed: int) -> float:
    """Clusters vote as wholes; the largest that does not agree is split again while calls are left, then goes by its share."""
    rows, decided = csv_votes(w.matrix, ask, budget, rng, seed)
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


def logistic_proxy(w: World, ask: Dear, budget: int, rng: np.random.Generator, seed: int) -> float | None:
    """The rows that the proxy says yes to; None where its check fails."""
    found = proxy_of(w.matrix, ask, budget, rng)
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


def soft_proxy(w: World, ask: Dear, budget: int, rng: np.random.Generator, seed: int) -> float:
    """Chances of a proxy from the first half of the calls, corrected by the mean residual of the second half."""
    drawn = rng.choice(w.n, budget, replace=False)
    first, second = drawn[: budget // 2], drawn[budget // 2 :]
    learnt, checked = ask(first), ask(second)
    if len(np.unique(learnt)) < 2:
        return float(w.n * np.concatenate([learnt, checked]).mean())
    chances = _fitted(w.matrix[first], learnt, balanced=False)(w.matrix)
    return float(chances.sum() + w.n * (checked - chances[second]).mean())


def _fitted(matrix: Matrix, answers: Floats, balanced: bool = True) -> Callable[[Matrix], Floats]:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=300, class_weight="balanced" if balanced else None).fit(matrix, answers)

    def chances(rows: Matrix) -> Floats:
        found: Floats = model.predict_proba(rows)[:, 1]
        return found

    return chances


RIVALS: dict[str, Count] = {"olla": olla, "csv": csv, "logistic proxy": logistic_proxy, "soft proxy": soft_proxy}
