"""Whether every query with typed slots that a grammar lets a small model write is a valid plan, without the model: texts drawn by chance.

A text is valid where it parses, binds and types (DECISIONS.md §8).

`python -m uql.benchmarks.nl drawn [--limit N]`
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from uql.base.errors import UQLError
from uql.base.settings import Settings
from uql.benchmarks.nl.derive import drawn
from uql.benchmarks.nl.suites import SUITES, opened
from uql.features.embedder import Embedder
from uql.nl.ask.plan_checks import check_plan
from uql.nl.plan import read_plan as forms
from uql.nl.plan.dag import Node, NodeKind
from uql.nl.schema.discover import discover
from uql.nl.schema.scope import Scope
from uql.nl.small.slots import parse, render
from uql.nl.small.slots_grammar import grammar

SUITES_DRAWN = ("countries", "rotowire", "artwork")
TEXTS = 3  # of each question


@dataclass(slots=True)
class Drawn:
    """The texts of one suite: how many, the questions, and what is wrong with which."""

    suite: str
    questions: int = 0
    texts: int = 0
    faults: list[str] = field(default_factory=list)


def run(shared: Path, embedder: Embedder | None, *, limit: int | None = None, seed: int = 0) -> list[Drawn]:
    """Draws texts for the questions of the suites whose texts or images are read.

    Args:
        shared: the data folder.
        embedder: of words; None: words in common alone.
        limit: questions a suite at most, evenly spread.
    """
    random = Random(seed)
    found = []
    for name in SUITES_DRAWN:
        made = Drawn(name)
        questions = SUITES[name].questions(shared)
        if limit is not None and limit < len(questions):
            questions = [questions[i * len(questions) // limit] for i in range(limit)]
        with (
            tempfile.TemporaryDirectory() as folder,
            opened(SUITES[name], questions[0], shared, Path(folder) / "0", None) as con,
        ):
            for asked in questions:
                scope = discover(asked.words, con.catalog, embedder)
                made.questions += 1
                for _ in range(TEXTS):
                    text = drawn(grammar(scope), random)
                    made.texts += 1
                    if why := fault(text, scope):
                        made.faults.append(f"{asked.id}: {text!r}: {why}")
        found.append(made)
    return found


def fault(text: str, scope: Scope) -> str:
    """Why a text is no valid plan; "" where it is one, or says that nothing is read."""
    try:
        slots = parse(text)
        if slots is None:
            return ""
        plan = forms.finished([Node("drawn", NodeKind.UQL, render(slots, scope))])
        problems = check_plan(plan, scope.sources, Settings()).problems
    except UQLError as error:
        return str(error).splitlines()[0]
    return str(problems[0]) if problems else ""


def report(found: Sequence[Drawn]) -> str:
    """The share of valid texts of each suite, and what is wrong with the others."""
    lines = ["Texts drawn by chance from the grammars of questions", f"  {'suite':<12} questions  texts  valid"]
    whole = Drawn("all", *(sum(getattr(m, name) for m in found) for name in ("questions", "texts")))
    whole.faults = [fault for made in found for fault in made.faults]
    for made in (*found, whole):
        share = 1 - len(made.faults) / max(1, made.texts)
        lines.append(f"  {made.suite:<12} {made.questions:>9}  {made.texts:>5}  {share:.1%}")
    return "\n".join([*lines, *(f"  not valid: {fault[:300]}" for fault in whole.faults)])
