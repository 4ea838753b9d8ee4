"""Metrics of answers, charts, plans and errors."""

from __future__ import annotations

import pyarrow as pa
import pytest

from uql.benchmarks.nl import metrics
from uql.benchmarks.nl.references import Reference, equal
from uql.benchmarks.nl.suites import same
from uql.nl.ask import answer_metrics as measures
from uql.nl.ask.answer import Answer, PlanView
from uql.nl.ask.outputs import Step
from uql.nl.plan.dag import Node, NodeKind, Operator, Plan
from uql.show.plots import Plot

TABLE = pa.table({"team": ["Heat", "Suns", "Heat"], "n": [3, 1, 2]})


def plot(mark: str, **encoding: dict[str, str]) -> Plot:
    return Plot({"mark": mark, "data": {"name": "t"}, "encoding": encoding}, {"t": TABLE})


def test_words_are_compared_without_case_articles_and_forms_of_numbers() -> None:
    assert metrics.exact("the 1,000 games", "1000.0 Games") == 1.0
    assert measures.token_f1("Heat Suns", "Suns") == pytest.approx(2 / 3)
    assert (
        measures.contains("they won 12 games", "12 games") == 1.0 and measures.contains("games 12", "12 games") == 0.0
    )
    assert measures.coverage("12", "12 games") == 0.5
    assert metrics.list_f1(["a b", "c"], ["c", "A b"]) == 1.0
    assert measures.token_f1("", "") == 1.0 and measures.token_f1("x", "") == 0.0


@pytest.mark.parametrize(
    ("said", "reference", "f1", "hit", "recall"),
    [  # T(ŷ), T(y) and m worked out by hand from equations 3 to 6
        ("the Miami Heat won", "Miami Heat", 2 * (2 / 4) * 1 / (2 / 4 + 1), 1.0, 1.0),  # m = 2
        (
            "Heat, by ten points",
            "Miami Heat",
            2 * (1 / 4) * (1 / 2) / (1 / 4 + 1 / 2),
            1.0,
            0.5,
        ),  # one word in common is a hit
        ("won won won", "won it, won it", 2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4), 1.0, 0.5),  # multisets: m = 2
        ("the Suns", "the Heat", 0.5, 1.0, 0.5),  # articles are words
        ("Suns", "Miami Heat", 0.0, 0.0, 0.0),
        ("  MIAMI heat! ", "Miami Heat", 1.0, 1.0, 1.0),
    ],
)
def test_f1_hit_and_recall_are_those_of_meta_engines_equations(
    said: str, reference: str, f1: float, hit: float, recall: float
) -> None:
    assert measures.token_f1(said, reference) == pytest.approx(f1)
    assert (measures.hit(said, reference), measures.coverage(said, reference)) == (hit, recall)


@pytest.mark.parametrize(
    ("said", "answer", "scale", "right"),
    [
        ("$1,496.5 million", ["$1,496.5"], "million", 1.0),
        ("1496.5", ["$1,496.5"], "million", 0.0),
        ("1,496,500 thousand", ["1,496.5"], "million", 1.0),
        ("12.3%", 12.3, "percent", 1.0),
        ("0.123", 12.3, "percent", 1.0),
        ("(5)", ["-5"], "", 1.0),
        ("there were 3 of 5", ["3"], "", 0.0),
        ("Fixed price, Other", ["Other", "Fixed Price"], "", 1.0),
    ],
)
def test_the_scale_is_part_of_a_tatqa_answer(said: str, answer: object, scale: str, right: float) -> None:
    assert metrics.tatqa(said, answer, scale)[0] == right  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "right"), [("$ 26.43 million", 1.0), ("(26.429)", 0.0), ("26.5", 0.0), ("26.429 of 37", 0.0), ("", 0.0)]
)
def test_a_finmmr_answer_is_one_number_within_two_in_a_thousand(said: str, right: float) -> None:
    assert metrics.finmmr(said, 26.429) == right


