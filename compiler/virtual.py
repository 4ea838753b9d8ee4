"""The virtual column: a quoted text after the binder has settled what it reads and what it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from uql.base.errors import BindError
from uql.compiler.syntax import NO_SPAN, Column, Expr, Query, Span
from uql.operators.record import Operator, Subject
from uql.operators.replies import Level, OneOf, Value, YesNo
from uql.operators.rows import renamed_holes


@dataclass(frozen=True, slots=True)
class VirtualColumn:
    """One quoted text of a query. Same text, same reads, same operator and type: the same virtual column, computed once."""

    id: int  # unique in its query block, in order of appearance
    text: str  # as written, with its holes
    operator: Operator  # what is asked of the model
    type: str  # DuckDB type of the value: BOOLEAN, VARCHAR, DOUBLE, DATE, DECIMAL(10,2), STRUCT(…), VARCHAR[] …
    reads: tuple[Column, ...]  # shown to the model as the row, never empty unless every read is in `holes`
    holes: tuple[Column, ...] = ()  # structured columns named in {…}: their values become part of the question
    named: tuple[Column, ...] = ()  # by the {…} of the text, in order
    labels: tuple[str, ...] = ()
    label_query: Query | None = None  # whose values are the labels, from IN (SELECT …)
    none_of_these: bool = True  # may the answer be none of the labels?
    closed: bool = False  # the labels are those of an ENUM, in their order
    into: int | None = None  # groups that the model names
    many: bool = False  # may a row be in several groups?
    attempt: bool = False  # TRY "…": gives STRUCT(value, error)
    lenient: bool = False  # TRY_CAST: an answer of another type is NULL, not a failure
    moment: bool = False  # not the answer to a condition on a video, but the second at which it was seen to hold
    span: Span = field(default=NO_SPAN, compare=False)

    @property
    def inputs(self) -> tuple[Column, ...]:
        """All columns whose values go with a request: those read, and those in holes, each once."""
        return tuple(dict.fromkeys((*self.reads, *self.holes)))

    @property
    def shown(self) -> tuple[tuple[Column, ...], tuple[Column, ...]]:
        """Of what a row is made for its question: the same for all questions of one request."""
        return self.reads, self.holes

    def moved(self, at: Callable[[Column], Column]) -> VirtualColumn:
        """The same of other columns."""
        reads, holes, named = (tuple(map(at, columns)) for columns in (self.reads, self.holes, self.named))
        return replace(self, reads=reads, holes=holes, named=named)

    @property
    def asked_text(self) -> str:
        """The text with the names in {…} as a row has them: a column may be written in another way, and moved by a rule."""
        names, one_table = iter(self.named), len({c.table for c in (*self.reads, *self.holes)}) == 1

        def name(written: str) -> str:
            column = next(names)
            table, _, last = ("", "", written) if written == column.name else written.rpartition(".")
            plain = all(c == column for c in self.named if c.name == column.name)
            alone = column in self.reads and one_table  # a cell shows no table there: any table's name does
            same = last == column.name and ((plain and not table) or alone or table == column.table)
            return written if same else column.label

        return renamed_holes(self.text, name) if self.named else self.text

    @property
    def is_condition(self) -> bool:
        """Is a row's answer true or false?"""
        return isinstance(self.operator.reply, YesNo) and not self.of_pairs

    @property
    def is_value(self) -> bool:
        """Is it a value of a type, in the row's own words?"""
        return isinstance(self.operator.reply, Value)

    @property
    def is_label(self) -> bool:
        """Is it one of labels that the query gives?"""
        return isinstance(self.operator.reply, OneOf) and not self.operator.names_labels

    @property
    def is_score(self) -> bool:
        """Is it a level by which rows are ordered?"""
        return isinstance(self.operator.reply, Level)

    @property
    def names_groups(self) -> bool:
        """Is it one of labels that the model names first?"""
        return self.operator.names_labels

    @property
    def of_group(self) -> bool:
        """Is it asked of the rows of a group together, after the groups are made?"""
        return self.operator.subject is Subject.ROWS

    @property
    def by_row(self) -> bool:
        """Is a row's answer its own, whatever the other rows are?"""
        return not self.names_groups and not self.of_group and not self.of_pairs

    @property
    def of_pairs(self) -> bool:
        """Is it asked of pairs of rows, and a row's value a number that it shares with the rows it belongs to?"""
        return self.operator.subject is Subject.PAIR

    @property
    def is_pair_condition(self) -> bool:
        """Is it a condition on the rows of exactly two tables?"""
        return self.is_condition and len({c.table for c in self.inputs}) == 2

    @property
    def name(self) -> str:
        """The internal column that holds its values."""
        return f"__v{self.id}_t" if self.moment else f"__v{self.id}"


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


@dataclass(frozen=True, slots=True)
class Virtual(Expr):
    """The value of a virtual column."""

    column: VirtualColumn


@dataclass(frozen=True, slots=True)
class Moment(Expr):
    """The second at which a condition on a video was seen to hold, NULL where it was not.

    Attributes:
        of: the `Virtual` of the condition; before texts are settled, the name `t` with the table that was written before it.
    """

    of: Expr
