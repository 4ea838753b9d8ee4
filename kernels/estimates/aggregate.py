"""Aggregates: exact ones by DuckDB where every row was asked, else estimates with intervals from the rows that were."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from uql.base.errors import BudgetError
from uql.compiler.formula import conjuncts
from uql.compiler.physical import Block
from uql.compiler.syntax import NO_SPAN, Binary, Call, Case, Cast, Expr, Null, Number, Star, Unary
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.compiler.walk import aggregate_calls, is_semantic, virtuals, walk
from uql.kernels.answers import Rids
from uql.kernels.base import Context
from uql.kernels.duck import quote
from uql.kernels.estimates import audit as judged, sample_bounds
from uql.kernels.estimates.by_group import Target
from uql.kernels.estimates.doubtful_answers import doubted
from uql.kernels.estimates.error_correction import Correction, audited
from uql.kernels.estimates.error_target import half_width, note_error, note_wide
from uql.kernels.estimates.exact import exactly, numbers
from uql.kernels.estimates.groups import Aggregation, Groups
from uql.kernels.estimates.probability_counts import Soft, soft
from uql.kernels.estimates.sample import Purpose, Sampled, draw, whole_cost
from uql.kernels.estimates.sample_bounds import is_bound, of_parts, values_of
from uql.kernels.estimates.stored_values import MOST, Stored, argument, number
from uql.kernels.estimates.unseen import note_few, note_unseen
from uql.kernels.memberships import each, many_of, memberships
from uql.kernels.pair_conditions import attribute
from uql.kernels.relation import Relation
from uql.sampling.base import AggregateSampler, Estimate, Flags, Floats, Indices
from uql.sampling.model_errors import Audit
from uql.sampling.sample_state import is_share_of

MOST_GROUPS = 2_000  # that are shown although no row of theirs was asked


async def aggregate(block: Block, relation: Relation, ctx: Context) -> Groups:
    """Asks what is needed and gives the groups. Raises BudgetError (UQL401) where an aggregate cannot be estimated.

    Args:
        block: with aggregates; its rows are those of the relation.
    """
    calls, codes = _calls(block, ctx), _concrete_codes(block, relation, ctx)
    await attribute.prefer(block.filter.columns, relation, ctx)
    whole = sample_bounds.of_all_rows(block, calls, codes, relation)
    sizes, whole_table = None if codes is None else np.bincount(codes), ""
    if relation.stage is not None and (codes is not None or whole):
        whole_table, sizes = sample_bounds.of_table(
            block, {c: f"__a{i}" for i, c in enumerate(calls) if c in whole}, relation, ctx
        )
    only_seen = sample_bounds.unsampled([c for c in calls if c not in whole], relation, ctx)
    every_row_counts = block.filter.formula is None and relation.stage is None
    every_row_counts &= codes is not None or not block.aggregate.keys
    stored = Stored.of([c for c in calls if c not in only_seen | whole], relation, ctx, every_row_counts)
    quotients = {
        quotient: (top, bottom)
        for quotient, (top, bottom) in _quotients(block, calls).items()
        if bottom not in stored.branches and (top not in stored.branches or bottom.name == "count")
    }
    of = Aggregation(block, relation, ctx, calls, quotients, _columns(block), codes, sizes, whole_table)
    await _check_estimable(block, only_seen, stored.boundless, relation, ctx)
    watched = [c for c in calls if c.name in sample_bounds.ESTIMATED and not c.distinct and c not in only_seen | whole]

    def excess(so_far: Sampled) -> float:
        """How many times as wide as the user's `error` allows is the widest interval?"""
        sample, _, group_codes = _sample_columns(of, so_far)
        error = ctx.settings.error or 0.0
        widths = [0.0] if group_codes else [math.inf]
        for code in group_codes:
            measure = _Measure(of, so_far, sample, stored, code)
            widths += [half_width(measure.call(c)) / error for c in watched]
        return max(widths)

    live_items = {item.name: item.expr for item in block.project.items if item.expr in watched}

    def report(so_far: Sampled) -> None:
        """Tells the estimates so far of the items that are an aggregate each."""
        assert ctx.on_estimate is not None
        measure = _Measure(of, so_far, _sample_columns(of, so_far)[0], stored, 0)
        for name, call in live_items.items():
            assert isinstance(call, Call)
            estimate = measure.call(call)
            if estimate.value is not None:
                ctx.on_estimate(name, estimate)

    chances = await soft(of)
    condition = audited(block, calls) if ctx.settings.audit is not None and chances is None else None
    checked = await judged.audit(block, condition, relation, ctx) if chances is None else None
    exempt = {*only_seen, *whole, *stored.weights, *stored.scales, *stored.branches}
    target = Target.of(of, [c for c in calls if c not in exempt])
    is_live = bool(live_items) and not block.aggregate.keys and checked is None and chances is None
    purpose = Purpose(codes, sizes, stored.importance, excess, target, report if is_live else None)
    sampled = await draw(block, relation, ctx, purpose)
    if checked is None and chances is None:
        await judged.note_errors(block, calls, relation, ctx)
    failed = _failed(of.columns, sampled.passing, relation)
    exact = sampled.every and not sampled.truth.unknown.any() and not failed.any()
    if exact and checked is None and chances is None:
        passing = sampled.passing
        del sampled, failed  # of ten million rows 0.3 GB
        groups = _exact(of, passing)
        return doubted(groups, of) if relation.doubtful else groups
    if block.aggregate.sets:
        unknown = int(sampled.truth.unknown.sum() + failed.any(axis=1).sum())
        ctx.notes.append(f"{unknown:,} rows gave no answer: the groups are those of the other rows")
        groups = _exact(of, sampled.passing)
        for call, by_group in groups.estimates.items():
            groups.estimates[call] = [
                replace(e, low=float("-inf"), high=float("inf"), exact=False, unknown=unknown) for e in by_group
            ]
        return replace(groups, exact=False, sample_only=frozenset(calls))
    groups = _estimated(of, (only_seen, whole), sampled, stored, checked, chances)
    estimates = [e for call in watched for e in groups.estimates[call]]
    note_error(estimates, len(sampled.labelled), relation.total, ctx)
    if is_live and relation.pool is None:
        note_wide(estimates, len(sampled.labelled), relation.total, ctx)
    return groups


