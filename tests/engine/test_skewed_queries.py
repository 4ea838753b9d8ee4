"""Whole queries: intervals of SUM and AVG of a lognormal number that the model reads, under a WHERE that it decides."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hash_model import HashModel

import uql
from uql.benchmarks.guarantees.bounds import keeps
from uql.llm.questions import Predicate

STATEMENT = 'SELECT SUM("the total"::DOUBLE) AS s, AVG("the total"::DOUBLE) AS a FROM t WHERE "it is late"'


class Invoices(HashModel):
    """Each table of numbers is a model of its own, so that no answer serves another."""

    def begin(self, seed: int, n: int, budget: int) -> None:
        rng = np.random.default_rng([seed, n])
        self.name = f"invoices {seed} {n} {budget}"
        self.values, self.late = np.round(rng.lognormal(4, 1.2, n), 2), rng.random(n) < 0.3
        self.answers = self.read

    def read(self, question: Any, row: Any) -> Any:
        i = int(row.cells[0].value.rpartition(" ")[2])
        return bool(self.late[i]) if isinstance(question, Predicate) else float(self.values[i])


def held(n: int, budget: int, seeds: int) -> tuple[float, float]:
    """The share of seeds whose interval holds the truth, of the sum and of the mean."""
    model = Invoices()
    found = []
    with uql.connect(model=model, ledger=":memory:", examples=False) as con:
        con.sql(f"CREATE TABLE t AS SELECT 'an invoice for goods with the number ' || i AS text FROM range({n}) r(i)")
        for seed in range(seeds):
            model.begin(seed, n, budget)
            late = model.values[model.late]
            told = con.uql(f"{STATEMENT} WITH (budget = {budget}, seed = {seed})").estimates
            found.append([told[k].low <= v <= told[k].high for k, v in (("s", late.sum()), ("a", late.mean()))])
    shares = np.mean(found, axis=0)
    return float(shares[0]), float(shares[1])


def test_a_few_sums_and_means_of_skewed_numbers_are_held() -> None:
    assert min(held(600, 64, 8)) >= 6 / 8


@pytest.mark.slow
@pytest.mark.parametrize("n", [600, 5000])
@pytest.mark.parametrize("budget", [64, 128, 256])
def test_sums_and_means_of_skewed_numbers_are_held(n: int, budget: int) -> None:
    assert min(held(n, budget, 400)) >= 0.93 - 2 * math.sqrt(0.93 * 0.07 / 400)


RARE = {
    "sum(CASE WHEN <late> THEN 50 ELSE 1 END) AS x FROM t": "sum(CASE WHEN late THEN 50 ELSE 1 END) FROM truth",
    "avg(if(<late>, amount, 1)) AS x FROM t": "avg(if(late, amount, 1)) FROM truth",
    "sum(if(<late>, amount, 1)) / count(*) AS x FROM t": "sum(if(late, amount, 1)) / count(*) FROM truth",
    "sum(CASE WHEN <late> THEN amount WHEN <paid> THEN 2 ELSE 1 END) AS x FROM t": (
        "sum(CASE WHEN late THEN amount WHEN paid THEN 2 ELSE 1 END) FROM truth"
    ),
    "sum(if(<late>, word::DOUBLE, 1)) AS x FROM t": "sum(if(late, amount, 1)) FROM truth",
    "sum(if(<late>, amount, 1)) FILTER (<paid>) AS x FROM t": "sum(if(late, amount, 1)) FILTER (paid) FROM truth",
    "avg(if(<late>, amount, 1)) FILTER (<paid>) AS x FROM t": "avg(if(late, amount, 1)) FILTER (paid) FROM truth",
    "100.0 * sum(if(<late>, amount, 1)) / sum(amount) AS x FROM t": (
        "100.0 * sum(if(late, amount, 1)) / sum(amount) FROM truth"
    ),
    "sum(if(<late>, <read>, 1)) AS x FROM t": "sum(if(late, amount, 1)) FROM truth",
    "sum(if(NOT <late>, NULL, amount - 60)) AS x FROM t": "sum(if(NOT late, NULL, amount - 60)) FROM truth",
    "sum(CASE WHEN <paid> THEN NULL WHEN <late> THEN 9 ELSE amount END) AS x FROM t": (
        "sum(CASE WHEN paid THEN NULL WHEN late THEN 9 ELSE amount END) FROM truth"
    ),
    "avg(if(<late>, <read>, 1)) AS x FROM t": "avg(if(late, amount, 1)) FROM truth",
    "sum(if(<late>, amount, 1)) AS x FROM t WHERE <paid>": "sum(if(late, amount, 1)) FROM truth WHERE paid",
    "avg(if(<late>, amount, 1)) AS x FROM t WHERE <paid>": "avg(if(late, amount, 1)) FROM truth WHERE paid",
}


class Deliveries(HashModel):
    """One in a hundred is late, half are paid."""

    name = "deliveries"

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        super().__init__(answers=self.read)
        self.late, self.paid, self.amount = rng.random(600) < 0.01, rng.random(600) < 0.5, rng.lognormal(4, 0.5, 600)

    def read(self, question: Any, row: Any) -> Any:
        i = int(row.cells[0].value.rpartition(" ")[2])
        if not isinstance(question, Predicate):
            return float(self.amount[i])
        return bool(self.late[i] if "late" in question.text else self.paid[i])


@pytest.fixture(scope="module")
def deliveries() -> Iterator[uql.Connection]:
    model = Deliveries()
    with uql.connect(model=model, ledger=":memory:", examples=False) as con:
        con.sql("CREATE TABLE truth (id BIGINT, late BOOLEAN, paid BOOLEAN, amount DOUBLE)")
        rows = zip(range(600), model.late.tolist(), model.paid.tolist(), model.amount.tolist(), strict=True)
        con.sql(f"INSERT INTO truth VALUES {', '.join(map(str, rows))}")
        con.sql(
            "CREATE TABLE t AS SELECT 'a delivery with the number ' || id AS text, amount, if(late, amount::VARCHAR, 'none') AS word FROM truth ORDER BY id"
        )
        yield con


@pytest.mark.thorough
@pytest.mark.one_in(3)
@pytest.mark.parametrize("statement", RARE)
def test_values_that_a_rare_condition_decides_are_in_the_interval_though_no_row_of_it_was_drawn(
    deliveries: uql.Connection, statement: str
) -> None:
    (want,) = deliveries.sql(f"SELECT {RARE[statement]}").fetchall()[0]
    asked = statement.replace("<late>", '"it is late"').replace("<paid>", '"it is paid"')
    asked = asked.replace("<read>", '"the amount"::DOUBLE')
    held = 0
    for seed in range(8):
        told = deliveries.uql(f"SELECT {asked} WITH (budget = 48, seed = {seed})").estimates["x"]
        held += told.low <= want <= told.high
    assert held >= 7


def test_a_quotient_of_two_counts_is_no_share_where_the_few_rows_drawn_look_like_one() -> None:
    """Half of the rows are late and a third is paid: of four rows drawn, those that are late are often among those that are paid."""
    quotient = 'COUNT(*) FILTER ("it is late") * 1.0 / COUNT(*) FILTER ("it is paid")'
    held, seeds = 0, 24
    for seed in range(seeds):
        model = HashModel({"it is late": 0.5, "it is paid": 0.3})
        with uql.connect(model=model, ledger=":memory:", examples=False) as con:
            con.sql(f"CREATE TABLE t AS SELECT 'delivery {seed}, number ' || i AS text FROM range(60) r(i)")
            told = con.uql(f"SELECT {quotient} AS x FROM t WITH (budget = {1 + seed % 4})").estimates["x"]
            ((truth,),) = con.uql(f"SELECT {quotient} AS x FROM t WITH (exact)").fetchall()
        assert not told.exact
        held += told.low <= truth <= told.high
    assert keeps(seeds - held, seeds, 0.05)


def test_a_share_of_the_rows_that_pass_lies_between_0_and_1(deliveries: uql.Connection) -> None:
    for item in (
        'COUNT(*) FILTER ("it is paid" AND amount < 60) * 1.0 / COUNT(*) FILTER ("it is paid")',
        'COUNT(*) FILTER ("it is paid") * 1.0 / COUNT(*)',
    ):
        told = deliveries.uql(f"SELECT {item} AS x FROM t WITH (budget = 12)").estimates["x"]
        assert 0 <= told.low < told.high <= 1


@pytest.mark.parametrize("rest", ["", " FILTER (WHERE amount < 90)"])
@pytest.mark.parametrize("name", ["avg", "sum"])
def test_a_case_has_the_same_interval_whichever_branch_is_null(
    deliveries: uql.Connection, name: str, rest: str
) -> None:
    ways = ('CASE WHEN NOT "it is paid" THEN amount END', 'CASE WHEN "it is paid" THEN NULL ELSE amount END')
    first, second = (
        deliveries.uql(f"SELECT {name}({way}){rest} AS x FROM t WITH (budget = 48)").estimates["x"] for way in ways
    )
    assert first.value == pytest.approx(second.value, rel=0.1)
    assert second.high - second.low == pytest.approx(first.high - first.low, rel=0.2)


def test_a_sum_of_numbers_that_the_model_reads_says_how_rare_those_may_be_that_it_lacks() -> None:
    model = Invoices()
    with uql.connect(model=model, ledger=":memory:", examples=False) as con:
        con.sql(
            "CREATE TABLE t AS SELECT i, i % 2 AS k, 'an invoice for goods with the number ' || i AS text FROM range(600) r(i)"
        )
        model.begin(1, 600, 64)
        model.values[::40] *= 10_000
        notes = con.uql(f"{STATEMENT} WITH (budget = 64)").notes
        (note,) = [note for note in notes if "far larger" in note]
        rows = int(note.partition("(")[2].split()[0])
        assert 10 <= rows <= 32 and f"up to {1 - 0.05 ** (1 / rows):.1%} of the rows may have some" in note
        by_group = 'SELECT k, AVG("the total"::DOUBLE) AS a FROM t GROUP BY k WITH (budget = 64)'
        assert any("of the rows of a group may have some" in note for note in con.uql(by_group).notes)
        for statement in (
            f"{STATEMENT} WITH (budget = 'all')",
            'SELECT SUM(i), AVG(i), COUNT(*) FROM t WHERE "it is late" WITH (budget = 64)',
            'SELECT SUM(CASE WHEN "it is late" THEN i ELSE 1 END) FROM t WITH (budget = 64)',
        ):
            assert not any("far larger" in note for note in con.uql(statement).notes)
