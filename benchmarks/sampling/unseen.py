"""Predicates on which nothing was chosen: other data, and numbers of which texts say nothing.

`python -m uql.benchmarks.sampling.unseen` prints COUNT beside the baselines and F1 of searches, without example rows.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from uql.benchmarks.datasets.labelled import data_folder
from uql.benchmarks.sampling.aggregates import geometric, holds, rms
from uql.benchmarks.sampling.worlds import CLUSTERINGS, told
from uql.features.similarity import with_similarity
from uql.features.table import TableFeatures, table_features
from uql.sampling.base import Floats, Indices
from uql.sampling.clusters import clusters
from uql.sampling.methods import AGGREGATE
from uql.sampling.retrieval import LearnedSearch
from uql.sampling.stratified import StratifiedSampler
from uql.sampling.uqe import UqeSearch

SEARCHED = 256  # calls of a search
NUMBERS = 6_000


@dataclass(frozen=True)
class Unseen:
    """A table's texts, a condition, and (N,) its truth. Predicates of one `data` have the same texts."""

    name: str
    data: str
    texts: Sequence[str]
    condition: str
    truth: Floats


def columns(file: str, *names: str) -> list[list[Any]]:
    """Columns of a file of the data folder."""
    import pyarrow.parquet as pq

    table = pq.read_table(data_folder() / f"{file}.parquet")
    return [table[name].to_pylist() for name in names]


def flags(values: Sequence[Any]) -> Floats:
    """(N,) 1 where true."""
    return np.array(values, np.float64)


def predicates() -> Iterator[Unseen]:
    """All of them, those of one table after each other."""
    texts, meta = columns("mmqa/questions", "question", "meta")
    kinds = [json.loads(m)["type"] for m in meta]
    shown = flags([k.startswith("Image") for k in kinds])
    yield Unseen("mmqa_image", "mmqa", texts, "the question is about what an image shows", shown)
    yield Unseen(
        "mmqa_compare", "mmqa", texts, "the question compares two things", flags(["Compare" in k for k in kinds])
    )
    (texts,), (kinds,) = columns("tatqa/questions", "question"), columns("tatqa/answers", "answer_kind")
    computed = flags([k in ("arithmetic", "number") for k in kinds])
    yield Unseen("tatqa_computed", "tatqa", texts, "the answer is a number that must be computed", computed)
    yield Unseen(
        "tatqa_count", "tatqa", texts, "the question asks how many there are", flags([k == "count" for k in kinds])
    )
    (texts,), (answers,) = columns("nvbench/questions", "question"), columns("nvbench/answers", "answer")
    charts = [json.loads(a)["chart"].lower() for a in answers]
    yield Unseen("nvbench_pie", "nvbench", texts, "a pie chart is wanted", flags(["pie" in c for c in charts]))
    yield Unseen(
        "nvbench_scatter", "nvbench", texts, "a scatter plot is wanted", flags(["scatter" in c for c in charts])
    )
    texts, genres = columns("artwork/paintings_full", "title", "genre")
    yield Unseen(
        "art_portrait", "artwork", texts, "the painting is a portrait", flags([g == "portrait" for g in genres])
    )
    religious = flags([g == "religious art" for g in genres])
    yield Unseen("art_religious", "artwork", texts, "the painting has a religious subject", religious)
    yield lakers()
    yield from numbers()
    (texts,) = columns("airline_tweets/data", "text")
    moods, reasons = columns("airline_tweets/labels", "sentiment", "reason")
    yield Unseen("tw_positive", "tweets", texts, "the tweet is positive", flags([m == "positive" for m in moods]))
    lost = flags([r == "Lost Luggage" for r in reasons])
    yield Unseen("tw_misled", "tweets", texts, "the tweet thanks the crew", lost)  # words that lead away from the rows
    (texts,), (topics,) = columns("bbc_news/data", "text"), columns("bbc_news/labels", "topic")
    yield Unseen("bbc_sport", "bbc", texts, "the article is about sport", flags([t == "sport" for t in topics]))
    (texts,), (outcomes, domains) = columns("sgd/data", "text"), columns("sgd/labels", "outcome", "domains")
    yield Unseen("sgd_none_booked", "sgd", texts, "nothing was booked", flags([o == "search_only" for o in outcomes]))
    weather = flags(["Weather" in d for d in domains])
    yield Unseen("sgd_weather", "sgd", texts, "the customer asks about the weather", weather)


def lakers() -> Unseen:
    """Reports of games in which one team of thirty played."""
    texts, truth = [], []
    for split in ("valid", "test"):
        games, reports = columns(f"rotowire/{split}_reports", "game_id", "report")
        of_team, teams = columns(f"rotowire/{split}_teams_to_games", "game_id", "name")
        played = {game for game, team in zip(of_team, teams, strict=True) if team == "Lakers"}
        texts += reports
        truth += [game in played for game in games]
    return Unseen("rotowire_lakers", "rotowire", texts, "the Lakers played", flags(truth))


