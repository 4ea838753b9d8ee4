"""The planner: a question and the tables in scope, written by a model as a checked plan.

An invalid plan goes back with its faults, at most twice. A model of this machine mends a plan in clauses, where a grammar holds every table
and column to the names in scope. What a small model plans is decided by a vote: `uql/nl/small/`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uql.base.errors import QuestionError, UQLError
from uql.base.schema import Field, Modality
from uql.nl.ask.context import AskContext
from uql.nl.ask.plan_checks import Checked, Problem, check_plan, said
from uql.nl.plan import clauses
from uql.nl.plan import read_plan as forms
from uql.nl.plan.dag import Node, NodeKind, Plan
from uql.nl.plan.few_shot import examples_text
from uql.nl.plan.fill_holes import completed
from uql.nl.plan.result_schema import Shapes
from uql.nl.prompts import planner as words
from uql.nl.schema.discover import schema_text, tokens_of
from uql.nl.schema.scope import Scope, Source

if TYPE_CHECKING:
    from uql.llm.providers.base import Provider

TRIES = 3  # the plan, and at most two more after its faults are shown
PROMPT_TOKENS = 4_000
REPLY_TOKENS = 900
_PLOT = re.compile(r"\b(plots?|charts?|graphs?|draw|diagram|histogram|scatter|visuali[sz]e|bar|pie)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan that passed every check, how many tries it took, and the faults of those before."""

    checked: Checked
    tries: int
    faults: tuple[str, ...] = ()
    cannot: str = ""  # why the question cannot be answered from this data, where the planner says so


