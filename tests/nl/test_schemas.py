"""The JSON schemas of the prompts: closed, as strict structured output demands, and read strictly where a server has none."""

from __future__ import annotations

import json

import pytest
from nl.shop import Connected, plan, uql_node

from uql.llm.prompts.json_schema import closed
from uql.llm.providers import strict
from uql.llm.providers.scripted import Scripted
from uql.nl.plan.dag import Operator
from uql.nl.prompts import BOOLEAN, Wording, aggregator, interleaved, meta_engine, misfit, planner, text

TABLES = ["shops", "letters"]
COLUMNS = ["shops.id", "shops.name", "letters.shop_id"]
WORDINGS = [
    planner.columns("q", "s", COLUMNS),
    meta_engine.checking("q", "s"),
    meta_engine.decomposing("q", "s"),
    meta_engine.refining("q", "s"),
    meta_engine.ranking("q", "s", list(Operator), TABLES),
    aggregator.wording("q", "s", TABLES, (), "short"),
    interleaved.faults("q", "p", "s", "e", "d"),
    planner.readings("q", "s"),
    interleaved.steps("q", "s", ()),
    interleaved.mapping("q", "s", "d", "o"),
    planner.wording("q", "s", ""),
    planner.debugging("q", "uql", "b", "e", "s", "r"),
]


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda w: f"{w.task}-{len(json.dumps(w.schema))}")
def test_every_object_of_a_schema_is_closed_and_requires_all_it_has(wording: Wording) -> None:
    """What strict structured output of the vendors demands."""

    def check(part: object) -> None:
        if isinstance(part, dict):
            if part.get("type") == "object":
                assert part["additionalProperties"] is False
                assert part["required"] == list(part["properties"])
            for value in part.values():
                check(value)
        elif isinstance(part, list):
            for value in part:
                check(value)

    check(wording.schema)


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda w: f"{w.task}-{len(json.dumps(w.schema))}")
def test_a_vendor_gets_no_bounds_and_none_of_the_names_is_lost(wording: Wording) -> None:
    """A property may be called like a bound; it stays."""
    sent = strict.schema(json.dumps(wording.schema))
    shown = json.dumps(sent)
    assert not any(
        f'"{bound}":' in shown for bound in ("maxLength", "minItems", "maxItems", "pattern", "minimum", "maximum")
    )
    assert set(wording.schema["properties"]) == set(sent["properties"])
    assert strict.schema(json.dumps(closed({"pattern": text(), "maximum": BOOLEAN})))["required"] == [
        "pattern",
        "maximum",
    ]


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ({"nodes": [{"kind": "uql", "sql": "SELECT 1", "name": "a"}], "cannot": ""}, None),
        ({"nodes": [{"kind": "uql", "name": "a"}], "cannot": ""}, "the reply.nodes[0] has no sql"),
        ({"nodes": {}, "cannot": ""}, "the reply.nodes is not of the type array"),
        ({"nodes": []}, "the reply has no cannot"),
        ({"nodes": [], "cannot": True}, "the reply.cannot is not of the type string"),
        ("SELECT 1", "the reply is not of the type object"),
    ],
)
def test_a_reply_of_a_server_without_schemas_is_read_strictly(value: object, wrong: str | None) -> None:
    assert misfit(value, planner.text_form()) == wrong


def test_a_reply_that_does_not_fit_is_asked_for_once_more_with_what_is_wrong() -> None:
    shop = Connected([Scripted("planner", {"nodes": 3}), plan(uql_node("n", "SELECT count(*) AS n FROM shops"))])
    assert shop.con.ask("How many shops?").value == 3
    assert "the reply has no cannot" in shop.prompts("planner")[1]
    never = Connected([Scripted("planner", {"nodes": 3}, again=True)])
    assert "no usable reply" in never.con.ask("How many shops?").cannot
