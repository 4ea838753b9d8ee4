"""A model that plans by replaying plans written by hand: as one DAG, as sub-queries, or step by step.

It knows a task by the JSON schema of the reply that is asked for, and a question by its words, so it answers the prompts of every mode as a
large model would that makes no mistake; what goes wrong then is the engine's. A `fault` makes it err once a question.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from uql.base.errors import DataError, UQLError
from uql.benchmarks.nl.plans import Fixture, base_tables
from uql.compiler.parser import parse_script
from uql.compiler.syntax import Select, Union
from uql.compiler.unparse import unparse
from uql.nl.guard.guard import tables_named
from uql.nl.plan.dag import Node, NodeKind, Plan
from uql.nl.prompts.meta_engine import MOST as MOST_PARTS

Fault = Literal["step", "truncated", "column"]
FAULTS: tuple[Fault, ...] = get_args(Fault)
MOST_INPUTS = 4  # of a step, and sources of an operator
_TO = re.compile(r"\s+TO\s+\w+\s*;?\s*\Z")
_PART = re.compile(r"Part (\d+) of \d+ of: ")
_FOUND = re.compile(r"^\d+\. (\w+) \(", re.MULTILINE)
_ROWS_OF = re.compile(r"the rows of (\w+)")
_FAILED = re.compile(r"This .*? failed:\n(.*?)\n\nWhy: ", re.DOTALL)
_OUTPUT = re.compile(r"The step: .*? Output: (\w+)", re.DOTALL)
_DRAWN = {"field": "", "type": ""}
Reply = dict[str, Any]


class Replay:
    """Replies to the prompts of planning.

    Args:
        fixtures: the plans.
        fault: "step": the first node fails while it runs; "truncated": the first reply that holds a plan or a query ends in its
            middle; "column": its first query names a column that is not there. Each once a question; None: no fault.
    """

    def __init__(self, fixtures: Iterable[Fixture], *, fault: Fault | None = None) -> None:
        self.fixtures = {fixture.question: _with_answers(fixture) for fixture in fixtures}
        self.fault = fault
        self.erred: set[str] = set()
        self._tasks: Mapping[str, Callable[[Fixture, str, Mapping[str, Any]], Reply]] = {
            "nodes": self._dag,
            "steps": self._steps,
            "node": self._mapped,
            "sql": self._query,
            "body": self._mended,
            "sub_queries": self._decomposed,
            "query": self._refined,
            "operators": self._operators,
            "verdict": self._checked,
            "causes": self._blamed,
            "answerable": self._written,
            "finding": lambda fixture, prompt, form: {"finding": "all"},
            "ambiguous": lambda fixture, prompt, form: {"ambiguous": False, "readings": []},
            "found": lambda fixture, prompt, form: {"found": False, "answer": "", "sources": []},
            "table": lambda fixture, prompt, form: {"table": form["table"]["enum"][0], "columns": []},
            "conditions": lambda fixture, prompt, form: {"conditions": []},
            "columns": self._columns,
        }

    def reply(self, prompt: str, schema: Mapping[str, Any]) -> tuple[str, bool]:
        """The reply to a prompt, and whether it ends in its middle.

        Args:
            prompt: its words.
            schema: JSON schema of the reply.
        Raises: DataError (UQL502) where no plan is of the question, or the schema is of no task.
        """
        task = next((name for name in self._tasks if name in schema.get("properties", {})), None)
        if task is None:
            raise DataError("the schema of the reply is of no task of planning", code="UQL502")
        fixture = self._fixture(prompt)
        made = self._tasks[task](fixture, prompt, schema["properties"])
        err = self.fault if task in ("nodes", "node", "sql") and fixture.id not in self.erred else None
        if err in ("step", "column") and (query := _first_query(made)) is not None:
            self.erred.add(fixture.id)
            query["sql"] = _failing(query["sql"], err)
        text = json.dumps(made, ensure_ascii=False)
        if err == "truncated":
            self.erred.add(fixture.id)
            return text[: len(text) // 2], True
        return text, False

    def _fixture(self, prompt: str) -> Fixture:
        """The plan of the question that stands last in a prompt, of several there the longest."""
        found = [(prompt.rfind(q) + len(q), len(q), q) for q in self.fixtures if q in prompt]
        if not found:
            raise DataError("no plan is of this question", code="UQL502", help=prompt[-300:])
        return self.fixtures[max(found)[2]]

    # -------------------------------------------------------------------------------------------------- at once, by steps
    def _dag(self, fixture: Fixture, prompt: str, form: Mapping[str, Any]) -> Reply:
        return {"cannot": "", "nodes": [_node(node) for node in fixture.plan.nodes]}

    def _steps(self, fixture: Fixture, prompt: str, form: Mapping[str, Any]) -> Reply:
        """Nodes that no result is of yet: a plan that is made anew goes on where the last one ended."""
        there = {n.name for n in fixture.plan.nodes if f"\n{n.name} (" in prompt and "are there already" in prompt}
        steps = [
            {
                "description": f"{n.kind.value}: {n.name}",
                "inputs": _reads(fixture, n)[:MOST_INPUTS] or sorted(base_tables(fixture))[:1],
                "output": n.name,
                "new_columns": [],
            }
            for n in fixture.plan.nodes
            if n.name not in there
        ]
        return {"steps": steps}

    def _mapped(self, fixture: Fixture, prompt: str, form: Mapping[str, Any]) -> Reply:
        name = _OUTPUT.findall(prompt)[-1]
        return {"node": _node(_bare_node(fixture, name))}

    def _mended(self, fixture: Fixture, prompt: str, form: Mapping[str, Any]) -> Reply:
        """The body of the node that failed, as it was meant: it stands in the prompt, within a fault or alone."""
        failed = "".join(_FAILED.findall(prompt)[-1:])
        meant = [_bare(node.body) for node in fixture.plan.nodes]
        meant = [
            body for body in meant if _squeezed(body) in _squeezed(failed) or _rewritten(body) in _squeezed(failed)
        ]
        if not meant:
            raise DataError("no node of the plan failed so", code="UQL502", help=failed[:300])
        return {"body": max(meant, key=len)}

    # ------------------------------------------------------------------------------------------------------ sub-queries
    def _checked(self, fixture: Fixture, prompt: str, form: Mapping[str, Any]) -> Reply:
        if len(_parts(fixture)) > 1:
            return {"signs": ["multi_step"], "verdict": "complex"}
        return {"signs": ["one_intent"], "verdict": "simple"}

    def _decomposed(self, fixture: Fixture, prompt: str, form: Mapping[str, Any]) -> Reply:
        parts = _parts(fixture)
        made = []
        for n, part in enumerate(parts, 1):
            uses = [m for m, other in enumerate(parts[: n - 1], 1) if _is_read(fixture, other[-1], part)]
            rest = "".join(f", from what was found in sub-query {m}" for m in uses)
            text = f"Part {n} of {len(parts)} of: {fixture.question}{rest}"
            made.append({"query": text if len(parts) > 1 else fixture.question, "uses": uses})
        return {"sub_queries": made}

    def _refined(self, fixture: Fixture, prompt: str, form: Mapping[str, Any]) -> Reply:
        head, _, rest = prompt.rpartition("Question: ")
        query = rest.partition("\n")[0]
        for m, table in zip(
            re.findall(r"what was found in sub-query (\d+)", query), _FOUND.findall(head), strict=False
        ):
            query = query.replace(f"what was found in sub-query {m}", f"the rows of {table}")
        return {"query": query}

    def _operators(self, fixture: Fixture, prompt: str, form: Mapping[str, Any]) -> Reply:
        offered = form["operators"]["items"]["properties"]["sources"]["items"]["enum"]
        part, _ = _asked(fixture, prompt)
        wanted = {name.lower() for node in part for name in _reads(fixture, node)}
        sources = [name for name in offered if name.lower() in wanted] or list(offered)
        return {"operators": [{"operator": "TableAnalytics", "sources": sources[:MOST_INPUTS], "confidence": 0.9}]}

    def _query(self, fixture: Fixture, prompt: str, form: Mapping[str, Any]) -> Reply:
        """One statement for a part: its nodes, and the tables of earlier parts under the names of their nodes."""
        part, tables = _asked(fixture, prompt)
        known = {node.name for node in part}
        read = [name for node in part for name in _reads(fixture, node) if name not in known]
        before = [other[-1] for other in _parts(fixture) if other[-1].name in read]
        named = [f"{node.name} AS (SELECT * FROM {table})" for node, table in zip(before, tables, strict=True)]
        named += [f"{node.name} AS ({_select(node)})" for node in part[:-1]]
        return {"sql": f"WITH {', '.join(named)} {_select(part[-1])}" if named else _select(part[-1])}

    # ---------------------------------------------------------------------------------------------------------- the rest
    def _blamed(self, fixture: Fixture, prompt: str, form: Mapping[str, Any]) -> Reply:
        no = dict.fromkeys(("plan_flawed", "better_plan", "another_tool"), False)
        return {"causes": "the query is wrong", "fix": "write it as it was meant", **no, "other_arguments": True}

    def _written(self, fixture: Fixture, prompt: str, form: Mapping[str, Any]) -> Reply:
        """The values of the last finding, at most ten words."""
        rows = re.findall(r"rows: (\[.*)", prompt)
        values = re.findall(r': ("[^"]*"|[-\d.]+)', rows[-1]) if rows else re.findall(r"answer: (.*)", prompt)[-1:]
        summary = " ".join(", ".join(value.strip('"') for value in values).split()[:10])
        said = {"answerable": True, "reason": "", "need_more": False, "summary": summary or "none"}
        return said | {"details": "", "source": [], "inference": "", "extra": ""}

    def _columns(self, fixture: Fixture, prompt: str, form: Mapping[str, Any]) -> Reply:
        offered = form["columns"]["items"]["enum"]
        words = set(re.findall(r"\w+", fixture.text.lower()))
        named = [c for c in offered if {p.strip('"').lower() for p in c.split(".")} <= words]
        return {"columns": (named or list(offered))[:12]}


def _with_answers(fixture: Fixture) -> Fixture:
    """The plan with a last query for each node that holds the answer and is read by another: an answer is what no node reads."""
    nodes = fixture.plan.nodes
    read = {name for node in nodes if node.kind is NodeKind.UQL for name in node.inputs}
    more = [
        Node(f"{name}_rows", NodeKind.UQL, f"SELECT * FROM {name} TO {name}_rows", (name,), may_be_empty=True)
        for name in fixture.answers
        if name in read
    ]
    return replace(fixture, plan=Plan((*nodes, *more)))


def _bare(body: str) -> str:
    """A statement without its name."""
    return _TO.sub("", body)


def _squeezed(text: str) -> str:
    return "".join(text.split()).lower()


def _rewritten(body: str) -> str:
    """A statement in the engine's own spelling, squeezed; as it is where it is none."""
    try:
        tree = parse_script(body)[0][0]
    except UQLError:
        return _squeezed(body)
    return _squeezed(unparse(tree)) if isinstance(tree, Select | Union) else _squeezed(body)


