"""Statements that only DuckDB knows, around sub-queries with texts: PIVOT (SELECT …), SUMMARIZE SELECT …, UPDATE … FROM (SELECT …).

Each sub-query in parentheses that is UQL and holds a text is answered by itself; its rows are a temporary table, and DuckDB runs the
statement over it. DuckDB has seen the whole statement over tables without rows before any model is asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count
from operator import add
from typing import TYPE_CHECKING, Any, cast

import duckdb
import pyarrow as pa

from uql.base.errors import BudgetError, UnknownColumnError, UQLError, UQLSyntaxError
from uql.base.names import free_names
from uql.base.sql_text import first_line, quote
from uql.compiler.cost import Quote
from uql.compiler.lexer import Token, closing, is_free_text, tokenize
from uql.compiler.parser import options, parse, tree_of
from uql.compiler.statement_targets import Change, changed, tokens as tokens_of, without_options
from uql.compiler.syntax import Query
from uql.compiler.virtual import SemText
from uql.engine.outcome import Outcome, end_names, text_outcome
from uql.engine.stored_estimates import end_column
from uql.kernels.duck import Duck, typed_columns
from uql.kernels.estimates.sample_bounds import NUMBER
from uql.kernels.finish import null_columns
from uql.session.direct_texts import rewritten
from uql.session.prepared import PreparedStatement
from uql.session.statements import Piece, done, own_rows, refused
from uql.session.store_estimates import (
    ENDS,
    check_stored,
    listed,
    mark,
    placed,
    rows_with_bounds,
    together,
    without_interval,
)

if TYPE_CHECKING:
    from uql.base.schema import Table
    from uql.compiler.bound import BoundItem, BoundStatement
    from uql.session.session import Session
    from uql.sources.catalog import Catalog

    Bind = Callable[[str, Mapping[str, Any]], BoundStatement]

_names = count()
ALONE = "in a statement of DuckDB's own a sub-query with texts is answered by itself: it reads no column around it"
OPEN = "SELECT list is empty"  # of a PIVOT, whose columns are the values of rows that are not there yet
_OPENS = ("SELECT", "FROM", "WITH", "LPAREN")
_WHOLE = ("SUMMARIZE", "DESCRIBE", "DESC", "SHOW")  # what follows is a query without parentheses
_STAYS = ("VIEW", "MACRO", "FUNCTION")  # DuckDB would keep the sub-query, and cannot ask a model


@dataclass(frozen=True, slots=True)
class Part:
    """A sub-query with texts: its place, its text, the values of its parameters, the table that its rows become, its columns."""

    start: int
    end: int
    text: str
    values: Mapping[str, Any]
    table: str
    items: tuple[BoundItem, ...]
    partial: bool  # may its estimates go into a table? as its own WITH (…) says

    @property
    def names(self) -> list[str]:
        """The columns of its table."""
        return list(free_names(item.name for item in self.items))

    @property
    def ends(self) -> dict[str, tuple[str, str]]:
        """The columns of its table for the ends of intervals, by the column that may hold an estimate."""
        used = {name.lower() for name in self.names}
        typed = zip(self.names, self.items, strict=True)
        return {name: end_names(name, used) for name, item in typed if NUMBER.fullmatch(item.type)}

    def select(self, around: Collection[str] = ()) -> str:
        """Its table as a query, with those ends of intervals that the statement around it names."""

        columns = list(self.names)
        for name, ends in self.ends.items():
            if all(end.lower() in around for end in ends):
                at = columns.index(name) + 1
                columns[at:at] = ends
        return f'SELECT {", ".join(map(quote, columns))} FROM temp."{self.table}"'


def around(
    session: Session, piece: Piece, run: Callable[[str, Mapping[str, Any]], PreparedStatement]
) -> PreparedStatement | None:
    """The result of such a statement; None for others: no sub-query has a text, or a text outside of them is not a column.

    Args:
        piece: the statement. `WITH (partial = true)` at its end, or the setting, lets estimates go into tables.
        run: prepares a sub-query with the values of its parameters.
    Raises: as the sub-queries do; UQLSyntaxError (UQL100) with what DuckDB says of the statement, and for what DuckDB would keep
        (a view). A statement that changes tables runs at once; it raises BudgetError (UQL401) where its rows would be a part of them.
    """
    source, tail = without_options(piece.source)

    def table_of(name: tuple[str, ...]) -> Table:
        return session.catalog.table(name, plain=True)

    texts = [name for name, value in piece.parameters.items() if isinstance(value, SemText)]
    direct = rewritten(source, table_of, texts)
    if direct is None:
        try:
            return _around(session, piece, source, tail, run)
        except UnknownColumnError:  # a sub-query may read the rows that are changed
            direct = rewritten(source, table_of, texts, nested=True)
            if direct is None:
                raise
    direct.check()
    try:
        return _around(session, piece, direct.text, tail, run, by_row=True)
    except UQLError as error:
        error.help = (error.help or "").replace(ALONE, "").removesuffix("; ") or None
        raise direct.placed(error) from error.__cause__


def _around(
    session: Session,
    piece: Piece,
    source: str,
    tail: str,
    run: Callable[[str, Mapping[str, Any]], PreparedStatement],
    by_row: bool = False,
) -> PreparedStatement | None:
    """As `around`, of a statement without its options; `by_row`: sub-queries give numbers of rows, which hold within a transaction."""
    given = options(tail, piece.source)
    parameters = piece.parameters
    tokens = _tokens(source)

    def bind(part: str, values: Mapping[str, Any]) -> BoundStatement:
        text = f"{part} {tail}"
        return session.bind(cast("Query", parse(text)), text, values, piece.frames)

    parts = _parts(source, tokens, parameters, bind)
    if not parts:
        return None
    first = [str(t.value).upper() for t in tokens[:4]]
    explains = first[0] == "EXPLAIN"
    begins = _begins(first)
    as_json = begins > 1
    if explains and first[1] in ("ANALYZE", "SAMPLE", "(") and not as_json:
        how = "EXPLAIN (…)" if first[1] == "(" else f"EXPLAIN {first[1]}"
        raise UQLSyntaxError(
            f"{how} takes one query, not a statement that DuckDB runs around its sub-queries",
            text=source,
            start=tokens[1].lexpos,
            end=tokens[1].endlexpos,
            help=f"EXPLAIN alone, EXPLAIN (FORMAT JSON), or {how} with the sub-query",
        )
    verb = str(tokens[begins].value).upper()
    if verb == "CREATE" and any(word in _STAYS for word in first):
        raise UQLSyntaxError(
            "a view or a macro cannot contain a text: DuckDB would store it and cannot call a model",
            text=source,
            start=tokens[0].lexpos,
            end=tokens[0].endlexpos,
            help="store the answers: CREATE TABLE name AS SELECT …",
        )
    rest = {name: value for name, value in parameters.items() if name in _named(tokens, parts)}
    replaced = _replaced(source, parts)[tokens[begins - 1].endlexpos if explains else 0 :]
    allowed = bool(given.get("partial", session.settings.partial)) or any(part.partial for part in parts)
    work = _Work(parts, replaced, rest, session.catalog, changed(replaced), allowed, by_row)
    work.list_columns()
    try:
        work.check(source)
    except UQLSyntaxError:
        if _texts_outside(tokens, parts):
            return None
        raise
    if first[0] in ("DESCRIBE", "DESC", "SHOW"):  # the types are known before anything is asked
        return done(session.catalog, work.described(), "DuckDB", source)
    how = "EXPLAIN (FORMAT JSON) " if as_json else ""
    results = [run(f"{how}{part.text} {tail}", part.values) for part in parts]

    def explained() -> str:
        if as_json:
            plans = [json.loads(r.explain()) for r in results]
            return json.dumps({"statement": "DuckDB", "sub_queries": plans}, ensure_ascii=False, indent=2)
        return "\n".join(["DuckDB", *("  " + line for r in results for line in r.explain().splitlines())])

    def priced() -> Quote:
        return reduce(add, (result.quote() for result in results))

    if explains:
        plan = explained()
        return done(session.catalog, text_outcome(plan.splitlines(), None), plan, source)
    result = PreparedStatement(
        lambda: work.outcome(results, source, piece.source), explained, priced, source, session.store(piece.source)
    )
    if work.change is not None:
        result.run()
    return result


@dataclass(slots=True)
class _Work:
    """The statement over the tables of its parts."""

    parts: list[Part]
    sql: str
    parameters: dict[str, Any]
    catalog: Catalog
    change: Change | None
    partial: bool
    by_row: bool
    changed_rows: dict[str, tuple[pa.Table, list[str]]] = field(default_factory=dict)  # by the table of the part

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        return self.catalog.cursor

    def list_columns(self) -> None:
        """INSERT of a part says for which columns it is, where the table has others for the ends of intervals."""
        change, part = self.change, self.parts[0]
        if change is None or change.verb != "INSERT" or change.columns or change.by_name:
            return
        head, select, rest = self.sql.partition(part.select())
        columns = listed(self.catalog, change.name, len(part.names)) if select and _takes_whole(head, change) else ()
        if len(columns) < len(self.catalog.columns(change.name)) and columns:
            self.sql = f"{head[: change.end]} ({', '.join(map(quote, columns))}){head[change.end :]}{select}{rest}"
            self.change = changed(self.sql)

    def check(self, source: str) -> None:
        """Raises UQLSyntaxError (UQL100) where DuckDB refuses the statement over tables without rows."""
        try:
            self._empty()
            self._explain(source)
        finally:
            self._drop()

    def described(self) -> Outcome:
        try:
            self._empty()
            return own_rows(self.catalog, self.sql, self.parameters)
        finally:
            self._drop()

    def outcome(self, results: list[PreparedStatement], source: str, message: str) -> Outcome:
        """Runs the parts, then the statement: where rows are told by their numbers, in one transaction.

        Raises: DataError (UQL509), BudgetError (UQL401).
        """
        with together(self.connection) if self.by_row else nullcontext():
            return self._outcome(results, source, message)

    def _outcome(self, results: list[PreparedStatement], source: str, statement: str) -> Outcome:
        done = [result.run() for result in results]
        change = self.change
        reads = self.catalog.estimates_read(self.sql, change.name if change else ())
        inexact = bool(reads) or not all(one.exact for one in done)
        try:
            check_stored(self.sql, change, done, reads, partial=self.partial)
            self._carry(done)
            with together(self.connection) if change is not None and inexact else nullcontext():
                for part, one in zip(self.parts, done, strict=True):
                    self._put(part, one)
                outer = own_rows(self.catalog, self.sql, self.parameters)
                if change is not None and change.name and inexact:
                    mark(self.catalog, change.name, statement)
        except BudgetError as error:
            raise placed(error, source, self.parts[0].start, self.parts[0].end) from None
        except duckdb.Error as error:
            raise placed(refused(error), source, 0, max(len(source.split(maxsplit=1)[0]), 1)) from error
        finally:
            self._drop()
        whole = _together(outer, done)
        if change is None:
            whole.notes += self._bare(done)
        return replace(whole, exact=whole.exact and not reads, based_on=[*whole.based_on, *reads])

    def _bare(self, done: list[Outcome]) -> list[str]:
        """Says which estimates stand in the result without their intervals, which DuckDB's part of the statement does not carry."""
        words = {token.name.lower() for token in tokens_of(self.sql)}
        pairs = [
            (part.ends.get(name, ()), name) for part, one in zip(self.parts, done, strict=True) for name in one.inexact
        ]
        return [
            f"{name} of the sub-query is an estimate: {ends[0]} and {ends[1]}, written beside it, give its interval"
            for ends, name in pairs
            if ends and not all(end.lower() in words for end in ends)
        ]

    def _put(self, part: Part, one: Outcome) -> None:
        """The rows of a part as its table, with the ends of intervals."""
        rows, types = self.changed_rows.get(part.table) or self._rows(part, one)
        chosen = typed_columns(rows, types)
        Duck(self.connection).execute(
            f"CREATE OR REPLACE TEMP TABLE {quote(part.table)} AS SELECT {chosen} FROM __rows", {"__rows": rows}
        )

    def _rows(self, part: Part, one: Outcome) -> tuple[pa.Table, list[str]]:
        """The rows of a part, with the ends of the intervals that the statement names."""
        rows = one.table.rename_columns(part.names)
        types = dict(zip(part.names, one.types, strict=True))
        words = {token.name.lower() for token in tokens_of(self.sql)}
        for name, ends in part.ends.items():
            intervals = one.estimates.get(one.table.column_names[part.names.index(name)])
            for end, column in zip(ENDS, ends, strict=True):
                if column.lower() in words and intervals is None:
                    rows = rows.append_column(column, rows.column(name).cast("float64"))
                elif column.lower() in words:
                    cells = [getattr(e, end) for e in (intervals if isinstance(intervals, list) else [intervals])]
                    rows = rows.append_column(column, pa.array(cells, pa.float64()))
        return rows, [types.get(name, "DOUBLE") for name in rows.column_names]

    def _carry(self, done: list[Outcome]) -> None:
        """Changes the statement so that estimates which it stores take their intervals along. Raises: BudgetError (UQL401)."""
        if self.change is None or self.change.verb == "DELETE":
            return
        for part, one in zip(self.parts, done, strict=True):
            if not one.estimates or self._inserted(part, one):
                continue
            words = {token.name.lower() for token in tokens_of(self.sql)}
            for name in one.inexact:
                names_ends = all(end.lower() in words for end in part.ends.get(name, ("",)))
                if not names_ends and not self._assigned(part, name):
                    raise without_interval(name, ".".join(self.change.name), None)

    def _inserted(self, part: Part, one: Outcome) -> bool:
        """Where the part is all that INSERT takes: its rows with their intervals, for the columns that the table has for them."""
        change = self.change
        head, select, rest = self.sql.partition(part.select())
        if change is None or change.verb != "INSERT" or not select:
            return False
        if not _takes_whole(head, change):
            return False
        columns = change.columns or (
            part.names if change.by_name else listed(self.catalog, change.name, len(part.names))
        )
        if len(columns) != len(part.names):
            return False
        rows, into, types = rows_with_bounds(self.catalog, change.name, columns, one)
        words = {token.name.lower() for token in tokens_of(rest)}
        for end in into[len(columns) :] if "excluded" in words else ():
            if end.lower() not in words:
                column = next(c for c in columns if end.lower().startswith(c.lower()))
                raise without_interval(column, ".".join(change.name), None)
        self.changed_rows[part.table] = rows, types
        opened = "(" if "(" in head[change.end :] else ""
        listing = ", ".join(map(quote, into))
        self.sql = f'{head[: change.head]} ({listing}) {opened}SELECT * FROM temp."{part.table}"{rest}'
        return True

    def _assigned(self, part: Part, name: str) -> bool:
        """Where UPDATE sets a column to the value of the part: the ends of its interval are set beside it."""
        assert self.change is not None
        value = rf'(?:\bSET|,)\s*("(?:[^"]|"")+"|\w+)\s*=\s*\(\s*{re.escape(part.select())}\s*\)'
        set_ = re.search(value, self.sql, re.IGNORECASE) if self.change.verb == "UPDATE" else None
        if set_ is None or name not in part.ends:
            return False
        column = set_[1].strip('"').replace('""', '"')
        there = self.catalog.columns(self.change.name)
        for end, of in zip(ENDS, part.ends[name], strict=True):
            at = end_column(column, end, there)
            if at is None:
                raise without_interval(name, ".".join(self.change.name), column)
            more = f', {quote(at)} = (SELECT {quote(of)} FROM temp."{part.table}")'
            self.sql = self.sql[: set_.end()] + more + self.sql[set_.end() :]
        return True

    def _empty(self) -> None:
        for part in self.parts:
            ends = [end for ends in part.ends.values() for end in ends]
            types = [*(item.type for item in part.items), *["DOUBLE"] * len(ends)]
            columns = null_columns([*part.names, *ends], types)
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {quote(part.table)} AS SELECT {columns} WHERE false")

    def _explain(self, source: str) -> None:
        try:
            self.connection.execute(f"EXPLAIN {self.sql}", self.parameters or None).fetchall()
        except duckdb.Error as error:
            if OPEN in str(error):
                return
            raise UQLSyntaxError(
                f"DuckDB says: {first_line(error)}",
                text=source,
                start=0,
                end=max(len(source.split(maxsplit=1)[0]), 1),
                help=ALONE,
            ) from None

    def _drop(self) -> None:
        for part in self.parts:
            with suppress(duckdb.TransactionException):  # one that an error has ended: its ROLLBACK drops them
                self.connection.execute(f"DROP TABLE IF EXISTS temp.{quote(part.table)}")


