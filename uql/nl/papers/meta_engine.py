"""The mode `meta`: sub-queries, operators, routed adapters. Source: Meta Engine (check, decompose, refine, operators, route, aggregate).

A sub-query that needs the answers of earlier ones is refined with them, then its operators are ranked. Each answer is a table too, of the
node's name, which later sub-queries may read whole; in words stand a few of its rows.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from uql.base.arrow_values import rows_of
from uql.base.errors import QuestionError, UQLError
from uql.base.names import free_name
from uql.nl.adapters.base import Adapter
from uql.nl.ask.context import AskContext
from uql.nl.ask.executor import FATAL
from uql.nl.ask.node_runners import OBSERVED, result_text
from uql.nl.ask.outputs import Output, Step, problem_of
from uql.nl.ask.plan_checks import brief, error_line
from uql.nl.papers.operators import Ranked, captions, generate
from uql.nl.plan.dag import Node, NodeKind, Operator, Plan, SubAnswer
from uql.nl.plan.result_schema import fields_of
from uql.nl.prompts import meta_engine as words
from uql.nl.schema.scope import Source
from uql.operators.texts import short

if TYPE_CHECKING:
    import pyarrow as pa

FIRST = "uql"  # the adapter that is tried first where no router says otherwise
EXAMPLES = 3  # values of a result's column that a prompt shows
_USED = re.compile(r"\bsub-query (\d{1,3})\b")


class Router(Protocol):
    """Ranks the adapters for a sub-query."""

    def rank(self, subquery: str, operator: Operator, adapters: Sequence[str]) -> Sequence[str]:
        """The adapters, the best first; those that it does not know last, in the order given.

        Args:
            adapters: to choose from.
        """
        ...


# ---------------------------------------------------------------------------------------------------------- the question
@dataclass(frozen=True, slots=True)
class Complexity:
    """Is a question answered in one step? The verdict, and the signs it rests on. Source: section 4.1."""

    is_complex: bool
    signs: tuple[str, ...] = ()


async def check(ctx: AskContext, question: str, captions: str) -> Complexity:
    """Asks the model for the signs. A sign of a complex question, doubt, or a reply that cannot be read make it complex.

    Args:
        question: as the user wrote it.
        captions: one line a source.
    """
    reply = await ctx.say_or(words.checking(question, captions), {"signs": (), "verdict": "unsure"})
    signs = tuple(dict.fromkeys(reply["signs"]))
    return Complexity(reply["verdict"] != "simple" or any(sign in words.COMPLEX for sign in signs), signs)


@dataclass(frozen=True, slots=True)
class SubQuery:
    """One part of a question; `uses` are the positions (from 0) of the earlier ones whose answers it needs."""

    text: str
    uses: tuple[int, ...] = ()


async def decompose(ctx: AskContext, question: str, captions: str) -> tuple[SubQuery, ...]:
    """One to three sub-queries, basic to advanced; the question itself where the model gives none. Equal ones are one.

    Args:
        question: as the user wrote it.
        captions: one line a source.
    """
    wording = replace(words.decomposing(question, captions), check=_misparted)
    reply = await ctx.say_or(wording, {"sub_queries": ()})
    parts: list[SubQuery] = []
    place: list[int] = []  # of each reply's sub-query among the parts
    for item in reply["sub_queries"]:
        text = " ".join(item["query"].split())
        same = next((i for i, part in enumerate(parts) if part.text.casefold() == text.casefold()), None)
        if not text or same is not None:
            place.append(same if same is not None else -1)
            continue
        uses = {place[n - 1] for n in _uses(item) if place[n - 1] >= 0}
        place.append(len(parts))
        parts.append(SubQuery(text, tuple(sorted(uses))))
    return tuple(parts) or (SubQuery(question),)


def _uses(item: Mapping[str, Any]) -> set[int]:
    """The numbers of the sub-queries that one uses, as it lists them or says in its words."""
    return {*item["uses"], *map(int, _USED.findall(item["query"]))}


def _misparted(reply: Mapping[str, Any]) -> str:
    """What is wrong with sub-queries, which the schema does not say."""
    parts = reply["sub_queries"]
    if len(parts) > words.MOST:
        return f"there are {len(parts)} sub-queries, {words.MOST} are the most"
    wrong = ((n, use) for n, part in enumerate(parts, 1) for use in sorted(_uses(part)) if not 0 < use < n)
    faults = (f"sub-query {n} uses {use}, which is none before it: they are numbered from 1" for n, use in wrong)
    return next(faults, "")


async def planned(
    ctx: AskContext, question: str, sources: Mapping[str, Source], *, checker: bool = True, decomposer: bool = True
) -> tuple[Plan, tuple[str, ...]]:
    """The sub-queries of a question as adapter nodes, and the signs of the complexity checker.

    Args:
        checker: ask whether the question is complex; without it every question is decomposed.
        decomposer: without it none is.
    """
    source_captions = captions(sources)
    signs: tuple[str, ...] = ()
    split = decomposer
    if checker and decomposer:
        complexity = await check(ctx, question, source_captions)
        signs, split = complexity.signs, complexity.is_complex
    parts = await decompose(ctx, question, source_captions) if split else ()
    if len(parts) < 2 or any(_same(part.text, question) for part in parts):
        parts = (SubQuery(question),)  # in its own words: a rewriting of the whole can only lose some
    names = [free_name(f"part{n}", sources) for n in range(1, len(parts) + 1)]
    nodes = [
        Node(
            name,
            NodeKind.ADAPTER,
            part.text,
            tuple(names[i] for i in part.uses),
            sources=tuple(sources),
            description=part.text,
        )
        for name, part in zip(names, parts, strict=True)
    ]
    return Plan((*nodes, Node("answer", NodeKind.ANSWER, "", tuple(names)))), signs


def _same(one: str, other: str) -> bool:
    return one.casefold().strip(" .?!") == other.casefold().strip(" .?!")


# --------------------------------------------------------------------------------------------------------- the sub-queries
@dataclass(slots=True)
class Answerer:
    """Runs adapter nodes.

    Attributes:
        adapters: by name.
        router: orders them for each sub-query and operator; None: `uql` first, then as given.
        operators: of each node that has run, in order of confidence.
        hidden: lower-case names of columns that no model may see.
    """

    adapters: Mapping[str, Adapter]
    router: Router | None = None
    operators: dict[str, tuple[Ranked, ...]] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()
    _same: dict[tuple[Any, ...], asyncio.Future[Output]] = field(default_factory=dict)

    async def run(self, node: Node, outputs: Mapping[str, Output], step: AskContext, report: Step) -> Output:
        """The first valid answer over operators and adapters in their order; equal sub-queries are answered once.

        Args:
            outputs: of the nodes before, by name.
            step: the context of the node.
            report: the record of the step, which is filled in.
        Raises: QuestionError (UQL635) with the reason of each attempt where none is valid.
        """
        earlier = {name: outputs[name] for name in node.inputs if name in outputs}
        if earlier:
            report.body = await self._refined(step, node.body, earlier)
        text = report.body
        key = (text.casefold(), tuple(sorted(node.sources)), node.operator, node.adapters)
        waiting = self._same.get(key)
        if waiting is not None:
            output = await asyncio.shield(waiting)
            report.adapter = output.sub.adapter if output.sub is not None else ""
            return self._keep_table(node, output, step)
        future: asyncio.Future[Output] = asyncio.get_running_loop().create_future()
        self._same[key] = future
        try:
            output = self._keep_table(node, await self._run_with_retry(node, text, earlier, step, report), step)
        except BaseException as error:
            del self._same[key]
            future.set_exception(error)
            future.exception()  # seen: nobody may be waiting
            raise
        future.set_result(output)
        return output

    async def _refined(self, ctx: AskContext, text: str, earlier: Mapping[str, Output]) -> str:
        """The sub-query with the names and values of earlier answers filled in; as it was where the model gives no other."""
        answers = "\n".join(
            f"{i}. {result_text(n, o, hidden=self.hidden)}" for i, (n, o) in enumerate(earlier.items(), 1)
        )
        in_part = [n for n, o in earlier.items() if o.table is not None and o.table.num_rows > OBSERVED]

        def unnamed(reply: Mapping[str, Any]) -> str:
            missing = [n for n in in_part if n not in reply["query"]]
            return f"not all rows of {missing[0]} are shown: write 'the rows of {missing[0]}'" if missing else ""

        whole = f"{text} (found: the rows of {', '.join(earlier)})"
        reply = await ctx.say_or(replace(words.refining(text, answers), check=unnamed), {"query": whole})
        return " ".join(reply["query"].split()) or whole

    async def _run_with_retry(
        self, node: Node, text: str, earlier: Mapping[str, Output], step: AskContext, report: Step
    ) -> Output:
        sources = {name: step.sources[name] for name in node.sources if name in step.sources}
        sources |= {name: _as_source(name, output, self.hidden) for name, output in earlier.items()}
        operator = node.operator
        ranked: tuple[Ranked, ...] = () if operator is None else (Ranked(operator, node.sources, 1.0),)
        ranked = self.operators[node.name] = ranked or await generate(step, text, sources)
        reasons: list[str] = []
        # of a statement that runs and finds no rows: the answer where no adapter has another
        nothing: Output | None = None
        for one in ranked:
            read = {name: sources[name] for name in (*one.sources, *earlier) if name in sources}
            for name in self._order(text, one.operator, node.adapters):
                report.attempts += 1
                inner = replace(step.step(f"{node.name}/{name}"), sources={**step.sources, **sources})
                try:
                    answered: Any = self.adapters[name].run(text, read, inner)
                    answer: SubAnswer = await answered if inspect.isawaitable(answered) else answered
                except FATAL:
                    raise
                except UQLError as error:
                    answer = SubAnswer(None, "", adapter=name, problem=error_line(error))
                finally:
                    step.prompts += inner.prompts
                output = Output(value=answer.value, sub=replace(answer, asked=text))
                problem = problem_of(node, output, sources)
                if problem is None:
                    report.adapter = name
                    return output
                if nothing is None and answer.table is not None and not answer.table.num_rows:
                    nothing, report.adapter = replace(output, sub=replace(answer, asked=text, problem=None)), name
                reasons.append(f"{one.operator.value} by {name}: {brief(problem, 200)}")
                report.tried.append((f"{one.operator.value} by {name}", problem))
        if nothing is not None:
            return nothing
        raise QuestionError(
            f"no adapter answered {brief(text, 120)!r}: {'; '.join(reasons[-3:]) or 'no adapter is capable'}",
            code="UQL635",
        )

    def _order(self, text: str, operator: Operator, only: Sequence[str]) -> list[str]:
        able = [n for n, adapter in self.adapters.items() if adapter.capable(operator) and (not only or n in only)]
        if self.router is not None and len(able) > 1:
            return [name for name in self.router.rank(text, operator, able) if name in able]
        return sorted(able, key=lambda name: (only.index(name) if name in only else 0, name != FIRST))

    def _keep_table(self, node: Node, output: Output, ctx: AskContext) -> Output:
        """The output with its table, which the workspace keeps under the node's name."""
        assert output.sub is not None
        table = output.sub.table if output.sub.table is not None else _as_table(output.sub.value)
        if table is None:
            return output
        private = {name.lower() for name in output.sub.private}
        ctx.workspace.put(node.name, table)
        ctx.workspace.hide(node.name, [name for name in table.column_names if name.lower() in private])
        fields = tuple(replace(f, private=f.name.lower() in private) for f in fields_of(table, {}))
        return replace(output, table=table, fields=fields)


