"""A set of rows with a stated precision and recall: `WITH (models = […], precision = …, recall = …)`."""

from __future__ import annotations

import pytest
from two_models import Cheap, Dear, drawn, is_good, measured

import uql
from uql.base.errors import BudgetError, ConfigError
from uql.llm.providers.base import Answer

ROWS = 2000
QUERY = 'SELECT id FROM notes WHERE "it is good"'
TARGETS = "precision = 0.9, recall = 0.9"


class Overconfident(Cheap):
    """As sure of what is wrong (one row in fifty) as of what is right, and far too sure."""

    def said(self, text):
        yes = is_good(text) != (drawn("wrong " + text) < 0.02)
        sure = 0.99 + 0.0099 * drawn("sure " + text)
        return Answer(yes, sure if yes else 1 - sure)


class Guessing(Cheap):
    def said(self, text):
        p = drawn("guess " + text)
        return Answer(p > 0.5, p)


class Several(Dear):
    """Answers some rows with what cannot be read."""

    unreadable = 0.03


class CheapSeveral(Cheap):
    unreadable = 0.1


def connected(cheap, dear, rows=ROWS, text="'Note ' || i || ', about something or other, at length'", **settings):
    con = uql.connect(models=[cheap, dear], ledger=":memory:", examples=False, **settings)
    con.sql(f"SELECT i AS id, {text} AS text FROM range({rows}) r(i)").create("notes")
    return con


def truth(con) -> set[int]:
    return {i for i, text in con.sql("SELECT id, text FROM notes").fetchall() if is_good(text)}


@pytest.mark.parametrize("cheap", [Cheap, Overconfident])
def test_both_targets_hold_with_a_part_of_the_dear_calls(cheap) -> None:
    small, large = cheap(), Dear()
    with connected(small, large, budget="all") as con:
        result = con.uql(f"{QUERY} WITH ({TARGETS})")
        precision, recall = measured({r[0] for r in result.fetchall()}, truth(con))
        assert precision >= 0.9 and recall >= 0.9 and not result.partial
        assert small.calls == ROWS and large.calls < 0.5 * ROWS
        (note,) = [n for n in result.notes if "precision ≥ 90% and recall ≥ 90%, both at 95%" in n]
        assert f"{large.calls:,} of {ROWS:,} rows were asked of dear, all were scored by cheap" in note
        assert len(result.unverified) > 0 and not result.exact
        assert result.cost.calls == small.calls + large.calls


def test_the_same_statement_again_makes_no_call() -> None:
    small, large = Cheap(), Dear()
    with connected(small, large, budget="all") as con:
        first = con.uql(f"{QUERY} WITH ({TARGETS})")
        rows, asked = first.fetchall(), (small.calls, large.calls)
        again = con.uql(f"{QUERY} WITH ({TARGETS})")
        assert again.fetchall() == rows and (small.calls, large.calls) == asked and again.cost.calls == 0


def test_a_budget_that_is_too_small_is_kept_and_says_what_it_would_take() -> None:
    small, large = Guessing(), Dear()
    with connected(small, large, budget=200) as con:
        result = con.uql(f"{QUERY} WITH ({TARGETS})")
        found = {r[0] for r in result.fetchall()}
        assert result.partial and large.calls <= 200 and small.calls == ROWS
        (note,) = [n for n in result.notes if "cannot be stated with these calls" in n]
        assert "what holds at 95% is precision ≥ " in note and "calls of dear in all would do: WITH (budget = " in note
        needed = int(note.partition("WITH (budget = ")[2].partition(")")[0])
        assert needed > 1000, "four rows in five have to be asked where the score says nothing"
        assert found <= truth(con), "nothing is returned unasked where the precision is not shown"


def test_one_model_and_its_embeddings() -> None:
    large = Dear()
    with uql.connect(model=large, ledger=":memory:", budget="all", examples=False) as con:
        con.sql(
            f"SELECT i AS id, 'Note ' || i || CASE WHEN i % 3 = 0 THEN ', the food was wonderful and warm' "
            f"ELSE ', the train was late again today' END AS text FROM range({ROWS}) r(i)"
        ).create("notes")
        large.said = lambda text: Answer("wonderful" in text, float("wonderful" in text))
        result = con.uql(f"{QUERY} WITH ({TARGETS})")
        precision, recall = measured({r[0] for r in result.fetchall()}, set(range(0, ROWS, 3)))
        assert precision >= 0.9 and recall >= 0.9 and not result.partial
        assert large.calls < 0.2 * ROWS


