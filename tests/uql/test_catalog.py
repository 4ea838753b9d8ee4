"""The catalog: tables, views, files and data frames, with what their columns hold."""

from __future__ import annotations

import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hash_model import HashModel

import uql
from uql.base.errors import DataError, UnknownTableError
from uql.base.media_types import media_type, modality
from uql.base.schema import Modality
from uql.sources import catalog as catalogs
from uql.sources.catalog import ESTIMATED, Catalog


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute(
        "CREATE TABLE Reviews AS SELECT i AS id, repeat('word ', 10) AS text, 'short' AS tag, 'a.png' AS path,"
        " 'secret' AS name, '\\x89PNG\\x0D\\x0A\\x1A\\x0A'::BLOB AS photo FROM range(2000) r(i);"
        "COMMENT ON TABLE Reviews IS 'what people say';"
        "COMMENT ON COLUMN Reviews.path IS 'image: a file';"
        "COMMENT ON COLUMN Reviews.name IS 'the private name';"
        "CREATE VIEW seen AS FROM Reviews; CREATE SCHEMA s; CREATE TABLE s.inner_one (a INTEGER);"
        "ATTACH ':memory:' AS other; CREATE TABLE other.far AS SELECT 1 AS a"
    )
    return made


def test_columns_have_a_type_a_modality_a_description_and_a_length(connection: duckdb.DuckDBPyConnection) -> None:
    table = Catalog(connection).table(("reviews",))
    kinds = {f.name: f.modality for f in table.fields}
    assert kinds["text"] is Modality.TEXT and kinds["tag"] is Modality.STRUCTURED
    assert kinds["path"] is Modality.IMAGE and kinds["photo"] is Modality.IMAGE
    assert table.row_count == 2000 and table.description == "what people say"
    assert table.fields[1].mean_chars == 50 and table.fields[0].type == "BIGINT"
    assert [f.name for f in table.fields if f.private] == ["name"]


def test_of_many_columns_arrow_measures_texts_and_whole_numbers_and_finds_what_duckdb_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = duckdb.connect()
    kinds = {
        "words": "repeat('a long word ', 1 + i::INTEGER % 9)",
        "code": "md5(i::VARCHAR) || md5(i::VARCHAR)",
        "gap": "CASE WHEN i % 3 = 0 THEN 'für' END",
        "empty": "NULL::VARCHAR",
        "whole": "i * i",
        "half": "i / 2",
        "photo": "'\\x89PNG'::BLOB",
    }
    for name, copies in (("few", 1), ("many", 20)):
        columns = (f"{sql} AS {kind}_{n}" for n in range(copies) for kind, sql in kinds.items())
        made.execute(f"CREATE TABLE {name} AS SELECT {', '.join(columns)} FROM range(1500) t(i)")
    by_arrow: set[int] = set()
    measure = catalogs._mean_lengths

    def measured(rows: pa.Table, wanted: list[bool]) -> dict[int, object]:
        means = measure(rows, wanted)
        by_arrow.update(means)
        return means

    monkeypatch.setattr(catalogs, "_mean_lengths", measured)
    catalog = Catalog(made, own=True)
    few, many = (catalog.table((name,)).fields for name in ("few", "many"))
    assert [(f.modality, f.mean_chars, f.mean_bytes) for f in few] * 20 == [
        (f.modality, pytest.approx(f.mean_chars), pytest.approx(f.mean_bytes)) for f in many
    ]
    assert few[0].modality is Modality.TEXT and few[1].modality is Modality.STRUCTURED
    assert by_arrow == {n * len(kinds) + at for n in range(20) for at in range(5)}


@pytest.mark.parametrize(
    "parts", [("seen",), ("s", "inner_one"), ("memory", "s", "inner_one"), ("other", "far"), ("REVIEWS",)]
)
def test_views_schemas_and_attached_databases_are_found(
    connection: duckdb.DuckDBPyConnection, parts: tuple[str, ...]
) -> None:
    catalog = Catalog(connection)
    table = catalog.table(parts)
    assert catalog.describe(f"SELECT * FROM {table.sql}")


