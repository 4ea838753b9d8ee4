"""Aggregates corrected by the model's errors on rows that a person judged: `WITH (audit = 'table')`.

What can be corrected: COUNT, SUM and AVG of stored values over the rows that a quoted WHERE chooses; and, without one, the
count and the share of the rows for which one quoted condition holds. Both over all rows or by stored columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from uql.base.errors import DataError
from uql.compiler.physical import Block
from uql.compiler.syntax import Call, Case, Expr, Number, Star
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.compiler.walk import MEANS, is_semantic
from uql.kernels.estimates.groups import Aggregation
from uql.kernels.estimates.stored_values import values_of
from uql.sampling.base import Estimate, Floats, Indices
from uql.sampling.model_errors import Audit, corrected, corrected_mean, mean_of_judged


def audited(block: Block, calls: tuple[Call, ...]) -> VirtualColumn | None:
    """The condition that the judged rows are about; None where it is the whole WHERE.

    Raises: DataError (UQL518) where the errors on judged rows do not correct the aggregates.
    """
    semantic = [call for call in calls if is_semantic(call)]
    if block.filter.formula is None and not semantic and not any(is_semantic(key.expr) for key in block.aggregate.keys):
        return None  # nothing that a model says
    if any(is_semantic(key.expr) for key in block.aggregate.keys):
        raise _refused("groups that a model names are not", block.aggregate.keys[0].expr)
    one_sided = next((c for c in calls if c.distinct or c.name not in {"count", "sum", *MEANS}), None)
    if one_sided is not None:
        raise _refused(f"{one_sided.name.upper()}{' DISTINCT' if one_sided.distinct else ''} is not", one_sided)
    if block.filter.formula is not None:
        if not all(leaf.semantic for leaf in block.filter.formula.leaves):
            raise _refused("a WHERE that mixes quoted and other conditions under OR or NOT is not", None)
        if semantic:
            raise _refused("aggregates of what the model reads are not", semantic[0])
        return None
    conditions = {column for call in semantic for column in (condition_counted(call),)}
    if len(conditions) > 1 or None in conditions:
        raise _refused(
            "of aggregates without a quoted WHERE only the count and share of one condition are", semantic[0]
        )
    return conditions.pop()


def _refused(what: str, where: Expr | None) -> DataError:
    return DataError(
        f"{what} corrected by judged rows",
        code="UQL518",
        span=None if where is None else where.span,
        help='audit corrects COUNT, SUM and AVG of stored columns over WHERE "…", COUNT(*) FILTER (WHERE "…") and '
        'AVG(CASE WHEN "…" THEN 1 ELSE 0 END), alone or by stored columns; leave audit out here',
    )


def condition_counted(call: Call) -> VirtualColumn | None:
    """The condition c of COUNT(*) FILTER (WHERE c), or of SUM or AVG of CASE WHEN c THEN 1 ELSE 0 END."""
    match call:
        case Call(name="count", args=(Star(),) | (), filter=Virtual(column=column), distinct=False):
            return column if column.is_condition else None
        case Call(
            name="sum" | "avg" | "mean",
            args=(Case(operand=None, whens=(when,), default=Number() as other),),
            filter=None,
        ):
            one, of = when.value, when.condition
            zero_one = isinstance(one, Number) and float(one.text) == 1.0 and float(other.text) == 0.0
            if zero_one and isinstance(of, Virtual):
                return of.column if of.column.is_condition else None
    return None


@dataclass(slots=True)
class Correction:
    """Corrects estimates of a block, group by group."""

    audit: Audit
    of_where: bool  # the judged rows are about the WHERE, else about a condition that is counted
    values: dict[Call, Floats]  # (N,) what each candidate row adds to a call if it counts, NaN where NULL
    codes: Indices | None  # (N,) the group of every row

    @classmethod
    def of(cls, audit: Audit, of: Aggregation) -> Correction:
        """Reads what each call adds up from DuckDB."""
        values = {}
        for call in of.calls:
            values[call] = np.ones(of.relation.n) if is_semantic(call) else values_of(call, of.relation, of.ctx)
        return cls(audit, of.block.filter.formula is not None, values, of.codes)

    def call(self, call: Call, estimate: Estimate, count: Estimate, code: int) -> Estimate:
        """The estimate of a call in a group.

        Args:
            estimate: its estimate by the model's answers.
            count: of the rows in the group with a value that the model says yes to.
        """
        if not self._concerns(call):
            return estimate
        value = self._inside(call, code)
        if call.name in MEANS and condition_counted(call) is None:
            present = value[~np.isnan(value)]
            bounds = (float(present.min()), float(present.max())) if len(present) else (0.0, 0.0)
            mean, variance = (float(present.mean()), float(present.var())) if len(present) else (0.0, 0.0)
            found = corrected_mean(estimate, count, mean, len(present), self.audit, bounds, variance)
            value = self._in_group(call, code)
            there = np.where(np.isnan(value), math.nan, 1.0)
            return mean_of_judged(found, corrected(count, len(present), self.audit), value, there, self.audit)
        value = np.nan_to_num(value)
        if call.name in MEANS:  # the share of a condition
            return corrected(estimate, 1.0, self.audit, squares=1 / max(len(value), 1))
        bounds = float(np.minimum(value, 0.0).sum()), float(np.maximum(value, 0.0).sum())
        return corrected(estimate, float(value.sum()), self.audit, bounds, float((value**2).sum()))

    def quotient(self, top: Call, bottom: Call, estimate: Estimate, count: Estimate, code: int) -> Estimate:
        """The estimate of top / bottom in a group.

        Args:
            estimate: its estimate by the model's answers.
            count: the estimate of `bottom` before its correction.
        """
        y, x = np.nan_to_num(self._inside(top, code)), np.nan_to_num(self._inside(bottom, code))
        whole = float(y.sum()) / float(x.sum()) if x.any() else 0.0
        match self._concerns(top), self._concerns(bottom):
            case True, True if self.of_where:
                each = y[x != 0] / x[x != 0]
                bounds = (float(each.min()), float(each.max())) if len(each) else (0.0, 0.0)
                variance = float(each.var()) if len(each) else 0.0
                n_rows = int(np.count_nonzero(x))
                found = corrected_mean(estimate, count, whole, n_rows, self.audit, bounds, variance)
                added, counted = (self._in_group(each, code, 0.0) for each in (top, bottom))
                return mean_of_judged(found, corrected(count, n_rows, self.audit), added, counted, self.audit)
            case True, False:
                squares = float((y**2).sum()) / float(x.sum()) ** 2 if x.any() else 0.0
                return corrected(estimate, whole, self.audit, (min(whole, 0.0), max(whole, 0.0)), squares)
            case False, True:
                squares = float((x**2).sum()) / float(y.sum()) ** 2 if y.any() else 0.0
                upside_down = corrected(_inverse(estimate), 1 / whole if whole else 0.0, self.audit, squares=squares)
                return replace(_inverse(upside_down), method=upside_down.method)
        return estimate

    def _inside(self, call: Call, code: int) -> Floats:
        return self.values[call] if self.codes is None else self.values[call][self.codes == code]

    def _in_group(self, call: Call, code: int, null: float = math.nan) -> Floats:
        """(N,) what each row adds to a call, `null` where that is NULL, NaN in other groups."""
        value = np.where(np.isnan(self.values[call]), null, self.values[call])
        return value if self.codes is None else np.where(self.codes == code, value, math.nan)

    def _concerns(self, call: Call) -> bool:
        """Does it rest on answers of the model?"""
        return self.of_where or condition_counted(call) is not None


def _inverse(estimate: Estimate) -> Estimate:
    """Of 1 / a number from 0 on."""

    def one(value: float | None) -> float | None:
        return None if value is None else 1 / value if value > 0 else math.inf

    value = None if not estimate.value else 1 / estimate.value
    return replace(estimate, value=value, low=one(estimate.high), high=one(estimate.low))
