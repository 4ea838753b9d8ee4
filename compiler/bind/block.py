"""One query block: its clauses bound in order, its texts settled, its types asked of DuckDB. And UNION, CTE, sub-queries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from uql.base.errors import BindError, UnknownColumnError
from uql.base.names import suggestion
from uql.base.schema import Field
from uql.compiler import syntax as ast
from uql.compiler.bind import uses
from uql.compiler.bind.expressions import Clause, Expressions
from uql.compiler.bind.fields import output_fields
from uql.compiler.bind.grouping import apart, flattened, items_of_lists, one_of_each, with_named_groups_last
from uql.compiler.bind.limits import by_share, counted, is_all
from uql.compiler.bind.parameters import type_name
from uql.compiler.bind.reading import video_search
from uql.compiler.bind.scope import Scope
from uql.compiler.bind.sources import Common, Sources, forced_modalities, renamed
from uql.compiler.bind.stars import starred, with_columns, with_fields
from uql.compiler.bind.statement import Statement
from uql.compiler.bind.uses import CONDITION, Pending
from uql.compiler.bound import Bound, BoundDerived, BoundItem, BoundQuery, BoundSelect, BoundSource, BoundUnion
from uql.compiler.sql import expression, is_literal
from uql.compiler.subqueries import with_leaves
from uql.compiler.syntax import Column, Expr, GroupKey, Name, Number, OrderKey, Query, Quoted, Select, SelectItem, Union
from uql.compiler.virtual import Moment, Virtual, VirtualColumn
from uql.compiler.walk import rewrite, walk

WHERE = Clause("WHERE", before=True, term=True)
GROUP = Clause("GROUP BY", before=True)


class Blocks:
    """Binds queries; common tables are visible to those that follow them and to all inside."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement

    def query(self, query: Query, outer: Scope | None, commons: dict[str, Common]) -> tuple[BoundQuery, bool]:
        """The bound query, and whether it reads columns of the query around it.

        Args:
            query: as the parser gave it.
            outer: what the query around it can name; None: nothing.
            commons: the tables of WITH that it can name.
        Raises: BindError and UnknownColumnError, at the place in the text.
        """
        if isinstance(query, Select | Union):
            query = by_share(query) if query.percent else query
            ctes = self._commons(query, commons)
            query = self._counted(query, ctes)
            if isinstance(query, Select):
                return _Block(self, query, outer, ctes).bind()
            return self._union(query, outer, ctes)
        raise BindError("this is not a query", code="UQL212", span=query.span)

    def _counted(self, query: Select | Union, ctes: dict[str, Common]) -> Select | Union:
        """The query with numbers for the sub-queries of its LIMIT and OFFSET."""
        if query.limit is None and query.offset is None:
            return query

        def bind(inner: Query) -> tuple[BoundQuery, bool]:
            return self.query(inner, None, ctes)

        limit = counted(query.limit, "LIMIT", self.statement, bind)
        return replace(query, limit=limit, offset=counted(query.offset, "OFFSET", self.statement, bind))

    def _commons(self, query: Select | Union, commons: dict[str, Common]) -> dict[str, Common]:
        ctes, own = dict(commons), set()
        for common in query.ctes:
            low = common.name.lower()
            if low in own:
                raise BindError(f"WITH gives {common.name} twice", code="UQL204", span=common.span)
            own.add(low)
            before = self.statement.copies
            bound, _ = self.query(common.query, None, ctes)
            fields = output_fields(bound)
            fields = renamed(fields, common.columns, common.name, common.span)
            ctes[low] = Common(bound, fields, 1 + self.statement.copies - before)
        return ctes

    def _union(self, query: Union, outer: Scope | None, commons: dict[str, Common]) -> tuple[BoundQuery, bool]:
        links = [query]
        node: Query = query.left
        while isinstance(node, Union) and not (node.order_by or node.limit or node.offset or node.ctes):
            links.append(node)
            node = node.left
        left, correlated = self.query(node, outer, commons)
        for link in reversed(links):
            right, also = self.query(link.right, outer, commons)
            correlated = correlated or also
            left = self._pair(link, left, right)
        return left, correlated

    def _by_name(self, left: BoundQuery, right: BoundQuery, span: ast.Span) -> tuple[BoundQuery, BoundQuery]:
        """Both sides with the columns of either, in the order of the left one; a column that a side lacks is NULL there."""
        for side in (left, right):
            twice = [i.name for i in side.items if sum(i.name.lower() == j.name.lower() for j in side.items) > 1]
            if twice:
                help = f"give each column a name of its own: {twice[0]} AS {twice[0]}2"
                message = f"BY NAME: two columns are called {twice[0]}"
                raise BindError(message, code="UQL211", span=span, help=help)
        names: dict[str, str] = {}
        for item in (*left.items, *right.items):
            names.setdefault(item.name.lower(), item.name)
        sides = []
        for side in (left, right):
            fields = {f.name.lower(): f for f in output_fields(side)}
            items = tuple(
                BoundItem(Column("side", f.name), name, f.type)
                if (f := fields.get(name.lower())) is not None
                else BoundItem(ast.Null(), name, "NULL")
                for name in names.values()
            )
            sides.append(BoundSelect(items, BoundDerived(side, "side", tuple(fields.values()))))
        return sides[0], sides[1]

    def _pair(self, query: Union, left: BoundQuery, right: BoundQuery) -> BoundUnion:
        if query.by_name:
            left, right = self._by_name(left, right, query.span)
        if len(left.items) != len(right.items):
            raise BindError(
                f"the sides of {query.op} have {len(left.items)} and {len(right.items)} columns",
                code="UQL211",
                span=query.span,
            )
        self._typed_by_the_other(output_fields(left), output_fields(right))
        types = self.statement.types.union(
            [(item.name, item.type) for item in left.items],
            [(item.name, item.type) for item in right.items],
            query.span,
        )
        items = tuple(replace(item, type=type) for item, type in zip(left.items, types, strict=True))
        keys: list[OrderKey] = []
        for key in query.order_by:
            if is_all(key.expr) and all(item.name.lower() != "all" for item in items):
                keys += [replace(key, expr=_output(items, place, key.span)) for place in range(len(items))]
            else:
                keys.append(self._union_key(key, items))
        return BoundUnion(
            items,
            left,
            right,
            query.all,
            tuple(keys),
            self.whole(query.limit, "LIMIT"),
            self.whole(query.offset, "OFFSET") or 0,
            query.op,
        )

    def _typed_by_the_other(self, left: tuple[Field, ...], right: tuple[Field, ...]) -> None:
        """A text without a type has the type of what stands in its column on the other side, where that is no word."""
        for one, other in [*zip(left, right, strict=True), *zip(right, left, strict=True)]:
            if uses.is_number_or_time(other.type) or other.type == "BOOLEAN":
                type = "DOUBLE" if uses.is_numeric(other.type) else other.type
                self.statement.type_by_name(self.statement.open_texts(one), type)

    def _union_key(self, key: OrderKey, items: tuple[BoundItem, ...]) -> OrderKey:
        expr, names = key.expr, [item.name for item in items]
        if isinstance(expr, Number | ast.Position):
            return replace(key, expr=_output(items, ordinal(expr, len(items), "ORDER BY"), expr.span))
        key_name = expr.text if isinstance(expr, Quoted) else expr.parts[-1] if isinstance(expr, Name) else None
        if key_name is not None:
            name = next((n for n in names if n == key_name), None)
            name = name or next((n for n in names if n.lower() == key_name.lower()), None)
            if name is not None:
                if isinstance(expr, Quoted):
                    self.statement.read(expr.span, expr.text, "column", name)
                return replace(key, expr=Column("", name, span=expr.span))
        raise UnknownColumnError(
            "ORDER BY after UNION, INTERSECT or EXCEPT takes a column of its result",
            span=expr.span,
            help=suggestion(key_name or "", names) + f"columns: {', '.join(names)}",
        )

    def whole(self, expr: Expr | None, clause: str) -> int | None:
        """LIMIT and OFFSET: a constant whole number from 0 on. Raises: BindError (UQL208)."""
        if expr is None:
            return None
        value: object = None
        if isinstance(expr, Number) and expr.text.isdigit():
            value = int(expr.text)
        elif not any(isinstance(node, Name | Quoted | Query | Column) for node in walk(expr)):
            types = self.statement.types
            try:
                value = self.statement.catalog.value(f"SELECT {expression(expr)}")
            except types.error:
                value = None
        text = self.statement.text[expr.span.start : expr.span.end] if expr.span.start >= 0 else ""
        number: int | None = None
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and value == int(value):
            number = int(value)
        elif value is not None and not isinstance(value, str) and str(value).isdigit():
            number = int(str(value))
        if number is None or number >= 2**63:
            raise BindError(
                f"{clause} {text or value} is not a number of rows",
                code="UQL208",
                span=expr.span,
                help=f"{clause} takes a whole number from 0 on",
            )
        return number


