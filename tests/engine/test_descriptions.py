"""`describe`: a line that says what a quoted text means, from comments or from the model; kept, shown in EXPLAIN and in prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from llm.scripted import Scripted as Reader

import uql
from uql.llm.prompts import fused
from uql.llm.providers.base import Answer, Request
from uql.llm.providers.scripted import Scripted, ScriptedModel

QUERY = 'SELECT id FROM reviews WHERE "the review is positive" WITH (describe, budget = 50)'
SAID = "praise outweighs blame"


def _yes(request: Request, _: int) -> list[Answer]:
    return [Answer(True, 1.0) for _ in request.questions]


def _connect(*replies: Scripted, ledger: str = ":memory:", comment: str = "", path: str = ":memory:") -> Any:
    database = duckdb.connect(path)
    database.execute(
        "CREATE TABLE IF NOT EXISTS reviews AS SELECT i AS id, 'a long review of the film, number ' || i AS body FROM range(4) t(i)"
    )
    database.execute("COMMENT ON COLUMN reviews.id IS 'private'")
    if comment:
        database.execute(f"COMMENT ON COLUMN reviews.body IS '{comment}'")
    reader = Reader(_yes)
    reader.is_local = True
    model = ScriptedModel(replies, readers=reader)
    return uql.attach(database, model=model, ledger=ledger), model, reader


def _explained(con: Any) -> str:
    return "\n".join(line for (line,) in con.uql(f"EXPLAIN {QUERY}").fetchall())


def test_a_text_is_described_once_and_asked_with_its_description() -> None:
    con, model, reader = _connect(Scripted("describe", {"description": SAID}))
    before = _explained(con)
    assert "the model describes it first: 1 call" in before and "Calls: 5" in before
    assert con.uql(QUERY).cost.calls == 5
    ((task, prompt),) = model.asked
    assert task == "describe" and '"the review is positive"' in prompt and '"body" VARCHAR' in prompt
    assert '"id"' not in prompt  # private
    (question,) = reader.calls[0].questions
    assert question.text == "the review is positive" and question.meaning == SAID
    assert f'What is meant: "{SAID}"' in fused.instruction(question, reader.calls[0].row)
    after = _explained(con)
    assert f'"the review is positive": described by the model: {SAID}' in after and "0 new calls" in after
    assert con.uql(QUERY).cost.calls == 0 and len(model.asked) == 1


def test_a_description_is_kept_for_another_connection(tmp_path: Path) -> None:
    where = {"ledger": str(tmp_path / "ledger.sqlite"), "path": str(tmp_path / "reviews.duckdb")}
    con, _, _ = _connect(Scripted("describe", {"description": SAID}), **where)
    con.uql(QUERY).fetchall()
    con.close()
    con, model, reader = _connect(**where)
    assert SAID in _explained(con)
    con.uql(QUERY.replace("SELECT id", "SELECT body")).fetchall()
    assert not model.asked and not reader.calls


def test_comments_are_the_description_where_there_are_some() -> None:
    con, model, reader = _connect(comment="what viewers wrote by hand")
    assert "described by its columns' comments: body: what viewers wrote by hand" in _explained(con)
    con.uql(QUERY).fetchall()
    assert not model.asked
    assert reader.calls[0].questions[0].meaning == "body: what viewers wrote by hand"


def test_without_the_setting_nothing_is_described() -> None:
    con, model, reader = _connect(comment="what viewers wrote by hand")
    con.uql(QUERY.replace("describe, ", "")).fetchall()
    assert not model.asked and reader.calls[0].questions[0].meaning == ""


@pytest.mark.parametrize("reply", [Scripted("describe", fail="server"), Scripted("describe", {"description": ""})])
def test_a_text_without_a_proposal_is_asked_as_it_is(reply: Scripted) -> None:
    con, _, reader = _connect(reply)
    assert len(con.uql(QUERY).fetchall()) == 4
    assert reader.calls[0].questions[0].meaning == ""


def test_other_descriptions_have_other_answers() -> None:
    con, _, reader = _connect(Scripted("describe", {"description": SAID}))
    con.uql(QUERY).fetchall()
    con.uql(QUERY.replace("describe, ", "")).fetchall()
    assert len(reader.calls) == 8
