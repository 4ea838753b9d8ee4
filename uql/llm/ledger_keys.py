"""What an ask is made of: distinct rows, the keys of question and row content, and the answers put together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uql.llm.events import Event
from uql.llm.ledger import Ledger, key_maker
from uql.llm.ledger_rows import TRIED, Failed
from uql.llm.prompts import several
from uql.llm.providers.base import Answer, Problem, Provider, blamed
from uql.llm.questions import Answers, Cell, Failure, Question, Row
from uql.operators.record import Key
from uql.operators.replies import Level, OneOf

CELL = Key("Cell", ("name", "value", "table", "media_type"))
ROW = Key("Row", ("cells", "holes"))
ALONE = -1


@dataclass(slots=True)
class Slot:
    """One distinct row that is asked, and the answer to each question as soon as there is one.

    `keys` are those of its answers in this ask, `single_keys` those of its answers where it is asked by itself: other ones where rows
    share requests. `paid`: input and output tokens and USD (None: unknown) of the tries so far. `calls`: of these tries. `tried`:
    what they failed with, by key. `most`: rows of its next request at most; 0: it was not tried, and shares one as the ask allows;
    ALONE: it has failed in a request of its own.
    """

    row: Row
    keys: list[bytes]
    single_keys: list[bytes]
    answers: list[Answer | None]
    paid: tuple[int, int, float | None] = (0, 0, 0.0)
    calls: int = 0
    tried: Mapping[bytes, Problem] = field(default_factory=dict)
    most: int = 0

    def try_again(self, failed: Mapping[bytes, Failed]) -> None:
        """Go on after the try that a sitting before has made, where it had one."""
        missing = (key for key, answer in zip(self.keys, self.answers, strict=True) if answer is None)
        for one in (failed[key] for key in missing if key in failed and failed[key].kind == TRIED):
            kind, _, rows = one.raw.partition(" ")
            self.calls, self.paid = one.calls, one.paid
            self.most = int(rows) if rows.isdecimal() and len(rows) < 6 else ALONE
            self.tried = {**self.tried, one.key: Problem(kind, one.message)}

    def pay(self, event: Event) -> None:
        """Count one more try: the event of its call."""
        tokens_in, tokens_out, usd = self.paid
        usd = None if usd is None or event.usd is None else usd + event.usd
        self.paid = (tokens_in + event.input_tokens, tokens_out + event.output_tokens, usd)


@dataclass(slots=True)
class Chunk:
    """Distinct rows of an ask, in columns: those that the ledger answers never become objects of their own.

    Attributes:
        rows: (n,) the distinct rows.
        keys, single_keys: (questions,) as those of `Slot`, n each; the same lists where no row shares a request.
        places: (m,) where rows stand in the ask.
        numbers: (m,) which of the n distinct rows stands there.
    """

    rows: list[Row]
    keys: list[list[bytes]]
    single_keys: list[list[bytes]]
    places: list[int]
    numbers: list[int]

    @property
    def key_columns(self) -> list[list[bytes]]:
        """All keys under which answers about the rows may be kept: lists of n."""
        return self.single_keys if self.keys is self.single_keys else [*self.keys, *self.single_keys]

    @property
    def all_keys(self) -> list[bytes]:
        """The same, each once."""
        first, *others = self.key_columns
        return list(dict.fromkeys(chain(first, *others))) if others else first

    def fill(self, columns: Sequence[list[Answer | None]], answers: Sequence[Sequence[Answer | None]]) -> None:
        """Put the answers to each question, n each, where these rows stand in the columns of the ask."""
        for column, found in zip(columns, answers, strict=True):
            for place, number in zip(self.places, self.numbers, strict=True):
                column[place] = found[number]

    def slot(self, i: int, answers: list[Answer | None]) -> Slot:
        """The i-th distinct row, to be asked for the answers that are None."""
        return Slot(self.rows[i], [keys[i] for keys in self.keys], [keys[i] for keys in self.single_keys], answers)


def distinct(
    rows: Sequence[Row],
    places: Sequence[int],
    heads: Sequence[bytes],
    ledger: Ledger,
    *,
    ask_null: bool,
    most: int,
    together: Sequence[bytes] = (),
) -> Iterator[Chunk]:
    """The distinct rows with their keys, at most `most` at once. Rows equal to one of an earlier chunk are found in the ledger.

    Args:
        places: of the rows that are asked about, in order.
        heads: (questions,) what `question_key` gives.
        together: the same for rows that share requests; a row that cannot (`several.fits`) has the others. None: no row does.
        ask_null: NULL rows are rows like others.
    """
    numbers: dict[bytes, int] = {}
    single, shared = ([key_maker(ledger.secret, head) for head in own] for own in (heads, together))

    def chunk() -> Chunk:
        single_keys = [list(map(key, numbers)) for key in single]
        keys = single_keys
        if shared:
            fits = list(map(several.fits, asked))
            keys = [
                [key(content) if fit else own for content, fit, own in zip(numbers, fits, column, strict=True)]
                for key, column in zip(shared, single_keys, strict=True)
            ]
        return Chunk(asked, keys, single_keys, at, of)

    asked: list[Row] = []
    at: list[int] = []
    of: list[int] = []
    for place in places:
        row = rows[place]
        if not ask_null and row.is_null:
            continue
        content = row_key(row)
        number = numbers.setdefault(content, len(asked))
        if number == len(asked):
            if number == most:
                del numbers[content]
                yield chunk()
                asked, at, of, number, numbers = [], [], [], 0, {content: 0}
            asked.append(row)
        at.append(place)
        of.append(number)
    if asked:
        yield chunk()


def question_key(provider: Provider, question: Question, *, together: bool = False) -> bytes:
    """The bytes that stand for a question to a model in the ledger's keys. Other bytes make every paid answer unknown.

    Encoding 1, the only one so far, begins with "(": model, version of the words, kind of question, and the question, in Python's
    notation of a tuple; then the examples that a person wants shown, where there are any. Of the question it writes the fields of its
    operator's `key`, and of fields that were added later those that differ from their defaults.

    Args:
        together: the question is put about several rows in one request.
    """
    with blamed(provider, "version"):
        version = provider.version(question)
    version = several.version(version) if together else version
    parts = [encoded(provider.name), encoded(version), encoded(question.operator.key.name), encoded(question)]
    if question.examples:
        parts.append(encoded(question.examples))
    return f"({', '.join(parts)})".encode("utf-8", "surrogatepass")


def encoded(value: Any) -> str:
    """A part of a question in encoding 1. Raises TypeError on what no question may hold.

    >>> encoded(("a", 1, Cell("text", None)))
    "('a', 1, Cell(name='text', value=None, table='', media_type=''))"
    """
    if value is None or isinstance(value, str | bytes | bool | int | float):
        return repr(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(encoded, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, Question | Row | Cell):
        key = value.operator.key if isinstance(value, Question) else ROW if isinstance(value, Row) else CELL
        kind: Any = type(value)
        later = (name for name, default in _added(kind, key.fields) if getattr(value, name) != default)
        parts = [f"{name}={encoded(getattr(value, name))}" for name in (*key.fields, *later)]
        return f"{key.name}({', '.join(parts)})"
    raise TypeError(f"a question cannot hold {value!r}: its key in the ledger would not be fixed")


@lru_cache(maxsize=64)
def _added(kind: Any, names: tuple[str, ...]) -> tuple[tuple[str, Any], ...]:
    """The fields added after encoding 1 was fixed, with their defaults; those that make no difference to what is asked are left out."""
    return tuple(
        (item.name, item.default) for item in fields(kind) if item.compare and item.name not in (*names, "examples")
    )


def row_key(row: Row) -> bytes:
    """The content of a row as bytes that no other row has."""
    key = b""
    for cell in row.cells:
        value = cell.value
        if isinstance(value, str):
            kind, data = "s", value.encode("utf-8", "surrogatepass")
        else:
            kind, data = ("0", b"") if value is None else ("b", value)
        key += _head(cell.name, cell.table, cell.media_type, kind, len(data)) + data
    for name, value in row.holes:
        key += _framed("hole", name) + _framed(value)
    return key


@lru_cache(maxsize=4_096)
def _head(name: str, table: str, media_type: str, kind: str, length: int) -> bytes:
    """What stands before the data of a cell."""
    return _framed(name, table, media_type, kind) + length.to_bytes(6, "little")


@lru_cache(maxsize=256)
def _framed(*texts: str) -> bytes:
    """Texts with their lengths."""
    data = [text.encode("utf-8", "surrogatepass") for text in texts]
    return b"".join(len(text).to_bytes(6, "little") + text for text in data)


def collected(question: Question, answers: list[Answer | None]) -> Answers:
    """A column of answers in the form that kernels get."""
    n = len(answers)
    match question.reply():
        case OneOf(labels, none_of_these):
            width = len(labels) + none_of_these
        case Level(levels):
            width = levels
        case _:
            width = 0
    distributions: NDArray[np.float64] | None = None
    if width:
        rows = [(i, a.distribution) for i, a in enumerate(answers) if a is not None and a.distribution is not None]
        rows = [(i, shares) for i, shares in rows if len(shares) == width]
        if rows:
            distributions = np.full((n, width), math.nan)
            for i, shares in rows:
                distributions[i] = shares
    failures = ((i, a.problem) for i, a in enumerate(answers) if a is not None and a.problem is not None)
    return Answers(
        [None if a is None else a.value for a in answers],
        np.array([math.nan if a is None else a.probability for a in answers], np.float64),
        tuple(Failure(i, problem.kind, problem.message, problem.raw[:500]) for i, problem in failures),
        distributions,
    )
