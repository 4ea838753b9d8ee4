"""What an output row rests on: for each quoted text the row that was shown, the prompt, the answer, and its line in the ledger."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from uql.base.errors import DataError
from uql.base.printable import printable
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.llm.prompts import fused, several
from uql.operators.record import Subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from uql.compiler.bound import BoundItem
    from uql.kernels.base import Context
    from uql.kernels.finish import Output
    from uql.kernels.relation import Relation
    from uql.llm.gate import Gate
    from uql.llm.open_ledgers import Ledgers
    from uql.llm.providers.base import Answer, Provider
    from uql.llm.questions import Question, Row

    # of a kept row: the keys that its answer may have, each with what was shown
    _Keys = dict[int, list[tuple[bytes, Row]]]

KEPT_ROWS = 10_000  # output rows whose evidence is kept
KEPT_MEDIA = 100  # of them where the model sees images or sounds
SHOWN = 6  # answers behind an aggregated row that are printed
OF_GROUP = 20  # rows behind an aggregated row that are kept


@dataclass(frozen=True, slots=True)
class Evidence:
    """One answer that an output row rests on."""

    clause: str  # the quoted text
    shown: tuple[tuple[str, str], ...]  # what the model saw of the row: column, value
    prompt: str  # the words of the request
    value: Any  # the answer as the query used it, None where there is none
    probability: float  # P(yes) of a condition, else of the value; NaN where unknown
    raw: str  # the answer as the ledger holds it, or the reply that could not be read
    failure: str  # why there is no answer, "" where there is one
    model: str
    ledger_id: str  # key of the answer in the ledger; "" where the ledger does not hold it
    input_tokens: int | None = None  # of the call that brought it, which other questions may have shared
    output_tokens: int | None = None
    usd: float | None = None
    asked: bool = True  # False: the row was returned or counted without asking this
    by_person: bool = False  # the answer is a person's; `raw` is what the model had said
    t: float | None = None  # of a condition on a video, the second of the frame that is shown here


@dataclass(frozen=True, slots=True)
class Why:
    """`Result.why(i)`: the answers behind one output row. Printing it tells them in words."""

    row: int
    evidence: tuple[Evidence, ...]
    rows: int = 1  # candidate rows behind an aggregated row that are listed here

    def __str__(self) -> str:
        if not self.evidence:
            return "no model was asked for this row"
        if self.rows == 1:
            return "\n\n".join(evidence_text(part) for part in self.evidence)
        lines = [f"from the rows asked, of which {self.rows:,} are kept here:"]
        lines += [evidence_text(part, short=True) for part in self.evidence[:SHOWN]]
        more = len(self.evidence) - SHOWN
        return "\n\n".join([*lines, f"… and {more:,} answers more"] if more > 0 else lines)

    def __repr__(self) -> str:
        return f"{self}: in .evidence" if self.rows > 1 and len(self.evidence) > SHOWN else str(self)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


def evidence_text(part: Evidence, *, short: bool = False) -> str:
    """One answer in words, for people; a short one without prompt, model and raw answer."""
    answer = "not asked" if not part.asked else f"no answer: {part.failure}" if part.failure else repr(part.value)
    if not math.isnan(part.probability):
        answer += f" (probability {part.probability:.2f})"
    lines = [f'"{part.clause}" → {answer}']
    lines += [f"  t: {part.t:g} s"] if part.t is not None else []
    lines += [f"  {name}: {printable(value)}" for name, value in part.shown]
    if short:
        return "\n".join(lines)
    if part.by_person:
        lines.append("  answered by a person" + (", in the place of the model's answer" if part.raw else ""))
    if part.asked and not (part.by_person and not part.raw):
        lines.append(f"  model: {part.model}")
    if part.input_tokens is not None:
        price = f", ${part.usd:.6f}" if part.usd else ""
        lines.append(f"  call: {part.input_tokens:,} + {part.output_tokens or 0:,} tokens{price}")
    if part.ledger_id:
        lines.append(f"  ledger: {part.ledger_id}")
    if part.raw:
        lines.append(f"  raw: {printable(part.raw[:500])}")
    if part.prompt and part.asked and not (part.by_person and not part.raw):
        lines += ["  prompt:", *(f"    {printable(line)}" for line in part.prompt.splitlines())]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Correction:
    """A person's answer in the place of a model's: later queries use it. `undo` takes it back."""

    id: int  # of `FROM uql_corrections()`
    row: int  # of the result
    text: str  # the question
    value: Any
    before: Any  # what the query had used
    ledger: str = field(repr=False)
    ledgers: Ledgers = field(repr=False)

    def undo(self) -> None:
        """Takes it back: what was in force before it is again. Raises DataError (UQL524) where that was done already."""
        from uql.llm.corrections import withdraw

        with self.ledgers.open(self.ledger) as ledger:
            withdraw(ledger, self.id)


@dataclass(slots=True)
class _ColumnAnswers:
    """The answers to one virtual column for the rows that are kept: arrays over them."""

    column: VirtualColumn
    question: Question
    values: NDArray[np.object_]
    asked_mask: NDArray[np.bool_]
    probabilities: NDArray[np.float32]
    rows: list[list[Row]]  # for each way in which it was put, what was shown of each row
    # of a cascade: 1 where the small model answered, 2 where the large one did; 0: the run's model
    by_model: NDArray[np.int8]
    by_people: NDArray[np.bool_]  # where a person did
    t: NDArray[np.float64] | None = None  # of a condition on videos, the second of the frame in `rows`


@dataclass(slots=True)
class Trace:
    """What is kept of a run so that it can be asked why: `why(i)`."""

    provider: Provider
    ledger: str
    ledgers: Ledgers
    secret: bytes
    seed: int
    behind: list[list[int]]  # for each output row, positions among the kept rows
    rids: list[int]
    columns: list[_ColumnAnswers]
    failures: dict[tuple[int, str], tuple[str, str]]  # candidate row and text → what was said, and the raw reply
    cascade: tuple[Provider, ...] = ()  # its small and its large model
    run: str = ""  # its id in the ledger
    source: str = ""  # the table that the rows come from
    named: dict[str, str] = field(default_factory=dict)  # output columns that are a quoted text, and that text
    # the answers, of a ledger that the connection forgets
    memory_answers: dict[bytes, Answer] = field(default_factory=dict)

    def _model(self, by: int) -> Provider:
        return self.cascade[by - 1] if by and self.cascade else self.provider

    def why(self, i: int) -> Why:
        """The answers behind output row `i`. Raises DataError (UQL515) where there is no such row."""
        if not 0 <= i < len(self.behind):
            last = len(self.behind) - 1
            raise DataError(
                f"nothing is kept of row {i}: it is kept of the rows 0 … {last}",
                code="UQL515",
                help=f"of large results the first {KEPT_ROWS:,} rows are kept, of images {KEPT_MEDIA}: put it there by ORDER BY",
            )
        members = self.behind[i]
        keys = [self._keys(part, members) for part in self.columns]
        answers = self._find_answers(_flat(keys))
        evidence = []
        for k in members:
            for n, part in enumerate(self.columns):
                evidence.append(self._evidence(part, k, keys[n][k], answers))
        return Why(i, tuple(evidence), len(members))

    def correct(self, i: int, value: Any, column: str | None = None) -> Correction:
        """Keeps a person's answer about output row `i`. Raises DataError (UQL515, UQL524), as `Result.correct` says.

        Args:
            i: the output row, from 0.
            value: the right answer.
            column: of the output, where several texts were asked.
        """
        from uql.llm import corrections as people

        evidence = self.why(i).evidence
        k = self.behind[i][0] if self.behind[i] else -1
        if len(self.behind[i]) != 1:
            raise DataError(
                f"row {i} stands for several rows, and a person answers about one",
                code="UQL524",
                help='correct a row of the table: SELECT id, "the text" AS answer FROM …',
            )
        n, part = self._about(column)
        answer = people.read(part.question, value)
        had = "" if evidence[n].by_person else evidence[n].raw
        with self.ledgers.open(self.ledger) as ledger:
            number = people.correct(
                ledger, part.question, part.rows[0][k], answer,
                before=had, model=evidence[n].model, run=self.run, source=self.source,
            )  # fmt: skip
        return Correction(number, i, part.column.text, answer.value, part.values[k], self.ledger, self.ledgers)

    def _about(self, column: str | None) -> tuple[int, _ColumnAnswers]:
        """The quoted text that a correction is about, by its name in the output or its own words."""
        target = self.named.get(column, column) if column is not None else None
        parts = [(n, part) for n, part in enumerate(self.columns) if part.question.operator.subject is Subject.ROW]
        matches = [(n, part) for n, part in parts if target is None or part.column.text == target]
        if len(matches) == 1:
            return matches[0]
        names = {text: name for name, text in self.named.items()}
        listed = ", ".join(names.get(part.column.text, f'"{part.column.text}"') for _, part in parts)
        if column is None:
            message = f"the row rests on {len(parts)} quoted texts" if parts else "no quoted text was asked of a row"
        else:
            message = f"no quoted text is called {column}"
        raise DataError(message, code="UQL524", help=f"say which one: correct(i, value, column), of {listed or 'none'}")

    def _keys(self, part: _ColumnAnswers, kept: Sequence[int]) -> _Keys:
        """The keys in the ledger of a column's answers about these kept rows."""
        from uql.llm.ledger import keyed
        from uql.llm.ledger_keys import question_key, row_key

        heads = {
            by: [question_key(self._model(by), part.question, together=shared) for shared in (False, True)]
            for by in {int(part.by_model[k]) for k in kept}
        }
        keys = {}
        for k in kept:
            rows = [(row_key(row), row) for row in (rows[k] for rows in part.rows)]
            of_model = heads[int(part.by_model[k])]
            keys[k] = [(keyed(self.secret, head, content), row) for head in of_model for content, row in rows]
        return keys

    def _find_answers(self, keys: list[bytes]) -> dict[bytes, Answer]:
        if self.memory_answers or not keys:
            return self.memory_answers
        with self.ledgers.open(self.ledger) as ledger:
            return ledger.answers(keys)

    def _evidence(
        self, part: _ColumnAnswers, k: int, keys: list[tuple[bytes, Row]], answers: dict[bytes, Answer]
    ) -> Evidence:
        from uql.llm import codec

        place = next((n for n, (key, _) in enumerate(keys) if key in answers), 0)
        key, row = keys[place]
        answer, shared = answers.get(key), place >= len(part.rows)
        model = self._model(int(part.by_model[k]))
        failure, raw = self.failures.get((self.rids[k], part.column.text), ("", ""))
        tokens_in, tokens_out, usd = (
            answer.paid if answer is not None and answer.paid is not None else (None, None, None)
        )
        return Evidence(
            part.column.text,
            tuple(_row_cells(row)),
            _prompt(part.question, row, model, self.seed, shared),
            part.values[k],
            float(part.probabilities[k]),
            codec.dumps(replace(answer, paid=None)) if answer is not None else raw,
            failure,
            model.name,
            key.hex() if answer is not None else "",
            tokens_in,
            tokens_out,
            usd,
            bool(part.asked_mask[k]) or bool(failure),
            bool(part.by_people[k]),
            None if part.t is None or math.isnan(part.t[k]) else float(part.t[k]),
        )


