"""A run that was killed, interrupted or stopped at a limit goes on: the same sample, and nothing is paid for twice."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import threading
import zlib
from pathlib import Path
from typing import Any

import pytest
from hash_model import HashModel

import uql
from uql.base.errors import ConfigError, DataError, ModelReplyError
from uql.llm.providers.base import Answer, CallError, Limits, Price, Problem, Reply, Request, RowsReply, RowsRequest

COUNT = 'SELECT COUNT(*) AS n FROM t WHERE "it is so"'
GROUPS = 'SELECT kind, COUNT(*) AS n FROM t WHERE "it is so" AND "it is nice" GROUP BY "the kind" AS kind ORDER BY kind WITH (budget = 90)'


class Counting(HashModel):
    """Counts the rows that it is paid for, and stops the run at the call of a number."""

    limits = Limits(concurrency=8)

    def __init__(self, stop_at: int = 0, **more: Any) -> None:
        super().__init__({"it is so": 0.3}, Price(1.0, 1.0), **more)
        self.stop_at, self.con = stop_at, None
        self.paid: list[tuple[Any, ...]] = []

    async def answer(self, request: Request) -> Reply:
        self.paid.append((tuple(q.text for q in request.questions), tuple(c.value for c in request.row.cells)))
        if self.stop_at and len(self.paid) == self.stop_at and self.con is not None:
            self.con.interrupt()
        return await super().answer(request)


def connect(folder: Path, model: Any, rows: int = 1200, **settings: Any) -> uql.Connection:
    con = uql.connect(folder / "t.duckdb", model=model, ledger=str(folder / "l.sqlite"), **settings)
    con.sql(
        f"CREATE TABLE IF NOT EXISTS t AS SELECT range AS id, 'the text of row ' || range || ' as it stands' AS text FROM range({rows})"
    )
    if isinstance(model, Counting):
        model.con = con
    return con


def whole(folder: Path, statement: str, **settings: Any) -> tuple[Any, int]:
    """The estimates of a run that nothing stops, and its calls."""
    folder.mkdir()
    model = Counting()
    with connect(folder, model, **settings) as con:
        result = con.uql(statement)
        return result.estimates, len(model.paid)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("statement", "stop_at"), [(COUNT, 3), (COUNT, 61), (GROUPS, 40), (GROUPS, 77)])
def test_an_interrupted_run_goes_on_with_the_same_sample_and_pays_for_no_row_twice(
    tmp_path: Path, statement: str, stop_at: int
) -> None:
    estimates, calls = whole(tmp_path / "whole", statement)
    first = Counting(stop_at)
    with connect(tmp_path, first) as con:
        stopped = con.uql(statement)
        assert stopped.partial and len(first.paid) < calls
        token = stopped.run_id
    second = Counting()
    with connect(tmp_path, second, seed=99, budget=7) as con:  # the run's own settings hold, not the session's
        result = con.resume(token)
        assert result.estimates == estimates and not result.partial
        assert result.run_id == token
        assert not con.uql("SELECT * FROM uql_runs() WHERE status <> 'done'").fetchall()
    paid = first.paid + second.paid
    assert len(paid) == len(set(paid)) == calls, "no row is paid for twice"


def test_other_queries_see_its_answers_as_known_rows_and_their_answers_are_draws_of_the_resumed_run(
    tmp_path: Path,
) -> None:
    estimates, _ = whole(tmp_path / "whole", COUNT)
    first = Counting(50)
    with connect(tmp_path, first) as con:
        token = con.uql(COUNT).run_id
        other = con.uql(f"{COUNT} WITH (budget = 40)")
        assert other.cost.cached >= 30 and other.cost.calls <= 40, "what was paid for is known"
        assert con.resume(token).estimates == estimates


def test_a_run_that_reached_its_cost_is_granted_it_anew_and_goes_on(tmp_path: Path) -> None:
    estimates, calls = whole(tmp_path / "whole", COUNT)
    model = Counting()
    with connect(tmp_path, model) as con:
        cap = 40 * 51e-6
        stopped = con.uql(f"{COUNT} WITH (max_cost = {cap})")
        assert stopped.partial and stopped.cost.usd is not None and stopped.cost.usd <= cap
        before = len(model.paid)
        again = con.resume()
        assert again.partial and len(model.paid) > before and len(model.paid) <= 2 * before + 1
        done = con.resume(max_cost=1)
        assert not done.partial and done.estimates == estimates
    assert len(model.paid) == len(set(model.paid)) == calls


def test_a_killed_run_may_spend_only_what_its_cost_limit_leaves(tmp_path: Path) -> None:
    model = Counting(50)
    with connect(tmp_path, model) as con:
        cap = 80 * 51e-6
        con.uql(f"{COUNT} WITH (max_cost = {cap})").fetchall()
        assert con.resume().partial
    assert len(model.paid) <= 80


def test_changed_rows_end_the_resumed_run_before_anything_is_sent(tmp_path: Path) -> None:
    model = Counting(20)
    with connect(tmp_path, model) as con:
        token = con.uql(COUNT).run_id
        con.sql("UPDATE t SET text = text || '!' WHERE id = 5")
        before = len(model.paid)
        with pytest.raises(DataError, match=r"UQL413.*not those that the run"):
            con.resume(token).fetchall()
        assert len(model.paid) == before


def test_a_token_that_is_none_says_so_and_a_ledger_in_memory_has_the_runs_of_its_connection(tmp_path: Path) -> None:
    with connect(tmp_path, Counting()) as con, pytest.raises(ConfigError, match="UQL412"):
        con.resume("0000000")
    with uql.connect(model=Counting(), ledger=":memory:") as con:
        con.sql("CREATE TABLE t AS SELECT 'a text that is long enough' AS text")
        result = con.uql(COUNT)
        assert result.fetchall() and result.run_id == con.last_run != ""
        assert con.resume().fetchall() == result.fetchall(), "as long as the connection lives"


class Failing(Counting):
    """Refuses the rows whose id is in `bad`."""

    bad = frozenset({"3", "7"})

    async def answer(self, request: Request) -> Reply:
        if str(request.row.cells[0].value).split()[4] in self.bad:
            self.paid.append(("failed", request.row.cells[0].value))
            raise CallError("refusal", "no")
        return await super().answer(request)


class Packed(Counting):
    """Answers several rows in a request; of every fifth row no answer can be read there, and none comes when it is asked alone."""

    limits = Limits(concurrency=4)

    async def answer_rows(self, request: RowsRequest) -> RowsReply:
        answers = []
        for part in request.single_requests():
            reply = await Counting.answer(self, part)
            bad = Answer(problem=Problem("unreadable", "no answer")) if _is_bad(part) else reply.answers[0]
            answers.append((bad,))
        return RowsReply(tuple(answers), 30 * len(answers), len(answers))

    async def answer(self, request: Request) -> Reply:
        if _is_bad(request):
            self.paid.append(("alone", request.row.cells[0].value))
            raise CallError("refusal", "no")
        return await super().answer(request)


def _is_bad(request: Request) -> bool:
    return bool(request.row.cells) and int(str(request.row.cells[0].value).split()[4]) % 5 == 0


PACKED = {
    "a sample": 'SELECT COUNT(*) AS n FROM t WHERE "it is so" WITH (rows_per_request = 4, budget = 60)',
    "values": 'SELECT id, "the name" AS name FROM t WHERE id < 30 WITH (rows_per_request = 4)',
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "stop_at"), [(name, at) for name in PACKED for at in (3, 14, 25)] + [("a sample", 43), ("a sample", 55)]
)
def test_rows_that_share_requests_and_fail_resume_as_an_unbroken_run(tmp_path: Path, name: str, stop_at: int) -> None:
    (tmp_path / "whole").mkdir()
    model = Packed()
    with connect(tmp_path / "whole", model, rows=150) as con:
        whole = con.uql(PACKED[name])
        want = (whole.fetchall(), whole.estimates, sorted(error.row for error in whole.errors))
    assert want[2], "some rows fail"
    first = Packed(stop_at)
    with connect(tmp_path, first, rows=150) as con:
        stopped = con.uql(PACKED[name])
        assert stopped.partial
        token = stopped.run_id
    second = Packed()
    with connect(tmp_path, second, rows=150) as con:
        result = con.resume(token)
        assert (result.fetchall(), result.estimates, sorted(error.row for error in result.errors)) == want
    paid = first.paid + second.paid
    assert len(paid) == len(set(paid)) == len(model.paid)


class Shaky(Counting):
    """Answers late, in any order. Some requests about several rows fail whole, some rows are left out of one, some have no answer alone."""

    def __init__(self, shares: tuple[int, int, int], stop_at: int = 0) -> None:
        super().__init__(stop_at)
        self.whole, self.left_out, self.alone = shares  # of 100 each

    async def _late(self, rows: tuple[Any, ...]) -> list[Any]:
        texts = [row.cells[0].value for row in rows]
        for text in texts:
            self.paid.append((len(texts), text))
            if self.stop_at == len(self.paid):
                self.con.interrupt()
        await asyncio.sleep(random.random() * 0.003)
        return texts

    async def answer_rows(self, request: RowsRequest) -> RowsReply:
        texts = await self._late(request.rows)
        if _hundredth("whole", *sorted(texts)) < self.whole:
            raise CallError("truncated", "it is cut")
        replies = [await HashModel.answer(self, part) for part in request.single_requests()]
        none = (Answer(problem=Problem("unreadable", "no answer")),)
        pairs = zip(texts, replies, strict=True)
        return RowsReply(
            tuple(none if _hundredth("left out", text) < self.left_out else reply.answers for text, reply in pairs)
        )

    async def answer(self, request: Request) -> Reply:
        if request.row.cells:
            (text,) = await self._late((request.row,))
            if _hundredth("alone", text) < self.alone:
                raise CallError("truncated", "it is cut")
        return await HashModel.answer(self, request)


def _hundredth(*what: str) -> int:
    return zlib.crc32(repr(what).encode()) % 100


SHAKY = (
    'COUNT(*) AS n FROM t WHERE "it is so"',
    'id FROM t WHERE "it is so"',
    'id, "the name" AS name FROM t LIMIT 20',
)


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 200))])
def test_a_run_that_is_broken_off_anywhere_asks_the_rows_of_an_unbroken_one_as_often(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    rows, together, budget = (
        rng.randint(60, 200),
        rng.choice([1, 2, 3, 4, 8]),
        rng.choice(["'all'", rng.randint(20, 150)]),
    )
    shares = rng.choice([0, 30]), rng.choice([0, 25]), rng.choice([10, 40])
    statement = f"SELECT {rng.choice(SHAKY)} WITH (rows_per_request = {together}, budget = {budget})"

    def sitting(folder: Path, stop_at: int, token: str) -> tuple[Shaky, Any]:
        folder.mkdir(exist_ok=True)
        model = Shaky(shares, stop_at)
        with connect(folder, model, rows=rows) as con:
            result = con.resume(token) if token else con.uql(statement)
            found = sorted(result.fetchall()), result.estimates, sorted(error.row for error in result.errors)
            return model, (found, result.run_id)

    unbroken, (want, _) = sitting(tmp_path / "whole", 0, "")
    first, (_, token) = sitting(tmp_path / "broken", rng.randint(1, len(unbroken.paid) - 1), "")
    second, (got, _) = sitting(tmp_path / "broken", 0, token)
    assert got == want
    assert sorted(first.paid + second.paid) == sorted(unbroken.paid)


@pytest.mark.parametrize("packed", [1, 4])
def test_a_run_that_ended_goes_on_with_a_larger_budget_and_pays_no_more_than_that_altogether(
    tmp_path: Path, packed: int
) -> None:
    model = Packed()
    with connect(tmp_path, model, rows=150) as con:
        token = con.uql(f"{COUNT} WITH (budget = 33, rows_per_request = {packed})").run_id
        first = len(model.paid)
        assert 30 <= first <= 33
        assert con.resume(token, budget=40).estimates["n"].calls > first - 10
        assert first < len(model.paid) <= 40
        con.sql("UPDATE t SET text = text || '!' WHERE id = 5")
        before = len(model.paid)
        with pytest.raises(DataError, match="UQL413"):
            con.resume(token, budget=60).fetchall()
        assert len(model.paid) == before


def test_a_run_that_is_interrupted_before_its_groups_have_names_says_so_and_goes_on(tmp_path: Path) -> None:
    want, _ = whole(tmp_path / "whole", GROUPS)
    with (
        connect(tmp_path, Counting(1)) as con,
        pytest.raises(ModelReplyError, match="the run was interrupted") as raised,
    ):
        con.uql(GROUPS).fetchall()
    assert "con.resume()" in str(raised.value)
    with connect(tmp_path, Counting()) as con:
        ((token,),) = con.uql("SELECT run FROM uql_runs()").fetchall()
        assert con.resume(token).estimates == want


def test_retry_failed_asks_the_failed_rows_alone(tmp_path: Path) -> None:
    model = Failing()
    with connect(tmp_path, model, rows=20) as con:
        result = con.uql('SELECT id, "the name" AS name FROM t')
        assert sorted(e.row for e in result.errors) == [3, 7]
        before = len(model.paid)
        again = result.retry_failed()
        assert len(again.errors) == 2 and len(model.paid) == before + 2
        model.bad = frozenset()
        fixed = again.retry_failed()
        assert not fixed.errors and all(row[1] is not None for row in fixed.fetchall())
        assert len(model.paid) == before + 4 and fixed.retry_failed() is fixed
        failed = con.uql("SELECT run, error FROM uql_errors()").fetchall()
        assert len(failed) == 4 and {row[1] for row in failed} == {"refusal"}
        assert {row[0] for row in failed} == {result.run_id}


def test_a_ledger_in_memory_keeps_what_a_retry_goes_on_from(tmp_path: Path) -> None:
    model = Failing()
    with uql.connect(model=model, ledger=":memory:") as con:
        con.sql("CREATE TABLE t AS SELECT 'the text of row 3 as it stands' AS text")
        result = con.uql(COUNT)
        assert result.errors
        model.bad = frozenset()
        assert not result.retry_failed().errors


def test_ctrl_c_in_a_thread_of_an_event_loop_cancels_and_keeps_what_was_paid(tmp_path: Path) -> None:
    model = Counting(30)
    with connect(tmp_path, model) as con:
        thread = threading.Thread(target=lambda: con.uql(COUNT).fetchall())
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
        assert con.uql("SELECT status FROM uql_runs()").fetchall() == [("interrupted",)]


# ------------------------------------------------------------------------------------------------------------- kill −9
KILLED = r"""
import json, os, random, signal, sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import duckdb, pyarrow, numpy, sklearn.decomposition, sklearn.linear_model, uql, uql.engine.execute, uql.sampling.methods
from uql.features.static import static_embedder
static_embedder()  # once for all sittings, which are forked
from hash_model import HashModel
from uql.llm.providers.base import Limits
folder, times, calls, rows = Path(sys.argv[2]), *map(int, sys.argv[3:])
QUERY = f'SELECT COUNT(*) AS n FROM t WHERE "it is so" WITH (budget = {calls})'

