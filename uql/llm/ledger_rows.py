"""What the ledger's file holds: its tables, and their rows as records."""

from __future__ import annotations

from dataclasses import dataclass

from uql.llm.providers.base import Answer

FORMAT = 2  # of the tables below
SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (
    key BLOB PRIMARY KEY, answer TEXT NOT NULL, model TEXT NOT NULL, source TEXT NOT NULL, at REAL NOT NULL,
    run TEXT NOT NULL DEFAULT '', calls INTEGER NOT NULL DEFAULT 1
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS questions (digest BLOB PRIMARY KEY) WITHOUT ROWID;
INSERT OR IGNORE INTO questions SELECT x'' WHERE EXISTS (SELECT 1 FROM answers) AND NOT EXISTS (SELECT 1 FROM questions);
CREATE TABLE IF NOT EXISTS runs (
    run TEXT PRIMARY KEY, started REAL NOT NULL, finished REAL, statement TEXT NOT NULL, model TEXT NOT NULL,
    seed INTEGER NOT NULL, status TEXT NOT NULL, details TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS calls (
    run TEXT NOT NULL, at REAL NOT NULL, kind TEXT NOT NULL, model TEXT NOT NULL, question TEXT NOT NULL, text TEXT NOT NULL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, requests INTEGER NOT NULL, usd REAL, seconds REAL NOT NULL,
    error TEXT NOT NULL, message TEXT NOT NULL, attempt INTEGER NOT NULL, source TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS calls_run ON calls (run);
CREATE TABLE IF NOT EXISTS statistics (
    scope TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (scope, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS leases (
    run TEXT PRIMARY KEY, owner TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL, at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sittings (
    run TEXT PRIMARY KEY, identity BLOB NOT NULL, root TEXT NOT NULL, budget INTEGER, at REAL NOT NULL, rates TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sittings_identity ON sittings (identity);
CREATE TABLE IF NOT EXISTS grown (run TEXT PRIMARY KEY, calls INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (
    root TEXT NOT NULL, key BLOB NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL, raw TEXT NOT NULL, calls INTEGER NOT NULL,
    PRIMARY KEY (root, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (key BLOB PRIMARY KEY, lease TEXT NOT NULL) WITHOUT ROWID;
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
    "UPDATE meta SET value = 2 WHERE name = 'format'",
)
CALL_COLUMNS = (
    "run", "at", "kind", "model", "question", "text", "input_tokens", "output_tokens", "requests", "usd", "seconds",
    "error", "message", "attempt", "source",
)  # fmt: skip
ERROR_COLUMNS = ("run", "at", "model", "question", "text", "error", "message", "attempt", "source")
CORRECTION_COLUMNS = ("id", "at", "undone", "kind", "text", "answer", "before", "model", "run", "source")
RUN_COLUMNS = (
    "run", "started", "finished", "statement", "model", "seed", "status", "calls", "cached", "failed", "input_tokens",
    "output_tokens", "usd",
)  # fmt: skip
RUNS = """
    SELECT r.run, r.started, r.finished, r.statement, r.model, r.seed, r.status,
        COALESCE(SUM(c.kind = 'call'), 0), COALESCE(SUM(c.kind = 'cached'), 0), COALESCE(SUM(c.kind = 'failed'), 0),
        COALESCE(SUM(c.input_tokens), 0), COALESCE(SUM(c.output_tokens), 0), SUM(c.usd)
    FROM runs r LEFT JOIN calls c ON c.run = r.run GROUP BY r.run ORDER BY r.started DESC"""


@dataclass(frozen=True, slots=True)
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
    """A row that a model gave no answer for, as a run that draws the same rows again takes it: its key, why, and the calls."""

    root: str  # the run that drew first
    key: bytes
    kind: str
    message: str
    raw: str
    calls: int


@dataclass(frozen=True, slots=True)
class Origin:
    """Who paid for an answer: the run, its calls, and when (seconds since the epoch)."""

    run: str
    calls: int
    at: float


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
