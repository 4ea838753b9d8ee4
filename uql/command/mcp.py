"""`uql mcp DATABASE`: a Model Context Protocol server over stdio, with which an assistant queries a database within caps.

The protocol is the official SDK's (`mcp`); the tools call the Python interface. A client writes one query a call. It changes nothing, and
no option of it raises the caps: every request to a model is reserved in them before it is sent (`uql.llm.budget.Budget.caps`). DuckDB
runs in a child process with the limits of time and memory of SQL that a model wrote.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from uql.base.errors import BudgetError, DataError, UQLError
from uql.base.version import __version__
from uql.command import options
from uql.command.one_query import LONGEST, one_query
from uql.command.outcome import UsageError, command, new_app
from uql.nl.schema.semantic_model import FILE, read_if_present

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from uql.api.connection import Connection
    from uql.api.result import Result
    from uql.compiler.cost import Quote
    from uql.llm.budget import Budget
    from uql.nl.guard.duckdb_process import ChildDuckDB

    F = TypeVar("F", bound=Callable[..., Any])

app = new_app()
MAX_ROWS = 1_000  # in one reply
INSTRUCTIONS = """UQL is SQL (DuckDB's dialect) in which a double-quoted text can be used in place of a column: a language model
answers it, row by row, as in SELECT COUNT(*) FROM reviews WHERE "the review complains about the plot". Call list_tables first, then
price: it makes no call to a model. COUNT, SUM, AVG over such texts are estimated from a sample, with an interval (x_low, x_high):
report the interval, unless "exact" is true. Plain conditions on columns make a query cheaper. WITH (budget = n) at its end limits the
calls."""


@command(app)
def mcp(
    database: Annotated[str, typer.Argument(help="A DuckDB file.")],
    model: options.Model = None,
    calls: Annotated[int, typer.Option(min=0, help="Maximum number of model calls of one query.")] = 500,
    usd: Annotated[float, typer.Option(min=0, help="Maximum cost of one query in USD.")] = 0.50,
    all_calls: Annotated[int, typer.Option(min=0, help="Maximum number of model calls until the server ends.")] = 5_000,
    all_usd: Annotated[float, typer.Option(min=0, help="Maximum cost in USD until the server ends.")] = 5.00,
    files: Annotated[bool, typer.Option("--files", help="Queries may read files and addresses too.")] = False,
    ledger: options.Ledger = None,
    settings: options.Set = None,
) -> None:
    """Serve a database to an assistant over stdio (Model Context Protocol): list_tables, price, explain, run.

    Queries change nothing. No option of a query raises the caps, which count every call to a model.
    """
    from uql.base.extras import need
    from uql.command.query import connect
    from uql.llm.budget import Budget

    need("MCP servers", "mcp", "mcp")
    if database == ":memory:":
        raise UsageError("a database in memory has no tables", help="uql mcp shop.duckdb")
    overrides = options.settings_of(settings, model=model, ledger=ledger)
    with connect(database, overrides, read_only=True, files=files) as con:
        con.use(progress=False)
        whole = Budget(calls=all_calls, usd=all_usd)
        tools = Tools(con, database, lambda: Budget(calls=calls, usd=usd), whole, files=files)
        try:
            tools.server().run("stdio")
        finally:
            tools.interrupt()
            tools.close()


def report_errors(tool: F) -> F:
    """A tool whose errors of UQL are told to the client: code, place, and what to write instead."""

    @wraps(tool)
    def called(*arguments: Any, **named: Any) -> Any:
        import duckdb
        from mcp.server.mcpserver.exceptions import ToolError

        try:
            return tool(*arguments, **named)
        except UQLError as error:
            raise ToolError(str(error)) from error
        except duckdb.Error as error:
            raise ToolError(f"DuckDB: {error}") from error

    return called  # type: ignore[return-value]


class Tools:
    """What the server offers.

    Args:
        con: open, and read-only: its settings, models and ledger are those of queries.
        database: the path of its file, which a child process opens; one query at a time.
        of_run: makes the caps of one query.
        whole: the caps of all of them.
        files: may queries read files and addresses?
    """

    def __init__(
        self, con: Connection, database: str, of_run: Callable[[], Budget], whole: Budget, *, files: bool = False
    ) -> None:
        self.con, self.database, self.of_run, self.whole, self.files = con, database, of_run, whole, files
        self._lock = threading.Lock()
        self._child: ChildDuckDB | None = None
        self._connection: Connection | None = None  # to the database in the child
        self._opening = ExitStack()

    def interrupt(self) -> None:
        """Ends the query that runs, if one does."""
        if self._connection is not None:
            self._connection.interrupt()

    def close(self) -> None:
        """Ends the child process."""
        self._connection = self._child = None
        self._opening.close()

    @contextmanager
    def _query(self) -> Iterator[Connection]:
        """A read-only connection for one query, with limits and caps of its own. The child that a limit ended is replaced."""
        with self._lock:
            if self._child is not None and self._child.usable:
                self._child.renew()
            else:
                self.close()
                self._child = self._opened()
            assert self._connection is not None
            self._connection.session.caps = (self.of_run(), self.whole)
            model = read_if_present(Path(self.database).parent / FILE)
            with self._connection.catalog.hiding(model.private):
                yield self._connection

    def _asked(self, con: Connection, statement: str) -> Result:
        """A query of the client's, which is a model: it sees nothing private. Raises as `one_query`; DataError (UQL511)."""
        if len(statement) <= LONGEST and con.catalog.may_read_private(statement):
            raise DataError(
                "the query reads private columns, or may read them: what it takes from their tables cannot be followed",
                code="UQL511",
                text=statement,
                help="name the columns that list_tables lists, in a SELECT",
            )
        return one_query(con, statement)

    def _opened(self) -> ChildDuckDB:
        """The database in a child process, and a connection to it."""
        from uql.api.connection import Connection
        from uql.nl.guard.duckdb_process import as_connection, child_duckdb
        from uql.nl.guard.workspace import BUSY_S, MEMORY

        own = self.con.session
        child = self._opening.enter_context(child_duckdb(MEMORY, BUSY_S, self.database))
        connection = Connection(
            as_connection(child),
            own.settings,
            owned=True,
            model=own.model,
            models=own.models,
            ledgers=own.ledgers.shared(),
        )
        self._opening.enter_context(connection)
        connection.only_read()
        connection.catalog.lock_settings(files=self.files)
        if not self.files:
            connection.session.files = connection.catalog.files_in_rows()
        self._connection = connection
        return child

    def server(self) -> MCPServer:
        """The server, with its tools."""
        from mcp.server import MCPServer

        mcp_server = MCPServer("uql", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
        for tool in (self.list_tables, self.price, self.explain, self.run):
            mcp_server.tool(structured_output=False)(report_errors(tool))
        return mcp_server

    def list_tables(self) -> str:
        """The tables and views: rows, and columns with types, comments, and what a model would read there (text, image …)."""
        with self._query() as con:
            catalog = con.catalog
            tables = [catalog.table(tuple(name.split("."))) for name in catalog.names()]
        return _json(
            [
                {
                    "table": table.name,
                    "rows": table.row_count,
                    "comment": table.description,
                    "columns": [
                        {
                            "name": field.name,
                            "type": field.type,
                            "comment": field.description,
                            "content": field.modality.value,
                        }
                        for field in table.fields
                        if not field.private
                    ],
                }
                for table in tables
            ]
        )

    def price(self, statement: str) -> str:
        """What a query would cost: calls, tokens, USD and seconds, each low, expected, high. Makes no call to a model.

        Args:
            statement: one query of UQL or SQL.
        """
        with self._query() as con:
            quote = self._asked(con, statement).quote()
            return _json({**_priced(quote), "caps": self._remaining()})

    def explain(self, statement: str) -> str:
        """The plan of a query as JSON: its steps, how each quoted text was read, price, alternatives. Makes no call to a model.

        Args:
            statement: one query of UQL or SQL.
        """
        with self._query() as con:
            self._asked(con, statement)
            return "\n".join(str(row[-1]) for row in con.uql(f"EXPLAIN (FORMAT JSON) {statement}").fetchall())

    def run(self, statement: str, rows: int = 100) -> str:
        """Runs a query within the server's caps: rows, whether they are exact, estimates with their intervals, what it cost.

        Args:
            statement: one query of UQL or SQL; it changes nothing.
            rows: in the reply at most, up to 1000; the reply counts those that it leaves out.
        """
        from uql.show.render import as_document

        with self._query() as con:
            result = self._asked(con, statement)
            self._refuse_beyond(result)
            document = as_document(result.run(), max(0, min(rows, MAX_ROWS)))
            exact = "exact: every row that had to be asked was asked"
            partly = (
                "not exact: an estimated column x has its interval in x_low and x_high; a search may have missed rows"
            )
            return _json({**document, "note": exact if document["exact"] else partly, "caps": self._remaining()})

    def _refuse_beyond(self, result: Result) -> None:
        """Raises BudgetError (UQL417) where the caps do not reach for what a query is expected to need at least."""
        quote, left = result.quote(), self._remaining()
        beyond = quote.calls.low > left["calls"] or (quote.usd is not None and quote.usd.low > left["usd"])
        if beyond:
            need = f"{quote.calls.low:,.0f} calls" + (f" and ${quote.usd.low:.4f}" if quote.usd is not None else "")
            raise BudgetError(
                f"the query needs at least {need}; the caps leave {left['calls']:,} calls and ${left['usd']:.4f}",
                code="UQL417",
                help=f"WITH (budget = {left['calls']}) at its end, LIMIT, or more plain conditions",
            )

    def _remaining(self) -> dict[str, Any]:
        """Calls and USD that the caps leave to one query."""
        caps = (self.of_run(), self.whole)
        return {
            "calls": min(cap.calls_left or 0 for cap in caps),
            "usd": round(min((cap.usd or 0.0) - cap.spent_usd for cap in caps), 6),
        }


def _priced(quote: Quote) -> dict[str, Any]:
    quantities = {name: getattr(quote, name) for name in ("calls", "input_tokens", "output_tokens", "usd", "seconds")}
    return {name: asdict(value) if value is not None else None for name, value in quantities.items()}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)