def test_a_chart_is_right_by_type_and_series() -> None:
    reference = {"chart": "Bar", "series": [["Heat", 3], ["Suns", 1], ["Heat", 2.0]]}
    bar = plot("bar", x={"field": "team"}, y={"field": "n"})
    assert metrics.chart([bar], reference) == (True, True)
    assert metrics.chart([plot("line", x={"field": "team"}, y={"field": "n"})], reference) == (False, True)
    assert metrics.chart([plot("bar", x={"field": "team"}, y={"aggregate": "count"})], reference) == (True, False)
    assert metrics.chart([], reference) == (False, False)
    counted = {"chart": "Pie", "series": [["Heat", 2], ["Suns", 1]]}
    assert metrics.chart([plot("arc", color={"field": "team"}, theta={"aggregate": "count"})], counted) == (True, True)
    assert metrics.chart_type({"mark": {"type": "bar"}, "encoding": {"color": {"field": "x"}}}) == "stacked bar"
    assert metrics.chart_type({"mark": "point", "encoding": {}}) == "scatter"


def answer_of(*nodes: Node, tries: int = 1, **more: object) -> Answer:
    return Answer("q", plan=PlanView(Plan((*nodes, Node("answer", NodeKind.ANSWER, "")))), tries=tries, **more)  # type: ignore[arg-type]


UQL = Node("late", NodeKind.UQL, "SELECT name FROM teams WHERE founded > 1970")
ASKS = Node("late", NodeKind.UQL, 'SELECT game FROM reports WHERE "the home team won"')


def test_a_plan_is_valid_when_it_ends_in_an_answer_and_reads_what_the_reference_reads() -> None:
    tables = ["teams", "reports"]
    assert metrics.valid(answer_of(UQL), tables, ["teams"])
    assert not metrics.valid(answer_of(UQL), tables, ["teams", "reports"])
    assert not metrics.valid(Answer("q"), tables, [])
    assert not metrics.valid(Answer("q", plan=PlanView(Plan((UQL,))), tries=1), tables, ["teams"])
    adapter = Node("part1", NodeKind.ADAPTER, "Who?", operator=Operator.TEXT, sources=("reports",))
    assert metrics.reads(answer_of(adapter).plan.plan, tables) == {"reports"}  # type: ignore[arg-type]


def test_wrong_answers_are_filed_under_the_five_kinds() -> None:
    def kind(
        answer: Answer, modalities: tuple[str, ...] = ("table",), plot: bool = False, needed: tuple[str, ...] = ()
    ) -> str:
        return metrics.error_kind(answer, modalities, plot, ["teams", "reports"], needed)

    assert kind(Answer("q", cannot="UQL202: no column star in teams")) == "data misunderstanding"
    assert kind(answer_of(UQL), needed=("reports",)) == "data misunderstanding"
    assert kind(Answer("q", cannot="the statement is refused: DROP is not a SELECT")) == "impossible action"
    assert kind(answer_of(UQL), ("text",)) == "wrong tool" and kind(answer_of(UQL), plot=True) == "wrong tool"
    assert kind(answer_of(ASKS), ("text",)) == "illogical or missing step"
    failed = Step("late", "uql", "", state="failed", problem="it gives no rows")
    assert kind(answer_of(UQL, steps=[failed])) == "wrong arguments"


def reference(answer: object, output: str = "table") -> Reference:
    return Reference("q", "q", output, ("table",), answer, "rows", "b", "s")


def test_rows_are_the_same_under_any_names_and_order_of_columns() -> None:
    rows = reference({"columns": ["n", "team"], "rows": [[1, "Suns"], [2, "Heat"], [3, "Heat"]]})
    assert same(TABLE, rows)
    assert not same(TABLE.slice(1), rows)
    assert not equal((TABLE.rename_columns(["a", "b"]),), rows)
    one = reference({"columns": ["name", "points"], "rows": [["Suns", 1]]}, "value")
    assert same(pa.table({"who": ["Suns"]}), one)
    assert not same(pa.table({"who": ["Suns"]}), reference(one.answer))


def test_a_set_may_hold_what_is_doubtful_and_nothing_else() -> None:
    held = reference({"must": ["a"], "may": ["b"]})
    for names, right in ((["a"], True), (["a", "b"], True), (["b"], False), (["a", "c"], False), (["a", "a"], False)):
        assert equal((pa.table({"name": names}),), held) is right
    bars = reference({"series_must": [["x", 2], ["y", 0]], "series_may": [["x", 1]]})
    assert equal((pa.table({"k": ["x", "y"], "n": [3, 0]}),), bars)
    assert not equal((pa.table({"k": ["x", "y"], "n": [4, 0]}),), bars)
    assert not equal((pa.table({"k": ["x"], "n": [2]}),), bars)
