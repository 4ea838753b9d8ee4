"""Whatever rows there are (none, NULLs, duplicates, ties), the answer with every row asked is that of DuckDB over the labels."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from row_model import RowModel

import uql
from uql.llm.providers.base import Answer, Capabilities, Limits, Price
from uql.llm.questions import Choice, Compare, Extract, Predicate, Score

MOODS, TOPICS = ("good", "bad"), ("plot", "music")
QUICK = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
FEW = settings(QUICK, max_examples=5)  # where an example is several queries
DUCK = duckdb.connect()  # cursors of it are given to each example: to open a database takes longer than its query
SCHEMA = pa.schema([("id", pa.int64()), ("stars", pa.int64()), ("text", pa.string())])


class Reader(RowModel):
    """Reads the answers from the text: its mood, its topic, its number."""

    name, is_local = "reader", True
    limits, price, capabilities = Limits(concurrency=8), Price(0, 0), Capabilities()

    def _one(self, question, row):
        sides = [cell.value.split() for cell in row.cells]
        mood, topic, number = sides[0][0], sides[0][1], int(sides[0][2])
        match question:
            case Predicate(text="it is good"):
                return Answer(mood == "good", float(mood == "good"))
            case Predicate(text="it is about the plot"):
                return Answer(topic == "plot", float(topic == "plot"))
            case Predicate():
                return Answer(mood == sides[1][0], float(mood == sides[1][0]))
            case Choice():
                return Answer(topic)
            case Score():
                return Answer(float(number))
            case Compare():
                numbers = {cell.table: int(cell.value.split()[2]) for cell in row.cells}
                return Answer(max(numbers, key=lambda table: numbers[table]))
            case Extract(text="the topic"):
                return Answer(topic)
            case Extract():
                return Answer(number)
        raise AssertionError(question)


texts = st.one_of(
    st.none(),
    st.builds(
        lambda m, t, n: f"{m} {t} {n} and some more words, to be long enough",
        st.sampled_from(MOODS),
        st.sampled_from(TOPICS),
        st.integers(0, 3),
    ),
)
tables = st.lists(st.tuples(st.one_of(st.none(), st.integers(1, 3)), texts), max_size=12)

# A leaf in UQL and over the labels.
LEAVES = (
    ('"it is good"', "good"),
    ('"it is about the plot"', "topic = 'plot'"),
    ("\"the topic\" IN ('plot')", "topic = 'plot'"),
    ('"the number"::INTEGER > 1', "number > 1"),
    ("stars > 1", "stars > 1"),
    ("text IS NULL", "text IS NULL"),
)
conditions = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        inner.map(lambda c: (f"NOT ({c[0]})", f"NOT ({c[1]})")),
        st.tuples(inner, inner, st.sampled_from(["AND", "OR"])).map(
            lambda t: (f"({t[0][0]} {t[2]} {t[1][0]})", f"({t[0][1]} {t[2]} {t[1][1]})")
        ),
    ),
    max_leaves=4,
)


def both(rows):
    """A connection over the rows, and DuckDB over the rows with their labels."""
    table = pa.Table.from_pylist([{"id": i, "stars": s, "text": t} for i, (s, t) in enumerate(rows)], schema=SCHEMA)
    con = uql.attach(DUCK.cursor(), model=Reader(), ledger=":memory:", budget="all")
    con.session.duck.execute("CREATE OR REPLACE TABLE notes (id BIGINT, stars BIGINT, text VARCHAR)")
    con.session.duck.execute("COMMENT ON COLUMN notes.text IS 'text'")
    plain = DUCK.cursor()
    plain.register("rows_", table)
    con.session.duck.register("rows_", table)
    con.session.duck.execute("INSERT INTO notes SELECT * FROM rows_")
    plain.execute(
        "CREATE TEMP TABLE r AS SELECT *, split_part(text, ' ', 1) = 'good' AS good, split_part(text, ' ', 2) AS topic, "
        "CAST(split_part(text, ' ', 3) AS INTEGER) AS number FROM rows_"
    )
    return con, plain


def same(rows, query, sql):
    con, plain = both(rows)
    with con, plain:
        result = con.uql(query)
        assert result.fetchall() == plain.execute(sql).fetchall()
        assert not result.errors


@given(tables, conditions)
@QUICK
def test_the_rows_that_pass_are_those_of_sql(rows, condition):
    uql_text, sql = condition
    same(rows, f"SELECT id FROM notes WHERE {uql_text} ORDER BY id", f"SELECT id FROM r WHERE {sql} ORDER BY id")


@given(tables, conditions)
@QUICK
def test_aggregates_and_groups_are_those_of_sql(rows, condition):
    uql_text, sql = condition
    items = "COUNT(*) AS n, SUM(stars) AS s, MAX(stars) AS m"
    same(rows, f"SELECT {items} FROM notes WHERE {uql_text}", f"SELECT {items} FROM r WHERE {sql}")
    same(
        rows,
        f'SELECT stars, {items}, AVG("the number"::INTEGER) AS a FROM notes WHERE {uql_text} GROUP BY stars ORDER BY stars NULLS FIRST',
        f"SELECT stars, {items}, AVG(number) AS a FROM r WHERE {sql} GROUP BY stars ORDER BY stars NULLS FIRST",
    )


@given(tables, conditions, st.integers(0, 4), st.integers(0, 2))
@QUICK
def test_limit_after_order_cuts_ties_as_sql_does(rows, condition, k, offset):
    uql_text, sql = condition
    tail = f"ORDER BY stars DESC NULLS LAST, id LIMIT {k} OFFSET {offset}"
    same(rows, f"SELECT id, stars FROM notes WHERE {uql_text} {tail}", f"SELECT id, stars FROM r WHERE {sql} {tail}")


@given(tables, st.integers(1, 5))
@QUICK
def test_order_by_a_text_is_the_order_of_the_labels_with_stable_ties(rows, k):
    same(
        rows,
        f'SELECT id FROM notes ORDER BY "how great it is" DESC, id LIMIT {k}',
        f"SELECT id FROM r ORDER BY number DESC NULLS LAST, id LIMIT {k}",
    )


@given(tables)
@QUICK
def test_duplicates_are_kept_and_distinct_drops_them(rows):
    same(
        rows,
        'SELECT text, "the number"::INTEGER AS n FROM notes ORDER BY id',
        "SELECT text, number FROM r ORDER BY id",
    )
    same(
        rows,
        "SELECT DISTINCT \"the topic\"::ENUM('plot', 'music') AS t FROM notes ORDER BY t",
        "SELECT DISTINCT topic::ENUM('plot', 'music') AS t FROM r ORDER BY t NULLS LAST",
    )


@given(tables, st.sampled_from(["INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"]))
@QUICK
def test_joins_are_those_of_sql(rows, kind):
    shown = "a.id" if kind in ("SEMI", "ANTI") else "a.id, b.id AS other"
    order = "ORDER BY 1" if kind in ("SEMI", "ANTI") else "ORDER BY 1 NULLS LAST, 2 NULLS LAST"
    on = "a.stars = b.stars AND a.id <> b.id AND"
    same(
        rows,
        f'SELECT {shown} FROM notes AS a {kind} JOIN notes AS b ON {on} "they agree" {order}',
        f"SELECT {shown} FROM r AS a {kind} JOIN r AS b ON {on} a.good = b.good {order}",
    )


SUB_QUERIES = st.sampled_from(
    [
        "EXISTS (SELECT 1 FROM {t} AS b WHERE {on} {agree})",
        "NOT EXISTS (SELECT 1 FROM {t} AS b WHERE {on} {agree})",
        "a.stars IN (SELECT b.stars FROM {t} AS b WHERE {on} {agree})",
        "a.stars NOT IN (SELECT b.stars FROM {t} AS b WHERE {on} {agree})",
        "(SELECT COUNT(*) FROM {t} AS b WHERE {on} {agree}) > 1",
        "(SELECT MAX(b.stars) FROM {t} AS b WHERE {on} {agree}) = a.stars",
    ]
)


@given(tables, SUB_QUERIES, st.sampled_from(["a.stars = b.stars AND", "a.id < b.id AND", ""]), conditions)
@QUICK
def test_sub_queries_that_read_outer_rows_are_those_of_sql(rows, part, on, condition):
    uql_text, sql = condition
    asked = part.format(t="notes", on=on, agree='"{a.text} and {b.text} agree"')
    plain = part.format(t="r", on=on, agree="a.good = b.good")
    same(
        rows,
        f"SELECT a.id, {asked} AS x FROM notes AS a WHERE ({asked} OR a.stars = 1) AND {qualified(uql_text)} ORDER BY a.id",
        f"SELECT a.id, {plain} AS x FROM r AS a WHERE ({plain} OR a.stars = 1) AND {qualified(sql)} ORDER BY a.id",
    )


def qualified(condition):
    """The condition with its bare columns told apart from those of the sub-query."""
    for name in ("stars", "text"):
        condition = condition.replace(f"{name} >", f"a.{name} >").replace(f"{name} IS", f"a.{name} IS")
    return condition


@given(tables, conditions, st.sampled_from(["UNION", "UNION ALL"]))
@QUICK
def test_unions_and_group_keys_keep_duplicates_as_sql_does(rows, condition, union):
    uql_text, sql = condition
    same(
        rows,
        f"SELECT stars FROM notes WHERE {uql_text} {union} SELECT stars FROM notes ORDER BY ALL",
        f"SELECT stars FROM r WHERE {sql} {union} SELECT stars FROM r ORDER BY ALL NULLS LAST",
    )
    same(
        rows,
        "SELECT t, COUNT(*) AS n, COUNT(stars) AS k FROM notes GROUP BY \"the topic\"::ENUM('plot', 'music') AS t ORDER BY ALL",
        "SELECT topic::ENUM('plot', 'music') AS t, COUNT(*) AS n, COUNT(stars) AS k FROM r GROUP BY topic ORDER BY ALL NULLS LAST",
    )


@given(
    tables, st.integers(1, 5), st.integers(0, 2), st.sampled_from(["DESC", "ASC"]), st.sampled_from(["FIRST", "LAST"])
)
@QUICK
def test_rows_without_a_score_come_first_or_last_as_said_at_the_cut_of_limit(rows, k, offset, direction, nulls):
    tail = f"{direction} NULLS {nulls}, id LIMIT {k} OFFSET {offset}"
    same(rows, f'SELECT id FROM notes ORDER BY "how great it is" {tail}', f"SELECT id FROM r ORDER BY number {tail}")


ENUM = "ENUM('plot','music')"


@pytest.mark.thorough
@given(tables, conditions)
@FEW
def test_an_enum_sorts_groups_and_compares_as_declared(rows, condition):
    uql_text, sql = condition
    asked, label = f'"the topic"::{ENUM}', f"topic::{ENUM}"
    for items, tail in (
        ("{x} AS t, id", "ORDER BY t DESC NULLS LAST, id"),
        ("{x} AS t, COUNT(*) AS n", "GROUP BY t ORDER BY t"),
        ("MIN({x}) AS a, MAX({x}) AS b, COUNT(DISTINCT {x}) AS n", ""),
        ("id, row_number() OVER (ORDER BY {x}, id) AS k", "ORDER BY id"),
    ):
        same(
            rows,
            f"SELECT {items.format(x=asked)} FROM notes WHERE {uql_text} {tail}",
            f"SELECT {items.format(x=label)} FROM r WHERE {sql} {tail}",
        )


@given(
    tables,
    st.sampled_from(["<> 'plot'", "NOT IN ('plot', 'x')", "= 'plot' OR stars = 1", "LIKE 'm%'", "IN ('plot', 'x')"]),
)
@QUICK
def test_a_text_that_is_returned_keeps_its_value_whatever_it_is_compared_with(rows, test):
    same(
        rows,
        f"SELECT id, \"the topic\" AS t, CASE t WHEN 'plot' THEN 1 ELSE 0 END AS p FROM notes WHERE t {test} ORDER BY id",
        f"SELECT id, topic AS t, CASE topic WHEN 'plot' THEN 1 ELSE 0 END AS p FROM r WHERE topic {test} ORDER BY id",
    )


@given(
    tables, conditions, st.sampled_from(["0%", "10%", "50%", "99.5%", "100%", "(SELECT count(*) // 2 FROM {t})", "ALL"])
)
@FEW
def test_shares_and_counted_limits_are_those_of_sql(rows, condition, limit):
    uql_text, sql = condition
    for tail in (f"ORDER BY id LIMIT {limit}", f"ORDER BY stars, id LIMIT {limit} OFFSET 1"):
        same(
            rows,
            f"SELECT id, stars FROM notes WHERE {uql_text} {tail.format(t='notes')}",
            f"SELECT id, stars FROM r WHERE {sql} {tail.format(t='r')}",
        )
