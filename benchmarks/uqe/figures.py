"""Figure 5 of the paper as a picture: the share of the matching rows that is found, against calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uql.benchmarks.runner.records import Record
from uql.benchmarks.runner.summary import cells
from uql.benchmarks.uqe.tasks import BUDGETS


def figure_5(records: Sequence[Record]) -> dict[str, Any]:
    """A line a system, a field a question; means over the seeds."""
    values = [
        {"question": query, "system": system, "calls": budget, "recall": held.mean(f"recall@{budget}")}
        for (_, system, query, _), held in cells(records).items()
        if not held.reason
        for budget in BUDGETS
    ]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": "Figure 5: share found of the matching rows (at most 256), the labels as the model",
        "data": {"values": values},
        "facet": {"field": "question", "type": "nominal", "columns": 3, "title": None},
        "spec": {
            "width": 240,
            "height": 180,
            "mark": {"type": "line", "point": True},
            "encoding": {
                "x": {"field": "calls", "type": "quantitative", "scale": {"domainMin": 0}},
                "y": {"field": "recall", "type": "quantitative", "scale": {"domain": [0, 1]}},
                "color": {"field": "system", "type": "nominal"},
            },
        },
    }
