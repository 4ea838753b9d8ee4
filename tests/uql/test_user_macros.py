"""A macro of the user's, or of a database that somebody sent, may have the name of a function that UQL calls in its own SQL."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hash_model import HashModel

import uql

ROOT = Path(uql.__file__).parent.parent
SQL_OF_SESSIONS = (
    "kernels", "uql/base", "uql/cluster", "uql/engine", "uql/nl/schema", "uql/pricing/known.py", "uql/session", "uql/sources",
)  # fmt: skip
OF_THE_LEDGER = {"replay.py", "examples.py"}  # what is in SQLite or PostgreSQL has no macros
SAID = ("# uql = ", "VIDEO (")  # the beginnings of what a model or a user reads
NOTATION = {"row", "struct_pack"}  # DuckDB calls these itself, for (1, 2) and for a table's name as a value
STATEMENTS = (
    'SELECT id FROM reviews WHERE "positive" ORDER BY id',
    'SELECT a.id, b.n FROM reviews a JOIN films b ON "{a.text} is about {b.title}" ORDER BY 1, 2',
    'SELECT r.id, f.title FROM reviews r JOIN films f ON r.stars = f.n AND "{r.text} is about {f.title}" ORDER BY 1, 2',
    'SELECT r.id, f.title FROM reviews r JOIN films f ON "both name the same film" ORDER BY 1, 2 LIMIT 9',
    'SELECT "the genre" AS g, arg_max(id, id) AS n FROM reviews GROUP BY "the genre" ORDER BY 1',
    'SELECT arg_max(id, stars) FROM reviews WHERE "positive"',
    'SELECT stars, mode("how many stars"::INTEGER) AS m FROM reviews GROUP BY stars ORDER BY 1',
    'SELECT id FROM reviews ORDER BY "how happy" DESC LIMIT 3',
    'SELECT DISTINCT "the tone" AS t FROM reviews ORDER BY t',
    'SELECT DISTINCT ON ("the same review") id FROM reviews ORDER BY id',
    'SELECT id FROM reviews WHERE "a" UNION SELECT id FROM reviews WHERE "b" ORDER BY 1',
    'SELECT id FROM reviews WHERE "a" INTERSECT ALL SELECT id FROM reviews WHERE "b" ORDER BY 1',
    'SELECT id FROM reviews WHERE EXISTS (SELECT 1 FROM films WHERE n = stars AND "{title} is good") ORDER BY id',
    'SELECT id FROM reviews AS r WHERE stars > (SELECT arg_max(n, n) FROM films WHERE n < r.stars AND "{title} is good") ORDER BY id',
    "SELECT id FROM reviews WHERE \"the tone\" IN ('happy', 'sad') ORDER BY id LIMIT 10%",
    'SELECT stars, "a summary" AS s FROM reviews GROUP BY stars ORDER BY 1',
    'CREATE OR REPLACE TABLE made AS SELECT id FROM reviews WHERE "a"',
    "SELECT * FROM made ORDER BY 1",
    'CREATE OR REPLACE SEMANTIC TABLE tones AS SELECT id, "the tone" AS tone FROM reviews KEY (id)',
    "INSERT INTO reviews VALUES (100, 'one more', 3)",
    "REFRESH tones",
    "SELECT * FROM tones ORDER BY id",
    "DROP SEMANTIC TABLE tones",
)


def sources() -> Iterator[Path]:
    for place in SQL_OF_SESSIONS:
        yield from [ROOT / place] if place.endswith(".py") else (ROOT / place).rglob("*.py")


def called() -> set[str]:
    """The functions that UQL's own SQL calls."""
    texts = [
        path.read_text("utf-8") for place in ("uql", "kernels", "compiler") for path in (ROOT / place).rglob("*.py")
    ]
    names = {name.lower() for text in texts for name in re.findall(r"\bsystem\.main\.(\w+)", text)}
    return names - NOTATION - {"duckdb_"}


@pytest.fixture
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute(
            "CREATE TABLE reviews AS SELECT i AS id, 'review ' || i || ' of a film that I saw' AS text, 1 + i % 5 AS stars FROM range(40) t(i)"
        )
        made.execute("CREATE TABLE films AS SELECT i AS n, 'film ' || i AS title FROM range(6) t(i)")
        yield made


