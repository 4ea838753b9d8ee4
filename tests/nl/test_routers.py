"""Routers: what they learn from traces, where the network is worth it, and that one adapter is added by its last layer alone."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from uql.base.errors import ConfigError, DataError
from uql.nl.plan.dag import Operator
from uql.nl.routers import load_router
from uql.nl.routers.ml import MLRouter, cross_entropy, labels, weight
from uql.nl.routers.stat import StatRouter
from uql.nl.routers.traces import ScoredSubquery, Trace, read_traces, scored_subqueries, write_traces

THINGS = [
    "games",
    "letters",
    "paintings",
    "orders",
    "recipes",
    "reviews",
    "flags",
    "patients",
    "songs",
    "planes",
    "cities",
    "novels",
]
WAYS = [
    "by year",
    "of last May",
    "in Rome",
    "with a discount",
    "for children",
    "from the archive",
    "about war",
    "of the north",
]
COUNTS = [
    "How many {} {} are there?",
    "Count the {} {}.",
    "What is the average price of the {} {}?",
    "Sum up the {} {}.",
]
DESCRIBES = [
    "Describe the mood of the {} {}.",
    "What do the {} {} show?",
    "Summarise what the {} {} say.",
    "Why do people like the {} {}?",
]


class Words:
    """An embedder of hashed words, the same on every machine."""

    name = "words"

    def embed(self, texts):  # type: ignore[no-untyped-def]
        out = np.zeros((len(texts), 128), np.float32)
        for i, text in enumerate(texts):
            for word in (text or "").lower().strip("?.").split():
                out[i, sum(ord(c) * 31**k for k, c in enumerate(word)) % 128] += 1.0
        return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)


def traces(depends: bool, n: int, seed: int) -> list[Trace]:
    """n sub-queries, each tried on three adapters. With `depends`, who is good follows from its words; else `uql` always is."""
    rng = random.Random(seed)
    made = []
    for _ in range(n):
        count = rng.random() < 0.55
        text = rng.choice(COUNTS if count else DESCRIBES).format(rng.choice(THINGS), rng.choice(WAYS))
        good = "uql" if count or not depends else "single_model"
        operator = rng.choice(["TextAnalytics", "TableAnalytics"])
        modality = "text" if operator == "TextAnalytics" else "table"
        for adapter in ("uql", "single_model", "structgpt"):
            q = 0.9 if adapter == good else 0.3 if adapter != "structgpt" else 0.1
            q = min(1.0, max(0.0, q + rng.gauss(0, 0.05)))
            made.append(Trace(text, operator, modality, adapter, q, q, q, q))
    return made


def reached(router: StatRouter | MLRouter, held: list[Trace]) -> float:
    """Mean quality of the adapter ranked first."""
    found = scored_subqueries(held)
    return float(
        np.mean([q.quality[router.rank(q.subquery, Operator(q.operator), sorted(q.quality))[0]] for q in found])
    )


def test_quality_is_the_weighted_sum_of_the_measures() -> None:
    assert Trace(
        "q", "TextAnalytics", "text", "a", f1=0.2, hit=1, coverage=0.4, semantic_hit=1
    ).quality == pytest.approx(0.63)


def test_the_weight_of_a_sub_query_grows_with_quality_and_margin_within_its_bounds() -> None:
    assert weight([0.8, 0.2, 0.1]) == pytest.approx(0.1 + 0.9 * 0.8 + 0.2 * 0.6)
    assert weight([0.0]) == 0.1 and weight([3.0, 0.0]) == 1.5
    best, weights = labels([ScoredSubquery("q", "TextAnalytics", "text", {"b": 0.5, "a": 0.5, "c": 0.1})])
    assert best == ["a"] and weights.tolist() == [0.55]


def test_the_loss_is_the_weighted_cross_entropy() -> None:
    p = np.array([[0.5, 0.5], [0.9, 0.1]])
    assert cross_entropy(p, np.array([0, 0]), np.array([1.0, 3.0])) == pytest.approx(
        -(np.log(0.5) + 3 * np.log(0.9)) / 4
    )


def test_the_network_is_better_by_ten_points_where_the_sub_query_decides() -> None:
    train, held = traces(True, 220, 1), traces(True, 120, 2)
    stat, ml = StatRouter.fit(train), MLRouter.fit(train, Words())
    assert reached(ml, held) >= reached(stat, held) + 0.10
    assert ml.loss < 0.2 and ml.trained_on == len(scored_subqueries(train)) > 100


def test_the_network_is_within_a_point_where_it_does_not() -> None:
    train, held = traces(False, 120, 3), traces(False, 80, 4)
    assert reached(MLRouter.fit(train, Words()), held) >= reached(StatRouter.fit(train), held) - 0.01


def test_an_adapter_is_added_or_dropped_by_the_last_layer_alone() -> None:
    train = traces(True, 200, 5)
    first = MLRouter.fit([t for t in train if t.adapter != "single_model"], Words())
    both = first.with_adapters(train, ("uql", "single_model", "structgpt"))
    for before, after in zip(first.coefficients[:-1], both.coefficients[:-1], strict=True):
        assert before is after
    assert reached(both, traces(True, 100, 6)) > 0.8
    fewer = both.with_adapters(train, ("uql", "structgpt"))
    assert fewer.rank("Describe the mood of the songs in Rome.", Operator.TEXT, ["structgpt", "uql"])[0] == "uql"
    with pytest.raises(DataError, match="no traces of dspy"):
        both.with_adapters(train, ("uql", "dspy"))


def test_ranks_hold_every_adapter_once_and_the_unknown_last() -> None:
    router = MLRouter.fit(traces(True, 80, 7), Words())
    ranked = router.rank("How many flags by year are there?", Operator.TABLE, ["new", "single_model", "uql"])
    assert ranked == ["uql", "single_model", "new"]
    assert sum(router.probabilities("Count the songs.", Operator.TEXT).values()) == pytest.approx(1.0)
    assert StatRouter().rank("x", Operator.TEXT, ["b", "a"]) == ["b", "a"]


def test_routers_are_saved_without_code_and_come_back_the_same(tmp_path: Path) -> None:
    train = traces(True, 80, 8)
    for router in (StatRouter.fit(train), MLRouter.fit(train, Words())):
        router.save(tmp_path / "router.json")
        again = load_router(tmp_path / "router.json", Words())
        for text in ("How many flags by year are there?", "Describe the mood of the songs in Rome."):
            names = ["structgpt", "single_model", "uql"]
            assert again.rank(text, Operator.TEXT, names) == router.rank(text, Operator.TEXT, names)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["router.json", "router.npz"]


def test_a_file_that_is_no_router_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    with pytest.raises(DataError, match="cannot be read"):
        load_router(path)
    path.write_text("[]")
    with pytest.raises(DataError, match="is not a router"):
        load_router(path)
    path.write_text(json.dumps({"kind": "ml", "embedder": "other", "layers": 1, "adapters": ["a"]}))
    with pytest.raises(ConfigError, match="trained with the embedder other"):
        load_router(path, Words())
    path.write_text(json.dumps({"kind": "ml", "embedder": "words", "layers": 1, "adapters": ["a"]}))
    with pytest.raises(DataError, match="layers"):
        load_router(path, Words())
    np.savez(tmp_path / "r.npz", c0=np.array([{}], dtype=object), b0=np.zeros(1))
    with pytest.raises(DataError, match="layers"):
        load_router(path, Words())


def test_traces_are_kept_as_parquet_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "traces.parquet"
    made = traces(True, 5, 9)
    write_traces(path, made)
    assert read_traces(path) == made
    write_traces(path, [Trace("q", "Cooking", "text", "a")])
    with pytest.raises(DataError, match="the operator 'Cooking'"):
        read_traces(path)
    (tmp_path / "no.parquet").write_text("no")
    with pytest.raises(DataError, match="cannot be read"):
        read_traces(tmp_path / "no.parquet")


def test_traces_without_a_choice_teach_nothing() -> None:
    with pytest.raises(DataError, match="two adapters"):
        MLRouter.fit([Trace("q", "TextAnalytics", "text", "a")], Words())
