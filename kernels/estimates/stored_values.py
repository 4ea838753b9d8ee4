"""What every row adds to sums and means of stored values: known of all rows, though which of them count is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from uql.compiler.formula import conjuncts
from uql.compiler.syntax import Binary, Boolean, Call, Expr, Number, Star, Unary
from uql.compiler.virtual import Virtual
from uql.compiler.walk import is_semantic, virtuals, walk
from uql.kernels.base import Context
from uql.kernels.estimates.monotone_range import corners, lenient
from uql.kernels.relation import Relation
from uql.sampling.base import Flags, Floats, Indices

MOST = 1e150  # of a value that can be estimated with: its square is a number
MOST_CONDITIONS = 6  # in the argument of one aggregate: its values for every combination of their answers are computed


@dataclass(frozen=True, slots=True)
class Stored:
    """What is known of all rows, by the aggregate that it is for, (N,) each."""

    weights: dict[Call, Floats]  # what a row adds to a SUM or AVG if it counts
    presence: dict[Call, Floats]  # 1 where it has a value, 0 where that is NULL; of a COUNT or AVG of values with NULLs
    scales: dict[Call, Floats]  # what a value that a model reads is multiplied with, in a SUM or AVG
    boundless: frozenset[Call] = frozenset()  # those that add up NaN, infinity or more than MOST; 0 stands in its place
    branches: dict[Call, Floats] = field(default_factory=dict)  # (b, N) what a row may add, by what texts say
    every_row_counts: bool = False

    @classmethod
    def of(cls, calls: Sequence[Call], relation: Relation, ctx: Context, every_row_counts: bool) -> Stored:
        """What DuckDB alone knows of these aggregates, for every candidate row.

        Args:
            calls: aggregates that a sampler estimates.
            every_row_counts: no text decides which rows there are, nor in which group one is.
        """
        branches: dict[Call, Floats] = {}
        weights: dict[Call, Floats] = {}
        presence: dict[Call, Floats] = {}
        scales: dict[Call, Floats] = {}
        for call in calls:
            if (factor := _factor(call, ctx)) is not None:
                scales[call] = relation.each(f"coalesce(TRY_CAST({factor} AS DOUBLE), 0)")
            outcomes = _outcomes(call, relation, ctx)
            if outcomes is None:
                continue
            there: Flags = np.any(~np.isnan(outcomes), axis=0)
            if call.name != "sum" and not there.all():
                presence[call] = there.astype(np.float64)
            if call.name == "count":
                continue
            each = _different(np.where(np.isnan(outcomes), 0.0, outcomes))
            adds, is_count = each[each.any(axis=1)], bool(np.isin(each, (0.0, 1.0)).all())
            null_is_zero = call.name == "sum" and not is_semantic(call.filter)
            is_open = not null_is_zero and bool(np.isnan(outcomes[:, there]).any())
            if len(adds) < 2 and (is_open or len(each) == 1 or not each[0].any()):
                if not (len(adds) and is_count and adds.all()):
                    weights[call] = adds.sum(axis=0)
            elif not (is_count or is_open):
                branches[call] = each
        boundless = set()
        for values in (weights, scales, branches):
            for call, row_values in values.items():
                finite = np.abs(row_values) <= MOST
                if not finite.all():
                    boundless.add(call)
                    values[call] = np.where(finite, row_values, 0.0)
        return cls(weights, presence, scales, frozenset(boundless), branches, every_row_counts)

    @property
    def importance(self) -> Floats | None:
        """(N,) how much a row's answer matters to the sums and means of a query, each as much as another: the root of the
        mean of the squares of what it adds to each, in units of that one's own root mean square. None: nothing is known."""
        moves = {call: np.ptp(values, axis=0) for call, values in self.branches.items()}
        row_values = (self.weights | self.scales | moves).values()
        parts = [np.abs(w) / (float(np.sqrt(np.mean(w**2))) or 1.0) for w in row_values if len(w)]
        return None if not parts else np.sqrt(np.mean(np.square(parts), axis=0))

    def most(self, call: Call, y: Floats, rids: Indices) -> Floats | None:
        """(N,) what each row adds to a sum of products at most: the known factor times the greatest value read;
        None where signs differ, or all are alike.

        Args:
            y: (n,) what the rows `rids` add.
        """
        scale = self.scales[call]
        read = np.divide(y, scale[rids], out=np.zeros_like(y), where=(scale[rids] != 0) & ~np.isnan(y))
        if (scale < 0).any() or (read < 0).any() or len(np.unique(read[read != 0])) < 2:  # all alike: no greatest value
            return None
        return scale * float(read.max())