class _Block:
    """Binds one SELECT."""

    def __init__(self, blocks: Blocks, select: Select, outer: Scope | None, commons: dict[str, Common]) -> None:
        select, self.sets = flattened(one_of_each(items_of_lists(select)))
        self.blocks, self.statement, self.select, self.commons = blocks, blocks.statement, select, commons
        self.scope = Scope(outer=outer)
        self.binder = Expressions(self.statement, self.scope, self._sub)
        self.columns: list[VirtualColumn] = []
        self.searches: dict[VirtualColumn, Column] = {}  # conditions on videos
        self.tests: dict[int, Expr] = {}  # of the texts that stand as labels, by the number of their use
        # texts of ORDER BY that are a SELECT item or key: readings to be noted
        self.later: list[tuple[Quoted, int]] = []

    def _sub(self, query: Query, scope: Scope) -> Bound:
        bound, correlated = self.blocks.query(query, scope, self.commons)
        return Bound(bound, correlated, span=query.span)

    def _derived(self, derived: ast.Derived) -> tuple[BoundQuery, tuple[Field, ...]]:
        bound, correlated = self.blocks.query(derived.query, self.scope.outer, self.commons)
        self.scope.correlated = self.scope.correlated or correlated
        return bound, output_fields(bound, self.scope.outer)

    # ------------------------------------------------------------------------------------------------------- clauses
    def bind(self) -> tuple[BoundSelect, bool]:
        select, binder = self.select, self.binder
        source = self._source()
        aggregated = self._is_aggregated()
        items = self._expanded_items()
        if self.sets:
            self.select, items = apart(select, items, self.scope)
        self._aliases(items)
        where = binder.bind(select.where, WHERE, CONDITION) if select.where is not None else None
        after = Clause("SELECT", group=aggregated, group_aliases=True)
        keys = self._keys(items)
        made_of = [(key, expr) for key, expr in keys if not isinstance(expr, Pending)]
        binder.keys = [(self._written(k.expr), e) for k, e in made_of if uses.is_pending(e)]
        bound: list[Expr] = []
        for index, item in enumerate(items):
            bound.append(self._label(binder.bind(item.expr, replace(after, select_aliases=index), uses.ANY)))
        having = None
        if select.having is not None:
            having = binder.bind(select.having, replace(after, name="HAVING"), CONDITION)
        qualify = None
        if select.qualify is not None:
            qualify = binder.bind(select.qualify, replace(after, name="QUALIFY"), CONDITION)
        order: list[OrderKey] = []
        for key in select.order_by:
            if self._is_all(key.expr):
                order += [replace(key, expr=expr) for expr in bound]
            else:
                order.append(self._order(key, items, bound, keys, after))
        names = [self._item_name(item, expr) for item, expr in zip(items, bound, strict=True)]
        self.columns = uses.settle(
            binder.uses,
            self.statement.types.widest,
            self.statement.conditions,
            self.statement.widths,
            self.statement.types_by_name,
        )
        uses.check_statements(binder.uses, self.columns, self.statement.warnings)
        videos = {c: video_search(c, self.scope) for c in dict.fromkeys(self.columns)}
        self.searches = {column: video for column, video in videos.items() if video is not None}
        if self.searches:
            self.statement.catalog.offer_parts()
        self.statement.needed |= {use.text for use in binder.uses if use.want is CONDITION}
        self.statement.open |= uses.open_texts(binder.uses)
        for text, needed in uses.typed_texts(binder.uses).items():
            self.statement.typed.setdefault(text, set()).update(needed)
        outputs = tuple(
            BoundItem(self._settled(expr), name, "VARCHAR") for expr, name in zip(bound, names, strict=True)
        )
        query = BoundSelect(
            items=outputs,
            source=None if source is None else with_leaves(source, lambda leaf: leaf, self._settled),
            where=self._settled(where),
            group_by=tuple(self._group_item(key, expr) for key, expr in keys),
            having=self._settled(having),
            order_by=tuple(replace(key, expr=self._settled(key.expr)) for key in order),
            limit=self.blocks.whole(select.limit, "LIMIT"),
            offset=self.blocks.whole(select.offset, "OFFSET") or 0,
            distinct=select.distinct,
            aggregated=aggregated,
            virtuals=tuple(sorted(set(self.columns), key=lambda v: v.id)),
            qualify=self._settled(qualify),
            sets=self.sets,
        )
        query = with_named_groups_last(query)
        self._note_readings()
        types = self.statement.types.select(query, self.scope)
        query = replace(
            query, items=tuple(replace(item, type=type) for item, type in zip(query.items, types, strict=True))
        )
        return query, self.scope.correlated

    def _source(self) -> BoundSource | None:
        if self.select.source is None:
            return None
        sources = Sources(self.statement, self.binder, self.commons, self._derived, forced_modalities(self.select))
        part = sources.bind(self.select.source, self.scope.outer)
        self.scope.relations.extend(part.relations)
        self.scope.merged.extend(part.merged)
        return part.source

    def _is_aggregated(self) -> bool:
        select = self.select
        if select.group_by or select.having is not None:
            return True
        parts: list[Any] = [*(item.expr for item in select.items), *(key.expr for key in select.order_by)]
        parts += [select.qualify] if select.qualify is not None else []
        return any(isinstance(n, ast.Call) and self.binder.is_aggregate(n) for part in parts for n in walk(part))

    def _expanded_items(self) -> list[SelectItem]:
        """The SELECT items with stars, COLUMNS(…) and structs in unnest(…) replaced by the columns they stand for."""
        items: list[SelectItem] = []
        for item in self.select.items:
            if isinstance(item.expr, ast.Star):
                items += starred(item.expr, self.scope)
            elif (fields := with_fields(item, self.scope)) is not None:
                items += fields
            else:
                items += with_columns(item, self.scope, self.statement)
        return items

    def _aliases(self, items: list[SelectItem]) -> None:
        aliases = self.binder.aliases
        for index, item in enumerate(items):
            if item.alias is not None:
                aliases.select[item.alias.lower()] = (index, item.expr)  # the last one of a name, as in DuckDB
                aliases.spelled.append(item.alias)
        for key in self.select.group_by:
            if key.alias is not None:
                aliases.group[key.alias.lower()] = key
                aliases.spelled.append(key.alias)

    def _keys(self, items: list[SelectItem]) -> list[tuple[GroupKey, Expr]]:
        """The group keys: ordinals and ALL stand for SELECT items, texts are settled as group keys."""
        keys: list[tuple[GroupKey, Expr]] = []
        for key in self.select.group_by:
            expr = key.expr
            if isinstance(expr, ast.Unary) and is_literal(expr):
                ordinal(expr, len(items), "GROUP BY")
            if isinstance(expr, Number) and "." not in expr.text:
                item = items[ordinal(expr, len(items), "GROUP BY")]
                keys.append((replace(key, expr=item.expr, alias=key.alias or item.alias), self._key(item.expr, key)))
            elif self._is_all(expr):
                keys += self._all_keys(items, key)
            else:
                keys.append((key, self._key(expr, key)))
        return keys

    def _all_keys(self, items: list[SelectItem], key: GroupKey) -> list[tuple[GroupKey, Expr]]:
        """The items that GROUP BY ALL groups by: those without aggregates. Constants make no groups beside an aggregate, as in DuckDB."""
        plain = [item for index, item in enumerate(items) if not self._holds_aggregate(item.expr, items, index)]
        keys = [(GroupKey(item.expr, item.alias, span=key.span), self._key(item.expr, key)) for item in plain]
        of_rows = [pair for pair in keys if any(_reads_rows(node) for node in walk(pair[1], queries=True))]
        return of_rows if len(plain) < len(items) else keys

    def _holds_aggregate(self, expr: Expr, items: list[SelectItem], before: int) -> bool:
        """Is there an aggregate in it, or in an item before it that it names by its alias?"""
        for node in walk(expr):
            if isinstance(node, ast.Call) and self.binder.is_aggregate(node):
                return True
            if isinstance(node, Name) and len(node.parts) == 1 and self.scope.find(node.parts, node.span) is None:
                place, meant = self.binder.aliases.select.get(node.parts[0].lower(), (before, node))
                if place < before and self._holds_aggregate(meant, items, place):
                    return True
        return False

    def _written(self, expr: Expr) -> Expr:
        """The expression that a key of GROUP BY names, where it is the alias of an item."""
        if not isinstance(expr, Name) or len(expr.parts) != 1 or self.scope.find(expr.parts, expr.span) is not None:
            return expr
        return self.binder.aliases.select.get(expr.parts[0].lower(), (0, expr))[1]

    def _key(self, expr: Expr, key: GroupKey) -> Expr:
        bound = self._label(self.binder.bind(expr, GROUP, self.binder.group_want(key)))
        if isinstance(bound, Pending):
            self.binder.uses[bound.index] = replace(self.binder.uses[bound.index], is_key=True)
        if (key.into is not None or key.many) and not isinstance(bound, Pending):
            raise BindError(
                f"{'MANY' if key.many else 'INTO'} belongs to a text that makes groups",
                code="UQL212",
                span=expr.span,
                help='as in GROUP BY "the topic" INTO 5',
            )
        if key.into is not None and key.into < 1:
            raise BindError(
                f"INTO {key.into} is not a number of groups",
                code="UQL208",
                span=key.span,
                help="INTO takes a whole number from 1 on",
            )
        return bound

    def _is_all(self, expr: Expr) -> bool:
        if not is_all(expr) or "all" in self.binder.aliases.select:
            return False
        return self.scope.find(("all",), expr.span) is None

    def _order(
        self,
        key: OrderKey,
        items: list[SelectItem],
        bound: list[Expr],
        keys: list[tuple[GroupKey, Expr]],
        after: Clause,
    ) -> OrderKey:
        expr = key.expr
        if isinstance(expr, Number | ast.Position):
            return replace(key, expr=bound[ordinal(expr, len(items), "ORDER BY")])
        if isinstance(expr, ast.Binary) and expr.op == "COLLATE" and not isinstance(expr.left, Quoted):
            whole = self._order(replace(key, expr=expr.left), items, bound, keys, after)
            return replace(whole, expr=replace(expr, left=whole.expr))
        if is_literal(expr):
            raise orders_nothing(expr, len(items))
        name = expr.text if isinstance(expr, Quoted) and not expr.forced else None
        if isinstance(expr, Name) and len(expr.parts) == 1:
            name = expr.parts[0]
        if name is not None:
            index, _ = self.binder.aliases.select.get(name.lower(), (None, None))
            if index is not None:
                if isinstance(expr, Quoted):
                    alias = items[index].alias
                    self.statement.read(expr.span, expr.text, "column", f"the name {alias} given in SELECT")
                return replace(key, expr=bound[index])
        if isinstance(expr, Quoted):
            same = [b for i, b in zip(items, bound, strict=True) if _text_of(i.expr) == expr.text]
            same += [b for k, b in keys if _text_of(k.expr) == expr.text]
            for candidate in same:
                if isinstance(candidate, Pending):
                    self.later.append((expr, candidate.index))
                    return replace(key, expr=candidate)
        return self.binder.order_key(key, replace(after, name="ORDER BY"))

    # ------------------------------------------------------------------------------------------------------- results
    def _item_name(self, item: SelectItem, bound: Expr) -> str:
        """AS; else the column's name; else the item as written."""
        if item.alias is not None:
            return item.alias
        if isinstance(item.expr, Column):
            return item.expr.name
        if isinstance(item.expr, Name):
            return self._column_name(bound) or item.expr.parts[-1]
        if isinstance(item.expr, ast.Position) and isinstance(bound, Column):
            return self._column_name(bound) or bound.name
        if isinstance(item.expr, Quoted):
            return self._column_name(bound) or item.expr.text
        if isinstance(item.expr, ast.Cast) and isinstance(item.expr.operand, Quoted | Name):
            return self._item_name(SelectItem(item.expr.operand), bound)
        span = item.expr.span
        if 0 <= span.start < span.end <= len(self.statement.text):
            return " ".join(self.statement.text[span.start : span.end].split())
        from uql.compiler.unparse import unparse

        return unparse(item.expr)

    def _column_name(self, bound: Expr) -> str | None:
        """The name of a column as its table has it, whatever it is called where the table stands in another's rows."""
        of = self.scope.field_of(bound) if isinstance(bound, Column) else None
        return of.name if of is not None else bound.name if isinstance(bound, Column) else None

    def _label(self, expr: Expr) -> Expr:
        """A whole item `"t" IN ('a', 'b')` or `"t" = 'a'` is the label itself."""
        label = _label(expr)
        if not isinstance(label, Pending) or label is expr:
            return label
        want = self.binder.uses[label.index].want
        if want is CONDITION or (isinstance(expr, ast.InQuery) and want.label_query is None):
            return expr  # "it is positive" = 'no', or a number among those of a sub-query
        self.tests[label.index] = expr
        return label

    def _value(self, text: Pending) -> Expr:
        """The virtual column of a text, cast where its place needs another type.

        Where its value is used too, it is extracted: a label is one of those asked for, or none.
        """
        column, want = self.columns[text.index], self.binder.uses[text.index].want
        value = Virtual(column, span=text.span)
        if want.type is not None and uses.cast_in_place(want, column):
            return ast.Cast(value, type_name(want.type, text.span), lenient=True, span=text.span)
        test = self.tests.get(text.index)
        if test is None or not value.column.is_value:
            return value
        holds = rewrite(test, lambda node: value if isinstance(node, Pending) else node)
        other = ast.When(condition=ast.IsNull(operand=value, negated=True), value=ast.String(uses.NONE))
        return ast.Case(
            operand=None, whens=(ast.When(condition=holds, value=value), other), default=None, span=text.span
        )

    def _settled(self, expr: Any) -> Any:
        if expr is None:
            return None

        def change(node: Any) -> Any:
            if isinstance(node, Pending):
                return self._value(node)
            return self._moment(node, node.of) if isinstance(node, Moment) else node

        return rewrite(expr, change)

    def _moment(self, moment: Moment, of: Any) -> Expr:
        """The moment of the one condition on a video that `of`, the name `t` as written, may mean."""
        conditions = [c for c, video in self.searches.items() if of.table in ("", video.table)]
        if not conditions:
            raise self.scope.unknown(tuple(filter(None, (of.table, of.name))), moment.span)
        if len(conditions) > 1:
            one, *_, last = (c.text[:40] for c in conditions)
            raise BindError(
                f'{of.name} is the moment of several conditions, "{one}" and "{last}"',
                code="UQL204",
                span=moment.span,
                help='name one of them in a sub-query: FROM (SELECT *, t FROM … WHERE "…") AS found',
            )
        return replace(moment, of=Virtual(conditions[0], span=moment.span))

    def _group_item(self, key: GroupKey, bound: Expr) -> BoundItem:
        expr = self._settled(bound)
        type = self.statement.types.of(expr, self.scope) or "VARCHAR"
        return BoundItem(expr, self._item_name(SelectItem(key.expr, key.alias), expr), type)

    def _note_readings(self) -> None:
        for use, column in zip(self.binder.uses, self.columns, strict=True):
            self.statement.read(use.span, use.text, "virtual", _explain_column(column))
        for quoted, index in self.later:
            self.statement.read(quoted.span, quoted.text, "virtual", _explain_column(self.columns[index]))


