"""Pictures of results: quality against calls with the Pareto front, and differences per query between two systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uql.benchmarks.runner.records import LOWER_IS_BETTER, Record
from uql.benchmarks.runner.summary import cells
from uql.plots import render

Point = dict[str, Any]


def of(records: Sequence[Record]) -> list[str]:
    """The pictures of one suite as SVG: for each table and measure a front and, where two systems share queries, differences."""
    found = []
    held = [r for r in records if not r.reason and r.quality is not None]
    for table, measure in dict.fromkeys((r.table, r.measure) for r in held if r.measure not in ("", "unanswered")):
        points = points_of([r for r in held if r.table == table and r.measure in (measure, "unanswered")], measure)
        if len({p["system"] for p in points}) > 1:
            found.append(render(front(points, f"{table}: {measure}", measure), "svg").decode())
            differences = differences_of(points)
            if differences:
                found.append(render(bars(differences, f"{table}: {measure} per query", measure), "svg").decode())
    return found


def points_of(records: Sequence[Record], measure: str) -> list[Point]:
    """For each system, query and model its mean quality and calls."""
    return [
        {"system": system, "query": query, "model": model, "quality": held.mean("quality"), "calls": held.mean("calls")}
        for (_, system, query, model), held in cells(records).items()
        if held.measure in (measure, "")
    ]


def pareto(points: Sequence[Point], lower_is_better: bool) -> list[Point]:
    """The points that no other beats: none has better quality for as few calls.

    >>> [p["calls"] for p in pareto([{"calls": 1, "quality": 0.5}, {"calls": 2, "quality": 0.4}, {"calls": 3, "quality": 0.9}], False)]
    [1, 3]
    """
    sign = 1 if lower_is_better else -1
    found: list[Point] = []
    for point in sorted(points, key=lambda p: (p["calls"], sign * p["quality"])):
        if not found or sign * point["quality"] < sign * found[-1]["quality"]:
            found.append(point)
    return found


def shared(points: Sequence[Point]) -> list[Point]:
    """The points on queries that all systems have; systems that have fewer than half of the queries are left out."""
    queries: dict[str, set[tuple[str, str]]] = {}
    for point in points:
        queries.setdefault(point["system"], set()).add((point["query"], point["model"]))
    most = max((len(held) for held in queries.values()), default=0)
    wide = {system: held for system, held in queries.items() if 2 * len(held) >= most}
    common = set.intersection(*wide.values()) if wide else set()
    return [p for p in points if p["system"] in wide and (p["query"], p["model"]) in common]


def by_system(points: Sequence[Point]) -> list[Point]:
    """The mean over shared queries for each system and model."""
    found: dict[tuple[str, str], list[Point]] = {}
    for point in shared(points):
        found.setdefault((point["system"], point["model"]), []).append(point)
    return [
        {
            "system": system,
            "model": model,
            "quality": sum(p["quality"] for p in held) / len(held),
            "calls": sum(p["calls"] for p in held) / len(held),
        }
        for (system, model), held in found.items()
    ]


def front(points: Sequence[Point], title: str, measure: str) -> dict[str, Any]:
    """Quality against calls: a mark for each system and model, a line through those that no other beats."""
    means = by_system(points)
    best = pareto(means, measure in LOWER_IS_BETTER)
    x = {"field": "calls", "type": "quantitative", "scale": {"type": "symlog"}, "title": "calls a query"}
    y = {"field": "quality", "type": "quantitative", "title": measure, "scale": {"zero": False}}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": f"{title}, mean over {len({p['query'] for p in shared(points)})} queries",
        "width": 480,
        "height": 260,
        "datasets": {"means": means, "best": best},
        "layer": [
            {"data": {"name": "best"}, "mark": {"type": "line", "color": "#bbb"}, "encoding": {"x": x, "y": y}},
            {
                "data": {"name": "means"},
                "mark": {"type": "point", "filled": True, "size": 70},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": {"field": "system", "type": "nominal"},
                    "shape": {"field": "model", "type": "nominal"},
                },
            },
        ],
    }


def differences_of(points: Sequence[Point], ours: str = "uql") -> list[Point]:
    """Our quality less that of each other system, on each query and model that both answered."""
    mine = {(p["query"], p["model"]): p["quality"] for p in points if p["system"] == ours}
    return [
        {**p, "difference": mine[p["query"], p["model"]] - p["quality"]}
        for p in points
        if p["system"] != ours and (p["query"], p["model"]) in mine
    ]


def bars(differences: Sequence[Point], title: str, measure: str) -> dict[str, Any]:
    """For each query a bar a system: ours less theirs."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": f"{title}, uql less the other ({'below 0 is better' if measure in LOWER_IS_BETTER else 'above 0 is better'})",
        "width": 480,
        "data": {"values": list(differences)},
        "mark": "bar",
        "encoding": {
            "x": {"field": "difference", "type": "quantitative", "aggregate": "mean", "title": measure},
            "y": {"field": "query", "type": "nominal", "title": None},
            "yOffset": {"field": "system", "type": "nominal"},
            "color": {"field": "system", "type": "nominal"},
        },
    }
