"""The 'attribute' method of joins: a condition on two rows, decided from one attribute of each row.

n + m calls in place of n · m: the model names an attribute with its possible values and says which pairs of values match; every
distinct row is classified once, and pairs are joined by value. Before anything relies on it, random pairs are asked outright and
compared with what the attribute says; what was found is checked again on pairs that it says match.

A small model cannot be the judge of that: what it says of two texts side by side is near chance. Where a condition says by its words
that an attribute of both is the same or not (`stated`), such a model is asked for the attribute in place of the pairs, and what is
checked is that the attribute has few values: from other rows the model must name the same ones, and nearly every row must have one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uql.compiler.physical import Stage
from uql.compiler.stated import Stated, stated
from uql.compiler.syntax import Column
from uql.compiler.virtual import Kind, VirtualColumn
from uql.kernels import contrast
from uql.kernels.base import Context, Relation, Rids, RowError
from uql.kernels.duck import quote
from uql.kernels.labels import one_line, stem
from uql.llm.questions import NONE, Choice, Row, Write
from uql.sampling.intervals import clopper_pearson

METHOD = "attribute"
RANDOM_PAIRS = 32  # asked outright, to see whether the attribute decides the condition
FOUND_PAIRS = 32  # that the attribute says match, asked outright
LEAST_AGREEMENT = (
    0.75  # a right attribute reaches it with a model that is wrong one time in ten; a wrong one of two values has 0.5
)
SHOWN = 8  # rows in the request that names the attribute
MOST_VALUES = 12
LEAST_WITH_VALUE = 0.8  # of the rows: where fewer have one of the values, they are not all there are
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


async def by_attribute(column: VirtualColumn, relation: Relation, ctx: Context) -> bool:
    """Answers a condition for all pairs of the relation from one attribute a side; False where that is not to be relied on.

    Tried where the distinct pairs do not fit in the budget and the distinct rows do, or `method = 'attribute'` asks for it. The result
    is then not exact, and a note gives the agreement measured. Pairs asked outright keep their own answers; those with a row that has
    none of the values are asked outright too, or are unknown where the budget does not reach them. Where the answers to pairs do not
    agree with the attribute, but the model's log-odds rank pairs as it does, it leans to one answer: then the attribute decides them all.
    """
    named = await _named(column, ctx)
    sides_of = _sides_of(column, named is not None)
    if not relation.n or sides_of is None:
        return False
    if named is None and ctx.settings.method != METHOD and ctx.fits(relation.calls((Stage((column,)),))):
        return False
    sides = (_Side.of(column, sides_of[0], relation), _Side.of(column, sides_of[1], relation))
    rows = set(sides[0].rows) | set(sides[1].rows)
    if named is not None:
        return await _by_its_words(column, named, sides, relation, ctx)
    check = min(RANDOM_PAIRS + FOUND_PAIRS, relation.n)
    if not ctx.fits(1 + len(rows) + check):
        return False
    proposal = await _propose(column, sides, relation.source, ctx)
    if proposal is None:
        return False
    asked = _Asked(proposal, sides, ctx, relation.source)
    drawn = np.sort(ctx.rng.choice(relation.n, min(RANDOM_PAIRS, relation.n), replace=False)).astype(np.int64)
    agreed, n = await _agreement(column, asked, drawn, relation, ctx)
    ranked = None
    if n == 0 or agreed < LEAST_AGREEMENT * n:
        ranked = await _ranked(column, asked, relation, ctx)
        if ranked is None or ranked < LEAST_AGREEMENT:
            ctx.notes.append(f'"{proposal.text}" does not decide "{column.text}": {agreed} of {n} random pairs agree')
            return False
    said = await asked.pairs(np.arange(relation.n, dtype=np.int64))
    yes = np.flatnonzero((said == 1) & ~relation.asked[column.id])
    confirmed, m = 0, 0
    if len(yes) and ranked is None:
        some = np.sort(ctx.rng.choice(yes, min(FOUND_PAIRS, len(yes)), replace=False)).astype(np.int64)
        confirmed, m = await _agreement(column, asked, some, relation, ctx)
        if confirmed < LEAST_AGREEMENT * m:
            ctx.notes.append(f'"{proposal.text}" does not decide "{column.text}": {confirmed} of {m} pairs found hold')
            return False
    fill = (said >= 0) & (~relation.asked[column.id] | (ranked is not None))
    relation.values[column.id][fill] = (said[fill] == 1).astype(object)
    relation.asked[column.id] |= fill
    ctx.exact = ctx.exact and not fill.any()
    await _ask_or_leave(column, np.flatnonzero(~relation.asked[column.id]).astype(np.int64), relation, ctx)
    if fill.any():
        level = ctx.settings.confidence
        low, high = clopper_pearson(agreed, n, level) if n else (0.0, 1.0)
        ctx.notes.append(
            f'"{column.text}" was decided from "{proposal.text}" of each row: {agreed} of {n} random pairs asked outright agree '
            f"({level:.0%}: {low:.1%}–{high:.1%})"
            + (f", {confirmed} of {m} pairs that match were confirmed" if m else "")
            + (
                ""
                if ranked is None
                else f"; the model leans one way for pairs, but ranks them alike (AUC {ranked:.2f})"
            )
        )
    return True


async def preferred(column: VirtualColumn, ctx: Context) -> bool:
    """Is an attribute tried before any pair is asked? Where the query says so, or the condition's words do to a small model."""
    return ctx.settings.method == METHOD or await _named(column, ctx) is not None


