"""Every construct of the language, run on an oracle: the answer is that of the same SQL over the labels."""

from __future__ import annotations

import pytest

import uql

SAME = [
    (
        'SELECT id, last_value("the number of stars"::INTEGER IGNORE NULLS) OVER (ORDER BY id) AS a, first_value("the number of stars"::INTEGER RESPECT NULLS) OVER (ORDER BY id DESC) AS b FROM reviews ORDER BY id',
        "SELECT id, last_value((CASE WHEN text IS NOT NULL THEN rating END) IGNORE NULLS) OVER (ORDER BY id), first_value((CASE WHEN text IS NOT NULL THEN rating END) RESPECT NULLS) OVER (ORDER BY id DESC) FROM r ORDER BY id",
    ),
    *(
        (
            f'SELECT id, sum("the number of stars"::INTEGER) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE {part}) AS s FROM reviews ORDER BY id',
            f"SELECT id, sum((CASE WHEN text IS NOT NULL THEN rating END)) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE {part}) FROM r ORDER BY id",
        )
        for part in ("CURRENT ROW", "GROUP", "TIES", "NO OTHERS")
    ),
    (
        'SELECT id, "the review is positive" IS UNKNOWN AS u, "the review is positive" IS NOT UNKNOWN AS k FROM reviews ORDER BY id',
        "SELECT id, (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END) IS NULL, (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END) IS NOT NULL FROM r ORDER BY id",
    ),
    (
        'SELECT id, row_number() OVER (PARTITION BY film ORDER BY "the number of stars"::INTEGER DESC, id) AS k FROM reviews WHERE text IS NOT NULL ORDER BY id',
        "SELECT id, row_number() OVER (PARTITION BY film ORDER BY rating DESC, id) AS k FROM r WHERE text IS NOT NULL ORDER BY id",
    ),
    (
        'SELECT film, COUNT(*) FILTER (WHERE "the review is positive") AS n, AVG("the number of stars") FILTER (WHERE "the review is positive") AS a FROM reviews GROUP BY film ORDER BY film',
        "SELECT film, COUNT(*) FILTER (WHERE (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END)), AVG((CASE WHEN text IS NOT NULL THEN rating END)) FILTER (WHERE (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END)) FROM r GROUP BY film ORDER BY film",
    ),
    (
        "SELECT film, string_agg(\"the reviewer's name\", ',' ORDER BY id) AS s FROM reviews GROUP BY film ORDER BY film",
        "SELECT film, string_agg(CASE WHEN text IS NOT NULL THEN reviewer END, ',' ORDER BY id) FROM r GROUP BY film ORDER BY film",
    ),
    (
        'SELECT film, list(DISTINCT "the main topic" ORDER BY "the main topic") AS s FROM reviews GROUP BY film ORDER BY film',
        "SELECT film, list(DISTINCT (CASE WHEN text IS NOT NULL THEN about END) ORDER BY (CASE WHEN text IS NOT NULL THEN about END)) FROM r GROUP BY film ORDER BY film",
    ),
    (
        'SELECT AVG(n) AS a FROM (SELECT film, COUNT(*) AS n FROM reviews WHERE "the review is positive" GROUP BY film) t',
        "SELECT AVG(n) FROM (SELECT film, COUNT(*) AS n FROM r WHERE (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END) GROUP BY film) t",
    ),
    (
        'WITH p AS (SELECT * FROM reviews WHERE "the review is positive"), q AS (SELECT film, COUNT(*) AS n FROM p GROUP BY film) SELECT p.id, q.n FROM p JOIN q USING (film) ORDER BY p.id',
        "WITH p AS (SELECT * FROM r WHERE (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END)), q AS (SELECT film, COUNT(*) AS n FROM p GROUP BY film) SELECT p.id, q.n FROM p JOIN q USING (film) ORDER BY p.id",
    ),
    (
        'SELECT id FROM reviews WHERE "the review is positive" UNION ALL SELECT id FROM reviews WHERE "the review is a joke" ORDER BY id',
        "SELECT id FROM r WHERE (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END) UNION ALL SELECT id FROM r WHERE (CASE WHEN text IS NOT NULL THEN joke END) ORDER BY id",
    ),
    (
        'SELECT DISTINCT film, "the main topic" AS t FROM reviews ORDER BY ALL',
        "SELECT DISTINCT film, (CASE WHEN text IS NOT NULL THEN about END) FROM r ORDER BY ALL NULLS LAST",
    ),
    (
        'SELECT COUNT(DISTINCT "the main topic") AS n FROM reviews',
        "SELECT COUNT(DISTINCT (CASE WHEN text IS NOT NULL THEN about END)) FROM r",
    ),
    (
        'SELECT film FROM reviews GROUP BY film HAVING COUNT(*) FILTER (WHERE "the review is positive") > 5 ORDER BY film',
        "SELECT film FROM r GROUP BY film HAVING COUNT(*) FILTER (WHERE (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END)) > 5 ORDER BY film",
    ),
    (
        'SELECT SUM(CASE WHEN "the review is positive" THEN stars ELSE 0 END) AS s FROM reviews',
        "SELECT SUM(CASE WHEN (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END) THEN stars ELSE 0 END) FROM r",
    ),
    (
        'SELECT id, CASE WHEN "the review is positive" THEN "the main topic" WHEN "the review is a joke" THEN \'joke\' END AS x FROM reviews ORDER BY id',
        "SELECT id, CASE WHEN (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END) THEN (CASE WHEN text IS NOT NULL THEN about END) WHEN (CASE WHEN text IS NOT NULL THEN joke END) THEN 'joke' END FROM r ORDER BY id",
    ),
    (
        'SELECT id FROM reviews WHERE "the number of stars" BETWEEN 3 AND 6 ORDER BY id',
        "SELECT id FROM r WHERE (CASE WHEN text IS NOT NULL THEN rating END) BETWEEN 3 AND 6 ORDER BY id",
    ),
    (
        'SELECT id FROM reviews WHERE "the number of stars" * 2 > stars + 5 ORDER BY id',
        "SELECT id FROM r WHERE (CASE WHEN text IS NOT NULL THEN rating END) * 2 > stars + 5 ORDER BY id",
    ),
    (
        "SELECT id FROM reviews WHERE \"the reviewer's name\" LIKE 'A%' ORDER BY id",
        "SELECT id FROM r WHERE text IS NOT NULL AND reviewer LIKE 'A%' ORDER BY id",
    ),
    (
        "SELECT id FROM reviews WHERE upper(\"the reviewer's name\") = 'ADA' ORDER BY id",
        "SELECT id FROM r WHERE text IS NOT NULL AND upper(reviewer) = 'ADA' ORDER BY id",
    ),
    (
        "SELECT id FROM reviews WHERE \"the main topic\" NOT IN ('plot', 'music') ORDER BY id",
        "SELECT id FROM r WHERE (CASE WHEN text IS NOT NULL THEN about END) NOT IN ('plot','music') ORDER BY id",
    ),
    (
        "SELECT id FROM reviews WHERE \"the main topic\" <> 'plot' ORDER BY id",
        "SELECT id FROM r WHERE (CASE WHEN text IS NOT NULL THEN about END) <> 'plot' ORDER BY id",
    ),
    (
        'SELECT film, COUNT(*) AS n FROM reviews GROUP BY film ORDER BY AVG("the number of stars") DESC, film',
        "SELECT film, COUNT(*) FROM r GROUP BY film ORDER BY AVG((CASE WHEN text IS NOT NULL THEN rating END)) DESC, film",
    ),
    (
        'SELECT p, COUNT(*) AS n FROM (SELECT "the review is positive"::BOOLEAN AS p FROM reviews) GROUP BY p ORDER BY p',
        "SELECT p, COUNT(*) FROM (SELECT (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END) AS p FROM r) GROUP BY p ORDER BY p NULLS LAST",
    ),
    (
        'SELECT p, COUNT(*) AS n FROM reviews GROUP BY "the review is positive"::BOOLEAN AS p ORDER BY p',
        "SELECT (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END) AS p, COUNT(*) FROM r GROUP BY p ORDER BY p NULLS LAST",
    ),
    (
        'SELECT a.id FROM reviews a, reviews b WHERE a.id + 1 = b.id AND a.text IS NOT NULL AND b.text IS NOT NULL AND "they agree" ORDER BY 1',
        "SELECT a.id FROM r a, r b WHERE a.id+1=b.id AND a.text IS NOT NULL AND b.text IS NOT NULL AND a.sentiment=b.sentiment ORDER BY 1",
    ),
    (
        'SELECT median("the number of stars") AS m, stddev("the number of stars"::DOUBLE) AS s FROM reviews',
        "SELECT median((CASE WHEN text IS NOT NULL THEN rating END)), stddev((CASE WHEN text IS NOT NULL THEN rating END)) FROM r",
    ),
    (
        'SELECT COUNT(*) AS n, COUNT("the number of stars"::INTEGER) AS k FROM reviews',
        "SELECT COUNT(*), COUNT((CASE WHEN text IS NOT NULL THEN rating END)) FROM r",
    ),
    (
        'SELECT film, MAX("the number of stars"::INTEGER) - MIN("the number of stars"::INTEGER) AS d FROM reviews GROUP BY film ORDER BY film',
        "SELECT film, MAX((CASE WHEN text IS NOT NULL THEN rating END))-MIN((CASE WHEN text IS NOT NULL THEN rating END)) FROM r GROUP BY film ORDER BY film",
    ),
    (
        'SELECT COUNT(*) FILTER (WHERE "the review is positive") / COUNT(*) AS share FROM reviews',
        "SELECT COUNT(*) FILTER (WHERE (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END)) / COUNT(*) FROM r",
    ),
    (
        'SELECT id FROM reviews WHERE "the review is positive" IS TRUE AND "the review is a joke" IS NOT TRUE ORDER BY id',
        "SELECT id FROM r WHERE (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END) IS TRUE AND (CASE WHEN text IS NOT NULL THEN joke END) IS NOT TRUE ORDER BY id",
    ),
    (
        'SELECT id FROM reviews WHERE "the review is positive" = true ORDER BY id',
        "SELECT id FROM r WHERE (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END) = true ORDER BY id",
    ),
    (
        'SELECT id, coalesce("the number of stars"::INTEGER, 0) AS x FROM reviews ORDER BY id LIMIT 9 OFFSET 2',
        "SELECT id, coalesce((CASE WHEN text IS NOT NULL THEN rating END), 0) FROM r ORDER BY id LIMIT 9 OFFSET 2",
    ),
    (
        "SELECT id, \"the main topic\" AS t FROM reviews WHERE t = 'plot' ORDER BY id",
        "SELECT id, (CASE WHEN text IS NOT NULL THEN about END) FROM r WHERE (CASE WHEN text IS NOT NULL THEN about END)='plot' ORDER BY id",
    ),
    (
        "SELECT t, COUNT(*) AS n FROM reviews WHERE text IS NOT NULL GROUP BY \"the main topic\" AS t HAVING t <> 'plot' ORDER BY t",
        "SELECT about, COUNT(*) FROM r WHERE text IS NOT NULL AND about <> 'plot' GROUP BY about ORDER BY about",
    ),
    (
        'SELECT id FROM reviews WHERE id IN (1,2,3) AND "the review is positive" OR "the review is positive" AND stars IN (SELECT stars FROM reviews WHERE id < 5) ORDER BY id',
        "SELECT id FROM r WHERE id IN (1,2,3) AND (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END) OR (CASE WHEN text IS NOT NULL THEN sentiment = 'pos' END) AND stars IN (SELECT stars FROM r WHERE id<5) ORDER BY id",
    ),
]


