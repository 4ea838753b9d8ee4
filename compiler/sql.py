"""Expressions and bound queries as sqlglot trees in DuckDB's dialect: the one place where UQL becomes SQL text.

Every compound operand is put in parentheses, so that precedence is never left to two grammars. sqlglot is imported
when first used: importing this module costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from uql.base.errors import PlanError
from uql.base.sql_text import dotted
from uql.base.sql_text import literal as literal
from uql.base.sql_text import quote as quote
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
from uql.compiler.syntax import (
    Between,
    Binary,
    Boolean,
    Call,
    Case,
    Cast,
    Column,
    Exists,
    Expr,
    InList,
    InQuery,
    IsDistinct,
    IsNull,
    Lambda,
    Like,
    ListExpr,
    Name,
    Named,
    Null,
    Number,
    OrderKey,
    Position,
    Quantified,
    Query,
    ScalarQuery,
    Star,
    String,
    Subscript,
    TypedLiteral,
    TypeName,
    Unary,
)
from uql.compiler.virtual import Virtual, VirtualColumn

if TYPE_CHECKING:
    from sqlglot import exp

    Sql: TypeAlias = exp.Expression
    ColumnSql = Callable[[Column], exp.Expression]
    VirtualSql = Callable[[VirtualColumn], exp.Expression]
    QuerySql = Callable[[Query], exp.Expression]

_BARE_TYPE = re.compile(
    r"(BOOLEAN|TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT|FLOAT|DOUBLE|VARCHAR|DATE|TIME|TIMESTAMP|BLOB|UUID|JSON)"
    r"|DECIMAL\(\d+,\s*\d+\)"
)
_QUOTED_PATH = re.compile(r'"(?:[^"]|"")*"(?:\."(?:[^"]|"")*")*')
_QUOTED_PART = re.compile(r'"((?:[^"]|"")*)"')


NOW = frozenset(("current_date", "current_timestamp", "current_time", "localtime", "localtimestamp"))
"""Functions that are called without parentheses."""


def type_sql(type: TypeName) -> str:
    """The DuckDB type that a type name stands for.

    >>> type_sql(TypeName("DECIMAL", sizes=(10, 2)))
    'DECIMAL(10,2)'
    >>> type_sql(TypeName("STRUCT", fields=(("id", TypeName("VARCHAR")),), dims=(None,)))
    'STRUCT("id" VARCHAR)[]'
    """
    inner = ""
    if type.sizes:
        inner = "(" + ",".join(str(size) for size in type.sizes) + ")"
    elif type.labels:
        inner = "(" + ", ".join(literal(label) for label in type.labels) + ")"
    elif type.fields:
        named = (
            f"{quote(name)} {type_sql(part)}" if name is not None else type_sql(part) for name, part in type.fields
        )
        inner = "(" + ", ".join(named) + ")"
    return type.name + inner + "".join(f"[{size or ''}]" for size in type.dims)


def base_column(column: Column) -> Sql:
    """A column where its table is in FROM: `"alias"."name"`."""
    return identifier(*((column.table,) if column.table else ()), column.name)


def flat_column(column: Column) -> Sql:
    """A column of a materialised relation, where it is one identifier: `"alias.name"`."""
    return identifier(column.label)


def flat_virtual(column: VirtualColumn) -> Sql:
    """A virtual column of a materialised relation: `"__v0"`."""
    return identifier(column.name)


def null_virtual(column: VirtualColumn) -> Sql:
    """A NULL of the virtual column's type: what stands for it where only types matter."""
    return null_of(value_type(column))


def value_type(column: VirtualColumn) -> str:
    """The DuckDB type of what the virtual column gives, the ENUM of its labels and the STRUCT of a TRY included."""
    one = f"ENUM({', '.join(map(literal, column.labels))})" if column.closed else column.type
    base = one if not column.many else f"{one}[]"
    return f'STRUCT("value" {base}, "error" VARCHAR)' if column.attempt else one


def null_of(type: str) -> Sql:
    """A NULL of a DuckDB type."""
    return _raw(null_text(type))


def null_text(type: str) -> str:
    """SQL of a NULL of a DuckDB type; "NULL" is that of a column that is NULL everywhere."""
    return "NULL" if type.strip('"').upper() == "NULL" else f"CAST(NULL AS {type})"


