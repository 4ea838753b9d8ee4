"""docs/examples: every notebook runs, and shows what is stored in it. `pytest --update-golden` stores what it shows now."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from outputs import skeleton

pytest.importorskip("ipykernel")
pytest.importorskip("pandas")  # a notebook shows a data frame
pytest.importorskip("pypdfium2")  # one reads PDF files
nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")

BOOKS = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.ipynb"))
QUICK = {"images"}  # in make test; the others take seconds each
SUBJECTS = {"documents", "images", "news", "questions", "reviews", "tickets"}
MOST_BYTES = 60_000  # of a notebook with its outputs


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One kernel for all: its start takes longer than a notebook."""
    from jupyter_client.manager import KernelManager

    home = tmp_path_factory.mktemp("home")
    manager = KernelManager(kernel_name="python3")
    own = {"UQL_HOME": str(home), "IPYTHONDIR": str(home), "COLUMNS": "100"}
    manager.start_kernel(env=os.environ | own)
    yield manager
    manager.shutdown_kernel(now=True)


def test_there_is_a_notebook_for_each_subject() -> None:
    assert {path.stem for path in BOOKS} == SUBJECTS


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.stem, marks=[] if p.stem in QUICK else [pytest.mark.slow]) for p in BOOKS]
)
def test_a_notebook_shows_what_is_stored_in_it(
    path: Path, kernel: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    book = nbformat.read(path, as_version=4)
    before = [cell.get("outputs", []) for cell in book.cells]
    clean = nbformat.v4.new_code_cell(f"%reset -f\nimport os\nos.chdir({str(tmp_path)!r})")
    run = nbformat.v4.new_notebook(cells=[clean, *book.cells], metadata=book.metadata)
    nbclient.NotebookClient(run, km=kernel, timeout=120).execute(cleanup_kc=False)
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count, cell.metadata = shown(cell.outputs), None, {}
    if request.config.getoption("--update-golden"):
        path.write_text(nbformat.writes(book) + "\n", encoding="utf-8")
        return
    for cell, stored in zip(book.cells, before, strict=True):
        assert [texts(output) for output in cell.get("outputs", [])] == [texts(output) for output in stored], (
            cell.source
        )
    assert path.stat().st_size < MOST_BYTES


def shown(outputs: list[Any]) -> list[Any]:
    """Outputs as they are stored: texts and pictures, the parts of a stream joined; HTML and what progress left behind are not."""
    found: list[Any] = []
    for output in outputs:
        data = output.get("data", {})
        if output.output_type == "stream" and found and found[-1].output_type == "stream":
            found[-1].text += output.text
        elif output.output_type == "stream":
            found.append(nbformat.v4.new_output("stream", name=output.name, text=output.text))
        elif output.output_type == "execute_result" or "image/png" in data:
            kept = {kind: data[kind] for kind in ("text/plain", "image/png") if kind in data}
            found.append(nbformat.v4.new_output("display_data", data=kept))
    return found


def texts(output: Any) -> tuple[str, tuple[str, ...]]:
    """What is compared of an output: its text, and which kinds of data it has."""
    data = output.get("data", {})
    return skeleton(output.get("text") or data["text/plain"]), tuple(sorted(data))


@pytest.mark.thorough
def test_data_sets_in_one_folder_keep_their_labels(tmp_path: Path) -> None:
    import tomllib

    from uql.benchmarks.datasets.__main__ import main

    files = []
    for name in ("reviews", "news"):
        assert main([name, str(tmp_path / f"{name}.duckdb")]) == 0
        held = tomllib.loads((tmp_path / f"{name}.toml").read_text("utf-8"))
        files += [held["data"], held["labels"]]
    assert len(set(files)) == 4
