"""The results in the layout of the papers' tables: Meta Engine 2–6, CAESURA 1–2, M²EX 1–3. What was not run has its reason there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import mean, median

from uql.benchmarks.nl import fixed
from uql.benchmarks.nl.metrics import KINDS
from uql.benchmarks.nl.suites import SUITES
from uql.benchmarks.nl.systems import ABLATIONS, ALONE, BASELINES, CROSSED, MODES, ROUTERS, Row, by_system, reason

Cell = float | None
NONE = "–"
QUALITY = ("F1", "Hit", "Semantic", "Coverage")  # Semantic Hit where a judge was given


def tables(rows: Sequence[Row], model: str | None) -> str:
    """All tables of the suites that have rows, each cell without a run with its reason below."""
    suites = [name for name in SUITES if any(row.suite == name for row in rows)] or list(SUITES)
    parts = [
        meta_engine_2(rows, suites, model),
        _systems("Meta Engine, table 3: routers", ("meta", *ROUTERS), rows, suites, model),
        _systems("Meta Engine, table 4: without a part", ("meta", *ABLATIONS, *CROSSED), rows, suites, model),
        _systems("Meta Engine, table 5: one adapter alone", ALONE, rows, suites, model),
        meta_engine_6(rows, model),
        caesura_1(rows),
        caesura_2(rows),
        m2ex_1(rows),
        m2ex_2(rows),
        m2ex_3(rows),
    ]
    return "\n\n".join(parts)


def meta_engine_2(rows: Sequence[Row], suites: Sequence[str], model: str | None) -> str:
    """Quality of every system on every suite."""
    columns = ("n", "right", "EM", *QUALITY)
    lines = ["Meta Engine, table 2: quality", _line("suite", "system", columns)]
    missing: dict[str, list[str]] = {}
    for suite in suites:
        absent: dict[str, list[str]] = {}
        for system in (*MODES, *BASELINES):
            held = [r for r in rows if r.suite == suite and r.system == system]
            if held:
                shares = [_mean(r.right for r in held), _mean(r.em for r in held), *_quality(held)]
                lines.append(_line(suite, system, (str(len(held)), *map(_share, shares))))
            else:
                absent.setdefault(reason(suite, system, model) or "not run", []).append(system)
        for why, names in absent.items():
            whole = len(names) == len(MODES) + len(BASELINES)
            missing.setdefault(why, []).append(suite if whole else f"{suite} ({', '.join(names)})")
    return "\n".join([*lines, *_reasons(missing)])


def _systems(title: str, systems: Sequence[str], rows: Sequence[Row], suites: Sequence[str], model: str | None) -> str:
    lines = [title, _line("system", "", ("n", "right", *QUALITY, "calls", "attempts", "s"))]
    missing: dict[str, list[str]] = {}
    for system in systems:
        held = [r for r in rows if r.system == system]
        if held:
            cells = (_share(_mean(r.right for r in held)), *map(_share, _quality(held)), *_effort(held))
            lines.append(_line(system, "", (str(len(held)), *cells)))
        else:
            why = next((w for suite in suites if (w := reason(suite, system, model))), "not run")
            missing.setdefault(why, []).append(system)
    return "\n".join([*lines, *_reasons(missing)])


def _quality(held: Sequence[Row]) -> list[Cell]:
    """The means of QUALITY."""
    return [_mean(getattr(r, name) for r in held) for name in ("f1", "hit", "semantic", "coverage")]


def _effort(held: Sequence[Row]) -> tuple[str, str, str]:
    return (
        f"{mean(r.calls for r in held):.1f}",
        f"{mean(r.attempts for r in held):.2f}",
        f"{median(r.seconds for r in held):.1f}",
    )


def planning(rows: Sequence[Row]) -> str:
    """Valid plans and right answers on the parts of the fixed questions: those the planner was made on, and those it was not."""
    lines = ["The fixed questions: valid plans before any data call, right answers"]
    lines.append(_line("system", "questions", ("n", "valid plan", "right", "tries", "median s")))
    for system, held in by_system(rows):
        for name in fixed.PARTS:
            part = [r for r in held if fixed.part_of(r.suite, r.question) == name]
            if part:
                cells = (_share(_mean(r.valid for r in part)), _share(_mean(r.right for r in part)))
                effort = (f"{mean(r.tries for r in part):.2f}", f"{median(r.seconds for r in part):.1f}")
                lines.append(_line(system, name, (str(len(part)), *cells, *effort)))
    return "\n".join(lines)


def meta_engine_6(rows: Sequence[Row], model: str | None) -> str:
    """What a question takes."""
    lines = [
        "Meta Engine, table 6: effort a question",
        _line("system", "", ("n", "attempts", "calls", "tokens", "median s", "USD")),
    ]
    for system, held in by_system(rows):
        costs = [r.usd for r in held]
        usd = NONE if any(c is None for c in costs) else f"{mean(c for c in costs if c is not None):.5f}"
        numbers = (
            f"{mean(r.attempts for r in held):.2f}",
            f"{mean(r.calls for r in held):.1f}",
            f"{mean(r.tokens for r in held):,.0f}",
        )
        lines.append(_line(system, "", (str(len(held)), *numbers, f"{median(r.seconds for r in held):.1f}", usd)))
    return "\n".join(
        lines if len(lines) > 2 else [*lines, f"  {NONE} {'not run' if model else 'needs a model that plans: --model'}"]
    )


def caesura_1(rows: Sequence[Row]) -> str:
    """Valid plans and right answers by modality and output."""
    groups: list[tuple[str, Callable[[Row], bool]]] = [
        ("single modality", lambda r: len(r.modalities) == 1),
        ("several modalities", lambda r: len(r.modalities) > 1),
        ("output value", lambda r: "value" in r.output),
        ("output table", lambda r: "table" in r.output and "plot" not in r.output),
        ("output plot", lambda r: "plot" in r.output),
        ("all", lambda r: True),
    ]
    lines = ["CAESURA, table 1: plans", _line("system", "questions", ("n", "valid plan", "right"))]
    for system, held in by_system(rows):
        for name, belongs in groups:
            part = [r for r in held if belongs(r)]
            if part:
                cells = (str(len(part)), _share(_mean(r.valid for r in part)), _share(_mean(r.right for r in part)))
                lines.append(_line(system, name, cells))
    return "\n".join(lines if len(lines) > 2 else [*lines, f"  {NONE} not run"])


def caesura_2(rows: Sequence[Row]) -> str:
    """Wrong answers by CAESURA's five kinds of errors."""
    lines = ["CAESURA, table 2: errors", _line("kind", "", [system for system, _ in by_system(rows)])]
    for kind in KINDS:
        lines.append(_line(kind, "", [str(sum(r.error == kind for r in held)) for _, held in by_system(rows)]))
    return "\n".join(lines if rows else [*lines[:1], f"  {NONE} not run"])


