"""Counts, sums and means by the model's probabilities in place of its yes and no: `WITH (soft = on)`.

Only where they were shown to be chances: by `uql calibrate` for this condition and model, or by the judged rows of `audit`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from uql.base.errors import DataError
from uql.compiler.physical import Block
from uql.compiler.syntax import Call, Expr, Star
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.compiler.walk import MEANS, is_semantic
from uql.kernels.estimates.audit import audited_probabilities
from uql.kernels.estimates.error_correction import condition_counted
from uql.kernels.estimates.groups import Aggregation
from uql.kernels.estimates.sample import Sampled
from uql.kernels.estimates.stored_values import values_of
from uql.sampling.base import Estimate, Floats
from uql.sampling.calibration import Calibration, soft_mean, soft_total

WHAT = (
    'soft counts by one quoted condition: COUNT, SUM and AVG of stored columns over WHERE "…", or COUNT(*) FILTER (WHERE "…") and '
    'AVG(CASE WHEN "…" THEN 1 ELSE 0 END), over all rows or by stored columns'
)
HOW = "uql calibrate \"the condition\" rows.csv fits and checks them; or name a table of judged rows, drawn at random: audit = 'table'"


@dataclass(slots=True)
class Soft:
    """A condition whose probabilities may stand for answers, and what labelled rows say of them."""

    column: VirtualColumn
    of_where: bool  # the condition is the WHERE, else one that is counted over all rows
    negated: bool
    calibration: Calibration
    values: dict[Call, Floats]  # (N,) what each candidate row adds to a call if the condition holds, NaN where NULL
    of: Aggregation

    def call(self, call: Call, plain: Estimate, sampled: Sampled, code: int) -> Estimate:
        """The estimate of a call over the rows for which the condition is true, in the group `code` where there are groups.

        Args:
            plain: its estimate by yes and no, which stays where the call does not ask the condition.
            code: of the group, where there are groups.
        """
        if not self.of_where and condition_counted(call) is None:
            return plain
        p, answers = self._chances(sampled)
        value, domain = self.values[call], None if self.of.codes is None else code
        counted, weights = (~np.isnan(value)).astype(np.float64), np.nan_to_num(value)
        if call.name in MEANS and self.of_where:
            mean = soft_mean(sampled.sampler, p, self.calibration, weights, counted, domain=domain)
            assert mean is not None  # `soft` lets through only what holds
            return mean
        whole = None if bool((weights == 1.0).all()) else weights
        total = soft_total(sampled.sampler, p, answers, self.calibration, weights=whole, domain=domain)
        assert total is not None
        if call.name in MEANS:  # the share of a condition
            return _scaled(total, self.of.rows_of(code))
        return total

    def quotient(self, top: Call, plain: Estimate, sampled: Sampled, code: int) -> Estimate:
        """The estimate of `top` over what it counts, which is one of the quotients that `_check_quotients` lets through.

        Args:
            plain: its estimate by yes and no.
            code: of the group, where there are groups.
        """
        if self.of_where:
            return self.call(replace(top, name="avg"), plain, sampled, code)
        return _scaled(self.call(top, plain, sampled, code), self.of.rows_of(code))

    def _chances(self, sampled: Sampled) -> tuple[Floats, Floats]:
        """(n,) the chances of the rows told, in the sampler's order, and their yes and no; a NULL row is no for sure."""
        rows, column_answers = sampled.labelled, self.of.relation[self.column]
        p = column_answers.probabilities[rows].astype(np.float64)
        if self.of_where:
            answers = sampled.truth.answers
        else:
            has_answer = column_answers.asked_mask[rows] & ~column_answers.failed[rows]
            yes = column_answers.values[rows] == True  # noqa: E712 - an array of objects
            answers = np.where(has_answer, yes.astype(np.float64), np.nan)
        return np.where(np.isnan(p), answers, 1 - p if self.negated else p), answers


def _scaled(total: Estimate, n: int) -> Estimate:
    """A number of n rows as a share."""
    value, low, high = (None if v is None else v / max(n, 1) for v in (total.value, total.low, total.high))
    return replace(total, value=value, low=low, high=high)


