"""What a statement that has run gave: rows, estimates, errors and cost. Every surface shows this record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from uql.sources.frames import marked

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.engine.provenance import Trace
    from uql.kernels.answers import RowError
    from uql.llm.run_record import Cost
    from uql.sampling.base import Estimate

Estimates = Mapping[str, "Estimate | Sequence[Estimate]"]
TEXT = b"uql.text"  # schema metadata of a table that is text to be printed as it is


@dataclass(slots=True)
class Outcome:
    """A query that has run."""

    table: pa.Table
    types: list[str]
    estimates: dict[str, Estimate | list[Estimate]]
    errors: list[RowError]
    cost: Cost
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    based_on: list[str] = field(default_factory=list)
    exact: bool = True
    partial: bool = False
    unverified: list[int] = field(default_factory=list)
    trace: Trace | None = None  # what `why` needs; None where no model was asked about a row
    run: str = ""  # its id in the ledger; "" where that keeps nothing

    def bounded(self, always: frozenset[str] = frozenset()) -> pa.Table:
        """The rows, with x_low and x_high behind an estimated column x, and behind those of `always`."""
        return with_bounds(self.table, self.estimates, always) if self.estimates else self.table

    def noted(self, made_by: str = "", *, intervals: bool = False) -> pa.Table:
        """The rows, with a note where they are estimates, or a part of them, so that what reads them later is not exact.

        Args:
            made_by: the statement, where it is known.
            intervals: with x_low and x_high, as `bounded`.
        """
        table = self.bounded() if intervals else self.table
        return table if self.exact else marked(table, made_by or f"run {self.run}")

    @property
    def inexact(self) -> dict[str, list[Estimate]]:
        """The estimates that are not exact, by column; a column without one is left out."""
        listed = {name: value if isinstance(value, list) else [value] for name, value in self.estimates.items()}
        return {name: some for name, value in listed.items() if (some := [e for e in value if not e.exact])}


def text_outcome(lines: list[str], of: Outcome | None) -> Outcome:
    """An outcome of lines of text, with the cost of another."""
    import pyarrow as pa

    from uql.llm.run_record import Cost

    table = text_table(lines) if lines else pa.table({})
    outcome = Outcome(table, ["VARCHAR"] * table.num_columns, {}, [], Cost())
    if of is not None:
        outcome.cost, outcome.errors, outcome.warnings = of.cost, of.errors, of.warnings
    return outcome


def text_table(lines: list[str]) -> pa.Table:
    """Lines of text as a table of one column, `plan`, marked as such for printing."""
    import pyarrow as pa

    return pa.table({"plan": pa.array(lines, type=pa.string())}, metadata={TEXT: b""})


def with_bounds(data: pa.Table, estimates: Estimates, always: frozenset[str] = frozenset()) -> pa.Table:
    """`data` with `x_low` and `x_high` after every column x that holds an inexact estimate, and after those of `always`.

    The one form in which files, data frames, stored tables and DuckDB's verbs hold estimates. Where a column of the rows has the
    name of an end already, the end gets a `_` behind its own: `x_low_`.

    Args:
        data: the rows of a result.
        estimates: by column: one, or one a row.
        always: columns that get both ends wherever they hold an estimate.
    """
    import pyarrow as pa

    arrays: list[Any] = []
    fields: list[pa.Field] = []  # what is said of a column, its collation too, stays
    used = {name.lower() for name in data.column_names}
    for column, of, array in zip(data.column_names, data.schema, data.columns, strict=True):
        arrays.append(array)
        fields.append(of)
        cells = [estimate_at(estimates, column, row) for row in range(data.num_rows)] if column in estimates else []
        if (column in estimates and column in always) or any(cell is not None and not cell.exact for cell in cells):
            for end, name in zip(("low", "high"), end_names(column, used), strict=True):
                fields.append(pa.field(name, pa.float64()))
                arrays.append(pa.array([getattr(cell, end) if cell else None for cell in cells], pa.float64()))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def end_names(column: str, used: set[str]) -> tuple[str, str]:
    """The names of the ends of a column's interval, which are `used` (lower case) from then on."""
    names = []
    for end in ("low", "high"):
        name = f"{column}_{end}"
        while name.lower() in used:
            name += "_"
        used.add(name.lower())
        names.append(name)
    return names[0], names[1]


def estimate_at(estimates: Estimates, column: str, row: int) -> Estimate | None:
    """The estimate of one cell, None where it has none.

    Args:
        estimates: by column, one or one a row.
        row: from 0 on.
    """
    column_estimates = estimates.get(column)
    if column_estimates is None:
        return None
    if not isinstance(column_estimates, Sequence):
        return column_estimates if row == 0 else None
    return column_estimates[row] if row < len(column_estimates) else None
