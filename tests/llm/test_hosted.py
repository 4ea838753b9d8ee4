"""Hosts of OpenAI's protocol by name: address, key, price, and the list of their models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from loopback import Server, chat, serve
from scripted import row
from typer.testing import CliRunner

from uql.base.errors import AuthError, ConfigError
from uql.base.settings import Settings
from uql.command.models import app
from uql.llm.gate import Gate
from uql.llm.providers import hosted, open_provider
from uql.llm.providers.base import Price
from uql.llm.questions import Cell, Predicate, Row
from uql.pricing.model_prices import watches

NAMED = [("openrouter:a/b", "OPENROUTER_API_KEY"), ("gemini:g", "GEMINI_API_KEY"), ("azure:d", "AZURE_OPENAI_API_KEY")]


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for host in hosted.HOSTS.values():
        for name in (host.key_env, host.url_env):
            if name:
                monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("spec", "variable"), NAMED)
def test_a_host_without_its_key_names_the_variable(spec: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com/")
    with pytest.raises(AuthError) as caught:
        open_provider(spec, Settings())
    assert variable in str(caught.value)
    monkeypatch.setenv(variable, "a-secret-key")
    made = open_provider(spec, Settings())
    assert not made.is_local and "secret" not in made.name


def test_prices_are_those_of_the_vendors_list_or_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "a-secret-key")
    made = open_provider("gemini:gemini-2.5-flash", Settings())
    assert made.price is not None and 0 < made.price.input < made.price.output
    assert open_provider("gemini:not-listed", Settings()).price is None
    assert open_provider("ollama:llama3", Settings()).price == Price(0.0, 0.0)


@pytest.mark.parametrize(
    ("kind", "variable", "stated", "url"),
    [
        ("ollama", "OLLAMA_HOST", "", "http://127.0.0.1:11434/v1"),
        ("ollama", "OLLAMA_HOST", "box:1234", "http://box:1234/v1"),
        ("azure", "AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com/", "https://me.openai.azure.com/openai/v1"),
    ],
)
def test_the_address_of_a_host(
    kind: str, variable: str, stated: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, stated)
    assert hosted.address_of(kind) == url


def test_an_address_that_is_missing_or_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="address of Azure OpenAI"):
        hosted.address_of("azure")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "file:///etc/passwd")
    with pytest.raises(ConfigError, match="not an http"):
        hosted.address_of("azure")
    with pytest.raises(ConfigError, match="needs the name of a model"):
        open_provider("gemini:", Settings())


def listed(body: dict[str, Any], headers: dict[str, str]) -> Any:
    return {"object": "list", "data": [{"id": "b", "object": "model"}, {"id": "a", "object": "model"}]}


@pytest.mark.parametrize("kind", [kind for kind in hosted.HOSTS if kind != "ollama"])
def test_every_named_host_is_asked_with_its_own_key_for_answers_and_models(
    kind: str, run, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = hosted.HOSTS[kind]
    monkeypatch.setenv(host.key_env, f"the-key-of-{kind}")

    async def go(told: Server) -> None:
        made: Any = open_provider(f"{kind}:m", Settings())
        assert "the-key" not in made.name
        made.is_local = False  # of loopback: the vendor's host is not
        async with Gate.open(Settings(ledger=":memory:"), model=made, calls=None) as g:
            said = await g.ask(Predicate("it is so"), [row("xx"), row("x")])
            assert said.values == [True, False] and not said.failures
        await made.aclose()
        assert await hosted.models_of(kind, Settings()) == ["a", "b"]
        assert {h["authorization"] for h in told.headers} == {f"Bearer the-key-of-{kind}"}

    with serve({"/v1/chat/completions": chat, "/v1/models": listed}) as told:
        if host.url:
            monkeypatch.setitem(hosted.HOSTS, kind, replace(host, url=f"{told.url}/v1"))
        else:
            monkeypatch.setenv(host.url_env, f"{told.url}/v1")
        run(go(told))


def test_a_model_of_a_named_host_answers_and_its_models_are_listed(run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        made: Any = open_provider("ollama:m", Settings())
        made.is_local = False  # the server speaks JSON alone
        async with Gate.open(Settings(ledger=":memory:"), model=made, calls=None) as g:
            said = await g.ask(Predicate("it is so"), [row("xx")])
            assert not said.failures
        assert await hosted.models_of("ollama", Settings()) == ["a", "b"]

    with serve({"/v1/chat/completions": chat, "/v1/models": listed}) as told:
        monkeypatch.setenv("OLLAMA_HOST", told.url)
        run(go())
        said = CliRunner().invoke(app, ["list", told.url + "/v1"])
        assert said.exit_code == 0 and said.output.split() == ["a", "b"]
        unknown = CliRunner().invoke(app, ["list", "nowhere"])
        assert unknown.exit_code == 2 and "UQL402" in unknown.output
    gone = CliRunner().invoke(app, ["list", told.url + "/v1"])
    assert gone.exit_code == 3


@pytest.mark.parametrize(
    ("takes", "can"), [(["text", "image", "video"], True), (["text", "image"], False), (None, None)]
)
def test_a_model_takes_videos_where_its_host_says_so(takes, can, run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As OpenRouter lists them; a video travels as a file in a data URL."""
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    name = f"takes-{can}"
    entry = {"id": name, "context_length": 9_000, **({"architecture": {"input_modalities": takes}} if takes else {})}

    async def go(told: Server) -> None:
        made: Any = open_provider(f"openrouter:{name}", Settings())
        made.is_local = False  # of loopback: the vendor's host is not
        async with Gate.open(Settings(ledger=":memory:"), model=made, calls=None) as g:
            film = Row((Cell("clip", b"\0\0\0 ftypisom", "", "video/mp4"),))
            assert not (await g.ask(Predicate("it is so"), [row("xx"), film])).failures
        assert (made.capabilities.video, made.capabilities.context) == (can, 9_000)
        assert watches(made, Settings()) is bool(can)
        sent = [
            part
            for body in told.bodies
            for m in body.get("messages", ())
            for part in m["content"]
            if isinstance(part, dict)
        ]
        urls = [part["video_url"]["url"] for part in sent if part["type"] == "video_url"]
        assert urls == ["data:video/mp4;base64,AAAAIGZ0eXBpc29t"]

    with serve({"/v1/chat/completions": chat, "/v1/models": lambda body, headers: {"data": [entry]}}) as told:
        monkeypatch.setitem(hosted.HOSTS, "openrouter", replace(hosted.HOSTS["openrouter"], url=f"{told.url}/v1"))
        run(go(told))


@pytest.mark.parametrize("said", [5, True, "names", {"id": "a"}, [5, None, {"id": None}]], ids=str)
def test_a_list_of_models_that_is_none_names_none(run, said: Any) -> None:
    with serve({"/v1/models": lambda body, headers: {"data": said}}) as told:
        assert run(hosted.models_of(f"{told.url}/v1", Settings())) == []
