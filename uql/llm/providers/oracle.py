"""oracle:FILE.toml: answers from a label table, for benchmarks and tests; counted, priced and delayed like any model.

data = "data.parquet"      # rows, found by the content that the model is shown
labels = "labels.parquet"  # the truth, joined on key
key = "id"                 # paths are relative to this file
error = 0.05               # share of answers made wrong, fixed by `seed`; latency_s, price = {input=…, output=…}
[answers]
"the review is positive" = "sentiment = 'pos'"   # SQL over labels: BOOLEAN, VARCHAR or number; for joins over a and b
[examples]
"the review is positive" = { yes = ["…"], no = ["…"] }
[joins]                    # the attribute of one row that decides a condition on two, and for which values a and b it holds
"they agree" = { attribute = "the sentiment", labels = ["pos", "neg"], matches = "a = b" }
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from uql.base import toml_file
from uql.base.errors import ConfigError, DataError
from uql.base.settings import Settings
from uql.base.sql_text import quote
from uql.llm.providers.base import Answer, Capabilities, Limits, Price, Problem, Reply, Request, RowsReply, RowsRequest
from uql.llm.providers.oracle_rows import rows_of
from uql.llm.providers.oracle_write import written
from uql.llm.questions import NONE, Cell, Question, Row, Write
from uql.operators.record import Subject
from uql.operators.replies import Level, OneOf, Text, Value, YesNo

SHOWN = 8  # texts that an error lists, the nearest ones
_KEYS = {"data", "labels", "key", "error", "latency_s", "price", "seed", "answers", "examples", "joins", "concurrency"}


def open_provider(rest: str, settings: Settings) -> Oracle:
    """The oracle of a file. Raises ConfigError or DataError naming what is wrong with it."""
    return Oracle(rest)


class Oracle:
    """A label table that answers as a model would.

    Raises: ConfigError where the file or a question's text is not there; DataError where the data contradict themselves.
    """

    is_local = True
    capabilities = Capabilities(probabilities=True, schema=True, images=True, audio=True)

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        config = self._read()
        self.error = self._number(config, "error", 0.0)
        self.latency_s = self._number(config, "latency_s", 0.0)
        if not 0 <= self.error <= 1:
            raise ConfigError(f"{self.path}: error = {self.error} is not a share between 0 and 1", code="UQL402")
        self.seed = int(self._number(config, "seed", 0))
        self.answers: dict[str, str] = self._table(config, "answers", str)
        self.examples = self._table(config, "examples", object)
        self.joins = self._table(config, "joins", object)
        prices = self._table(config, "price", object)
        if prices and set(prices) != {"input", "output"}:
            raise ConfigError(
                f"{self.path}: price has {', '.join(prices)}", code="UQL402", help="it takes input and output"
            )
        self.price = Price(*(self._number(prices, name, 0.0) for name in ("input", "output")))
        self.limits = Limits(concurrency=int(self._number(config, "concurrency", 64)))
        self._rows = rows_of(self.path, config["data"], config["labels"], config["key"])
        self._columns: dict[str, list[Any]] = {}  # SQL → its value for each row of the data
        self._pairs: dict[tuple[str, int, int], Any] = {}
        self._pending: dict[str, dict[tuple[int, int], None]] = {}  # SQL → pairs of the requests in flight
        self._lock = threading.Lock()
        text = self.path.read_bytes()
        self.name = f"oracle:{self.path.name}@{hashlib.blake2b(text, digest_size=6).hexdigest()}"

    @property
    def columns(self) -> list[str]:
        """The columns of the data."""
        return self._rows.columns

    def values(self, column: str) -> list[Any]:
        """(N,) a column of the data. Raises DataError (UQL502) where there is none of that name."""
        return self._rows.values(column)

    def _read(self) -> dict[str, Any]:
        try:
            config = toml_file.parsed(toml_file.content(self.path))
        except FileNotFoundError:
            raise ConfigError(f"there is no oracle file {self.path}", code="UQL402") from None
        except (OSError, ValueError) as error:
            raise ConfigError(f"the oracle file {self.path} cannot be read: {error}", code="UQL402") from None
        missing = [name for name in ("data", "labels", "key", "answers") if name not in config]
        for name in ("data", "labels", "key"):
            if not isinstance(config.get(name, ""), str):
                raise ConfigError(f"{self.path}: {name} = {config[name]!r} is not a text", code="UQL402")
        unknown = sorted(set(config) - _KEYS)
        if missing or unknown:
            what = f"lacks {', '.join(missing)}" if missing else f"has unknown keys {', '.join(unknown)}"
            raise ConfigError(
                f"the oracle file {self.path} {what}", code="UQL402", help=f"keys: {', '.join(sorted(_KEYS))}"
            )
        return config

    def _table(self, entry: dict[str, Any], name: str, kind: type) -> dict[str, Any]:
        value = entry.get(name, {})
        if not isinstance(value, dict) or not all(isinstance(item, kind) for item in value.values()):
            raise ConfigError(
                f"{self.path}: {name} = {str(value)[:60]!r} is not a table" + (" of texts" if kind is str else ""),
                code="UQL402",
                help=f"[{name}] on a line of its own, then a line for each: name = value",
            )
        return dict(value)

    def check(self) -> None:
        """Raises: ConfigError (UQL402) for an answer whose SQL is neither of the labels of a row nor of those of a pair, a and b."""
        for sql in self.answers.values():
            try:
                self._column(sql)
            except ConfigError:
                self._rows.evaluate_pairs(sql, [(0, 0)])

    def trial(self) -> tuple[str, Row]:
        """A text about one row, and the first row that has an answer to it. Raises: ConfigError (UQL402) where there are none."""
        for text, sql in self.answers.items():
            with suppress(ConfigError):  # of two rows
                answered = (at for at, value in enumerate(self._column(sql)) if value is not None)
                for at in answered:
                    return text, Row(tuple(Cell(name, value) for name, value in self._rows.content(at)))
        raise ConfigError(
            f"the oracle {self.path} has no answer about a row",
            code="UQL402",
            help='[answers] on a line of its own, then a line for each: "text" = "SQL over the labels"',
        )

    def _number(self, entry: dict[str, Any], name: str, default: float) -> float:
        value = entry.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise ConfigError(f"{self.path}: {name} = {value!r} is not a number from 0 on", code="UQL402")
        return float(value)

    def version(self, question: Question) -> str:
        return "oracle-1"

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        return _tokens(request), max(
            64, sum(r.max_tokens for q in request.questions if isinstance(r := q.reply(), Text))
        )

    async def aclose(self) -> None:
        return None

    async def answer(self, request: Request) -> Reply:
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        if len({cell.table for cell in request.row.cells}) == 2:
            await self._gather_pairs(request)
        answers = tuple(self._answer(question, request.row) for question in request.questions)
        output = sum(1 + len(str(a.value)) // 4 for a in answers)
        most = self.tokens_at_most(request)[1]
        return Reply(answers, _tokens(request), min(output, most))

    async def answer_rows(self, request: RowsRequest) -> RowsReply:
        """Several rows in one request: what is said once is counted once."""
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        parts = request.single_requests()
        for part in parts:
            if len({cell.table for cell in part.row.cells}) == 2:
                await self._gather_pairs(part)
        answers = tuple(tuple(self._answer(q, part.row) for q in part.questions) for part in parts)
        shared = _tokens(replace(parts[0], row=Row()))
        read = shared + sum(_tokens(part) - shared for part in parts)
        return RowsReply(answers, read, sum(1 + len(str(a.value)) // 4 for row in answers for a in row))

    # --------------------------------------------------------------------------------------------------------- answering
    def _answer(self, question: Question, row: Row) -> Answer:
        reply = question.reply(row)
        if isinstance(reply, Text):
            assert isinstance(question, Write)
            return Answer(written(question, self.labels_of, self.examples, self.attribute_of))
        wrong = self._is_wrong(question, row)
        if question.operator.subject is Subject.PAIR and isinstance(reply, OneOf):
            return self._more(question, row, wrong)
        truth, sql = self.truth(question.text, row)
        if truth is None and isinstance(reply, YesNo | Level):
            return Answer(problem=Problem("wrong_type", "the label of this row is NULL"))
        match reply:
            case YesNo():
                yes = bool(truth) != wrong
                return Answer(yes, float(yes))
            case OneOf():
                return self._choice(question.text, reply, truth, row, wrong)
            case Level(levels):
                value = self._level(truth, sql, levels)
                return Answer(levels - 1 - value if wrong else value)
            case Value():
                return Answer(self._other(truth, sql, row) if wrong else truth, 1.0)

    def _choice(self, text: str, reply: OneOf, truth: Any, row: Row, wrong: bool) -> Answer:
        options = [*reply.labels, *([NONE] if reply.none_of_these else [])]
        by_name = {label.casefold(): label for label in reply.labels}
        truths = truth if isinstance(truth, list | tuple) else [truth]
        right = [
            by_name[str(item).casefold()] for item in truths if item is not None and str(item).casefold() in by_name
        ]
        if isinstance(truth, bool) and not right:
            right = [by_name[word] for word in (("yes", "true") if truth else ("no", "false")) if word in by_name]
        if reply.many:
            if wrong and options:
                right = [label for label in reply.labels if label not in right][:1]
            return Answer(right, 1.0)
        choice = right[0] if right else NONE if reply.none_of_these else None
        if choice is None:
            return Answer(
                problem=Problem("wrong_type", f"the label {truth!r} of this row is none of {list(reply.labels)}")
            )
        if wrong and len(options) > 1:
            others = [option for option in options if option != choice]
            choice = others[self._hash(text, row, "which") % len(others)]
        return Answer(choice, 1.0, tuple(float(option == choice) for option in options))

    def _more(self, question: Question, row: Row, wrong: bool) -> Answer:
        """Which of the two rows has the greater label; the first shown where they are equal."""
        sides = self._sides(row)
        if len(sides) != 2:
            raise DataError(f"{self.path}: a comparison needs two rows, told apart by their tables")
        (one, first), (two, second) = sides.items()
        above = _sort_key(self.truth(question.text, second)[0]) > _sort_key(self.truth(question.text, first)[0])
        return Answer(two if above != wrong else one, 1.0)

    def _level(self, truth: Any, sql: str, levels: int) -> float:
        """The truth on 0 … levels − 1: as it is where all labels are in that range, else stretched to it."""
        if isinstance(truth, bool):
            return float(truth) * (levels - 1)
        try:
            values = [float(v) for v in self._column(sql) if v is not None]
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"{self.path}: the answer {sql!r} is asked for as a score, and is not a number",
                code="UQL402",
                help='ORDER BY "…" asks how much; to sort by a text that is extracted, select it: "…" AS x … ORDER BY x',
            ) from error
        low, high = min(values), max(values)
        if low >= 0 and high <= levels - 1:
            return float(truth)
        return (float(truth) - low) / (high - low) * (levels - 1) if high > low else 0.0

    def _other(self, truth: Any, sql: str, row: Row) -> Any:
        """A wrong value: another one that the labels hold."""
        if len(self._sides(row)) > 1:
            return None if truth is not None else ""
        others = sorted({str(v): v for v in self._column(sql) if v != truth and v is not None}.items())
        return others[self._hash(sql, row, "other") % len(others)][1] if others else None

    # ------------------------------------------------------------------------------------------------------------- truth
    def truth(self, text: str, row: Row) -> tuple[Any, str]:
        """What the labels say of a row (or of a pair), and the SQL that says it. Raises ConfigError on an unknown text."""
        sql = self.answers.get(text)
        if sql is None:
            near = get_close_matches(text, self.answers, SHOWN, 0.0)
            choices = "; ".join(sorted(near)) + ("; …" if len(self.answers) > len(near) else "")
            raise ConfigError(
                f"the oracle {self.path} has no answer for {text!r}", code="UQL402", help=f"it knows: {choices}"
            )
        sides = self._sides(row)
        if len(sides) <= 1:
            indices = self._rows.find(row)
            return self._agreed(indices, [self._column(sql)[i] for i in indices], text), sql
        left, right = (self._rows.find(side) for side in self._ordered(row))
        pairs = [(i, j) for i in left for j in right]
        values = self._pair_values(sql, pairs)
        return self._agreed([i for i, _ in pairs], values, text), sql

    def _agreed(self, indices: Sequence[int], values: list[Any], text: str) -> Any:
        if any(value != values[0] for value in values):
            keys = ", ".join(str(self._rows.keys[i]) for i in sorted(set(indices))[:4])
            raise DataError(
                f"{self.path}: rows {keys} have the same content and different answers to {text!r}",
                code="UQL501",
                help="an oracle's rows are found by what is shown: drop the duplicates, or show a column that tells them apart",
            )
        return values[0]

    def _column(self, sql: str) -> list[Any]:
        with self._lock:
            if sql not in self._columns:
                self._columns[sql] = self._rows.evaluate(sql)
            return self._columns[sql]

    async def _gather_pairs(self, request: Request) -> None:
        """Note the pairs of this request and let the others in flight note theirs: one statement evaluates them all."""
        for question in request.questions:
            sql = self.answers.get(question.text)
            if sql is not None and not isinstance(question.reply(request.row), OneOf | Text):
                left, right = (self._rows.find(side) for side in self._ordered(request.row))
                self._pending.setdefault(sql, {}).update(dict.fromkeys((i, j) for i in left for j in right))
        await asyncio.sleep(0)

    def _ordered(self, row: Row) -> list[Row]:
        """The two rows of a pair: a and b by name, else in the order in which they are shown."""
        sides = self._sides(row)
        if len(sides) != 2:
            raise DataError(f"{self.path}: a question about {len(sides)} tables cannot be answered")
        return [sides["a"], sides["b"]] if set(sides) == {"a", "b"} else list(sides.values())

    def _pair_values(self, sql: str, pairs: list[tuple[int, int]]) -> list[Any]:
        with self._lock:
            all_pairs = dict.fromkeys(pairs) | self._pending.pop(sql, {})
            new = [pair for pair in all_pairs if (sql, *pair) not in self._pairs]
            for pair, value in zip(new, self._rows.evaluate_pairs(sql, new), strict=True):
                self._pairs[(sql, *pair)] = value
            return [self._pairs[(sql, *pair)] for pair in pairs]

    def _sides(self, row: Row) -> dict[str, Row]:
        """The rows of a pair by their table's alias; a row without aliases is one side."""
        cells: dict[str, list[Any]] = {}
        for cell in row.cells:
            cells.setdefault(cell.table, []).append(cell)
        holes: dict[str, list[tuple[str, str]]] = {}
        for name, value in row.holes:
            table, _, column = name.rpartition(".")
            holes.setdefault(table if table in cells or not cells else "", []).append((column, value))
        if len(cells) <= 1 and len([table for table in holes if table]) <= 1:
            return {next(iter(cells), ""): row}
        tables = dict.fromkeys([*cells, *(table for table in holes if table)])
        return {table: Row(tuple(cells.get(table, ())), tuple(holes.get(table, ()))) for table in tables}

    def labels_of(self, text: str, rows: Sequence[Row]) -> list[str]:
        """The distinct answers to a text in the rows shown, in order of their first row."""
        labels: dict[str, None] = {}
        for row in rows:
            truth = self.truth(text, row)[0]
            for value in truth if isinstance(truth, list | tuple) else [truth]:
                if value is not None:
                    labels.setdefault(str(value).lower() if isinstance(value, bool) else str(value))
        return list(labels)

    def attribute_of(self, text: str) -> dict[str, Any]:
        """What decides a condition on two rows, by the file's table of joins; an empty attribute where it has none."""
        join = self.joins.get(text)
        if join is None:
            return {"attribute": "", "values": [], "rule": "pairs", "pairs": []}
        try:
            attribute, labels, matches = str(join["attribute"]), [str(v) for v in join["labels"]], str(join["matches"])
        except (KeyError, TypeError):
            raise ConfigError(
                f"{self.path}: the join {text!r} needs attribute, labels and matches", code="UQL402"
            ) from None
        return {
            "attribute": attribute,
            "values": labels,
            "rule": "pairs",
            "pairs": self._rows.matching(labels, matches),
        }

    # ------------------------------------------------------------------------------------------------------------ chance
    def _hash(self, text: str, row: Row, salt: str) -> int:
        content = repr((self.seed, salt, text, [(c.name, c.table, c.value) for c in row.cells], row.holes))
        return int.from_bytes(
            hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
        )

    def _is_wrong(self, question: Question, row: Row) -> bool:
        return self.error > 0 and self._hash(question.text, row, "error") < self.error * 2**64


def _tokens(request: Request) -> int:
    """Four characters a token, of what a model would have been shown."""
    rows = [request.row, *(row for q in request.questions for row in q.shown)]
    chars = sum(
        len(c.value) if isinstance(c.value, str) else 4 * 256 for row in rows for c in row.cells if c.value is not None
    )
    chars += sum(len(value) for row in rows for _, value in row.holes)
    chars += sum(len(q.text) for q in request.questions)
    chars += sum(
        sum(map(len, r.labels)) for q in request.questions if isinstance(r := q.reply(), OneOf) and not r.letters
    )
    return 8 + chars // 4


def _sort_key(value: Any) -> float:
    if value is None:
        return float("-inf")
    if isinstance(value, bool | int | float):
        return float(value)
    try:
        return float(str(value))
    except ValueError:
        raise DataError(f"a comparison needs a number as the oracle's answer, not {quote(str(value))}") from None
