"""Discovery: the tables and columns that a question may need, their joins, and a prompt within its tokens."""

from __future__ import annotations

import time

import duckdb
import pytest
from nl.shop import Connected, database

import uql
from uql.base.errors import DataError, QuestionError
from uql.base.schema import Modality
from uql.llm.providers.scripted import Scripted
from uql.nl.schema.discover import (
    CHARS_A_TOKEN,
    discover,
    schema_text,
    shortlist,
)
from uql.nl.schema.scope import Scope
from uql.sources.catalog import Catalog

TOPICS = [
    "patient",
    "admission",
    "diagnosis",
    "procedure",
    "prescription",
    "laboratory",
    "microbiology",
    "vital",
    "cost",
    "transfer",
    "intake",
    "output",
    "radiology",
    "allergy",
    "insurance",
    "physician",
    "ward",
    "device",
]


def scope_of(con: duckdb.DuckDBPyConnection, question: str) -> Scope:
    with uql.attach(con, ledger=":memory:") as connection:
        return discover(question, connection.catalog, None)


@pytest.fixture(scope="module")
def hospital() -> duckdb.DuckDBPyConnection:
    """Eighteen tables of 12 columns, each with a key of its own and one to the patients."""
    con = duckdb.connect()
    for n, topic in enumerate(TOPICS):
        columns = ", ".join(f"i * {k + n} AS {topic}_measure_{k}" for k in range(8))
        link = "" if topic == "patient" else ", i % 20 AS patient_id"
        con.execute(
            f"CREATE TABLE {topic}s AS SELECT i AS id, '{topic} number ' || i AS {topic}_name, date '2020-01-01' + i::INTEGER AS day, {columns}{link} FROM range(40) t(i)"
        )
        con.execute(f"COMMENT ON TABLE {topic}s IS 'one row a {topic} of the hospital'")
    return con


def test_the_tables_of_a_database_are_listed_once(
    hospital: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, listings = Catalog(hospital), []
    rows = catalog._rows
    monkeypatch.setattr(catalog, "_rows", lambda sql, *values: listings.append(sql) or rows(sql, *values))
    assert len(discover("How many patients are there?", catalog, None).sources) > 1
    assert len([sql for sql in listings if "duckdb_tables()" in sql]) == 1


def test_text_columns_and_images_are_told_apart_from_structured_ones() -> None:
    con = database()
    con.execute("CREATE TABLE photos (shop_id INTEGER, photo BLOB)")
    con.execute("INSERT INTO photos VALUES (1, '\\x89PNG\\x0D\\x0A\\x1A\\x0A'::BLOB)")
    scope = scope_of(con, "Which shops have a red door?")
    assert scope.sources["letters"].has(Modality.TEXT) and scope.sources["photos"].has(Modality.IMAGE)
    text = schema_text(scope)
    assert "letter TEXT (read by the model)" in text and "photo IMAGE (seen by the model)" in text


def test_long_names_addresses_and_links_are_no_texts_to_be_read() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE lenses (id INTEGER, name VARCHAR, link VARCHAR, said VARCHAR, noted VARCHAR)")
    con.execute(
        "INSERT INTO lenses SELECT i, 'Canon EF 70-300mm f/4-5.6L IS USM Mark ' || i, 'https://lenses.test/canon-ef-70-300mm/' || i, "
        "'It is heavy, but I''d not go without it: ' || i || ' prints', 'Mount EF, Optics Good, Body Good, Number ' || i FROM range(9) t(i)"
    )
    con.execute("COMMENT ON COLUMN lenses.noted IS 'text: what the shop noted'")
    con.execute(
        "CREATE TABLE names AS SELECT '我们的房间非常安静而且很干净，服务员也很友好，早餐的种类也很多，我们下次还会再来住的' AS said FROM range(3)"
    )
    with uql.attach(con, ledger=":memory:") as connection:
        fields = connection.catalog.table(("lenses",)).fields
        assert [f.name for f in fields if f.is_unstructured] == ["name", "said", "noted"]
    scope = scope_of(con, "Which lens is from Canon?")
    assert [f.name for f in scope.sources["lenses"].fields if f.is_unstructured] == ["said", "noted"]
    assert [f.name for f in scope.sources["names"].fields if f.is_unstructured] == ["said"]


def test_foreign_keys_follow_from_names_and_values() -> None:
    con = database()
    con.execute("CREATE TABLE visits AS SELECT i AS id, ['Ada', 'Bo', 'Cy'][1 + i % 3] AS whom FROM range(12) t(i)")
    links = {str(link) for link in scope_of(con, "visits").links}
    assert links == {"letters.shop_id = shops.id", "visits.whom = shops.name"}


def test_a_number_that_happens_to_be_among_the_keys_is_no_foreign_key() -> None:
    con = database()
    con.execute("CREATE TABLE dice AS SELECT 1 + i % 3 AS eyes FROM range(12) t(i)")
    assert not any("dice" in str(link) for link in scope_of(con, "dice").links)


def test_values_that_stand_in_the_question_are_shown_with_their_columns() -> None:
    scope = scope_of(database(), "How many letters did Ada's shop in Leeds get?")
    assert "Values in the question: shops.name 'Ada', shops.city 'Leeds'" in schema_text(scope)


def test_private_columns_are_not_shown() -> None:
    text = schema_text(scope_of(database(), "What is the phone of the owner with 0113-1?"))
    assert "owner_phone" not in text and "0113" not in text


def test_eighteen_tables_fit_in_four_thousand_tokens(hospital: duckdb.DuckDBPyConnection) -> None:
    scope = scope_of(hospital, "What did the prescriptions of patient number 7 cost?")
    assert len(scope.sources) == 18
    text = schema_text(scope, tokens=4_000)
    assert len(text) <= 4_000 * CHARS_A_TOKEN
    assert all(f"{topic}s (" in text for topic in TOPICS)
    assert "patients.id" in text and "prescription_measure_7" in text
    small = schema_text(scope, tokens=1_000)
    assert len(small) <= 1_000 * CHARS_A_TOKEN and "prescriptions (" in small


@pytest.mark.thorough
def test_the_tables_of_the_question_come_first_and_their_keys_are_found(hospital: duckdb.DuckDBPyConnection) -> None:
    for topic in TOPICS[5:8]:
        scope = scope_of(hospital, f"What is the highest {topic} measure 3 of each day?")
        assert topic + "s" in list(scope.sources)[:2], topic
    links = {str(link) for link in scope_of(hospital, "costs").links}
    assert "costs.patient_id = patients.id" in links


def test_a_shortlist_keeps_the_nearest_tables(hospital: duckdb.DuckDBPyConnection) -> None:
    question = "Which allergies do patients on the ward have?"
    near = shortlist(scope_of(hospital, question), tables=5)
    assert {"patients", "wards"} <= set(near.sources) and 5 <= len(near.sources) < 18


def test_the_model_chooses_relevant_columns_where_there_are_many_tables(hospital: duckdb.DuckDBPyConnection) -> None:
    shop = Connected(
        [
            Scripted("columns", {"columns": ["devices.device_name", "wards.id"]}),
            Scripted(
                "planner",
                {"cannot": "", "nodes": [{"kind": "uql", "name": "n", "sql": "SELECT count(*) AS n FROM devices"}]},
            ),
        ]
    )
    con = uql.attach(hospital, model=shop.model, ledger=":memory:")
    answer = con.ask("How many devices are there?")
    assert answer.value == 40
    prompt = shop.prompts("planner")[0]
    assert "device_name VARCHAR" in prompt and "(relevant)" in prompt and len(prompt) <= 4_000 * CHARS_A_TOKEN


def test_a_database_without_tables_says_so() -> None:
    with pytest.raises(QuestionError, match="no tables"):
        scope_of(duckdb.connect(), "anything")


def test_values_and_words_of_large_tables_are_found_beyond_the_rows_that_are_looked_at() -> None:
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE members AS SELECT i AS id, CASE i WHEN 4321 THEN 'Alice Johnson' ELSE 'member ' || i END AS name FROM range(5000) t(i)"
    )
    source = scope_of(con, "How many assists did Alice Johnson have?").sources["members"]
    assert ("name", "Alice Johnson") in source.matches
    assert set(source.words["name"]) == {"Alice", "Johnson"}
    nobody = scope_of(con, "Who made the highest number of assists?").sources["members"]
    assert nobody.matches == () and nobody.words["name"] == ()