def _reads_rows(node: object) -> bool:
    """Has it another value for each row?"""
    return isinstance(node, Column | Pending) or (isinstance(node, Bound) and node.correlated)


def _explain_column(column: VirtualColumn) -> str:
    """What EXPLAIN says of a virtual column: kind, type, labels, reads."""
    labels = ", ".join(repr(label) for label in column.labels[:8]) + (", …" if len(column.labels) > 8 else "")
    reads = ", ".join(c.label for c in column.inputs)
    of = f" of {labels}" if labels else " of a query's rows" if column.label_query is not None else ""
    return f"{column.operator.noun} {column.type}{of} reads {reads}"


def _label(expr: Expr) -> Expr:
    """A whole item `"t" IN ('a', 'b')` or `"t" = 'a'` is the label itself."""
    match expr:
        case ast.InList(operand=Pending() as text, negated=False, items=items) if all(
            isinstance(i, ast.String) for i in items
        ):
            return replace(text, span=expr.span)
        case ast.InQuery(operand=Pending() as text, negated=False):
            return replace(text, span=expr.span)
        case ast.Binary(op="=", left=Pending() as text, right=ast.String()):
            return replace(text, span=expr.span)
    return expr


def _text_of(expr: Expr) -> str | None:
    """The text of an item that is one text, cast or not."""
    while isinstance(expr, ast.Cast):
        expr = expr.operand
    return expr.text if isinstance(expr, Quoted) else None


