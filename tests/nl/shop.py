"""What the tests of questions share: a small database, and a connection whose model follows a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import duckdb
from llm.scripted import Scripted as Reader

import uql
from uql.api.connection import Connection
from uql.llm.providers.base import Answer, Request
from uql.llm.providers.scripted import Scripted, ScriptedModel
from uql.llm.questions import Choice, Extract, Predicate, Score

PLAN = "planner"


def database() -> duckdb.DuckDBPyConnection:
    """Three shops, thirty letters to them of which every third complains, and a private column."""
    con = duckdb.connect()
    con.execute("CREATE TABLE shops (id INTEGER, name VARCHAR, city VARCHAR, owner_phone VARCHAR)")
    con.execute(
        "INSERT INTO shops VALUES (1, 'Ada', 'Leeds', '0113-1'), (2, 'Bo', 'York', '01904-2'), (3, 'Cy', 'Leeds', '0113-3')"
    )
    con.execute("COMMENT ON COLUMN shops.owner_phone IS 'private: never shown'")
    con.execute("COMMENT ON TABLE shops IS 'shops of the north'")
    con.execute("CREATE TABLE letters (shop_id INTEGER, year INTEGER, letter VARCHAR)")
    con.execute(
        "INSERT INTO letters SELECT 1 + i % 3, 2000 + i % 4, CASE WHEN i % 3 = 0 THEN 'I complain about the late delivery, letter ' "
        "ELSE 'Thank you for the lovely and very quick delivery, letter ' END || i FROM range(30) t(i)"
    )
    return con


def read(request: Request, _: int) -> list[Answer]:
    """Answers about a row that follow from its text."""
    text = " ".join(str(cell.value) for cell in request.row.cells)
    said: list[Answer] = []
    for question in request.questions:
        match question:
            case Predicate():
                yes = "complain" in text if "complain" in question.text else "Thank" in text
                said.append(Answer(yes, float(yes)))
            case Choice():
                said.append(Answer(question.labels[len(text) % len(question.labels)]))
            case Score():
                said.append(Answer(float(len(text) % question.levels)))
            case Extract():
                said.append(Answer(float(text.rsplit(" ", 1)[-1]) if question.type == "DOUBLE" else text.split()[0]))
    return said


def uql_node(name: str, sql: str) -> dict[str, Any]:
    return {"kind": "uql", "name": name, "sql": sql}


def plan(*nodes: dict[str, Any], cannot: str = "", **more: Any) -> Scripted:
    return Scripted(PLAN, {"cannot": cannot, "nodes": list(nodes)}, **more)


class Connected:
    """A connection, the model that plans (`asked` is what it was asked), and the one that reads rows (`calls`).

    With `small` the model is a small one, whose plans are decided by a vote.
    """

    def __init__(
        self, replies: Sequence[Scripted], *, latency_s: float = 0.0, small: bool = False, **settings: Any
    ) -> None:
        self.reader = Reader(read, latency_s=latency_s, concurrency=64)
        self.reader.is_local = True
        self.model = ScriptedModel(replies, readers=self.reader)
        self.model.capabilities = replace(self.model.capabilities, small=small)
        self.con: Connection = uql.attach(database(), model=self.model, ledger=":memory:", **settings)

    def tasks(self) -> list[str]:
        return [task for task, _ in self.model.asked]

    def prompts(self, task: str) -> list[str]:
        return [prompt for name, prompt in self.model.asked if name == task]
