"""A model that reads rows without error: what the reference SQL of a question gives over the rows that a prompt shows.

It serves the protocols of `replay_server`, with its limits. A prompt shows a row where the whole row stands in it, as JSON or in the words
of `uql.nl.adapters.base.written`; the labels of a row with an image are known where the image is shown too, or a note on it that
this model wrote. Where it sees no label of a table, or nothing comes of the rows, it says that the answer is not there. So two systems
that ask it differ by what they show of the sources, and how, and in nothing else.
"""

from __future__ import annotations

import asyncio
import datetime
import decimal
import hashlib
import io
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import duckdb

from uql.benchmarks.nl.references import DIGITS
from uql.benchmarks.nl.replay import Replay
from uql.benchmarks.nl.replay_server import Asked, Service
from uql.nl.adapters import base
from uql.nl.adapters.process import cell

if TYPE_CHECKING:
    import pyarrow as pa

NOTED = "State what the picture"  # begins the request for a note on one row's image
_FIELDS = re.compile(r"JSON object in the following order of fields: (.*)")


class Rows:
    """The rows of a table as prompts show them.

    Args:
        shown: the table as it is asked of.
        truths: the same rows, in any order, with labels as further columns.

    Attributes:
        read_in: the table whose text gives the labels, and the column by which a row finds it; None: the row itself.
    """

    read_in: tuple[Rows, str] | None = None

    def __init__(self, shown: pa.Table, truths: pa.Table) -> None:
        self.truths = truths
        self.labels = tuple(name for name in truths.column_names if name not in shown.column_names)
        pictured = [field.name for field in truths.schema if str(field.type) == "binary"]
        self.hidden = self.labels or tuple(pictured)  # until what gives them is seen
        self._columns = shown.column_names

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.truths.to_pylist()
        return rows

    @cached_property
    def _forms(self) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        """The rows by their JSON, without its last brace, and by their words."""
        objects: dict[str, list[int]] = {}
        lines: dict[str, list[int]] = {}
        for number, row in enumerate(self._rows):
            told = {k: row[k] for k in self._columns if row[k] is not None and not isinstance(row[k], bytes)}
            sent = json.dumps({k: cell(v) for k, v in told.items()}, ensure_ascii=False)[:-1]
            objects.setdefault(sent, []).append(number)
            line = base.written(told, list(told))
            if all(len(" ".join(str(value).split())) <= base.LONGEST_CELL for value in told.values()):  # none is cut
                lines.setdefault(f"\n- {line}\n", []).append(number)
        return objects, lines

    def seen(self, prompt: str, pictures: Collection[str], sql: str) -> tuple[list[dict[str, Any]], int]:
        """The rows that a prompt shows, equal ones as often as it shows them; labels and images unseen are NULL, the count is of seen ones.

        Args:
            prompt: its words.
            pictures: keys of its images (`picture`).
            sql: of the question: it names the labels that a note tells.
        """
        objects, lines = self._forms
        noted: dict[int, bool] = {}  # number → does a note tell its labels
        for form, numbers in lines.items():
            noted |= dict.fromkeys(numbers[: prompt.count(form)], False)
        for form, numbers in objects.items():
            after = [prompt[found.end() :] for found in re.finditer(re.escape(form), prompt)] if form in prompt else []
            ends = [rest for rest in after if rest.startswith(("}", ', "note": '))]
            for number, rest in zip(numbers, ends, strict=False):
                note = json.dumps(self.note(self._rows[number], sql), ensure_ascii=False)
                noted[number] = noted.get(number, False) or rest.startswith(f', "note": {note}}}')
        texts: set[Any] | None = None
        if self.read_in is not None:
            other, key = self.read_in
            texts = {row[key] for row in other.seen(prompt, pictures, sql)[0]}
        made, told = [], 0
        for number in sorted(noted):
            row = self._rows[number]
            images = [value for value in row.values() if isinstance(value, bytes)]
            known = noted[number] or all(picture(image) in pictures for image in images)
            known = known and (texts is None or row[key] in texts)
            made.append(row if known else row | dict.fromkeys(self.hidden))
            told += known
        return made, told

    def note(self, row: Mapping[str, Any], sql: str) -> str:
        """The labels of a row that a statement names, in words; where there are none, that its image was seen."""
        if not self.labels:
            return "seen" if all(row[name] is not None for name in self.hidden) else ""
        named = [name for name in self.labels if re.search(rf"\b{re.escape(name)}\b", sql)]
        return "; ".join(f"{name}: {_spoken(row[name])}" for name in named if row[name] is not None)


