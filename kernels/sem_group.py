"""sem_group: which kinds are there? A taxonomy is written from some rows, checked, and every row is put to one of its groups."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uql.compiler.physical import Stage
from uql.compiler.virtual import VirtualColumn
from uql.errors import BudgetError, ModelReplyError
from uql.kernels.base import Context, Relation, Rids
from uql.kernels.labels import MOST_CHARS, one_line, stem
from uql.kernels.merge import duplicates
from uql.llm.questions import NONE, Write

SHOWN = 24  # rows shown to the taxonomy request
MOST_GROUPS = 20
TOKENS_DESCRIBED = 40  # of a description and what JSON needs around it
ROUNDS = 12  # of naming groups for rows that fit none
LARGE_SHARE = 0.05  # of the rows, in no group: then the result says so
OPEN_SHARE = 0.02  # of the rows, in no group: then more groups are named
_FILLER = {"other", "others", "none", "none of these", "misc", "miscellaneous", "unknown", "n/a"}


def schema_of(least: int, most: int, described: bool = False) -> str:
    """The JSON schema of a taxonomy: group names, with a line on each where they are to be described."""
    name: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 40}
    if described:
        about = {"type": "string", "maxLength": MOST_CHARS}
        properties = {"name": name, "description": about}
        name = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return json.dumps({"type": "array", "items": name, "minItems": least, "maxItems": most})


async def taxonomy(column: VirtualColumn, rids: Rids, relation: Relation, ctx: Context) -> None:
    """Writes the labels of `column` from a sample of these rows: one call. They are then in `relation.labels`.

    Raises ModelReplyError (UQL407) where the reply holds no usable group.
    """
    if column.id in relation.labels or not len(rids):
        return
    if ctx.groups_stay and column.text in ctx.groups:
        relation.labels[column.id], relation.descriptions[column.id] = ctx.groups[column.text]
        return
    if not relation.calls((Stage((column,)),), rids):  # nothing to read in any of them: NULL is their group
        relation.know(column)
        relation.asked[column.id][rids] = True
        return
    labels, descriptions = await _distinct(column, rids, (), relation, ctx)
    if not labels and not ctx.fits(1):
        raise BudgetError(
            f'the groups of "{column.text}" need a call to be named, and the budget leaves none',
            start=column.span.start,
            end=column.span.end,
            help="WITH (budget = n) with a larger n, or give the labels with ::ENUM('a', 'b')",
        )
    if not labels:
        raise ModelReplyError(
            f'the model named no groups for "{column.text}"',
            start=column.span.start,
            end=column.span.end,
            help="use another model, or give the labels: … GROUP BY \"the text\"::ENUM('a', 'b')",
        )
    relation.labels[column.id], relation.descriptions[column.id] = labels, descriptions
    _note_groups(column, relation, ctx)


def _note_groups(column: VirtualColumn, relation: Relation, ctx: Context) -> None:
    """What was understood by each group, where the model said it; and the groups for those who keep them."""
    ctx.groups[column.text] = (relation.labels[column.id], relation.descriptions[column.id])
    pairs = zip(relation.labels[column.id], relation.descriptions[column.id], strict=True)
    said = [f"{name} ({about})" for name, about in pairs if about]
    if said:
        ctx.note_once(f'groups of "{column.text}": ', "; ".join(said))


async def reopen(column: VirtualColumn, rids: Rids, relation: Relation, ctx: Context) -> None:
    """Where "none of these" is large, names groups for those rows and asks them again, as often as it helps and fits.

    A round costs one call and one for each row that is asked again; nothing is asked where that takes more than half of what the
    budget leaves: a row asked again tells as much of the groups as a new one. A wished number of groups (INTO k) is kept: the
    share of the rows in none of them is noted.
    """
    if column.id not in relation.labels:
        return
    stay = column.into is not None or (ctx.groups_stay and column.text in ctx.groups)
    for _ in range(0 if stay else ROUNDS):
        none = rids[_in_none(column, rids, relation)]
        if len(none) < max(2, OPEN_SHARE * len(rids)) or not ctx.fits(2 * (1 + len(none))):
            break
        known = relation.labels[column.id]
        labels, descriptions = await _distinct(column, none, known, relation, ctx)
        low = {stem(label) for label in known}
        new = [(n, d) for n, d in zip(labels, descriptions, strict=True) if stem(n) not in low]
        if not new:
            break
        relation.labels[column.id] = (*known, *(n for n, _ in new))
        relation.descriptions[column.id] = (*relation.descriptions[column.id], *(d for _, d in new))
        _note_groups(column, relation, ctx)
        relation.asked[column.id][none] = False
        await relation.ask(Stage((column,)), none, ctx)
    left = int(_in_none(column, rids, relation).sum())
    if left > max(1, LARGE_SHARE * len(rids)):
        asked = int(relation.asked[column.id][rids].sum())
        ctx.note_once(
            f'"{column.text}": ',
            f"{left:,} of {asked:,} rows asked are in none of the {len(relation.labels[column.id])} groups",
        )


def _in_none(column: VirtualColumn, rids: Rids, relation: Relation) -> NDArray[np.bool_]:
    """(n,) which rows were asked and are in no group."""
    return np.array([value == NONE or value == [] for value in relation.values[column.id][rids]], dtype=bool)


async def _distinct(
    column: VirtualColumn, rids: Rids, known: tuple[str, ...], relation: Relation, ctx: Context
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """New names and descriptions without those that mean what another name means."""
    labels, descriptions = await _named(column, rids, known, relation, ctx)
    if column.into is not None:  # that many are wished: none may be lost
        return labels, descriptions
    gone = await duplicates(column, known, labels, relation.source, ctx)
    kept = [(n, d) for n, d in zip(labels, descriptions, strict=True) if n not in gone]
    return tuple(n for n, _ in kept), tuple(d for _, d in kept)


async def _named(
    column: VirtualColumn, rids: Rids, known: tuple[str, ...], relation: Relation, ctx: Context
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and descriptions of the groups of these rows, from one request that shows some of them."""
    chosen = choose_rows(rids, relation, column, ctx)
    shown = tuple(row for row in relation.rows(chosen, [column]) if not row.is_null)
    if not shown:
        return (), ()
    least, most = (column.into, column.into) if column.into else (min(4, len(shown)), min(8, len(shown)))
    if known:
        least = 1
    parameters = [("groups", str(least) if least == most else f"{least} to {most}")]
    if known:
        parameters.append(("known", "; ".join(known)))
    described = await ctx.describes()
    reply = await ctx.write(
        Write(
            column.text,
            task="taxonomy",
            schema=schema_of(least, most, described),
            shown=shown,
            parameters=tuple(parameters),
            max_tokens=300 + (TOKENS_DESCRIBED * most if described else 0),
        ),
        source=relation.source,
    )
    return read_groups(reply, column.into or MOST_GROUPS)


def choose_rows(rids: Rids, relation: Relation, column: VirtualColumn, ctx: Context) -> Rids:
    """The rows that the taxonomy is made from: far from each other where features are at hand, else random."""
    if len(rids) <= SHOWN:
        return rids
    if ctx.features is not None:
        from uql.sampling.groupby import farthest_first

        table = ctx.features.of(relation, column.reads)
        if table is not None:
            return rids[farthest_first(table.matrix[rids], SHOWN, ctx.rng)]
    return np.sort(ctx.rng.choice(rids, SHOWN, replace=False))


def read_groups(reply: Any, most: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and descriptions of a reply: one line each, no two that differ in case or number alone, no empty ones, none that says "other".

    >>> read_groups([{"name": "Lost card"}, {"name": " lost  cards "}, {"name": "Other"}, "Fees"], 8)
    (('Lost card', 'Fees'), ('', ''))
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
    chosen = list(groups.values())[:most]
    return tuple(n for n, _ in chosen), tuple(d for _, d in chosen)
