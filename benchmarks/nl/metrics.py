"""Metrics of the papers: most of words are `uql.nl.ask.answer_metrics`; here those of lists, numbers with a scale, charts, plans, errors.

Sources: TAT-QA (numeracy-focused F1, the scale is part of the answer), FinMMR (a number within 0.2 %), nvBench (chart type and series),
CAESURA (five kinds of errors), M²EX and Meta Engine (a valid plan).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uql.base.errors import UQLError
from uql.compiler.parser import parse
from uql.compiler.syntax import Node as Tree, Quoted
from uql.compiler.walk import children
from uql.nl.ask.answer_metrics import token_f1, tokens
from uql.nl.guard.guard import tables_of
from uql.nl.plan.dag import NodeKind, Plan

if TYPE_CHECKING:
    from uql.nl.ask.answer import Answer
    from uql.show.plots import Plot

SCALES = {"": 1.0, "percent": 0.01, "thousand": 1e3, "million": 1e6, "billion": 1e9}
TOLERANCE = 0.002  # relative, of FinMMR and of rounding in reports
KINDS = ("data misunderstanding", "impossible action", "illogical or missing step", "wrong tool", "wrong arguments")
_NUMBER = re.compile(r"\(?-?\$?\s?\d[\d,]*(?:\.\d+)?\)?%?")
_CHARTS = {
    "bar": "bar",
    "arc": "pie",
    "line": "line",
    "trail": "line",
    "point": "scatter",
    "circle": "scatter",
    "square": "scatter",
    "area": "area",
}


def exact(answer: str, reference: str) -> float:
    """1 where the words are the same, in the same order.

    >>> exact("The 12 games.", "12.0 games")
    1.0
    """
    return float(tokens(answer) == tokens(reference))


def list_f1(answers: Sequence[str], reference: Sequence[str]) -> float:
    """F1 of two lists as multisets of items, each compared word for word.

    >>> list_f1(["Rome", "the Hague"], ["Hague", "Paris"])
    0.5
    """
    answer_items, reference_items = (
        Counter(" ".join(tokens(item)) for item in items) for items in (answers, reference)
    )
    if not answer_items and not reference_items:
        return 1.0
    return 2 * sum((answer_items & reference_items).values()) / (answer_items.total() + reference_items.total())


# ------------------------------------------------------------------------------------------------------ numbers with scale
def number(text: str) -> float | None:
    """The one number of a text, in units: accountants' brackets are a minus, % and words of scale count.

    >>> number("$ (1,452.4) million"), number("12 %"), number("between 1 and 2")
    (-1452400000.0, 0.12, None)
    """
    value = figure(text)
    if value is None:
        return None
    words = set(tokens(text))
    scale = next((factor for word, factor in SCALES.items() if word and word in words), 1.0)
    return value * (0.01 if "%" in text or "percent" in words else scale if scale != 0.01 else 1.0)


def figure(text: str) -> float | None:
    """The one number of a text as it is written, without its scale.

    >>> figure("$ (1,452.4) million"), figure("12 %"), figure("between 1 and 2")
    (-1452.4, 12.0, None)
    """
    found = [match for match in _NUMBER.findall(text) if any(c.isdigit() for c in match)]
    if len(found) != 1:
        return None
    raw = found[0]
    value = float(re.sub(r"[^\d.]", "", raw))
    return -value if "-" in raw or (raw.startswith("(") and raw.rstrip("%").endswith(")")) else value


def finmmr(said: str, answer: float) -> float:
    """Whether the one number said is the answer. The question states its unit, so percent signs and words of scale do not count.

    >>> finmmr("24.57 %", 24.566), finmmr("0.2457", 24.566)
    (1.0, 0.0)
    """
    value = figure(said)
    return float(value is not None and close(value, answer))


def close(said: float, reference: float) -> bool:
    """Within 0.2 %.

    >>> close(100.1, 100.0), close(101.0, 100.0)
    (True, False)
    """
    return abs(said - reference) <= TOLERANCE * max(abs(reference), 1e-12)


def tatqa(said: str, answer: Sequence[str] | str | float, scale: str) -> tuple[float, float]:
    """Exact match and numeracy-focused F1: numbers count whole and with their scale, spans by their words, lists as sets.

    >>> tatqa("1,496.5 million", ["$1,496.5"], "million"), tatqa("1,496.5", ["$1,496.5"], "million")
    ((1.0, 1.0), (0.0, 0.0))
    """
    wanted = [str(answer)] if isinstance(answer, str | int | float) else [str(item) for item in answer]
    if len(wanted) == 1:
        reference = number(f"{wanted[0]} {scale}")
        if reference is not None:
            found = number(said)
            right = float(found is not None and close(found, reference))
            return right, right
        return exact(said, wanted[0]), token_f1(said, wanted[0])
    parts = [part.strip() for part in re.split(r"[;\n]|, (?=\D)", said) if part.strip()]
    score = list_f1(parts, wanted)
    return float(score == 1.0), score


# ---------------------------------------------------------------------------------------------------------------- charts
def chart_type(spec: Mapping[str, Any]) -> str:
    """bar, pie, line, scatter, area, with "stacked" or "grouping" before where a colour splits them; "" where there is no mark."""
    mark = spec.get("mark")
    kind = _CHARTS.get(str(mark.get("type") if isinstance(mark, Mapping) else mark), "")
    split = "color" in spec.get("encoding", {}) and kind in ("bar", "line", "scatter")
    return f"{'stacked' if kind == 'bar' else 'grouping'} {kind}" if split else kind


def series_of(plot: Plot) -> list[tuple[str, ...]]:
    """The points that a plot shows: x, y, and the colour where there is one; y counted where the plot counts."""
    encoding: Mapping[str, Any] = plot.spec.get("encoding", {})
    table = next(iter(plot.tables.values())).to_pylist()
    axes = [encoding.get(name, {}) for name in ("x", "y") if name in encoding] or [
        encoding.get("color", encoding.get("theta", {})),
        encoding.get("theta", {}),
    ]
    if "color" in encoding and "theta" not in encoding:
        axes.append(encoding["color"])
    counted = [axis for axis in axes if axis.get("aggregate") == "count"]
    plain = [str(axis.get("field")) for axis in axes if axis.get("field") and axis not in counted]
    if not counted:
        return sorted(tuple(_point(row.get(name)) for name in plain) for row in table)
    counts: dict[tuple[str, ...], int] = {}
    for row in table:
        key = tuple(_point(row.get(name)) for name in plain)
        counts[key] = counts.get(key, 0) + 1
    return sorted((*key, _point(n)) for key, n in counts.items())


def chart(plots: Sequence[Plot], reference: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether a plot has the reference's type, and whether that plot shows its series: {"chart", "series": [[x, y(, class)]]}."""
    wanted = str(reference["chart"]).lower()
    points = sorted(tuple(_point(value) for value in point) for point in reference["series"])
    same_type = [plot for plot in plots if chart_type(plot.spec) == wanted]
    return bool(same_type), any(series_of(plot) == points for plot in same_type or plots)


