"""Rows that somebody has labelled, as a model is shown them: for `calibrate` and `evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import duckdb

from uql.base.errors import DataError
from uql.base.sql_text import DATA_FILES, first_line, literal
from uql.llm.questions import Cell, Row

if TYPE_CHECKING:
    from uql.session.session import Session

MOST_NAMES = 50  # of columns, in an error


def labelled_rows(
    session: Session, rows: str, label: str, columns: Sequence[str] = ()
) -> tuple[list[Row], list[object]]:
    """The rows that have a label, as a model is shown them, and their labels.

    Args:
        rows: a table, a file, or a SELECT in DuckDB's SQL.
        label: the column of the labels.
        columns: those that are shown; none: all but the label.
    Raises: DataError (UQL517) where they cannot be read, or a column is missing.
    """
    source = rows
    if rows.lstrip()[:6].upper() == "SELECT":
        source = f"({rows})"
    elif rows.lower().endswith(DATA_FILES):
        source = literal(rows)
    try:
        with session.plain_sql() as duck:
            table = duck.sql(f"SELECT * FROM {source}").to_arrow_table()
    except duckdb.Error as error:
        if isinstance(error, duckdb.IOException) and "No files found" in str(error):
            help = "rows are a table, a file, or a SELECT"
            raise DataError(f"there is no file {rows}", code="UQL517", help=help) from error
        raise DataError(f"the labelled rows cannot be read: {first_line(error)}", code="UQL517") from error
    if label not in table.column_names or table.num_columns < 2:
        raise DataError(
            f"the labelled rows have no column {label!r} beside those to show",
            code="UQL517",
            help=f"columns: {', '.join(table.column_names[:MOST_NAMES])}",
        )
    names = tuple(columns) or tuple(name for name in table.column_names if name != label)
    for name in names:
        if name not in table.column_names:
            raise DataError(
                f"the labelled rows have no column {name!r}",
                code="UQL517",
                help=f"columns: {', '.join(table.column_names[:MOST_NAMES])}",
            )
    examples, labels = [], []
    for one in table.to_pylist():
        if one[label] is not None:
            examples.append(Row(tuple(Cell(name, None if one[name] is None else str(one[name])) for name in names)))
            labels.append(one[label])
    return examples, labels
