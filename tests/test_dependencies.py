"""What the package imports is declared in pyproject.toml, and what is declared is imported and explained."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOLDERS = ("uql", "compiler", "kernels", "sampling", "benchmarks")
IMPORTED_AS = {  # distributions whose module has another name
    "faiss-cpu": "faiss",
    "scikit-learn": "sklearn",
    "pillow": "PIL",
    "python-docx": "docx",
    "prompt-toolkit": "prompt_toolkit",
    "opentelemetry-api": "opentelemetry",
    "vl-convert-python": "vl_convert",
}
THE_USERS_OWN = {"IPython", "pandas", "polars"}  # a notebook and frames that are handed in; asked for, never required
ENVIRONMENTS = {
    "lotus",
    "dspy",
    "llama_index",
    "palimpzest",
    "tdb",
    "jevdb",
}  # imported by workers in environments of their own
BARE_SDKS = {"openai", "anthropic"}  # what the gate's speed is compared with; of the extra dev


def module(requirement: str) -> str:
    """The module that a requirement gives: `duckdb>=1.4,<3` → duckdb."""
    name = re.split(r"[<>=!~\[ ]", requirement, maxsplit=1)[0].lower()
    return IMPORTED_AS.get(name, name.replace("-", "_"))


CORE = {module(requirement) for requirement in PROJECT["dependencies"]}
EXTRAS = {
    module(requirement)
    for extra, listed in PROJECT["optional-dependencies"].items()
    if extra not in ("all", "dev")
    for requirement in listed
}


@cache
def imported() -> dict[str, set[str]]:
    """Top-level modules of others by the files that import them."""
    found: dict[str, set[str]] = {}
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = []
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    names = [node.module or ""]
                for name in (name.split(".")[0] for name in names):
                    if name != "uql" and name not in sys.stdlib_module_names:
                        found.setdefault(name, set()).add(str(path.relative_to(ROOT)))
    return found


@pytest.mark.parametrize("extra", sorted(set(PROJECT["optional-dependencies"]) - {"all", "dev"}))
def test_every_extra_is_explained_in_the_architecture_page_and_part_of_all(extra: str) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{extra}` \| \S", page, re.MULTILINE), f"say in docs/architecture.md what {extra} is for"
    whole = PROJECT["optional-dependencies"]["all"][0].partition("[")[2].rstrip("]").split(",")
    assert extra in whole or extra in ("keys", "docs"), extra


def test_every_import_is_declared() -> None:
    local = {path.stem for path in (ROOT / "benchmarks").rglob("*.py")}
    declared = CORE | EXTRAS | BARE_SDKS | THE_USERS_OWN | ENVIRONMENTS | local
    assert {name: files for name, files in imported().items() if name not in declared} == {}


def test_every_core_dependency_is_imported() -> None:
    assert CORE - imported().keys() == set()


@pytest.mark.parametrize("requirement", PROJECT["dependencies"])
def test_every_core_dependency_is_explained_in_the_architecture_page(requirement: str) -> None:
    name = re.split(r"[<>=!~\[ ]", requirement, maxsplit=1)[0]
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{re.escape(name)}` \| \S", page, re.MULTILINE), (
        f"say in docs/architecture.md what {name} is for"
    )
