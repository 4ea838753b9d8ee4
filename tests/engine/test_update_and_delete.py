"""UPDATE, DELETE and INSERT with texts of their own, and statements of DuckDB's that quote names with blanks."""

from __future__ import annotations

from contextlib import suppress

import duckdb
import pytest
from labels import both, plain
from row_model import RowModel

import uql
from uql.base.errors import BudgetError, UQLError
from uql.llm.providers.base import Answer

CHANGES = [
    "DELETE FROM reviews WHERE <pos>",
    "DELETE FROM reviews WHERE NOT <pos> AND <topic> IN ('plot', 'music') RETURNING id, film",
    "DELETE FROM reviews r USING films f WHERE r.film = f.film AND f.letters < 6 AND <joke r.text>",
    "DELETE FROM main.reviews WHERE <pos> OR id IN (SELECT max(id) FROM reviews)",
    "DELETE FROM quiet WHERE <pos>",
    "UPDATE reviews SET film = <topic>",
    "UPDATE reviews SET film = 'x' WHERE <pos>",
    "UPDATE reviews AS r SET stars = <rating>, film = upper(<topic>), day = NULL WHERE <pos> AND stars IS NOT NULL",
    "UPDATE reviews SET day = <written>, tags = <tags> WHERE id < 9",
    "UPDATE reviews SET stars = stars + 1 WHERE <pos> RETURNING id, stars",
    "UPDATE reviews SET film = CASE WHEN <pos> THEN 'good, or better' ELSE film END, stars = DEFAULT WHERE id < 10",
    "UPDATE reviews SET film = 'a' || (SELECT count(*) FROM films WHERE film <> 'WHERE') WHERE <joke>",
    "UPDATE reviews r SET film = f.film || <topic r.text> FROM films f WHERE f.film = r.film AND f.letters = 5 AND <plot r.text>",
    "UPDATE reviews SET stars = <rating> * 2, film = lower(film) WHERE id BETWEEN 3 AND 5;",
    "UPDATE reviews SET film = stars IS DISTINCT FROM 3, stars = <rating text> WHERE film IS DISTINCT FROM 'Alien' AND <pos>",
    "UPDATE films SET letters = (SELECT count(*) FROM reviews r WHERE r.film = films.film AND <pos r.text>)",
    "DELETE FROM films WHERE NOT EXISTS (SELECT 1 FROM reviews r WHERE r.film = films.film AND r.stars > 3 AND <pos r.text>)",
    "UPDATE films f SET letters = 0 WHERE 2 > (SELECT count(*) FROM reviews r WHERE r.film = f.film AND <joke r.text>)",
    'DELETE FROM reviews AS "my rows" WHERE NOT <pos> AND "my rows".id > 3',
    "UPDATE reviews /* the table */ r -- its name\n SET film = <topic> -- a comment, SET x = 1\n WHERE <pos> -- the end",
    "UPDATE reviews SET film = <topic> WHERE <joke> RETURNING *",
    "INSERT INTO reviews (id, stars, day, film) SELECT id + 100, <rating>, <written>, <topic> FROM reviews WHERE <pos>",
    "INSERT INTO reviews (id, stars) SELECT id + 100, r FROM (SELECT id, <rating> AS r FROM reviews) WHERE id < 9",
]
OF_NAMES = [
    """UPDATE "odd names" SET "the text" = 'x' WHERE "the id" = 3""",
    """DELETE FROM "odd names" WHERE "the id" = 3 RETURNING "the text" AS "what it said\"""",
    """CREATE TABLE "a b" ("c d" INTEGER, e INTEGER DEFAULT 4)""",
    """INSERT INTO "a b" ("c d") VALUES (3) RETURNING "c d\"""",
    """ALTER TABLE "a b" RENAME "c d" TO "f g\"""",
    """CREATE INDEX "i j" ON "a b" ("f g")""",
    """COMMENT ON COLUMN "odd names"."the id" IS 'a number'""",
    """PIVOT "odd names" ON "group" USING count("the id")""",
    """UNPIVOT "odd names" ON "select" INTO NAME "n n" VALUE "v v\"""",
    """SUMMARIZE "odd names\"""",
    """DESCRIBE "odd names\"""",
    """CREATE VIEW "my view" AS SELECT "the id" AS "i d" FROM "odd names\"""",
    """MERGE INTO "odd names" o USING reviews r ON o."the id" = r.id WHEN MATCHED THEN DELETE""",
    """DROP TABLE "a b\"""",
]


