"""A statement is put right where it is meant in one way only; what cannot be meant stays as the model wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import duckdb
import pytest

import uql
from uql.base.errors import QuestionError
from uql.nl.schema.discover import discover
from uql.nl.schema.scope import Scope
from uql.nl.small.meant import meant
from uql.nl.small.read_columns import ReadColumn, as_uql, columns_of, trial

TABLES = """
CREATE TABLE towns (id INTEGER PRIMARY KEY, name VARCHAR, county VARCHAR);
INSERT INTO towns VALUES (1, 'Leeds', 'Yorkshire'), (2, 'Bath', 'Somerset'), (3, 'York', 'Yorkshire');
CREATE TABLE letters (id INTEGER PRIMARY KEY, town_id INTEGER REFERENCES towns (id), sent TIMESTAMP, kind VARCHAR, letter VARCHAR);
INSERT INTO letters SELECT i, 1 + i % 3, TIMESTAMP '2024-03-05 10:30:00' + i * INTERVAL 5 HOUR, ['post', 'mail'][1 + i % 2],
  'The parcel came far too late again, and nobody at the counter could say where it was, letter ' || i FROM range(40) AS r(i);
CREATE TABLE riders (name VARCHAR PRIMARY KEY, team VARCHAR);
INSERT INTO riders VALUES ('Ann Lee', 'Red'), ('Bob Day', 'Blue');
CREATE TABLE races (race_id INTEGER PRIMARY KEY, story VARCHAR);
INSERT INTO races SELECT i, 'Ann Lee won race ' || i || ' by a wheel after a long and rainy afternoon on the hills around the lake' FROM range(20) AS r(i);
CREATE TABLE starts (name VARCHAR REFERENCES riders (name), race_id INTEGER REFERENCES races (race_id));
INSERT INTO starts SELECT r.name, race_id FROM riders AS r, races;
"""
LATE = "ALTER TABLE letters ADD COLUMN late BOOLEAN AS read(letter, 'the letter is late');"


def near(_: str, others: Sequence[str]) -> list[float]:
    return [0.0] * len(others)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for statement in TABLES.split(";\n"):
            connection.execute(statement)
        yield connection


def scope_of(database: duckdb.DuckDBPyConnection, question: str) -> Scope:
    with closing(uql.attach(database, ledger=":memory:")) as con:
        return discover(question, con.catalog, None)


def put_right(
    database: duckdb.DuckDBPyConnection, question: str, sql: str, columns: str = "", *, reads: bool = True
) -> str:
    """The statement as UQL, once what it takes for granted is put right; its trial runs."""
    scope = scope_of(database, question)
    held = columns_of(columns, scope, question)
    text, read = meant(sql, held, scope, question, near, reads=reads)
    database.execute(trial(text, read, scope)).fetchall()
    return as_uql(text, read, scope)


@pytest.mark.parametrize(
    ("question", "sql", "columns", "expected"),
    [
        pytest.param(
            "How many letters are angry?",
            "SELECT count(*) FROM letters WHERE angry",
            "",
            'SELECT COUNT(*) FROM letters WHERE PROMPT "the letter is angry" USING (letters.letter)',
            id="a column that no table has is read",
        ),
        pytest.param(
            "How many letters are early, and how many late?",
            "SELECT count_if(late), count_if(early) FROM letters",
            LATE.replace("is late", "came late"),
            'PROMPT "the letter came early"',
            id="in the words of one like it",
        ),
        pytest.param(
            "What do letters complain about?",
            "SELECT topic, count(*) FROM letters GROUP BY topic",
            "",
            'CAST(PROMPT "the topic" USING (letters.letter) AS VARCHAR)',
            id="as words where it is grouped by",
        ),
        pytest.param(
            "Letters that name more than 3 parcels",
            "SELECT id FROM letters WHERE parcels > 3",
            "",
            'CAST(PROMPT "the parcels" USING (letters.letter) AS INTEGER) > 3',
            id="as a number where it is compared with one",
        ),
        pytest.param(
            "How many letters complain about a lost parcel?",
            "SELECT count(*) FROM letters WHERE letter LIKE '%lost parcel%'",
            "",
            'WHERE PROMPT "the letter is about lost parcel" USING (letters.letter)',
            id="a text that is compared by its letters is read",
        ),
        pytest.param(
            "How many letters are late?",
            "SELECT count(*) FROM letters WHERE NOT lower(letter) LIKE '%late%'",
            LATE,
            'WHERE NOT PROMPT "the letter is late" USING (letters.letter)',
            id="by what is read of it already",
        ),
        pytest.param(
            "How many letters of each town are late?",
            "SELECT town_id, count(late) FROM letters GROUP BY town_id",
            LATE,
            'COUNT_IF(CAST(PROMPT "the letter is late"',
            id="a condition is counted where it holds",
        ),
        pytest.param(
            "Letters that say they are from before 1990",
            "SELECT id FROM letters WHERE old < 1990",
            "ALTER TABLE letters ADD COLUMN old BOOLEAN AS read(letter, 'it says that it is from before 1990');",
            'WHERE PROMPT "it says that it is from before 1990" USING (letters.letter)',
            id="what the words of a condition say is not compared again",
        ),
        pytest.param(
            "Letters of 1950 that are not old",
            "SELECT id FROM letters WHERE old = 0",
            "ALTER TABLE letters ADD COLUMN old BOOLEAN AS read(letter, 'it is from before 1950, or 0 years old');",
            "AS BOOLEAN) = FALSE",
            id="but no is compared",
        ),
        pytest.param(
            "In which town did late letters arrive?",
            "SELECT t.name FROM towns AS t JOIN letters AS l ON l.town_id = t.id WHERE t.late",
            LATE,
            'WHERE PROMPT "the letter is late" USING (l.letter)',
            id="under the name of another table",
        ),
    ],
)
def test_what_is_taken_for_granted_is_read(
    database: duckdb.DuckDBPyConnection, question: str, sql: str, columns: str, expected: str
) -> None:
    assert expected in put_right(database, question, sql, columns)


@pytest.mark.parametrize(
    ("question", "sql", "expected"),
    [
        pytest.param(
            "letters by post", 'SELECT id FROM letters WHERE kind = "post"', "kind = 'post'", id="a string of SQLite"
        ),
        pytest.param(
            "letters of March 6, 2024",
            "SELECT id FROM letters WHERE sent = '2024-03-06'",
            "CAST(sent AS DATE) = '2024-03-06'",
            id="a time of a day",
        ),
        pytest.param(
            "letters of March 2024",
            "SELECT id FROM letters WHERE sent LIKE '2024-03%'",
            "CAST(sent AS TEXT) ILIKE '2024-03%'",
            id="a time as text",
        ),
        pytest.param(
            "towns in somerset",
            "SELECT name FROM towns WHERE county = 'somerset'",
            "\"county\" = 'Somerset'",
            id="case",
        ),
        pytest.param(
            "towns in Somerset",
            "SELECT id FROM towns WHERE name = 'Somerset'",
            "\"county\" = 'Somerset'",
            id="of another column",
        ),
        pytest.param(
            "towns whose name contains 'le'",
            "SELECT name FROM towns WHERE NOT name LIKE '%le%'",
            "NOT name ILIKE '%le%'",
            id="letters of either case, as in SQLite",
        ),
        pytest.param(
            "How many letters from Leeds?",
            "SELECT count(*) FROM letters WHERE town_id = 'Leeds'",
            'town_id IN (SELECT "id" FROM "towns" WHERE "name" = \'Leeds\')',
            id="the name of what a key points to",
        ),
    ],
)
def test_a_value_is_compared_as_it_is_meant(
    database: duckdb.DuckDBPyConnection, question: str, sql: str, expected: str
) -> None:
    text = put_right(database, question, sql, reads=False)
    assert expected in text
    assert database.execute(f"SELECT count(*) FROM ({text}) AS x").fetchone() != (0,)


@pytest.mark.parametrize(
    ("question", "sql"),
    [
        pytest.param(
            "letters that contain the word counter", "SELECT id FROM letters WHERE letter ILIKE '%counter%'", id="words"
        ),
        pytest.param("How many letters?", "SELECT count(*) AS n FROM letters ORDER BY n", id="an alias"),
        pytest.param("Towns of letters", "SELECT t.name FROM letters AS t", id="a column of another table"),
        pytest.param("Counties", "WITH c AS (SELECT county AS x FROM towns) SELECT c.x, y FROM c", id="of a CTE"),
        pytest.param("Counties", "SELECT county FROM towns WHERE", id="no SQL"),
        pytest.param("Letters", "SELECT rowid, letters FROM letters", id="names that DuckDB knows"),
        pytest.param("Letters", "SELECT x FROM letters, UNNEST([1, 2]) AS u(x)", id="of a list"),
        pytest.param(
            "Letters", "SELECT LIST_FILTER([1, 2], x -> x > 1), [y FOR y IN [1, 2]] FROM letters", id="of a lambda"
        ),
        pytest.param("Letters", "SELECT DATE_PART(month, sent) FROM letters", id="a part of a time"),
    ],
)
def test_what_is_meant_by_the_letter_stays(database: duckdb.DuckDBPyConnection, question: str, sql: str) -> None:
    assert meant(sql, (), scope_of(database, question), question, near, reads=True) == (sql, ())


def test_a_value_of_an_example_row_goes_back(database: duckdb.DuckDBPyConnection) -> None:
    question = "How many letters were sent in 2024?"
    scope = scope_of(database, question)
    for copied in ("kind = 'post'", "sent = '2024-03-05 10:30:00'"):
        with pytest.raises(QuestionError, match="of an example row"):
            meant(f"SELECT count(*) FROM letters WHERE {copied}", (), scope, question, near, reads=False)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t.name FROM towns AS t JOIN letters AS l ON l.town_id = t.id",
        "SELECT r.name FROM riders AS r, starts AS s WHERE s.name = r.name",
        "SELECT name FROM riders EXCEPT SELECT name FROM starts",
        "SELECT t.name FROM towns AS t JOIN towns AS u ON t.id = u.id",
        "SELECT t.name FROM towns AS t JOIN races AS r ON t.id = r.race_id",
        "SELECT a.name FROM starts AS a JOIN riders AS r USING (name) WHERE race_id NOT IN (SELECT race_id FROM races)",
    ],
)
def test_columns_are_compared_along_keys_or_where_none_of_them_points_elsewhere(
    database: duckdb.DuckDBPyConnection, sql: str
) -> None:
    question = "Which?"
    assert meant(sql, (), scope_of(database, question), question, near, reads=False) == (sql, ())


@pytest.mark.parametrize(
    ("sql", "mine", "theirs", "not_theirs"),
    [
        (
            "SELECT l.id FROM letters AS l JOIN races AS r ON l.town_id = r.race_id",
            "letters.town_id",
            "towns.id",
            "races.race_id",
        ),
        (
            "SELECT name FROM towns WHERE name NOT IN (SELECT town_id FROM letters)",
            "letters.town_id",
            "towns.id",
            "towns.name",
        ),
        ("SELECT name FROM towns EXCEPT SELECT town_id FROM letters", "letters.town_id", "towns.id", "towns.name"),
        (
            "SELECT id FROM letters AS l WHERE EXISTS (SELECT 1 FROM starts WHERE race_id = l.town_id)",
            "starts.race_id",
            "races.race_id",
            "letters.town_id",
        ),
    ],
)
def test_a_key_of_one_table_that_is_compared_with_another_goes_back(
    database: duckdb.DuckDBPyConnection, sql: str, mine: str, theirs: str, not_theirs: str
) -> None:
    question = "Which?"
    with pytest.raises(QuestionError, match=f"^UQL631: {mine} points to {theirs}, not to {not_theirs}") as error:
        meant(sql, (), scope_of(database, question), question, near, reads=False)
    assert error.value.help == f"join {mine.split('.')[0]} and {theirs.split('.')[0]} by {mine} = {theirs}"


def test_nothing_private_is_named_or_read(database: duckdb.DuckDBPyConnection) -> None:
    with duckdb.connect() as own:
        own.execute(
            "CREATE TABLE t AS SELECT 'Ann' AS nick, 'Bob' AS secret, repeat('a long text of words ', 9) AS body"
        )
        own.execute("COMMENT ON COLUMN t.secret IS 'private: never shown'")
        question = "rows of Bob"
        text = put_right(own, question, "SELECT count(*) FROM t WHERE nick = 'Bob'")
        assert "secret" not in text


@pytest.mark.parametrize(
    ("words", "table", "expected"),
    [
        ("the number of laps of {name}", "starts", "the number of laps of {name}"),
        ("the number of laps of Ann Lee", "starts", "the number of laps of {name}"),
        ("the rider fell", "starts", "{name} fell"),
        ("the length of the race", "races", "the length of the race"),
        ("the number of {laps} laps of {name}", "starts", "the number of laps of {name}"),
    ],
)
def test_of_a_text_about_several_it_is_read_of_whom(
    database: duckdb.DuckDBPyConnection, words: str, table: str, expected: str
) -> None:
    question = "How many laps did Ann Lee ride?"
    reply = f"ALTER TABLE races ADD COLUMN laps INTEGER AS read(story, '{words}');"
    (column,) = columns_of(reply, scope_of(database, question), question)
    assert (column.table, column.source, column.words) == (table, "races", expected)


def test_a_table_that_is_joined_for_its_text_makes_no_name_ambiguous(database: duckdb.DuckDBPyConnection) -> None:
    question = "In how many races did a rider fall?"
    scope = scope_of(database, question)
    fell = columns_of("ALTER TABLE races ADD COLUMN fell BOOLEAN AS read(story, 'the rider fell');", scope, question)
    assert isinstance(fell[0], ReadColumn)
    database.execute(trial("SELECT count(DISTINCT race_id) FROM starts WHERE fell", fell, scope)).fetchall()
