"""What changes how a sample is drawn, and the same statement again: the same numbers for no call, a larger budget goes on, none is exceeded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hash_model import digest
from paid_model import Paid, said

import uql
from uql.llm.questions import Extract

JUDGED = 30
STATEMENTS = {  # a statement, and its options beside the budget
    "error": ('SELECT COUNT(*) AS n FROM t WHERE "it is so"', "error = 0.2"),
    "error of a sum": ('SELECT SUM(v) AS s FROM t WHERE "it is so"', "error = 0.15"),
    "error of a mean": ('SELECT AVG("the score"::DOUBLE) AS m FROM t WHERE "it is so"', "error = 0.1"),
    "error by groups": ('SELECT k, COUNT(*) AS n FROM t WHERE "it is so" GROUP BY k ORDER BY k', "error = 0.4"),
    "error by few rows": ('SELECT f, AVG("the score"::DOUBLE) AS m FROM t GROUP BY f ORDER BY m', "error = 0.2"),
    "few rows": ('SELECT f, AVG("the score"::DOUBLE) AS m FROM t GROUP BY f ORDER BY m', ""),
    "first of few rows": ('SELECT f, SUM("the score"::DOUBLE) AS m FROM t GROUP BY f ORDER BY m DESC LIMIT 3', ""),
    "few rows by a proxy": ('SELECT f, AVG("the score"::DOUBLE) AS m FROM t GROUP BY f ORDER BY m', "proxy = 'v'"),
    "audit": ('SELECT COUNT(*) AS n FROM t WHERE "it is so"', "audit = 'judged'"),
    "audit of a sum": ('SELECT SUM(v) AS s FROM t WHERE "it is so"', "audit = 'judged'"),
    "audit by groups": ('SELECT k, COUNT(*) AS n FROM t WHERE "it is so" GROUP BY k ORDER BY k', "audit = 'judged'"),
    "audit and error": ('SELECT COUNT(*) AS n FROM t WHERE "it is so"', "audit = 'judged', error = 0.3"),
    "audit by a proxy": ('SELECT COUNT(*) AS n FROM t WHERE "it is so"', "audit = 'judged', proxy = 'v'"),
    "a search with its total": ('SELECT id FROM t WHERE "it is so"', "total = 0.25"),
    "a search without its total": ('SELECT id FROM t WHERE "it is so"', "total = 0"),
    "a rare search": ('SELECT id FROM t WHERE "it is rare"', ""),
    "a search by a proxy": ('SELECT id FROM t WHERE "it is so"', "proxy = 'v', total = 0.25"),
    "a count by a proxy": ('SELECT COUNT(*) AS n FROM t WHERE "it is so"', "proxy = 'v'"),
    "error by a proxy": ('SELECT COUNT(*) AS n FROM t WHERE "it is so"', "proxy = 'v', error = 0.2"),
    "a search with recall": ('SELECT id FROM t WHERE "it is so"', "recall = 0.8, proxy = 'v'"),
}


class Model(Paid):
    """Also reads a number of each row."""

    def __init__(self) -> None:
        super().__init__()
        self.rates["it is rare"] = 0.01

    def _answer(self, question: Any, row: Any) -> Any:
        from uql.llm.providers.base import Answer

        if isinstance(question, Extract) and question.type == "DOUBLE":
            return Answer(float(1 + digest(question, row) % 9))
        return super()._answer(question, row)


def connect(folder: Path, model: Any, **settings: Any) -> uql.Connection:
    con = uql.connect(folder / "t.duckdb", model=model, ledger=str(folder / "l.sqlite"), **settings)
    con.sql(
        "CREATE TABLE IF NOT EXISTS t AS SELECT range AS id, range % 4 AS k, range % 40 AS f, range % 17 AS v, "
        "'a text that is about many things and has the number ' || range AS text FROM range(700)"
    )
    con.sql(
        "CREATE TABLE IF NOT EXISTS judged AS SELECT 'a judged text that is long enough and has the number ' || range AS text, "
        f"range % 3 = 0 AS answer FROM range({JUDGED})"
    )
    con.sql("CREATE TABLE IF NOT EXISTS kept (x DOUBLE, x_low DOUBLE, x_high DOUBLE)")
    return con


def run(con: uql.Connection, name: str, budget: int | str | None) -> uql.Result:
    statement, options = STATEMENTS[name]
    both = ", ".join(part for part in ("" if budget is None else f"budget = {budget}", options) if part)
    return con.uql(f"{statement} WITH ({both})" if both else statement)


def beside(name: str) -> int:
    """Calls that do not count in the budget."""
    return JUDGED if "audit" in STATEMENTS[name][1] else 0


@pytest.mark.thorough
@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", STATEMENTS)
def test_each_budget_has_its_numbers_and_what_was_paid_is_not_paid_again(tmp_path: Path, name: str) -> None:
    model = Model()
    with connect(tmp_path, model) as con:
        found: dict[int | str, Any] = {}
        for budget in (100, 256):
            before = len(model.paid)
            result = run(con, name, budget)
            found[budget] = said(result)
            assert len(model.paid) <= budget + beside(name), "no budget is exceeded"
            assert result.cost.calls == len(model.paid) - before
        assert len(set(model.paid)) == len(model.paid), "nothing is paid for twice"
        paid = len(model.paid)
        for budget, expected in found.items():
            assert "0 new calls" in run(con, name, budget).explain()
            assert said(run(con, name, budget)) == expected
        assert len(model.paid) == paid, "each budget again is no call"
    with connect(tmp_path, model) as con:
        for budget in (256, 100):
            assert said(run(con, name, budget)) == found[budget]
        assert len(model.paid) == paid


@pytest.mark.thorough
@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "name", [*(name for name in STATEMENTS if "error" in name), "few rows", "audit", "a rare search"]
)
def test_without_a_budget_it_is_the_same_and_a_budget_goes_on(tmp_path: Path, name: str) -> None:
    model = Model()
    with connect(tmp_path, model) as con:
        first = said(run(con, name, None))
        paid = len(model.paid)
        again = run(con, name, None)
        assert "0 new calls" in again.explain()
        assert said(again) == first and again.cost.calls == 0 and len(model.paid) == paid
        larger = said(run(con, name, 650))
        assert len(model.paid) <= 650 + beside(name) and len(set(model.paid)) == len(model.paid)
        now = len(model.paid)
        assert said(run(con, name, 650)) == larger and said(run(con, name, None)) == first
        assert len(model.paid) == now


@pytest.mark.thorough
@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["error", "few rows", "audit", "a search with its total", "a count by a proxy"])
def test_more_calls_draw_the_rows_of_fewer_first(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, two = Model(), Model()
    with connect(tmp_path / "a", one) as con:
        run(con, name, 128).fetchall()
    with connect(tmp_path / "b", two) as con:
        run(con, name, 128).fetchall()
        run(con, name, 256).fetchall()
    assert set(one.paid) <= set(two.paid[: len(one.paid)])


@pytest.mark.thorough
@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["error", "few rows", "audit", "a search by a proxy", "a search with its total"])
def test_a_row_that_is_judged_later_keeps_the_draw_and_a_larger_budget_goes_on(tmp_path: Path, name: str) -> None:
    model = Model()
    with connect(tmp_path, model) as con:
        first = run(con, name, 128)
        before = said(first)
        paid = len(model.paid)
        rows = con.uql("SELECT id, \"it is so\"::BOOLEAN AS so FROM t WHERE id < 3 WITH (budget = 'all')")
        rows.fetchall()
        asked = len(model.paid) - paid
        rows.correct(0, not rows.fetchall()[0][1], "so")
        now = run(con, name, 128)
        assert now.cost.calls == 0 and now.estimates.keys() == first.estimates.keys()
        assert len(said(now)[0]) - len(before[0]) in (-1, 0, 1)
        run(con, name, 256).fetchall()
        assert len(model.paid) <= 256 + asked + beside(name)
        assert len(set(model.paid)) == len(model.paid)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["error", "audit", "a search with its total", "few rows"])
def test_what_is_inserted_is_what_the_statement_gives(tmp_path: Path, name: str) -> None:
    model = Model()
    statement, options = STATEMENTS[name]
    inner = statement.replace("SELECT f, ", "SELECT ").replace(" ORDER BY m", "")
    options = ", ".join(part for part in (options, "partial = true") if part)
    with connect(tmp_path, model) as con:
        for _ in range(2):
            con.uql(f"INSERT INTO kept {inner} WITH ({options})")
        rows = [row[0] for row in con.sql("SELECT x FROM kept").fetchall()]
        half = len(rows) // 2
        assert half and sorted(rows[:half]) == sorted(rows[half:])
        assert len(set(model.paid)) == len(model.paid) and len(model.paid) <= 256 + beside(name)
        read = con.uql("SELECT x FROM kept")
        assert not read.exact and read.based_on


def test_runs_of_other_tables_outlive_the_pruning_of_one(tmp_path: Path) -> None:
    from uql.llm.ledger import Ledger

    model = Model()
    with connect(tmp_path, model) as con:
        con.sql("CREATE TABLE u AS SELECT id, text || ' of another table' AS text FROM t")
        one, other = ('SELECT COUNT(*) AS n FROM t WHERE "it is so"', 'SELECT COUNT(*) AS n FROM u WHERE "it is so"')
        kept, _ = said(con.uql(one)), con.uql(other).fetchall()
        with Ledger(str(tmp_path / "l.sqlite")) as ledger:
            assert ledger.prune(source="u") > 100
        again = con.uql(one)
        assert said(again) == kept and again.cost.calls == 0
        anew = con.uql(other)
        assert anew.cost.calls > 100 and not any("answered from" in note for note in anew.notes)


def test_judged_rows_are_part_of_the_data_of_a_run(tmp_path: Path) -> None:
    model = Model()
    with connect(tmp_path, model) as con:
        first = said(run(con, "audit", 128))
        paid = len(model.paid)
        con.sql("UPDATE judged SET answer = NOT answer")
        changed = run(con, "audit", 128)
        assert changed.cost.calls and not any("answered from" in note for note in changed.notes)
        con.sql("UPDATE judged SET answer = NOT answer")
        now = len(model.paid)
        assert said(run(con, "audit", 128)) == first and len(model.paid) == now >= paid


@pytest.mark.parametrize("rows", [100, 600])
def test_explain_and_quotes_know_the_rows_that_another_statement_asked(tmp_path: Path, rows: int) -> None:
    with connect(tmp_path, Model()) as con:
        con.sql(f"DELETE FROM t WHERE id >= {rows}")
        con.uql("SELECT id FROM t WHERE \"it is so\" WITH (budget = 'all')").fetchall()
        other = con.uql("SELECT SUM(v) AS s FROM t WHERE \"it is so\" WITH (budget = 'all')")
        assert other.quote().calls.expected == 0 and other.quote().calls.high <= 0.02 * rows
        assert other.cost.calls == 0
        part = con.uql('SELECT id FROM t WHERE "it is so" AND "it is rare" WITH (budget = \'all\')')
        predicted = part.quote().calls
        assert predicted.low <= part.cost.calls <= predicted.high
