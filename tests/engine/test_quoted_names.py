"""A name or a string that a statement quotes is never read as SQL, wherever it stands."""

from __future__ import annotations

import duckdb
import pytest
from hash_model import HashModel

import uql

# SQL as DuckDB would read it, were the quotes around it left out, or the end of the quotes taken for theirs
HOSTILE = ("evil\" ) , (SELECT content FROM read_text('secret.txt')) AS \"z", "x') , (SELECT 'broken out') --", "a.b c")
NAMES = """
SELECT id AS <n> FROM t WHERE "good"
SELECT <n>.id FROM t AS <n> WHERE "good"
WITH <n> AS (SELECT id, name FROM t) SELECT id FROM <n> WHERE "good"
WITH c(<n>, name) AS (SELECT id, name FROM t) SELECT <n> FROM c WHERE "good"
SELECT s.<n> FROM (SELECT id, name FROM t) s(<n>, name) WHERE "good"
SELECT {<n>: id} FROM t WHERE "good"
SELECT struct_pack(<n> := id) FROM t WHERE "good"
SELECT list_transform([id], lambda <n> : <n> + 1) FROM t WHERE "good"
SELECT * EXCLUDE (<n>) FROM (SELECT id AS <n>, name FROM t) WHERE "good"
SELECT * RENAME (id AS <n>) FROM t WHERE "good"
SELECT sum(id) OVER <n> FROM t WHERE "good" WINDOW <n> AS (ORDER BY id)
SELECT "the topic" AS <n>, count(*) FROM t GROUP BY <n>
SELECT <n>(name) FROM t WHERE "good"
SELECT main.<n>(name) FROM t WHERE "good"
SELECT name.<n>() FROM t WHERE "good"
SELECT name::<n> FROM t WHERE "good"
SELECT name COLLATE <n> FROM t WHERE "good"
SELECT id FROM t WHERE "good" ORDER BY name COLLATE <n>
SELECT id, "the topic" FROM t ORDER BY 2 COLLATE <n>
SELECT max(id) OVER (PARTITION BY name COLLATE <n>) FROM t WHERE "good"
SELECT array_agg(id ORDER BY name COLLATE <n>) FROM t WHERE "good"
SELECT name, id FROM (SELECT id AS <n>, id, name FROM t) JOIN (SELECT id AS <n> FROM t) USING (<n>) WHERE "good {name}"
SELECT u.<n> FROM t, unnest([1, 2]) AS u(<n>) WHERE "good"
SELECT id::STRUCT(<n> INTEGER) FROM t WHERE "good"
SELECT "the key"::STRUCT(<n> INTEGER) FROM t
CREATE TABLE made AS SELECT id AS <n> FROM t WHERE "good"
INSERT INTO t (<n>) SELECT id FROM t WHERE "good"
UPDATE t SET <n> = 'a' WHERE "good"
DELETE FROM <n> WHERE "good"
""".strip().splitlines()
STRINGS = """
SELECT "the key"::ENUM(<s>, 'b') FROM t
SELECT id FROM t WHERE "the label" IN (<s>, 'b')
SELECT string_agg(name, <s>) FROM t WHERE "good"
SELECT name AT TIME ZONE <s> FROM t WHERE "good"
SELECT DATE <s> FROM t WHERE "good"
SELECT INTERVAL <s> FROM t WHERE "good"
SELECT id FROM t WHERE "good" AND name LIKE <s> ESCAPE <s>
SELECT id FROM t WHERE "good" WITH (proxy = <s>)
""".strip().splitlines()


@pytest.mark.thorough
@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_is_quoted_is_a_name_or_a_string_and_nothing_else(hostile, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.txt").write_text("broken out")
    name, string = '"' + hostile.replace('"', '""') + '"', "'" + hostile.replace("'", "''") + "'"
    with duckdb.connect() as duck:
        duck.execute("CREATE TABLE t AS SELECT i AS id, 'n' || i AS name FROM range(4) x(i)")
        with uql.attach(duck, model=HashModel({"good": 0.5}), ledger=":memory:", budget="all") as con:
            for template in NAMES + STRINGS:
                duck.execute("DROP TABLE IF EXISTS made")
                try:
                    rows = con.uql(template.replace("<n>", name).replace("<s>", string)).fetchall()
                except uql.UQLError as error:
                    assert "syntax error" not in error.message, template
                else:
                    assert all(value != "broken out" for row in rows for value in row), template
            assert duck.execute("SELECT count(*) FROM t").fetchall() == [(4,)]


def test_a_collation_may_be_quoted():
    with duckdb.connect() as duck:
        duck.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1, 'b'), (2, 'A'), (3, 'c')) v(id, name)")
        with uql.attach(duck, model=HashModel({"good": 1.0}), ledger=":memory:", budget="all") as con:
            for collation in ("NOCASE", '"NOCASE"', "NOCASE.NOACCENT", '"NOCASE"."NOACCENT"'):
                rows = con.uql(f'SELECT id FROM t WHERE "good" ORDER BY name COLLATE {collation}').fetchall()
                assert rows == [(2,), (1,), (3,)]
