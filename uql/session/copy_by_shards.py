"""COPY (SELECT …) TO 'folder' (FORMAT parquet) over a cluster's table: each shard asks about its own rows, and writes a file of them.

Each shard has a gate of its own. The calls, tokens and USD of the run are taken from the ledger that all shards share, and so are the
rates of the model: a shard that is lost keeps what it had taken, and the one that takes its rows over finds the answers in the ledger.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from uql.base.errors import BudgetError, ConfigError, DataError
from uql.base.names import free_names
from uql.base.settings import Settings
from uql.base.sql_text import first_line, quote
from uql.cluster.lake import LakeTable
from uql.cluster.messages import broken
from uql.cluster.shard import Shard
from uql.compiler.bound import BoundSelect, BoundStatement, BoundTable
from uql.compiler.physical import Block
from uql.compiler.subqueries import expressions, in_expressions
from uql.compiler.syntax import CopyQuery, Query
from uql.compiler.walk import needs_every_row
from uql.engine.execute import candidates_sql
from uql.engine.outcome import Outcome, text_outcome
from uql.engine.sharded import share_sql, table_of
from uql.kernels.answers import RowError
from uql.kernels.base import Context
from uql.kernels.duck import Duck, typed_columns
from uql.llm.budget import LIMITS
from uql.llm.gate import Gate
from uql.llm.ledger import Ledger
from uql.llm.providers.base import Provider
from uql.llm.run_budget import RunBudget
from uql.llm.run_record import Cost, Run
from uql.session.events import finished
from uql.session.execute_statement import execute
from uql.session.run_context import in_context
from uql.session.session import Session
from uql.session.statements import Piece
from uql.session.store_estimates import counted

ROWS = 8_192  # that a shard asks about at a time
MOST_ERRORS = 1_000  # of a shard, that a result lists
OWN_FILE = re.compile(r"\.data_[0-9a-f]{16}")
PARQUET = re.compile(r"\s*FORMAT\s+'?PARQUET'?\s*", re.IGNORECASE)
OF_THE_WHOLE = ("precision", "recall", "proxy", "audit", "describe")  # settings that look at all rows together


@dataclass(frozen=True, slots=True)
class Scan:
    """What each shard is given.

    Attributes:
        query: over `table` alone, in the text `source`.
        run: the run that it is a part of.
        sitting: of that run.
        calls, tokens, usd: of all shards together; None: without limit.
        folder: of the files.
    """

    query: Query
    table: str
    source: str
    parameters: Mapping[str, Any]
    settings: Settings
    model: Provider | None
    models: Mapping[str, Provider]
    run: str
    sitting: str
    calls: int | None
    tokens: int | None
    usd: float | None
    seconds: float | None
    folder: Path


@dataclass(slots=True)
class Written:
    """What a shard has written: the name of its file, the rows in it, and what they cost.

    Attributes:
        errors: of rows without an answer, the first MOST_ERRORS.
        candidates: rows that the plain conditions left.
    """

    file: str
    cost: Cost = field(default_factory=Cost)
    errors: list[RowError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    rows: int = 0
    candidates: int = 0
    exact: bool = True
    partial: bool = False

    def add(self, outcome: Outcome, candidates: int) -> None:
        """The next rows of the shard."""
        left = max(0, MOST_ERRORS - len(self.errors))
        self.errors += [replace(error, row=self.candidates + error.row) for error in outcome.errors[:left]]
        self.warnings += [warning for warning in outcome.warnings if warning not in self.warnings]
        self.rows, self.candidates = self.rows + outcome.table.num_rows, self.candidates + candidates
        self.exact, self.partial = self.exact and outcome.exact, self.partial or outcome.partial


# ------------------------------------------------------------------------------------------------------------ the driver
class CopyByShards:
    """Of one statement. Made by `copy_by_shards`."""

    def __init__(
        self, session: Session, tree: CopyQuery, bound: BoundStatement, piece: Piece, table: LakeTable
    ) -> None:
        self._session, self._bound, self._piece = session, bound, piece
        self._query, self._folder, self._table = tree.query, Path(tree.path).absolute(), table
        self._written: list[Written] = []
        self._settings = session.settings.with_values(**{**dict(bound.options), **session.statement.changes})

    def run(self) -> Outcome:
        """Has the shards ask and write. Raises: DataError (UQL510) where the folder holds files; BudgetError (UQL401)."""
        return self._session.run_locked(
            self._bound.text, lambda: finished(self._run()), self._settings, lambda: self._bound
        )

    def keep(self, outcome: Outcome) -> Outcome:
        """Gives the files their names, once all are there."""
        for n, written in enumerate(self._written):
            (self._folder / written.file).replace(self._folder / f"data_{n}.parquet")
        for left_behind in self._folder.iterdir():
            if OWN_FILE.fullmatch(left_behind.name):
                left_behind.unlink()
        return counted(outcome, [(sum(written.rows for written in self._written),)])

    async def _run(self) -> Outcome:
        session, settings = self._session, self._settings
        calls = session.foresight.limit(session.plan(self._bound, settings), settings)
        statement = session.statement
        outcome, _ = await in_context(session, self._bound.text, settings, calls, self._ask, statement=statement)
        return outcome

    async def _ask(self, ctx: Context, gate: Gate) -> Outcome:
        cluster, budget = self._session.cluster, gate.budget
        assert cluster is not None
        block = self._session.plan(self._bound, self._settings)
        assert isinstance(block, Block)
        counts = cluster.counts(share_sql(block, self._table, candidates_sql, cluster)[0])
        self._check(sum(counts), budget.calls)
        gate.unfinished = True
        await gate.draws.candidates(self._table.name, self._table.content)
        self._announce(await gate.provider(), sum(counts))
        settings = self._settings.with_values(folder=self._settings.folder or os.getcwd())
        scan = Scan(
            self._query,
            self._table.name,
            self._piece.script,
            self._piece.parameters,
            settings,
            self._session.given(self._settings),
            self._session.models,
            gate.run.id,
            secrets.token_hex(4),
            budget.calls,
            budget.tokens if budget.new.tokens is None else budget.new.tokens,
            budget.usd if budget.new.usd is None else budget.new.usd,
            budget.seconds_left,
            self._folder,
        )
        self._written = await cluster.work(write_share, scan, gate.ledger if cluster.alone else None)
        for written, count in zip(self._written, counts, strict=True):
            self._check_written(written, count)
        firsts = [0, *accumulate(counts)]
        outcome = replace(
            text_outcome([], None),
            errors=[
                replace(error, row=first + error.row)
                for first, written in zip(firsts, self._written, strict=False)
                for error in written.errors
            ],
            cost=sum((written.cost for written in self._written), Cost()),
            warnings=list(dict.fromkeys(w for written in self._written for w in written.warnings)),
            exact=all(written.exact for written in self._written),
            partial=any(written.partial for written in self._written),
            run=gate.run.id if gate.draws.persistent else "",
        )
        gate.unfinished = outcome.partial
        return outcome

    def _check(self, rows: int, calls: int | None) -> None:
        with _in_folder(self._folder):
            names = os.listdir(self._folder) if self._folder.is_dir() else []
        if any(not name.startswith(".") for name in names):
            raise DataError(
                f"the folder {self._folder} holds files", code="UQL510", help="name a folder that is new, or empty it"
            )
        if calls is not None and calls < rows:
            raise BudgetError(
                f"each of {rows:,} rows of {self._table.name} is asked about, and the budget has {calls:,} calls; nothing was sent",
                help=f"WITH (budget = {rows}) or WITH (budget = 'all'); answers in the ledger cost nothing",
            )
        with _in_folder(self._folder):
            self._folder.mkdir(exist_ok=True)

    def _check_written(self, written: Written, candidates: int) -> None:
        """Raises: DataError (UQL503) where a shard's file is not what it says, or misses rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not OWN_FILE.fullmatch(written.file):
            raise broken("it names a file of another name")
        try:
            rows = pq.read_metadata(self._folder / written.file).num_rows
        except (OSError, pa.ArrowInvalid) as error:
            raise broken(f"its file in {self._folder} cannot be read: {first_line(error)}") from error
        if rows != written.rows or not (written.partial or written.candidates == candidates):
            raise broken(f"its file holds {rows:,} rows of {written.candidates:,}, and {candidates:,} were asked about")

    def _announce(self, model: Provider, rows: int) -> None:
        assert isinstance(self._bound.query, BoundSelect)
        reads = {c.name for column in self._bound.query.virtuals for c in (*column.reads, *column.holes)}
        if not model.is_local:
            self._session.announce(model.name, tuple(sorted(reads)), rows)


@contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    """Raises: DataError (UQL510) where files of the folder cannot be written."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"the folder {folder} cannot be written: {error.strerror or first_line(error)}",
            code="UQL510",
            help="name a folder that is new, on a disk that all shards share and that has room",
        ) from error


def copy_by_shards(session: Session, tree: CopyQuery, bound: BoundStatement, piece: Piece) -> CopyByShards | None:
    """The statement as one that each shard answers for its own rows; None where rows of the result depend on others, or it is not over a
    table of a cluster, or does not name a folder.

    Args:
        session: with the cluster.
        tree, bound: the COPY, and its query once bound.
    """
    query = bound.query
    if session.cluster is None or session.caps or Path(tree.path).suffix or not PARQUET.fullmatch(tree.options):
        return None
    if not bound.semantic or not isinstance(query, BoundSelect) or not isinstance(query.source, BoundTable):
        return None
    together = (query.group_by, query.having, query.qualify, query.order_by, query.aggregated, query.distinct)
    if any(together) or query.limit is not None or query.offset:
        return None
    parts = list(expressions(query))
    if any(in_expressions(*parts)) or needs_every_row(*parts) or not all(c.by_row for c in query.virtuals):
        return None
    settings = session.settings.with_values(**dict(bound.options))
    if any(getattr(settings, name) for name in OF_THE_WHOLE):
        return None
    block = session.plan(bound, settings)
    table = table_of(block, session.kernel_duck()) if isinstance(block, Block) else None
    return None if table is None else CopyByShards(session, tree, bound, piece, table)


# -------------------------------------------------------------------------------------------------------------- the shard
async def write_share(shard: Shard, scan: Scan, ledger: Ledger | None) -> Written:
    """Asks about the rows of a shard and writes them to a file of the folder, which has no name of its own yet.

    Args:
        ledger: that of the driver, where it is in this process; None: that of the settings.
    Raises: ConfigError (UQL410) where that is not the driver's.
    """
    session = Session(shard.connect(), scan.settings, scan.model, scan.models, owned=True)
    with ExitStack() as closing:
        closing.callback(session.close)
        if ledger is None:
            ledger = closing.enter_context(session.ledgers.open(scan.settings.ledger))
        if ledger.stored(scan.run) is None:
            raise ConfigError(
                f"the ledger {ledger.path} of a shard is not that of the driver",
                code="UQL410",
                help="all shards share one: ledger = 'postgresql://user@host/database', or on one machine a file",
            )
        budget = RunBudget(
            ledger,
            scan.run,
            scan.calls,
            tokens=scan.tokens,
            usd=scan.usd,
            seconds=scan.seconds,
            sitting=scan.sitting,
        )
        model = scan.model or session.large(scan.settings)
        run = Run(scan.run, scan.settings.seed, part=True)
        async with Gate.open(scan.settings, run=run, model=model, ledger=ledger, budget=budget) as gate:
            return await _write(shard, scan, session, gate)


async def _write(shard: Shard, scan: Scan, session: Session, gate: Gate) -> Written:
    import pyarrow.parquet as pq

    await gate.provider()
    written = Written(f".data_{secrets.token_hex(8)}")
    writer: Any = None
    with _in_folder(scan.folder), ExitStack() as closing:
        for share in shard.slices(scan.table, ROWS):
            session.duck.execute(f"CREATE OR REPLACE VIEW {quote(scan.table)} AS {share}")
            session.catalog.begin()
            bound = session.bind(scan.query, scan.source, scan.parameters, {})
            plan = session.plan(bound, scan.settings)
            assert isinstance(plan, Block)
            outcome = await execute(session, bound, plan, scan.settings, gate)
            candidates = session.kernel_duck().scalar(f"SELECT system.main.count(*) FROM ({candidates_sql(plan)})")
            written.add(outcome, int(candidates or 0))
            names = free_names(outcome.table.column_names)
            table = outcome.table.rename_columns(names)
            chosen = f"SELECT {typed_columns(table, outcome.types)} FROM __rows"
            rows = Duck(session.catalog.cursor).arrow(chosen, {"__rows": table})
            writer = writer or closing.enter_context(pq.ParquetWriter(scan.folder / written.file, rows.schema))
            writer.write_table(rows)
            if gate.interrupted or gate.budget.exhausted in (*LIMITS, "calls"):
                written.exact, written.partial = False, True
                break
    written.cost = gate.cost
    return written
