"""FROM: tables, files, frames, table functions, sub-queries, common tables and joins, with the names they bring into scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from uql.base.errors import BindError, UnknownColumnError, UQLError
from uql.base.names import free_names, suggestion
from uql.base.schema import Field, Modality, Table
from uql.base.sql_text import quote
from uql.compiler import syntax as ast
from uql.compiler.bind import lateral
from uql.compiler.bind.expressions import MODALITIES, Clause, Expressions
from uql.compiler.bind.fields import output_fields
from uql.compiler.bind.lateral import columns_of, list_of, parts_call, put
from uql.compiler.bind.lateral_groups import by_group
from uql.compiler.bind.scope import Merged, Part, Relation, Scope
from uql.compiler.bind.statement import Statement
from uql.compiler.bind.uses import CONDITION, is_pending
from uql.compiler.bound import BoundDerived, BoundItem, BoundJoin, BoundQuery, BoundSelect, BoundTable
from uql.compiler.formula import conjunction
from uql.compiler.joins import asks
from uql.compiler.sql import expression
from uql.compiler.subqueries import outer_columns
from uql.compiler.syntax import Binary, Call, Column, Derived, Expr, Join, Name, Quoted, Span, TableFunction
from uql.compiler.walk import rewrite, walk

JOIN = Clause("ON", before=True)


@dataclass(frozen=True, slots=True)
class Common:
    """A common table: its query, bound once, the fields it gives, and how many common tables are copied into it, itself counted."""

    query: BoundQuery
    fields: tuple[Field, ...]
    copies: int = 1


class Sources:
    """Binds the FROM clause of one block into its scope."""

    def __init__(
        self,
        statement: Statement,
        expressions: Expressions,
        commons: dict[str, Common],
        derived: Callable[[Derived], tuple[BoundQuery, tuple[Field, ...]]],
        forced: dict[str, Modality],
    ) -> None:
        self.statement, self.expressions, self.commons = statement, expressions, commons
        self.derived, self.forced = derived, forced
        self.used_aliases: set[str] = set()

    def bind(self, source: ast.Source, outer: Scope | None) -> Part:
        match source:
            case ast.TableName():
                return self._table(source)
            case TableFunction():
                items = list_of(source, outer) if outer is not None else None
                if items is not None:
                    return self.bind(lateral.list_table(source, items), outer)
                parts = parts_call(source.call)
                return self._function(source) if parts is None else self._parts(source, parts, None)
            case Derived():
                return self._named(source, *self.derived(source))
            case Join():
                return self._join(source, outer)
            case lateral.BoundPart():
                return source.part
        raise BindError(f"{type(source).__name__} cannot stand after FROM", code="UQL212", span=source.span)

    def _alias(self, alias: str, span: Span, free: bool = False) -> str:
        """An alias no other table of the block has; `free` ones are numbered, given ones refused."""
        name, number = alias, 1
        while name.lower() in self.used_aliases:
            if not free:
                raise BindError(
                    f"two tables of this query are called {alias}",
                    code="UQL204",
                    span=span,
                    help=f"give one another name: {alias} AS {alias[:1] or 't'}2",
                )
            number += 1
            name = f"{alias}_{number}"
        self.used_aliases.add(name.lower())
        return name

    def _table(self, source: ast.TableName) -> Part:
        if len(source.parts) == 1 and not source.file:
            common = self.commons.get(source.parts[0].lower())
            if common is not None:
                self.statement.copy(common.copies, source.span)
                alias = source.alias or source.parts[0]
                if source.sample:
                    raise BindError(
                        f"{source.parts[0]} is a common table: TABLESAMPLE takes a table of the database",
                        code="UQL212",
                        span=source.span,
                        help="write TABLESAMPLE inside WITH, behind the table that is sampled",
                    )
                fields = renamed(common.fields, source.columns, alias, source.span)
                self.statement.commons.append((common.query, source))
                return self._derived(common.query, fields, alias, source.span, False)
        try:
            table = self.statement.catalog.table(
                source.parts, frames=self.statement.frames, file=source.file, plain=self.statement.plain
            )
        except UQLError as error:
            error.located(source.span)
            if error.code == "UQL201" and self.commons:
                error.help = suggestion(source.parts[0], self.commons) + (error.help or "")
            raise
        if source.sample:
            if "REPEATABLE" not in source.sample:
                self.statement.warn(
                    "a sample without a seed has other rows at each run, which are paid for anew: "
                    f"TABLESAMPLE {source.sample if '(' in source.sample else f'reservoir({source.sample})'} REPEATABLE (1) has the same"
                )
            sampled = f"(SELECT * FROM {table.sql} TABLESAMPLE {source.sample})"
            table = replace(table, sql=sampled)
        table = self.statement.register_table(table)
        fields = tuple(self._forced(f) for f in table.fields)
        if fields != table.fields:
            table = replace(table, fields=fields)
            self.statement.tables[table.sql] = table
        stem = source.parts[-1].replace("\\", "/").rsplit("/", 1)[-1].split(".")[0] if source.file else source.parts[-1]
        alias = self._alias(source.alias or stem or "file", source.span)
        return _part(table, alias, source.columns, source.span)

    def _forced(self, f: Field) -> Field:
        kind = self.forced.get(f.name.lower())
        return replace(f, modality=kind) if kind is not None else f

    def _function(self, source: TableFunction) -> Part:
        call = self._constant_call(source.call)
        sql = expression(call)
        if source.call.name == "values":
            rows = [row.args for row in call.args if isinstance(row, Call)]
            if len({len(row) for row in rows}) != 1:
                raise BindError("the rows of VALUES differ in length", code="UQL211", span=source.span)
            sql = f"(VALUES {', '.join('(' + ', '.join(expression(v) for v in row) + ')' for row in rows)})"
        catalog, also = self.statement.catalog, None
        try:
            table = catalog.function_table(source.call.name, sql)
            if source.alias and not source.columns and source.call.name in lateral.LISTS:
                ((name, _), *_) = catalog.describe(f"SELECT * FROM {sql} AS {quote(source.alias)}")
                first = table.fields[0].name
                if name != first:  # the items of range(3) AS r are called r
                    both = f"(SELECT #1 AS {quote(name)}, #1 AS {quote(first)} FROM {sql})"
                    table = catalog.function_table(source.call.name, both)
                    also = table.fields[1]
        except UQLError as error:
            error.located(source.span)
            raise
        table = self.statement.register_table(table)
        alias = self._alias(source.alias or source.call.name, source.span, free=source.alias is None)
        part = _part(table, alias, source.columns, source.span)
        if also is not None:
            part.relations = [Relation(alias, table.fields[:1], also=also)]
        return part

    def _constant_call(self, call: Call) -> Call:
        """The arguments of a table function: constants, and name = constant."""
        none = Scope()
        binder = Expressions(self.statement, none, self.expressions.sub)
        args: list[Expr] = []
        for text in (node for node in walk(call) if isinstance(node, Quoted)):
            message = f"a text for the model cannot stand in {call.name}(…) of FROM"
            way = f"a file, or another constant, stands in single quotes: {call.name}('{text.text}')"
            raise BindError(message, code="UQL212", span=text.span, help=way)
        try:
            for arg in call.args:
                if (
                    isinstance(arg, Binary)
                    and arg.op == "="
                    and isinstance(arg.left, Name)
                    and len(arg.left.parts) == 1
                ):
                    args.append(replace(arg, right=binder.bind(arg.right, Clause("FROM"))))
                else:
                    args.append(binder.bind(arg, Clause("FROM")))
        except UnknownColumnError as error:  # of a table beside it
            own = lateral.own_function(call.name)
            if call.name == "unnest":
                takes = "constants and columns of a table before it: FROM t, unnest(t.list) AS u(item)"
            else:
                takes = (
                    f"constants; with columns it stands in a view: CREATE VIEW v AS SELECT … FROM t, {call.name}(t.x)"
                )
            error.help = own or f"{call.name}(…) in FROM takes {takes}"
            raise
        return replace(call, args=tuple(args))

    def _unknown_argument(self, source: ast.Source, left: Part, error: UnknownColumnError) -> UnknownColumnError:
        """The error of a function that names no column of the tables before it, with the nearest one."""
        named = walk(source.call) if isinstance(source, TableFunction) else ()
        name = next((n for n in named if isinstance(n, Name) and n.span.start == error.start), None)
        scope = _names(left)
        return error if name is None or scope.find(name.parts, name.span) else scope.unknown(name.parts, name.span)

    def _named(self, source: Derived, query: BoundQuery, fields: tuple[Field, ...]) -> Part:
        fields = renamed(fields, source.columns, source.alias or "the sub-query", source.span)
        return self._derived(query, fields, source.alias or "subquery", source.span, source.alias is None)

    def _derived(self, query: BoundQuery, fields: tuple[Field, ...], alias: str, span: Span, free: bool) -> Part:
        name = self._alias(alias, span, free)
        fields = tuple(self._forced(f) for f in fields)
        return Part(BoundDerived(query, name, fields), [Relation(name, fields)])

    # ---------------------------------------------------------------------------------------------------------- joins
    def _join(self, join: Join, outer: Scope | None) -> Part:
        aliases_before = set(self.used_aliases)
        left = self.bind(join.left, outer)
        if isinstance(join.right, TableFunction):
            items = list_of(join.right, _names(left))
            if items is not None:
                return self._unnested(join, join.right, items, left)
            read = list(columns_of(join.right.call, _names(left)))
            if join.right.call.name == "values" and read:
                function, items, n = lateral.values_as_list(join.right)
                fields = tuple(Field(f"col{i}", "") for i in range(n))
                fields = renamed(fields, function.columns, function.alias or "", function.span)
                return self._lateral(join, function, items, left, read, fields)
        if isinstance(join.right, Derived):
            beside = Scope(left.relations, left.merged, outer, lateral=True)
            query = self.expressions.sub(join.right.query, beside).query
            around = self.expressions.scope
            around.correlated = around.correlated or beside.correlated
            fields = output_fields(query, beside)
            read = [c for c in outer_columns(query) if c.table in _aliases(left)]
            if read:
                fields = renamed(fields, join.right.columns, join.right.alias or "the sub-query", join.right.span)
                return self._lateral_query(
                    join, replace(join.right, alias=join.right.alias or "subquery"), left, read, query, fields
                )
            right = self._named(join.right, query, fields)
        else:
            try:
                right = self.bind(join.right, outer)
            except UnknownColumnError as error:
                turned = lateral.from_the_left(join)
                if turned is None:
                    raise self._unknown_argument(join.right, left, error) from None
                self.used_aliases = aliases_before
                return self._join(turned, outer)
        scope = Scope([*left.relations, *right.relations], [*left.merged, *right.merged], outer)
        on: Expr | None = None
        merged = [*left.merged, *right.merged]
        if join.natural:
            join = replace(join, using=_shared(left, right, join))
        if join.using:
            on, new = self._using(join, left, right)
            names = {m.name.lower() for m in new}
            merged = [m for m in merged if m.name.lower() not in names] + new
        elif join.on is not None:
            binder = self.expressions
            before, binder.scope = binder.scope, scope
            try:
                on = binder.bind(join.on, JOIN, CONDITION)
            finally:
                binder.scope = before
            if scope.correlated:
                before.correlated = True
        elif join.kind not in ("CROSS", "POSITIONAL"):
            raise BindError(
                f"{join.kind} JOIN needs a condition",
                code="UQL212",
                span=join.span,
                help='write ON a.x = b.x, ON "… {a.x} … {b.y} …" or USING (x)',
            )
        source = BoundJoin(join.kind, left.source, right.source, on)
        if join.kind.startswith(("ASOF", "POSITIONAL")) and asks(source, is_pending):
            kind = join.kind.split()[0]
            raise BindError(
                f"a text stands in the ON of {'a' if kind == 'POSITIONAL' else 'an'} {kind} JOIN, or of a join beside it",
                code="UQL212",
                span=join.span,
                help=f'write it into WHERE, or ask it in a sub-query: FROM a {kind} JOIN (SELECT … WHERE "…") b',
            )
        if join.kind in ("SEMI", "ANTI"):
            return Part(source, left.relations, left.merged)
        return Part(source, [*left.relations, *right.relations], merged)

    def _unnested(self, join: Join, function: TableFunction, items: Expr, left: Part) -> Part:
        """A row of a table for each item of its list, beside what stands before it."""
        parts = parts_call(function.call)
        if parts is not None:
            self.statement.catalog.offer_parts()
        left, of, query, fields, inside = self._listed(join, function, items, left, columns_of(items, _names(left)))
        if parts is not None:
            files = set(columns_of(items, _names(left)))
            beside = [
                replace(r, fields=tuple(replace(f, by_name=True) if r.column(f) in files else f for f in r.fields))
                for r in left.relations
            ]
            inner = Part(BoundDerived(query, of, fields), [Relation(of, fields)])
            return _beside(replace(left, relations=beside), self._parts(function, parts, inner))
        item = replace(fields[-1], name=lateral.name_of(function))
        alias = self._alias(function.alias or function.call.name, function.span, free=function.alias is None)
        relation = Relation(alias, renamed((item,), function.columns, alias, function.span), of, (inside,))
        source = put(left.source, BoundDerived(query, of, fields))
        return Part(source, [*left.relations, relation], left.merged)

    def _lateral_query(
        self, join: Join, derived: Derived, left: Part, read: list[Column], query: BoundQuery, fields: tuple[Field, ...]
    ) -> Part:
        """LATERAL (SELECT …) beside the tables whose columns it reads; what joins them holds of its rows.

        Args:
            derived: the sub-query, under an alias.
            read: the columns of the left that it reads.
            query: the sub-query, bound.
            fields: its columns, under their names.
        """
        alias = derived.alias or ""
        grouped = self._lateral_groups(join, alias, left, read, query, fields)
        if grouped is not None:
            return grouped
        own = Part(BoundDerived(query, alias, fields), [Relation(alias, fields)])
        if join.natural:
            join = replace(join, using=_shared(left, own, join))
        on = join.on
        if join.using:
            self._using(join, left, own)  # an error where a side has no such column
            on = conjunction([_equal(left, alias, name, join.span) for name in join.using])
        if on is not None:
            read = [*read, *columns_of(on, _names(left))]
        function, items = lateral.rows_as_list(derived, fields, on)
        plain = replace(join, on=ast.Boolean(True), using=(), natural=False)
        part = self._lateral(plain, function, items, left, read, fields)
        if not join.using:
            return part
        before, after = (Part(part.source, of, part.merged) for of in (part.relations[:-1], part.relations[-1:]))
        _, merged = self._using(join, before, replace(after, merged=[]))
        names = {m.name.lower() for m in merged}
        return replace(part, merged=[*(m for m in part.merged if m.name.lower() not in names), *merged])

    def _lateral_groups(
        self, join: Join, alias: str, left: Part, read: list[Column], query: BoundQuery, fields: tuple[Field, ...]
    ) -> Part | None:
        """LATERAL (SELECT count(*) …) as groups beside the one table whose column it is joined by; None where it is more."""
        if join.kind not in ("INNER", "CROSS", "LEFT") or join.using or join.natural:
            return None
        of = lateral.table_of(left.source, {column.table for column in read})
        if of is None or not (join.on is None or lateral.is_true(join.on)):
            return None
        groups = by_group(query, alias, of, self.statement.aggregates)
        if groups is None:
            return None
        names = free_names((f.name for f in fields), (f.name for f in of.fields))
        items = [ast.SelectItem(Column(of.alias, f.name), f.name) for f in of.fields]
        items += [ast.SelectItem(value, name) for value, name in zip(groups.values, names, strict=True)]
        mine = [relation for relation in left.relations if (relation.of or relation.alias) == of.alias]
        before = lateral.BoundPart(Part(of, mine), span=join.span)
        beside = lateral.BoundPart(Part(groups.table, [Relation(alias, groups.table.fields)]), span=join.span)
        source = Join("LEFT", before, beside, groups.on, span=join.span)
        whole, columns = self.derived(
            Derived(ast.Select(tuple(items), source, span=join.span), of.alias, span=join.span)
        )
        types = [f.type for f in columns[len(of.fields) :]]
        own = tuple(replace(f, type=type) for f, type in zip(fields, types, strict=True))
        relation = Relation(self._alias(alias, join.span), own, of.alias, names)
        return Part(put(left.source, BoundDerived(whole, of.alias, columns)), [*left.relations, relation], left.merged)

    def _lateral(
        self,
        join: Join,
        function: TableFunction,
        items: Expr,
        left: Part,
        read: Iterable[Column],
        own: tuple[Field, ...],
    ) -> Part:
        """The rows of a sub-query that reads columns before it, beside those that they are of.

        Args:
            function: unnest(…) of these rows, a struct each.
            items: the list of them.
            read: the columns of the left.
            own: the columns of the sub-query, under their names.
        """
        left, of, query, fields, _ = self._listed(join, function, items, left, read)
        inner = Part(BoundDerived(query, of, fields), [Relation(of, fields)])
        alias = self._alias(function.alias or "subquery", function.span, free=function.alias is None)
        private = fields[-1].private
        own = tuple(replace(f, private=f.private or private) for f in own)
        return _beside(
            left,
            self._expand_struct(inner, {f"{lateral.FIELD}{i}": f for i, f in enumerate(own)}, alias, function.span),
        )

    def _listed(
        self, join: Join, function: TableFunction, items: Expr, left: Part, read: Iterable[Column]
    ) -> tuple[Part, str, BoundQuery, tuple[Field, ...], str]:
        """What stands before a list, and of its table that has the list: alias, query with an item a row, fields, the item's name."""
        aliases = {column.table for column in read} or _aliases(left)
        of = lateral.table_of(left.source, aliases)
        if of is None:
            left = self._together(left)
            assert isinstance(left.source, BoundDerived)
            of = left.source
        derived, inside = lateral.sub_query(join, function, items, left, of)
        return left, of.alias, *self.derived(derived), inside

    def _together(self, left: Part) -> Part:
        """All that stands before a list as one table, each name in its place."""
        select, names = lateral.all_columns(left)
        alias = self._alias("joined", select.span, free=True)
        query, fields = self.derived(Derived(select, alias))
        relations = [
            Relation(r.alias, r.fields, alias, tuple(names[r.column(f)] for f in r.fields)) for r in left.relations
        ]

        def moved(node: Any) -> Any:
            return Column(alias, names[node], span=node.span) if isinstance(node, Column) else node

        merged = [
            Merged(m.name, rewrite(m.value, moved), tuple(moved(c) for c in m.hidden if c in names))
            for m in left.merged
        ]
        return Part(BoundDerived(query, alias, fields), relations, merged)

    def _parts(self, function: TableFunction, parts: Call, inner: Part | None) -> Part:
        """The frames of a video or the pages of a document, beside the columns of the table that holds it.

        Args:
            function: in FROM, with the alias of the parts.
            parts: what lists them.
            inner: the table with a part in its last column; None: of a constant, which stands alone.
        """
        alias = self._alias(function.alias or parts.name.removeprefix("__uql_"), function.span, function.alias is None)
        if inner is None:
            self._constant_call(replace(parts, name=parts.name.removeprefix("__uql_")))
            self.statement.catalog.offer_parts()
            item = ast.SelectItem(Call("unnest", (parts,), span=parts.span), "part", span=parts.span)
            query, fields = self.derived(Derived(ast.Select((item,), None, span=parts.span), alias, span=parts.span))
            inner = Part(BoundDerived(query, alias, fields), [Relation(alias, fields)])
        opening = self._expand_struct(inner, {f.name: f for f in lateral.parts_fields(parts)}, alias, parts.span)
        (relation,) = opening.relations
        fields = renamed(relation.fields, function.columns, alias, function.span)
        return replace(opening, relations=[replace(relation, fields=fields)])

    def _expand_struct(self, inner: Part, own: Mapping[str, Field], alias: str, span: Span) -> Part:
        """A table whose last column is a struct, with the fields of that, `own`, as the columns of an alias."""
        derived, inside = lateral.expand_part(inner, {key: f.name for key, f in own.items()}, span)
        query, fields = self.derived(derived)
        columns, members = fields[: -len(own)], fields[-len(own) :]
        fields_inside = tuple(
            replace(f, name=member.name, type=member.type) for f, member in zip(own.values(), members, strict=True)
        )
        source = BoundDerived(query, derived.alias or "", (*columns, *fields_inside))
        own_fields = tuple(replace(f, type=member.type) for f, member in zip(own.values(), members, strict=True))
        return Part(source, [Relation(alias, own_fields, source.alias, inside)])

    def _using(self, join: Join, left: Part, right: Part) -> tuple[Expr, list[Merged]]:
        """USING (a, b) as an ON condition, and the columns that are one from then on."""
        sides = [Scope(list(part.relations), list(part.merged)) for part in (left, right)]
        conditions: list[Expr] = []
        merged: list[Merged] = []
        for name in join.using:
            values: list[Expr] = []
            for scope in sides:
                path = scope.find((name,), join.span)
                if path is None:
                    raise scope.unknown((name,), join.span)
                values.append(path[0])
            nearest = join.kind.startswith("ASOF") and name == join.using[-1]
            conditions.append(Binary(">=" if nearest else "=", values[0], values[1], span=join.span))
            merged_value: Expr = values[1] if join.kind == "RIGHT" else values[0]
            if join.kind == "FULL":
                merged_value = Call("coalesce", (values[0], values[1]), span=join.span)
            spelled = values[0].name if isinstance(values[0], Column) else name
            hidden = tuple(node for value in values for node in walk(value) if isinstance(node, Column))
            merged.append(Merged(spelled, merged_value, hidden))
        on = conjunction(conditions)
        assert on is not None
        return on, merged


