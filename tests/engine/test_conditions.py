"""A text that is used as a condition is BOOLEAN everywhere in its statement; no value but a BOOLEAN is a condition."""

from __future__ import annotations

import random

import pytest
from hash_model import HashModel
from labels import both, plain

import uql
from uql.base.errors import UQLError


@pytest.fixture(scope="module")
def con(labels):
    return labels.uql(budget="all")


P = "(SELECT id, <pos> AS p, <joke> AS j, stars FROM reviews)"
NESTED = [
    "WITH p AS (SELECT id, <pos> AS good FROM reviews) SELECT id FROM p WHERE good ORDER BY id",
    f"SELECT id FROM {P} AS x WHERE p ORDER BY id",
    f"SELECT id, p FROM {P} AS x WHERE NOT p ORDER BY id",
    f"SELECT count(*) FROM {P} AS x WHERE p AND j OR stars = 1",
    f"SELECT id, CASE WHEN p THEN 1 ELSE 0 END AS c FROM {P} AS x ORDER BY id",
    f"SELECT stars, count(*) FILTER (WHERE p) AS n FROM {P} AS x GROUP BY stars ORDER BY stars",
    f"SELECT stars, bool_and(p) AS b FROM {P} AS x GROUP BY stars HAVING bool_or(p) ORDER BY stars",
    f"SELECT x.id FROM {P} AS x JOIN films f ON x.p AND f.letters = x.stars ORDER BY 1, f.letters",
    f"SELECT id FROM (SELECT id, p AS q FROM {P} AS x) AS y WHERE q ORDER BY id",
    "SELECT id FROM (SELECT id, <pos> AS c FROM reviews UNION ALL SELECT id, <joke> FROM reviews) AS u WHERE c ORDER BY id",
    "SELECT id FROM (SELECT id, <pos> AS c FROM reviews UNION ALL SELECT id, stars > 2 FROM reviews) AS u WHERE c ORDER BY id",
    "WITH a AS (SELECT id, <pos> AS c FROM reviews), b AS (SELECT * FROM a) SELECT id FROM b WHERE c IS TRUE ORDER BY id",
    "WITH a(i, c) AS (SELECT id, <pos> FROM reviews) SELECT i FROM a WHERE c = true ORDER BY i",
    "SELECT id, <pos> AS p FROM reviews WHERE <pos> ORDER BY id",
    "SELECT id FROM reviews WHERE <pos> IS NOT DISTINCT FROM <joke> ORDER BY id",
    "SELECT id FROM reviews WHERE <pos> = (NOT <joke>) AND <pos> ORDER BY id",
    "SELECT id FROM reviews WHERE (NOT <pos>) <> (NOT <joke>) ORDER BY id",
    "SELECT id, <pos>::INTEGER AS n FROM reviews WHERE <pos> OR stars = 2 ORDER BY id",
    "SELECT id, CASE WHEN id > 9 THEN p ELSE <joke x.text> END AS c FROM (SELECT *, <pos> AS p FROM reviews) AS x WHERE p ORDER BY id",
    "SELECT <pos> AS p, count(*) AS n FROM reviews WHERE <pos> OR stars = 1 GROUP BY p ORDER BY n",
    "SELECT id, <pos> AS p FROM reviews WHERE id IN (SELECT id FROM reviews WHERE <pos>) ORDER BY id",
    "SELECT id FROM reviews WHERE (SELECT <pos x.text> FROM one AS x) AND stars > 3 ORDER BY id",
    "SELECT id, if(c, 'y', 'n') AS y FROM (SELECT id, coalesce(<pos>, <joke>) AS c FROM reviews) AS x ORDER BY id",
    "SELECT id FROM (SELECT id, CASE WHEN stars > 2 THEN <pos> ELSE <joke> END AS c FROM reviews) AS x WHERE c ORDER BY id",
]


@pytest.mark.thorough
@pytest.mark.parametrize("statement", NESTED)
def test_a_condition_is_boolean_through_names_and_sub_queries(con, sql, statement):
    asked, over_labels, _ = both(statement)
    want = [plain(row) for row in sql.execute(over_labels).fetchall()]
    result = con.uql(asked)
    assert [plain(row) for row in result.fetchall()] == want
    assert not result.errors


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT id FROM (SELECT id, <pos>::VARCHAR AS c FROM reviews) AS x WHERE c",
        "SELECT id FROM (SELECT id, <rating>::INTEGER AS c FROM reviews) AS x WHERE c",
        "SELECT id FROM (SELECT id, upper(<name>) AS c FROM reviews) AS x WHERE NOT c",
        "SELECT id FROM (SELECT id, <topic>::ENUM('plot', 'music') AS c FROM reviews) AS x WHERE c AND id > 1",
        "SELECT id FROM (SELECT id, <pos>::VARCHAR AS c FROM reviews UNION ALL SELECT id, film FROM reviews) AS x WHERE c",
        "SELECT id FROM (SELECT id, <pos> AS c FROM reviews UNION ALL SELECT id, film FROM reviews) AS x WHERE c",
        "SELECT id FROM reviews WHERE <rating>::INTEGER",
        "SELECT id FROM reviews WHERE <rating> + 1",
        "SELECT id FROM reviews WHERE upper(<name>)",
        "SELECT id FROM reviews WHERE <name>::VARCHAR OR stars = 1",
        "SELECT id, <pos>::DATE AS n FROM reviews WHERE <pos>",
        "SELECT id FROM reviews WHERE <pos> AND <pos> LIKE 'y%'",
    ],
)
def test_what_cannot_be_settled_is_said_at_its_place(con, statement):
    with pytest.raises(UQLError) as error:
        con.uql(both(statement)[0]).fetchall()
    assert error.value.code == "UQL206"
    assert error.value.start >= 0
    assert error.value.help


