"""Suites that are programs of their own: run in a process, what they print is kept and stands in the report as it is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec

from uql.benchmarks.runner.records import Measured, Record
from uql.benchmarks.runner.suite import Choice, Suite, Table, Task

LIMIT_S = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class Part:
    """One run of a program: its arguments, and those of the short form (None: left out there)."""

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    reduced: tuple[str, ...] | None = None
    takes_seeds: bool = False  # the option --seeds

    def words(self, choice: Choice) -> tuple[str, ...] | None:
        """The arguments for a choice; None where the part is left out."""
        held = self.reduced if choice.reduced else self.arguments
        if held is None or choice.seeds is None or not self.takes_seeds:
            return held
        return (*held, "--seeds", str(choice.seeds))


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    about: str
    parts: tuple[Part, ...]
    model: str = "labels"


_SAMPLING, _GUARANTEES = "uql.benchmarks.sampling", "uql.benchmarks.guarantees"
PROGRAMS = (
    Program(
        "sampling",
        "errors of COUNT, SUM, AVG, GROUP BY and searches against UQE's algorithms, per predicate",
        (
            Part("expected", _SAMPLING, ("--only", "expected"), ("--only", "expected", "--quick"), takes_seeds=True),
            Part("count", _SAMPLING, ("--only", "count"), ("--only", "count", "--quick"), takes_seeds=True),
            Part("sum", _SAMPLING, ("--only", "sum"), ("--only", "sum", "--quick"), takes_seeds=True),
            Part("group", _SAMPLING, ("--only", "group"), takes_seeds=True),
            Part("retrieval", _SAMPLING, ("--only", "retrieval"), ("--only", "retrieval", "--quick"), takes_seeds=True),
            Part("noise", _SAMPLING, ("--only", "noise"), takes_seeds=True),
            Part("soft", _SAMPLING, ("--only", "soft"), takes_seeds=True),
        ),
    ),
    Program(
        "guarantees",
        "misses of recall and precision targets, coverage of intervals, over seeded trials with binomial bounds",
        tuple(
            Part(
                table, _GUARANTEES, ("--only", table, "--seeds", "1000"), ("--only", table, "--quick"), takes_seeds=True
            )
            for table in ("coverage", "recall", "precision", "cost")
        ),
    ),
    Program(
        "promise",
        "sets of rows with a stated precision and recall, by a cheap model and a dear one",
        (Part("all", "uql.benchmarks.promise", takes_seeds=True),),
    ),
    Program(
        "optimizer",
        "calls of filters against the written order and the best one in hindsight",
        (
            Part(
                "conjunctions",
                "uql.benchmarks.optimizer.conjunctions",
                ("--queries", "200"),
                ("--queries", "10", "--rows", "500"),
            ),
        ),
    ),
    Program(
        "gate",
        "calls a second, use of rate limits, memory of the gate",
        (
            Part("in-process", "uql.benchmarks.gate", ("in-process",), ("in-process",)),
            Part("sdk", "uql.benchmarks.gate", ("sdk",)),
            Part("limits", "uql.benchmarks.gate", ("limits",)),
            Part("memory", "uql.benchmarks.gate", ("memory",)),
        ),
        model="none",
    ),
    Program("nl", "questions in plain language: plans, answers, routers", (Part("all", "uql.benchmarks.nl"),)),
    Program(
        "local-model",
        "AUC and speed of the local model on labelled conditions",
        (Part("all", "uql.benchmarks.local_model"),),
        model="local",
    ),
)


def there() -> list[Program]:
    """The programs whose modules are installed."""
    return [program for program in PROGRAMS if all(_runs(part.module) for part in program.parts)]


def _runs(module: str) -> bool:
    found = find_spec(module)
    if found is None:
        return False
    return found.submodule_search_locations is None or find_spec(f"{module}.__main__") is not None


def suite(program: Program) -> Suite:
    """A program as a suite: a part is a query, the exit code is the quality."""

    def tasks(choice: Choice) -> Iterator[Task]:
        for part in program.parts:
            words = part.words(choice)
            if not choice.wants("uql", part.name):
                continue
            settings = {"arguments": " ".join(words or ())}
            if words is None:
                reason = "takes longer than the short form may"
                yield Task(program.name, "uql", part.name, program.model, settings=settings, seeds=1, reason=reason)
                continue
            command = [sys.executable, "-m", part.module, *words]
            yield Task(program.name, "uql", part.name, program.model, partial(run, command, choice), settings, seeds=1)

    return Suite(program.name, program.about, ("uql",), (program.model,), tasks, tables)


def run(command: Sequence[str], choice: Choice, seed: int = 0) -> Measured:
    """Runs a program with the data of the choice; its output, and 1 where it ended with exit code 0. It has its own seeds."""
    began = time.perf_counter()
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, "UQL_DATA": str(choice.data.resolve())},
    )
    seconds = time.perf_counter() - began
    said = done.stderr.strip().splitlines()
    problem = "" if done.returncode == 0 else f"exit code {done.returncode}: {said[-1] if said else 'no message'}"
    text = done.stdout.strip("\n")
    return Measured(text, float(done.returncode == 0), "exit code 0", seconds=seconds, text=text, problem=problem)


def tables(records: Sequence[Record]) -> list[Table]:
    """What each part printed, and the command that prints it."""
    modules = {(program.name, part.name): part.module for program in PROGRAMS for part in program.parts}
    order, found = list(modules), []
    for r in sorted(records, key=lambda r: order.index((r.suite, r.query)) if (r.suite, r.query) in modules else -1):
        command = f"python -m {modules.get((r.suite, r.query), '')} {r.settings.get('arguments', '')}".rstrip()
        notes = (f"`{command}`" + ("" if r.reason else f"; {r.seconds:.0f} s"),)
        said = r.text or r.problem or f"not run: {r.reason}"
        found.append(
            Table(f"{r.suite}: {r.query}", (), (), notes + ((r.problem,) if r.text and r.problem else ()), said)
        )
    return found
