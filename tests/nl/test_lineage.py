"""A private column stays private under any name that a query gives it."""

from __future__ import annotations

import pytest
from nl.shop import Connected, plan, uql_node

from uql.base.schema import Field
from uql.llm.providers.scripted import Scripted
from uql.nl.plan.dag import Node, NodeKind
from uql.nl.plan.lineage import marked

READ = (Field("name", "VARCHAR"), Field("owner_phone", "VARCHAR", private=True))


def hidden(kind: NodeKind, body: str, *columns: str) -> set[str]:
    made = marked(Node("n", kind, body), [Field(name, "VARCHAR") for name in columns], READ)
    return {f.name for f in made if f.private}


@pytest.mark.parametrize("kind", [NodeKind.UQL, NodeKind.SQL])
@pytest.mark.parametrize(
    ("body", "columns", "private"),
    [
        ("SELECT name, owner_phone AS contact FROM shops", ("name", "contact"), {"contact"}),
        ("SELECT upper(owner_phone) AS a, name AS b FROM shops", ("a", "b"), {"a"}),
        ("SELECT count(owner_phone) AS n, max(owner_phone) AS m FROM shops", ("n", "m"), {"m"}),
        ("SELECT c AS d FROM (SELECT owner_phone AS c FROM shops) AS t", ("d",), {"d"}),
        ("SELECT * FROM shops", ("name", "owner_phone"), {"owner_phone"}),
        ("SELECT * RENAME (owner_phone AS c) FROM shops", ("name", "c"), {"name", "c"}),
        ("SELECT * LIKE 'owner%' AS 'a_\\0', count(*) AS n FROM shops", ("a_owner_phone", "n"), {"a_owner_phone", "n"}),
        ("SELECT COLUMNS('owner.*') AS c FROM shops", ("c",), {"c"}),
        ("SELECT name AS n FROM shops", ("n",), set()),
        ("SELECT #2 AS p, name AS n FROM shops", ("p", "n"), {"p"}),
        ("SELECT s.a AS p FROM (SELECT {'a': owner_phone} AS s FROM shops)", ("p",), {"p"}),
        ("SELECT s.name FROM (SELECT {'name': owner_phone} AS s FROM shops)", ("name",), {"name"}),
        ("SELECT name FROM (SELECT s.name FROM (SELECT {'name': owner_phone} AS s FROM shops))", ("name",), {"name"}),
        ("SELECT name FROM (SELECT unnest({'name': owner_phone}) FROM shops)", ("name",), {"name"}),
        ("SELECT unnest({'x': 1, 'name': owner_phone}) FROM shops", ("x", "name"), {"x", "name"}),
        ("SELECT * EXCLUDE (name), unnest({'name': owner_phone}) FROM shops", ("name",), {"name"}),
        ("SELECT s.* FROM (SELECT {'name': owner_phone} AS s FROM shops)", ("name",), {"name"}),
        ("SELECT unnest AS p FROM shops, unnest([owner_phone])", ("p",), {"p"}),
        ("SELECT u.name FROM shops, unnest([{'name': owner_phone}]) AS u", ("name",), {"name"}),
        ("SELECT upper FROM (SELECT upper(owner_phone) FROM shops)", ("upper",), {"upper"}),
        ('SELECT "max(owner_phone)" AS p FROM (SELECT max(owner_phone) FROM shops)', ("p",), {"p"}),
        ("SELECT * FROM (SELECT max(owner_phone) FROM shops)", ("max(owner_phone)",), {"max(owner_phone)"}),
        ("SELECT g AS p, count(*) AS n FROM shops GROUP BY owner_phone AS g", ("p", "n"), {"p"}),
        ("SELECT q FROM (SELECT name AS p, name AS q FROM shops UNION ALL SELECT * FROM shops)", ("q",), {"q"}),
        ("SELECT name FROM (SELECT owner_phone FROM shops) AS name", ("name",), {"name"}),
        ('SELECT CAST("s" AS VARCHAR) AS p FROM shops AS s', ("p",), {"p"}),
        ("SELECT t.m AS o FROM (SELECT max(name) AS m FROM shops) AS t", ("o",), set()),
        ("SELECT list_transform(l, x -> upper(x)) AS o FROM (SELECT list(name) AS l FROM shops)", ("o",), set()),
        ("SELECT * FROM (SELECT * FROM shops)", ("name", "owner_phone"), {"owner_phone"}),
    ],
)
def test_what_a_private_column_gives_is_private_under_any_name(
    kind: NodeKind, body: str, columns: tuple[str, ...], private: set[str]
) -> None:
    assert hidden(kind, body, *columns) == private


