"""scripted:FILE.toml: listed replies to requests for texts and plans, for tests and for measuring what follows from a plan.

    readers = "oracle:labels.toml"    # what answers questions about rows, or "local"; none: they fail
    latency_s = 0.0                   # of each reply

    [[reply]]
    task = "planner"                  # of the request
    when = "How many games"           # words of its prompt; left out: any
    json = '{"cannot": "", "nodes": []}'      # or text = "…", or fail = "server"
    again = true                      # may be given more than once

Replies are given in the order of the file, each once unless it says `again`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uql.base import toml_file
from uql.base.errors import ConfigError
from uql.base.settings import Settings
from uql.llm.providers import open_provider as opened
from uql.llm.providers.base import Answer, CallError, Capabilities, Limits, Price, Problem, Provider, Reply, Request
from uql.llm.questions import Question, Row, Write
from uql.operators.replies import Text

READERS = ("oracle", "local")  # kinds of models that a script may name: none on another machine
TOKENS = 4  # characters of a token, for the usage that is counted


@dataclass(frozen=True, slots=True)
class Scripted:
    """One listed reply: to a task, where the prompt holds the words `when`. `fail` is the kind of a failure instead."""

    task: str
    reply: Any = None
    when: str = ""
    again: bool = False
    fail: str = ""


def open_provider(rest: str, settings: Settings) -> ScriptedModel:
    """The script of a file. Raises ConfigError where it cannot be read."""
    path = Path(rest)
    try:
        script = toml_file.parsed(toml_file.content(path))
        replies = [_entry(item, path) for item in script.get("reply", ())]
    except (OSError, ValueError) as error:
        raise ConfigError(f"the script {path} cannot be read: {error}", code="UQL402") from error
    readers = None
    if "readers" in script:
        kind, _, file = str(script["readers"]).partition(":")
        if kind not in READERS:
            raise ConfigError(
                f"{path}: readers = {script['readers']!r} is not possible",
                code="UQL402",
                help="readers = 'oracle:FILE.toml' or 'local': a script does not send rows to another machine",
            )
        readers = opened(f"oracle:{path.parent / file}" if kind == "oracle" else "local", settings)
    return ScriptedModel(
        replies, readers=readers, latency_s=float(script.get("latency_s", 0.0)), name=f"scripted:{path.stem}"
    )


def _entry(item: dict[str, Any], path: Path) -> Scripted:
    if "task" not in item or not {"json", "text", "fail"} & set(item):
        raise ConfigError(f"a reply of {path} needs a task, and json, text or fail", code="UQL402")
    reply = json.loads(item["json"]) if "json" in item else item.get("text")
    return Scripted(item["task"], reply, item.get("when", ""), bool(item.get("again", False)), item.get("fail", ""))


class ScriptedModel:
    """Gives listed replies; `asked` holds (task, prompt) of each request for a text."""

    is_local = True
    price: Price | None = Price(0.0, 0.0)

    def __init__(
        self,
        replies: Sequence[Scripted],
        *,
        readers: Provider | None = None,
        latency_s: float = 0.0,
        name: str = "scripted",
        capabilities: Capabilities | None = None,
    ) -> None:
        self.name, self.latency_s, self._readers = name, latency_s, readers
        self.limits = Limits(concurrency=16)
        self.capabilities = capabilities or Capabilities(probabilities=True, schema=True, judges=False)
        self.left = list(replies)
        self.asked: list[tuple[str, str]] = []

    def version(self, question: Question) -> str:
        if isinstance(question.reply(), Text) or self._readers is None:
            return f"scripted-{len(self.asked)}"  # a script is not to be answered by the ledger
        return self._readers.version(question)

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        reading = _reading(request)
        if reading.questions and self._readers is not None:
            return self._readers.tokens_at_most(reading)
        size = sum(len(q.text) for q in request.questions)
        return size // TOKENS + 1, sum(r.max_tokens for q in request.questions if isinstance(r := q.reply(), Text))

    async def aclose(self) -> None:
        if self._readers is not None:
            await self._readers.aclose()

    async def answer(self, request: Request) -> Reply:
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        reading = _reading(request)
        read = list((await self._readers.answer(reading)).answers) if reading.questions and self._readers else []
        answers = []
        output_tokens = 0
        for question in request.questions:
            if isinstance(question.reply(), Text):
                answers.append(self._written(question, request.row))
                output_tokens += len(str(answers[-1].value)) // TOKENS + 1
            else:
                answers.append(
                    read.pop(0) if read else Answer(problem=Problem("bad_request", "the script has no readers"))
                )
        return Reply(tuple(answers), self.tokens_at_most(request)[0], output_tokens)

    def _written(self, question: Question, row: Row) -> Answer:
        assert isinstance(question, Write)
        prompt = question.operator.words.single_prompt(question, row).user
        self.asked.append((question.task, prompt))
        for i, item in enumerate(self.left):
            if item.task == question.task and item.when in prompt:
                if not item.again:
                    del self.left[i]
                if item.fail:
                    raise CallError(item.fail, f"the script says {item.fail}")
                return question.reply().read(item.reply) if isinstance(item.reply, str) else Answer(item.reply)
        tasks = ", ".join(dict.fromkeys(item.task for item in self.left)) or "none"
        return Answer(problem=Problem("refusal", f"the script has no reply to {question.task}; left: {tasks}"))


def _reading(request: Request) -> Request:
    """The questions about rows of a request."""
    return request.only([n for n, q in enumerate(request.questions) if not isinstance(q.reply(), Text)])
