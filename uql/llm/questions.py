"""The questions of the operators (`uql.operators`) that kernels put to a model, and the answers they get.

Kernels never write to a provider: they put questions about rows to `ctx.ask`. Several questions about the same row travel in
one request. A provider maps a request to the best thing it has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uql.operators.compare import Compare as Compare
from uql.operators.condition import Predicate as Predicate
from uql.operators.duplicate import Duplicate as Duplicate
from uql.operators.label import Choice as Choice
from uql.operators.record import Cell as Cell, Question as Question, Row as Row
from uql.operators.replies import NONE as NONE
from uql.operators.score import Score as Score
from uql.operators.summary import Summary as Summary
from uql.operators.value import Extract as Extract
from uql.operators.write import Write as Write


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one row has no answer."""

    index: int  # position among the rows asked
    kind: str  # timeout, rate_limit, server, connection, truncated, wrong_type, refusal, empty, too_long, content_filter, budget
    message: str
    raw: str = ""  # the reply as it came, shortened

    @property
    def of_value(self) -> bool:
        """Is it a reply that could be read, whose value is of another type?"""
        return self.kind == "wrong_type" and bool(self.raw)


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to one question for n rows, in their order. A value is None where the row is NULL, does not say, or failed."""

    values: list[Any]  # bool, label, float, typed value, list of labels
    # (n,) P(yes) of a Predicate, else probability of the value where known, NaN elsewhere
    probabilities: NDArray[np.float64]
    failures: tuple[Failure, ...] = ()
    distributions: NDArray[np.float64] | None = field(default=None)  # (n, labels[+ none]) of a Choice where known
    by_people: frozenset[int] = frozenset()  # rows that a person answered in the model's place

    @property
    def failed(self) -> set[int]:
        return {failure.index for failure in self.failures}
