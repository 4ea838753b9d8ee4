"""Expressions and bound queries as DuckDB's SQL: the one place where UQL becomes SQL text.

Every compound operand is put in parentheses, so that precedence is never left to two grammars.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import replace

from uql.base.errors import PlanError
from uql.base.sql_text import dotted, literal as literal, quote as quote
from uql.compiler import syntax as ast
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
from uql.compiler.subqueries import aliases
from uql.compiler.syntax import Binary, Column, Expr, OrderKey, Query, String, TypeName, Unary
from uql.compiler.unparse import ANY, UQL, Writer, type_text
from uql.compiler.virtual import Moment, Virtual, VirtualColumn

ColumnSql = Callable[[Column], str]
VirtualSql = Callable[[VirtualColumn], str]
QuerySql = Callable[[Query], str]

NOW = frozenset(("current_date", "current_timestamp", "current_time", "localtime", "localtimestamp"))
"""Functions that are called without parentheses."""


def type_sql(type: TypeName) -> str:
    """The DuckDB type that a type name stands for.

    >>> type_sql(TypeName("DECIMAL", sizes=(10, 2)))
    'DECIMAL(10,2)'
    >>> type_sql(TypeName("STRUCT", fields=(("id", TypeName("VARCHAR")),), dims=(None,)))
    'STRUCT("id" VARCHAR)[]'
    """
    return type_text(type, quote)


def base_column(column: Column) -> str:
    """A column where its table is in FROM: `"alias"."name"`."""
    return dotted((*((column.table,) if column.table else ()), column.name))


def flat_column(column: Column) -> str:
    """A column of a materialised relation, where it is one identifier: `"alias.name"`."""
    return quote(column.label)


def flat_virtual(column: VirtualColumn) -> str:
    """A virtual column of a materialised relation: `"__v0"`."""
    return quote(column.name)


def null_virtual(column: VirtualColumn) -> str:
    """A NULL of the virtual column's type: what stands for it where only types matter."""
    return null_text(value_type(column))


def value_type(column: VirtualColumn) -> str:
    """The DuckDB type of what the virtual column gives, the ENUM of its labels and the STRUCT of a TRY included."""
    if column.moment:
        return "DOUBLE"
    one = f"ENUM({', '.join(map(literal, column.labels))})" if column.closed else column.type
    base = one if not column.many else f"{one}[]"
    return f'STRUCT("value" {base}, "error" VARCHAR)' if column.attempt else one


def null_text(type: str) -> str:
    """SQL of a NULL of a DuckDB type; "NULL" is that of a column that is NULL everywhere."""
    return "NULL" if type.strip('"').upper() == "NULL" else f"CAST(NULL AS {type})"


def expression(
    expr: Expr,
    column: ColumnSql = base_column,
    virtual: VirtualSql = flat_virtual,
    query: QuerySql | None = None,
) -> str:
    """The SQL of a bound expression.

    Args:
        expr: an expression of columns, virtual columns and constants.
        column: what stands for a column.
        virtual: what stands for a virtual column.
        query: what stands for a sub-query; None: the SQL of the sub-query, which then has to be concrete.
    Raises: PlanError (UQL302) on a node that has no SQL.
    """
    return _Expressions(column, virtual, query or (lambda below: query_sql(_bound(below)))).expr(expr)


def query_sql(
    query: BoundQuery,
    column: ColumnSql = base_column,
    virtual: VirtualSql | None = None,
    more: str = "",
    below: QuerySql | None = None,
) -> str:
    """One SELECT (or UNION) for a bound query that DuckDB can answer alone.

    Args:
        query: the bound query, its derived tables and sub-queries included.
        column: what stands for a column; correlated sub-queries get the same.
        virtual: what stands for a virtual column; None: PlanError, since DuckDB has no value for it.
        more: SQL of one more item of a SELECT, with its name.
        below: what stands for a sub-query in an expression; None: written as the query is.
    """
    return _Queries(column, virtual or _no_virtual, below).query(query, more)


def sub_query_sql(query: BoundQuery, outer: ColumnSql) -> str:
    """A sub-query that DuckDB answers over its own tables, in a query whose columns have other names.

    Args:
        query: without a text for a model.
        outer: what stands for a column of the queries around it; one of an inner table goes first where both have the same alias.
    """
    return _SubQueries(outer, frozenset()).query(query)


def source_sql(
    source: BoundSource,
    virtual: VirtualSql | None = None,
    query: QuerySql | None = None,
    column: ColumnSql = base_column,
) -> str:
    """What stands after FROM: a table or a sub-query, with the joins that follow it.

    Args:
        virtual: writes a text for the model; None: there is none.
        query: writes a sub-query.
        column: writes a column.
    """
    return _Queries(column, virtual or _no_virtual, query).source(source)