def _as_table(value: Any) -> pa.Table | None:
    """What an adapter answered as a table: rows as they are, other values in a column `answer`; None: it cannot be one.

    >>> _as_table(["Rome", "Oslo"]).to_pylist(), _as_table(3).to_pylist()
    ([{'answer': 'Rome'}, {'answer': 'Oslo'}], [{'answer': 3}])
    """
    import pyarrow as pa

    values = value if isinstance(value, list) and value else [value]
    rows = [item if isinstance(item, dict) and item else {"answer": item} for item in values]
    try:
        return pa.Table.from_pylist(rows)
    except pa.ArrowException:
        return None


def _as_source(name: str, output: Output, hidden: frozenset[str]) -> Source:
    """An answer as a table that a later sub-query may read."""
    table = output.table
    rows = 0 if table is None else table.num_rows
    description = f"the answer to: {output.sub.asked}" if output.sub is not None and output.sub.asked else ""
    columns = [f.name for f in output.fields if f.name.lower() not in hidden | output.hidden and f.type != "BLOB"]
    first = rows_of(table.select(columns).slice(0, EXAMPLES)) if table is not None else []
    samples = {c: tuple(short(str(row[c])) for row in first if row[c] is not None) for c in columns}
    return Source(name, name, output.fields, rows, description, samples)