def data_type(type: str) -> Sql:
    """A DuckDB type as a sqlglot node; what sqlglot does not know better stays as DuckDB writes it."""
    from sqlglot import exp

    if _BARE_TYPE.fullmatch(type):
        return exp.DataType.build(type, dialect="duckdb")
    return exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=type)


def identifier(*parts: str) -> Sql:
    """`"a"."b"`, every part quoted."""
    return _raw(dotted(parts))


def expression(
    expr: Expr,
    column: ColumnSql = base_column,
    virtual: VirtualSql = flat_virtual,
    query: QuerySql | None = None,
) -> Sql:
    """The sqlglot tree of a bound expression.

    Args:
        expr: an expression of columns, virtual columns and constants.
        column: what stands for a column.
        virtual: what stands for a virtual column.
        query: what stands for a sub-query; None: the SQL of the sub-query, which then has to be concrete.
    Raises: PlanError (UQL302) on a node that has no SQL.
    """
    return _Expressions(column, virtual, query).sql(expr)


def query_sql(
    query: BoundQuery,
    column: ColumnSql = base_column,
    virtual: VirtualSql | None = None,
) -> Sql:
    """One SELECT (or UNION) for a bound query that DuckDB can answer alone.

    Args:
        query: the bound query, its derived tables and sub-queries included.
        column: what stands for a column; correlated sub-queries get the same.
        virtual: what stands for a virtual column; None: PlanError, since DuckDB has no value for it.
    """
    return _Queries(column, virtual or _no_virtual).query(query)


def source_sql(
    source: BoundSource,
    virtual: VirtualSql | None = None,
    query: QuerySql | None = None,
    column: ColumnSql = base_column,
) -> Sql:
    """What stands after FROM: a table or a sub-query, with the joins that follow it in its `joins`.

    Args:
        virtual: writes a text for the model; None: there is none.
        query: writes a sub-query.
        column: writes a column.
    """
    head, joins = _Queries(column, virtual or _no_virtual, query).source(source)
    if joins:
        head.set("joins", joins)
    return head


def grouped(keys: list[Sql], sets: tuple[tuple[int, ...], ...]) -> Sql:
    """GROUP BY: these keys, or the sets of them."""
    from sqlglot import exp

    if not sets:
        return exp.Group(expressions=keys)
    each = ", ".join(f"({', '.join(render(keys[i]) for i in one)})" for one in sets)
    return exp.Group(expressions=[_raw(f"GROUPING SETS ({each})")])


def set_clauses(tree: Sql, query: BoundSelect, of: Callable[[Expr], Sql]) -> None:
    """Puts WHERE, GROUP BY, HAVING and QUALIFY of a block into a SELECT, each expression as `of` writes it.

    Args:
        tree: the SELECT, changed in place.
        query: whose clauses they are.
        of: writes an expression.
    """
    from sqlglot import exp

    if query.where is not None:
        tree.set("where", exp.Where(this=of(query.where)))
    if query.group_by:
        places = places_of(query.items)
        keys = [_place(places[key.expr]) if key.expr in places else of(key.expr) for key in query.group_by]
        tree.set("group", grouped(keys, query.sets))
    if query.having is not None:
        tree.set("having", exp.Having(this=of(query.having)))
    if query.qualify is not None:
        tree.set("qualify", exp.Qualify(this=of(query.qualify)))


def _raw(sql: str) -> Sql:
    from sqlglot import exp

    return exp.Var(this=sql)


def render(tree: Sql) -> str:
    """The DuckDB text of a tree."""
    from sqlglot import exp

    if isinstance(tree, exp.Var):  # a text already: a generator for each of 10,000 columns takes half a second
        return str(tree.this)
    return str(tree.sql(dialect="duckdb", copy=False))


def ordered(keys: Iterable[OrderKey], of: Callable[[Expr], Sql]) -> list[Sql]:
    """ORDER BY terms; NULLs last unless said otherwise, as in DuckDB."""
    from sqlglot import exp

    terms = []
    for key in keys:
        term = exp.Ordered(this=of(key.expr), desc=key.descending, nulls_first=key.nulls == "FIRST")
        written = render(term)
        # sqlglot leaves out NULLS LAST, which a setting may change
        said = key.nulls is None or written.endswith(key.nulls)
        terms.append(term if said else _raw(f"{written} NULLS {key.nulls}"))
    return terms


