"""The draw log of a run: which rows its samples were, written down before they are asked, and compared when it is resumed.

Samplers draw from the run's seed, so a resumed run draws the same rows again as long as table and answers are the same.
The log proves it: rows that have changed end the sitting before anything is sent; another course of the draws (a row
that had failed has an answer now) is said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from uql.base.errors import DataError
from uql.llm.ledger import Ledger
from uql.llm.run_record import Run


class DrawLog:
    """Of one sitting of one run.

    Attributes:
        kept: does the ledger outlive the run?
    """

    def __init__(self, ledger: Ledger, run: Run, warn: Callable[[str], None], persistent: bool) -> None:
        self._ledger, self._run, self._warn, self.persistent = ledger, run, warn, persistent
        self._before: dict[str, list[list[int]]] = {}  # what the log held when the sitting began, by step
        self._done: dict[str, int] = {}

    async def candidates(self, source: str, content: int) -> None:
        """The rows that a query block samples from, by a hash of their content in [0, 2⁶⁴).

        Raises: DataError (UQL413) where a resumed run had others.
        """
        if not await self._same(f"rows of {source}", [content]):
            raise DataError(
                f"the rows of {source} are not those that the run {self._run.id} began with",
                code="UQL413",
                help="run the statement anew: every answer that still fits is in the ledger",
            )

    async def log_draw(self, step: str, rows: NDArray[np.int64]) -> None:
        """A sampler chose these rows; to be called before they are asked."""
        if not await self._same(step, rows.tolist()):
            self._warn(
                f"resumed: from here on the sample ({step}) is another one, since rows that had failed are answered now"
            )

    def fact(self, name: str, now: Callable[[], bool]) -> bool:
        """What was so when the rows were first drawn, where the order of questions depends on it; at first, what is so now.

        What an earlier run did not note was not so: it was of a release that did not know of it.
        """
        if not self.persistent:
            return now()
        step = f"fact: {name}"
        before = self._ledger.draws(self._run.drawn_by, step)
        if not before:
            is_first = not self._run.again and self._run.drawn_by == self._run.id
            before = [[int(is_first and now())]]
            self._ledger.log_draw(self._run.drawn_by, step, before[0])
        return bool(before[0][0])

    async def _same(self, step: str, values: Sequence[int]) -> bool:
        """Are these the values of the last sitting at this place? New ones are appended."""
        if not self.persistent:
            return True
        at = self._done[step] = self._done.get(step, -1) + 1
        if self._run.again:
            if step not in self._before:
                self._before[step] = await asyncio.to_thread(self._ledger.draws, self._run.id, step)
            before = self._before[step]
            if at < len(before):
                return before[at] == list(values)
        await asyncio.to_thread(self._ledger.log_draw, self._run.id, step, values)
        return True
