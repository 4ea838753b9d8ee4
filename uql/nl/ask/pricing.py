"""What a plan will cost, before it runs.

A statement over tables of the database is priced as `quote()` does. One over rows that are not there yet asks about at most as many rows
as its inputs may have; an adapter about as many as it reads, or as recorded traces say. What is a guess is named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uql.base.errors import UQLError
from uql.compiler.parser import tree_of
from uql.compiler.syntax import Call, Cast, Number, Quoted, Select
from uql.compiler.walk import walk
from uql.nl.guard.guard import BUDGET
from uql.nl.plan.dag import Node, NodeKind, Operator, Plan

if TYPE_CHECKING:
    from uql.llm.providers.base import Price
    from uql.nl.guard.workspace import Workspace
    from uql.nl.schema.scope import Source

CALL_TOKENS = 400, 24  # in and out, of a call whose row is not known yet
SENT = 200  # rows of a source that an adapter in an environment of its own is sent at most
A_PROMPT = 40  # rows that such an adapter puts into one prompt, about
Recorded = Callable[[Operator, str], tuple[float, float] | None]  # operator and adapter → calls, mean and most


@dataclass(frozen=True, slots=True)
class PlanPrice:
    """The calls and USD of a plan's statements: expected, and at most.

    `usd` and `usd_most` are None where the price of the model is not known; `unknown` names the nodes whose calls are a guess, because what
    they read is not there yet and nothing was recorded of the like.
    """

    calls: int
    calls_most: int
    usd: float | None
    usd_most: float | None
    unknown: tuple[str, ...] = ()

    def __str__(self) -> str:
        money = "price unknown, " if self.usd is None else ""
        if self.usd_most:
            money = f"about ${self.usd:.4f} (at most ${self.usd_most:.4f}), "
        guess = f"; guessed for {', '.join(self.unknown)}" if self.unknown else ""
        return f"{money}about {self.calls:,} calls (at most {self.calls_most:,}){guess}"


def price_of(
    plan: Plan,
    workspace: Workspace,
    sources: Mapping[str, Source],
    price: Price | None,
    calls_left: int | None,
    recorded: Recorded | None = None,
) -> PlanPrice:
    """The price of a plan. Asks no model.

    Args:
        price: of the model that reads rows; None: not known.
        calls_left: calls of the budget.
        recorded: calls of adapters in traces.
    """
    calls = most = usd = usd_most = 0.0
    unknown: list[str] = []
    rows: dict[str, int] = {}  # of each node at most
    per_call = price.usd(*CALL_TOKENS) if price is not None else 0.0
    for node in plan.nodes:
        rows[node.name] = rows_at_most(node, {**{name: s.row_count for name, s in sources.items()}, **rows})
        node_price: tuple[float, float, float | None] = (0.0, 0.0, 0.0)
        if node.kind is NodeKind.ADAPTER:
            expected, highest, from_traces = _adapter(node, sources, recorded)
            node_price = expected, highest, None
            unknown += [] if from_traces else [node.name]
        elif node.kind is NodeKind.UQL:
            quoted = _quoted(node, workspace, list(sources))
            node_price, guessed = (quoted, False) if quoted is not None else _dependent(node, rows, sources)
            unknown += [node.name] if guessed else []
        expected, highest, money = node_price
        calls, most = calls + expected, most + highest
        usd, usd_most = usd + (money if money is not None else expected * per_call), usd_most + highest * per_call
    if calls_left is not None:
        calls, most = min(calls, calls_left), min(most, calls_left)
    priced = price is not None
    return PlanPrice(
        round(calls), round(most), usd if priced else None, max(usd, usd_most) if priced else None, tuple(unknown)
    )


def rows_at_most(node: Node, row_counts: Mapping[str, int]) -> int:
    """The rows that a node may give: LIMIT's, one where all is added up, else those of the largest of its inputs."""
    read = [n for name, n in row_counts.items() if name.lower() in node.body.lower() or name in node.inputs]
    widest = max(read, default=1)
    if node.kind not in (NodeKind.UQL, NodeKind.SQL):
        return widest
    tree = tree_of(node.body)
    if tree is None:
        return widest
    if not isinstance(tree, Select):
        return sum(read) or 1
    if isinstance(tree.limit, Number):
        return min(widest, int(float(tree.limit.text)))
    added = [item.expr.operand if isinstance(item.expr, Cast) else item.expr for item in tree.items]
    adds = all(isinstance(e, Call) and e.name.lower() in ("count", "sum", "avg", "min", "max") for e in added)
    return 1 if adds and not tree.group_by else widest


def _dependent(
    node: Node, rows: Mapping[str, int], sources: Mapping[str, Source]
) -> tuple[tuple[float, float, float | None], bool]:
    """Calls of a statement over results: none where it asks nothing, else a row each at most; guessed where it asks."""
    texts = _texts(node.body)
    if not texts:
        return (0.0, 0.0, 0.0), False
    read = [rows[name] for name in node.inputs if name in rows]
    low = node.body.lower()
    read += [source.row_count for name, source in sources.items() if name.lower() in low]
    highest = float(min(BUDGET, max(read, default=BUDGET) * texts))
    return (highest / 2, highest, None), True


def _texts(body: str) -> int:
    """How many texts of a statement a model reads."""
    tree = tree_of(body)
    if tree is None:
        return 1
    return len({q.text for q in walk(tree, queries=True) if isinstance(q, Quoted) and (q.forced or " " in q.text)})


def _adapter(node: Node, sources: Mapping[str, Source], recorded: Recorded | None) -> tuple[float, float, bool]:
    """Calls of an adapter node, expected and at most, and whether they were recorded; it may go on to the next adapter."""
    rows = max((sources[name].row_count for name in node.sources if name in sources), default=0)
    own = {
        "uql": (
            min(BUDGET, rows) / 2 + 1,
            min(BUDGET, rows) + 2,
        ),  # a statement, once more after an error, and its rows
        "single_model": (1.0, 2.0),
        "structgpt": (3.0, 6.0),
        "llamaindex": (2.0, 4.0),
        "dspy": (1.0, 4.0),
        "lotus": (min(SENT, rows) / A_PROMPT + 1, min(SENT, rows) + 1),
    }
    names = node.adapters or ("uql",)
    operator = node.operator or Operator.TABLE  # of the mode `meta` it is ranked when the node runs
    expected, highest, from_traces = 0.0, 0.0, recorded is not None
    for n, name in enumerate(names):
        record = recorded(operator, name) if recorded is not None else None
        mean, top = record or own.get(name, (BUDGET / 2, BUDGET))
        from_traces = from_traces and record is not None
        expected += mean if n == 0 else 0.0
        highest += top
    return expected, highest, from_traces


def _quoted(node: Node, workspace: Workspace, sources: Sequence[str]) -> tuple[float, float, float | None] | None:
    """Expected and most calls, and USD, of a statement over sources alone; None for others."""
    if node.inputs:
        return None
    try:
        return workspace.quote(node.body, sources)
    except UQLError:
        return None
