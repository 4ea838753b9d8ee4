"""Clauses that say in other words what the binder knows: ROLLUP, CUBE and GROUPING SETS, DISTINCT ON, items of lists as keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from math import prod

from uql.base.errors import BindError
from uql.compiler import syntax as ast
from uql.compiler.bind.limits import is_all
from uql.compiler.bind.scope import Scope
from uql.compiler.bound import BoundSelect
from uql.compiler.formula import conjunction, conjuncts
from uql.compiler.subqueries import join_conditions
from uql.compiler.syntax import Call, Column, Expr, GroupKey, Name, Number, Query, Select
from uql.compiler.unparse import unparse
from uql.compiler.walk import rewrite, virtuals, walk

KINDS = ("rollup", "cube", "grouping_sets")
MOST_SETS = 4096  # as DuckDB has it at most, for CUBE


def flattened(select: Select) -> tuple[Select, tuple[tuple[int, ...], ...]]:
    """GROUP BY as plain keys, and the sets of their places that are grouped by; no sets where plain keys were written.

    >>> from uql.compiler.parser import parse
    >>> flattened(parse("SELECT 1 FROM t GROUP BY ROLLUP (a, b)"))[1]
    ((0, 1), (0,), ())
    """
    if not any(isinstance(key.expr, Call) and key.expr.name in KINDS for key in select.group_by):
        return select, ()
    keys: list[GroupKey] = []

    def place(key: GroupKey) -> int:
        index = next((i for i, other in enumerate(keys) if other == key), None)
        if index is None:
            keys.append(key)
        return len(keys) - 1 if index is None else index

    def places(expr: Expr) -> tuple[int, ...]:
        """Of one element: a key, or several in parentheses."""
        parts = expr.args if isinstance(expr, Call) and expr.name == "row" else (expr,)
        return tuple(place(GroupKey(part, span=part.span)) for part in parts)

    def sets_of(expr: Expr) -> list[tuple[int, ...]]:
        if not isinstance(expr, Call) or expr.name not in KINDS:
            return [places(expr)]
        if expr.name == "grouping_sets":
            return [one for arg in expr.args for one in sets_of(arg)]
        elements = [places(arg) for arg in expr.args]
        _check_number(expr, len(elements) + 1 if expr.name == "rollup" else 2 ** min(len(elements), MOST_SETS))
        if expr.name == "rollup":
            chosen = [elements[:n] for n in range(len(elements), -1, -1)]
        else:
            many = range(len(elements), -1, -1)
            chosen = [list(part) for n in many for part in combinations(elements, n)]
        return [tuple(dict.fromkeys(i for element in part for i in element)) for part in chosen]

    each = [
        sets_of(key.expr) if isinstance(key.expr, Call) and key.expr.name in KINDS else [(place(key),)]
        for key in select.group_by
    ]
    _check_number(select.group_by[0], prod(map(len, each)))
    sets = tuple(tuple(dict.fromkeys(i for part in parts for i in part)) for parts in product(*each))
    return replace(select, group_by=tuple(keys)), sets


def _check_number(node: GroupKey | Expr, sets: int) -> None:
    """Raises: BindError (UQL212) where GROUP BY makes more sets than DuckDB takes, before they are made."""
    if sets > MOST_SETS:
        raise BindError(f"GROUP BY makes more than {MOST_SETS:,} grouping sets", code="UQL212", span=node.span)


def apart(select: Select, items: list[ast.SelectItem], scope: Scope) -> tuple[Select, list[ast.SelectItem]]:
    """The keys of grouping sets and the items that they name, each key an expression of its own.

    A set may hold one of two keys of one expression and not the other, as in SELECT film AS a, film AS b … GROUP BY CUBE (a, b). Every
    key but the last becomes coalesce(x), which has the value of x: so another x in SELECT or HAVING means the last one, as in DuckDB.

    Args:
        select: the SELECT with grouping sets.
        items: what it gives.
    """
    keys, items = list(select.group_by), list(items)

    def resolved(node: object) -> object:
        path = scope.find(node.parts, node.span) if isinstance(node, Name) else None
        return path if path is not None else node

    values: dict[tuple[bool, int], object] = {}  # of the items that are keys, and of other keys, by their places
    for index, key in enumerate(keys):
        place = None if _is_column(key.expr, scope) else _place(items, key.expr)
        expr = key.expr if place is None else items[place].expr
        values[place is not None, index if place is None else place] = rewrite(expr, resolved)
    remaining = list(values.values())
    for (is_item, place), value in values.items():
        remaining.remove(value)
        for _ in range(remaining.count(value)):
            if is_item:
                items[place] = replace(_with_name(items[place]), expr=_same_value(items[place].expr))
            else:
                keys[place] = replace(keys[place], expr=_same_value(keys[place].expr))
    return replace(select, group_by=tuple(keys)), items


def _with_name(item: ast.SelectItem) -> ast.SelectItem:
    """A column keeps its name where an expression takes its place."""
    return replace(item, alias=item.expr.parts[-1]) if item.alias is None and isinstance(item.expr, Name) else item


def _same_value(expr: Expr) -> Expr:
    return Call("coalesce", (expr,), span=expr.span)


def _is_column(key: Expr, scope: Scope) -> bool:
    return isinstance(key, Name) and len(key.parts) == 1 and scope.find(key.parts, key.span) is not None


def _place(items: Sequence[ast.SelectItem], key: Expr) -> int | None:
    """The place of the item that a key means by its number or its alias, of several the last; None where it is an expression."""
    if isinstance(key, Number) and key.text.isdigit() and 1 <= int(key.text) <= len(items):
        return int(key.text) - 1
    low = key.parts[0].lower() if isinstance(key, Name) and len(key.parts) == 1 else None
    return max((i for i, item in enumerate(items) if item.alias and item.alias.lower() == low), default=None)


def one_of_each(select: Select) -> Select:
    """DISTINCT ON (k) as QUALIFY: the first row of each k in the order of ORDER BY.

    Raises: BindError (UQL212) where windows come before it: in QUALIFY, in its keys, in ORDER BY.
    """
    if not select.distinct_on:
        return select
    keys = tuple(_distinct_key(select, key) for key in select.distinct_on)
    order = tuple(one for key in select.order_by for one in _items(select, key))
    span = select.distinct_on[0].span
    parts = (*keys, *(key.expr for key in order))
    windows = any(isinstance(node, Call) and node.over is not None for part in parts for node in walk(part))
    if windows or select.qualify is not None:
        raise BindError(
            f"DISTINCT ON comes after {'window functions' if windows else 'QUALIFY'} and cannot stand in one SELECT with them here",
            code="UQL212",
            span=span,
            help="take it around them: SELECT DISTINCT ON (k) … FROM (SELECT …, row_number() OVER (…) AS k FROM …)",
        )
    first = Call("system.main.row_number", over=ast.Window(keys, order), span=span)
    return replace(select, distinct_on=(), qualify=ast.Binary("=", first, Number("1"), span=span))


def _distinct_key(select: Select, key: Expr) -> Expr:
    """A key of DISTINCT ON. A text says which rows are one thing; one that SELECT or ORDER BY has too means its value."""
    if not isinstance(key, ast.Quoted):
        return _item(select, key)
    name = Name((key.text,), span=key.span)
    expr = name if key.forced or key.using or not key.text else _item(select, name)
    if expr is not name:
        return expr
    if key in [item.expr for item in select.items] or key in [other.expr for other in select.order_by]:
        return key
    return ast.SameThing(key, only_key=len(select.distinct_on) == 1, span=key.span)


def _items(select: Select, key: ast.OrderKey) -> list[ast.OrderKey]:
    """A key of ORDER BY as keys over rows: ALL is every item."""
    if is_all(key.expr) and not any(isinstance(item.expr, ast.Star) for item in select.items):
        return [replace(key, expr=item.expr) for item in select.items]
    if isinstance(key.expr, ast.Binary) and key.expr.op == "COLLATE":
        return [replace(key, expr=replace(key.expr, left=_item(select, key.expr.left)))]
    return [replace(key, expr=_item(select, key.expr))]


def _item(select: Select, expr: Expr) -> Expr:
    """What 1, 2 … and the names given in SELECT stand for in DISTINCT ON and ORDER BY."""
    place = _place(select.items, expr)
    return expr if place is None else select.items[place].expr


def items_of_lists(select: Select) -> Select:
    """Keys of GROUP BY that name an item unnest(list), with the list taken apart in a sub-query below: a row for each of its items.

    Where a text is in the list, WHERE is put below too, so that it is asked of no row that is dropped. Raises: BindError (UQL212).
    """
    places = {place for key in select.group_by if (place := _unnested(select, key.expr)) is not None}
    if not places or select.source is None:
        return select
    call = select.items[min(places)].expr
    if isinstance(select.source, ast.Join):
        raise BindError(
            "GROUP BY the items of a list takes one table after FROM",
            code="UQL212",
            span=call.span,
            help="unnest the list in FROM: FROM t JOIN …, unnest(t.list) AS u(item)",
        )
    items, below = list(select.items), [ast.SelectItem(ast.Star())]
    for place in sorted(places):
        item, name = items[place], f"__item{place}"
        below.append(replace(item, alias=name))
        alias = item.alias if item.alias is not None else unparse(item.expr)
        items[place] = replace(item, expr=Name((name,), span=item.expr.span), alias=alias)
    inside = any(isinstance(node, ast.Quoted) for place in places for node in walk(select.items[place].expr))
    query = Select(tuple(below), select.source, where=select.where if inside else None, span=call.span)
    source = select.source
    source_name = (
        source.parts[-1] if isinstance(source, ast.TableName) and source.alias is None and not source.file else None
    )
    source_name = source_name or getattr(source, "alias", None)
    return replace(
        select,
        items=tuple(items),
        source=ast.Derived(query, source_name, span=source.span),
        where=None if inside else select.where,
    )


def _unnested(select: Select, key: Expr) -> int | None:
    """The place of the item unnest(list) that a key names by its alias or its number."""
    place = _place(select.items, key)
    expr = key if place is None else select.items[place].expr
    if not isinstance(expr, Call) or expr.name != "unnest":
        return None
    low = key.parts[0].lower() if isinstance(key, Name) else None
    hides = any(isinstance(node, Name) and node.parts[-1].lower() == low for node in walk(expr))
    return None if hides else place


def with_named_groups_last(query: BoundSelect) -> BoundSelect:
    """The query with what its WHERE asks of groups that a model names in HAVING: `"the topic" IS NOT NULL GROUP BY "the topic"`.

    The groups are named from the rows that WHERE leaves, and a term on a key alone chooses the same rows behind them.

    Raises: BindError (UQL212) where such a term is asked of more, or there are several sets of keys.
    """
    named = {v.id for key in query.group_by for v in virtuals(key.expr) if v.names_groups}
    if not named:
        return query
    before, after = list[Expr](), list[Expr]()
    for term in conjuncts(query.where):
        alone = not query.sets and not any(isinstance(node, Column | Query) for node in walk(term, queries=True))
        own = alone and any(virtuals(term)) and all(v.id in named for v in virtuals(term))
        (after if own else before).append(term)
    for term in (*before, *join_conditions(query.source)):
        if any(v.id in named for v in virtuals(term)):
            raise BindError(
                "the groups of this text are named when WHERE has chosen their rows, so WHERE cannot ask for them",
                code="UQL212",
                help='"…"::VARCHAR asks each row for words of its own; a condition on the groups alone is HAVING',
                span=term.span,
            )
    if not after:
        return query
    having = conjunction(conjuncts(query.having) + after)
    return replace(query, where=conjunction(before), having=having)
