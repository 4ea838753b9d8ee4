"""The ledger: what it keeps, how it forgets, and that two processes may use one."""

from __future__ import annotations

import asyncio
import math
import os
import sqlite3
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from uql.base.errors import ConfigError, DataError
from uql.llm import codec, ledger as ledger_module
from uql.llm.events import Event
from uql.llm.ledger import Ledger
from uql.llm.ledger_rows import Entry, Origin
from uql.llm.providers.base import Answer


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, 2.5, float("inf"), "täxt", date(2026, 1, 2), datetime(2026, 1, 2, 3, 4),
        timedelta(days=2, seconds=3), Decimal("1.20"),
        ["a", None], {"a": {"b": [1, Decimal("2")]}}, {"$date": "no date"}, b"\x00\xff", 2**70,
    ],
)  # fmt: skip
def test_an_answer_comes_back_as_it_was(value: object) -> None:
    back = codec.loads(codec.dumps(Answer(value, 0.25, (0.75, 0.25))))
    assert back == Answer(value, 0.25, (0.75, 0.25)) and type(back.value) is type(value)
    assert codec.loads(codec.dumps(Answer(value))).distribution is None
    whole = Answer(value, 0.25, (0.75, 0.25), paid=(50, 1, 0.01))
    for answer in (whole, replace(whole, distribution=None, paid=(50, 1, None))):
        kept = codec.loads(*codec.to_row(answer))
        assert (kept, kept.paid) == (answer, answer.paid) and type(kept.value) is type(value)


def test_the_file_is_private_and_holds_no_row_text(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "ledger.sqlite"
    with Ledger(path) as ledger:
        key = ledger.key(b"question", b"a very secret text of a row")
        asyncio.run(ledger.put([Entry(key, Answer("short"), "m", "t")]))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert asyncio.run(ledger.get([key]))[key].value == "short"
    held = b"".join(p.read_bytes() for p in path.parent.iterdir())
    assert b"very secret" not in held
    with Ledger(tmp_path / "other.sqlite") as other:
        assert other.key(b"question", b"a very secret text of a row") != key, "keys are made with a secret of the file"


def test_writes_of_one_moment_share_a_transaction_and_one_alone_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []
    keep = ledger_module._keep
    monkeypatch.setattr(ledger_module, "_keep", lambda writes, db: (kept.append(len(writes)), keep(writes, db))[1])
    monkeypatch.setattr(ledger_module, "PAUSE_S", 0.2)

    async def go(ledger: Ledger) -> float:
        began = time.monotonic()
        await ledger.put([Entry(b"first", Answer(True), "m")])
        alone_s = time.monotonic() - began

        async def later(n: int) -> None:
            await asyncio.sleep(0.001 * n)
            await ledger.put([Entry(b"key %d" % n, Answer(True), "m")])

        await asyncio.gather(*map(later, range(8)))
        return alone_s

    with Ledger(tmp_path / "l.sqlite") as ledger:
        assert asyncio.run(go(ledger)) < 0.15 and kept == [1, 8]


def test_a_write_that_an_ended_loop_left_behind_is_kept_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "PAUSE_S", 0.2)

    async def leave(ledger: Ledger) -> None:
        await ledger.put([Entry(b"first", Answer(True), "m")])
        task = asyncio.create_task(ledger.put([Entry(b"left", Answer(True), "m")]))
        await asyncio.sleep(0)
        task.cancel()

    async def go(ledger: Ledger) -> dict[bytes, Answer]:
        await asyncio.wait_for(ledger.put([Entry(b"next", Answer(True), "m")]), 20)
        return await ledger.get([b"first", b"left", b"next"])

    with Ledger(tmp_path / "l.sqlite") as ledger:
        asyncio.run(leave(ledger))
        assert len(asyncio.run(go(ledger))) == 3


FILES = ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm")


def modes(folder: Path) -> list[int]:
    return [stat.S_IMODE(path.stat().st_mode) for path in (folder, *(folder / name for name in FILES))]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_folder_and_files_of_the_ledger_are_private_whatever_the_umask_says(
    tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UQL_HOME", str(tmp_path / "home"))
    before = os.umask(umask)
    try:
        with Ledger() as ledger:
            asyncio.run(ledger.put([Entry(ledger.key(b"question", b"row"), Answer("short"), "m", "t")]))
            assert modes(tmp_path / "home") == [0o700, 0o600, 0o600, 0o600]
    finally:
        os.umask(before)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_they_are_made_private_where_they_are_there_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("UQL_HOME", str(home))
    with Ledger() as first:
        asyncio.run(first.put([Entry(first.key(b"question", b"row"), Answer("short"), "m", "t")]))
        home.chmod(0o777)
        for name in FILES:
            (home / name).chmod(0o666)
        with Ledger():
            assert modes(home) == [0o700, 0o600, 0o600, 0o600]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_a_folder_of_the_users_choice_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o775)
    with Ledger(folder / "ledger.sqlite") as ledger:
        asyncio.run(ledger.put([Entry(ledger.key(b"question", b"row"), Answer("short"), "m", "t")]))
        assert modes(folder) == [0o775, 0o600, 0o600, 0o600]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
