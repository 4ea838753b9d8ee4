"""The reference answers of the suites, and whether the rows of a plan equal one.

The labels behind the texts of rotowire are there for 60 % of its games, those behind the flags and texts of countries for 116 of
194 countries, while the published answers rest on all of them. A reader that answers from labels alone cannot reach those; so an
answer that rests on labels is compared with the published one as far as there are labels: a set without the rows that have none,
anything else with SQL over the labels (`plans/*_labelled.sql`), which is written apart from the plans.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

if TYPE_CHECKING:
    import pyarrow as pa

DIGITS = 6  # significant ones in which two numbers must agree


@dataclass(frozen=True, slots=True)
class Reference:
    """A question with its answer.

    Attributes:
        id, question, output: as the suite has them; output is value, table, plot …
        modalities: of what it reads.
        answer: parsed, in the form that `kind` says.
        kind: rows, set, value, which_image, human_text, human_list; None: there is no answer.
        benchmark: the part of the suite.
        scope: the tables it is asked of.
        source: of the answer.
        workflow: sequential or parallel, where M²EX says so.
    """

    id: str
    question: str
    output: str
    modalities: tuple[str, ...]
    answer: Any
    kind: str | None
    benchmark: str
    scope: str
    source: str = ""
    workflow: str = ""


def references(shared: Path, suite: str) -> list[Reference]:
    """Every question of a suite."""
    folder = shared / suite
    with duckdb.connect() as con:
        rows = con.execute(
            "SELECT q.question_id, question, output_type, modalities, answer, answer_kind, benchmark, scope, gt_source, "
            "json_extract_string(meta, '$.workflow') "
            f"FROM '{folder}/questions.parquet' q LEFT JOIN '{folder}/answers.parquet' a USING (question_id) ORDER BY 1"
        ).fetchall()
    return [
        Reference(i, q, str(o), tuple(m or ()), _parsed(a), k, b, s or "", g or "", w or "")
        for i, q, o, m, a, k, b, s, g, w in rows
    ]


def within_labels(shared: Path, suite: str, known: list[Reference]) -> dict[str, tuple[Reference, str]]:
    """What a reader of the labels there are can answer: by question the reference, and what it is.

    "published": as published, where it rests on no label, or all labels are there; "published, rows with labels": a set without the
    others; "SQL over the labels"; "no label": the label that decides is not there, and nobody can be right.
    """
    if suite not in LABELS:
        return {r.id: (r, "published") for r in known}
    truths = _statements(suite)
    found: dict[str, tuple[Reference, str]] = {}
    with duckdb.connect() as full, duckdb.connect() as few:
        for con, scope in ((full, ""), (few, " WHERE in_m2ex_100")):
            LABELS[suite](con, shared / suite, scope)
        for r in known:
            if set(r.modalities) <= {"table"}:
                found[r.id] = (r, "published")
            elif isinstance(r.answer, dict) and "must" in r.answer:
                names = {n for (n,) in full.execute("SELECT name FROM countries JOIN labels USING (code)").fetchall()}
                answer = {key: [name for name in r.answer[key] if name in names] for key in ("must", "may")}
                found[r.id] = (replace(r, answer=answer), "published, rows with labels")
            elif r.id in truths:
                con = few if "m2ex" in r.id else full
                rows = con.execute(truths[r.id]).fetchall()
                columns = [column[0] for column in con.description or ()]
                basis = "SQL over the labels" if rows else "no label"
                found[r.id] = (replace(r, answer={"columns": columns, "rows": [list(row) for row in rows]}), basis)
    return found


def _statements(suite: str) -> dict[str, str]:
    """The SQL of each question in the file of a suite."""
    text = (Path(__file__).parent / "plans" / f"{suite}_labelled.sql").read_text(encoding="utf-8")
    pieces = re.split(r"^-- question: (\S+): .*$", text, flags=re.MULTILINE)[1:]
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


def _rotowire(con: duckdb.DuckDBPyConnection, folder: Path, scope: str) -> None:
    for name in ("players", "teams"):
        con.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder}/{name}.parquet'")
    for who in ("player", "team"):
        games = f"SELECT game_id FROM '{folder}/valid_reports.parquet'{scope}"
        labels = f"SELECT * FROM '{folder}/valid_labels_{who}_game.parquet' WHERE game_id IN ({games})"
        con.execute(f"CREATE VIEW {who}_labels AS {labels}")


def _countries(con: duckdb.DuckDBPyConnection, folder: Path, scope: str) -> None:
    for name in ("countries", "labels"):
        con.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder}/{name}.parquet'")


LABELS = {"rotowire": _rotowire, "countries_flags": _countries}


def _parsed(answer: str | None) -> Any:
    if answer is None or answer[:1] not in ("{", "["):
        return answer
    try:
        return json.loads(answer)
    except ValueError:
        return answer


def equal(tables: tuple[pa.Table, ...], reference: Reference) -> bool:
    """Whether the rows equal the reference; their order does not count, other columns beside the reference's neither."""
    answer = reference.answer
    if isinstance(answer, list):
        return len(answer) == len(tables) and all(_same_rows(t, part) for t, part in zip(tables, answer, strict=True))
    table = tables[0]
    if isinstance(answer, dict) and "rows" in answer:
        return _same_rows(table, answer)
    if isinstance(answer, dict) and "must" in answer:
        said = Counter(str(value) for value in table.column(0).to_pylist())
        must, may = set(answer["must"]), set(answer["may"])
        return must <= set(said) <= must | may and max(said.values(), default=1) == 1
    if isinstance(answer, dict) and "series_must" in answer:
        return _within(table, answer)
    values = [value for row in table.to_pylist() for value in row.values()]
    return len(values) == 1 and key_of(values[0]) == key_of(_number(answer))


def _same_rows(table: pa.Table, answer: dict[str, Any]) -> bool:
    """The rows under the columns of the reference, as multisets; either reading of a century is right."""
    names = {name.lower(): name for name in table.column_names}
    columns = [names.get(str(column).lower()) for column in answer["columns"]]
    if any(column is None for column in columns):
        return False
    found = Counter(tuple(key_of(row[c]) for c in columns if c is not None) for row in table.to_pylist())
    readings = [
        answer["rows"],
        *([answer["rows_other_century_reading"]] if "rows_other_century_reading" in answer else []),
    ]
    return any(found == Counter(tuple(key_of(v) for v in row) for row in rows) for rows in readings)


def _within(table: pa.Table, answer: dict[str, Any]) -> bool:
    """Every bar between its sure count, and that with the doubtful ones."""
    most = dict(answer["series_may"])
    first, second = table.column_names[:2]
    found = {row[first]: row[second] for row in table.to_pylist()}
    return set(found) == {x for x, _ in answer["series_must"]} and all(
        n <= found[x] <= n + most.get(x, 0) for x, n in answer["series_must"]
    )


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def key_of(value: Any) -> Any:
    """A value in the form in which two are compared: numbers to six digits, dates as text."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float | decimal.Decimal):
        number = float(value)
        return f"{number:.{DIGITS}g}" if math.isfinite(number) else None
    if isinstance(value, datetime.date):
        return value.isoformat()[:10]
    return value if value is None else str(value).strip()
