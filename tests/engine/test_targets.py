"""What cannot be stored, read or asked is said before anything is paid for; what is stored comes back as it was."""

from __future__ import annotations

import pytest
from hash_model import HashModel

import uql
from uql.base.errors import UQLError

POS = '"the review is positive"'


@pytest.mark.parametrize(
    ("statement", "code", "place", "help"),
    [
        ("INSERT INTO films SELECT id FROM reviews WHERE {}", "UQL509", "films", None),
        ("INSERT INTO nofilms SELECT id FROM reviews WHERE {}", "UQL509", "nofilms", None),
        ("INSERT INTO films (film, nope) SELECT film, id FROM reviews WHERE {}", "UQL509", "films", None),
        ("INSERT INTO good SELECT * FROM reviews WHERE {}", "UQL509", "good", None),
        ("CREATE TABLE reviews AS SELECT id FROM reviews WHERE {}", "UQL203", "reviews", "OR REPLACE"),
        ("CREATE TABLE nowhere.x AS SELECT id FROM reviews WHERE {}", "UQL509", "x", None),
        ("COPY (SELECT id FROM reviews WHERE {}) TO '/no/such/rows.csv'", "UQL509", "/no/such/rows.csv", "folder"),
        ("COPY (SELECT id FROM reviews WHERE {}) TO 'rows.csv' (FORMAT nope)", "UQL509", "rows.csv", None),
        ("COPY (SELECT id FROM reviews WHERE {}) TO 'rows.csv' (HEADR true)", "UQL509", "rows.csv", None),
        ("SELECT id FROM reviews WHERE {} TO films", "UQL203", "films", "another name"),
    ],
)
def test_a_target_that_cannot_take_the_rows_is_refused_before_anything_is_asked(labels, statement, code, place, help):
    model = HashModel()
    con = uql.attach(labels._tables(), model=model, ledger=":memory:", budget="all")
    with pytest.raises(UQLError) as error:
        con.uql(statement.format(POS))
    found = error.value
    assert (found.code, model.calls) == (code, 0)
    assert found.text[found.start : found.end] == place
    assert help is None or help in found.help


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rows.csv", ""),
        ("rows.csv", " (HEADER true, DELIMITER ';')"),
        ("rows.parquet", " (FORMAT parquet)"),
        ("rows.parquet", " (FORMAT 'parquet', COMPRESSION zstd)"),
    ],
)
def test_copy_writes_the_rows_with_the_options_of_duckdb(labels, tmp_path, name, options):
    con = labels.uql(budget="all")
    path = tmp_path / name
    wanted = con.uql(f"SELECT id, film FROM reviews WHERE {POS} ORDER BY id").fetchall()
    con.uql(f"COPY (SELECT id, film FROM reviews WHERE {POS} ORDER BY id) TO '{path}'{options}")
    assert con.sql(f"SELECT id, film FROM '{path}' ORDER BY id").fetchall() == wanted


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "is a folder"),
        (" (FORMAT parquet, PARTITION_BY (film))", "is not empty"),
        (" (FORMAT parquet, RETURN_STATS)", "RETURN_STATS"),
    ],
)
def test_a_folder_that_copy_cannot_write_to_is_refused_before_anything_is_asked(labels, tmp_path, options, said):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "other.txt").write_text("kept")
    target = tmp_path / ("rows.parquet" if "STATS" in options else "rows")
    model = HashModel()
    con = uql.attach(labels._tables(), model=model, ledger=":memory:", budget="all")
    with pytest.raises(UQLError, match=said) as error:
        con.uql(f"COPY (SELECT id, film FROM reviews WHERE {POS}) TO '{target}'{options}")
    assert (error.value.code, model.calls) == ("UQL509", 0)


@pytest.mark.parametrize("where", ["", f" WHERE {POS}"], ids=["plain", "asked"])
def test_copy_to_partitions_gives_their_files(labels, tmp_path, where):
    con = labels.uql(budget="all")
    (tmp_path / "rows").mkdir()
    options = "FORMAT parquet, PARTITION_BY (film), RETURN_FILES"
    wrote = con.uql(f"COPY (SELECT id, film FROM reviews{where}) TO '{tmp_path}/rows' ({options})")
    ((count, files),) = wrote.fetchall()
    assert wrote.columns == ["Count", "Files"] and sorted(files) == sorted(map(str, tmp_path.glob("rows/*/*.parquet")))
    rows = con.sql(f"SELECT id, film FROM '{tmp_path}/rows/*/*.parquet' ORDER BY id").fetchall()
    assert rows == con.uql(f"SELECT id, film FROM reviews{where} ORDER BY id").fetchall() and len(rows) == count


