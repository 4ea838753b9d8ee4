"""One row on its way: reserved in the budget, sent within the limits, tried again where that helps, written down."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Literal

from uql.base.errors import BackendError
from uql.base.settings import Settings
from uql.llm import chunks
from uql.llm.budget import Budget, Reservation
from uql.llm.events import Event, Listener
from uql.llm.failures import FINAL, TRANSIENT, TRIES
from uql.llm.ledger import Ledger
from uql.llm.ledger_keys import Slot, row_key
from uql.llm.ledger_rows import Entry, Failed
from uql.llm.limiter import Limiter
from uql.llm.providers.base import (
    Answer,
    CallError,
    Problem,
    Provider,
    Reply,
    Request,
    RowsReply,
    RowsRequest,
    blamed,
    replied,
)
from uql.llm.questions import Question, Row
from uql.llm.run_record import Cost, Run
from uql.operators.replies import Shape, fitting

UNBILLED = tuple(kind for kind in TRANSIENT if kind != "timeout")  # of a request that was not answered
UNTOLD = ("timeout", "truncated")  # faults of which the vendor may want to be paid without saying so
KEPT_OPEN = {*TRANSIENT, "budget", "interrupted"}  # rows that failed so are asked again by the next run
UNREACHABLE = 8  # rows in a row that could not connect: the backend is gone

Outcome = Problem | tuple[Reply | RowsReply | None, list[Event], CallError | None]  # of a request; a Problem: not sent


def _bounds(provider: Provider, parts: Sequence[Request]) -> tuple[int, int]:
    """Input and output tokens of all parts at most."""
    with blamed(provider, "tokens_at_most"):
        bounds = [provider.tokens_at_most(part) for part in parts]
        return sum(b[0] for b in bounds), sum(b[1] for b in bounds)


def _checked(reply: Reply | RowsReply, asked: Sequence[Request]) -> tuple[Reply | RowsReply, CallError | None]:
    """The reply with a problem for each answer that its question cannot have; and what is wrong where it answers others than were asked.

    Args:
        asked: the request about each row.
    """
    by_row = reply.answers if isinstance(reply, RowsReply) else (reply.answers,)
    pairs = [(len(asked), len(by_row), "rows")]
    pairs += [(len(r.questions), len(answers), "questions") for r, answers in zip(asked, by_row, strict=False)]
    for n, answered, what in pairs:
        if n != answered:
            return reply, CallError("wrong_type", f"{n} {what} were asked, {answered} answered")
    read = tuple(
        tuple(fitting(a, q.reply(r.row)) for a, q in zip(answers, r.questions, strict=True))
        for r, answers in zip(asked, by_row, strict=True)
    )
    if read == by_row:
        return reply, None
    return (replace(reply, answers=read) if isinstance(reply, RowsReply) else replace(reply, answers=read[0])), None


@dataclass(frozen=True, slots=True)
class Asking:
    """What an ask puts to a model: the same for all its rows."""

    questions: tuple[Question, ...]
    provider: Provider
    limiter: Limiter
    source: str = ""  # the table that the rows come from
    together: int = 1  # rows of one request at most
    heads: Sequence[bytes] = ()  # what `question_key` gives for each question
    shared: Sequence[bytes] = ()  # the same for rows that share requests; empty where they do not
    kinds: str = field(init=False)  # of the questions, and the first one's text, as events show them
    text: str = field(init=False)
    shapes: tuple[Shape, ...] = field(init=False)  # of the replies to the questions

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinds", "+".join(q.operator.key.name for q in self.questions))
        object.__setattr__(self, "text", self.questions[0].text[:80])
        object.__setattr__(self, "shapes", tuple(q.reply() for q in self.questions))

    def only(self, indices: Sequence[int]) -> Asking:
        """The same with some of its questions."""
        if len(indices) == len(self.questions):
            return self
        return replace(self, questions=tuple(self.questions[j] for j in indices))


class Sender:
    """Sends rows one by one and keeps account of them.

    Attributes:
        cost: what was paid so far.  warnings: texts for the user, each once.
        listeners: called with every event, in their order.
        budget: of the run, shared by all its asks.
        near: chooses the pieces of long rows that are asked first; None: the order of the text.
    """

    def __init__(self, settings: Settings, ledger: Ledger, budget: Budget, run: Run) -> None:
        self.settings, self.ledger, self.budget, self.run = settings, ledger, budget, run
        self.cost, self.listeners, self.warnings = Cost(), list[Listener](), list[str]()
        self.near: chunks.Near | None = None
        self._interrupted = False
        self._unfinished: list[Event] = []  # calls in flight when the run ended
        self._unreachable = 0

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    async def answer_row(self, asking: Asking, slot: Slot, indices: list[int], tried: int = 0) -> list[Answer]:
        """Send a row until each question has an answer or is given up; keep the answers in the ledger.

        Args:
            asking: with the questions that are wanted.
            indices: where their keys stand in the slot.
            tried: calls made for this row in requests about several; where there were any, an unreadable reply is the last.
        """
        questions, provider, limiter = asking.questions, asking.provider, asking.limiter
        done: list[Answer | None] = [None] * len(questions)
        errors = [""] * len(questions)
        attempt, faults = tried, {"wire": 0, "reply": min(tried, 1)}
        before: list[Problem | None] = [None] * len(questions)  # what the last try failed with
        while None in done:
            open_now = [j for j, answer in enumerate(done) if answer is None]
            request = Request(
                tuple(questions[j] for j in open_now),
                slot.row,
                self.run.seed,
                tuple(errors[j] for j in open_now) if any(errors) else (),
                self.settings.timeout_s,
            )
            attempt += 1
            outcome = await self._send(asking, request, attempt)
            if isinstance(outcome, Problem):  # not sent: budget or interrupt
                for j in open_now:
                    done[j] = Answer(problem=self._not_again(before[j], outcome, provider))
                break
            reply, events, fault = outcome
            assert reply is None or isinstance(reply, Reply)
            entries: list[Entry] = []
            if fault is not None:
                await self._record([], events)
                wire = fault.kind in TRANSIENT
                faults["wire" if wire else "reply"] += 1
                last = fault.kind in FINAL or (faults["wire"] >= TRIES[fault.kind] if wire else faults["reply"] >= 2)
                if last:
                    self._give_up(fault, provider)
                for j in open_now:
                    errors[j] = "" if wire else fault.message
                    before[j] = Problem(fault.kind, fault.message)
                    if last:
                        done[j] = Answer(problem=before[j])
                if not last and wire:
                    await limiter.pause(faults["wire"], fault.retry_after_s, self.budget.seconds_left)
                continue
            self._unreachable = 0
            assert reply is not None
            (event,) = events
            again = False
            for j, answer in zip(open_now, reply.answers, strict=True):
                if answer.problem is None:
                    done[j] = answer
                    with_cost = answer.at_cost((reply.input_tokens, reply.output_tokens, event.usd))
                    entries.append(
                        Entry(
                            slot.single_keys[indices[j]], with_cost, provider.name, asking.source, self.run.id, attempt
                        )
                    )
                elif faults["reply"] or answer.problem.kind in FINAL:
                    done[j] = answer
                else:
                    errors[j], before[j] = answer.problem.message, answer.problem
                    again = True
            faults["reply"] += again
            await self._record(entries, [event])
        if any(
            answer is not None and answer.problem is not None and answer.problem.kind not in ("budget", "interrupted")
            for answer in done
        ):
            problem = next(a.problem for a in done if a is not None and a.problem is not None)
            if self.run.replays:
                self.ledger.fail(
                    [
                        Failed(
                            self.run.drawn_by,
                            slot.keys[indices[j]],
                            a.problem.kind,
                            a.problem.message,
                            a.problem.raw,
                            attempt,
                        )
                        for j, a in enumerate(done)
                        if a is not None and a.problem is not None and a.problem.kind not in KEPT_OPEN
                    ]
                )
            self.cost.failed += 1
            failure = self._event("failed", asking, error=problem.kind, message=problem.message, attempt=attempt)
            await self._record([], [failure])
        return [answer if answer is not None else Answer() for answer in done]

    def tokens_at_most(self, asking: Asking, row: Row) -> int:
        """The tokens that asking a row may take."""
        request = Request(asking.questions, row, self.run.seed, (), self.settings.timeout_s)
        return sum(_bounds(asking.provider, chunks.requests(asking.provider, request)[0]))

    def _not_again(self, before: Problem | None, why: Problem, provider: Provider) -> Problem:
        """Why a row has no answer where it could not be sent, or could not be sent again: a try that failed is a failure of its own."""
        if before is None:
            return why
        if why.kind != "budget":
            return replace(why, message=f"{why.message}; before: {before.message}")
        self._give_up(before, provider)
        return replace(before, message=f"{before.message}; {why.message} again")

    def _give_up(self, fault: Problem | CallError, provider: Provider) -> None:
        """The last try for a row has failed. Raises: BackendError where the provider is out of reach."""
        if fault.kind != "connection":
            return
        self._unreachable += 1
        if self.cost.input_tokens == 0 or self._unreachable >= UNREACHABLE:
            raise BackendError(
                f"{provider.name} cannot be reached: {fault.message}",
                help="is the server running, and its address right?",
            )

    async def answer_rows(
        self, asking: Asking, slots: list[Slot], indices: list[int], tried: int = 0
    ) -> list[list[Answer]]:
        """Send several rows in one request; a row whose answer is missing or unreadable is asked again alone, once.

        A request that fails as a whole, or whose reply holds no answer, is never repeated as it was: its halves are asked, down to
        single rows. Only where nothing was answered or billed (a refused connection, 429, 5xx) is it sent again.

        Where the budget has fewer calls left than there are rows, the first ones are sent; where it does not hold the tokens or USD that
        they may cost, half of them. The order inside a request depends on
        the run's seed and the contents of the rows, not on the table's order.

        Args:
            slots: (n,) the rows, all new.
            indices: where the keys of the questions stand in a slot.
            tried: calls made for each of these rows in larger requests.
        Returns: the answers by row and question.
        """
        if len(slots) == 1:
            return [await self.answer_row(asking, slots[0], indices, tried)]
        questions, limiter = asking.questions, asking.limiter
        answers: list[list[Answer] | None] = [None] * len(slots)
        most, attempt, faults = len(slots), tried, 0
        fault: CallError | None = None
        while most:
            order = self._shuffled(slots[:most])
            request = RowsRequest(questions, tuple(slots[i].row for i in order), self.run.seed, self.settings.timeout_s)
            attempt += 1
            outcome = await self._send(asking, request, attempt)
            if isinstance(outcome, Problem):
                fewer = self._fewer_rows(most) if outcome.kind == "budget" else None
                if fewer is not None:
                    most, attempt = fewer, attempt - 1
                    continue
                return [[Answer(problem=outcome)] * len(questions) for _ in slots]
            reply, events, fault = outcome
            if fault is not None:
                await self._record([], events)
                faults += 1
                if fault.kind in UNBILLED and faults < TRIES[fault.kind]:
                    await limiter.pause(faults, fault.retry_after_s, self.budget.seconds_left)
                    continue
                break
            assert isinstance(reply, RowsReply)
            self._unreachable = 0
            entries = []
            for i, row_answers, event in zip(order, reply.answers, events, strict=True):
                if any(answer.problem is not None for answer in row_answers):
                    continue
                paid = (event.input_tokens, event.output_tokens, event.usd)
                for j, answer in zip(indices, row_answers, strict=True):
                    with_cost = answer.at_cost(paid)
                    key, model = slots[i].keys[j], asking.provider.name
                    entries.append(Entry(key, with_cost, model, asking.source, self.run.id, attempt))
                answers[i] = list(row_answers)
            await self._record(entries, events)
            break
        left_out = [i for i in range(most) if answers[i] is None]
        parts = [[i] for i in left_out]
        if len(left_out) == most and (fault is None or fault.kind not in UNBILLED):  # one of them may be at fault
            parts = [part for part in (left_out[: most // 2], left_out[most // 2 :]) if part]
        for part in parts:
            part_answers = await self.answer_rows(asking, [slots[i] for i in part], indices, attempt)
            for i, own in zip(part, part_answers, strict=True):
                answers[i] = own
        if not most:
            return [await self.answer_row(asking, slot, indices, tried) for slot in slots]
        if most < len(slots):
            answers[most:] = await self.answer_rows(asking, slots[most:], indices, tried)
        return [own for own in answers if own is not None]

    def _fewer_rows(self, rows: int) -> int | None:
        """How many of `rows` to put in a request, where the budget did not hold one with all of them; 0: each alone; None: none fits."""
        left = self.budget.calls_left
        if left is not None and left < rows:
            return left or None
        if self.budget.exhausted not in ("tokens", "usd", "cap"):
            return None
        return rows // 2 if rows > 3 else 0

    def _shuffled(self, slots: list[Slot]) -> list[int]:
        """The positions of rows in an order that their contents and the run's seed decide."""
        salt = str(self.run.seed).encode()
        return sorted(range(len(slots)), key=lambda i: blake2b(row_key(slots[i].row), key=salt, digest_size=8).digest())

    async def _send(self, asking: Asking, request: Request | RowsRequest, attempt: int) -> Outcome:
        """One request: reserved, sent within the limits, counted: an event a row. A Problem where it was not sent."""
        provider, limiter = asking.provider, asking.limiter
        several = isinstance(request, RowsRequest)
        left_out = 0
        try:
            if isinstance(request, RowsRequest):
                parts = request.single_requests()
            else:
                parts, left_out = chunks.requests(provider, request, self.near)
        except CallError as error:
            return Problem(error.kind, error.message)
        most_in, most_out = _bounds(provider, parts)
        calls = len(parts) if several else 1
        limiter.adopt(provider.limits)
        slot_tokens = await limiter.enter(most_in + most_out, self.budget.seconds_left)
        try:
            if self._interrupted:
                return Problem("interrupted", "the run was interrupted before this row was asked")
            price = provider.price
            ticket = None
            while slot_tokens is not None:  # what a provider learns while a request waits may make it larger
                most = (most_in, most_out)
                ticket = await self.budget.reserve(
                    Reservation(
                        most_in + most_out, price.usd(most_in, most_out, written=most_in) if price else 0.0, calls
                    )
                )
                if ticket is not None and self.budget.weighs:
                    most_in, most_out = _bounds(provider, parts)
                if ticket is None or most == (most_in, most_out):
                    break
                self.budget.release(ticket)
            if slot_tokens is None:
                self.budget.exhausted = "seconds"
            if ticket is None or slot_tokens is None:
                return Problem("budget", f"the budget ({self.budget.exhausted}) ended before this row was asked")
            self.cost.calls += calls
            reply: Reply | RowsReply | None = None
            fault: CallError | None = None
            paid_in, paid_out = most_in, 0  # what is charged where the payment is unknown
            cached = cache_writes = 0  # of the input, read from and written to the vendor's prompt cache
            began = time.monotonic()
            left = self.budget.seconds_left
            timeout = request.timeout_s * (1 if several else len(parts)) if provider.limits.timed else None
            if timeout is not None and left is not None:
                timeout = max(0.01, min(timeout, left))
            try:
                async with asyncio.timeout(timeout):
                    if isinstance(request, RowsRequest):
                        reply = await replied(provider, request)
                    else:
                        reply = await chunks.answer_pieces(provider, parts, left_out)
                reply, fault = _checked(reply, parts if several else parts[:1])
                paid_in, paid_out = reply.input_tokens, reply.output_tokens
                cached, cache_writes = reply.cached_tokens, reply.written_tokens
            except TimeoutError:
                fault = CallError("timeout", f"no reply within {timeout or 0:g} s")
            except CallError as error:
                fault, paid_in, paid_out = error, error.input_tokens, error.output_tokens
                if error.kind in UNTOLD and not paid_in + paid_out:
                    paid_in = most_in
            finally:
                lost = reply is None and fault is None  # cancelled, or an error that ends the run
                if lost:
                    fault = CallError("interrupted", "it was given up before the reply came")
                seconds = time.monotonic() - began
                usd = price.usd(paid_in, paid_out, cached, cache_writes) if price else None
                sent = fault is None or fault.sent
                if sent:
                    self.budget.settle(ticket, tokens=paid_in + paid_out, usd=usd or 0.0)
                else:
                    self.budget.release(ticket)
                    self.cost.calls -= calls
                limiter.observe(
                    fault.kind if fault else None,
                    seconds,
                    tokens=paid_in + paid_out,
                    taken=slot_tokens,
                    at_most=most_in + most_out,
                    retry_after_s=fault.retry_after_s if fault else None,
                )
                events = []
                if sent:
                    same = request.questions == asking.questions
                    of_request = asking if same else replace(asking, questions=request.questions)
                    events = self._counted(
                        of_request, request, reply, fault, (paid_in, paid_out, usd), seconds, attempt
                    )
                if lost:
                    self._unfinished += events
        finally:
            if slot_tokens is not None:
                limiter.leave()
        return (None if fault else reply), events, fault

    # ------------------------------------------------------------------------------------------------------------- records
    def _counted(
        self,
        asking: Asking,
        request: Request | RowsRequest,
        reply: Reply | RowsReply | None,
        fault: CallError | None,
        paid: tuple[int, int, float | None],
        seconds: float,
        attempt: int,
    ) -> list[Event]:
        """Adds a request that has ended to what the run has cost; an event a row, which share tokens, USD and seconds evenly.

        `paid`: input and output tokens, USD.
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
                self._event(
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

    def _event(self, kind: Literal["call", "cached", "failed"], asking: Asking, **what: Any) -> Event:
        model, now = asking.provider.name, time.time()
        return Event(kind, self.run.id, now, model, asking.kinds, asking.text, source=asking.source, **what)

    async def _record(self, entries: list[Entry], events: list[Event]) -> None:
        """Write to the ledger, then tell the listeners."""
        await self.ledger.put(entries, events)
        for event in events:
            for listener in tuple(self.listeners):
                listener(event)