@dataclass(frozen=True, slots=True)
class Known:
    """A question that the witness understands.

    Attributes:
        sql: the reference, over the labels.
        tables: that it names.
        solve: the answer over the rows seen of them; None: that of the SQL.
    """

    sql: str
    tables: Mapping[str, Rows]
    solve: Callable[[Mapping[str, pa.Table]], str] | None = None


@dataclass(slots=True)
class Witness(Service):
    """The endpoint.

    Attributes:
        known: questions by their text.
        shown: of each request, the rows that it showed by table.
    """

    replay: Replay = field(default_factory=lambda: Replay(()))
    known: dict[str, Known] = field(default_factory=dict)
    shown: list[dict[str, int]] = field(default_factory=list)

    async def _said(self, asked: Asked) -> tuple[str, bool]:
        prompt = f"{asked.system}\n{asked.user}\n"
        named = [text for text in self.known if text in prompt]
        if not named:  # what the server can do
            return await Service._said(self, asked)
        question = self.known[max(named, key=len)]
        pictures = {picture(image) for image in asked.images}
        found = {name: rows.seen(prompt, pictures, question.sql) for name, rows in question.tables.items()}
        seen = {name: made for name, (made, _) in found.items()}
        self.shown.append({name: len(rows) for name, rows in seen.items()})
        if NOTED in prompt:
            notes = [
                question.tables[n].note(row, question.sql)
                for n, rows in seen.items()
                for row in rows
                if question.tables[n].hidden
            ]
            return "; ".join(filter(None, notes)) or "nothing", False
        import pyarrow as pa

        blind = [name for name, (_, told) in found.items() if question.tables[name].hidden and not told]
        tables = {n: pa.Table.from_pylist(rows, schema=question.tables[n].truths.schema) for n, rows in seen.items()}
        solve = question.solve or partial(answer, question.sql)
        said = "" if blind else await asyncio.to_thread(solve, tables)
        return _reply(asked, prompt, said, [name for name, rows in seen.items() if rows])


def answer(sql: str, tables: Mapping[str, pa.Table]) -> str:
    """The rows of a statement over tables, in words; "" where there are none.

    >>> import pyarrow as pa
    >>> answer("SELECT name, n FROM t", {"t": pa.table({"name": ["a", "b"], "n": [1.5, None]})})
    'a, 1.5; b, unknown'
    """
    if not any(table.num_rows for table in tables.values()):
        return ""
    with duckdb.connect() as database:
        for name, table in tables.items():
            database.register(name, table)
        rows = database.execute(sql).fetchall()
    return in_words(rows) if any(value is not None for row in rows for value in row) else ""


def in_words(rows: Sequence[Sequence[Any]]) -> str:
    """Rows as an answer says them: cells by commas, rows by semicolons, numbers to six digits."""
    return "; ".join(", ".join(map(_spoken, row)) for row in rows)


def _spoken(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "unknown" if value is None else "yes" if value else "no"
    if isinstance(value, float | decimal.Decimal):
        return f"{float(value):.{DIGITS}g}"
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _reply(asked: Asked, prompt: str, said: str, sources: Sequence[str]) -> tuple[str, bool]:
    """An answer in the form that a request wants: fields of a schema, fields of a JSON object in words, or bare."""
    fields: dict[str, Any] = dict(asked.schema.get("properties", {}))
    listed = _FIELDS.findall(prompt)
    if not fields and listed:
        fields = {name: {} for name in re.findall(r"`(\w+)`", listed[-1])}
    if not fields:
        return said or "Not found.", False
    given = {
        "answer": said,
        "found": bool(said),
        "sources": list(sources),
        "reasoning": "as the rows say",
        "answerable": True,
        "summary": said or "none",
    }
    made = {name: given[name] if name in given else _empty(kind) for name, kind in fields.items()}
    return json.dumps(made, ensure_ascii=False), False


def _empty(kind: Mapping[str, Any]) -> Any:
    return {"boolean": False, "array": [], "object": {}, "integer": 0, "number": 0}.get(str(kind.get("type")), "")


@lru_cache(maxsize=4_096)
def picture(data: bytes) -> str:
    """A key of an image that stays where it is saved in another format."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as opened:
        drawn = opened.convert("RGB")
        return hashlib.sha256(repr(drawn.size).encode() + drawn.tobytes()).hexdigest()
