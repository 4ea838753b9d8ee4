"""Runs that can be continued, and the ledger's tables.

The ledger keeps with each run what it takes to give its statement again: text, parameters, settings, the seed, the rates that its
plan was made with, the database. A later sitting of the same run draws the same rows, pays for none that was answered, and
counts those calls as spent.

A ledger may lie where others can write: in a folder that was sent, on a server. What it says of a run is a statement that `resume` runs
and where its rows go. So each run is signed, with a key that lies beside the user's settings; another one asks for the user's trust.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from uql.base.errors import BindError, ConfigError
from uql.base.own_key import own_key
from uql.base.printable import printable
from uql.base.settings import Settings
from uql.llm.ledger_rows import StoredRun
from uql.llm.open_ledgers import MEMORY
from uql.llm.run_record import Run

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.llm.budget import Budget
    from uql.llm.ledger import Ledger
    from uql.llm.open_ledgers import Ledgers
    from uql.session.replay import Replay
    from uql.sources.catalog import Catalog

OWN = {"ledger", "progress", "offline", "endpoints", "prices", "plugins"}  # settings of a sitting, not of a run
BROKEN_OFF = ("running", "interrupted", "failed")  # "running": its process was killed
TABLES = ("uql_runs", "uql_calls", "uql_errors", "uql_corrections")
_NAMED = re.compile(rf"\b({'|'.join(TABLES)})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Before(StoredRun):
    """The sittings that a run has had: what they were given, and what they paid."""

    settings: Mapping[str, Any]
    parameters: Mapping[str, Any] | None  # None: some are no JSON values
    rates: Mapping[str, Any]
    database: str | None
    folder: str
    read_only: bool
    since: float  # answers paid for from then on are draws of the run
    root: str = ""  # the run that drew first; "": this one
    steps: tuple[int, ...] = ()  # the calls of the sittings that it goes on with
    calls: int | Literal["settings"] | None = "settings"  # its own
    sitting: str = ""  # the run that was the first with its limits

    def restored(self, session: Settings) -> tuple[Settings, Mapping[str, Any]]:
        """The settings and the parameters that the run was given; the ledger is that of the session.

        Raises: ConfigError (UQL412) where the parameters could not be kept.
        """
        if self.parameters is None:
            raise ConfigError(
                f"the run {self.id} had parameters that the ledger cannot keep", code="UQL412", help="run it anew"
            )
        own = {name: getattr(session, name) for name in OWN if hasattr(session, name)}
        return Settings().with_values(**{**self.settings, **own}), self.parameters


@dataclass(frozen=True, slots=True)
class StatementInput:
    """A statement as it was given, and where it continues a run, that run and the settings that replace its own."""

    text: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    before: Before | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    retries: bool = False  # are rows for which the run got no answer asked once more?

    def budget(self, settings: Settings, calls: int | None) -> Budget | None:
        """What a later sitting may spend: of tokens and USD what is left, of calls too where a run was broken off. A run that had
        reached such a limit is granted it anew; the rows without an answer of one that ended are asked beside its budget."""
        from uql.llm.budget import Budget, Limits

        if self.before is None:
            return None
        before = self.before
        tokens, usd = settings.max_tokens, settings.max_cost
        own = not {"budget", "exact"} & set(self.changes)
        calls = before.calls if own and before.calls != "settings" else calls
        steps = before.steps if own else ()
        new = Limits()
        if before.status in BROKEN_OFF:
            new.calls = None if calls is None else max(0, calls - max(steps, default=0) - before.paid_calls)
            new.tokens = None if tokens is None else max(0, tokens - before.tokens)
            new.usd = None if usd is None else max(0.0, usd - before.usd)
        elif before.status == "partial":
            new.tokens, new.usd = tokens, usd
            tokens = None if tokens is None else tokens + before.tokens
            usd = None if usd is None else usd + before.usd
        return Budget(calls=calls, tokens=tokens, usd=usd, seconds=settings.max_seconds, steps=steps, new=new)

    def run(
        self,
        text: str,
        session: Settings,
        rates: Mapping[str, Any],
        database: str | None,
        read_only: bool,
        id: str,
        replay: Replay | None,
    ) -> Run:
        """The run of this sitting: a new one that is called `id`, or the one continued.

        Args:
            text: not read where a run is continued.
            session: the settings of the session.
            rates: of terms, as they were learned.
            database: the path; None: in memory.
            read_only: the database is open so.
            id: of a new run.
            replay: the run whose draws it takes up.
        """
        if self.before is not None:
            run = Run(self.before.id, self.before.seed, self.text, started=self.before.since, root=self.before.root)
            return replace(run, again=True, retries=self.retries)
        default = Settings()
        changed = {f.name: getattr(session, f.name) for f in fields(Settings)}
        state: dict[str, Any] = {
            "settings": {n: v for n, v in changed.items() if n not in OWN and v != getattr(default, n)},
            "parameters": self.parameters,
            "rates": dict(rates),
            "database": None if database is None else str(Path(database).absolute()),
            "folder": os.getcwd(),
            "read_only": read_only,
        }
        root = "" if replay is None or replay.root == id else replay.root
        if replay is not None:
            state |= {"since": replay.since, "root": root}
            state |= {"steps": replay.steps, "calls": replay.calls, "sitting": replay.sitting}
        try:
            details = json.dumps(state)
        except (TypeError, ValueError):
            details = json.dumps({**state, "parameters": None})
        if session.ledger != MEMORY:
            details = signed(id, self.text or text, details)
        run = Run(id, session.seed, self.text or text, details, root=root)
        if replay is None:
            return run
        return replace(run, started=replay.since, until=replay.until, ended_by=replay.ended_by, ended=replay.done)


def find(token: str, ledger: Ledger, *, trust: bool = False) -> Before:
    """The run of a token (its id, or how it begins).

    Args:
        trust: may it be another user's?
    Raises: ConfigError (UQL412) where the ledger has none or cannot continue it, (UQL414) where another process is at it, (UQL418) where
        this user did not begin it.
    """
    from uql.llm.run_lease import refuse_held

    stored = ledger.stored(token)
    if stored is not None:
        refuse_held(ledger, stored.id)
    if stored is None:
        raise ConfigError(f"there is no run {token!r} in {ledger.path}", code="UQL412", help="uql runs lists them")
    if not stored.details:
        raise ConfigError(f"the run {stored.id} does not say how it was begun", code="UQL412", help="run it anew")
    try:
        state = json.loads(stored.details)
        values = {name: value for name, value in state["settings"].items() if name not in OWN}
        state["settings"] = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
        state["steps"] = tuple(state.get("steps", ()))
        own = {f.name for f in fields(Before)} - {f.name for f in fields(StoredRun)}
        before = Before(**asdict(stored), **{"since": stored.started} | {n: state[n] for n in own & set(state)})
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ConfigError(
            f"what it takes to continue the run {stored.id} cannot be read", code="UQL412", help="run it anew"
        ) from error
    if not trust and ledger.path != MEMORY:
        check_own(before)
    return before


# -------------------------------------------------------------------------------------------------------- the tables
def by_name(parameters: Mapping[str, Any] | None, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a statement. Raises: BindError (UQL213) for a list of them."""
    if parameters is not None and not isinstance(parameters, Mapping):
        raise BindError(
            f"parameters are given by name, not as a {type(parameters).__name__}",
            code="UQL213",
            help='write $name in the statement: con.uql("SELECT $least AS n", least=3), or a mapping {"least": 3}',
        )
    return {**(parameters or {}), **arguments}


