"""docs/benchmarks.md: every number in it is in the results file, and the results file has what the kept results say. docs/peers.md and
benchmarks/tables-kept.md are made from them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from uql.benchmarks import headline, kept, peers_page, rival_tables

ROOT = Path(__file__).parents[2]
RESULTS = json.loads(headline.RESULTS.read_text("utf-8"))
ERROR = RESULTS["error"]["values"]["128"]["UQL"]  # of COUNT, %
HELD = RESULTS["coverage"]["values"]["COUNT"]["held"]
PAGE = ROOT / "docs" / "benchmarks.md"
LEVEL = 95.0  # the level of the intervals and guarantees, in hundredths: a setting and no result
BUDGETS = tuple(float(n) for n in headline.BUDGETS)
TARGET = 0.9


def numbers(text: str) -> list[float]:
    """The numbers of a text, without those in code and addresses."""
    plain = re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)
    return [float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*(?:\.\d+)?(?<!,)", plain)]


def measured(part: Any) -> Iterator[float]:
    """Every number of the results file."""
    if isinstance(part, dict):
        for value in part.values():
            yield from measured(value)
    elif isinstance(part, int | float):
        yield float(part)


def not_in_results(text: str) -> list[float]:
    known = {*measured(RESULTS), *BUDGETS, LEVEL, TARGET, rival_tables.GOAL}
    return [number for number in numbers(text) if number not in known]


def test_every_number_of_the_page_is_in_the_results_file() -> None:
    text = PAGE.read_text("utf-8")
    assert len(numbers(text)) > 25
    assert not_in_results(text) == []


@pytest.mark.parametrize(
    "change", [("18,796", "18,700"), (f"{ERROR} %", f"{ERROR}999 %"), (f"{HELD} %", "99.9 %"), ("0.960", "0.9601")]
)
def test_a_number_that_is_not_there_is_found(change: tuple[str, str]) -> None:
    text = PAGE.read_text("utf-8")
    assert change[0] in text
    assert not_in_results(text.replace(*change)) == numbers(change[1])


def test_the_results_file_and_the_page_are_those_of_the_kept_results() -> None:
    assert json.loads(json.dumps(headline.results())) == RESULTS, "run python -m uql.benchmarks.headline"
    assert PAGE.read_text("utf-8") == headline.page(RESULTS), "run python -m uql.benchmarks.headline"


def test_a_plot_shows_what_the_results_file_holds() -> None:
    for name, chart in headline.plots(RESULTS).items():
        drawn = (ROOT / "docs" / "images" / name).read_text("utf-8")
        for row in chart["data"]["values"]:
            text = str(row.get("number") or row["engine"])
            assert text.split(",")[0] in drawn, f"{name}: {text}"
        assert "http" not in re.sub(r"http://www\.w3\.org/\S+", "", drawn)


def test_the_names_of_engines_close_to_each_other_stand_above_and_below_their_points() -> None:
    points = sorted(headline.plots(RESULTS)["quality.svg"]["data"]["values"], key=lambda point: point["calls"])
    close = [
        (a["above"], b["above"])
        for a, b in pairwise(points)
        if b["calls"] < 2 * a["calls"] and abs(a["score"] - b["score"]) < 0.02
    ]
    assert close and all(first != second for first, second in close)


def test_the_readme_gives_the_numbers_of_the_results_file() -> None:
    line = re.search(r"^Measured on .*?\n\n", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    assert line
    known = {*measured(RESULTS)}
    said = [float(n.replace(",", "")) for n in re.findall(r"\d*\.\d+|\d[\d,]*\d", line[0])]
    assert said and [number for number in said if number not in known] == []


def test_the_page_of_the_peers_is_that_of_the_kept_results() -> None:
    assert (ROOT / "docs" / "peers.md").read_text("utf-8") == peers_page.page(), "run python -m uql.benchmarks.headline"


def test_the_page_of_what_is_kept_is_that_of_the_results_files() -> None:
    assert kept.PAGE.read_text("utf-8") == kept.page(), "run python -m uql.benchmarks.kept"


def test_every_rival_and_peer_stands_on_the_pages_with_its_failures() -> None:
    assert set(RESULTS["rivals"]["values"]) == {"uql", "uqe", "olla", "csv", "logistic proxy", "soft proxy"}
    assert {"uql", "lotus", "supg", "bargain", "csv", "bigquery"} <= set(RESULTS["sets"]["values"])
    assert all(held["predicates"] >= 17 for name in ("rivals", "sets") for held in RESULTS[name]["values"].values())
    assert RESULTS["sets"]["values"]["uql"]["failing"] == 0
    assert "lotus-ai 1." in kept.PAGE.read_text("utf-8").partition("`uql bench run peers`")[2], (
        "with the versions of the peers"
    )


def test_the_readme_has_the_picture_of_an_interval_and_it_is_small() -> None:
    assert "(docs/images/interval.svg)" in (ROOT / "README.md").read_text("utf-8")
    assert (ROOT / "docs" / "images" / "interval.svg").stat().st_size < 60_000


@pytest.mark.slow
def test_the_picture_of_an_interval_is_drawn_from_a_run_in_which_it_narrows() -> None:
    import make_interval

    (wide, narrow), truth = make_interval.intervals((64, 512))
    assert truth == 350
    assert wide["low"] <= wide["n"] <= wide["high"] and narrow["low"] <= narrow["n"] <= narrow["high"]
    assert narrow["high"] - narrow["low"] < (wide["high"] - wide["low"]) / 2
    layers = make_interval.chart([wide, narrow], truth)["layer"]
    assert layers[-1]["encoding"]["y"]["datum"] == 350
