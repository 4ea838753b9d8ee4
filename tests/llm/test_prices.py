"""Prices by the names of models: the user's, genai-prices', the table that is shipped; and cached input at its own price."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from loopback import chat, generate, messages, responses, serve
from scripted import row

from uql.base.settings import Settings
from uql.llm import prices
from uql.llm.gate import Gate
from uql.llm.prices import price_of
from uql.llm.providers.anthropic_api import Anthropic
from uql.llm.providers.base import Price
from uql.llm.providers.gemini_api import Gemini
from uql.llm.providers.openai_api import OpenAI
from uql.llm.questions import Predicate
from uql.llm.run_record import Cost
from uql.pricing.model_prices import price_known
from uql.show.render import cost_line

ROOT = Path(__file__).parents[2]
NAMES = [
    "openai:gpt-5-mini",
    "openai:gpt-5-mini-2025-08-07",
    "openai:gpt-4.1-nano?api=chat",
    "anthropic:claude-haiku-4-5",
    "anthropic:claude-3-haiku-20240307",
    "gemini:gemini-2.5-flash",
    "mistral:mistral-small-latest",
    "deepseek:deepseek-v4-flash",
    "groq:openai/gpt-oss-20b",
    "xai:grok-4.5",
    "azure:gpt-4o-mini",
    "openrouter:openai/gpt-4o-mini",
    "voyage:voyage-4-lite",
    "systemone:jev-1",
    "https://api.mistral.ai/v1#mistral-small-latest",
]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch):
    """Without the genai-prices package."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    prices._packaged.cache_clear()
    yield
    prices._packaged.cache_clear()


@pytest.mark.parametrize("name", NAMES)
def test_every_vendor_has_prices_with_the_package_and_without_it(name: str, request: pytest.FixtureRequest) -> None:
    listed = price_known(None, Settings(model=name))
    request.getfixturevalue("alone")
    shipped = price_known(None, Settings(model=name))
    assert listed is not None and listed.input > 0, "some vary with the hour: their numbers are compared below"
    assert shipped is not None and shipped.input > 0


@pytest.mark.parametrize(
    "name",
    ["openai:nobody-knows-it", "openai:gpt-5-pro-max", "https://gw.example/v1#gpt-5-mini", "mine:x", "openai:", ""],
)
def test_a_model_that_no_table_has_has_no_price(name: str, alone: None) -> None:
    assert price_of(name) is None


@pytest.mark.parametrize("name", ["local", "local:x.gguf", "local?ctx=9", "ollama:m", "http://127.0.0.1:1/v1#m"])
def test_a_model_on_this_machine_costs_nothing(name: str) -> None:
    assert price_of(name) == Price(0.0, 0.0)


def test_the_users_own_price_comes_first() -> None:
    own = Settings().with_values(prices={"openai:gpt-5-mini": {"input": 7, "output": 8, "cached": 1}})
    assert price_of("openai:gpt-5-mini?api=chat", own) == Price(7.0, 8.0, 1.0)


def test_the_table_is_dated_and_says_what_its_source_says() -> None:
    held = tomllib.loads((ROOT / "uql/llm/prices.toml").read_text(encoding="utf-8"))
    assert held["as_of"].year >= 2026
    assert all(
        set(price) <= {"input", "output", "cached", "written"}
        for v in prices.shipped().values()
        for price in v.values()
    )
    if held["source"] != f"genai-prices {version('genai-prices')}":
        pytest.skip("another version of the source is installed")
    noon = datetime.combine(held["as_of"], time(12), UTC)
    for vendor, listed in prices.shipped().items():
        for model, price in listed.items():
            source = prices._packaged(vendor, model, noon)
            assert model == "*" or (source is not None and vars_of(source) == pytest.approx(vars_of(Price(**price)))), (
                model
            )


def vars_of(price: Price) -> dict[str, float]:
    return {n: v for n in ("input", "output", "cached", "written") if (v := getattr(price, n)) is not None}


def test_the_package_of_prices_comes_with_every_installation() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert any(r.startswith("genai-prices") for r in project["dependencies"])


