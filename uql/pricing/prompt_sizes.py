"""Tokens of a request beside its rows, told before it is sent: of the very words and the schema that the model would get."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from uql.compiler.cost import BYTES_PER_TOKEN, GROUPS, PromptTokens, plain_prompt_tokens, utf8_bytes
from uql.compiler.virtual import VirtualColumn
from uql.llm.prompts import fused, several
from uql.operators.record import Cell, Parameters, Prompt, Question, Row
from uql.operators.replies import Text, Value

if TYPE_CHECKING:
    from uql.base.settings import Settings
    from uql.llm.providers.base import Provider

WRAPPING = 11  # tokens that a chat's form puts around two messages
Columns = tuple[VirtualColumn, ...]


def prompt_tokens(model: Provider | None, settings: Settings) -> PromptTokens:
    """How the requests to a model are counted; one that is not open is known by its name."""
    kind = (model.name if model is not None else settings.model or "").partition(":")[0].partition("?")[0]
    if kind == "systemone":
        return _of_decisions
    here = model is not None and model.is_local
    if kind == "local" or (here and kind in ("http", "https")):
        return _of_single_prompts
    # an oracle, or a model of the caller on this machine: who knows what it is sent
    return plain_prompt_tokens if here or kind in ("", "oracle") else _of_json


@lru_cache(maxsize=1024)
def _of_decisions(columns: Columns, rows: int) -> float:
    """State and decisions as they are sent to a decision model; free values are not asked of it."""
    from uql.llm.providers import systemone

    questions, row = tuple(map(_question, columns)), _row(columns)
    if any(isinstance(q.reply(), Value | Text) for q in questions):
        return plain_prompt_tokens(columns, rows)
    sent = systemone.one_row(questions, row) if rows == 1 else systemone.many_rows(questions, (row,) * rows)
    return _tokens(map(json.dumps, sent))


@lru_cache(maxsize=1024)
def _of_single_prompts(columns: Columns, rows: int) -> float:
    """A prompt for each question: of a model on this machine, which finds the row evaluated after the first."""
    row = _row(columns)
    return sum(WRAPPING + _of(fused.single_prompt(question, row)) for question in map(_question, columns))


@lru_cache(maxsize=1024)
def _of_json(columns: Columns, rows: int) -> float:
    """All questions in one message, with the schema of the reply; one condition about a text is answered by a bare word."""
    questions, row = tuple(map(_question, columns)), _row(columns)
    if any(q.operator.words.instruction is None for q in questions):
        return _of_single_prompts(columns, rows)
    if rows > 1:
        prompt, schema = several.prompt(questions, (row,) * rows, 0), several.schema(questions)
    elif fused.is_word(questions, row):
        return WRAPPING + _of(fused.word(questions[0], row))
    else:
        prompt, schema = fused.prompt(questions, row, 0), fused.schema(questions)
    return WRAPPING + _of(prompt) + _tokens([json.dumps(schema)])


def _question(column: VirtualColumn) -> Question:
    """What is put to the model; groups that it has yet to name have names of four letters."""
    labels = column.labels
    if column.names_groups and not labels:
        labels = tuple(f"name{n}" for n in range(column.into or GROUPS))
    return column.operator.question(
        column.asked_text, Parameters(column.type, labels, (), column.none_of_these, column.many)
    )


def _row(columns: Columns) -> Row:
    """A row without a text, as these columns show it."""
    reads = columns[0].reads
    several_tables = len({column.table for column in reads}) > 1
    return Row(tuple(Cell(column.name, "", column.table if several_tables else "") for column in reads))


def _of(prompt: Prompt) -> float:
    return _tokens([prompt.system, prompt.user])


def _tokens(texts: Iterable[str]) -> float:
    return sum(map(utf8_bytes, texts)) / BYTES_PER_TOKEN
