"""What a results file, a data folder, a condition or an oracle file may have wrong: each is said in words, and no number is made of it."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from uql.base.errors import ConfigError, DataError
from uql.benchmarks.peers.server import Service
from uql.benchmarks.runner import compare, lines, run as runner, suites
from uql.benchmarks.runner.command import app
from uql.benchmarks.runner.condition import parse
from uql.benchmarks.runner.purse import PURSE, SpentError
from uql.benchmarks.runner.records import Record, read, write
from uql.benchmarks.runner.report import markdown, page
from uql.benchmarks.runner.suite import Choice, Suite, Task
from uql.benchmarks.uqe.model import Model
from uql.benchmarks.uqe.tasks import f1_of, relative_error
from uql.llm.providers.oracle import Oracle

RUN = Record("made", "t", "uql", "q1", "labels", 0, quality=0.9, measure="F1", calls=10)
NOWHERE = Choice(Path("/nowhere"), Path("/nowhere"))


def run_bench(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.output


def test_a_system_that_answers_nothing_any_more_fails_a_condition_on_its_measure():
    before = [replace(RUN, query=q) for q in ("q1", "q2")]
    after = [replace(r, quality=0.0, measure="unanswered", problem="gone") for r in before]
    (found,) = compare.compared(before, after)
    assert (found.before["F1"], found.after["F1"]) == (0.9, 0.0)
    assert compare.failures([found], parse("f1 < -0.02"))


def test_runs_whose_settings_were_changed_are_compared_and_it_is_said():
    one, two = [replace(RUN, settings={"rows": 300})], [replace(RUN, settings={"rows": 400})]
    assert compare.changed(one, two) == ["other settings in 1 runs: rows 300 in the first file and 400 in the second"]
    assert compare.changed(one, one) == []


def test_a_report_is_never_written_over_results(tmp_path):
    path = tmp_path / "r.jsonl"
    write(path, RUN)
    code, _ = run_bench("report", path, "-o", path)
    assert code == 2
    assert read(path) == [RUN]
    assert run_bench("report", path, "-o", tmp_path / "r.txt")[0] == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("quality", "high"),
        ("settings", 3),
        ("versions", None),
        ("numbers", [1]),
        ("numbers", {"a": "b"}),
        ("calls", 1.5),
    ],
)
def test_a_line_with_a_value_of_another_kind_is_named(tmp_path, name, value):
    path = tmp_path / "r.jsonl"
    write(path, RUN)
    held = json.loads(path.read_text())
    path.write_text(path.read_text() + json.dumps({**held, name: value}) + "\n")
    with pytest.raises(DataError, match="line 2 is not a benchmark result: .*numbers|line 2 .*" + name):
        read(path)


def test_runs_of_a_suite_that_is_gone_are_counted_and_the_others_shown():
    both = [replace(RUN, suite="gone"), replace(RUN, suite="sembench", table="movie", query="movie_q1")]
    for text in (markdown(both), page(both)):
        assert "this version has no such suite: 1 runs are not shown" in text.lower().replace(
            "this version", "this version"
        )
        assert "SemBench movie" in text


@pytest.mark.skipif(os.name == "nt", reason="no locks there")
def test_two_runs_do_not_write_to_one_file(tmp_path):
    path = tmp_path / "r.jsonl"
    with lines.alone(path), pytest.raises(ConfigError, match="another run writes"), lines.alone(path):
        pass
    with lines.alone(path):
        write(path, RUN)
    assert read(path) == [RUN]


def test_data_that_are_not_there_are_named_before_anything_is_run(tmp_path):
    for name in suites.QUESTIONS:
        with pytest.raises(ConfigError, match="needs the data"):
            runner.tasks_of(suites.find(name), NOWHERE, offline=True)
    for folder in suites.find("uqe").needs:
        (tmp_path / folder).mkdir()
    with pytest.raises(ConfigError, match="needs the data"):
        runner.tasks_of(suites.find("uqe"), replace(NOWHERE, data=tmp_path), offline=True)


def test_a_file_that_another_run_holds_ends_a_run_in_words():
    def held(seed: int) -> None:
        raise duckdb.IOException("Could not set lock on file")

    task = Task("t", "uql", "q", "labels", held)
    made = Suite("made", "for a test", ("uql",), ("labels",), lambda _: iter([task]), lambda _: [])
    with pytest.raises(ConfigError, match="Could not set lock") as error:
        runner.ran(made, task, 0)
    assert "--work" in (error.value.help or "")


@pytest.mark.parametrize(
    ("suite", "choice", "message"),
    [
        ("gate", {"rows": 5}, "takes no --rows"),
        ("speed", {"models": ("labels",)}, "--models"),
        ("gate", {"models": ("local",)}, "--models"),
    ],
)
def test_an_option_that_changes_nothing_is_refused(suite, choice, message):
    with pytest.raises(ConfigError, match=message):
        runner.tasks_of(suites.find(suite), replace(NOWHERE, **choice), offline=True)


def test_where_nothing_matches_to_find_nothing_is_right():
    assert f1_of([], [False, False], 4) == (1.0, 1.0, 1.0)
    assert f1_of([1], [False, False], 4) == (0.0, 0.0, 0.0)
    assert (relative_error(0.0, 0), relative_error(3.0, 0), relative_error(float("nan"), 0)) == (0.0, 3.0, 1.0)


@pytest.mark.parametrize("text", ["f1 < -0.02 OR calls > 1.1X", "(calls > 10 %) Or f1 < 0", "calls > 10% and f1 <= 0"])
def test_a_condition_is_read_in_any_case(text):
    assert parse(text).failing({"f1": 0.9, "calls": 100}, {"f1": 0.9, "calls": 120})


def test_a_unit_stands_alone():
    with pytest.raises(ConfigError, match="'xor' where"):
        parse("f1 < -0.02xor calls > 3")


@pytest.fixture
def oracle(tmp_path):
    con = duckdb.connect()
    con.sql("SELECT i AS id, 'note number ' || i AS text FROM range(4) r(i)").write_parquet(str(tmp_path / "d.parquet"))
    con.sql("SELECT i AS id, i < 2 AS good FROM range(4) r(i)").write_parquet(str(tmp_path / "l.parquet"))

    def made(answers: str = '[answers]\n"it is good" = "good"\n', **changed: str) -> Oracle:
        held = {"data": '"d.parquet"', "labels": '"l.parquet"', "key": '"id"', **changed}
        text = "\n".join(f"{name} = {value}" for name, value in held.items())
        (tmp_path / "o.toml").write_text(f"{text}\n{answers}")
        return Oracle(tmp_path / "o.toml")

    return made


@pytest.mark.parametrize(
    ("answers", "changed", "message"),
    [
        ('answers = "x"', {}, "is not a table"),
        ('[answers]\n"it is good" = 3', {}, "is not a table of texts"),
        ("[answers]", {"price": "3"}, "is not a table"),
        ("[answers]", {"price": "{input = 1}"}, "price has input"),
        ("[answers]", {"price": "{input = 'a', output = 1}"}, "is not a number"),
        ("[answers]", {"data": "3"}, "data = 3 is not a text"),
    ],
)
def test_an_oracle_file_of_the_wrong_kind_is_refused_in_words(oracle, answers, changed, message):
    with pytest.raises(ConfigError, match=message):
        oracle(answers, **changed)


def test_sql_that_the_labels_do_not_have_is_refused_before_anything_is_served(oracle):
    oracle('[answers]\n"it is good" = "good"\n"both are {a.text} {b.text}" = "a.good = b.good"').check()
    with pytest.raises(ConfigError, match="nosuch"):
        oracle('[answers]\n"it is good" = "nosuch = 1"').check()


def test_a_prompt_that_shows_more_rows_than_the_question_is_about_is_refused(oracle):
    service = Service(oracle())
    asked = 'Does it satisfy the condition "it is good"? Answer with 1 for yes, 0 for no.\n'
    assert asyncio.run(service.reply(asked + "note number 1"))[0] == "1"
    with pytest.raises(DataError, match="holds 2 rows of 1"):
        asyncio.run(service.reply(f"note number 3 → 0\n{asked}note number 1"))


def test_a_baseline_that_is_paid_stops_where_nothing_is_left(oracle, monkeypatch):
    from uql.benchmarks.uqe import model as seen

    priced = oracle(price="{input = 1e6, output = 1e6}")
    monkeypatch.setattr(seen, "provider", lambda world, name: priced)
    monkeypatch.setattr(Model, "_row", lambda self, i: seen.Row((seen.Cell("text", f"note number {i}"),)))
    monkeypatch.setattr(PURSE, "left", 30.0)
    with pytest.raises(SpentError):
        Model(None, "priced", NOWHERE).is_so("it is good", [0, 1, 2, 3])  # type: ignore[arg-type]
    assert PURSE.left <= 0
