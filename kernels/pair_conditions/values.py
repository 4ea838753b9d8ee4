"""Values of an attribute of one row: named by the model, asked of each distinct row, compared pair by pair."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uql.compiler.syntax import Column
from uql.compiler.virtual import VirtualColumn
from uql.kernels.answers import Rids, RowError
from uql.kernels.base import Context
from uql.kernels.duck import quote
from uql.kernels.group_names import one_line
from uql.kernels.relation import Relation
from uql.llm.questions import NONE, Choice, Row, Write
from uql.sampling.base import Indices

SHOWN = 8  # rows in the request that names the attribute
MOST_VALUES = 12
SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "attribute": {"type": "string", "maxLength": 80},
            "values": {"type": "array", "items": {"type": "string", "maxLength": 40}, "maxItems": MOST_VALUES},
            "rule": {"type": "string", "enum": ["same", "different", "pairs"]},
            "pairs": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        },
        "required": ["attribute", "values", "rule", "pairs"],
        "additionalProperties": False,
    }
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """An attribute of one row, its values, and the pairs of values (left, right) for which the condition holds."""

    text: str
    values: tuple[str, ...]
    matches: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Side:
    """The rows of one table among the pairs: each distinct one once, and which of them each pair holds."""

    codes: Indices  # (pairs,)
    rows: tuple[Row, ...]  # (distinct,)

    @classmethod
    def of(cls, column: VirtualColumn, own: tuple[Column, ...], relation: Relation) -> Side:
        """The distinct rows of one side of the pairs.

        Args:
            column: the condition on pairs.
            own: the columns that it reads of this side.
        """
        part = replace(column, reads=own, holes=())  # the attribute's question has no holes: the values are shown
        select_list = ", ".join(quote(c.label) for c in part.inputs)
        codes = relation.each(f"system.main.dense_rank() OVER (ORDER BY {select_list}) - 1")
        _, first = np.unique(codes, return_index=True)
        return cls(codes, tuple(map(_same_name, relation.rows(first.astype(np.int64), [part]))))


def _same_name(row: Row) -> Row:
    """A row of one text without its column's name, which the model is not shown: the same text of both sides is asked once."""
    return replace(row, cells=(replace(row.cells[0], name="text"),)) if len(row.cells) == 1 else row


class AttributeValues:
    """The values of the attribute known so far."""

    def __init__(self, proposal: Proposal, sides: tuple[Side, ...], ctx: Context, source: str) -> None:
        self.proposal, self.sides, self.ctx, self.source = proposal, sides, ctx, source
        self.question = Choice(proposal.text, proposal.values, none_of_these=True)
        self.values: dict[Row, str | None] = {}
        self.rows_asked = 0

    async def pairs(self, rids: Rids) -> NDArray[np.int8]:
        """(n,) 1 where the attribute says that the condition holds, 0 where not, −1 where a row has no value."""
        rows = {side.rows[c]: None for side in self.sides for c in np.unique(side.codes[rids])}
        await self._ask([row for row in rows if row not in self.values and not row.is_null])
        matches = self.proposal.matches
        table = np.full((len(self.sides[0].rows), len(self.sides[1].rows)), -1, dtype=np.int8)
        side_values = [[self.values.get(row) for row in side.rows] for side in self.sides]
        places: list[dict[str, list[int]]] = []
        for values in side_values:
            by_value: dict[str, list[int]] = {}
            for i, value in enumerate(values):
                if value is not None and value != NONE:
                    by_value.setdefault(value, []).append(i)
            places.append(by_value)
        for one, left in places[0].items():
            for two, right in places[1].items():
                table[np.ix_(left, right)] = (one, two) in matches
        return table[self.sides[0].codes[rids], self.sides[1].codes[rids]]

    async def _ask(self, rows: list[Row]) -> None:
        """Asks these rows, but those whose text is itself one of the values."""
        by_name = {row: value_named(row, self.proposal.values) for row in rows}
        self.values |= {row: value for row, value in by_name.items() if value is not None}
        rows = [row for row, value in by_name.items() if value is None]
        if not rows:
            return
        self.rows_asked += len(rows)
        (answers,) = await self.ctx.ask([self.question], rows, self.source)
        for failure in answers.failures:
            if failure.kind not in ("budget", "interrupted"):
                self.ctx.errors.append(RowError(-1, self.question.text, failure.kind, failure.message, failure.raw))
        self.values.update(zip(rows, answers.values, strict=True))


