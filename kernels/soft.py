"""Counts by the model's probabilities in place of its yes and no: `WITH (soft = on)`.

Only where they were shown to be chances: by `uql calibrate` for this condition and model, or by the judged rows of `audit`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uql.compiler.physical import Block
from uql.compiler.syntax import Call, Star, Virtual
from uql.compiler.virtual import Kind, VirtualColumn
from uql.compiler.walk import is_semantic
from uql.errors import DataError
from uql.kernels.base import Context, Relation
from uql.kernels.judged import audited_probabilities
from uql.kernels.sample import Sampled
from uql.sampling.base import Estimate
from uql.sampling.soft import Calibration, soft_count

HOW = "uql calibrate \"the condition\" rows.csv fits and checks them; or name a table of judged rows, drawn at random: audit = 'table'"


@dataclass(frozen=True, slots=True)
class Soft:
    """A condition whose probabilities may stand for answers, and what labelled rows say of them."""

    column: VirtualColumn
    negated: bool
    found: Calibration

    def count(self, sampled: Sampled, relation: Relation, codes: NDArray[np.int64] | None, code: int) -> Estimate:
        """The number of rows for which the condition is true, in the group `code` where there are groups."""
        rows = sampled.told
        p = relation.probabilities[self.column.id][rows].astype(np.float64)
        p = np.where(np.isnan(p), sampled.truth.answers, 1 - p if self.negated else p)  # a NULL row is no for sure
        n = relation.n if codes is None else int((codes == code).sum())
        estimate = soft_count(sampled.sampler, p, n, self.found, None if codes is None else code)
        assert estimate is not None  # `soft` lets through only what holds
        return estimate


async def soft(block: Block, calls: tuple[Call, ...], relation: Relation, ctx: Context) -> Soft | None:
    """What counts by probabilities; None without `soft`, or where the model says nothing.

    Raises: DataError (UQL519) where the statement counts anything else, or the probabilities were not shown to be chances.
    """
    semantic = block.formula is not None or any(is_semantic(e) for e in (*calls, *(k.expr for k in block.keys)))
    if not ctx.settings.soft or not semantic:
        return None
    column, negated = _condition(block, calls)
    if ctx.cascade is not None:
        raise _refused("soft counts by one model's probabilities, and there are two models", "leave models or soft out")
    if ctx.settings.audit is not None:
        model = "the model"
        found = await audited_probabilities(column, relation, ctx)
    else:
        model, said = await ctx.gate.audited(relation.question(column))
        if said is None:
            raise _refused(f'nobody has checked the probabilities that {model} gives of "{column.text}"', HOW)
        found = Calibration(int(said["rows"]), said["bias"], said["error"], said["z"])
    found = Calibration(found.rows, found.bias, found.error, found.z, ctx.settings.confidence)
    if not found.holds:
        raise _refused(
            f'the probabilities that {model} gives of "{column.text}" are no chances: over {found.rows:,} labelled rows they '
            f"are off by {found.bias:+.3f} on average ({found.confidence:.0%}: {found.low:+.3f} to {found.high:+.3f}), "
            f"and their spread has z = {found.z:.1f}",
            f"leave soft out, label more rows, or: {HOW}",
        )
    ctx.notes.append(
        f'counted by the probabilities of "{column.text}": over {found.rows:,} labelled rows they are off by '
        f"{found.bias:+.3f} on average ({found.confidence:.0%}: {found.low:+.3f} to {found.high:+.3f})"
    )
    return Soft(column, negated, found)


def _condition(block: Block, calls: tuple[Call, ...]) -> tuple[VirtualColumn, bool]:
    """The one condition of the WHERE, and whether NOT stands before it."""
    formula = block.formula
    plain = formula is not None and formula.program in ((0,), (0, "NOT"))
    leaf = formula.leaves[0].expr if plain and formula is not None else None
    counts = all(
        c.name == "count" and not c.distinct and c.filter is None and (not c.args or isinstance(c.args[0], Star))
        for c in calls
    )
    concrete = not any(is_semantic(key.expr) for key in block.keys)
    if isinstance(leaf, Virtual) and leaf.column.kind is Kind.CONDITION and counts and concrete and formula is not None:
        return leaf.column, formula.program != (0,)
    raise _refused(
        'soft counts the rows of one quoted condition: COUNT(*) … WHERE "…", over all rows or by stored columns',
        "leave soft out",
    )


def _refused(what: str, instead: str) -> DataError:
    return DataError(what, code="UQL519", help=instead)
