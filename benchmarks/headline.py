"""The results that docs/benchmarks.md shows, from those that are kept: `python -m uql.benchmarks.headline`.

It reads the results that are kept (`uql.benchmarks.kept`) and tables-long.md (`make bench-long`), and writes results.json,
docs/benchmarks.md and its plots, and docs/peers.md. A test compares them, and fails where a page has a number that is not in its results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

from uql.benchmarks import peers_page, rival_tables
from uql.benchmarks.accuracy.data_sets import JEV, KEYWORDS
from uql.benchmarks.kept import ACCURACY
from uql.benchmarks.peers import verdicts
from uql.benchmarks.promise import __main__ as promise
from uql.benchmarks.runner.records import read
from uql.benchmarks.runner.summary import Cell, Summary, cells
from uql.benchmarks.sampling import rivals
from uql.show.plots import render

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
RESULTS = HERE / "results.json"
LONG = HERE / "tables-long.md"
PEERS = HERE / "peers" / "results.jsonl"
FIRST = 17  # predicates of the means; the others were added later
JOINS = ("q5", "q6", "q7")
RIVALS_AGAIN = "python -m uql.benchmarks.sampling.rivals"
SETS_AGAIN = "python -m uql.benchmarks.promise --counted --cheap noisy --seeds 20"
HARD_JOIN = "intents"  # of questions to a bank with matters
MODEL = rival_tables.MODEL.partition(":")[2]  # at whose prices USD are
BUDGETS = (128, 256, 512)
SYSTEMS = {  # of peers/results.jsonl → as the page calls them
    "lotus-default": "LOTUS", "palimpzest-default": "Palimpzest", "thalamusdb-default": "ThalamusDB", "jevdb-default": "JEVDB",
    "uql": "UQL", "uql-exact": "UQL, every row",
}  # fmt: skip
COUNTED = ("COUNT", "SUM", "AVG", "ratio of counts", "COUNT of a small group", "COUNT of a group that a model names")
Values = dict[str, dict[str, float]]


def results() -> dict[str, dict[str, Any]]:
    """Suite → its command, how many seeds, and its values by name."""
    long = LONG.read_text(encoding="utf-8")
    first, last = table(long, r"Stated recall"), table(long, r"Stated precision")
    stated = {
        f"{name}, target {row['target']}, δ {row['δ']}": {
            "missed": float(row["most missed"]),
            "allowed": float(row["δ"]),
        }
        for name, rows in (("recall", first), ("precision", last))
        for row in rows
        if row["target"] == "0.9"
    }
    return {
        "movie": {"command": "uql bench run peers", "seeds": 5, "values": _peers()},
        "verdicts": {"command": "uql bench run peers", "seeds": 5, "values": _verdicts("labels")},
        "verdicts with errors": {
            "command": "uql bench run peers --models labels-10",
            "seeds": _error_seeds(),
            "values": _verdicts("labels-10"),
        },
        "erring": {"command": "uql bench run peers --models labels-10", "seeds": _error_seeds(), "values": _erring()},
        "error": {"command": "make bench-long", "seeds": 200, "values": {str(n): _errors(long, n) for n in BUDGETS}},
        "coverage": {"command": "make bench-long", "seeds": 200, "values": _coverage(long)},
        "stated": {"command": "make bench-long", "seeds": 1000, "values": stated},
        "rivals": {"command": RIVALS_AGAIN, "seeds": rivals.SEEDS, "values": _rivals()},
        "sets": {"command": SETS_AGAIN, "seeds": rivals.SEEDS, "values": _sets()},
        "accuracy": {"command": "uql bench run accuracy", "seeds": 1, "values": _accuracy()},
    }


def table(text: str, heading: str) -> list[dict[str, str]]:
    """The rows of the first Markdown table under a heading that begins with a pattern."""
    found = re.search(rf"^### {heading}.*?\n\n(\|.*?)\n(?:\n|\Z)", text, re.M | re.S)
    assert found, heading
    head, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines())
    return [dict(zip(head, line, strict=True)) for line in lines]


def _peers() -> Values:
    """Mean score over the ten movie questions and calls of all, the labels as the model; of several seeds the mean."""
    held = cells([r for r in read(PEERS) if r.table == "movie" and r.model == "labels" and r.system in SYSTEMS])
    found: Values = {}
    for name, shown in SYSTEMS.items():
        own = [cell for (_, system, _, _), cell in held.items() if system == name]
        found[shown] = {
            "score": round(fmean(c.mean("quality") for c in own), 3),
            "calls": round(sum(c.mean("calls") for c in own)),
        }
    own = [cell for (_, system, _, _), cell in held.items() if system == "jevdb-default"]
    found["JEVDB"]["requests"] = round(sum(cell.mean("requests") for cell in own))
    joins = [cell for (_, system, query, _), cell in held.items() if system == "lotus-default" and query in JOINS]
    found["LOTUS"]["calls of its joins"] = round(sum(cell.mean("calls") for cell in joins))
    return found


def _verdicts(model: str) -> Values:
    """Other engine → how many of the questions that both were asked UQL answers better, as well or worse, with a model of the suite."""
    found: Values = {}
    for engine, _, columns in peers_page.compared(_run(), model):
        counts = found.setdefault(engine, dict.fromkeys(verdicts.HEAD[1:], 0))
        for name, queries in columns.items():
            counts[name] += len(queries)
    return found


def _run() -> dict[Cell, Summary]:
    """The questions that were put to an engine."""
    return cells([r for r in read(PEERS) if not r.reason])


def _error_seeds() -> int:
    """Of a model that errs, at least: of each movie question and engine."""
    held = peers_page.with_errors(_run(), "movie").values()
    return min(len(summary.records) for own in held for summary in own)


def _erring() -> Values:
    """Engine → its mean score over the movie questions that all were asked, of a model that errs; and of a join, with its calls."""
    summaries = _run()
    found: Values = {
        SYSTEMS[system]: {
            "score": round(fmean(summary.mean("quality") for summary in own), 3),
            "questions": len(own),
        }
        for system, own in peers_page.with_errors(summaries, "movie").items()
    }
    for system in ("lotus-cascade", "uql"):
        join = summaries["joins", system, HARD_JOIN, "labels-10"]
        found[f"{peers_page.NAMES[system]}, join"] = {
            "score": round(join.mean("quality"), 3),
            "calls": round(join.mean("calls")),
        }
    return found


def _rivals() -> Values:
    """Method of COUNT → its calls for the error that UQL has with 128, not clipped but for those it has none to give."""
    summaries = rival_tables.count_summaries(rivals.read())
    return {
        each.method: {
            "calls": round(each.bounded_calls),
            "over UQL": round(each.bounded_calls / summaries[0].bounded_calls, 2),
            "failed": round(100 * each.failures, 1),
            "predicates": len(each.calls) + each.without,
            "without": each.without,
            "usd": round(each.usd, 2),
        }
        for each in summaries
    }


def _sets() -> Values:
    """Method that returns sets → its calls of the dear model, and how many of its sets missed a target."""
    summaries = rival_tables.set_summaries(promise.read())
    return {
        each.method: {
            "calls": round(each.calls),
            "over UQL": round(each.calls / summaries[0].calls, 2),
            "missed": each.missed,
            "runs": each.runs,
            "failing": each.failing,
            "predicates": each.predicates,
            "usd": round(each.usd, 2),
        }
        for each in summaries
    }


def _accuracy() -> Values:
    """Data set → the share of rows, in hundredths, whose answer by the local model is their label, and its interval; a count of all."""
    found: Values = {
        r.query: {
            "rows": int(r.numbers["rows"]),
            "labels": int(r.numbers["labels"]),
            "accuracy": round(100 * (r.quality or 0.0), 1),
            "low": round(100 * r.numbers["low"], 1),
            "high": round(100 * r.numbers["high"], 1),
            "commonest": round(100 * r.numbers["commonest"], 1),
        }
        for r in read(ACCURACY)
        if r.model.partition(":")[0] == "local" and not r.reason
    }
    worse = sum(held["accuracy"] < held["commonest"] for held in found.values())
    found["banking77"] |= {"Jev": JEV, "keywords": KEYWORDS}
    return {**found, "all": {"data sets": len(found), "worse than the commonest label": worse}}


def _errors(long: str, calls: int) -> dict[str, float]:
    """Geometric mean over the predicates of the relative error of COUNT, in hundredths, by system."""
    rows = table(long, f"COUNT, {calls} calls")[:FIRST]
    uqe = [float(row["error of UQE"]) for row in rows]
    by_system = {
        "UQL": [e * float(row["ASD / UQE"]) for e, row in zip(uqe, rows, strict=True)],
        "UQE": uqe,
        "random rows": [e * float(row["uniform / UQE"]) for e, row in zip(uqe, rows, strict=True)],
    }
    return {system: round(100 * geometric_mean(errors), 1) for system, errors in by_system.items()}


def _coverage(long: str) -> Values:
    """Of the intervals at 95 % with 128 calls the share in hundredths that held the truth: in all cells, and in the worst one."""
    rows = {row["number"]: row for row in table(long, "Coverage at 0.95, 128 calls")}
    return {
        name: {
            "held": round(100 * float(rows[name]["mean held"]), 1),
            "least": round(100 * float(rows[name]["least held"]), 1),
        }
        for name in COUNTED
    }


# --------------------------------------------------------------------------------------------------------------- page
PAGE = """# Results

