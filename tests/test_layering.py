"""The rooms import one way, no modules import each other in a circle, and nothing reaches into another class or for the façade."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "uql": "uql",
    "compiler": "uql.compiler",
    "kernels": "uql.kernels",
    "sampling": "uql.sampling",
    "benchmarks": "uql.benchmarks",
}
# From the ground up: a room imports itself and those before it. docs/architecture.md says what each is for.
ROOMS = (
    "uql.base",
    "uql.operators",
    "uql.llm",
    "uql.features",
    "uql.compiler",
    "uql.sources",
    "uql.sampling",
    "uql.cluster",
    "uql.kernels",
    "uql.engine",
    "uql.pricing",
    "uql.show",
    "uql.session",
    "uql.nl",
    "uql.api",
    "uql",  # the names that users import
)
SURFACES = ("uql.command", "uql.shell", "uql.ui", "uql.cli", "uql.benchmarks")  # above all rooms, side by side
ARRAYS_ONLY = {"numpy", "scipy", "sklearn", "threadpoolctl", "faiss"}  # what uql.sampling may import beside itself
FACADE = {"Connection", "Result", "Fluent"}  # classes of uql.api
MOST_FLAT = 8  # modules of a room that has rooms of its own


@dataclass(frozen=True)
class Import:
    """One imported module, wherever the statement stands: at the top, in a function, under TYPE_CHECKING."""

    target: str
    names: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    tree: ast.Module

    @property
    def room(self) -> str:
        return room_of(self.name)

    def at(self, line: int) -> str:
        return f"{self.path.relative_to(ROOT)}:{line}"


def room_of(module: str) -> str:
    """The room with the longest name that holds the module."""
    found = [room for room in (*ROOMS, *SURFACES) if module == room or module.startswith(room + ".")]
    return max(found, key=len)


@cache
def modules() -> dict[str, Module]:
    """Every module of the project by its installed name; each file is parsed once."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.name == "_tables.py":
                continue
            parts = (package, *path.relative_to(ROOT / folder).with_suffix("").parts)
            name = ".".join(parts).removesuffix(".__init__")
            found[name] = Module(name, path, ast.parse(path.read_text(encoding="utf-8")))
    return found


def imports_of(module: Module, known: frozenset[str]) -> Iterator[Import]:
    """Every import of a module; `from uql.llm import gate` imports a module, `from uql.base.errors import X` a name."""
    package = module.name if module.path.name == "__init__.py" else module.name.rpartition(".")[0]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, (), node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            names = tuple(alias.name for alias in node.names)
            inner = [f"{base}.{name}" for name in names if f"{base}.{name}" in known]
            yield from (Import(target, (), node.lineno) for target in inner)
            if len(inner) < len(names):
                yield Import(base, tuple(n for n in names if f"{base}.{n}" not in known), node.lineno)


@cache
def imports() -> dict[str, tuple[Import, ...]]:
    known = frozenset(modules())
    return {name: tuple(imports_of(module, known)) for name, module in modules().items()}