class Paid(HashModel):
    limits = Limits(concurrency=16)
    def __init__(self, bill, stop_at=0, after_s=0.0):
        super().__init__({"it is so": 0.3})
        self.bill, self.stop_at, self.after_s = os.open(bill, os.O_WRONLY | os.O_APPEND | os.O_CREAT), stop_at, after_s
    async def answer(self, request):
        os.write(self.bill, (str(request.row.cells[0].value if request.row.cells else "examples") + "\n").encode())
        reply = await super().answer(request)
        if self.calls == self.stop_at:
            threading.Timer(self.after_s, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return reply

def sitting(name, model, resume):
    with uql.connect(folder / "t.duckdb", model=model, ledger=str(folder / f"{name}.sqlite")) as con:
        con.sql("CREATE TABLE IF NOT EXISTS t AS SELECT 'text of number ' || range || ' as it stands here' AS text FROM range(" + str(rows) + ")")
        if resume:
            found = con.uql("SELECT run FROM uql_runs()").fetchall()
            result = con.resume(found[0][0]) if found else con.uql(QUERY)
        else:
            result = con.uql(QUERY)
        n = result.estimates["n"]
        return [n.value, n.low, n.high, n.calls]

def forked(work):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.write(write, json.dumps(work()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return said, os.WIFSIGNALED(status)

rng = random.Random(5)
whole, _ = forked(lambda: sitting("whole", Paid(folder / "whole.bill"), False))
billed = len((folder / "whole.bill").read_text().split("\n")) - 1
found = []
for n in range(times):
    bill = folder / f"{n}.bill"
    _, killed = forked(lambda: sitting(n, Paid(bill, rng.randint(1, billed - 1), rng.random() * 0.005), False))
    said, _ = forked(lambda: sitting(n, Paid(bill), True))
    lines = bill.read_text().splitlines()
    found.append({"killed": killed, "same": said == whole, "twice": len(lines) - len(set(lines)), "paid": len(set(lines))})
print(json.dumps({"billed": billed, "runs": found}))
"""


def killed(folder: Path, times: int, calls: int, rows: int) -> dict[str, Any]:
    command = [
        sys.executable,
        "-c",
        KILLED,
        str(Path(__file__).parents[1]),
        str(folder),
        str(times),
        str(calls),
        str(rows),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def judge(found: dict[str, Any], calls: int, least: int) -> None:
    assert calls * 0.9 <= found["billed"] <= calls
    assert sum(run["killed"] for run in found["runs"]) >= least
    for run in found["runs"]:
        assert run["twice"] <= 16, "at most the calls in flight are paid for twice"
        assert run["same"] and run["paid"] == found["billed"], "the sample is the one that an unbroken run draws"


@pytest.mark.thorough
def test_a_query_killed_while_it_samples_goes_on_with_the_same_sample(tmp_path: Path) -> None:
    judge(killed(tmp_path, 2, 100, 500), 100, 1)


@pytest.mark.slow
def test_a_query_of_1000_calls_killed_at_20_random_points_pays_at_most_its_calls_in_flight_twice(
    tmp_path: Path,
) -> None:
    judge(killed(tmp_path, 20, 1000, 4000), 1000, 15)
