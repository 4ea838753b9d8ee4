"""One row on its way: reserved in the budget, sent within the limits, tried again where that helps, written down."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

from uql.base.errors import BackendError
from uql.base.settings import Settings
from uql.llm import chunks
from uql.llm.asking import Asking
from uql.llm.budget import Budget, Reservation
from uql.llm.events import Event
from uql.llm.failures import FINAL, TRANSIENT, TRIES
from uql.llm.first_steps import FailedRows
from uql.llm.ledger_keys import ALONE, Slot, row_key
from uql.llm.ledger_rows import TRIED, Entry, Failed
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
from uql.llm.questions import Row
from uql.llm.run_account import RunAccount
from uql.operators.replies import fitting

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


class Sender:
    """Sends rows, one by one or several together, and keeps their answers.

    Attributes:
        near: chooses the pieces of long rows that are asked first; None: the order of the text.
    """

    def __init__(self, settings: Settings, budget: Budget, account: RunAccount, failed_rows: FailedRows) -> None:
        self._settings, self._budget, self._account = settings, budget, account
        self._run, self._failed_rows = account.run, failed_rows
        self.near: chunks.Near | None = None
        self._unreachable = 0

    async def answer_row(self, asking: Asking, slot: Slot, indices: list[int]) -> list[Answer | None]:
        """Send a row, and keep the answers in the ledger. What the wire breaks is sent again; a reply that cannot be read is the last one
        if the row was tried before.

        Args:
            asking: with the questions that are wanted.
            indices: where their keys stand in the slot.
        Returns: (questions,) None where the question is to be tried again.
        """
        questions, provider, limiter = asking.questions, asking.provider, asking.limiter
        done: list[Answer | None] = [None] * len(questions)
        before = [slot.tried.get(slot.keys[i]) for i in indices]  # what the last try failed with
        # what failed beside others is not shown
        errors = tuple(p.message if slot.most == ALONE and p is not None else "" for p in before)
        is_second, faults = bool(slot.calls or slot.tried), 0
        request = Request(questions, slot.row, self._run.seed, errors if any(errors) else (), self._settings.timeout_s)
        while None in done:
            outcome = await self._send(asking, request, slot.calls + 1)
            if isinstance(outcome, Problem):  # not sent: budget or interrupt
                done = [Answer(problem=self._not_again(last, outcome, provider)) for last in before]
                break
            reply, events, error = outcome
            for event in events:
                slot.pay(event)
            slot.calls += bool(events)  # else nothing reached the provider: it is no call
            if error is not None:
                await self._account.record([], events)
                before = [Problem(error.kind, error.message)] * len(questions)
                faults += error.kind in TRANSIENT
                if faults < TRIES.get(error.kind, 0):
                    request = replace(request, errors=())
                    await limiter.pause(faults, error.retry_after_s, self._budget.seconds_left)
                    continue
                if is_second or error.kind in TRANSIENT or error.kind in FINAL:
                    self._give_up(error, provider)
                    done = [Answer(problem=problem) for problem in before]
                break
            self._unreachable = 0
            assert isinstance(reply, Reply)
            entries: list[Entry] = []
            for j, answer in enumerate(reply.answers):
                before[j] = answer.problem
                if answer.problem is None:
                    key = slot.single_keys[indices[j]]
                    cost = answer.at_cost(slot.paid)
                    entries.append(Entry(key, cost, provider.name, asking.source, self._run.id, slot.calls))
                if answer.problem is None or is_second or answer.problem.kind in FINAL:
                    done[j] = answer
            await self._account.record(entries, events)
            break
        if None in done:
            self._try_again(slot, indices, before, ALONE)
        self._keep_failures(slot, indices, done, before)
        problem = next((a.problem for a in done if a is not None and a.problem is not None), None)
        if problem is not None and problem.kind not in ("budget", "interrupted"):
            self._account.cost.failed += 1
            failure = self._account.event(
                "failed", asking, error=problem.kind, message=problem.message, attempt=slot.calls
            )
            await self._account.record([], [failure])
        return done

    @staticmethod
    def _try_again(slot: Slot, indices: list[int], problems: Sequence[Problem | None], most: int) -> None:
        """Note what a try of a row failed with, and how many rows may share its next request at most."""
        failed = {slot.keys[i]: problem for i, problem in zip(indices, problems, strict=True) if problem is not None}
        slot.tried, slot.most = {**slot.tried, **failed}, most

    def _keep_failures(
        self, slot: Slot, indices: list[int], done: Sequence[Answer | None], before: Sequence[Problem | None]
    ) -> None:
        """Keep which questions about a row have no answer, and which are to be asked once more, with the error of their one reply.

        Args:
            done: the answer to each question; None: it is to be tried again.
            before: what its last try failed with.
        """
        if not self._run.replays or self._settings.on_error == "raise":
            return
        failed = []
        for i, answer, last in zip(indices, done, before, strict=True):
            why = None if answer is None else answer.problem
            if answer is not None and why is None:
                continue
            if why is not None and why.kind not in KEPT_OPEN:
                what = (why.kind, why.message, why.raw)
            elif last is not None and last.kind not in TRANSIENT:
                what = (TRIED, last.message, f"{last.kind} {slot.most}")
            else:
                continue
            failed.append(Failed(self._run.drawn_by, slot.keys[i], *what, slot.calls, *slot.paid))
        self._failed_rows.add(failed)

    def tokens_at_most(self, asking: Asking, row: Row) -> int:
        """The tokens that asking a row may take."""
        request = Request(asking.questions, row, self._run.seed, (), self._settings.timeout_s)
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
        if self._account.cost.input_tokens == 0 or self._unreachable >= UNREACHABLE:
            raise BackendError(
                f"{provider.name} cannot be reached: {fault.message}",
                help="is the server running, and its address right?",
            )

    async def answer_rows(self, asking: Asking, slots: list[Slot], indices: list[int]) -> list[list[Answer | None]]:
        """Send several rows in one request; a row whose answer is missing or unreadable is to be asked again alone, once.

        A request that fails as a whole, or whose reply holds no answer, is never repeated as it was: its halves are to be asked, down to
        single rows. Only where nothing was answered or billed (a refused connection, 429, 5xx) is it sent again.

        Where the budget has fewer calls left than there are rows, the first ones are sent; where it does not hold the tokens or USD that
        they may cost, half of them. The order inside a request depends on the run's seed and the contents of the rows, not on the
        table's order.

        Args:
            slots: (n,) the rows, of as many calls each.
            indices: where the keys of the questions stand in a slot.
        Returns: the answers by row and question; None where a row is to be tried again.
        """
        if len(slots) == 1:
            return [await self.answer_row(asking, slots[0], indices)]
        questions, limiter = asking.questions, asking.limiter
        n_sent, failed = len(slots), 0
        while True:
            sent = slots[:n_sent]
            order = self._shuffled(sent)
            rows = tuple(sent[i].row for i in order)
            request = RowsRequest(questions, rows, self._run.seed, self._settings.timeout_s)
            outcome = await self._send(asking, request, sent[0].calls + 1)
            if isinstance(outcome, Problem):
                n_sent = self._fewer_rows(n_sent) if outcome.kind == "budget" else 0
                if n_sent:
                    continue
                return [await self.answer_row(asking, slot, indices) for slot in slots]
            reply, events, fault = outcome
            for i, event in zip(order, events, strict=False):  # none where nothing was sent
                sent[i].pay(event)
                sent[i].calls += 1
            if fault is None:
                break
            await self._account.record([], events)
            failed += 1
            if fault.kind not in UNBILLED or failed >= TRIES[fault.kind]:
                break
            for slot in sent:
                self._try_again(slot, indices, [Problem(fault.kind, fault.message)] * len(indices), slot.most)
            await limiter.pause(failed, fault.retry_after_s, self._budget.seconds_left)
        by_row: list[tuple[Answer, ...]] = [()] * n_sent
        problems = [Problem(fault.kind, fault.message) if fault else None] * n_sent
        if isinstance(reply, RowsReply):
            self._unreachable = 0
            by_row = [own for _, own in sorted(zip(order, reply.answers, strict=True), key=lambda pair: pair[0])]
            problems = [next((a.problem for a in own if a.problem is not None), None) for own in by_row]
            name, source = asking.provider.name, asking.source
            entries = [
                Entry(slot.keys[i], answer.at_cost(slot.paid), name, source, self._run.id, slot.calls)
                for slot, own, problem in zip(sent, by_row, problems, strict=True)
                if problem is None
                for i, answer in zip(indices, own, strict=True)
            ]
            await self._account.record(entries, events)
        one_is_at_fault = None not in problems and (fault is None or fault.kind not in UNBILLED)
        answers: list[list[Answer | None]] = [list(own) for own in by_row]
        for n, (slot, problem) in enumerate(zip(sent, problems, strict=True)):
            if problem is not None:
                answers[n] = [None] * len(questions)
                self._try_again(slot, indices, [problem] * len(indices), (n_sent + 1) // 2 if one_is_at_fault else 1)
                self._keep_failures(slot, indices, answers[n], [problem] * len(indices))
        return answers if n_sent == len(slots) else answers + await self.answer_rows(asking, slots[n_sent:], indices)

    def _fewer_rows(self, rows: int) -> int:
        """How many of `rows` to put in a request, where the budget did not hold one with all of them; 0: each alone, if at all."""
        left = self._budget.calls_left
        if left is not None and left < rows:
            return left
        return rows // 2 if rows > 3 and self._budget.exhausted in ("tokens", "usd", "cap") else 0

    def _shuffled(self, slots: list[Slot]) -> list[int]:
        """The positions of rows in an order that their contents and the run's seed decide."""
        salt = str(self._run.seed).encode()
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
        calls = len(parts) if several else 1
        limiter.adopt(provider.limits)
        weighs = self._budget.weighs or limiter.counts_tokens  # else nobody asks for the bounds, and they cost a prompt
        most_in, most_out = _bounds(provider, parts) if weighs else (0, 0)
        slot_tokens = await limiter.enter(most_in + most_out, self._budget.seconds_left)
        try:
            if self._account.interrupted:
                return Problem("interrupted", "the run was interrupted before this row was asked")
            price = provider.price
            ticket = None
            while slot_tokens is not None:  # what a provider learns while a request waits may make it larger
                most = (most_in, most_out)
                ticket = await self._budget.reserve(
                    Reservation(
                        most_in + most_out, price.usd(most_in, most_out, written=most_in) if price else 0.0, calls
                    )
                )
                if ticket is not None and self._budget.weighs:
                    most_in, most_out = _bounds(provider, parts)
                if ticket is None or most == (most_in, most_out):
                    break
                self._budget.release(ticket)
            if slot_tokens is None:
                self._budget.exhausted = "seconds"
            if ticket is None or slot_tokens is None:
                return Problem("budget", f"the budget ({self._budget.exhausted}) ended before this row was asked")
            self._account.cost.calls += calls
            reply: Reply | RowsReply | None = None
            fault: CallError | None = None
            paid_in: int | None = None  # not known: it is charged at most
            paid_out = 0
            cached = cache_writes = 0  # of the input, read from and written to the vendor's prompt cache
            began = time.monotonic()
            left = self._budget.seconds_left
            timeout = request.timeout_s * (1 if several else len(parts)) if provider.limits.timed else None
            if left is not None:
                timeout = max(0.01, left if timeout is None else min(timeout, left))
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
                    paid_in = None
            finally:
                lost = reply is None and fault is None  # cancelled, or an error that ends the run
                if lost:
                    fault = CallError("interrupted", "it was given up before the reply came")
                seconds = time.monotonic() - began
                if paid_in is None:
                    paid_in = most_in if weighs else _bounds(provider, parts)[0]
                usd = price.usd(paid_in, paid_out, cached, cache_writes) if price else None
                sent = fault is None or fault.sent
                if sent:
                    self._budget.settle(ticket, tokens=paid_in + paid_out, usd=usd or 0.0)
                else:
                    self._budget.release(ticket)
                    self._account.cost.calls -= calls
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
                    events = self._account.count(
                        of_request, request, reply, fault, (paid_in, paid_out, usd), seconds, attempt
                    )
                if lost:
                    self._account.unfinished += events
        finally:
            if slot_tokens is not None:
                limiter.leave()
        return (None if fault else reply), events, fault
