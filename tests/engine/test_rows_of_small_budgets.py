"""Rows with what a model reads of them, where the budget reaches a part: no value is NULL for want of calls, and none is paid for in vain."""

from __future__ import annotations

import random

import pytest
from labels import Labels, both, plain

from uql.base.errors import BudgetError

VALUES = ("<rating>::DOUBLE", "<name>::VARCHAR", "<topic>::VARCHAR", "<rating> * 2 + stars", "<joke>")
CONDITIONS = ("<pos>", "<topic> = 'plot'", "<rating> > 5", "<pos> AND <plot>", "<pos> OR stars > 3", "NOT <pos>")
ENDS = (
    "",
    " ORDER BY id",
    " LIMIT 7",
    " LIMIT 20",
    " ORDER BY stars DESC, id LIMIT 12",
    " ORDER BY id LIMIT 5 OFFSET 3",
    " ORDER BY <rating> DESC, id LIMIT 5",
)


@pytest.fixture
def con(many_labels):
    made = many_labels.uql()
    made.uql(both("SELECT count(*) FROM reviews WHERE <pos> AND id < 100 WITH (budget = 'all')")[0]).fetchall()
    return made


def positive(labels):
    return labels.truth.execute(both("SELECT id, <rating> FROM reviews WHERE <pos> AND id < 100")[1]).fetchall()


def test_of_rows_that_are_known_to_pass_those_are_returned_whose_values_the_budget_reaches(con, many_labels):
    asked = both("SELECT id, <rating>::DOUBLE AS r FROM reviews WHERE <pos> AND id < 100")[0]
    truth = {i: float(r) for i, r in positive(many_labels)}
    found = con.uql(f"{asked} WITH (budget = 10)")
    rows = found.fetchall()
    assert len(rows) >= found.cost.calls == 10
    assert all(truth[i] == r for i, r in rows)
    assert found.partial and not found.exact
    assert f"{len(truth) - len(rows)} more rows: the budget has no calls for" in found.notes[0]
    whole = con.uql(f"{asked} WITH (budget = {len(truth)})")
    assert dict(whole.fetchall()) == truth and whole.exact


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELECT id FROM reviews WHERE <pos> AND id < 100 ORDER BY <rating>::DOUBLE DESC LIMIT 5", "ORDER BY a quoted"),
        ("SELECT id, <rating> AS r FROM reviews WHERE <pos> AND id < 100 LIMIT 30", "the 30 rows of LIMIT with their"),
        ("SELECT id, <name>, row_number() OVER () FROM reviews WHERE <pos> AND id < 100", "a window"),
    ],
)
def test_what_takes_every_value_is_refused_before_anything_is_sent(con, statement, words):
    with pytest.raises(BudgetError, match=words) as refused:
        con.uql(f"{both(statement)[0]} WITH (budget = 10)").fetchall()
    assert "nothing was sent" in str(refused.value)
    need = int(refused.value.help.split("budget = ")[1].split(")")[0])
    assert con.uql(f"{both(statement)[0]} WITH (budget = {need})").exact


@pytest.mark.parametrize("order", ["", " ORDER BY id"])
def test_a_limit_that_known_rows_fill_asks_no_row_behind_them(con, many_labels, order):
    k = len(positive(many_labels))
    found = con.uql(both(f"SELECT id FROM reviews WHERE <pos>{order} LIMIT {k}")[0])
    assert len(found.fetchall()) == k and found.cost.calls == 0


def rows_of(seed, folder):
    """Statements of a seed about the same rows, one after the other: each result with its budget, its text and the true rows."""
    rng = random.Random(seed)
    labels = Labels(folder, n=rng.choice([100, 300]), seed=seed)
    con, truth = labels.uql(), labels.sql()
    for i in range(12):
        where, budget = rng.choice(CONDITIONS), rng.choice([6, 16, 32, 64, 100])
        if i % 4 == 2:
            con.uql(both(f"SELECT count(*) FROM reviews WHERE {where} AND id < 80")[0]).fetchall()
        statement = f"SELECT {', '.join(['id', *rng.sample(VALUES, rng.randint(0, 2))])} FROM reviews WHERE {where}"
        end = rng.choice(ENDS)
        every = {row[0]: plain(row) for row in truth.execute(both(statement)[1]).fetchall()}
        asked, over_labels, _ = both(statement + end)
        try:
            found = con.uql(f"{asked} WITH (budget = {budget})")
            found.fetchall()
        except BudgetError as error:
            assert "nothing was sent" in str(error), (asked, budget)
            continue
        yield found, budget, asked, every, truth.execute(over_labels).fetchall()


def all_are_right(seed, folder):
    for found, budget, asked, every, wanted in rows_of(seed, folder):
        rows = [plain(row) for row in found.fetchall()]
        assert found.cost.calls <= budget, asked
        assert [row for row in rows if every.get(row[0]) != row] == [], (asked, budget)
        assert len({row[0] for row in rows}) == len(rows), asked
        if found.exact:
            assert len(rows) == len(wanted), asked
            assert "ORDER" not in asked or rows == [plain(row) for row in wanted], asked


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_random_statements_are_true_and_have_their_values_at_any_budget(seed, tmp_path):
    all_are_right(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 60))
def test_rows_of_more_random_statements_are_true_and_have_their_values_at_any_budget(seed, tmp_path):
    all_are_right(seed, tmp_path)


def test_rows_of_a_large_join_are_those_of_the_first_run_though_the_plan_would_stop_otherwise_by_now(labels):
    con = labels.uql(budget=5)
    con.execute("CREATE TABLE large AS SELECT range AS id FROM range(30_000)")
    rows = "reviews r, large WHERE r.id < 11 AND large.id = r.id"
    asked = both(f"SELECT r.id FROM {rows} AND <pos r.text> ORDER BY r.stars, r.id LIMIT 100")[0]
    first = con.uql(asked)
    found = first.fetchall()
    assert first.cost.calls == 5 and not first.exact
    again = con.uql(asked)
    assert again.fetchall() == found and again.cost.calls == 0
