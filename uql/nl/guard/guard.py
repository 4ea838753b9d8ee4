"""The guard of statements that a model wrote: only one harmless query passes, and what passes is run apart from the user's database.

`check_sql` and `check_uql` read the tree of the statement and refuse what is not on a list of what is allowed; the checked tree is
written out again, and that text is the one to run, so nothing hides in what two readers may read differently. `sql_runner` runs it in
a DuckDB of its own in a child process, without files, network, extensions or settings to change, with limits of memory, rows and time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from uql.base.errors import GuardError, UQLError
from uql.base.settings import CALLS_ROWS
from uql.base.sqlglot_trees import read_sql, write_sql
from uql.compiler.parser import parse_script
from uql.compiler.syntax import Call, Name, Node, Option, Query, Select, TableFunction, TableName, Union
from uql.compiler.unparse import unparse
from uql.compiler.walk import children, walk, with_children
from uql.nl.guard.allowed import CLOCKS, FUNCTIONS, NODES, OPTIONS, TABLE_FUNCTIONS, UQL_NODES
from uql.nl.guard.duckdb_process import ChildDuckDB, child_duckdb, stopped

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST = 20_000  # characters of a statement
MOST_NODES = 5_000
DEEPEST = 200
_REFUSED = "the statement is refused: "
BUDGET = CALLS_ROWS  # where the caller gives no budget
MEMORY = 512  # MiB of a statement and its tables
# what it cannot read is refused, and said by the refusal
logging.getLogger("sqlglot").addHandler(logging.NullHandler())


def check_sql(text: str, tables: Collection[str]) -> str:
    """The text of one SELECT, written out again from its checked tree.

    Args:
        text: DuckDB SQL from a model.
        tables: the names that FROM may hold.
    Raises: GuardError (UQL620) on everything that is not one query of allowed nodes, functions and tables.
    """
    return _text(_checked(text, tables))


def check_uql(text: str, tables: Collection[str], *, budget: int = BUDGET, to: Collection[str] = ()) -> str:
    """The text of one UQL query, written out again from its checked tree.

    Args:
        text: UQL from a model.
        tables: the names that FROM may hold, besides those of WITH in the statement.
        budget: the calls that WITH (budget = …) may name at most.
        to: the names that TO may store under, in the run's own schema.
    Raises: GuardError (UQL620) on other statements, tables, files, table functions, functions, parameters, options and TO.
    """
    _short(text)
    try:
        pieces = parse_script(text)
    except UQLError as error:
        raise _refused(f"it is not UQL: {error.message}") from error
    if len(pieces) != 1:
        raise _refused(f"it holds {len(pieces)} statements, not one")
    query = pieces[0][0]
    if isinstance(query, str):  # DuckDB's own SQL, without a text
        return check_sql(text, tables)
    if not isinstance(query, Select | Union):
        raise _refused("it is not a query")
    _walk_uql(query, frozenset(name.lower() for name in tables), budget)
    if query.to is not None and query.to.lower() not in {name.lower() for name in to}:
        raise _refused(f"it stores under a name that was not given: TO {query.to}")
    return unparse(query)


@contextmanager
def sql_runner(
    names: Collection[str], table: Callable[[str], pa.Table], *, timeout_s: float = 10.0, max_rows: int = 10_000
) -> Iterator[Callable[[str], pa.Table]]:
    """A function that runs a SELECT, checked first, over copies of the tables that it names, in a DuckDB of its own.

    All its statements run in one DuckDB, so that each table is copied once.

    Args:
        names: what FROM may name.
        table: the rows of a name.
        timeout_s: that all statements may take together; after that their process is killed.
        max_rows: of a result.
    Raises: the function, GuardError: UQL620 where the text is refused or DuckDB finds an error in it; UQL621 where a limit
        stopped it.
    """
    import duckdb

    loaded: set[str] = set()
    with ExitStack() as stack:
        child: ChildDuckDB | None = None

        def run(text: str) -> pa.Table:
            nonlocal child
            tree = _checked(text, names)
            limit = tree.args.get("limit")
            table_names = _named_in(tree)
            if limit is None or int(limit.expression.name) > max_rows:
                tree = tree.limit(max_rows + 1, copy=False)
            sql = _text(tree)
            if child is None:
                child = stack.enter_context(child_duckdb(MEMORY, timeout_s))
            for name in names:
                if name.lower() in table_names and name not in loaded:
                    child.load(name, table(name))
                    loaded.add(name)
            try:
                rows = child.arrow(sql)
            except duckdb.Error as error:
                raise _refused(f"DuckDB: {str(error).strip().splitlines()[0]}") from error
            if rows.num_rows > max_rows:
                raise stopped(f"it gives more than {max_rows:,} rows", help="aggregate, or add LIMIT")
            return rows

        yield run


# ------------------------------------------------------------------------------------------------------------------- SQL
def _checked(text: str, tables: Collection[str]) -> Any:
    """The tree of the text that `_text` writes of a checked tree: that text runs, so it is read and checked as well."""
    _short(text)
    table_names = {name.lower() for name in tables}
    sql = _text(_allowed(text, table_names))
    tree = _allowed(sql, table_names)
    if _text(tree) != sql:
        raise _refused("it is not SQL that can be read")
    return tree


def _allowed(text: str, table_names: set[str]) -> Any:
    """The tree of one SELECT, each node of which is allowed."""
    from sqlglot import exp

    try:
        statements = read_sql(text)
    except ValueError as error:
        raise _refused("it is not SQL that can be read") from error
    if len(statements) != 1:
        raise _refused(f"it holds {len(statements)} statements, not one")
    tree = statements[0]
    if not isinstance(tree, exp.Select | exp.SetOperation):
        raise _refused(f"{type(tree).__name__} is not a SELECT")
    for count, node in enumerate(tree.walk(), 1):
        if count > MOST_NODES or node.depth > DEEPEST:
            raise _refused("it is too large")
        _check_node(node, table_names)
    return tree


def _text(tree: Any) -> str:
    try:
        return write_sql(tree)
    except ValueError as error:
        raise _refused("it is too deep, or not SQL that can be read") from error


def _check_node(node: Any, table_names: set[str]) -> None:
    from sqlglot import exp

    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        name = node.this.lower() if isinstance(node.this, str) else ""
        if name not in FUNCTIONS:
            raise _refused(f"the function {node.name} is not allowed")
        return
    if type(node).__name__ not in NODES:
        raise _refused(f"{type(node).__name__} is not allowed")
    if isinstance(node, exp.With) and node.args.get("recursive"):
        raise _refused("WITH RECURSIVE is not allowed")
    if isinstance(node, exp.Select) and (node.args.get("into") or node.args.get("locks")):
        raise _refused("SELECT INTO and FOR UPDATE are not allowed")
    if isinstance(node, exp.Limit | exp.Offset) and not _is_number(node.expression):
        raise _refused("LIMIT and OFFSET need a number")
    if isinstance(node, exp.Table):
        _check_table(node, table_names)


def _check_table(node: Any, table_names: set[str]) -> None:
    from sqlglot import exp

    if not isinstance(node.this, exp.Identifier) or node.args.get("db") or node.args.get("catalog"):
        raise _refused("FROM names something else than a table")
    if node.name.lower() not in table_names | _named_around(node):
        raise _refused(f"FROM names {node.name!r}, which was not given")


def _named_around(node: Any) -> set[str]:
    """The names that WITH gives to queries where this node stands: inside one of them those before it, else all."""
    names: set[str] = set()
    below, above = node, node.parent
    while above is not None:
        with_clause = above.args.get("with_") or above.args.get("with")
        if with_clause is not None and with_clause is not below:
            names |= {query.alias.lower() for query in with_clause.expressions}
        elif type(above).__name__ == "With":
            place = next(i for i, query in enumerate(above.expressions) if query is below)
            names |= {query.alias.lower() for query in above.expressions[:place]}
        below, above = above, above.parent
    return names


def _is_number(node: Any) -> bool:
    from sqlglot import exp

    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()


# ------------------------------------------------------------------------------------------------------------------- UQL
def _walk_uql(query: Query, tables: frozenset[str], budget: int) -> None:
    """Checks every node below a query; names of its WITH are tables inside it."""
    stack: list[tuple[Node, frozenset[str]]] = [(query, tables)]
    count = 0
    while stack:
        node, visible = stack.pop()
        count += 1
        if count > MOST_NODES:
            raise _refused("it is too large")
        _check_uql_node(node, visible, budget)
        parts = list(children(node, queries=True))
        if isinstance(node, Select | Union):
            for cte in node.ctes:  # each sees those before it
                stack.append((cte, visible))
                visible = visible | {cte.name.lower()}
            parts = [part for part in parts if part not in node.ctes]
            if node is not query and node.to is not None:
                raise _refused("TO inside a sub-query is not allowed")
        stack += [(part, visible) for part in parts]


def _check_uql_node(node: Node, tables: frozenset[str], budget: int) -> None:
    if type(node).__name__ not in UQL_NODES:
        raise _refused(f"{type(node).__name__} is not allowed")
    if isinstance(node, Name) and len(node.parts) == 1 and node.parts[0].lower() in CLOCKS:
        raise _refused(f"{node.parts[0]} is not allowed")
    if isinstance(node, TableName):
        if node.file or len(node.parts) != 1 or node.parts[0].lower() not in tables:
            raise _refused(f"FROM names {'.'.join(node.parts)!r}, which was not given")
        if node.sample:  # it would pass for the whole
            raise _refused("TABLESAMPLE is not allowed")
    elif isinstance(node, TableFunction):
        if node.call.name not in TABLE_FUNCTIONS:
            raise _refused(f"the function {node.call.name} is not allowed in FROM")
    elif isinstance(node, Call) and node.name.lower() not in FUNCTIONS | TABLE_FUNCTIONS:
        raise _refused(f"the function {node.name} is not allowed")
    elif isinstance(node, Option):
        if node.name.lower() not in OPTIONS:
            raise _refused(f"the option {node.name} is not allowed")
        number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
        if not number:
            raise _refused(f"the option {node.name} needs a number")
        if node.name.lower() == "budget" and not (isinstance(node.value, int) and 0 <= node.value <= budget):
            raise _refused(f"the budget is at most {budget:,} calls")


def rebuilt(tree: Any, change: Callable[[Any], Any]) -> Any:
    """UQL's tree with `change` applied to every node, those below first; the same object where nothing changes."""
    return change(with_children(tree, lambda part: rebuilt(part, change)))


