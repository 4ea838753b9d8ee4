"""An oracle behind OpenAI's protocol and that of decision models, on this machine only: other engines ask it as they would any model.

`uql oracle serve FILE.toml` serves /v1/chat/completions, /v1/systemone, /v1/embeddings (static word vectors), /v1/models and /stats.
The row and the question are found in the prompt (`reading.py`), the answer has the form that the prompt asks for (`replies.py`), calls
and tokens are counted as the server sees them.
"""

from __future__ import annotations

import json
import math
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from uql.base.errors import ConfigError, DataError, UQLError
from uql.base.extras import install
from uql.benchmarks.peers import own_requests
from uql.benchmarks.peers.reading import Found, Prompts
from uql.benchmarks.peers.replies import PAIRS, form_of, labelled
from uql.features.embedder import unit_rows
from uql.features.static import static_embedder
from uql.llm.providers.base import Request
from uql.llm.providers.oracle import Oracle
from uql.llm.questions import Cell, Extract, Predicate, Question, Row

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response

HOST = "127.0.0.1"
_TABLE = re.compile(r"\{\s*(\w+)\s*\.")  # of a hole: a question about two rows names two
LEAST = 1e-6  # probability of what a model that never errs does not say


@dataclass(slots=True)
class Stats:
    """What was asked since the last reset. A token is four letters, for every engine alike."""

    requests: int = 0
    calls: int = 0  # rows or pairs judged: a request that carries a hundred pairs is a hundred calls
    input_tokens: int = 0
    output_tokens: int = 0
    refused: int = 0  # prompts in which no row or no question was found
    last_refusal: str = ""


