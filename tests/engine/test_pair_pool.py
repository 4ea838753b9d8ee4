"""Joins of large tables by a text: the product is never built."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hash_model import HashModel

import uql
from uql.kernels.duck import Duck
from uql.llm.questions import Question, Row

SAME = '"the two describe the same product"'
WORDS = [
    "red",
    "blue",
    "green",
    "steel",
    "wooden",
    "plastic",
    "lamp",
    "chair",
    "table",
    "phone",
    "laptop",
    "camera",
    "knife",
    "shirt",
    "shoe",
    "jacket",
    "bottle",
    "watch",
]


def _same(_: Question, row: Row) -> Any:
    left, right = (str(cell.value).split()[-1] for cell in row.cells)
    return left == right


def _con(n: int, ledger: str = ":memory:", **settings: Any) -> uql.Connection:
    duck = duckdb.connect()
    word = " || ' ' || ".join(
        f"list_value({', '.join(repr(w) for w in WORDS)})[1 + (hash(i + {k}) % 18)::INT]"
        for k in (0, 10_000, 20_000, 30_000)
    )
    duck.execute(
        f"CREATE TABLE a AS SELECT i AS id, i % 10 AS kind, 'on sale here: ' || {word} || ' model ' || i AS name FROM range({n}) t(i)"
    )
    duck.execute("CREATE TABLE b AS SELECT id, kind, 'new ' || name AS name FROM a")
    return uql.attach(duck, model=HashModel(answers=_same), ledger=ledger, seed=1, **settings)


def test_a_limit_finds_matches_among_the_nearest_pairs() -> None:
    result = _con(600).uql(f"SELECT a.id, b.id FROM a JOIN b ON {SAME} LIMIT 5")
    rows = result.fetchall()
    assert len(rows) == 5 and all(left == right for left, right in rows)
    assert result.cost.calls < 100


def test_a_limit_that_is_not_reached_is_partial_and_says_what_was_left_out() -> None:
    result = _con(600).uql(f"SELECT a.id, b.id FROM a JOIN b ON {SAME} WHERE a.id < 500 LIMIT 400 WITH (budget = 300)")
    assert len(result.fetchall()) < 400
    assert not result.exact and any("may be missed" in note for note in result.notes)


def test_a_search_finds_most_of_what_it_asks() -> None:
    result = _con(600).uql(f"SELECT a.id, b.id FROM a, b WHERE {SAME} WITH (budget = 256)")
    rows = result.fetchall()
    assert len(rows) > 150 and all(left == right for left, right in rows) and not result.exact
    assert any("360,000 pairs" in note for note in result.notes)


def test_a_count_has_an_interval_over_all_pairs() -> None:
    found = _con(600).uql(f"SELECT COUNT(*) AS n FROM a JOIN b ON {SAME}").estimates["n"]
    assert isinstance(found, uql.Estimate) and found.low is not None and found.high is not None
    assert found.low <= 600 <= found.high and not found.exact and found.method == "pairs"


def test_an_equality_decides_first_which_pairs_there_are() -> None:
    con = _con(1_600)
    result = con.uql(f"SELECT a.kind, b.kind FROM a JOIN b ON a.kind = b.kind AND {SAME} WITH (budget = 128)")
    assert len(rows := result.fetchall()) > 60 and all(left == right for left, right in rows)
    assert any("256,000 pairs" in note for note in result.notes)
    found = con.uql(f"SELECT COUNT(*) AS n FROM a JOIN b ON a.kind = b.kind AND {SAME}").estimates["n"]
    assert isinstance(found, uql.Estimate) and found.low is not None and found.high is not None
    assert found.low <= 1_600 <= found.high


def test_pairs_are_drawn_and_not_sorted_where_many_meet_an_inequality(monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []
    arrow = Duck.arrow
    monkeypatch.setattr(Duck, "arrow", lambda duck, sql, *given: statements.append(sql) or arrow(duck, sql, *given))
    found = _con(1_600).uql(f"SELECT COUNT(*) AS n FROM a JOIN b ON a.id <= b.id AND {SAME}").estimates["n"]
    assert isinstance(found, uql.Estimate) and found.low is not None and found.high is not None
    assert found.low <= 1_600 <= found.high
    assert not [sql for sql in statements if "ORDER BY hash(" in sql]


def test_counts_by_group_and_means_hold() -> None:
    result = _con(600).uql(f"SELECT a.kind, COUNT(*) AS n FROM a JOIN b ON {SAME} GROUP BY a.kind WITH (budget = 400)")
    found = result.estimates["n"]
    assert isinstance(found, list) and found
    assert all(e.low is not None and e.high is not None and e.low <= 60 <= e.high for e in found)


def test_the_same_statement_again_makes_no_calls(tmp_path: Any) -> None:
    con = _con(600, str(tmp_path / "ledger.db"))
    text = f"SELECT COUNT(*) AS n FROM a JOIN b ON {SAME}"
    first, again = con.uql(text), con.uql(text)
    assert first.estimates == again.estimates and (first.cost.calls, again.cost.calls) == (128, 0)


def test_an_order_asks_the_first_pairs_in_it() -> None:
    result = _con(600).uql(f"SELECT a.id, b.id FROM a JOIN b ON {SAME} ORDER BY a.id, b.id LIMIT 1")
    assert result.fetchall() == [(0, 0)] and result.cost.calls < 20


@pytest.mark.parametrize("kind", ["LEFT", "FULL", "ANTI"])
def test_a_join_that_needs_every_pair_says_so_before_it_makes_them(kind: str) -> None:
    con = _con(20_000)
    with pytest.raises(uql.UQLError, match="UQL401") as told:
        con.uql(f"SELECT a.id FROM a {kind} JOIN b ON {SAME}").fetchall()
    assert "400,000,000 pairs" in str(told.value)


def test_all_pairs_are_refused_where_they_are_too_many() -> None:
    with pytest.raises(uql.UQLError, match="UQL401") as told:
        _con(20_000).uql(f"SELECT a.id FROM a JOIN b ON {SAME} WITH (budget = 'all')").fetchall()
    assert "10,000,000 at most" in str(told.value)
