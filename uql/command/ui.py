"""`uql ui [database]`: the web page, on this machine alone."""

from __future__ import annotations

import secrets
import socket
from typing import TYPE_CHECKING, Annotated

import typer

from uql.command import options
from uql.command.outcome import UsageError, command, narrate, new_app

if TYPE_CHECKING:
    from uql.ui.session import Session

app = new_app()


@command(app)
def ui(
    database: options.Database = None,
    port: Annotated[int, typer.Option(help="The port; 0: any that is free.")] = 0,
    write: Annotated[bool, typer.Option("--write", help="Statements may change the database.")] = False,
    model: options.Model = None,
    settings: options.Set = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address only.")] = False,
) -> None:
    """An editor with the price under it, plans, rows, reasons and charts in the browser. Listens on 127.0.0.1."""
    from uql.base.extras import need
    from uql.command.query import connect
    from uql.ui.session import Session

    need("pages of `uql ui`", "ui", "starlette", "uvicorn")
    with connect(database, options.settings_of(settings, model=model), read_only=not write) as con:
        _serve(Session(con, write=write), port, not no_browser)


def _serve(session: Session, port: int, browser: bool) -> None:
    """Serves until Ctrl-C."""
    import webbrowser

    import uvicorn

    from uql.ui.app import app as made
    from uql.ui.own_user import OwnUser

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
    page = OwnUser(made(session, token))
    server = uvicorn.Server(uvicorn.Config(page, log_level="warning", timeout_graceful_shutdown=2))
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        narrate("ended; what was answered is in the ledger")
    finally:
        session.close()
        listening.close()
