"""What is known of a relation's rows: the answers to each virtual column, and how often each term of a filter was true."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from uql.compiler.formula import Formula, Masks
from uql.compiler.syntax import Expr
from uql.compiler.virtual import VirtualColumn
from uql.llm.questions import Question
from uql.sampling.base import Flags, Floats, Indices

Rids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowError:
    """One missing answer."""

    row: int  # position among the candidate rows of its query block
    clause: str  # the quoted text
    kind: str
    message: str
    raw: str = ""


class Derived(Protocol):
    """What answers a condition on pairs in the model's place: from one attribute of each row, as pairs are asked for."""

    @property
    def wrong(self) -> float | None:
        """The share of pairs that may be wrong, where random ones were asked outright."""
        ...

    @property
    def rows_asked(self) -> int:
        """The rows from which the pairs are told."""
        ...

    def draw_answers(self, rng: np.random.Generator) -> Masks | None:
        """(pairs,) answers that may as well be: the value of each row drawn by its chances; None where these are not known."""
        ...

    async def answer(self, rids: Rids, ctx: Any) -> None:
        """Fills in these pairs; those that the budget does not reach stay unasked."""
        ...

    def calls(self, rids: Rids | None) -> int:
        """Calls that these pairs (None: all) still take."""
        ...


@dataclass(slots=True)
class PromptParts:
    """What the question of a virtual column holds beside its text, once that is known.

    Attributes:
        labels: of a taxonomy or a label query. None before they are known.
        descriptions: of `labels`.
        nearest: (N, k) of a long list of labels, those shown of each row.
        examples: the user's own that stand in the prompt, as (text, answer).
        meaning: what is meant by the text, in a line; "": it speaks for itself.
    """

    labels: tuple[str, ...] | None = None
    descriptions: tuple[str, ...] = ()
    nearest: Indices | None = None
    examples: tuple[tuple[str, str], ...] = ()
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Moments:
    """The frames of n videos, by which a condition on them was answered.

    Attributes:
        frames: their `Relation`; the column of the video holds the frame there.
        t: (frames,) seconds, NaN for the one frame of a file that cannot be read.
        at: (n,) the frame that decided a video, or the last one asked; −1 where none was.
        left_open: (n,) videos that the budget left between yes and no.
        seconds: (n,) at which it holds; NaN where it was not seen to.
    """

    frames: Any
    t: Floats
    at: Rids
    left_open: Flags
    seconds: Floats


@dataclass(slots=True)
class Origins:
    """Where the answers to a virtual column over N rows come from, and why some are missing.

    Attributes:
        shown_with: the sets of columns whose reads shared a request with this one.
        in_ledger: was the question ever asked before this run? None: not looked up.
        messages: (N,) of TRY, why there is no answer.
        by_model: (N,) of a cascade, 1 where the small model answered, 2 where the large one did, 0 where neither was asked.
        by_people: (N,) rows that a person answered in the model's place.
        held_errors: of a column that rides along, failures by row, reported where the row passes.
        moments: of a condition on videos, the frames that were asked.
    """

    n: int
    shown_with: list[tuple[VirtualColumn, ...]] = field(default_factory=list)
    in_ledger: bool | None = None
    messages: NDArray[np.object_] | None = None
    by_model: NDArray[np.int8] | None = None
    by_people: Flags | None = None
    held_errors: dict[int, RowError] = field(default_factory=dict)
    moments: Moments | None = None

    def note(self, rid: int, message: str) -> None:
        """Keeps why TRY has no answer for a row."""
        if self.messages is None:
            self.messages = np.full(self.n, None, dtype=object)
        self.messages[rid] = message

    def mark_people(self, rids: Rids) -> None:
        """These rows were answered by a person."""
        if self.by_people is None:
            self.by_people = np.zeros(self.n, dtype=bool)
        self.by_people[rids] = True

    def mark_model(self, rids: Rids, by_model: NDArray[np.int8]) -> None:
        """Keeps which model of a cascade answered these rows."""
        if self.by_model is None:
            self.by_model = np.zeros(self.n, dtype=np.int8)
        self.by_model[rids] = by_model


@dataclass(slots=True)
class ColumnAnswers:
    """The answers to one virtual column over a relation of N rows.

    Attributes:
        values: (N,) the answers, None where there is none.
        asked_mask: (N,) was the row asked, or recalled from the ledger?
        failed: (N,) was it asked without a readable answer?
        probabilities: (N,) the model's probability, NaN where it gives none.
        derived: what answers a condition on pairs from their rows.
    """

    column: VirtualColumn
    values: NDArray[np.object_]
    asked_mask: Flags
    failed: Flags
    probabilities: NDArray[np.float32]
    origin: Origins
    prompt: PromptParts = field(default_factory=PromptParts)
    derived: Derived | None = None

    @property
    def doubtful(self) -> bool:
        """Are answers derived from the rows of pairs, or a small model's in the place of a large one's?"""
        return self.derived is not None or len(self.by_small) > 0

    @property
    def by_small(self) -> Rids:
        """The rows that the small model of a cascade answered."""
        by_model = self.origin.by_model
        return np.flatnonzero(by_model == 1) if by_model is not None else np.empty(0, dtype=np.int64)

    @classmethod
    def of(cls, column: VirtualColumn, n: int) -> ColumnAnswers:
        """No answer to any of n rows."""
        values, asked_mask, failed = np.full(n, None, dtype=object), np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        return cls(column, values, asked_mask, failed, np.full(n, np.nan, dtype=np.float32), Origins(n))


@dataclass(slots=True)
class FilterState:
    """What was learned of one formula over a relation.

    Attributes:
        profile: (leaves, m) answers of the rows asked, OPEN where not asked.
        order: the answers when it was made, and the order of the formula's stages.
    """

    profile: Masks | None = None
    order: tuple[int, tuple[int, ...]] = (0, ())


@dataclass(slots=True)
class Filters:
    """The formulas and terms of a relation's filters.

    Attributes:
        states: by formula.
        terms: by term, its answers and how many of them are true.
        stops: the filter stops at the k-th row that passes, so how many rows will be asked is not known.
        looked_up: (N,) by questions and rows a request, the calls made before a row was last looked up in the ledger; -1: it was not.
    """

    states: dict[Formula, FilterState] = field(default_factory=dict)
    terms: dict[Expr, tuple[int, int]] = field(default_factory=dict)
    stops: bool = False
    looked_up: dict[tuple[tuple[Question, ...], int], Indices] = field(default_factory=dict)

    def of(self, formula: Formula) -> FilterState:
        """The state of a formula, empty at first."""
        return self.states.setdefault(formula, FilterState())
