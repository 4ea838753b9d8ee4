"""EXPLAIN and quotes: what is known of a plan before it runs, from DuckDB and from earlier answers. No model is asked here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from uql.compiler.bound import BoundItem, BoundJoin, BoundSelect, BoundSource, BoundTable
from uql.compiler.cost import Known, Quote, Range, quote, rows_out
from uql.compiler.explain import Explained, explained
from uql.compiler.formula import conjunction, conjuncts
from uql.compiler.physical import Block, OuterJoin, PhysicalPlan, SqlQuery, Stage, UnionPlan, stages
from uql.compiler.planner import Rates, term_rates
from uql.compiler.sql import query_sql, render
from uql.compiler.subqueries import in_expressions, is_semantic_query
from uql.compiler.syntax import Call, Expr, Star
from uql.engine import Pilot, fields_of
from uql.kernels.duck import Duck

if TYPE_CHECKING:
    import duckdb

    from uql.compiler.bound import BoundStatement
    from uql.llm.providers.base import Provider

UNKNOWN_SHARE = 1 / 3  # of the rows that a condition keeps which cannot be looked at before the run


@dataclass(slots=True)
class Knowledge:
    """What is known of each block of a plan; counts are DuckDB's, each made once."""

    cursor: duckdb.DuckDBPyConnection
    rates: Rates = field(default_factory=dict)  # of terms that earlier queries asked
    pilots: dict[int, Pilot] = field(default_factory=dict)  # by the identity of the block
    _found: dict[int, Known] = field(default_factory=dict)

    def __call__(self, block: Block) -> Known:
        if id(block) not in self._found:
            self._found[id(block)] = self._look(block)
        return self._found[id(block)]

    def _look(self, block: Block) -> Known:
        fields = fields_of(block)
        asked = [*block.filter_stages, *block.row_stages, *block.late_stages, *(Stage((c,)) for c in block.groups)]
        asked += stages((*block.groups, *(c for s in block.row_stages for c in s.columns)))
        asked += [Stage((c,)) for c in block.summaries]
        asked += block.outer_join.stages if block.outer_join is not None else ()
        chars = {s: sum(fields[c].mean_chars for c in s.reads if c in fields) for s in asked}
        pilot = self.pilots.get(id(block))
        rows, pairs = self._rows(block)
        return Known(
            rows,
            chars,
            pairs,
            answers=pilot.answers if pilot is not None else None,
            share=pilot.share if pilot is not None else None,
            rates=term_rates(block, self.rates),
        )

    # -------------------------------------------------------------------------------------------------- numbers of rows
    def _rows(self, block: Block) -> tuple[Range, Range]:
        """The candidates of a block, and the pairs of its outer join."""
        derived = {alias: self._out(plan) for alias, plan in block.derived}
        plain = [t for t in conjuncts(block.pushed) if not any(is_semantic_query(b.query) for b in in_expressions(t))]
        hidden = len(plain) < len(conjuncts(block.pushed))
        join = block.outer_join
        if join is not None:
            return self._joined(join, derived, block.pushed is not None)
        if not derived:
            rows = Range.exactly(self._count(block.source, conjunction(plain)))
        else:
            rows = self._guess(block.source, derived)
            hidden = hidden or block.pushed is not None
        return (Range(0, rows.expected * UNKNOWN_SHARE, rows.high) if hidden else rows), Range(0, 0, 0)

    def _joined(self, join: OuterJoin, derived: dict[str, Range], filtered: bool) -> tuple[Range, Range]:
        left = self._guess(join.left, derived)
        if derived:
            pairs = left * self._guess(join.right, derived)
            if join.pairs is not None:
                pairs = Range(0, max(left.expected, 1.0), pairs.high)
        else:
            kind = "INNER" if join.pairs is not None else "CROSS"
            pairs = Range.exactly(self._count(BoundJoin(kind, join.left, join.right, join.pairs), None))
        if join.kind == "LEFT":
            rows = Range(left.low, left.expected, max(left.high, pairs.high))
        else:
            rows = Range(0, left.expected / 2, left.high)
        return (Range(0, rows.expected * UNKNOWN_SHARE, rows.high) if filtered else rows), pairs

    def _count(self, source: BoundSource | None, where: Expr | None) -> float:
        if where is None and isinstance(source, BoundJoin) and source.on is None and source.kind in ("CROSS", "INNER"):
            return self._count(source.left, None) * self._count(source.right, None)
        if where is None and isinstance(source, BoundTable) and source.table.row_count is not None:
            return float(source.table.row_count)
        star = BoundItem(Call("count", (Star(),)), "n", "BIGINT")
        return float(
            Duck(self.cursor).scalar(render(query_sql(BoundSelect((star,), source, where, aggregated=True)))) or 0
        )

    def _guess(self, source: BoundSource | None, derived: dict[str, Range]) -> Range:
        """The rows of a FROM clause in which some sources have not been run."""
        if isinstance(source, BoundJoin):
            left, right = self._guess(source.left, derived), self._guess(source.right, derived)
            both = left * right
            return both if source.on is None else Range(0, max(left.expected, right.expected), both.high)
        alias = getattr(source, "alias", "")
        return derived[alias] if alias in derived else Range.exactly(self._count(source, None))

    def _out(self, plan: PhysicalPlan) -> Range:
        """The rows that an inner query gives."""
        match plan:
            case UnionPlan(left=left, right=right):
                return self._out(left) + self._out(right)
            case Block():
                return rows_out(plan, self(plan))
            case SqlQuery(query=query):
                return Range.exactly(
                    float(Duck(self.cursor).scalar(f"SELECT count(*) FROM ({render(query_sql(query))})") or 0)
                )
        raise TypeError(f"not a physical plan: {plan!r}")


def price(plan: PhysicalPlan, knowledge: Knowledge, budget: int | None, model: Provider | None) -> Quote:
    """The price of a plan within its budget; USD where the model is at hand and its price known."""
    found = quote(plan, knowledge).within(budget)
    cost = model.price if model is not None else None
    return found.priced(cost.usd(1, 0), cost.usd(0, 1)) if cost is not None else found


def explanation(
    statement: BoundStatement, plan: PhysicalPlan, knowledge: Knowledge, budget: int | None, model: Provider | None
) -> Explained:
    """All that EXPLAIN says."""
    return explained(statement, plan, knowledge, price(plan, knowledge, budget, model), budget)
