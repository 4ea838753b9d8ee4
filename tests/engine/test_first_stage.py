"""Statements over a table far larger than their calls: features of some random rows alone, and all that holds for other samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hash_model import HashModel

import uql
from uql.api.result import Result
from uql.features.store import FeatureStore

ROWS, STAGE = 3_000, 600
POSITIVE = 'SELECT COUNT(*) AS n FROM reviews WHERE "the review is positive"'
NOTE = f"{STAGE:,} random rows stand for {ROWS:,}"


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of each table of features that is made."""
    made: list[int] = []
    table = FeatureStore.table

    def counted(store: FeatureStore, texts: list[str], name: str) -> object:
        made.append(len(texts))
        return table(store, texts, name)

    monkeypatch.setattr(FeatureStore, "table", counted)
    return made


@pytest.fixture
def con(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[uql.Connection]:
    monkeypatch.setattr("uql.sampling.two_stage.LEAST", STAGE)
    monkeypatch.setattr("uql.sampling.two_stage.A_CALL", 2)
    monkeypatch.setattr("uql.kernels.estimates.sample.MOST_SPREAD", 0.01)
    model = HashModel({"the review is positive": 0.3})
    with uql.connect(str(tmp_path / "r.duckdb"), model=model, ledger=":memory:", seed=3, budget=128) as con:
        con.execute(
            f"CREATE TABLE reviews AS SELECT i AS id, i % 2 AS kind, i % 50 AS rare, 10.0 + i % 7 AS price, "
            f"'Review ' || i || ' of a film with ' || (i * 7919 % 500) AS body FROM range({ROWS}) t(i)"
        )
        yield con


def truth(con: uql.Connection) -> float:
    return float(con.uql(f"{POSITIVE} WITH (exact)").fetchall()[0][0])


def test_features_are_made_of_the_first_stage_alone_and_the_answer_says_so(
    con: uql.Connection, embedded: list[int]
) -> None:
    result = con.uql(POSITIVE).run()
    assert embedded and set(embedded) == {STAGE}
    assert any(note.startswith(NOTE) for note in result.notes)
    assert not result.exact and result.cost.calls <= 128
    found = result.estimates["n"]
    assert found.low is not None and found.high is not None
    assert found.low <= truth(con) <= found.high


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "statement",
    [
        f"{POSITIVE} AND id >= 0",
        'SELECT AVG(price) AS n FROM reviews WHERE "the review is positive"',
        'SELECT SUM(price) AS n FROM reviews WHERE "the review is positive"',
        'SELECT kind, COUNT(*) AS n FROM reviews WHERE "the review is positive" GROUP BY kind ORDER BY kind',
        'SELECT "the topic" AS topic, COUNT(*) AS n FROM reviews GROUP BY topic ORDER BY n DESC',
        'SELECT COUNT(*) FILTER (WHERE "the review is positive") AS n FROM reviews',
    ],
)
def test_the_same_statement_again_costs_nothing_and_gives_the_same(
    con: uql.Connection, embedded: list[int], statement: str
) -> None:
    def seen() -> tuple[list[tuple[object, ...]], Result]:
        result = con.uql(statement)
        return result.fetchall(), result

    rows, first = seen()
    again, second = seen()
    assert rows == again
    assert first.cost.calls > 0 and second.cost.calls == 0
    assert set(embedded) == {STAGE}


def test_a_larger_budget_goes_on_with_the_same_draw(con: uql.Connection) -> None:
    first = con.uql(f"{POSITIVE} WITH (budget = 64)").run()
    more = con.uql(f"{POSITIVE} WITH (budget = 160)").run()
    assert first.cost.calls + more.cost.calls <= 160
    assert more.cost.calls <= 160 - 60


def test_a_small_group_and_a_sum_that_few_rows_hold_have_features_of_all_rows(
    con: uql.Connection, embedded: list[int]
) -> None:
    con.uql('SELECT rare, COUNT(*) AS n FROM reviews WHERE "the review is positive" GROUP BY rare').run()
    assert set(embedded) == {ROWS}
    embedded.clear()
    con.execute("UPDATE reviews SET price = 1e6 WHERE id = 17")
    con.uql('SELECT SUM(price) AS n FROM reviews WHERE "the review is positive"').run()
    assert set(embedded) == {ROWS}


@pytest.mark.thorough
def test_a_wanted_width_may_take_more_rows_than_a_first_stage_has(con: uql.Connection, embedded: list[int]) -> None:
    result = con.uql(f"{POSITIVE} WITH (error = 0.08, budget = 2900)").run()
    assert set(embedded) == {ROWS}
    assert result.cost.calls > STAGE


def test_explain_says_which_rows_a_sample_is_drawn_from(con: uql.Connection) -> None:
    line = f"sampled from a first stage of {STAGE:,} random rows"

    def explained(query: str) -> str:
        return "\n".join(row[0] for row in con.uql(f"EXPLAIN {query}").fetchall())

    assert line in explained(POSITIVE)
    for clause in ("AND id < 200", "WITH (budget = 'all')", "WITH (method = 'uniform')"):
        assert line not in explained(f"{POSITIVE} {clause}")


def test_a_table_that_is_small_for_its_calls_has_no_first_stage(con: uql.Connection, embedded: list[int]) -> None:
    result = con.uql(f"{POSITIVE} WITH (budget = 2000)").run()
    assert set(embedded) == {ROWS}
    assert not any("random rows stand for" in note for note in result.notes)


LIKED = 'SELECT id FROM reviews WHERE "the review is positive" LIMIT 20'


def test_any_rows_that_pass_are_looked_for_among_the_rows_of_the_first_stage(
    con: uql.Connection, embedded: list[int]
) -> None:
    result = con.uql(LIKED)
    found = [row[0] for row in result.fetchall()]
    assert set(embedded) == {STAGE} and len(found) == 20 and result.exact
    passing = {
        row[0] for row in con.uql('SELECT id FROM reviews WHERE "the review is positive" WITH (exact)').fetchall()
    }
    assert set(found) <= passing
    again = con.uql(LIKED)
    assert [row[0] for row in again.fetchall()] == found and again.cost.calls == 0


def test_where_few_rows_of_the_first_stage_pass_all_rows_are_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedded: list[int]
) -> None:
    monkeypatch.setattr("uql.sampling.two_stage.LEAST", STAGE)
    model = HashModel({"the review is positive": 0.02})
    with uql.connect(model=model, ledger=":memory:", seed=3, budget="all") as con:
        con.execute(
            f"CREATE TABLE reviews AS SELECT i AS id, 'Review ' || i || ' of a film' AS body FROM range({ROWS}) t(i)"
        )
        result = con.uql(LIKED)
        assert len(result.fetchall()) == 20 and set(embedded) == {STAGE, ROWS}
        calls = result.cost.calls
        again = con.uql(LIKED)
        assert again.fetchall() == result.fetchall() and again.cost.calls == 0 and calls < ROWS


def test_features_of_all_rows_that_are_there_already_guide_the_search(con: uql.Connection, embedded: list[int]) -> None:
    con.uql('SELECT id FROM reviews WHERE "the review is positive"').fetchall()  # as many as the budget finds
    assert set(embedded) == {ROWS}
    con.uql(LIKED).fetchall()
    assert set(embedded) == {ROWS}
