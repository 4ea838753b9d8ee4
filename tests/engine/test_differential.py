"""Statements of every construct, with every row asked: their rows are those of DuckDB's SQL over the labels."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from labels import both, plain
from semantic_statements import SemanticStatements

from uql.base.errors import BudgetError, UQLError

FOLDER = Path(__file__).parents[1] / "golden" / "differential"
STATEMENTS = [
    (file.stem, line)
    for file in sorted(FOLDER.glob("*.sql"))
    for line in file.read_text(encoding="utf-8").splitlines()
    if line.strip() and not line.startswith("--") and (file.stem != "duckdb_2" or duckdb.__version__ >= "2")
]


@pytest.fixture(scope="module")
def con(labels):
    return labels.uql(budget="all")


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("kind", "statement"), STATEMENTS, ids=[f"{kind}-{i}" for i, (kind, _) in enumerate(STATEMENTS)]
)
def test_the_rows_are_those_of_sql_over_the_labels(con, sql, kind, statement):
    asked, over_labels, ordered = both(statement)
    want = [plain(row) for row in sql.execute(over_labels).fetchall()]
    result = con.uql(asked)
    found = [plain(row) for row in result.fetchall()]
    if not ordered:
        found, want = sorted(found, key=repr), sorted(want, key=repr)
    assert found == want, asked
    assert result.exact
    assert not result.errors


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a.id FROM reviews a JOIN reviews b ON a.id = b.id + 1 WHERE <name a.text>::VARCHAR = <name b.text>::VARCHAR",
        "SELECT x.id FROM (SELECT id, <topic>::VARCHAR AS t FROM reviews WHERE <pos>) x"
        " JOIN (SELECT <topic>::VARCHAR AS t, count(*) AS n FROM reviews GROUP BY ALL) y USING (t)",
        "WITH p AS (SELECT id, film FROM reviews WHERE <pos>), q AS (SELECT film, count(*) AS n FROM p GROUP BY film)"
        " SELECT p.id, q.n FROM p JOIN q USING (film)",
        "SELECT k, id FROM (VALUES ('Alien'), (NULL)) v(k) LEFT JOIN (SELECT id, film FROM reviews WHERE <pos>) r ON r.film = k",
    ],
)
def test_the_calls_of_rows_that_are_made_from_answers_are_foreseen(labels, statement):
    asked = both(statement)[0]
    result = labels.uql(budget="all").uql(asked)
    foreseen = result.quote().calls
    result.fetchall()
    assert foreseen.low <= result.cost.calls <= foreseen.high
    few = labels.uql(budget=result.cost.calls - 1).uql(asked)
    foreseen = few.quote().calls
    few.fetchall()
    assert foreseen.low <= few.cost.calls <= foreseen.high


@pytest.mark.parametrize(
    ("statement", "code", "help"),
    [
        (
            "SELECT DISTINCT ON (film) film, id FROM reviews WHERE <pos> QUALIFY row_number() OVER (ORDER BY id) < 9",
            "UQL212",
            "take it around them",
        ),
        (
            "SELECT DISTINCT ON (k) row_number() OVER (ORDER BY id) AS k FROM reviews WHERE <pos>",
            "UQL212",
            "take it around them",
        ),
        (
            "SELECT f.film FROM films f RIGHT JOIN LATERAL (SELECT id, text FROM reviews r WHERE r.film = f.film) x ON <joke x.text>",
            "UQL212",
            "WHERE",
        ),
        (
            "SELECT a.id FROM reviews a JOIN reviews b ON a.id = b.id AND <pos a.text> POSITIONAL JOIN films f",
            "UQL212",
            "in a sub-query",
        ),
        (
            "SELECT a.id FROM reviews a ASOF JOIN reviews b ON a.day >= b.day AND <pos b.text>",
            "UQL212",
            "in a sub-query",
        ),
        (
            "SELECT a.id FROM reviews a ASOF JOIN (reviews b JOIN films c ON b.film = c.film AND <pos b.text>) ON a.day >= b.day",
            "UQL212",
            "in a sub-query",
        ),
        (
            "SELECT id FROM reviews WHERE <pos> LIMIT (SELECT film FROM films LIMIT 1)::INTEGER",
            "UQL208",
            "whole number",
        ),
        ("SELECT id FROM reviews QUALIFY max(<rating>) OVER (PARTITION BY film) = <rating>", "UQL206", "PROMPT"),
        ("SELECT id FROM reviews WHERE <pos> AND length(film) = <rating>", "UQL206", "PROMPT"),
        (
            "SELECT film FROM reviews WHERE <pos> GROUP BY film HAVING (count(*) * 100)::TINYINT > 3",
            "UQL509",
            "TRY_CAST",
        ),
        (
            "WITH RECURSIVE n(i) AS (SELECT min(id) FROM reviews WHERE <pos> UNION ALL SELECT i + 1 FROM n WHERE i < 4) FROM n",
            "UQL100",
            "FROM first UNION ALL",
        ),
        (
            "WITH RECURSIVE p AS (SELECT 1 AS i FROM reviews WHERE <pos>), n AS (SELECT i FROM p UNION SELECT i + 1 FROM n"
            " WHERE i < 4) SELECT id FROM reviews JOIN n ON i = id WHERE <joke>",
            "UQL100",
            "make a table",
        ),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < $top) SELECT id FROM reviews WHERE <pos>",
            "UQL100",
            "its value",
        ),
        ("PIVOT reviews ON <topic> USING count(*)", "UQL100", "PIVOT (SELECT"),
        ("PIVOT (SELECT film FROM reviews WHERE <pos>) ON flm USING count(*)", "UQL100", "by itself"),
        ("PIVOT (SELECT film FROM revews WHERE <pos>) ON film USING count(*)", "UQL201", "reviews"),
        ("MERGE INTO films USING reviews r ON <pos r.text> WHEN MATCHED THEN DELETE", "UQL100", "MERGE INTO t USING"),
        ("CREATE VIEW v AS SELECT id FROM reviews WHERE <pos>", "UQL100", "CREATE TABLE"),
        ("CREATE VIEW v AS (SELECT id FROM reviews WHERE <pos>)", "UQL100", "CREATE TABLE"),
        ("CREATE MACRO m() AS (SELECT count(*) FROM reviews WHERE <pos>)", "UQL100", "CREATE TABLE"),
        (
            "SELECT id FROM reviews WHERE <pos> LIMIT (SELECT count(*) FROM reviews WHERE <joke>)",
            "UQL208",
            "TO counted",
        ),
        ("SELECT id FROM reviews WHERE <pos> LIMIT (SELECT 'x')", "UQL208", "whole number"),
        ("SELECT id FROM reviews WHERE <pos> LIMIT 101%", "UQL208", "LIMIT 10%"),
        ("SELECT id FROM reviews WHERE <pos> & <joke>", "UQL206", "AND"),
        ("SELECT id FROM reviews WHERE <pos> && <joke>", "UQL100", "AND"),
        ("SELECT id FROM reviews WHERE 'the review is positive'", "UQL206", "double quotes"),
        ("SELECT a.id FROM reviews a JOIN reviews b ON <name a.text> = <name b.text>", "UQL206", "PROMPT"),
        ("SELECT id FROM reviews WHERE ai_filter('it is positive', text)", "UQL209", "double quotes"),
        ("SELECT ai_classify(text, ['a', 'b']) FROM reviews WHERE <pos>", "UQL209", "ENUM"),
        ("SELECT film, count(*) FROM reviews WHERE <pos>", "UQL209", "GROUP BY"),
        ("SELECT film FROM reviews WHERE <pos> AND count(*) > 1", "UQL209", "HAVING"),
        ("SELECT id FROM reviews WHERE film = $$Alien AND <pos>", "UQL107", "end it with $$"),
        ("SELECT id FROM reviews WHERE <pos> FETCH FIRST 3 ROWS WITH TIES", "UQL100", "rank()"),
        ("SELECT id FROM reviews WHERE :p AND <pos>", "UQL100", "$name"),
        ("SELECT id FROM reviews WHERE 5 < <rating>", "UQL206", "PROMPT"),
        ("SELECT id FROM reviews WHERE stars < <rating>", "UQL206", "on the left"),
        ("SELECT id FROM reviews WHERE stars BETWEEN 1 AND <rating>", "UQL206", "PROMPT"),
        ("SELECT count(*) OVER w FROM reviews WHERE <pos>", "UQL100", "WINDOW w AS"),
        (
            "SELECT count(*) OVER (w ORDER BY id) FROM reviews WHERE <pos> WINDOW w AS (ORDER BY film)",
            "UQL100",
            "write the window w out",
        ),
        ("SELECT id FROM reviews WHERE <name>.upper() = 'ADA'", "UQL212", "upper("),
        ("SELECT film, count(*) FROM reviews WHERE <pos> GROUP BY ROLLUP (film) WITH (budget = 5)", "UQL401", "budget"),
        (
            "SELECT id FROM reviews WHERE <pos> QUALIFY row_number() OVER (ORDER BY id) < 3 WITH (budget = 5)",
            "UQL401",
            "budget",
        ),
        ("SELECT id, count(*) OVER () FROM reviews WHERE <pos> WITH (budget = 5)", "UQL401", "budget"),
        ("SELECT id FROM reviews a JOIN films f USING (film) USING SAMPLE 3 WHERE <pos>", "UQL106", "TABLESAMPLE"),
        ("SELECT id FROM reviews NATURAL JOIN (SELECT 1 AS k) WHERE <pos>", "UQL212", None),
        ("SELECT COLUMNS('zz') FROM reviews WHERE <pos>", "UQL212", None),
        ("SELECT id FROM reviews WHERE <pos> INTERSECT SELECT id, film FROM reviews", "UQL211", None),
    ],
)
def test_what_cannot_be_asked_says_what_to_write_instead(labels, statement, code, help):
    with pytest.raises(UQLError) as error:
        labels.uql(budget="all").uql(both(statement)[0]).fetchall()
    assert error.value.code == code
    assert help is None or help in (error.value.help or "")


def test_a_long_text_behind_an_equals_sign_is_said_to_be_a_string(con):
    result = con.uql(both('SELECT id FROM reviews WHERE <name> = "the main topic of it"')[0])
    assert result.fetchall() == []
    assert any("UQL102" in warning and "PROMPT" in warning for warning in result.warnings)


@pytest.mark.parametrize("rows", ["10% (bernoulli)", "12 ROWS", "reservoir(5 ROWS)", "bernoulli(50%) REPEATABLE (3)"])
def test_a_sampled_table_gives_some_of_its_rows_and_is_asked_about_no_others(con, rows):
    inside = con.uql(f'SELECT id, "the review is positive"::BOOLEAN AS p FROM reviews TABLESAMPLE {rows}').fetchall()
    assert len(inside) < 44
    truth = dict(con.uql('SELECT id, "the review is positive"::BOOLEAN AS p FROM reviews').fetchall())
    assert all(truth[i] == p for i, p in inside)


@pytest.mark.parametrize(
    ("stored", "select"),
    [
        ("CREATE OR REPLACE TABLE kept AS {}", "FROM reviews WHERE <pos> AND id < 30"),
        ("{} TO kept", "SELECT id, <topic> AS t FROM reviews WHERE <pos> QUALIFY row_number() OVER (ORDER BY id) < 4"),
        ("{} TO kept", "SELECT id FROM reviews WHERE <pos> EXCEPT SELECT id FROM reviews WHERE <joke>"),
    ],
)
def test_what_is_stored_are_the_rows_of_the_query(labels, sql, stored, select):
    con = labels.uql(budget="all")
    con.uql(stored.format(both(select)[0])).fetchall()
    found = sorted([plain(row) for row in con.uql("FROM kept").fetchall()], key=repr)
    assert found == sorted([plain(row) for row in sql.execute(both(select)[1]).fetchall()], key=repr)


def test_parameters_stand_wherever_constants_and_texts_may(con, sql):
    import uql

    query = "SELECT id FROM reviews WHERE $said AND stars IN ($stars) AND list_contains($films, film) QUALIFY row_number() OVER (ORDER BY id) <= $n"
    values = {"said": uql.sem("the review is positive"), "stars": [1, 2, 3], "films": ["Alien", "Brazil"], "n": 3}
    over_labels = both(
        "SELECT id FROM reviews WHERE <pos> AND stars IN (1, 2, 3) AND film IN ('Alien', 'Brazil') ORDER BY id LIMIT 3"
    )[1]
    assert con.uql(query, **values).fetchall() == sql.execute(over_labels).fetchall()


def test_macros_over_aggregates_are_aggregates(labels):
    con, sql = labels.uql(budget="all"), labels.sql()
    for each in (con, sql):
        each.execute("CREATE MACRO average(x) AS sum(x) / count(x)")
        each.execute("CREATE MACRO place(x) AS row_number() OVER (ORDER BY x)")
    for statement in (
        "SELECT film, Average(stars) AS m, geomean(id + 1) AS g FROM reviews WHERE <pos> GROUP BY film HAVING average(id) > 3",
        "SELECT weighted_avg(id, stars) + average(id) AS w FROM reviews WHERE <pos>",
        "SELECT id, place(id) AS p FROM reviews WHERE <pos>",
    ):
        asked, over_labels, _ = both(statement)
        assert_same(con, sql, asked, over_labels)
    con.execute("CREATE OR REPLACE MACRO average(x) AS x + 1")
    assert con.uql(both("SELECT average(id) FROM reviews WHERE <pos>")[0]).fetchall() != []
    with pytest.raises(BudgetError, match="geomean"):
        labels.uql(budget=4).uql(both("SELECT geomean(id + 1) AS g FROM reviews WHERE <pos>")[0]).fetchall()


def assert_same(con, sql, asked, over_labels):
    found = sorted((plain(row) for row in con.uql(asked).fetchall()), key=repr)
    assert found == sorted((plain(row) for row in sql.execute(over_labels).fetchall()), key=repr), asked


def test_the_items_of_a_list_are_keys_of_one_table(con):
    with pytest.raises(UQLError) as error:
        con.uql(
            both(
                "SELECT unnest(r.tags) AS tag, count(*) FROM reviews r JOIN films f USING (film) WHERE <pos r.text> GROUP BY tag"
            )[0]
        )
    assert error.value.code == "UQL212"
    assert "unnest(t.list) AS u(item)" in error.value.help


@pytest.mark.parametrize(
    "condition",
    [
        "true OR EXISTS (SELECT 1 FROM reviews v WHERE v.film = r.film AND <joke v.text>)",
        "true OR id IN (SELECT id FROM reviews v WHERE <joke v.text>)",
    ],
)
def test_a_sub_query_in_a_condition_that_is_settled_is_not_asked(labels, condition):
    result = labels.uql(budget="all").uql(both(f"SELECT id FROM reviews r WHERE {condition}")[0])
    assert (len(result.fetchall()), result.cost.calls) == (44, 0)


def differences(con, sql, seeds):
    """The random statements of these seeds whose rows or errors are not those of SQL over the labels."""
    found = []
    for seed in seeds:
        statement, values = SemanticStatements(seed).statement()
        asked, over_labels, _ = both(statement)
        used = {name: value for name, value in values.items() if f"${name}" in asked}
        try:
            want = [plain(row) for row in sql.execute(over_labels, used or None).fetchall()]
        except duckdb.Error as error:
            if "must appear in the GROUP BY clause" in str(error):
                continue  # a text beside aggregates is asked of the group
            want = "an error"
        try:
            result = con.uql(asked, used)
            got = [plain(row) for row in result.fetchall()]
        except UQLError as error:
            if "DISTINCT ON comes after" in str(error):
                continue
            got = "an error"
        if sorted(got, key=repr) != sorted(want, key=repr) or (got != "an error" and not result.exact):
            found.append((seed, asked, used, want, got))
    return found


def test_random_statements_with_texts_are_sql_over_the_labels(con, sql):
    assert not differences(con, sql, range(40))


@pytest.mark.slow
def test_a_thousand_random_statements_with_texts_are_sql_over_the_labels(con, sql):
    assert not differences(con, sql, range(1_000, 2_000))
