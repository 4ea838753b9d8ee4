"""A question over plain columns, by candidates that vote: several statements of SQL, run, and the result that most of them give.

The model writes each candidate from CREATE TABLE text and two example rows a table, the first one greedily, the others by chance. The
guard checks each; one that fails goes back once with DuckDB's message. A plan that another route made is a candidate of equal weight.
A statement that only compares a text or an image with a value does not read it, so it has no vote.
Source: Wang and others, "Self-consistency improves chain of thought reasoning" (2023): samples that vote by their answers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from uql.base.errors import BudgetError, GuardError, QuestionError
from uql.base.schema import Modality
from uql.compiler.parser import parse_script
from uql.compiler.syntax import Node as Tree
from uql.compiler.syntax import Quoted
from uql.nl.ask.aggregator import speaks
from uql.nl.ask.context import AskContext, NodeEvent
from uql.nl.ask.plan_checks import Checked
from uql.nl.guard.guard import below, check_sql
from uql.nl.plan.dag import NodeKind
from uql.nl.plan.private_lineage import without_values
from uql.nl.prompts import candidates as words
from uql.nl.schema.scope import Scope
from uql.nl.small.vote import Ballot, Vote, is_empty, is_settled, key_of, tally

if TYPE_CHECKING:
    import pyarrow as pa

TEMPERATURE = 0.7  # of all candidates but the first
_MISSING = re.compile(r'column (?:named )?"?([^"\s]+?)"?[ !]', re.IGNORECASE)
_COMPARING = (exp.EQ, exp.NEQ, exp.Like, exp.ILike, exp.In, exp.RegexpLike, exp.Contains, exp.StartsWith, exp.EndsWith)
_COMPARING_MORE = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.StrPosition)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One statement: as it ran, its rows (None: it failed, with `problem`), and whether it only compares a text or an image."""

    name: str
    sql: str
    table: pa.Table | None = None
    problem: str = ""
    compares_texts: bool = False

    @property
    def ballot(self) -> Ballot:
        if self.table is None:
            return Ballot(self.name, None)
        return Ballot(self.name, key_of(self.table), is_empty(self.table))


@dataclass(slots=True)
class Candidates:
    """The candidates for one question.

    Attributes:
        ctx: the run.
        scope: the tables that the prompt shows.
        most: candidates that the model writes at most.
        repair: a statement that fails goes back once.
        chars: of the tables in a prompt.
    """

    ctx: AskContext
    scope: Scope
    most: int
    repair: bool = True
    chars: int = 9_000
    found: list[Candidate] = field(default_factory=list)
    cut: str = ""  # why there are fewer than `most`, where the budget ended them
    _ran: dict[str, Candidate] = field(default_factory=dict)  # by statement

    async def vote(self, given: Sequence[Ballot] = ()) -> Vote:
        """Writes candidates until one result leads whatever the others say, or all are there.

        Args:
            given: ballots of candidates from elsewhere.
        Raises: BudgetError where the budget has none for the first.
        """
        schema = words.create_tables(self.scope, chars=self.chars)
        for n in range(self.most):
            if is_settled(self._ballots(given), self.most - n):
                break
            try:
                self.found.append(await self._candidate(schema, n))
            except BudgetError as error:
                if not self.found:
                    raise
                self.cut = error.message
                break
        return tally(self._ballots(given))

    def named(self, name: str) -> Candidate | None:
        return next((candidate for candidate in self.found if candidate.name == name), None)

    @property
    def needs_reading(self) -> bool:
        """Do most of the statements that run only compare a text or an image?"""
        ran = [candidate for candidate in self.found if candidate.table is not None]
        return 2 * sum(candidate.compares_texts for candidate in ran) > len(ran)

    def _ballots(self, given: Sequence[Ballot]) -> list[Ballot]:
        own = [Ballot(c.name, None) if c.compares_texts else c.ballot for c in self.found]
        return [*own, *given]

    # ------------------------------------------------------------------------------------------------------- internals
    async def _candidate(self, schema: str, n: int) -> Candidate:
        name = f"candidate{n + 1}"
        step = self.ctx.step(name)
        self.ctx.emit(NodeEvent(name, "start", "a statement that votes"))
        try:
            made = replace(await self._written(step, schema, n), name=name)
        except QuestionError as error:
            made = Candidate(name, "", problem=error.message)
        finally:
            self.ctx.prompts += step.prompts
        failed = made.table is None
        self.ctx.emit(NodeEvent(name, "failed" if failed else "done", made.problem if failed else made.sql))
        return made

    async def _written(self, step: AskContext, schema: str, n: int) -> Candidate:
        """One statement of the model, run; after an error a second one."""
        sql = await self._said(step, schema, n, None)
        if sql in self._ran:
            return self._ran[sql]
        made = await self._run(sql)
        if made.table is None and self.repair:
            made = await self._run(await self._said(step, schema, n, (sql, made.problem)))
        self._ran[sql] = made
        return made

    async def _said(self, step: AskContext, schema: str, n: int, failure: tuple[str, str] | None) -> str:
        wording = words.wording(
            self.ctx.question,
            schema,
            rules=self.ctx.rules,
            temperature=TEMPERATURE if n else 0.0,
            seed=n,
            failure=failure,
        )
        return words.statement_of(await step.say(wording))

    async def _run(self, sql: str) -> Candidate:
        tables = list(self.scope.sources)
        try:
            checked = check_sql(sql, tables)
            table = await self.ctx.sql(checked, tables=tables)
        except GuardError as error:
            read = [f for source in self.scope.sources.values() for f in source.fields]
            why = without_values(error, NodeKind.SQL, sql, read)
            return Candidate("", sql, problem=why + where_it_stands(why, self.scope))
        return Candidate("", checked, table, compares_texts=compares_texts(checked, self.scope))


