"""The interface of adapters, and what they share: evidence packed into a prompt, and the form of an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from uql.base.arrow_values import rows_of
from uql.base.media_types import media_type
from uql.base.schema import Modality
from uql.llm.prompts.json_schema import closed
from uql.llm.questions import Cell
from uql.nl.ask.aggregator import NUMBER
from uql.nl.ask.context import AskContext
from uql.nl.plan.dag import Operator, SubAnswer
from uql.nl.prompts import BOOLEAN, Schema, array, one_of, text
from uql.nl.schema.scope import Source
from uql.operators.texts import neutral, quoted

ROWS_READ = 2_000  # of a source, among which evidence is chosen
LONGEST_CELL = 600  # characters
_WORD = re.compile(r"\w+")
_PIECE = re.compile(r"[A-Za-z]+|[^\sA-Za-z]")


class Adapter(Protocol):
    """A way to answer a sub-query.

    `name` is what routers and plans call it; `capable` says whether it can take an operator's sub-queries at all.
    """

    @property
    def name(self) -> str: ...

    def capable(self, operator: Operator) -> bool: ...

    async def run(self, subquery: str, sources: Mapping[str, Source], ctx: AskContext) -> SubAnswer:
        """Answers from the sources given and nothing else; where there is no answer its `problem` says why.

        Args:
            subquery: one question.
            sources: that it may read.
        Raises: UQLError where models, budgets or statements fail.
        """
        ...


def answer_schema(sources: Sequence[str]) -> Schema:
    """The form of an answer in words: whether there is one, the answer, and the sources it rests on."""
    return closed({"found": BOOLEAN, "answer": text(1200), "sources": array(one_of(list(sources)), len(sources))})


def sub_answer(reply: Mapping[str, Any], adapter: str) -> SubAnswer:
    """The answer of an adapter's reply in the form of `answer_schema`."""
    answer = str(reply.get("answer", "")).strip()
    if not reply.get("found", True) or not answer:
        return SubAnswer(None, "", adapter=adapter, problem=f"not in the evidence: {answer or 'no answer'}")
    sources = tuple(dict.fromkeys(str(name) for name in reply.get("sources", ())))
    return SubAnswer(answer, answer, sources, adapter)


def tokens_of(text: str) -> int:
    """About how many tokens a text has, rather too many: each digit, mark and letter beyond ASCII is one, a word one for five letters.

    >>> tokens_of("Denver lost, 98 to 101"), tokens_of("")
    (10, 0)
    """
    return sum(1 + (len(piece) - 1) // 5 for piece in _PIECE.findall(text))


def fitting(lines: Sequence[str], tokens: int) -> list[str]:
    """The first of the lines that have at most so many tokens together."""
    prefix, used = [], 0
    for line in lines:
        used += tokens_of(line) + 2
        if used > tokens:
            break
        prefix.append(line)
    return prefix


def overlap(query: str, text: str) -> float:
    """The share of the query's words, of three letters or more, that stand in a text.

    >>> overlap("Which team won in Denver?", "Denver lost to the visiting team")
    0.5
    """
    query_words = {word for word in _WORD.findall(query.casefold()) if len(word) > 2}
    return len(query_words & set(_WORD.findall(text.casefold()))) / len(query_words) if query_words else 0.0


def written(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    """One line of a row: its columns that are not NULL, no bytes, each cell shortened."""
    cells = []
    for name in columns:
        value = row.get(name)
        if value is not None and not isinstance(value, bytes):
            cell_text = neutral(" ".join(str(value).split()))
            cells.append(
                f"{name}: {cell_text if len(cell_text) <= LONGEST_CELL else cell_text[: LONGEST_CELL - 1] + '…'}"
            )
    return "; ".join(cells)


def evidence(
    query: str, sources: Mapping[str, Source], ctx: AskContext, *, tokens: int
) -> tuple[str, tuple[str, ...], list[str]]:
    """The rows nearest to the query in words, as many as fit, under a heading for each source.

    Args:
        tokens: of the whole text at most; each source has the same share of it.
    Returns: the text, the sources that have a row in it, and a note on each source that is not shown whole. Private columns are left
        out.
    """
    share = tokens // max(1, len(sources))
    parts, names, notes = [], [], []
    for name, source in sources.items():
        columns = [f.name for f in source.visible_fields if f.modality in (Modality.STRUCTURED, Modality.TEXT)]
        if not columns:
            continue
        rows = rows_of(ctx.workspace.table(name, columns=columns, limit=ROWS_READ))
        lines = sorted((written(row, columns) for row in rows), key=lambda line: -overlap(query, line))
        first_lines = fitting(lines, share)
        left = source.row_count - len(first_lines)
        more = f"\n({left:,} more rows are not shown)" if left > 0 else ""
        caption = f": {quoted(source.description)}" if source.description else ""
        parts.append(f"Table {name}{caption}\n" + "\n".join(f"- {line}" for line in first_lines) + more)
        if first_lines:
            names.append(name)
        if left > 0:
            notes.append(shown_of(name, len(first_lines), source.row_count))
        notes += cut_cells(name, rows, columns)
    return "\n\n".join(parts), tuple(names), notes


def cut_cells(name: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[str]:
    """The note on cells that `written` does not show whole, where there are any.

    Args:
        name: of the table.
        columns: that are shown.
    """
    cut = [c for c in columns if any(isinstance(row[c], str) and len(row[c]) > LONGEST_CELL for row in rows)]
    return [f"the model was shown {LONGEST_CELL} characters of longer texts of {name}: {', '.join(cut)}"] if cut else []


def unseen(answer: str, shown: str) -> list[str]:
    """The note on figures of an answer that stand nowhere in what the model was shown: it has computed them, or made them up.

    >>> unseen("1,200 of 40", "- total: 1200.0"), unseen("all", "")
    (['the model says figures that stand in no row: 40'], [])
    """
    there = {float(figure.replace(",", "")) for figure in NUMBER.findall(shown)}
    said = [figure for figure in NUMBER.findall(answer) if float(figure.replace(",", "")) not in there]
    return [f"the model says figures that stand in no row: {', '.join(said)}"] if said else []


def shown_of(name: str, n_rows: int, rows: int) -> str:
    """The note on rows that the model was not shown.

    Args:
        n_rows: rows in the prompt.

    >>> shown_of("shops", 88, 120)
    'the model was shown 88 of 120 rows of shops'
    """
    return f"the model was shown {n_rows:,} of {rows:,} rows of {name}"


def images(sources: Mapping[str, Source], ctx: AskContext, *, most: int) -> list[Cell]:
    """The first images of the sources, each with the structured columns of its row in its name.

    Args:
        sources: by name, in the order in which their images are taken.
        most: images of all sources.
    """
    cells: list[Cell] = []
    for name, source in sources.items():
        pictured = [f.name for f in source.visible_fields if f.modality is Modality.IMAGE]
        beside = [f.name for f in source.visible_fields if f.modality is Modality.STRUCTURED][:3]
        if not pictured or len(cells) >= most:
            continue
        for row in rows_of(ctx.workspace.table(name, columns=[*pictured, *beside], limit=most)):
            values = ", ".join(str(row[c])[:40] for c in beside if row[c] is not None)
            for column in pictured:
                if isinstance(row[column], bytes) and len(cells) < most:
                    caption = f"{name} {column} ({values})" if values else f"{name} {column}"
                    cells.append(Cell(caption, row[column], "", media(row[column])))
    return cells


def media(data: bytes) -> str:
    """The media type of an image, by its first bytes."""
    kind = media_type(data)
    return kind if kind.startswith("image/") else "image/png"
