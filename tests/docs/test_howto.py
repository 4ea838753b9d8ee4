"""docs/howto.md and README.md: their Python runs as it stands there, with a model that answers by a hash in the place of the one named."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hash_model import HashModel
from PIL import Image

import uql

ROOT = Path(__file__).parents[2]
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


def blocks(page: str) -> list[str]:
    found = _PYTHON.findall((ROOT / page).read_text("utf-8"))
    return [block for block in found if "get_ipython" not in block and "con.ask(" not in block]


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """The folder that the pages speak of, and what a reader would have imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UQL_HOME", str(tmp_path / "home"))
    with duckdb.connect("shop.duckdb") as made:
        made.execute(
            "CREATE TABLE reviews AS SELECT i AS id, i % 6 AS stars, 'review number ' || i || ' of a film with a plot' AS body "
            "FROM range(40) t(i)"
        )
        made.execute("CREATE TABLE answered AS SELECT body, id % 2 = 0 AS answer FROM reviews WHERE id < 9")
        made.execute("CREATE TABLE labelled AS SELECT body, id % 2 = 0 AS label FROM reviews")
    for name in ("photos", "mail/2026", "logs", "docs/examples"):
        Path(name).mkdir(parents=True)
    shutil.copy(ROOT / "docs/examples/reviews.csv", "docs/examples")
    Image.new("RGB", (4, 4), "red").save("photos/a.png")
    Path("mail/2026/a.pdf").write_bytes(b"%PDF-1.4")
    Path("logs/a.log").write_text('{"id": 1}\n')
    with sqlite3.connect("shop.sqlite") as source:
        source.execute("CREATE TABLE orders (id INTEGER)")
        source.execute("CREATE TABLE items (id INTEGER)")
    source.close()
    known: dict[str, object] = {"uql": uql, "HashModel": HashModel}
    yield known
    for value in known.values():
        if isinstance(value, uql.Connection | duckdb.DuckDBPyConnection):
            value.close()


@pytest.mark.thorough
@pytest.mark.parametrize("page", ["README.md", "docs/howto.md", "docs/coming-from.md"])
def test_the_python_of_a_page_runs_as_it_stands(
    page: str, names: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    import linecache

    assert blocks(page)
    for n, block in enumerate(blocks(page)):
        text = block.replace('model="local"', "model=HashModel()")
        name = f"{page} block {n + 1}"
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        code = compile(text, name, "exec")
        run(code, names)
    printed = capsys.readouterr().out
    assert "calls" in printed or page == "docs/coming-from.md"


def run(code: object, names: dict[str, object]) -> None:
    """Runs a block in the names of the page, as a reader's session would."""
    import code as interactive

    console = interactive.InteractiveInterpreter(names)  # type: ignore[arg-type]
    shown: list[str] = []
    console.write = shown.append  # type: ignore[method-assign]
    console.runcode(code)  # type: ignore[arg-type]
    assert not shown, "".join(shown)
