"""What a plain installation does: no extra is needed for the main job, other systems can import the package, a clone is no trap."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from test_dependencies import CORE, EXTRAS

from uql.base.extras import install, install_command

ROOT = Path(__file__).parents[1]
BLOCK = """
import sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in BLOCKED else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)
for name in [name for name in sys.modules if name.partition(".")[0] in BLOCKED]:
    del sys.modules[name]
sys.meta_path[:] = map(Without, sys.meta_path)
"""


def after(
    blocked: set[str], code: str, words: tuple[str, ...] = (), **options: object
) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter that ran `code` with these top-level modules missing."""
    program = f"BLOCKED = {sorted(blocked)}\n{BLOCK}\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=120, **options
    )  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    return done  # type: ignore[no-any-return]


def test_every_module_is_imported_where_unix_modules_are_missing() -> None:
    code = """
import importlib, pkgutil, uql
names = [m.name for m in pkgutil.walk_packages(uql.__path__, "uql.")]
names = [n for n in names if ".benchmarks" not in n and ".workers." not in n]
assert len(names) > 200, names
for name in names:
    importlib.import_module(name)
"""
    after({"fcntl", "resource", "termios", "tty", "pwd", "grp", "readline"}, code)


def test_a_plain_installation_counts_by_a_sample_over_http(tmp_path: Path) -> None:
    """Without any extra: a server of OpenAI's protocol, an estimate with an interval, features of texts, a join, DISTINCT ON."""
    sys.path.insert(0, str(ROOT / "tests" / "llm"))
    from loopback import chat, chat_reply, serve

    def says(body: dict[str, Any], headers: dict[str, str]) -> Any:
        if "response_format" in body:  # what the server can do
            return chat(body, headers)
        return chat_reply("Yes" if "kind 1" in str(body["messages"]) else "No", tokens=True)

    code = """
import sys, uql
from uql.base.errors import ConfigError
with uql.connect(sys.argv[2], model=sys.argv[1]) as con:
    con.sql("CREATE TABLE t AS SELECT range AS id, 'a plum of kind ' || (range % 97) || ' text' AS body FROM range(1500)")
    found = con.uql('SELECT COUNT(*) AS n FROM t WHERE "it is so" WITH (budget = 60)').estimates["n"]
    assert not found.exact and 50 <= found.calls <= 60, found
    assert len(con.uql('SELECT id FROM t WHERE "it is so" LIMIT 2 WITH (budget = 40)').fetchall()) == 2
    assert con.uql('SELECT DISTINCT ON ("the same plum") id FROM t WHERE id < 30 WITH (budget = 400)').fetchall()
    before = con.uql("SELECT * FROM uql_calls()").fetchall()
    for method in ("uqe", "stratified"):
        try:
            con.uql(f'SELECT COUNT(*) FROM t WHERE "it is otherwise" WITH (method = {method!r})').fetchall()
        except ConfigError as error:
            assert error.code == "UQL610" and "[uqe]" in error.help, error
        else:
            raise AssertionError(method)
    assert con.uql("SELECT * FROM uql_calls()").fetchall() == before
"""
    with serve({"/v1/chat/completions": says}) as told:
        env = {**os.environ, "UQL_HOME": str(tmp_path)}
        after(
            EXTRAS - CORE | {"openai", "anthropic"},
            code,
            words=(f"{told.url}/v1#m", str(tmp_path / "t.duckdb")),
            env=env,
        )
        assert len(told.bodies) > 60


def test_the_experiments_are_listed_by_a_plain_installation() -> None:
    done = after(EXTRAS - CORE, "from uql.cli import main\nsys.exit(main(['bench', 'list']))")
    assert re.search("^uqe ", done.stdout, re.MULTILINE)


def test_a_clone_in_the_current_folder_is_the_package(tmp_path: Path) -> None:
    """`git clone …/uql && python -c 'import uql'`: Python would take the clone for a namespace package without names."""
    (tmp_path / "uql").symlink_to(ROOT, target_is_directory=True)
    code = "import uql; from uql.compiler.parser import parse; print(uql.__version__, uql.Estimate.__name__, parse('SELECT 1'))"
    done = after(set(), code, cwd=tmp_path)
    assert done.stdout.startswith("0.1.0 Estimate Select")


def test_in_a_clone_beside_a_plain_installation_the_package_is_whole(tmp_path: Path) -> None:
    """`pip install .` and then Python in the clone: the folder `uql` of the clone comes before what was installed."""
    for name in ("uql", "compiler", "kernels", "sampling", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name, target_is_directory=True)
    code = """
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder.finder)]
import uql, uql.kernels, uql.sampling, uql.benchmarks
print(uql.__path__[0], uql.connect().uql("SELECT 42").fetchall())
"""
    done = after(set(), code, cwd=tmp_path)
    assert done.stdout == f"{tmp_path / 'uql'} [(42,)]\n"


@pytest.mark.parametrize(
    ("stated", "command"),
    [
        ({}, "pip install 'uql-engine[ui]'"),
        ({"url": "file:///a%20b/uql", "dir_info": {}}, "pip install '/a b/uql[ui]'"),
        ({"url": "file:///x/uql", "dir_info": {"editable": True}}, "pip install -e '/x/uql[ui]'"),
        ({"url": "file:///x/u.whl", "archive_info": {}}, "pip install 'uql-engine[ui] @ file:///x/u.whl'"),
    ],
)
def test_a_hint_names_where_this_copy_came_from(stated: dict[str, object], command: str) -> None:
    assert install_command("ui", stated) == command
    assert install("ui").startswith("pip install ")


def test_every_python_that_is_declared_has_a_classifier_and_is_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == ">=3.11"
    versions = ("3.11", "3.12", "3.13")
    for version in versions:
        assert f"Programming Language :: Python :: {version}" in project["classifiers"]
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert f"python: {json.dumps(versions)}" in workflow
    for folder in re.findall(r"tests/[\w./]+", workflow):
        assert (ROOT / folder).exists(), folder
