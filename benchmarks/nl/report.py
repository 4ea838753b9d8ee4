"""The results in the layout of the papers' tables, beside the papers' own numbers: Meta Engine 2–6, CAESURA 1–2, M²EX 1–3.

Rows of a paper (`published.py`) are in italics. What was not run has its reason below the table. Ours are of other questions and another
model than theirs, so that a column says what the pieces give here, and not which system is better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import mean, median

from uql.benchmarks.nl import fixed, published as papers
from uql.benchmarks.nl.metrics import KINDS
from uql.benchmarks.nl.suites import SUITES
from uql.benchmarks.nl.systems import MODES, Row, by_system, reason

Cell = float | None
Lines = list[tuple[str, ...]]
NONE = "–"
QUALITY = {"F1-score": "f1", "Hit": "hit", "Semantic Hit": "semantic"}  # Semantic Hit where a judge was given
ALONE = ("lotus", "single_model", "llamaindex", "dspy")
SYSTEMS = (*(f"{name}_apart" for name in ALONE), "ml_router", "stat_router")  # of Meta Engine's table 2, in its order
PARTS = {
    "Meta-Engine": "",
    "Meta-Engine w/o Aggregator": "_no_aggregator",
    "Meta-Engine w/o Decomposer": "_no_decomposer",
}
PARTS["Meta-Engine w/o Checker"] = "_no_checker"
KIND_OF = {
    "Impossible Actions": "impossible action",
    "Data Misunderstanding": "data misunderstanding",
    "Illogical / Missing Steps": "illogical or missing step",
    "Wrong Arguments": "wrong arguments",
    "Wrong Tool": "wrong tool",
}
PHYSICAL = KINDS[3:]  # kinds of errors of the mapping; the others are of the plan in words


def tables(rows: Sequence[Row], model: str | None) -> str:
    """All tables, of all suites that have rows."""
    return "\n\n".join(part(rows, model) for part in PAPERS.values())


# ----------------------------------------------------------------------------------------------------------- Meta Engine
def meta_engine(rows: Sequence[Row], model: str | None) -> str:
    """Tables 2 to 6."""
    suites = list(dict.fromkeys(row.suite for row in rows))
    quality = [
        (
            suite,
            metric,
            *(_percent(_mean(getattr(r, name) for r in _of(rows, suite, system))) for system in (*SYSTEMS, *MODES)),
        )
        for suite in suites
        for metric, name in QUALITY.items()
    ]
    heads = (*papers.META_2.columns, *MODES)
    theirs = [(*row, *("" for _ in MODES)) for row in papers.META_2.rows]
    parts = [_table("Meta Engine, table 2: quality in percent", ("dataset", "metric", *heads), theirs, quality)]
    parts[0] += _reasons(rows, suites, (*SYSTEMS, *MODES), model)
    for number, dataset, table in (
        (3, "MultiModalQA", papers.META_3),
        (4, "ManyModalQA", papers.META_4),
        (5, "M2QA", papers.META_5),
    ):
        title = f"Meta Engine, table {number}: {dataset}"
        parts.append(_table(title, ("router", "method", *table.columns), table.rows, []))
    ablated = [
        (f"{suite}, {router}", method, *(_percent(_mean(getattr(r, name) for r in held)) for name in QUALITY.values()))
        for suite in suites
        for router, first in (("MLRouter", "ml_router"), ("StatRouter", "stat_router"), ("uql first", "meta"))
        for method, part in PARTS.items()
        if (held := _of(rows, suite, (part.removeprefix("_") or first) if first == "meta" else first + part))
    ]
    ablated += [
        (
            f"{suite}, Single-Adapter ({name})",
            "Meta-Engine",
            *(_percent(_mean(getattr(r, measure) for r in held)) for measure in QUALITY.values()),
        )
        for suite in suites
        for name in ALONE
        if (held := _of(rows, suite, name))
    ]
    heads = ("suite, router", "method", *papers.META_3.columns)
    parts.append(_table("Meta Engine, tables 3–5: ours, without a part", heads, [], ablated))
    timed = [
        ("", system, *(_number(_mean(r.seconds for r in _of(rows, suite, system)), 2) for suite in suites))
        for system, _ in by_system(rows)
    ]
    parts.append(
        _table(
            "Meta Engine, table 6: mean seconds a question",
            ("router", "method", *papers.META_6.columns),
            papers.META_6.rows,
            [],
        )
    )
    parts.append(_table("Meta Engine, table 6: ours", ("", "system", *suites), [], timed))
    return "\n\n".join(parts)


# --------------------------------------------------------------------------------------------------------------- CAESURA
def caesura(rows: Sequence[Row], model: str | None) -> str:
    """Tables 1 and 2. As there, a plan is logically right where the answer is, or where only a step's tool or arguments were wrong."""
    groups: Mapping[str, Callable[[Row], bool]] = {
        "Artwork overall": lambda r: r.suite == "artwork",
        "Rotowire overall": lambda r: r.suite == "rotowire",
        "Single modality": lambda r: len(r.modalities) == 1,
        "Multiple modalities": lambda r: len(r.modalities) > 1,
        "Single value": lambda r: r.output == "value",
        "Table": lambda r: r.output == "table",
        "Plot": lambda r: "plot" in r.output,
        "All": lambda r: True,
    }
    asked = [r for r in rows if r.suite in ("artwork", "rotowire")]
    ours = [(system, held) for system, held in by_system(asked) if system in MODES]
    heads = tuple(f"{system} {kind}" for system, _ in ours for kind in ("logical", "physical"))
    lines: Lines = []
    for row in papers.CAESURA_1.rows:
        cells = []
        for _, held in ours:
            part = [r for r in held if groups[row[0]](r)]
            right = [float(r.right == 1.0) for r in part]
            cells += [_share(_mean(float(r.right == 1.0 or r.error in PHYSICAL) for r in part)), _share(_mean(right))]
        lines.append((row[0], *(f"*{cell}*" for cell in row[1:]), *cells))
    title = f"CAESURA, table 1: right plans ({', '.join(f'{system}: {len(held)} questions' for system, held in ours) or 'none asked'})"
    parts = [_table(title, ("", *papers.CAESURA_1.columns, *heads), [], lines)]
    lines = []
    for kind, level, *theirs in papers.CAESURA_2.rows:
        counts = [str(sum(r.error == KIND_OF[kind] for r in held)) for _, held in ours]
        lines.append((kind, level, *(f"*{cell}*" for cell in theirs), *counts))
    parts.append(
        _table("CAESURA, table 2: errors", ("", "", *papers.CAESURA_2.columns, *(s for s, _ in ours)), [], lines)
    )
    return "\n\n".join(parts)


