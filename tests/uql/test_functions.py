"""The functions of plain DuckDB SQL: through the gate, from DuckDB's threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import uql

ORACLE = {"model": "oracle:oracle.toml", "ledger": ":memory:"}


@pytest.fixture
def duck(world: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as con:
        con.execute("CREATE TABLE reviews AS FROM 'reviews.parquet'")
        yield con


def test_each_function_gives_its_type_and_null_for_null(duck: duckdb.DuckDBPyConnection) -> None:
    with uql.register_functions(duck, **ORACLE) as functions:
        rows = duck.sql(
            "SELECT uql_if(text, 'the review is positive'), uql_extract(text, 'the mood'), "
            "uql_classify(text, 'the mood', ['pos', 'neg']), uql_score(text, 'how good it is') FROM reviews WHERE id = 2"
        ).fetchall()
        assert rows == [(False, "neg", "neg", pytest.approx(1 / 9))]
        calls = functions.cost.calls
        nothing = duck.sql("SELECT uql_if(NULL, 'the review is positive'), uql_score('a text', NULL)").fetchall()
        assert nothing == [(None, None)]
        assert functions.cost.calls == calls == 4


def test_equal_rows_are_asked_once_over_all_threads(duck: duckdb.DuckDBPyConnection) -> None:
    duck.execute("SET threads = 4")
    duck.execute("CREATE TABLE many AS SELECT text, i FROM reviews, range(60000) t(i)")
    with uql.register_functions(duck, **ORACLE) as functions:
        counted = duck.sql("SELECT count(*) FROM many WHERE uql_if(text, 'the review is positive')").fetchall()
        assert counted == [(180_000,)]
        assert functions.cost.calls == 6


def test_two_connections_ask_at_the_same_time(duck: duckdb.DuckDBPyConnection) -> None:
    with uql.register_functions(duck, **ORACLE) as functions:
        found: list[object] = []

        def count() -> None:
            with duck.cursor() as cursor:
                sql = "SELECT count(*) FROM reviews WHERE uql_if(text, 'the review is positive')"
                found.append(cursor.execute(sql).fetchall())

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert found == [[(3,)]] * 4
        assert functions.cost.calls == 6


def test_the_budget_ends_the_query_and_keeps_what_was_answered(own_world: Path) -> None:
    settings = {"model": "oracle:oracle.toml", "ledger": "ledger.sqlite"}
    with duckdb.connect("shop.duckdb") as con:
        sql = "SELECT count(*) FROM reviews WHERE uql_if(text, 'the review is positive')"
        with uql.register_functions(con, budget=4, **settings) as functions:
            with pytest.raises(duckdb.Error, match="UQL401"):
                con.sql(sql).fetchall()
            assert functions.cost.calls == 4
        with uql.register_functions(con, **settings) as functions:
            assert con.sql(sql).fetchall() == [(3,)]
            assert (functions.cost.calls, functions.cost.cached) == (2, 4)


def test_a_row_without_an_answer_is_null_and_listed(duck: duckdb.DuckDBPyConnection) -> None:
    with uql.register_functions(duck, model="oracle:forgetful.toml", ledger=":memory:") as functions:
        found = duck.sql("SELECT uql_if(text, 'the review is positive') FROM reviews ORDER BY id").fetchall()
        assert [value for (value,) in found] == [True, False, None, None, None, None]
        assert len(functions.errors) == 4
        functions.reset()
        assert functions.errors == []
        assert functions.cost.calls == 0


def test_explain_names_the_functions(duck: duckdb.DuckDBPyConnection) -> None:
    with uql.register_functions(duck, **ORACLE) as functions:
        plan = duck.sql("EXPLAIN SELECT uql_extract(text, 'the mood') FROM reviews").fetchall()[0][1]
        assert "uql_extract" in plan
        assert functions.cost.calls == 0


def test_braces_are_letters(duck: duckdb.DuckDBPyConnection) -> None:
    with uql.register_functions(duck, **ORACLE), pytest.raises(duckdb.Error, match="nothing like"):
        duck.sql("SELECT uql_if(text, 'nothing like {this}') FROM reviews").fetchall()


def test_vectors_are_near_for_texts_of_one_meaning(duck: duckdb.DuckDBPyConnection) -> None:
    pytest.importorskip("wordllama")
    with uql.register_functions(duck, ledger=":memory:"):
        near, far = duck.sql(
            "SELECT list_cosine_similarity(uql_embed('a lost card'), uql_embed('my card is lost')),"
            " list_cosine_similarity(uql_embed('a lost card'), uql_embed('the weather in May'))"
        ).fetchall()[0]
        assert near > far
        assert duck.sql("SELECT uql_embed(NULL)").fetchall() == [(None,)]


def test_closing_takes_the_functions_and_their_thread_away(duck: duckdb.DuckDBPyConnection) -> None:
    before = set(threading.enumerate())
    functions = uql.register_functions(duck, **ORACLE)
    uql.register_functions(duck, **ORACLE).close()
    functions.close()
    again = uql.register_functions(duck, **ORACLE)
    duck.sql("SELECT uql_if(text, 'the review is positive') FROM reviews").fetchall()
    again.close()
    assert set(threading.enumerate()) <= before
    with pytest.raises(duckdb.Error):
        duck.sql("SELECT uql_if('a', 'b')")
