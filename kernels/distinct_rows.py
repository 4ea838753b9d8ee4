"""Rows that show a model the same are sampled and searched as one: a dimension of 300 texts joined to a million facts
takes 300 calls, not a million."""

from __future__ import annotations

import numpy as np

from uql.base.sql_text import number_of, quote
from uql.compiler.physical import Block
from uql.kernels.base import Context
from uql.kernels.relation import Relation
from uql.sampling.distinct_rows import Units

LOOKED_AT = 4096  # rows by which it is seen whether many are alike
MOST = 0.9  # units a row, from which on rows are sampled as they are


def units_of(block: Block, relation: Relation, ctx: Context) -> Units | None:
    """The units of a block's candidate rows: alike in all that its texts read, and in what DuckDB knows of the WHERE.

    None where few rows are alike, or where texts are about pairs of rows.

    Args:
        block: its WHERE and its values name the columns that make rows different.
    """
    stages = (*block.filter.stages, *block.values.stages)
    columns = tuple(c for stage in stages for c in stage.columns)
    if relation.n < 2 or not columns or relation.derives or any(c.is_pair_condition for c in columns):
        return None
    inputs = {quote(c.label): relation.fields[c].type for column in columns for c in column.inputs}
    if not inputs:
        return None
    step = max(1, relation.n // LOOKED_AT)
    any_input = " OR ".join(f"{name} IS NOT NULL" for name in inputs)  # a row that shows nothing is never asked
    ((looked, different),) = ctx.duck.execute(
        f"SELECT system.main.count(*), system.main.count(DISTINCT {number_of(inputs.items())}) FROM {quote(relation.name)} "
        f"WHERE rowid % {step} = 0 AND ({any_input})"
    )
    if different > MOST * looked or not looked:
        return None
    leaves = block.filter.formula.leaves if block.filter.formula is not None else ()
    decided = [(ctx.duck.expression(leaf.expr), "BOOLEAN") for leaf in leaves if not leaf.semantic]
    _, of = np.unique(relation.each(number_of([*inputs.items(), *decided])), return_inverse=True)
    return Units(of.astype(np.int64))
