"""systemone: decision models: what is sent, how it is read, many rows a request, and the reference server of jevcompat."""

from __future__ import annotations

from typing import Any

import pytest
from jevcompat import mock
from loopback import Server, serve, systemone
from scripted import row

import uql
from uql.base.errors import AuthError, ConfigError
from uql.base.settings import Settings
from uql.llm.gate import Gate
from uql.llm.providers import open_provider
from uql.llm.questions import Cell, Choice, Compare, Extract, Predicate, Row, Score, Write

SO = Predicate("it is so")
KIND = Choice("the kind", ("a", "b"), ("the first", ""), none_of_these=True)


def gate(url: str, **more: Any) -> Gate:
    settings = Settings(ledger=":memory:", budget="all").with_values(**more)
    return Gate.open(settings, model=open_provider(f"systemone:{url}#m", settings))


def test_many_questions_about_a_row_are_one_request_with_probabilities(run) -> None:
    async def go(told: Server) -> None:
        async with gate(told.url) as g:
            rows = [row("x" * n) for n in range(1, 5)]
            so, kind, much = await g.ask([SO, KIND, Score("how angry it is", 5)], rows)
            assert so.values == [False, True, False, True]
            assert so.probabilities == pytest.approx([0.25, 0.75, 0.25, 0.75])
            assert kind.values == ["b", "none of these", "a", "b"]
            assert kind.probabilities == pytest.approx([0.8] * 4)
            assert kind.distributions is not None and kind.distributions.shape == (4, 3)
            assert all(0 < value < 4 for value in much.values)
            assert g.cost.calls == 4 and g.cost.input_tokens == 160
        first = next(body for body in told.bodies if body["state"] == "x")  # they are in flight together
        assert first["state"] == "x" and first["model"] == "m"
        assert first["questions"]["q1"] == {"type": "noul", "instructions": "Is it so that it is so?"}
        assert first["questions"]["q2"]["criteria"] == {"a": "the first", "b": None, "none of these": None}
        assert first["questions"]["q3"]["criteria"] == ["0 (not at all)", "1", "2", "3", "4 (very much)"]

    with serve({"/v1/systemone": systemone}) as told:
        run(go(told))


def test_rows_share_a_request_and_have_the_answers_that_each_has_alone(run) -> None:
    async def go(told: Server) -> None:
        rows = [row("x" * n) for n in range(1, 131)]
        async with gate(told.url) as alone, gate(told.url) as packed:
            one = await alone.ask([SO, KIND], rows)
            before = len(told.bodies)
            many = await packed.ask([SO, KIND], rows, together=100)
            assert len(told.bodies) - before <= 4
            assert [a.values for a in one] == [a.values for a in many]
            assert packed.cost.calls == 130
        body = told.bodies[-1]
        assert body["state"] == {"q1": "Is it so that it is so?", "q2": "Which is the kind?"}
        assert body["questions"]["0.q1"]["instructions"]["record"].startswith("x")

    with serve({"/v1/systemone": systemone}) as told:
        run(go(told))


def test_several_labels_are_one_decision_each(run) -> None:
    async def go(told: Server) -> None:
        async with gate(told.url) as g:
            (said,) = await g.ask([Choice("the kinds", ("a", "b"), many=True)], [row("xx"), row("x")])
            assert said.values == [["a", "b"], []]
        assert set(told.bodies[0]["questions"]) == {"q1.0", "q1.1"}

    with serve({"/v1/systemone": systemone}) as told:
        run(go(told))


def test_a_pair_is_compared_by_its_two_sides(run) -> None:
    async def go(told: Server) -> None:
        async with gate(told.url) as g:
            pair = Row((Cell("body", "short", "x"), Cell("body", "longer", "y")))
            (said,) = await g.ask([Compare("how long it is")], [pair])
            assert said.values[0] in ("x", "y")
        assert told.bodies[0]["state"] == {"x.body": "short", "y.body": "longer"}

    with serve({"/v1/systemone": systemone}) as told:
        run(go(told))


@pytest.mark.parametrize("question", [Extract("the name"), Write("say it"), Score("much", 40)])
def test_what_is_no_decision_is_refused_before_anything_is_sent(run, question: Any) -> None:
    async def go(told: Server) -> None:
        async with gate(told.url) as g:
            with pytest.raises(ConfigError, match="a decision model cannot answer"):
                await g.ask([question], [row("x")])
            assert not told.bodies and g.cost.calls == 0

    with serve({"/v1/systemone": systemone}) as told:
        run(go(told))


WRONG: list[Any] = [
    {}, {"q1": 1}, {"q1": {"type": "noul"}}, {"q1": {"noul": True}}, {"q1": {"noul": 1.5}}, {"q1": {"noul": float("nan")}}, [],
]  # fmt: skip


