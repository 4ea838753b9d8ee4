"""What fits in a budget: rows that the ledger knows, rows without a text and rows that are alike take no calls of their own."""

from __future__ import annotations

import duckdb
import pytest
from hash_model import HashModel
from labels import both

import uql
from uql.base.errors import BudgetError

STATEMENTS = [
    "SELECT median(stars) FROM reviews WHERE <pos>",
    "SELECT avg(<rating>) FROM reviews",
    "SELECT film, count(*) FROM reviews WHERE <pos> GROUP BY ROLLUP (film) ORDER BY ALL",
    "SELECT id, CASE WHEN <pos> THEN 1 ELSE 0 END AS k FROM reviews ORDER BY id",
    "SELECT id, row_number() OVER (ORDER BY id) AS k FROM reviews WHERE <pos> ORDER BY id",
    "SELECT id FROM reviews WHERE <pos> ORDER BY <rating>::DOUBLE DESC, id",
    "SELECT id FROM reviews WHERE <pos> ORDER BY id",
    "SELECT id, <rating>::DOUBLE AS r FROM reviews WHERE id < 9 ORDER BY id",
    "SELECT a.id, b.id FROM films f JOIN reviews a USING (film) LEFT JOIN reviews b ON b.id = a.id + 1 AND <agree a.text b.text> WHERE a.id < 9 ORDER BY 1",
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_what_was_paid_for_fits_in_any_budget(labels, tmp_path, statement):
    asked, over_labels, _ = both(statement)
    model = f"oracle:{labels.folder / 'oracle.toml'}"
    con = uql.attach(labels._tables(), model=model, ledger=str(tmp_path / "ledger.sqlite"), budget="all")
    paid = con.uql(asked).fetchall()
    with con.settings(budget=0):
        again = con.uql(asked)
        assert again.fetchall() == paid == labels.truth.execute(over_labels).fetchall()
        assert again.exact
        assert again.cost.calls == 0


@pytest.mark.parametrize("statement", [s for s in STATEMENTS[:6] if "ORDER BY <rating>" not in s])
def test_a_budget_is_enough_that_reaches_each_text_once(labels, statement):
    texts = {row["text"] for row in labels.rows} - {None}
    asked = both(statement)[0]
    found = labels.uql(budget=len(texts)).uql(asked)
    assert found.exact
    assert found.cost.calls <= len(texts) < len(labels.rows)


def test_a_refusal_names_the_calls_that_are_left_to_make(labels):
    texts = {row["text"] for row in labels.rows} - {None}
    with pytest.raises(BudgetError) as error:
        labels.uql(budget=3).uql(both("SELECT median(stars) FROM reviews WHERE <pos>")[0]).fetchall()
    assert f"{len(texts)} calls" in str(error.value)


def test_pairs_that_show_nothing_are_passed_over_in_few_rounds(monkeypatch):
    from uql.kernels import sem_filter

    rounds = []
    truth = sem_filter.truth

    async def counted(where, rids, relation, ctx):
        rounds.append(len(rids))
        return await truth(where, rids, relation, ctx)

    monkeypatch.setattr(sem_filter, "truth", counted)
    duck = duckdb.connect()
    duck.execute("CREATE TABLE t AS SELECT id, NULL::VARCHAR AS text FROM range(60) r(id)")
    duck.execute("COMMENT ON COLUMN t.text IS 'text'")
    con = uql.attach(duck, model=HashModel(), ledger=":memory:", budget=4)
    result = con.uql('SELECT a.id FROM t a JOIN t b ON a.id < b.id AND "they agree {a.text} {b.text}" LIMIT 2')
    assert result.fetchall() == []
    assert result.exact
    assert result.cost.calls == 0
    assert sum(rounds) == 60 * 59 // 2
    assert len(rounds) < 20


@pytest.mark.parametrize(
    ("query", "less"),
    [
        ('SELECT id, "the name" AS n FROM t', "add LIMIT"),
        ('SELECT id, "the name" AS n FROM t LIMIT 40', "a smaller LIMIT"),
        ('SELECT id FROM t ORDER BY "how angry it is" LIMIT 2', "fewer rows by plain conditions"),
        (
            'SELECT a.id FROM t a LEFT JOIN t b ON a.id < b.id AND "agree {a.text} {b.text}"',
            "an equality beside the text",
        ),
    ],
)
def test_what_does_not_fit_in_the_budget_says_what_would_take_fewer_calls(query, less):
    duck = duckdb.connect()
    duck.execute("CREATE TABLE t AS SELECT id, 'a text of some length, number ' || id AS text FROM range(60) r(id)")
    con = uql.attach(duck, model=HashModel(), ledger=":memory:", budget=20)
    with pytest.raises(BudgetError) as error:
        con.uql(query).fetchall()
    assert less in error.value.help
    assert ("add LIMIT" in error.value.help) == (less == "add LIMIT")


def test_answers_paid_for_decide_rows_also_where_questions_travel_together(tmp_path):
    duck = duckdb.connect()
    duck.execute("CREATE TABLE t AS SELECT id, 'a text of some length, number ' || id AS text FROM range(200) r(id)")
    model = HashModel({"it is good": 0.7, "it is late": 0.9})
    con = uql.attach(duck, model=model, ledger=str(tmp_path / "ledger.sqlite"), budget="all")
    good = con.uql('SELECT id FROM t WHERE "it is good"')
    assert good.cost.calls == 200
    both_of_them = con.uql('SELECT id FROM t WHERE "it is good" AND "it is late"')
    assert "one request a row" in both_of_them.explain()
    assert both_of_them.cost.calls < len(good) + 20 < 200
    again = con.uql('SELECT id FROM t WHERE "it is good" AND "it is late"')
    assert again.fetchall() == both_of_them.fetchall()
    assert again.cost.calls == 0


@pytest.mark.parametrize("paid", ["'all'", "60"])
def test_a_limit_that_the_ledger_reaches_asks_nothing_not_even_example_rows(paid):
    model = HashModel({"it is good": 0.3})
    con = uql.connect(model=model, ledger=":memory:", seed=1)
    con.execute("CREATE TABLE t AS SELECT i AS id, 'a text of some length, number ' || i AS body FROM range(400) r(i)")
    con.uql(f'SELECT count(*) FROM t WHERE "it is good" WITH (budget = {paid})').fetchall()
    before = model.calls
    for statement in ('SELECT id FROM t WHERE "it is good" LIMIT 5', 'SELECT id FROM t WHERE NOT "it is good" LIMIT 5'):
        assert con.uql(statement).quote().calls.high == 0
        found = con.uql(statement)
        assert len(found.fetchall()) == 5
        assert found.exact
    assert model.calls == before
