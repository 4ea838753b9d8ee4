"""Candidates: statements of DuckDB SQL, each run, that vote by their rows.

The model sees CREATE TABLE text with two example rows a table. Where tables have texts or images, and the question has words that no
plain column is about, it says first which columns must be read from them (`read_columns`); those stand in the tables that it sees then.
It also says so where the first plain statement fails. The guard checks each statement. Until one runs, one that fails goes back once with
DuckDB's message; one that compares a text or an image, with the request for a column that is read.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from uql.base.errors import GuardError, QuestionError, UQLError
from uql.nl.ask.context import AskContext, NodeEvent
from uql.nl.ask.plan_checks import check_plan, error_line
from uql.nl.guard.guard import check_sql
from uql.nl.plan import read_plan as forms
from uql.nl.plan.dag import Node, NodeKind
from uql.nl.plan.private_lineage import without_values
from uql.nl.prompts import Wording, read_columns as column_words, statements as words
from uql.nl.schema.scope import Scope
from uql.nl.small.candidates import TEMPERATURE, Candidate, CandidateContext
from uql.nl.small.evidence import hinted
from uql.nl.small.near_names import held_values, near_columns, near_value
from uql.nl.small.read_columns import Misfit, ReadColumn, as_uql, columns_of, grammar, trial, unfit, used, with_columns
from uql.nl.small.vote import is_empty, key_of

if TYPE_CHECKING:
    import pyarrow as pa

CHARS = 9_000  # of the tables in a prompt
_TRIED = "tried"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MISSING = re.compile(r'column (?:named )?"?([^"\s]+?)"?[ !]', re.IGNORECASE)
_COMPARING = (
    *(exp.EQ, exp.NEQ, exp.Like, exp.ILike, exp.In, exp.RegexpLike, exp.Contains, exp.StartsWith, exp.EndsWith),
    *(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.StrPosition),
)
Columns = tuple[ReadColumn, ...]


class _TextCompared(QuestionError):
    """A statement compares a text or an image: a column must be read from it first."""


class Statements:
    """Writes statements, and runs each; columns that are read have made-up values then.

    Attributes:
        candidates: the candidates so far.
    """

    def __init__(self, context: CandidateContext) -> None:
        self.context = context
        self.candidates: list[Candidate] = []
        self._columns: Columns | None = None
        self._columns_reply = column_words.NOTHING
        self._compared = False  # was a column asked for because a statement compared a text?
        self._cache: dict[tuple[Columns, str], Candidate] = {}
        self._tables = list(context.scope.sources)
        fields = [f for source in context.scope.sources.values() for f in source.visible_fields]
        self._readable = any(f.is_unstructured for f in fields)
        self._question = hinted(context.ctx.question, context.scope) if context.uses("hints") else context.ctx.question

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
        if self._columns is None and self._reads_first:
            self._columns = await self._columns_read(step)
        wrong = ""
        try:
            candidate = await self._statement(step, n, self._columns or ())
            if not candidate.problem or self._runs or self._columns is not None or not self._may_read:
                return candidate
        except _TextCompared as error:
            wrong, self._compared = error.message, True
        added = await self._columns_read(step, wrong)
        names = {(column.table, column.name) for column in added}
        self._columns = (*(c for c in self._columns or () if (c.table, c.name) not in names), *added)
        return candidate if not wrong and not self._columns else await self._statement(step, n, self._columns)

    @property
    def _runs(self) -> bool:
        """Does a candidate run? Others that fail are then not mended."""
        return any(not candidate.problem for candidate in self.candidates)

    @property
    def _may_read(self) -> bool:
        return self._readable and self.context.uses("reading")

    @property
    def _reads_first(self) -> bool:
        """Do words of the question that no plain column is about speak for a text or an image?"""
        return self._may_read and (bool(self.context.evidence.unheard) or not self.context.uses("evidence"))

    # ------------------------------------------------------------------------------------------- the columns that are read
    async def _columns_read(self, step: AskContext, wrong: str = "") -> Columns:
        """The columns that the model says must be read, the same for all candidates.

        Args:
            wrong: why there must be one; "": there may be none, and there is none where the reply does not fit the tables.
        Raises: QuestionError (UQL631) where there must be one, and the reply does not fit the tables after one repair.
        """
        failure = (self._columns_reply, wrong) if wrong else None
        misfit = Misfit(wrong, types=("BOOLEAN", "VARCHAR")) if self._columns else None
        for last in (not self.context.uses("repair"), True):
            rule = grammar(self.context.scope, nothing=not wrong, misfit=misfit)
            reply = self._columns_reply = str(await step.say(self._columns_wording(failure, rule))).strip()[:1_000]
            try:
                columns = columns_of(reply, self.context.scope)
                if last or not self.context.uses("fit") or (misfit := unfit(columns, self.context.scope)) is None:
                    return columns
                problem = misfit.why
            except QuestionError as error:
                if last and wrong:
                    raise
                problem = error_line(error)
            failure = (reply, problem)
        return ()

    def _columns_wording(self, failure: tuple[str, str] | None, rule: str) -> Wording:
        context = self.context
        return column_words.wording(
            self._question,
            words.create_tables(context.scope, chars=CHARS, modalities=True),
            grammar=rule,
            rules=context.ctx.rules,
            failure=failure,
        )

    # ---------------------------------------------------------------------------------------------------- the statement
    async def _statement(self, step: AskContext, n: int, columns: Columns) -> Candidate:
        context, scope = self.context, with_columns(self.context.scope, columns)
        schema = words.create_tables(scope, chars=CHARS, modalities=self._readable)

        async def written(failure: tuple[str, str] | None = None) -> tuple[str, Candidate]:
            wording = words.wording(
                self._question,
                schema,
                rules=context.ctx.rules,
                plot=context.plot,
                why=context.why,
                temperature=TEMPERATURE if n else 0.0,
                seed=n,
                failure=failure,
            )
            reply = str(await step.say(wording))
            if (columns, reply) not in self._cache:
                self._cache[columns, reply] = await self._read(reply, columns, scope)
            return reply, self._cache[columns, reply]

        reply, candidate = await written()
        if not (wrong := self._to_mend(candidate)):
            return candidate
        try:
            _, mended = await written((reply.strip()[:1_000], wrong))
        except QuestionError:  # the model says nothing more
            return candidate
        return mended if candidate.problem or not mended.problem else candidate

    def _to_mend(self, candidate: Candidate) -> str:
        """What goes back to the model: why a statement fails, until one runs; what the evidence has against one that runs."""
        if not self.context.uses("repair"):
            return ""
        if candidate.problem:
            return "" if self._runs else candidate.problem
        return "; ".join(candidate.mend)

    async def _read(self, reply: str, columns: Columns, scope: Scope) -> Candidate:
        """What a reply gives; its `problem` says what is wrong with it. Raises _TextCompared."""
        context, sql = self.context, words.statement_of(reply)
        try:
            checked = check_sql(sql, self._tables)
            columns = tuple(column for column in columns if used(checked, [column]))
            if context.uses("types") and (compared := compared_texts(checked, context.scope)):
                why = f"{compared} is a text or an image: SQL cannot compare what it tells"
                if self._compared or self._runs or not context.uses("reading") or not context.uses("repair"):
                    return Candidate("", checked, problem=why)
                if self._columns:
                    why += f"; add a column for what is compared here: {checked[:300]}"
                raise _TextCompared(why)
            table = await self._rows(checked, columns)
            if is_empty(table) and context.uses("values"):
                checked, table = await self._with_near_values(checked, columns, table)
            if columns:
                return self._that_reads(checked, columns, table)
        except GuardError as error:
            read = [f for source in context.scope.sources.values() for f in source.fields]
            why = without_values(error, NodeKind.SQL, sql, read)
            return Candidate("", sql, problem=why + (self._where(why, scope) if context.uses("names") else ""))
        except _TextCompared:
            raise
        except UQLError as error:
            return Candidate("", sql, problem=error_line(error))
        against, mend = self._against(checked, checked, reads=False)
        return Candidate("", checked, key_of(table), table=table, empty=is_empty(table), against=against, mend=mend)

    def _that_reads(self, sql: str, columns: Columns, table: pa.Table) -> Candidate:
        """A candidate that reads, as UQL. It votes by the rows of its trial."""
        context, uql = self.context, as_uql(sql, columns, self.context.scope)
        plan = forms.finished([Node(_TRIED, NodeKind.UQL, uql)], context.done_nodes)
        checked = check_plan(plan, context.ctx.sources, context.ctx.settings)
        if checked.problems:
            return Candidate("", uql, problem="; ".join(problem.message for problem in checked.problems))
        against, mend = self._against(sql, uql, reads=True)
        (width,), *rows = key_of(table)
        key = ((width, *sorted(f"reads {c.source}.{c.field.name}" for c in columns)), *rows)
        body = checked.plan[_TRIED].body
        return Candidate("", body, key, reads=True, empty=is_empty(table), against=against, mend=mend)

    def _against(self, sql: str, text: str, *, reads: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What the evidence has against a statement, and the part of it that the model can mend.

        Args:
            sql, text: the statement as SQL, and as it would run.
            reads: a text or an image.
        """
        evidence = self.context.evidence
        if not self.context.uses("evidence"):
            return (), ()
        mend = (*evidence.of_the_values(text), *evidence.of_the_keys(sql, self.context.scope))
        return (*mend, *evidence.of_the_kind(reads=reads, readable=self._readable)), mend

    async def _rows(self, sql: str, columns: Columns) -> pa.Table:
        text = check_sql(trial(sql, columns, self.context.scope), self._tables) if columns else sql
        return await self.context.ctx.workspace.sql(text, tables=self._tables)

    def _where(self, why: str, scope: Scope) -> str:
        """The columns that a name which DuckDB did not find may mean."""
        missing = _MISSING.search(why)
        return f" ({near_columns(missing[1], scope)})" if missing is not None else ""

    async def _with_near_values(self, sql: str, columns: Columns, table: pa.Table) -> tuple[str, pa.Table]:
        """A statement without rows with the values that its columns hold in another spelling; as it is where that finds none.

        A time that is compared with a day is compared by its day.
        """
        tree = sqlglot.parse_one(sql, read="duckdb")
        changed = False
        times = {
            f.name.lower()
            for source in self.context.scope.sources.values()
            for f in source.visible_fields
            if f.type.startswith("TIMESTAMP")
        }
        for like in list(tree.find_all(exp.Like)):
            like.replace(exp.ILike(this=like.this, expression=like.expression))
            changed = True
        for equal in tree.find_all(exp.EQ, exp.In):
            literals = equal.expressions if isinstance(equal, exp.In) else [equal.expression]
            for literal in literals:
                if not (isinstance(equal.this, exp.Column) and isinstance(literal, exp.Literal) and literal.is_string):
                    continue
                if equal.this.name.lower() in times and _DAY.fullmatch(literal.name):
                    equal.set("this", exp.cast(equal.this.copy(), "DATE"))
                    changed = True
                elif (near := await self._near(equal.this.name, literal.name)) is not None:
                    literal.replace(exp.Literal.string(near))
                    changed = True
        if not changed:
            return sql, table
        mended = check_sql(tree.sql(dialect="duckdb"), self._tables)
        rows = await self._rows(mended, columns)
        return (sql, table) if is_empty(rows) else (mended, rows)

    async def _near(self, column: str, value: str) -> str | None:
        """The value of a column so called that another spelling means."""
        value_lists = await held_values(self.context.ctx, self.context.scope, column)
        return next((near for values in value_lists if (near := near_value(value, values)) is not None), None)


def compared_texts(sql: str, scope: Scope) -> str:
    """The text or image that a statement compares with a value, as "table.column"; "" where it compares none."""
    unread = {
        f.name.lower(): f"{name}.{f.name}"
        for name, source in scope.sources.items()
        for f in source.fields
        if f.is_unstructured
    }
    columns = (c for c in sqlglot.parse_one(sql, read="duckdb").find_all(exp.Column) if c.name.lower() in unread)
    return next((unread[c.name.lower()] for c in columns if c.find_ancestor(*_COMPARING) is not None), "")