def _calls(block: Block, ctx: Context) -> tuple[Call, ...]:
    calls: dict[Call, None] = {}
    for expr in block.output:
        calls.update(dict.fromkeys(aggregate_calls(expr, ctx.duck.aggregates)))
    return tuple(calls)


def _columns(block: Block) -> tuple[VirtualColumn, ...]:
    """The virtual columns of the rows that pass that keys and aggregates need."""
    columns = [c for stage in (*block.filter.stages, *block.values.stages) for c in stage.columns]
    needs = virtuals(*(key.expr for key in block.aggregate.keys), *block.output)
    return tuple(c for c in dict.fromkeys(columns) if c in needs)


def _failed(columns: tuple[VirtualColumn, ...], rids: Rids, relation: Relation) -> Flags:
    """(rows, columns) where a value needed is unknown: it failed, or the budget did not reach it."""
    flags = np.zeros((len(rids), len(columns)), dtype=bool)
    for j, column in enumerate(columns):
        flags[:, j] = relation[column].failed[rids] | ~relation[column].asked_mask[rids]
    return flags


async def _check_estimable(
    block: Block, only_seen: frozenset[Call], boundless: frozenset[Call], relation: Relation, ctx: Context
) -> None:
    bad = sorted((c for c in only_seen | boundless if not is_bound(c)), key=lambda c: c.span.start)
    if not (bad or block.aggregate.sets):
        return
    everything = await whole_cost(block, relation, ctx)
    if ctx.purse.fits(everything):
        return
    what, other, span = "ROLLUP, CUBE and GROUPING SETS need", "a plain GROUP BY can be estimated", NO_SPAN
    if not block.aggregate.sets:
        what, other, span = f"{bad[0].name}(…) needs", "COUNT, SUM, AVG, MIN and MAX can be estimated", bad[0].span
        if bad[0] in boundless:
            what = f"{bad[0].name}(…) of values with NaN, infinity or more than {MOST:g} needs"
            other = "WHERE isfinite(x) leaves those out, and the rest can be estimated"
    raise BudgetError(
        f"{what} the value of each row: {everything:,} calls, and the budget leaves {ctx.purse.remaining:,}; nothing was sent",
        span=span,
        help=f"WITH (budget = {everything}) or WITH (budget = 'all') asks them; {other}",
    )


def _concrete_codes(block: Block, relation: Relation, ctx: Context) -> Indices | None:
    """(N,) the group of every candidate row, where DuckDB alone can tell it."""
    if not block.aggregate.keys or any(is_semantic(key.expr) for key in block.aggregate.keys):
        return None
    keys = ", ".join(ctx.duck.expression(key.expr) for key in block.aggregate.keys)
    return relation.each(f"system.main.dense_rank() OVER (ORDER BY {keys}) - 1")


