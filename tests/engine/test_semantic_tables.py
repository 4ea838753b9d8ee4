"""CREATE SEMANTIC TABLE … KEY, REFRESH and DROP: what is asked again, what is stored, and what goes wrong."""

import os
import subprocess
import sys
import textwrap

import duckdb
import pytest

import uql
from uql.base.errors import BindError, BudgetError, ConfigError, DataError, UQLError, UQLSyntaxError
from uql.session.semantic_store import definitions

POSITIVE = '"the review is positive"'
MADE = f'CREATE SEMANTIC TABLE liked AS SELECT id, stars, "the main topic" AS topic FROM live WHERE {POSITIVE} KEY (id)'
TOPICS = (
    'CREATE SEMANTIC TABLE topics AS SELECT topic, COUNT(*) AS n FROM live GROUP BY "the topic" AS topic KEY (topic)'
)


@pytest.fixture
def shop(world, tmp_path):
    """A database with the first 40 reviews in `live`, and all of them in `reviews`."""
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as con:
        con.sql(f"SELECT * FROM '{world.folder}/data.parquet'").create("reviews")
        con.sql("CREATE TABLE live AS FROM reviews WHERE id < 40")
    return path


def opened(world, shop, ledger="ledger.sqlite", error=0.0, **settings):
    settings = {"budget": "all", **settings}
    return uql.connect(shop, model=world.oracle(error), ledger=str(shop.parent / ledger), **settings)


def change(con, sql):
    con.session.duck.execute(sql)


def one(con, sql):
    return con.sql(sql).fetchall()[0][0]


def told(result):
    """rows, added, changed, removed, calls"""
    return result.fetchall()[0][1:]


def truth(world, low, high):
    """The rows of `liked` by the labels."""
    found = world.truth(
        f"SELECT id, stars, about FROM r WHERE sentiment = 'pos' AND text IS NOT NULL AND id >= {low} AND id < {high}"
    )
    return sorted(found)


def test_the_rows_are_stored_and_a_refresh_without_changes_asks_nobody(world, shop):
    con = opened(world, shop)
    made = con.uql(MADE)
    assert told(made)[:4] == (len(truth(world, 0, 40)), len(truth(world, 0, 40)), 0, 0) and made.cost.calls > 0
    assert con.sql("FROM liked ORDER BY id").fetchall() == truth(world, 0, 40)
    again = con.refresh("liked")
    assert told(again) == (len(truth(world, 0, 40)), 0, 0, 0, 0) and again.cost.cached == 0
    plain = con.uql("SELECT count(*) AS n FROM liked")
    assert plain.exact and plain.based_on == []


@pytest.mark.parametrize(
    "text, help",
    [
        ('CREATE SEMANTIC TABLE liked KEY (id) AS SELECT id, "the mood" AS mood FROM t', "AS SELECT … KEY (column)"),
        ("REFRESH SEMANTIC TABLE liked", "write REFRESH name"),
        ("  drop semantic liked", "write DROP SEMANTIC TABLE name"),
    ],
)
def test_a_form_that_only_uql_has_is_not_shown_to_duckdb(text, help):
    with uql.connect(ledger=":memory:") as con, pytest.raises(UQLSyntaxError) as caught:
        con.uql(text)
    assert help in str(caught.value) and "DuckDB" not in str(caught.value)


def test_a_refresh_asks_about_new_and_changed_rows_alone_also_with_another_ledger(world, shop):
    with opened(world, shop) as con:
        con.uql(MADE)
    with opened(world, shop, ledger="other.sqlite") as con:
        change(con, "INSERT INTO live FROM reviews WHERE id >= 40 AND id < 50")
        change(con, "UPDATE live SET stars = 7 WHERE id = (SELECT min(id) FROM liked)")
        change(con, "DELETE FROM live WHERE id = (SELECT max(id) FROM liked)")
        result = con.uql("REFRESH liked")
        old, new = truth(world, 0, 40), truth(world, 40, 50)
        assert told(result)[:4] == (len(old) + len(new) - 1, len(new), 1, 1)
        assert result.cost.calls <= 2 * 11  # the condition and the topic of ten new rows and a changed one
        found = con.sql("FROM liked ORDER BY id").fetchall()
        assert found == sorted([(old[0][0], 7, old[0][2]), *old[1:-1], *new])
        assert told(con.refresh("liked"))[4] == 0


