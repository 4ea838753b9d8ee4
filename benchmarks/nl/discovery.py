"""Discovery measured apart from planning: of the tables and columns that a question needs, how many stand in the prompt.

Databases of 18 tables: the hospital of EHRXQA's shape (100 questions), and for questions of nvBench the tables of their database among
those of others, drawn by the question's id. What is needed is what the reference's statement names. Three prompts are judged: `all`,
18 tables within 4,000 tokens, from which the model chooses columns; `shortlist`, what the planner is shown where the model chose
nothing; and `small`, the shortlist within 1,000 tokens, as for a model with a small context. No model is asked, so this is the least
that a planner is given.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

import duckdb

import uql
from uql.benchmarks.nl import ehrxqa
from uql.nl.ask.room import Room
from uql.nl.schema.discover import discover, schema_text, shortlist, tokens_of

if TYPE_CHECKING:
    from uql.api.connection import Connection
    from uql.features.embedder import Embedder
    from uql.nl.schema.scope import Scope

TABLES = 18
SMALL = 1_000  # tokens
NVBENCH = HOSPITAL = 100  # questions
_HEAD = re.compile(r"^Visualize [A-Z ]+?(?=SELECT)", re.IGNORECASE)
_BIN = re.compile(r"\s+BIN\s+.*$", re.IGNORECASE)
Columns = frozenset[tuple[str, str]]  # table and column, lower case


@dataclass(frozen=True, slots=True)
class Found:
    """What a prompt shows of what one question needs: shares of tables and columns, the tokens, and what is missing."""

    suite: str
    question: str
    prompt: str
    tables: float
    columns: float
    tokens: int
    needed: int  # tables
    shown: int  # tables
    missing: tuple[str, ...] = ()


def needed(statement: str, schema: Mapping[str, Sequence[str]]) -> tuple[frozenset[str], Columns]:
    """The tables and columns of a schema that a statement names.

    Args:
        schema: columns by table.
    Raises: sqlglot.errors.SqlglotError where it is no SQL.

    >>> tables, columns = needed("SELECT a.x FROM one a JOIN two ON a.k = two.k WHERE y > 1", {"one": ["x", "k"], "two": ["k", "y"]})
    >>> sorted(tables), sorted(columns)
    (['one', 'two'], [('one', 'k'), ('one', 'x'), ('two', 'k'), ('two', 'y')])
    """
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(statement, read="duckdb")
    known = {table.lower(): {c.lower() for c in columns} for table, columns in schema.items()}
    by_alias = {t.alias_or_name.lower(): t.name.lower() for t in tree.find_all(exp.Table) if t.name.lower() in known}
    columns: set[tuple[str, str]] = set()
    for column in tree.find_all(exp.Column):
        name, owner = column.name.lower(), column.table.lower()
        owners = [by_alias[owner]] if owner in by_alias else [] if owner else list(by_alias.values())
        columns |= {(table, name) for table in owners if name in known[table]}
    return frozenset(by_alias.values()), frozenset(columns)


def run(shared: Path, embedder: Embedder | None, *, nvbench: int = NVBENCH, hospital: int = HOSPITAL) -> list[Found]:
    """Discovery over both kinds of databases, with so many questions of each; asks no model."""
    return [*_hospital(shared, embedder, hospital), *_charts(shared, embedder, nvbench)]


def _hospital(shared: Path, embedder: Embedder | None, most: int) -> Iterator[Found]:
    with tempfile.TemporaryDirectory() as work, uql.connect(model=None, ledger=":memory:") as con:
        ehrxqa.world(Path(work)).fill(con)
        schema = _schema(con)
        for question in ehrxqa.questions(shared)[:most]:
            tables, columns = needed(question.uql, schema)
            if "image" in question.scope:
                columns |= {("cxr_studies", "image")}
            yield from _judged("ehrxqa", question.id, question.words, con, tables, columns, embedder)


def _charts(shared: Path, embedder: Embedder | None, most: int) -> Iterator[Found]:
    folder = shared / "nvbench"
    with duckdb.connect() as files:
        asked = files.execute(
            f"SELECT question_id, question, json_extract_string(meta, '$.db'), json_extract_string(notes, '$.vql') "
            f"FROM '{folder}/questions.parquet' JOIN '{folder}/answers.parquet' USING (question_id) ORDER BY sha256(question_id)"
        ).fetchall()
        pages = files.execute(
            f'SELECT db, "table", csv FROM \'{folder}/tables.parquet\' ORDER BY db, "table"'
        ).fetchall()
    for name, words, db, vql in asked[:most]:
        own = [(table, csv) for place, table, csv in pages if place == db]
        taken = {table.lower() for table, _ in own}
        others = [(table, csv) for place, table, csv in pages if place != db]
        others.sort(key=lambda page: sha256(f"{name} {page[0]} {page[1][:200]}".encode()).digest())
        given = dict(own)
        for table, csv in others:
            if len(given) < TABLES and table.lower() not in taken:
                taken.add(table.lower())
                given[table] = csv
        with tempfile.TemporaryDirectory() as work, uql.connect(model=None, ledger=":memory:") as con:
            for number, (table, csv) in enumerate(given.items()):
                path = Path(work) / f"{number}.csv"
                path.write_text(csv, encoding="utf-8")
                con.catalog.cursor.execute(
                    f"CREATE TABLE \"{table}\" AS SELECT * FROM read_csv('{path}', header = true, nullstr = ['', 'NULL'])"
                )
            tables, columns = needed(_BIN.sub("", _HEAD.sub("", vql)), _schema(con))
            yield from _judged("nvbench", name, words, con, tables, columns, embedder)


def _schema(con: Connection) -> dict[str, list[str]]:
    return {name: [f.name for f in con.catalog.table((name,)).fields] for name in con.catalog.names()}


def _judged(
    suite: str,
    name: str,
    words: str,
    con: Connection,
    tables: frozenset[str],
    columns: Columns,
    embedder: Embedder | None,
) -> Iterator[Found]:
    whole = discover(words, con.catalog, embedder)
    near = shortlist(whole)
    for prompt, scope, tokens in (
        ("all", whole, Room().prompt),
        ("shortlist", near, Room().prompt),
        ("small", near, SMALL),
    ):
        text = schema_text(scope, tokens=tokens)
        held_tables, held_columns = _shown(text, scope)
        missing = (*sorted(tables - held_tables), *(".".join(c) for c in sorted(columns - held_columns)))
        shares = _share(tables, held_tables), _share(columns, held_columns)
        yield Found(suite, name, prompt, *shares, tokens_of(text), len(tables), len(held_tables), missing)


def _shown(text: str, scope: Scope) -> tuple[frozenset[str], Columns]:
    """The tables and columns that stand in a prompt: a table's line begins with its name, those of its columns are set in."""
    origins = {source.name: source.origin.rpartition(".")[2].lower() for source in scope.sources.values()}
    tables: set[str] = set()
    columns: set[tuple[str, str]] = set()
    current = ""
    for line in text.splitlines():
        if line.startswith("  "):
            names = {
                f.name.lower() for source in scope.sources.values() if source.name == current for f in source.fields
            }
            pieces = [line.strip(), *line.strip().split(", ")]
            columns |= {(origins[current], n) for n in names for piece in pieces if piece.lower().startswith(n + " ")}
            continue
        current = line.partition(" (")[0]
        if current in origins:
            tables.add(origins[current])
    return frozenset(tables), frozenset(columns)


def _share(wanted: AbstractSet[object], held: AbstractSet[object]) -> float:
    return len(wanted & held) / len(wanted) if wanted else 1.0


def report(found: Sequence[Found]) -> str:
    """Recall of tables and columns by kind of database and prompt."""
    lines = [
        "discovery in databases of 18 tables, no model asked",
        f"  {'suite':<8} {'prompt':<10} {'questions':>9} {'tables recall':>14} {'columns recall':>15} {'needed':>7} {'shown':>6} "
        f"{'tokens at most':>15}",
    ]
    for suite in ("ehrxqa", "nvbench"):
        for prompt in ("all", "shortlist", "small"):
            held = [f for f in found if f.suite == suite and f.prompt == prompt]
            if held:
                shares = mean(f.tables for f in held), mean(f.columns for f in held)
                lines.append(
                    f"  {suite:<8} {prompt:<10} {len(held):>9} {shares[0]:>14.3f} {shares[1]:>15.3f} {mean(f.needed for f in held):>7.1f} "
                    f"{mean(f.shown for f in held):>6.1f} {max(f.tokens for f in held):>15,}"
                )
    return "\n".join(lines)
