"""A hole of a text is filled with the value of its column, however the column is written and wherever a rule moves it."""

from __future__ import annotations

from typing import Any

import pytest
from row_model import RowModel

import uql
from uql.llm.providers.base import Answer
from uql.operators.rows import filled


class Reader(RowModel):
    """Says yes, and keeps the questions with their holes filled."""

    def __init__(self) -> None:
        self.questions: set[str] = set()

    def _one(self, question: Any, row: Any) -> Answer:
        self.questions.add(filled(question, row))
        return Answer(True, 1.0)


@pytest.fixture
def model() -> Reader:
    return Reader()


@pytest.fixture
def con(model: Reader) -> uql.Connection:
    con = uql.connect(model=model, ledger=":memory:", budget="all")
    con.execute(
        "CREATE TABLE towns AS SELECT i AS id, 'town ' || i AS Name, [10 * i, 10 * i + 1] AS codes FROM range(2) t(i)"
    )
    con.execute(
        "CREATE TABLE lands AS SELECT i AS id, CASE WHEN i > 0 THEN 'land ' || i END AS name FROM range(2) t(i)"
    )
    return con


TOWNS = {'it is in "town 0"', 'it is in "town 1"'}
CODES = {f'it is in "{code}"' for code in (0, 1, 10, 11)}


@pytest.mark.parametrize(
    ("statement", "questions"),
    [
        ('SELECT id FROM towns WHERE "it is in {name}"', TOWNS),
        ('SELECT id FROM towns WHERE "it is in { Name }"', TOWNS),
        ('SELECT id FROM towns WHERE "it is in {Towns.NAME}"', TOWNS),
        ('SELECT id FROM towns WHERE "it is in {main.towns.name}"', TOWNS),
        ('SELECT id FROM towns, unnest(codes) AS c(code) WHERE "it is in {c.code}"', CODES),
        ('SELECT id FROM towns, LATERAL (SELECT Name AS n) AS l WHERE "it is in {l.n}"', TOWNS),
        ('SELECT id FROM towns AS t WHERE id IN (SELECT id FROM towns AS t WHERE "it is in {t.name}")', TOWNS),
        ('SELECT id FROM (SELECT id, Name FROM towns AS t WHERE "it is in {T.Name}") AS s WHERE "it is in {s.Name}"', TOWNS),
        ('SELECT id FROM lands AS a JOIN lands AS b USING (id) WHERE "{a.name}, not {B.name}"', {'"land 1", not "land 1"'}),
        ('SELECT a.id FROM lands AS a LEFT JOIN lands AS b ON "{a.id} of {b.id}"', {f'"{i}" of "{j}"' for i in "01" for j in "01"}),
    ],
)  # fmt: skip
def test_each_hole_has_its_value(con: uql.Connection, model: Reader, statement: str, questions: set[str]) -> None:
    con.uql(statement).fetchall()
    assert model.questions == questions


def test_a_question_of_holes_is_asked_unless_all_of_a_row_are_null(con: uql.Connection, model: Reader) -> None:
    rows = con.uql(
        'SELECT id, "{name} is number {id}"::BOOLEAN AS so, "{name} is far"::BOOLEAN AS far FROM lands'
    ).fetchall()
    assert rows == [(0, True, None), (1, True, True)]
    assert model.questions == {'"unknown" is number "0"', '"land 1" is number "1"', '"land 1" is far'}


def test_a_question_with_other_holes_than_those_beside_it_is_paid_once(con: uql.Connection) -> None:
    con.uql('SELECT id, "{name} is number {id}"::BOOLEAN AS so, "{name} is far"::BOOLEAN AS far FROM towns').fetchall()
    assert con.uql('SELECT "{name} is far"::BOOLEAN AS far FROM towns').cost.calls == 0


def test_a_pair_with_a_null_in_the_only_hole_of_a_side_is_not_asked(con: uql.Connection, model: Reader) -> None:
    rows = con.uql(
        'SELECT t.id, l.id FROM towns t LEFT JOIN lands l ON t.id = l.id AND "{t.Name} is in {l.name}"'
    ).fetchall()
    assert rows == [(0, None), (1, 1)]
    assert model.questions == {'"town 1" is in "land 1"'}
