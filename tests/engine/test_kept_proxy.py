"""The score of a stated set is kept with a semantic table: it chooses among the rows that a REFRESH finds new."""

from __future__ import annotations

import json

import pytest
from two_models import Cheap, Dear, drawn, is_good, measured

import uql
from uql.llm.providers.base import Answer

ROWS = 2000
TABLE = (
    'CREATE SEMANTIC TABLE good AS SELECT id FROM notes WHERE "it is good" KEY (id) '
    "WITH (precision = 0.9, recall = 0.9)"
)


class Turned(Cheap):
    """Of the rows that came later it says the contrary of what it says of the others."""

    def said(self, text):
        yes = drawn("wrong " + text) < 0.03 if not is_good(text) else drawn("wrong " + text) >= 0.03
        if "later" in text:
            yes = not yes
        return Answer(yes, 0.97 if yes else 0.03)


def connected(cheap, dear, database=":memory:"):
    con = uql.connect(database, models=[cheap, dear], ledger=":memory:", examples=False, budget="all")
    con.sql("CREATE TABLE IF NOT EXISTS notes (id INTEGER, text VARCHAR)")
    return con


def add(con, first, rows, word="early"):
    con.sql(
        f"INSERT INTO notes SELECT i, 'Note ' || i || ', {word}, about something or other' "
        f"FROM range({first}, {first + rows}) r(i)"
    )


def goods(con, first=0):
    stored = {i for (i,) in con.sql(f"SELECT id FROM good WHERE id >= {first}").fetchall()}
    return stored, {
        i for i, text in con.sql(f"SELECT id, text FROM notes WHERE id >= {first}").fetchall() if is_good(text)
    }


def test_rows_that_are_not_asked_are_decided_and_a_refresh_without_new_rows_makes_no_call() -> None:
    small, large = Cheap(), Dear()
    with connected(small, large) as con:
        add(con, 0, ROWS)
        con.uql(TABLE).fetchall()
        calls = small.calls, large.calls
        assert large.calls < 0.75 * ROWS, "850 to 880 at the mean of twelve seeds, 1,191 at the most"
        assert con.uql("REFRESH good").fetchall() == [("good", len(goods(con)[0]), 0, 0, 0, 0)]
        assert (small.calls, large.calls) == calls
        assert not con.uql("SELECT COUNT(*) FROM good").exact


@pytest.mark.thorough
def test_the_kept_score_chooses_among_new_rows_and_takes_fewer_calls_than_a_new_one(tmp_path) -> None:
    small, large, database = Turned(), Dear(), str(tmp_path / "notes.duckdb")
    with connected(small, large, database) as con:
        add(con, 0, ROWS)
        con.uql(TABLE).fetchall()
        ((stated,),) = con.sql("SELECT stated::VARCHAR FROM uql_semantic_tables").fetchall()
        numbers = json.loads(stated)
        assert (numbers["precision"], numbers["recall"], numbers["confidence"], numbers["rows"]) == (
            0.9,
            0.9,
            0.95,
            ROWS,
        )
        assert numbers["asked"] == numbers["proxy"]["labelled"] == large.calls and numbers["proxy"]["small"] == "cheap"
        add(con, ROWS, ROWS)
    small, later = Turned(), Dear()
    with connected(small, later, database) as con:
        result = con.uql("REFRESH good")
        assert result.fetchone()[2] > 0
        assert any("the score kept with the table chose which" in note for note in result.notes)
        precision, recall = measured(*goods(con, ROWS))
        assert precision >= 0.9 and recall >= 0.9
        assert small.calls == ROWS and later.calls < large.calls - 50, "no rows were asked to learn a score"


@pytest.mark.thorough
def test_new_rows_of_another_kind_are_noticed_and_the_score_is_fitted_anew() -> None:
    small, large = Turned(), Dear()
    with connected(small, large) as con:
        add(con, 0, ROWS)
        con.uql(TABLE).fetchall()
        add(con, ROWS, ROWS, "later")
        result = con.uql("REFRESH good")
        result.fetchall()
        assert any("these rows are of another kind than those before" in note for note in result.notes)
        precision, recall = measured(*goods(con, ROWS))
        assert precision >= 0.9 and recall >= 0.9 and not result.partial
        add(con, 2 * ROWS, ROWS, "later")
        again = con.uql("REFRESH good")
        again.fetchall()
        assert any("the score kept with the table chose which" in note for note in again.notes), "it has learned them"


def test_few_new_rows_are_all_asked() -> None:
    small, large = Cheap(), Dear()
    with connected(small, large) as con:
        add(con, 0, ROWS)
        con.uql(TABLE).fetchall()
        before = large.calls
        add(con, ROWS, 20)
        con.uql("REFRESH good").fetchall()
        stored, right = goods(con, ROWS)
        assert large.calls - before == 20 and stored == right
        assert not con.uql("SELECT COUNT(*) FROM good").exact, "the rows before were not all asked"


def test_a_table_of_an_earlier_version_has_no_score() -> None:
    with connected(Cheap(), Dear()) as con:
        add(con, 0, ROWS)
        con.uql(TABLE).fetchall()
        con.sql("ALTER TABLE uql_semantic_tables DROP COLUMN stated")
        assert con.uql("FROM uql_tables()").fetchall()[0][0] == "good"
        add(con, ROWS, 20)
        assert con.uql("REFRESH good").fetchone()[1] == len(goods(con)[0])