def test_a_row_that_no_longer_passes_the_plain_conditions_leaves(world, shop):
    con = opened(world, shop)
    con.uql(f"CREATE SEMANTIC TABLE liked AS SELECT id, film FROM live WHERE {POSITIVE} AND film <> 'Alien' KEY (id)")
    before = one(con, "SELECT count(*) FROM liked")
    change(con, "UPDATE live SET film = 'Alien' WHERE id = (SELECT min(id) FROM liked)")
    assert told(con.refresh("liked"))[:4] == (before - 1, 0, 0, 1)


def test_texts_read_the_same_columns_when_the_source_gets_a_new_long_one(world, shop):
    con = opened(world, shop)
    con.uql(MADE)
    change(
        con,
        "ALTER TABLE live ADD COLUMN note VARCHAR DEFAULT 'a note that is long enough to be taken for the text of a row'",
    )
    assert told(con.refresh("liked"))[1:] == (0, 0, 0, 0)
    assert "USING (text)" in con.uql("FROM uql_tables()").fetchall()[0][-1]


def test_a_star_means_the_columns_that_the_source_had(world, shop):
    con = opened(world, shop)
    con.uql(
        "CREATE SEMANTIC TABLE every AS SELECT *, \"the main topic\" AS topic FROM live KEY (id) WITH (on_error = 'null')"
    )
    change(con, "ALTER TABLE live ADD COLUMN extra INTEGER")
    change(con, "INSERT INTO live (id, text) SELECT id, text FROM reviews WHERE id = 40")
    assert told(con.refresh("every"))[:4] == (41, 1, 0, 0)
    assert [row[0] for row in con.sql("DESCRIBE every").fetchall()] == ["id", "film", "stars", "text", "topic"]


def test_the_groups_of_the_first_build_stay(world, shop):
    con = opened(world, shop)
    change(
        con,
        "DELETE FROM live WHERE id NOT IN (SELECT id FROM reviews WHERE id < 40 AND text LIKE '%plot%' OR text LIKE '%music%')",
    )
    con.uql(TOPICS)
    assert {row[0] for row in con.sql("FROM topics").fetchall()} <= {"plot", "music", None, "none of these"}
    change(con, "INSERT INTO live FROM reviews WHERE id NOT IN (SELECT id FROM live)")
    result = con.refresh("topics")
    rows = dict(con.sql("SELECT topic, n FROM topics").fetchall())
    assert "acting" not in rows and rows["none of these"] > 0
    assert rows["plot"] == world.truth("SELECT count(*) FROM r WHERE about = 'plot' AND text IS NOT NULL")[0][0]
    assert told(result)[1:4] == (2, 2, 0)  # those in no group, and those without a text, are rows of their own
    con.uql(TOPICS.replace("CREATE", "CREATE OR REPLACE"))
    assert "acting" in dict(con.sql("SELECT topic, n FROM topics").fetchall())


def test_an_estimate_is_stored_with_its_ends_and_what_reads_it_says_so(large, tmp_path):
    con = uql.connect(tmp_path / "e.duckdb", model=large.oracle(), ledger=":memory:", budget=100)
    change(con, f"CREATE TABLE live AS SELECT *, id % 2 AS odd FROM '{large.folder}/data.parquet'")
    con.uql(
        f"CREATE SEMANTIC TABLE counts AS SELECT odd, COUNT(*) AS n, max(id) AS last FROM live WHERE {POSITIVE} GROUP BY odd KEY (odd)"
    )
    columns = [row[0] for row in con.sql("DESCRIBE counts").fetchall()]
    assert [c for c in columns if c.startswith("n")] == ["n", "n_low", "n_high"]
    assert all(low < n < high for n, low, high in con.sql("SELECT n, n_low, n_high FROM counts").fetchall())
    reading = con.uql("SELECT sum(n) AS s FROM counts")
    assert not reading.exact and "counts" in reading.based_on[0]
    with con.settings(budget="all"):
        con.refresh("counts")
    assert [row[0] for row in con.sql("DESCRIBE counts").fetchall()] == columns  # exact now, and the same columns
    assert con.uql("SELECT sum(n) AS s FROM counts").exact
    with pytest.raises(BindError, match="UQL203"):
        con.uql("SELECT 1 AS x TO counts")


