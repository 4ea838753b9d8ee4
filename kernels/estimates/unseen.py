"""What a sample leaves open about groups: which may be missing, and which rest on few rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

import numpy as np

from uql.compiler.virtual import Virtual
from uql.kernels import sem_group
from uql.kernels.answer_types import rows_without_input
from uql.kernels.answers import Rids
from uql.kernels.estimates.groups import Aggregation
from uql.kernels.estimates.sample import Sampled
from uql.sampling.intervals import unseen_share

FEW_ROWS = 5  # of a group, asked: fewer are noted


def note_unseen(of: Aggregation, groups: Sequence[int], sampled: Sampled, unknown: int) -> bool:
    """Says which groups may be missing; False where some may.

    Args:
        unknown: rows asked whose group is not known.
    """
    sample_size, codes, ctx = len(sampled.labelled), of.codes, of.ctx
    if codes is not None:
        unseen = len(np.unique(codes)) - len(groups)
        if unseen:
            what = (
                f"{unseen} group{'' if unseen == 1 else 's'} had no row that passed among the {sample_size} rows asked"
            )
            ctx.notes.append(f"{what} and {'is' if unseen == 1 else 'are'} not shown")
        return not unseen
    if _all_appeared(of, sampled):
        return True
    level = ctx.settings.confidence
    open_ = [column for column in of.block.values.groups if not sem_group.stays(column, ctx)]
    hits = unknown + sum(int(sem_group.in_none(column, sampled.passing, of.relation).sum()) for column in open_)
    share = unseen_share(sampled.sampler.expected_draws(), hits, len(groups), level)
    which = f"groups below {ceil(1000 * share) / 1000:.1%} of the rows" if share < 1 else "groups of any size"
    ctx.notes.append(f"{which} may be missing: {sample_size} rows were asked ({level:.0%})")
    return False


def _all_appeared(of: Aggregation, sampled: Sampled) -> bool:
    """Do the rows that pass have every combination of the values that the keys can have, as of ENUMs and conditions?

    Rows in which there is nothing to read have NULL, which may be one more group.
    """
    columns = [key.expr.column for key in of.block.aggregate.keys if isinstance(key.expr, Virtual)]
    if len(columns) < len(of.block.aggregate.keys) or not all(c.closed or c.is_condition for c in columns):
        return False
    if any(c.many or rows_without_input(c, of.relation) for c in columns):
        return False
    values = [of.relation[column].values[sampled.passing] for column in columns]
    combinations = {row for row in zip(*values, strict=True) if None not in row}
    return len(combinations) == prod(len(c.labels) if c.closed else 2 for c in columns)


def note_few(of: Aggregation, members: Sequence[Rids], groups: Sequence[int], sampled: Sampled) -> None:
    """Says how many of the groups shown rest on few rows, and, where DuckDB knows the groups, which budget asks more of each.

    Args:
        members: the rows of each group that were asked and count.
    """
    block, codes = of.block, of.codes
    if codes is None:
        counts = np.array([len(rids) for rids in members])
        targets, help_ = np.full(len(counts), FEW_ROWS), ""
    else:
        sizes = np.bincount(codes)
        counts = np.bincount(codes[sampled.labelled], minlength=len(sizes))[list(groups)]
        targets = np.minimum(sizes[list(groups)], FEW_ROWS)
        calls = int(targets.sum()) * max(1, len(block.filter.stages) + len(block.filter.left_over(block.values.stages)))
        help_ = f": WITH (budget = {calls}) allows for so many of each"
    few, none = int((counts < targets).sum()), int((counts == 0).sum())
    if few:
        without = f", {none:,} of them none" if none else ""
        of.ctx.notes.append(f"{few:,} of {len(counts):,} groups have fewer than {FEW_ROWS} rows asked{without}{help_}")
