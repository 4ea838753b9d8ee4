"""Which label does a row have? Accuracy of a model, its interval, and the rows that are drawn."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from uql.benchmarks.accuracy.data_sets import DataSet, sample
from uql.benchmarks.accuracy.suite import run, tables
from uql.benchmarks.runner.records import Record
from uql.benchmarks.runner.suite import Choice

COLOURS = DataSet("paints", "paints", "the colour", "l.colour", {"R": "red"}, "l.colour <> 'none'", public="90 %")


@pytest.fixture
def choice(tmp_path: Path) -> Choice:
    """40 paints of two colours, two without one, and a model that takes each blue one for red."""
    folder = tmp_path / "paints"
    folder.mkdir()
    with duckdb.connect() as con:
        con.sql(
            "CREATE TABLE t AS SELECT i AS id, 'paint ' || i AS text, "
            "CASE WHEN i >= 40 THEN 'none' WHEN i % 4 = 0 THEN 'dark_blue' ELSE 'R' END AS colour FROM range(42) r(i)"
        )
        con.sql("SELECT id, text FROM t").write_parquet(str(folder / "data.parquet"))
        con.sql("SELECT id, colour, 'red' AS said FROM t").write_parquet(str(folder / "labels.parquet"))
    (tmp_path / "o.toml").write_text(
        f'data = "{folder}/data.parquet"\nlabels = "{folder}/labels.parquet"\nkey = "id"\n[answers]\n"the colour" = "said"\n'
    )
    return Choice(tmp_path, tmp_path)


def test_the_rows_are_the_same_for_a_seed_and_labels_become_words(choice: Choice) -> None:
    found = sample(COLOURS, choice.data, 0, 10)
    assert found.words == ("dark blue", "red")
    assert len(found.texts) == 10 and max(found.texts) < 40
    assert all(found.truth[i] == ("dark blue" if i % 4 == 0 else "red") for i in found.texts)
    assert sample(COLOURS, choice.data, 0, 10) == found
    assert sample(COLOURS, choice.data, 1, 10).texts != found.texts


def test_accuracy_is_the_share_of_rows_whose_answer_is_their_label(choice: Choice) -> None:
    found = run(COLOURS, f"oracle:{choice.data / 'o.toml'}", choice)
    assert (found.quality, found.calls, found.numbers["commonest"]) == (0.75, 40, 0.75)
    assert found.numbers["low"] < 0.75 < found.numbers["high"]
    again = run(COLOURS, f"oracle:{choice.data / 'o.toml'}", choice)
    assert (again.quality, again.calls) == (0.75, 0), "answers are kept, so that a run goes on"


def test_the_table_gives_rows_interval_and_the_public_figure() -> None:
    numbers = {
        "rows": 100.0,
        "right": 64.0,
        "labels": 77.0,
        "low": 0.538,
        "high": 0.734,
        "commonest": 0.03,
        "without an answer": 1.0,
    }
    held = Record(
        "accuracy",
        "labels",
        "uql",
        "banking77",
        "local",
        0,
        quality=0.64,
        measure="accuracy",
        calls=100,
        seconds=50.0,
        numbers=numbers,
    )
    (table,) = tables([held, Record("accuracy", "labels", "uql", "imdb", "labels", 0, reason="always right")])
    assert table.rows == (
        ("banking77", "77", "100", "64.0 %", "53.8–73.4 %", "3.0 %", "Jev 76.3 %, a keyword rule 29.3 %", "1", "0.5"),
    )