def tables_named(text: str) -> set[str]:
    """The names after FROM and JOIN of a UQL query, or of DuckDB's SQL in its place, lower case; empty where it does not parse."""
    try:
        query = parse_script(text)[0][0]
        if isinstance(query, str):
            return _named_in(read_sql(query)[0])
    except (UQLError, ValueError, IndexError):
        return set()
    return tables_in(query)


def tables_in(query: Node) -> set[str]:
    """The names of tables in a tree of UQL's, lower case."""
    return {node.parts[-1].lower() for node in walk(query, queries=True) if isinstance(node, TableName)}


def _named_in(tree: Any) -> set[str]:
    from sqlglot import exp

    return {table.name.lower() for table in tree.find_all(exp.Table)}


def tables_of(text: str, allowed: Collection[str]) -> list[str]:
    """Which of these tables a query names."""
    names = tables_named(text)
    return [name for name in allowed if name.lower() in names]


# ---------------------------------------------------------------------------------------------------------------- errors
def _short(text: str) -> None:
    if not isinstance(text, str) or not text.strip():
        raise _refused("it is empty")
    if len(text) > LONGEST or "\0" in text:
        raise _refused(f"it is longer than {LONGEST:,} characters, or no text")


def is_refusal(error: UQLError) -> bool:
    """Was a statement refused for what it says, before DuckDB looked at a value?"""
    is_own = isinstance(error, GuardError) and error.message.startswith(_REFUSED)
    return is_own and not error.message.startswith(f"{_REFUSED}DuckDB: ")


def _refused(why: str, help: str = "write one SELECT over the tables given") -> GuardError:
    return GuardError(f"{_REFUSED}{why}", help=help)