# ------------------------------------------------------------------------------------------------------------------ M²EX
_CATEGORIES: Mapping[str, Callable[[Row], bool]] = {
    "Single": lambda r: len(r.modalities) == 1,
    "Multiple": lambda r: len(r.modalities) > 1,
    "Single Value": lambda r: r.output == "value",
    "Data Structure": lambda r: r.output == "table",
    "Plot": lambda r: r.output == "plot",
    "Plot-Plot": lambda r: r.output == "plot|plot",
    "Plot-Data Structure": lambda r: r.output == "plot|table",
    "Sequential": lambda r: r.workflow == "Sequential",
    "Parallel": lambda r: r.workflow == "Parallel",
    "Overall": lambda r: True,
}


def m2ex(rows: Sequence[Row], model: str | None) -> str:
    """Tables 1 to 3. Steps, tokens, seconds and USD are sums, as there; a workflow is told of the questions that M²EX names alone."""
    ours = [s for s, _ in by_system(rows) if s in MODES]
    lines: Lines = []
    for system in ours:
        for name, belongs in _CATEGORIES.items():
            both = [[r for r in _of(rows, suite, system) if belongs(r)] for suite in ("artwork", "rotowire")]
            counts = f"{name} ({len(both[0])} {len(both[1])})"
            lines.append((system, counts, *(cell for part in both for cell in _spent(part))))
    columns = ("system", "category", *papers.M2EX_1.columns)
    parts = [_table("M²EX, table 1: ArtWork and RotoWire", columns, papers.M2EX_1.rows, lines)]
    lines = []
    for system in ours:
        held = _of(rows, "ehrxqa", system)
        if held:
            image = [r for r in held if r.modalities == ("image",)]
            mixed = [r for r in held if len(r.modalities) > 1]
            binary = [r for r in held if r.output == "binary"]
            groups = [image, [], mixed, binary, [r for r in held if r not in binary], held]
            valid, again = _share(_mean(r.valid for r in held)), sum(r.replans > 0 for r in held)
            shares = (_share(_mean(r.right for r in group)) for group in groups)
            lines.append((f"{system} ({len(held)})", *shares, valid, f"{again} questions"))
    title = "M²EX, table 2: EHRXQA; ours is a hospital of its shape, without questions about two images, with questions about tables alone"
    parts.append(_table(title, ("system", *papers.M2EX_2.columns), papers.M2EX_2.rows, lines))
    lines = []
    for suite in ("artwork", "rotowire", "ehrxqa"):
        for system in ours:
            held = _of(rows, suite, system)
            wrong = Counter(r.error for r in held if r.right != 1.0)
            if held:
                lines.append(
                    (suite, system, str(len(held)), str(wrong.total()), wrong.most_common(1)[0][0] if wrong else NONE)
                )
    parts.append(
        _table("M²EX, table 3: errors", ("dataset", "system", *papers.M2EX_3.columns), papers.M2EX_3.rows, lines)
    )
    return "\n\n".join(parts)


