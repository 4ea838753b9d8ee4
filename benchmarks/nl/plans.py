"""Plans written by hand, one a question, as files of UQL: what they are, and how they run.

A file holds one plan after another: a line `-- question: ID: words`, then statements, each ending in `TO name;`, which are its
nodes. A line `-- plot: {…}` is a node that draws the rows of the statement above it; `-- python: NAME <- a, b: SOURCE` is a node of
Python; `-- answer: a, b` names the nodes that hold the answer, where it is not the one named `answer`; `-- truth: SELECT …` is the
answer as SQL over labels, where the file says it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from uql.base.errors import DataError, QuestionError, UQLError
from uql.compiler.parser import parse_script
from uql.compiler.syntax import Select, Union
from uql.nl.guard.guard import tables_in
from uql.nl.plan.dag import Node, NodeKind, Plan

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.api.connection import Connection
    from uql.show.plots import Plot

FOLDER = Path(__file__).parent / "plans"
_START = re.compile(r"^-- question: (\S+): (.*)$")
_PIECE = re.compile(r"^-- (plot|answer|python|truth): (.*)$")
_PYTHON = re.compile(r"(\w+) <- ([\w, ]+): (.*)")


@dataclass(frozen=True, slots=True)
class Fixture:
    """A plan written by hand.

    Attributes:
        id, question: as the suite has them.
        plan: its nodes.
        answers: the nodes that hold the answer.
        truth: the rows of the first of them, as SQL over labels; "" where the file says none.
    """

    id: str
    question: str
    plan: Plan
    answers: tuple[str, ...]
    truth: str = ""

    @property
    def plots(self) -> bool:
        return any(node.kind is NodeKind.PLOT for node in self.plan.nodes)

    @property
    def text(self) -> str:
        """The statements, as they stand in the file."""
        return "\n".join(node.body for node in self.plan.nodes)


@dataclass(frozen=True, slots=True)
class PlanRun:
    """What a plan gave: the table of each node that holds the answer, the plots, the calls and the nodes."""

    tables: tuple[pa.Table, ...]
    plots: tuple[Plot, ...]
    calls: int
    nodes: int


@cache
def read(suite: str) -> tuple[Fixture, ...]:
    """The plans of a suite. Raises as `read_file`."""
    return tuple(read_file(FOLDER / f"{suite}.uql"))


def read_folder(folder: Path) -> list[Fixture]:
    """The plans of all files of a folder. Raises DataError where it has none; else as `read_file`."""
    found = [fixture for file in sorted(folder.glob("*.uql")) for fixture in read_file(file)]
    if not found:
        raise DataError(
            f"{folder} holds no plans", help="files NAME.uql of the form that benchmarks/nl/plans.py describes"
        )
    return found


def read_file(path: Path) -> list[Fixture]:
    """The plans of a file. Raises as `read_text`."""
    return read_text(path.read_text(encoding="utf-8"))


def read_text(text: str) -> list[Fixture]:
    """The plans of a file's text. Raises UQLError where one cannot be read, with its question."""
    found: list[Fixture] = []
    held: list[str] = []
    title: tuple[str, str] | None = None
    for line in [*text.splitlines(), "-- question: end: end"]:
        start = _START.match(line)
        if start is None:
            held.append(line)
            continue
        if title is not None:
            found.append(_fixture(*title, held))
        title, held = (start[1], start[2]), []
    return found


def _fixture(name: str, question: str, lines: list[str]) -> Fixture:
    nodes: list[Node] = []
    answers: tuple[str, ...] = ("answer",)
    truth = ""
    statement: list[str] = []
    for line in lines:
        piece = _PIECE.match(line)
        if piece is None:
            statement.append(line)
            if line.rstrip().endswith(";"):
                nodes.append(_node(name, "\n".join(statement).strip().removesuffix(";"), nodes))
                statement = []
        elif piece[1] == "answer":
            answers = tuple(word.strip() for word in piece[2].split(","))
        elif piece[1] == "truth":
            truth = piece[2]
        elif piece[1] == "python":
            nodes.append(_python(name, piece[2]))
        else:
            if not nodes:
                raise DataError(f"the plan of {name} draws before it has rows")
            number = sum(node.kind is NodeKind.PLOT for node in nodes)
            nodes.append(Node(f"plot{number or ''}", NodeKind.PLOT, piece[2], (_last_statement(nodes),)))
    return Fixture(name, question, Plan(tuple(nodes)), answers, truth)


def _python(name: str, text: str) -> Node:
    made = _PYTHON.fullmatch(text)
    if made is None:
        raise DataError(f"the Python of the plan of {name} is not NAME <- INPUTS: SOURCE", help=text)
    return Node(made[1], NodeKind.PYTHON, made[3], tuple(word.strip() for word in made[2].split(",")))


def _node(name: str, text: str, before: list[Node]) -> Node:
    try:
        query = parse_script(text)[0][0]
    except UQLError as error:
        raise DataError(f"the plan of {name} cannot be read: {error}") from error
    if not isinstance(query, Select | Union) or query.to is None:
        raise DataError(f"a statement of the plan of {name} does not end in TO", help=text)
    named = tables_in(query)
    made = tuple(node.name for node in before if node.kind is NodeKind.UQL and node.name.lower() in named)
    return Node(query.to, NodeKind.UQL, text, made, may_be_empty=True)


def _last_statement(nodes: list[Node]) -> str:
    return next(node.name for node in reversed(nodes) if node.kind is NodeKind.UQL)


def base_tables(fixture: Fixture) -> set[str]:
    """The tables of the database that a plan reads, in lower case."""
    from uql.compiler.syntax import Node as SyntaxNode, TableName
    from uql.compiler.walk import children

    made = {node.name.lower() for node in fixture.plan.nodes}
    found: set[str] = set()
    for node in fixture.plan.nodes:
        stack: list[SyntaxNode] = []
        if node.kind is NodeKind.UQL:
            stack = [tree for tree, _ in parse_script(node.body) if isinstance(tree, SyntaxNode)]
        while stack:
            tree = stack.pop()
            if isinstance(tree, TableName):
                found.add(tree.parts[-1].lower())
            stack += children(tree, queries=True)
    return found - made


def run(fixture: Fixture, con: Connection) -> PlanRun:
    """Runs a plan as `con.ask(question, plan=…)` runs any: guarded, in the workspace, its nodes in parallel.

    Raises: QuestionError where a node that holds the answer failed, with the reasons.
    """
    answer = con.ask(fixture.question, plan=fixture.plan)
    tables = [answer.results[name].table for name in fixture.answers if name in answer.results]
    held = tuple(table for table in tables if table is not None)
    if len(held) < len(fixture.answers):
        problems = [f"{step.node}: {step.problem}" for step in answer.steps if step.problem]
        raise QuestionError("; ".join(problems) or answer.cannot or "a node of the answer did not run")
    return PlanRun(held, tuple(answer.plots), answer.cost.calls + answer.cost.cached, len(fixture.plan.nodes))
