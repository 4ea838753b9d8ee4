"""CREATE SEMANTIC TABLE t AS SELECT … KEY (id), REFRESH t and DROP SEMANTIC TABLE t.

A definition whose every output row is made of one row of one table is refreshed row by row: only rows that are new, that have changed
in what the query reads, or that had no answer, are looked at. Any other is run again as a whole, and the ledger answers for rows that
it knows. Either way the columns and the groups of the first build stay, and what differs is written in one transaction at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa

from uql.base.config import needs_trust
from uql.base.duckdb_connections import current_database
from uql.base.errors import BindError, ConfigError, DataError, UnknownTableError, UQLError
from uql.base.sql_text import quote
from uql.compiler import planner, syntax
from uql.compiler.binder import bind
from uql.compiler.bound import BoundItem, BoundSelect, BoundStatement, BoundTable
from uql.compiler.cost import FREE
from uql.compiler.explain import Explained, Step, text
from uql.compiler.parser import parse
from uql.compiler.physical import Block
from uql.compiler.sql import query_sql
from uql.compiler.subqueries import expressions
from uql.compiler.syntax import Call, Column, CreateSemanticTable, DropSemanticTable, Query, Quoted, Refresh
from uql.compiler.unparse import unparse
from uql.compiler.walk import columns, is_semantic, needs_every_row, rewrite, walk
from uql.engine.outcome import Outcome
from uql.kernels.duck import Duck
from uql.kernels.finish import castable, null_columns
from uql.llm.run_record import Cost
from uql.session import semantic_store as store
from uql.session.events import DoneEvent, finished
from uql.session.execute_statement import execute
from uql.session.prepared import PreparedStatement
from uql.session.semantic_store import Changes, Definition
from uql.session.statements import refused
from uql.session.store_estimates import together
from uql.sources.frames import is_frame

if TYPE_CHECKING:
    from uql.base.schema import Table
    from uql.kernels.base import Context
    from uql.kernels.finish import Output
    from uql.kernels.kept_proxy import StatedSet
    from uql.session.session import Session
    from uql.session.statements import Piece

Statement = CreateSemanticTable | Refresh | DropSemanticTable


def run(session: Session, tree: Statement, piece: Piece) -> PreparedStatement:
    """Runs the statement; its result is one row of what changed.

    Args:
        piece: where it stands in the script.
    Raises: BindError (UQL203) where the name is taken, (UQL520) where there is no such semantic table, (UQL525) for parameters;
        DataError (UQL521) for a key that is NULL or not unique, (UQL522) where the definition no longer fits its sources, (UQL523) where
        the database is read-only; and what a query raises.
    """
    cursor, source = session.catalog.cursor, piece.script
    name = ".".join(tree.name)
    if current_database(cursor).read_only:
        raise DataError(
            f"the database is read-only, and {source.split()[0].upper()} writes to {name}",
            code="UQL523",
            help="open it without read_only; queries read the table as it is",
        )
    try:
        match tree:
            case DropSemanticTable():
                outcome = _drop(session, tree)
            case CreateSemanticTable():
                new = _new(session, tree, source, piece.frames)
                outcome = _change_report(tree.name[-1], None) if new is None else new.done(first=True)
            case Refresh():
                outcome = _old(session, tree).done(first=False)
    except UQLError as error:
        raise error.at(source) from None
    finally:
        session.emit(DoneEvent())
    gone = unparse(tree) if isinstance(tree, DropSemanticTable) else ""
    return PreparedStatement(
        lambda: outcome,
        lambda: gone or text(explained(session, Refresh(tree.name), piece)),
        lambda: FREE,
        source,
        session.store(source),
    )


def explained(session: Session, tree: CreateSemanticTable | Refresh, piece: Piece) -> Explained:
    """What the statement would do, with the plan of its query and the price. Makes no call and writes nothing.

    Args:
        piece: where it stands in the script.
    """
    step = Step("CREATE SEMANTIC TABLE" if isinstance(tree, CreateSemanticTable) else "REFRESH", ".".join(tree.name))
    nothing = Explained(step, (), FREE, None, ())
    work = _old(session, tree) if isinstance(tree, Refresh) else _new(session, tree, piece.script, piece.frames)
    if work is None:
        return nothing
    try:
        pending = work.look() if isinstance(tree, Refresh) else None
        if pending is None:
            return work.explained(work.bound).below(step)
        scope, rows, gone = pending
        notes = (f"{rows:,} rows new, changed or without an answer", f"{gone:,} gone")
        report = work.explained(work.limited_to(scope)).below(step) if rows else nothing
        return replace(report, step=replace(report.step, notes=notes))
    finally:
        work.duck.close()


# ---------------------------------------------------------------------------------------------------------- statements
def _drop(session: Session, piece: DropSemanticTable) -> Outcome:
    cursor = session.catalog.cursor
    existing = store.find(cursor, piece.name)
    if existing is None and piece.if_exists:
        return _change_report(piece.name[-1], None)
    definition = existing or store.needed(cursor, piece.name)
    with _transaction(cursor):
        store.drop(cursor, definition)
    return _change_report(definition.name, None)


def _new(session: Session, piece: CreateSemanticTable, source: str, frames: Mapping[str, object]) -> _Work | None:
    """What builds a table, checked; None where IF NOT EXISTS finds one."""
    cursor = session.catalog.cursor
    schema, name = store.named(cursor, piece.name)
    kind, before = store.kind_of(cursor, schema, name), store.find(cursor, piece.name)
    if kind is not None and piece.if_not_exists:
        return None
    if kind is not None and not (piece.replace and kind == "semantic"):
        how = "CREATE OR REPLACE SEMANTIC TABLE replaces it" if kind == "semantic" else "choose another name"
        raise BindError(
            f"there is a {kind.replace('semantic', 'semantic table')} {name} already", code="UQL203", help=how
        )
    _refuse_parameters(piece.query)
    _check_names(session, piece.query, schema)
    bound = _own_tables(session, piece.query, source, frames)
    key = tuple(_output(bound, column) for column in piece.key)
    names = [item.name.lower() for item in bound.query.items]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise BindError(
            f"two columns of the query are called {twice}", code="UQL525", help="give them names: … AS name"
        )
    text = _pinned(session, piece.query, bound)
    database = current_database(cursor).name
    definition = Definition(
        schema, name, text, key, by_row=_by_row(session, piece.query, bound, key), database=database
    )
    return _Work(session, definition, _bound(session, definition), before)


def _old(session: Session, piece: Refresh) -> _Work:
    """What refreshes a table."""
    definition = store.needed(session.catalog.cursor, piece.name)
    kind = store.kind_of(session.catalog.cursor, definition.schema, definition.name)
    if kind != "semantic":
        what = "was dropped or renamed" if kind is None else f"is another {kind} now"
        raise DataError(
            f"{definition.name} {what}; its definition is still kept",
            code="UQL522",
            help=f"DROP SEMANTIC TABLE {definition.name} removes it, CREATE SEMANTIC TABLE creates it again",
        )
    return _Work(session, definition, _bound(session, definition))


def _refuse_parameters(query: Query) -> None:
    for node in walk(query, queries=True):
        if isinstance(node, syntax.Parameter):
            raise BindError(
                f"${node.name}: the query of a semantic table is kept, and run again without parameters",
                code="UQL525",
                span=node.span,
                help="write the value in its place",
            )


def _check_names(session: Session, query: Query, schema: str) -> None:
    """Raises: BindError (UQL525) for a name that means another table here than it will in a table of this schema."""
    catalog, nodes = session.catalog, list(walk(query, queries=True))
    common = {node.name.lower() for node in nodes if isinstance(node, syntax.CommonTable)}
    for node in nodes:
        if isinstance(node, syntax.TableName) and not node.file and node.parts[-1].lower() not in common:
            here = catalog.path(node.parts)
            with catalog.home(schema):
                kept = catalog.path(node.parts)
            if here is not None and kept is not None and here != kept:
                raise BindError(
                    f"{node.parts[0]} is {'.'.join(here[here[0] != 'temp' :])} here, and {schema}.{kept[-1]} in a table of {schema}",
                    code="UQL525",
                    span=node.span,
                    help=f"write the schema: {schema}.{kept[-1]}",
                )


def _own_tables(session: Session, query: Query, source: str, frames: Mapping[str, object]) -> BoundStatement:
    """The bound query; a data frame is none of its tables, since it is gone when the session ends."""
    try:
        return bind(query, session.catalog, text=source, settings=session.settings)
    except UnknownTableError as error:
        table_name = error.message.rpartition(" ")[2]
        if is_frame(frames.get(table_name)):
            error.help = (
                f"{table_name} is a data frame of this session: CREATE TABLE name AS FROM {table_name} stores it first"
            )
        raise


def _output(bound: BoundStatement, name: str) -> str:
    names = [item.name for item in bound.query.items]
    for same in (lambda n: n == name, lambda n: n.lower() == name.lower()):
        if any(map(same, names)):
            return next(filter(same, names))
    raise BindError(f"KEY ({name}): the query has no column {name}", code="UQL202", help=f"columns: {', '.join(names)}")


def _bound(session: Session, definition: Definition) -> BoundStatement:
    """The query of a definition over its sources as they are now. Raises: DataError (UQL522) where it no longer fits."""
    text, name = definition.text, definition.name
    mend = f"mend the source, or CREATE OR REPLACE SEMANTIC TABLE {name} AS …"
    try:
        query = parse(text)
        if not isinstance(query, Query):
            raise DataError("it is not a query")
        with session.catalog.home(definition.schema):
            bound = bind(query, session.catalog, text=text, settings=session.settings)
    except UQLError as error:
        raise DataError(
            f"the definition of {name} no longer fits: {error.message}",
            code="UQL522",
            text=text,
            start=error.start,
            end=error.end,
            help=mend,
        ) from error
    _check_options(session, bound, name)
    if definition.by_row and not _by_row(session, query, bound, definition.key):
        raise DataError(
            f"the definition of {name} no longer fits: its rows are not those of one table",
            code="UQL522",
            text=text,
            help=mend,
        )
    return bound


def _check_options(session: Session, bound: BoundStatement, name: str) -> None:
    """Raises ConfigError (UQL416) for a setting of the definition that the user has not chosen and that asks for trust in a project's file:
    a database may be somebody else's."""
    others = {option: value for option, value in bound.options if value != getattr(session.settings, option)}
    permissions = needs_trust(others, session.settings)
    if permissions:
        raise ConfigError(
            f"the definition of {name} would {'; '.join(dict.fromkeys(permissions.values()))}: {', '.join(permissions)}",
            code="UQL416",
            help=f"if you want that, say so before: SET uql.{next(iter(permissions))}",
        )


