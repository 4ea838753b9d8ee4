"""How a run is said to have ended: done, partial where a limit was reached, unfinished where its budget left rows unasked."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hash_model import HashModel

import uql
from uql.llm.providers.base import CallError, Price, Reply, Request


class Slow(HashModel):
    """Takes a while for each row, and refuses every row but each second one the first time where it is told to."""

    def __init__(self, latency_s: float = 0.0, *, faults: bool = False) -> None:
        super().__init__({"it is so": 0.3}, Price(1.0, 1.0))
        self.latency_s, self.faults, self.seen = latency_s, faults, set[Any]()

    async def answer(self, request: Request) -> Reply:
        await asyncio.sleep(self.latency_s)
        if self.faults and request.row not in self.seen:
            self.seen.add(request.row)
            raise CallError("truncated", "half")
        return await super().answer(request)


def run(folder: Path, statement: str, model: Any) -> tuple[Any, str, int]:
    """The result, the status that the ledger keeps, and the exit code's reason."""
    with uql.connect(folder / "t.duckdb", model=model, ledger=str(folder / "l.sqlite")) as con:
        con.sql(
            "CREATE TABLE t AS SELECT range AS id, 'the text of row ' || range || ' as it stands' AS text FROM range(600)"
        )
        result = con.uql(statement)
        result.run()
        ((status,),) = con.uql("SELECT status FROM uql_runs()").fetchall()
        return result, status, result.cost.calls


def test_an_estimate_that_used_its_whole_budget_is_done(tmp_path: Path) -> None:
    result, status, calls = run(tmp_path, 'SELECT COUNT(*) AS n FROM t WHERE "it is so" WITH (budget = 60)', Slow())
    assert (result.partial, status) == (False, "done") and 50 <= calls <= 60 and not result.estimates["n"].exact


@pytest.mark.parametrize("cap", ["max_cost = 0.002", "max_seconds = 0.5, concurrency = 4"])
def test_a_limit_that_is_reached_while_running_gives_what_is_finished_and_says_partial(
    tmp_path: Path, cap: str
) -> None:
    statement = f"SELECT COUNT(*) AS n FROM t WHERE \"it is so\" WITH (budget = 'all', {cap})"
    result, status, calls = run(tmp_path, statement, Slow(0.02))
    assert (result.partial, status) == (True, "partial") and 0 < calls < 600
    estimate = result.estimates["n"]
    assert not estimate.exact and estimate.low <= estimate.value <= estimate.high


def test_rows_that_failed_and_that_the_budget_of_calls_did_not_reach_again_say_so(tmp_path: Path) -> None:
    """600 calls are enough for one try of each row: none is tried twice before all were tried."""
    result, status, calls = run(tmp_path, 'SELECT id, "the name" AS n FROM t WITH (budget = 600)', Slow(faults=True))
    assert (status, calls, len(result.errors)) == ("done", 600, 600) and not result.exact
    assert all("the budget (calls) ended before this row was asked again" in error.message for error in result.errors)


def test_a_run_that_fails_says_so(tmp_path: Path) -> None:
    class Refuses(HashModel):
        async def answer(self, request: Request) -> Reply:
            raise uql.base.errors.AuthError("no key")

    with pytest.raises(uql.base.errors.AuthError):
        run(tmp_path, 'SELECT id, "the name" AS n FROM t LIMIT 5', Refuses())
    with uql.connect(model=HashModel(), ledger=str(tmp_path / "l.sqlite")) as con:
        assert con.uql("SELECT status FROM uql_runs()").fetchall() == [("failed",)]
