"""How many calls are still to be made: none for rows that the ledger knows or that show the model nothing, one for rows that are alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uql.compiler.physical import Stage
from uql.kernels import asking
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.relation import Relation

MOST_RECALLED = 50_000  # rows that are looked up in the ledger before a sample is drawn, or a query refused


async def open_calls(stages: Sequence[Stage], relation: Relation, ctx: Context, rids: Rids | None = None) -> int:
    """Calls that asking these stages of these rows (None: all) still takes; what the ledger knows is taken from there."""
    rows = np.arange(relation.n, dtype=np.int64) if rids is None else rids
    for stage in stages:
        if len(rows) <= MOST_RECALLED and all(c.by_row for c in stage.columns):
            await asking.recall(stage, rows, relation, ctx)
    return relation.calls(stages, rids)
