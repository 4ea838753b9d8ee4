"""Random queries, optimized and straight: the same exact answers, and what the optimizer did.

    python -m uql.benchmarks.optimizer.random_queries [--queries 1000] [--out done.jsonl]

A query is drawn from a seed: filters of AND, OR, NOT over concrete and semantic terms, values, groups, sub-queries, unions, joins, LIMIT.
"Straight" has every rule, order and fusion switched off: each question is a request of its own, in the order it was written. Every
fifth query may put several rows into one request. With --out each query is written down when it is done, and not run again.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

import uql
from uql.benchmarks.optimizer.hashed import Hashed
from uql.compiler.binder import bind
from uql.compiler.logical import build, tree
from uql.compiler.parser import parse
from uql.compiler.rules import NAMES, RULES, _everywhere
from uql.compiler.subqueries import is_semantic_query
from uql.compiler.syntax import Query

ROWS = 160
TABLES = (
    f"""CREATE TABLE reviews AS SELECT i AS id, ['Alien', 'Brazil', 'Casablanca'][1 + i % 3] AS film, 1 + i % 5 AS stars,
    CASE WHEN i % 17 <> 6 THEN 'Number ' || i || ': a film that I shall not forget so soon' END AS text,
    'Seen in row ' || i || ', with some noise from behind us' AS remark FROM range({ROWS}) t(i)""",
    """CREATE TABLE films AS SELECT * FROM (VALUES ('Alien', 1979, 'A crew meets a creature in deep space'),
    ('Brazil', 1985, 'A clerk dreams of flying from a state of files')) t(title, year, plot)""",
)
CONCRETE = (
    "stars > 2",
    "stars = 1",
    "film = 'Alien'",
    "id < 100",
    "text IS NOT NULL",
    "NULL",
    "1 = 1",
    "film IN ('Alien', 'Brazil')",
)
SEMANTIC = (
    '"it is rare" USING (text)', '"it is common" USING (text)', '"it is even" USING (text)', '"it is loud" USING (remark)',
    '"it is rare and loud" USING (remark)', '"the number" USING (text) > 4', "\"the kind\" USING (text) IN ('a', 'b')",
)  # fmt: skip
VALUES = (
    '"the name" USING (text) AS v',
    '"the number" USING (text)::INTEGER AS w',
    '("it is even" USING (text))::BOOLEAN AS e',
)
RATES = {"rare": 0.1, "common": 0.9}
SHARING, ROWS_TOGETHER = 5, 4  # one query in so many may put rows together, and how many
WHILE_RUNNING = (
    "order_while_running",
    "order_by_embeddings",
    "cascade",
)  # no plan shows the first two; the last needs two models


def condition(rng: np.random.Generator, leaves: int) -> str:
    """A WHERE of so many leaves."""
    if leaves == 1:
        found = str(rng.choice(CONCRETE if rng.random() < 0.3 else SEMANTIC))
        return f"NOT ({found})" if rng.random() < 0.15 else found
    cut = int(rng.integers(1, leaves))
    return f"({condition(rng, cut)} {rng.choice(['AND', 'OR'])} {condition(rng, leaves - cut)})"


def query(seed: int) -> str:
    """The query of a seed; its answer has one order."""
    rng = np.random.default_rng(seed)
    where = f" WHERE {condition(rng, int(rng.integers(1, 6)))}"
    values = ", ".join(
        ["id", "film", "stars", *(str(v) for v in rng.choice(VALUES, int(rng.integers(0, 4)), replace=False))]
    )
    limit = str(rng.choice(["", "", " LIMIT 4", " LIMIT 3 OFFSET 2"]))
    base = f"SELECT {values} FROM reviews{where}"
    match int(rng.integers(0, 9)):
        case 0 | 1 | 2:
            return f"{base} ORDER BY id{limit}"
        case 3:
            outside = rng.choice(["d.stars > 2", "d.film = 'Alien' AND d.id < 90", "d.id % 2 = 0"])
            return f"SELECT id FROM ({base}) d WHERE {outside} ORDER BY id{limit}"
        case 4:
            kind = rng.choice(["JOIN", "LEFT JOIN"])
            return f"SELECT d.id, f.year FROM ({base}) d {kind} films f ON d.film = f.title WHERE f.year > 1980 ORDER BY d.id{limit}"
        case 5:
            return f"SELECT id FROM ({base} UNION ALL SELECT {values} FROM reviews WHERE {SEMANTIC[0]}) d WHERE stars > 3 ORDER BY id"
        case 6:
            return f"SELECT id FROM ({base} ORDER BY id) d LIMIT 5"
        case 7:
            having = rng.choice(["", " HAVING COUNT(*) > 3", " HAVING film > 'Alien' AND COUNT(*) > 1"])
            said = rng.choice(["", ', "what is said" AS said'])
            grouped = f"FROM reviews{where} GROUP BY film{having} ORDER BY n DESC, film{limit}"
            return f"SELECT film, COUNT(*) AS n, AVG(stars) AS m{said} {grouped}"
    total = rng.choice(["COUNT(*)", 'SUM("the number" USING (text))'])
    return f'SELECT g, {total} AS n FROM reviews{where} GROUP BY "the topic" USING (text) AS g ORDER BY g'


@dataclass(frozen=True, slots=True)
class One:
    """What was seen of the query of a seed."""

    seed: int
    same: bool  # answer
    other_plan: bool  # than straight
    calls: int
    straight_calls: int
    fired: list[str]  # what changed its plan


@dataclass(slots=True)
class Found:
    """What was seen over all queries."""

    queries: int = 0
    same: int = 0
    other_plan: int = 0
    calls: int = 0
    straight_calls: int = 0
    fired: Counter[str] = field(default_factory=Counter)
    wrong: list[int] = field(default_factory=list)  # seeds

    @classmethod
    def of(cls, ones: Iterable[One]) -> Found:
        found = cls()
        for one in ones:
            found.queries += 1
            found.same += one.same
            found.other_plan += one.other_plan
            found.calls += one.calls
            found.straight_calls += one.straight_calls
            found.fired.update(one.fired)
            if not one.same:
                found.wrong.append(one.seed)
        return found


def connected(disabled: tuple[str, ...] = (), rows: int = 1) -> uql.Connection:
    con = uql.connect(
        model=Hashed(RATES), ledger=":memory:", budget="all", disabled_rules=",".join(disabled), rows_per_request=rows
    )
    for statement in TABLES:
        con._duck.execute(statement)
    return con


def compared(seed: int, *, count_fired: bool = True) -> One:
    """Runs the query of a seed both ways, with nothing known from others.

    `count_fired`: plan it once more without every order and fusion, to see which of them changed it.
    """
    text = query(seed)
    rows = ROWS_TOGETHER if seed % SHARING == 0 else 1
    with connected(rows=rows) as con, connected(NAMES) as plain:
        best, straight = con.uql(text), plain.uql(text)
        other = _steps(best.explain()) != _steps(straight.explain())
        fired = [*_rules(con, text), *_choices(con, text, best.explain())] if count_fired else []
        same = best.fetchall() == straight.fetchall()
        return One(seed, same, other, best.cost.calls, straight.cost.calls, fired)


def compare(queries: int, first: int = 0, *, count_fired: bool = True, out: Path | None = None) -> Found:
    """The queries of these seeds; those that `out` holds are not run again."""
    known = [One(**json.loads(line)) for line in out.read_text().splitlines()] if out and out.exists() else []
    done = {one.seed: one for one in known}
    for seed in range(first, first + queries):
        if seed not in done:
            done[seed] = compared(seed, count_fired=count_fired)
            if out is not None:
                with out.open("a") as file:
                    file.write(json.dumps(asdict(done[seed])) + "\n")
    return Found.of(done[seed] for seed in range(first, first + queries))


def _steps(explained: str) -> str:
    """The tree of a plan, without what follows it."""
    return explained.partition("\n\n")[0]


def _rules(con: uql.Connection, text: str) -> list[str]:
    """The rules that change the logical plan of the outermost block."""
    parsed = parse(text)
    assert isinstance(parsed, Query)
    bound = bind(parsed, con._catalog, text=text).query
    if not is_semantic_query(bound):
        return []
    plan, fired = build(bound), []
    for rule in RULES:
        after = _everywhere(plan, rule)
        if list(tree(after)) != list(tree(plan)):
            fired.append(rule.__name__)
        plan = after
    return fired


def _choices(con: uql.Connection, text: str, explained: str) -> list[str]:
    """The orders and fusions without which the plan is another one."""
    fired = []
    for name in NAMES:
        if name in {rule.__name__ for rule in RULES} or name in WHILE_RUNNING:
            continue
        with con.settings(disabled_rules=name):
            if _steps(con.uql(text).explain()) != _steps(explained):
                fired.append(name)
    return fired


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first query")
    parser.add_argument("--out", type=Path, help="a file of lines of JSON, one a query; those in it are not run again")
    given = parser.parse_args()
    found = compare(given.queries, given.first, out=given.out)
    print(f"queries                      {found.queries:8,}")
    print(f"the same answer              {found.same:8,}")
    print(f"another plan than straight   {found.other_plan:8,}")
    print(f"calls, optimized             {found.calls:8,}")
    print(f"calls, straight              {found.straight_calls:8,}")
    print("changed the plan of so many queries:")
    for name in NAMES:
        if name not in WHILE_RUNNING:
            print(f"  {name:26} {found.fired[name]:8,}")
    if found.wrong:
        print(f"seeds with another answer: {found.wrong}")


if __name__ == "__main__":
    main()
