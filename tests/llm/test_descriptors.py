"""Open files: a statement over more files than a process may hold open at once ends well, and leaves none open."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hash_model import HashModel
from PIL import Image

import uql
from uql.llm.providers.base import Capabilities

resource = pytest.importorskip("resource", reason="Windows has no such limit")
FILES = 300


class Seeing(HashModel):
    """Takes images."""

    capabilities = Capabilities(probabilities=True, images=True)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open files as Linux lists them")
def test_files_that_rows_name_are_closed_again(tmp_path: Path) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (4, 4), "red").save(picture, "PNG")
    for n in range(FILES):
        (tmp_path / f"{n}.png").write_bytes(picture.getvalue())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with uql.connect(tmp_path / "rows.duckdb", model=Seeing(), ledger=str(tmp_path / "l.sqlite"), budget="all") as con:
        con.execute(f"CREATE TABLE photos AS SELECT range AS id, range || '.png' AS photo FROM range({FILES})")
        con.execute("COMMENT ON COLUMN photos.photo IS 'image'")
        con.uql('SELECT id, "it is red"::BOOLEAN AS red FROM photos LIMIT 3').fetchall()
        before = len(os.listdir("/proc/self/fd"))
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (before + 60, hard))
            rows = con.uql('SELECT id, "it is red"::BOOLEAN AS red FROM photos').fetchall()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert len(rows) == FILES and all(red is not None for _, red in rows)
        assert len(os.listdir("/proc/self/fd")) <= before + 2
    assert len(os.listdir("/proc/self/fd")) <= before
