"""SemBench's movie and MMQA queries with an oracle at error 0: exact answers are the truth that the labels imply, with few calls."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from uql.benchmarks.sembench.run import ask, judge
from uql.benchmarks.sembench.scenarios import mmqa, movie

DATA = Path(os.environ.get("UQL_DATA", Path(__file__).parents[3] / "shared" / "data")).resolve()
pytestmark = pytest.mark.skipif(
    not (DATA / "movie_reviews").is_dir() or not (DATA / "sembench_mmqa").is_dir(),
    reason="UQL_DATA names no folder with movie_reviews and sembench_mmqa",
)
MOST_CALLS = {"q1": 12, "q5": 40, "q6": 40, "q7": 256}  # within the budget that a query has by default


@pytest.fixture(scope="module")
def movies(tmp_path_factory):
    return movie(DATA, tmp_path_factory.mktemp("movie"))


@pytest.fixture(scope="module")
def mmqas(tmp_path_factory):
    return mmqa(DATA, tmp_path_factory.mktemp("mmqa"))


def same(query, rows):
    """Is the answer the truth? Any of the true rows where LIMIT says how many are wanted; numbers to nine digits."""
    if query.limit is not None:
        return len(set(rows)) == query.limit and set(rows) <= set(query.truth)
    return sorted(map(_plain, rows)) == sorted(map(_plain, query.truth))


def _plain(row):
    return tuple(str(v) if isinstance(v, str) else round(float(v), 9) for v in row)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("n", range(1, 11))
def test_an_exact_movie_query_gives_the_truth_of_the_labels(movies, n):
    query = movies.queries[n - 1]
    if n == 7:  # 65,280 pairs: of fewer reviews here
        few = [row for row in query.truth if max(row[1:]) < 300]
        query = replace(query, text=query.text.replace("WHERE ", "WHERE a.id < 300 AND b.id < 300 AND "), truth=few)
    result, con = ask(movies, query, budget="all")
    with con:
        assert same(query, result.fetchall())
        assert result.exact


@pytest.mark.parametrize("name", MOST_CALLS)
def test_a_movie_query_takes_few_calls_and_gives_the_truth(movies, name):
    query = next(q for q in movies.queries if q.name == name)
    result, con = ask(movies, query)
    with con:
        assert same(query, result.fetchall())
        assert result.cost.calls <= MOST_CALLS[name]


def test_all_pairs_of_opposite_sentiment_are_joined_by_one_attribute_a_side(movies):
    result, con = ask(movies, movies.queries[6])
    with con:
        assert len(result.fetchall()) == len(movies.queries[6].truth)
        assert not result.exact
        assert any('decided from "the sentiment of the review"' in note for note in result.notes)


def test_an_mmqa_query_gives_the_answer_that_is_published_or_stands_in_the_text(mmqas):
    assert len(mmqas.queries) == 11
    for query in mmqas.queries:
        result, con = ask(mmqas, query)
        with con:
            rows = result.fetchall()
            assert set(rows) == set(query.truth), query.name
            assert judge(query, rows) == 1.0


@pytest.mark.parametrize(("budget", "least"), [(128, 0.5), (500, 0.8)])
def test_films_are_ranked_by_few_of_their_reviews(movies, budget, least):
    """105 films, 2,000 reviews: the mean of three seeds."""
    query = movies.queries[9]
    qualities = []
    for seed in range(3):
        result, con = ask(movies, query, budget=budget, seed=seed)
        with con:
            qualities.append(judge(query, result.fetchall()))
            assert result.cost.calls <= budget
            assert any("fewer than 5 rows asked" in note for note in result.notes)
    assert sum(qualities) / 3 >= least
