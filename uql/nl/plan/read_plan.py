"""A plan as a model replies it, read into nodes: names, `ask('…')`, plots in short form, the answer at the end."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from uql.base.errors import QuestionError
from uql.base.names import free_name
from uql.base.schema import Field
from uql.compiler.parser import tree_of
from uql.compiler.syntax import Call, Quoted, Select, String, Union
from uql.compiler.unparse import unparse
from uql.nl.guard.guard import rebuilt, tables_named
from uql.nl.plan.dag import MAX_NODES, Node, NodeKind, Operator, Plan
from uql.nl.plan.fill_holes import completed

ANSWER = "answer"  # name of the node that ends a plan
ASK = "ask"
SELECTS = (NodeKind.UQL, NodeKind.SQL)


def from_json(
    reply: Mapping[str, Any],
    tables: Mapping[str, Sequence[Field]],
    *,
    done_nodes: Sequence[Node] = (),
    stay: Collection[str] = (),
    shapes: Any = None,
) -> Plan:
    """The plan of a reply.

    Args:
        reply: as the schemas of `uql.nl.prompts.planner` say; nodes with the fields of `uql.nl.plan.dag.Node` are read too.
        tables: columns of the tables in scope.
        done_nodes: nodes that have run already; the new ones may read them.
        stay: names of those that are part of the answer.
        shapes: called with the name and text of each query, gives the columns it makes.
    Raises: QuestionError (UQL630) saying what is wrong.
    """
    if len(reply["nodes"]) > MAX_NODES:  # before they are read
        raise QuestionError(f"a plan of {len(reply['nodes'])} nodes", help=f"at most {MAX_NODES}")
    nodes: list[Node] = []
    columns = dict(tables)
    for n, item in enumerate(reply["nodes"], 1 + len(done_nodes)):
        node = node_of(item, n)
        if node.kind is NodeKind.UQL:
            node = replace(node, body=completed(node.body, columns))
        if node.kind in SELECTS and shapes is not None:
            fields = shapes(node.name, node.body)
            if fields is not None:
                columns[node.name] = fields
        nodes.append(node)
    return finished(nodes, done_nodes, stay)


def finished(nodes: Sequence[Node], done_nodes: Sequence[Node] = (), stay: Collection[str] = ()) -> Plan:
    """The nodes with their inputs read off their bodies, after those that have run, and one answer at the end.

    The answer reads every node that no other one reads; of `done_nodes` only those that `stay`, as they were part of the answer
    before. Raises: QuestionError (UQL630).

    Args:
        nodes: as the model wrote them.
        done_nodes: of an earlier plan, with their inputs.
        stay: names of those of them that the answer read before.
    """
    names = {node.name for node in (*nodes, *done_nodes)}
    wired = [with_inputs(node, names - {node.name}) for node in nodes]
    answers = [node for node in wired if node.kind is NodeKind.ANSWER]
    if len(answers) > 1:
        raise QuestionError("the plan has two answer nodes", help="one answer, at the end")
    inner = [*done_nodes, *(node for node in wired if node.kind is not NodeKind.ANSWER)]
    if not inner:
        raise QuestionError("the plan has no step before its answer", help="add a uql node")
    read = {name for node in inner for name in node.inputs}
    fresh = [node.name for node in inner if node.name not in read and (node not in done_nodes or node.name in stay)]
    last = answers[0] if answers else Node(ANSWER, NodeKind.ANSWER, "")
    inputs = tuple(dict.fromkeys([*last.inputs, *fresh])) or (inner[-1].name,)
    name = free_name(last.name, [node.name for node in inner])
    return Plan((*inner, replace(last, name=name, inputs=inputs)))


def statement_of(sql: str) -> str:
    """A model's SELECT as UQL: `ask('…')` becomes a quoted text, TO is dropped. Text that does not parse is returned as it is.

    >>> statement_of("SELECT name FROM t WHERE ask('it is red') ;")
    'SELECT name FROM t WHERE PROMPT "it is red"'
    """
    stripped = sql.strip().rstrip(";").strip()
    tree = tree_of(stripped)
    if not isinstance(tree, Select | Union):
        return stripped
    return unparse(replace(rebuilt(tree, _unwrap_ask), to=None))


def _unwrap_ask(node: Any) -> Any:
    """The text of `ask('…')` in its place; any other node as it is."""
    if isinstance(node, Call) and node.name.lower() == ASK and node.args and isinstance(node.args[0], String | Quoted):
        first = node.args[0]
        return Quoted(first.value if isinstance(first, String) else first.text, forced=True)
    return node


# ------------------------------------------------------------------------------------------------------------- one node
def node_of(item: Mapping[str, Any], n: int) -> Node:
    """The node of a reply; `n` is its place in the plan, from 1. Raises QuestionError (UQL630)."""
    try:
        kind = NodeKind(item["kind"])
    except (KeyError, ValueError):
        raise QuestionError(
            f"node {n} has the kind {item.get('kind')!r}", help=f"kinds: {', '.join(kind.value for kind in NodeKind)}"
        ) from None
    name = str(item.get("name") or (f"step{n}" if kind is not NodeKind.ANSWER else ANSWER))
    common: dict[str, Any] = {
        "inputs": tuple(item.get("inputs", ())),
        "columns": tuple(item.get("columns", ())),
        "may_be_empty": bool(item.get("may_be_empty", False)),
        "description": str(item.get("description", "")),
    }
    match kind:
        case NodeKind.UQL:
            return Node(name, kind, statement_of(str(item.get("sql", item.get("uql", item.get("body", ""))))), **common)
        case NodeKind.PYTHON:
            return Node(name, kind, str(item.get("python", item.get("body", ""))), **common)
        case NodeKind.PLOT:
            common["inputs"] = common["inputs"] or tuple(filter(None, [item.get("input", "")]))
            return Node(name, kind, json.dumps(_spec(item)) if "mark" in item else str(item.get("body", "")), **common)
        case NodeKind.ADAPTER:
            try:
                operator = Operator(item.get("operator", Operator.TABLE))
            except ValueError:
                raise QuestionError(f"node {name!r} has no operator of {', '.join(Operator)}") from None
            return Node(
                name,
                kind,
                str(item.get("body", "")),
                operator=operator,
                sources=tuple(item.get("sources", ())),
                adapters=tuple(item.get("adapters", ())),
                **common,
            )
    return Node(name, kind, str(item.get("body", "")), **common)


def _spec(item: Mapping[str, Any]) -> dict[str, Any]:
    """A plot in short form as a Vega-Lite specification; the types of its fields follow from the columns of its input."""
    mark = item["mark"]
    names = {key: item.get(key, "") for key in ("x", "y", "color")}
    if mark == "arc":
        encoding = {"theta": {"field": names["y"] or names["x"]}, "color": {"field": names["color"] or names["x"]}}
    else:
        encoding = {key: {"field": value} for key, value in names.items() if value}
    spec: dict[str, Any] = {"mark": mark, "encoding": encoding}
    if item.get("title"):
        spec["title"] = item["title"]
    return spec


def with_inputs(node: Node, names: Collection[str]) -> Node:
    """The node with the inputs, of these names of other nodes, that its body reads."""
    by_low = {name.lower(): name for name in names}
    inputs: list[str] = list(node.inputs)
    if node.kind in SELECTS:
        inputs = [by_low[t] for t in sorted(tables_named(node.body)) if t in by_low] or [
            i for i in inputs if i in names
        ]
    elif node.kind is NodeKind.PYTHON:
        try:
            used = {x.id for x in ast.walk(ast.parse(node.body)) if isinstance(x, ast.Name)}
        except (SyntaxError, ValueError):
            used = set()
        inputs += [name for name in sorted(names) if name in used]
    return replace(node, inputs=tuple(dict.fromkeys(inputs)))