# -------------------------------------------------------------------------------------------------------------- exact
def _exact(of: Aggregation, passing: Rids) -> Groups:
    """The groups by DuckDB's own aggregates over the rows that pass."""
    block, relation, ctx = of.block, of.relation, of.ctx
    joined, arrays = relation.joined(np.sort(passing), of.columns)
    listed = [many for key in block.aggregate.keys if (many := many_of(key.expr)) is not None]
    if listed:  # one row a membership
        names_of = ", ".join(quote(many.name) for many in listed)
        singles = ", ".join(each(many, quote(many.name)) for many in listed)
        joined = f"(SELECT * EXCLUDE ({names_of}), {singles} FROM {joined})"
    keys = {key.expr: f"__k{i}" for i, key in enumerate(block.aggregate.keys)}
    names: dict[Expr, str] = {call: f"__a{i}" for i, call in enumerate(of.calls)}
    parts = [f"{ctx.duck.expression(e)} AS {n}" for e, n in keys.items()]
    parts += [f"{ctx.duck.expression(c)} AS {n}" for c, n in names.items()]
    parts.append("system.main.min(__pos) AS __first")
    places = {expr: str(place) for place, expr in enumerate(keys, start=1)}  # a constant would be read as a place
    group_by = f" GROUP BY {_grouped(block, [places[key.expr] for key in block.aggregate.keys])}" if keys else ""
    if block.summaries.columns or keys:
        parts.append("system.main.list(__rid ORDER BY __pos) AS __rows")
    inner = f"SELECT {', '.join(parts)} FROM {joined}{group_by}"
    order = ", ".join(["__first", *keys.values()])  # groups of several sets may begin with the same row
    table, _ = ctx.duck.create(
        f"SELECT system.main.row_number() OVER (ORDER BY {order}) - 1 AS __g, * FROM ({inner})", arrays
    )
    groups = Groups(table, keys, names, exact=True)
    if block.summaries.columns or keys:
        listed_rows = "__rows" if block.summaries.columns else "system.main.array_slice(__rows, 1, 20)"
        rows = ctx.duck.arrow(f"SELECT {listed_rows} FROM {quote(table)} ORDER BY __g").column(0).to_pylist()
        groups.members = [np.array(r or [], dtype=np.int64) for r in rows]
    confidence = ctx.settings.confidence
    for call, name in names.items():
        values = numbers(ctx.duck.arrow(f"SELECT {name} FROM {quote(table)} ORDER BY __g").column(0))
        groups.estimates[call] = [exactly(v, confidence, relation.n) for v in values]
    return groups


def _grouped(block: Block, keys: list[str]) -> str:
    """What stands after GROUP BY: the keys, or the sets of them."""
    if not block.aggregate.sets:
        return ", ".join(keys)
    return f"GROUPING SETS ({', '.join('(' + ', '.join(keys[i] for i in one) + ')' for one in block.aggregate.sets)})"


# ---------------------------------------------------------------------------------------------------------- estimated
@dataclass(slots=True)
class _SampleColumns:
    """The rows told to the sampler, with what the aggregates need of those that pass."""

    truth: Floats  # (labelled,) 1, 0, NaN
    at: Indices  # (passing,) position among the labelled rows
    group: Indices  # (labelled,) code, −1 where not passing or unknown
    open_group: Flags  # (labelled,) the group is not known
    arguments: dict[Call, Floats]  # (labelled,) value, NaN for NULL
    missing: dict[Call, Flags]  # (labelled,) the value is unknown


def _estimated(
    of: Aggregation,
    apart: tuple[frozenset[Call], frozenset[Call]],
    sampled: Sampled,
    stored: Stored,
    checked: Audit | None,
    chances: Soft | None,
) -> Groups:
    """The groups with an estimate of each aggregate.

    Args:
        apart: aggregates of which only the rows seen tell, and those that DuckDB knows of all rows.
        stored: what is known of every row, beside the answers.
        checked: the model's errors on judged rows, by which estimates are corrected.
        chances: probabilities that count in the place of yes and no.
    """
    block, relation, ctx, calls, columns, codes = of.block, of.relation, of.ctx, of.calls, of.columns, of.codes
    only_seen, whole = apart
    passing = sampled.passing
    sample, representatives, group_codes = _sample_columns(of, sampled)
    confidence = ctx.settings.confidence
    few = codes is not None and codes.max(initial=0) < MOST_GROUPS
    if codes is not None and few and block.filter.formula is None:  # they are there, asked or not
        present_codes, representatives = np.unique(codes, return_index=True)
        group_codes = [int(c) for c in present_codes]
    elif chances is not None and codes is not None:  # a row without a yes counts for its group too
        present_codes, first = np.unique(codes[sampled.labelled], return_index=True)
        group_codes, representatives = [int(c) for c in present_codes], sampled.labelled[first]
    keys = {key.expr: f"__k{i}" for i, key in enumerate(block.aggregate.keys)}
    names: dict[Expr, str] = {call: f"__a{i}" for i, call in enumerate(calls)}
    groups = Groups("", keys, names, exact=False, sample_only=only_seen)
    for call in calls:
        groups.estimates[call] = []
    for quotient in of.quotients:
        groups.ratios[quotient] = []
    parts = [(code, sample) for code in group_codes]
    labels: list[tuple[str | None, ...]] = []
    if any(many_of(key.expr) for key in block.aggregate.keys):
        member_groups = memberships(block.aggregate.keys, group_codes, representatives, columns, relation)
        parts = [(0, replace(sample, group=np.where(np.isin(sample.group, m.codes), 0, -1))) for m in member_groups]
        representatives = np.array([m.row for m in member_groups], dtype=np.int64)
        labels = [m.labels for m in member_groups]
    whole_names = {call: names[call] for call in calls if call in whole}
    sample_names = {call: names[call] for call in calls if call not in whole and (call in only_seen or is_bound(call))}
    measures: list[_Measure] = []
    correct = None if checked is None else Correction.of(checked, of)
    if checked is not None:
        _note_audit(checked, codes is not None, ctx)
    for code, sample in parts:
        measure = _Measure(of, sampled, sample, stored, code)
        measures.append(measure)
        for call in (c for c in calls if c not in sample_names and c not in whole_names):
            estimate = measure.call(call)
            if chances is not None:
                estimate = chances.call(call, estimate, sampled, code)
            if correct is not None:
                estimate = correct.call(call, estimate, measure.counted(call), code)
            groups.estimates[call].append(estimate)
        for quotient, (top, bottom) in of.quotients.items():
            share = measure.quotient(top, bottom)
            if chances is not None:
                share = chances.quotient(top, share, sampled, code)
            if correct is not None:
                share = correct.quotient(top, bottom, share, measure.counted(bottom), code)
            groups.ratios[quotient].append(share)
        inside = sample.group[sample.at] == code if block.aggregate.keys else np.ones(len(sample.at), bool)
        groups.members.append(passing[inside])
    _note_open_ends(groups, measures, ctx)
    _note_tail(groups, measures, ctx)
    tables = []
    if sample_names:
        tables.append(of_parts(sample_names, groups.members, bool(block.aggregate.keys), columns, relation, ctx))
        for call, name in sample_names.items():
            unknown = [measure.unknown(call) for measure in measures]
            groups.estimates[call] = sample_bounds.bounds_from_sample(
                call, values_of(tables[-1], name, unknown, ctx), unknown, sampled, confidence
            )
    if whole_names:
        every = np.arange(relation.n, dtype=np.int64)
        rows = [every] if codes is None else [every[codes == code] for code in group_codes]
        tables.append(of.known_table or of_parts(whole_names, rows, bool(block.aggregate.keys), (), relation, ctx))
        for call in whole_names:
            groups.estimates[call] = [
                exactly(v, confidence, 0) for v in values_of(tables[-1], whole_names[call], parts, ctx)
            ]
    estimated = {c: n for c, n in names.items() if c not in sample_names and c not in whole_names}
    extra: dict[str, Floats] = {"__g": np.arange(len(parts), dtype=np.float64)}
    for aggregated, name in estimated.items():
        values = [np.nan if e.value is None else e.value for e in groups.estimates[aggregated]]
        extra[name] = np.array(values, dtype=np.float64)
    groups.table = _group_table(of, keys, estimated, representatives, extra, labels, tables)
    if block.aggregate.keys and not sampled.every:
        open_groups = int(sample.open_group.sum())
        groups.every = note_unseen(of, group_codes, sampled, open_groups)
    if block.aggregate.keys and any(not e.exact for estimates in groups.estimates.values() for e in estimates):
        note_few(of, groups.members, group_codes, sampled)
    return groups


