"""`soft = on`: counts by the model's probabilities, where labelled rows have shown them to be chances; else refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hash_model import HashModel

import uql
from uql.api.calibrate import calibrate
from uql.base.errors import DataError
from uql.llm.providers.base import Answer

EVEN = '"it is heavy"'


def chance(k: int) -> float:
    """Of the row with number k: never above one half, so that a model that says yes or no says no to all."""
    return 0.05 + 0.04 * (k % 11)


class Doubting(HashModel):
    """Gives each row its chance, or (`sure`) twice its log-odds."""

    sure = False

    def _answer(self, question, row):
        p = chance(int(str(row.cells[0].value).split()[3]))
        if self.sure:
            p = p**3 / (p**3 + (1 - p) ** 3)
        return Answer(p > 0.5, p)


def connect(folder: Path, model: HashModel, **settings: object) -> uql.Connection:
    con = uql.connect(model=model, ledger=str(folder / "l.sqlite"), **{"budget": 300, "examples": False, **settings})
    rng = np.random.default_rng(1)
    rows = [(f"the row number {k} of the table", k % 2, bool(rng.random() < chance(k))) for k in range(4000)]
    told = pa.table(
        {
            "text": [r[0] for r in rows],
            "odd": [r[1] for r in rows],
            "label": [r[2] for r in rows],
            "rest": [k % 11 for k in range(4000)],
        }
    )
    con.register("told", told)
    con.sql("CREATE TABLE t AS SELECT * FROM told")
    con.register("drawn", told.take(rng.choice(4000, 350, replace=False)))
    con.sql("CREATE TABLE judged AS SELECT text, label AS answer FROM drawn")
    return con


def true(con: uql.Connection, where: str = "label") -> int:
    return int(con.sql(f"SELECT COUNT(*) FROM t WHERE {where}").fetchall()[0][0])


def test_a_soft_count_is_refused_until_the_probabilities_were_checked_and_is_near_the_truth_then(tmp_path):
    with connect(tmp_path, Doubting()) as con:
        query = f"SELECT COUNT(*) AS n FROM t WHERE {EVEN} WITH (soft)"
        with pytest.raises(DataError, match="not checked against labels") as error:
            con.uql(query).fetchall()
        assert error.value.code == "UQL519" and "uql calibrate" in str(error.value.help)
        calibrate(con, "it is heavy", "SELECT text, answer AS label FROM judged LIMIT 290")
        hard = con.uql(f"SELECT COUNT(*) AS n FROM t WHERE {EVEN}").estimates["n"]
        result = con.uql(query)
        soft, truth = result.estimates["n"], true(con)
        assert "soft" in soft.method and not soft.exact and soft.low <= truth <= soft.high
        assert abs(soft.value - truth) < 0.2 * truth < abs(hard.value - truth)
        assert any("counted by the probabilities" in note for note in result.run().notes)


def test_judged_rows_of_the_query_check_the_probabilities_and_groups_are_counted(tmp_path):
    with connect(tmp_path, Doubting(), budget=800) as con:
        query = f"SELECT odd, COUNT(*) AS n FROM t WHERE {EVEN} GROUP BY odd ORDER BY odd WITH (soft, audit = 'judged')"
        result = con.uql(query)
        assert [row[0] for row in result.fetchall()] == [0, 1]
        for odd, found in enumerate(result.estimates["n"]):
            assert found.low <= true(con, f"label AND odd = {odd}") <= found.high and "soft" in found.method


def test_probabilities_that_are_no_chances_are_refused_with_what_was_found(tmp_path):
    model = Doubting()
    model.sure = True
    with connect(tmp_path, model, budget=800) as con, pytest.raises(DataError, match="are not calibrated") as error:
        con.uql(f"SELECT COUNT(*) AS n FROM t WHERE {EVEN} WITH (soft, audit = 'judged')").fetchall()
    assert error.value.code == "UQL519" and "on average" in error.value.message


@pytest.mark.thorough
@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (f"SELECT SUM(rest) AS n FROM t WHERE {EVEN}", "SELECT SUM(rest) FROM t WHERE label"),
        (f"SELECT AVG(rest) AS n FROM t WHERE {EVEN}", "SELECT AVG(rest) FROM t WHERE label"),
        (f"SELECT SUM(rest) / COUNT(*) AS n FROM t WHERE {EVEN}", "SELECT AVG(rest) FROM t WHERE label"),
        (f"SELECT AVG(rest) AS n FROM t WHERE NOT {EVEN}", "SELECT AVG(rest) FROM t WHERE NOT label"),
        (f"SELECT COUNT(*) FILTER (WHERE {EVEN}) AS n FROM t", "SELECT COUNT(*) FROM t WHERE label"),
        (f"SELECT COUNT(*) FILTER (WHERE {EVEN}) / COUNT(*) AS n FROM t", "SELECT AVG(CAST(label AS INT)) FROM t"),
        (f"SELECT AVG(CASE WHEN {EVEN} THEN 1 ELSE 0 END) AS n FROM t", "SELECT AVG(CAST(label AS INT)) FROM t"),
    ],
)
def test_sums_means_and_shares_by_probabilities_are_near_the_truth(tmp_path, asked, wanted):
    held = 0
    for seed in range(4):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with connect(folder, Doubting(), budget=800, seed=seed) as con:
            found = con.uql(f"{asked} WITH (soft, audit = 'judged')").estimates["n"]
            truth = float(con.sql(wanted).fetchall()[0][0])
        assert "soft" in found.method and not found.exact
        assert found.value == pytest.approx(truth, rel=0.2) and found.high - found.low < truth
        held += found.low <= truth <= found.high
    assert held >= 3


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT MAX(odd) FROM t WHERE {EVEN}",
        f"SELECT SUM(odd) / SUM(rest) FROM t WHERE {EVEN}",
        f'SELECT COUNT(*) FROM t WHERE {EVEN} AND "it is old"',
        f'SELECT COUNT(*) FILTER (WHERE {EVEN}), COUNT(*) FILTER (WHERE "it is old") FROM t',
        f'SELECT "its kind" AS k, COUNT(*) FROM t WHERE {EVEN} GROUP BY k',
    ],
)
def test_what_is_no_count_of_one_condition_is_refused_before_a_call(tmp_path, query):
    with connect(tmp_path, Doubting()) as con, pytest.raises(DataError, match="soft counts") as error:
        con.uql(f"{query} WITH (soft)").fetchall()
    assert error.value.code == "UQL519"


def test_counts_without_a_quoted_text_are_as_ever(tmp_path):
    with connect(tmp_path, Doubting()) as con:
        assert con.uql("SELECT COUNT(*) AS n FROM t WHERE odd = 1 WITH (soft)").fetchall() == [(2000,)]
