"""Candidates of plain SQL that vote by their results: repair, disagreement, the guard, the budget, and each off switch."""

from __future__ import annotations

from typing import Any

import pytest
from nl.shop import Connected

from uql.base.errors import ConfigError
from uql.llm.providers.scripted import Scripted
from uql.llm.questions import Write
from uql.nl.ask.answer import Answer
from uql.nl.ask.context import NodeEvent
from uql.nl.prompts.candidates import TASK

LEEDS = "SELECT name FROM shops WHERE city = 'Leeds'"
LEEDS_OTHERWISE = "SELECT s.name AS shop FROM shops s WHERE s.city LIKE 'Leeds' ORDER BY s.id DESC"
YORK = "SELECT name FROM shops WHERE city = 'York'"
ALL = "SELECT name FROM shops"
NONE = "SELECT name FROM shops WHERE city = 'leeds'"
NONE_AT_ALL = "SELECT name FROM shops WHERE id > 3"
MISSING = "SELECT year FROM shops"
QUESTION = "Which shops are in Leeds?"


def said(*statements: str) -> list[Scripted]:
    return [Scripted(TASK, statement) for statement in statements]


def ask(shop: Connected, question: str = QUESTION, **options: Any) -> Answer:
    return shop.con.ask(question, **{"candidates": 3, "lines": False, "readings": False, **options})


def voted(*statements: str, **options: Any) -> tuple[Answer, Connected]:
    shop = Connected(said(*statements))
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


def test_empty_results_count_less() -> None:
    answer, _ = voted(NONE, NONE_AT_ALL, LEEDS, LEEDS, YORK, candidates=5)
    assert answer.value == ["Ada", "Cy"]
    answer, _ = voted(NONE, NONE_AT_ALL, NONE)
    assert answer.answered and "no rows" in answer.text


def test_no_more_candidates_are_asked_for_where_one_result_leads_whatever_they_say() -> None:
    answer, shop = voted(LEEDS, LEEDS, LEEDS, YORK, YORK, candidates=5)
    assert answer.value == ["Ada", "Cy"] and len(shop.prompts(TASK)) == 3


def test_a_candidate_that_fails_goes_back_once_with_the_error_and_the_table_of_the_column() -> None:
    answer, shop = voted(MISSING, LEEDS, LEEDS, LEEDS)
    back = shop.prompts(TASK)[1]
    assert MISSING in back and "year" in back and "stands in: letters" in back
    assert answer.value == ["Ada", "Cy"] and answer.exact


def test_without_repair_a_candidate_that_fails_is_lost() -> None:
    answer, shop = voted(MISSING, LEEDS, LEEDS, repair=False)
    assert answer.value == ["Ada", "Cy"] and not any("failed" in prompt for prompt in shop.prompts(TASK))


def test_where_candidates_disagree_the_answer_says_how_sure_it_is() -> None:
    answer, _ = voted(LEEDS, YORK, ALL)
    assert answer.value == ["Ada", "Cy"] and not answer.exact
    assert "not sure: 1 of 3" in answer.notes[0] and "Bo" in answer.notes[0]
    assert "not sure" in str(answer) and "not sure" in answer.json["extra"]


def test_of_two_results_with_as_many_votes_the_first_is_the_answer_and_it_says_so() -> None:
    answer, _ = voted(LEEDS, YORK, candidates=2)
    assert answer.value == ["Ada", "Cy"] and "not sure: 1 of 2" in answer.notes[0]


@pytest.mark.parametrize(
    "bad", ["DROP TABLE shops", "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM shops; SELECT 1", "nonsense"]
)
def test_the_guard_refuses_what_is_no_harmless_query_over_the_tables(bad: str) -> None:
    answer, _ = voted(bad, bad, bad, LEEDS, candidates=3, repair=False)
    if bad.endswith("SELECT 1"):  # what follows the semicolon is not the statement
        assert answer.answered
    else:
        assert not answer.answered


def test_the_budget_ends_the_vote_and_the_answer_says_so() -> None:
    answer, shop = voted(LEEDS, LEEDS, LEEDS, LEEDS, LEEDS, candidates=5, budget=2)
    assert answer.value == ["Ada", "Cy"] and len(shop.prompts(TASK)) == 2
    assert any("2 of 5 candidates voted" in note for note in answer.notes) and answer.cost.calls == 2


