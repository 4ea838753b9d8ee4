"""Statements inside transactions, and statements that change tables by rows of queries with texts."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from labels import both, plain

import uql
from uql.base.errors import DataError, UnknownTableError, UQLError


@pytest.fixture
def con(labels):
    return labels.uql(budget="all")


def run(con, statement):
    return con.uql(both(statement)[0])


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT id, <name> AS n, <pos>::BOOLEAN AS p FROM reviews ORDER BY id",
        "SELECT film, count(*) FILTER (<joke>) AS j, avg(<rating>) AS r FROM reviews WHERE <pos> GROUP BY film ORDER BY film",
        "SELECT a.id, b.id FROM reviews a JOIN reviews b ON a.film = b.film AND a.id < b.id AND b.id < 14 AND <agree a.text b.text> ORDER BY 1, 2",
        "SELECT film FROM films f WHERE EXISTS (SELECT 1 FROM reviews r WHERE r.film = f.film AND <joke r.text>) ORDER BY 1",
        "SELECT id FROM reviews r WHERE EXISTS (SELECT 1 FROM reviews x WHERE x.rowid = r.rowid + 1 AND <pos x.text>) ORDER BY id",
        "SELECT f.film, r.id FROM films f LEFT JOIN reviews r ON r.film = f.film AND r.id < 5 AND <pos r.text> ORDER BY 1, 2",
        "SELECT id FROM reviews ORDER BY <anger> DESC, id LIMIT 6",
        "SELECT 'the rowid' AS k, id FROM reviews WHERE <pos> AND film <> 'rowid' ORDER BY id",
    ],
)
def test_inside_a_transaction_the_rows_are_those_outside(con, sql, statement):
    con.uql("BEGIN")
    found = [plain(row) for row in run(con, statement).fetchall()]
    con.uql("ROLLBACK")
    assert found == [plain(row) for row in sql.execute(both(statement)[1]).fetchall()]


def test_a_transaction_sees_what_it_has_changed_and_a_rollback_undoes_it(con):
    before = run(con, "SELECT count(*) FROM reviews WHERE <pos>").fetchone()[0]
    con.uql("BEGIN")
    run(con, "INSERT INTO reviews BY NAME SELECT id + 1000 AS id, text FROM reviews WHERE <pos>")
    assert run(con, "SELECT count(*) FROM reviews WHERE <pos>").fetchone()[0] == 2 * before
    con.uql("ROLLBACK")
    assert run(con, "SELECT count(*) FROM reviews WHERE <pos>").fetchone()[0] == before


def test_a_transaction_of_a_connection_that_was_attached_is_said_not_to_be_seen(labels):
    with duckdb.connect() as mine:
        con = labels.uql(budget="all")
        mine.register("source", con.sql("FROM reviews").to_arrow_table())
        mine.execute("CREATE TABLE reviews AS FROM source")
        attached = uql.attach(mine, model=con.configured.model, ledger=":memory:", budget="all")
        mine.execute("BEGIN")
        mine.execute("CREATE TABLE fresh AS FROM reviews")
        found = run(attached, "SELECT count(*) FROM reviews WHERE <pos>")
        found.run()
        with pytest.raises(UnknownTableError) as error:
            run(attached, "SELECT count(*) FROM fresh WHERE <pos>")
        mine.execute("COMMIT")
        assert any("transaction" in warning for warning in found.warnings)
        assert "con.uql" in error.value.help
        assert not run(attached, "SELECT count(*) FROM fresh WHERE <pos>").warnings


def test_after_an_error_in_a_transaction_it_is_said_how_to_end_it(con):
    con.uql("BEGIN")
    con.uql("CREATE TABLE one_more AS SELECT 1 AS a")
    with pytest.raises(DataError):
        con.uql("SELECT error('no') AS e FROM reviews").fetchall()
    with pytest.raises(DataError) as error:
        run(con, "SELECT count(*) FROM reviews WHERE <pos>").fetchall()
    assert error.value.code == "UQL509"
    assert "ROLLBACK" in error.value.help
    for statement in ("FROM uql_tables()", "FROM uql_runs()", "FROM uql_corrections()", "SET threads = 1"):
        with pytest.raises(DataError, match="aborted") as error:
            con.uql(statement)
        assert error.value.help and "ROLLBACK" in error.value.help
    con.uql("ROLLBACK")
    assert run(con, "SELECT count(*) FROM reviews WHERE <pos>").exact


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM frame",
        "CREATE TABLE of_frame AS SELECT * FROM frame",
        "SELECT max(a) FROM frame",
        "EXPLAIN SELECT * FROM frame",
    ],
)
def test_a_data_frame_is_read_inside_a_transaction_which_goes_on(con, statement):
    frame = pa.table({"a": [1, 2]})
    con.uql("BEGIN")
    con.uql("INSERT INTO reviews BY NAME SELECT 1000 AS id")
    con.uql(statement, {}).fetchall()
    assert frame.num_rows == con.uql("SELECT count(*) + 1 FROM reviews WHERE id = 1000").fetchone()[0]
    con.uql("COMMIT")
    assert con.uql("SELECT count(*) FROM reviews WHERE id = 1000").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT nowhere FROM reviews", "nowhere"),
        ("SELECT id FROM no_table", "no_table"),
        ("SELECT error('too late')", "too late"),
        ("SELECT no_function(id) FROM reviews WHERE <pos>", "no_function"),
    ],
)
def test_an_error_that_ends_a_transaction_is_the_one_that_is_told(con, statement, said):
    con.uql("BEGIN")
    with pytest.raises(UQLError, match=said):
        run(con, statement).fetchall()


def test_what_duckdb_refuses_when_a_plan_is_looked_at_later_is_an_error_of_ours(con):
    con.uql("BEGIN")
    result = run(con, "SELECT count(*) FROM reviews WHERE <pos>")
    with pytest.raises(DataError):
        con.uql("SELECT error('no')").fetchall()
    for look in (result.explain, result.quote, result.fetchall):
        with pytest.raises(DataError) as error:
            look()
        assert error.value.code == "UQL509" and "ROLLBACK" in error.value.help


def test_two_changes_of_a_row_at_once_are_told_as_such(con):
    with con.cursor() as other:
        other.uql("BEGIN")
        other.uql("UPDATE reviews SET stars = 1 WHERE id = 1")
        with pytest.raises(DataError, match="onflict") as error:
            run(con, "UPDATE reviews SET stars = 2 WHERE <pos> OR id = 1").fetchall()
        assert "run this one again" in error.value.help


@pytest.mark.parametrize(
    ("statement", "returned", "kept"),
    [
        ("INSERT OR REPLACE INTO t SELECT id, <name>, 2 FROM reviews WHERE id < 3", None, 4),
        ("INSERT INTO t BY NAME SELECT <name> AS n, id FROM reviews WHERE id = 5", None, 3),
        (
            "INSERT INTO t SELECT id, <name>, 2 FROM reviews WHERE id < 3 ON CONFLICT (id) DO UPDATE SET n = excluded.n",
            None,
            4,
        ),
        ("INSERT INTO t SELECT id, <name>, 2 FROM reviews WHERE id < 2 ON CONFLICT DO NOTHING RETURNING id", [(1,)], 3),
        ("INSERT INTO t SELECT id, <name>, 2 FROM reviews WHERE id = 0 ON CONFLICT DO NOTHING RETURNING id", [], 2),
        ("DELETE FROM t WHERE id IN (SELECT id FROM reviews WHERE <pos> AND id = 99) RETURNING id", [], 2),
        ("DELETE FROM t WHERE id IN (SELECT id FROM reviews WHERE <pos> OR id = 0) RETURNING id", [(0,)], 1),
    ],
)
def test_statements_that_change_tables_take_what_duckdb_adds_to_them(con, statement, returned, kept):
    con.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n VARCHAR, k INTEGER)")
    con.execute("INSERT INTO t VALUES (0, 'x', 1), (77, 'y', 1)")
    found = run(con, statement)
    assert returned is None or found.fetchall() == returned
    assert con.execute("SELECT count(*) FROM t").fetchone() == (kept,)


def test_create_table_names_its_columns_and_may_leave_out_the_rows(con):
    run(con, "CREATE TABLE two(a, b) AS SELECT id, <name> FROM reviews WHERE id < 3")
    assert con.uql("SELECT a FROM two ORDER BY a").fetchall() == [(0,), (1,), (2,)]
    run(con, "CREATE TABLE shape AS SELECT id, <rating>::INTEGER AS r FROM reviews WITH NO DATA")
    assert con.uql("FROM shape").fetchall() == []


def test_a_table_that_is_there_already_costs_nothing(con):
    con.execute("ATTACH ':memory:' AS other")
    for name in ("made", "other.made"):
        run(con, f"CREATE TABLE {name} AS SELECT id FROM reviews WHERE id < 2 AND <pos>")
        again = run(con, f"CREATE TABLE IF NOT EXISTS {name} AS SELECT id, <topic> FROM reviews")
        assert again.cost.calls == 0
        with pytest.raises(DataError) as error:
            run(con, f"CREATE TABLE {name} AS SELECT id, <topic> FROM reviews")
        assert error.value.code == "UQL203"


def test_what_reads_a_created_table_of_estimates_is_not_exact(con):
    run(con, "CREATE TABLE counted AS SELECT count(*) AS n FROM reviews WHERE <pos> WITH (budget = 8)")
    found = con.uql("SELECT n FROM counted")
    assert not found.exact
    assert len(found.based_on) == 1
    assert found.based_on[0].startswith("counted (CREATE TABLE counted AS")
    run(con, "CREATE OR REPLACE TABLE counted AS SELECT count(*) AS n FROM reviews WHERE <pos>")
    assert con.uql("SELECT n FROM counted").exact


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE notes SET word = 'no.parquet' WHERE word = 'parquet'",
        "SELECT 'no.parquet' AS x FROM notes WHERE word IN ('a.parquet', 'parquet')",
        "INSERT INTO notes SELECT word || '.parquet' FROM notes",
    ],
)
def test_words_that_look_like_a_file_are_no_files_and_leave_the_transaction_open(con, statement):
    con.uql("CREATE TABLE notes AS SELECT 'parquet' AS word")
    con.uql("BEGIN")
    con.uql("INSERT INTO notes VALUES ('a second')")
    con.uql(statement).fetchall()
    con.uql("COMMIT")
    assert con.uql("SELECT count(*) FROM notes").fetchone()[0] >= 2


def test_a_file_is_looked_into_beside_the_transaction_that_is_open(con, tmp_path):
    con.uql("CREATE TABLE notes AS SELECT 'parquet' AS word")
    con.uql(f"COPY notes TO '{tmp_path}/notes.parquet'")
    con.uql("BEGIN")
    con.uql(f"PREPARE p AS SELECT * FROM read_parquet('{tmp_path}/notes.parquet', filename = '{tmp_path}/none')")
    con.uql("INSERT INTO notes VALUES ('a second')")
    con.uql("COMMIT")
    assert con.uql("SELECT count(*) FROM notes").fetchall() == [(2,)]


@pytest.mark.parametrize(
    "statement",
    ["DROP TABLE IF EXISTS mine", "DROP TABLE IF EXISTS temp.mine", "ALTER TABLE IF EXISTS mine ADD COLUMN b INTEGER"],
)
def test_if_exists_does_not_pass_over_a_temporary_table_of_the_connection_that_was_attached(labels, statement):
    with duckdb.connect() as mine:
        mine.execute("CREATE TEMP TABLE mine AS SELECT 1 AS a")
        attached = uql.attach(mine, model=labels.uql().configured.model, ledger=":memory:")
        with pytest.raises(DataError, match="temporary table of the connection"):
            attached.uql(statement)
        attached.uql("DROP TABLE IF EXISTS nowhere; CREATE TEMP TABLE own AS SELECT 1 AS a; DROP TABLE IF EXISTS own")
        assert mine.execute("FROM mine").fetchall() == [(1,)]


def test_an_enum_of_values_may_have_an_empty_label(con, sql):
    statement = "SELECT id, (CASE WHEN <joke> THEN 'a' ELSE '' END)::ENUM('a', '') AS x FROM reviews ORDER BY id"
    assert run(con, statement).fetchall() == sql.execute(both(statement)[1]).fetchall()
    con.uql("CREATE TABLE labelled AS SELECT ''::ENUM('a', '') AS x")
    assert con.uql("FROM labelled").fetchall() == [("",)]
    with pytest.raises(UQLError, match="different and not empty"):
        con.uql("SELECT \"the mood\"::ENUM('a', '') AS x FROM reviews")


@pytest.mark.parametrize(
    "choice, schema",
    [
        ("SET search_path = 'empty,\"s,2\"'", '"s,2"'),
        ("SET search_path = 'empty,second.third'", "second.third"),
        ("SET search_path = 'Empty,second'", "main"),
        ("USE empty", "main"),
        ("USE second.third", "second.third"),
    ],
)
def test_a_name_is_looked_for_along_the_search_path_as_in_duckdb(con, choice, schema):
    con.uql("ATTACH ':memory:' AS second; CREATE SCHEMA empty; CREATE SCHEMA \"s,2\"; CREATE SCHEMA second.third")
    for at, here in enumerate(('"s,2"', "second.third"), 1):
        con.uql(f"CREATE TABLE {here}.reviews AS SELECT id, text FROM main.reviews WHERE id % 3 = {at}")
    condition = both("<pos>")[0]
    expected = con.uql(f"SELECT id FROM {schema}.reviews WHERE {condition} ORDER BY id").fetchall()
    con.uql(choice)
    assert (
        con.sql("SELECT count(*) FROM reviews").fetchall()
        == con.sql(f"SELECT count(*) FROM memory.{schema}.reviews".replace("memory.second", "second")).fetchall()
    )
    assert con.uql(f"SELECT id FROM reviews WHERE {condition} ORDER BY id").fetchall() == expected
