"""Connections are opened: to a database by path, or over a DuckDB connection of the user's."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from uql.api.connection import Connection
from uql.base.errors import DataError
from uql.base.settings import Settings
from uql.base.sql_text import first_line

if TYPE_CHECKING:
    from uql.llm.providers.base import Provider


def connect(
    path: str | Path | None = None,
    *,
    read_only: bool = False,
    model: str | Provider | None = None,
    ledger: str | None = None,
    concurrency: int | None = None,
    seed: int | None = None,
    **settings: Any,
) -> Connection:
    """A connection to a DuckDB database.

    Args:
        path: the database file; None or ":memory:": one in memory.
        read_only: nothing of the database is changed, and several processes may have it open; TO makes temporary tables.
        model: "local", "openai:NAME", "anthropic:NAME", "http://host/v1#NAME", "oracle:FILE.toml", or a provider.
        ledger: path of the ledger of answers paid for; ":memory:" lives as long as the connection; None: the user's own.
        concurrency: requests in flight at most.
        seed: of everything random.
        settings: every other setting by name; `models` may hold providers.
    Raises: ConfigError (UQL105) on a setting; DataError (UQL503) where the database cannot be opened.
    """
    models = _models(settings)
    configured, given = _configured(model, ledger, concurrency, seed, settings)
    try:
        connection = duckdb.connect(str(path) if path is not None else ":memory:", read_only=read_only)
    except (duckdb.Error, OSError) as error:
        raise DataError(f"the database {path} cannot be opened: {first_line(error)}", code="UQL503") from error
    with contextlib.suppress(duckdb.Error):  # con.sql sees the caller's data frames, as DuckDB's own does
        connection.execute("SET python_scan_all_frames = true")
    return Connection(connection, configured, owned=True, model=given, models=models)


def attach(
    connection: duckdb.DuckDBPyConnection,
    *,
    model: str | Provider | None = None,
    ledger: str | None = None,
    concurrency: int | None = None,
    seed: int | None = None,
    **settings: Any,
) -> Connection:
    """A connection over the user's own DuckDB connection, which is not touched: UQL works on a cursor of it.

    Args: as `connect`. In `uql`, temporary tables of the connection may be named too, and USE and SET schema on it are followed.
    """
    models = _models(settings)
    configured, given = _configured(model, ledger, concurrency, seed, settings)
    return Connection(connection, configured, owned=False, model=given, models=models)


def _models(settings: dict[str, Any]) -> dict[str, Provider]:
    """The providers among `models`, by name; the settings keep their names."""
    named = settings.get("models")
    if named is None or isinstance(named, str):
        return {}
    found = {m.name: m for m in named if not isinstance(m, str)}
    settings["models"] = tuple(m if isinstance(m, str) else m.name for m in named)
    return found


def _configured(
    model: str | Provider | None,
    ledger: str | None,
    concurrency: int | None,
    seed: int | None,
    settings: dict[str, Any],
) -> tuple[Settings, Provider | None]:
    from uql.base import config

    name = model if isinstance(model, str) or model is None else None
    named = {"model": name, "ledger": ledger, "concurrency": concurrency, "seed": seed}
    merged, _ = config.load(**{k: v for k, v in named.items() if v is not None}, **settings)
    return merged, None if isinstance(model, str) or model is None else model
