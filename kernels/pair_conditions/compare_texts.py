"""Comparisons of two texts by one attribute of each: "{a.text} and {b.text} have the same topic", for models that cannot weigh two texts.

Such a model reads one text well and is near chance where it has to weigh two. What it is asked is therefore the attribute of each row,
n + m calls in place of n · m, and code compares the answers. The model names the values from some rows and again from others:

- it names the same ones: there are few (moods, opinions), and each row is asked which of them it has;
- it names others, they stand in the rows word for word, and rows that are asked for their own, in their words, repeat each other's
  (owners, products): so is every row asked;
- it names others, and so do the rows (topics, reasons): groups are named as for GROUP BY, from two sets of rows, each row is asked
  which of them all it is in, and rows near in meaning make the answers steadier (`alike`).

Rows are asked as pairs need them: all at once where they fit in the budget, else as a sample or a search comes to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uql.compiler.formula import FALSE, NULL, TRUE, UNKNOWN, Masks
from uql.compiler.pair_attribute import AttributeComparison
from uql.compiler.virtual import VirtualColumn
from uql.kernels import sem_group
from uql.kernels.answers import Rids, RowError
from uql.kernels.asking import apply_corrections
from uql.kernels.base import Context
from uql.kernels.group_names import stem
from uql.kernels.pair_conditions import similar_values as alike
from uql.kernels.pair_conditions.values import MOST_VALUES, SHOWN, Proposal, Side, propose_from
from uql.kernels.relation import Relation
from uql.llm.questions import NONE, Choice, Extract, Question, Row, Write
from uql.sampling.base import Flags, Floats, Indices

NAMING = 5  # calls at most that name the values
FEWEST_ROWS = 4  # that the budget must leave after that
TIE = 1e-9  # of a score: pairs that are as alike as the last one called so
FIRST_ROWS = 32  # asked before pairs are compared by groups
NAMED_FROM = 20  # rows from which groups are named, twice
MANY_GROUPS = (6, 8)  # at least and at most, from each of them
PILOT = 16  # rows asked for their own words first
MOST_WITHOUT = 0.5  # of them, that are in none of the groups: then each has a name of its own
REPEATED = 0.25  # of them, that say what another says: else each has words of its own
LONG_NAME = 5  # letters of a name that is looked for inside words too
WORD_FOR_WORD = 0.6  # of the values named, that stand in the rows shown: then every row is asked for its own


@dataclass(frozen=True, slots=True)
class Values:
    """What each row is asked, and the pairs of values (left, right) for which the condition holds."""

    text: str
    labels: tuple[str, ...]  # empty: each row's own words
    matches: frozenset[tuple[str, str]]
    rule: str  # same, different or opposite
    # of groups: the labels of each list of names, which say the same in other words
    lists: tuple[tuple[int, ...], ...] = ()

    @property
    def question(self) -> Question:
        if self.labels:
            return Choice(self.text, self.labels, none_of_these=True)
        return Extract(self.text if self.text.lower().startswith("the ") else f"the {self.text}", "VARCHAR")

    @property
    def label_text(self) -> str:
        return ", ".join(self.labels) if self.labels else "in its own words"


async def compare(
    column: VirtualColumn, comparison: AttributeComparison, sides: tuple[Side, Side], relation: Relation, ctx: Context
) -> bool:
    """Lets a condition be answered from the attribute that it compares; False where the budget or the model does not allow it.

    The result is then not exact, and a note says from what it was told.

    Args:
        comparison: the attribute and the rule, by the condition's words.
        sides: the rows of each side of the pairs.
    """
    rows = list(dict.fromkeys(row for side in sides for row in side.rows if not row.is_null))
    if len(rows) < 2:
        return False
    values = await named_values(column, comparison, rows, relation, ctx)
    if values is None:
        ctx.notes.append(f'the model named no values of "{comparison.attribute}": pairs are asked outright')
        return False
    way = Compared(column, values, sides, rows, relation)
    relation[column].derived = way
    if values.lists:  # what a group is worth, and how alike rows are that are, takes some rows to tell
        some = np.sort(ctx.rng.permutation(len(rows))[:FIRST_ROWS])
        if ctx.purse.fits_now(len(some) + FEWEST_ROWS):
            await way.ask(some, ctx)
    if not relation.filters.stops and ctx.purse.fits(way.calls(None)):
        await way.answer(np.flatnonzero(~relation[column].asked_mask).astype(np.int64), ctx)
    return True


async def named_values(
    column: VirtualColumn, comparison: AttributeComparison, rows: Sequence[Row], relation: Relation, ctx: Context
) -> Values | None:
    """What to ask of each row. None where the calls do not fit, or the model names nothing.

    Args:
        comparison: the attribute and the rule, by the condition's words.
        rows: the distinct rows of both sides.
    """
    order = [rows[i] for i in ctx.rng.permutation(len(rows))]
    sample, others = order[:SHOWN], order[SHOWN : 2 * SHOWN] or order[:SHOWN]
    if not ctx.purse.fits_now(NAMING + min(len(rows), FEWEST_ROWS)):
        return None
    first = await propose_from(column, sample, relation.source, ctx)
    if first is None:
        return None
    again = await propose_from(column, others, relation.source, ctx)
    values = few(first, again)
    if values is not None:
        listed = {pair for pair in first.matches if set(pair) <= set(values)}
        return Values(comparison.attribute, values, comparison.matches(values, listed), comparison.rule)
    if comparison.rule == "opposite":  # of values that were not seen together nothing tells which are opposite
        return None
    every = (*first.values, *(again.values if again is not None else ()))
    own = Values(comparison.attribute, (), frozenset(), comparison.rule)
    stand_there = _word_for_word(every, [*sample, *others]) >= WORD_FOR_WORD
    if stand_there and await _repeated(own.question, order[:PILOT], relation.source, ctx) >= REPEATED:
        return own
    groups = await _groups(comparison.attribute, order, relation.source, ctx)
    labels = tuple({stem(name): name for names_of in groups for name in names_of}.values())
    if len(labels) < 2:
        return own if stand_there else None
    place = {stem(name): i for i, name in enumerate(labels)}
    lists = tuple(tuple(dict.fromkeys(place[stem(name)] for name in names_of)) for names_of in groups)
    of_groups = Values(comparison.attribute, labels, frozenset(), comparison.rule, lists)
    if stand_there and await _without(of_groups.question, order[:PILOT], relation.source, ctx) > MOST_WITHOUT:
        return own
    return of_groups


async def _repeated(question: Question, rows: Sequence[Row], source: str, ctx: Context) -> float:
    """The share of these rows whose own words another one has too."""
    if not ctx.purse.fits_now(len(rows) + NAMING + FEWEST_ROWS):
        return 0.0
    (answers,) = await ctx.ask([question], rows, source)
    numbers = names([None if value is None else str(value) for value in answers.values])
    counts = np.bincount(numbers[numbers >= 0], minlength=1)
    return float(counts[counts > 1].sum()) / max(1, len(rows))


async def _without(question: Question, rows: Sequence[Row], source: str, ctx: Context) -> float:
    """The share of these rows that are in none of the groups."""
    if not ctx.purse.fits_now(len(rows)):
        return 0.0
    (answers,) = await ctx.ask([question], rows, source)
    return answers.values.count(NONE) / max(1, len(rows))


async def _groups(attribute: str, order: Sequence[Row], source: str, ctx: Context) -> list[tuple[str, ...]]:
    """Names of groups by the attribute, from one set of rows and from another: a single list may be too coarse, or leave some out."""
    groups: list[tuple[str, ...]] = []
    for part in (order[:NAMED_FROM], order[NAMED_FROM : 2 * NAMED_FROM]):
        if len(part) < 2 or not ctx.purse.fits_now(1 + FEWEST_ROWS):
            continue
        least, most = min(MANY_GROUPS[0], len(part)), min(MANY_GROUPS[1], len(part))
        request = Write(
            attribute if attribute.lower().startswith("the ") else f"the {attribute}",
            task="taxonomy",
            schema=sem_group.schema_of(least, most),
            shown=tuple(part),
            parameters=(("groups", f"{least} to {most}"),),
            max_tokens=300,
        )
        listed = tuple(sem_group.read_groups(await ctx.write(request, source=source, optional=True), most))
        groups += [listed] if len(listed) > 1 else []
    return groups


def few(first: Proposal, again: Proposal | None) -> tuple[str, ...] | None:
    """The values of both proposals, where at least half of the ones named from other rows were known already; None else.

    >>> def of(*values: str) -> Proposal:
    ...     return Proposal("x", values, frozenset())
    >>> few(of("good", "bad"), of("Bad", "mixed")), few(of("Ann", "Bo"), of("Cy", "Di", "Bo"))
    (('good', 'bad', 'mixed'), None)
    """
    if again is None:
        return None
    stems = {stem(value) for value in first.values}
    new = [value for value in again.values if stem(value) not in stems]
    if 2 * len(new) > len(again.values):
        return None
    return (*first.values, *new)[:MOST_VALUES]


def _word_for_word(values: Sequence[str], rows: Sequence[Row]) -> float:
    """The share of the values that stand in the rows as words, or as one word: "US Airways" in "@USAirways"."""
    texts = f" {stem(' '.join(str(cell.value) for row in rows for cell in row.cells))} "
    joined = texts.replace(" ", "")
    keys = {stem(value) for value in values}
    matches = [f" {key} " in texts or (len(key) >= LONG_NAME and key.replace(" ", "") in joined) for key in keys]
    return sum(matches) / max(1, len(keys))


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
        self.is_labelled = np.zeros(n, dtype=bool)  # was asked, and answered or failed
        self.shares = np.full((n, len(values.labels) + 1), np.nan)  # of each label and of none of them
        self.own: list[str | None] = [None] * n
        self._likeness: alike.Likeness | None = None  # of the rows told so far
        self.wrong: float | None = None
        labels = values.labels
        options = (*labels, NONE)  # a row with none of the values differs from one that has a value
        self.rule = np.array([[(a, b) in values.matches for b in options] for a in options], dtype=bool)
        if values.rule == "different":
            self.rule[-1, :-1] = self.rule[:-1, -1] = True

    @property
    def rows_asked(self) -> int:
        """The rows from which the pairs are told."""
        return int(self.is_labelled.sum())

    def calls(self, rids: Rids | None) -> int:
        """The rows behind these pairs that were not asked."""
        left, right = (self.left, self.right) if rids is None else (self.left[rids], self.right[rids])
        return len(self._open(left, right))

    def _open(self, left: Indices, right: Indices) -> Indices:
        both = (left >= 0) & (right >= 0)
        indices = np.unique(np.concatenate([left[both], right[both]]))
        unasked: Indices = indices[~self.is_labelled[indices]]
        return unasked

    async def answer(self, rids: Rids, ctx: Context) -> None:
        """Fills in the values of these pairs; those whose rows the budget did not reach stay unasked."""
        if not len(rids):
            return
        await self.ask(self._open(self.left[rids], self.right[rids]), ctx)
        left, right = self.left[rids], self.right[rids]
        null = (left < 0) | (right < 0)
        fill = null | (self.is_labelled[left] & self.is_labelled[right])
        rids, left, right, null = rids[fill], left[fill], right[fill], null[fill]
        chance, holds = self._chances(left, right, ctx)
        unknown = null | np.isnan(chance)
        values = holds.astype(object)
        values[unknown] = None
        answers = self.relation[self.column]
        answers.values[rids] = values
        answers.probabilities[rids] = np.where(null, np.nan, chance)
        answers.failed[rids] = unknown & ~null
        answers.asked_mask[rids] = True
        apply_corrections(self.column, rids, self.relation, ctx)
        self._note(ctx)

    async def ask(self, indices: Indices, ctx: Context) -> None:
        """Asks these rows for their value."""
        if not len(indices):
            return
        question, rows = self.values.question, [self.rows[i] for i in indices]
        (answers,) = await ctx.ask([question], rows, self.relation.source)
        unasked: set[int] = set()
        for failure in answers.failures:
            if failure.kind in ("budget", "interrupted"):
                unasked.add(failure.index)
            else:
                ctx.errors.append(RowError(-1, self.column.text, failure.kind, failure.message, failure.raw))
        for k, i in enumerate(indices.tolist()):
            if k in unasked:
                continue
            self.is_labelled[i] = True
            value = answers.values[k]
            if value is None:
                continue
            if not self.values.labels:
                self.own[i] = str(value)
                continue
            distribution = None if answers.distributions is None else answers.distributions[k]
            if distribution is None or not np.isfinite(distribution).all():
                distribution = np.array([*self.values.labels, NONE]) == value
            self.shares[i] = distribution
        self._likeness = None

    def _chances(self, left: Indices, right: Indices, ctx: Context) -> tuple[Floats, Flags]:
        """(n,) the chance that the condition holds of pairs of rows, and whether it does; NaN where a row has no value."""
        if not self.values.labels:
            keys = names(self.own)
            same = keys[left] == keys[right]
            without = keys < 0
            holds = same == (self.values.rule == "same")
            return np.where(without[left] | without[right], np.nan, holds.astype(np.float64)), holds
        if self.values.lists:
            alike_ = self._alike(ctx)
            place = np.cumsum(self.has_answer) - 1  # of each row among those with an answer
            fine = self.has_answer[left] & self.has_answer[right]
            score = np.full(len(left), np.nan)
            score[fine] = alike_.scores(place[left[fine]], place[right[fine]])
            holds = (score >= -TIE) == (self.values.rule == "same")
            return 1 / (1 + np.exp(-score if self.values.rule == "same" else score)), holds
        none = len(self.values.labels)
        best = self.shares.argmax(axis=1)
        chance = np.einsum(
            "pi,ij,pj->p", self.shares[left], self.rule.astype(np.float64), self.shares[right], optimize=True
        )
        chance[(best[left] == none) & (best[right] == none)] = np.nan
        return chance, self.rule[best[left], best[right]]

    @property
    def has_answer(self) -> Flags:
        """(rows,) which have an answer."""
        result: Flags = ~np.isnan(self.shares[:, 0])
        return result

    def _alike(self, ctx: Context) -> alike.Likeness:
        if self._likeness is None:
            shares = self.shares[self.has_answer]
            apart = shares[:, -1:] / max(1, len(self.values.labels))  # "none of these" says nothing of which
            vectors = self._vectors(ctx)
            self._likeness = alike.likeness(
                [shares[:, list(part)] + apart for part in self.values.lists],
                None if vectors is None else vectors[self.has_answer],
                np.random.default_rng(ctx.settings.seed),
            )
        return self._likeness

    def _vectors(self, ctx: Context) -> NDArray[np.float32] | None:
        if ctx.features is None:
            return None
        texts = ["\n".join(str(cell.value) for cell in row.cells if isinstance(cell.value, str)) for row in self.rows]
        return ctx.features.store.table(texts, f"{self.relation.source}: {self.column.text}").matrix

    def draw_answers(self, rng: np.random.Generator) -> Masks | None:
        """(pairs,) answers with the value of each row drawn by its chances; None where rows say it in their own words.

        Of groups named twice one list is drawn too, or both: that pairs must be in one group of either.
        """
        has_answer = self.has_answer
        if not self.values.labels or not has_answer.any():
            return None
        place = np.maximum(np.cumsum(has_answer) - 1, 0)
        left, right = place[self.left], place[self.right]
        if self._likeness is not None:
            values = self._likeness.draw_groups(rng)
            chosen = rng.integers(len(values) + 1)
            parts = values if chosen == len(values) else [values[chosen]]
            same = np.logical_and.reduce([part[left] == part[right] for part in parts])
            holds = same == (self.values.rule == "same")
        else:
            shares = self.shares[has_answer]
            value = (shares.cumsum(axis=1) > rng.random((len(shares), 1)) * shares.sum(axis=1, keepdims=True)).argmax(
                axis=1
            )
            holds = self.rule[value[left], value[right]]
        answers = np.where(holds, TRUE, FALSE).astype(np.uint8)
        answers[~has_answer[self.left] | ~has_answer[self.right]] = UNKNOWN
        answers[(self.left < 0) | (self.right < 0)] = NULL
        return answers

    def _note(self, ctx: Context) -> None:
        """What the answers rest on, in place of what was said before."""
        steady = (
            ", made steadier by rows near in meaning"
            if self._likeness is not None and self._likeness.unit is not None
            else ""
        )
        ctx.note_once(
            f'"{self.column.text}" was decided from ',
            f'"{self.values.text}" ({self.values.label_text}) of each row{steady}, as it says: this model is near chance where it has to '
            f"weigh two texts; {self.rows_asked:,} of {len(self.rows):,} rows were asked",
        )


def names(values: Sequence[str | None]) -> Indices:
    """(n,) a number for each value, the same for spellings of one name, −1 for None.

    Case, plurals, spaces and articles do not count; a name that begins one longer name, and no other, is that name.

    >>> names(["US Airways", "usairways", "Delta", "Delta Air Lines", None, "Ann", "Ann Lee", "Ann Ray"]).tolist()
    [0, 0, 1, 1, -1, 2, 3, 4]
    """
    words = [None if value is None else stem(value).split() for value in values]
    distinct = sorted({tuple(w) for w in words if w}, key=len, reverse=True)
    whole: dict[tuple[str, ...], tuple[str, ...]] = {}
    for name in distinct:
        longer = {whole[other] for other in whole if other[: len(name)] == name}
        whole[name] = next(iter(longer)) if len(longer) == 1 else name
    numbers: dict[str, int] = {}
    codes = np.full(len(values), -1, dtype=np.int64)
    for i, w in enumerate(words):
        if w:
            codes[i] = numbers.setdefault("".join(whole[tuple(w)]), len(numbers))
    return codes
