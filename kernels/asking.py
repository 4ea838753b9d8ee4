"""Putting the questions of a stage about rows of a relation, and keeping what comes back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uql.base.errors import ModelReplyError
from uql.base.media_types import PART
from uql.base.schema import Modality
from uql.base.sql_text import literal
from uql.compiler.physical import Stage
from uql.compiler.virtual import VirtualColumn
from uql.kernels import cascade_ask, sem_classify
from uql.kernels.answers import Rids, RowError
from uql.kernels.base import Context
from uql.kernels.duck import quote
from uql.kernels.relation import Relation, to_arrow, typed_answer
from uql.llm.corrections import overruled
from uql.llm.questions import NONE, Answers

MOST_RECALLED = 50_000  # rows that are looked up in the ledger before a sample is drawn, or a query refused


async def ask(stage: Stage, rids: Rids, relation: Relation, ctx: Context) -> None:
    """Puts the questions of a stage about these rows, those already asked left out. What the budget refuses stays unasked.

    Args:
        stage: the questions, with the riders that go along.
        rids: (n,) int, rows of the relation.
    Raises: ModelReplyError under on_error = 'raise', where a reply cannot be read.
    """
    _report(stage.columns, rids, relation, ctx)
    if stage.riders:
        await _recall_without_riders(stage, rids, relation, ctx)
    for column in stage.columns:
        derived = relation[column].derived
        if derived is not None:
            await derived.answer(rids[~relation[column].asked_mask[rids]], ctx)
    own = [c for c in stage.columns if relation[c].derived is None]
    open_ = [c for c in own if not bool(relation[c].asked_mask[rids].all())]
    if not open_:
        return
    missing = np.zeros(len(rids), dtype=bool)
    for column in open_:
        _shown_together(column, stage, relation)
        missing |= ~relation[column].asked_mask[rids]
    open_rids = rids[missing]
    rows = relation.rows(open_rids, stage.columns)
    along = [c for c in stage.riders if _rides(c, relation) and not bool(relation[c].asked_mask[open_rids].all())]
    for column in along:
        relation[column].origin.shown_with.append(stage.columns)
    open_ += along
    questions = [relation.question(c) for c in open_]
    ctx.gate.attempted.update(q for c, q in zip(open_, questions, strict=True) if c.attempt or c.lenient)
    places = [await sem_classify.nearest(c, relation, ctx, alone=len(open_) == 1) for c in open_]
    if ctx.cascade is not None and cascade_ask.takes(ctx.cascade, questions, relation, ctx):
        replies = await cascade_ask.ask(ctx.cascade, open_, questions, open_rids, rows, relation, ctx)
    elif any(place is not None for place in places):
        replies = await sem_classify.ask_each(questions, places, open_rids, rows, ctx, relation.source)
    else:
        replies = await ctx.ask(questions, rows, relation.source, stage.rows)
    for column, answers in zip(open_, replies, strict=True):
        _keep(column, open_rids, answers, relation, ctx, rides=column in along)


async def recall(stage: Stage, rids: Rids, relation: Relation, ctx: Context, *, again: bool = False) -> None:
    """Takes from the ledger what it knows of these rows. Makes no call. A row that it does not know is looked up once a run.

    Answers that are derived from rows are left alone: what was answered of pairs side by side is less reliable.

    Args:
        stage: the questions, all of the same rows.
        rids: (n,) int, rows of the relation.
        again: rows are looked up anew after further calls: since then an equal row may have been asked.
    """
    if any(relation[c].derived is not None for c in stage.columns):
        return
    rids = rids[~np.logical_and.reduce([relation[c].asked_mask[rids] for c in stage.columns])]
    questions = [relation.question(c) for c in stage.columns]
    empty = _is_null(stage.columns, relation)
    if empty is not None and not await ctx.gate.ever_asked(questions):
        rids = rids[relation.stored(rids, (empty,)).column(0).to_numpy(zero_copy_only=False)]
    looked_up = relation.filters.looked_up.setdefault((tuple(questions), stage.rows), np.full(relation.n, -1))
    calls = ctx.gate.budget.spent_calls
    rids = rids[looked_up[rids] < (calls if again else 0)]
    looked_up[rids] = calls
    most = relation.at_once(stage.columns, len(rids))
    for start in range(0, len(rids), most):
        part = rids[start : start + most]
        rows = relation.rows(part, stage.columns)
        replies = await ctx.gate.ledger_answers(questions, rows, together=stage.rows)
        for column, answers in zip(stage.columns, replies, strict=True):
            if len(answers.failures) < len(part):  # some are known
                _shown_together(column, stage, relation)
            _keep(column, part, answers, relation, ctx)


async def open_calls(stages: Sequence[Stage], relation: Relation, ctx: Context, rids: Rids | None = None) -> int:
    """Calls that asking these stages of these rows (None: all) still takes; what the ledger knows is taken from there.

    Args:
        stages: in the order in which they are asked.
        rids: (n,) int, rows of the relation; None: all.
    """
    rows = np.arange(relation.n, dtype=np.int64) if rids is None else rids
    for stage in stages:
        if len(rows) <= MOST_RECALLED and all(c.by_row for c in stage.columns):
            await recall(stage, rows, relation, ctx)
    return relation.calls(stages, rids)


def fitting(
    stages: Sequence[Stage], rids: Rids, relation: Relation, ctx: Context, reserved: int = 0
) -> NDArray[np.bool_]:
    """(n,) of these rows those that have their values, and as many more as the budget has calls for.

    Args:
        stages: of the values.
        rids: (n,) int, rows of the relation.
        reserved: calls that are kept for what follows.
    """
    columns = [column for stage in stages for column in stage.columns]
    is_open: NDArray[np.bool_] = np.logical_or.reduce([~relation[c].asked_mask[rids] for c in columns])
    left = ctx.purse.remaining
    return ~is_open | (np.cumsum(is_open) * len(stages) <= (np.inf if left is None else left - reserved))


async def in_ledger(column: VirtualColumn, relation: Relation, ctx: Context) -> bool:
    """Was the column's question ever asked before this run?

    Args:
        column: of the relation; the answer is kept with it for the run.
    """
    answers = relation[column]
    if answers.origin.in_ledger is None:
        answers.origin.in_ledger = await ctx.gate.ever_asked([relation.question(column)])
    return answers.origin.in_ledger


async def _recall_without_riders(stage: Stage, rids: Rids, relation: Relation, ctx: Context) -> None:
    """Takes from the ledger what it knows of the stage's own columns: a rider never makes a row be asked."""
    recallable = [await in_ledger(column, relation, ctx) for column in stage.columns]
    missing = np.logical_or.reduce([~relation[c].asked_mask[rids] for c in stage.columns])
    if missing.any() and all(recallable):
        await recall(stage, rids[missing], relation, ctx)


