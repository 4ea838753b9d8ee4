"""What large models write that is no plan: too much, too little, names that nobody has, numbers from nought. It goes back, or is told."""

from __future__ import annotations

from typing import Any

import pytest
from nl.shop import PLAN, Connected, plan, uql_node
from nl.test_every_model import COMPLEX, OPERATORS, SAID, mapped, over, parts, steps, uql_of

from uql.base.errors import BackendError, QuestionError
from uql.llm.providers import chat_reply
from uql.llm.providers.scripted import Scripted
from uql.nl.plan import read_plan
from uql.operators.replies import Text

RIGHT = steps(("SQL: the first", ["t"], "first"), ("SQL: how many", ["first"], "n"))
FIRST = mapped("SELECT id, name FROM t WHERE id < 40", when="Output: first")
COUNT = mapped("SELECT count(*) AS n FROM first", when="Output: n")


def asked_for(model: Any, task: str) -> list[str]:
    return [prompt for name, prompt in model.asked if name == task]


# ------------------------------------------------------------------------------------------------------------ steps
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (steps(*((f"step {n}", ["t"], f"s{n}") for n in range(200))), "there are 200 steps (1 to 10)"),
        (steps(), "there are 0 steps (1 to 10)"),
        (steps(("a", ["t"], "first"), ("b", ["step 1"], "n")), "step 2 reads 'step 1', which is not there"),
        (steps(("a", ["stores"], "first"), ("b", ["first"], "n")), "step 1 reads 'stores', which is not there"),
        (steps(("a", ["t"], "first"), ("b", [], "n")), "step 2 reads nothing"),
        (steps(("a", ["b"], "a"), ("b", ["a"], "b")), "wait for each other"),
        (steps(("a", ["a"], "a")), "step 1 reads 'a', which is not there"),
        (steps(("a", ["t"], "first; DROP")), "an output is called 'first; DROP'"),
    ],
)
def test_steps_that_cannot_be_run_go_back_before_any_of_them_runs(wrong: Scripted, said: str) -> None:
    con, model = over(90, wrong, RIGHT, FIRST, COUNT)
    answer = con.ask("How many are first?", mode="interleaved")
    assert answer.value == 40 and answer.exact and len(model.asked) == 4
    assert said in asked_for(model, "steps")[1]


def test_steps_that_stay_wrong_cost_two_requests_and_say_why() -> None:
    wrong = Scripted("steps", steps(("a", ["stores"], "first")).reply, again=True)
    con, model = over(90, wrong)
    answer = con.ask("How many are first?", mode="interleaved")
    assert not answer.answered and "step 1 reads 'stores'" in answer.cannot and len(model.asked) == 2


def test_a_step_may_write_names_in_other_letters_and_with_their_schema() -> None:
    con, _ = over(90, steps(("a", ["main.T"], "First"), ("b", ["first"], "n")), FIRST_UPPER, COUNT_UPPER)
    answer = con.ask("How many are first?", mode="interleaved")
    assert answer.value == 40 and answer.exact and set(answer.tables) == {"n"}


FIRST_UPPER = mapped("SELECT id, name FROM t WHERE id < 40", when="Output: First")
COUNT_UPPER = mapped("SELECT count(*) AS n FROM first", when="Output: n")


def test_a_budget_that_ends_between_steps_gives_what_was_found() -> None:
    con, _ = over(90, RIGHT, FIRST, COUNT)
    answer = con.ask("How many are first?", mode="interleaved", budget=2)
    assert answer.partial == "budget" and "raise budget" in answer.cannot
    assert answer.notes == ["found before the limit: first: 40 rows: id, name"]