def _note_open_ends(groups: Groups, measures: list[_Measure], ctx: Context) -> None:
    """Says why a number has no interval."""
    for call, estimates in groups.estimates.items():
        open_ = [g for g, e in enumerate(estimates) if not e.exact and e.low == -np.inf and e.high == np.inf]
        if not open_ or not isinstance(call, Call):
            continue
        few = sum(measures[g].count_known(call) < 2 for g in open_)
        for n, why in ((few, "fewer than two rows with a value were seen"), (len(open_) - few, "too few rows count")):
            if n:
                where = "" if len(estimates) == 1 else f" of {n:,} group{'' if n == 1 else 's'}"
                ctx.notes.append(f"{call.name.upper()}{where} has no interval: {why}; a larger budget gives one")


def _is_read(call: Call) -> bool:
    """Does a model read the numbers that are added up? Conditions are 0 and 1, and so is a CASE that has no other values: it counts."""
    value = call.args[0]
    if isinstance(value, Case):
        results = [*(when.value for when in value.whens), value.default]
        counts = all(
            r is None or isinstance(r, Null) or (isinstance(r, Number) and float(r.text) in (0.0, 1.0)) for r in results
        )
        if counts:
            return False
    return any(not column.is_condition for column in virtuals(value))


def _note_tail(groups: Groups, measures: list[_Measure], ctx: Context) -> None:
    """Says how rare the numbers may be that a sum or mean of what a model reads lacks: nothing tells how large those are."""
    counts = [
        measure.count_known(call)
        for call, estimates in groups.estimates.items()
        if isinstance(call, Call) and call.name in ("sum", "avg", "mean") and _is_read(call)
        for measure, estimate in zip(measures, estimates, strict=False)  # there is none yet of the rows seen alone
        if not estimate.exact and estimate.high != np.inf
    ]
    if counts:
        level, least = ctx.settings.confidence, max(1, min(counts))
        rare, of_group = 1 - (1 - level) ** (1 / least), " of a group" if len(measures) > 1 else ""
        ctx.notes.append(
            f"numbers far larger than those read are not in the interval: up to {rare:.1%} of the rows{of_group} may have some "
            f"({least:,} were read; {level:.0%})"
        )


def _note_audit(checked: Audit, grouped: bool, ctx: Context) -> None:
    """What the judged rows say of the model."""
    ctx.notes.append(
        f"corrected by {checked.yes + checked.no:,} judged rows, of which the model found {checked.hits} of {checked.yes} "
        f"and took {checked.false_alarms} of {checked.no} others for one"
        + ("; the same share of errors is assumed in every group" if grouped else "")
    )


