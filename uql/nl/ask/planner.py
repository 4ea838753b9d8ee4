"""The planner: a question and the tables in scope, written by a model as a checked plan.

An invalid plan goes back with its faults, at most twice. Sizes of prompts and replies follow from what the model declares
(`uql.nl.ask.room`). What a small model plans is decided by a vote: `uql/nl/small/`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from uql.base.errors import QuestionError, UQLError
from uql.base.schema import Field
from uql.nl.ask.context import AskContext
from uql.nl.ask.outputs import says_nothing
from uql.nl.ask.plan_checks import Checked, Problem, brief, check_plan, checked_node, error_line
from uql.nl.ask.room import Room
from uql.nl.plan import read_plan as forms
from uql.nl.plan.dag import Node, NodeKind, Plan
from uql.nl.plan.fill_holes import completed
from uql.nl.plan.result_schema import Shapes
from uql.nl.prompts import Wording, planner as words
from uql.nl.prompts.plans import examples_text
from uql.nl.schema.discover import schema_text, tokens_of, words_of
from uql.nl.schema.scope import Scope, Source

if TYPE_CHECKING:
    from uql.llm.providers.base import Provider

TRIES = 3  # the plan, and at most two more after its faults are shown
SHOWN = 1_500  # characters of a plan that goes back
SHOTS, SHORT = 4, 3_500  # examples in a prompt, and the tokens of one that has half as many
_PLOT = re.compile(
    r"\b(plots?|charts?|graphs?|draw|diagram|histogram|scatter|visuali[sz]e|bar|pie|trends?|distribution|compare|comparison)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan that passed every check, and how many tries it took."""

    checked: Checked
    tries: int
    cannot: str = ""  # why the question cannot be answered from this data, where the planner says so
    left_out: str = ""  # what of it the plan leaves out, as the planner says


