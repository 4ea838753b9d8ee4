"""What passes the guard stays within its limits, also inside a single call of a function."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from nl.guarded import run_sql
from nl.shop import Connected, plan, uql_node

from uql.base.errors import DataError, GuardError
from uql.base.schema import Field
from uql.base.settings import Settings
from uql.llm.providers.scripted import Scripted
from uql.nl.guard.duckdb_process import ChildDuckDB, child_duckdb
from uql.nl.guard.guard import check_sql, check_uql
from uql.nl.guard.workspace import MOST_CHARS, Workspace
from uql.nl.plan import result_schema
from uql.nl.plan.result_schema import Shapes

TABLES = ["reviews", "films"]
NESTED = "replace(" * 9 + "text" + ", 'a', 'aaaaaaaaaa')" * 9
IN_STEPS = "SELECT text AS x FROM reviews"
for _ in range(9):
    IN_STEPS = f"SELECT replace(x, 'a', 'aaaaaaaaaa') AS x FROM ({IN_STEPS}) AS s"

UNBOUNDED = [
    f"SELECT length({NESTED}) FROM reviews",
    IN_STEPS,
    "WITH a AS (SELECT replace(text, 'e', 'eeeeeeeeeeeeeeee') AS x FROM reviews) SELECT replace(x, 'e', 'eeeeeeeeeeeeeeee') FROM a",
    "SELECT replace(text, 'a', text) FROM reviews",
    "SELECT replace(text, 'a', 'b' || text) FROM reviews",
    "SELECT regexp_replace(text, '', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', 'g') FROM reviews",
    r"SELECT regexp_replace(regexp_replace(text, '(.*)', '\1\1\1\1\1\1\1\1\1\1\1\1'), '(.*)', '\1\1\1\1\1\1\1\1\1\1\1\1') FROM reviews",
    "SELECT levenshtein(text, text) FROM reviews",
    "SELECT damerau_levenshtein(a.text, b.text) FROM reviews AS a, reviews AS b",
    "SELECT levenshtein(left(text, 100000), 'Alien') FROM reviews",
    "SELECT levenshtein(substr(text, 1, stars), 'Alien') FROM reviews",
]

SHADOWED = [
    'SELECT (WITH "/etc/passwd" AS (SELECT 1) SELECT 1) AS a, * FROM "/etc/passwd"',
    'WITH "x.csv" AS (SELECT * FROM "x.csv") SELECT * FROM "x.csv"',
    "WITH duckdb_settings AS (SELECT * FROM duckdb_settings) SELECT * FROM duckdb_settings",
    "WITH a AS (SELECT * FROM sqlite_master), sqlite_master AS (SELECT 1) SELECT * FROM a",
    "SELECT * FROM (WITH secret AS (SELECT 1) SELECT * FROM secret) AS a, secret",
]

NEW_IN_DUCKDB = """
SELECT reservoir_quantile(stars, 0.5, 1000000000) FROM reviews
SELECT id.getenv() FROM reviews
SELECT system.main.getenv('HOME')
SELECT * REPLACE (getenv('HOME') AS id) FROM reviews
SELECT TRY(getenv('HOME'))
SELECT getvariable('x')
SELECT printf('%1000000000d', 1)
SELECT format('{:>1000000000}', 'x')
SELECT bar(1, 0, 1, 1000000000)
SELECT list_resize([1], 1000000000)
SELECT json_serialize_sql('SELECT 1')
SELECT add_parquet_key('a', 'b')
SELECT write_log('x'), enable_logging()
SELECT setseed(0.1), gen_random_uuid()
SELECT * FROM read_text(['/etc/passwd'])
SELECT * FROM read_duckdb('other.duckdb')
SELECT * FROM read_xlsx('x.xlsx')
SELECT * FROM delta_scan('s3://x')
SELECT * FROM iceberg_scan('s3://x')
SELECT * FROM st_read('x.shp')
SELECT * FROM pandas_scan(1)
SELECT * FROM arrow_scan(1, 2, 3)
SELECT * FROM which_secret('s3://x', 's3')
SELECT * FROM duckdb_logs()
SELECT * FROM json_execute_serialized_sql('x')
SELECT * FROM from_substrait('x')
SELECT * FROM force_checkpoint()
SELECT * FROM IDENTIFIER('reviews')
SELECT * FROM (PIVOT reviews ON film USING count(*))
SELECT * FROM (SUMMARIZE reviews)
SELECT * FROM reviews AT (VERSION => 1)
SELECT * FROM reviews, LATERAL unnest(generate_series(1, reviews.id * 1000000000)) AS x(n)
COPY (WITH x AS (SELECT 1) SELECT * FROM x) TO 'x.csv'
WITH x AS (COPY reviews TO 'x.csv') SELECT 1
WITH RECURSIVE t(n) USING KEY (n) AS (SELECT 1 UNION SELECT n FROM t) SELECT * FROM t
FROM 'https://example.com/x.parquet' SELECT *
""".strip().splitlines()

BOUNDED = [
    "SELECT replace(replace(replace(text, '$', ''), ',', ''), ' ', '') FROM reviews",
    "SELECT regexp_replace(text, '[^a-z]+', ' ', 'g'), regexp_replace(film, '(A)(l)', '\\2\\1') FROM reviews",
    "SELECT replace(film, '&', 'and'), replace(text, '&', 'and') FROM reviews",
    "SELECT levenshtein(lower(left(film, 50)), 'alien'), damerau_levenshtein(substr(film, 1, 50), 'Brazil') FROM reviews",
    "WITH a AS (SELECT film FROM reviews), b AS (SELECT film FROM a) SELECT * FROM b, a",
    "WITH a AS (WITH c AS (SELECT film FROM reviews) SELECT * FROM c) SELECT * FROM a",
    "WITH reviews AS (SELECT film FROM reviews WHERE stars > 3) SELECT film FROM reviews",
]


@pytest.mark.parametrize("text", [*SHADOWED, *NEW_IN_DUCKDB])
def test_what_hides_a_table_or_reads_more_than_tables_is_refused(text: str) -> None:
    for check in (lambda: check_sql(text, TABLES), lambda: check_uql(text, TABLES)):
        with pytest.raises(GuardError) as error:
            check()
        assert error.value.code == "UQL620"


@pytest.mark.parametrize("text", BOUNDED)
def test_calls_of_bounded_growth_and_names_of_with_pass_and_run(text: str) -> None:
    check_uql(text, TABLES)
    table = pa.table({"film": ["Alien"], "text": ["a & b"], "stars": [4]})
    assert run_sql(text, {"reviews": table, "films": table}).num_rows == 1


@pytest.mark.thorough
@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", UNBOUNDED)
def test_what_could_grow_in_one_call_passes_and_ends_within_its_limits(text: str) -> None:
    check_uql(text, TABLES)
    table = pa.table({"film": ["Alien"] * 2, "text": ["a & b e" * 50_000] * 2, "stars": [4_000_000] * 2})
    run_sql("SELECT 1 AS one", {})  # a process is warm
    began = time.monotonic()
    with suppress(GuardError):
        run_sql(text, {"reviews": table, "films": table}, timeout_s=0.3)
    assert time.monotonic() - began < 0.3 + 10.0  # on a busy machine


def test_a_statement_that_cannot_be_read_is_refused_without_words_of_the_parser(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(GuardError):
        check_sql("WITH x AS (COPY reviews TO 'x') SELECT 1", TABLES)
    assert capfd.readouterr().err == ""


def test_a_result_with_a_text_of_millions_of_characters_is_not_kept() -> None:
    with Workspace(lambda origin: pa.table({}), {}, Settings()) as workspace:
        with pytest.raises(DataError, match="longer than"):
            workspace.put("long", pa.table({"t": ["x" * (MOST_CHARS + 1)], "n": [1]}))
        workspace.put("short", pa.table({"t": ["x" * 100, None], "n": [1, 2]}))
        assert workspace.rows("short") == 2


def test_columns_of_one_name_get_names_of_their_own() -> None:
    with Workspace(lambda origin: pa.table({}), {}, Settings()) as workspace:
        workspace.put("twice", pa.Table.from_arrays([pa.array([n]) for n in range(3)], names=["id", "id_1", "ID"]))
        assert workspace.table("twice").column_names == ["id", "id_1", "ID_2"]


@pytest.mark.parametrize("mode", ["dag", "meta"])
def test_nothing_that_a_model_wrote_is_run_while_its_columns_are_looked_up(tmp_path: Path, mode: str) -> None:
    """Behind a query that is not UQL's stands a second statement, which DuckDB would run with the first."""
    stolen = tmp_path / "stolen.csv"
    hostile = f"SELECT x.id FROM shops AS m, LATERAL (SELECT m.id) AS x; COPY (SELECT 42) TO '{stolen}'"
    operators = {"operators": [{"operator": "TableAnalytics", "sources": ["shops"], "confidence": 0.9}]}
    shop = Connected(
        [
            plan(uql_node("a", hostile), again=True),
            Scripted("operators", operators, again=True),
            Scripted("uql", {"sql": hostile}, again=True),
        ]
    )
    answer = shop.con.ask("Where is shop 2?", mode=mode, decomposer=False, adapters=["uql"])
    assert not answer.answered
    assert "2 statements" in (answer.cannot if mode == "dag" else shop.prompts("uql")[1])
    assert not stolen.exists()


