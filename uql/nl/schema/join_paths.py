"""The tables of a scope joined along its links, with the columns of each join as a query in lines names them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from uql.base.schema import Field, Modality
from uql.nl.schema.name_words import snake
from uql.nl.schema.scope import Link, Scope, Source

MOST_TABLES = 4  # of one query
MOST_PATHS = 24  # of one grammar
MOST_VALUES = 60  # of a column that a condition may name
NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "U", "DOUBLE", "FLOAT", "DECIMAL", "REAL")
_TIME = ("DATE", "TIMESTAMP")
_DATED = re.compile(r"'?-?\d{4}-\d\d")
_YEAR = re.compile(r"\b(year|date|born|founded)|_(year|date)\b")
_BUILT = re.compile(
    r"(^|_)(made|built|released|published|opened|established|erected|created|completed|died|discovered|invented|since|appointed|hired|joined|elected|started)(_|$)"
)
_KEY = re.compile(r"(^|_)(id|key|code|no|number)$")
_CALLED = re.compile(r"(name|(^|[_.\"])(title|label))s?\"?$")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a path, as the query names it."""

    name: str  # with the table's name before it where two tables of the path have one so called
    table: str
    field: Field
    values: tuple[str, ...] = ()  # all there are, where they are few
    matches: tuple[str, ...] = ()  # values that stand in the question
    dated: bool = False  # a date, or a text that begins as one
    words: tuple[str, ...] | None = None  # of the question that stand in a value; None: not known
    years: bool = False  # a number that is a year, by its name and values
    linked: bool = False  # it is joined with another table
    parted: bool = False  # some values are several others put together: a condition asks for a part
    reckoned: bool = False  # it is made of two columns

    @property
    def is_number(self) -> bool:
        return self.field.type.startswith(NUMBERS) and not self.is_list and self.field.type != "UUID"

    @property
    def is_time(self) -> bool:
        return self.field.type.startswith(_TIME)

    @property
    def is_list(self) -> bool:
        return self.field.type.endswith("[]")

    @property
    def is_boolean(self) -> bool:
        return self.field.type == "BOOLEAN"

    @property
    def is_text(self) -> bool:
        return self.field.type in ("VARCHAR", "UUID") or self.field.type.startswith("ENUM")


@dataclass(frozen=True, slots=True)
class Path:
    """Tables that are joined, with the text of FROM and the columns that may be named."""

    tables: tuple[str, ...]
    source: str
    columns: tuple[Column, ...]
    reads: bool  # a text, an image or the like is among its columns
    others: tuple[
        tuple[str, str, str], ...
    ] = ()  # a table that is not read, its column, and the column of the path that it meets


def joins(scope: Scope) -> list[tuple[tuple[str, ...], tuple[Link, ...]]]:
    """Every table of the scope, and up to four tables along its links, with the links; the fewest tables first."""
    names = list(scope.sources)
    found: list[tuple[tuple[str, ...], tuple[Link, ...]]] = [((name,), ()) for name in names]
    for size in range(2, MOST_TABLES + 1):
        linked = (joined(chosen, scope.links) for chosen in combinations(names, size))
        found += [each for each in linked if each is not None]
    return found


def paths(scope: Scope) -> list[Path]:
    """All joins of a scope, with their columns."""
    return [path for path in (path_of(scope, *each) for each in joins(scope)) if path.columns]


def joined(chosen: Sequence[str], links: Sequence[Link]) -> tuple[tuple[str, ...], tuple[Link, ...]] | None:
    """The tables in an order in which each is linked to one before it, with those links; None where they do not hang together."""
    placed, used = [chosen[0]], []
    waiting = list(chosen[1:])
    mine = [link for link in links if link.left.table in chosen and link.right.table in chosen]
    while waiting:
        step = next(
            (
                (t, link)
                for t in waiting
                for link in mine
                if (link.left.table == t and link.right.table in placed)
                or (link.right.table == t and link.left.table in placed)
            ),
            None,
        )
        if step is None:
            return None
        placed.append(step[0])
        used.append(step[1])
        waiting.remove(step[0])
    return tuple(placed), tuple(used)