def _select(node: Node) -> str:
    return _bare(node.body)


def _bare_node(fixture: Fixture, name: str) -> Node:
    """The node of a name; the engine puts an underscore behind names that are taken."""
    return next(node for node in fixture.plan.nodes if node.name == name.rstrip("_"))


def _node(node: Node) -> Reply:
    """A node as a planner writes it."""
    match node.kind:
        case NodeKind.PLOT:
            spec = json.loads(node.body)
            mark = spec["mark"] if isinstance(spec["mark"], str) else spec["mark"]["type"]
            x, y, color = (spec["encoding"].get(axis, _DRAWN)["field"] for axis in ("x", "y", "color"))
            drawn = {"mark": mark, "x": x, "y": y, "color": color, "title": node.name}
            return {"kind": "plot", "name": node.name, "input": node.inputs[0], **drawn}
        case NodeKind.PYTHON:
            return {"kind": "python", "name": node.name, "inputs": list(node.inputs), "python": node.body}
    return {"kind": "uql", "name": node.name, "sql": _select(node)}


def _reads(fixture: Fixture, node: Node) -> list[str]:
    """The tables and nodes that a node reads."""
    if node.kind is not NodeKind.UQL:
        return list(node.inputs)
    named = {name.lower() for name in tables_named(_select(node))}
    return sorted(base_tables(fixture) & named) + [n.name for n in fixture.plan.nodes if n.name in node.inputs]


