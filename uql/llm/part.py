"""Part of a gate: a piece of a run that counts its own calls and may spend no more than its share of the run's budget."""

from __future__ import annotations

from uql.llm.budget import Budget, Reservation
from uql.llm.gate import Gate
from uql.llm.run import Run
from uql.settings import Settings


class Share(Budget):
    """At most `calls` calls of a whole budget; every reservation is one of the whole's too.

    Args:
        whole: the budget of the run.
        calls: of this part; None: as many as the whole has left.
    """

    def __init__(self, whole: Budget, calls: int | None) -> None:
        super().__init__(calls=calls, tokens=whole.tokens, usd=whole.usd)
        self.whole = whole

    @property
    def calls_left(self) -> int | None:
        left = [n for n in (super().calls_left, self.whole.calls_left) if n is not None]
        return min(left) if left else None

    @property
    def tokens_left(self) -> int | None:
        return self.whole.tokens_left

    @property
    def seconds_left(self) -> float | None:
        return self.whole.seconds_left

    async def reserve(self, wanted: Reservation) -> int | None:
        if self.calls is not None and self.spent_calls + wanted.calls > self.calls:
            self.exhausted = "calls"
            return None
        self.spent_calls += wanted.calls
        ticket = await self.whole.reserve(wanted)
        self.largest_tokens = max(self.largest_tokens, wanted.tokens)
        if ticket is None:
            self.spent_calls -= wanted.calls
            self.exhausted = self.whole.exhausted
        return ticket

    def release(self, ticket: int) -> None:
        self.spent_calls -= self.whole.calls_of(ticket)
        self.whole.release(ticket)

    def settle(self, ticket: int, *, tokens: int, usd: float) -> None:
        self.spent_tokens += tokens
        self.spent_usd += usd
        self.whole.settle(ticket, tokens=tokens, usd=usd)


def part(gate: Gate, *, calls: int | None = None, settings: Settings | None = None, statement: str = "") -> Gate:
    """A gate with costs and warnings of its own that shares all else with `gate`: models, limits, ledger, questions in flight, events.

    It is not closed; `gate` must stay open while it is used, and have opened its model (`await gate.provider()`).

    Args:
        calls: it may make at most; None: what the whole run has left.
        settings: of this part; None: those of the gate.
        statement: what it is for.
    """
    made = Gate(
        settings or gate.settings,
        provider=gate._default,
        ledger=gate.ledger,
        owned=False,
        budget=Share(gate.budget, calls),
        run=Run(gate.run.id, gate.run.seed, statement),
        plugins=gate._plugins,
        offline=gate._offline,
    )
    made.events, made._lost = gate.events, gate._lost
    made._providers, made._opening = gate._providers, gate._opening
    made._limiters, made._inflight = gate._limiters, gate._inflight
    made._announced, made._on_announce = gate._announced, gate._on_announce
    return made
