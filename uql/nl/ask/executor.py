"""The executor: nodes in parallel, each judged, debugged once, and re-planned with what depends on it when that does not help.

What succeeded is kept: a re-plan gets the existing results, and none of them is run again. Nodes run, re-plans,
calls and cost have hard limits. Source: M²EX (parallel tasks, partial re-planning), CAESURA (error questions).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from uql.base.errors import (
    AuthError,
    BackendError,
    BudgetError,
    ConfigError,
    QuestionError,
    QuotaError,
    UnknownModelError,
    UQLError,
)
from uql.base.schema import Field
from uql.nl.ask.context import AskContext, NodeEvent
from uql.nl.ask.node_runners import MOST_CHARS, fields_read, result_text, run_node
from uql.nl.ask.outputs import EMPTY, Output, Step, problem_of
from uql.nl.ask.plan_checks import Checked, brief, error_line
from uql.nl.guard.guard import BUDGET
from uql.nl.plan.dag import Node, NodeKind, Plan
from uql.nl.plan.lineage import without_values

# they concern every node: nothing is mended by another plan
FATAL = (AuthError, QuotaError, UnknownModelError, BackendError, ConfigError)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one question may take at most, besides its budget of calls, tokens and USD."""

    replans: int = 2  # after failed nodes
    answers: int = 2  # re-plans that the answer asks for
    nodes: int = 24  # runs of nodes, all plans together


def limit_of(ctx: AskContext) -> str:
    """The limit of the whole question that its calls have reached, with its value; "": none. That of calls ends no step by itself."""
    name = {"seconds": "max_seconds", "usd": "max_cost", "tokens": "max_tokens"}.get(ctx.gate.budget.exhausted or "")
    return f"{name} = {getattr(ctx.settings, name):g}" if name else ""


Answering = Callable[[Node, Mapping[str, Output], AskContext, Step], Awaitable[Output]]
Mend = Callable[[Node, str, Mapping[str, tuple[Field, ...]], AskContext, str], Awaitable[Node]]
Replan = Callable[[list[Node], str, AskContext], Awaitable[Checked]]