@dataclass(slots=True)
class Planner:
    """Writes plans for one question.

    Attributes:
        ctx: the run.
        scope: what may be named.
        tokens: of a prompt at most.
        forms: of the queries, one a try.
        shots: examples that are shown.
        near: similarities of a question and others; None: by words in common.
    """

    ctx: AskContext
    scope: Scope
    tokens: int = PROMPT_TOKENS
    forms: tuple[words.Form, ...] = ("text", "text", "text")
    shots: int = 4
    near: Callable[[str, Sequence[str]], Sequence[float]] | None = None

    @classmethod
    def of(
        cls, ctx: AskContext, scope: Scope, model: Provider, forms_: tuple[words.Form, ...] | None = None
    ) -> Planner:
        """The planner for a model: its context, and the forms that it writes best.

        Args:
            forms_: of queries; None: clauses where a model of this machine mends a plan.
        """
        context = model.capabilities.context
        tokens = PROMPT_TOKENS if context is None else max(1_000, min(PROMPT_TOKENS, context - REPLY_TOKENS - 200))
        usual: tuple[words.Form, ...] = ("text", "clauses", "clauses") if model.is_local else ("text", "text", "text")
        return cls(ctx, scope, tokens, forms_ or usual, 2 if model.is_local else 4, ctx.near)

    async def plan(
        self,
        *,
        kept: Sequence[Node] = (),
        why: str = "",
        step: AskContext | None = None,
    ) -> Planned:
        """A plan for the question, or what remains of it where some nodes have run.

        Args:
            kept: nodes that have run; their rows are there.
            why: what went wrong with the plan before.
            step: whose prompts and costs these are; None: those of the run.
        Raises: QuestionError (UQL630) where no try gave a valid plan; BudgetError.
        """
        ctx = step or self.ctx
        faults: list[str] = []
        back = why
        for n, form in enumerate(self.forms[:TRIES], 1):
            shown = ""
            try:
                reply = await ctx.say(self._wording(form, kept, back))
                if str(reply.get("cannot", "")).strip() and not reply["nodes"]:
                    return _cannot(str(reply["cannot"]).strip(), n, faults)
                shown = json.dumps(reply["nodes"], ensure_ascii=False)
                plan = self._read(reply, kept)
                checked = check_plan(plan, self.ctx.sources, ctx.settings)
                problems: tuple[Problem, ...] = checked.problems
            except QuestionError as error:
                problems = (Problem("plan", said(error)),)
            else:
                if not problems:
                    return Planned(checked, n, tuple(faults))
            faults += [str(problem) for problem in problems]
            listed = "\n".join(f"- {problem}" for problem in problems)
            back = (why + "\n\n" if why else "") + words.repaired(shown[:1500], listed)
        raise QuestionError(
            f"no valid plan after {len(self.forms[:TRIES])} tries: {'; '.join(faults[-2:])}",
            help="ask in other words, or write UQL",
        )

    async def mended(self, node: Node, error: str, inputs: Mapping[str, tuple[Field, ...]], step: AskContext) -> Node:
        """A node that failed, written again by the model and checked. Raises QuestionError, GuardError, BindError where that fails too."""
        from uql.nl.ask.plan_checks import check_node

        form = self.forms[-1]
        tables = {**{n: s.fields for n, s in self.scope.sources.items()}, **inputs}
        shape = clauses.schema(list(tables), columns_of(tables)) if form == "clauses" else None
        kind = node.kind.value
        reply = await step.say(
            words.debugging(
                step.question,
                kind,
                node.body,
                error,
                self._schema(inputs),
                form if node.kind in forms.SELECTS else "text",
                shape,
            )
        )
        if node.kind in forms.SELECTS and "from" in reply:
            body = clauses.statement(reply, tables)
        else:
            body = reply["body"]
            body = forms.statement_of(body) if node.kind is NodeKind.UQL else body
        if node.kind is NodeKind.UQL:
            body = completed(body, tables)
        made = Node(
            node.name, node.kind, body, node.inputs, node.columns, node.may_be_empty, description=node.description
        )
        shapes = Shapes(self.ctx.sources)
        for name, fields in inputs.items():
            shapes.add(name, fields)
        checked, _ = check_node(made, self.ctx.sources, shapes, inputs, step.settings)
        return checked

    # ------------------------------------------------------------------------------------------------------- internals
    def _wording(self, form: words.Form, kept: Sequence[Node], faults: str) -> Any:
        fields = {name: source.shown for name, source in self.scope.sources.items()}
        ran = {node.name: tuple(_fields_of(self.ctx, node.name)) for node in kept if node.kind is not NodeKind.ANSWER}
        examples = examples_text(self.ctx.question, form, self.near, most=self.shots)
        fixed = tokens_of(examples) + tokens_of(faults) + tokens_of(self.ctx.question) + 700
        schema = schema_text(self.scope, tokens=max(300, self.tokens - fixed))
        return words.wording(
            self.ctx.question,
            schema,
            [*fields, *(n for n, f in ran.items() if f)],
            columns_of({**fields, **ran}),
            examples,
            self.ctx.rules,
            form=form,
            plots=wants_plot(self.ctx.question),
            faults=faults,
            kept="\n".join(f"{name} ({', '.join(f.name for f in made)})" for name, made in ran.items()),
            max_tokens=REPLY_TOKENS,
        )

    def _read(self, reply: Mapping[str, Any], kept: Sequence[Node]) -> Plan:
        tables: dict[str, Sequence[Field]] = {name: s.fields for name, s in self.ctx.sources.items()}
        shapes = Shapes(self.ctx.sources)
        for node in kept:
            made = _fields_of(self.ctx, node.name)
            if made:
                tables[node.name] = made
                shapes.add(node.name, made)

        def shape(body: str) -> tuple[Field, ...] | None:
            try:
                return shapes.of_uql(body, self.ctx.settings)
            except UQLError:
                return None

        def named(name: str, body: str) -> tuple[Field, ...] | None:
            made = shape(body)
            if made is not None:
                shapes.add(name, made)
            return made

        return forms.from_json(reply, tables, kept=kept, shapes=named)

    def _schema(self, inputs: Mapping[str, tuple[Field, ...]]) -> str:
        made = {n: Source(n, n, f, 0) for n, f in inputs.items() if n not in self.scope.sources}
        scope = Scope({**self.scope.sources, **made}, self.scope.links)
        return schema_text(scope, tokens=self.tokens - 900)


def columns_of(tables: Mapping[str, Sequence[Field]]) -> list[str]:
    """The columns of tables as "table.column"; images and the like, which only a model reads, are left out."""
    seen = (Modality.STRUCTURED, Modality.TEXT)
    return [f"{name}.{f.name}" for name, fields in tables.items() for f in fields if f.modality in seen]


def _cannot(why: str, tries: int, faults: Sequence[str]) -> Planned:
    """No plan, and the reason."""
    return Planned(Checked(Plan((Node(forms.ANSWER, NodeKind.ANSWER, ""),)), {}, ()), tries, tuple(faults), why)


def wants_plot(question: str) -> bool:
    """Does the question ask for a picture?"""
    return _PLOT.search(question) is not None


def _fields_of(ctx: AskContext, name: str) -> tuple[Field, ...]:
    """The columns of a result that is there."""
    if not ctx.workspace.has(name):
        return ()
    return ctx.workspace.fields(name)
