"""The abstract syntax tree: what a UQL text says, before names mean anything.

Every node is frozen and compares without its span, so `parse(unparse(ast)) == ast` can be tested. A double-quoted text whose
reading depends on the names in scope is a `Quoted`; the binder replaces it by a `Column`, or by a `Virtual`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from uql.base.errors import Span as Span

NO_SPAN = Span(-1, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


class Expr(Node):
    """An expression: has a value for a row or for a group."""

    __slots__ = ()


# ---------------------------------------------------------------------------------------------------------- expressions
@dataclass(frozen=True, slots=True)
class Name(Expr):
    """A name, dotted or not, as written: `stars`, `r.stars`, `r."the column"`. `parts` holds the names without quotes."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Position(Expr):
    """#2: the second column of the FROM clause, in ORDER BY the second SELECT item."""

    text: str


@dataclass(frozen=True, slots=True)
class Quoted(Expr):
    """A double-quoted text where a column may stand: a column in scope or a virtual column, which the binder settles."""

    text: str  # escapes of the quotes resolved (\" "" \\); holes {x} and {{ }} are kept as written
    using: tuple[Name, ...] = ()  # "…" USING (a, b): the columns shown to the model
    forced: bool = False  # PROMPT "…": a virtual column whatever is in scope


@dataclass(frozen=True, slots=True)
class Number(Expr):
    """An unsigned numeric literal, kept as written."""

    text: str


@dataclass(frozen=True, slots=True)
class String(Expr):
    """A string: 'single-quoted', or a double-quoted text in the place of a string (`double`, as in the paper)."""

    value: str
    double: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Null(Expr):
    pass


@dataclass(frozen=True, slots=True)
class Boolean(Expr):
    value: bool


@dataclass(frozen=True, slots=True)
class TypedLiteral(Expr):
    """DATE '2024-01-01', TIMESTAMP '…', INTERVAL '3 days'."""

    type: str
    value: str


@dataclass(frozen=True, slots=True)
class Parameter(Expr):
    """$name"""

    name: str


@dataclass(frozen=True, slots=True)
class Star(Expr):
    """`*` or `t.*`, as a SELECT item or in COUNT(*), with what a SELECT item leaves out, computes anew and calls otherwise."""

    table: str | None = None
    exclude: tuple[tuple[str, ...], ...] = ()  # columns, perhaps with their table
    replaced: tuple[SelectItem, ...] = ()  # REPLACE (x + 1 AS x)
    renamed: tuple[tuple[str, str], ...] = ()  # RENAME (old AS new)


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    op: str  # '-', '+', '~', 'NOT'
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """`op` is one of AND OR = <> < <= > >= + - * / // % ^ || & | << >> -> ->> COLLATE (upper case; != is read as <>, ** as ^)."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Like(Expr):
    operand: Expr  # of a SELECT item a `Star` too: the columns with such a name
    pattern: Expr
    op: str = "LIKE"  # LIKE, ILIKE, GLOB, ~, ~*; SIMILAR TO of a star alone
    negated: bool = False
    escape: Expr | None = None

    @property
    def operator(self) -> str:
        """As it is written: NOT LIKE, !~ …"""
        if not self.negated:
            return self.op
        return f"!{self.op}" if self.op.startswith("~") else f"NOT {self.op}"


@dataclass(frozen=True, slots=True)
class InList(Expr):
    operand: Expr
    items: tuple[Expr, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class InQuery(Expr):
    operand: Expr
    query: Query
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Expr):
    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull(Expr):
    operand: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsDistinct(Expr):
    """a IS [NOT] DISTINCT FROM b, and a IS [NOT] TRUE / FALSE (then `right` is a Boolean and `op` IS)."""

    left: Expr
    right: Expr
    negated: bool = False
    op: str = "DISTINCT"  # DISTINCT, IS


@dataclass(frozen=True, slots=True)
class When(Node):
    condition: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Case(Expr):
    operand: Expr | None
    whens: tuple[When, ...]
    default: Expr | None = None


@dataclass(frozen=True, slots=True)
class TypeName(Node):
    """A type by the name that DuckDB has for it, upper case, with what stands in its parentheses.

    `ENUM('a','b')` has labels; `STRUCT(id VARCHAR, total DOUBLE)` has fields, MAP(VARCHAR, DOUBLE) two without names; `DECIMAL(10,2)` has
    sizes; `VARCHAR[]` has dims (None,), `FLOAT[3][]` (3, None).
    """

    name: str
    sizes: tuple[int, ...] = ()
    labels: tuple[str, ...] = ()
    fields: tuple[tuple[str | None, TypeName], ...] = ()
    dims: tuple[int | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """CAST(x AS type), TRY_CAST(x AS type), x::type."""

    operand: Expr
    type: TypeName
    lenient: bool = False  # TRY_CAST


@dataclass(frozen=True, slots=True)
class Window(Node):
    """What stands in OVER (…). A window with a name in WINDOW name AS (…) is put in the place of its name by the grammar."""

    partition_by: tuple[Expr, ...] = ()
    order_by: tuple[OrderKey, ...] = ()
    frame: str = ""  # ROWS BETWEEN 2 PRECEDING AND CURRENT ROW, as written, in upper case
    name: str = ""  # OVER name, while the statement is parsed


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A function or aggregate call; `name` in lower case. COUNT(*) has `Star()` as its only argument."""

    name: str
    args: tuple[Expr, ...] = ()
    distinct: bool = False
    order_by: tuple[OrderKey, ...] = ()  # string_agg(x, ',' ORDER BY y)
    filter: Expr | None = None  # FILTER (WHERE …)
    over: Window | None = None
    ignore_nulls: bool = False  # first_value(x IGNORE NULLS) OVER (…)


