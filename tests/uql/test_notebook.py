"""Notebooks: an executed one, the block of progress, marimo, and the HTML of results."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import uql
from uql.api import notebook
from uql.base.errors import ConfigError, UQLError
from uql.show.html import not_run, progress

POSITIVE = 'SELECT id, stars FROM reviews WHERE "the review is positive" ORDER BY id'


# --------------------------------------------------------------------------------------------------- an executed notebook
CELLS = {
    "load": "%load_ext uql\nimport uql, pandas as pd\ncon = uql.connect('shop.duckdb', model='oracle:slow.toml', ledger=':memory:', concurrency=1)\nafresh = uql.connect('shop.duckdb', model='oracle:slow.toml', ledger=':memory:', concurrency=1)",
    "rows": f"%%uql --con con -o found\n{POSITIVE}",
    "count": "print(len(found), found.cost.calls)",
    "estimate": '%%uql --con afresh -b 4\nSELECT COUNT(*) AS n FROM reviews WHERE "the review is positive"',
    "line": "%uql SELECT 40 + 2 AS answer",
    "frame": "mine = pd.DataFrame({'a': [1, 2, 3]})\nleast = 2",
    "of frame": "%uql SELECT sum(a) AS s FROM mine WHERE a >= $least",
    "plan": f"%%uql --con con --dry-run\n{POSITIVE}",
    "many": "from uql.show.notebook_cells import JupyterBlock\nblock = JupyterBlock()\nfor i in range(500):\n    block.update(f'<b>{i}</b>')",
    "duck": "import duckdb\nduck = duckdb.connect()\nduck.execute('CREATE TABLE t AS SELECT 7 AS seven')",
    "attached": "%uql --con duck FROM t",
    "threads": "import threading\ncon.close(); afresh.close()\nprint([t.name for t in threading.enumerate() if t.name.startswith('uql')])",
    "wrong": "%uql SELEC 1",
}


@pytest.fixture(scope="module")
def executed(shared_world: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The outputs of each cell."""
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    folder = tmp_path_factory.mktemp("notebook") / "world"
    shutil.copytree(shared_world, folder)
    slow = (folder / "oracle.toml").read_text().replace('key = "id"', 'key = "id"\nlatency_s = 0.1')
    (folder / "slow.toml").write_text(slow)
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    cells[-1].metadata["tags"] = ["raises-exception"]
    book = nbformat.v4.new_notebook(cells=cells)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UQL_HOME", str(folder / "home"))
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        nbclient.NotebookClient(
            book, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        ).execute()
    return dict(zip(CELLS, (cell.outputs for cell in book.cells), strict=True))


def html(outputs: list[Any]) -> str:
    return str(outputs[-1]["data"]["text/html"])


@pytest.mark.thorough
def test_a_cell_shows_a_table_and_nothing_of_the_progress_is_left(executed: dict[str, list[Any]]) -> None:
    shown = [
        output
        for output in executed["rows"]
        if output["data"].get("text/html") or output["output_type"] == "execute_result"
    ]
    assert len(shown) == 1
    assert "<td" in html(shown)
    assert "6 calls" in html(shown)
    assert all("progress value" not in str(output) for output in executed["rows"])
    assert executed["count"][0]["text"] == "3 6\n"


def test_an_estimate_is_shown_with_its_interval(executed: dict[str, list[Any]]) -> None:
    assert 'class="interval"' in html(executed["estimate"])
    assert "interval at 95 %" in html(executed["estimate"])


def test_lines_frames_variables_and_connections(executed: dict[str, list[Any]]) -> None:
    assert ">42<" in html(executed["line"])
    assert ">5<" in html(executed["of frame"])
    assert ">7<" in html(executed["attached"])
    assert "SemFilter" in executed["plan"][0]["text"]


def test_hundreds_of_updates_leave_one_display_object(executed: dict[str, list[Any]]) -> None:
    """Half of the 1,000 messages that Jupyter's own queue holds: it drops what a slow client leaves beyond them."""
    assert len(executed["many"]) == 1
    assert executed["many"][0]["data"]["text/html"] == "<b>499</b>"


def test_no_thread_is_left_behind(executed: dict[str, list[Any]]) -> None:
    assert executed["threads"][0]["text"] == "[]\n"


def test_an_error_is_one_of_uqls(executed: dict[str, list[Any]]) -> None:
    assert executed["wrong"][0]["output_type"] == "error"
    assert "UQL" in executed["wrong"][0]["evalue"]


def test_an_error_is_its_message_and_no_traceback(executed: dict[str, list[Any]]) -> None:
    error = executed["wrong"][0]
    assert "\n".join(error["traceback"]) == f"{error['ename']}: {error['evalue']}"