@pytest.mark.parametrize("answers", WRONG, ids=str)
def test_an_answer_of_another_form_is_a_failure_of_its_row(run, answers: Any) -> None:
    async def go(told: Server) -> None:
        async with gate(told.url) as g:
            (said,) = await g.ask([SO], [row("x")])
            assert said.values == [None] and [f.kind for f in said.failures] == ["wrong_type"]

    def handler(body: dict[str, Any], headers: dict[str, str]) -> Any:
        import json

        from starlette.responses import Response

        return Response(json.dumps({"model": "m", "answers": answers, "usage": {}}), media_type="application/json")

    with serve({"/v1/systemone": handler}) as told:
        run(go(told))


def test_a_distribution_that_is_none_leaves_the_label_and_no_probability(run) -> None:
    async def go(told: Server) -> None:
        async with gate(told.url) as g:
            (said,) = await g.ask([KIND], [row("x")])
            assert said.values == ["b"] and said.probabilities[0] != said.probabilities[0]

    def handler(body: dict[str, Any], headers: dict[str, str]) -> Any:
        shares = {"a": 0.9, "b": 0.9, "none of these": 0.9}
        return {
            "model": "m",
            "answers": {"q1": {"type": "choice", "choice": "B", "probabilities": shares}},
            "usage": {},
        }

    with serve({"/v1/systemone": handler}) as told:
        run(go(told))


def test_the_vendors_model_has_a_price_and_needs_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JEV_API_KEY", raising=False)
    with pytest.raises(AuthError, match="TypeSafe"):
        open_provider("systemone:jev-latest", Settings())
    monkeypatch.setenv("JEV_API_KEY", "secret-key")
    made = open_provider("systemone:jev-latest", Settings())
    assert made.price is not None and made.price.usd(1e6, 1e6) == pytest.approx(0.042)
    assert not made.is_local and "secret" not in made.name


@pytest.mark.parametrize("spec", ["systemone:", "systemone:http://host/v1", "systemone:http://u:p@host#m"])
def test_an_address_without_a_part_is_refused(spec: str) -> None:
    with pytest.raises(ConfigError):
        open_provider(spec, Settings())


def test_a_statement_runs_over_the_reference_server() -> None:
    """jevcompat's mock checks every request against its specification, and refuses what breaks it."""
    with mock.Running(mock.MockConfig()) as server:
        spec = f"systemone:{server.url}#jev-latest"
        with uql.connect(model=spec, ledger=":memory:", budget="all", progress=False) as con:
            con.sql("CREATE TABLE r AS SELECT i AS id, 'review ' || i || ' “quoted” é' AS body FROM range(12) t(i)")
            said = con.uql(
                'SELECT id, "the tone"::ENUM(\'calm\', \'angry\') AS tone FROM r WHERE "the review is positive" ORDER BY "how long it is"'
            )
            assert said.exact and not said.errors and 0 < len(said.fetchall()) <= 12
            assert {tone for _, tone in said.fetchall()} <= {"calm", "angry"}
            packed = con.uql(
                'SELECT COUNT(*) AS n FROM r WHERE "the review is about a film" WITH (rows_per_request = 8)'
            )
            assert not packed.errors and packed.cost.calls == 12


def counted(url: str, **settings: Any) -> tuple[list[tuple[Any, ...]], Any, str]:
    """The rows, the cost and the plan of a condition about 100 texts of 1 to 100 letters."""
    with uql.connect(model=f"systemone:{url}#m", ledger=":memory:", budget="all", progress=False, **settings) as con:
        con.sql("CREATE TABLE r AS SELECT i AS id, repeat('x', i::INTEGER) AS body FROM range(1, 101) t(i)")
        result = con.uql('SELECT id FROM r WHERE "it is so" ORDER BY id')
        plan = result.explain()
        return result.fetchall(), result.cost, plan


def test_by_default_rows_share_requests_and_each_has_its_answer_and_its_probability() -> None:
    with serve({"/v1/systemone": systemone}) as told:
        alone, one_by_one, _ = counted(told.url, rows_per_request=1)
        shared, cost, plan = counted(told.url)
        assert alone == shared == [(i,) for i in range(2, 101, 2)]
        assert one_by_one.requests == cost.calls == 100 and cost.requests == 4
        assert "32 rows a request; reads r.body" in plan and "answers have no probabilities" not in plan
        assert "chosen: the cheapest with 32 decisions a request" in plan
        _, soft, plan = counted(told.url, soft=True)
        assert soft.requests == 4 and "left aside" not in plan, "their probabilities are there"


def test_a_row_that_the_server_refuses_fails_alone_and_the_rows_beside_it_have_their_answers() -> None:
    def handler(body: dict[str, Any], headers: dict[str, str]) -> Any:
        texts = [body["state"], *(str(q["instructions"]) for q in body["questions"].values())]
        if any("'xxxxx'" in str(text) or text == "xxxxx" for text in texts):
            return 422, {"detail": [{"loc": ["body"], "msg": "bad request", "type": "missing"}]}
        said = systemone(body, headers)
        said["answers"].pop("3.q1", None)  # and one that the reply leaves out
        return said

    with serve({"/v1/systemone": handler}) as told:
        rows, cost, _ = counted(told.url)
        assert rows == [(i,) for i in range(2, 101, 2)]
        assert cost.failed == 1
