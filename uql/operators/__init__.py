"""The operators: one file each. Everything else reads their records."""

from __future__ import annotations

from uql.operators.compare import COMPARE
from uql.operators.condition import CONDITION
from uql.operators.duplicate import DUPLICATE
from uql.operators.group import GROUP
from uql.operators.label import LABEL
from uql.operators.record import Operator, Place
from uql.operators.score import SCORE
from uql.operators.summary import SUMMARY
from uql.operators.value import VALUE
from uql.operators.write import WRITE

__all__ = [
    "AT",
    "COMPARE",
    "CONDITION",
    "DUPLICATE",
    "GROUP",
    "LABEL",
    "OPERATORS",
    "SCORE",
    "SUMMARY",
    "VALUE",
    "WRITE",
    "Operator",
    "Place",
]

OPERATORS: tuple[Operator, ...] = (CONDITION, VALUE, LABEL, GROUP, SCORE, COMPARE, DUPLICATE, SUMMARY, WRITE)
AT: dict[Place, Operator] = {place: operator for operator in OPERATORS for place in operator.places}
