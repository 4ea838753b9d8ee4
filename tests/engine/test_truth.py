"""With every row asked, the answer of a UQL query is the answer of SQL over the labels."""

from __future__ import annotations

import pytest

T = "text IS NOT NULL"  # a NULL text is asked nothing
POS = "(CASE WHEN text IS NULL THEN NULL ELSE sentiment = 'pos' END)"
PLOT = "(CASE WHEN text IS NULL THEN NULL ELSE about = 'plot' END)"
JOKE = "(CASE WHEN text IS NULL THEN NULL ELSE joke END)"
ABOUT = "(CASE WHEN text IS NULL THEN NULL ELSE about END)"
RATING = "(CASE WHEN text IS NULL THEN NULL ELSE rating END)"

SAME = [
    ('SELECT COUNT(*) FROM reviews WHERE "the review is positive"', f"SELECT COUNT(*) FROM r WHERE {POS}"),
    ('SELECT COUNT(*) FROM reviews WHERE NOT "the review is positive"', f"SELECT COUNT(*) FROM r WHERE NOT {POS}"),
    (
        'SELECT COUNT(*) FROM reviews WHERE stars > 2 AND "the review is positive"',
        f"SELECT COUNT(*) FROM r WHERE stars > 2 AND {POS}",
    ),
    (
        'SELECT COUNT(*) FROM reviews WHERE "the review is positive" OR stars = 1',
        f"SELECT COUNT(*) FROM r WHERE {POS} OR stars = 1",
    ),
    (
        'SELECT COUNT(*) FROM reviews WHERE ("the review is positive" OR "the review is a joke") AND NOT (stars = 2 OR "the review is about the plot")',
        f"SELECT COUNT(*) FROM r WHERE ({POS} OR {JOKE}) AND NOT (stars = 2 OR {PLOT})",
    ),
    (
        "SELECT id FROM reviews WHERE \"the review is positive\" AND film = 'Alien' ORDER BY id",
        f"SELECT id FROM r WHERE {POS} AND film = 'Alien' ORDER BY id",
    ),
    (
        'SELECT film, COUNT(*) AS n FROM reviews WHERE "the review is positive" GROUP BY film ORDER BY n DESC, film',
        f"SELECT film, COUNT(*) AS n FROM r WHERE {POS} GROUP BY film ORDER BY n DESC, film",
    ),
    (
        'SELECT film, SUM(stars), AVG(stars), MIN(stars), MAX(stars) FROM reviews WHERE "the review is positive" GROUP BY film ORDER BY 1',
        f"SELECT film, SUM(stars), AVG(stars), MIN(stars), MAX(stars) FROM r WHERE {POS} GROUP BY film ORDER BY 1",
    ),
    ('SELECT AVG("the number of stars") FROM reviews', f"SELECT AVG({RATING}) FROM r"),
    (
        "SELECT SUM(\"the number of stars\"::INTEGER) FROM reviews WHERE film = 'Alien'",
        f"SELECT SUM({RATING}) FROM r WHERE film = 'Alien'",
    ),
    ('SELECT MAX("the number of stars") FROM reviews', f"SELECT MAX({RATING}) FROM r"),
    ('SELECT COUNT("the number of stars") FROM reviews', f"SELECT COUNT({RATING}) FROM r"),
    (
        'SELECT id FROM reviews WHERE "the number of stars" >= 8 ORDER BY id',
        f"SELECT id FROM r WHERE {RATING} >= 8 ORDER BY id",
    ),
    (
        'SELECT id FROM reviews WHERE "the number of stars" BETWEEN 3 AND 5 ORDER BY id DESC LIMIT 4',
        f"SELECT id FROM r WHERE {RATING} BETWEEN 3 AND 5 ORDER BY id DESC LIMIT 4",
    ),
    (
        "SELECT id FROM reviews WHERE \"the topic\" IN ('plot', 'music') ORDER BY id",
        f"SELECT id FROM r WHERE {ABOUT} IN ('plot', 'music') ORDER BY id",
    ),
    (
        "SELECT id FROM reviews WHERE \"the topic\" = 'plot' ORDER BY id",
        f"SELECT id FROM r WHERE {ABOUT} = 'plot' ORDER BY id",
    ),
    (
        "SELECT id, \"the topic\"::ENUM('plot', 'acting', 'music') AS t FROM reviews ORDER BY id",
        f"SELECT id, {ABOUT} AS t FROM r ORDER BY id",
    ),
    (
        'SELECT id, "the reviewer\'s name" AS who FROM reviews WHERE stars > 3 ORDER BY id',
        f"SELECT id, CASE WHEN {T} THEN reviewer END AS who FROM r WHERE stars > 3 ORDER BY id",
    ),
    (
        'SELECT topic, COUNT(*) AS n FROM reviews WHERE text IS NOT NULL GROUP BY "the main topic" AS topic ORDER BY n DESC, topic',
        f"SELECT about, COUNT(*) AS n FROM r WHERE {T} GROUP BY about ORDER BY n DESC, about",
    ),
    (
        'SELECT topic, AVG(stars) AS s FROM reviews WHERE "the review is positive" AND text IS NOT NULL GROUP BY "the main topic" AS topic ORDER BY topic',
        f"SELECT about, AVG(stars) FROM r WHERE {POS} GROUP BY about ORDER BY about",
    ),
    (
        'SELECT SUM(CASE WHEN "the review is positive" THEN 1 ELSE 0 END) AS p, COUNT(*) AS n FROM reviews',
        f"SELECT SUM(CASE WHEN {POS} THEN 1 ELSE 0 END), COUNT(*) FROM r",
    ),
    (
        'SELECT COUNT(*) FILTER (WHERE "the review is positive") * 1.0 / COUNT(*) AS share FROM reviews',
        f"SELECT COUNT(*) FILTER (WHERE {POS}) * 1.0 / COUNT(*) FROM r",
    ),
    (
        'SELECT film, COUNT(*) FROM reviews WHERE "the review is positive" GROUP BY film HAVING COUNT(*) > 7 ORDER BY film',
        f"SELECT film, COUNT(*) FROM r WHERE {POS} GROUP BY film HAVING COUNT(*) > 7 ORDER BY film",
    ),
    (
        'SELECT DISTINCT "the topic" AS t FROM reviews WHERE text IS NOT NULL ORDER BY t',
        f"SELECT DISTINCT about FROM r WHERE {T} ORDER BY about",
    ),
    (
        'SELECT id, CASE WHEN stars > 3 THEN "the reviewer\'s name" ELSE film END AS x FROM reviews ORDER BY id',
        f"SELECT id, CASE WHEN stars > 3 THEN (CASE WHEN {T} THEN reviewer END) ELSE film END FROM r ORDER BY id",
    ),
    (
        'SELECT id, "the number of stars" + stars AS s FROM reviews ORDER BY s, id LIMIT 7',
        f"SELECT id, {RATING} + stars AS s FROM r ORDER BY s, id LIMIT 7",
    ),
    (
        'SELECT COUNT(*) FROM (SELECT * FROM reviews WHERE "the review is positive") AS p WHERE p.stars > 2',
        f"SELECT COUNT(*) FROM r WHERE {POS} AND stars > 2",
    ),
    (
        'WITH p AS (SELECT film, COUNT(*) AS n FROM reviews WHERE "the review is positive" GROUP BY film) SELECT AVG(n) FROM p',
        f"SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM r WHERE {POS} GROUP BY film)",
    ),
    (
        'SELECT COUNT(*) FROM reviews WHERE film IN (SELECT film FROM reviews WHERE "the review is a joke")',
        f"SELECT COUNT(*) FROM r WHERE film IN (SELECT film FROM r WHERE {JOKE})",
    ),
    (
        'SELECT id FROM reviews WHERE "the review is a joke" UNION ALL SELECT id FROM reviews WHERE stars = 1 ORDER BY id',
        f"SELECT id FROM r WHERE {JOKE} UNION ALL SELECT id FROM r WHERE stars = 1 ORDER BY id",
    ),
    (
        'SELECT f.letters, COUNT(*) FROM reviews AS v JOIN films AS f ON v.film = f.film WHERE "the review is positive" GROUP BY f.letters ORDER BY 1',
        f"SELECT f.letters, COUNT(*) FROM r AS v JOIN films AS f ON v.film = f.film WHERE {POS} GROUP BY f.letters ORDER BY 1",
    ),
    (
        'SELECT film, row_number() OVER (PARTITION BY film ORDER BY id) AS n FROM reviews WHERE "the review is a joke" ORDER BY film, n',
        f"SELECT film, row_number() OVER (PARTITION BY film ORDER BY id) AS n FROM r WHERE {JOKE} ORDER BY film, n",
    ),
    (
        'SELECT COUNT(DISTINCT "the topic"), MEDIAN("the number of stars") FROM reviews',
        f"SELECT COUNT(DISTINCT {ABOUT}), MEDIAN({RATING}) FROM r",
    ),
    (
        'SELECT id FROM reviews WHERE "the number of stars" IS NULL ORDER BY id',
        f"SELECT id FROM r WHERE {RATING} IS NULL ORDER BY id",
    ),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("query", "sql"), [s for s in SAME if s[1]], ids=range(len(SAME)))
def test_the_answer_is_that_of_sql_over_the_labels(con, world, query, sql):
    result = con.uql(query)
    assert plain(result.fetchall()) == plain(world.truth(sql))
    assert result.exact
    assert not result.errors


def plain(rows):
    """Rows with numbers as floats, so that DECIMAL and DOUBLE compare."""
    return [
        tuple(round(float(v), 9) if isinstance(v, int | float) and not isinstance(v, bool) else v for v in row)
        for row in rows
    ]
