"""Python that a model wrote: what it may do, and what stops it."""

from __future__ import annotations

import datetime
import time
from pathlib import Path

import pyarrow as pa
import pytest

from uql.base.errors import ConfigError, GuardError
from uql.nl.plan.nodes.python import check_python, run_python

GAMES = pa.table({"team": ["Heat", "Suns", "Heat"], "points": [101, 99, 88], "logo": [b"\x89PNG", b"", None]})
DAYS = pa.table({"day": [datetime.date(2026, 1, 2), None]})


def test_a_list_of_rows_is_a_table() -> None:
    output = run_python(
        "[{'team': r['team'], 'twice': 2 * r['points']} for r in games if r['points'] > 90]", {"games": GAMES}
    )
    assert output.table is not None
    assert output.table.to_pylist() == [{"team": "Heat", "twice": 202}, {"team": "Suns", "twice": 198}]
    assert output.value == output.table.to_pylist()


def test_anything_else_is_json() -> None:
    source = "from collections import Counter\nprint('counting')\ndict(Counter(r['team'] for r in games))"
    output = run_python(source, {"games": GAMES})
    assert (output.value, output.table, output.printed) == ({"Heat": 2, "Suns": 1}, None, "counting\n")


def test_the_json_of_an_earlier_node_is_an_input() -> None:
    assert run_python("means['Heat'] + len(games)", {"means": {"Heat": 94.5}, "games": GAMES}).value == 97.5


def test_dates_pass_and_columns_of_bytes_do_not() -> None:
    output = run_python("[{'day': r['day'], 'known': r['day'] is not None} for r in days]", {"days": DAYS})
    assert output.table is not None and output.table.column("day").type == pa.date32()
    assert output.value == [{"day": "2026-01-02", "known": True}, {"day": None, "known": False}]
    assert run_python("sorted(games[0])", {"games": GAMES}).value == ["points", "team"]


def test_rows_with_other_keys_give_null() -> None:
    output = run_python("[{'a': 1}, {'b': 'x'}]", {})
    assert output.table is not None
    assert output.table.to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": "x"}]


def test_numbers_that_are_none_become_null() -> None:
    assert run_python("[float('nan'), float('inf'), 0.5]", {}).value == [None, None, 0.5]


def test_the_same_source_gives_the_same_output() -> None:
    source = "import datetime\n[str(datetime.datetime.now())]"
    assert run_python(source, {}).value == run_python(source, {}).value == ["2000-01-01 00:00:00"]


STOPPED = {
    "x = 0\nwhile True:\n    x += 1\nx": "longer than",
    "while True:\n    try:\n        while True: pass\n    except BaseException: pass\n1": "longer than",
    "'a' * 4_000_000_000": "memory",
    "[0] * 4_000_000_000": "memory",
    "try:\n    x = [0] * 10**10\nexcept BaseException:\n    x = 1\nx": "memory",
    "held = []\nwhile True:\n    held.append('x' * 10_000)\nheld": "memory",
    "2 ** 10 ** 10": "memory",
    "def again():\n    return again()\nagain()": "deeper",
    "[[0] * 1_100] * 1_000": "values",
}


@pytest.mark.parametrize("source", STOPPED)
def test_a_limit_stops_it_and_says_so(source: str) -> None:
    limit_s = 0.5 if STOPPED[source] == "longer than" else 15.0  # on a busy machine the other limits are reached later
    began = time.monotonic()
    with pytest.raises(GuardError, match=STOPPED[source]) as told:
        run_python(source, {}, timeout_s=limit_s, memory_bytes=64 * 2**20)
    assert told.value.code == "UQL621" and "the Python was stopped" in str(told.value)
    assert time.monotonic() - began < limit_s + 15.0


REFUSED = {
    "": "empty",
    "x = ": "line 1",
    "x = 1": "not an expression",
    "import os\nos.getcwd()": "os cannot be imported",
    "import subprocess\nsubprocess.run(['ls'])": "subprocess cannot be imported",
    "from pathlib import Path\nPath('/etc/passwd').read_text()": "pathlib cannot be imported",
    "if True:\n    import socket\nsocket": "socket cannot be imported",
    "from . import secrets\nsecrets": "cannot be imported",
    "__import__('os').system('ls')": "__import__ is not allowed",
    "open('/etc/passwd').read()": "Permission",
    "eval('1 + 1')": "eval is not allowed",
    "exec('x = 1')": "exec is not allowed",
    "().__class__.__bases__[0].__subclasses__()": "Error",
    "games[0]['nothing']": "KeyError",
    "1 / 0": "line 1: ZeroDivisionError",
    "len": "is a ",
    "b'bytes'": "is a bytes",
    "2 ** 100": "64 bits",
    "[{'a': 1}, {'a': 'x'}]": "different types",
    "(" * 5_000 + ")" * 5_000: "parenthes",
    "1" * 30_000: "characters",
}


@pytest.mark.parametrize("source", REFUSED, ids=lambda source: source[:40])
def test_what_is_not_plain_python_over_the_tables_is_refused(source: str) -> None:
    with pytest.raises(GuardError, match=REFUSED[source]) as told:
        run_python(source, {"games": GAMES}, timeout_s=2.0)
    assert told.value.code == "UQL620" and "the Python is refused" in str(told.value)


def test_the_check_runs_nothing() -> None:
    assert check_python("while True: pass\ngames", ["games"])
    with pytest.raises(GuardError, match="not a valid Python name"):
        check_python("1", ["late games"])
    with pytest.raises(GuardError, match="not a valid Python name"):
        check_python("1", ["class"])


def test_a_table_of_too_many_rows_is_refused() -> None:
    with pytest.raises(GuardError, match="aggregate it first"):
        run_python("len(big)", {"big": pa.table({"n": range(100_001)})})


@pytest.mark.parametrize(
    "source",
    [
        "shops[0]['id']",
        "total = 0\nfor row in late:\n    total += row['n'] * rate\ntotal",
        "[missing(r) for r in late]",
    ],
)
def test_a_name_that_is_not_given_is_refused_before_anything_runs(source: str) -> None:
    with pytest.raises(GuardError, match="which is not defined") as error:
        check_python(source, ["late"])
    assert "its inputs: late" in str(error.value.help)


@pytest.mark.parametrize(
    "source",
    [
        "import math as m\nfrom collections import Counter\ndef f(a, *b, c=1, **d):\n    return m.pi + len(b) + c\nf(len(late))",
        "try:\n    x = 1 / 0\nexcept ZeroDivisionError as e:\n    x = str(e)\nx",
        "[(k, v) for k, v in sorted({r['n']: r for r in late}.items(), key=lambda kv: kv[0])]",
        "(y := len(late)) and y",
        "for i, row in enumerate(late):\n    pass\ni",
    ],
)
def test_names_that_the_source_gives_itself_are_no_fault(source: str) -> None:
    assert check_python(source, ["late"]) == source


@pytest.mark.parametrize("program", ["no/such/program", "a_folder"])
def test_an_interpreter_that_cannot_be_started_is_an_error_of_the_installation(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_folder").mkdir()
    monkeypatch.setenv("MONTY_BIN", str(tmp_path / program))
    with pytest.raises(ConfigError, match="program of pydantic-monty") as raised:
        run_python("1", {})
    assert raised.value.code == "UQL610" and "pip install" in str(raised.value.help)