def test_uqls_own_sql_names_duckdbs_functions_in_full() -> None:
    functions = "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_name SIMILAR TO '\\w+'"
    names = {name for (name,) in duckdb.sql(functions).fetchall()}
    bare = re.compile(r"(?<![\w.])(\w+)\(", re.IGNORECASE)
    for path in sources():
        if path.name in OF_THE_LEDGER:
            continue
        tree = ast.parse(path.read_text("utf-8"))
        said = {id(part) for node in ast.walk(tree) for part in _said(node)}
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in said
                and not node.value.startswith(SAID)
            ):
                found = [name for name in bare.findall(node.value) if name.lower() in names and not name.isupper()]
                assert not found, f"{path}, line {node.lineno}: write system.main.{found[0]}: {node.value}"


def _said(node: ast.AST) -> Iterator[ast.AST]:
    """Docstrings, and what is said to the user."""
    if isinstance(node, ast.Expr):
        yield node.value
    words = ("help", "message", "way", "hint", "what", "other", "left_out")
    if (isinstance(node, ast.keyword) and node.arg in words) or isinstance(node, ast.Raise):
        yield from ast.walk(node)
    if isinstance(node, ast.Assign) and any(
        getattr(n, "id", getattr(n, "attr", "")) in words for t in node.targets for n in ast.walk(t)
    ):
        yield from ast.walk(node)


@pytest.mark.thorough
@pytest.mark.parametrize("budget", ["all", 25])
def test_macros_with_the_names_of_duckdbs_functions_change_no_answer(
    duck: duckdb.DuckDBPyConnection, budget: Any
) -> None:
    names = called()
    assert {"hash", "count", "sum", "row_number", "unnest", "lower", "duckdb_tables"} <= names
    expected = _answers(duck, budget)
    duck.execute("DELETE FROM reviews WHERE id = 100")
    tables = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN ('table', 'table_macro', 'pragma')"
    for (name,) in duck.execute(tables).fetchall():
        if name in names:
            duck.execute(f'CREATE MACRO "{name}"() AS TABLE SELECT 7 AS x')
            names.remove(name)
    for name in names:
        duck.execute(f'CREATE MACRO "{name}"() AS 7, (a) AS 7, (a, b) AS 7')
    for before, after in zip(expected, _answers(duck, budget), strict=True):
        assert before == after


def _answers(duck: duckdb.DuckDBPyConnection, budget: Any) -> list[tuple[Any, ...]]:
    answers: list[tuple[Any, ...]] = []
    with uql.attach(duck, model=HashModel(), ledger=":memory:", budget=budget, seed=1) as con:
        for statement in STATEMENTS:
            try:
                result = con.uql(statement)
                answers.append((statement, result.fetchall(), str(result.estimates), result.exact, result.cost.calls))
            except uql.UQLError as error:  # too few calls
                answers.append((statement, str(error)))
    return answers


def test_a_macro_in_the_place_of_an_aggregate_is_refused_beside_a_text_and_runs_without_one(
    duck: duckdb.DuckDBPyConnection,
) -> None:
    duck.execute("CREATE MACRO sum(x) AS x + 1")
    with uql.attach(duck, model=HashModel(), ledger=":memory:", budget="all") as con:
        assert con.uql("SELECT sum(id) FROM reviews WHERE id < 2 ORDER BY 1").fetchall() == [(1,), (2,)]
        with pytest.raises(uql.UQLError, match="sum is a macro here") as raised:
            con.uql('SELECT sum(id) FROM reviews WHERE "positive"').fetchall()
        assert "DROP MACRO sum" in str(raised.value) and "column 8" in str(raised.value)
        duck.execute("DROP MACRO sum")
        assert con.uql('SELECT sum(id) FROM reviews WHERE "positive" OR id >= 0').fetchall() == [(780,)]


def test_a_macro_that_the_user_calls_beside_a_text_is_theirs(duck: duckdb.DuckDBPyConnection) -> None:
    duck.execute("CREATE MACRO length(x) AS 3; CREATE MACRO hash(x) AS 5")
    with uql.attach(duck, model=HashModel(), ledger=":memory:", budget="all") as con:
        assert con.uql('SELECT length(text), hash(id) FROM reviews WHERE "positive" OR id >= 0 LIMIT 1').fetchall() == [
            (3, 5)
        ]
