"""Golden plans: each file of golden/plans is a list of cases `query, ----, what explain() prints`, with ==== between them.

`pytest --update-golden` rewrites the files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hash_model import HashModel

import uql
from uql.benchmarks.optimizer.random_queries import WHILE_RUNNING
from uql.compiler.binder import bind
from uql.compiler.bound import BoundQuery
from uql.compiler.parser import parse
from uql.compiler.planner import plan
from uql.compiler.rules import NAMES, RULES
from uql.compiler.syntax import Query

GOLDEN = Path(__file__).parents[1] / "golden" / "plans"
TABLES = """
CREATE TABLE reviews AS SELECT i AS id, ['Alien', 'Brazil', 'Casablanca'][1 + i % 3] AS film, 1 + i % 5 AS stars,
    'Number ' || (1000 + i) || ': a film that I shall not forget so soon, above all its music' AS text,
    'Seen in row ' || (100 + i % 900) || ', with some noise from behind us' AS remark FROM range(1000) t(i);
CREATE TABLE films AS SELECT * FROM (VALUES
    ('Alien', 1979, 'A crew meets a creature in deep space and has to survive it'),
    ('Brazil', 1985, 'A clerk dreams of flying from a state that files everything'),
    ('Casablanca', 1942, 'A bar owner meets an old love in a city full of refugees')) t(title, year, plot);
CREATE TABLE orders AS SELECT i AS id, i % 10 AS customer, (i * 7) % 100 AS total, DATE '2024-01-01' + i::INT AS day
    FROM range(200) t(i);
CREATE TABLE photos AS SELECT i AS id, 'Rome' AS city, '\\x89PNG\\x0D\\x0A\\x1A\\x0A'::BLOB AS photo FROM range(40) t(i);
"""


@pytest.fixture(scope="module")
def con() -> uql.Connection:
    connection = uql.connect(model=HashModel(), ledger=":memory:")
    for statement in TABLES.strip().rstrip(";").split(";\n"):
        connection.session.duck.execute(statement)
    return connection


@pytest.fixture(scope="module")
def explained(con: uql.Connection) -> Callable[[str], str]:
    """What `explain` says of a query; made once, for the tests that need no more than that."""
    return cache(lambda query: con.uql(query).explain())


def cases(path: Path) -> list[tuple[str, str]]:
    blocks = path.read_text(encoding="utf-8").strip("\n").split("\n====\n")
    return [(query.strip(), said.strip("\n")) for query, _, said in (block.partition("\n----") for block in blocks)]


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.test")), ids=lambda path: path.stem)
def test_the_plans_are_those_of_the_fixtures(path: Path, explained: Callable[[str], str], update_golden: bool) -> None:
    found = [(query, explained(query)) for query, _ in cases(path)]
    if update_golden:
        path.write_text("\n====\n".join(f"{q}\n----\n{said}" for q, said in found) + "\n", encoding="utf-8")
    for (query, now), (_, wanted) in zip(found, cases(path), strict=True):
        assert now == wanted, query


def test_there_are_at_least_sixty_plans() -> None:
    assert sum(len(cases(path)) for path in GOLDEN.glob("*.test")) >= 60


@pytest.mark.thorough
def test_the_plans_show_every_rule_order_and_fusion_and_many_are_not_as_written(
    con: uql.Connection, explained: Callable[[str], str]
) -> None:
    """A plan shows a rule where it is another one without it; orders learned while running are in no plan."""
    names = ("requests", "fusions", "queries", "limits", "filters", "aggregates", "values")  # the likeliest first
    queries = [query for name in names for query, _ in cases(GOLDEN / f"{name}.test")]

    @cache
    def tree(query: str, off: str) -> str:
        if not off:
            return explained(query).partition("\n\n")[0]
        with con.settings(disabled_rules=off):
            return con.uql(query).explain().partition("\n\n")[0]

    @cache
    def bound(query: str) -> BoundQuery:
        parsed = parse(query)
        assert isinstance(parsed, Query)
        return bind(parsed, con.session.catalog, text=query).query

    @cache
    def as_planned(query: str) -> object:
        return plan(bound(query))

    def differs(query: str, name: str) -> bool:
        if name in {rule.__name__ for rule in RULES}:
            return as_planned(query) != plan(bound(query), (name,))
        return tree(query, "") != tree(query, name)

    elsewhere = {"cascade", "videos_whole"}  # a second model, and one that takes videos: tests of the engine show them
    shown = [n for n in NAMES if n not in WHILE_RUNNING and n not in elsewhere]
    assert [name for name in shown if not any(differs(query, name) for query in queries)] == []
    others = (query for query in queries if tree(query, "") != tree(query, ",".join(NAMES)))
    assert len(list(islice(others, 20))) == 20


JSON = GOLDEN.parent / "explain_json.test"


def test_the_plans_as_json_are_those_of_the_fixture(con: uql.Connection, update_golden: bool) -> None:
    def explained(query: str) -> str:
        return "\n".join(line for (line,) in con.uql(f"EXPLAIN (FORMAT JSON) {query}").fetchall())

    found = [(query, explained(query)) for query, _ in cases(JSON)]
    if update_golden:
        JSON.write_text("\n====\n".join(f"{q}\n----\n{said}" for q, said in found) + "\n", encoding="utf-8")
    for (query, now), (_, wanted) in zip(found, cases(JSON), strict=True):
        assert json.loads(now) == json.loads(wanted), query


@pytest.mark.parametrize("query", [query for query, _ in cases(JSON)])
def test_the_plan_as_json_has_the_lines_and_the_price_of_the_text(con: uql.Connection, query: str) -> None:
    shown = con.uql(f"EXPLAIN (FORMAT JSON) {query}").fetchall()
    found = json.loads("\n".join(line for (line,) in shown))

    def lines(step: dict[str, Any], depth: int = 0) -> Iterator[str]:
        yield "  " * depth + step["line"]
        for below in step["inputs"]:
            yield from lines(below, depth + 1)

    def asking(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if step["calls"] is not None:
            yield step
        for below in step["inputs"]:
            yield from asking(below)

    assert "\n".join(lines(found["plan"])) == con.uql(query).explain().partition("\n\n")[0]
    price, whole = found["price"], found["price"]["calls_for_every_row"]
    asked = list(asking(found["plan"]))
    assert sum(step["calls"]["expected"] for step in asked) == pytest.approx(whole["expected"])
    if found["budget_calls"] is None or whole["high"] <= found["budget_calls"]:
        for what in ("calls", "input_tokens", "output_tokens", "usd"):
            assert sum(step[what]["expected"] for step in asked) == pytest.approx(price[what]["expected"], abs=1e-5), (
                what
            )
