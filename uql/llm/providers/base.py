"""What a provider is: one file that maps a request about one row to what a model offers, and its reply to answers."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, runtime_checkable

from uql.base.errors import BackendError, ConfigError, UQLError
from uql.llm.questions import Question, Row
from uql.operators.replies import Answer as Answer, Problem as Problem


@dataclass(slots=True)
class Request:
    """One row and every question about it that has no answer yet: one call."""

    questions: tuple[Question, ...]
    row: Row
    seed: int = 0  # of the fence around the row
    errors: tuple[str, ...] = ()  # what was wrong with the reply of the first try, one text a question ("" where right)
    timeout_s: float = 120.0
    together: int = 1  # rows of the request that it is a part of, which share its words

    def only(self, places: Sequence[int]) -> Request:
        """With the questions at these places alone, in their order."""
        if len(places) == len(self.questions):
            return self
        errors = tuple(self.errors[n] for n in places) if self.errors else ()
        return replace(self, questions=tuple(self.questions[n] for n in places), errors=errors)


@dataclass(frozen=True, slots=True)
class RowsRequest:
    """The same questions about several rows in one request: as many calls as there are rows."""

    questions: tuple[Question, ...]
    rows: tuple[Row, ...]
    seed: int = 0  # of the fences around the rows
    timeout_s: float = 120.0

    def single_requests(self) -> list[Request]:
        """The requests that would ask each row for itself."""
        n = len(self.rows)
        return [Request(self.questions, row, self.seed, timeout_s=self.timeout_s, together=n) for row in self.rows]


@dataclass(slots=True)
class Reply:
    """The answers to a request, in the order of its questions, and what they cost."""

    answers: tuple[Answer, ...]
    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 1  # HTTP requests made for it
    warnings: tuple[str, ...] = ()
    cached_tokens: int = 0  # of the input, those that the vendor read from its prompt cache
    written_tokens: int = 0  # of the input, those that it put into its prompt cache


@dataclass(frozen=True, slots=True)
class RowsReply:
    """The answers to a request about several rows: a tuple a row, in the order of the rows, and what they cost together."""

    answers: tuple[tuple[Answer, ...], ...]
    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 1
    warnings: tuple[str, ...] = ()
    cached_tokens: int = 0
    written_tokens: int = 0


class CallError(Exception):
    """A request that brought no reply: every question of it fails with this.

    Args:
        kind: timeout, rate_limit, server, connection, truncated, empty, refusal, content_filter, too_long, bad_request.
        retry_after_s: how long the provider wants to be left alone, where it said so.
        parameter: of a bad request, the one that was refused, where the provider said so.
        sent: False where nothing reached the provider: it does not count as a call and costs no tokens.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retry_after_s: float | None = None,
        input_tokens: int = 0,
        output_tokens: int = 0,
        parameter: str = "",
        sent: bool = True,
    ) -> None:
        super().__init__(message)
        self.parameter, self.sent = parameter, sent
        self.kind, self.message, self.retry_after_s = kind, message, retry_after_s
        self.input_tokens, self.output_tokens = input_tokens, output_tokens


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens.

    Attributes:
        cached: of input that the vendor had in its prompt cache; None: the same as other input.
        written: of input that the vendor puts into its prompt cache; None: the same as other input.
    """

    input: float
    output: float
    cached: float | None = None
    written: float | None = None

    def halved(self) -> Price:
        """That of a batch API."""
        cached = None if self.cached is None else self.cached / 2
        written = None if self.written is None else self.written / 2
        return Price(self.input / 2, self.output / 2, cached, written)

    def usd(self, input_tokens: float, output_tokens: float, cached: float = 0, written: float = 0) -> float:
        """What these tokens cost.

        Args:
            input_tokens: all of them.
            output_tokens: all of them.
            cached: of the input, those read from the vendor's prompt cache.
            written: of the input, those written to it.
        """
        saved = cached * (self.input - self.cached) if self.cached is not None else 0.0
        added = written * (self.written - self.input) if self.written is not None else 0.0
        return (input_tokens * self.input + output_tokens * self.output - saved + added) / 1e6


@dataclass(frozen=True, slots=True)
class Limits:
    """What a provider allows, and how many requests may be in flight; None: unknown or unlimited."""

    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timed: bool = True  # requests end after settings.timeout_s; not where work in this process cannot be taken back
    adaptive: bool = False  # concurrency grows and shrinks with what the provider bears
    account: str = ""  # whose rates these are, a digest of the key: processes with one account share them


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model can do here; None: not tried yet."""

    probabilities: bool | None = None
    schema: bool | None = None
    images: bool | None = None
    audio: bool | None = None
    video: bool | None = None  # as a file, in one request
    context: int | None = None  # tokens
    output: int | None = None  # tokens of a reply, where that is less than the context leaves
    judges: bool = True  # can it say whether a question is ambiguous? Small models and scripts do not
    descriptions: bool = True  # does it tell labels apart better with a description of each? Small models do not
    small: bool = False  # of a few billion parameters: it plans by candidates that vote, and writes no answers
    shares_prefix: bool = (
        False  # what prompts begin with alike is evaluated once, for as long as no other prompt comes between
    )
    rows_apart: bool = False  # rows of one request are decisions of their own: none changes another's answer, and each has a probability
    weighs_pairs: bool = True  # can it tell of two texts side by side whether they agree? Small models are near chance
    # probability of yes from which LIMIT takes it for sure; None: its yes is taken as it is
    sure_from: float | None = None


