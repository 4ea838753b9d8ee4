"""The order in which the stages of a filter are asked, chosen from answers: those of a pilot, or rates known from earlier queries.

For independent terms of an AND the best order is by rank = cost / (1 − selectivity), of an OR by cost / selectivity. Here the
same is had for every formula, and for terms that depend on each other, by trying the orders on rows whose answers are known:
what is left to ask after a set of stages does not depend on the order inside the set, so dynamic programming over sets is exact
(Selinger et al., SIGMOD 1979, with rows in place of a selectivity formula).

Rows that were decided early have answers to some terms only. Which terms were asked depends on the answers before and on nothing
else, so the answers are missing at random, and the EM algorithm (Dempster, Laird and Rubin, JRSS B 1977) finds the shares of all
combinations of answers from them: `learned`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from uql.compiler.formula import FALSE, NULL, OPEN, TRUE, Formula, Masks
from uql.compiler.physical import Stage

EXACT = 8  # stages up to which every set is looked at, in under 20 ms; beyond, the best next stage is taken
MOST_ORDERED = 48  # stages beyond which the written order is taken
IMAGINED = 540  # rows that stand for rates of independent terms
LEARNED = 2000  # rows that stand for shares of combinations of answers
TERMS = 8  # up to which all combinations are looked at
EM_STEPS, EM_CHANGE = 500, 1e-5  # at most; it has ended when no share changes by more
PRIOR_ROWS = 2.0  # that independent terms at their own rates count for, beside the rows seen
Order = tuple[int, ...]  # positions of stages
Shares = NDArray[np.float64]  # of the rows, by stage


def best(
    formula: Formula,
    stages: Sequence[Stage],
    answers: Masks,
    costs: Sequence[float],
    copies: Sequence[float] | None = None,
) -> tuple[Order, float]:
    """The cheapest order of the stages, and its cost a row.

    Args:
        answers: (leaves, m) possible values of every leaf for m rows, all leaves asked.
        costs: of asking one row, by stage.
        copies: rows that show a stage the same cells, by stage: these are asked once. None: one each.
    Returns: the order; among equals the one nearest to the written order.
    """
    k, m = len(stages), answers.shape[1]
    if k < 2 or not m:
        return tuple(range(k)), costs[0] if k else 0.0
    if k > MOST_ORDERED:  # looking for an order takes time as the cube of their number
        return tuple(range(k)), float(sum(costs))
    needed = _shares_needed(formula, stages, answers)
    if k > EXACT:
        return _greedy(k, lambda done: _requests_per_row(needed([done]), copies)[0], costs)
    sets = [frozenset(chosen) for size in range(k) for chosen in combinations(range(k), size)]
    left = dict(zip(sets, _requests_per_row(needed(sets), copies), strict=True))
    # by the number of stages asked: set → (cost, order)
    cheapest: dict[frozenset[int], tuple[float, Order]] = {frozenset(): (0.0, ())}
    for _ in range(k):
        larger: dict[frozenset[int], tuple[float, Order]] = {}
        for done, (cost, order) in cheapest.items():
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
        cheapest = larger
    ((cost, order),) = cheapest.values()
    return order, cost


def cost_of(
    formula: Formula,
    stages: Sequence[Stage],
    answers: Masks,
    costs: Sequence[float],
    order: Sequence[int],
    copies: Sequence[float] | None = None,
) -> float:
    """What one row costs on average when the stages are asked in this order.

    Args:
        stages: (s,) the requests.
        answers: (leaves, m) of m rows that stand for all.
        costs: (s,) of a request of each stage, in the unit of the result.
        order: positions in `stages`.
        copies: (s,) rows that show a stage the same cells, which are asked once; None: one each.
    """
    times = None if copies is None else [copies[i] for i in order]
    shares = asked_shares(formula, [stages[i] for i in order], answers, times)
    return sum(costs[i] * share for i, share in zip(order, shares, strict=True))


def asked_shares(
    formula: Formula, stages: Sequence[Stage], answers: Masks, copies: Sequence[float] | None = None
) -> list[float]:
    """Requests a row of each stage, when they are asked in this order: the share of rows asked, equal ones counted once.

    Args:
        stages: (s,) the requests, in their order.
        answers: (leaves, m) of m rows that stand for all.
        copies: (s,) rows that show a stage the same cells, which are asked once; None: one each.
    Returns: (s,) shares in [0, 1].
    """
    sets = [frozenset(range(i)) for i in range(len(stages))]
    shares = _requests_per_row(_shares_needed(formula, stages, answers)(sets), copies)
    return [float(shares[i, i]) for i in range(len(stages))]


def distinct_share(share: float, copies: float) -> float:
    """Distinct rows asked, a row of the table, where each distinct one has so many copies and a share of all rows is asked.

    >>> distinct_share(0.5, 1.0), round(distinct_share(0.5, 10.0), 4), distinct_share(1.0, 10.0)
    (0.5, 0.0999, 0.1)
    """
    return float((1.0 - (1.0 - min(1.0, share)) ** copies) / copies)


def passes(formula: Formula, answers: Masks) -> float:
    """The share of rows that pass."""
    return float(np.mean(formula.evaluate(answers) == TRUE)) if answers.shape[1] else 0.0


def imagined(rates: Sequence[float]) -> Masks:
    """(leaves, IMAGINED) answers of independent terms, each true for its share `rates` of the rows: a fixed sample."""
    return _draw_answers(tuple(float(rate) for rate in rates))


@lru_cache(maxsize=64)
def _draw_answers(rates: tuple[float, ...]) -> Masks:
    rng = np.random.default_rng(0)
    draws = np.empty((len(rates), IMAGINED))
    for i in range(len(rates)):  # stratified: the share of each term is met exactly
        draws[i] = rng.permutation(IMAGINED) / IMAGINED
    answers: Masks = np.where(draws < np.asarray(rates)[:, None], TRUE, FALSE).astype(np.uint8)
    answers.flags.writeable = False  # it is shared
    return answers


def learned(masks: Masks) -> Masks:
    """(leaves, about LEARNED) complete answers in the shares that rows asked in part make likely.

    Args: masks: (leaves, m) what is known of each row; OPEN and UNKNOWN are missing, NULL counts as false.
    Beyond TERMS leaves, terms are taken for independent, at the rates of their own answers.
    """
    k = masks.shape[0]
    true, false = masks == TRUE, (masks == FALSE) | (masks == NULL)
    if k > TERMS:
        rates = (true.sum(axis=1) + 1) / (true.sum(axis=1) + false.sum(axis=1) + 2)
        return _draw_answers(tuple(rates.tolist()))
    combinations_, shares = likely(masks)
    rows = np.round(shares * LEARNED).astype(np.int64)
    return np.repeat(np.where(combinations_, TRUE, FALSE).astype(np.uint8), rows, axis=0).T


def likely(masks: Masks) -> tuple[NDArray[np.bool_], Shares]:
    """(2^leaves, leaves) all combinations of answers, and the share of the rows that each likely has: those that rows asked in part
    make likely (EM). At most TERMS leaves; masks as in `learned`."""
    k = masks.shape[0]
    true, false = masks == TRUE, (masks == FALSE) | (masks == NULL)
    combinations_ = ((np.arange(2**k)[:, None] >> np.arange(k)[None, :]) & 1).astype(bool)
    kinds, times = distinct_rows(np.where(true, TRUE, np.where(false, FALSE, OPEN)).astype(np.uint8))
    fits = np.ones((2**k, kinds.shape[1]), dtype=bool)
    for leaf in range(k):
        fits &= np.where(combinations_[:, leaf, None], kinds[leaf] != FALSE, kinds[leaf] != TRUE)
    shares = np.full(2**k, 0.5**k)
    for _ in range(EM_STEPS):
        before = shares
        spread = shares[:, None] * fits
        spread /= spread.sum(axis=0, keepdims=True)
        counts = (spread * times).sum(axis=1)
        rates = ((combinations_ * counts[:, None]).sum(axis=0) + 1) / (counts.sum() + 2)
        independent = np.where(combinations_, rates, 1 - rates).prod(axis=1)
        shares = (counts + PRIOR_ROWS * independent) / (counts.sum() + PRIOR_ROWS)
        if np.abs(shares - before).max() < EM_CHANGE:
            break
    return combinations_, shares


def distinct_rows(masks: Masks) -> tuple[Masks, NDArray[np.int64]]:
    """The distinct columns of (leaves, m) masks, and how often each is there."""
    if masks.shape[0] > 20:
        rows, times = np.unique(masks, axis=1, return_counts=True)
        return rows, times
    codes = (masks.astype(np.int64) << (3 * np.arange(masks.shape[0], dtype=np.int64))[:, None]).sum(axis=0)
    _, first, times = np.unique(codes, return_index=True, return_counts=True)
    return masks[:, first], times


def _requests_per_row(shares: Shares, copies: Sequence[float] | None) -> Shares:
    """Shares of rows as requests a row: rows of equal content are asked once."""
    if copies is None:
        return shares
    times = np.maximum(1.0, np.asarray(copies, dtype=np.float64))
    requests: Shares = (1.0 - (1.0 - np.minimum(1.0, shares)) ** times) / times
    return requests


def _shares_needed(
    formula: Formula, stages: Sequence[Stage], answers: Masks
) -> Callable[[Sequence[frozenset[int]]], Shares]:
    """For sets of stages: (sets, stages) share of rows that need each stage when those of a set are known, and the concrete terms are."""
    rows, times = distinct_rows(answers)  # equal rows are looked at once
    m = rows.shape[1]
    asked = [{column.id for column in stage.columns} for stage in stages]
    read = [{column.id for column in leaf.columns} for leaf in formula.leaves]
    leaves = [[i for i, ids in enumerate(read) if ids & own] for own in asked]  # by stage

    def shares_of(sets: Sequence[frozenset[int]]) -> Shares:
        masks = np.tile(rows, len(sets))
        for n, done in enumerate(sets):
            known = set[int]().union(*(asked[i] for i in done))
            masks[[i for i, ids in enumerate(read) if not ids <= known], n * m : (n + 1) * m] = OPEN
        relevant = formula.relevant(masks)
        needs = [relevant[own].any(axis=0).reshape(len(sets), m) @ times / answers.shape[1] for own in leaves]
        return np.stack(needs, axis=1)

    return shares_of


def _greedy(k: int, remaining: Callable[[frozenset[int]], Shares], costs: Sequence[float]) -> tuple[Order, float]:
    """Always the stage after which the least is left to ask, in cost."""
    done: frozenset[int] = frozenset()
    order: list[int] = []
    total = 0.0
    while len(order) < k:
        now = remaining(done)
        options = []
        for stage in (i for i in range(k) if i not in done):
            after = remaining(done | {stage})
            rest = sum(costs[i] * float(after[i]) for i in range(k) if i not in done and i != stage)
            options.append((round(costs[stage] * float(now[stage]) + rest, 9), stage))
        stage = min(options)[1]
        total += costs[stage] * float(now[stage])
        order.append(stage)
        done |= {stage}
    return tuple(order), total
