"""What can be said of a count by answers that are not the model's own: pairs told from an attribute of each row, or a small model's.

Every row has an answer, and none is certain. Where the model gave the chance of each value of a row of pairs, rows are drawn anew from
these chances, and the count's interval is where so many of the draws lie: it tells the model's own doubt about each row, not whether the
values are the right ones. Where an attribute was checked on random pairs, as many pairs may be wrong as the check leaves possible; in a
cascade as many rows as `accuracy` leaves to the small model.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from uql.compiler.formula import TRUE
from uql.compiler.physical import Block
from uql.compiler.syntax import Call, Expr, Star
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.compiler.walk import walk
from uql.kernels.base import Context
from uql.kernels.estimates.groups import Aggregation, Groups
from uql.kernels.relation import Relation
from uql.sampling.base import Estimate, Flags

DRAWS = 400  # of the values of all rows
METHOD, CASCADE = "attribute", "cascade"


def doubted(groups: Groups, of: Aggregation) -> Groups:
    """The groups with intervals in place of numbers that rest on such answers; where nothing can be said they are open-ended."""
    block, codes, relation, ctx = of.block, of.codes, of.relation, of.ctx
    doubtful = relation.doubtful
    derived = [way for column in doubtful if (way := relation[column].derived) is not None]
    source = (METHOD, sum(way.rows_asked for way in derived)) if derived else (CASCADE, None)
    inside = None
    if not block.aggregate.keys:
        inside = [np.ones(relation.n, dtype=bool)]
    elif codes is not None:
        inside = [codes == codes[members[0]] for members in groups.members]
    leaves = block.filter.formula.leaves if block.filter.formula is not None else ()
    chosen = _rests_on(doubtful, *(leaf.expr for leaf in leaves), *(key.expr for key in block.aggregate.keys))
    for call, estimates in groups.estimates.items():
        assert isinstance(call, Call)
        if not chosen and not _rests_on(doubtful, call):
            continue
        plain = call.name == "count" and call.filter is None and not call.distinct
        plain = plain and (not call.args or isinstance(call.args[0], Star))
        counts = _counts(block, estimates, inside, relation, ctx) if plain and inside is not None else None
        groups.estimates[call] = [
            _widened(e, counts[g] if counts is not None else None, *source) for g, e in enumerate(estimates)
        ]
    groups.exact = False
    return groups


def _rests_on(doubtful: list[VirtualColumn], *exprs: Expr) -> bool:
    return any(isinstance(node, Virtual) and node.column in doubtful for expr in exprs for node in walk(expr))


def _widened(exact: Estimate, bounds: tuple[float, float] | None, method: str, calls: int | None) -> Estimate:
    low, high = bounds or (float("-inf"), float("inf"))
    if low == high:  # a model without doubts says nothing of its errors
        low, high = float("-inf"), float("inf")
    elif exact.value is not None:
        low, high = min(low, exact.value), max(high, exact.value)
    return replace(exact, low=low, high=high, exact=False, method=method, calls=exact.calls if calls is None else calls)


def _counts(
    block: Block, counted: list[Estimate], inside: list[Flags], relation: Relation, ctx: Context
) -> list[tuple[float, float]] | None:
    """The interval of the number of pairs of each group that pass; None where nothing can be said of it."""
    formula = block.filter.formula
    if formula is None or len(formula.leaves) != 1 or formula.leaves[0].columns != tuple(relation.doubtful):
        return None
    way = relation[formula.leaves[0].columns[0]].derived
    wrong = way.wrong if way is not None else 1.0 - ctx.settings.accuracy
    if wrong is not None:  # of all rows, at most
        return [_apart(n, wrong * relation.n, rows) for n, rows in zip(counted, inside, strict=True)]
    assert way is not None
    level = ctx.settings.confidence
    counts = np.empty((DRAWS, len(inside)))
    for k in range(DRAWS):
        answers = way.draw_answers(ctx.rng)
        if answers is None:
            return None
        passes = formula.evaluate(answers[None, :]) == TRUE
        counts[k] = [np.count_nonzero(passes & pairs) for pairs in inside]
    low, high = np.quantile(counts, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def _apart(count: Estimate, wrong: float, inside: Flags) -> tuple[float, float]:
    """The interval of a count of which so many pairs may be wrong."""
    value, most = count.value or 0.0, float(inside.sum())
    return max(0.0, value - wrong), min(most, value + wrong)
