"""Is a plan one that can run? Every node is parsed, guarded, bound and typed against what its inputs will produce, before anything runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from typing import Any

from uql.base.errors import GuardError, QuestionError, UQLError
from uql.base.schema import Field, Modality
from uql.base.settings import Settings
from uql.nl.guard.guard import check_sql, check_uql
from uql.nl.plan.dag import Node, NodeKind, Plan
from uql.nl.plan.result_schema import NUMBERS, Shapes
from uql.nl.schema.scope import Source

_TIMES = ("DATE", "TIMESTAMP")
LONGEST = 480  # characters of one error, wherever it is shown
UNKNOWN = "VARCHAR"  # type of a column of which only the name is known


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a node."""

    node: str
    message: str

    def __str__(self) -> str:
        return f"{self.node}: {self.message}"


@dataclass(frozen=True, slots=True)
class Checked:
    """A plan with its statements as they will run, the columns each node makes, and what is wrong.

    `fields` holds None for a node whose columns are known only when it has run.
    """

    plan: Plan
    fields: Mapping[str, tuple[Field, ...] | None]
    problems: tuple[Problem, ...]


def check_plan(plan: Plan, sources: Mapping[str, Source], settings: Settings) -> Checked:
    """Checks every node in an order in which its inputs come first; a node behind a wrong one is not judged.

    Args:
        plan: as the model wrote it, read already.
        sources: tables of the database, by name.
        settings: under which its statements are bound.
    """
    order = TopologicalSorter({node.name: node.inputs for node in plan.nodes}).static_order()
    problems: list[Problem] = []
    fields: dict[str, tuple[Field, ...] | None] = {}
    nodes: dict[str, Node] = {}
    table_names = {name.lower() for name in sources}
    shapes = Shapes(sources)
    for name in order:
        node = nodes[name] = plan[name]
        if name.lower() in table_names:
            problems.append(Problem(name, f"a table of the database is called {name}; give the node another name"))
            continue
        if not name.isascii() or not name.isidentifier():
            problems.append(Problem(name, "the name of a node is letters, digits and _"))
            continue
        if any(i not in fields for i in node.inputs):
            continue
        try:
            nodes[name], fields[name] = check_node(node, sources, shapes, fields, settings)
        except UQLError as error:
            problems.append(Problem(name, error_line(error)))
            continue
        node_fields = fields[name]
        if node_fields is not None:
            shapes.add(name, node_fields)
    return Checked(Plan(tuple(nodes[node.name] for node in plan.nodes)), fields, tuple(problems))


def check_node(
    node: Node,
    sources: Mapping[str, Source],
    shapes: Shapes,
    node_fields: Mapping[str, tuple[Field, ...] | None],
    settings: Settings,
) -> tuple[Node, tuple[Field, ...] | None]:
    """The node with its body as it will run, and the columns that it makes (None: known only then).

    Args:
        sources: tables of the database, by name.
        shapes: what a statement may name, for the columns that it makes.
        node_fields: columns of the nodes before; None: known only when they have run.
        settings: under which its statement is bound.
    Raises: UQLError of any kind, saying what is wrong.
    """
    tables = [*sources, *node.inputs]
    fields: tuple[Field, ...] | None = None
    match node.kind:
        case NodeKind.UQL:
            node = replace(node, body=check_uql(node.body, tables, to=[node.name]))
            if all(node_fields.get(i) is not None for i in node.inputs):
                fields = shapes.of_uql(node.body, settings, to=[node.name])
        case NodeKind.SQL:
            node = replace(node, body=check_sql(node.body, tables))
            if all(node_fields.get(i) is not None for i in node.inputs):
                fields = shapes.of_sql(node.body)
        case NodeKind.PYTHON:
            from uql.nl.plan.nodes.python import check_python

            check_python(node.body, node.inputs)
            fields = tuple(Field(name, UNKNOWN) for name in node.columns) or None
            return node, fields
        case NodeKind.PLOT:
            from uql.nl.plan.nodes.plot import check_plot

            input_columns = {name: _columns(name, sources, node_fields) for name in node.inputs}
            if not input_columns:
                raise GuardError("a plot needs an input", help=f"nodes and tables: {', '.join(tables)}")
            if all(value is not None for value in input_columns.values()):
                inputs = {name: value for name, value in input_columns.items() if value is not None}
                node = replace(node, body=typed(node.body, inputs))
                check_plot(node.body, {name: {f.name: f.type for f in value} for name, value in inputs.items()})
            return node, ()
        case NodeKind.ADAPTER:
            unknown = [name for name in node.sources if name not in sources]
            if unknown or node.operator is None or not node.body.strip():
                what = f"there is no source {unknown[0]}" if unknown else "it needs an operator and a sub-query"
                raise QuestionError(what, help=f"sources: {', '.join(sources)}")
            return node, None
        case NodeKind.ANSWER:
            return node, None
    if fields is not None:
        missing = [name for name in node.columns if name.lower() not in {f.name.lower() for f in fields}]
        if missing:
            raise QuestionError(
                f"it makes no column {missing[0]}", help=f"it makes: {', '.join(f.name for f in fields)}"
            )
    return node, fields


def checked_node(
    node: Node, sources: Mapping[str, Source], inputs: Mapping[str, tuple[Field, ...]], settings: Settings
) -> Node:
    """One node that reads existing results, as it will run. Raises as `check_node`.

    Args:
        node: as the model wrote it.
        sources: tables of the database, by name.
        inputs: columns of the results that it reads.
        settings: under which its statement is bound.
    """
    shapes = Shapes(sources)
    for name, fields in inputs.items():
        shapes.add(name, fields)
    return check_node(node, sources, shapes, inputs, settings)[0]


def typed(body: str, inputs: Mapping[str, tuple[Field, ...]]) -> str:
    """A Vega-Lite specification with the types of its fields, and its data, filled in where the model left them out."""
    try:
        spec = json.loads(body)
    except ValueError:
        return body
    types = {f.name: vega_type(f) for fields in inputs.values() for f in fields}
    names = {f.name.lower(): f.name for fields in inputs.values() for f in fields}

    def filled(part: Any) -> Any:
        if isinstance(part, list):
            return [filled(item) for item in part]
        if not isinstance(part, dict):
            return part
        entry = {key: filled(value) for key, value in part.items()}
        name = entry.get("field")
        if isinstance(name, str):
            entry["field"] = names.get(name.lower(), name)
            if "type" not in entry and entry["field"] in types:
                entry["type"] = types[entry["field"]]
        return entry

    return json.dumps(filled(spec), ensure_ascii=False)


def vega_type(f: Field) -> str:
    if f.type.startswith(NUMBERS):
        return "quantitative"
    return "temporal" if f.type.startswith(_TIMES) else "nominal"


def error_line(error: UQLError) -> str:
    """An error in one line, with what helps; at most LONGEST characters."""
    return brief(f"{error.message}" + (f" ({error.help})" if error.help else ""))


def brief(text: str, most: int = LONGEST) -> str:
    """A text cut in its middle where it is longer than `most` characters: what is wrong stands at its ends.

    >>> brief("abcdefghij", 7)
    'abc…hij'
    """
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


def _columns(
    name: str, sources: Mapping[str, Source], node_fields: Mapping[str, tuple[Field, ...] | None]
) -> tuple[Field, ...] | None:
    fields = node_fields[name] if name in node_fields else sources[name].fields
    return None if fields is None else tuple(f for f in fields if f.modality is Modality.STRUCTURED)
