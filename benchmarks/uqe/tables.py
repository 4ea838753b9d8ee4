"""The tables and figures of the UQE suite, from its results: ours, the baselines', and the paper's beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from uql.benchmarks.runner.records import Record
from uql.benchmarks.runner.suite import Table, is_simulated
from uql.benchmarks.runner.summary import Cell, Summary, cells, number, spread, value_of
from uql.benchmarks.uqe import paper
from uql.benchmarks.uqe.data import CONDITIONS, GROUPINGS, SOURCES
from uql.benchmarks.uqe.tasks import BUDGETS, SYSTEMS

ABSENT = "not at hand"
MOST_GROUPS = 8  # listed of one question
BUDGET = "{budget}"  # in a note: the calls of the table's runs
SOURCE_OF = {question.name: question.source for question in (*CONDITIONS, *GROUPINGS)}
MODEL = "the paper's models were claude-3-haiku (UDF, UQE; gpt-4o for pictures) and gpt-4-turbo (long context)"


def tables(records: Sequence[Record]) -> list[Table]:
    """Every table of which there is a run or a reason; runs over tables cut to different sizes are not put together."""
    sizes = sorted({r.settings.get("rows", 0) for r in records if not r.reason and r.table != "table 4"})
    if len(sizes) < 2:
        return _of_size(records)
    return [table for size in sizes for table in _of_size([r for r in records if r.settings.get("rows", 0) == size])]


def _of_size(records: Sequence[Record]) -> list[Table]:
    by_table: dict[str, list[Record]] = {}
    for record in records:
        by_table.setdefault(record.table, []).append(record)
    found = []
    for name, make in MAKERS.items():
        held = by_table.get(name, [])
        if held:
            found += make(held)
    found += _table_5(by_table)
    found += _figure_4(by_table)
    return found


def _missing(held: dict[tuple[str, str, str, str], Summary]) -> list[str]:
    """A line for each system and reason, with the questions it is said of."""
    said: dict[tuple[str, str], list[str]] = {}
    for (_, system, query, model), summary in held.items():
        if summary.reason:
            queries = said.setdefault((f"{system} with {model}", summary.reason), [])
            queries.append(query)
    return [f"not run: {who} on {', '.join(queries)}: {why}" for (who, why), queries in said.items()]


def _differs(queries: Sequence[str]) -> str:
    sources = dict.fromkeys(SOURCE_OF[query] for query in queries if query in SOURCE_OF)
    return "what differs from the paper's data: " + "; ".join(f"{s}: {SOURCES[s].differs}" for s in sources)


def _beside(
    records: Sequence[Record],
    title: str,
    figures: paper.Figures,
    columns: Sequence[str],
    digits: int,
    scale: float,
    notes: Sequence[str],
) -> list[Table]:
    """One table a model: a row for each question, a column for each system, then the paper's columns."""
    held = cells(records)
    made = []
    for model in dict.fromkeys(cell[3] for cell in held):
        own = {cell: summary for cell, summary in held.items() if cell[3] == model}
        ran = {cell: s for cell, s in own.items() if not s.reason}
        if not ran:
            made.append(Table(f"{title}, model {model}", (), (), (*_missing(own),), "no system was run"))
            continue
        there = {cell[1] for cell in ran}
        systems = [*(system for system in SYSTEMS if system in there), *sorted(there - set(SYSTEMS))]
        order = list(SOURCE_OF)
        queries = sorted({c[2] for c in own}, key=lambda q: order.index(q) if q in SOURCE_OF else len(order))
        counts = Counter(len(s.records) for c, s in ran.items() if c[1] != "mips")  # no chance in that one
        usual = counts.most_common(1)[0][0] if counts else 1
        rows = []
        for query in queries:
            row = [query]
            for system in systems:
                summary = next((s for cell, s in own.items() if cell[1:3] == (system, query)), None)
                row.append(_cell(summary, digits, scale, usual if system != "mips" else 1))
            row += [figures[query][column] if query in figures else "not in it" for column in columns]
            rows.append(tuple(row))
        rows += _means(ran, systems, len(columns), digits, scale)
        head = ("question", *systems, *(f"paper: {column}" for column in columns))
        other = ", in brackets where there are others" if len(counts) > 1 else ""
        count = f"{usual} seed{'s' * (usual > 1)}{other}"
        capped = {int(r.settings["rows"]) for r in records if "rows" in r.settings}
        cap = [f"tables cut to {max(capped):,} random rows"] if capped else []
        unanswered = [
            f"{len(s.problems)} runs without an answer: {c[1]} on {c[2]}" for c, s in ran.items() if s.problems
        ]
        budget = _budget(list(own.values()))
        said = [note.replace(BUDGET, budget) for note in notes]
        lines = (f"{count}; mean ± standard deviation", *cap, *said, MODEL, _differs(queries), *unanswered)
        made.append(Table(f"{title}, model {model}", head, tuple(rows), (*lines, *_missing(own))))
    return made


