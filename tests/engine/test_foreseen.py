"""The price of a search that learns from embeddings, and what the ledger decides before it asks."""

from __future__ import annotations

import json
from hashlib import blake2b

import numpy as np
import pytest
from hash_model import HashModel
from labels import both
from row_model import RowModel

import uql
from uql.llm.providers.base import Answer, Capabilities, Limits
from uql.llm.questions import Predicate

SUBJECTS = ("goal match striker league keeper", "vote party minister law parliament", "chip software phone browser")
ROWS = 900
OR = 'SELECT id FROM news WHERE "it is about 0" OR "it is about 1" OR "it is about 2" ORDER BY id'


def coin(text: str) -> float:
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big") / 2**32


class Reader(RowModel):
    """Says yes to the subject of a row; with `blind`, what it says has nothing to do with the text."""

    limits, capabilities = Limits(concurrency=64), Capabilities(probabilities=True)

    def __init__(self, blind: bool = False):
        self.blind = blind

    def _one(self, question, row):
        if not isinstance(question, Predicate):
            return Answer({"yes": [], "no": []})
        text, n = row.cells[0].value, question.text[-1]
        yes = coin(question.text + text) < 0.3 if self.blind else any(w in text for w in SUBJECTS[int(n)].split())
        return Answer(yes, float(yes))


def news(blind: bool, disabled: str = "", ledger: str = ":memory:") -> uql.Connection:
    con = uql.connect(model=Reader(blind), ledger=ledger, disabled_rules=",".join(["predicates_together", disabled]))
    rng = np.random.default_rng(0)
    others = [f"w{i}" for i in range(60)]
    rows = []
    for i in range(ROWS):
        subject = rng.choice([*SUBJECTS, ""]).split()
        words = [*rng.choice(others, 8).tolist(), *(rng.choice(subject, 4).tolist() if subject else [])]
        rows.append((i, " ".join(rng.permutation(words).tolist())))
    con.sql("SELECT * FROM (VALUES " + ", ".join(f"({i}, '{t}')" for i, t in rows) + ") v(id, text)").create("news")
    con.uql('SELECT COUNT(*) FROM news WHERE "it is about 9" WITH (budget = 40, examples = off)' if blind else
            'SELECT COUNT(*) FROM news WHERE "a story about 2" WITH (budget = 40, examples = off)').fetchall()  # fmt: skip
    return con


def test_what_the_ledger_knows_decides_rows_whatever_the_order_now(tmp_path) -> None:
    with news(False, ledger=str(tmp_path / "ledger.sqlite")) as con:
        first = con.uql(f"{OR} WITH (budget = 'all')")
        rows = first.fetchall()
        again = con.uql(f"{OR} WITH (budget = 'all')")
        assert again.fetchall() == rows and again.cost.calls == 0


def test_a_search_that_learns_is_priced_below_chance_and_near_what_it_asks() -> None:
    """One row in four is about the subject; 40 of them are wanted: chance would ask 160."""
    query = 'SELECT id FROM news WHERE "it is about 1" LIMIT 40'
    with news(False) as con:
        shown = con.uql(f"EXPLAIN SAMPLE 32 (FORMAT json) {query} WITH (examples = off)").fetchall()
    price = json.loads("\n".join(row[0] for row in shown))["price"]["calls"]
    with news(False) as con:
        result = con.uql(f"{query} WITH (examples = off)")
        assert len(result.fetchall()) == 40
        made = result.cost.calls
    assert price["expected"] < 110
    assert price["low"] <= made <= price["high"] or abs(price["expected"] - made) <= 0.25 * made


def test_a_search_that_ends_within_the_sample_is_priced_exactly_and_not_paid_for_twice() -> None:
    text = 'SELECT id FROM news WHERE "it is about 1" LIMIT 6'
    with news(False) as con:
        sampled = con.uql(f"EXPLAIN SAMPLE 400 {text}")
        shown = [row[0] for row in sampled.fetchall()]
        said = next(line for line in shown if line.startswith("Calls:"))
        con.uql(text).fetchall()
    with news(False) as fresh:
        result = fresh.uql(text)
        assert len(result.fetchall()) == 6
    assert said == f"Calls: {result.cost.calls}"
    assert sampled.cost.calls == result.cost.calls
    assert any("rows of the search were asked" in line for line in shown)


