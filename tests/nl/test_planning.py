"""Plans before they run: replies as nodes, checks of every node, examples, pricing of words."""

from __future__ import annotations

import json

import pytest

from uql.base.errors import QuestionError
from uql.base.schema import Field, Modality
from uql.base.settings import Settings
from uql.nl.ask.aggregator import Finding, citations, speaks
from uql.nl.ask.outputs import Output
from uql.nl.ask.plan_checks import check_plan
from uql.nl.papers.operators import fallback, ranked
from uql.nl.plan import read_plan as forms
from uql.nl.plan.dag import NodeKind
from uql.nl.prompts.plans import EXAMPLES, Example, examples_text
from uql.nl.schema.name_words import in_common
from uql.nl.schema.scope import Source

FIELDS = {
    "shops": (
        Field("id", "INTEGER"),
        Field("name", "VARCHAR"),
        Field("open", "BOOLEAN"),
        Field("tags", "VARCHAR[]"),
        Field("since", "DATE"),
    ),
    "letters": (Field("shop_id", "INTEGER"), Field("letter", "VARCHAR", Modality.TEXT)),
    "photos": (Field("shop_id", "INTEGER"), Field("photo", "BLOB", Modality.IMAGE)),
}
SOURCES = {name: Source(name, name, fields, 100) for name, fields in FIELDS.items()}
COLUMNS = [f"{t}.{f.name}" for t, fields in FIELDS.items() for f in fields if f.type != "BLOB"]


def sources_of(example: Example) -> dict[str, Source]:
    kinds = {"TEXT": ("VARCHAR", Modality.TEXT), "IMAGE": ("BLOB", Modality.IMAGE)}
    made = {}
    for table, columns in example.tables.items():
        fields = tuple(Field(c, *kinds.get(kind, (kind, Modality.STRUCTURED))) for c, kind in columns.items())
        made[table] = Source(table, table, fields, 100)
    return made


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.question)
def test_every_example_is_a_valid_plan_in_text(example: Example) -> None:
    sources = sources_of(example)
    plan = forms.from_json({"nodes": example.nodes}, {n: s.fields for n, s in sources.items()})
    assert check_plan(plan, sources, Settings()).problems == ()


def test_the_nearest_examples_are_shown_the_nearest_last() -> None:
    shown = examples_text("How many books came out after 2001?", in_common, most=2)
    assert shown.count("Question: ") == 2 and shown.rindex("after 1990") > shown.index("Question: ")
    assert '"sql":"SELECT count(*) AS n FROM books WHERE year > 1990"' in shown


def test_a_query_in_sql_reads_ask_as_a_quoted_text() -> None:
    assert (
        forms.statement_of("SELECT ask('it''s \"red\"') AS r FROM t;") == 'SELECT PROMPT "it\'s \\"red\\"" AS r FROM t'
    )
    assert forms.statement_of("SELECT a FROM t TO x") == "SELECT a FROM t"
    assert forms.statement_of("DROP TABLE t") == "DROP TABLE t"


def test_edges_follow_from_the_names_in_a_node_and_the_answer_reads_what_is_left() -> None:
    plan = forms.from_json(
        {
            "nodes": [
                {
                    "kind": "python",
                    "name": "c",
                    "inputs": [],
                    "python": "[r for r in b if r['id'] in [x['id'] for x in a]]",
                },
                {"kind": "uql", "name": "a", "sql": "SELECT id FROM shops"},
                {"kind": "uql", "name": "b", "sql": "SELECT a.id FROM a JOIN shops ON a.id = shops.id"},
            ]
        },
        FIELDS,
    )
    assert {node.name: node.inputs for node in plan.nodes} == {"c": ("a", "b"), "a": (), "b": ("a",), "answer": ("c",)}


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([], "no step before its answer"),
        ([{"kind": "shell", "name": "a"}], "has the kind 'shell'"),
        (
            [
                {"kind": "uql", "name": "a", "sql": "SELECT 1 AS x FROM b"},
                {"kind": "uql", "name": "b", "sql": "SELECT 1 AS x FROM a"},
            ],
            "wait for each other",
        ),
        ([{"kind": "uql", "name": "a", "sql": "SELECT id FROM shops"}] * 2, "two nodes are named 'a'"),
        (
            [{"kind": "answer"}, {"kind": "answer"}, {"kind": "uql", "name": "a", "sql": "SELECT id FROM shops"}],
            "two answer nodes",
        ),
        ([{"kind": "uql", "name": f"n{i}", "sql": "SELECT id FROM shops"} for i in range(12)], "at most 12"),
    ],
)
def test_a_reply_that_is_no_plan_says_why(nodes: list[dict[str, object]], message: str) -> None:
    with pytest.raises(QuestionError) as error:
        forms.from_json({"nodes": nodes}, FIELDS)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"kind": "uql", "name": "a", "sql": "SELECT nmae FROM shops"}, "nmae"),
        ({"kind": "uql", "name": "a", "sql": "SELECT sum(name) AS s FROM shops"}, "sum"),
        ({"kind": "uql", "name": "a", "sql": "SELECT name FROM shop"}, "was not given"),
        ({"kind": "sql", "name": "a", "body": "SELECT nmae FROM shops"}, "nmae"),
        ({"kind": "uql", "name": "shops", "sql": "SELECT name FROM letters"}, "give the node another name"),
        ({"kind": "uql", "name": "a", "sql": "SELECT name FROM shops", "columns": ["city"]}, "it makes no column city"),
        ({"kind": "python", "name": "a", "python": "import os\n1"}, "os cannot be imported"),
        ({"kind": "plot", "name": "a", "input": "", "mark": "bar", "x": "name", "y": "id"}, "needs an input"),
        ({"kind": "adapter", "name": "a", "body": "Where?", "sources": ["wiki"]}, "there is no source wiki"),
    ],
)
def test_every_kind_of_node_is_checked_before_anything_runs(node: dict[str, object], message: str) -> None:
    plan = forms.from_json({"nodes": [node]}, FIELDS)
    problems = check_plan(plan, SOURCES, Settings()).problems
    assert len(problems) == 1 and message in str(problems[0])


