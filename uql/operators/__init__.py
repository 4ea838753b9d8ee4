"""The operators: one file each. Everything else reads their records."""

from __future__ import annotations

from uql.operators.compare import COMPARE as COMPARE
from uql.operators.condition import CONDITION as CONDITION
from uql.operators.duplicate import DUPLICATE as DUPLICATE
from uql.operators.group import GROUP as GROUP
from uql.operators.label import LABEL as LABEL
from uql.operators.record import Operator as Operator, Place as Place
from uql.operators.score import SCORE as SCORE
from uql.operators.summary import SUMMARY as SUMMARY
from uql.operators.value import VALUE as VALUE
from uql.operators.write import WRITE as WRITE

OPERATORS: tuple[Operator, ...] = (CONDITION, VALUE, LABEL, GROUP, SCORE, COMPARE, DUPLICATE, SUMMARY, WRITE)
AT: dict[Place, Operator] = {place: operator for operator in OPERATORS for place in operator.places}
