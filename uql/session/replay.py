"""The same statement again: it takes up the run that drew its rows, and pays for nothing that this one has paid for.

A run is known by its statement in normal form, parameters, model, seed, the settings that change answers, this version of UQL, and
the rows that it reads. Each larger budget of the same run is a sitting: its rows follow those of the sittings before. A budget that had
a sitting gives that sitting's numbers; one below the largest is answered from the next larger sitting; a larger one goes on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cache, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

from uql.base.settings import Settings
from uql.base.sql_text import dotted
from uql.base.version import __version__
from uql.kernels.duck import content_of, content_sql
from uql.llm.budget import Limits
from uql.llm.ledger_rows import Seconds, record

if TYPE_CHECKING:
    from uql.base.schema import Table
    from uql.compiler.physical import Block, PhysicalPlan
    from uql.kernels.duck import Duck
    from uql.llm.ledger import Ledger
    from uql.llm.ledger_database import Database

T = TypeVar("T", int, float)
ENDED = ("done", "unfinished")  # runs that the same calls would not take further
EVERY_VALUE = "rows, for every value, of "  # begins a step
SOURCES = "tables"  # the step of a statement of which rows follow from answers
SITTING = "run, identity, root, budget, at, rates"
MOST_ROOTS = 8  # of one statement, on other data each, that are looked at
# how far a run goes, not what it draws
LIMITS = {"budget", "exact", "max_cost", "max_seconds", "exact_below", "exact_seconds"}
BESIDE = {
    "ledger",
    "offline",
    "endpoints",
    "prices",
    "plugins",
    "progress",
    "concurrency",
    "batch",
    "timeout_s",
    "confirm_over",
    "fresh",
}


@dataclass(frozen=True, slots=True)
class Replay:
    """The run whose draws a statement takes up, or begins."""

    root: str  # the run that drew first
    since: float  # when it began: answers paid for from then on are draws, earlier ones are known rows
    steps: tuple[int, ...] = ()  # the calls of its sittings, those before the one that is given
    calls: int | None = None  # of the sitting that is given; None: without limit
    usd: float | None = None  # of the sitting
    new: Limits = field(default_factory=Limits)  # what all its sittings may spend together
    rates: Mapping[str, Any] = field(default_factory=dict)  # that its plan was made with
    sitting: str = ""  # the run that began the sitting that is given; "": it is a new one
    done: bool = False  # that has ended well
    until: float = math.inf  # when a limit other than calls has ended it
    ended_by: str = ""  # that limit


def replayed(root: str, since: float, calls: int, *, again: bool = False) -> str:
    """What a result says that takes up the draws of a run.

    Args:
        root: the run's id.
        since: seconds since the epoch, when it began.
        calls: that are still to be made; 0: it answers all.
        again: had the run ended with these limits already?
    """
    run = f"run {root} of {datetime.fromtimestamp(since):%Y-%m-%d %H:%M}"
    note = f"answered from {run}" if not calls else f"goes on with {run}, which is not paid for again"
    if calls and again:
        note += f"; {calls:,} calls more, since rows of it were corrected, calibrated or lost meanwhile"
    return f"{note}; `WITH (fresh = true)` draws anew"


@dataclass(frozen=True, slots=True)
class Drawing:
    """What a run is known by: its identity, and the plan that reads the rows."""

    identity: bytes
    plan: PhysicalPlan
    proxy: str | None = None  # SQL of one more column of the rows
    grows: bool = False  # `error = x` without a budget: it makes the calls that it takes
    usd: float | None = None  # `max_cost`
    tables: tuple[Table, ...] = ()  # that the statement reads

    @property
    def follows(self) -> bool:
        """Are rows of it made from answers, or read for each value around them? Their run does not log them as they are read."""
        from uql.compiler.cost import blocks

        return any(_follows(block) for block in blocks(self.plan).values())


def _follows(block: Block) -> bool:
    from uql.compiler.physical import asked_joins, inner_plans

    return bool(inner_plans(block) or asked_joins(block))


def drawing_of(
    plan: PhysicalPlan,
    normal: str,
    model: str,
    settings: Settings,
    calls: int | None,
    duck: Duck,
    tables: tuple[Table, ...] = (),
) -> Drawing | None:
    """What a run is known by; None where none is kept: of a budget of 0, the ledger alone.

    Args:
        normal: the statement in normal form with its parameters.
        calls: its budget. Where a design cannot be gone on with, each budget is a run of its own.
        tables: that the statement reads.
    """
    if calls == 0:
        return None
    values = {f.name: getattr(settings, f.name) for f in fields(Settings) if f.name not in LIMITS | BESIDE}
    fixed = settings.precision is not None or settings.models or settings.method == "importance"
    names = [name for name in (settings.audit, settings.examples) if isinstance(name, str)]
    judged = [_rows_of(name, duck) for name in names]
    parts = (__version__, normal, model, sorted(values.items()), calls if fixed else "", judged)
    identity = blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=20).digest()
    grows = settings.error is not None and settings.budget is None and settings.max_tokens is None and calls is not None
    return Drawing(identity, plan, settings.proxy, grows, settings.max_cost, tables)


def _rows_of(table: str, duck: Duck) -> int | None:
    """A hash of a table of judged rows; None where there is none, which the run says."""
    import duckdb

    name = dotted(table.split("."))
    try:
        return int(duck.scalar(content_of(f"SELECT * FROM {name}")) or 0)
    except duckdb.Error:
        return None


def take(
    drawing: Drawing,
    run: str,
    calls: int | None,
    rates: Mapping[str, Any],
    ledger: Ledger,
    duck: Duck,
    *,
    fresh: bool,
) -> Replay:
    """What a run draws: what an earlier run of the same statement drew, or where there is none, or it begins afresh, its own.

    Args:
        run: the id of the new run.
        rates: those that its plan would be made with.
    """
    identity = drawing.identity
    while True:
        sittings, had = _sittings(identity, ledger)
        earlier = None if fresh else _fitting(sittings, calls, drawing, ledger, duck)
        if earlier is not None and earlier.sitting:
            return earlier
        at = ledger.now()
        replay = earlier or Replay(run, at, (), calls, drawing.usd, Limits(calls), rates)
        root, since, rates_json = replay.root, replay.since if earlier else at, json.dumps(dict(replay.rates))
        row = (run, identity, root, calls, since, rates_json, drawing.usd)

        def work(db: Database, row: tuple[Any, ...] = row, had: int = had) -> bool:
            db.lock()
            unchanged = _count(db, identity) == had
            if unchanged or fresh:
                db.execute(f"INSERT INTO sittings ({SITTING}, usd) VALUES (?, ?, ?, ?, ?, ?, ?)", row)
                if drawing.grows:
                    db.execute("INSERT INTO grown VALUES (?, ?)", (run, row[3]))
            return unchanged or fresh

        if ledger.work(work, atomic=True):  # else another has begun the same meanwhile
            if earlier is None and drawing.follows:
                for step, (content, *_) in contents(drawing, duck):
                    if step.startswith((EVERY_VALUE, SOURCES)):
                        ledger.log_draw(root, step, [content()])
            return replace(replay, sitting=run)


def end(sitting: str, ended_by: str, ledger: Ledger, *, anew: bool = False) -> bool:
    """A sitting has ended well: given again it knows no answer that comes from now on. False: another has ended it already.

    Args:
        sitting: the run that began it.
        ended_by: the limit that it had reached; "": none but calls.
        anew: it had ended, and asked rows that had failed once more.
    """
    sql = "UPDATE sittings SET ended = ?, ended_by = ? WHERE run = ? AND (ended IS NULL OR ?)"
    values = (ledger.now(), ended_by, sitting, anew)
    return ledger.work(lambda db: db.execute(sql, values).rowcount) > 0


def ended(sitting: str, ledger: Ledger) -> tuple[float, str]:
    """When a limit other than calls had ended a sitting (infinity: none had), and which.

    Args:
        sitting: the run that began it.
    """
    sql = "SELECT ended, ended_by FROM sittings WHERE run = ? AND ended IS NOT NULL AND ended_by <> ''"
    at, by = ledger.work(lambda db: db.execute(sql, (sitting,)).fetchone()) or (math.inf, "")
    return float(at), str(by)


def find(drawing: Drawing, calls: int | None, ledger: Ledger, duck: Duck) -> Replay | None:
    """The run that a statement would take up; None where none has read the rows as they are now.

    Args:
        drawing: what a run of the statement is known by.
        calls: of the budget; None: all.
        ledger: where runs are kept.
        duck: looks whether the rows are the same.
    """
    return _fitting(_sittings(drawing.identity, ledger)[0], calls, drawing, ledger, duck)


def paid(root: str, ledger: Ledger) -> tuple[int, int, int, float]:
    """The calls of all sittings of a run, those of them that are not about a row (for examples, descriptions, names of groups), and
    their tokens and USD."""
    sql = (
        "SELECT COALESCE(SUM(c.rows), 0), COALESCE(SUM(CASE WHEN s.question = 'Write' THEN c.rows END), 0), "
        "COALESCE(SUM(c.input_tokens + c.output_tokens), 0), COALESCE(SUM(c.usd), 0.0) FROM call_rows c "
        "JOIN subjects s ON s.id = c.subject WHERE s.kind = 'call' AND s.run IN (SELECT run FROM sittings WHERE root = ?)"
    )
    calls, beside, tokens, usd = ledger.work(lambda db: db.execute(sql, (root,)).fetchone())
    return int(calls), int(beside), int(tokens), float(usd)


def left(replay: Replay, own: Limits, ledger: Ledger) -> Limits:
    """What a statement may spend now: all sittings of a run together spend no more than the largest of them may.

    Args:
        own: limits of the statement.
    """
    calls, _, tokens, usd = paid(replay.root, ledger)
    most = replay.new
    return Limits(
        _less(own.calls, most.calls, calls), _less(own.tokens, own.tokens, tokens), _less(own.usd, most.usd, usd)
    )


def _less(own: T | None, most: T | None, paid: T) -> T | None:
    return own if own is None or most is None else max(paid - paid, min(own, most - paid))


def forget(run: str, ledger: Ledger) -> None:
    """Of a run that drew nothing."""
    ledger.work(lambda db: db.execute("DELETE FROM sittings WHERE run = ?", (run,)).rowcount)


def grew(run: str, calls: int, ledger: Ledger) -> None:
    """A run without a budget was allowed so many calls in the end.

    Args:
        calls: allowed.
    """
    ledger.work(lambda db: db.execute("UPDATE grown SET calls = ? WHERE run = ?", (calls, run)).rowcount)


@dataclass(frozen=True, slots=True)
class _Sitting:
    """A run that drew rows: the first of its statement, or one that went on with more calls."""

    run: str
    root: str
    since: Seconds  # when the root began
    calls: int | None  # of its budget; None: without limit
    # the calls that it was allowed in the end, where it had no budget and made the calls that it took
    grown: int | None
    rates: str  # JSON
    usd: float | None  # `max_cost`
    ended: float | None  # well, in seconds since the epoch
    ended_by: str  # the limit that it reached

    @property
    def grew(self) -> bool:
        return self.grown is not None

    @property
    def budget(self) -> float:
        return math.inf if self.calls is None else self.calls

    @property
    def reach(self) -> float:
        """The calls that it was allowed in the end, as many or more."""
        return self.budget if self.grown is None else self.grown

    @property
    def until(self) -> float:
        """What was answered later, it does not know: its calls are counted, tokens and USD of rows that it did not reach are not."""
        return self.ended if self.ended is not None and self.ended_by else math.inf

    @property
    def most_usd(self) -> float:
        return math.inf if self.usd is None else self.usd


def _count(db: Database, identity: bytes) -> int:
    return int(db.execute("SELECT count(*) FROM sittings WHERE identity = ?", (identity,)).fetchone()[0])


def _sittings(identity: bytes, ledger: Ledger) -> tuple[list[_Sitting], int]:
    """Those of a statement, the last root first, without what is damaged; and how many there are with it."""

    def work(db: Database) -> tuple[list[tuple[Any, ...]], int]:
        count = _count(db, identity)  # before the rows: one that comes between is looked for again
        rows = db.execute(
            "SELECT s.run, s.root, s.at, s.budget, g.calls, s.rates, s.usd, s.ended, COALESCE(s.ended_by, '') FROM sittings s "
            "LEFT JOIN grown g ON g.run = s.run "
            "WHERE s.identity = ? ORDER BY s.at DESC, s.root",
            (identity,),
        ).fetchall()
        return rows, count

    sittings = []
    rows, count = ledger.work(work)
    for row in rows:
        sitting = record(_Sitting, row)
        with suppress(ValueError, RecursionError):
            if sitting is not None and isinstance(json.loads(sitting.rates), dict):
                sittings.append(sitting)
    return sittings, count


def _fitting(
    sittings: Sequence[_Sitting], calls: int | None, drawing: Drawing, ledger: Ledger, duck: Duck
) -> Replay | None:
    """The latest run that has read the rows as they are now."""
    now: list[tuple[str, tuple[Callable[[], int], ...]]] | None = None
    for root in list(dict.fromkeys(s.root for s in sittings))[:MOST_ROOTS]:
        now = contents(drawing, duck) if now is None else now
        logged = {step: ledger.draws(root, step) for step, _ in now}
        if all(not logged[step] or any([content()] in logged[step] for content in either) for step, either in now):
            return _pick_replay([s for s in sittings if s.root == root], Limits(calls, usd=drawing.usd), drawing.grows)
    return None


def _pick_replay(had: Sequence[_Sitting], limits: Limits, grows: bool) -> Replay:
    """What a statement takes up of a run with these sittings. One that makes the calls it takes is given that of its own kind.

    Args:
        had: of the run.
        limits: calls and USD of the statement.
        grows: it makes the calls that it takes.
    """
    calls, usd = (math.inf if limit is None else limit for limit in (limits.calls, limits.usd))
    if grows:
        sitting = next((s for s in had if s.grew), None)
        others = [s.reach for s in had if s is not sitting and s.reach < math.inf]
        budget = max(calls, *others) if sitting is None else sitting.budget
        before = {int(reach) for reach in others if reach <= budget}
    else:
        enough = (s for s in had if s.reach >= calls and s.most_usd >= usd)
        sitting = min(enough, key=lambda s: (s.ended is None, s.reach, s.most_usd), default=None)
        budget = calls if sitting is None else sitting.reach
        before = {int(s.reach) for s in had if s.reach < budget}
    first = had[0]
    most_calls, most_usd = max(calls, *(s.reach for s in had)), max(usd, *(s.most_usd for s in had))
    replay = Replay(
        first.root,
        first.since,
        tuple(sorted(before)),
        None if budget == math.inf else int(budget),
        limits.usd,
        Limits(None if most_calls == math.inf else int(most_calls), usd=None if most_usd == math.inf else most_usd),
        json.loads(first.rates),
    )
    if sitting is None:
        return replay
    done = sitting.ended is not None
    return replace(
        replay, sitting=sitting.run, usd=sitting.usd, done=done, until=sitting.until, ended_by=sitting.ended_by
    )


def _content_of_tables(tables: Sequence[Table], duck: Duck) -> int:
    """A hash of the rows of tables, in any order."""
    with duck.users_orders():
        parts = [duck.scalar(content_sql(f"SELECT r, 0 AS n FROM {table.sql} AS r")) for table in tables]
    return hash(tuple(int(part or 0) for part in parts)) & (2**63 - 1)


def contents(drawing: Drawing, duck: Duck) -> list[tuple[str, tuple[Callable[[], int], ...]]]:
    """The candidate rows of the blocks that no other block feeds, and the tables of the statement where another is fed: the step under
    which a run logs them, and hashes of the rows: as the plan orders them, and where another plan orders them otherwise, by that.

    `DrawLog.candidates` logs them, but those of a block that is run for each value around it only value by value: `take` logs them all,
    and the tables.
    """
    from uql.compiler.cost import blocks

    hashes: list[tuple[str, tuple[Callable[[], int], ...]]] = []
    if drawing.follows and duck.cluster is None:
        hashes.append((SOURCES, (cache(lambda: _content_of_tables(drawing.tables, duck)),)))
    by_id = blocks(drawing.plan)
    repeated = {i for block in by_id.values() for part in block.inner.repeated for i in blocks(part.plan)}
    for i, block in by_id.items():
        if not _follows(block):
            step = f"{EVERY_VALUE if i in repeated else 'rows of '}{block.scan.tables}"
            hashes.append((step, _content_of_block(block, drawing.proxy, duck)))
    return hashes


def _content_of_block(block: Block, proxy: str | None, duck: Duck) -> tuple[Callable[[], int], ...]:
    from uql.compiler.physical import Goal
    from uql.engine import sharded
    from uql.engine.execute import settled_sql
    from uql.kernels import pair_pool

    def content(one: Block) -> int:
        table = None if proxy is not None else sharded.table_of(one, duck)
        if table is not None:
            return table.content
        sides = pair_pool.large_sides(one, duck)
        if sides is not None:
            return pair_pool.content(sides, duck)
        with duck.users_orders():
            return int(duck.scalar(content_of(settled_sql(one, duck, proxy))) or 0)

    orders = [block]
    other = {Goal.FIRST: Goal.SEARCH, Goal.SEARCH: Goal.FIRST}.get(block.filter.goal)
    if block.order.keys and other is not None:  # what is known by now may change whether LIMIT stops it
        orders.append(replace(block, filter=replace(block.filter, goal=other)))
    return tuple(cache(partial(content, one)) for one in orders)
