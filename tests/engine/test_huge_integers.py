"""The least HUGEINT, -2^127: Arrow holds it as a DECIMAL of 38 digits, whose text DuckDB cannot make; an error in DuckDB ends its database."""

from __future__ import annotations

import io
from collections.abc import Callable
from decimal import Context, Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hash_model import HashModel

import uql
from uql.base.errors import DataError
from uql.show.render import write_csv, write_json, write_markdown, write_parquet

LEAST = -(2**127)
GREATEST = 2**128 - 1
SQL = f"'{LEAST}'::HUGEINT"
STATEMENTS = [
    f"SELECT {SQL} AS m",
    f"SELECT [{SQL}] AS m",
    f"SELECT {{'a': {SQL}}} AS m",
    "SELECT m FROM numbers",
    'SELECT m FROM numbers WHERE "it is so"',
    'SELECT m, COUNT(*) AS n FROM numbers WHERE "it is so" GROUP BY m',
    'SELECT MIN(m) AS m FROM numbers WHERE "it is so"',
]


@pytest.fixture
def con() -> uql.Connection:
    connection = uql.connect(model=HashModel({"it is so": 1.0}), ledger=":memory:")
    connection.execute(f"CREATE TABLE numbers AS SELECT {SQL} AS m, 'a text of a row' AS body")
    return connection


def least_decimals(scale: int = 0) -> pa.Table:
    """Rows as only a broken file or frame has them."""
    data = pa.py_buffer(LEAST.to_bytes(16, "little", signed=True))
    return pa.table({"m": pa.Array.from_buffers(pa.decimal128(38, scale), 1, [None, data])})


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_least_huge_integer_is_shown_and_written_in_full(con: uql.Connection, statement: str) -> None:
    result = con.uql(statement)
    result.fetchall()
    assert str(LEAST) in str(result) and str(LEAST) in result._repr_html_()
    for write in (write_csv, write_json, write_markdown):
        stream = io.StringIO()
        write(result.arrow(), stream)
        assert str(LEAST) in stream.getvalue()
    assert con.uql("SELECT 1 AS one").fetchall() == [(1,)]


@pytest.mark.parametrize("scale", [0, 5])
def test_a_frame_with_a_number_beyond_decimal_is_refused_before_duckdb_reads_it(
    con: uql.Connection, scale: int
) -> None:
    frame = least_decimals(scale)
    with pytest.raises(DataError, match=r"UQL504.*column m.*beyond the 38 digits"):
        con.uql("SELECT m::VARCHAR FROM frame", {}).fetchall()
    assert frame.num_rows and con.uql("SELECT 1 AS one").fetchall() == [(1,)]


@pytest.mark.parametrize("scale", [0, 5, 38])
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT m::VARCHAR FROM '{0}'",
        "SELECT m::VARCHAR FROM read_parquet('{0}')",
        "SELECT m FROM '{0}' WHERE \"it is so\"",
        "CREATE TABLE kept AS SELECT m, \"it is so\" AS so FROM '{0}'",
    ],
)
def test_a_file_with_a_number_beyond_decimal_is_refused_before_duckdb_reads_it(
    con: uql.Connection, tmp_path: Path, statement: str, scale: int
) -> None:
    path = tmp_path / "broken.parquet"
    pq.write_table(least_decimals(scale), path)
    with pytest.raises(DataError, match=r"UQL503: .* holds a number in column m that is beyond the 38 digits"):
        con.uql(statement.format(path)).fetchall()
    assert con.uql("SELECT 1 AS one").fetchall() == [(1,)]


def test_the_greatest_and_the_least_number_of_38_digits_are_read(con: uql.Connection, tmp_path: Path) -> None:
    for scale in (0, 5, 38):
        ends = [Decimal(sign * (10**38 - 1)).scaleb(-scale, Context(prec=38)) for sign in (-1, 1)]
        pq.write_table(pa.table({"m": pa.array(ends, pa.decimal128(38, scale))}), tmp_path / "whole.parquet")
        assert con.uql(f"SELECT m FROM '{tmp_path}/whole.parquet'").fetchall() == [(end,) for end in ends]


def test_a_result_with_the_least_huge_integer_is_written_as_a_file_that_can_be_read(
    con: uql.Connection, tmp_path: Path
) -> None:
    write_parquet(con.uql("SELECT m, body FROM numbers").arrow(), tmp_path / "out.parquet")
    assert con.uql(f"SELECT m::HUGEINT AS m FROM '{tmp_path}/out.parquet'").fetchall() == [(LEAST,)]


def nested(path: Path, scale: int = 0) -> None:
    """A broken file whose number stands in a struct, where it is not looked for."""
    column = least_decimals(scale).column("m").combine_chunks()
    pq.write_table(pa.table({"m": pa.StructArray.from_arrays([column], ["a"])}), path)


def test_a_result_of_a_broken_file_that_has_no_text_is_an_error_in_words(con: uql.Connection, tmp_path: Path) -> None:
    nested(tmp_path / "broken.parquet", 5)
    result = con.uql(f"SELECT m FROM '{tmp_path}/broken.parquet'")
    result.fetchall()
    with pytest.raises(DataError, match="UQL509: a value of the result cannot be shown"):
        str(result)
    assert con.uql("SELECT 1 AS one").fetchall() == [(1,)]


def test_an_error_in_duckdb_says_that_the_database_has_to_be_opened_again(con: uql.Connection, tmp_path: Path) -> None:
    nested(tmp_path / "broken.parquet")

    def refused(run: Callable[[], object]) -> str:
        with pytest.raises(DataError) as caught:
            run()
        return str(caught.value)

    first = refused(lambda: con.uql(f"SELECT m::VARCHAR AS text FROM '{tmp_path}/broken.parquet'").fetchall())
    assert first.startswith("UQL509: DuckDB") and "Stack Trace" not in first
    if duckdb.__version__ < "2":  # an error of the value alone
        assert con.uql("SELECT 1 AS one").fetchall() == [(1,)]
        return
    assert "UQL509: DuckDB failed on the statement" in first and "open the database again" in first
    for run in (con.uql, con.execute):
        second = refused(lambda run=run: run("SELECT 1 AS one").fetchall())
        assert second.startswith("UQL506: an error in DuckDB has ended the connection") and "uql.connect" in second


def test_a_number_of_more_digits_than_hugeint_has_is_the_text_that_duckdb_gives(con: uql.Connection) -> None:
    digits = "1234567890" * 6
    assert con.uql(f"SELECT {digits}::BIGNUM AS n, [{digits}::BIGNUM] AS l").fetchall() == [(digits, [digits])]


@pytest.mark.parametrize("value", ["5", "'a'", "[1, 2]", "{'a': DATE '2024-01-01'}", "NULL"])
def test_a_variant_is_the_value_that_it_holds(con: uql.Connection, value: str) -> None:
    rows = con.uql(f"SELECT {value}::VARIANT AS v, [{value}::VARIANT] AS l").fetchall()
    assert rows == con.execute(f"SELECT {value}::VARIANT AS v, [{value}::VARIANT] AS l").fetchall()
