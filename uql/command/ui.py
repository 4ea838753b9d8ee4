"""`uql ui [database]`: the web page, on this machine alone."""

from __future__ import annotations

import secrets
import socket
from typing import TYPE_CHECKING, Annotated

import typer

from uql.command import outcome
from uql.command.outcome import Code, UsageError, narrate

if TYPE_CHECKING:
    from uql.ui.session import Session

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def ui(
    database: Annotated[str | None, typer.Argument(help="A DuckDB file. Without it: in memory, for files.")] = None,
    port: Annotated[int, typer.Option(help="0: any free one.")] = 0,
    write: Annotated[bool, typer.Option("--write", help="Statements may change the database.")] = False,
    model: Annotated[str | None, typer.Option(help="As in uql -c.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Any other setting; see uql config show.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address only.")] = False,
) -> None:
    """An editor with the price under it, plans, rows, reasons and charts in the browser. Listens on 127.0.0.1."""

    def run() -> int:
        from uql.command.query import Request, connect, pairs

        named = pairs("--set", settings) | ({"model": model} if model is not None else {})
        try:
            from uql.ui.session import Session
        except ImportError as error:
            raise UsageError(f"the page needs the package {error.name}", help="pip install 'uql-engine[ui]'") from None
        with connect(Request("", database, settings=named, read_only=not write)) as con:
            return _serve(Session(con, write=write), port, not no_browser)

    raise typer.Exit(outcome.run(run))


def _serve(session: Session, port: int, browser: bool) -> int:
    """Serves until Ctrl-C."""
    import webbrowser

    import uvicorn

    from uql.ui.app import app as made

    listening = socket.socket()
    try:
        listening.bind(("127.0.0.1", port))
    except OSError as error:
        raise UsageError(f"port {port} is not available: {error.strerror}", help="another --port, or none") from None
    token = secrets.token_urlsafe(24)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/?token={token}"
    print(address, flush=True)
    narrate("the address opens the page once it is in your browser; Ctrl-C ends it")
    if browser:
        webbrowser.open(address)
    server = uvicorn.Server(uvicorn.Config(made(session, token), log_level="warning", timeout_graceful_shutdown=2))
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        narrate("ended; what was answered is in the ledger")
    finally:
        session.close()
        listening.close()
    return Code.OK
