"""The limiter of one model: how many requests are in flight, and how many requests and tokens a minute may bring."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable

from uql.llm.providers.base import Limits

LONGEST_PAUSE_S = 60.0
FIRST_PAUSE_S = 0.5
LONGEST_WAIT_S = 120.0  # that a provider is believed when it wants to be left alone
USED = 0.96  # of an allowed rate: the vendor's clock and windows are not ours
BURST_S = 0.6  # of a rate that may be spent at once after a pause
SLICE_S = 0.25  # of a shared rate, taken at once
LOOK_S = 0.05  # between two looks at a rate that is waited for

Share = Callable[[str, float], Awaitable[float]]
"""(name of a rate, seconds) → in how many seconds from now the next so many seconds of that rate begin, which are the caller's alone."""


class Bucket:
    """A rate: `per_minute` units, spent ahead of time at most BURST_S worth (at least one unit's).

    A rate that several processes share is taken in slices of time, each of which is one process's.
    """

    def __init__(self, name: str, per_minute: float | None, share: Share | None = None) -> None:
        self.name, self.per_minute = name, per_minute
        self._share = share
        self._free_at = 0.0  # when everything taken so far has been earned
        self._until = 0.0  # the end of the last slice

    def _seconds(self, units: float) -> float:
        return 0.0 if self.per_minute is None else units * 60.0 / (USED * self.per_minute)

    async def make_room(self, units: float) -> None:
        """Takes a slice of a shared rate where the last one does not hold so many units."""
        needed, now = self._seconds(units), time.monotonic()
        used = max(self._free_at, now - BURST_S)
        if self._share is None or self.per_minute is None or used + needed <= self._until:
            return
        left = max(0.0, self._until - used)
        slice_s = max(SLICE_S, needed - left)
        begins = await self._share(self.name, slice_s) + time.monotonic()
        self._free_at, self._until = begins - left, begins + slice_s

    def wait_s(self, now: float) -> float:
        """Seconds until the next unit may be taken."""
        return 0.0 if self.per_minute is None else max(0.0, self._free_at - now)

    def take(self, units: float, now: float) -> None:
        if self.per_minute is not None:
            self._free_at = max(self._free_at, now - BURST_S) + self._seconds(units)

    def give_back(self, units: float) -> None:
        self._free_at -= self._seconds(units)


