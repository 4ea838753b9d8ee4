"""`uql mcp`: the SDK's own client talks to a child process over stdio; the model is an oracle."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import pytest

from uql.base import extras
from uql.base.errors import UQLError
from uql.cli import main
from uql.command.mcp import Tools
from uql.command.query import connect
from uql.llm.budget import Budget

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="the extra mcp is not installed")

POSITIVE = '"the review is positive"'
Call = Callable[..., Awaitable[tuple[bool, Any]]]


def session(folder: Path, work: Callable[[Call], Awaitable[None]], *words: str) -> None:
    """Starts the server in a folder, and does some work with `call(tool, **arguments)` → (is it an error, its text or JSON)."""
    import mcp

    program = "import sys; from uql.cli import main; sys.exit(main())"
    arguments = ["-c", program, "mcp", "shop.duckdb", "--model", "oracle:oracle.toml", "--ledger", ":memory:", *words]
    server = mcp.StdioServerParameters(
        command=sys.executable, args=arguments, cwd=folder, env={**os.environ, "UQL_HOME": str(folder / "home")}
    )

    async def run() -> None:
        async with mcp.Client(server) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names == {"list_tables", "price", "explain", "run"}

            async def call(tool: str, **named: Any) -> tuple[bool, Any]:
                found = await client.call_tool(tool, named)
                text = "".join(part.text for part in found.content)
                return bool(found.is_error), text if found.is_error else json.loads(text)

            await work(call)

    asyncio.run(asyncio.wait_for(run(), 240))


@pytest.mark.thorough
def test_an_assistant_lists_prices_explains_and_runs(own_world: Path) -> None:
    with duckdb.connect(str(own_world / "shop.duckdb")) as duck:
        duck.execute("COMMENT ON TABLE reviews IS 'of films'; COMMENT ON COLUMN reviews.stars IS 'from 1 to 5'")

    async def work(call: Call) -> None:
        _, tables = await call("list_tables")
        reviews = next(table for table in tables if table["table"] == "reviews")
        assert reviews["rows"] == 6 and reviews["comment"] == "of films"
        assert [(c["name"], c["type"], c["content"]) for c in reviews["columns"]] == [
            ("id", "INTEGER", "structured"),
            ("text", "VARCHAR", "text"),
            ("stars", "INTEGER", "structured"),
        ]
        assert reviews["columns"][2]["comment"] == "from 1 to 5"

        _, price = await call("price", statement=f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE}")
        assert price["calls"] == {"low": 6, "expected": 6, "high": 6}
        assert price["caps"] == {"calls": 500, "usd": 0.5}, "a price makes no call"
        _, plan = await call("explain", statement=f"SELECT id FROM reviews WHERE {POSITIVE} AND stars > 3")
        assert plan["plan"]["inputs"][0]["operator"] == "SemFilter" and plan["price"]["calls"]["expected"] == 3

        for of_duckdb in ("SUMMARIZE reviews", "VALUES (1)"):
            failed, plan = await call("explain", statement=of_duckdb)
            assert not failed and plan, of_duckdb

        statement = f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE} WITH (budget = 3)"
        _, estimated = await call("run", statement=statement)
        (row,), (estimate,) = estimated["rows"], estimated["estimates"]["n"]
        assert not estimated["exact"] and "not exact" in estimated["note"] and estimated["calls"] == 3
        assert row["n_low"] == estimate["low"] <= 3 <= estimate["high"] == row["n_high"]

        _, found = await call("run", statement=f"SELECT id FROM reviews WHERE {POSITIVE} ORDER BY id", rows=2)
        assert found["rows"] == [{"id": 1}, {"id": 3}] and found["rows_left_out"] == 1
        assert found["exact"] and found["note"].startswith("exact")

    session(own_world, work)


def private_shop(folder: Path) -> str:
    """A database of which one column is private by its comment, one by the semantic model."""
    path = str(folder / "shop.duckdb")
    with duckdb.connect(path) as duck:
        duck.execute("""
            CREATE OR REPLACE TABLE people AS SELECT i AS id, 'p' || i AS name, 'secret' || i AS email, 'secret' || i AS note
            FROM range(9) AS t(i);
            COMMENT ON COLUMN people.email IS 'private';
            CREATE VIEW mails AS SELECT id, upper(email) AS m, note AS n FROM people;
            CREATE MACRO mail_of(x) AS (SELECT max(email) FROM people WHERE id = x);
            CREATE TABLE stats AS SELECT i AS id, 'x' AS stats FROM range(9) AS t(i);
        """)
    (folder / "uql.model.toml").write_text("[tables.people]\ncolumns.note = { private = true }\n")
    return path


PRIVATE = [
    "SELECT email FROM people",
    "SELECT note FROM people",
    "FROM people",
    "SELECT m FROM mails",
    "SELECT n FROM mails",
    "SELECT mail_of(1)",
    "SUMMARIZE people",
    "SELECT people FROM people",
    "SELECT id FROM people WHERE email LIKE 'secret1%'",
    "SELECT id FROM people ORDER BY note",
    "SELECT id FROM people WHERE email::INTEGER > 1",
    "FROM people PIVOT (count(*) FOR email IN ('a'))",
    "PIVOT people ON email USING count(*)",
    "SELECT p.email FROM p: people",
    "FROM ((people))",
    "SELECT id FROM query('SELECT email AS id FROM people')",
    "SELECT id FROM query($$SELECT email AS id FROM people$$)",
    "FROM query_table('peo' || 'ple')",
    "FROM histogram(people, email)",
    "SELECT s.stats FROM stats AS t, pragma_storage_info('people') AS s",
    "SELECT id FROM stats; SELECT email FROM people",
]
PUBLIC = [
    "SELECT id, name FROM people ORDER BY id",
    "SELECT COUNT(*) AS n FROM people WHERE name LIKE 'p%'",
    "SELECT id FROM mails",
    "SELECT * EXCLUDE (id) FROM stats",
    "SELECT s.id FROM stats AS s JOIN people AS p ON s.id = p.id",
    "SELECT table_name FROM duckdb_tables()",
    "SELECT name FROM people LIMIT 3 -- email",
]


def test_a_client_sees_nothing_of_private_columns(own_world: Path) -> None:
    path = private_shop(own_world)
    with connect(path, {"ledger": ":memory:"}, read_only=True) as con:
        tools = Tools(con, path, lambda: Budget(calls=0), Budget(calls=0))
        try:
            tables = {
                table["table"]: [c["name"] for c in table["columns"]] for table in json.loads(tools.list_tables())
            }
            assert (tables["people"], tables["mails"]) == (["id", "name"], ["id"])
            for statement in PRIVATE:
                for tool in (tools.run, tools.price, tools.explain):
                    with pytest.raises(UQLError) as caught:
                        tool(statement)
                    assert (caught.value.code, "private" in str(caught.value)) == ("UQL511", True), statement
                    assert "secret" not in str(caught.value).replace(statement, ""), statement
            for statement in PUBLIC:
                assert json.loads(tools.run(statement))["rows"], statement
        finally:
            tools.close()


@pytest.mark.thorough
def test_what_changes_something_or_reaches_out_is_refused(own_world: Path) -> None:
    hostile = {
        "DELETE FROM reviews": "UQL511",
        "COPY reviews TO 'out.csv'": "UQL511",
        "ATTACH 'other.duckdb' AS other": "UQL511",
        "SET uql.budget = 'all'": "UQL511",
        "SET enable_external_access = true": "UQL511",
        "SELECT 1; DROP TABLE reviews": "UQL511",
        "SELECT id FROM reviews TO kept": "UQL511",
        "EXPLAIN ANALYZE SELECT 1": "UQL511",
        "WITH x AS (DELETE FROM reviews RETURNING *) FROM x": "UQL511",
        f"SELECT id FROM reviews WHERE {POSITIVE} WITH (model = 'http://127.0.0.1:9/v1#m')": "UQL416",
        f"SELECT id FROM reviews WHERE {POSITIVE} WITH (ledger = 'stolen.sqlite')": "UQL511",
        f"SELECT id FROM reviews WHERE {POSITIVE} WITH (folder = '/')": "UQL416",
        f"PIVOT (SELECT id, {POSITIVE} AS p FROM reviews WITH (model = 'http://127.0.0.1:9/v1#m')) ON p USING count(*)": "UQL",
        "SELECT * FROM read_text('oracle.toml')": "file system operations are disabled",
        "SELECT * FROM 'reviews.csv'": "this session reads no files",
        "SELECT * FROM 'no_such.parquet'": "this session reads no files",
        "SELECT * FROM '/**/*.csv'": "this session reads no files",
        "SELECT * FROM '/'": "this session reads no files",
        "SELECT * FROM read_parquet('reviews.parquet')": "file system operations are disabled",
        "SELECT * FROM uql_corrections()": "UQL511",
        "WITH x AS (FROM UQL_runs()) SELECT statement FROM x": "UQL511",
        "INSTALL httpfs": "UQL511",
    }

    async def work(call: Call) -> None:
        for statement, says in hostile.items():
            for tool in ("run", "price", "explain"):
                failed, text = await call(tool, statement=statement)
                assert failed and says in text, (tool, statement, text)
        failed, text = await call("run", statement="SELECT strs FROM reviews")
        assert failed and "UQL202" in text and "line 1, column 8" in text and "did you mean stars" in text
        _, found = await call("run", statement="SELECT COUNT(*) AS n FROM reviews")
        assert found["rows"] == [{"n": 6}]

    before = sorted(path.name for path in own_world.iterdir())
    session(own_world, work)
    assert sorted(path.name for path in own_world.iterdir() if path.name != "home") == [
        n for n in before if n != "home"
    ]


@pytest.mark.thorough
def test_no_option_raises_the_caps_of_a_run_and_of_the_server(own_world: Path) -> None:
    async def work(call: Call) -> None:
        for options in ("budget = 'all'", "budget = 100, max_cost = 99", "exact"):
            statement = f"SELECT id FROM reviews WHERE {POSITIVE} WITH ({options})"
            failed, text = await call("run", statement=statement)
            assert failed and "UQL417" in text and "WITH (budget = 4)" in text
        _, found = await call("run", statement=f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE} WITH (budget = 4)")
        assert found["calls"] == 4 and found["caps"]["calls"] == 3, "7 of the server, 4 of them spent"
        statement = """SELECT COUNT(*) AS n FROM reviews WHERE "the mood" = 'pos' WITH (budget = 4)"""
        failed, found = await call("run", statement=statement)
        assert not failed and found["calls"] == 3 and not found["exact"], "it was allowed 4, and the server had 3 left"
        assert found["caps"]["calls"] == 0
        failed, text = await call("run", statement=f"SELECT id FROM reviews WHERE {POSITIVE} WITH (budget = 'all')")
        assert failed and "UQL417" in text
        _, found = await call("run", statement="SELECT id FROM reviews ORDER BY id LIMIT 1")
        assert found["rows"] == [{"id": 1}], "plain SQL needs no call"

    session(own_world, work, "--calls", "4", "--all-calls", "7")


def test_a_missing_extra_says_what_to_install(
    world: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert main(["mcp", "shop.duckdb"]) == 2
    said = capsys.readouterr().err
    assert "UQL610" in said and "pip install" in said and "[mcp]" in said


def test_a_database_that_is_not_there_is_an_error(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "nowhere.duckdb"]) == 2
    assert "there is no database nowhere.duckdb" in capsys.readouterr().err


BLOW_UPS = {  # of time and of memory, while rows are read, within one call of a function, and while DuckDB binds
    "a product": "SELECT sum(a.i * b.i) AS s FROM range(10_000_000) a(i), range(10_000_000) b(i)",
    "one long call": "SELECT jaro_winkler_similarity(repeat('ab', 2_000_000), repeat('ba', 2_000_000)) AS s",
    "a long text": "SELECT length(repeat('x', 8_000_000_000)) AS s",
    "a long list": "SELECT len(list(i)) AS s FROM range(2_000_000_000) t(i)",
    "names that double": "WITH "
    + ", ".join(
        ["c0 AS (SELECT id AS a FROM reviews)"]
        + [f"c{n} AS (SELECT x.a + y.a AS a FROM c{n - 1} x, c{n - 1} y)" for n in range(1, 26)]
    )
    + " SELECT a FROM c25",
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", BLOW_UPS)
def test_plain_sql_ends_within_limits_of_time_and_memory_and_the_next_query_works(
    own_world: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uql.nl.guard.workspace.BUSY_S", 1.0)
    monkeypatch.setattr("uql.nl.guard.workspace.MEMORY", 256)
    with connect("shop.duckdb", {"ledger": ":memory:"}, read_only=True, files=False) as con:
        tools = Tools(con, "shop.duckdb", lambda: Budget(calls=5, usd=1.0), Budget(calls=50, usd=1.0))
        began = time.monotonic()
        with pytest.raises(UQLError, match=r"UQL(621|526|509|212)"):
            tools.run(BLOW_UPS[name])
        assert time.monotonic() - began < 1.0 + 20.0, "its process takes a while to start on a busy machine"
        monkeypatch.setattr("uql.nl.guard.workspace.BUSY_S", 60.0)  # of the process that follows
        assert json.loads(tools.run("SELECT COUNT(*) AS n FROM reviews"))["rows"] == [{"n": 6}]
        tools.close()
