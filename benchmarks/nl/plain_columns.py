"""Questions that plain columns answer: `ask` over small databases, judged by the rows of SQL written by hand.

The databases and the questions are `plain/questions.toml`. An answer is right where one of its results has the rows of the reference, in
any order of rows and columns. An answer that is not right and says nothing of its doubt is silently wrong.
"""

from __future__ import annotations

import json
import statistics
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import duckdb

import uql
from uql.base.errors import UQLError
from uql.nl.small.vote import key_of

if TYPE_CHECKING:
    from uql.llm.providers.base import Provider
    from uql.nl.ask.answer import Answer

ROUTES: Mapping[str, Mapping[str, Any]] = {
    "lines": {},
    "plain": {"candidates": 1, "lines": False},
    "vote": {"candidates": 5},
    "vote_without_lines": {"candidates": 5, "lines": False},
    "vote_without_repair": {"candidates": 5, "repair": False},
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, its database, and the SQL that answers it."""

    id: str
    schema: str
    text: str
    sql: str


@dataclass(frozen=True, slots=True)
class Row:
    """What a route made of one question: "right", "wrong", "unsure" (wrong, with a doubt that it states) or "refused"."""

    route: str
    question: str
    verdict: str
    seconds: float
    calls: int
    sql: str
    said: str
    notes: tuple[str, ...] = ()


def questions() -> Iterator[Asked]:
    """All of them, in the order of the file."""
    held = tomllib.loads((files(__package__) / "plain" / "questions.toml").read_text(encoding="utf-8"))
    for database in held["database"]:
        for n, question in enumerate(database["question"], 1):
            yield Asked(f"{database['name']}-{n}", database["schema"], question["text"], question["sql"])


def run(
    model: str | Provider,
    routes: Sequence[str],
    *,
    only: Sequence[str] = (),
    done: Sequence[Row] = (),
    options: Mapping[str, Any] = MappingProxyType({}),
    tell: Callable[[Row], None] = lambda row: None,
) -> list[Row]:
    """Asks each question by each route, the routes of one question one after the other.

    Args:
        only: ids of questions; none: all.
        done: rows of an earlier run that are not made again.
        tell: gets each row as it is made.
    """
    known = {(row.route, row.question) for row in done}
    made = []
    for asked in questions():
        for route in routes:
            if (only and asked.id not in only) or (route, asked.id) in known:
                continue
            made.append(_row(asked, route, model, options))
            tell(made[-1])
    return made


def _row(asked: Asked, route: str, model: str | Provider, options: Mapping[str, Any]) -> Row:
    database = duckdb.connect()
    database.execute(asked.schema)
    wanted = key_of(database.sql(asked.sql).to_arrow_table())
    try:
        with uql.attach(database, model=model, ledger=":memory:") as connection:
            answer = connection.ask(asked.text, **ROUTES[route], **options)
    except UQLError as error:
        return Row(route, asked.id, "refused", 0.0, 0, "", error.message)
    finally:
        database.close()
    return Row(
        route,
        asked.id,
        verdict(answer, wanted),
        answer.seconds,
        answer.cost.calls,
        answer.uql,
        answer.text or answer.cannot,
        tuple(answer.notes),
    )


def verdict(answer: Answer, wanted: object) -> str:
    """ "right", "wrong", "unsure" or "refused", by the results that the answer rests on."""
    if not answer.answered:
        return "refused"
    tables = [answer.results[name].table for name in answer.rests_on if name in answer.results]
    if any(table is not None and key_of(table) == wanted for table in tables):
        return "right"
    return "unsure" if answer.notes or answer.readings else "wrong"


def report(rows: Sequence[Row]) -> str:
    """A line a route: how many of each verdict, and the median of the seconds."""
    lines = [
        "| route | questions | right | unsure or refused | silently wrong | median s |",
        "|---|---|---|---|---|---|",
    ]
    for route in dict.fromkeys(row.route for row in rows):
        mine = [row for row in rows if row.route == route]
        count = {name: sum(row.verdict == name for row in mine) for name in ("right", "unsure", "refused", "wrong")}
        median = statistics.median(row.seconds for row in mine)
        unsure = f"{count['unsure']} + {count['refused']}"
        lines.append(f"| {route} | {len(mine)} | {count['right']} | {unsure} | {count['wrong']} | {median:.1f} |")
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
