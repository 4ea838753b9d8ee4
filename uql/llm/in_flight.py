"""The questions that an ask has in flight, by their keys in the ledger: another ask of the run waits for their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from uql.llm.providers.base import Answer

NOT_HERE = Answer()


class InFlight:
    """Of one ask: each of its keys is open until `settle`; a second `settle` of it changes nothing."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        self._answers: dict[bytes, Answer | None] = dict.fromkeys(keys)
        self._waiting: dict[bytes, asyncio.Future[Answer]] = {}  # made where somebody waits

    def __contains__(self, key: bytes) -> bool:
        return key in self._answers

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._answers)

    def is_open(self, key: bytes) -> bool:
        return self._answers.get(key, NOT_HERE) is None

    def settle(self, key: bytes, answer: Answer) -> None:
        """Give an open key its answer; a key of another ask is left alone."""
        self.settle_each((key,), (answer,))

    def settle_each(self, keys: Iterable[bytes], answers: Iterable[Answer | None]) -> None:
        """The same for each of n keys that has an answer."""
        own, waiting = self._answers, self._waiting
        for key, answer in zip(keys, answers, strict=True):
            if answer is not None and own.get(key, NOT_HERE) is None:
                own[key] = answer
                if key in waiting:
                    waiting.pop(key).set_result(answer)

    def settle_all(self, answer: Answer) -> None:
        """Give every key that is still open this answer."""
        for key in [key for key, own in self._answers.items() if own is None]:
            self.settle(key, answer)

    def answer(self, key: bytes) -> Answer | None:
        """The answer of a key; None while it is open."""
        return self._answers[key]

    async def wait(self, key: bytes) -> Answer:
        """The answer of a key, once it is there."""
        answer = self._answers[key]
        if answer is not None:
            return answer
        if key not in self._waiting:
            self._waiting[key] = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._waiting[key])


class AllInFlight(dict[bytes, InFlight]):
    """By key, the ask that has it in flight. `n_ended`: asks so far that are over."""

    n_ended = 0

    def begin(self, keys: Iterable[bytes]) -> InFlight:
        """What a new ask has in flight: those of its keys that no other has."""
        own = InFlight(key for key in keys if key not in self)
        self.update(dict.fromkeys(own, own))
        return own

    def end(self, own: InFlight, answer: Answer) -> None:
        """An ask is over; its keys that are still open get this answer."""
        self.n_ended += 1
        for key in own:
            del self[key]
        own.settle_all(answer)
