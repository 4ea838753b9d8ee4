"""The price of a plan before it runs: from rows, from traces, and what of it is a guess."""

from __future__ import annotations

from nl.shop import database

from uql.base.settings import Settings
from uql.llm.providers.base import Price
from uql.nl.ask.pricing import PlanPrice, price_of, rows_at_most
from uql.nl.guard.workspace import Workspace
from uql.nl.plan.dag import Node, NodeKind, Operator, Plan
from uql.nl.routers.stat import StatRouter
from uql.nl.routers.traces import Trace
from uql.nl.schema.discover import discover
from uql.sources.catalog import Catalog


def priced(*nodes: Node, router: StatRouter | None = None, left: int | None = None) -> PlanPrice:
    con = database()
    sources = discover("letters", Catalog(con), None).sources
    answer = Node("answer", NodeKind.ANSWER, "", (nodes[-1].name,))
    with Workspace(
        lambda origin: con.sql(f"SELECT * FROM {origin}").to_arrow_table(), sources, Settings()
    ) as workspace:
        recorded = router.calls_of if router is not None else None
        return price_of(Plan((*nodes, answer)), workspace, sources, Price(1.0, 1.0), left, recorded)


READS = Node("read", NodeKind.UQL, 'SELECT shop_id, letter FROM letters WHERE PROMPT "it complains"')
FIRST = Node("first", NodeKind.UQL, 'SELECT letter FROM letters WHERE PROMPT "it complains" LIMIT 3')


def test_a_statement_over_results_that_asks_nothing_costs_nothing() -> None:
    counts = Node("counts", NodeKind.UQL, "SELECT count(*) AS n FROM read", ("read",))
    assert priced(READS, counts) == priced(READS)
    assert priced(READS).unknown == ()


def test_a_statement_over_results_asks_at_most_as_many_rows_as_they_have() -> None:
    asks = Node("asks", NodeKind.UQL, 'SELECT PROMPT "the date of {letter}" AS d FROM first', ("first",))
    more = priced(FIRST, asks).calls_most - priced(FIRST).calls_most
    assert more == 3
    assert priced(FIRST, asks).unknown == ("asks",) and "guessed for asks" in str(priced(FIRST, asks))


def test_an_adapter_costs_what_its_rows_say_until_traces_say_more() -> None:
    node = Node(
        "part", NodeKind.ADAPTER, "Who?", operator=Operator.TEXT, sources=("letters",), adapters=("single_model", "uql")
    )
    guessed = priced(node)
    assert guessed.calls == 1 and guessed.unknown == ("part",)
    traces = [
        Trace("q", "TextAnalytics", "text", name, calls=n)
        for name, n in (("single_model", 2), ("single_model", 4), ("uql", 9))
    ]
    recorded = priced(node, router=StatRouter.fit(traces))
    assert (recorded.calls, recorded.calls_most, recorded.unknown) == (3, 13, ())
    assert priced(node, left=2).calls_most == 2


def test_rows_are_bounded_by_limit_and_by_what_is_added_up() -> None:
    known = {"letters": 30, "shops": 3}

    def rows(body: str) -> int:
        return rows_at_most(Node("n", NodeKind.UQL, body), known)

    assert rows("SELECT letter FROM letters") == 30
    assert rows("SELECT letter FROM letters LIMIT 4") == 4
    assert rows("SELECT count(*) AS n FROM letters") == 1
    assert rows("SELECT shop_id, count(*) AS n FROM letters GROUP BY shop_id") == 30
