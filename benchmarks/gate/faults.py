"""A query of 10,000 calls through the whole engine against a faulty provider: right rows, listed failures, its budget, its speed.

A fifth of the calls fail, of every kind that fails a row: faults of the wire, replies that cannot be read, refusals. 3 % of the rows
fail for good. The provider allows a number of requests a minute; the run uses it, and none is refused.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from pathlib import Path

import uql
from uql.benchmarks.gate.instant import Instant
from uql.llm import limiter
from uql.llm.failures import FAILURES, Then
from uql.llm.providers.base import Answer, CallError, Limits, Problem, Reply, Request

FAULTS, LASTING = 0.2, 0.03
ALLOWED = 60_000.0  # requests a minute
KINDS = [cause for cause in FAILURES if cause.then is not Then.ENDS]
QUERY = 'SELECT id, "it is so"::VARCHAR AS so FROM t'


class Faulty(Instant):
    """Instant, with faults by a seeded draw; which rows fail for good is decided by their number."""

    name = "faulty"

    def __init__(self, seed: int = 0) -> None:
        super().__init__(Limits(concurrency=64, requests_per_minute=ALLOWED, adaptive=True))
        self._rng = random.Random(seed)
        self.calls, self.began = 0, 0.0

    @staticmethod
    def lasting(number: int) -> bool:
        return random.Random(f"lasting {number}").random() < LASTING

    async def answer(self, request: Request) -> Reply:
        if not self.calls:
            self.began = time.monotonic()
        self.calls += 1
        await asyncio.sleep(0.001)
        number = int(str(request.row.cells[0].value)[:8])
        lasts = self.lasting(number)
        if lasts or self._rng.random() < FAULTS:
            cause = KINDS[number % len(KINDS)] if lasts else self._rng.choice([k for k in KINDS if k.tries > 1])
            if cause.then is Then.SHOWN:
                return Reply((Answer(problem=Problem(cause.kind, "unreadable", "…")),) * len(request.questions), 50, 1)
            raise CallError(cause.kind, "it went wrong", input_tokens=50)
        return await super().answer(request)


def run(count: int, folder: Path) -> tuple[uql.Result, Faulty]:
    model = Faulty()
    texts = "rpad(lpad(range::VARCHAR, 8, '0') || ' ', 60, 'x')"
    with uql.connect(model=model, ledger=str(folder / "l.sqlite"), budget="all") as con:
        con.sql(f"CREATE TABLE t AS SELECT range AS id, {texts} AS text FROM range({count})")
        result = con.uql(QUERY)
        result.fetchall()
    return result, model


def main(count: int = 10_000) -> bool:
    pause, limiter.FIRST_PAUSE_S = limiter.FIRST_PAUSE_S, 0.01
    try:
        with tempfile.TemporaryDirectory() as folder:
            result, model = run(count, Path(folder))
            seconds = time.monotonic() - model.began
    finally:
        limiter.FIRST_PAUSE_S = pause
    failed = {error.row for error in result.errors}
    lasting = {number for number in range(count) if Faulty.lasting(number)}
    right = sum(said == f"value {number:08}" for number, said in result.fetchall() if number not in failed)
    rate = model.calls / seconds * 60
    listed = len(lasting & failed)
    print(
        f"faulty provider: {model.calls:,} calls for {count:,} rows, {len(failed):,} failed rows listed ({listed} of {len(lasting)} that "
        f"fail for good), {right:,} of {count - len(failed):,} others right, {rate:,.0f} of {ALLOWED:,.0f} calls/min"
    )
    return listed == len(lasting) and right == count - len(failed) and result.cost.calls == model.calls
