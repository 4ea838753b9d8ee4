"""Which rows are alike by a small model's answers about each, and by nearness in meaning where that tells them."""

from __future__ import annotations

import numpy as np
import pytest

from uql.kernels.pair_conditions.compare_texts import _word_for_word, few, names
from uql.kernels.pair_conditions.similar_values import likeness, steadied
from uql.kernels.pair_conditions.values import Proposal
from uql.llm.questions import Cell, Row

TRUTH = np.repeat(np.arange(4), 10)
LEFT, RIGHT = (side.astype(np.int64) for side in np.triu_indices(len(TRUTH), 1))
SAME = TRUTH[LEFT] == TRUTH[RIGHT]


def balanced(holds: np.ndarray, same: np.ndarray = SAME) -> float:
    return float((holds[same].mean() + (~holds)[~same].mean()) / 2)


def answers(truth: np.ndarray, groups: int, wrong: float, rng: np.random.Generator, sure: float = 0.7) -> np.ndarray:
    """(n, groups) shares as a model gives them that puts a share of the rows to a group by chance."""
    said = np.where(rng.random(len(truth)) < wrong, rng.integers(0, groups, len(truth)), truth)
    shares = rng.dirichlet(np.full(groups, 0.5), len(truth)) * (1 - sure)
    shares[np.arange(len(truth)), said] += sure
    return shares


def places(truth: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(n, 16) features: rows of one topic lie near each other, with as much noise again."""
    centers = rng.normal(size=(truth.max() + 1, 16))
    return (centers[truth] + 0.7 * rng.normal(size=(len(truth), 16))).astype(np.float32)


@pytest.mark.parametrize("seed", range(3))
def test_rows_near_in_meaning_set_wrong_answers_right(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares, vectors = answers(TRUTH, 4, 0.4, rng), places(TRUTH, rng)
    alone, near = likeness([shares], None, rng), likeness([shares], vectors, rng)
    assert near.unit is not None
    before, after = balanced(alone.scores(LEFT, RIGHT) >= 0), balanced(near.scores(LEFT, RIGHT) >= 0)
    assert after > 0.9 > before


def test_nearness_is_hardly_ever_listened_to_where_it_tells_nothing_of_the_groups() -> None:
    heard, right = 0, []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        mood = rng.integers(0, 2, len(TRUTH))
        found = likeness([answers(mood, 2, 0.1, rng)], places(TRUTH, rng), rng)
        heard += found.unit is not None
        right.append(balanced(found.scores(LEFT, RIGHT) >= 0, mood[LEFT] == mood[RIGHT]))
    assert heard <= 2 and np.mean(right) > 0.75


def test_two_lists_that_say_the_same_in_other_words_agree() -> None:
    """Rows of a topic are split between names of two lists: by one list of all names they would be in different groups."""
    rng = np.random.default_rng(1)
    either = rng.integers(0, 2, len(TRUTH))
    shares = np.full((len(TRUTH), 8), 0.02)
    shares[np.arange(len(TRUTH)), TRUTH + 4 * either] = 0.6
    shares[np.arange(len(TRUTH)), TRUTH + 4 * (1 - either)] = 0.28
    found = likeness([shares[:, :4], shares[:, 4:]], None, rng)
    assert balanced(found.scores(LEFT, RIGHT) >= 0) > 0.95
    assert (shares.argmax(axis=1)[LEFT] == shares.argmax(axis=1)[RIGHT])[SAME].mean() < 0.6


def test_a_row_without_a_group_has_that_of_its_neighbours() -> None:
    rng = np.random.default_rng(2)
    shares = answers(TRUTH, 4, 0.0, rng)
    shares[0] = 0.0
    told, helped = steadied(shares, _unit(places(TRUTH, rng)), np.arange(len(TRUTH)), rng)
    assert helped and told[0].argmax() == 0


def test_draws_of_the_groups_scatter_around_the_chances() -> None:
    rng = np.random.default_rng(3)
    found = likeness([answers(TRUTH, 4, 0.2, rng)], None, rng)
    counts = [int((value[LEFT] == value[RIGHT]).sum()) for value in (found.draw_groups(rng)[0] for _ in range(400))]
    assert abs(np.mean(counts) - found.chances(LEFT, RIGHT).sum()) < 4 * np.std(counts) / 20 + 1


def test_many_rows_are_compared_with_some_of_them() -> None:
    rng = np.random.default_rng(4)
    truth = np.repeat(np.arange(4), 500)
    found = likeness([answers(truth, 4, 0.3, rng)], places(truth, rng), rng)
    left, right = rng.integers(0, len(truth), (2, 4000))
    keep = left != right
    assert balanced(found.scores(left, right)[keep] >= 0, (truth[left] == truth[right])[keep]) > 0.9


def test_few_rows_are_compared_by_their_groups_alone() -> None:
    found = likeness(
        [np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]])], np.eye(3, dtype=np.float32), np.random.default_rng(0)
    )
    assert found.unit is None
    scores = found.scores(np.array([0, 0, 1]), np.array([1, 2, 2]))
    assert scores.argmax() == 0


def test_spellings_of_one_name_are_one() -> None:
    found = names(["The Acme Company", "acme companies", "Acme", "Bolt", None, "", "person 1", "person 10"])
    assert found[0] == found[1] == found[2] != found[3]
    assert found[4] == found[5] == -1 and found[6] != found[7]


def test_names_are_found_in_rows_as_words_or_joined() -> None:
    rows = [Row((Cell("text", "@USAirways lost my bag, so did Delta"),))]
    assert _word_for_word(["US Airways", "Delta"], rows) == 1.0
    assert _word_for_word(["Sport", "art", "bags"], rows) == pytest.approx(1 / 3)


def test_values_named_twice_are_few() -> None:
    def of(*values: str) -> Proposal:
        return Proposal("mood", values, frozenset())

    assert few(of("good", "bad"), of("bad", "good")) == ("good", "bad")
    assert few(of("good", "bad"), None) is None
    assert few(of("good"), of("bad", "sad", "good")) is None


def _unit(vectors: np.ndarray) -> np.ndarray:
    centred = vectors - vectors.mean(axis=0)
    return centred / np.linalg.norm(centred, axis=1, keepdims=True)
