"""Semi-join reduction: rows of a sub-query without a partner in a concrete join are dropped before a model is asked of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from uql.compiler.bound import Bound, BoundDerived, BoundItem, BoundJoin, BoundSelect, BoundSource, BoundTable
from uql.compiler.formula import conjunction, conjuncts
from uql.compiler.logical import LogicalPlan, OneInput, Scan, SqlFilter, with_inputs
from uql.compiler.rules.inside import changed, is_plain, with_condition
from uql.compiler.subqueries import is_semantic_query
from uql.compiler.syntax import Binary, Column, Expr, InQuery
from uql.compiler.walk import columns


def semi_join_first(plan: LogicalPlan) -> LogicalPlan:
    """Scan((q) AS d JOIN t ON d.film = t.title) → Scan((q WHERE film IN (SELECT title FROM t)) AS d JOIN t ON …).

    Conditions of WHERE on t alone go into the sub-query with it. Safe: a row without a partner is in no row of an INNER or SEMI join,
    nor of the NULL-filled side of an outer one. For rows of tables that join each other this is DuckDB's join itself, which runs first.
    """
    if isinstance(plan, SqlFilter) and isinstance(plan.input, Scan):
        scan = _scan(plan.input, conjuncts(plan.condition))
        return plan if scan is plan.input else replace(plan, input=scan)
    if isinstance(plan, Scan):
        return _scan(plan, [])
    return with_inputs(plan, semi_join_first) if isinstance(plan, OneInput) else plan


def _scan(scan: Scan, terms: list[Expr]) -> Scan:
    if scan.source is None:
        return scan
    source = scan.source
    for derived, own, other, table in list(_partners(source)):
        source = _reduced(source, derived, own, other, table, terms)
    return scan if source is scan.source else replace(scan, source=source)


def _partners(source: BoundSource) -> Iterator[tuple[BoundDerived, Column, Column, BoundTable]]:
    """A semantic sub-query, its column, and the column of a table that it must equal."""
    if not isinstance(source, BoundJoin):
        return
    yield from _partners(source.left)
    yield from _partners(source.right)
    for term in conjuncts(source.on):
        match term:
            case Binary(op="=", left=Column() as a, right=Column() as b):
                for one, two in ((a, b), (b, a)):
                    derived, on_left = _side(source, one)
                    table, _ = _side(source, two)
                    reduces = source.kind in ("INNER", "SEMI") or source.kind == ("RIGHT" if on_left else "LEFT")
                    anti = source.kind == "ANTI" and not on_left
                    if (reduces or anti) and isinstance(derived, BoundDerived) and isinstance(table, BoundTable):
                        yield derived, one, two, table


def _side(join: BoundJoin, column: Column) -> tuple[BoundSource | None, bool]:
    """The source of a column where it is one side of the join itself, and whether that is the left one."""
    for side in (join.left, join.right):
        if isinstance(side, BoundTable | BoundDerived) and side.alias == column.table:
            return side, side is join.left
    return None, False


def _reduced(
    source: BoundSource, derived: BoundDerived, own: Column, other: Column, table: BoundTable, terms: list[Expr]
) -> BoundSource:
    if not is_semantic_query(derived.query) or not isinstance(derived.query, BoundSelect):
        return source
    about = [t for t in terms if is_plain(t) and {c.table for c in columns(t)} == {table.alias}]
    partners = BoundSelect((BoundItem(other, other.name, ""),), table, conjunction(about))
    condition = InQuery(own, Bound(partners))

    def inner(part: BoundDerived) -> BoundSource:
        query = with_condition(part.query, part.alias, [f.name for f in part.fields], condition)
        return part if query is None else replace(part, query=query)

    return changed(source, derived.alias, inner)