def _group_table(
    of: Aggregation,
    keys: dict[Expr, str],
    names: dict[Expr, str],
    representatives: Rids,
    extra: dict[str, Floats],
    labels: list[tuple[str | None, ...]],
    beside: Sequence[str],
) -> str:
    """The table of the groups in DuckDB.

    Args:
        keys, names: the columns of the keys, and of the aggregates that are estimates.
        representatives: a row of each group.
        extra: __g and the estimates, by the names of their columns.
        labels: of each group those of the keys that list several, where there are any.
        beside: tables of further aggregates, by __part.
    """
    block, ctx = of.block, of.ctx
    whole = {call: "::BIGINT" if isinstance(call, Call) and call.name == "count" else "" for call in names}
    numbers = ", ".join(
        f"CASE WHEN system.main.isnan({n}) THEN NULL ELSE {n} END{whole[c]} AS {n}" for c, n in names.items()
    )
    numbers = f", {numbers}" if numbers else ""
    numbers += "".join(f", {quote(name)}.* EXCLUDE (__part)" for name in beside)
    joins = "".join(f" LEFT JOIN {quote(name)} ON {quote(name)}.__part = __g" for name in beside)
    if not block.aggregate.keys:
        array = pa.table({name: pa.array(values) for name, values in extra.items()})
        table, _ = ctx.duck.create(
            f"SELECT CAST(__g AS BIGINT) AS __g{numbers} FROM __groups{joins}", {"__groups": array}
        )
        return table
    of_many = {key.expr: i for i, key in enumerate(k for k in block.aggregate.keys if many_of(k.expr))}
    texts = {f"__m{i}": np.array([one[i] for one in labels], dtype=object) for i in of_many.values()}
    joined, arrays = of.relation.joined(representatives, of.columns, **extra, **texts)
    parts = ", ".join(
        f"__m{of_many[e]} AS {n}" if e in of_many else f"{ctx.duck.expression(e)} AS {n}" for e, n in keys.items()
    )
    table, _ = ctx.duck.create(
        f"SELECT CAST(__g AS BIGINT) AS __g, {parts}{numbers} FROM {joined}{joins} ORDER BY __g", arrays
    )
    return table


def _sample_columns(of: Aggregation, sampled: Sampled) -> tuple[_SampleColumns, Rids, list[int]]:
    """What is known of the rows asked; one row of each group found, in the order of their codes; the codes."""
    block, relation, ctx, calls, columns, codes = of.block, of.relation, of.ctx, of.calls, of.columns, of.codes
    rids, truth = sampled.labelled, sampled.truth.answers
    at = np.flatnonzero(sampled.truth.yes)
    passing = rids[at]
    n = len(rids)
    group = np.full(n, -1, dtype=np.int64)
    open_group = np.zeros(n, dtype=bool)
    flags = dict(zip(columns, _failed(columns, passing, relation).T, strict=True))
    keys = [key.expr for key in block.aggregate.keys]
    key_failed = _any(flags, virtuals(*keys), len(at))
    arguments: dict[Call, Floats] = {}
    missing: dict[Call, Flags] = {}
    parts = []
    for i, call in enumerate(calls):
        parts.append(f"{number(call, ctx)} AS a{i}")
        if call.distinct:
            parts.append(f"CAST({argument(call, ctx)} AS VARCHAR) AS d{i}")
    rank = (
        f"system.main.dense_rank() OVER (ORDER BY {', '.join(ctx.duck.expression(k) for k in keys)}) - 1"
        if keys
        else "0"
    )
    joined, arrays = f"(SELECT range AS __pos FROM system.main.range({len(at)}))", dict[str, pa.Table]()
    if keys or any(argument(call, ctx) != "1" for call in calls):  # COUNT(*) reads nothing of the rows
        joined, arrays = relation.joined(passing, columns)
    table = ctx.duck.arrow(
        f"SELECT {', '.join(['__pos', f'{rank} AS g', *parts])} FROM {joined} ORDER BY __pos", arrays
    )
    local = np.asarray(table.column("g").to_numpy(zero_copy_only=False), dtype=np.int64)
    if codes is not None:
        local = codes[passing]
    group[at] = local
    group[at[key_failed]] = -1
    open_group[at[key_failed]] = True
    if block.aggregate.keys and codes is None:
        open_group |= np.isnan(truth)
    for i, call in enumerate(calls):
        values = np.asarray(table.column(f"a{i}").to_numpy(zero_copy_only=False), dtype=np.float64)
        if call.distinct:
            values = _first_of_each(table.column(f"d{i}").to_pylist(), local)
        full = np.full(n, np.nan)
        full[at] = values
        arguments[call] = full
        unknown = np.zeros(n, dtype=bool)
        unknown[at] = _any(flags, virtuals(call), len(at))
        missing[call] = unknown
    if not block.aggregate.keys:
        return (
            _SampleColumns(truth, at, np.zeros(n, np.int64), open_group, arguments, missing),
            np.zeros(0, np.int64),
            [0],
        )
    if codes is not None:  # an unknown row still lies in a known group
        group[np.isnan(truth)] = codes[rids[np.isnan(truth)]]
    fine = ~key_failed
    group_codes, first = np.unique(local[fine], return_index=True)
    return (
        _SampleColumns(truth, at, group, open_group, arguments, missing),
        passing[fine][first],
        [int(c) for c in group_codes],
    )


