"""In which step of a budget keys were asked first, for millions of them at 8 bytes each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# of a key of the ledger: two of 10⁷ begin with the same 8 bytes one time in 10⁵
KEY = np.dtype([("head", "<u8"), ("rest", "V12")])
NEVER = np.iinfo(np.int64).max
LONGER = 8  # times as long as the next is each array of a step, at least


class FirstSteps:
    """The step of each key that was noted: of each step a few sorted arrays."""

    def __init__(self) -> None:
        self._held: dict[int, list[NDArray[np.uint64]]] = {}

    def of(self, keys: Sequence[bytes], after: int = -1) -> list[int]:
        """The first step after `after` of each key; NEVER for those that were not noted."""
        found: list[int] = self._first(_heads(keys), after).tolist()
        return found

    def note(self, keys: Sequence[bytes], step: int) -> None:
        """These keys are asked in a step; of those that were asked in it or before it nothing more is held."""
        heads = np.sort(_heads(keys))
        new = heads[self._first(heads) > step]
        arrays = self._held.setdefault(step, [])
        while arrays and len(arrays[-1]) <= LONGER * len(new):
            new = np.concatenate([arrays.pop(), new])
            new.sort(kind="stable")  # merges the two
        if len(new):
            arrays.append(new)

    def _first(self, heads: NDArray[np.uint64], after: int = -1) -> NDArray[np.int64]:
        first = np.full(len(heads), NEVER)
        order = np.argsort(heads)  # neighbours are looked up one after the other
        asked = heads[order]
        for step in (step for step in self._held if step > after):
            for held in self._held[step]:
                at = np.minimum(np.searchsorted(held, asked), len(held) - 1)
                found = order[held[at] == asked]
                first[found] = np.minimum(first[found], step)
        return first


def _heads(keys: Sequence[bytes]) -> NDArray[np.uint64]:
    return np.frombuffer(b"".join(keys), KEY)["head"]
