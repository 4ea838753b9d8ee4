"""The order of a filter's questions row by row, where embeddings tell which answers are likely.

A surrogate of each term, fitted on the answers so far, says how much likelier than usual the term is of each row. These odds tilt the
shares of the combinations of answers (`orders.likely`), and each row's questions are asked in the order that costs least by its own
shares. The tilt is only trusted where the surrogate predicts rows left out better than the rate does. No order changes an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from uql.compiler.formula import FALSE, NULL, TRUE, Formula, Masks
from uql.compiler.orders import likely, needed
from uql.compiler.physical import Stage
from uql.kernels.answers import Rids, RowOrder
from uql.kernels.base import Context
from uql.kernels.relation import Relation
from uql.sampling import surrogate

STAGES, LEAVES = (2, 5), 6  # between which every order is looked at; most terms
LEAST_FIT = 64  # answers to a term, before its surrogate is fitted
LEAST_EACH = 8  # true, and false ones among them
MOST_FIT = 2_000  # answers that it is fitted on, at random
GROWN = 1.5  # times as many answers, before it is fitted again
NATS = 4.0  # that it must save in log loss on rows left out, in all
MOST_TILT = 4.0  # log-odds
LEAST_GAIN = 0.02  # of a row's cost, for which it leaves the common order
ROWS_AT_ONCE = 4096  # whose orders are compared at once

Orders = NDArray[np.int64]  # (n, stages) positions of stages, in the order of asking
Floats = NDArray[np.float64]


def orders(
    formula: Formula,
    stages: Sequence[Stage],
    common: Sequence[int],
    rids: Rids,
    masks: Masks,
    relation: Relation,
    ctx: Context,
) -> Orders | None:
    """The order for each of these rows; None where embeddings say nothing, and all go in the common order.

    Args:
        common: the best order of all rows.
        masks: (leaves, n) what is known of these rows.
    """
    few = STAGES[0] <= len(stages) <= STAGES[1] and len(formula.leaves) <= LEAVES
    if not few or ctx.features is None or "order_by_embeddings" in ctx.settings.disabled_rules:
        return None
    made = _current_order(formula, relation, ctx)
    if made is None or made.tilt is None:
        return None
    every = list(permutations(range(len(stages))))
    costs = _costs(formula, tuple(stages), tuple(s.cost for s in stages))
    place = every.index(tuple(common))
    found = np.empty((len(rids), len(stages)), dtype=np.int64)
    listed = np.array(every, dtype=np.int64)
    for start in range(0, len(rids), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        weights = _weights(made, rids[part], masks[:, part])
        expected = weights @ costs.T
        best = expected.argmin(axis=1)
        rows = np.arange(len(best))
        stays = expected[rows, best] > (1 - LEAST_GAIN) * expected[:, place]
        found[part] = listed[np.where(stays, place, best)]
    return found


def _current_order(formula: Formula, relation: Relation, ctx: Context) -> RowOrder | None:
    """What is foreseen by the answers so far, made anew when half as many more have come in."""
    state = relation.filters.of(formula)
    judged, profile, made = state.by_row, state.profile, state.row_order
    if judged is None or profile is None:
        return None
    answers = int(((judged == TRUE) | (judged == FALSE) | (judged == NULL)).sum())
    if made is None or answers >= GROWN * made.answers:
        made = RowOrder(answers, _tilt(formula, judged, relation, ctx), *likely(profile))
        state.row_order = made
    return made


def _tilt(formula: Formula, judged: Masks, relation: Relation, ctx: Context) -> NDArray[np.float32] | None:
    """(leaves, N) by how much each row's log-odds differ from those of the rows answered; None where no term can be told."""
    assert ctx.features is not None
    tilt = np.zeros(judged.shape, dtype=np.float32)
    for i, leaf in enumerate(formula.leaves):
        reads = tuple(dict.fromkeys(c for column in leaf.columns for c in column.reads))
        rows = np.flatnonzero((judged[i] == TRUE) | (judged[i] == FALSE) | (judged[i] == NULL))
        if not leaf.semantic or len(rows) < LEAST_FIT:
            continue
        if len(rows) > MOST_FIT:
            rng = np.random.default_rng([ctx.settings.seed, i, len(rows)])
            rows = np.sort(rng.choice(rows, MOST_FIT, replace=False))
        y = (judged[i, rows] == TRUE).astype(np.float64)
        if min(y.sum(), len(y) - y.sum()) < LEAST_EACH:
            continue
        table = ctx.features.at_hand(relation, reads, ctx.fact)
        if table is None:
            continue
        fit = surrogate.probability(table.matrix[rows], y)
        rate = float(y.mean())
        base = np.log(rate / (1 - rate))
        if _log_loss(base, y) - _log_loss(fit.loo, y) < NATS:
            continue
        tilt[i] = np.clip(fit.score(table.matrix) - base, -MOST_TILT, MOST_TILT)
    return tilt if tilt.any() else None


def _log_loss(odds: Floats | float, y: Floats) -> float:
    """In all, of these log-odds."""
    return float(np.logaddexp(0.0, np.where(y > 0.5, -odds, odds)).sum())


def _weights(made: RowOrder, rids: Rids, masks: Masks) -> Floats:
    """(n, combinations) how likely each combination of answers is of each row, up to a factor a row."""
    assert made.tilt is not None
    weights: Floats = np.exp(made.tilt[:, rids].T.astype(np.float64) @ made.combinations.T) * made.shares
    for i in range(len(masks)):
        true = made.combinations[:, i]
        known_true, known_false = masks[i] == TRUE, (masks[i] == FALSE) | (masks[i] == NULL)
        weights[np.ix_(known_true, ~true)] = 0.0
        weights[np.ix_(known_false, true)] = 0.0
    return weights


@lru_cache(maxsize=32)
def _costs(formula: Formula, stages: tuple[Stage, ...], each: tuple[float, ...]) -> Floats:
    """(orders, combinations) what asking a row costs in each order, if its answers are these."""
    k, leaves = len(stages), len(formula.leaves)
    bits = ((np.arange(2**leaves)[None, :] >> np.arange(leaves)[:, None]) & 1).astype(bool)
    sets = [frozenset(i for i in range(k) if n >> i & 1) for n in range(2**k)]
    wanted = needed(formula, stages, np.where(bits, TRUE, FALSE).astype(np.uint8), sets)
    costs = np.zeros((len(list(permutations(range(k)))), 2**leaves))
    for row, order in enumerate(permutations(range(k))):
        done = 0
        for stage in order:
            costs[row] += each[stage] * wanted[done, stage]
            done |= 1 << stage
    return costs
