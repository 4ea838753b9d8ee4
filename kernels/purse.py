"""What the parts of a statement may spend: calls, tokens, money and seconds, in one object over the budget of the run.

Parts that do with samples share the calls: each has its share of what is left when it begins, and the parts after it have theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import accumulate

from uql.base.errors import BudgetError
from uql.compiler.syntax import NO_SPAN, Span
from uql.llm.budget import Budget


class Purse:
    """What remains of a budget for the part of the statement that runs.

    A run that continues the draws of an earlier one with fewer calls spends in steps: `remaining_in_step` is what the step leaves, and sets
    the size of the sample; `remaining` is what may be spent in all. Tokens, USD and the deadline belong to the budget.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._later = 0  # parts of the statement that ask a model and run after this one
        # calls kept for them while this part does with a sample, by step of the budget
        self._reserved: tuple[int, ...] = ()
        self._end: int | None = None  # the last step of the budget that may be spent; None: that of the run

    # ---------------------------------------------------------------------------------------------------------- what is left
    @property
    def remaining(self) -> int | None:
        """Calls that may still be made; None: without limit."""
        left = self.budget.left_at(self.last_step)
        return None if left is None else max(0, left - self._held_at(self.last_step))

    @property
    def remaining_in_step(self) -> int | None:
        """Calls that the step of the budget leaves; None: without limit."""
        step = self.budget.step
        left = self.budget.left_at(step)
        return None if left is None else max(0, left - self._held_at(step))

    @property
    def tokens_left(self) -> int | None:
        """Tokens that one more request may take for sure, whatever the largest so far reserved; None: without limit."""
        left = self.budget.tokens_left
        return None if left is None else max(0, left - self.budget.largest_tokens)

    @property
    def usd_a_call(self) -> float:
        """USD that a call cost on average; 0 where none was paid or the price is not known."""
        return self.budget.usd_a_call

    def fits(self, calls: int) -> bool:
        """Does the budget leave that many calls?"""
        left = self.remaining
        return left is None or calls <= left

    def fits_now(self, calls: int) -> bool:
        """Does the step of the budget leave that many calls?"""
        left = self.remaining_in_step
        return left is None or calls <= left

    def need(self, calls: int, what: str, less: str = "", span: Span = NO_SPAN) -> None:
        """Checks before any of them is sent that so many calls fit.

        Args:
            what: that takes them.
            less: what would take fewer; "": nothing is known.
            span: the text that they are for.
        Raises: BudgetError (UQL401) where they do not fit.
        """
        left = self.remaining
        if left is not None and calls > left:
            paid = self.budget.spent_calls  # by a part before, which a larger budget may let spend more
            ways = [less, "" if paid else f"WITH (budget = {calls})", "WITH (budget = 'all')"]
            raise BudgetError(
                f"{what} needs {calls:,} calls and the budget leaves {left:,}; {'no more' if paid else 'nothing'} was sent",
                help=", or ".join(filter(None, ways)),
                span=span,
            )

    # --------------------------------------------------------------------------------------------------------------- limits
    def allow(self, calls: int) -> None:
        """Lets this part make so many calls, where fewer are left."""
        self.budget.allow(calls + self._held_at(len(self.budget.steps)))

    @contextmanager
    def beside(self, calls: int) -> Iterator[None]:
        """Within it so many calls more may be made; after it the budget is what it was."""
        left = self.budget.calls_left
        self.budget.extend(calls)
        try:
            yield
        finally:
            if left is not None:
                self.budget.extend(left - (self.budget.calls_left or 0))

    # ---------------------------------------------------------------------------------------------------- steps of the budget
    def begin_steps(self) -> None:
        """A part of the statement begins: it spends what the first step leaves, then what the next ones do."""
        self.budget.begin()

    def next_step(self) -> bool:
        """Go on to the next step of the budget; False: this is the last."""
        more = self.has_next_step
        self.budget.step += more
        return more

    @property
    def has_next_step(self) -> bool:
        """Is this not the last step?"""
        return self.budget.step < self.last_step

    @property
    def last_step(self) -> int:
        """The number of the step behind which there is none, from 0 on."""
        return len(self.budget.steps) if self._end is None else self._end

    @contextmanager
    def until(self, step: int) -> Iterator[None]:
        """Within it a step is the last one: the statement has the calls of the run that ended with it."""
        before, self._end = self._end, step
        try:
            yield
        finally:
            self._end = before

    # ---------------------------------------------------------------------------------------------------- parts of a statement
    @property
    def has_later_parts(self) -> bool:
        """Are parts of the statement that ask a model still to come?"""
        return self._later > 0

    @contextmanager
    def others_to_come(self, parts: int) -> Iterator[None]:
        """While so many parts of the statement that ask a model are still to come."""
        self._later += parts
        try:
            yield
        finally:
            self._later -= parts

    def sharing(self, needed: int) -> AbstractContextManager[None]:
        """A part that needs more calls than are left does with its share of them: the parts after it have theirs.

        What a step of the budget keeps for them is kept in the next ones too: the run that ended with it has spent that.
        """
        kept = accumulate((self._with_others(s, needed) for s in self._steps), max)
        return self._holding(kept if self._later else self._reserved)

    def share(self, others: int) -> AbstractContextManager[None]:
        """Within it so many parts like this one are kept the same share of what is left."""
        return self._holding(self._held_at(s) + self._own_at(s) - self._own_at(s) // (1 + others) for s in self._steps)

    def keeping(self, calls: int) -> AbstractContextManager[None]:
        """Within it so many calls are kept for what follows: at most a quarter of what is left."""
        return self._holding(self._held_at(s) + min(calls, self._own_at(s) // 4) for s in self._steps)

    @contextmanager
    def _holding(self, calls: Iterable[int]) -> Iterator[None]:
        """Within it so many calls of each step of the budget are kept for other parts."""
        before = self._reserved
        self._reserved = tuple(calls)
        try:
            yield
        finally:
            self._reserved = before

    @property
    def _steps(self) -> range:
        return range(len(self.budget.steps) + 1)

    def _with_others(self, step: int, needed: int) -> int:
        """What is held of a step of the budget, with the shares of the parts to come where one needs more calls than it leaves."""
        reserve, own = self._held_at(step), self._own_at(step)
        return reserve + own - own // (1 + self._later) if needed > own else reserve

    def _own_at(self, step: int) -> int:
        """Calls that a step of the budget leaves to this part; 0: also where they have no limit."""
        left = self.budget.left_at(step)
        return 0 if left is None else max(0, left - self._held_at(step))

    def _held_at(self, step: int) -> int:
        """Calls of a step that are kept for other parts of the statement."""
        return self._reserved[min(step, len(self._reserved) - 1)] if self._reserved else 0
