"""The wheel holds every sub-package: it is built, installed elsewhere, and runs queries there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import uql

ROOT = Path(__file__).parents[1]
SOURCES = ("uql", "compiler", "kernels", "sampling", "benchmarks")

QUERIES = """
import json, sys, uql
import uql.compiler, uql.kernels, uql.sampling, uql.benchmarks
con = uql.connect(model="oracle:oracle.toml", ledger=":memory:")
concrete = con.uql("SELECT COUNT(*) AS n FROM 'data.parquet' WHERE length(text) > 3").fetchall()
semantic = con.uql('''SELECT id FROM 'data.parquet' WHERE "the review is positive" ORDER BY id''')
rows = semantic.fetchall()
print(json.dumps([uql.__file__, uql.compiler.__file__, concrete, rows, semantic.cost.calls]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: a build leaves files in the tree it builds from."""
    here = tmp_path_factory.mktemp("build")
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in SOURCES:
        shutil.copytree(ROOT / name, here / "tree" / name, ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, here / "tree" / name)
    pip(["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(here / "dist"), str(here / "tree")])
    (made,) = (here / "dist").glob("*.whl")
    return made


def pip(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_holds_every_module_and_the_demo_data(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    wanted = set()
    for name in SOURCES:
        for path in (ROOT / name).rglob("*.py"):
            relative = path.relative_to(ROOT).as_posix()
            wanted.add(relative if name == "uql" else f"uql/{relative}")
    assert wanted <= packed, sorted(wanted - packed)
    assert "uql/py.typed" in packed
    assert {f"uql/benchmarks/datasets/banking77/{n}" for n in ("data.parquet", "labels.parquet", "CREDIT.md")} <= packed
    assert not [
        name for name in packed if name.startswith(("tests/", "compiler/", "kernels/", "sampling/", "benchmarks/"))
    ]


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == uql.__version__


def test_installed_elsewhere_it_runs_a_plain_query_and_a_semantic_one(wheel: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    target, work = tmp_path / "site", tmp_path / "work"
    work.mkdir()
    pip(["install", "--no-deps", "--target", str(target), str(wheel)])
    texts = ["a joy from start to end", "dull", "I would see it again", "no"]
    pq.write_table(pa.table({"id": [1, 2, 3, 4], "text": texts}), work / "data.parquet")
    pq.write_table(pa.table({"id": [1, 2, 3, 4], "sentiment": ["pos", "neg", "pos", "neg"]}), work / "labels.parquet")
    (work / "oracle.toml").write_text(
        'data = "data.parquet"\nlabels = "labels.parquet"\nkey = "id"\n'
        '[answers]\n"the review is positive" = "sentiment = \'pos\'"\n'
    )
    env = {**os.environ, "PYTHONPATH": str(target), "UQL_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", QUERIES], cwd=work, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    uql_file, compiler_file, concrete, rows, calls = json.loads(done.stdout)
    assert Path(uql_file).is_relative_to(target)
    assert Path(compiler_file).is_relative_to(target)
    assert concrete == [[3]]
    assert rows == [[1], [3]]
    assert calls == 4