def _flat(of_columns: Sequence[_Keys]) -> list[bytes]:
    return [key for of_rows in of_columns for pairs in of_rows.values() for key, _ in pairs]


def _row_cells(row: Row) -> list[tuple[str, str]]:
    cells = []
    for cell in row.cells:
        value = cell.value
        text = f"{cell.media_type or 'bytes'}, {len(value):,} bytes" if isinstance(value, bytes) else value
        cells.append((f"{cell.table}.{cell.name}" if cell.table else cell.name, "NULL" if text is None else text))
    names = [name for name, _ in row.holes]  # each twice: city, shops.city
    return cells + [(f"{{{n}}}", value) for n, value in row.holes if not any(n.endswith(f".{name}") for name in names)]


def _prompt(question: Question, row: Row, provider: Provider, seed: int, shared: bool) -> str:
    """The words of a request with this question alone: to a model of this machine the row first, to others behind a fence.

    `shared`: the row was one of several in its request; the others are left out.
    """
    if shared:
        prompt = several.prompt((question,), (row,), seed)
    elif provider.is_local:
        prompt = fused.single_prompt(question, row)
    elif fused.is_word((question,), row):
        prompt = fused.word(question, row)
    else:
        prompt = fused.prompt((question,), row, seed)
    return f"{prompt.system}\n{prompt.user}"


