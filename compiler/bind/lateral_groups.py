"""LATERAL (SELECT count(*) FROM t WHERE t.k = u.k AND "…") is a count by group: all values of u.k share the budget, each with an interval.

The text stands in the FILTER of the aggregates, so that a group of which no row passes is there too.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from uql.base.schema import Field
from uql.compiler.bound import Bound, BoundDerived, BoundItem, BoundSelect, BoundSource
from uql.compiler.formula import conjunction, conjuncts
from uql.compiler.joins import asks
from uql.compiler.subqueries import expressions, fields_in, in_expressions, is_semantic_query, leaves
from uql.compiler.syntax import Binary, Call, Column, Expr, InQuery, Number
from uql.compiler.walk import aggregate_calls, columns, is_semantic, virtuals

KEY = "__key"
OF_NO_ROWS = frozenset({"count", "count_star", "count_if", "approx_count_distinct", "regr_count"})  # 0, not NULL


@dataclass(frozen=True, slots=True)
class Groups:
    """A sub-query of one row by the key that it is joined by.

    Attributes:
        table: with a row for each value of the key.
        on: what joins it to the rows around it.
        values: its columns beside one of these rows.
    """

    table: BoundDerived
    on: Expr
    values: tuple[Expr, ...]


def by_group(query: object, alias: str, of: BoundSource, aggregates: Container[str]) -> Groups | None:
    """The sub-query as groups; None where it is more than aggregates of the rows with one key for which one text holds.

    Args:
        query: that reads columns of `of`.
        alias: of the groups.
        of: the table before it.
        aggregates: the names of DuckDB's aggregate functions.
    """
    if not isinstance(query, BoundSelect) or not _is_one_row(query):
        return None
    own, around = {leaf.alias for leaf in leaves(query.source)}, {leaf.alias for leaf in leaves(of)}
    terms = conjuncts(query.where)
    texts, plain = [t for t in terms if is_semantic(t)], [t for t in terms if not is_semantic(t)]
    keys = [t for t in plain if not {c.table for c in columns(t)} <= own]
    calls = [aggregate_calls(item.expr, aggregates) for item in query.items]
    if len(keys) != 1 or len(virtuals(*texts)) != 1 or len(query.virtuals) != 1:
        return None
    if any(c.table not in own for text in texts for c in columns(text)) or any(True for _ in in_expressions(*terms)):
        return None
    if any(call != (item.expr,) for call, item in zip(calls, query.items, strict=True)):
        return None
    if any(c.table not in own for c in columns(*(item.expr for item in query.items))):
        return None
    sides = _sides(keys[0], own, around)
    if sides is None:
        return None
    key, outer = sides
    type_of = {column: field.type for column, field in fields_in(query.source).items()}
    known = InQuery(key, Bound(BoundSelect((BoundItem(outer, KEY, ""),), of)))
    items = tuple(replace(item, name=f"__a{i}", expr=_only(item.expr, texts)) for i, item in enumerate(query.items))
    key_item = BoundItem(key, KEY, type_of.get(key, ""))
    where = conjunction([*(t for t in plain if t is not keys[0]), known])
    groups = replace(query, items=(*items, key_item), group_by=(key_item,), where=where)
    fields = tuple(Field(item.name, item.type) for item in groups.items)
    values = tuple(
        _value(item.expr, Column(alias, own_item.name)) for item, own_item in zip(query.items, items, strict=True)
    )
    return Groups(BoundDerived(groups, alias, fields), Binary("=", outer, Column(alias, KEY)), values)


def _is_one_row(query: BoundSelect) -> bool:
    """Is it aggregates over all rows of plain tables, so that it gives one row?"""
    whole = query.aggregated and not query.group_by and not query.sets and query.limit is None and not query.offset
    if not whole or query.having is not None or query.qualify is not None or query.source is None or asks(query.source):
        return False
    nested = any(True for _ in in_expressions(*expressions(query)))
    return not nested and not any(
        isinstance(s, BoundDerived) and is_semantic_query(s.query) for s in leaves(query.source)
    )


def _sides(term: Expr, own: Container[str], around: Container[str]) -> tuple[Column, Column] | None:
    """The sub-query's column and the other one of an equality."""
    match term:
        case Binary(op="=", left=Column() as a, right=Column() as b):
            for inner, outer in ((a, b), (b, a)):
                if inner.table in own and outer.table in around:
                    return inner, outer
    return None


def _only(call: Expr, texts: Sequence[Expr]) -> Expr:
    """The aggregate of the rows for which the texts hold."""
    assert isinstance(call, Call)
    return replace(call, filter=conjunction([*([call.filter] if call.filter is not None else []), *texts]))


def _value(call: Expr, column: Column) -> Expr:
    """What the aggregate is beside a row of whose key there is no group."""
    assert isinstance(call, Call)
    return Call("coalesce", (column, Number("0"))) if call.name in OF_NO_ROWS else column
