"""What EXPLAIN, EXPLAIN ANALYZE and EXPLAIN SAMPLE print: text, JSON and Mermaid of one explanation."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from uql.compiler.choice import Alternative
from uql.compiler.cost import Quote, Range, Tokens, Unit
from uql.compiler.explain import Asked, Explained, Step, q_error, text, with_measured

if TYPE_CHECKING:
    from uql.llm.run_record import Cost


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run cost, beside what was predicted."""

    cost: Cost
    rows: int
    notes: tuple[str, ...] = ()
    asked: Asked = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sampled:
    """What EXPLAIN SAMPLE paid for and saw."""

    rows: int
    passed: int
    low: float  # share of rows that pass, at `confidence`
    high: float
    confidence: float
    calls: int
    cached: int
    search: bool = False  # the first rows of a search under LIMIT, not random ones


def written(
    explanation: Explained, format: str, measured: Measured | None = None, sampled: Sampled | None = None
) -> str:
    """An explanation in one of the formats text, json and mermaid.

    Args:
        format: text, json or mermaid.
        measured: of a run, for EXPLAIN ANALYZE.
        sampled: of a few rows, for EXPLAIN SAMPLE.
    """
    if measured is not None:
        quote = explanation.quote
        within = min(1.0, quote.calls.expected / quote.every.expected) if quote.every.expected else 1.0
        explanation = replace(explanation, step=with_measured(explanation.step, measured.asked, within))
    if format == "json":
        return json.dumps(as_json(explanation, measured, sampled), ensure_ascii=False, indent=2)
    if format == "mermaid":
        return mermaid(explanation, measured, sampled)
    parts = [text(explanation)]
    if sampled is not None:
        parts += ["", *_sampled_lines(sampled)]
    if measured is not None:
        parts += ["", *_measured_lines(explanation.quote, measured)]
    return "\n".join(parts)


def _sampled_lines(sampled: Sampled) -> list[str]:
    if sampled.search:
        outcome = f"the first {sampled.rows:,} rows of the search were asked, {sampled.passed:,} pass"
    else:
        between = f"{sampled.low:.1%}–{sampled.high:.1%} at {sampled.confidence:.0%}"
        outcome = f"{sampled.rows:,} random rows were asked, {sampled.passed:,} pass ({between})"
    return [
        f"Sample: {outcome}; {sampled.calls:,} calls, {sampled.cached:,} rows from the ledger; the answers are kept, "
        "and the price counts them"
    ]


def _compared(quote: Quote, measured: Measured) -> list[tuple[str, Range, float]]:
    return [
        ("calls", quote.calls, measured.cost.calls),
        ("input tokens", quote.input_tokens, measured.cost.input_tokens),
        ("output tokens", quote.output_tokens, measured.cost.output_tokens),
    ]


def _measured_lines(quote: Quote, measured: Measured) -> list[str]:
    cost = measured.cost
    lines = ["Measured beside predicted (q-error: how many times too high or too low):"]
    if cost.usd is None or quote.usd is None:
        lines.append("  USD: unknown" if cost.usd is None else f"  USD: {cost.usd:,.4f}")
    else:
        lines.append(f"  USD: {cost.usd:,.4f}; predicted {quote.usd.expected:,.4f}")
    for name, predicted, real in _compared(quote, measured):
        cached = f", and {cost.cached:,} rows from the ledger" if name == "calls" and cost.cached else ""
        error = f"q-error {q_error(predicted.expected, real):.2f}"
        lines.append(f"  {name}: {real:,.0f}{cached}; predicted {predicted.expected:,.0f}; {error}")
    lines.append(f"  seconds: {cost.seconds:.1f}; rows: {measured.rows:,}")
    return lines + [f"Note: {note}" for note in measured.notes]