# ------------------------------------------------------------------------------------------------------- sub-queries
TWO = (("Which are first?", []), ("How many of those found in sub-query 1 are there?", [1]))
REFINED = Scripted("refine", {"query": "How many rows of part1 are there?"})
BY_PARTS = (
    uql_of("SELECT id, name FROM t WHERE id < 40", "Which are first?"),
    REFINED,
    OPERATORS,
    uql_of("SELECT count(*) AS n FROM part1", "rows of part1"),
)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (parts(*((f"What is {n}?", []) for n in range(5))), "there are 5 sub-queries, 3 are the most"),
        (parts(TWO[0], ("How many of those found in sub-query 0 are there?", [0])), "sub-query 2 uses 0"),
        (parts((TWO[1][0], [2]), TWO[0]), "sub-query 1 uses 1"),
    ],
)
def test_sub_queries_too_many_or_that_use_none_before_them_go_back(wrong: Scripted, said: str) -> None:
    con, model = over(90, COMPLEX, wrong, parts(*TWO), OPERATORS, *BY_PARTS)
    answer = con.ask("How many are first?", mode="meta", adapters=["uql"], aggregate=False)
    assert answer.results["part2"].sub.value == 40
    assert said in asked_for(model, "decomposer")[1]


def test_what_a_sub_query_uses_is_also_known_by_its_words() -> None:
    con, model = over(90, COMPLEX, parts(TWO[0], (TWO[1][0], [])), OPERATORS, *BY_PARTS)
    answer = con.ask("How many are first?", mode="meta", adapters=["uql"], aggregate=False)
    assert answer.results["part2"].sub.value == 40 and asked_for(model, "refine")


def test_a_sub_query_is_not_refined_to_the_few_rows_that_the_prompt_shows() -> None:
    few = Scripted("refine", {"query": "How many are name 0, name 1 and name 2?"})
    con, model = over(90, COMPLEX, parts(*TWO), OPERATORS, BY_PARTS[0], few, *BY_PARTS[1:])
    answer = con.ask("How many are first?", mode="meta", adapters=["uql"], aggregate=False)
    assert answer.results["part2"].sub.value == 40
    assert "not all rows of part1 are shown" in asked_for(model, "refine")[1]


def test_a_step_to_a_part_that_failed_is_not_the_answer() -> None:
    con, _ = over(90, COMPLEX, parts(*TWO), OPERATORS, BY_PARTS[0], REFINED, OPERATORS)
    answer = con.ask("How many are first?", mode="meta", adapters=["uql"], aggregate=False)
    assert not answer.answered and "part2: no adapter answered" in answer.cannot and not answer.text


# ------------------------------------------------------------------------------------------------------------- plans
def test_a_plan_of_hundreds_of_nodes_is_refused_before_its_statements_are_read() -> None:
    nodes = [uql_node(f"n{n}", "SELECT 1") for n in range(200)]
    with pytest.raises(QuestionError, match="a plan of 200 nodes"):
        read_plan.from_json({"nodes": nodes}, {}, shapes=lambda name, body: pytest.fail("it was read"))


def test_what_a_plan_leaves_out_is_noted() -> None:
    node = uql_node("n", "SELECT count(*) AS n FROM shops")
    shop = Connected([plan(node, cannot="there are no refunds in the data")])
    answer = shop.con.ask("How many shops are there, and how many refunds?")
    assert answer.value == 3 and not answer.exact
    assert answer.notes == ["not in the plan: there are no refunds in the data"]
    shop = Connected([plan(node, cannot="None.")])
    assert shop.con.ask("How many shops are there?").exact


def test_a_model_that_is_not_there_is_asked_for_one_reply_and_no_other_plan() -> None:
    shop = Connected([Scripted(PLAN, fail="timeout", again=True)])
    with pytest.raises(BackendError, match="the model that plans did not answer \\(planner\\): timeout") as error:
        shop.con.ask("How many shops are there?")
    assert len(shop.model.asked) == 3 and "ask again later" in str(error.value)


def test_what_was_found_is_said_where_the_model_that_writes_is_not_there() -> None:
    node = uql_node("n", "SELECT count(*) AS n FROM shops")
    shop = Connected([plan(node), Scripted("aggregator", fail="timeout", again=True)])
    answer = shop.con.ask("How many shops are there?", aggregate=True)
    assert answer.text == "3" and "written without a model" in answer.json["extra"]


def test_an_error_repeats_no_more_than_a_line_of_what_the_model_wrote() -> None:
    shop = Connected([Scripted(PLAN, {"cannot": "", "nodes": [{"kind": "x" * 100_000}]}, again=True)])
    answer = shop.con.ask("How many shops are there?")
    assert not answer.answered and all(len(prompt) < 20_000 for _, prompt in shop.model.asked)


