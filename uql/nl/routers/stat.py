"""StatRouter: the adapter that was best on an operator's traces, whatever the sub-query says. Source: Meta Engine, section 4.4."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uql.base.errors import DataError
from uql.nl.plan.dag import Operator
from uql.nl.routers.traces import Trace


@dataclass(frozen=True, slots=True)
class StatRouter:
    """Mean quality of each adapter, by operator, and the calls that it made: their mean and the most.

    >>> router = StatRouter({"TextAnalytics": {"uql": 0.4, "single_model": 0.7}})
    >>> router.rank("Who won?", Operator.TEXT, ["uql", "single_model", "new"])
    ['single_model', 'uql', 'new']
    """

    means: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    calls: Mapping[str, Mapping[str, tuple[float, float]]] = field(default_factory=dict)

    @classmethod
    def fit(cls, traces: Iterable[Trace]) -> StatRouter:
        """Means over traces."""
        groups: dict[str, dict[str, list[Trace]]] = {}
        for trace in traces:
            groups.setdefault(trace.operator, {}).setdefault(trace.adapter, []).append(trace)
        means: dict[str, dict[str, float]] = {}
        calls: dict[str, dict[str, tuple[float, float]]] = {}
        for op, by_name in sorted(groups.items()):
            means[op] = {name: sum(t.quality for t in v) / len(v) for name, v in sorted(by_name.items())}
            counts = {name: [float(t.calls) for t in v] for name, v in sorted(by_name.items())}
            calls[op] = {name: (sum(n) / len(n), max(n)) for name, n in counts.items()}
        return cls(means, calls)

    def calls_of(self, operator: Operator, adapter: str) -> tuple[float, float] | None:
        """The calls of an adapter on an operator's traces, mean and most; None: none was recorded."""
        return self.calls.get(operator.value, {}).get(adapter)

    def rank(self, subquery: str, operator: Operator, adapters: Sequence[str]) -> list[str]:
        """As in `Router`, by the traces of the operator; the sub-query is not read."""
        means = self.means.get(operator.value, {})
        return sorted(adapters, key=lambda name: (name not in means, -means.get(name, 0.0)))

    def save(self, path: str | Path) -> None:
        """Writes JSON."""
        content = {"kind": "stat", "means": self.means, "calls": self.calls}
        Path(path).write_text(json.dumps(content, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> StatRouter:
        """From the JSON of `save`. Raises DataError (UQL514)."""
        means = state.get("means")
        if not isinstance(means, dict):
            raise DataError("the router's file has no means", code="UQL514")
        calls = state.get("calls") or {}
        return cls(
            {op: {name: float(v) for name, v in of.items()} for op, of in means.items()},
            {op: {name: (float(v[0]), float(v[1])) for name, v in of.items()} for op, of in calls.items()},
        )
