"""Conditions whose value is known from the text alone are settled before anything is asked."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from uql.compiler.logical import LogicalPlan, SemFilter, SqlFilter
from uql.compiler.syntax import Binary, Boolean, Expr, IsNull, Null, Number, String, Unary
from uql.compiler.walk import is_semantic, rewrite

_COMPARED = {"=": (0,), "<>": (-1, 1), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}


def constants(plan: LogicalPlan) -> LogicalPlan:
    """Filter(x, 1 = 1 AND c) → Filter(x, c); Filter(x, TRUE) → x; Filter(x, "t" AND FALSE) → SqlFilter(x, FALSE): "t" is never asked.

    Safe in three-valued logic: FALSE settles an AND and TRUE an OR whatever the other side is, NULL and failures included; TRUE in
    an AND and FALSE in an OR change nothing. NULL stays, since it is neither.
    """
    if not isinstance(plan, SemFilter | SqlFilter):
        return plan
    condition = rewrite(plan.condition, folded)
    if condition == Boolean(True):
        return plan.input
    if condition == plan.condition:
        return plan
    if isinstance(plan, SemFilter) and not is_semantic(condition):
        return SqlFilter(plan.input, condition)
    return replace(plan, condition=condition)


def folded(expr: Expr) -> Expr:
    """An expression whose parts are folded already, as a constant where it is one.

    >>> folded(Binary("OR", Null(), Boolean(True)))
    Boolean(value=True)
    """
    match expr:
        case Binary(op="AND" | "OR" as op, left=left, right=right):
            settles, neutral = Boolean(op == "OR"), Boolean(op == "AND")
            if settles in (left, right):
                return settles
            return right if left == neutral else left if right == neutral else expr
        case Unary(op="NOT", operand=Boolean(value=value)):
            return Boolean(not value)
        case Unary(op="NOT", operand=Null()):
            return Null()
        case IsNull(operand=Null(), negated=negated):
            return Boolean(not negated)
        case IsNull(operand=Number() | String() | Boolean(), negated=negated):
            return Boolean(negated)
        case Binary(op=op, left=left, right=right) if op in _COMPARED and Null() in (left, right):
            return Null()
        case Binary(op=op, left=Number(text=a), right=Number(text=b)) if op in _COMPARED:
            one, two = Decimal(a), Decimal(b)
            return Boolean(((one > two) - (one < two)) in _COMPARED[op])
        case Binary(op="=" | "<>" as op, left=String(value=c), right=String(value=d)):
            return Boolean((c == d) == (op == "="))
    return expr
