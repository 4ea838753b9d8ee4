"""Passes of the garbage collector are few while a statement runs, and as they were before and after it."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import duckdb
import pytest
from hash_model import HashModel

import uql
from uql.base.process_wide import THRESHOLDS, rare_collections

USUAL = (700, 10, 10)


@pytest.fixture(autouse=True)
def usual_thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)


@pytest.mark.thorough
def test_while_a_model_is_asked_the_thresholds_are_high_and_restored_after() -> None:
    seen = []

    class Model(HashModel):
        async def answer(self, request):
            seen.append(gc.get_threshold())
            return await super().answer(request)

    with duckdb.connect() as duck:
        duck.execute("CREATE TABLE t AS SELECT 'text ' || range AS text FROM range(3)")
        con = uql.attach(duck, model=Model(), ledger=":memory:")
        con.uql('SELECT * FROM t WHERE "it is so"').fetchall()
    assert seen == [THRESHOLDS] * 3 and gc.get_threshold() == USUAL


def test_the_last_of_several_threads_restores_the_thresholds() -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with rare_collections():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with rare_collections():
        thread.start()
        assert inside.wait(10)
    assert gc.get_threshold() == THRESHOLDS
    leave.set()
    thread.join()
    assert gc.get_threshold() == USUAL


@pytest.mark.parametrize("own", [(0, 10, 10), (500_000, 5, 5)], ids=["off", "higher"])
def test_a_program_that_set_its_own_thresholds_keeps_them(own: tuple[int, int, int]) -> None:
    gc.set_threshold(*own)
    with rare_collections():
        assert gc.get_threshold() == own
    assert gc.get_threshold() == own


def test_thresholds_that_are_set_inside_stay() -> None:
    with rare_collections():
        gc.set_threshold(1000, 10, 10)
    assert gc.get_threshold() == (1000, 10, 10)