def value_named(row: Row, values: Sequence[str]) -> str | None:
    """The value that the row's text itself is; None where the row shows more, or the text is none of the values.

    >>> from uql.llm.questions import Cell
    >>> value_named(Row((Cell("text", "Failed Transfer"),)), ("pin blocked", "failed transfer"))
    'failed transfer'
    >>> value_named(Row((Cell("text", "the transfer failed"),)), ("pin blocked", "failed transfer")) is None
    True
    """
    if len(row.cells) != 1 or not isinstance(text := row.cells[0].value, str):
        return None
    name = one_line(text).casefold()
    return next((value for value in values if value.casefold() == name), None)


async def propose(column: VirtualColumn, sides: tuple[Side, ...], source: str, ctx: Context) -> Proposal | None:
    """The attribute that decides a condition on pairs, as a model proposes it from rows of both sides.

    Args:
        column: the condition on pairs.
        sides: the distinct rows of each side.
        source: the table whose rows are shown, by which the ledger can forget the answer.
    Returns: None where the reply cannot be used.
    """
    examples: dict[Row, None] = {}
    for side in sides:
        picked = ctx.rng.choice(len(side.rows), min(SHOWN // 2, len(side.rows)), replace=False)
        examples.update(dict.fromkeys(side.rows[i] for i in sorted(picked) if not side.rows[i].is_null))
    return await propose_from(column, list(examples), source, ctx)


async def propose_from(column: VirtualColumn, rows: list[Row], source: str, ctx: Context) -> Proposal | None:
    """The same, from these rows.

    Args:
        column: the condition on pairs.
        rows: shown to the model as they are.
        source: the table that they come from.
    """
    question = Write(column.text, task="attribute", schema=SCHEMA, shown=tuple(rows), max_tokens=300)
    return read_proposal(await ctx.write(question, source=source, optional=True))


def read_proposal(reply: Any) -> Proposal | None:
    """The proposal in a reply; None where it names no attribute, or fewer than two values, or a rule without a pair.

    >>> read_proposal({"attribute": "colour", "values": ["red", "blue"], "rule": "different", "pairs": []}).matches == {
    ...     ("red", "blue"), ("blue", "red")}
    True

    Pairs that contradict a rule altogether are the rule: small models fill in "same" and then list what is opposite.

    >>> read_proposal({"attribute": "opinion", "values": ["for", "against"], "rule": "same", "pairs": [["for", "against"]]}).matches
    frozenset({('for', 'against')})
    """
    if not isinstance(reply, dict) or not isinstance(reply.get("attribute"), str):
        return None
    entries = reply.get("values")
    values = (
        tuple(dict.fromkeys(one_line(v) for v in entries if isinstance(v, str))) if isinstance(entries, list) else ()
    )
    values = tuple(v for v in values if v and v != NONE)[:MOST_VALUES]
    text, rule, listed = one_line(reply["attribute"]), reply.get("rule"), reply.get("pairs")
    name_pairs = [p for p in listed if isinstance(p, list) and len(p) == 2] if isinstance(listed, list) else []
    value_of = {v.casefold(): v for v in values}
    value_pairs = [(value_of.get(str(a).casefold()), value_of.get(str(b).casefold())) for a, b in name_pairs]
    pairs = {(a, b) for a, b in value_pairs if a is not None and b is not None}
    if rule in ("same", "different"):
        equal = rule == "same"
        if not pairs or any((a == b) == equal for a, b in pairs):  # else the pairs contradict the rule, and say more
            pairs = {(a, b) for a in values for b in values if (a == b) == equal}
    if not text or len(values) < 2 or not pairs:
        return None
    return Proposal(text, values, frozenset(pairs))