# ------------------------------------------------------------------------------------------------------ what it is made of
def _by_row(session: Session, query: Query, bound: BoundStatement, key: tuple[str, ...]) -> bool:
    """Is every output row made of one row of one table, which the key names?"""
    select = bound.query
    if not isinstance(select, BoundSelect) or not isinstance(select.source, BoundTable) or not bound.semantic:
        return False
    if not isinstance(query, syntax.Select) or not isinstance(query.source, syntax.TableName) or query.source.sample:
        return False
    if select.aggregated or select.distinct or select.limit is not None or select.offset or select.qualify is not None:
        return False
    exprs = [e for e in expressions(select) if e is not None]
    nodes = [node for expr in exprs for node in walk(expr)]
    if needs_every_row(*exprs) or any(isinstance(node, Query) for expr in exprs for node in walk(expr, queries=True)):
        return False
    if any(not v.by_row or v.label_query is not None for v in select.virtuals):
        return False
    by_name = {item.name: item.expr for item in select.items}
    if not all(isinstance(by_name[k], Column) for k in key):
        return False
    calls = {node.name for node in nodes if isinstance(node, Call)}
    volatile = session.catalog.cursor.execute(
        "SELECT system.main.count(*) FROM system.main.duckdb_functions()"
        " WHERE system.main.list_contains(?, system.main.lower(function_name)) AND stability <> 'CONSISTENT'",
        [sorted(calls)],
    ).fetchall()
    return not volatile[0][0]


