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
        "coverage": {"command": "make bench-long", "seeds": 1000, "values": _coverage(long)},
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

Made by `python -m uql.benchmarks.headline` from `benchmarks/results.json`; each part names the command that makes its numbers again.
The model is a table of labels, so they say how an engine uses a model, and nothing of how well a model judges.

![Score against calls](images/quality.svg)

**Quality against cost.** Ten movie questions of SemBench over the same rows and the same model, all engines with their defaults.
UQL scores {movie[UQL][score]:.3f} with {movie[UQL][calls]:,} calls (mean of {movie_seeds} seeds),
and {movie[UQL, every row][score]:.3f} with {movie[UQL, every row][calls]:,} where it asks every row.
LOTUS scores {movie[LOTUS][score]:.3f} with {movie[LOTUS][calls]:,}, of which {movie[LOTUS][calls of its joins]:,} are for three joins,
Palimpzest {movie[Palimpzest][score]:.3f} with {movie[Palimpzest][calls]:,},
ThalamusDB {movie[ThalamusDB][score]:.3f} with {movie[ThalamusDB][calls]:,},
JEVDB {movie[JEVDB][score]:.3f} with {movie[JEVDB][calls]:,}, in {movie[JEVDB][requests]:,} requests to a decision model.
Again: `uql bench run peers`. What is fair about it and what is not: [beside its peers](peers.md).

**Wins and losses.** Questions of three scenarios (movies, MMQA over texts, joins) that UQL and another engine were both asked, UQL with its
default budget.

{verdicts_table}

**With a model that errs** on 10 % of the rows, other ones with each seed, the mean scores over {erring[UQL][questions]} movie questions are
{erring[Palimpzest][score]:.3f} for Palimpzest, {erring[LOTUS][score]:.3f} for LOTUS, {erring[JEVDB][score]:.3f} for JEVDB,
{erring[UQL, every row][score]:.3f} for UQL where it asks every row, {erring[UQL][score]:.3f} with its default budget, and
{erring[ThalamusDB][score]:.3f} for ThalamusDB (each question with at least {erring_seeds} seeds).
In a join of questions to a bank with matters LOTUS's cascade scores {erring[LOTUS, cascade, join][score]:.3f} with
{erring[LOTUS, cascade, join][calls]} calls, UQL {erring[UQL, join][score]:.3f} with {erring[UQL, join][calls]}.

{verdicts_with_errors_table}

Again: `uql bench run peers --models labels-10`.

![Error against calls](images/error.svg)

**Error against budget.** COUNT over seventeen conditions on texts of seven data sets, {error_seeds} seeds each; geometric means.
With 128 calls the error is {error[128][UQL]} % of the truth; {error[128][UQE]} % by the algorithm of the UQE paper,
{error[128][random rows]} % by random rows.
With 512 calls it is {error[512][UQL]} %; {error[512][UQE]} % and {error[512][random rows]} %. Again: `make bench-long`.

![Share of intervals that hold the truth](images/coverage.svg)

**Do the intervals hold?** Stated at 95 %, with 128 calls and up to {coverage_seeds:,} seeds a cell:
{coverage[COUNT][held]} % of the intervals of a COUNT held the truth, {coverage[COUNT][least]} % in the worst of its cells;
for AVG {coverage[AVG][held]} % and {coverage[AVG][least]} %.
A stated recall of 0.9 was missed in at most {stated[recall, target 0.9, δ 0.05][missed]:.3f} of the runs of a cell,
a stated precision of 0.9 in {stated[precision, target 0.9, δ 0.05][missed]:.3f};
{stated[recall, target 0.9, δ 0.05][allowed]} is allowed. Again: `make bench-long`.

**Beside methods of others**, re-implemented plainly, on the same rows, embeddings and labels. {rivals_table[goal]}

{rivals_table[table]}

Calls for the error of COUNT that UQL has with 128, geometric mean over {rivals[uql][predicates]} conditions, {rivals_seeds} seeds each;
where a method has none to give, since most runs fail or its error does not fall, it asks every row. Again:
`{rivals_again}`.

{sets_table[table]}

