"""What the choice among the ways to run a block depends on, and the pilot that some choices wait for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from uql.base.schema import Field, Modality
from uql.base.settings import Settings
from uql.compiler.choice import Terms, choose
from uql.compiler.cost import MEDIA_CHARS, Range, Unit
from uql.compiler.formula import FALSE, TRUE, Masks
from uql.compiler.fusions import apart
from uql.compiler.orders import imagined, learned
from uql.compiler.physical import Block, stages
from uql.compiler.planner import condition_name, term_rates
from uql.compiler.syntax import Column
from uql.kernels import sem_filter
from uql.kernels.base import Context
from uql.kernels.relation import Relation
from uql.llm.prompts.several import LONGEST

PILOT_SHARE, PILOT_ROWS, LEAST_ROWS = 0.05, 64, 8  # of the rows; at most; at least, else none
COUNTED = 50_000  # rows whose distinct contents are counted
SEEDED = 32  # rows that rates known from other conditions stand for
RIDERS = ("select_with_where", "group_with_where")


def terms_of(settings: Settings, unit: Unit, in_usd: bool, calls: int | None, rows: int = 1) -> Terms:
    """What choices depend on under these settings.

    No riders where a failure would end the run, which must not happen for a row that the query does not need, and none beside a cascade,
    whose small model is asked conditions alone.

    Args:
        unit: of the price of a token.
        in_usd: is it USD?
        calls: of the budget; None: without limit.
        rows: that a request may hold; one where their probabilities are needed.
    """
    off = settings.disabled_rules + (RIDERS if settings.on_error == "raise" or _has_cascade(settings) else ())
    alone = needs_probabilities(settings) is not None
    return Terms(unit, calls, off, in_usd, 1 if alone else rows, settings.rows_per_request == "auto")


def _has_cascade(settings: Settings) -> bool:
    return bool(settings.models) and "cascade" not in settings.disabled_rules


def needs_probabilities(settings: Settings) -> str | None:
    """What needs the probability of each answer, which answers of rows that share a request do not have; None: nothing."""
    if _has_cascade(settings):
        return "a cascade"
    return "soft = on" if settings.soft else None


def left_aside(settings: Settings) -> str:
    """Why rows share no request though the settings say so, after the setting's name."""
    return f" is left aside: {needs_probabilities(settings)} needs the probability of each answer, and rows that share a request have none"


async def after_pilot(block: Block, written: Block, relation: Relation, ctx: Context) -> Block:
    """The block as it is run. `written` is the block before its inner queries were answered: it names what was learned earlier.

    It is the one chosen before the run (`known.Knowledge`), but where the choice depends on unknown selectivities: then a
    pilot of random rows is asked every question of the WHERE first, 5 % of the rows, at most 64, at least 8; its answers are kept and
    used, and the choice is made again.
    """
    _recall(block, written, relation, ctx)
    rows = pilot_rows(relation.n)
    if ctx.plans is None or not ctx.plans(written).pilot or not rows or not ctx.purse.fits(relation.n):
        return block
    assert block.filter.formula is not None
    asked = stages(tuple(c for stage in apart(block).filter.stages for c in stage.columns))
    drawn = np.random.default_rng([ctx.settings.seed, relation.n]).choice(relation.n, rows, replace=False)
    await sem_filter.answers(replace(block.filter, stages=asked), np.sort(drawn).astype(np.int64), relation, ctx)
    state = relation.filters.of(block.filter.formula)
    state.order = (0, ())
    answers = whole(state.profile)
    known = replace(ctx.plans(written), rows=Range.exactly(relation.n), pairs=(), answers=answers)
    done = replace(block, scan=replace(block.scan, join=None))  # its pairs are asked: what is left is over its rows
    return replace(choose(done, known, ctx.plans.terms).block, scan=block.scan)


def pilot_rows(rows: float) -> int:
    """The rows of a pilot among so many; 0 where there are too few for one."""
    found = min(PILOT_ROWS, int(PILOT_SHARE * rows))
    return found if found >= LEAST_ROWS else 0


def _recall(block: Block, written: Block, relation: Relation, ctx: Context) -> None:
    """Takes what earlier queries learned of the terms of WHERE into the relation."""
    if block.filter.formula is None or written.filter.formula is None or ctx.memory is None:
        return
    rates = term_rates(written, ctx.memory.rates)
    before = ctx.memory.answers(condition_name(written))
    if before is None and rates is not None:
        drawn = imagined(block.filter.formula, rates)
        before = drawn[:, :: max(1, drawn.shape[1] // SEEDED)]
    if before is not None and before.shape[0] == len(block.filter.formula.leaves):
        relation.filters.of(block.filter.formula).profile = before


def alone(fields: Mapping[Column, Field]) -> frozenset[Column]:
    """The columns whose rows share no request: pictures, sounds, and texts so long that one fills it."""
    return frozenset(c for c, f in fields.items() if _is_media(f) or f.mean_chars > LONGEST / 2)


def whole(masks: Masks | None) -> Masks | None:
    """Complete answers in the likely shares, from rows asked in part; None where some term has none."""
    if masks is None or not ((masks == TRUE) | (masks == FALSE)).any(axis=1).all():
        return None
    return learned(masks)


def chars_of(field: Field) -> float:
    """Mean characters of a column as a model is shown it; an image or a sound counts for those whose tokens it takes."""
    return MEDIA_CHARS if _is_media(field) else field.mean_chars


def _is_media(field: Field) -> bool:
    return field.type == "BLOB" or field.modality in (Modality.IMAGE, Modality.AUDIO)
