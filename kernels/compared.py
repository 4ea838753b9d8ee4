"""Comparisons of two texts by one attribute of each: "{a.text} and {b.text} have the same topic", for models that cannot weigh two texts.

Such a model reads one text well and is near chance where it has to weigh two. What it is asked is therefore the attribute of each row,
n + m calls in place of n · m, and code compares the answers. The model names the values from some rows and again from others:

- it names the same ones: there are few (moods, opinions), and each row is asked which of them it has;
- it names others, and they stand in the rows word for word (owners, products): each row is asked for its own, in its words;
- it names others, in words of its own (topics, reasons): all that were named, near-duplicates merged, are the values, and rows near in
  meaning make the answers steadier (`alike`).

Rows are asked as pairs need them: all at once where they fit in the budget, else as a sample or a search comes to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uql.compiler.formula import FALSE, NULL, TRUE, UNKNOWN, Masks
from uql.compiler.stated import Stated
from uql.compiler.virtual import VirtualColumn
from uql.kernels import alike
from uql.kernels.base import Context, Relation, Rids, RowError
from uql.kernels.labels import stem
from uql.kernels.merge import duplicates
from uql.kernels.values import MOST_VALUES, SHOWN, Proposal, Side, propose_from
from uql.llm.questions import NONE, Choice, Extract, Question, Row

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST_ROWS = 4  # that the budget must leave after the values are named
WORD_FOR_WORD = 0.6  # of the values named, that stand in the rows shown: then every row is asked for its own


@dataclass(frozen=True, slots=True)
class Values:
    """What each row is asked, and the pairs of values (left, right) for which the condition holds."""

    text: str
    labels: tuple[str, ...]  # empty: each row's own words
    matches: frozenset[tuple[str, str]]
    rule: str  # same, different or opposite
    near: bool = False  # rows near in meaning mostly share them: they make each other's answers steadier

    @property
    def question(self) -> Question:
        return Choice(self.text, self.labels, none_of_these=True) if self.labels else Extract(self.text, "VARCHAR")

    @property
    def said(self) -> str:
        return ", ".join(self.labels) if self.labels else "in its own words"


async def compare(
    column: VirtualColumn, named: Stated, sides: tuple[Side, Side], relation: Relation, ctx: Context
) -> bool:
    """Lets a condition be answered from the attribute that it compares; False where the budget or the model does not allow it.

    The result is then not exact, and a note says from what it was told.
    """
    rows = list(dict.fromkeys(row for side in sides for row in side.rows if not row.is_null))
    if len(rows) < 2:
        return False
    values = await named_values(column, named, rows, relation.source, ctx)
    if values is None:
        ctx.notes.append(f'the model named no values of "{named.attribute}": pairs are asked outright')
        return False
    relation.know(column)
    way = Compared(column, values, sides, rows, relation)
    relation.derived[column.id] = way
    ctx.exact = False
    if not relation.stops and ctx.fits(way.calls(None)):
        await way.answer(np.flatnonzero(~relation.asked[column.id]).astype(np.int64), ctx)
    return True


async def named_values(
    column: VirtualColumn, named: Stated, rows: Sequence[Row], source: str, ctx: Context
) -> Values | None:
    """What to ask of each row: two or three calls. None where they do not fit, or the model names nothing."""
    order = [rows[i] for i in ctx.rng.permutation(len(rows))]
    shown, others = order[:SHOWN], order[SHOWN : 2 * SHOWN] or order[:SHOWN]
    if not ctx.fits(2 + min(len(rows), FEWEST_ROWS)):
        return None
    first = await propose_from(column, shown, source, ctx)
    if first is None:
        return None
    again = await propose_from(column, others, source, ctx)
    values = few(first, again)
    if values is not None:
        listed = {pair for pair in first.matches if set(pair) <= set(values)}
        return Values(named.attribute, values, named.matches(values, listed), named.rule)
    every = (*first.values, *(again.values if again is not None else ()))
    if again is not None and named.rule != "opposite" and _word_for_word(every, [*shown, *others]) >= WORD_FOR_WORD:
        return Values(named.attribute, (), frozenset(), named.rule)
    values = await _merged(column, every, source, ctx)
    return Values(named.attribute, values, named.matches(values, ()), named.rule, near=True)


def few(first: Proposal, again: Proposal | None) -> tuple[str, ...] | None:
    """The values of both proposals, where at least half of the ones named from other rows were known already; None else.

    >>> def of(*values: str) -> Proposal:
    ...     return Proposal("x", values, frozenset())
    >>> few(of("good", "bad"), of("Bad", "mixed")), few(of("Ann", "Bo"), of("Cy", "Di", "Bo"))
    (('good', 'bad', 'mixed'), None)
    """
    if again is None:
        return None
    known = {stem(value) for value in first.values}
    new = [value for value in again.values if stem(value) not in known]
    if 2 * len(new) > len(again.values):
        return None
    return (*first.values, *new)[:MOST_VALUES]


def _word_for_word(values: Sequence[str], rows: Sequence[Row]) -> float:
    """The share of the values that stand in the rows as words."""
    texts = f" {stem(' '.join(str(cell.value) for row in rows for cell in row.cells))} "
    keys = {stem(value) for value in values}
    return sum(f" {key} " in texts for key in keys) / max(1, len(keys))


async def _merged(column: VirtualColumn, values: Sequence[str], source: str, ctx: Context) -> tuple[str, ...]:
    """The values without those that mean what one before them means."""
    distinct = tuple({stem(value): value for value in reversed(values)}.values())[::-1]
    gone = await duplicates(column, (), distinct, source, ctx)
    return tuple(value for value in distinct if value not in gone)


class Compared:
    """Answers a comparison for the pairs of a relation, as they are asked for, from what is known of their rows."""

    def __init__(
        self,
        column: VirtualColumn,
        values: Values,
        sides: tuple[Side, Side],
        rows: Sequence[Row],
        relation: Relation,
    ) -> None:
        self.column, self.values, self.rows, self.relation = column, values, rows, relation
        place = {row: i for i, row in enumerate(rows)}
        own = [np.array([place.get(row, -1) for row in side.rows], dtype=np.int64) for side in sides]
        self.left, self.right = (codes[side.codes] for codes, side in zip(own, sides, strict=True))  # (pairs,) −1: NULL
        n = len(rows)
        self.told = np.zeros(n, dtype=bool)  # was asked, and answered or failed
        self.shares = np.full((n, len(values.labels) + 1), np.nan)  # of each label and of none of them
        self.own: list[str | None] = [None] * n
        self._made: Floats | None = None  # the chances of the values, of the rows told so far
        self.wrong: float | None = None
        labels = values.labels
        options = (*labels, NONE)  # a row with none of the values differs from one that has a value
        self.rule = np.array([[(a, b) in values.matches for b in options] for a in options], dtype=bool)
        if values.rule == "different":
            self.rule[-1, :-1] = self.rule[:-1, -1] = True

    def calls(self, rids: Rids | None) -> int:
        """The rows behind these pairs that were not asked."""
        left, right = (self.left, self.right) if rids is None else (self.left[rids], self.right[rids])
        return len(self._open(left, right))

    def _open(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
        both = (left >= 0) & (right >= 0)
        wanted = np.unique(np.concatenate([left[both], right[both]]))
        return wanted[~self.told[wanted]]

    async def answer(self, rids: Rids, ctx: Context) -> None:
        """Fills in the values of these pairs; those whose rows the budget did not reach stay unasked."""
        if not len(rids):
            return
        await self._ask(self._open(self.left[rids], self.right[rids]), ctx)
        left, right = self.left[rids], self.right[rids]
        null = (left < 0) | (right < 0)
        fill = null | (self.told[left] & self.told[right])
        rids, left, right, null = rids[fill], left[fill], right[fill], null[fill]
        chance, holds = self._chances(left, right, ctx)
        unknown = null | np.isnan(chance)
        relation, column = self.relation, self.column.id
        held = holds.astype(object)
        held[unknown] = None
        relation.values[column][rids] = held
        relation.probabilities[column][rids] = np.where(null, np.nan, chance)
        relation.failed[column][rids] = unknown & ~null
        relation.asked[column][rids] = True
        self._note(ctx)

    async def _ask(self, wanted: NDArray[np.int64], ctx: Context) -> None:
        if not len(wanted):
            return
        question, rows = self.values.question, [self.rows[i] for i in wanted]
        (answers,) = await ctx.ask([question], rows, self.relation.source)
        unasked: set[int] = set()
        for failure in answers.failures:
            if failure.kind in ("budget", "interrupted"):
                unasked.add(failure.index)
            else:
                ctx.errors.append(RowError(-1, self.column.text, failure.kind, failure.message, failure.raw))
        for k, i in enumerate(wanted.tolist()):
            if k in unasked:
                continue
            self.told[i] = True
            value = answers.values[k]
            if value is None:
                continue
            if not self.values.labels:
                self.own[i] = str(value)
                continue
            found = None if answers.distributions is None else answers.distributions[k]
            if found is None or not np.isfinite(found).all():
                found = np.array([*self.values.labels, NONE]) == value
            self.shares[i] = found
        self._made = None

    def _chances(self, left: Ints, right: Ints, ctx: Context) -> tuple[Floats, NDArray[np.bool_]]:
        """(n,) the chance that the condition holds of pairs of rows, and whether it does; NaN where a row has no value."""
        if not self.values.labels:
            keys = [None if value is None else _bare(value) for value in self.own]
            same = np.array([keys[a] == keys[b] for a, b in zip(left, right, strict=True)], dtype=bool)
            without = np.array([value is None for value in keys], dtype=bool)
            holds = same == (self.values.rule == "same")
            return np.where(without[left] | without[right], np.nan, holds.astype(np.float64)), holds
        shares = self._shares(ctx)
        best = shares.argmax(axis=1)
        none = len(self.values.labels)
        chance = np.einsum("pi,ij,pj->p", shares[left], self.rule.astype(np.float64), shares[right], optimize=True)
        chance[(best[left] == none) & (best[right] == none)] = np.nan
        return chance, self.rule[best[left], best[right]]

    def _shares(self, ctx: Context) -> Floats:
        """(rows, labels and none) the chance of each value, NaN for rows not told."""
        if self._made is None:
            told = np.flatnonzero(self.told & ~np.isnan(self.shares[:, 0]))
            made = np.full_like(self.shares, np.nan)
            vectors = self._vectors(ctx)
            shares = self.shares[told]
            if self.values.near:  # "none of these" says nothing of which, and neighbours may
                own = shares[:, :-1] + shares[:, -1:] / (shares.shape[1] - 1)
                shares = np.zeros_like(shares)
                shares[:, :-1] = alike.steadied(own, None if vectors is None else vectors[told])
            made[told] = shares
            self._made = made
        return self._made

    def _vectors(self, ctx: Context) -> NDArray[np.float32] | None:
        if not self.values.near or ctx.features is None:
            return None
        texts = ["\n".join(str(cell.value) for cell in row.cells if isinstance(cell.value, str)) for row in self.rows]
        return ctx.features.store.table(texts, f"{self.relation.source}: {self.column.text}").matrix

    def drawn(self, rng: np.random.Generator) -> Masks | None:
        """(pairs,) answers with the value of each row drawn by its chances; None where rows say it in their own words."""
        if not self.values.labels or self._made is None:
            return None
        shares = np.nan_to_num(self._made)
        value = (shares.cumsum(axis=1) > rng.random((len(shares), 1))).argmax(axis=1)
        known = ~np.isnan(self._made[:, 0])
        found = np.where(self.rule[value[self.left], value[self.right]], TRUE, FALSE).astype(np.uint8)
        found[~known[self.left] | ~known[self.right]] = UNKNOWN
        found[(self.left < 0) | (self.right < 0)] = NULL
        return found

    def _note(self, ctx: Context) -> None:
        """What the answers rest on, in place of what was said before."""
        steady = ", made steadier by rows near in meaning" if self.values.near and ctx.features is not None else ""
        ctx.note_once(
            f'"{self.column.text}" was decided from ',
            f'"{self.values.text}" ({self.values.said}) of each row{steady}, as it says: this model is near chance where it has to '
            f"weigh two texts; {int(self.told.sum()):,} of {len(self.rows):,} rows were asked",
        )


def _bare(value: str) -> str:
    """What two spellings of a name have in common: "US Airways" is "USAirways"."""
    return stem(value).replace(" ", "")
