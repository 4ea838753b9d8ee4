"""The aggregator: one answer from what was found for each part: conflicts settled, brevity kept, figures traced to cells.

A single small result speaks for itself and is written without asking a model; so nothing is lost or made up on the way.
Sources: Meta Engine, section 4.3; M²EX (summary, details, source, inference, extra explanation).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from uql.base.arrow_values import cells_of, rows_of
from uql.base.errors import BackendError, BudgetError, QuestionError
from uql.nl.ask.context import AskContext
from uql.nl.ask.node_runners import preview
from uql.nl.ask.outputs import Output, caveats, says_nothing, without_bounds
from uql.nl.prompts import aggregator as words

Style = Literal["short", "full"]
NO_ROWS = "none: no rows match"
SPEAKS = 20  # values or rows of a result that is written as it is
MOST_WORDS = 4_000  # characters of it
CHARS_A_TOKEN = 3  # of findings in a prompt: measured low
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?!\w)")
_PARTS = re.compile(r"\d+(?:\.\d+)?")  # of a day or a time


@dataclass(frozen=True, slots=True)
class Finding:
    """What one node found: the sub-query or statement it is of, and the sources it rests on."""

    node: str
    question: str
    output: Output
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Citation:
    """A figure or name of the answer's text and the cell it is: `node`, `row` (from 0) and `column` of a result."""

    text: str
    start: int
    node: str
    row: int
    column: str


@dataclass(frozen=True, slots=True)
class Words:
    """The answer in words.

    Attributes:
        text: the answer; json: M²EX's fields.
        cannot: why it cannot be answered; "" where it can.
        need_more: the model finds that more could be computed.
        rests_on: the nodes of the findings that the text was written from.
        notes: what the model that wrote it was not shown.
    """

    text: str
    json: Mapping[str, Any]
    cannot: str = ""
    need_more: bool = False
    rests_on: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


async def aggregate(
    ctx: AskContext,
    question: str,
    findings: Sequence[Finding],
    *,
    style: Style = "short",
    hidden: Collection[str] = (),
    write: bool | None = None,
    pick: bool = False,
) -> Words:
    """The answer from the findings.

    Args:
        style: "short": at most ten words; "full": a sentence with details.
        hidden: lower-case names of columns that no model may see.
        write: True asks the model also where a single result speaks for itself, False never asks it: what was found for the
            parts is put side by side; None: it is asked where a result does not speak for itself.
        pick: of a short answer the model does not write but names the finding that is the answer, or all of them; a single one
            is not asked about. For models too small to write without doubts and inventions.
    Where the model gives no usable reply, or the budget is spent, what was found stands side by side.
    """
    usable = [f for f in findings if not _is_nothing(f.output)]
    sources = _sources(findings)
    if not usable:
        plots = [plot for f in findings for plot in f.output.plots]
        if plots:
            return _as_it_is(f"{len(plots)} plot{'s' if len(plots) > 1 else ''}", sources, findings)
        if findings and all(f.output.table is not None or f.output.value == [] for f in findings):
            return _as_it_is(NO_ROWS, sources, findings)
        return Words("", _json("", sources), "nothing was found")
    # that nothing matches is one too
    usable = [f for f in findings if _has_no_rows(f.output) or not _is_nothing(f.output)]
    if pick and write is not False and style == "short":
        usable = await _picked(ctx, question, usable, frozenset(hidden))
        write = False
    spoken = _spoken(usable[0].output) if len(usable) == 1 else None
    if write is False:
        return _as_it_is("; ".join(map(in_words, usable)), _sources(usable), usable)
    if style == "short" and not write and spoken is not None:
        return _as_it_is(spoken, sources, usable)
    if style == "short" and not write and len(usable) == 1 and usable[0].output.table is not None:
        return _as_it_is(_described(usable[0].output), sources, usable)
    prompt_text, notes = await _findings_for_prompt(ctx, usable, frozenset(hidden))
    try:
        reply = await ctx.say(words.wording(question, prompt_text, sources, ctx.rules, style))
    except (QuestionError, BudgetError, BackendError) as error:
        text = spoken or "; ".join(map(in_words, usable))
        extra = f"written without a model: {error.message}"
        return Words(text, {**_json(text, sources), "extra": extra}, rests_on=_nodes(usable))
    if not reply["answerable"]:
        return Words(
            "", {**reply, "summary": ""}, reply["reason"].strip() or "the findings do not hold it", reply["need_more"]
        )
    text = " ".join(reply["summary"].split())
    json_fields = {key: reply[key] for key in ("summary", "details", "source", "inference", "extra")}
    if style == "short" and len(text.split()) > words.SHORT_WORDS:
        if spoken is None:
            json_fields["details"] = "\n".join(filter(None, [text, reply["details"]]))
            notes.append("the answer was cut: its details have it whole")
        text = spoken or " ".join(text.split()[: words.SHORT_WORDS]) + "…"
    made_up = [figure for figure in citations(text, usable)[1] if figure not in NUMBER.findall(question)]
    notes += [f"figures that stand in no result: {', '.join(made_up)}"] if made_up else []
    reply_sources = [s for s in reply["source"] if s in sources]
    return Words(
        text, {**json_fields, "summary": text, "source": reply_sources}, rests_on=_nodes(usable), notes=tuple(notes)
    )


