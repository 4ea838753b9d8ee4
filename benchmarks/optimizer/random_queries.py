"""Random queries, optimized and straight: the same exact answers, and what the optimizer did.

    python -m uql.benchmarks.optimizer.random_queries [--queries 1000] [--out done.jsonl]

A query is drawn from a seed (`random_texts`). "Straight" has every rule, order and fusion switched off: each question is a request of
its own, in the order it was written, to the large model. With --out each query is written down when it is done, and not run again.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import uql
from uql.benchmarks.optimizer.hashed import Hashed
from uql.benchmarks.optimizer.random_texts import RATES, TABLES, Case, case
from uql.benchmarks.runner import lines
from uql.compiler.binder import bind
from uql.compiler.bound import BoundQuery, BoundSelect, BoundUnion
from uql.compiler.logical import build
from uql.compiler.parser import parse
from uql.compiler.rules import NAMES, RULES, _everywhere
from uql.compiler.subqueries import derived, expressions, in_expressions, is_semantic_query
from uql.compiler.syntax import Query
from uql.llm.providers.base import Price

WHILE_RUNNING = ("order_while_running",)  # no plan shows it: a run without it makes other calls
CHEAP = Price(0.02, 0.08)  # of the small model of a cascade, per million tokens


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


class Small(Hashed):
    """The small model of a cascade, of one mind with the large one."""

    name = "small"


def connected(found: Case, disabled: tuple[str, ...] = (), **settings: Any) -> uql.Connection:
    off = ",".join(name for name in (*disabled, settings.pop("disabled_rules", "")) if name)
    large = Hashed(RATES)
    model: dict[str, Any] = {"models": [Small(RATES, CHEAP), large]} if found.cascade else {"model": large}
    con = uql.connect(**model, ledger=":memory:", budget="all", disabled_rules=off, **settings)
    for statement in TABLES:
        con.session.duck.execute(statement)
    if found.first:
        con.uql(found.first).fetchall()
    return con


def compared(seed: int, *, count_fired: bool = True) -> One:
    """Runs the query of a seed both ways, with nothing known from others.

    `count_fired`: plan it once more without every order and fusion, to see which of them changed it.
    """
    found = case(seed)
    with connected(found, **found.settings) as con, connected(found, NAMES) as plain:
        best, straight = con.uql(found.text), plain.uql(found.text)
        other = _steps(best.explain()) != _steps(straight.explain())
        fired = [*_rules(con, found.text), *_choices(con, found, best.explain())] if count_fired else []
        rows = best.fetchall()
        same = rows == straight.fetchall()
        if count_fired:
            for name in _while_running(found, best.explain(), best.cost.calls):
                fired.append(name)
        return One(seed, same, other, best.cost.calls, straight.cost.calls, fired)


def compare(queries: int, first: int = 0, *, looked_at: int | None = None, out: Path | None = None) -> Found:
    """The queries of these seeds; those that `out` holds are not run again.

    `looked_at`: how many of them are planned, and some run, once more without every order and fusion; None: all.
    """
    known = [One(**held) for _, held in lines.read(out)] if out is not None else []
    done = {one.seed: one for one in known}
    for seed in range(first, first + queries):
        if seed not in done:
            done[seed] = compared(seed, count_fired=looked_at is None or seed < first + looked_at)
            if out is not None:
                lines.append(out, asdict(done[seed]))
    return Found.of(done[seed] for seed in range(first, first + queries))


def _steps(explained: str) -> str:
    """The tree of a plan, without what follows it."""
    return explained.partition("\n\n")[0]


def _rules(con: uql.Connection, text: str) -> list[str]:
    """The rules that change the logical plan of a block, the outermost or one inside it."""
    parsed = parse(text)
    assert isinstance(parsed, Query)
    fired = []
    for block in _selects(bind(parsed, con.session.catalog, text=text).query):
        plan = build(block)
        for rule in RULES:
            after = _everywhere(plan, rule)
            if after != plan:
                fired.append(rule.__name__)
            plan = after
    return list(dict.fromkeys(fired))


def _selects(query: BoundQuery) -> Iterator[BoundSelect]:
    """The SELECTs of a query with quoted texts in them."""
    if not is_semantic_query(query):
        return
    if isinstance(query, BoundUnion):
        yield from _selects(query.left)
        yield from _selects(query.right)
    elif isinstance(query, BoundSelect):
        yield query
        for below in (p.query for p in derived(query.source)):
            yield from _selects(below)
        for bound in in_expressions(*expressions(query)):
            yield from _selects(bound.query)


def _choices(con: uql.Connection, found: Case, explained: str) -> list[str]:
    """The orders and fusions without which the plan, or for a cascade its models, are others."""
    fired = []
    always = found.settings.get("disabled_rules", "")
    for name in NAMES:
        if name in {rule.__name__ for rule in RULES} or name in (*WHILE_RUNNING, always):
            continue
        if name == "cascade":
            if found.cascade and "where it is not sure" in explained:
                fired.append(name)
            continue
        with con.settings(disabled_rules=",".join(n for n in (name, always) if n)):
            if _steps(con.uql(found.text).explain()) != _steps(explained):
                fired.append(name)
    return fired


def _while_running(found: Case, explained: str, calls: int) -> Iterator[str]:
    """What a run without it makes more or fewer calls of; the rows are looked at by `compared` alone."""
    if "asked second" not in explained:
        return
    for name in WHILE_RUNNING:
        with connected(found, (name,), **found.settings) as con:
            without = con.uql(found.text)
            without.fetchall()
            if without.cost.calls != calls:
                yield name


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first query")
    parser.add_argument("--out", type=Path, help="a file of lines of JSON, one a query; those in it are not run again")
    parser.add_argument(
        "--looked-at", type=int, default=250, help="the first so many are looked at for what changed them"
    )
    given = parser.parse_args()
    found = compare(given.queries, given.first, looked_at=given.looked_at, out=given.out)
    print(f"queries                      {found.queries:8,}")
    print(f"the same answer              {found.same:8,}")
    print(f"another plan than straight   {found.other_plan:8,}")
    print(f"calls, optimized             {found.calls:8,}")
    print(f"calls, straight              {found.straight_calls:8,}")
    print(
        f"changed the plan (or, while running, the calls) of so many of the first {min(given.looked_at, given.queries)}:"
    )
    for name in NAMES:
        print(f"  {name:26} {found.fired[name]:8,}")
    if found.wrong:
        print(f"seeds with another answer: {found.wrong}")


if __name__ == "__main__":
    main()