def _any(flags: dict[VirtualColumn, Flags], needed: tuple[VirtualColumn, ...], n: int) -> Flags:
    result = np.zeros(n, dtype=bool)
    for column in needed:
        if column in flags:
            result |= flags[column]
    return result


def _first_of_each(values: list[str | None], groups: Indices) -> Floats:
    """1 for the first row of each distinct value in its group, 0 for the others: their sum counts the distinct values seen."""
    pairs: set[tuple[int, str]] = set()
    marks = np.zeros(len(values))
    for i, (value, group) in enumerate(zip(values, groups, strict=True)):
        if value is not None and (int(group), value) not in pairs:
            pairs.add((int(group), value))
            marks[i] = 1.0
    return marks


class _Measure:
    """The estimates of one group."""

    def __init__(self, of: Aggregation, sampled: Sampled, sample: _SampleColumns, stored: Stored, code: int) -> None:
        self.sampled, self.sample, self.stored, self.code, self.codes = sampled, sample, stored, code, of.codes
        grouped = bool(of.block.aggregate.keys)
        self.domain = code if of.codes is not None and grouped else None
        self.confidence = of.ctx.settings.confidence
        self.searched = bool(of.relation.on_videos)
        member = sample.group == code if grouped else np.ones(len(sample.truth), dtype=bool)
        counted = np.where(np.isnan(sample.truth), np.nan, sample.truth)
        inside = np.where(member, counted, 0.0)
        # (labelled,) 1 in the group, 0 not, NaN unknown
        self.inside = np.where(sample.open_group & ~member, np.nan, inside)
        # of a group whose rows are known the sampler picks them itself, and learns from those of other groups too
        self.passing = self.inside if self.domain is None else counted

    def call(self, call: Call) -> Estimate:
        """The estimate of one aggregate."""
        if call.distinct:
            return self._distinct(call)
        if call.name == "count":
            return self.counted(call)
        if self._is_boundless(call):
            return self._boundless(call)
        mean = call.name in ("avg", "mean")
        by_branches = self._by_branches(call, call if mean else None) if call in self.stored.branches else None
        if by_branches is not None:
            return by_branches
        if mean:
            return self._mean(call)
        y, keywords = self._sum(call), self._keywords(call)
        read = _is_read(call) and keywords.get("weights") is None
        if not (read and np.isin(y[~np.isnan(y)], (0.0, 1.0)).all()):
            estimate = self.sampler.total(y, None, **keywords)
        else:  # numbers that happen to be 0 and 1 in the sample are not counts
            twice = self.sampler.total(2 * y, None, **keywords)
            value, low, high = (None if v is None else v / 2 for v in (twice.value, twice.low, twice.high))
            estimate = replace(twice, value=value, low=low, high=high)
        n_values = self.count_known(call)
        if estimate.unknown and not n_values:  # nothing is known of values that were not seen
            return replace(estimate, value=None, low=float("-inf"), high=float("inf"))
        none_tells = n_values < 2 or not np.nan_to_num(y).any() or self._are_alike(call)
        if read and none_tells and not estimate.exact:  # others may be of any size
            return replace(estimate, low=float("-inf"), high=float("inf"))
        return estimate

    def _are_alike(self, call: Call) -> bool:
        """Have all rows known one value, of two branches? It may be that which is not read by the model."""
        parts = list(walk(call.args[0]))
        decides = any(isinstance(part, Case) or (isinstance(part, Call) and part.name == "if") for part in parts)
        known = self.sample.arguments[call][(self.inside == 1.0) & ~self.sample.missing[call]]
        return decides and len(np.unique(known[~np.isnan(known)])) < 2

    def _by_branches(self, call: Call, below: Call | None = None) -> Estimate | None:
        """A SUM of values that texts decide, or its quotient by the rows of a COUNT or an AVG: what the values add up to where no
        text holds, and how much more the rows of each other outcome add; the ends add up. None where no row was left out.

        Args:
            below: whose rows stand below the line; None: the sum itself.
        """
        branches, keywords = self.stored.branches[call], self._keywords()
        least, rids, y = branches[0], self.sampled.labelled, self._sum(call)
        present = self._count(call) if is_semantic(call.filter) else self._masked(np.ones(len(y)), call)
        outcome = np.abs(branches[:, rids] - np.nan_to_num(y)).argmin(axis=0)
        parts = []
        for k, values in enumerate(branches[1:], 1):
            more = values - least
            adds = np.where(np.isnan(y), np.nan, present * (outcome == k)) * more[rids]
            parts.append(self.sampler.total(adds, None, weights=more, **keywords))
        if all(part.exact for part in parts):
            return None
        member = np.ones(len(least), bool) if self.codes is None else self.codes == (self.domain or 0)
        if self.stored.every_row_counts and not is_semantic(call.filter) and below in (None, call):
            counted = self.stored.presence.get(call, np.ones(len(least)))[member].sum()
            if not counted:
                return None
            return _plus(parts, float(least[member].sum()), 1.0 if below is None else float(counted))
        base = []
        if below is None:
            if least.any():
                base = [self.sampler.total(present * least[rids], None, weights=least, **keywords)]
            return _plus([*parts, *base])
        x, counts = self._count(below), self.stored.presence.get(below)
        if least.any():
            base = [self.sampler.ratio(present * least[rids], x, weights=least, counts=counts, **keywords)]
        found = _plus([_quotient(_plus(parts), self.counted(below)), *base])
        if below is call:  # a mean lies among the values
            ends = float(branches[:, member].min()), float(branches[:, member].max())
            found = replace(found, low=max(found.low or 0.0, ends[0]), high=min(found.high or 0.0, ends[1]))
        return self._settle_ratio(found, y, x)

    def count_known(self, call: Call) -> int:
        """Rows of the group whose value for an aggregate is known, and not NULL."""
        has_value = (self.inside == 1.0) & ~self.sample.missing[call] & ~np.isnan(self.sample.arguments[call])
        return int(has_value.sum())

    def _is_boundless(self, call: Call) -> bool:
        """Does it add up NaN, infinity, or numbers whose squares are not numbers?"""
        return call in self.stored.boundless or bool((np.abs(self.sample.arguments[call]) > MOST).any())

    def _boundless(self, call: Call) -> Estimate:
        return replace(self.counted(call), value=None, low=float("-inf"), high=float("inf"), exact=False)

    def counted(self, call: Call) -> Estimate:
        """The number of rows that count for an aggregate: those with a value."""
        present = self.stored.presence.get(call)
        return self.sampler.total(self._count(call), (0.0, 1.0), weights=present, **self._keywords())

    def _mean(self, call: Call) -> Estimate:
        """AVG, as a ratio of sums. Numbers that happen to be 0 and 1 in the sample are not shares: they are moved by 1 and back."""
        y, x = self._sum(call), self._count(call)
        keywords = self._keywords(call)
        weights, present = keywords.get("weights"), self.stored.presence.get(call)
        if present is not None:
            keywords["counts"] = present
        zero_one = bool(np.isin(y[~np.isnan(y)], (0.0, 1.0)).all())
        number = isinstance(call.args[0], Virtual | Cast) if weights is None else not np.isin(weights, (0.0, 1.0)).all()
        if not (zero_one and number):
            ratio = self.sampler.ratio(y, x, **keywords)
            if _is_read(call) and self._are_alike(call) and not ratio.exact:
                ratio = replace(ratio, low=-math.inf, high=math.inf)
            return self._settle_ratio(ratio, y, x)
        if weights is not None:
            keywords["weights"] = weights + (1.0 if present is None else present)
        moved = self.sampler.ratio(y + x, x, **keywords)
        value, low, high = (None if v is None else v - 1.0 for v in (moved.value, moved.low, moved.high))
        # all are 0: the others may be of any size
        if weights is None and not np.nan_to_num(y).any() and not moved.exact:
            low, high = float("-inf"), float("inf")
        return self._settle_ratio(replace(moved, value=value, low=low, high=high), y, x)

    def _settle_ratio(self, ratio: Estimate, y: Floats, x: Floats) -> Estimate:
        """A ratio over videos: of those that are not settled, which are not like the others, none counts in its value.

        Where they may belong below its line nothing is known of it.

        Args:
            y, x: (labelled,) what is above and below its line, NaN where unknown.
        """
        if not self.searched or not np.isnan([y, x]).any():
            return ratio
        if np.isnan(x).any():
            return replace(ratio, value=None, low=-math.inf, high=math.inf)
        return replace(ratio, value=ratio.low)

    def quotient(self, top: Call, bottom: Call) -> Estimate:
        """The estimate of top / bottom, each a COUNT or a SUM."""
        for call in (top, bottom):
            if call.name != "count" and self._is_boundless(call):
                return self._boundless(call)
        by_branches = self._by_branches(top, bottom) if top in self.stored.branches else None
        if by_branches is not None:
            return by_branches
        y = self._count(top) if top.name == "count" else self._sum(top)
        x = self._count(bottom) if bottom.name == "count" else self._sum(bottom)
        keywords = self._keywords(top)
        row_values = self.stored.presence if bottom.name == "count" else self.stored.weights
        if bottom in row_values and bottom.filter in (None, top.filter):
            keywords["counts"] = row_values[bottom]
        found = self.sampler.ratio(y, x, **keywords)
        if not found.exact and not _is_within(top, bottom):
            found = self._with_rows_above(found, y, x)
        return self._settle_ratio(found, y, x)

    def _with_rows_above(self, share: Estimate, y: Floats, x: Floats) -> Estimate:
        """A quotient whose rows above the line happen to be among those below it: of others, which were not drawn, there may be some.

        The distances of the upper ends add up as squares (Zou and Donner 2008).
        """
        known = ~np.isnan(y) & ~np.isnan(x)
        if share.value is None or share.high is None or not is_share_of(y[known], x[known], None):
            return share
        above = self.sampler.total(y * (1.0 - x), (0.0, 1.0), **self._keywords()).high
        least = self.sampler.total(x, (0.0, 1.0), **self._keywords()).low
        more = above / least if above and least else math.inf
        return replace(share, high=share.value + math.hypot(share.high - share.value, more))

    @property
    def sampler(self) -> AggregateSampler:
        return self.sampled.sampler

    def _keywords(self, call: Call | None = None) -> dict[str, Any]:
        keywords: dict[str, Any] = {}
        if self.domain is not None:
            keywords["domain"] = self.domain
        if call is not None:
            row_values = self.stored.presence if call.name == "count" else self.stored.weights
            if call in row_values:
                keywords["weights"] = row_values[call]
            elif call in self.stored.scales:
                most = self.stored.most(call, self._sum(call), self.sampled.labelled)
                keywords |= {} if most is None else {"weights": most}
        return keywords

    def _count(self, call: Call) -> Floats:
        """1 where the row counts: it passes, is in the group, and its argument is not NULL."""
        value = self.sample.arguments[call]
        present = value if call.name == "count" else (~np.isnan(value)).astype(float)
        return self._masked(np.nan_to_num(present), call)

    def _sum(self, call: Call) -> Floats:
        return self._masked(np.nan_to_num(self.sample.arguments[call]), call)

    def _masked(self, values: Floats, call: Call) -> Floats:
        y = np.where(self.passing == 1.0, values, self.passing)
        return np.where(self.sample.missing[call] & (self.passing == 1.0), np.nan, y)

    def unknown(self, call: Call) -> int:
        """Rows asked of which it is not known what they add to an aggregate."""
        return int(np.isnan(self.inside).sum() + ((self.inside == 1.0) & self.sample.missing[call]).sum())

    def _distinct(self, call: Call) -> Estimate:
        """COUNT(DISTINCT …): at least as many values as were seen."""
        values = self.sample.arguments[call][(self.inside == 1.0) & ~self.sample.missing[call]]
        n_distinct, unknown, calls = float(np.nansum(values)), self.unknown(call), len(self.sampled.labelled)
        if self.sampled.every and not unknown:
            return exactly(n_distinct, self.confidence, calls)
        return Estimate(n_distinct, n_distinct, float("inf"), self.confidence, False, calls, unknown, "at least")


