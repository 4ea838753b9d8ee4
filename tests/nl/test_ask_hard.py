"""Questions over databases and with replies that are not as one would like them: odd names, schemas, fences, empty rows."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pytest
from llm.scripted import Scripted as Reader
from nl.shop import PLAN, Connected, plan, read, uql_node

import uql
from uql.api.connection import Connection
from uql.llm.providers.base import Answer as Said, Problem, Request
from uql.llm.providers.scripted import Scripted, ScriptedModel
from uql.nl.ask.answer import Answer

YORK = {"cannot": "", "nodes": [uql_node("a", "SELECT city FROM shops WHERE id = 2")]}

WIDE = "the interval is wide: about 30 of 30 rows would give ±10%: WITH (error = 0.1)"


def over(statements: list[str], *nodes: dict[str, Any]) -> Connection:
    """A connection over a database of these statements, whose model plans these nodes."""
    con = duckdb.connect()
    for statement in statements:
        con.execute(statement)
    reader = Reader(read)
    reader.is_local = True
    return uql.attach(con, model=ScriptedModel([plan(*nodes)], readers=reader), ledger=":memory:")


@pytest.mark.parametrize(
    "reply",
    [
        "```json\n" + json.dumps(YORK) + "\n```",
        "Here is the plan:\n" + json.dumps(YORK) + "\nI hope it helps.",
        "\n  " + json.dumps(YORK),
    ],
)
def test_a_plan_in_a_code_fence_or_among_words_is_read(reply: str) -> None:
    answer = Connected([Scripted(PLAN, reply)]).con.ask("Where is shop 2?")
    assert answer.text == "York" and answer.tries == 1


@pytest.mark.parametrize("reply", ["", "   ", "I cannot help with that.", "{", "[1, 2]", "null", '{"nodes": 3}'])
def test_a_reply_that_is_no_plan_goes_back_and_the_next_is_taken(reply: str) -> None:
    shop = Connected([Scripted(PLAN, reply), Scripted(PLAN, YORK)])
    assert shop.con.ask("Where is shop 2?").text == "York"


@pytest.mark.parametrize("kind", ["refusal", "timeout", "server", "content_filter"])
def test_a_request_that_brings_no_reply_is_tried_again(kind: str) -> None:
    shop = Connected([Scripted(PLAN, fail=kind), Scripted(PLAN, YORK)])
    assert shop.con.ask("Where is shop 2?").text == "York"


def test_an_empty_reply_is_called_so() -> None:
    shop = Connected([Scripted(PLAN, "", again=True)])
    assert "the reply was empty" in shop.con.ask("Where is shop 2?").cannot


def test_a_join_whose_result_has_two_columns_of_one_name_runs() -> None:
    nodes = [
        uql_node("both", "SELECT * FROM shops AS a JOIN shops AS b ON a.id = b.id"),
        uql_node("n", "SELECT count(*) AS n FROM both WHERE id = id_1"),
    ]
    assert Connected([plan(*nodes)]).con.ask("How many shops are there?").value == 3


def test_two_nodes_whose_names_differ_by_case_alone_are_no_plan() -> None:
    twice = plan(uql_node("a", "SELECT city FROM shops"), uql_node("A", "SELECT name FROM shops"))
    shop = Connected([twice, Scripted(PLAN, YORK)])
    assert shop.con.ask("Where is shop 2?").text == "York"
    assert "two nodes are named" in shop.prompts(PLAN)[1]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("statements", "sql"),
    [
        (['CREATE TABLE "my.file.csv" AS SELECT 4 AS a'], "SELECT a FROM my_file_csv"),
        (['CREATE TABLE "we ird ""t""" AS SELECT 4 AS a'], "SELECT we_ird_t.a FROM we_ird_t"),
        (["CREATE SCHEMA s2", "CREATE TABLE s2.t1 AS SELECT 4 AS a"], "SELECT memory_s2_t1.a FROM memory_s2_t1"),
        (['CREATE SCHEMA "s 2"', 'CREATE TABLE "s 2"."t.1" AS SELECT 4 AS a'], "SELECT t.a FROM memory_s_2_t_1 AS t"),
        (["ATTACH ':memory:' AS other", "CREATE TABLE other.t9 AS SELECT 4 AS a"], "SELECT a FROM other_main_t9"),
        (
            ["CREATE SCHEMA s2", "CREATE TABLE s2.t1 AS SELECT 4 AS a", "CREATE TABLE t1 AS SELECT 5 AS a"],
            "SELECT a FROM memory_s2_t1",
        ),
        (
            ["CREATE SCHEMA s2", "CREATE TABLE s2.t1 AS SELECT 4 AS a"],
            "SELECT x.a FROM memory_s2_t1 AS m, LATERAL (SELECT m.a) AS x",
        ),
        (
            ["CREATE SCHEMA s2", "CREATE TABLE s2.t1 AS SELECT 4 AS a"],
            "WITH c AS (SELECT a FROM memory_s2_t1) SELECT c.a FROM c",
        ),
    ],
)
def test_tables_of_odd_names_and_other_schemas_are_asked_and_their_uql_runs_again(
    statements: list[str], sql: str
) -> None:
    con = over(statements, uql_node("res", sql))
    answer = con.ask("What is in it?")
    assert answer.value == 4, answer.cannot
    con.uql(answer.uql).fetchall()
    assert con.sql("FROM res").fetchall() == [(4,)]