# ----------------------------------------------------------------------------------------------------------------- parts
def _tokens(source: str) -> list[Token]:
    try:
        return [t for t in tokenize(source) if t.type != "SEMICOLON"]
    except UQLSyntaxError:
        return []


def _parts(source: str, tokens: list[Token], parameters: Mapping[str, Any], bind: Bind, all: bool = True) -> list[Part]:
    """The outermost sub-queries that are UQL with a text in them and read nothing around them.

    Raises: what is wrong with one, where none in it can be answered either.

    Args:
        all: the tokens are the whole statement.
    """
    subqueries: list[Part] = []
    bare = _bare(tokens) if all and tokens else None
    at = 0
    while at < len(tokens):
        end = closing(tokens, at) if tokens[at].type == "LPAREN" else None
        inside = (at + 1, end) if end is not None else None
        if bare is not None and at == bare[0]:
            inside = bare
        parts: list[Part] = []
        if inside is not None:
            within = tokens[inside[0] : inside[1]]
            try:
                parts = _part(source, within, parameters, bind)
            except UQLError as error:  # perhaps it names what the statement around it makes
                parts = _parts(source, within, parameters, bind, all=False)
                if not parts:
                    raise error from None
        if parts and inside is not None:
            subqueries += parts
            at = inside[1]
        else:
            at += 1
    return subqueries