def test_a_row_without_an_answer_is_null_and_is_asked_again_by_the_next_refresh(world, shop):
    con = opened(world, shop, folder=str(shop.parent))
    change(con, "CREATE TABLE shots AS SELECT 1 AS id, 'gone.png' AS picture UNION ALL SELECT 2, 'also.png'")
    change(con, "COMMENT ON COLUMN shots.picture IS 'image'")
    made = con.uql('CREATE SEMANTIC TABLE seen AS SELECT id, "the main topic" AS topic FROM shots KEY (id)')
    assert told(made)[:2] == (2, 2) and len(made.errors) == 2 and made.cost.calls == 0
    assert con.uql("SELECT count(*) AS n FROM seen").based_on
    again = con.refresh("seen")
    assert len(again.errors) == 2 and told(again)[:4] == (2, 0, 0, 0)


def test_a_search_that_the_budget_ends_goes_on_with_the_next_refresh(large, tmp_path):
    con = uql.connect(tmp_path / "s.duckdb", model=large.oracle(), ledger=":memory:", budget=200)
    change(con, f"CREATE TABLE live AS SELECT * FROM '{large.folder}/data.parquet' WHERE id < 500")
    con.uql(f"CREATE SEMANTIC TABLE liked AS SELECT id FROM live WHERE {POSITIVE} KEY (id)")
    counts = [one(con, "SELECT count(*) FROM liked")]
    assert con.uql("SELECT count(*) AS n FROM liked").based_on
    for _ in range(4):
        con.refresh("liked")
        counts.append(one(con, "SELECT count(*) FROM liked"))
    assert counts == sorted(counts)
    assert (
        counts[-1]
        == large.truth("SELECT count(*) FROM r WHERE sentiment = 'pos' AND text IS NOT NULL AND id < 500")[0][0]
    )
    assert not con.uql("SELECT count(*) AS n FROM liked").based_on


def test_a_persons_answer_changes_the_row_at_the_next_refresh(world, shop):
    con = opened(world, shop)
    con.uql(MADE)
    first = one(con, "SELECT min(id) FROM liked")
    r = con.uql(f"SELECT id, {POSITIVE}::BOOLEAN AS p FROM live WHERE id = {first}")
    correction = r.correct(0, False)
    result = con.refresh("liked")
    assert told(result)[1:] == (0, 0, 1, 0)
    correction.undo()
    assert told(con.refresh("liked"))[1:] == (1, 0, 0, 0)


@pytest.mark.thorough
def test_a_build_killed_halfway_loses_nothing_that_was_paid(world, shop):
    program = f"""
    import os, uql
    con = uql.connect({str(shop)!r}, model={world.oracle()!r}, ledger={str(shop.parent / "ledger.sqlite")!r}, budget="all", concurrency=2)
    calls = []
    def count(event):
        if event.kind == "call":
            calls.append(event)
            if len(calls) == AFTER:
                os._exit(9)
    con.on_event(count)
    con.uql(STATEMENT)
    """

    def run(statement, after):
        text = textwrap.dedent(program).replace("AFTER", str(after)).replace("STATEMENT", repr(statement))
        return subprocess.run(
            [sys.executable, "-c", text], capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": ""}
        )

    assert run(MADE, 10).returncode == 9
    with opened(world, shop) as con:
        with pytest.raises(BindError, match="UQL520"):
            con.uql("REFRESH liked")  # nothing half done is there
        con.uql(MADE)
        change(con, "INSERT INTO live FROM reviews WHERE id >= 40")
    assert run("REFRESH liked", 8).returncode == 9
    with opened(world, shop) as con:
        assert con.sql("FROM liked ORDER BY id").fetchall() == truth(world, 0, 40)  # as before it
        con.uql("REFRESH liked")
        assert con.sql("FROM liked ORDER BY id").fetchall() == truth(world, 0, 60)
        paid = con.uql("SELECT count(*) AS n FROM uql_calls() WHERE kind = 'call'").fetchall()[0][0]
        conditions = world.truth("SELECT count(*) FROM r WHERE text IS NOT NULL")[0][0]
        assert paid <= conditions + len(truth(world, 0, 60)) + 2 * 2  # each once, but for those in flight


