"""Retrieval: F1 as in UQE's table 2, calls to ten matches, unverified rows, recall guarantees, and the speed of a
step."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uql.benchmarks.datasets.labelled import Predicate, predicates
from uql.benchmarks.sampling.aggregates import HARD
from uql.benchmarks.sampling.worlds import told, world
from uql.sampling.methods import AGGREGATE
from uql.sampling.recall import RecallSearch
from uql.sampling.retrieval import LearnedSearch
from uql.sampling.unverified import UnverifiedSearch
from uql.sampling.uqe import UqeSearch

QUICK_TO_TEN = ("air_cancel", "bk_lost", "sgd_alarm")
MANY = ("air_book", "abcd_acct", "air_noflight", "abcd_item")


@dataclass(frozen=True, slots=True)
class RetrievalRow:
    """A search over one predicate: mean F1 (precision 1, recall against min(B, matches)), calls until ten are known."""

    predicate: str
    budget: int
    seeds: int
    matches: int
    share: float
    uqe: float
    ours: float
    spread: float
    uqe_to_ten: float
    ours_to_ten: float


def retrieval_rows(
    seeds: int, *, budget: int = 256, examples: bool = True, chosen: Sequence[Predicate] | None = None
) -> Iterator[RetrievalRow]:
    """A row for each predicate, the 17 of the targets where none are chosen."""
    for predicate in predicates()[:HARD] if chosen is None else chosen:
        w = world(predicate, examples)
        total = float(w.truth.sum())
        scores: dict[str, list[float]] = {"uqe": [], "ours": []}
        ten: dict[str, list[int]] = {"uqe": [], "ours": []}
        for seed in range(seeds):
            kept: dict[str, Any] = {"prior": w.prior, "has_examples": examples}
            searches = {
                "uqe": UqeSearch(w.n, budget, rng=np.random.default_rng(seed), features=w.matrix),
                "ours": LearnedSearch(w.n, budget, rng=np.random.default_rng(seed), features=w.matrix, **kept),
            }
            for name, search in searches.items():
                reached = budget
                while len(asked := search.propose(64)):
                    search.tell(asked, w.truth[asked])
                    if reached == budget and len(search.matches()) >= 10:
                        reached = search.calls
                recall = len(search.matches()) / min(budget, total)
                scores[name].append(2 * recall / (1 + recall))
                ten[name].append(reached)
        yield RetrievalRow(
            predicate.name,
            budget,
            seeds,
            int(total),
            total / w.n,
            float(np.mean(scores["uqe"])),
            float(np.mean(scores["ours"])),
            float(np.std(scores["ours"])),
            float(np.mean(ten["uqe"])),
            float(np.mean(ten["ours"])),
        )


def retrieval_table(chosen: Sequence[Predicate], budget: int, seeds: int, examples: bool) -> None:
    """Print F1 of verified rows."""
    print(f"\nRetrieval, B = {budget}, {seeds} seeds, example rows {'on' if examples else 'off'}")
    print(f"{'predicate':<14}{'matches':>9}{'UQE':>8}{'ours':>8}{'sd':>7}{'calls to 10: UQE':>18}{'ours':>7}")
    rows = []
    for row in retrieval_rows(seeds, budget=budget, examples=examples, chosen=chosen):
        rows.append(row)
        print(
            f"{row.predicate:<14}{row.matches:>9}{row.uqe:>8.3f}{row.ours:>8.3f}{row.spread:>7.3f}"
            f"{row.uqe_to_ten:>18.0f}{row.ours_to_ten:>7.1f}",
            flush=True,
        )
    print(
        f"mean F1: UQE {np.mean([r.uqe for r in rows]):.3f}, ours {np.mean([r.ours for r in rows]):.3f} "
        f"(at least {'0.895' if examples else '0.86'})"
    )
    rare = [row for row in rows if row.share < 0.02]
    if rare:
        print(
            f"below 2 %: UQE {np.mean([r.uqe for r in rare]):.3f}, ours {np.mean([r.ours for r in rare]):.3f} (at least 0.80)"
        )
    quick = {row.predicate: row.ours_to_ten for row in rows if row.predicate in QUICK_TO_TEN}
    print(
        "calls to ten: " + ", ".join(f"{name} {calls:.1f}" for name, calls in quick.items()) + " (at most 16)",
        flush=True,
    )


def guarantee_table(chosen: Sequence[Predicate], seeds: int, confidence: float) -> None:
    """Unverified rows at precision .9 (B = 256), and recall .9 by search and check."""
    print(f"\nGuarantees at δ = {1 - confidence:.2f}, {seeds} seeds")
    for predicate in chosen:
        if predicate.name not in MANY:
            continue
        w = world(predicate, True)
        total = float(w.truth.sum())
        f1, misses, recall_misses, cost = [], 0, 0, []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            search = UnverifiedSearch(
                w.n, 256, rng=rng, features=w.matrix, prior=w.prior, precision=0.9, confidence=confidence
            )
            while len(asked := search.propose(16)):
                search.tell(asked, w.truth[asked])
            more = search.unverified()
            accepted = search.accepted
            misses += len(accepted) > 0 and float(w.truth[accepted].mean()) < 0.9
            hits = len(search.matches()) + float(w.truth[more].sum())
            precision, recall = hits / max(len(search.matches()) + len(more), 1), hits / total
            f1.append(2 * precision * recall / max(precision + recall, 1e-9))
            if seed < max(3, seeds // 10):
                sure = RecallSearch(
                    w.n, w.n, rng=rng, features=w.matrix, prior=w.prior, has_examples=True, confidence=confidence
                )
                while len(asked := sure.propose(64)):
                    sure.tell(asked, w.truth[asked])
                recall_misses += len(sure.matches()) < 0.9 * total
                cost.append(sure.calls / w.n)
        print(
            f"{predicate.name:<14}unverified rows: F1 against all {np.mean(f1):.3f}, precision missed in {misses} of {seeds}; "
            f"recall .9: asked {np.mean(cost):.2f} of the rows, missed in {recall_misses} of {len(cost)}",
            flush=True,
        )


def speed_table(n: int = 400_000, d: int = 195) -> None:
    """Own time of a retrieval step and of a COUNT query over many rows."""
    rng = np.random.default_rng(0)
    matrix = (rng.standard_normal((n, d), dtype=np.float32) / np.float32(np.sqrt(d))).astype(np.float32)
    prior = matrix[:, 0].astype(np.float64)
    truth = (matrix[:, 0] + 0.05 * rng.standard_normal(n) > 0.12).astype(np.float64)
    search = LearnedSearch(n, 256, rng=rng, features=matrix, prior=prior, has_examples=True)
    times: dict[int, tuple[float, float]] = {}
    while True:
        start, busy = time.perf_counter(), time.process_time()
        rows = search.propose(8)
        spent = time.perf_counter() - start, time.process_time() - busy
        if not len(rows):
            break
        search.tell(rows, truth[rows])
        times[search.calls] = spent
    print(f"\nOwn time, {n:,} rows of {d} columns, clock/processor (alike on an idle machine with one thread)")
    shown = ", ".join(
        f"{1000 * times[c][0]:.0f}/{1000 * times[c][1]:.0f} ms with {c}" for c in (32, 64, 128, 256) if c in times
    )
    print(f"a retrieval step: {shown} labels (at most 50 ms)")
    start, busy = time.perf_counter(), time.process_time()
    sampler = AGGREGATE["asd"](n, 128, rng=rng, features=matrix, prior=prior)
    told(sampler, truth).estimate()
    spent = time.perf_counter() - start, time.process_time() - busy
    print(f"a COUNT query: {spent[0]:.2f}/{spent[1]:.2f} s (at most 0.6 s)", flush=True)
