"""The table of a real model on every suite: shares with their intervals, beside labels and published figures."""

from __future__ import annotations

from typing import Any

import pytest

from uql.benchmarks import real_model
from uql.benchmarks.nl.published import M2EX_1
from uql.benchmarks.runner.records import Record


def run(suite: str, table: str, query: str, model: str, quality: float | None, measure: str, **more: Any) -> Record:
    return Record(suite, table, "uql", query, model, 0, quality=quality, measure=measure, **more)


def line_of(*runs: Record) -> dict[str, str]:
    (row,) = real_model.table(runs).rows
    return dict(zip(real_model.HEAD, row, strict=True))


def test_right_answers_are_counted_and_have_an_interval() -> None:
    own = [
        run("countries", "questions", f"q{i}", "local:m", float(i < 7), "right", calls=2, seconds=6.0)
        for i in range(10)
    ]
    by_hand = [run("countries", "plans", f"q{i}", "labels", 1.0, "right") for i in range(10)]
    line = line_of(*own, *by_hand)
    assert line["local model"] == "7 of 10 (35–93 %)"
    assert line["labels"] == "10 of 10 (69–100 %)", "plans by hand stand beside the questions that they answer"
    assert (line["questions"], line["calls"], line["s a question"]) == ("10", "20", "6")


def test_other_measures_are_means_beside_the_paper_s_figure_over_the_same_questions() -> None:
    runs = [
        run("uqe", "table 1", "imdb_positive", "local:m", 0.1, "relative error"),
        run("uqe", "table 1", "airdialogue_book", "local:m", 0.2, "relative error"),
        run("uqe", "table 1", "imdb_positive", "labels", 0.04, "relative error"),
    ]
    line = line_of(*runs)
    assert (line["local model"], line["labels"]) == ("15.0 %", "4.0 %")
    assert line["published"] == f"UQE with claude-3-haiku {(5.75 + 4.98) / 2:.1f} % over 2"


def test_a_question_that_failed_counts_as_wrong_and_one_that_cannot_be_run_not_at_all() -> None:
    line = line_of(
        run("sembench", "movie", "q1", "local:m", 1.0, "f1"),
        run("sembench", "movie", "q1", "local:m", 0.0, "", problem="no answer"),
        run("sembench", "movie", "q9", "local:m", None, "", reason="it reads no pictures"),
    )
    assert (line["questions"], line["local model"]) == ("1", "0.500")


@pytest.mark.parametrize(("suite", "column"), [("rotowire", "RotoWire Accuracy"), ("artwork", "ArtWork Accuracy")])
def test_figures_of_papers_are_those_of_their_tables(suite: str, column: str) -> None:
    workflow = dict(zip(M2EX_1.columns, next(r for r in M2EX_1.rows if r[:2] == ("M²EX", "Overall"))[2:], strict=True))
    assert workflow[column] in real_model.published(suite, "questions", [])
    assert real_model.published("gate", "speed", []) == "–"
