"""The mode `interleaved`: logical steps in words, each mapped to a node when its inputs are there, and run.

A step that fails asks the six error questions: the plan at fault is planned again, another tool or other arguments are mapped again, each
at most twice. The node of a step that a small model plans is decided by a vote (`uql/nl/small/`).

Source: CAESURA (Urban and Binnig, 2023).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from uql.base.errors import QuestionError, UQLError
from uql.base.schema import Field
from uql.nl.ask.context import AskContext
from uql.nl.ask.executor import Executor
from uql.nl.ask.node_runners import preview
from uql.nl.ask.plan_checks import check_node, said
from uql.nl.ask.planner import Planner
from uql.nl.plan import read_plan as forms
from uql.nl.plan.dag import Node, NodeKind, Plan
from uql.nl.plan.result_schema import Shapes
from uql.nl.prompts import faults as fault_words
from uql.nl.prompts import interleaved as words
from uql.nl.schema.discover import schema_text
from uql.nl.schema.scope import Scope
from uql.nl.small.route import plan_by_vote

TRIES = 2  # re-plans, and new mappings of a step
OBSERVED = 3  # rows of an input that are shown


@dataclass(frozen=True, slots=True)
class LogicalStep:
    """A step in words: what it does, the tables it reads, the name of what it gives, the columns it adds."""

    description: str
    inputs: tuple[str, ...]
    output: str
    new_columns: tuple[str, ...] = ()


@dataclass(slots=True)
class Interleaved:
    """One question in this mode.

    Attributes:
        ctx: the run.
        planner: for the words of the schema.
        executor: runs the nodes; its `replan` is not used.
        logical: the steps as they are planned at last.
    """

    ctx: AskContext
    planner: Planner
    executor: Executor
    hidden: frozenset[str] = frozenset()
    logical: list[LogicalStep] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    problem: str = ""
    replans: int = 0

    async def run(self) -> None:
        """Plans, maps and runs until every step has its output, or a limit is reached (`problem` says which)."""
        self.logical = await self._steps("")
        while True:
            self.executor.plan = self._plan()
            failed = await self._pass()
            self.executor.plan = self._plan()
            if failed is None:
                return
            step, error = failed
            verdict = await self._asked(step, error)
            if not (verdict["plan_flawed"] or verdict["better_plan"]) or self.replans >= TRIES:
                self.problem = f"{step.output}: {error}"
                return
            self.replans += 1
            self.executor.replans += 1
            self.logical = await self._steps(f"{error}. {verdict['fix']}")

    async def _pass(self) -> tuple[LogicalStep, str] | None:
        """Runs what can be run, in waves of steps whose inputs are there; the first step that failed for good."""
        while True:
            there = set(self.executor.outputs)
            waiting = [s for s in self.logical if s.output not in there]
            if not waiting:
                return None
            made = {s.output for s in self.logical}
            ready = [s for s in waiting if all(i in there or i in self.ctx.sources or i not in made for i in s.inputs)]
            if not ready:
                return waiting[0], "its inputs wait for each other"
            reasons = await asyncio.gather(*(self._do(step) for step in ready))
            for step, reason in zip(ready, reasons, strict=True):
                if reason:
                    return step, reason

    async def _do(self, step: LogicalStep) -> str:
        """Maps a step to a node and runs it; why that failed, "" where it did not."""
        why = ""
        for n in range(1 + TRIES):
            self.executor.accept_empty = n == TRIES and step is self.logical[-1]
            inner = self.ctx.step(f"map {step.output}")
            try:
                nodes = await self._mapped(step, why, inner)
            except QuestionError as error:
                why = said(error)
                continue
            except UQLError as error:
                if error.code in ("UQL620", "UQL621") or error.code.startswith(("UQL1", "UQL2")):
                    why = said(error)
                    continue
                raise
            for node in nodes:
                output = await self.executor.run_one(node)
                told = next(t for t in reversed(self.executor.steps) if t.node == node.name)
                told.prompts[:0], inner.prompts = inner.prompts, []
                if output is None:
                    why = self.executor.take_failure(node.name)
                    break
                self.nodes = [n for n in self.nodes if n.name != node.name] + [node]
            else:
                return ""
            if self.executor.limit:
                return why
            verdict = await self._asked(step, why)
            if verdict["plan_flawed"] or verdict["better_plan"]:
                return why
            why = f"{why}. {verdict['fix']}"
        return why

    async def _mapped(self, step: LogicalStep, why: str, inner: AskContext) -> list[Node]:
        inputs = self._inputs(step)
        model = await inner.gate.provider(inner.planner)
        if model.capabilities.small:
            return await self._by_vote(step, why, inner)
        scope = Scope(
            {n: s for n, s in self.planner.scope.sources.items() if n in step.inputs} or self.planner.scope.sources,
            self.planner.scope.links,
        )
        shown = schema_text(scope.only(list(scope.sources)), tokens=1_500)
        shown += "".join(f"\n{n} ({', '.join(f'{f.name} {f.type}' for f in fs)})" for n, fs in inputs.items())
        told = f"{step.description} Output: {step.output}" + (
            f" with {', '.join(step.new_columns)}" if step.new_columns else ""
        )
        reply = await inner.say(words.mapping(self.ctx.question, told, shown, self._observed(step), why))
        item = {**reply["node"], "name": step.output}
        node = forms.finished([forms.node_of(item, 1, {})], [n for n in self.nodes if n.name in inputs])[step.output]
        node = replace(node, description=step.description)
        shapes = Shapes(self.ctx.sources)
        for name, fields in inputs.items():
            shapes.add(name, fields)
        checked, _ = check_node(node, self.ctx.sources, shapes, inputs, self.ctx.settings)
        return [checked]

    async def _by_vote(self, step: LogicalStep, why: str, inner: AskContext) -> list[Node]:
        """The nodes of a step over its inputs and the tables that are near to its words."""
        words_ = step.description
        if len(self.logical) == 1:
            words_ = self.ctx.question  # nothing is left of a question that is one step but its own words
        scope = self.ctx.find(words_) if self.ctx.find is not None else self.planner.scope
        kept = [n for n in self.nodes if n.name in step.inputs and n.name in self.executor.outputs]
        inputs = [name for name in step.inputs if name in scope.sources]
        if inputs or kept:
            scope = scope.connected(inputs)
        asked = inner.asking(words_)
        found = await plan_by_vote(asked, scope, kept=kept, taken=list(self.executor.outputs), why=why)
        old = {node.name for node in kept}
        nodes = [n for n in found.planned.checked.plan.nodes if n.name not in old and n.kind is not NodeKind.ANSWER]
        last = nodes[-1]
        return [*nodes[:-1], replace(last, name=step.output, description=step.description)]

    def _inputs(self, step: LogicalStep) -> dict[str, tuple[Field, ...]]:
        return {name: self.executor.outputs[name].fields for name in step.inputs if name in self.executor.outputs}

    def _observed(self, step: LogicalStep) -> str:
        lines = []
        for name in step.inputs:
            output = self.executor.outputs.get(name)
            if output is not None and output.table is not None:
                rows = preview(output.table, rows=OBSERVED, hidden=self.hidden | output.hidden)
                lines.append(f"{name}: {json.dumps(rows, default=str, ensure_ascii=False)}")
        return "\n".join(lines) or "none"

    async def _steps(self, why: str) -> list[LogicalStep]:
        outputs = self.executor.outputs
        kept = "\n".join(f"{n} ({', '.join(f.name for f in o.fields)})" for n, o in outputs.items())
        inner = self.ctx.step("steps")
        schema = schema_text(self.planner.scope, tokens=self.planner.tokens - 900)
        held = (await inner.gate.provider(inner.planner)).capabilities.small
        names = [*self.planner.scope.sources, *outputs] if held else []
        try:
            said_ = await inner.say(words.steps(self.ctx.question, schema, self.ctx.rules, why, kept, names=names))
            if held and not said_["steps"]:
                raise QuestionError("there are no steps", code="UQL632")
        except QuestionError:
            if not held:
                raise
            whole = {"description": self.ctx.question, "inputs": [*self.planner.scope.sources], "output": "result1"}
            said_ = {"steps": [whole]}
        self.ctx.prompts += inner.prompts
        steps: list[LogicalStep] = []
        taken = {*map(str.lower, self.ctx.sources), *map(str.lower, outputs)}
        renamed: dict[str, str] = {}
        for item in said_["steps"]:
            name = item["output"]
            while name.lower() in taken:
                name += "_"
            taken.add(name.lower())
            inputs = tuple(renamed.get(i, i) for i in item["inputs"])
            renamed[item["output"]] = name
            steps.append(LogicalStep(item["description"], inputs, name, tuple(item.get("new_columns", ()))))
        return steps

    async def _asked(self, step: LogicalStep, error: str) -> Mapping[str, Any]:
        """The six questions. Where the model gives no usable reply, the arguments are taken to be at fault."""
        plan = "\n".join(f"{n}. {s.description} → {s.output}" for n, s in enumerate(self.logical, 1))
        schema = schema_text(self.planner.scope, tokens=1_500)
        inner = self.ctx.step("faults")
        try:
            verdict: Mapping[str, Any] = await inner.say(
                fault_words.wording(self.ctx.question, plan, f"{step.output}: {step.description}", error, schema)
            )
        except QuestionError:
            verdict = {
                "plan_flawed": False,
                "better_plan": False,
                "another_tool": False,
                "other_arguments": True,
                "fix": "",
            }
        self.ctx.prompts += inner.prompts
        return verdict

    def _plan(self) -> Plan:
        """What has been mapped so far, with the answer behind it: the outputs of the last plan's steps that none reads."""
        done = [node for node in self.nodes if node.name in self.executor.outputs]
        names = {node.name for node in done}
        done = [replace(n, inputs=tuple(i for i in n.inputs if i in names)) for n in done]
        read = {i for n in done for i in n.inputs} | {i for s in self.logical for i in s.inputs}
        planned = {s.output for s in self.logical}
        last = tuple(n.name for n in done if n.name in planned and n.name not in read)
        name = forms.ANSWER
        while name in names:
            name += "_"
        return Plan((*done, Node(name, NodeKind.ANSWER, "", last)))
