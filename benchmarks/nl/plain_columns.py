"""Sets of questions: `ask` over small databases, judged by the rows of SQL written by hand.

The sets are the files of `plain/`: `questions` with databases of its own, `judged_plain` over databases of nvBench, and
`judged_reading` and `typed_reading` over collections whose texts and images a reader of labels answers (judged.py). An answer is
right where one of its results has the rows of a reference, in any order of columns, and, but where the question asks for an order, in
any order of rows. An answer that is not right and says nothing of its doubt is silently wrong.

    python -m uql.benchmarks.nl.plain_columns --set judged_plain --half open --sample 1 --limit 50 --model local

A route `without_…` switches one mechanism of a small model's vote off (`uql.nl.small.vote.SWITCHES`), `plain` is one statement
with one repair, `votes` five without; `--route` several times makes the rows of an ablation table. Over one `--ledger` the routes ask what
they have in common once.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import duckdb

import uql
from uql.base.errors import UQLError
from uql.base.settings import Settings
from uql.benchmarks.nl import judged, suites
from uql.benchmarks.nl.references import key_of
from uql.llm.providers import open_provider
from uql.nl.small.vote import SWITCHES

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.api.connection import Connection
    from uql.llm.providers.base import Provider
    from uql.nl.ask.answer import Answer

SETS = ("questions", "judged_plain", "judged_reading", "typed_reading")
HALVES = ("open", "held-back")
ROUTES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "plain": {"candidates": 1, "without": ("reading",)},
    "votes": {"without": ("reading", "repair")},
    **{f"without_{name}": {"without": (name,)} for name in SWITCHES},  # the ablation
}
MOST_COLUMNS = 6  # of a result whose columns are put in every order


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, where it is asked, and the SQL that answers it.

    Attributes:
        id: the database's name and a number.
        source: where its tables come from: "schema" (of the file), "nvbench", "labels" (a collection of judged.py).
        schema: statements that make the tables, or the name of the database or collection.
        text: the question.
        sql, also: the reference, and others that are as right.
        ordered: the order of the rows counts.
        held_back: for judging only.
    """

    id: str
    source: str
    schema: str
    text: str
    sql: str
    also: tuple[str, ...] = ()
    ordered: bool = False
    held_back: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """What a route made of one question.

    Attributes:
        route, question, model, set: which.
        verdict: "right", "wrong", "unsure" (wrong, with a doubt that it states) or "refused".
        seconds: from the question to the answer.
        calls: of models, to plan and to read; those that the ledger answered too.
        sql, said, notes: of the answer.
        beside: not right, and the rows of a reference stand in a result beside further columns.
        prompt_tokens: evaluated by a local model, else sent; a common start that was evaluated before is not among them.
        reply_tokens: of all replies.
    """

    route: str
    question: str
    verdict: str
    seconds: float
    calls: int
    sql: str
    said: str
    notes: tuple[str, ...] = ()
    model: str = ""
    set: str = "questions"
    beside: bool = False
    prompt_tokens: int = 0
    reply_tokens: int = 0


def questions(name: str = "questions", half: str | None = None) -> Iterator[Asked]:
    """Those of a set, in the order of its file.

    Args:
        name: of the set.
        half: "open" or "held-back"; None: both.
    """
    held = tomllib.loads((files(__package__) / "plain" / f"{name}.toml").read_text(encoding="utf-8"))
    source, numbers = held.get("source", "schema"), Counter[str]()
    for database in held["database"]:
        held_back = database.get("held_back", False)
        for question in database["question"]:
            numbers[database["name"]] += 1
            asked = Asked(
                f"{database['name']}-{numbers[database['name']]}",
                source,
                database.get("schema", database["name"]),
                question["text"],
                question["sql"],
                tuple(question.get("also", ())),
                question.get("ordered", False),
                held_back,
            )
            if half is None or (half == "held-back") == held_back:
                yield asked


