"""Calls of filters against the written order and the best fixed order in hindsight: seeded synthetic conjunctions and DNFs.

    python -m uql.benchmarks.optimizer.conjunctions [--queries 50] [--rows 2000] [--kind and|dnf|both] [--out done.jsonl]

Each query has 2 to 5 semantic terms of selectivity 0.01 to 0.9, some of them correlated, each over a column of its own, so that
every term is a request of its own. The model answers in this process from a table of truths; the ledger keeps nothing. The best
fixed order is found in hindsight by trying every order on all rows. "Ratio" is calls made ÷ calls of that order. With --out each
query is written down when it is done, and left out the next time.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Awaitable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import uql
from uql.benchmarks.runner import lines
from uql.compiler.formula import FALSE, TRUE, Formula, Masks
from uql.compiler.orders import cost_of
from uql.compiler.physical import Stage
from uql.compiler.syntax import Binary, Column, Expr
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.llm.providers.base import Answer, Capabilities, Limits, Reply, Request
from uql.llm.questions import Question
from uql.operators import CONDITION

Truths = NDArray[np.bool_]  # (terms, rows)


@dataclass(frozen=True)
class Query:
    """A filter of `terms` terms; `groups` are the conjunctions of its DNF."""

    groups: tuple[tuple[int, ...], ...]
    truths: Truths

    @property
    def where(self) -> str:
        return " OR ".join("(" + " AND ".join(f'"term {i}" USING (c{i})' for i in g) + ")" for g in self.groups)

    @property
    def formula(self) -> Formula:
        terms = [_term(i) for i in range(len(self.truths))]
        parts = [_joined("AND", [terms[i] for i in group]) for group in self.groups]
        return Formula.of(_joined("OR", parts))


def _term(i: int) -> Virtual:
    return Virtual(VirtualColumn(i, f"term {i}", CONDITION, "BOOLEAN", (Column("t", f"c{i}"),)))


def _joined(op: str, parts: list[Expr]) -> Expr:
    whole = parts[0]
    for part in parts[1:]:
        whole = Binary(op, whole, part)
    return whole


class Table:
    """A model in this process: the row's cell "c2 17" and the text "term 2" give truths[2, 17]."""

    name, is_local, price = "table", True, None
    limits = Limits(concurrency=256)
    capabilities = Capabilities(probabilities=True)

    def __init__(self, truths: Truths) -> None:
        self.truths = truths

    def version(self, question: Question) -> str:
        return "1"

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        return 1, 1

    def answer(self, request: Request) -> Awaitable[Reply]:
        return self._answer(request)

    async def _answer(self, request: Request) -> Reply:
        row = int(str(request.row.cells[0].value).split()[1])
        yes = [bool(self.truths[int(q.text.split()[1]), row]) for q in request.questions]
        return Reply(tuple(Answer(y, float(y)) for y in yes), 1, 1)

    async def aclose(self) -> None:
        pass


def made(seed: int, rows: int, kind: str) -> Query:
    """A query and its truths, from a seed."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    rates = np.exp(rng.uniform(np.log(0.01), np.log(0.9), k))
    correlation = rng.choice([0.0, 0.0, 0.5, 0.8])
    shared = rng.standard_normal(rows)
    latent = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * rng.standard_normal((k, rows))
    truths = latent < np.quantile(latent, rates, axis=1).diagonal()[:, None]
    groups: tuple[tuple[int, ...], ...] = (tuple(range(k)),)
    if kind == "dnf" and k > 2:
        cut = int(rng.integers(1, k))
        groups = (tuple(range(cut)), tuple(range(cut, k)))
    return Query(groups, truths)


def run(query: Query, disabled: str) -> tuple[int, list[int]]:
    """Calls made, and the ids that pass."""
    k, rows = query.truths.shape
    with uql.connect(model=Table(query.truths), ledger=":memory:", budget="all", disabled_rules=disabled) as con:
        columns = ", ".join(f"'c{j} ' || i AS c{j}" for j in range(k))
        con.sql(f"SELECT i AS id, {columns} FROM range({rows}) r(i)").create("t")
        result = con.uql(f"SELECT id FROM t WHERE {query.where} ORDER BY id")
        ids = [row[0] for row in result.fetchall()]
        return result.cost.calls, ids


def hindsight(query: Query) -> tuple[float, float]:
    """Calls of the written order and of the best fixed order."""
    formula = query.formula
    masks: Masks = np.where(query.truths, TRUE, FALSE).astype(np.uint8)
    stages = [Stage(leaf.columns) for leaf in formula.leaves]
    n = query.truths.shape[1]
    costs = [
        n * cost_of(formula, stages, masks, [1.0] * len(stages), order)
        for order in itertools.permutations(range(len(stages)))
    ]
    return costs[0], min(costs)


@dataclass(frozen=True, slots=True)
class Measured:
    """Calls of one query."""

    kind: str
    seed: int
    rows: int
    made: int
    written: float  # of the written order
    best: float  # of the best fixed order
    right: bool  # the rows are those of the truths


def measured(kind: str, seed: int, rows: int) -> Measured:
    query = made(seed, rows, kind)
    calls, ids = run(query, "")
    written, best = hindsight(query)
    passing = np.flatnonzero(np.logical_or.reduce([query.truths[list(g)].all(axis=0) for g in query.groups]))
    return Measured(kind, seed, rows, calls, written, best, ids == passing.tolist())


def read(path: Path | None) -> list[Measured]:
    """What earlier runs measured."""
    return [Measured(**held) for _, held in lines.read(path)] if path is not None else []


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--kind", choices=["and", "dnf", "both"], default="both")
    parser.add_argument("--out", type=Path, help="a file of lines of JSON, one a query; those in it are not run again")
    given = parser.parse_args()
    kinds = ["and", "dnf"] if given.kind == "both" else [given.kind]
    done = {(m.kind, m.seed, m.rows): m for m in read(given.out)}
    print("kind  queries   rows  made/best median   p95   worst  made/written median   p95   worst  same answers")
    for kind in kinds:
        found = []
        for seed in range(given.queries):
            one = done.get((kind, seed, given.rows)) or measured(kind, seed, given.rows)
            if given.out is not None and (kind, seed, given.rows) not in done:
                lines.append(given.out, asdict(one))
            found.append(one)
        b, w = np.array([m.made / m.best for m in found]), np.array([m.made / m.written for m in found])
        same = sum(m.right for m in found)
        print(
            f"{kind:4}  {given.queries:7}  {given.rows:5}  {np.median(b):16.3f}  {np.quantile(b, 0.95):5.3f}  {b.max():6.3f}"
            f"  {np.median(w):19.3f}  {np.quantile(w, 0.95):5.3f}  {w.max():6.3f}  {same:5}/{given.queries}",
            flush=True,
        )


if __name__ == "__main__":
    main()
