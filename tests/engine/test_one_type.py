"""One text that is needed with several types is asked once, with the widest, and cast in each place."""

from __future__ import annotations

import pyarrow as pa
import pytest
from labels import both, plain
from row_model import RowModel

import uql
from uql.base.errors import BindError
from uql.llm.providers.base import Answer, Capabilities, Limits, Price
from uql.llm.questions import Extract


class Amounts(RowModel):
    """States the amount as the type that is asked for."""

    name, is_local = "amounts", True
    limits, price, capabilities = Limits(concurrency=8), Price(0, 0), Capabilities()

    def __init__(self):
        self.types = []

    def _one(self, question, row):
        assert isinstance(question, Extract)
        self.types.append(question.type)
        return Answer(
            {"DOUBLE": 12.5, "INTEGER": 12, "DATE": "2024-03-01", "VARCHAR[]": ["oak", "ash"]}.get(
                question.type, "12.5"
            )
        )


def asked(query):
    model = Amounts()
    con = uql.connect(model=model, ledger=":memory:", budget="all")
    con.session.duck.register("rows_", pa.table({"body": ["a bill of 12.50 that was sent to the customer"]}))
    con.session.duck.execute("CREATE TABLE bills AS SELECT * FROM rows_")
    return con.uql(query).fetchall(), model.types


@pytest.mark.parametrize(
    ("items", "rows", "types"),
    [
        ('"amount" / 1', [(12.5,)], ["DOUBLE"]),
        ('"amount" / 1, "amount"::INTEGER', [(12.5, 12)], ["DOUBLE"]),
        ('"amount"::INTEGER, "amount" / 1', [(12, 12.5)], ["DOUBLE"]),
        ('"amount"::INTEGER, "amount"::DOUBLE', [(12, 12.5)], ["DOUBLE"]),
        ('"amount"::INTEGER, "amount"::VARCHAR', [(13, "12.5")], ["VARCHAR"]),
        ('"amount"::INTEGER, "amount"', [(12, 12)], ["INTEGER"]),
        ('sum("amount"), max("amount"::INTEGER)', [(12.5, 12)], ["DOUBLE"]),
        ('"the day"::DATE, "the day"::VARCHAR', [(None, "12.5")], ["VARCHAR"]),
    ],
)
def test_it_is_asked_once_with_the_widest_type_and_cast_in_each_place(items, rows, types):
    found, said = asked(f"SELECT {items} FROM bills")
    assert [tuple(plain(v) for v in row) for row in found] == [tuple(plain(v) for v in row) for row in rows]
    assert said == types


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ('WITH a AS (SELECT "amount"::INTEGER AS n FROM bills) SELECT n, "amount" / 1 FROM a, bills', [(12, 12.5)]),
        ('SELECT "amount"::INTEGER AS n FROM bills UNION ALL SELECT "amount"::DOUBLE FROM bills', [(12,), (12.5,)]),
        ('SELECT "amount" / 1 FROM bills WHERE (SELECT max("amount"::INTEGER) FROM bills) = 12', [(12.5,)]),
    ],
)
def test_it_is_asked_once_over_sub_queries_too(query, rows):
    found, said = asked(query)
    assert [tuple(plain(v) for v in row) for row in found] == [tuple(plain(v) for v in row) for row in rows]
    assert said == ["DOUBLE"]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT id, <rating> / 4 AS a, <rating>::INTEGER AS b FROM reviews WHERE <rating> > 3 ORDER BY id",
        "SELECT id, <rating>::VARCHAR LIKE '1%' AS a, <rating>::DOUBLE AS b FROM reviews ORDER BY id",
        "SELECT <rating>::INTEGER AS k, count(*), sum(<rating>) FROM reviews GROUP BY k ORDER BY k",
        "SELECT id, <written>::DATE AS d FROM reviews WHERE <written>::DATE > DATE '2024-01-05' ORDER BY id",
    ],
)
def test_the_rows_are_those_of_sql_over_the_labels(labels, statement):
    query, over_labels, _ = both(statement)
    want = [plain(row) for row in labels.truth.execute(over_labels).fetchall()]
    assert [plain(row) for row in labels.uql(budget="all").uql(query).fetchall()] == want


@pytest.mark.parametrize(
    ("item", "row", "type"),
    [
        ('"the parts"[1]', ("oak",), "VARCHAR[]"),
        ('"the parts"[-1]', ("ash",), "VARCHAR[]"),
        ('"the parts"[1:2]', ("12",), "VARCHAR"),  # a slice of a text is a text
        ('("the parts"::VARCHAR[])[2]', ("ash",), "VARCHAR[]"),
    ],
)
def test_a_text_under_an_index_is_a_list(item, row, type):
    assert asked(f"SELECT {item} AS p FROM bills") == ([row], [type])


@pytest.mark.parametrize(
    ("query", "rows", "type"),
    [
        ('SELECT sum(a) FROM (SELECT "amount" AS a FROM bills)', [(12.5,)], "DOUBLE"),
        ('SELECT max(a) FROM (SELECT "amount" AS a FROM bills)', [(12.5,)], "DOUBLE"),
        ('WITH b AS (SELECT "amount" AS a FROM bills) SELECT a FROM b WHERE a > 5', [(12.5,)], "DOUBLE"),
        (
            'WITH b AS (SELECT "amount" AS a FROM bills), c AS (SELECT a FROM b) SELECT a + 1 FROM c',
            [(13.5,)],
            "DOUBLE",
        ),
        ('SELECT a FROM (SELECT "amount" AS a FROM bills) WHERE a BETWEEN 5 AND 20', [(12.5,)], "DOUBLE"),
        ("SELECT d > DATE '2024-02-01' FROM (SELECT \"the day\" AS d FROM bills)", [(True,)], "DATE"),
        ("SELECT a < 'x' FROM (SELECT \"amount\" AS a FROM bills)", [(True,)], "VARCHAR"),
        ("SELECT w < a FROM (SELECT 'a word' AS w, \"amount\" AS a FROM bills)", [(False,)], "VARCHAR"),
    ],
)
def test_a_text_has_the_type_that_a_name_of_it_needs(query, rows, type):
    found, said = asked(query)
    assert [tuple(plain(v) for v in row) for row in found] == [tuple(plain(v) for v in row) for row in rows]
    assert said == [type]


def test_two_texts_without_a_type_are_not_compared_by_their_letters():
    query = 'SELECT * FROM (SELECT "amount" AS a, "the tax" AS t FROM bills) WHERE a > t'
    with pytest.raises(BindError) as error:
        asked(query)
    assert error.value.code == "UQL206"
    assert '"amount"::DOUBLE' in error.value.help
    assert asked(query.replace('"amount"', '"amount"::DOUBLE').replace('"the tax"', '"the tax"::DOUBLE'))[0] == []
