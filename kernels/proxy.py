"""A number of each row that the user says goes with passing: `WITH (proxy = 'score')`."""

from __future__ import annotations

import duckdb
import numpy as np

from uql.base.errors import ConfigError
from uql.base.sqlglot_trees import read_sql, write_sql
from uql.kernels.duck import Duck, quote
from uql.kernels.relation import Relation
from uql.sampling.base import Floats

COLUMN = "__proxy"
NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")


NEEDS = (
    "proxy is a column of the tables of FROM, or SQL over them, that is a number: higher where a row likelier passes"
)


def item(text: str) -> str:
    """The proxy as one more item of the query of the candidate rows. Raises ConfigError (UQL105) where it is no SQL."""
    import sqlglot

    try:
        expressions = read_sql(text)
        if len(expressions) != 1:
            raise ValueError("it is not one expression")
        return write_sql(sqlglot.exp.alias_(expressions[0], COLUMN))
    except ValueError as error:
        raise ConfigError(f"proxy = {text!r}: {error}", help=NEEDS) from error


def create(rows: str, text: str, duck: Duck) -> tuple[str, int]:
    """The candidate rows with their proxy: a table's name and its number of rows.

    Args:
        rows: SQL of the rows, with the proxy as an item.
        text: the proxy as written.
    Raises: ConfigError (UQL105) where it names a column that is not there, or is not a number.
    """
    try:
        name, n = duck.create(rows)
    except duckdb.Error as error:
        raise ConfigError(f"proxy = {text!r}: {str(error).splitlines()[0]}", help=NEEDS) from error
    (kind,) = duck.types(f"SELECT {COLUMN} FROM {quote(name)}")
    if not kind.removeprefix("U").startswith(NUMBERS):
        raise ConfigError(f"proxy = {text!r} is {kind}, not a number", help=NEEDS)
    return name, n


def of(relation: Relation) -> Floats | None:
    """(N,) the proxy of each row, with mean 0 and variance 1, 0 where it is NULL; None where there is none, or all are alike."""
    if COLUMN not in relation.duck.connection.sql(f"FROM {quote(relation.name)}").columns:
        return None
    values = relation.each(f"CAST({COLUMN} AS DOUBLE)")
    fine = np.isfinite(values)
    largest = float(np.abs(values[fine]).max(initial=0.0))
    if largest == 0.0:
        return None
    values = values / largest  # so that no square is too large
    spread = float(values[fine].std())
    if spread == 0.0:
        return None
    return np.where(fine, (values - values[fine].mean()) / spread, 0.0)
