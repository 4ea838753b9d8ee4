"""What a query gives: rows, estimates with intervals, errors, and what it cost. Lazy: it runs once, when first looked at."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from operator import index
from pathlib import Path as P
from typing import TYPE_CHECKING, Any, Literal, NoReturn, SupportsIndex, overload

import duckdb
import pyarrow as pa

from uql.base.arrow_values import durations, for_pandas, python_values
from uql.base.errors import BindError, ConfigError, DataError, memory_errors
from uql.base.names import distance, free_names
from uql.session.prepared import PreparedStatement
from uql.session.statements import errors_as_ours
from uql.sources.frames import MADE_BY

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    import polars as pl

    from uql.api.live import Stream
    from uql.compiler.cost import Quote
    from uql.engine.outcome import Outcome
    from uql.engine.provenance import Correction, Why
    from uql.kernels.answers import RowError
    from uql.llm.gate import Cost
    from uql.sampling.base import Estimate
    from uql.session.session import Session
    from uql.show.plots import Plot

INSTEAD = {  # methods of data frames, and of DuckDB's relations by other names → those of a result
    **dict.fromkeys(("to_df", "fetchdf", "fetch_df", "to_pandas", "toPandas", "collect"), ".df()"),
    **dict.fromkeys(("to_arrow", "to_arrow_table", "fetch_arrow_table"), ".arrow()"),
    **dict.fromkeys(("dtypes", "description", "schema"), ".columns, .types"),
    "to_polars": ".pl()",
    "to_csv": ".write_csv(path)",
    "to_parquet": ".write_parquet(path)",
    "create": ".to_table(name)",
    "head": ".limit(n)",
    "sort_values": ".order(…)",
    "groupby": ".aggregate(…)",
    "merge": ".join(…)",
    "iloc": "r[0], r[:5]",
    "count": "len(r)",
}
ROWS_AT_ONCE = 2_048  # made Python objects of together, where rows are fetched one after another


class Result:
    """The rows of a statement. It runs on the first look at `.show .df .pl .arrow .fetchall .estimates .errors .cost`; once.

    `.explain()` and `.quote()` never run it. DuckDB's verbs (`filter`, `project`, `order`, `aggregate`, `join` …) give results that
    are as lazy, work on the rows of this one, and make no further calls.

    >>> import uql
    >>> r = uql.connect().uql("SELECT range AS i, range % 2 AS odd FROM range(5)")
    >>> r
    <uql.Result of 'SELECT range AS i, range % 2 AS odd FROM range(5)', not run yet: .show() runs it>
    >>> r.filter("odd = 1").fetchall()
    [(1, 1), (3, 1)]
    >>> r.aggregate("odd, sum(i) AS total", "odd").order("odd").fetchall()
    [(0, 6), (1, 4)]
    >>> r.columns, len(r), r.exact
    (['i', 'odd'], 5, True)
    """

    def __init__(self, statement: PreparedStatement, session: Session | None = None) -> None:
        self._statement = statement
        self._session = session  # whose events tell of the run
        self._home: duckdb.DuckDBPyConnection | None = None
        self._unfetched: Iterator[tuple[Any, ...]] | None = None  # rows that fetchone and fetchmany have not given yet

    @property
    def text(self) -> str:
        """The statement."""
        return self._statement.text

    def run(self) -> Outcome:
        """Runs the query, the first time only; a second thread waits for the first."""
        with errors_as_ours():
            return self._statement.run()

    @property
    def has_run(self) -> bool:
        """Are the rows available already?"""
        return self._statement.has_run

    def stream(self) -> Stream:
        """The run as it goes on: `for moment in r.stream()`, or `async for`. Each `Moment` holds the calls so far and the estimates with
        their intervals; the last one is `done`. The rows follow from `.fetchall()`, `.df()`, `.to_arrow_reader()`.

        >>> import uql
        >>> [moment.done for moment in uql.connect().uql("SELECT 42").stream()]
        [True]
        """
        from uql.api.live import Stream

        return Stream(self._statement, self._session)

    # -------------------------------------------------------------------------------------------------------- rows
    @memory_errors()
    def arrow(self, *, intervals: bool = True) -> pa.Table:
        """The rows as an Arrow table.

        Args:
            intervals: an estimated column x comes with its interval, as the columns x_low and x_high behind it. A column of the rows
                with such a name stays as it is, and the end is called x_low_.
        """
        return self.run().noted(self.text, intervals=intervals)

    @memory_errors()
    def df(self, *, intervals: bool = True) -> pd.DataFrame:
        """The rows as a pandas data frame, in the types that DuckDB gives one: DECIMAL as float64, DATE as datetime64.

        Args: intervals: as `arrow`.
        Raises: DataError (UQL509) on a date that pandas cannot hold, as 'infinity'.
        """
        try:
            frame = for_pandas(self._named_apart(intervals)).to_pandas()
        except (OverflowError, ValueError) as error:
            raise DataError(
                f"a date of the result is none in Python: {error}",
                code="UQL509",
                help="cast it in the query: CAST(x AS VARCHAR); or r.pl(), r.arrow()",
            ) from error
        if not self.exact:
            frame.attrs[MADE_BY] = self.text
        return frame

    @memory_errors()
    def pl(self, *, intervals: bool = True) -> pl.DataFrame:
        """The rows as a polars data frame.

        Args: intervals: as `arrow`.
        """
        import polars

        frame = polars.from_arrow(durations(self._named_apart(intervals)))
        assert isinstance(frame, polars.DataFrame)
        if not self.exact:
            vars(frame)[MADE_BY] = self.text
        return frame

    def _named_apart(self, intervals: bool) -> pa.Table:
        """The rows as `arrow`, with a second column `n` called `n_1`."""
        rows = self.arrow(intervals=intervals)
        return rows.rename_columns(free_names(rows.column_names))

    def to_arrow_reader(self, batch_size: int = 1_000_000, *, intervals: bool = True) -> pa.RecordBatchReader:
        """The rows in Arrow batches, as DuckDB's relations give them.

        Args:
            batch_size: rows of a batch at most.
            intervals: as `arrow`.
        """
        batch_size = _whole("batch_size", batch_size, 1)
        table = self.arrow(intervals=intervals)
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=batch_size))

    @memory_errors()
    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows as tuples."""
        return _tuples(self.run().table, self.types)

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, None after the last: as in DuckDB. `fetchall` and `r[0]` begin at the first whatever was fetched."""
        return next(iter(self.fetchmany(1)), None)

    @memory_errors()
    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next rows, at most `size`."""
        size = _whole("size", size)
        if self._unfetched is None:
            self._unfetched = iter(self)
        return list(islice(self._unfetched, size))

    # ------------------------------------------------------------------------------------------------- DuckDB's verbs
    def relation(self) -> duckdb.DuckDBPyRelation:
        """The rows as DuckDB's own relation; an estimated column x comes with x_low and x_high."""
        from uql.api.relation_verbs import relation

        if self._home is None:
            self._home = duckdb.connect(":memory:")  # it lives as long as the result: older relations do not hold it
        return relation(self.run(), self._home, None if self.exact else self.text)

    def filter(self, condition: str) -> Result:
        """The rows for which a condition in DuckDB SQL holds."""
        return self._then("filter", condition, lambda rel, _: rel.filter(condition))

    def project(self, columns: str) -> Result:
        """Expressions of DuckDB SQL over the columns: `r.project("id, upper(name) AS name")`."""
        return self._then("project", columns, lambda rel, _: rel.project(columns))

    def select(self, *columns: str) -> Result:
        """As `project`, an argument a column."""
        return self.project(", ".join(columns))

    def order(self, keys: str) -> Result:
        """The rows in the order of expressions of DuckDB SQL: `r.order("n DESC")`."""
        return self._then("order", keys, lambda rel, _: rel.order(keys))

    def limit(self, rows: int, offset: int = 0) -> Result:
        """The first rows, after `offset` of them."""
        rows, offset = _whole("rows", rows), _whole("offset", offset)
        return self._then("limit", f"{rows}, {offset}", lambda rel, _: rel.limit(rows, offset))

    def aggregate(self, expressions: str, group_by: str = "") -> Result:
        """Aggregates over the rows: `r.aggregate("city, count(*) AS n", "city")`."""
        return self._then("aggregate", expressions, lambda rel, _: rel.aggregate(expressions, group_by))

    def distinct(self) -> Result:
        """The rows, each once."""
        return self._then("distinct", "", lambda rel, _: rel.distinct())

    def join(self, other: Any, condition: str, how: str = "inner") -> Result:
        """The rows joined with those of another result, a relation, or a data frame.

        Args:
            condition: a column that both have, or an expression over the aliases `l` and `r`: "l.id = r.review".
            how: inner, left, right, outer, semi or anti.
        """
        return self._then(
            "join",
            condition,
            lambda rel, make: rel.set_alias("l").join(make(_rows(other)).set_alias("r"), condition, how),
        )

    def union(self, other: Any) -> Result:
        """The rows of both, repeated ones too (UNION ALL)."""
        return self._then("union", "", lambda rel, make: rel.union(make(_rows(other))))

    def except_(self, other: Any) -> Result:
        """The rows that the other has not."""
        return self._then("except", "", lambda rel, make: rel.except_(make(_rows(other))))

    def intersect(self, other: Any) -> Result:
        """The rows that the other has too."""
        return self._then("intersect", "", lambda rel, make: rel.intersect(make(_rows(other))))

    def query(self, name: str, sql: str) -> Result:
        """DuckDB SQL over the rows, which it names `name`: `r.query("t", "SELECT max(n) FROM t")`."""
        return self._then("query", sql, lambda rel, _: rel.query(name, sql))

    def _then(self, verb: str, statement: str, step: Any) -> Result:
        from uql.api.relation_verbs import applied
        from uql.compiler.cost import FREE

        derived = PreparedStatement(
            lambda: applied(self.run(), step),
            lambda: (
                f"{verb} {statement}".rstrip() + "\n" + "\n".join(f"  {line}" for line in self.explain().splitlines())
            ),
            lambda: FREE if self.has_run else self.quote(),
            f"{self.text.strip()} . {verb}({statement})",
            self._statement.store,
        )
        return Result(derived, self._session)

    # -------------------------------------------------------------------------------------------------------- shown
    def show(self, max_rows: int = 40) -> None:
        """Prints the rows, the intervals, and a line on what it cost."""
        from uql.show.render import text

        print(text(self.run(), max_rows=_whole("max_rows", max_rows)))

    def plot(self, kind: Literal["bar", "line", "histogram", "scatter", "images"] | None = None) -> Plot:
        """The plot that fits the rows (`uql.show.charts.chart`), shown by a notebook; `.save("x.svg")` writes .svg, .png or .html."""
        from uql.show.charts import chart

        return chart(self.run(), self.text, kind)

    def bars(self, width: int = 40) -> str:
        """Bars for a terminal, `width` characters at most, each with its number and interval."""
        from uql.show.charts import bars

        return bars(self.run(), _whole("width", width))

    def write_parquet(self, path: str | Path) -> None:
        """The rows as a Parquet file, an estimated column x with x_low and x_high."""
        from uql.show.render import write_parquet

        write_parquet(self.run().noted(self.text), P(path), estimates=self.estimates)

    def write_csv(self, path: str | Path) -> None:
        """The rows as a CSV file with a header, an estimated column x with x_low and x_high."""
        from uql.show.render import write_csv

        with P(path).open("w", encoding="utf-8", newline="") as stream:
            write_csv(self.run().table, stream, estimates=self.estimates)

    def __len__(self) -> int:
        return int(self.run().table.num_rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """The rows as tuples, ROWS_AT_ONCE of them made at a time: `for id, mood in r`."""
        table, types = self.run().table, self.types
        for start in range(0, len(table), ROWS_AT_ONCE):
            yield from _tuples(table.slice(start, ROWS_AT_ONCE), types)

    @overload
    def __getitem__(self, key: int) -> tuple[Any, ...]: ...
    @overload
    def __getitem__(self, key: slice | str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> tuple[Any, ...] | list[Any]:
        """Row `r[0]` as a tuple, rows `r[:5]` as a list of them, column `r["mood"]` as a list of values."""
        if isinstance(key, int):
            return _tuples(self.run().table.slice(range(len(self))[key], 1), self.types)[0]
        if not isinstance(key, str):
            return self.fetchall()[key]
        if key not in self.columns:
            raise KeyError(f"no column {key}; columns: {', '.join(self.columns)}")
        at = self.columns.index(key)
        return python_values(self.run().table.column(at), self.types[at])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self.columns)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows for whatever reads Arrow: `polars.DataFrame(r)`, `con.sql("FROM r")`; an estimated x with x_low and x_high."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    if not TYPE_CHECKING:  # its names are known before it runs

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            near = next((f".{own}" for own in dir(Result) if distance(own, name, 1) <= 1), "")
            others = f'r["{name}"] is a column, r.df() a data frame, r.relation() a relation of DuckDB\'s'
            raise AttributeError(f"a result has no {name}: {INSTEAD.get(name) or near or others}")

    def __reduce__(self) -> NoReturn:
        raise TypeError("a uql.Result cannot be copied or pickled: keep its rows, as r.df(), r.arrow() or r.fetchall()")

    def __repr__(self) -> str:
        if not self.has_run:
            return f"<uql.Result of {self.text.strip()[:60]!r}, not run yet: .show() runs it>"
        from uql.show.render import text

        return text(self.run())

    def _repr_html_(self) -> str:
        from uql.show.html import not_run, result

        return result(self.run()) if self.has_run else not_run(self.text)

    # ------------------------------------------------------------------------------------------- what is said of them
    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.run().table.column_names)

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
        """Every missing answer, with its reason."""
        return self.run().errors

    @property
    def cost(self) -> Cost:
        """Calls, requests, tokens, USD and seconds."""
        return self.run().cost

    @property
    def warnings(self) -> list[str]:
        """What may not be meant as it was read, each with its code."""
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
    def run_id(self) -> str:
        """Of `uql runs`, and the token of `con.resume`; "" where no model was asked or the ledger keeps nothing."""
        return self.run().run

    def retry_failed(self) -> Result:
        """The same run once more: rows without an answer are asked again, all others come from the ledger without a call.

        Raises: ConfigError (UQL412) where no run was kept.
        """
        outcome = self.run()
        if not outcome.errors:
            return self
        if self._statement.again is None or not outcome.run:
            raise ConfigError(
                "nothing was kept of this run, so all rows would be asked again",
                code="UQL412",
                help="run it with a ledger: connect(ledger = 'path')",
            )
        return Result(self._statement.again(outcome.run), self._session)

    @property
    def unverified(self) -> list[int]:
        """Positions of the rows that were returned unasked, under WITH (precision = …)."""
        return self.run().unverified

    def why(self, row: int) -> Why:
        """The answers that an output row rests on: what the model was shown, the prompt, the raw answer, its probability, the
        model, what the call cost, and the answer's id in the ledger.

        Args:
            row: position in the output, from 0 on, or below 0 from its end. For an aggregated row up to 20 of the rows behind it.
        Raises: DataError (UQL515) where nothing is kept of the row.
        """
        from uql.engine.provenance import Why

        row, trace = _whole("row", row, None), self.run().trace
        if trace is None or row < 0:
            row = self._checked(row)
        return trace.why(row) if trace is not None else Why(row, ())

    def _checked(self, row: int) -> int:
        """The position of a row that the result has; below 0: from its end. Raises: IndexError."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"there is no row {row}: the result has {len(self):,}")
        return row % len(self)

    def correct(self, row: int, value: Any, column: str | None = None) -> Correction:
        """Keeps a person's answer about an output row: later queries take it in the place of any model's, without a call.

        It belongs to the question and the content of the row. What the row rests on here stays as it was: run the query again, which has
        the same draw with the corrected value. It is listed by `FROM uql_corrections()` and `why`, and taken back by `.undo()` or
        `con.undo(id)`.

        Args:
            row: position in the output, from 0 on, or below 0 from its end.
            value: of the question's type: a bool for a condition, a label for a choice, None where the row does not say.
            column: its name in the output, or the quoted text, where the row rests on several.
        Raises: DataError (UQL524) where the value does not fit, the row stands for several, or there is none to correct;
            (UQL515) where nothing is kept of the row.
        """
        row, outcome = self._checked(_whole("row", row, None)), self.run()
        if outcome.trace is None:
            raise DataError("this row has no answer of a model, so there is nothing to correct", code="UQL524")
        correction = outcome.trace.correct(row, value, column)
        warning = "answers were corrected since these rows were made: run the query again"
        outcome.notes[:] = [note for note in outcome.notes if note != warning] + [warning]
        return correction

    def to_table(self, name: str) -> None:
        """The rows as a table of the database, as `TO name` stores them."""
        if not isinstance(name, str) or not name:
            raise BindError(f"a table is given by its name, not by {name!r}", code="UQL200")
        with errors_as_ours():
            self._statement.store(name, self.run())

    def explain(self) -> str:
        """The plan, how each quoted text was read, and the price. Makes no call."""
        with errors_as_ours():
            return self._statement.explain()

    def quote(self) -> Quote:
        """The price: calls, tokens, USD and seconds, each low, expected and high. Makes no call."""
        with errors_as_ours():
            return self._statement.quote()


def _whole(name: str, value: Any, least: int | None = 0) -> int:
    """An argument that is a whole number, of numpy too. Raises: BindError (UQL200).

    Args:
        name: of the argument.
        value: as given.
        least: that it may be; None: any.
    """
    if not isinstance(value, SupportsIndex) or (least is not None and index(value) < least):
        bound = "" if least is None else f" from {least} on"
        raise BindError(f"{name} is a whole number{bound}, not {value!r}", code="UQL200")
    return index(value)


def _tuples(table: pa.Table, types: list[str]) -> list[tuple[Any, ...]]:
    """The rows of a table whose columns have these DuckDB types."""
    columns = [python_values(table.column(i), kind) for i, kind in enumerate(types)]
    return list(zip(*columns, strict=True)) if columns else []


def _rows(other: Any) -> Any:
    """The outcome of a result; anything else as it is."""
    return other.run() if isinstance(other, Result) else other