def test_what_python_made_stands_in_the_uql_as_rows_so_that_it_all_runs_again() -> None:
    nodes = [
        uql_node("cities", "SELECT city, count(*) AS n FROM shops GROUP BY city"),
        {
            "kind": "python",
            "name": "twice",
            "inputs": ["cities"],
            "python": "[{'city': r['city'], 'twice': 2 * r['n'], 'say \"it\"': None} for r in cities]",
        },
        uql_node("best", "SELECT city FROM twice ORDER BY twice DESC LIMIT 1"),
    ]
    shop = Connected([plan(*nodes)])
    answer = shop.con.ask("Which city has most shops?")
    assert answer.value == "Leeds"
    shop.con.uql(answer.uql).fetchall()
    assert shop.con.sql("FROM best").fetchall() == [("Leeds",)]
    assert "-- twice is made by Python:" in answer.uql


def test_no_rows_in_the_middle_are_counted_as_none_where_the_model_stands_by_its_statement() -> None:
    oslo = "SELECT id FROM shops WHERE city = 'Oslo'"
    nodes = [uql_node("there", oslo), uql_node("n", "SELECT count(*) AS n FROM there")]
    shop = Connected([plan(*nodes), Scripted("debug", {"body": oslo})])
    answer = shop.con.ask("How many shops are in Oslo?")
    assert answer.value == 0 and answer.replans == 0
    assert shop.tasks() == [PLAN, "debug"]


def test_python_that_leaves_no_rows_at_the_end_is_an_answer_too() -> None:
    none = "[r for r in all_of_them if r['city'] == 'Oslo']"
    nodes = [
        uql_node("all_of_them", "SELECT name, city FROM shops"),
        {"kind": "python", "name": "there", "inputs": ["all_of_them"], "python": none},
    ]
    shop = Connected([plan(*nodes), Scripted("debug", {"body": none})])
    assert shop.con.ask("Which shops are in Oslo?").text == "none: no rows match"


COUNT = "SELECT count(*) AS n FROM letters WHERE ask('the letter complains') WITH (budget = 12)"
TWICE: dict[str, Any] = {"kind": "python", "name": "twice", "inputs": ["some"], "python": "some[0]['n'] * 2"}


def asked(*nodes: dict[str, Any], **options: Any) -> Answer:
    return Connected([plan(*nodes)]).con.ask("How many letters complain?", **options)