def named(text: str) -> tuple[str, ...]:
    """The ledger's tables that a statement names, as `FROM uql_calls()`.

    >>> named("SELECT * FROM UQL_calls() JOIN uql_runs() USING (run)")
    ('uql_calls', 'uql_runs')
    """
    return tuple(dict.fromkeys(name.lower() for name in _NAMED.findall(text)))


def offer(text: str, ledger: str | None, ledgers: Ledgers, catalog: Catalog) -> None:
    """Makes the tables of ours that a statement names, as they are now: those of the ledger, and `uql_tables()`.

    Args:
        ledger: its path; None: the default one.
    """
    if "uql_tables" in text.lower():
        from uql.session.semantic_store import listing

        catalog.offer("uql_tables", listing(catalog.cursor))
    names = named(text)
    if names:
        with ledgers.open(ledger) as open_ledger:
            for name in names:
                with open_ledger.reading():
                    catalog.offer(name, table(name, open_ledger))


def table(name: str, ledger: Ledger) -> pa.Table:
    """One of TABLES as it is now: the runs, newest first, with what they paid; a row for each call, for what the ledger answered
    together (`rows` of them) and for each row given up; the rows given up alone; what people answered in the model's place. Times
    are UTC, `usd` is NULL where a price is unknown."""
    import pyarrow as pa

    when, whole, text = pa.timestamp("us", tz="UTC"), pa.int64(), pa.string()
    types: dict[str, pa.DataType] = dict.fromkeys(("started", "finished", "at", "undone"), when)
    types |= dict.fromkeys(("id", "seed", "calls", "cached", "failed", "input_tokens", "output_tokens"), whole)
    types |= {"requests": whole, "attempt": whole, "rows": whole, "usd": pa.float64(), "seconds": pa.float64()}
    columns, batches = ledger.table(name.removeprefix("uql_"))
    schema = pa.schema([(column, types.get(column, text)) for column in columns])
    record_batches = []
    for rows in filter(None, batches):
        arrays = []
        for column, values in zip(schema, zip(*rows, strict=True), strict=True):
            moments = pa.types.is_timestamp(column.type)
            read = [None if v is None else int(v * 1e6) for v in values] if moments else list(values)
            arrays.append(pa.array(read, type=column.type))
        record_batches.append(pa.record_batch(arrays, schema=schema))
    return pa.Table.from_batches(record_batches, schema=schema)


SIGNATURE = "signature"  # of a run, among what it takes to continue it
SHOWN = 200  # characters of a statement in an error


def signed(run: str, statement: str, details: str) -> str:
    """What it takes to continue a run, with the user's signature; without one where the key cannot be kept.

    Args:
        details: JSON of an object.
    """
    state = json.loads(details)
    key = own_key(make=True)
    return details if key is None else json.dumps({**state, SIGNATURE: _signature(key, run, statement, state)})


def is_own(run: StoredRun) -> bool:
    """Did this user begin the run, as the ledger has it now?"""
    state = json.loads(run.details)
    signature, key = state.pop(SIGNATURE, None), own_key()
    if key is None or not isinstance(signature, str):
        return False
    return hmac.compare_digest(_signature(key, run.id, run.statement, state).encode(), signature.encode())


def check_own(run: StoredRun) -> None:
    """Raises ConfigError (UQL418) for a run that this user did not begin."""
    if not is_own(run):
        statement = printable(" ".join(run.statement.split()))[:SHOWN]
        raise ConfigError(
            f"you did not begin the run {run.id} as the ledger has it; its statement: {statement}",
            code="UQL418",
            help=f"`uql resume {run.id}` shows what it would do and asks; con.resume({run.id!r}, trust=True) does not ask",
        )


def _signature(key: bytes, run: str, statement: str, state: Mapping[str, Any]) -> str:
    text = json.dumps([run, statement, state], sort_keys=True)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
