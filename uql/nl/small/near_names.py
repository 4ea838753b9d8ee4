"""The columns and values that a wrong name may mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from sqlglot import exp

from uql.nl.ask.context import AskContext
from uql.nl.schema.scope import Scope

COLUMNS = 3  # that are offered
ALIKE = 0.6  # of two names, 1: equal
SAME = 0.85  # of two values
MOST_VALUES = 5_000  # of a column that are searched for a near one


def near_columns(name: str, scope: Scope) -> str:
    """The columns that a name which is not there may mean, for a message: those so called in other tables first.

    >>> from uql.base.schema import Field
    >>> from uql.nl.schema.scope import Source
    >>> shops = Source("shops", "shops", (Field("city", "VARCHAR"), Field("name", "VARCHAR")), 3)
    >>> near_columns("letters.city", Scope({"shops": shops})), near_columns("shops.citty", Scope({"shops": shops}))
    ('the nearest columns: shops.city', 'the nearest columns: shops.city')
    """
    columns = {
        f"{table}.{f.name}": f.name.lower() for table, source in scope.sources.items() for f in source.visible_fields
    }
    bare = name.rpartition(".")[2].strip('"').lower()
    matches = [full for full, column in columns.items() if column == bare]
    if not matches:
        close = get_close_matches(bare, set(columns.values()), COLUMNS, ALIKE)
        matches = [full for full, column in columns.items() if column in close]
    if not matches:
        return f"columns: {', '.join(list(columns)[:40])}"
    return f"the nearest columns: {', '.join(matches[:COLUMNS])}"


def near_value(value: str, values: Iterable[str]) -> str | None:
    """The one value that another spelling means; None where it is one of them, or there are none or several.

    >>> near_value("leeds", ["Leeds", "York"]), near_value("Leeds", ["Leeds"]), near_value("Liids", ["Leeds"])
    ('Leeds', None, None)
    >>> near_value("Red Sox Nation", ["Red Sox", "Blue Jays"]), near_value("Goalkeepers", ["goalkeeper", "defender"])
    (None, 'goalkeeper')
    """
    by_lowercase = {str(each).lower(): str(each) for each in values}
    if value in by_lowercase.values():
        return None
    if value.lower() in by_lowercase:
        return by_lowercase[value.lower()]
    close = get_close_matches(value.lower(), by_lowercase, 2, SAME)
    return by_lowercase[close[0]] if len(close) == 1 else None


async def held_values(ctx: AskContext, scope: Scope, column: str) -> list[Sequence[str]]:
    """The values of each plain column of texts that is so called.

    Args:
        column: its name, in any case.
    """
    value_lists: list[Sequence[str]] = []
    for name, source in scope.sources.items():
        f = next((f for f in source.visible_fields if f.name.lower() == column.lower() and f.type == "VARCHAR"), None)
        if f is None or f.is_unstructured:
            continue
        query = exp.select(exp.column(f.name, quoted=True)).distinct().from_(exp.to_identifier(name, quoted=True))
        rows = await ctx.workspace.sql(query.limit(MOST_VALUES).sql(dialect="duckdb"), tables=[name])
        value_lists.append([str(each) for each in rows.column(0).to_pylist() if each is not None])
    return value_lists