# ----------------------------------------------------------------------------------------------------------- replies
def test_words_in_place_of_json_are_quoted_and_not_asked_for_at_greater_length() -> None:
    shop = Connected([Scripted(PLAN, "I'm sorry, but I can't help with that.", again=True)])
    answer = shop.con.ask("How many shops are there?")
    assert "I'm sorry" in answer.cannot and len(shop.model.asked) == 6
    problem = Text("{}").read('{"cannot": "", "nod').problem
    assert problem is not None and problem.kind == "truncated"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<think>a plan like {"nodes": []}?</think>\n{"a": 1}', '{"a": 1}'),
        ("\n<think>\n</think>\n\nyes", "yes"),
        ("it says </think>", "it says </think>"),
        ("<think>and no end", "<think>and no end"),
    ],
)
def test_reasoning_that_a_server_leaves_in_the_text_is_no_part_of_the_reply(text: str, said: str) -> None:
    message = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": text}}]}
    assert chat_reply.formed(chat_reply.completion, message).text == said


# ----------------------------------------------------------------------------------------------------------- answers
def test_a_figure_that_a_model_made_up_makes_an_answer_inexact() -> None:
    node = uql_node("n", "SELECT count(*) AS n, DATE '2024-01-05' AS day FROM shops")
    for summary, exact in (("77 of them", False), ("3 of 12 on 2024-01-05", True)):
        shop = Connected([plan(node), Scripted("aggregator", {**SAID, "summary": summary})])
        answer = shop.con.ask("How many of the 12 shops?", aggregate=True)
        assert answer.exact is exact, answer.notes
        assert exact or answer.notes == ["figures that stand in no result: 77"]


def test_an_answer_that_is_cut_says_so_and_stands_whole_in_its_details() -> None:
    nodes = (uql_node("a", "SELECT * FROM letters"), uql_node("b", "SELECT name FROM shops"))
    whole = "the shops are Ada and Bo and then after all of these Cy"
    shop = Connected([plan(*nodes), Scripted("aggregator", {**SAID, "summary": whole})])
    answer = shop.con.ask("What is there?")
    assert answer.text == "the shops are Ada and Bo and then after all…" and answer.json["details"] == whole
    assert "the answer was cut: its details have it whole" in answer.notes and not answer.exact


def test_half_a_surrogate_pair_in_a_question_is_no_fault_of_the_engine() -> None:
    shop = Connected([plan(uql_node("n", "SELECT count(*) AS n FROM shops"))])
    assert shop.con.ask("How many shops \ud800?").value == 3


@pytest.mark.parametrize("adapter", ["single_model", "structgpt"])
def test_texts_of_which_a_model_was_shown_the_beginning_are_noted(adapter: str) -> None:
    found = Scripted("single_model", {"found": True, "answer": "late", "sources": ["t"]})
    grounded = Scripted("structgpt_schema", {"table": "t", "columns": ["name"]})
    replies = (grounded, Scripted("structgpt_rows", {"conditions": []}), Scripted("structgpt_answer", found.reply))
    for times, exact in ((10, True), (200, False)):
        con, _ = over(3, OPERATORS, *((found,) if adapter == "single_model" else replies))
        con.sql(f"SELECT id, repeat('late ', {times}) AS name FROM t").create("u")
        con.execute("DROP TABLE t")
        con.execute("ALTER TABLE u RENAME TO t")
        answer = con.ask("What do they say?", mode="meta", decomposer=False, adapters=[adapter])
        assert answer.text == "late" and answer.exact is exact
        assert exact or answer.notes == ["the model was shown 600 characters of longer texts of t: name"]


