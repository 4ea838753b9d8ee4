"""The systems that answer the questions of a suite, and what is told of each answer.

`dag`, `meta`, `interleaved` are the three modes; the others are adapters that are asked about each modality apart (the baselines of Meta
Engine's table 2), Meta Engine with one adapter alone, and its ablations, each also with either router. All need a model that plans; the
suite's own reader answers what is asked of texts and images, so that planning is measured apart from reading.
`uql.benchmarks.nl.handwritten` measures what the language can express, without a model.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from uql.base.errors import ConfigError, UQLError
from uql.benchmarks.nl import metrics
from uql.benchmarks.nl.apart import separately
from uql.benchmarks.nl.suites import SUITES, Asked, Score, opened

if TYPE_CHECKING:
    from uql.llm.providers.base import Provider
    from uql.nl.ask.answer import Answer

BASELINES = ("single_model", "structgpt", "lotus", "dspy", "llamaindex")
ABLATIONS = ("no_aggregator", "no_decomposer", "no_checker")
MODES = ("dag", "meta", "interleaved")
ROUTERS = ("stat_router", "ml_router")
CROSSED = tuple(f"{router}_{part}" for router in ROUTERS for part in ABLATIONS)  # a router, and a part left out
ALONE = ("uql_alone", *BASELINES)  # one adapter leaves a router no choice
_APART = "_apart"
APART = tuple(f"{name}{_APART}" for name in BASELINES)  # each modality apart, then aggregated
SYSTEMS = (*MODES, *ROUTERS, *ABLATIONS, *CROSSED, *ALONE, *APART)


@dataclass(frozen=True, slots=True)
class Row:
    """One question answered by one system.

    Attributes:
        suite, question, system, model: which.
        modalities, output, workflow: of the question.
        valid: the plan is (DECISIONS.md §8); None: the system makes none.
        right, em, f1, hit, coverage, chart, series: measures, 0 to 1.
        semantic: Semantic Hit, the judge being the model that plans; None: not judged.
        error: CAESURA's kind, where the answer is wrong.
        tries: at a plan; attempts: operators and adapters tried; replans.
        steps, calls, tokens, seconds, usd: what it took.
        said: the answer, or why there is none.
        plan: its statements.
    """

    suite: str
    question: str
    system: str
    model: str
    modalities: tuple[str, ...]
    output: str
    workflow: str
    valid: float | None
    right: float
    em: float
    f1: float
    hit: float
    coverage: float
    chart: float | None
    series: float | None
    error: str
    tries: int
    attempts: int
    replans: int
    steps: int
    calls: int
    tokens: int
    seconds: float
    usd: float | None
    said: str
    plan: str = ""
    semantic: float | None = None


def reason(suite: str, system: str, model: str | Provider | None) -> str:
    """Why a system cannot be run on a suite; "" where it can."""
    from uql.nl.adapters import available

    found = SUITES[suite]
    if found.absent:
        return found.absent
    if model is None:
        return "needs a model that plans: --model (of `uql bench run`: --models)"
    adapter = system.removesuffix(_APART)
    if adapter in BASELINES and adapter not in available():
        return f"not installed: uql adapters install {adapter}"
    return ""


def takes_router(system: str) -> bool:
    return system in (*ROUTERS, *CROSSED)


def options_of(system: str, router: Any = None, *, question: str = "", tables: Sequence[str] = ()) -> dict[str, Any]:
    """The options of `ask` that make a system.

    Args:
        router: of a system that takes one.
        question, tables: what is asked, and the names of all tables, of a system that asks about each modality apart.
    """
    from uql.nl.adapters import open_adapter, open_adapters

    if system in ("dag", "interleaved"):
        return {"mode": system}
    if system in APART:
        return separately(open_adapter(system.removesuffix(_APART)), question, tables)
    made: dict[str, Any] = {"mode": "meta", "adapters": open_adapters(), "aggregate": True}
    if system == "meta":
        return made
    if takes_router(system):
        made["router"] = router
        system = next((part for part in ABLATIONS if system.endswith(part)), "")
        if not system:
            return made
    if system == "no_decomposer":
        return made | {"decomposer": False}
    if system == "no_checker":
        return made | {"checker": False}
    if system == "no_aggregator":
        return made | {"aggregate": False}
    name = "uql" if system == "uql_alone" else system
    return made | {"adapters": {name: open_adapter(name)}}


def run(
    suite: str,
    shared: Path,
    *,
    system: str = "dag",
    model: str | Provider | None = None,
    limit: int | None = None,
    only: Sequence[str] = (),
    router: Any = None,
    settings: Mapping[str, Any] = MappingProxyType({}),
    judge: str | Provider | None = None,
    done: Sequence[Row] = (),
    tell: Callable[[Row], None] = lambda row: None,
) -> list[Row]:
    """Asks the questions of a suite.

    Args:
        model: that plans, and reads where the suite has no reader.
        limit: questions at most, evenly spread over the suite.
        only: their ids instead.
        router: for the systems that take one.
        settings: further ones of `ask`: budget, max_cost …
        judge: of Semantic Hit, a call where the words do not settle it; None: it is not judged.
        done: rows of an earlier run that are not made again.
        tell: is told each row as it is made.
    Raises: ConfigError (UQL402) where the system cannot be run, with the reason.
    """
    why = reason(suite, system, model)
    if why:
        raise ConfigError(f"{system} on {suite}: {why}", code="UQL402")
    found = SUITES[suite]
    questions = _chosen(found.questions(shared), limit, only)
    called = model if isinstance(model, str) else getattr(model, "name", "")
    there = {(row.question, row.system, row.model) for row in done if row.suite == suite}
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, asked in enumerate(questions):
            if (asked.id, system, called) in there:
                continue
            with opened(found, asked, shared, Path(folder) / str(number), model) as con:
                tables = con.catalog.names()
                given = {**options_of(system, router, question=asked.words, tables=tables), **settings}
                if found.reader == "labels":
                    given["planner"] = model
                began = time.perf_counter()
                try:
                    answer = con.ask(asked.words, **given)
                except UQLError as error:
                    rows.append(
                        _failed(suite, asked, system, called, str(error).splitlines()[0], time.perf_counter() - began)
                    )
                else:
                    row = _row(suite, asked, system, called, answer, tables)
                    reference = found.words(asked)
                    if judge is not None and reference:
                        row = replace(row, semantic=_judged(judge, asked.words, answer.text, reference))
                    rows.append(row)
            tell(rows[-1])
    return rows


def _judged(judge: str | Provider, question: str, said: str, reference: str) -> float:
    import uql
    from uql.nl.routers.collect import semantic

    with uql.connect(model=judge, ledger=":memory:") as con:
        return semantic(con.session, question, said, reference)


def _chosen(questions: list[Asked], limit: int | None, only: Sequence[str]) -> list[Asked]:
    if only:
        return [q for q in questions if q.id in only]
    if limit is None or limit >= len(questions):
        return questions
    return [questions[i * len(questions) // limit] for i in range(limit)]


def _row(suite: str, asked: Asked, system: str, model: str, answer: Answer, tables: Sequence[str]) -> Row:
    score = SUITES[suite].judge(answer, asked)
    plots = "plot" in asked.output
    makes = answer.mode != "meta"
    valid = float(metrics.valid(answer, tables, asked.needed)) if makes else None
    wrong = "" if score.right == 1.0 else metrics.error_kind(answer, asked.modalities, plots, tables, asked.needed)
    cost = answer.cost
    return Row(
        suite,
        asked.id,
        system,
        model,
        asked.modalities,
        asked.output,
        asked.workflow,
        valid,
        *_measures(score),
        wrong,
        answer.tries,
        sum(step.attempts for step in answer.steps),
        answer.replans,
        len(answer.steps),
        cost.calls,
        cost.input_tokens + cost.output_tokens,
        round(answer.seconds, 3),
        cost.usd,
        (answer.text or answer.cannot)[:200],
        "; ".join(node.body for node in answer.plan.plan.nodes if node.body)[:1500]
        if answer.plan.plan is not None
        else "",
    )


def _measures(score: Score) -> tuple[float, float, float, float, float, float | None, float | None]:
    return score.right, score.em, score.f1, score.hit, score.coverage, score.chart, score.series


def _failed(suite: str, asked: Asked, system: str, model: str, why: str, seconds: float) -> Row:
    nothing = _measures(Score())
    return Row(
        suite, asked.id, system, model, asked.modalities, asked.output, asked.workflow, 0.0, *nothing, metrics.KINDS[4], 0, 0, 0, 0, 0, 0,
        round(seconds, 3), None, why[:200],
    )  # fmt: skip


def write(path: Path, rows: Sequence[Row]) -> None:
    """Appends rows as lines of JSON."""
    with path.open("a", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(asdict(row)) + "\n")


def read(path: Path) -> list[Row]:
    """The rows of a file of `write`; none where there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return [row_of(held) for held in map(_line, file) if held]


def row_of(held: Mapping[str, Any]) -> Row:
    """The row of a line."""
    return Row(**{**held, "modalities": tuple(held["modalities"])})


def _line(text: str) -> Mapping[str, Any]:
    held: Mapping[str, Any] = json.loads(text) if text.strip() else {}
    return held


def by_system(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each system, in the order of SYSTEMS, then those of others."""
    names = dict.fromkeys([*SYSTEMS, *(row.system for row in rows)])
    for name in names:
        held = [row for row in rows if row.system == name]
        if held:
            yield name, held
