"""Answers that are not of the type that their text got: numbers in the order of their letters, words where numbers are asked.

A warning says so at the end; an aggregate of words ends the statement after the first rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from uql.base.errors import ModelReplyError
from uql.compiler.bind.uses import is_numeric
from uql.compiler.physical import Block
from uql.compiler.syntax import Call, Column, Expr, Position
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.compiler.walk import walk
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.duck import quote
from uql.kernels.relation import Relation

MOST = 1_000  # different values that are looked at
FIRST = 20  # rows of an aggregate that are asked for a number before the others
MOSTLY = 0.75  # of the rows; the others have an empty text, or the model says that they have none
FEW = 5  # rows that say nothing of a number, which is not yet that none has one
_NUMERAL = re.compile(r"\s*[+-]?\d+([.,]\d+)*\s*(?:%\s*)?")
_OF_SEVERAL = ("greatest", "least", "max", "min")


def warn(block: Block, relation: Relation, ctx: Context) -> None:
    """Warns of each text whose answers are numbers, but strings to ORDER BY, a window, greatest or least; and of words asked as numbers.

    Args:
        block: whose rows were made.
        relation: its candidates with their answers, of the block or of a sub-query.
    """
    for warning in (*_numbers_as_words(block, relation), *_words_as_numbers(relation)):
        if warning not in ctx.warnings:
            ctx.warnings.append(warning)


def first_rows(columns: Sequence[VirtualColumn], rids: Rids, relation: Relation) -> int:
    """How many of these rows are asked first, to see whether the answers are numbers; 0 where no column asks for one, or some are there.

    Args:
        columns: asked of each row.
        rids: (n,) the rows.
    """
    unseen = any(_is_number(column) and not relation[column].asked_mask.any() for column in columns)
    return FIRST if unseen and len(rids) > FIRST else 0


def refuse_words(columns: Sequence[VirtualColumn], relation: Relation, ctx: Context) -> None:
    """Ends an aggregate of which no answer is a number, so that its budget is not spent on words.

    Args:
        columns: asked of each row.
    Raises: ModelReplyError, where `FIRST` rows or more were asked, and most replies were words and the others empty.
    """
    for column in filter(_is_number, columns):
        asked = relation[column].asked_mask
        if asked.sum() < FIRST or any(value is not None for value in relation[column].values[asked]):
            continue
        words = [error.raw for error in ctx.errors if error.clause == column.text and error.kind == "wrong_type"]
        if len(words) < asked.sum() * MOSTLY:
            continue
        shown = ", ".join(repr(word[:30]) for word in list(dict.fromkeys(words))[:3])
        raise ModelReplyError(
            f'none of the first {len(words)} answers to "{column.text}" is a number, which its place asks for: {shown}',
            help=f'ask for a number, as in "{column.text}, from 0 to 10"; words are counted by '
            f'SELECT "{column.text}" AS word, COUNT(*) … GROUP BY word, and MIN and MAX take "{column.text}"::VARCHAR',
        )


def _is_number(column: VirtualColumn) -> bool:
    """Does the place of a text ask for a number, without a type that the statement names?"""
    return column.is_value and column.type == "DOUBLE" and not column.attempt


def _words_as_numbers(relation: Relation) -> Iterator[str]:
    for answers in relation.answers.values():
        column, asked = answers.column, answers.asked_mask
        numbers = any(value is not None for value in answers.values[asked])
        if numbers or not column.is_value or not is_numeric(column.type):
            continue
        # a model may say that there is none
        if answers.failed[asked].any() or asked.sum() - rows_without_input(column, relation) >= FEW:
            yield (
                f'no answer to "{column.text}" is a number, which its place asks for: '
                f'write "{column.text}"::VARCHAR for words, ::DATE for days'
            )


def rows_without_input(column: VirtualColumn, relation: Relation) -> int:
    """Rows in which there is nothing to read."""
    reads = " AND ".join(f"{quote(read.label)} IS NULL" for read in (*column.reads, *column.holes))
    return int(relation.duck.scalar(f"SELECT system.main.count(*) FROM {quote(relation.name)} WHERE {reads}"))


def _numbers_as_words(block: Block, relation: Relation) -> Iterator[str]:
    for expr in dict.fromkeys(_ordered(block)):
        if isinstance(expr, Virtual):
            text = expr.column.text if expr.column.type == "VARCHAR" and expr.column.is_value else ""
            values = relation[expr.column].values.tolist() if text else []
        elif isinstance(expr, Column):
            field = relation.fields.get(expr)
            text = field.source_texts[0] if field is not None and field.is_answer and field.type == "VARCHAR" else ""
            values = _values(expr, relation) if text else []
        else:
            continue
        answers = {str(value) for value in values if value is not None}
        if len(answers) > 1 and all(map(_NUMERAL.fullmatch, answers)):
            yield f'the values of "{text}" are numbers, ordered by their letters: write "{text}"::DOUBLE'


def _ordered(block: Block) -> Iterator[Expr]:
    """What the rows or the values of a block are ordered by."""
    items: list[Expr] = [item.expr for item in block.project.items]
    for key in block.order.keys:
        yield items[int(key.expr.text) - 1] if isinstance(key.expr, Position) else key.expr
    for node in (node for expr in (*items, block.project.qualify) if expr is not None for node in walk(expr)):
        if isinstance(node, Call):
            yield from (key.expr for key in (*node.order_by, *(node.over.order_by if node.over is not None else ())))
            yield from node.args if node.name in _OF_SEVERAL else ()


def _values(column: Column, relation: Relation) -> list[Any]:
    rows = relation.duck.execute(f"SELECT DISTINCT {quote(column.label)} FROM {quote(relation.name)} LIMIT {MOST}")
    return [value for (value,) in rows]