def order_of_items(keys: Iterable[OrderKey], items: Iterable[BoundItem], of: Callable[[Expr], Sql]) -> list[Sql]:
    """ORDER BY terms of a SELECT. An item stands as its place: DuckDB would take a constant for another's place.

    A constant that is no item orders nothing and is left out.

    Args:
        items: of the SELECT.
        of: writes an expression.
    """
    places = places_of(items)

    def term(expr: Expr) -> Sql:
        if expr in places:
            return _place(places[expr])
        if isinstance(expr, Binary) and expr.op == "COLLATE" and expr.left in places and isinstance(expr.right, String):
            return _raw(f"{places[expr.left]} COLLATE {expr.right.value}")
        return of(expr)

    return ordered([key for key in keys if key.expr in places or not is_literal(key.expr)], term)


def places_of(items: Iterable[BoundItem]) -> dict[Expr, int]:
    """The place of each SELECT item, from 1 on; that of the first where two are equal."""
    places: dict[Expr, int] = {}
    for place, item in enumerate(items, start=1):
        places.setdefault(item.expr, place)
    return places


def _place(place: int) -> Sql:
    from sqlglot import exp

    return exp.Literal.number(place)


def is_literal(expr: Expr) -> bool:
    """Is it a constant that DuckDB reads as a place in ORDER BY and GROUP BY, or refuses there?"""
    if isinstance(expr, Binary) and expr.op == "COLLATE":
        return isinstance(expr.left, String | Null)
    while isinstance(expr, Unary):
        expr = expr.operand
    return isinstance(expr, Number | String | Null | Boolean)


def _no_virtual(column: VirtualColumn) -> Sql:
    raise PlanError(f'"{column.text}" needs a model and cannot be handed to DuckDB', code="UQL302", span=column.span)


def _table(source: BoundTable) -> Sql:
    from sqlglot import exp

    alias = exp.TableAlias(this=exp.to_identifier(source.alias, quoted=True))
    if _QUOTED_PATH.fullmatch(source.table.sql):
        parts = [part.replace('""', '"') for part in _QUOTED_PART.findall(source.table.sql)]
        names = [exp.to_identifier(part, quoted=True) for part in parts]
        keys = ("this", "db", "catalog")
        return exp.Table(**dict(zip(keys, reversed(names), strict=False)), alias=alias)
    return exp.Table(this=exp.Var(this=source.table.sql), alias=alias)


_BINARY = {
    "AND": "And",
    "OR": "Or",
    "=": "EQ",
    "<>": "NEQ",
    "<": "LT",
    "<=": "LTE",
    ">": "GT",
    ">=": "GTE",
    "+": "Add",
    "-": "Sub",
    "*": "Mul",
    "//": "IntDiv",
    "%": "Mod",
    "||": "DPipe",
    "^": "Pow",
}


