"""Several statements in one text: each keeps its place in it, and can be planned without being run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from uql.base.errors import BindError, UQLError

if TYPE_CHECKING:
    from uql.api.connection import Connection
    from uql.compiler.syntax import Statement


def pieces(text: str) -> list[tuple[Statement | str, str]]:
    """The statements of a script, each with its text, before which as many lines and columns stand as in the script.

    So an error in the third statement names the line of the script. What is not UQL comes as the text alone. A text without
    a statement is one piece: the engine says what is wrong with it.

    >>> [source for _, source in pieces("SELECT 1;\\nSELECT 2")]
    ['SELECT 1', '         \\nSELECT 2']
    """
    from uql.compiler.parser import parse_script

    statements: list[tuple[Statement | str, str]] = []
    for statement, span in parse_script(text):
        before = "".join("\n" if char == "\n" else " " for char in text[: span.start])
        statements.append((statement, before + text[span.start : span.end]))
    return statements or [(text, text)]


def plans(con: Connection, text: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    """The plan and the price of each statement of a script, as `plan` gives them.

    Of a statement that reads what one before it would make, it says so in their place: there are no rows yet to plan for.

    Args:
        text: statements with `;` between.
        parameters: values of `$name`; each statement gets those that it names.
    Raises: UQLError of any kind that running the script would raise before it asks a model.
    """
    from uql.compiler.bind.parameters import names, refuse_unused
    from uql.session.check_script import makes_tables

    con.script(text, parameters)  # checked whole
    statements = [(statement, source, names(statement)) for statement, source in pieces(text)]
    refuse_unused(parameters, set().union(*(own for _, _, own in statements)))
    made = False
    for statement, source, own in statements:
        try:
            yield plan(con, statement, source, {name: value for name, value in parameters.items() if name in own})
        except BindError as error:
            if not made:
                raise
            yield f"planned when the statements before it have run: {error.message}"
        made = made or makes_tables(statement)


def plan(con: Connection, statement: Statement | str, source: str, parameters: Mapping[str, Any]) -> str:
    """The plan and the price of a statement. Nothing is asked and nothing is written; SET is obeyed, for what follows.

    Args:
        statement: parsed; text where it is DuckDB's own.
        parameters: values of `$name`.
    Raises: UQLError of any kind that running it would raise before it asks a model.
    """
    from uql.compiler import syntax as ast
    from uql.compiler.unparse import unparse

    match statement:
        case str():
            if '"' not in statement or statement.lstrip()[:7].upper() == "EXPLAIN":
                return "DuckDB"
            return _of_duckdbs(con, source, parameters)
        case ast.SetOption():
            con.uql(source).arrow()
            return f"SET {statement.name}"
        case ast.CreateTable() | ast.Insert() | ast.CopyQuery():
            return con.uql(f"EXPLAIN {unparse(statement.query)}", **parameters).explain()
        case ast.DropSemanticTable():
            return unparse(statement)
        case ast.Explain():
            return con.uql(source, **parameters).explain()
    return con.uql(f"EXPLAIN {source}", **parameters).explain()


def _of_duckdbs(con: Connection, source: str, parameters: Mapping[str, Any]) -> str:
    """The plan of a statement that is not UQL's own and quotes something: names, or texts as in UPDATE and DELETE."""
    explain = "EXPLAIN "
    try:
        return con.uql(explain + source, **parameters).explain()
    except UQLError as error:
        if error.text == explain + source and error.start >= 0:
            error.text, error.start, error.end = source, error.start - len(explain), error.end - len(explain)
        raise