async def _picked(ctx: AskContext, question: str, findings: Sequence[Finding], hidden: frozenset[str]) -> list[Finding]:
    """The findings that are the answer, as the model sees it; all of them where its reply cannot be used."""
    if len(findings) < 2:
        return list(findings)
    try:
        reply = await ctx.say(
            words.picking(question, (await _findings_for_prompt(ctx, findings, hidden))[0], len(findings))
        )
    except (QuestionError, BudgetError):
        return list(findings)
    return list(findings) if reply["finding"] == words.ALL else [findings[int(reply["finding"]) - 1]]


def value_of(findings: Sequence[Finding]) -> Any:
    """The answer as data: a value, a list, a row as a dictionary, or rows; of several findings a dictionary by node."""
    values = {f.node: _value(f.output) for f in findings}
    return next(iter(values.values())) if len(values) == 1 else values


def _value(output: Output) -> Any:
    if output.sub is not None:
        return output.sub.value if output.sub.value is not None else output.sub.text
    if output.table is None:
        return output.value
    table = without_bounds(output)
    if table.num_columns == 1:
        column = cells_of(table.column(0))
        return column[0] if len(column) == 1 else column
    rows = rows_of(table)
    return rows[0] if len(rows) == 1 else rows


def speaks(value: Any) -> str | None:
    """A value, at most 20 values or rows, or a row in words; None where it is too much for that. Images are left out.

    >>> speaks(3.0), speaks(["Ada", "Bo"]), speaks({"name": "Ada", "count_star()": 2}), speaks([{"a": 1}, {"a": 2}]), speaks([[1]])
    ('3', 'Ada, Bo', 'name Ada, count 2', 'a 1; a 2', None)
    """
    if isinstance(value, bytes):
        return None
    if isinstance(value, dict):
        cells = {k: v for k, v in value.items() if not isinstance(v, bytes)}
        parts = [None if isinstance(v, dict | list) else f"{_label(k)} {_plain(v)}" for k, v in cells.items()]
    elif isinstance(value, list):
        rows = any(isinstance(v, dict) for v in value)
        parts = [None if isinstance(v, list) else speaks(v) for v in value] if len(value) <= SPEAKS else [None]
    else:
        return _plain(value)
    text = ("; " if isinstance(value, list) and rows else ", ").join(part or "" for part in parts)
    return None if None in parts or not text or len(text) > MOST_WORDS else text


