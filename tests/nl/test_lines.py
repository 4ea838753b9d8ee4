"""Queries in lines: what a question leaves open, the grammar that holds a model to it, and the plans that are made of the lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

import duckdb
import pytest
from nl.farms import database, near, scope_of

from uql.base.errors import QuestionError
from uql.base.settings import Settings
from uql.benchmarks.nl.derive import drawn, pattern
from uql.nl.ask.plan_checks import Checked, check_plan
from uql.nl.plan import read_plan as forms
from uql.nl.prompts.queries import EXAMPLES, hinted
from uql.nl.schema.discover import discover
from uql.nl.schema.join_paths import paths
from uql.nl.schema.scope import Scope
from uql.nl.small.lines.grammar import grammar, said_spans
from uql.nl.small.lines.parts import read
from uql.nl.small.lines.reading import nodes_of
from uql.nl.small.meaning.grounding import unknown_words
from uql.nl.small.meaning.likeness import left_out, nearest
from uql.nl.small.meaning.naming import named_in, people, requests_in
from uql.nl.small.meaning.narrowing import Narrow, narrowed, numbers_behind, numbers_of
from uql.sources.catalog import Catalog


def joined(scope: Scope) -> str:
    """Farms and notes in the order of a scope."""
    return next(path.source for path in paths(scope) if len(path.tables) == 2)


def checked(text: str, question: str = "") -> Checked:
    scope = scope_of(question)
    reply = nodes_of(text, scope, question)
    plan = forms.from_json(reply, {name: source.fields for name, source in scope.sources.items()})
    return check_plan(plan, scope.sources, Settings())


BOTH = "FROM farms JOIN notes ON notes.farm_id = farms.id"
QUERIES = [
    "FROM farms\nSELECT count(*)",
    "FROM farms\nWHERE county = 'Kent' AND year(opened) > 1910\nSELECT name\nORDER BY acres DESC\nLIMIT 1",
    "FROM farms\nGROUP BY county\nSELECT name, max(opened)",
    "FROM farms\nGROUP BY county, century(opened)\nSELECT count(*), avg(acres)\nHAVING count(*) > 2\nORDER BY avg(acres) ASC\nLIMIT 3",
    "FROM farms\nGROUP BY decade(opened)\nSELECT sum(acres)\nPLOT line",
    "FROM farms\nSELECT DISTINCT county, month(opened)\nORDER BY county ASC",
    f"{BOTH}\nWHERE ask('the note is about sheep') AND county = 'Devon'\nSELECT farms.name\nORDER BY acres DESC\nLIMIT 1",
    f"{BOTH}\nSELECT name, ask_number('the number of sheep of {{name}}') AS answer\nORDER BY answer DESC\nLIMIT 1",
    f"{BOTH}\nGROUP BY county\nSELECT max(ask_number('the number of sheep'))\nPLOT bar",
    f"{BOTH}\nWHERE ask_number('the number of sheep') >= 3\nGROUP BY county\nSELECT count(DISTINCT name)\nORDER BY count(DISTINCT name) DESC\nLIMIT 1",
    "FROM notes\nSELECT ask('the name of the inspector') AS answer",
]


@pytest.mark.parametrize("text", QUERIES)
def test_queries_in_lines_become_plans_that_pass_every_check(text: str) -> None:
    made = checked(text.replace("farms.name", "name"))
    assert made.problems == ()
    assert made.plan.nodes[-1].inputs


def test_a_plain_column_beside_the_greatest_is_that_of_its_row() -> None:
    made = checked("FROM farms\nGROUP BY county\nSELECT name, max(acres)")
    bodies = [node.body for node in made.plan.nodes]
    assert "PARTITION BY county ORDER BY acres DESC" in bodies[1]
    assert [f.name for f in made.fields["step2"] or ()] == ["county", "name", "acres"]


def test_what_rows_are_the_first_by_is_not_drawn_beside_the_figure_that_is() -> None:
    made = checked(
        "FROM farms\nGROUP BY county\nSELECT acres\nORDER BY opened DESC\nLIMIT 1\nPLOT bar",
        "Plot the acres of the newest farm per county.",
    )
    assert made.problems == ()
    (plot,) = [node.body for node in made.plan.nodes if node.kind == "plot"]
    assert '"field": "acres"' in plot and "opened" not in plot


def test_a_question_for_a_row_names_it_where_the_query_forgot() -> None:
    made = checked("FROM farms\nGROUP BY county\nSELECT max(acres)", "Which farm is the largest of each county?")
    assert [f.name for f in made.fields["step2"] or ()] == ["county", "name", "acres"]
    made = checked("FROM farms\nSELECT acres\nORDER BY acres DESC\nLIMIT 1", "What is the largest farm?")
    assert [f.name for f in made.fields["step2"] or ()] == ["acres", "name"]


def test_a_table_of_which_nothing_is_named_is_left_out_unless_rows_are_counted() -> None:
    assert "notes" not in checked(f"{BOTH}\nSELECT name").plan.nodes[0].body
    assert "notes" in checked(f"{BOTH}\nGROUP BY name\nSELECT count(*)").plan.nodes[0].body


def test_years_of_texts_that_begin_as_dates_are_read_from_them() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE finds (what VARCHAR, dated VARCHAR)")
    con.execute("INSERT INTO finds VALUES ('pot', '-0044-03-15'), ('coin', '1066-10-14'), ('ring', '1500-01-01')")
    reply = nodes_of("FROM finds\nSELECT what, century(dated), year(dated)", discover("", Catalog(con), None))
    rows = con.execute(reply["nodes"][0]["uql"]).fetchall()
    assert rows == [("pot", 0, -44), ("coin", 11, 1066), ("ring", 15, 1500)]


def test_a_column_whose_name_begins_with_a_digit_is_shown_under_another() -> None:
    con = duckdb.connect()
    con.execute('CREATE TABLE shows (title VARCHAR, "18_49_share" DOUBLE)')
    con.execute("INSERT INTO shows VALUES ('News', 2.5), ('Film', 3.5)")
    scope = discover("", Catalog(con), None)
    text = 'FROM shows\nSELECT title, "18_49_share"\nORDER BY "18_49_share" DESC\nLIMIT 1'
    plan = forms.from_json(nodes_of(text, scope), {name: source.fields for name, source in scope.sources.items()})
    assert check_plan(plan, scope.sources, Settings()).problems == ()


def test_what_is_asked_of_a_text_that_rows_share_names_the_row() -> None:
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE games AS SELECT i AS game_id, 'A long report of the game, of its goals and of who scored them, number ' || i AS report FROM range(9) t(i)"
    )
    con.execute("CREATE TABLE played AS SELECT i % 9 AS game_id, 'Player ' || i AS name FROM range(30) t(i)")
    scope = discover("", Catalog(con), None)
    source = next(path.source for path in paths(scope) if len(path.tables) == 2)
    text = f"FROM {source}\nGROUP BY name\nSELECT max(ask_number('the goals'))\nORDER BY max(ask_number('the goals')) DESC\nLIMIT 1"
    first = nodes_of(text, scope)["nodes"][0]["uql"]
    assert first.count('PROMPT "the goals, for {name}"') == 1
    alone = nodes_of("FROM games\nSELECT sum(ask_number('the goals'))", scope)["nodes"][0]["uql"]
    assert 'PROMPT "the goals"' in alone, "a report by itself is of all its players"


def test_what_is_no_query_over_the_scope_is_an_error() -> None:
    for text in ("SELECT 1", "FROM nowhere\nSELECT count(*)", "FROM farms"):
        with pytest.raises(QuestionError):
            read(text, scope_of())


SAID = [
    (
        "Which farms have more acres than the average?",
        "FROM farms\nWHERE acres > avg(acres)\nSELECT name",
        "SELECT name FROM farms WHERE acres > 195",
    ),
    (
        "Which farms were opened before Farm 3?",
        "FROM farms\nWHERE opened < that of name = 'Farm 3'\nSELECT name",
        "SELECT name FROM farms WHERE id < 3",
    ),
    (
        "Which farms have no notes?",
        "FROM farms\nWHERE without notes\nSELECT name",
        "SELECT name FROM farms WHERE id >= 30",
    ),
    ("What percentage of the farms is in Kent?", "FROM farms\nSELECT percent(county = 'Kent')", "SELECT 50"),
    (
        "How many farms are in Kent and how many in Devon?",
        "FROM farms\nSELECT count(county = 'Kent'), count(county = 'Devon')",
        "SELECT 20, 20",
    ),
    (
        "What are the three largest farms of each county by acres?",
        "FROM farms\nGROUP BY county\nSELECT name, acres\nORDER BY acres DESC\nLIMIT 3",
        "SELECT county, name, acres FROM farms WHERE id > 33",
    ),
    (
        "How many farms were opened in January 1910?",
        "FROM farms\nWHERE year(opened) = 1910 AND month(opened) = 1\nSELECT count(*)",
        "SELECT 1",
    ),
    (
        "How many farms were opened on each day of the week?",
        "FROM farms\nGROUP BY weekday(opened)\nSELECT count(*)",
        "SELECT dayname(opened), count(*) FROM farms GROUP BY 1",
    ),
    (
        "How many farms were opened per quarter?",
        "FROM farms\nGROUP BY quarter(opened)\nSELECT count(*)",
        "SELECT 1, 40",
    ),
    (
        "Which farms are in Kent or in Devon?",
        "FROM farms\nWHERE county IN ('Kent', 'Devon')\nSELECT name",
        "SELECT name FROM farms",
    ),
    ("What is the median of the acres?", "FROM farms\nSELECT median(acres)", "SELECT 195"),
    (
        "Which farms were opened after 1930?",
        "FROM farms\nWHERE opened > '1930'\nSELECT name",
        "SELECT name FROM farms WHERE id > 30",
    ),
    (
        "Which counties have more than five farms above 1,500 acres?",
        "FROM farms\nWHERE acres > 1500\nGROUP BY county\nSELECT count(*)\nHAVING count(*) > 5",
        "SELECT county, 0 FROM farms WHERE false",
    ),
    (
        "Which counties have a total of over 3,900 acres?",
        "FROM farms\nGROUP BY county\nSELECT sum(acres)\nHAVING sum(acres) > 3900",
        "SELECT 'Kent', 4000",
    ),
    (
        "How many more farms are in Kent than in Devon?",
        "FROM farms\nSELECT difference(count(county = 'Kent'), count(county = 'Devon'))",
        "SELECT 20, 20, 0",
    ),
    (
        "What is the difference between the total acres of Devon and of Kent?",
        "FROM farms\nSELECT difference(sum(acres, county = 'Devon'), sum(acres, county = 'Kent'))",
        "SELECT 3800.0, 4000.0, 200.0",
    ),
    (
        "What is the difference between the largest and the smallest acres per county?",
        "FROM farms\nGROUP BY county\nSELECT difference(max(acres), min(acres))",
        "SELECT county, max(acres), min(acres), max(acres) - min(acres) FROM farms GROUP BY 1",
    ),
    (
        "How many times as many farms opened in Kent as in Devon?",
        "FROM farms\nSELECT times(count(county = 'Kent'), count(county = 'Devon'))",
        "SELECT 20, 20, 1.0::DOUBLE",
    ),
    (
        "What is the average number of notes per farm?",
        "FROM both\nGROUP BY name\nSELECT avg(count(*))",
        "SELECT 80 / 30, 30",
    ),
    (
        "What is the largest total of acres of any county?",
        "FROM farms\nGROUP BY county\nSELECT max(sum(acres))",
        "SELECT 4000.0, 2",
    ),
    (
        "What share of the farms does each county have?",
        "FROM farms\nGROUP BY county\nSELECT share(count(*))",
        "SELECT county, 20, 50.0::DOUBLE FROM farms GROUP BY 1",
    ),
    (
        "What percentage of the acres does each county hold?",
        "FROM farms\nGROUP BY county\nSELECT share(sum(acres))",
        "SELECT county, sum(acres), sum(acres) / 78 FROM farms GROUP BY 1",
    ),
    (
        "What percentage of the acres is in Kent?",
        "FROM farms\nSELECT percent(sum(acres), county = 'Kent')",
        "SELECT 4000 / 78.0",
    ),
    (
        "Which farms have more acres than the average of their county?",
        "FROM farms\nWHERE acres > avg(acres) of county\nSELECT name",
        "SELECT name FROM farms WHERE acres > CASE county WHEN 'Kent' THEN 200 ELSE 190 END",
    ),
]


@pytest.mark.parametrize(("question", "text", "sql"), SAID)
def test_the_grammar_of_a_question_admits_its_query_which_gives_what_sql_gives(
    question: str, text: str, sql: str
) -> None:
    scope = scope_of(question)
    text = text.replace("FROM both", f"FROM {joined(scope)}")
    assert pattern(grammar(scope, question, narrowed(question, scope, near, plot=False))).fullmatch(text)
    made = checked(text, question)
    assert made.problems == ()
    con = database()
    steps = [node for node in made.plan.nodes if node.body]
    for node in steps:
        con.execute(f"CREATE TABLE {node.name} AS {node.body}")
    rows = con.execute(f"FROM {steps[-1].name}").fetchall()
    assert sorted(map(str, rows)) == sorted(str(row) for row in con.execute(_alike(sql, rows)).fetchall())


PLAIN = [
    "How many farms are in Kent?",
    "Which farms have more acres than the average?",
    "Plot the number of farms per county.",
]


@pytest.mark.parametrize("question", PLAIN)
def test_figures_of_figures_are_in_the_grammar_of_questions_that_ask_for_them_alone(question: str) -> None:
    scope = scope_of(question)
    text = grammar(scope, question, narrowed(question, scope, near, plot="Plot" in question))
    assert not any(word in text for word in ("difference(", "times(", "share(", "(count(*))", ") of "))


def test_the_parts_of_a_difference_stand_in_the_plan_beside_it() -> None:
    made = checked("FROM farms\nSELECT times(count(county = 'Kent'), count(county = 'Devon'))")
    assert [f.name for f in made.fields["step2"] or ()] == ["n_kent", "n_devon", "times"]


def test_an_average_of_the_own_group_is_a_step_that_the_query_joins() -> None:
    made = checked("FROM farms\nWHERE county = 'Kent' AND acres < avg(acres) of county\nSELECT name")
    assert [node.name for node in made.plan.nodes] == ["averages1", "step1", "answer"]
    assert made.plan["step1"].inputs == ("averages1",)
    assert "county = 'Kent'" not in made.plan["averages1"].body  # the average of the whole group


def test_of_conditions_that_deny_each_other_the_first_is_kept_and_equal_ones_stand_once() -> None:
    made = checked("FROM farms\nWHERE county = 'Kent' AND acres > 3 AND county = 'Kent'\nSELECT name")
    assert made.plan.nodes[0].body.count("Kent") == 1


def test_what_is_a_condition_and_shown_too_is_asked_once() -> None:
    lines = (
        "FROM notes\nWHERE ask('of sheep')\nSELECT farm_id, ask('of sheep') AS answer\nORDER BY answer DESC\nLIMIT 1"
    )
    made = checked(lines)
    assert made.problems == () and [f.name for f in made.fields["step1"] or ()] == ["farm_id"]


def test_a_group_is_not_kept_alone_by_a_value_that_the_question_does_not_name() -> None:
    lines = "FROM farms\nWHERE county = 'Kent'\nGROUP BY county\nSELECT count(*)"
    assert "'Kent'" not in checked(lines, "How many farms are there in each county?").plan.nodes[0].body
    assert "'Kent'" in checked(lines, "How many farms are there in each county, of Kent alone?").plan.nodes[0].body


NAMED = [
    ("Which farms have sheep?", {"farms"}, {("farms", "name")}, set()),
    ("What is the county of the oldest farm?", {"farms"}, {("farms", "county")}, set()),
    ("How many notes are there per farm?", {"farms", "notes"}, set(), {("farms", "name")}),
    ("How many acres are there in each county?", {"farms"}, set(), {("farms", "county")}),
    ("Is it raining?", set(), set(), set()),
]


@pytest.mark.parametrize(("question", "needed", "asked", "groups"), NAMED)
def test_the_words_of_a_question_name_tables_and_columns(
    question: str, needed: set[str], asked: set[tuple[str, str]], groups: set[tuple[str, str]]
) -> None:
    found = named_in(question, scope_of(question))
    assert set().union(*found.needed) == needed
    assert (found.asked, found.groups) == (asked, groups)


def test_a_query_reads_the_tables_that_the_question_names() -> None:
    question = "Which farms have a note that tells of sheep?"
    scope = scope_of(question)
    admitted = pattern(grammar(scope, question, narrowed(question, scope, near, plot=False)))
    assert admitted.fullmatch(f"FROM {joined(scope)}\nWHERE ask('note tells of sheep')\nSELECT name")
    assert not admitted.fullmatch("FROM notes\nWHERE ask('note tells of sheep')\nSELECT farm_id")
    assert not admitted.fullmatch(f"FROM {joined(scope)}\nWHERE ask('note tells of sheep')\nSELECT farm_id")


def test_a_key_is_compared_with_a_number_that_stands_behind_its_name_alone() -> None:
    def text(question: str) -> str:
        return grammar(scope_of(question), question, narrowed(question, scope_of(question), near, plot=False))

    assert '"id" " = " ("12")' in text("What is the county of farm 12?")
    assert '"id"  " = "' not in text("Which farms have 12 acres?") and '"id" cmp' not in text(
        "Which farms have 12 acres?"
    )


def test_as_many_conditions_are_read_as_the_question_joins() -> None:
    one = "Which notes tell of sheep?"
    two = "Which notes tell of sheep and of goats?"
    lines = "FROM notes\nWHERE ask('tell of sheep') AND ask('tell of sheep')\nSELECT farm_id"
    scope = scope_of(one)
    assert not pattern(grammar(scope, one, narrowed(one, scope, near, plot=False))).fullmatch(lines)
    assert pattern(grammar(scope, two, narrowed(two, scope, near, plot=False))).fullmatch(lines)


@pytest.mark.parametrize(
    "question", ["How many notes tell of sheep?", "How many farms are there?", "Count the notes of Farm 3."]
)
def test_how_many_of_a_table_is_a_count_and_nothing_that_a_row_says(question: str) -> None:
    scope = scope_of(question)
    admitted = grammar(scope, question, narrowed(question, scope, near, plot=False))
    texts = [drawn(admitted, Random(seed)) for seed in range(30)]
    assert all("count(" in text and "answer" not in text for text in texts), texts


def test_how_many_of_what_a_row_says_is_read() -> None:
    for question in (
        "Which notes tell of sheep?",
        "How many acres has Farm 3?",
        "How many sheep does each note tell of?",
    ):
        scope = scope_of(question)
        assert not narrowed(question, scope, near, plot=False).counted


def test_a_table_that_the_question_does_not_mean_is_not_joined() -> None:
    scope = scope_of("How many farms are in Kent?")
    text = grammar(
        scope, "How many farms are in Kent?", narrowed("How many farms are in Kent?", scope, near, plot=False)
    )
    assert "JOIN" not in text  # each farm would be counted once a note


def test_dates_that_are_not_there_are_a_condition() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE loans (id INTEGER, book VARCHAR, returned DATE)")
    con.execute("INSERT INTO loans VALUES (1, 'Emma', DATE '2024-01-02'), (2, 'Ulysses', NULL)")
    for question, condition in (
        ("How many loans were not returned?", "IS NULL"),
        ("How many loans were returned?", "IS NOT NULL"),
    ):
        scope = discover(question, Catalog(con), None)
        lines = f"FROM loans\nWHERE returned {condition}\nSELECT count(*)"
        assert pattern(grammar(scope, question, narrowed(question, scope, near, plot=False))).fullmatch(lines)
        assert con.execute(nodes_of(lines, scope, question)["nodes"][0]["uql"]).fetchall() == [(1,)]


def test_nodes_have_names_that_are_not_taken() -> None:
    lines = "FROM farms\nSELECT name\nORDER BY acres DESC\nLIMIT 1"
    nodes = nodes_of(lines, scope_of(), "", {"step1", "step2"})["nodes"]
    assert [node["name"] for node in nodes] == ["step1_2", "step2_2"]
    assert "FROM step1_2 WHERE" in nodes[1]["body"]


def test_who_is_asked_of_tables_of_people() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE teams (name VARCHAR, town VARCHAR); CREATE TABLE squads (name VARCHAR, born DATE)")
    con.execute("CREATE TABLE songs (title VARCHAR, singer VARCHAR)")
    scope = discover("", Catalog(con), None)
    assert people(scope) == {("squads", "name"), ("songs", "singer")}
    assert people(scope_of()) == {("farms", "name")}  # nothing says of whom: all that have names
    assert named_in("Who is it?", scope).asked == people(scope)
    assert named_in("Who sang it?", scope).asked == {("songs", "singer")}
    assert not named_in("How many teams are there?", scope).asked


REQUESTS = [
    ("Plot the number of farms per county and get the number of notes per farm.", 2),
    ("How many farms are in Kent and how many in Devon?", 1),  # the second names no table
    ("How many farms of Kent are there and what is their total of acres?", 1),  # Kent is meant in both
    ("What is the largest farm? Which notes tell of sheep?", 2),
    ("Which farms have oats and rye?", 1),
    ("How many farms are there? List the farms and their notes in a chart.", 1),  # the same in other words
]


@pytest.mark.parametrize(("question", "count"), REQUESTS)
def test_a_question_for_two_things_is_two_requests(question: str, count: int) -> None:
    assert len(requests_in(question, scope_of(question))) == count


def _alike(sql: str, rows: Sequence[tuple[object, ...]]) -> str:
    """The statement with the types of the rows."""
    if not rows:
        return sql
    types = ", ".join(
        f"CAST(c{i} AS {'VARCHAR' if isinstance(v, str) else 'DOUBLE' if isinstance(v, float) else 'BIGINT'})"
        for i, v in enumerate(rows[0])
    )
    return f"SELECT {types} FROM ({sql}) AS t({', '.join(f'c{i}' for i in range(len(rows[0])))})"


def test_the_greatest_of_what_a_column_holds_is_not_read_from_texts() -> None:
    question = "Of the farms whose note tells of sheep, which one has the largest acres?"
    admitted = pattern(grammar(scope_of(question), question, narrowed(question, scope_of(question), near, plot=False)))
    right = f"{BOTH}\nWHERE ask('farms with sheep')\nSELECT name\nORDER BY acres DESC\nLIMIT 1"
    assert admitted.fullmatch(right)
    assert not admitted.fullmatch(
        "FROM notes\nWHERE ask('farms with sheep')\nSELECT max(ask_number('the acres of sheep'))"
    )
    assert not admitted.fullmatch(right.replace("acres DESC", "id DESC"))


def test_numbers_are_read_in_digits_and_words() -> None:
    assert numbers_of("more than three of 1,250.5 in May 2024") == ["1250.5", "2024", "3", "5"]
    assert numbers_of("the number of three pointers") == []
    assert numbers_behind("farm 12 and the three notes of inspector no. 4") == {"farm": ["12"], "inspector": ["4"]}


# ------------------------------------------------------------------------------------------------------------ the grammar
def test_the_grammar_holds_names_and_values_of_the_scope_and_no_private_column() -> None:
    question = "How many farms of Kent grow oats?"
    text = grammar(scope_of(question), question, Narrow())
    assert '"county" (" = " | " <> ")' in text and "\"'Kent'\"" in text
    assert '"crops" " LIKE "' in text  # some values are two others put together
    assert "phone" not in text
    assert '"FROM farms JOIN notes ON notes.farm_id = farms.id"' in text


QUESTIONS = [
    "Who has the oldest farm per county?",
    "Which farm has the most sheep?",
    "Plot the number of farms of each county that have sheep.",
    "How many farms are there?",
    "What is the highest number of sheep in a note of Kent after 1910?",
    "Show all counties with more than 3 farms.",
    "What share of the farms of Kent without notes is larger than the average?",
    "How many farms have sheep and how many were opened before Farm 3?",
    "What are the two newest farms of each county, by quarter and day of the week?",
    "How many more farms of Kent than of Devon have sheep?",
    "How many times higher is the average of acres in Kent than in Devon?",
    "What is the average number of notes of sheep per farm?",
    "What percentage of the acres does each county have?",
    "Which farms have more acres than the average of their county and sheep?",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_rule_of_a_grammar_is_there_and_says_something(question: str) -> None:
    scope = scope_of(question)
    text = grammar(scope, question, narrowed(question, scope, near, plot=question.startswith("Plot")))
    rules = dict(line.split(" ::= ", 1) for line in text.splitlines())
    for body in rules.values():
        bare = re.sub(r'"(\\.|[^"\\])*"', "L", body).strip()
        assert bare and not re.search(r"\(\s*[|)]|\|\s*[|)]|^\||\|$", bare), body
        names = re.sub(r"L|\[[^]]*\]|\{[^}]*\}", " ", bare)
        assert set(re.findall(r"[a-z]+\d*", names)) <= set(rules)


def test_paths_are_the_tables_and_their_joins() -> None:
    assert [path.source for path in paths(scope_of())] == [
        *sorted(scope_of().sources, key=list(scope_of().sources).index),
        next(path.source for path in paths(scope_of()) if len(path.tables) == 2),
    ]


# ---------------------------------------------------------------------------------------------------------- the question
def test_the_words_of_a_question_narrow_its_query() -> None:
    def of(question: str) -> Narrow:
        return narrowed(question, scope_of(question), near, plot=False)

    assert of("Who has the oldest farm per county?").group == "must"
    assert of("Who has the oldest farm?").aggregates(dated=True) == ("min",)
    assert of("Who has the newest farm?").aggregates(dated=True) == ("max",)
    assert of("Which farm has the smallest acres?").aggregates() == ("min",)
    assert of("Which farm has the smallest acres?").group == "no"
    assert of("Which county has the most farms?").group == "count"
    assert of("Which farms have sheep?").ask == "must"
    assert of("Which farm has the highest number of sheep?").ask == "number"
    assert of("Which farms are in the county of Kent?").ask == "may"


def test_words_that_every_question_has_and_superlatives_of_numbers_are_not_to_be_read() -> None:
    for question in (
        "When did Farm 3 get opened?",
        "How many farms came out on a Monday?",
        "What is the dearest farm?",
    ):
        assert unknown_words(question, scope_of(question), near) == [], question
    assert narrowed("What is the dearest farm?", scope_of(), near, plot=False).best
    assert not narrowed("Is the forest of interest to the guest?", scope_of(), near, plot=False).best


def test_a_share_of_rows_that_a_model_reads_is_a_query() -> None:
    question = "What share of the notes tells of sheep?"
    text = "FROM notes\nSELECT percent(ask('notes of sheep'))"
    assert pattern(
        grammar(scope_of(question), question, narrowed(question, scope_of(question), near, plot=False))
    ).fullmatch(text)
    assert checked(text, question).problems == ()


def test_what_a_plan_has_nothing_of_is_found() -> None:
    scope = scope_of("Which farms of Kent keep sheep?")
    assert left_out("Which farms of Kent keep sheep?", ["SELECT name FROM farms"], scope) == ["keep", "kent", "sheep"]
    whole = ["SELECT name FROM farms WHERE county = 'Kent' AND PROMPT \"they keep sheep\""]
    assert left_out("Which farms of Kent keep sheep?", whole, scope) == []


def test_oldest_and_youngest_are_said_in_dates_or_ages() -> None:
    assert hinted("the youngest of them", aged=False) == "the youngest (latest date) of them"
    assert hinted("the youngest of them", aged=True) == "the youngest (lowest age) of them"


def test_examples_of_the_same_shape_are_nearest_and_all_of_them_can_be_read() -> None:
    found = nearest("Plot the number of farms that show sheep for each county.", scope_of(), None, most=2)
    assert "PLOT" in found[-1].query and "GROUP BY" in found[-1].query
    assert all(example.query.startswith("FROM ") and "\nSELECT " in example.query for example in EXAMPLES)


@pytest.mark.parametrize("question", QUESTIONS)
def test_whatever_a_grammar_lets_a_model_write_is_a_valid_plan(question: str) -> None:
    """Texts by chance, as from a model that knows nothing: what is under the grammar parses, binds and types."""
    scope = scope_of(question)
    text = grammar(scope, question, narrowed(question, scope, near, plot=question.startswith("Plot")))
    random = Random(7)
    wrong = []
    for _ in range(15):
        lines = drawn(text, random)
        try:
            found = checked(lines, question).problems
        except QuestionError as error:
            found = (error,)
        wrong += [f"{lines}: {found}"] if found else []
    assert not wrong, wrong[0]


def test_a_value_is_named_by_words_of_the_question_as_they_stand() -> None:
    assert said_spans("Who sold the Red Kettle?") == [
        "sold",
        "sold the Red",
        "sold the Red Kettle",
        "Red",
        "Red Kettle",
        "Kettle",
    ]
    asked = said_spans("Who made the highest number of points in any game?")
    assert "points" in asked and not any(span.startswith(("Who", "the", "highest", "number")) for span in asked)
    assert "Alice Johnson" in said_spans("How many orders did Alice Johnson's brother place?")
    assert "los angeles" in said_spans("which teams are from los angeles")
    assert said_spans("how many are there?") == []
