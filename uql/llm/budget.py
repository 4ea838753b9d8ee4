"""The budget of a run: calls, tokens, USD, seconds. Reserved before sending, so never exceeded by anything."""

from __future__ import annotations

import asyncio
import math
import time
from dataclasses import dataclass

LIMITS = ("tokens", "usd", "seconds", "cap")  # that end a run before its answer is whole


@dataclass(slots=True)
class Reservation:
    """What one request may cost at most; a request that carries r rows is r calls."""

    tokens: int
    usd: float
    calls: int = 1


@dataclass(slots=True)
class Limits:
    """What may be spent of each; None: without limit."""

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None


class Budget:
    """Caps of a run; None means unlimited.

    A run that goes on with the draws of earlier ones has `steps`: what those had in all. It spends up to the first of them as they did,
    then up to the next, and last up to `calls`. Each part of a statement begins at the first step.

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
        steps: tuple[int, ...] = (),
        new: Limits | None = None,
    ) -> None:
        self.calls, self.tokens, self.usd = calls, tokens, usd
        self.new = new or Limits()  # of these, what may be spent now; the rest was paid by earlier runs
        self.steps, self.step = steps, 0
        self._by_step = [0] * (len(steps) + 1)
        self._sent_by_step = [0] * (len(steps) + 1)  # of these, since the part of the statement began
        self._sent_calls, self._sent_tokens, self._sent_usd = 0, 0, 0.0
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self.spent_calls = 0
        self.spent_tokens = 0
        self.spent_usd = 0.0
        self.largest_tokens = 0  # of one reservation so far
        self.caps: tuple[Budget, ...] = ()  # of a server around the run: each holds, whatever this budget allows
        self._open: dict[int, Reservation] = {}
        self._in_caps: dict[int, list[int]] = {}  # the tickets in the caps, by the ticket here
        self._next = 0
        self._settled: asyncio.Event | None = None
        self.exhausted: str | None = None  # what was reached: "calls", "tokens", "usd", "seconds", "cap"

    @property
    def calls_left(self) -> int | None:
        left = [cap.calls_left for cap in self.caps]
        left.append(self.own_calls_left)
        return min((n for n in left if n is not None), default=None)

    @property
    def own_calls_left(self) -> int | None:
        """Calls that the run has left, whatever the server around it allows; None: without limit."""
        return None if self.calls is None else max(0, self.calls - self.spent_calls)

    def extend(self, calls: int) -> None:
        """Raise the limit of calls by so many, of each step too, or lower it where they are below 0."""
        if self.calls is not None:
            self.calls += calls
        if self.new.calls is not None:
            self.new.calls += calls
        self.steps = tuple(step + calls for step in self.steps)

    def left_at(self, step: int) -> int | None:
        """Calls that a step leaves, after those spent in it and before; None: without limit."""
        if step >= len(self.steps):
            return self.calls_left
        return max(0, self.steps[step] - sum(self._by_step[: step + 1]))

    def begin(self) -> None:
        """A part of the statement begins, at the first step. What the part before it sent in earlier steps than the last is the last
        one's: the runs that ended with those did not send it, and left more to the parts to come.
        """
        self._by_step = [spent - sent for spent, sent in zip(self._by_step, self._sent_by_step, strict=True)]
        self._by_step[-1] += sum(self._sent_by_step)
        self._sent_by_step = [0] * len(self._by_step)
        self.step = 0

    def _send(self, calls: int) -> None:
        self._spend(calls)
        self._sent_calls += calls
        self._sent_by_step[self.step] += calls

    def _spend(self, calls: int) -> None:
        self.spent_calls += calls
        self._by_step[self.step] += calls

    @property
    def tokens_left(self) -> int | None:
        """Tokens that are neither spent nor reserved; None: without limit."""
        if self.tokens is None:
            return None
        return max(0, self.tokens - self.spent_tokens - sum(r.tokens for r in self._open.values()))

    @property
    def seconds_left(self) -> float | None:
        return None if self.deadline is None else self.deadline - time.monotonic()

    def _misfit(self, reservation: Reservation) -> str | None:
        """The limit that `reservation` would break, beside what is spent and reserved."""
        if any(cap._misfit(reservation) for cap in self.caps):
            return "cap"
        if self.calls is not None and self.spent_calls + reservation.calls > self.calls:
            return "calls"
        if self.new.calls is not None and self._sent_calls + reservation.calls > self.new.calls:
            return "calls"
        left = self.seconds_left
        if left is not None and left <= 0:
            return "seconds"
        if self.tokens is not None or self.new.tokens is not None:
            tokens = reservation.tokens + sum(r.tokens for r in self._open.values())
            if _above(self.tokens, self.spent_tokens + tokens) or _above(self.new.tokens, self._sent_tokens + tokens):
                return "tokens"
        if self.usd is not None or self.new.usd is not None:
            usd = reservation.usd + sum(r.usd for r in self._open.values())
            if _above(self.usd, self.spent_usd + usd) or _above(self.new.usd, self._sent_usd + usd):
                return "usd"
        return None

    def allow(self, calls: int) -> None:
        """Let as many calls be left, where there are fewer."""
        if self.calls is not None:
            self.calls = max(self.calls, self.spent_calls + calls)
        if self.new.calls is not None:
            self.new.calls = max(self.new.calls, self._sent_calls + calls)

    @property
    def usd_a_call(self) -> float:
        """USD that a call cost on average; 0 where none was paid or the price is not known."""
        return self.spent_usd / self.spent_calls if self.spent_calls else 0.0

    def replay(self, calls: int, tokens: int = 0, usd: float = 0.0) -> None:
        """Count what an earlier sitting of the run has paid, so that as much is left as there was then.

        Args:
            calls: rows sent.
            tokens: in and out.
        """
        self._spend(calls)
        self.spent_tokens += tokens
        self.spent_usd += usd

    def advance(self, calls: int, step: int) -> None:
        """Count calls that were spent in a later step in this one.

        Args:
            calls: rows sent.
            step: in which they were spent.
        """
        self._by_step[step] -= calls
        self._by_step[self.step] += calls

    async def reserve(self, reservation: Reservation) -> int | None:
        """Take the calls of one request of at most this cost: a ticket for `settle`, or None when it does not fit."""
        while True:
            misfit = self._misfit(reservation)
            if misfit is None:
                return self._take(reservation)
            if misfit in ("calls", "seconds") or not self._open:
                self.exhausted = misfit
                return None
            if self._settled is None:
                self._settled = asyncio.Event()
            await self._settled.wait()

    def _take(self, reservation: Reservation) -> int:
        self._send(reservation.calls)
        self.largest_tokens = max(self.largest_tokens, reservation.tokens)
        self._next += 1
        self._open[self._next] = reservation
        self._in_caps[self._next] = [cap._take(reservation) for cap in self.caps]
        return self._next

    @property
    def weighs(self) -> bool:
        """Does it count tokens or USD?"""
        limits = (self.tokens, self.usd, self.new.tokens, self.new.usd)
        return any(limit is not None for limit in limits) or any(cap.weighs for cap in self.caps)

    def calls_of(self, ticket: int) -> int:
        """The calls of a reservation."""
        return self._open[ticket].calls

    def release(self, ticket: int) -> None:
        """Give a reservation back: nothing was sent for it."""
        for cap, own in zip(self.caps, self._in_caps[ticket], strict=True):
            cap.release(own)
        self._in_caps[ticket] = []
        self._send(-self._open[ticket].calls)
        self.settle(ticket, tokens=0, usd=0.0)

    def settle(self, ticket: int, *, tokens: int, usd: float) -> None:
        """Replace a reservation by what was paid.

        Args:
            tokens: in and out, paid.
            usd: paid.
        """
        for cap, own in zip(self.caps, self._in_caps.pop(ticket), strict=False):
            cap.settle(own, tokens=tokens, usd=usd)
        del self._open[ticket]
        self.spent_tokens, self._sent_tokens = self.spent_tokens + tokens, self._sent_tokens + tokens
        self.spent_usd, self._sent_usd = self.spent_usd + usd, self._sent_usd + usd
        if self._settled is not None:
            self._settled.set()
            self._settled = None


def _above(limit: float | None, amount: float) -> bool:
    """Is more spent than allowed? Sums of the same USD in another order differ by what floats round."""
    return limit is not None and amount > limit and not math.isclose(amount, limit, rel_tol=1e-12, abs_tol=1e-12)


class Share(Budget):
    """At most `calls` calls of a whole budget; every reservation is one of the whole's too.

    Args:
        whole: the budget of the run.
        calls: of this part; None: as many as the whole has left.
    """

    def __init__(self, whole: Budget, calls: int | None) -> None:
        super().__init__(calls=calls, tokens=whole.tokens, usd=whole.usd)
        self.whole = whole

    def extend(self, calls: int) -> None:
        """As in `Budget`, of the whole too."""
        super().extend(calls)
        self.whole.extend(calls)

    @property
    def calls_left(self) -> int | None:
        left = [n for n in (super().calls_left, self.whole.calls_left) if n is not None]
        return min(left) if left else None

    @property
    def tokens_left(self) -> int | None:
        return self.whole.tokens_left

    @property
    def seconds_left(self) -> float | None:
        return self.whole.seconds_left

    def allow(self, calls: int) -> None:
        super().allow(calls)
        self.whole.allow(calls)

    @property
    def weighs(self) -> bool:
        return self.whole.weighs

    async def reserve(self, reservation: Reservation) -> int | None:
        if self.calls is not None and self.spent_calls + reservation.calls > self.calls:
            self.exhausted = "calls"
            return None
        self.spent_calls += reservation.calls
        ticket = await self.whole.reserve(reservation)
        self.largest_tokens = max(self.largest_tokens, reservation.tokens)
        if ticket is None:
            self.spent_calls -= reservation.calls
            self.exhausted = self.whole.exhausted
        return ticket

    def release(self, ticket: int) -> None:
        self.spent_calls -= self.whole.calls_of(ticket)
        self.whole.release(ticket)

    def settle(self, ticket: int, *, tokens: int, usd: float) -> None:
        """As in `Budget`, of the whole too."""
        self.spent_tokens += tokens
        self.spent_usd += usd
        self.whole.settle(ticket, tokens=tokens, usd=usd)
