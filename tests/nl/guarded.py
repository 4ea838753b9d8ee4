"""One statement by the guard's runner, over tables that are there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from uql.nl.guard.guard import sql_runner


def run_sql(text: str, tables: Mapping[str, pa.Table], **limits: Any) -> pa.Table:
    """The rows of one SELECT, checked first, over copies of these tables, in a DuckDB of its own."""
    with sql_runner(tables, tables.__getitem__, **limits) as run:
        return run(text)
