"""Draw docs/images/interval.svg: one count with a growing budget. The labels of banking77 are the model; the run is real."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uql
from uql.benchmarks.datasets.__main__ import main as write
from uql.show.plots import render

PICTURE = Path(__file__).parent / "images" / "interval.svg"
CONDITION = "a transfer has failed"
COUNT = f'SELECT COUNT(*) AS n FROM questions WHERE "{CONDITION}"'
BUDGETS = (64, 128, 256, 512, 1024, 2048, 4096)


def intervals(budgets: Sequence[int]) -> tuple[list[dict[str, float]], int]:
    """The estimate and its interval with each budget, each going on where the one before ended; and the truth."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "bank.duckdb"
        write(["banking77", str(base)])
        with uql.connect(base, model=f"oracle:{base.with_suffix('.toml')}", ledger=":memory:") as con:
            found = []
            for budget in budgets:
                estimate = con.uql(f"{COUNT} WITH (budget = {budget})").estimates["n"]
                assert not isinstance(estimate, list) and estimate.value is not None
                found.append({"calls": budget, "n": estimate.value, "low": estimate.low, "high": estimate.high})
            return found, int(con.uql(f"{COUNT} WITH (exact)")[0][0])


def chart(rows: Sequence[dict[str, float]], truth: int) -> dict[str, Any]:
    """The Vega-Lite specification."""
    x = {
        "field": "calls",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "nice": False},
        "title": "calls of the model",
    }
    x["axis"] = {"values": list(BUDGETS)}
    y = {"field": "high", "type": "quantitative", "title": "rows of 13,083"}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "white",
        "padding": 12,
        "width": 560,
        "height": 200,
        "title": {"text": f'COUNT(*) … WHERE "{CONDITION}"', "anchor": "start", "fontWeight": "normal"},
        "data": {"values": list(rows)},
        "layer": [
            {
                "mark": {"type": "area", "color": "#4c78a8", "opacity": 0.25},
                "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "line", "color": "#4c78a8", "point": True},
                "encoding": {"x": x, "y": {**y, "field": "n"}},
            },
            {"mark": {"type": "rule", "color": "#c33", "strokeDash": [4, 3]}, "encoding": {"y": {"datum": truth}}},
        ],
        "config": {"axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}},
    }


if __name__ == "__main__":
    PICTURE.write_bytes(render(chart(*intervals(BUDGETS)), "svg"))