def test_the_shapes_of_tables_reach_no_file() -> None:
    shapes = Shapes({})
    with pytest.raises(GuardError):
        shapes.of_sql("SELECT * FROM read_csv('/etc/passwd')")
    with pytest.raises(duckdb.Error, match="disabled"):
        shapes.describe("SELECT * FROM read_csv('/etc/passwd')")


def test_a_statement_is_bound_once_over_the_same_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[object] = []

    @contextmanager
    def counted(*limits: Any) -> Iterator[ChildDuckDB]:
        children.append(limits)
        with child_duckdb(*limits) as child:
            yield child

    monkeypatch.setattr(result_schema, "child_duckdb", counted)
    named = f"t_{time.time_ns()}"
    for type, n in (("BIGINT", 2), ("BIGINT", 2), ("DATE", 4)):
        shapes = Shapes({})
        shapes.add(named, [Field("id", type)])
        assert [f.type for f in shapes.of_sql(f"SELECT id FROM {named}")] == [type]
        text = f'SELECT id FROM {named} WHERE "the number {{id}} is odd"'
        assert [f.type for f in shapes.of_uql(text, Settings())] == [type]
        assert len(children) == n
    for n in (5, 6):  # what cannot be bound is said anew
        with pytest.raises(GuardError, match="missing"):
            shapes.of_sql(f"SELECT missing FROM {named}")
        assert len(children) == n


def test_a_process_that_is_killed_while_it_sends_its_rows_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(self: ChildDuckDB, order: object, table: object) -> None:
        raise EOFError

    with child_duckdb(64, 5.0) as child:
        monkeypatch.setattr(ChildDuckDB, "_exchange", cut)
        with pytest.raises(GuardError) as error:
            child.arrow("SELECT 1 AS one")
        assert error.value.code == "UQL621"
