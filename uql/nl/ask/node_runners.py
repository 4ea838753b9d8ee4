"""How a node of each kind is run. What it needs is in the workspace, what it makes goes there under its name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uql.base.arrow_values import rows_of
from uql.base.errors import QuestionError
from uql.base.schema import Field
from uql.nl.ask.context import AskContext
from uql.nl.ask.outputs import Output, Step
from uql.nl.plan.dag import Node, NodeKind, Plan
from uql.nl.plan.lineage import marked
from uql.nl.plan.result_schema import fields_of
from uql.operators.texts import short

if TYPE_CHECKING:
    import pyarrow as pa

OBSERVED = 3  # rows of a result that a prompt of planning shows
MOST_CHARS = 900  # of them


async def run_node(node: Node, outputs: Mapping[str, Output], ctx: AskContext) -> Output:
    """The output of a node whose inputs are there. Raises what its statement, source or specification raises.

    Args:
        node: of a kind that is run here: uql, sql, python or plot.
        outputs: of the nodes before, by name.
    """
    match node.kind:
        case NodeKind.UQL:
            tables = [*ctx.sources, *node.inputs]
            outcome = await ctx.uql(node.body, tables=tables, to=node.name)
            table = ctx.workspace.table(node.name)
            return Output(table, outcome=outcome, fields=_fields(node, table, outputs, ctx))
        case NodeKind.SQL:
            table = await ctx.workspace.sql(node.body, tables=[*ctx.sources, *node.inputs], to=node.name)
            return Output(table, fields=_fields(node, table, outputs, ctx))
        case NodeKind.PYTHON:
            return await _python(node, outputs, ctx)
        case NodeKind.PLOT:
            from uql.nl.ask.plan_checks import typed
            from uql.nl.plan.nodes.plot import make_plots

            tables_ = {name: ctx.workspace.table(name) for name in node.inputs}
            if tables_ and not any(table.num_rows for table in tables_.values()):
                return Output(next(iter(tables_.values())))  # nothing matches, and nothing is drawn
            body = typed(node.body, {name: fields_of(table, {}) for name, table in tables_.items()})
            plots = await asyncio.to_thread(make_plots, body, tables_)
            return Output(plots=plots)
    raise QuestionError(f"a node of kind {node.kind.value} is not run here")


async def _python(node: Node, outputs: Mapping[str, Output], ctx: AskContext) -> Output:
    from uql.nl.plan.nodes.python import run_python

    inputs: dict[str, Any] = {}
    for name in node.inputs:
        output = outputs.get(name)
        inputs[name] = ctx.workspace.table(name) if output is None or output.table is not None else output.value
    done = await asyncio.to_thread(run_python, node.body, inputs)
    if done.table is None:
        private = any(f.private for name in node.inputs if name in outputs for f in outputs[name].fields)
        return Output(value=done.value, fields=(Field("value", "JSON", private=True),) if private else ())
    ctx.workspace.put(node.name, done.table)
    return Output(done.table, done.value, fields=_fields(node, done.table, outputs, ctx))


def _fields(node: Node, table: pa.Table, outputs: Mapping[str, Output], ctx: AskContext) -> tuple[Field, ...]:
    """The columns of a node's rows: what holds images or private values says so."""
    fields = marked(node, fields_of(table, _input_fields(node, outputs, ctx)), fields_read(node, outputs, ctx))
    ctx.workspace.hide(node.name, [f.name for f in fields if f.private])
    return fields


def fields_read(node: Node, outputs: Mapping[str, Output], ctx: AskContext) -> list[Field]:
    """The columns of all that a node may read: its inputs, and the tables that its statement names.

    Args:
        node: of any kind.
        outputs: of the nodes before, by name.
    """
    read = [f for name in node.inputs if name in outputs for f in outputs[name].fields]
    if node.kind in (NodeKind.UQL, NodeKind.SQL):
        low = node.body.lower().replace('""', '"')  # a quote in a name
        read += [f for source in ctx.sources.values() if source.name.lower() in low for f in source.fields]
    return read


def _input_fields(node: Node, outputs: Mapping[str, Output], ctx: AskContext) -> dict[str, Field]:
    """The columns of everything it may read, by name: an image that it passes on is still an image."""
    fields = [f for source in ctx.sources.values() for f in source.fields if f.is_unstructured]
    fields += [f for name in node.inputs if name in outputs for f in outputs[name].fields if f.is_unstructured]
    return {f.name: f for f in fields}


def preview(table: pa.Table, *, rows: int = 20, hidden: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
    """The first rows as a prompt shows them: no bytes, no private columns, texts on one short line.

    Args:
        rows: shown at most.
        hidden: columns that are left out, in lower case.
    """
    columns = [name for name in table.column_names if name.lower() not in hidden]
    short_rows = []
    for row in rows_of(table.select(columns).slice(0, rows)):
        cells = {k: short(v) if isinstance(v, str) else v for k, v in row.items() if not isinstance(v, bytes)}
        short_rows.append(cells)
    return short_rows


def result_text(name: str, output: Output, *, hidden: frozenset[str] = frozenset()) -> str:
    """A result in a line, as a prompt shows it: its columns, how many rows it has, and the first of them.

    Args:
        hidden: lower-case names of columns that no model may see, besides those of the output.
    """
    hidden = hidden | output.hidden
    fields = ", ".join(f"{f.name} {f.type}" for f in output.fields if f.name.lower() not in hidden)
    head = f"{name} ({fields})" if fields else name
    if output.table is not None:
        first = json.dumps(preview(output.table, rows=OBSERVED, hidden=hidden), default=str, ensure_ascii=False)
        return f"{head}, {output.table.num_rows:,} rows: {first[:MOST_CHARS]}"
    if output.plots:
        return f"{head}: {len(output.plots)} plots"
    value = "private, and not shown" if output.hidden else json.dumps(output.value, default=str, ensure_ascii=False)
    return f"{head}: {value[:MOST_CHARS]}"


def plan_text(plan: Plan, outputs: Mapping[str, Output], steps: Sequence[Step], hidden: frozenset[str]) -> str:
    """A plan as a prompt shows it: each node as it ran last, with what it gave or why it failed.

    Args:
        steps: the runs of its nodes.
        hidden: lower-case names of columns that no model may see.
    """
    ran = {step.node: step for step in steps}
    parts = []
    for node in plan.nodes:
        if node.kind is NodeKind.ANSWER:
            continue
        step = ran.get(node.name)
        gave = f"failed: {step.problem}" if step is not None else "has not run"
        if node.name in outputs:
            gave = f"gave {result_text(node.name, outputs[node.name], hidden=hidden)}"
        parts.append(f"{node.name}: {node.kind.value}\n  {step.body if step is not None else node.body}\n  {gave}")
    return "\n".join(parts)