def _spoken(output: Output) -> str | None:
    """A result in words, what is estimated in one row with its interval; None where it is too much for that."""
    value = _value(output)
    estimates = output.outcome.inexact if output.outcome is not None else {}
    intervals = {name: (cells[0].low, cells[0].high) for name, cells in estimates.items() if len(cells) == 1}
    if not intervals or output.table is None or output.table.num_rows != 1:
        return speaks(value)
    if not isinstance(value, dict):
        return _about(value, *next(iter(intervals.values())))
    return speaks({name: _about(v, *intervals[name]) if name in intervals else v for name, v in value.items()})


def _about(value: Any, *ends: float | None) -> str:
    low, high = ("open" if end is None else f"{end:.6g}" for end in ends)
    return f"about {_plain(value)} ({low} to {high})"


def _plain(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.10g}" if value == value else "NULL"
    return str(value)


def _described(output: Output) -> str:
    """How many rows a result has and their columns, of one too large to be written out."""
    assert output.table is not None
    rows = output.table.num_rows
    return f"{rows:,} row{'s' if rows != 1 else ''}: {', '.join(map(_label, without_bounds(output).column_names))}"


def _label(column: str) -> str:
    """A column's name for people: DuckDB's own of `count(*)` says how it computes it."""
    return "count" if column == "count_star()" else column


def in_words(finding: Finding) -> str:
    """What a node found: its value or rows, or how many there are."""
    output = finding.output
    if _has_no_rows(output):
        return NO_ROWS
    spoken = _spoken(output)
    if spoken is None and output.table is not None:
        return _described(output)
    return spoken or (output.sub.text if output.sub is not None else "a value too large to be written out")


def _has_no_rows(output: Output) -> bool:
    return output.table is not None and output.table.num_rows == 0


def _is_nothing(output: Output) -> bool:
    if output.sub is not None and output.sub.problem is not None:
        return True
    if output.table is not None:
        return _has_no_rows(output)
    if output.sub is not None:
        return False
    return says_nothing(output.value)


def _as_it_is(text: str, sources: Sequence[str], findings: Sequence[Finding]) -> Words:
    return Words(text, _json(text, sources), rests_on=_nodes(findings))


