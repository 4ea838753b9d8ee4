"""The physical plan: a SELECT is a `Block` of operators, a UNION a plan over two plans.

An operator is a record: its expressions, the requests that it sends to the model in their order, and the line that EXPLAIN prints. A block
runs one DuckDB SQL text that gives the candidate rows, then its stages, then one DuckDB SQL text that finishes. A `Stage` is one
request a row, with every question that rides along: an order of clauses is a permutation of stages, a fusion is a merging of two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from uql.compiler.bound import Bound, BoundItem, BoundQuery, BoundSelect, BoundSource, BoundTable
from uql.compiler.expression_text import describe_source, show
from uql.compiler.formula import Formula
from uql.compiler.subqueries import leaves
from uql.compiler.syntax import Column, Expr, OrderKey
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.compiler.walk import has_window, is_semantic, needs_every_row


class Goal(StrEnum):
    """How many rows have to be asked before the block can answer."""

    EVERY = "every row"  # each needs a value
    FIRST = "the first k that pass"  # LIMIT stops the filter
    SEARCH = "rows that pass"  # all of them, or as many as the budget finds
    ESTIMATE = "aggregates"  # a sample will do, with an interval


@dataclass(frozen=True, slots=True)
class Stage:
    """One request a row: the values of these virtual columns, which read the same columns.

    `riders` are asked along with them and needed only of rows that pass: they never make a row be asked, and a group among them
    rides once its taxonomy is there. `rows` rows share one request, 1: each has its own; `apart`: as decisions of their own.
    `whole`: videos are shown as files, not frame by frame. `cost` is that of one row beside the block's other stages.
    """

    columns: tuple[VirtualColumn, ...]
    riders: tuple[VirtualColumn, ...] = ()
    rows: int = 1
    apart: bool = False
    whole: bool = False
    cost: float = field(default=1.0, compare=False)

    @property
    def line(self) -> str:
        """Its questions, each with the type of its answer."""
        return ", ".join(map(_question, (*self.columns, *self.riders)))

    @property
    def notes(self) -> tuple[str, ...]:
        """How its questions and rows share requests, where they do."""
        if self.whole:
            return ("videos are sent whole",)
        if self.rows > 1:
            return (f"{self.rows} rows a request" + ("" if self.apart else ": answers have no probabilities"),)
        return ("one request a row",) if len(self.columns) + len(self.riders) > 1 else ()

    @property
    def reads(self) -> tuple[Column, ...]:
        return self.columns[0].reads

    @property
    def of_pairs(self) -> bool:
        """Is it asked of pairs of rows? It is then the only question of its stage."""
        return self.columns[0].of_pairs

    @property
    def input_columns(self) -> tuple[Column, ...]:
        """All columns whose values go with a request: those read, and those in holes."""
        return tuple(dict.fromkeys(c for column in self.columns for c in column.inputs))


def _question(column: VirtualColumn) -> str:
    """A quoted text with the type of its answer."""
    if column.is_condition or column.of_pairs:
        type = ""
    elif column.is_score:
        type = " score"
    elif column.is_label and column.labels:
        labels = ", ".join(f"'{label}'" for label in column.labels)
        type = f" one of {labels}" + (" or none of these" if column.none_of_these else "")
    else:
        type = " one of the labels of a sub-query" if column.is_label else f" {column.type}"
    return f'{"TRY " if column.attempt else ""}"{column.text}"{type}'


Stages = tuple[Stage, ...]


def stages(columns: tuple[VirtualColumn, ...]) -> tuple[Stage, ...]:
    """One stage for each set of columns shown: questions about the same cells of a row travel in one request, those of pairs apart."""
    by_columns: dict[tuple[object, ...], list[VirtualColumn]] = {}
    for column in columns:
        key = (column.shown, column.id) if column.of_pairs else (column.shown,)
        by_columns.setdefault(key, []).append(column)
    return tuple(Stage(tuple(group)) for group in by_columns.values())


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """Base of all physical nodes."""


@dataclass(frozen=True, slots=True)
class SqlQuery(PhysicalPlan):
    """A query with nothing semantic in it: DuckDB's own."""

    query: BoundQuery


