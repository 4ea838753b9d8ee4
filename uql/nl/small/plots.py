"""The picture that a question asks for, drawn from the rows of the plan that won: the kind that it names, else bars."""

from __future__ import annotations

import re
from collections.abc import Sequence

from uql.base.schema import Field
from uql.nl.ask.plan_checks import vega_type
from uql.nl.plan.dag import Node
from uql.nl.plan.read_plan import node_of

_WORDS = {"line": "line", "trend": "line", "pie": "arc", "scatter": "point", "area": "area"}
_MARK = re.compile(rf"\b({'|'.join(_WORDS)})\b", re.IGNORECASE)


def plot_of(question: str, name: str, rows: str, fields: Sequence[Field]) -> Node | None:
    """A plot node over the rows of another node; None where they are not two columns, one of them numbers.

    Args:
        rows: the name of the node that makes the rows.
    """
    columns = [f for f in fields if not f.is_unstructured]
    numbers = [f for f in columns if vega_type(f) == "quantitative"]
    if len(columns) < 2 or not numbers:
        return None
    y = numbers[-1]
    x, *more = [f for f in columns if f is not y]
    match = _MARK.search(question)
    item = {
        "kind": "plot",
        "name": name,
        "input": rows,
        "mark": _WORDS[match[1].lower()] if match is not None else "bar",
        "x": x.name,
        "y": y.name,
        "color": more[0].name if len(more) == 1 else "",
        "title": " ".join(question.split())[:80],
    }
    return node_of(item, 1)
