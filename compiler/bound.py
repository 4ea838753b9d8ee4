"""The bound query: the tree after names mean something. What the binder makes and the logical plan is built from.

Expressions in it hold no `Name`, `Quoted` or `Parameter`: only `Column`, `Virtual` and constants. Stars are expanded, ordinals and
aliases in GROUP BY, HAVING and ORDER BY are replaced by what they stand for, `USING` is an ON condition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uql.base.schema import Field, Table
from uql.compiler.syntax import Expr, OrderKey, Query, Span
from uql.compiler.virtual import VirtualColumn


@dataclass(frozen=True, slots=True)
class Reading:
    """How one quoted text was read: 'column', 'string' or 'virtual'; EXPLAIN prints it."""

    span: Span
    text: str
    read_as: str
    detail: str = ""  # the column found, or the kind, type and reads of the virtual column


@dataclass(frozen=True, slots=True)
class BoundSource:
    """What stands after FROM; `alias` is unique in its query block."""


@dataclass(frozen=True, slots=True)
class BoundTable(BoundSource):
    table: Table
    alias: str

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.table.fields


@dataclass(frozen=True, slots=True)
class BoundDerived(BoundSource):
    """A sub-query in FROM, or a CTE."""

    query: BoundQuery
    alias: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class BoundJoin(BoundSource):
    kind: str  # as in syntax.Join
    left: BoundSource
    right: BoundSource
    on: Expr | None = None


@dataclass(frozen=True, slots=True)
class BoundItem:
    expr: Expr
    name: str  # of the output column
    type: str  # DuckDB type


class BoundQuery:
    """A BoundSelect or a BoundUnion."""

    __slots__ = ()
    items: tuple[BoundItem, ...]


@dataclass(frozen=True, slots=True)
class BoundSelect(BoundQuery):
    items: tuple[BoundItem, ...]
    source: BoundSource | None = None
    where: Expr | None = None
    group_by: tuple[BoundItem, ...] = ()  # keys, with the name they are given or have
    having: Expr | None = None
    order_by: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    distinct: bool = False
    aggregated: bool = False  # has a GROUP BY or an aggregate: one output row a group
    virtuals: tuple[VirtualColumn, ...] = ()  # each once, in order of id
    qualify: Expr | None = None  # keeps rows after windows are computed
    sets: tuple[tuple[int, ...], ...] = ()  # GROUPING SETS: the keys of each, by their place in `group_by`


@dataclass(frozen=True, slots=True)
class BoundUnion(BoundQuery):
    items: tuple[BoundItem, ...]  # names and types of the output; their exprs are those of the left side
    left: BoundQuery
    right: BoundQuery
    all: bool = False
    order_by: tuple[OrderKey, ...] = ()  # over Column("", output name)
    limit: int | None = None
    offset: int = 0
    op: str = "UNION"  # UNION, INTERSECT, EXCEPT


@dataclass(frozen=True, slots=True)
class Bound(Query):
    """A bound sub-query in the place of an expression's Query: `InQuery(x, Bound(query))`, `Exists(Bound(query))`."""

    query: BoundQuery
    correlated: bool = False  # reads columns of the query around it


@dataclass(frozen=True, slots=True)
class BoundStatement:
    """One bound query, with everything that holds for the whole statement."""

    query: BoundQuery
    text: str
    to: str | None = None
    options: tuple[tuple[str, Any], ...] = ()  # of WITH (…), checked against the settings' names
    readings: tuple[Reading, ...] = ()
    warnings: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()  # every table it reads
    semantic: bool = False  # does any block of it hold a virtual column? Else DuckDB runs it alone
    sql: str | None = None  # then: its own text as DuckDB reads it, where DuckDB reads it alike
    normal: str = ""  # the statement in normal form without TO and WITH (…), and its parameters: what a run is known by
