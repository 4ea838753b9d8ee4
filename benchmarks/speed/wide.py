"""What a table of 10,000 columns and one row costs: `python -m uql.benchmarks.speed.wide` prints CPU seconds, the least of three.

Each statement is the first one on its table, asked again, and beside it what DuckDB alone takes to copy the row and to read it.
Wanted: at most 3 s on an idle machine. CPU time grows where other processes wait for memory: compare it with the last line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import uql
from uql.benchmarks.gate.instant import Instant
from uql.llm.providers.base import Answer, Reply, Request

COLUMNS = 10_000
REPEATS = 3
STATEMENTS = (
    'SELECT * FROM wide WHERE "the {body} is nice"',
    'SELECT id FROM wide WHERE "the {body} is nice"',
    'SELECT COUNT(*) AS n FROM wide WHERE "the {body} is nice"',
    'EXPLAIN SELECT * FROM wide WHERE "the {body} is nice"',
)


class Yes(Instant):
    """Answers yes to a text whose value stands in its hole."""

    async def answer(self, request: Request) -> Reply:
        return Reply(tuple(Answer(True, 1.0) for _ in request.questions), 1, 1)


def connection() -> uql.Connection:
    """One with the table, which it has not looked at."""
    con = uql.connect(model=Yes(), ledger=":memory:")
    more = (f"{n} AS c{n}" if n % 2 else f"'value {n}' AS c{n}" for n in range(COLUMNS - 2))
    con.execute(f"CREATE TABLE wide AS SELECT 1 AS id, 'a text' AS body, {', '.join(more)}")
    return con


def cpu_s(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def measured(statement: str) -> tuple[float, float]:
    """CPU seconds of a statement: the first on its table, and again."""
    with connection() as con:
        first, again = (cpu_s(lambda: con.uql(statement).fetchall()) for _ in range(2))
        return first, again


def duckdb_s() -> float:
    """CPU seconds that DuckDB takes to copy the row and to read it."""
    with connection() as con:
        duck = con.session.catalog.cursor

        def plain() -> None:
            duck.execute("CREATE TEMP TABLE copied AS SELECT * FROM wide")
            duck.sql("SELECT * FROM copied").to_arrow_table()

        return cpu_s(plain)


def lines(statements: Sequence[str] = STATEMENTS, repeats: int = REPEATS) -> Iterator[str]:
    measured(STATEMENTS[1])  # what is loaded when first used
    for statement in statements:
        first, again = zip(*(measured(statement) for _ in range(repeats)), strict=True)
        yield f"{statement:60} {min(first):6.2f} s, again {min(again):.2f} s"
    yield f"{'DuckDB: copy and read':60} {min(duckdb_s() for _ in range(repeats)):6.2f} s"


def main() -> None:
    for line in lines():
        print(line, flush=True)


if __name__ == "__main__":
    main()
