"""What guides a sample or a search: features of the candidate rows, and a first guess of which of them pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uql.compiler.formula import TRUE, Formula, Leaf
from uql.compiler.physical import Block, Goal
from uql.compiler.syntax import InList, String
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.features.similarity import WEIGHT, similarity, standard, with_columns, with_similarity
from uql.features.table import TableFeatures
from uql.kernels import proxy, sem_filter
from uql.kernels.asking import MOST_RECALLED
from uql.kernels.base import Context
from uql.kernels.cheap_scores import CheapScores
from uql.kernels.examples import corrected_examples, own_examples
from uql.kernels.kept_proxy import RowInputs
from uql.kernels.pair_features import pair_features
from uql.kernels.relation import Relation
from uql.llm.questions import Write
from uql.sampling.base import Floats
from uql.sampling.distinct_rows import Units
from uql.sampling.surrogate import sigmoid

LEAST_BUDGET = 32  # calls; below, a call for example rows is not worth it
FEWEST_ROWS = 50  # candidates; below, nothing can be learned
FEW = 2.0  # log-odds against a leaf at a prior of 0: about one row in eight meets it
KNOWN = 1.0  # weight of the standardised column of a leaf that is known, where rows have a mean squared norm of 1
EXAMPLES = json.dumps(
    {
        "type": "object",
        "properties": {
            side: {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": 200},
                "minItems": 1,
                "maxItems": 2,
            }
            for side in ("yes", "no")
        },
        "required": ["yes", "no"],
        "additionalProperties": False,
    }
)


@dataclass(frozen=True, slots=True)
class Guide:
    """Features (N, d) of the candidate rows, and a score (N,), higher where a row more likely passes."""

    features: NDArray[np.float32]
    prior: Floats | None  # None: the query asks for values, and no row is likelier than another
    has_examples: bool

    def of_units(self, units: Units) -> Guide:
        """That of the first row of each unit."""
        prior = None if self.prior is None else self.prior[units.first]
        return Guide(self.features[units.first], prior, self.has_examples)


async def guide(block: Block, relation: Relation, ctx: Context) -> Guide | None:
    """The guide of a block's WHERE, or without one of what its aggregates read, and the user's proxy beside it.

    None where the rows have no text and no proxy, are too few, or are to be uniform ones, and where no call is left.

    Costs one call for example rows where the settings allow it (examples = on) and the budget is at least LEAST_BUDGET.

    Args:
        block: its WHERE, or what its aggregates read, is what the guide ranks rows by.
    """
    if relation.n < FEWEST_ROWS or ctx.settings.method == "uniform" or ctx.purse.remaining == 0:
        return None
    base = await _of_texts(block, relation, ctx) if ctx.features is not None else None
    score = proxy.of(relation) if ctx.settings.proxy is not None else None
    return base if score is None else with_proxy(base, score)


def with_proxy(base: Guide | None, score: Floats) -> Guide:
    """A guide that learns from the proxy too, and begins with the rows where it is high: it is as good as example rows.

    Args:
        base: None: the proxy alone guides.
        score: (N,) with mean 0 and variance 1.
    """
    column = KNOWN * score.astype(np.float32)[:, None]
    if base is None:
        return Guide(column, score, True)
    matrix = np.concatenate([base.features, column], axis=1)
    if base.prior is None or not base.has_examples:
        return Guide(matrix, score, True)
    return Guide(matrix, score + standard(base.prior.astype(np.float32)), True)


def row_inputs(block: Block, relation: Relation, cheap: CheapScores | None, ctx: Context) -> RowInputs | None:
    """What the score of a single row may rest on; None where there is neither an embedder of words nor a small model.

    Args:
        block: whose WHERE is scored.
        cheap: what the small model says of the rows; None: there is none.
    """
    reads = tuple(dict.fromkeys(c for stage in block.filter.stages for column in stage.columns for c in column.reads))
    words = ctx.features.store.words if ctx.features is not None else None
    table = ctx.features.of(relation, reads) if ctx.features is not None and words is not None else None
    vectors = table.blocks[0] if table is not None and table.blocks else None
    if vectors is None and cheap is None:
        return None
    embedder = vectors.embedder.name if vectors is not None else ""
    small = (ctx.settings.models or ("",))[0] if cheap is not None else ""
    return RowInputs(embedder, vectors, small, None if cheap is None else cheap.odds)


async def _of_texts(block: Block, relation: Relation, ctx: Context) -> Guide | None:
    """The guide that the rows' texts and pictures give."""
    if ctx.features is None:
        return None
    if block.filter.formula is None:
        return await _guide_of_values(block, relation, ctx)
    columns = block.filter.columns
    if any(column.is_pair_condition for column in columns):
        pairs = pair_features(columns, relation, ctx.features.store)
        return None if pairs is None else Guide(*pairs, False)
    reads = tuple(dict.fromkeys(c for column in columns for c in column.reads))
    table = ctx.features.of(relation, reads)
    if table is None:
        return None
    if not table.blocks:  # pictures without an embedder that knows texts: no row is likelier than another
        return Guide(table.matrix, None, False)
    yes, no = await _examples(block, columns, relation, ctx)
    if block.filter.formula.program == (0,):
        matrix, prior = with_similarity(table, _condition_text(block.filter.formula.leaves[0]), yes, no)
        return Guide(matrix, prior, bool(yes))
    return Guide(*_of_formula(block.filter.formula, table, yes, no, relation), bool(yes))