def chosen(asked: Sequence[Asked], limit: int | None, seed: int | None) -> list[Asked]:
    """`limit` questions at most, in their order: evenly spread, or, with a seed, drawn by chance."""
    if limit is None or limit >= len(asked):
        return list(asked)
    if seed is None:
        return [asked[i * len(asked) // limit] for i in range(limit)]
    return [asked[i] for i in sorted(random.Random(seed).sample(range(len(asked)), limit))]


def run(
    model: str | Provider,
    routes: Sequence[str],
    *,
    name: str = "questions",
    half: str | None = None,
    limit: int | None = None,
    seed: int | None = None,
    only: Sequence[str] = (),
    shared: Path | None = None,
    done: Sequence[Row] = (),
    options: Mapping[str, Any] = MappingProxyType({}),
    ledger: str = ":memory:",
    tell: Callable[[Row], None] = lambda row: None,
) -> list[Row]:
    """Asks each question by each route, the routes of one question one after the other.

    Args:
        model: that plans; where the set has no reader of labels it reads as well.
        name: of the set.
        half: "open" or "held-back"; None: both.
        limit, seed: as in `chosen`.
        only: ids of questions; none: all.
        shared: the data folder; the set `questions` needs none.
        done: rows of an earlier run that are not made again.
        options: further ones of `ask`.
        ledger: of all questions; by default each has its own.
        tell: gets each row as it is made.
    Raises: ValueError where a set needs data and there is no folder.
    """
    called = model if isinstance(model, str) else getattr(model, "name", "")
    known = {(row.set, row.model, row.route, row.question) for row in done}
    made = []
    asked = [one for one in questions(name, half) if not only or one.id in only]
    with tempfile.TemporaryDirectory() as work:
        for one in chosen(asked, limit, seed):
            for route in routes:
                if (name, called, route, one.id) in known:
                    continue
                row = _row(one, name, called, route, model, {**ROUTES[route], **options}, shared, Path(work), ledger)
                made.append(row)
                tell(row)
    return made


def _row(
    asked: Asked,
    name: str,
    called: str,
    route: str,
    model: str | Provider,
    options: Mapping[str, Any],
    shared: Path | None,
    work: Path,
    ledger: str,
) -> Row:
    with truths(asked, shared, work) as database:
        wanted = references(database, asked)
    with connected(asked, model, shared, work, ledger) as connection:
        began = time.perf_counter()
        try:
            planner = {"planner": model} if asked.source == "labels" else {}
            answer = connection.ask(asked.text, **planner, **options)
        except (UQLError, duckdb.Error) as error:
            said = error.message if isinstance(error, UQLError) else str(error)
            seconds = time.perf_counter() - began
            return Row(route, asked.id, "refused", seconds, 0, "", said, model=called, set=name)
    said = verdict(answer, wanted, asked)
    return Row(
        route,
        asked.id,
        said,
        answer.seconds,
        answer.cost.calls + answer.cost.cached,
        answer.uql,
        answer.text or answer.cannot,
        tuple(answer.notes),
        called,
        name,
        said != "right" and any(same(t, w, asked, wider=True) for t in _tables(answer) for w in wanted),
        answer.cost.input_tokens,
        answer.cost.output_tokens,
    )


# --------------------------------------------------------------------------------------------------------------- tables
@contextmanager
def connected(
    asked: Asked, model: str | Provider, shared: Path | None, work: Path, ledger: str = ":memory:"
) -> Iterator[Connection]:
    """A connection with the tables of a question; in a collection its labels are the reader.

    Args:
        asked: the question.
        model: that plans.
        shared: the data folder.
        work: where files of the collection are made.
        ledger: its path, or ":memory:".
    Raises: ValueError without data.
    """
    if asked.source == "labels":
        place = _place(asked.schema, _needed(shared), work)
        with uql.connect(model=place.reader(), ledger=ledger, budget="all") as connection:
            place.world.fill(connection)
            yield connection
        return
    with duckdb.connect() as database:
        _fill(database, asked, shared)
        with uql.attach(database, model=model, ledger=ledger) as connection:
            yield connection


@contextmanager
def truths(asked: Asked, shared: Path | None, work: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with the tables of a question's reference. Raises ValueError without data."""
    with duckdb.connect() as database:
        if asked.source == "labels":
            for name, table in _place(asked.schema, _needed(shared), work).truths.items():
                database.register(name, table)
        else:
            _fill(database, asked, shared)
        yield database


def references(database: duckdb.DuckDBPyConnection, asked: Asked) -> list[pa.Table]:
    """The rows of the reference, and of the others that are as right."""
    return [database.sql(sql).to_arrow_table() for sql in (asked.sql, *asked.also)]


def _fill(database: duckdb.DuckDBPyConnection, asked: Asked, shared: Path | None) -> None:
    if asked.source == "schema":
        database.execute(asked.schema)
        return
    with tempfile.TemporaryDirectory() as work:
        suites.fill_nvbench(database, asked.schema, _needed(shared), Path(work))


def _needed(shared: Path | None) -> Path:
    if shared is None or not (shared / "nvbench").is_dir():
        raise ValueError(f"no data in {shared}: set UQL_DATA or --data")
    return shared


@cache
def _place(name: str, shared: Path, work: Path) -> judged.Place:
    return judged.PLACES[name](shared, work)


# -------------------------------------------------------------------------------------------------------------- judging
def verdict(answer: Answer, wanted: Sequence[pa.Table], asked: Asked) -> str:
    """ "right", "wrong", "unsure" or "refused", by the results that the answer rests on."""
    if not answer.answered:
        return "refused"
    if any(same(table, one, asked) for table in _tables(answer) for one in wanted):
        return "right"
    return "unsure" if answer.notes or answer.readings else "wrong"


def _tables(answer: Answer) -> list[pa.Table]:
    tables = [answer.results[name].table for name in answer.rests_on if name in answer.results]
    return [table for table in tables if table is not None]


def same(found: pa.Table, wanted: pa.Table, asked: Asked, *, wider: bool = False) -> bool:
    """Whether two tables have the same rows, numbers to six digits, columns in any order.

    Rows are compared with their order where the question asks for one, as sets where texts are read, else as multisets.

    Args:
        wider: the found table may have further columns.
    """
    width = wanted.num_columns
    if found.num_columns > MOST_COLUMNS or found.num_columns < width or (found.num_columns > width and not wider):
        return False
    if asked.source != "labels" and found.num_rows != wanted.num_rows:
        return False
    right = _shape(_columns(wanted), asked)
    return any(_shape(columns, asked) == right for columns in itertools.permutations(_columns(found), width))


def _columns(table: pa.Table) -> list[list[Any]]:
    return [[key_of(value) for value in column.to_pylist()] for column in table.columns]


def _shape(columns: Sequence[list[Any]], asked: Asked) -> object:
    rows = list(zip(*columns, strict=True))
    if asked.ordered:
        return rows
    return frozenset(rows) if asked.source == "labels" else Counter(rows)


def report(rows: Sequence[Row]) -> str:
    """A line a set, model and route: how many of each verdict, the median of the seconds, calls and tokens a question."""
    lines = [
        "| set | model | route | questions | right | visible error or warned | wrong without a word | median s | calls a question | "
        "prompt + reply tokens a question | right but for further columns |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, model, route in dict.fromkeys((row.set, row.model, row.route) for row in rows):
        mine = [row for row in rows if (row.set, row.model, row.route) == (name, model, route)]
        count = Counter(row.verdict for row in mine)
        median = statistics.median(row.seconds for row in mine)
        calls = statistics.mean(row.calls for row in mine)
        prompt = statistics.mean(row.prompt_tokens for row in mine)
        reply = statistics.mean(row.reply_tokens for row in mine)
        seen = f"{count['refused']} + {count['unsure']}"
        lines.append(
            f"| {name} | {model} | {route} | {len(mine)} | {count['right']} | {seen} | {count['wrong']} | {median:.1f} | {calls:.1f} | "
            f"{prompt:,.0f} + {reply:,.0f} | {sum(row.beside for row in mine)} |"
        )
    return "\n".join(lines)


def read(path: Path) -> list[Row]:
    """The rows of earlier runs."""
    if not path.exists():
        return []
    held = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Row(**{**row, "notes": tuple(row["notes"])}) for row in held]


def write(path: Path, row: Row) -> None:
    """Adds a row at the end of the file."""
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Asks a set and prints what came of it. Exit code 2 where the data or the model is not there."""
    parser = argparse.ArgumentParser(prog="uql.benchmarks.nl.plain_columns", description=main.__doc__)
    parser.add_argument("--set", choices=SETS, default="questions")
    parser.add_argument("--model", required=True, help="that plans, as of `uql --model`")
    parser.add_argument("--route", action="append", choices=tuple(ROUTES), help="several times for several")
    parser.add_argument("--half", choices=HALVES, help="both by default")
    parser.add_argument("--limit", type=int, help="questions at most, evenly spread")
    parser.add_argument("--sample", type=int, metavar="SEED", help="draws the --limit questions by chance")
    parser.add_argument("--only", action="append", default=[], help="the id of a question, several times for several")
    parser.add_argument(
        "--rows", type=Path, default=Path("plain-rows.jsonl"), help="where rows are kept, not made twice"
    )
    parser.add_argument("--ledger", default=":memory:", help="a file: equal requests of several routes are asked once")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("UQL_DATA", "../shared/data")))
    given = parser.parse_args(arguments)
    shared = given.data.resolve()
    if given.set != "questions" and not (shared / "nvbench").is_dir():
        print(f"no data in {shared}: set UQL_DATA or --data", file=sys.stderr)
        return 2

    def tell(row: Row) -> None:
        write(given.rows, row)
        said = f"{row.said[:80]} {'; '.join(row.notes)[:120]}"
        print(f"{row.question} {row.route}: {row.verdict}, {row.calls} calls, {row.seconds:.1f} s: {said}", flush=True)

    wanted = [one.id for one in questions(given.set, given.half) if not given.only or one.id in given.only]
    routes = given.route or ["default"]
    try:
        open_provider(given.model, Settings())  # fails at once where there is no such model or no key
        run(
            given.model,
            routes,
            name=given.set,
            half=given.half,
            limit=given.limit,
            seed=given.sample,
            only=given.only,
            shared=shared,
            done=read(given.rows),
            ledger=given.ledger,
            tell=tell,
        )
    except UQLError as error:
        print(error, file=sys.stderr)
        return 2
    mine = [row for row in read(given.rows) if (row.set, row.model) == (given.set, given.model)]
    print(report([row for row in mine if row.question in wanted and row.route in routes]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
