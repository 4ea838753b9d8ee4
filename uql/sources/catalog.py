"""The catalog: the tables, views, files and data frames that a query may name, over a DuckDB connection."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import duckdb

from uql.base.duckdb_connections import CurrentDatabase, current_database
from uql.base.duckdb_functions import AggregateFunctions
from uql.base.errors import DataError, UnknownTableError, UQLError
from uql.base.media_types import MOST_HEAD, media_type, modality as _modality
from uql.base.names import suggestion
from uql.base.schema import Field, Modality, Table
from uql.base.sql_text import dotted, literal, quote
from uql.compiler.bind.lateral import own_function
from uql.compiler.changing_functions import READS_ONLY, TO_CHANGE, calls_change, changing_definitions, names_one
from uql.compiler.private_columns import may_read_private, private_columns
from uql.compiler.statement_targets import executed, is_call, is_export, may_name, query_in, tables, tokens
from uql.sources.files import file_sql, reader
from uql.sources.frames import MADE_BY, Frames, is_frame, made_by
from uql.sources.parts import Parts

if TYPE_CHECKING:
    import pyarrow as pa

ESTIMATED = "estimated by UQL: "  # begins a line in the comment of a table that holds estimates, or a part of the rows
SAMPLE_ROWS = 1_000
WIDE = 100  # columns that are measured at a time
LONG_TEXT = 30  # characters: a VARCHAR column of a greater mean length is text,
MOST_CODES = 0.9  # unless a greater share of its values are identifiers, hashes, paths or addresses:
_CODE = r"[0-9A-Za-z_./:+=?&%#~@$-]+"  # one word of these
_PRIVATE = re.compile(r"\bprivate\b", re.IGNORECASE)
_HIDDEN = (
    "__uql_",
    "__ducklake_metadata_",
)  # begin the names of databases that no list shows: of a lake, which views show, and its catalog
_INTERNAL = (  # tables of UQL's own bookkeeping
    "system.main.starts_with(table_name, '__uql_') OR table_name = 'uql_semantic_tables'"
    + "".join(f" OR system.main.starts_with(database_name, '{start}')" for start in _HIDDEN)
)
_FIRST_WORD = re.compile(r"\W*(\w+)")


@dataclass(frozen=True, slots=True)
class _CatalogEntry:
    """A table or view: database, schema and name, its comment."""

    path: tuple[str, str, str]
    comment: str
    view: bool


_SETTINGS = (  # of one connection, and able to change what a query gives
    "search_path",
    "TimeZone",
    "Calendar",
    "integer_division",
    "ieee_floating_point_ops",
    "order_by_non_integer_literal",
    "scalar_subquery_error_on_multiple_rows",
    "file_search_path",
)
_ORDERS = "system.main.current_setting('default_order'), system.main.current_setting('default_null_order')"
_CHOSEN = (
    f"SELECT {_ORDERS}, system.main.txid_current(), (SELECT system.main.list(v) FROM system.main.duckdb_variables() AS v),"
    f" {', '.join(f'system.main.current_setting({literal(name)})' for name in _SETTINGS)}"
)
_RELATIONS = " UNION ALL ".join(
    f"SELECT database_name, schema_name, {kind}_name, comment, {kind == 'view'}, system.main.current_database(),"
    f" system.main.current_setting('search_path'), {named} FROM system.main.duckdb_{kind}s()"
    for kind, named in (("table", "system.main.contains(sql, 'COLLATE ')"), ("view", "NOT internal"))
)
_COLLATED_VIEW = (
    "SELECT 1 FROM system.main.duckdb_views() WHERE NOT internal AND system.main.contains(sql, 'COLLATE ') LIMIT 1"
)
_MAY_BE_ESTIMATED = (  # the comments, the names of views, and neither the definitions of any nor DuckDB's own views
    "SELECT comment, NULL FROM system.main.duckdb_tables() WHERE comment IS NOT NULL"
    " UNION ALL SELECT comment, view_name FROM system.main.duckdb_views() WHERE NOT internal"
)
_TRANSACTION = "SELECT system.main.txid_current()"
MOST_OF_A_LINE = 300  # characters of what DuckDB says of a file
_DEFINITIONS = (  # what reads tables under a name of its own; no function is called, since a macro may have its name
    "SELECT database_name, schema_name, view_name, '', sql FROM system.main.duckdb_views() WHERE NOT internal AND sql IS NOT NULL"
    " UNION ALL SELECT database_name, schema_name, function_name, '()', macro_definition"
    " FROM system.main.duckdb_functions() WHERE NOT internal AND macro_definition IS NOT NULL"
)
_PREPARED = " UNION ALL SELECT '', '', name, '()', statement FROM system.main.duckdb_prepared_statements()"
_NOTES = f"key IN ('{MADE_BY}'::BLOB, 'PANDAS_ATTRS'::BLOB)"  # of a Parquet file: of Arrow and our own, of pandas
_FROM = ("FROM", "JOIN")
_BEHIND_FROM = ("SELECT", "WHERE", "ON", "GROUP", "HAVING", "ORDER", "LIMIT", "QUALIFY", "WINDOW", "VALUES")
_ANY_PRIVATE = "SELECT 1 FROM system.main.duckdb_columns() WHERE comment ILIKE '%private%' LIMIT 1"
_ANY_SEQUENCE = "SELECT 1 FROM system.main.duckdb_sequences() LIMIT 1"
_READS = re.compile(r"\(|\b(from|join|table|pivot|unpivot|summarize)\b", re.I)  # without one, nothing is called or read
_MACRO = (
    "SELECT macro_definition FROM system.main.duckdb_functions() WHERE function_name ILIKE ? AND NOT internal"
    " AND macro_definition IS NOT NULL"
)
_FUNCTIONS = "SELECT DISTINCT function_name FROM system.main.duckdb_functions() WHERE internal"


def said_estimated(comment: object) -> str | None:
    """What the comment of a table says of the statement that put estimates, or a part of the rows, into it; None: nothing."""
    lines = str(comment or "").splitlines()
    return next((line.removeprefix(ESTIMATED) for line in lines if line.startswith(ESTIMATED)), None)


class Catalog:
    """What a query may name.

    Statements that use a `Table.sql` run on `cursor`, the session. It is the connection itself where that belongs to UQL. Over a
    connection of the user's it is a cursor, so that a result which the user has half read is never disturbed; data frames, and
    copies of the user's temporary tables, are visible there alone.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, *, own: bool = False) -> None:
        """Args: own: is the connection UQL's, and no user's?"""
        self.connection = connection
        self.cursor = connection if own else connection.cursor()
        self.planned: dict[str, Table] = {}  # that earlier statements of a script would make, while it is checked
        self.read_only = False  # do statements that change something raise UQL511?
        self.collated = False  # does a table or view name a collation?
        self._files = True  # may statements read files?
        self._locked = False  # can no statement change a setting?
        # tables, and their columns, in lower case, that are private without a comment that says so
        self._private: frozenset[tuple[str, str]] = frozenset()
        self._own = own
        self._replacing = True  # may a name mean a Python variable of the caller's?
        self._followed: dict[str, str] = {}  # what SET has chosen on the user's connection, and the cursor has
        self._transaction: object = None  # of the latest look at the user's connection
        self._looks: dict[str, duckdb.DuckDBPyRelation] = {}  # kept, for they are read again and again
        self._listed: list[tuple[Any, ...]] | None = None  # what `listed_once` keeps: empty before the first look
        self.python_variables(False)
        self._frames = Frames(self.cursor)
        self.parts = Parts()
        self._fields: dict[tuple[object, ...], tuple[Field, ...]] = {}
        self._lock = threading.RLock()
        self.orders: tuple[str, str] | None = None  # default_order, default_null_order: where they are not DuckDB's
        self.orders_known = False
        self._database: CurrentDatabase | None = None
        self._orders_are_own = False
        self._home: str | None = None  # the schema of `home`
        self._follow()

    # ------------------------------------------------------------------------------------------------------- session
    def python_variables(self, on: bool) -> None:
        """May a name in SQL mean a data frame of the caller's? Only in `con.sql` and `con.execute`: elsewhere the caller is UQL."""
        if on == self._replacing:
            return
        with contextlib.suppress(duckdb.Error):  # inside a transaction that an error has ended
            self.cursor.execute(f"SET python_enable_replacements = {str(on).lower()}")
            self._replacing = on

    def begin(self) -> None:
        """Makes the session ready for a statement of UQL's. What is left of a result of `con.execute` is given up, as DuckDB does."""
        with self._lock:
            if self._replacing:
                if hasattr(self.cursor, "complete"):  # from DuckDB 2.0 on nothing else runs before
                    self.cursor.complete()
                self.python_variables(False)
                self.orders_known = False
            self._follow()
            self.parts.begin()
            if "aggregates" in vars(self):
                self.aggregates.forget_macros()
            vars(self).pop("changing", None)

    @property
    def database(self) -> CurrentDatabase:
        """The database in use. Looked up anew where a statement of DuckDB's own may have changed it, as the orders are."""
        if self._database is None or self._replacing or not self.orders_known:
            self._database = current_database(self.cursor)
        return self._database

    def lock_settings(self, *, files: bool) -> None:
        """Locks the settings of this DuckDB, for all its connections and for good.

        Args:
            files: may it go on reading files and addresses?
        """
        access = () if files else ("enable_external_access = false",)
        for setting in ("GLOBAL python_enable_replacements = false", *access, "lock_configuration = true"):
            self.cursor.execute(f"SET {setting}")
        self._locked, self._files = True, files

    @contextlib.contextmanager
    def own_orders(self) -> Iterator[None]:
        """ORDER BY without a direction means ASC NULLS LAST in this session meanwhile, as UQL's own SQL expects."""
        if self.orders is None:
            yield
            return
        self._set_own_orders()
        try:
            yield
        finally:
            self._reset_orders()

    @contextlib.contextmanager
    def users_orders(self) -> Iterator[None]:
        """Within `own_orders`: the user's meanwhile, which views and macros of theirs expect."""
        if not self._orders_are_own:
            yield
            return
        self._reset_orders()
        try:
            yield
        finally:
            self._set_own_orders()

    def _set_own_orders(self) -> None:
        for setting, value in (("default_order", "asc"), ("default_null_order", "nulls_last")):
            with contextlib.suppress(duckdb.Error):  # inside a transaction that an error has ended
                self.cursor.execute(f"SET SESSION {setting} = '{value}'")
        self._orders_are_own = True

    def _reset_orders(self) -> None:
        for setting in ("default_order", "default_null_order"):
            with contextlib.suppress(duckdb.Error):  # as above
                self.cursor.execute(f"RESET SESSION {setting}")
        self._orders_are_own = False

    def hide_internal(self) -> None:
        """Leaves UQL's own tables out of SHOW TABLES, duckdb_tables() and information_schema in this session."""
        for listed in ("tables", "views", "columns"):
            hidden = _INTERNAL.replace("table_name", "view_name") if listed == "views" else _INTERNAL
            with contextlib.suppress(duckdb.Error):
                self.cursor.execute(
                    f"CREATE OR REPLACE TEMP MACRO duckdb_{listed}() AS TABLE"
                    f" SELECT * FROM system.main.duckdb_{listed}() WHERE NOT ({hidden})"
                )

    def _follow(self) -> None:
        """Takes over what USE, SET and SET VARIABLE have chosen on the user's connection since the last look: a cursor has its own.

        On a connection of UQL's the orders are read anew where a statement of DuckDB's own may have changed them.
        """
        rows = self._of_users(_CHOSEN)
        if not self._own or not self.orders_known:
            self._database = None
            with contextlib.suppress(duckdb.Error):  # inside a transaction that an error has ended
                order, nulls, *_ = rows[0] if rows else self._rows(f"SELECT {_ORDERS}")[0]
                self.orders = None if order.startswith("ASC") and nulls == "NULLS_LAST" else (order, nulls)
                self.orders_known = True
        self._transaction = None
        if not rows:
            return
        _, _, self._transaction, variables, *values = rows[0]
        chosen = {name: literal(str(value)) for name, value in zip(_SETTINGS, values, strict=True)}
        for variable in variables or ():
            chosen[f"VARIABLE {quote(variable['name'])}"] = f"CAST({literal(variable['value'])} AS {variable['type']})"
        before, self._followed = self._followed, chosen
        changes = [f"SET {name} = {value}" for name, value in chosen.items() if before.get(name, "''") != value]
        for change in [*changes, *(f"RESET {name}" for name in before if name not in chosen)]:
            with contextlib.suppress(duckdb.Error):
                self.cursor.execute(change)

    def _of_users(self, sql: str) -> list[tuple[Any, ...]] | None:
        """Rows of a query on the user's connection; None where there is none, or where it holds a result that may be half read.

        From DuckDB 2.0 on a relation refuses to run while the connection holds a half-read result; an older one would
        drop that result, and is asked only when it holds none.
        """
        if self._own:
            return None
        result_columns = [column[0] for column in self.connection.description or ()]
        if int(duckdb.__version__.split(".")[0]) < 2 and result_columns not in ([], ["Count"], ["Success"]):
            return None  # Count and Success: of a statement without rows
        try:
            relation = self._looks.get(sql)
            if relation is None:
                relation = self.connection.sql(sql)
            if sql in (_CHOSEN, _TRANSACTION):  # it runs anew each time: to bind it takes as long as to run it
                self._looks[sql] = relation
            return relation.fetchall()
        except duckdb.Error:
            return None

    # ------------------------------------------------------------------------------------------------------ look-ups
    def table(
        self,
        parts: tuple[str, ...],
        *,
        frames: Mapping[str, object] | None = None,
        file: bool = False,
        plain: bool = False,
    ) -> Table:
        """The table, view, file or data frame of this name.

        Args:
            parts: the name, without quotes: table, schema.table, database.table or database.schema.table.
            frames: data frames of the caller by name; a table of the same name goes first, as in DuckDB.
            file: the name is a path (FROM 'reviews.csv').
            plain: its rows are not counted, and its fields say no more than names and types, as a statement without texts needs them.
        Raises: UnknownTableError (UQL201); DataError (UQL5xx) when a file or a frame cannot be read.
        """
        with self._lock:
            name = ".".join(parts)
            if file:
                if not self._files:  # nor is it looked whether there is one
                    raise DataError(f"the file {name} cannot be read: this session reads no files", code="UQL503")
                sql = file_sql(parts[0])
                return self._relation(name, sql, "file", estimated=self._said_in_files(sql), plain=plain)
            if parts[-1].lower() in self.planned:
                return self.planned[parts[-1].lower()]
            entry = self._find(parts)
            if entry is not None:
                words = said_estimated(entry.comment)
                if words is None and entry.view:
                    words = self.marked().get(entry.path) or self._said_in_files(self._definition(entry))
                if not entry.view:
                    columns = [] if plain else self._columns(entry.path)
                    return self._relation(name, dotted(entry.path), "table", entry.comment, columns, words, plain)
                columns = [] if plain else self._view_columns(entry)
                return self._relation(name, dotted(entry.path), "view", entry.comment, columns, words, plain)
            temporary = self._temporary(parts)
            if temporary is not None:
                return self._relation(name, temporary, "temporary", plain=plain)
            frame = (frames or {}).get(parts[0]) if len(parts) == 1 else None
            if frame is not None and (is_frame(frame) or not reader(name)):
                private = quote(self._frames.register(name, frame))
                words, columns = made_by(frame), []
                if isinstance(frame, duckdb.DuckDBPyRelation):
                    words = words or next(iter(self.estimates_read(frame.sql_query())), None)
                    columns = self._followed_columns(frame.sql_query(), frame.columns)
                return self._relation(name, private, "frame", "", columns, words, plain)
            if len(parts) == 1 and reader(name):
                return self.table(parts, file=True, plain=plain)
            raise self._unknown(name, frames or {})

    def named(self, name: str) -> Table:
        """The table of a name as `names` gives it: dots part it, but for a table that is called so whole. Raises as `table`."""
        words = name.split(".")
        for n in range(min(3, len(words))):
            for cuts in combinations(range(1, len(words)), n):
                parts = tuple(".".join(words[a:b]) for a, b in pairwise((0, *cuts, len(words))))
                if self._find(parts) is not None:
                    return self.table(parts)
        return self.table(tuple(words))

    def comment(self, parts: tuple[str, ...]) -> str:
        """The comment of a table or view; "" where it has none, or there is none of the name."""
        entry = self._find(parts)
        return entry.comment if entry is not None else ""

    def columns(self, parts: tuple[str, ...]) -> list[str]:
        """The names of the columns of a table or view; none where there is none of the name."""
        entry = self._find(parts)
        return [] if entry is None else [name for name, _ in self.describe(f"SELECT * FROM {dotted(entry.path)}")]

    def estimated(self) -> dict[tuple[str, str, str], str]:
        """The tables that hold estimates or a part of the rows: the statement that made them so."""
        return {
            (d, s, t): words
            for d, s, t, comment, *_ in self._relations()
            if comment and (words := said_estimated(comment)) is not None
        }

    def marked(self) -> dict[tuple[str, str, str], str]:
        """The same with the views, macros and prepared statements that read them; the last two under names as `call_of` has them."""
        with self.listed_once():
            statements = self.estimated()
            if not statements:
                return statements
            read: dict[tuple[str, str, str], set[tuple[str, ...]]] = {}
            for d, s, name, call, sql in self._rows(_DEFINITIONS + _PREPARED):
                read.setdefault((d, s, f"{name.lower()}()" if call else name), set()).update(tables(sql))
            while True:
                more = {
                    path: statements[sources[0]]
                    for path, names in read.items()
                    if path not in statements
                    and (sources := [at for name in sorted(names) if (at := self._among(name, statements))])
                }
                if not more:
                    return statements
                statements |= more

    def _said_in_files(self, sql: str) -> str | None:
        """The statement that put estimates, or a part of the rows, into one of the Parquet files that SQL reads; None: none says so."""
        names = _parquet_files(sql)
        if not names:
            return None
        # on a cursor of its own: a file that is not there would end the transaction that is open
        with contextlib.closing(self.connection.cursor()) as own:
            for name in names:
                # it is no name of such files, or the note is not ours
                with contextlib.suppress(duckdb.Error, ValueError, AttributeError, RecursionError):
                    notes = own.execute(
                        f"SELECT * FROM system.main.parquet_kv_metadata({name}) WHERE {_NOTES}"
                    ).fetchall()
                    for _, key, value in notes:
                        words = value.decode() if key.decode() == MADE_BY else json.loads(value).get(MADE_BY)
                        if words:
                            return str(words)
        return None

    def may_be_estimated(self, names: Sequence[tuple[str, ...]]) -> bool:
        """Does a table hold estimates, or does a view read a Parquet file, which may say that it does?

        Args:
            names: that a statement has, as `tables` gives them. A view counts where one of them ends with its name.
        """
        rows = self._rows(_MAY_BE_ESTIMATED)
        if any(said_estimated(comment) is not None for comment, _ in rows):
            return True
        ends = {name[-1].lower() for name in names}
        if not any(view is not None and view.lower() in ends for _, view in rows):
            return False
        views = [entry for name in names if (entry := self._find(name)) is not None and entry.view]
        return any("parquet" in self._definition(entry).lower() for entry in views)

    def _definition(self, view: _CatalogEntry) -> str:
        where = "WHERE (database_name, schema_name, view_name) = (?, ?, ?)"
        return str(self._rows(f"SELECT sql FROM system.main.duckdb_views() {where}", list(view.path))[0][0])

    def _among(self, name: tuple[str, ...], marked: Mapping[tuple[str, str, str], str]) -> tuple[str, str, str] | None:
        """Which of the marked ones a name of `tables` means; of a macro any of its name, wherever the search path leads."""
        if is_call(name[-1]):
            return next((path for path in marked if path[2] == name[-1]), None)
        entry = self._find(name)
        return entry.path if entry is not None and entry.path in marked else None

    def estimates_read(self, sql: str, target: tuple[str, ...] = ()) -> list[str]:
        """What a statement of DuckDB's own reads of `marked`, as `based_on` lists it; of its own target nothing."""
        if is_export(sql):
            return [f"{'.'.join(path)} ({words})" for path, words in self.estimated().items()]
        names = list(dict.fromkeys(tables(sql)))
        estimates = []
        with self.listed_once():
            marked = self.marked() if names else {}
            own = self._find(target) if target and marked else None
            for name in names if marked else ():
                path = self._among(name, marked)
                if path is not None and (own is None or own.path != path):
                    estimates.append(f"{'.'.join(name)} ({marked[path]})")
        words = self._said_in_files(sql)
        return estimates if words is None else [*estimates, f"a file ({words})"]

    def executed(self, sql: str) -> str:
        """The statement that one of DuckDB's own runs: of EXECUTE the prepared one; another as it is."""
        prepared = "SELECT system.main.lower(name), statement FROM system.main.duckdb_prepared_statements()"
        return executed(sql, lambda: dict(self._rows(prepared)))

    def estimates_called(self, sql: str) -> list[str]:
        """The same of the macros alone that a statement calls; its tables are known where it is bound."""
        names = [name for name in dict.fromkeys(tables(sql)) if is_call(name[-1])]
        marked = self.marked() if names else {}
        return [
            f"{'.'.join(name)} ({marked[path]})"
            for name in names
            if marked and (path := self._among(name, marked)) is not None
        ]

    def offer(self, name: str, data: object) -> None:
        """Give a table of ours to every statement, as `FROM name()`: `data` is Arrow, and replaces what was offered before."""
        with self._lock:
            private = quote(self._frames.register(f"{name}()", data))
            self.cursor.execute(f"CREATE OR REPLACE TEMP MACRO {name}() AS TABLE SELECT * FROM {private}")

    def function_table(self, name: str, sql: str) -> Table:
        """What a table function gives: `sql` is the call as DuckDB SQL."""
        with self._lock:
            estimates = self.estimates_read(f"FROM {sql}")
            columns = self._followed_columns(f"FROM {sql}")
            return self._relation(name, sql, "function", "", columns, estimates[0] if estimates else None)

    def offer_parts(self) -> None:
        """Makes frames(…) and pages(…) known to DuckDB, under the names that the binder gives them."""
        with self._lock:
            self.parts.register(self.cursor)

    def names(self) -> list[str]:
        """The tables and views that a bare name reaches, sorted, those of other schemas with their schema."""
        names = set()
        for database, schema, name, _, is_view, here, path, of_user in self._relations():
            own = name.startswith("__uql_") or database.startswith(_HIDDEN) or name == "uql_semantic_tables"
            if own or (is_view and not of_user):
                continue
            reached = (database.lower(), schema.lower()) in _search_path(path, here)[:1] or database == "temp"
            names.add(name if reached else f"{database}.{schema}.{name}")
        return sorted(names)

    def files_in_rows(self) -> frozenset[str]:
        """The paths and addresses in the columns whose comments say that they hold images, sounds, films or documents."""
        paths: set[str] = set()
        noted = self._rows(
            "SELECT database_name, schema_name, table_name, column_name, comment FROM system.main.duckdb_columns()"
            " WHERE comment IS NOT NULL AND data_type = 'VARCHAR'"
        )
        for *path, column, comment in noted:
            if _said_modality(comment) in (None, Modality.TEXT) or _PRIVATE.search(self._noted(path, column, comment)):
                continue
            with contextlib.suppress(duckdb.Error):  # of a view that does not run
                rows = self._rows(
                    f"SELECT DISTINCT {quote(column)} FROM {dotted(path)} WHERE {quote(column)} IS NOT NULL"
                )
                paths |= {value.strip() for (value,) in rows}
        return frozenset(paths)

    def describe(self, sql: str) -> list[tuple[str, str]]:
        """Names and DuckDB types of a query's columns, without running it. Raises: duckdb.Error.

        A relation says them in a fifth of the time, but what changes something would be run as soon as one is made of it: what is no
        query, and a query that calls nextval, also by a view or macro.
        """
        self.check_calls(sql)
        with self._lock:
            statements = self.cursor.extract_statements(sql)
            # a DuckDB in a process of its own gives the text: it is parsed there
            is_query = [getattr(statement, "type", None) for statement in statements] == [duckdb.StatementType.SELECT]
            if is_query and not (_READS.search(sql) and self.cursor.execute(_ANY_SEQUENCE).fetchall()):
                relation = self.cursor.sql(statements[0])
                return list(zip(relation.columns, map(str, relation.types), strict=True))
            return [(str(row[0]), str(row[1])) for row in self.cursor.execute(f"DESCRIBE {sql}").fetchall()]

    def value(self, sql: str) -> object:
        """The one value of a constant query. Raises: duckdb.Error."""
        self.check_calls(sql)
        with self._lock:
            rows = self.cursor.execute(sql).fetchall()  # to the end: an unread row would hold the cursor
            return rows[0][0] if rows else None

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """What DuckDB does on the cursor meanwhile ends after some seconds. Raises: DataError (UQL503) where it had not ended before."""
        done, late = threading.Event(), threading.Event()

        def watch() -> None:
            pause = seconds
            while not done.wait(pause):
                late.set()
                self.cursor.interrupt()
                pause = 1.0  # DuckDB may have been between two queries

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        except (DataError, duckdb.Error) as error:
            if not late.is_set():
                raise
            raise DataError(f"it cannot be read within {seconds:g} s", code="UQL503") from error
        finally:
            done.set()
            watcher.join()

    def aborted(self) -> bool:
        """Has an error ended the transaction that is open? Until ROLLBACK, DuckDB refuses whatever it is asked."""
        try:
            self.value("SELECT 1")
        except duckdb.TransactionException:
            return True
        return False

    def check_calls(self, sql: str) -> None:
        """Raises DataError (UQL511) where a query of a read-only session calls what changes something: to bind it does so too."""
        if self.read_only and (calls_change(sql) or (self.changing and names_one(sql, self.changing))):
            raise DataError(READS_ONLY, code="UQL511", help=TO_CHANGE)

    @cached_property
    def changing(self) -> frozenset[str]:
        """The views and macros that change something when they are read. Where settings are locked DuckDB refuses that.

        Raises: DataError (UQL511) where one has the name of a function of DuckDB's: operators and UQL's own SQL call it too.
        """
        if self._locked:
            return frozenset()
        definitions: dict[str, list[str]] = {}
        for _, _, name, _, text in self._rows(_DEFINITIONS):
            definitions.setdefault(str(name).lower(), []).append(text)
        names = changing_definitions(definitions)
        for (name,) in self._rows(_FUNCTIONS) if names else ():
            if str(name).lower() in names:
                message = (
                    f"{READS_ONLY}; a macro or view called {name}, as a function of DuckDB's is, changes something"
                )
                raise DataError(message, code="UQL511", help=f"DROP it, or {TO_CHANGE}")
        return frozenset(names)

    @cached_property
    def aggregates(self) -> AggregateFunctions:
        """The names of DuckDB's aggregate functions and of macros over them, lower case."""
        return AggregateFunctions(self.cursor)

    # -------------------------------------------------------------------------------------------------------- finding
    @contextlib.contextmanager
    def listed_once(self) -> Iterator[None]:
        """Lists the tables and views once, for a caller that makes and drops none meanwhile."""
        if self._listed is not None:  # a caller within one
            yield
            return
        self._listed = []
        try:
            yield
        finally:
            self._listed = None

    @contextlib.contextmanager
    def hiding(self, columns: frozenset[tuple[str, str]]) -> Iterator[None]:
        """These columns are private meanwhile, and what views make of them. `columns`: tables and their columns, in lower case."""
        self._private, before = columns, self._private
        try:
            yield
        finally:
            self._private = before

    def _relations(self) -> list[tuple[Any, ...]]:
        """All tables and views: database, schema, name, comment, whether it is a view, the database in use and the search path, and
        whether the definition of a table names a collation, and whether a view is a user's.

        DuckDB writes the definitions of all its views, 48 of its own among them, where one of them is read."""
        rows = self._listed or self._rows(_RELATIONS)
        kinds = {row[4] for row in rows if row[-1]}  # of those that are to be looked at: views, tables
        self.collated = False in kinds or (True in kinds and bool(self._rows(_COLLATED_VIEW)))
        if self._listed is not None:
            self._listed = rows
        return rows

    def path(self, parts: tuple[str, ...]) -> tuple[str, str, str] | None:
        """Database, schema and name of a table or view; None where there is none of the name."""
        entry = self._find(parts)
        return None if entry is None else entry.path

    @contextlib.contextmanager
    def home(self, schema: str) -> Iterator[None]:
        """While it is open, a name without a schema means a table of this one, where there is one: as in a view of this schema."""
        before, self._home = self._home, schema
        try:
            yield
        finally:
            self._home = before

    def _find(self, parts: tuple[str, ...]) -> _CatalogEntry | None:
        """A table or view on the cursor; temporary first, then the search path."""
        best: tuple[int, _CatalogEntry] | None = None
        table_name = parts[-1].lower()
        for database, schema, name, comment, is_view, here, path, _ in self._relations():
            if name.lower() != table_name or name.startswith("__uql_frame_"):
                continue
            at_home = len(parts) == 1 and database == here and schema == self._home
            rank = -1 if at_home else _rank(parts, database, schema, name, here, path)
            if rank is not None and (best is None or rank < best[0]):
                best = rank, _CatalogEntry((database, schema, name), comment or "", is_view)
        return None if best is None else best[1]

    def _columns(self, path: tuple[str, str, str]) -> list[tuple[str, str, str]]:
        """Names, types and comments of the columns of a table or view; a view's types are those that it was made with."""
        rows = self._rows(
            "SELECT column_index, column_name, data_type, comment FROM system.main.duckdb_columns()"
            " WHERE database_name = ? AND schema_name = ? AND table_name = ?",
            list(path),
        )
        return [(name, type, self._noted(path, name, comment)) for _, name, type, comment in sorted(rows)]

    def _noted(self, path: Sequence[str], column: str, comment: str | None) -> str:
        """The comment of a column, with what `hiding` says of it."""
        names = (".".join(path[at:]).lower() for at in range(3))
        marked = any((name, column.lower()) in self._private for name in names)
        return f"{comment}; private" if marked and comment else "private" if marked else comment or ""

    def _view_columns(self, view: _CatalogEntry) -> list[tuple[str, str, str]]:
        """As `_columns`. A column without a comment that holds what a private one holds is private too."""
        columns = self._columns(view.path)
        names = [name for name, _, _ in columns]
        followed = dict.fromkeys(
            name for name, *_ in self._followed_columns(query_in(self._definition(view)), names, of=view.path)
        )
        return [(name, type, comment or ("private" if name in followed else "")) for name, type, comment in columns]

    def _followed_columns(
        self, sql: str, names: Sequence[str] | None = None, *, of: tuple[str, str, str] | None = None
    ) -> list[tuple[str, str, str]]:
        """The columns of a query, of any type, that hold what a private column of a table holds, with the comment "private".

        Args:
            names: of all its columns; None: as DuckDB describes them.
            of: the view that the query defines, if it does.
        """
        if not self._any_private():
            return []
        read = self._fields_read(sql, of)
        if not any(f.private for f in read):
            return []
        names = names or [name for name, _ in self.describe(sql)]
        private = private_columns(sql, names, read)
        return [(name, "", "private") for name in names if name.lower() in private]

    def may_read_private(self, sql: str) -> bool:
        """May a query see what a private column holds: give it, order or select by it, or tell of it in an error?"""
        if not self._any_private():
            return False
        # macros that give values are not followed: what they read is looked at
        values = (name[-1].removesuffix("()") for name in tables(sql) if is_call(name[-1]))
        called = (definition for macro in set(values) for (definition,) in self._rows(_MACRO, [macro]))
        return may_read_private(sql, self._fields_read(sql)) or any(
            f.private for sql in called for f in self._fields_read(sql)
        )

    def _any_private(self) -> bool:
        return bool(self._private or self._rows(_ANY_PRIVATE))

    def _fields_read(self, sql: str, of: tuple[str, str, str] | None = None) -> list[Field]:
        """The columns of the tables that a statement may name, and of those that the macros read that it calls.

        Each view below it is read once, however many name it. What is private is passed up until nothing changes, for names alone
        may seem to lead in circles.

        Args:
            of: the view that the statement defines, if it does.
        """
        reads: dict[str, tuple[list[_CatalogEntry], list[str]]] = {}
        fields: dict[tuple[str, str, str], list[Field]] = {}  # of tables and views
        views: dict[tuple[str, str, str], str] = {}  # their queries
        waiting = [sql]
        while waiting:
            text = waiting.pop()
            if text in reads:
                continue
            entries, definitions = reads[text] = self._named_in(text)
            waiting += definitions
            for path, view in ((entry.path, entry) for entry in entries if entry.path not in fields):
                columns = self._columns(path)
                fields[path] = [
                    Field(name, type, description=note, private=bool(_PRIVATE.search(note)))
                    for name, type, note in columns
                ]
                if view.view:
                    views[path] = query_in(self._definition(view))
                    waiting.append(views[path])
        known: dict[tuple[str, str, str], list[Field]] = {}  # what a view read when its columns were judged last
        changed = True
        while changed:
            changed = False
            for path, text in reversed(views.items()):
                read = _fields_of(text, reads, fields, path)
                if read != known.get(path):
                    known[path], changed = read, True
                    private = private_columns(text, [f.name for f in fields[path]], read)
                    fields[path] = [
                        f if f.description else replace(f, private=f.name.lower() in private) for f in fields[path]
                    ]
        return _fields_of(sql, reads, fields, of)

    def _named_in(self, sql: str) -> tuple[list[_CatalogEntry], list[str]]:
        """The tables and views that a text may name, and the definitions of the macros that it calls."""
        named = dict.fromkeys(tables(sql))
        entries = [entry for name in named if not is_call(name[-1]) and (entry := self._find(name)) is not None]
        known, may_read = {entry.path[2].lower() for entry in entries}, may_name(sql)
        entries += [
            _CatalogEntry((database, schema, name), comment or "", is_view)
            for database, schema, name, comment, is_view, _, _, of_user in self._relations()
            if (of_user or not is_view) and name.lower() not in known and may_read(name)
        ]
        macros = {name[-1].removesuffix("()") for name in named if is_call(name[-1])}
        return entries, [definition for macro in macros for (definition,) in self._rows(_MACRO, [macro])]

    def _temporary(self, parts: tuple[str, ...]) -> str | None:
        """A temporary table of the user's connection, copied to the cursor, which cannot see it."""
        name = self._of_users_temporary(parts)
        if name is None:
            return None
        try:
            arrow = self.connection.sql(f"SELECT * FROM temp.{quote(name)}").to_arrow_table()
        except duckdb.Error:
            return None
        private = self._frames.register(f"temp.{parts[-1].lower()}", arrow)
        return quote(private)

    def is_copied(self, parts: tuple[str, ...]) -> bool:
        """Is it a temporary table of the user's connection, of which statements read a copy?"""
        return self._find(parts) is None and self._of_users_temporary(parts) is not None

    def _of_users_temporary(self, parts: tuple[str, ...]) -> str | None:
        if len(parts) > 2 or (len(parts) == 2 and parts[0].lower() != "temp"):
            return None
        name_sql = literal(parts[-1].lower())
        rows = self._of_users(
            f"SELECT table_name FROM system.main.duckdb_tables() WHERE temporary AND system.main.lower(table_name) = {name_sql}"
        )
        return rows[0][0] if rows else None

    def is_behind(self) -> bool:
        """Has the user's own connection a transaction open since `begin`, whose changes the cursor does not see?"""
        rows = self._of_users(_TRANSACTION)
        return rows is not None and rows[0][0] == self._transaction

    def _unknown(self, name: str, frames: Mapping[str, object]) -> UnknownTableError:
        names = self.names() + sorted(key for key, value in frames.items() if is_frame(value))
        names_text = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
        listed = f"tables: {names_text}" if names else "there are no tables; FROM 'file.csv' reads a file"
        file = f"a file stands in single quotes: FROM '{name}'; " if reader(name) else ""
        return UnknownTableError(f"no table {name}", help=file + suggestion(name, names) + listed)

    # ---------------------------------------------------------------------------------------------------- describing
    def _relation(
        self,
        name: str,
        sql: str,
        kind: str,
        comment: str = "",
        columns: Sequence[tuple[str, str, str]] = (),
        estimated: str | None = None,
        plain: bool = False,
    ) -> Table:
        comments = {name: comment for name, _, comment in columns if comment}
        try:
            if kind != "table":
                schema = tuple(self.describe(f"SELECT * FROM {sql}"))
            else:
                schema = tuple((name, type) for name, type, _ in columns) or tuple(self._defined(sql))
            if kind in ("file", "function"):
                self._refuse_least(name, sql, schema)
            if plain:
                fields = tuple(Field(*column) for column in schema)
                return Table(name, sql, fields, None, comment, estimated, kind == "table")
            count = int(str(self.value(f"SELECT system.main.count(*) FROM {sql}")))
            key = (sql, count, schema, tuple(sorted(comments.items())))
            if key not in self._fields or kind == "file":
                self._fields[key] = self._measured(sql, count, schema, comments)
        except duckdb.Error as error:
            raise _unreadable(name, kind, error) from error
        return Table(name, sql, self._fields[key], count, comment, estimated, kind == "table")

    def _refuse_least(self, name: str, sql: str, schema: Sequence[tuple[str, str]]) -> None:
        """Raises DataError (UQL503) for -2^127 in a DECIMAL of 38 digits, as Parquet may hold it: DuckDB fails on its text, and its
        database with it. What a file states of its least values answers this without its rows."""
        for column, type in schema:
            if type.startswith("DECIMAL(38,"):
                scale = int(type[11:-1])
                least = f"'-{'9' * (38 - scale)}.{'9' * scale}'::{type}"
                if self._rows(f"SELECT 1 FROM {sql} WHERE {quote(column)} < {least} LIMIT 1"):
                    raise DataError(
                        f"{name} holds a number in column {column} that is beyond the 38 digits of a DECIMAL",
                        code="UQL503",
                    )

    def _defined(self, table: str) -> list[tuple[str, str]]:
        """Names and types of the columns of a table, as its definition has them: describing a query of 10,000 takes a third of a second."""
        rows = self._rows("SELECT name, type FROM system.main.pragma_table_info(?)", [table])
        return [(str(name), str(type)) for name, type in rows]

    def _measured(
        self, sql: str, count: int, schema: tuple[tuple[str, str], ...], comments: Mapping[str, str]
    ) -> tuple[Field, ...]:
        """The fields with their modalities and mean lengths, from the first 1,000 rows."""
        measures = []
        for column, type in schema:
            quoted = quote(column)
            if type == "BLOB":
                measures.append(
                    f"system.main.array_slice(system.main.list(system.main.array_slice({quoted}, 1, {MOST_HEAD}))"
                    f" FILTER (WHERE {quoted} IS NOT NULL), 1, 8)"
                )
            else:
                codes = (
                    f", system.main.avg(system.main.regexp_full_match({quoted}, {literal(_CODE)})::INTEGER)"
                    if type == "VARCHAR"
                    else ""
                )
                lengths = (f"system.main.avg(system.main.{of}({quoted}::VARCHAR))" for of in ("length", "strlen"))
                measures.append(f"[{', '.join(lengths)}{codes}]")
        row = self._measures(sql, count, measures)
        return tuple(
            _field(Field(column, type, description=comments.get(column, "")), value)
            for (column, type), value in zip(schema, row, strict=True)
        )

    def _measures(self, sql: str, count: int, measures: list[str]) -> list[object]:
        """A measure of each column over the first rows.

        Of many columns Arrow measures strings and whole numbers, DuckDB the others, some at a time: its optimizer is quadratic in them.
        """
        first = f"SELECT * FROM {sql}" + (f" LIMIT {SAMPLE_ROWS}" if count > SAMPLE_ROWS else "")
        if len(measures) <= WIDE:
            return list(self._rows(f"SELECT {', '.join(measures)} FROM ({first})")[0]) if measures else []
        rows = self.cursor.sql(first).to_arrow_table()
        results = _mean_lengths(rows, [measure.startswith("[") for measure in measures])
        others = [at for at in range(len(measures)) if at not in results]
        for start in range(0, len(others), WIDE):
            some = others[start : start + WIDE]
            self.cursor.register("__uql_sample", rows.select(some))
            try:
                values = self._rows(f"SELECT {', '.join(measures[at] for at in some)} FROM __uql_sample")[0]
            finally:
                self.cursor.unregister("__uql_sample")
            for at, value in zip(some, values, strict=True):
                results[at] = value
        return [results[at] for at in range(len(measures))]

    def _rows(self, sql: str, parameters: list[str] | dict[str, str] | None = None) -> list[tuple[Any, ...]]:
        with self._lock:
            return list(self.cursor.execute(sql, parameters or []).fetchall())


