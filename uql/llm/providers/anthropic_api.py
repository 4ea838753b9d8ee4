"""anthropic:MODEL, at the vendor's own host: Messages with a JSON schema as output format, the shared instruction cached.

The API has no temperature and no log-probabilities: answers have no probability.
"""

from __future__ import annotations

from typing import Any

from uql.base.errors import ConfigError
from uql.base.settings import Settings
from uql.llm.prices import price_of
from uql.llm.prompts import fused, several
from uql.llm.providers import strict
from uql.llm.providers.base import (
    ROWS_AT_ONCE,
    Answer,
    Capabilities,
    Limits,
    Price,
    Problem,
    Reply,
    Request,
    RowsReply,
    RowsRequest,
    Usage,
)
from uql.llm.providers.chat import cut, picture, rows_output_at_most, tokens_at_most
from uql.llm.providers.chat_reply import Said, counts, formed
from uql.llm.providers.openai_client import ambient_headers, http_client, learnt, vendor_key
from uql.llm.providers.wire import keep_out, posted
from uql.llm.questions import Question, Row
from uql.operators.record import Prompt
from uql.operators.replies import Text
from uql.operators.rows import media

VENDOR_URL = "https://api.anthropic.com"
CONTEXT, OUTPUT = 200_000, 8_192  # tokens that every model which the vendor serves has at least


def open_provider(rest: str, settings: Settings) -> Anthropic:
    """The vendor's model of a name. Raises AuthError where no key is set."""
    if not rest:
        raise ConfigError("anthropic: needs the name of a model, as anthropic:MODEL", code="UQL402")
    key = vendor_key("ANTHROPIC_API_KEY", "Anthropic", offline=settings.offline)
    return Anthropic(rest, api_key=key, timeout_s=settings.timeout_s, price=price_of("anthropic", rest, settings))


class Anthropic:
    """One model of the vendor."""

    is_local = False
    capabilities = Capabilities(
        probabilities=False,
        schema=True,
        images=True,
        audio=False,
        context=CONTEXT,
        output=OUTPUT,
        rows=ROWS_AT_ONCE,
    )

    def __init__(
        self, model: str, *, api_key: str, timeout_s: float = 120.0, url: str = VENDOR_URL, price: Price | None = None
    ) -> None:
        try:
            import anthropic
        except ImportError as error:
            raise ConfigError(
                "this model needs the anthropic package", code="UQL402", help="pip install 'uql-engine[anthropic]'"
            ) from error
        self.model, self.name = model, f"anthropic:{model}"
        self.price: Price | None = price or price_of("anthropic", model)
        self.limits = Limits(concurrency=64, adaptive=True)
        strip = set() if url == VENDOR_URL else ambient_headers("ANTHROPIC_CUSTOM_HEADERS")
        keep_out(api_key)
        http = http_client(timeout_s, strip=strip, authorization=None, heard=self._heard)
        self._client = anthropic.AsyncAnthropic(api_key=api_key, base_url=url, max_retries=0, http_client=http)

    def version(self, question: Question) -> str:
        return f"{fused.version(question)}/messages-1"

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        return tokens_at_most(request)

    async def aclose(self) -> None:
        await self._client.close()

    def _heard(self, requests: float | None, tokens: float | None) -> None:
        self.limits = learnt(self.limits, requests, tokens)

    async def answer(self, request: Request) -> Reply:
        usage = Usage()
        replies = [question.reply() for question in request.questions]
        places = [n for n, reply in enumerate(replies) if not isinstance(reply, Text)]
        answers: dict[int, Answer] = {}
        if places:
            together = tuple(request.questions[n] for n in places)
            errors = tuple(request.errors[n] for n in places) if request.errors else ()
            answers.update(
                zip(places, await self._together(together, request.row, request.seed, errors, usage), strict=True)
            )
        for n, reply in enumerate(replies):
            if isinstance(reply, Text):
                answers[n] = await self._write(request.questions[n], reply, request, usage)
        ordered = tuple(answers[n] for n in range(len(request.questions)))
        return Reply(ordered, usage.input_tokens, usage.output_tokens, usage.requests, tuple(usage.warnings))

    async def answer_rows(self, request: RowsRequest) -> RowsReply:
        """Several rows in one request, with a list of answers as JSON."""
        usage = Usage()
        words = several.prompt(request.questions, request.rows, request.seed)
        wanted = several.schema(request.questions, len(request.rows))
        said = await self._message(words, Row(), rows_output_at_most(request), wanted, usage)
        reply, problem = (said.raw, said) if isinstance(said, Problem) else (said, None)
        answers = several.answers(reply, problem, request.questions, request.rows)
        return RowsReply(answers, usage.input_tokens, usage.output_tokens, usage.requests, tuple(usage.warnings))

    async def _together(
        self, questions: tuple[Question, ...], row: Row, seed: int, errors: tuple[str, ...], usage: Usage
    ) -> tuple[Answer, ...]:
        bound = tokens_at_most(Request(questions, row))[1]
        shown, was_cut = cut(row, None, bound)
        if was_cut:
            usage.warnings.append(f"rows longer than {self.name} can be shown were cut at their end")
        said = await self._message(
            fused.prompt(questions, shown, seed, errors), shown, bound, fused.schema(questions), usage
        )
        if isinstance(said, Problem):
            return (Answer(problem=said),) * len(questions)
        return fused.read(said, questions, row)

    async def _write(self, question: Question, reply: Text, request: Request, usage: Usage) -> Answer:
        schema = None if reply.schema is None else strict.schema(reply.schema)
        words = question.operator.words.alone(question, request.row, request.seed)
        said = await self._message(words, request.row, reply.max_tokens, schema, usage)
        if isinstance(said, Problem):
            return Answer(problem=said)
        return reply.read(said) if schema is None else strict.read(said, reply)

    async def _message(
        self, words: Prompt, row: Row, most: int, schema: dict[str, Any] | None, usage: Usage
    ) -> str | Problem:
        """The text of one reply, or why it has none."""
        import anthropic

        content: list[Any] = [_image(cell) for cell in media(row)]
        content.append({"type": "text", "text": words.user})
        body: dict[str, Any] = {
            "system": [{"type": "text", "text": words.system, "cache_control": {"type": "ephemeral"}}]
        }
        if schema is not None:
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        usage.requests += 1
        body |= {"model": self.model, "max_tokens": most, "messages": [{"role": "user", "content": content}]}
        reply = await posted(self._client, "/v1/messages", body, sdk=anthropic, name=self.name, model=self.model)
        said = formed(message, reply)
        usage.input_tokens += said.input_tokens
        usage.output_tokens += said.output_tokens
        problem = said.problem()
        return said.text if problem is None else problem


def message(reply: dict[str, Any]) -> Said:
    """A reply of Messages, read."""
    *read, written = counts(
        reply, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"
    )
    text = "".join(block["text"] for block in reply["content"] if block["type"] == "text")
    stop = reply.get("stop_reason")
    finish = {"max_tokens": "length", "model_context_window_exceeded": "too_long"}.get(str(stop), "stop")
    declined = (text or stop) if stop == "refusal" else None
    return Said(text, finish, [], declined, sum(read), written)


def _image(cell: Any) -> dict[str, Any]:
    kind, data = picture(cell)
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
