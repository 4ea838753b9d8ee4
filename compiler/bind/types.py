"""Types, by DuckDB's judgement: a query block is described with NULLs of the right types for its tables and texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches

from uql.base.errors import BindError, DataError
from uql.base.names import suggestion
from uql.base.schema import Field, Table
from uql.base.sql_text import dotted
from uql.compiler import syntax as ast
from uql.compiler.bind.lateral import own_function
from uql.compiler.bind.scope import CatalogLike, Scope
from uql.compiler.bound import Bound, BoundDerived, BoundJoin, BoundSelect, BoundSource, BoundTable
from uql.compiler.sql import (
    base_column,
    clauses,
    expression,
    literal,
    null_text,
    null_virtual,
    order_of_items,
    quote,
    source_sql,
    value_type,
)
from uql.compiler.subqueries import with_leaves
from uql.compiler.syntax import NO_SPAN, Column, Expr, String
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.compiler.walk import children, walk

ONE_TYPE = "cast those of another, as in CASE WHEN … THEN x::VARCHAR ELSE 'none' END"


class DuckTypes:
    """Asks DuckDB for types; no table is read for it."""

    def __init__(self, catalog: CatalogLike, error: tuple[type[Exception], ...]) -> None:
        self.catalog, self.error = catalog, error

    def of(self, expr: Expr, scope: Scope) -> str | None:
        """The DuckDB type of a bound expression that stands alone, None when DuckDB cannot tell."""
        match expr:
            case ast.Number():
                return "DOUBLE"
            case String():
                return "VARCHAR"
            case ast.Boolean():
                return "BOOLEAN"
            case ast.TypedLiteral():
                return expr.type
            case ast.Unary(op="-" | "+"):
                return self.of(expr.operand, scope)
            case Column():
                field = scope.field_of(expr)
                return field.type if field is not None else None
            case Virtual():
                return value_type(expr.column)
        try:
            sql = expression(expr, self._null_column(scope, own=False), null_virtual, null_query)
            return self.catalog.describe(f"SELECT {sql} AS x")[0][1]
        except self.error:
            return None

    def select(self, query: BoundSelect, scope: Scope) -> list[str]:
        """The types of a block's output columns, in order.

        Raises: BindError: UQL209 with DuckDB's complaint about a function, a type, or a column that is not a group key; UQL212 where
            an item is several columns.
        """
        column = self._null_column(scope, own=True)
        column_types = [
            self._column_type(item.expr, scope) if not query.aggregated and not query.distinct else None
            for item in query.items
        ]
        items = tuple(item for item, type in zip(query.items, column_types, strict=True) if type is None)
        if (
            not items
            and not query.order_by
            and query.qualify is None
            and (query.where is None or _asks_alone(query.where))
            and isinstance(query.source, BoundTable)
        ):
            return [str(type) for type in column_types]  # columns of a table: nothing that DuckDB could refuse

        def virtual(v: VirtualColumn) -> str:
            return null_virtual(v) if v.of_group else dotted(("__virtual", v.name))

        def of(expr: Expr) -> str:
            return expression(expr, column, virtual, null_query)

        select_list = [f"{of(item.expr)} AS c{i}" for i, item in enumerate(items)] or ["NULL AS c0"]
        source = without_rows(query.source) if query.source is not None else None
        tables = [source_sql(source, null_virtual, query=null_query, column=column)] if source is not None else []
        row_virtuals = [v for v in query.virtuals if not v.of_group]
        tables += [_virtual_table(row_virtuals)] if row_virtuals else []
        sql = f"SELECT {'DISTINCT ' if query.distinct else ''}{', '.join(select_list)}"
        sql += f" FROM {' CROSS JOIN '.join(tables)}" if tables else ""
        sql += clauses(query, of) + order_of_items(query.order_by, items, of)
        try:
            types = [type for _, type in self.catalog.describe(sql)]
        except self.error as error:
            raise self.complaint(error, query, scope) from error
        if len(types) != max(1, len(items)):
            raise several_columns(query)
        self._check_cases(query, scope)
        described = iter(types)
        return [type or next(described) for type in column_types]

    def _column_type(self, expr: Expr, scope: Scope) -> str | None:
        """The type of a column of FROM, which needs no describing."""
        field = scope.field_of(expr) if isinstance(expr, Column) and scope.owns(expr) else None
        return None if field is None or field.type.strip('"').upper() == "NULL" else field.type

    def _check_cases(self, query: BoundSelect, scope: Scope) -> None:
        """Raises DataError (UQL509) for a string in a CASE that is not a value of the type of the others: DuckDB says so only when it
        runs, behind the calls."""
        exprs = [*(item.expr for item in query.items), query.where, query.having, *(key.expr for key in query.order_by)]
        for case in (node for expr in exprs if expr is not None for node in walk(expr) if isinstance(node, ast.Case)):
            values = [*(when.value for when in case.whens), case.default]
            strings = [value for value in values if isinstance(value, String)]
            others = [value for value in values if value is not None and not isinstance(value, String | ast.Null)]
            if not strings or not others:
                continue
            bare = ast.Case(None, tuple(ast.When(ast.Boolean(True), value) for value in others))
            type = self.of(bare, scope)
            for string in strings if type not in (None, "VARCHAR") else ():
                with suppress(*self.error):  # a type that it has no name for
                    if self.catalog.value(f"SELECT TRY_CAST({literal(string.value)} AS {type}) IS NULL"):
                        raise DataError(
                            f"'{string.value}' in CASE is not {type}, the type of its other values",
                            code="UQL509",
                            span=string.span,
                            help=f"the values of CASE have one type: {ONE_TYPE}",
                        )

    def union(self, left: list[tuple[str, str]], right: list[tuple[str, str]], span: ast.Span) -> list[str]:
        """The types of a UNION's columns. Raises: BindError (UQL211) when two sides do not fit.

        Args:
            left, right: (name, type) of each column.
        """
        sides = [", ".join(f"{null_text(type)} AS c{i}" for i, (_, type) in enumerate(side)) for side in (left, right)]
        try:
            return [type for _, type in self.catalog.describe(f"SELECT {sides[0]} UNION ALL SELECT {sides[1]}")]
        except self.error as error:
            raise BindError(f"the sides of UNION do not fit: {first_line(error)}", code="UQL211", span=span) from error

    def widest(self, one: str, other: str) -> str | None:
        """The type to which DuckDB casts both, None where it has none."""
        if one == other:
            return one
        both = f"SELECT {null_text(one)} AS x UNION ALL SELECT {null_text(other)}"
        try:
            return self.catalog.describe(both)[0][1]
        except self.error:
            return None

    def complaint(self, error: Exception, query: BoundSelect, scope: Scope) -> BindError:
        """DuckDB's error as ours, at the smallest part that DuckDB refuses by itself.

        Args:
            error: DuckDB's.
            query: that DuckDB refuses.
            scope: of the query's tables.
        """
        parts: list[Expr] = [item.expr for item in query.items]
        parts += [key.expr for key in query.group_by] + [key.expr for key in query.order_by]
        parts += [part for part in (query.where, query.having, query.qualify) if part is not None]
        stack: list[BoundSource] = [query.source] if query.source is not None else []
        while stack:
            top = stack.pop()
            if isinstance(top, BoundJoin):
                stack += [top.left, top.right]
                parts += [top.on] if top.on is not None else []
        for part in () if self.catalog.aborted() else parts:
            refusal = self._refusal(part, scope)
            if refusal is not None:
                span, message = refusal
                return BindError(message, code="UQL209", span=span, help=_instead(message, error))
        message = first_line(error)
        span = NO_SPAN
        if "GROUP BY" in message:  # the name of the column stands in quotes in DuckDB's message
            for part in parts:
                for node in walk(part):
                    if isinstance(node, Column) and f'"{node.name}"' in message and span == NO_SPAN:
                        span = node.span
        elif "aggregate" in message.lower():
            calls = [n for p in (query.where, *(k.expr for k in query.group_by), *parts) if p for n in walk(p)]
            aggregates = self.catalog.aggregates
            span = next((n.span for n in calls if isinstance(n, ast.Call) and n.name in aggregates), NO_SPAN)
        return BindError(message, code="UQL209", span=span, help=_instead(message, error))

    def _refusal(self, expr: Expr, scope: Scope) -> tuple[ast.Span, str] | None:
        """The smallest part of an expression that DuckDB refuses with NULLs for its columns, and why."""
        try:
            sql = expression(expr, self._null_column(scope, own=False), null_virtual, null_query)
            self.catalog.describe(f"SELECT {sql} AS x")
        except self.error as error:
            for child in children(expr):
                if isinstance(child, Expr) and not isinstance(child, ast.Lambda | ast.Named):
                    inner = self._refusal(child, scope)
                    if inner is not None:
                        return (inner[0] if inner[0].start >= 0 else expr.span), inner[1]
            return expr.span, first_line(error)
        return None

    def _null_column(self, scope: Scope, own: bool) -> Callable[[Column], str]:
        def column(c: Column) -> str:
            if own and (not c.table or scope.owns(c) or scope.outer is None or scope.outer.field_of(c) is None):
                return base_column(c)  # a column of FROM, the hidden side of a SEMI JOIN included
            field = scope.field_of(c)
            return null_text(field.type if field is not None else "VARCHAR")

        return column


_OF_MODELS = r"(?:(?:ai|sem|semantic|llm|nl|cortex|ollama|openai|open)_|nl(?=filter))(\w+)|"
_MODEL_FUNCTIONS = re.compile(
    rf"with name (?:{_OF_MODELS}(classify|sentiment|summari\w+|translate|embed\w*)|"
    r"(?:semantic|llm|ai|gpt|ask)(?:_?(?:query|ask|llm|model|prompt|gpt|ai))?|prompt|nl) ",
    re.IGNORECASE,
)
MODEL_SCHEMAS = ("ai", "ml", "cortex", "snowflake")  # AI.IF, ML.GENERATE_TEXT: functions of other systems
_MODEL_CALL = re.compile(rf"\b(?:{_OF_MODELS}(?:ai|ml|cortex)\.(\w+))\s*\(", re.IGNORECASE)
_NO_TYPE = re.compile(r"^Type with name (\w+) does not exist", re.IGNORECASE)
TYPES = (
    "BIGINT", "BLOB", "BOOLEAN", "DATE", "DECIMAL", "DOUBLE", "ENUM", "FLOAT", "HUGEINT", "INTEGER", "INTERVAL", "JSON", "NUMERIC", "REAL",
    "SMALLINT", "STRING", "STRUCT", "TEXT", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "TINYINT", "UBIGINT", "UINTEGER", "UUID", "VARCHAR",
)  # fmt: skip
_NO_FUNCTION = re.compile(r"with name (\w+) does not exist", re.IGNORECASE)
_CONDITION = 'WHERE "it is positive", with {column} in it to say what is read'
_SUMMARY = 'SELECT g, "what they say" FROM t GROUP BY g'
_ASKED = {  # a part of the function's name → how the question is written
    "classify": "\"the topic\" IN ('a', 'b') or \"the topic\"::ENUM('a', 'b')",
    "sentiment": "\"the mood\"::ENUM('positive', 'neutral', 'negative')",
    "join": 'JOIN … ON "… {a.x} … {b.y} …"',
    "score": 'ORDER BY "how good it is" DESC LIMIT 5',
    "topk": 'ORDER BY "how good it is" DESC LIMIT 5',
    "agg": _SUMMARY,
    "filter": _CONDITION,
    "if": _CONDITION,
    "bool": 'SELECT "it names a price"::BOOLEAN AS priced',
    "summari": 'SELECT "a summary in a line" AS summary',
    "embed": 'WHERE "it is about delays" LIMIT 10, which searches by embeddings',
    "similar": 'WHERE "it is about delays" LIMIT 10, which searches by embeddings',
    "translate": 'SELECT "the text in German" AS german',
    "": 'SELECT "the price that is named"::DOUBLE AS price',
}


def _instead(message: str, error: Exception) -> str | None:
    """What to write in the place of what DuckDB refuses."""
    model_function = _MODEL_FUNCTIONS.search(message)
    if model_function is not None:
        return asked_instead(model_function.group(1) or model_function.group(2) or "")
    no_type = _NO_TYPE.search(message)
    if no_type is not None:
        return suggestion(no_type.group(1), TYPES).strip() or None
    missing = _NO_FUNCTION.search(message)
    if missing is not None and (own := own_function(missing.group(1))):
        return own
    if "struct_extract(JSON" in message:
        return "a field of JSON is written x->>'$.field'"
    if "struct_extract(" in message:
        return 'x."…" is a field of a struct; a text that reads a column is written "{column} …", or "…" USING (column)'
    if "ENUM type requires" in message or 'Type "list" requires' in message:
        return "labels are strings: ENUM('a', 'b'); a list is written VARCHAR[]"
    if ("explicit type casts" in message and "VARCHAR" in message) or "deduce template type" in message:
        kind = "DATE" if " DATE" in str(error) and " DOUBLE" not in str(error) else "DOUBLE"
        return f'a text is VARCHAR where nothing says otherwise: cast it where it is written, "…"::{kind}; a column x::{kind}'
    if "explicit type casts" in message and "(BOOLEAN" in message:
        return "what is true or false is not a number: x::INTEGER is 1 or 0, count(*) FILTER (WHERE x) counts"
    if "Cannot mix values" in message and "BETWEEN" in message:
        return "a value and its bounds have one type: cast those of another, as in x::DOUBLE BETWEEN 3 AND y::DOUBLE"
    if "Cannot mix values" in message:
        return f"the values of CASE have one type: {ONE_TYPE}"
    if "GROUP BY clause" in message:
        return "add the column to GROUP BY, or write any_value(…), min(…) or list(…) of it"
    if "cannot contain aggregates" in message:
        return "a condition on groups stands in HAVING"
    if called := _CALLED.search(message):
        takes = get_close_matches(called.group(1), _CANDIDATES.findall(str(error)), 1, 0.0)
        return f"DuckDB has {takes[0]}" if takes else None
    near = _SUGGESTED.search(str(error))
    if near is None or (missing and not get_close_matches(missing.group(1).lower(), [near.group(1).lower()], 1, 0.75)):
        return None
    return f"did you mean {near.group(1)}?"


_CALLED = re.compile(r"No function matches the given name and argument types '(.*)'")
_CANDIDATES = re.compile(r"^\t(\w+\(.*\)) -> ", re.MULTILINE)
_SUGGESTED = re.compile(r'^Did you mean "(?:\w+\.)?(\w+)', re.MULTILINE)


def asked_instead(function: str) -> str:
    """How to ask in the place of a function of another system: filter, classify, generate_text …"""
    words = function.lower()
    way = next(way for part, way in _ASKED.items() if part in words) if words else _CONDITION
    return f"a text in double quotes asks the model: {way}"


def other_model_call(text: str) -> str | None:
    """How to ask in the place of a function of another system that a statement calls: AI.IF(…), llm_filter({…}).

    >>> other_model_call("SELECT * FROM t WHERE AI.IF(prompt => ('is it good? ', body))")
    'a text in double quotes asks the model: WHERE "it is positive", with {column} in it to say what is read'
    """
    call = _MODEL_CALL.search(text)
    return asked_instead(call[1] or call[2]) if call is not None else None


def several_columns(query: BoundSelect) -> BindError:
    """unnest of a struct, or of a list of structs with recursive or max_depth."""
    calls = (
        node for item in query.items for node in walk(item.expr) if isinstance(node, ast.Call) and node.name == "unnest"
    )
    span = next((call.span for call in calls), NO_SPAN)
    return BindError(
        "unnest(…) gives several columns here",
        code="UQL212",
        span=span,
        help="of structs in a list: SELECT s.* FROM (SELECT unnest(list) AS s FROM t)",
    )


def null_query(query: ast.Query) -> str:
    """A sub-query as one row of NULLs of its types: it was judged by itself."""
    assert isinstance(query, Bound)
    items = ", ".join(f"{null_text(item.type)} AS {quote(item.name)}" for item in query.query.items)
    return f"SELECT {items}"


def _asks_alone(where: Expr) -> bool:
    """Is a WHERE made of texts alone, with AND, OR and NOT?"""
    match where:
        case ast.Binary(op="AND" | "OR"):
            return _asks_alone(where.left) and _asks_alone(where.right)
        case ast.Unary(op="NOT"):
            return _asks_alone(where.operand)
    return isinstance(where, Virtual) and value_type(where.column) == "BOOLEAN"


def without_rows(source: BoundSource) -> BoundSource:
    """The same FROM clause over tables of no rows, so that describing it opens no file."""

    def empty(leaf: BoundTable | BoundDerived) -> BoundTable:
        fields = leaf.table.readable if isinstance(leaf, BoundTable) else leaf.fields
        return BoundTable(_empty(leaf.alias, fields), leaf.alias)

    return with_leaves(source, empty)


def _empty(name: str, fields: tuple[Field, ...]) -> Table:
    items = ", ".join(f"{null_text(f.type)} AS {quote(f.name)}" for f in fields)
    return Table(name, f"(SELECT {items})", fields)


def _virtual_table(virtuals: list[VirtualColumn]) -> str:
    virtuals = [*virtuals, *(replace(v, moment=True) for v in virtuals if v.is_condition)]
    items = ", ".join(f"{null_virtual(v)} AS {quote(v.name)}" for v in virtuals)
    return f"(SELECT {items}) AS __virtual"


def first_line(error: Exception) -> str:
    """What DuckDB says, without its kind, its candidates and its copy of the statement."""
    line = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    kind, _, rest = line.partition("Error: ")
    return rest if rest and len(kind) < 30 else line
