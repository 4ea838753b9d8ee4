"""What a public function of several parameters says of them: `Args:` in its docstring, of names that it has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("sampling", "kernels", "compiler", "uql")
MANY = 3  # parameters, the object itself left out
Function = ast.FunctionDef | ast.AsyncFunctionDef


def public_functions(body: list[ast.stmt], within: str = "") -> Iterator[tuple[str, Function]]:
    """The public functions of a module, and the public methods of its public classes."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body, f"{node.name}.")
        elif isinstance(node, Function) and not node.name.startswith("_"):
            yield within + node.name, node


def decorators(node: Function) -> set[str]:
    called = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
    return {d.id for d in called if isinstance(d, ast.Name)}


def parameters(name: str, node: Function) -> list[str]:
    given = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return given[1:] if "." in name and "staticmethod" not in decorators(node) else given


def public(package: str) -> list[tuple[Path, str, Function]]:
    """The public functions and methods of a package."""
    return [
        (path, name, node)
        for path in sorted((ROOT / package).rglob("*.py"))
        for name, node in public_functions(ast.parse(path.read_text(encoding="utf-8")).body)
    ]


@cache
def interfaces() -> set[str]:
    """The methods that have Args, to which those of other classes may refer."""
    nodes = (one for package in PACKAGES for one in public(package))
    return {name for _, name, node in nodes if "Args:" in (ast.get_docstring(node) or "")}


def is_told_elsewhere(name: str, node: Function) -> bool:
    """A method may refer to an interface ("As in `X`"); a stub of one is told at what implements it; the options of a command have their help."""
    last = node.body[-1]
    is_stub = isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value is ...
    other = re.match(r"As in `(\w+)`", ast.get_docstring(node) or "")
    repeats = other is not None and f"{other[1]}.{node.name}" in interfaces()
    return is_stub or repeats or "command" in decorators(node)


def named(docstring: str) -> list[str]:
    """The parameters that stand under `Args:`, at the first indentation below it."""
    _, _, after = docstring.partition("Args:\n")
    lines = after.splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip()) if lines else 0
    found: list[str] = []
    for line in lines:
        if line.strip() and len(line) - len(line.lstrip()) < indent:
            break
        match = re.match(rf"\s{{{indent}}}((?:[a-z_]\w*(?:, )?)+):", line)
        found += match[1].split(", ") if match else []
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_a_public_function_of_three_parameters_says_what_they_are(package: str) -> None:
    lacking = []
    for path, name, node in public(package):
        said, given = ast.get_docstring(node) or "", parameters(name, node)
        place = f"{path.relative_to(ROOT)}:{node.lineno} {name}"
        if len(given) >= MANY and "Args:" not in said and not is_told_elsewhere(name, node):
            lacking.append(f"{place} has no Args")
        known = {*given, *(a.arg for a in (node.args.vararg, node.args.kwarg) if a is not None)}
        lacking += [f"{place} has no parameter {other}" for other in named(said) if other not in known]
    assert not lacking, "\n".join(lacking)
