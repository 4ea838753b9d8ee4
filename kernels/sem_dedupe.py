"""sem_dedupe: DISTINCT ON "the same product", which rows a model says are one thing.

Rows that show the model the same are one without a call. Each of the others is compared with the rows nearest to it in meaning, the
nearest pairs first. A yes joins two clusters; pairs inside a cluster are not asked. A chain of doubtful yeses must not join everything:
clusters with more than one pair are joined by two yeses and kept apart by two noes. After a yes the pair of theirs that is least alike
is asked, and where the two disagree a third one. Where there is no third one, they stay apart: a row too many is seen, a lost one is not.

Sources: Wang, Li, Kraska, Franklin, Feng (2013), Leveraging transitive relations for crowdsourced joins (the pairs of a round are those
that are needed even if all before them match). The second answer stands against chaining, as complete linkage does against single linkage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from uql.base.errors import ModelReplyError
from uql.compiler.cost import NEIGHBOURS
from uql.compiler.virtual import VirtualColumn
from uql.kernels.answers import Rids, RowError
from uql.kernels.base import Context
from uql.kernels.pair_features import MOST_PAIRS, most_similar, of_pairs
from uql.kernels.relation import Relation
from uql.kernels.sem_order import pair_of
from uql.llm.questions import Row
from uql.sampling.base import Matrix
from uql.sampling.recall import RecallSearch

AGREEING = 2  # equal answers that settle whether two clusters are one, where they have more than one pair
AT_ONCE = 256  # pairs asked between two looks at what they join
FEW = 16  # pairs of two clusters, among which the next one to be asked is looked for
FAR = 0.25  # of the pairs asked, the least alike: how many of them match tells what lies beyond
Pair = tuple[int, int]  # two things, the first with the smaller number


async def cluster(column: VirtualColumn, rids: Rids, relation: Relation, ctx: Context) -> bool:
    """Numbers the rows: the value of `column` is the same for rows that are one thing, the place of the first of them.

    Rows with nothing to read, and pairs without an answer, join nothing. What the budget does not reach stays apart, with a note.

    Args:
        column: the text, and what it reads.
        rids: (n,) the rows that pass WHERE.
    Returns: whether the numbers are those that there would be if every pair had been asked and answered.
    """
    answers, readable = relation[column], True
    things = _Things.of(rids, relation.rows(rids, [column]))
    answers.values[rids], answers.asked_mask[rids] = rids, True
    for (rid, input_column), why in sorted(relation.unreadable.items(), key=lambda item: item[0][0]):
        if input_column in column.reads and rid in set(rids.tolist()):
            answers.failed[rid], readable = True, False
            ctx.errors.append(RowError(rid, column.text, "unreadable", why))
    search = _Search(column, things, _vectors(column, things, relation, ctx), relation, ctx)
    await search.nearest()
    if ctx.settings.recall is not None:
        await search.recalled(ctx.settings.recall)
    exact = search.report() and readable
    for members in search.clusters.members.values():
        same = np.concatenate([things.rids[i] for i in members])
        answers.values[same] = int(same.min())
    return exact


def _vectors(column: VirtualColumn, things: _Things, relation: Relation, ctx: Context) -> Matrix | None:
    """(things, d) unit vectors; None where rows have no features, or comparing all pairs is as cheap."""
    if ctx.features is None or len(things.rows) <= NEIGHBOURS + 1:
        return None
    table = ctx.features.of(relation, column.reads)
    if table is None:
        return None
    matrix = table.matrix[np.array([rids[0] for rids in things.rids])]
    unit: Matrix = matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-6)
    return unit


@dataclass(frozen=True, slots=True)
class _Things:
    """Rows that differ in what they show the model: their content, and the rows of each."""

    rows: list[Row]
    rids: list[Rids]

    @classmethod
    def of(cls, rids: Rids, rows: list[Row]) -> _Things:
        """Rows without content are left out."""
        rids_of: dict[Row, list[int]] = {}
        for rid, row in zip(rids.tolist(), rows, strict=True):
            if not row.is_null:
                rids_of.setdefault(row, []).append(rid)
        return cls(list(rids_of), [np.array(own, dtype=np.int64) for own in rids_of.values()])


class _Clusters:
    """Things that are one so far, and what was said of the pairs between any two clusters."""

    def __init__(self, n: int) -> None:
        self.root = list(range(n))
        self.members = {i: [i] for i in range(n)}
        self.votes: list[dict[int, list[int]]] = [{} for _ in range(n)]  # of a root: other root → noes, yeses
        self.answers: dict[Pair, bool | None] = {}  # None: no readable answer

    def tell(self, pair: Pair, answer: bool | None) -> None:
        """Takes an answer, and joins what it settles."""
        self.answers[pair] = answer
        a, b = self.root[pair[0]], self.root[pair[1]]
        if answer is None or a == b:
            return
        both = self.votes[a].setdefault(b, [0, 0])
        self.votes[b][a] = both
        both[answer] += 1
        other = b if self.settled(a, b) else None
        while other is not None:  # a union may have the yeses that join it with a third cluster
            a = self._join(a, other)
            other = next((c for c in self.votes[a] if self.settled(a, c)), None)

    def settled(self, a: int, b: int) -> bool | None:
        """Are two clusters one (True), two (False), or open (None)?"""
        noes, yeses = self.votes[a].get(b, (0, 0))
        needed = min(AGREEING, len(self.members[a]) * len(self.members[b]))
        if yeses >= needed and yeses > noes:
            return True
        return False if noes >= needed else None

    def doubtful(self) -> Iterator[Pair]:
        """Two clusters that a yes spoke for, and that are not settled."""
        for a, others in enumerate(self.votes):
            for b, (noes, yeses) in others.items():
                if a < b and yeses and yeses >= noes and self.settled(a, b) is None:
                    yield a, b

    def _join(self, a: int, b: int) -> int:
        """The larger cluster with the other one in it, and its root."""
        if len(self.members[a]) < len(self.members[b]):
            a, b = b, a
        for i in self.members[b]:
            self.root[i] = a
        self.members[a] += self.members.pop(b)
        self.votes[a].pop(b)
        self.votes[b].pop(a)
        for other, votes in self.votes[b].items():
            self.votes[other].pop(b)
            own_votes = self.votes[a].get(other, [0, 0])
            self.votes[a][other] = self.votes[other][a] = [x + y for x, y in zip(own_votes, votes, strict=True)]
        self.votes[b] = {}
        return a


@dataclass(slots=True)
class _Search:
    """The pairs of some things, asked until their clusters are known or the budget ends."""

    column: VirtualColumn
    things: _Things
    vectors: Matrix | None
    relation: Relation
    ctx: Context
    clusters: _Clusters = field(init=False)
    near: list[Pair] = field(init=False)  # to be asked, the nearest first
    ended: bool = False  # by the budget
    unanswered: int = 0
    promised: float | None = None  # the share of the pairs that match which is known to be found

    def __post_init__(self) -> None:
        self.clusters = _Clusters(len(self.things.rows))
        self.near = nearest_pairs(self.things.rows, self.vectors)

    @property
    def total(self) -> int:
        return len(self.things.rows) * (len(self.things.rows) - 1) // 2

    async def nearest(self) -> None:
        """Asks the pairs near in meaning, round by round: those that are needed whatever the others of the round are."""
        open_ = self.near
        while not self.ended:
            open_ = [p for p in open_ if self._is_open(p)]
            batch = [p for a, b in self.clusters.doubtful() if (p := self._check(a, b)) is not None][:AT_ONCE]
            busy = {self.clusters.root[i] for pair in batch for i in pair}
            hoped = {root: root for root in self.clusters.members}  # as if all pairs of the round matched
            for pair in open_:
                a, b = (self.clusters.root[i] for i in pair)
                if len(batch) == AT_ONCE:
                    break
                if a not in busy and b not in busy and _find(hoped, a) != _find(hoped, b):
                    hoped[_find(hoped, a)] = _find(hoped, b)
                    batch.append(pair)
            if not batch:
                return
            await self._ask(batch)

    def _is_open(self, pair: Pair) -> bool:
        """Is a pair still to be asked: not asked, not inside a cluster, not between two that are known to be two?"""
        a, b = (self.clusters.root[i] for i in pair)
        return a != b and pair not in self.clusters.answers and self.clusters.settled(a, b) is None

    def _check(self, a: int, b: int) -> Pair | None:
        """Of the pairs between two clusters that were not asked, the least alike; None where there is none left to ask."""
        ours, theirs = np.array(self.clusters.members[a]), np.array(self.clusters.members[b])
        alike = (
            np.zeros((len(ours), len(theirs))) if self.vectors is None else self.vectors[ours] @ self.vectors[theirs].T
        )
        least = min(alike.size, FEW) - 1
        for place in sorted(np.argpartition(alike, least, axis=None)[: least + 1], key=alike.ravel().__getitem__):
            i, j = int(ours[place // len(theirs)]), int(theirs[place % len(theirs)])
            if (pair := (min(i, j), max(i, j))) not in self.clusters.answers:
                return pair
        return None

    async def _ask(self, pairs: list[Pair]) -> None:
        """Puts the question of these pairs, as far as the budget reaches."""
        left = self.ctx.purse.remaining
        if left is not None and left < len(pairs):
            self.ended, pairs = True, pairs[:left]
        if not pairs:
            return
        rows = [pair_of(self.things.rows[i], self.things.rows[j]) for i, j in pairs]
        question = self.relation.question(self.column)
        (answers,) = await self.ctx.ask([question], rows, self.relation.source)
        failures = {failure.index: failure for failure in answers.failures}
        for place, (pair, value) in enumerate(zip(pairs, answers.values, strict=True)):
            failure = failures.get(place)
            if failure is not None and failure.kind in ("budget", "interrupted"):
                self.ended = True
                continue
            if failure is not None:
                if self.ctx.settings.on_error == "raise":
                    help = f'it was asked: "{self.column.text}"'
                    raise ModelReplyError(f"{failure.kind}: {failure.message}", help=help)
                rid = int(self.things.rids[pair[0]][0])
                self.ctx.errors.append(RowError(rid, self.column.text, failure.kind, failure.message, failure.raw))
                self.unanswered += 1
            self.clusters.tell(pair, value)

    async def recalled(self, recall: float) -> None:
        """Searches the pairs further apart until a share of those that match is found, as a search for rows does.

        A pair inside a cluster matches, one between clusters that are known to be two does not: these are told and not asked.
        """
        if self.ended or self.total <= len(self.near) or self.vectors is None or self.total > MOST_PAIRS:
            return
        first, second = np.triu_indices(len(self.things.rows), 1)
        features, near = of_pairs(self.vectors, self.vectors, first, second)
        pairs = list(zip(first.tolist(), second.tolist(), strict=True))
        closed = np.array([p for p, pair in enumerate(pairs) if not self._is_open(pair)], dtype=np.int64)
        search = RecallSearch(
            len(pairs),
            len(pairs),
            rng=self.ctx.rng,
            features=features,
            prior=near,
            known=(closed, np.array([self._truth(pairs[p]) for p in closed])),
            recall=recall,
            confidence=self.ctx.settings.confidence,
        )
        while not self.ended and len(chosen := search.propose(AT_ONCE)):
            await self._ask([pairs[p] for p in chosen if self._is_open(pairs[p])])
            await self._resolve()
            answers = np.array([self._truth(pairs[p]) for p in chosen])
            answers[[self._is_open(pairs[p]) for p in chosen]] = np.nan  # the budget did not reach them
            search.tell(chosen, answers)
        self.promised = search.guaranteed

    async def _resolve(self) -> None:
        """Asks the further pairs that clusters need which a yes spoke for."""
        while not self.ended:
            checks = [p for a, b in self.clusters.doubtful() if (p := self._check(a, b)) is not None]
            if not checks:
                return
            await self._ask(checks)

    def _truth(self, pair: Pair) -> float:
        """1: one thing, 0: two, NaN: there was no answer."""
        if self.clusters.root[pair[0]] == self.clusters.root[pair[1]]:
            return 1.0
        return np.nan if self.clusters.answers.get(pair, False) is None else 0.0

    # ----------------------------------------------------------------------------------------------------------- report
    def report(self) -> bool:
        """Says what was asked and what was not, and whether the clusters are those of all pairs."""
        ctx, about, n_asked = self.ctx, f'"{self.column.text}": ', len(self.clusters.answers)
        exact = not self.unanswered and not self.ended
        if self.unanswered:
            ctx.notes.append(f"{about}{self.unanswered:,} of {n_asked:,} pairs gave no answer and join nothing")
        if split := self._contradicted():
            ctx.notes.append(
                f"{about}a pair was said to be the same and others of the same two groups of rows were not, {split:,} times: these stay two"
            )
        if self.ended:
            ctx.partial = True
            left = sum(1 for pair in self.near if self._is_open(pair))
            if left:
                ctx.notes.append(
                    f"{about}the budget ended after {n_asked:,} pairs; {left:,} pairs near in meaning were not asked: rows of these "
                    "that are the same are returned each"
                )
        if self.promised is not None:
            level, short = f"{ctx.settings.confidence:.0%}", self.promised < (ctx.settings.recall or 0.0)
            exact, ctx.partial = exact and self.promised == 1.0, ctx.partial or short
            words = f"less than the {ctx.settings.recall:.0%} asked for: the budget ended" if short else "as asked"
            ctx.notes.append(
                f"{about}{n_asked:,} of {self.total:,} pairs were asked; recall ≥ {self.promised:.0%} at {level}, {words}"
            )
        elif not self.ended and self.total > len(self.near):
            exact = False
            ctx.notes.append(self._blocking(about, n_asked))
        return exact

    def _blocking(self, about: str, n_asked: int) -> str:
        """What is known of the pairs that were not asked."""
        answers = [answer for pair in self.near if (answer := self.clusters.answers.get(pair)) is not None]
        far = answers[len(answers) - max(1, round(FAR * len(answers))) :]
        more = "WITH (recall = 0.9) searches them too"
        if ctx_recall := self.ctx.settings.recall:
            more = f"the recall of {ctx_recall:.0%} asked for is not certain: {MOST_PAIRS:,} pairs at most are searched"
        return (
            f"{about}{n_asked:,} of {self.total:,} pairs were asked: each row and the {NEIGHBOURS} nearest to it in meaning. "
            f"{sum(far):,} of the {len(far):,} least alike of these are the same; how many of the others are, is not known: {more}"
        )

    def _contradicted(self) -> int:
        """Two clusters that a yes spoke for and a no against, and that stay two."""
        return sum(1 for others in self.clusters.votes for noes, yeses in others.values() if noes and yeses) // 2


def nearest_pairs(rows: list[Row], vectors: Matrix | None) -> list[Pair]:
    """The pairs of each row with the NEIGHBOURS nearest to it, the nearest pair first; without vectors those beside it in the order of the
    texts.

    >>> from uql.llm.questions import Cell
    >>> rows = [Row((Cell("text", word),)) for word in ("b", "c", "a")]
    >>> nearest_pairs(rows, np.array([[1, 0], [0, 1], [0.6, 0.8]], dtype=np.float32)), nearest_pairs(rows, None)
    ([(1, 2), (0, 2), (0, 1)], [(0, 2), (0, 1), (1, 2)])
    """
    n = len(rows)
    if vectors is None:
        order = sorted(range(n), key=lambda i: repr(rows[i]))
        steps = range(1, min(n, NEIGHBOURS + 1))
        return [(min(pair), max(pair)) for step in steps for pair in zip(order, order[step:], strict=False)]
    first, second = np.triu_indices(n, 1)
    if n - 1 > NEIGHBOURS:
        # the nearest by distance: a text without known words has none
        lengths = -0.5 * (vectors**2).sum(axis=1, keepdims=True)
        near = most_similar(
            np.hstack([vectors, np.ones_like(lengths)]), np.hstack([vectors, lengths]), NEIGHBOURS, skip_own=True
        )
        ends = np.stack([np.repeat(np.arange(n), NEIGHBOURS), near.ravel()], axis=1)
        first, second = np.unique(np.sort(ends, axis=1), axis=0).T
    cosine = np.round((vectors[first] * vectors[second]).sum(axis=1), 5)  # the same on each machine
    ranked = np.lexsort((second, first, -cosine))
    return list(zip(first[ranked].tolist(), second[ranked].tolist(), strict=True))


def _find(parent: dict[int, int], i: int) -> int:
    """The root of i, the way to it made short."""
    while parent[i] != i:
        parent[i] = i = parent[parent[i]]
    return i
