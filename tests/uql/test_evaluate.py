"""`con.evaluate` and `uql eval`: what is said of a text is what the labels say, each answer is paid once, wordings are checked on rows kept apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from row_model import RowModel

import uql
from uql.api.evaluate import Evaluated
from uql.base.errors import BudgetError, DataError, UQLError
from uql.cli import main
from uql.llm.providers.base import Answer, Price, Problem, RowsReply
from uql.llm.questions import Choice, Predicate, Write
from uql.sampling.intervals import wilson


class Reader(RowModel):
    """Says yes to every text with "good" in it; the wording "it is truly good" makes it right."""

    price = Price(1.0, 1.0)

    def __init__(self, name: str = "reader", wordings: tuple[str, ...] = ("it is truly good", "it is bad")) -> None:
        self.name, self.asked, self.wordings = name, 0, wordings
        self.told = ""

    def _one(self, question: Any, row: Any) -> Answer:
        self.asked += 1
        if isinstance(question, Write):
            self.told = question.text
            return Answer({"wordings": list(self.wordings)})
        body = row.cells[0].value
        if "broken" in body:
            return Answer(problem=Problem("refusal", "no"))
        if isinstance(question, Choice):
            return Answer("good" if "good" in body else "bad")
        assert isinstance(question, Predicate)
        good = "good" in body and "not good" not in body if "truly" in question.text else "good" in body
        return Answer(good if "bad" not in question.text else not good)


def connect(model: Any, **settings: Any) -> uql.Connection:
    con = uql.connect(model=model, **{"ledger": ":memory:", **settings})
    con.sql("""
        CREATE TABLE rated AS SELECT 'number ' || i || CASE i % 4 WHEN 0 THEN ' is good' WHEN 1 THEN ' is not good' ELSE ' is dull' END AS body,
        i % 4 = 0 AS label, CASE WHEN i % 4 = 0 THEN 'good' ELSE 'bad' END AS mood FROM range(80) t(i)
    """)
    return con


def only(found: tuple[Evaluated, ...]) -> Evaluated:
    assert len(found) == 1
    return found[0]


class TakesSeveral(Reader):
    """Answers rows together; `obeys`: a row that gives orders gets its answer for all of them."""

    is_local = False

    def __init__(self, *, obeys: bool) -> None:
        super().__init__()
        self.obeys = obeys

    async def answer_rows(self, request: Any) -> RowsReply:
        answers = tuple(tuple(self._one(q, row) for q in request.questions) for row in request.rows)
        ordered = any("every other row" in str(row.cells[0].value) for row in request.rows)
        if self.obeys and ordered:
            answers = tuple((Answer(True),) for _ in request.rows)
        return RowsReply(answers, 1, 1)


@pytest.mark.parametrize("obeys", [False, True])
def test_rows_share_requests_by_default_where_that_was_measured_to_change_no_answer(
    obeys: bool, tmp_path: Path
) -> None:
    ledger = str(tmp_path / "ledger.sqlite")
    with connect(TakesSeveral(obeys=obeys), ledger=ledger) as con:
        evaluation = con.evaluate("rated", "it is good", columns=["body"], packed=4)
        found = only(evaluation.found).packing
        assert found is not None and (found.rows, found.asked, found.changed, found.hostile) == (4, 80, 0, 27)
        assert (found.obeyed > 0) == obeys and found.keeps_answers != obeys
        assert f"rows_per_request = 'auto' takes {1 if obeys else 4}" in str(evaluation)
    with connect(TakesSeveral(obeys=obeys), ledger=ledger, budget="all") as con:
        result = con.uql("SELECT \"the mood\" USING (body)::ENUM('good', 'bad') AS m FROM rated")
        result.fetchall()
        assert (result.cost.requests < result.cost.calls / 2) != obeys


def test_a_model_that_takes_no_two_rows_at_once_is_not_measured_with_several() -> None:
    with connect(Reader()) as con, pytest.raises(DataError, match="reader is asked row by row"):
        con.evaluate("rated", "it is good", columns=["body"], packed=4)


def test_a_condition_has_precision_and_recall_with_wilsons_intervals() -> None:
    with connect(Reader()) as con:
        found = only(con.evaluate("SELECT body, label FROM rated", "it is good").found)
    precision, recall, f1 = (found.measures[name] for name in ("precision", "recall", "f1"))
    assert (precision.value, recall.value) == (0.5, 1.0) and f1.value == pytest.approx(2 / 3)
    assert (precision.low, precision.high) == wilson(0.5, 40, 0.95) and (recall.low, recall.high) == wilson(
        1.0, 20, 0.95
    )
    assert 0.5 < f1.low < 2 / 3 < f1.high < 0.8
    assert (found.rows, found.unknown, found.calls, found.usd) == (80, 0, 80, pytest.approx(160e-6))


def test_each_answer_is_paid_once_and_queries_use_it() -> None:
    model = Reader()
    with connect(model) as con:
        rows = "SELECT body, label FROM rated"
        con.evaluate(rows, "it is good")
        again = only(con.evaluate(rows, "it is good").found)
        assert (again.calls, again.cached, again.seconds, model.asked) == (0, 80, None, 80)
        assert con.uql('SELECT COUNT(*) FROM (SELECT body FROM rated) WHERE "it is good" WITH (exact)').cost.calls == 0


def test_its_calls_are_heard_while_it_runs() -> None:
    with connect(Reader()) as con:
        kinds: list[str] = []
        con.on_event(lambda event: kinds.append(event.kind))
        con.evaluate("SELECT body, label FROM rated", "it is good")
        assert kinds.count("call") == 80


def test_models_and_wordings_stand_side_by_side() -> None:
    with connect(Reader()) as con:
        found = con.evaluate(
            "SELECT body, label FROM rated",
            ["it is good", "it is truly good"],
            models=[Reader("a"), Reader("b")],
            sample=40,
        )
    assert [(one.model, one.text, one.rows) for one in found.found] == [
        (model, text, 40) for model in "ab" for text in ("it is good", "it is truly good")
    ]
    assert {one.measures["precision"].value for one in found.found if "truly" in one.text} == {1.0}
    assert len(str(found).splitlines()) == 6 and "precision" in str(found)


def test_labels_that_are_not_yes_and_no_make_a_choice() -> None:
    with connect(Reader()) as con:
        found = only(con.evaluate("SELECT body, mood FROM rated", "the mood", label="mood").found)
    assert found.measures["accuracy"].value == 0.75
    good, bad = 2 * 20 / (20 + 40), 2 * 40 / (60 + 40)
    assert found.measures["macro_f1"].value == pytest.approx((good + bad) / 2)


def test_a_row_without_an_answer_counts_as_wrong() -> None:
    with connect(Reader()) as con:
        con.sql(
            "CREATE TABLE several AS SELECT 'good' || CASE WHEN i < 3 THEN ' broken' ELSE '' END || i AS body, true AS label FROM range(12) t(i)"
        )
        found = only(con.evaluate("several", "it is good").found)
    assert found.unknown == 3 and found.measures["recall"].value == 0.75 and found.measures["precision"].value == 1.0


def test_improve_shows_wordings_on_rows_that_chose_none(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Reader()
    with connect(model) as con:
        found = con.evaluate("SELECT body, label FROM rated", "it is good", improve=2).improvement
    assert found is not None and found.better
    before, after = found.held_out
    assert (before.text, after.text, before.rows) == ("it is good", "it is truly good", 40)
    assert [one.text for one in found.proposed] == ["it is truly good", "it is good", "it is bad"]
    assert after.measures["f1"].value == 1.0 and found.gain.low > 0.1
    assert "is not good" in model.told, "it is shown what was wrong"


def test_a_proposal_that_is_no_better_is_not_called_better() -> None:
    with connect(Reader(wordings=("it is bad",))) as con:
        found = con.evaluate("SELECT body, label FROM rated", "it is good", improve=1)
    assert found.improvement is not None and not found.improvement.better and "not shown to be better" in str(found)


def test_the_interval_of_recall_holds() -> None:
    """Of samples of 40 labelled rows, with a model that finds 70 % of them."""
    rng, held = np.random.default_rng(3), 0
    for _ in range(400):
        low, high = wilson(float((rng.random(40) < 0.7).mean()), 40, 0.95)
        held += low <= 0.7 <= high
    assert held >= 370


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        ("gone", {}),
        ("rated", {"label": "gone"}),
        ("rated", {"columns": ["gone"]}),
        ("SELECT body, NULL AS label FROM rated", {}),
        ("SELECT body, label FROM rated LIMIT 15", {"improve": 2}),
        ("rated", {"texts": []}),
    ],
)
def test_rows_that_cannot_be_used_are_said(rows: str, options: dict[str, Any]) -> None:
    with connect(Reader()) as con, pytest.raises(DataError) as error:
        con.evaluate(rows, options.pop("texts", "it is good"), **options)
    assert error.value.code == "UQL517"


def test_labelled_rows_in_files_are_read_by_their_pattern(tmp_path: Path) -> None:
    pattern = str(tmp_path / "part*.csv")
    with connect(Reader()) as con:
        with pytest.raises(DataError, match="there is no file"):
            con.evaluate(pattern, "it is good")
        for n in (1, 2):
            con.sql(f"COPY (FROM rated LIMIT {10 * n}) TO '{tmp_path}/part{n}.csv'")
        assert con.evaluate(pattern, "it is good").found[0].rows == 30


def test_max_cost_holds_over_all_of_it() -> None:
    model = Reader()
    with connect(model, max_cost=100e-6, concurrency=1) as con, pytest.raises(BudgetError):
        con.evaluate("SELECT body, label FROM rated", ["it is good", "it is truly good"])
    assert 0 < model.asked <= 50


def test_no_model_is_an_error_of_its_own() -> None:
    with connect(None) as con, pytest.raises(UQLError, match="no model is set"):
        con.evaluate("rated", "it is good", columns=["body"])


def test_the_command_prints_a_table_or_json(own_world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "eval",
        "SELECT id, text, label FROM (SELECT r.id, r.text, l.sentiment = 'pos' AS label FROM reviews r JOIN labels l USING (id))",
    ]
    more = ["the review is positive", "--database", "shop.duckdb", "-m", "oracle:oracle.toml", "--ledger", ":memory:"]
    assert main([*words, *more]) == 0
    out = capsys.readouterr().out
    assert "precision" in out and "1.00 (" in out and "oracle:oracle.toml" in out
    assert main([*words, *more, "--json", "--sample", "4"]) == 0
    found = json.loads(capsys.readouterr().out)["found"]
    assert found[0]["rows"] == 4 and found[0]["measures"]["precision"]["value"] in (1.0, None)
    assert main([*words, *more, "--sample", "few"]) == 2
