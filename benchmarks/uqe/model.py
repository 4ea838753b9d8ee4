"""The model as the baselines see it: rows in, answers out, calls and tokens counted. The same provider as the engine's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from uql.base.settings import Settings
from uql.benchmarks.runner.purse import PURSE
from uql.benchmarks.runner.suite import Choice
from uql.benchmarks.uqe.data import World, model_name
from uql.llm.gate import Gate
from uql.llm.providers.base import Provider, Request
from uql.llm.providers.oracle import Oracle
from uql.llm.questions import Cell, Choice as Which, Extract, Predicate, Question, Row, Write
from uql.llm.run_record import Cost


@lru_cache(maxsize=32)
def oracle(path: str) -> Oracle:
    """An oracle of a file, read once: it is the engine's provider too, so that both see the same wrong answers."""
    return Oracle(path)


def provider(world: World, model: str) -> Provider | str:
    """What `uql.connect` takes as its model."""
    name = model_name(world, model)
    return oracle(name.removeprefix("oracle:")) if name.startswith("oracle:") else name


@dataclass
class Model:
    """Asks a model about rows of one world; every row asked is a call, rows of equal content too."""

    world: World
    name: str
    choice: Choice
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0
    warnings: list[str] = field(default_factory=list)

    @property
    def cost(self) -> Cost:
        """What it has cost so far: a request a call."""
        return Cost(
            self.calls, self.calls, input_tokens=self.input_tokens, output_tokens=self.output_tokens, usd=self.usd
        )

    def is_so(self, condition: str, rows: Sequence[int]) -> list[bool | None]:
        """Whether the condition holds for each row; None where there is no answer."""
        return self._ask(Predicate(condition), rows)

    def number(self, text: str, rows: Sequence[int]) -> list[float | None]:
        """A number read from each row."""
        return self._ask(Extract(text, "DOUBLE"), rows)

    def which(self, text: str, labels: Sequence[str], rows: Sequence[int]) -> list[str | None]:
        """The label of each row; None where none of them fits."""
        found = self._ask(Which(text, tuple(labels)), rows)
        return [label if label in labels else None for label in found]

    def write(self, prompt: str, rows: Sequence[int] = (), task: str = "write", schema: str | None = None) -> Any:
        """A text, or a JSON value, about some rows: one call."""
        return self._ask(Write(prompt, task, schema, tuple(self._row(i) for i in rows)), [-1])[0]

    def _row(self, i: int) -> Row:
        if i < 0:
            return Row()
        held = self.world.shown[i]
        media = "image/png" if isinstance(held, bytes) else ""
        return Row((Cell(self.world.source.shown, held, media_type=media),))

    def _ask(self, question: Question, rows: Sequence[int]) -> list[Any]:
        """The values of the answers. A label table is asked outright; a model that may fail or be slow through the gate."""
        asked = [self._row(i) for i in rows]
        self.calls += len(rows)
        found = provider(self.world, self.name)
        return asyncio.run(
            self._outright(question, asked, found) if isinstance(found, Oracle) else self._gated(question, asked)
        )

    async def _outright(self, question: Question, rows: Sequence[Row], oracle: Oracle) -> list[Any]:
        values = []
        for row in rows:
            PURSE.settings(self.usd)  # ends the run where nothing is left
            reply = await oracle.answer(Request((question,), row))
            self.input_tokens += reply.input_tokens
            self.output_tokens += reply.output_tokens
            self.usd = (self.usd or 0.0) + oracle.price.usd(reply.input_tokens, reply.output_tokens)
            values.append(reply.answers[0].value)
        return values

    async def _gated(self, question: Question, rows: Sequence[Row]) -> list[Any]:
        settings = Settings(ledger=":memory:", **PURSE.settings(self.usd))
        async with Gate.open(settings, model=provider(self.world, self.name), calls=None) as gate:
            answers = await gate.ask(question, rows)
            cost = gate.cost
            self.input_tokens += cost.input_tokens
            self.output_tokens += cost.output_tokens
            self.usd = None if self.usd is None or cost.usd is None else self.usd + cost.usd
            if any(failure.kind == "budget" for failure in answers.failures):
                raise PURSE.spent(self.usd)
            return list(answers.values)