@pytest.mark.parametrize("kind", ["text", "pipe", "link"])
def test_what_is_no_ledger_keeps_its_mode(kind: str, tmp_path: Path) -> None:
    """A link to a device, opened by root, took the device from everybody else."""
    held, path = tmp_path / "held", tmp_path / "ledger.sqlite"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        held.write_text("notes " * 100)
        path.symlink_to(held) if kind == "link" else held.rename(path)
    path.chmod(0o664)
    with pytest.raises(ConfigError, match="UQL410"):
        Ledger(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o664


def test_a_question_is_new_until_it_is_noted(place: str) -> None:
    with Ledger(place) as ledger:
        assert not asyncio.run(ledger.ever_asked([b"one", b"two"]))
        asyncio.run(ledger.note([b"one"]))
        asyncio.run(ledger.put([Entry(ledger.key(b"one", b"row"), Answer(1), "m")]))
        assert asyncio.run(ledger.ever_asked([b"two", b"one"])) and not asyncio.run(ledger.ever_asked([b"two"]))
        ledger.clear()
        assert not asyncio.run(ledger.ever_asked([b"one"]))


def test_memory_keeps_nothing(tmp_path: Path) -> None:
    with Ledger(":memory:") as one:
        asyncio.run(one.put([Entry(b"k", Answer(1), "m")]))
    with Ledger(":memory:") as two:
        assert asyncio.run(two.get([b"k"])) == {}


def test_prune_forgets_a_table_a_model_or_the_oldest(place: str) -> None:
    with Ledger(place) as ledger:
        entries = [Entry(bytes([n]), Answer("x" * 100), f"m{n % 2}", f"t{n % 5}") for n in range(100)]
        asyncio.run(ledger.put(entries))
        assert ledger.stats().answers == 100 and dict(ledger.stats().models) == {"m0": 50, "m1": 50}
        assert ledger.prune(source="t1") == 20 and ledger.prune(model="m0", source="t2") == 10 and ledger.prune() == 0
        assert ledger.prune(older_than_s=3600) == 0 and ledger.prune(older_than_s=-1) == 70


def test_the_size_cap_drops_the_oldest_answers(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"

    async def fill(ledger: Ledger) -> None:
        for n in range(20):
            await ledger.put([Entry(f"{n}-{i}".encode(), Answer("x" * 1000), "m") for i in range(50)])

    with Ledger(path, max_bytes=400_000) as ledger:
        asyncio.run(fill(ledger))
    assert path.stat().st_size <= 450_000
    with Ledger(path) as ledger:
        assert asyncio.run(ledger.get([b"19-0"])) and not asyncio.run(ledger.get([b"0-0"]))


def test_draws_are_replayed_in_order(place: str) -> None:
    with Ledger(place) as ledger:
        ledger.log_draw("r", "count", [5, 1, 2**40])
        ledger.log_draw("r", "count", [7])
        ledger.log_draw("r", "other", [])
        assert (
            ledger.draws("r", "count") == [[5, 1, 2**40], [7]]
            and ledger.draws("r", "other") == [[]]
            and ledger.draws("q", "count") == []
        )


def test_runs_are_listed_with_their_state(place: str) -> None:
    with Ledger(place) as ledger:
        ledger.start_run("a", statement="SELECT 1", model="m", seed=3)
        ledger.finish_run("a", "done")
        ledger.start_run("a", statement="SELECT 1", model="m", seed=3)
        (run,) = ledger.runs()
        assert run["status"] == "running" and run["calls"] == 0 and run["seed"] == 3


WRITER = """
import asyncio, sys
from uql.llm.ledger import Ledger
from uql.llm.ledger_rows import Entry, Origin
from uql.llm.providers.base import Answer
async def main():
    with Ledger(sys.argv[1]) as ledger:
        for n in range(300):
            await ledger.put([Entry(f"{sys.argv[2]}-{n}".encode(), Answer(n), "m")])
asyncio.run(main())
"""


@pytest.mark.thorough
def test_two_processes_use_one_ledger_at_once(place: str) -> None:
    both = [subprocess.Popen([sys.executable, "-c", WRITER, place, name]) for name in "ab"]
    assert [p.wait(60) for p in both] == [0, 0]
    with Ledger(place) as ledger:
        assert ledger.stats().answers == 600


def test_a_file_that_is_no_ledger_and_a_folder_that_cannot_be_written_are_clear_errors(tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("this is not a database, but long enough to look like one" * 100)
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "text.sqlite", tmp_path / "file" / "l.sqlite", tmp_path):
        with pytest.raises(ConfigError, match="ledger"):
            Ledger(path)


def test_a_closed_ledger_says_so(place: str) -> None:
    ledger = Ledger(place)
    ledger.close()
    ledger.close()
    with pytest.raises(DataError, match="closed"):
        ledger.stats()


def test_the_default_lies_in_uql_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UQL_HOME", str(tmp_path))
    with Ledger() as ledger:
        assert ledger.path == str(tmp_path / "ledger.sqlite")


def test_threads_that_write_statistics_do_not_disturb_each_other(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger, ThreadPoolExecutor(8) as threads:

        def keep(number: int) -> None:
            for n in range(300):
                ledger.keep_statistics(f"scope {number}", {"n": n})

        list(threads.map(keep, range(8)))
        assert [ledger.statistics(f"scope {number}") for number in range(8)] == [{"n": 299}] * 8


def test_a_second_ledger_of_one_process_leaves_the_locks_of_the_first(tmp_path):
    path = tmp_path / "l.sqlite"
    look = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM runs').fetchone()[0])"
    with Ledger(path) as one:
        for n in range(3):
            Ledger(path).close()
            one.start_run(str(n), statement="", model="m", seed=0)
            seen = subprocess.run([sys.executable, "-c", look, str(path)], capture_output=True, text=True, timeout=60)
            assert seen.stdout == f"{n + 1}\n", "another process that closes the file last would take its log away"


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\xff{",
        b"{",
        b"[]",
        b"-3",
        b'{"d":[]}',
        b'{"v":{"$date":1}}',
        b'{"v":1,"p":"x"}',
        b"[" * 100_000,
        b'{"v":1,"c":[1]}',
    ],
)
def test_a_damaged_answer_is_set_aside_counted_and_asked_again(tmp_path: Path, damage: bytes) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        asyncio.run(ledger.put([Entry(b"a", Answer("kept"), "m"), Entry(b"b", Answer("lost"), "m")]))
        ledger.work(
            lambda db: db.execute("UPDATE answer_rows SET answer = CAST(? AS TEXT) WHERE key = ?", (damage, b"b"))
        )
        assert ledger.answers([b"a", b"b"]).keys() == {b"a"} and ledger.damaged == {b"b"}
        asyncio.run(ledger.put([Entry(b"b", Answer("again"), "m")]))
        assert ledger.answers([b"b"])[b"b"].value == "again"


def test_an_answer_takes_at_most_120_bytes(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        n = 20_000
        paid = (120, 1, 0.000_003_4)
        entries = [
            Entry(ledger.key(b"question", b"%d" % i), Answer(i % 3 > 0, math.sin(i) ** 2, paid=paid), "m", "t", "run")
            for i in range(n)
        ]
        calls = [
            Event("call", "run", i / 7, "m", "Predicate", "it is so", *paid[:2], 1, paid[2], i / 9) for i in range(n)
        ]
        asyncio.run(ledger.put(entries, calls))
        assert ledger.stats().bytes / n <= 120


def test_every_flip_of_a_bit_of_an_answer_is_an_answer_or_a_value_error() -> None:
    whole = codec.dumps(Answer([date(2026, 1, 2), Decimal("1.5"), b"x", {"a": None}], 0.25, (0.75, 0.25))).encode()
    for at in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[at // 8] ^= 1 << at % 8
        found, damaged = codec.readable([(b"k", bytes(flipped))])
        assert len(found) + len(damaged) == 1


FORMAT_2 = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE answers (
    key BLOB PRIMARY KEY, answer TEXT NOT NULL, model TEXT NOT NULL, source TEXT NOT NULL, at REAL NOT NULL,
    run TEXT NOT NULL DEFAULT '', calls INTEGER NOT NULL DEFAULT 1
) WITHOUT ROWID;
CREATE TABLE runs (
    run TEXT PRIMARY KEY, started REAL NOT NULL, finished REAL, statement TEXT NOT NULL, model TEXT NOT NULL,
    seed INTEGER NOT NULL, status TEXT NOT NULL, details TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE TABLE calls (
    run TEXT NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, model TEXT NOT NULL, question TEXT NOT NULL, text TEXT NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, requests INTEGER NOT NULL, usd REAL, seconds REAL NOT NULL,
    error TEXT NOT NULL, message TEXT NOT NULL, attempt INTEGER NOT NULL, source TEXT NOT NULL DEFAULT ''
);
CREATE INDEX calls_run ON calls (run);
INSERT INTO meta VALUES ('format', 2), ('secret', x'00');
INSERT INTO runs VALUES ('r', 1, 2, 'SELECT 1', 'm', 0, 'done', ''), ('q', 3, 4, 'SELECT 2', 'm', 0, 'done', '');
INSERT INTO answers VALUES (x'01', '{"v":true}', 'm', 't', 1.5, 'r', 1), (x'02', '{"v":false}', 'm', 'u', 1.6, 'r', 3),
    (x'03', '{"v":1}', 'n', 't', 3.5, 'q', 1);
INSERT INTO calls VALUES ('r', 1.5, 'call', 'm', 'Predicate', 'it is so', 50, 1, 1, 0.01, 0.5, '', '', 1, 't'),
    ('r', 1.6, 'call', 'm', 'Predicate', 'it is so', 60, 0, 1, 0.02, 0.5, 'server', '503', 1, 'u'),
    ('r', 1.7, 'failed', 'm', 'Predicate', 'it is so', 0, 0, 0, NULL, 0, 'server', '503', 3, 'u'),
    ('q', 3.5, 'cached', 'm', 'Predicate', 'it is so', 0, 0, 0, NULL, 0, '', '', 1, 't');
"""


def test_a_file_of_the_format_before_keeps_its_answers_runs_and_calls(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(FORMAT_2)
    for _ in range(2):  # it is in the new format then
        with Ledger(path) as ledger:
            held = ledger.answers([b"\x01", b"\x02", b"\x03"])
            assert [held[k].value for k in (b"\x01", b"\x02", b"\x03")] == [True, False, 1]
            origins = asyncio.run(ledger.origins([b"\x02"]))
            assert origins == {b"\x02": Origin("r", 3, 1.6)}
            newest, oldest = ledger.runs()
            assert (newest["run"], newest["cached"], newest["calls"], newest["usd"]) == ("q", 1, 0, None)
            assert (oldest["run"], oldest["calls"], oldest["failed"], oldest["input_tokens"]) == ("r", 2, 1, 110)
            assert oldest["usd"] == pytest.approx(0.03) and ledger.stored("r").tokens == 111
            assert [(c["kind"], c["source"], c["rows"]) for c in ledger.calls("r")] == [
                ("call", "t", 1),
                ("call", "u", 1),
                ("failed", "u", 1),
            ]
            assert [e["message"] for e in ledger.errors()] == ["503"] and len(ledger.calls()) == 4
            assert ledger.stats().models == (("m", 2), ("n", 1)) and ledger.stats().sources == (("t", 2), ("u", 1))
            assert asyncio.run(ledger.ever_asked([b"any"])), "the file does not list its questions: perhaps"
    with Ledger(path) as ledger:
        assert ledger.prune(source="u") == 1 and ledger.answers([b"\x01", b"\x02"]).keys() == {b"\x01"}
        assert ledger.errors()[0]["message"] == "", "what a reply said goes with the answers of its table"


def test_a_file_of_a_later_format_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    Ledger(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE meta SET value = 99 WHERE name = 'format'")
        db.commit()
    with pytest.raises(ConfigError, match="format 99, this version reads"):
        Ledger(path)


def test_the_size_cap_keeps_what_a_run_under_way_has_paid_for(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    with Ledger(path) as holder:
        holder.start_run("old", statement="", model="m", seed=0)
        holder.start_run("now", statement="", model="m", seed=0)
        holder.finish_run("old", "done")

        async def fill(ledger: Ledger) -> None:
            for run in ("now", "old"):  # that under way paid first
                await ledger.put([Entry(f"{run}-{i}".encode(), Answer("x" * 1000), "m", run=run) for i in range(300)])

        asyncio.run(fill(holder))
        assert holder.prune(max_bytes=400_000) == 300
        assert len(holder.answers([f"now-{i}".encode() for i in range(300)])) == 300
