"""What a plan will cost, before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uql.errors import UQLError
from uql.nl.dag import Node, NodeKind, Plan
from uql.nl.guard import BUDGET

if TYPE_CHECKING:
    from uql.llm.providers.base import Price
    from uql.nl.workspace import Workspace

CALL_TOKENS = 400, 24  # in and out, of a call whose row is not known yet


@dataclass(frozen=True, slots=True)
class PlanPrice:
    """The calls and USD of a plan's statements: expected, and at most.

    `usd` and `usd_most` are None where the price of the model is not known.
    """

    calls: int
    calls_most: int
    usd: float | None
    usd_most: float | None

    def __str__(self) -> str:
        money = (
            "at an unknown price" if self.usd is None else f"for about ${self.usd:.4f} (at most ${self.usd_most:.4f})"
        )
        return f"about {self.calls:,} calls (at most {self.calls_most:,}) {money}"


def price_of(
    plan: Plan, workspace: Workspace, sources: Sequence[str], price: Price | None, left: int | None
) -> PlanPrice:
    """The price of a plan. A statement over tables of the database is priced as `quote()` does; one over rows that are not there yet, and
    an adapter, by the usual budget of a query. Asks no model.

    Args:
        price: of the model that reads rows; None: not known.
        left: calls of the budget.
    """
    calls = most = 0.0
    usd = usd_most = 0.0
    per_call = price.usd(*CALL_TOKENS) if price is not None else 0.0
    for node in plan.nodes:
        if node.kind is NodeKind.ADAPTER:
            calls, most = calls + 4, most + BUDGET
            usd, usd_most = usd + 4 * per_call, usd_most + BUDGET * per_call
        elif node.kind is NodeKind.UQL:
            quote = _quoted(node, workspace, sources)
            if quote is None:
                calls, most = calls + BUDGET / 2, most + BUDGET
                usd, usd_most = usd + per_call * BUDGET / 2, usd_most + per_call * BUDGET
            else:
                calls, most = calls + quote[0], most + quote[1]
                usd, usd_most = (
                    usd + (quote[2] if quote[2] is not None else quote[0] * per_call),
                    usd_most + quote[1] * per_call,
                )
    if left is not None:
        calls, most = min(calls, left), min(most, left)
    known = price is not None
    return PlanPrice(round(calls), round(most), usd if known else None, max(usd, usd_most) if known else None)


def _quoted(node: Node, workspace: Workspace, sources: Sequence[str]) -> tuple[float, float, float | None] | None:
    """Expected and most calls, and USD, of a statement over sources alone; None for others."""
    if node.inputs:
        return None
    try:
        return workspace.quote(node.body, sources)
    except UQLError:
        return None
