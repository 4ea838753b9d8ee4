"""Asking through a cascade: the small model where it is sure, else the large one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uql.compiler.virtual import VirtualColumn
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.cascade import CANDIDATES, Cascade, Learned, certainty, least_confidence
from uql.kernels.relation import Relation
from uql.llm.questions import Answers, Question, Row
from uql.operators.replies import YesNo


def takes(cascade: Cascade, questions: Sequence[Question], relation: Relation, ctx: Context) -> bool:
    """Are these conditions on so many rows that it pays to learn when the small model is sure, within the budget?

    Where LIMIT may stop at any row, only once as many rows have been asked as are needed to learn it.

    Args:
        cascade: the small model, and what was learnt of it for each question.
        questions: (q,) those of one stage.
    """
    if not all(isinstance(q.reply(), YesNo) for q in questions) or relation.n < CANDIDATES * cascade.labelled:
        return False
    if all(q in cascade.learned for q in questions):
        return True
    n_asked = max((int(answers.asked_mask.sum()) for answers in relation.answers.values()), default=0)
    if relation.filters.stops and n_asked < cascade.labelled:
        return False
    return ctx.purse.fits(2 * (cascade.labelled + relation.n) * len(questions))


async def ask(
    cascade: Cascade,
    columns: Sequence[VirtualColumn],
    questions: Sequence[Question],
    rids: Rids,
    rows: Sequence[Row],
    relation: Relation,
    ctx: Context,
) -> tuple[Answers, ...]:
    """The answers of the small model where it is sure, else those of the large one.

    Args:
        columns, questions: (q,) what is asked.
        rids, rows: (n,) the rows, and what is shown of each.
    Returns: (q,) the answers to each question, n each.
    """
    for column, question in zip(columns, questions, strict=True):
        if question not in cascade.learned:
            cascade.learned[question] = await _learn(cascade, column, question, relation, ctx)
    usable = [q for q in questions if cascade.learned[q].least <= 1]
    cheap: dict[Question, Answers] = {}
    if usable:
        replies = await ctx.gate.ask(usable, rows, source=relation.source, model=cascade.small)
        cheap = dict(zip(usable, replies, strict=True))
    settled = []
    for column, question in zip(columns, questions, strict=True):
        answers, by_model = await _settled(cascade, question, cheap.get(question), rids, rows, relation, ctx)
        relation[column].origin.mark_model(rids, by_model)
        settled.append(answers)
    return tuple(settled)


async def _settled(
    cascade: Cascade,
    question: Question,
    cheap: Answers | None,
    rids: Rids,
    rows: Sequence[Row],
    relation: Relation,
    ctx: Context,
) -> tuple[Answers, NDArray[np.int8]]:
    """The answers to one question, and whose they are: 1 the small model's, 2 the large one's, 0 where no model was asked."""
    learned = cascade.learned[question]
    values: list[Any] = list(cheap.values) if cheap is not None else [None] * len(rows)
    probabilities = np.array(cheap.probabilities, dtype=np.float64) if cheap is not None else np.full(len(rows), np.nan)
    shown = ~np.array([row.is_null for row in rows], dtype=bool)
    unsure = ~(certainty(probabilities) >= learned.least) & shown
    by_large = unsure.copy()
    for i, rid in enumerate(rids.tolist()):
        if rid in learned.large:
            by_large[i] = True
            values[i], unsure[i] = learned.large[rid], False
            probabilities[i] = float(bool(learned.large[rid]))
    at = np.flatnonzero(unsure)
    failures = [f for f in cheap.failures if not unsure[f.index]] if cheap is not None else []
    if len(at):
        (large,) = await ctx.gate.ask(
            [question], [rows[int(i)] for i in at], source=relation.source, model=cascade.large
        )
        for place, value, p in zip(at, large.values, large.probabilities, strict=True):
            values[place], probabilities[place] = value, p
        failures += [replace(f, index=int(at[f.index])) for f in large.failures]
    learned.by_large += int(by_large.sum())
    learned.by_small += int((shown & ~by_large).sum())
    by_model = np.where(by_large, 2, np.where(shown, 1, 0)).astype(np.int8)
    return Answers(values, probabilities, tuple(failures)), by_model


async def _learn(
    cascade: Cascade, column: VirtualColumn, question: Question, relation: Relation, ctx: Context
) -> Learned:
    """Asks both models about random candidates, and finds from which confidence on the small one may answer."""
    rng = np.random.default_rng([ctx.settings.seed, relation.n, column.id])
    rids = np.sort(rng.choice(relation.n, min(cascade.labelled, relation.n), replace=False)).astype(np.int64)
    rows = relation.rows(rids, [column])
    (cheap,) = await ctx.gate.ask([question], rows, source=relation.source, model=cascade.small)
    (right,) = await ctx.gate.ask([question], rows, source=relation.source, model=cascade.large)
    both = np.array([a is not None and b is not None for a, b in zip(cheap.values, right.values, strict=True)])
    labels = {int(rid): v for rid, v, ok in zip(rids, right.values, both, strict=True) if ok}
    differs = np.array([bool(a) != bool(b) for a, b in zip(cheap.values, right.values, strict=True)]) & both
    least, wrong = least_confidence(
        certainty(np.asarray(cheap.probabilities))[both], differs[both], cascade.accuracy, cascade.confidence
    )
    left_open = float(np.mean(~(certainty(np.asarray(cheap.probabilities))[both] >= least))) if both.any() else 1.0
    if cascade.small_cost + left_open >= 1.0:  # the large model alone costs less
        least = 2.0
    return Learned(least, wrong, int(both.sum()), labels)