@dataclass(frozen=True, slots=True)
class OuterJoin:
    """A join on a semantic condition that cannot become a filter, whose pairs are asked before the block's other stages.

    LEFT, RIGHT, FULL, SEMI or ANTI; INNER and CROSS where they stand on a side of such a join, or over one.
    """

    kind: str
    left: BoundSource | OuterJoin
    right: BoundSource | OuterJoin
    pairs: Expr | None  # the concrete terms of ON: DuckDB makes the pairs
    formula: Formula | None  # None: DuckDB alone decides
    stages: tuple[Stage, ...]
    left_where: Expr | None = None  # concrete terms of WHERE, applied before there are pairs
    right_where: Expr | None = None


@dataclass(frozen=True, slots=True)
class Correlated:
    """A sub-query with quoted texts that reads columns of the block around it: its pairs with the block's rows are asked.

    Those that pass are a table, over which DuckDB answers the sub-query for each row of the block.
    """

    part: Bound  # as it stands in the expressions of the block
    query: BoundSelect
    source: BoundSource
    derived: tuple[tuple[str, PhysicalPlan], ...]  # semantic sub-queries of its FROM by alias, run first
    own: Expr | None  # concrete terms on its own columns
    pairs: Expr | None  # concrete terms that name columns of the block
    formula: Formula | None
    stages: tuple[Stage, ...]
    values: tuple[Stage, ...]  # asked of the pairs that pass
    columns: tuple[Column, ...]  # that its pairs need


@dataclass(frozen=True, slots=True)
class PerValue:
    """A sub-query with quoted texts that reads columns of the block around it and is more than a filter over pairs of rows.

    It is run once for each distinct row of these columns, with that row beside its FROM clause.
    """

    part: Bound  # as it stands in the expressions of the block
    columns: tuple[Column, ...]  # of the block around it, that it reads
    plan: PhysicalPlan  # over all these rows at once: what EXPLAIN shows and prices
    each: PhysicalPlan = field(compare=False)  # over one of them, which stands in temporary views
    views: tuple[tuple[str, str], ...] = field(compare=False)  # the alias that the columns have, and the view's name


