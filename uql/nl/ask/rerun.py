"""The statements of an answer as they run again over the user's own database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import exp

from uql.base.arrow_values import rows_of
from uql.compiler.parser import parse, tree_of
from uql.compiler.syntax import Select, TableName, Union
from uql.compiler.unparse import quote_name, unparse
from uql.compiler.walk import with_children
from uql.nl.plan.lineage import literal

if TYPE_CHECKING:
    import pyarrow as pa

WRITTEN = 100  # rows of a table that is written out


def one_statement(nodes: Sequence[tuple[str, str]], origins: Mapping[str, str]) -> str:
    """The statements of a plan as one: all but the last stand before it as WITH.

    Args:
        nodes: name and statement of each, in the order in which they ran.
        origins: as of `statement`.

    >>> one_statement([("a", "SELECT x FROM t TO a;"), ("b", "SELECT count(*) AS n FROM a TO b;")], {})
    'WITH a AS (SELECT x FROM t) SELECT * FROM (SELECT count(*) AS n FROM a) AS b'
    """
    statements = [(name, _without_to(statement(text.rstrip("; \n"), name, origins))) for name, text in nodes]
    if len(statements) == 1:
        return statements[0][1]
    *before, (last, text) = statements
    tables = ", ".join(f"{quote_name(name)} AS ({body})" for name, body in before)
    return f"WITH {tables} SELECT * FROM ({text}) AS {quote_name(last)}"


def _without_to(text: str) -> str:
    tree = parse(text.rstrip(";"))
    return unparse(replace(tree, to=None)) if isinstance(tree, Select | Union) else text.rstrip(";")


def statement(text: str, name: str, origins: Mapping[str, str]) -> str:
    """A statement of a plan that stores its rows under `name`, TO standing before WITH (…).

    Args:
        origins: the tables that the plan calls otherwise than the database does, as SQL writes them there.

    >>> statement("SELECT t.a FROM t WITH (budget = 9)", "r", {"t": '"my db"."t 1"'})
    'SELECT t.a FROM "my db"."t 1" AS t TO r WITH (budget = 9);'
    """
    low = {own.lower(): sql for own, sql in origins.items()}
    tree = tree_of(text)
    if tree is None:
        return f"CREATE TABLE {quote_name(name)} AS {_sql(text, low)};"
    if not isinstance(tree, Select | Union):
        return f"{text};"
    paths = {own: parse(f"SELECT * FROM {sql}").source.parts for own, sql in low.items()}  # type: ignore[union-attr]
    return unparse(replace(_placed(tree, paths), to=name)) + ";"


def written_out(table: pa.Table, name: str) -> list[str]:
    """A statement that makes the rows of a small table of plain values; none for another."""
    if not 0 < table.num_rows <= WRITTEN:
        return []
    rows = []
    for row in rows_of(table):
        values = [literal(value) for value in row.values()]
        if any(value is None for value in values):
            return []
        rows.append("(" + ", ".join(value.sql(dialect="duckdb") for value in values if value is not None) + ")")
    columns = ", ".join(map(quote_name, table.column_names))
    return [f"SELECT * FROM (VALUES {', '.join(rows)}) AS {quote_name(name)}({columns}) TO {quote_name(name)};"]


def _placed(node: Any, paths: Mapping[str, tuple[str, ...]]) -> Any:
    """The tree with the tables where they lie in the database, under the names that the statement knows."""
    if isinstance(node, TableName):
        path = paths.get(node.parts[0].lower()) if len(node.parts) == 1 else None
        return node if path is None else replace(node, parts=path, alias=node.alias or node.parts[0])
    if isinstance(node, Select | Union):
        cte_names = {cte.name.lower() for cte in node.ctes}
        paths = {name: path for name, path in paths.items() if name not in cte_names}
    return with_children(node, lambda part: _placed(part, paths))


def _sql(text: str, origins: Mapping[str, str]) -> str:
    """The same of DuckDB's own SQL."""
    if not origins:
        return text
    tree = sqlglot.parse_one(text, read="duckdb")
    cte_names = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in list(tree.find_all(exp.Table)):
        path = origins.get(table.name.lower())
        if path is not None and table.name.lower() not in cte_names and not table.db:
            origin = exp.to_table(path, dialect="duckdb")
            table.replace(exp.alias_(origin, table.alias or table.name, table=True))
    return tree.sql(dialect="duckdb")
