"""Functions of DuckDB's that a query may call and that change something: a read-only session refuses them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

import duckdb

from uql.base.duckdb_connections import private_cursor
from uql.compiler.statement_targets import tokens

READS_ONLY = "the session is read-only: a query, EXPLAIN of a query, or SET uql.name = value"
TO_CHANGE = "start it without --read-only, and `uql ui` with --write, to change something"
# they change settings or sequences, write files, or run what they are given as a value
_CHANGING_FUNCTIONS = """
    add_grammar_extension checkpoint create_external_resource deregister_external_resource destroy_external_resource
    disable_logging disable_profiling enable_logging enable_profiling force_checkpoint json_execute_serialized_sql nextval
    register_external_resource register_external_resource_type remove_grammar_extension setval truncate_duckdb_logs write_log
"""
_CHANGING = frozenset(_CHANGING_FUNCTIONS.split())
_DEEPEST = 1_000  # parentheses: DuckDB's own limit; its parser takes time by the square of those that are left open


@lru_cache(maxsize=1_000)  # at each statement of a read-only session every view and macro is asked about
def calls_change(sql: str) -> bool:
    """Does a statement call one of them? `query` runs the text that it is given: a constant is looked into, anything else refused.

    DuckDB's tree says what is called. Its tokens are read too: of a PIVOT, and of a statement with texts, there is no tree.

    >>> calls_change("FROM query('FROM enable_logging()')"), calls_change("FROM query('FROM t')"), calls_change("FROM checkpoint")
    (True, False, False)
    """
    try:
        calls = [*_calls_in_tokens(sql), *_calls_in_tree(sql)]
    except RecursionError:  # a tree that is too deep to be read
        return True
    return any(name in _CHANGING or (name == "query" and (text is None or calls_change(text))) for name, text in calls)


def changing_definitions(definitions: Mapping[str, Collection[str]]) -> set[str]:
    """The views and macros that call one of them, themselves or through others.

    Args:
        definitions: their texts by name, in lower case; macros of one name have several.

    >>> sorted(changing_definitions({"v": ["SELECT write_log('a')"], "m": ["(a + 1)"], "w": ["FROM v JOIN t ON true"]}))
    ['v', 'w']
    """
    changing = {name for name, texts in definitions.items() if any(map(calls_change, texts))}
    words_by_name = {name: {word for text in texts for word in _words(text)} for name, texts in definitions.items()}
    while changing:
        more = {name for name, words in words_by_name.items() if name not in changing and words & changing}
        if not more:
            break
        changing |= more
    return changing


def names_one(sql: str, names: Collection[str]) -> bool:
    """May a statement read one of these views, or call one of these macros?

    >>> names_one("SELECT m(a) FROM t", {"m"}), names_one("FROM t", {"v"}), names_one("FROM query_table('v')", {"v"})
    (True, False, True)
    """
    nodes = tree_nodes(statement_tree(sql))
    words = {str(node.get(key, "")).lower() for node in nodes for key in ("function_name", "table_name")}
    return not words.union(_words(sql)).isdisjoint({*names, "query_table"})


def statement_tree(sql: str) -> Any:
    """DuckDB's tree of a query; of anything else, one that says "error". Raises: RecursionError where it is too deep to read."""
    depths = accumulate({"(": 1, ")": -1}.get(token.text, 0) for token in tokens(sql))
    if max(depths, default=0) > _DEEPEST:
        raise RecursionError
    return json.loads(_written_tree(sql))


@lru_cache(maxsize=8)  # a statement is asked about several times on its way
def _written_tree(sql: str) -> str:
    try:
        with private_cursor() as cursor:
            rows = cursor.execute("SELECT system.main.json_serialize_sql(?)", [sql]).fetchall()
    except duckdb.Error:
        return '{"error": true}'
    return str(rows[0][0])


def tree_nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object in a tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _calls_in_tokens(sql: str) -> Iterator[tuple[str, str | None]]:
    """What is called, in lower case, and the text that is its only argument; None: it has another one."""
    stream = tokens(sql)
    for n, (token, after) in enumerate(pairwise(stream)):
        if token.name and after.text == "(":
            next_texts = [argument.text for argument in stream[n + 2 : n + 4]]
            yield token.name.lower(), _text(next_texts[0]) if next_texts[1:] == [")"] else None


def _calls_in_tree(sql: str) -> Iterator[tuple[str, str | None]]:
    """As `_calls_in_tokens`; nothing where DuckDB has no tree of the statement."""
    for node in tree_nodes(statement_tree(sql)):
        if "function_name" in node:
            literals = [argument.get("expression", {}).get("literal", {}) for argument in node.get("arguments", ())]
            text = literals[0].get("text") if len(literals) == 1 and literals[0].get("kind") == "STRING" else None
            yield str(node["function_name"]).lower(), text


def _words(sql: str) -> Iterator[str]:
    """The names, signs and words of texts in the definition of a view or macro, in lower case."""
    for token in tokens(sql):
        text = _text(token.text)
        if text is None:
            yield (token.name or token.text).lower()
        else:
            yield from _words(text)


def _text(token: str) -> str | None:
    """The value of '…'; None of anything else."""
    return token[1:-1].replace("''", "'") if token.startswith("'") else None
