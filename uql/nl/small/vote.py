"""A vote of candidates: equal rows, in any order of rows and columns, are one answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

LEAD = 0.5  # share of all votes from which a result leads
AGREE = 2  # weight of first results that are equal, from which no further ones are asked for
DIGITS = 6  # significant ones of a number
Key = tuple[tuple[str, ...], ...]  # the number of columns and what is read; then the rows


@dataclass(frozen=True, slots=True)
class Ballot:
    """One candidate in the vote: who gives it, the key of its result (None: it failed), and how much it counts."""

    name: str
    key: Key | None
    weight: float = 1.0


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

    leader: Ballot | None
    agree: int
    of: int
    share: float
    tied: bool = False
    others: tuple[Ballot, ...] = ()

    @property
    def leads(self) -> bool:
        """Has the leader half of the weight, and of the candidates?"""
        return self.leader is not None and self.share >= LEAD and 2 * self.agree >= self.of and not self.tied


def tally(ballots: Sequence[Ballot]) -> Vote:
    """The vote of the ballots, of equal results that of the first.

    >>> a, b = (("1",),), (("2",),)
    >>> vote = tally([Ballot("x", a), Ballot("y", b), Ballot("z", b), Ballot("w", None)])
    >>> vote.leader.name, vote.agree, vote.of, vote.share, vote.leads
    ('y', 2, 4, 0.5, True)
    """
    weights: dict[Key, float] = {}
    first: dict[Key, Ballot] = {}
    for ballot in ballots:
        if ballot.key is not None:
            weights[ballot.key] = weights.get(ballot.key, 0.0) + ballot.weight
            first.setdefault(ballot.key, ballot)
    if not weights:
        return Vote(None, 0, len(ballots), 0.0)
    best = max(weights, key=lambda key: weights[key])  # of equals the first
    whole = sum(ballot.weight for ballot in ballots)
    agree = sum(ballot.key == best for ballot in ballots)
    others = tuple(ballot for key, ballot in first.items() if key != best)
    tied = any(weights[key] == weights[best] for key in weights if key != best)
    return Vote(first[best], agree, len(ballots), weights[best] / whole, tied, others)


def is_settled(ballots: Sequence[Ballot], more: int) -> bool:
    """Do all so far agree, `AGREE` of them, or does one result lead whatever `more` further candidates say?

    Source of the early end: Aggarwal and others, "Let's sample step by step: adaptive-consistency" (2023).

    >>> a, b = Ballot("x", (("1",),)), Ballot("y", (("2",),))
    >>> is_settled([a, a], 3), is_settled([a, b, a], 2), is_settled([a, b, a, a], 1)
    (True, False, True)
    """
    if tally(ballots).share == 1.0 and sum(ballot.weight for ballot in ballots) >= AGREE:
        return True
    vote = tally([*ballots, *(Ballot("", None) for _ in range(more))])
    return vote.leader is not None and vote.share > LEAD


def key_of(table: pa.Table) -> Key:
    """The rows of a table such that equal rows in any order of rows and columns have one key. Numbers count to six digits.

    >>> import pyarrow as pa
    >>> one, other = pa.table({"a": [1, 2], "b": ["x", "y"]}), pa.table({"c": ["y", "x"], "d": [2.0, 1.0]})
    >>> key_of(one) == key_of(other), key_of(one) == key_of(one.slice(0, 1))
    (True, False)
    """
    columns = [[_cell(value) for value in column.to_pylist()] for column in table.columns]
    columns.sort(key=sorted)
    return (str(table.num_columns),), *sorted(zip(*columns, strict=True))


def is_empty(table: pa.Table) -> bool:
    """No rows, NULL alone, or one row of nothing but NULL and 0."""
    if table.num_rows == 1:
        return all(
            value is None or (isinstance(value, int | float) and value == 0) for value in table.to_pylist()[0].values()
        )
    return all(column.null_count == table.num_rows for column in table.columns)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float | Decimal):
        return f"{float(value):.{DIGITS}g}"
    return value.isoformat() if isinstance(value, date) else str(value)
