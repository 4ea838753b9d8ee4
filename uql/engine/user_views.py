"""Views in the sub-queries of expressions, where ORDER BY without a direction means something else to the user than to the engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from uql.compiler.bound import Bound, BoundDerived, BoundQuery, BoundSelect, BoundSource, BoundTable, BoundUnion
from uql.compiler.subqueries import in_expressions, is_semantic_query, with_expressions, with_leaves
from uql.compiler.walk import with_queries
from uql.kernels.duck import Duck, quote


class UserViews:
    """Their rows in temporary tables, each read once under the user's orders: expressions are evaluated under the engine's."""

    def __init__(self, duck: Duck) -> None:
        self._duck = duck
        self._tables: dict[str, str] = {}  # by SQL of what they hold the rows of

    def read(self, expr: Any) -> Any:
        """The expression with its concrete sub-queries over these tables."""
        parts = [] if expr is None else [p for p in in_expressions(expr) if not is_semantic_query(p.query)]
        swap = {id(part): Bound(self._query(part.query), part.correlated) for part in parts}
        return with_queries(expr, swap) if swap else expr

    def _query(self, query: BoundQuery) -> BoundQuery:
        if isinstance(query, BoundUnion):
            return replace(query, left=self._query(query.left), right=self._query(query.right))
        assert isinstance(query, BoundSelect)
        source = None if query.source is None else with_leaves(query.source, self._leaf, self.read)
        return replace(with_expressions(query, self.read), source=source, where=self.read(query.where))

    def _leaf(self, leaf: BoundSource) -> BoundSource:
        if isinstance(leaf, BoundDerived):
            return replace(leaf, query=self._query(leaf.query))
        if not isinstance(leaf, BoundTable) or leaf.table.has_rowid:
            return leaf
        sql = leaf.table.sql
        if sql not in self._tables:
            with self._duck.users_orders():
                self._tables[sql] = quote(self._duck.create(f"SELECT * FROM {sql}")[0])
        return replace(leaf, table=replace(leaf.table, sql=self._tables[sql]))