def _plus(parts: Sequence[Estimate], more: float = 0.0, below: float = 1.0) -> Estimate:
    """(The sum of estimates + more) / below, from the sum of their low ends to that of their high ends."""
    value, low, high = (
        None if None in ends else (more + sum(ends)) / below
        for ends in zip(*((part.value, part.low, part.high) for part in parts), strict=True)
    )
    return replace(parts[0], value=value, low=low, high=high, unknown=max(part.unknown for part in parts), exact=False)


def _quotient(top: Estimate, bottom: Estimate) -> Estimate:
    """The one by the other, which is a count: between the least and the greatest that their ends give; open by a count that may be 0."""
    ends = [
        end / count if count else math.copysign(math.inf, end) if end else 0.0
        for end in (top.low or 0.0, top.high or 0.0)
        for count in (max(bottom.low or 0.0, 0.0), bottom.high or 0.0)
    ]
    value = None if top.value is None or not bottom.value else top.value / bottom.value
    return replace(top, value=value, low=min(ends), high=max(ends), unknown=max(top.unknown, bottom.unknown))


def _is_within(top: Call, bottom: Call) -> bool:
    """Do the rows that `bottom` counts hold all of those of `top`, whatever the answers are?"""
    of_rows = bottom.name == "count" and (isinstance(bottom.args[0], Star) or bottom.args == top.args)
    return of_rows and all(term in conjuncts(top.filter) for term in conjuncts(bottom.filter))


