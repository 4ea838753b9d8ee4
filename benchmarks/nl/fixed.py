"""The 40 questions on which a small model's planning is measured (DECISIONS.md §8): 20 read while the planner was made, 20 that were not.

The second 20 are the first by the SHA-256 of their ids among those that remain: 6, 5 and 5 of the three suites with plans by hand, and 4 of
nvBench, each over another database.
"""

from __future__ import annotations

from collections.abc import Mapping

DEVELOPED: Mapping[str, tuple[str, ...]] = {
    "artwork": ("art101-002", "art101-017", "art101-028", "art101-064", "art101-072", "art101-121"),
    "rotowire": tuple(f"rotowire-valid-{n:03d}" for n in (0, 16, 31, 39, 48, 74, 76, 103)),
    "countries": tuple(f"countries-{n:03d}" for n in (1, 22, 55, 113, 118, 121)),
}
CHECKED: Mapping[str, tuple[str, ...]] = {
    "artwork": ("art101-087", "art101-070", "m2ex-26", "art101-126", "m2ex-30"),
    "rotowire": tuple(f"rotowire-valid-{n:03d}" for n in (49, 88, 53, 73, 12, 68)),
    "countries": tuple(f"countries-{n:03d}" for n in (21, 108, 99, 59, 38)),
    "nvbench": ("nvbench-3397", "nvbench-501", "nvbench-3035", "nvbench-2149"),
}


def questions(suite: str) -> list[str]:
    """The ids of a suite's fixed questions; none where it has none."""
    return [*DEVELOPED.get(suite, ()), *CHECKED.get(suite, ())]


def is_developed(suite: str, question: str) -> bool:
    return question in DEVELOPED.get(suite, ())
