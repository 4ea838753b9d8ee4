"""This engine, from the text of the query to its result: `uql.connect`, with nothing kept from earlier runs but vectors."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import uql
from uql.api.result import Result
from uql.base.errors import ConfigError, DataError
from uql.benchmarks.runner.purse import PURSE
from uql.benchmarks.runner.suite import Choice
from uql.benchmarks.uqe.data import World, world
from uql.benchmarks.uqe.model import provider


@lru_cache(maxsize=32)
def connection(source: str, model: str, choice: Choice) -> uql.Connection:
    """A connection to a data set's table; its vectors are made once and kept in the work folder.

    Raises: ConfigError where another run has the table.
    """
    found: World = world(source, choice)
    try:
        con = uql.connect(str(found.folder / "table.duckdb"), model=provider(found, model), ledger=":memory:")
    except DataError as error:
        raise ConfigError(error.message, code=error.code, help="--work names a folder that no other run uses") from None
    con.sql(f"CREATE OR REPLACE TABLE {found.source.table} AS SELECT * FROM '{found.data}' ORDER BY id")
    return con


def ask(source: str, model: str, choice: Choice, query: str, **settings: Any) -> tuple[Result, float, float]:
    """The result of a query, already run, the seconds it took, and the processor's seconds of this process."""
    con = connection(source, model, choice)
    with con.session.ledgers.open(con.session.settings.ledger) as ledger:
        ledger.clear()  # answers of another seed would be rows that this one knows
    with con.settings(**settings, **PURSE.settings()):
        began, busy = time.perf_counter(), time.process_time()
        result = con.uql(query)
        result.run()
        PURSE.check(result)
        return result, time.perf_counter() - began, time.process_time() - busy


def seconds_again(source: str, model: str, choice: Choice, query: str, **settings: Any) -> float:
    """The processor's seconds of a query that `ask` has run before: the ledger answers it, and a call is an error."""
    con = connection(source, model, choice)
    with con.settings(**settings, offline=True):
        began = time.process_time()
        con.uql(query).run()
        return time.process_time() - began
