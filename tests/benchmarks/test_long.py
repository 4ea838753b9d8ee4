"""The pages of benchmarks say what they do not have; suites that are programs are told their seeds and print their commands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from uql.benchmarks import long, offline
from uql.benchmarks.runner import programs, suites
from uql.benchmarks.runner.records import Record
from uql.benchmarks.runner.suite import Choice

CHOICE = Choice(Path("/nowhere"), Path("/nowhere"))


def test_a_page_says_which_suites_and_tables_were_not_reached():
    ran = [Record("uqe", f"table {n}", "uql", "imdb_positive", "labels", 0) for n in (1, 2, 3, 4)]
    (said,) = long.missing(ran)
    assert "the suite speed; figure 5, budgets of the suite uqe" in said
    assert "table 5" not in said, "it shows runs of tables 1 and 2"
    ran += [Record("uqe", table, "uql", "imdb_positive", "labels", 0) for table in ("figure 5", "budgets")]
    assert long.missing([*ran, Record("speed", "speed", "uql", "parse, 1,000", "none", 0)]) == []


def test_guarantees_have_a_thousand_seeds_or_those_asked_for():
    suite = suites.find("guarantees")
    names = ["coverage", "recall", "precision", "cost"]
    assert [(t.query, t.settings["arguments"]) for t in suite.tasks(CHOICE)] == [
        (name, f"--only {name} --seeds 1000") for name in names
    ]
    (task,) = suite.tasks(replace(CHOICE, seeds=40, queries=("recall",)))
    assert task.settings["arguments"] == "--only recall --seeds 1000 --seeds 40", "the last one holds"


def test_what_a_program_printed_stands_under_the_command_that_prints_it():
    record = Record(
        "guarantees",
        "guarantees",
        "uql",
        "recall",
        "labels",
        0,
        {"arguments": "--only recall"},
        seconds=2.0,
        text="said",
    )
    later = replace(record, query="cost", text="", reason="too long")
    table, none = programs.tables([later, record])
    assert none.text == "not run: too long"
    assert (table.text, table.notes) == ("said", ("`python -m uql.benchmarks.guarantees --only recall`; 2 s",))


def test_the_short_form_takes_away_its_own_files_alone(tmp_path):
    for name in ("uqe.jsonl", "mine.txt", "work/labels.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    offline.clear(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
