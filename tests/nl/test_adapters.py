"""Adapters of this process: what they ask, and what they make of the replies."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from nl.adapter_world import SOURCES, run_of, scripted

from uql.base.errors import BudgetError, ConfigError
from uql.nl.adapters import available, open_adapter, open_adapters
from uql.nl.adapters.base import evidence, fitting, images, tokens_of
from uql.nl.adapters.structgpt import OTHER
from uql.nl.plan.dag import Operator, SubAnswer


def asked(name: str, query: str, model: Any, *sources: str, calls: int | None = None) -> SubAnswer:
    async def run() -> SubAnswer:
        with run_of(model, *sources, calls=calls) as ctx:
            await ctx.gate.provider()
            answer = await open_adapter(name).run(query, ctx.sources, ctx)
            await ctx.gate.aclose()
            return answer

    return asyncio.run(run())


def test_three_adapters_are_in_this_process() -> None:
    assert list(open_adapters()) == ["uql", "single_model", "structgpt"]
    assert {"uql", "single_model", "structgpt"} <= set(available())
    assert not open_adapter("structgpt").capable(Operator.IMAGE)
    assert all(open_adapter("uql").capable(op) and open_adapter("single_model").capable(op) for op in Operator)
    with pytest.raises(ConfigError, match="there are uql"):
        open_adapter("llama")


def test_uql_runs_a_statement_and_keeps_it() -> None:
    model = scripted(lambda task, text, request: {"sql": "SELECT name FROM teams WHERE founded < 1980 ORDER BY name"})
    answer = asked("uql", "Which teams are from before 1980?", model)
    assert (answer.value, answer.text, answer.sources) == (["Jazz", "Suns"], "Jazz; Suns", ("teams",))
    assert answer.uql is not None and answer.uql.startswith("SELECT name FROM teams") and answer.problem is None


def test_uql_gives_one_cell_as_its_value_and_several_columns_as_rows() -> None:
    one = asked("uql", "How many?", scripted(lambda *_: {"sql": "SELECT COUNT(*) AS n FROM teams"}))
    assert (one.value, one.text) == (3, "3")
    two = asked("uql", "All?", scripted(lambda *_: {"sql": "SELECT name, founded FROM teams LIMIT 1"}))
    assert (two.value, two.text) == ([{"name": "Heat", "founded": 1988}], "name: Heat, founded: 1988")


def test_uql_shows_the_error_once_and_the_model_mends_it() -> None:
    model = scripted(
        lambda task, text, request: {
            "sql": f"SELECT {'name' if 'cannot be run' in text else 'star'} FROM teams LIMIT 1"
        }
    )
    answer = asked("uql", "A team?", model)
    assert answer.value == "Heat" and len(model.calls) == 2
    assert "no column star" in model.calls[1].questions[0].text


def test_uql_refuses_what_the_guard_refuses() -> None:
    answer = asked("uql", "Everything?", scripted(lambda *_: {"sql": "SELECT * FROM '/etc/passwd'"}), "teams")
    assert answer.value is None and answer.problem is not None and "no statement that runs" in answer.problem
    answer = asked("uql", "None?", scripted(lambda *_: {"sql": "SELECT name FROM teams WHERE founded > 3000"}))
    assert answer.problem == "its statement gives no rows"


def test_single_model_sees_the_rows_and_images_and_no_private_column() -> None:
    seen: list[Any] = []

    def reply(task: str, text: str, request: Any) -> dict[str, Any]:
        seen.append((text, request.row.cells))
        return {"found": True, "answer": "Miami", "sources": ["reports"]}

    answer = asked("single_model", "Where did the Heat beat the Suns?", scripted(reply))
    assert (answer.value, answer.sources, answer.adapter) == ("Miami", ("reports",), "single_model")
    ((text, cells),) = seen
    assert "beat the Suns by ten points in Miami" in text and "basketball teams" in text
    assert "owner_phone" not in text
    assert [cell.media_type for cell in cells] == ["image/png"] * 2 and cells[0].name == "logos logo (Heat)"


def test_single_model_says_when_the_answer_is_not_there() -> None:
    answer = asked("single_model", "Who?", scripted(lambda *_: {"found": False, "answer": "", "sources": []}))
    assert answer.value is None and answer.problem == "not in the evidence: no answer"


def test_evidence_is_the_nearest_rows_within_the_tokens() -> None:
    with run_of(scripted(lambda *_: None), "reports") as ctx:
        text, named, notes = evidence("Did the Jazz lose at home?", ctx.sources, ctx, tokens=20)
        assert named == ("reports",) and "Jazz lost" in text and "Miami" not in text and "1 more rows" in text
        assert notes == ["the model was shown 1 of 2 rows of reports"]
    with run_of(scripted(lambda *_: None), "logos") as ctx:
        assert len(images(SOURCES | {}, ctx, most=1)) == 1


def test_rows_of_links_and_numbers_fill_a_context_sooner_than_words() -> None:
    words = ["the quick brown fox jumps over the lazy dog again"] * 9
    links = ["http://example.org/a%20b/2024-11-21/0123456789.jpg"] * 9
    assert abs(len(words[0]) - len(links[0])) < 2 and tokens_of(links[0]) > 2 * tokens_of(words[0])
    assert len(fitting(words, 60)) == 5 and len(fitting(links, 60)) == 1


def test_structgpt_shows_as_many_rows_as_the_context_holds() -> None:
    shown: list[str] = []

    def reply(task: str, text: str, request: Any) -> dict[str, Any]:
        match task:
            case "structgpt_schema":
                return {"table": "teams", "columns": ["name"]}
            case "structgpt_rows":
                return {"conditions": []}
        shown.append(text)
        return {"found": True, "answer": "three", "sources": ["teams"]}

    small = scripted(reply)
    small.capabilities = replace(small.capabilities, context=4 * (OTHER + 18) // 3)  # a quarter is the reply's
    answer = asked("structgpt", "How many teams?", small)
    assert answer.text == "three" and answer.notes == ("the model was shown 2 of 3 rows of teams",)
    assert "- name: Heat" in shown[0] and "Jazz" not in shown[0] and "(1 more rows)" in shown[0]


def test_structgpt_grounds_filters_and_answers() -> None:
    def reply(task: str, text: str, request: Any) -> dict[str, Any]:
        match task:
            case "structgpt_schema":
                return {"table": "teams", "columns": ["name", "founded", "nothing"]}
            case "structgpt_rows":
                return {"conditions": [{"column": "founded", "operator": ">", "value": "1970"}]}
        assert "Heat" in text and "Jazz" in text and "Suns" not in text.partition("Question")[0]
        return {"found": True, "answer": "Heat and Jazz", "sources": ["teams"]}

    model = scripted(reply)
    answer = asked("structgpt", "Which teams were founded after 1970?", model)
    assert (answer.text, answer.sources, len(model.calls)) == ("Heat and Jazz", ("teams",), 3)
    assert answer.extra is not None and 'FROM "teams" WHERE "founded" > TRY_CAST(' in answer.extra["sql"]


def test_structgpt_compares_texts_without_case_and_bears_quotes() -> None:
    def reply(task: str, text: str, request: Any) -> dict[str, Any]:
        if task == "structgpt_schema":
            return {"table": "teams", "columns": ["name"]}
        if task == "structgpt_rows":
            return {"conditions": [{"column": "name", "operator": "contains", "value": "HE'); DROP TABLE teams; --"}]}
        return {"found": True, "answer": "x", "sources": []}

    assert asked("structgpt", "Which?", scripted(reply)).problem == "no row meets its conditions"


def test_a_spent_budget_is_said() -> None:
    with pytest.raises(BudgetError, match="budget"):
        asked("structgpt", "Which?", scripted(lambda *_: {"table": "teams", "columns": []}), calls=1)


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (["--adapter", "uql"], "are for --mode meta", 2),
        (["--adapter", "llama", "--mode", "meta"], "there are uql, single_model", 2),
        (["--router", "none.json", "--mode", "meta"], "cannot be read", 1),
    ],
)
def test_the_command_ask_takes_adapters_and_a_router(
    words: list[str], said: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    from uql.cli import main

    assert main(["ask", "How many?", *words]) == code
    assert said in capsys.readouterr().err