async def trace(
    output: Output, ctx: Context, gate: Gate, ledgers: Ledgers, items: Sequence[BoundItem] = ()
) -> Trace | None:
    """What has to be kept of a run, read while its tables are there; None where no model was asked about its rows.

    Args:
        output: the rows of the run.
        gate: the questions went through it.
        ledgers: those of the session.
        items: the columns of the output.
    """
    relation = output.relation
    if relation is None:
        return None
    columns = [
        column_answers.column for column_answers in relation.answers.values() if column_answers.origin.shown_with
    ]
    searched = relation.on_videos
    if not (columns or searched) or (output.rids is None and not output.members and output.estimates is None):
        return None
    behind = _behind(output, relation, [*columns, *searched])
    rids = sorted({rid for part in behind for rid in part})
    if not rids:
        return None
    place = {rid: k for k, rid in enumerate(rids)}
    row_ids = np.array(rids, dtype=np.int64)
    model_rows = {
        together: relation.rows(row_ids, together)
        for together in dict.fromkeys(t for column in columns for t in relation[column].origin.shown_with)
    }
    answers = [
        _ColumnAnswers(
            column,
            relation.question(column),
            relation[column].values[row_ids],
            relation[column].asked_mask[row_ids],
            relation[column].probabilities[row_ids],
            [model_rows[together] for together in relation[column].origin.shown_with],
            _part(relation[column].origin.by_model, row_ids),
            _part(relation[column].origin.by_people, row_ids),
        )
        for column in columns
    ]
    answers += [_moments(column, row_ids, relation) for column in searched]
    texts_by_name = {item.name: item.expr.column.text for item in items if isinstance(item.expr, Virtual)}
    provider = await gate.provider()
    two = (
        (ctx.cascade.small, ctx.cascade.large)
        if ctx.cascade is not None and any(relation[c].origin.by_model is not None for c in columns)
        else ()
    )
    cascade = tuple([await gate.provider(model) for model in two])
    failures = {(e.row, e.clause): (f"{e.kind}: {e.message}", e.raw) for e in ctx.errors}
    provenance = Trace(
        provider,
        gate.ledger.address,
        ledgers,
        gate.ledger.secret,
        gate.run.seed,
        [[place[rid] for rid in part] for part in behind],
        rids,
        answers,
        failures,
        cascade,
        gate.run.id,
        relation.source,
        texts_by_name,
    )
    if gate.ledger.path == ":memory:":
        keys = _flat([provenance._keys(part, range(len(rids))) for part in answers])
        provenance.memory_answers = await gate.ledger.get(keys)
    return provenance