def test_a_limit_reached_while_running_leaves_the_table_as_it_was(world, shop):
    con = opened(world, shop)
    con.uql(MADE)
    change(con, "INSERT INTO live FROM reviews WHERE id >= 40")
    with con.settings(max_tokens=200):
        stopped = con.refresh("liked")
    assert stopped.partial and "as it was" in stopped.notes[-1] and told(stopped)[0] is None
    assert con.sql("FROM liked ORDER BY id").fetchall() == truth(world, 0, 40)
    con.refresh("liked")
    assert con.sql("FROM liked ORDER BY id").fetchall() == truth(world, 0, 60)


def test_values_for_more_rows_than_the_budget_has_calls_are_refused_before_anything_is_sent(world, shop):
    con = opened(world, shop, budget=10)
    with pytest.raises(BudgetError, match="nothing was sent"):
        con.uql('CREATE SEMANTIC TABLE t AS SELECT id, "the main topic" AS topic FROM live KEY (id)')
    with pytest.raises(BindError, match="UQL520"):
        con.refresh("t")
    made = con.uql(
        "CREATE SEMANTIC TABLE t AS SELECT id, \"the main topic\" AS topic FROM live KEY (id) WITH (budget = 'all')"
    )
    assert told(made)[0] == 40


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("spoil", "code", "said"),
    [
        ("INSERT INTO live FROM live WHERE id = 3", "UQL521", "id = 3 stands in 2 rows"),
        ("INSERT INTO live (id, text) VALUES (NULL, 'no key')", "UQL521", "NULL in 1 row of"),
        ("ALTER TABLE live ALTER stars TYPE DOUBLE", "UQL522", "stars is DOUBLE now and was"),
        ("ALTER TABLE live DROP stars", "UQL522", "no column stars"),
        ("ALTER TABLE live RENAME text TO words", "UQL522", "no column text"),
        ("DROP TABLE live", "UQL522", "no table live"),
        ("DROP TABLE liked", "UQL522", "liked was dropped"),
        ("ALTER TABLE liked RENAME TO loved", "UQL522", "liked was dropped or renamed"),
        ("ALTER TABLE liked RENAME topic TO about", "UQL522", "liked has no column topic any more"),
        ("ALTER TABLE liked DROP topic", "UQL522", "liked has no column topic any more"),
        ("CREATE OR REPLACE TABLE liked AS SELECT 1 AS id", "UQL522", "liked is another table"),
    ],
)
def test_what_no_longer_fits_is_said_before_anybody_is_asked_and_nothing_changes(world, shop, spoil, code, said):
    con = opened(world, shop)
    con.uql(MADE)
    change(con, spoil)
    events = []
    con.on_event(events.append)
    with pytest.raises(DataError, match=said) as raised:
        con.refresh("liked")
    assert raised.value.code == code and raised.value.help
    assert not [e for e in events if e.kind == "call"]
    if "liked" not in spoil:  # else it is the table itself that was changed
        assert con.sql("SELECT id, topic FROM liked ORDER BY id").fetchall() == [
            (i, t) for i, _, t in truth(world, 0, 40)
        ]


def test_rows_that_were_deleted_from_the_table_itself_come_back_for_no_call(world, shop):
    con = opened(world, shop)
    rows = told(con.uql(MADE))[0]
    for gone in ("DELETE FROM liked WHERE id < 9", "TRUNCATE liked"):
        change(con, gone)
        missing = rows - one(con, "SELECT count(*) FROM liked")
        assert told(con.refresh("liked")) == (rows, missing, 0, 0, 0)
        assert con.sql("SELECT id, stars, topic FROM liked ORDER BY id").fetchall() == truth(world, 0, 40)