def test_cached_input_has_a_price_of_its_own() -> None:
    price = Price(2.0, 8.0, cached=0.5, written=2.5)
    assert price.usd(1000, 10) == pytest.approx(0.00208)
    assert price.usd(1000, 10, cached=800) == pytest.approx(0.00208 - 800 * 1.5e-6)
    assert price.usd(1000, 10, written=800) == pytest.approx(0.00208 + 800 * 0.5e-6)
    assert Price(2.0, 8.0).usd(1000, 10, 800, 100) == pytest.approx(0.00208)


def completion_of_cached(body: dict[str, Any], headers: dict[str, str]) -> Any:
    made = chat(body, headers)
    made["usage"] = {
        "prompt_tokens": 1000,
        "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 800, "audio_tokens": 0},
    }
    return made


def response_of_cached(body: dict[str, Any], headers: dict[str, str]) -> Any:
    made = responses(body, headers)
    made["usage"] = {"input_tokens": 1000, "output_tokens": 10, "input_tokens_details": {"cached_tokens": 800}}
    return made


def message_of_cached(body: dict[str, Any], headers: dict[str, str]) -> Any:
    made = messages(body, headers)
    made["usage"] = {
        "input_tokens": 100,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 800,
        "output_tokens": 10,
    }
    return made


def generated_of_cached(body: dict[str, Any], headers: dict[str, str]) -> Any:
    made = generate(body, headers)
    used = {
        "promptTokenCount": 1000,
        "cachedContentTokenCount": 800,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 7,
    }
    return {**made, "usageMetadata": used}


def completion_of_too_much_cached(body: dict[str, Any], headers: dict[str, str]) -> Any:
    made = completion_of_cached(body, headers)
    made["usage"]["prompt_tokens_details"] = {"cached_tokens": 10**11, "cache_write_tokens": 10**11}
    return made


def test_a_request_costs_no_less_than_nothing_whatever_its_server_had_in_its_cache(run) -> None:
    with serve({"/v1/chat/completions": completion_of_too_much_cached}) as told:

        async def go() -> Cost:
            provider = OpenAI("m", api_key="k", url=told.url + "/v1", price=WRITTEN, api="chat")
            async with Gate.open(Settings(ledger=":memory:"), model=provider, calls=None) as g:
                await g.ask(Predicate("it is so"), [row("xx")])
                await provider.aclose()
                return g.cost

        cost = run(go())
    assert (cost.input_tokens, cost.cached_tokens) == (1000, 1000)
    assert cost.usd == pytest.approx(1000 * 0.5e-6 + 10 * 8e-6)


WRITTEN = Price(2.0, 8.0, cached=0.5, written=2.5)


@pytest.mark.parametrize(
    ("made", "usd"),
    [
        (lambda url: OpenAI("m", api_key="k", url=url + "/v1", price=WRITTEN, api="chat"), 0.00208 - 800 * 1.5e-6),
        (lambda url: OpenAI("m", api_key="k", url=url + "/v1", price=WRITTEN, api="responses"), 0.00208 - 800 * 1.5e-6),
        (lambda url: Anthropic("m", api_key="k", url=url, price=WRITTEN), 0.00208 - 800 * 1.5e-6 + 100 * 0.5e-6),
        (lambda url: Gemini("m", api_key="k", url=url, price=WRITTEN), 0.00208 - 800 * 1.5e-6),
    ],
    ids=["chat", "responses", "messages", "generate"],
)
def test_what_a_server_had_in_its_cache_is_billed_as_cached(run, made: Callable[[str], Any], usd: float) -> None:
    routes = {
        "/v1/chat/completions": completion_of_cached,
        "/v1/responses": response_of_cached,
        "/v1/messages": message_of_cached,
        "/models/m:generateContent": generated_of_cached,
    }
    with serve(routes) as told:

        async def go() -> Cost:
            provider = made(told.url)
            async with Gate.open(Settings(ledger=":memory:"), model=provider, calls=None) as g:
                said = await g.ask(Predicate("it is so"), [row("xx")])
                assert not said.failures
                await provider.aclose()
                return g.cost

        cost = run(go())
    assert (cost.input_tokens, cost.output_tokens, cost.cached_tokens) == (1000, 10, 800)
    assert cost.usd == pytest.approx(usd)
    assert "1,000 (800 of them cached) + 10 tokens" in cost_line(cost)
