"""What a result looks like, as a table and in files."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from uql.engine.outcome import Outcome, with_bounds
from uql.kernels.answers import RowError
from uql.llm.run_record import Cost
from uql.sampling.base import Estimate
from uql.show.render import (
    cell_width,
    cost_line,
    footer,
    format_estimate,
    printable,
    table,
    text,
    write_csv,
    write_json,
    write_markdown,
    write_parquet,
)
from uql.ui.grid import exported

GROUPS = pa.table({"reason": ["late", "rude", None], "n": [120, 33, 5]})
ESTIMATES = {
    "n": [Estimate(120.2, 106, 134.4), Estimate(33, 20, 70, method="uniform", calls=64), Estimate(5, 5, 5, exact=True)]
}


def written(writer: Any, data: pa.Table, **options: Any) -> str:
    stream = io.StringIO()
    writer(data, stream, **options)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("estimate", "shown"),
    [
        (Estimate(120.2, 106, 134.4), "120 ± 14"),
        (Estimate(1203, 1100, 1306), "1203 ± 103"),
        (Estimate(0.0512, 0.041, 0.0614), "0.051 ± 0.010"),
        (Estimate(37, 21, 88), "37 (21–88)"),
        (Estimate(0, 0, 601.2), "0 (0–601)"),
        (Estimate(5, 5, 5, exact=True), "5"),
        (Estimate(3.25, None, None), "3.25"),
        (Estimate(4, 4, math.inf), "≥ 4"),
        (Estimate(4, -math.inf, 4), "≤ 4"),
        (Estimate(4.4, 3.0, math.inf), "4.4 (3.0–∞)"),
        (Estimate(4.4, -math.inf, math.inf), "4.4 (−∞–∞)"),
        (Estimate(None, None, None), "NULL"),
        (Estimate(None, 1, 5), "? (1–5)"),
        (Estimate(7, 7, 7), "7 ± 0"),
    ],
)
def test_an_estimate_is_shown_with_its_interval(estimate: Estimate, shown: str) -> None:
    assert format_estimate(estimate) == shown


def test_a_table_looks_like_duckdbs_with_intervals() -> None:
    assert table(GROUPS, types=["VARCHAR", "BIGINT"], estimates=ESTIMATES) == "\n".join(
        [
            "┌─────────┬────────────┐",
            "│ reason  │     n      │",
            "│ varchar │   bigint   │",
            "├─────────┼────────────┤",
            "│ late    │   120 ± 14 │",
            "│ rude    │ 33 (20–70) │",
            "│ NULL    │          5 │",
            "└─────────┴────────────┘",
            "3 rows",
        ]
    )


def test_a_long_table_shows_both_ends_and_says_so() -> None:
    shown = table(pa.table({"i": list(range(1000))}), max_rows=4)
    assert [line.strip("│ ") for line in shown.splitlines()[4:-2]] == ["0", "1", "·", "·", "·", "998", "999"]
    assert shown.endswith("1,000 rows (4 shown)")


@pytest.mark.parametrize("width", [20, 40, 80, 133])
def test_a_wide_table_fits_the_terminal(width: int) -> None:
    data = pa.table({f"column_{i}": ["a long text of some words " * i, "日本語" * 20] for i in range(14)})
    lines = table(data, width=width).splitlines()
    assert {cell_width(line) for line in lines[:-1]} == {cell_width(lines[0])}
    assert cell_width(lines[0]) <= max(width, 30)
    assert "14 columns" in lines[-1]


def test_no_rows_and_no_columns_are_shown_as_such() -> None:
    assert table(pa.table({"a": pa.array([], pa.int64())})).endswith("0 rows")
    assert table(pa.table({})) == ""


def test_data_cannot_steer_the_terminal() -> None:
    evil = "red\x1b[31m\u202eback\r\nwards\x07"
    shown = table(pa.table({evil: [evil]}))
    assert not set(shown) & set("\x1b\u202e\r\x07")
    assert printable("dé日本") == "dé日本"


def test_csv_reads_back_with_null_and_empty_apart() -> None:
    data = pa.table({"a": ["x,y", 'say "hi"', "", None, "two\nlines", " space "], "b": [1, 2, 3, 4, None, 6]})
    out = written(write_csv, data)
    assert list(csv.reader(io.StringIO(out)))[1:5] == [["x,y", "1"], ['say "hi"', "2"], ["", "3"], ["", "4"]]
    assert out.splitlines()[3:5] == ['"",3', ",4"]


def test_what_a_spreadsheet_may_take_for_a_formula_is_written_as_duckdb_and_the_page_write_it(tmp_path: Path) -> None:
    """Whatever stands before a formula would be read back as a part of the value: docs/security.md says that this is not promised."""
    data = pa.table({"=name": ["=1+1", "@SUM(A1)", "-2+3", "+1", "\t=1", '=HYPERLINK("http://x","y")']})
    duckdb.execute(f"COPY data TO '{tmp_path}/duckdb.csv' (HEADER)")
    out = written(write_csv, data)
    with duckdb.connect() as con:
        theirs, ours = (
            con.execute(f"FROM read_csv('{path}', header = true, all_varchar = true, delim = ',')").fetchall()
            for path in (tmp_path / "duckdb.csv", _kept(tmp_path / "ours.csv", out))
        )
    assert ours == theirs == [(value,) for value in data.column(0).to_pylist()]
    assert exported(Outcome(data, ["VARCHAR"], {}, [], Cost()), "csv").decode() == out
    assert out.splitlines()[:2] == ["=name", "=1+1"]


def _kept(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_csv_and_json_are_read_by_duckdb(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2], "t": ["a", None], "x": [0.5, 1e300], "when": [dt.date(2024, 1, 2), None]})
    (tmp_path / "x.csv").write_text(written(write_csv, data))
    (tmp_path / "x.json").write_text(written(write_json, data))
    rows = [(1, "a", 0.5, dt.date(2024, 1, 2)), (2, None, 1e300, None)]
    with duckdb.connect() as con:
        assert con.execute(f"FROM '{tmp_path}/x.csv'").fetchall() == rows
        assert con.execute(f"FROM '{tmp_path}/x.json'").fetchall() == rows


def test_json_is_strict_and_keeps_types() -> None:
    data = pa.table(
        {
            "f": [1.5, math.nan, math.inf, None],
            "l": [[1.0, math.nan], [], None, [math.inf]],
            "s": [{"a": 1}, None, {"a": None}, {"a": 2}],
            "d": [Decimal("1.10")] * 4,
            "t": ['q"', "\\", "ü\n", "inf"],
        }
    )

    def refuse(word: str) -> None:
        raise AssertionError(word)

    rows = json.loads(written(write_json, data), parse_constant=refuse)
    assert [row["f"] for row in rows] == [1.5, None, None, None]
    assert [row["l"] for row in rows] == [[1.0, None], [], None, [None]]
    assert rows[0]["s"] == {"a": 1}
    assert [row["t"] for row in rows] == ['q"', "\\", "ü\n", "inf"]


def test_json_of_nothing_is_an_empty_array_and_equal_names_are_told_apart() -> None:
    assert json.loads(written(write_json, pa.table({"a": pa.array([], pa.int64())}))) == []
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"])
    assert json.loads(written(write_json, twice)) == [{"n": 1, "n_1": 2}]


def test_files_have_the_bounds_of_an_estimate_beside_it(tmp_path: Path) -> None:
    assert written(write_csv, GROUPS, estimates=ESTIMATES).splitlines() == [
        "reason,n,n_low,n_high",
        "late,120,106.0,134.4",
        "rude,33,20.0,70.0",
        ",5,5.0,5.0",
    ]
    write_parquet(GROUPS, tmp_path / "x.parquet", estimates=ESTIMATES)
    assert pq.read_table(tmp_path / "x.parquet").column_names == ["reason", "n", "n_low", "n_high"]


def test_parquet_has_texts_for_what_it_has_no_type_for(tmp_path: Path) -> None:
    rows = duckdb.sql("SELECT 1 AS a, INTERVAL 2 DAY AS i, union_value(k := 3) AS u").to_arrow_table()
    write_parquet(rows, tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == [{"a": 1, "i": "2 days", "u": "3"}]


def test_an_exact_answer_gets_no_columns_of_bounds() -> None:
    assert with_bounds(GROUPS, {"n": [Estimate(1, 1, 1, exact=True)] * 3}).column_names == ["reason", "n"]


def test_a_column_that_is_called_like_a_bound_is_kept() -> None:
    data = pa.table({"n": [1], "n_low": ["mine"]})
    assert with_bounds(data, {"n": Estimate(1, 0, 2)}).column_names == ["n", "n_low_", "n_high", "n_low"]


def test_markdown_escapes_what_would_break_the_table() -> None:
    data = pa.table({"a|b": ["x|y", "two\nlines", None], "n": [1, 2, 3]})
    assert written(write_markdown, data, estimates={"n": [Estimate(1, 0, 2)]}).splitlines() == [
        "| a\\|b | n |",
        "| --- | ---: |",
        "| x\\|y | 1 ± 1 |",
        "| two<br>lines | 2 |",
        "| NULL | 3 |",
    ]


def test_a_bound_is_not_said_to_have_an_interval() -> None:
    bound = Estimate(6, 6, math.inf, calls=128, method="at least")
    result = Outcome(pa.table({"n": [6]}), ["BIGINT"], {"n": bound}, [], Cost())
    assert footer(result) == ["bound from 128 rows asked: the others may go beyond it"]


@pytest.mark.parametrize(
    "value",
    [
        "![](https://example.org/seen?by=me)",
        "[a link](javascript:alert(1))",
        "[a][b]",
        "<img src=x onerror=alert(1)>",
        "</td><script>alert(1)</script>",
        "<!-- a comment",
        "<https://example.org>",
        "\\<b>x",
        "\\[a](https://example.org)",
        "`` ` <b>x</b>",
        "a | <b>x",
        "[a\\](https://example.org)",
    ],
)
def test_a_value_is_neither_html_nor_a_link_nor_a_picture_in_markdown(value: str) -> None:
    parse = pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True}).enable("table").parse
    text = written(write_markdown, pa.table({value: [value], "b": ["https://example.org"]}))
    blocks = parse(f"{text}\n\n[b]: https://example.org\n")
    tokens = [token for block in blocks for token in [block, *(block.children or [])]]
    assert [block.type for block in blocks].count("td_open") == 2
    assert not {token.type for token in tokens} & {"link_open", "image", "html_block", "html_inline"}


def test_the_footer_says_what_must_be_known() -> None:
    result = Outcome(
        pa.table({"n": [120]}),
        ["BIGINT"],
        {"n": Estimate(120, 90, 150, calls=64, unknown=2, method="uniform")},
        [RowError(0, "it is so", kind, "") for kind in ("timeout", "timeout", "empty")],
        Cost(calls=64, cached=3, failed=1, input_tokens=3120, output_tokens=64, usd=None, seconds=12.34),
        ["a row was cut"],
        ["found 37 of about 120"],
        partial=True,
    )
    assert footer(result) == [
        "estimate from 64 rows asked (uniform), interval at 95 %, 2 of them without an answer",
        "found 37 of about 120",
        "partial: a limit was reached before the end",
        "warning: a row was cut",
        "3 rows without an answer: timeout 2, empty 1",
        "price unknown, 64 calls, 3 from the ledger, 1 failed, 3,120 + 64 tokens, 12.3 s",
    ]
    assert "120 ± 30" in text(result)
    result.run = "3f2a"
    assert 'partial: a limit was reached before the end; con.resume("3f2a") continues it' in footer(result)
    assert "partial: a limit was reached before the end; uql resume 3f2a continues it" in footer(
        result, "uql resume {}"
    )


def test_a_query_that_asked_nobody_has_no_footer() -> None:
    assert footer(Outcome(pa.table({"n": [1]}), ["BIGINT"], {}, [], Cost())) == []
    assert cost_line(Cost(calls=1, usd=0.00123, seconds=1)) == "$0.0012, 1 call, 1.0 s"
