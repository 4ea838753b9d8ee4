"""The order in which the stages of a filter are asked, chosen from answers: those of a pilot, or rates known from earlier queries.

For independent terms of an AND the best order is by rank = cost / (1 − selectivity), of an OR by cost / selectivity. Here the
same is had for every formula, and for terms that depend on each other, by trying the orders on rows whose answers are known:
what is left to ask after a set of stages does not depend on the order inside the set, so dynamic programming over sets is exact
(Selinger et al., SIGMOD 1979, with rows in place of a selectivity formula).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from uql.compiler.formula import FALSE, OPEN, TRUE, Formula, Masks
from uql.compiler.physical import Stage

EXACT = 8  # stages up to which every set is looked at, in under 20 ms; beyond, the best next stage is taken
IMAGINED = 540  # rows that stand for rates of independent terms
Order = tuple[int, ...]  # positions of stages
Shares = NDArray[np.float64]  # of the rows, by stage


def rank(cost: float, selectivity: float, op: str = "AND") -> float:
    """What a term costs per row that it settles: cost / (1 − s) in an AND, cost / s in an OR; the least goes first.

    >>> rank(1.0, 0.1) < rank(1.0, 0.9)
    True
    """
    settles = 1.0 - selectivity if op == "AND" else selectivity
    return cost / settles if settles > 0 else float("inf")


def best(formula: Formula, stages: Sequence[Stage], answers: Masks, costs: Sequence[float]) -> tuple[Order, float]:
    """The cheapest order of the stages, and its cost a row.

    Args:
        answers: (leaves, m) possible values of every leaf for m rows, all leaves asked.
        costs: of asking one row, by stage.
    Returns: the order; among equals the one nearest to the written order.
    """
    k, m = len(stages), answers.shape[1]
    if k < 2 or not m:
        return tuple(range(k)), costs[0] if k else 0.0
    if k > EXACT:
        return _greedy(k, lambda done: _wanted(formula, stages, answers, [done])[0], costs)
    sets = [frozenset(chosen) for size in range(k) for chosen in combinations(range(k), size)]
    left = dict(zip(sets, _wanted(formula, stages, answers, sets), strict=True))
    # by the number of stages asked: set → (cost, order)
    found: dict[frozenset[int], tuple[float, Order]] = {frozenset(): (0.0, ())}
    for _ in range(k):
        larger: dict[frozenset[int], tuple[float, Order]] = {}
        for done, (cost, order) in found.items():
            share = left[done]
            for stage in range(k):
                if stage in done:
                    continue
                candidate = (cost + costs[stage] * float(share[stage]), (*order, stage))
                whole = done | {stage}
                if whole not in larger or (round(candidate[0], 9), candidate[1]) < (
                    round(larger[whole][0], 9),
                    larger[whole][1],
                ):
                    larger[whole] = candidate
        found = larger
    ((cost, order),) = found.values()
    return order, cost


def cost_of(
    formula: Formula, stages: Sequence[Stage], answers: Masks, costs: Sequence[float], order: Sequence[int]
) -> float:
    """What one row costs on average when the stages are asked in this order."""
    shares = asked_shares(formula, [stages[i] for i in order], answers)
    return sum(costs[i] * share for i, share in zip(order, shares, strict=True))


def asked_shares(formula: Formula, stages: Sequence[Stage], answers: Masks) -> list[float]:
    """The share of rows that each stage is asked of, when they are asked in this order."""
    done: frozenset[int] = frozenset()
    shares = []
    for i in range(len(stages)):
        shares.append(float(_wanted(formula, stages, answers, [done])[0, i]))
        done |= {i}
    return shares


def passes(formula: Formula, answers: Masks) -> float:
    """The share of rows that pass."""
    return float(np.mean(formula.evaluate(answers) == TRUE)) if answers.shape[1] else 0.0


def imagined(formula: Formula, rates: Sequence[float], seed: int = 0) -> Masks:
    """(leaves, IMAGINED) answers of independent terms, each true for its share of the rows: a fixed sample."""
    rng = np.random.default_rng(seed)
    drawn = np.empty((len(formula.leaves), IMAGINED))
    for i in range(len(formula.leaves)):  # stratified: the share of each term is met exactly
        drawn[i] = rng.permutation(IMAGINED) / IMAGINED
    return np.where(drawn < np.asarray(rates)[:, None], TRUE, FALSE).astype(np.uint8)


def _wanted(formula: Formula, stages: Sequence[Stage], answers: Masks, sets: Sequence[frozenset[int]]) -> Shares:
    """(sets, stages) share of rows that need each stage when the stages of a set are known, and the concrete terms are."""
    rows, times = np.unique(answers, axis=1, return_counts=True)  # equal rows are looked at once
    m = rows.shape[1]
    masks = np.tile(rows, len(sets))
    for n, done in enumerate(sets):
        asked = {column.id for i in done for column in stages[i].columns}
        for i, leaf in enumerate(formula.leaves):
            if not all(column.id in asked for column in leaf.columns):
                masks[i, n * m : (n + 1) * m] = OPEN
    relevant = formula.relevant(masks)
    shares = np.zeros((len(sets), len(stages)))
    for j, stage in enumerate(stages):
        own = {column.id for column in stage.columns}
        leaves = [i for i, leaf in enumerate(formula.leaves) if any(column.id in own for column in leaf.columns)]
        shares[:, j] = relevant[leaves].any(axis=0).reshape(len(sets), m) @ times / answers.shape[1]
    return shares


def _greedy(k: int, left: Callable[[frozenset[int]], Shares], costs: Sequence[float]) -> tuple[Order, float]:
    """Always the stage after which the least is left to ask, in cost."""
    done: frozenset[int] = frozenset()
    order: list[int] = []
    total = 0.0
    while len(order) < k:
        now = left(done)
        options = []
        for stage in (i for i in range(k) if i not in done):
            after = left(done | {stage})
            rest = sum(costs[i] * float(after[i]) for i in range(k) if i not in done and i != stage)
            options.append((round(costs[stage] * float(now[stage]) + rest, 9), stage))
        stage = min(options)[1]
        total += costs[stage] * float(now[stage])
        order.append(stage)
        done |= {stage}
    return tuple(order), total
