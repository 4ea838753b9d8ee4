"""Each protocol on loopback, over HTTP: what is sent, what is read, what errors mean."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from loopback import Server, chat, chat_reply, decisions, messages, row_text, serve
from PIL import Image
from scripted import row
from starlette.responses import JSONResponse, Response

from uql.base.errors import AuthError, BackendError, ConfigError, ModelError, QuotaError, UnknownModelError
from uql.base.settings import Settings
from uql.llm.gate import Gate
from uql.llm.providers import compatible, server_abilities as remembered
from uql.llm.providers.anthropic_api import Anthropic
from uql.llm.providers.base import Price, Provider
from uql.llm.providers.compatible import Compatible
from uql.llm.providers.openai_api import OpenAI
from uql.llm.questions import Cell, Choice, Compare, Extract, Predicate, Question, Row, Score, Write
from uql.llm.run_record import Cost

ALL: tuple[Question, ...] = (
    Predicate("it is so"), Choice("kind", ("a", "b")), Score("much", 6), Extract("n", "BIGINT"),
    Extract("pair", "STRUCT(id VARCHAR, ok BOOLEAN)"),
    Choice("tags", ("x", "y", "z"), many=True),
)  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is remembered of servers of other tests, and the environment holds secrets that must go nowhere."""
    compatible._probed.clear()
    monkeypatch.setenv("OPENAI_API_KEY", "vendor-secret")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Secret: header-secret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "other-secret")
    yield
    compatible._probed.clear()


def gate(model: Provider | str, **more: Any) -> Gate:
    return Gate.open(Settings(ledger=":memory:", budget="all").with_values(**more), model=model)


class Remote(Compatible):
    """A server that is treated as one of another machine: questions travel together."""

    def __init__(self, url: str, model: str) -> None:
        super().__init__(url, model)
        self.is_local = False


def test_a_server_is_tried_once_and_then_asked_everything_in_one_request(run) -> None:
    async def go(told: Server) -> None:
        async with gate(Remote(f"{told.url}/v1", "m")) as g:
            texts = ["x" * n for n in range(1, 6)]
            said = await g.ask(ALL, [row(t) for t in texts])
            assert said[0].values == [n % 2 == 0 for n in range(1, 6)] and said[3].values == [1, 2, 3, 4, 5]
            assert said[0].probabilities == pytest.approx([0.9 if v else 0.1 for v in said[0].values])
            assert said[4].values[1] == {"id": "text of 2", "ok": True} and said[5].values[0] == ["y"]
            assert not any(a.failures for a in said) and g.cost.calls == 5 and g.cost.requests == 6
            assert (await g.provider()).capabilities.schema and (await g.provider()).capabilities.probabilities
        asked = [b for b in told.bodies if "messages" in b]
        assert len(asked) == 6 and all(b["temperature"] == 0 for b in asked)
        assert all("secret" not in json.dumps(h) for h in told.headers), "a vendor's key is sent to nobody else"
        systems = {b["messages"][0]["content"] for b in asked[1:]}
        assert len(systems) == 1, "the instruction is the shared prefix of all rows"

    with serve({"/v1/chat/completions": chat}) as told:
        run(go(told))


def test_a_server_without_schemas_and_probabilities_is_asked_in_words(run) -> None:
    def plain(body, headers):
        if "response_format" in body or "logprobs" in body:
            return 400, {"error": {"message": "response_format is not supported"}}
        user = body["messages"][1]["content"]
        if "Answer with JSON of this schema" in user:
            return chat_reply('Of course: {"name": "blue"}', tokens=False)
        return chat_reply('```json\n{"q1": true, "q2": "a"}\n```', tokens=False)

    async def go(told: Server) -> None:
        async with gate(f"{told.url}/v1#m") as g:
            one, two = await g.ask([Predicate("it is so"), Choice("kind", ("a", "b"))], [row("x")])
            assert one.values == [True] and two.values == ["a"]
            schema = json.dumps({"type": "object", "properties": {"name": {"type": "string"}}})
            assert (await g.ask(Write("a colour", schema=schema), [Row()])).values == [{"name": "blue"}]
            assert (await g.provider()).capabilities.schema is False

    with serve({"/v1/chat/completions": plain}) as told:
        run(go(told))


