"""An aggregated block over its candidate rows, its groups, and what is known of their numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from uql.compiler.physical import Block
from uql.compiler.syntax import Call, Expr
from uql.compiler.virtual import VirtualColumn
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.relation import Relation
from uql.sampling.base import Estimate, Indices


@dataclass(frozen=True, slots=True)
class Aggregation:
    """What every step of an aggregated block needs.

    Attributes:
        calls: the aggregates of its items, HAVING, QUALIFY and ORDER BY.
        quotients: of two aggregates in the items, which have an interval of their own.
        columns: virtual columns of the rows that pass, that keys and aggregates need.
        codes: (N,) the group of every candidate row, where DuckDB alone can tell it.
        sizes: (G,) the rows of each of these groups, of the table where the relation is a first stage of it.
        known_table: the table of the aggregates that DuckDB knows of all rows, by __part; "": they are to be made of the relation.
    """

    block: Block
    relation: Relation
    ctx: Context
    calls: tuple[Call, ...]
    quotients: dict[Expr, tuple[Call, Call]]
    columns: tuple[VirtualColumn, ...]
    codes: Indices | None
    sizes: Indices | None
    known_table: str = ""

    def rows_of(self, code: int) -> int:
        """The candidate rows in a group; of all where there are none."""
        return self.relation.total if self.sizes is None else int(self.sizes[code])


@dataclass(slots=True)
class Groups:
    """The groups of a block as a table in DuckDB: __g, the keys __k0 …, the aggregates __a0 …; and what is known of their numbers."""

    table: str
    keys: dict[Expr, str]  # expression → its column
    calls: dict[Expr, str]
    exact: bool
    estimates: dict[Expr, list[Estimate]] = field(default_factory=dict)  # by group
    ratios: dict[Expr, list[Estimate]] = field(default_factory=dict)  # of quotients of two aggregates
    members: list[Rids] = field(default_factory=list)  # rows of each group, those asked
    every: bool = True  # are these all groups, as far as is known?
    sample_only: frozenset[Call] = frozenset()  # of these only the rows seen tell: they have no interval