class Service:
    """Answers prompts from one oracle file.

    Args:
        oracle: the label table, with its error rate.
        column: the column of the data whose text is looked for in prompts.
    Raises: DataError (UQL502) where the data have no such column.
    """

    def __init__(self, oracle: Oracle, column: str = "text") -> None:
        self.oracle, self.column, self.stats = oracle, column, Stats()
        self.texts = [str(value) for value in oracle.values(column) if value is not None]
        self.prompts = Prompts(oracle.answers, self.texts)

    async def reply(self, prompt: str) -> tuple[str, int]:
        """The answer to a prompt, and how many rows or pairs it judges.

        Raises: DataError where the prompt holds no row or no question of the oracle.
        """
        form, text = form_of(prompt), self.prompts.question(prompt)
        if form.name == PAIRS:
            return await self._pairs(text, prompt)
        question: Question = Predicate(text) if form.yes_no else Extract(text)
        return form.written(await self._answer(question, self._rows(text, self.prompts.rows(prompt, text))), prompt), 1

    async def fill(self, prompt: str, shown: str, properties: dict[str, Any]) -> tuple[str, int]:
        """The object that this engine asks for, as JSON, and how many rows or pairs it judges.

        Args:
            shown: the part of the prompt that shows the row: what asks lists labels, which may be texts of rows.
            properties: of the JSON schema.
        Raises: DataError where the prompt holds no row or no question of the oracle.
        """
        if own_requests.is_trial(properties):
            return json.dumps({own_requests.TRIAL: True}), 0
        if "attribute" in properties:
            return json.dumps(self.oracle.attribute_of(self.prompts.question(prompt))), 1
        if {"yes", "no"} <= set(properties):
            return json.dumps({"yes": [], "no": []}), 1
        instructions, answers = own_requests.instructions(prompt), {}
        for key, schema in properties.items():
            text = self.prompts.question(instructions.get(key, ""))
            rows = self._rows(text, self.prompts.rows(shown))
            question: Question = Predicate(text) if schema.get("type") == "boolean" else Extract(text)
            answers[key] = own_requests.as_property(await self._answer(question, rows), schema)
        return json.dumps(answers), 1

    async def decide(self, state: dict[str, Any], questions: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """The answers to a request of decisions, by the name of each question.

        Args:
            state: the `condition`, and the parts of a record that all questions share.
            questions: `type` (noul, choice or score), `instructions` with the rest of the record, `criteria` of a choice or a score.
        Raises: DataError (UQL502) where a question holds no row or no text of the oracle.
        """
        text = self.prompts.question(str(state.get("condition", "")))
        shared = [value for name, value in state.items() if name != "condition"]
        answers: dict[str, Any] = {}
        for name, asked in questions.items():
            given = asked["instructions"]
            own = [v for n, v in given.items() if n != "question"] if isinstance(given, dict) else []
            rows = self._rows(text, self.prompts.rows("\n".join(map(str, (*shared, *own)))))
            if asked["type"] == "noul":
                yes = await self._answer(Predicate(text), rows)
                sure = 1 - max(self.oracle.error, LEAST)
                answers[name] = {"noul": sure if yes else 1 - sure}
                continue
            value, levels = str(await self._answer(Extract(text), rows)), [str(level) for level in asked["criteria"]]
            level = next((k for k, one in enumerate(levels) if one.casefold() == value.casefold()), len(levels) - 1)
            answers[name] = {"score": float(level)} if asked["type"] == "score" else {"choice": levels[level]}
        return answers

    def _rows(self, text: str, hits: list[Found]) -> list[str]:
        """The texts of the rows that a question is about. Raises: DataError where they are too few or too many."""
        rows = [self.texts[hit.row] for hit in hits]
        wanted = max(1, len(set(_TABLE.findall(text))))
        if len(rows) == 1 and wanted == 2:
            rows = rows * 2  # a row beside itself
        if len(rows) < wanted or len(set(rows)) > wanted:  # more: it cannot be told which is asked about
            raise DataError(f"the prompt about {text!r} holds {len(set(rows))} rows of {wanted}", code="UQL502")
        return rows[:wanted]

    async def _answer(self, question: Question, rows: list[str]) -> Any:
        names = ("a", "b") if len(rows) == 2 else ("",)
        cells = tuple(Cell(self.column, text, name) for text, name in zip(rows, names, strict=True))
        reply = await self.oracle.answer(Request((question,), Row(cells)))
        return reply.answers[0].value

    async def _pairs(self, text: str, prompt: str) -> tuple[str, int]:
        items = [(label, self.prompts.rows(said)) for label, said in labelled(prompt)]
        sides = {
            side: [(label, self.texts[found[0].row]) for label, found in items if label[0] == side and found]
            for side in "LR"
        }
        matches = [
            f"{left}-{right}"
            for left, one in sides["L"]
            for right, two in sides["R"]
            if await self._answer(Predicate(text), [one, two])
        ]
        return ",".join(matches) + ".", len(sides["L"]) * len(sides["R"])


def text_of(messages: Any) -> str:
    """The words of a chat, images left out. Raises: DataError where it is none."""
    parts: list[str] = []
    try:
        for message in messages:
            content = message.get("content") or ""
            pieces = [content] if isinstance(content, str) else [p["text"] for p in content if p.get("type") == "text"]
            parts += pieces
        return "\n".join(parts)
    except (AttributeError, KeyError, TypeError) as error:
        raise DataError(f"the messages cannot be read: {error}", code="UQL502") from None


def tokens(text: str) -> int:
    return (len(text) + 3) // 4


def sent(body: Mapping[str, Any]) -> int:
    """The tokens of a chat request: of its messages, and of the schema or the tools that come with them, which vendors bill as well."""
    shape = {name: body[name] for name in ("response_format", "tools", "functions") if body.get(name)}
    return tokens(text_of(body["messages"])) + (tokens(json.dumps(shape, ensure_ascii=False)) if shape else 0)


def app(service: Service) -> Starlette:
    """The routes of a service."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, StreamingResponse
    from starlette.routing import Route

    def refused(message: str, code: str) -> Response:
        fault = {"message": message, "type": "invalid_request_error", "code": code}
        return JSONResponse({"error": fault}, status_code=400)

    async def body_of(request: HttpRequest, wanted: str) -> dict[str, Any]:
        try:
            held = await request.json()
        except ValueError:
            raise DataError("the request is not JSON", code="UQL502") from None
        if not isinstance(held, dict) or not isinstance(held.get(wanted), str | list):
            raise DataError(f"the request has no {wanted}", code="UQL502")
        return held

    async def chat(request: HttpRequest) -> Response:
        try:
            held = await body_of(request, "messages")
            prompt, shown = text_of(held["messages"]), text_of(held["messages"][-1:])
        except DataError as error:
            return refused(str(error), error.code)
        stats = service.stats
        stats.requests += 1
        used = sent(held)
        stats.input_tokens += used
        properties = own_requests.properties_of(held)
        try:
            said, judged = await (
                service.reply(prompt) if properties is None else service.fill(prompt, shown, properties)
            )
        except UQLError as error:
            stats.refused += 1
            stats.calls += 1
            stats.last_refusal = f"{error} in: {prompt[:1000]}"
            return refused(str(error), error.code)
        stats.calls += judged
        stats.output_tokens += tokens(said)
        errs = service.oracle.error if held.get("logprobs") and properties is None else None
        whole = _completion(held.get("model", ""), used, said, errs)
        if held.get("stream"):
            options = held.get("stream_options")
            usage = isinstance(options, dict) and bool(options.get("include_usage"))
            return StreamingResponse(streamed(whole, usage), media_type="text/event-stream")
        return JSONResponse(whole)

    async def systemone(request: HttpRequest) -> Response:
        try:
            held = await body_of(request, "model")
            state, questions = held["state"], held["questions"]
            stats = service.stats
            stats.requests += 1
            stats.calls += len(questions)
            stats.input_tokens += used_by(held)
            answers = await service.decide(state, questions)
        except (UQLError, KeyError, TypeError, AttributeError) as error:
            service.stats.refused += 1
            service.stats.last_refusal = str(error)
            return refused(str(error), "UQL502")
        return JSONResponse({"answers": answers, "model": held["model"], "usage": {"input_tokens": used_by(held)}})

    def used_by(held: dict[str, Any]) -> int:
        return tokens(json.dumps([held["state"], held["questions"]], ensure_ascii=False))

    async def embeddings(request: HttpRequest) -> Response:
        try:
            held = await body_of(request, "input")
        except DataError as error:
            return refused(str(error), error.code)
        texts = [held["input"]] if isinstance(held["input"], str) else held["input"]
        if not texts or not all(isinstance(text, str) for text in texts):
            return refused("input must be a text or a list of texts", "UQL502")
        embedder = static_embedder()
        if embedder is None:
            return refused("wordllama is not installed", "UQL403")
        vectors = unit_rows(embedder.embed(texts))
        data = [{"object": "embedding", "index": i, "embedding": v.tolist()} for i, v in enumerate(vectors)]
        used = sum(map(tokens, texts))
        usage = {"prompt_tokens": used, "total_tokens": used}
        return JSONResponse({"object": "list", "model": held.get("model", ""), "data": data, "usage": usage})

    async def models(request: HttpRequest) -> Response:
        return JSONResponse(
            {"object": "list", "data": [{"id": "oracle", "object": "model", "created": 0, "owned_by": "uql"}]}
        )

    async def stats(request: HttpRequest) -> Response:
        if request.method == "POST":
            service.stats = Stats()
            service.oracle.seed = int(request.query_params.get("seed", service.oracle.seed))
        return JSONResponse(asdict(service.stats))

    return Starlette(
        routes=[
            Route("/v1/chat/completions", chat, methods=["POST"]),
            Route("/v1/systemone", systemone, methods=["POST"]),
            Route("/v1/embeddings", embeddings, methods=["POST"]),
            Route("/v1/models", models),
            Route("/stats", stats, methods=["GET", "POST"]),
        ]
    )


def _logprobs(said: str, error: float) -> list[dict[str, Any]]:
    """The words of a reply as tokens. Of True and False each is as likely as the model is right: it knows how often it errs."""
    sure, unsure = math.log(max(1 - error, LEAST)), math.log(max(error, LEAST))
    found = []
    for word in re.findall(r"\s*\S+", said):
        bare = word.strip()
        other = {"True": "False", "False": "True"}.get(bare)
        token = word if other is None else bare
        top = [{"token": token, "logprob": 0.0 if other is None else sure, "bytes": None}]
        top += [] if other is None else [{"token": other, "logprob": unsure, "bytes": None}]
        found.append({**top[0], "top_logprobs": top})
    return found


def _completion(model: str, asked: int, said: str, error: float | None) -> dict[str, Any]:
    """A reply to so many tokens; with the error of the model where its probabilities are asked for."""
    sure = _logprobs(said, error) if error is not None else []
    used = {"prompt_tokens": asked, "completion_tokens": tokens(said)}
    return {
        "id": "oracle",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "logprobs": {"content": sure, "refusal": None} if error is not None else None,
                "message": {"role": "assistant", "content": said, "refusal": None},
            }
        ],
        "usage": {**used, "total_tokens": sum(used.values()), "prompt_tokens_details": {"cached_tokens": 0}},
    }


def streamed(whole: dict[str, Any], usage: bool) -> Iterator[str]:
    """A reply as server-sent events: its text, its end, what it used where that is asked for, and the mark that no more follows."""
    (choice,) = whole["choices"]
    head = {key: whole[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    said = {"index": 0, "delta": choice["message"], "logprobs": choice["logprobs"], "finish_reason": None}
    events: list[dict[str, Any]] = [{"choices": [said]}]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    events += [{"choices": [], "usage": whole["usage"]}] if usage else []
    yield from (f"data: {json.dumps({**head, **event})}\n\n" for event in events)
    yield "data: [DONE]\n\n"


def serve(service: Service, port: int, ready: Callable[[str], None]) -> None:
    """Serves the oracle. Arguments and errors as of `serve_app`."""
    serve_app(lambda: app(service), port, ready)


def serve_app(made: Callable[[], Starlette], port: int, ready: Callable[[str], None]) -> None:
    """Serves on the loopback address until interrupted.

    Args:
        made: makes the application.
        port: of the loopback address.
        ready: is told the address once requests can come.
    Raises: ConfigError where another program has the port, or starlette and uvicorn are not installed (UQL610).
    """
    try:
        import uvicorn

        served = made()
    except ImportError:
        raise ConfigError("the endpoint needs starlette and uvicorn", code="UQL610", help=install("ui")) from None
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
        except OSError as error:
            raise ConfigError(
                f"port {port} of {HOST} cannot be had: {error.strerror}", code="UQL402", help="--port names another"
            ) from None
        listening.listen()
        ready(f"http://{HOST}:{port}/v1")
        config = uvicorn.Config(served, log_level="warning", lifespan="off")
        uvicorn.Server(config).run(sockets=[listening])
