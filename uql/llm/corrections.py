"""What people answered in place of a model, the highest authority: corrections kept in the ledger, and rows of the user's own examples.

A person's answer belongs to a question and the content of a row, whichever model is asked: to the text of a condition, of a choice
(its labels may grow) or a score, and to text and type of a value. A correction is never overwritten: a later one goes before it, and
taking it back restores what was in force. As everywhere in the ledger, no row's text is kept, only a keyed hash of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from uql.base.errors import DataError
from uql.llm import codec
from uql.llm.ledger import Ledger, keyed
from uql.llm.ledger_database import Database
from uql.llm.ledger_keys import row_key
from uql.llm.providers.base import Answer
from uql.llm.questions import NONE, Answers, Question, Row
from uql.operators.record import Subject
from uql.operators.replies import Level, OneOf, Value, YesNo
from uql.operators.rows import holes_of


def head_of(question: Question) -> bytes:
    """What a person's answer belongs to, beside the row."""
    kind = kind_of(question)
    reply = question.reply()
    type = reply.type if isinstance(reply, Value) and kind == "extract" else ""
    return repr(("person", kind, question.text, type)).encode("utf-8", "surrogatepass")


def kind_of(question: Question) -> str:
    """predicate, choice, score or extract; a value of the type BOOLEAN is a predicate."""
    reply = question.reply()
    whether = isinstance(reply, Value) and reply.type.upper() in ("BOOLEAN", "BOOL")
    return "predicate" if whether else question.operator.key.name.lower()


def content_of(question: Question, row: Row) -> bytes:
    """The content of a row as this question sees it: of the values in holes those that it names alone."""
    hole_names = holes_of(question.text)
    return row_key(replace(row, holes=tuple((name, value) for name, value in row.holes if name in hole_names)))


def read(question: Question, value: Any) -> Answer:
    """A person's answer in the form of a model's. Raises: DataError (UQL524) where it does not fit the question."""
    if value is None:  # the row does not say
        return Answer(None)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | dict | str | bool | int | float):
        plain = value
    else:  # a date, a decimal …: read from its text, as a model's is
        plain = str(value)
    answer = question.reply().read(plain)
    if answer.problem is not None:
        raise DataError(f'"{question.text}": {answer.problem.message}', code="UQL524")
    return answer


class People:
    """Answers of people by question and row content."""

    def __init__(self, secret: bytes, rows: Iterable[tuple[bytes, bytes, bytes, float]] = ()) -> None:
        self._secret = secret
        self._heads: set[bytes] = set()
        self._answers: dict[bytes, tuple[Answer, float]] = {}  # and when it was given
        for key, head, answer, at in rows:
            with suppress(ValueError, TypeError):  # a damaged one
                self._answers[key] = codec.loads(answer), float(at)
                self._heads.add(head)

    @classmethod
    def of(cls, ledger: Ledger) -> People:
        """The corrections of a ledger that are in force."""
        return cls(ledger.secret, ledger.work(_in_force))

    def knows(self, question: Question) -> bool:
        """Has a person answered this question of any row?"""
        return bool(self._heads) and question.operator.subject is Subject.ROW and self._head(question) in self._heads

    def teach(self, question: Question, rows: Sequence[Row], answers: Sequence[Answer]) -> None:
        """Answers of this run alone: a correction in the ledger goes before them.

        Args:
            question: that they answer.
            rows: (n,) one with nothing to show is left out.
            answers: (n,) one a row.
        """
        self._heads.add(self._head(question))
        for row, answer in zip(rows, answers, strict=True):
            if not row.is_null:
                self._answers.setdefault(self._key(question, row), (answer, 0.0))

    def answers(
        self, question: Question, rows: Sequence[Row], *, since: float = 0.0, until: float = math.inf
    ) -> dict[int, Answer]:
        """The answers of people to a question by the row's position: those given from `since` on and before `until`.

        Args:
            question: of any kind.
            rows: (n,) as shown to the model.
            since, until: seconds since the epoch; the first is in, the last is not.
        """
        if not self.knows(question):
            return {}
        candidates = ((i, self._answers.get(self._key(question, row))) for i, row in enumerate(rows) if not row.is_null)
        return {
            i: h[0] for i, h in candidates if h is not None and since <= h[1] < until and _fits(question, h[0].value)
        }

    def _head(self, question: Question) -> bytes:
        return keyed(self._secret, head_of(question))

    def _key(self, question: Question, row: Row) -> bytes:
        return keyed(self._secret, head_of(question), content_of(question, row))


