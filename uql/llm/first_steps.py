"""Keys of rows, millions of them at 8 bytes each: in which step of a budget they were asked first, and which have no answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from uql.llm.ledger import Ledger
from uql.llm.ledger_rows import Failed
from uql.llm.run_record import Run

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


class FailedRows:
    """The rows of one sitting for which the model gave no answer; of a run that keeps its draws those of the sittings before are read once.
    The rest of them stays in the ledger."""

    def __init__(self, ledger: Ledger, run: Run) -> None:
        self._ledger, self._run = ledger, run
        self._known, self._n_known = FirstSteps(), 0
        self._is_read = not (run.root or run.again)

    def add(self, failed: Sequence[Failed]) -> None:
        """Keep these too."""
        if failed:
            self._ledger.fail(failed)
            self._note([one.key for one in failed])

    def _note(self, keys: list[bytes]) -> None:
        self._n_known += len(keys)
        self._known.note(keys, 0)

    async def of(self, keys: Sequence[bytes]) -> dict[bytes, Failed]:
        """Those among the keys of rows."""
        if not self._is_read:
            self._is_read = True
            if known := await self._ledger.failed_keys(self._run.drawn_by):
                self._note(known)
        if not self._n_known:
            return {}
        hits = [key for key, step in zip(keys, self._known.of(keys), strict=True) if step != NEVER]
        return await self._ledger.failures(self._run.drawn_by, hits)
