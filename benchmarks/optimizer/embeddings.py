"""Calls of filters ordered row by row by embeddings, beside one order for all rows: labelled texts, the labels as oracle.

    python -m uql.benchmarks.optimizer.embeddings [--rows 3000] [--queries 40]

A query joins two or three conditions on the texts of one data set by AND or OR, some of them negated, each condition a request of its
own. Embeddings are there from an earlier query of the session. The model answers in this process; the ledger keeps nothing. "Hashed"
are queries whose conditions have nothing to do with the texts: there is nothing to be foreseen, and nothing may be lost.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count

import numpy as np
from numpy.typing import NDArray

import uql
from uql.benchmarks.datasets import labelled
from uql.llm.providers.base import Answer, Capabilities, Limits, Reply, Request
from uql.llm.questions import Question, Write

APART = "predicates_together"


class Labels:
    """A model in this process: a condition's text and a row's text give its label."""

    is_local, price = True, None
    limits = Limits(concurrency=256)
    capabilities = Capabilities(probabilities=True)

    def __init__(self, name: str, truths: dict[str, dict[str, bool]]) -> None:
        self.name, self.truths = name, truths

    def version(self, question: Question) -> str:
        return "1"

    def tokens_at_most(self, request: Request) -> tuple[int, int]:
        return 1, 1

    async def answer(self, request: Request) -> Reply:
        text = str(request.row.cells[0].value) if request.row.cells else ""
        answers = []
        for question in request.questions:
            if isinstance(question, Write):
                answers.append(Answer({"yes": [], "no": []}))
                continue
            yes = self.truths[question.text][text]
            answers.append(Answer(yes, float(yes)))
        return Reply(tuple(answers), 1, 1)

    async def aclose(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Data:
    """Some distinct texts of a data set, and what its predicates say of them."""

    name: str
    texts: list[str]
    truths: dict[str, NDArray[np.bool_]]


def loaded(rows: int) -> list[Data]:
    """Every data set with two predicates or more; a seeded sample of its distinct texts."""
    by_data: dict[str, list[labelled.Predicate]] = defaultdict(list)
    for predicate in labelled.predicates():
        by_data[predicate.data].append(predicate)
    found = []
    for name, predicates in sorted(by_data.items()):
        if len(predicates) < 2:
            continue
        texts = labelled.texts(name)
        first = {text: i for i, text in reversed(list(enumerate(texts)))}
        places = np.sort(np.array(list(first.values())))
        rng = np.random.default_rng(0)
        places = np.sort(rng.choice(places, min(rows, len(places)), replace=False))
        truths = {p.condition: p.truth()[places] > 0.5 for p in predicates}
        found.append(Data(name, [texts[i] for i in places], truths))
    return found


def hashed(data: Data) -> Data:
    """The same texts under conditions of the same rates that have nothing to do with them."""

    def drawn(condition: str, rate: float) -> NDArray[np.bool_]:
        codes = (blake2b(f"{condition} {text}".encode(), digest_size=4).digest() for text in data.texts)
        return np.array([int.from_bytes(code, "big") / 2**32 < rate for code in codes])

    return Data(f"{data.name}, hashed", data.texts, {c: drawn(c, float(t.mean())) for c, t in data.truths.items()})


def where(data: Data, rng: np.random.Generator) -> str:
    """A condition of two or three terms."""
    k = min(len(data.truths), int(rng.integers(2, 4)))
    terms = [
        f'{"NOT " if rng.random() < 0.3 else ""}"{text}"'
        for text in rng.choice(sorted(data.truths), k, replace=False).tolist()
    ]
    if k == 3 and rng.random() < 0.5:
        return f"({terms[0]} AND {terms[1]}) OR {terms[2]}"
    return (" AND " if rng.random() < 0.6 else " OR ").join(terms)


def calls(data: Data, condition: str, disabled: str, name: str) -> tuple[int, list[int]]:
    """Calls that a filter made, and the ids that pass."""
    truths = {c: dict(zip(data.texts, t.tolist(), strict=True)) for c, t in data.truths.items()}
    truths["it is the first"] = {text: i == 0 for i, text in enumerate(data.texts)}
    import pyarrow as pa

    table = pa.table({"id": list(range(len(data.texts))), "text": data.texts})
    off = ",".join((APART, *([disabled] if disabled else [])))
    with uql.connect(model=Labels(name, truths), ledger=":memory:", disabled_rules=off) as con:
        con.register("t", table)
        con.uql('SELECT COUNT(*) FROM t WHERE "it is the first" WITH (budget = 40)').fetchall()  # makes the embeddings
        result = con.uql(f"SELECT id FROM t WHERE {condition} ORDER BY id WITH (budget = 'all')")
        ids = [row[0] for row in result.fetchall()]
        return result.cost.calls, ids


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--queries", type=int, default=40, help="in all")
    given = parser.parse_args()
    sets = loaded(given.rows)
    number = count()
    print("conditions                queries   calls by embeddings ÷ by one order: mean   best   worst   same rows")
    for kind in ("labels", "hashed"):
        ratios, same = [], 0
        for seed in range(given.queries):
            data = sets[seed % len(sets)]
            data = hashed(data) if kind == "hashed" else data
            condition = where(data, np.random.default_rng(seed))
            by_rows, found = calls(data, condition, "", f"m{next(number)}")
            by_one, wanted = calls(data, condition, "order_by_embeddings", f"m{next(number)}")
            ratios.append(by_rows / by_one)
            same += found == wanted
        r = np.array(ratios)
        print(
            f"{kind:24} {len(r):8} {r.mean():42.3f}  {r.min():5.3f}  {r.max():6.3f}   {same:4} of {len(r)}", flush=True
        )


if __name__ == "__main__":
    main()
