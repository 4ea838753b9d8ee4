"""`import uql` is light: heavy libraries load when they are first used."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {
    "openai",
    "anthropic",
    "pandas",
    "pyarrow",
    "sklearn",
    "faiss",
    "pydantic_settings",
    "typer",
    "polars",
    "xllamacpp",
}


def loaded_after(code: str) -> set[str]:
    """The top-level modules in `sys.modules` of a fresh interpreter that ran `code`."""
    program = (
        f"import sys, json\n{code}\nsys.stderr.write(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return set(json.loads(done.stderr))


def test_import_uql_loads_no_heavy_library() -> None:
    assert not loaded_after("import uql") & HEAVY


def test_parsing_loads_no_heavy_library() -> None:
    loaded = loaded_after("""import uql; uql.parse('SELECT COUNT(*) FROM r WHERE "it is so"')""")
    assert not loaded & (HEAVY | {"duckdb", "numpy"})


def test_the_version_is_said_without_typer() -> None:
    loaded = loaded_after("from uql.cli import main\nassert main(['--version']) == 0")
    assert not loaded & (HEAVY | {"duckdb", "numpy", "rich", "click"})


@pytest.mark.parametrize(
    "module",
    ["uql.cli", "uql.base.settings", "uql.base.errors", "uql.show.render", "uql.show.progress", "uql.llm.questions"],
)
def test_a_module_of_the_outside_is_light(module: str) -> None:
    assert not loaded_after(f"import {module}") & HEAVY


def test_every_public_name_stays_what_it_is_when_it_is_used_twice() -> None:
    loaded_after(
        "import uql\nfor name in [*uql.__all__, *uql.__all__]: assert getattr(uql, name) is getattr(uql, name)\nuql.sem('x')"
    )


def test_a_plain_query_loads_neither_planner_nor_kernels_nor_the_gate() -> None:
    program = """
import sys
from uql.cli import main
assert main(["-c", "SELECT 1 AS a", "--csv"]) == 0
late = ["uql.engine.execute", "uql.compiler.planner", "uql.compiler.explain", "uql.kernels.base", "uql.llm.gate", "asyncio", "rich", "sklearn", "pyarrow.compute"]
assert not [name for name in late if name in sys.modules], [name for name in late if name in sys.modules]
"""
    loaded_after(program)