def test_each_candidate_is_an_event_and_its_prompt_is_kept() -> None:
    shop = Connected(said(LEEDS, MISSING, LEEDS, LEEDS))
    seen: list[Any] = []
    shop.con.on_event(seen.append)
    answer = ask(shop)
    told = [(event.node, event.state) for event in seen if isinstance(event, NodeEvent)]
    assert ("candidate1", "start") in told and ("candidate1", "done") in told and ("candidate2", "done") in told
    assert len([p for step in answer.steps for p in step.prompts if p.task == TASK]) == len(shop.prompts(TASK))


def test_a_prompt_shows_two_rows_of_each_table_and_nothing_private() -> None:
    _, shop = voted(LEEDS, LEEDS)
    (prompt, *_) = shop.prompts(TASK)
    assert "CREATE TABLE shops (" in prompt and "(1, 'Ada', 'Leeds'), (2, 'Bo', 'York')" in prompt
    assert "0113" not in prompt and "owner_phone" not in prompt


def lines(*replies: Scripted, **options: Any) -> tuple[Answer, Connected]:
    shop = Connected(replies, lines=True)
    question = options.pop("question", QUESTION)
    return shop.con.ask(question, **{"candidates": 3, **options}), shop


IN_LINES = Scripted("planner", "FROM shops\nWHERE city = 'Leeds'\nSELECT name")


def test_the_plan_in_lines_is_one_candidate_of_equal_weight() -> None:
    answer, _ = lines(IN_LINES, *said(YORK, YORK, YORK))
    assert answer.value == "Bo"
    answer, _ = lines(IN_LINES, *said(YORK, LEEDS, LEEDS))
    assert answer.value == ["Ada", "Cy"] and answer.exact


def test_what_the_rules_refuse_is_a_note_and_no_wall() -> None:
    counted = "SELECT count(*) FROM shops"
    answer, _ = lines(*said(counted, counted, counted), question="How many employees are there?")
    assert answer.value == 3 and any("is about employees" in note for note in answer.notes)
    refused, _ = lines(question="How many employees are there?", candidates=0)
    assert not refused.answered


def test_where_the_plan_reads_texts_it_decides_and_nothing_votes() -> None:
    reading = Scripted("planner", "FROM letters\nWHERE ask('letter complains')\nSELECT count(*)")
    answer, shop = lines(reading, *said(LEEDS), question="How many letters complain?")
    assert answer.value == 10 and shop.prompts(TASK) == []


def test_candidates_that_only_compare_a_text_have_no_vote() -> None:
    like = "SELECT count(*) FROM letters WHERE letter LIKE '%late%'"
    plain = Scripted("planner", "FROM letters\nSELECT count(*)")
    answer, _ = lines(plain, *said(like, like, like), question="How many letters are there?")
    assert answer.value == 30


def test_the_route_has_off_switches() -> None:
    answer, shop = lines(IN_LINES, *said(YORK, YORK, YORK), candidates=0)
    assert answer.value == ["Ada", "Cy"] and shop.prompts(TASK) == []
    answer, shop = lines(IN_LINES, *said(YORK, YORK, YORK), lines=False)
    assert answer.value == "Bo" and shop.prompts("planner") == []
    with pytest.raises(ConfigError, match="candidates"):
        lines(IN_LINES, candidates=-1)


def test_plots_and_plans_of_the_users_own_have_no_vote() -> None:
    drawn = Scripted("planner", "FROM shops\nGROUP BY city\nSELECT count(*)\nPLOT bar")
    answer, shop = lines(drawn, *said(YORK), question="Plot the number of shops per city.")
    assert len(answer.plots) == 1 and shop.prompts(TASK) == []


def test_a_temperature_and_its_seed_reach_the_provider_and_make_another_question() -> None:
    drawn = [Write("q", parameters=(("temperature", "0.7"), ("seed", str(n)))) for n in (1, 2)]
    assert [(q.reply().temperature, q.reply().seed) for q in drawn] == [(0.7, 1), (0.7, 2)]
    assert drawn[0] != drawn[1] and Write("q").reply().temperature == 0.0
