"""Adapters in processes of their own: the protocol, the endpoint of the gate, the environments."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from nl.adapter_world import PIXEL, run_of, scripted

from uql.base.errors import ConfigError, DataError, QuestionError
from uql.llm.questions import Write
from uql.llm.serve import LONGEST, application, endpoint
from uql.nl.adapters import environments, process
from uql.nl.adapters.process import ProcessAdapter, environment
from uql.nl.plan.dag import Operator, SubAnswer

WORKER = Path(__file__).parent / "fake_worker.py"


def spoken(
    task: str, home: Path, *, calls: int | None = None, timeout_s: float = 30.0, sources: tuple[str, ...] = ("teams",)
) -> Any:
    model = scripted(lambda name, text, request: f"{name} says: {text}")
    adapter = ProcessAdapter("fake", (sys.executable, "-I", str(WORKER)), home, timeout_s)

    async def run() -> tuple[SubAnswer, Any]:
        with run_of(model, *sources, calls=calls) as ctx:
            await ctx.gate.provider()
            try:
                return await adapter.run(task, ctx.sources, ctx), ctx.gate.cost
            finally:
                await ctx.gate.aclose()

    return asyncio.run(run())


def test_a_worker_asks_through_the_gate_and_its_calls_are_counted(tmp_path: Path) -> None:
    answer, cost = spoken("twice", tmp_path)
    assert answer.text == "endpoint says: question 0; endpoint says: question 1"
    assert (answer.sources, answer.confidence, answer.adapter) == (("teams",), 0.5, "fake")
    assert cost.calls == 2 and cost.input_tokens == 20


def test_a_spent_budget_is_429_for_a_worker(tmp_path: Path) -> None:
    answer, cost = spoken("twice", tmp_path, calls=1)
    assert answer.problem == "429: insufficient_quota" and cost.calls == 1


def test_a_worker_without_the_token_is_refused(tmp_path: Path) -> None:
    answer, cost = spoken("refused", tmp_path)
    assert answer.text == "401" and cost.calls == 0


def test_a_worker_sees_an_environment_without_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    answer, _ = spoken("environment", tmp_path)
    assert set(answer.text.split(",")) <= {*environment(tmp_path), "LC_CTYPE"} and answer.value == str(tmp_path)


def test_a_worker_sees_no_private_column_and_images_as_data(tmp_path: Path) -> None:
    answer, _ = spoken("sources", tmp_path, sources=("teams", "logos"))
    teams, logos = answer.value
    assert set(teams["rows"][0]) == {"name", "founded"} and teams["row_count"] == 3
    assert logos["rows"][0]["logo"] == f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"


def test_a_source_is_sent_until_its_images_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "IMAGE_BYTES", len(PIXEL))
    answer, _ = spoken("sources", tmp_path, sources=("logos",))
    assert [row["team"] for row in answer.value[0]["rows"]] == ["Heat"] and answer.value[0]["row_count"] == 2


@pytest.mark.parametrize(
    ("task", "code", "said"),
    [("die", "UQL640", "a library is missing"), ("noise", "UQL640", "no answer"), ("sleep", "UQL641", "killed")],
)
def test_a_worker_that_fails_is_an_error_that_says_why(task: str, code: str, said: str, tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(QuestionError, match=said) as told:
        spoken(task, tmp_path, timeout_s=1.5 if task == "sleep" else 30.0)
    assert told.value.code == code and time.monotonic() - began < 20


def test_a_worker_whose_reply_nests_too_deep_gave_no_answer(tmp_path: Path) -> None:
    with pytest.raises(QuestionError, match="UQL640: the adapter fake gave no answer"):
        spoken("deep", tmp_path)


def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    adapter = ProcessAdapter("fake", (str(tmp_path / "none"),), tmp_path)

    async def run() -> None:
        with run_of(scripted(lambda *_: ""), "teams") as ctx:
            await ctx.gate.provider()
            await adapter.run("x", ctx.sources, ctx)

    with pytest.raises(QuestionError, match="uql adapters install fake"):
        asyncio.run(run())


def test_the_endpoint_reads_messages_images_and_schemas() -> None:
    seen: list[Any] = []
    model = scripted(lambda task, text, request: seen.append(request) or {"a": 1})
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    body = {
        "messages": [
            {"role": "system", "content": "Be {short}."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is {x}?"},
                    {
                        "type": "image_url",
                        "image_url": {"url": f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"},
                    },
                ],
            },
        ],
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}},
        "max_tokens": 50,
    }

    async def run() -> list[Any]:
        import openai

        with run_of(model, "teams") as ctx:
            await ctx.gate.provider()
            async with endpoint(ctx.gate) as there:
                client = openai.AsyncOpenAI(base_url=there.url, api_key=there.token, max_retries=0)
                said = await client.chat.completions.create(model=there.model, **body)
                listed = [m.id async for m in client.models.list()]
                wrong = []
                for change in (
                    {"stream": True},
                    {"messages": []},
                    {"messages": [{"role": "user", "content": [{"type": "audio"}]}]},
                ):
                    with pytest.raises(openai.BadRequestError) as told:
                        await client.chat.completions.create(model=there.model, **{**body, **change})
                    wrong.append(told.value.status_code)
                with pytest.raises(openai.NotFoundError):
                    await client.embeddings.create(model="x", input="y")
            await ctx.gate.aclose()
            return [said, listed, wrong]

    said, listed, wrong = asyncio.run(run())
    assert json.loads(said.choices[0].message.content) == {"a": 1} and said.usage.total_tokens == 12
    assert listed == ["uql"] and wrong == [400, 400, 400]
    (request,) = seen
    (question,) = request.questions
    assert isinstance(question, Write) and question.text == "What is {{x}}?" and question.max_tokens == 50
    assert dict(question.parameters)["system"] == "Be {short}." and json.loads(str(question.schema)) == schema
    assert request.row.cells[0].value == PIXEL


@pytest.mark.parametrize(
    "part, more, status", [(b"x" * 65_536, True, 413), (b"[" * 200_000, False, 400), (b"\xff", False, 400)]
)
def test_the_endpoint_refuses_bodies_without_end_too_deep_or_of_no_json(part: bytes, more: bool, status: int) -> None:
    parts, sent = 0, []

    async def receive() -> dict[str, Any]:
        nonlocal parts
        parts += 1
        assert parts <= LONGEST // len(part) + 2, "the body was read on"
        return {"type": "http.request", "body": part, "more_body": more}

    async def send(message: Any) -> None:
        sent.append(message)

    path = "/v1/chat/completions"
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "scheme": "http",
    }
    scope |= {"query_string": b"", "headers": [(b"host", b"127.0.0.1:1"), (b"authorization", b"Bearer key")]}
    scope |= {"server": ("127.0.0.1", 1)}
    gate: Any = None  # no request reaches it
    asyncio.run(application(gate, "key")(scope, receive, send))
    assert sent[0]["status"] == status


def test_an_environment_is_made_once_with_pinned_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UQL_HOME", str(tmp_path))
    ran: list[list[str]] = []
    monkeypatch.setattr(
        environments,
        "_run",
        lambda command, name: (ran.append(command), environments.folder(name).mkdir(parents=True, exist_ok=True)),
    )
    with pytest.raises(ConfigError, match="uql adapters install dspy"):
        environments.adapter("dspy")
    place = environments.install("dspy")
    assert environments.installed("dspy") and environments.install("dspy") == place and len(ran) == 3
    assert all(
        command[1] == "-P" for command in ran
    )  # no pip or venv of the current folder, which somebody may have sent
    assert ran[1][-1] == "dspy==3.4.1" and ran[1][0] == str(place / "bin" / "python")
    adapter = environments.adapter("dspy")
    assert Path(adapter.command[-1]).is_file() and adapter.capable(Operator.IMAGE)
    (place / environments.READY).write_text(json.dumps({"packages": ["dspy==1.0"]}))  # of an earlier version
    assert (
        not environments.installed("dspy") and environments.install("dspy") == place and environments.installed("dspy")
    )
    assert environments.remove("dspy") and not environments.remove("dspy")
    with pytest.raises(ConfigError, match="there are lotus, dspy, llamaindex"):
        environments.install("nothing")


def test_a_failed_installation_says_the_last_words_and_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UQL_HOME", str(tmp_path))
    false = tmp_path / "python"
    false.write_text("#!/bin/sh\necho no disk left >&2\nexit 1\n")
    false.chmod(0o755)
    with pytest.raises(DataError, match="no disk left"):
        environments.install("dspy", python=str(false))
    assert not environments.installed("dspy")


@pytest.mark.parametrize("name", sorted(environments.KNOWN))
def test_every_adapter_apart_has_a_worker_and_pinned_packages(name: str) -> None:
    assert (environments.WORKERS / f"{name}_worker.py").is_file()
    assert all("==" in package for package in environments.KNOWN[name].packages)