def _budget(summaries: Sequence[Summary]) -> str:
    """How many calls each run of a model had; another model than a label table has fewer."""
    found = {int(r.settings["budget"]) for s in summaries for r in s.records if "budget" in r.settings}
    return " or ".join(map(str, sorted(found))) or "no"


def _cell(summary: Summary | None, digits: int, scale: float, usual: int) -> str:
    if summary is None or summary.reason:
        return "–"
    n = len(summary.records)
    return spread(summary.qualities, digits, scale) + (f" ({n})" if n != usual else "")


def _means(
    ran: Mapping[Cell, Summary], systems: Sequence[str], beside: int, digits: int, scale: float
) -> list[tuple[str, ...]]:
    """A row of means over the questions that every system was run on, but for those that are for some questions alone."""
    held = {system: {c[2]: s for c, s in ran.items() if c[1] == system} for system in systems}
    general = [system for system in systems if system not in ("mips", "count-each")]
    shared = set.intersection(*(set(held[system]) for system in general)) if general else set()
    if len(shared) < 2:
        return []
    cells_ = []
    for system in systems:
        own = [held[system][query].mean("quality") for query in shared if query in held[system]]
        cells_.append(f"{scale * float(np.mean(own)):.{digits}f}" if len(own) == len(shared) else "–")
    return [(f"mean of {len(shared)} questions", *cells_, *("" for _ in range(beside)))]


def _table_1(records: Sequence[Record]) -> list[Table]:
    figures = {
        query: row
        | ({paper.UQE: f"{row[paper.UQE]}; one by one {paper.COUNT_EACH[query]}"} if query in paper.COUNT_EACH else {})
        for query, row in paper.COUNT.items()
    }
    notes = (
        f"relative error of COUNT in hundredths, {BUDGET} calls; lower is better",
        *_bias(records),
        *_coverage(records),
    )
    columns = (paper.GPT, paper.CLAUDE, paper.UQE)
    return _beside(records, "Table 1: conditional COUNT", figures, columns, 2, 100.0, notes)


def _bias(records: Sequence[Record]) -> tuple[str, ...]:
    """What a model that errs misses by itself; nothing where none was run."""
    if not any(r.model.startswith("labels-") for r in records):
        return ()
    return (
        "a model that errs on a share e of the rows misses by e (1 - 2s) / s of the count even where every row is asked, s the share that "
        "matches: labels-5 by 5 hundredths where a third matches and by 90 where one in twenty does, labels-10 by 10 and 180",
    )


def _coverage(records: Sequence[Record]) -> tuple[str, ...]:
    found = [
        r.numbers["covered"] for r in records if r.system == "uql" and "covered" in r.numbers and r.model == "labels"
    ]
    if not found:
        return ()
    share = f"{100 * float(np.mean(found)):.1f} %"
    return (f"intervals of uql at 95 % held the truth in {share} of {len(found)} runs with labels",)


def _table_2(records: Sequence[Record]) -> list[Table]:
    notes = (
        f"F1 of the rows returned, {BUDGET} calls; recall is of min({BUDGET}, rows that match); higher is better",
        "uql asks equal texts once and returns every row of them, the others ask each row: table 4 counts such rows as duplicates",
    )
    columns = (paper.GPT, paper.CLAUDE, paper.MIPS, paper.UQE)
    return _beside(records, "Table 2: semantic retrieval", paper.FIND, columns, 3, 1.0, notes)