def _shown_together(column: VirtualColumn, stage: Stage, relation: Relation) -> None:
    together = relation[column].origin.shown_with
    if stage.columns not in together:
        together.append(stage.columns)


def _rides(column: VirtualColumn, relation: Relation) -> bool:
    """A group rides along once its taxonomy is there."""
    return not column.names_groups or bool(relation[column].prompt.labels)


def _report(columns: Sequence[VirtualColumn], rids: Rids, relation: Relation, ctx: Context) -> None:
    """Lists the failures of riders on rows that need their values."""
    for column in columns:
        errors = relation[column].origin.held_errors
        for rid in rids.tolist() if errors else ():
            if rid in errors:
                ctx.errors.append(errors.pop(rid))


def _is_null(columns: Sequence[VirtualColumn], relation: Relation) -> str | None:
    """SQL that is true of the rows of which there may be nothing to ask; None where DuckDB cannot tell: files, pairs, holes alone.

    Of a frame or a page there is something to ask unless it turns out to be unreadable when it is shown.
    """
    reads = tuple(dict.fromkeys(c for column in columns for c in column.reads))
    if len({c.table for column in columns for c in column.inputs}) != 1 or not reads:
        return None
    files: list[str] = []
    for c in reads:
        f = relation.fields.get(c)
        if f is None or f.type != "VARCHAR" or f.modality not in (Modality.TEXT, Modality.STRUCTURED, Modality.IMAGE):
            return None
        if f.modality is Modality.IMAGE:
            files.append(f"coalesce(NOT system.main.regexp_full_match({quote(c.label)}, {literal(PART)}, 's'), false)")
    empty = " AND ".join(f"{quote(c.label)} IS NULL" for c in reads)
    return " OR ".join([f"({empty})", *files])


def _keep(
    column: VirtualColumn, rids: Rids, answers: Answers, relation: Relation, ctx: Context, *, rides: bool = False
) -> None:
    """Writes replies into the relation: values, probabilities, and failures by row."""
    column_answers = relation[column]

    def fail(rid: int, kind: str, message: str, raw: str = "") -> None:
        if column.attempt:  # TRY: the failure is part of the value
            column_answers.origin.note(rid, f"{kind}: {message}")
            return
        if ctx.settings.on_error == "raise":
            raise ModelReplyError(f"{kind}: {message}", help=f'it was asked: "{column.text}"')
        column_answers.failed[rid] = True
        error = RowError(rid, column.text, kind, message, raw)
        if rides:
            column_answers.origin.held_errors[rid] = error
        else:
            ctx.errors.append(error)

    values = np.empty(len(rids), dtype=object)
    values[:] = answers.values
    asked_mask = np.ones(len(rids), dtype=bool)
    for failure in answers.failures:
        if failure.kind in ("budget", "interrupted"):
            asked_mask[failure.index] = False
        elif not (column.lenient and failure.of_value):
            fail(int(rids[failure.index]), failure.kind, failure.message, failure.raw)
    for rid in rids.tolist() if relation.unreadable else ():
        for message in [relation.unreadable[rid, c] for c in column.reads if (rid, c) in relation.unreadable][:1]:
            fail(rid, "unreadable", message)
    for i in misfits(column, values, relation):
        if not column.lenient:
            fail(int(rids[i]), "wrong_type", f"{values[i]!r} is not {column.type}", str(values[i])[:200])
        values[i] = None
    column_answers.values[rids] = values
    column_answers.asked_mask[rids] = asked_mask
    column_answers.probabilities[rids] = answers.probabilities
    if answers.by_people:
        column_answers.origin.mark_people(rids[sorted(answers.by_people)])