def _equal(left: Part, alias: str, name: str, span: Span) -> Expr:
    """A column of USING on the left and in a sub-query called `alias`, as names: they are bound inside that."""
    relation = next(r for r in left.relations if r.find(name) is not None)
    return Binary("=", Name((relation.alias, name), span=span), Name((alias, name), span=span), span=span)


def _part(table: Table, alias: str, columns: tuple[str, ...], span: Span) -> Part:
    """A table under its alias; with names given to its columns it is a sub-query of all of them."""
    if not columns:
        return Part(BoundTable(table, alias), [Relation(alias, table.fields, has_rowid=table.has_rowid)])
    items = tuple(BoundItem(Column(alias, f.name), f.name, f.type) for f in table.fields)
    fields = renamed(table.fields, columns, alias, span)
    query = BoundSelect(items, BoundTable(table, alias))
    return Part(BoundDerived(query, alias, fields), [Relation(alias, fields)])


def renamed(fields: tuple[Field, ...], columns: tuple[str, ...], alias: str, span: Span) -> tuple[Field, ...]:
    """The fields under the names of t(a, b). Raises: BindError (UQL211) where there are more names than fields.

    Args:
        columns: the names in the parentheses, those of the first fields.
        alias: of the table, for the message.
    """
    if len(columns) > len(fields):
        raise BindError(
            f"{alias} is given {len(columns)} column names and has {len(fields)} columns", code="UQL211", span=span
        )
    return (*(replace(f, name=name) for f, name in zip(fields, columns, strict=False)), *fields[len(columns) :])


