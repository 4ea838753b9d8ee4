"""DuckDB's SQL as sqlglot's trees and back. Text that sqlglot cannot read makes it fail with errors of any type, not only its own."""

from __future__ import annotations

from typing import Any


def read_sql(text: str, dialect: str = "duckdb") -> list[Any]:
    """The trees of the statements of a text.

    Args:
        dialect: the system whose SQL it is, by sqlglot's name.

    >>> [type(tree).__name__ for tree in read_sql("SELECT 1; SELECT 2")]
    ['Select', 'Select']
    >>> write_sql(read_sql("IFF(a > 1, 'x', 'y')", "snowflake")[0])
    "CASE WHEN a > 1 THEN 'x' ELSE 'y' END"

    Raises: ValueError where it cannot be read; its message is one line.
    """
    import sqlglot

    try:
        trees = sqlglot.parse(text, read=dialect, error_level=sqlglot.ErrorLevel.RAISE)
    except sqlglot.errors.SqlglotError as error:
        raise ValueError(str(error).splitlines()[0]) from error
    except Exception as error:
        raise ValueError("it is not SQL that can be read") from error
    return [tree for tree in trees if tree is not None]


def write_sql(tree: Any) -> str:
    """A tree as text, without comments. Raises: ValueError where it cannot be written."""
    try:
        return str(tree.sql(dialect="duckdb", comments=False))
    except Exception as error:
        raise ValueError("it is not SQL that can be written") from error
