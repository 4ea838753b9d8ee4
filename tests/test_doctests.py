"""Every `>>>` example in the project runs and says what it says; the generated pages are current."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"uql": "uql", "compiler": "uql.compiler", "kernels": "uql.kernels", "sampling": "uql.sampling"}


def modules_with_examples() -> list[str]:
    found = []
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            if ">>> " in path.read_text(encoding="utf-8"):
                parts = path.relative_to(ROOT / folder).with_suffix("").parts
                found.append(".".join((package, *parts)).removesuffix(".__init__"))
    return found


@pytest.mark.parametrize("module", modules_with_examples())
def test_the_examples_of_a_module_run(module: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried
    assert not failed


@pytest.mark.parametrize("script", ["make_settings.py", "make_errors.py", "make_grammar.py"])
def test_a_generated_page_is_current(script: str) -> None:
    done = subprocess.run([sys.executable, ROOT / "docs" / script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
