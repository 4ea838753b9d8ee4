"""sem_classify: which of the labels? Long lists of labels are narrowed for each row to those nearest in meaning, before it is asked.

A list of its own for each row is no prefix that prompts share. A model of this machine, which evaluates a shared prefix once, is
shown all labels. Measured on 39 rows of banking77 (77 labels) with the local 1.5B model on one thread: 15 fresh tokens, 1.2 seconds
of a processor a row and 17 right with all labels; 230 tokens, 7 seconds and 20 right with the 30 nearest, which hold the right one for 38.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from uql.compiler.bound import Bound
from uql.compiler.sql import query_sql
from uql.compiler.virtual import VirtualColumn
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.relation import Relation
from uql.llm.providers.base import Capabilities
from uql.llm.questions import Answers, Choice, Question, Row
from uql.operators.texts import short
from uql.sampling.base import Indices

MOST_LABELS = 50  # that are shown at once
NEAREST = 30  # of a longer list, shown of each row
MENU = 0.5  # of the context, at most, that a list shown whole takes
ROWS = 256  # whose requests are made at once, each with a question of its own


def label_queries(columns: Sequence[VirtualColumn], relation: Relation) -> None:
    """The labels of `"…" IN (SELECT name FROM t)`, from the table.

    Args:
        columns: those without such a query are left as they are.
    """
    for column in columns:
        if column.label_query is None:
            continue
        assert isinstance(column.label_query, Bound)
        rows = relation.duck.arrow(query_sql(column.label_query.query)).column(0).to_pylist()
        labels = dict.fromkeys((*column.labels, *(str(r) for r in rows if r is not None)))
        relation[column].prompt.labels = tuple(labels)


async def nearest(column: VirtualColumn, relation: Relation, ctx: Context, *, alone: bool) -> Indices | None:
    """(rows, NEAREST) the labels nearest to each row, in the order of the list; None where all are shown, or rows have no text.

    A note says that the labels were narrowed.

    Args:
        column: a text with labels.
        alone: no other question is in its requests, so that the list may stand before the row.
    """
    if not column.is_label:
        return None
    labels = relation.labels(column)
    if len(labels) <= MOST_LABELS or ctx.features is None:
        return None
    if alone and is_shared((await ctx.gate.provider()).capabilities, labels):
        return None
    if relation[column].prompt.nearest is None:
        table = ctx.features.of(relation, column.reads)
        if table is None:
            return None
        cosines = table.cosines(labels)
        best = np.argpartition(-cosines, NEAREST - 1, axis=1)[:, :NEAREST]
        relation[column].prompt.nearest = np.sort(best, axis=1).astype(np.int64)
        ctx.notes.append(f'"{column.text}": of {len(labels)} labels, each row was shown the {NEAREST} nearest to it')
    return relation[column].prompt.nearest


def is_shared(capabilities: Capabilities, labels: Sequence[str]) -> bool:
    """Are labels shown before the row evaluated once for all rows, and do they fit the context beside one?"""
    tokens = sum(len(short(label).encode()) // 3 + 4 for label in labels)  # more than there are, in most languages
    return capabilities.shares_prefix and tokens <= MENU * (capabilities.context or 0)


async def ask_each(
    questions: Sequence[Question],
    places: Sequence[Indices | None],
    rids: Rids,
    rows: Sequence[Row],
    ctx: Context,
    source: str,
) -> tuple[Answers, ...]:
    """Asks each row with its own labels: `places[q]` is what `nearest` gives for question q. Still one request a row.

    Args:
        questions: (q,) what is asked.
        places: (q,) what `nearest` gives for each.
        rids, rows: (n,) the rows, and what is shown of each.
        source: the table that they come from.
    Returns: (q,) the answers to each question, n each.
    """
    replies: list[tuple[Answers, ...]] = []
    for start in range(0, len(rows), ROWS):
        part = range(start, min(start + ROWS, len(rows)))
        asks = [
            ctx.ask([_of_row(q, p, rids[i]) for q, p in zip(questions, places, strict=True)], [rows[i]], source)
            for i in part
        ]
        replies += await asyncio.gather(*asks)
    return tuple(_together([answers[j] for answers in replies]) for j in range(len(questions)))


def _of_row(question: Question, place: Indices | None, rid: int) -> Question:
    if place is None:
        return question
    assert isinstance(question, Choice)
    chosen = place[rid]
    described = tuple(question.descriptions[i] for i in chosen) if question.descriptions else ()
    return replace(question, labels=tuple(question.labels[i] for i in chosen), descriptions=described)


def _together(parts: Sequence[Answers]) -> Answers:
    """The answers about single rows as those about all of them."""
    failures = tuple(replace(f, index=i) for i, part in enumerate(parts) for f in part.failures)
    probabilities = np.array([part.probabilities[0] for part in parts], dtype=np.float64)
    return Answers([part.values[0] for part in parts], probabilities, failures)
