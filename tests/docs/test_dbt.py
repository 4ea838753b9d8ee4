"""docs/examples/dbt: `dbt build` runs the project as it stands there, with an oracle in the place of the model."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import duckdb
import pytest

PROJECT = Path(__file__).parents[2] / "docs" / "examples" / "dbt"
ORACLE = """data = "raw.parquet"
labels = "labels.parquet"
key = "id"

[answers]
"the review complains about the plot" = "complains"
"""


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("dbt") is None or find_spec("dbt.adapters.duckdb") is None,
    reason="dbt is not installed: make test-dbt",
)
def test_dbt_build_makes_and_tests_the_model(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    shutil.copytree(PROJECT, folder)
    with duckdb.connect() as con:
        con.execute(f"COPY (FROM '{folder}/seeds/raw_reviews.csv') TO '{folder}/raw.parquet'")
        con.execute(f"COPY (SELECT id, id IN (2, 6) AS complains FROM range(1, 7) t(id)) TO '{folder}/labels.parquet'")
    (folder / "oracle.toml").write_text(ORACLE, encoding="utf-8")
    own = {"UQL_MODEL": f"oracle:{folder}/oracle.toml", "UQL_LEDGER": ":memory:", "UQL_HOME": str(tmp_path / "home")}
    words = ["-c", "from dbt.cli.main import cli; cli()", "--no-use-colors", "build", "--profiles-dir", "."]
    done = subprocess.run([sys.executable, *words], cwd=folder, env=os.environ | own, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS=5" in done.stdout, "a seed, two models, two tests"
    with duckdb.connect(str(folder / "reviews.duckdb")) as con:
        assert con.execute("SELECT id FROM complaints ORDER BY id").fetchall() == [(2,), (6,)]