@dataclass(slots=True)
class Executor:
    """Runs one question's plans.

    Attributes:
        ctx: the run.
        mend: a node, its error, the columns of its inputs and their rows in words → the node written again, checked; None: nodes
            do not debug themselves.
        replan: nodes that have run and what went wrong → a checked plan that begins with them; None: no re-plan.
        answering: runs adapter nodes: operators and adapters in their order until one answers validly.
        limits: hard ones.
        hidden: lower-case names of columns that no model may see.
    """

    ctx: AskContext
    mend: Mend | None = None
    replan: Replan | None = None
    answering: Answering | None = None
    limits: Limits = field(default_factory=Limits)
    hidden: frozenset[str] = frozenset()
    outputs: dict[str, Output] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    plan: Plan | None = None
    replans: int = 0
    runs: int = 0
    limit: str = ""  # what ended the run before it was done
    _began: float = field(default_factory=time.monotonic)
    _failed: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> Mapping[str, str]:
        """Nodes of the last plan that failed, with the reason."""
        return dict(self._failed)

    @property
    def why_failed(self) -> str:
        """The reasons of `failed` in a line."""
        return brief("; ".join(f"{name}: {why}" for name, why in self._failed.items()), MOST_CHARS)

    def fail(self, name: str, why: str) -> None:
        """Notes that a node or step failed; the first reason stays."""
        self._failed.setdefault(name, why)

    def take_failure(self, name: str) -> str:
        """Why a node failed, which is forgotten: it will be tried in another way."""
        return self._failed.pop(name, "it failed")

    async def run(self, plan: Plan) -> None:
        """Runs a plan, and those that replace it, until all nodes but the answer have valid outputs or a limit is reached."""
        self.plan = plan
        while True:
            await self._pass(self.plan)
            if not self._failed or self.limit or self.replan is None:
                return
            if self.replans >= self.limits.replans:
                self.limit = f"{self.limits.replans} re-plans"
                return
            self.replans += 1
            await self.again(self.why_failed)

    async def again(self, why: str) -> None:
        """Replaces what has no output by a new plan; nodes with valid outputs are kept, and are part of it."""
        assert self.plan is not None and self.replan is not None
        healthy = [node for node in self.plan.nodes if node.name in self.outputs and node.kind is not NodeKind.ANSWER]
        lost = {node.name for node in self.plan.nodes} - {node.name for node in healthy}
        self.ctx.emit(NodeEvent(", ".join(sorted(lost)), "replan", why))
        step = self.ctx.step("replan")
        report = Step("replan", "plan", "", f"after {why}", "failed", began_s=self._since())
        began = time.monotonic()
        self.steps.append(report)
        try:
            checked = await self.replan(healthy, why, step)
        except BudgetError as error:
            self.limit, report.problem = error.message, error_line(error)
            return
        except FATAL:
            raise
        except UQLError as error:
            report.problem = error_line(error)
            return
        finally:
            report.seconds, report.cost, report.prompts = time.monotonic() - began, step.cost, step.prompts
        report.state = "done"
        self.ctx.workspace.drop(lost)
        self.plan, self._failed = checked.plan, {}

    # ---------------------------------------------------------------------------------------------------------- a pass
    async def _pass(self, plan: Plan) -> None:
        """Every node without an output, each as soon as its inputs are there; those behind a failed one are not run."""
        tasks: dict[str, asyncio.Task[None]] = {}

        async def go(node: Node) -> None:
            for name in node.inputs:
                if name in tasks:
                    await asyncio.shield(tasks[name])
                if name not in self.outputs:
                    return
            await self.run_one(node)

        for node in plan.nodes:  # tasks first run after all are made
            if node.kind is not NodeKind.ANSWER and node.name not in self.outputs and node.name not in self._failed:
                tasks[node.name] = asyncio.create_task(go(node))
        try:
            await asyncio.gather(*tasks.values())
        finally:  # where one raised or the caller cancelled: the others end too
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def run_one(self, node: Node, *, accept_empty: bool = True, insisted: bool = False) -> Output | None:
        """Runs a node whose inputs are there, debugging it once; None, and a reason in `failed`, where that did not help.

        Args:
            accept_empty: no rows at the end of a plan, also after mending, are an answer: nothing matches. In the middle they are taken
                where the model, shown them, stands by its statement.
            insisted: it has done so before: the statement has given no rows, and was written again as it was.
        """
        report = Step(node.name, node.kind.value, node.body, node.description, began_s=self._since())
        self.steps.append(report)
        step = self.ctx.step(node.name)
        began = time.monotonic()
        self.ctx.emit(NodeEvent(node.name, "start", node.description or node.kind.value))
        try:
            output = await self._run_with_retry(node, step, report, accept_empty, insisted)
        finally:
            report.seconds, report.cost, report.prompts = time.monotonic() - began, step.cost, step.prompts
        report.state, report.rows = ("failed", None) if output is None else ("done", output.rows)
        if output is None:
            self._failed[node.name] = report.problem
            self.ctx.emit(NodeEvent(node.name, "failed", report.problem))
            return None
        self.outputs[node.name] = output
        self.ctx.emit(NodeEvent(node.name, "done", f"{output.rows} rows" if output.rows is not None else ""))
        return output

    async def _run_with_retry(
        self, node: Node, step: AskContext, report: Step, accept_empty: bool, insisted: bool
    ) -> Output | None:
        """The valid output of a node at its first or second try."""
        empty: Output | None = None
        for attempt in (1, 2):
            if self.runs >= self.limits.nodes:
                report.problem = self.limit = f"{self.limits.nodes} runs of nodes"
                return None
            self.runs += 1
            report.tries, report.body = attempt, node.body
            calls = self._share()
            inner = step.step(node.name, calls=calls)
            try:
                output = await self._once(node, inner, report)
                problem = problem_of(node, output, [*self.ctx.sources, *node.inputs])
                problem = problem and brief(problem)
                empty = output if problem == EMPTY else None
            except FATAL:
                raise
            except UQLError as error:
                if isinstance(error, BudgetError) and self.ctx.gate.calls_left == 0:
                    self.limit = "the budget of calls"
                problem = without_values(error, node.kind, node.body, fields_read(node, self.outputs, self.ctx))
            step.prompts += inner.prompts
            self.limit = self.limit or limit_of(self.ctx)
            if problem is None:
                report.problem = ""
                return output
            report.problem = problem
            report.tried.append((node.body, problem))
            if attempt == 2 or self.mend is None or node.kind is NodeKind.ADAPTER or self.limit:
                break
            self.ctx.emit(NodeEvent(node.name, "debug", problem))
            read = {name: self.outputs[name] for name in node.inputs if name in self.outputs}
            rows = "\n".join(result_text(name, output, hidden=self.hidden) for name, output in read.items())
            try:
                mended = await self.mend(node, problem, {name: o.fields for name, o in read.items()}, step, rows)
            except FATAL:
                raise
            except UQLError as error:
                report.problem = brief(f"{problem}; mending it failed: {error_line(error)}", MOST_CHARS)
                break
            if mended.body == node.body:
                insisted = True
                break
            node = replace(node, body=mended.body)
        if empty is not None and accept_empty and not self.limit and (insisted or self._is_last(node)):
            report.problem = ""  # nothing matches: an answer, or rows that later nodes find none of
            return empty
        return None

    async def _once(self, node: Node, step: AskContext, report: Step) -> Output:
        if node.kind is NodeKind.ADAPTER:
            if self.answering is None:
                raise QuestionError("there is no adapter for an adapter node")
            return await self.answering(node, self.outputs, step, report)
        return await run_node(node, self.outputs, step)

    def _share(self) -> int | None:
        """The calls that a node may make: its part of what is left, at least the usual budget of a query."""
        left = self.ctx.gate.calls_left
        if left is None:
            return None
        waiting = sum(
            1
            for other in (self.plan.nodes if self.plan is not None else ())
            if other.name not in self.outputs and other.kind in (NodeKind.UQL, NodeKind.ADAPTER)
        )
        return min(left, max(BUDGET, left // max(1, waiting)))

    def _is_last(self, node: Node) -> bool:
        """Only the answer reads it."""
        return self.plan is None or all(n.kind is NodeKind.ANSWER or node.name not in n.inputs for n in self.plan.nodes)

    def _since(self) -> float:
        return time.monotonic() - self._began