def _begins(words: list[str]) -> int:
    """The place of a statement's first word, behind EXPLAIN or EXPLAIN (FORMAT JSON)."""
    return 5 if words[:4] == ["EXPLAIN", "(", "FORMAT", "JSON"] else int(words[0] == "EXPLAIN")


def _bare(tokens: list[Token]) -> tuple[int, int] | None:
    """Where the query of a statement stands without parentheses: SUMMARIZE query, INSERT … query ON CONFLICT …; also behind EXPLAIN."""
    words = [str(t.value).upper() if t.type != "QUOTED" else "" for t in tokens]
    first = min(_begins(words), len(words) - 1)
    depths, depth = [], 0
    for token in tokens:
        depth += {"LPAREN": 1, "RPAREN": -1}.get(token.type, 0)
        depths.append(depth)
    outside = [i for i in range(1, len(tokens)) if depths[i] == 0]
    begin, end = None, len(tokens)
    if words[first] in _WHOLE:
        begin = first + 1
    elif words[first] == "CREATE":
        begin = next((i + 1 for i in outside if words[i] == "AS"), None)
        end = next((i for i in outside if words[i : i + 3] == ["WITH", "NO", "DATA"]), len(tokens))
    elif words[first] == "INSERT":
        begin = next((i for i in outside if tokens[i].type in _OPENS and tokens[i].type != "LPAREN"), None)
        tails = (i for i in outside if words[i] == "RETURNING" or words[i : i + 2] == ["ON", "CONFLICT"])
        end = next((i for i in tails if begin is not None and i > begin), len(tokens))
    else:
        return None
    return None if begin is None or begin >= end or tokens[begin].type == "LPAREN" else (begin, end)