def test_a_server_of_this_machine_is_asked_one_question_a_prompt(run) -> None:
    def small(body, headers):
        if "response_format" in body:
            return chat(body, headers)
        user = body["messages"][1]["content"]
        word = "B" if "Text A" in user else "Yes"
        assert body["max_tokens"] == 1
        return chat_reply(word, tokens=True, finish="length")

    async def go(told: Server) -> None:
        async with gate(f"{told.url}/v1#m") as g:
            said = await g.ask([Predicate("it is so"), Score("much"), Extract("n", "BIGINT")], [row("xy")])
            assert (
                [a.values[0] for a in said[:2]] == [True, 9.0]
                and said[0].probabilities[0] == 1.0
                and isinstance(said[2].values[0], int)
            )
            pair = Row((Cell("t", "one", "l"), Cell("t", "two", "r")))
            assert (await g.ask(Compare("longer"), [pair])).values == ["r"]
            assert g.cost.calls == 2 and told.bodies[1]["messages"][1]["content"].startswith(
                "Text: xy\n\nQuestion: Is it so"
            )

    with serve({"/v1/chat/completions": small}) as told:
        run(go(told))


def test_a_key_comes_from_the_variable_that_was_named_and_no_other(run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go(told: Server) -> None:
        own = {told.url: {"key_env": "MY_KEY", "requests_per_minute": 6000}}
        with pytest.raises(ConfigError, match="MY_KEY"):
            compatible.open_provider(f"{told.url}/v1#m", Settings().with_values(endpoints=own))
        monkeypatch.setenv("MY_KEY", "mine")
        async with gate(f"{told.url}/v1#m", endpoints=own) as g:
            await g.ask(Extract("n", "BIGINT"), [row("x")])
            assert (await g.provider()).limits.requests_per_minute == 6000
        assert {h["authorization"] for h in told.headers} == {"Bearer mine"}
        elsewhere = {"http://127.0.0.1:1": {"key_env": "MY_KEY"}}
        told.headers.clear()
        async with gate(f"{told.url}/v1#m", endpoints=elsewhere) as g:
            await g.ask(Extract("n", "BIGINT"), [row("y")])
        assert {h["authorization"] for h in told.headers} == {"Bearer none"}, "a key belongs to one origin"

    with serve({"/v1/chat/completions": chat}) as told:
        run(go(told))


@pytest.mark.parametrize(
    "address", ["http://host/v1", "http://#m", "https://user:key@host/v1#m", "http://host/v1?key=1#m"]
)
def test_an_address_without_host_or_model_or_with_a_key_is_refused(address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compatible.open_provider(address, Settings())
    assert "key@" not in str(caught.value) and "key=1" not in str(caught.value)


RAISED = [
    (401, {}, AuthError), (403, {}, AuthError), (402, {}, QuotaError), (429, {"code": "insufficient_quota"}, QuotaError),
    (404, {}, UnknownModelError),
]  # fmt: skip


@pytest.mark.parametrize(("status", "more", "error"), RAISED)
def test_errors_that_concern_every_row_are_raised(
    run, status: int, more: dict[str, str], error: type[ModelError]
) -> None:
    async def go(told: Server) -> None:
        async with gate(Remote(f"{told.url}/v1", "m")) as g:
            with pytest.raises(error):
                await g.ask(Predicate("it is so"), [row("x"), row("y")])
        assert len(told.bodies) <= 2

    with serve({"/v1/chat/completions": lambda b, h: (status, {"error": {"message": "no", **more}})}) as told:
        run(go(told))


def test_a_redirect_is_not_followed(run) -> None:
    async def go(told: Server) -> None:
        async with gate(Remote(f"{told.url}/v1", "m")) as g:
            with pytest.raises(BackendError, match="redirects"):
                await g.ask(Predicate("it is so"), [row("x")])
        assert len(told.bodies) == 1

    with serve(
        {"/v1/chat/completions": lambda b, h: Response(status_code=307, headers={"location": "http://127.0.0.1:9/v1"})}
    ) as told:
        run(go(told))


FAILED = [
    ((400, {"error": {"message": "context_length_exceeded", "code": "context_length_exceeded"}}), "too_long", 1),
    ((400, {"error": {"message": "filtered", "code": "content_filter"}}), "content_filter", 1),
    ((503, {"error": {"message": "busy"}}), "server", 5),
    (Response("{ half a", media_type="application/json"), "truncated", 2),
    (chat_reply('{"q1": tr', tokens=False, finish="length"), "truncated", 2),
    (chat_reply("", tokens=False), "empty", 2),
    (chat_reply('{"q1": 5}', tokens=False), "wrong_type", 2),
    (chat_reply("no", tokens=False, finish="content_filter"), "content_filter", 1),
]


@pytest.mark.parametrize(
    ("reply", "kind", "tries"), FAILED, ids=[f"{kind}{n}" for n, (_, kind, _) in enumerate(FAILED)]
)
def test_a_fault_of_one_row_fails_that_row_alone(run, reply, kind: str, tries: int) -> None:
    def faulty(body, headers):
        user = body["messages"][1]["content"]
        return reply if row_text(user) == "bad" else chat(body, headers)

    async def go(told: Server) -> None:
        async with gate(Remote(f"{told.url}/v1", "m")) as g:
            await g.ask(Predicate("it is so"), [row("warm")])
            answers = await g.ask(Predicate("it is so"), [row("good"), row("bad"), row("fine")])
            assert [(f.index, f.kind) for f in answers.failures] == [(1, kind)]
            assert answers.values == [True, None, True] and g.cost.calls == 3 + tries and g.cost.failed == 1

    with serve({"/v1/chat/completions": faulty}) as told:
        run(go(told))


def test_rows_share_a_request_for_decisions_and_keep_their_probabilities(run) -> None:
    rows = [row(f"row {'x' * n}") for n in range(12)]
    questions = [Predicate("it is so"), Choice("kind", ("a", "b"))]

    async def go(told: Server) -> None:
        async def found(together: int, name: str, api: str) -> tuple[list[Any], Cost]:
            model = OpenAI(name, api_key="k", url=f"{told.url}/v1", api=api, price=Price(0.1, 0.5))
            async with Gate.open(Settings(ledger=":memory:"), model=model, calls=None) as g:
                said = await g.ask(questions, rows, together=together)
                assert not any(answers.failures for answers in said)
                held = [(answers.values, answers.probabilities.tolist()) for answers in said]
            await model.aclose()
            return held, g.cost

        alone, each = await found(1, "gpt-6-luna", "")
        packed, shared = await found(8, "gpt-6-luna", "")
        stated, _ = await found(8, "gpt-decides", "decisions")
        assert alone == packed == stated
        assert (each.requests, shared.requests, shared.calls) == (12, 2, 12)
        assert (shared.input_tokens, shared.output_tokens) == (80, 0), "decisions are not billed by what is answered"
        assert shared.usd == pytest.approx(80 * 0.1 / 1e6)

    with serve({"/v1/decisions": decisions}) as told:
        run(go(told))


def test_openai_asks_decisions_where_the_model_has_them(run) -> None:
    async def go(told: Server) -> None:
        model = OpenAI("gpt-6-luna", api_key="k", url=f"{told.url}/v1")
        async with gate(model) as g:
            said = await g.ask(ALL, [row("even"), row("refuse")])
            assert said[0].values == [True, None] and said[0].probabilities[0] == 0.75
            assert [(f.index, f.kind) for f in said[0].failures] == [(1, "refusal")], "a refusal is of one question"
            assert said[1].values == ["a", "a"] and said[1].distributions[0] == pytest.approx([0.8, 0.1, 0.1])
            assert said[2].values == [pytest.approx(2.5)] * 2 and said[3].values == [4, 6]
            assert g.cost.calls == 2 and g.cost.requests == 4
        sent = [b for b in told.bodies if "questions" in b]
        assert [q["type"] for q in sent[0]["questions"]] == ["predicate", "choice", "score"]
        assert sent[0]["input"][0]["role"] == "developer" and "max_completion_tokens" in next(
            b for b in told.bodies if "messages" in b
        )

    with serve({"/v1/decisions": decisions, "/v1/chat/completions": chat}) as told:
        run(go(told))


def test_openai_leaves_out_what_a_model_refuses(run) -> None:
    def reasoning(body, headers):
        for name in ("temperature", "logprobs"):
            if name in body:
                return 400, {
                    "error": {
                        "message": f"Unsupported parameter: '{name}'",
                        "param": name,
                        "code": "unsupported_parameter",
                    }
                }
        return chat(body, headers)

    async def go(told: Server) -> None:
        async with gate(OpenAI("o9", api_key="k", url=f"{told.url}/v1")) as g:
            assert (await g.ask(Predicate("it is so"), [row("xx")])).values == [True]
            before = len(told.bodies)
            await g.ask(Predicate("it is so"), [row("y")])
            assert len(told.bodies) == before + 1, "what was learnt is remembered"
            assert (await g.provider()).capabilities.probabilities is False

    with serve({"/v1/chat/completions": reasoning}) as told:
        run(go(told))


def test_what_a_server_can_do_is_remembered_by_the_next_process_for_a_week(run) -> None:
    async def go(told: Server) -> None:
        server = Remote(f"{told.url}/v1", "m")
        async with gate(server) as g:
            await g.ask(Predicate("it is so"), [row("x")])
        tried = len(told.bodies)
        compatible._probed.clear()  # another process
        async with gate(Remote(f"{told.url}/v1", "m")) as g:
            await g.ask(Predicate("it is so"), [row("y")])
        assert len(told.bodies) == tried + 1, "nothing is tried again"
        assert remembered.load(server.name) is not None
        assert remembered.load(server.name, time.time() + remembered.KEPT_S + 1) is None

    with serve({"/v1/chat/completions": chat}) as told:
        run(go(told))


def test_a_server_that_refuses_images_is_asked_about_none_again(run) -> None:
    made = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(made, "PNG")

    def blind(body, headers):
        if "image_url" in json.dumps(body):
            return JSONResponse({"error": {"message": "this model takes no images"}}, 400)
        return chat(body, headers)

    async def go(told: Server) -> None:
        async with gate(Remote(f"{told.url}/v1", "m")) as g:
            pictures = [Row((Cell("photo", made.getvalue() + bytes([n]), "", "image/png"),)) for n in range(5)]
            answers = await g.ask(Predicate("it is red"), pictures)
            assert {f.kind for f in answers.failures} == {"bad_request"} and len(answers.failures) == 5
            assert "takes no images" in answers.failures[0].message
            assert (await g.provider()).capabilities.images is False
        assert sum("image_url" in json.dumps(body) for body in told.bodies) == 1, "tried once"

    with serve({"/v1/chat/completions": blind}) as told:
        run(go(told))


def test_an_image_travels_as_a_data_url(run) -> None:
    made = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(made, "PNG")
    picture = Row((Cell("photo", made.getvalue(), "", "image/png"),))

    async def go(told: Server) -> None:
        async with gate(OpenAI("gpt-x", api_key="k", url=f"{told.url}/v1")) as g:
            assert not (await g.ask(Predicate("it is red"), [picture])).failures
            sound = Row((Cell("clip", b"RIFF", "", "audio/wav"),))
            assert not (await g.ask(Predicate("it is loud"), [sound])).failures
            page = Row((Cell("page", b"%PDF", "", "application/pdf"),))
            assert (await g.ask(Predicate("it is long"), [page])).failures[0].kind == "bad_request"
        assert told.bodies[0]["messages"][1]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
        assert told.bodies[1]["messages"][1]["content"][1]["input_audio"] == {"data": "UklGRg==", "format": "wav"}
        async with gate(Anthropic("claude-x", api_key="k", url=told.url)) as g:
            assert not (await g.ask(Predicate("it is red"), [picture])).failures
        assert told.bodies[-1]["messages"][0]["content"][0]["source"]["media_type"] == "image/png"

    with serve({"/v1/chat/completions": chat, "/v1/messages": messages}) as told:
        run(go(told))


def test_anthropic_answers_with_a_schema_and_a_cached_instruction(run) -> None:
    async def go(told: Server) -> None:
        async with gate(Anthropic("claude-x", api_key="mine", url=told.url)) as g:
            said = await g.ask(ALL, [row("ab"), row("refuse")])
            assert (
                said[0].values == [True, None] and said[3].values == [2, None] and said[1].failures[0].kind == "refusal"
            )
            assert (await g.ask(Write("say"), [Row()])).values == ["a text about 3"]
            assert g.cost.calls == 3 and g.cost.input_tokens == 90 and g.cost.output_tokens == 18
        assert all(h["authorization"] == "Bearer mine" and "secret" not in json.dumps(h) for h in told.headers)
        assert told.bodies[0]["system"][0]["cache_control"] == {"type": "ephemeral"}

    with serve({"/v1/messages": messages}) as told:
        run(go(told))


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (401, "authentication_error", AuthError),
        (404, "not_found_error", UnknownModelError),
        (402, "billing_error", QuotaError),
    ],
)
def test_errors_of_anthropic_are_raised(run, status: int, kind: str, error: type[ModelError]) -> None:
    async def go(told: Server) -> None:
        async with gate(Anthropic("claude-x", api_key="k", url=told.url)) as g:
            with pytest.raises(error):
                await g.ask(Predicate("it is so"), [row("x")])

    with serve(
        {"/v1/messages": lambda b, h: (status, {"type": "error", "error": {"type": kind, "message": "no"}})}
    ) as told:
        run(go(told))