async def warn(columns: Sequence[VirtualColumn], ctx: Context) -> None:
    """Notes the comparisons of two texts of which pairs are asked outright, though the model is near chance at it."""
    for column in columns:
        if await _named(column, ctx) is not None:
            ctx.notes.append(
                f'"{column.text}" was asked of pairs, and this model is near chance on two texts side by side: a query that lists the '
                "pairs decides it from the attribute of each row"
            )


async def _named(column: VirtualColumn, ctx: Context) -> Stated | None:
    """The comparison that the condition is by its words, where the model cannot weigh two texts; None where pairs are to be asked."""
    found = stated(column.text) if column.kind is Kind.CONDITION else None
    if found is None or ctx.settings.exact or ctx.settings.method not in (None, METHOD):
        return None
    return None if (await ctx.gate.provider()).capabilities.weighs_pairs else found


async def _by_its_words(
    column: VirtualColumn, named: Stated, sides: tuple[_Side, _Side], relation: Relation, ctx: Context
) -> bool:
    """Answers a condition that compares one attribute of two texts from that attribute; False where it has not few values."""
    rows = list(dict.fromkeys(row for side in sides for row in side.rows if not row.is_null))
    if len(rows) < 2 or not ctx.fits(2 + len(rows)):
        return False
    order = [rows[i] for i in ctx.rng.permutation(len(rows))]
    first = await _propose_from(column, order[:SHOWN], relation.source, ctx)
    if first is None:
        return False
    again = await _propose_from(column, order[SHOWN : 2 * SHOWN] or order[:SHOWN], relation.source, ctx)
    values = _few(first, again)
    if values is None:
        ctx.notes.append(f'"{named.attribute}" has more values than were seen: pairs are asked outright')
        return False
    listed = {pair for pair in first.matches if set(pair) <= set(values)}
    proposal = Proposal(named.attribute, values, named.matches(values, listed))
    asked = _Asked(proposal, sides, ctx, relation.source)
    said = await asked.pairs(np.arange(relation.n, dtype=np.int64))
    told = [asked.values.get(row) for row in rows]
    without = sum(value is None or value == NONE for value in told)
    if len(rows) - without < LEAST_WITH_VALUE * len(rows):
        ctx.notes.append(
            f'"{column.text}": {without:,} of {len(rows):,} rows have none of the values of "{proposal.text}" '
            f"({', '.join(values)}): pairs are asked outright"
        )
        return False
    relation.know(column)
    fill = (said >= 0) & ~relation.asked[column.id]
    relation.values[column.id][fill] = (said[fill] == 1).astype(object)
    relation.probabilities[column.id][fill] = asked.likely(np.flatnonzero(fill).astype(np.int64))
    relation.asked[column.id] |= fill
    ctx.exact = ctx.exact and not fill.any()
    await _ask_or_leave(column, np.flatnonzero(~relation.asked[column.id]).astype(np.int64), relation, ctx)
    ctx.notes.append(
        f'"{column.text}" was decided from "{proposal.text}" ({", ".join(values)}) of each row, as it says: this model '
        "is near chance where it has to weigh two texts"
    )
    return True


