"""The suites of questions, the systems that answer them, and the tables of the results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llm.scripted import Scripted

from uql.base.errors import ConfigError
from uql.benchmarks.nl import (
    __main__ as command,
    bench,
    discovery,
    ehrxqa,
    fixed,
    plainest,
    replay_server,
    report,
    routing,
    systems,
    traces,
)
from uql.benchmarks.nl.replay import Replay
from uql.benchmarks.nl.suites import SUITES, headed, opened, spoken
from uql.benchmarks.runner.purse import PURSE, SpentError
from uql.benchmarks.runner.suite import Choice
from uql.llm.providers.base import Answer, Request
from uql.llm.questions import Write
from uql.nl.routers.traces import Trace

SHARED = Path(os.environ.get("UQL_DATA", "../shared/data")).resolve()
pytestmark = pytest.mark.skipif(not (SHARED / "rotowire").is_dir(), reason="no data: set UQL_DATA")


def planner(sql: str) -> Scripted:
    """A model whose every plan is one statement."""

    def script(request: Request, number: int) -> list[Answer]:
        node = {"kind": "uql", "name": "found", "sql": sql}
        replies: dict[str, Any] = {"planner": {"cannot": "", "nodes": [node]}}
        return [Answer(replies.get(q.task, {}) if isinstance(q, Write) else None) for q in request.questions]

    return Scripted(script)


def test_a_printed_table_has_its_headings_as_the_names_of_its_columns() -> None:
    table = [
        ["($ in millions)", "", ""],
        ["As of", "2019", "2018"],
        ["Assets", "", ""],
        ["Cash", "$130", "—"],
        ["", "9"],
    ]
    assert headed(table) == (
        ["item", "2019", "2018"],
        [["Assets", "", ""], ["Cash", "$130", "—"], ["", "9", ""]],
        ["($ in millions)", "As of"],
    )
    spanned = [
        ["", "Home", "", "Abroad", ""],
        ["", "2019", "2018", "2019", "2018"],
        ["Rate", "4 %", "3 %", "2 %", "1 %"],
    ]
    assert headed(spanned)[0] == ["item", "2019 Home", "2018 Home", "2019 Abroad", "2018 Abroad"]
    bare = [["Cash", "130", "91"], ["Debt", "5", "4"]]
    assert headed(bare) == (["item", "column1", "column2"], bare, [])


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(SUITES))
def test_every_suite_has_questions_and_the_first_has_its_tables(name: str, tmp_path: Path) -> None:
    suite = SUITES[name]
    questions = suite.questions(SHARED)
    assert len({q.id for q in questions}) == len(questions) >= 10
    if suite.absent:
        assert "routing only" in systems.reason(name, "dag", "local")
        return
    with opened(suite, questions[0], SHARED, tmp_path, f"oracle:{tmp_path}/none.toml") as con:
        held = con.catalog.names()
        assert held and set(questions[0].needed) <= {table.lower() for table in held}


def test_a_question_is_planned_by_the_model_and_read_by_the_suite(tmp_path: Path) -> None:
    sql = "SELECT title, inception FROM paintings ORDER BY inception DESC LIMIT 1"
    right = systems.run("artwork", SHARED, model=planner(sql), only=["art101-000"])
    assert [(r.right, r.valid, r.error, r.tries) for r in right] == [(0.0, 1.0, "illogical or missing step", 1)]
    sql = "SELECT title, inception, img_path FROM paintings ORDER BY inception LIMIT 1"
    right = systems.run("artwork", SHARED, model=planner(sql), only=["art101-000"])
    assert [(r.right, r.valid, r.error) for r in right] == [(1.0, 1.0, "")]
    path = tmp_path / "rows.jsonl"
    systems.write(path, right)
    assert systems.read(path) == right
    text = report.tables(right, "scripted")
    for title in (
        *(f"Meta Engine, table {n}" for n in (2, 3, 4, 5, 6)),
        *(f"CAESURA, table {n}" for n in (1, 2)),
        *(f"M²EX, table {n}" for n in (1, 2, 3)),
    ):
        assert title in text
    lines = text.splitlines()
    assert "| Single value | *75.0%* | *62.5%* | *100%* | *93.8%* | 100.0% | 100.0% |" in lines
    assert "| Illogical / Missing Steps | logical | *3* | *0* | 0 |" in lines
    assert "| artwork | dag | 1 | 0 | – |" in lines


@pytest.mark.parametrize(
    ("name", "words", "own"),
    [
        (
            "ehrxqa",
            'SELECT count(*) FROM cxr_studies WHERE "signs of pneumonia in the left lung, by the picture" USING (image)',
            'SELECT count(*) FROM cxr_studies WHERE "{image} shows pneumonia in the left lung"',
        ),
        (
            "ehrxqa",
            'SELECT count(*) FROM cxr_studies WHERE "the right lung is abnormal in {image}"',
            'SELECT count(*) FROM cxr_studies WHERE "{image} shows any abnormality in the right lung"',
        ),
        (
            "sembench-mmqa",
            'SELECT title FROM lizzy_caplan_texts WHERE "the text is about a romantic comedy" USING (text) ORDER BY title',
            'SELECT title FROM lizzy_caplan_texts WHERE "the film described in {text} is a romantic comedy" ORDER BY title',
        ),
    ],
)
def test_the_labels_are_read_in_whatever_words_a_plan_asks(name: str, words: str, own: str, tmp_path: Path) -> None:
    suite = SUITES[name]
    place = "q3f" if name == "sembench-mmqa" else ""
    question = next(q for q in suite.questions(SHARED) if q.place in (place, ""))
    with opened(suite, question, SHARED, tmp_path, None) as con:
        rows = con.uql(words).fetchall()
        assert rows == con.uql(own).fetchall()
        assert rows not in ([], [(0,)])


def test_an_answer_over_the_paragraphs_and_pictures_of_a_question_is_judged_as_a_number(tmp_path: Path) -> None:
    def right(sql: str) -> float:
        (row,) = systems.run("finmmr", SHARED, model=planner(sql), only=["finmmr-easy-test-3"])
        return row.right

    assert right("SELECT 37 / 1.4 AS cost FROM paragraphs WHERE paragraph = '<image 1>'") == 1.0
    assert right("SELECT 37 / 1.5 AS cost FROM paragraphs WHERE paragraph = '<image 1>'") == 0.0
    assert right("SELECT number + 25.429 AS cost FROM pictures WHERE picture IS NOT NULL") == 1.0


def by_parts(request: Request, number: int) -> list[Answer]:
    """A model that answers each step of the mode `meta`."""
    replies: dict[str, Any] = {
        "operators": {
            "operators": [{"operator": "TableAnalytics", "sources": ["paintings"], "fit": "likely", "confidence": 0.9}]
        },
        "uql": {"sql": "SELECT title, inception, img_path FROM paintings ORDER BY inception LIMIT 1"},
        "single_model": {"found": True, "answer": "Predella of the Barbadori altarpiece", "sources": ["paintings"]},
        "structgpt_schema": {"table": "paintings", "columns": ["title", "inception"]},
        "structgpt_rows": {"conditions": []},
        "structgpt_answer": {"found": True, "answer": "Mona Lisa", "sources": ["paintings"]},
    }
    return [Answer(replies.get(q.task, {}) if isinstance(q, Write) else None) for q in request.questions]


@pytest.mark.parametrize(
    ("system", "right"), [("no_decomposer", 1.0), ("uql_alone", 1.0), ("single_model", 1.0), ("structgpt", 0.0)]
)
def test_systems_with_adapters_are_judged_by_what_these_answer(system: str, right: float) -> None:
    (row,) = systems.run("artwork", SHARED, system=system, model=Scripted(by_parts), only=["art101-000"])
    assert (row.right, row.valid, row.attempts) == (right, None, 1), row.said


def test_a_baseline_is_asked_about_each_modality_apart_and_what_it_says_is_aggregated() -> None:
    said = {"answerable": True, "reason": "", "need_more": False, "summary": "Predella of the Barbadori altarpiece"}
    seen: list[tuple[str, bool, str]] = []

    def by_modality(request: Request, number: int) -> list[Answer]:
        for question in request.questions:
            if isinstance(question, Write):
                seen.append((question.task, bool(request.row.cells), question.text))
                if question.task == "aggregator":
                    return [Answer({**said, "details": "", "source": [], "inference": "", "extra": ""})]
        return by_parts(request, number)

    model = Scripted(by_modality)
    (row,) = systems.run("artwork", SHARED, system="single_model_apart", model=model, only=["art101-000"])
    assert [task for task, *_ in seen] == ["single_model", "single_model", "aggregator"]
    assert sorted(pictured for _, pictured, _ in seen[:2]) == [False, True]
    assert seen[2][2].count("answer: Predella of the Barbadori altarpiece") == 2
    assert row.attempts == 3 and row.said == said["summary"]  # there are no texts


def test_a_question_may_spend_what_max_cost_leaves_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    row = systems.run("artwork", SHARED, model=planner("SELECT title FROM paintings LIMIT 1"), only=["art101-000"])[0]

    def run(*args: Any, **options: Any) -> list[systems.Row]:
        given.append(options["settings"])
        return [replace(row, usd=0.3)]

    monkeypatch.setattr(systems, "run", run)
    task = next(
        t for t in bench._tasks("artwork", Choice(SHARED, SHARED, models=("m",), systems=("dag",)), ()) if t.run
    )
    assert task.run is not None and task.run(0).usd == 0.3 and given == [{}]
    monkeypatch.setattr(PURSE, "left", 1.0)
    assert task.run(0).usd == 0.3 and given[-1] == {"max_cost": 1.0}
    monkeypatch.setattr(PURSE, "left", 0.4)
    with pytest.raises(SpentError):
        task.run(0)


def test_a_value_is_said_in_a_sentence_and_not_somewhere_in_a_list() -> None:
    reference = next(q.reference for q in SUITES["countries"].questions(SHARED) if q.id == "countries-021")
    assert spoken("It is China.", reference)
    assert not spoken(", ".join(f"{name} Land" for name in "ABCDEFGHI") + ", China", reference)
    assert not spoken("", reference)


@pytest.mark.thorough
def test_traces_are_of_every_adapter_on_questions_that_the_tables_do_not_ask() -> None:
    told: list[Trace] = []
    made = traces.run(SHARED, Scripted(by_parts), limit=1, tell=told.append)
    assert made == told and {t.adapter for t in made} == {"uql", "single_model", "structgpt"}
    assert len({t.subquery for t in made}) == 3  # one question of each suite with plans by hand
    asked = {q.words for name in fixed.CHECKED for q in SUITES[name].questions(SHARED) if q.id in fixed.CHECKED[name]}
    assert not asked & {t.subquery for t in made}


def test_every_router_is_crossed_with_every_part_left_out() -> None:
    assert len(systems.CROSSED) == len(systems.ROUTERS) * len(systems.ABLATIONS)
    for system in (*systems.ROUTERS, *systems.CROSSED):
        assert systems.options_of(system, router="r")["router"] == "r"
    left_out = systems.options_of("ml_router_no_checker", router="r")
    assert left_out["checker"] is False and "decomposer" not in left_out
    assert systems.options_of("stat_router_no_aggregator", router="r")["aggregate"] is False


def test_semantic_hit_is_judged_by_a_model_where_words_do_not_settle_it() -> None:
    def replying(request: Request, number: int) -> list[Answer]:
        if any(isinstance(q, Write) and q.task == "judge" for q in request.questions):
            return [Answer({"same": True})]
        return by_parts(request, number)

    model = Scripted(replying)
    (row,) = systems.run("artwork", SHARED, system="structgpt", model=model, judge=model, only=["art101-000"])
    assert (row.hit, row.semantic) == (0.0, 1.0)
    assert "Semantic" in report.tables([row], "scripted")


@pytest.mark.thorough
def test_what_a_statement_needs_is_found_and_what_a_prompt_shows_of_it() -> None:
    schema = {"patients": ["subject_id", "dob"], "stays": ["stay_id", "subject_id"]}
    tables, columns = discovery.needed('SELECT max(p.dob) FROM patients p WHERE "a picture shows edema"', schema)
    assert (tables, columns) == (frozenset({"patients"}), frozenset({("patients", "dob")}))
    found = discovery.run(SHARED, None, nvbench=3, hospital=4)
    assert len(found) == 7 * 3 and all(f.needed for f in found)
    assert all(f.tokens <= 4_000 for f in found) and all(f.tokens <= 1_001 for f in found if f.prompt == "small")
    whole = [f for f in found if f.prompt == "all"]
    assert all(f.shown == 18 and f.tables == 1.0 for f in whole)
    assert "columns recall" in discovery.report(found)


def test_what_cannot_be_run_has_its_reason() -> None:
    assert systems.reason("artwork", "dag", None).startswith("needs a model that plans: --model")
    assert "routing only" in systems.reason("m2qa", "dag", "local")
    with pytest.raises(ConfigError, match="needs a model"):
        systems.run("artwork", SHARED)
    assert "needs a model that plans" in report.tables([], None)


def test_the_hospital_is_the_same_for_a_seed_and_one_statement_answers_a_question(tmp_path: Path) -> None:
    assert ehrxqa.tables(3) == ehrxqa.tables(3) != ehrxqa.tables(4)
    questions = ehrxqa.questions(SHARED)
    assert (
        len(questions) == 100
        and {q.scope for q in questions} == {"image", "table", "table+image"}
        and len(ehrxqa.SCHEMA) == 18
    )
    assert [f.question for f in ehrxqa.fixtures(questions)] == [q.words for q in questions]
    rows = ehrxqa.run(SHARED, tmp_path, count=12)
    assert all(row.right for row in rows), ehrxqa.report(rows)
    assert {row.calls > 0 for row in rows if "image" in row.scope} >= {True}


def _replayed(limit: int, only: Sequence[str] = ()) -> list[systems.Row]:
    fixtures = ehrxqa.fixtures(ehrxqa.questions(SHARED))
    with replay_server.served(replay_server.Service(Replay(fixtures))) as address:
        return systems.run("ehrxqa", SHARED, model=f"{address}/v1#replay", limit=limit, only=only)


def test_a_hospital_is_asked_in_steps_and_judged_by_sql_written_apart() -> None:
    """A question whose plan reads pictures, in four steps, over the wire; all plans are tried in the slow test."""
    question = next(q for q in ehrxqa.questions(SHARED) if q.template == 5124)
    (row,) = _replayed(1, [question.id])
    assert (row.right, row.valid, row.output) == (1.0, 1.0, "binary") and row.steps >= 5


@pytest.mark.slow
def test_every_question_of_the_hospital_is_right_by_its_plan_in_steps() -> None:
    assert all(row.right == 1.0 for row in _replayed(100))


@pytest.mark.slow
def test_routing_learns_the_modality_of_real_questions() -> None:
    class Hashed:
        name = "hashed"

        def embed(self, texts: Any) -> Any:
            out = np.zeros((len(texts), 256), np.float32)
            for i, text in enumerate(texts):
                for word in (text or "").lower().split():
                    out[i, sum(ord(c) * 31**k for k, c in enumerate(word)) % 256] += 1.0
            return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)

    found = routing.run("mmqa-routing", SHARED, Hashed())
    assert found.network > found.majority + 0.05 and found.tried > 500


def test_the_command_says_what_it_cannot_do(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command.main(["ask", "m2qa", "--data", str(SHARED), "--rows", str(tmp_path / "r")]) == 0
    assert "m2qa, dag: not run: its evidence" in capsys.readouterr().out
    assert command.main(["plans", "--data", str(tmp_path)]) == 2


def test_the_plainest_answers_follow_headings_years_and_scales() -> None:
    page = [["", "in millions", ""], ["", "2019", "2018"], ["Net sales", "$1,496.5", "(20)"], ["Costs", "9", "8"]]
    asked = {
        "What are the net sales in 2018?": "-20 million",
        "What was the percentage change in costs between 2018 and 2019?": "12.50 percent",
        "What is the average of costs in 2018 and 2019?": "8.5 million",
        "Which?": "1496.5 million",
    }
    assert {words: plainest.of_table(words, page, []) for words in asked} == asked
    assert plainest.of_table("What are the net sales?", [["", "text"]], []) == ""
    assert plainest.of_text("the rent", "no figure here") == ""
    found = plainest.numbers([("span", 1.0, 1.0), ("span", 0.0, 0.5), ("count", 0.0, 0.0)])
    shown = (("span", "2", "50.0 %", "75.0 %"), ("count", "1", "0.0 %", "0.0 %"), ("all", "3", "33.3 %", "50.0 %"))
    assert plainest.table("tatqa", found).rows == shown
