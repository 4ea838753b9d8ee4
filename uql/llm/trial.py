"""One question to a model, to see that it is reached: what a call takes and costs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from uql.base.settings import Settings


@dataclass(frozen=True, slots=True)
class Trial:
    """What one condition about one made-up row took. `usd` is None where the price of the model is unknown."""

    model: str
    answer: bool | None
    seconds: float
    input_tokens: int
    output_tokens: int
    usd: float | None
    problem: str = ""  # why there is no answer

    def words(self) -> str:
        """In a line.

        >>> Trial("m", True, 0.81, 61, 5, 0.0000123).words()
        'answers in 0.8 s, 61 + 5 tokens, $0.000012 a call'
        """
        if self.problem:
            return f"gives no answer: {self.problem}"
        cost = "price unknown" if self.usd is None else f"${self.usd:.6f} a call"
        return f"answers in {self.seconds:.1f} s, {self.input_tokens} + {self.output_tokens} tokens, {cost}"


def try_call(model: str, settings: Settings) -> Trial:
    """Ask a model whether a bank card was lost; one that knows some texts alone, one of them. Not to be called inside a running event
    loop.

    Args:
        model: as the setting of that name.
        settings: with endpoints and prices; its ledger is not used.
    Raises: what opening and reaching the model raises.
    """
    return asyncio.run(_run_trial(model, settings))


async def _run_trial(model: str, settings: Settings) -> Trial:
    from uql.llm.gate import Gate
    from uql.llm.providers.base import OffersTrial
    from uql.llm.questions import Cell, Predicate, Row

    own = settings.with_values(ledger=":memory:", on_error="null", budget=4, max_cost=None, offline=False)
    async with Gate.open(own, model=model) as gate:
        provider = await gate.provider()
        if isinstance(provider, OffersTrial):
            text, row = provider.trial()
        else:
            text, row = (
                "a bank card was lost",
                Row((Cell("text", "I lost my bank card 3 days ago in Rome, please block it."),)),
            )
            warm = Predicate("it is a text")  # a first call also loads the model, or learns what the server can do
            await gate.ask(warm, [row])
        before, began = gate.cost, time.monotonic()
        input_before, output_before = before.input_tokens, before.output_tokens
        answers = await gate.ask(Predicate(text), [row])
        seconds = time.monotonic() - began
        cost = gate.cost
        tokens = cost.input_tokens - input_before, cost.output_tokens - output_before
        usd = None if provider.price is None else provider.price.usd(*tokens)
        problem = "; ".join(f.message for f in answers.failures)
        return Trial(model, answers.values[0], seconds, *tokens, usd, problem)