@pytest.mark.parametrize("mode", ["dag", "interleaved"])
def test_where_a_step_fails_the_others_are_told_and_are_not_the_answer(mode: str) -> None:
    good, bad = "SELECT count(*) AS n FROM t", "SELECT CAST(name AS INTEGER) AS m FROM t"
    one = [steps(("SQL: a", ["t"], "a"), ("SQL: b", ["t"], "b")), mapped(good, when="Output: a")]
    one += [mapped(bad, when="Output: b", again=True)]
    con, _ = over(9, *(one if mode == "interleaved" else [plan(uql_node("a", good), uql_node("b", bad))]))
    answer = con.ask("How many are there, and which is the last?", mode=mode, aggregate=False)
    assert not answer.answered and not answer.text and "b" not in answer.tables
    assert "b: DuckDB: Conversion Error" in answer.cannot
    ended = {"dag": "the limit", "interleaved": "it failed"}[mode]  # of two re-plans
    assert answer.notes == [f"found before {ended}: a: 9"]


RULE = "A first one has an id below 40."


@pytest.mark.parametrize(
    ("options", "replies", "tasks"),
    [
        (
            {"mode": "meta", "adapters": ["uql"]},
            (COMPLEX, parts(*TWO), OPERATORS, *BY_PARTS),
            ("decomposer", "uql", "uql"),
        ),
        (
            {"mode": "meta", "adapters": ["single_model"], "decomposer": False},
            (OPERATORS, Scripted("single_model", {"found": True, "answer": "40", "sources": ["t"]})),
            ("single_model",),
        ),
        ({"mode": "interleaved"}, (RIGHT, mapped("SELECT nobody FROM t"), FIRST, COUNT), ("steps", *["mapping"] * 3)),
        (
            {"mode": "dag"},
            (plan(uql_node("n", "SELECT CAST(name AS INTEGER) FROM t")), Scripted("debug", {"body": "SELECT 40 AS n"})),
            (PLAN, "debug"),
        ),
    ],
)
def test_rules_of_the_use_case_stand_before_whoever_writes_a_part(options: Any, replies: Any, tasks: Any) -> None:
    """And so do metrics and verified questions of the semantic model, and the reading of an ambiguous question, which are rules too."""
    con, model = over(90, *replies)
    answer = con.ask("How many are first?", rules=RULE, aggregate=False, **options)
    assert answer.answered and "40" in answer.text
    assert tuple(task for task, prompt in model.asked if RULE in prompt) == tasks


@pytest.mark.thorough
@pytest.mark.parametrize(("most", "exact"), [("LIMIT 5", False), ("LIMIT 500", True), ("ORDER BY id LIMIT 5", True)])
@pytest.mark.parametrize("mode", ["dag", "interleaved", "meta"])
def test_a_limit_in_the_middle_that_leaves_rows_to_chance_is_noted(mode: str, most: str, exact: bool) -> None:
    some = f"SELECT id, name FROM t {most}"
    by_mode = {
        "dag": (plan(uql_node("first", some), uql_node("n", "SELECT count(*) AS n FROM first")),),
        "interleaved": (RIGHT, mapped(some, when="Output: first"), COUNT),
        "meta": (COMPLEX, parts(*TWO), OPERATORS, uql_of(some, "Which are first?"), *BY_PARTS[1:]),
    }
    con, _ = over(90, *by_mode[mode])
    answer = con.ask("How many are first?", mode=mode, aggregate=False)
    name = "part1" if mode == "meta" else "first"
    assert answer.exact is exact
    assert exact or answer.notes == [f"{name}: LIMIT 5 without ORDER BY: other rows may be left out"]


@pytest.mark.parametrize("adapter", ["single_model", "structgpt"])
def test_a_figure_that_a_model_computes_from_rows_it_reads_is_noted(adapter: str) -> None:
    for said, exact in (("note 14", True), ("the sum is 315", False), ("9 of the 40 rows", False)):
        found = Scripted("single_model", {"found": True, "answer": said, "sources": ["t"]})
        replies = (
            Scripted("structgpt_schema", {"table": "t", "columns": ["name", "note"]}),
            Scripted("structgpt_rows", {"conditions": []}),
            Scripted("structgpt_answer", found.reply),
        )
        con, _ = over(10, OPERATORS, *((found,) if adapter == "single_model" else replies))
        answer = con.ask("What is there?", mode="meta", decomposer=False, adapters=[adapter])
        assert answer.text == said and answer.exact is exact, answer.notes
        figure = said.split()[-1] if "sum" in said else "40"
        assert exact or answer.notes == [f"the model says figures that stand in no row: {figure}"]