def numbers() -> Iterator[Unseen]:
    """Texts of random numbers, and conditions that only arithmetic answers."""
    drawn = np.random.default_rng(5).integers(1, 1000, (NUMBERS, 5))
    texts = [
        f"order {i}: {a} units of item {b}, weight {c} kg, price {d}.{e % 100:02d} euro" for i, (a, b, c, d, e) in enumerate(drawn)
    ]  # fmt: skip
    even, tenth = drawn[:, 0] % 2 == 0, (drawn[:, 1] + drawn[:, 2]) % 10 == 0
    rare = (7 * drawn[:, 3] + drawn[:, 2]) % 100 == 0
    yield Unseen("numbers_even", "numbers", texts, "the number of units is even", even.astype(np.float64))
    wanted = "item number and weight add up to a multiple of ten"
    yield Unseen("numbers_tenth", "numbers", texts, wanted, tenth.astype(np.float64))
    wanted = "seven times the price and the weight add up to a multiple of a hundred"
    yield Unseen("numbers_rare", "numbers", texts, wanted, rare.astype(np.float64))


@dataclass(frozen=True, slots=True)
class UnseenRow:
    """Ratios of root mean square errors of COUNT, coverage, and mean F1 of searches."""

    name: str
    rows: int
    share: float
    to_uqe: float
    to_uniform: float  # over the exact error of a uniform sample
    coverage: float
    f1: float
    f1_uqe: float


@lru_cache(maxsize=1)
def _features(data: str) -> tuple[TableFeatures, list[Indices]]:
    texts = next(p.texts for p in predicates() if p.data == data)
    made = table_features(texts, key=data, cache_dir=Path(tempfile.gettempdir()) / "uql-benchmark-features")
    vectors = made.blocks[0].vectors[made.blocks[0].index].astype(np.float32)
    return made, [clusters(vectors, 10, seed) for seed in range(CLUSTERINGS)]


def unseen_row(predicate: Unseen, seeds: int, budget: int = 128, searches: int = 8) -> UnseenRow:
    """The row of one predicate."""
    made, strata = _features(predicate.data)
    matrix, prior = with_similarity(made, predicate.condition)
    truth, n = predicate.truth, len(predicate.truth)
    total = float(truth.sum())
    ours, theirs, held = [], [], 0
    for seed in range(seeds):
        sampler = AGGREGATE["asd"](n, budget, rng=np.random.default_rng(seed), features=matrix, prior=prior)
        found = told(sampler, truth).estimate()
        ours.append((found.value or 0.0) / total - 1)
        held += holds(found, total)
        base = StratifiedSampler(n, budget, rng=np.random.default_rng(seed), strata=strata[seed % CLUSTERINGS])
        theirs.append((told(base, truth).estimate().value or 0.0) / total - 1)
    f1: tuple[list[float], list[float]] = ([], [])
    for seed in range(searches):
        learned = LearnedSearch(n, SEARCHED, rng=np.random.default_rng(seed), features=matrix, prior=prior)
        for scores, search in zip(
            f1, (learned, UqeSearch(n, SEARCHED, rng=np.random.default_rng(seed), features=matrix)), strict=True
        ):
            while len(asked := search.propose(64)):
                search.tell(asked, truth[asked])
            recall = len(search.matches()) / min(SEARCHED, total)
            scores.append(2 * recall / (1 + recall))
    share = total / n
    uniform = float(np.sqrt((1 - share) / share / budget * (1 - budget / n)))
    return UnseenRow(
        predicate.name,
        n,
        share,
        rms(ours) / rms(theirs),
        rms(ours) / uniform,
        held / seeds,
        float(np.mean(f1[0])),
        float(np.mean(f1[1])),
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 2 where the data is not there."""
    parser = argparse.ArgumentParser(prog="python -m uql.benchmarks.sampling.unseen", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--budget", type=int, default=128)
    parser.add_argument("--predicate", action="append", help="one by name; may be given several times")
    given = parser.parse_args(arguments)
    try:
        data_folder()
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    print(
        f"COUNT of unseen predicates, B = {given.budget}, {given.seeds} seeds, example rows off; F1 at {SEARCHED} calls"
    )
    print(f"{'predicate':<17}{'rows':>8}{'share':>8}{'ASD/UQE':>9}{'ASD/uniform':>13}{'held':>7}{'F1':>7}{'UQE':>7}")
    rows = []
    for predicate in predicates():
        if given.predicate and predicate.name not in given.predicate:
            continue
        row = unseen_row(predicate, given.seeds, given.budget)
        rows.append(row)
        print(
            f"{row.name:<17}{row.rows:>8,}{row.share:>8.4f}{row.to_uqe:>9.2f}{row.to_uniform:>13.2f}{row.coverage:>7.2f}"
            f"{row.f1:>7.3f}{row.f1_uqe:>7.3f}",
            flush=True,
        )
    print(f"geometric mean of ASD/UQE {geometric([r.to_uqe for r in rows]):.2f}, worst against uniform "
          f"{max(r.to_uniform for r in rows):.2f} (at most 1.10)")  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
