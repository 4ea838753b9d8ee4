"""Statements that only DuckDB knows, around sub-queries with texts: PIVOT (SELECT …), SUMMARIZE SELECT …, UPDATE … FROM (SELECT …).

Each sub-query in parentheses that is UQL and holds a text is answered by itself; its rows are a temporary table, and DuckDB runs the
statement over it. DuckDB has seen the whole statement over tables without rows before any model is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import duckdb

from uql.errors import BudgetError, DataError, UnknownColumnError, UQLError, UQLSyntaxError

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.compiler.bound import BoundItem, BoundStatement
    from uql.compiler.lexer import Token
    from uql.llm.run import Cost
    from uql.result import Outcome, Result

    Bind = Callable[[str, Mapping[str, Any]], BoundStatement]

_names = count()
ALONE = "in a statement of DuckDB's own a sub-query with texts is answered by itself: it reads no column around it"
OPEN = "SELECT list is empty"  # of a PIVOT, whose columns are the values of rows that are not there yet
_OPENS = ("SELECT", "FROM", "WITH", "LPAREN")
_WHOLE = ("SUMMARIZE", "DESCRIBE", "DESC", "SHOW")  # what follows is a query without parentheses
_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "COPY")
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


def around(
    source: str,
    parameters: Mapping[str, Any],
    bind: Bind,
    run: Callable[[str, Mapping[str, Any]], Result],
    connection: duckdb.DuckDBPyConnection,
    store: Callable[[str, Outcome], None],
) -> Result | None:
    """The result of such a statement; None where it is none: no sub-query with a text, or a text outside of them.

    Args:
        source: the statement.
        parameters: of the statement.
        bind: binds a query with the values of its parameters.
        run: its result, not yet run.
    Raises: as the sub-queries do; UQLSyntaxError (UQL100) with what DuckDB says of the statement, and for what DuckDB would keep
        (a view). A statement that changes tables runs at once; it raises BudgetError (UQL401) where its rows would be a part of them.
    """
    from uql.result import Result
    from uql.statements import text_outcome

    tokens = _tokens(source)
    parts = _parts(source, tokens, parameters, bind)
    if not parts:
        return None
    first = [str(t.value).upper() for t in tokens[:4]]
    explains = first[0] == "EXPLAIN"
    if explains and first[1] in ("ANALYZE", "SAMPLE", "("):
        how = "EXPLAIN (…)" if first[1] == "(" else f"EXPLAIN {first[1]}"
        raise UQLSyntaxError(
            f"{how} takes one query, not a statement that DuckDB runs around its sub-queries",
            text=source,
            start=tokens[1].lexpos,
            end=tokens[1].endlexpos,
            help=f"EXPLAIN alone, or {how} with the sub-query",
        )
    if first[0] == "CREATE" and any(word in _STAYS for word in first):
        raise UQLSyntaxError(
            "a view or a macro cannot hold a text: DuckDB would keep it, and asks no model",
            text=source,
            start=tokens[0].lexpos,
            end=tokens[0].endlexpos,
            help="store the answers: CREATE TABLE name AS SELECT …",
        )
    rest = {name: value for name, value in parameters.items() if name in _named(tokens, parts)}
    replaced = _replaced(source, parts)[tokens[0].endlexpos if explains else 0 :]
    work = _Work(parts, replaced, rest, connection, first[0] in _CHANGES)
    work.check(source)
    if first[0] in ("DESCRIBE", "DESC", "SHOW"):  # the types are known before anything is asked
        described = work.described()
        return Result(lambda: described, lambda: "DuckDB", _free, source, store)
    results = [run(part.text, part.values) for part in parts]

    def explained() -> str:
        return "\n".join(["DuckDB", *("  " + line for r in results for line in r.explain().splitlines())])

    if explains:
        return Result(lambda: text_outcome(explained().splitlines(), None), explained, _free, source, store)
    result = Result(lambda: work.outcome(results, source), explained, lambda: _priced(results), source, store)
    if work.changes:
        result.run()
    return result


@dataclass(slots=True)
class _Work:
    """The statement over the tables of its parts."""

    parts: list[Part]
    sql: str
    parameters: dict[str, Any]
    connection: duckdb.DuckDBPyConnection
    changes: bool

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
            return self._answer()
        finally:
            self._drop()

    def outcome(self, results: list[Result], source: str) -> Outcome:
        """Runs the parts, then the statement. Raises DataError (UQL509), BudgetError (UQL401)."""
        from uql.kernels.duck import Duck, quote, typed_columns
        from uql.render import unique_names

        done = [result.run() for result in results]
        if self.changes and not all(one.exact for one in done):
            raise BudgetError(
                "the statement would change tables by a part of the rows: nothing was changed",
                text=source,
                start=self.parts[0].start,
                end=self.parts[0].end,
                help="SET uql.budget = 'all' first, or a budget that reaches every row",
            )
        duck = Duck(self.connection)
        try:
            for part, one in zip(self.parts, done, strict=True):
                rows = one.table.rename_columns(unique_names(one.table.column_names))
                chosen = typed_columns(rows.column_names, one.types)
                duck.execute(
                    f"CREATE OR REPLACE TEMP TABLE {quote(part.table)} AS SELECT {chosen} FROM __rows", {"__rows": rows}
                )
            found = self._answer()
        except duckdb.Error as error:
            raise DataError(f"DuckDB: {str(error).strip().splitlines()[0]}", code="UQL509") from error
        finally:
            self._drop()
        return _together(found, done)

    def _empty(self) -> None:
        from uql.kernels.duck import quote
        from uql.kernels.finish import castable
        from uql.render import unique_names

        for part in self.parts:
            named = zip(unique_names([item.name for item in part.items]), part.items, strict=True)
            columns = (
                f"CAST(NULL AS {item.type}) AS {quote(name)}" if castable(item.type) else f"NULL AS {quote(name)}"
                for name, item in named
            )
            self.connection.execute(
                f"CREATE OR REPLACE TEMP TABLE {quote(part.table)} AS SELECT {', '.join(columns)} WHERE false"
            )

    def _explain(self, source: str) -> None:
        try:
            self.connection.execute(f"EXPLAIN {self.sql}", self.parameters or None).fetchall()
        except duckdb.Error as error:
            if OPEN in str(error):
                return
            raise UQLSyntaxError(
                f"DuckDB says: {str(error).strip().splitlines()[0]}",
                text=source,
                start=0,
                end=max(len(source.split(maxsplit=1)[0]), 1),
                help=ALONE,
            ) from None

    def _answer(self) -> Outcome:
        from uql.statements import text_outcome

        sql = self.sql
        relation = self.connection.sql(sql, params=self.parameters) if self.parameters else self.connection.sql(sql)
        outcome = text_outcome([], None)
        if relation is not None:
            outcome.types = [str(kind) for kind in relation.types]
            table: pa.Table = (
                relation.to_arrow_table() if hasattr(relation, "to_arrow_table") else relation.fetch_arrow_table()
            )
            outcome.table = table
        return outcome

    def _drop(self) -> None:
        from uql.kernels.duck import quote

        for part in self.parts:
            self.connection.execute(f"DROP TABLE IF EXISTS temp.{quote(part.table)}")


# ----------------------------------------------------------------------------------------------------------------- parts
def _tokens(source: str) -> list[Token]:
    from uql.compiler.lexer import tokenize

    try:
        return [t for t in tokenize(source) if t.type != "SEMICOLON"]
    except UQLSyntaxError:
        return []


def _free_text(token: Token) -> bool:
    return token.type == "QUOTED" and len(token.value.split()) > 1


def _parts(source: str, tokens: list[Token], parameters: Mapping[str, Any], bind: Bind, all: bool = True) -> list[Part]:
    """The outermost sub-queries that are UQL with a text in them and read nothing around them.

    None of them where a text stands outside of them. Raises: what is wrong with one, where none in it can be answered either.

    Args:
        all: the tokens are the whole statement.
    """
    found: list[Part] = []
    bare = _bare(tokens) if all and tokens else None
    at = 0
    while at < len(tokens):
        end = _closing(tokens, at) if tokens[at].type == "LPAREN" else None
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
            found += parts
            at = inside[1]
        elif _free_text(tokens[at]) and (at == 0 or str(tokens[at - 1].value).upper() != "AS"):
            return []
        else:
            at += 1
    return found


def _bare(tokens: list[Token]) -> tuple[int, int] | None:
    """Where the query of a statement stands without parentheses: SUMMARIZE query, INSERT … query ON CONFLICT … RETURNING …."""
    words = [str(t.value).upper() if t.type != "QUOTED" else "" for t in tokens]
    depths, depth = [], 0
    for token in tokens:
        depth += {"LPAREN": 1, "RPAREN": -1}.get(token.type, 0)
        depths.append(depth)
    outside = [i for i in range(1, len(tokens)) if depths[i] == 0]
    if words[0] in _WHOLE:
        return (1, len(tokens))
    if words[0] == "CREATE":
        begin = next((i + 1 for i in outside if words[i] == "AS"), None)
        end = next((i for i in outside if words[i : i + 3] == ["WITH", "NO", "DATA"]), len(tokens))
    elif words[0] == "INSERT":
        begin = next((i for i in outside if tokens[i].type in _OPENS and tokens[i].type != "LPAREN"), None)
        tails = (i for i in outside if words[i] == "RETURNING" or words[i : i + 2] == ["ON", "CONFLICT"])
        end = next((i for i in tails if begin is not None and i > begin), len(tokens))
    else:
        return None
    return None if begin is None or begin >= end or tokens[begin].type == "LPAREN" else (begin, end)


def _part(source: str, tokens: list[Token], parameters: Mapping[str, Any], bind: Bind) -> list[Part]:
    """These tokens as one sub-query with a text; none where they are something else."""
    from uql.compiler.parser import parse
    from uql.compiler.syntax import Query

    asks = any(_free_text(t) or (t.type == "PARAMETER" and _is_text(parameters.get(t.value))) for t in tokens)
    if not asks or tokens[0].type not in _OPENS:
        return []
    start, end = tokens[0].lexpos, tokens[-1].endlexpos
    try:
        query = parse(source[start:end])
    except UQLSyntaxError:
        return []
    if not isinstance(query, Query):
        return []
    values = {t.value: parameters[t.value] for t in tokens if t.type == "PARAMETER" and t.value in parameters}
    try:
        items = bind(source[start:end], values).query.items
    except UQLError as error:
        if error.start >= 0:
            error.text, error.start, error.end = source, error.start + start, error.end + start
        if isinstance(error, UnknownColumnError):
            error.help = f"{error.help or ''}; {ALONE}".removeprefix("; ")
        raise
    return [Part(start, end, source[start:end], values, f"__uql_part_{next(_names)}", items)]


def _is_text(value: object) -> bool:
    from uql.compiler.virtual import SemText

    return isinstance(value, SemText)


def _closing(tokens: list[Token], at: int) -> int | None:
    """The place of the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += {"LPAREN": 1, "RPAREN": -1}.get(tokens[i].type, 0)
        if depth == 0:
            return i
    return None


