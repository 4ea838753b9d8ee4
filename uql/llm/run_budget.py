"""The budget of a run that several processes share: each call is taken from the ledger before it is sent, tokens and USD in slices.

A process that dies keeps what it had taken: whether those calls were billed is not known, so they count. Who takes its rows over
takes calls anew, and is refused where there are none left. So all processes together never spend more than the run may.
"""

from __future__ import annotations

import asyncio

from uql.base.errors import DataError
from uql.llm.budget import Budget, Reservation
from uql.llm.ledger import Ledger

AT_ONCE = 64  # calls that one transaction takes
SLICES = 64  # of the tokens and the USD of the run


class RunBudget(Budget):
    """Of one process of the run; what waits at one moment is taken together, AT_ONCE calls at most.

    Args:
        ledger: that all processes share.
        run: the id of the run.
        calls, tokens, usd: of all processes together; None: without limit.
        seconds: of this process.
        sitting: of the run, whose tokens and USD these are.
    """

    def __init__(
        self,
        ledger: Ledger,
        run: str,
        calls: int | None,
        *,
        tokens: int | None = None,
        usd: float | None = None,
        seconds: float | None = None,
        sitting: str = "",
    ) -> None:
        super().__init__(
            calls=calls,
            tokens=None if tokens is None else 0,
            usd=None if usd is None else 0.0,
            seconds=seconds,
        )
        self._ledger, self._run, self._cap = ledger, run, calls
        self._whole, self._slices = (tokens, usd), f"slices of {run} {sitting}"
        self._n_slices, self._all_taken = 0, False
        self._slicing = asyncio.Lock()
        self._waiting: list[tuple[int, asyncio.Future[bool]]] = []
        self._taking: asyncio.Task[None] | None = None
        self._calls_left: int | None = None  # calls of the run, once it has fewer than were wanted
        self._giving: set[asyncio.Task[int]] = set()

    @property
    def calls_left(self) -> int | None:
        left = [n for n in (super().calls_left, self._calls_left) if n is not None]
        return min(left, default=None)

    @property
    def tokens_left(self) -> int | None:
        """Those of the run that this process has not spent; others may have."""
        left, whole = super().tokens_left, self._whole[0]
        return None if left is None or self.tokens is None or whole is None else left + whole - self.tokens

    async def reserve(self, reservation: Reservation) -> int | None:
        while not self._all_taken and self._misfit(reservation) in ("tokens", "usd"):
            await self._take_slice(reservation)
        ticket = await super().reserve(reservation)
        if ticket is None or self._cap is None:
            return ticket
        has_calls = False
        try:
            has_calls = await self._granted(reservation.calls)
        finally:
            if not has_calls:
                super().release(ticket)
        if not has_calls:
            self.exhausted = "calls"
        return ticket if has_calls else None

    async def _take_slice(self, reservation: Reservation) -> None:
        """Take one more slice, unless another call has taken one meanwhile."""
        async with self._slicing:
            if self._misfit(reservation) not in ("tokens", "usd"):
                return
            taken = await self._ledger.reserve(self._slices, SLICES, 1)
            self._n_slices, self._all_taken = self._n_slices + taken, not taken
            tokens, usd = self._whole
            self.tokens = None if tokens is None else tokens * self._n_slices // SLICES
            self.usd = None if usd is None else usd * self._n_slices / SLICES

    def release(self, ticket: int) -> None:
        calls = self.calls_of(ticket)
        super().release(ticket)
        self._give_back(calls)

    def _give_back(self, calls: int) -> None:
        if calls and self._cap is not None:
            giving = asyncio.get_running_loop().create_task(self._ledger.reserve(self._run, self._cap, -calls))
            self._giving.add(giving)
            giving.add_done_callback(self._gave)

    def _gave(self, giving: asyncio.Task[int]) -> None:
        """Calls that the ledger did not take back stay spent."""
        self._giving.discard(giving)
        if not giving.cancelled():
            giving.exception()

    async def _granted(self, calls: int) -> bool:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bool] = loop.create_future()
        self._waiting.append((calls, answer))
        if self._taking is None or self._taking.done():
            self._taking = loop.create_task(self._take_from_run())
        return await answer

    async def _take_from_run(self) -> None:
        """One transaction after the other, each for those that wait by then."""
        while self._waiting and self._cap is not None:
            part = [self._waiting.pop(0)]
            while self._waiting and sum(calls for calls, _ in part) + self._waiting[0][0] <= AT_ONCE:
                part.append(self._waiting.pop(0))
            demand = sum(calls for calls, _ in part)
            try:
                left = await self._ledger.reserve(self._run, self._cap, demand)
            except (DataError, RuntimeError) as error:  # RuntimeError: the ledger is closed
                for _, answer in part:
                    if not answer.done():
                        answer.set_exception(error)
                continue
            refused = left < demand
            for calls, answer in part:
                if calls <= left and not answer.done():  # one that is done was cancelled
                    left -= calls
                    answer.set_result(True)
                elif not answer.done():
                    answer.set_result(False)
            self._give_back(left)
            self._calls_left = left if refused else None