def test_an_estimate_is_said_with_its_interval_in_the_words_themselves() -> None:
    answer = asked(uql_node("some", COUNT))
    assert answer.text == "about 8 (3 to 15)" and answer.value == 8 and not answer.exact
    assert answer.notes == ["n is an estimate: 7.5, 95% interval 3 to 15", WIDE]
    assert "95% interval 3 to 15" in str(answer) and answer.to_json()["exact"] is False
    assert [c.column for c in answer.citations] == ["n", "n_low", "n_high"]
    exact = asked(uql_node("all_of_them", COUNT.replace(" WITH (budget = 12)", "")))
    assert exact.exact and str(exact) == "10"


@pytest.mark.parametrize(
    "behind", [TWICE, uql_node("twice", "SELECT n * 2 AS twice FROM some")], ids=["python", "another query"]
)
def test_a_figure_made_from_an_estimate_says_what_it_rests_on(behind: dict[str, Any]) -> None:
    answer = asked(uql_node("some", COUNT), behind)
    assert answer.text == "16" and not answer.exact
    assert answer.notes == ["some: n is an estimate: 7.5, 95% interval 3 to 15", f"some: {WIDE}"]
    assert "some: n is an estimate" in answer.json["extra"]


def test_rows_found_among_rows_that_were_not_all_asked_are_said_to_be_so_and_a_count_of_them_too() -> None:
    found = uql_node("some", "SELECT letter FROM letters WHERE ask('the letter complains') WITH (budget = 12)")
    assert "found 3 of about 8 rows" in asked(found).notes[0]
    counted = asked(found, uql_node("n", "SELECT count(*) AS n FROM some"))
    assert counted.value == 3 and "some: found 3 of about 8 rows" in str(counted)


def test_rows_that_gave_no_answer_are_said() -> None:
    def some_refuse(request: Request, n: int) -> list[Said]:
        if str(request.row.cells[0].value).endswith("6"):
            return [Said(problem=Problem("refusal", "no")) for _ in request.questions]
        return read(request, n)

    shop = Connected([plan(uql_node("n", "SELECT count(*) AS n FROM letters WHERE ask('the letter complains')"))])
    shop.model._readers = Reader(some_refuse)
    answer = shop.con.ask("How many letters complain?")
    assert not answer.exact and answer.text == "about 9 (9 to 12)", answer.text
    assert any("interval 9 to 12" in note for note in answer.notes)


def test_a_sub_query_of_the_mode_meta_says_what_its_statement_rests_on() -> None:
    operators = {"operators": [{"operator": "TableAnalytics", "sources": ["letters"], "confidence": 0.9}]}
    shop = Connected([Scripted("operators", operators), Scripted("uql", {"sql": COUNT})])
    answer = shop.con.ask("How many letters complain?", mode="meta", decomposer=False)
    assert answer.value == 8 and answer.notes == ["n is an estimate: 7.5, 95% interval 3 to 15", WIDE]


def test_a_budget_too_small_for_any_estimate_is_no_answer() -> None:
    answer = asked(uql_node("n", COUNT), budget=1)
    assert not answer.answered and answer.partial and "its only value is NULL" in answer.cannot


def test_a_figure_that_python_made_points_to_its_value() -> None:
    node = {"kind": "python", "name": "most", "inputs": ["all_of_them"], "python": "{'n': len(all_of_them)}"}
    answer = asked(uql_node("all_of_them", "SELECT name FROM shops"), node)
    assert answer.text == "n 3" and answer.unsupported == []
    assert [(c.text, c.node, c.row, c.column) for c in answer.citations] == [("3", "most", 0, "n")]
    assert answer.why(0) == {"answer": {"n": 3}}


def test_a_short_answer_with_a_figure_that_stands_nowhere_says_so() -> None:
    said = {
        "answerable": True,
        "reason": "",
        "need_more": False,
        "summary": "77 of them",
        "details": "",
        "source": [],
        "inference": "",
        "extra": "",
    }
    shop = Connected([plan(uql_node("n", "SELECT count(*) AS n FROM shops")), Scripted("aggregator", said)])
    answer = shop.con.ask("How many shops?", aggregate=True)
    assert answer.unsupported == ["77"] and "stand in no result: 77" in answer.json["extra"]
