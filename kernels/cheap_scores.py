"""What the small model of `models = ['small', 'large']` says of every row, as a score: it guides which rows the large one is asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uql.base.errors import BudgetError, ConfigError
from uql.compiler.formula import TRUE, Leaf
from uql.compiler.physical import Block
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.kernels.base import Context
from uql.kernels.relation import Relation
from uql.kernels.sem_filter import truth_of
from uql.sampling.base import Floats
from uql.sampling.surrogate import logit

AT_ONCE = 4096  # rows whose requests are made at once
SAID = 0.9  # chance that stands for a yes without a probability


@dataclass(frozen=True, slots=True)
class CheapScores:
    """What the small model says of each row.

    Attributes:
        odds: (N,) log-odds that it passes, NaN where there is no answer.
        score: (N,) the same with mean 0 and variance 1, 0 where there is no answer.
    """

    odds: Floats
    score: Floats

    @property
    def unanswered(self) -> int:
        """Rows without an answer."""
        return int(np.isnan(self.odds).sum())


async def cheap_scores(block: Block, relation: Relation, ctx: Context) -> CheapScores | None:
    """Asks the small model about every candidate, beside the budget, which is the large one's; max_cost and the like hold for both.

    None where there is no small model, where it may not be asked (a budget of 0), where it finds all rows alike, and, with a note,
    where the WHERE holds a text that is not a condition on single rows.

    Args:
        block: whose WHERE is scored.
        relation: its candidates.
        ctx: of the run.
    Raises: ConfigError (UQL105) where `model` names another model than the large one, which labels the rows; BudgetError (UQL401) with
        the need where max_cost does not pay for the scores.
    """
    cascade, formula = ctx.cascade, block.filter.formula
    if cascade is None or formula is None or ctx.purse.remaining == 0:
        return None
    small, large = cascade.names
    labels = (await ctx.gate.provider()).name
    if labels != (await ctx.gate.provider(cascade.large)).name:
        raise ConfigError(
            f"with a precision or a recall the second of models = ['{small}', '{large}'] answers the rows, "
            f"and model names {labels!r} for it",
            help="leave model out",
        )
    conditions = {c for leaf in formula.leaves if (c := _condition(leaf)) is not None}
    if any(leaf.semantic and _condition(leaf) is None for leaf in formula.leaves):
        ctx.notes.append(f"{small} was not asked: it scores conditions on rows alone, and the WHERE holds another text")
        return None
    columns = sorted(conditions, key=lambda c: c.id)
    await _check_cost(block, columns, relation, ctx)
    chance = {column: await _chance(column, relation, ctx) for column in columns}
    rows = np.arange(relation.n, dtype=np.int64)
    leaves = []
    for leaf in formula.leaves:
        column = _condition(leaf)
        if column is not None:
            leaves.append(chance[column])
        else:
            leaves.append((truth_of(leaf, rows, relation) == TRUE).astype(np.float64))
    odds = logit(formula.chance(np.stack(leaves)))
    fine = np.isfinite(odds)
    spread = float(odds[fine].std()) if fine.any() else 0.0
    if spread == 0.0:
        ctx.notes.append(f"{small} gave every row the same score, which guides nothing")
        return None
    score = np.where(fine, (odds - odds[fine].mean()) / spread, 0.0)
    return CheapScores(np.where(fine, odds, np.nan), score)


async def _check_cost(block: Block, columns: list[VirtualColumn], relation: Relation, ctx: Context) -> None:
    """Raises BudgetError (UQL401) where the scores that the ledger does not have cost more than max_cost: a part of them is of no use."""
    assert ctx.cascade is not None
    most, (small, large) = ctx.settings.max_cost, ctx.cascade.names
    if most is None or (every := ctx.scores_usd(block)) <= most:
        return
    left = 0
    for column in columns:
        rows = relation.rows(np.arange(relation.n, dtype=np.int64), [column])
        left += await ctx.gate.unanswered([relation.question(column)], rows, ctx.cascade.small)
    usd = every * left / (relation.n * len(columns))
    if usd > most:
        raise BudgetError(
            f"max_cost = {most:g} does not pay for the scores of {small}: about {usd:.4f} USD for {left:,} answers",
            help=f"a larger max_cost, for the scores and what {large} answers; EXPLAIN prints the price of each",
        )


def _condition(leaf: Leaf) -> VirtualColumn | None:
    """The condition on single rows that a leaf of WHERE is; None: it is something else."""
    column = leaf.expr.column if isinstance(leaf.expr, Virtual) else None
    return column if column is not None and column.is_condition and not column.is_pair_condition else None


async def _chance(column: VirtualColumn, relation: Relation, ctx: Context) -> Floats:
    """(N,) the chance that each row meets a condition, by the small model; NaN where it has no answer."""
    assert ctx.cascade is not None
    chance = np.full(relation.n, np.nan)
    with ctx.purse.beside(relation.n):
        for start in range(0, relation.n, AT_ONCE):
            rids = np.arange(start, min(start + AT_ONCE, relation.n), dtype=np.int64)
            (answers,) = await ctx.gate.ask(
                [relation.question(column)],
                relation.rows(rids, [column]),
                source=relation.source,
                model=ctx.cascade.small,
            )
            by_answer = np.array([np.nan if v is None else SAID if v else 1 - SAID for v in answers.values])
            probabilities = np.asarray(answers.probabilities, np.float64)
            chance[rids] = np.where(np.isnan(by_answer) | np.isnan(probabilities), by_answer, probabilities)
    return chance
