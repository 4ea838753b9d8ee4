"""DuckDB's verbs on a result: filter, project, order, join … over the rows it has, in a DuckDB of their own. No model is asked.

An estimated column x brings its interval along as x_low and x_high, as `TO name` stores it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import duckdb

from uql.base.arrow_values import arrow_of
from uql.base.errors import DataError
from uql.base.names import free_names
from uql.base.sql_text import first_line, quote
from uql.engine.outcome import Outcome
from uql.kernels.duck import typed_columns
from uql.sources.frames import MADE_BY, as_table, made_by

if TYPE_CHECKING:
    import pyarrow as pa

Step = Callable[[duckdb.DuckDBPyRelation, Callable[[Any], duckdb.DuckDBPyRelation]], duckdb.DuckDBPyRelation]


def relation(outcome: Outcome, con: duckdb.DuckDBPyConnection, text: str | None = None) -> duckdb.DuckDBPyRelation:
    """The rows as a relation of a connection, with those types that Arrow has no name for.

    Args:
        text: the statement whose estimates, or part of the rows, they are; it stands in the name of what the relation reads.
    """
    table = outcome.bounded()
    rows = table.rename_columns(free_names(table.column_names))
    if text is None:
        rows = con.from_arrow(rows)
    else:
        name = f"{MADE_BY} {' '.join(text.split())[:200]}"
        rows = con.register(name, rows).table(quote(name))
    columns = {
        typed_columns(table.select([i]).rename_columns([name]), [kind]): quote(name)
        for i, (name, kind) in enumerate(zip(outcome.table.column_names, outcome.types, strict=True))
    }
    lost = [typed for typed, name in columns.items() if typed != name]
    return rows.project(f"* REPLACE ({', '.join(lost)})") if lost else rows


def applied(outcome: Outcome, step: Step) -> Outcome:
    """What a step makes of the rows. Its cost, errors and notes are those of the query. Raises DataError (UQL509)."""
    based_on = list(outcome.based_on)

    def other_rows(other: Any) -> duckdb.DuckDBPyRelation:
        words = made_by(other)
        if words is not None:
            based_on.append(words or "the other side")
        return _other(other, con)

    with duckdb.connect(":memory:") as con:
        try:
            rows = step(relation(outcome, con), other_rows)
            types = [str(kind) for kind in rows.types]
            table = arrow_of(rows)
        except duckdb.Error as error:
            names_none = re.search('Referenced column "[^"]* ', str(error))  # a text for the model
            help = "verbs make no calls: ask in con.uql('SELECT * FROM r WHERE \"…\"')" if names_none else None
            raise DataError(f"DuckDB: {first_line(error)}", code="UQL509", help=help) from error
    exact = outcome.exact and based_on == outcome.based_on
    fields = {"table": table, "types": types, "based_on": based_on, "exact": exact}
    return replace(outcome, **fields, estimates={}, unverified=[], trace=None)


def as_arrow(other: Any) -> pa.Table:
    """The rows of a relation, a data frame or an Arrow table. Raises DataError (UQL504) for anything else."""
    table = as_table("the other side", other)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(table, pandas.DataFrame):
        import pyarrow as pa

        return pa.Table.from_pandas(table, preserve_index=False)
    return table


def _other(other: Any, con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    return relation(other, con) if isinstance(other, Outcome) else con.from_arrow(as_arrow(other))
