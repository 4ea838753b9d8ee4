"""What every kernel works with: the rows of one relation, the answers known of them, and the one way to a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from uql.compiler.cost import PROMPT_TOKENS, Unit
from uql.compiler.formula import Formula, Masks
from uql.compiler.physical import PhysicalPlan, Stage
from uql.compiler.sql import value_type
from uql.compiler.syntax import Column, Expr
from uql.compiler.virtual import Kind, VirtualColumn
from uql.errors import BudgetError, ModelReplyError
from uql.kernels import sem_classify
from uql.kernels.duck import Duck, quote
from uql.kernels.media import loaded
from uql.llm.questions import Answers, Cell, Choice, Extract, Predicate, Question, Row, Score, Write
from uql.media_types import media_type
from uql.sampling.base import Estimate
from uql.schema import Field, Modality
from uql.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.kernels.cascade import Cascade
    from uql.kernels.estimates.carried import Stored
    from uql.kernels.foreseen import Foreseen
    from uql.kernels.guide import RowFeatures
    from uql.llm.draws import DrawLog
    from uql.llm.people import People

Rids = NDArray[np.int64]
RECALLED_AT_ONCE = 4096  # rows looked up in the ledger at once


class Asker(Protocol):
    """The gate, as kernels see it."""

    attempted: set[Question]  # under TRY
    people: People  # whose answers go before the model's

    @property
    def calls_left(self) -> int | None: ...

    @property
    def tokens_left(self) -> int | None: ...

    async def provider(self) -> Any: ...

    async def ask(
        self,
        questions: Sequence[Question],
        rows: Sequence[Row],
        *,
        model: Any = None,
        source: str = "",
        together: int = 1,
    ) -> tuple[Answers, ...]: ...

    async def known(
        self, questions: Sequence[Question], rows: Sequence[Row], *, together: int = 1
    ) -> tuple[Answers, ...]: ...

    async def asked(self, questions: Sequence[Question]) -> bool: ...

    async def audited(self, question: Question) -> tuple[str, dict[str, float] | None]: ...


class Memory(Protocol):
    """What earlier queries taught, as kernels see it."""

    rates: dict[str, tuple[int, int]]  # of terms by name: answers, and how many of them are true

    def answers(self, name: str) -> Masks | None: ...

    def keep(self, name: str, masks: Masks) -> None: ...

    def output_tokens(self) -> dict[str, float]: ...


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

    def drawn(self, rng: np.random.Generator) -> Masks | None:
        """(pairs,) answers that may as well be: the value of each row drawn by its chances; None where these are not known."""
        ...

    async def answer(self, rids: Rids, ctx: Context) -> None:
        """Fills in these pairs; those that the budget does not reach stay unasked."""
        ...

    def calls(self, rids: Rids | None) -> int:
        """Calls that these pairs (None: all) still take."""
        ...


@dataclass(frozen=True, slots=True)
class RowError:
    """One answer that could not be had."""

    row: int  # position among the candidate rows of its query block
    clause: str  # the quoted text
    kind: str
    message: str
    raw: str = ""


@dataclass(slots=True)
class Context:
    """One run: the gate, the settings, one random generator, and what there is to say about the result."""

    gate: Asker
    settings: Settings
    rng: np.random.Generator
    duck: Duck
    errors: list[RowError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    based_on: list[str] = field(default_factory=list)  # estimated tables that the result rests on
    unverified: Rids | None = None  # candidate rows returned unasked (precision = …)
    exact: bool = True
    partial: bool = False
    memory: Memory | None = None
    on_estimate: Callable[[str, Estimate], None] | None = None  # the estimate so far, by name
    cascade: Cascade | None = None  # a small and a large model for conditions
    unit: Unit = field(default_factory=Unit)  # what a token costs, by which plans are compared
    rows_at_once: int = 1  # that a request to this model may hold
    prompt: float = PROMPT_TOKENS  # tokens of a request to it, without the row and the questions
    features: RowFeatures | None = None  # None: samples and searches go without
    groups: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = field(
        default_factory=dict
    )  # names and descriptions of groups by their text: those found, and those of a semantic table, which stay
    groups_stay: bool = False
    stored: dict[tuple[int, tuple[str, ...]], tuple[PhysicalPlan, Stored]] = field(
        default_factory=dict
    )  # sub-queries that were run, and their rows
    draws: DrawLog | None = None  # where samples are written down before they are asked; None: nowhere
    later: int = 0  # parts of the statement that ask a model and are run after this one
    held: int = 0  # calls that are kept for them while this one does with a sample

    @property
    def calls_left(self) -> int | None:
        left = self.gate.calls_left
        return None if left is None else max(0, left - self.held)

    @property
    def tokens_left(self) -> int | None:
        """Tokens that may still be spent for sure; None: without limit."""
        return self.gate.tokens_left

    def note_once(self, about: str, text: str) -> None:
        """A note in place of an earlier one about the same."""
        self.notes[:] = [*(note for note in self.notes if not note.startswith(about)), about + text]

    def fits(self, calls: int) -> bool:
        """Does the budget leave that many calls?"""
        left = self.calls_left
        return left is None or calls <= left

    async def drawn(self, step: str, rows: Rids) -> None:
        """Writes down which rows a sampler chose, before they are asked."""
        if self.draws is not None:
            await self.draws.drawn(step, rows)

    async def ask(
        self, questions: Sequence[Question], rows: Sequence[Row], source: str = "", together: int = 1
    ) -> tuple[Answers, ...]:
        """The answers to questions about rows; `source` is the table they come from, by which the ledger can forget them.

        `together` rows share one request.
        """
        return await self.gate.ask(questions, rows, source=source, together=together)

    async def describes(self) -> bool:
        """Are groups named with a description? Small local models do worse with one."""
        return bool((await self.gate.provider()).capabilities.descriptions)

    async def write(self, question: Write, *, source: str = "", optional: bool = False) -> Any:
        """The reply to one request about many rows, or None where none could be had; the failure is in `errors`.

        `source` is the table whose rows it shows. An optional one only makes the answer better: its failure is a warning.
        """
        (answers,) = await self.gate.ask([question], [Row()], source=source)
        for failure in answers.failures:
            if optional:
                self.warnings.append(f'{question.task} for "{question.text}": {failure.message}')
            else:
                self.errors.append(RowError(-1, question.text, failure.kind, failure.message, failure.raw))
        return answers.values[0]


class Relation:
    """A materialised table of candidate rows in DuckDB, seen by kernels as row ids 0 … n − 1, and the answers known of them.

    Its columns are called "alias.name". Answers are kept by virtual column: `asked`, `failed` and `values` are arrays over the rows.
    """

    def __init__(self, duck: Duck, name: str, n: int, fields: dict[Column, Field], source: str = "") -> None:
        self.duck, self.name, self.n, self.fields, self.source = duck, name, n, fields, source
        self.values: dict[int, NDArray[np.object_]] = {}
        self.asked: dict[int, NDArray[np.bool_]] = {}
        self.failed: dict[int, NDArray[np.bool_]] = {}
        self.probabilities: dict[int, NDArray[np.float32]] = {}
        self.columns: dict[int, VirtualColumn] = {}
        self.messages: dict[int, NDArray[np.object_]] = {}  # of TRY: why there is no answer
        self.nearest: dict[int, NDArray[np.int64]] = {}  # of long lists of labels: those shown of each row
        self.labels: dict[int, tuple[str, ...]] = {}  # of taxonomies and label queries, once they are known
        self.descriptions: dict[int, tuple[str, ...]] = {}
        self.shown_with: dict[int, list[tuple[VirtualColumn, ...]]] = {}  # the columns whose reads were shown together
        self.seen: dict[Expr, tuple[int, int]] = {}  # answers to a term of a formula, and how many of them are true
        self.profiles: dict[Formula, Masks] = {}  # (leaves, m) what is known of the rows asked, OPEN where not asked
        self.orders: dict[
            Formula, tuple[int, tuple[int, ...]]
        ] = {}  # the order of a formula's stages, and when it was found
        self.by_model: dict[
            int, NDArray[np.int8]
        ] = {}  # of a cascade: 1 where the small model answered, 2 where the large one did
        self.stops = False  # at the k-th row that passes: how many rows will be asked is not known
        self.examples: dict[
            int, tuple[tuple[str, str], ...]
        ] = {}  # of the user's own, that stand in the prompt: text, answer
        self.by_people: dict[int, NDArray[np.bool_]] = {}  # rows that a person answered in the model's place
        self.in_ledger: dict[int, bool] = {}  # by column: was its question ever asked, before the run asked it?
        self.judged: dict[Formula, Masks] = {}  # (leaves, N) the same by row
        self.foreseen: dict[Formula, Foreseen] = {}  # what embeddings tell of each row's answers
        self.unreadable: dict[tuple[int, Column], str] = {}  # values whose files could not be had, and why
        self.unsaid: dict[int, dict[int, RowError]] = {}  # of riders, by column and row: said where the row passes
        self.derived: dict[int, Derived] = {}  # by column: conditions on pairs that are answered from their rows

    # -------------------------------------------------------------------------------------------------- answers
    def know(self, column: VirtualColumn) -> None:
        if column.id not in self.columns:
            self.columns[column.id] = column
            self.values[column.id] = np.full(self.n, None, dtype=object)
            self.asked[column.id] = np.zeros(self.n, dtype=bool)
            self.failed[column.id] = np.zeros(self.n, dtype=bool)
            self.probabilities[column.id] = np.full(self.n, np.nan, dtype=np.float32)

    def answered(self, column: VirtualColumn, rids: Rids, by_large: NDArray[np.bool_]) -> None:
        """Keeps which model of a cascade answered a column for these rows."""
        found = self.by_model.setdefault(column.id, np.zeros(self.n, dtype=np.int8))
        found[rids] = np.where(by_large, 2, 1)

    def question(self, column: VirtualColumn) -> Question:
        """What is put to the model about one row for this virtual column."""
        shown = self.examples.get(column.id)
        return replace(self._question(column), examples=shown) if shown else self._question(column)

    def _question(self, column: VirtualColumn) -> Question:
        match column.kind:
            case Kind.CONDITION:
                return Predicate(column.text)
            case Kind.SCORE:
                return Score(column.text)
            case Kind.CHOICE | Kind.GROUP:
                labels = self.labels.get(column.id, column.labels)
                descriptions = self.descriptions.get(column.id, ())
                return Choice(column.text, labels, descriptions, column.none_of_these, column.many)
        return Extract(column.text, column.type)

    def calls(self, wanted: Sequence[Stage], rids: Rids | None = None) -> int:
        """Calls that asking these stages of these rows (None: all) still takes: rows of equal content are asked once, NULLs never."""
        total = 0
        for stage in wanted:
            missing = np.zeros(self.n if rids is None else len(rids), dtype=bool)
            for column in stage.columns:
                self.know(column)
                if column.id in self.derived:
                    total += self.derived[column.id].calls(rids)
                    continue
                missing |= ~(self.asked[column.id] if rids is None else self.asked[column.id][rids])
            count = int(missing.sum())
            shown = dict.fromkeys(c for column in stage.columns for c in (*column.reads, *column.holes))
            if count and shown:
                import pyarrow as pa

                open_ = np.flatnonzero(missing) if rids is None else rids[missing]
                names = ", ".join(quote(c.label) for c in shown)
                sides: dict[str, list[str]] = {}
                for c in stage.reads or tuple(shown):
                    sides.setdefault(c.table, []).append(f"{quote(c.label)} IS NOT NULL")
                said = " AND ".join(f"({' OR '.join(parts)})" for parts in sides.values())
                found = self.duck.arrow(
                    f"SELECT COUNT(*) FROM (SELECT DISTINCT {names} FROM {quote(self.name)} AS r "
                    f"JOIN __open AS o ON o.__rid = r.rowid WHERE {said})",
                    {"__open": pa.table({"__rid": pa.array(open_.astype(np.int64))})},
                )
                count = int(found.column(0)[0].as_py())
            total += count
        return total

    async def ask(self, stage: Stage, rids: Rids, ctx: Context) -> None:
        """Puts the questions of a stage about these rows, those already asked left out. What the budget refuses stays unasked."""
        for column in (*stage.columns, *stage.riders):
            self.know(column)
        self._say(stage.columns, rids, ctx)
        if stage.riders:
            await self._known_without_riders(stage, rids, ctx)
        for column in stage.columns:
            if column.id in self.derived:
                await self.derived[column.id].answer(rids[~self.asked[column.id][rids]], ctx)
        own = [c for c in stage.columns if c.id not in self.derived]
        open_ = [c for c in own if not bool(self.asked[c.id][rids].all())]
        if not open_:
            return
        for column in open_:
            together = self.shown_with.setdefault(column.id, [])
            if stage.columns not in together:
                together.append(stage.columns)
        missing = np.zeros(len(rids), dtype=bool)
        for column in open_:
            missing |= ~self.asked[column.id][rids]
        wanted = rids[missing]
        rows = self.rows(wanted, stage.columns)
        along = [c for c in stage.riders if self._rides(c) and not bool(self.asked[c.id][wanted].all())]
        for column in along:
            self.shown_with.setdefault(column.id, []).append(stage.columns)
        open_ += along
        questions = [self.question(c) for c in open_]
        ctx.gate.attempted.update(q for c, q in zip(open_, questions, strict=True) if c.attempt)
        places = [sem_classify.nearest(c, self, ctx) for c in open_]
        if ctx.cascade is not None and ctx.cascade.takes(questions, self, ctx):
            replies = await ctx.cascade.ask(open_, questions, wanted, rows, self, ctx)
        elif any(place is not None for place in places):
            replies = await sem_classify.ask_each(questions, places, wanted, rows, ctx, self.source)
        else:
            replies = await ctx.ask(questions, rows, self.source, stage.rows)
        for column, answers in zip(open_, replies, strict=True):
            self._keep(column, wanted, answers, ctx, rides=column in along)

    async def _known_without_riders(self, stage: Stage, rids: Rids, ctx: Context) -> None:
        """Takes from the ledger what earlier queries learned of the stage's own columns: a rider never makes a row be asked."""
        for column in stage.columns:
            if column.id not in self.in_ledger:
                self.in_ledger[column.id] = await ctx.gate.asked([self.question(column)])
        missing = np.logical_or.reduce([~self.asked[c.id][rids] for c in stage.columns])
        if missing.any() and all(self.in_ledger[c.id] for c in stage.columns):
            for column in stage.columns:
                together = self.shown_with.setdefault(column.id, [])
                if stage.columns not in together:
                    together.append(stage.columns)
            await self.recall(stage, rids[missing], ctx)

    def _rides(self, column: VirtualColumn) -> bool:
        """A group rides along once its taxonomy is there."""
        return column.kind is not Kind.GROUP or bool(self.labels.get(column.id))

    def _say(self, columns: Sequence[VirtualColumn], rids: Rids, ctx: Context) -> None:
        """Lists the failures of riders on rows that need their values."""
        for column in columns:
            held = self.unsaid.get(column.id)
            for rid in rids.tolist() if held else ():
                if held and rid in held:
                    ctx.errors.append(held.pop(rid))

    async def recall(self, stage: Stage, rids: Rids, ctx: Context) -> None:
        """Takes from the ledger what it knows of these rows; asks nobody."""
        for column in stage.columns:
            self.know(column)
        if any(
            c.id in self.derived for c in stage.columns
        ):  # what was said of pairs side by side is not to be relied on
            return
        rids = rids[~np.logical_and.reduce([self.asked[c.id][rids] for c in stage.columns])]
        questions = [self.question(c) for c in stage.columns]
        empty = self._empty(stage.columns)
        if empty is not None and not await ctx.gate.asked(questions):
            rids = rids[self.fetch(rids, [empty]).column(0).to_numpy(zero_copy_only=False)]
        for start in range(0, len(rids), RECALLED_AT_ONCE):
            part = rids[start : start + RECALLED_AT_ONCE]
            rows = self.rows(part, stage.columns)
            replies = await ctx.gate.known(questions, rows, together=stage.rows)
            for column, answers in zip(stage.columns, replies, strict=True):
                self._keep(column, part, answers, ctx)

    def _empty(self, columns: Sequence[VirtualColumn]) -> str | None:
        """SQL that is true of the rows which nobody is asked about; None where DuckDB cannot tell: files, pairs, holes alone."""
        reads = tuple(dict.fromkeys(c for column in columns for c in column.reads))
        held = [self.fields.get(c) for c in reads]
        if any(
            f is None or f.type != "VARCHAR" or f.modality not in (Modality.TEXT, Modality.STRUCTURED) for f in held
        ):
            return None
        if len({c.table for column in columns for c in (*column.reads, *column.holes)}) != 1 or not reads:
            return None
        return " AND ".join(f"{quote(c.label)} IS NULL" for c in reads)

    def _keep(self, column: VirtualColumn, rids: Rids, answers: Answers, ctx: Context, *, rides: bool = False) -> None:
        def wrong(error: RowError) -> None:
            if ctx.settings.on_error == "raise":
                raise ModelReplyError(f"{error.kind}: {error.message}", help=f'it was asked: "{column.text}"')
            self.failed[column.id][error.row] = True
            if rides:
                self.unsaid.setdefault(column.id, {})[error.row] = error
            else:
                ctx.errors.append(error)

        values = np.empty(len(rids), dtype=object)
        values[:] = answers.values
        asked = np.ones(len(rids), dtype=bool)
        for failure in answers.failures:
            if failure.kind in ("budget", "interrupted"):
                asked[failure.index] = False
                continue
            rid = int(rids[failure.index])
            if column.attempt:  # TRY: the failure is part of the value
                why = self.messages.setdefault(column.id, np.full(self.n, None, dtype=object))
                why[rid] = f"{failure.kind}: {failure.message}"
                continue
            wrong(RowError(rid, column.text, failure.kind, failure.message, failure.raw))
        for rid in rids.tolist() if self.unreadable else ():
            for message in [self.unreadable[rid, c] for c in column.reads if (rid, c) in self.unreadable][:1]:
                if column.attempt:
                    self.messages.setdefault(column.id, np.full(self.n, None, dtype=object))[rid] = (
                        f"unreadable: {message}"
                    )
                else:
                    wrong(RowError(rid, column.text, "unreadable", message))
        for i in self._misfits(column, values):
            rid, said = int(rids[i]), f"{values[i]!r} is no {column.type}"
            if column.attempt:
                self.messages.setdefault(column.id, np.full(self.n, None, dtype=object))[rid] = f"wrong_type: {said}"
            else:
                wrong(RowError(rid, column.text, "wrong_type", said, str(values[i])[:200]))
            values[i] = None
        self.values[column.id][rids] = values
        self.asked[column.id][rids] = asked
        self.probabilities[column.id][rids] = answers.probabilities
        if answers.by_people:
            mine = self.by_people.setdefault(column.id, np.zeros(self.n, dtype=bool))
            mine[rids[sorted(answers.by_people)]] = True

    def _misfits(self, column: VirtualColumn, values: NDArray[np.object_]) -> list[int]:
        """Positions of the values that DuckDB cannot cast to the type of the column."""
        import pyarrow as pa

        known = [i for i, value in enumerate(values) if value is not None]
        if column.kind is not Kind.EXTRACT or column.type == "VARCHAR" or not known:
            return []
        plain = _typed(replace(column, attempt=False))
        answers = pa.table({column.name: _to_arrow(values[known])})
        cast = self.duck.arrow(f"SELECT {plain} FROM __answers", {"__answers": answers}).column(0).to_pylist()
        return [i for i, value in zip(known, cast, strict=True) if value is None]

    # ----------------------------------------------------------------------------------------------------- rows
    def rows(self, rids: Rids, columns: Sequence[VirtualColumn]) -> list[Row]:
        """What the model is shown of each row."""
        reads = tuple(dict.fromkeys(c for column in columns for c in column.reads))
        holes = tuple(dict.fromkeys(c for column in columns for c in column.holes))
        if not len(rids):
            return []
        table = self.fetch(rids, [self._shown(c) for c in (*reads, *holes)])
        lists = [table.column(i).to_pylist() for i in range(len(reads) + len(holes))]
        for j, c in enumerate(reads):
            lists[j], missing = loaded(lists[j], self.fields.get(c), self.duck.media)
            self.unreadable.update({(int(rids[i]), c): why for i, why in missing.items()})
        several = len({c.table for c in (*reads, *holes)}) > 1
        result = []
        for i, rid in enumerate(rids.tolist()):
            if self.unreadable and any((rid, c) in self.unreadable for c in reads):
                result.append(Row())  # asked of nobody
                continue
            cells = tuple(_cell(c, lists[j][i], c.table if several else "") for j, c in enumerate(reads))
            named = []
            for j, c in enumerate(holes, start=len(reads)):
                value = lists[j][i]
                said = "unknown" if value is None else str(value)
                if value is not None or cells:  # a question of holes alone, all NULL, is asked of nobody
                    named += [(c.name, said), (c.label, said)]
            result.append(Row(cells, tuple(named)))
        return result

    def texts(self, reads: Sequence[Column]) -> list[str]:
        """What the model is shown of every row, as one text each: what features are made of."""
        table = self.duck.arrow(
            f"SELECT {', '.join(self._shown(c) for c in reads)} FROM {quote(self.name)} ORDER BY rowid"
        )
        lists = [table.column(i).to_pylist() for i in range(len(reads))]
        return ["\n".join(v for v in row if isinstance(v, str)) for row in zip(*lists, strict=True)]

    def _shown(self, column: Column) -> str:
        found = self.fields.get(column)
        if found is not None and found.type == "BLOB":
            return quote(column.label)
        return f"CAST({quote(column.label)} AS VARCHAR)"

    # ------------------------------------------------------------------------------------------------------ SQL
    def fetch(self, rids: Rids, expressions: Sequence[str]) -> pa.Table:
        """The values of SQL expressions over columns and answers, for these rows in this order: one column each."""
        import pyarrow as pa

        wanted = pa.table({"__rid": pa.array(rids), "__pos": pa.array(np.arange(len(rids), dtype=np.int64))})
        return self.duck.arrow(
            f"SELECT {', '.join(f'{e} AS e{i}' for i, e in enumerate(expressions))} FROM __wanted AS w "
            f"JOIN {quote(self.name)} AS r ON r.rowid = w.__rid ORDER BY w.__pos",
            {"__wanted": wanted},
        )

    def with_answers(self, rids: Rids, columns: Sequence[VirtualColumn], **extra: NDArray[Any]) -> pa.Table:
        """An Arrow table of __rid, __pos, the answers as text or number under their internal names, and extra arrays."""
        import pyarrow as pa

        data: dict[str, Any] = {
            "__rid": pa.array(rids),
            "__pos": pa.array(np.arange(len(rids), dtype=np.int64)),
        }
        for column in columns:
            self.know(column)
            data[column.name] = _to_arrow(self.values[column.id][rids])
            if column.attempt:
                why = self.messages.get(column.id)
                texts = [None] * len(rids) if why is None else list(why[rids])
                data[f"{column.name}_why"] = pa.array(texts, type=pa.string())
        data.update({name: pa.array(values) for name, values in extra.items()})
        return pa.table(data)

    def evaluate(self, exprs: Sequence[Expr], rids: Rids, columns: Sequence[VirtualColumn], ctx: Context) -> pa.Table:
        """The values of expressions for these rows in this order, by DuckDB, over columns and answers."""
        parts = [f"{ctx.duck.expression(e)} AS e{i}" for i, e in enumerate(exprs)]
        joined, arrays = self.joined(rids, columns)
        return self.duck.arrow(f"SELECT {', '.join(parts)} FROM {joined} ORDER BY __pos", arrays)

    def joined(
        self, rids: Rids, columns: Sequence[VirtualColumn], **extra: NDArray[Any]
    ) -> tuple[str, dict[str, pa.Table]]:
        """A FROM clause with every column, answer (in its type) and extra array of these rows, and the Arrow table it needs."""
        answers = self.with_answers(rids, columns, **extra)
        kept = ["__rid", "__pos", *extra]
        cast = [_typed(column) for column in columns]
        return (
            f"(SELECT {', '.join([*kept, *cast])} FROM __answers) AS a JOIN {quote(self.name)} AS r ON r.rowid = a.__rid",
            {"__answers": answers},
        )


