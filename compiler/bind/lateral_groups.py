"""LATERAL (SELECT count(*) FROM t WHERE t.k < u.k AND "…") is a count by group: all values of u.k share the budget, each with an interval.

The values around it, each once, are joined with its rows: a row that counts for several of them is asked once. The text stands in the
FILTER of the aggregates, so that a group of which no row passes is there too.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from math import prod

from uql.base.schema import Field
from uql.compiler.bound import BoundDerived, BoundItem, BoundJoin, BoundSelect, BoundSource, BoundTable
from uql.compiler.formula import conjunction, conjuncts
from uql.compiler.joins import asks
from uql.compiler.subqueries import expressions, fields_in, in_expressions, is_semantic_query, leaves
from uql.compiler.syntax import Binary, Call, Column, Expr, IsDistinct, Number
from uql.compiler.walk import aggregate_calls, columns, is_semantic, rewrite, virtuals

KEY = "__key"  # of a group, with a number
MOST_PAIRS = 10_000_000  # of rows around and rows inside that no equality joins
OF_NO_ROWS = frozenset({"count", "count_star", "approx_count_distinct", "regr_count"})  # 0, not NULL


@dataclass(frozen=True, slots=True)
class Groups:
    """A sub-query of one row by the values around it that it reads.

    Attributes:
        table: with a row for each of these.
        on: what joins it to the rows around it.
        values: its columns beside one of these rows.
    """

    table: BoundDerived
    on: Expr
    values: tuple[Expr, ...]


def by_group(query: object, alias: str, of: BoundSource, aggregates: Container[str]) -> Groups | None:
    """The sub-query as groups; None where it is more than aggregates of rows for which one text holds.

    Args:
        query: that reads columns of `of`.
        of: the table before it.
        aggregates: the names of DuckDB's aggregate functions.
    """
    if not isinstance(query, BoundSelect) or query.source is None or not _is_one_row(query, query.source):
        return None
    own, around = {leaf.alias for leaf in leaves(query.source)}, {leaf.alias for leaf in leaves(of)}
    terms = conjuncts(query.where)
    texts, plain = [t for t in terms if is_semantic(t)], [t for t in terms if not is_semantic(t)]
    between = [t for t in plain if not {c.table for c in columns(t)} <= own]
    outer = list(dict.fromkeys(c for t in between for c in columns(t) if c.table not in own))
    calls = [aggregate_calls(item.expr, aggregates) for item in query.items]
    if not outer or not {c.table for c in outer} <= around or len(virtuals(*texts)) != 1 or len(query.virtuals) != 1:
        return None
    if not any(_is_equality(t, own) for t in between) and _rows(of) * _rows(query.source) > MOST_PAIRS:
        return None
    if any(c.table not in own for text in texts for c in columns(text)) or any(True for _ in in_expressions(*terms)):
        return None
    if any(call != (item.expr,) for call, item in zip(calls, query.items, strict=True)):
        return None
    if any(c.table not in own for c in columns(*(item.expr for item in query.items))):
        return None
    type_of = {column: field.type for column, field in fields_in(of).items()}
    keys = tuple(BoundItem(c, f"{KEY}{i}", type_of.get(c, "")) for i, c in enumerate(outer))
    key_fields, known = tuple(Field(key.name, key.type) for key in keys), f"{KEY}s_{alias}"
    distinct = BoundDerived(BoundSelect(keys, of, distinct=True), known, key_fields)
    moved = {key.expr: Column(known, key.name) for key in keys}
    on = conjunction([rewrite(t, lambda node: moved.get(node, node)) for t in between])
    items = tuple(replace(item, name=f"__a{i}", expr=_only(item.expr, texts)) for i, item in enumerate(query.items))
    group_by = tuple(replace(key, expr=moved[key.expr]) for key in keys)
    groups = replace(
        query,
        items=(*items, *group_by),
        source=BoundJoin("INNER", distinct, query.source, on),
        where=conjunction([t for t in plain if t not in between]),
        group_by=group_by,
    )
    fields = (*(Field(item.name, item.type) for item in items), *key_fields)
    values = tuple(
        _value(item.expr, Column(alias, own_item.name)) for item, own_item in zip(query.items, items, strict=True)
    )
    same = conjunction(
        [IsDistinct(c, Column(alias, key.name), negated=True) for c, key in zip(outer, keys, strict=True)]
    )
    assert same is not None
    return Groups(BoundDerived(groups, alias, fields), same, values)


def _rows(source: BoundSource | None) -> int:
    """The rows of a FROM clause before its conditions, as far as they are known."""
    return prod(leaf.table.row_count or 1 for leaf in leaves(source) if isinstance(leaf, BoundTable))


def _is_one_row(query: BoundSelect, source: BoundSource) -> bool:
    """Is it aggregates over all rows of plain tables, so that it gives one row?"""
    whole = query.aggregated and not query.group_by and not query.sets and query.limit is None and not query.offset
    if not whole or query.having is not None or query.qualify is not None or asks(source):
        return False
    nested = any(True for _ in in_expressions(*expressions(query)))
    return not nested and not any(isinstance(s, BoundDerived) and is_semantic_query(s.query) for s in leaves(source))


def _is_equality(term: Expr, own: Container[str]) -> bool:
    """Does it say that something inside is something around?"""
    if not isinstance(term, Binary) or term.op != "=":
        return False
    return all(len({c.table in own for c in columns(side)}) == 1 for side in (term.left, term.right)) and (
        {c.table in own for c in columns(term)} == {True, False}
    )


def _only(call: Expr, texts: Sequence[Expr]) -> Expr:
    """The aggregate of the rows for which the texts hold."""
    assert isinstance(call, Call)
    return replace(call, filter=conjunction([*([call.filter] if call.filter is not None else []), *texts]))


def _value(call: Expr, column: Column) -> Expr:
    """What the aggregate is beside a row of whose key there is no group."""
    assert isinstance(call, Call)
    return Call("coalesce", (column, Number("0"))) if call.name in OF_NO_ROWS else column