def test_a_key_that_some_rows_share_is_pointed_to_by_a_column_called_like_its_table() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE hotels AS SELECT 'h' || (i % 20) AS id, 'Hotel ' || (i % 20) AS name FROM range(23) t(i)")
    con.execute(
        "CREATE TABLE reviews AS SELECT i AS review_id, 'h' || (i * 3 % 20) AS hotel_id, 'A quiet house, number ' || i AS review "
        "FROM range(90) t(i)"
    )
    assert [str(link) for link in discover("", Catalog(con), None).links] == ["reviews.hotel_id = hotels.id"]


def test_a_value_named_in_full_is_not_taken_for_another_like_it() -> None:
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE tweets AS SELECT i AS id, ['American', 'Virgin America', 'United'][1 + i % 3] AS airline FROM range(90) t(i)"
    )
    found = discover("How many tweets are about Virgin America?", Catalog(con), None)
    assert found.sources["tweets"].matches == (("airline", "Virgin America"),)


def test_a_word_within_a_name_is_no_part_of_it() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE critics AS SELECT 'Kim Sayles ' || i AS critic, i AS n FROM range(3000) t(i)")
    found = discover("What do the critics say?", Catalog(con), None)
    assert found.sources["critics"].words["critic"] == ()


def test_a_view_without_an_end_and_one_of_a_table_that_is_gone_are_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("uql.nl.schema.discover.LOOK_SECONDS", 1.0)
    con = duckdb.connect()
    con.execute("CREATE TABLE gone (a INTEGER); CREATE TABLE shops AS SELECT 1 AS id; CREATE VIEW old AS FROM gone")
    con.execute(
        "CREATE VIEW endless AS WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) FROM r WHERE n < 0"
    )
    con.execute("DROP TABLE gone")
    began = time.monotonic()
    assert list(scope_of(con, "how many shops?").sources) == ["shops"]
    assert time.monotonic() - began < 30
    assert "endless is left out: it cannot be read within 1 s" in caplog.text and "old is left out" in caplog.text
    for name in ("old", "endless"):
        with pytest.raises(DataError):
            discover("how many?", Catalog(con), None, tables=[name])
