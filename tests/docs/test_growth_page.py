"""docs/growth.md and two tables of docs/scale.md are made from the results files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from uql.benchmarks import growth

RESULTS = json.loads(growth.RESULTS.read_text("utf-8"))
DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_that_of_the_results_file() -> None:
    assert (DOCS / "growth.md").read_text("utf-8") == growth.page(RESULTS), "run python -m uql.benchmarks.growth"
    scale = (DOCS / "scale.md").read_text("utf-8")
    assert growth.kills(RESULTS) in scale and growth.sets() in scale, "run python -m uql.benchmarks.growth"


def test_exponents_are_those_of_the_numbers_beside_them() -> None:
    results = {"stages": {"parse": {"1000": [0.01, 2.0], "100000": [1.0, 2.0]}}, "sizes": []}
    row = next(line for line in growth.page(results).splitlines() if line.startswith("| parse"))
    assert row == "| parse | 0.01 s (2 MB) | – | 1 s (2 MB) | – | – | 1.00 | 0.00 |"


def test_nothing_is_billed_above_a_cap_and_every_run_went_on() -> None:
    for one in RESULTS["kills"]:
        assert one["whole"] == one["within"] == one["times"]


@pytest.mark.parametrize("part", ["stages", "sizes", "kills"])
def test_a_file_that_is_given_takes_the_place_of_its_part(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "RESULTS", tmp_path / "growth.json")
    monkeypatch.setattr(growth, "PAGE", tmp_path / "growth.md")
    monkeypatch.setattr(growth, "SCALE", tmp_path / "scale.md")
    (tmp_path / "scale.md").write_text(f"before\n\n{growth.kills(RESULTS)}\n\nafter\n", "utf-8")
    growth.RESULTS.write_text(json.dumps(RESULTS), "utf-8")
    kill = {"kill": "gate", "with_ray": False, "rows": 9, "cap": 10, "times": 7, "whole": 7, "within": 7, "twice": 3}
    size = {"rows": 10, "system": "one process", "count": 1.5, "driver_mb": 3.0}
    record = {
        "suite": "speed",
        "table": "speed",
        "system": "uql",
        "query": "gate, 1,000",
        "model": "none",
        "seed": 0,
        "seconds": 7.25,
    }
    record |= {
        "settings": {},
        "versions": {},
        "answer_hash": "",
        "quality": None,
        "usd": 0.0,
        "numbers": {"memory_mb": 1.0},
    }
    line, shown = {"kills": (kill, ""), "sizes": (size, "| 10 |"), "stages": (record, "7.25 s")}[part]
    (tmp_path / "new.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    assert growth.main([f"--{part}", str(tmp_path / "new.jsonl")]) == 0
    assert shown in growth.PAGE.read_text("utf-8")
    scale = growth.SCALE.read_text("utf-8")
    assert ("| 9 | 10 | 7 | 7 | 7 | 3 |" in scale) == (part == "kills") and scale.endswith("\n\nafter\n")
