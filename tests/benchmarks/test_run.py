"""The runner: what is to be run, what is resumed, what a limit stops; and the report and the comparison of what was run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from uql.base.errors import AuthError, BackendError, ConfigError, DataError, QuotaError, UnknownModelError
from uql.benchmarks.runner import compare, parallel, pictures, run as runner, suites
from uql.benchmarks.runner.purse import PURSE, SpentError
from uql.benchmarks.runner.records import Measured, Record, read
from uql.benchmarks.runner.report import made_with, markdown_table
from uql.benchmarks.runner.suite import Choice, Suite, Task
from uql.benchmarks.runner.summary import cells, table

CHOICE = Choice(Path("/nowhere"), Path("/nowhere"))


def suite(*tasks: Task) -> Suite:
    return Suite(
        "made", "made for a test", ("uql", "other"), ("labels",), lambda _: iter(tasks), lambda r: [table("T", r)]
    )


def task(system="uql", query="q1", model="labels", run=None, **more) -> Task:
    return Task(
        "t", system, query, model, run or (lambda seed: Measured([seed], 0.5, "F1", 10, usd=0.1)), seeds=3, **more
    )


def executed(made: Suite, path: Path, seeds=None, resume=False, max_cost=None, offline=False):
    tasks = runner.tasks_of(made, CHOICE, offline=offline)
    return runner.execute(made, tasks, path, seeds=seeds, resume=resume, max_cost=max_cost, say=lambda _: None)


def test_every_task_is_run_with_every_seed_and_written_down(tmp_path):
    ended = executed(suite(task(), task("other")), tmp_path / "r.jsonl")
    found = read(tmp_path / "r.jsonl")
    assert (ended.runs, ended.problems, ended.limit) == (6, 0, False)
    assert sorted((r.system, r.seed) for r in found) == [(s, n) for s in ("other", "uql") for n in range(3)]
    assert all(r.versions["python"] and r.answer_hash and r.calls == 10 for r in found)


def test_fewer_seeds_may_be_asked_for_and_never_more_than_a_task_has(tmp_path):
    assert executed(suite(task()), tmp_path / "a.jsonl", seeds=2).runs == 2
    assert executed(suite(task()), tmp_path / "b.jsonl", seeds=9).runs == 3


def test_results_are_never_overwritten_and_resuming_runs_what_is_missing(tmp_path):
    path, ran = tmp_path / "r.jsonl", []

    def run(seed: int) -> Measured:
        ran.append(seed)
        return Measured(seed, 1.0, "F1")

    executed(suite(task(run=run)), path, seeds=1)
    with pytest.raises(ConfigError, match="--resume"):
        executed(suite(task(run=run)), path)
    assert executed(suite(task(run=run)), path, resume=True).runs == 2
    assert ran == [0, 1, 2]


def test_a_killed_run_keeps_what_was_done(tmp_path):
    path = tmp_path / "r.jsonl"

    def run(seed: int) -> Measured:
        if seed == 1 and not (tmp_path / "again").exists():
            raise KeyboardInterrupt
        return Measured(seed, 1.0, "F1")

    with pytest.raises(KeyboardInterrupt):
        executed(suite(task(run=run)), path)
    assert [r.seed for r in read(path)] == [0]
    with path.open("a") as file:
        file.write('{"suite": "made", "ta')  # a line cut off
    (tmp_path / "again").touch()
    assert executed(suite(task(run=run)), path, resume=True).runs == 2
    assert [r.seed for r in read(path)] == [0, 1, 2]


def test_max_cost_stops_before_the_next_run_and_counts_what_the_file_has_cost(tmp_path):
    path = tmp_path / "r.jsonl"
    ended = executed(suite(task()), path, max_cost=0.15)
    assert (ended.runs, ended.limit) == (2, True)
    ended = executed(suite(task()), path, max_cost=0.15, resume=True)
    assert (ended.runs, ended.limit) == (0, True)
    ended = executed(suite(task()), path, max_cost=0.4, resume=True)
    assert (ended.runs, ended.limit) == (1, False)


def test_a_run_may_spend_what_the_ones_before_left_and_one_cut_short_is_not_written(tmp_path):
    path, given = tmp_path / "r.jsonl", []

    def run(seed: int) -> Measured:
        given.append(PURSE.settings()["max_cost"])
        if seed == 2 and not (tmp_path / "again").exists():
            raise PURSE.spent(0.05)
        return Measured(seed, 1.0, "F1", usd=0.1)

    ended = executed(suite(task(run=run)), path, max_cost=0.25)
    assert (ended.runs, ended.limit) == (2, True)
    assert given == pytest.approx([0.25, 0.15, 0.05])
    assert [r.seed for r in read(path)] == [0, 1]
    (tmp_path / "again").touch()
    assert executed(suite(task(run=run)), path, max_cost=1.0, resume=True).runs == 1
    with pytest.raises(SpentError):
        PURSE.settings(paid=2.0)


def test_processes_share_the_runs_by_group_and_give_the_same_results(tmp_path):
    tasks = [task(query=q, group=g) for q, g in (("a", "one"), ("b", "two"), ("c", "one"), ("d", "three"))]
    left = list(runner.pending(suite(*tasks), tasks, None, []))
    first, second = parallel.shares(tasks, left, 2)
    assert sorted(first + second) == [(i, seed) for i in range(4) for seed in range(3)]
    assert {i for i, _ in first} == {0, 2} and {i for i, _ in second} == {1, 3}
    assert [seed for _, seed in first] == sorted(seed for _, seed in first), "some of everything comes first"


def test_a_suite_run_in_two_processes_writes_what_one_writes(tmp_path):
    found = suites.find("speed")
    choice = replace(CHOICE, queries=("parse",), rows=1000, work=tmp_path)
    tasks = runner.tasks_of(found, choice, offline=True)
    path = tmp_path / "r.jsonl"
    work = parallel.Processes(2, choice, True, tasks)
    ended = runner.execute(found, tasks, path, seeds=None, resume=False, max_cost=None, say=lambda _: None, work=work)
    assert (ended.runs, ended.problems) == (1, 0)
    assert [(r.suite, r.query, r.seed) for r in read(path)] == [("speed", "parse, 1,000", 0)]


def test_an_answer_that_cannot_be_had_is_the_worst_one(tmp_path):
    def fails(seed: int) -> Measured:
        raise DataError("no such row\nand more")

    executed(suite(task(run=fails, worst=1.0), task("other", run=fails)), tmp_path / "r.jsonl", seeds=1)
    found = read(tmp_path / "r.jsonl")
    assert [r.quality for r in found] == [1.0, 0.0]
    assert all("no such row" in r.problem and "more" not in r.problem for r in found)


@pytest.mark.parametrize("kind", [BackendError, AuthError, QuotaError, UnknownModelError, ConfigError])
def test_a_model_that_is_not_there_ends_the_run_and_is_no_result(tmp_path, kind):
    path = tmp_path / "r.jsonl"

    def fails(seed: int) -> Measured:
        if seed:
            raise kind("the model cannot be had")
        return Measured(seed, 1.0, "F1")

    with pytest.raises(kind, match="cannot be had"):
        executed(suite(task(run=fails)), path)
    assert [r.seed for r in read(path)] == [0]


def test_offline_runs_no_model_elsewhere_and_says_so(tmp_path):
    ended = executed(suite(task(), task(model="openai:gpt-5")), tmp_path / "r.jsonl", offline=True)
    assert ended.runs == 3
    assert [r.reason for r in read(tmp_path / "r.jsonl") if r.reason] == ["the model is elsewhere"]


def test_a_task_that_cannot_be_run_is_reported_with_its_reason(tmp_path):
    missing = replace(task("other"), run=None, reason="no data")
    executed(suite(task(), missing), tmp_path / "r.jsonl")
    (made,) = suite().tables(read(tmp_path / "r.jsonl"))
    assert "not run: other on q1 with labels: no data" in made.notes
    assert "not run: other" in markdown_table(made)


def test_what_could_not_be_run_is_run_when_it_can_be_and_its_reason_is_written_once(tmp_path):
    path, missing = tmp_path / "r.jsonl", replace(task("other"), run=None, reason="not installed")
    executed(suite(task(), missing), path, seeds=1)
    executed(suite(task(), missing), path, seeds=1, resume=True)
    assert len(path.read_text().splitlines()) == 2
    assert executed(suite(task(), task("other")), path, seeds=1, resume=True).runs == 1
    executed(suite(task(), missing), path, seeds=1, resume=True)
    assert [(r.system, r.reason) for r in read(path)] == [("other", ""), ("uql", "")]
    assert runner.plan(suite(), [missing], None, read(path)).done == 2


def test_an_output_that_cannot_be_written_is_said_before_anything_is_run(tmp_path):
    def never(seed: int) -> Measured:
        raise AssertionError

    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        executed(suite(task(run=never)), tmp_path / "file" / "r.jsonl")


def test_what_would_be_run_is_said_without_running(tmp_path):
    def never(seed: int) -> Measured:
        raise AssertionError

    tasks = [task(run=never, calls=128), task("every", calls=None), replace(task("other"), run=None, reason="no data")]
    planned = runner.plan(suite(*tasks), tasks, None, [])
    assert (planned.runs, planned.calls, planned.unlimited, planned.missing) == (6, 384, 3, 1)


def test_an_unknown_system_suite_and_missing_data_are_errors():
    with pytest.raises(ConfigError, match="systems: uql, other"):
        runner.tasks_of(suite(), replace(CHOICE, systems=("none",)), offline=False)
    for given in ({"queries": ("q1", "p")}, {"tables": ("t", "table 9")}, {"models": ("label",)}):
        with pytest.raises(ConfigError, match=r"called 'p'|called 'table 9'|no model 'label'"):
            runner.tasks_of(suite(task()), replace(CHOICE, **given), offline=False)
    with pytest.raises(ConfigError, match="--dry-run lists all"):
        runner.tasks_of(suite(task()), replace(CHOICE, tables=("none",)), offline=False)
    with pytest.raises(ConfigError, match="suites: uqe"):
        suites.find("none")
    with pytest.raises(ConfigError, match="UQL_DATA"):
        runner.tasks_of(replace(suite(), needs=("imdb",)), CHOICE, offline=False)


def test_a_name_that_is_given_whole_means_that_query_alone():
    made = suite(task(query="q1"), task(query="q10"), task(query="r1"), task(query="r12"))
    for queries, left in ((("q1",), ["q1"]), (("q1", "r"), ["q1", "r1", "r12"])):
        found = runner.tasks_of(made, replace(CHOICE, queries=queries), offline=False)
        assert [each.query for each in found] == left


def test_a_table_that_shows_the_runs_of_others_is_asked_for_by_its_name():
    made = replace(suite(task(), replace(task(), table="u")), made_of={"figure": ("t",)})
    found = runner.tasks_of(made, replace(CHOICE, tables=("figure",)), offline=False)
    assert [each.table for each in found] == ["t"]


def test_every_suite_can_be_found_and_names_its_systems_and_models():
    assert {"uqe", "sembench", "peers", "speed", "sampling", "optimizer", "gate"} <= set(suites.names())
    for name in suites.names():
        found = suites.find(name)
        assert (found.name, bool(found.systems), bool(found.models)) == (name, True, True)


def test_a_comparison_is_over_shared_runs_and_fails_as_it_is_told(tmp_path):
    from uql.benchmarks.runner.condition import parse

    executed(suite(task(), task("other")), tmp_path / "a.jsonl")
    worse = task(run=lambda seed: Measured([seed], 0.4, "F1", 12))
    executed(suite(worse), tmp_path / "b.jsonl", seeds=2)
    found = compare.compared(read(tmp_path / "a.jsonl"), read(tmp_path / "b.jsonl"))
    assert [(each.name, each.runs, each.same_answers) for each in found] == [("made, t, uql", 2, 2)]
    assert compare.failures(found, parse("f1 < -0.2 or calls > 1.3x")) == []
    assert compare.failures(found, parse("f1 < -0.05 and calls > 1.1x")) == [
        "made, t, uql: f1 -0.1 is < -0.05 and calls 1.2x is > 1.1x"
    ]
    assert "F1" in markdown_table(compare.table(found))
    assert compare.unshared(read(tmp_path / "a.jsonl"), read(tmp_path / "b.jsonl")) == [
        "4 runs are only in the first file"
    ]


def test_runs_are_compared_with_those_of_the_same_settings_and_with_the_only_ones_where_they_were_changed(tmp_path):
    several = [task(settings={"budget": n}, run=lambda seed, n=n: Measured(n, n / 100, "F1", n)) for n in (32, 64)]
    executed(suite(*several), tmp_path / "a.jsonl", seeds=1)
    executed(suite(*several), tmp_path / "b.jsonl", seeds=1)
    a, b = read(tmp_path / "a.jsonl"), read(tmp_path / "b.jsonl")
    assert [(x.calls, y.calls) for x, y in compare.shared(a, b)] == [(32, 32), (64, 64)]
    executed(suite(task(settings={"budget": 16})), tmp_path / "c.jsonl", seeds=1)
    c = read(tmp_path / "c.jsonl")
    assert compare.shared(a, c) == []
    assert [(x.calls, y.calls) for x, y in compare.shared(a[:1], c)] == [(32, 10)]


def test_a_cost_that_fell_to_nothing_is_shown(tmp_path):
    executed(suite(task()), tmp_path / "a.jsonl")
    executed(suite(task(run=lambda seed: Measured([seed], 0.5, "F1", 0))), tmp_path / "b.jsonl")
    found = compare.table(compare.compared(read(tmp_path / "a.jsonl"), read(tmp_path / "b.jsonl")))
    assert ("made, t, uql", "calls", "10.00", "0.00", "0.00x", "3") in found.rows


def test_a_front_has_a_mark_for_each_budget_and_is_of_one_label_table():
    def ran(system, model, budget, quality, usd=0.0):
        settings = {"budget": budget}
        return Record(
            "made", "t", system, "q", model, 0, settings, quality=quality, measure="F1", calls=budget, usd=usd
        )

    records = [ran(s, m, b, 0.5 + b / 1000) for s in ("uql", "other") for m in ("labels", "labels-5") for b in (32, 64)]
    points = pictures.points_of(records, "F1")
    assert pictures._together(points) == [("labels",), ("labels-5",)]
    chart = pictures.front([p for p in points if p["model"] == "labels"], "T", "F1")
    assert sorted(p["calls"] for p in chart["datasets"]["means"]) == [32, 32, 64, 64]
    assert [p["calls"] for p in chart["datasets"]["best"]] == [32, 64]
    assert chart["layer"][0]["encoding"]["x"]["field"] == "calls"
    assert [p["difference"] for p in pictures.differences_of(points)] == [0, 0, 0, 0], "budget by budget"
    more = {**points[0], "system": "third"}
    wide = [{**points[0], "query": q} for q in ("q2", "q3")]
    assert "subtitle" not in chart["title"]
    (said,) = pictures.front([points[0], *wide, more], "T", "F1")["title"]["subtitle"]
    assert said == "without third: fewer than half of the queries"
    bought = pictures.points_of([ran("uql", "a:b", 32, 0.5, 0.25), ran("uql", "a:c", 32, 0.75, 0.5)], "F1")
    assert pictures._together(bought) == [("a:b", "a:c")]
    assert pictures.front(bought, "T", "F1")["layer"][0]["encoding"]["x"]["field"] == "usd"


def test_a_page_of_several_versions_says_how_many_runs_each_made():
    records = [
        Record("made", "t", "uql", "q", "labels", seed, versions={"uql": "1", "source": source, "cpus": "2"})
        for seed, source in enumerate(["aa", "aa", "bb"])
    ]
    assert made_with(records) == "3 runs; source aa (2 of them), source bb (1 of them), uql 1; 2 processors."
    assert "source aa, uql 1" in made_with(records[:2])


def test_pictures_show_each_system_and_the_differences_to_ours(tmp_path):
    pytest.importorskip("vl_convert")
    better = task("other", run=lambda seed: Measured([seed], 0.75, "F1", 20))
    executed(suite(task(), better), tmp_path / "r.jsonl")
    records = read(tmp_path / "r.jsonl")
    points = pictures.points_of(records, "F1")
    assert pictures.differences_of(points)[0]["difference"] == pytest.approx(-0.25)
    assert [svg[:4] for svg in pictures.of(records)] == ["<svg", "<svg"]
    narrow = [{**points[0], "query": q} for q in ("q2", "q3", "q4")] + [{**points[0], "system": "third", "query": "q4"}]
    assert {p["query"] for p in pictures.shared([*points, *narrow])} == {"q1", "q2", "q3", "q4"}
    assert {p["system"] for p in pictures.shared([*points, *narrow])} == {"uql"}
    assert len(cells(records)) == 2


def test_max_cost_is_refused_before_the_first_run_where_a_price_is_unknown(tmp_path):
    ran: list[int] = []

    def run(seed: int) -> Measured:
        ran.append(seed)
        return Measured(seed, 1.0, "F1", usd=None)

    unknown = task(model="openai:nobody-knows-it", run=run)
    with pytest.raises(ConfigError, match="the price of openai:nobody-knows-it is unknown"):
        executed(suite(unknown), tmp_path / "r.jsonl", max_cost=1.0)
    assert not ran, "nothing is run, so nothing is paid for"
    assert runner.unpriced([unknown, task(model="openai:gpt-5-mini"), task(model="local"), task()]) == [unknown.model]
