"""A run and what it has cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Run:
    """Whose calls these are: the id under which the ledger lists them, and the seed of everything random in them."""

    id: str
    seed: int = 0
    statement: str = ""
    details: str = ""  # JSON: what it takes to continue it
    # answers paid for from then on are draws of its own, in whatever order; None: it keeps no draws
    started: float | None = None
    root: str = ""  # the run that drew first; "": this one
    again: bool = False  # a later sitting under the same id
    retries: bool = False  # rows that failed are asked once more
    until: float = math.inf  # when the sitting that is given again had ended: it knows no answer that came later
    ended_by: str = ""  # the limit that ended it
    ended: bool = False  # had it ended well? What it lacks now was corrected, calibrated or lost since
    part: bool = False  # of a run that another process has begun, and ends: this one asks some of its rows

    @property
    def replays(self) -> bool:
        """Does it take answers that were paid for since it began for the draws that they were?"""
        return self.started is not None

    @property
    def drawn_by(self) -> str:
        """The run that drew first."""
        return self.root or self.id


@dataclass(slots=True)
class Cost:
    """What a run has cost so far."""

    calls: int = 0  # rows sent, a retry counted again
    requests: int = 0  # HTTP requests
    cached: int = 0  # rows that the ledger answered
    failed: int = 0  # rows given up after their calls
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0  # None: a price is unknown
    seconds: float = 0.0  # spent waiting for answers; of a result: from the start of the statement to its end
    cached_tokens: int = 0  # of the input, those that a vendor had in its prompt cache

    def __add__(self, other: Cost) -> Cost:
        """What two runs cost together; `usd` is unknown where that of one is."""
        sums: dict[str, Any] = {}
        for f in fields(self):
            x, y = getattr(self, f.name), getattr(other, f.name)
            sums[f.name] = None if x is None or y is None else x + y
        return Cost(**sums)
