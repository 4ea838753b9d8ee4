"""What the page works on: one database, its statements one after another in a thread of their own, and what each has given so far."""

from __future__ import annotations

import json
import re
import tempfile
import threading
import time
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import duckdb

from uql.base.errors import DataError, UQLError, UQLSyntaxError
from uql.base.printable import printable
from uql.base.schema import Modality
from uql.compiler.parser import parse_script, tree_of
from uql.compiler.syntax import Select, Union
from uql.session.events import EstimateEvent
from uql.session.read_only import check_reads
from uql.session.session import CANCELLED
from uql.show.progress import Counts
from uql.show.render import footer, format_estimate, text_of, texts_of
from uql.ui import grid
from uql.ui.saved import Saved, Tabs

if TYPE_CHECKING:
    from uql.api.connection import Connection
    from uql.api.result import Result

Status = Literal["waiting", "running", "done", "failed", "interrupted"]
EXPLAIN = "EXPLAIN (FORMAT JSON) "
MAX_RUNS = 50  # whose rows are kept
MAX_WAITING = 100  # statements in the queue
MAX_ERRORS = 1_000  # missing answers in one reply
MAX_HISTORY = 100  # runs of the ledger
MAX_COLUMNS = 10_000  # of a dropped CSV file
LONGEST_HEAD = 4_000_000  # bytes of its first line that are looked at
MAX_DIFF = 200  # rows of each side of a difference


@dataclass(slots=True)
class Work:
    """A statement or a question, and how far it has come. Written by the one thread that runs it, read by any."""

    id: str
    text: str
    kind: Literal["uql", "ask"]
    status: Status = "waiting"
    counts: Counts = field(default_factory=Counts)
    nodes: dict[str, str] = field(default_factory=dict)  # of a question's plan: how far each is
    calls_by_text: Counter[str] = field(default_factory=Counter)  # calls by the first text of their question
    version: int = 0  # grows with every change
    started: float = 0.0  # seconds, monotonic
    result: Result | None = None
    answer: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)
    media: list[str] = field(default_factory=list)  # of the result's columns: "image", "audio", "video" or ""

    def on_event(self, event: Any) -> None:
        """Takes in an event of the run."""
        self.counts.add(event)
        self.counts.seconds = time.monotonic() - self.started
        if event.kind == "node":
            self.nodes[event.node] = event.state
        elif event.kind == "call":
            self.calls_by_text[event.text] += 1
        self.version += 1

    def snapshot(self) -> dict[str, Any]:
        """What the page shows while it runs and after."""
        counts = self.counts
        return {
            "id": self.id,
            "text": self.text,
            "kind": self.kind,
            "status": self.status,
            "line": counts.line(),
            "calls": counts.calls,
            "cached": counts.cached,
            "cap": counts.cap,
            "usd": counts.usd,
            "asked": dict(self.calls_by_text),
            "nodes": dict(self.nodes),
            "estimates": [
                {
                    "name": name,
                    "text": format_estimate(e),
                    "value": e.value,
                    "low": e.low,
                    "high": e.high,
                    "course": [[at, p.low, p.high, p.value] for at, p in list(counts.course.get(name, ()))],
                }
                for name, e in list(counts.estimates.items())
            ],
            "seconds": round(counts.seconds, 2),
            "error": self.error,
            "answer": self.answer,
            "result": self._about() if self.status in ("done", "interrupted") and self.result is not None else None,
        }

    def _about(self) -> dict[str, Any]:
        assert self.result is not None
        outcome = self.result.run()
        return {
            "columns": outcome.table.column_names,
            "types": outcome.types,
            "media": self.media,
            "rows": outcome.table.num_rows,
            "text": text_of(outcome.table),
            "footer": [printable(line) for line in footer(outcome, resume="uql resume {}")],
            "errors": len(outcome.errors),
            "partial": outcome.partial,
            "exact": outcome.exact,
        }


