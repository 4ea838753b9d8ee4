"""The 'attribute' method of joins: a condition on two rows, decided from one attribute of each row.

n + m calls in place of n · m: the model names an attribute with its possible values and says which pairs of values match; every
distinct row is classified once, and pairs are joined by value. A row whose text is one of the values has that value, and is not asked.
Before anything relies on it, random pairs are asked outright and compared with what the attribute says; what was found is checked again
on pairs that it says match.

A small model cannot be the judge of that: what it says of two texts side by side is near chance. Where a condition says by its words
that an attribute of both is the same or not (`attribute_comparison`), such a model is asked for the attribute in place of the pairs, and
what is checked is that the attribute has few values: from other rows the model must name the same ones, and nearly every row must have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uql.compiler.formula import Masks
from uql.compiler.pair_attribute import AttributeComparison, attribute_comparison
from uql.compiler.physical import Stage
from uql.compiler.syntax import Column
from uql.compiler.virtual import VirtualColumn
from uql.kernels import asking
from uql.kernels.answers import Rids
from uql.kernels.asking import apply_corrections
from uql.kernels.base import Context
from uql.kernels.pair_conditions.compare_texts import compare
from uql.kernels.pair_conditions.values import AttributeValues, Side, propose
from uql.kernels.relation import Relation
from uql.sampling.intervals import clopper_pearson

METHOD = "attribute"
RANDOM_PAIRS = 32  # asked outright, to see whether the attribute decides the condition
FOUND_PAIRS = 32  # that the attribute says match, asked outright
# a right attribute reaches it with a model that is wrong one time in ten; a wrong one of two values has 0.5
LEAST_AGREEMENT = 0.75


@dataclass(frozen=True, slots=True)
class Checked:
    """All pairs of a relation, answered from an attribute that was checked on random ones."""

    wrong: float | None
    rows_asked: int

    def calls(self, rids: Rids | None) -> int:
        return 0

    async def answer(self, rids: Rids, ctx: Context) -> None:
        """Nothing is left to be asked."""

    def draw_answers(self, rng: np.random.Generator) -> Masks | None:
        return None


async def by_attribute(column: VirtualColumn, relation: Relation, ctx: Context) -> bool:
    """Answers a condition for all pairs of the relation from one attribute a side; False where that is not to be relied on.

    Tried where the distinct pairs do not fit in the budget and the distinct rows do, or `method = 'attribute'` asks for it. The result
    is then not exact, and a note gives the agreement measured. Pairs asked outright keep their own answers; those with a row that has
    none of the values are asked outright too, or are unknown where the budget does not reach them.

    Args:
        column: a condition on pairs of rows.
    """
    if relation[column].derived is not None:
        return True
    comparison = await _named(column, ctx)
    sides_of = _sides_of(column, comparison is not None)
    if not relation.n or sides_of is None or relation.pool is not None:
        return False
    if comparison is None and ctx.settings.method != METHOD and ctx.purse.fits(relation.calls((Stage((column,)),))):
        return False
    sides = (Side.of(column, sides_of[0], relation), Side.of(column, sides_of[1], relation))
    if comparison is not None:
        return await compare(column, comparison, sides, relation, ctx)
    rows = set(sides[0].rows) | set(sides[1].rows)
    check = min(RANDOM_PAIRS + FOUND_PAIRS, relation.n)
    if not ctx.purse.fits_now(1 + len(rows) + check):
        return False
    proposal = await propose(column, sides, relation.source, ctx)
    if proposal is None:
        return False
    attribute_values = AttributeValues(proposal, sides, ctx, relation.source)
    random_pairs = np.sort(ctx.rng.choice(relation.n, min(RANDOM_PAIRS, relation.n), replace=False)).astype(np.int64)
    agreed, n = await _agreement(column, attribute_values, random_pairs, relation, ctx)
    if n == 0 or agreed < LEAST_AGREEMENT * n:
        ctx.notes.append(f'"{proposal.text}" does not decide "{column.text}": {agreed} of {n} random pairs agree')
        return False
    predictions = await attribute_values.pairs(np.arange(relation.n, dtype=np.int64))
    yes = np.flatnonzero((predictions == 1) & ~relation[column].asked_mask)
    confirmed, m = 0, 0
    if len(yes):
        some = np.sort(ctx.rng.choice(yes, min(FOUND_PAIRS, len(yes)), replace=False)).astype(np.int64)
        confirmed, m = await _agreement(column, attribute_values, some, relation, ctx)
        if confirmed < LEAST_AGREEMENT * m:
            ctx.notes.append(f'"{proposal.text}" does not decide "{column.text}": {confirmed} of {m} pairs found hold')
            return False
    fill = (predictions >= 0) & ~relation[column].asked_mask
    relation[column].values[fill] = (predictions[fill] == 1).astype(object)
    relation[column].asked_mask |= fill
    apply_corrections(column, np.flatnonzero(fill).astype(np.int64), relation, ctx)
    await _ask_or_leave(column, np.flatnonzero(~relation[column].asked_mask).astype(np.int64), relation, ctx)
    if fill.any():
        level = ctx.settings.confidence
        low, high = clopper_pearson(agreed, n, level)
        relation[column].derived = Checked(1 - low, attribute_values.rows_asked)
        ctx.notes.append(
            f'"{column.text}" was decided from "{proposal.text}" of each row: {agreed} of {n} random pairs asked outright agree '
            f"({level:.0%}: {low:.1%}–{high:.1%})"
            + (f", {confirmed} of {m} pairs that match were confirmed" if m else "")
        )
    return True


async def preferred(column: VirtualColumn, ctx: Context) -> bool:
    """Is an attribute tried before any pair is asked? Where the query says so, or the condition's words do to a small model."""
    return ctx.settings.method == METHOD or await _named(column, ctx) is not None