def clauses(query: BoundSelect, of: Callable[[Expr], str]) -> str:
    """WHERE, GROUP BY, HAVING and QUALIFY of a block, each expression as `of` writes it."""
    places = places_of(query.items)
    keys = [str(places[key.expr]) if key.expr in places else of(key.expr) for key in query.group_by]
    if query.sets:
        each = ["(" + ", ".join(keys[i] for i in one) + ")" for one in query.sets]
        keys = [f"GROUPING SETS ({', '.join(each)})"]
    parts = [
        f" WHERE {of(query.where)}" if query.where is not None else "",
        f" GROUP BY {', '.join(keys)}" if keys else "",
        f" HAVING {of(query.having)}" if query.having is not None else "",
        f" QUALIFY {of(query.qualify)}" if query.qualify is not None else "",
    ]
    return "".join(parts)


def order_of_items(keys: Iterable[OrderKey], items: Iterable[BoundItem], of: Callable[[Expr], str]) -> str:
    """ORDER BY of a SELECT; empty where nothing is ordered. An item stands as its place: DuckDB would take a constant for another's place.

    A constant that is not an item does not order anything and is left out.

    Args:
        items: of the SELECT.
        of: writes an expression.
    """
    places = places_of(items)

    def term(expr: Expr) -> str:
        if expr in places:
            return str(places[expr])
        if isinstance(expr, Binary) and expr.op == "COLLATE" and expr.left in places and isinstance(expr.right, String):
            return f"{places[expr.left]} COLLATE {_collation(expr.right)}"
        return of(expr)

    terms = [key_sql(key, term) for key in keys if not is_literal(key.expr, places)]
    return f" ORDER BY {', '.join(terms)}" if terms else ""


def key_sql(key: OrderKey, of: Callable[[Expr], str]) -> str:
    """A term of ORDER BY; NULLs last unless said otherwise, as in DuckDB."""
    nulls = f" NULLS {key.nulls}" if key.nulls else ""
    return f"{of(key.expr)}{' DESC' if key.descending else ' ASC' if key.directed else ''}{nulls}"


def places_of(items: Iterable[BoundItem]) -> dict[Expr, int]:
    """The place of each SELECT item, from 1 on; that of the first where two are equal."""
    places: dict[Expr, int] = {}
    for place, item in enumerate(items, start=1):
        places.setdefault(item.expr, place)
    return places


def is_literal(expr: Expr, columns: Container[Expr] = ()) -> bool:
    """Is it a constant that DuckDB reads as a place in ORDER BY and GROUP BY, or refuses there?

    Args:
        columns: that stand for whole expressions: a constant is none where it has one, which ROLLUP makes NULL in some rows.
    """
    if expr in columns:
        return False
    if isinstance(expr, Binary) and expr.op == "COLLATE":
        return expr.left not in columns and isinstance(expr.left, String | ast.Null)
    while isinstance(expr, Unary):
        expr = expr.operand
    return isinstance(expr, ast.Number | String | ast.Null | ast.Boolean)


def _no_virtual(column: VirtualColumn) -> str:
    raise PlanError(f'"{column.text}" needs a model and cannot be handed to DuckDB', code="UQL302", span=column.span)


def _bound(query: Query) -> BoundQuery:
    if not isinstance(query, Bound):
        raise PlanError("a sub-query was not bound", code="UQL302", span=query.span)
    return query.query


# ----------------------------------------------------------------------------------------------------------- expressions
_COMPOUND = (
    Binary
    | Unary
    | ast.Like
    | ast.InList
    | ast.InQuery
    | ast.Between
    | ast.IsNull
    | ast.IsDistinct
    | ast.Case
    | ast.Quantified
)
_OPERAND = ANY + 1  # any place but one of its own: a compound expression stands there in parentheses


class _Expressions(Writer):
    """Writes SQL, with what stands for columns, virtual columns and sub-queries."""

    def __init__(self, column: ColumnSql, virtual: VirtualSql, query: QuerySql) -> None:
        self.column, self.virtual, self.sub_query = column, virtual, query

    def expr(self, node: Expr, tightness: int = ANY) -> str:
        if isinstance(node, Column):
            return self.column(node)
        if isinstance(node, Virtual):
            return self.virtual(node.column)
        if isinstance(node, Moment):
            of = node.of
            return self.virtual(replace(of.column, moment=True)) if isinstance(of, Virtual) else null_text("DOUBLE")
        if type(node) not in self.kinds:
            raise PlanError(f"{type(node).__name__} has no SQL", code="UQL302", span=node.span)
        text = self.kinds[type(node)][1](self, node)
        return f"({text})" if tightness > ANY and isinstance(node, _COMPOUND) else text

    def query(self, node: Query) -> str:
        return self.sub_query(node)

    def name(self, name: str) -> str:
        return quote(name)

    def function(self, name: str) -> str:
        """As it is: what a dotted name calls is a function of a schema, or a method, whose parts may have been written as "…"."""
        return ".".join(part if part.isidentifier() else quote(part) for part in name.split("."))