def _fields_of(
    sql: str,
    reads: Mapping[str, tuple[Sequence[_CatalogEntry], Sequence[str]]],
    fields: Mapping[tuple[str, str, str], Sequence[Field]],
    but: tuple[str, str, str] | None,
) -> list[Field]:
    """The columns of what a text names, and of what the macros name that it calls.

    Args:
        reads: of each text its tables and views, and the definitions of its macros.
        fields: the columns of each table and view.
        but: a view that is left out.
    """
    found: list[Field] = []
    texts = [sql]
    for text in texts:  # grows
        entries, definitions = reads[text]
        found += [f for entry in entries if entry.path != but for f in fields[entry.path]]
        texts += [definition for definition in dict.fromkeys(definitions) if definition not in texts]
    return found


def _mean_lengths(rows: pa.Table, wanted: Sequence[bool]) -> dict[int, object]:
    """The mean lengths of the values as texts, by column, of those that hold strings or whole numbers; None where all are NULL.

    All columns of a type at once: a call of Arrow for each of thousands takes longer than the work.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    by_type: dict[pa.DataType, list[int]] = {}
    for at, column in enumerate(rows.columns):
        if wanted[at] and (pa.types.is_string(column.type) or pa.types.is_integer(column.type)):
            by_type.setdefault(column.type, []).append(at)
    means: dict[int, object] = {}
    for type, places in by_type.items():
        values = pa.chunked_array([chunk for at in places for chunk in rows.column(at).chunks], type=type)
        texts = values.cast(pa.string())
        counted = texts.is_valid().to_numpy().reshape(len(places), -1).sum(axis=1)
        sums = [
            pc.fill_null(lengths, 0).to_numpy().reshape(len(places), -1).sum(axis=1, dtype=np.float64)
            for lengths in (pc.utf8_length(texts), pc.binary_length(texts))
        ]
        for at, chars, size, count in zip(places, *sums, counted, strict=True):
            is_long = chars > LONG_TEXT * count and pa.types.is_string(type)
            codes = [pc.mean(pc.match_substring_regex(rows.column(at), f"^{_CODE}$")).as_py()] if is_long else []
            means[at] = [chars / count, size / count, *codes] if count else [None, None]
    return means


def _parquet_files(sql: str) -> list[str]:
    """The names of Parquet files that SQL reads, as SQL: behind FROM, JOIN or a comma there, or what a function that reads them is given.

    >>> _parquet_files("FROM 'a.parquet', read_parquet(['b', 'c']) WHERE d = 'e.parquet'")
    ["'a.parquet'", "'b'", "'c'"]
    """
    if "parquet" not in sql.lower():
        return []
    names, depth, tables_follow = [], 0, False
    for before, token in pairwise(tokens(sql)):
        if before.name.lower() in ("read_parquet", "parquet_scan") or depth:
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        if before.word in _FROM or before.word in _BEHIND_FROM:
            tables_follow = before.word in _FROM
        is_name = token.text[-1] in "'$\"" and (depth or (tables_follow and "parquet" in token.text.lower()))
        names += [literal(token.name) if token.name else token.text] if is_name else []
    return names


def _field(field: Field, measure: Any) -> Field:
    """The field with what its type, its comment and a measure say: mean lengths and share of codes, of a BLOB the first bytes of some."""
    modality, chars, size = Modality.STRUCTURED, 0.0, 0.0
    if field.type == "BLOB":
        kinds = [_modality(media_type(bytes(head))) for head in measure or ()]
        modality = max(set(kinds), key=lambda kind: (kinds.count(kind), kind.value), default=Modality.STRUCTURED)
    elif measure is not None:
        chars, size, *codes = (float(mean or 0) for mean in measure)
        if field.type == "VARCHAR" and chars > LONG_TEXT and codes[0] <= MOST_CODES:
            modality = Modality.TEXT
    modality = _said_modality(field.description) or modality
    private = bool(_PRIVATE.search(field.description))
    return Field(field.name, field.type, modality, field.description, chars, private, mean_bytes=size)


def _said_modality(comment: str) -> Modality | None:
    """What a column holds by the first word of its comment."""
    if not comment:
        return None
    word = _FIRST_WORD.match(comment)
    modality = word[1].lower() if word else ""
    return Modality(modality) if modality in set(Modality) - {Modality.STRUCTURED} else None


@lru_cache(maxsize=8)
def _search_path(setting: str, here: str) -> tuple[tuple[str, str], ...]:
    """Databases and schemas in the order in which a name without one is looked for in them, those of DuckDB's own left out.

    Args:
        setting: `search_path`; "" is main.
        here: the database in use.

    >>> _search_path('shop.old,"a,b"', "shop")
    (('shop', 'old'), ('shop', 'a,b'), ('shop', 'main'))
    """
    path = [(here, "main")]
    for entry in reversed(re.findall(r'(?:"(?:[^"]|"")*"|[^",])+', setting)):
        words = re.findall(r'"((?:[^"]|"")*)"|([^".]+)', entry)
        *database, schema = (word or quoted.replace('""', '"') for quoted, word in words)
        path.insert(0, (database[0] if database else here, schema))
    return tuple((database.lower(), schema.lower()) for database, schema in path)


def _rank(parts: tuple[str, ...], database: str, schema: str, name: str, here: str, path: str) -> int | None:
    """How near a table is to a name: smaller is nearer, None is not meant. Exact spelling goes before another case."""
    inexact = 0 if name == parts[-1] else 1

    def same(a: object, b: object) -> bool:
        return str(a).lower() == str(b).lower()

    if len(parts) == 1:
        if database == "temp":
            return inexact
        places = _search_path(path, here)
        place = (database.lower(), schema.lower())
        if place not in places and database != "system":
            return None
        return 2 * (places.index(place) if place in places else len(places)) + 2 + inexact
    if len(parts) == 2:
        if same(parts[0], schema) and (same(database, here) or database == "system"):
            return 2 + inexact
        return 4 + inexact if same(parts[0], database) and schema in ("main", "public") else None
    if len(parts) == 3 and same(parts[0], database) and same(parts[1], schema):
        return inexact
    return None


def _unreadable(name: str, kind: str, error: duckdb.Error) -> UQLError:
    """DuckDB's complaint about a file, frame or view as a DataError that names it."""
    complaint = str(error).partition("\nLINE ")[0]  # behind it stands SQL that the user did not write
    lines = [line for line in complaint.splitlines() if line.strip()][:3]
    half = MOST_OF_A_LINE // 2  # it may show a line of the file
    reason = "; ".join(line if len(line) <= MOST_OF_A_LINE else f"{line[:half]} … {line[-half:]}" for line in lines)
    low = str(error).lower()
    if "utf-8" in low or "unicode" in low:
        return DataError(
            f"{name} holds bytes that are not UTF-8: {reason}",
            code="UQL502",
            help="convert it to UTF-8 first (iconv -f latin1 -t utf-8), or FROM read_csv(…, encoding = 'latin-1')",
        )
    if "no files found" in low:
        pattern = re.search(r'pattern "([^"]+)"', str(error))
        return DataError(f"{pattern.group(1) if pattern else name}: there is no such file", code="UQL501")
    if kind == "function" and f"name {name.lower()} does not exist" in low:
        return DataError(f"the table function {name} does not exist", code="UQL503", help=own_function(name))
    if "line size" in low:
        help = f"FROM read_csv('{name}', max_line_size = …) reads longer lines"
        return DataError(f"the file {name} cannot be read: {reason}", code="UQL503", help=help)
    what = {"file": "the file", "frame": "the data frame", "function": "the table function"}.get(kind, "the table")
    return DataError(f"{what} {name} cannot be read: {reason}", code="UQL503")