def m2ex_1(rows: Sequence[Row]) -> str:
    """Right answers by modality, output and workflow."""
    lines = [
        "M²EX, table 1: right answers by modality × output × workflow",
        _line("system", "questions", ("n", "right")),
    ]
    for system, held in by_system(rows):
        keys = sorted({(" + ".join(r.modalities), r.output, r.workflow or "not said") for r in held})
        for key in keys:
            part = [r for r in held if (" + ".join(r.modalities), r.output, r.workflow or "not said") == key]
            lines.append(_line(system, " | ".join(key), (str(len(part)), _share(_mean(r.right for r in part)))))
    return "\n".join(lines if len(lines) > 2 else [*lines, f"  {NONE} not run"])


def m2ex_2(rows: Sequence[Row]) -> str:
    """Steps, tokens, latency."""
    lines = ["M²EX, table 2: efficiency", _line("system", "", ("n", "steps", "tokens", "mean s", "median s"))]
    for system, held in by_system(rows):
        cells = (f"{mean(r.steps for r in held):.2f}", f"{mean(r.tokens for r in held):,.0f}")
        times = (f"{mean(r.seconds for r in held):.1f}", f"{median(r.seconds for r in held):.1f}")
        lines.append(_line(system, "", (str(len(held)), *cells, *times)))
    return "\n".join(lines if len(lines) > 2 else [*lines, f"  {NONE} not run"])


def m2ex_3(rows: Sequence[Row]) -> str:
    """Plans that had to be written again, plots."""
    lines = [
        "M²EX, table 3: re-planning and plots",
        _line("system", "", ("n", "tries", "re-plans", "chart type", "series")),
    ]
    for system, held in by_system(rows):
        cells = (f"{mean(r.tries for r in held):.2f}", f"{mean(r.replans for r in held):.2f}")
        charts = (_share(_mean(r.chart for r in held)), _share(_mean(r.series for r in held)))
        lines.append(_line(system, "", (str(len(held)), *cells, *charts)))
    return "\n".join(lines if len(lines) > 2 else [*lines, f"  {NONE} not run"])


def _mean(values: Iterable[Cell]) -> Cell:
    held = [value for value in values if value is not None]
    return mean(held) if held else None


def _share(value: Cell) -> str:
    return NONE if value is None else f"{value:.1%}"


def _line(first: str, second: str, cells: Sequence[str]) -> str:
    return f"  {first:<26} {second:<34} " + " ".join(f"{cell:>11}" for cell in cells)


def _reasons(missing: dict[str, list[str]]) -> list[str]:
    return [f"  {NONE} {why}: {', '.join(names)}" for why, names in missing.items()]
