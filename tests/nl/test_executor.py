"""The executor: nodes at the same time, hard limits, statements that are stopped."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, cast

import pyarrow as pa
import pytest
from nl.shop import Connected, plan, uql_node

from uql.base.errors import AuthError, GuardError
from uql.base.schema import Field
from uql.base.settings import Settings
from uql.llm.gate import Gate
from uql.llm.providers.base import Answer, Request
from uql.llm.providers.scripted import Scripted
from uql.nl.ask.context import AskContext
from uql.nl.ask.executor import Limits
from uql.nl.ask.outputs import EMPTY, Output, problem_of
from uql.nl.guard import workspace
from uql.nl.guard.gate_bridge import apart
from uql.nl.guard.workspace import Workspace
from uql.nl.plan.dag import Node, NodeKind, SubAnswer
from uql.nl.prompts import Wording
from uql.nl.schema.scope import Source


@pytest.mark.thorough
def test_the_wall_time_of_a_dag_is_its_critical_path() -> None:
    """Three questions of the letters at once, then one behind two of them: two layers of a slow model, not four."""
    latency_s = 1.5
    shop = Connected(
        [
            plan(
                uql_node(
                    "one",
                    "SELECT shop_id, letter FROM letters WHERE ask('the letter complains')",
                ),
                uql_node(
                    "two",
                    "SELECT shop_id, count(*) AS n FROM letters WHERE ask('the letter says thank you') GROUP BY shop_id",
                ),
                uql_node("three", "SELECT count(*) AS n FROM letters WHERE ask('the letter says thank you again')"),
                uql_node(
                    "four",
                    "SELECT max(CAST(ask('the number of the letter') AS DOUBLE)) AS top FROM letters JOIN two ON letters.shop_id = two.shop_id WHERE letters.year > (SELECT min(shop_id) FROM one)",
                ),
            )
        ],
        latency_s=latency_s,
        concurrency=256,
    )
    shop.con.uql("SELECT 1").fetchall()  # imports
    answer = shop.con.ask("What are they?", aggregate=False)
    steps = {step.node: step for step in answer.steps if step.kind == "uql"}
    assert len(steps) == 4 and all(step.state == "done" for step in steps.values()), answer.cannot
    first = max(steps[name].seconds for name in ("one", "two"))
    critical_path_s = max(steps["three"].seconds, first + steps["four"].seconds)
    wall_s = max(s.began_s + s.seconds for s in steps.values()) - min(s.began_s for s in steps.values())
    assert wall_s <= 1.2 * critical_path_s
    assert steps["four"].began_s >= steps["two"].began_s + steps["two"].seconds
    assert wall_s < sum(s.seconds for s in steps.values()) / 1.2
    assert shop.reader.most_in_flight > 30


def test_runs_of_nodes_end_at_their_limit() -> None:
    shop = Connected([plan(*(uql_node(f"n{i}", f"SELECT {i} AS i, name FROM shops") for i in range(4)))])
    answer = shop.con.ask("Which?", limits=Limits(nodes=2))
    assert answer.partial == "2 runs of nodes" and not answer.answered
    assert len(answer.results) == 2


def test_an_error_that_concerns_every_call_is_raised() -> None:
    shop = Connected([plan(uql_node("n", "SELECT count(*) AS n FROM letters WHERE ask('x complains')"))])

    def refuse(request: Request, n: int) -> list[Answer]:
        raise AuthError("the key is wrong")

    shop.reader.script = refuse
    with pytest.raises(AuthError):
        shop.con.ask("How many?")


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        (Output(pa.table({"n": [1]})), None),
        (Output(pa.table({"n": pa.array([], pa.int64())})), EMPTY),
        (
            Output(pa.table({"n": pa.array([None], pa.int64())})),
            "its only value is NULL: no row fits, or none has a value",
        ),
        (Output(pa.table({"n": ["unknown"]})), "its only value is 'unknown'"),
        (Output(pa.table({"a": pa.array([None, None], pa.int64())})), "all its values are NULL"),
        (Output(value="Error: division by zero"), "its value says nothing"),
        (Output(value={"a": 1}), None),
        (Output(sub=SubAnswer("Rome", "Rome", ("shops",))), None),
        (Output(sub=SubAnswer("Rome", "Rome", ("wikipedia",))), "it cites 'wikipedia', which is not a source"),
        (Output(sub=SubAnswer(None, "not found")), "the answer says nothing: 'not found'"),
        (Output(sub=SubAnswer(None, "", problem="no plan")), "no plan"),
    ],
)
def test_an_output_is_valid_or_says_why_not(output: Output, problem: str | None) -> None:
    assert problem_of(Node("n", NodeKind.UQL, ""), output, ["shops"]) == problem


def test_declared_columns_must_be_there_and_rows_may_be_missing_where_said() -> None:
    node = Node("n", NodeKind.UQL, "", columns=("total",), may_be_empty=True)
    assert problem_of(node, Output(pa.table({"n": [1]})), []) == "it has no column total; it has n"
    assert problem_of(node, Output(pa.table({"Total": pa.array([], pa.int64())})), []) is None


def _in_workspace(work: object, rows: int = 2_000) -> object:
    table = pa.table({"id": list(range(rows))})
    sources = {"t": Source("t", "t", (Field("id", "BIGINT"),), rows)}

    async def run() -> object:
        settings = Settings(ledger=":memory:")
        with Workspace(lambda _: table, sources, settings) as space:
            async with Gate.open(settings, model=Connected([]).model, calls=10) as gate:
                await gate.provider()
                return await work(AskContext("q", sources, gate, space))  # type: ignore[operator]

    return asyncio.run(run())


def test_a_statement_that_keeps_duckdb_busy_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "BUSY_S", 1.0)
    began = time.monotonic()

    async def cross(ctx: AskContext) -> object:
        return await ctx.uql("SELECT count(*) AS n FROM t a, t b, t c, t d WHERE a.id + b.id + c.id + d.id = 3")

    with pytest.raises(GuardError, match="ran longer than 1 s"):
        _in_workspace(cross)
    assert time.monotonic() - began < 60


def test_the_workspace_reaches_no_file_and_keeps_no_more_rows_than_it_may() -> None:
    async def files(ctx: AskContext) -> object:
        return await ctx.uql("SELECT * FROM 'letters.csv'")

    with pytest.raises(GuardError, match="was not given"):
        _in_workspace(files)

    async def kept(ctx: AskContext) -> object:
        await ctx.uql("SELECT id FROM t WHERE id < 3", to="few")
        found = await ctx.workspace.sql("SELECT sum(id) AS s FROM few", to="total")
        return found.to_pylist(), ctx.workspace.table("total").to_pylist(), ctx.workspace.names

    assert _in_workspace(kept) == ([{"s": 3}], [{"s": 3}], ["t", "few", "total"])


def test_a_step_counts_its_own_calls_and_keeps_to_its_share() -> None:
    async def steps(ctx: AskContext) -> object:
        one, two = ctx.step("one", calls=1), ctx.step("two")
        said = await one.say(Wording("a", "", "You answer.", "say a"))
        await two.say(Wording("b", "", "You answer.", "say b"))
        return said, one.cost.calls, two.cost.calls, ctx.cost.calls, one.gate.calls_left, ctx.gate.calls_left

    shop = Connected([Scripted("a", "A"), Scripted("b", "B")])
    table = pa.table({"id": [1]})
    sources = {"t": Source("t", "t", (Field("id", "BIGINT"),), 1)}

    async def run() -> object:
        settings = Settings(ledger=":memory:")
        with Workspace(lambda _: table, sources, settings) as space:
            async with Gate.open(settings, model=shop.model, calls=10) as gate:
                await gate.provider()
                return await steps(AskContext("q", sources, gate, space))

    assert asyncio.run(run()) == ("A", 1, 1, 2, 0, 8)


class _Asked:
    """As a gate: it says in which thread it was asked."""

    calls_left = 7

    async def ask(self) -> int:
        await asyncio.sleep(0.3)
        return threading.get_ident()


def test_duckdb_at_work_in_one_node_does_not_hold_up_another() -> None:
    """Three statements of which each holds its thread, and asks: together they take as long as one, and ask in the caller's loop."""

    async def work(gate: Gate) -> tuple[int, int | None]:
        time.sleep(0.4)  # as DuckDB does: the loop of this thread does not turn
        return await cast(Any, gate).ask(), gate.calls_left

    async def run() -> tuple[float, list[tuple[int, int | None]]]:
        began = time.monotonic()
        found = await asyncio.gather(*(apart(work, cast(Gate, _Asked())) for _ in range(3)))
        return time.monotonic() - began, found

    wall_s, found = asyncio.run(run())
    assert found == [(threading.get_ident(), 7)] * 3
    assert wall_s < 1.4  # one after another: 2.1


def test_a_statement_in_a_thread_ends_when_nobody_waits_for_it() -> None:
    ended: list[str] = []

    async def work(gate: Gate) -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("ended")

    async def run() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(apart(work, cast(Gate, _Asked())), 0.3)

    began = time.monotonic()
    asyncio.run(run())
    assert ended == ["ended"] and time.monotonic() - began < 10