def test_retry_after_is_honoured(run) -> None:
    import time

    seen: list[float] = []

    def busy(body, headers):
        seen.append(time.monotonic())
        if len(seen) == 1:
            return Response(
                json.dumps({"error": {"message": "slow down"}}),
                status_code=429,
                headers={"retry-after": "0.3"},
                media_type="application/json",
            )
        return chat(body, headers)

    async def go(told: Server) -> None:
        async with gate(OpenAI("gpt-x", api_key="k", url=f"{told.url}/v1")) as g:
            assert not (await g.ask(Predicate("it is so"), [row("x")])).failures

    with serve({"/v1/chat/completions": busy}) as told:
        run(go(told))
    assert seen[1] - seen[0] >= 0.3


def test_a_model_that_writes_more_than_the_word_is_asked_for_an_object_from_then_on(run) -> None:
    def talks(body, headers):
        if "response_format" in body:
            return chat(body, headers)
        return chat_reply("True. The text says so.", tokens=False)

    async def go(told: Server) -> None:
        model = OpenAI("gpt-x", api_key="k", url=f"{told.url}/v1", api="chat")
        async with Gate.open(Settings(ledger=":memory:", concurrency=1), model=model, calls=None) as g:
            found = await g.ask(Predicate("it is so"), [row("x" * n) for n in range(1, 5)])
            assert found.values == [False, True, False, True] and not found.failures
            assert len(told.bodies) == 5, "one word was asked for once"

    with serve({"/v1/chat/completions": talks}) as told:
        run(go(told))


