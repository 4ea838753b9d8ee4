"""A set of rows with a precision and a recall that hold together: accept the likeliest rows, reject the unlikeliest, ask between.

A pilot teaches what the score of a row is worth. Then the rows are parted: those accepted unless asked, and the others,
rejected unless asked. Each part has errors, rows that are not what the part says of them, and the targets allow so many of each.
The likeliest errors are asked, which makes them known and the score better, and the rows are parted again by it until no more
are worth asking. From then on the parts stay, and random rows of a part prove how many errors are left in it. How far to ask and
how much to prove is planned by the score, and paid for where the score is wrong; the proof rests on the random rows alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from uql.sampling import surrogate
from uql.sampling.asd import AsdSampler
from uql.sampling.base import Flags, Floats, Indices, Matrix
from uql.sampling.errors_left import ErrorsLeft
from uql.sampling.labelled_rows import Known
from uql.sampling.retrieval import Search
from uql.sampling.surrogate import SEARCH_DIRECTIONS

PILOT = 96  # rows that teach what the score is worth
EARLIER = 0.8  # of δ, for what an earlier score says; the rest is for a score that is learned where that one is wrong
CUTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)  # chances of a match from which rows may be accepted
GROWN = 1.2  # times as many answers, before the score is learned anew
LEAST_BATCH, PARTS = 8, 6  # rows between two looks, at least; else this part of what is planned
EVEN = (1.0, 0.8, 0.6)  # part of the chance to be drawn that all rows have alike
BETS = (0.1, 0.3, 0.5, 0.7, 0.85, 0.95)  # of the largest bet
SHARES = (0.2, 0.5)  # of δ, that may go to the rows accepted
MOST_FIRST = 0.75  # of the calls left, that may go to the precision alone where both targets are too much
RUNS = 48  # of rows of like chances


@dataclass(frozen=True, slots=True)
class Draw:
    """Random rows whose answers are outstanding, in the order in which they were drawn, without replacement.

    Attributes:
        worth, largest, bet: as `ErrorsLeft.draw` takes them.
        expected: errors among them.
    """

    rows: Indices
    worth: Floats
    largest: Floats
    bet: float
    expected: float

    @classmethod
    def of(cls, rows: Indices, q: Floats, wrong: Floats, size: int, refuted: int, rng: np.random.Generator) -> Draw:
        """Draw, and lay the bet that is expected to win most.

        Args:
            rows: (n,) to draw from, and q (n,) the chance of each to be the first.
            wrong: (n,) the chance of each that it is an error.
            size: rows to draw.
            refuted: errors left, against which the bet is.
        """
        order = np.argsort(-(np.log(q) + rng.gumbel(size=len(q))), kind="stable")[:size]
        left = 1.0 - np.concatenate([[0.0], np.cumsum(q[order])[:-1]])
        room, hit = max(1 / float(q.min()) - refuted, 1e-9), q * wrong

        def growth(part: float) -> float:
            lost = np.log(np.maximum(1 + part / room * (refuted - 1 / q), 1e-12))
            return (1 - float(hit.sum())) * math.log1p(part / float(room) * refuted) + float((hit * lost).sum())

        bet = max(BETS, key=growth) / room
        return cls(rows[order], left / q[order], left / q.min(), bet, float(wrong[order].sum()))


@dataclass(slots=True)
class Part:
    """Rows that are accepted, or rejected, unless they are asked.

    Attributes:
        rows: (N,) the rows of the part, asked or not.
        accepted: are its rows returned where they are not asked?
        errors: the bound on those left.
        draw: random rows whose answers are outstanding.
        expected: errors that were expected among all random rows so far; `hits` that were found.
    """

    rows: Flags
    accepted: bool
    errors: ErrorsLeft
    draw: Draw | None = None
    expected: float = 0.0
    hits: float = 0.0

    @property
    def surprise(self) -> float:
        """The rate of errors among random rows beyond what was expected, where it is more than chance: the score misses them."""
        return max(0.0, self.hits - self.expected - 2 * math.sqrt(self.expected + 1)) / max(self.errors.n_draws, 1)

    @property
    def contradicts(self) -> bool:
        """Are more than twice as many random rows errors as were expected, and more than chance explains?"""
        return self.hits > 2 * self.expected + 3 * math.sqrt(self.expected + 1)

    def wrong(self, answers: Floats) -> Floats:
        """(n,) 1 where an answer (1, 0, NaN) is not what the part says; one without an answer never is."""
        out: Floats = (answers != (1.0 if self.accepted else 0.0)).astype(np.float64)
        return out

    def take(self, indices: Indices, answers: Floats) -> None:
        """The answers of rows, those of the draw all at once; a part of it proves nothing."""
        draw, self.draw = self.draw, None
        random = np.isin(indices, draw.rows) if draw is not None else np.zeros(len(indices), bool)
        if draw is None or random.sum() < len(draw.rows):
            random[:] = False
        self.errors.ask(self.wrong(answers[self.rows[indices] & ~random]))
        if draw is not None and random.any():
            place = np.argsort(indices)[np.searchsorted(np.sort(indices), draw.rows)]
            wrong = self.wrong(answers[place])
            self.errors.draw(wrong, draw.worth, draw.largest, draw.bet)
            self.expected, self.hits = self.expected + draw.expected, self.hits + float(wrong.sum())


@dataclass(frozen=True, slots=True)
class Needed:
    """What a part still needs: its `n_likeliest` likeliest errors, then `n_random` random rows, to prove that `allowed` or fewer remain."""

    n_likeliest: int
    n_random: int
    allowed: int
    even: float = 1.0

    @property
    def calls(self) -> int:
        return self.n_likeliest + self.n_random


class PromiseSearch(Search):
    """Returns rows with precision and recall of at least the targets, both at once, wrong with probability at most 1 − confidence.

    Unknown answers are matches that were missed, and rows accepted in error where they stand for others.

    Args:
        features: (N, d) float32, mean squared row norm about 1; the score of a cheap model is one of them.
        prior: (N,) a score, higher where a match is likelier, or None.
        chance: (N,) the chance of a match by a score that was fitted to other rows, in place of a pilot. Where random rows
            contradict it, it is given up, and a score is learned from these rows.
        recall, precision: the targets, in (0, 1).
        confidence: 1 − δ.
        Others as in `Search`.
    Attributes:
        has_earlier: does the score that was fitted to other rows still choose?
        surprise: where it was given up, the errors among random rows, and how many it expected.
    Source: the setting of Kang et al. (2020), SUPG, and Zeighami et al. (2025), BARGAIN; the bound is that of `ErrorsLeft`.
    """

    method = "promise"

    def __init__(
        self,
        n_rows: int,
        budget: int,
        *,
        rng: np.random.Generator,
        features: Matrix,
        prior: Floats | None = None,
        chance: Floats | None = None,
        recall: float = 0.9,
        precision: float = 0.9,
        confidence: float = 0.95,
        known: Known | None = None,
        **_: Any,
    ) -> None:
        super().__init__(n_rows, budget, rng=rng, known=known)
        self.recall, self.precision, self.confidence = recall, precision, confidence
        self._views = [features]  # of the rows, each of which may tell best which of them match
        if prior is not None and features.shape[1] > 1:  # with few matches the many columns say less than the one
            spread = float(np.std(prior)) or 1.0
            self._views.append(((prior - np.mean(prior)) / spread).astype(np.float32)[:, None])
        self._answer = np.full(n_rows, -1, np.int8)  # −1 not told, 0 no, 1 yes, 2 no answer
        self._note(self.labelled, self.answers)
        self._delta = (1 - confidence) * (1.0 if chance is None else EARLIER)
        self.has_earlier = chance is not None
        self.surprise: tuple[int, float] | None = None
        self._teach = partial(AsdSampler, n_rows, rng=rng, features=features, prior=prior, confidence=confidence)
        self._pilot = self._taught(known) if chance is None else None
        self._p = np.full(n_rows, 0.5) if chance is None else chance  # the chance of a match
        self._fitted_at = 0
        self.parts: tuple[Part, ...] = ()

    # ------------------------------------------------------------------------------------------------------ what holds
    def holds(self) -> tuple[float, float]:
        """The precision and the recall that hold as things stand, of the rows of `returned`."""
        return max((self._holds(), self._holds(without=True)), key=self._closeness)

    @property
    def met(self) -> bool:
        """Whether both targets hold."""
        return not self._open.any() and self._closeness(self.holds()) >= 0.0

    def unverified(self) -> Indices:
        """The rows that are returned unasked."""
        if self._holds() != self.holds():
            return np.zeros(0, np.int64)
        return np.flatnonzero(self._accepted() & (self._answer == -1))

    def returned(self) -> Indices:
        """The rows known to match, and those accepted unasked, sorted."""
        return np.union1d(self.matches(), self.unverified())

    def would_take(self) -> int:
        """Rows to be asked in all until both targets hold, about."""
        free = self.n_rows - len(self.labelled)
        return self.calls + min(free, _calls(self._plan_left()) if self.parts else free)

    def _holds(self, without: bool = False) -> tuple[float, float]:
        """As `holds`; `without` the rows accepted unasked, which are missed then."""
        yes, unknown = int((self._answer == 1).sum()), int((self._answer == 2).sum())
        wrong = missed = free = 0
        if not self.parts:
            missed = self.n_rows - len(self.labelled)
        for part in self.parts:
            if not part.accepted:
                missed += part.errors.remaining
            elif without:
                missed += part.errors.free
            else:
                free, wrong = part.errors.free, part.errors.remaining
        returned, right = yes + free, yes + free - wrong
        matches = right + missed + unknown
        return (right / returned if returned else 1.0), (right / matches if matches else 1.0)

    def _closeness(self, bounds: tuple[float, float]) -> float:
        """How far the worse of the two is above its target; both must hold, and a precision that does not is worse."""
        precision, recall = bounds[0] - self.precision + 1e-12, bounds[1] - self.recall + 1e-12
        return min(precision, recall) if precision >= 0 else precision - 1

    # ---------------------------------------------------------------------------------------------------------- asking
    def tell(self, indices: Indices, answers: Floats) -> None:
        super().tell(indices, answers)
        indices, answers = np.asarray(indices, np.int64), np.asarray(answers, np.float64)
        if self._pilot is not None:
            self._pilot.tell(indices, answers)
        self._take(indices, answers)

    def learn(self, indices: Indices, answers: Floats) -> None:
        """As in `Search.learn`: rows equal to some that were asked, whose answers are known by them."""
        super().learn(indices, answers)
        self._take(np.asarray(indices, np.int64), np.asarray(answers, np.float64))

    def _take(self, indices: Indices, answers: Floats) -> None:
        self._note(indices, answers)
        for part in self.parts:
            part.take(indices, answers)

    def _note(self, indices: Indices, answers: Floats) -> None:
        self._answer[indices] = np.where(np.isnan(answers), 2, answers == 1.0)

    def _accepted(self) -> Flags:
        """(N,) the rows of the part that is accepted."""
        none = np.zeros(self.n_rows, bool)
        return next((part.rows for part in self.parts if part.accepted), none)

    def _taught(self, labels: Known | None) -> AsdSampler | None:
        """The sampler of the rows that teach what the score is worth; None: there are too few."""
        rows = min(PILOT, self.budget - self.n_proposed, self.n_rows - len(self.labelled))
        return self._teach(rows, known=labels) if rows >= LEAST_BATCH else None

    def _give_up_earlier(self) -> None:
        """Learn a score from the rows asked, and prove what it says with the rest of δ: random rows contradict the earlier one."""
        self.surprise = int(sum(part.hits for part in self.parts)), sum(part.expected for part in self.parts)
        self.has_earlier, self.parts, self._delta = False, (), (1 - self.confidence) * (1 - EARLIER)
        self._pilot = self._taught((self.labelled, self.answers))

    def _choose(self, k: int) -> Indices:
        if self.has_earlier and not self._open.any() and any(part.contradicts for part in self.parts):
            self._give_up_earlier()
        if self._pilot is not None:
            rows = self._pilot.propose(k)
            rows = rows[~self._is_asked[rows]]
            if len(rows) or self._open.any():
                return rows
        if self._open.any() or self.met:
            return np.zeros(0, np.int64)
        if (self._learn() and not self._drawn) or not self.parts:
            self._part()
        self._pilot = None
        plan, left = self._plan_left(), self.budget - self.n_proposed
        short = _calls(plan) > left
        precision_plan = self._plan_left(rejected=False) if short else plan
        # first the precision of the rows accepted: else none is returned unasked
        if 0 < _calls(precision_plan) <= left:
            plan = precision_plan
        n_likeliest, n_random = sum(need.n_likeliest for need in plan), sum(need.n_random for need in plan)
        if n_likeliest and not short and not self._drawn:  # they teach, and the rows may be parted anew
            n_random = 0
        room = min(k, max(LEAST_BATCH, (n_likeliest + n_random) // PARTS), n_likeliest + n_random)
        first = room * n_likeliest // max(n_likeliest + n_random, 1) if short and n_random else min(n_likeliest, room)
        tops, sizes = _shared(first, [n.n_likeliest for n in plan]), _shared(room - first, [n.n_random for n in plan])
        chosen = [np.zeros(0, np.int64)]
        for part, need, top, size in zip(self.parts, plan, tops, sizes, strict=True):
            chosen += self._of_part(part, need, top, size)
        return np.concatenate(chosen)

    def _of_part(self, part: Part, need: Needed, top: int, size: int) -> list[Indices]:
        """So many of the likeliest errors of a part, and so many random rows of the others."""
        free = np.flatnonzero(part.rows & ~self._is_asked)
        wrong = self._chance_wrong(part, free)
        order = np.argpartition(-wrong, top - 1) if top else np.arange(len(free))
        first, rest = free[order[:top]], free[order[top:]]
        if not size:
            return [first]
        wrong = wrong[order[top:]]
        q = chances(wrong, len(rest), float(wrong.sum()), need.even)
        part.draw = Draw.of(rest, q, wrong, size, need.allowed + 1, self.rng)
        return [first, part.draw.rows]

    # -------------------------------------------------------------------------------------------------------- planning
    @property
    def _drawn(self) -> bool:
        """Has a random row been asked, to prove something of a part?"""
        return any(part.errors.n_draws for part in self.parts)

    def _learn(self) -> bool:
        """Learn the chance of a match from all answers; False where there are not enough more of them."""
        rows, y = self.labelled, self.answers
        has_answer = ~np.isnan(y)
        if self.has_earlier or not has_answer.any() or len(y) < GROWN * self._fitted_at:
            return False
        rows, y, self._fitted_at = rows[has_answer], y[has_answer], len(y)
        design = self._pilot.design[rows] if self._pilot is not None else None
        best = math.inf
        for features in self._views:
            fit = surrogate.probability(features[rows], y, design, SEARCH_DIRECTIONS)
            p = surrogate.stretched(fit.score(features), fit.loo, y)
            loss = surrogate.log_loss(surrogate.stretched(fit.loo, fit.loo, y), y)
            if loss < best:
                best, self._p = loss, p
        return True

    def _chance_wrong(self, part: Part, rows: Indices) -> Floats:
        return np.minimum((1.0 - self._p[rows] if part.accepted else self._p[rows]) + part.surprise, 1.0)

    def _part(self) -> None:
        """Part the rows that were not asked where that is planned to take the fewest calls."""
        left = self.budget - self.n_proposed
        plans = ((_calls(self._plan(parts, wrong)), parts) for parts, wrong in self._partings())
        calls, self.parts = min(plans, key=lambda found: found[0])
        if calls <= left:
            return
        most = 0
        for parts, wrong in self._partings():  # the most rows whose precision a part of the calls left proves
            n = next((part.errors.free for part in parts if part.accepted), 0)
            if n > most and _calls(self._plan(parts, wrong, rejected=False)) <= MOST_FIRST * left:
                most, self.parts = n, parts

    def _partings(self) -> Iterator[tuple[tuple[Part, ...], list[Floats]]]:
        """The ways to part the rows that were not asked; of each part the chances that its rows are errors, likeliest first."""
        free = self._answer == -1
        p = np.sort(self._p[free])
        for cut in (*CUTS, math.inf):
            accepted, n_rejected = free & (self._p >= cut), int(np.searchsorted(p, cut))
            n = len(p) - n_rejected
            for share in SHARES if n and n_rejected else (1.0,):
                parts, wrong = [], []
                if n:
                    parts.append(Part(accepted, True, ErrorsLeft(n, self._delta * share)))
                    wrong.append(1 - p[n_rejected:])
                if n_rejected:
                    rest = self._delta * (1 - share if n else 1.0)
                    parts.append(Part(free & ~accepted, False, ErrorsLeft(n_rejected, rest)))
                    wrong.append(p[:n_rejected][::-1])
                yield tuple(parts), wrong

    def _plan_left(self, *, rejected: bool = True) -> list[Needed]:
        """What each part still takes, as `_plan` says it."""
        return self._plan(self.parts, [self._sorted(part) for part in self.parts], rejected=rejected)

    def _plan(self, parts: Sequence[Part], wrong: Sequence[Floats], *, rejected: bool = True) -> list[Needed]:
        """What each part takes.

        Args:
            parts: (1 or 2), the accepted one first.
            wrong: of each part the chance that each of its rows is an error, likeliest first.
            rejected: are the rows that are rejected unless asked to be proved?
        """
        yes, unknown = int((self._answer == 1).sum()), int((self._answer == 2).sum())
        accepted, bound = next(((p.errors.free, p.errors.remaining) for p in parts if p.accepted), (0, 0))
        matches = 0.0  # matches among the rejected rows that will be asked
        plan: list[Needed] = []
        for part, chances_wrong in reversed(list(zip(parts, wrong, strict=True))):  # the rejected rows first
            gain = np.concatenate([[0.0], np.cumsum(chances_wrong)])
            returned = yes + matches + gain + accepted
            if part.accepted:  # errors of its own that are asked are returned no more
                allowed = (1 - self.precision) * (returned - 2 * gain)
            else:
                wrong_returned = np.minimum((1 - self.precision) * returned, bound)
                allowed = (1 - self.recall) / self.recall * (returned - wrong_returned) - unknown
            allowed = np.floor(allowed + 1e-9)
            need = needed(part.errors, chances_wrong, allowed) if part.accepted or rejected else Needed(0, 0, 0)
            matches = float(gain[need.n_likeliest]) if not part.accepted else matches
            plan.append(need)
        return plan[::-1]

    def _sorted(self, part: Part) -> Floats:
        """(n,) of the rows of a part that were not asked, the chance that each is an error, likeliest first."""
        wrong = self._chance_wrong(part, np.flatnonzero(part.rows & (self._answer == -1)))
        return np.sort(wrong)[::-1]


def _calls(plan: Sequence[Needed]) -> int:
    return sum(need.calls for need in plan)


def _shared(n: int, weights: list[int]) -> list[int]:
    """n in parts by weight, none above its weight where n is not above their sum."""
    ends = [n * end // max(sum(weights), 1) for end in np.cumsum([0, *weights]).tolist()]
    return [b - a for a, b in pairwise(ends)]


def needed(errors: ErrorsLeft, wrong: Floats, allowed: Floats) -> Needed:
    """How many of the likeliest errors to ask, and how many random rows of the others then prove what is allowed, at the least calls.

    Rows are looked at in runs of like chances, short ones where they are likely errors. A draw adds what the best bet of
    `BETS` is expected to win; without replacement fewer draws do.

    Args:
        errors: the bound so far.
        wrong: (n,) the chance of each row that it is an error, likeliest first.
        allowed: (n + 1,) errors that may be left, once so many rows are asked.
    """
    n = len(wrong)
    starts = np.unique(np.concatenate([[0], np.geomspace(1, max(n, 1), RUNS).astype(np.int64)]))
    starts = starts[starts < n]
    sizes = np.diff(np.append(starts, n)).astype(np.float64)
    chance = np.add.reduceat(wrong, starts) / sizes if n else np.zeros(0)
    rest = np.triu(np.ones((len(starts), len(starts)))) * sizes  # (k, run) rows of a run that are left to draw from
    free, refuted = rest.sum(axis=1), allowed[starts] + 1
    proved = np.array([errors.against(int(m)) if m > 0 else 0.0 for m in refuted]) if errors.n_draws else 0.0
    evidence = np.maximum(errors.evidence - proved, 0.0)
    best = Needed(n, 0, int(max(allowed[n], 0)))
    for even in EVEN:
        q = chances(chance[None, :], free[:, None], (rest @ chance)[:, None], even)
        room = np.maximum(1 / np.where(rest > 0, q, 1.0).min(axis=1, initial=1.0) - refuted, 1e-9)
        hit = rest * q * chance
        growth = np.full(len(starts), 1e-12)
        for part in BETS:
            bet = part / room
            lost = np.log(np.maximum(1 + bet[:, None] * (refuted[:, None] - 1 / q), 1e-12))
            won = (1 - hit.sum(axis=1)) * np.log1p(bet * np.maximum(refuted, 0.0))
            growth = np.maximum(growth, won + (hit * lost).sum(axis=1))
        draws = np.ceil(free * (1 - np.exp(-evidence / (growth * free))))
        draws[refuted < 1] = math.inf
        draws[allowed[starts] >= np.minimum(free, errors.remaining)] = 0.0
        if len(starts) and (starts + draws).min() < best.calls:
            at = int(np.argmin(starts + draws))
            best = Needed(int(starts[at]), int(draws[at]), int(max(allowed[starts[at]], 0)), even)
    return best


def chances(wrong: Floats, n: Floats | float, total: Floats | float, even: float) -> Floats:
    """The chance of each of n rows to be the next random one: the same of all for the part `even`, else as it is likely an error.

    Args:
        wrong: the chance of each that it is an error; `total` their sum.
    """
    out: Floats = (even + (1 - even) * wrong * n / np.maximum(total, 1e-12)) / n
    return out