def _named(tokens: list[Token], parts: list[Part]) -> set[str]:
    """The parameters that stand outside of the parts."""
    return {t.value for t in tokens if t.type == "PARAMETER" and not any(p.start <= t.lexpos < p.end for p in parts)}


def _replaced(source: str, parts: list[Part]) -> str:
    """The statement with each part as the table of its rows."""
    pieces, at = [], 0
    for part in parts:
        pieces += [source[at : part.start], f'SELECT * FROM temp."{part.table}"']
        at = part.end
    return "".join([*pieces, source[at:]])


# --------------------------------------------------------------------------------------------------------------- results
def _together(found: Outcome, done: list[Outcome]) -> Outcome:
    """What DuckDB gave, with the cost, the errors and the notes of the parts."""
    cost = done[0].cost
    for one in done[1:]:
        cost = _sum(cost, one.cost)
    return replace(
        found,
        errors=[e for one in done for e in one.errors],
        cost=cost,
        warnings=list(dict.fromkeys(w for one in done for w in one.warnings)),
        notes=list(dict.fromkeys(n for one in done for n in one.notes)),
        based_on=list(dict.fromkeys(b for one in done for b in one.based_on)),
        exact=all(one.exact for one in done),
        partial=any(one.partial for one in done),
    )


def _sum(a: Cost, b: Cost) -> Cost:
    """What two runs cost together; unknown where the price of one is."""
    sums: dict[str, Any] = {}
    for f in fields(a):
        x, y = getattr(a, f.name), getattr(b, f.name)
        sums[f.name] = None if x is None or y is None else x + y
    return replace(a, **sums)


def _free() -> Any:
    from uql.compiler.cost import FREE

    return FREE


def _priced(results: list[Result]) -> Any:
    price = results[0].quote()
    for result in results[1:]:
        price = price + result.quote()
    return price