class Limiter:
    """Additive increase, multiplicative decrease of the requests in flight, under the rates that the provider allows.

    Args:
        concurrency: the user's own number of requests in flight: the limiter begins with it, and only refusals, timeouts and errors
            of the server lower it.
        share: gives slices of the rates, where other processes use the same ones.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        concurrency: int | None = None,
        share: Share | None = None,
    ) -> None:
        self.most = max(1, concurrency if concurrency is not None else limits.concurrency)
        self.adaptive = limits.adaptive
        self._probes = limits.adaptive and concurrency is None  # the number is found out, by how long replies take
        self.window = float(min(self.most, 8) if self._probes else self.most)
        self.in_flight = 0
        self._rng = random.Random(0)  # of the jitter in pauses
        self._requests = Bucket("requests", limits.requests_per_minute, share)
        self._tokens = Bucket("tokens", limits.tokens_per_minute, share)
        self._limits = limits
        self._share = 0.5  # of the tokens that a call may have at most, those that it had, on the average
        self._n_seen = 0  # calls that were answered
        self._paused_until = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._gate: asyncio.Lock | None = None
        self._fastest = float("inf")
        self._usual = 0.5  # seconds of a call, on the average
        self._cut_at = float("-inf")
        self._starting = True  # the window doubles a round trip until the first sign of strain

    def adopt(self, limits: Limits) -> None:
        """Keep to the rates of `limits` from now on: a provider learns them from its replies."""
        if limits is not self._limits:
            self._limits = limits
            self._requests.per_minute, self._tokens.per_minute = limits.requests_per_minute, limits.tokens_per_minute

    @property
    def counts_tokens(self) -> bool:
        """Is there a rate of tokens to keep to?"""
        return self._tokens.per_minute is not None

    async def enter(self, tokens: int, within_s: float | None = None) -> float | None:
        """Take a place in flight for a request of at most `tokens` tokens, once window and rates allow it; `leave` gives it back.

        Args:
            within_s: seconds after which it is not waited for any longer.
        Returns: the tokens that were taken from the rate for it, for `observe`; None where there was no place in time.
        """
        if within_s is None:
            return await self._enter(tokens)
        try:
            async with asyncio.timeout(max(0.0, within_s)):
                return await self._enter(tokens)
        except TimeoutError:
            return None

    def leave(self) -> None:
        """Give a place in flight back."""
        self.in_flight -= 1
        self._wake()

    async def _enter(self, at_most: int) -> float:
        """Wait for a place, then for the rates; whoever is cancelled in between leaves the place to the next."""
        while self.in_flight >= max(1, int(self.window)):
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            try:
                await place
            except asyncio.CancelledError:
                self._wake()
                raise
        self.in_flight += 1
        entered = False
        try:
            taken = await self._rates(at_most)
            entered = True
            return taken
        finally:
            if not entered:
                self.leave()

    def _wake(self) -> None:
        free = max(1, int(self.window)) - self.in_flight
        while free > 0 and self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                free -= 1

    async def _rates(self, at_most: int) -> float:
        now = time.monotonic()
        if self._requests.per_minute is None and self._tokens.per_minute is None and now >= self._paused_until:
            return at_most * self._share
        if self._gate is None:
            self._gate = asyncio.Lock()
        async with self._gate:  # first come, first served
            tokens = at_most * self._share  # by what the calls before it had
            await self._requests.make_room(1)
            await self._tokens.make_room(tokens)
            while True:
                now = time.monotonic()
                wait = max(self._requests.wait_s(now), self._tokens.wait_s(now), self._paused_until - now)
                if wait <= 0:
                    break
                await asyncio.sleep(min(wait, LOOK_S))  # calls that end meanwhile give tokens back
            self._requests.take(1, now)
            self._tokens.take(tokens, now)
        return tokens

    def observe(
        self,
        fault: str | None,
        seconds: float,
        *,
        tokens: int,
        taken: float,
        at_most: int,
        retry_after_s: float | None = None,
    ) -> None:
        """Learn from a call that ended: settle the tokens taken for it, and adapt the window.

        Args:
            fault: the kind of failure; None: it was answered.
            seconds: that it took.
            tokens: paid.
            taken: tokens taken for it before it was sent.
            at_most: output tokens that it was allowed.
            retry_after_s: what the provider asked to wait.
        """
        self._tokens.give_back(taken - tokens)
        if fault is None and at_most:
            self._n_seen += 1
            self._share += max(0.1, 1 / self._n_seen) * (tokens / at_most - self._share)
        now = time.monotonic()
        if fault == "rate_limit":
            self._paused_until = max(self._paused_until, now + min(retry_after_s or FIRST_PAUSE_S, LONGEST_WAIT_S))
        if not self.adaptive:
            return
        if fault in ("rate_limit", "timeout", "server"):
            self._starting = False
            if now - self._cut_at > self._round_trip():  # those in flight were sent before the last cut
                self.window, self._cut_at = max(1.0, self.window / 2), now
        elif fault is None:
            self._fastest = min(self._fastest * 1.01, seconds)
            self._usual += 0.1 * (seconds - self._usual)
            if not self._probes or seconds < 4 * self._fastest + 0.05 or self.window < 8:
                self.window = min(float(self.most), self.window + (1.0 if self._starting else 1.0 / self.window))
            elif now - self._cut_at > self._round_trip():
                self.window, self._cut_at, self._starting = max(1.0, self.window * 0.9), now, False
        self._wake()

    def _round_trip(self) -> float:
        return max(0.02, 2 * self._usual)

    async def pause(self, failures: int, retry_after_s: float | None, within_s: float | None = None) -> None:
        """Wait before a row is sent again: as long as the provider said, else exponentially with full jitter.

        Args:
            failures: of this row so far, at least 1.
            retry_after_s: what the provider asked to wait; None: nothing.
            within_s: that the run has left, after which nothing will be sent; None: no end.
        """
        if retry_after_s is not None:
            wait = min(retry_after_s, LONGEST_WAIT_S) + self._rng.random() * 0.05
        else:
            wait = self._rng.random() * min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (failures - 1))
        await asyncio.sleep(wait if within_s is None else max(0.0, min(wait, within_s)))
