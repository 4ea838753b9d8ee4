"""Messages of shards that are damaged or forged, shards that never answer, and a Ray that does not start: each ends as an error of UQL."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_lake import ROWS, opened

import uql
from uql.base.errors import ConfigError, DataError
from uql.cluster import ray_actors
from uql.cluster.messages import pack, unpack
from uql.cluster.shard import Shard
from uql.session import copy_by_shards

pa = pytest.importorskip("pyarrow")
COUNT = 'SELECT COUNT(*) AS n FROM reviews WHERE "the review is positive"'
EVERY = 'SELECT id FROM reviews WHERE "the review is positive" AND id < 90'
FIRST = 'SELECT id, "the topic" FROM reviews ORDER BY stars DESC, id LIMIT 4'
NEAREST = 'SELECT id FROM reviews WHERE "the review is positive" LIMIT 3'


@pytest.fixture(scope="module")
def shards(lake: Path) -> Iterator[uql.Connection]:
    """Two shards: what one of them forged leaves nothing behind, and is refused again."""
    with opened(lake, "process", 2) as con:
        yield con


def ends_as_an_error(shards: uql.Connection, query: str) -> None:
    """The statement fails before a call, with an error that says what to do."""
    with pytest.raises(DataError) as raised:
        shards.uql(query).run()
    assert raised.value.code == "UQL503" and raised.value.help
    assert shards.uql("SELECT * FROM uql_calls()").fetchall() == []


@pytest.mark.parametrize("forged", [-1, ROWS + 1, 10**30, True, "7", None, 2.5, math.nan, b"\x07", [7]])
def test_a_count_that_is_none_is_refused(shards: uql.Connection, monkeypatch: pytest.MonkeyPatch, forged: Any) -> None:
    monkeypatch.setattr(Shard, "count", lambda self, sql: forged)
    ends_as_an_error(shards, COUNT)


def repacked(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A forger, who gives the rows that he makes of the true ones a checksum that fits."""
    return lambda answer: pack(change(unpack(answer)[0]))


def numbered(change: Callable[[int], int | None]) -> Callable[[Any], Any]:
    def changed(rows: Any) -> Any:
        numbers = pa.array([change(number) for number in rows.column("__row").to_pylist()], pa.int64())
        return rows.set_column(rows.num_columns - 1, "__row", numbers)

    return repacked(changed)


