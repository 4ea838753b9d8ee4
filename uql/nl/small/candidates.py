"""Candidates: several plans for one question, the first written greedily, the others drawn by chance.

Source: Wang and others, "Self-consistency improves chain of thought reasoning" (2023): samples that vote by their answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from uql.base.errors import ConfigError, QuestionError
from uql.nl.ask.context import AskContext, NodeEvent
from uql.nl.plan.dag import Node
from uql.nl.prompts import Wording
from uql.nl.schema.scope import Scope
from uql.nl.small.evidence import Evidence
from uql.nl.small.vote import Ballot, Key

if TYPE_CHECKING:
    import pyarrow as pa

TEMPERATURE = 0.7  # of all candidates but the first
LIGHT = 0.5  # how much one counts that gives no rows, or against which something speaks
SWITCHES: Mapping[str, str] = {
    "sampling": "one candidate of each kind instead of several",
    "slots": "no query with typed slots: no text or image is read",
    "statements": "no statement of plain SQL",
    "repair": "a candidate that fails does not go back with the error",
    "names": "the error does not name the nearest columns",
    "values": "a statement without rows is not tried with the nearest values",
    "types": "a statement that compares a text or an image votes",
    "hints": "the question does not say what oldest and youngest mean",
    "evidence": "nothing but a result without rows makes a candidate count less",
    "ties": "rows that tie with the last one shown are not told",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What all candidates for one question share.

    Attributes:
        ctx: the run, or the step of it that asks.
        scope: the tables that a prompt shows, results of earlier nodes among them.
        kept: nodes that have run.
        evidence: for and against candidates.
        without: mechanisms that are switched off (`SWITCHES`).
        plot: the question asks for a picture.
        why: what went wrong before; "" at first.
    """

    ctx: AskContext
    scope: Scope
    kept: tuple[Node, ...] = ()
    evidence: Evidence = field(default_factory=Evidence)
    without: frozenset[str] = frozenset()
    plot: bool = False
    why: str = ""

    def uses(self, mechanism: str) -> bool:
        return mechanism not in self.without


@dataclass(frozen=True, slots=True)
class Candidate:
    """One plan as it was written, and what became of it.

    Attributes:
        name: of the step that wrote it.
        text: the statement of SQL or UQL.
        key: what it votes for; None: it failed, for the `problem`.
        table: its rows, where it has run.
        empty: it gives no rows, or NULL alone.
        reads: a text or an image is read: it is no candidate of plain columns.
        nothing: it says that nothing is to be read, and gives no plan.
        against: what the evidence has against it.
    """

    name: str
    text: str = ""
    key: Key | None = None
    problem: str = ""
    table: pa.Table | None = None
    empty: bool = False
    reads: bool = False
    nothing: bool = False
    against: tuple[str, ...] = ()

    @property
    def weight(self) -> float:
        return (LIGHT if self.empty else 1.0) * (LIGHT if self.against else 1.0)

    @property
    def ballot(self) -> Ballot:
        return Ballot(self.name, self.key, self.weight if self.key is not None else 1.0)


class Writer(ABC):
    """Has a model write candidates of one kind; one that fails goes back once with what is wrong."""

    kind = ""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.found: list[Candidate] = []
        self._made: dict[str, Candidate] = {}  # by reply

    async def write(self) -> Candidate:
        """One more candidate. Raises BudgetError."""
        n = len(self.found)
        ctx, name = self.asked.ctx, f"{self.kind}{n + 1}"
        step = ctx.step(name)
        ctx.emit(NodeEvent(name, "start", "a candidate that votes"))
        try:
            made = replace(await self._written(step, n), name=name)
        except QuestionError as error:
            made = Candidate(name, problem=error.message)
        finally:
            ctx.prompts += step.prompts
        ctx.emit(NodeEvent(name, "failed" if made.problem else "done", made.problem or made.text))
        self.found.append(made)
        return made

    async def _written(self, step: AskContext, n: int) -> Candidate:
        reply = str(await step.say(self.wording(n, None)))
        if reply not in self._made:
            made = await self.read(reply)
            if made.problem and self.asked.uses("repair"):
                made = await self.read(str(await step.say(self.wording(n, (reply.strip()[:1_000], made.problem)))))
            self._made[reply] = made
        return self._made[reply]

    @abstractmethod
    def wording(self, n: int, failure: tuple[str, str] | None) -> Wording:
        """The request for the candidate of this number, or after a failure (a reply and what is wrong with it) for a better one."""

    @abstractmethod
    async def read(self, reply: str) -> Candidate:
        """What a reply gives; its `problem` says what is wrong with it."""


def switched_off(names: str | Collection[str]) -> frozenset[str]:
    """The mechanisms of `without`. Raises ConfigError for one that is not there."""
    given = frozenset((names,) if isinstance(names, str) else names)
    if unknown := sorted(given - set(SWITCHES)):
        raise ConfigError(f"without = {unknown[0]!r} is not possible", help=f"without: {', '.join(SWITCHES)}")
    return given


def ballots(candidates: Sequence[Candidate]) -> list[Ballot]:
    return [candidate.ballot for candidate in candidates]
