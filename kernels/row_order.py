"""Is the order of a query's rows the same each time it runs? A sample that is taken up again counts rows by their place.

DuckDB runs what reads many rows, or several small files, on several threads. It keeps the order of a scan, unless
`preserve_insertion_order` is false, but not that of groups, joins, windows, and of ties in ORDER BY. What reads few rows of a table
runs on one thread, in the same order each time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from uql.kernels.duck import Duck

MANY = 20_000  # rows of one table; DuckDB gives a thread 122,880, and guesses how many a filter leaves
# functions; others read files or batches, each on a thread, however few rows these have
_ON_ONE_THREAD = {"RANGE", "GENERATE_SERIES", "UNNEST", "GLOB"}
_KEEPS = {"PROJECTION", "FILTER", "UNNEST", "CTE", "UNION", "STREAMING_LIMIT", "LIMIT", "STREAMING_WINDOW"}
_SORTS = {"ORDER_BY", "TOP_N"}

Node = Mapping[str, Any]


def varies(sql: str, duck: Duck, *, by_keys: bool) -> bool:
    """May the rows of a query come in another order when it runs again?

    Args:
        by_keys: it ends with an ORDER BY whose ties count. One in a sub-query is left as it is.
    """
    plan: list[Node] = json.loads(duck.execute(f"EXPLAIN (FORMAT json) {sql}")[0][1])
    if (
        by_keys
        or any(map(_breaks, plan))
        or not duck.scalar("SELECT system.main.current_setting('preserve_insertion_order')")
    ):
        return _reads_much(plan, duck)
    return False


def settled(sql: str, duck: Duck) -> str:
    """The query with its rows in the same order each time."""
    return f"SELECT * FROM ({sql}) AS r ORDER BY system.main.hash(r)" if varies(sql, duck, by_keys=False) else sql


def _breaks(node: Node) -> bool:
    """Does an operator give rows in any order, with no ORDER BY after it?"""
    if node["name"] in _SORTS or not node["children"]:
        return False
    return node["name"] not in _KEEPS or any(map(_breaks, node["children"]))


def _reads_much(plan: list[Node], duck: Duck) -> bool:
    """Has one of its tables many rows, or may one of its functions read on several threads?"""
    leaves = [node["extra_info"] for node in _nodes(plan) if not node["children"]]
    if any("Function" in leaf and leaf["Function"] not in _ON_ONE_THREAD for leaf in leaves):
        return True
    if any(int(leaf.get("Estimated Cardinality", 0)) > MANY for leaf in leaves if "Table" not in leaf):
        return True
    names = {leaf["Table"] for leaf in leaves if "Table" in leaf}
    if not names:
        return False
    tables = duck.execute(
        "SELECT database_name, schema_name, table_name, estimated_size FROM system.main.duckdb_tables()"
    )
    return any(size > MANY for *path, size in tables if ".".join(path) in names)


def _nodes(plan: list[Node]) -> Iterator[Node]:
    for node in plan:
        yield node
        yield from _nodes(node["children"])
