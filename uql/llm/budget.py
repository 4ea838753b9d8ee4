"""The budget of a run: calls, tokens, USD, seconds. Reserved before sending, so never exceeded by anything."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one request may cost at most; a request that carries r rows is r calls."""

    tokens: int
    usd: float
    calls: int = 1


class Budget:
    """Caps of a run; None is no cap.

    Calls are spent by sending. Tokens and USD are reserved at their upper bound and settled at what was paid; where a
    reservation does not fit, it waits for those in flight to settle, and is refused when none is.
    """

    def __init__(
        self,
        *,
        calls: int | None = None,
        tokens: int | None = None,
        usd: float | None = None,
        seconds: float | None = None,
    ) -> None:
        self.calls, self.tokens, self.usd = calls, tokens, usd
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.spent_calls = 0
        self.spent_tokens = 0
        self.spent_usd = 0.0
        self.largest_tokens = 0  # of one reservation so far
        self._open: dict[int, Reservation] = {}
        self._next = 0
        self._settled: asyncio.Event | None = None
        self.exhausted: str | None = None  # which cap was reached: "calls", "tokens", "usd", "seconds"

    @property
    def calls_left(self) -> int | None:
        return None if self.calls is None else max(0, self.calls - self.spent_calls)

    @property
    def tokens_left(self) -> int | None:
        """Tokens that are neither spent nor reserved; None: without limit."""
        if self.tokens is None:
            return None
        return max(0, self.tokens - self.spent_tokens - sum(r.tokens for r in self._open.values()))

    @property
    def seconds_left(self) -> float | None:
        return None if self.deadline is None else self.deadline - time.monotonic()

    def _misfit(self, wanted: Reservation) -> str | None:
        """The cap that `wanted` would break, beside what is spent and reserved."""
        if self.calls is not None and self.spent_calls + wanted.calls > self.calls:
            return "calls"
        left = self.seconds_left
        if left is not None and left <= 0:
            return "seconds"
        if self.tokens is not None:
            held = sum(r.tokens for r in self._open.values())
            if self.spent_tokens + held + wanted.tokens > self.tokens:
                return "tokens"
        if self.usd is not None:
            held_usd = sum(r.usd for r in self._open.values())
            if self.spent_usd + held_usd + wanted.usd > self.usd:
                return "usd"
        return None

    def replay(self, calls: int) -> None:
        """Count calls that an earlier sitting of the run has paid for, so that as many are left as there were then."""
        self.spent_calls += calls

    async def reserve(self, wanted: Reservation) -> int | None:
        """Take the calls of one request of at most this cost: a ticket for `settle`, or None when it does not fit."""
        while True:
            misfit = self._misfit(wanted)
            if misfit is None:
                self.spent_calls += wanted.calls
                self.largest_tokens = max(self.largest_tokens, wanted.tokens)
                self._next += 1
                self._open[self._next] = wanted
                return self._next
            if misfit in ("calls", "seconds") or not self._open:
                self.exhausted = misfit
                return None
            if self._settled is None:
                self._settled = asyncio.Event()
            await self._settled.wait()

    @property
    def weighs(self) -> bool:
        """Does it count tokens or USD?"""
        return self.tokens is not None or self.usd is not None

    def calls_of(self, ticket: int) -> int:
        """The calls of a reservation."""
        return self._open[ticket].calls

    def release(self, ticket: int) -> None:
        """Give a reservation back: nothing was sent for it."""
        self.spent_calls -= self._open[ticket].calls
        self.settle(ticket, tokens=0, usd=0.0)

    def settle(self, ticket: int, *, tokens: int, usd: float) -> None:
        """Replace a reservation by what was paid."""
        del self._open[ticket]
        self.spent_tokens += tokens
        self.spent_usd += usd
        if self._settled is not None:
            self._settled.set()
            self._settled = None
