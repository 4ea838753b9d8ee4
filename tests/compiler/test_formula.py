"""A formula decides rows as three-valued logic does, as early as it can, and what it implies holds on every row that passes."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, strategies as st

from uql.compiler.formula import FALSE, NULL, OPEN, TRUE, UNKNOWN, Formula, decided, implied
from uql.compiler.syntax import Binary, Boolean, Column, Expr, Unary
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.operators import CONDITION

CONCRETE = [Column("t", name) for name in "ab"]
SEMANTIC = [Virtual(VirtualColumn(i, f"text {i}", CONDITION, "BOOLEAN", (Column("t", "text"),))) for i in range(3)]
MASK = {True: TRUE, False: FALSE, None: NULL}

formulas = st.recursive(
    st.sampled_from([*CONCRETE, *SEMANTIC]),
    lambda below: st.one_of(
        st.builds(Binary, st.sampled_from(["AND", "OR"]), below, below), st.builds(lambda x: Unary("NOT", x), below)
    ),
    max_leaves=8,
)
assignments = st.tuples(*[st.sampled_from([True, False, None])] * 5).map(
    lambda values: dict(zip([*CONCRETE, *SEMANTIC], values, strict=True))
)


def truth(expr: Expr, values: dict[Expr, bool | None]) -> bool | None:
    """Kleene's logic, written plainly."""
    match expr:
        case Boolean(value=value):
            return value
        case Unary(operand=inner):
            below = truth(inner, values)
            return None if below is None else not below
        case Binary(op=op, left=left, right=right):
            pair = truth(left, values), truth(right, values)
            decides = op == "OR"
            if decides in pair:
                return decides
            return None if None in pair else not decides
    return values[expr]


def masks_of(formula: Formula, values: dict[Expr, bool | None]) -> np.ndarray:
    return np.array([[MASK[values[leaf.expr]]] for leaf in formula.leaves], dtype=np.uint8)


@given(expr=formulas, values=assignments)
def test_a_formula_of_known_leaves_is_kleenes_logic(expr, values):
    formula = Formula.of(expr)
    assert formula.evaluate(masks_of(formula, values))[0] == MASK[truth(expr, values)]


@given(expr=formulas, values=assignments)
def test_chances_of_leaves_that_are_sure_are_the_formulas_truth(expr, values):
    formula = Formula.of(expr)
    flags = {leaf: bool(value) for leaf, value in values.items()}
    chances = np.array([[float(flags[leaf.expr])] for leaf in formula.leaves])
    assert formula.chance(chances)[0] == float(truth(expr, flags))


@given(expr=formulas, chances=st.lists(st.floats(0, 1), min_size=5, max_size=5))
def test_a_chance_lies_between_none_and_all(expr, chances):
    formula = Formula.of(expr)
    assert -1e-12 <= formula.chance(np.array(chances)[: len(formula.leaves), None])[0] <= 1 + 1e-12


@given(expr=formulas, values=assignments, asked=st.sets(st.integers(0, 4)))
def test_a_row_is_decided_only_when_no_answer_that_is_still_open_could_change_it(expr, values, asked):
    formula = Formula.of(expr)
    masks = masks_of(formula, values)
    open_ = [i for i in range(len(formula.leaves)) if i not in asked]
    masks[open_] = OPEN
    outcomes = set()
    for choice in itertools.product([True, False, None], repeat=len(open_)):
        filled = dict(values)
        filled.update({formula.leaves[i].expr: v for i, v in zip(open_, choice, strict=True)})
        outcomes.add(truth(expr, filled) is True)
    if decided(formula.evaluate(masks))[0]:
        assert len(outcomes) == 1


@given(expr=formulas, values=assignments)
def test_a_failed_answer_is_never_taken_for_one(expr, values):
    formula = Formula.of(expr)
    masks = masks_of(formula, values)
    masks[0] = UNKNOWN
    result = formula.evaluate(masks)[0]
    possible = {truth(expr, {**values, formula.leaves[0].expr: v}) for v in (True, False)}
    if result == TRUE:
        assert possible == {True}
    if not result & TRUE:
        assert True not in possible


@given(expr=formulas, values=assignments)
def test_what_a_condition_implies_holds_on_every_row_that_passes(expr, values):
    weaker = implied(expr)
    if truth(expr, values) is True and weaker is not None:
        assert truth(weaker, values) is True


def test_a_condition_in_or_gives_duckdb_the_or_of_its_concrete_sides():
    a, b = CONCRETE
    x, y, _ = SEMANTIC
    expr = Binary("OR", Binary("AND", a, x), Binary("AND", b, y))
    assert implied(expr) == Binary("OR", a, b)
    assert implied(Binary("OR", a, x)) is None


@given(expr=formulas, values=assignments, asked=st.sets(st.integers(0, 4)))
def test_a_leaf_that_is_not_relevant_changes_no_answer(expr, values, asked):
    formula = Formula.of(expr)
    masks = masks_of(formula, values)
    for i in range(len(formula.leaves)):
        if i not in asked:
            masks[i] = OPEN
    relevant = formula.relevant(masks)[:, 0]
    free = [i for i in range(len(formula.leaves)) if masks[i][0] == OPEN]
    for i in (i for i in free if not relevant[i]):
        others = [j for j in free if j != i]
        for rest in itertools.product((FALSE, TRUE, NULL), repeat=len(others)):
            passes = set()
            for own in (FALSE, TRUE, NULL):
                filled = masks.copy()
                filled[i] = own
                for j, value in zip(others, rest, strict=True):
                    filled[j] = value
                passes.add(bool(formula.evaluate(filled)[0] == TRUE))
            assert len(passes) == 1


@given(expr=formulas, values=assignments, asked=st.sets(st.integers(0, 4)))
def test_a_row_that_is_open_has_a_relevant_leaf_that_is_open(expr, values, asked):
    formula = Formula.of(expr)
    masks = masks_of(formula, values)
    for i in range(len(formula.leaves)):
        if i not in asked:
            masks[i] = OPEN
    still_open = not decided(formula.evaluate(masks))[0]
    relevant = formula.relevant(masks)[:, 0]
    assert still_open == bool(any(relevant[i] and masks[i][0] == OPEN for i in range(len(masks))))