# ------------------------------------------------------------------------------------------------------------ in process
class Shell:
    """What an extension needs of IPython."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {}
        self.magics_manager = SimpleNamespace(magics={"line": {}, "cell": {}})

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        assert kind == "line_cell"
        self.magics_manager.magics["line"][name] = self.magics_manager.magics["cell"][name] = function


@pytest.fixture
def shell(world: Path) -> Iterator[Shell]:
    made = Shell()
    uql.load_ipython_extension(made)
    yield made
    uql.unload_ipython_extension(made)
    assert made.magics_manager.magics == {"line": {}, "cell": {}}


def magic(shell: Shell, line: str, cell: str | None = None) -> Any:
    return shell.magics_manager.magics["cell"]["uql"](line, cell)


def test_options_without_a_statement_hold_for_what_follows(shell: Shell) -> None:
    magic(shell, "-m oracle:oracle.toml --set ledger=:memory: -b 4")
    found = magic(shell, "-o n", """SELECT COUNT(*) AS n FROM 'reviews.parquet' WHERE "the review is positive" """)
    assert found.cost.calls == 4
    assert shell.user_ns["n"] is found
    assert (
        magic(shell, "-b all -o n SELECT COUNT(*) AS n FROM 'reviews.parquet' WHERE \"the review is positive\"") is None
    )
    assert shell.user_ns["n"].exact


def test_a_connection_named_alone_is_that_of_what_follows(shell: Shell) -> None:
    with uql.connect() as con:
        con.execute("CREATE TABLE seven AS SELECT 7 AS n")
        shell.user_ns["mine"] = con
        magic(shell, "--con mine")
        assert magic(shell, "", "FROM seven").fetchall() == [(7,)]
        magic(shell, "-d :memory:")
        with pytest.raises(UQLError):
            magic(shell, "", "FROM seven")


@pytest.mark.parametrize(
    "line",
    ["--nope", "-o 1st SELECT 1", "-b", "--con nothing SELECT 1", "--set budget SELECT 1", "--set nope=1 SELECT 1"],
)
def test_wrong_options_are_errors_in_words(line: str, shell: Shell) -> None:
    with pytest.raises(ConfigError):
        magic(shell, line)


def test_a_statement_without_rows_shows_nothing(shell: Shell) -> None:
    assert magic(shell, "SET uql.budget = 64") is None


def test_a_run_leaves_no_thread_and_no_listener(world: Path) -> None:
    before = set(threading.enumerate())
    with uql.connect("shop.duckdb", model="oracle:oracle.toml", ledger=":memory:") as con:
        found = notebook.run(POSITIVE, con)
        with pytest.raises(UQLError):
            notebook.run("SELECT nope FROM reviews", con)
        assert con.session.listeners == []
    assert found.has_run
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive(), "its work is done"


def test_a_frame_and_a_parameter_reach_a_plain_function(world: Path) -> None:
    pandas = pytest.importorskip("pandas")
    mine = pandas.DataFrame({"a": [1, 2]})
    assert notebook.run("SELECT sum(a) AS s FROM mine WHERE a > $least", least=1).fetchall() == [(2,)]
    notebook.close()
    del mine


def test_marimo_shows_progress_in_the_output_of_its_cell(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    marimo = ModuleType("marimo")
    marimo.running_in_notebook = lambda: True  # type: ignore[attr-defined]
    marimo.Html = lambda text: text  # type: ignore[attr-defined]
    marimo.output = SimpleNamespace(replace=shown.append, clear=lambda: shown.append("cleared"))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "marimo", marimo)
    monkeypatch.setattr("uql.api.background.TICK_S", 0.02)
    for wait in ("FIRST_S", "REFRESH_S"):
        monkeypatch.setattr(f"uql.show.progress.{wait}", 0.02)
    slow = Path("oracle.toml").read_text().replace('key = "id"', 'key = "id"\nlatency_s = 0.05')
    path = Path("slow_marimo.toml")
    path.write_text(slow)
    with uql.connect("shop.duckdb", model="oracle:slow_marimo.toml", ledger=":memory:", concurrency=1) as con:
        assert len(notebook.run(POSITIVE, con)) == 3
    assert "of at most 256 calls" in shown[0]
    assert shown[-1] == "cleared"


# ------------------------------------------------------------------------------------------------------------------ HTML
def test_html_of_a_result_escapes_what_data_says(world: Path) -> None:
    with uql.connect() as con:
        page = con.uql("SELECT '<script>alert(1)</script>' AS \"<b>\", NULL AS n, 1.5 AS x")
        assert "not run yet" in page._repr_html_()
        assert "<script>" not in page._repr_html_()
        page.run()
        shown = page._repr_html_()
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert "&lt;script&gt;" in shown
    assert 'null">NULL' in shown
    assert 'class="num">1.5' in shown


def test_html_of_many_rows_says_how_many_are_left_out(world: Path) -> None:
    with uql.connect() as con:
        found = con.uql("SELECT range AS i FROM range(1000)")
        found.run()
        shown = found._repr_html_()
    assert "960 rows more" in shown
    assert "1,000 rows" in shown
    assert shown.count("<tr") == 42


def test_html_names_no_colour_of_its_own() -> None:
    for shown in (not_run("SELECT 1"), progress("3 of 4 calls", 0.75, ["n = 3 ± 1"])):
        style = shown.partition("</style>")[0]
        assert "currentColor" in style
        assert "#" not in style.replace("</style>", "")
    assert 'value="0.750"' in progress("", 0.75, [])
