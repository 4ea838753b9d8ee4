"""Groups of which few rows are asked: how rows are allotted to groups, and what is said of those with few or none."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hash_model import HashModel
from pyarrow import parquet

import uql
from uql.llm.questions import NONE

GROUPS = 40


@pytest.fixture(scope="module")
def duck():
    """40 films of 5 to 44 rows; a row's text holds its score, which lies about the score of its film."""
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE r AS SELECT film, i, 'a review that says a thing or two, number ' || film || '.' || i || ' scored ' "
        "|| round(film % 8 + hash(film * 1000 + i) % 1000 / 500 - 1, 2) AS text "
        f"FROM range({GROUPS}) f(film), range(44) n(i) WHERE i < 5 + film"
    )
    return con


def read(question, row):
    """The score in the text of a row."""
    score = float(row.cells[0].value.rsplit(" ", 1)[1])
    return score > 5 if question.text == "it is good" else score


TRUTH = "SELECT film, avg(split_part(text, ' scored ', 2)::DOUBLE) FROM r GROUP BY film"


def run(duck, query, **settings):
    return uql.attach(duck, model=HashModel(answers=read), ledger=":memory:", **settings).uql(query)


def rank_correlation(found, truth):
    keys = [key for key in truth if found.get(key) is not None]
    x, y = (np.argsort(np.argsort([held[key] for key in keys])) for held in (found, truth))
    return float(np.corrcoef(x, y)[0, 1])


def test_every_group_has_rows_where_the_budget_allows_it(duck):
    truth = dict(duck.sql(TRUTH).fetchall())
    for seed in range(3):
        result = run(
            duck, 'SELECT film, avg("the score"::DOUBLE) AS s FROM r GROUP BY film ORDER BY 2', budget=128, seed=seed
        )
        found = dict(result.fetchall())
        assert result.cost.calls <= 128
        assert set(found) == set(truth)
        assert rank_correlation(found, truth) > 0.9
        held = [e.low <= truth[k] <= e.high for (k, _), e in zip(result.fetchall(), result.estimates["s"], strict=True)]
        assert np.mean(held) >= 0.9


def test_groups_with_few_rows_are_counted_in_a_note(duck):
    result = run(duck, 'SELECT film, avg("the score"::DOUBLE) AS s FROM r GROUP BY film', budget=100)
    result.fetchall()
    (note,) = [note for note in result.notes if "rows asked" in note]
    assert note.startswith("40 of 40 groups have fewer than 5 rows asked")
    assert "WITH (budget = 200)" in note
    enough = run(duck, 'SELECT film, avg("the score"::DOUBLE) AS s FROM r GROUP BY film', budget=420)
    enough.fetchall()
    assert not [note for note in enough.notes if "rows asked" in note]


@pytest.mark.parametrize("order", ["s", "s DESC", "sum", "-s"])
def test_a_group_without_a_row_is_null_and_stands_last(duck, order):
    query = f'SELECT film, avg("the score"::DOUBLE) AS s, sum("the score"::DOUBLE) AS sum FROM r GROUP BY film ORDER BY {order}'
    result = run(duck, query, budget=20)
    rows = result.fetchall()
    none = [s is None for _, s, _ in rows]
    assert len(rows) == GROUPS and 0 < sum(none) < GROUPS
    assert none == sorted(none)
    assert [s is None for _, _, s in rows] == none
    open_ = [e for e, unknown in zip(result.estimates["s"], none, strict=True) if unknown]
    assert all((e.low, e.high) == (-np.inf, np.inf) for e in open_)
    assert any(f"{sum(none)} of them none" in note for note in result.notes)


@pytest.mark.thorough
def test_where_the_first_groups_are_wanted_they_are_more_often_right(duck):
    right = {"": 0, "LIMIT 5": 0}
    truth = duck.sql(f"SELECT film FROM ({TRUTH}) t(film, s) ORDER BY s DESC LIMIT 5").fetchall()
    for limit in right:
        for seed in range(6):
            query = f'SELECT film FROM r GROUP BY film ORDER BY avg("the score"::DOUBLE) DESC {limit}'
            right[limit] += len(set(run(duck, query, budget=150, seed=seed).fetchall()[:5]) & set(truth))
    assert right["LIMIT 5"] >= max(right[""], 24)


def test_shares_of_a_condition_by_group_lie_between_0_and_1_and_hold(duck):
    share = "avg((split_part(text, ' scored ', 2)::DOUBLE > 5)::INTEGER)"
    truth = dict(duck.sql(f"SELECT film, {share} FROM r GROUP BY film").fetchall())
    held = []
    for seed in range(3):
        query = 'SELECT film, avg(CASE WHEN "it is good" THEN 1 ELSE 0 END) AS s FROM r GROUP BY film'
        result = run(duck, query, budget=128, seed=seed)
        for (film, value), e in zip(result.fetchall(), result.estimates["s"], strict=True):
            assert 0 <= e.low <= value <= e.high <= 1
            held.append(e.low - 1e-9 <= truth[film] <= e.high + 1e-9)
    assert np.mean(held) >= 0.93


