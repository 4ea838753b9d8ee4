"""The rows of an ask in the order in which they are sent, claimed some at a time where the ledger is shared with other runs.

Rows are sent in rounds: each is tried once, in order, before any is tried again. So what is left of a budget goes to the same rows
whatever comes back first, and also where the run is broken off and goes on.

The questions that it has in flight are known by their keys in the ledger: another ask of the run waits for their answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import chain

from uql.llm.asking import Asking, known_answers, without_answer
from uql.llm.claims import Claimed, Claims
from uql.llm.ledger_keys import Slot
from uql.llm.providers.base import Answer, Problem

REFUSED = Answer(problem=Problem("budget", "the budget (calls) ended before this row was asked"))
AnsweredElsewhere = Callable[[Asking, list[Slot], Claimed], Awaitable[list[int]]]


class Turns:
    """The requests of an ask, claimed some rows at a time. Rows that another run has in flight are put aside in `later`.

    Args:
        size: rows that are claimed at once.
        waits: they were in flight a moment ago.
        eager: a row that failed is tried again at once.
    """

    def __init__(
        self,
        claims: Claims | None,
        answered_elsewhere: AnsweredElsewhere,
        asking: Asking,
        slots: list[Slot],
        mine: InFlight,
        size: int,
        waits: bool,
        eager: bool,
    ) -> None:
        self._claims = claims
        self._answered_elsewhere = answered_elsewhere
        self._asking = asking
        self._mine = mine
        self._waits = waits
        self._eager = eager
        self._slots = slots
        self._put_aside: list[Slot] = []  # to be tried again
        # claimed, too few for a request: where requests begin does not depend on what is claimed at once
        self._rest: list[Slot] = []
        self._parts = [slots[i : i + size] for i in range(0, len(slots), size)][::-1]
        self._ready: Iterator[tuple[list[Slot], list[int]]] = iter(())
        self._claiming = asyncio.Lock()
        self._claimed: list[Slot] = []
        self.later: list[Slot] = []

    async def next(self) -> tuple[list[Slot], list[int]] | None:
        """The rows of the next request and the questions that it asks; None: there are no more in this round."""
        if self._eager:
            self.next_round()
        turn = next(self._ready, None)
        if turn is not None:
            return turn
        async with self._claiming:
            while (turn := next(self._ready, None)) is None:
                if not self._parts:
                    return None
                free = await self._free(self._parts.pop())
                self._put_aside += (slot for slot in free if slot.most)
                new = [*self._rest, *(slot for slot in free if not slot.most)]
                turns = list(_requests(new, self._mine, self._asking.together))
                is_short = self._parts and turns and len(turns[-1][0]) < self._asking.together
                self._rest = turns.pop()[0] if is_short else []
                self._ready = iter(turns)
            return turn

    def put_aside(self, slot: Slot) -> None:
        """Let a row be tried again in a later round."""
        self._put_aside.append(slot)

    def next_round(self) -> int:
        """Begin to send those rows again that have had the fewest calls; returns how many they are."""
        if not self._put_aside:
            return 0
        fewest = min(slot.calls for slot in self._put_aside)
        chosen = {id(slot) for slot in self._put_aside if slot.calls == fewest}
        self._put_aside = [slot for slot in self._put_aside if id(slot) not in chosen]
        in_order = [slot for slot in self._slots if id(slot) in chosen]
        self._ready = chain(_requests(in_order, self._mine, self._asking.together), self._ready)
        return len(in_order)

    async def _free(self, slots: list[Slot]) -> list[Slot]:
        """Those of some rows that are now this run's to ask."""
        claims = self._claims
        if claims is None:
            return slots
        keys = list(dict.fromkeys(k for slot in slots for k in slot.keys if self._mine.is_open(k)))
        single_keys = (
            list(dict.fromkeys(k for slot in slots for k in slot.single_keys)) if self._asking.together > 1 else []
        )
        status = await claims.take(keys, single_keys, waits=self._waits)
        free: list[Slot] = []
        answered: list[tuple[Slot, list[tuple[int, Answer]]]] = []
        columns = list(zip(*(slot.keys for slot in slots), strict=True))
        single_columns = list(zip(*(slot.single_keys for slot in slots), strict=True))
        by_key = {**status.answers, **{key: without_answer(one) for key, one in status.failed.items()}}
        known = zip(*known_answers(self._asking, columns, single_columns, by_key), strict=True)
        for slot, answers in zip(slots, known, strict=True):
            new = [(j, a) for j, a in enumerate(answers) if a is not None and self._mine.is_open(slot.keys[j])]
            own = [key for key, a in zip(slot.keys, answers, strict=True) if a is None and self._mine.is_open(key)]
            if not own:
                answered.append((slot, new))
                continue
            self._settle(slot, new)
            if status.others.isdisjoint(own):
                free.append(slot)
            else:
                self.later.append(slot)
                claims.release([key for key in own if key not in status.others])
        self._claimed += free
        if answered:
            beyond = await self._answered_elsewhere(self._asking, [slot for slot, _ in answered], status)
            for i, (slot, new) in enumerate(answered):
                self._settle(slot, [(j, REFUSED) for j, _ in new] if i in beyond else new)
        return free

    def _settle(self, slot: Slot, answers: list[tuple[int, Answer]]) -> None:
        for j, answer in answers:
            slot.answers[j] = answer
            self._mine.settle(slot.keys[j], answer)

    def end(self) -> None:
        """Let others have the rows that got no answer here."""
        if self._claims is not None:
            lost = [
                key
                for slot in self._claimed
                for key, single_key, answer in zip(slot.keys, slot.single_keys, slot.answers, strict=True)
                if key in self._mine and (answer is None or answer.problem is not None or key != single_key)
            ]
            self._claims.release(lost)


def _requests(slots: Iterable[Slot], mine: InFlight, together: int) -> Iterator[tuple[list[Slot], list[int]]]:
    """The rows of each request, and the questions that it asks; rows that share one are asked the same."""
    group: list[Slot] = []
    group_form: tuple[list[int], int] = [], 0
    for slot in slots:
        indices = [j for j, key in enumerate(slot.keys) if mine.is_open(key)]
        if not indices:
            continue
        most = min(slot.most or together, together)
        if slot.keys == slot.single_keys or most < 2:
            yield [slot], indices
            continue
        if group and (group_form != (indices, most) or len(group) == most):
            yield group, group_form[0]
            group = []
        group, group_form = [*group, slot], (indices, most)
    if group:
        yield group, group_form[0]


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
