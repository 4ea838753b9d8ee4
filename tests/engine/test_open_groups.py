"""Groups and rows that estimates choose: where the intervals leave open which ones, the notes say so."""

from __future__ import annotations

import duckdb
import pytest
from hash_model import HashModel

import uql

ROWS = 600
GOOD = '"it is good"'


@pytest.fixture(scope="module")
def duck():
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE t AS SELECT id, id % 6 AS k, id % 10 AS v, 'a text that says something, number ' || id AS text "
        f"FROM range({ROWS}) r(id) WHERE id % 6 < 4 OR id % 3 = 0"
    )
    return con


def rows_and_notes(duck, query, **settings):
    result = uql.attach(duck, model=HashModel(), ledger=":memory:", **settings).uql(query)
    return result.fetchall(), [note for note in result.notes if "on estimates" in note or "decide which" in note]


@pytest.mark.thorough
@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "query",
    [
        f"SELECT k FROM t GROUP BY k HAVING count(*) FILTER ({GOOD}) > 48 ORDER BY k",
        f"SELECT k FROM t WHERE {GOOD} GROUP BY k HAVING count(*) BETWEEN 45 AND 55 ORDER BY k",
        f"SELECT k FROM t WHERE {GOOD} GROUP BY k HAVING NOT (sum(v) < 220 OR k = 1) ORDER BY k",
        f"SELECT k FROM t GROUP BY k HAVING avg(CASE WHEN {GOOD} THEN v ELSE 0 END) * 2 >= 4.5 ORDER BY k",
        f"SELECT k FROM t WHERE {GOOD} GROUP BY k ORDER BY count(*) DESC, k LIMIT 2",
        f"SELECT k FROM t WHERE {GOOD} GROUP BY k HAVING count(*) > 20 ORDER BY avg(v), k LIMIT 1",
        f"SELECT k FROM t WHERE {GOOD} GROUP BY k QUALIFY row_number() OVER (ORDER BY count(*) DESC, k) = 1",
        f"SELECT k FROM (SELECT k, count(*) AS n FROM t WHERE {GOOD} GROUP BY k) x WHERE n > 48 ORDER BY k",
        f"SELECT k FROM (SELECT k, count(*) AS n FROM t WHERE {GOOD} GROUP BY k) x ORDER BY n DESC, k LIMIT 1",
    ],
)
def test_groups_that_differ_from_the_exact_ones_come_with_a_note(duck, query):
    want, none = rows_and_notes(duck, query, budget="all")
    assert none == []
    wrong = 0
    for seed in range(6):
        found, notes = rows_and_notes(duck, query, budget=60, seed=seed)
        if sorted(found) != sorted(want):
            wrong += 1
            assert notes
    assert wrong


def test_a_condition_that_the_intervals_decide_has_no_note(duck):
    query = f"SELECT k FROM t GROUP BY k HAVING count(*) FILTER ({GOOD}) >= 0 AND count(*) > 10 ORDER BY k"
    found, notes = rows_and_notes(duck, query, budget=60)
    assert len(found) == 4
    assert notes == []


def test_what_is_known_of_a_group_decides_for_it(duck):
    query = f"SELECT k FROM t GROUP BY k HAVING count(*) FILTER ({GOOD}) > 48 AND k > 9"
    assert rows_and_notes(duck, query, budget=60) == ([], [])


def missing(duck, query, budget=60):
    result = uql.attach(duck, model=HashModel(), ledger=":memory:", budget=budget).uql(query)
    assert not any(estimate.exact for estimate in result.estimates["n"])
    return len(result.fetchall()), [note for note in result.notes if "may be missing" in note]


@pytest.mark.parametrize(
    ("keys", "groups"),
    [
        ("\"the kind\"::ENUM('a', 'b')", 2),
        (f"{GOOD}::BOOLEAN", 2),
        (f"{GOOD}::BOOLEAN, \"the kind\"::ENUM('a', 'b', 'c')", 6),
    ],
)
def test_no_group_may_be_missing_where_every_label_was_seen(duck, keys, groups):
    assert missing(duck, f"SELECT {keys}, count(*) AS n FROM t GROUP BY ALL") == (groups, [])


def test_a_label_that_was_not_seen_may_be_missing_and_so_may_rows_without_a_text(duck):
    labels = ", ".join(f"'{letter}'" for letter in "abcdefghijklm")
    found, notes = missing(
        duck, f'SELECT "the kind"::ENUM({labels}) AS kind, count(*) AS n FROM t GROUP BY kind', budget=12
    )
    assert found < 13 and len(notes) == 1
    with_null = "(SELECT CASE WHEN id <> 3 THEN text END AS text, k FROM t)"
    assert len(missing(duck, f"SELECT {GOOD}::BOOLEAN AS g, count(*) AS n FROM {with_null} GROUP BY g")[1]) == 1
