"""Pictures of results: quality against cost with the Pareto front, and differences per query between two systems."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from uql.benchmarks.runner.records import LOWER_IS_BETTER, Record, settings_key
from uql.benchmarks.runner.suite import is_simulated
from uql.benchmarks.runner.summary import cells
from uql.show.plots import render

Point = dict[str, Any]
Draw = Callable[[Sequence[Record]], dict[str, Any]]
OURS = "uql"


def of(records: Sequence[Record], own: Mapping[str, Draw] | None = None) -> list[str]:
    """The pictures of one suite as SVG: for each table, measure and model a front and, where two systems share queries, differences.

    Models that are not label tables stand in one front: which of them to take is what it is for.

    Args:
        own: by the name of a table the chart that stands in place of these.
    """
    found = []
    held = [r for r in records if not r.reason and r.quality is not None]
    for table, measure in dict.fromkeys((r.table, r.measure) for r in held if r.measure not in ("", "unanswered")):
        if table in (own or {}):
            continue
        every = points_of([r for r in held if r.table == table and r.measure in (measure, "unanswered")], measure)
        for models in _together(every):
            points = [p for p in every if p["model"] in models]
            if len(by_system(points)) > 1:
                found.append(_svg(front(points, f"{table}, {' and '.join(models)}: {measure}", measure)))
            for model in models:
                differences = differences_of([p for p in points if p["model"] == model])
                if differences:
                    found.append(_svg(bars(differences, f"{table}, {model}: {measure} per query", measure)))
    for table, draw in (own or {}).items():
        runs = [r for r in held if r.table == table]
        found += [_svg(draw(runs))] if runs else []
    return found


def _svg(chart: dict[str, Any]) -> str:
    return render(chart, "svg").decode()


def _together(points: Sequence[Point]) -> list[tuple[str, ...]]:
    """The models of each front: every label table is a world of its own."""
    models = dict.fromkeys(p["model"] for p in points)
    real = tuple(model for model in models if not is_simulated(model))
    return [(model,) for model in models if is_simulated(model)] + ([real] if real else [])


def points_of(records: Sequence[Record], measure: str) -> list[Point]:
    """For each system, query, model and settings the mean quality, calls and USD (None: a price is unknown)."""
    found = []
    for settings in dict.fromkeys(settings_key(r.settings) for r in records):
        own = [r for r in records if settings_key(r.settings) == settings]
        for (_, system, query, model), held in cells(own).items():
            if held.measure in (measure, ""):
                usd = [r.usd for r in held.records]
                found.append(
                    {
                        "system": system,
                        "query": query,
                        "model": model,
                        "settings": settings,
                        "quality": held.mean("quality"),
                        "calls": held.mean("calls"),
                        "usd": None if None in usd else held.mean("usd"),
                    }
                )
    return found


def pareto(points: Sequence[Point], lower_is_better: bool, cost: str = "calls") -> list[Point]:
    """The points that no other beats: none has better quality for as little cost.

    >>> [p["calls"] for p in pareto([{"calls": 1, "quality": 0.5}, {"calls": 2, "quality": 0.4}, {"calls": 3, "quality": 0.9}], False)]
    [1, 3]
    """
    sign = 1 if lower_is_better else -1
    found: list[Point] = []
    for point in sorted(points, key=lambda p: (p[cost], sign * p["quality"])):
        if not found or sign * point["quality"] < sign * found[-1]["quality"]:
            found.append(point)
    return found


def _asked(point: Point) -> tuple[str, str]:
    return point["query"], point["model"]


def shared(points: Sequence[Point]) -> list[Point]:
    """The points on queries that all systems have; systems that have fewer than half of the queries are left out."""
    queries: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for point in points:
        queries.setdefault((point["system"], point["settings"]), set()).add(_asked(point))
    most = max((len(held) for held in queries.values()), default=0)
    wide = {system: held for system, held in queries.items() if 2 * len(held) >= most}
    common = set.intersection(*wide.values()) if wide else set()
    return [p for p in points if (p["system"], p["settings"]) in wide and _asked(p) in common]


def by_system(points: Sequence[Point]) -> list[Point]:
    """The mean over shared queries for each system, model and settings."""
    found: dict[tuple[str, str, str], list[Point]] = {}
    for point in shared(points):
        found.setdefault((point["system"], point["model"], point["settings"]), []).append(point)
    return [
        {
            "system": system,
            "model": model,
            "quality": fmean(p["quality"] for p in held),
            "calls": fmean(p["calls"] for p in held),
            "usd": None if any(p["usd"] is None for p in held) else fmean(p["usd"] for p in held),
        }
        for (system, model, _), held in found.items()
    ]


def front(points: Sequence[Point], title: str, measure: str) -> dict[str, Any]:
    """Quality against cost: a mark for each system, model and settings, a line through those that no other beats.

    Cost is USD where all prices are known and something was paid, else calls.
    """
    means = by_system(points)
    paid = all(p["usd"] is not None for p in means) and any(p["usd"] for p in means)
    cost, unit = ("usd", "USD a query") if paid else ("calls", "calls a query")
    best = pareto(means, measure in LOWER_IS_BETTER, cost)
    asked = len({p["query"] for p in shared(points)})
    without = sorted({p["system"] for p in points} - {p["system"] for p in means})
    said = f"without {', '.join(without)}: fewer than half of the queries"
    left_out = {"subtitle": textwrap.wrap(said, 80)} if without else {}
    x = {"field": cost, "type": "quantitative", "scale": {"type": "symlog", "domainMin": 0}, "title": unit}
    y = {"field": "quality", "type": "quantitative", "title": measure, "scale": {"zero": False}}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {"text": f"{title}, mean over {asked} quer{'ies' if asked > 1 else 'y'}", **left_out},
        "width": 480,
        "height": 260,
        "datasets": {"means": means, "best": best},
        "layer": [
            {"data": {"name": "best"}, "mark": {"type": "line", "color": "#bbb"}, "encoding": {"x": x, "y": y}},
            {
                "data": {"name": "means"},
                "mark": {"type": "point", "filled": True, "size": 70},
                "encoding": {"x": x, "y": y, "color": _colour(points), "shape": {"field": "model", "type": "nominal"}},
            },
        ],
    }


def _colour(points: Sequence[Point]) -> dict[str, Any]:
    """One colour a system, in every picture of the same systems the same."""
    systems = sorted({p["system"] for p in points} | {OURS})
    scheme = "tableau10" if len(systems) <= 10 else "tableau20"
    return {"field": "system", "type": "nominal", "scale": {"domain": systems, "scheme": scheme}}


def differences_of(points: Sequence[Point], ours: str = OURS) -> list[Point]:
    """Our quality less that of each other system on each query and model that both answered; of several settings, the same ones."""
    mine: dict[tuple[str, str], dict[str, float]] = {}
    for p in points:
        if p["system"] == ours:
            mine.setdefault(_asked(p), {})[p["settings"]] = p["quality"]
    found = []
    for p in points:
        held = mine.get(_asked(p), {})
        if p["system"] != ours and held and (p["settings"] in held or len(held) == 1):
            own = held.get(p["settings"], next(iter(held.values())))
            found.append({**p, "difference": own - p["quality"]})
    return found


def bars(differences: Sequence[Point], title: str, measure: str) -> dict[str, Any]:
    """For each query a bar a system: ours less theirs."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": f"{title}, uql less the other ({'below 0 is better' if measure in LOWER_IS_BETTER else 'above 0 is better'})",
        "width": 480,
        "height": {"step": 10, "for": "offset"},
        "data": {"values": list(differences)},
        "mark": "bar",
        "encoding": {
            "x": {"field": "difference", "type": "quantitative", "aggregate": "mean", "title": measure},
            "y": {"field": "query", "type": "nominal", "title": None},
            "yOffset": {"field": "system", "type": "nominal"},
            "color": _colour(differences),
        },
    }