def _few(first: Proposal, again: Proposal | None) -> tuple[str, ...] | None:
    """The values of both proposals, where at least half of the ones named from other rows were known already; None else.

    >>> def of(*values: str) -> Proposal:
    ...     return Proposal("x", values, frozenset())
    >>> _few(of("good", "bad"), of("Bad", "mixed")), _few(of("Ann", "Bo"), of("Cy", "Di", "Bo"))
    (('good', 'bad', 'mixed'), None)
    """
    if again is None:
        return None
    known = {stem(value) for value in first.values}
    new = [value for value in again.values if stem(value) not in known]
    if 2 * len(new) > len(again.values):
        return None
    return (*first.values, *new)[:MOST_VALUES]


async def _ranked(column: VirtualColumn, asked: _Asked, relation: Relation, ctx: Context) -> float | None:
    """How well the model's own log-odds rank a block of pairs as the attribute does; None where that cannot be told."""
    first, second = (side.codes for side in asked.sides)
    some = contrast.block(first, second, ctx.rng)
    texts = {side.rows[c] for side in asked.sides for c in side.codes[some]}
    missing = sum(row not in asked.values and not row.is_null for row in texts)
    if len(some) < contrast.LEAST_PAIRS or not ctx.fits(missing + len(some)):
        return None
    said = await asked.pairs(some)
    await relation.ask(Stage((column,)), some, ctx)
    p = relation.probabilities[column.id][some].astype(np.float64)
    told = (said >= 0) & ~np.isnan(p)
    return contrast.rank_agreement(p[told], first[some][told], second[some][told], said[told] == 1)


async def _ask_or_leave(column: VirtualColumn, rids: Rids, relation: Relation, ctx: Context) -> None:
    """Pairs with a row that has none of the values: asked outright where all fit in the budget, else unknown."""
    stage = Stage((column,))
    if not len(rids):
        return
    if ctx.fits(relation.calls((stage,), rids)):
        await relation.ask(stage, rids, ctx)
        return
    relation.asked[column.id][rids] = True
    relation.failed[column.id][rids] = True
    ctx.notes.append(f'"{column.text}": {len(rids):,} pairs have a row with none of the values, and are unknown')


def _columns(column: VirtualColumn) -> tuple[Column, ...]:
    return (*column.reads, *column.holes)


def _sides_of(column: VirtualColumn, named: bool) -> tuple[tuple[Column, ...], tuple[Column, ...]] | None:
    """The columns of both sides: those of two tables, or the two of one table that a comparison by its words names."""
    own = tuple(dict.fromkeys(_columns(column)))
    if column.is_pair_condition:
        one, two = dict.fromkeys(c.table for c in own)
        return tuple(c for c in own if c.table == one), tuple(c for c in own if c.table == two)
    if not named or column.kind is not Kind.CONDITION or len(column.reads) != 2 or column.holes:
        return None
    return (own[0],), (own[1],)


@dataclass(frozen=True, slots=True)
class _Side:
    """The rows of one table among the pairs: each distinct one once, and which of them each pair holds."""

    codes: NDArray[np.int64]  # (pairs,)
    rows: tuple[Row, ...]  # (distinct,)

    @classmethod
    def of(cls, column: VirtualColumn, own: tuple[Column, ...], relation: Relation) -> _Side:
        part = replace(column, reads=own, holes=())  # the attribute's question has no holes: the values are shown
        shown = ", ".join(quote(c.label) for c in _columns(part))
        found = relation.duck.arrow(
            f"SELECT dense_rank() OVER (ORDER BY {shown}) - 1 AS g FROM {quote(relation.name)} ORDER BY rowid"
        )
        codes = np.asarray(found.column(0).to_numpy(), dtype=np.int64)
        _, first = np.unique(codes, return_index=True)
        return cls(codes, tuple(map(_same_name, relation.rows(first.astype(np.int64), [part]))))


def _same_name(row: Row) -> Row:
    """A row of one text without its column's name, which the model is not shown: the same text of both sides is asked once."""
    return replace(row, cells=(replace(row.cells[0], name="text"),)) if len(row.cells) == 1 else row