def _pinned(session: Session, query: Query, bound: BoundStatement) -> str:
    """The query as text, in which each quoted text says which columns it reads and * is written out: they stay the same when the
    source gets new ones."""
    plain = unparse(query)
    if not isinstance(bound.query, BoundSelect) or not isinstance(query, syntax.Select):
        return plain
    single_table = isinstance(bound.query.source, BoundTable)
    reads = {v.text: v.reads for v in bound.query.virtuals if v.reads and "{" not in v.text}

    def pinned(node: Any) -> Any:
        if isinstance(node, Quoted) and not node.using and node.text in reads:
            using = tuple(syntax.Name((c.name,) if single_table else (c.table, c.name)) for c in reads[node.text])
            return replace(node, using=using)
        return node

    text = unparse(rewrite(_written_out(query, bound.query) if single_table else query, pinned))
    try:
        again = bind(parse(text), session.catalog, text=text, settings=session.settings)  # type: ignore[arg-type]
    except UQLError:  # a place where USING cannot stand
        return plain
    assert isinstance(again.query, BoundSelect)
    same = [(v.text, v.reads, v.operator) for v in again.query.virtuals] == [
        (v.text, v.reads, v.operator) for v in bound.query.virtuals
    ]
    return text if same else plain


def _written_out(query: syntax.Select, bound: BoundSelect) -> syntax.Select:
    """The query with the columns of its table in the place of *."""
    stars = [i for i, item in enumerate(query.items) if isinstance(item.expr, syntax.Star)]
    if len(stars) != 1:
        return query
    (at,) = stars
    rest = len(query.items) - at - 1
    expansion = bound.items[at : len(bound.items) - rest]
    if not all(isinstance(item.expr, Column) and item.expr.name == item.name for item in expansion):
        return query  # * REPLACE or RENAME
    columns = tuple(syntax.SelectItem(syntax.Name((item.name,))) for item in expansion)
    return replace(query, items=(*query.items[:at], *columns, *query.items[at + 1 :]))


