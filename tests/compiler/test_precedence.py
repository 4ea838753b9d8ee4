"""Operators bind as in DuckDB: the tree that DuckDB makes of an expression is that of the expression as UQL has read and written it."""

from __future__ import annotations

import json
import random
from typing import Any

import duckdb
import pytest

from uql.base.errors import UQLSyntaxError
from uql.compiler.parser import parse
from uql.compiler.unparse import unparse

BINARY = (
    "OR", "AND", "=", "<>", "<", ">=", "||", "->>", "&", "|", "<<", ">>", "+", "-", "*", "/", "//", "%", "**", "^",
    "@>", "&&", "^@", "~", "!~", "~~", "!~~*", "LIKE", "NOT LIKE", "ILIKE", "GLOB", "SIMILAR TO", "IS DISTINCT FROM",
    "IS NOT DISTINCT FROM", "AT TIME ZONE",
)  # fmt: skip
BEHIND = (
    " IS NULL", " IS NOT NULL", " ISNULL", " NOTNULL", " IS TRUE", " IS NOT FALSE", " IN (1, 2)", " NOT IN (3)",
    " BETWEEN b AND c", " NOT BETWEEN 1 AND d", "::INT", "::VARCHAR[]", "[1]", "[1:2]", "->>'k'", "->'j'->>'k'",
    " COLLATE nocase",
)  # fmt: skip
BEFORE = ("NOT ", "- ", "+ ", "- - ")
SAME = {"&&": "list_has_any", "@>": "list_has_all", "^@": "starts_with", "**": "^"}
ASIDE = {"query_location", "query_location_length", "alias", "is_operator", "syntax_type"}


def expression(draw: random.Random, depth: int) -> str:
    if depth == 0:
        return draw.choice(
            ["a", "b", "1", "'s'", "f(a)", "t.x", "NULL", "CASE WHEN a THEN b END", "[a]", "(a, b)", "TRUE"]
        )
    inner = expression(draw, depth - 1)
    match draw.randrange(10):
        case 0 | 1 | 2 | 3 | 4 | 5:
            return f"{inner} {draw.choice(BINARY)} {expression(draw, draw.randrange(depth))}"
        case 6 | 7:
            return inner + draw.choice(BEHIND)
        case 8:
            return draw.choice(BEFORE) + inner
    return f"({inner})"


def tree(connection: duckdb.DuckDBPyConnection, text: str) -> Any:
    """DuckDB's tree of an expression without the places of its nodes; None where it takes it for an error."""
    [[said]] = connection.execute("SELECT json_serialize_sql(?)", [f"SELECT {text}"]).fetchall()
    statement = json.loads(said)
    return None if statement["error"] else plain(statement["statements"][0]["node"]["select_list"][0])


def plain(node: Any) -> Any:
    if isinstance(node, list):
        return [plain(part) for part in node]
    if isinstance(node, str):
        return SAME.get(node, node)
    return {k: plain(v) for k, v in node.items() if k not in ASIDE} if isinstance(node, dict) else node


@pytest.mark.skipif(duckdb.__version__ < "2", reason="DuckDB 1 binds ->> and comparisons otherwise")
@pytest.mark.parametrize("seed", range(4))
def test_an_expression_of_many_operators_has_the_tree_that_duckdb_gives_it(seed: int) -> None:
    draw, compared = random.Random(seed), 0
    with duckdb.connect() as connection:
        for _ in range(600):
            text = expression(draw, draw.randrange(1, 4))
            meant = tree(connection, text)
            try:
                written = unparse(parse(f"SELECT {text}")).removeprefix("SELECT ")
            except UQLSyntaxError:  # a test in the place of a number: a IS NULL + 1
                continue
            read = tree(connection, written)
            if meant is None or read is None:  # a LIKE b LIKE c is none of DuckDB's
                continue
            assert read == meant, f"{text} is read as {written}"
            compared += 1
    assert compared > 450
