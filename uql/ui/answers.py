"""The answer to a question as the page shows it: words, the plan as a graph, each step, the UQL to edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uql.nl.ask.answer import Answer
    from uql.nl.ask.outputs import Step

LONGEST = 4_000  # characters of one step


def answer_view(answer: Answer) -> dict[str, Any]:
    """Plain values for the page: `text`, `nodes` of the graph, `steps`, `uql`, `plots` as SVG, `notes`."""
    plan = answer.plan.plan
    nodes = [
        {"name": n.name, "kind": n.kind.value, "inputs": list(n.inputs), "status": answer.plan.states.get(n.name, "")}
        for n in (plan.nodes if plan is not None else ())
    ]
    notes = [*answer.notes, *([f"partial: {answer.partial}"] if answer.partial else [])]
    notes += [f"it may also mean: {reading}" for reading in answer.readings[1:]]
    if answer.unsupported:
        notes.append(f"not found in the results: {', '.join(answer.unsupported)}")
    notes += answer.warnings
    return {
        "text": answer.text if answer.answered else f"It cannot be answered: {answer.cannot}",
        "nodes": nodes,
        "steps": [{"title": _title(step), "text": _step_text(step)} for step in answer.steps],
        "uql": answer.uql,
        "plots": [{"light": plot.svg(), "dark": plot.svg(dark=True)} for plot in answer.plots],
        "notes": notes,
    }


def _title(step: Step) -> str:
    parts = [step.node, step.adapter or step.kind, step.state]
    parts += [f"{step.rows:,} rows"] if step.rows is not None else []
    return ", ".join([*parts, f"{step.cost.calls:,} calls", f"{step.seconds:.1f} s"])


def _step_text(step: Step) -> str:
    return "\n\n".join(part for part in (step.description, step.body, step.problem) if part)[:LONGEST]