def _cell(column: Column, value: Any, table: str) -> Cell:
    if isinstance(value, bytes):
        return Cell(column.name, value, table, media_type(value))
    return Cell(column.name, value, table)


def _to_arrow(values: NDArray[np.object_]) -> pa.Array:
    """Booleans and numbers as such, all else as text (JSON for lists and structs)."""
    import pyarrow as pa

    known = [v for v in values if v is not None]
    if all(isinstance(v, bool) for v in known):
        return pa.array(list(values), type=pa.bool_())
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in known):
        return pa.array([None if v is None else float(v) for v in values], type=pa.float64())
    texts = [
        None if v is None else v if isinstance(v, str) else json.dumps(v) if isinstance(v, list | dict) else str(v)
        for v in values
    ]
    return pa.array(texts, type=pa.string())


def _typed(column: VirtualColumn) -> str:
    """The answer in its DuckDB type; what does not fit is NULL. That of a TRY is a STRUCT of the answer and the error."""
    name = quote(column.name)
    if column.attempt:
        plain = _typed(replace(column, attempt=False)).rpartition(" AS ")[0]
        return f"struct_pack(value := {plain}, error := {quote(f'{column.name}_why')}) AS {name}"
    if column.many:
        return f"TRY_CAST(TRY_CAST({name} AS JSON) AS VARCHAR[]) AS {name}"
    if column.type.endswith("[]") or column.type.startswith(("STRUCT", "MAP")):
        return f"TRY_CAST(TRY_CAST({name} AS JSON) AS {column.type}) AS {name}"
    return f"TRY_CAST({name} AS {value_type(column)}) AS {name}"


def need(ctx: Context, calls: int, what: str, less: str = "") -> None:
    """Raises UQL401 before anything is sent, where that many calls do not fit in the budget. `less`: what would take fewer."""
    left = ctx.calls_left
    if left is not None and calls > left:
        raise BudgetError(
            f"{what} needs {calls:,} calls and the budget leaves {left:,}; nothing was sent",
            help=f"{less}{', or ' if less else ''}WITH (budget = {calls}), or WITH (budget = 'all')",
        )
