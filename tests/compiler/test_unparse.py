"""A tree written as text and read again is the same tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from labels import both
from strategies import expressions, statements

from uql.compiler import syntax as ast
from uql.compiler.grammar_expressions import CHAIN
from uql.compiler.parser import MAX_DEPTH, parse
from uql.compiler.unparse import unparse

RELAXED = settings(deadline=None, max_examples=80, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.mark.thorough
@RELAXED
@given(statement=statements)
def test_parse_of_unparse_is_the_same_statement(statement: ast.Node) -> None:
    assert parse(unparse(statement)) == statement


@settings(RELAXED, max_examples=200)
@given(expression=expressions)
def test_parse_of_unparse_is_the_same_expression(expression: ast.Expr) -> None:
    tree = ast.Select((ast.SelectItem(expression),))
    assert parse(unparse(tree)) == tree


@pytest.mark.thorough
@pytest.mark.parametrize("terms", [CHAIN - 1, CHAIN, CHAIN + 1, 2 * CHAIN, 2 * CHAIN + 1, 257, 1024, 10_000])
@pytest.mark.parametrize("op", ["AND", "OR"])
def test_a_chain_of_any_length_comes_back(op: str, terms: int) -> None:
    tree = parse("SELECT " + f" {op} ".join(f"c{i}" for i in range(terms)))
    assert parse(unparse(tree)) == tree


def test_a_left_deep_chain_in_parentheses_comes_back() -> None:
    text = "a"
    for i in range(60):
        text = f"({text}) AND b{i}"
    tree = parse(f"SELECT {text}")
    assert parse(unparse(tree)) == tree


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * (MAX_DEPTH - 5) + "a" + " + 1)" * (MAX_DEPTH - 5),
        "SELECT " + "NOT " * (MAX_DEPTH - 5) + "a",
        "SELECT " + "f(" * (MAX_DEPTH - 5) + "a" + ")" * (MAX_DEPTH - 5),
        "SELECT " + "CASE WHEN a THEN " * 45 + "b" + " END" * 45,
        "SELECT " + "(SELECT " * 30 + "1" + ")" * 30,
    ],
)
def test_the_deepest_statement_is_written_compared_and_hashed_without_recursion_error(text: str) -> None:
    tree = parse(text)
    again = parse(unparse(tree))
    assert again == tree
    assert hash(again) == hash(tree)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("select a.b, 'it''s' from t where not (a or b) and c", "SELECT a.b, 'it''s' FROM t WHERE NOT (a OR b) AND c"),
        ("SELECT - -a, -(-a), (a+b)*c, a-(b-c)", "SELECT - -a, - -a, (a + b) * c, a - (b - c)"),
        ('SELECT "t" x FROM r WHERE y = "text" AND z != 1', "SELECT \"t\" AS x FROM r WHERE y = 'text' AND z <> 1"),
        ("SELECT 1 UNION (SELECT 2 LIMIT 1)", "SELECT 1 UNION (SELECT 2 LIMIT 1)"),
        ("SELECT 1 LIMIT 3 WITH (budget = 3, exact)", "SELECT 1 LIMIT 3 WITH (budget = 3, exact)"),
        ("SELECT x::INT, (-1)::INT, TRY_CAST(a AS DATE)", "SELECT x::INTEGER, (-1)::INTEGER, TRY_CAST(a AS DATE)"),
    ],
)
def test_text_is_written_with_no_more_parentheses_than_needed(text: str, written: str) -> None:
    assert unparse(parse(text)) == written


def test_a_text_on_the_right_of_a_comparison_stays_a_text() -> None:
    tree = ast.Binary("=", ast.Name(("a",)), ast.Quoted("the reason"))
    assert unparse(tree) == 'a = PROMPT "the reason"'


def test_statements_of_every_construct_are_written_as_they_were_read():
    folder = Path(__file__).parents[1] / "golden" / "differential"
    files = [
        file for file in sorted(folder.glob("*.sql")) if file.stem != "around_sub_queries"
    ]  # those are DuckDB's own
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    for line in (line for line in lines if "PIVOT" not in line and not line.startswith("--")):
        tree = parse(both(line)[0])
        assert parse(unparse(tree)) == tree, unparse(tree)


@pytest.mark.parametrize("text", ["(lambda) LIKE x", "(lambda) + 1", "f((lambda) IN (1))"])
def test_a_name_that_would_begin_a_lambda_stands_in_parentheses(text: str) -> None:
    tree = parse(f"SELECT {text}")
    assert parse(unparse(tree)) == tree
