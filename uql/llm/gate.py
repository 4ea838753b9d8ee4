"""The gate: the one way to a model.

Equal questions about equal rows are sent once; the ledger answers what was ever paid for; every other is reserved in the
budget before it is sent, kept to the limits of the provider, tried again where that helps, and written down before it is
used. What has no answer is None with its reason, and is never kept.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, overload

from uql.base.errors import ConfigError, ModelError, ModelReplyError, UQLError
from uql.base.printable import printable
from uql.base.process_wide import rare_collections
from uql.base.settings import Settings
from uql.llm.asking import Asking, known_answers, without_answer
from uql.llm.budget import LIMITS, Budget, Share
from uql.llm.calibration import Calibration, applied, kept_audits, load_calibrations
from uql.llm.claims import Claimed, Claims
from uql.llm.corrections import People, overruled
from uql.llm.draws import DrawLog
from uql.llm.events import Event
from uql.llm.first_steps import NEVER, FailedRows, FirstSteps
from uql.llm.ledger import Ledger
from uql.llm.ledger_keys import Chunk, Slot, collected, distinct, question_key
from uql.llm.ledger_rows import RETRIED, Failed
from uql.llm.limiter import Limiter
from uql.llm.prices import unpriced
from uql.llm.prompts import several
from uql.llm.providers import open_provider
from uql.llm.providers.base import Answer, Problem, Provider, RowsProvider
from uql.llm.questions import Answers, Question, Row
from uql.llm.run_account import RunAccount
from uql.llm.run_lease import Lease
from uql.llm.run_record import Cost as Cost, Run as Run
from uql.llm.sender import Sender
from uql.llm.turns import REFUSED, AllInFlight, InFlight, Turns
from uql.operators.replies import Text, YesNo
from uql.operators.rows import label_of

Announcement = Callable[[str, tuple[str, ...], int | None], None]
log = logging.getLogger("uql.gate")
GRACE_S = 5.0  # that calls in flight are given when an ask is cancelled
CHUNK = 32_768  # distinct rows whose keys are looked up at once: the more, the fewer pages of the ledger hold them
STARTED_AT_ONCE = 32  # requests, between which those before them go on
CLAIMED = 128  # rows that are claimed at once, at least
FIRST_LOOK_S, LAST_LOOK_S = 0.01, 0.1  # between two looks at rows that another run has in flight


class Gate:
    """Made by `Gate.open`; used by one event loop at a time.

    Attributes:
        account: of the run.
        cost: what was paid so far.  warnings: texts for the user, each once.
        listeners: called with every event, in the thread of the event loop.
        warn: adds a warning.
        sender: of the rows that the ledger does not answer.
        on_announce: called before the first row goes to a model that is not of this machine: its name, the columns, rows at most.
        on_loading: called with the name of a model of this process before it is loaded, which may take long.
        budget: of the run, shared by all its asks.
        calibrated: are calibrations that `uql calibrate` made used?
    """

    def __init__(
        self,
        settings: Settings,
        *,
        provider: Provider | str | None,
        owned: bool,
        budget: Budget,
        account: RunAccount,
    ) -> None:
        self.settings, self.budget, self.account = settings, budget, account
        self.ledger, self.run = account.ledger, account.run
        self.cost, self.warnings = account.cost, account.warnings
        self.listeners, self.warn = account.listeners, account.warn
        self.failed_rows = FailedRows(self.ledger, self.run)
        self.sender = Sender(settings, budget, account, self.failed_rows)
        self._owned = owned
        self._default = provider
        self._providers: dict[str, Provider] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._limiters: dict[str, Limiter] = {}
        # by model and condition, as they are when it is opened
        self._calibrations: dict[str, dict[str, Calibration]] = {}
        self.calibrated = True
        self._audits: dict[str, dict[str, dict[str, float]]] = {}  # of probabilities, by model and condition
        self.people = People(self.ledger.secret)  # who go before the model; those of the ledger once a model is open
        self._inflight = AllInFlight()
        self._active, self._since = 0, 0.0
        self._announced: set[str] = set()
        self.on_announce: list[Announcement] = []
        self.on_loading: list[Callable[[str], None]] = []
        self._started = False
        self._lease: Lease | None = None  # of the run, while others may see its ledger
        self.claims: Claims | None = None  # of the rows in flight; None: the ledger is not shared
        self.as_drawn = False  # rows are drawn again: answers of people that came after the draw wait for its end
        self.met_others = False  # rows of a run that keeps its draws were answered by another one meanwhile
        self.unfinished = False  # rows that the answer needs were not asked, since the budget of calls had ended
        # of a run that keeps its draws: what this sitting has asked, and the first step of the budget in which it did
        self._first_steps = FirstSteps()
        self._shared = self.ledger.path != ":memory:" or not owned  # may others see the ledger?
        self.draws = DrawLog(self.ledger, self.run, self.warn, persistent=self._shared and not self.run.part)
        self._ended = ""  # how the run ended, where it was not well
        self.attempted = set[Question]()  # of TRY: a row without an answer is never raised, whatever on_error says

    def part(self, *, calls: int | None = None, statement: str = "") -> Gate:
        """A gate with costs and warnings of its own that shares all else: models, limits, ledger, questions in flight, events.

        It is not closed; this gate must stay open while it is used, and have opened its model (`await self.provider()`).

        Args:
            calls: it may make at most; None: what the whole run has left.
            statement: what it is for.
        """
        run = Run(self.run.id, self.run.seed, statement)
        gate = Gate(
            self.settings,
            provider=self._default,
            owned=False,
            budget=Share(self.budget, calls),
            account=self.account.part(run),
        )
        gate._providers, gate._opening = self._providers, self._opening
        gate._limiters, gate._inflight = self._limiters, self._inflight
        gate.claims, gate.sender.near = self.claims, self.sender.near
        gate._announced, gate.on_announce, gate.on_loading = self._announced, self.on_announce, self.on_loading
        return gate

    @classmethod
    def open(
        cls,
        settings: Settings,
        *,
        run: Run | None = None,
        model: Provider | str | None = None,
        ledger: Ledger | None = None,
        budget: Budget | None = None,
        calls: int | Literal["settings"] | None = "settings",
    ) -> Gate:
        """A gate for one run.

        Args:
            settings: model, ledger, budget, max_cost, max_seconds, max_tokens, concurrency, on_error, timeout_s, plugins are read;
                offline: what the ledger does not hold is an error (UQL411), nothing is sent.
            model: a provider, or the name of one, instead of settings.model. A provider given stays open.
            ledger: shared with others and left open; None: that of settings.ledger, closed with the gate.
            budget: shared with other gates of the run; None: a new one of `calls` calls.
            calls: None is unlimited; "settings": those of the settings, by default as many as for a query that returns rows.
        Raises: ConfigError where the ledger cannot be used; a model is opened when it is first asked.
        """
        if calls == "settings":
            calls = settings.calls()
        if budget is None:
            budget = Budget(
                calls=calls, tokens=settings.max_tokens, usd=settings.max_cost, seconds=settings.max_seconds
            )
        return cls(
            settings,
            provider=model if model is not None else settings.model,
            owned=ledger is None,
            budget=budget,
            account=RunAccount(
                ledger if ledger is not None else Ledger(settings.ledger), run or Run("run", settings.seed)
            ),
        )

    async def __aenter__(self) -> Gate:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and issubclass(kind, UQLError):
            self._ended = self._ended or "failed"
        await self.aclose()

    async def aclose(self) -> None:
        """Close the providers that the gate opened by name, and the ledger if it is its own."""
        for key, provider in self._providers.items():
            if not key.startswith("#"):
                await provider.aclose()
        self._providers.clear()
        if self.account.unfinished:
            await self.account.record([], self.account.unfinished)
        if self._started:
            reached = "partial" if self.budget.exhausted in LIMITS else "unfinished" if self.unfinished else "done"
            status = "interrupted" if self.account.interrupted else self._ended or reached
            held = self._lease is None or await asyncio.to_thread(self._lease.release)
            if held and not self.run.part:
                await asyncio.to_thread(self.ledger.finish_run, self.run.id, status)
            self._started = False
        if self._owned:
            await asyncio.to_thread(self.ledger.close)

    @property
    def calls_left(self) -> int | None:
        """Calls that may still be made; None: without limit."""
        return self.budget.calls_left

    @property
    def drawn_until(self) -> float:
        """What people answered from then on came after the draws that this run takes up; infinity: it takes up none."""
        return self.run.started if self.run.root and self.run.started is not None else math.inf

    def interrupt(self) -> None:
        """Send nothing more. What is in flight is waited for and kept; the rest comes back as failures "interrupted"."""
        self.account.interrupted = True

    def _taken_over(self) -> None:
        """Another process continues the run, since this one gave no sign of life: it alone asks and pays from now on."""
        self.account.interrupted = True
        self.warn(f"the run {self.run.id} was taken over by another process; nothing more was sent from here")

    @property
    def interrupted(self) -> bool:
        return self.account.interrupted

    # -------------------------------------------------------------------------------------------------------- the models
    async def provider(self, model: str | Provider | None = None) -> Provider:
        """The provider of a model's name, opened when first needed. Raises what opening it raises, and UQL402."""
        spec = self._default if model is None else model
        key = spec if isinstance(spec, str) else f"#{id(spec)}"
        provider = self._providers.get(key)
        if provider is None:
            async with self._opening.setdefault(key, asyncio.Lock()):
                if key not in self._providers:
                    opened = await asyncio.to_thread(open_provider, spec, self.settings, plugins=self.settings.plugins)
                    if self.settings.batch:
                        opened = self._in_batches(opened)
                    try:
                        await self._begin(opened)
                    except UQLError:
                        if isinstance(spec, str):
                            await opened.aclose()
                        raise
                    self._calibrations[opened.name] = await asyncio.to_thread(
                        load_calibrations, self.ledger, opened.name
                    )
                    self._audits[opened.name] = await asyncio.to_thread(kept_audits, self.ledger, opened.name)
                    concurrency = None if self.settings.batch else self.settings.concurrency
                    share = partial(self.ledger.take_rate, opened.name, opened.limits.account)
                    self._limiters[key] = Limiter(opened.limits, concurrency=concurrency, share=share)
                    self._providers[key] = opened
            provider = self._providers[key]
        return provider

    def _in_batches(self, opened: Provider) -> Provider:
        """The provider by its batch API. Raises ConfigError (UQL402) where it has none, or there is no time for it."""
        from uql.llm.providers.chat_provider import ChatProvider

        if not isinstance(opened, ChatProvider) or opened.batches is None:
            raise ConfigError(
                f"{opened.name} has no batch API", code="UQL402", help="batch = true is of openai: and anthropic:"
            )
        if self.settings.max_seconds is not None:
            raise ConfigError(
                "a batch may take a day, and max_seconds is set", code="UQL402", help="leave one of them out"
            )
        provider: Provider = opened.in_batches(self.ledger)  # type: ignore[assignment]
        return provider

    async def _begin(self, opened: Provider) -> None:
        """Note the run, once. Raises ModelError (UQL402) where its cost cannot be kept, ConfigError (UQL414) where it is another's."""
        if self.budget.usd is not None and opened.price is None:
            raise unpriced(opened.name)
        if self._started:
            return
        run = self.run
        if self._shared:
            can_be_continued = bool(run.details) or run.again
            name = run.id if can_be_continued else f"{run.id}-{secrets.token_hex(8)}"
            lease = Lease(self.ledger, name, self._taken_over)
            await asyncio.to_thread(lease.take)
            drawn_by = run.drawn_by if run.replays and not run.retries else ""
            self._lease, self.claims = lease, Claims(self.ledger, name, drawn_by)
        self._started = True
        self.people = await asyncio.to_thread(People.of, self.ledger)
        if run.part:
            return
        note = partial(
            self.ledger.start_run,
            run.id,
            statement=run.statement,
            model=opened.name,
            seed=run.seed,
            details=run.details,
        )
        await asyncio.to_thread(note)

    def _limiter(self, provider: Provider) -> Limiter:
        return next(self._limiters[key] for key, value in self._providers.items() if value is provider)

    async def _asking(
        self, questions: Sequence[Question], model: str | Provider | None = None, source: str = "", together: int = 1
    ) -> Asking:
        """What an ask puts to a model; its arguments are those of `ask`."""
        provider = await self.provider(model)
        shares = together > 1 and isinstance(provider, RowsProvider) and several.takes(tuple(questions))
        shared = [question_key(provider, q, together=True) for q in questions] if shares else []
        heads = [question_key(provider, q) for q in questions]
        limiter = self._limiter(provider)
        return Asking(tuple(questions), provider, limiter, source, together if shared else 1, heads, shared)

    # ---------------------------------------------------------------------------------------------------------------- ask
    @overload
    async def ask(
        self,
        question: Question,
        rows: Sequence[Row],
        *,
        model: str | Provider | None = None,
        source: str = "",
        together: int = 1,
    ) -> Answers: ...
    @overload
    async def ask(
        self,
        question: Sequence[Question],
        rows: Sequence[Row],
        *,
        model: str | Provider | None = None,
        source: str = "",
        together: int = 1,
    ) -> tuple[Answers, ...]: ...
    async def ask(
        self,
        question: Question | Sequence[Question],
        rows: Sequence[Row],
        *,
        model: str | Provider | None = None,
        source: str = "",
        together: int = 1,
    ) -> Answers | tuple[Answers, ...]:
        """Put a question (or several, in one request a row) to a model about each row.

        Args:
            rows: NULL ones are answered None without a call. A Write may be asked of the empty row `Row()`.
            model: instead of the gate's own.
            source: the table that the rows come from, so that the ledger can forget it.
            together: rows of one request at most, where model, questions and rows allow several; each is a call.
        Returns: the answers, in order, for one question or a tuple for several. Rows without one have a Failure; those
            that the budget did not reach one of kind "budget".
        Raises: AuthError, QuotaError, UnknownModelError, BackendError, ConfigError, whatever on_error says;
            ModelReplyError at the first failed row where on_error = 'raise'.
        """
        questions = (question,) if isinstance(question, Question) else tuple(question)
        if not questions:
            raise ConfigError("ask needs at least one question")
        began = time.monotonic()
        if not self._active:
            self._since = began
        self._active += 1
        try:
            with rare_collections():
                answers = await self._ask(await self._asking(questions, model, source, together), rows)
        finally:
            self._active -= 1
            if not self._active:
                self.cost.seconds += time.monotonic() - self._since
        return answers[0] if isinstance(question, Question) else answers

    async def _ask(self, asking: Asking, rows: Sequence[Row]) -> tuple[Answers, ...]:
        questions = asking.questions
        columns: list[list[Answer | None]] = [[None] * len(rows) for _ in questions]
        await self.ledger.note([*asking.heads, *asking.shared])
        corrections, left = await self._people_answers(asking, rows, self.drawn_until if self.as_drawn else math.inf)
        ask_null = all(isinstance(q.reply(), Text) for q in questions)
        if self.run.replays and len(left) < len(rows):  # the model's answers were paid for before people said otherwise
            corrected = sorted(set(range(len(rows))).difference(left))
            for chunk in self._distinct(asking, rows, corrected, ask_null):
                failed = await self._failed_before(chunk)
                answers, paid, _, _ = await self._as_drawn(asking, chunk, failed)
                await self._replay(asking, chunk, answers, paid, failed)

        async def ask_chunk(chunk: Chunk, handed_out: asyncio.Event) -> None:
            try:
                chunk.fill(columns, await self._ask_chunk(asking, chunk, handed_out))
            finally:
                handed_out.set()

        try:
            async with asyncio.TaskGroup() as group:
                for chunk in self._distinct(asking, rows, left, ask_null):
                    handed_out = asyncio.Event()
                    task = group.create_task(ask_chunk(chunk, handed_out))
                    await (task if self.run.replays else handed_out.wait())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return self._read(asking, columns, corrections)

    def _distinct(self, asking: Asking, rows: Sequence[Row], places: Sequence[int], ask_null: bool) -> Iterator[Chunk]:
        return distinct(rows, places, asking.heads, self.ledger, ask_null=ask_null, most=CHUNK, together=asking.shared)

    async def _people_answers(
        self, asking: Asking, rows: Sequence[Row], until: float
    ) -> tuple[list[dict[int, Answer]], Sequence[int]]:
        """For each question what people answered, by position; and the positions of the rows that are left for the model."""
        answers = [self.people.answers(q, rows, until=until) for q in asking.questions]
        whole = set(answers[0]).intersection(*answers[1:])
        if not whole:
            return answers, range(len(rows))
        await self.account.record_cached(asking, len(whole))
        return answers, [i for i in range(len(rows)) if i not in whole]

    def _read(
        self, asking: Asking, columns: list[list[Answer | None]], corrections: Sequence[dict[int, Answer]]
    ) -> tuple[Answers, ...]:
        """Answers in the form that kernels get: the model's calibrated where there is a calibration, those of people before it."""
        own = self._calibrations.get(asking.provider.name, {}) if self.calibrated else {}
        return tuple(
            overruled(q, applied(own, q, collected(q, column)), people)
            for q, column, people in zip(asking.questions, columns, corrections, strict=True)
        )

    async def audited(self, question: Question) -> tuple[str, dict[str, float] | None]:
        """The model's name, and its calibration for a condition (`uql calibrate`), where there is one."""
        provider = await self.provider()
        text = question.text if isinstance(question.reply(), YesNo) else ""
        return provider.name, self._audits.get(provider.name, {}).get(text)

    async def ever_asked(self, questions: Sequence[Question]) -> bool:
        """Whether any of these questions was ever asked of a row, so that the ledger may have answers."""
        asking = await self._asking(questions, together=2)
        return any(self.people.knows(q) for q in questions) or await self.ledger.ever_asked(
            [*asking.heads, *asking.shared]
        )

    async def ledger_answers(
        self, questions: Sequence[Question], rows: Sequence[Row], *, together: int = 1
    ) -> tuple[Answers, ...]:
        """What the ledger answers, at no call: the other rows fail with the kind "budget".

        A row that the ledger answers whole is counted as cached, as in `ask`. A run that keeps its draws does not know what was
        answered since it began: those rows are drawn as they were.

        Args:
            questions: (q,) put about each row.
            rows: (n,) what is shown.
            together: rows that share one request.
        Returns: (q,) the answers to each question, n each.
        """
        asking = await self._asking(questions, together=together)
        columns: list[list[Answer | None]] = [[None] * len(rows) for _ in questions]
        missing = Answer(problem=Problem("budget", "the ledger does not have it"))
        until = math.inf if self.run.started is None else self.run.started
        corrections, left = await self._people_answers(asking, rows, until)
        if not await self.ledger.ever_asked(
            [*asking.heads, *asking.shared]
        ):  # a new question: no row's key need be made
            columns = [[None if r.is_null else missing for r in rows] for _ in questions]
            return self._read(asking, columns, corrections)
        for chunk in self._distinct(asking, rows, left, ask_null=False):
            by_key, later = await self._known(chunk.all_keys)
            by_key = {key: answer for key, answer in by_key.items() if key not in later} if later else by_key
            answers = known_answers(asking, chunk.keys, chunk.single_keys, by_key)
            await self.account.record_cached(asking, sum(map(all, zip(*answers, strict=True))))
            chunk.fill(columns, [[answer or missing for answer in column] for column in answers])
        return self._read(asking, columns, corrections)

    async def unanswered(self, questions: Sequence[Question], rows: Sequence[Row], model: str | Provider) -> int:
        """How many distinct rows the ledger does not have a model's answers of.

        Args:
            questions: asked of each row together; a row counts where one of them has no answer.
            rows: what is shown; equal ones count once.
            model: by its name, or the provider.
        """
        asking, count = await self._asking(questions, model), 0
        for chunk in self._distinct(asking, rows, range(len(rows)), ask_null=False):
            answers = await self.ledger.get(chunk.all_keys)
            known = known_answers(asking, chunk.keys, chunk.single_keys, answers)
            count += len(chunk.rows) - sum(map(all, zip(*known, strict=True)))
        return count

    async def _as_drawn(
        self, asking: Asking, chunk: Chunk, failed: Mapping[bytes, Failed]
    ) -> tuple[dict[bytes, Answer], dict[bytes, int], list[list[Answer | None]], list[int]]:
        """What `_known` gives about a chunk, and the answers to each question: the failure where the run that drew first got none,
        whoever has got one since. Last the rows that were answered too late for the sitting that is given again."""
        answers, paid = await self._known(chunk.all_keys, failed)
        late = {key for key, one in failed.items() if one.is_final and one.at > self.run.until}
        gone = {key: one for key, one in failed.items() if one.is_final and key not in late}
        if failed:
            pairs = [
                pair for both in zip(chunk.keys, chunk.single_keys, strict=True) for pair in zip(*both, strict=True)
            ]
            alone = {single_key for key, single_key in pairs if key in gone and single_key not in gone}
            answers = {key: answer for key, answer in answers.items() if key not in alone}
            answers |= {key: without_answer(one) for key, one in gone.items()}
            paid = {key: calls for key, calls in paid.items() if key not in alone}
            again = {key for key, one in failed.items() if not one.is_final and one.at <= self.run.until}
            paid |= {key: abs(paid[key]) for pair in pairs if pair[0] in again for key in pair if key in paid}
        if self.run.until < math.inf:
            late |= {key for key, calls in paid.items() if calls < 0}
        if late:
            answers = {key: answer for key, answer in answers.items() if key not in late}
            paid = {key: calls for key, calls in paid.items() if key not in late}
        columns = known_answers(asking, chunk.keys, chunk.single_keys, answers)
        rows = zip(*columns, *chunk.key_columns, strict=True) if late else ()
        n = len(columns)
        return answers, paid, columns, [i for i, r in enumerate(rows) if not all(r[:n]) and not late.isdisjoint(r[n:])]

    async def _known(
        self, keys: list[bytes], failed: Mapping[bytes, Failed] | None = None
    ) -> tuple[dict[bytes, Answer], dict[bytes, int]]:
        """The answers in the ledger; and those of them paid for since the run began and not asked up to this step in this sitting,
        with their calls, as those of rows that failed.

        A part of the statement that goes on does not know in a step what another part asked in a later one: it draws as it did then.
        """
        since, now = self.run.started, self.budget.step
        answers, later = await self.ledger.get_paid(keys, math.inf if since is None else since, self.run.until)
        unanswered = (one for key, one in (failed or {}).items() if one.is_final or key not in answers)
        later |= {one.key: one.calls for one in unanswered if one.kind != RETRIED}
        steps = self._first_steps.of(list(later))
        return answers, {key: calls for (key, calls), step in zip(later.items(), steps, strict=True) if step > now}

    async def _replay(
        self,
        asking: Asking,
        chunk: Chunk,
        answers: Mapping[bytes, Answer],
        calls: Mapping[bytes, int],
        failed: Mapping[bytes, Failed],
    ) -> list[int]:
        """Count the calls of earlier sittings again, as the rows that they paid for are asked again; returns the rows for which
        the budget has no calls, so that only a later sitting, with more of them, has asked them."""
        beyond = self._count_again(
            asking, chunk.rows, chunk.key_columns, {**failed, **answers} if failed else answers, calls
        )
        self._first_steps.note(chunk.all_keys, self.budget.step)
        return beyond

    def _count_again(
        self,
        asking: Asking,
        rows: Sequence[Row],
        columns: Sequence[Sequence[bytes]],
        answers: Mapping[bytes, Answer | Failed],
        calls: Mapping[bytes, int],
    ) -> list[int]:
        """Count what rows have cost that were paid for since the run began.

        Args:
            rows: (n,) rows.
            columns: n keys of their answers each.
            answers: by key.
            calls: by the keys of those that were paid for.
        Returns: the positions of the rows that the run's calls do not reach, which are not counted.
        """
        if not calls:
            return []
        now = self.budget.step
        steps = dict(zip(calls, self._first_steps.of(list(calls), after=now), strict=True))
        n_calls, tokens, usd = 0, 0, 0.0
        left = None if self.run.retries else self.budget.own_calls_left
        beyond = []
        at_most = dict[bool, list[int]]({True: [], False: []})  # tokens of rows that shared requests, and of others
        for i, (row, keys) in enumerate(zip(rows, zip(*columns, strict=True), strict=True)):
            paid = [key for key in keys if key in calls]
            if not paid:
                continue
            # what this sitting did not ask yet was asked here
            most = max(paid, key=lambda key: (steps[key] == NEVER, calls[key])) if paid[1:] else paid[0]
            step = steps[most]
            if step != NEVER:
                self.budget.advance(calls[most], step)
                continue
            if left is not None and n_calls + calls[most] > left:
                beyond.append(i)
                continue
            n_calls += calls[most]
            tokens_in, tokens_out, cost = answers[most].paid or (0, 0, 0.0)
            tokens += tokens_in + tokens_out
            usd += cost or 0.0
            if self.budget.tokens is not None:
                shares = len(columns) > len(asking.questions) and keys[0] != keys[len(asking.questions)]
                at_most[shares].append(self.sender.tokens_at_most(asking, row))
        requests = (at_most[True][i : i + asking.together] for i in range(0, len(at_most[True]), asking.together))
        largest = max((*map(sum, requests), *at_most[False]), default=0)
        self.budget.largest_tokens = max(self.budget.largest_tokens, largest)
        self.budget.replay(n_calls, tokens, usd)
        return beyond

    async def _ask_chunk(self, asking: Asking, chunk: Chunk, handed_out: asyncio.Event) -> list[list[Answer | None]]:
        """The answers to each question about the rows of a chunk: from others in flight, from the ledger, from the model.

        `handed_out` is set when the last rows are on their way: the next chunk may begin, so that no place in flight is empty.
        """
        n_ended = self._inflight.n_ended
        failed = await self._failed_before(chunk)
        answers, paid, columns, late = await self._as_drawn(asking, chunk, failed)
        self._refuse(columns, late)
        open_columns = ((keys, column) for keys, column in zip(chunk.keys, columns, strict=True) if not all(column))
        mine = self._inflight.begin(key for both in open_columns for key, a in zip(*both, strict=True) if a is None)
        try:
            if self._inflight.n_ended != n_ended:  # another ask may have got these answers meanwhile
                answers, paid, columns, late = await self._as_drawn(asking, chunk, failed)
                self._refuse(columns, late)
                for keys, column in zip(chunk.keys, columns, strict=True):
                    mine.settle_each(keys, column)
            unanswered: list[Slot] = []
            beyond = late
            whole = all(map(all, columns))
            by_row = zip(*columns, strict=True) if not whole else ()
            # rows that the ledger did not answer whole
            rest = {i: chunk.slot(i, list(known)) for i, known in enumerate(by_row) if not all(known)}
            if failed:
                for slot in rest.values():
                    slot.try_again(failed)
            for slot in rest.values():
                if any(answer is None and key in mine for key, answer in zip(slot.keys, slot.answers, strict=True)):
                    unanswered.append(slot)
            if self.run.replays:
                # a row whose other questions were paid for is sent once more: told later, that is one of its calls
                again = (slot for slot in unanswered if not slot.tried)
                sent_too = {key for slot in again for key in (*slot.keys, *slot.single_keys) if key in paid}
                counted = {**paid, **{key: paid[key] - 1 for key in sent_too}}
                beyond = [*late, *await self._replay(asking, chunk, answers, counted, failed)]
                self._refuse(columns, beyond)
            lost = self._fail_again(asking, chunk, failed, beyond)
            await self.account.record([], list(lost.values()))
            await self.account.record_cached(asking, len(chunk.rows) - len(lost.keys() | rest.keys() | set(beyond)))
            if unanswered and self.settings.offline:
                raise ModelError(
                    f"offline, and the ledger {self.ledger.path} has no answer for {len(unanswered)} rows",
                    code="UQL411",
                    help=f"asked: {asking.questions[0].text[:80]!r} of {asking.provider.name}; run it once without --offline",
                )
            if unanswered and not asking.provider.is_local:
                self._announce(asking.provider, unanswered)
            elif unanswered and getattr(asking.provider, "loads", False):
                for listener in self.on_loading:
                    listener(asking.provider.name)
            await self._work(asking, unanswered, mine, handed_out)
        finally:
            given_up = Answer(problem=Problem("interrupted", "the question was given up before it was answered"))
            self._inflight.end(mine, given_up)
        for i, slot in rest.items():
            for column, key, answer in zip(columns, slot.keys, slot.answers, strict=True):
                if answer is None:  # another ask has it in flight
                    answer = mine.answer(key) if key in mine else await self._other(key)
                column[i] = answer
        if failed and self.run.retries:
            found = zip(chunk.keys, columns, strict=True)
            pairs = (pair for both in found for pair in zip(*both, strict=True))
            retried = (failed[key] for key, a in pairs if key in failed and a is not None and a.problem is None)
            self.failed_rows.add([replace(one, kind=RETRIED) for one in retried])
        return columns

    def _refuse(self, columns: list[list[Answer | None]], rows: list[int]) -> None:
        """Give rows of a chunk no answer, as the run did whose calls ended before them."""
        if rows:
            self.budget.exhausted = self.run.ended_by or "calls"
        for column in columns:
            for i in rows:
                column[i] = REFUSED

    async def _failed_before(self, chunk: Chunk) -> dict[bytes, Failed]:
        """The rows for which this run, or the one that drew first, got no answer: the model would give none now."""
        if not self.run.replays:
            return {}
        failed = await self.failed_rows.of([key for keys in chunk.keys for key in keys])
        if self.run.retries:  # what failed is asked once more, and in full
            failed = {key: replace(one, kind=RETRIED) for key, one in failed.items()}
        return failed

    def _fail_again(
        self, asking: Asking, chunk: Chunk, failed: Mapping[bytes, Failed], beyond: Sequence[int]
    ) -> dict[int, Event]:
        """Count the rows that failed and are not `beyond` the calls of the run as failed again; returns an event of each."""
        rows = ((i, failed[key]) for keys in chunk.keys for i, key in enumerate(keys) if key in failed)
        gone = {i: one for i, one in rows if one.is_final} if failed else {}
        self.cost.failed += len(gone.keys() - set(beyond))
        return {
            i: self.account.event("failed", asking, error=one.kind, message=one.message, attempt=one.calls)
            for i, one in gone.items()
            if i not in beyond
        }

    async def answered_elsewhere(self, asking: Asking, slots: list[Slot], known: Claimed) -> list[int]:
        """Count rows that another run has answered while this one was about to ask them, or waited.

        Args:
            slots: the rows that were answered, or failed.
            known: how.
        Returns: the positions of those that the calls of this run do not reach.
        """
        beyond: list[int] = []
        if self.run.replays:
            self.met_others = True
            origins = await self.ledger.origins(list(known.answers))
            columns = list(zip(*((*slot.keys, *slot.single_keys) for slot in slots), strict=True))
            calls = {key: origin.calls for key, origin in origins.items()}
            calls |= {key: one.calls for key, one in known.failed.items()}
            costs: dict[bytes, Answer | Failed] = {**known.failed, **known.answers}
            beyond = self._count_again(asking, [slot.row for slot in slots], columns, costs, calls)
            if beyond:
                self.budget.exhausted = "calls"
        self.cost.failed += sum(not known.failed.keys().isdisjoint(slot.keys) for slot in slots)
        await self.account.record_cached(asking, len(slots) - len(beyond))
        return beyond

    def _announce(self, provider: Provider, unanswered: list[Slot]) -> None:
        """Say once what leaves this machine, before it does."""
        if provider.name in self._announced:
            return
        self._announced.add(provider.name)
        columns = sorted(
            {label_of(c) for slot in unanswered for c in slot.row.cells}
            | {n for slot in unanswered for n, _ in slot.row.holes}
        )
        left = self.calls_left
        most = "every row that is asked" if left is None else f"at most {left} rows"
        say = log.info if self.on_announce else log.warning
        say("%s is sent %s of %s", provider.name, printable(", ".join(columns)) or "a question", most)
        for listener in self.on_announce:
            listener(provider.name, tuple(columns), left)

    async def _other(self, key: bytes) -> Answer:
        other = self._inflight.get(key)
        if other is not None:
            return await other.wait(key)
        return (await self.ledger.get([key])).get(key) or Answer(
            problem=Problem("interrupted", "another query gave this question up")
        )

    async def _work(self, asking: Asking, unanswered: list[Slot], mine: InFlight, handed_out: asyncio.Event) -> None:
        """Has the rows answered: by the model, or by another run that has them in flight, which is waited for."""
        if not unanswered:
            return
        left = await self._send_free(asking, unanswered, mine, handed_out, waits=False)
        pause_s = FIRST_LOOK_S
        while left:
            why = self._waits_no_longer()
            if why is not None:
                for slot in left:
                    for j, key in enumerate(slot.keys):
                        if mine.is_open(key):
                            slot.answers[j] = Answer(problem=why)
                            mine.settle(key, Answer(problem=why))
                return
            try:
                await asyncio.sleep(pause_s)
            except asyncio.CancelledError:
                self._ended = self._ended or "interrupted"
                raise
            before = len(left)
            left = await self._send_free(asking, left, mine, handed_out, waits=True)
            pause_s = FIRST_LOOK_S if len(left) < before else min(2 * pause_s, LAST_LOOK_S)

    def _waits_no_longer(self) -> Problem | None:
        """Why rows that another run has in flight are not waited for any more."""
        if self.account.interrupted:
            return Problem("interrupted", "the run was interrupted before this row was answered")
        left_s = self.budget.seconds_left
        if left_s is not None and left_s <= 0:
            self.budget.exhausted = "seconds"
            return Problem("budget", "the budget (seconds) ended before this row was answered")
        return None

    async def _send_free(
        self, asking: Asking, unanswered: list[Slot], mine: InFlight, handed_out: asyncio.Event, *, waits: bool
    ) -> list[Slot]:
        """Workers take the rows that no other run has in flight, in order, as many at once as may share a request; the first
        error that concerns every row ends them all and is raised.

        `waits`: they were in flight a moment ago. Returns: the rows that still are.
        """
        most = asking.limiter.most
        eager = self.settings.on_error == "raise"
        turns = Turns(self.claims, self.answered_elsewhere, asking, unanswered, mine, max(CLAIMED, most), waits, eager)
        stop: list[BaseException] = []

        def settle(slot: Slot, indices: list[int], answers: list[Answer | None]) -> None:
            if None in answers:
                turns.put_aside(slot)
            for j, answer in zip(indices, answers, strict=True):
                if answer is None:
                    continue
                slot.answers[j] = answer
                mine.settle(slot.keys[j], answer)
                if (
                    answer.problem
                    and eager
                    and asking.questions[j] not in self.attempted
                    and answer.problem.kind not in ("budget", "interrupted")
                ):
                    stop.append(
                        ModelReplyError(
                            f"{answer.problem.kind}: {answer.problem.message}",
                            help=_reply_summary(asking.questions[j], answer.problem),
                        )
                    )
                    return

        async def worker() -> None:
            while (turn := await turns.next()) is not None:
                slots, indices = turn
                if stop:
                    return
                part = asking.only(indices)
                try:
                    by_row = await self.sender.answer_rows(part, slots, indices)
                except (UQLError, asyncio.CancelledError) as error:
                    stop.append(error)
                    return
                for slot, answers in zip(slots, by_row, strict=True):
                    settle(slot, indices, answers)
            handed_out.set()

        workers: list[asyncio.Task[None]] = []
        try:
            n_rows = len(unanswered)
            while n_rows and not stop:
                workers.clear()
                while len(workers) < min(most, n_rows):
                    workers.append(asyncio.create_task(worker()))
                    # the first requests are sent while the next connections open
                    if len(workers) % STARTED_AT_ONCE == 0:
                        await asyncio.sleep(0)
                ended, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
                for task in ended:
                    task.result()
                n_rows = turns.next_round()
        except BaseException as error:  # cancelled, or an error of the provider's own making: no worker stays behind
            self._ended = self._ended or ("interrupted" if isinstance(error, asyncio.CancelledError) else "failed")
            stop.append(error)
            if isinstance(error, asyncio.CancelledError):  # what is in flight is paid for: wait a little, and keep it
                await asyncio.wait(workers, timeout=GRACE_S)
            for task in workers:
                task.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            raise
        finally:
            turns.end()
        if stop:
            self._ended = "failed"
            raise stop[0]
        return turns.later


def _reply_summary(question: Question, problem: Problem) -> str:
    return (
        f"asked: {question.text[:80]!r}; the reply: {problem.raw[:200]!r}"
        if problem.raw
        else f"asked: {question.text[:80]!r}"
    )
