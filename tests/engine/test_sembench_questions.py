"""All 55 SemBench questions written in UQL parse, bind and plan over empty tables of their shape, with the kernels that are expected.

A fixture is `tests/golden/sembench/<scenario>/<id>.uql`: the question as a comment, the kernels of its plan, the query. The tables
of a scenario are in its `tables.sql`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import uql
from uql.compiler.binder import bind
from uql.compiler.parser import parse
from uql.compiler.physical import Block, PhysicalPlan, UnionPlan
from uql.compiler.planner import plan
from uql.compiler.virtual import VirtualColumn
from uql.operators import CONDITION, GROUP, LABEL, SCORE, SUMMARY, VALUE

FOLDER = Path(__file__).parents[1] / "golden" / "sembench"
FIXTURES = sorted(FOLDER.glob("*/*.uql"))
COUNTS = {"animals": 10, "cars": 10, "ecomm": 14, "mmqa": 11, "movie": 10}
KERNELS = {
    VALUE: "sem_map",
    LABEL: "sem_classify",
    GROUP: "sem_group",
    SCORE: "sem_order",
    SUMMARY: "sem_agg",
}


@pytest.fixture(scope="module")
def connections():
    made = {}
    for folder in sorted(FOLDER.iterdir()):
        made[folder.name] = con = uql.connect(ledger=":memory:", model="oracle:none")
        for statement in (folder / "tables.sql").read_text().split(";\n"):
            if statement.strip():
                con.uql(statement).run()
    return made


def asked(physical: PhysicalPlan) -> Iterator[VirtualColumn]:
    """Every virtual column that a plan asks."""
    if isinstance(physical, UnionPlan):
        yield from asked(physical.left)
        yield from asked(physical.right)
    elif isinstance(physical, Block):
        outer = physical.scan.join.stages if physical.scan.join else ()
        for stage in (*outer, *physical.requests):
            yield from stage.columns
        yield from physical.values.groups
        yield from physical.summaries.columns
        for _, below in (*physical.inner.derived, *physical.inner.nested):
            yield from asked(below)


def kernel(column: VirtualColumn) -> str:
    if column.operator is CONDITION:
        return "sem_join" if len({c.table for c in (*column.reads, *column.holes)}) > 1 else "sem_filter"
    return KERNELS[column.operator]


def columns_of(path, connections):
    con, text = connections[path.parent.name], path.read_text()
    bound = bind(parse(text), con.session.catalog, text=text, settings=con.session.settings)
    return list(asked(plan(bound.query)))


def test_there_is_a_fixture_for_each_of_the_55_questions():
    assert {folder: len(list((FOLDER / folder).glob("*.uql"))) for folder in COUNTS} == COUNTS
    assert len(FIXTURES) == 55


@pytest.mark.one_in(4)
@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_question_plans_with_the_kernels_expected(path, connections):
    expected = re.search(r"^-- kernels: (.*)$", path.read_text(), re.MULTILINE)[1].split(", ")
    assert sorted({kernel(c) for c in columns_of(path, connections)}) == expected
    assert connections[path.parent.name].uql(path.read_text()).explain()


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_no_question_is_pasted_whole_into_one_text(path, connections):
    question = path.read_text().splitlines()[0].removeprefix("-- ")
    words = set(re.findall(r"\w+", question.lower()))
    for column in columns_of(path, connections):
        said = set(re.findall(r"\w+", re.sub(r"\{[^{}]*\}", "", column.text).lower()))
        assert len(said & words) < 0.8 * len(words)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_pictures_and_sounds_are_shown_and_are_no_part_of_a_question(path, connections):
    for column in columns_of(path, connections):
        assert not {c.name for c in column.holes} & {"image", "audio"}
