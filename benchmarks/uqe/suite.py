"""The UQE suite for the runner."""

from __future__ import annotations

from uql.benchmarks.runner.suite import Suite
from uql.benchmarks.uqe.figures import figure_5
from uql.benchmarks.uqe.tables import tables
from uql.benchmarks.uqe.tasks import SYSTEMS, tasks

SUITE = Suite(
    "uqe",
    "tables 1 to 5 and figures 4 and 5 of the UQE paper, its algorithms as printed and plain baselines beside the engine",
    SYSTEMS,
    ("labels", "labels-5", "labels-10", "local"),
    tasks,
    tables,
    needs=("imdb", "airdialogue", "abcd", "sgd"),
    cuts=True,
    figures={"figure 5": figure_5},
    made_of={"table 5": ("table 1", "table 2"), "figure 4": ("table 1", "table 4")},
)