FORGED: dict[str, Callable[[Any], Any]] = {
    "no message": lambda answer: None,
    "a text": lambda answer: "rows",
    "no rows left beside it": lambda answer: answer[0],
    "a bit of another value": lambda answer: (answer[0][:-40] + bytes([answer[0][-40] ^ 4]) + answer[0][-39:], answer[1]),
    "cut off": lambda answer: (answer[0][:-200], answer[1]),
    "empty": lambda answer: (b"", 0),
    "less than none left": lambda answer: (answer[0], -1),
    "more left than there are rows": lambda answer: (answer[0], 10**9),
    "no end": lambda answer: (pack(unpack(answer)[0].slice(0, 0))[0], 1),
    "rows of another shard": numbered(lambda number: number + ROWS),
    "negative numbers": numbered(lambda number: -1 - number),
    "one number for all": numbered(lambda number: 0),
    "numbers that are missing": numbered(lambda number: None),
    "numbers that are texts": repacked(lambda rows: rows.set_column(rows.num_columns - 1, "__row", pa.array(["0"] * len(rows)))),
    "no numbers": repacked(lambda rows: rows.drop_columns("__row")),
    "a row less": repacked(lambda rows: rows.slice(1)),
    "each row twice": repacked(lambda rows: pa.concat_tables([rows, rows])),
    "a column less": repacked(lambda rows: rows.drop_columns(rows.column_names[0])),
    "a column of another type": repacked(
        lambda rows: rows.set_column(0, rows.column_names[0], pa.array([[{"a": 1}]] * len(rows)))
    ),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("query", [EVERY, FIRST])
@pytest.mark.parametrize("forged", FORGED)
def test_rows_that_a_shard_cannot_have_are_refused(
    shards: uql.Connection, monkeypatch: pytest.MonkeyPatch, forged: str, query: str
) -> None:
    true = Shard.rows
    monkeypatch.setattr(Shard, "rows", lambda self, *asked: FORGED[forged](true(self, *asked)))
    ends_as_an_error(shards, query)


def test_rows_that_were_not_drawn_are_refused(shards: uql.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    true = Shard.rows

    def first_ones(self: Shard, *asked: Any) -> Any:
        rows, left = unpack(true(self, *asked))
        numbers = pa.array(range(asked[1], asked[1] + len(rows)), pa.int64())
        return pack(rows.set_column(rows.num_columns - 1, "__row", numbers))[0], left

    monkeypatch.setattr(Shard, "rows", first_ones)
    ends_as_an_error(shards, COUNT)


def test_a_message_with_a_byte_of_another_value_is_never_read_as_rows() -> None:
    draw = random.Random(1)
    true, left = pack(pa.table({"price": [1.5, 2.5] * 40, "__row": list(range(80))}))
    for _ in range(400):
        place = draw.randrange(len(true))
        damaged = true[:place] + bytes([true[place] ^ draw.randint(1, 255)]) + true[place + 1 :]
        with pytest.raises(DataError, match="checksum"):
            unpack((damaged, left))


@pytest.mark.parametrize(
    "forged", [b"\0\0\xc0\x7f" * 5, b"\0\0\0\x41" * 5, b"\0" * 7, b"\0" * 40_000, None, [0.5]]
)  # fmt: skip
def test_scores_that_are_no_cosines_are_refused(
    shards: uql.Connection, monkeypatch: pytest.MonkeyPatch, forged: Any
) -> None:
    monkeypatch.setattr(Shard, "best", lambda self, *asked: forged)
    ends_as_an_error(shards, NEAREST)


FALSE: dict[str, dict[str, Any]] = {
    "a file elsewhere": {"file": "../taken"},
    "a file that is not there": {"file": f".data_{'0' * 16}"},
    "more rows than the file has": {"rows": 10**6},
    "fewer rows than it was asked about": {"candidates": 3},
}


@pytest.mark.parametrize("false", FALSE)
def test_a_shard_that_says_something_false_of_its_file_ends_the_copy(
    lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, false: str
) -> None:
    true = copy_by_shards.write_share

    async def written(*given: Any) -> Any:
        return replace(await true(*given), **FALSE[false])

    monkeypatch.setattr(copy_by_shards, "write_share", written)
    (tmp_path / "taken").write_text("mine")
    with opened(lake, "process", 2) as con:
        with pytest.raises(DataError) as raised:
            con.uql(f"COPY ({EVERY} WITH (budget = 'all')) TO '{tmp_path}/out' (FORMAT parquet)").run()
        assert raised.value.code == "UQL503"
    assert (tmp_path / "taken").read_text() == "mine" and not list((tmp_path / "out").glob("*.parquet"))


# ------------------------------------------------------------------------------------------------------------- Ray
@pytest.mark.parametrize(
    "address", ["127.0.0.1:1", "ray://127.0.0.1:1", "[::1]:1", "nobody.invalid:6379", "foo", "host:99999"]
)
def test_an_address_at_which_there_is_no_ray_is_said_at_once(lake: Path, address: str) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'uql-engine[cluster]'")
    if ray.is_initialized():
        pytest.skip("this process is in a cluster")
    with pytest.raises(ConfigError, match="no Ray cluster") as raised:
        uql.connect(lake, cluster=address, ledger=":memory:")
    assert raised.value.code == "UQL105" and "ray start" in str(raised.value.help)


def test_a_ray_that_does_not_start_is_an_error_in_words(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'uql-engine[cluster]'")

    def init(**given: Any) -> None:
        raise Exception("The current node timed out during startup.\nMore of it")

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ConfigError, match=r"at local: The current node timed out during startup\.\n") as raised:
        uql.connect(lake, cluster="local", ledger=":memory:")
    assert raised.value.code == "UQL105"


def hostile(what: str) -> type[Shard]:
    """A shard whose count fails, stops or ends its process. Of a class within a function, which Ray sends to the workers as it is."""

    class Own(Exception):
        def __str__(self) -> str:
            return ""

    class Hostile(Shard):
        def count(self, sql: str) -> int:
            import os
            import signal

            if what == "raises":
                raise Own
            if what == "lies":
                return -1
            os.kill(os.getpid(), signal.SIGSTOP if what == "stops" else signal.SIGKILL)
            return 0

    return Hostile


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("raises", "a shard failed: Own: Own"),
        ("lies", "a count of -1"),
        ("stops", "no sign of life for 2 s"),
        ("ends", "lost a shard and could not start it again"),
    ],
)
def test_a_shard_of_ray_that_fails_stops_or_ends_each_time_ends_the_statement(
    lake: Path, nodes: Any, monkeypatch: pytest.MonkeyPatch, what: str, said: str
) -> None:
    monkeypatch.setattr(ray_actors, "Shard", hostile(what))
    monkeypatch.setattr(ray_actors, "RESTARTS", 1)
    with opened(lake, nodes.address, 1) as con:
        con.session.cluster.usage()  # it is there
        monkeypatch.setattr(ray_actors, "LOOK_S", 0.2)
        monkeypatch.setattr(ray_actors, "SILENT_S", 2.0 if what == "stops" else 60.0)
        with pytest.raises(DataError, match=said) as raised:
            con.uql(COUNT).run()
        assert raised.value.code == "UQL503" and raised.value.help


def test_shards_of_which_messages_were_refused_answer_on(shards: uql.Connection) -> None:
    assert shards.uql(COUNT).fetchall()[0][0] > 0
