"""The folders import one way: each part below may import the parts it lists, and nothing else of the project."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "compiler": "uql.compiler",
    "kernels": "uql.kernels",
    "sampling": "uql.sampling",
    "benchmarks": "uql.benchmarks",
}

# A part is the modules that begin with one of its prefixes, the longest one deciding. Later parts import earlier ones.
PARTS: dict[str, tuple[str, ...]] = {
    "base": ("uql.errors", "uql.schema", "uql.settings", "uql.origins", "uql.media_types"),
    "sampling": ("uql.sampling",),
    "syntax": (
        "uql.compiler",
        "uql.compiler.syntax",
        "uql.compiler.virtual",
        "uql.compiler.walk",
        "uql.compiler.lexer",
        "uql.compiler.grammar",
        "uql.compiler.grammar_calls",
        "uql.compiler.grammar_expressions",
        "uql.compiler.grammar_parts",
        "uql.compiler.grammar_sources",
        "uql.compiler.grammar_query",
        "uql.compiler.grammar_statements",
        "uql.compiler.grammar_types",
        "uql.compiler.make_tables",
        "uql.compiler.parser",
        "uql.compiler.syntax_errors",
        "uql.compiler.unparse",
        "uql.compiler._tables",
    ),
    "bound": (
        "uql.compiler.bound",
        "uql.compiler.sql",
        "uql.compiler.scope",
        "uql.compiler.bind",
        "uql.compiler.binder",
        "uql.compiler.subqueries",
    ),
    "plan": (
        "uql.compiler.formula",
        "uql.compiler.shown",
        "uql.compiler.stated",
        "uql.compiler.valid",
        "uql.compiler.formats",
        "uql.compiler.joins",
        "uql.compiler.join_plans",
        "uql.compiler.media",
        "uql.compiler.logical",
        "uql.compiler.merged",
        "uql.compiler.unnested",
        "uql.compiler.rules",
        "uql.compiler.orders",
        "uql.compiler.fusions",
        "uql.compiler.choice",
        "uql.compiler.physical",
        "uql.compiler.planner",
        "uql.compiler.cost",
        "uql.compiler.explain",
    ),
    "questions": ("uql.llm.questions",),
    "llm": ("uql.llm", "uql.models"),
    "features": ("uql.features",),
    "sources": ("uql.sources",),
    "kernels": ("uql.kernels",),
    "render": ("uql.render", "uql.html", "uql.cells", "uql.progress", "uql.plots"),
    "config": ("uql.config",),
    "engine": (
        "uql",
        "uql.semantic",
        "uql.catalog",
        "uql.frames",
        "uql.engine",
        "uql.explaining",
        "uql.explain_statement",
        "uql.foresight",
        "uql.planning",
        "uql.pricing",
        "uql.statistics",
        "uql.result",
        "uql.connection",
        "uql.context",
        "uql.opening",
        "uql.runs",
        "uql.vectors",
        "uql.judging",
        "uql.running",
        "uql.statements",
        "uql.around",
        "uql.values",
        "uql.semantic_store",
        "uql.semantic_tables",
        "uql.evidence",
        "uql.concrete",
        "uql.stored_estimates",
        "uql.places",
        "uql.hints",
        "uql.charts",
        "uql.verbs",
        "uql.fluent",
        "uql.functions",
        "uql.notebook",
    ),
    "nl": ("uql.nl",),
    "cli": ("uql.cli", "uql.command", "uql.shell", "uql.ui"),
    "benchmarks": ("uql.benchmarks",),
    "bench": ("uql.command.bench", "uql.command.oracle"),  # the commands over benchmarks
}
DOORS = {
    ("uql.connection", "uql.nl.session"),
    ("uql.connection", "uql.nl.answer"),
}  # Connection.ask opens what stands upon it
COMPILER = ("base", "syntax", "bound", "plan")
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "base": (),
    "sampling": (),  # arrays in, arrays out
    "syntax": ("base",),
    "bound": ("base", "syntax"),
    "plan": ("base", "syntax", "bound", "sampling"),
    "questions": ("base",),
    "llm": ("base", "questions"),
    "features": ("base", "questions"),
    "sources": ("base",),
    "kernels": (*COMPILER, "questions", "llm", "sampling", "features"),
    "render": ("base", "sampling", "questions", "llm"),
    "config": ("base",),
    "engine": (*COMPILER, "questions", "llm", "features", "sources", "sampling", "kernels", "render", "config"),
    "nl": ("base", "syntax", "bound", "llm", "questions", "features", "render", "engine"),
    "cli": ("base", "syntax", "sampling", "llm", "questions", "render", "config", "engine", "nl"),
    "benchmarks": tuple(part for part in PARTS if part not in ("benchmarks", "bench")),
    "bench": tuple(part for part in PARTS if part != "bench"),
}
LIGHT = {"numpy", "scipy", "sklearn", "threadpoolctl", "faiss"}  # third-party modules that sampling may use


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the project by its installed name."""
    for folder in ("uql", *FOLDERS):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join((FOLDERS.get(folder, folder), *parts[1:]))
            yield name.removesuffix(".__init__"), path