def _outcomes(call: Call, relation: Relation, ctx: Context) -> Floats | None:
    """(b, N) what each row may add to a COUNT, SUM or AVG, one for each outcome of the conditions in its value, that in which none holds
    first; NaN where it adds nothing. None: of another aggregate, of a value that a model reads, of more than a few conditions."""
    if call.name not in ("count", "sum", "avg", "mean") or call.distinct or len(call.args) > 1:
        return None
    argument: Expr = call.args[0] if call.args and not isinstance(call.args[0], Star) else Number("1")
    columns = virtuals(argument)
    if len(columns) > MOST_CONDITIONS or not all(column.is_condition for column in columns):
        if call.name != "count":
            return None
        argument = Number("1")  # any row may have a value
    leaves = list(dict.fromkeys(node for node in walk(argument) if isinstance(node, Virtual)))
    ends: dict[Expr, tuple[Expr, Expr]] = {leaf: (Boolean(False), Boolean(True)) for leaf in leaves}
    condition = _sql(_concrete(call.filter), ctx)
    if condition is None and isinstance(argument, Number):
        return None
    outcomes = []
    for expr in corners(argument, leaves, ends):  # of a row that is not of the outcome a cast may fail
        value = ctx.duck.expression(lenient(expr))
        number = f"TRY_CAST(({value}) AS DOUBLE)"
        number = f"CASE WHEN system.main.isnan({number}) THEN 'inf'::DOUBLE ELSE {number} END"
        number = f"CASE WHEN ({value}) IS NOT NULL THEN 1.0::DOUBLE END" if call.name == "count" else number
        outcomes.append(relation.each(f"CASE WHEN {condition or 'true'} THEN {number} END"))
    return np.array(outcomes, dtype=np.float64)


def _different(values: Floats) -> Floats:
    """The different rows among (b, N), in their order."""
    return np.array(list({one.tobytes(): one for one in values}.values()))


def _factor(call: Call, ctx: Context) -> str | None:
    """SQL of what DuckDB knows of a SUM or AVG of a product with a value that a model reads; None: nothing."""
    if call.name not in ("sum", "avg", "mean") or call.distinct or len(call.args) != 1 or not is_semantic(call.args[0]):
        return None
    factors = _factors(call.args[0], ctx)
    condition = _sql(_concrete(call.filter), ctx)
    if not factors:
        return None
    product = " * ".join(factors)
    return product if condition is None else f"CASE WHEN {condition} THEN {product} END"


def _factors(expr: Expr, ctx: Context) -> list[str]:
    """The factors of a product, as SQL, in which no model has a part."""
    match expr:
        case Binary(op="*", left=left, right=right):
            return [*_factors(left, ctx), *_factors(right, ctx)]
        case Binary(op="/", left=left, right=right):
            below = [] if is_semantic(right) else [f"1.0 / system.main.nullif({ctx.duck.expression(right)}, 0)"]
            return [*_factors(left, ctx), *below]
        case Unary(op="-" | "+", operand=inner):
            return _factors(inner, ctx)
    return [] if is_semantic(expr) or isinstance(expr, Number) else [f"({ctx.duck.expression(expr)})"]


def _concrete(condition: Expr | None) -> list[Expr]:
    return [term for term in conjuncts(condition) if not is_semantic(term)]


def _sql(terms: Sequence[Expr], ctx: Context) -> str | None:
    """SQL that is true where the terms hold; None: of all rows."""
    return " AND ".join(f"coalesce({ctx.duck.expression(term)}, false)" for term in terms) or None


def number(call: Call, ctx: Context) -> str:
    """SQL of the number that a row adds to a call: of COUNT 1 or 0, else the value, NULL where there is none."""
    value = argument(call, ctx)
    return f"CAST(({value}) IS NOT NULL AS DOUBLE)" if call.name == "count" else f"TRY_CAST({value} AS DOUBLE)"


def values_of(call: Call, relation: Relation, ctx: Context) -> Floats:
    """(N,) what each candidate row would add to a call, NaN where NULL: 1 for COUNT of what is there, else the value.

    Args:
        call: an aggregate that reads no text.
    """
    values = relation.each(number(call, ctx))
    return np.where(values == 0.0, np.nan, values) if call.name == "count" else values


def argument(call: Call, ctx: Context) -> str:
    """SQL of what a call aggregates, NULL on rows that its FILTER leaves out."""
    star = not call.args or isinstance(call.args[0], Star)
    value = "1" if star else ctx.duck.expression(call.args[0])
    if call.filter is not None:
        return f"CASE WHEN {ctx.duck.expression(call.filter)} THEN {value} END"
    return value