def _moments(column: VirtualColumn, rids: NDArray[np.int64], relation: Relation) -> _ColumnAnswers:
    """The frame of each of these n videos on which the answer to a condition rests, and its answer."""
    from uql.llm.questions import Row

    answers, of = relation[column], relation[column].origin.moments
    assert of is not None
    at = of.at[rids]
    some = np.flatnonzero(at >= 0)
    rows, seconds = [Row()] * len(rids), np.full(len(rids), np.nan)
    for i, row in zip(some.tolist(), of.frames.rows(at[some], [column]), strict=True):
        rows[i] = row
    seconds[some] = of.t[at[some]]
    people = _part(of.frames[column].origin.by_people, at)
    return _ColumnAnswers(
        column,
        relation.question(column),
        answers.values[rids],
        at >= 0,
        of.frames[column].probabilities[at],
        [rows],
        np.zeros(len(rids), np.int8),
        people,
        seconds,
    )


def _behind(output: Output, relation: Relation, columns: list[VirtualColumn]) -> list[list[int]]:
    """The candidate rows behind each output row."""
    blobs = (relation.fields[c].type == "BLOB" for column in columns for c in column.reads if c in relation.fields)
    media = bool(relation.on_videos) or any(blobs)
    most = KEPT_MEDIA if media else KEPT_ROWS
    if output.rids is not None:
        return [[rid] for rid in output.rids[:most].tolist()]
    if output.members:
        return [members[:OF_GROUP].tolist() for members in output.members[: max(1, most // OF_GROUP)]]
    mask = np.logical_or.reduce([relation[column].asked_mask for column in columns])
    return [np.flatnonzero(mask)[:OF_GROUP].tolist()] * min(output.table.num_rows, 1)


def _part(marks: NDArray[Any] | None, rids: NDArray[np.int64]) -> NDArray[Any]:
    """(n,) the marks of these rows, 0 where no row has one."""
    return np.zeros(len(rids), dtype=np.int8) if marks is None else marks[rids]
