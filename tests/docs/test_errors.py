"""docs/errors.md: every code that the source raises is in its table, and each statement there raises its code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from error_codes import ERROR_CODES
from hash_model import HashModel

import uql
from uql.base import errors

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "errors.md"
CLASSES = {
    name: cls.code for name, cls in vars(errors).items() if isinstance(cls, type) and issubclass(cls, errors.UQLError)
}
_CODE = re.compile(r"(UQL\d{3})(:|$)")
STATEMENTS = {code: entry.statement for code, entry in ERROR_CODES.items() if entry.statement}


def codes_raised(text: str) -> Iterator[str]:
    """The codes of a module: an argument of a call, the head of a warning, the default of a class that is called without one."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            given = [*node.args, *(word.value for word in node.keywords)]
            values = [value for each in given for value in (each.values if isinstance(each, ast.JoinedStr) else [each])]
            for value in values:
                found = (
                    _CODE.match(value.value)
                    if isinstance(value, ast.Constant) and isinstance(value.value, str)
                    else None
                )
                if found:
                    yield found[1]
            if (
                isinstance(node.func, ast.Name)
                and node.func.id in CLASSES
                and all(w.arg != "code" for w in node.keywords)
            ):
                yield CLASSES[node.func.id]


@pytest.mark.thorough
def test_every_code_that_is_raised_has_an_entry_and_every_entry_is_raised() -> None:
    files = [path for folder in ("uql", "compiler", "kernels", "sampling") for path in (ROOT / folder).rglob("*.py")]
    raised = {code for path in files for code in codes_raised(path.read_text("utf-8"))}
    assert raised == set(ERROR_CODES)


def test_the_search_for_codes_finds_arguments_warnings_and_defaults() -> None:
    text = 'x.error("no", "UQL999")\nwarn(f"UQL102: {a}")\nBackendError("down")\nif e.code == "UQL001": pass\n'
    assert sorted(codes_raised(text)) == ["UQL102", "UQL406", "UQL999"]


@pytest.mark.parametrize("code", sorted(ERROR_CODES))
def test_an_entry_has_a_cause_a_cure_and_one_example(code: str) -> None:
    entry = ERROR_CODES[code]
    assert entry.cause.endswith(".") and entry.cure.endswith(".")
    assert bool(entry.statement) != bool(entry.situation)


@pytest.mark.thorough
@pytest.mark.parametrize("code", sorted(STATEMENTS))
def test_the_statement_of_an_entry_raises_its_code(code: str) -> None:
    duck = duckdb.connect(":memory:")
    tables = re.search(r"```sql\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    assert tables is not None
    duck.execute(tables[1])
    duck.execute("INSERT INTO reviews SELECT i, 'film ' || i % 3, i % 6, 'a review, number ' || i FROM range(40) r(i)")
    duck.execute("INSERT INTO films SELECT 'film ' || i, 1990 + i, 'the plot of film ' || i FROM range(3) r(i)")
    with uql.attach(duck, model=HashModel(), ledger=":memory:") as con:
        if code == "UQL102":  # a warning
            assert any(warning.startswith(code) for warning in con.uql(STATEMENTS[code]).warnings)
            return
        with pytest.raises(uql.UQLError) as raised:
            con.uql(STATEMENTS[code]).fetchall()
        assert raised.value.code == code
