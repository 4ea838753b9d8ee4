"""The modes `meta` and `interleaved`, with a model that follows a script and adapters that count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nl.shop import Connected, uql_node

from uql.llm.providers.scripted import Scripted
from uql.nl.ask.context import AskContext
from uql.nl.plan.dag import Operator, SubAnswer
from uql.nl.prompts import aggregator, meta_engine
from uql.nl.schema.scope import Source


class Fixed:
    """An adapter that answers from a table of sub-queries."""

    def __init__(self, name: str, answers: Mapping[str, Any], able: Sequence[Operator] = tuple(Operator)) -> None:
        self.name, self.answers, self.able = name, answers, able
        self.asked: list[str] = []

    def capable(self, operator: Operator) -> bool:
        return operator in self.able

    async def run(self, subquery: str, sources: Mapping[str, Source], ctx: AskContext) -> SubAnswer:
        self.asked.append(subquery)
        value = self.answers.get(subquery)
        return SubAnswer(
            value,
            "" if value is None else str(value),
            tuple(sources),
            self.name,
            problem=None if value is not None else "not there",
        )


class Backwards:
    """A router that turns the order of the names round."""

    def rank(self, subquery: str, operator: Operator, adapters: Sequence[str]) -> Sequence[str]:
        return sorted(adapters, reverse=True)


def operators(*ranked: tuple[str, str, float], again: bool = False) -> Scripted:
    said = [{"operator": op, "sources": ["shops", "letters"], "fit": fit, "confidence": c} for op, fit, c in ranked]
    return Scripted("operators", {"operators": said}, again=again)


TABLE = ("TableAnalytics", "direct", 0.95)
TEXT = ("TextAnalytics", "likely", 0.8)
COMPLEX = Scripted("checker", {"signs": ["multi_step"], "verdict": "complex"})
SIMPLE = Scripted("checker", {"signs": ["one_fact"], "verdict": "simple"})
SAID = {
    "answerable": True,
    "reason": "",
    "need_more": False,
    "summary": "York",
    "details": "",
    "source": ["shops"],
    "inference": "",
    "extra": "",
}


def parts(*queries: tuple[str, list[int]]) -> Scripted:
    return Scripted("decomposer", {"sub_queries": [{"query": q, "uses": uses} for q, uses in queries]})


def test_a_table_may_have_the_name_of_a_part_in_capitals() -> None:
    shop = Connected([SIMPLE, operators(TABLE)])
    shop.con.uql("CREATE TABLE PART1 AS SELECT 1 AS n").fetchall()
    answer = shop.con.ask("Where is Bo?", mode="meta", adapters={"uql": Fixed("uql", {"Where is Bo?": "York"})})
    assert answer.text == "York" and list(answer.results) == ["part1_1"]


def test_a_simple_question_is_not_decomposed() -> None:
    shop = Connected([SIMPLE, operators(TABLE)])
    one = Fixed("uql", {"Where is Bo?": "York"})
    answer = shop.con.ask("Where is Bo?", mode="meta", adapters={"uql": one})
    assert answer.text == "York" and answer.signs == ("one_fact",)
    assert shop.tasks() == ["checker", "operators"]
    assert "TableAnalytics 0.95 over shops, letters" in answer.plan.text


def test_an_unsure_checker_and_a_sign_of_a_complex_question_mean_complex() -> None:
    for said in ({"signs": [], "verdict": "unsure"}, {"signs": ["comparison"], "verdict": "simple"}):
        shop = Connected([Scripted("checker", said), parts(("Where is Bo?", [])), operators(TABLE)])
        shop.con.ask("Where is Bo?", mode="meta", adapters={"uql": Fixed("uql", {"Where is Bo?": "York"})})
        assert shop.tasks()[:2] == ["checker", "decomposer"]


def test_checker_and_decomposer_can_be_switched_off() -> None:
    one = Fixed("uql", {"Where is Bo?": "York"})
    without = Connected([parts(("Where is Bo?", [])), operators(TABLE)])
    without.con.ask("Where is Bo?", mode="meta", checker=False, adapters={"uql": one})
    assert without.tasks() == ["decomposer", "operators"]
    neither = Connected([operators(TABLE)])
    neither.con.ask("Where is Bo?", mode="meta", decomposer=False, adapters={"uql": one})
    assert neither.tasks() == ["operators"]


def test_later_sub_queries_are_refined_by_earlier_answers_and_all_are_aggregated() -> None:
    shop = Connected(
        [
            COMPLEX,
            parts(("Which shop has most complaints?", []), ("Where is the shop found in sub-query 1?", [1])),
            operators(TEXT, again=True),
            Scripted("refine", {"query": "Where is the shop Bo?"}),
            Scripted("aggregator", SAID),
        ]
    )
    one = Fixed("uql", {"Which shop has most complaints?": "Bo", "Where is the shop Bo?": "York"})
    answer = shop.con.ask("Where is the shop with most complaints?", mode="meta", adapters={"uql": one})
    assert answer.text == "York" and one.asked == ["Which shop has most complaints?", "Where is the shop Bo?"]
    assert "part2: adapter ← part1 [done]" in answer.plan.text
    assert "Bo" in shop.prompts("refine")[0] and "York" in shop.prompts("aggregator")[0]


def test_a_question_that_is_one_part_is_asked_in_its_own_words() -> None:
    shop = Connected([COMPLEX, parts(("What is the city of Bo?", [])), operators(TABLE)])
    one = Fixed("uql", {"Where is Bo?": "York"})
    assert shop.con.ask("Where is Bo?", mode="meta", adapters={"uql": one}).text == "York"


def test_parts_of_which_one_is_the_whole_question_are_left_out() -> None:
    shop = Connected([COMPLEX, parts(("Which town?", []), ("where is Bo", [1])), operators(TABLE)])
    one = Fixed("uql", {"Where is Bo?": "York"})
    assert shop.con.ask("Where is Bo?", mode="meta", adapters={"uql": one}).text == "York"
    assert one.asked == ["Where is Bo?"]


TWO = {"Which shop has most complaints?": "Bo", "Where is the shop Bo?": "York"}


def picking(finding: str, *more: Scripted) -> tuple[Connected, dict[str, Any]]:
    """A small model that asks two sub-queries and names a finding; the options of `ask`."""
    asked = parts(("Which shop has most complaints?", []), ("Where is the shop found in sub-query 1?", [1]))
    refined = Scripted("refine", {"query": "Where is the shop Bo?"})
    chosen = [Scripted("pick", {"finding": finding})] if finding else []
    shop = Connected([COMPLEX, asked, operators(TEXT, again=True), refined, *chosen, *more], small=True)
    return shop, {"mode": "meta", "adapters": {"uql": Fixed("uql", TWO)}}


def test_a_small_model_names_the_finding_that_is_the_answer_and_writes_none() -> None:
    for finding, text, nodes in (("2", "York", ("part2",)), ("1", "Bo", ("part1",)), ("all", "Bo; York", None)):
        shop, options = picking(finding)
        answer = shop.con.ask("Where is the shop with most complaints?", **options)
        assert answer.text == text and answer.rests_on == (nodes or ("part1", "part2"))
        assert shop.tasks()[-1] == "pick"
        assert "2. Where is the shop Bo?" in shop.prompts("pick")[0]  # the sub-query as it was asked at last
        assert "answer: York" in shop.prompts("pick")[0]


def test_a_small_model_writes_an_answer_in_full_where_that_is_asked_for() -> None:
    shop, options = picking("", Scripted("aggregator", SAID))
    answer = shop.con.ask("Where is the shop with most complaints?", style="full", **options)
    assert shop.tasks()[-1] == "aggregator" and answer.rests_on == ("part1", "part2")


def test_without_an_aggregator_a_small_model_names_nothing() -> None:
    shop, options = picking("")
    answer = shop.con.ask("Where is the shop with most complaints?", aggregate=False, **options)
    assert answer.text == "Bo; York" and shop.tasks()[-2:] == ["refine", "operators"]


def test_operators_and_adapters_are_tried_in_their_order_until_one_answers() -> None:
    shop = Connected([operators(TEXT, TABLE)])
    first = Fixed("a", {}, (Operator.TABLE,))
    second = Fixed("b", {}, (Operator.TABLE,))
    third = Fixed("uql", {"Where is Bo?": "York"}, (Operator.TEXT,))
    answer = shop.con.ask(
        "Where is Bo?",
        mode="meta",
        decomposer=False,
        router=Backwards(),
        adapters={"a": first, "b": second, "uql": third},
    )
    step = next(s for s in answer.steps if s.node == "part1")
    assert answer.text == "York" and step.adapter == "uql" and step.attempts == 3
    assert [who for who, _ in step.tried] == ["TableAnalytics by b", "TableAnalytics by a"]


def test_equal_sub_queries_are_answered_once() -> None:
    same = parts(("Where is Bo?", []), ("where is bo?", []), ("Who is beside Bo?", []))
    shop = Connected([COMPLEX, same, operators(TABLE, again=True), Scripted("aggregator", SAID)])
    one = Fixed("uql", {"Where is Bo?": "York", "Who is beside Bo?": "Ada"})
    shop.con.ask("Where is Bo, where is Bo, and who is beside?", mode="meta", adapters={"uql": one})
    assert sorted(one.asked) == ["Where is Bo?", "Who is beside Bo?"]


def test_a_sub_query_that_nobody_answers_is_said_with_the_reasons() -> None:
    shop = Connected([operators(TABLE)])
    answer = shop.con.ask("Where is Bo?", mode="meta", decomposer=False, adapters={"uql": Fixed("uql", {})})
    assert not answer.answered and "TableAnalytics by uql: not there" in answer.cannot


def steps(*items: tuple[str, list[str], str]) -> Scripted:
    return Scripted(
        "steps", {"steps": [{"description": d, "inputs": i, "output": o, "new_columns": []} for d, i, o in items]}
    )


def mapped(name: str, sql: str, **more: Any) -> Scripted:
    return Scripted("mapping", {"node": uql_node(name, sql)}, **more)


FAULT = {
    "causes": "",
    "fix": "use the column city",
    "plan_flawed": False,
    "better_plan": False,
    "another_tool": False,
    "other_arguments": True,
}


def test_interleaved_maps_each_step_when_its_inputs_are_there() -> None:
    shop = Connected(
        [
            steps(
                ("Count the letters of each shop", ["letters"], "counts"),
                ("Name the shop with most letters", ["counts", "shops"], "best"),
            ),
            mapped("x", "SELECT shop_id, count(*) AS n FROM letters WHERE ask('it complains') GROUP BY shop_id"),
            mapped(
                "y",
                "SELECT shops.name FROM counts JOIN shops ON counts.shop_id = shops.id ORDER BY counts.n DESC LIMIT 1",
            ),
        ]
    )
    answer = shop.con.ask("Which shop gets most complaints?", mode="interleaved")
    assert answer.text == "Ada" and shop.tasks() == ["steps", "mapping", "mapping"]
    observed = shop.prompts("mapping")[1]
    assert 'counts (shop_id INTEGER, n BIGINT), 1 rows: [{"shop_id": 1, "n": 10}]' in observed
    assert [s.node for s in answer.steps if s.kind == "uql"] == ["counts", "best"]


def test_an_invalid_mapping_is_mapped_again_with_its_error() -> None:
    shop = Connected(
        [
            steps(("Find it", ["shops"], "place")),
            mapped("x", "SELECT town FROM shops"),
            mapped("x", "SELECT city FROM shops WHERE id = 2"),
        ]
    )
    answer = shop.con.ask("Where is shop 2?", mode="interleaved")
    assert answer.text == "York" and "Your last try failed" in shop.prompts("mapping")[1]


def test_a_step_that_fails_asks_the_six_questions_and_is_mapped_again_or_planned_again() -> None:
    nobody = "SELECT max(year) AS y FROM letters WHERE shop_id = 9"
    again = Connected(
        [
            steps(("Find it", ["letters"], "y")),
            mapped("y", nobody),
            Scripted("faults", FAULT),
            mapped("y", "SELECT max(year) AS y FROM letters"),
        ]
    )
    assert again.con.ask("When was the last letter?", mode="interleaved").value == 2003
    assert "6. Do the arguments of the step have to be changed?" in again.prompts("faults")[0]

    flawed = {**FAULT, "plan_flawed": True}
    new = Connected(
        [
            steps(("Count complaints", ["letters"], "counts"), ("Find it", ["counts"], "y")),
            mapped("counts", "SELECT shop_id, count(*) AS n FROM letters WHERE ask('it complains') GROUP BY shop_id"),
            mapped("y", "SELECT n FROM counts WHERE shop_id = 77"),
            mapped("y", "SELECT max(shop_id) AS y FROM counts WHERE n > 1000"),
            Scripted("faults", flawed, again=True),
            steps(("Find the shop", ["counts", "shops"], "shop")),
            mapped("shop", "SELECT shops.name FROM counts JOIN shops ON shops.id = counts.shop_id"),
        ]
    )
    answer = new.con.ask("Which shop gets complaints?", mode="interleaved")
    assert answer.replans >= 1 and len(new.reader.calls) == 30


# ------------------------------------------------------------------------------------------------------ a small model
COMPLAINS = "ALTER TABLE letters ADD COLUMN complains BOOLEAN AS read(letter, 'the letter complains');"
FROM = "FROM letters JOIN shops ON letters.shop_id = shops.id WHERE complains GROUP BY shops.name"


def columns(text: str, when: str = "") -> Scripted:
    return Scripted("read_columns", text, when, again=True)


def sql(text: str, when: str = "") -> Scripted:
    return Scripted("statement", text, when, again=True)


def test_the_adapter_has_a_small_model_vote_and_joins_what_the_columns_name() -> None:
    shop = Connected(
        [operators(TABLE), columns(COMPLAINS), sql(f"SELECT shops.name, count(*) AS n {FROM} ORDER BY n DESC LIMIT 1")],
        small=True,
    )
    answer = shop.con.ask("Which shop gets most letters that grumble?", mode="meta", decomposer=False, adapters=["uql"])
    assert "Ada" in answer.text and not answer.cannot and "PROMPT" in answer.uql
    assert set(next(s for s in answer.steps if s.node == "part1").prompts[-1].prompt.split()) >= {"letters", "shops"}


def test_sub_queries_at_the_same_time_keep_their_rows_apart() -> None:
    first, second = "Which shop of Leeds has the highest id?", "Which shop of York has the highest id?"
    shop = Connected(
        [
            COMPLEX,
            parts((first, []), (second, [])),
            operators(TABLE, again=True),
            columns("nothing"),
            sql("SELECT name FROM shops WHERE city = 'Leeds' ORDER BY id DESC LIMIT 1", first),
            sql("SELECT name FROM shops WHERE city = 'York' ORDER BY id DESC LIMIT 1", second),
        ],
        small=True,
    )
    answer = shop.con.ask("Which shops have the highest ids?", mode="meta", adapters=["uql"], aggregate=False)
    assert "Cy" in answer.text and "Bo" in answer.text


def test_a_sub_query_that_no_candidate_answers_is_no_answer() -> None:
    shop = Connected([operators(TABLE), columns("nonsense"), sql("nonsense")], small=True)
    answer = shop.con.ask("How many employees are there?", mode="meta", decomposer=False, adapters=["uql"])
    assert not answer.answered and "no candidate for a plan runs" in answer.cannot


def test_interleaved_has_a_small_model_vote_on_each_step() -> None:
    shop = Connected(
        [
            steps(
                ("Count the letters that grumble per shop", ["letters", "shops"], "result1"),
                ("Draw the counts as a bar chart", ["result1"], "result2"),
            ),
            columns(COMPLAINS, "Count the letters"),
            sql(f"SELECT shops.name, count(*) AS n {FROM}", "Count the letters"),
            sql("SELECT name, n FROM result1", "Draw the counts"),
        ],
        small=True,
    )
    answer = shop.con.ask("Plot the number of complaints per shop.", mode="interleaved")
    assert len(answer.plots) == 1 and not answer.cannot
    assert [s.node for s in answer.steps if s.kind in ("uql", "sql", "plot")] == ["result1", "step1", "result2"]


def test_interleaved_asks_the_whole_question_where_no_steps_can_be_read() -> None:
    shop = Connected(
        [
            Scripted("steps", {"steps": []}, again=True),
            columns("nothing"),
            sql("SELECT name FROM shops WHERE city = 'York'"),
        ],
        small=True,
    )
    answer = shop.con.ask("Which shop is in York?", mode="interleaved")
    assert answer.text == "Bo"


def test_what_a_small_model_is_not_sure_of_in_a_step_is_said_with_the_answer() -> None:
    shop = Connected(
        [
            Scripted("steps", {"steps": []}, again=True),
            columns("nothing"),
            *(Scripted("statement", f"SELECT name FROM shops WHERE id = {n}") for n in (2, 1, 3, 4, 2)),
        ],
        small=True,
    )
    answer = shop.con.ask("Which shop is in York?", mode="interleaved")
    assert answer.text == "Bo" and not answer.exact
    assert answer.notes[0].startswith("result1: not sure: 2 of 5 candidates give this; others: Ada by")


def test_the_checker_knows_the_papers_six_signs_of_a_complex_question_and_four_of_a_simple_one() -> None:
    assert (len(meta_engine.COMPLEX), len(meta_engine.SIMPLE)) == (6, 4)
    prompt = meta_engine.checking("Where is Bo?", "shops").user
    for sign, meaning in {**meta_engine.COMPLEX, **meta_engine.SIMPLE}.items():
        assert f"- {sign}: {meaning}" in prompt
        said = Scripted("checker", {"signs": [sign], "verdict": "simple"})
        shop = Connected([said, parts(("Where is Bo?", [])), operators(TABLE)])
        shop.con.ask("Where is Bo?", mode="meta", adapters={"uql": Fixed("uql", {"Where is Bo?": "York"})})
        assert ("decomposer" in shop.tasks()) is (sign in meta_engine.COMPLEX), sign


def test_parts_that_contradict_each_other_go_to_the_model_with_the_papers_rules() -> None:
    asked = parts(("Where is Bo?", []), ("Is Bo in Leeds?", []))
    told = Fixed("uql", {"Where is Bo?": "York", "Is Bo in Leeds?": "Leeds"})
    shop = Connected(
        [COMPLEX, asked, operators(TABLE, again=True), Scripted("aggregator", {**SAID, "extra": "two towns"})]
    )
    answer = shop.con.ask("Where is Bo, in Leeds?", mode="meta", adapters={"uql": told})
    (prompt,) = shop.prompts("aggregator")
    assert "answer: York" in prompt and "answer: Leeds" in prompt
    rules = aggregator.wording("", "", (), (), "short").system  # figure 7: with earlier parts, then more specific
    assert rules.index("agrees with what earlier parts found") < rules.index("more specific")
    assert answer.text == "York" and "two towns" in answer.json["extra"]
