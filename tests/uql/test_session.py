"""`con.uql`, `con.execute` and `con.sql` are one session of DuckDB."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from hash_model import HashModel

import uql
from uql.base.errors import ConfigError, UnknownTableError
from uql.sources import catalog as catalogs

POSITIVE = 'SELECT id FROM reviews WHERE "the review is positive" ORDER BY id'


@pytest.fixture
def con(own_world: Path) -> uql.Connection:
    made = uql.connect(model="oracle:oracle.toml", ledger=":memory:")
    made.execute("CREATE TABLE reviews AS FROM 'reviews.parquet'")
    return made


def test_a_temporary_table_of_one_is_seen_by_the_other(con: uql.Connection) -> None:
    con.uql(f"CREATE TEMP TABLE mine AS {POSITIVE}")
    con.uql("CREATE TEMP TABLE plain AS SELECT 1 AS a")
    con.execute("CREATE TEMP TABLE theirs AS FROM reviews")
    assert con.execute("SELECT count(*) FROM mine JOIN plain ON true").fetchall() == [(3,)]
    assert con.sql("SELECT count(*) FROM mine").fetchall() == [(3,)]
    assert con.uql(POSITIVE.replace("reviews", "theirs")).fetchall() == [(1,), (3,), (5,)]
    con.execute("INSERT INTO theirs FROM theirs")
    assert len(con.uql(POSITIVE.replace("reviews", "theirs"))) == 6
    con.uql('INSERT INTO theirs SELECT * FROM reviews WHERE "the review is positive"')
    assert con.execute("SELECT count(*) FROM theirs").fetchone() == (len(con.uql("FROM reviews")) * 2 + 3,)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("statement", ["USE s", "SET schema = 's'", "SET search_path = 's,main'"])
@pytest.mark.parametrize("first", ["execute", "uql", "sql"])
def test_the_schema_that_is_set_is_followed(con: uql.Connection, statement: str, first: str) -> None:
    con.execute("CREATE SCHEMA s; CREATE TABLE s.reviews AS SELECT * FROM main.reviews WHERE id = 3")
    getattr(con, first)(statement)
    assert con.uql(POSITIVE).fetchall() == [(3,)]
    assert con.uql("SELECT count(*) FROM reviews").fetchall() == [(1,)]
    assert con.sql("SELECT count(*) FROM reviews").fetchall() == [(1,)]
    con.uql(f"CREATE TABLE kept AS {POSITIVE}")
    con.uql(f"{POSITIVE} TO also")
    assert con.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE table_name IN ('kept', 'also') ORDER BY ALL"
    ).fetchall() == [("s", "also"), ("s", "kept")]


def test_another_database_that_is_used_is_followed(con: uql.Connection) -> None:
    con.execute("ATTACH ':memory:' AS other; CREATE TABLE other.reviews AS SELECT * FROM reviews WHERE id = 1")
    con.execute("USE other")
    assert con.uql(POSITIVE).fetchall() == [(1,)]
    con.execute("USE memory")
    assert len(con.uql(POSITIVE)) == 3


def test_a_transaction_of_one_is_that_of_the_other(con: uql.Connection) -> None:
    con.execute("BEGIN")
    con.execute("CREATE TABLE fresh AS FROM reviews")
    assert len(con.uql(POSITIVE.replace("reviews", "fresh"))) == 3
    con.uql("ROLLBACK")
    with pytest.raises(UnknownTableError):
        con.uql("FROM fresh")


def test_a_result_that_is_not_read_to_its_end_is_in_nobodys_way(con: uql.Connection) -> None:
    later = con.uql(POSITIVE)
    assert con.execute("SELECT range FROM range(100000)").fetchone() == (0,)
    assert con.uql("SELECT count(*) FROM reviews").fetchone() is not None
    assert con.execute("SELECT range FROM range(100000)").fetchone() == (0,)
    assert later.fetchall() == [(1,), (3,), (5,)]
    assert con.execute("SELECT range FROM range(100000)").fetchone() == (0,)
    assert "SemFilter" in con.uql(POSITIVE).explain() and con.uql(POSITIVE).quote().calls.high >= 0


def test_data_frames_are_named_in_plain_sql_and_no_variable_of_ours_is(con: uql.Connection) -> None:
    import pyarrow as pa

    frame = pa.table({"a": [1, 2]})
    assert con.uql("SELECT count(*) FROM frame").fetchall() == [(2,)]
    relation = con.sql("SELECT a FROM frame")
    assert con.execute("SELECT sum(a) FROM frame").fetchone() == (3,)
    assert con.uql("SELECT sum(a) FROM relation").fetchall() == [(3,)]
    assert relation.fetchall() == [(1,), (2,)] and frame.num_rows == 2
    for name in ("rows", "session", "source", "text"):
        with pytest.raises(UnknownTableError):
            con.uql(f"FROM {name}")


@pytest.mark.thorough
@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "listing",
    [
        "SHOW TABLES",
        "SHOW ALL TABLES",
        "SELECT table_name FROM duckdb_tables()",
        "SELECT table_name FROM duckdb_tables",
        "SELECT view_name FROM duckdb_views() WHERE NOT internal",
        "SELECT table_name FROM information_schema.tables",
        "SELECT table_name FROM duckdb_columns() WHERE NOT internal",
        "SELECT name FROM (SHOW TABLES)",
    ],
)
def test_our_own_tables_are_not_listed(con: uql.Connection, listing: str) -> None:
    import pyarrow as pa

    frame = pa.table({"id": [1], "text": ["A joy from the first minute to the last, I would see it again."]})  # noqa: F841 (named in FROM)
    con.uql("SELECT count(*) FROM frame").run()
    con.uql("FROM uql_runs()").run()
    con.uql('CREATE SEMANTIC TABLE moods AS SELECT id, "the mood" AS mood FROM reviews KEY (id)')
    con.uql(f"CREATE TABLE around_it AS SELECT * FROM ({POSITIVE}) AS x")
    for rows in (con.uql(listing).fetchall(), con.execute(listing).fetchall(), con.sql(listing).fetchall()):
        shown = {str(cell) for row in rows for cell in row}
        assert not any("__uql" in cell or "uql_semantic_tables" in cell for cell in shown), shown
    assert con.uql("REFRESH moods").fetchall()[0][0] == "moods"
    assert "moods" in {row[0] for row in con.sql("SHOW TABLES").fetchall()}


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        (f"CREATE TABLE a AS {POSITIVE}", 3),
        ("CREATE TABLE a AS SELECT * FROM reviews WHERE id < 3", 2),
        (f"CREATE TABLE a(b) AS {POSITIVE}", 3),
        (f"CREATE TABLE a AS SELECT * FROM ({POSITIVE}) AS x JOIN reviews USING (id)", 3),
        (f"INSERT INTO t {POSITIVE}", 3),
        (f"INSERT INTO t BY NAME {POSITIVE}", 3),
        ("INSERT INTO t SELECT id FROM reviews WHERE id < 3", 2),
        ("INSERT INTO t VALUES (1), (2)", 2),
        ("UPDATE t SET id = 8", 1),
        ("DELETE FROM t", 1),
        (f"DELETE FROM t WHERE id NOT IN ({POSITIVE})", 1),
        (f"COPY ({POSITIVE}) TO 'out.csv'", 3),
        ("COPY reviews TO 'out.csv'", 5),
        ("COPY t FROM 't.csv'", 2),
    ],
)
def test_a_statement_that_writes_rows_counts_them_as_duckdb_does(
    con: uql.Connection, statement: str, rows: int
) -> None:
    con.execute("CREATE TABLE t AS SELECT 77 AS id; COPY (SELECT range FROM range(2)) TO 't.csv'")
    if statement.startswith("COPY reviews"):
        rows = len(con.uql("FROM reviews"))
    found = con.uql(statement)
    assert found.columns == ["Count"] and found.types == ["BIGINT"]
    assert found.fetchall() == [(rows,)]


def test_over_a_connection_of_the_users_the_schema_is_followed_and_his_results_stay(own_world: Path) -> None:
    with duckdb.connect() as mine:
        mine.execute("CREATE SCHEMA s; CREATE TABLE reviews AS FROM 'reviews.parquet'")
        mine.execute("CREATE TABLE s.reviews AS SELECT * FROM reviews WHERE id = 3")
        con = uql.attach(mine, model="oracle:oracle.toml", ledger=":memory:")
        assert len(con.uql(POSITIVE)) == 3
        mine.execute("USE s")
        assert con.uql(POSITIVE).fetchall() == [(3,)]
        mine.execute("SELECT range FROM range(10)")
        assert mine.fetchone() == (0,)
        con.execute("CREATE TEMP TABLE made AS SELECT 5 AS id")
        assert con.uql("FROM made").fetchall() == [(5,)]
        assert mine.fetchall() == [(i,) for i in range(1, 10)]
        assert "__uql" not in str(mine.sql("SHOW TABLES").fetchall())
        con.close()


def test_what_set_chooses_on_the_users_connection_is_followed(own_world: Path) -> None:
    duck = duckdb.connect()
    duck.execute("CREATE TABLE reviews AS SELECT *, TIMESTAMPTZ '2024-01-01 00:00:00+00' AS at FROM 'reviews.parquet'")
    duck.execute("SET TimeZone = 'Asia/Tokyo'; SET VARIABLE most = 4; SET integer_division = true")
    con = uql.attach(duck, model="oracle:oracle.toml", ledger=":memory:", budget="all")
    query = (
        "SELECT id / 2 AS half, \"at\"::VARCHAR AS t FROM reviews WHERE id < getvariable('most') AND "
        '"the review is positive" ORDER BY id'
    )
    assert con.uql(query).fetchall() == [(0, "2024-01-01 09:00:00+09"), (1, "2024-01-01 09:00:00+09")]
    con.uql("SET TimeZone = 'UTC'")  # of the session alone
    assert con.uql(query).fetchall()[0] == (0, "2024-01-01 00:00:00+00")
    duck.execute("RESET VARIABLE most; SET VARIABLE least = 2; SET integer_division = false")
    assert con.uql(query).fetchall() == []
    assert con.uql("SELECT getvariable('least'), 1 / 2").fetchall() == [(2, 0.5)]


@pytest.mark.parametrize("own", [True, False])
def test_the_database_in_use_is_looked_up_where_it_may_have_changed(
    own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duck = duckdb.connect()
    con = uql.connect(ledger=":memory:") if own else uql.attach(duck, ledger=":memory:")
    users = con.execute if own else duck.execute
    looks: list[object] = []
    look = catalogs.current_database
    monkeypatch.setattr(catalogs, "current_database", lambda cursor: looks.append(cursor) or look(cursor))

    def now() -> str | None:
        con.uql("SELECT 1 AS one").fetchall()
        path = con.session.database().path
        return None if path is None else Path(path).name

    users(f"ATTACH '{tmp_path}/a.db' AS a; ATTACH '{tmp_path}/b.db' AS b")
    assert now() is None
    n = len(looks)
    assert now() is None and now() is None
    assert not own or len(looks) == n, "nothing of DuckDB's own ran between"
    users("USE a")
    assert now() == "a.db"
    if own:
        con.uql("USE b")
        assert con.session.database().path == str(tmp_path / "b.db") and now() == "b.db"
        con.sql("SELECT 1")
        assert now() == "b.db"
    users("USE memory")
    assert now() is None
    con.close()


def test_a_model_that_a_statement_names_answers_it_in_place_of_the_provider(tmp_path):
    duck, model = duckdb.connect(), HashModel()
    duck.execute("CREATE TABLE notes AS SELECT 'a note about the weather, number ' || i AS body FROM range(5) t(i)")
    con = uql.attach(duck, model=model, ledger=":memory:")
    asks = 'SELECT count(*) FROM notes WHERE "it is about rain"'
    other = f"oracle:{tmp_path / 'none.toml'}"
    for statement in (f"{asks} WITH (model = '{other}')", f"EXPLAIN SAMPLE 2 {asks} WITH (model = '{other}')"):
        with pytest.raises(ConfigError, match="there is no oracle file"):
            con.uql(statement).fetchall()
    con.uql(f"SET uql.model = '{other}'")
    with pytest.raises(ConfigError, match="there is no oracle file"):
        con.uql(asks).fetchall()
    assert model.calls == 0
    con.uql("RESET uql.model")
    assert con.uql(asks).cost.calls == 5
