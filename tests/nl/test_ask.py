"""Questions from their words to their answers, with a model that follows a script: every path of the state machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nl.shop import PLAN, Connected, plan, uql_node

from uql.base.errors import ConfigError, DataError, QuestionError
from uql.llm.providers.scripted import Scripted
from uql.nl.ask.context import NodeEvent
from uql.nl.plan.dag import Node, NodeKind, Plan

COUNT = "SELECT count(*) AS n FROM letters WHERE ask('the letter complains')"
BY_SHOP = (
    "SELECT shops.name, count(*) AS n FROM shops JOIN letters ON shops.id = letters.shop_id "
    "WHERE ask('the letter complains') GROUP BY shops.name"
)


def test_a_question_is_planned_run_and_answered_without_words_of_the_model() -> None:
    shop = Connected([plan(uql_node("complaints", COUNT))])
    answer = shop.con.ask("How many letters complain?")
    assert (answer.text, answer.value, answer.cannot) == ("10", 10, "")
    assert shop.tasks() == [PLAN]
    assert len(shop.reader.calls) == 30
    assert answer.cost.calls == 31
    assert answer.tries == 1 and answer.replans == 0 and not answer.partial
    assert [s.node for s in answer.steps] == ["plan", "complaints", "answer"]
    assert answer.steps[0].prompts[0].task == PLAN
    assert answer.steps[1].cost.calls == 30 and answer.steps[1].rows == 1 and answer.steps[1].uql


@pytest.mark.parametrize("value", ["'inf'::DOUBLE", "DATE 'infinity'", "[DATE 'infinity']", "TIMESTAMP '-infinity'"])
def test_a_result_may_hold_what_python_has_no_value_for(value: str) -> None:
    shop = Connected([plan(uql_node("most", f"SELECT name, {value} AS v FROM shops"))])
    answer = shop.con.ask("What is the most of each of the 2 shops?")
    assert answer.text and answer.tables["most"].num_rows == len(shop.con.sql("FROM shops").fetchall())
    assert json.loads(json.dumps(answer.json, default=str))


def test_a_question_is_answered_where_the_settings_name_the_static_embedder() -> None:
    shop = Connected([plan(uql_node("complaints", COUNT))], embedder="static")
    assert shop.con.ask("How many letters complain?").value == 10


def test_the_uql_of_an_answer_runs_again_and_gives_the_same() -> None:
    shop = Connected([plan(uql_node("complaints", COUNT))])
    answer = shop.con.ask("How many letters complain?")
    assert answer.uql == 'SELECT count(*) AS n FROM letters WHERE PROMPT "the letter complains" TO complaints;'
    assert shop.con.uql(answer.uql).fetchall() == [(10,)]
    assert shop.con.sql("FROM complaints").fetchall() == [(10,)]


def test_a_plan_is_shown_as_text_and_as_a_diagram() -> None:
    shop = Connected(
        [
            plan(
                uql_node("late", BY_SHOP),
                {
                    "kind": "plot",
                    "name": "p",
                    "input": "late",
                    "mark": "bar",
                    "x": "name",
                    "y": "n",
                    "color": "",
                    "title": "Complaints",
                },
            )
        ]
    )
    answer = shop.con.ask("Plot the complaints per shop")
    assert "late: uql [done]" in answer.plan.text and "p: plot ← late [done]" in answer.plan.text
    assert "n0 --> n1" in answer.plan.mermaid and answer.plan.mermaid.startswith("flowchart TD")
    assert len(answer.plots) == 1 and answer.plots[0].spec["encoding"]["y"] == {"field": "n", "type": "quantitative"}
    assert answer.tables["late"].to_pylist() == [{"name": "Ada", "n": 10}]


def test_figures_and_names_of_the_answer_point_to_cells_and_from_there_to_rows() -> None:
    shop = Connected([plan(uql_node("late", BY_SHOP))])
    answer = shop.con.ask("Which shop has complaints?")
    assert answer.text == "name Ada, n 10"
    assert [(c.text, c.node, c.row, c.column) for c in answer.citations] == [
        ("Ada", "late", 0, "name"),
        ("10", "late", 0, "n"),
    ]
    assert answer.unsupported == []
    why = answer.why(1)
    assert "the letter complains" in str(why)
    behind = answer.rows(1)
    assert len(behind) == 10 and all("letter" in row for row in behind)
    with pytest.raises(DataError):
        answer.rows(7)


def test_cells_of_statements_without_a_model_point_to_rows_of_the_database_also_through_other_nodes() -> None:
    nodes = [
        uql_node("per_city", "SELECT city, count(*) AS n FROM shops GROUP BY city"),
        uql_node("top", "SELECT city, n FROM per_city ORDER BY n DESC, city LIMIT 1"),
    ]
    shop = Connected([plan(*nodes)])
    answer = shop.con.ask("Which city has most shops?")
    rows = shop.con.sql("SELECT city, count(*) AS n FROM shops GROUP BY city ORDER BY n DESC, city LIMIT 1").fetchall()
    behind = answer.rows(0)
    assert answer.citations[0].node == "top" and answer.citations[0].text == rows[0][0]
    assert len(behind) == rows[0][1] and {row["city"] for row in behind} == {rows[0][0]}
    assert "name" in behind[0]
    joined = "SELECT name, count(*) AS n FROM letters JOIN shops ON letters.shop_id = shops.id GROUP BY name LIMIT 1"
    answer = Connected([plan(uql_node("n", joined))]).con.ask("Who got letters?")
    assert {"letters", "shops"} == set(answer.rows(0)[0])
    answer = Connected([plan(nodes[0])]).con.ask("How many shops are in each city?")
    per_city = answer.tables["per_city"].to_pylist()
    assert [len(answer.rows(("per_city", i))) for i in range(len(per_city))] == [row["n"] for row in per_city]


def test_an_invalid_plan_goes_back_with_its_faults_and_the_error_questions() -> None:
    shop = Connected(
        [plan(uql_node("a", "SELECT citty FROM shops")), plan(uql_node("a", "SELECT city FROM shops WHERE id = 2"))]
    )
    answer = shop.con.ask("Where is shop 2?")
    assert answer.text == "York" and answer.tries == 2
    again = shop.prompts(PLAN)[1]
    assert "It cannot be run:" in again and "citty" in again and "is a step missing" in again


def test_after_three_invalid_plans_nothing_has_run_and_the_answer_says_why() -> None:
    shop = Connected([plan(uql_node("a", "DROP TABLE shops"), again=True)])
    answer = shop.con.ask("Where is shop 2?")
    assert not answer.answered and "no valid plan after 3 tries" in answer.cannot
    assert shop.tasks() == [PLAN] * 3 and shop.reader.calls == []
    assert shop.con.sql("SELECT count(*) FROM shops").fetchall() == [(3,)]


def test_what_the_data_does_not_hold_is_an_answer_with_its_reason() -> None:
    shop = Connected([plan(cannot="there are no prices in the data")])
    answer = shop.con.ask("What does a kettle cost?")
    assert not answer.answered and answer.cannot == "there are no prices in the data" and answer.text == ""
    assert str(answer) == "This cannot be answered: there are no prices in the data"


def test_a_node_that_fails_debugs_itself_once() -> None:
    shop = Connected(
        [
            plan(
                {"kind": "python", "name": "twice", "inputs": ["one"], "python": "one[0]['n'] / 0"},
                uql_node("one", "SELECT count(*) AS n FROM shops"),
            ),
            Scripted("debug", {"body": "one[0]['n'] * 2"}),
        ]
    )
    answer = shop.con.ask("Twice as many as there are shops?")
    assert answer.value == 6
    step = next(s for s in answer.steps if s.node == "twice")
    assert step.tries == 2 and len(step.tried) == 1 and "division" in step.tried[0][1]
    assert answer.replans == 0 and shop.tasks() == [PLAN, "debug"]


def test_a_re_plan_keeps_what_succeeded_and_runs_none_of_it_again() -> None:
    bad = {"kind": "python", "name": "best", "inputs": ["late"], "python": "late[99]['name']"}
    good = {"kind": "python", "name": "best_again", "inputs": ["late"], "python": "late[0]['name']"}
    shop = Connected(
        [plan(uql_node("late", BY_SHOP), bad), Scripted("debug", {"body": "late[98]['name']"}), plan(good)]
    )
    events: list[NodeEvent] = []
    shop.con.on_event(lambda e: events.append(e) if isinstance(e, NodeEvent) else None)
    answer = shop.con.ask("Which shop has most complaints?")
    assert answer.value == "Ada" and answer.replans == 1
    assert len(shop.reader.calls) == 30
    assert [e.node for e in events if e.state == "start"] == ["late", "best", "best_again"]
    assert [e.state for e in events if e.node == "best"] == ["start", "debug", "failed"]
    again = shop.prompts(PLAN)[1]
    assert "These nodes have run" in again and "late (name VARCHAR, n BIGINT), 1 rows" in again and "best:" in again


def test_re_plans_end_at_their_limit_and_the_answer_says_what_failed() -> None:
    bad = {"kind": "python", "name": "best", "inputs": ["late"], "python": "late[99]"}
    shop = Connected(
        [
            plan(uql_node("late", BY_SHOP), bad),
            plan(bad, again=True),
            Scripted("debug", {"body": "late[98]"}, again=True),
        ]
    )
    answer = shop.con.ask("Which shop has most complaints?")
    assert not answer.answered and "best" in answer.cannot
    assert answer.partial == "2 re-plans" and answer.replans == 2
    assert len(shop.reader.calls) == 30


def test_no_rows_at_the_end_is_debugged_once_and_then_an_answer() -> None:
    nobody = "SELECT name FROM shops WHERE city = 'Oslo'"
    shop = Connected([plan(uql_node("there", nobody)), Scripted("debug", {"body": nobody})])
    answer = shop.con.ask("Which shops are in Oslo?")
    assert answer.text == "none: no rows match" and answer.answered
    assert shop.tasks() == [PLAN, "debug"]


def test_a_value_that_says_nothing_is_no_valid_output() -> None:
    shop = Connected(
        [
            plan(uql_node("year", "SELECT max(year) AS year FROM letters WHERE shop_id = 9")),
            Scripted("debug", {"body": "SELECT max(year) AS year FROM letters WHERE shop_id = 3"}),
        ]
    )
    assert shop.con.ask("When was the last letter to shop 3?").value == 2003


def test_the_answer_may_ask_for_more_which_is_planned_beside_what_is_there() -> None:
    said = {
        "answerable": False,
        "reason": "the city is missing",
        "need_more": True,
        "summary": "",
        "details": "",
        "source": [],
        "inference": "",
        "extra": "",
    }
    full = {
        "answerable": True,
        "reason": "",
        "need_more": False,
        "summary": "Ada in Leeds has 10 complaints.",
        "details": "10 of 30 letters",
        "source": ["shops", "letters"],
        "inference": "",
        "extra": "",
    }
    shop = Connected(
        [
            plan(uql_node("late", BY_SHOP)),
            Scripted("aggregator", said),
            plan(
                uql_node("place", "SELECT late.name, late.n, shops.city FROM late JOIN shops ON late.name = shops.name")
            ),
            Scripted("aggregator", full),
        ]
    )
    answer = shop.con.ask("Which shop has most complaints, and where is it?", style="full")
    assert answer.text == "Ada in Leeds has 10 complaints." and answer.replans == 1
    assert len(shop.reader.calls) == 30
    assert answer.json["source"] == ["shops", "letters"]
    assert {c.text for c in answer.citations} >= {"Ada", "Leeds", "10"} and answer.unsupported == ["30"]
    assert "figures that stand in no result: 30" in answer.json["extra"]


def test_a_short_answer_has_at_most_ten_words() -> None:
    long = {
        "answerable": True,
        "reason": "",
        "need_more": False,
        "summary": "word " * 30,
        "details": "",
        "source": [],
        "inference": "",
        "extra": "",
    }
    shop = Connected(
        [
            plan(uql_node("a", "SELECT * FROM letters WHERE shop_id = 1"), uql_node("b", "SELECT name FROM shops")),
            Scripted("aggregator", long),
        ]
    )
    answer = shop.con.ask("What is there?")
    assert len(answer.text.split()) == 10


def test_an_ambiguous_question_has_up_to_three_readings_and_the_first_is_answered() -> None:
    readings = {"ambiguous": True, "readings": ["How many letters complain?", "How many shops get complaints?"]}
    shop = Connected([Scripted("readings", readings), plan(uql_node("complaints", COUNT))])
    answer = shop.con.ask("How many complaints?", readings=True)
    assert answer.readings == ("How many letters complain?", "How many shops get complaints?")
    assert "Read the question as: How many letters complain?" in shop.prompts(PLAN)[0]
    assert answer.value == 10


def test_nothing_runs_that_costs_more_than_was_agreed() -> None:
    prices = []

    def refuse(price: object, plan_: object) -> bool:
        prices.append(str(price))
        return False

    shop = Connected([plan(uql_node("complaints", COUNT), again=True)])
    shop.model.price = shop.reader.price
    answer = shop.con.ask("How many letters complain?", confirm=refuse)
    assert not answer.answered and "not confirmed" in answer.cannot and shop.reader.calls == []
    assert prices and prices[0].endswith("about 30 calls (at most 30)")
    assert "more than confirm_over" in shop.con.ask("How many letters complain?", confirm_over=0.0).cannot
    assert shop.reader.calls == []
    assert shop.con.ask("How many letters complain?", confirm_over=5.0).value == 10


def test_one_budget_holds_for_all_nodes_and_the_planning() -> None:
    shop = Connected([plan(uql_node("years", "SELECT ask('the first word') AS w, letter FROM letters"))])
    answer = shop.con.ask("What is the first word of each letter?", budget=8)
    assert answer.partial and not answer.answered
    assert len(shop.reader.calls) <= 7


def test_a_plan_of_the_users_own_is_checked_and_run() -> None:
    shop = Connected([])
    mine = Plan((Node("late", NodeKind.UQL, 'SELECT count(*) AS n FROM letters WHERE "the letter complains"'),))
    assert shop.con.ask("How many?", plan=mine).value == 10
    wrong = Plan((Node("late", NodeKind.UQL, "SELECT nothing_there FROM letters"),))
    assert "the plan cannot be run" in shop.con.ask("How many?", plan=wrong).cannot


def test_private_columns_and_their_values_stand_in_no_prompt() -> None:
    full = {
        "answerable": True,
        "reason": "",
        "need_more": False,
        "summary": "Ada",
        "details": "",
        "source": ["shops"],
        "inference": "",
        "extra": "",
    }
    shop = Connected([plan(uql_node("a", "SELECT * FROM shops WHERE id = 1")), Scripted("aggregator", full)])
    shop.con.ask("Tell me all about Ada", style="full")
    assert shop.prompts("aggregator")
    assert not any("0113" in prompt or "owner_phone" in prompt for _, prompt in shop.model.asked)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY shops TO '/elsewhere/x'",
        "ATTACH '/elsewhere/x.db'",
        "SELECT name FROM duckdb_settings()",
        "SELECT count(*) FROM 'letters.csv'",
        "SET uql.budget = 100000",
        "SELECT name FROM shops WITH (budget = 100000)",
    ],
)
def test_hostile_statements_are_refused_before_anything_runs(sql: str) -> None:
    shop = Connected([plan(uql_node("a", sql), again=True)])
    answer = shop.con.ask("Where?")
    assert not answer.answered and "no valid plan" in answer.cannot and shop.reader.calls == []


def test_rules_of_the_use_case_stand_in_the_prompt() -> None:
    shop = Connected([plan(uql_node("complaints", COUNT))])
    shop.con.ask("How many letters complain?", rules=["years are counted from 2000"])
    assert "- years are counted from 2000" in shop.prompts(PLAN)[0]


def test_options_that_do_not_exist_are_refused_with_the_right_ones() -> None:
    shop = Connected([])
    with pytest.raises(ConfigError, match="no option 'stile'") as error:
        shop.con.ask("How many?", stile="full")
    assert "did you mean style?" in str(error.value)
    with pytest.raises(ConfigError, match="mode = 'fast'"):
        shop.con.ask("How many?", mode="fast")
    with pytest.raises(QuestionError, match="empty"):
        shop.con.ask("  ")


def test_an_answer_is_saved_with_its_tables_and_plots(tmp_path: Path) -> None:
    shop = Connected(
        [
            plan(
                uql_node("late", BY_SHOP),
                {
                    "kind": "plot",
                    "name": "p",
                    "input": "late",
                    "mark": "bar",
                    "x": "name",
                    "y": "n",
                    "color": "",
                    "title": "t",
                },
            )
        ]
    )
    written = shop.con.ask("Plot the complaints per shop").save(tmp_path / "out")
    assert sorted(p.name for p in written) == [
        "answer.json",
        "answer.uql",
        "late.csv",
        "plan.mmd",
        "plot1.png",
        "plot1.svg",
    ]
    held = json.loads((tmp_path / "out" / "answer.json").read_text())
    assert held["answered"] and held["steps"][1]["calls"] == 30
    assert (tmp_path / "out" / "late.csv").read_text().splitlines() == ["name,n", "Ada,10"]


def test_what_a_statement_warns_of_is_said_with_the_answer() -> None:
    counted = 'SELECT count("the letter is a complaint") AS n FROM letters'
    shop = Connected([])
    answer = shop.con.ask("How many letters complain?", plan=Plan((Node("n", NodeKind.UQL, counted),)), aggregate=False)
    assert any("counts the rows that have an answer, yes or no" in note for note in answer.notes), answer.notes


@pytest.mark.thorough
def test_a_table_that_cannot_be_read_is_named_by_the_notes_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uql.nl.schema.discover.LOOK_SECONDS", 1.0)
    shop = Connected([plan(uql_node("complaints", COUNT)), plan(cannot="no table says it")])
    shop.con.execute("CREATE TABLE gone (a INTEGER); CREATE VIEW old_letters AS FROM gone; DROP TABLE gone")
    shop.con.execute(
        "CREATE VIEW slow AS WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) FROM r WHERE n < 0"
    )
    answer = shop.con.ask("How many letters complain?")
    assert answer.value == 10 and not answer.exact
    old, slow = answer.notes[-2:]
    assert old.startswith("the table old_letters is left out: ") and "gone does not exist" in old and "\n" not in old
    assert slow == "the table slow is left out: it cannot be read within 1 s"
    assert slow in answer.json["extra"]
    assert shop.con.ask("How many letters were sent by hand?").notes == [old, slow]  # there is no answer