def _point(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value)
    try:
        return f"{float(value):.6g}"
    except (TypeError, ValueError):
        return str(value).strip()


# ----------------------------------------------------------------------------------------------------------------- plans
def reads(plan: Plan, tables: Collection[str]) -> set[str]:
    """The tables of the database that a plan's statements and adapters read, in lower case."""
    found: set[str] = set()
    for node in plan.nodes:
        if node.kind in (NodeKind.UQL, NodeKind.SQL):
            try:
                found |= {name.lower() for name in tables_of(node.body, list(tables))}
            except UQLError:
                continue
        found |= {name.lower() for name in node.sources}
    return found & {name.lower() for name in tables}


def asks(plan: Plan) -> bool:
    """Does a node of the plan have a text or image read?"""
    for node in plan.nodes:
        if node.kind is NodeKind.ADAPTER:
            return True
        if node.kind is not NodeKind.UQL:
            continue
        try:
            stack: list[Tree] = [parse(node.body)]
        except UQLError:
            continue
        while stack:
            tree = stack.pop()
            if isinstance(tree, Quoted) and (tree.forced or " " in tree.text):
                return True
            stack += children(tree, queries=True)
    return False


def valid(answer: Answer, tables: Collection[str], needed: Collection[str]) -> bool:
    """A valid plan: it parsed, bound and typed (else there is none), ends in an answer, reads every table that the reference reads."""
    plan = answer.plan.plan
    if plan is None or not answer.tries:
        return False
    ends = any(node.kind is NodeKind.ANSWER for node in plan.nodes)
    return ends and {name.lower() for name in needed} <= reads(plan, tables)


def error_kind(
    answer: Answer, modalities: Collection[str], wants_plot: bool, tables: Collection[str], needed: Collection[str]
) -> str:
    """The kind of CAESURA under which a wrong answer is filed, from what went wrong, else from what the plan lacks.

    A name that the database does not have, or a table left out: data misunderstanding. What no tool can do, or the guard refuses:
    impossible action. A text or image that nobody reads, a plot that is not drawn: wrong tool. A statement or specification that fails:
    wrong arguments. All else: illogical or missing step.
    """
    said = " ".join([answer.cannot, *(step.problem for step in answer.steps)]).lower()
    plan = answer.plan.plan
    if (
        "no column" in said
        or "no table" in said
        or "did you mean" in said
        or ("field" in said and "does not have" in said)
    ):
        return KINDS[0]
    if "is refused" in said or "was stopped" in said or "cannot be imported" in said:
        return KINDS[1]
    if plan is not None:
        kinds = {node.kind for node in plan.nodes}
        if set(modalities) & {"text", "image"} and not asks(plan) and NodeKind.ADAPTER not in kinds:
            return KINDS[3]
        if wants_plot and NodeKind.PLOT not in kinds:
            return KINDS[3]
        if not {name.lower() for name in needed} <= reads(plan, tables):
            return KINDS[0]
    if any(step.state == "failed" for step in answer.steps):
        return KINDS[4]
    return KINDS[2]
