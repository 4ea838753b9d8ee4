"""A condition on a video: does it hold at some moment? Frames of each clip are asked until one says yes.

A clip with a yes is true, one of which every frame (one a second) said no is false. One that the budget leaves between is not settled:
its answer is unknown, so that neither the text nor its NOT takes it, and COUNT(*) has it between its bounds. To a model that takes videos,
the clips are sent as files where the plan says so.

The frames of a clip are asked in nested random strata of time: after 2^r points each of the 2^r equal parts of the clip holds one point,
uniform in it and independent of the others. If the event fills a share s of the clip, s_i of part i, all points miss it with
probability Π(1 − s_i) ≤ (1 − s)^(2^r), by the inequality of the means, however its moments lie. Source: Cochran (1977), Sampling
Techniques, §5A, for stratified samples with one unit a stratum.

Of 200 generated clips of 20 s, 10 % of the frames in this order found 46 of 92 with a circle (in the order of time 6), 23 of 52 with
darkness (3) and 28 of 83 with a square at the wall (29). The middles of halves (`first_of_each`) found 58, 27 and 33: a few more, but an
order that is not random bounds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from uql.base.schema import Modality
from uql.base.sql_text import literal, number_of
from uql.compiler.formula import Formula
from uql.compiler.physical import Block, Goal, Stage
from uql.compiler.syntax import Column
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.kernels import asking
from uql.kernels.answers import Moments, Rids
from uql.kernels.base import Context
from uql.kernels.duck import quote
from uql.kernels.relation import Relation
from uql.kernels.sem_filter import CHUNK
from uql.sampling.base import Flags, Floats, Indices

EVERY = "1 s"  # between two frames of a clip
GROWTH = 2  # a clip of which this many frames said no is asked one more at once, and so on: each turn starts a reader


async def take(stages: Sequence[Stage], relation: Relation, ctx: Context, block: Block | None = None) -> None:
    """Answers the conditions on videos, before anything else is asked of the rows.

    Args:
        stages: the requests about the rows; those that read no video are left alone.
        relation: n rows.
        block: whose rows they are; with LIMIT k and such a condition alone, the search ends at k rows.
    """
    stage_of = {column: stage for stage in stages for column in stage.columns}
    for column, stage in stage_of.items():
        video = video_of(column, relation)
        if video is not None:
            others = [s for s in stages if all(video_of(c, relation) is None for c in s.columns)]
            left = ctx.purse.remaining
            reserve = 0 if left is None else min(left // 2, relation.calls(others))
            n_clips = relation.n
            if block is not None and block.filter.goal is Goal.FIRST and not block.order.keys:
                n_clips = (block.order.rows_needed or n_clips) if _is_alone(block.filter.formula, column) else n_clips
            search = _Search(column, video, stage, relation, ctx)
            if not stage.whole or not await search.ask_whole(reserve, n_clips):
                await search.run(reserve, n_clips)


def video_of(column: VirtualColumn, relation: Relation) -> Column | None:
    """The video that a column reads, if any."""
    fields = ((c, relation.fields.get(c)) for c in column.reads)
    return next((c for c, f in fields if f is not None and f.modality is Modality.VIDEO), None)


def _is_alone(formula: Formula | None, column: VirtualColumn) -> bool:
    """Is the text the whole WHERE?"""
    return formula is not None and len(formula.leaves) == 1 and formula.leaves[0].expr == Virtual(column)


class _Search:
    """The search of one condition through the clips of a relation: rows that show the same clip are one, that of the first of them."""

    def __init__(self, column: VirtualColumn, video: Column, stage: Stage, relation: Relation, ctx: Context) -> None:
        self.column, self.video, self.relation, self.ctx = column, video, relation, ctx
        self.stage = replace(stage, columns=(column,), riders=())
        cells = ", ".join(quote(c.label) for c in column.inputs)
        self.alike = f"SELECT rowid AS __row, system.main.min(rowid) OVER (PARTITION BY {cells}) AS __clip, * FROM {quote(relation.name)}"
        number = number_of((quote(c.label), relation.fields[c].type) for c in column.inputs)
        rows = ctx.duck.arrow(f"SELECT __clip, {number} FROM ({self.alike}) ORDER BY __row")
        self.first = rows.column(0).to_numpy().astype(np.int64)
        self.content = rows.column(1).to_pylist()
        self.matches = np.zeros(relation.n, bool)
        self.closed = np.zeros(relation.n, bool)  # by an answer to the whole clip

    def _open(self) -> None:
        """Lists the frames of the clips, and the order in which they are asked."""
        ctx, relation, video = self.ctx, self.relation, quote(self.video.label)
        listed = f"system.main.unnest(__uql_frames({video}, {literal(EVERY)})) AS __part"
        parts = f"SELECT * EXCLUDE (__row), {listed} FROM ({self.alike}) WHERE __row = __clip"
        name, n = ctx.duck.create(
            f"SELECT * EXCLUDE (__part) REPLACE (__part.image AS {video}), __part.t AS __t FROM ({parts}) ORDER BY __clip, __t"
        )
        fields = dict(relation.fields)
        fields[self.video] = replace(fields[self.video], type="VARCHAR", modality=Modality.IMAGE)
        self.frames = Relation(ctx.duck, name, n, fields, relation.source)
        table = ctx.duck.arrow(f"SELECT __clip, __t FROM {quote(name)} ORDER BY rowid")
        self.clip = table.column(0).to_numpy().astype(np.int64)
        self.t = table.column(1).to_numpy(zero_copy_only=False).astype(np.float64)
        self.sizes = np.bincount(self.clip, minlength=relation.n)
        # by its content: whatever rows stand beside it, a clip is asked in one order, and its moment is the first in it
        self.points = turns(self.sizes, [(ctx.settings.seed, content) for content in self.content])

    def _room(self, reserve: int, n_clips: int) -> int:
        """Rows that may be asked at once; 0 where `n_clips` clips are found, or no more than `reserve` calls are left."""
        left, missing = self.ctx.purse.remaining, n_clips - int(self.matches[self.first].sum())
        size = CHUNK if left is None or not reserve else min(CHUNK, left - reserve)
        return max(0, min(size, missing) if n_clips < self.relation.n or missing <= 0 else size)

    async def ask_whole(self, reserve: int, n_clips: int) -> bool:
        """Asks the files themselves, in one request each. False where some are left, which could not be sent or were not answered."""
        own, errors = self.relation[self.column], len(self.ctx.errors)
        rest = np.flatnonzero(self.first == np.arange(self.relation.n))
        while len(rest) and (size := self._room(reserve, n_clips)):
            part, rest = rest[:size], rest[size:]
            await asking.ask(self.stage, part, self.relation, self.ctx)
            self.matches[part[own.values[part] == True]] = True  # noqa: E712  an array of objects
            self.closed[part[own.asked_mask[part] & ~own.failed[part]]] = True
            if not own.asked_mask[part].all():
                break
        del self.ctx.errors[errors:]  # told again where the frames cannot be read either
        own.values[:], own.asked_mask[:], own.failed[:] = own.values[self.first], True, ~self.closed[self.first]
        return bool(self.closed[self.first].all() or self.matches[self.first].sum() >= n_clips)

    async def run(self, reserve: int, n_clips: int) -> None:
        """Asks frames until every clip is settled, `n_clips` clips are found, or no more than `reserve` calls are left."""
        self._open()
        frame_answers, turn = self.frames[self.column], _places(self.points, self.clip)
        reached, ended = 0, False
        while reached <= turn.max(initial=-1) and not ended:
            step = max(1, reached // GROWTH)
            rest = np.flatnonzero((turn >= reached) & (turn < reached + step))
            rest = rest[np.lexsort((self.points[rest], turn[rest]))]  # which clip is first is as random as the points
            while len(rest := rest[~(self.matches | self.closed)[self.clip[rest]]]) and not ended:
                size = self._room(reserve, n_clips)
                if not size:
                    ended = True
                    break
                part, rest = rest[:size], rest[size:]
                errors = len(self.ctx.errors)
                await asking.ask(self.stage, part, self.frames, self.ctx)
                self.ctx.errors[errors:] = [
                    replace(e, row=int(self.clip[e.row])) if e.row >= 0 else e for e in self.ctx.errors[errors:]
                ]
                self.matches[self.clip[part[frame_answers.values[part] == True]]] = True  # noqa: E712  an array of objects
                ended = not frame_answers.asked_mask[part].all()
            reached += step
        self._settle(n_clips)

    def _settle(self, n_clips: int) -> None:
        """Writes what is known of each clip into its relation, and says what is not."""
        frame_answers, own, first = self.frames[self.column], self.relation[self.column], self.first
        n = self.relation.n
        no = np.bincount(self.clip[frame_answers.values == False], minlength=n)  # noqa: E712
        settled = (self.matches | self.closed | (no == self.sizes))[first]
        own.asked_mask[:] = True
        own.failed[:] = ~settled
        own.values[:] = None
        own.values[settled & (self.sizes[first] > 0)] = False
        own.values[self.matches[first]] = True
        at = np.full(n, -1, np.int64)
        last = np.flatnonzero(frame_answers.asked_mask)
        yes = frame_answers.values[last] == True  # noqa: E712  an array of objects
        last = last[np.lexsort((np.where(yes, -self.points[last], self.points[last]), yes))]
        at[self.clip[last]] = last  # the last of each clip stays: the first yes where there is one, else the latest no
        at = at[first]
        seconds = np.full(n, np.nan)
        has_moment = self.matches[first] & (at >= 0)
        seconds[has_moment] = self.t[at[has_moment]]
        rest = np.bincount(self.clip[~frame_answers.asked_mask], minlength=n)  # and not those that could not be read
        left_open = ~settled & (rest > 0)[first]
        own.origin.moments = Moments(self.frames, self.t, at, left_open, seconds)
        self._note(left_open & (first == np.arange(n)), n_clips)

    def _note(self, open_: Flags, n_clips: int) -> None:
        """Says how many clips are not settled, and what may have been missed in them."""
        if not open_.any() or self.matches[self.first].sum() >= n_clips:
            return
        frame_answers, ctx = self.frames[self.column], self.ctx
        first = np.full(self.relation.n, np.inf)  # the first point that no answer stands for
        np.minimum.at(
            first,
            self.clip[~frame_answers.asked_mask | frame_answers.failed],
            self.points[~frame_answers.asked_mask | frame_answers.failed],
        )
        points = first[open_]
        missed, none = 1 - ctx.settings.confidence, int((points < 1).sum())
        whole = len(np.unique(self.first))
        says = (
            f'{int(open_.sum()):,} of {whole:,} clips are not settled for "{self.column.text}": no frame asked says yes'
        )
        if none:
            says += f", and of {none:,} none was asked"
        if none < len(points):
            least = 2.0 ** np.floor(np.log2(points[points >= 1].min()))
            share = 1 - missed ** (1 / least)
            says += (
                f"; of the others, a moment that fills {share:.0%} of a clip was missed with probability ≤ {missed:.0%}"
            )
        ctx.partial = True
        ctx.notes.append(says + "; a larger budget asks more frames")


def turns(sizes: Indices, seeds: Sequence[tuple[int, ...]]) -> Floats:
    """(Σ sizes,) of each frame, clip after clip, the points of its clip before the first that lies in it.

    Points come in rounds of 1, 1, 2, 4, …: each round halves the parts of the clip and puts a point in each half that has none, in
    random order. A fraction below 1 tells clips apart at random. Parts smaller than half a frame end it: every frame has a point.

    Args:
        sizes: (clips,) frames of each.
        seeds: (clips,) of the points of each.
    """
    all_turns = []
    for clip in np.flatnonzero(sizes).tolist():
        size, rng = int(sizes[clip]), np.random.default_rng(seeds[clip])
        points = rng.random(1)
        while len(points) < 2 * size:
            parts = 2 * len(points)
            empty = np.setdiff1d(np.arange(parts), (points * parts).astype(np.int64))
            points = np.append(points, (rng.permutation(empty) + rng.random(len(empty))) / parts)
        frame, first = np.unique(np.minimum((points * size).astype(np.int64), size - 1), return_index=True)
        turn = np.empty(size)
        turn[frame] = first + rng.random()
        all_turns.append(turn)
    return np.concatenate(all_turns) if all_turns else np.zeros(0)


def _places(points: Floats, clip: Rids) -> Indices:
    """(frames,) the place of each frame among those of its clip, in the order of their points, from 0 on."""
    order = np.lexsort((points, clip))
    sizes = np.bincount(clip)
    out = np.empty(len(clip), np.int64)
    out[order] = np.arange(len(clip)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return out
