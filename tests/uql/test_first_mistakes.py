"""What users of other tools write on their first day: the right thing happens, or one line says what to write instead, and that runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hash_model import HashModel

import uql
from uql.api.connection import Connection
from uql.base import config
from uql.base.errors import BindError, ConfigError, DataError, UQLError, UQLSyntaxError
from uql.base.settings import Settings
from uql.cli import main
from uql.llm.providers import open_provider


@pytest.fixture
def con() -> Iterator[Connection]:
    with uql.connect(model=HashModel(), ledger=":memory:") as connection:
        connection.execute(
            "CREATE TABLE reviews AS SELECT i::INTEGER AS id, 1 + i % 5 AS stars, DATE '2026-01-01' + i::INTEGER AS day, "
            "'Review ' || i || ' of a film that I saw, and it went on and on' AS body FROM range(40) t(i)"
        )
        yield connection


def help_of(con: Connection, statement: str, **values: Any) -> str:
    with pytest.raises(UQLError) as error:
        con.uql(statement, **values).fetchall()
    return str(error.value.help)


# -------------------------------------------------------------------------------------------------------------- parameters
def test_a_setting_given_as_a_parameter_is_told_where_settings_stand(con: Connection) -> None:
    statement = 'SELECT COUNT(*) AS n FROM reviews WHERE "it is positive"'
    told = help_of(con, statement, budget=5)
    assert "WITH (budget = …) at the end" in told and "con.settings(budget=…)" in told
    assert con.uql(f"{statement} WITH (budget = 5)").cost.calls <= 5
    with con.settings(budget=5):
        assert con.uql(f"{statement} WITH (fresh)").cost.calls <= 5


def test_a_parameter_within_quotes_is_told_to_be_a_text_as_a_whole(con: Connection) -> None:
    for written in ("$topic", "{topic}"):
        with pytest.raises(UQLError) as error:
            con.uql(f'SELECT id FROM reviews WHERE "it is about {written}"', topic="dogs")
        assert "WHERE $what, with what=uql.sem(" in str(error.value.help)
    assert 'as a parameter it is uql.sem("…")' in help_of(
        con, "SELECT id FROM reviews WHERE $what", what="it is about dogs"
    )
    rows = con.uql("SELECT id FROM reviews WHERE $what LIMIT 1", what=uql.sem("it is about dogs")).fetchall()
    assert len(rows) == 1


# ---------------------------------------------------------------------------------------------------------------- settings
@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("error", 10, "0.1 is an interval of ±10 %"),
        ("error", "10%", "0.1 is an interval of ±10 %"),
        ("budget", "5 USD", "a limit in USD is max_cost"),
        ("max_calls", 5, "budget = 100"),
        ("api_key", "sk-1", "uql keys set openai"),
        ("base_url", "http://host/v1", 'model = "http://host/v1#NAME"'),
    ],
)
def test_a_setting_of_other_tools_is_told_what_it_is_here(name: str, value: Any, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        uql.connect(**{name: value})
    assert told in str(error.value.help)


def test_a_model_without_its_vendor_is_told_the_vendor() -> None:
    for name, whole in (
        ("gpt-4o", "openai:gpt-4o"),
        ("claude-x", "anthropic:claude-x"),
        ("qwen3:8b", "ollama:qwen3:8b"),
    ):
        with pytest.raises(ConfigError) as error:
            open_provider(name, Settings())
        assert str(error.value.help).startswith(f"did you mean {whole}? ")


# -------------------------------------------------------------------------------------------- connections and their results
def test_an_attribute_that_a_connection_has_not_is_neither_set_nor_silently_missing(con: Connection) -> None:
    with pytest.raises(AttributeError, match=r"con\.use\(budget=…\)"):
        con.budget = 5  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r'a result has it: con\.uql\("SELECT …"\)\.fetchall'):
        con.fetchall  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"con\.table\('file'\)"):
        con.read_parquet  # type: ignore[attr-defined]  # noqa: B018
    con.use(budget=5)
    assert con.configured.budget == 5


def test_methods_of_data_frames_and_relations_are_told_those_of_a_result(con: Connection) -> None:
    result = con.uql("SELECT id, body AS mood FROM reviews")
    for name, own in (
        ("fetchdf", r"\.df\(\)"),
        ("head", r"\.limit\(n\)"),
        ("dtype", r"r\[\"dtype\"\]"),
        ("type", r"\.types"),
    ):
        with pytest.raises(AttributeError, match=f"a result has no {name}: .*{own}"):
            getattr(result, name)
    assert not hasattr(result, "mood") and not result.has_run  # a look for a name runs nothing
    with pytest.raises(AttributeError, match=r"uql\.connect"):
        uql.sql  # type: ignore[attr-defined]  # noqa: B018


def test_a_text_in_a_verb_is_told_that_verbs_make_no_calls(con: Connection) -> None:
    r = con.uql("SELECT id, body FROM reviews")
    with pytest.raises(DataError) as error:
        r.filter('"it is positive"').fetchall()
    assert "FROM r WHERE" in str(error.value.help)
    assert con.uql('SELECT * FROM r WHERE "it is positive" LIMIT 1').fetchall()
    with pytest.raises(DataError) as error:
        r.filter("rating = 1").fetchall()
    assert error.value.help is None


def test_whatever_is_done_on_a_closed_connection_says_that_it_is_closed(con: Connection, tmp_path: Path) -> None:
    own = duckdb.connect(str(tmp_path / "a.duckdb"))
    attached = uql.attach(own, ledger=":memory:")
    own.close()
    con.close()
    for use in (lambda: con.tables, con.cursor, lambda: attached.uql("SELECT 1").fetchall()):
        with pytest.raises(DataError, match="the connection is closed"):
            use()
    with pytest.raises(BindError, match=r"not 'a\.duckdb'"):
        uql.attach("a.duckdb")  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------------------------- statements
@pytest.mark.parametrize(
    ("statement", "told", "cure"),
    [
        # a column beside a text
        ('WHERE body "is positive"', '"{body} is positive"', 'WHERE "{body} is positive"'),
        ('WHERE body MATCHES "a price is named"', '"{body} a price is named"', 'WHERE "in {body} a price is named"'),
        ('WHERE body IS "positive"', '"{body} positive"', 'WHERE "{body} is positive"'),
        ('WHERE "is positive" USING body', "write USING (body)", 'WHERE "is positive" USING (body)'),
        ('WHERE "is positive"(body)', '"is positive" USING (column)', 'WHERE "is positive" USING (body)'),
        ('WHERE "is positive" ON body', '"is positive" USING (column)', 'WHERE "is positive" USING (body)'),
        ('WHERE body."is positive"', '"{column} …", or "…" USING (column)', 'WHERE "{body} is positive"'),
        ('WHERE reviews."is positive"', '"is positive" without reviews before it', 'WHERE "is positive"'),
        ('WHERE "the "best" film"', r'a quote inside a text is written \" or ""', r'WHERE "the \"best\" film"'),
        # options
        ('WHERE "it is good" WITH (budget 5)', "WITH (budget = 5)", 'WHERE "it is good" WITH (budget = 5)'),
        ('WHERE "it is good" WITH (exact, budget: 5)', "WITH (budget = 5)", 'WHERE "it is good" WITH (budget = 5)'),
        ('WHERE "it is good" WITH (budget => 5)', "WITH (budget = 5)", 'WHERE "it is good" WITH (budget = 5)'),
        ('WHERE "it is good" WITH (uql.budget = 5)', "WITH (budget = 5)", 'WHERE "it is good" WITH (budget = 5)'),
        ('WHERE "it is good" WITH exact', "WITH (exact)", 'WHERE "it is good" WITH (exact)'),
        # functions of other systems
        (
            "WHERE AI.IF(prompt => ('is it good? ', body), connection_id => 'us.x')",
            'WHERE "it is positive"',
            'WHERE "it is positive"',
        ),
        ("WHERE NLfilter(body, 'positive')", 'WHERE "it is positive"', 'WHERE "it is positive"'),
        (
            "WHERE AI.CLASSIFY(body, categories => ['a', 'b']) = 'a'",
            "\"the topic\" IN ('a', 'b')",
            "WHERE \"the topic\" IN ('a', 'b')",
        ),
        (
            "WHERE ai_classify(body, ARRAY('a', 'b')) = 'a'",
            "\"the topic\" IN ('a', 'b')",
            "WHERE \"the topic\" IN ('a', 'b')",
        ),
        # comparisons
        ('WHERE stars > 3 & "it is good"', "write AND", 'WHERE stars > 3 AND "it is good"'),
        ("WHERE body IS none", "write IS NULL", "WHERE body IS NULL"),
        ("WHERE \"the mood\" IS NOT 'good'", "write <> 'good'", "WHERE \"the mood\" <> 'good'"),
        ("WHERE id = %(least)s", "a parameter is written $name", "WHERE id = 3"),
        ('WHERE year("the day it was sent") = 2026', '"…"::DATE', 'WHERE year("the day it was sent"::DATE) = 2026'),
        ("WHERE \"the mood\"::ENUM($m) = 'a'", "what=uql.sem(", "WHERE \"the mood\"::ENUM('a') = 'a'"),
        (
            'WHERE day = "the day it was written"',
            'PROMPT "the day it was written"',
            'WHERE day = PROMPT "the day it was written"',
        ),
        ("WHERE id = None", "x IS NULL", "WHERE id IS NULL"),
    ],
)
def test_a_condition_of_another_form_is_told_the_form_that_runs(
    con: Connection, statement: str, told: str, cure: str
) -> None:
    assert told in help_of(con, f"SELECT id FROM reviews {statement}")
    assert con.uql(f"SELECT id FROM reviews {cure}").columns == ["id"]


@pytest.mark.parametrize(
    ("statement", "told", "cure"),
    [
        (
            'SELECT topic, COUNT(*) AS n FROM reviews GROUP BY "what the review is about"',
            'GROUP BY "what the review is about" AS topic',
            'SELECT topic, COUNT(*) AS n FROM reviews GROUP BY "what the review is about" AS topic',
        ),
        (
            'CREATE TABLE moods (id INTEGER, mood VARCHAR DEFAULT "the mood of it")',
            "'the mood of it'; answers to a text are stored by CREATE TABLE name AS SELECT",
            "CREATE TABLE moods (id INTEGER, mood VARCHAR DEFAULT 'the mood of it')",
        ),
        ('CREATE INDEX i ON reviews ("the mood of it")', "an index cannot contain a text", "CREATE INDEX i ON reviews (id)"),
        ('VALUES ("a price")', "'a price'", "VALUES ('a price')"),
        ('SELECT "the tone"::ENUM AS t FROM reviews', "ENUM('a', 'b')", "SELECT \"the tone\"::ENUM('a', 'b') AS t FROM reviews LIMIT 1"),
        ('SELECT "the order"::STRUCT<a: INT> AS t FROM reviews', "STRUCT(a INTEGER)", 'SELECT "it"::STRUCT(a INTEGER) FROM reviews LIMIT 1'),
        ('SELECT "the actors"::ARRAY<STRING> FROM reviews', "VARCHAR[]", 'SELECT "the actors"::VARCHAR[] FROM reviews LIMIT 1'),
        ("SELECT azure_openai.create_embeddings('x', body) FROM reviews", "None", "SELECT 1"),
        ("SET threads = 'many'", "None", "SET threads = 1"),
        ('"which film is the best"', 'con.ask("which film is the best")', "SELECT 1"),
        ("Which film is best", 'con.ask("Which film is best")', "SELECT 1"),
        ("How many films are good?", 'con.ask("…")', "SELECT 1"),
        ("SELECT id FROM reviews.csv", "FROM 'reviews.csv'", "SELECT id FROM reviews"),
    ],
)  # fmt: skip
def test_a_statement_of_another_form_is_told_the_form_that_runs(
    con: Connection, statement: str, told: str, cure: str
) -> None:
    assert told in help_of(con, statement)
    con.uql(cure).fetchall()


def test_what_duckdb_says_of_its_own_statements_and_settings_is_all_that_is_said(con: Connection) -> None:
    with pytest.raises(DataError, match='syntax error at or near "TABEL"') as error:
        con.uql("ALTER TABEL reviews ADD COLUMN price INTEGER")
    assert error.value.message.startswith("DuckDB: ") and error.value.help is None
    with pytest.raises(DataError, match="Could not convert string 'many'"):
        con.uql("SET threads = 'many'")
    con.uql("SET uql.budget TO 5")  # as DuckDB writes it too
    assert con.configured.budget == 5


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ('AVG("the review is positive")', 'the share of rows for which it holds is avg(CASE WHEN "the review is positive" THEN 1 ELSE 0 END)'),
        ('SUM("the review is positive")', 'the number of rows for which it holds is sum(CASE WHEN "the review is positive" THEN 1 ELSE 0 END)'),
        ("COUNT(*) FILTER (WHERE 'yes' = \"is the review positive?\")", '"is the review positive?" is read as a string here'),
    ],
)  # fmt: skip
def test_a_statement_that_is_taken_for_a_number_or_a_string_is_warned_of(
    con: Connection, expression: str, told: str
) -> None:
    assert any(told in warning for warning in con.uql(f"SELECT {expression} AS x FROM reviews").warnings)


def test_what_is_meant_as_a_number_or_a_time_is_not_warned_of(con: Connection) -> None:
    for expression in ('AVG("how good it is, 1 to 5")', 'AVG("the price")', 'AVG("the review is positive"::INTEGER)'):
        assert con.uql(f"SELECT {expression} AS x FROM reviews").warnings == []
    assert con.uql('SELECT count(*) FROM reviews WHERE day > "2026-01-05T00:00:00"').fetchall() == [(35,)]


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("SELCT id FROM reviews", "did you mean SELECT?"),
        ("SELECT 1; SELECT id FROM reviews WEHRE id = 3", "did you mean WHERE?"),
        ("How many films are good?", 'con.ask("…")'),
        ("Which film is best", 'con.ask("Which film is best")'),
    ],
)
def test_a_misspelt_statement_is_no_change_to_a_read_only_session(con: Connection, statement: str, told: str) -> None:
    con.only_read()
    with pytest.raises(UQLSyntaxError) as error:
        con.uql(statement)
    assert told in str(error.value.help) and error.value.text == statement
    with pytest.raises(DataError, match="the session is read-only"):
        con.uql("DROP TABLE reviews")


# ------------------------------------------------------------------------------------------------------------ command line
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["How many rows are there?"], "a question in words: uql ask 'How many rows are there?'"),
        (["shop.duckdb", "which film is best"], "a question in words: uql ask shop.duckdb 'which film is best'"),
        (["SELECT 1 AS one"], "a query goes after -c: uql -c 'SELECT 1 AS one'"),
        (["-f", "SELECT 1 AS one"], "a query goes after -c: uql -c 'SELECT 1 AS one'"),
        (["help"], "did you mean uql --help?"),
        (["-c", "FROM 'prices.xlsx'"], "FROM read_xlsx('prices.xlsx') reads it"),
        (["-c", "FROM 'shots/*.PNG'"], "FROM read_blob('shots/*.PNG') reads it"),
        (["-c", "FROM 'notes.md'"], "FROM read_text('notes.md') reads it"),
        (["-c", "SHOW uql.budget"], "`uql config show` prints the settings"),
    ],
)
def test_a_command_line_of_another_form_is_told_the_form(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) in (1, 2)
    assert told in capsys.readouterr().err


def test_settings_that_may_not_be_read_are_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(config.Path, "exists", refuse)
    with pytest.raises(ConfigError, match=r"uql\.toml cannot be read") as error:
        config.load()
    assert "XDG_CONFIG_HOME" in str(error.value.help)