def test_a_plot_is_checked_against_the_columns_that_its_input_will_have() -> None:
    made = {
        "kind": "uql",
        "name": "a",
        "sql": "SELECT open, count(*) AS n, min(since) AS first FROM shops GROUP BY open",
    }
    good = {"kind": "plot", "name": "p", "input": "a", "mark": "bar", "x": "FIRST", "y": "n", "color": "", "title": "t"}
    checked = check_plan(forms.from_json({"nodes": [made, good]}, FIELDS), SOURCES, Settings())
    assert checked.problems == ()
    encoding = json.loads(checked.plan["p"].body)["encoding"]
    assert encoding == {"x": {"field": "first", "type": "temporal"}, "y": {"field": "n", "type": "quantitative"}}
    bad = check_plan(forms.from_json({"nodes": [made, {**good, "y": "price"}]}, FIELDS), SOURCES, Settings())
    assert "price" in str(bad.problems[0])


def test_types_of_results_are_known_before_anything_runs() -> None:
    nodes = [
        {
            "kind": "uql",
            "name": "a",
            "sql": "SELECT name, CAST(ask('the price') AS DOUBLE) AS price FROM shops JOIN photos ON shops.id = photos.shop_id",
        },
        {"kind": "sql", "name": "b", "body": "SELECT max(price) AS top, count(*) AS n FROM a"},
    ]
    checked = check_plan(forms.from_json({"nodes": nodes}, FIELDS), SOURCES, Settings())
    assert checked.problems == ()
    assert [(f.name, f.type) for f in checked.fields["b"] or ()] == [("top", "DOUBLE"), ("n", "BIGINT")]
    assert checked.plan["b"].kind is NodeKind.SQL


def test_confidences_lie_in_the_range_of_their_rank_as_in_figure_6() -> None:
    from uql.nl.plan.dag import Operator

    possible = {Operator.TABLE: ["shops"], Operator.TEXT: ["letters"]}
    said = {
        "operators": [
            {"operator": "TextAnalytics", "sources": ["letters"], "confidence": 0.9},
            {"operator": "TableAnalytics", "sources": ["shops"], "confidence": 1.0},
            {"operator": "TableAnalytics", "sources": ["shops"], "confidence": 0.2},
            {"operator": "ImageAnalytics", "sources": ["letters"], "confidence": 1.0},
        ]
    }
    assert [(r.operator, r.confidence) for r in ranked(said, possible)] == [
        (Operator.TABLE, 0.95),
        (Operator.TEXT, 0.6),
    ]
    assert [r.operator for r in fallback(possible)] == [Operator.TEXT, Operator.TABLE]


def test_a_figure_that_stands_in_no_result_is_not_supported() -> None:
    import pyarrow as pa

    found = Finding("a", "", Output(pa.table({"city": ["Leeds", "York"], "n": [1200.4, 7.0]})))
    cited, loose = citations("Leeds has 1,200 letters, York 7, and Oslo 3; 2 cities.", [found])
    assert [(c.text, c.row, c.column) for c in cited] == [
        ("Leeds", 0, "city"),
        ("1,200", 0, "n"),
        ("York", 1, "city"),
        ("7", 1, "n"),
        ("2", 0, "(number of rows)"),
    ]
    assert loose == ["3"]
    beyond = Finding("a", "", Output(pa.table({"low": [float("nan"), 7.0], "high": [float("inf"), 9.0]})))
    cited, loose = citations("At least 7, at most 10.", [beyond])
    assert [(c.text, c.row, c.column) for c in cited] == [("7", 1, "low")] and loose == ["10"]


@pytest.mark.parametrize(
    ("value", "said"),
    [(True, "yes"), (None, "NULL"), (2.50, "2.5"), ([1, 2], "1, 2"), (list(range(50)), None), (b"x", None)],
)
def test_a_small_result_speaks_for_itself(value: object, said: str | None) -> None:
    assert speaks(value) == said
