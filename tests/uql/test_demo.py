"""The demo prints what happened, and prints no answer where the model cannot be had."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from uql.benchmarks import demo
from uql.benchmarks.datasets.examples import BANKING77

ORACLE = """data = "{data}/data.parquet"
labels = "{data}/labels.parquet"
key = "id"

[answers]
"the question is about Apple Pay or Google Pay" = "intent = 'apple_pay_or_google_pay'"
"""


def test_without_the_model_it_says_so_and_ends_with_3(
    clean_environment: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.main([]) == 3
    out, err = capsys.readouterr()
    assert "uql models pull" in err
    assert "answer" not in out


@pytest.mark.slow
def test_it_shows_each_answer_beside_the_truth(
    clean_environment: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "oracle.toml").write_text(ORACLE.format(data=BANKING77.as_posix()), encoding="utf-8")
    monkeypatch.setattr(demo, "LOCAL_MODEL", f"oracle:{(tmp_path / 'oracle.toml').as_posix()}")
    monkeypatch.setattr(demo, "_asked", lambda number, ledger: None)
    assert demo.main([]) == 0
    out = capsys.readouterr().out
    assert "13,083 questions" in out
    assert "truth   1,632 by the labels: inside the interval" in out
    found = int(out.split("answer  ")[2].split()[0])
    assert f"truth   {found} of them have the intent apple_pay_or_google_pay" in out  # an oracle finds no wrong one
    inside = re.search(r"by the labels: (\d) of 7 inside their intervals", out)
    assert inside is not None and int(inside[1]) >= 5  # of 95 % each; the draws depend on the threads of BLAS
    assert "truth   29 by the labels: inside the interval" in out
    assert out.count("each row asked: ") == 4


def test_every_intent_belongs_to_an_area() -> None:
    fits = " OR ".join(f"regexp_matches(intent, '{pattern}')" for _, pattern in demo.AREAS)
    with duckdb.connect() as con:
        sql = f"SELECT DISTINCT intent FROM '{BANKING77.as_posix()}/labels.parquet' WHERE NOT ({fits})"
        assert con.execute(sql).fetchall() == []
