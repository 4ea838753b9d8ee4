"""Foreign keys, found from the names of columns and the values in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from uql.base.schema import Field, Modality
from uql.nl.schema.name_words import singular
from uql.nl.schema.scope import Column, Link, Source

if TYPE_CHECKING:
    from uql.sources.catalog import Catalog

SAMPLED = 2_000  # rows of a table whose values are compared
SHARE = 0.5  # of the values of one side that the other must hold where the names agree
SURE = 0.95  # where they do not
KEY = 0.98  # of the values of a key are different
NEARLY = 0.8  # are, of one that another table's column names by the name of its table: tables of the world hold some rows twice
_OWN = frozenset({"id", "key", "no", "nr", "number", "index", "rowid", "row_id"})
_WHOLE = ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UBIGINT", "UINTEGER", "HUGEINT")


_Values = tuple[set[str], float]  # of a column, and what share of its rows have one of their own


def links_between(sources: Sequence[Source], catalog: Catalog) -> tuple[Link, ...]:
    """The joins between these tables, at most one a pair of tables and name.

    A column points to a key of another table when their names agree (the same name, `team_id` and `teams.id`, `team` and `teams.name`)
    and they share values, or when all its texts are values of that key.
    """
    values = {s.name: _values(s, catalog) for s in sources}
    links: list[Link] = []
    for target in sources:
        for key in target.fields:
            key_values = values[target.name].get(key.name)
            if key_values is None or key_values[1] < NEARLY:
                continue
            for other in sources:
                if other.name == target.name:
                    continue
                link = _best(other, target, key, values[other.name], key_values)
                if link is not None and not _is_duplicate(link, links):
                    links.append(link)
    return tuple(links)


def _best(other: Source, target: Source, key: Field, values: dict[str, _Values], keys: _Values) -> Link | None:
    """The column of `other` that points to the key, the one with the most fitting name."""
    best: tuple[float, Link] | None = None
    least = 0.0 if keys[1] >= KEY else 1.5  # how well the names have to agree
    for f in other.fields:
        if f.name not in values or _family(f) != _family(key):
            continue
        mine = values[f.name][0]
        if not mine:
            continue
        share = len(mine & keys[0]) / len(mine)
        is_key = values[f.name][1] >= KEY
        own = f.name.lower() in _OWN and is_key  # each table numbers its own rows so
        fits = 0.0 if own else _agree(f.name, key.name, target.name)
        if fits < least:
            continue
        if (fits and share >= SHARE) or (_family(f) == "text" and share >= SURE and len(mine) >= 3 and not is_key):
            score = fits + share
            if best is None or score > best[0]:
                best = score, Link(Column(other.name, f.name), Column(target.name, key.name))
    return best[1] if best is not None else None


def _agree(name: str, key: str, table: str) -> float:
    """How well a column's name says that it points to `table.key`: 0 not at all.

    >>> _agree("team_id", "id", "teams"), _agree("game_id", "game_id", "reports"), _agree("height", "id", "teams")
    (2.0, 1.0, 0.0)
    >>> _agree("company_id", "id", "companies"), _agree("home_team_id", "id", "teams"), _agree("city_code", "code", "cities")
    (2.0, 1.2, 2.0)
    """
    low, key, table = name.lower(), key.lower(), table.lower()
    forms = {table, singular(table), table.removesuffix("s")}
    if any(low in {f"{form}_{key}", f"{form}{key}"} for form in forms):
        return 2.0
    if low in forms and (key in {"id", "name", "code", "key"} or key.endswith("id")):
        return 1.5  # team and teams.name, continent and continents.contid
    ends = [
        (f"_{form}", f"_{form}_{key}" if key == "id" else f"_{key}") for form in forms if key in {"id", f"{form}_id"}
    ]
    if any(low.endswith(end) for end in ends):
        return 1.2  # home_team_id, billing_address
    return 1.0 if low == key else 0.0


def _is_duplicate(link: Link, links: Sequence[Link]) -> bool:
    """The same join the other way round, or another between the same tables by the same name."""
    return any({link.left, link.right} == {x.left, x.right} for x in links)


def _joins(f: Field) -> bool:
    return f.modality is Modality.STRUCTURED and not f.private and bool(_family(f))


def _family(f: Field) -> str:
    if f.type in _WHOLE:
        return "whole"
    return "text" if f.type in ("VARCHAR", "UUID") else ""


def _values(source: Source, catalog: Catalog) -> dict[str, _Values]:
    """The distinct values of each column that may join, among the first rows, and whether the column looks like a key."""
    fields = [f for f in source.fields if _joins(f)]
    if not fields:
        return {}
    table = catalog.named(source.origin)
    select_list = ", ".join('CAST("' + f.name.replace('"', '""') + '" AS VARCHAR)' for f in fields)
    rows = catalog.cursor.execute(f"SELECT {select_list} FROM {table.sql} LIMIT {SAMPLED}").fetchall()
    by_column = {}
    for i, f in enumerate(fields):
        texts = [str(row[i]) for row in rows if row[i] is not None]
        distinct = set(texts)
        by_column[f.name] = distinct, len(distinct) / len(texts) if len(texts) > 1 else 0.0
    return by_column