LISTS = [
    (
        'SELECT film, len(list("the main topic")) AS n, upper(max(film)) AS u FROM reviews GROUP BY film ORDER BY film',
        "SELECT film, COUNT(*), upper(max(film)) FROM r GROUP BY film ORDER BY film",
    ),
    (
        'SELECT t, unnest(list(id ORDER BY id)) AS id FROM reviews WHERE text IS NOT NULL GROUP BY "the main topic" AS t ORDER BY ALL',
        "SELECT about, id FROM r WHERE text IS NOT NULL ORDER BY ALL",
    ),
    (
        "SELECT film, COALESCE(string_agg(\"the reviewer's name\", '' ORDER BY id) FILTER (WHERE stars = 1), 'nobody') AS s FROM reviews GROUP BY film ORDER BY film",
        "SELECT film, COALESCE(string_agg(reviewer, '' ORDER BY id) FILTER (WHERE stars = 1 AND text IS NOT NULL), 'nobody') FROM r GROUP BY film ORDER BY film",
    ),
]


@pytest.mark.parametrize(("query", "sql"), LISTS)
def test_aggregates_that_are_no_numbers_stand_in_expressions(con, world, query, sql):
    assert con.uql(query).fetchall() == world.truth(sql)


def plain(rows):
    """Numbers to nine digits, whatever their type."""
    return [
        tuple(round(float(v), 9) if isinstance(v, int | float) and not isinstance(v, bool) else v for v in row)
        for row in rows
    ]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("query", "sql"), SAME)
