"""Connections are opened: to a database by path, or over a DuckDB connection of the user's."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import duckdb

from uql.api.connection import Connection
from uql.base.errors import ConfigError, DataError
from uql.base.settings import Settings
from uql.base.sql_text import first_line
from uql.llm.providers.base import Provider, usable


def connect(
    path: str | Path | None = None,
    *,
    read_only: bool = False,
    cluster: str | None = None,
    shards: int | None = None,
    model: str | Provider | None = None,
    ledger: str | None = None,
    concurrency: int | None = None,
    seed: int | None = None,
    **settings: Any,
) -> Connection:
    """A connection to a DuckDB database, or to a lake that a cluster reads (docs/scale.md).

    Args:
        path: the database file; None or ":memory:": one in memory; with `cluster` a folder, whose files and sub-folders are tables, a
            database file, or the "ducklake:…" of a DuckLake.
        cluster: address of a Ray cluster, "ray://host:10001", "host:6379" or "auto"; "local": one on this machine; "process": the
            same without Ray, in this process; None: no cluster.
        shards: processes that read the lake, each its share of the rows; None: one a core of the cluster.
        read_only: nothing of the database is changed, and several processes may have it open; TO makes temporary tables.
        model: "local", "openai:NAME", "anthropic:NAME", "http://host/v1#NAME", "oracle:FILE.toml", or a provider.
        ledger: path of the ledger of answers paid for; ":memory:" lives as long as the connection; None: the user's own.
        concurrency: requests in flight at most.
        seed: of everything random.
        settings: every other setting by name; `models` may hold providers.
    Raises: ConfigError (UQL105) on a setting; DataError (UQL503) where the database cannot be opened, (UQL501) where a lake has no
        table.
    """
    models = _models(settings)
    configured, provider = with_model(model, ledger=ledger, concurrency=concurrency, seed=seed, **settings)
    if cluster is None and shards is not None:
        raise ConfigError(
            "shards are of a cluster", code="UQL105", help='cluster = "process", "local" or an address of Ray'
        )
    database = ":memory:" if path is None or cluster is not None else str(path)
    try:
        connection = duckdb.connect(database, read_only=read_only and cluster is None)
    except (duckdb.Error, OSError) as error:
        why = first_line(error)
        locked = "close the other process, or open it with read_only=True where that one reads only"
        way = locked if "Conflicting lock" in why else None
        raise DataError(f"the database {path} cannot be opened: {why}", code="UQL503", help=way) from error
    with contextlib.suppress(duckdb.Error):  # con.sql sees the caller's data frames, as DuckDB's own does
        connection.execute("SET python_scan_all_frames = true")
    con = Connection(connection, configured, owned=True, model=provider, models=models)
    if cluster is None:
        return con
    from uql.cluster.cluster import open_cluster

    con.catalog.read_only = read_only
    return con.over(open_cluster(path or ".", cluster, shards, con.catalog.cursor))


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
    configured, provider = with_model(model, ledger=ledger, concurrency=concurrency, seed=seed, **settings)
    return Connection(connection, configured, owned=False, model=provider, models=models)


def _models(settings: dict[str, Any]) -> dict[str, Provider]:
    """The providers among `models`, by name; the settings keep their names."""
    models = settings.get("models")
    if models is None or isinstance(models, str):
        return {}
    providers = {usable(m).name: m for m in models if not isinstance(m, str)}
    settings["models"] = tuple(m if isinstance(m, str) else m.name for m in models)
    return providers


def with_model(model: str | Provider | None, **settings: Any) -> tuple[Settings, Provider | None]:
    """The settings in force with these, and the model where it is a provider and no name."""
    from uql.base import config

    name, provider = (model, None) if isinstance(model, str | None) else (None, usable(model))
    return config.load(model=name, **settings)[0], provider
