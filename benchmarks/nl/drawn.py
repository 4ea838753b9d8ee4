"""Whether what a small model may write is valid, without the model: texts drawn by chance from the grammars of questions.

A text is valid where it parses, binds and types, and reads every table that the plan by hand reads (DECISIONS.md §8).

`python -m uql.benchmarks.nl drawn [--limit N]`
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from uql.base.errors import UQLError
from uql.base.schema import Field
from uql.base.settings import Settings
from uql.benchmarks.nl.derive import drawn
from uql.benchmarks.nl.suites import SUITES, Asked, opened
from uql.features.embedder import Embedder
from uql.nl.ask.plan_checks import check_plan
from uql.nl.ask.planner import wants_plot
from uql.nl.plan import read_plan as forms
from uql.nl.schema.discover import discover
from uql.nl.schema.scope import Scope
from uql.nl.small.lines.grammar import grammar
from uql.nl.small.lines.reading import nodes_of
from uql.nl.small.meaning.narrowing import narrowed

SUITES_DRAWN = ("countries", "rotowire", "artwork", "nvbench")
TEXTS = 3  # of each question
MOST_PLACES = 40  # databases of a suite


@dataclass(slots=True)
class Drawn:
    """The texts of one suite: how many, the questions, those that are refused before a plan, and what is wrong with which."""

    suite: str
    questions: int = 0
    refused: int = 0
    texts: int = 0
    faults: list[str] = field(default_factory=list)


def run(shared: Path, embedder: Embedder | None, *, limit: int | None = None, seed: int = 0) -> list[Drawn]:
    """Draws texts for the questions of the suites that have plans by hand, and of the first question of each database of nvBench.

    Args:
        shared: the data folder.
        embedder: of words; None: words in common alone, and nothing has to be read.
        limit: questions a suite at most, evenly spread.
    """
    random = Random(seed)
    found = []
    for name in SUITES_DRAWN:
        made = Drawn(name)
        for place in _places(name, SUITES[name].questions(shared), limit):
            with (
                tempfile.TemporaryDirectory() as folder,
                opened(SUITES[name], place[0], shared, Path(folder) / "0", None) as con,
            ):
                for asked in place:
                    _draw(asked, discover(asked.words, con.catalog, embedder), embedder, random, made)
        found.append(made)
    return found


def _places(name: str, questions: Sequence[Asked], limit: int | None) -> list[list[Asked]]:
    """The questions of each database."""
    if limit is not None and limit < len(questions):
        questions = [questions[i * len(questions) // limit] for i in range(limit)]
    places: dict[str, list[Asked]] = {}
    for asked in questions:
        places.setdefault(asked.place, []).append(asked)
    whole = list(places.values())[:MOST_PLACES]
    return [place[:1] for place in whole] if name == "nvbench" else whole


def _draw(asked: Asked, scope: Scope, embedder: Embedder | None, random: Random, made: Drawn) -> None:
    def near(word: str, others: Sequence[str]) -> list[float]:
        assert embedder is not None
        vectors = embedder.embed([word, *others])
        return [float(v) for v in vectors[1:] @ vectors[0]]

    narrow = narrowed(asked.words, scope, near if embedder is not None else None, plot=wants_plot(asked.words))
    made.questions += 1
    made.refused += bool(narrow.absent or narrow.unheard or narrow.vague)
    rules = grammar(scope, asked.words, narrow)
    tables = {name: source.fields for name, source in scope.sources.items()}
    for _ in range(TEXTS):
        text = drawn(rules, random)
        made.texts += 1
        if why := _fault(text, asked, scope, tables):
            made.faults.append(f"{asked.id}: {text!r}: {why}")


def _fault(text: str, asked: Asked, scope: Scope, tables: Mapping[str, Sequence[Field]]) -> str:
    """Why a text is no valid plan; "" where it is."""
    try:
        plan = forms.from_json(nodes_of(text, scope, asked.words), tables)
        problems = check_plan(plan, scope.sources, Settings()).problems
    except UQLError as error:
        return str(error).splitlines()[0]
    if problems:
        return str(problems[0])
    read = {table for node in plan.nodes for table in forms.tables_named(node.body)}
    left = [table for table in asked.needed if table not in read]
    return f"it does not read {', '.join(left)}" if left else ""


def report(found: Sequence[Drawn]) -> str:
    """The share of valid texts of each suite, and what is wrong with the others."""
    lines = [
        "Texts drawn by chance from the grammars of questions",
        f"  {'suite':<12} questions  refused  texts  valid",
    ]
    whole = Drawn("all", *(sum(getattr(m, name) for m in found) for name in ("questions", "refused", "texts")))
    whole.faults = [fault for made in found for fault in made.faults]
    for made in (*found, whole):
        share = 1 - len(made.faults) / max(1, made.texts)
        lines.append(f"  {made.suite:<12} {made.questions:>9}  {made.refused:>7}  {made.texts:>5}  {share:.1%}")
    return "\n".join([*lines, *(f"  not valid: {fault[:300]}" for fault in whole.faults)])
