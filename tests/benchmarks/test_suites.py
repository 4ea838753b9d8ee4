"""SemBench's data hold no column that gives a label away; exponents; times kept for the next release; the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from uql.benchmarks.gate.instant import Instant
from uql.benchmarks.runner.records import Record, write
from uql.benchmarks.runner.suite import Choice
from uql.benchmarks.sembench.suite import LEAKS, SUITE as SEMBENCH, facts, tables as sembench_tables
from uql.benchmarks.speed import stages, suite as speed
from uql.benchmarks.speed.stages import STAGES
from uql.cli import main
from uql.llm.ledger import Ledger

DATA = Path(os.environ.get("UQL_DATA", "../shared/data")).resolve()


def record(query: str, seconds: float) -> Record:
    return Record("speed", "speed", "uql", query, "none", 0, seconds=seconds, numbers={"memory_mb": 1.0})


@pytest.mark.skipif(not (DATA / "movie_reviews").is_dir(), reason="no labelled data: set UQL_DATA")
def test_no_column_that_a_query_sees_gives_a_label_away_and_duplicates_are_counted():
    found = facts(DATA)
    assert not set(map(str.lower, found.answer)) & LEAKS
    assert found.numbers["leaks"] == 0
    assert found.numbers["film rows"] == 2 * found.numbers["film duplicates"] == 256
    said = Record("sembench", "data", "uql", "movie_reviews", "none", 0, numbers=found.numbers, text=found.text)
    (table,) = sembench_tables([said])
    assert ("reviews", "2,000, of which 136 repeat the text of another") in table.rows


def test_a_score_stands_beside_the_ceiling_of_the_labels_and_no_answer_is_nothing():
    exact = Record("sembench", "movie", "uql-exact", "movie_q1", "labels", 0, quality=0.9, measure="f1")
    mine = Record("sembench", "movie", "uql", "movie_q1", "labels", 0, quality=0.5, measure="f1")
    none = Record(
        "sembench", "movie", "uql", "movie_q2", "labels", 0, quality=0.0, measure="unanswered", problem="UQL401: no"
    )
    (table,) = sembench_tables([exact, mine, none])
    assert table.rows[0][:5] == ("movie_q1", "uql", "f1", "0.500", "0.900")
    assert table.rows[-2][:4] == ("mean", "uql", "", "0.250")


def test_a_question_that_cannot_be_run_is_said_under_its_table_and_counts_nowhere():
    mine = Record("sembench", "mmqa", "uql", "mmqa_q1", "labels", 0, quality=0.5, measure="f1")
    none = Record("sembench", "mmqa", "uql", "mmqa_q4", "labels", 0, reason="no labels")
    movie = Record("sembench", "movie", "uql", "movie_q1", "labels", 0, quality=0.5, measure="f1")
    first, table = sembench_tables([none, mine, movie])
    assert first.title == "SemBench movie, model labels"
    assert [row[0] for row in table.rows] == ["mmqa_q1", "mean"]
    assert table.rows[-1][3] == "0.500"
    assert "not run: mmqa_q4: no labels" in table.notes


@pytest.mark.skipif(not (DATA / "sembench_mmqa").is_dir(), reason="no labelled data: set UQL_DATA")
def test_every_question_of_both_scenarios_is_run_or_has_a_reason(tmp_path):
    asked = {t.query: t.reason for t in SEMBENCH.tasks(Choice(DATA, tmp_path, models=("labels",)))}
    movie = {f"movie_q{n}" for n in range(1, 11)}
    published = {f"mmqa_q{n}" for n in ("1", "2a", "2b", "3a", "3f", "4", "5", "6a", "6b", "6c", "7")}
    assert movie | published <= set(asked)
    assert {query for query in movie | published if asked[query]} == {"mmqa_q4", "mmqa_q5", "mmqa_q7"}, "8 of 11"


def test_an_exponent_is_the_slope_of_the_logarithms():
    assert speed.exponent([(n, n**1.5 / 1e6) for n in (1e3, 1e4, 1e5)]) == pytest.approx(1.5)
    assert speed.exponent([(1e3, 1.0)]) != speed.exponent([(1e3, 1.0)])


@pytest.mark.one_in(4)
@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_every_stage_runs_and_is_measured(stage, monkeypatch):
    monkeypatch.setattr(speed, "REPEATS", 1)
    monkeypatch.setattr(speed, "WARMED", 0)
    found = speed.measure(stage, 200)
    assert found.seconds > 0
    assert found.numbers["memory_mb"] >= 0


def test_what_is_replayed_was_answered_before(tmp_path, monkeypatch):
    async def unasked(*_):
        raise AssertionError("a row was asked")

    monkeypatch.setattr(stages, "LAKES", tmp_path)
    monkeypatch.setattr(Instant, "answer", unasked)
    (replay,) = (stage for stage in STAGES if stage.name == "replay")
    for _ in range(2):  # with a new ledger, and with that one
        assert replay.prepare(5_000)().num_rows == 2_500
    with Ledger(tmp_path / "replay-5000.sqlite") as ledger:
        assert ledger.stats().answers == 5_000


def test_times_are_kept_and_compared_with_those_of_the_last_release(tmp_path, monkeypatch):
    monkeypatch.setattr(speed, "STORED", tmp_path / "kept.json")
    before = [record(f"gate, {n:,}", n / 1e4) for n in (1_000, 10_000)]
    speed.keep(before, "9.9", tmp_path / "kept.json")
    after = [record(f"gate, {n:,}", n / 5e3) for n in (1_000, 10_000)]
    (table,) = speed.tables(after)
    assert table.head[-1] == "ratio to 9.9"
    assert table.rows[0][0] == "gate"
    assert table.rows[0][-3:] == ("1.00", "0.00", "2.00"), "time, memory, ratio"


def test_the_command_line_compares_and_says_why_it_cannot(tmp_path, capsys):
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    for path, calls in ((a, 100), (b, 150)):
        write(path, Record("speed", "t", "uql", "q", "labels", 0, quality=0.5, measure="F1", calls=calls))
    assert main(["bench", "compare", str(a), str(b)]) == 0
    assert main(["bench", "compare", str(a), str(b), "--fail-if", "calls > 1.1x"]) == 1
    assert "calls 1.5x is > 1.1x" in capsys.readouterr().err
    assert main(["bench", "compare", str(a), str(b), "--fail-if", "calls >"]) == 2
    assert main(["bench", "compare", str(a), str(b), "--fail-if", "fl < -0.02 or calls > 1.1x"]) == 2
    assert "no run has a number 'fl'" in capsys.readouterr().err
    assert main(["bench", "compare", str(a), str(tmp_path / "none.jsonl")]) == 2
    assert main(["bench", "run", "none"]) == 2
    assert "suites:" in capsys.readouterr().err


def test_a_count_that_is_to_be_the_same_is_compared_run_by_run(tmp_path, capsys):
    """The means are equal here, and so are those of a file that lacks a run."""
    counts = {"before": {0: 100, 1: 120}, "moved": {0: 120, 1: 100}, "short": {0: 100}, "same": {1: 120, 0: 100}}
    for name, calls in counts.items():
        for seed, n in calls.items():
            write(tmp_path / name, Record("speed", "t", "uql", "q", "labels", seed, quality=0.5, measure="F1", calls=n))

    def code(after: str, *options: str) -> int:
        return main(["bench", "compare", str(tmp_path / "before"), str(tmp_path / after), *options])

    assert code("moved", "--fail-if", "calls > 1x or calls < 1x") == 0
    assert code("moved", "--same", "calls") == 1
    said = capsys.readouterr().err
    assert "seed 0: calls 100, then 120" in said and "seed 1: calls 120, then 100" in said
    assert code("short") == 0 and code("short", "--same", "calls") == 1
    assert "1 runs are only in the first file" in capsys.readouterr().err
    assert code("same", "--same", "calls", "--same", "requests") == 0
    assert code("same", "--same", "colls") == 2


def test_on_another_machine_other_counts_are_told_and_do_not_fail(tmp_path, capsys):
    for name, calls, processor in (("before", 100, "one"), ("after", 101, "another")):
        where = {"uql": "1", "processor": processor}
        record = Record("speed", "t", "uql", "q", "labels", 0, versions=where, quality=0.5, measure="F1", calls=calls)
        write(tmp_path / name, record)
    assert main(["bench", "compare", str(tmp_path / "before"), str(tmp_path / "after"), "--same", "calls"]) == 0
    said = capsys.readouterr().out
    assert "processor: one, then another" in said and "calls 100, then 101" in said


@pytest.mark.parametrize(
    ("model", "said"), [("openai:nobody-knows-it", "would be refused"), ("openai:gpt-5-mini", "$2.00 of")]
)
def test_a_dry_run_says_whether_max_cost_would_be_refused(model: str, said: str, tmp_path, capsys):
    path = tmp_path / "r.jsonl"
    assert main(["bench", "run", "uqe", "--dry-run", "--models", model, "--max-cost", "2", "-o", str(path)]) == 0
    assert said in capsys.readouterr().out


def test_a_dry_run_says_what_it_would_do_and_writes_nothing(tmp_path, capsys):
    path = tmp_path / "s.jsonl"
    assert main(["bench", "run", "speed", "--dry-run", "--rows", "1000", "-o", str(path), "--work", str(tmp_path)]) == 0
    assert f"{len(STAGES)} runs to do, 0 done" in capsys.readouterr().out
    assert not path.exists()


def test_the_times_of_the_last_release_can_be_read():
    release, seconds = speed.stored()
    assert release
    assert all(value > 0 for value in seconds.values())
    assert json.loads(speed.STORED.read_text())["release"] == release