def test_a_search_that_learns_is_expected_to_ask_fewer_rows_than_chance_would() -> None:
    text = 'EXPLAIN (FORMAT json) SELECT id FROM news WHERE "it is about 1" LIMIT 6'
    with news(False) as con:
        learned, by_order = (
            json.loads("\n".join(row[0] for row in con.uql(q).fetchall()))["price"]["calls"]
            for q in (text, text.replace("LIMIT", "ORDER BY id LIMIT"))
        )
    assert learned["low"] <= learned["expected"] < by_order["expected"] == pytest.approx(18, abs=1)
    assert learned["high"] <= 20 * learned["low"]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT id FROM reviews WHERE <pos> IS NULL LIMIT 3",
        "SELECT id FROM reviews WHERE <pos> IS NOT TRUE LIMIT 4",
        "SELECT id FROM reviews WHERE <pos> IS NULL OR id < 0 LIMIT 20",
        "SELECT id FROM reviews WHERE coalesce(<topic>, 'plot') = 'plot' AND <pos> IS NULL LIMIT 2",
        "!SELECT id FROM reviews WHERE <pos> IS NULL ORDER BY id LIMIT 3",
        "SELECT DISTINCT film FROM quiet, films WHERE <pos quiet.text> IS NOT TRUE",
        "!SELECT id, <pos> AS p FROM reviews WHERE stars > 2 ORDER BY id DESC LIMIT 4",
    ],
)
def test_a_row_without_text_is_priced_as_the_run_takes_it(labels, statement) -> None:
    asked, over, ordered = both(statement)
    with labels.uql(budget="all") as con:
        result = con.uql(asked)
        price = result.quote().calls
        rows = result.fetchall()
        assert price.low == price.high == result.cost.calls and result.exact
        wanted = labels.sql().execute(over).fetchall()
        assert len(rows) == len(wanted) and (not ordered or rows == wanted)


def test_a_part_whose_calls_fit_has_them_however_many_rows_have_no_text_or_the_same(labels) -> None:
    asked, over, _ = both("SELECT id FROM reviews WHERE <joke> UNION SELECT id FROM reviews WHERE stars > 4 AND <plot>")
    with labels.uql(budget=43) as con:  # 44 rows with 35 texts, and 5 more of the second part
        result = con.uql(asked)
        assert sorted(result.fetchall()) == sorted(labels.sql().execute(over).fetchall())
        assert result.exact and 35 < result.cost.calls <= 43


@pytest.mark.parametrize(
    "before, statement",
    [
        (
            'SELECT id FROM t WHERE "it is so"',
            'SELECT COUNT(*) AS n FROM t WHERE "it is so" AND "it is nice" WITH (budget = 40)',
        ),
        (
            'SELECT id FROM t WHERE "it is so"',
            'SELECT COUNT(*) AS n FROM t WHERE "it is nice" OR "it is so" WITH (budget = 40)',
        ),
        (
            'SELECT COUNT(*) AS n FROM t WHERE "it is so" WITH (budget = 100)',
            'SELECT k, COUNT(*) AS n FROM t WHERE "it is so" AND NOT "it is nice" GROUP BY k WITH (budget = 40)',
        ),
        (
            'SELECT id FROM t WHERE "it is so" AND id >= 60',
            'SELECT DISTINCT k FROM t WHERE "it is so" WITH (budget = 256)',
        ),
    ],
)
def test_rows_that_one_known_answer_decides_leave_the_calls_of_a_sample_to_the_others(before, statement) -> None:
    with uql.connect(model=HashModel(), ledger=":memory:", budget="all") as con:
        con.sql(
            "CREATE TABLE t AS SELECT i AS id, i % 3 AS k, 'a text that is long enough, number ' || i AS body FROM range(300) r(i)"
        )
        con.uql(before).fetchall()
        result = con.uql(statement)
        foreseen = result.quote().calls
        assert foreseen.low <= result.cost.calls <= foreseen.high