def scaled(quotient: Expr) -> tuple[Call, Call]:
    """The aggregates above and below the line of a quotient that `Groups.ratios` holds."""
    assert isinstance(quotient, Binary)
    top, bottom = _factor_of(quotient.left), _factor_of(quotient.right)
    assert top is not None and bottom is not None
    return top, bottom


def _quotients(block: Block, calls: tuple[Call, ...]) -> dict[Expr, tuple[Call, Call]]:
    """Quotients of two aggregates in the items, up to constant factors: they have an interval of their own (Fieller)."""
    quotients: dict[Expr, tuple[Call, Call]] = {}
    for item in block.project.items:
        for node in walk(item.expr):
            if isinstance(node, Binary) and node.op == "/":
                top, bottom = _factor_of(node.left), _factor_of(node.right)
                if top in calls and bottom in calls and top is not None and bottom is not None:
                    quotients[node] = (top, bottom)
    return quotients


def _factor_of(expr: Expr) -> Call | None:
    """The COUNT or SUM that an expression is a constant multiple of, or None."""
    while True:
        match expr:
            case Cast(operand=inner):
                expr = inner
            case Binary(op="*", left=left, right=Number()):
                expr = left
            case Binary(op="*", left=Number(), right=right):
                expr = right
            case Unary(op="-" | "+", operand=inner):
                expr = inner
            case Call(name="count" | "sum", distinct=False):
                return expr
            case _:
                return None