def _of_formula(
    formula: Formula, table: TableFeatures, yes: Sequence[str], no: Sequence[str], relation: Relation
) -> tuple[NDArray[np.float32], Floats]:
    """Features and prior of a WHERE of several leaves: columns of similarity to each text, the leaves that DuckDB knows
    as they are, and the chance of the whole, in which each row near a text is taken to meet it.

    Args:
        yes, no: example rows, of a formula with one leaf.
    """
    added: list[NDArray[np.float32]] = []
    chances = []
    for leaf in formula.leaves:
        if leaf.semantic:
            near, score = similarity(table, _condition_text(leaf), yes, no)
            added += [WEIGHT * column for column in near]
            chances.append(sigmoid(score - FEW))
        else:
            rows = np.arange(relation.n, dtype=np.int64)
            chances.append((sem_filter.truth_of(leaf, rows, relation) == TRUE).astype(np.float64))
            added.append(KNOWN * standard(chances[-1].astype(np.float32)))
    chance = formula.chance(np.stack(chances))
    if len(formula.leaves) > 1:
        added.append(WEIGHT * standard(chance.astype(np.float32)))
    return with_columns(table, added), chance


def condition_of(block: Block) -> VirtualColumn | None:
    """The first condition that aggregates are filtered by, in a block without WHERE and without groups that a model
    names."""
    if block.filter.formula is not None or block.values.groups:
        return None
    columns = (c for stage in block.values.stages for c in stage.columns)
    return next((c for c in columns if c.is_condition), None)


async def _guide_of_values(block: Block, relation: Relation, ctx: Context) -> Guide | None:
    """Features of what the aggregates' texts read; a prior where they count a condition."""
    columns = tuple(c for stage in block.values.stages for c in stage.columns)
    if block.values.groups or not columns or ctx.features is None or any(c.is_pair_condition for c in columns):
        return None
    table = ctx.features.of(relation, tuple(dict.fromkeys(c for column in columns for c in column.reads)))
    if table is None:
        return None
    condition = condition_of(block)
    if condition is None or not table.blocks:
        return Guide(table.matrix, None, False)
    yes, no = await _examples_of(condition, relation, ctx)
    matrix, prior = with_similarity(table, condition.text, yes, no)
    return Guide(matrix, prior, bool(yes))


def _condition_text(leaf: Leaf) -> str:
    """The condition in words: its texts, or a text and the labels wanted of a choice."""
    match leaf.expr:
        case InList(operand=Virtual(column=column), items=items):
            labels = [item.value for item in items if isinstance(item, String)]
            return f"{column.text} is {' or '.join(labels)}"
    return " and ".join(column.text for column in leaf.columns)


async def _examples(
    block: Block, columns: tuple[VirtualColumn, ...], relation: Relation, ctx: Context
) -> tuple[list[str], list[str]]:
    """Rows that would meet the condition and rows that would not, made up by the model; none where it cannot or may not."""
    only = columns[0] if len(columns) == 1 and columns[0].is_condition else None
    assert block.filter.formula is not None
    plain = only is not None and block.filter.formula.program in ((0,), (0, "NOT"))
    if not plain or only is None or await _settled_by_ledger(block, relation, ctx):
        return [], []
    return await _examples_of(only, relation, ctx)


async def _settled_by_ledger(block: Block, relation: Relation, ctx: Context) -> bool:
    """Does the ledger know the rows of LIMIT, or every row? Then nothing has to be guided."""
    wanted = block.order.rows_needed
    if block.filter.goal is not Goal.FIRST or wanted is None or relation.n > MOST_RECALLED:
        return False
    rids, truth = await sem_filter.recalled(block.filter, relation, ctx)
    return len(rids) == relation.n or int(truth.yes.sum()) >= wanted


async def _examples_of(condition: VirtualColumn, relation: Relation, ctx: Context) -> tuple[list[str], list[str]]:
    if isinstance(ctx.settings.examples, str):
        return own_examples(condition.reads, relation, ctx)
    left = ctx.purse.remaining_in_step
    own_yes, own_no = corrected_examples(condition, relation, ctx)
    if ctx.settings.examples is not True or (left is not None and left < LEAST_BUDGET):
        return own_yes, own_no
    reply = await ctx.write(Write(condition.text, task="examples", schema=EXAMPLES, max_tokens=300), optional=True)
    if not isinstance(reply, dict):
        return own_yes, own_no
    return [*own_yes, *_texts(reply.get("yes"))], [*own_no, *_texts(reply.get("no"))]


def _texts(value: Any) -> list[str]:
    return [v for v in value if isinstance(v, str) and v.strip()] if isinstance(value, list) else []