class Session:
    """One open database behind the page.

    Args:
        connection: what statements run on, one at a time; it is closed with the session.
        write: may statements change the database? Otherwise only queries, EXPLAIN and SET pass.
    """

    def __init__(self, connection: Connection, *, write: bool = False) -> None:
        if not write:
            connection.only_read()
        self._runs, self._checks = connection, connection.cursor()
        self.write = write
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="uql-ui-run")
        self._checking = threading.Lock()
        self._works: OrderedDict[str, Work] = OrderedDict()
        self._current: Work | None = None
        self._finished_counts = Counts()  # by everything that has ended
        self.saved = Saved(connection.configured.ledger)
        database = self._checks.session.database().path
        self.tabs = Tabs(connection.configured.ledger, str(Path(database).resolve() if database else Path.cwd()))
        self._dropped: tempfile.TemporaryDirectory[str] | None = None  # the files that were dropped on the page

    def close(self) -> None:
        """Ends what runs, keeping what was paid for, and closes the connections."""
        for work in self._works.values():
            work.cancelled.set()
        self._runs.interrupt()
        self._thread.shutdown(cancel_futures=True)
        self._checks.close()
        self._runs.close()
        if self._dropped is not None:
            self._dropped.cleanup()

    # ------------------------------------------------------------------------------------------------- before running
    def check(self, text: str) -> dict[str, Any]:
        """The plan and the price of a statement, or what is wrong with it and where. Makes no call."""
        with self._checking:
            try:
                check_reads(self._checks.catalog, text)
                if _is_query(text):
                    rows = self._checks.uql(f"{EXPLAIN}{text}").fetchall()
                    return {"ok": True, "plan": json.loads("\n".join(row[0] for row in rows))}
                if _cannot_be_read(text):
                    self._checks.uql(f"EXPLAIN {text}")  # says what is wrong
                return {"ok": True, "plan": None}
            except UQLError as error:
                return {"ok": False, "error": error_view(error, text)}

    def schema(self) -> list[dict[str, Any]]:
        """Tables and views with their columns, for the tree at the side and for completion; `rows` of tables, None of views."""
        with self._checking:
            rows = self._checks.sql(
                "SELECT c.table_name, system.main.list(column_name ORDER BY column_index),"
                " system.main.list(data_type ORDER BY column_index),"
                " system.main.any_value(estimated_size) FROM system.main.duckdb_columns() c"
                " LEFT JOIN system.main.duckdb_tables() t USING (database_oid, table_oid) WHERE NOT c.internal"
                " GROUP BY c.database_oid, c.table_oid, c.table_name ORDER BY 1"
            ).fetchall()
        return [{"table": t, "columns": c, "types": k, "rows": n} for t, c, k, n in rows]

    def state(self) -> dict[str, Any]:
        """What the head of the page shows: model, budget, what the session has spent so far."""
        with self._checking:
            database = self._checks.session.database().path
        settings, model = self._runs.configured, self._runs.model
        return {
            "model": model.name if model is not None else settings.model,
            "models": settings.models,
            "model_fixed": model is not None,
            "budget": settings.budget,
            "write": self.write,
            "database": Path(database).name if database else None,
            "calls": self._finished_counts.calls,
            "usd": self._finished_counts.usd,
        }

    def configure(self, **values: Any) -> dict[str, Any]:
        """Sets settings for the statements from now on. Raises: ConfigError for an unknown name or a value that is not possible."""
        for connection in (self._runs, self._checks):
            connection.use(**values)
        return self.state()

    def history(self) -> list[dict[str, Any]]:
        """The latest runs of the ledger, of this session and of others, the newest first."""
        session, ledger = self._checks.session, self._runs.configured.ledger
        if not session.ledgers.exists(ledger):
            return []
        with session.ledgers.open(ledger) as store:
            return store.runs(MAX_HISTORY)

    def add_file(self, name: str, write: Callable[[Path], None]) -> str:
        """Makes a dropped file a table of this session; the name of the table.

        Args:
            name: of the file, whose ending says what it holds.
            write: writes its bytes to a path.
        Raises: DataError (UQL501, UQL503, UQL505) where nothing can be read, or it has more than MAX_COLUMNS columns.
        """
        if self._dropped is None:
            self._dropped = tempfile.TemporaryDirectory(prefix="uql-page-")
        file = re.sub(r"[^\w.-]+", "_", name.replace("\\", "/").rpartition("/")[2])[-100:].lstrip(".") or "file"
        existing = {about["table"].lower() for about in self.schema()}
        stem = re.sub(r"[\W_]+", "_", file.split(".")[0]).strip("_").lower() or "file"
        table = next(t for n in range(1, 10_000) if (t := stem if n == 1 else f"{stem}_{n}") not in existing)
        folder = Path(self._dropped.name) / table
        folder.mkdir(exist_ok=True)
        write(folder / file)
        _check_width(folder / file)
        for connection in (self._runs, self._checks):
            tables = connection.register(table, str(folder / file))
        return tables[0]

    # --------------------------------------------------------------------------------------------------------- running
    def start(self, text: str) -> Work:
        """Puts a statement in the queue."""
        return self._submit(Work(uuid.uuid4().hex[:12], text, "uql"), self._query)

    def ask(self, question: str) -> Work:
        """Puts a question in words in the queue."""
        return self._submit(Work(uuid.uuid4().hex[:12], question, "ask"), self._question)

    def _submit(self, work: Work, run: Callable[[Work], None]) -> Work:
        self._works[work.id] = work
        while len(self._works) > MAX_RUNS and next(iter(self._works.values())).status not in ("waiting", "running"):
            self._works.popitem(last=False)
        self._thread.submit(self._do, work, run)
        return work

    def _do(self, work: Work, run: Callable[[Work], None]) -> None:
        work.started = time.monotonic()
        if work.cancelled.is_set():
            work.status, work.version = "interrupted", work.version + 1
            return
        work.status, self._current = "running", work
        CANCELLED.set(work.cancelled)  # where it is ended before its statement runs
        stop = self._runs.on_event(work.on_event)
        status: Status = "failed"
        try:
            run(work)
            status = "interrupted" if work.cancelled.is_set() else "done"
        except UQLError as error:
            work.error = error_view(error, work.text)
        finally:
            stop()
            self._current = None
            work.counts.ended = True
            work.counts.seconds = time.monotonic() - work.started
            self._finished_counts.calls += work.counts.calls
            self._finished_counts.usd += work.counts.usd
            self._checks.session.settings = self._runs.configured  # after SET
            work.status = status
            work.version += 1

    def _query(self, work: Work) -> None:
        self._keep(work, self._runs.uql(work.text))

    def _keep(self, work: Work, result: Result) -> None:
        work.media = grid.media(result.run())
        work.result = result
        for name, estimate in result.estimates.items():  # the last one on the way was of fewer answers
            last = work.counts.estimates.get(name)
            if last is None or isinstance(estimate, list) or (last.low, last.high) == (estimate.low, estimate.high):
                continue
            work.on_event(EstimateEvent(name, estimate))

    def retry(self, work: Work) -> Work:
        """Puts a statement in the queue once more: rows without an answer are asked again, the others come from the ledger."""
        before = done(work)
        again = Work(uuid.uuid4().hex[:12], work.text, "uql")
        return self._submit(again, lambda work: self._keep(work, before.retry_failed()))

    def _question(self, work: Work) -> None:
        from uql.ui.answers import answer_view

        answer = self._runs.ask(work.text)
        work.answer = answer_view(answer)

    def cancel(self, work: Work) -> None:
        """Ends a statement early; what was answered stays in the ledger."""
        work.cancelled.set()
        if self._current is work:
            self._runs.interrupt()

    # ----------------------------------------------------------------------------------------------------- what came
    def works(self) -> Iterator[Work]:
        """Newest first."""
        return reversed(list(self._works.values()))

    @property
    def waiting(self) -> int:
        """How many statements wait."""
        return sum(work.status == "waiting" for work in list(self._works.values()))

    def work(self, id: str) -> Work | None:
        return self._works.get(id)

    def cell(self, work: Work, row: int, column: int) -> tuple[bytes, str]:
        """One whole value and its media type, as `uql.ui.grid.cell` says.

        Args:
            row: from 0 on.
            column: from 0 on.
        """

        def load(name: str, kind: str) -> object:
            with self._checking:
                session = self._checks.session
                media = session.media(self._checks.configured, session.database())
            return media.load([name], Modality.IMAGE if kind == "image" else Modality.AUDIO)[0]

        return grid.cell(done(work).run(), row, column, load)

    def errors(self, work: Work) -> list[dict[str, Any]]:
        """Every missing answer."""
        return [{"row": str(e.row), "kind": e.kind, "message": e.message} for e in done(work).errors[:MAX_ERRORS]]

    def why(self, work: Work, row: int) -> dict[str, Any]:
        """Why output row `row` says what it says: question, raw answer, probability, model, cost; the `clauses` that can be corrected."""
        why = _with_row(work, row).why(row)
        return {"text": str(why), "clauses": [part.clause for part in why.evidence] if why.rows == 1 else []}

    def correct(self, work: Work, row: int, value: str | None, clause: str | None) -> dict[str, Any]:
        """Keeps a person's answer about a row, for all later queries.

        Args:
            row: of the result, from 0 on.
            value: as a person types it: yes, no, a label, a number, a text; None: the row does not say.
            clause: the quoted text that is answered, where the row rests on several.
        Raises: DataError (UQL515, UQL524), as `Result.correct` says.
        """
        answer = {"yes": True, "true": True, "no": False, "false": False}.get((value or "").strip().lower(), value)
        correction = _with_row(work, row).correct(row, answer, clause)
        return {"id": correction.id, "value": str(correction.value)}

    def difference(self, one: Work, other: Work) -> dict[str, Any]:
        """Rows that only one of two results has, counted with their repetitions.

        Raises: DataError (UQL512) where they have other columns.
        """
        a, b = done(one).arrow(intervals=False), done(other).arrow(intervals=False)
        if a.column_names != b.column_names:
            raise DataError(
                f"the results have other columns: {', '.join(a.column_names)} and {', '.join(b.column_names)}",
                code="UQL512",
            )
        with duckdb.connect(":memory:") as con:
            con.register("a", a)
            con.register("b", b)
            only_a = con.sql(f"SELECT * FROM a EXCEPT ALL SELECT * FROM b LIMIT {MAX_DIFF}").to_arrow_table()
            only_b = con.sql(f"SELECT * FROM b EXCEPT ALL SELECT * FROM a LIMIT {MAX_DIFF}").to_arrow_table()
        return {"columns": a.column_names, "only_first": texts_of(only_a), "only_second": texts_of(only_b)}


