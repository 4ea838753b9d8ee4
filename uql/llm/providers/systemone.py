"""systemone:MODEL, systemone:http(s)://host#MODEL: decision models behind `POST /v1/systemone`, TypeSafe's Jev and the servers like it.

A decision model writes no text. It answers a condition ("noul") with a probability, a choice and a score with a distribution. Many
questions, and the records of many rows, share a request. The wire format is that of jevcompat 0.1.1 (`spec.py`, `mock.py`) and
laya-serve 0.2.1 (`schemas.py`); many rows are laid out as by jevdb 0.1.0: what is asked in `state`, a record in each question.
By that specification (7, `semantics.batching`) other questions of a request change no answer, so rows share requests by default.
"""

from __future__ import annotations

import json
import math
from typing import Any

from uql.base.errors import ConfigError
from uql.base.settings import Settings
from uql.base.vendors import VENDORS
from uql.llm.prices import price_of
from uql.llm.prompts import fused
from uql.llm.providers.address import Address, address
from uql.llm.providers.base import (
    Answer,
    CallError,
    Capabilities,
    Limits,
    Price,
    Problem,
    Reply,
    Request,
    RowsReply,
    RowsRequest,
)
from uql.llm.providers.chat import WRAPPING
from uql.llm.providers.chat_reply import counts
from uql.llm.providers.http_client import client, learnt, vendor_key
from uql.llm.providers.wire import posted
from uql.llm.questions import Question, Row
from uql.operators.replies import Level, OneOf, Shape, Value, YesNo
from uql.operators.rows import explained, label_of, media
from uql.operators.texts import neutral

VERSION = "systemone-1"
VENDOR = VENDORS["systemone"]
LIMITS = Limits(concurrency=64, adaptive=True)
OPTIONS = 255  # of a choice, at most
LEVELS = 10  # of a score, at most
ANSWER_TOKENS = 40  # of one answer, at most, where a server counts them


def open_provider(rest: str, settings: Settings) -> SystemOne:
    """The model of the vendor, or of the server of an address.

    Raises: ConfigError where a part is missing, or the variable of the server's key is not set; AuthError without the vendor's key.
    """
    if rest.startswith(("http://", "https://")):
        at = address(rest, settings, LIMITS)
        return SystemOne(at, price_of(f"systemone:{rest}", settings), settings.timeout_s)
    if not rest:
        raise ConfigError("a decision model is systemone:MODEL or systemone:http(s)://host#MODEL", code="UQL402")
    key = vendor_key(VENDOR.key_env, VENDOR.title, offline=settings.offline)
    return SystemOne(
        Address(VENDOR.url, rest, key, LIMITS), price_of(f"systemone:{rest}", settings), settings.timeout_s
    )


class SystemOne:
    """One decision model of one server. Texts and free values are not asked of it: it answers with labels and numbers alone."""

    def __init__(self, at: Address, price: Price | None, timeout_s: float) -> None:
        url = at.url if at.url.endswith("/v1") else f"{at.url}/v1"
        self.model, self.price, self.limits, self.is_local = at.model, price, at.limits, at.is_local
        self.name = f"systemone:{url}#{at.model}"
        self.capabilities = Capabilities(probabilities=True, schema=False, images=False, audio=False, rows_apart=True)
        self._client = client(url, api_key=at.api_key, timeout_s=timeout_s, on_limits=self._update_limits)

    def version(self, question: Question) -> str:
        """As in `Provider`. Raises: ConfigError for a question that is no decision."""
        decisions("", question, question.reply(), "")
        return f"{fused.version(question)}/{VERSION}"

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        record = [cell.value for cell in request.row.cells if isinstance(cell.value, str)]
        about = (([instruction(q, request.row), record], q) for q in request.questions)
        asked = [
            json.dumps(each) for told, q in about for each in decisions("q", q, q.reply(request.row), told).items()
        ]
        return WRAPPING + sum(len(text) + ANSWER_TOKENS for text in asked), ANSWER_TOKENS * len(asked)

    async def aclose(self) -> None:
        await self._client.close()

    def _update_limits(self, requests: float | None, tokens: float | None) -> None:
        self.limits = learnt(self.limits, requests, tokens)

    async def answer(self, request: Request) -> Reply:
        reply = await self._decided(*one_row(request.questions, request.row))
        answers = tuple(read(reply, fused.key(n), q, request.row) for n, q in enumerate(request.questions))
        return Reply(answers, *tokens(reply))

    async def answer_rows(self, request: RowsRequest) -> RowsReply:
        reply = await self._decided(*many_rows(request.questions, request.rows))
        answers = tuple(
            tuple(read(reply, f"{i}.{fused.key(n)}", q, row) for n, q in enumerate(request.questions))
            for i, row in enumerate(request.rows)
        )
        return RowsReply(answers, *tokens(reply))

    async def _decided(self, state: Any, questions: dict[str, Any]) -> dict[str, Any]:
        body = {"model": self.model, "state": state, "questions": questions}
        return await posted(self._client, "/systemone", body, name=self.name, model=self.model)


def one_row(questions: tuple[Question, ...], row: Row) -> tuple[Any, dict[str, Any]]:
    """State and decisions of a request about one row: the row is the state."""
    asked: dict[str, Any] = {}
    for n, question in enumerate(questions):
        asked |= decisions(fused.key(n), question, question.reply(row), instruction(question, row))
    return record(row), asked