class _Expressions:
    """Expressions → sqlglot, with the three callbacks held."""

    def __init__(self, column: ColumnSql, virtual: VirtualSql, query: QuerySql | None) -> None:
        self.column, self.virtual, self.query = column, virtual, query

    def sub(self, query: Query) -> Sql:
        if self.query is not None:
            return self.query(query)
        if not isinstance(query, Bound):
            raise PlanError("a sub-query was not bound", code="UQL302", span=query.span)
        return query_sql(query.query)

    def sql(self, expr: Expr) -> Sql:
        from sqlglot import exp

        match expr:
            case Column():
                return self.column(expr)
            case Virtual():
                return self.virtual(expr.column)
            case Number() | Position():
                return exp.Literal.number(expr.text)
            case String():
                return exp.Literal.string(expr.value)
            case Null():
                return exp.Null()
            case Boolean():
                return exp.Boolean(this=expr.value)
            case TypedLiteral():
                return exp.Cast(this=exp.Literal.string(expr.value), to=data_type(expr.type))
            case Star():
                return exp.Star() if expr.table is None else exp.column(exp.Star(), table=exp.to_identifier(expr.table))
            case Unary():
                inner = self.operand(expr.operand)
                if expr.op == "+":
                    return inner
                if expr.op == "~":
                    return _raw(f"(~ {render(inner)})")
                return exp.Not(this=inner) if expr.op == "NOT" else exp.Neg(this=exp.Paren(this=inner))
            case Binary():
                left, right = self.operand(expr.left), self.operand(expr.right)
                if expr.op in ("->", "->>", "&", "|", "<<", ">>"):
                    return _raw(f"({render(left)} {expr.op} {render(right)})")
                if expr.op == "COLLATE" and isinstance(expr.right, String):
                    return _raw(f"({render(left)} COLLATE {expr.right.value})")
                if expr.op == "^":
                    return exp.Anonymous(this="pow", expressions=[left, right])
                if expr.op == "/":
                    return exp.Div(this=left, expression=right, typed=False, safe=False)
                made: Sql = getattr(exp, _BINARY[expr.op])(this=left, expression=right)
                return made
            case Like() if expr.op.startswith("~"):
                left, right = self.operand(expr.operand), self.operand(expr.pattern)
                return _raw(f"({render(left)} {expr.operator} {render(right)})")
            case Like():
                kind = exp.ILike if expr.op == "ILIKE" else exp.Glob if expr.op == "GLOB" else exp.Like
                tree: Sql = kind(this=self.operand(expr.operand), expression=self.operand(expr.pattern))
                if expr.escape is not None:
                    tree = exp.Escape(this=tree, expression=self.sql(expr.escape))
                return self.negated(tree, expr.negated)
            case InList():
                items = [self.sql(item) for item in expr.items]
                return self.negated(exp.In(this=self.operand(expr.operand), expressions=items), expr.negated)
            case InQuery():
                inside = exp.Subquery(this=self.sub(expr.query))
                return self.negated(exp.In(this=self.operand(expr.operand), query=inside), expr.negated)
            case Between():
                low, high = self.operand(expr.low), self.operand(expr.high)
                return self.negated(exp.Between(this=self.operand(expr.operand), low=low, high=high), expr.negated)
            case IsNull():
                return self.negated(exp.Is(this=self.operand(expr.operand), expression=exp.Null()), expr.negated)
            case IsDistinct(op="IS"):
                tree = exp.Is(this=self.operand(expr.left), expression=self.sql(expr.right))
                return self.negated(tree, expr.negated)
            case IsDistinct():
                same = exp.NullSafeEQ if expr.negated else exp.NullSafeNEQ
                return same(this=self.operand(expr.left), expression=self.operand(expr.right))
            case Case():
                whens = [exp.If(this=self.sql(when.condition), true=self.sql(when.value)) for when in expr.whens]
                operand = self.sql(expr.operand) if expr.operand is not None else None
                default = self.sql(expr.default) if expr.default is not None else None
                return exp.Case(this=operand, ifs=whens, default=default)
            case Cast():
                cast = exp.TryCast if expr.lenient else exp.Cast
                return cast(this=self.sql(expr.operand), to=data_type(type_sql(expr.type)))
            case Call():
                return self.call(expr)
            case Exists():
                return exp.Exists(this=self.sub(expr.query))
            case ScalarQuery():
                return exp.Subquery(this=self.sub(expr.query))
            case Quantified():
                inside = exp.Subquery(this=self.sub(expr.query))
                before = f"{render(self.operand(expr.operand))} {expr.op} " if expr.operand is not None else ""
                return _raw(f"{before}{expr.word} {render(inside)}")
            case Subscript():
                parts = [render(self.sql(p)) if p is not None else "" for p in (expr.low, expr.high, expr.step)]
                place = ":".join(parts if expr.step is not None else parts[:2]) if expr.slice else parts[0]
                return _raw(f"({render(self.sql(expr.operand))})[{place}]")
            case Lambda():
                return _raw(f"lambda {', '.join(map(quote, expr.names))}: {render(self.sql(expr.body))}")
            case Named():
                return _raw(f"{quote(expr.name)} := {render(self.sql(expr.value))}")
            case ListExpr():
                return exp.Array(expressions=[self.sql(item) for item in expr.items])
            case Name():
                return identifier(*expr.parts)
        raise PlanError(f"{type(expr).__name__} has no SQL", code="UQL302", span=expr.span)

    def operand(self, expr: Expr) -> Sql:
        """In parentheses unless it is one word."""
        from sqlglot import exp

        tree = self.sql(expr)
        if isinstance(
            expr, Binary | Unary | Like | InList | InQuery | Between | IsNull | IsDistinct | Case | Quantified
        ):
            return exp.Paren(this=tree)
        return tree

    def negated(self, tree: Sql, negated: bool) -> Sql:
        from sqlglot import exp

        return exp.Not(this=exp.Paren(this=tree)) if negated else tree

    def call(self, call: Call) -> Sql:
        from sqlglot import exp

        if call.name in NOW and not call.args:
            return _raw(call.name)
        args = [self.sql(arg) for arg in call.args]
        if call.order_by and args:
            args[-1] = exp.Order(this=args[-1], expressions=ordered(call.order_by, self.sql))
        if call.distinct and len(args) > 1:  # sqlglot would make one value of them
            args = [_raw(f"DISTINCT {', '.join(map(render, args))}")]
        elif call.distinct:
            args = [exp.Distinct(expressions=args)]
        if call.ignore_nulls:
            args = [_raw(f"{', '.join(map(render, args))} IGNORE NULLS")]
        tree: Sql = exp.Anonymous(this=call.name, expressions=args)
        if call.filter is not None:
            tree = exp.Filter(this=tree, expression=exp.Where(this=self.sql(call.filter)))
        if call.over is not None:
            keys = ordered(call.over.order_by, self.sql)
            order = exp.Order(expressions=keys) if keys else None
            frame = _raw(call.over.frame) if call.over.frame else None
            parts = [self.sql(part) for part in call.over.partition_by]
            tree = exp.Window(this=tree, partition_by=parts, order=order, spec=frame)
        return tree


