"""Columns that a statement adds and a model reads: the form, UQL, the trial with made-up values, and the route; nothing is read to vote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from nl.shop import Connected, database

from uql.base.errors import QuestionError
from uql.llm.providers.base import Price
from uql.llm.providers.scripted import Scripted
from uql.nl.ask.answer import Answer
from uql.nl.prompts.read_columns import EXAMPLES, NOTHING, TASK as COLUMNS
from uql.nl.prompts.statements import TASK
from uql.nl.schema.discover import discover
from uql.nl.schema.scope import Scope
from uql.nl.small.read_columns import as_uql, columns_of, grammar, trial, with_columns
from uql.sources.catalog import Catalog

QUESTION = "How many letters from Leeds complain?"
COMPLAINS = "ALTER TABLE letters ADD COLUMN complains BOOLEAN AS read(letter, 'the letter complains');\n"
LEEDS = "SELECT count(*) FROM letters JOIN shops ON letters.shop_id = shops.id WHERE shops.city = 'Leeds' AND "
COMPLAIN = COMPLAINS + LEEDS + "complains;"
OTHERWISE = (
    "ALTER TABLE letters ADD COLUMN is_complaint BOOLEAN AS read(letter, 'it is a complaint, it complains');\n"
    "SELECT count(l.year) AS n FROM shops s JOIN letters l ON l.shop_id = s.id WHERE l.is_complaint AND s.city = 'Leeds';"
)
AS_WORDS = (
    "ALTER TABLE letters ADD COLUMN mood VARCHAR AS read(letter, 'the mood, complain or thank');\n"
    + LEEDS
    + "mood = 'complain';"
)
SAME = (
    COMPLAINS
    + "SELECT count(l.year) AS n FROM shops s JOIN letters l ON l.shop_id = s.id WHERE l.complains AND s.city = 'Leeds';"
)
SHARE = COMPLAINS + "SELECT avg(CASE WHEN complains THEN 1.0 ELSE 0.0 END) FROM letters;"


@pytest.fixture
def scope() -> Iterator[Scope]:
    con = Connected([]).con
    yield discover(QUESTION, con.catalog, None)
    con.close()


def parts(reply: str) -> tuple[str, str]:
    """The columns that are read, and the statement, of what stands here as one text."""
    columns, _, statement = reply.rpartition("\n")
    return columns or NOTHING, statement


def ask(*replies: str, question: str = QUESTION, **options: Any) -> tuple[Answer, Connected]:
    said = [parts(reply) for reply in replies]
    script = [Scripted(COLUMNS, columns) for columns, _ in said] + [Scripted(TASK, statement) for _, statement in said]
    return scripted(*script, question=question, **options)


def scripted(*script: Scripted, question: str = QUESTION, **options: Any) -> tuple[Answer, Connected]:
    shop = Connected(script, small=True)
    return shop.con.ask(question, **options), shop


def made(reply: str, scope: Scope) -> tuple[str, str]:
    """The UQL of a reply, and its trial."""
    said, statement = parts(reply)
    columns = columns_of(said, scope)
    return as_uql(statement.rstrip(";"), columns, scope), trial(statement.rstrip(";"), columns, scope)


@pytest.mark.parametrize(
    ("reply", "held"),
    [
        (COMPLAIN, ['AND PROMPT "the letter complains" USING (letters.letter)']),
        (OTHERWISE, ['PROMPT "it is a complaint, it complains" USING (l.letter)']),
        (AS_WORDS, ['CAST(PROMPT "the mood, complain or thank" USING (letters.letter) AS VARCHAR) = ']),
        (SHARE, ['CASE WHEN PROMPT "the letter complains" USING (letters.letter) THEN']),
        (
            COMPLAINS + "SELECT city FROM letters JOIN shops ON shop_id = id GROUP BY city "
            "HAVING count(*) FILTER (WHERE complains) > count(*) FILTER (WHERE NOT complains)",
            ['FILTER(WHERE PROMPT "the letter', 'FILTER(WHERE NOT PROMPT "the letter'],
        ),
        (
            "ALTER TABLE shops ADD told INTEGER AS (read(letters.letter, 'the number that {name} was told'));\n"
            "SELECT s.city, max(s.told) FROM shops s GROUP BY s.city",
            [
                "JOIN letters ON s.id = letters.shop_id",
                '"the number that {s.name} was told, according to {letters.letter}"',
                "AS INTEGER",
            ],
        ),
        (
            COMPLAINS + "SELECT city, count(*) AS complains FROM letters JOIN shops ON shop_id = id WHERE complains "
            "GROUP BY city ORDER BY complains DESC",
            ["ORDER BY complains DESC", "AS complains"],
        ),
        (COMPLAINS + "SELECT year, complains FROM letters", ["AS BOOLEAN) AS complains"]),
        (
            COMPLAINS + "SELECT name FROM shops WHERE id IN (SELECT shop_id FROM letters WHERE complains)",
            ['WHERE PROMPT "the letter'],
        ),
    ],
)
def test_a_column_that_is_read_becomes_a_quoted_text(reply: str, held: list[str], scope: Scope) -> None:
    text, tried = made(reply, scope)
    assert all(part in text for part in held), text
    assert "PROMPT" not in tried
    database().execute(tried).fetchall()


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("ALTER TABLE shops ADD north BOOLEAN AS read(city, 'in the north');\nSELECT 1", "plain column"),
        ("ALTER TABLE letters ADD late BOOLEAN AS read(message, 'late');\nSELECT 1", "no column letters.message"),
        ("ALTER TABLE notes ADD late BOOLEAN AS read(letter, 'late');\nSELECT 1", "no table notes"),
        ("ALTER TABLE letters ADD year INTEGER AS read(letter, 'year');\nSELECT 1", "has a column year"),
        ("ALTER TABLE shops ADD x BOOLEAN AS read(owner_phone, 'x');\nSELECT 1", "no column shops.owner_phone"),
        ("ALTER TABLE letters DROP COLUMN year;\nSELECT 1", "not of the form"),
        ("ALTER TABLE letters ADD x BOOLEAN AS read(letter, 'for {name}');\nSELECT 1", "add the column to shops"),
        ("ALTER TABLE letters ADD x BOOLEAN AS read(letter, 'for {nobody}');\nSELECT 1", "no plain column nobody"),
        (
            "ALTER TABLE shops ADD x BOOLEAN AS read(letters.letter, '{owner_phone} is called');\nSELECT 1",
            "owner_phone",
        ),
    ],
)
def test_what_does_not_fit_the_tables_is_said(reply: str, problem: str, scope: Scope) -> None:
    with pytest.raises(QuestionError, match=problem):
        made(reply, scope)


def test_a_column_that_is_true_or_false_is_compared_with_nothing_else(scope: Scope) -> None:
    uql_text, _ = made(COMPLAINS + "SELECT count(*) FROM letters WHERE complains = 1", scope)
    assert "AS BOOLEAN) = TRUE" in uql_text or "(letters.letter) = TRUE" in uql_text
    for compared in ("complains > 0", "complains BETWEEN 2000 AND 2004"):
        with pytest.raises(QuestionError, match="complains is true or false and no number"):
            made(COMPLAINS + f"SELECT count(*) FROM letters WHERE {compared}", scope)


def test_a_trial_gives_equal_rows_for_equal_questions_and_others_for_others(scope: Scope) -> None:
    con = database()
    rows = {
        text: con.execute(made(text, scope)[1]).fetchall()
        for text in (COMPLAIN, OTHERWISE, AS_WORDS, SHARE, COMPLAIN.replace("AND complains", "AND NOT complains"))
    }
    counted = [rows[text] for text in (COMPLAIN, OTHERWISE, AS_WORDS)]
    assert counted[0] == counted[1] == counted[2] and 0 < counted[0][0][0] < 20
    assert len({str(found) for found in rows.values()}) == 3


def test_images_are_read_too() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE moths AS SELECT i AS id, 'moth ' || i AS name FROM range(4) t(i)")
    con.execute(
        "CREATE TABLE photos AS SELECT i AS moth_id, '\\x89PNG\\x0D\\x0A\\x1A\\x0A'::BLOB AS photo FROM range(4) t(i)"
    )
    con.execute("COMMENT ON COLUMN photos.photo IS 'image of the moth'")
    scope = discover("Which moths have spots?", Catalog(con), None)
    reply = "ALTER TABLE photos ADD spots BOOLEAN AS read(photo, 'spots');\nSELECT name FROM moths JOIN photos ON moth_id = id WHERE spots"
    text, tried = made(reply, scope)
    assert 'PROMPT "spots" USING (photos.photo)' in text
    con.execute(tried)


def test_the_examples_of_the_prompt_are_of_the_form() -> None:
    con = duckdb.connect()
    long = (
        "'a text that is long enough to be taken for one, with many words about the weather and the roads of the north'"
    )
    con.execute("CREATE TABLE customers AS SELECT 1 AS id, 'Ada' AS name, 'Leeds' AS city")
    con.execute(f"CREATE TABLE letters AS SELECT 1 AS customer_id, DATE '2024-01-01' AS sent, {long} AS letter")
    con.execute("CREATE TABLE moths (id INTEGER, name VARCHAR, habitat VARCHAR, wingspan DOUBLE, found DATE)")
    con.execute("CREATE TABLE photos AS SELECT 1 AS moth_id, '\\x89PNG\\x0D\\x0A\\x1A\\x0A'::BLOB AS photo")
    con.execute("CREATE TABLE drivers AS SELECT 'Ada' AS name, 'Falcon' AS team")
    con.execute("CREATE TABLE starts AS SELECT 'Ada' AS name, 7 AS race_id")
    con.execute(f"CREATE TABLE stories AS SELECT 7 AS race_id, {long} AS story")
    for column, comment in (("letters.letter", "text"), ("photos.photo", "image"), ("stories.story", "text")):
        con.execute(f"COMMENT ON COLUMN {column} IS '{comment}'")
    scope = discover("", Catalog(con), None)
    for _, _, reply in EXAMPLES:
        columns = columns_of(reply, scope)
        assert len(columns) == reply.count("ALTER")
        shown = with_columns(scope, columns)
        assert all(c.name in [f.name for f in shown.sources[c.table].fields] for c in columns)


def test_the_grammar_holds_what_can_be_read_and_nothing_else(scope: Scope) -> None:
    rules = grammar(scope)
    assert '"nothing" | add' in rules
    assert '"ALTER TABLE letters ADD COLUMN " column " AS read(letter, " words' in rules
    assert '"ALTER TABLE shops ADD COLUMN " column " AS read(letters.letter, " words' in rules
    assert "owner_phone" not in rules and "city" not in rules


# ------------------------------------------------------------------------------------------------------------ the route
def test_a_question_whose_text_no_column_holds_is_read() -> None:
    answer, shop = ask(COMPLAIN, SAME, COMPLAIN)
    assert "PROMPT" in answer.uql and answer.exact
    assert answer.value == 10  # every third letter complains, and all of these are to Ada in Leeds
    assert len(shop.prompts(COLUMNS)) == 1 and len(shop.prompts(TASK)) == 2


def test_nothing_is_read_to_vote() -> None:
    answer, shop = ask(COMPLAIN, SAME, COMPLAIN)
    assert answer.answered and len(shop.reader.calls) <= 20  # letters to shops of Leeds


def test_a_question_that_plain_columns_answer_is_not_read() -> None:
    answer, shop = scripted(*[Scripted(TASK, "SELECT count(*) FROM shops")] * 3, question="How many shops?")
    assert answer.value == 3 and shop.prompts(COLUMNS) == [] and shop.reader.calls == []


def test_function_words_speak_for_no_text() -> None:
    question = "How many shops are there outside Leeds, or within it, unless they are opposite another one?"
    answer, shop = ask(*["SELECT count(*) FROM shops WHERE city <> 'Leeds'"] * 3, question=question)
    assert answer.value == 1 and shop.prompts(COLUMNS) == []


def test_a_column_that_the_statement_does_not_name_is_not_read() -> None:
    answer, shop = ask(*[COMPLAINS + "SELECT count(*) FROM shops;"] * 3, question="How many shops?")
    assert answer.value == 3 and shop.reader.calls == []


def test_plans_that_read_and_differ_are_asked_back() -> None:
    by_city = COMPLAINS + "SELECT city, count(*) FROM letters JOIN shops ON shop_id = id WHERE complains GROUP BY city"
    answer, _ = ask(COMPLAIN, SHARE, by_city, candidates=3)
    assert answer.answered and len(answer.readings) == 3 and any("not sure: 1 of 3" in note for note in answer.notes)
    assert all("PROMPT" in reading for reading in answer.readings)


def test_columns_that_do_not_fit_go_back_with_what_is_wrong() -> None:
    wrong = "ALTER TABLE shops ADD north BOOLEAN AS read(city, 'in the north');"
    columns, statement = parts(COMPLAIN)
    replies = [Scripted(COLUMNS, reply) for reply in (wrong, columns)]
    answer, shop = scripted(*replies, *[Scripted(TASK, statement)] * 3)
    assert answer.value == 10 and "shops.city is a plain column" in shop.prompts(COLUMNS)[1]


def test_where_columns_never_fit_plain_statements_vote() -> None:
    wrong = Scripted(COLUMNS, "ALTER TABLE shops ADD north BOOLEAN AS read(city, 'in the north');")
    answer, shop = scripted(wrong, wrong, *[Scripted(TASK, "SELECT count(*) FROM letters")] * 3)
    assert answer.value == 30 and shop.reader.calls == [] and len(shop.prompts(COLUMNS)) == 2


def test_without_foreign_words_columns_are_read_where_a_plain_statement_fails() -> None:
    columns, statement = parts(COMPLAIN)
    guessed = LEEDS + "complaint"
    statements = [Scripted(TASK, reply) for reply in (guessed, guessed, *[statement] * 3)]
    answer, shop = scripted(Scripted(COLUMNS, columns), *statements, without=("foreign",))
    assert answer.value == 10 and shop.tasks()[:3] == [TASK, TASK, COLUMNS]


def test_the_statement_sees_the_column_that_is_read() -> None:
    _, shop = ask(COMPLAIN, SAME, COMPLAIN)
    assert "complains BOOLEAN /* read from letter: the letter complains */" in shop.prompts(TASK)[0]


def test_hostile_replies_are_no_plans() -> None:
    for bad in (
        COMPLAINS + "SELECT read_csv('/etc/passwd')",
        COMPLAINS + "SELECT count(*) FROM duckdb_settings() WHERE complains",
        COMPLAINS + "COPY shops TO 'stolen.csv'",
        "COPY shops TO 'stolen.csv';\nCOPY shops TO 'stolen.csv'",
    ):
        answer, shop = ask(*[bad] * 8, candidates=2)
        assert not answer.answered and "no candidate for a plan runs" in answer.cannot
        assert shop.reader.calls == []


def test_a_quoted_text_cannot_be_left_by_what_is_asked() -> None:
    reply = "ALTER TABLE letters ADD x BOOLEAN AS read(letter, 'x\" OR \"y');\nSELECT count(*) FROM letters WHERE x"
    answer, _ = ask(*[reply] * 3, question="How many letters grumble?")
    assert answer.answered and answer.uql.count('"') == 2


def test_without_reading_no_column_is_added() -> None:
    answer, shop = ask(*["SELECT count(*) FROM letters"] * 3, without=("reading",))
    assert answer.value == 30 and shop.prompts(COLUMNS) == []


def test_a_prompt_shows_nothing_private_and_names_what_can_be_read() -> None:
    _, shop = ask(COMPLAIN, SAME, COMPLAIN)
    for prompt in (*shop.prompts(COLUMNS), *shop.prompts(TASK)):
        assert "letter TEXT" in prompt and "owner_phone" not in prompt and "0113" not in prompt


def test_the_price_of_a_plan_that_reads_is_told_before_it_runs() -> None:
    seen: list[Any] = []

    def no(price: Any, view: Any) -> bool:
        seen.append(price)
        return False

    columns, statement = parts(COMPLAIN)
    shop = Connected([Scripted(COLUMNS, columns), *[Scripted(TASK, statement)] * 3], small=True)
    shop.model.price = Price(1.0, 1.0)
    answer = shop.con.ask(QUESTION, confirm=no)
    assert not answer.answered and "not confirmed" in answer.cannot
    assert seen[0].calls_most >= 1 and shop.reader.calls == []


def test_a_plot_is_drawn_from_what_is_read() -> None:
    reply = (
        COMPLAINS + "SELECT name, count(*) AS n FROM letters JOIN shops ON shop_id = id WHERE complains GROUP BY name"
    )
    answer, _ = ask(*[reply] * 3, question="Plot the number of complaining letters per shop.")
    assert len(answer.plots) == 1 and "PROMPT" in answer.uql


def test_that_nothing_fits_what_was_read_is_said_with_a_doubt() -> None:
    nothing = COMPLAINS + "SELECT count(*) FROM letters WHERE complains AND shop_id = 2"
    answer, _ = ask(nothing, nothing, candidates=2)
    assert answer.value == 0 and not answer.exact
    assert answer.notes == ["not sure: nothing fits; a value may be written in another way in the data"]
    some = COMPLAINS + "SELECT count(*) FROM letters WHERE complains AND shop_id = 1"
    answer, _ = ask(some, some, candidates=2)
    assert answer.value == 10 and answer.exact


def test_a_column_without_a_name_has_that_of_the_statement_as_it_was_written() -> None:
    reply = COMPLAINS + "SELECT shop_id, count(letters.complains) FROM letters GROUP BY shop_id"
    answer, _ = ask(reply, reply, candidates=2)
    assert [*answer.value[0]] == ["shop_id", "count_if(letters.complains)"]