def _nodes(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(finding.node for finding in findings)


def _sources(findings: Sequence[Finding]) -> list[str]:
    return list(dict.fromkeys(source for finding in findings for source in finding.sources))


def _json(text: str, sources: Sequence[str]) -> dict[str, Any]:
    return {"summary": text, "details": "", "source": list(sources), "inference": "", "extra": ""}


# -------------------------------------------------------------------------------------------------------- the prompt
async def _findings_for_prompt(
    ctx: AskContext, findings: Sequence[Finding], hidden: frozenset[str]
) -> tuple[str, list[str]]:
    """The findings as far as the model's room goes."""
    room = await ctx.room()
    return findings_text(findings, hidden, rows=room.rows, chars=room.prompt * CHARS_A_TOKEN // (2 * len(findings)))


def findings_text(
    findings: Sequence[Finding], hidden: frozenset[str], *, rows: int, chars: int
) -> tuple[str, list[str]]:
    """Each finding with what was asked, how many rows it has, and the first of them; estimates with their intervals.

    Args:
        hidden: lower-case names of columns that no model may see.
        rows, chars: of a finding at most.
    Returns: the text, and a note on each finding that is not shown whole.
    """
    parts: list[str] = []
    notes: list[str] = []
    for n, finding in enumerate(findings, 1):
        output = finding.output
        lines = [f"{n}. {finding.question}", f"   from {', '.join(finding.sources) or 'the data'}"]
        if output.sub is not None and (output.table is None or speaks(output.sub.value) is not None):
            sure = "" if output.sub.confidence is None else f" (confidence {output.sub.confidence:.2f})"
            lines.append(f"   answer: {output.sub.text[:chars]}{sure}")
        elif output.table is not None:
            first = preview(output.table, rows=rows, hidden=hidden | output.hidden)
            row_texts: list[str] = []
            for row in first:
                row_texts.append(json.dumps(row, default=str, ensure_ascii=False))
                if sum(map(len, row_texts)) > chars:
                    row_texts.pop()
                    break
            total = output.table.num_rows
            lines.append(
                f"   {total} rows: [{', '.join(row_texts)}]{'' if len(row_texts) == total else f' and {total - len(row_texts)} more'}"
            )
            if len(row_texts) < total:
                notes.append(
                    f"{finding.node}: the model that wrote the answer was shown {len(row_texts):,} of {total:,} rows"
                )
        elif output.hidden:
            lines.append("   value: private, and not shown")
        else:
            value = json.dumps(output.value, default=str, ensure_ascii=False)
            lines.append(f"   value: {value[:chars]}")
            if len(value) > chars:
                notes.append(f"{finding.node}: the model that wrote the answer was shown a part of the value")
        remarks = caveats(output.outcome) if output.sub is None else list(output.sub.notes)
        parts.append("\n".join([*lines, *(f"   {line}" for line in remarks)]))
    return "\n".join(parts), notes


# --------------------------------------------------------------------------------------------------------- citations
def citations(text: str, findings: Sequence[Finding]) -> tuple[list[Citation], list[str]]:
    """Where each figure and name of a text stands in the results, and the figures that stand nowhere."""
    cells: list[tuple[str, int, str, Any]] = []
    for finding in findings:
        table = finding.output.table
        if table is not None:
            for i, row in enumerate(rows_of(table.slice(0, 1_000))):
                cells += [(finding.node, i, column, value) for column, value in row.items() if value is not None]
        elif finding.output.sub is not None:
            cells.append((finding.node, 0, "answer", finding.output.sub.text))
        else:
            cells += [(finding.node, *leaf) for leaf in _leaves(finding.output.value)]
    places: list[Citation] = []
    loose: list[str] = []
    for match in NUMBER.finditer(text):
        number = float(match.group().replace(",", ""))
        digits = len(match.group().partition(".")[2])
        at = next(((n, i, c) for n, i, c, v in cells if _same(v, number, digits)), None)
        counted = next((f.node for f in findings if f.output.rows == number), None)
        if at is not None:
            places.append(Citation(match.group(), match.start(), *at))
        elif counted is not None:
            places.append(Citation(match.group(), match.start(), counted, 0, "(number of rows)"))
        else:
            loose.append(match.group())
    low = text.lower()
    for node, i, column, value in cells:
        if isinstance(value, str) and 2 < len(value) <= 80 and (start := low.find(value.lower())) >= 0:
            places.append(Citation(text[start : start + len(value)], start, node, i, column))
    return sorted(places, key=lambda c: c.start), loose


def _leaves(value: Any, row: int = 0, column: str = "value") -> list[tuple[int, str, Any]]:
    """The values in JSON that Python made, each with its place as a row and a column.

    >>> _leaves([{"n": 1}, {"n": [2]}])
    [(0, 'n', 1), (1, 'n', 2)]
    """
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in _leaves(inner, row, str(key))]
    if isinstance(value, list):
        outer = column == "value"
        return [leaf for i, inner in enumerate(value) for leaf in _leaves(inner, i if outer else row, column)]
    return [] if value is None else [(row, column, value)]


def _same(value: Any, number: float, digits: int) -> bool:
    """Is a cell this figure, as far as the figure's digits go? A text is when it holds the figure."""
    if isinstance(value, bool) or value is None:
        return False
    if isinstance(value, str):
        return any(float(m.replace(",", "")) == number for m in NUMBER.findall(value))
    try:
        return abs(float(value) - number) <= 0.5 * 10**-digits + 1e-9 if digits else round(float(value)) == number
    except (TypeError, ValueError, OverflowError):  # the last of an end of an interval that is not bounded
        return number in map(float, _PARTS.findall(str(value)))  # a day, a time