def test_rows_without_an_answer_are_neither_yes_nor_no() -> None:
    small, large = CheapSeveral(), Several()
    with connected(small, large, budget="all") as con:
        result = con.uql(f"{QUERY} WITH ({TARGETS})")
        found = {r[0] for r in result.fetchall()}
        failed = {
            i for i, text in con.sql("SELECT id, text FROM notes").fetchall() if drawn("unreadable dear" + text) < 0.03
        }
        asked = {error.row for error in result.errors}
        assert asked and not (asked & failed) & found
        precision, recall = measured(found - failed, truth(con) - failed)
        assert precision >= 0.9 and recall >= 0.9
        assert any("rows gave no answer" in n for n in result.notes)
        assert any("rows have no score: cheap gave no answer" in n for n in result.notes)


def test_equal_rows_are_asked_once() -> None:
    small, large = Cheap(), Dear()
    with connected(small, large, text="'Note ' || i % 300 || ', about something or other'", budget="all") as con:
        result = con.uql(f"{QUERY} WITH ({TARGETS})")
        precision, recall = measured({r[0] for r in result.fetchall()}, truth(con))
        assert precision >= 0.9 and recall >= 0.9
        assert small.calls == 300 and large.calls <= 300


def test_a_formula_of_two_conditions_and_a_plain_one() -> None:
    small, large = Cheap(), Dear()
    with connected(small, large, budget="all") as con:
        result = con.uql(f'SELECT id FROM notes WHERE ("it is good" OR id < 10) AND id % 2 = 0 WITH ({TARGETS})')
        right = {i for i in (truth(con) | set(range(10))) if i % 2 == 0}
        precision, recall = measured({r[0] for r in result.fetchall()}, right)
        assert precision >= 0.9 and recall >= 0.9 and large.calls < ROWS / 2


@pytest.mark.parametrize("options", ["recall = 0.9", "precision = 0.9"])
def test_one_target_is_guided_by_the_cheap_model_and_answered_by_the_dear_one(options) -> None:
    small, large = Cheap(), Dear()
    with connected(small, large, budget=600) as con:
        result = con.uql(f"{QUERY} WITH ({options})")
        result.fetchall()
        assert small.calls == ROWS and 0 < large.calls <= 600


def test_no_call_of_the_dear_model_is_made_beyond_the_budget_and_none_of_either_with_a_budget_of_0() -> None:
    for budget in (0, 1, 7, 40):
        small, large = Cheap(), Dear()
        with connected(small, large, budget=budget) as con:
            con.uql(f"{QUERY} WITH ({TARGETS})").fetchall()
            assert large.calls <= budget and small.calls in (0, ROWS)
            assert budget or not small.calls


@pytest.mark.thorough
def test_a_max_cost_below_the_price_of_the_scores_is_refused_before_the_first_call() -> None:
    small, large = Cheap(), Dear()
    with connected(small, large) as con:
        with pytest.raises(
            BudgetError, match=r"max_cost = 0\.001 .* scores of cheap: about 0\.\d+ USD for 2,000"
        ) as error:
            con.uql(f"{QUERY} WITH ({TARGETS}, max_cost = 0.001)").fetchall()
        assert (small.calls, large.calls) == (0, 0) and "larger max_cost" in str(error.value.help)
        shown = con.uql(f"{QUERY} WITH ({TARGETS}, max_cost = 0.001)").explain()
        assert "max_cost = 0.001 does not pay for the scores of cheap" in shown
        rows = con.uql(f"{QUERY} WITH ({TARGETS}, budget = 'all')").fetchall()
        assert small.calls == ROWS
        again = con.uql(f"{QUERY} WITH ({TARGETS}, budget = 'all', max_cost = 0.001)")  # the ledger has the scores
        assert again.fetchall() == rows and small.calls == ROWS