# ---------------------------------------------------------------------------------------------------------------- the work
@dataclass(slots=True)
class _Work:
    """One build or refresh."""

    session: Session
    definition: Definition
    bound: BoundStatement
    replaced: Definition | None = None  # that goes when this one is there
    duck: Duck = field(init=False)
    flagged: dict[str, pa.Table] = field(default_factory=dict)  # after the run, keys by what is noted of their rows
    groups: store.Groups = field(default_factory=dict)
    model: str = ""
    stated: StatedSet | None = field(init=False)  # of the rows that were not asked

    def __post_init__(self) -> None:
        self.duck, self.stated = self.session.kernel_duck(), self.definition.stated

    def done(self, *, first: bool) -> Outcome:
        """Does it, and tells what changed."""
        try:
            return self._done(first)
        finally:
            self.duck.close()

    def look(self) -> tuple[str, int, int] | None:
        """Of a table made row by row, the keys to be looked at, how many are candidates, and how many are gone; None: all."""
        if not self.definition.by_row:
            return None
        return store.scope_of(self.duck, self.definition, self._row_digests(), self._corrected_keys())

    def explained(self, bound: BoundStatement) -> Explained:
        """The plan and the price of the query, or of it over some rows."""
        return self.session.explanation(bound, self.session.settings.with_values(**dict(bound.options)))

    def _done(self, first: bool) -> Outcome:
        definition = self.definition
        if not first:
            store.check_columns(self.duck, definition)
        candidates = self._row_digests() if definition.by_row else None
        scope, pending = None, 1
        if candidates is not None and not first:
            scope, pending, _ = store.scope_of(self.duck, definition, candidates, self._corrected_keys())
        if definition.columns:
            self._check_items()
        bound = self.bound if scope is None else self.limited_to(scope)
        outcome = self._run(bound) if pending else None
        if outcome is not None and outcome.partial:
            outcome.notes.append(
                f"{definition.name} is as it was: what was answered is kept, and the next REFRESH goes on from there"
            )
            return _change_report(definition.name, None, outcome)
        with _transaction(self.session.catalog.cursor):
            changes = self._written(outcome, candidates, scope, first)
        return _change_report(definition.name, changes, outcome)

    def _written(self, outcome: Outcome | None, candidates: str | None, scope: str | None, first: bool) -> Changes:
        cursor, definition = self.session.catalog.cursor, self.definition
        if outcome is None:  # no row is new: those that are gone leave
            rows, _ = self.duck.create(f"SELECT * FROM {definition.sql} LIMIT 0")
            columns_now = definition.columns
        else:
            rows, columns_now = store.typed(self.duck, *self._table(outcome))
        definition = store.with_columns(definition, columns_now)
        if not definition.by_row:
            grouped = isinstance(self.bound.query, BoundSelect) and self.bound.query.aggregated
            store.check_key(self.duck, quote(rows), definition.key, definition.key, "the result", null=grouped)
        if first:
            if self.replaced is not None:
                store.drop(cursor, self.replaced)
            changes = store.build(self.duck, definition, rows)
        else:
            changes = store.merge(self.duck, definition, rows, scope)
        if candidates is not None:
            store.know(self.duck, definition, candidates, scope, self.flagged)
        exact = outcome is None or outcome.exact
        if definition.by_row:
            unsure = self.duck.scalar(
                f"SELECT system.main.count(*) FROM {definition.rows_sql} WHERE {store.OPEN} OR {store.BY_SMALL}"
            )
            exact = not unsure and self.stated is None and not (outcome.based_on if outcome is not None else False)
        store.say(self.duck, definition, exact)
        groups, model = self.groups or definition.groups, self.model or definition.model
        latest = replace(definition, groups=groups, model=model, stated=self.stated)
        store.keep(cursor, latest, calls=outcome.cost.calls if outcome is not None else 0)
        return changes

    def _table(self, outcome: Outcome) -> tuple[pa.Table, list[str]]:
        """The rows to be stored: an aggregate that may be an estimate always has its ends, so that the columns stay the same."""
        table = outcome.bounded(_may_be_estimates(self.bound))
        types = dict(zip(outcome.table.column_names, outcome.types, strict=True))
        twice = next((n for n in table.column_names if n not in types and n.endswith("_")), None)
        if twice is not None:
            raise BindError(f"{twice[:-1]} is the name of an interval's end: choose another", code="UQL525")
        return table, [types.get(name, "") for name in table.column_names]

    # ------------------------------------------------------------------------------------------------ the source's rows
    def _row_digests(self) -> str:
        """A temporary table of key and digest of every row that the plain conditions leave. Raises: DataError (UQL521)."""
        query = self.bound.query
        assert isinstance(query, BoundSelect) and isinstance(query.source, BoundTable)
        block = planner.plan(query, self.session.settings.disabled_rules)
        assert isinstance(block, Block)
        keys = self._key_columns()
        read = tuple(dict.fromkeys(columns(*expressions(query))))
        items = [BoundItem(c, f"k{i}", "") for i, c in enumerate(keys)]
        items += [BoundItem(c, f"c{i}", "") for i, c in enumerate(read)]
        inner = query_sql(BoundSelect(tuple(items), query.source, where=block.scan.where))
        aliases = [f"k{i} AS {quote(name)}" for i, name in enumerate(self.definition.key)]
        digest = store.digest([f"c{i}" for i in range(len(read))])
        candidates, _ = self.duck.create(f"SELECT {', '.join(aliases)}, {digest} AS __digest FROM ({inner})")
        names = [c.name for c in keys]
        store.check_key(self.duck, quote(candidates), self.definition.key, names, query.source.table.name)
        return candidates

    def _key_columns(self) -> list[Column]:
        by_name = {item.name: item.expr for item in self.bound.query.items}
        return [expr for k in self.definition.key if isinstance(expr := by_name[k], Column)]

    def _corrected_keys(self) -> pa.Table | None:
        """Keys of the rows that people answered about, or took an answer back of, since the last refresh; None: of none."""
        from uql.kernels.relation import Relation
        from uql.llm.corrections import touched

        settings, query = self.session.settings, self.bound.query
        assert isinstance(query, BoundSelect) and isinstance(query.source, BoundTable)
        with self.session.ledgers.open(settings.ledger) as ledger:
            people = touched(ledger, self.definition.refreshed_s)
        fields = {Column(query.source.alias, f.name): f for f in query.source.table.fields}
        empty = Relation(self.duck, "", 0, fields)
        virtuals = [v for v in query.virtuals if people.knows(empty.question(v))]
        if not virtuals:
            return None
        selection = tuple(dict.fromkeys((*self._key_columns(), *(c for v in virtuals for c in v.inputs))))
        sql = query_sql(BoundSelect(tuple(BoundItem(c, c.label, "") for c in selection), query.source))
        duck = self.session.kernel_duck(self.session.media(settings, self.session.database()))
        name, n = duck.create(sql)
        self.duck.temporary.append(name)
        relation, rids = Relation(duck, name, n, fields), np.arange(n, dtype=np.int64)
        positions = {i for v in virtuals for i in people.answers(relation.question(v), relation.rows(rids, [v]))}
        keys = relation.fetch(
            np.array(sorted(positions), dtype=np.int64), [quote(c.label) for c in self._key_columns()]
        )
        return pa.table(dict(zip(self.definition.key, keys.columns, strict=True)))

    def limited_to(self, scope: str) -> BoundStatement:
        """The query over the source's rows of these keys alone."""
        query = self.bound.query
        assert isinstance(query, BoundSelect) and isinstance(query.source, BoundTable)
        source = query.source
        pairs = zip(self._key_columns(), self.definition.key, strict=True)
        same = " AND ".join(f"t.{quote(c.name)} = s.{quote(k)}" for c, k in pairs)
        name, n = self.duck.create(f"SELECT t.* FROM {source.table.sql} AS t SEMI JOIN {quote(scope)} AS s ON {same}")
        table: Table = replace(source.table, sql=quote(name), row_count=n)
        return replace(self.bound, query=replace(query, source=replace(source, table=table)))

    def _check_items(self) -> None:
        """The columns are those of the first build, before anybody is asked. Raises: DataError (UQL522)."""
        items = self.bound.query.items
        typed = null_columns(
            [item.name for item in items], [item.type if castable(item.type) else "INTEGER" for item in items]
        )
        now = tuple(self.session.catalog.describe(f"SELECT {typed}"))
        ends = {f"{name}_{end}" for name, _ in now for end in ("low", "high")} - {name for name, _ in now}
        was = tuple((name, kind) for name, kind in self.definition.columns if name not in ends)
        store.with_columns(replace(self.definition, columns=was), now)

    # --------------------------------------------------------------------------------------------------------- the run
    def _run(self, bound: BoundStatement) -> Outcome:
        session = self.session
        settings = session.settings.with_values(**{**dict(bound.options), **session.statement.changes})
        if not bound.semantic:
            from uql.engine.plain_sql import outcome

            called = session.catalog.estimates_called(bound.text)
            return outcome(bound, session.kernel_duck(), settings.confidence, called)
        physical = session.plan(bound, settings)
        return session.run_locked(
            bound.text,
            lambda: finished(execute(session, bound, physical, settings, statement=session.statement, watcher=self)),
            settings,
            lambda: bound,
        )

    def begins(self, ctx: Context) -> None:
        """The groups of the first build stay, and the score of a stated set goes on to new rows."""
        ctx.keeps_proxy, ctx.stated = self.definition.by_row, self.stated
        ctx.groups.update(self.definition.groups)
        ctx.groups_stay = bool(self.definition.groups)

    async def ended(self, output: Output, ctx: Context) -> None:
        """Notes the groups, the model, and which rows have no answer or a small model's, while the run's tables are there."""
        from uql.kernels.sem_filter import recalled

        states, self.stated = ctx.stated is not self.stated, ctx.stated
        self.groups = dict(ctx.groups)
        self.model = str((await ctx.gate.provider()).name)
        if self.definition.model and self.model != self.definition.model:
            ctx.warnings.append(
                f"{self.definition.name} was made by {self.definition.model}, these rows by {self.model}"
            )
        relation = output.relation
        if not self.definition.by_row or relation is None:
            return
        left = {error.row for error in ctx.errors if error.row >= 0}
        block = planner.plan(self.bound.query, ctx.settings.disabled_rules)
        assert isinstance(block, Block)
        if not output.exact and block.filter.formula is not None and not states:  # a search leaves rows unasked
            decided, _ = await recalled(block.filter, relation, ctx)
            left |= set(range(relation.n)) - set(decided.tolist())
        small = {int(rid) for column in relation.doubtful for rid in relation[column].by_small}
        for flag, of_rows in ((store.OPEN, left), (store.BY_SMALL, small)):
            rids = np.array(sorted(of_rows), dtype=np.int64)
            keys = relation.fetch(rids, [quote(c.label) for c in self._key_columns()])
            self.flagged[flag] = pa.table(dict(zip(self.definition.key, keys.columns, strict=True)))


