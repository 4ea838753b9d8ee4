"""The suites by name. A suite's module is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from uql.base.errors import ConfigError
from uql.benchmarks.runner import programs
from uql.benchmarks.runner.suite import Suite

FOLDERS = {
    "uqe": "uql.benchmarks.uqe.suite",
    "sembench": "uql.benchmarks.sembench.suite",
    "peers": "uql.benchmarks.peers.suite",
    "speed": "uql.benchmarks.speed.suite",
    "accuracy": "uql.benchmarks.accuracy.suite",
}


QUESTIONS = (  # of uql.benchmarks.nl
    "rotowire",
    "countries",
    "artwork",
    "tatqa",
    "finmmr",
    "nvbench",
    "sembench-mmqa",
    "ehrxqa",
    "mmqa-routing",
    "m2qa",
)


def names() -> list[str]:
    """Every suite that there is."""
    return [*FOLDERS, *QUESTIONS, *(program.name for program in programs.there())]


def find(name: str) -> Suite:
    """A suite. Raises ConfigError (UQL402) that lists the names."""
    if name in FOLDERS:
        suite: Suite = import_module(FOLDERS[name]).SUITE
        return suite
    if name in QUESTIONS:
        from uql.benchmarks.nl import bench

        return bench.suite(name)
    for program in programs.there():
        if program.name == name:
            return programs.suite(program)
    raise ConfigError(f"there is no suite {name!r}", code="UQL402", help=f"suites: {', '.join(names())}")