# ----------------------------------------------------------------------------------------------------------------- JSON
def as_json(explanation: Explained, measured: Measured | None = None, sampled: Sampled | None = None) -> dict[str, Any]:
    """An explanation as plain values, for programs.

    Args:
        measured: of a run, for EXPLAIN ANALYZE.
        sampled: of a few rows, for EXPLAIN SAMPLE.
    """
    quote = explanation.quote
    result: dict[str, Any] = {
        "plan": _step(explanation.step, explanation.unit),
        "readings": list(explanation.readings),
        "price": {
            "calls": _range(quote.calls),
            **({"requests": _range(quote.requests)} if quote.shared.high else {}),
            "calls_for_every_row": _range(quote.every),
            "input_tokens": _range(quote.input_tokens),
            "output_tokens": _range(quote.output_tokens),
            "usd": _range(quote.usd) if quote.usd is not None else None,
            "seconds": _range(quote.seconds) if quote.seconds is not None else None,
        },
        **({"answered_from": explanation.answered_from} if explanation.answered_from else {}),
        "budget_calls": explanation.budget,
        "warnings": list(explanation.warnings),
        "alternatives": [_alternative(a) for a in explanation.alternatives],
    }
    if sampled is not None:
        result["sample"] = asdict(sampled)
    if measured is not None:
        known = ("calls", "cached", "input_tokens", "output_tokens", "usd", "seconds")
        result["measured"] = {name: getattr(measured.cost, name) for name in known} | {
            "rows": measured.rows,
            "notes": measured.notes,
            "asked": [
                {"text": text, "source": source, "calls": calls} for (text, source), calls in measured.asked.items()
            ],
        }
        result["q_error"] = {
            name.replace(" ", "_"): round(q_error(predicted.expected, real), 4)
            for name, predicted, real in _compared(quote, measured)
        }
    return result


def _alternative(alternative: Alternative) -> dict[str, Any]:
    quote = alternative.quote
    return {
        "what": alternative.what,
        "chosen": alternative.chosen,
        "why": alternative.why,
        "calls": _range(quote.calls),
        "input_tokens": _range(quote.input_tokens),
        "output_tokens": _range(quote.output_tokens),
        "usd": _range(quote.usd) if quote.usd is not None else None,
    }


def _step(step: Step, unit: Unit | None) -> dict[str, Any]:
    return {
        "operator": step.operator,
        "what": step.what,
        "notes": list(step.notes),
        "reads": list(step.reads),
        "line": step.line,
        "kernel": step.kernel,
        "schema": [{"name": name, "type": type} for name, type in step.schema],
        "rows": _range(step.rows) if step.rows is not None else None,
        "calls": _range(step.calls) if step.calls is not None else None,
        **(_tokens(step.tokens, unit) if step.tokens is not None else {}),
        **(
            {"measured": step.measured, "q_error": round(q_error(step.predicted, step.measured), 4)}
            if step.measured is not None and step.calls is not None
            else {}
        ),
        "inputs": [_step(below, unit) for below in step.inputs],
    }


def _tokens(tokens: Tokens, unit: Unit | None) -> dict[str, Any]:
    into, out = tokens
    usd = _range(into.times(unit.input) + out.times(unit.output)) if unit is not None else None
    return {"input_tokens": _range(into), "output_tokens": _range(out), "usd": usd}


def _range(r: Range) -> dict[str, float]:
    return {"low": round(r.low, 6), "expected": round(r.expected, 6), "high": round(r.high, 6)}


# -------------------------------------------------------------------------------------------------------------- Mermaid
def mermaid(explanation: Explained, measured: Measured | None = None, sampled: Sampled | None = None) -> str:
    """An explanation as a Mermaid flow chart, rows flowing down.

    Args:
        measured: of a run, for EXPLAIN ANALYZE.
        sampled: of a few rows, for EXPLAIN SAMPLE.
    """
    lines = ["flowchart TD"]
    edges: list[str] = []
    count = 0

    def add(step: Step) -> str:
        nonlocal count
        name = f"n{count}"
        count += 1
        lines.append(f'  {name}["{_escaped(step.line)}"]')
        edges.extend(f"  {add(below)} --> {name}" for below in step.inputs)
        return name

    add(explanation.step)
    comment = f"{explanation.quote.calls.expected:,.0f} calls predicted"
    if sampled is not None:
        comment += f", {sampled.passed:,} of {sampled.rows:,} {'first' if sampled.search else 'sampled'} rows pass"
    if measured is not None:
        comment += f", {measured.cost.calls:,} made"
    return "\n".join([*lines, *edges, f"  %% {comment}"])


def _escaped(text: str) -> str:
    """Text for a quoted Mermaid label; quotes, marks of HTML and line ends are written as entities."""
    marks = {"&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "\n": " ", "#": "#35;"}
    return "".join(marks.get(c, c) for c in text)
