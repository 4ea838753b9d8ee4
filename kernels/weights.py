"""What every row adds to sums and means of stored values: known of all rows, though which of them count is not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uql.compiler.syntax import Call, Case, Null, Number, Star
from uql.compiler.walk import is_semantic
from uql.kernels.base import Context, Relation
from uql.kernels.duck import quote

Floats = NDArray[np.float64]


def stored_weights(calls: tuple[Call, ...], relation: Relation, ctx: Context) -> dict[Call, Floats]:
    """(N,) the stored value that a SUM or AVG weighs every candidate row with, where no model is needed for it."""
    found: dict[Call, Floats] = {}
    for call in calls:
        added = _stored(call, ctx)
        if added is not None:
            value = f"TRY_CAST({added} AS DOUBLE)"
            table = ctx.duck.arrow(f"SELECT coalesce({value}, 0) AS v FROM {quote(relation.name)} ORDER BY rowid")
            found[call] = np.asarray(table.column(0).to_numpy(zero_copy_only=False), dtype=np.float64)
    return found


def _stored(call: Call, ctx: Context) -> str | None:
    """SQL of what a row adds to a SUM or AVG if it counts, whatever texts decide that in a FILTER or in the CASE of the
    argument; None where the value itself is a model's, or 1."""
    if call.name not in ("sum", "avg", "mean") or call.distinct:
        return None
    if not is_semantic(call):
        return argument(call, ctx)
    match call.args:
        case (Case(operand=None, whens=(when,), default=default),):
            nothing = default is None or isinstance(default, Null)
            zero = call.name == "sum" and isinstance(default, Number) and float(default.text) == 0.0
            value = when.value if nothing or zero else None
        case (value,):
            pass
        case _:
            return None
    if value is None or is_semantic(value) or isinstance(value, Number):
        return None
    return ctx.duck.expression(value)


def importance(weights: dict[Call, Floats]) -> Floats | None:
    """(N,) how much a row's answer matters to the sums and means of a query, each as much as another: the root of the
    mean of the squares of what it adds to each, in units of that one's own root mean square."""
    parts = [np.abs(w) / (float(np.sqrt(np.mean(w**2))) or 1.0) for w in weights.values() if len(w)]
    return None if not parts else np.sqrt(np.mean(np.square(parts), axis=0))


def argument(call: Call, ctx: Context) -> str:
    """SQL of what a call aggregates, NULL on rows that its FILTER leaves out."""
    star = not call.args or isinstance(call.args[0], Star)
    value = "1" if star else ctx.duck.expression(call.args[0])
    if call.filter is not None:
        return f"CASE WHEN {ctx.duck.expression(call.filter)} THEN {value} END"
    return value
