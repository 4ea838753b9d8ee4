"""Probabilities are scores until labels of a stronger judge calibrate them; a calibration is used only where it is better on rows left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hash_model import HashModel, digest

import uql
from uql.api.calibrate import calibrate
from uql.base.errors import DataError
from uql.cli import main
from uql.llm import calibration
from uql.llm.providers.base import Answer


def world(n: int, seed: int, bias: float, slope: float = 1.0) -> tuple[list[float], list[bool]]:
    """Probabilities whose log-odds are the true ones, stretched by `slope` and moved by `bias`; labels drawn by the true ones."""
    rng = np.random.default_rng(seed)
    true = rng.normal(0, 2.5, n)
    labels = rng.random(n) < 1 / (1 + np.exp(-true))
    told = slope * true + bias
    return (1 / (1 + np.exp(-told))).tolist(), labels.tolist()


@pytest.mark.parametrize("bias", [-3.0, 3.0])
def test_a_biased_model_gets_its_threshold_and_its_probabilities_back(bias: float) -> None:
    found = calibration.fit(*world(400, 1, bias, 2.0))
    assert found.better and found.accuracy > found.accuracy_before + 0.05
    assert found.threshold == pytest.approx(1 / (1 + np.exp(-bias)), abs=0.12)
    fresh, labels = world(4000, 2, bias, 2.0)
    odds = found.slope * calibration.log_odds(np.array(fresh)) + found.intercept
    shown = 1 / (1 + np.exp(-odds))
    for low in (0.1, 0.3, 0.5, 0.7):
        inside = (shown >= low) & (shown < low + 0.2)
        assert np.mean(np.array(labels)[inside]) == pytest.approx(float(shown[inside].mean()), abs=0.08)


def test_a_model_that_is_right_is_left_alone_most_of_the_time() -> None:
    changed = [calibration.fit(*world(40, seed, 0.0)) for seed in range(60)]
    kept = [found for found in changed if found.better]
    assert all(abs(found.threshold - 0.5) < 0.45 for found in kept)
    assert len(kept) < 40


def test_too_few_labels_or_labels_of_one_kind_are_refused() -> None:
    for p, labels in (world(20, 1, 0.0), ([0.5] * 100, [True] * 100), ([float("nan")] * 100, [True, False] * 50)):
        with pytest.raises(DataError, match="UQL517"):
            calibration.fit(p, labels)


def test_a_separable_condition_has_a_finite_line() -> None:
    found = calibration.fit([0.001] * 30 + [0.3] * 30, [False] * 30 + [True] * 30)
    assert found.better and 0.001 < found.threshold < 0.3 and np.isfinite(found.slope)


class Shy(HashModel):
    """Says yes to half of the rows with a probability of 0.3, to the others with 0.05: its threshold is not one half."""

    def _answer(self, question, row):
        sure = truth(str(row.cells[0].value))
        p = (0.3 if sure else 0.05) + digest(question, row) % 1000 / 20_000
        return Answer(p > 0.5, p)


def truth(text: str) -> bool:
    return int(text.split()[3]) % 2 == 0


def connect(folder: Path) -> uql.Connection:
    con = uql.connect(model=Shy(), ledger=str(folder / "l.sqlite"), budget="all")
    con.sql("CREATE TABLE t AS SELECT 'the row number ' || range || ' of the table' AS text FROM range(300)")
    return con


SO = 'SELECT COUNT(*) AS n FROM t WHERE "it is even"'


def test_queries_use_the_calibration_from_then_on_and_nothing_is_asked_again(tmp_path: Path) -> None:
    with connect(tmp_path) as con:
        assert con.uql(SO).fetchall() == [(0,)], "every probability is below one half"
        labelled = "SELECT text, split_part(text, ' ', 4)::INT % 2 = 0 AS label FROM t LIMIT 80"
        found = calibrate(con, "it is even", labelled)
        assert found.better and found.accuracy == 1.0 and 0.1 < found.threshold < 0.3
        result = con.uql(SO)
        assert result.fetchall() == [(150,)] and result.cost.calls == 0
        assert con.uql('SELECT COUNT(*) FROM t WHERE "it is odd"').fetchall() == [(0,)], "of this condition alone"


def test_its_calls_are_heard_while_it_runs(tmp_path: Path) -> None:
    with connect(tmp_path) as con:
        kinds: list[str] = []
        con.on_event(lambda event: kinds.append(event.kind))
        calibrate(con, "it is even", "SELECT text, split_part(text, ' ', 4)::INT % 2 = 0 AS label FROM t LIMIT 80")
        assert kinds.count("call") == 80


def test_a_dry_run_changes_nothing_and_bad_labels_say_so(tmp_path: Path) -> None:
    with connect(tmp_path) as con:
        labelled = "SELECT text, split_part(text, ' ', 4)::INT % 2 = 0 AS label FROM t LIMIT 80"
        assert calibrate(con, "it is even", labelled, keep=False).better
        assert con.uql(SO).fetchall() == [(0,)]
        for rows in ("SELECT text FROM t", "SELECT text, 'perhaps' AS label FROM t", "nowhere"):
            with pytest.raises(DataError, match="UQL517"):
                calibrate(con, "it is even", rows)


def test_a_model_without_probabilities_says_so(tmp_path: Path) -> None:
    class Silent(HashModel):
        def _answer(self, question, row):
            return Answer(True)

    with uql.connect(model=Silent(), ledger=":memory:", budget="all") as con:
        con.sql("CREATE TABLE t AS SELECT 'row ' || range AS text, range % 2 = 0 AS label FROM range(50)")
        with pytest.raises(DataError, match="no probabilities"):
            calibrate(con, "it is even", "t")


def test_the_command_names_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "it is so", "nowhere.csv", "--ledger", str(tmp_path / "l.sqlite")]) == 1
    assert "nowhere.csv" in capsys.readouterr().err
