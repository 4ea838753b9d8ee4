"""What a query gives: rows, estimates with intervals, errors, and what it cost. Lazy: it runs once, when first looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from uql.compiler.cost import Quote

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from uql.kernels.base import RowError
    from uql.llm.gate import Cost
    from uql.sampling.base import Estimate


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


class Result:
    """The rows of a statement. It runs on the first look at `.show .df .pl .arrow .fetchall .estimates .errors .cost`; once.

    `.explain()` and `.quote()` never run it.
    """

    def __init__(
        self,
        run: Callable[[], Outcome],
        explain: Callable[[], str],
        quote: Callable[[], Quote],
        text: str,
        store: Callable[[str, Outcome], None],
    ) -> None:
        self._run, self._explain, self._quote, self.text, self._store = run, explain, quote, text, store
        self._outcome: Outcome | None = None

    def run(self) -> Outcome:
        """Runs the query, the first time only."""
        if self._outcome is None:
            self._outcome = self._run()
        return self._outcome

    # -------------------------------------------------------------------------------------------------------- rows
    def arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self.run().table

    def df(self) -> pd.DataFrame:
        """The rows as a pandas data frame."""
        return self.arrow().to_pandas()

    def pl(self) -> pl.DataFrame:
        """The rows as a polars data frame."""
        import polars

        frame = polars.from_arrow(self.arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows as tuples."""
        table = self.arrow()
        columns = [table.column(i).to_pylist() for i in range(table.num_columns)]
        return list(zip(*columns, strict=True)) if columns else []

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row, or None."""
        rows = self.fetchall()
        return rows[0] if rows else None

    def show(self, max_rows: int = 40) -> None:
        """Prints the rows, the intervals, and a line on what it cost."""
        from uql.render import text

        print(text(self, max_rows=max_rows))

    def write_parquet(self, path: str | Path) -> None:
        """The rows as a Parquet file, an estimated column x with x_low and x_high."""
        from pathlib import Path as P

        from uql.render import write_parquet

        write_parquet(self.arrow(), P(path), estimates=self.estimates)

    def __len__(self) -> int:
        return int(self.arrow().num_rows)

    def __repr__(self) -> str:
        if self._outcome is None:
            return f"<uql.Result of {self.text.strip()[:60]!r}, not run yet: .show() runs it>"
        from uql.render import text

        return text(self)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(repr(self))}</pre>"

    # ------------------------------------------------------------------------------------------- what is said of them
    @property
    def columns(self) -> list[str]:
        return list(self.arrow().column_names)

    @property
    def types(self) -> list[str]:
        """DuckDB types of the columns."""
        return self.run().types

    @property
    def estimates(self) -> dict[str, Estimate | list[Estimate]]:
        """For each column that holds an aggregate its Estimate, or a list of them in row order where grouped."""
        return self.run().estimates

    @property
    def errors(self) -> list[RowError]:
        """Every answer that could not be had, with its reason."""
        return self.run().errors

    @property
    def cost(self) -> Cost:
        """Calls, requests, tokens, USD and seconds."""
        return self.run().cost

    @property
    def warnings(self) -> list[str]:
        return self.run().warnings

    @property
    def notes(self) -> list[str]:
        """What has to be said beside the rows: "found 37 of about 120 …"."""
        return self.run().notes

    @property
    def based_on(self) -> list[str]:
        """The estimated tables that the rows were read from."""
        return self.run().based_on

    @property
    def exact(self) -> bool:
        """Was every row asked that had to be, and answered?"""
        return self.run().exact

    @property
    def partial(self) -> bool:
        """Did a limit end the run before it was done?"""
        return self.run().partial

    @property
    def unverified(self) -> list[int]:
        """Positions of the rows that were returned unasked, under WITH (precision = …)."""
        return self.run().unverified

    def to_table(self, name: str) -> None:
        """The rows as a table of the database, as `TO name` stores them."""
        self._store(name, self.run())

    def explain(self) -> str:
        """The plan, how each quoted text was read, and the price. Makes no call."""
        return self._explain()

    def quote(self) -> Quote:
        """The price: calls, tokens, USD and seconds, each low, expected and high. Makes no call."""
        return self._quote()
