"""What the ledger holds: its tables, and their rows as records.

Run, model, question and source are the same for thousands of answers and calls: a row of `subjects` says them once. The views
`answers` and `calls` put both together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar, cast

from uql.llm.providers.base import Answer

Seconds = float  # since the epoch
LATEST = 253_402_300_000.0  # seconds since the epoch, in the year 9999: later moments have no date
FORMAT = 5  # of the tables below
TRIED, RETRIED = "tried", "retried"  # kinds of failures that are none yet, or no more
SCHEMA = """
CREATE TABLE IF NOT EXISTS subjects (
    id INTEGER PRIMARY KEY, run TEXT NOT NULL, kind TEXT NOT NULL, model TEXT NOT NULL, question TEXT NOT NULL, text TEXT NOT NULL,
    source TEXT NOT NULL, UNIQUE (run, kind, model, question, text, source)
);
CREATE TABLE IF NOT EXISTS answer_rows (
    key BLOB PRIMARY KEY, answer TEXT NOT NULL, subject INTEGER NOT NULL, at REAL NOT NULL, calls INTEGER NOT NULL,
    probability REAL, input_tokens INTEGER, output_tokens INTEGER, usd REAL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS call_rows (
    n INTEGER PRIMARY KEY, subject INTEGER NOT NULL, at REAL NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    requests INTEGER NOT NULL, usd REAL, seconds REAL NOT NULL, error TEXT NOT NULL, message TEXT NOT NULL,
    attempt INTEGER NOT NULL, rows INTEGER NOT NULL
);
CREATE VIEW IF NOT EXISTS answers AS
    SELECT key, answer, model, source, at, run, calls FROM answer_rows a JOIN subjects s ON s.id = a.subject;
CREATE VIEW IF NOT EXISTS calls AS SELECT * FROM call_rows c JOIN subjects s ON s.id = c.subject;
CREATE TABLE IF NOT EXISTS questions (digest BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (
    run TEXT PRIMARY KEY, started REAL NOT NULL, finished REAL, statement TEXT NOT NULL, model TEXT NOT NULL,
    seed INTEGER NOT NULL, status TEXT NOT NULL, details TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS statistics (
    scope TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (scope, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS leases (
    run TEXT PRIMARY KEY, owner TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL, at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sittings (
    run TEXT PRIMARY KEY, identity BLOB NOT NULL, root TEXT NOT NULL, budget INTEGER, at REAL NOT NULL, rates TEXT NOT NULL,
    usd REAL, ended REAL, ended_by TEXT
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sittings_identity ON sittings (identity);
CREATE TABLE IF NOT EXISTS grown (run TEXT PRIMARY KEY, calls INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (
    root TEXT NOT NULL, key BLOB NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL, raw TEXT NOT NULL, calls INTEGER NOT NULL,
    input_tokens INTEGER, output_tokens INTEGER, usd REAL, at REAL,
    PRIMARY KEY (root, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (key BLOB PRIMARY KEY, lease TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS reserved (run TEXT PRIMARY KEY, calls INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rates (key BLOB PRIMARY KEY, until REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
    key BLOB PRIMARY KEY, batch TEXT NOT NULL, model TEXT NOT NULL, at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS corrections (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL, head BLOB NOT NULL, at REAL NOT NULL, undone REAL,
    kind TEXT NOT NULL, text TEXT NOT NULL, answer TEXT NOT NULL, before TEXT NOT NULL, model TEXT NOT NULL,
    run TEXT NOT NULL, source TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS draws (
    run TEXT NOT NULL, step TEXT NOT NULL, n INTEGER NOT NULL, indices BLOB NOT NULL, PRIMARY KEY (run, step, n)
) WITHOUT ROWID;
"""
FROM_FORMAT_1 = (
    "ALTER TABLE answers ADD COLUMN run TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE answers ADD COLUMN calls INTEGER NOT NULL DEFAULT 1",
    "ALTER TABLE runs ADD COLUMN details TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE calls ADD COLUMN source TEXT NOT NULL DEFAULT ''",
)
BEFORE_FORMAT_3 = (
    "ALTER TABLE answers RENAME TO old_answers",
    "ALTER TABLE calls RENAME TO old_calls",
)
FROM_FORMAT_2 = (
    "INSERT INTO subjects (run, kind, model, question, text, source) SELECT DISTINCT run, '', model, '', '', source FROM old_answers"
    " UNION SELECT DISTINCT run, kind, model, question, text, source FROM old_calls",
    "INSERT INTO answer_rows (key, answer, subject, at, calls) SELECT key, answer, id, at, calls FROM old_answers"
    " JOIN subjects USING (run, model, source) WHERE kind = ''",
    "INSERT INTO call_rows SELECT c.rowid, id, at, input_tokens, output_tokens, requests, usd, seconds, error, message, attempt, 1"
    " FROM old_calls c JOIN subjects USING (run, kind, model, question, text, source)",
    "INSERT INTO questions SELECT x'' WHERE EXISTS (SELECT 1 FROM old_answers) AND NOT EXISTS (SELECT 1 FROM questions)",
    "DROP TABLE old_answers",
    "DROP TABLE old_calls",
)
FROM_FORMAT_3 = (  # answers of that time hold probability and cost in their text
    "ALTER TABLE answer_rows ADD COLUMN probability REAL",
    "ALTER TABLE answer_rows ADD COLUMN input_tokens INTEGER",
    "ALTER TABLE answer_rows ADD COLUMN output_tokens INTEGER",
    "ALTER TABLE answer_rows ADD COLUMN usd REAL",
    "DROP INDEX IF EXISTS call_rows_subject",
)
FROM_FORMAT_4 = (
    "CREATE TABLE IF NOT EXISTS sittings (run TEXT PRIMARY KEY, identity BLOB NOT NULL, root TEXT NOT NULL, budget INTEGER,"
    " at REAL NOT NULL, rates TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS failures (root TEXT NOT NULL, key BLOB NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL,"
    " raw TEXT NOT NULL, calls INTEGER NOT NULL, PRIMARY KEY (root, key)) WITHOUT ROWID",
    "ALTER TABLE sittings ADD COLUMN usd REAL",
    "ALTER TABLE sittings ADD COLUMN ended REAL",
    "ALTER TABLE sittings ADD COLUMN ended_by TEXT",
    "ALTER TABLE failures ADD COLUMN input_tokens INTEGER",
    "ALTER TABLE failures ADD COLUMN output_tokens INTEGER",
    "ALTER TABLE failures ADD COLUMN usd REAL",
    "ALTER TABLE failures ADD COLUMN at REAL",
)
CALL_COLUMNS = (
    "run", "at", "kind", "model", "question", "text", "input_tokens", "output_tokens", "requests", "usd", "seconds",
    "error", "message", "attempt", "source", "rows",
)  # fmt: skip
SUBJECT_COLUMNS = ("run", "kind", "model", "question", "text", "source")
ERROR_COLUMNS = ("run", "at", "model", "question", "text", "error", "message", "attempt", "source")
CORRECTION_COLUMNS = ("id", "at", "undone", "kind", "text", "answer", "before", "model", "run", "source")
RUN_COLUMNS = (
    "run", "started", "finished", "statement", "model", "seed", "status", "calls", "cached", "failed", "input_tokens",
    "output_tokens", "usd",
)  # fmt: skip
RUNS = """
    SELECT r.run, r.started, r.finished, r.statement, r.model, r.seed, r.status,
        COALESCE(SUM(CASE s.kind WHEN 'call' THEN c.rows END), 0), COALESCE(SUM(CASE s.kind WHEN 'cached' THEN c.rows END), 0),
        COALESCE(SUM(CASE s.kind WHEN 'failed' THEN c.rows END), 0),
        COALESCE(SUM(c.input_tokens), 0), COALESCE(SUM(c.output_tokens), 0), SUM(c.usd)
    FROM runs r LEFT JOIN subjects s ON s.run = r.run LEFT JOIN call_rows c ON c.subject = s.id
    GROUP BY r.run ORDER BY r.started DESC"""


@dataclass(slots=True)
class Entry:
    """An answer to be kept: its key, the model that gave it, and the table that its row came from."""

    key: bytes
    answer: Answer
    model: str
    source: str = ""
    run: str = ""  # that paid for it
    calls: int = 1  # that it took


@dataclass(frozen=True, slots=True)
class Failed:
    """A row that a model gave no answer for, as a run that draws the same rows again takes it: its key, why, and what it cost.

    Kind TRIED: its first reply could not be read; `raw` is the kind of that failure and, if it shared a request, how many rows may share
    its next one. It stands until the row is given up, or has an answer. Kind RETRIED: it was asked once more since, and has an answer.
    """

    root: str  # the run that drew first
    key: bytes
    kind: str
    message: str
    raw: str
    calls: int
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0
    at: Seconds = 0.0

    @property
    def paid(self) -> tuple[int, int, float | None]:
        """Input and output tokens and USD (None: unknown) of its tries."""
        return self.input_tokens, self.output_tokens, self.usd

    @property
    def is_final(self) -> bool:
        """Is it not asked any more by the same run?"""
        return self.kind not in (TRIED, RETRIED)


@dataclass(frozen=True, slots=True)
class Origin:
    """Who paid for an answer: the run, its calls, and when (seconds since the epoch)."""

    run: str
    calls: int
    at: Seconds


@dataclass(frozen=True, slots=True)
class SignOfLife:
    """The last one of the process that has a run."""

    host: str
    pid: int
    at: Seconds


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as the ledger knows it: what it takes to continue it, and what it has paid."""

    id: str
    statement: str
    model: str
    seed: int
    status: str  # running (or killed), done, partial, failed, interrupted
    started: float  # seconds since the epoch
    details: str  # JSON, of those who started it
    paid_calls: int
    tokens: int
    usd: float


@dataclass(frozen=True, slots=True)
class Stats:
    """What a ledger holds."""

    path: str
    answers: int
    runs: int
    calls: int
    bytes: int
    models: tuple[tuple[str, int], ...]  # model, its answers
    sources: tuple[tuple[str, int], ...]  # table, the answers about its rows


# raised over a value of another type than its column
OF_OTHER_TYPES: tuple[type[Exception], ...] = (TypeError, ValueError, OverflowError)
# what a field may hold, by its annotation
_HELD: dict[Any, Any] = {
    "str": str,
    "bytes": bytes,
    "bool": bool,
    "int": int,
    "int | None": int | None,
    "float": (int, float),
    "float | None": int | float | None,
    "Seconds": (int, float),
}
R = TypeVar("R")


def record(kind: type[R], row: Sequence[Any]) -> R | None:
    """The record in a row; None where a value of it has another type: SQLite keeps whatever a damaged file says."""

    def fits(kind: Any, value: Any) -> bool:
        return isinstance(value, _HELD[kind]) and (kind != "Seconds" or 0 <= value <= LATEST)

    pairs = zip(fields(cast(Any, kind)), row, strict=True)
    return kind(*row) if all(fits(field.type, value) for field, value in pairs) else None
