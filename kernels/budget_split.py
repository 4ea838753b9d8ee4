"""The calls of a statement whose parts do with samples: each has its share of what is left when it begins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from uql.kernels.base import Context


@contextmanager
def others_to_come(parts: int, ctx: Context) -> Iterator[None]:
    """While so many parts of the statement that ask a model are still to come."""
    ctx.later += parts
    try:
        yield
    finally:
        ctx.later -= parts


@contextmanager
def sharing(needed: int, ctx: Context) -> Iterator[None]:
    """A part that needs more calls than are left does with its share of them: the parts after it have theirs."""
    held, left = ctx.held, ctx.calls_left
    if ctx.later and left is not None and needed > left:
        ctx.held = tuple(_others(before, step, ctx) for step, before in enumerate(held or (0,) * ctx.gate.steps))
    try:
        yield
    finally:
        ctx.held = held


def _others(held: int, step: int, ctx: Context) -> int:
    """What is held of a step of the budget, with the shares of the parts to come."""
    left = ctx.gate.left_at(step)
    own = 0 if left is None else max(0, left - held)
    return held + own - own // (1 + ctx.later)
