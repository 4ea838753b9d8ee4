"""Rows that tie with the last one that a statement shows."""

from __future__ import annotations

import sqlglot
from sqlglot import exp


def tie_check(sql: str) -> tuple[str, int] | None:
    """A statement whose rows tell whether others tie with the last that this one shows, and its LIMIT; None where it has none to check.

    >>> tie_check("SELECT name FROM t ORDER BY height DESC LIMIT 1")
    ('SELECT height AS place FROM t ORDER BY height DESC LIMIT 2', 1)
    >>> tie_check("SELECT name FROM t") is None, tie_check("SELECT count(*) FROM t LIMIT 5") is None
    (True, True)
    """
    tree = sqlglot.parse_one(sql, read="duckdb")
    limit, order = tree.args.get("limit"), tree.args.get("order")
    if not isinstance(tree, exp.Select) or limit is None or order is None or tree.args.get("distinct") is not None:
        return None
    most = limit.expression
    if not isinstance(most, exp.Literal) or most.is_string or len(order.expressions) != 1:
        return None
    by = order.expressions[0].this
    aliases = {item.alias.lower(): item.this for item in tree.expressions if isinstance(item, exp.Alias)}
    if isinstance(by, exp.Column) and not by.table:
        by = aliases.get(by.name.lower(), by)
    if isinstance(by, exp.Literal):  # ORDER BY 2
        return None
    check = tree.copy()
    check.set("expressions", [exp.alias_(by.copy(), "place")])
    check.args["order"].expressions[0].set("this", by.copy())
    n = int(most.this)
    return check.limit(n + 1).sql(dialect="duckdb"), n
