"""One planner for every model: what differs follows from what a model declares, and nothing is lost or cut without a word."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from llm.scripted import Scripted as Reader
from nl.shop import PLAN, Connected, plan, read, uql_node

import uql
from uql.base.errors import ConfigError
from uql.llm.providers.base import Capabilities
from uql.llm.providers.scripted import Scripted, ScriptedModel
from uql.nl.ask.room import Room
from uql.nl.prompts.planner import NODES

OPERATORS = Scripted("operators", {"operators": [{"operator": "TableAnalytics", "sources": ["t"], "confidence": 0.9}]})
COMPLEX = Scripted("checker", {"signs": ["multi_step"], "verdict": "complex"})
LARGE = Capabilities(probabilities=True, schema=True, judges=False, context=128_000, output=16_384)
SAID = {"answerable": True, "reason": "", "need_more": False, "details": "", "source": [], "inference": "", "extra": ""}


def over(rows: int, *replies: Scripted, can: Capabilities = LARGE, latency_s: float = 0.0) -> Any:
    """A connection over t (id, name, note) of so many rows, and the model that plans."""
    con = duckdb.connect()
    con.execute(f"CREATE TABLE t AS SELECT i AS id, 'name ' || i AS name, i * 7 AS note FROM range({rows}) s(i)")
    reader = Reader(read)
    reader.is_local = True
    model = ScriptedModel(replies, readers=reader, capabilities=can, latency_s=latency_s)
    made = uql.attach(con, model=model, ledger=":memory:")
    return made, model


# -------------------------------------------------------------------------------------------------------------- point 1
def test_a_model_is_known_by_what_it_declares_and_not_by_its_name_or_address() -> None:
    named = Connected([plan(uql_node("a", "SELECT count(*) AS n FROM shops"))])
    named.model.name = "local:llama-70b"
    assert named.con.ask("How many shops?").value == 3 and named.tasks() == [PLAN]
    asks = Connected([plan(uql_node("a", "SELECT count(*) AS n FROM shops"))])
    asks.model.capabilities = Capabilities(schema=True, judges=True)  # on this machine, and able to judge
    asks.con.ask("How many shops?")
    assert asks.tasks() == ["readings", PLAN]


@pytest.mark.parametrize(
    ("can", "plan_tokens"),
    [(Capabilities(context=4_096), 1_024), (Capabilities(context=128_000), 4_096), (Capabilities(output=700), 700)],
)
def test_the_size_of_a_plan_follows_from_context_and_output_limit(can: Capabilities, plan_tokens: int) -> None:
    assert Room.of(can, {}).reply("planner") == plan_tokens
    assert Room.of(can, {"plan": 333}).reply("planner") == 333


class Sized(ScriptedModel):
    """Notes the tokens that each reply may have."""

    def _written(self, question: Any, row: Any) -> Any:
        self.sizes = [*getattr(self, "sizes", []), (question.task, question.max_tokens)]
        return super()._written(question, row)


def test_options_set_each_size() -> None:
    shop = Connected([])
    shop.model = Sized(
        [plan(uql_node("a", "SELECT nothing FROM shops")), plan(uql_node("a", "SELECT 1 AS n FROM shops"))]
    )
    con = uql.attach(duckdb.connect(), model=shop.model, ledger=":memory:")
    con.sql("SELECT 1 AS id").create("shops")
    con.ask("How many?", sizes={"plan": 1_234})
    assert shop.model.sizes == [(PLAN, 1_234)] * 2
    with pytest.raises(ConfigError, match="'plans': 3"):
        con.ask("How many?", sizes={"plans": 3})


def test_a_reply_that_is_cut_is_asked_for_again_with_all_the_room_there_is() -> None:
    good = plan(uql_node("a", "SELECT count(*) AS n FROM shops"))
    model = Sized([Scripted(PLAN, '{"cannot": "", "nodes": [', again=False)] * 2 + [good], capabilities=LARGE)
    con = uql.attach(duckdb.connect(), model=model, ledger=":memory:")
    con.sql("SELECT 1 AS id").create("shops")
    assert con.ask("How many shops?").value == 1
    assert [tokens for _, tokens in model.sizes] == [4_096, 4_096, 16_384]


# ------------------------------------------------------------------------------------------------- point 4: interleaved
def steps(*items: tuple[str, list[str], str]) -> Scripted:
    made = [{"description": d, "inputs": i, "output": o, "new_columns": []} for d, i, o in items]
    return Scripted("steps", {"steps": made})


def mapped(sql: str, **more: Any) -> Scripted:
    return Scripted("mapping", {"node": uql_node("x", sql)}, **more)


@pytest.mark.thorough
@pytest.mark.parametrize("length", [3, 5, 9])
def test_interleaved_runs_chains_of_any_length(length: int) -> None:
    names = [f"s{n}" for n in range(1, length + 1)]
    chain = [(f"step {n}", ["t" if n == 1 else names[n - 2]], names[n - 1]) for n in range(1, length + 1)]
    replies = [
        mapped(f"SELECT id, name FROM {inputs[0]} WHERE id < {90 - n}") for n, (_, inputs, _) in enumerate(chain)
    ]
    con, _ = over(100, steps(*chain), *replies)
    answer = con.ask("Which are left?", mode="interleaved")
    assert not answer.cannot and len(answer.value) == 90 - length + 1
    assert [s.node for s in answer.steps if s.kind == "uql"] == names and answer.exact


def test_a_step_may_read_two_results_that_stand_on_one_another() -> None:
    con, _ = over(
        70,
        steps(("a", ["t"], "a"), ("b", ["a"], "b"), ("c", ["a", "b"], "c")),
        mapped("SELECT id, note FROM t"),
        mapped("SELECT max(id) AS top FROM a"),
        mapped("SELECT a.note FROM a JOIN b ON a.id = b.top"),
    )
    assert con.ask("What is the last note?", mode="interleaved").value == 69 * 7


FAULT: dict[str, Any] = {"another_tool": False, "other_arguments": True, "plan_flawed": False, "better_plan": False}


def test_causes_and_fix_stand_in_the_next_prompt_and_a_failure_is_asked_about_once() -> None:
    nothing = "SELECT max(id) AS top FROM t WHERE id > 1000"
    fault = {**FAULT, "causes": "no id is so high", "fix": "leave the condition out"}
    con, model = over(
        9, steps(("a", ["t"], "a")), mapped(nothing), Scripted("faults", fault), mapped("SELECT max(id) AS top FROM t")
    )
    assert con.ask("Which id is the highest?", mode="interleaved").value == 8
    again = [prompt for task, prompt in model.asked if task == "mapping"][1]
    assert "no id is so high" in again and "leave the condition out" in again

    flawed = {**FAULT, "plan_flawed": True, "causes": "there is no city", "fix": "count the names"}
    con, model = over(
        9,
        steps(("kept", ["t"], "kept"), ("wrong", ["kept"], "wrong")),
        mapped("SELECT id, name FROM t"),
        mapped("SELECT id FROM kept WHERE id > 77"),
        Scripted("faults", flawed),
        steps(("right", ["kept"], "right")),
        mapped("SELECT count(name) AS n FROM kept"),
    )
    answer = con.ask("How many names are there?", mode="interleaved")
    assert answer.value == 9 and answer.replans == 1
    assert [task for task, _ in model.asked].count("faults") == 1
    planned = [prompt for task, prompt in model.asked if task == "steps"][1]
    for part in ("there is no city", "count the names", "id > 77", '"name": "name 0"', "9 rows"):
        assert part in planned, part


def test_what_was_an_answer_before_a_new_plan_of_steps_stays_one() -> None:
    flawed = {**FAULT, "plan_flawed": True, "causes": "", "fix": ""}
    con, _ = over(
        9,
        steps(("count", ["t"], "counted"), ("wrong", ["t"], "wrong")),
        mapped("SELECT count(*) AS n FROM t", when="Output: counted"),
        mapped("SELECT max(id) AS m FROM t WHERE id > 77", when="Output: wrong"),
        Scripted("faults", flawed),
        steps(("highest", ["t"], "highest")),
        mapped("SELECT max(id) AS m FROM t"),
    )
    answer = con.ask("How many rows are there, and which id is the highest?", mode="interleaved", aggregate=False)
    assert answer.value == {"counted": 9, "highest": 8} and set(answer.tables) == {"counted", "highest"}


# --------------------------------------------------------------------------------------------- point 5: plans made anew
def test_kept_results_stay_in_the_answer_and_the_prompt_shows_plan_rows_and_error() -> None:
    bad = {"kind": "python", "name": "best", "inputs": ["some"], "python": "some[99]['name']"}
    con, model = over(
        5,
        plan(uql_node("total", "SELECT count(*) AS n FROM t"), uql_node("some", "SELECT id, name FROM t"), bad),
        Scripted("debug", {"body": "some[98]['name']"}),
        plan(uql_node("best_again", "SELECT name FROM some ORDER BY id DESC LIMIT 1")),
    )
    answer = con.ask("How many are there, and which is the last?", aggregate=False)
    assert answer.value == {"total": 5, "best_again": "name 4"} and answer.replans == 1
    assert set(answer.tables) == {"total", "best_again"}
    debug = next(prompt for task, prompt in model.asked if task == "debug")
    assert '"name": "name 0"' in debug and "5 rows" in debug
    again = [prompt for task, prompt in model.asked if task == PLAN][1]
    for part in ("some[98]['name']", "failed: ", '"name": "name 0"', "total: uql", "IndexError"):
        assert part in again, part


def test_json_a_table_and_a_plot_are_one_answer() -> None:
    python = {"kind": "python", "name": "as_json", "inputs": ["some"], "python": "{r['name']: r['note'] for r in some}"}
    draws = {
        "kind": "plot",
        "name": "p",
        "input": "some",
        "mark": "bar",
        "x": "name",
        "y": "note",
        "color": "",
        "title": "t",
    }
    con, _ = over(2, plan(uql_node("some", "SELECT name, note FROM t"), python, draws))
    answer = con.ask("Give me the notes as JSON, and plot them.", aggregate=False)
    assert answer.results["as_json"].value == {"name 0": 0, "name 1": 7} and len(answer.plots) == 1
    assert "several outputs" in NODES and "JSON" in NODES


# ------------------------------------------------------------------------------------------------------- point 3: meta
def parts(*queries: tuple[str, list[int]]) -> Scripted:
    return Scripted("decomposer", {"sub_queries": [{"query": q, "uses": uses} for q, uses in queries]})


def uql_of(sql: str, when: str) -> Scripted:
    return Scripted("uql", {"sql": sql}, when)


def test_seventy_rows_go_from_one_sub_query_to_the_next_as_a_table() -> None:
    con, model = over(
        70,
        COMPLEX,
        parts(("Which have a note?", []), ("How many of those found in sub-query 1 are there?", [1])),
        OPERATORS,
        uql_of("SELECT id, name FROM t", "Which have a note?"),
        Scripted("refine", {"query": "How many rows of part1 are there?"}),
        Scripted("operators", {"operators": [{"operator": "TableAnalytics", "sources": ["part1"], "confidence": 0.9}]}),
        uql_of("SELECT count(*) AS n FROM part1", "rows of part1"),
    )
    answer = con.ask("How many of those that have a note are there?", mode="meta", adapters=["uql"], aggregate=False)
    assert answer.results["part2"].sub.value == 70 and len(answer.results["part1"].sub.value) == 70
    assert answer.results["part1"].table.num_rows == 70
    tasks = [task for task, _ in model.asked]
    assert tasks == [
        "checker",
        "decomposer",
        "operators",
        "uql",
        "refine",
        "operators",
        "uql",
    ]  # ranked after refinement
    refine = next(prompt for task, prompt in model.asked if task == "refine")
    assert "part1 (id BIGINT, name VARCHAR), 70 rows" in refine and '"name": "name 0"' in refine
    later = [prompt for task, prompt in model.asked if task == "operators"][1]
    assert "part1 (table): " in later and "rows of part1" in later
    ran = con.uql(answer.uql)
    assert ran.fetchall() and con.sql("FROM part2").fetchall() == [(70,)]


def test_an_answer_that_was_written_from_a_part_of_the_rows_says_so_and_is_not_exact() -> None:
    con, _ = over(
        500,
        COMPLEX,
        parts(("Which names?", []), ("Which notes?", [])),
        Scripted("operators", OPERATORS.reply, again=True),
        uql_of("SELECT name FROM t", "Which names?"),
        uql_of("SELECT note FROM t", "Which notes?"),
        Scripted("aggregator", {**SAID, "summary": "many"}),
    )
    answer = con.ask("Which names and notes are there?", mode="meta", adapters=["uql"])
    assert not answer.exact and any("was shown 100 of 500 rows" in note for note in answer.notes), answer.notes


def test_single_model_reads_as_many_rows_as_the_model_declares_room_for() -> None:
    found = {"found": True, "answer": "all", "sources": ["t"]}
    for can, exact in ((LARGE, True), (Capabilities(context=2_048, judges=False), False)):
        con, _ = over(120, OPERATORS, Scripted("single_model", found), can=can)
        answer = con.ask("Which?", mode="meta", decomposer=False, adapters=["single_model"])
        assert answer.text == "all" and answer.exact is exact, answer.notes
        assert exact or any("of 120 rows of t" in note for note in answer.notes)


def test_structgpt_reads_as_many_rows_as_the_model_declares_room_for() -> None:
    grounded = Scripted("structgpt_schema", {"table": "t", "columns": ["name"]})
    rows = Scripted("structgpt_rows", {"conditions": []})
    found = Scripted("structgpt_answer", {"found": True, "answer": "all", "sources": ["t"]})
    con, model = over(120, OPERATORS, grounded, rows, found)
    answer = con.ask("Which?", mode="meta", decomposer=False, adapters=["structgpt"])
    assert answer.exact and "name 119" in next(prompt for task, prompt in model.asked if task == "structgpt_answer")


# ---------------------------------------------------------------------------------------------------- point 8: answers
def test_a_result_of_twenty_rows_is_shown_as_rows_and_a_longer_one_by_its_columns() -> None:
    sql = "SELECT name, note FROM t ORDER BY id"
    con, _ = over(20, plan(uql_node("some", sql)))
    answer = con.ask("Which notes are there?")
    assert answer.text.startswith("name name 0, note 0; name name 1, note 7; ") and answer.text.count(";") == 19
    assert answer.value[19] == {"name": "name 19", "note": 133}
    con, _ = over(21, plan(uql_node("some", sql)))
    assert con.ask("Which notes are there?").text == "21 rows: name, note"


def test_no_error_is_longer_than_a_kilobyte() -> None:
    long = "x" * 9_000
    con, _ = over(3, Scripted(PLAN, {"cannot": "", "nodes": [{"kind": long}]}, again=True))
    answer = con.ask("Which?")
    assert not answer.answered and len(answer.cannot.encode()) <= 1_024
    con, _ = over(3, plan(uql_node("a", f"SELECT {long} FROM t"), again=True))
    answer = con.ask("Which?")
    assert not answer.answered and len(answer.cannot.encode()) <= 1_024
    con, _ = over(3, plan(cannot=long))
    assert len(con.ask("Which?").cannot.encode()) <= 1_024


def test_what_was_found_before_a_limit_is_noted() -> None:
    con, _ = over(
        9,
        plan(
            uql_node("first", "SELECT count(*) AS n FROM t"), uql_node("second", "SELECT ask('the word') AS w FROM t")
        ),
    )
    answer = con.ask("How many, and which words?", budget=1)
    assert answer.partial and not answer.answered
    assert "found before the limit: first: 9" in answer.notes


def test_a_time_limit_gives_what_was_found_and_says_so() -> None:
    words = "SELECT ask('the word') AS w FROM t"
    con, _ = over(9, plan(uql_node("first", "SELECT count(*) AS n FROM t"), uql_node("second", words)), latency_s=0.5)
    answer = con.ask("How many, and which words?", max_seconds=0.7)
    assert answer.partial == "seconds" and not answer.answered and answer.seconds < 10
    assert answer.cannot.startswith("max_seconds = 0.7 was reached before the plan was done")
    assert str(answer).endswith("found before the limit: first: 9")
