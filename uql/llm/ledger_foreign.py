"""What somebody has put into the schema of a ledger in PostgreSQL that would run, with the rights of whoever opens it.

The ledger's tables have no triggers, rules, policies, checks or computed defaults, and its schema has no functions. Where others may make
them, they could have every user of the ledger run what they like. Its columns have the types of this version.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

FOREIGN = """
    WITH own AS (SELECT oid, relname, relkind FROM pg_class WHERE relnamespace = to_regnamespace('uql'))
    SELECT format('the trigger %s on %s', tgname, relname) FROM pg_trigger JOIN own ON own.oid = tgrelid WHERE NOT tgisinternal
    UNION ALL SELECT format('the rule %s on %s', rulename, relname)
        FROM pg_rewrite JOIN own ON own.oid = ev_class WHERE rulename <> '_RETURN'
    UNION ALL SELECT format('the policy %s on %s', polname, relname) FROM pg_policy JOIN own ON own.oid = polrelid
    UNION ALL SELECT format('the check %s on %s', conname, relname)
        FROM pg_constraint JOIN own ON own.oid = conrelid WHERE contype = 'c'
    UNION ALL SELECT format('a computed column of %s', relname)
        FROM pg_attrdef JOIN own ON own.oid = adrelid WHERE pg_get_expr(adbin, adrelid) <> '''''::text'
    UNION ALL SELECT format('a computed index on %s', relname)
        FROM pg_index JOIN own ON own.oid = indrelid WHERE indexprs IS NOT NULL OR indpred IS NOT NULL
    UNION ALL SELECT format('a type of its own, of %s in %s', attname, relname)
        FROM pg_attribute JOIN own ON own.oid = attrelid JOIN pg_type ON pg_type.oid = atttypid
        WHERE relkind = 'r' AND typnamespace <> 'pg_catalog'::regnamespace
    UNION ALL SELECT format('%s, which is not a table', relname)
        FROM own WHERE relkind NOT IN ('r', 'i', 'S', 'v') OR relkind = 'v' AND relname NOT IN ('answers', 'calls')
    UNION ALL SELECT format('the function %s', proname) FROM pg_proc WHERE pronamespace = to_regnamespace('uql')
    UNION ALL SELECT format('the operator %s', oprname) FROM pg_operator WHERE oprnamespace = to_regnamespace('uql')
    LIMIT 1"""
COLUMNS = """
    SELECT relname, attname, format_type(atttypid, NULL) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relnamespace = to_regnamespace('uql') AND relkind = 'r' AND attnum > 0 AND NOT attisdropped"""
TABLE = re.compile(r"CREATE TABLE IF NOT EXISTS (\w+)\s*\((.*)\)", re.DOTALL)
COLUMN = re.compile(r"(?:^|,)\s*(\w+) (BIGINT|TEXT|BYTEA|DOUBLE PRECISION|TIMESTAMPTZ)\b")
SHORT = {"timestamptz": "timestamp with time zone"}


def foreign_object(execute: Any, tables: Sequence[str]) -> str | None:
    """What the schema holds that is not of UQL; None where there is nothing.

    Args:
        execute: of a connection whose search_path is pg_catalog alone.
        tables: the statements that make the ledger's own.
    """
    if row := execute(FOREIGN).fetchone():
        return str(row[0])
    types = {
        (found[1], column): SHORT.get(kind.lower(), kind.lower())
        for found in filter(None, map(TABLE.search, tables))
        for column, kind in COLUMN.findall(found[2])
    }
    for table, column, kind in execute(COLUMNS).fetchall():
        if types.get((table, column), kind) != kind:
            return f"the column {column} of {table} as {kind}"
    return None