def _table_3(records: Sequence[Record]) -> list[Table]:
    notes = (
        f"earth mover's distance of the groups found with {BUDGET} calls, by embeddings of their names; lower is better",
        "a label table names the groups that it sees by their labels: what is measured is which groups are seen and how they are counted",
        "long-context is a perfect reader's; abcd_flow and sgd_intent are not in the paper",
    )
    made = _beside(records, "Table 3: GROUP BY", paper.GROUP, (paper.GPT, paper.CLAUDE, paper.UQE), 4, 1.0, notes)
    return made + _groups(records)


def _groups(records: Sequence[Record]) -> list[Table]:
    """The listing of the paper's appendix C.4, of groups: those that seed 0 found, beside the labels' ones."""
    rows = []
    for r in records:
        if (r.system, r.seed, r.model) != ("uql", 0, "labels") or r.reason:
            continue
        sides = [
            {name.removeprefix(start): n for name, n in r.numbers.items() if name.startswith(start)}
            for start in (paper.TRUE, paper.FOUND)
        ]
        names = sorted(sides[0] | sides[1], key=lambda name: -sides[0].get(name, 0.0))
        for name in names[:MOST_GROUPS]:
            rows.append((r.query, name, *(number(side.get(name, float("nan")), 0) for side in sides)))
        if len(names) > MOST_GROUPS:
            rows.append((r.query, f"and {len(names) - MOST_GROUPS} more", "", ""))
    notes = ("the paper's listings of rows found are not repeated: most of these data may not be passed on",)
    return (
        [Table("Groups found with 128 calls, seed 0", ("question", "group", "labels", "uql"), tuple(rows), notes)]
        if rows
        else []
    )


def _table_4(records: Sequence[Record]) -> list[Table]:
    rows, order = [], list(SOURCE_OF)
    known = [r for r in records if r.query in SOURCE_OF]  # a file of an older version may hold others
    for r in sorted(known, key=lambda r: order.index(r.query)):
        share = paper.SHARE.get(r.query)
        n = r.numbers
        rows.append(
            (
                r.query,
                f"{n['rows']:,.0f}",
                f"{100 * n['share']:.2f} %",
                f"{share:.2f} %" if share is not None else "not in it",
                f"{n['duplicates']:,.0f}",
                f"{n['dropped']:,.0f}",
                SOURCES[SOURCE_OF[r.query]].differs,
            )
        )
    head = ("question", "rows", "share", "paper: share", "duplicates", "left out", "data")
    notes = ("left out: rows of equal content and different labels, since an oracle finds rows by what it is shown",)
    return [Table("Table 4: the data sets", head, tuple(rows), notes)]


def _table_5(by_table: dict[str, list[Record]]) -> list[Table]:
    """Seconds of a statement the first time, of the engine and the model apart, and once more: a row for each data set and model."""
    held: dict[tuple[str, str, str], list[Record]] = {}
    for table in ("table 1", "table 2"):
        for r in by_table.get(table, []):
            timed = r.model == "labels" or not is_simulated(r.model)  # of labels that err no other seconds
            if r.system == "uql" and timed and not r.reason and r.query in SOURCE_OF:
                held.setdefault((SOURCE_OF[r.query], r.model, table), []).append(r)
    rows = []
    for source, model in dict.fromkeys((source, model) for source, model, _ in held):
        parts = [_seconds(held, source, model, table) for table in ("table 1", "table 2")]
        rows.append((source, model, *parts[0], *parts[1], *paper.SECONDS.get(source, ("not in it", "not in it"))))
    order = list(SOURCES)
    rows.sort(key=lambda row: order.index(row[0]))
    notes = (
        "median of the runs of tables 1 and 2; engine: seconds of processors with labels, which take no time; model: what the clock shows "
        "beyond that of the same questions with labels",
        "again: seconds of processors of the same statement once more, answered by the ledger without a call, median of the first seeds",
        "the paper's seconds hold the latency of claude-3-haiku: they are to be compared with first, where a model takes time",
    )
    columns = ("first, s", "engine", "model", "again")
    head = (
        "data",
        "model",
        *(f"{part}: {name}" for part in ("COUNT", "retrieval") for name in columns),
        "paper: COUNT, s",
        "paper: retrieval, s",
    )
    return [Table("Table 5: latency", head, tuple(rows), notes)] if rows else []


