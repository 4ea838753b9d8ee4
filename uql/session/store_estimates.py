"""Rows that are estimates, or a part of what a query asks for, on their way into tables: none becomes a fact.

A statement that puts them into a table that is there is refused, but under `WITH (partial = true)`. Then an estimated column x takes
its interval along into x_low and x_high, and the comment of the table says what was put into it. What reads a table with such a
comment, or a view over it, is not exact. A new table (CREATE TABLE … AS, TO) gets the columns and the comment by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from uql.base.errors import BudgetError, UQLError
from uql.base.sql_text import dotted, literal
from uql.compiler.statement_targets import is_export
from uql.engine.stored_estimates import end_column

if TYPE_CHECKING:
    import duckdb

    from uql.compiler.statement_targets import Change
    from uql.engine.outcome import Outcome
    from uql.sources.catalog import Catalog

ENDS = ("low", "high")
_VARIABLE = re.compile(r"\s*SET\s+VARIABLE\b", re.IGNORECASE)


def refusal(done: Sequence[Outcome], reads: Sequence[str] = ()) -> BudgetError:
    """Why a statement changes nothing: what its rows are, and what to write.

    Args:
        done: the outcomes whose rows it would store, or by which it would choose rows.
        reads: tables of estimates that it reads besides.
    """
    inexact = [one for one in done if not one.exact]
    numbers = [name for one in inexact for name in one.inexact]
    errors = sum(len(one.errors) for one in inexact)
    based_on = list(dict.fromkeys([*reads, *(b for one in inexact for b in one.based_on)]))
    if numbers:
        what = f"by {', '.join(dict.fromkeys(numbers))}: an estimate, no fact"
    elif based_on:
        what = f"by what it reads: {based_on[0]}, which holds estimates, or a part of the rows"
    elif errors:
        what = f"while {errors:,} answers are missing"
    else:
        what = "by a part of the rows, or by answers of a small model in the place of a large one"
    ways = "" if based_on and not numbers else "a budget that reaches every row, as SET uql.budget = 'all'; or "
    return BudgetError(
        f"the statement would change tables or files {what}; nothing was changed",
        help=f"{ways}WITH (partial = true) at its end, and what reads the table later says that it is not exact",
    )


def check_stored(
    sql: str, change: Change | None, done: Sequence[Outcome], reads: Sequence[str], *, partial: bool
) -> None:
    """Raises BudgetError (UQL401) where a statement of DuckDB's would keep estimates, or a part of the rows, as facts.

    Args:
        change: what the statement writes to.
        done, reads: as in `refusal`.
        partial: rows of a table may be kept so, with their intervals; a variable has no place for them.
    """
    if not reads and all(one.exact for one in done):
        return
    if change is not None and not partial and change.verb != "CREATE":
        raise refusal(done, reads)
    if is_export(sql) and not partial:
        raise BudgetError(
            f"the files would not say what is an estimate, or a part of the rows, in them: {reads[0]}; nothing was written",
            help="COPY FROM DATABASE … TO … keeps what is said of tables; WITH (partial = true) writes the files nevertheless",
        )
    if _VARIABLE.match(sql) is not None:
        raise BudgetError(
            "the variable would hold an estimate, or a result computed from part of the rows; nothing was set",
            help="a budget that reaches every row, as SET uql.budget = 'all'; or SELECT … TO e, which stores an estimate with its interval",
        )


def without_interval(name: str, target: str, column: str | None) -> BudgetError:
    """An estimate would travel without its interval.

    Args:
        target: the table that it would go to.
        column: the one of the table; None: the statement is none that UQL sees through.
    """
    if column is not None:
        help = " ".join(f"ALTER TABLE {target} ADD COLUMN {column}_{end} DOUBLE;" for end in ENDS)
    else:
        help = f"SELECT … TO e stores it, and a second statement reads {name}, {name}_low and {name}_high from e"
    return BudgetError(
        f"{name} is an estimate, and {target or 'the statement'} has no columns for its interval; nothing was changed",
        help=help,
    )


def listed(catalog: Catalog, target: tuple[str, ...], n: int) -> tuple[str, ...]:
    """The columns that n items of an INSERT without a list are for: all of the table, or all but the ends of intervals.

    Args:
        target: the table's name, split at its dots.
        n: items of the query.
    Returns: empty where n fits neither.
    """
    there = catalog.columns(target)
    if len(there) == n:
        return tuple(there)
    ends = {end_column(name, end, there) for name in there for end in ENDS}
    rest = tuple(name for name in there if name not in ends)
    return rest if len(rest) == n else ()


def rows_with_bounds(
    catalog: Catalog, target: tuple[str, ...], columns: Sequence[str], outcome: Outcome
) -> tuple[pa.Table, list[str], list[str]]:
    """The rows of an outcome with the ends of their intervals, for a table that is there.

    Args:
        columns: those of the table that the columns of the outcome are for, in their order.
    Returns: the rows, the columns of the table that they are for, their DuckDB types.
    Raises: BudgetError (UQL401) where the table has no columns for the interval of an estimate.
    """
    from uql.sources.catalog import said_estimated

    there = catalog.columns(target)
    marked = not outcome.exact or said_estimated(catalog.comment(target)) is not None
    arrays, into, types = list(outcome.table.columns), list(columns), list(outcome.types)
    column_names = {name.lower() for name in columns}
    for name, column in zip(outcome.table.column_names, columns, strict=True) if marked else ():
        estimates = outcome.estimates.get(name)
        if estimates is None:
            continue
        ends = [end_column(column, end, there) for end in ENDS]
        if None in ends:
            if name in outcome.inexact:
                raise without_interval(name, ".".join(target), column)
            continue
        for end, at in zip(ENDS, ends, strict=True):
            if at is not None and at.lower() not in column_names:  # else the statement says itself what is there
                cells = [getattr(e, end) for e in (estimates if isinstance(estimates, list) else [estimates])]
                arrays.append(pa.chunked_array([pa.array(cells, pa.float64())]))
                into.append(at)
                types.append("DOUBLE")
    return pa.Table.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))]), into, types


def mark(catalog: Catalog, target: tuple[str, ...], statement: str) -> None:
    """Says in the comment of a table what was put into it; what the comment says already stays.

    Args:
        target: the table's name, split at its dots.
        statement: its text, kept to 200 characters.
    """
    from uql.kernels.duck import Duck
    from uql.sources.catalog import ESTIMATED, said_estimated

    before = catalog.comment(target)
    if said_estimated(before) is None:
        line = ESTIMATED + " ".join(statement.split())[:200]
        comment = literal(f"{before}\n{line}" if before else line)
        Duck(catalog.cursor).execute(f"COMMENT ON TABLE {dotted(target)} IS {comment}")


def placed(error: UQLError, source: str, start: int, end: int) -> UQLError:
    """The error with its place in the statement.

    Args:
        start, end: positions in `source`.
    """
    error.text, error.start, error.end = source, start, max(end, start + 1)
    return error


@contextmanager
def together(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """All that is done inside, or nothing of it: in a transaction of its own, or in that which is open."""
    first, second = (cursor.execute("SELECT system.main.txid_current()").fetchall() for _ in range(2))
    if first == second:
        yield
        return
    cursor.execute("BEGIN TRANSACTION")
    whole = False
    try:
        yield
        whole = True
    finally:
        cursor.execute("COMMIT" if whole else "ROLLBACK")


def counted(outcome: Outcome, rows: Sequence[tuple[object, ...]]) -> Outcome:
    """The outcome of a statement that wrote the rows of another: their count, and the files (RETURN_FILES), as DuckDB gives them."""
    columns = {"Count": pa.array([row[0] for row in rows], pa.int64())}
    if rows and len(rows[0]) > 1:
        columns["Files"] = pa.array([row[1] for row in rows], pa.list_(pa.string()))
    types = ["BIGINT", "VARCHAR[]"][: len(columns)]
    return replace(outcome, table=pa.table(columns), types=types, estimates={}, unverified=[], trace=None)
