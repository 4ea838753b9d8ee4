"""Candidates of plain DuckDB SQL, for questions that plain columns answer: each is run, and votes by its rows.

The model sees CREATE TABLE text with two example rows a table. The guard checks each statement. One that fails goes back once with DuckDB's
message. A statement that compares a text or an image with a value does not read it, so it has no vote.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from uql.base.errors import GuardError
from uql.nl.guard.guard import check_sql
from uql.nl.plan.dag import NodeKind
from uql.nl.plan.private_lineage import without_values
from uql.nl.prompts import Wording
from uql.nl.prompts import statements as words
from uql.nl.schema.scope import Scope
from uql.nl.small.candidates import TEMPERATURE, Asked, Candidate, Writer
from uql.nl.small.evidence import hinted
from uql.nl.small.near_names import near_columns, near_value, values_of
from uql.nl.small.vote import is_empty, key_of

if TYPE_CHECKING:
    import pyarrow as pa

CHARS = 9_000  # of the tables in a prompt
_MISSING = re.compile(r'column (?:named )?"?([^"\s]+?)"?[ !]', re.IGNORECASE)
_COMPARING = (
    *(exp.EQ, exp.NEQ, exp.Like, exp.ILike, exp.In, exp.RegexpLike, exp.Contains, exp.StartsWith, exp.EndsWith),
    *(exp.GT, exp.GTE, exp.LT, exp.LTE, exp.StrPosition),
)


class Statements(Writer):
    """Writes and runs statements of SQL."""

    kind = "sql"

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._tables = list(asked.scope.sources)
        self._schema = words.create_tables(asked.scope, chars=CHARS)

    def wording(self, n: int, failure: tuple[str, str] | None) -> Wording:
        asked = self.asked
        question = asked.ctx.question
        return words.wording(
            hinted(question, asked.scope) if asked.uses("hints") else question,
            self._schema,
            rules=asked.ctx.rules,
            plot=asked.plot,
            why=asked.why,
            temperature=TEMPERATURE if n else 0.0,
            seed=n,
            failure=failure,
        )

    async def read(self, reply: str) -> Candidate:
        asked, sql = self.asked, words.statement_of(reply)
        try:
            checked = check_sql(sql, self._tables)
            if asked.uses("types") and (compared := compared_texts(checked, asked.scope)):
                return Candidate(
                    "", checked, problem=f"{compared} is a text or an image: SQL cannot compare what it tells"
                )
            table = await asked.ctx.sql(checked, tables=self._tables)
            if is_empty(table) and asked.uses("values"):
                checked, table = await self._with_near_values(checked, table)
        except GuardError as error:
            read = [f for source in asked.scope.sources.values() for f in source.fields]
            why = without_values(error, NodeKind.SQL, sql, read)
            return Candidate("", sql, problem=why + (self._where(why) if asked.uses("names") else ""))
        readable = any(f.is_unstructured for source in asked.scope.sources.values() for f in source.shown)
        against = asked.evidence.against_plain(checked, readable=readable) if asked.uses("evidence") else []
        return Candidate("", checked, key_of(table), table=table, empty=is_empty(table), against=tuple(against))

    def _where(self, why: str) -> str:
        """The columns that a name which DuckDB did not find may mean."""
        missing = _MISSING.search(why)
        return f" ({near_columns(missing[1], self.asked.scope)})" if missing is not None else ""

    async def _with_near_values(self, sql: str, table: pa.Table) -> tuple[str, pa.Table]:
        """A statement without rows with the values that its columns hold in another spelling; as it is where that finds none."""
        tree = sqlglot.parse_one(sql, read="duckdb")
        changed = False
        for like in list(tree.find_all(exp.Like)):
            like.replace(exp.ILike(this=like.this, expression=like.expression))
            changed = True
        for equal in tree.find_all(exp.EQ, exp.In):
            literals = equal.expressions if isinstance(equal, exp.In) else [equal.expression]
            for literal in literals:
                if not (isinstance(equal.this, exp.Column) and isinstance(literal, exp.Literal) and literal.is_string):
                    continue
                if (near := await self._near(equal.this.name, literal.name)) is not None:
                    literal.replace(exp.Literal.string(near))
                    changed = True
        if not changed:
            return sql, table
        mended = check_sql(tree.sql(dialect="duckdb"), self._tables)
        found = await self.asked.ctx.sql(mended, tables=self._tables)
        return (sql, table) if is_empty(found) else (mended, found)

    async def _near(self, column: str, value: str) -> str | None:
        """The value of a column so called that another spelling means."""
        found = await values_of(self.asked.ctx, self.asked.scope, column)
        return next((near for _, values in found if (near := near_value(value, values)) is not None), None)


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