def _part(source: str, tokens: list[Token], parameters: Mapping[str, Any], bind: Bind) -> list[Part]:
    """These tokens as one sub-query with a text; none where they are something else."""
    asks = any(
        is_free_text(t) or (t.type == "PARAMETER" and isinstance(parameters.get(t.value), SemText)) for t in tokens
    )
    wrapped = tokens and tokens[0].type == "LPAREN" and closing(tokens, 0) == len(tokens) - 1
    if not asks or tokens[0].type not in _OPENS or wrapped:  # ((SELECT …)): the parentheses inside stay
        return []
    start, end = tokens[0].lexpos, tokens[-1].endlexpos
    query = tree_of(source[start:end])
    if not isinstance(query, Query):
        return []
    values = {t.value: parameters[t.value] for t in tokens if t.type == "PARAMETER" and t.value in parameters}
    try:
        bound = bind(source[start:end], values)
    except UQLError as error:
        if error.start >= 0:
            error.text, error.start, error.end = source, error.start + start, error.end + start
        if isinstance(error, UnknownColumnError):
            error.help = f"{error.help or ''}; {ALONE}".removeprefix("; ")
        raise
    if not bound.semantic:  # what it quotes are names
        return []
    partial = bool(dict(bound.options).get("partial", False))
    return [Part(start, end, source[start:end], values, f"__uql_part_{next(_names)}", bound.query.items, partial)]


