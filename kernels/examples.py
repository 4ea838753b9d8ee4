"""The user's own example rows, `WITH (examples = 'table')`: what their owner answered is known, and guides samples and searches.

The table has the columns that a quoted text reads, by their names, and a column `answer`. A column `question` says which text a row is
about; without it the rows are about the one text of the query whose answers are of that type. Rows whose column `shown` is TRUE also stand
in the prompt: at most eight of a text, 80 characters of each. All others are in no prompt.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np

from uql.base.errors import DataError
from uql.compiler.syntax import Column
from uql.compiler.virtual import VirtualColumn
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.duck import quote
from uql.kernels.estimates.audit import user_labels
from uql.kernels.relation import Relation
from uql.llm.corrections import read

EXAMPLES = 8  # of each kind that guide a search, and of each text that stand in its prompt


def take(columns: Sequence[VirtualColumn], relation: Relation, ctx: Context) -> None:
    """Makes what the table of examples answers known to this run, for the quoted texts that it is about.

    Args:
        columns: the texts of the statement; those that are not asked by row are left out.
    Raises: DataError (UQL504) where there is no such table, a column is missing, a row could be about several texts, or an answer does not
    fit its text.
    """
    name = ctx.settings.examples
    texts = [c for c in columns if c.by_row and not c.attempt]
    if not isinstance(name, str) or not texts:
        return
    types = _columns(name, ctx)
    for column in _about(name, texts, types):
        _take(name, column, types, relation, ctx)


def _columns(name: str, ctx: Context) -> dict[str, str]:
    """The columns of the table in lower case, with their types."""
    table = ".".join(quote(part) for part in name.split("."))
    try:
        description = ctx.duck.arrow(f"DESCRIBE SELECT * FROM {table}")
    except duckdb.Error as error:
        raise DataError(
            f"examples = '{name}' is not a table of judged rows: {str(error).splitlines()[0]}",
            code="UQL504",
            help="it needs the columns that the text reads, and a column answer",
        ) from error
    types = dict(zip(description.column(0).to_pylist(), description.column(1).to_pylist(), strict=True))
    return {str(column).lower(): str(kind) for column, kind in types.items()}


def _about(name: str, columns: list[VirtualColumn], types: dict[str, str]) -> list[VirtualColumn]:
    """The texts that the rows may be about."""
    if "question" in types:
        return columns
    if "answer" in types:
        whether = types["answer"].upper() == "BOOLEAN"
        columns = [c for c in columns if (c.type.upper() == "BOOLEAN" and not c.is_label) == whether]
    if len(columns) > 1:
        texts = ", ".join(f'"{c.text}"' for c in columns)
        raise DataError(
            f"the rows of examples = '{name}' could be about {texts}",
            code="UQL504",
            help="say which: a column question that holds the text a row is about",
        )
    return columns


def _take(name: str, column: VirtualColumn, types: dict[str, str], relation: Relation, ctx: Context) -> None:
    only = f"trim(question) = '{column.text.strip().replace(chr(39), chr(39) * 2)}'" if "question" in types else ""
    rows, labels = user_labels(name, "examples", column.inputs, relation, ctx, answer="answer", only=only)
    question, rids = relation.question(column), np.arange(rows.n, dtype=np.int64)
    try:
        answers = [read(question, value) for value in labels.tolist()]
    except DataError as error:
        raise DataError(f"examples = '{name}': {error.message}", code="UQL504") from error
    ctx.gate.people.teach(question, rows.rows(rids, [column]), answers)
    if "shown" in types:
        _show(name, column, only, rows, answers=[a.value for a in answers], relation=relation, ctx=ctx)


def _show(
    name: str,
    column: VirtualColumn,
    only: str,
    rows: Relation,
    *,
    answers: list[object],
    relation: Relation,
    ctx: Context,
) -> None:
    table = ".".join(quote(part) for part in name.split("."))
    where = "WHERE answer IS NOT NULL" + (f" AND {only}" if only else "")
    flags = ctx.duck.arrow(f"SELECT coalesce(CAST(shown AS BOOLEAN), FALSE) FROM {table} {where}").column(0).to_pylist()
    texts = rows.texts(column.reads)
    examples = [(t, _answer_text(a)) for t, a, flag in zip(texts, answers, flags, strict=True) if flag and t.strip()]
    relation[column].prompt.examples = tuple(examples[:EXAMPLES])


def _answer_text(value: object) -> str:
    return (
        {True: "yes", False: "no", None: "not said"}.get(value, str(value))
        if isinstance(value, bool | None)
        else str(value)
    )


def own_examples(columns: Sequence[Column], relation: Relation, ctx: Context) -> tuple[list[str], list[str]]:
    """At most eight texts each that meet and that do not meet the condition, from the table of `examples`.

    Args:
        columns: those that the condition reads, which the table has by name.
    Returns: the texts of `yes`, and those of `no`.
    Raises: DataError (UQL504) where the table or a column is not there.
    """
    assert isinstance(ctx.settings.examples, str)
    rows, truth = user_labels(ctx.settings.examples, "examples", columns, relation, ctx)
    return _split(rows.texts(columns), truth.tolist())


def corrected_examples(column: VirtualColumn, relation: Relation, ctx: Context) -> tuple[list[str], list[str]]:
    """The same, of the candidate rows that people answered about.

    Args:
        column: a condition.
    """
    question = relation.question(column)
    if not ctx.gate.people.knows(question):
        return [], []
    rids: Rids = np.arange(relation.n, dtype=np.int64)
    corrections = ctx.gate.people.answers(question, relation.rows(rids, [column]), until=ctx.gate.drawn_until)
    texts = relation.texts(column.reads)
    pairs = [(texts[i], answer.value) for i, answer in corrections.items() if answer.value is not None]
    return _split([text for text, _ in pairs], [value for _, value in pairs])


def _split(texts: list[str], truth: list[bool]) -> tuple[list[str], list[str]]:
    pairs = [(text, bool(value)) for text, value in zip(texts, truth, strict=True) if text.strip()]
    return [t for t, yes in pairs if yes][:EXAMPLES], [t for t, yes in pairs if not yes][:EXAMPLES]
