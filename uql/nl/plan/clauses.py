"""A query as named clauses, which a grammar can hold to the names in scope, and its text.

A small model writes SQL that names columns which are not there. In this form every table and column is one of a list, so what it writes
parses, and nearly always binds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from uql.base.errors import QuestionError
from uql.base.schema import Field
from uql.nl.prompts import BOOLEAN, Schema, array, obj, one_of, text
from uql.nl.schema.join_paths import named

OPS = ("=", "<>", "<", "<=", ">", ">=", "contains")
AGGREGATES = ("none", "count", "count_distinct", "sum", "avg", "min", "max")
TYPES = ("text", "number", "yes_no", "date")
_DUCK = {"text": "VARCHAR", "number": "DOUBLE", "yes_no": "BOOLEAN", "date": "DATE"}
_NUMBER = re.compile(r"-?\d+(\.\d+)?\Z")
_NUMERIC = ("TINYINT", "SMALLINT", "INT", "BIGINT", "HUGEINT", "U", "DOUBLE", "FLOAT", "DECIMAL", "REAL")
NAME: Schema = {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,24}$"}


def schema(tables: Sequence[str], columns: Sequence[str]) -> Schema:
    """The JSON schema of one query over these tables, with columns as "table.column"."""
    names = list(columns)
    return obj(
        {
            "from": one_of(list(tables)),
            "join": array(obj({"table": one_of(list(tables)), "left": one_of(names), "right": one_of(names)}), 4),
            "where": array(obj({"column": one_of(names), "op": one_of(OPS), "value": text(60)}), 4),
            "ask": array(text(160), 2),
            "select": array(
                obj(
                    {
                        "column": one_of([*names, "*", "read"]),
                        "read": text(160),
                        "type": one_of(TYPES),
                        "agg": one_of(AGGREGATES),
                        "as": NAME,
                    }
                ),
                5,
                1,
            ),
            "group_by": array(one_of(names), 2),
            "order_by": array(obj({"by": NAME, "desc": BOOLEAN}), 1),
            "limit": {"type": "integer", "minimum": 0, "maximum": 100},
        }
    )


def statement(clauses: Mapping[str, Any], tables: Mapping[str, Sequence[Field]]) -> str:
    """The UQL text of a query in clauses.

    Args:
        clauses: as `schema` says.
        tables: the columns of every table in scope.
    Raises: QuestionError (UQL631) where a column is in none of the tables read.
    """
    read = [clauses["from"]]
    joins = []
    for join in clauses["join"]:
        if join["table"] in read:
            continue
        read.append(join["table"])
        joins.append(join)
    known = {name: {f.name.lower(): f for f in tables[name]} for name in read}

    def column(name: str) -> tuple[str, Field]:
        table, _, bare = name.rpartition(".")
        for owner in ([table] if table in known else []) + [t for t in read if t != table]:
            if bare.lower() in known[owner]:
                f = known[owner][bare.lower()]
                return (f"{named(owner)}.{named(f.name)}" if len(read) > 1 else named(f.name)), f
        listed = ", ".join(f"{t}.{f.name}" for t in read for f in tables[t])
        raise QuestionError(f"no column {name} in {', '.join(read)}", code="UQL631", help=f"columns: {listed}")

    source = named(clauses["from"])
    placed = [clauses["from"]]
    for join in joins:
        placed.append(join["table"])
        on = _on(join, placed, tables)
        source += f" JOIN {named(join['table'])} ON {on}" if on else f" CROSS JOIN {named(join['table'])}"
    where = [_condition(item, *column(item["column"])) for item in clauses["where"]]
    where += [_prompt(asked) for asked in dict.fromkeys(clauses["ask"]) if asked.strip()]
    keys = list(dict.fromkeys(column(name)[0] for name in clauses["group_by"]))
    items, plain, names = _items(clauses["select"], column)
    if any(" AS " in item for item in items) and plain and len(plain) < len(items) and _aggregated(clauses["select"]):
        keys = list(dict.fromkeys([*keys, *plain]))  # a plain column beside an aggregate is a group key
    missing = [key for key in keys if key not in plain]
    if keys:
        items = [*missing, *items]
    text_ = f"SELECT {', '.join(items)} FROM {source}"
    text_ += f" WHERE {' AND '.join(where)}" if where else ""
    text_ += f" GROUP BY {', '.join(keys)}" if keys else ""
    order = [(o["by"], o["desc"]) for o in clauses["order_by"]]
    for by, desc in order:
        if by in names:
            text_ += f" ORDER BY {by}{' DESC' if desc else ''}"
        elif (
            found := next((c for c in clauses["select"] if c["column"].rpartition(".")[2].lower() == by), None)
        ) is not None:
            text_ += f" ORDER BY {column(found['column'])[0]}{' DESC' if desc else ''}"
        elif any(by in known[t] for t in read) and not (_aggregated(clauses["select"]) or keys):
            text_ += f" ORDER BY {column(by)[0]}{' DESC' if desc else ''}"
    return text_ + (f" LIMIT {clauses['limit']}" if clauses["limit"] else "")


def _items(select: Sequence[Mapping[str, Any]], column: Any) -> tuple[list[str], list[str], list[str]]:
    """The SELECT items, those that are plain columns, and the names given."""
    items: list[str] = []
    plain: list[str] = []
    names: list[str] = []
    for item in select:
        agg = item["agg"]
        name = item["as"] if item["as"] not in names else f"{item['as']}_{len(names)}"
        if item["column"] == "*" or (item["column"] == "read" and not item["read"].strip()):
            made = "count(*)" if agg != "none" else "*"
            if made == "*":
                items.append("*")
                continue
        elif item["column"] == "read":
            kind = "number" if agg in ("sum", "avg") else item["type"]
            made = _called(agg, f"CAST({_prompt(item['read'])} AS {_DUCK[kind]})")
        else:
            found, _ = column(item["column"])
            if agg == "none":
                if found not in plain:
                    plain.append(found)
                    items.append(found)
                continue
            made = _called(agg, found)
        names.append(name)
        items.append(f"{made} AS {name}")
    return items, plain, names


def _aggregated(select: Sequence[Mapping[str, Any]]) -> bool:
    return any(item["agg"] != "none" for item in select)


def _called(agg: str, value: str) -> str:
    if agg == "none":
        return value
    return f"count(DISTINCT {value})" if agg == "count_distinct" else f"{agg}({value})"


def _on(join: Mapping[str, str], placed: Sequence[str], tables: Mapping[str, Sequence[Field]]) -> str:
    """The condition of a join: as written where it is between the new table and one before it, else by a name in common."""
    new = join["table"]
    sides = [name.rpartition(".") for name in (join["left"], join["right"])]
    owners = {side[0] for side in sides}
    if len(owners) == 2 and new in owners and owners <= set(placed):
        return " = ".join(f"{named(t)}.{named(c)}" for t, _, c in sides)
    mine = {f.name.lower(): f.name for f in tables[new]}
    for other in reversed(placed[:-1]):
        for f in tables[other]:
            if f.name.lower() in mine:
                return f"{named(other)}.{named(f.name)} = {named(new)}.{named(mine[f.name.lower()])}"
    return ""


def _condition(item: Mapping[str, Any], name: str, f: Field) -> str:
    value = str(item["value"])
    if item["op"] == "contains" and f.type.endswith("[]"):
        return f"list_contains({name}, {_string(value)})"
    if item["op"] == "contains":
        escaped = value.replace("%", "").replace("_", " ").strip("'")
        return f"CAST({name} AS VARCHAR) ILIKE {_string(f'%{escaped}%')}"
    if f.type == "BOOLEAN" and value.lower() in ("true", "false", "yes", "no"):
        return f"{name} {item['op']} {'TRUE' if value.lower() in ('true', 'yes') else 'FALSE'}"
    number = _NUMBER.match(value) is not None and f.type.startswith(_NUMERIC) and f.type != "UUID"
    if f.type == "DATE" and re.fullmatch(r"\d{4}", value):
        value = f"{value}-01-01"
    return f"{name} {item['op']} {value if number else _string(value.strip(chr(39)))}"


def _prompt(words: str) -> str:
    return 'PROMPT "' + words.strip().replace("\\", "").replace('"', "'") + '"'


def _string(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