QUERIES = [
    "SELECT 1 AS a, 2 AS A, 3 AS a",
    "SELECT id, id, name AS id FROM reviews",
    "SELECT NULL AS n, [] AS l, [NULL] AS m, MAP {} AS p, {'a b': [{'c\"d': 1}]} AS s, (1, 2) AS r",
    "SELECT 'x'::ENUM('x', 'y') AS e, 1::DECIMAL(9, 2) AS d, '{}'::JSON AS j, 1::UNION(a INTEGER, b VARCHAR) AS u, [1, 2]::INTEGER[2] AS v",
    "SELECT 'a' COLLATE NOCASE AS c, now() AS t, '12:00'::TIMETZ AS z, INTERVAL 1 DAY AS i, '101'::BIT AS b",
    "FROM reviews SELECT COLUMNS('n.*')",
    "VALUES (1, 'a'), (2, NULL)",
    "WITH a AS (SELECT 1 AS x) SELECT * FROM a UNION ALL SELECT 2.5",
    "PIVOT reviews ON tag USING count(*)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_the_columns_of_a_query_are_those_that_duckdb_describes(
    connection: duckdb.DuckDBPyConnection, query: str
) -> None:
    described = [(name, kind) for name, kind, *_ in connection.execute(f"DESCRIBE {query}").fetchall()]
    assert described and Catalog(connection).describe(query) == described


