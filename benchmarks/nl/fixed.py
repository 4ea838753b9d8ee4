"""The questions on which a small model's planning is measured (DECISIONS.md §8): two sets of 40, half of each read while it was made.

The second 20 are the first by the SHA-256 of their ids among those that remain: 6, 5 and 5 of the three suites with plans by hand, and 4 of
nvBench, each over another database.

The second set was chosen before any of it was read: the first 12 of each suite with plans by hand, and 4 of nvBench, each over another
database, by the SHA-256 of "second:" and the id, among those that are not in the first set. Every other one, from the first, was to learn
from (`LEARNED`); the rest (`HELD`) was asked once, at the end.
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

LEARNED: Mapping[str, tuple[str, ...]] = {
    "artwork": ("art101-120", "artfull-043", "art101-124", "artfull-038", "art101-075", "art101-081"),
    "rotowire": (
        *(f"rotowire-valid-{n:03d}" for n in (18, 89, 34)),
        *(f"rotowire-m2ex-{n:03d}" for n in (106, 60, 83)),
    ),
    "countries": tuple(f"countries-{n:03d}" for n in (31, 50, 40, 83, 65, 35)),
    "nvbench": ("nvbench-2316", "nvbench-4148"),
}
HELD: Mapping[str, tuple[str, ...]] = {
    "artwork": ("artfull-040", "artfull-046", "art101-027", "art101-122", "art101-111", "art101-040"),
    "rotowire": tuple(f"rotowire-valid-{n:03d}" for n in (61, 37, 43, 27, 60, 38)),
    "countries": tuple(f"countries-{n:03d}" for n in (56, 102, 112, 71, 54, 11)),
    "nvbench": ("nvbench-1295", "nvbench-4732"),
}
PARTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "developed": DEVELOPED,
    "checked": CHECKED,
    "learned": LEARNED,
    "held": HELD,
}
SETS: Mapping[str, tuple[str, ...]] = {"first": ("developed", "checked"), "second": ("learned", "held")}


def questions(suite: str, of: str = "first") -> list[str]:
    """The ids of a suite's fixed questions; none where it has none.

    Args:
        of: a set, or a part of one.
    """
    return [name for part in SETS.get(of, (of,)) for name in PARTS[part].get(suite, ())]


def part_of(suite: str, question: str) -> str:
    """The part that a question is in; "" where it is in none."""
    return next((name for name, part in PARTS.items() if question in part.get(suite, ())), "")
