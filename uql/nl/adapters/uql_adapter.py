"""The adapter `uql`: the model writes one statement of UQL over the sources, which is guarded, bound, and run in the workspace.

What a small model writes is decided by a vote (`uql/nl/small/`), over these sources and the tables that link them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from uql.base.errors import BindError, DataError, GuardError, QuestionError, UQLSyntaxError
from uql.nl.ask.aggregator import speaks
from uql.nl.ask.context import AskContext
from uql.nl.ask.outputs import caveats
from uql.nl.ask.plan_checks import said
from uql.nl.ask.planner import columns_of
from uql.nl.plan import clauses
from uql.nl.plan.dag import Node, NodeKind, Operator, SubAnswer
from uql.nl.plan.fill_holes import completed
from uql.nl.plan.private_lineage import marked, without_values
from uql.nl.plan.read_plan import SELECTS, statement_of, tables_named
from uql.nl.plan.result_schema import Shapes, fields_of
from uql.nl.prompts import obj, text
from uql.nl.prompts.planner import SQL
from uql.nl.schema.discover import schema_text
from uql.nl.schema.scope import Scope, Source
from uql.nl.small.route import plan_by_vote

NAME = "uql"
TRIES = 2
ROWS = 50  # of the result that go into the answer
_MENDED = (GuardError, UQLSyntaxError, BindError, DataError, QuestionError)  # another statement may mend these
_ASKED = "Answer it with one query. Give its result readable column names. A text or image is read with ask('…').\nThe query:"


@dataclass(slots=True)
class Uql:
    """The first choice for every operator: its plan is a statement that the user can read and run again."""

    name: str = NAME
    _taken: set[str] = field(default_factory=set)  # names of rows that its statements have stored

    def capable(self, operator: Operator) -> bool:
        return True

    async def run(self, subquery: str, sources: Mapping[str, Source], ctx: AskContext) -> SubAnswer:
        """The rows of the statement; an error goes back to the model once, to a model of this machine with a grammar of the names."""
        schema = schema_text(Scope(sources), tokens=2_500)
        model = await ctx.gate.provider(ctx.planner)
        if model.capabilities.small:
            return await self._by_vote(subquery, sources, ctx)
        local = model.is_local
        fault = ""
        for attempt in range(1, TRIES + 1):
            statement = ""
            try:
                statement = await self._written(subquery, schema, sources, fault, local and attempt > 1, ctx)
                shapes = Shapes(sources)
                shapes.of_uql(statement, ctx.settings)
                outcome = await ctx.uql(statement, tables=list(sources))
            except _MENDED as error:
                read = [f for source in sources.values() for f in source.fields]
                why = without_values(error, NodeKind.UQL, statement, read)
                fault = f"{statement}\n{why}" if statement else why
                continue
            rows = outcome.table.slice(0, ROWS).to_pylist()
            named = tuple(name for name in sources if name in _tables(statement, list(sources)))
            if not rows:
                return SubAnswer([], "", named, NAME, uql=statement, problem="its statement gives no rows")
            made = marked(
                Node(NAME, NodeKind.UQL, statement),
                fields_of(outcome.table, {}),
                [f for s in sources.values() for f in s.fields],
            )
            said_ = _words(_without(rows, {f.name for f in made if f.private}), outcome.table.num_rows)
            return SubAnswer(_value(rows), said_, named, NAME, uql=statement, notes=tuple(caveats(outcome)))
        return SubAnswer(
            None, "", adapter=NAME, problem=f"no statement that runs: {fault.splitlines()[-1] if fault else ''}"
        )

    async def _by_vote(self, subquery: str, sources: Mapping[str, Source], ctx: AskContext) -> SubAnswer:
        scope = ctx.find(subquery) if ctx.find is not None else Scope(ctx.sources)
        try:
            decided = await plan_by_vote(
                ctx.asking(subquery), scope.connected(set(sources)), taken=self._taken, plots=False
            )
        except QuestionError as error:
            return SubAnswer(None, "", adapter=NAME, problem=said(error))
        found = decided.planned
        nodes = [node for node in found.checked.plan.nodes if node.kind in SELECTS]
        self._taken |= {node.name for node in nodes}
        made: list[str] = []
        notes: list[str] = [*decided.doubts]
        try:
            for node in nodes:
                tables = [*ctx.sources, *made]
                if node.kind is NodeKind.UQL:
                    outcome = await ctx.uql(node.body, tables=tables, to=node.name)
                    table, notes = outcome.table, [*notes, *caveats(outcome)]
                else:
                    table = await ctx.sql(node.body, tables=tables, to=node.name)
                made.append(node.name)
        except _MENDED as error:
            return SubAnswer(None, "", adapter=NAME, problem=said(error))
        rows = table.slice(0, ROWS).to_pylist()
        named = {table for node in nodes for table in tables_named(node.body)}
        read = tuple(name for name in ctx.sources if name.lower() in named)
        before = tuple((node.name, node.body) for node in nodes[:-1])
        if not rows:
            return SubAnswer(
                [], "", read, NAME, uql=nodes[-1].body, problem="its statement gives no rows", steps=before
            )
        said_, uql = _words(rows, table.num_rows), nodes[-1].body
        return SubAnswer(_value(rows), said_, read, NAME, uql=uql, steps=before, notes=tuple(notes))

    async def _written(
        self, subquery: str, schema: str, sources: Mapping[str, Source], fault: str, held: bool, ctx: AskContext
    ) -> str:
        """The statement; `held` has it written in clauses, whose names a grammar keeps to those in scope."""
        before = f"Your last query cannot be run:\n{fault}\n\n" if fault else ""
        prompt = f"Database:\n{schema}\n\n{before}Question: {subquery}\n{_ASKED}"
        fields = {name: source.shown for name, source in sources.items()}
        shape = clauses.schema(list(sources), columns_of(fields)) if held else obj({"sql": text(1500)})
        reply: Any = await ctx.ask(prompt, shape, system=SQL, task="uql", max_tokens=700)
        if "from" in reply:
            return completed(clauses.statement(reply, fields), fields)
        return completed(statement_of(str(reply.get("sql", ""))), fields)


def _tables(statement: str, allowed: Sequence[str]) -> list[str]:
    from uql.nl.guard.workspace import tables_of

    return tables_of(statement, allowed)


def _value(rows: list[dict[str, Any]]) -> Any:
    """One cell as its value, one column as a list, else the rows; images are left out."""
    shown = [{k: v for k, v in row.items() if not isinstance(v, bytes)} for row in rows]
    if len(shown[0]) != 1:
        return shown
    values = [next(iter(row.values())) for row in shown]
    return values[0] if len(values) == 1 else values


def _without(rows: list[dict[str, Any]], private: Collection[str]) -> list[dict[str, Any]]:
    """The rows as a model may be told them: other sub-queries and the answer are written from these words."""
    return [{k: "(private)" if k in private else v for k, v in row.items()} for row in rows]


def _words(rows: list[dict[str, Any]], total: int) -> str:
    value = _value(rows)
    items = value if isinstance(value, list) else [value]
    lines = [
        ", ".join(f"{k}: {speaks(v)}" for k, v in item.items()) if isinstance(item, dict) else str(speaks(item))
        for item in items
    ]
    more = f"; {total - len(rows):,} more" if total > len(rows) else ""
    return "; ".join(lines) + more
