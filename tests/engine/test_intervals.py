"""Data frames, Arrow and relations carry the intervals of estimates, as files and tables do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hash_model import HashModel
from labels import Labels, both

import uql

POS = both("<pos>")[0]
COUNT = f"SELECT COUNT(*) AS n FROM reviews WHERE {POS} WITH (budget = 32)"


@pytest.fixture(scope="module")
def labels(many_labels: Labels) -> Labels:
    return many_labels


@pytest.fixture
def con(labels: Labels) -> uql.Connection:
    """Its ledger knows nothing: what one test asked is not known to the next."""
    return labels.uql()


@pytest.mark.parametrize("kind", ["df", "pl", "arrow"])
def test_an_estimate_comes_with_its_interval(con: uql.Connection, kind: str) -> None:
    found = con.uql(COUNT)
    estimate = found.estimates["n"]
    assert not isinstance(estimate, list) and not estimate.exact
    frame = getattr(found, kind)()
    names = frame.column_names if kind == "arrow" else list(frame.columns)
    assert names == ["n", "n_low", "n_high"]
    cells = [frame[name].to_pylist()[0] if kind == "arrow" else frame[name][0] for name in names]
    assert cells == [found.fetchall()[0][0], estimate.low, estimate.high]
    without = getattr(found, kind)(intervals=False)
    assert (without.column_names if kind == "arrow" else list(without.columns)) == ["n"]
    assert found.columns == ["n"] and found.shape == (1, 1)


def test_a_group_has_its_own_interval_and_an_exact_column_none(con: uql.Connection) -> None:
    found = con.uql(f"SELECT film, COUNT(*) AS n FROM reviews WHERE {POS} GROUP BY film WITH (budget = 64)")
    estimates = found.estimates["n"]
    assert isinstance(estimates, list)
    frame = found.df()
    assert {"n_low", "n_high"} <= set(frame.columns)
    assert frame["n_low"].tolist() == [e.low for e in estimates]
    assert frame["n_high"].tolist() == [e.high for e in estimates]
    exact = con.uql(f"SELECT COUNT(*) AS n FROM reviews WHERE {POS} WITH (exact)")
    assert list(exact.df().columns) == ["n"]


def test_a_column_with_the_name_of_an_end_keeps_its_values(con: uql.Connection) -> None:
    found = con.uql(COUNT.replace("AS n", "AS n, 7 AS n_low, 8 AS N_HIGH, 9 AS n_low_"))
    estimate = found.estimates["n"]
    assert not isinstance(estimate, list)
    row = found.arrow().to_pylist()[0]
    assert row["n_low"] == 7 and row["N_HIGH"] == 8 and row["n_low_"] == 9
    assert [v for k, v in row.items() if k not in ("n", "n_low", "N_HIGH", "n_low_")] == [estimate.low, estimate.high]
    assert found.fetchall()[0][1:] == (7, 8, 9)
    found.to_table("kept")
    kept = con.execute("SELECT * FROM kept").fetchall()
    assert len(kept[0]) == 6 and {7, 8, 9} <= set(kept[0])
    again = con.uql("SELECT n FROM kept").estimates["n"]
    assert isinstance(again, list) and (again[0].low, again[0].high) == (estimate.low, estimate.high)


def test_every_form_has_the_same_columns(con: uql.Connection, tmp_path: Path) -> None:
    import polars
    import pyarrow.parquet as pq

    found = con.uql(COUNT)
    found.write_parquet(tmp_path / "n.parquet")
    found.to_table("kept")
    forms = [
        found.arrow().column_names,
        pq.read_table(tmp_path / "n.parquet").column_names,
        found.relation().columns,
        polars.DataFrame(found).columns,
        con.sql("FROM kept").columns,
        con.uql("FROM found").columns,
    ]
    assert all(form == ["n", "n_low", "n_high"] for form in forms), forms


@pytest.mark.parametrize(
    "expression",
    [
        "count(*) & 1",
        "count(*) << 2",
        "printf('%d', count(*))",
        "format('{:d}', count(*))",
        "repeat('x', count(*))",
        "CASE WHEN count(*) & 1 = 1 THEN 'odd' ELSE 'even' END",
        "count(*)::USMALLINT",
    ],
)
def test_any_function_of_an_estimate_has_the_value_of_the_count_that_is_shown(
    con: uql.Connection, expression: str
) -> None:
    found = con.uql(f"SELECT count(*) AS n, {expression} AS x FROM reviews WHERE {POS} WITH (budget = 32)").fetchall()
    ((n, x),) = found
    assert con.uql(f"SELECT {expression.replace('count(*)', '$n::BIGINT')} AS x", {"n": n}).fetchall() == [(x,)]


def test_an_end_that_a_cast_cannot_hold_is_open() -> None:
    with uql.connect(model=HashModel({"it is so": 0.45}), ledger=":memory:", budget=60) as con:
        con.execute("CREATE TABLE notes AS SELECT 'text number ' || range AS text FROM range(500)")
        n = con.uql('SELECT count(*) AS n FROM notes WHERE "it is so"').estimates["n"]
        found = con.uql('SELECT count(*)::UTINYINT AS x FROM notes WHERE "it is so"')
        x = found.estimates["x"]
        assert n.value <= 255 < n.high and x.high == float("inf") and found.fetchall()[0][0] == x.value


def test_a_sum_that_its_type_cannot_hold_is_null_with_an_interval(con: uql.Connection) -> None:
    large = "170141183460469231731687303715884105700::HUGEINT"
    found = con.uql(f"SELECT sum({large}) AS x FROM reviews WHERE {POS} WITH (budget = 32)")
    assert found.fetchall() == [(None,)] and 1e38 < found.estimates["x"].low < found.estimates["x"].high
    assert any("x is NULL where it is too large for HUGEINT" in warning for warning in found.warnings)


@pytest.mark.thorough
@pytest.mark.parametrize("rare", ["\"the end\" = 'lost'", '"the minutes" > 58', "\"the end\" IN ('lost')"])
def test_a_sum_of_ones_and_noughts_is_the_count_of_those_for_which_its_condition_holds(rare: str) -> None:
    def answer(question: object, row: object) -> object:
        i = int(row.cells[0].value.split()[1])  # type: ignore[attr-defined]
        return i % 60 if question.text == "the minutes" else "lost" if i % 60 == 59 else "won"  # type: ignore[attr-defined]

    con = uql.connect(model=HashModel(answers=answer), ledger=":memory:", budget=240, seed=1)
    con.execute("CREATE TABLE games AS SELECT 'game ' || i || ' of the year' AS body FROM range(2000) r(i)")
    ways = [f"count(*) FILTER (WHERE {rare})", f"sum(CASE WHEN {rare} THEN 1 END)", f"count_if({rare})"]
    ways += [f"sum(CASE WHEN {rare} THEN 1 ELSE 0 END)"]
    found = [con.uql(f"SELECT {way} AS n FROM games") for way in ways]
    ends = [(r.estimates["n"].value, r.estimates["n"].low, r.estimates["n"].high) for r in found]
    assert ends == [pytest.approx(ends[0])] * 4
    assert ends[0][1] <= 33 <= ends[0][2] < 150
    assert not any("far larger" in note for r in found for note in r.notes)


def test_a_sum_of_other_numbers_is_still_said_to_lack_those_that_were_not_seen() -> None:
    model = HashModel(answers=lambda question, row: "won")
    con = uql.connect(model=model, ledger=":memory:", budget=64)
    con.execute("CREATE TABLE games AS SELECT 'game ' || i || ' of the year' AS body FROM range(2000) r(i)")
    seen = con.uql("SELECT sum(CASE WHEN \"the end\" = 'won' THEN 1 ELSE 1000 END) AS n FROM games").estimates["n"]
    assert seen.high == float("inf")
