"""The virtual column: a quoted text after the binder has settled what it reads and what it gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from uql.compiler.syntax import NO_SPAN, Column, Query, Span
from uql.errors import BindError


class Kind(StrEnum):
    """What is asked of the model; one kernel answers each."""

    CONDITION = "condition"  # sem_filter: is it so?
    EXTRACT = "extract"  # sem_map: a value of a type
    CHOICE = "choice"  # sem_classify: one of the labels, or none of these
    GROUP = "group"  # sem_group: a taxonomy first, then one of its labels
    SCORE = "score"  # sem_order: how much?
    SUMMARY = "summary"  # sem_agg: said of a whole group


@dataclass(frozen=True, slots=True)
class VirtualColumn:
    """One quoted text of a query. Same text, same reads, same kind and type: the same virtual column, computed once."""

    id: int  # unique in its query block, in order of appearance
    text: str  # as written, with its holes
    kind: Kind
    type: str  # DuckDB type of the value: BOOLEAN, VARCHAR, DOUBLE, DATE, DECIMAL(10,2), STRUCT(…), VARCHAR[] …
    reads: tuple[Column, ...]  # shown to the model as the row, never empty unless every read is in `holes`
    holes: tuple[Column, ...] = ()  # structured columns named in {…}: their values become part of the question
    labels: tuple[str, ...] = ()  # of a CHOICE
    label_query: Query | None = None  # of a CHOICE whose labels come from IN (SELECT …)
    none_of_these: bool = True  # of a CHOICE: may the answer be none of the labels?
    closed: bool = False  # of a CHOICE: the labels are those of an ENUM, in their order
    into: int | None = None  # of a GROUP
    many: bool = False  # of a GROUP
    attempt: bool = False  # TRY "…": gives STRUCT(value, error)
    span: Span = field(default=NO_SPAN, compare=False)

    @property
    def is_pair_condition(self) -> bool:
        """Is it a condition on the rows of exactly two tables?"""
        return self.kind is Kind.CONDITION and len({c.table for c in (*self.reads, *self.holes)}) == 2

    @property
    def name(self) -> str:
        """The internal column that holds its values."""
        return f"__v{self.id}"


@dataclass(frozen=True, slots=True)
class SemText:
    """`uql.sem("…")`: a text for the model as a parameter's value; it stands as `PROMPT "text"` where `$name` stands.

    `type` casts it: "INTEGER", "ENUM('a','b')". So no query is ever made by string formatting.
    """

    text: str
    type: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise BindError(f"uql.sem needs a text, not {self.text!r}", help='write uql.sem("the customer is angry")')
