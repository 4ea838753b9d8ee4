"""The adapter `uql`: the model writes one statement of UQL over the sources, which is guarded, bound, and run in the workspace.

What a small model writes is decided by a vote (`uql/nl/small/`), over these sources and the tables that link them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from uql.base.arrow_values import rows_of
from uql.base.errors import BindError, DataError, GuardError, QuestionError, UQLSyntaxError
from uql.llm.prompts.json_schema import closed
from uql.nl.ask.aggregator import speaks
from uql.nl.ask.context import AskContext
from uql.nl.ask.outputs import caveats
from uql.nl.ask.plan_checks import error_line
from uql.nl.guard.guard import tables_named, tables_of
from uql.nl.plan.dag import Node, NodeKind, Operator, SubAnswer
from uql.nl.plan.fill_holes import completed
from uql.nl.plan.lineage import marked, without_values
from uql.nl.plan.read_plan import SELECTS, statement_of
from uql.nl.plan.result_schema import Shapes, fields_of
from uql.nl.prompts import Wording, text
from uql.nl.prompts.planner import SQL
from uql.nl.schema.discover import schema_text
from uql.nl.schema.scope import Scope, Source
from uql.nl.small.route import plan_by_vote

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "uql"
TRIES = 2
NO_ROWS = "its statement gives no rows"
ROWS = 20  # of the result that stand in words beside it
_MENDED = (GuardError, UQLSyntaxError, BindError, DataError, QuestionError)  # another statement may mend these
_ASKED = "Answer it with one query. Give its result readable column names. A text or image is read with ask('…').\nThe query:"


@dataclass(slots=True)
class Uql:
    """The first choice for every operator: its plan is a statement that the user can read and run again."""

    name: str = NAME
    _used_names: set[str] = field(default_factory=set)  # names of rows that its statements have stored

    def capable(self, operator: Operator) -> bool:
        return True

    async def run(self, subquery: str, sources: Mapping[str, Source], ctx: AskContext) -> SubAnswer:
        """As in `Adapter`: the rows of a statement; an error goes back to the model once."""
        if (await ctx.can()).small:
            return await self._by_vote(subquery, sources, ctx)
        schema = schema_text(Scope(sources), tokens=(await ctx.room()).prompt)
        fields = {name: source.visible_fields for name, source in sources.items()}
        fault = ""
        for _ in range(TRIES):
            before = f"Your last query cannot be run:\n{fault}\n\n" if fault else ""
            prompt = f"Database:\n{schema}\n\n{before}Question: {subquery}\n{_ASKED}"
            statement = ""
            try:
                reply = await ctx.say(Wording(NAME, "", SQL, prompt, closed({"sql": text(1500)}), ruled=True))
                statement = completed(statement_of(str(reply.get("sql", ""))), fields)
                Shapes(sources).of_uql(statement, ctx.settings)
                outcome = await ctx.uql(statement, tables=list(sources))
            except _MENDED as error:
                read = [f for source in sources.values() for f in source.fields]
                why = without_values(error, NodeKind.UQL, statement, read)
                fault = f"{statement}\n{why}" if statement else why
                continue
            source_names = tuple(tables_of(statement, list(sources)))
            result_fields = marked(
                Node(NAME, NodeKind.UQL, statement),
                fields_of(outcome.table, {}),
                [f for s in sources.values() for f in s.fields],
            )
            private = tuple(f.name for f in result_fields if f.private)
            return _answer(outcome.table, source_names, statement, notes=caveats(outcome), private=private)
        return SubAnswer(
            None, "", adapter=NAME, problem=f"no statement that runs: {fault.splitlines()[-1] if fault else ''}"
        )

    async def _by_vote(self, subquery: str, sources: Mapping[str, Source], ctx: AskContext) -> SubAnswer:
        scope = ctx.find(subquery) if ctx.find is not None else Scope(ctx.sources)
        try:
            decision = await plan_by_vote(
                ctx.asking(subquery), scope.connected(set(sources)), used_names=self._used_names, plots=False
            )
        except QuestionError as error:
            return SubAnswer(None, "", adapter=NAME, problem=error_line(error))
        proposal = decision.planned
        nodes = [node for node in proposal.checked.plan.nodes if node.kind in SELECTS]
        self._used_names |= {node.name for node in nodes}
        result_names: list[str] = []
        notes: list[str] = [*decision.doubts]
        try:
            for node in nodes:
                tables = [*ctx.sources, *result_names]
                if node.kind is NodeKind.UQL:
                    outcome = await ctx.uql(node.body, tables=tables, to=node.name)
                    table, notes = outcome.table, [*notes, *caveats(outcome)]
                else:
                    table = await ctx.workspace.sql(node.body, tables=tables, to=node.name)
                result_names.append(node.name)
        except _MENDED as error:
            return SubAnswer(None, "", adapter=NAME, problem=error_line(error))
        body_tables = {table for node in nodes for table in tables_named(node.body)}
        read = tuple(name for name in ctx.sources if name.lower() in body_tables)
        before = tuple((node.name, node.body) for node in nodes[:-1])
        return _answer(table, read, nodes[-1].body, notes=notes, steps=before)


def _answer(
    table: pa.Table,
    sources: tuple[str, ...],
    uql: str,
    *,
    notes: Sequence[str],
    private: Collection[str] = (),
    steps: tuple[tuple[str, str], ...] = (),
) -> SubAnswer:
    """The answer of a statement's rows: all of them as its value and table, the first ones in words.

    Args:
        notes: on its estimates.
        private: columns whose values stand in no words: other sub-queries and the answer are written from these.
        steps: statements that ran before.
    """
    rows = rows_of(table)
    if not rows:
        return SubAnswer([], "none", sources, NAME, uql=uql, problem=NO_ROWS, steps=steps, table=table)
    visible_rows = [{k: "(private)" if k in private else v for k, v in row.items()} for row in rows[:ROWS]]
    return SubAnswer(
        _value(rows),
        _words(visible_rows, len(rows)),
        sources,
        NAME,
        uql=uql,
        steps=steps,
        notes=tuple(notes),
        table=table,
        private=tuple(private),
    )


def _value(rows: list[dict[str, Any]]) -> Any:
    """One cell as its value, one column as a list, else the rows; images are left out."""
    plain_rows = [{k: v for k, v in row.items() if not isinstance(v, bytes)} for row in rows]
    if len(plain_rows[0]) != 1:
        return plain_rows
    values = [next(iter(row.values())) for row in plain_rows]
    return values[0] if len(values) == 1 else values


def _words(rows: list[dict[str, Any]], total: int) -> str:
    value = _value(rows)
    items = value if isinstance(value, list) else [value]
    lines = [
        ", ".join(f"{k}: {speaks(v)}" for k, v in item.items()) if isinstance(item, dict) else str(speaks(item))
        for item in items
    ]
    more = f"; {total - len(rows):,} more" if total > len(rows) else ""
    return "; ".join(lines) + more