def done(work: Work) -> Result:
    """The result of a statement that has one. Raises: DataError (UQL513) where it has none."""
    if work.result is None or work.status not in ("done", "interrupted"):
        raise DataError(f"run {work.id} has no rows: it is {work.status}", code="UQL513")
    return work.result


def _with_row(work: Work, row: int) -> Result:
    """The result of a statement. Raises: DataError (UQL513) where it has no such row."""
    result = done(work)
    if not 0 <= row < len(result):
        raise DataError(f"there is no row {row}: the result has {len(result):,}", code="UQL513")
    return result


def error_view(error: UQLError, text: str) -> dict[str, Any]:
    """An error as the page shows it, with its place in `text`; −1 where it has none."""
    before = len(EXPLAIN) if error.text == EXPLAIN + text else 0
    start = error.start - before if error.text in (text, EXPLAIN + text) else -1
    end = max(start + 1, error.end - before)
    return {"code": error.code, "message": error.message, "help": error.help, "start": max(-1, start), "end": end}


def _is_query(text: str) -> bool:
    """Is it one query of UQL?"""
    return isinstance(tree_of(text), Select | Union)


def _cannot_be_read(text: str) -> bool:
    """Is one of its statements neither UQL nor SQL of DuckDB's?"""
    try:
        for tree, _ in parse_script(text):
            if isinstance(tree, str):
                duckdb.extract_statements(tree)
    except (UQLSyntaxError, duckdb.Error, TypeError):  # TypeError: half of a character
        return True
    return False


def _check_width(file: Path) -> None:
    """Raises DataError (UQL503) for a CSV file of more than MAX_COLUMNS columns: reading 100,000 takes minutes."""
    if file.suffix.lower() not in (".csv", ".tsv"):
        return
    with file.open("rb") as lines:
        first = lines.readline(LONGEST_HEAD)
    columns = max(first.count(sign) for sign in (b",", b";", b"\t", b"|")) + 1
    if columns > MAX_COLUMNS:
        raise DataError(
            f"{file.name} has {columns:,} columns, and the page reads {MAX_COLUMNS:,} at most",
            code="UQL503",
            help="leave out the columns that you do not need, or make a table of it with DuckDB",
        )