@dataclass(slots=True)
class Planner:
    """Writes plans for one question.

    Attributes:
        ctx: the run.
        scope: what may be named.
        tokens: of a prompt at most.
        shots: examples that are shown.
    """

    ctx: AskContext
    scope: Scope
    tokens: int = 4_000
    shots: int = SHOTS

    @classmethod
    def of(cls, ctx: AskContext, scope: Scope, model: Provider) -> Planner:
        """The planner for a model, by the room that it declares.

        Args:
            scope: the tables that a prompt shows.
            model: that plans.
        """
        tokens = Room.of(model.capabilities, ctx.sizes).prompt
        return cls(ctx, scope, tokens, SHOTS if tokens > SHORT else SHOTS // 2)

    async def plan(
        self,
        *,
        done_nodes: Sequence[Node] = (),
        why: str = "",
        results: str = "",
        stay: Collection[str] = (),
        step: AskContext | None = None,
    ) -> Planned:
        """A plan for the question, or what remains of it where some nodes have run.

        Args:
            done_nodes: nodes that have run; their rows are there.
            why: what went wrong with the plan before.
            results: of those nodes, with rows; "": their names and columns.
            stay: names of those nodes that are part of the answer, where no new node reads them.
            step: whose prompts and costs these are; None: those of the run.
        Raises: QuestionError (UQL630) where no try gave a valid plan; BudgetError.
        """
        ctx = step or self.ctx
        faults: list[str] = []
        back = why
        for n in range(1, TRIES + 1):
            nodes_text = ""
            try:
                reply = await ctx.say(self._wording(results or self._done_nodes_text(done_nodes), back))
                left_out = "" if says_nothing(reply["cannot"]) else brief(reply["cannot"].strip())
                if left_out and not reply["nodes"]:
                    return _cannot(left_out, n)
                nodes_text = json.dumps(reply["nodes"], ensure_ascii=False)
                plan = self._read(reply, done_nodes, stay)
                checked = check_plan(plan, self.ctx.sources, ctx.settings)
                problems: tuple[Problem, ...] = checked.problems
            except QuestionError as error:
                problems = (Problem("plan", error_line(error)),)
            else:
                if not problems:
                    return Planned(checked, n, left_out=left_out)
            faults += [str(problem) for problem in problems]
            listed = "\n".join(f"- {problem}" for problem in problems)
            back = (why + "\n\n" if why else "") + words.repaired(nodes_text[:SHOWN], listed)
        raise QuestionError(
            f"no valid plan after {TRIES} tries: {'; '.join(faults[-2:])}",
            help="ask in other words, or write UQL",
        )

    async def mended(
        self, node: Node, error: str, inputs: Mapping[str, tuple[Field, ...]], step: AskContext, results: str = ""
    ) -> Node:
        """A node that failed, written again by the model and checked.

        Args:
            inputs: columns of the results that it reads.
            step: the context of the node.
            results: its inputs with rows.
        Raises: QuestionError, GuardError, BindError where that fails too.
        """
        reply = await step.say(
            words.debugging(step.question, node.kind.value, node.body, error, self._schema(inputs), results)
        )
        body = reply["body"]
        if node.kind is NodeKind.UQL:
            tables = {**{n: s.fields for n, s in self.scope.sources.items()}, **inputs}
            body = completed(forms.statement_of(body), tables)
        return checked_node(replace(node, body=body), self.ctx.sources, inputs, step.settings)

    # ------------------------------------------------------------------------------------------------------- internals
    def _wording(self, results: str, faults: str) -> Wording:
        examples = examples_text(self.ctx.question, self.ctx.near, most=self.shots)
        fixed = tokens_of(examples) + tokens_of(results) + tokens_of(faults) + tokens_of(self.ctx.question)
        schema = schema_text(self.scope, tokens=max(300, self.tokens - fixed))
        return words.wording(self.ctx.question, schema, examples, self.ctx.rules, faults=faults, results=results)

    def _done_nodes_text(self, done_nodes: Sequence[Node]) -> str:
        results = {
            node.name: _fields_of(self.ctx, node.name) for node in done_nodes if node.kind is not NodeKind.ANSWER
        }
        return "\n".join(f"{name} ({', '.join(f.name for f in fields)})" for name, fields in results.items())

    def _read(self, reply: Mapping[str, Any], done_nodes: Sequence[Node], stay: Collection[str]) -> Plan:
        tables: dict[str, Sequence[Field]] = {name: s.fields for name, s in self.ctx.sources.items()}
        shapes = Shapes(self.ctx.sources)
        for node in done_nodes:
            fields = _fields_of(self.ctx, node.name)
            if fields:
                tables[node.name] = fields
                shapes.add(node.name, fields)

        def shape(body: str) -> tuple[Field, ...] | None:
            try:
                return shapes.of_uql(body, self.ctx.settings)
            except UQLError:
                return None

        def named(name: str, body: str) -> tuple[Field, ...] | None:
            fields = shape(body)
            if fields is not None:
                shapes.add(name, fields)
            return fields

        return forms.from_json(reply, tables, done_nodes=done_nodes, stay=stay, shapes=named)

    def _schema(self, inputs: Mapping[str, tuple[Field, ...]]) -> str:
        result_sources = {n: Source(n, n, f, 0) for n, f in inputs.items() if n not in self.scope.sources}
        scope = Scope({**self.scope.sources, **result_sources}, self.scope.links)
        return schema_text(scope, tokens=self.tokens - 900)


def _cannot(why: str, tries: int) -> Planned:
    """No plan, and the reason."""
    return Planned(Checked(Plan((Node(forms.ANSWER, NodeKind.ANSWER, ""),)), {}, ()), tries, why)


def wants_plot(question: str, scope: Scope) -> bool:
    """Does the question ask for a picture, a trend, a distribution or a comparison? A word of a table's or column's name asks for none."""
    names = [text for name, source in scope.sources.items() for text in (name, *(f.name for f in source.fields))]
    return bool(words_of(" ".join(_PLOT.findall(question))) - words_of(" ".join(names)))


def _fields_of(ctx: AskContext, name: str) -> tuple[Field, ...]:
    """The columns of a result that is there."""
    if not ctx.workspace.has(name):
        return ()
    return ctx.workspace.fields(name)
