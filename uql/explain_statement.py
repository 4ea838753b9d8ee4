"""EXPLAIN, EXPLAIN SAMPLE n and EXPLAIN ANALYZE as statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uql.compiler.formats import Measured, Sampled, written
from uql.compiler.physical import Block
from uql.compiler.planner import plan
from uql.context import in_context
from uql.engine import Pilot, pilot
from uql.explaining import explanation
from uql.foresight import limit_of
from uql.result import Result
from uql.running import finished
from uql.statements import text_outcome, text_table

if TYPE_CHECKING:
    from uql.compiler.bound import BoundStatement
    from uql.compiler.physical import PhysicalPlan
    from uql.compiler.syntax import Explain
    from uql.connection import Connection
    from uql.kernels.base import Context
    from uql.llm.gate import Gate
    from uql.result import Outcome
    from uql.settings import Settings


def explain(con: Connection, piece: Explain, bound: BoundStatement, source: str) -> Result:
    """The plan as rows of text. ANALYZE runs the query and adds what happened; SAMPLE n pays for n rows, and plans again."""
    settings = con._settings.with_values(**dict(bound.options))
    inner = con._result(bound, source)
    physical = plan(bound.query, settings.disabled_rules)

    def shown() -> list[str]:
        return written(con._foresight.explained(bound, physical, settings), piece.format).splitlines()

    def run() -> Outcome:
        if piece.mode == "SAMPLE":
            return _sampled(con, bound, physical, settings, piece)
        if piece.mode == "ANALYZE":
            predicted = con._foresight.explained(bound, physical, settings)  # before the run, which teaches
            asked: dict[tuple[str, str], int] = {}

            def count(event: Any) -> None:
                if getattr(event, "kind", "") in ("call", "cached") and event.question != "Write":
                    about = event.text, event.source
                    asked[about] = asked.get(about, 0) + 1

            stop = con.on_event(count)
            try:
                outcome = inner.run()
            finally:
                stop()
            cost = outcome.cost
            measured = Measured(
                cost.calls,
                cost.cached,
                cost.input_tokens,
                cost.output_tokens,
                cost.usd,
                cost.seconds,
                outcome.table.num_rows,
                tuple(outcome.notes),
                asked,
            )
            return text_outcome(written(predicted, piece.format, measured).splitlines(), outcome)
        return text_outcome(shown(), None)

    return Result(run, lambda: "\n".join(shown()), inner.quote, source, con._store(source))


def _sampled(con: Connection, bound: BoundStatement, plan: PhysicalPlan, settings: Settings, piece: Explain) -> Outcome:
    """The plan priced with the answers for n random rows, which are paid for and kept."""
    calls = limit_of(plan, settings)
    knowledge = con._foresight.knowledge(settings, calls)
    sampled: Sampled | None = None
    outcome = text_outcome([], None)
    if isinstance(plan, Block) and plan.formula is not None:
        block, n = plan, piece.sample or 0

        async def ask(ctx: Context, _: Gate) -> Pilot:
            return await pilot(block, ctx, n)

        with con._lock:
            found, gate = finished(in_context(con, bound.text, settings, calls, ask))
        knowledge.pilots[id(plan)] = found
        outcome.cost = gate.cost
        sampled = Sampled(
            found.rows,
            found.passed,
            *found.share,
            settings.confidence,
            gate.cost.calls,
            gate.cost.cached,
            found.until is not None,
        )
    shown = written(explanation(bound, plan, knowledge, calls), piece.format, None, sampled)
    outcome.table, outcome.types = text_table(shown.splitlines()), ["VARCHAR"]
    return outcome