@pytest.mark.thorough
@pytest.mark.one_in(3)
@pytest.mark.parametrize("statement", CHANGES)
def test_a_statement_with_texts_changes_what_it_changes_over_the_labels(labels, statement):
    asked, over_labels, _ = both(statement)
    con, sql = labels.uql(budget="all"), labels.sql()
    found, want = con.uql(asked).fetchall(), sql.execute(over_labels).fetchall()
    assert sorted(map(plain, found), key=repr) == sorted(map(plain, want), key=repr)
    for table in ("reviews", "films", "quiet"):
        rows = f"FROM {table} ORDER BY ALL"
        assert con.uql(rows).fetchall() == sql.execute(rows).fetchall()
        assert con.uql(rows).exact


@pytest.mark.parametrize("statement", CHANGES[:2])
def test_a_part_of_the_rows_changes_nothing(labels, statement):
    con = labels.uql(budget=5, seed=1)
    before = con.uql("FROM reviews ORDER BY ALL").fetchall()
    with pytest.raises(BudgetError, match="nothing was changed"):
        con.uql(both(statement)[0])
    assert con.uql("FROM reviews ORDER BY ALL").fetchall() == before


def test_statements_of_duckdbs_may_quote_names_with_blanks(labels):
    con, sql = labels.uql(budget="all"), labels.sql()
    for statement in OF_NAMES:
        found, want = con.uql(statement).fetchall(), sql.execute(statement).fetchall()
        assert sorted(map(plain, found), key=repr) == sorted(map(plain, want), key=repr), statement


