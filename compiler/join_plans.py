"""Physical joins on quoted texts: those of FROM, and those of sub-queries that read columns of the query around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from uql.base.schema import Field, Table
from uql.base.sql_text import quote
from uql.compiler.bound import (
    Bound,
    BoundDerived,
    BoundItem,
    BoundJoin,
    BoundQuery,
    BoundSelect,
    BoundSource,
    BoundTable,
    BoundUnion,
)
from uql.compiler.expression_text import describe_source, show
from uql.compiler.formula import Formula, conjunction, conjuncts
from uql.compiler.joins import LEFT_KEPT, RIGHT_KEPT, asks, inner_terms, without_semantic_on
from uql.compiler.logical import LogicalPlan, Scan, SemJoin
from uql.compiler.physical import Block, Correlated, OuterJoin, PerValue, PhysicalPlan, stages
from uql.compiler.rules.inside import is_plain
from uql.compiler.subqueries import (
    aliases,
    derived,
    expressions,
    fields_in,
    in_expressions,
    is_semantic_query,
    outer_columns,
    visible_aliases,
    with_expressions,
    with_leaves,
)
from uql.compiler.syntax import Column, Exists, Expr, Number, ScalarQuery
from uql.compiler.walk import columns, is_semantic, rewrite, virtuals, walk

Planner = Callable[[BoundQuery], PhysicalPlan]
_views = count()


def join_plan(node: LogicalPlan) -> BoundSource | OuterJoin | None:
    """What a Scan or a SemJoin is when it runs."""
    if isinstance(node, Scan):
        return node.source
    assert isinstance(node, SemJoin)
    left, right = join_plan(node.left), join_plan(node.right)
    assert left is not None and right is not None
    pairs, semantic_terms = inner_terms(node.condition)
    condition = conjunction(semantic_terms)
    formula = Formula.of(condition) if condition is not None else None
    return OuterJoin(node.kind, left, right, pairs, formula, stages(virtuals(condition)))


def aliases_in(side: BoundSource | OuterJoin | None) -> list[str]:
    """The aliases whose columns the rows of one side of a join have; a join that is asked has those of both its sides."""
    if not isinstance(side, OuterJoin):
        return list(visible_aliases(side))
    return aliases_in(side.left) + aliases_in(side.right)


def sources_of(side: BoundSource | OuterJoin | None) -> list[BoundSource]:
    """What DuckDB reads for one side of a join, from left to right."""
    if isinstance(side, OuterJoin):
        return sources_of(side.left) + sources_of(side.right)
    return [side] if side is not None else []


def fields_of(block: Block) -> dict[Column, Field]:
    """The columns that a block may read, by alias and name."""
    return fields_in(*sources_of(block.scan.join or block.scan.source))


def fields_read(block: Block) -> dict[Column, Field]:
    """The same with those of its sub-queries that read its columns."""
    return {**fields_in(*(part.source for part in block.inner.correlated)), **fields_of(block)}


def push(join: OuterJoin, terms: list[Expr]) -> tuple[OuterJoin, list[Expr]]:
    """The join with these concrete terms of WHERE applied before its pairs are made, and those that have to wait."""
    left: list[Expr] = []
    right: list[Expr] = []
    later: list[Expr] = []
    for term in terms:
        tables = {c.table for c in columns(term)}
        hidden = any(True for _ in in_expressions(term))
        if tables and not hidden and join.kind in LEFT_KEPT and tables <= set(aliases_in(join.left)):
            left.append(term)
        elif tables and not hidden and join.kind in RIGHT_KEPT and tables <= set(aliases_in(join.right)):
            right.append(term)
        else:
            later.append(term)
    sides = [join.left, join.right]
    before = [join.left_where, join.right_where]
    for i, own in enumerate((left, right)):
        side = sides[i]
        if isinstance(side, OuterJoin):
            sides[i], own = push(side, own)
            later += own
        elif own:
            before[i] = conjunction([*conjuncts(before[i]), *own])
    return replace(join, left=sides[0], right=sides[1], left_where=before[0], right_where=before[1]), later


def with_sources(side: Any, change: Mapping[str, BoundSource]) -> Any:
    """A FROM clause, or a join that is asked, with the sources of these aliases replaced."""
    if isinstance(side, BoundJoin | OuterJoin):
        return replace(side, left=with_sources(side.left, change), right=with_sources(side.right, change))
    return change.get(getattr(side, "alias", ""), side)


def describe_join(side: BoundSource | OuterJoin | None) -> str:
    """One phrase for a join, as `describe_source` says it of what DuckDB joins."""
    if not isinstance(side, OuterJoin):
        return describe_source(side)
    terms = [show(part) for part in (side.pairs,) if part is not None]
    terms += [show(leaf.expr) for leaf in side.formula.leaves] if side.formula is not None else []
    on = f" ON {' AND '.join(terms)}" if terms else ""
    how = "" if side.kind == "INNER" else f"{side.kind} "
    return f"{describe_join(side.left)} {how}JOIN {describe_join(side.right)}{on}"


# ------------------------------------------------------------------------------------------------- correlated sub-queries
def correlated(query: BoundSelect, plan: Planner) -> tuple[tuple[Correlated, ...], tuple[PerValue, ...]]:
    """The sub-queries in a block's expressions that hold quoted texts and read columns of the block, each once.

    Those whose answers are had from pairs of rows, and those that are run for each value.
    """
    pairs: dict[Bound, Correlated] = {}
    runs: dict[Bound, PerValue] = {}
    for expr in expressions(query):
        for node in walk(expr):
            part = getattr(node, "query", None)
            if not isinstance(part, Bound) or not part.correlated or not is_semantic_query(part.query):
                continue
            if part not in pairs and part not in runs:
                by_pairs = _correlated(part, isinstance(node, Exists), plan)
                if by_pairs is not None:
                    pairs[part] = by_pairs
                else:
                    runs[part] = _per_value(part, query, plan)
    return tuple(pairs.values()), tuple(runs.values())


def _per_value(part: Bound, query: BoundSelect, plan: Planner) -> PerValue:
    own = set(visible_aliases(query.source))
    read = tuple(dict.fromkeys(c for c in outer_columns(part.query) if c.table in own))
    source, _ = without_semantic_on(query.source)
    assert source is not None
    source_fields = fields_in(source)
    decided = [t for t in conjuncts(query.where) if is_plain(t) and {c.table for c in columns(t)} <= own]
    where = conjunction(decided)  # of the rows that it is run for
    rows: dict[str, BoundSource] = {}
    row: dict[str, BoundSource] = {}
    views: list[tuple[str, str]] = []
    for alias in dict.fromkeys(c.table for c in read):
        of_alias = [c for c in read if c.table == alias]
        fields = tuple(_field_of(source_fields, c) for c in of_alias)
        items = tuple(BoundItem(c, c.name, f.type) for c, f in zip(of_alias, fields, strict=True))
        rows[alias] = BoundDerived(BoundSelect(items, source, where, distinct=True), alias, fields)
        views.append((alias, f"__value_{next(_views)}"))
        row[alias] = BoundTable(Table(alias, quote(views[-1][1]), fields, 1), alias)
    whole, each = (plan(with_rows(part.query, beside)) for beside in (rows, row))
    return PerValue(part, read, whole, each, tuple(views))


def _field_of(fields: Mapping[Column, Field], column: Column) -> Field:
    """What is known of a column; of one that is not in FROM, that it is a text."""
    return fields.get(column) or Field(column.name, "VARCHAR")


def with_rows(query: BoundQuery, rows: Mapping[str, BoundSource]) -> BoundQuery:
    """A sub-query that reads no column around it any more: in each of its blocks that does, the rows stand in FROM.

    Args:
        rows: by alias, what the columns of this alias are read from: one row each, so that the sub-query's rows stay as many.
    """
    if isinstance(query, BoundUnion):
        return replace(query, left=with_rows(query.left, rows), right=with_rows(query.right, rows))
    assert isinstance(query, BoundSelect)
    exprs = list(expressions(query))
    read = [*columns(*exprs), *(c for inner in in_expressions(*exprs) for c in outer_columns(inner.query))]

    def inside(leaf: BoundSource) -> BoundSource:
        return replace(leaf, query=with_rows(leaf.query, rows)) if isinstance(leaf, BoundDerived) else leaf

    source = with_leaves(query.source, inside) if query.source is not None else None
    missing = {c.table for c in read} & set(rows) - set(aliases(query.source))
    for alias in sorted(missing):
        source = rows[alias] if source is None else BoundJoin("CROSS", source, rows[alias])
    query = replace(query, source=source)
    if not query.aggregated or not missing:
        return query

    def value(node: Any) -> Any:  # of a group: all its rows have the one row beside them
        if not isinstance(node, Column) or node.table not in missing:
            return node
        item = BoundItem(node, node.name, _field_of(fields_in(rows[node.table]), node).type)
        return ScalarQuery(Bound(BoundSelect((item,), rows[node.table])))

    return replace(with_expressions(query, lambda expr: rewrite(expr, value)), group_by=query.group_by)


def _correlated(part: Bound, exists: bool, plan: Planner) -> Correlated | None:
    """The sub-query as a filter over pairs of rows; None where it is more than that."""
    query = part.query
    if not isinstance(query, BoundSelect) or query.source is None or asks(query.source):
        return None
    if any(is_semantic_query(inner.query) for inner in in_expressions(*expressions(query))):
        return None
    if any(True for inner in derived(query.source) for _ in outer_columns(inner.query)):
        return None
    source, terms = without_semantic_on(query.source)
    assert source is not None
    terms += conjuncts(query.where)
    own = set(visible_aliases(source))
    concrete = [t for t in terms if not is_semantic(t)]
    own_terms = [
        t for t in concrete if {c.table for c in columns(t)} <= own and not any(True for _ in in_expressions(t))
    ]
    condition = conjunction([t for t in terms if is_semantic(t)])
    if exists and not query.aggregated:
        one = BoundItem(Number("1"), "one", "INTEGER")
        query = replace(query, items=(one,), order_by=(), distinct=False)
    after = (*(i.expr for i in (*query.items, *query.group_by)), query.having, query.qualify)
    after = (*after, *(k.expr for k in query.order_by))
    filter_columns = virtuals(condition)
    value_columns = tuple(c for c in virtuals(*after) if c not in filter_columns)
    if not all(c.by_row for c in value_columns):
        return None
    parts = (*after, *terms)
    needed = dict.fromkeys(columns(*parts))
    for inner in in_expressions(*parts):
        needed.update(dict.fromkeys(outer_columns(inner.query)))
    return Correlated(
        part,
        query,
        source,
        tuple((d.alias, plan(d.query)) for d in derived(source) if is_semantic_query(d.query)),
        conjunction(own_terms),
        conjunction([t for t in concrete if t not in own_terms]),
        Formula.of(condition) if condition is not None else None,
        stages(filter_columns),
        stages(value_columns),
        tuple(needed),
    )
