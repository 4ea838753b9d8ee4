"""The physical plan: one block a SELECT, with the requests that go to the model in their order.

A block runs one DuckDB SQL text that gives the candidate rows, then its stages, then one DuckDB SQL text that finishes. A `Stage` is
one request a row, with every question that rides along: an order of clauses is a permutation of stages, a fusion is a
merging of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from uql.compiler.bound import Bound, BoundItem, BoundQuery, BoundSource
from uql.compiler.formula import Formula
from uql.compiler.syntax import Column, Expr, OrderKey
from uql.compiler.virtual import VirtualColumn


class Goal(StrEnum):
    """How many rows have to be asked before the block can answer."""

    EVERY = "every row"  # each needs a value
    FIRST = "the first k that pass"  # LIMIT stops the filter
    SEARCH = "rows that pass"  # all of them, or as many as the budget finds
    ESTIMATE = "aggregates"  # a sample will do, with an interval


@dataclass(frozen=True, slots=True)
class Stage:
    """One request a row: the values of these virtual columns, which read the same columns."""

    columns: tuple[VirtualColumn, ...]

    @property
    def reads(self) -> tuple[Column, ...]:
        return self.columns[0].reads


def stages(wanted: tuple[VirtualColumn, ...]) -> tuple[Stage, ...]:
    """One stage for each set of columns read: questions about the same cells of a row travel in one request."""
    by_reads: dict[tuple[Column, ...], list[VirtualColumn]] = {}
    for column in wanted:
        by_reads.setdefault(column.reads, []).append(column)
    return tuple(Stage(tuple(group)) for group in by_reads.values())


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """Base of all physical nodes."""


@dataclass(frozen=True, slots=True)
class SqlQuery(PhysicalPlan):
    """A query with nothing semantic in it: DuckDB's own."""

    query: BoundQuery


@dataclass(frozen=True, slots=True)
class OuterJoin:
    """LEFT, SEMI or ANTI join on a semantic condition, whose pairs are asked before the block's other stages."""

    kind: str
    left: BoundSource
    right: BoundSource
    pairs: Expr | None  # the concrete terms of ON: DuckDB makes the pairs
    formula: Formula
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True)
class Block(PhysicalPlan):
    """One SELECT."""

    source: BoundSource | None  # joined by DuckDB
    outer_join: OuterJoin | None  # in place of `source`
    derived: tuple[tuple[str, PhysicalPlan], ...]  # semantic sub-queries of FROM by alias, run first
    nested: tuple[tuple[Bound, PhysicalPlan], ...]  # semantic sub-queries in expressions, run first
    pushed: Expr | None  # concrete condition, part of the SQL that gives the candidates
    columns: tuple[Column, ...]  # that the candidates need
    formula: Formula | None  # what is left of WHERE
    filter_stages: tuple[Stage, ...]
    groups: tuple[VirtualColumn, ...]  # taxonomies over the rows that pass
    row_stages: tuple[Stage, ...]  # asked of every row that passes
    late_stages: tuple[Stage, ...]  # asked of the rows returned only
    summaries: tuple[VirtualColumn, ...]  # said of whole groups
    items: tuple[BoundItem, ...]
    keys: tuple[BoundItem, ...]
    having: Expr | None
    aggregated: bool
    distinct: bool
    order_by: tuple[OrderKey, ...]
    limit: int | None
    offset: int
    goal: Goal
    scores: tuple[VirtualColumn, ...] = ()  # ORDER BY "…": refined by comparison at the cut of LIMIT

    @property
    def wanted(self) -> int | None:
        """Rows that must be certain before LIMIT is satisfied."""
        return None if self.limit is None else self.limit + self.offset


@dataclass(frozen=True, slots=True)
class UnionPlan(PhysicalPlan):
    left: PhysicalPlan
    right: PhysicalPlan
    all: bool
    items: tuple[BoundItem, ...]
    order_by: tuple[OrderKey, ...]
    limit: int | None
    offset: int
