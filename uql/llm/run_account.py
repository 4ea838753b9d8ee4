"""What the requests of a run have cost, as it is told to the ledger and to whoever listens."""

from __future__ import annotations

import time
from typing import Any, Literal

from uql.llm.asking import Asking
from uql.llm.events import Event, Listener
from uql.llm.ledger import Ledger
from uql.llm.ledger_rows import Entry
from uql.llm.providers.base import Answer, CallError, Reply, Request, RowsReply, RowsRequest
from uql.llm.run_record import Cost, Run


class RunAccount:
    """Of a gate.

    Attributes:
        cost: what was paid so far.  warnings: texts for the user, each once.
        listeners: called with every event, in their order.
        unfinished: calls that were in flight when the run ended.
        interrupted: nothing more is sent.
    """

    def __init__(self, ledger: Ledger, run: Run) -> None:
        self.ledger, self.run = ledger, run
        self.cost, self.warnings, self.listeners = Cost(), list[str](), list[Listener]()
        self.unfinished = list[Event]()
        self.interrupted = False

    def part(self, run: Run) -> RunAccount:
        """An account of its own for a part of the run, whose events go where those of this one go."""
        account = RunAccount(self.ledger, run)
        account.listeners, account.unfinished = self.listeners, self.unfinished
        return account

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    def count(
        self,
        asking: Asking,
        request: Request | RowsRequest,
        reply: Reply | RowsReply | None,
        fault: CallError | None,
        paid: tuple[int, int, float | None],
        seconds: float,
        attempt: int,
    ) -> list[Event]:
        """Add a request that has ended to what the run has cost.

        Args:
            request: as it was sent, about one row or n.
            reply: None where none came.
            fault: why the request as a whole brought no answer.
            paid: input and output tokens, USD.
            seconds: that it took.
            attempt: 1 the first time.
        Returns: (n,) an event a row; the rows share tokens, USD and seconds evenly.
        """
        paid_in, paid_out, usd = paid
        cost = self.cost
        requests = reply.requests if reply else 1
        cost.requests += requests
        cost.input_tokens += paid_in
        cost.cached_tokens += reply.cached_tokens if reply else 0
        cost.output_tokens += paid_out
        cost.usd = None if cost.usd is None or usd is None else cost.usd + usd
        for text in reply.warnings if reply else ():
            self.warn(text)
        rows = len(request.rows) if isinstance(request, RowsRequest) else 1
        by_row: list[tuple[Answer, ...]] = [()] * rows
        if reply is not None and fault is None:
            by_row = list(reply.answers) if isinstance(reply, RowsReply) else [reply.answers]
        events = []
        for i, answers in enumerate(by_row):
            wrong = fault or next((a.problem for a in answers if a.problem), None)
            events.append(
                self.event(
                    "call",
                    asking,
                    input_tokens=paid_in * (i + 1) // rows - paid_in * i // rows,
                    output_tokens=paid_out * (i + 1) // rows - paid_out * i // rows,
                    requests=0 if i else requests,
                    usd=None if usd is None else usd / rows,
                    seconds=seconds / rows,
                    error=wrong.kind if wrong else "",
                    message=wrong.message if wrong else "",
                    attempt=attempt,
                )
            )
        return events

    def event(self, kind: Literal["call", "cached", "failed"], asking: Asking, **what: Any) -> Event:
        model, now = asking.provider.name, time.time()
        return Event(kind, self.run.id, now, model, asking.kinds, asking.text, source=asking.source, **what)

    async def record(self, entries: list[Entry], events: list[Event]) -> None:
        """Write to the ledger, then tell the listeners."""
        await self.ledger.put(entries, events)
        for event in events:
            for listener in tuple(self.listeners):
                listener(event)

    async def record_cached(self, asking: Asking, rows: int) -> None:
        """Count rows that were answered at no call."""
        self.cost.cached += rows
        await self.record([], [self.event("cached", asking, rows=rows)] if rows else [])