class _Queries:
    """Bound queries → sqlglot."""

    def __init__(self, column: ColumnSql, virtual: VirtualSql, query: QuerySql | None = None) -> None:
        self.expressions = _Expressions(column, virtual, query or self.sub)

    def sub(self, query: Query) -> Sql:
        if not isinstance(query, Bound):
            raise PlanError("a sub-query was not bound", code="UQL302", span=query.span)
        return self.query(query.query)

    def query(self, query: BoundQuery) -> Sql:
        if isinstance(query, BoundSelect):
            return self.select(query)
        if isinstance(query, BoundUnion):
            return self.union(query)
        raise TypeError(f"not a bound query: {query!r}")

    def select(self, query: BoundSelect) -> Sql:
        from sqlglot import exp

        of = self.expressions.sql
        tree = exp.Select(
            expressions=[_raw(f"{render(of(item.expr))} AS {quote(item.name)}") for item in query.items],
            distinct=exp.Distinct() if query.distinct else None,
        )
        if query.source is not None:
            head, joins = self.source(query.source)
            tree.set("from_" if "from_" in exp.Select.arg_types else "from", exp.From(this=head))
            tree.set("joins", joins)
        set_clauses(tree, query, of)
        return self.tail(tree, query)

    def union(self, query: BoundUnion) -> Sql:
        from sqlglot import exp

        sides = [exp.Subquery(this=self.query(side)) for side in (query.left, query.right)]
        kind = {"INTERSECT": exp.Intersect, "EXCEPT": exp.Except}.get(query.op, exp.Union)
        return self.tail(kind(this=sides[0], expression=sides[1], distinct=not query.all), query)

    def tail(self, tree: Sql, query: BoundSelect | BoundUnion) -> Sql:
        from sqlglot import exp

        if query.order_by:
            keys = order_of_items(query.order_by, query.items, self.expressions.sql)
            tree.set("order", exp.Order(expressions=keys) if keys else None)
        if query.limit is not None:
            tree.set("limit", exp.Limit(expression=exp.Literal.number(query.limit)))
        if query.offset:
            tree.set("offset", exp.Offset(expression=exp.Literal.number(query.offset)))
        return tree

    def source(self, source: BoundSource) -> tuple[Sql, list[Sql]]:
        """The first table, and the joins that follow it."""
        from sqlglot import exp

        match source:
            case BoundTable():
                return _table(source), []
            case BoundDerived():
                alias = exp.TableAlias(
                    this=exp.to_identifier(source.alias, quoted=True),
                    columns=[exp.to_identifier(f.name, quoted=True) for f in source.fields],
                )
                return exp.Subquery(this=self.query(source.query), alias=alias), []
            case BoundJoin():
                head, joins = self.source(source.left)
                right, inner = self.source(source.right)
                if inner:
                    right.set("joins", inner)
                    right = exp.Paren(this=right)
                on = self.expressions.sql(source.on) if source.on is not None else None
                method, _, how = source.kind.partition(" ") if source.kind.startswith("ASOF") else ("", "", source.kind)
                side = how if how in ("LEFT", "RIGHT", "FULL") else None
                kind = how if side is None else None
                if source.kind == "INNER" and on is None:
                    kind = "CROSS"
                return head, [*joins, exp.Join(this=right, method=method, side=side, kind=kind, on=on)]
        raise TypeError(f"not a bound source: {source!r}")