def test_a_table_of_a_version_that_did_not_note_its_rows_is_refreshed(world, shop):
    con = opened(world, shop)
    rows = told(con.uql(MADE))[0]
    (definition,) = definitions(con.session.duck)
    change(con, f"ALTER TABLE {definition.rows_sql} DROP COLUMN __there")
    assert told(con.refresh("liked")) == (rows, 0, 0, 0, 0)
    change(con, "INSERT INTO live FROM reviews WHERE id >= 40 AND id < 60")
    con.refresh("liked")
    assert con.sql("SELECT id, stars, topic FROM liked ORDER BY id").fetchall() == truth(world, 0, 60)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE SEMANTIC TABLE live AS SELECT id FROM reviews KEY (id)", "UQL203"),
        ("CREATE OR REPLACE SEMANTIC TABLE live AS SELECT id FROM reviews KEY (id)", "UQL203"),
        ("CREATE SEMANTIC TABLE new AS SELECT id FROM live KEY (idd)", "UQL202"),
        ("CREATE SEMANTIC TABLE new AS SELECT id, id FROM live KEY (id)", "UQL525"),
        ("CREATE SEMANTIC TABLE new AS SELECT id FROM live WHERE id > $x KEY (id)", "UQL525"),
        ("CREATE SEMANTIC TABLE other.main.new AS SELECT id FROM live KEY (id)", "UQL520"),
        ("CREATE SEMANTIC TABLE new AS SELECT film FROM live KEY (film)", "UQL521"),
        ("REFRESH live", "UQL520"),
        ("REFRESH nothing", "UQL520"),
        ("DROP SEMANTIC TABLE live", "UQL520"),
    ],
)
def test_statements_that_cannot_be_are_refused_with_a_way_out(world, shop, statement, code):
    con = opened(world, shop)
    with pytest.raises(UQLError) as raised:
        con.uql(statement, x=1) if "$" in statement else con.uql(statement)
    assert raised.value.code == code and raised.value.help
    assert one(con, "SELECT count(*) FROM live") == 40


def test_a_data_frame_is_no_source_since_it_ends_with_the_session(world, shop):
    import pyarrow as pa

    frame = pa.table({"id": [1], "text": ["words"]})
    con = opened(world, shop)
    with pytest.raises(BindError, match="data frame of this session") as raised:
        con.uql('CREATE SEMANTIC TABLE t AS SELECT id, "the topic" AS topic FROM frame KEY (id)')
    assert raised.value.code == "UQL201" and frame.num_rows


def test_in_a_read_only_database_it_is_read_and_not_refreshed(world, shop):
    with opened(world, shop) as con:
        con.uql(MADE)
    con = uql.connect(shop, read_only=True, model=world.oracle(), ledger=":memory:")
    for statement in ("REFRESH liked", "DROP SEMANTIC TABLE liked", MADE.replace("liked", "other")):
        with pytest.raises(DataError, match="read-only") as raised:
            con.uql(statement)
        assert raised.value.code == "UQL523"
    assert con.uql("SELECT * FROM liked ORDER BY id").fetchall() == truth(world, 0, 40)


def test_dropping_forgets_all_of_it_and_the_name_is_free_again(world, shop):
    con = opened(world, shop)
    tables = sorted(con.sql("SELECT table_name FROM duckdb_tables()").fetchall())
    con.uql(MADE)
    assert con.uql("CREATE SEMANTIC TABLE IF NOT EXISTS liked AS SELECT id FROM live KEY (id)").fetchall()[0][1] is None
    assert "liked" in con.catalog.names() and not any("uql" in name for name in con.catalog.names())
    con.uql("DROP SEMANTIC TABLE liked")
    con.uql("DROP SEMANTIC TABLE IF EXISTS liked")
    left = sorted(con.sql("SELECT table_name FROM duckdb_tables()").fetchall())
    assert left == tables
    assert con.uql("FROM uql_tables()").fetchall() == []
    con.uql(MADE)
    change(con, "DROP TABLE liked")
    con.uql(MADE)  # a table that was dropped by plain SQL does not hold its name
    assert told(con.refresh("liked"))[0] == len(truth(world, 0, 40))


def test_a_definition_over_a_join_is_run_as_a_whole_and_its_key_is_checked(world, shop):
    con = opened(world, shop)
    change(con, "CREATE TABLE films AS SELECT DISTINCT film, length(film) AS letters FROM reviews")
    made = con.uql(
        f"CREATE SEMANTIC TABLE by_film AS SELECT r.id, f.letters FROM live r JOIN films f USING (film) WHERE {POSITIVE} KEY (id)"
    )
    assert told(made)[0] == len(truth(world, 0, 40))
    change(con, "UPDATE films SET letters = 99 WHERE film = 'Alien'")
    result = con.refresh("by_film")
    assert told(result)[2] == one(con, "SELECT count(*) FROM by_film WHERE letters = 99") and result.cost.calls == 0
    change(con, "INSERT INTO films VALUES ('Alien', 5)")
    with pytest.raises(DataError, match="not unique in the result"):
        con.refresh("by_film")