def test_a_vendor_without_a_key_says_which_variable(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("ANTHROPIC_API_KEY")

    async def go() -> None:
        for spec, variable in (("openai:gpt-x", "OPENAI_API_KEY"), ("anthropic:claude-x", "ANTHROPIC_API_KEY")):
            async with gate(spec) as g:
                with pytest.raises(AuthError, match=variable):
                    await g.ask(Predicate("it is so"), [row("x")])

    run(go())


@pytest.mark.thorough
def test_the_benchmark_compares_the_gate_with_the_same_requests_of_the_bare_sdk(run) -> None:
    from uql.benchmarks.gate import sdk

    async def go(told: Server) -> None:
        for provider, (send, close) in (
            (OpenAI("m", api_key="k", url=f"{told.url}/v1"), sdk.openai_sender(told.url)),
            (Anthropic("m", api_key="k", url=told.url), sdk.anthropic_sender(told.url)),
        ):
            async with gate(provider) as g:
                before = len(told.bodies)
                said = await g.ask(sdk.SO, [row("the same row")])
                assert await send(row("the same row")) == said.values[0]
                assert len(told.bodies) == before + 2 and told.bodies[before] == told.bodies[before + 1]
            await close()

    with serve({"/v1/chat/completions": chat, "/v1/messages": messages}) as told:
        run(go(told))
