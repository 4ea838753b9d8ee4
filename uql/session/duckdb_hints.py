"""What is added to errors of DuckDB's own."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import duckdb


@contextlib.contextmanager
def pointing_to_uql() -> Iterator[None]:
    """DuckDB's own errors about a quoted text get a note that says who answers such texts."""
    try:
        yield
    except duckdb.BinderException as error:
        if re.search(r'column "[^"\n]* [^"\n]*" not found', str(error)):
            error.add_note("this is DuckDB alone: con.uql(…) asks a model what a text in double quotes says")
        raise