def from_text(tables: Sequence[str], links: Sequence[Link]) -> str:
    """What stands behind FROM."""
    text = named(tables[0])
    for table, link in zip(tables[1:], links, strict=True):
        text += f" JOIN {named(table)} ON " + " = ".join(named(c.table, c.name) for c in (link.left, link.right))
    return text


def path_of(scope: Scope, tables: Sequence[str], links: Sequence[Link]) -> Path:
    """A join with its columns."""
    columns: list[Column] = []
    linked = {(c.table, c.name) for link in scope.links for c in (link.left, link.right)}
    met: set[str] = set()  # of two columns that are equal one is enough
    for link in links:
        later = max((link.left, link.right), key=lambda c: tables.index(c.table))
        earlier = link.right if later is link.left else link.left
        if later.name.lower() == earlier.name.lower():
            met.add(f"{later.table}.{later.name}")
    taken = [f.name.lower() for t in tables for f in scope.sources[t].fields]
    for table in tables:
        source = scope.sources[table]
        for f in source.shown:
            if f"{table}.{f.name}" not in met:
                alone = taken.count(f.name.lower()) == 1
                name = named(f.name) if alone else named(table, f.name)
                columns.append(_column(source, f, name, linked=(table, f.name) in linked))
    reads = any(f.is_unstructured for t in tables for f in scope.sources[t].shown)
    return Path(tuple(tables), from_text(tables, links), tuple(columns), reads, tuple(_others(scope, tables)))


def _others(scope: Scope, tables: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Tables that are not read but linked to one that is: their name, their column, and the column that it meets."""
    for link in scope.links:
        for mine, theirs in ((link.left, link.right), (link.right, link.left)):
            if mine.table in tables and theirs.table not in tables:
                yield theirs.table, named(theirs.name), named(mine.table, mine.name)


def _column(source: Source, f: Field, name: str, *, linked: bool) -> Column:
    samples = source.samples.get(f.name, ())
    dated = f.type.startswith(_TIME) or (
        f.type == "VARCHAR" and bool(samples) and all(_DATED.match(value) for value in samples)
    )
    return Column(
        name,
        source.name,
        f,
        source.values.get(f.name, ())[:MOST_VALUES],
        tuple(v for c, v in source.matches if c == f.name),
        dated,
        source.words.get(f.name),
        f.type.startswith(NUMBERS)
        and _BUILT.search(f.name.lower()) is not None
        and bool(samples)
        and all(map(_is_year, samples)),
        linked,
        f.name in source.parted,
    )


def named(*parts: str) -> str:
    """A name as UQL writes it, quoted where it must be."""
    return ".".join(part if _PLAIN.match(part) and part.lower() not in RESERVED else f'"{part}"' for part in parts)


RESERVED = frozenset(
    (
        "select",
        "from",
        "where",
        "group",
        "order",
        "by",
        "limit",
        "as",
        "and",
        "or",
        "not",
        "on",
        "join",
        "union",
        "having",
        "case",
        "when",
    )
)


def is_plain(c: Column) -> bool:
    """A column that holds values, not texts to be read."""
    return c.field.modality is Modality.STRUCTURED


def is_dated(c: Column) -> bool:
    """A date, or the number of a year."""
    return (
        c.dated
        or c.years
        or (c.is_number and not c.reckoned and _YEAR.search(f"{c.name} {c.field.description}".lower()) is not None)
    )


def _is_year(value: str) -> bool:
    return value.isdigit() and 1000 <= int(value) <= 2100


def is_age(c: Column) -> bool:
    return "age" in re.split(r"[\W_]+", c.name.lower())


def is_key(c: Column) -> bool:
    """A number that names something: so called, or joined with another table."""
    return is_key_name(c.name.rpartition(".")[2]) or c.linked


def is_key_name(name: str) -> bool:
    """
    >>> is_key_name("order_id"), is_key_name("customerId"), is_key_name("paid")
    (True, True, False)
    """
    return _KEY.search(snake(name)) is not None


def is_called(name: str) -> bool:
    """Is a column so named what its rows are called?

    >>> is_called("companyName"), is_called("albums.title"), is_called("fname"), is_called("named_by")
    (True, True, True, False)
    """
    return _CALLED.search(snake(name)) is not None
