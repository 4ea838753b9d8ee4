"""One row on its way: reserved in the budget, sent within the limits, tried again where that helps, written down."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any, Literal

from uql.errors import BackendError
from uql.llm import chunks
from uql.llm.asked import Slot
from uql.llm.budget import Budget, Reservation
from uql.llm.events import Event, Events
from uql.llm.failures import FINAL, TRANSIENT
from uql.llm.ledger import Ledger
from uql.llm.limiter import Limiter
from uql.llm.providers.base import Answer, CallError, Problem, Provider, Reply, Request
from uql.llm.questions import Question
from uql.llm.run import Cost, Run
from uql.llm.stored import Entry
from uql.settings import Settings

UNREACHABLE = 8  # rows in a row that could not connect: the backend is gone


class Sender:
    """Sends rows one by one and keeps account of them.

    Attributes:
        cost: what was paid so far.  events: subscribe to every call.  warnings: texts for the user, each once.
        budget: of the run, shared by all its asks.
    """

    def __init__(self, settings: Settings, ledger: Ledger, budget: Budget, run: Run) -> None:
        self.settings, self.ledger, self.budget, self.run = settings, ledger, budget, run
        self.cost, self.events, self.warnings = Cost(), Events(), list[str]()
        self._interrupted = False
        self._lost: list[Event] = []  # calls in flight when the run ended
        self._unreachable = 0

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    async def answer_row(
        self,
        questions: tuple[Question, ...],
        slot: Slot,
        wanted: list[int],
        provider: Provider,
        limiter: Limiter,
        source: str,
    ) -> list[Answer]:
        """Send a row until each question has an answer or is given up; keep the answers in the ledger."""
        done: list[Answer | None] = [None] * len(questions)
        errors = [""] * len(questions)
        failures: list[Event] = []
        attempt, seen = 0, {"wire": 0, "reply": 0}
        while any(answer is None for answer in done):
            open_now = [j for j, answer in enumerate(done) if answer is None]
            request = Request(
                tuple(questions[j] for j in open_now),
                slot.row,
                self.run.seed,
                tuple(errors[j] for j in open_now) if any(errors) else (),
                self.settings.timeout_s,
            )
            attempt += 1
            outcome = await self._send(request, provider, limiter, attempt, source)
            if isinstance(outcome, Problem):  # not sent: budget or interrupt
                for j in open_now:
                    done[j] = Answer(
                        problem=outcome
                        if attempt == 1
                        else Problem(outcome.kind, f"{outcome.message}; before: {errors[j]}")
                    )
                break
            reply, event, fault = outcome
            entries: list[Entry] = []
            if fault is not None:
                await self._record([], [event])
                wire = fault.kind in TRANSIENT
                seen["wire" if wire else "reply"] += 1
                last = fault.kind in FINAL or (
                    seen["wire"] >= limiter.tries(fault.kind) if wire else seen["reply"] >= 2
                )
                if fault.kind == "connection" and last:
                    self._unreachable += 1
                    if self.cost.input_tokens == 0 or self._unreachable >= UNREACHABLE:
                        raise BackendError(
                            f"{provider.name} cannot be reached: {fault.message}",
                            help="is the server running, and its address right?",
                        )
                for j in open_now:
                    errors[j] = "" if wire else fault.message
                    if last:
                        done[j] = Answer(problem=Problem(fault.kind, fault.message, fault.raw))
                if not last and wire:
                    await limiter.pause(seen["wire"], fault.retry_after_s)
                continue
            self._unreachable = 0
            assert reply is not None
            again = False
            for j, answer in zip(open_now, reply.answers, strict=True):
                if answer.problem is None:
                    done[j] = answer
                    kept = replace(answer, paid=(reply.input_tokens, reply.output_tokens, event.usd))
                    entries.append(Entry(slot.keys[wanted[j]], kept, provider.name, source, self.run.id, attempt))
                elif seen["reply"] or answer.problem.kind in FINAL:
                    done[j] = answer
                else:
                    errors[j] = answer.problem.message
                    again = True
            seen["reply"] += again
            await self._record(entries, [event])
        if any(
            answer is not None and answer.problem is not None and answer.problem.kind not in ("budget", "interrupted")
            for answer in done
        ):
            problem = next(a.problem for a in done if a is not None and a.problem is not None)
            self.cost.failed += 1
            failures.append(
                self._event(
                    "failed",
                    provider,
                    questions,
                    error=problem.kind,
                    message=problem.message,
                    attempt=attempt,
                    source=source,
                )
            )
            await self._record([], failures)
        return [answer if answer is not None else Answer() for answer in done]

    async def _send(
        self, request: Request, provider: Provider, limiter: Limiter, attempt: int, source: str
    ) -> Problem | tuple[Reply | None, Event, CallError | None]:
        """One call: reserved, sent within the limits, counted. A Problem where it was not sent."""
        try:
            parts = chunks.requests(provider, request)
        except CallError as error:
            return Problem(error.kind, error.message)
        bounds = [provider.tokens_at_most(part) for part in parts]
        most_in, most_out = sum(b[0] for b in bounds), sum(b[1] for b in bounds)
        limiter.adopt(provider.limits)
        async with limiter.slot(most_in + most_out) as taken:
            if self._interrupted:
                return Problem("interrupted", "the run was interrupted before this row was asked")
            price = provider.price
            ticket = await self.budget.reserve(
                Reservation(most_in + most_out, price.usd(most_in, most_out) if price else 0.0)
            )
            if ticket is None:
                return Problem("budget", f"the budget ({self.budget.exhausted}) ended before this row was asked")
            self.cost.calls += 1
            reply: Reply | None = None
            fault: CallError | None = None
            paid_in, paid_out = most_in, 0  # what is charged where nobody can tell what was paid
            began = time.monotonic()
            left = self.budget.seconds_left
            timeout = request.timeout_s * len(parts) if provider.limits.timed else None
            if timeout is not None and left is not None:
                timeout = max(0.01, min(timeout, left))
            try:
                async with asyncio.timeout(timeout):
                    reply = await chunks.answered(provider, parts)
                if len(reply.answers) != len(request.questions):
                    fault = CallError(
                        "wrong_type", f"{len(request.questions)} questions were asked, {len(reply.answers)} answered"
                    )
                paid_in, paid_out = reply.input_tokens, reply.output_tokens
            except TimeoutError:
                fault = CallError("timeout", f"no reply within {timeout or 0:g} s")
            except CallError as error:
                fault, paid_in, paid_out = error, error.input_tokens, error.output_tokens
            finally:
                lost = reply is None and fault is None  # cancelled, or an error that ends the run
                if lost:
                    fault = CallError("interrupted", "the run ended before the reply came")
                seconds = time.monotonic() - began
                usd = price.usd(paid_in, paid_out) if price else None
                self.budget.settle(ticket, tokens=paid_in + paid_out, usd=usd or 0.0)
                limiter.observe(
                    fault.kind if fault else None,
                    seconds,
                    tokens=paid_in + paid_out,
                    taken=taken,
                    at_most=most_in + most_out,
                    retry_after_s=fault.retry_after_s if fault else None,
                )
                event = self._counted(
                    provider, request, reply, fault, (paid_in, paid_out, usd), seconds, attempt, source
                )
                if lost:
                    self._lost.append(event)
        return (None if fault else reply), event, fault

    # ------------------------------------------------------------------------------------------------------------- records
    def _counted(
        self,
        provider: Provider,
        request: Request,
        reply: Reply | None,
        fault: CallError | None,
        paid: tuple[int, int, float | None],
        seconds: float,
        attempt: int,
        source: str,
    ) -> Event:
        """Adds a call that has ended to what the run has cost; its event. `paid`: input and output tokens, USD."""
        paid_in, paid_out, usd = paid
        cost = self.cost
        cost.requests += reply.requests if reply else 1
        cost.input_tokens += paid_in
        cost.output_tokens += paid_out
        cost.usd = None if cost.usd is None or usd is None else cost.usd + usd
        for text in reply.warnings if reply else ():
            self.warn(text)
        wrong = fault or (next((a.problem for a in reply.answers if a.problem), None) if reply else None)
        return self._event(
            "call",
            provider,
            request.questions,
            input_tokens=paid_in,
            output_tokens=paid_out,
            requests=reply.requests if reply else 1,
            usd=usd,
            seconds=seconds,
            error=wrong.kind if wrong else "",
            message=wrong.message if wrong else "",
            attempt=attempt,
            source=source,
        )

    def _event(
        self,
        kind: Literal["call", "cached", "failed"],
        provider: Provider,
        questions: tuple[Question, ...],
        **what: Any,
    ) -> Event:
        kinds = "+".join(type(q).__name__ for q in questions)
        return Event(kind, self.run.id, time.time(), provider.name, kinds, questions[0].text[:80], **what)

    async def _record(self, entries: list[Entry], events: list[Event]) -> None:
        """Write to the ledger, then tell the listeners."""
        await self.ledger.put(entries, events)
        for event in events:
            self.events.emit(event)