def groups_found(folder, shares, seeds, n=2400):
    """Of each seed, at 128 calls: the counts of the groups that a model names, and the greatest share of a group that may be missing."""
    ends = np.round(np.cumsum(shares) * n).astype(int)
    kinds = [
        f"kind {chr(65 + int(k))}" for k in np.searchsorted(ends, np.random.default_rng(0).permutation(n), "right")
    ]
    texts = [f"row {i} of {kind}" for i, kind in enumerate(kinds)]
    parquet.write_table(pa.table({"id": range(n), "text": texts}), folder / "data.parquet")
    parquet.write_table(pa.table({"id": range(n), "kind": kinds}), folder / "labels.parquet")
    (folder / "m.toml").write_text(
        'data = "data.parquet"\nlabels = "labels.parquet"\nkey = "id"\n[answers]\n"the kind" = "kind"\n',
        encoding="utf-8",
    )
    for seed in seeds:
        with uql.connect(model=f"oracle:{folder}/m.toml", ledger=":memory:", budget=128, seed=seed) as con:
            con.sql(f"CREATE TABLE t AS FROM '{folder}/data.parquet'")
            result = con.uql('SELECT k, COUNT(*) AS n FROM t GROUP BY "the kind" AS k')
            counts = dict(result.fetchall())
        assert result.cost.calls <= 128
        (limit,) = [float(note.split("%")[0].split()[-1]) / 100 for note in result.notes if "may be missing" in note]
        yield counts, limit


def lacks_one(counts, limit, shares):
    """Is a group missing that has more of the rows than those that may be?"""
    return any(share > limit and f"kind {chr(65 + k)}" not in counts for k, share in enumerate(shares))


def test_no_group_above_the_stated_limit_is_missing_where_24_groups_are_alike(tmp_path):
    """24 groups of 4 %: they are named, the calls that this takes are few, and the counts are no worse than a uniform sample's."""
    far, shares = [], (1 / 24,) * 24
    for counts, limit in groups_found(tmp_path, shares, range(4)):
        assert 0.04 <= limit < 0.09 or len(counts) == 24
        assert not lacks_one(counts, limit, shares)
        assert NONE not in counts
        far.append(
            sum(abs(counts.get(f"kind {chr(65 + k)}", 0) / sum(counts.values()) - 1 / 24) for k in range(24)) / 2
        )
    assert np.mean(far) < 0.17  # of a uniform sample of 128 rows whose groups have names


@pytest.mark.slow
@pytest.mark.parametrize(
    "shares",
    [
        (1 / 24,) * 24,
        (1 / 12,) * 12,
        (0.5, 0.3, 0.14, 0.06),
        (0.7, *(0.05,) * 6),
        tuple(share / sum(1 / k for k in range(1, 21)) for share in (1 / k for k in range(1, 21))),
    ],
)
def test_a_group_above_the_stated_limit_is_missing_in_one_of_twenty_runs_at_most(tmp_path, shares):
    missing = [lacks_one(counts, limit, shares) for counts, limit in groups_found(tmp_path, shares, range(200))]
    assert np.mean(missing) <= 0.05


@pytest.mark.thorough
@pytest.mark.one_in(5)
@pytest.mark.parametrize("what", ["avg", "sum"])
@pytest.mark.parametrize(("budget", "size"), [(4, 5.0), (4, 1.0), (12, 5.0)])
def test_a_number_that_few_rows_have_lies_in_the_interval_of_a_few_rows(what, budget, size):
    with duckdb.connect() as con:
        con.execute(
            "CREATE TABLE t AS SELECT 'A call of which we keep a long note, number ' || i AS body FROM range(200) r(i)"
        )
        numbers = [size if i % 11 == 3 else 0.0 for i in range(200)]
        truth, held = sum(numbers) / (200 if what == "avg" else 1), 0
        model = HashModel(answers=lambda _, row: numbers[int(row.cells[0].value.rsplit(" ", 1)[1])])
        for seed in range(12):
            asked = uql.attach(con, model=model, ledger=":memory:", seed=seed, budget=budget)
            estimate = asked.uql(f'SELECT {what}("the number of complaints") AS v FROM t').estimates["v"]
            held += estimate.low <= truth <= estimate.high
    assert held >= 11


def test_a_share_of_all_groups_is_no_exact_number_in_a_group_of_which_every_row_was_asked():
    con = uql.connect(model=HashModel(), ledger=":memory:", seed=1, budget=100)
    con.sql(
        "SELECT CASE WHEN i < 3 THEN 'few' ELSE 'many' END AS kind, 'note ' || i || ' of a customer' AS text FROM range(600) r(i)"
    ).create("notes")
    said = 'FROM notes WHERE "it is good" GROUP BY kind ORDER BY kind'
    result = con.uql(f"SELECT kind, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS share {said}")
    assert [e.exact for e in result.estimates["n"]] == [True, False]
    assert [e.exact for e in result.estimates["share"]] == [False, False]
    assert con.uql(f"SELECT COUNT(*) / SUM(COUNT(*)) OVER () AS share {said} WITH (budget = 'all')").exact


@pytest.mark.parametrize("budget", ["all", 10])
def test_dates_and_intervals_that_python_cannot_hold_are_aggregated(budget):
    con = uql.connect(model=HashModel(), ledger=":memory:")
    con.execute(
        "CREATE TABLE far AS SELECT i AS id, 'row ' || i AS body, CASE WHEN i % 2 = 0 THEN DATE '290000-01-01' ELSE 'infinity' END AS day,"
        " INTERVAL 900000000 MONTH AS wait FROM range(40) t(i)"
    )
    asked = (
        'SELECT min(day), max(wait), list(day)[1] FROM far WHERE "it is so"'
        if budget == "all"
        else 'SELECT min(day) FROM far WHERE "it is so"'
    )
    found = con.uql(f"{asked} WITH (budget = '{budget}')")
    (days,) = con.sql("SELECT DATE '290000-01-01' - DATE '1970-01-01'").fetchall()[0]
    assert found.arrow().column(0).cast("int32").to_pylist() == [days]
    assert con.uql("SELECT max(wait) FROM far").arrow().num_rows == 1
