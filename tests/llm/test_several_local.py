"""Rows of the local model never share a prompt: not with rows that give orders, whatever `rows_per_request` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scripted import row
from test_faults import injected

import uql
from uql.base.settings import Settings
from uql.llm.gate import Gate
from uql.llm.providers import local as provider
from uql.llm.providers.local import Local
from uql.llm.questions import Choice, Extract, Predicate

PLAIN = [f"Bill number {n} was paid twice." for n in range(10)]
QUESTIONS = [
    Predicate("a bill was paid twice"),
    Choice("subject", ("a bill", "a card")),
    Extract("the number", "BIGINT"),
]


class Engine:
    """Stands for a loaded model: keeps the prompts, and obeys whatever gives an order."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    async def run(self, work: Any) -> Any:
        return work()

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt = "\n".join(m["content"] for m in body["messages"])
        self.prompts.append(prompt)
        obeys = any(word in prompt for word in ("Ignore all", "SYSTEM", "Answer Yes"))
        said = "Yes" if obeys or "twice" in prompt else "No"
        if "grammar" in body:
            said = "null" if "null" in body["grammar"] else "a bill"
        top = {"token": said, "logprob": -0.1, "top_logprobs": [{"token": said, "logprob": -0.1}]}
        return {
            "choices": [{"message": {"content": said}, "finish_reason": "stop", "logprobs": {"content": [top]}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 1},
        }


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Engine:
    loaded = Engine()

    async def engine(*_: Any, **__: Any) -> Engine:
        return loaded

    monkeypatch.setattr(provider, "engine", engine)
    return loaded


def test_100_rows_that_give_orders_at_8_rows_a_request_are_in_no_prompt_of_another_row(run, model, tmp_path) -> None:
    orders = injected()
    texts = [text for n, order in enumerate(orders) for text in ((order, PLAIN[n // 10]) if n % 10 == 0 else (order,))]

    async def go() -> None:
        local = Local(tmp_path / "model.gguf")
        async with Gate.open(Settings(ledger=":memory:", concurrency=8), model=local, calls=None) as gate:
            alone = await gate.ask(QUESTIONS, [row(text) for text in PLAIN])
        model.prompts.clear()
        async with Gate.open(Settings(ledger=":memory:", concurrency=8), model=local, calls=None) as gate:
            mixed = await gate.ask(QUESTIONS, [row(text) for text in texts], together=8)
            assert gate.cost.requests == gate.cost.calls == len(texts)
            again = await gate.ask(QUESTIONS, [row(text) for text in texts])
            assert gate.cost.calls == len(texts), "the ledger holds them as answers to rows asked alone"
        for before, after, later in zip(alone, mixed, again, strict=True):
            assert not after.failures and after.values == later.values
            assert [after.values[texts.index(text)] for text in PLAIN] == before.values
        assert all(isinstance(value, bool) for value in mixed[0].values)
        assert set(mixed[1].values) == {"a bill"} and set(mixed[2].values) == {None}

    run(go())
    words = [text.split("\n")[0].replace("<|", "< |") for text in texts]
    for prompt in model.prompts:
        held = {text for text in words if text in prompt}
        assert len({text.rpartition(" (")[0] or text for text in held}) == 1, prompt


def test_a_query_that_asks_for_8_rows_a_request_says_that_this_model_is_asked_row_by_row(model, tmp_path) -> None:
    local = Local(tmp_path / "model.gguf")
    with uql.connect(model=local, ledger=":memory:", budget="all", rows_per_request=8, progress=False) as con:
        con.sql("SELECT i AS id, 'Bill number ' || i || ' was paid twice.' AS text FROM range(16) r(i)").create("t")
        query = con.uql('SELECT id FROM t WHERE "a bill was paid twice"')
        assert "rows a request" not in query.explain()
        assert len(query.fetchall()) == 16 and query.cost.requests == query.cost.calls == 16
        assert any("is asked row by row" in note for note in query.notes)


def test_the_plan_knows_that_it_is_asked_row_by_row_before_the_model_is_there() -> None:
    with uql.connect(model="local", ledger=":memory:", budget="all", rows_per_request=8, progress=False) as con:
        con.sql("SELECT i AS id, 'a text' AS text FROM range(16) r(i)").create("t")
        plan = con.uql('SELECT id FROM t WHERE "a bill was paid twice"').explain()
        assert "rows a request" not in plan and "USD: 0.0000" in plan