def _seconds(
    held: Mapping[tuple[str, str, str], Sequence[Record]], source: str, model: str, table: str
) -> tuple[str, ...]:
    """The first time, by the clock; of it the engine and the model; and the second time."""

    def of(which: str, name: str) -> float:
        found = [value for r in held.get((source, which, table), []) if (value := value_of(r, name)) is not None]
        return median(found) if found else float("nan")

    first, engine, again = of(model, "seconds"), of("labels", "processor seconds"), of(model, "seconds again")
    beyond = first - of("labels", "seconds") if model != "labels" else 0.0
    return tuple(number(value, 2) for value in (first, engine, beyond, again))


def _figure_4(by_table: dict[str, list[Record]]) -> list[Table]:
    """The spread of the estimated share over seeds: quartiles and standard deviation."""
    held = cells([r for r in by_table.get("table 1", []) if r.model == "labels" and "share" in r.numbers])
    truths = {r.query: r.numbers["share"] for r in by_table.get("table 4", [])}
    rows = []
    for query in paper.FIGURE_4:
        for system in ("uniform", "algorithm-1", "uql"):
            summary = held.get(("table 1", system, query, "labels"))
            if summary is None:
                continue
            shares = np.array([r.numbers["share"] for r in summary.records])
            low, middle, high = np.quantile(shares, [0.25, 0.5, 0.75])
            sd = number(float(shares.std(ddof=1)), 4) if len(shares) > 1 else "–"
            truth = number(truths.get(query, float("nan")), 4)
            rows.append((query, system, truth, f"{low:.4f}", f"{middle:.4f}", f"{high:.4f}", sd, str(len(shares))))
    head = ("question", "sampler", "true share", "lower quartile", "median", "upper quartile", "sd", "seeds")
    notes = ("the paper shows this figure as boxes without numbers: uniform against stratified",)
    return (
        [Table("Figure 4: spread of the samplers, the labels as the model", head, tuple(rows), notes)] if rows else []
    )


def _figure_5(records: Sequence[Record]) -> list[Table]:
    rows = []
    held = cells(records)
    for (_, system, query, _), summary in held.items():
        if summary.reason:
            continue
        found = [f"{summary.mean(f'recall@{b}'):.3f} ({summary.mean(f'hits@{b}'):.2f})" for b in BUDGETS]
        rows.append((query, system, *found, str(len(summary.records))))
    head = ("question", "system", *(f"{b} calls" for b in BUDGETS), "seeds")
    notes = (
        "share found of the matching rows (at most 256), and in brackets matching rows a call",
        "uql is run with each budget apart, the others once to 256 calls; the paper shows moving averages without numbers",
        *_missing(held),
    )
    return [Table("Figure 5: recall against calls, the labels as the model", head, tuple(sorted(rows)), notes)]


def _budgets(records: Sequence[Record]) -> list[Table]:
    final = {
        256: ("0.978", ABSENT),
        128: ("0.974", "5.75 %"),
        64: ("0.921", "6.84 %"),
        32: ("0.828", "8.29 %"),
    }
    rows = []
    for budget in BUDGETS:
        for system in dict.fromkeys(r.system for r in records):
            own = [r for r in records if r.system == system and r.settings.get("budget") == budget]
            if own:
                f1 = spread([r.quality for r in own if r.quality is not None])
                error = spread([r.numbers["relative error"] for r in own], 2, 100.0)
                rows.append((str(budget), system, f1, f"{error} %", *final[budget], str(len(own))))
    head = ("calls", "system", "F1", "relative error", "paper: F1 of UQE", "paper: error of UQE", "seeds")
    notes = ("imdb_positive; tables 4 and 5 of the paper's final version; algorithms: 2 for F1, 1 for the error",)
    return [Table("Fewer calls", head, tuple(rows), notes)]


MAKERS = {
    "table 1": _table_1,
    "table 2": _table_2,
    "table 3": _table_3,
    "table 4": _table_4,
    "figure 5": _figure_5,
    "budgets": _budgets,
}
