"""The choice among the ways to run a block, made when its candidate rows are there: their number is known, not guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from uql.compiler.choice import Terms, choose, depends_on_rates
from uql.compiler.cost import MEDIA_CHARS, Known, Range, Unit
from uql.compiler.formula import FALSE, TRUE, Masks
from uql.compiler.fusions import apart
from uql.compiler.orders import imagined, learned
from uql.compiler.physical import Block, Stage
from uql.compiler.planner import condition_name, term_rates
from uql.compiler.syntax import Column
from uql.kernels import sem_filter
from uql.kernels.base import Context, Relation
from uql.kernels.duck import quote
from uql.llm.prompts.several import LONGEST
from uql.schema import Field, Modality
from uql.settings import Settings

PILOT_SHARE, PILOT_ROWS, LEAST_ROWS = 0.05, 64, 8  # of the rows; at most; at least, else none
COUNTED = 50_000  # rows whose distinct contents are counted
SEEDED = 32  # rows that rates known from other conditions stand for
RIDERS = ("select_with_where", "group_with_where")


def terms_of(settings: Settings, unit: Unit, in_usd: bool, calls: int | None, rows: int = 1) -> Terms:
    """What choices depend on under these settings.

    No riders where a failure would end the run, which must not happen for a row that nobody asked for, and none beside a cascade,
    whose small model is asked conditions alone. `rows`: that a request may hold; one where their probabilities are needed.
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


async def planned(block: Block, written: Block, relation: Relation, ctx: Context) -> Block:
    """The block as it is run. `written` is the block before its inner queries were answered: it names what was learned earlier.

    Where the choice depends on selectivities that nobody knows, a pilot of random rows is asked every question of the WHERE first:
    5 % of the rows, at most 64, at least 8; its answers are kept and used.
    """
    _recall(block, written, relation, ctx)
    if not (_has_ways(block) or ctx.rows_at_once > 1) or not relation.n:
        return block
    outer = block.outer_join
    block = replace(block, outer_join=None)  # it is done: what is left to choose is over its rows
    terms = terms_of(ctx.settings, ctx.unit, ctx.unit != Unit(), ctx.calls_left, ctx.rows_at_once)
    if ctx.rows_at_once > 1 and terms.rows == 1:
        ctx.note_once("rows_per_request", left_aside(ctx.settings))
    known = known_of(block, written, relation, ctx)
    rows = min(PILOT_ROWS, int(PILOT_SHARE * relation.n))
    if rows >= LEAST_ROWS and ctx.fits(relation.n) and depends_on_rates(block, known, terms):
        assert block.formula is not None
        chosen = np.random.default_rng([ctx.settings.seed, relation.n]).choice(relation.n, rows, replace=False)
        await sem_filter.answers(block.formula, block.filter_stages, np.sort(chosen).astype(np.int64), relation, ctx)
        known = known_of(block, written, relation, ctx)
        relation.orders.clear()
    return replace(choose(block, known, terms).block, outer_join=outer)


def _has_ways(block: Block) -> bool:
    """Is there anything to choose?"""
    alone = apart(block)
    return len(alone.filter_stages) + len(alone.row_stages) + len(alone.late_stages) > 1


def _recall(block: Block, written: Block, relation: Relation, ctx: Context) -> None:
    """Takes what earlier queries learned of the terms of WHERE into the relation."""
    if block.formula is None or written.formula is None or ctx.memory is None:
        return
    rates = term_rates(written, ctx.memory.rates)
    before = ctx.memory.answers(condition_name(written))
    if before is None and rates is not None:
        drawn = imagined(block.formula, rates)
        before = drawn[:, :: max(1, drawn.shape[1] // SEEDED)]
    if before is not None and before.shape[0] == len(block.formula.leaves):
        relation.profiles[block.formula] = before


def known_of(block: Block, written: Block, relation: Relation, ctx: Context) -> Known:
    """What is known of a block whose candidates are there."""
    asked = (*block.filter_stages, *block.row_stages, *block.late_stages, *(Stage((c,)) for c in block.summaries))
    chars = {stage.shown: sum(_chars(c, relation) for c in stage.shown) for stage in asked}
    copies: dict[tuple[Column, ...], float] = {}
    if relation.n <= COUNTED:
        for stage in block.filter_stages:
            copies[stage.shown] = relation.n / max(1, relation.calls((Stage(stage.columns[:1]),)))
    answers = whole(relation.profiles.get(block.formula)) if block.formula is not None else None
    return Known(
        Range.exactly(relation.n),
        chars,
        answers=answers,
        rates=term_rates(written, ctx.memory.rates) if ctx.memory is not None else None,
        copies=copies,
        output=ctx.memory.output_tokens() if ctx.memory is not None else {},
        budget=ctx.calls_left,
        alone=alone(relation.fields),
        prompt=ctx.prompt,
    )


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


def _chars(column: Column, relation: Relation) -> float:
    """The mean length of a column: as the catalog knows it, else as its candidates have it."""
    found = relation.fields.get(column)
    if found is None:
        return 0.0
    if chars_of(found):
        return chars_of(found)
    said = relation.duck.scalar(
        f"SELECT avg(length(CAST({quote(column.label)} AS VARCHAR))) FROM {quote(relation.name)}"
    )
    return float(said or 0.0)
