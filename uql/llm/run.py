"""A run and what it has cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """Whose calls these are: the id under which the ledger lists them, and the seed of everything random in them."""

    id: str
    seed: int = 0
    statement: str = ""
    details: str = ""  # JSON: what it takes to continue it
    started: float | None = None  # of its first sitting, seconds since the epoch; None: this is the first

    @property
    def resumed(self) -> bool:
        return self.started is not None


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
    seconds: float = 0.0  # spent waiting for answers
