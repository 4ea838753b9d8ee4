"""The event stream: every call, what the ledger answered, every row given up. Progress, logs and tables read the same one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(slots=True)
class Event:
    """What happened to a row, or to `rows` of them that the ledger answered together.

    A "call" is one row sent once (with `error` where it brought no answer), "cached" rows that the ledger answered whole,
    "failed" a row that is given up after its calls. So the rows of a run's events are its calls + cached + failed.
    """

    kind: Literal["call", "cached", "failed"]
    run: str
    at: float  # seconds since the epoch
    model: str
    question: str  # kinds of the questions that travelled together, as "Predicate+Extract"
    text: str = ""  # of the first question, shortened
    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    usd: float | None = None
    seconds: float = 0.0
    error: str = ""  # kind of the failure
    message: str = ""
    attempt: int = 1
    source: str = ""  # the table that the row came from
    rows: int = 1


Listener = Callable[[Event], None]
