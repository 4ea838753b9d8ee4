"""A cascade: a small model answers conditions, and a large one those of which the small one is not sure enough.

How sure is enough is learned, not guessed: rows drawn at random are asked of both models, and the least confidence is taken at which
the answers agree with the large model's as often as was asked for. The confidences are tried in a fixed sequence, from the strictest
on, each by an exact binomial test, up to the first one that fails: so the whole search keeps to one level (fixed-sequence testing;
Angelopoulos et al., *Learn then Test*, 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uql.compiler.virtual import VirtualColumn
from uql.llm.questions import Answers, Predicate, Question, Row
from uql.sampling.intervals import clopper_pearson

if TYPE_CHECKING:
    from uql.kernels.base import Context, Relation, Rids

LABELLED = 128  # rows asked of both models, at least
SLACK = 2.0  # times as many rows as would do if the models never differed
CANDIDATES = 4  # times as many candidates as labelled rows; below, the large model is asked all of them
CONFIDENCES = (0.99, 0.98, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5)


@dataclass(slots=True)
class Learned:
    """What the labelled rows say of one question.

    `least` is the confidence from which the small model's answer counts; above 1: never. `large` has the large model's answers.
    """

    least: float
    differ: int
    labelled: int
    large: dict[int, Any] = field(default_factory=dict)
    by_small: int = 0
    by_large: int = 0


@dataclass(slots=True)
class Cascade:
    """Two models. `accuracy` is the share of rows whose answer must be that of the large one, at `confidence`."""

    small: Any  # the name of a model, or a provider
    large: Any
    accuracy: float
    confidence: float
    names: tuple[str, str]
    small_cost: float = 0.0  # of a request, beside the large model's
    learned: dict[Question, Learned] = field(default_factory=dict)

    @property
    def labelled(self) -> int:
        """Rows asked of both models to learn from."""
        return labelled_rows(self.accuracy, self.confidence)

    def takes(self, questions: Sequence[Question], relation: Relation, ctx: Context) -> bool:
        """Are these conditions on so many rows that it pays to learn when the small model is sure, within the budget?

        Where LIMIT may stop at any row, only once as many rows have been asked as are needed to learn it.
        """
        if not all(isinstance(q, Predicate) for q in questions) or relation.n < CANDIDATES * self.labelled:
            return False
        if all(q in self.learned for q in questions):
            return True
        asked = max((int(rows.sum()) for rows in relation.asked.values()), default=0)
        if relation.stops and asked < self.labelled:
            return False
        return ctx.fits(2 * (self.labelled + relation.n) * len(questions))

    async def ask(
        self,
        columns: Sequence[VirtualColumn],
        questions: Sequence[Question],
        rids: Rids,
        rows: Sequence[Row],
        relation: Relation,
        ctx: Context,
    ) -> tuple[Answers, ...]:
        """The answers of the small model where it is sure, else those of the large one."""
        for column, question in zip(columns, questions, strict=True):
            if question not in self.learned:
                self.learned[question] = await self._learn(column, question, relation, ctx)
        usable = [q for q in questions if self.learned[q].least <= 1]
        cheap: dict[Question, Answers] = {}
        if usable:
            found = await ctx.gate.ask(usable, rows, source=relation.source, model=self.small)
            cheap = dict(zip(usable, found, strict=True))
        settled = []
        for column, question in zip(columns, questions, strict=True):
            answers, by_large = await self._settled(question, cheap.get(question), rids, rows, relation, ctx)
            relation.answered(column, rids, by_large)
            settled.append(answers)
        return tuple(settled)

    async def _settled(
        self,
        question: Question,
        cheap: Answers | None,
        rids: Rids,
        rows: Sequence[Row],
        relation: Relation,
        ctx: Context,
    ) -> tuple[Answers, NDArray[np.bool_]]:
        """The answers to one question, and where they are the large model's."""
        learned = self.learned[question]
        values: list[Any] = list(cheap.values) if cheap is not None else [None] * len(rows)
        probabilities = (
            np.array(cheap.probabilities, dtype=np.float64) if cheap is not None else np.full(len(rows), np.nan)
        )
        unsure = ~(certainty(probabilities) >= learned.least)
        unsure &= ~np.array([row.is_null for row in rows], dtype=bool)
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
                [question], [rows[int(i)] for i in at], source=relation.source, model=self.large
            )
            for place, value, p in zip(at, large.values, large.probabilities, strict=True):
                values[place], probabilities[place] = value, p
            failures += [replace(f, index=int(at[f.index])) for f in large.failures]
        learned.by_large += int(by_large.sum())
        learned.by_small += len(rows) - int(by_large.sum())
        return Answers(values, probabilities, tuple(failures)), by_large

    async def _learn(self, column: VirtualColumn, question: Question, relation: Relation, ctx: Context) -> Learned:
        """Asks both models about random candidates, and finds from which confidence on the small one may answer."""
        rng = np.random.default_rng([ctx.settings.seed, relation.n, column.id])
        rids = np.sort(rng.choice(relation.n, min(self.labelled, relation.n), replace=False)).astype(np.int64)
        rows = relation.rows(rids, [column])
        (cheap,) = await ctx.gate.ask([question], rows, source=relation.source, model=self.small)
        (right,) = await ctx.gate.ask([question], rows, source=relation.source, model=self.large)
        both = np.array([a is not None and b is not None for a, b in zip(cheap.values, right.values, strict=True)])
        known = {int(rid): v for rid, v, ok in zip(rids, right.values, both, strict=True) if ok}
        differs = np.array([bool(a) != bool(b) for a, b in zip(cheap.values, right.values, strict=True)]) & both
        least, wrong = least_confidence(
            certainty(np.asarray(cheap.probabilities))[both], differs[both], self.accuracy, self.confidence
        )
        left_open = float(np.mean(~(certainty(np.asarray(cheap.probabilities))[both] >= least))) if both.any() else 1.0
        if self.small_cost + left_open >= 1.0:  # the large model alone costs less
            least = 2.0
        return Learned(least, wrong, int(both.sum()), known)

    def notes(self) -> list[str]:
        """Which model answered, for each condition."""
        found, (small, large) = [], self.names
        for question, learned in self.learned.items():
            if learned.least > 1:
                found.append(
                    f'"{question.text}": {large} answered all rows; where {small} was sure it agreed too rarely, or its help would '
                    f"have cost more ({learned.labelled} rows were asked of both)"
                )
                continue
            found.append(
                f'"{question.text}": {small} answered {learned.by_small:,} rows, {large} {learned.by_large:,} '
                f"of which {small} was less sure than {learned.least:g}; at least {self.accuracy:.0%} of the answers are those of "
                f"{large} ({self.confidence:.0%}; {learned.differ} of {learned.labelled} rows asked of both differed)"
            )
        return found