def test_a_definition_that_looks_at_the_clock_is_run_as_a_whole(world, shop):
    con = opened(world, shop)
    con.uql(f"CREATE SEMANTIC TABLE t AS SELECT id FROM live WHERE {POSITIVE} AND now() > DATE '2020-01-01' KEY (id)")
    con.uql(f"CREATE SEMANTIC TABLE u AS SELECT id FROM live WHERE {POSITIVE} AND random() >= 0 KEY (id)")
    con.uql(MADE)
    assert con.sql("SELECT table_name, by_row FROM uql_semantic_tables ORDER BY ALL").fetchall() == [
        ("liked", True),
        ("t", False),
        ("u", False),
    ]


def test_the_listing_tells_name_key_rows_model_calls_and_query(world, shop):
    con = opened(world, shop)
    con.uql(MADE)
    result = con.uql("FROM uql_tables()")
    (row,) = (dict(zip(result.columns, r, strict=True)) for r in result.fetchall())
    assert (row["name"], row["key"], row["rows"]) == ("liked", "id", len(truth(world, 0, 40)))
    assert row["model"].startswith("oracle:") and row["calls"] > 0 and row["refreshed"].tzinfo is not None
    change(con, "DROP TABLE liked")
    assert con.uql("FROM uql_tables()").fetchall()[0][2] is None


def test_the_plan_of_a_refresh_says_how_many_rows_it_would_look_at_and_asks_nobody(world, shop):
    con = opened(world, shop)
    con.uql(MADE)
    change(con, "INSERT INTO live FROM reviews WHERE id >= 55")
    change(con, "DELETE FROM live WHERE id < 2")
    result = con.refresh("liked")
    assert result.explain().startswith("REFRESH liked  [0 rows new, changed or without an answer; 0 gone]")
    change(con, "INSERT INTO live FROM reviews WHERE id = 0")
    explained = con.uql("EXPLAIN REFRESH liked").fetchall()
    assert explained[0][0] == "REFRESH liked  [1 rows new, changed or without an answer; 0 gone]"
    assert any(line.strip() == "DuckDB live  [1 rows]" for (line,) in explained)  # the new row alone


def test_con_refresh_is_the_statement_and_an_unknown_setting_of_the_query_is_said(world, shop):
    con = opened(world, shop)
    con.uql(MADE)
    assert con.refresh("main.liked").columns == con.uql("REFRESH liked").columns
    with pytest.raises(ConfigError, match="UQL105"):
        con.uql("CREATE SEMANTIC TABLE t AS SELECT id FROM live KEY (id) WITH (bugdet = 3)")


def test_the_definition_of_a_database_that_was_sent_sends_no_rows_elsewhere_and_reads_no_files(world, shop):
    """REFRESH is asked for by name: what the database says that it does is not what the user has read."""
    con = opened(world, shop)
    con.uql(MADE)
    definition = one(con, "SELECT definition FROM uql_semantic_tables")
    for options in ("model = 'http://elsewhere.example/v1#m'", "urls = true", "folder = '/'", "ledger = 'x.sqlite'"):
        text = f"{definition} WITH ({options})".replace("'", "''")
        change(con, f"UPDATE uql_semantic_tables SET definition = '{text}'")
        with pytest.raises(ConfigError, match=r"UQL416: the definition of liked would ") as caught:
            con.uql("REFRESH liked").fetchall()
        assert options in str(caught.value).replace("True", "true") and "SET uql." in str(caught.value)
    change(con, f"UPDATE uql_semantic_tables SET definition = '{definition} WITH (urls = true)'")
    con.uql("SET uql.urls = true")
    assert told(con.uql("REFRESH liked"))[0] == len(truth(world, 0, 40)), "the user has chosen it"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "spoiled",
    [
        "groups = '\"x\"'",
        "columns = '[1]'",
        f"columns = '{'[' * 30_000}'",
        "key = NULL",
        "definition = 'COPY live TO ''stolen.csv'' '",
        "definition = 'SELECT 1; COPY live TO ''stolen.csv'' '",
        "definition = 'SELECT id, stars, (SELECT content FROM read_text(''/etc/hostname'')) AS topic FROM live'",
        "definition = 'SELECT id FROM live LIMIT 3'",
    ],
)
def test_a_definition_that_cannot_be_read_is_an_error_in_words(world, shop, spoiled):
    con = opened(world, shop)
    con.uql(MADE)
    change(con, "ALTER TABLE uql_semantic_tables ALTER columns TYPE VARCHAR")
    change(con, f"UPDATE uql_semantic_tables SET {spoiled}")
    with pytest.raises(DataError, match="UQL522"):
        con.uql("REFRESH liked").fetchall()
    assert not os.path.exists("stolen.csv")
    change(con, "ALTER TABLE uql_semantic_tables DROP COLUMN model")
    with pytest.raises(DataError, match=r"UQL522(.|\n)*DROP TABLE"):
        con.uql("SELECT * FROM uql_tables()").fetchall()