def test_tables_that_do_not_stand_in_the_way_are_made(labels):
    con = labels.uql(budget="all")
    con.execute("CREATE SCHEMA shop")
    for statement in (
        f"CREATE TEMP TABLE films AS SELECT id FROM reviews WHERE {POS}",
        f"CREATE TABLE shop.reviews AS SELECT id FROM main.reviews WHERE {POS}",
        f"CREATE OR REPLACE TABLE one AS SELECT id FROM reviews WHERE {POS}",
    ):
        con.uql(statement)
    assert con.sql("SELECT count(*) FROM shop.reviews").fetchall() == con.sql("SELECT count(*) FROM one").fetchall()


def test_bits_go_through_a_query_and_into_a_table_as_they_are(labels):
    con = labels.uql(budget="all")
    con.execute("CREATE TABLE flags AS SELECT id, text, '101'::BIT AS b, ['1'::BIT, '10'] AS l FROM reviews")
    query = f"SELECT b, l FROM (SELECT id, b, l FROM flags WHERE {POS}) x ORDER BY id LIMIT 1"
    assert con.uql(query).fetchall() == [("101", ["1", "10"])]
    con.uql(f"CREATE TABLE kept AS SELECT b, l FROM flags WHERE {POS}")
    kept = con.sql("SELECT DISTINCT b::VARCHAR, l::VARCHAR, typeof(b), typeof(l) FROM kept").fetchall()
    assert kept == [("101", "[1, 10]", "BIT", "BIT[]")]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("statement", "code", "help"),
    [
        ("SELECT id FROM reviews WHERE TRY {}", "UQL206", "leave TRY out"),
        ("SELECT CASE WHEN TRY {} THEN 1 END FROM reviews", "UQL206", "leave TRY out"),
        ("SELECT id reviews WHERE {}", "UQL207", "FROM table"),
        ("SELECT PROMPT 'x' FROM reviews WHERE {}", "UQL100", 'PROMPT "x"'),
        ("SELECT {}::STRUCT(a) FROM reviews", "UQL100", "a VARCHAR"),
        ("SELECT {}::ENUM() FROM reviews", "UQL100", "between ( and )"),
        ("SELECT id FROM reviews WHERE {} WITH ()", "UQL100", "between ( and )"),
        ("SELECT (id)) FROM reviews WHERE {}", "UQL100", "closes nothing"),
        ("SELECT id INTO x FROM reviews WHERE {}", "UQL100", "TO x"),
        ("SELECT id FROM $t WHERE {}", "UQL100", "con.register"),
        ("SELECT id FROM reviews WHERE {} WITH BUDGET 10", "UQL100", "WITH (budget = 10)"),
        ("SELECT id FROM reviews WHERE {} WITH (budget = $b)", "UQL100", "con.settings"),
        ("SELECT id FROM reviews WHERE film RLIKE 'a' AND {}", "UQL100", "regexp_matches"),
        ("SELECT SAFE_CAST(film AS INT) FROM reviews WHERE {}", "UQL100", "TRY_CAST"),
        ("SELECT id, u FROM unnest(nope) AS x(u), reviews WHERE {}", "UQL202", "FROM t, unnest(t.list)"),
        ("SELECT id, u FROM reviews, unnest(nope) AS x(u) WHERE {}", "UQL202", "columns: id, film"),
        ("SELECT * FROM reviews, read_csv(film) WHERE {}", "UQL202", "constants"),
        ("SELECT id FROM reviews WHERE {} ORDER BY #9", "UQL208", "write 1"),
        ("SELECT #99 FROM reviews WHERE {}", "UQL202", "7 columns"),
        ("SELECT id FROM reviews WHERE {} OFFSET 3 RANGE", "UQL100", "OFFSET n ROWS"),
        ("SELECT left(film PLACING 'a' FROM 2) FROM reviews WHERE {}", "UQL100", "overlay"),
        ("SELECT left(film FOR 2) FROM reviews WHERE {}", "UQL100", "substring"),
        ("SELECT AI.IF('is it positive', text) FROM reviews WHERE {}", "UQL209", "double quotes"),
        ("SELECT ML.GENERATE_TEXT(text) FROM reviews WHERE {}", "UQL209", "::DOUBLE"),
        ("SELECT AI_SENTIMENT(text) FROM reviews WHERE {}", "UQL209", "'neutral'"),
        ("SELECT AI.SCORE(text) FROM reviews WHERE {}", "UQL209", "ORDER BY"),
        ("SELECT AI_SUMMARIZE_AGG(text) FROM reviews WHERE {}", "UQL209", "GROUP BY g"),
        ("SELECT IFF({}, 1, 0) FROM reviews", "UQL209", f"write CASE WHEN {POS} THEN 1 ELSE 0 END"),
        ("SELECT NVL(film, 'x') FROM reviews WHERE {}", "UQL209", "write COALESCE(film, 'x')"),
        ("SELECT TO_CHAR(now(), 'YYYY') FROM reviews WHERE {}", "UQL209", "'%Y')"),
        ("SELECT DATE_TRUNC(now(), MONTH) FROM reviews WHERE {}", "UQL202", "write DATE_TRUNC('MONTH',"),
        ("SELECT id FROM reviews WHERE {} AND now() > DATEADD(day, -7, now())", "UQL209", "INTERVAL"),
        ("SELECT id FROM reviews WHERE {} AND film LIKE ANY ('a', 'b')", "UQL209", "film LIKE 'a' OR film LIKE 'b'"),
        ("SELECT CAST(stars AS NUMBER(9, 2)) FROM reviews WHERE {}", "UQL209", "write CAST(stars AS DECIMAL(9, 2))"),
        ("SELECT ('{{}}'::JSON).a FROM reviews WHERE {}", "UQL209", "->>'$."),
        ("SELECT STRUCT({} AS a) FROM reviews", "UQL100", "a struct is written {'a': " + POS),
        ("SELECT id FROM reviews SAMPLE (10) WHERE {}", "UQL100", "TABLESAMPLE 10%"),
        ("SELECT id FROM reviews, LATERAL FLATTEN(input => x) WHERE {}", "UQL100", "unnest"),
        ('SELECT year(r) FROM (SELECT "the main topic" AS r FROM reviews WHERE {}) x', "UQL209", "::DOUBLE"),
        ("SELECT id FROM reviews WHERE {} WITH (method = 'magic')", "UQL105", "asd"),
        ("SELECT id FROM reviews WHERE id = (SELECT id FROM reviews WHERE {})", "UQL509", "IN (SELECT"),
        ("SELECT id FROM reviews WHERE {} AND film::INTEGER > 1", "UQL509", "TRY_CAST"),
        ("SELECT id FROM reviews WHERE id = $1 AND {}", "UQL210", '{"1": …}'),
        ('SELECT id FROM reviews ORDER BY "the main topic" LIMIT 3', "UQL402", "select it"),
    ],
)
def test_what_is_written_in_another_way_is_said_with_the_way(labels, statement, code, help):
    with pytest.raises(UQLError) as error:
        labels.uql(budget="all").uql(statement.format(POS)).fetchall()
    assert error.value.code == code
    assert help in (error.value.help or "")


