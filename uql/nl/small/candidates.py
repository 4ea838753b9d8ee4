"""What the candidates for one question share: several plans, the first written greedily, the others by chance.

Source: Wang and others, "Self-consistency improves chain of thought reasoning" (2023): samples that vote by their answers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from uql.base.errors import ConfigError
from uql.nl.ask.context import AskContext
from uql.nl.plan.dag import Node
from uql.nl.schema.scope import Scope

TEMPERATURE = 0.7  # of all candidates but the first
SWITCHES: Mapping[str, str] = {
    "sampling": "one candidate instead of several",
    "reading": "no column is read from a text or an image",
    "foreign": "columns are read only where a plain statement fails",
    "repair": "a reply that fails does not go back with the error",
    "meant": "statements are taken by the letter",
    "examples": "no worked examples in the prompt",
    "empty": "a result without rows counts as much as any other",
    "ties": "rows that tie with the last one shown are not told",
}


@dataclass(frozen=True, slots=True)
class CandidateContext:
    """What all candidates for one question share.

    Attributes:
        ctx: the run, or the step of it that asks.
        scope: the tables that a prompt shows, results of earlier nodes among them.
        done_nodes: nodes that have run.
        without: mechanisms that are switched off (`SWITCHES`).
        plot: the question asks for a picture.
        why: what went wrong before; "" at first.
    """

    ctx: AskContext
    scope: Scope
    done_nodes: tuple[Node, ...] = ()
    without: frozenset[str] = frozenset()
    plot: bool = False
    why: str = ""

    def uses(self, mechanism: str) -> bool:
        return mechanism not in self.without


def switched_off(names: str | Collection[str]) -> frozenset[str]:
    """The mechanisms of `without`. Raises ConfigError for one that is not there."""
    switches = frozenset((names,) if isinstance(names, str) else names)
    if unknown := sorted(switches - set(SWITCHES)):
        raise ConfigError(f"without = {unknown[0]!r} is not possible", help=f"without: {', '.join(SWITCHES)}")
    return switches
