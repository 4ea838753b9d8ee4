"""The order of the stages of a filter: the cheapest of all, rank order where terms are independent, never another answer."""

from __future__ import annotations

import itertools
from functools import partial, reduce

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from uql.compiler import orders
from uql.compiler.formula import FALSE, TRUE, Formula, decided
from uql.compiler.orders import asked_shares, best, cost_of, imagined, passes
from uql.compiler.physical import Stage
from uql.compiler.syntax import Binary, Column, Expr, Unary
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.operators import CONDITION


def term(i: int) -> Virtual:
    return Virtual(VirtualColumn(i, f"text {i}", CONDITION, "BOOLEAN", (Column("t", f"c{i}"),)))


TERMS = [term(i) for i in range(12)]
formulas = st.recursive(
    st.sampled_from(TERMS[:5]),
    lambda below: st.one_of(
        st.builds(Binary, st.sampled_from(["AND", "OR"]), below, below), st.builds(lambda x: Unary("NOT", x), below)
    ),
    max_leaves=6,
)


def stages_of(formula: Formula) -> list[Stage]:
    return [Stage((leaf.expr.column,)) for leaf in formula.leaves]  # type: ignore[attr-defined]


def chain(op: str, k: int) -> Formula:
    whole: Expr = TERMS[0]
    for term in TERMS[1:k]:
        whole = Binary(op, whole, term)
    return Formula.of(whole)


def random_answers(formula: Formula, seed: int, m: int = 40) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rates = rng.uniform(0.05, 0.95, len(formula.leaves))
    return np.where(rng.random((len(formula.leaves), m)) < rates[:, None], TRUE, FALSE).astype(np.uint8)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(expr=formulas, seed=st.integers(0, 99))
def test_the_order_found_is_the_cheapest_of_all(expr: Expr, seed: int) -> None:
    formula = Formula.of(expr)
    stages, answers = stages_of(formula), random_answers(formula, seed)
    costs = list(np.random.default_rng(seed).uniform(0.5, 3, len(stages)))
    order, cost = best(formula, stages, answers, costs)
    every = [cost_of(formula, stages, answers, costs, o) for o in itertools.permutations(range(len(stages)))]
    assert cost == pytest.approx(min(every))
    assert cost_of(formula, stages, answers, costs, order) == pytest.approx(cost)


def rank(cost: float, selectivity: float, op: str) -> float:
    """What a term costs per row that it settles: the least goes first."""
    settles = 1.0 - selectivity if op == "AND" else selectivity
    return cost / settles if settles > 0 else float("inf")


@pytest.mark.parametrize("op", ["AND", "OR"])
def test_independent_terms_are_asked_by_rank(op: str) -> None:
    formula = chain(op, 4)
    rates, costs = [0.9, 0.2, 0.6, 0.4], [1.0, 1.0, 1.5, 1.5]
    order, _ = best(formula, stages_of(formula), imagined(rates), costs)
    assert list(order) == sorted(range(4), key=lambda i: rank(costs[i], rates[i], op))


def test_among_equal_orders_the_written_one_is_kept() -> None:
    formula = chain("AND", 4)
    assert best(formula, stages_of(formula), imagined([0.5] * 4), [1.0] * 4)[0][0] == 0
    all_true = np.full((4, 10), TRUE, dtype=np.uint8)
    assert best(formula, stages_of(formula), all_true, [1.0] * 4)[0] == (0, 1, 2, 3)


def test_correlated_terms_are_not_taken_for_independent() -> None:
    """b says what a says; c alone settles what a leaves open: a, c, b and not a, b, c."""
    formula = chain("AND", 3)
    a = np.array([TRUE] * 30 + [FALSE] * 70, dtype=np.uint8)
    b = np.array([TRUE] * 35 + [FALSE] * 65, dtype=np.uint8)
    c = np.array([FALSE] * 25 + [TRUE] * 75, dtype=np.uint8)
    order, cost = best(formula, stages_of(formula), np.array([a, b, c]), [1.0] * 3)
    assert order == (0, 2, 1)
    assert cost == pytest.approx(1 + 0.30 + 0.05)


def test_more_stages_than_can_be_tried_are_ordered_greedily() -> None:
    formula = chain("AND", 12)
    rates = list(np.linspace(0.95, 0.05, 12))
    order, cost = best(formula, stages_of(formula), imagined(rates), [1.0] * 12)
    assert sorted(order) == list(range(12))
    assert order[0] == 11
    assert cost < cost_of(formula, stages_of(formula), imagined(rates), [1.0] * 12, range(12))


def test_so_many_stages_that_looking_for_an_order_would_not_end_are_asked_as_written() -> None:
    k = orders.MOST_ORDERED + 1
    formula = Formula.of(reduce(partial(Binary, "AND"), (TERMS[0], *(term(i) for i in range(1, k)))))
    order, cost = best(formula, stages_of(formula), imagined([0.5] * k), [float(k - i) for i in range(k)])
    assert order == tuple(range(k)) and cost == k * (k + 1) / 2


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(expr=formulas, seed=st.integers(0, 99))
def test_predicted_calls_are_those_of_asking_row_by_row(expr: Expr, seed: int) -> None:
    formula = Formula.of(expr)
    stages, answers = stages_of(formula), random_answers(formula, seed, 20)
    counts = [0] * len(stages)
    for row in range(20):
        masks = np.full((len(stages), 1), orders.OPEN, dtype=np.uint8)
        for i in range(len(stages)):
            if formula.relevant(masks)[i, 0]:
                counts[i] += 1
                masks[i] = answers[i, row]
        assert decided(formula.evaluate(masks))[0]
    assert asked_shares(formula, stages, answers) == pytest.approx([n / 20 for n in counts])


def test_imagined_rows_meet_the_rates() -> None:
    formula = chain("OR", 3)
    rows = imagined([0.1, 0.5, 0.9])
    assert (rows == TRUE).mean(axis=1) == pytest.approx([0.1, 0.5, 0.9], abs=0.002)
    assert passes(formula, rows) == pytest.approx(1 - 0.9 * 0.5 * 0.1, abs=0.02)