def _unary(w: Writer, node: Unary) -> str:
    operand = w.expr(node.operand, _OPERAND)
    return {"+": operand, "-": f"-({operand})", "~": f"(~ {operand})"}.get(node.op) or f"NOT {operand}"


def _binary(w: Writer, node: Binary) -> str:
    left, right = w.expr(node.left, _OPERAND), w.expr(node.right, _OPERAND)
    if node.op == "^":
        return f"pow({left}, {right})"
    if node.op == "COLLATE" and isinstance(node.right, String):
        return f"({left} COLLATE {_collation(node.right)})"
    text = f"{left} {node.op} {right}"
    return f"({text})" if node.op in ("->", "->>", "&", "|", "<<", ">>") else text


def _collation(name: String) -> str:
    """The name of a collation, each part quoted: it may have been written as "…"."""
    return dotted(name.value.split("."))


def _like(w: Writer, node: ast.Like) -> str:
    operand, pattern = w.expr(node.operand, _OPERAND), w.expr(node.pattern, _OPERAND)
    if node.op.startswith("~"):
        return f"({operand} {node.operator} {pattern})"
    escape = f" ESCAPE {w.expr(node.escape)}" if node.escape is not None else ""
    text = f"{operand} {node.op} {pattern}{escape}"
    return f"NOT ({text})" if node.negated else text


def _cast(w: Writer, node: ast.Cast) -> str:
    return f"{'TRY_' if node.lenient else ''}CAST({w.expr(node.operand)} AS {type_sql(node.type)})"


_Expressions.kinds = {kind: UQL[kind] for kind in UQL.keys() - {ast.Quoted, ast.Parameter, ast.Try}} | {
    ast.Name: (None, lambda w, n: dotted(n.parts)),
    ast.Position: (None, lambda w, n: n.text),
    ast.TypedLiteral: (None, lambda w, n: f"CAST({literal(n.value)} AS {n.type})"),
    Unary: (None, _unary),
    Binary: (None, _binary),
    ast.Like: (None, _like),
    ast.Cast: (None, _cast),
    ast.Call: (None, lambda w, n: n.name if n.name in NOW and not n.args else UQL[ast.Call][1](w, n)),
}


# --------------------------------------------------------------------------------------------------------------- queries
class _Queries:
    """Writes bound queries."""

    def __init__(self, column: ColumnSql, virtual: VirtualSql, query: QuerySql | None = None) -> None:
        self.of = _Expressions(column, virtual, query or (lambda below: self.query(_bound(below)))).expr

    def query(self, query: BoundQuery, more: str = "") -> str:
        if isinstance(query, BoundUnion):
            word = f"{query.op} ALL" if query.all else query.op
            return f"({self.query(query.left)}) {word} ({self.query(query.right)}){self._tail(query)}"
        if not isinstance(query, BoundSelect):
            raise TypeError(f"not a bound query: {query!r}")
        items = [f"{self.of(item.expr)} AS {quote(item.name)}" for item in query.items]
        items += [more] if more else []
        source = f" FROM {self.source(query.source)}" if query.source is not None else ""
        distinct = "DISTINCT " if query.distinct else ""
        return f"SELECT {distinct}{', '.join(items)}{source}{clauses(query, self.of)}{self._tail(query)}"

    def _tail(self, query: BoundSelect | BoundUnion) -> str:
        limit = f" LIMIT {query.limit}" if query.limit is not None else ""
        offset = f" OFFSET {query.offset}" if query.offset else ""
        return order_of_items(query.order_by, query.items, self.of) + limit + offset

    def source(self, source: BoundSource) -> str:
        match source:
            case BoundTable(table=table, alias=alias):
                return f"{table.sql} AS {quote(alias)}"
            case BoundDerived(query=query, alias=alias):
                columns = f"({', '.join(quote(f.name) for f in source.fields)})" if source.fields else ""
                return f"({self.query(query)}) AS {quote(alias)}{columns}"
            case BoundJoin():
                right = self.source(source.right)
                right = f"({right})" if isinstance(source.right, BoundJoin) else right
                on = f" ON {self.of(source.on)}" if source.on is not None else ""
                kind = "CROSS" if source.kind == "INNER" and not on else source.kind
                return f"{self.source(source.left)} {kind} JOIN {right}{on}"
        raise TypeError(f"not a bound source: {source!r}")


class _SubQueries(_Queries):
    """Writes a sub-query: the columns of the tables that its blocks name as they are, others as `outer` has them."""

    def __init__(self, outer: ColumnSql, visible: frozenset[str]) -> None:
        self.outer, self.visible = outer, visible
        super().__init__(self._column, _no_virtual)

    def _column(self, column: Column) -> str:
        return base_column(column) if not column.table or column.table in self.visible else self.outer(column)

    def query(self, query: BoundQuery, more: str = "") -> str:
        if not isinstance(query, BoundSelect) or self.visible >= (own := frozenset(aliases(query.source))):
            return super().query(query, more)
        return _SubQueries(self.outer, self.visible | own).query(query, more)