def labelled_rows(accuracy: float, confidence: float) -> int:
    """Rows to be asked of both models, so that the target can be shown: SLACK times those needed if they never differed.

    >>> labelled_rows(0.95, 0.95), labelled_rows(0.99, 0.95)
    (128, 597)
    """
    return max(LABELLED, int(np.ceil(SLACK * np.log(1 - confidence) / np.log(accuracy))))


def certainty(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the likelier answer; NaN where the model gives no probability.

    >>> certainty(np.array([0.1, 0.5, 1.0])).tolist()
    [0.9, 0.5, 1.0]
    """
    found: NDArray[np.float64] = np.maximum(probabilities, 1.0 - probabilities)
    return found


def least_confidence(
    sure: NDArray[np.float64], differs: NDArray[np.bool_], accuracy: float, confidence: float
) -> tuple[float, int]:
    """The least confidence at which the small model may answer, and how many labelled rows are then answered differently.

    Args:
        sure: (m,) certainty of the small model's answers to the labelled rows.
        differs: (m,) where its answer is not the large one's.
        accuracy: share of all rows that must have the large model's answer; those left to the large model have it.
        confidence: of that statement.
    Returns: above 1 where no confidence will do.
    """
    least, wrong = 2.0, 0
    for threshold in CONFIDENCES:
        errors = int((differs & (sure >= threshold)).sum())
        if clopper_pearson(errors, len(sure), confidence, two_sided=False)[1] > 1.0 - accuracy:
            break
        least, wrong = threshold, errors
    return least, wrong
