"""Candidates: statements of DuckDB SQL, each run, that vote by their rows.

The model sees CREATE TABLE text with two example rows a table. Where tables have texts or images, and the question has words that no
plain column is about (`foreign_words`), it says first which columns must be read from them (`read_columns`); those stand in the tables that
it sees then. It also says so where the first plain statement fails. The guard checks each statement. Until one runs, one that fails goes
back once with DuckDB's message.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from uql.base.errors import GuardError, QuestionError, UQLError
from uql.nl.ask.context import AskContext, NodeEvent
from uql.nl.ask.plan_checks import check_plan, error_line
from uql.nl.guard.guard import check_sql
from uql.nl.plan import read_plan as forms
from uql.nl.plan.dag import Node, NodeKind
from uql.nl.plan.lineage import without_values
from uql.nl.prompts import Wording, read_columns as column_words, statements as words
from uql.nl.small.foreign_words import foreign_words
from uql.nl.small.meant import meant
from uql.nl.small.read_columns import ReadColumn, as_uql, columns_of, grammar, trial, used, with_columns
from uql.nl.small.vote import TEMPERATURE, Candidate, CandidateContext, is_empty, key_of

if TYPE_CHECKING:
    import pyarrow as pa

CHARS = 9_000  # of the tables in a prompt
_TRIED = "tried"
Columns = tuple[ReadColumn, ...]


class Statements:
    """Writes statements, and runs each; columns that are read have made-up values then.

    Attributes:
        candidates: the candidates so far.
    """

    def __init__(self, context: CandidateContext) -> None:
        self.context = context
        self.candidates: list[Candidate] = []
        self._columns: Columns | None = None
        self._cache: dict[tuple[Columns, str], Candidate] = {}
        self._tables = list(context.scope.sources)
        fields = [f for source in context.scope.sources.values() for f in source.visible_fields]
        self._readable = any(f.is_unstructured for f in fields)
        asks_first = self._may_read and context.uses("foreign")
        self._foreign = asks_first and foreign_words(context.ctx.question, context.scope, context.ctx.near)

    async def write(self) -> Candidate:
        """One more candidate. Raises BudgetError."""
        n = len(self.candidates)
        ctx, name = self.context.ctx, f"sql{n + 1}"
        step = ctx.step(name)
        ctx.emit(NodeEvent(name, "start", "a candidate that votes"))
        try:
            candidate = replace(await self._written(step, n), name=name)
        except QuestionError as error:
            candidate = Candidate(name, problem=error.message)
        finally:
            ctx.prompts += step.prompts
        ctx.emit(NodeEvent(name, "failed" if candidate.problem else "done", candidate.problem or candidate.text))
        self.candidates.append(candidate)
        return candidate

    async def _written(self, step: AskContext, n: int) -> Candidate:
        """A candidate over the columns that are read; which, is asked once, where a plain statement does not seem to do."""
        if self._columns is None and self._foreign:
            self._columns = await self._columns_read(step)
        candidate = await self._statement(step, n, self._columns or ())
        if not candidate.problem or self._runs or self._columns is not None or not self._may_read:
            return candidate
        self._columns = await self._columns_read(step)
        return await self._statement(step, n, self._columns) if self._columns else candidate

    @property
    def _runs(self) -> bool:
        """Does a candidate run? Others that fail are then not mended."""
        return any(not candidate.problem for candidate in self.candidates)

    @property
    def _may_read(self) -> bool:
        return self._readable and self.context.uses("reading")

    # ------------------------------------------------------------------------------------------- the columns that are read
    async def _columns_read(self, step: AskContext) -> Columns:
        """The columns that the model says must be read, the same for all candidates; none where its replies do not fit the tables."""
        failure = None
        for _ in range(2 if self.context.uses("repair") else 1):
            reply = str(await step.say(self._columns_wording(failure)))
            try:
                return columns_of(reply, self.context.scope, self.context.ctx.question)
            except QuestionError as error:
                failure = (reply.strip()[:1_000], error_line(error))
        return ()

    def _columns_wording(self, failure: tuple[str, str] | None) -> Wording:
        context = self.context
        return column_words.wording(
            context.ctx.question,
            words.create_tables(context.scope, chars=CHARS, modalities=True),
            grammar=grammar(context.scope),
            rules=context.ctx.rules,
            failure=failure,
        )

    # ---------------------------------------------------------------------------------------------------- the statement
    async def _statement(self, step: AskContext, n: int, columns: Columns) -> Candidate:
        context, failure, scope = self.context, None, with_columns(self.context.scope, columns)
        # beside columns that are read, example rows are copied into statements, and texts compared by their letters
        schema = words.create_tables(
            scope, chars=CHARS, modalities=self._readable, rows=not columns or not context.uses("meant")
        )
        for last in (self._runs or not context.uses("repair"), True):
            wording = words.wording(
                context.ctx.question,
                schema,
                examples=not self._readable and context.uses("examples"),
                rules=context.ctx.rules,
                plot=context.plot,
                why=context.why,
                temperature=TEMPERATURE if n else 0.0,
                seed=n,
                failure=failure,
            )
            reply = str(await step.say(wording))
            if (columns, reply) not in self._cache:
                self._cache[columns, reply] = await self._read(reply, columns)
            candidate = self._cache[columns, reply]
            if last or not candidate.problem:
                break
            failure = (reply.strip()[:1_000], candidate.problem)
        return candidate

    async def _read(self, reply: str, columns: Columns) -> Candidate:
        """What a reply gives; its `problem` says what is wrong with it."""
        context, sql = self.context, words.statement_of(reply)
        try:
            if context.uses("meant"):
                reads = self._may_read and (bool(columns) or bool(self._foreign))
                sql, columns = meant(sql, columns, context.scope, context.ctx.question, context.ctx.near, reads=reads)
            checked = check_sql(sql, self._tables)
            columns = tuple(column for column in columns if used(checked, [column]))
            table = await self._rows(checked, columns)
            if columns:
                return self._that_reads(checked, columns, table)
        except GuardError as error:
            read = [f for source in context.scope.sources.values() for f in source.fields]
            return Candidate("", sql, problem=without_values(error, NodeKind.SQL, sql, read))
        except UQLError as error:
            return Candidate("", sql, problem=error_line(error))
        return Candidate("", checked, key_of(table), table=table, empty=self._counts_less(table))

    def _that_reads(self, sql: str, columns: Columns, table: pa.Table) -> Candidate:
        """A candidate that reads, as UQL. It votes by the rows of its trial."""
        context, uql = self.context, as_uql(sql, columns, self.context.scope)
        plan = forms.finished([Node(_TRIED, NodeKind.UQL, uql)], context.done_nodes)
        checked = check_plan(plan, context.ctx.sources, context.ctx.settings)
        if checked.problems:
            return Candidate("", uql, problem="; ".join(problem.message for problem in checked.problems))
        (width,), *rows = key_of(table)
        key = ((width, *sorted(f"reads {c.source}.{c.field.name}" for c in columns)), *rows)
        return Candidate("", checked.plan[_TRIED].body, key, reads=True, empty=self._counts_less(table))

    def _counts_less(self, table: pa.Table) -> bool:
        return self.context.uses("empty") and is_empty(table)

    async def _rows(self, sql: str, columns: Columns) -> pa.Table:
        text = trial(sql, columns, self.context.scope) if columns else sql
        return await self.context.ctx.workspace.sql(text, tables=self._tables)
