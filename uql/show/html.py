"""Results as HTML for notebooks: the table with its intervals and a footer, readable on a light and on a dark page.

Colours are shades of the page's own text colour, so that no theme has to be known. Everything from data is escaped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from uql.base.printable import printable
from uql.engine.outcome import Outcome
from uql.show.render import NUMBERS, footer, shown_rows

MAX_ROWS = 40
STYLE = """<style>
.uql{font-size:13px;color:inherit}
.uql table{border-collapse:collapse;margin:4px 0;border:0;color:inherit;font-size:inherit}
.uql th,.uql td{padding:3px 10px;text-align:left;vertical-align:top;border:0;background:none;color:inherit}
.uql thead th{border-bottom:1px solid color-mix(in srgb,currentColor 45%,transparent);font-weight:600}
.uql thead small{display:block;font-weight:400;opacity:.6}
.uql tbody tr:nth-child(even) td{background:color-mix(in srgb,currentColor 5%,transparent)}
.uql .num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.uql .interval{opacity:.65;font-size:.92em}
.uql .null,.uql .gap td{opacity:.5;font-style:italic}
.uql td.text{white-space:pre-wrap;overflow-wrap:anywhere;max-width:60ch}
.uql footer,.uql .note{opacity:.75;font-size:.92em;margin:2px 0}
.uql footer .note{opacity:1;margin:0;font-size:1em}
.uql .warn{font-weight:600}
.uql progress{width:18em;vertical-align:middle}
</style>"""


def result(outcome: Outcome, max_rows: int = MAX_ROWS) -> str:
    """A result that has run."""
    data = outcome.table
    kinds = [kind.upper() for kind in outcome.types]
    parts = [STYLE, '<div class="uql">']
    if data.num_columns:
        heads = [
            f"<th{_number(kind)}>{escape(printable(name))}<small>{escape(kind.lower())}</small></th>"
            for name, kind in zip(data.column_names, kinds, strict=True)
        ]
        rows = shown_rows(data, kinds, outcome.estimates, max_rows)
        body = [_row(row, kinds, outcome.estimates, data.column_names) for row in rows]
        if len(rows) < data.num_rows:
            gap = f'<tr class="gap"><td colspan="{len(heads)}">… {data.num_rows - len(rows):,} rows more …</td></tr>'
            body.insert((len(rows) + 1) // 2, gap)
        parts.append(f"<table><thead><tr>{''.join(heads)}</tr></thead><tbody>{''.join(body)}</tbody></table>")
        if data.num_rows != 1:
            parts.append(f'<div class="note">{data.num_rows:,} rows</div>')
    lines = footer(outcome)
    if lines:
        parts.append("<footer>" + "".join(_line(line) for line in lines) + "</footer>")
    return "".join([*parts, "</div>"])


def not_run(text: str) -> str:
    """A result that was not read yet."""
    short = " ".join(text.split())
    short = short if len(short) <= 80 else short[:79] + "…"
    return f'{STYLE}<div class="uql"><code>{escape(short)}</code><div class="note">not run yet: .show() runs it</div></div>'


def progress(line: str, share: float | None, lines: Sequence[str]) -> str:
    """How far a run is.

    Args:
        share: of the budget that is spent, in [0, 1]; None where there is no cap.
        lines: the steps of a question and the estimates so far.
    """
    bar = "" if share is None else f'<progress value="{min(1.0, share):.3f}" max="1"></progress> '
    more = "".join(f'<div class="note">{escape(text)}</div>' for text in lines)
    return f'{STYLE}<div class="uql">{bar}<span>{escape(line)}</span>{more}</div>'


def _row(row: Sequence[str], kinds: Sequence[str], estimates: Mapping[str, object], names: Sequence[str]) -> str:
    cells = []
    for text, kind, name in zip(row, kinds, names, strict=True):
        if text == "NULL":
            cells.append(f'<td class="{"num " if _number(kind) else ""}null">NULL</td>')
        elif name in estimates and _number(kind):
            value, cut, interval = _split(text)
            cells.append(f'<td class="num">{escape(value)}<span class="interval">{escape(cut + interval)}</span></td>')
        else:
            cells.append(f'<td class="{"num" if _number(kind) else "text"}">{escape(text)}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _split(text: str) -> tuple[str, str, str]:
    """`120 ± 14` as value, sign and interval, so that the value stands out."""
    for cut in (" ± ", " ("):
        if cut in text:
            return text.partition(cut)
    return text, "", ""


def _line(line: str) -> str:
    warns = line.startswith(("warning:", "partial:"))
    return f'<div class="note{" warn" if warns else ""}">{escape(printable(line))}</div>'


def _number(kind: str) -> str:
    return ' class="num"' if kind.startswith(NUMBERS) and not kind.endswith("[]") else ""