def test_a_construct_gives_what_sql_gives_over_the_labels(con, world, query, sql):
    assert plain(con.uql(query).fetchall()) == plain(world.truth(sql))


def test_order_by_all_is_every_column_from_the_left(con, world):
    found = con.uql(
        'SELECT film, "the main topic" AS t FROM reviews WHERE text IS NOT NULL ORDER BY ALL DESC LIMIT 5'
    ).fetchall()
    assert found == world.truth("SELECT film, about FROM r WHERE text IS NOT NULL ORDER BY ALL DESC LIMIT 5")
    both = con.uql(
        'SELECT id AS k FROM reviews WHERE "the review is a joke" UNION ALL SELECT 1000 ORDER BY ALL DESC'
    ).fetchall()
    assert both == world.truth(
        "SELECT id AS k FROM r WHERE joke AND text IS NOT NULL UNION ALL SELECT 1000 ORDER BY ALL DESC"
    )


def test_a_star_leaves_out_what_it_excludes(con, world):
    found = con.uql('SELECT * EXCLUDE (text, "stars") FROM reviews WHERE "the review is a joke" ORDER BY id')
    assert found.columns == ["id", "film"]
    assert found.fetchall() == world.truth("SELECT id, film FROM r WHERE joke AND text IS NOT NULL ORDER BY id")
    both = con.uql(
        'SELECT a.* EXCLUDE (text), f.letters FROM reviews AS a JOIN films AS f USING (film) WHERE "the review is a joke" ORDER BY id'
    )
    assert both.columns == ["id", "film", "stars", "letters"]
    with pytest.raises(uql.UQLError) as error:
        con.uql('SELECT * EXCLUDE (txet) FROM reviews WHERE "the review is a joke"')
    assert error.value.code == "UQL202"
    assert "text" in error.value.help


