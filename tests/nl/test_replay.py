"""Questions of four steps and more, planned over HTTP by a model that replays plans written by hand: right in every mode, and after a fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from nl.orchards import PLANS, world

import uql
from uql.base.errors import DataError
from uql.benchmarks.nl import plans, replay_server
from uql.benchmarks.nl.replay import FAULTS, Replay
from uql.cli import main
from uql.llm.providers.anthropic_api import Anthropic
from uql.llm.providers.base import Provider
from uql.llm.providers.gemini_api import Gemini
from uql.llm.providers.openai_api import OpenAI
from uql.llm.providers.oracle import Oracle
from uql.nl.plan.dag import NodeKind

FORMS = {
    f.id: f for f in plans.read_file(Path(__file__).parent / "plans" / "contract.uql")
}  # of an answer: value, list …
MODES = ("dag", "interleaved", "meta")
PROTOCOLS = ("chat", "messages", "responses", "contents")


class Farm:
    """The tables, their truth, and a model that plans behind each protocol."""

    def __init__(self, folder: Path, address: str, service: replay_server.Service) -> None:
        self.tables, self.oracle, self.db = world(folder)
        self.address, self.service = address, service

    def planner(self, protocol: str) -> Provider | str:
        match protocol:
            case "messages":
                return Anthropic("replay", api_key="none", url=self.address)
            case "responses":
                return OpenAI("replay", api_key="none", url=f"{self.address}/v1", api="responses")
            case "contents":
                return Gemini("replay", api_key="none", url=self.address)
        return f"{self.address}/v1#replay"

    def ask(
        self,
        fixture: plans.Fixture,
        mode: str,
        protocol: str,
        fault: Any = None,
        *,
        model: Any = None,
        others: Sequence[plans.Fixture] = PLANS,
    ) -> Any:
        self.service.replay = Replay(others, fault=fault)
        con = uql.connect(model=model or f"oracle:{self.oracle}", ledger=":memory:", budget="all")
        try:
            for name, table in self.tables.items():
                con.register(name, table)
            return con.ask(fixture.question, mode=mode, planner=self.planner(protocol), aggregate=False)
        finally:
            con.close()

    def is_right(self, fixture: plans.Fixture, answer: Any) -> bool:
        """One result has the rows of the truth, and its figures are exact."""
        want = _rows(self.db.execute(fixture.truth).fetchall())
        tables = [output.table for output in answer.results.values() if output.table is not None]
        return answer.exact and any(_rows(table.to_pydict().values(), columns=True) == want for table in tables)


def _rows(values: Any, *, columns: bool = False) -> Counter[tuple[str, ...]]:
    rows = zip(*values, strict=True) if columns else values
    return Counter(tuple(f"{v:.6g}" if isinstance(v, int | float) else str(v) for v in row) for row in rows)


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Any:
    service = replay_server.Service(Replay(PLANS))
    with replay_server.served(service) as address:
        yield Farm(tmp_path_factory.mktemp("farm"), address, service)


def test_the_plans_are_chains_with_long_lists_between_steps_plots_json_and_images() -> None:
    assert len(PLANS) == 30 and all(len(fixture.plan.nodes) >= 4 and fixture.truth for fixture in PLANS)
    kinds = Counter(kind for f in PLANS for kind in {node.kind for node in f.plan.nodes})
    assert kinds[NodeKind.PLOT] >= 8 and kinds[NodeKind.PYTHON] >= 4
    assert sum("photo shows" in fixture.text for fixture in PLANS) >= 8


@pytest.mark.thorough
@pytest.mark.parametrize("n", range(len(PLANS)), ids=lambda n: PLANS[n].id)
def test_each_question_is_right_in_one_of_the_modes(farm: Farm, n: int) -> None:
    check(farm, n, MODES[n % 3], PROTOCOLS[n // 3 % 4])


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", range(len(PLANS)), ids=lambda n: PLANS[n].id)
def test_every_question_is_right_in_every_mode_by_every_protocol(farm: Farm, n: int, mode: str, protocol: str) -> None:
    check(farm, n, mode, protocol)


def check(farm: Farm, n: int, mode: str, protocol: str) -> None:
    fixture = PLANS[n]
    answer = farm.ask(fixture, mode, protocol)
    assert farm.is_right(fixture, answer), (answer.cannot, answer.text, answer.steps)
    if mode == "meta":
        return
    outputs = {step.node: answer.results[step.node] for step in answer.steps if step.node in answer.results}
    assert max(output.rows or 0 for output in outputs.values()) > 50 or "region" in fixture.question
    assert bool(answer.plots) == fixture.plots
    if "JSON" in fixture.question:
        held = outputs["by_region"].value
        assert set(held) <= {"North", "South", "East", "West"} and all(held.values())
        assert answer.value == held


@pytest.mark.thorough
@pytest.mark.parametrize("n", range(len(PLANS)), ids=lambda n: PLANS[n].id)
def test_each_question_is_right_after_a_fault(farm: Farm, n: int) -> None:
    """Each question with one of the three faults in one of the three modes."""
    fixture, mode, fault = PLANS[n], MODES[(n + 1) % 3], FAULTS[n // 3 % 3]
    answer = farm.ask(fixture, mode, PROTOCOLS[n % 4], fault)
    assert farm.service.replay.erred == {fixture.id}
    assert farm.is_right(fixture, answer), (answer.cannot, answer.text, answer.steps)


# ---------------------------------------------------------------------------------------------------------- the contract
@pytest.mark.thorough
@pytest.mark.one_in(17)  # each mode by each protocol
@pytest.mark.parametrize("fault", [None, *FAULTS])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("form", FORMS)
def test_each_form_of_answer_in_each_mode_by_each_protocol(
    farm: Farm, form: str, mode: str, protocol: str, fault: Any
) -> None:
    """Value, list, table, JSON, plot and image, also after a fault. Mode `meta` draws nothing and runs no Python: it gives the rows."""
    fixture = FORMS[form]
    answer = farm.ask(fixture, mode, protocol, fault, others=list(FORMS.values()))
    assert farm.is_right(fixture, answer), (answer.cannot, answer.text, answer.steps)
    assert (farm.service.replay.erred == {fixture.id}) == (fault is not None)
    truth = farm.db.execute(fixture.truth).fetchall()
    if form in ("value", "image"):
        assert answer.value == truth[0][0] and answer.text.rpartition("; ")[2] == f"{truth[0][0]}"
    elif form == "list":
        assert sorted(answer.value) == sorted(name for (name,) in truth)
    elif form == "json" and mode != "meta":
        assert {(g, name) for g, names in answer.value.items() for name in names} == set(truth)
        assert answer.to_json()["value"] == answer.value
    else:
        assert Counter(tuple(map(str, row.values())) for row in answer.value) == Counter(
            tuple(map(str, row)) for row in truth
        )
    assert len(answer.plots) == (form == "plot" and mode != "meta")


@pytest.mark.thorough
@pytest.mark.parametrize("n", [0, 4, 18])
def test_the_same_model_reads_the_rows_over_the_wire(farm: Farm, n: int) -> None:
    farm.service.reader = Oracle(farm.oracle)
    fixture = PLANS[n]
    answer = farm.ask(fixture, "dag", "chat", model=f"{farm.address}/v1#replay")
    assert farm.is_right(fixture, answer), (answer.cannot, farm.service.last_refusal)


def test_a_last_part_that_finds_nothing_is_the_answer_and_not_what_an_earlier_part_found(farm: Farm) -> None:
    plan = plans.Fixture(
        "nothing",
        "Which of the orchards in the North were planted before 1800?",
        plans.Plan(
            (
                plans.Node(
                    "north", NodeKind.UQL, "SELECT id, name, planted FROM orchards WHERE region = 'North' TO north"
                ),
                plans.Node("answer", NodeKind.UQL, "SELECT name FROM north WHERE planted < 1800 TO answer", ("north",)),
            )
        ),
        ("answer",),
        "SELECT name FROM orchards WHERE planted < 1800",
    )
    for mode in MODES:
        answer = farm.ask(plan, mode, "chat", others=[plan])
        assert answer.answered and "none" in answer.text, (mode, answer.text, answer.cannot)
        assert farm.is_right(plan, answer)


def test_context_and_output_limit_are_those_of_a_real_model(farm: Farm) -> None:
    farm.service.context = 900
    try:
        answer = farm.ask(PLANS[0], "dag", "messages")
        assert not answer.answered and "context" in answer.cannot
    finally:
        farm.service.context = 128_000
    asked = replay_server.Asked("", PLANS[0].question, (), {"properties": {"nodes": {}}}, 20)
    import asyncio

    text, cut = asyncio.run(farm.service.reply(asked))
    assert cut and len(text) == 80


def test_a_question_without_a_plan_is_refused_by_its_words(farm: Farm) -> None:
    with pytest.raises(DataError, match="no plan is of this question"):
        Replay(PLANS).reply("Question: How are you?\nThe plan:", {"properties": {"nodes": {}}})
    with pytest.raises(DataError, match="no task"):
        Replay(PLANS).reply(PLANS[0].question, {"properties": {"mood": {}}})


def test_the_command_names_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plans", "serve", str(tmp_path)]) == 1
    assert "holds no plans" in capsys.readouterr().err
    assert main(["plans", "serve", str(tmp_path), "--fault", "none"]) == 2
    assert "step, truncated, column" in capsys.readouterr().err
