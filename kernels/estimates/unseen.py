"""What a sample leaves open about groups: which may be missing, and which rest on few rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

from uql.compiler.physical import Block
from uql.kernels import sem_group
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.estimates.sample import Sampled, after_stages
from uql.kernels.relation import Relation
from uql.sampling.intervals import unseen_share

FEW_ROWS = 5  # of a group, asked: fewer are noted


def note_unseen(
    block: Block,
    codes: NDArray[np.int64] | None,
    found: Sequence[int],
    sampled: Sampled,
    unknown: int,
    relation: Relation,
    ctx: Context,
) -> bool:
    """Says which groups may be missing; False where some may.

    Args:
        codes: (N,) the group of every row, where DuckDB tells it.
        found: the groups shown.
        unknown: rows asked whose group is not known.
    """
    asked = len(sampled.told)
    if codes is not None:
        unseen = len(np.unique(codes)) - len(found)
        if unseen:
            what = f"{unseen} group{'' if unseen == 1 else 's'} had no row that passed among the {asked} rows asked"
            ctx.notes.append(f"{what} and {'is' if unseen == 1 else 'are'} not shown")
        return not unseen
    level = ctx.settings.confidence
    open_ = [column for column in block.values.groups if not sem_group.stays(column, ctx)]
    hits = unknown + sum(sem_group.in_none(column, sampled.passing, relation) for column in open_)
    share = unseen_share(sampled.sampler.expected_draws(), hits, len(found), level)
    which = f"groups below {ceil(1000 * share) / 1000:.1%} of the rows" if share < 1 else "groups of any size"
    ctx.notes.append(f"{which} may be missing: {asked} rows were asked ({level:.0%})")
    return False


def note_few(
    block: Block,
    members: Sequence[Rids],
    codes: NDArray[np.int64] | None,
    found: Sequence[int],
    sampled: Sampled,
    ctx: Context,
) -> None:
    """Says how many of the groups shown rest on few rows, and, where DuckDB knows the groups, which budget asks more of each.

    Args:
        members: the rows of each group that were asked and count.
        codes, found: as in `note_unseen`.
    """
    if codes is None:
        asked = np.array([len(rids) for rids in members])
        wanted, help_ = np.full(len(asked), FEW_ROWS), ""
    else:
        sizes = np.bincount(codes)
        asked = np.bincount(codes[sampled.told], minlength=len(sizes))[list(found)]
        wanted = np.minimum(sizes[list(found)], FEW_ROWS)
        calls = int(wanted.sum()) * max(1, len(block.filter.stages) + len(block.filter.left_over(after_stages(block))))
        help_ = f": WITH (budget = {calls}) allows for so many of each"
    few, none = int((asked < wanted).sum()), int((asked == 0).sum())
    if few:
        without = f", {none:,} of them none" if none else ""
        ctx.notes.append(f"{few:,} of {len(asked):,} groups have fewer than {FEW_ROWS} rows asked{without}{help_}")