def test_presence_is_asked_of_a_condition_without_giving_it_another_type(con, world):
    found = con.uql(
        'SELECT COUNT("the review is positive") AS k, COUNT(*) AS n FROM reviews WHERE "the review is positive" OR "the review is positive" IS NULL'
    )
    assert found.fetchall() == world.truth(
        "SELECT COUNT(*) FILTER (WHERE text IS NOT NULL), COUNT(*) FROM r WHERE sentiment = 'pos' OR text IS NULL"
    )


def test_the_queries_of_the_paper_run_as_it_means_them(con, world):
    counted = con.uql(
        'SELECT "the main topic" AS topic, COUNT(*) AS count FROM reviews WHERE film = "Alien" GROUP BY topic ORDER BY count DESC, topic'
    )
    assert counted.fetchall() == world.truth(
        "SELECT CASE WHEN text IS NOT NULL THEN about END AS topic, COUNT(*) AS n FROM r WHERE film = 'Alien' GROUP BY 1 ORDER BY n DESC, 1 NULLS LAST"
    )
    con.uql('SELECT id, "the main topic" AS topic FROM reviews WHERE stars > 3 AND "the review is positive" TO liked')
    assert con.sql("SELECT id, topic FROM liked ORDER BY id").fetchall() == world.truth(
        "SELECT id, about FROM r WHERE stars > 3 AND sentiment = 'pos' AND text IS NOT NULL ORDER BY id"
    )