def test_a_refresh_beside_another_one_says_to_run_it_again_and_changes_nothing(world, shop):
    con = opened(world, shop)
    con.uql(MADE)
    change(con, "INSERT INTO live FROM reviews WHERE id >= 40 AND id < 50")
    other = con.session.duck.cursor()
    other.execute("BEGIN TRANSACTION")
    other.execute("COMMENT ON TABLE liked IS 'of another writer'")
    with pytest.raises(DataError, match="UQL509") as caught:
        con.refresh("liked")
    assert "run this one again" in str(caught.value)
    other.execute("ROLLBACK")
    assert con.sql("FROM liked ORDER BY id").fetchall() == truth(world, 0, 40)
    again = con.refresh("liked")
    assert told(again)[4] == 0 and con.sql("FROM liked ORDER BY id").fetchall() == truth(world, 0, 50)


def test_a_key_that_is_null_is_named_in_the_cure(world, shop):
    con = opened(world, shop)
    change(con, "UPDATE live SET film = NULL WHERE id = 3")
    with pytest.raises(DataError, match="UQL521") as caught:
        con.uql(f"CREATE SEMANTIC TABLE liked AS SELECT id, film FROM live WHERE {POSITIVE} KEY (id, film)")
    assert "WHERE film IS NOT NULL" in str(caught.value)


def test_a_temporary_table_of_the_same_name_is_neither_refreshed_nor_dropped(world, shop):
    con = opened(world, shop)
    con.uql(MADE)
    con.uql("CREATE TEMP TABLE liked AS SELECT 7 AS id, 5 AS stars, 'mine' AS topic")
    change(con, "INSERT INTO live FROM reviews WHERE id >= 40 AND id < 50")
    con.refresh("liked")
    assert con.sql("FROM liked").fetchall() == [(7, 5, "mine")]
    assert con.sql("FROM shop.main.liked ORDER BY id").fetchall() == truth(world, 0, 50)
    con.uql("DROP SEMANTIC TABLE shop.main.liked")
    assert con.sql("FROM liked").fetchall() == [(7, 5, "mine")]
    assert con.sql("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'liked'").fetchall() == [(1,)]


def test_the_definition_reads_the_tables_of_its_own_schema_wherever_use_leads(world, shop):
    con = opened(world, shop)
    con.uql(MADE)
    con.uql("CREATE SCHEMA other; CREATE TABLE other.live AS FROM reviews WHERE id >= 50; USE other")
    assert told(con.uql("REFRESH main.liked"))[1:4] == (0, 0, 0)
    with pytest.raises(BindError, match="UQL520") as caught:
        con.uql("REFRESH liked")
    assert "main.liked" in caught.value.help
    con.uql("USE main")
    con.uql("CREATE TEMP TABLE live AS FROM reviews WHERE id >= 50")
    assert told(con.uql("REFRESH liked"))[1:4] == (0, 0, 0)
    assert con.sql("FROM liked ORDER BY id").fetchall() == truth(world, 0, 40)


def test_a_name_that_means_another_table_here_than_in_the_schema_of_the_new_table_is_refused(world, shop):
    con = opened(world, shop)
    con.uql("CREATE TEMP TABLE live AS FROM reviews WHERE id >= 50")
    with pytest.raises(BindError, match="UQL525") as caught:
        con.uql(MADE)
    assert "main.live" in caught.value.help
    con.uql(MADE.replace("FROM live", "FROM main.live"))
    con.uql(
        MADE.replace("liked", "of_it")
        .replace("FROM live", "FROM l")
        .replace(" AS SELECT", " AS WITH l AS (FROM main.live) SELECT")
    )
    assert (
        con.sql("FROM liked ORDER BY id").fetchall()
        == con.sql("FROM of_it ORDER BY id").fetchall()
        == truth(world, 0, 40)
    )
