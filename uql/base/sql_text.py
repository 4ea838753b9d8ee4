"""SQL as text: names, strings, and what DuckDB says of an error."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

OWN = "system.main."  # before the names of functions that UQL calls itself: no macro of the user's stands before them
_IN_PYTHON = re.compile(r"^Invalid Input Error: Python exception occurred while executing the UDF: \w+: ")
_OWN_COLUMN = re.compile(r" when casting from source column __\w+")
DATA_FILES = (".csv", ".tsv", ".json", ".jsonl", ".parquet")  # a name that ends so is a file


def quote(name: str) -> str:
    """A name as a quoted identifier of SQL.

    >>> quote('a "b"')
    '"a ""b\"""'
    """
    return '"' + name.replace('"', '""') + '"'


def dotted(parts: Sequence[str]) -> str:
    """The name of a table with its schema and database, each part quoted.

    >>> dotted(("shop", "the table"))
    '"shop"."the table"'
    """
    return ".".join(map(quote, parts))


def number_of(values: Iterable[tuple[str, str]]) -> str:
    """SQL of a number by which equal rows are known.

    DuckDB's own hash is the same for many pairs of strings that differ in two places, as "item 200 at 10" and "item 207 at 11" may.

    Args:
        values: SQL and DuckDB type of each; of bytes the hash itself is taken.
    """
    parts = (f"{sql}, system.main.md5(CAST({sql} AS VARCHAR))" if type != "BLOB" else sql for sql, type in values)
    return f"system.main.hash({', '.join(parts)})"


def literal(value: str) -> str:
    """A string as SQL writes it.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def first_line(error: Exception) -> str:
    """What an error of DuckDB's says, without the place in the SQL and the columns there, which are not the user's, without the words
    that DuckDB puts around an error of a function in Python, and without the EXPLAIN by which a statement was tried."""
    text = str(error).strip() or type(error).__name__
    line = _OWN_COLUMN.sub("", _IN_PYTHON.sub("", text.splitlines()[0]))
    return line.replace('statement of type "EXPLAIN"', "the statement")