async def prefer(columns: Sequence[VirtualColumn], relation: Relation, ctx: Context) -> None:
    """Has comparisons answered from an attribute where that is preferred, and notes those of which pairs are asked all the same.

    Args:
        columns: conditions; those that are not about pairs are left alone.
    """
    for column in columns:
        if not await preferred(column, ctx) or await by_attribute(column, relation, ctx):
            continue
        if await _named(column, ctx) is not None:
            ctx.notes.append(
                f'"{column.text}" was asked of pairs, and this model is near chance on two texts side by side: more calls (budget = n) '
                "let it be decided from the attribute of each row"
            )


async def _named(column: VirtualColumn, ctx: Context) -> AttributeComparison | None:
    """The comparison that the condition is by its words, where the model cannot weigh two texts; None where pairs are to be asked."""
    comparison = attribute_comparison(column.text) if column.is_condition else None
    if comparison is None or ctx.settings.method not in (None, METHOD):
        return None
    return None if (await ctx.gate.provider()).capabilities.weighs_pairs else comparison


async def _ask_or_leave(column: VirtualColumn, rids: Rids, relation: Relation, ctx: Context) -> None:
    """Pairs with a row that has none of the values: asked outright where all fit in the budget, else unknown."""
    stage = Stage((column,))
    if not len(rids):
        return
    if ctx.purse.fits(relation.calls((stage,), rids)):
        await asking.ask(stage, rids, relation, ctx)
        return
    relation[column].asked_mask[rids] = True
    relation[column].failed[rids] = True
    ctx.notes.append(f'"{column.text}": {len(rids):,} pairs have a row with none of the values, and are unknown')


def _sides_of(column: VirtualColumn, has_comparison: bool) -> tuple[tuple[Column, ...], tuple[Column, ...]] | None:
    """The columns of both sides: those of two tables, or the two of one table that a comparison by its words names."""
    own = column.inputs
    if column.is_pair_condition:
        one, two = dict.fromkeys(c.table for c in own)
        return tuple(c for c in own if c.table == one), tuple(c for c in own if c.table == two)
    if not has_comparison or not column.is_condition or len(column.reads) != 2 or column.holes:
        return None
    return (own[0],), (own[1],)


async def _agreement(
    column: VirtualColumn, attribute_values: AttributeValues, rids: Rids, relation: Relation, ctx: Context
) -> tuple[int, int]:
    """Asks these pairs outright: how many the attribute gets right, of how many that have both answers."""
    predictions = await attribute_values.pairs(rids)
    await asking.ask(Stage((column,)), rids, relation, ctx)
    answers = relation[column].values[rids]
    both = np.array([v is not None for v in answers], dtype=bool) & (predictions >= 0)
    right = [bool(v) == bool(s) for v, s in zip(answers[both], predictions[both], strict=True)]
    return sum(right), int(both.sum())
