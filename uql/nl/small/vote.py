"""What the candidates for one question share, and their vote: equal rows, in any order of rows and columns, are one answer.

Source: Wang and others, "Self-consistency improves chain of thought reasoning" (2023): samples that vote by their answers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from uql.base.arrow_values import cells_of, rows_of
from uql.base.errors import ConfigError
from uql.nl.ask.context import AskContext
from uql.nl.plan.dag import Node
from uql.nl.schema.scope import Scope

if TYPE_CHECKING:
    import pyarrow as pa

LIGHT = 0.5  # how much one counts that gives no rows
LEAD = 0.5  # share of all votes from which a result leads
AGREE = 2  # weight of first results that are equal, from which no further ones are asked for
DIGITS = 6  # significant ones of a number
Key = tuple[tuple[str, ...], ...]  # the number of columns and what is read; then the rows


@dataclass(frozen=True, slots=True)
class Candidate:
    """One plan as it was written, and what became of it.

    Attributes:
        name: of the step that wrote it.
        text: the statement of SQL or UQL.
        key: what it votes for; None: it failed, for the `problem`.
        table: its rows, where it has run.
        empty: it gives no rows, or NULL alone.
        reads: a text or an image is read.
    """

    name: str
    text: str = ""
    key: Key | None = None
    problem: str = ""
    table: pa.Table | None = None
    empty: bool = False
    reads: bool = False

    @property
    def weight(self) -> float:
        """How much its vote counts, also where it failed."""
        return LIGHT if self.empty else 1.0


@dataclass(frozen=True, slots=True)
class Vote:
    """What the candidates say together.

    Attributes:
        leader: the first candidate with the result of the greatest weight; None: all failed.
        agree: how many candidates have that result, of `of`, the failed ones among them.
        share: weight of that result in the weight of all.
        tied: another result has the same weight.
        others: the first candidate of each other result.
    """

    leader: Candidate | None
    agree: int
    of: int
    share: float
    tied: bool = False
    others: tuple[Candidate, ...] = ()

    @property
    def leads(self) -> bool:
        """Has the leader half of the weight, and of the candidates?"""
        return self.leader is not None and self.share >= LEAD and 2 * self.agree >= self.of and not self.tied


def tally(candidates: Sequence[Candidate]) -> Vote:
    """The vote of the candidates, of equal results that of the first.

    >>> a, b = (("1",),), (("2",),)
    >>> vote = tally([Candidate("x", key=a), Candidate("y", key=b), Candidate("z", key=b), Candidate("w")])
    >>> vote.leader.name, vote.agree, vote.of, vote.share, vote.leads
    ('y', 2, 4, 0.5, True)
    """
    weights: dict[Key, float] = {}
    first: dict[Key, Candidate] = {}
    for candidate in candidates:
        if candidate.key is not None:
            weights[candidate.key] = weights.get(candidate.key, 0.0) + candidate.weight
            first.setdefault(candidate.key, candidate)
    if not weights:
        return Vote(None, 0, len(candidates), 0.0)
    best = max(weights, key=lambda key: weights[key])  # of equals the first
    whole = sum(candidate.weight for candidate in candidates)
    agree = sum(candidate.key == best for candidate in candidates)
    others = tuple(candidate for key, candidate in first.items() if key != best)
    tied = any(weights[key] == weights[best] for key in weights if key != best)
    return Vote(first[best], agree, len(candidates), weights[best] / whole, tied, others)


def is_settled(candidates: Sequence[Candidate], more: int) -> bool:
    """Do all so far agree, `AGREE` of them, or does one result lead whatever `more` further candidates say?

    Source of the early end: Aggarwal and others, "Let's sample step by step: adaptive-consistency" (2023).

    >>> a, b = Candidate("x", key=(("1",),)), Candidate("y", key=(("2",),))
    >>> is_settled([a, a], 3), is_settled([a, b, a], 2), is_settled([a, b, a, a], 1)
    (True, False, True)
    """
    if tally(candidates).share == 1.0 and sum(candidate.weight for candidate in candidates) >= AGREE:
        return True
    vote = tally([*candidates, *(Candidate("") for _ in range(more))])
    return vote.leader is not None and vote.share > LEAD


def key_of(table: pa.Table) -> Key:
    """The rows of a table such that equal rows in any order of rows and columns have one key. Numbers count to six digits.

    >>> import pyarrow as pa
    >>> one, other = pa.table({"a": [1, 2], "b": ["x", "y"]}), pa.table({"c": ["y", "x"], "d": [2.0, 1.0]})
    >>> key_of(one) == key_of(other), key_of(one) == key_of(one.slice(0, 1))
    (True, False)
    """
    columns = [[_cell(value) for value in cells_of(column)] for column in table.columns]
    columns.sort(key=sorted)
    return (str(table.num_columns),), *sorted(zip(*columns, strict=True))


def is_empty(table: pa.Table) -> bool:
    """No rows, NULL alone, or one row of nothing but NULL and 0."""
    if table.num_rows == 1:
        return all(
            value is None or (isinstance(value, int | float) and value == 0) for value in rows_of(table)[0].values()
        )
    return all(column.null_count == table.num_rows for column in table.columns)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float | Decimal):
        return f"{float(value):.{DIGITS}g}"
    return value.isoformat() if isinstance(value, date) else str(value)


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