def _may_be_estimates(bound: BoundStatement) -> frozenset[str]:
    """The columns whose aggregates rest on answers of a model."""
    query = bound.query
    if not isinstance(query, BoundSelect):
        return frozenset(item.name for item in query.items)
    chosen = (query.where, query.having, *(key.expr for key in query.group_by))
    every = any(is_semantic(e) for e in chosen) or not isinstance(query.source, BoundTable)
    return frozenset(item.name for item in query.items if every or is_semantic(item.expr))


@contextmanager
def _transaction(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """All or nothing. Raises: DataError (UQL509) where DuckDB refuses."""
    try:
        with together(cursor):
            yield
    except duckdb.Error as error:
        raise refused(error) from error


def _change_report(name: str, changes: Changes | None, outcome: Outcome | None = None) -> Outcome:
    """One row of what changed, with the cost and the errors of the run."""
    counts = ("rows", "added", "changed", "removed")
    row = {"table": pa.array([name])}
    row |= {n: pa.array([None if changes is None else getattr(changes, n)], type=pa.int64()) for n in counts}
    whole = outcome or Outcome(pa.table({}), [], {}, [], Cost())
    table = pa.table({**row, "calls": pa.array([whole.cost.calls], type=pa.int64())})
    return replace(whole, table=table, types=["VARCHAR", *["BIGINT"] * 5], estimates={}, unverified=[], trace=None)