def many_rows(questions: tuple[Question, ...], rows: tuple[Row, ...]) -> tuple[Any, dict[str, Any]]:
    """The same about several rows. What is asked is the state, once for all; each record stands in the instructions of its questions."""
    asked: dict[str, Any] = {}
    for i, row in enumerate(rows):
        for n, question in enumerate(questions):
            about = {"question": f"Answer `{fused.key(n)}` for this record alone.", "record": record(row)}
            asked |= decisions(f"{i}.{fused.key(n)}", question, question.reply(row), about)
    return {fused.key(n): instruction(q, rows[0]) for n, q in enumerate(questions)}, asked


def instruction(question: Question, row: Row) -> str:
    """What is asked, without a word on the form of the reply, with what is meant and the examples that a person wants shown.

    Raises: ConfigError where the operator is asked for a text.
    """
    words = question.operator.words
    wording = words.bare or words.instruction
    if wording is None:
        raise _no_decision(question)
    return explained(wording(question, row), question)


def record(row: Row) -> str | dict[str, str]:
    """The cells of a row that are not NULL: the bare text of a single one. Raises CallError on images and sounds."""
    if media(row):
        raise CallError("bad_request", "a decision model does not take images or recordings")
    texts = {label_of(cell): neutral(cell.value) for cell in row.cells if isinstance(cell.value, str)}
    return next(iter(texts.values())) if len(texts) == 1 else texts


def decisions(key: str, question: Question, reply: Shape, instructions: Any) -> dict[str, Any]:
    """The decisions that answer a question, by their ids: one, or one a label where several may fit.

    Args:
        key: the id, or what the ids begin with.
        reply: its form, to the row that it is asked about.
        instructions: a text, or what holds one.
    Raises: ConfigError for a question that is not a decision, and for more than 255 labels or 10 levels.
    """
    match reply:
        case YesNo() | Value("BOOLEAN"):
            return {key: {"type": "noul", "instructions": instructions}}
        case OneOf(many=True):
            return {
                f"{key}.{i}": {
                    "type": "noul",
                    "instructions": {"question": instructions, "does this one fit?": reply.option_texts[label]},
                }
                for i, label in enumerate(reply.labels)
            }
        case OneOf() if len(reply.options) <= OPTIONS:
            descriptions = question.operator.words.descriptions(question)
            criteria = {line: descriptions.get(option) or None for option, line in reply.option_texts.items()}
            return {key: {"type": "choice", "instructions": instructions, "criteria": criteria}}
        case Level(levels) if levels <= LEVELS:
            ends = {0: "0 (not at all)", levels - 1: f"{levels - 1} (very much)"}
            criteria_of = [ends.get(level, str(level)) for level in range(levels)]
            return {key: {"type": "score", "instructions": instructions, "criteria": criteria_of}}
    raise _no_decision(question)


def _no_decision(question: Question) -> ConfigError:
    return ConfigError(
        f"a decision model cannot answer {question.text!r}: it answers conditions, up to {OPTIONS} labels and {LEVELS} levels",
        code="UQL402",
        help="give labels: \"…\"::ENUM('a', 'b'), or ask another model: WITH (model = '…')",
    )


def read(body: dict[str, Any], key: str, question: Question, row: Row) -> Answer:
    """The answer to a question in a reply; a problem where it is missing or of another form.

    Args:
        body: the object of the reply.
        key: of the question in it.
    """
    reply = question.reply(row)
    match reply:
        case OneOf(many=True):
            chances = [_number(_answer(body, f"{key}.{i}"), "noul") for i in range(len(reply.labels))]
            if any(p is None for p in chances):
                return _wrong("a probability for each label", body)
            return Answer([label for label, p in zip(reply.labels, chances, strict=True) if p is not None and p >= 0.5])
        case OneOf():
            answer = _answer(body, key)
            label = reply.find(answer.get("choice"))
            if label is None:
                return _wrong("one of the labels", answer)
            spread = _spread(answer, list(reply.option_texts.values()))
            if spread is None:
                return Answer(label)
            distribution = None if reply.letters else spread
            return Answer(label, spread[list(reply.option_texts).index(label)], distribution)
        case Level(levels):
            answer = _answer(body, key)
            score = _number(answer, "score", levels - 1)
            if score is None:
                return _wrong(f"a score from 0 to {levels - 1}", answer)
            spread = _spread(answer, [str(level) for level in range(levels)])
            return Answer(score) if spread is None else Answer(score, max(spread), spread)
    chance = _number(_answer(body, key), "noul")
    return _wrong("a probability", body) if chance is None else Answer(chance >= 0.5, chance)


def tokens(reply: dict[str, Any]) -> tuple[int, int]:
    """Input and output tokens that a reply reports, 0 where it does not."""
    used = counts(reply, "input_tokens", "output_tokens")
    return used[0], used[1]


def _answer(reply: dict[str, Any], key: str) -> dict[str, Any]:
    answers = reply.get("answers")
    answer = answers.get(key) if isinstance(answers, dict) else None
    return answer if isinstance(answer, dict) else {}


def _number(answer: dict[str, Any], name: str, most: float = 1.0) -> float | None:
    """The number from 0 to `most` under a name."""
    value = answer.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        return None
    return float(value)


def _spread(answer: dict[str, Any], names: list[str]) -> tuple[float, ...] | None:
    """The distribution over exactly these names, made to sum to 1; None where there is none, or it is far from summing to 1."""
    stated = answer.get("probabilities")
    if not isinstance(stated, dict) or set(stated) != set(names):
        return None
    shares = [_number(stated, name) for name in names]
    total = math.fsum(share or 0.0 for share in shares)
    if any(share is None for share in shares) or abs(total - 1) > 0.05:
        return None
    return tuple((share or 0.0) / total for share in shares)


def _wrong(form: str, value: Any) -> Answer:
    return Answer(problem=Problem("wrong_type", f"{form} was wanted", str(value)[:500]))
