"""docs/examples/reviews_marimo.py: marimo itself runs it, and the page that it writes has the interval."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(find_spec("marimo") is None, reason="marimo is not installed")

BOOK = Path(__file__).parents[2] / "docs" / "examples" / "reviews_marimo.py"


@pytest.mark.thorough
def test_marimo_runs_its_notebook_and_the_page_shows_an_estimate_with_its_interval(tmp_path: Path) -> None:
    book = shutil.copy(BOOK, tmp_path)
    page = tmp_path / "page.html"
    environment = os.environ | {"UQL_HOME": str(tmp_path), "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "marimo", "export", "html", str(book), "-o", str(page)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    shown = page.read_text(encoding="utf-8").encode("ascii", "ignore").decode("unicode_escape")
    assert re.search(r'class="num">[\d,]+<span class="interval">', shown), done.stdout
    assert "estimate from" in shown and "calls," in shown
