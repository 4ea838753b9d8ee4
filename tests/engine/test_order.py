"""ORDER BY "…": graded scores, then comparisons in both positions among the rows around the cut of LIMIT; ties are stable."""

from __future__ import annotations

import math
import re

import duckdb
import pytest
from hash_model import HashModel
from row_model import RowModel

import uql
from uql.base.errors import BudgetError
from uql.llm.providers.base import Answer, Capabilities, Limits, Price
from uql.llm.questions import Compare, Score


class Judge(RowModel):
    """Scores coarsely, in steps of five, and compares exactly: the number in the row's text is how much it is."""

    name, is_local = "judge", True
    limits, price, capabilities = Limits(concurrency=4), Price(0, 0), Capabilities()

    def __init__(self, biased: bool = False) -> None:
        self.biased = biased
        self.compared = self.scored = 0

    def _one(self, question, row):
        numbers = {c.table: int(c.value.split()[1]) for c in row.cells}
        if isinstance(question, Score):
            self.scored += 1
            return Answer(float(next(iter(numbers.values())) // 20))
        assert isinstance(question, Compare)
        self.compared += 1
        if self.biased:  # always the first shown
            return Answer(next(iter(numbers)))
        return Answer(max(numbers, key=lambda table: numbers[table]))


def connect(judge, n=100, **settings):
    con = uql.connect(model=judge, ledger=":memory:", **settings)
    con.sql(
        f"SELECT i AS id, 'number ' || ((i * 37) % {n}) || ' in a text that is long enough' AS text FROM range({n}) t(i)"
    ).create("notes")
    return con


@pytest.mark.parametrize(("direction", "best"), [("DESC", [99, 98, 97, 96, 95]), ("", [0, 1, 2, 3, 4])])
def test_comparisons_settle_what_coarse_scores_leave_open_near_the_cut(direction, best):
    judge = Judge()
    con = connect(judge, budget="all")
    found = con.uql(f'SELECT text FROM notes ORDER BY "how great the number is" {direction} LIMIT 5').fetchall()
    assert [int(text.split()[1]) for (text,) in found] == best
    assert judge.scored == 100
    assert 0 < judge.compared <= 2 * (20 + 20 * math.ceil(math.log2(5)))  # twenty rows have the score of the cut


def test_a_judge_that_prefers_a_position_leaves_the_order_of_the_scores(world):
    biased = Judge(biased=True)
    found = connect(biased, budget="all").uql(
        'SELECT id, text FROM notes ORDER BY "how great the number is" DESC, id LIMIT 5'
    )
    ids = [i for i, _ in found.fetchall()]
    assert ids == sorted(i for i in range(100) if (i * 37) % 100 >= 80)[:5]


def test_with_exact_labels_the_rows_are_those_of_sql_and_ties_are_stable(con, world):
    found = con.uql('SELECT id FROM reviews WHERE text IS NOT NULL ORDER BY "how angry the review is" DESC, id LIMIT 7')
    assert found.fetchall() == world.truth("SELECT id FROM r WHERE text IS NOT NULL ORDER BY anger DESC, id LIMIT 7")
    paged = con.uql(
        'SELECT id FROM reviews WHERE text IS NOT NULL ORDER BY "how angry the review is", id LIMIT 4 OFFSET 3'
    )
    assert paged.fetchall() == world.truth(
        "SELECT id FROM r WHERE text IS NOT NULL ORDER BY anger, id LIMIT 4 OFFSET 3"
    )


def test_a_note_says_where_the_order_is_by_scores_alone(world):
    whole = world.connect().uql('SELECT id FROM reviews ORDER BY "how angry the review is" DESC, id')
    assert whole.fetchall() == world.truth(
        "SELECT id FROM r ORDER BY CASE WHEN text IS NOT NULL THEN anger END DESC NULLS LAST, id"
    )
    assert any("by scores alone" in note for note in whole.notes)
    n = world.truth("SELECT COUNT(*) FROM r WHERE text IS NOT NULL")[0][0]
    query = 'SELECT id FROM reviews WHERE text IS NOT NULL ORDER BY "how angry the review is" DESC, id LIMIT 5'
    short = world.connect(budget=n).uql(query)
    assert short.fetchall() == world.truth("SELECT id FROM r WHERE text IS NOT NULL ORDER BY anger DESC, id LIMIT 5")
    assert short.cost.calls == n
    assert any("no comparison" in note for note in short.notes)
    some = world.connect(budget=n + 5).uql(query)
    assert len(some.fetchall()) == 5
    assert some.cost.calls <= n + 5
    assert any("then the budget ended" in note for note in some.notes)


def test_rows_without_a_score_come_last_and_are_compared_with_none(con, world):
    found = con.uql('SELECT id FROM reviews ORDER BY "how angry the review is" DESC, id LIMIT 58').fetchall()
    truth = world.truth(
        "SELECT id FROM r ORDER BY CASE WHEN text IS NOT NULL THEN anger END DESC NULLS LAST, id LIMIT 58"
    )
    assert {i for (i,) in found} == {i for (i,) in truth}
    assert found[-1] == truth[-1]


def test_scores_that_do_not_fit_in_the_budget_send_nothing(large):
    result = large.connect().uql('SELECT id FROM reviews ORDER BY "how angry the review is" LIMIT 3 WITH (budget = 50)')
    with pytest.raises(BudgetError):
        result.fetchall()


@pytest.mark.parametrize(
    ("query", "warned"),
    [
        ('SELECT id, "how many" AS n FROM t ORDER BY n DESC LIMIT 2', True),
        ('SELECT id, "how many" AS n FROM t ORDER BY n', True),
        ('SELECT id, "how many" AS n, row_number() OVER (ORDER BY n) AS k FROM t', True),
        ('SELECT id, "how many"::DOUBLE AS n FROM t ORDER BY n DESC', False),
        ('SELECT id, "how many" AS n FROM t ORDER BY id', False),
        ('SELECT id, "who" AS n FROM t ORDER BY n', False),
    ],
)
def test_numbers_in_the_order_of_their_letters_come_with_a_warning(query, warned):
    duck = duckdb.connect()
    duck.execute(
        "CREATE TABLE t AS SELECT id, 'a text that says something, number ' || id AS text FROM range(12) r(id)"
    )

    def answer(question, row):
        number = int(row.cells[0].value.split()[-1])
        value = 7.0 * number if question.type == "DOUBLE" else f"{7 * number}"
        return value if question.text == "how many" else f"name {number}"

    result = uql.attach(duck, model=HashModel(answers=answer), ledger=":memory:").uql(query)
    assert len(result.fetchall()) > 1
    assert any("::DOUBLE" in warning for warning in result.warnings) == warned


ORDERS = [
    'SELECT id, x FROM notes WHERE "it is so" ORDER BY x, id',
    'SELECT id, x FROM notes WHERE "it is so" ORDER BY x ASC, id',
    'SELECT id, x FROM notes WHERE "it is so" ORDER BY x DESC, id NULLS LAST',
    'SELECT id, x FROM notes WHERE "it is so" ORDER BY ALL',
    'SELECT DISTINCT x FROM notes WHERE "it is so" ORDER BY x LIMIT 2',
    'SELECT x, count(*) AS n FROM notes WHERE "it is so" GROUP BY x ORDER BY x',
    'SELECT id, row_number() OVER (ORDER BY x, id) AS r FROM notes WHERE "it is so" ORDER BY id',
    'SELECT id FROM notes WHERE "it is so" QUALIFY rank() OVER (ORDER BY x) = 1 ORDER BY id',
    "SELECT string_agg(id, ',' ORDER BY x, id) AS r FROM notes WHERE \"it is so\"",
    'SELECT x FROM notes WHERE "it is so" UNION SELECT 7 ORDER BY x',
    'SELECT * FROM (SELECT x, id FROM notes WHERE "it is so" ORDER BY x, id LIMIT 3) ORDER BY 1, 2',
    "SELECT id, x FROM notes ORDER BY x, id LIMIT 4",
]


@pytest.mark.thorough
@pytest.mark.one_in(2)
@pytest.mark.parametrize(("order", "nulls"), [("desc", "nulls_last"), ("asc", "sqlite"), ("desc", "postgres")])
@pytest.mark.parametrize("own", [True, False])
def test_default_orders_of_the_users_connection_are_followed(order: str, nulls: str, own: bool) -> None:
    duck, plain = duckdb.connect(), duckdb.connect()
    con = (uql.connect if own else lambda **given: uql.attach(duck, **given))(
        model=HashModel({"it is so": 1.0, "{b.text} is so": 1.0}), ledger=":memory:"
    )
    for execute in (con.execute if own else duck.execute, plain.execute):
        execute(
            "CREATE TABLE notes AS SELECT range AS id, CASE WHEN range % 4 <> 0 THEN range % 3 END AS x, "
            "'text number ' || range AS text FROM range(9)"
        )
        execute(f"SET default_order = '{order}'")
        execute(f"SET default_null_order = '{nulls}'")
    for statement in ORDERS:
        assert con.uql(statement).fetchall() == plain.execute(statement.replace('"it is so"', "true")).fetchall()
    for execute in (con.execute if own else duck.execute, plain.execute):
        execute("CREATE VIEW best AS FROM notes ORDER BY x, id LIMIT 4")
        execute("CREATE MACRO few(n) AS TABLE FROM notes ORDER BY x, id LIMIT 2")
    for source in (
        "best",
        "(SELECT * FROM best WHERE id > 1)",
        "few(1)",
        "(SELECT id FROM few(1) UNION ALL SELECT id FROM best)",
    ):
        for more in ("", " ORDER BY id ASC LIMIT 2"):
            statement = f'SELECT id FROM {source} AS s WHERE "it is so" USING (id){more}'
            truth = plain.execute(statement.replace('"it is so" USING (id)', "true")).fetchall()
            assert sorted(con.uql(statement).fetchall()) == sorted(truth)
    for condition in (
        '"it is so" USING (id) AND id IN (SELECT id FROM best)',
        'id IN (SELECT id FROM best) OR NOT "it is so" USING (id)',
        '"it is so" USING (id) AND EXISTS (SELECT 1 FROM best AS b WHERE b.id = s.id)',
        'NOT "it is so" USING (id) OR EXISTS (SELECT 1 FROM few(1) AS b WHERE b.id = s.id)',
        'EXISTS (SELECT 1 FROM notes AS b WHERE b.id = s.id AND b.id IN (SELECT id FROM best) AND "{b.text} is so")',
    ):
        for items in ("id", "id IN (SELECT id FROM few(1)), (SELECT sum(id) FROM best)"):
            statement = f"SELECT {items} FROM notes AS s WHERE {condition} ORDER BY id IN (SELECT id FROM best), id"
            truth = plain.execute(re.sub(r'"[^"]*"( USING \(id\))?', "true", statement)).fetchall()
            assert con.uql(statement).fetchall() == truth, statement
    every = "SELECT x FROM notes ORDER BY x"
    assert con.execute(every).fetchall() == plain.execute(every).fetchall()
    con.close()
