"""Read-only sessions: one list of statements through the page, the shell and the command line."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hash_model import HashModel

import uql
from uql.base.errors import UQLError
from uql.cli import main
from uql.compiler import changing_functions
from uql.session.read_only import reads

CHANGES = [
    "COPY t TO '{out}'",
    "CREATE TABLE x AS SELECT 1 AS a",
    "CREATE TEMP TABLE x AS SELECT 1 AS a",
    "INSERT INTO t VALUES (2)",
    "INSERT INTO t (SELECT 2)",
    "DELETE FROM t",
    "UPDATE t SET a = 2",
    "MERGE INTO t USING (SELECT 1 AS a) s ON t.a = s.a WHEN MATCHED THEN DELETE",
    "DROP TABLE t",
    "SET threads = 1",
    "PRAGMA threads = 1",
    "ATTACH '{out}' AS other",
    "EXPORT DATABASE '{out}'",
    "UPDATE EXTENSIONS",
    "CALL force_checkpoint()",
    "BEGIN",
    "COPY (SELECT a, \"it is good\" AS good FROM t) TO '{out}'",
    "WITH x AS (INSERT INTO t VALUES (5) RETURNING *) SELECT * FROM x",
    "WITH y AS (FROM t), x AS (WITH z AS (FROM y) DELETE FROM t RETURNING *) FROM x",
    "WITH x AS (COPY t TO '{out}') SELECT * FROM x",
    "DESCRIBE (WITH x AS (COPY t TO '{out}') FROM x)",
    "PIVOT (WITH x AS (COPY t TO '{out}') FROM x) ON a",
    "FROM enable_logging(storage = 'file', storage_path = '{out}')",
    "SELECT * FROM system.main.\"enable_profiling\" /* a comment */ (format = 'json', save_location = '{out}', coverage = 'all')",
    "FROM query('FROM enable_logging(storage = ''file'', storage_path = ''{out}'')')",
    "FROM query('FROM enable' || '_logging(storage = ''file'', storage_path = ''{out}'')')",
    "/* a /* comment */ ' */ FROM enable_logging(storage = 'file', storage_path = '{out}') --'",
    "PIVOT (FROM enable_logging(storage = 'file', storage_path = '{out}')) ON a",
    "SUMMARIZE FROM enable_logging(storage = 'file', storage_path = '{out}')",
    "SELECT \"it is good\" FROM enable_logging(storage = 'file', storage_path = '{out}')",
    "PIVOT (SELECT PROMPT \"it is good\" AS good FROM t) ON good; COPY t TO '{out}'",
    "SELECT 1 AS `a'` FROM enable_logging(storage = 'file', storage_path = '{out}') --'",
    "PIVOT (SELECT 1 AS `a'` FROM enable_logging(storage = 'file', storage_path = '{out}') --'\n) ON 1",
    "SELECT 1 FROM enable_logging\u200b(storage = 'file', storage_path = '{out}')",
    "FROM enable_logging\ufeff (storage = 'file', storage_path = '{out}')",
    "SELECT $€$ ' $€$ AS a FROM enable_logging(storage = 'file', storage_path = '{out}') --'",
]
EXPLAINED = [
    "EXPLAIN ANALYZE",
    "explain analyze",
    "EXPLAIN (ANALYZE)",
    "EXPLAIN (ANALYZE, FORMAT json)",
    "EXPLAIN",
    "-- a comment\nEXPLAIN /* another */ ANALYZE",
    "EXPLAIN (ANALYZE, FORMAT 'json) SELECT 1 --')",
]
QUERIES = [
    "FROM t",
    'SELECT a FROM t WHERE "{a} is good"',
    "EXPLAIN ANALYZE SELECT * FROM t",
    "/* a */ EXPLAIN (FORMAT json) FROM t",
    "SHOW TABLES",
    "DESCRIBE t",
    "SUMMARIZE t",
    "PIVOT t ON a USING count(*)",
    "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x WHERE n < 3) SELECT list(n) FROM x",
    "SELECT a AS update, a AS copy FROM t",
    "FROM query('FROM t WHERE a = 1')",
    "SELECT a AS query, checkpoint FROM (SELECT a, a AS checkpoint FROM t)",
    "SET uql.confidence = 0.9",
    "SET uql.ledger = ':memory:'",
]


def changes(out: Path) -> list[str]:
    written = [statement.format(out=out) for statement in CHANGES]
    return written + [f"{explain} {statement}" for explain in EXPLAINED for statement in written]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with duckdb.connect(tmp_path / "shop.duckdb") as con:
        con.execute("CREATE TABLE t AS SELECT 1 AS a")
    return tmp_path / "shop.duckdb"


def unchanged(run: Callable[[str], None], con: duckdb.DuckDBPyConnection, out: Path, every: int = 1) -> None:
    """Every n-th statement of the list is refused, and nothing is there that was not."""
    for statement in changes(out)[::every]:
        with pytest.raises(UQLError) as raised:
            run(statement)
        assert raised.value.code in ("UQL511", "UQL101"), statement
        assert not out.exists(), statement
    assert con.execute("SELECT * FROM t").fetchall() == [(1,)]
    assert con.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("t",)]


@pytest.mark.thorough
@pytest.mark.parametrize("in_memory", [True, False])
def test_a_read_only_connection_refuses_every_statement_that_changes_something(
    file: Path, in_memory: bool, tmp_path: Path
) -> None:
    duck = duckdb.connect(":memory:" if in_memory else file, read_only=not in_memory)
    if in_memory:
        duck.execute("CREATE TABLE t AS SELECT 1 AS a")
    con = uql.attach(duck, model=HashModel(), ledger=":memory:")
    con.only_read()
    unchanged(lambda statement: con.uql(statement).run(), duck, tmp_path / "out")
    with con.cursor() as cursor:
        unchanged(lambda statement: cursor.uql(statement).run(), duck, tmp_path / "out", every=5)


@pytest.mark.parametrize("statement", ["SELECT '\ud800'", "SUMMARIZE SELECT '\udfff'", "SHOW \ud800"])
def test_half_of_a_character_is_an_error_in_words(statement: str) -> None:
    with uql.connect(ledger=":memory:") as con:
        con.only_read()
        with pytest.raises(UQLError):
            con.uql(statement).run()


@pytest.mark.thorough
@pytest.mark.parametrize("statement", QUERIES)
def test_queries_of_all_kinds_run_in_a_read_only_session(file: Path, statement: str) -> None:
    con = uql.attach(duckdb.connect(file, read_only=True), model=HashModel(), ledger=":memory:")
    con.only_read()
    con.uql(statement).run()


IN_PLACES_OF_A_QUERY = """
SELECT {call}, a FROM t
EXPLAIN ANALYZE SELECT {call}
SELECT "{{a}} is good", {call} FROM t
SELECT a FROM t WHERE {call} > 0 AND "{{a}} is good"
SELECT "{{a}} is good" AS good, count(*) FROM t GROUP BY good HAVING {call} > 0
SELECT "{{a}} is good" FROM t ORDER BY {call}
SELECT "{{a}} is good" FROM t LIMIT (SELECT {call})
SELECT a FROM t WHERE "{{a}} is good" WITH (proxy = '{quoted}', recall = 0.9, budget = 2)
SELECT "{{a}} is good" FROM v
"""


@pytest.mark.one_in(4)
@pytest.mark.parametrize("call", ["nextval('s')", "setval('s', 9)", "next_of()"])
@pytest.mark.parametrize("statement", IN_PLACES_OF_A_QUERY.strip().splitlines())
def test_no_place_of_a_query_moves_a_sequence_on(statement: str, call: str) -> None:
    duck = duckdb.connect(":memory:")
    duck.execute("CREATE SEQUENCE s; CREATE MACRO next_of() AS nextval('s'); CREATE TABLE t AS FROM range(5) AS t(a)")
    duck.execute(f"CREATE VIEW v AS SELECT a FROM t WHERE {call} > 0")
    con = uql.attach(duck, model=HashModel(), ledger=":memory:")
    con.only_read()
    with pytest.raises(UQLError, match="read-only"):
        con.uql(statement.format(call=call, quoted=call.replace("'", "''"))).run()
    assert duck.execute("SELECT last_value FROM duckdb_sequences()").fetchall() == [(None,)]


def test_the_definition_of_a_view_is_read_once_and_not_at_every_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    duck = duckdb.connect(":memory:")
    duck.execute("CREATE TABLE t AS SELECT 1 AS a")
    for n in range(20):
        duck.execute(f"CREATE VIEW v{n} AS SELECT a + {n} AS a FROM t")
    con = uql.attach(duck, model=HashModel(), ledger=":memory:")
    con.only_read()
    con.uql("SELECT a FROM v1").fetchall()
    read: list[str] = []
    tree = changing_functions.statement_tree
    monkeypatch.setattr(changing_functions, "statement_tree", lambda sql: read.append(sql) or tree(sql))
    assert con.uql("SELECT a + 1 FROM v1").fetchall() == [(3,)]
    assert read and not any("CREATE VIEW" in sql for sql in read)


HIDING = """
CREATE VIEW v AS SELECT a FROM t, (SELECT count(*) FROM {call})
CREATE TEMP VIEW v AS SELECT a FROM t, (SELECT count(*) FROM {call})
CREATE VIEW inner_v AS SELECT 1 AS a FROM {call}; CREATE VIEW v AS SELECT i.a FROM t CROSS JOIN inner_v AS i
CREATE MACRO hidden(x) AS (SELECT count(*) FROM {call}); CREATE VIEW v AS SELECT hidden(a) AS a FROM t
CREATE MACRO hidden(x) AS x, (x, y) AS (SELECT count(*) FROM {call}); CREATE VIEW v AS SELECT hidden(a, a) AS a FROM t
CREATE MACRO hidden() AS TABLE FROM {call}; CREATE VIEW v AS SELECT t.a FROM t LEFT JOIN hidden() ON true
CREATE MACRO "+"(x, y) AS (SELECT count(*) FROM {call}); CREATE VIEW v AS SELECT a + 1 AS a FROM t
CREATE MACRO lower(x) AS (SELECT 'a' FROM {call}); CREATE VIEW v AS SELECT lower('A') AS a
CREATE VIEW hidden AS SELECT 1 AS a FROM {call}; CREATE VIEW v AS FROM query('FROM hidden')
CREATE VIEW hidden AS SELECT 1 AS a FROM {call}; CREATE VIEW v AS FROM query_table('hidden')
"""


@pytest.mark.thorough
@pytest.mark.parametrize("made", HIDING.strip().splitlines())
def test_a_view_or_macro_that_hides_a_change_is_refused_in_a_read_only_session(made: str, tmp_path: Path) -> None:
    duck = duckdb.connect(":memory:")
    out = tmp_path / "out"
    call = f"enable_logging(storage = 'file', storage_path = '{out}')"
    duck.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE VIEW harmless AS SELECT a FROM t; CREATE MACRO two() AS 2")
    for statement in made.format(call=call).split("; "):
        duck.execute(statement)
    duck.execute("CALL disable_logging()")
    shutil.rmtree(out, ignore_errors=True)
    con = uql.attach(duck, model=HashModel(), ledger=":memory:")
    con.only_read()
    reading = [
        "FROM v",
        "FROM V",
        "SELECT a FROM main.v",
        'SELECT a FROM v WHERE "{a} is good"',
        "FROM query_table('v')",
    ]
    for statement in (
        *reading,
        "PIVOT v ON a",
        "SUMMARIZE v",
        "DESCRIBE v",
        "EXPLAIN ANALYZE FROM v",
        "EXPLAIN FROM v",
    ):
        with contextlib.suppress(UQLError):
            con.uql(statement).run()
        assert duck.execute("SELECT current_setting('enable_logging')").fetchall() == [(False,)], statement
        assert not out.exists(), statement
    if "TEMP" not in made:
        with pytest.raises(UQLError, match="read-only"):
            con.uql("FROM v").run()
    if '"+"' not in made and "lower" not in made:
        assert con.uql("SELECT two() AS two FROM harmless").fetchall() == [(2,)]
        assert con.uql('SELECT "{a} is good" AS good FROM harmless').run().table.num_rows == 1


@pytest.mark.parametrize("before", ["", "EXPLAIN ", "EXPLAIN ANALYZE ", "CREATE TABLE x AS ", "SELECT 1; "])
def test_a_call_between_texts_that_uql_alone_reads_as_texts(before: str, tmp_path: Path) -> None:
    """To DuckDB a backslash escapes nothing: the call would stand in a name."""
    duck = duckdb.connect(":memory:")
    con = uql.attach(duck, model=HashModel(), ledger=":memory:")
    con.only_read()
    call = f"enable_logging(storage = 'file', storage_path = '{tmp_path / 'out'}')"
    with pytest.raises(UQLError):
        con.uql(f'{before}SELECT "it \\" is", a FROM {call} WHERE "good"').run()
    assert duck.execute("SELECT current_setting('enable_logging')").fetchall() == [(False,)]
    assert not (tmp_path / "out").exists()


def test_a_call_is_found_where_duckdb_reads_one() -> None:
    assert not reads("FROM t -- a comment\r, enable_logging()") and reads("FROM t -- a comment, enable_logging()")
    assert not reads("/* a /* comment */ ' */ FROM checkpoint() --'") and reads("FROM t /* a /* */ , checkpoint() */")
    assert not reads("SELECT $a$ ' $a$ FROM checkpoint(), $b$ ' $b$") and not reads('FROM "Checkpoint" ()')


def test_every_function_that_duckdb_calls_in_from_is_known_to_read_or_is_refused() -> None:
    """DuckDB has no word for a function that changes something: those of a new version are judged here first."""
    found = duckdb.sql("SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'table'").fetchall()
    passing = {name for (name,) in found if reads(f"FROM {name}()")}
    known = r"(duckdb|pragma|read|test|parquet|json|python|arrow|icu|pg)_\w+|seq_scan|pandas_scan|repeat(_row)?|unnest|range"
    known += "|generate_series|summary|sniff_csv|glob|which_secret|query_table"
    assert [name for name in passing if not re.fullmatch(known, name)] == []


@pytest.mark.parametrize("files", [True, False])
def test_a_view_of_a_strangers_database_changes_no_setting_and_writes_no_file(files: bool, tmp_path: Path) -> None:
    """On the command line DuckDB's settings are locked: what a view or macro calls is not in the statement's text."""
    from uql.command.query import connect

    out = tmp_path / "out"
    call = f"enable_logging(storage = 'file', storage_path = '{out}')"
    with duckdb.connect(tmp_path / "sent.duckdb") as made:
        made.execute("CREATE TABLE t AS SELECT 'a text' AS a")
        made.execute(f"CREATE MACRO m() AS TABLE FROM {call}")
        made.execute(f"CREATE VIEW v AS SELECT a FROM t, (SELECT count(*) FROM {call})")
        made.execute("CALL disable_logging()")
    shutil.rmtree(out, ignore_errors=True)
    with connect(str(tmp_path / "sent.duckdb"), {"ledger": ":memory:"}, read_only=True, files=files) as con:
        for statement in ("FROM v", "FROM m()", 'SELECT "it is good" FROM v', "SHOW TABLES", "SHOW ALL TABLES"):
            with contextlib.suppress(UQLError):
                con.uql(statement).run()
            assert not out.exists(), statement
        assert con.execute("SELECT current_setting('enable_logging')").fetchall() == [(False,)]
        assert con.uql("SELECT a FROM t").fetchall() == [("a text",)]
        frame = pa.table({"b": [1]})
        with con.cursor() as other, pytest.raises(duckdb.Error, match="frame"):
            other.execute("FROM frame")
        assert frame.num_rows == 1


def test_the_page_refuses_the_same_list(tmp_path: Path) -> None:
    from uql.ui.session import Session

    duck = duckdb.connect(":memory:")
    duck.execute("CREATE TABLE t AS SELECT 1 AS a")
    page = Session(uql.attach(duck, model=HashModel(), ledger=":memory:"))
    out = tmp_path / "out"
    for statement in changes(out)[::5]:
        assert page.check(statement)["ok"] is False, statement
        work = page.start(statement)
        while work.status in ("waiting", "running"):
            time.sleep(0.001)
        assert work.status == "failed" and work.error is not None and not out.exists(), statement
    page.close()
    assert duck.execute("SELECT * FROM t").fetchall() == [(1,)]


def test_the_command_line_and_the_shell_refuse_it_with_and_without_a_database(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from uql.command.query import connect
    from uql.shell.app import Shell

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UQL_HOME", str(tmp_path / "home"))
    out = tmp_path / "out"
    for statement in changes(out)[:: 2 * len(CHANGES) - 3]:
        for database in ([str(file)], [], [":memory:"]):
            assert main([*database, "--read-only", "-c", statement, "--set", "ledger=:memory:"]) == 1, statement
            assert not out.exists(), statement
    printed = io.StringIO()
    with connect(str(file), {"ledger": ":memory:"}, read_only=True) as con:
        shell = Shell(con, out=printed, keep_history=False)
        for statement in changes(out)[::5]:
            shell.handle(statement + ";")
            assert not out.exists(), statement
    assert printed.getvalue().count("error: UQL") == len(changes(out)[::5])


@pytest.mark.parametrize(
    "statement",
    [
        "EXPLAIN /*/**/ ANALYZE SELECT 1 --*/ ANALYZE COPY t TO '{out}'",
        "WITH x AS (/*/**/ SELECT 1 AS b --*/ COPY t TO '{out}'\n) SELECT * FROM x",
        'WITH x AS (SELECT 1 AS "a\\"), y AS (COPY t TO \'{out}\') SELECT 2 --"\n) SELECT * FROM x',
        "SELECT E'a\\' || '; COPY t TO ''{out}''; --'",
        "SELECT $$ ' $$ ; COPY t TO '{out}' --'",
    ],
)
def test_what_uql_and_duckdb_may_read_in_two_ways_writes_nothing(file: Path, tmp_path: Path, statement: str) -> None:
    con = uql.attach(duckdb.connect(file, read_only=True), model=HashModel(), ledger=":memory:")
    con.only_read()
    with contextlib.suppress(UQLError):
        con.uql(statement.format(out=tmp_path / "out")).run()
    assert not (tmp_path / "out").exists()


def test_a_deep_statement_is_refused_and_no_failure() -> None:
    assert reads("SELECT 1" + " + (1" * 900 + ")" * 900) in (True, False)
    began = time.process_time()
    assert not reads("WITH x AS (SELECT 1) SELECT " + "(" * 10_000)
    assert time.process_time() - began < 5, "DuckDB's parser would take half a minute"


@pytest.mark.parametrize(
    "statement", ["SET uql.ledger = '{out}'", "SELECT \"it is good\" FROM t WITH (ledger = '{out}')"]
)
def test_a_read_only_session_does_not_choose_the_file_of_its_ledger(statement: str, tmp_path: Path) -> None:
    duck = duckdb.connect()
    duck.execute("CREATE TABLE t AS SELECT 'a text' AS a")
    con = uql.attach(duck, model=HashModel(), ledger=":memory:")
    con.only_read()
    for explain in ("", "EXPLAIN ANALYZE "):
        with pytest.raises(UQLError, match=r"UQL511|UQL100"):
            con.uql(explain + statement.format(out=tmp_path / "out")).run()
        con.uql('SELECT "{a} is fine" FROM t').run()
    assert not (tmp_path / "out").exists()
