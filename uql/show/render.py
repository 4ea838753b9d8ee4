"""Results as people and programs read them: a table with intervals and a footer, CSV, JSON, Markdown, Parquet.

An estimate is never shown without its interval: `120 ± 14` in a table, the columns `n_low` and `n_high` in a file.
Values are written as DuckDB writes them (its cast to VARCHAR), so that a list, a date or a BLOB looks as it does there.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from uql.base.arrow_values import holds_least
from uql.base.names import free_names
from uql.base.printable import printable
from uql.engine.outcome import TEXT, Estimates, Outcome, estimate_at, with_bounds
from uql.sampling.base import Estimate

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.compiler.cost import Quote, Range
    from uql.llm.run_record import Cost

MAX_ROWS = 40  # of a table on a terminal: the first and the last half of it
MIN_WIDTH = 8  # of a column that had to shrink, in characters
BATCH = 10_000  # rows turned into text at a time
NUMBERS = ("INT", "DOUBLE", "FLOAT", "DECIMAL", "REAL", "HUGEINT", "UINT", "BIGINT")


# ----------------------------------------------------------------------------------------------------------- estimates
_BOUNDS = {"at least": "≥ ", "at most": "≤ "}


def format_estimate(estimate: Estimate, *, whole: bool = False, text: str | None = None) -> str:
    """An estimate in a few characters, its last digits no finer than its interval.

    Args:
        whole: shows no decimals.
        text: the value where it is not a number, such as the largest date among the rows seen.

    >>> from uql.sampling.base import Estimate
    >>> format_estimate(Estimate(120.3, 106.1, 134.2))
    '120 ± 14'
    >>> format_estimate(Estimate(37.0, 21.4, 88.0))
    '37 (21–88)'
    >>> format_estimate(Estimate(0.7312, 0.7, 0.7624))
    '0.731 ± 0.031'
    >>> format_estimate(Estimate(9.5, 9.5, math.inf))
    '≥ 9.5'
    >>> format_estimate(Estimate(12.0, 12.0, 12.0, exact=True))
    '12'
    >>> format_estimate(Estimate(2.4, 1.0, 4.1)), format_estimate(Estimate(2.4, 1.0, 4.1), whole=True)
    ('2.4 (1.0–4.1)', '2 (1–4)')
    >>> format_estimate(Estimate(None, None, None, method="at least"), text="2024-09-18")
    '≥ 2024-09-18'
    """
    value, low, high = estimate.value, estimate.low, estimate.high
    if value is None and text is not None:
        return _BOUNDS.get(estimate.method, "") + printable(text)
    if value is None:
        return "NULL" if low is None or high is None else f"? ({_bound(low, 0)}–{_bound(high, 0)})"
    if estimate.exact or low is None or high is None:
        return _plain(value)
    if math.isinf(high) and low == value:
        return f"≥ {_plain(value)}"
    if math.isinf(low) and high == value:
        return f"≤ {_plain(value)}"
    below, above = value - low, high - value
    finite = [width for width in (below, above) if math.isfinite(width) and width > 0]
    if math.isinf(below) and math.isinf(above) and not whole:  # an interval that says nothing rounds nothing
        return f"{_plain(value)} ({_bound(low, 0)}–{_bound(high, 0)})"
    places = _places(max(finite)) if finite and not whole else 0
    if math.isfinite(below) and math.isfinite(above) and abs(above - below) <= 0.1 * max(above, below):
        return f"{value:.{places}f} ± {max(below, above):.{places}f}"
    return f"{value:.{places}f} ({_bound(low, places)}–{_bound(high, places)})"


def _places(width: float) -> int:
    """Decimals that show two digits of `width`, none from 10 on."""
    return max(0, 1 - math.floor(math.log10(width)))


def _plain(value: float) -> str:
    return str(int(value)) if math.isfinite(value) and value == int(value) else f"{value:.6g}"


def _bound(value: float, places: int) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.{places}f}"


# ---------------------------------------------------------------------------------------------------------- a text each
def _texts(data: pa.Table, function: str = "CAST(COLUMNS(*) AS VARCHAR)") -> list[tuple[str | None, ...]]:
    """Every value as DuckDB writes it, None for NULL."""
    if not data.num_columns or not data.num_rows:
        return [() for _ in range(data.num_rows)]
    from uql.base.arrow_values import duckdb_with

    numbered = data.rename_columns([f"c{i}" for i in range(data.num_columns)])
    with duckdb_with(numbered, "numbered") as con:
        con.execute("PRAGMA disable_optimizer")  # it takes 10 s for 10,000 columns, and there is nothing to optimize
        return con.execute(f"SELECT {function} FROM numbered").fetchall()


def _types(data: pa.Table) -> list[str]:
    """The DuckDB type of every column."""
    if not data.num_columns:
        return []
    from uql.base.duckdb_connections import private_cursor

    numbered = data.slice(0, 0).rename_columns([f"c{i}" for i in range(data.num_columns)])
    with private_cursor() as con:
        con.register("numbered", numbered)
        return [str(kind) for kind in con.sql("SELECT * FROM numbered").types]


def _batches(data: pa.Table, function: str = "CAST(COLUMNS(*) AS VARCHAR)") -> Iterator[tuple[str | None, ...]]:
    for start in range(0, data.num_rows, BATCH):
        yield from _texts(data.slice(start, BATCH), function)


def cell_width(text: str) -> int:
    """Columns that a text takes on a terminal.

    >>> cell_width("été"), cell_width("日本")
    (3, 4)
    """
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _cut(text: str, width: int) -> str:
    """`text` in at most `width` columns, its end replaced by … where it is longer."""
    if cell_width(text) <= width:
        return text
    if text.isascii():
        return text[: width - 1] + "…"
    from rich.cells import set_cell_size

    return set_cell_size(text, width - 1).rstrip(" ") + "…"


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * (width - cell_width(text))
    return space + text if right else text + space


# --------------------------------------------------------------------------------------------------------------- tables
def table(
    data: pa.Table,
    *,
    types: Sequence[str] | None = None,
    estimates: Estimates | None = None,
    max_rows: int = MAX_ROWS,
    width: int | None = None,
) -> str:
    """A box like DuckDB's: names, types, rows, estimates with their intervals. Lines of text, as EXPLAIN gives, stand as they are.

    Args:
        data: the rows; of more than `max_rows` the first and last half are shown.
        types: DuckDB types by column; None: those of the Arrow types.
        estimates: by column, in row order where grouped.
        width: columns of the terminal; None: those of the terminal that stdout is, else 120.
    """
    if not data.num_columns:
        return ""
    lines_of_text = text_of(data)
    if lines_of_text is not None:
        return lines_of_text
    estimates = estimates or {}
    kinds = [kind.upper() for kind in (types if types is not None else _types(data))]
    rows = shown_rows(data, kinds, estimates, max_rows)
    right = [kind.startswith(NUMBERS) for kind in kinds]
    names = [printable(name) for name in data.column_names]
    heads = [[name, kind.lower()] for name, kind in zip(names, kinds, strict=True)]
    columns = [[*head, *(row[i] for row in rows)] for i, head in enumerate(heads)]
    limit = (shutil.get_terminal_size((120, 24)).columns if sys.stdout.isatty() else 120) if width is None else width
    positions, widths = _fit(columns, limit)
    lines = [_rule("┌┬┐", widths)]
    for level in (0, 1):
        texts = [_cut(columns[i][level], w) if i >= 0 else "…" for i, w in zip(positions, widths, strict=True)]
        lines.append("│ " + " │ ".join(_centre(text, w) for text, w in zip(texts, widths, strict=True)) + " │")
    lines.append(_rule("├┼┤", widths))
    for number, row in enumerate(rows):
        if len(rows) < data.num_rows and number == (len(rows) + 1) // 2:
            dots = [_pad("·", w, i >= 0 and right[i]) for i, w in zip(positions, widths, strict=True)]
            lines += ["│ " + " │ ".join(dots) + " │"] * 3
        cells = [
            _pad(_cut(row[i], w), w, right[i]) if i >= 0 else _pad("…", w, False)
            for i, w in zip(positions, widths, strict=True)
        ]
        lines.append("│ " + " │ ".join(cells) + " │")
    lines.append(_rule("└┴┘", widths))
    return "\n".join([*lines, *_size_line(data, len(rows), sum(i >= 0 for i in positions))])


def text_of(data: pa.Table) -> str | None:
    """The lines that EXPLAIN gives, which stand as they are; None for rows."""
    if TEXT not in (data.schema.metadata or {}):
        return None
    return "\n".join(printable(line or "") for line in data.column(0).to_pylist())


def cells(
    part: pa.Table, numbers: Sequence[int], kinds: Sequence[str], estimates: Estimates
) -> Iterator[list[str | None]]:
    """A text a value, None for NULL, an estimate with its interval.

    Args:
        part: some rows of a result.
        numbers: (rows of `part`,) their positions in the whole.
        kinds: DuckDB's types of the columns.
        estimates: of the whole, by column: one, or one a row.
    """
    for number, texts in zip(numbers, _texts(part), strict=True):
        row: list[str | None] = []
        for column, kind, text in zip(part.column_names, kinds, texts, strict=True):
            estimate = estimate_at(estimates, column, number)
            if estimate is not None and not estimate.exact:
                row.append(format_estimate(estimate, whole="INT" in kind, text=text))
            else:
                row.append(None if text is None else printable(text))
        yield row


def texts_of(data: pa.Table) -> list[list[str | None]]:
    """Every value of a table as DuckDB writes it, None for NULL."""
    return [[None if text is None else printable(text) for text in row] for row in _texts(data)]


def shown_rows(data: pa.Table, kinds: Sequence[str], estimates: Estimates, max_rows: int) -> list[list[str]]:
    """The texts of the rows to show.

    Args:
        kinds: DuckDB's types of the columns.
        estimates: by column: one, or one a row.
        max_rows: the first and the last ones where there are more.
    """
    import pyarrow as pa

    count = data.num_rows
    if count > max_rows:
        head, tail = (max_rows + 1) // 2, max_rows // 2
        part = pa.concat_tables([data.slice(0, head), data.slice(count - tail, tail)])
        numbers = [*range(head), *range(count - tail, count)]
    else:
        part, numbers = data, list(range(count))
    return [["NULL" if text is None else text for text in row] for row in cells(part, numbers, kinds, estimates)]


def _fit(columns: list[list[str]], limit: int) -> tuple[list[int], list[int]]:
    """Which columns to show (−1: those left out) and how wide: the widest shrink first, then the middle ones go."""
    count = len(columns)
    natural = [max(map(cell_width, texts)) for texts in columns]
    head, tail = count, 0  # columns before and behind those left out
    total_width = sum(min(w, MIN_WIDTH) + 3 for w in natural)
    while total_width > limit - 1 and head + tail > 2:
        if head == count:
            head, tail = count // 2, count - count // 2 - 1
            gone = head
            total_width += 4  # of …
        elif head > tail:
            head -= 1
            gone = head
        else:
            gone = count - tail
            tail -= 1
        total_width -= min(natural[gone], MIN_WIDTH) + 3
    positions = [*range(head), *([-1] if head < count else []), *range(count - tail, count)]
    widths = [natural[i] if i >= 0 else 1 for i in positions]
    room = limit - 3 * len(positions) - 1
    if sum(widths) > room:  # the widest give way: find the width at which all fit
        low, high = MIN_WIDTH, max(widths)
        while low < high:
            cap = (low + high + 1) // 2
            low, high = (cap, high) if sum(min(w, cap) for w in widths) <= room else (low, cap - 1)
        widths = [min(w, low) for w in widths]
    return positions, widths


def _rule(corners: str, widths: list[int]) -> str:
    return corners[0] + corners[1].join("─" * (w + 2) for w in widths) + corners[2]


def _centre(text: str, width: int) -> str:
    space = width - cell_width(text)
    return " " * (space // 2) + text + " " * (space - space // 2)


def _size_line(data: pa.Table, n_rows: int, columns: int) -> list[str]:
    parts = []
    if data.num_rows != 1 or n_rows < data.num_rows:
        parts.append(f"{data.num_rows:,} rows" if data.num_rows != 1 else "1 row")
        if n_rows < data.num_rows:
            parts[-1] += f" ({n_rows} shown)"
    if columns < data.num_columns:
        parts.append(f"{data.num_columns} columns ({columns} shown)")
    return [", ".join(parts)] if parts else []


# --------------------------------------------------------------------------------------------------------------- footer
def footer(outcome: Outcome, resume: str = 'con.resume("{}")') -> list[str]:
    """What has to be said beside the rows: estimates, notes, warnings, rows without an answer, what it cost.

    Args:
        resume: what continues a run that ended early, with {} for its id; "": somebody else says that.
    """
    lines = []
    inexact = [estimate for column_estimates in outcome.inexact.values() for estimate in column_estimates]
    ranged = [e for e in inexact if e.method not in _BOUNDS]
    if inexact:
        calls, unknown = max(e.calls for e in inexact), max(e.unknown for e in inexact)
        levels = ", ".join(sorted({f"{100 * e.confidence:.6g} %" for e in ranged}))
        methods = ", ".join(sorted({e.method for e in ranged}))
        line = f"estimate from {calls:,} rows asked ({methods}), interval at {levels}"
        line = line if ranged else f"bound from {calls:,} rows asked: the others may go beyond it"
        lines.append(line + (f", {unknown:,} of them without an answer" if unknown else ""))
    lines += outcome.notes
    if outcome.partial:
        goes_on = f"; {resume.format(outcome.run)} continues it" if outcome.run and resume else ""
        lines.append(f"partial: a limit was reached before the end{goes_on}")
    lines += [f"warning: {warning}" for warning in outcome.warnings]
    if outcome.errors:
        kinds = Counter(error.kind for error in outcome.errors).most_common()
        what = ", ".join(f"{kind} {count:,}" for kind, count in kinds)
        lines.append(f"{plural(len(outcome.errors), 'row')} without an answer: {what}")
    cost = cost_line(outcome.cost)
    return [*lines, cost] if cost else lines


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def cost_line(cost: Cost) -> str:
    """`$0.0021, 64 calls, 3 from the ledger, 3,120 + 64 tokens, 12.3 s`; empty when nothing was asked."""
    if not (cost.calls or cost.cached or cost.failed):
        return ""
    parts = ["price unknown"] if cost.usd is None else [dollars(cost.usd)] if cost.usd else []
    parts.append(plural(cost.calls, "call") if cost.calls or not cost.cached else "0 new calls")
    if cost.cached:
        parts.append(f"{cost.cached:,} from the ledger")
    if cost.failed:
        parts.append(f"{cost.failed:,} failed")
    if cost.input_tokens or cost.output_tokens:
        prompt = f" ({cost.cached_tokens:,} of them cached)" if cost.cached_tokens else ""
        parts.append(f"{cost.input_tokens:,}{prompt} + {cost.output_tokens:,} tokens")
    parts.append(f"{cost.seconds:.1f} s")
    return ", ".join(parts)


def dollars(usd: float) -> str:
    """An amount, with as many places as it takes to see it.

    >>> dollars(0.0021), dollars(0.000012), dollars(1234.5)
    ('$0.0021', '$0.000012', '$1,234.50')
    """
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.4f}" if usd >= 0.0001 else f"${usd:.6f}"


def price_line(quote: Quote) -> str:
    """What a statement will cost: `about $0.0021 (0.0010–0.0042), 64 (64–128) calls, 12 s`."""
    parts = []
    if quote.usd is None:
        parts.append("price unknown")
    elif quote.usd.high:
        places = 4 if quote.usd.high < 1 else 2
        parts.append("about $" + _ranged(quote.usd, f"{{:,.{places}f}}"))
    about = "" if parts and quote.usd is not None else "about "
    parts.append(f"{about}{_ranged(quote.calls, '{:,.0f}')} calls")
    if quote.seconds is not None and quote.seconds.high >= 1:
        parts.append(f"{_ranged(quote.seconds, '{:,.0f}')} s")
    return ", ".join(parts)


def _ranged(of: Range, shape: str) -> str:
    low, expected, high = (shape.format(number) for number in (of.low, of.expected, of.high))
    return expected if low == high else f"{expected} ({low}–{high})"


def text(outcome: Outcome, *, max_rows: int = MAX_ROWS, width: int | None = None) -> str:
    """An outcome as a table with its footer: what `Result.show()` prints.

    Args:
        max_rows: shown.
        width: characters of a line; None: of the terminal.
    """
    box = table(outcome.table, types=outcome.types, estimates=outcome.estimates, max_rows=max_rows, width=width)
    return "\n".join([*([box] if box else []), *map(printable, footer(outcome))])


# ---------------------------------------------------------------------------------------------------------------- files
def write_csv(data: pa.Table, stream: IO[str], *, estimates: Estimates | None = None) -> None:
    """RFC 4180 with a header and \\n at line ends. NULL is an empty field, an empty string is "" as in DuckDB.

    Args:
        stream: text, written as it is.
        estimates: get columns for their bounds.
    """
    data = with_bounds(data, estimates or {})
    stream.write(",".join(_csv_field(name) for name in data.column_names) + "\n")
    for row in _batches(data):
        stream.write(",".join("" if value is None else _csv_field(value) for value in row) + "\n")


def _csv_field(value: str) -> str:
    if not value or value != value.strip() or any(char in value for char in ',"\r\n'):
        return '"' + value.replace('"', '""') + '"'
    return value


def write_json(data: pa.Table, stream: IO[str], *, estimates: Estimates | None = None) -> None:
    """An array with one object a line. NaN and infinite numbers are null: JSON has none.

    Args:
        stream: text, written as it is.
        estimates: get keys for their bounds.
    """
    separator = "[\n"
    for line in _objects(data, estimates):
        stream.write(separator + line)
        separator = ",\n"
    stream.write("[]\n" if separator == "[\n" else "\n]\n")


def write_jsonl(data: pa.Table, stream: IO[str], *, estimates: Estimates | None = None) -> None:
    """One object a line, and nothing else.

    Args:
        stream: text, written as it is.
        estimates: get keys for their bounds.
    """
    for line in _objects(data, estimates):
        stream.write(line + "\n")


def as_document(outcome: Outcome, limit: int | None = None) -> dict[str, Any]:
    """An outcome for programs, as values of JSON: its rows with their bounds, and all that the footer says.

    Args:
        outcome: of a statement that has run.
        limit: rows at most, the first ones; `rows_left_out` counts the others. None: all.
    """
    data = outcome.bounded()
    part = data if limit is None else data.slice(0, limit)
    estimates = {
        name: column_estimates if isinstance(column_estimates, list) else [column_estimates]
        for name, column_estimates in outcome.estimates.items()
    }
    return {
        "columns": free_names(data.column_names),
        "rows": [json.loads(row) for row in _objects(part, None)],
        "rows_left_out": data.num_rows - part.num_rows,
        "exact": outcome.exact,
        "partial": outcome.partial,
        "estimates": {
            name: [_number(estimate) for estimate in column_estimates[:limit]]
            for name, column_estimates in estimates.items()
        },
        "rows_without_an_answer": len(outcome.errors),
        "calls": outcome.cost.calls,
        "cached": outcome.cost.cached,
        "usd": outcome.cost.usd,
        "footer": [printable(line) for line in footer(outcome, resume="")],
        "run": outcome.run,
    }


def _number(estimate: Estimate) -> dict[str, Any]:
    """An estimate as values of JSON; null where an end of its interval is open."""
    return {
        key: value if not isinstance(value, float) or math.isfinite(value) else None
        for key, value in asdict(estimate).items()
    }


def _objects(data: pa.Table, estimates: Estimates | None) -> Iterator[str]:
    """Each row as a JSON object."""
    data = with_bounds(data, estimates or {})
    keys = [json.dumps(name, ensure_ascii=False) + ":" for name in free_names(data.column_names)]
    floats = [any(word in kind for word in ("FLOAT", "DOUBLE", "REAL")) for kind in _types(data)]
    for row in _batches(data, "CAST(to_json(COLUMNS(*)) AS VARCHAR)"):
        values = [
            "null" if v is None else _finite(v) if is_float else v for v, is_float in zip(row, floats, strict=True)
        ]
        yield "{" + ",".join(key + value for key, value in zip(keys, values, strict=True)) + "}"


def _finite(value: str) -> str:
    """JSON text without NaN and Infinity, which DuckDB writes and JSON does not know."""
    if "n" not in value.lower():
        return value

    def clean(item: Any) -> Any:
        match item:
            case float() if not math.isfinite(item):
                return None
            case list():
                return [clean(x) for x in item]
            case dict():
                return {key: clean(x) for key, x in item.items()}
        return item

    return json.dumps(clean(json.loads(value.replace("inf", "Infinity") if value in ("inf", "-inf") else value)))


def write_markdown(data: pa.Table, stream: IO[str], *, estimates: Estimates | None = None) -> None:
    """A table of GitHub's Markdown; estimates as `120 ± 14`, NULL as NULL.

    Args:
        stream: text, written as it is.
        estimates: by column: one, or one a row.
    """
    estimates = estimates or {}
    kinds = [kind.upper() for kind in _types(data)]
    right = [kind.startswith(NUMBERS) for kind in kinds]
    stream.write("| " + " | ".join(_markdown_cell(name) for name in data.column_names) + " |\n")
    stream.write("|" + "|".join(" ---: " if number else " --- " for number in right) + "|\n")
    for number, row in enumerate(_batches(data)):
        cells = []
        for column, kind, value in zip(data.column_names, kinds, row, strict=True):
            estimate = estimate_at(estimates, column, number)
            if estimate is not None and not estimate.exact:
                cells.append(_markdown_cell(format_estimate(estimate, whole="INT" in kind, text=value)))
            else:
                cells.append("NULL" if value is None else _markdown_cell(value))
        stream.write("| " + " | ".join(cells) + " |\n")


# of cells; begins of HTML; of the address in a link or a picture
_MARKUP = re.compile(r"[\\|]|<(?=[A-Za-z/!?])|(?<=\])[(\[]")


def _markdown_cell(value: str) -> str:
    lines = _MARKUP.sub(r"\\\g<0>", value).replace("\r\n", "\n").splitlines() or [""]
    return "<br>".join(printable(line) for line in lines)


def write_parquet(data: pa.Table, path: Path, *, estimates: Estimates | None = None) -> None:
    """Zstandard-compressed Parquet, estimates with their bounds. What Parquet has no type for, as INTERVAL, is a text.

    Args:
        data: its metadata go into the file.
        path: of the file, which is replaced.
        estimates: get columns for their bounds.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    bounded = with_bounds(data, estimates or {})
    rows = bounded.rename_columns(free_names(bounded.column_names)).replace_schema_metadata(data.schema.metadata)
    least = [at for at, column in enumerate(rows.columns) if holds_least(column)]
    rows = _with_texts(rows, least)  # DuckDB fails on such a number in Parquet, and its database with it
    try:
        pq.write_table(rows, path, compression="zstd")
    except pa.ArrowNotImplementedError:
        pq.write_table(_parquet_types(rows), path, compression="zstd")


def _parquet_types(data: pa.Table) -> pa.Table:
    """The table with texts for the columns that Parquet has no type for."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    missing = []
    for at, field in enumerate(data.schema):
        try:
            pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])).close()
        except pa.ArrowNotImplementedError:
            missing.append(at)
    return _with_texts(data, missing)


def _with_texts(data: pa.Table, columns: Sequence[int]) -> pa.Table:
    """The table with texts in some of its columns."""
    import pyarrow as pa

    for at in columns:
        texts = [text for (text,) in _batches(data.select([at]))]
        data = data.set_column(at, data.column_names[at], pa.array(texts, pa.string()))
    return data


WRITERS = {"csv": write_csv, "json": write_json, "jsonl": write_jsonl, "markdown": write_markdown}