def test_rows_are_fetched_one_after_another(labels):
    rows = labels.uql(budget="all").uql(f"SELECT id FROM reviews WHERE {POS} ORDER BY id")
    every = rows.fetchall()
    assert [rows.fetchone(), rows.fetchone()] == every[:2]
    assert rows.fetchmany(3) == every[2:5]
    assert rows.fetchall() == every
    assert rows.fetchmany(100) == every[5:]
    assert rows.fetchone() is None
    assert rows.fetchmany() == []


def test_rows_are_written_as_csv_with_the_bounds_of_estimates(labels, tmp_path):
    con = labels.uql(budget=20)
    con.uql(f"SELECT count(*) AS n FROM reviews WHERE {POS}").write_csv(tmp_path / "n.csv")
    assert (tmp_path / "n.csv").read_text().splitlines()[0] == "n,n_low,n_high"


def test_what_was_registered_is_taken_back(labels, tmp_path):
    import pyarrow as pa

    con = labels.uql(budget="all")
    (tmp_path / "a.txt").write_text("a text")
    con.register("frame", pa.table({"x": [1]}))
    con.register("texts", tmp_path)
    for name in ("frame", "texts"):
        assert con.uql(f"SELECT count(*) FROM {name}").fetchall() == [(1,)]
        con.unregister(name)
        with pytest.raises(UQLError, match="no table"):
            con.uql(f"SELECT count(*) FROM {name}")
    con.unregister("reviews")
    assert con.uql("SELECT count(*) > 0 FROM reviews").fetchall() == [(True,)]


def test_values_without_an_answer_make_rows_inexact(labels):
    con = labels.uql(budget="all")
    result = con.uql('SELECT id, "the main topic"::INTEGER AS t FROM reviews WHERE id < 3')
    assert [row[1] for row in result.fetchall()] == [None, None, None]
    assert (len(result.errors), result.exact) == (3, False)
