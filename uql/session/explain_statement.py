"""EXPLAIN, EXPLAIN SAMPLE n and EXPLAIN ANALYZE as statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uql.compiler.explain_formats import Measured, Sampled, written
from uql.compiler.physical import Block, PhysicalPlan
from uql.compiler.planner import plan
from uql.engine.execute import Pilot, pilot
from uql.engine.outcome import Outcome, text_outcome, text_table
from uql.pricing.explanation import explanation
from uql.session.events import finished
from uql.session.execute_statement import prepare
from uql.session.prepared import PreparedStatement
from uql.session.run_context import in_context

if TYPE_CHECKING:
    from uql.base.settings import Settings
    from uql.compiler.bound import BoundStatement
    from uql.compiler.syntax import Explain
    from uql.kernels.base import Context
    from uql.llm.gate import Gate
    from uql.session.session import Session


def explain(session: Session, piece: Explain, bound: BoundStatement, source: str) -> PreparedStatement:
    """The plan as rows of text. ANALYZE runs the query and adds what happened; SAMPLE n pays for n rows, and plans again.

    Args:
        piece: EXPLAIN with its mode and format.
        bound: the query inside.
    """
    settings = session.settings.with_values(**dict(bound.options))
    inner = prepare(session, bound, source)
    physical = plan(bound.query, settings.disabled_rules)

    def plan_lines() -> list[str]:
        return written(session.explanation(bound, settings), piece.format).splitlines()

    def run() -> Outcome:
        if piece.mode == "SAMPLE":
            return _sampled(session, bound, physical, settings, piece)
        if piece.mode == "ANALYZE":
            predicted = session.foresight.explained(bound, physical, settings)  # before the run, which teaches
            call_counts: dict[tuple[str, str], int] = {}

            def count(event: Any) -> None:
                if getattr(event, "kind", "") == "call" and event.question != "Write":
                    about = event.text, event.source
                    call_counts[about] = call_counts.get(about, 0) + 1

            stop = session.on_event(count)
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
                call_counts,
            )
            return text_outcome(written(predicted, piece.format, measured).splitlines(), outcome)
        return text_outcome(plan_lines(), None)

    return PreparedStatement(run, lambda: "\n".join(plan_lines()), inner.quote, source, session.store(source))


def _sampled(
    session: Session, bound: BoundStatement, plan: PhysicalPlan, settings: Settings, piece: Explain
) -> Outcome:
    """The plan priced with the answers for n random rows, which are paid for and kept."""
    calls = session.foresight.limit(plan, settings)
    knowledge = session.foresight.knowledge(settings, calls)
    sampled: Sampled | None = None
    outcome = text_outcome([], None)
    if isinstance(plan, Block) and plan.filter.formula is not None:
        block, n = plan, piece.sample or 0

        async def ask(ctx: Context, _: Gate) -> Pilot:
            return await pilot(block, ctx, n)

        with session.lock:
            sample, gate = finished(in_context(session, bound.text, settings, calls, ask))
        knowledge.pilots[id(plan)] = sample
        outcome.cost = gate.cost
        sampled = Sampled(
            sample.rows,
            sample.passed,
            *sample.share,
            settings.confidence,
            gate.cost.calls,
            gate.cost.cached,
            sample.until is not None,
        )
    text = written(explanation(bound, plan, knowledge, calls), piece.format, None, sampled)
    outcome.table, outcome.types = text_table(text.splitlines()), ["VARCHAR"]
    return outcome
