"""The mode `meta`: sub-queries, operators, routed adapters. Source: Meta Engine (check, decompose, operators, route, aggregate)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from uql.base.errors import QuestionError, UQLError
from uql.nl.ask.aggregator import Finding, speaks, value_of
from uql.nl.ask.context import AskContext
from uql.nl.ask.executor import FATAL
from uql.nl.ask.outputs import Output, Step, problem_of
from uql.nl.ask.plan_checks import said
from uql.nl.papers.complexity import check
from uql.nl.papers.decomposer import SubQuery, decompose, refine
from uql.nl.papers.operators import Ranked, captions, generate
from uql.nl.plan.dag import Node, NodeKind, Operator, Plan, SubAnswer
from uql.nl.schema.scope import Source

FIRST = "uql"  # the adapter that is tried first where no router says otherwise


class Adapter(Protocol):
    """A way to answer a sub-query."""

    @property
    def name(self) -> str: ...

    def capable(self, operator: Operator) -> bool: ...

    async def run(self, subquery: str, sources: Mapping[str, Source], ctx: AskContext) -> SubAnswer: ...


class Router(Protocol):
    """Ranks the adapters for a sub-query, the best first."""

    def rank(self, subquery: str, operator: Operator, adapters: Sequence[str]) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class Decomposed:
    """A plan of adapter nodes, the operators of each in order, and the signs of the complexity checker."""

    plan: Plan
    operators: Mapping[str, tuple[Ranked, ...]]
    signs: tuple[str, ...]


async def planned(
    ctx: AskContext, question: str, sources: Mapping[str, Source], *, checker: bool = True, decomposer: bool = True
) -> Decomposed:
    """The sub-queries of a question as adapter nodes.

    Args:
        checker: ask whether the question is complex; without it every question is decomposed.
        decomposer: without it none is.
    """
    told = captions(sources)
    signs: tuple[str, ...] = ()
    split = decomposer
    if checker and decomposer:
        complexity = await check(ctx, question, told)
        signs, split = complexity.signs, complexity.is_complex
    parts = await decompose(ctx, question, told) if split else ()
    if len(parts) < 2 or any(_same(part.text, question) for part in parts):
        parts = (SubQuery(question),)  # in its own words: a rewriting of the whole can only lose some
    ranked = await asyncio.gather(*(generate(ctx, part.text, sources) for part in parts))
    nodes = []
    for n, (part, operators) in enumerate(zip(parts, ranked, strict=True), 1):
        if not operators:
            raise QuestionError(
                f"no operator can answer {part.text!r}", code="UQL633", help="are there tables, texts or images?"
            )
        best = operators[0]
        nodes.append(
            Node(
                _name(n, sources),
                NodeKind.ADAPTER,
                part.text,
                tuple(_name(i + 1, sources) for i in part.uses),
                operator=best.operator,
                sources=best.sources,
                description=part.text,
            )
        )
    answer = Node("answer", NodeKind.ANSWER, "", tuple(node.name for node in nodes))
    return Decomposed(Plan((*nodes, answer)), {n.name: r for n, r in zip(nodes, ranked, strict=True)}, signs)


def _same(one: str, other: str) -> bool:
    return one.casefold().strip(" .?!") == other.casefold().strip(" .?!")


def _name(n: int, sources: Mapping[str, Source]) -> str:
    name = f"part{n}"
    while name in sources:
        name += "_"
    return name


@dataclass(slots=True)
class Answerer:
    """Runs adapter nodes.

    Attributes:
        adapters: by name.
        router: orders them for each sub-query and operator; None: `uql` first, then as given.
        operators: of each node, in order of confidence; a node without has its own.
        refining: fill the answers of earlier sub-queries into later ones.
    """

    adapters: Mapping[str, Adapter]
    router: Router | None = None
    operators: Mapping[str, tuple[Ranked, ...]] = field(default_factory=dict)
    refining: bool = True
    _same: dict[tuple[str, tuple[str, ...]], asyncio.Future[Output]] = field(default_factory=dict)

    async def run(self, node: Node, outputs: Mapping[str, Output], step: AskContext, told: Step) -> Output:
        """The first valid answer over operators and adapters in their order; equal sub-queries are answered once.

        Raises: QuestionError (UQL635) with the reason of each attempt where none is valid.
        """
        text = node.body
        if node.inputs and self.refining:
            earlier = [(name, _in_words(name, outputs[name])) for name in node.inputs if name in outputs]
            text = told.body = await refine(step, text, earlier)
        key = (text.casefold(), tuple(sorted(node.sources)))
        waiting = self._same.get(key)
        if waiting is not None:
            output = await asyncio.shield(waiting)
            told.adapter = output.sub.adapter if output.sub is not None else ""
            return output
        future: asyncio.Future[Output] = asyncio.get_running_loop().create_future()
        self._same[key] = future
        try:
            output = await self._tried(node, text, step, told)
        except BaseException as error:
            del self._same[key]
            future.set_exception(error)
            future.exception()  # seen: nobody may be waiting
            raise
        future.set_result(output)
        return output

    async def _tried(self, node: Node, text: str, step: AskContext, told: Step) -> Output:
        own = Ranked(node.operator or Operator.TABLE, node.sources, 1.0)
        reasons: list[str] = []
        for ranked in self.operators.get(node.name) or (own,):
            for name in self._order(text, ranked.operator, node.adapters):
                told.attempts += 1
                inner = step.step(f"{node.name}/{name}")
                sources = {s: step.sources[s] for s in ranked.sources if s in step.sources}
                try:
                    answered: Any = self.adapters[name].run(text, sources, inner)
                    answer: SubAnswer = await answered if inspect.isawaitable(answered) else answered
                except FATAL:
                    raise
                except UQLError as error:
                    answer = SubAnswer(None, "", adapter=name, problem=said(error))
                finally:
                    step.prompts += inner.prompts
                output = Output(value=answer.value, sub=answer)
                problem = problem_of(node, output, step.sources)
                if problem is None:
                    told.adapter = name
                    return output
                reasons.append(f"{ranked.operator.value} by {name}: {problem}")
                told.tried.append((f"{ranked.operator.value} by {name}", problem))
        raise QuestionError(
            f"no adapter answered {text!r}: {'; '.join(reasons[-4:]) or 'no adapter is capable'}", code="UQL635"
        )

    def _order(self, text: str, operator: Operator, only: Sequence[str]) -> list[str]:
        able = [n for n, adapter in self.adapters.items() if adapter.capable(operator) and (not only or n in only)]
        if self.router is not None and len(able) > 1:
            return [name for name in self.router.rank(text, operator, able) if name in able]
        return sorted(able, key=lambda name: (only.index(name) if name in only else 0, name != FIRST))


def _in_words(name: str, output: Output) -> str:
    if output.sub is not None:
        return output.sub.text or str(output.sub.value)
    value = value_of([Finding(name, "", output)])
    return speaks(value) or str(value)[:300]
