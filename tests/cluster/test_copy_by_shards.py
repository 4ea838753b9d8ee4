"""COPY of a query's rows to a folder: each shard asks about its own rows and writes a file, all under one budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from hash_model import HashModel
from small_lake import ROWS, opened

from uql.base.errors import AuthError, BudgetError, ConfigError, DataError
from uql.benchmarks.kills import Billed, billed
from uql.llm.providers.base import CallError, Reply, Request

QUERY = 'SELECT id, "the topic" AS topic FROM reviews WHERE "the review is positive" AND stars > 1'
EVERY = 'SELECT id, "it is so"::VARCHAR AS so FROM reviews WHERE id % 10 = 0'


@pytest.fixture(autouse=True)
def few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uql.session.copy_by_shards.ROWS", 700)


def copy(query: str, folder: Path, options: str = "budget = 'all'") -> str:
    return f"COPY ({query} WITH ({options})) TO '{folder}' (FORMAT parquet)"


def read(folder: Path) -> list[tuple[Any, ...]]:
    """The rows of the files, in the order of the shards."""
    return duckdb.sql(f"FROM read_parquet({sorted(map(str, folder.glob('*.parquet')))})").fetchall()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "query", [QUERY, EVERY, "SELECT \"the topic\" IN ('a', 'b') AS x, * FROM reviews WHERE id < 50"]
)
def test_any_number_of_shards_writes_the_rows_that_the_engine_alone_gives(
    lake: Path, tmp_path: Path, query: str
) -> None:
    with opened(lake, None) as con:
        alone = con.uql(f"{query} WITH (budget = 'all')").fetchall()
    for shards in (1, 3):
        with opened(lake, "process", shards) as con:
            result = con.uql(copy(query, tmp_path / f"out{shards}"))
            assert result.fetchall() == [(len(alone),)] and result.exact
        assert sorted(path.name for path in (tmp_path / f"out{shards}").iterdir()) == [
            f"data_{n}.parquet" for n in range(shards)
        ]
        assert read(tmp_path / f"out{shards}") == alone


def test_the_same_rows_once_more_cost_nothing(lake: Path, tmp_path: Path) -> None:
    with opened(lake, "process", 2) as con:
        first, again = (con.uql(copy(EVERY, tmp_path / name)) for name in ("a", "b"))
        assert (first.cost.calls, again.cost.calls, again.cost.cached) == (300, 0, 300)
        runs = con.uql("SELECT status, calls FROM uql_runs()").fetchall()
        assert runs == [("done", 0), ("done", 300)]
    assert read(tmp_path / "a") == read(tmp_path / "b")


def test_a_budget_that_does_not_reach_every_row_is_said_before_a_call(lake: Path, tmp_path: Path) -> None:
    with opened(lake, "process", 2) as con:
        with pytest.raises(BudgetError, match="each of 300 rows of reviews") as raised:
            con.uql(copy(EVERY, tmp_path / "out", "budget = 299"))
        assert raised.value.code == "UQL401" and "budget = 300" in str(raised.value.help)
        assert con.uql("SELECT * FROM uql_calls()").fetchall() == [] and not (tmp_path / "out").exists()


def test_the_shards_spend_no_more_than_the_run_may(lake: Path, tmp_path: Path) -> None:
    for limit, most in (("max_cost = 0.002", 0.002), ("max_tokens = 3000", 3000)):
        with opened(lake, "process", 3) as con:
            result = con.uql(copy(EVERY, tmp_path / limit[:8], f"budget = 'all', partial = true, {limit}"))
            spent = result.cost.usd if "cost" in limit else result.cost.input_tokens + result.cost.output_tokens
            assert 0.7 * most < spent <= most and not result.exact


def test_rows_that_fail_are_listed_by_their_place_and_nothing_is_written(lake: Path, tmp_path: Path) -> None:
    class Failing(HashModel):
        async def answer(self, request: Request) -> Reply:
            if request.row.cells[0].value.startswith(("Review 1205 ", "Review 2990 ")):
                raise CallError("refusal", "I would rather not", input_tokens=5)
            return await super().answer(request)

    query = EVERY.replace("id % 10 = 0", "id % 5 = 0")
    with opened(lake, "process", 2, model=Failing()) as con:
        with pytest.raises(BudgetError, match="2 answers are missing"):
            con.uql(copy(query, tmp_path / "out"))
        assert not list((tmp_path / "out").glob("*.parquet"))
        result = con.uql(copy(query, tmp_path / "out", "budget = 'all', partial = true"))
        assert [error.row for error in result.errors] == [241, 598] and not result.exact
    assert len(read(tmp_path / "out")) == ROWS // 5


def test_a_folder_that_holds_files_is_left_alone(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with opened(lake, "process", 2) as con:
        with pytest.raises(DataError, match="holds files") as raised:
            con.uql(copy(EVERY, tmp_path / "out"))
        assert raised.value.code == "UQL510" and con.uql("SELECT * FROM uql_calls()").fetchall() == []


@pytest.mark.parametrize("what", ["a file", "a link to nothing", "a name of 300 letters", "below a file"])
def test_a_folder_that_cannot_be_made_is_an_error_before_a_call(lake: Path, tmp_path: Path, what: str) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    folder = {"a file": "file", "a link to nothing": "link", "below a file": "file/out"}.get(what, "x" * 300)
    with opened(lake, "process", 2) as con:
        with pytest.raises(DataError) as raised:
            con.uql(copy(EVERY, tmp_path / folder))
        assert raised.value.code in ("UQL509", "UQL510")
        assert con.uql("SELECT * FROM uql_calls()").fetchall() == []
    assert (tmp_path / "file").read_text() == "mine"


def test_hidden_files_of_others_stay(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".data_mine").write_text("mine")
    (tmp_path / "out" / f".data_{'0' * 16}").write_text("of a shard that was killed")
    with opened(lake, "process", 2) as con:
        con.uql(copy(EVERY, tmp_path / "out")).run()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        ".data_mine",
        "data_0.parquet",
        "data_1.parquet",
    ]


@pytest.mark.parametrize(
    "query",
    [
        'SELECT id, "the topic" FROM reviews ORDER BY id',
        'SELECT id, "the topic", row_number() OVER () FROM reviews',
        'SELECT id, "the topic" FROM reviews WHERE id IN (SELECT id FROM reviews)',
        'SELECT DISTINCT "the topic" FROM reviews',
    ],
)
def test_rows_that_depend_on_others_are_not_asked_by_shards(lake: Path, tmp_path: Path, query: str) -> None:
    with opened(lake, "process", 2) as con:
        with pytest.raises(DataError) as raised:
            con.uql(copy(query, tmp_path / "out", "budget = 200"))
        assert raised.value.code == "UQL527" and con.uql("SELECT * FROM uql_calls()").fetchall() == []


def test_a_run_that_ended_early_goes_on_and_keeps_its_cap(lake: Path, tmp_path: Path) -> None:
    class Stopping(HashModel):
        most = 90

        async def answer(self, request: Request) -> Reply:
            if self.calls >= self.most:
                raise AuthError("the key is refused")
            return await super().answer(request)

    model = Stopping()
    with opened(lake, "process", 3, model=model, ledger=str(tmp_path / "l.sqlite")) as con:
        with pytest.raises(AuthError):
            con.uql(copy(EVERY, tmp_path / "out", "budget = 400"))
        assert con.uql("SELECT status FROM uql_runs()").fetchall() == [("failed",)]
        model.most = 10**6
        result = con.resume(con.last_run)
        assert result.fetchall() == [(300,)] and 90 <= model.calls <= 400
    assert len(read(tmp_path / "out")) == 300 and not list((tmp_path / "out").glob(".*"))


# ------------------------------------------------------------------------------------------------------------- Ray
def test_actors_ask_and_write_under_one_cap(lake: Path, nodes: Any, tmp_path: Path) -> None:
    bill = tmp_path / "bill"
    with opened(lake, nodes.address, model=Billed(bill), ledger=str(tmp_path / "l.sqlite")) as con:
        result = con.uql(copy(EVERY, tmp_path / "out", "budget = 300"))
        assert result.fetchall() == [(300,)] and result.exact
    calls = billed(bill)
    assert len(calls) == result.cost.calls == 300 and len({process for process, _ in calls}) == 2
    assert read(tmp_path / "out")[7] == (70, "value Review 7")


def test_shards_that_cannot_see_the_ledger_ask_nothing(lake: Path, nodes: Any, tmp_path: Path) -> None:
    bill = tmp_path / "bill"
    with opened(lake, nodes.address, model=Billed(bill)) as con:
        with pytest.raises(ConfigError, match="not that of the driver") as raised:
            con.uql(copy(EVERY, tmp_path / "out"))
        assert raised.value.code == "UQL410" and "postgresql://" in str(raised.value.help)
    assert billed(bill) == []
