"""How the words of a question stand to a database: what it holds, what only a text can tell, what is nowhere and is refused."""

from __future__ import annotations

import duckdb
import pytest
from nl.farms import database, near, scope_of

from uql.benchmarks.nl.derive import pattern
from uql.nl.schema.discover import discover
from uql.nl.small.lines.grammar import grammar
from uql.nl.small.meaning.grounding import absent, unheard, unknown_words, vague
from uql.nl.small.meaning.narrowing import narrowed
from uql.nl.small.meaning.required import flags, required_values
from uql.sources.catalog import Catalog


def test_a_word_near_to_no_name_is_to_be_read() -> None:
    question = "Which farms of Kent have sheep?"
    assert unknown_words(question, scope_of(question), near) == ["sheep"]
    assert unknown_words(question, scope_of(question), None) == []


NOTHING = [
    ("How many employees are there?", ["employees"]),
    ("What is the profit of Farm 3?", ["profit"]),
    ("How many inspectors walked over the fields?", []),  # a text tells of them
    ("How much does a visit cost?", ["cost"]),
    ("How many farms are there?", []),
    ("How many complaints are there?", []),  # a text tells of one in other words
]


@pytest.mark.parametrize(("question", "wanted"), NOTHING)
def test_what_is_counted_or_asked_for_is_somewhere(question: str, wanted: list[str]) -> None:
    scope = scope_of(question)
    assert absent(question, unknown_words(question, scope, near), scope) == wanted


UNHEARD = [
    ("How many farms are there in Paris?", ["Paris"]),
    ("How many farms are there in Kent?", []),
    ("How many notes tell of the Inspector?", []),  # it stands in a text
    ("How many farms were opened in March?", []),
    ("Which Farm is the largest?", []),
]


@pytest.mark.parametrize(("question", "wanted"), UNHEARD)
def test_a_name_that_stands_nowhere_is_found(question: str, wanted: list[str]) -> None:
    assert unheard(question, scope_of(question)) == wanted


def test_a_value_of_many_is_named_in_another_form() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE works (title VARCHAR, school VARCHAR)")
    con.execute(
        "INSERT INTO works SELECT 'Work ' || i, CASE WHEN i = 7 THEN 'Impressionism' ELSE 'School ' || i END FROM range(200) t(i)"
    )
    scope = discover("How many impressionist works are there?", Catalog(con), None)
    assert scope.sources["works"].matches == (("school", "Impressionism"),)


def test_values_of_a_table_in_order_are_those_of_all_its_rows() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE works (title VARCHAR, school VARCHAR)")
    con.execute(
        "INSERT INTO works SELECT 'Work ' || i, ['baroque', 'cubism', 'expressionism'][1 + i // 1500] FROM range(4000) t(i)"
    )
    scope = discover("How many expressionist works are there?", Catalog(con), None)
    assert scope.sources["works"].values["school"] == ("baroque", "cubism", "expressionism")
    assert scope.sources["works"].matches == (("school", "expressionism"),)
    con.execute("INSERT INTO works SELECT 'Old ' || i, 'school ' || i FROM range(900) t(i)")
    many = discover("How many expressionist works are there?", Catalog(con), None).sources["works"]
    assert "school" not in many.values and many.matches == (("school", "expressionism"),)


def test_the_best_of_something_is_the_best_by_something() -> None:
    con = database()
    con.execute("ALTER TABLE farms ADD COLUMN sold DOUBLE")
    scope = discover("", Catalog(con), None)
    assert vague("Which is the best farm?", scope, near) == ("best", ["farms.acres", "farms.sold"])
    for question in (
        "Which is the best farm by acres?",
        "Which farm sold best?",
        "Which are the top three farms?",
        "Which farm is largest?",
    ):
        assert vague(question, scope, near) == ("", []), question


REQUIRED = [
    ("How many farms are there in Kent?", ["Kent"]),
    ("How many farms are there in Kent and in Devon?", []),  # two of one column are compared or grouped by
    ("How many farms are there in each county?", []),
    ("Which crops grow on Farm 3?", ["Farm 3"]),
]


@pytest.mark.parametrize(("question", "wanted"), REQUIRED)
def test_values_that_a_question_names_are_required_of_its_query(question: str, wanted: list[str]) -> None:
    scope = scope_of(question)
    assert [each.value for each in required_values(question, scope)] == wanted
    made = pattern(grammar(scope, question, narrowed(question, scope, near, plot=False)))
    whole = ["FROM farms\nSELECT crops", "FROM farms\nSELECT count(*)", "FROM farms\nGROUP BY county\nSELECT count(*)"]
    assert any(map(made.fullmatch, whole)) is (not wanted), (
        "a query without the value is written only where none is named"
    )


def test_a_value_behind_a_word_that_makes_another_thing_of_it_is_not_required() -> None:
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE staff AS SELECT i AS id, ['Professor', 'AsstProf'][1 + i % 2] AS rank FROM range(20) t(i)"
    )
    for question, wanted in (
        ("How many assistant professors are there?", []),
        ("How many professors are there?", ["Professor"]),
        ("Which staff has the rank professor?", ["Professor"]),
    ):
        scope = discover(question, Catalog(con), None)
        assert [each.value for each in required_values(question, scope)] == wanted, question


def test_a_flag_that_nothing_in_the_question_means_is_no_condition() -> None:
    con = database()
    con.execute("ALTER TABLE farms ADD COLUMN organic BOOLEAN DEFAULT true")
    scope = discover("", Catalog(con), None)
    organic = {("farms", "organic")}
    assert flags("How many farms are organic?", scope, near) == (organic, organic, frozenset())
    assert flags("How many farms are large?", scope, near) == (frozenset(), frozenset(), frozenset())
    assert flags("How many farms are large?", scope, None) == (organic, frozenset(), frozenset())
    question = "How many farms of Kent are organic?"
    scope = discover(question, Catalog(con), None)
    rules = grammar(scope, question, narrowed(question, scope, near, plot=False))
    assert pattern(rules).fullmatch("FROM farms\nWHERE county = 'Kent' AND organic\nSELECT count(*)")
    assert not pattern(rules).fullmatch("FROM farms\nWHERE county = 'Kent'\nSELECT count(*)")