async def soft(of: Aggregation) -> Soft | None:
    """What counts by probabilities; None without `soft`, or where the model says nothing.

    Raises: DataError (UQL519) where the statement counts anything else, or the probabilities were not shown to be chances.
    """
    block, calls, quotients, relation, ctx = of.block, of.calls, of.quotients, of.relation, of.ctx
    semantic = block.filter.formula is not None or any(
        is_semantic(e) for e in (*calls, *(k.expr for k in block.aggregate.keys))
    )
    if not ctx.settings.soft or not semantic:
        return None
    column, of_where, negated = _condition(block, calls)
    _check_quotients(quotients, of_where)
    if ctx.cascade is not None:
        raise _refused("soft counts by one model's probabilities, and there are two models", "leave models or soft out")
    if ctx.settings.audit is not None:
        model = "the model"
        calibration = await audited_probabilities(column, relation, ctx)
    else:
        model, audit = await ctx.gate.audited(relation.question(column))
        if audit is None:
            raise _refused(
                f'the probabilities that {model} gives of "{column.text}" were not checked against labels', HOW
            )
        calibration = Calibration(int(audit["rows"]), audit["bias"], audit["error"], audit["z"])
    calibration = replace(calibration, confidence=ctx.settings.confidence)
    off = (
        f"over {calibration.rows:,} labelled rows they are off by {calibration.bias:+.3f} on average "
        f"({calibration.confidence:.0%}: {calibration.low:+.3f} to {calibration.high:+.3f})"
    )
    if not calibration.holds:
        raise _refused(
            f'the probabilities that {model} gives of "{column.text}" are not calibrated: {off}, '
            f"and their spread has z = {calibration.z:.1f}",
            f"leave soft out, label more rows, or: {HOW}",
        )
    ctx.notes.append(f'counted by the probabilities of "{column.text}": {off}')
    values = {call: np.ones(relation.n) if is_semantic(call) else values_of(call, relation, ctx) for call in calls}
    # SUM(v)/COUNT(*) is AVG(v)
    values |= {replace(top, name="avg"): values[top] for top, _ in quotients.values() if of_where}
    return Soft(column, of_where, negated, calibration, values, of)


def _condition(block: Block, calls: tuple[Call, ...]) -> tuple[VirtualColumn, bool, bool]:
    """The one condition that is counted, whether it is the WHERE, and whether NOT stands before it."""
    formula = block.filter.formula
    plain = formula is not None and formula.program in ((0,), (0, "NOT"))
    leaf = formula.leaves[0].expr if plain and formula is not None else None
    of_where = leaf.column if isinstance(leaf, Virtual) and leaf.column.is_condition else None
    adds = all(c.name in {"count", "sum", *MEANS} and not c.distinct for c in calls)
    concrete = adds and not any(is_semantic(key.expr) for key in block.aggregate.keys)
    semantic = [c for c in calls if is_semantic(c)]
    if formula is not None and of_where is not None and concrete and not semantic:
        return of_where, True, formula.program != (0,)
    conditions = {condition_counted(c) for c in semantic}
    if formula is None and concrete and len(conditions) == 1 and (column := conditions.pop()) is not None:
        return column, False, False
    raise _refused(WHAT, "leave soft out")


def _check_quotients(quotients: dict[Expr, tuple[Call, Call]], of_where: bool) -> None:
    """Only SUM(column)/COUNT(*) over the WHERE, or the count of the condition over COUNT(*)."""
    for top, bottom in quotients.values():
        star = (
            bottom.name == "count" and bottom.filter is None and (not bottom.args or isinstance(bottom.args[0], Star))
        )
        if not star or (top.name != "sum" if of_where else condition_counted(top) is None):
            raise _refused(WHAT, "write SUM(x)/COUNT(*) or AVG(x), or leave soft out")


def _refused(what: str, instead: str) -> DataError:
    return DataError(what, code="UQL519", help=instead)