class Provider(Protocol):
    """One model, ready to be asked.

    `name` and `version(question)` are part of the ledger's key: two providers of one name and version give the same answers.
    Errors that concern every row (AuthError, QuotaError, UnknownModelError, BackendError, ConfigError) are raised as such,
    a reply that cannot be read is the `problem` of its Answer, and a request without a reply is a CallError.
    """

    @property
    def name(self) -> str: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def price(self) -> Price | None: ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def is_local(self) -> bool:
        """Rows stay on this machine."""

    def version(self, question: Question) -> str:
        """Everything but question and row that decides the answer: prompt version, temperature, context …"""

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        """Upper bounds of input and output tokens of a request, to reserve a budget before it is sent."""

    def answer(self, request: Request) -> Awaitable[Reply]:
        """Ask the questions of one row."""

    async def aclose(self) -> None: ...


@runtime_checkable
class RowsProvider(Protocol):
    """A provider that can also take several rows in one request."""

    def answer_rows(self, request: RowsRequest) -> Awaitable[RowsReply]:
        """Ask the questions of all rows at once. A row that the reply leaves out, names twice or answers in a way that
        cannot be read has a Problem; no row gets the answer of another."""


PARTS = ("name", "limits", "price", "capabilities", "is_local", "version", "tokens_at_most", "answer", "aclose")


def usable(model: Any) -> Provider:
    """The model. Raises: ConfigError (UQL402) where it is an object without what every Provider has."""
    missing = [part for part in PARTS if isinstance(model, type) or not hasattr(model, part)]
    if missing:
        raise ConfigError(
            f"{model!r:.200} is no model: it lacks {', '.join(missing)}",
            code="UQL402",
            help="give the name of a model, or an object with all that uql.llm.providers.base.Provider has",
        )
    provider: Provider = model
    return provider


class blamed:
    """While a part of a provider runs: an error that is not one of those it may raise becomes a BackendError that names both.

    A class, since a generator takes 2 µs of each call.
    """

    __slots__ = ("part", "provider")

    def __init__(self, provider: Provider, part: str) -> None:
        self.provider, self.part = provider, part

    def __enter__(self) -> None:
        """Nothing is opened."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, (UQLError, CallError, TimeoutError, MemoryError)):
            raise BackendError(
                f"the model {self.provider.name} failed in `{self.part}`: {type(error).__name__}: {error}",
                help="`answer` gives a Reply, or raises CallError where a request brought none; rows that were answered are kept",
            ) from error


async def replied(provider: Any, request: Request | RowsRequest) -> Any:
    """The reply to a request, as the provider gives it. Raises: BackendError (UQL406) where that is none."""
    one = isinstance(request, Request)
    part, wanted = ("answer", Reply) if one else ("answer_rows", RowsReply)
    with blamed(provider, part):
        reply = await getattr(provider, part)(request)
        rows = (reply.answers,) if one and isinstance(reply, Reply) else getattr(reply, "answers", ())
        fits = isinstance(reply, wanted) and all(isinstance(answer, Answer) for answers in rows for answer in answers)
        if not fits or not all(isinstance(getattr(reply, name), NUMBER) for name in _AMOUNTS):
            raise TypeError(
                f"it gave {reply!r:.200}, and a {wanted.__name__} of Answers and numbers of tokens was wanted"
            )
    return reply


@runtime_checkable
class LearnsContext(Protocol):
    """A provider that can ask its server for the context of the model before the first request."""

    async def learn_context(self) -> None: ...


@runtime_checkable
class OffersTrial(Protocol):
    """A provider that has answers to some texts about some rows only."""

    def trial(self) -> tuple[str, Row]:
        """A text and a row that it has an answer to, to see that it answers. Raises: ConfigError where there are none."""


@dataclass(slots=True)
class Usage:
    """Tokens and requests of one call, added up over its parts."""

    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    warnings: list[str] = field(default_factory=list)
    cached_tokens: int = 0  # of the input
    written_tokens: int = 0  # of the input

    def totals(self) -> dict[str, Any]:
        """The fields of a Reply or RowsReply beside its answers."""
        amounts = {name: getattr(self, name) for name in _USAGE}
        return {**amounts, "warnings": tuple(self.warnings)}

    def add(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0, written_tokens: int = 0) -> None:
        """Add the tokens of one reply.

        Args:
            input_tokens: all of them.
            output_tokens: all of them.
            cached_tokens: of the input, those read from the vendor's prompt cache.
            written_tokens: of the input, those written to it. Of both no more counts than the input has, so that no request costs
                less than nothing.
        """
        cached_tokens = min(cached_tokens, input_tokens)
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.cached_tokens += cached_tokens
        self.written_tokens += min(written_tokens, input_tokens - cached_tokens)


_USAGE = tuple(held.name for held in fields(Usage))
NUMBER = (int, float)
_AMOUNTS = tuple(name for name in _USAGE if name != "warnings")