Sets of rows with a stated precision and recall of 0.9 at 95 %, {sets_seeds} seeds of each condition. {sets_table[goal]}
UQL sees the embeddings beside the cheap model's score; by the score alone, which is all that LOTUS, SUPG and BARGAIN see, it takes
{sets[uql, score alone][calls]:,} calls. CSV and BigQuery's proxy state nothing. Again: `{sets_again}`;
[all of it](../benchmarks/tables-kept.md#rivals).

**How well does a real model judge?** The local model names the right one of {accuracy[banking77][labels]} intents for
{accuracy[banking77][accuracy]} % of {accuracy[banking77][rows]} questions to a bank (interval {accuracy[banking77][low]} to
{accuracy[banking77][high]} %); {accuracy[banking77][Jev]} % are published for Jev, {accuracy[banking77][keywords]} % for a keyword rule.
On {accuracy[all][worse than the commonest label]} of {accuracy[all][data sets]} data sets it is right less often than the commonest label
alone.
Again, with other data sets: `uql bench run accuracy`; [the table](../benchmarks/tables-kept.md#accuracy).

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
    tables = {
        "verdicts_table": _verdicts_table(found["verdicts"]["values"]),
        "verdicts_with_errors_table": _verdicts_table(found["verdicts with errors"]["values"]),
        "rivals_table": _rivals_table(found["rivals"]["values"]),
        "sets_table": _sets_table(found["sets"]["values"]),
    }
    return PAGE.format_map({**values, **seeds, **again, **tables})


def _verdicts_table(held: Values) -> str:
    """How many questions are won, drawn and lost beside each engine."""
    columns = verdicts.HEAD[1:]
    rows = [(engine, *(str(counts[name]) for name in columns)) for engine, counts in held.items()]
    return peers_page.markdown(("UQL beside", *columns), rows)


def _rivals_table(held: Values) -> dict[str, str]:
    """The table of methods of COUNT, and whether the goal is reached."""
    rows = [
        (method, f"{v['calls']:,}", str(v["over UQL"]), f"{v['failed']} %", str(v["without"]), f"{v['usd']:.2f}")
        for method, v in held.items()
    ]
    head = ("COUNT by", "calls", "over UQL", "runs without an answer", "conditions without calls", f"USD, `{MODEL}`")
    best, times = min((v["over UQL"], name) for name, v in held.items() if name != rivals.OURS)[::-1]
    return {"table": peers_page.markdown(head, rows), "goal": _goal(f"COUNT: the best of them ({best})", times)}


def _sets_table(held: Values) -> dict[str, str]:
    """The table of methods that return sets, and whether the goal is reached beside those whose statement holds."""
    rows = [
        (
            method,
            f"{v['calls']:,}",
            str(v["over UQL"]),
            f"{v['missed']} of {v['runs']}",
            str(v["failing"]),
            f"{v['usd']:.2f}",
        )
        for method, v in held.items()
    ]
    head = (
        "sets by",
        "calls",
        "over UQL",
        "sets that miss a target",
        "conditions where too many do",
        f"USD, `{MODEL}`",
    )
    holding = [
        (v["over UQL"], name) for name, v in held.items() if not name.startswith(rivals.OURS) and not v["failing"]
    ]
    best, times = min(holding)[::-1]
    return {"table": peers_page.markdown(head, rows), "goal": _goal(f"The best whose sets hold ({best})", times)}


def _goal(what: str, times: float) -> str:
    reached = "reached" if times >= rival_tables.GOAL else "not reached"
    return f"{what} takes {times} times UQL's calls: the goal of {rival_tables.GOAL} is {reached}."


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
    held = _axis("held", "% of intervals that hold the truth: mean, and worst cell", {"domain": [92, 100]})
    number = {"field": "number", "type": "nominal", "title": None, "sort": list(COUNTED), "axis": {"labelLimit": 260}}
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
        ),
        "error.svg": _chart(
            error, _layer({"type": "line", "point": {"size": 60}}, x=budget, y=error_axis, color=colour)
        ),
        "coverage.svg": _chart(
            coverage,
            _layer({"type": "rule", "size": 3, "color": "#9ab"}, y=number, x=held, x2={"field": "least"}),
            _layer({"type": "point", "filled": True, "size": 80}, y=number, x=held),
            _layer({"type": "rule", "strokeDash": [4, 3], "color": "#c33"}, x={"datum": 95}),
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


def _chart(rows: Sequence[Mapping[str, Any]], *layers: Mapping[str, Any]) -> dict[str, Any]:
    """A chart on a white ground, readable on a dark page too."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "white",
        "padding": 12,
        "width": 460,
        "height": 220,
        "data": {"values": list(rows)},
        "layer": list(layers),
        "config": {
            "axis": {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"},
            "legend": {"labelFontSize": 12},
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