def test_a_question_with_a_private_hole_is_private_and_what_cannot_be_followed_too() -> None:
    assert hidden(NodeKind.UQL, 'SELECT PROMPT "the area of {owner_phone}" AS area FROM shops', "area") == {"area"}
    assert hidden(NodeKind.PYTHON, "[{'x': r['owner_phone']} for r in shops]", "x") == {"x"}
    assert hidden(NodeKind.SQL, "SELECT FROM WHERE", "x") == {"x"}


FULL = {
    "answerable": True,
    "reason": "",
    "need_more": False,
    "summary": "told",
    "details": "",
    "source": [],
    "inference": "",
    "extra": "",
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name AS p FROM shops UNION ALL SELECT owner_phone FROM shops",
        "SELECT p FROM (SELECT name AS p FROM shops UNION SELECT owner_phone FROM shops) AS t",
        "WITH c(p) AS (SELECT owner_phone FROM shops) SELECT p FROM c",
        "SELECT t.p FROM (SELECT owner_phone FROM shops) AS t(p)",
        "SELECT s AS p FROM shops AS s, LATERAL (SELECT s.id) AS x",
        "SELECT x.p FROM shops AS s, LATERAL (SELECT s.owner_phone AS p) AS x",
        "SELECT unnest([name, owner_phone]) AS p FROM shops",
        "SELECT string_agg(owner_phone, ',') AS p FROM shops",
        "SELECT * RENAME (owner_phone AS p) FROM shops",
    ],
)
def test_private_values_are_in_no_prompt_whatever_a_query_makes_of_them(sql: str) -> None:
    shop = Connected([plan(uql_node("a", sql)), Scripted("aggregator", FULL)])
    answer = shop.con.ask("What is the phone of shop 2?", style="full")
    assert answer.text == "told", answer.cannot
    assert not any("01904-2" in prompt for _, prompt in shop.model.asked)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sql", "python"),
    [
        ("SELECT CAST(owner_phone AS INTEGER) AS q FROM shops", ""),
        ("SELECT CAST(p AS INTEGER) AS q FROM (SELECT owner_phone AS p FROM shops) AS t", ""),
        ("SELECT CAST(CAST(s AS VARCHAR) AS INTEGER) AS q FROM shops AS s", ""),
        ("SELECT CAST(#4 AS INTEGER) AS q FROM shops", ""),
        ("SELECT count(CAST(owner_phone AS INTEGER)) AS q FROM shops", ""),
        ("SELECT owner_phone AS q FROM shops", "int(a[1]['q'])"),
        ("SELECT owner_phone AS q FROM shops", "raise ValueError(str(a))\n1"),
    ],
)
def test_the_words_of_an_error_bring_no_private_value_into_a_prompt(sql: str, python: str) -> None:
    nodes = [uql_node("a", sql)]
    if python:
        nodes.append({"kind": "python", "name": "b", "inputs": ["a"], "python": python})
    shop = Connected([plan(*nodes), Scripted("debug", {"body": "1" if python else "SELECT 1 AS q"})])
    answer = shop.con.ask("What is the phone of shop 2?")
    assert answer.value == 1, answer.cannot
    prompts = shop.prompts("debug")
    assert "private columns" in prompts[0]
    assert not any("01904-2" in prompt or "0113-1" in prompt for _, prompt in shop.model.asked)


def test_an_error_over_columns_that_are_not_private_is_shown_whole() -> None:
    node = uql_node("a", "SELECT CAST(name AS INTEGER) AS q FROM shops")
    shop = Connected([plan(node), Scripted("debug", {"body": "SELECT 1 AS q"})])
    assert shop.con.ask("What is the name of shop 2?").value == 1
    assert "Could not convert string" in shop.prompts("debug")[0]


def test_a_sub_query_over_a_private_column_has_its_value_for_the_user_and_not_for_the_model() -> None:
    operators = {
        "operators": [{"operator": "TableAnalytics", "sources": ["shops"], "confidence": 0.9, "fit": "direct"}]
    }
    sql = "SELECT name, owner_phone AS p FROM shops WHERE id = 2"
    shop = Connected([Scripted("operators", operators), Scripted("uql", {"sql": sql}), Scripted("aggregator", FULL)])
    answer = shop.con.ask("What is the phone of shop 2?", mode="meta", decomposer=False, style="full")
    assert answer.text == "told" and answer.value == [{"name": "Bo", "p": "01904-2"}]
    assert "name: Bo, p: (private)" in shop.prompts("aggregator")[0]
    assert not any("01904-2" in prompt for _, prompt in shop.model.asked)
