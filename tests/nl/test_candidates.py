"""Statements of plain SQL that vote by their rows: repair, disagreement, the guard, the budget, and each off switch."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import duckdb
import pytest
from nl.shop import PLAN, Connected, plan, uql_node

from uql.base.errors import ConfigError
from uql.llm.providers.scripted import Scripted
from uql.llm.questions import Write
from uql.nl.ask.answer import Answer
from uql.nl.ask.context import NodeEvent
from uql.nl.guard.guard import check_sql
from uql.nl.prompts import Wording, statements as words
from uql.nl.prompts.statements import EXAMPLES, TASK
from uql.nl.small import statements
from uql.nl.small.vote import SWITCHES
from uql.ui.answers import answer_view

LEEDS = "SELECT name FROM shops WHERE city = 'Leeds'"
LEEDS_OTHERWISE = "SELECT s.name AS shop FROM shops s WHERE s.city LIKE 'Leeds' ORDER BY s.id DESC"
YORK = "SELECT name FROM shops WHERE city <> 'Leeds'"
ALL = "SELECT name FROM shops"
NONE = "SELECT name FROM shops WHERE city = 'Oslo'"
NONE_AT_ALL = "SELECT name FROM shops WHERE id > 3"
MISSING = "SELECT year FROM shops"
QUESTION = "Which shops are in Leeds?"


def said(*statements: str) -> list[Scripted]:
    return [Scripted(TASK, statement) for statement in statements]


def ask(shop: Connected, *, question: str = QUESTION, **options: Any) -> Answer:
    return shop.con.ask(question, **{"candidates": 3, "without": ("reading",), **options})


def voted(*statements: str, **options: Any) -> tuple[Answer, Connected]:
    shop = Connected(said(*statements), small=True)
    return ask(shop, **options), shop


def test_the_result_that_most_candidates_give_wins_over_the_first_ones() -> None:
    answer, _ = voted(YORK, LEEDS, LEEDS)
    assert answer.value == ["Ada", "Cy"] and answer.exact


def test_equal_rows_in_any_order_of_rows_and_columns_are_one_result() -> None:
    answer, _ = voted(YORK, LEEDS_OTHERWISE, LEEDS)
    assert sorted(answer.value) == ["Ada", "Cy"] and answer.exact
    answer, _ = voted(
        "SELECT name, city FROM shops ORDER BY id",
        "SELECT city, name FROM shops ORDER BY id DESC",
        YORK,
    )
    assert [set(row.values()) for row in answer.value] == [{"Ada", "Leeds"}, {"Bo", "York"}, {"Cy", "Leeds"}]


def test_two_columns_of_one_name_are_an_answer() -> None:
    answer, _ = voted("SELECT s.name, t.name FROM shops s JOIN shops t ON t.id = s.id + 1 ORDER BY s.id", candidates=1)
    assert answer.value == [{"name": "Ada", "name_1": "Bo"}, {"name": "Bo", "name_1": "Cy"}]


def test_empty_results_count_less() -> None:
    answer, _ = voted(NONE, NONE_AT_ALL, LEEDS, LEEDS, YORK, candidates=5)
    assert answer.value == ["Ada", "Cy"]
    answer, _ = voted(NONE, NONE_AT_ALL, NONE)
    assert answer.answered and "no rows" in answer.text
    answer, _ = voted(NONE, NONE_AT_ALL, LEEDS, LEEDS, YORK, candidates=5, without=("reading", "empty"))
    assert answer.answered and "no rows" in answer.text


def test_no_more_candidates_are_asked_for_where_one_result_leads_whatever_they_say() -> None:
    answer, shop = voted(YORK, LEEDS, LEEDS, LEEDS, YORK, candidates=5)
    assert answer.value == ["Ada", "Cy"] and len(shop.prompts(TASK)) == 4


def test_no_more_candidates_are_asked_for_where_the_first_two_agree_on_rows() -> None:
    answer, shop = voted(LEEDS, LEEDS_OTHERWISE, YORK, YORK, YORK, candidates=5)
    assert answer.value == ["Ada", "Cy"] and answer.exact and len(shop.prompts(TASK)) == 2
    _, shop = voted(NONE, NONE_AT_ALL, NONE, LEEDS, LEEDS, candidates=5)
    assert len(shop.prompts(TASK)) > 2


def test_a_candidate_that_fails_goes_back_once_with_the_error() -> None:
    answer, shop = voted(MISSING, LEEDS, LEEDS, LEEDS)
    back = shop.prompts(TASK)[1]
    assert MISSING in back and "year" in back
    assert answer.value == ["Ada", "Cy"] and answer.exact


def test_without_repair_a_candidate_that_fails_is_lost() -> None:
    answer, shop = voted(MISSING, LEEDS, LEEDS, without=("reading", "repair"))
    assert answer.value == ["Ada", "Cy"] and not any("failed" in prompt for prompt in shop.prompts(TASK))


def test_where_candidates_disagree_the_answer_says_how_sure_it_is() -> None:
    answer, _ = voted(LEEDS, YORK, ALL)
    assert answer.value == ["Ada", "Cy"] and not answer.exact
    assert "not sure: 1 of 3" in answer.notes[0] and "Bo" in answer.notes[0]
    assert "not sure" in str(answer) and "not sure" in answer.json["extra"]
    assert answer_view(answer)["notes"][0] == answer.notes[0]  # on the page
    answer, _ = voted(MISSING, LEEDS, YORK, MISSING, without=("reading", "repair"), candidates=4)
    assert answer.notes[0].startswith("not sure: 1 of 4 candidates give this, 2 failed; others: Bo by")


def test_where_no_statement_runs_the_answer_shows_what_was_tried() -> None:
    answer, _ = voted(MISSING, without=("reading", "repair"), candidates=1)
    assert MISSING in answer.cannot and 'column "year" not found' in answer.cannot


def test_that_nothing_fits_is_said_with_a_doubt() -> None:
    answer, _ = voted(NONE, NONE, NONE)
    assert answer.notes == ["not sure: nothing fits; a value may be written in another way in the data"]
    assert not answer.exact and answer.shown == "none: no rows match"
    answer, _ = voted(NONE, NONE, without=("reading", "empty"))
    assert not answer.notes


def test_of_two_results_with_as_many_votes_the_first_is_the_answer_and_it_says_so() -> None:
    answer, _ = voted(LEEDS, YORK, candidates=2)
    assert answer.value == ["Ada", "Cy"] and "not sure: 1 of 2" in answer.notes[0]


@pytest.mark.parametrize(
    "bad", ["DROP TABLE shops", "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM shops; SELECT 1", "nonsense"]
)
def test_the_guard_refuses_what_is_no_harmless_query_over_the_tables(bad: str) -> None:
    answer, _ = voted(bad, bad, bad, LEEDS, candidates=3, without=("reading", "repair"))
    if bad.endswith("SELECT 1"):  # what follows the semicolon is not the statement
        assert answer.answered
    else:
        assert not answer.answered


def test_a_time_limit_before_the_first_candidate_is_named_with_its_value() -> None:
    answer, _ = voted(LEEDS, LEEDS, max_seconds=0.01)
    assert answer.partial == "seconds" and answer.cannot == "max_seconds = 0.01 was reached before there was a plan"


def test_the_budget_ends_the_vote_and_the_answer_says_so() -> None:
    answer, shop = voted(LEEDS, YORK, LEEDS, LEEDS, LEEDS, candidates=5, budget=2)
    assert answer.value == ["Ada", "Cy"] and len(shop.prompts(TASK)) == 2
    assert any("only 2 of 5 candidates voted" in note for note in answer.notes) and answer.cost.calls == 2


def test_a_statement_that_fails_is_mended_until_one_runs() -> None:
    answer, shop = voted(MISSING, LEEDS, MISSING, LEEDS)
    mended = ["This statement failed" in prompt for prompt in shop.prompts(TASK)]
    assert answer.value == ["Ada", "Cy"] and mended == [False, True, False, False]


def test_each_candidate_is_an_event_and_its_prompt_is_kept() -> None:
    shop = Connected(said(MISSING, LEEDS, LEEDS, LEEDS), small=True)
    seen: list[Any] = []
    shop.con.on_event(seen.append)
    answer = ask(shop)
    told = [(event.node, event.state) for event in seen if isinstance(event, NodeEvent)]
    assert ("sql1", "start") in told and ("sql1", "done") in told and ("sql2", "done") in told
    assert len([p for step in answer.steps for p in step.prompts if p.task == TASK]) == len(shop.prompts(TASK))


def test_each_worked_example_answers_its_question() -> None:
    lines = EXAMPLES.splitlines()
    examples = {q.removeprefix("Question: "): sql for q, sql in pairwise(lines) if q.startswith("Question: ")}
    db = duckdb.connect()
    db.execute("CREATE TABLE lakes AS FROM (VALUES ('Loch', 30), ('Tarn', 70)) AS t(name, depth_m)")
    db.execute("CREATE TABLE harbours AS FROM (VALUES (1, 'Hull'), (2, 'Ayr'), (3, 'Oban')) AS t(id, name)")
    boats = "(1, 'wood', 1950), (1, 'wood', 1960), (1, 'steel', 1980), (2, 'steel', 1970), (2, 'wood', 1995)"
    db.execute(f"CREATE TABLE boats AS FROM (VALUES {boats}, (NULL, 'steel', 1999)) AS t(harbour_id, hull, built)")
    rows = {
        question: sorted(db.sql(check_sql(sql, ["lakes", "harbours", "boats"])).fetchall())
        for question, sql in examples.items()
    }
    assert rows == {
        "Which is the deepest lake?": [("Tarn",)],
        "How many boats does each harbour have?": [("Ayr", 2), ("Hull", 3)],
        "harbours without a boat": [("Oban",)],
        "What share of the boats is made of wood?": [(0.5,)],
        "Which harbours have more than two boats built before 1990?": [("Hull",)],
    }


@pytest.mark.parametrize(
    ("has_texts", "off", "shown"), [(False, (), True), (True, (), False), (False, ("examples",), False)]
)
def test_worked_examples_are_shown_where_no_text_must_be_read(
    has_texts: bool, off: tuple[str, ...], shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    systems: list[str] = []
    wording = words.wording

    def kept(*args: Any, **options: Any) -> Wording:
        made = wording(*args, **options)
        systems.append(made.system)
        return made

    monkeypatch.setattr(words, "wording", kept)
    shop = Connected([Scripted(TASK, LEEDS)] * 3, small=True)
    if not has_texts:
        shop.con.execute("DROP TABLE letters")
    assert shop.con.ask(QUESTION, without=("reading", *off)).value == ["Ada", "Cy"]
    assert systems and all((EXAMPLES in system) == shown for system in systems)


def test_a_prompt_shows_two_rows_of_each_table_and_nothing_private() -> None:
    _, shop = voted(LEEDS, LEEDS)
    (prompt, *_) = shop.prompts(TASK)
    assert "CREATE TABLE shops (" in prompt and "(1, 'Ada', 'Leeds'), (2, 'Bo', 'York')" in prompt
    assert "0113" not in prompt and "owner_phone" not in prompt


def test_where_no_result_leads_the_answer_asks_back() -> None:
    answer, _ = voted(LEEDS, YORK, ALL)
    assert len(answer.readings) == 3 and "Leeds" in answer.readings[0] and "<>" in answer.readings[1]
    sure, _ = voted(LEEDS, LEEDS)
    assert sure.readings == () and sure.exact


def test_rows_that_tie_with_the_last_one_shown_are_told() -> None:
    first = "SELECT year FROM letters WHERE year > 2001 ORDER BY shop_id LIMIT 1"
    answer, _ = voted(first, candidates=1, question="Which year comes first?")
    assert any("other rows tie" in note for note in answer.notes)
    answer, _ = voted("SELECT name FROM shops ORDER BY id LIMIT 1", candidates=1, question="Which shop comes first?")
    assert answer.value == "Ada" and answer.notes == []
    answer, _ = voted(first, candidates=1, question="Which year comes first?", without=("reading", "ties"))
    assert answer.notes == []


def test_a_plain_column_that_looks_like_a_text_may_be_compared() -> None:
    like = "SELECT count(*) FROM letters WHERE letter LIKE '%late%'"
    question = "How many letters have the word late in them?"
    answer, shop = voted(like, like, question=question)
    assert answer.value == 10 and answer.exact and len(shop.prompts(TASK)) == 2


def test_a_plot_is_drawn_from_the_rows_of_the_statement_that_won() -> None:
    counted = "SELECT city, count(*) AS shops FROM shops GROUP BY city"
    answer, _ = voted(counted, counted, question="Draw a line chart of the number of shops per city.", candidates=2)
    assert len(answer.plots) == 1 and answer.plan.plan is not None
    assert '"mark": "line"' in answer.plan.plan["plot"].body and '"field": "city"' in answer.plan.plan["plot"].body
    nothing, _ = voted("SELECT count(*) FROM shops", candidates=1, question="Plot the number of shops.")
    assert nothing.answered and not nothing.plots


@pytest.mark.thorough
@pytest.mark.parametrize(
    "question",
    [
        "What is the distribution of shops over cities?",
        "Compare the number of shops of the cities.",
        "the trend of shops per city",
    ],
)
def test_a_distribution_a_comparison_or_a_trend_is_drawn(question: str) -> None:
    counted = "SELECT city, count(*) AS shops FROM shops GROUP BY city"
    answer, shop = voted(counted, counted, question=question, candidates=2)
    assert len(answer.plots) == 1 and words.PLOTTED in shop.prompts(TASK)[0]
    one = "SELECT min(id) AS first, max(id) AS last FROM shops"
    answer, _ = voted(one, one, question=question, candidates=2)
    assert answer.value == {"first": 1, "last": 3} and not answer.plots


def test_a_word_for_a_picture_that_names_a_table_or_a_column_asks_for_none() -> None:
    shop = Connected(said(*["SELECT name, seats FROM bars"] * 4), small=True)
    shop.con.sql("CREATE TABLE bars AS SELECT * FROM (VALUES ('Ada', 20), ('Bo', 30)) t(name, seats)")
    answer = ask(shop, question="Which seats does each bar have?", tables=["bars"])
    assert len(answer.value) == 2 and not answer.plots and words.PLOTTED not in shop.prompts(TASK)[0]
    answer = ask(shop, question="A chart of the seats of each bar", tables=["bars"])
    assert len(answer.plots) == 1


def test_small_models_vote_without_being_told_and_others_do_not() -> None:
    shop = Connected(said(LEEDS, LEEDS), small=True)
    assert shop.con.ask(QUESTION, without="reading").value == ["Ada", "Cy"] and shop.tasks() == [TASK] * 2
    shop = Connected([plan(uql_node("a", LEEDS))])
    assert shop.con.ask(QUESTION, readings=False).value == ["Ada", "Cy"] and shop.tasks() == [PLAN]
    shop = Connected([plan(uql_node("a", LEEDS))], small=True)
    assert shop.con.ask(QUESTION, candidates=0).value == ["Ada", "Cy"] and shop.tasks() == [PLAN]


def test_a_small_model_is_not_asked_which_columns_of_many_tables_are_relevant() -> None:
    shop = Connected(said(LEEDS, LEEDS, LEEDS), small=True)
    for n in range(6):
        shop.con.sql(f"CREATE TABLE archive_{n} AS SELECT {n} AS year")
    assert ask(shop).value == ["Ada", "Cy"] and shop.tasks() == [TASK] * 2
    assert "CREATE TABLE shops" in shop.prompts(TASK)[0]


def test_over_plain_columns_alone_no_word_is_compared_with_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(statements, "foreign_words", lambda question, *_: calls.append(question) or [])
    shop = Connected(said(LEEDS, LEEDS, LEEDS), small=True)
    assert ask(shop, tables=["shops"], without=()).value == ["Ada", "Cy"] and calls == []
    assert ask(shop, without=()).value == ["Ada", "Cy"] and calls == [QUESTION]


@pytest.mark.thorough
def test_the_vote_has_off_switches_with_names() -> None:
    for name in SWITCHES:
        answer, _ = voted(LEEDS, LEEDS, LEEDS, without=("reading", name)) if name != "statements" else voted(LEEDS)
        assert answer.value == ["Ada", "Cy"], name
    answer, shop = voted(LEEDS, LEEDS, without=("reading", "sampling"))
    assert len(shop.prompts(TASK)) == 1
    with pytest.raises(ConfigError, match="without"):
        voted(LEEDS, without=("grammar",))
    with pytest.raises(ConfigError, match="candidates"):
        voted(LEEDS, candidates=-1)


def test_a_plan_of_the_users_own_has_no_vote() -> None:
    shop = Connected(said(LEEDS), small=True)
    first = shop.con.ask(QUESTION, without="reading", candidates=1)
    again = shop.con.ask(QUESTION, plan=first.plan.plan)
    assert again.value == ["Ada", "Cy"] and len(shop.prompts(TASK)) == 1


def test_a_temperature_and_its_seed_reach_the_provider_and_make_another_question() -> None:
    drawn = [Write("q", parameters=(("temperature", "0.7"), ("seed", str(n)))) for n in (1, 2)]
    assert [(q.reply().temperature, q.reply().seed) for q in drawn] == [(0.7, 1), (0.7, 2)]
    assert drawn[0] != drawn[1] and Write("q").reply().temperature == 0.0