class _Asked:
    """The values of the attribute known so far."""

    def __init__(self, proposal: Proposal, sides: tuple[_Side, ...], ctx: Context, source: str) -> None:
        self.proposal, self.sides, self.ctx, self.source = proposal, sides, ctx, source
        self.question = Choice(proposal.text, proposal.values, none_of_these=True)
        self.values: dict[Row, str | None] = {}
        self.shares: dict[Row, NDArray[np.float64]] = {}  # (values,) probability of each, where known

    async def pairs(self, rids: Rids) -> NDArray[np.int8]:
        """(n,) 1 where the attribute says that the condition holds, 0 where not, −1 where a row has no value."""
        wanted = {side.rows[c]: None for side in self.sides for c in np.unique(side.codes[rids])}
        await self._ask([row for row in wanted if row not in self.values and not row.is_null])
        matches = self.proposal.matches
        table = np.full((len(self.sides[0].rows), len(self.sides[1].rows)), -1, dtype=np.int8)
        held = [[self.values.get(row) for row in side.rows] for side in self.sides]
        places: list[dict[str, list[int]]] = []
        for values in held:
            by_value: dict[str, list[int]] = {}
            for i, value in enumerate(values):
                if value is not None and value != NONE:
                    by_value.setdefault(value, []).append(i)
            places.append(by_value)
        for one, left in places[0].items():
            for two, right in places[1].items():
                table[np.ix_(left, right)] = (one, two) in matches
        found: NDArray[np.int8] = table[self.sides[0].codes[rids], self.sides[1].codes[rids]]
        return found

    async def _ask(self, rows: list[Row]) -> None:
        if not rows:
            return
        (answers,) = await self.ctx.ask([self.question], rows, self.source)
        for failure in answers.failures:
            if failure.kind not in ("budget", "interrupted"):
                self.ctx.errors.append(RowError(-1, self.question.text, failure.kind, failure.message, failure.raw))
        self.values.update(zip(rows, answers.values, strict=True))
        if answers.distributions is not None:
            self.shares.update(zip(rows, answers.distributions[:, : len(self.proposal.values)], strict=True))

    def likely(self, rids: Rids) -> NDArray[np.float64]:
        """(n,) the probability that the condition holds of these pairs, both values taken as independent; NaN where unknown."""
        values = self.proposal.values
        unknown = np.full(len(values), np.nan)
        left, right = (np.array([self.shares.get(row, unknown) for row in side.rows]) for side in self.sides)
        rule = np.array([[(one, two) in self.proposal.matches for two in values] for one in values], dtype=np.float64)
        found: NDArray[np.float64] = (left @ rule @ right.T)[self.sides[0].codes[rids], self.sides[1].codes[rids]]
        return found


async def _agreement(
    column: VirtualColumn, asked: _Asked, rids: Rids, relation: Relation, ctx: Context
) -> tuple[int, int]:
    """Asks these pairs outright: how many the attribute gets right, of how many that have both answers."""
    said = await asked.pairs(rids)
    await relation.ask(Stage((column,)), rids, ctx)
    answers = relation.values[column.id][rids]
    both = np.array([v is not None for v in answers], dtype=bool) & (said >= 0)
    right = [bool(v) == bool(s) for v, s in zip(answers[both], said[both], strict=True)]
    return sum(right), int(both.sum())


async def _propose(column: VirtualColumn, sides: tuple[_Side, ...], source: str, ctx: Context) -> Proposal | None:
    shown: dict[Row, None] = {}
    for side in sides:
        picked = ctx.rng.choice(len(side.rows), min(SHOWN // 2, len(side.rows)), replace=False)
        shown.update(dict.fromkeys(side.rows[i] for i in sorted(picked) if not side.rows[i].is_null))
    return await _propose_from(column, list(shown), source, ctx)


async def _propose_from(column: VirtualColumn, rows: list[Row], source: str, ctx: Context) -> Proposal | None:
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
    held = reply.get("values")
    values = tuple(dict.fromkeys(one_line(v) for v in held if isinstance(v, str))) if isinstance(held, list) else ()
    values = tuple(v for v in values if v and v != NONE)[:MOST_VALUES]
    text, rule, listed = one_line(reply["attribute"]), reply.get("rule"), reply.get("pairs")
    given = [p for p in listed if isinstance(p, list) and len(p) == 2] if isinstance(listed, list) else []
    named = {v.casefold(): v for v in values}
    found = [(named.get(str(a).casefold()), named.get(str(b).casefold())) for a, b in given]
    pairs = {(a, b) for a, b in found if a is not None and b is not None}
    if rule in ("same", "different"):
        equal = rule == "same"
        if not pairs or any((a == b) == equal for a, b in pairs):  # else the pairs contradict the rule, and say more
            pairs = {(a, b) for a in values for b in values if (a == b) == equal}
    if not text or len(values) < 2 or not pairs:
        return None
    return Proposal(text, values, frozenset(pairs))