def _spent(held: Sequence[Row]) -> tuple[str, ...]:
    """Accuracy, steps, tokens, seconds, USD."""
    if not held:
        return (NONE,) * 5
    costs = [r.usd for r in held]
    usd = NONE if any(cost is None for cost in costs) else f"{sum(cost for cost in costs if cost is not None):.2f}"
    sums = (
        f"{sum(r.steps for r in held):,}",
        f"{sum(r.tokens for r in held):,}",
        f"{sum(r.seconds for r in held):,.2f}",
    )
    return (_share(_mean(r.right for r in held)), *sums, usd)


PAPERS: Mapping[str, Callable[[Sequence[Row], str | None], str]] = {
    "meta-engine": meta_engine,
    "caesura": caesura,
    "m2ex": m2ex,
}


# --------------------------------------------------------------------------------------------------- the fixed questions
def planning(rows: Sequence[Row]) -> str:
    """Valid plans and right answers on the parts of the fixed questions: those the planner was made on, and those it was not."""
    lines: Lines = []
    for system, held in by_system(rows):
        for name in fixed.PARTS:
            part = [r for r in held if fixed.part_of(r.suite, r.question) == name]
            if part:
                cells = (_share(_mean(r.valid for r in part)), _share(_mean(r.right for r in part)))
                effort = (f"{mean(r.tries for r in part):.2f}", f"{median(r.seconds for r in part):.1f}")
                lines.append((system, name, str(len(part)), *cells, *effort))
    heads = ("system", "questions", "n", "valid plan", "right", "tries", "median s")
    return _table("The fixed questions: valid plans before any data call, right answers", heads, [], lines)


# ----------------------------------------------------------------------------------------------------------------- cells
def _of(rows: Sequence[Row], suite: str, system: str) -> list[Row]:
    return [r for r in rows if r.suite == suite and r.system == system]


def _mean(values: Iterable[Cell]) -> Cell:
    held = [value for value in values if value is not None]
    return mean(held) if held else None


def _share(value: Cell) -> str:
    return NONE if value is None else f"{value:.1%}"


def _percent(value: Cell) -> str:
    return NONE if value is None else f"{100 * value:.2f}"


def _number(value: Cell, places: int) -> str:
    return NONE if value is None else f"{value:,.{places}f}"


def _table(title: str, heads: Sequence[str], theirs: Sequence[tuple[str, ...]], ours: Lines) -> str:
    """Markdown: the paper's rows in italics, then ours."""
    lines = [f"**{title}**", "", f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    lines += [f"| {' | '.join(f'*{cell}*' if cell else '' for cell in row)} |" for row in theirs]
    lines += [f"| {' | '.join(row)} |" for row in ours]
    return "\n".join(lines if theirs or ours else [*lines, "", f"{NONE} not run"])


def _reasons(rows: Sequence[Row], suites: Sequence[str], systems: Sequence[str], model: str | None) -> str:
    """Why cells are empty, a line a reason."""
    missing: dict[str, list[str]] = {}
    for suite in suites or list(SUITES):
        for system in systems:
            if not _of(rows, suite, system):
                missing.setdefault(reason(suite, system, model) or "not run", []).append(f"{suite} {system}")
    return "".join(f"\n\n{NONE} {why}: {', '.join(names)}" for why, names in missing.items())
