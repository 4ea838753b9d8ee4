"""The one vocabulary of questions that kernels put to a model, and the answers they get.

Kernels never write to a provider: they put questions about rows to `ctx.ask`. Several questions about the same row travel in
one request. A provider maps a request to the best thing it has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of one row, as shown to the model: text, or the bytes of an image or a sound with their media type."""

    name: str
    value: str | bytes | None
    table: str = ""  # alias of the table: tells the two sides of a pair apart
    media_type: str = ""  # "image/png", "audio/wav", … where the value is bytes


@dataclass(frozen=True, slots=True)
class Row:
    """What a question is about: the cells shown, and the values of structured columns that stand in holes of the question."""

    cells: tuple[Cell, ...] = ()
    holes: tuple[tuple[str, str], ...] = ()  # ("city" or "t.city", its value)

    @property
    def is_null(self) -> bool:
        """Every cell and hole is NULL, or all cells of one side of a pair: the answer is NULL and nobody is asked."""
        if not self.cells:
            return not self.holes
        said: dict[str, bool] = {}
        for cell in self.cells:
            said[cell.table] = said.get(cell.table, False) or cell.value is not None
        return not all(said.values())


@dataclass(frozen=True, slots=True)
class Question:
    """Base of the six questions. `text` may have holes {x}, filled from `Row.holes`, or naming a cell of the row."""

    text: str
    examples: tuple[tuple[str, str], ...] = field(
        default=(), kw_only=True, repr=False
    )  # a row's text and its answer, that a person gave and wants shown


@dataclass(frozen=True, slots=True)
class Predicate(Question):
    """Is it so? Answered by a bool and its probability."""


@dataclass(frozen=True, slots=True)
class Choice(Question):
    """Which of the labels? Answered by a label, or None for "none of these"… which is the label `NONE` in `labels`' place."""

    labels: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    none_of_these: bool = True
    many: bool = False  # answered by a list of labels


@dataclass(frozen=True, slots=True)
class Score(Question):
    """How much, on levels 0 … levels − 1? Answered by the expected level."""

    levels: int = 10


@dataclass(frozen=True, slots=True)
class Extract(Question):
    """A value of a DuckDB type, or None where the row does not say. `type` is VARCHAR, DOUBLE, BIGINT, DATE, STRUCT(…), VARCHAR[] …"""

    type: str = "VARCHAR"


@dataclass(frozen=True, slots=True)
class Compare(Question):
    """Of two rows a and b (cells told apart by `Cell.table`), which has more of it? Answered by "a" or "b"."""


@dataclass(frozen=True, slots=True)
class Write(Question):
    """A text or JSON about many rows at once: a taxonomy, example rows, a summary, a plan.

    `task` names the prompt; `schema` is a JSON schema for the reply (None: plain text); `shown` are the rows it is about.
    Answered by a str, or by the parsed JSON value.
    """

    task: str = "write"  # taxonomy, examples, summary, attribute, plan …
    schema: str | None = None  # JSON text, so that the question is hashable
    shown: tuple[Row, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()  # what else the prompt of the task needs
    max_tokens: int = 512


NONE = "none of these"  # the label of a Choice that says no label fits


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one row has no answer."""

    index: int  # position among the rows asked
    kind: str  # timeout, rate_limit, server, connection, truncated, wrong_type, refusal, empty, too_long, content_filter, budget
    message: str
    raw: str = ""  # the reply as it came, shortened


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to one question for n rows, in their order. A value is None where the row is NULL, does not say, or failed."""

    values: list[Any]  # bool, label, float, typed value, list of labels
    probabilities: NDArray[
        np.float64
    ]  # (n,) P(yes) of a Predicate, else probability of the value where known, NaN elsewhere
    failures: tuple[Failure, ...] = ()
    distributions: NDArray[np.float64] | None = field(default=None)  # (n, labels[+ none]) of a Choice where known
    by_people: frozenset[int] = frozenset()  # rows that a person answered in the model's place

    @property
    def failed(self) -> set[int]:
        return {failure.index for failure in self.failures}