@dataclass(frozen=True, slots=True)
class Try(Expr):
    """TRY "…": a STRUCT(value, error) in place of a NULL and an error row."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Exists(Expr):
    query: Query


@dataclass(frozen=True, slots=True)
class ScalarQuery(Expr):
    """(SELECT …) as a value."""

    query: Query


@dataclass(frozen=True, slots=True)
class Quantified(Expr):
    """x > ALL (SELECT …), x = ANY (SELECT …); without an operand ARRAY (SELECT …)."""

    query: Query
    word: str  # ALL, ANY, ARRAY
    op: str = ""
    operand: Expr | None = None


@dataclass(frozen=True, slots=True)
class ListExpr(Expr):
    """[a, b, c]"""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Subscript(Expr):
    """x[i], x[low:high], x[low:high:step]; a slice has a `high`, a `step` or `slice` alone: x[:]."""

    operand: Expr
    low: Expr | None = None
    high: Expr | None = None
    step: Expr | None = None
    slice: bool = False


@dataclass(frozen=True, slots=True)
class Lambda(Expr):
    """lambda x, y: body, and x -> body: the argument of a function over lists. Its names mean the list's items."""

    names: tuple[str, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class Named(Expr):
    """An argument by name: f(a := x)."""

    name: str
    value: Expr


# -------------------------------------------------------------------------------------- expressions made by the binder
@dataclass(frozen=True, slots=True)
class SameThing(Expr):
    """The key of DISTINCT ON "the same product": a number that rows share of which a model says so. `only_key`: it is the only key."""

    text: Quoted
    only_key: bool = True


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """A column that the binder found: `table` is the alias in scope, `name` as the table spells it."""

    table: str
    name: str

    @property
    def label(self) -> str:
        return f"{self.table}.{self.name}" if self.table else self.name


# -------------------------------------------------------------------------------------------------------------- clauses
@dataclass(frozen=True, slots=True)
class SelectItem(Node):
    expr: Expr
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class GroupKey(Node):
    """One key; ROLLUP, CUBE and GROUPING SETS are calls of these names ("grouping_sets"), several keys together a call of row."""

    expr: Expr
    alias: str | None = None
    into: int | None = None  # GROUP BY "…" INTO 5
    many: bool = False  # GROUP BY "…" MANY


@dataclass(frozen=True, slots=True)
class OrderKey(Node):
    expr: Expr
    descending: bool = False
    nulls: str | None = None  # FIRST, LAST
    directed: bool = field(default=False, compare=False)  # is ASC or DESC written?


class Source(Node):
    """What may stand after FROM."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TableName(Source):
    """A table, view, data frame of the caller, CTE, or (one part, `file`) the path of a CSV, JSON or Parquet file."""

    parts: tuple[str, ...]
    alias: str | None = None
    file: bool = False  # FROM 'reviews.csv'
    columns: tuple[str, ...] = ()  # AS t(a, b)
    sample: str = ""  # TABLESAMPLE: what stands behind it, in DuckDB's words


@dataclass(frozen=True, slots=True)
class TableFunction(Source):
    """FROM read_csv('x.csv', header = true), range(10) … and (VALUES (1, 'a'), …), whose rows are calls of row."""

    call: Call
    alias: str | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Derived(Source):
    """(SELECT …) AS alias"""

    query: Query
    alias: str | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Join(Source):
    """`kind` is INNER, LEFT, RIGHT, FULL, CROSS, SEMI, ANTI, POSITIONAL, ASOF or ASOF LEFT."""

    kind: str
    left: Source
    right: Source
    on: Expr | None = None
    using: tuple[str, ...] = ()
    natural: bool = False  # USING all the names that both sides have


@dataclass(frozen=True, slots=True)
class CommonTable(Node):
    """WITH name (columns) AS (query)"""

    name: str
    query: Query
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Option(Node):
    """One `name = constant` of WITH (…); a bare flag has the value True."""

    name: str
    value: bool | int | float | str | tuple[str, ...] | None


class Query(Node):
    """Something that gives rows: a Select or a Union."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Select(Query):
    items: tuple[SelectItem, ...]
    source: Source | None = None
    where: Expr | None = None
    group_by: tuple[GroupKey, ...] = ()
    having: Expr | None = None
    order_by: tuple[OrderKey, ...] = ()
    limit: Expr | None = None
    offset: Expr | None = None
    distinct: bool = False
    distinct_on: tuple[Expr, ...] = ()
    qualify: Expr | None = None
    percent: bool = False  # LIMIT n PERCENT
    ctes: tuple[CommonTable, ...] = ()
    to: str | None = None
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class Union(Query):
    """`left UNION [ALL] right`, INTERSECT and EXCEPT; ORDER BY and LIMIT after it belong to the whole."""

    left: Query
    right: Query
    all: bool = False
    op: str = "UNION"  # UNION, INTERSECT, EXCEPT
    by_name: bool = False
    order_by: tuple[OrderKey, ...] = ()
    limit: Expr | None = None
    offset: Expr | None = None
    ctes: tuple[CommonTable, ...] = ()
    to: str | None = None
    options: tuple[Option, ...] = ()
    percent: bool = False


# ----------------------------------------------------------------------------------------------------------- statements
@dataclass(frozen=True, slots=True)
class Explain(Node):
    """EXPLAIN (no calls), EXPLAIN ANALYZE (runs it), EXPLAIN SAMPLE n (pays for n rows); FORMAT text, json or mermaid."""

    statement: Query | CreateTable | Insert | CopyQuery | CreateSemanticTable | Refresh
    mode: str = "PLAN"  # PLAN, ANALYZE, SAMPLE
    sample: int | None = None
    format: str = "text"


@dataclass(frozen=True, slots=True)
class SetOption(Node):
    """SET uql.name = constant; RESET uql.name has the value None."""

    name: str
    value: bool | int | float | str | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class CreateTable(Node):
    """CREATE [OR REPLACE] [TEMP] TABLE [IF NOT EXISTS] name AS query"""

    name: tuple[str, ...]
    query: Query
    replace: bool = False
    temporary: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateSemanticTable(Node):
    """CREATE [OR REPLACE] SEMANTIC TABLE [IF NOT EXISTS] name AS query KEY (columns)"""

    name: tuple[str, ...]
    query: Query
    key: tuple[str, ...]
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class Refresh(Node):
    """REFRESH name: brings a semantic table up to date"""

    name: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropSemanticTable(Node):
    """DROP SEMANTIC TABLE [IF EXISTS] name"""

    name: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Insert(Node):
    """INSERT INTO name [(columns)] query"""

    name: tuple[str, ...]
    query: Query
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyQuery(Node):
    """COPY (query) TO 'path' [(options as written)]"""

    query: Query
    path: str
    options: str = ""


SemanticStatement = CreateSemanticTable | Refresh | DropSemanticTable
Statement = Query | Explain | SetOption | CreateTable | Insert | CopyQuery | SemanticStatement
