"""What every kernel is given beside its rows: one run of a statement."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from uql.base.schema import Table
from uql.base.settings import Settings
from uql.compiler.choice import Plans
from uql.compiler.formula import Masks
from uql.compiler.physical import Block, PhysicalPlan
from uql.kernels.answers import Rids, RowError
from uql.kernels.cascade import Cascade
from uql.kernels.duck import Duck
from uql.kernels.kept_proxy import StatedSet
from uql.kernels.purse import Purse
from uql.kernels.row_features import RowFeatures
from uql.llm.draws import DrawLog
from uql.llm.gate import Gate
from uql.llm.questions import Answers, Question, Row, Write
from uql.sampling.base import Estimate


class Memory(Protocol):
    """What earlier queries taught, as kernels see it."""

    rates: dict[str, tuple[int, int]]  # of terms by name: answers, and how many of them are true
    descriptions: dict[str, str]  # that a model proposed of quoted texts, by `uql.kernels.descriptions.key`

    def answers(self, name: str) -> Masks | None: ...

    def keep(self, name: str, masks: Masks) -> None: ...

    def output_tokens(self) -> dict[str, float]: ...


@dataclass(frozen=True, slots=True)
class Stored:
    """The rows of a sub-query as a temporary table.

    `bounds`: of the columns that are estimates, the columns where the ends of their intervals stand. `certain`: are these the rows that
    there would be if every row had been asked? `exact`: as `Output` says it.
    """

    table: Table
    bounds: dict[str, tuple[str, str]]
    certain: bool
    exact: bool
    calls: int = 0  # rows asked for its estimates
    unknown: int = 0  # of these, that gave no answer


@dataclass(slots=True)
class Context:
    """One run: the gate, the settings, one random generator, and what there is to say about the result."""

    gate: Gate
    settings: Settings
    rng: np.random.Generator
    duck: Duck
    errors: list[RowError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    based_on: list[str] = field(default_factory=list)  # estimated tables that the result rests on
    partial: bool = False
    memory: Memory | None = None
    on_estimate: Callable[[str, Estimate], None] | None = None  # the estimate so far, by name
    on_budget: Callable[[int], None] | None = None  # the calls that the statement may make, once a pilot foretells them
    cascade: Cascade | None = None  # a small and a large model for conditions
    plans: Plans | None = None  # what was known before the run, by which its plans are chosen
    # what a small model's scores of every row cost, in USD; 0 where there are none or the price is not known
    scores_usd: Callable[[Block], float] = lambda block: 0.0
    features: RowFeatures | None = None  # None: samples and searches go without
    # names and descriptions of groups by their text: those found, and those of a semantic table, which stay
    groups: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)
    groups_stay: bool = False
    # of a semantic table: is the score of a stated set kept, and the set that was stated, of the table before and of this run
    keeps_proxy: bool = False
    stated: StatedSet | None = None
    # sub-queries that were run, and their rows
    stored: dict[tuple[int, tuple[str, ...]], tuple[PhysicalPlan, Stored]] = field(default_factory=dict)
    draws: DrawLog | None = None  # where samples are written down before they are asked; None: nowhere
    parts: int = 0  # of the statement, that have begun to draw
    stream: Any = None  # where `rng` goes on for the next part, after this one went on with the draws of an earlier run
    purse: Purse = field(init=False)

    def __post_init__(self) -> None:
        self.purse = Purse(self.gate.budget)

    def note_once(self, about: str, text: str) -> None:
        """A note in place of an earlier one about the same."""
        self.notes[:] = [*(note for note in self.notes if not note.startswith(about)), about + text]

    def begin_steps(self) -> None:
        """A part of the statement begins to draw, with the calls and the random numbers that it had in the run that drew first."""
        self.purse.begin_steps()
        self.parts += 1
        if self.stream is not None:
            self.rng.bit_generator.state, self.stream = self.stream, None

    def next_step(self) -> bool:
        """Go on where an earlier run with fewer calls ended, with random numbers of its own; False: there is no more to spend."""
        if not self.purse.next_step():
            return False
        if self.stream is None:
            self.stream = self.rng.bit_generator.state
        own = np.random.default_rng([self.settings.seed, self.parts, self.purse.budget.step])
        self.rng.bit_generator.state = own.bit_generator.state
        return True

    def room(self, kept: int, each: int) -> int | None:
        """Rows that may be asked now: as many as the step of the budget leaves, of the first one on that leaves any; None: without limit.

        So a larger budget looks at answers where the smaller one did, and asks the same rows.

        Args:
            kept: calls that are kept for what follows.
            each: calls that a row takes.
        """
        while (left := self.purse.remaining_in_step) is not None:
            rows = (left - kept) // max(1, each)
            if rows > 0 or not self.next_step():
                return max(0, rows)
        return None

    async def draw_earlier(self, needed: int, draw: Callable[[], Awaitable[Any]]) -> None:
        """Draws what earlier runs drew, where their calls did not reach every row and those of this one do: the parts of the
        statement to come then have the calls that they had.

        Args:
            needed: calls that every row takes.
            draw: as with the calls of the runs before.
        """
        if not self.purse.last_step or not self.purse.has_later_parts or self.purse.fits_now(needed):
            return
        notes, partial = list(self.notes), self.partial
        with self.purse.until(self.purse.last_step - 1):
            await draw()
        self.notes[:], self.partial = notes, partial
        while self.next_step():
            pass

    @contextmanager
    def as_drawn(self) -> Iterator[None]:
        """Rows are drawn, by the model's answers: those of people that came after the draw are put in their place behind it
        (`Relation.overrule`), so that a correction changes its row and not the sample."""
        before, self.gate.as_drawn = self.gate.as_drawn, True
        try:
            yield
        finally:
            self.gate.as_drawn = before

    def fact(self, name: str, now: Callable[[], bool]) -> bool:
        """What was so when the rows of this run were first drawn; at first, what is so now."""
        return now() if self.draws is None else self.draws.fact(name, now)

    async def log_draw(self, step: str, rows: Rids) -> None:
        """Writes down which rows a sampler chose, before they are asked."""
        if self.draws is not None:
            await self.draws.log_draw(step, rows)

    async def ask(
        self, questions: Sequence[Question], rows: Sequence[Row], source: str = "", together: int = 1
    ) -> tuple[Answers, ...]:
        """The answers to questions about rows.

        Args:
            questions: (q,) put about each row.
            rows: (n,) what is shown.
            source: the table that the rows come from, by which the ledger can forget their answers.
            together: rows that share one request.
        Returns: (q,) the answers to each question, n each.
        """
        return await self.gate.ask(questions, rows, source=source, together=together)

    async def describes(self) -> bool:
        """Are groups named with a description? Small local models do worse with one."""
        return bool((await self.gate.provider()).capabilities.descriptions)

    async def write(self, question: Write, *, source: str = "", optional: bool = False) -> Any:
        """The reply to one request about many rows, or None where there is none; the failure is in `errors`.

        Args:
            question: shows its rows itself.
            source: the table whose rows it shows.
            optional: it only makes the answer better: its failure is a warning.
        """
        (answers,) = await self.gate.ask([question], [Row()], source=source)
        for failure in answers.failures:
            if optional:
                self.warnings.append(f'{question.task} for "{question.text}": {failure.message}')
            else:
                self.errors.append(RowError(-1, question.text, failure.kind, failure.message, failure.raw))
        return answers.values[0]