def test_explain_has_the_price_of_both_models() -> None:
    with connected(Cheap(), Dear(), budget=500) as con:
        shown = con.uql(f"{QUERY} WITH ({TARGETS})").explain()
        assert "cheap scores all rows, dear answers a sample" in shown
        assert "dear alone, all rows" in shown and "cheap alone, all rows" in shown
        quote = con.uql(f"{QUERY} WITH ({TARGETS})").quote()
        assert quote.calls.high == ROWS + 500


def test_another_model_beside_the_two_is_refused() -> None:
    class Other(Dear):
        name = "other"

    with uql.connect(model=Other(), models=[Cheap(), Dear()], ledger=":memory:") as con:
        con.sql("SELECT i AS id, 'Note ' || i || ', about something or other' AS text FROM range(500) r(i)").create(
            "notes"
        )
        with pytest.raises(ConfigError, match="leave model out"):
            con.uql(f"{QUERY} WITH ({TARGETS})").fetchall()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM notes",
        'SELECT COUNT(*) FROM notes WHERE "it is good"',
        'SELECT "the mood" FROM notes WHERE id < 5',
    ],
)
def test_a_precision_without_rows_chosen_by_a_text_is_refused(query) -> None:
    with connected(Cheap(), Dear()) as con, pytest.raises(ConfigError) as error:
        con.uql(f"{query} WITH (precision = 0.9)").fetchall()
    assert error.value.code == "UQL105" and "WHERE" in str(error.value.help)


@pytest.mark.parametrize(
    "query", ["FROM notes", 'SELECT id FROM notes WHERE "it is good"', 'SELECT "the mood" FROM notes']
)
def test_an_error_without_an_aggregate_is_refused(query) -> None:
    with connected(Cheap(), Dear()) as con, pytest.raises(ConfigError, match="has no aggregate") as error:
        con.uql(f"{query} WITH (error = 0.1)").fetchall()
    assert error.value.code == "UQL105" and "recall" in str(error.value.help)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "query",
    [
        'SELECT id FROM notes WHERE "it is good" OR "it is long"',
        'SELECT id FROM (SELECT * FROM notes WHERE "it is good") AS q WHERE id % 2 = 0',
        'SELECT id FROM notes WHERE id IN (SELECT id FROM notes WHERE "it is good")',
        'SELECT id FROM notes WHERE "it is good" UNION SELECT id FROM notes WHERE "it is long"',
    ],
)
def test_the_price_holds_the_scores_of_every_condition_wherever_rows_are_chosen(query) -> None:
    with connected(Cheap(), Dear(), budget=200) as con:
        result = con.uql(f"{query} WITH ({TARGETS})")
        calls = result.quote().calls
        assert calls.low <= result.cost.calls <= calls.high < 1.2 * calls.low


def test_values_that_do_not_fit_behind_a_search_say_that_it_was_paid() -> None:
    with connected(Cheap(), Dear(), budget=300) as con:
        query = (
            f'SELECT id, "the writer" AS writer FROM notes WHERE "it is good" ORDER BY id LIMIT 1900 WITH ({TARGETS}'
        )
        with pytest.raises(BudgetError, match="no more was sent") as caught:
            con.uql(f"{query})").fetchall()
        assert "a smaller LIMIT, or WITH (budget = 'all')" in str(caught.value)
        assert con.uql(f"{query}, budget = 'all')").fetchall()


@pytest.mark.thorough
@pytest.mark.parametrize("targets", [TARGETS, "recall = 0.8", "precision = 0.9"])
def test_a_row_that_a_person_corrected_changes_itself_alone_and_nothing_is_paid_again(targets: str) -> None:
    small, large = Cheap(), Dear()
    with connected(small, large, budget=900, rows=800) as con:
        first = con.uql(f"{QUERY} WITH ({targets})")
        rows = [row[0] for row in first.fetchall()]
        asked = small.calls, large.calls
        corrected = next(i for i in range(len(rows)) if i not in first.unverified)
        correction = first.correct(corrected, False)
        for _ in range(2):
            again = con.uql(f"{QUERY} WITH ({targets})")
            assert [row[0] for row in again.fetchall()] == rows[:corrected] + rows[corrected + 1 :]
            assert (small.calls, large.calls) == asked
        correction.undo()
        assert [row[0] for row in con.uql(f"{QUERY} WITH ({targets})").fetchall()] == rows
        assert (small.calls, large.calls) == asked
