"""The groups of an aggregated block, and what is known of their numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from uql.compiler.syntax import Call, Expr
from uql.kernels.answers import Rids
from uql.sampling.base import Estimate


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
    seen: frozenset[Call] = frozenset()  # of these only the rows seen tell: they have no interval
