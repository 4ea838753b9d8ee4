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

from uql.base.errors import QuestionError
from uql.nl.ask.context import AskContext
from uql.nl.ask.node_runners import preview
from uql.nl.ask.outputs import Output, caveats, says_nothing, without_bounds
from uql.nl.prompts import aggregator as words

Style = Literal["short", "full"]
SPEAKS = 10  # values of a result that is written as it is
SHOWN_ROWS = 20
FINDING_CHARS = 2_400
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?!\w)")


@dataclass(frozen=True, slots=True)
class Finding:
    """What one node found: the sub-query or statement it is of, and the sources it rests on."""

    node: str
    asked: str
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
    """

    text: str
    json: Mapping[str, Any]
    cannot: str = ""
    need_more: bool = False
    rests_on: tuple[str, ...] = ()


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
    Raises: BudgetError where the budget is spent.
    """
    found = [f for f in findings if not _is_nothing(f.output)]
    sources = _sources(findings)
    if not found:
        plots = [plot for f in findings for plot in f.output.plots]
        if plots:
            return _as_it_is(f"{len(plots)} plot{'s' if len(plots) > 1 else ''}", sources, findings)
        if findings and all(f.output.table is not None or f.output.value == [] for f in findings):
            return _as_it_is("none: no rows match", sources, findings)
        return Words("", _json("", sources), "nothing was found")
    if pick and write is not False and style == "short":
        found = await _picked(ctx, question, found, frozenset(hidden))
        write = False
    spoken = _spoken(found[0].output) if len(found) == 1 else None
    if write is False:
        return _as_it_is("; ".join(_of(f) for f in found), _sources(found), found)
    if style == "short" and not write and spoken is not None:
        return _as_it_is(spoken, sources, found)
    if style == "short" and not write and all(f.output.table is not None for f in found) and len(found) == 1:
        return _as_it_is(_described(found[0].output), sources, found)
    try:
        said = await ctx.say(
            words.wording(question, findings_text(found, frozenset(hidden)), sources, ctx.rules, style)
        )
    except QuestionError as error:
        text = spoken or "; ".join(_of(f) for f in found)
        extra = f"written without a model: {error.message}"
        return Words(text, {**_json(text, sources), "extra": extra}, rests_on=_nodes(found))
    if not said["answerable"]:
        return Words(
            "", {**said, "summary": ""}, said["reason"].strip() or "the findings do not hold it", said["need_more"]
        )
    text = " ".join(said["summary"].split())
    if style == "short" and len(text.split()) > words.SHORT_WORDS:
        text = spoken if spoken is not None else " ".join(text.split()[: words.SHORT_WORDS])
    kept = {key: said[key] for key in ("summary", "details", "source", "inference", "extra")}
    held = [s for s in said["source"] if s in sources]
    return Words(text, {**kept, "summary": text, "source": held}, rests_on=_nodes(found))


async def _picked(ctx: AskContext, question: str, found: Sequence[Finding], hidden: frozenset[str]) -> list[Finding]:
    """The findings that are the answer, as the model sees it; all of them where its reply cannot be used."""
    if len(found) < 2:
        return list(found)
    try:
        said = await ctx.say(words.picking(question, findings_text(found, hidden), len(found)))
    except QuestionError:
        return list(found)
    return list(found) if said["finding"] == words.ALL else [found[int(said["finding"]) - 1]]


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
        column = table.column(0).to_pylist()
        return column[0] if len(column) == 1 else column
    rows = table.to_pylist()
    return rows[0] if len(rows) == 1 else rows


def speaks(value: Any) -> str | None:
    """A value, a short list of values or a row in words; None where it is too much for that.

    >>> speaks(3.0), speaks(["Ada", "Bo"]), speaks({"name": "Ada", "born": 1815}), speaks([{"a": 1}])
    ('3', 'Ada, Bo', 'name Ada, born 1815', None)
    """
    if isinstance(value, list):
        plain = [v for v in value if not isinstance(v, dict | list | bytes)]
        return ", ".join(map(_plain, plain)) if len(plain) == len(value) <= SPEAKS else None
    if isinstance(value, dict):
        cells = {k: v for k, v in value.items() if not isinstance(v, dict | list | bytes)}
        return ", ".join(f"{k} {_plain(v)}" for k, v in cells.items()) if len(cells) == len(value) <= 4 else None
    return None if isinstance(value, bytes) else _plain(value)


