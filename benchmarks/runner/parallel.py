"""Runs of one suite in several processes. Tasks of one group stay in one process, which holds their files."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.queues import Queue

from uql.base.errors import BackendError, UQLError
from uql.benchmarks.runner.purse import PURSE
from uql.benchmarks.runner.records import Record
from uql.benchmarks.runner.run import one_by_one, tasks_of
from uql.benchmarks.runner.suite import Choice, Suite, Task
from uql.benchmarks.runner.suites import find

LOOK_S = 5.0  # how often it is looked whether the processes are alive
Place = tuple[int, int]  # of a task in the list of its suite, and a seed


@dataclass(frozen=True, slots=True)
class Ended:
    """What a process says last: nothing, or the error that ended it."""

    problem: str = ""


@dataclass(frozen=True, slots=True)
class Processes:
    """Work for `execute`.

    Args:
        tasks: all of the suite, as `tasks_of` gives them for the choice; each process makes them anew.
    Raises: BackendError (UQL405) where a process ends before its runs are done.
    """

    count: int
    choice: Choice
    offline: bool
    tasks: Sequence[Task]

    def __call__(self, suite: Suite, left: Sequence[tuple[Task, int]]) -> Iterator[Record]:
        parts = shares(self.tasks, left, self.count)
        threads = str(max(1, (os.cpu_count() or 1) // len(parts)))
        had = os.environ.get("OMP_NUM_THREADS")
        context = multiprocessing.get_context("spawn")
        answers: Queue[Record | Ended] = context.Queue()
        started = []
        try:
            os.environ["OMP_NUM_THREADS"] = (
                had or threads
            )  # processes of several threads each stand in each other's way
            share = None if PURSE.left is None else PURSE.left / len(parts)
            for part in parts:
                arguments = (suite.name, self.choice, self.offline, part, share, answers)
                started.append(context.Process(target=_work, args=arguments, daemon=True))
                started[-1].start()
        finally:
            if had is None:
                del os.environ["OMP_NUM_THREADS"]
        try:
            yield from _received(answers, started)
        finally:
            for process in started:
                process.terminate()
                process.join()


def _received(
    answers: Queue[Record | Ended], started: Sequence[multiprocessing.process.BaseProcess]
) -> Iterator[Record]:
    """Records until every process has said that it ended."""
    from queue import Empty

    working = len(started)
    while working:
        try:
            said = answers.get(timeout=LOOK_S)
        except Empty:
            if sum(process.is_alive() for process in started) < working and answers.empty():
                raise BackendError(
                    "a process of the benchmark was ended from outside", help="--resume goes on"
                ) from None
            continue
        if isinstance(said, Record):
            yield said
            continue
        if said.problem:
            raise BackendError(f"a process of the benchmark ended: {said.problem}")
        working -= 1


def shares(tasks: Sequence[Task], left: Sequence[tuple[Task, int]], count: int) -> list[list[Place]]:
    """What each process does, in order: groups go whole to the process that has the fewest runs so far, large ones first."""
    place = {id(task): i for i, task in enumerate(tasks)}
    groups: dict[str, list[Place]] = {}
    for task, seed in left:
        groups.setdefault(task.shared, []).append((place[id(task)], seed))
    held: list[list[tuple[int, Place]]] = [[] for _ in range(min(count, len(groups)))]
    rank = {(id(task), seed): i for i, (task, seed) in enumerate(left)}
    for group in sorted(groups.values(), key=len, reverse=True):
        least = min(held, key=len)
        least += [(rank[id(tasks[i]), seed], (i, seed)) for i, seed in group]
    return [[at for _, at in sorted(part)] for part in held]


def _work(
    name: str,
    choice: Choice,
    offline: bool,
    part: Sequence[Place],
    usd: float | None,
    answers: Queue[Record | Ended],
) -> None:
    PURSE.left = usd
    try:
        suite = find(name)
        tasks = tasks_of(suite, choice, offline=offline)
        parent = multiprocessing.parent_process()
        for record in one_by_one(suite, ((tasks[i], seed) for i, seed in part)):
            if parent is not None and not parent.is_alive():  # it was killed: nobody writes down what is found
                return
            answers.put(record)
    except UQLError as error:
        answers.put(Ended(str(error)))
    except KeyboardInterrupt:
        answers.put(Ended("interrupted"))
    else:
        answers.put(Ended())