@pytest.mark.parametrize(
    ("statement", "code", "at", "help"),
    [
        ('DELETE FROM reviews WHERE <pos> AND foo = 3', "UQL202", "foo", "columns: id, film, stars, text, day, tags, meta"),
        ("UPDATE reviews SET film = <topic> WHERE fooo", "UQL202", "fooo", "columns: id, film, stars, text, day, tags, meta"),
        ("UPDATE reviews SET star = <rating>", "UQL202", "star", "did you mean stars? columns: id, film, stars, text, day, tags, meta"),
        ("DELETE FROM reviews WHERE <pos> AND AND id = 3", "UQL100", "AND id", None),
        ("UPDATE reviews SET film = <topic>, (stars, day) = (1, NULL)", "UQL100", "UPDATE", "texts stand in its SET and WHERE"),
        ("UPDATE reviews SET film = <topic> RETURNING <pos>", "UQL100", "UPDATE", "texts stand in its SET and WHERE"),
        ("UPDATE good SET film = <topic>", "UQL509", "good", "name the table that it reads"),
        ("CREATE MACRO m() AS <pos>", "UQL100", "MACRO", "a macro cannot contain a text"),
        ("ALTER TABLE reviews ADD COLUMN p AS (<pos>)", "UQL100", "ALTER", None),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_said_where_it_stands(labels, statement, code, at, help):
    asked = both(statement)[0]
    with pytest.raises(UQLError) as error:
        labels.uql(budget="all").uql(asked)
    assert error.value.code == code
    assert error.value.text is None or asked[error.value.start :].startswith(at[: error.value.end - error.value.start])
    assert help is None or help in (error.value.help or "")


def test_an_answer_that_is_none_of_the_columns_type_changes_nothing_unless_a_part_will_do(labels):
    con = labels.uql(budget="all")
    for statement in ("UPDATE reviews SET stars = <topic> WHERE id < 5", "INSERT INTO reviews (stars) SELECT <topic> FROM reviews WHERE id < 5"):  # fmt: skip
        before = con.uql("SELECT stars FROM reviews ORDER BY ALL").fetchall()
        with pytest.raises(BudgetError, match="5 answers are missing"):
            con.uql(both(statement)[0])
        assert con.uql("SELECT stars FROM reviews ORDER BY ALL").fetchall() == before
    asked = both("UPDATE reviews SET stars = <topic> WHERE id < 5 WITH (partial = true)")[0]
    result = con.uql(asked)
    assert len(result.errors) == 5 and not result.exact
    stored = con.uql("SELECT stars FROM reviews WHERE id < 5")
    assert stored.fetchall() == [(None,)] * 5
    assert stored.based_on == [f"reviews ({asked})"]


def test_a_parameter_may_be_the_text(labels):
    con, sql = labels.uql(budget="all"), labels.sql()
    rows = "FROM reviews ORDER BY ALL"
    con.uql(
        "UPDATE reviews SET film = 'x' || $k, stars = $q WHERE id < $n", k="y", q=uql.sem("the number of stars"), n=9
    )
    con.uql("DELETE FROM reviews WHERE $q AND id > $n", q=uql.sem("the review is positive"), n=20)
    sql.execute(both("UPDATE reviews SET film = 'xy', stars = <rating> WHERE id < 9")[1])
    sql.execute(both("DELETE FROM reviews WHERE <pos> AND id > 20")[1])
    assert con.uql(rows).fetchall() == sql.execute(rows).fetchall()


def test_rows_of_an_open_transaction_are_changed_too(labels):
    con, sql = labels.uql(budget="all"), labels.sql()
    for statement in (
        "BEGIN",
        "INSERT INTO reviews SELECT * REPLACE (id + 900 AS id) FROM reviews WHERE id < 9",
        "UPDATE reviews SET film = <topic> WHERE id > 902 OR id = 5",
        "DELETE FROM reviews WHERE <pos> AND id > 20",
        "COMMIT",
    ):
        asked, over_labels, _ = both(statement)
        con.uql(asked)
        sql.execute(over_labels)
    rows = "FROM reviews ORDER BY ALL"
    assert con.uql(rows).fetchall() == sql.execute(rows).fetchall()


def test_explain_asks_nobody_and_changes_nothing(labels):
    con = labels.uql(budget="all")
    lines = "\n".join(line for (line,) in con.uql(both("EXPLAIN DELETE FROM reviews WHERE <pos>")[0]).fetchall())
    assert "SemFilter" in lines
    assert con.uql("SELECT count(*) FROM reviews").fetchall() == [(44,)]


def test_rows_that_are_numbered_anew_meanwhile_are_not_taken_for_others(tmp_path):
    """A checkpoint may number the rows of a table anew: not while the transaction of the statement is open."""
    duck = duckdb.connect(str(tmp_path / "t.duckdb"), config={"threads": 2})
    duck.execute("CREATE TABLE t AS SELECT i AS id, 'row ' || i AS text, '' AS said FROM range(300_000) r(i)")
    duck.execute("CHECKPOINT")
    other = duck.cursor()

    class Meanwhile(RowModel):
        deleted = False

        def _one(self, question, row):
            if not self.deleted:
                self.deleted = True
                other.execute("DELETE FROM t WHERE id < 200_000")
                with suppress(duckdb.Error):
                    other.execute("CHECKPOINT")
            return Answer(row.cells[0].value)

    with uql.attach(duck, model=Meanwhile(), ledger=":memory:", budget="all") as con:
        result = con.uql("""UPDATE t SET said = "what is written" USING (text) WHERE id >= 299_990""")
    assert result.fetchall() == [(10,)]
    assert duck.execute("SELECT count(*), count(*) FILTER (WHERE said = text) FROM t WHERE said <> ''").fetchall() == [
        (10, 10)
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM mine WHERE <pos>",
        "UPDATE mine SET film = <topic>",
        "INSERT INTO mine SELECT id, text, film FROM reviews WHERE <pos>",
        "MERGE INTO mine USING (SELECT id FROM reviews WHERE <pos>) s ON s.id = mine.id WHEN MATCHED THEN DELETE",
        "DELETE FROM temp.mine WHERE id < 3",
        "DROP TABLE mine",
        "ALTER TABLE mine ADD COLUMN x INTEGER",
        "TRUNCATE temp.mine",
    ],
)
def test_a_temporary_table_of_the_users_connection_is_read_as_a_copy_and_not_changed(labels, statement):
    duck = labels._tables()
    duck.execute("CREATE TEMP TABLE mine AS SELECT id, text, film FROM reviews")
    with uql.attach(duck, model=f"oracle:{labels.folder / 'oracle.toml'}", ledger=":memory:", budget="all") as con:
        with pytest.raises(
            UQLError, match="mine is a temporary table of the connection that UQL is attached to"
        ) as info:
            con.uql(both(statement)[0])
        assert info.value.code == "UQL509" and "CREATE TABLE" in (info.value.help or "")
    assert duck.execute("SELECT count(*) FROM mine").fetchall() == [(44,)]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO kept.t SELECT id, <topic> FROM reviews",
        "UPDATE kept.t SET film = <topic film>",
        "DELETE FROM kept.t WHERE <pos film>",
        "CREATE TABLE kept.other AS SELECT id FROM reviews WHERE <pos>",
    ],
)
def test_a_change_of_a_read_only_database_is_refused_before_anything_is_paid(labels, tmp_path, statement):
    with duckdb.connect(tmp_path / "kept.duckdb") as file:
        file.execute("CREATE TABLE t (id INTEGER, film VARCHAR)")
    duck = labels._tables()
    duck.execute(f"ATTACH '{tmp_path / 'kept.duckdb'}' AS kept (READ_ONLY)")
    with uql.attach(duck, model=f"oracle:{labels.folder / 'oracle.toml'}", ledger=":memory:", budget="all") as con:
        with pytest.raises(UQLError, match='the statement on database "kept" which is attached in read-only mode'):
            con.uql(both(statement)[0])
        assert con.uql("SELECT count(*) FROM uql_runs()").fetchall() == [(0,)]