def _named(tokens: list[Token], parts: list[Part]) -> set[str]:
    """The parameters that stand outside of the parts."""
    return {t.value for t in tokens if t.type == "PARAMETER" and not any(p.start <= t.lexpos < p.end for p in parts)}


def _texts_outside(tokens: list[Token], parts: list[Part]) -> bool:
    """Does a quoted text stand outside of the parts? It may be a name."""
    return any(is_free_text(t) and not any(p.start <= t.lexpos < p.end for p in parts) for t in tokens)


def _replaced(source: str, parts: list[Part]) -> str:
    """The statement with each part as the table of its rows."""
    places = [0, *(part.end for part in parts)]
    outside = [source[at : part.start] for at, part in zip(places, parts, strict=False)] + [source[places[-1] :]]
    around = {token.name.lower() for text in outside for token in tokens_of(text)}
    selects = [part.select(around) for part in parts]
    change = changed(outside[0] + "SELECT 1")
    if change is not None and change.verb == "INSERT" and _takes_whole(outside[0], change):
        selects[0] = parts[0].select()  # what INSERT takes as a whole
    return "".join(text + select for text, select in zip(outside, selects, strict=False)) + outside[-1]


def _takes_whole(head: str, change: Change) -> bool:
    """Is the part behind `head` all that INSERT takes? Nothing else stands between it and the columns, as a WITH may before them."""
    words = [word.upper() for word in head[change.end :].replace("(", " ").split()]
    return change.end <= len(head) and words in ([], ["BY", "NAME"], ["BY", "POSITION"])


# --------------------------------------------------------------------------------------------------------------- results
def _together(outer: Outcome, done: list[Outcome]) -> Outcome:
    """What DuckDB gave, with the cost, the errors and the notes of the parts."""
    return replace(
        outer,
        errors=[e for one in done for e in one.errors],
        cost=reduce(add, (one.cost for one in done)),
        warnings=list(dict.fromkeys(w for one in done for w in one.warnings)),
        notes=list(dict.fromkeys(n for one in done for n in one.notes)),
        based_on=list(dict.fromkeys(b for one in done for b in one.based_on)),
        exact=all(one.exact for one in done),
        partial=any(one.partial for one in done),
    )
