"""Of what a model wrote, only one harmless query passes; what passes runs apart, and is stopped at its limits."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest
from nl.guarded import run_sql

from uql.base.errors import GuardError
from uql.compiler.parser import parse
from uql.nl.guard.guard import check_sql, check_uql, sql_runner

TABLES = ["reviews", "films"]

HOSTILE_SQL = """
SELECT EXTRACT("year FROM id), (SELECT content FROM read_text('/etc/passwd')) AS z, abs(id" FROM id) FROM reviews
SELECT EXTRACT("year FROM id), (SELECT id FROM secrets) AS z, abs(id" FROM id) FROM reviews
SELECT * FROM unnest(range(10000000000)) AS x(n)
SELECT * FROM films f, LATERAL (SELECT * FROM read_text('/etc/passwd')) AS x
SELECT list_transform([1], x -> getenv('HOME'))
SELECT * FROM (VALUES (current_setting('home_directory'))) AS x(a)
DROP TABLE reviews
DROP SCHEMA main CASCADE
DROP VIEW v
CREATE TABLE x AS SELECT 1
CREATE OR REPLACE TABLE reviews AS SELECT 1
CREATE VIEW v AS SELECT 1
CREATE MACRO f(x) AS x
CREATE FUNCTION f(x) AS x
CREATE SECRET s (TYPE S3)
CREATE SCHEMA s
CREATE SEQUENCE s
CREATE TYPE t AS ENUM ('a')
CREATE INDEX i ON reviews (id)
ALTER TABLE reviews DROP COLUMN id
ALTER TABLE reviews RENAME TO x
INSERT INTO reviews VALUES (1)
INSERT INTO reviews SELECT * FROM films
UPDATE reviews SET id = 1
DELETE FROM reviews
TRUNCATE reviews
MERGE INTO reviews USING films ON true WHEN MATCHED THEN DELETE
COPY reviews TO 'out.csv'
COPY reviews FROM 'in.csv'
COPY (SELECT 1) TO '/var/x.parquet'
EXPORT DATABASE 'x'
IMPORT DATABASE 'x'
ATTACH 'other.duckdb'
ATTACH 'postgres:dbname=x' AS p
DETACH memory
USE memory
INSTALL httpfs
LOAD httpfs
FORCE INSTALL httpfs
PRAGMA database_list
PRAGMA enable_profiling
SET memory_limit = '100GB'
SET enable_external_access = true
RESET memory_limit
CALL pragma_version()
CHECKPOINT
VACUUM
ANALYZE
BEGIN
COMMIT
ROLLBACK
EXPLAIN SELECT 1
EXPLAIN ANALYZE SELECT 1
DESCRIBE reviews
SHOW TABLES
SUMMARIZE reviews
PREPARE p AS SELECT 1
EXECUTE p
DEALLOCATE p
COMMENT ON TABLE reviews IS 'x'
GRANT ALL ON reviews TO x
VALUES (1)
PIVOT reviews ON film USING count(*)
UNPIVOT reviews ON id INTO NAME n VALUE v
SELECT 1; DROP TABLE reviews
SELECT 1; SELECT 2
SELECT 1 /* x */; DELETE FROM reviews
SELECT * INTO x FROM reviews
SELECT * FROM reviews FOR UPDATE
WITH x AS (DELETE FROM reviews RETURNING *) SELECT * FROM x
WITH x AS (INSERT INTO reviews VALUES (1) RETURNING *) SELECT * FROM x
WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM x) SELECT * FROM x
SELECT * FROM read_csv('/etc/passwd')
SELECT * FROM read_csv_auto('/etc/passwd')
SELECT * FROM read_text('/etc/passwd')
SELECT * FROM read_blob('/etc/passwd')
SELECT * FROM read_parquet('s3://bucket/x.parquet')
SELECT * FROM parquet_scan('x.parquet')
SELECT * FROM read_json('https://example.com/x.json')
SELECT * FROM read_ndjson_objects('x')
SELECT * FROM glob('/**')
SELECT * FROM sniff_csv('x')
SELECT * FROM sqlite_scan('x.db', 't')
SELECT * FROM postgres_scan('x', 'y', 'z')
SELECT * FROM '/etc/passwd'
SELECT * FROM "a.csv"
SELECT * FROM x.y
SELECT * FROM 'reviews.csv'
SELECT * FROM "/etc/passwd"
SELECT * FROM "https://example.com/x.parquet"
SELECT * FROM reviews JOIN 'x.parquet' AS p ON true
SELECT * FROM (SELECT * FROM read_csv('/etc/passwd'))
SELECT * FROM reviews WHERE id IN (SELECT id FROM read_csv('x'))
SELECT (SELECT content FROM read_text('/etc/passwd'))
SELECT * FROM range(1000000000)
SELECT * FROM generate_series(1, 1000000000)
SELECT unnest(range(1000000000))
SELECT unnest(generate_series(1, 1000000000))
SELECT range(1000000000)
SELECT repeat('x', 1000000000)
SELECT lpad('x', 1000000000, 'x')
SELECT rpad('x', 1000000000, 'x')
SELECT * FROM repeat_row('x', num_rows = 1000000000)
SELECT * FROM duckdb_tables()
SELECT * FROM duckdb_secrets()
SELECT * FROM duckdb_settings
SELECT * FROM pragma_table_info('reviews')
SELECT * FROM information_schema.tables
SELECT * FROM pg_catalog.pg_tables
SELECT * FROM sqlite_master
SELECT * FROM memory.main.reviews
SELECT * FROM main.reviews
SELECT * FROM strangers
SELECT * FROM query('DROP TABLE reviews')
SELECT * FROM query_table('reviews')
SELECT getenv('HOME')
SELECT current_setting('memory_limit')
SELECT set_config('x', 'y', false)
SELECT nextval('s')
SELECT currval('s')
SELECT current_database()
SELECT current_user
SELECT version()
SELECT pg_sleep(100)
SELECT sleep(100)
SELECT random()
SELECT uuid()
SELECT now()
SELECT current_timestamp
SELECT write_log('x')
SELECT error('x')
SELECT load_extension('x')
SELECT "getenv"('HOME')
SELECT 'x'.repeat(1000000000)
SELECT list_transform([1], x -> getenv('HOME'))
SELECT [getenv('A') FOR x IN [1]]
SELECT COLUMNS('.*') FROM reviews
SELECT * FROM reviews TABLESAMPLE 10%
SELECT * FROM reviews LIMIT (SELECT 1000000000)
SELECT * FROM reviews ASOF JOIN films ON read_csv('x') >= 1
SELECT * FROM reviews ORDER BY getenv('HOME')
SELECT count(*) FILTER (WHERE getenv('X') = 'a') FROM reviews
SELECT sum(id) OVER (ORDER BY getenv('X')) FROM reviews
SELECT CASE WHEN getenv('X') = 'a' THEN 1 END
SELECT * FROM reviews WHERE EXISTS (FROM read_csv('x'))
SELECT 1 UNION SELECT content FROM read_text('/etc/passwd')
SELECT $1
SELECT ?
SELECT * FROM reviews, LATERAL (SELECT * FROM read_csv('x'))
not sql at all
SELECT FROM WHERE
(((((
""".strip().splitlines()

HARMLESS_SQL = """
SELECT 1
SELECT * FROM reviews
FROM reviews
SELECT COUNT(*) AS n FROM reviews
SELECT film, COUNT(*) AS n, AVG(stars) FROM reviews GROUP BY film HAVING COUNT(*) > 1 ORDER BY n DESC LIMIT 3
SELECT DISTINCT film FROM reviews
SELECT r.id, f.title FROM reviews AS r JOIN films AS f ON r.film = f.title
SELECT r.id FROM reviews r LEFT JOIN films f USING (id)
SELECT * FROM reviews, films
SELECT id FROM reviews WHERE film IN (SELECT title FROM films WHERE year > 1950)
SELECT id FROM reviews WHERE EXISTS (SELECT 1 FROM films WHERE title = film)
WITH good AS (SELECT * FROM reviews WHERE stars > 3) SELECT film, COUNT(*) FROM good GROUP BY film
SELECT id FROM reviews UNION ALL SELECT id FROM films
SELECT id FROM reviews UNION SELECT id FROM films ORDER BY id LIMIT 5
SELECT id FROM reviews EXCEPT SELECT id FROM films
SELECT id FROM reviews INTERSECT SELECT id FROM films
SELECT CASE WHEN stars > 3 THEN 'good' ELSE 'bad' END AS kind FROM reviews
SELECT CAST(stars AS DOUBLE) / 2, stars::VARCHAR, TRY_CAST(text AS INTEGER) FROM reviews
SELECT lower(text), upper(film), length(text), trim(text), substr(text, 1, 3) FROM reviews
SELECT replace(text, 'a', 'b'), regexp_extract(text, '[0-9]+'), split_part(text, ' ', 1) FROM reviews
SELECT * FROM reviews WHERE text LIKE '%film%' OR text ILIKE 'A%' AND NOT stars BETWEEN 2 AND 3
SELECT * FROM reviews WHERE text IS NOT NULL AND regexp_matches(text, 'x')
SELECT id, row_number() OVER (PARTITION BY film ORDER BY stars DESC) AS k FROM reviews
SELECT id, SUM(stars) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM reviews
SELECT * FROM reviews QUALIFY row_number() OVER (PARTITION BY film ORDER BY id) = 1
SELECT film, MEDIAN(stars), STDDEV(stars), quantile_cont(stars, 0.9), MODE(stars) FROM reviews GROUP BY ALL
SELECT string_agg(film, ', ' ORDER BY film) FROM reviews
SELECT year(DATE '2024-01-01'), date_trunc('month', DATE '2024-05-07'), DATE '2024-01-01' + INTERVAL 3 DAY
SELECT date_diff('day', DATE '2024-01-01', DATE '2024-02-01'), strftime(DATE '2024-01-01', '%Y')
SELECT coalesce(stars, 0), nullif(stars, 1), greatest(stars, 2), least(stars, 3), round(stars / 3, 2) FROM reviews
SELECT COUNT(*) FILTER (WHERE stars > 3) * 1.0 / COUNT(*) FROM reviews
SELECT (SELECT MAX(stars) FROM reviews) AS most
SELECT unnest(string_split(text, ' ')) AS word, COUNT(*) FROM reviews GROUP BY 1
SELECT r.id, x.word FROM reviews r, unnest(string_split(r.text, ' ')) AS x(word)
SELECT v.k, COUNT(*) FROM (VALUES ('Alien', 1), ('Brazil', 2)) AS v(film, k) JOIN reviews USING (film) GROUP BY v.k
SELECT f.title, m.most FROM films f, LATERAL (SELECT MAX(stars) AS most FROM reviews r WHERE r.film = f.title) m
SELECT list_transform([1, 2], x -> x + 1), list_sum([stars]), [stars, 2][1], map {'a': 1}['a'] FROM reviews
SELECT date_add(DATE '2024-01-01', INTERVAL 1 MONTH), make_date(2024, 1, 1), isodow(DATE '2024-01-01') FROM films
SELECT film, year(DATE '2024-01-01') AS y, COUNT(*) FROM reviews GROUP BY ROLLUP (film, y)
SELECT regr_slope(stars, id), approx_quantile(stars, 0.5), radians(180), {'a': stars}.a FROM reviews GROUP BY stars
SELECT * FROM reviews WHERE text SIMILAR TO 'film.*' AND film GLOB 'A*'
SELECT film || '!' AS f, abs(-stars), stars % 2, stars // 2, 'it''s' FROM reviews
SELECT [1, 2, 3] AS l, {'a': 1} AS s
SELECT * EXCLUDE (text) FROM reviews ORDER BY ALL
SELECT * FROM (SELECT film, COUNT(*) AS n FROM reviews GROUP BY film) AS c WHERE n > 1
SELECT film, arg_max(id, stars), list(id) FROM reviews GROUP BY film
""".strip().splitlines()


@pytest.fixture(scope="module")
def given() -> dict[str, pa.Table]:
    n = 1000
    reviews = {"id": list(range(n)), "film": ["Alien", "Brazil"] * (n // 2), "stars": [1 + i % 5 for i in range(n)]}
    films = {"id": [1, 2], "title": ["Alien", "Brazil"], "year": [1979, 1985]}
    return {
        "reviews": pa.table({**reviews, "text": [f"film number {i}" for i in range(n)]}),
        "films": pa.table(films),
    }


def test_there_are_enough_cases() -> None:
    assert len(HOSTILE_SQL) >= 100
    assert len(HOSTILE_UQL) >= 50
    assert len(HARMLESS_SQL) + len(HARMLESS_UQL) >= 30


@pytest.mark.parametrize("text", HOSTILE_SQL)
def test_hostile_sql_is_refused(text: str) -> None:
    with pytest.raises(GuardError) as error:
        check_sql(text, TABLES)
    assert error.value.code == "UQL620"


@pytest.mark.parametrize("text", HARMLESS_SQL)
def test_harmless_sql_passes_and_runs(text: str, given: dict[str, pa.Table]) -> None:
    checked = check_sql(text, TABLES)
    assert check_sql(checked, TABLES) == checked, "what was written out passes again, unchanged"
    assert run_sql(text, given, max_rows=1_000_000).num_columns >= 1


def test_comments_and_layout_do_not_survive() -> None:
    assert check_sql("select /* ; DROP TABLE x */ 1 -- and more\n", TABLES) == "SELECT 1"


@pytest.mark.parametrize("name", ["DATE", "DECIMAL", "VARCHAR"])
def test_names_of_types_in_one_another_are_refused_in_time(name: str) -> None:
    begun = time.process_time()
    with pytest.raises(GuardError):
        check_sql(f"SELECT {f'{name}(' * 40}1{')' * 40}", TABLES)
    assert time.process_time() - begun < 5, "seconds; it took twice as long for each bracket more"
    assert check_sql(f"SELECT {'DATE(' * 4}x{')' * 4} FROM reviews", TABLES).count("CAST") == 4


@pytest.mark.parametrize(
    "text", ["", "   ", "SELECT " + "1 + " * 8000 + "1", "SELECT 1\0", "SELECT " + "(" * 400 + "1" + ")" * 400]
)
def test_what_is_empty_too_long_or_too_deep_is_refused(text: str) -> None:
    with pytest.raises(GuardError):
        check_sql(text, TABLES)
    with pytest.raises(GuardError):
        check_uql(text, TABLES)


@pytest.mark.parametrize(
    "text",
    ["SELECT id::INT[][1:2] FROM films", "SELECT id[1:list_contains()] FROM films", "SELECT id -> 1 -> FROM films"],
)
def test_what_the_reader_of_sql_fails_on_is_refused_too(text: str) -> None:
    with pytest.raises(GuardError, match="can be read"):
        check_sql(text, TABLES)


# ------------------------------------------------------------------------------------------------------------------ UQL
HOSTILE_UQL = """
SELECT id FROM reviews WHERE "it is good" AND stars > current_date
SELECT id FROM reviews, range(10) AS r(n) WHERE "it is good"
SELECT id FROM unnest(read_text('/etc/passwd')) AS x(id)
SELECT id FROM (VALUES (getenv('HOME'))) AS x(id) WHERE "it is good"
SELECT list_transform([id], x -> getenv('HOME')) FROM reviews
SELECT * FROM films f, LATERAL (SELECT * FROM read_csv('x')) AS x
SET uql.budget = 1000000
SET uql.model = 'http://evil.example/v1#m'
RESET uql.budget
SET memory_limit = '1TB'
DROP TABLE reviews
CREATE TABLE x AS SELECT id FROM reviews
CREATE OR REPLACE TABLE reviews AS SELECT 1
CREATE SEMANTIC TABLE x AS SELECT id FROM reviews KEY (id)
REFRESH reviews
DROP SEMANTIC TABLE reviews
INSERT INTO reviews SELECT id FROM films
COPY (SELECT id FROM reviews) TO 'out.csv'
COPY reviews TO 'out.csv'
EXPLAIN SELECT id FROM reviews
EXPLAIN ANALYZE SELECT id FROM reviews WHERE "is good"
EXPLAIN SAMPLE 1000 SELECT id FROM reviews WHERE "is good"
SELECT 1; SELECT 2
SELECT id FROM reviews; DROP TABLE reviews
SELECT id FROM reviews TO films
SELECT id FROM reviews TO elsewhere
SELECT id FROM reviews WHERE "is good" TO stolen
SELECT * FROM 'reviews.csv'
SELECT * FROM '/etc/passwd'
SELECT * FROM 'https://example.com/x.parquet' WHERE "is good"
SELECT * FROM read_csv('/etc/passwd')
SELECT * FROM read_text('/etc/passwd') WHERE "is a secret"
SELECT * FROM range(1000000000)
SELECT * FROM glob('/**')
SELECT * FROM strangers
SELECT * FROM main.reviews
SELECT * FROM memory.main.reviews
SELECT * FROM information_schema.tables
SELECT * FROM duckdb_settings
SELECT * FROM sqlite_master
SELECT * FROM reviews JOIN strangers ON true
SELECT * FROM reviews, strangers
SELECT id FROM reviews WHERE id IN (SELECT id FROM strangers)
SELECT id FROM reviews WHERE EXISTS (SELECT 1 FROM strangers)
SELECT (SELECT MAX(id) FROM strangers) FROM reviews
SELECT * FROM (SELECT * FROM strangers) AS s
WITH s AS (SELECT * FROM strangers) SELECT * FROM s
WITH s AS (SELECT id FROM reviews) SELECT * FROM s UNION ALL SELECT * FROM strangers
SELECT getenv('HOME') FROM reviews
SELECT current_setting('memory_limit') FROM reviews
SELECT repeat('x', 1000000000) FROM reviews
SELECT nextval('s') FROM reviews
SELECT id FROM reviews WHERE getenv('HOME') = 'x'
SELECT id FROM reviews ORDER BY random()
SELECT film, COUNT(*) FROM reviews GROUP BY film HAVING getenv('X') = 'a'
SELECT CASE WHEN getenv('X') = 'a' THEN 1 END FROM reviews
SELECT id FROM reviews WHERE "is good" WITH (model = 'http://evil.example/v1#m')
SELECT id FROM reviews WHERE "is good" WITH (ledger = '/var/x')
SELECT id FROM reviews WHERE "is good" WITH (budget = 'all')
SELECT id FROM reviews WHERE "is good" WITH (budget = 100000)
SELECT id FROM reviews WHERE "is good" WITH (exact)
SELECT id FROM reviews WHERE "is good" WITH (max_cost = 100)
SELECT id FROM reviews WHERE "is good" WITH (disabled_rules = 'sql_before_model')
SELECT id FROM reviews WHERE "is good" WITH (on_error = 'drop')
SELECT id FROM reviews WHERE id = $id
PIVOT reviews ON film USING count(*)
ATTACH 'x'
SELECT count(*) FROM reviews TABLESAMPLE reservoir(10 PERCENT) REPEATABLE (1)
INSTALL httpfs
CALL pragma_version()
PRAGMA database_list
not uql at all
SELECT FROM WHERE
""".strip().splitlines()

HARMLESS_UQL = """
SELECT COUNT(*) FROM reviews WHERE "the review is positive"
SELECT id FROM reviews WHERE "the review is positive" AND stars > 3 LIMIT 10
SELECT id, "the name of an actor" AS actor FROM reviews WHERE film = 'Alien'
SELECT topic, COUNT(*) AS n FROM reviews GROUP BY "the main topic" AS topic ORDER BY n DESC
SELECT r.id FROM reviews AS r JOIN films AS f ON "the review {r.text} is of {f.title}"
WITH good AS (SELECT * FROM reviews WHERE "it is good") SELECT film, COUNT(*) FROM good GROUP BY film
SELECT id FROM reviews WHERE "it is good" UNION ALL SELECT id FROM films WHERE year > 1950
SELECT id FROM reviews WHERE film IN (SELECT title FROM films WHERE "it is set in space")
SELECT id FROM reviews ORDER BY "how angry it is" DESC LIMIT 3
SELECT AVG("the number of actors"), MAX(stars) FROM reviews WITH (budget = 100, confidence = 0.9)
SELECT id FROM reviews WHERE "it is good" WITH (recall = 0.9)
SELECT "the mood"::ENUM('sad', 'glad') AS mood, lower(film) FROM REVIEWS
SELECT unnest(string_split(text, ' ')) AS word FROM reviews WHERE "it is good"
SELECT v.k, r.id FROM reviews AS r JOIN (VALUES ('Alien', 1)) AS v(film, k) ON v.film = r.film WHERE "it is good"
SELECT film, COUNT(*) FROM reviews WHERE "it is good" GROUP BY ROLLUP (film)
SELECT string_split(text, ' ')[1], list_filter([stars], x -> x > 1) FROM reviews WHERE stars > ANY (SELECT id FROM films)
SELECT * FROM (SELECT id FROM reviews WHERE "it is good") AS g WHERE id > 3
SELECT SUM(stars) FROM reviews
""".strip().splitlines()


@pytest.mark.parametrize("text", HOSTILE_UQL)
def test_hostile_uql_is_refused(text: str) -> None:
    with pytest.raises(GuardError) as error:
        check_uql(text, TABLES)
    assert error.value.code == "UQL620"


@pytest.mark.parametrize("text", HARMLESS_UQL)
def test_harmless_uql_passes_and_means_the_same(text: str) -> None:
    assert parse(check_uql(text, TABLES)) == parse(text)


def test_duckdbs_own_sql_stands_in_for_a_query_of_uql_under_the_rules_of_sql() -> None:
    text = "SELECT title FROM films f QUALIFY row_number() OVER w = 1 WINDOW w AS (ORDER BY title), v AS ()"
    assert check_uql(text, TABLES) == check_sql(text, TABLES)
    with pytest.raises(GuardError, match="which was not given"):
        check_uql(text.replace("films f", "secrets f"), TABLES)


def test_to_stores_only_under_a_name_that_was_given() -> None:
    text = 'SELECT id FROM reviews WHERE "it is good" TO good'
    assert check_uql(text, TABLES, to=["good"]).endswith("TO good")
    with pytest.raises(GuardError):
        check_uql(text, TABLES, to=["better"])


def test_the_budget_goes_downwards_only() -> None:
    text = 'SELECT id FROM reviews WHERE "it is good" WITH (budget = 100)'
    assert "100" in check_uql(text, TABLES, budget=100)
    with pytest.raises(GuardError):
        check_uql(text, TABLES, budget=99)


# ------------------------------------------------------------------------------------------------------------------ runs
def test_a_query_runs_over_the_tables_given(given: dict[str, pa.Table]) -> None:
    found = run_sql("SELECT film, COUNT(*) AS n FROM reviews GROUP BY film ORDER BY film", given)
    assert found.to_pydict() == {"film": ["Alien", "Brazil"], "n": [500, 500]}


@pytest.mark.thorough
def test_a_cross_join_of_a_thousand_million_rows_is_stopped(given: dict[str, pa.Table]) -> None:
    began = time.monotonic()
    with pytest.raises(GuardError) as error:
        run_sql("SELECT SUM(a.id * b.id % (c.id + 1)) FROM reviews a, reviews b, reviews c", given, timeout_s=0.5)
    assert error.value.code == "UQL621"
    assert "longer than 0.5 s" in error.value.message
    assert time.monotonic() - began < 0.5 + 10.0  # on a busy machine


def test_too_many_rows_are_stopped_before_they_are_made(given: dict[str, pa.Table]) -> None:
    with pytest.raises(GuardError) as error:
        run_sql("SELECT a.id FROM reviews a, reviews b, reviews c", given, max_rows=50)
    assert error.value.code == "UQL621"
    assert run_sql("SELECT id FROM reviews LIMIT 50", given, max_rows=50).num_rows == 50


def test_too_much_memory_is_stopped(given: dict[str, pa.Table]) -> None:
    with pytest.raises(GuardError) as error:
        run_sql("SELECT list(a.text || b.text || c.text) FROM reviews a, reviews b, reviews c", given, timeout_s=20)
    assert error.value.code == "UQL621"


def test_an_error_of_duckdb_is_an_error_of_the_guard(given: dict[str, pa.Table]) -> None:
    with pytest.raises(GuardError) as error:
        run_sql("SELECT nothing FROM reviews", given)
    assert error.value.code == "UQL620"


def test_statements_of_one_runner_copy_each_table_once_and_a_refused_one_leaves_it_usable() -> None:
    asked: list[str] = []

    def table(name: str) -> pa.Table:
        asked.append(name)
        return pa.table({"id": [1, 2]})

    with sql_runner(["films", "reviews"], table) as run:
        assert run("SELECT count(*) AS n FROM Films").to_pylist() == [{"n": 2}]
        with pytest.raises(GuardError):
            run("SELECT * FROM 'secret.csv'")
        assert run("SELECT max(id) AS n FROM films").to_pylist() == [{"n": 2}]
    assert asked == ["films"]