def misfits(column: VirtualColumn, values: NDArray[np.object_], relation: Relation) -> list[int]:
    """Positions of the values that DuckDB cannot cast to the type of the column, or a part of them.

    Args:
        column: whose answers they are.
        values: (n,) answers; None where there is none.
        relation: has the DuckDB that casts.
    """
    positions = [i for i, value in enumerate(values) if value is not None]
    if column.of_group and (labels := relation.labels(column)):
        return [i for i in positions if values[i] not in (*labels, NONE)]
    if not (column.is_value or column.of_group) or column.type == "VARCHAR":
        return []
    if not positions:
        return []
    plain = typed_answer(replace(column, attempt=False))
    answers = pa.table({column.name: to_arrow(values[positions])})
    cast = relation.duck.arrow(f"SELECT {plain} FROM __answers", {"__answers": answers}).column(0).to_pylist()
    nested = column.type.startswith(("STRUCT", "MAP")) or column.type.endswith("]")
    both = zip(positions, cast, strict=True)
    return [i for i, value in both if value is None or (nested and _loses(values[i], value))]


def _loses(answer: object, cast: object) -> bool:
    """Does the cast of an answer, as Arrow shows it, hold less than the answer? DuckDB makes a STRUCT of NULLs of any JSON.

    >>> _loses([1, "x"], [1, None]), _loses([2], {"a": None}), _loses({"a": 1}, {"a": 1, "b": None}), _loses({"a": 1}, [("a", 1)])
    (True, True, False, False)
    """
    if isinstance(cast, dict | list) and isinstance(answer, str):  # of a ledger, or of a person
        try:
            answer = json.loads(answer)
        except ValueError:  # DuckDB's own form of a list, which it casts as a whole
            return False
    match answer, cast:
        case None, _:
            return False
        case dict(), list():  # a MAP
            return any(map(_loses, answer.values(), (value for _, value in cast)))
        case dict(), dict():
            held = [name for name in cast if name in answer]
            return not held or any(_loses(answer[name], cast[name]) for name in held)
        case list() | tuple(), list():
            return any(map(_loses, answer, cast))
    return cast is None or isinstance(cast, dict | list)


def apply_corrections(column: VirtualColumn, rids: Rids, relation: Relation, ctx: Context) -> None:
    """Puts the answers of people about these pairs in the place of those that were told from the attribute of each row.

    Args:
        column: a condition on pairs.
        rids: (n,) int, pairs of the relation.
    """
    question = relation.question(column)
    if not len(rids) or not ctx.gate.people.knows(question):
        return
    corrections = ctx.gate.people.answers(question, relation.rows(rids, [column]))
    answers = relation[column]
    for i, answer in corrections.items():
        rid = int(rids[i])
        answers.values[rid], answers.probabilities[rid] = answer.value, answer.probability
        answers.failed[rid], answers.asked_mask[rid] = False, True
    answers.origin.mark_people(rids[sorted(corrections)])


def overrule(relation: Relation, ctx: Context) -> bool:
    """Puts answers of people that came after the draws of the run in the place of the model's; False: there are none."""
    changed = False
    for answers in list(relation.answers.values()):
        column = answers.column
        question = relation.question(column)
        if not answers.asked_mask.any() or not ctx.gate.people.knows(question):
            continue
        rids = np.flatnonzero(answers.asked_mask)
        for together in answers.origin.shown_with:
            corrections = ctx.gate.people.answers(question, relation.rows(rids, together), since=ctx.gate.drawn_until)
            if corrections:
                changed, some = True, rids[sorted(corrections)]
                here = dict(enumerate(corrections[i] for i in sorted(corrections)))
                blank = Answers([None] * len(some), np.full(len(some), np.nan))
                answers.failed[some] = False
                mended = set(some.tolist())
                ctx.errors[:] = [e for e in ctx.errors if e.clause != column.text or e.row not in mended]
                _keep(column, some, overruled(question, blank, here), relation, ctx)
    return changed
