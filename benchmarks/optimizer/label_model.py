"""A model in this process that answers by the labels of data sets, and their texts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uql.benchmarks.datasets import labelled
from uql.llm.providers.base import Answer, Capabilities, Limits, Reply, Request
from uql.llm.questions import Question, Write


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
