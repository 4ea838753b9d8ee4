"""The mode `interleaved`: logical steps in words, each mapped to a node when its inputs are there, and run.

A step that fails asks the six error questions: the plan at fault is planned again, another tool or other arguments are mapped again, each
at most twice; the causes and the fix that they name stand in the next prompt. The node of a step that a small model plans is decided by
a vote (`uql/nl/small/`).

Source: CAESURA (Urban and Binnig, 2023).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from uql.base.errors import QuestionError, UQLError
from uql.base.names import free_name, free_names
from uql.nl.ask.context import AskContext
from uql.nl.ask.executor import Executor
from uql.nl.ask.node_runners import plan_text, result_text
from uql.nl.ask.outputs import EMPTY
from uql.nl.ask.plan_checks import brief, checked_node, error_line
from uql.nl.ask.planner import Planner
from uql.nl.plan import read_plan as forms
from uql.nl.plan.dag import Node, NodeKind, Plan
from uql.nl.plan.fill_holes import completed
from uql.nl.prompts import interleaved as words
from uql.nl.schema.discover import schema_text
from uql.nl.small.route import plan_by_vote
from uql.operators.texts import short

TRIES = 2  # re-plans, and new mappings of a step
MAPPED_AGAIN = ("UQL620", "UQL621", "UQL1", "UQL2")  # codes of errors that another statement may mend


@dataclass(frozen=True, slots=True)
class LogicalStep:
    """A step in words: what it does, the tables it reads, the name of what it gives, the columns it adds."""

    description: str
    inputs: tuple[str, ...]
    output: str
    new_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """A step that failed for good, why, and the answers to the six questions; None: a limit was reached, nothing was asked."""

    step: LogicalStep
    error: str
    verdict: Mapping[str, Any] | None

    @property
    def asks_for_plan(self) -> bool:
        return self.verdict is not None and bool(self.verdict["plan_flawed"] or self.verdict["better_plan"])


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
    ends: set[str] = field(default_factory=set)  # outputs that no other step of their plan reads: parts of the answer
    problem: str = ""
    replans: int = 0
    # of a small model's vote, by the output of the step
    doubts: dict[str, tuple[str, ...]] = field(default_factory=dict)

    async def run(self) -> None:
        """Plans, maps and runs until every step has its output, or a limit is reached (`problem` says which)."""
        self.logical = await self._steps("")
        while True:
            self.executor.plan = self._plan()
            try:
                failure = await self._pass()
            finally:  # what has run is part of it, also where the budget ended
                self.executor.plan = self._plan()
            if failure is None:
                return
            if not failure.asks_for_plan or self.replans >= TRIES:
                self.problem = brief(f"{failure.step.output}: {failure.error}")
                return
            self.replans += 1
            self.executor.replans += 1
            why = f"The plan before, with what its steps gave:\n{self._failure_text(failure)}\n\nIt failed: {failure.error}"
            self.logical = await self._steps(f"{why}\n{_advice(failure.verdict)}")

    async def _pass(self) -> Failure | None:
        """Runs what can be run, in waves of steps whose inputs are there; the first step that failed for good."""
        while True:
            there = set(self.executor.outputs)
            waiting = [s for s in self.logical if s.output not in there]
            if not waiting:
                return None
            ready = [s for s in waiting if all(i in there or i in self.ctx.sources for i in s.inputs)]
            failures = await asyncio.gather(*(self._do(step) for step in ready))
            if first := next((failure for failure in failures if failure is not None), None):
                return first

    async def _do(self, step: LogicalStep) -> Failure | None:
        """Maps a step to a node and runs it; None where that worked."""
        why, verdict = "", None
        empty: set[str] = set()  # statements that gave no rows
        for n in range(1 + TRIES):
            inner = self.ctx.step(f"map {step.output}")
            try:
                nodes = await self._mapped(step, f"{why}\n{_advice(verdict)}".strip(), inner)
            except UQLError as error:
                if not isinstance(error, QuestionError) and not error.code.startswith(MAPPED_AGAIN):
                    raise
                why, verdict = error_line(error), None
                continue
            for node in nodes:
                insisted = node.body in empty
                last = n == TRIES and step is self.logical[-1]
                output = await self.executor.run_one(node, accept_empty=last or insisted, insisted=insisted)
                report = next(t for t in reversed(self.executor.steps) if t.node == node.name)
                report.prompts[:0], inner.prompts = inner.prompts, []
                if output is None:
                    why = self.executor.take_failure(node.name)
                    empty |= {node.body} if why == EMPTY else set()
                    break
                self.nodes = [n for n in self.nodes if n.name != node.name] + [node]
            else:
                return None
            if self.executor.limit:
                return Failure(step, why, None)
            verdict = await self._diagnose(step, why)
            if Failure(step, why, verdict).asks_for_plan:
                break
        return Failure(step, why, verdict or await self._diagnose(step, why))

    async def _mapped(self, step: LogicalStep, why: str, inner: AskContext) -> list[Node]:
        if (await inner.can()).small:
            return await self._by_vote(step, why, inner)
        whole, outputs = self.planner.scope, self.executor.outputs
        scope = whole.only([n for n in whole.sources if n in step.inputs] or list(whole.sources))
        task = f"{step.description} Output: {step.output}"
        task += f" with {', '.join(step.new_columns)}" if step.new_columns else ""
        schema = schema_text(scope, tokens=self.planner.tokens)
        reply = await inner.say(words.mapping(self.ctx.question, task, schema, self._results(step.inputs), why))
        node = forms.node_of({**reply["node"], "name": step.output}, 1)
        if node.kind is NodeKind.UQL:
            tables = {n: s.fields for n, s in whole.sources.items()} | {n: o.fields for n, o in outputs.items()}
            node = replace(node, body=completed(node.body, tables))
        node = replace(forms.with_inputs(node, set(outputs)), description=step.description)
        inputs = {name: outputs[name].fields for name in node.inputs if name in outputs}
        return [checked_node(node, self.ctx.sources, inputs, self.ctx.settings)]

    async def _by_vote(self, step: LogicalStep, why: str, inner: AskContext) -> list[Node]:
        """The nodes of a step over its inputs and the tables that are near to its words."""
        words_ = step.description
        if len(self.logical) == 1:
            words_ = self.ctx.question  # nothing is left of a question that is one step but its own words
        scope = self.ctx.find(words_) if self.ctx.find is not None else self.planner.scope
        done_nodes = [n for n in self.nodes if n.name in step.inputs and n.name in self.executor.outputs]
        inputs = [name for name in step.inputs if name in scope.sources]
        if inputs or done_nodes:
            scope = scope.connected(inputs)
        context = inner.asking(words_)
        decision = await plan_by_vote(
            context, scope, done_nodes=done_nodes, used_names=list(self.executor.outputs), why=why
        )
        self.doubts[step.output] = decision.doubts
        old = {node.name for node in done_nodes}
        nodes = [n for n in decision.planned.checked.plan.nodes if n.name not in old and n.kind is not NodeKind.ANSWER]
        last = nodes[-1]
        return [*nodes[:-1], replace(last, name=step.output, description=step.description)]

    def _results(self, names: Collection[str]) -> str:
        """The existing results with these names, with rows."""
        there = {name: output for name, output in self.executor.outputs.items() if name in names}
        return "\n".join(result_text(name, output, hidden=self.hidden) for name, output in there.items()) or "none"

    def _failure_text(self, failure: Failure) -> str:
        """The steps, and the nodes that they became, with what these gave."""
        steps = [f"{n}. {s.description} → {s.output}" for n, s in enumerate(self.logical, 1)]
        tried = next((t.body for t in reversed(self.executor.steps) if t.node == failure.step.output), "")
        failed = f"{failure.step.output}:\n  {tried}\n  failed: {failure.error}"
        return "\n".join(
            [*steps, plan_text(self._plan(), self.executor.outputs, self.executor.steps, self.hidden), failed]
        )

    async def _steps(self, why: str) -> list[LogicalStep]:
        outputs = self.executor.outputs
        results = self._results(outputs) if outputs else ""
        inner = self.ctx.step("steps")
        schema = schema_text(self.planner.scope, tokens=self.planner.tokens - 900)
        is_small = (await inner.can()).small
        names = [*self.planner.scope.sources, *outputs] if is_small else []
        known = [*self.ctx.sources, *outputs]

        def misplanned(reply: Mapping[str, Any]) -> str:
            try:
                logical_steps(reply["steps"], known)
            except QuestionError as error:
                return error_line(error)
            return ""

        wording = words.steps(self.ctx.question, schema, self.ctx.rules, why, results, names=names)
        try:
            reply = await inner.say(replace(wording, check=misplanned))
        except QuestionError:
            if not is_small:
                raise
            whole = {"description": self.ctx.question, "inputs": [*self.planner.scope.sources], "output": "result1"}
            reply = {"steps": [whole]}
        self.ctx.prompts += inner.prompts
        steps = logical_steps(reply["steps"], known)
        self.ends = (self.ends & set(outputs)) | {
            s.output for s in steps if not any(s.output in o.inputs for o in steps)
        }
        return steps

    async def _diagnose(self, step: LogicalStep, error: str) -> Mapping[str, Any]:
        """The six questions. Where the model gives no usable reply, the arguments are taken to be at fault."""
        plan = self._failure_text(Failure(step, error, None))
        schema = schema_text(self.planner.scope, tokens=self.planner.tokens // 2)
        no_plan = {"plan_flawed": False, "better_plan": False, "another_tool": False}
        unsaid = {**no_plan, "other_arguments": True, "causes": "", "fix": ""}
        failed = f"{step.output}: {step.description}"
        wording = words.faults(self.ctx.question, plan, failed, error, schema)
        verdict: Mapping[str, Any] = await self.ctx.say_or(wording, unsaid, step="faults")
        return verdict

    def _plan(self) -> Plan:
        """What has been mapped so far, with the answer behind it: the outputs of steps that no other step reads.

        Those of a plan before this one stay, where no step of this one reads them.
        """
        done = [node for node in self.nodes if node.name in self.executor.outputs]
        names = {node.name for node in done}
        done = [replace(n, inputs=tuple(i for i in n.inputs if i in names)) for n in done]  # the others are tables
        read = {i for n in done for i in n.inputs} | {i for s in self.logical for i in s.inputs}
        last = tuple(n.name for n in done if n.name in self.ends and n.name not in read)
        return Plan((*done, Node(free_name(forms.ANSWER, names), NodeKind.ANSWER, "", last)))


def logical_steps(items: Sequence[Mapping[str, Any]], known: Collection[str]) -> list[LogicalStep]:
    """The steps of a reply, each with an output of its own, and its inputs by the names that tables, results and outputs have.

    Args:
        items: as the schema of the prompt says.
        known: names of the tables and results that are there.
    Raises: QuestionError (UQL630) where there are too few or too many, a name is none, or an input is made by nobody or too late.
    """
    if not 0 < len(items) <= words.MOST:
        raise QuestionError(f"there are {len(items)} steps", help=f"1 to {words.MOST}")
    names = [item["output"] for item in items]
    if strange := [name for name in names if not (name.isascii() and name.isidentifier())]:
        raise QuestionError(f"an output is called {short(strange[0])!r}", help="letters, digits and _")
    outputs = free_names(names, known)
    steps = []
    for n, item in enumerate(items):
        made = list(zip(names, outputs, strict=True))
        # of one name the last before it counts, a table more than a later step
        places = {name.lower(): at for name, at in (*made[n + 1 :], *((name, name) for name in known), *made[:n])}
        if not item["inputs"]:
            raise QuestionError(f"step {n + 1} reads nothing", help=f"tables and results: {', '.join(known)}")
        inputs = {i: places.get(i.lower()) or places.get(i.lower().rpartition(".")[2]) for i in item["inputs"]}
        if missing := [name for name, at in inputs.items() if at is None]:
            there = f"tables and results: {', '.join(known)}; outputs: {', '.join(names)}"
            raise QuestionError(f"step {n + 1} reads {short(missing[0])!r}, which is not there", help=there)
        read = tuple(dict.fromkeys(filter(None, inputs.values())))
        steps.append(LogicalStep(item["description"], read, outputs[n], tuple(item.get("new_columns", ()))))
    try:
        TopologicalSorter({s.output: set(s.inputs) & set(outputs) for s in steps}).prepare()
    except CycleError as cycle:
        raise QuestionError(f"the steps {' → '.join(cycle.args[1])} wait for each other") from None
    return steps


def _advice(verdict: Mapping[str, Any] | None) -> str:
    """The causes and the fix that the six questions found, for the next prompt."""
    said_ = {"Causes": "causes", "How to fix it": "fix"}
    lines = [f"{head}: {verdict[key]}" for head, key in said_.items() if verdict and verdict.get(key)]
    return "\n".join(lines)
