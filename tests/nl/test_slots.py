"""Queries with typed slots: the form, what is checked, the route to them, and that nothing is read to vote."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import duckdb
import pytest
from nl.shop import Connected

import uql
from uql.base.errors import QuestionError
from uql.benchmarks.nl.derive import drawn
from uql.benchmarks.nl.drawn import fault
from uql.llm.providers.base import Price
from uql.llm.providers.scripted import Scripted
from uql.nl.ask.answer import Answer
from uql.nl.prompts import slots as words
from uql.nl.prompts.statements import TASK
from uql.nl.schema.discover import discover
from uql.nl.schema.scope import Scope
from uql.nl.small.slots import parse, render
from uql.nl.small.slots_grammar import grammar
from uql.sources.catalog import Catalog

QUESTION = "How many letters from Leeds complain?"
COMPLAIN = "READ letters.letter yes_no: the letter complains\nWHERE answer AND shops.city = 'Leeds'\nSELECT count(*)"
OTHERWISE = "READ letters.letter yes_no: it is a complaint that complains\nWHERE shops.city = 'Leeds' AND answer\nSELECT count(*)"
SHARE = "READ letters.letter yes_no: the letter complains\nSELECT percent(answer)"
LIKE = "SELECT count(*) FROM letters WHERE letter LIKE '%complain%'"
INVENTED = "SELECT count(*) FROM letters WHERE complains"


@pytest.fixture
def scope() -> Iterator[Scope]:
    con = Connected([]).con
    yield discover(QUESTION, con.catalog, None)
    con.close()


def said(*queries: str, task: str = words.TASK) -> list[Scripted]:
    return [Scripted(task, query) for query in queries]


def ask(*replies: Scripted, question: str = QUESTION, **options: Any) -> tuple[Answer, Connected]:
    shop = Connected(replies, small=True)
    return shop.con.ask(question, **options), shop


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        (COMPLAIN, ['PROMPT "the letter complains" USING (letters.letter)', "shops.city = 'Leeds'", "JOIN"]),
        (SHARE, ["avg(CASE WHEN", "FROM letters"]),
        (
            "READ letters.letter number: the number that {shops.name} was told\nGROUP BY shops.city\nSELECT max(answer)",
            [
                "{shops.name} was told, according to {letters.letter}",
                "AS DOUBLE",
                "GROUP BY shops.city",
                "shops.city AS city",
            ],
        ),
        (
            "READ letters.letter text: the topic\nGROUP BY answer\nSELECT count(*)\nORDER BY count(*) DESC\nLIMIT 1",
            ["AS VARCHAR", "ORDER BY n DESC LIMIT 1"],
        ),
        (
            "READ letters.letter yes_no: it complains\nALSO letters.letter yes_no: it is late\nSELECT shops.name",
            ['"it complains"', '"it is late"'],
        ),
        ("READ letters.letter number: days\nWHERE answer > 3\nSELECT avg(answer)", ["> 3", "avg(CAST("]),
        ("READ letters.letter yes_no: late\nWHERE NOT answer\nGROUP BY decade(letters.year)\nSELECT count(*)", ["NOT"]),
    ],
)
def test_slots_become_one_statement(query: str, parts: list[str], scope: Scope) -> None:
    slots = parse(query)
    assert slots is not None
    text = render(slots, scope)
    assert all(part in text for part in parts), text
    assert fault(query, scope) == ""


def test_queries_that_ask_the_same_have_one_normal_form() -> None:
    one, other, another = parse(COMPLAIN), parse(OTHERWISE), parse(SHARE)
    assert one and other and another
    assert one.normal_form == other.normal_form != another.normal_form


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("READ shops.city yes_no: it is in the north\nSELECT count(*)", "plain column"),
        ("READ letters.letter yes_no: late\nWHERE letters.letter = 'x'\nSELECT count(*)", "is TEXT"),
        ("READ letters.letter yes_no: late\nSELECT letters.letter", "is TEXT"),
        ("READ letters.message yes_no: late\nSELECT count(*)", "no column letters.message"),
        ("READ letters.letter yes_no: late\nSELECT shops.owner_phone", "no column shops.owner_phone"),
        ("READ letters.letter yes_no: {shops.owner_phone} is called\nSELECT count(*)", "no column shops.owner_phone"),
        ("READ letters.letter yes_no: late\nSELECT avg(answer)", "no number"),
        ("READ letters.letter text: topic\nWHERE answer\nSELECT count(*)", "no condition"),
        ("READ letters.letter yes_no: late\nSELECT read_csv('/etc/passwd')", "no function"),
        ("READ letters.letter yes_no: late\nWHERE 1 = 1; DROP TABLE shops\nSELECT count(*)", "no column"),
        ("READ letters.letter yes_no: late\nSELECT count(*)\nLIMIT many", "LIMIT"),
        ("READ letters.letter yes_no: late\nSELECT count(*)\nORDER BY count(*) SIDEWAYS", "no order"),
        ("READ letters.letter number: days\nSELECT count(*)", "answer is not used"),
        (
            "READ letters.letter yes_no: late\nWHERE shops.city = 'York' AND shops.city = 'Leeds'\nSELECT count(*)",
            "cannot be both",
        ),
        ("READ letters.letter yes_no: late", "no SELECT"),
        ("SELECT count(*) FROM letters", "no READ"),
        ("", "no READ"),
        ('{"read": "letters.letter"', "none of the form"),
    ],
)
def test_what_does_not_fit_the_columns_is_said(query: str, problem: str, scope: Scope) -> None:
    with pytest.raises(QuestionError, match=problem):
        slots = parse(query)
        assert slots is not None
        render(slots, scope)


def test_every_text_of_the_grammar_is_a_valid_plan(scope: Scope) -> None:
    rules, random = grammar(scope), Random(0)
    texts = [drawn(rules, random) for _ in range(120)]
    faults = [why for text in texts if (why := fault(text, scope)) and "answer is not used" not in why]
    assert len(faults) <= 6, faults
    assert any(text.startswith("READ letters.letter") for text in texts) and "owner_phone" not in rules


def test_a_scope_without_texts_has_no_grammar() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT 1 AS a")
    assert grammar(discover("How many?", Catalog(con), None)) == ""


# ------------------------------------------------------------------------------------------------------------ the route
def test_a_question_whose_text_no_column_holds_is_read() -> None:
    answer, shop = ask(*said(COMPLAIN, OTHERWISE), *said(LIKE, INVENTED, task=TASK))
    assert answer.answered and "PROMPT" in answer.uql and answer.exact
    assert answer.value == 10  # every third letter complains, and all of these are to Ada in Leeds
    assert len(shop.prompts(words.TASK)) == 2


def test_nothing_is_read_to_vote() -> None:
    answer, shop = ask(*said(COMPLAIN, OTHERWISE), *said(LIKE, LIKE, task=TASK))
    texts = 20  # letters to shops of Leeds
    assert answer.answered and len(shop.reader.calls) <= texts


def test_a_question_that_plain_columns_answer_is_not_read() -> None:
    counted = "SELECT count(*) FROM shops"
    answer, shop = ask(*said("READ nothing"), *said(counted, counted, counted, task=TASK), question="How many shops?")
    assert answer.value == 3 and "PROMPT" not in answer.uql and shop.reader.calls == []
    assert len(shop.prompts(words.TASK)) == 1


def test_where_the_kinds_differ_evidence_decides() -> None:
    counted = "SELECT count(*) FROM letters"
    plain, _ = ask(
        *said(SHARE, SHARE), *said(counted, counted, counted, task=TASK), question="How many letters are there?"
    )
    assert plain.value == 30
    read, _ = ask(
        *said(SHARE, SHARE), *said(counted, counted, counted, task=TASK), question="What share of letters grumble?"
    )
    assert "PROMPT" in read.uql


def test_plans_that_read_and_differ_are_asked_back() -> None:
    share = "READ letters.letter yes_no: the letter complains\nGROUP BY shops.city\nSELECT percent(answer)"
    answer, _ = ask(*said(COMPLAIN, SHARE, share), *said(LIKE, LIKE, LIKE, LIKE, LIKE, LIKE, task=TASK))
    assert answer.answered and len(answer.readings) == 3 and any("not sure: 1 of 3" in note for note in answer.notes)
    assert all("PROMPT" in reading for reading in answer.readings)


def test_a_query_that_does_not_fit_goes_back_with_what_is_wrong() -> None:
    wrong = "READ shops.city yes_no: in the north\nSELECT count(*)"
    answer, shop = ask(
        *said(wrong, COMPLAIN, COMPLAIN), *said(LIKE, LIKE, task=TASK), question="How many letters grumble?"
    )
    assert answer.answered
    back = shop.prompts(words.TASK)[1]
    assert "shops.city is a plain column" in back and "Write it again" in back


def test_a_value_that_no_row_has_is_the_near_one_or_that_of_the_column_that_holds_it() -> None:
    for condition in ("shops.city = 'leeds'", "shops.name = 'Leeds'"):
        query = f"READ letters.letter yes_no: the letter complains\nWHERE answer AND {condition}\nSELECT count(*)"
        answer, _ = ask(*said(query, query), *said(LIKE, LIKE, task=TASK))
        assert "shops.city = 'Leeds'" in answer.uql and answer.value == 10
    answer, _ = ask(*said(query, query), *said(LIKE, LIKE, LIKE, LIKE, task=TASK), without=("values",))
    assert "shops.name = 'Leeds'" in answer.uql


def test_a_value_that_the_question_does_not_name_counts_less() -> None:
    york = COMPLAIN.replace("Leeds", "York")
    answer, _ = ask(*said(york, COMPLAIN, COMPLAIN), *said(LIKE, LIKE, LIKE, LIKE, task=TASK))
    assert "shops.city = 'Leeds'" in answer.uql


def test_hostile_replies_are_no_plans() -> None:
    for bad in (
        "READ letters.letter yes_no: x\nSELECT read_csv('/etc/passwd')",
        "READ letters.letter yes_no: x\nSELECT count(*) FROM duckdb_settings()",
        "COPY shops TO 'stolen.csv'",
    ):
        file = "SELECT * FROM read_csv('/etc/passwd')"
        answer, shop = ask(*said(*[bad] * 8), *said(*[file] * 8, task=TASK), candidates=2)
        assert not answer.answered and "no candidate for a plan runs" in answer.cannot
        assert shop.reader.calls == []


def test_a_quoted_text_cannot_be_left_by_what_is_asked() -> None:
    query = 'READ letters.letter yes_no: x" OR "y\nSELECT count(*)'
    answer, _ = ask(*said(query, query), *said(LIKE, LIKE, task=TASK), question="How many letters grumble?")
    assert answer.answered and answer.uql.count('"') == 2


def test_without_slots_nothing_is_read_and_without_statements_all_is() -> None:
    counted = "SELECT count(*) FROM letters"
    answer, shop = ask(*said(counted, counted, counted, task=TASK), without=("slots",))
    assert answer.value == 30 and shop.prompts(words.TASK) == []
    answer, shop = ask(*said(COMPLAIN, OTHERWISE), without=("statements",))
    assert "PROMPT" in answer.uql and shop.prompts(TASK) == []


def test_the_budget_ends_the_vote() -> None:
    answer, shop = ask(*said(COMPLAIN, OTHERWISE), *said(LIKE, task=TASK), budget=1)
    assert len(shop.tasks()) == 1 and not answer.exact


def test_a_prompt_shows_nothing_private_and_names_what_is_read() -> None:
    _, shop = ask(*said(COMPLAIN, OTHERWISE), *said(LIKE, LIKE, task=TASK))
    (prompt, *_) = shop.prompts(words.TASK)
    assert "letter TEXT" in prompt and "owner_phone" not in prompt and "0113" not in prompt


def test_the_price_of_a_plan_that_reads_is_told_before_it_runs() -> None:
    seen: list[Any] = []

    def no(price: Any, view: Any) -> bool:
        seen.append(price)
        return False

    shop = Connected([*said(COMPLAIN, OTHERWISE), *said(LIKE, LIKE, task=TASK)], small=True)
    shop.model.price = Price(1.0, 1.0)
    answer = shop.con.ask(QUESTION, confirm=no)
    assert not answer.answered and "not confirmed" in answer.cannot
    assert seen[0].calls_most >= 1 and shop.reader.calls == []


def test_a_plot_is_drawn_from_what_is_read() -> None:
    query = "READ letters.letter yes_no: the letter complains\nWHERE answer\nGROUP BY shops.name\nSELECT count(*)"
    answer, _ = ask(
        *said(query, query), *said(LIKE, LIKE, task=TASK), question="Plot the number of complaining letters per shop."
    )
    assert len(answer.plots) == 1 and "PROMPT" in answer.uql


def test_a_time_is_compared_with_a_day_by_its_day() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE notes AS SELECT i AS id, TIMESTAMP '2024-05-01 10:00' AS sent FROM range(4) t(i)")
    con.execute(
        "ALTER TABLE notes ADD COLUMN body VARCHAR DEFAULT 'a long note about the weather and the roads of the north'"
    )
    con.execute("COMMENT ON COLUMN notes.body IS 'text of the note'")
    scope = discover("notes", uql.attach(con, model="scripted:none", ledger=":memory:").catalog, None)
    query = "READ notes.body yes_no: about rain\nWHERE answer AND notes.sent = '2024-05-01'\nSELECT count(*)"
    slots = parse(query)
    assert slots is not None and "CAST(notes.sent AS DATE) = '2024-05-01'" in render(slots, scope)
    assert fault(query, scope) == ""


def test_images_are_read_too() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE moths AS SELECT i AS id, 'moth ' || i AS name FROM range(4) t(i)")
    con.execute(
        "CREATE TABLE photos AS SELECT i AS moth_id, '\\x89PNG\\x0D\\x0A\\x1A\\x0A'::BLOB AS photo FROM range(4) t(i)"
    )
    con.execute("COMMENT ON COLUMN photos.photo IS 'image of the moth'")
    scope = discover("Which moths have spots?", uql.attach(con, model="scripted:none", ledger=":memory:").catalog, None)
    assert "photos.photo" in grammar(scope)
    assert fault("READ photos.photo yes_no: spots\nWHERE answer\nSELECT moths.name", scope) == ""
