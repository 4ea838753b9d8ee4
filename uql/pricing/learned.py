"""What earlier queries taught: how often terms are true, alone and together, how long answers are, how fast the model answers.

Kept in the ledger, by model and database; plans are chosen and priced with it, answers never come from it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from uql.base.duckdb_connections import CurrentDatabase
from uql.base.settings import Settings
from uql.compiler.cost import Range
from uql.compiler.formula import FALSE, NULL, OPEN, TRUE, Masks
from uql.llm.ledger import Ledger, exists
from uql.llm.providers.base import Provider

MOST_ROWS = 512  # whose answers are kept of one WHERE
LEAST_CALLS = 8  # before the seconds of a call are those measured
SPREAD = 2.0  # times faster or slower than before
_QUOTED = re.compile(r'"([^"]+)"')
ROWS = "rows"  # name of the entry of the rows that may share a request
_MARKS = {TRUE: "t", FALSE: "f", NULL: "n"}
_MASKS = {mark: mask for mask, mark in _MARKS.items()}


@dataclass(slots=True)
class Statistics:
    """Of one model on one database.

    Attributes:
        rates: terms by name: answers seen, and how many of them are true.
        together: conditions by name: combinations of answers, one letter a term ("t", "f", "n" or "?" where not asked), and their rows.
        output: quoted texts: answers seen, and their tokens in all.
        descriptions: that the model proposed of quoted texts (`uql.kernels.descriptions`).
        calls, seconds: made, and how long they took, added up.
        repeated: calls for a row that an earlier one had brought no answer to.
        rows: that may share a request, as `uql eval --packed` measured; None: it was not measured.
        scope: model and database, in words.
    """

    rates: dict[str, tuple[int, int]] = field(default_factory=dict)
    together: dict[str, dict[str, int]] = field(default_factory=dict)
    output: dict[str, tuple[int, int]] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    calls: int = 0
    seconds: float = 0.0
    repeated: int = 0
    rows: int | None = None
    scope: str = ""
    _saved: dict[str, Any] = field(default_factory=dict)

    # ---------------------------------------------------------------------------------------------------------- learning
    def observe(self, event: Any) -> None:
        """Learns from a call that was made: an `events.Event`; others are passed over."""
        if getattr(event, "kind", "") != "call":
            return
        self.repeated += event.attempt > 1
        if event.error:
            return
        self.calls += 1
        self.seconds += event.seconds
        if "+" not in event.question:
            n, tokens = self.output.get(event.text, (0, 0))
            self.output[event.text] = (n + 1, tokens + event.output_tokens)

    def keep(self, name: str, masks: Masks) -> None:
        """Keeps the answers (leaves, m) to the terms of a condition, the latest MOST_ROWS."""
        kinds, counts = np.unique(masks[:, -MOST_ROWS:], axis=1, return_counts=True)
        rows = {"".join(_MARKS.get(int(m), "?") for m in kinds[:, i]): int(counts[i]) for i in range(kinds.shape[1])}
        self.together[name] = {row: n for row, n in rows.items() if set(row) != {"?"}}

    # ------------------------------------------------------------------------------------------------------------- using
    def answers(self, name: str) -> Masks | None:
        """(leaves, m) what is remembered of a condition, None where nothing is."""
        rows = self.together.get(name)
        if not rows:
            return None
        columns = [[_MASKS.get(mark, OPEN) for mark in row] for row, n in sorted(rows.items()) for _ in range(n)]
        return np.array(columns, dtype=np.uint8).T

    def output_tokens(self) -> dict[str, float]:
        """Tokens of an answer, by text."""
        return {text: tokens / n for text, (n, tokens) in self.output.items() if n}

    def seconds_a_call(self) -> Range | None:
        """None before LEAST_CALLS calls."""
        if self.calls < LEAST_CALLS:
            return None
        mean = self.seconds / self.calls
        return Range(mean / SPREAD, mean, mean * SPREAD)

    @property
    def repeats(self) -> Range:
        """Calls for each row, more than 1 where the model has brought no answer at first; at most twice as many more as so far."""
        share = self.repeated / max(1, self.calls + self.repeated)
        return Range(1.0, 1.0 + share, min(2.0, 1.0 + SPREAD * share))

    # ----------------------------------------------------------------------------------------------------------- keeping
    def save(self, ledger: Ledger) -> None:
        """Writes what is new to the ledger."""
        values = self.values()
        new = {name: value for name, value in values.items() if self._saved.get(name) != value}
        if new:
            ledger.keep_statistics(self.scope, new)
            self._saved = values

    def about(self, statement: str) -> dict[str, Any]:
        """What a statement can use, as plain values: entries with one of its quoted texts, and how fast the model is."""

        def named(name: str) -> bool:
            kind, _, rest = name.partition(": ")
            return (
                kind in ("calls", ROWS) or rest in statement or any(text in statement for text in _QUOTED.findall(rest))
            )

        return {name: value for name, value in self.values().items() if named(name)}

    def values(self) -> dict[str, Any]:
        """All of it as plain values."""
        values: dict[str, Any] = {f"rate: {name}": list(counts) for name, counts in self.rates.items()}
        values |= {f"together: {name}": dict(rows) for name, rows in self.together.items()}
        values |= {f"output: {text}": list(counts) for text, counts in self.output.items()}
        values |= {f"description: {name}": [text] for name, text in self.descriptions.items()}
        if self.calls:
            values["calls"] = [self.calls, self.seconds, self.repeated]
        if self.rows is not None:
            values[ROWS] = [self.rows]
        return values

    @classmethod
    def load(cls, settings: Settings, scope: str) -> Statistics:
        """What the ledger of the settings remembers; nothing where it is new."""
        if not exists(settings.ledger):
            return cls(scope=scope)
        with Ledger(settings.ledger) as ledger:
            return cls.of(ledger.statistics(scope) | ledger.statistics(_packed(scope.partition(" on ")[0])), scope)

    @classmethod
    def of(cls, values: Mapping[str, Any], scope: str = "") -> Statistics:
        """From plain values, as `values` gives them; what is no such value is left out."""
        statistics = cls(scope=scope)
        for name, value in values.items():
            with suppress(TypeError, ValueError, LookupError, AttributeError, OverflowError):
                statistics._take(name, value)
        statistics._saved = statistics.values()
        return statistics

    def _take(self, name: str, value: Any) -> None:
        kind, _, rest = name.partition(": ")
        match kind:
            case "rate":
                self.rates[rest] = (int(value[0]), int(value[1]))
            case "together":
                self.together[rest] = {str(row): int(n) for row, n in value.items()}
            case "output":
                self.output[rest] = (int(value[0]), int(value[1]))
            case "description":
                self.descriptions[rest] = str(value[0])
            case "calls":
                self.calls, self.seconds, self.repeated = int(value[0]), float(value[1]), int(sum(value[2:]))
            case "rows":
                self.rows = int(value[0])


def keep_rows_a_request(ledger: Ledger, model: str, rows: int) -> None:
    """From now on so many rows share a request to a model where `rows_per_request` is 'auto' and it saves a fifth.

    Args:
        ledger: where it is kept.
    """
    ledger.keep_statistics(_packed(model), {ROWS: [rows]})


def _packed(model: str) -> str:
    return f"rows a request of {model}"


def scope_of(database: CurrentDatabase, model: Provider | None, settings: Settings) -> str:
    """Model and database: what was learned of one says nothing of another.

    Args:
        model: None: that of the settings is named.
    """
    return f"{model.name if model is not None else settings.model or ''} on {database.path or 'memory'}"
