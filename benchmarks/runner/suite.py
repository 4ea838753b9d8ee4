"""What a suite of benchmarks is: tasks to run and tables to print."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from uql.benchmarks.runner.records import Measured, Record

SIMULATED_SEEDS = 200  # where a label table is the model; DECISIONS.md §7: ratios need as many
LOOPBACK = ("127.0.0.1", "localhost", "::1")
MODELS = {"labels": 0.0, "labels-5": 0.05, "labels-10": 0.10}  # label tables by name, with their share of wrong answers


def is_simulated(model: str) -> bool:
    """Whether a label table answers."""
    return model in MODELS


def is_offline(model: str) -> bool:
    """Whether nothing outside this machine is reached.

    >>> is_offline("labels-5"), is_offline("local"), is_offline("http://127.0.0.1:8080/v1#m"), is_offline("openai:gpt-5")
    (True, True, True, False)
    >>> is_offline("http://127.0.0.1.example/v1#m")
    False
    """
    if model.startswith(("http://", "https://")):
        return urlsplit(model).hostname in LOOPBACK
    return is_simulated(model) or model in ("none", "local") or model.startswith(("local:", "oracle:"))


@dataclass(frozen=True, slots=True)
class Choice:
    """What is asked for on the command line."""

    data: Path  # the folder of the data sets
    work: Path  # for label tables, oracles, vectors: may be kept between runs
    systems: tuple[str, ...] = ()  # empty: all
    models: tuple[str, ...] = ()  # empty: those of the suite
    queries: tuple[str, ...] = ()  # by the beginning of their name
    tables: tuple[str, ...] = ()
    rows: int | None = None  # at most so many random rows of a table
    reduced: bool = False  # the short form of a suite
    seeds: int | None = None  # at most so many a task; programs of their own are told

    def wants(self, system: str, query: str) -> bool:
        by_system = not self.systems or system in self.systems
        return by_system and (not self.queries or any(query.startswith(q) for q in self.queries))


@dataclass(frozen=True, slots=True)
class Task:
    """One system on one question with one model; run once a seed. With a `reason` it cannot be run."""

    table: str
    system: str
    query: str
    model: str
    run: Callable[[int], Measured] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: int = SIMULATED_SEEDS  # 1: the seed changes nothing, or a real model is too slow
    calls: int | None = 0  # of one run, at most; None: it asks every row
    worst: float = 0.0  # the quality of a run without an answer
    reason: str = ""
    group: str = ""  # tasks of one group share files that one process at a time can hold; by default those of one query

    @property
    def shared(self) -> str:
        return self.group or self.query


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a report: text cells, numbers already formatted."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    text: str = ""  # instead of rows: what a program printed


@dataclass(frozen=True, slots=True)
class Suite:
    """A folder of benchmarks/, as the runner sees it."""

    name: str
    about: str
    systems: tuple[str, ...]
    models: tuple[str, ...]
    tasks: Callable[[Choice], Iterator[Task]]
    tables: Callable[[Sequence[Record]], list[Table]]
    needs: tuple[str, ...] = ()  # folders of the data
    cuts: bool = False  # it takes --rows
    figures: Mapping[str, Callable[[Sequence[Record]], dict[str, Any]]] = field(
        default_factory=dict
    )  # charts of tables, not fronts
    made_of: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # tables without runs: those whose runs they show
