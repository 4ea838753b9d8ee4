"""Which operator a question is for, on MultiModalQA and M2QA-Bench, whose evidence is not there: routers against the modalities needed.

A choice is right when the question needs its modality. The majority is what StatRouter would say without operators; MLRouter's network is
trained on the one half of the questions and tried on the other.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from uql.benchmarks.nl.suites import SUITES, Asked
from uql.features.embedder import Embedder
from uql.nl.plan.dag import Operator
from uql.nl.routers.ml import MLRouter
from uql.nl.routers.traces import Trace

NAMES = ("table", "text", "image")


@dataclass(frozen=True, slots=True)
class Routed:
    """A suite routed: the share of right choices of each way, over the questions tried, and how many those are."""

    suite: str
    majority: float
    network: float
    tried: int
    trained: int
    loss: float


def run(suite: str, shared: Path, embedder: Embedder, *, seed: int = 0) -> Routed:
    """Trains on a random half of the questions and tries the other."""
    questions = [q for q in SUITES[suite].questions(shared) if set(q.modalities) & set(NAMES)]
    random.Random(seed).shuffle(questions)
    half = len(questions) // 2
    train, held = questions[:half], questions[half:]
    router = MLRouter.fit(_traces(train), embedder, seed=seed)
    counted = Counter(name for q in train for name in q.modalities)
    most = max(NAMES, key=lambda name: counted[name])
    chosen = [router.rank(q.words, Operator.TEXT, NAMES, "text")[0] for q in held]
    return Routed(
        suite,
        sum(most in q.modalities for q in held) / len(held),
        sum(name in q.modalities for name, q in zip(chosen, held, strict=True)) / len(held),
        len(held),
        router.trained_on,
        router.loss,
    )


def _traces(questions: Sequence[Asked]) -> list[Trace]:
    """A trace for each modality: of quality 1 where the question needs it, less where it needs others too."""
    made = []
    for q in questions:
        for name in NAMES:
            score = 1.0 / len(q.modalities) if name in q.modalities else 0.0
            made.append(Trace(q.words, Operator.TEXT.value, "text", name, score, score, score, score))
    return made


def report(rows: Sequence[Routed]) -> str:
    """One line a suite."""
    lines = [f"{'suite':<14} {'questions':>9} {'majority':>9} {'MLRouter':>9} {'loss':>7}"]
    lines += [f"{r.suite:<14} {r.tried:>9,} {r.majority:>9.1%} {r.network:>9.1%} {r.loss:>7.3f}" for r in rows]
    return "\n".join(lines)
