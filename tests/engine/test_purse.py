"""What the parts of a statement may spend, and the records that hold its rows and answers."""

from __future__ import annotations

import asyncio
from dataclasses import fields

import duckdb
import pytest

from uql.base.errors import BudgetError
from uql.base.settings import CALLS_AGGREGATE, CALLS_ROWS, Settings
from uql.kernels.answers import ColumnAnswers
from uql.kernels.duck import Duck
from uql.kernels.purse import Purse
from uql.kernels.relation import Relation
from uql.llm.budget import Budget, Reservation


def spend(budget: Budget, calls: int) -> None:
    assert asyncio.run(budget.reserve(Reservation(1, 0.0, calls))) is not None


def test_default_budgets_are_those_of_the_settings():
    assert (Settings().calls(), Settings().calls(aggregates=True)) == (CALLS_ROWS, CALLS_AGGREGATE)
    assert Settings(budget=7).calls(aggregates=True) == 7
    assert Settings(budget="all").calls() is Settings(exact=True).calls() is None


def test_a_part_that_does_with_a_sample_leaves_the_others_their_share():
    budget = Budget(calls=90)
    purse = Purse(budget)
    with purse.others_to_come(2):
        with purse.sharing(needed=50):  # it fits: nothing is kept back
            assert purse.remaining == 90
        with purse.sharing(needed=1000):
            assert purse.remaining == 30 and purse.fits(30) and not purse.fits(31)
            spend(budget, 30)
            assert purse.remaining == 0
    assert purse.remaining == 60


def test_a_run_that_goes_on_spends_the_step_of_the_earlier_one_first():
    budget = Budget(calls=100, steps=(40,))
    purse = Purse(budget)
    assert (purse.remaining, purse.remaining_in_step) == (100, 40) and purse.fits(100) and not purse.fits_now(41)
    spend(budget, 40)
    assert (
        purse.remaining_in_step == 0 and purse.next_step() and purse.remaining_in_step == 60 and not purse.next_step()
    )


def test_calls_beside_the_budget_leave_it_whole():
    budget = Budget(calls=10)
    purse = Purse(budget)
    with purse.beside(5):
        spend(budget, 5)
    assert purse.remaining == 10
    unlimited = Purse(Budget())
    with unlimited.beside(5):
        assert unlimited.remaining is None
    assert unlimited.fits(10**9)


def test_a_need_that_does_not_fit_says_what_to_write():
    purse = Purse(Budget(calls=3))
    purse.need(3, "it")
    with pytest.raises(BudgetError, match="it needs 4 calls and the budget leaves 3") as error:
        purse.need(4, "it", "add LIMIT")
    assert error.value.help == "add LIMIT, or WITH (budget = 4), or WITH (budget = 'all')"


def test_the_records_of_rows_and_answers_stay_small():
    relation = Relation(Duck(duckdb.connect()), "t", 0, {})
    assert len(vars(relation)) <= 9
    assert len(fields(ColumnAnswers)) <= 8
