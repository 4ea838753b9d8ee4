"""A plan of a model, and a client of the MCP server, read files that rows of the database name, and none that a statement names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest
from llm.scripted import Scripted
from nl.shop import Connected, plan, uql_node

from uql.command.query import connect
from uql.llm.providers.base import Request

PAPERS = """
CREATE TABLE notes AS SELECT 1 AS id, 'secret.html' AS note;
CREATE TABLE papers AS SELECT 1 AS id, 'given.html' AS paper;
COMMENT ON COLUMN papers.paper IS 'document: on paper';
COMMENT ON COLUMN notes.note IS 'text of the note'
"""
NAMED = """
SELECT q::DOCUMENT AS paper FROM (SELECT 'secret.html' AS q FROM papers)
SELECT q::DOCUMENT AS paper FROM (SELECT ' secret' || '.html ' AS q FROM papers)
SELECT q::DOCUMENT AS paper FROM (SELECT replace(paper, 'given', 'secret') AS q FROM papers)
SELECT note::DOCUMENT AS paper FROM notes
"""
GIVEN = "SELECT paper FROM papers"
COMPLAINS = 'SELECT count(*) AS n FROM ({}) AS held WHERE "the paper complains"'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "secret.html").write_text("<p>Nobody but the owner of the folder is to read this page.</p>")
    (tmp_path / "given.html").write_text("<p>We complain about the paper, in a page that a row names.</p>")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(calls: Sequence[Request]) -> str:
    """All that the reading model was shown."""
    return " ".join(str(cell.value) for request in calls for cell in request.row.cells)


@pytest.mark.parametrize("inner", [*NAMED.strip().splitlines(), GIVEN])
def test_a_plan_reads_the_files_that_rows_name_alone(inner: str) -> None:
    asked = Connected([plan(uql_node("found", COMPLAINS.format(inner)))])
    asked.con.execute(PAPERS)
    asked.con.ask("How many papers complain?")
    assert "Nobody but the owner" not in shown(asked.reader.calls)
    assert ("in a page that a row names" in shown(asked.reader.calls)) == (inner == GIVEN)


@pytest.mark.thorough
@pytest.mark.parametrize("files", [True, False])
@pytest.mark.parametrize("inner", [*NAMED.strip().splitlines(), GIVEN])
def test_a_client_of_the_mcp_server_reads_other_files_only_with_files(folder: Path, inner: str, files: bool) -> None:
    with duckdb.connect(folder / "shop.duckdb") as duck:
        duck.execute(PAPERS)
    model = Scripted()
    with connect(str(folder / "shop.duckdb"), {"ledger": ":memory:"}, read_only=True, files=files) as con:
        con.session.model = model
        con.uql(COMPLAINS.format(inner)).run()
        (page,) = con.uql("SELECT error FROM pages('secret.html')").fetchall()
    assert ("Nobody but the owner" in shown(model.calls)) == (files and inner != GIVEN)
    assert ("in a page that a row names" in shown(model.calls)) == (inner == GIVEN)
    assert ("is not read" in page[0]) == (not files)