def _queries(fixture: Fixture) -> list[Node]:
    """The nodes that the answer's rows come from, in their order: mode `meta` draws nothing and runs no Python."""
    wanted = set(fixture.answers)
    for node in reversed(fixture.plan.nodes):
        if node.name in wanted:
            wanted |= set(node.inputs)
    return [node for node in fixture.plan.nodes if node.name in wanted]


def _parts(fixture: Fixture) -> list[list[Node]]:
    """The queries of a plan as at most three sub-queries: each is one statement, of which others read the last node alone."""
    nodes = _queries(fixture)
    last = len(nodes) - 1
    cuts = [n for n, node in enumerate(nodes[:last]) if not _crossed(fixture, nodes, n)]
    cuts = [*cuts[-(MOST_PARTS - 1) :], last]
    ends = [0, *(n + 1 for n in cuts)]
    return [nodes[a:b] for a, b in itertools.pairwise(ends)]


def _crossed(fixture: Fixture, nodes: Sequence[Node], n: int) -> bool:
    """Would a cut behind a node leave one that later nodes read, or one of the answer, within the part that it ends?"""
    before, later = nodes[: n + 1], nodes[n + 1 :]
    inner = {node.name for node in before[:-1]}
    ends = inner & set(fixture.answers)
    return bool(ends) or any(inner & set(node.inputs) for node in later)


def _is_read(fixture: Fixture, node: Node, part: Sequence[Node]) -> bool:
    return any(node.name in other.inputs for other in part)


def _asked(fixture: Fixture, prompt: str) -> tuple[list[Node], list[str]]:
    """The part that a prompt asks for, and the tables of the earlier ones that it names."""
    parts = _parts(fixture)
    rest = prompt.rpartition("Question: ")[2]
    found = _PART.match(rest)
    if found is None:
        return _queries(fixture), []
    return parts[int(found[1]) - 1], _ROWS_OF.findall(rest)


def _first_query(made: Reply) -> Reply | None:
    """The first query of a reply."""
    if "sql" in made:
        return made
    nodes = made["nodes"] if "nodes" in made else [made["node"]]
    return next((node for node in nodes if node["kind"] == "uql"), None)


def _failing(sql: str, fault: Fault) -> str:
    wrong = "CAST(lower('NOT A NUMBER') AS INTEGER)" if fault == "step" else "no_such_column"
    return f"SELECT *, {wrong} AS wrong FROM ({sql}) AS inner_rows"