# ------------------------------------------------------------------------------------------------ the operators of a SELECT
@dataclass(frozen=True, slots=True)
class Scan:
    """The candidate rows: what DuckDB joins and filters, in one SQL text, or the rows of a join that a model decides."""

    source: BoundSource | None = None  # joined by DuckDB; None for a SELECT without FROM
    join: OuterJoin | None = None  # in place of `source`
    where: Expr | None = None  # concrete condition, part of the SQL
    columns: tuple[Column, ...] = ()  # that the operators above read

    @property
    def line(self) -> str:
        """What DuckDB reads, and its condition; the join has lines of its own."""
        where = f" WHERE {show(self.where)}" if self.where is not None else ""
        return where.strip() if self.join is not None else describe_source(self.source) + where

    @property
    def tables(self) -> str:
        """The tables of the rows, as the events of a run name them."""
        if self.join is not None:
            return f"{self.join.kind} join"
        names = (leaf.table.name if isinstance(leaf, BoundTable) else leaf.alias for leaf in leaves(self.source))
        return ", ".join(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class SubQueries:
    """The semantic sub-queries of a SELECT, which are run before its candidates are read, or once these are there."""

    derived: tuple[tuple[str, PhysicalPlan], ...] = ()  # of FROM by alias
    nested: tuple[tuple[Bound, PhysicalPlan], ...] = ()  # in expressions
    correlated: tuple[Correlated, ...] = ()  # they read columns of this SELECT: their pairs with its rows are asked
    repeated: tuple[PerValue, ...] = ()  # they read columns of this SELECT, and are run once for each value


@dataclass(frozen=True, slots=True)
class SemFilter:
    """Keeps the candidates for which what is left of WHERE is true; `stages` are its requests in their order."""

    formula: Formula | None = None  # None: every candidate passes
    stages: tuple[Stage, ...] = ()
    goal: Goal = Goal.EVERY
    terms: tuple[str, ...] = ()  # the name of each leaf of the formula in the statistics of earlier queries
    name: str = ""  # that of the whole condition

    @property
    def line(self) -> str:
        """What is left of WHERE, as a person writes it."""

        def join(op: str, *sides: tuple[str, int]) -> tuple[str, int]:
            own = 1 if op == "AND" else 0
            return f" {op} ".join(f"({text})" if level < 2 and level != own else text for text, level in sides), own

        def negate(one: tuple[str, int]) -> tuple[str, int]:
            text, level = one
            return (f"NOT {text}" if level == 3 else f"NOT ({text})"), 2

        assert self.formula is not None
        leaves = self.formula.leaves
        return self.formula.fold(lambda i: (show(leaves[i].expr), 3), negate, join)[0]

    @property
    def columns(self) -> tuple[VirtualColumn, ...]:
        """What is asked of rows to decide whether they pass."""
        return tuple(column for stage in self.stages for column in stage.columns)

    @property
    def riders(self) -> frozenset[int]:
        """The ids of the virtual columns that every row that passes has from the request of its WHERE."""
        return frozenset(c.id for stage in self.stages for c in stage.riders)

    def rates(self, tallies: Mapping[str, tuple[int, int]]) -> tuple[float, ...] | None:
        """The share of rows for which each term is true, None where one is unknown. `tallies`: answers and true ones by term."""
        counts = [tallies[name] for name in self.terms if name in tallies]
        every = bool(self.terms) and len(counts) == len(self.terms)
        return tuple((yes + 1) / (n + 2) for n, yes in counts) if every else None

    def left_over(self, stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        """What is still to be asked of a row that has passed: the stages without what rode along with its WHERE."""
        rest = (replace(s, columns=tuple(c for c in s.columns if c.id not in self.riders)) for s in stages)
        return tuple(stage for stage in rest if stage.columns)

    def riding(self, stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        """Of these stages those that take no call of their own for a row of which WHERE was asked: all that they ask rode along."""
        return tuple(stage for stage in stages if all(c.id in self.riders for c in stage.columns))


@dataclass(frozen=True, slots=True)
class Values:
    """Values of the rows that pass, and the groups that a text puts them in."""

    groups: tuple[VirtualColumn, ...] = ()  # taxonomies over the rows that pass
    stages: tuple[Stage, ...] = ()  # asked of every row that passes: values, and groups once their taxonomy is there
    late: tuple[Stage, ...] = ()  # asked of the rows that LIMIT returns only

    def groups_line(self, stage: Stage) -> str:
        """The groups that a stage asks for, and the values asked with them."""
        groups = [column for column in stage.columns if column in self.groups]
        others = tuple(column for column in stage.columns if column not in groups)
        into = [f" INTO {c.into}" if c.into else "" for c in groups]
        texts = (f'"{c.text}"{i}{" MANY" if c.many else ""}' for c, i in zip(groups, into, strict=True))
        return ", ".join(texts) + (f" with {Stage(others).line}" if others else "")


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row a group, where `present`: there is a GROUP BY, or an aggregate."""

    present: bool = False
    keys: tuple[BoundItem, ...] = ()
    sets: tuple[tuple[int, ...], ...] = ()  # of the keys' places: GROUPING SETS
    having: Expr | None = None

    @property
    def line(self) -> str:
        """BY and the keys, as EXPLAIN prints them after the items."""
        if self.sets:
            return " BY " + ", ".join(f"({', '.join(self.keys[i].name for i in one)})" for one in self.sets)
        return f" BY {', '.join(key.name for key in self.keys)}" if self.keys else ""


@dataclass(frozen=True, slots=True)
class Summaries:
    """Answers about whole groups."""

    columns: tuple[VirtualColumn, ...] = ()
    where: Expr | None = None  # of the groups, those that are asked; None: all
    returned_only: bool = False  # only of the groups that LIMIT returns

    @property
    def line(self) -> str:
        return Stage(self.columns).line

    def notes(self, grouped: bool) -> tuple[str, ...]:
        """Of which groups they are."""
        notes = ["a summary of each group" if grouped else "a summary of all rows"]
        if self.where is not None:
            notes.append(f"of groups where {show(self.where)}")
        if self.returned_only:
            notes.append("of the groups returned only")
        return tuple(notes)


@dataclass(frozen=True, slots=True)
class Project:
    """The columns of the result."""

    items: tuple[BoundItem, ...] = ()
    distinct: bool = False
    qualify: Expr | None = None  # keeps rows, or groups, after windows are computed

    @property
    def line(self) -> str:
        """The items, each with its name where that says more."""
        return ", ".join(_named(item.name, show(item.expr)) for item in self.items)


@dataclass(frozen=True, slots=True)
class Order:
    """ORDER BY and LIMIT."""

    keys: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def line(self) -> str:
        """ORDER BY, with what a score's direction means."""
        return ", ".join(map(_key, self.keys))

    @property
    def limit_line(self) -> str:
        """LIMIT and OFFSET; empty where there is neither."""
        if self.limit is None and not self.offset:
            return ""
        return (f"{self.limit:,}" if self.limit is not None else "all") + (
            f" OFFSET {self.offset:,}" if self.offset else ""
        )

    @property
    def by_score(self) -> bool:
        """Does a quoted text order the rows?"""
        return any(_is_score(key.expr) for key in self.keys)

    @property
    def rows_needed(self) -> int | None:
        """Rows that must be certain before LIMIT is satisfied."""
        return None if self.limit is None else self.limit + self.offset


def _named(name: str, text: str) -> str:
    """An item, with AS where its name is neither its text nor the last part of it."""
    last = text.strip('"').rpartition('."' if text.endswith('"') else ".")[2]
    same = name.lower() in (text.strip('"').lower(), last.lower())
    return text if same or not name.isidentifier() else f"{text} AS {name}"


def _key(key: OrderKey) -> str:
    words = f" ({'highest' if key.descending else 'lowest'} first)" if _is_score(key.expr) else ""
    return show(key.expr) + (" DESC" if key.descending else "") + words


def _is_score(expr: Expr) -> bool:
    return isinstance(expr, Virtual) and expr.column.is_score


@dataclass(frozen=True, slots=True)
class Block(PhysicalPlan):
    """One SELECT: its operators in the order in which rows pass through them. One that has nothing to do is empty."""

    scan: Scan
    inner: SubQueries
    filter: SemFilter
    values: Values
    aggregate: Aggregate
    summaries: Summaries
    project: Project
    order: Order

    @property
    def requests(self) -> tuple[Stage, ...]:
        """Every request for a row: those of WHERE, of the rows that pass, and of the rows returned."""
        return (*self.filter.stages, *self.values.stages, *self.values.late)

    @property
    def expressions(self) -> tuple[Expr | None, ...]:
        """Every expression that is evaluated over the candidates, but for what DuckDB decides first."""
        leaves = [leaf.expr for leaf in self.filter.formula.leaves] if self.filter.formula is not None else []
        return (*leaves, *(key.expr for key in self.aggregate.keys), *self.output)

    @property
    def output(self) -> tuple[Expr | None, ...]:
        """The expressions over the rows that pass, or over their groups: the items, and what chooses and orders them."""
        return (*self._returned, self.aggregate.having, self.project.qualify)

    def with_requests(
        self, filter: Stages | None = None, values: Stages | None = None, late: Stages | None = None
    ) -> Block:
        """The block with other requests; None: as they are.

        Args:
            filter: of the WHERE.
            values: of what the output or the aggregates read.
            late: of what is read after LIMIT.
        """
        own = self.filter, self.values
        return replace(
            self,
            filter=replace(own[0], stages=own[0].stages if filter is None else filter),
            values=replace(
                own[1],
                stages=own[1].stages if values is None else values,
                late=own[1].late if late is None else late,
            ),
        )

    @property
    def has_window(self) -> bool:
        """Does a row returned depend on the others that pass?"""
        return self.project.qualify is not None or has_window(*self._returned)

    @property
    def needs_every_row(self) -> bool:
        """Do the rows returned depend on rows that LIMIT drops: by a window, QUALIFY, or an item that gives several rows?"""
        return self.project.qualify is not None or needs_every_row(*self._returned)

    @property
    def counts_items(self) -> bool:
        """Does LIMIT count what only the answers tell, and is the order of the rows known before? The items of lists that the rows
        have, or the different rows of DISTINCT."""
        if self.order.limit is None or self.aggregate.present or self.has_window:
            return False
        if self.project.distinct:
            asked = any(is_semantic(item.expr) for item in self.project.items)
            return asked and not (self.order.keys or self.filter.formula or self.needs_every_row)
        keys = [key.expr for key in self.order.keys]
        return self.needs_every_row and not (needs_every_row(*keys) or any(map(is_semantic, keys)))

    @property
    def stops_at_first(self) -> bool:
        """Is one row that passes enough for all with its output: DISTINCT columns that rows are chosen for by a text about one row?"""
        items = tuple(item.expr for item in self.project.items)
        return (
            self.project.distinct
            and self.filter.formula is not None
            and all(isinstance(item, Column) for item in items)
            and all(key.expr in items for key in self.order.keys)
            and not self.has_window
            and not any(column.is_pair_condition for column in self.filter.columns)
        )

    @property
    def _returned(self) -> tuple[Expr, ...]:
        return (*(i.expr for i in self.project.items), *(k.expr for k in self.order.keys))


def inner_plans(block: Block) -> tuple[PhysicalPlan, ...]:
    """The plans of the queries in a block that are run before it."""
    parts = (*block.inner.derived, *(own for part in block.inner.correlated for own in part.derived))
    return (
        *(plan for _, plan in parts),
        *(plan for _, plan in block.inner.nested),
        *(part.plan for part in block.inner.repeated),
    )


def asked_joins(block: Block) -> tuple[OuterJoin | Correlated, ...]:
    """What makes pairs that are asked, in the order in which it runs."""

    def inside(side: BoundSource | OuterJoin | None) -> tuple[OuterJoin, ...]:
        return (*inside(side.left), *inside(side.right), side) if isinstance(side, OuterJoin) else ()

    return (*inside(block.scan.join), *block.inner.correlated)


@dataclass(frozen=True, slots=True)
class UnionPlan(PhysicalPlan):
    left: PhysicalPlan
    right: PhysicalPlan
    all: bool
    items: tuple[BoundItem, ...]
    order: Order
    op: str = "UNION"


def asking(*plans: PhysicalPlan, before: Iterable[PhysicalPlan] = ()) -> int:
    """Blocks of these plans, each once, that ask a model; but for those of plans that run `before` them."""
    asks_by_id: dict[int, bool] = {}

    def visit(plan: PhysicalPlan) -> None:
        if id(plan) in asks_by_id:
            return
        asks_by_id[id(plan)] = isinstance(plan, Block) and asks(plan)
        if isinstance(plan, UnionPlan):
            visit(plan.left)
            visit(plan.right)
        elif isinstance(plan, Block):
            for inner in inner_plans(plan):
                visit(inner)

    for plan in before:
        visit(plan)
    asked_before = sum(asks_by_id.values())
    for plan in plans:
        visit(plan)
    return sum(asks_by_id.values()) - asked_before


def asks(block: Block) -> bool:
    """Does the block itself ask a model, the queries in it apart?"""
    pairs = any(part.stages or (isinstance(part, Correlated) and part.values) for part in asked_joins(block))
    return pairs or bool(block.requests or block.summaries.columns)
