"""WITH RECURSIVE beside texts: DuckDB gives the rows of the recursion, as a temporary view, and UQL reads that."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import duckdb

from uql.base.errors import UQLSyntaxError
from uql.base.sql_text import first_line, quote
from uql.compiler.lexer import Token, closing, is_free_text, tokenize

_BEFORE = 'ask the model before it, in a table of its own: WITH RECURSIVE first AS (SELECT … "…"), '


@dataclass(frozen=True, slots=True)
class _Common:
    """A common table: its name, and where its definition, `name (columns) AS (body)`, and its body stand in the tokens."""

    name: str
    start: int
    body: int
    end: int


def without_recursion(text: str, connection: duckdb.DuckDBPyConnection) -> str:
    """The statement with each recursive common table that holds no text as a temporary view of DuckDB's, named by its SQL.

    Places behind it stay where they are. The statement itself where a recursion reads what a text decides: DuckDB runs it, if at all.

    Args:
        connection: takes the views.
    Raises: UQLSyntaxError (UQL100) for a text inside of a recursion, and for what DuckDB says of one.
    """
    try:
        tokens = [token for token in tokenize(text) if token.type != "SEMICOLON"]
    except UQLSyntaxError:
        return text
    statement = text
    for at, token in enumerate(tokens[:-1]):
        if token.type == "WITH" and _word(tokens[at + 1]) == "recursive":
            statement = _rewritten(text, statement, tokens, at + 1, connection)
    return statement


def _rewritten(text: str, statement: str, tokens: list[Token], at: int, connection: duckdb.DuckDBPyConnection) -> str:
    """`statement` without the recursion that the token at `at` begins."""
    asking: set[str] = set()  # those that a text decides
    plain: list[str] = []
    views: list[tuple[_Common, str]] = []
    for common in _commons(tokens, at + 1):
        body = tokens[common.body + 1 : common.end]
        text_in_it = next((t for t in body if is_free_text(t)), None)
        names = {_word(t) for t in body}
        recursive = common.name in names
        if recursive and text_in_it is not None:
            before = [t.type for t in body[: body.index(text_in_it)]]
            if before.count("LPAREN") > before.count("RPAREN"):  # in a sub-query, which is answered by itself
                return statement
            raise UQLSyntaxError(
                f"{common.name} reads itself and contains a text: a recursive query cannot ask a model",
                text=text,
                start=text_in_it.lexpos,
                end=text_in_it.endlexpos,
                help=f"{_BEFORE}{common.name} AS (… FROM first UNION ALL …)",
            )
        if text_in_it is not None or names & asking:
            asking.add(common.name)
            if recursive:
                return statement
            continue
        plain.append(text[tokens[common.start].lexpos : tokens[common.end].endlexpos])
        if recursive:
            views.append((common, f"WITH RECURSIVE {', '.join(plain)} SELECT * FROM {quote(common.name)}"))
    for common, sql in views:
        view = f"__uql_recursion_{hashlib.blake2b(sql.encode(), digest_size=6).hexdigest()}"
        start, end = tokens[common.body].endlexpos, tokens[common.end].lexpos
        try:
            connection.execute(f"CREATE OR REPLACE TEMP VIEW {view} AS {sql}")
        except duckdb.Error as error:
            help = "a recursion takes no parameter: write its value" if "parameter" in str(error) else None
            raise UQLSyntaxError(
                f"DuckDB says: {first_line(error)}", text=text, start=start, end=end, help=help
            ) from None
        statement = statement[:start] + f"FROM {view}".ljust(end - start) + statement[end:]
        key = [t.lexpos for t in tokens[common.start : common.body] if _word(t) in ("using", "as")]
        statement = statement[: key[0]] + " " * (key[-1] - key[0]) + statement[key[-1] :]  # without USING KEY (…)
    word: Token = tokens[at]
    return statement[: word.lexpos] + " " * len("RECURSIVE") + statement[word.endlexpos :]


def _commons(tokens: list[Token], at: int) -> list[_Common]:
    """The common tables whose list begins at a token."""
    commons: list[_Common] = []
    while at < len(tokens):
        start, body = at, at
        while body < len(tokens) and not (tokens[body].type == "LPAREN" and _word(tokens[body - 1]) in _OPENS):
            body += 1
        end = closing(tokens, body)
        if end is None:
            break
        commons.append(_Common(_word(tokens[start]), start, body, end))
        if end + 1 >= len(tokens) or tokens[end + 1].type != "COMMA":
            break
        at = end + 2
    return commons


_OPENS = ("as", "materialized")


def _word(token: Token) -> str:
    return str(token.value).lower()
