"""Traces: every capable adapter runs on every sub-query; the commands around it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import duckdb
import pytest
from nl.adapter_world import run_of, scripted
from typer.testing import CliRunner

import uql
from uql.base.errors import DataError
from uql.nl.adapters import open_adapters
from uql.nl.ask.answer_metrics import semantic_hit
from uql.nl.plan.dag import Operator
from uql.nl.routers import load_router
from uql.nl.routers.collect import Training, collect, read_training
from uql.nl.routers.traces import Trace, read_traces, write_traces


def reply(task: str, text: str, request: Any) -> Any:
    if task == "uql":
        return {"sql": "SELECT COUNT(*) AS n FROM teams"}
    if task == "structgpt_schema":
        return {"table": "teams", "columns": ["name"]}
    if task == "structgpt_rows":
        return {"conditions": []}
    return {"found": True, "answer": "the teams are three", "sources": ["teams"]}


def test_every_capable_adapter_runs_on_every_sub_query() -> None:
    with uql.connect(model=scripted(reply), ledger=":memory:") as con:
        con.sql("SELECT * FROM (VALUES ('Heat'), ('Suns'), ('Jazz')) t(name)").create("teams")
        training = [
            Training("How many teams are there?", "3", Operator.TABLE, "table", ("teams",)),
            Training("How many teams do the pictures show?", "three", Operator.IMAGE, "image"),
        ]
        told: list[Trace] = []
        traces = collect(con.session, training, open_adapters(), tell=told.append)
    assert told == traces
    assert [(t.operator, t.adapter, t.answer) for t in traces] == [
        ("TableAnalytics", "uql", "3"),
        ("TableAnalytics", "single_model", "the teams are three"),
        ("TableAnalytics", "structgpt", "the teams are three"),
        ("ImageAnalytics", "uql", "3"),
        ("ImageAnalytics", "single_model", "the teams are three"),
    ]
    assert [round(t.quality, 3) for t in traces] == [1.0, 0.0, 0.0, 0.0, round(0.35 * 0.4 + 0.35 + 0.15 + 0.15, 3)]
    assert all(t.calls >= 1 for t in traces)


def test_training_sub_queries_are_read_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text('subquery,answer,operator,sources\nHow many?,3,TableAnalytics,"teams,reports"\n')
    assert read_training(path) == [Training("How many?", "3", Operator.TABLE, "table", ("teams", "reports"))]
    path.write_text("subquery,answer,operator\nHow many?,3,Cooking\n")
    with pytest.raises(DataError, match="row 1: 'Cooking'"):
        read_training(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_training(tmp_path / "none.parquet")


def test_the_commands_train_a_router_that_can_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wordllama")
    from uql.command.router import app

    monkeypatch.chdir(tmp_path)
    made = []
    for i in range(12):
        for name, q in (("uql", 0.9 if i % 2 else 0.2), ("single_model", 0.2 if i % 2 else 0.9)):
            text = f"How many games were in {2000 + i}?" if i % 2 else f"Describe the mood of picture {i}."
            made.append(Trace(text, "TextAnalytics", "text", name, q, q, q, q))
    write_traces("traces.parquet", made)
    runner = CliRunner()
    done = runner.invoke(app, ["train", "traces.parquet"])
    assert done.exit_code == 0 and "router.json" in done.output
    ranked = load_router("router.json").rank("How many games were in 1999?", Operator.TEXT, ["single_model", "uql"])
    assert ranked == ["uql", "single_model"]
    done = runner.invoke(app, ["train", "traces.parquet", "--kind", "stat", "-o", "stat.json"])
    assert done.exit_code == 0 and "TextAnalytics: " in done.output
    done = runner.invoke(
        app, ["train", "traces.parquet", "--from", "router.json", "--adapters", "uql,single_model", "-o", "again.json"]
    )
    assert done.exit_code == 0
    assert runner.invoke(app, ["train", "traces.parquet", "--kind", "best"]).exit_code == 2
    assert runner.invoke(app, ["collect", "none.duckdb", "q.csv"]).exit_code == 2


def test_collect_writes_traces_of_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from uql.command import router

    monkeypatch.chdir(tmp_path)
    with duckdb.connect("d.duckdb") as con:
        con.sql("SELECT 'Heat' AS name").create("teams")
    Path("q.csv").write_text("subquery,answer,operator\nHow many teams?,1,TableAnalytics\n")
    connect = uql.connect
    monkeypatch.setattr(uql, "connect", lambda path, model: connect(path, model=scripted(reply), ledger=":memory:"))
    done = CliRunner().invoke(router.app, ["collect", "d.duckdb", "q.csv", "--adapters", "uql,structgpt"])
    assert done.exit_code == 0, done.output
    assert [(t.adapter, t.answer) for t in read_traces("traces.parquet")] == [
        ("uql", "1"),
        ("structgpt", "the teams are three"),
    ]


def test_the_judge_is_asked_only_where_words_do_not_settle_it() -> None:
    model = scripted(lambda task, text, request: {"same": "New York" in text})

    async def run() -> list[float]:
        with run_of(model, "teams") as ctx:
            await ctx.gate.provider()
            said = [
                await semantic_hit(ctx, "Where?", "NYC", "New York"),
                await semantic_hit(ctx, "Where?", "in New York, I think", "New York"),
                await semantic_hit(ctx, "Where?", "Rome", "Paris"),
                await semantic_hit(ctx, "Where?", "", "Paris"),
            ]
            await ctx.gate.aclose()
            return said

    assert asyncio.run(run()) == [1.0, 1.0, 0.0, 0.0] and len(model.calls) == 2