def height(room: str) -> int:
    return len(ROOMS) if room in SURFACES else ROOMS.index(room)


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Groups of more than one module that import each other, directly or not (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in edges.get(name, ()):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in edges:
        if name not in index:
            visit(name)
    return found


def test_no_modules_import_each_other_in_a_circle() -> None:
    own = set(modules())
    edges = {
        name: {i.target for i in found if i.target in own and i.target != name} for name, found in imports().items()
    }
    assert not circles(edges)


def test_the_search_for_circles_finds_one_through_three_modules() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_a_room_imports_the_rooms_before_it_alone() -> None:
    wrong = []
    for module in modules().values():
        for found in imports()[module.name]:
            ours = found.target == "uql" or found.target.startswith("uql.")
            if ours and height(room_of(found.target)) > height(module.room) and module.name != "uql":
                wrong.append(f"{module.at(found.line)}: {module.room} imports {found.target}")
    assert not wrong, "\n".join(wrong)


def test_sampling_knows_arrays_alone() -> None:
    import sys

    wrong = []
    for module in modules().values():
        if module.room != "uql.sampling":
            continue
        for found in imports()[module.name]:
            top = found.target.split(".")[0]
            if (
                top not in sys.stdlib_module_names
                and top not in ARRAYS_ONLY
                and not found.target.startswith("uql.sampling")
            ):
                wrong.append(f"{module.at(found.line)}: {found.target}")
    assert not wrong, "\n".join(wrong)


def test_no_name_of_the_facade_stands_below_it() -> None:
    below = ROOMS[: ROOMS.index("uql.api")]
    wrong = [
        f"{module.at(found.line)}: {name}"
        for module in modules().values()
        if module.room in below
        for found in imports()[module.name]
        for name in found.names
        if name in FACADE and found.target.startswith("uql")
    ]
    assert not wrong, "\n".join(wrong)


def private_attributes(module: Module) -> Iterator[tuple[int, str]]:
    """Accesses to `x._y` where no class around the access, or of the module outside of classes, has a `_y`."""

    def own(node: ast.AST) -> set[str]:
        found = set()
        for inner in ast.walk(node):
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(inner.name)
            elif (
                isinstance(inner, ast.Attribute)
                and isinstance(inner.value, ast.Name)
                and inner.value.id in ("self", "cls")
            ):
                found.add(inner.attr)
            elif isinstance(inner, ast.Name):
                found.add(inner.id)
        return found

    classes = [node for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)]
    everywhere = set().union(*(own(c) for c in classes)) if classes else set()
    imported = {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }

    def visit(node: ast.AST, allowed: set[str]) -> Iterator[tuple[int, str]]:
        if isinstance(node, ast.ClassDef):
            allowed = own(node)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            value = node.value
            mine = isinstance(value, ast.Name) and value.id in ("self", "cls", *imported)
            parent = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super"
            if not mine and not parent and node.attr not in allowed:
                yield node.lineno, ast.unparse(node)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, allowed)

    yield from visit(module.tree, everywhere)


def test_nothing_touches_a_private_attribute_of_another_class() -> None:
    wrong = [
        f"{module.at(line)}: {text}"
        for module in modules().values()
        if module.room != "uql.benchmarks"
        for line, text in private_attributes(module)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_checks_see_imports_and_accesses_of_every_form(tmp_path: Path) -> None:
    text = (
        "from __future__ import annotations\nimport uql.api.connection as c\nfrom uql.compiler import bound\n"
        "def f():\n    from .binder import x\n    from .. import errors\n"
        "class A:\n    def g(self, other: A, b):\n        return self._a, other._a, b._hidden\n"
    )
    module = Module("uql.compiler.lexer", tmp_path / "lexer.py", ast.parse(text))
    known = frozenset({"uql.compiler.bound", "uql.errors"})
    assert [found.target for found in imports_of(module, known)] == [
        "__future__",
        "uql.api.connection",
        "uql.compiler.bound",
        "uql.compiler.binder",
        "uql.errors",
    ]
    assert [text for _, text in private_attributes(module)] == ["b._hidden"]


@pytest.mark.parametrize("short", sorted(set(FOLDERS) - {"uql"}))
def test_nobody_imports_a_folder_by_its_short_name(short: str) -> None:
    """`import compiler` would make a second copy, whose classes are not the first's."""
    tests = {
        f"tests.{path.stem}": Module(f"tests.{path.stem}", path, ast.parse(path.read_text(encoding="utf-8")))
        for path in (ROOT / "tests").rglob("*.py")
        if f"import {short}" in (text := path.read_text(encoding="utf-8")) or f"from {short}" in text
    }
    wrong = [
        f"{module.at(found.line)}: {found.target}"
        for module in (*modules().values(), *tests.values())
        for found in (imports().get(module.name) or imports_of(module, frozenset()))
        if found.target == short or found.target.startswith(short + ".")
    ]
    assert not wrong, "\n".join(wrong)


def test_every_package_folder_is_installed() -> None:
    """A folder with an __init__.py that pyproject.toml forgets is missing from the wheel."""
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"])
    assert listed == {module.name for module in modules().values() if module.path.name == "__init__.py"}


def test_every_module_stands_in_a_package() -> None:
    missing = [
        str(m.path.parent.relative_to(ROOT)) for m in modules().values() if not (m.path.parent / "__init__.py").exists()
    ]
    assert not missing


@pytest.mark.parametrize("room", ["uql", "uql.nl"])
def test_a_room_of_rooms_has_few_modules_of_its_own(room: str) -> None:
    flat = [
        name for name in modules() if name.rpartition(".")[0] == room and modules()[name].path.name != "__init__.py"
    ]
    assert len(flat) <= MOST_FLAT, flat
