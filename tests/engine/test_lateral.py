"""unnest, range and generate_series in FROM over the columns of a table before them, and what only DuckDB can place."""

from __future__ import annotations

import pytest
from hash_model import HashModel

import uql
from uql.base.errors import UQLError


@pytest.fixture
def con():
    con = uql.connect(model=HashModel(), ledger=":memory:")
    con.execute("CREATE TABLE t AS SELECT i AS id, ['a', 'b'][1:i] AS tags, 'note ' || i AS body FROM range(4) r(i)")
    con.execute("CREATE TABLE s AS SELECT i AS id, 'n' || i AS name FROM range(2, 6) r(i)")
    return con


@pytest.mark.parametrize(
    ("source", "place", "message"),
    [
        ("t FULL JOIN unnest(t.tags) AS u(x) ON true", "unnest(t.tags)", "ON TRUE"),
        ("t JOIN unnest(t.tags) AS u(x) ON x = 'a'", "unnest(t.tags)", "ON TRUE"),
        ("t, unnest(t.tag) AS u(x)", "t.tag", "no column tag in t"),
        ("t, unnest(q.tags) AS u(x)", "q.tags", "no table or column q"),
        ("t, unnest(t.tags) AS u(x, y)", "unnest(t.tags)", "given 2 column names"),
        ("t, unnest(t.tags) AS t(x)", "unnest(t.tags)", "two tables of this query are called t"),
    ],
)
def test_a_list_that_cannot_be_taken_apart_says_why(con, source, place, message):
    with pytest.raises(UQLError) as error:
        con.uql(f'SELECT x FROM {source} WHERE "it is urgent"')
    found = error.value
    assert message in found.message
    assert found.text[found.start : found.end].startswith(place)


def test_structs_in_a_list_that_become_several_columns_are_refused_beside_a_text(con):
    with pytest.raises(UQLError) as error:
        con.uql("""SELECT unnest([{'a': id, 'b': tags}], recursive := true) FROM t WHERE "it is urgent" """)
    assert error.value.code == "UQL212"
    assert "s.*" in error.value.help


def test_each_text_is_asked_once_however_many_items_stand_beside_it():
    model = HashModel()
    con = uql.connect(model=model, ledger=":memory:", budget="all")
    con.execute("CREATE TABLE t AS SELECT i AS id, range(5) AS tags, 'note ' || i AS body FROM range(4) r(i)")
    rows = con.uql('SELECT id, tag, "the mood" AS m FROM t, unnest(tags) AS u(tag)').fetchall()
    assert (len(rows), model.calls) == (20, 4)
    assert len({(i, mood) for i, _, mood in rows}) == 4


def test_a_private_list_stays_private(con):
    con.execute("COMMENT ON COLUMN t.tags IS 'private'")
    with pytest.raises(UQLError, match="private"):
        con.uql('SELECT id FROM t, unnest(t.tags) AS u(tag) WHERE "{tag} is urgent"')


def test_what_a_lateral_sub_query_makes_of_a_private_column_stays_private(con):
    con.execute("COMMENT ON COLUMN t.body IS 'private'")
    for source in ("(SELECT t.body || '!' AS b) l", "(VALUES (t.body)) l(b)", "(SELECT (SELECT t.body) AS b) l"):
        with pytest.raises(UQLError, match="private"):
            con.uql(f'SELECT t.id FROM t, LATERAL {source} WHERE "{{l.b}} is urgent"')
    with pytest.raises(UQLError, match="private"):
        con.uql('SELECT id FROM (SELECT id, (SELECT max(body) FROM t) AS b FROM s) WHERE "{b} is urgent"')


def test_a_name_of_a_lateral_sub_query_means_the_nearest_table(con):
    """As in DuckDB: the table before it, not the query around."""
    query = "SELECT id, (SELECT max(z) FROM s, LATERAL (SELECT id + 1 AS z) l WHERE s.id < 4) AS m FROM t WHERE {}"
    asked = con.uql(query.format('"it is urgent" IS NOT NULL') + " WITH (budget = 'all')").fetchall()
    assert asked == con.execute(query.format("true")).fetchall() == [(i, 4) for i in range(4)]


def test_a_budget_that_ends_in_the_middle_of_the_values_is_not_said_to_have_sent_nothing():
    model = HashModel({"it is urgent": 0.5})
    con = uql.connect(model=model, ledger=":memory:")
    con.execute("CREATE TABLE t AS SELECT i AS id, 'note ' || i AS body FROM range(30) r(i)")
    query = """SELECT count(*) FROM t, LATERAL (SELECT u.id FROM t u WHERE u.id < t.id AND "{u.body} is urgent") s"""
    with pytest.raises(UQLError, match="the budget ended at the 22") as error:
        con.uql(f"{query} WITH (budget = 20)").fetchall()
    assert "nothing was sent" not in str(error.value) and "what was answered is kept" in str(error.value)
    assert model.calls == 20
    assert con.uql(f"{query} WITH (budget = 'all')").exact and model.calls == 29


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a.id, b.id, x FROM t a, t b, unnest(a.tags || b.tags) AS u(x)",
        "SELECT s.id, x FROM s LEFT JOIN t USING (id), unnest(t.tags) AS u(x)",
        "SELECT t.id, z FROM t, (SELECT id + 1 AS z)",
        "SELECT x FROM t JOIN unnest(tags) AS u(x) ON x = 'b'",
        "SELECT unnest({'a': id, 'b': tags}) FROM t",
        "SELECT t.id FROM t, s WHERE $n < t.id AND t.id IN (SELECT z FROM (SELECT s.id AS z))",
    ],
)
def test_sql_that_only_duckdb_can_place_is_run_by_it(con, statement):
    values = {"n": 1} if "$n" in statement else {}
    assert sorted(con.uql(statement, **values).fetchall()) == sorted(con.execute(statement, values).fetchall())


def test_a_table_is_made_of_what_only_duckdb_can_place(con):
    con.uql("CREATE TABLE made AS SELECT s.id, x FROM s LEFT JOIN t USING (id), unnest(t.tags) AS u(x)").fetchall()
    con.uql("INSERT INTO made SELECT t.id, z FROM t, (SELECT tags[1] AS z)").fetchall()
    assert con.sql("SELECT count(*) FROM made").fetchall() == [(8,)]


def test_where_duckdb_cannot_place_it_either_the_error_is_ours(con):
    with pytest.raises(UQLError) as error:
        con.uql("SELECT t.id, z FROM t, (SELECT nope + 1 AS z)")
    assert error.value.code == "UQL202"
    assert "DuckDB" not in error.value.message