def test_a_column_of_the_users_is_a_condition_as_in_duckdb(con, sql):
    for words in ("'yes'", "'no'", "CASE WHEN id < 9 THEN 'true' END"):
        asked, over_labels, _ = both(
            f"SELECT id FROM (SELECT *, {words} AS w FROM reviews) AS r WHERE w AND <pos r.text> ORDER BY id"
        )
        assert con.uql(asked).fetchall() == sql.execute(over_labels).fetchall()
    with pytest.raises(UQLError, match="BOOL"):
        con.uql(both("SELECT id FROM reviews WHERE film AND <pos>")[0]).fetchall()
    with pytest.raises(UQLError, match="BOOL"):
        con.uql(both("SELECT id FROM reviews WHERE <pos> OR film")[0]).fetchall()


class Shapes:
    """Random nestings of sub-queries whose columns a and b are texts, and a condition over them outside."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def statement(self) -> str:
        source, names = self._source(self.rng.randint(1, 3))
        return f"SELECT id FROM {source} WHERE {self._condition(names, 2)} ORDER BY id"

    def _source(self, depth: int) -> tuple[str, list[str]]:
        names = self.rng.sample(["c", "d", "film", "stars", "p"], 2)
        if depth == 0:
            texts = self.rng.sample(["<pos>", "<joke>", "<plot>"], 2)
            return f"(SELECT id, {texts[0]} AS {names[0]}, {texts[1]} AS {names[1]} FROM reviews) AS q", names
        kind = self.rng.random()
        inner, given = self._source(depth - 1)
        items = f"id, {given[0]} AS {names[0]}, {self._value(given)} AS {names[1]}"
        if kind < 0.3:
            other, more = self._source(0)
            second = f"SELECT id, {more[0]}, {more[1]} FROM {other}"
            op = self.rng.choice(("UNION ALL", "UNION", "EXCEPT"))
            return f"(SELECT {items} FROM {inner} {op} {second}) AS q", names
        if kind < 0.5:
            return f"(WITH w AS (SELECT {items} FROM {inner}) SELECT * FROM w) AS q", names
        if kind < 0.7:
            return f"(SELECT {items} FROM {inner} WHERE {self._condition(given, 1)}) AS q", names
        return f"(SELECT {items} FROM {inner}) AS q", names

    def _value(self, names: list[str]) -> str:
        one, two = names
        return self.rng.choice((two, f"coalesce({one}, {two})", f"CASE WHEN id > 9 THEN {one} ELSE {two} END"))

    def _condition(self, names: list[str], depth: int) -> str:
        if depth == 0:
            return self.rng.choice((*names, f"NOT {names[0]}", f"{names[1]} IS TRUE", f"{names[0]} = true", "id < 20"))
        one, two = self._condition(names, depth - 1), self._condition(names, depth - 1)
        return self.rng.choice((f"({one} AND {two})", f"({one} OR {two})", f"CASE WHEN {one} THEN {two} END", one))


def check(con, sql, seeds):
    for seed in seeds:
        asked, over_labels, _ = both(Shapes(seed).statement())
        want = sql.execute(over_labels).fetchall()
        assert con.uql(asked).fetchall() == want, (seed, asked)


def test_random_nestings_give_the_rows_of_the_labels(con, sql):
    check(con, sql, range(12))


@pytest.mark.slow
def test_many_random_nestings_give_the_rows_of_the_labels(con, sql):
    check(con, sql, range(100, 400))


@pytest.mark.parametrize("test", ["IS NULL", "IS NOT NULL", "ISNULL", "IS UNKNOWN"])
def test_whether_a_statement_has_an_answer_is_known_where_it_was_a_condition(test):
    con = uql.connect(model=HashModel(), ledger=":memory:")
    con.execute("CREATE TABLE notes AS SELECT i AS id, 'note ' || i AS body FROM range(20) r(i)")
    con.uql('SELECT id FROM notes WHERE "it is urgent" WITH (exact)').fetchall()
    found = con.uql(f'SELECT id FROM notes WHERE "it is urgent" {test} WITH (exact)')
    assert len(found.fetchall()) == (20 if "NOT" in test else 0)
    assert found.cost.calls == 0


@pytest.mark.parametrize(
    "test", ["<pos> IS DISTINCT FROM <joke>", "<pos> = PROMPT <joke>", "(NOT <pos>) <> (NOT <joke>)"]
)
def test_statements_that_are_compared_are_conditions(con, test):
    plan = con.uql(f"EXPLAIN SELECT id FROM reviews WHERE {both(test)[0]}").fetchall()
    assert sum("condition BOOLEAN" in line for (line,) in plan) == 2, plan


def test_whether_a_value_is_stated_is_no_condition():
    con = uql.connect(model=HashModel(), ledger=":memory:")
    con.execute("CREATE TABLE notes AS SELECT i AS id, 'note ' || i AS body FROM range(20) r(i)")
    shown = con.uql('SELECT id FROM notes WHERE "the amount" IS NULL').explain()
    assert "extract VARCHAR" in str(shown)