def ordinal(number: Number | ast.Position | ast.Unary, count: int, clause: str) -> int:
    """The index of the SELECT item that `1`, `2`, … means. Raises: BindError (UQL208).

    Args:
        number: as written; a negative one is not a place.
        count: SELECT items.
        clause: GROUP BY or ORDER BY, for the message.
    """
    text = "-1" if isinstance(number, ast.Unary) else number.text
    if not text.isdigit() or not 1 <= int(text) <= count:
        raise BindError(
            f"{clause} {text} is not a SELECT item",
            code="UQL208",
            span=number.span,
            help=f"there {'is' if count == 1 else 'are'} {count}: write 1{f' to {count}' if count > 1 else ''}",
        )
    return int(text) - 1


def _output(items: tuple[BoundItem, ...], place: int, span: ast.Span) -> Expr:
    """A column of the output, by its name, or by its place where another one has the same name."""
    name = items[place].name
    if sum(item.name.lower() == name.lower() for item in items) == 1:
        return Column("", name, span=span)
    return ast.Position(str(place + 1), span=span)


def orders_nothing(expr: Expr, count: int) -> BindError:
    """A constant in ORDER BY."""
    help = f"write a column, or the place of an item: 1{f' to {count}' if count > 1 else ''}"
    if isinstance(expr, ast.String):
        help += f'; a text for the model stands in double quotes: "{expr.value[:40]}"'
    message = "ORDER BY a constant orders nothing"
    return BindError(message, code="UQL208", span=expr.span, help=help)
