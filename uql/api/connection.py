"""A connection: the façade of a session, as DuckDB's connection is of a database."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import duckdb

from uql.api.result import Result
from uql.base.errors import BindError, memory_errors
from uql.base.names import suggestion
from uql.base.settings import NAMES, Settings
from uql.compiler.syntax import Refresh
from uql.compiler.unparse import unparse
from uql.session.resume import by_name, find
from uql.session.session import Session
from uql.sources.frames import visible

if TYPE_CHECKING:
    from uql.api.evaluate import Evaluation
    from uql.api.fluent import Fluent
    from uql.cluster.cluster import Cluster
    from uql.llm.open_ledgers import Ledgers
    from uql.llm.providers.base import Provider
    from uql.nl.ask.answer import Answer
    from uql.session.statements import Piece
    from uql.sources.catalog import Catalog


_OWN = ("session", "_close_cluster")  # attributes that are set


def _instead(name: str) -> str:
    """What a user who looks for an attribute that a connection has not may have meant."""
    if name in NAMES:
        way = f"con.use({name}=…) is for what follows, with con.settings({name}=…): for a block"
    elif hasattr(Result, name):
        way = f'a result has it: con.uql("SELECT …").{name}'
    elif name in ("begin", "commit", "rollback"):
        way = f'con.execute("{name.upper()}")'
    elif name.startswith("read_"):
        way = "con.table('file') reads CSV, JSON and Parquet, and so does FROM 'file' in con.uql(…)"
    else:
        way = suggestion(name, dir(Connection)).strip() or "con.uql(…), con.sql(…) and con.execute(…) run a statement"
    return f"a connection has no {name}: {way}"


class Connection:
    """Made by `uql.connect` or `uql.attach`. One query at a time; use one connection a thread.

    `uql`, `execute` and `sql` are one session of DuckDB: temporary tables, transactions, USE and SET of one hold for the others.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        settings: Settings,
        *,
        owned: bool,
        model: Provider | None = None,
        models: Mapping[str, Provider] | None = None,
        ledgers: Ledgers | None = None,
    ) -> None:
        if not callable(getattr(connection, "cursor", None)):
            message = f"a connection of DuckDB's is wanted, not {connection!r:.60}"
            raise BindError(
                message, help="uql.connect(path) opens a database, uql.attach(duckdb.connect(path)) uses one"
            )
        self.session = Session(connection, settings, model, models, owned=owned, ledgers=ledgers)
        self._close_cluster: Callable[[], None] | None = None

    def over(self, cluster: Cluster) -> Connection:
        """This connection, with the tables of a cluster, which it closes."""
        self.session.use_cluster(cluster)
        self._close_cluster = cluster.close
        return self

    @property
    def catalog(self) -> Catalog:
        """What its queries may name."""
        return self.session.catalog

    @property
    def tables(self) -> list[str]:
        """The names of its tables and views, as FROM takes them.

        >>> import uql
        >>> con = uql.connect()
        >>> _ = con.execute("CREATE TABLE reviews (body VARCHAR)")
        >>> con.tables
        ['reviews']
        """
        self.session.check_open()
        return self.session.catalog.names()

    @property
    def last_run(self) -> str:
        """Id of the latest run, with which `resume` continues it; "" before the first."""
        return self.session.last_run

    # ------------------------------------------------------------------------------------------------------ session
    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes what `uql.connect` opened; a connection given to `uql.attach` stays open. A second call does nothing."""
        self.session.close()
        if self._close_cluster is not None:
            self._close_cluster()
            self._close_cluster = None

    def __repr__(self) -> str:
        session = self.session
        where = "closed" if session.closed else f"to {session.database().path or 'a database in memory'}"
        given = session.given(session.settings)
        model = given.name if given is not None else session.settings.model or "no model"
        return f"<uql.Connection {where}, {model}>"

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _OWN:
            raise AttributeError(_instead(name))
        super().__setattr__(name, value)

    if not TYPE_CHECKING:  # its names are known before it runs

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(name if name.startswith("_") or name in _OWN else _instead(name))

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a uql.Connection cannot be copied or pickled: use con.cursor() in threads, uql.connect in processes"
        )

    def on_event(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        """Calls `listener` with every event of this connection's queries; the function returned ends it."""
        return self.session.on_event(listener)

    def cursor(self) -> Connection:
        """Another connection to the same database with the same settings, for another thread, as DuckDB's `cursor()`."""
        self.session.check_open()
        session, shared = self.session, self.session.ledgers.shared()
        connection = Connection(
            session.duck.cursor(), session.settings, owned=True, model=session.given(session.settings), ledgers=shared
        )
        connection.catalog.read_only = self.catalog.read_only
        if session.cluster is not None:
            connection.session.use_cluster(session.cluster)
        return connection

    def interrupt(self) -> None:
        """Ends the running query early, from any thread: nothing more is sent, what is in flight is waited for and kept."""
        self.session.interrupt()

    def only_read(self) -> None:
        """From now on `uql` refuses every statement that changes something (UQL511), a file that COPY writes too."""
        self.catalog.read_only = True

    @property
    def model(self) -> Provider | None:
        """The provider that it was opened with; None: that of the settings' name."""
        return self.session.model

    @property
    def configured(self) -> Settings:
        """The settings in force: those of the files and `connect`, changed by SET and `settings`."""
        return self.session.settings

    def use(self, **values: Any) -> None:
        """Other settings from now on, as SET."""
        self.session.use(**values)

    def settings(self, **values: Any) -> AbstractContextManager[Connection]:
        """Other settings within a `with` block. Raises: ConfigError (UQL105), at once, for a name that is none or a bad value."""
        self.configured.with_values(**values)
        return self._within(values)

    @contextmanager
    def _within(self, values: Mapping[str, Any]) -> Iterator[Connection]:
        before = self.session.settings
        self.session.settings = before.with_values(**values)
        try:
            yield self
        finally:
            self.session.settings = before

    def sql(self, text: str, *, params: object = None) -> duckdb.DuckDBPyRelation:
        """Plain DuckDB SQL, as DuckDB reads it, with `?` or `$name` from `params`; data frames of the caller may be named."""
        with self.session.plain_sql() as duck:
            return duck.sql(text) if params is None else duck.sql(text, params=params)

    def execute(self, text: str, parameters: object = None) -> duckdb.DuckDBPyConnection:
        """Plain DuckDB SQL at once, as DuckDB's `execute`: `con.execute("INSERT INTO t VALUES (?)", [1])`.

        As in DuckDB, the next statement, of `uql` too, takes the place of a result that is not read to its end.
        """
        with self.session.plain_sql() as duck:
            return duck.execute(text) if parameters is None else duck.execute(text, parameters)

    # ------------------------------------------------------------------------------------------------------ queries
    def uql(self, text: str, parameters: Mapping[str, Any] | None = None, /, **named: Any) -> Result:
        """A UQL statement, or several with `;` between them; the last one's result.

        A query runs when its result is first looked at; a statement that changes something (TO, CREATE, INSERT, COPY, SET) runs
        at once, and so do all but the last of several.

        Args:
            text: the statement. Data frames of the caller may be named in FROM.
            parameters: values of `$name`, as a mapping, by name, or both; `uql.sem("…")` for a quoted text.
        Raises: UQLSyntaxError, BindError, ConfigError, DataError at once; ModelError when it runs.

        >>> import uql
        >>> uql.connect().uql("SELECT $a + $b AS total", {"a": 1}, b=2).fetchall()
        [(3,)]
        """
        return self.statement(text, by_name(parameters, named), visible(sys._getframe(1)))

    def statement(self, text: str, parameters: Mapping[str, Any], frames: Mapping[str, Any]) -> Result:
        """As `uql`, with the data frames that FROM may name given by name.

        Args:
            text: one statement or several, with `;` between.
            parameters: values of `$name`.
            frames: data frames by the name that FROM gives them.
        """
        from uql.session.script import run_script

        return Result(run_script(self.session, text, parameters, frames), self.session)

    def script(
        self, text: str, parameters: Mapping[str, Any] | None = None, /, **named: Any
    ) -> list[Callable[[], Result]]:
        """The statements of a script, each to be called when those before it have run; `.run()` of its result runs it.

        The whole script is checked first, so that an error in its last statement costs nothing.

        Args:
            text: statements with `;` between.
            parameters: values of `$name`; each statement gets those that it names.
        Raises: as `uql` before it runs.

        >>> import uql
        >>> script = "CREATE TABLE t AS SELECT 41 AS a; SELECT a + $b AS total FROM t"
        >>> [statement().fetchall() for statement in uql.connect().script(script, b=1)][-1]
        [(42,)]
        """
        from uql.session.script import checked, prepared

        pieces = checked(self.session, text, by_name(parameters, named), visible(sys._getframe(1)))

        def result(piece: Piece) -> Result:
            return Result(prepared(self.session, piece), self.session)

        return [partial(result, piece) for piece in pieces]

    def auql(
        self, text: str, parameters: Mapping[str, Any] | None = None, /, **named: Any
    ) -> Coroutine[Any, Any, Result]:
        """As `uql`, for `await`: it runs in a thread of its own. Cancelling it ends the run; what was answered is kept.

        >>> import asyncio, uql
        >>> asyncio.run(uql.connect().auql("SELECT 42 AS answer")).fetchall()
        [(42,)]
        """
        from uql.api.background import run_awaited

        frames = visible(sys._getframe(1))  # those of the caller, before anything is awaited
        return run_awaited(lambda: self.statement(text, by_name(parameters, named), frames), self.session)

    def table(self, name: str) -> Fluent:
        """A query over a table, view or file, made by calls instead of text: the plan is the same.

        >>> import uql
        >>> con = uql.connect()
        >>> con.table("logs").where(uql.sem("asked to cancel")).select("agent", why=uql.sem("reason to cancel", str)).limit(100)
        SELECT agent, PROMPT "reason to cancel"::VARCHAR AS why FROM logs WHERE PROMPT "asked to cancel" LIMIT 100
        """
        from uql.api.fluent import Fluent, table

        frames = visible(sys._getframe(1))
        return Fluent(table(name), lambda text: self.statement(text, {}, frames), self.catalog.aggregates)

    def read_csv(self, path: str) -> Fluent:
        """A query over a CSV file: `con.read_csv("reviews.csv").where(uql.sem("it is positive")).count().show()`.

        Args:
            path: of a file or a glob, whatever its name ends in.

        >>> import uql
        >>> uql.connect().read_csv("logs/*.txt").limit(5)
        SELECT * FROM read_csv('logs/*.txt') LIMIT 5
        """
        from uql.api.fluent import Fluent, csv_file

        frames = visible(sys._getframe(1))
        return Fluent(csv_file(path), lambda text: self.statement(text, {}, frames), self.catalog.aggregates)

    def register(self, name: str, source: object, type: str | None = None) -> tuple[str, ...]:
        """Makes a folder, a file, a glob or a data frame a table of this session, as `con.register("shots", "photos/")`.

        Args:
            name: of the table.
            source: a path or glob of images, sounds, videos, documents, texts (one row a file: file, and image, audio,
                video, document or text), of CSV, JSON and Parquet files, of a SQLite database; or a pandas, polars or Arrow table.
            type: image, audio, video, document, text, sqlite, table, csv, json, jsonl or parquet; None: what the endings say.
        Returns: the names of the tables: more than one for a SQLite database of several.
        Raises: DataError where there is nothing (UQL501), or nothing that can be read (UQL503 to UQL505).
        """
        return self.session.register(name, source, type)

    def unregister(self, name: str) -> None:
        """Takes back what `register` made, as DuckDB's `unregister`; a table of the database stays."""
        self.session.unregister(name)

    def refresh(self, name: str) -> Result:
        """REFRESH name: brings a semantic table up to date; one row of what was added, changed and removed."""
        return self.statement(unparse(Refresh(tuple(name.split(".")))), {}, {})

    def undo(self, correction: int) -> None:
        """Takes back what `Result.correct` kept, by its number in `FROM uql_corrections()`. Raises DataError (UQL524)."""
        from uql.llm.corrections import withdraw

        with self.session.ledgers.open(self.session.settings.ledger) as ledger:
            withdraw(ledger, correction)

    def resume(self, token: str | None = None, *, trust: bool = False, **settings: Any) -> Result:
        """Continues a run that was killed, interrupted, or stopped at a limit: the same rows are drawn, none is paid for twice.

        Args:
            token: of the run, as an interrupted or partial run tells it; None: the latest of this connection.
            trust: may it be a run that another user began, or began on another machine? Its statement is what the ledger says.
            settings: instead of those that the run was given, as max_cost = 5. Tokens and USD that it has paid count, unless
                it had reached that limit.
        Raises: ConfigError (UQL412) where the ledger knows no such run, (UQL414) where another process is at it, (UQL418) where it is not
            this user's; DataError (UQL413) where its rows are others now.
        """
        from uql.session.script import resume

        with self.session.ledgers.open(self.session.settings.ledger) as ledger:
            before = find(token or self.last_run, ledger, trust=trust)
        return Result(resume(self.session, before, settings, visible(sys._getframe(1))), self.session)

    def evaluate(self, rows: str, texts: str | Sequence[str], **options: Any) -> Evaluation:
        """How right a text is by labelled rows, per model and wording, with intervals, cost and seconds; `print` shows a table.

        Args:
            rows: a table, a file in single quotes, or a SELECT in DuckDB's SQL.
            texts: one wording or several, as they stand in queries.
            options: label, columns, models, sample, improve, packed: as of `uql.api.evaluate.evaluate`.
        Raises: DataError (UQL517) where the rows cannot be used; errors of a model that concern every call.
        """
        from uql.api.evaluate import evaluate

        return evaluate(self.session, rows, texts, **options)

    @memory_errors()
    def ask(self, question: str, **options: Any) -> Answer:
        """The answer to a question in words, by UQL that can be read, edited and run again (`answer.uql`).

        Args:
            question: about the tables of the database.
            options: mode, style, rules, planner, budget, max_cost, confirm, confirm_over …: the fields of `uql.nl.ask.session.Options`.
        Raises: ConfigError for an option; errors of the model that concern every call. What cannot be answered has an answer
            that says why (`answer.cannot`).
        """
        from uql.nl.ask.session import QuestionSession

        return QuestionSession(self.session).answer(question, **options)