def where_it_stands(error: str, scope: Scope) -> str:
    """In which tables a column stands that DuckDB did not find where the statement names it; "" where there is none."""
    missing = _MISSING.search(error)
    if missing is None:
        return ""
    column = missing[1].rsplit(".", 1)[-1]
    held = [n for n, s in scope.sources.items() if column.lower() in {f.name.lower() for f in s.shown}]
    return f" The column {column} stands in: {', '.join(held)}." if held else ""


def compares_texts(sql: str, scope: Scope) -> bool:
    """Does a statement compare a text or an image, which a model would have to read?"""
    unread = {
        f.name.lower()
        for source in scope.sources.values()
        for f in source.fields
        if f.modality is not Modality.STRUCTURED
    }
    columns = (c for c in sqlglot.parse_one(sql, read="duckdb").find_all(exp.Column) if c.name.lower() in unread)
    return any(column.find_ancestor(*_COMPARING, *_COMPARING_MORE) is not None for column in columns)


def is_plain(checked: Checked, scope: Scope) -> bool:
    """Is every node of a plan a query in which no model reads or writes anything?"""
    made = [fields for fields in checked.fields.values() if fields is not None]
    columns = {f.name.lower() for fields in (*made, *(s.fields for s in scope.sources.values())) for f in fields}
    for node in checked.plan.nodes:
        if node.kind not in (NodeKind.SQL, NodeKind.UQL, NodeKind.ANSWER):
            return False
        if node.kind is NodeKind.UQL and _asks(node.body, columns):
            return False
    return True


def _asks(body: str, columns: Collection[str]) -> bool:
    """Has a query a quoted text that is no column?"""
    query = parse_script(body)[0][0]
    waiting: list[Tree] = [] if isinstance(query, str) else [query]
    while waiting:
        tree = waiting.pop()
        if isinstance(tree, Quoted) and (tree.forced or tree.text.lower() not in columns):
            return True
        waiting += below(tree)
    return False


def doubts(vote: Vote, candidates: Candidates) -> list[str]:
    """What is to be said of an answer that the vote decided: how many candidates agree where none leads, and what the others found."""
    notes = []
    if not vote.leads:
        others = [c for ballot in vote.others if (c := candidates.named(ballot.name)) is not None]
        told = "; ".join(f"{_rows(c)} by {c.sql}" for c in others[:2])
        notes.append(
            f"not sure: {vote.agree} of {vote.of} candidate statements give this result"
            + (f"; others: {told}" if told else "")
        )
    if candidates.cut:
        notes.append(f"{len(candidates.found)} of {candidates.most} candidates voted: {candidates.cut}")
    return notes


def _rows(candidate: Candidate) -> str:
    assert candidate.table is not None
    table = candidate.table
    value = table.column(0).to_pylist() if table.num_columns == 1 else table.to_pylist()
    return (speaks(value) if table.num_rows <= 3 else None) or f"{table.num_rows:,} rows"