def test_parameters_are_values_texts_and_types(con, world):
    found = con.uql(
        "SELECT id, $what AS x FROM reviews WHERE $crit AND film = $film ORDER BY id",
        crit=uql.sem("the review is positive"),
        what=uql.sem("the number of stars", "INTEGER"),
        film="Alien",
    )
    assert found.fetchall() == world.truth(
        "SELECT id, rating FROM r WHERE sentiment = 'pos' AND text IS NOT NULL AND film = 'Alien' ORDER BY id"
    )


def test_clauses_in_any_order_mean_the_same(con):
    one = (
        'SELECT film, COUNT(*) AS n FROM reviews WHERE "the review is positive" GROUP BY film ORDER BY n, film LIMIT 2'
    )
    other = 'SELECT film, COUNT(*) AS n FROM reviews LIMIT 2 ORDER BY n, film GROUP BY film WHERE "the review is positive" -- as written'
    assert con.uql(one).fetchall() == con.uql(other).fetchall()


def test_one_text_is_asked_once_wherever_it_stands(con, world):
    result = con.uql(
        'SELECT id, "the review is positive"::BOOLEAN AS p FROM reviews WHERE "the review is positive" OR stars > 9 ORDER BY "the review is positive", id'
    )
    assert (
        len(result.fetchall())
        == world.truth("SELECT COUNT(*) FROM r WHERE sentiment = 'pos' AND text IS NOT NULL")[0][0]
    )
    assert result.cost.calls == world.truth("SELECT COUNT(*) FROM r WHERE text IS NOT NULL")[0][0]


@pytest.mark.parametrize("how", ["EXPLAIN", "EXPLAIN ANALYZE", "EXPLAIN SAMPLE 8", "EXPLAIN (FORMAT json)"])
def test_a_query_is_explained(con, how):
    text = str(con.uql(f'{how} SELECT COUNT(*) AS n FROM reviews WHERE "the review is positive"').fetchall())
    assert "the review is positive" in text


def test_having_and_a_select_text_are_said_of_groups(con):
    result = con.uql(
        'SELECT film, "what the reviews say" AS said, COUNT(*) AS n FROM reviews GROUP BY film ORDER BY film'
    )
    rows = result.fetchall()
    assert [film for film, _, _ in rows] == ["Alien", "Brazil", "Casablanca"]
    assert all(said.startswith("what the reviews say") and "[" in said for _, said, _ in rows)
    kept = con.uql('SELECT film FROM reviews GROUP BY film HAVING "most of the reviews are positive"').fetchall()
    assert kept == []  # the oracle of this world says no of every group


def test_a_column_taken_by_its_place_has_the_name_that_duckdb_gives_it(world):
    con = world.connect(budget="all")
    plain = con.sql("SELECT #2, #1, #1 + 1 AS next FROM reviews LIMIT 1")
    asked = con.uql('SELECT #2, #1, #1 + 1 AS next FROM reviews WHERE "the review is positive" LIMIT 1')
    assert list(asked.columns) == list(plain.columns) == ["film", "id", "next"]
    assert con.uql("SELECT #2, #1, #1 + 1 AS next FROM reviews LIMIT 1").columns == ["film", "id", "next"]
