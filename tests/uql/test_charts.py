"""The plot that fits a result."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import duckdb
import pytest
from hash_model import HashModel

import uql
from uql.base.errors import DataError

pytest.importorskip("vl_convert", reason="the plot extra is not installed")


@pytest.fixture(scope="module")
def duck() -> duckdb.DuckDBPyConnection:
    from PIL import Image

    duck = duckdb.connect(":memory:")
    duck.execute(
        "CREATE TABLE calls AS SELECT i AS id, 'call number ' || i || ' of a long day' AS text, 'team ' || i % 3 AS team, DATE '2026-01-01' + (i % 10)::INTEGER AS day, i * 1.5 AS minutes FROM range(600) r(i)"
    )
    picture = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(picture, "PNG")
    duck.execute("CREATE TABLE shots AS SELECT i AS id, ?::BLOB AS picture FROM range(30) r(i)", [picture.getvalue()])
    return duck


@pytest.fixture
def con(duck: duckdb.DuckDBPyConnection) -> Iterator[uql.Connection]:
    """With a ledger of its own: one that another test has filled makes a count exact."""
    with uql.attach(duck, model=HashModel({"it is late": 0.4}), ledger=":memory:") as made:
        yield made


def marks(plot: uql.show.plots.Plot) -> list[str]:
    layers = plot.spec.get("layer", [plot.spec])
    return [layer["mark"]["type"] if isinstance(layer["mark"], dict) else layer["mark"] for layer in layers]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("query", "drawn"),
    [
        ("SELECT team, COUNT(*) AS n FROM calls GROUP BY ALL ORDER BY 1", ["bar"]),
        ('SELECT team, COUNT(*) AS n FROM calls WHERE "it is late" GROUP BY ALL', ["bar", "rule"]),
        ('SELECT COUNT(*) AS n FROM calls WHERE "it is late"', ["bar", "rule"]),
        ("SELECT day, SUM(minutes) AS m FROM calls GROUP BY ALL ORDER BY 1", ["line"]),
        ('SELECT day, COUNT(*) AS n FROM calls WHERE "it is late" GROUP BY ALL ORDER BY 1', ["area", "line"]),
        ("SELECT minutes FROM calls", ["bar"]),
        ("SELECT id, minutes FROM calls", ["point"]),
        ("SELECT id, picture FROM shots", ["image", "text"]),
    ],
)
def test_the_columns_choose_the_plot(con: uql.Connection, query: str, drawn: list[str]) -> None:
    plot = con.uql(query).plot()
    assert marks(plot) == drawn
    if len(drawn) > 1:
        assert plot.svg().startswith("<svg")


def test_an_interval_is_drawn_from_low_to_high(con: uql.Connection) -> None:
    result = con.uql('SELECT COUNT(*) AS n FROM calls WHERE "it is late"')
    estimate = result.estimates["n"]
    assert not isinstance(estimate, list)
    (row,) = result.plot().tables["rows"].to_pylist()
    assert (row["low"], row["high"]) == (estimate.low, estimate.high)


def test_an_exact_number_has_no_interval(con: uql.Connection) -> None:
    rows = con.uql('SELECT COUNT(*) AS n FROM calls WHERE "it is late" WITH (exact)').plot().tables["rows"]
    assert rows.column("low").to_pylist() == [None]


def test_bars_of_one_name_stand_apart(con: uql.Connection) -> None:
    plot = con.uql("SELECT 'same' AS name, i AS n FROM range(3) r(i)").plot("bar")
    assert plot.tables["rows"].column("label").to_pylist() == ["same", "same (2)", "same (3)"]


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("SELECT text FROM calls", None),
        ("SELECT 1 AS a", "scatter"),
        ("SELECT 1 AS a", "images"),
        ("SELECT 1 AS a", "line"),
    ],
)
def test_what_cannot_be_drawn_says_what_it_would_need(con: uql.Connection, query: str, kind: None) -> None:
    with pytest.raises(DataError) as error:
        con.uql(query).plot(kind)
    assert error.value.code == "UQL514" and error.value.help


def test_bars_for_a_terminal_are_as_long_as_their_numbers(con: uql.Connection) -> None:
    shown = con.uql("SELECT 'a' AS k, 10 AS n UNION ALL SELECT 'bb', 5").bars(width=10)
    assert shown == "a   ██████████ 10\nbb  █████ 5"


def test_what_is_no_finite_number_or_day_is_drawn_too(con: uql.Connection) -> None:
    numbers = "SELECT * FROM (VALUES ('a', 'inf'::DOUBLE), ('b', 4), ('c', 'nan'), ('d', '-inf'), ('e', 2)) AS v(k, n)"
    shown = con.uql(numbers).bars(width=4)
    assert shown == "a  ████ inf\nb  ████ 4\nc   nan\nd  ████ -inf\ne  ██ 2"
    for first in ("DATE 'infinity'", "TIMESTAMP '-infinity'", "DATE '20000-01-01'"):
        days = con.uql(f"SELECT {first} AS d, 1 AS n UNION ALL SELECT DATE '2024-01-01', 2")
        assert days.bars(width=4).endswith("████ 2")
        assert "<svg" in days.plot().svg()


def test_a_plot_is_written_in_the_format_of_its_name(con: uql.Connection, tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    plot = con.uql("SELECT 'a' AS k, 10 AS n").plot()
    assert plot.save(folder / "x.svg").read_text("utf-8").startswith("<svg")
    assert plot.save(folder / "x.png").read_bytes().startswith(b"\x89PNG")
    assert "data:image/svg+xml" in plot.save(folder / "x.html").read_text("utf-8")
    assert json.loads(plot.save(folder / "x.json").read_text("utf-8"))["datasets"]["rows"] == [
        {"v": 10, "low": None, "high": None, "label": "a"}
    ]


def test_columns_of_one_name_are_drawn(con, duck):
    assert con.uql("SELECT picture, picture FROM shots").plot().svg()
    assert marks(con.uql("SELECT team, minutes, minutes FROM calls LIMIT 5").plot())
