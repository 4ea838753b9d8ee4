"""The plans written by hand: UQL that the guard passes, without a literal of an answer, and right with readers of the labels."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from uql.benchmarks.nl import handwritten, plans, worlds
from uql.benchmarks.nl.references import references
from uql.compiler.parser import parse_script
from uql.compiler.syntax import Node, Number, String
from uql.compiler.walk import children
from uql.nl.guard.guard import check_uql
from uql.nl.plan.dag import NodeKind
from uql.nl.plan.nodes.plot import check_plot

SHARED = Path(os.environ.get("UQL_DATA", "../shared/data")).resolve()
needs_data = pytest.mark.skipif(not (SHARED / "rotowire").is_dir(), reason="no data: set UQL_DATA")
TABLES = {
    "rotowire": ("players", "teams", "reports", "players_to_games", "teams_to_games"),
    "countries_flags": ("countries", "profiles", "flags"),
    "artwork": ("paintings",),
}
FEW = {
    "rotowire": {"rotowire-m2ex-029", "rotowire-m2ex-060", "rotowire-m2ex-083"},
    "countries_flags": {"countries-001", "countries-081", "countries-121"},
    "artwork": {"art101-037", "art101-110", "m2ex-25", "m2ex-30"},
}


def literals(node: Node) -> list[str]:
    """The texts and numbers that stand in a statement."""
    found = [str(node.value)] if isinstance(node, String) else [node.text] if isinstance(node, Number) else []
    return found + [text for inner in children(node, queries=True) for text in literals(inner)]


@pytest.mark.thorough
@pytest.mark.parametrize("suite", handwritten.SUITES)
def test_the_guard_passes_every_statement_and_plot(suite: str) -> None:
    for fixture in plans.read(suite):
        passes(suite, fixture)


def passes(suite: str, fixture: plans.Fixture) -> None:
    made: list[str] = []
    for node in fixture.plan.nodes:
        if node.kind is NodeKind.UQL:
            assert check_uql(node.body, [*TABLES[suite], *made], to=[node.name])
            made.append(node.name)
        else:
            shown = json.loads(node.body)["encoding"]
            columns = {shown[axis]["field"]: "DOUBLE" for axis in ("x", "y")}
            assert check_plot(node.body, {node.inputs[0]: columns})
    assert set(fixture.answers) <= set(made)


def answer_values(answer: Any) -> set[str]:
    if isinstance(answer, dict) and "rows" in answer:
        return {str(value) for row in answer["rows"] for value in row}
    if isinstance(answer, dict):
        return {str(value) for held in answer.values() for value in (held if isinstance(held, list) else [held])}
    if isinstance(answer, list):
        return set().union(*map(answer_values, answer))
    return {str(answer)}


@needs_data
@pytest.mark.parametrize("suite", handwritten.SUITES)
def test_no_plan_holds_a_literal_of_its_answer(suite: str) -> None:
    known = {r.id: r for r in references(SHARED, suite)}
    for fixture in plans.read(suite):
        reference = known[fixture.id]
        assert " ".join(reference.question.split()) == fixture.question
        values = {
            value for value in answer_values(reference.answer) if not value.lstrip("-").isdigit() or len(value) > 2
        }
        held = [text for tree, _ in parse_script(_statements(fixture)) for text in literals(tree)]
        for text in held:
            said = text.strip("%").lower()
            assert said in fixture.question.lower() or text not in values, (fixture.id, text)


def _statements(fixture: plans.Fixture) -> str:
    return ";\n".join(node.body for node in fixture.plan.nodes if node.kind is NodeKind.UQL)


@needs_data
def test_there_are_plans_of_every_kind() -> None:
    counts = dict.fromkeys(("all", "text", "image", "two tables", "plot"), 0)
    for suite in handwritten.SUITES:
        known = {r.id: r for r in references(SHARED, suite)}
        for fixture in plans.read(suite):
            counts["all"] += 1
            counts["text"] += "text" in known[fixture.id].modalities
            counts["image"] += "image" in known[fixture.id].modalities
            counts["two tables"] += len(plans.base_tables(fixture)) > 1
            counts["plot"] += fixture.plots
    assert counts["all"] >= 60 and min(counts.values()) >= 20, counts


@pytest.mark.thorough
@needs_data
@pytest.mark.parametrize("suite", handwritten.SUITES)
def test_some_plans_of_each_suite_give_the_reference(suite: str) -> None:
    rows = handwritten.run(suite, SHARED, only=FEW[suite])
    assert len(rows) == len(FEW[suite])
    assert not [(row.question, row.problem) for row in rows if not row.right]
    assert "100.0%" in handwritten.report(suite, rows)


@needs_data
def test_a_wrong_plan_is_found_wrong() -> None:
    known = {r.id: r for r in references(SHARED, "artwork")}
    import pyarrow as pa

    from uql.benchmarks.nl.references import equal

    right = pa.table({"movement": ["Renaissance"]})
    assert equal((right,), known["art101-068"])
    assert not equal((pa.table({"movement": ["neoclassicism"]}),), known["art101-068"])
    assert not equal((pa.table({"movement": ["Renaissance"] * 2}),), known["art101-068"])
    assert not equal((pa.table({"genre": ["Renaissance"]}),), known["art101-068"])


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("suite", handwritten.SUITES)
def test_at_least_98_of_100_answers_equal_the_reference(suite: str) -> None:
    judged = [row for row in handwritten.run(suite, SHARED) if row.right is not None]
    assert sum(bool(row.right) for row in judged) >= 0.98 * len(judged) and len(judged) >= 60


def test_the_stand_in_of_an_image_is_a_png_of_its_own() -> None:
    from io import BytesIO

    pillow = pytest.importorskip("PIL.Image")
    one, two = worlds.stand_in("images/img_1.jpg"), worlds.stand_in("images/img_2.jpg")
    assert pillow.open(BytesIO(one)).size == (8, 8) and one != two and one == worlds.stand_in("images/img_1.jpg")


@needs_data
def test_recorded_answers_about_images_are_replayed_under_their_own_words(tmp_path: Path) -> None:
    import duckdb

    import uql

    world = worlds.artwork(SHARED, tmp_path)
    with uql.connect(model=f"oracle:{world.oracle}", ledger=":memory:", budget="all") as con:
        world.fill(con)
        text = 'SELECT COUNT(*) AS n FROM paintings WHERE "{image} Does the image depict a person?"'
        ((found,),) = con.uql(text).fetchall()
        most = con.uql(
            'SELECT MAX("{image} How many babies are depicted in the image?"::INTEGER) AS n FROM paintings'
        ).fetchall()
    with duckdb.connect() as con_:
        path = SHARED / "artwork" / "recorded_image_answers.parquet"
        where = "WHERE asked = 'Does the image depict a person?' AND model = 'blip-vqa' AND answer = 'yes'"
        assert con_.execute(f"SELECT count(*) FROM '{path}' {where}").fetchone() == (found,)
    assert found > 50 and most == [(4,)]
