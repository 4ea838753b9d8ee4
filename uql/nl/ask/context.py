"""What the pieces of an answer share: the tables they may read, the way to the model, one budget, one stream of events."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from uql.base.errors import BackendError, BudgetError, QuestionError
from uql.llm.failures import TRANSIENT
from uql.llm.questions import Row, Write
from uql.llm.run_record import Cost
from uql.nl.ask.room import Room
from uql.nl.prompts import Wording, misfit, rules_text
from uql.nl.schema.name_words import Near, in_common
from uql.nl.schema.scope import Scope, Source
from uql.operators.texts import neutral

if TYPE_CHECKING:
    from uql.base.settings import Settings
    from uql.engine.outcome import Outcome
    from uql.llm.gate import Gate
    from uql.llm.providers.base import Capabilities, Provider
    from uql.nl.guard.workspace import Workspace


SHOWN = 120  # characters of a line of progress


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """A node of a plan: begun, done, failed, debugged, or the plan made anew. `plan` and `answer` are being written, then done."""

    node: str
    state: str  # writing, start, done, failed, debug, replan
    detail: str = ""
    kind: str = "node"

    @property
    def text(self) -> str:
        """What it says, for a line of progress.

        >>> NodeEvent("late", "done", "4 rows").text, NodeEvent("late", "start", "complaints by shop").text
        ('done, 4 rows', 'running: complaints by shop')
        """
        words = {
            "start": "running: ",
            "done": "done, ",
            "failed": "failed: ",
            "debug": "written again: ",
            "replan": "planned again: ",
        }
        line = words.get(self.state, f"{self.state}, ") + " ".join(self.detail.split())
        line = line if self.detail else line.rstrip(" ,:")
        return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"


@dataclass(frozen=True, slots=True)
class Prompted:
    """One question that was put to the model for planning or answering, and its reply."""

    task: str
    prompt: str
    reply: Any


@dataclass(slots=True)
class AskContext:
    """One question's run, or one step of it (`step`), as adapters and nodes see it.

    Attributes:
        question: as the user asked it.
        sources: the candidate tables by name.
        rules: of the use case, in words.
        gate: with a budget and costs of this step.
        workspace: the confined DuckDB that holds copies of the sources and the results of nodes.
        planner: the model that plans and writes; None: the gate's own.
        emit: takes events.
        find: a question in words → the tables it may need, with the values that it names and the links; None: no search.
        near: a text and others → how alike they are.
        sizes: of prompts and replies, as `uql.nl.ask.room` names them.
        prompts: what was asked of the planner in this step.
    """

    question: str
    sources: Mapping[str, Source]
    gate: Gate
    workspace: Workspace
    rules: tuple[str, ...] = ()
    planner: Provider | str | None = None
    emit: Callable[[Any], None] = lambda event: None
    find: Callable[[str], Scope] | None = None
    near: Near = in_common
    sizes: Mapping[str, int] = field(default_factory=dict)
    prompts: list[Prompted] = field(default_factory=list)
    steps: list[AskContext] = field(default_factory=list)

    @property
    def settings(self) -> Settings:
        return self.gate.settings

    @property
    def cost(self) -> Cost:
        """What this step, and the steps made from it, have cost so far."""
        return sum((step.cost for step in self.steps), self.gate.cost)

    def step(self, name: str, *, calls: int | None = None) -> AskContext:
        """The same run, with costs and prompts of its own, and at most `calls` calls."""
        step_context = replace(self, gate=self.gate.part(calls=calls, statement=name), prompts=[], steps=[])
        self.steps.append(step_context)
        return step_context

    def asking(self, question: str) -> AskContext:
        """The same step with a question of its own: its prompts and costs are those of this one."""
        return replace(self, question=question)

    # --------------------------------------------------------------------------------------------------- the model
    async def can(self) -> Capabilities:
        """What the model that plans and writes can do."""
        return (await self.gate.provider(self.planner)).capabilities

    async def room(self) -> Room:
        """The sizes of prompts to that model and of its replies."""
        return Room.of(await self.can(), self.sizes)

    async def say(self, wording: Wording, row: Row | None = None) -> Any:
        """The reply of the planning model to one request of planning or writing.

        Args:
            wording: its words are sent as they are, without control tokens of chat templates; braces have no meaning. A reply that is
                cut at `max_tokens` is asked for once more, with all the room that there is.
            row: shown whole, with its images.
        Returns: a str, or the parsed JSON value where there is a schema.
        Raises: BudgetError (UQL401) where the budget is spent; QuestionError (UQL632) where the reply cannot be used; BackendError
            where none came, however often it was asked for; what the provider raises for every row.
        """
        room, schema = await self.room(), wording.schema
        user = rules_text(self.rules if wording.ruled else ()) + wording.user
        fault, parameters = (
            "",
            {"system": neutral(wording.system), "version": wording.version, "grammar": wording.grammar},
        )
        if wording.temperature:
            parameters |= {"temperature": f"{wording.temperature:g}", "seed": str(wording.seed)}
        for _ in (1, 2):
            prompt = f"{user}\n\n(Your last reply could not be used: {fault})" if fault else user
            prompt = neutral(prompt)
            question = Write(
                prompt.replace("{", "{{").replace("}", "}}"),
                task=wording.task,
                schema=None if schema is None else json.dumps(schema),
                parameters=tuple((k, v) for k, v in parameters.items() if v),
                max_tokens=wording.max_tokens or room.reply(wording.task),
            )
            reply = await self._written(question, row or Row(), prompt, most=room.output)
            fault = (misfit(reply, schema) if schema is not None else None) or ""
            fault = fault or (wording.check(reply) if wording.check is not None else "")
            if not fault:
                return reply
        raise QuestionError(f"the model gave no usable reply ({wording.task}): {fault}", code="UQL632")

    async def say_or(self, wording: Wording, default: Any, *, step: str = "") -> Any:
        """As `say`, and `default` where the reply cannot be used.

        Args:
            step: whose costs these are; "": of this one.
        """
        ctx = self.step(step) if step else self
        try:
            return await ctx.say(wording)
        except QuestionError:
            return default
        finally:
            self.prompts += ctx.prompts if ctx is not self else ()

    async def _written(self, question: Write, row: Row, prompt: str, *, most: int) -> Any:
        """The reply to one request, kept in `prompts`; one that was cut is asked for again with `most` tokens."""
        task = question.task
        answers = await self.gate.ask(question, [row], model=self.planner)
        for failure in answers.failures:
            if failure.kind in ("budget", "interrupted") or self.gate.budget.exhausted:
                raise BudgetError(
                    f"the budget of the question is spent: {failure.message}",
                    help="raise budget, max_seconds, max_cost or max_tokens",
                )
            self.prompts.append(Prompted(task, prompt, f"{failure.kind}: {failure.message}"))
            if failure.kind in TRANSIENT:
                raise BackendError(
                    f"the model that plans did not answer ({task}): {failure.kind}: {failure.message}",
                    help="ask again later: answers that were paid for are kept",
                )
            if failure.kind == "truncated" and question.max_tokens < most:
                return await self._written(replace(question, max_tokens=most), row, prompt, most=most)
            raise QuestionError(
                f"the model gave no usable reply ({task}): {failure.kind}: {failure.message}", code="UQL632"
            )
        self.prompts.append(Prompted(task, prompt, answers.values[0]))
        return answers.values[0]

    # -------------------------------------------------------------------------------------------------- the tables
    async def uql(self, text: str, *, tables: Collection[str] | None = None, to: str | None = None) -> Outcome:
        """The outcome of a UQL query that a model wrote, guarded and run in the workspace.

        Args:
            tables: the names FROM may hold; None: all sources and results so far.
            to: the name under which later nodes read its rows; None: not stored.
        Raises: GuardError, UQLSyntaxError, BindError, DataError, ModelError.
        """
        from uql.nl.guard.workspace import budget_of

        budget = budget_of(text)
        gate = self.gate if budget is None else self.step(to or "uql", calls=budget).gate
        return await self.workspace.uql(text, gate, tables=tables, to=to)