MODULES = dict(modules())


def part_of(module: str) -> str:
    """The part with the longest prefix of `module`. `uql` and `uql.compiler` stand for themselves alone."""
    best, found = "", ""
    for part, prefixes in PARTS.items():
        for prefix in prefixes:
            inside = module == prefix or (module.startswith(prefix + ".") and prefix not in ("uql", "uql.compiler"))
            if inside and len(prefix) > len(best):
                best, found = prefix, part
    assert found, f"{module} belongs to no part: say in tests/test_layering.py where it stands"
    return found


def imports_of(module: str, path: Path) -> Iterator[tuple[str, int]]:
    """Every module that `module` imports anywhere, also inside functions and under TYPE_CHECKING, with the line."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:  # `from uql.llm import gate` imports a module, `from uql.errors import X` a name
                full = f"{base}.{alias.name}"
                yield (full if full in MODULES else base), node.lineno


def test_every_module_belongs_to_a_part() -> None:
    assert len(MODULES) > 10
    for module in MODULES:
        part_of(module)


def test_the_parts_import_one_way() -> None:
    order = list(PARTS)
    for part, allowed in MAY_IMPORT.items():
        assert part in PARTS
        later = [other for other in allowed if order.index(other) > order.index(part)]
        assert not later, f"{part} may not import the later {later}"


def test_no_module_imports_a_part_that_comes_after_it() -> None:
    wrong = []
    for module, path in MODULES.items():
        part = part_of(module)
        for imported, line in imports_of(module, path):
            if imported.split(".")[0] != "uql":
                continue
            other = part_of(imported)
            if other != part and other not in MAY_IMPORT[part] and (module, imported) not in DOORS:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {module} ({part}) imports {imported} ({other})")
    assert not wrong, "\n".join(wrong)


def test_sampling_knows_arrays_only() -> None:
    import sys

    wrong = []
    for module, path in MODULES.items():
        if part_of(module) == "sampling":
            for imported, line in imports_of(module, path):
                top = imported.split(".")[0]
                if top not in sys.stdlib_module_names and top not in LIGHT and not imported.startswith("uql.sampling"):
                    wrong.append(f"{path.relative_to(ROOT)}:{line}: {imported}")
    assert not wrong, "\n".join(wrong)


def test_the_check_sees_imports_of_every_form(tmp_path: Path) -> None:
    path = tmp_path / "lexer.py"
    path.write_text(
        "from __future__ import annotations\nimport uql.catalog as c\nfrom uql.compiler import bound\n"
        "def f():\n    from .binder import x\n    from .. import errors\n"
    )
    found = [name for name, _ in imports_of("uql.compiler.lexer", path)]
    assert found == ["__future__", "uql.catalog", "uql.compiler.bound", "uql.compiler.binder", "uql.errors"]
    assert part_of("uql.compiler.bound") == "bound"


@pytest.mark.parametrize("short", sorted(FOLDERS))
def test_nobody_imports_a_folder_by_its_short_name(short: str) -> None:
    """`import compiler` would make a second copy, whose classes are not the first's."""
    wrong = []
    tests = {f"tests.{p.stem}": p for p in (ROOT / "tests").rglob("*.py")}
    for module, path in {**MODULES, **tests}.items():
        for imported, line in imports_of(module, path):
            if imported == short or imported.startswith(short + "."):
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {imported}")
    assert not wrong, "\n".join(wrong)


def test_every_package_folder_is_installed() -> None:
    """A folder with an __init__.py that pyproject.toml forgets is missing from the wheel."""
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"])
    there = {module for module, path in MODULES.items() if path.name == "__init__.py"}
    assert listed == there


def test_every_module_stands_in_a_package() -> None:
    missing = [str(p.parent.relative_to(ROOT)) for p in MODULES.values() if not (p.parent / "__init__.py").exists()]
    assert not missing


def test_no_file_is_longer_than_600_lines() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for module, path in MODULES.items()
        if not module.endswith("._tables") and (lines := len(path.read_text(encoding="utf-8").splitlines())) > 600
    }
    assert not long, f"split {long}"
