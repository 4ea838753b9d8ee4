"""The plan of a question: a DAG of nodes, each a piece of UQL, SQL, Python, a plot, an operator for adapters, or the answer.

An edge is a name: a node that reads the table `late` waits for the node whose `name` is `late`. Sources: M²EX (the plan as a DAG written at
once), CAESURA (logical steps mapped one after another), Meta Engine (sub-queries, each with an operator and ranked adapters).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from uql.base.errors import QuestionError

if TYPE_CHECKING:
    import pyarrow as pa

MAX_NODES = 12  # of one plan


class NodeKind(StrEnum):
    """What a node is."""

    UQL = "uql"  # one UQL statement; its result becomes a table of the node's name
    SQL = "sql"  # one concrete SELECT, run by the guard's confined DuckDB
    PYTHON = "python"  # statements over its inputs in pydantic-monty; ends in a table or JSON
    PLOT = "plot"  # a Vega-Lite specification over one input table
    ADAPTER = "adapter"  # a sub-query given to the adapters, in their ranked order
    ANSWER = "answer"  # the words of the answer, from its inputs


class Operator(StrEnum):
    """Meta Engine's three operators."""

    TEXT = "TextAnalytics"
    TABLE = "TableAnalytics"
    IMAGE = "ImageAnalytics"


@dataclass(frozen=True, slots=True)
class Node:
    """One step of a plan.

    Attributes:
        name: unique in the plan; the table (or JSON) that later nodes read.
        kind: what it is.
        inputs: names of the nodes it waits for, in the order given.
        body: the statement, the Python source, the Vega-Lite specification as JSON text, or the sub-query in words.
        columns: names of the columns its output must have; empty: any.
        may_be_empty: no rows is a valid output.
        operator, sources, adapters: of an adapter node: its operator, the tables it may read, the adapters in order.
        description: what it is for, in a sentence.
    """

    name: str
    kind: NodeKind
    body: str
    inputs: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    may_be_empty: bool = False
    operator: Operator | None = None
    sources: tuple[str, ...] = ()
    adapters: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked DAG: names unique, inputs made by other nodes, no cycle, at most MAX_NODES nodes.

    Raises: QuestionError (UQL630), naming the node and the valid names.
    """

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        names = [node.name for node in self.nodes]
        if not names:
            raise QuestionError("a plan without a node")
        if len(names) > MAX_NODES:
            raise QuestionError(f"a plan of {len(names)} nodes", help=f"at most {MAX_NODES}")
        low = [name.lower() for name in names]  # tables are called by them
        for name in names:
            if low.count(name.lower()) > 1:
                raise QuestionError(f"two nodes are named {name!r}", help="give each node a name of its own")
        for node in self.nodes:
            for name in node.inputs:
                if name not in names:
                    raise QuestionError(
                        f"node {node.name!r} reads {name!r}, which no node makes",
                        help=f"nodes: {', '.join(names)}",
                    )
        try:
            TopologicalSorter({node.name: node.inputs for node in self.nodes}).prepare()
        except CycleError as cycle:
            raise QuestionError(f"the nodes {' → '.join(cycle.args[1])} wait for each other") from None

    @property
    def answer(self) -> tuple[str, ...]:
        """The names of the nodes that the answer is written from."""
        return next((node.inputs for node in self.nodes if node.kind is NodeKind.ANSWER), ())

    def __getitem__(self, name: str) -> Node:
        return next(node for node in self.nodes if node.name == name)


@dataclass(frozen=True, slots=True)
class SubAnswer:
    """What one adapter, or one node, answered to a sub-query.

    Attributes:
        value: words, number, list, or rows as a list of dictionaries; None: no answer.
        text: the answer in words.
        sources: tables or collections it rests on.
        adapter: who answered.
        confidence: 0 to 1, as the adapter says; None: it does not.
        uql: statement that made it, where one did.
        problem: why there is no valid answer; None: there is one.
        steps: statements that ran before `uql`, each with the name of its rows.
        notes: remarks on it: estimates with their intervals, rows without an answer, rows that were not shown.
        table: its rows, all of them, where it has some.
        private: names of its columns that no model may see.
        asked: the sub-query, as it was asked.
    """

    value: Any
    text: str
    sources: tuple[str, ...] = ()
    adapter: str = ""
    confidence: float | None = None
    uql: str | None = None
    problem: str | None = None
    extra: Mapping[str, Any] | None = None
    steps: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    table: pa.Table | None = None
    private: tuple[str, ...] = ()
    asked: str = ""