def _names(part: Part) -> Scope:
    return Scope(part.relations, part.merged)


def _aliases(part: Part) -> set[str]:
    return {relation.of or relation.alias for relation in part.relations}


def _beside(left: Part, opened: Part) -> Part:
    """What stands before a list, its table with the fields of each item in the place of that table."""
    assert isinstance(opened.source, BoundDerived)
    return Part(put(left.source, opened.source), [*left.relations, *opened.relations], left.merged)


def _shared(left: Part, right: Part, join: Join) -> tuple[str, ...]:
    """The names of NATURAL JOIN. Raises: BindError (UQL212) where the sides share none."""
    names = [f.name for relation in left.relations for f in relation.fields]
    low = {f.name.lower() for relation in right.relations for f in relation.fields}
    common = tuple(dict.fromkeys(name for name in names if name.lower() in low))
    if not common:
        raise BindError("NATURAL JOIN: the two sides have no column name in common", code="UQL212", span=join.span)
    return common


def forced_modalities(query: ast.Select) -> dict[str, Modality]:
    """The columns that the block casts to IMAGE, AUDIO, VIDEO or DOCUMENT, by name in lower case."""
    modalities: dict[str, Modality] = {}
    for part in (*query.items, query.where, query.having):
        for node in walk(part):
            if isinstance(node, ast.Cast) and node.type.name in MODALITIES and not node.type.dims:
                name = _name_of(node.operand)
                if name is not None:
                    modalities[name.lower()] = Modality(node.type.name.lower())
    return modalities


def _name_of(expr: Expr) -> str | None:
    if isinstance(expr, Name):
        return expr.parts[-1]
    return expr.text if isinstance(expr, ast.Quoted) else None