def _spoken(output: Output) -> str | None:
    """A result in words, what is estimated in one row with its interval; None where it is too much for that."""
    value = _value(output)
    estimates = output.outcome.inexact if output.outcome is not None else {}
    held = {name: (found[0].low, found[0].high) for name, found in estimates.items() if len(found) == 1}
    if not held or output.table is None or output.table.num_rows != 1:
        return speaks(value)
    if not isinstance(value, dict):
        return _about(value, *next(iter(held.values())))
    return speaks({name: _about(v, *held[name]) if name in held else v for name, v in value.items()})


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
    assert output.table is not None
    rows = output.table.num_rows
    return f"{rows:,} row{'s' if rows != 1 else ''}: {', '.join(without_bounds(output).column_names)}"


def _of(finding: Finding) -> str:
    sub = finding.output.sub
    return sub.text if sub is not None else _spoken(finding.output) or _described(finding.output)


def _is_nothing(output: Output) -> bool:
    if output.sub is not None:
        return output.sub.problem is not None
    if output.table is not None:
        return bool(output.table.num_rows == 0)
    return says_nothing(output.value)


def _as_it_is(text: str, sources: Sequence[str], found: Sequence[Finding]) -> Words:
    return Words(text, _json(text, sources), rests_on=_nodes(found))


def _nodes(found: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(finding.node for finding in found)


def _sources(found: Sequence[Finding]) -> list[str]:
    return list(dict.fromkeys(source for finding in found for source in finding.sources))


def _json(text: str, sources: Sequence[str]) -> dict[str, Any]:
    return {"summary": text, "details": "", "source": list(sources), "inference": "", "extra": ""}


# -------------------------------------------------------------------------------------------------------- the prompt
def findings_text(findings: Sequence[Finding], hidden: frozenset[str]) -> str:
    """Each finding with what was asked, how many rows it has, and the first of them; estimates with their intervals."""
    parts = []
    for n, finding in enumerate(findings, 1):
        lines = [f"{n}. {finding.asked}", f"   from {', '.join(finding.sources) or 'the data'}"]
        output = finding.output
        if output.sub is not None:
            sure = "" if output.sub.confidence is None else f" (confidence {output.sub.confidence:.2f})"
            lines.append(f"   answer: {output.sub.text}{sure}")
        elif output.table is not None:
            rows = preview(output.table, rows=SHOWN_ROWS, hidden=hidden | output.hidden)
            lines.append(
                f"   {output.table.num_rows} rows: {json.dumps(rows, default=str, ensure_ascii=False)[:FINDING_CHARS]}"
            )
            lines += [f"   {said}" for said in caveats(output.outcome)]
        elif output.hidden:
            lines.append("   value: private, and not shown")
        else:
            lines.append(f"   value: {json.dumps(output.value, default=str, ensure_ascii=False)[:FINDING_CHARS]}")
        parts.append("\n".join(lines))
    return "\n".join(parts)


# --------------------------------------------------------------------------------------------------------- citations
def citations(text: str, findings: Sequence[Finding]) -> tuple[list[Citation], list[str]]:
    """Where each figure and name of a text stands in the results, and the figures that stand nowhere."""
    cells: list[tuple[str, int, str, Any]] = []
    for finding in findings:
        table = finding.output.table
        if table is not None:
            for i, row in enumerate(table.slice(0, 1_000).to_pylist()):
                cells += [(finding.node, i, column, value) for column, value in row.items() if value is not None]
        elif finding.output.sub is not None:
            cells.append((finding.node, 0, "answer", finding.output.sub.text))
        else:
            cells += [(finding.node, *leaf) for leaf in _leaves(finding.output.value)]
    found: list[Citation] = []
    loose: list[str] = []
    for match in _NUMBER.finditer(text):
        number = float(match.group().replace(",", ""))
        digits = len(match.group().partition(".")[2])
        at = next(((n, i, c) for n, i, c, v in cells if _same(v, number, digits)), None)
        counted = next((f.node for f in findings if f.output.rows == number), None)
        if at is not None:
            found.append(Citation(match.group(), match.start(), *at))
        elif counted is not None:
            found.append(Citation(match.group(), match.start(), counted, 0, "(number of rows)"))
        else:
            loose.append(match.group())
    low = text.lower()
    for node, i, column, value in cells:
        if isinstance(value, str) and 2 < len(value) <= 80 and (start := low.find(value.lower())) >= 0:
            found.append(Citation(text[start : start + len(value)], start, node, i, column))
    return sorted(found, key=lambda c: c.start), loose


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
        return any(float(m.replace(",", "")) == number for m in _NUMBER.findall(value))
    try:
        return abs(float(value) - number) <= 0.5 * 10**-digits + 1e-9 if digits else round(float(value)) == number
    except (TypeError, ValueError):
        return str(value).startswith(str(int(number))) if number == int(number) else False