def _fits(question: Question, value: Any) -> bool:
    """Is the answer possible here? The labels of a choice are others in another query."""
    reply = question.reply()
    if not isinstance(reply, OneOf) or value is None:
        return True
    return isinstance(value, list) == reply.many and reply.offers(value)


def overruled(question: Question, answers: Answers, corrections: dict[int, Answer]) -> Answers:
    """The answers with those of people in the place of the model's.

    Args:
        answers: (n,) of the model.
        corrections: by position in `answers`.
    """
    if not corrections:
        return answers
    values, probabilities = list(answers.values), answers.probabilities.copy()
    distributions = None if answers.distributions is None else answers.distributions.copy()
    for i, answer in corrections.items():
        values[i] = answer.value
        certain = isinstance(question.reply(), YesNo) and answer.value is False
        probabilities[i] = math.nan if answer.value is None else float(not certain)
        if distributions is not None:
            distributions[i] = _one_hot(question, answer.value, distributions.shape[1])
    failures = tuple(f for f in answers.failures if f.index not in corrections)
    return Answers(values, probabilities, failures, distributions, frozenset(corrections))


def _one_hot(question: Question, value: Any, width: int) -> Any:
    shares = np.full(width, math.nan)
    reply = question.reply()
    if isinstance(reply, OneOf) and isinstance(value, str):
        options = [*reply.labels, NONE]
        shares = np.array([float(option == value) for option in options[:width]])
    elif isinstance(reply, Level) and value is not None:
        shares = np.array([float(level == round(value)) for level in range(width)])
    return shares


# ------------------------------------------------------------------------------------------------------- in the ledger
def _in_force(db: Database) -> list[tuple[bytes, bytes, bytes, float]]:
    return db.execute(
        "SELECT key, head, CAST(answer AS BLOB), at FROM corrections WHERE id IN "
        "(SELECT max(id) FROM corrections WHERE undone IS NULL GROUP BY key)"
    ).fetchall()


def correct(
    ledger: Ledger, question: Question, row: Row, answer: Answer, *, before: str, model: str, run: str, source: str
) -> int:
    """Keeps a person's answer. Returns its number, by which it is taken back.

    Args:
        before: what the model had answered, as the ledger writes it.
        run: whose result was corrected.
    """
    head, content = head_of(question), content_of(question, row)
    values = (
        ledger.key(head, content), ledger.key(head), ledger.now(), kind_of(question), question.text,
        codec.dumps(answer), before, model, run, source,
    )  # fmt: skip

    def work(db: Database) -> int:
        db.execute(
            "INSERT INTO corrections (key, head, at, kind, text, answer, before, model, run, source) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )
        cursor = db.execute("SELECT MAX(id) FROM corrections WHERE key = ? AND at = ?", (values[0], values[2]))
        return int(cursor.fetchone()[0])

    return ledger.work(work, atomic=True)


def withdraw(ledger: Ledger, number: int) -> None:
    """Takes a correction back: it stays listed, and what was in force before it is again.

    Raises: DataError (UQL524) where there is none of this number, or it was taken back already.
    """

    def work(db: Database) -> int:
        sql = "UPDATE corrections SET undone = ? WHERE id = ? AND undone IS NULL"
        return db.execute(sql, (ledger.now(), number)).rowcount

    if not ledger.work(work):
        raise DataError(
            f"there is no correction {number} in force", code="UQL524", help="FROM uql_corrections() lists them"
        )


def touched(ledger: Ledger, since: float) -> People:
    """What people answered, or took back, after a moment (seconds since the epoch): only which rows, the answers may be others now."""
    sql = "SELECT key, head, CAST(answer AS BLOB), at FROM corrections WHERE at > ? OR undone > ?"
    return People(ledger.secret, ledger.work(lambda db: db.execute(sql, (since, since)).fetchall()))