@pytest.mark.parametrize("statement", ["CREATE TABLE made AS SELECT 1", "DROP TABLE reviews"])
def test_what_is_no_query_is_not_run_to_describe_it(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    before = connection.execute("SHOW ALL TABLES").fetchall()
    with pytest.raises(duckdb.Error):
        Catalog(connection).describe(statement)
    assert connection.execute("SHOW ALL TABLES").fetchall() == before


ADVANCING = [
    "SELECT nextval('tickets')",
    "SELECT nextval('tickets') AS n FROM places",
    "SELECT setval('tickets', 40)",
    "FROM taken",
    "SELECT take()",
    "WITH a AS (SELECT nextval('tickets') AS n) SELECT * FROM a",
    "VALUES (nextval('tickets'))",
    "INSERT INTO places SELECT nextval('tickets')",
    "INSERT INTO places VALUES (nextval('tickets')) RETURNING place",
    "CREATE TABLE made AS SELECT nextval('tickets') AS n",
    "UPDATE places SET place = nextval('tickets')",
    "WITH a AS (INSERT INTO places VALUES (7) RETURNING place) SELECT * FROM a",
    "EXPLAIN SELECT nextval('tickets')",
    "DESCRIBE SELECT nextval('tickets')",
]


@pytest.mark.parametrize("statement", ADVANCING)
def test_a_statement_changes_as_much_as_in_duckdb(statement: str) -> None:
    found = []
    for by_uql in (False, True):
        with uql.connect(ledger=":memory:") as con:
            con.execute("CREATE SEQUENCE tickets")
            con.execute("CREATE TABLE places AS SELECT range AS place FROM range(4)")
            con.execute("CREATE VIEW taken AS SELECT nextval('tickets') AS n")
            con.execute("CREATE MACRO take() AS nextval('tickets')")
            try:
                rows = (con.uql if by_uql else con.execute)(statement).fetchall()
            except duckdb.Error as error:
                pytest.skip(f"DuckDB {duckdb.__version__} has no such statement: {error}")
            after = con.execute("SELECT nextval('tickets'), (SELECT list(place) FROM places)").fetchall()
            found.append((after, [] if statement.startswith(("EXPLAIN", "CREATE")) else rows))
    assert found[0] == found[1]


def test_an_exact_spelling_goes_before_another_case(connection: duckdb.DuckDBPyConnection) -> None:
    table = Catalog(connection).table(("Reviews",))
    assert table.sql == '"memory"."main"."Reviews"'


def test_a_half_read_result_of_the_user_is_not_disturbed(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SELECT * FROM range(5000)")
    assert connection.fetchone() == (0,)
    catalog = Catalog(connection)
    catalog.table(("reviews",))
    with pytest.raises(UnknownTableError):
        catalog.table(("nowhere",))
    assert len(connection.fetchall()) == 4999


def test_a_temporary_table_of_the_users_connection_is_seen(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TEMP TABLE mine AS SELECT 7 AS seven").fetchall()
    catalog = Catalog(connection)
    table = catalog.table(("mine",))
    assert catalog.value(f"SELECT seven FROM {table.sql}") == 7


def test_no_variable_of_ours_is_taken_for_a_table(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(UnknownTableError):
        Catalog(connection).table(("connection",))


def test_an_unknown_table_is_answered_with_the_nearest_and_all(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(UnknownTableError, match="no table revews") as caught:
        Catalog(connection).table(("revews",), frames={"df": pa.table({"a": [1]})})
    assert caught.value.help is not None and "did you mean Reviews" in caught.value.help and "df" in caught.value.help


def test_data_frames_of_three_kinds_are_tables(connection: duckdb.DuckDBPyConnection) -> None:
    import pandas
    import polars

    catalog = Catalog(connection)
    data = {"note": ["a rather long note that goes on and on", None]}
    frames: dict[str, object] = {
        "p": pandas.DataFrame(data),
        "q": polars.DataFrame(data),
        "l": polars.LazyFrame(data),
        "r": pa.table(data),
        "b": pa.RecordBatch.from_pydict(data),
    }
    for name in frames:
        table = catalog.table((name,), frames=frames)
        assert table.row_count == 2 and table.fields[0].modality is Modality.TEXT, name
        assert catalog.table((name,), frames=frames).sql == table.sql
    with pytest.raises(DataError, match="not a table"):
        catalog.table(("n",), frames={"n": 3})


def test_a_table_goes_before_a_frame_of_its_name(connection: duckdb.DuckDBPyConnection) -> None:
    assert Catalog(connection).table(("reviews",), frames={"reviews": pa.table({"a": [1]})}).row_count == 2000


def test_files_are_read_by_their_ending(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    catalog = Catalog(connection)
    for ending, options in (("csv", ""), ("tsv", "(DELIMITER '\t')"), ("parquet", ""), ("json", ""), ("jsonl", "")):
        path = str(tmp_path / f"it's one.{ending}")
        form = {"tsv": "(FORMAT csv, DELIMITER '\t')", "jsonl": "(FORMAT json)"}.get(ending, options)
        connection.execute(
            f"COPY (SELECT 1 AS a, 'x' AS b) TO '{path.replace(chr(39), chr(39) * 2)}' {form}"
        ).fetchall()
        assert [f.name for f in catalog.table((path,), file=True).fields] == ["a", "b"], ending


def test_bad_files_are_named_with_what_is_wrong(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    catalog = Catalog(connection)
    (tmp_path / "bytes.csv").write_bytes(b"a,b\n1,\xff\xfe\n")
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "broken.parquet").write_bytes(b"nothing of the kind")
    (tmp_path / "broken.json").write_bytes(b"{{{{")
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "folder.csv").mkdir()
    wanted = {"bytes.csv": "UQL502", "empty.csv": "UQL503", "broken.parquet": "UQL503", "broken.json": "UQL503",
              "notes.txt": "UQL503", "missing.csv": "UQL501", "folder.csv": "UQL501", "gone/x.csv": "UQL501"}  # fmt: skip
    for name, code in wanted.items():
        with pytest.raises(DataError) as caught:
            catalog.table((str(tmp_path / name),), file=True)
        assert caught.value.code == code, name
        assert name.split("/")[-1] in caught.value.message


def test_a_line_longer_than_duckdb_reads_is_not_shown_whole(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    (tmp_path / "long.csv").write_text("id,text\n1," + "x" * 3_000_000 + "\n")
    with pytest.raises(DataError, match="UQL503") as caught:
        Catalog(connection).table((str(tmp_path / "long.csv"),), file=True)
    assert "line size" in caught.value.message and len(caught.value.message) < 1_500
    assert "max_line_size" in str(caught.value.help)


def test_an_empty_table_and_a_column_of_nulls_are_tables(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE none_of (a VARCHAR, b BLOB); CREATE TABLE nulls AS SELECT NULL::VARCHAR AS a")
    catalog = Catalog(connection)
    assert catalog.table(("none_of",)).row_count == 0
    assert catalog.table(("nulls",)).fields[0].mean_chars == 0


def test_statistics_follow_a_table_that_changes(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE grows (a VARCHAR)")
    catalog = Catalog(connection)
    assert catalog.table(("grows",)).fields[0].modality is Modality.STRUCTURED
    connection.execute("INSERT INTO grows VALUES (repeat('long ', 20))")
    assert catalog.table(("grows",)).fields[0].modality is Modality.TEXT
    connection.execute("COMMENT ON COLUMN grows.a IS 'private'")
    assert catalog.table(("grows",)).fields[0].private


def test_tables_are_listed_once_while_a_query_is_bound_and_anew_for_the_next(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, listings = Catalog(connection), []
    rows = catalog._rows
    monkeypatch.setattr(catalog, "_rows", lambda sql, *values: listings.append(sql) or rows(sql, *values))
    with catalog.listed_once():
        assert catalog.table(("reviews",)).row_count == catalog.table(("seen",)).row_count == 2000
    assert len([sql for sql in listings if "duckdb_tables()" in sql]) == 1
    connection.execute("DROP VIEW seen; CREATE TABLE seen AS SELECT 1 AS a")
    with catalog.listed_once():
        assert catalog.table(("seen",)).row_count == 1


def test_tables_are_listed_once_while_views_over_estimates_are_followed(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection.execute(f"COMMENT ON TABLE s.inner_one IS '{ESTIMATED}SELECT 1'")
    connection.execute("CREATE VIEW first AS FROM s.inner_one; CREATE VIEW second AS FROM first JOIN reviews ON true")
    catalog, listings = Catalog(connection), []
    rows = catalog._rows
    monkeypatch.setattr(catalog, "_rows", lambda sql, *values: listings.append(sql) or rows(sql, *values))
    assert {name: words for (_, _, name), words in catalog.marked().items()} == dict.fromkeys(
        ("inner_one", "first", "second"), "SELECT 1"
    )
    assert len([sql for sql in listings if "duckdb_tables()" in sql]) == 1


def test_a_table_made_from_an_estimate_says_so(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(f"COMMENT ON TABLE s.inner_one IS '{ESTIMATED}SELECT 1'")
    assert Catalog(connection).table(("s", "inner_one")).estimated_by == "SELECT 1"


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n", Modality.IMAGE),
        (b"\xff\xd8\xff\xe0", Modality.IMAGE),
        (b"GIF89a", Modality.IMAGE),
        (b"RIFF\0\0\0\0WEBP", Modality.IMAGE),
        (b"RIFF\0\0\0\0WAVE", Modality.AUDIO),
        (b"ID3\x04", Modality.AUDIO),
        (b"%PDF-1.7", Modality.DOCUMENT),
        (b"", Modality.STRUCTURED),
        (b"RIFF", Modality.STRUCTURED),
    ],
)
def test_the_first_bytes_say_what_a_value_holds(head: bytes, kind: Modality) -> None:
    assert modality(media_type(head)) is kind


def test_identifiers_hashes_paths_and_addresses_are_no_texts_however_long(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    connection.execute(
        "CREATE TABLE mails AS SELECT md5(i::VARCHAR) || '-' || i AS id, 'https://mail.example/inbox/message?number=' || i AS link,"
        ' \'Please send me the bill of order \' || i AS body, \'{"order":\' || i || \',"wishes":["bill","call"]}\' AS json,'
        " repeat('送', 40) || i AS said FROM range(20) r(i)"
    )
    wide = ", ".join(f"id AS id{i}, body AS body{i}" for i in range(60))
    connection.execute(f"CREATE TABLE wide AS SELECT {wide} FROM mails")
    catalog = Catalog(connection)
    assert [f.name for f in catalog.table(("mails",)).fields if f.modality is Modality.TEXT] == ["body", "json", "said"]
    assert {f.name for f in catalog.table(("wide",)).fields if f.modality is Modality.TEXT} == {
        f"body{i}" for i in range(60)
    }
    connection.execute("COMMENT ON COLUMN mails.link IS 'text: where it is'")
    assert Catalog(connection).table(("mails",)).fields[1].modality is Modality.TEXT


def with_private_column() -> Catalog:
    con = duckdb.connect()
    con.execute("CREATE TABLE people (id INTEGER, name VARCHAR, phone VARCHAR)")
    con.execute("COMMENT ON COLUMN people.phone IS 'private'")
    return Catalog(con)


@pytest.mark.parametrize(
    ("view", "private"),
    [
        ("v AS FROM people", ["phone"]),
        ("v AS SELECT phone AS p, name || '!' AS n, count(*) OVER () AS c FROM people", ["p"]),
        ("v (n, p) AS SELECT name, max(phone) FROM people GROUP BY ALL", ["p"]),
        ("v AS SELECT x.p FROM (SELECT {'p': phone} AS x FROM people)", ["p"]),
        ("v AS SELECT a.id, b.name FROM people a JOIN people b ON a.phone = b.phone", []),
        (
            "v AS WITH RECURSIVE t AS (SELECT 1 AS n, max(phone) AS p FROM people UNION ALL SELECT n + 1, p FROM t WHERE n < 3) FROM t",
            ["p"],
        ),
        ("v AS SELECT id, name FROM main.people", []),
    ],
)
def test_what_a_view_makes_of_a_private_column_is_private(view: str, private: list[str]) -> None:
    catalog = with_private_column()
    catalog.connection.execute(f"CREATE VIEW {view}; CREATE VIEW w AS FROM v")
    for name in ("v", "w"):
        assert [f.name for f in catalog.table((name,)).fields if f.private] == private


def test_the_comment_of_a_view_s_column_says_that_it_is_not_private() -> None:
    catalog = with_private_column()
    catalog.connection.execute("CREATE VIEW v AS SELECT left(phone, 2) AS area FROM people")
    assert catalog.table(("v",)).fields[0].private
    catalog.connection.execute("COMMENT ON COLUMN v.area IS 'the area'")
    assert not catalog.table(("v",)).fields[0].private


@pytest.mark.parametrize(
    "call",
    [
        "m()",
        "query_table('people')",
        "query('SELECT phone AS p FROM people')",
        "query($$SELECT phone AS id FROM people$$)",
        "histogram_values(people, phone)",
        "pragma_storage_info('people')",
        "(VALUES ((SELECT max(phone) FROM people)))",
    ],
)
def test_what_a_table_function_gives_of_a_private_column_is_private(call: str) -> None:
    catalog = with_private_column()
    catalog.connection.execute("CREATE MACRO m() AS TABLE SELECT id, phone AS p FROM people")
    fields = catalog.function_table(call.partition("(")[0] or "values", call).fields
    public = () if "id FROM" in call else ("id", "name")
    assert [f.name for f in fields if f.private] == [f.name for f in fields if f.name not in public]


def test_duckdb_s_own_views_are_read_beside_a_private_column() -> None:
    catalog = with_private_column()
    catalog.hide_internal()
    assert not any(f.private for f in catalog.function_table("duckdb_tables", "duckdb_tables()").fields)


@pytest.mark.parametrize("view", ["v AS SELECT name AS n FROM people", "v AS SELECT 1 AS v, name AS n FROM people"])
def test_a_view_over_a_column_that_is_private_without_a_comment_is_private_meanwhile(view: str) -> None:
    catalog = with_private_column()
    catalog.connection.execute(f"CREATE VIEW {view}; COMMENT ON COLUMN people.name IS 'text: of the person'")
    with catalog.hiding(frozenset({("people", "name")})):
        assert [f.name for f in catalog.table(("v",)).fields if f.private] == ["n"]
        name = catalog.table(("people",)).fields[1]
        assert name.private and name.modality is Modality.TEXT
    assert not any(f.private for f in catalog.table(("v",)).fields)


def test_a_relation_over_a_private_column_is_private() -> None:
    catalog = with_private_column()
    relation = catalog.connection.sql("SELECT name, phone AS p FROM people")
    assert [f.private for f in catalog.table(("r",), frames={"r": relation}).fields] == [False, True]


HOSTILE = (
    "current_setting(x) AS 'NULLS_LAST; COPY (SELECT 1) TO ''{file}''; --'",
    "duckdb_variables() AS TABLE SELECT 'a' AS name, '5' AS value, 'INTEGER); COPY (SELECT 1) TO ''{file}''; --' AS type",
)


@pytest.mark.parametrize("macro", HOSTILE)
@pytest.mark.parametrize("attached", [True, False])
def test_a_macro_of_a_database_that_somebody_sent_runs_no_sql_of_its_own(
    tmp_path: Path, macro: str, attached: bool
) -> None:
    file = tmp_path / "written.csv"
    with duckdb.connect(str(tmp_path / "sent.duckdb")) as made:
        made.execute(
            "CREATE TABLE t AS SELECT i AS id, 'a text of some words, number ' || i AS body FROM range(9) t(i)"
        )
        made.execute(f"CREATE MACRO {macro.format(file=file)}")
    place = str(tmp_path / "sent.duckdb")
    model = HashModel({"long": 0.5})
    opened = uql.attach(duckdb.connect(place), model=model) if attached else uql.connect(place, model=model)
    with opened as con:
        con.use(ledger=":memory:")
        assert con.uql('SELECT id FROM t WHERE "long" OR true ORDER BY id LIMIT 3').fetchall() == [(0,), (1,), (2,)]
    assert not file.exists()


def test_views_that_name_each_other_twice_are_followed_once_each() -> None:
    catalog = with_private_column()
    for n in range(45):
        catalog.connection.execute(f"CREATE VIEW v{n} AS SELECT name, phone FROM people")
    for n in range(44, 1, -1):  # from above, since DuckDB itself follows each way down
        view = f"v{n} AS SELECT x.name, y.phone FROM v{n - 1} x, v{n - 2} y"
        catalog.connection.execute(f"CREATE OR REPLACE VIEW {view}")
    began = time.process_time()
    assert catalog.may_read_private("SELECT phone FROM v44")  # by two ways down from each, there are a billion
    assert not catalog.may_read_private("SELECT name FROM v44")
    assert time.process_time() - began < 20


def test_views_whose_columns_are_called_as_other_views_are_followed_to_the_end() -> None:
    catalog = with_private_column()
    catalog.connection.execute("CREATE VIEW a AS SELECT name AS b, phone AS number FROM people")
    catalog.connection.execute("CREATE VIEW b AS SELECT number AS a, b AS name FROM a")
    for name, private in (("a", ["number"]), ("b", ["a"])):
        assert [f.name for f in catalog.table((name,)).fields if f.private] == private
