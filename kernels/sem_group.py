"""sem_group: which kinds are there? A taxonomy is written from some rows, checked, and every row is put to one of its groups."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from uql.base.errors import BudgetError, ModelReplyError
from uql.compiler.physical import Stage
from uql.compiler.virtual import VirtualColumn
from uql.kernels import asking
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.group_names import MOST_CHARS, duplicates, one_line, stem
from uql.kernels.relation import Relation
from uql.llm.questions import NONE, Write
from uql.sampling.base import Flags
from uql.sampling.groupby import farthest_first

SHOWN = 24  # rows shown to the taxonomy request
LEAST_AT_FIRST, MOST_AT_FIRST = 4, 8  # groups of the first request: how fine they are
MOST_GROUPS = 20  # of one request
TOKENS_DESCRIBED = 40  # of a description and what JSON needs around it
ROUNDS = 12  # of naming groups for rows that fit none
LARGE_SHARE = 0.05  # of the rows, in no group: then the result says so
OPEN_SHARE = 0.02  # of all rows, in no group: then more groups are named; of a sample, one row is enough
SETTLED = 1 / 3  # of the rows that new groups are named for: where fewer fall into one, no more are named
PREVIEWS = 5  # further requests for names before rows are asked, where the first named as many groups as it may
LEAST_NEW = 3  # names of such a request, or it is the last one
PREVIEW_PART = 32  # each takes one of so many calls that are left
_FILLER = {"other", "others", "none", "none of these", "misc", "miscellaneous", "unknown", "n/a"}
Named = dict[str, str]  # names of groups, with a line on each or an empty text


def schema_of(least: int, most: int, described: bool = False) -> str:
    """The JSON schema of a taxonomy: group names, with a line on each where they are to be described.

    Args:
        least, most: groups.
        described: with a line on each.
    Returns: JSON text.
    """
    name: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 40}
    if described:
        about = {"type": "string", "maxLength": MOST_CHARS}
        properties = {"name": name, "description": about}
        name = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return json.dumps({"type": "array", "items": name, "minItems": least, "maxItems": most})


async def taxonomy(column: VirtualColumn, rids: Rids, relation: Relation, ctx: Context, *, sampled: bool) -> None:
    """Writes the labels of `column` from a sample of these rows: one call, and a few more where there are many groups. They
    are then the labels of the column.

    Args:
        sampled: whether a sample of rows is put to the groups. Else each of these rows is, and its call is kept for it.

    Raises ModelReplyError (UQL407) where the reply holds no usable group.
    """
    if relation[column].prompt.labels is not None or not len(rids):
        return
    if ctx.groups_stay and column.text in ctx.groups:
        relation[column].prompt.labels, relation[column].prompt.descriptions = ctx.groups[column.text]
        return
    if not relation.calls((Stage((column,)),), rids):  # nothing to read in any of them: NULL is their group
        relation[column].asked_mask[rids] = True
        return
    groups = await _all_named(column, rids, relation, ctx, 0 if sampled else len(rids))
    if not groups and not ctx.purse.fits(1):
        raise BudgetError(
            f'the groups of "{column.text}" need a call to be named, and the budget leaves none',
            span=column.span,
            help="WITH (budget = n) with a larger n, or give the labels with ::ENUM('a', 'b')",
        )
    failures = [error for error in ctx.errors if error.row < 0 and error.clause == column.text]
    if not groups and failures:  # interrupted, or no reply came
        message = f'the groups of "{column.text}" have no names: {failures[-1].message}'
        raise ModelReplyError(
            message, span=column.span, help="con.resume() goes on with the run, and pays for no answer twice"
        )
    if not groups:
        raise ModelReplyError(
            f'the model named no groups for "{column.text}"',
            span=column.span,
            help="use another model, or give the labels: … GROUP BY \"the text\"::ENUM('a', 'b')",
        )
    relation[column].prompt.labels, relation[column].prompt.descriptions = tuple(groups), tuple(groups.values())
    _note_groups(column, relation, ctx)


def _note_groups(column: VirtualColumn, relation: Relation, ctx: Context) -> None:
    """What was understood by each group, where the model said it; and the groups for those who keep them."""
    ctx.groups[column.text] = (relation.labels(column), relation[column].prompt.descriptions)
    pairs = zip(relation.labels(column), relation[column].prompt.descriptions, strict=True)
    descriptions = [f"{name} ({about})" for name, about in pairs if about]
    if descriptions:
        ctx.note_once(f'groups of "{column.text}": ', "; ".join(descriptions))


async def _all_named(column: VirtualColumn, rids: Rids, relation: Relation, ctx: Context, reserve: int) -> Named:
    """The groups of these rows; of more rows where the first request named as many groups as it may.

    A further request costs one call. A row that was asked before its group had a name costs one more call each.

    Args:
        reserve: calls that are left for rows.
    """
    groups, full = await _named(column, choose_rows(rids, relation, column, ctx), (), relation, ctx)
    if column.into is not None:  # that many are wished: none may be lost
        return groups
    for _ in range(PREVIEWS):
        if not full or not ctx.purse.fits(reserve + PREVIEW_PART):
            break
        sample = choose_rows(rids, relation, column, ctx)
        named, _ = await _named(column, sample, tuple(groups), relation, ctx, least=0)
        more = _without(named, groups)
        groups, full = groups | more, len(more) >= LEAST_NEW
    return await _distinct(column, (), groups, relation, ctx)


async def reopen(column: VirtualColumn, rids: Rids, relation: Relation, ctx: Context, *, sampled: bool = True) -> None:
    """Names groups for rows in "none of these" and asks them again, as often as it helps and fits.

    A round costs one call and one for each row that is asked again. A wished number of groups (INTO k) is kept: the
    share of the rows in none of them is noted.

    Args:
        sampled: whether the rows are a sample. Each of them then stands for many, and one in no group is enough. Else at most
            half of the calls left go to them: others are to come.
    """
    if relation[column].prompt.labels is None:
        return
    least = 1 if sampled else max(2, OPEN_SHARE * len(rids))
    for _ in range(0 if stays(column, ctx) else ROUNDS):
        none = rids[in_none(column, rids, relation)]
        if len(none) < least or not ctx.purse.fits_now(2 if sampled else 2 * (1 + len(none))):
            break
        old = relation.labels(column)
        sample = choose_rows(none, relation, column, ctx)
        proposal, _ = await _named(column, sample, old, relation, ctx)
        new = await _distinct(column, old, _without(proposal, old), relation, ctx)
        if not new:
            break
        relation[column].prompt.labels = (*old, *new)
        relation[column].prompt.descriptions = (*relation[column].prompt.descriptions, *new.values())
        _note_groups(column, relation, ctx)
        again = none if ctx.purse.remaining is None else none[: ctx.purse.remaining]
        relation[column].asked_mask[again] = False
        await asking.ask(Stage((column,)), again, relation, ctx)
        if in_none(column, sample, relation).mean() > 1 - SETTLED:
            break
    left = int(in_none(column, rids, relation).sum())
    if left > max(1, LARGE_SHARE * len(rids)):
        n_asked = int(relation[column].asked_mask[rids].sum())
        ctx.note_once(
            f'"{column.text}": ',
            f"{left:,} of {n_asked:,} rows asked are in none of the {len(relation.labels(column))} groups",
        )


def stays(column: VirtualColumn, ctx: Context) -> bool:
    """Are the groups those of the first request, with no more to come?"""
    return column.into is not None or (ctx.groups_stay and column.text in ctx.groups)


def in_none(column: VirtualColumn, rids: Rids, relation: Relation) -> Flags:
    """(n,) which of these rows were asked and are in no group.

    Args:
        column: a GROUP BY text whose taxonomy is there.
        rids: (n,) int, rows of the relation.
    """
    return np.array([value == NONE or value == [] for value in relation[column].values[rids]], dtype=bool)


async def _distinct(
    column: VirtualColumn, old: tuple[str, ...], proposal: Named, relation: Relation, ctx: Context
) -> Named:
    """The groups that do not mean what another name means, one of those before them or a known one."""
    return _without(proposal, await duplicates(column, old, tuple(proposal), relation.source, ctx))


def _without(groups: Named, gone: Iterable[str]) -> Named:
    """Those whose name differs from these in more than case or number."""
    stems = {stem(name) for name in gone}
    return {name: about for name, about in groups.items() if stem(name) not in stems}


async def _named(
    column: VirtualColumn,
    chosen: Rids,
    old: tuple[str, ...],
    relation: Relation,
    ctx: Context,
    least: int = 1,
) -> tuple[Named, bool]:
    """The groups of these rows, from one request that shows them; and whether it named as many as it may.

    Args:
        old: names of groups that there are; the request is then for further ones.
        least: further ones.
    """
    sample = tuple(row for row in relation.rows(chosen, [column]) if not row.is_null)
    if not sample:
        return {}, False
    most = column.into or min(MOST_GROUPS if old else MOST_AT_FIRST, len(sample))
    if not old:
        least = column.into or min(LEAST_AT_FIRST, len(sample))
    count = f"up to {most} further" if old else str(least) if least == most else f"{least} to {most}"
    parameters = [("groups", count)]
    if old:
        parameters.append(("known", "; ".join(old)))
    described = await ctx.describes()
    reply = await ctx.write(
        Write(
            column.text,
            task="taxonomy",
            schema=schema_of(least, most, described),
            shown=sample,
            parameters=tuple(parameters),
            max_tokens=300 + (TOKENS_DESCRIBED * most if described else 0),
        ),
        source=relation.source,
    )
    groups = read_groups(reply, column.into or MOST_GROUPS)
    return groups, len(sample) > most and len(groups) >= most


def choose_rows(rids: Rids, relation: Relation, column: VirtualColumn, ctx: Context) -> Rids:
    """The rows that the taxonomy is made from: far from each other where features are at hand, else random.

    Args:
        rids: (n,) int, rows of the relation.
        column: the GROUP BY text.
    Returns: at most SHOWN of them.
    """
    if len(rids) <= SHOWN:
        return rids
    if ctx.features is not None:
        places, among = rids, relation
        if relation.name in ctx.features.first_stages:
            rows, among = ctx.features.first_stages[relation.name]
            rids = rids[np.isin(rids, rows)]
            places = np.searchsorted(rows, rids)
        table = ctx.features.of(among, column.reads)
        if table is not None:
            return rids[farthest_first(table.matrix[places], SHOWN, ctx.rng)]
    return np.sort(ctx.rng.choice(rids, SHOWN, replace=False))


def read_groups(reply: Any, most: int) -> Named:
    """Names and descriptions of a reply: one line each, no two that differ in case or number alone, no empty ones, none that says "other".

    >>> read_groups([{"name": "Lost card"}, {"name": " lost  cards "}, {"name": "Other"}, "Fees"], 8)
    {'Lost card': '', 'Fees': ''}
    """
    groups: dict[str, tuple[str, str]] = {}
    items = reply if isinstance(reply, list) else []
    for item in items:
        name = item if isinstance(item, str) else item.get("name") if isinstance(item, dict) else None
        about = item.get("description", "") if isinstance(item, dict) else ""
        if not isinstance(name, str):
            continue
        clean = one_line(name)
        key = stem(clean)
        if clean and clean.casefold() not in _FILLER and key not in groups:
            line = one_line(about) if isinstance(about, str) else ""
            groups[key] = (clean, line if stem(line) != key else "")
    return dict(list(groups.values())[:most])