Made by `python -m uql.benchmarks.headline` from `benchmarks/results.json`. In all but the last row the model is a table of labels: these
say how an engine uses a model, and nothing of how well a model judges.

| quality against cost | error against budget | do the intervals hold? |
| --- | --- | --- |
| ![Score against calls](images/quality.svg) | ![Error against calls](images/error.svg) | \
![Share of intervals that hold the truth](images/coverage.svg) |

| what was measured | UQL | others | again |
| --- | --- | --- | --- |
| ten movie questions of SemBench, engines with their defaults: mean score, calls | {movie[UQL][score]:.3f}, {movie[UQL][calls]:,}; \
every row asked {movie[UQL, every row][score]:.3f}, {movie[UQL, every row][calls]:,} \
| JEVDB {movie[JEVDB][score]:.3f}, {movie[JEVDB][calls]:,}; Palimpzest {movie[Palimpzest][score]:.3f}, {movie[Palimpzest][calls]:,}; \
LOTUS {movie[LOTUS][score]:.3f}, {movie[LOTUS][calls]:,} ({movie[LOTUS][calls of its joins]:,} of them for three joins); \
ThalamusDB {movie[ThalamusDB][score]:.3f}, {movie[ThalamusDB][calls]:,} | `uql bench run peers` ([more](peers.md)) |
| {erring[UQL][questions]} of them, a model that errs on 10 % of the rows, {erring_seeds} seeds | {erring[UQL][score]:.3f}; \
every row {erring[UQL, every row][score]:.3f} \
| JEVDB {erring[JEVDB][score]:.3f}, Palimpzest {erring[Palimpzest][score]:.3f}, LOTUS {erring[LOTUS][score]:.3f}, \
ThalamusDB {erring[ThalamusDB][score]:.3f} | `uql bench run peers --models labels-10` |
| questions of three scenarios on which UQL is better; as good with fewer calls; worse | – | {verdicts_line} | \
`uql bench run peers` ([each](peers.md#wins-and-losses)) |
| error of COUNT, 128 calls; 512 calls; seventeen conditions, {error_seeds} seeds | {error[128][UQL]} %; {error[512][UQL]} % \
| UQE's algorithm {error[128][UQE]} %; {error[512][UQE]} %; random rows {error[128][random rows]} %; {error[512][random rows]} % | \
`make bench-long` |
| intervals at 95 % that hold, 128 calls: COUNT; AVG | {coverage[COUNT][held]} %, worst cell {coverage[COUNT][least]} %; \
{coverage[AVG][held]} %, {coverage[AVG][least]} % | – | `make bench-long` |
| calls for the error of COUNT that UQL has with 128 | {rivals[uql][calls]} | {rivals_line} | \
`{rivals_again}` ([more](../benchmarks/tables-kept.md#rivals)) |
| calls for sets of rows with precision and recall of 0.9, and sets that miss it | {sets[uql][calls]:,}, \
{sets[uql][missed]} of {sets[uql][runs]} \
| {sets_line} | `{sets_again}` |
| a real, small, local model: one of {accuracy[banking77][labels]} intents, {accuracy[banking77][rows]} questions | \
{accuracy[banking77][accuracy]} % ({accuracy[banking77][low]} to \
{accuracy[banking77][high]} %) | published for Jev {accuracy[banking77][Jev]} %, a keyword rule {accuracy[banking77][keywords]} % \
| `uql bench run accuracy` ([more](../benchmarks/tables-kept.md#accuracy)) |

## All tables

| page | what | made by |
| --- | --- | --- |
| [the short form](../benchmarks/tables-short.md) | the UQE paper, SemBench, speed | `make bench-offline`, minutes |
| [what is kept](../benchmarks/tables-kept.md) | peers by question, methods of others, a real model | commands on the page, hours |
| [the long form](../benchmarks/tables-long.md) | errors, coverage and guarantees with hundreds of seeds | `make bench-long`, about a day |
| [how each number is made](../benchmarks/README.md) | suites, results files, comparing two runs | `uql bench list` |
| [precision and recall with two models](statistics.md) | LOTUS's cascade, SUPG, BARGAIN | `python -m uql.benchmarks.promise` |
"""


def page(found: Mapping[str, Any]) -> str:
    """docs/benchmarks.md of some results."""
    values = {name: _Texts(suite["values"]) for name, suite in found.items()}
    seeds = {f"{name}_seeds": suite["seeds"] for name, suite in found.items()}
    again = {"rivals_again": found["rivals"]["command"], "sets_again": found["sets"]["command"]}
    lines = {
        "verdicts_line": _verdicts_line(found["verdicts"]["values"]),
        "rivals_line": ", ".join(
            f"{method} {v['calls']:,}" + f" ({v['failed']} % of its runs give no answer)" * bool(v["failed"])
            for method, v in _by_calls(found["rivals"]["values"])
        ),
        "sets_line": "; ".join(
            f"{method} {v['calls']:,}, {v['missed']} of {v['runs']}" for method, v in _by_calls(found["sets"]["values"])
        ),
    }
    return PAGE.format_map({**values, **seeds, **again, **lines})


def _by_calls(held: Values) -> list[tuple[str, dict[str, float]]]:
    """The methods of others, the fewest calls first."""
    own = ((method, v) for method, v in held.items() if not method.startswith(rivals.OURS))
    return sorted(own, key=lambda pair: pair[1]["calls"])


def _verdicts_line(held: Values) -> str:
    """How many questions are won, drawn with fewer calls, and lost beside each engine."""
    names = [verdicts.HEAD[1], verdicts.HEAD[2], verdicts.HEAD[-1]]
    return ", ".join(f"{engine} {'; '.join(str(counts[name]) for name in names)}" for engine, counts in held.items())


class _Texts(dict[str, Any]):
    """A mapping whose values are found by `{name[key][key]}` in a format string, where a number is taken for an index."""

    def __getitem__(self, key: object) -> Any:
        value = super().__getitem__(str(key))
        return _Texts(value) if isinstance(value, dict) else value


# -------------------------------------------------------------------------------------------------------------- plots
def plots(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """File name → Vega-Lite specification."""
    movie = _labels_apart([{"engine": name, **held} for name, held in found["movie"]["values"].items()])
    error = [
        {"calls": int(calls), "engine": engine, "error": value}
        for calls, held in found["error"]["values"].items()
        for engine, value in held.items()
    ]
    coverage = [{"number": name, **held} for name, held in found["coverage"]["values"].items()]
    engine = {"field": "engine", "type": "nominal"}
    shares = {"values": [0.7, 0.8, 0.9, 1.0]}
    score = _axis("score", "mean score of ten questions", {"domain": [0.7, 1.05]}, axis=shares)
    decades = {"values": [1_000, 10_000, 100_000]}
    calls = _axis("calls", "calls of the model", {"type": "log", "domain": [500, 400_000]}, axis=decades)
    budget = _axis(
        "calls", "calls of the model", {"type": "log", "base": 2, "domain": [100, 600]}, axis={"values": list(BUDGETS)}
    )
    held = _axis("held", "% that hold: mean, and worst cell", {"domain": [92, 100]}, axis={"tickCount": 5})
    number = {"field": "number", "type": "nominal", "title": None, "sort": list(COUNTED), "axis": {"labelLimit": 280}}
    colour = {**engine, "title": None, "sort": ["UQL", "UQE", "random rows"]}
    error_axis = _axis("error", "error of COUNT, % of the truth", {"zero": True})
    return {
        "quality.svg": _chart(
            movie,
            _layer({"type": "point", "filled": True, "size": 110}, x=calls, y=score, color={**engine, "legend": None}),
            *(
                _layer({"type": "text", "dy": dy, "fontSize": 12}, x=calls, y=score, text=engine)
                | {"transform": [{"filter": f"datum.above == {json.dumps(above)}"}]}
                for above, dy in ((False, 16), (True, -14))
            ),
            width=380,
        ),
        "error.svg": _chart(
            error, _layer({"type": "line", "point": {"size": 60}}, x=budget, y=error_axis, color=colour)
        ),
        "coverage.svg": _chart(
            coverage,
            _layer({"type": "rule", "size": 3, "color": "#9ab"}, y=number, x=held, x2={"field": "least"}),
            _layer({"type": "point", "filled": True, "size": 80}, y=number, x=held),
            _layer({"type": "rule", "strokeDash": [4, 3], "color": "#c33"}, x={"datum": 95}),
            width=200,
        ),
    }


def _labels_apart(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Points with `above`, where a label stands: every second one of those that are close to each other."""
    ordered = sorted(points, key=lambda point: point["calls"])
    for last, point in zip([None, *ordered], ordered, strict=False):
        close = last is not None and point["calls"] < 4 * last["calls"] and abs(point["score"] - last["score"]) < 0.03
        point["above"] = close and last is not None and not last["above"]
    return points


def _axis(field: str, title: str, scale: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A number on an axis."""
    return {"field": field, "type": "quantitative", "title": title, "scale": dict(scale), **more}


def _layer(mark: Mapping[str, Any], **encoding: Any) -> dict[str, Any]:
    return {"mark": mark, "encoding": encoding}


def _chart(rows: Sequence[Mapping[str, Any]], *layers: Mapping[str, Any], width: int = 300) -> dict[str, Any]:
    """A chart on a white ground, readable on a dark page too, and where three of them stand side by side.

    Args:
        width: of the plot without its labels, in pixels.
    """
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "white",
        "padding": 12,
        "width": width,
        "height": 220,
        "data": {"values": list(rows)},
        "layer": list(layers),
        "config": {
            "axis": {"labelFontSize": 14, "titleFontSize": 14, "titleFontWeight": "normal"},
            "legend": {"labelFontSize": 14, "orient": "top-right"},
        },
    }


def main() -> None:
    found = results()
    RESULTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (DOCS / "benchmarks.md").write_text(page(found), encoding="utf-8")
    (DOCS / "peers.md").write_text(peers_page.page(), encoding="utf-8")
    (DOCS / "images").mkdir(exist_ok=True)
    for name, chart in plots(found).items():
        (DOCS / "images" / name).write_bytes(render(chart, "svg"))


if __name__ == "__main__":
    main()
