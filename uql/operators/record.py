"""What an operator is: one record that compiler, providers, pricing and kernels read, and the questions that it puts about rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from uql.operators.replies import Shape


class Place(StrEnum):
    """Where a quoted text stands in a statement, or what it is compared with: each place means one operator."""

    CONDITION = "where a BOOLEAN stands, or a cast to BOOLEAN"
    VALUE = "where a value stands"
    LABELS = "beside labels: = 'a', IN (…), ::ENUM(…)"
    GROUP_BY = "a group key"
    ORDER_BY = "a sort key"
    OF_GROUP = "beside aggregates, outside of them"
    DISTINCT_ON = "DISTINCT ON of it alone"


class Subject(StrEnum):
    """What one question is about."""

    ROW = "one row"  # a condition may show the rows of two tables as one
    PAIR = "two rows, one against the other"
    ROWS = "many rows at once"


# never changed; not frozen, since that makes millions of them in four times the time
@dataclass(unsafe_hash=True, slots=True)
class Cell:
    """One column of one row, as shown to the model: text, or the bytes of an image or a sound with their media type."""

    name: str
    value: str | bytes | None
    table: str = ""  # alias of the table: tells the two sides of a pair apart
    media_type: str = ""  # "image/png", "audio/wav", … where the value is bytes
    # that a sound or a video lasts, by which it is billed; 0: not known
    seconds: float = field(default=0.0, compare=False, repr=False)


@dataclass(unsafe_hash=True, slots=True)  # as Cell
class Row:
    """What a question is about: the cells shown, and the values of structured columns that stand in holes of the question."""

    cells: tuple[Cell, ...] = ()
    holes: tuple[tuple[str, str], ...] = ()  # ("city" or "t.city", its value)

    @property
    def is_null(self) -> bool:
        """Every cell and hole is NULL, or all cells of one side of a pair: the answer is NULL, without a call."""
        for cell in self.cells:
            if cell.value is None:
                break
        else:
            return not (self.cells or self.holes)
        sides = {cell.table for cell in self.cells}
        return len({cell.table for cell in self.cells if cell.value is not None}) < len(sides)


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is sent: the instruction of the system, and one turn of the user.

    `begins_alike`: so do prompts of later processes, over the same tables.
    """

    system: str
    user: str
    begins_alike: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """Base of the questions. `text` may have holes {x}, filled from `Row.holes`, or naming a cell of the row."""

    text: str
    # a row's text and its answer, that a person gave and wants shown
    examples: tuple[tuple[str, str], ...] = field(default=(), kw_only=True, repr=False)
    meaning: str = field(default="", kw_only=True, repr=False)  # what is meant by the text, in a line

    @property
    def operator(self) -> Operator:
        """The record of what is asked."""
        raise NotImplementedError(f"{type(self).__name__} is the question of no operator")

    @property
    def version(self) -> str:
        """Of the words in which it is put, part of the ledger's key."""
        return self.operator.words.version

    def reply(self, row: Row | None = None) -> Shape:
        """The shape of the reply about a row; None: about any row."""
        return self.operator.reply

    @property
    def shown(self) -> tuple[Row, ...]:
        """The rows that are part of the question itself."""
        return ()


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a column of a query says of its question, beside the text."""

    type: str = "VARCHAR"
    labels: tuple[str, ...] = ()
    descriptions: tuple[str, ...] = ()
    none_of_these: bool = True
    many: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """The words in which a question is put, each form a function of the question and the row.

    Attributes:
        version: part of the ledger's key. Other words need another version: the answers to the old ones are then not found.
        single_prompt: the prompt of a request with this question alone, in the form that small models answer best. Of a Text: with a seed
            as third argument, the rows are fenced.
        instruction: what is asked, where several questions share a request that is answered in JSON.
        bare: what is asked, and nothing of the form of the reply.
        menu_first: as `single_prompt`, with what is the same for all rows before the row.
        descriptions: of the labels that have one.
        whether: as a question of yes or no: does a label fit (third argument), is it so of the rows shown.
    """

    version: str
    single_prompt: Callable[..., Prompt]
    instruction: Callable[[Any, Row], str] | None = None
    bare: Callable[[Any, Row], str] | None = None
    menu_first: Callable[[Any, Row], Prompt] | None = None
    descriptions: Callable[[Any], dict[str, str]] = lambda question: {}
    whether: Callable[..., Prompt] | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """How a question stands in the ledger's keys: its name there, and the fields that are always written, never to be changed."""

    name: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Operator:
    """Everything that is true of an operator. `docs/extending.md` says how one is added.

    Attributes:
        places: where in a statement a text means this; none: only kernels put the question.
        reply: its shape, which a question fills in with its own labels, levels or type.
        question: the question of a text.
        answer_tokens: of a typical reply, for the price.
        shown_as: the line of EXPLAIN that asks it; "": none of its own.
        noun: what EXPLAIN calls a question of it.
        kernel: the module of `uql.kernels` that puts the question.
        names_labels: its labels are named by the model first, from some of the rows.
    """

    name: str
    places: tuple[Place, ...]
    reply: Shape
    words: Words
    key: Key
    question: Callable[[str, Parameters], Question]
    answer_tokens: int
    shown_as: str
    noun: str
    kernel: str
    subject: Subject = Subject.ROW
    names_labels: bool = False

    def __repr__(self) -> str:
        return self.name
