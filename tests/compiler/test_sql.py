"""Expressions and bound queries as SQL: DuckDB gives for our text what it gives for the user's."""

from __future__ import annotations

import duckdb
import pytest

from uql.base.errors import PlanError
from uql.compiler.binder import bind
from uql.compiler.parser import parse
from uql.compiler.sql import expression, flat_column, query_sql, quote, type_sql
from uql.compiler.syntax import Binary, Column, Number, TypeName, Unary
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.operators import CONDITION
from uql.sources.catalog import Catalog

TABLES = '''
CREATE TABLE t AS SELECT i AS a, i % 3 AS b, CASE WHEN i % 4 = 0 THEN NULL ELSE 'name ' || i END AS s,
    DATE '2024-01-01' + i::INTEGER AS d, i / 7 AS x FROM range(30) r(i);
CREATE TABLE u AS SELECT i * 2 AS a, 'u' || i AS "odd ""name""" FROM range(10) r(i);
'''
QUERIES = '''
SELECT a, b + 2 * a - -3 AS c, a / 2 AS q, a // 2 AS w, a % 2 AS m, a / 0 AS z FROM t WHERE a < 5 ORDER BY a
SELECT a - (b - 1) AS x, (a + b) * 2 AS y, -(-a) AS z, NOT (a > 3) AND b = 1 AS n FROM t ORDER BY a
SELECT a FROM t WHERE NOT (s LIKE 'name 1%') AND s IS NOT NULL AND a NOT IN (1, 2, 3) AND a NOT BETWEEN 5 AND 7 ORDER BY a
SELECT a FROM t WHERE (s IS NULL) IS NOT TRUE AND s IS DISTINCT FROM 'name 1' ORDER BY a DESC LIMIT 4 OFFSET 2
SELECT CASE b WHEN 0 THEN 'no' WHEN 1 THEN 'one' ELSE 'it''s' END AS k, COUNT(*) AS n FROM t GROUP BY k ORDER BY k
SELECT b, SUM(a) AS n, COUNT(DISTINCT s) AS k, string_agg(s, ', ' ORDER BY a DESC) AS l FROM t GROUP BY b HAVING SUM(a) > 1 ORDER BY n
SELECT b, SUM(a) FILTER (WHERE a > 5) AS n FROM t GROUP BY b ORDER BY 1 DESC
SELECT a, SUM(a) OVER (PARTITION BY b ORDER BY a) AS run, row_number() OVER (ORDER BY a DESC) AS r FROM t ORDER BY a
SELECT CAST(x AS INTEGER) AS i, x::DECIMAL(10,2) AS d, TRY_CAST(s AS INTEGER) AS n, [a, b] AS l FROM t ORDER BY a
SELECT d + INTERVAL '1 day' AS e, d > DATE '2024-01-10' AS f FROM t ORDER BY d
SELECT t.a, u."odd ""name""" AS o FROM t LEFT JOIN u ON t.a = u.a ORDER BY t.a
SELECT t.a FROM t SEMI JOIN u ON t.a = u.a ORDER BY 1
SELECT t.a FROM t ANTI JOIN u USING (a) ORDER BY 1
SELECT a, s FROM t FULL JOIN u USING (a) ORDER BY a, s
SELECT x.a, y.a AS b, z.a AS c FROM t x JOIN u y ON x.a = y.a JOIN t z ON z.a = y.a ORDER BY 1
SELECT x.a FROM t x CROSS JOIN (SELECT 1 AS one UNION ALL SELECT 2) y ORDER BY x.a, one
SELECT a FROM t WHERE a IN (SELECT a FROM u) AND EXISTS (SELECT 1 FROM u WHERE u.a = t.a + 2) ORDER BY a
SELECT a, (SELECT MAX(a) FROM u) AS m FROM t WHERE a > (SELECT AVG(a) FROM u) ORDER BY a
WITH c AS (SELECT a, b FROM t WHERE a < 9), e (p) AS (SELECT b FROM c) SELECT p, COUNT(*) AS n FROM e GROUP BY p ORDER BY p
SELECT DISTINCT b FROM t ORDER BY b
SELECT a FROM t WHERE a < 3 UNION SELECT a FROM u WHERE a < 5 ORDER BY a
(SELECT a FROM t ORDER BY a DESC LIMIT 2) UNION ALL SELECT a FROM u WHERE a < 3 ORDER BY a
SELECT s || '-' || b AS z, upper(s) AS u, coalesce(s, 'none') AS c FROM t ORDER BY a NULLS FIRST
SELECT s FROM t ORDER BY s NULLS FIRST, a DESC
'''.strip().splitlines()


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    connection = duckdb.connect()
    connection.execute(TABLES)
    return Catalog(connection)


@pytest.mark.parametrize("text", QUERIES)
def test_our_sql_gives_what_the_users_sql_gives(catalog: Catalog, text: str) -> None:
    statement = bind(parse(text), catalog, text=text)
    ours = catalog.cursor.execute(query_sql(statement.query))
    names = [column[0] for column in ours.description or []]
    rows = ours.fetchall()
    types = [type for _, type in catalog.describe(query_sql(statement.query))]
    assert repr(rows) == repr(catalog.cursor.execute(text).fetchall())  # as text: NaN is not equal to itself
    assert [item.name for item in statement.query.items] == names
    assert [item.type for item in statement.query.items] == types


def test_a_column_above_a_materialised_relation_is_one_identifier() -> None:
    tree = Binary("=", Column("r", 'odd "one"'), Unary("-", Number("1")))
    assert expression(tree, flat_column) == '"r.odd ""one""" = (-(1))'


def test_a_virtual_column_has_no_sql_of_its_own() -> None:
    column = VirtualColumn(0, "is so", CONDITION, "BOOLEAN", (Column("t", "s"),))
    assert expression(Virtual(column)) == '"__v0"'
    catalog = Catalog(duckdb.connect())
    catalog.cursor.execute(TABLES)
    text = 'SELECT a FROM t WHERE "is so"'
    with pytest.raises(PlanError):
        query_sql(bind(parse(text), catalog, text=text).query)


def test_types_are_written_as_duckdb_reads_them() -> None:
    nested = TypeName(
        "STRUCT", fields=(("a b", TypeName("VARCHAR", dims=(None,))), ("e", TypeName("ENUM", labels=("it's",))))
    )
    sql = type_sql(nested)
    assert sql == """STRUCT("a b" VARCHAR[], "e" ENUM('it''s'))"""
    found = duckdb.connect().execute(f"SELECT typeof(CAST(NULL AS {sql}))").fetchone()
    assert found is not None and found[0].replace('"', "") == sql.replace('"', "")


@pytest.mark.parametrize("name", ["plain", 'with "quotes"', "select", "a.b", "é", " "])
def test_any_name_can_be_quoted(name: str) -> None:
    assert duckdb.connect().execute(f"SELECT 1 AS {quote(name)}").description[0][0] == name  # type: ignore[index]
