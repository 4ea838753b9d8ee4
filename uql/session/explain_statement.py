"""EXPLAIN, EXPLAIN SAMPLE n and EXPLAIN ANALYZE as statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from uql.compiler.explain import Explained, Step
from uql.compiler.explain_formats import Measured, Sampled, written
from uql.compiler.physical import Block
from uql.compiler.syntax import CopyQuery, CreateSemanticTable, CreateTable, Explain, Insert, Query, Refresh
from uql.engine.execute import Pilot, pilot
from uql.engine.outcome import Outcome, text_outcome, text_table
from uql.pricing.explanation import explanation
from uql.session import semantic_tables
from uql.session.events import finished
from uql.session.prepared import PreparedStatement
from uql.session.run_context import in_context

if TYPE_CHECKING:
    from uql.compiler.bound import BoundStatement
    from uql.kernels.base import Context
    from uql.llm.gate import Gate
    from uql.session.session import Session
    from uql.session.statements import Piece

WRITES = {CreateTable: "CREATE TABLE", Insert: "INSERT INTO", CopyQuery: "COPY TO"}


def explain(
    session: Session,
    tree: Explain,
    piece: Piece,
    bound: BoundStatement | None,
    inner: Callable[[], PreparedStatement],
) -> PreparedStatement:
    """The plan as rows of text. ANALYZE runs the statement and adds what happened; SAMPLE n pays for n rows, and plans again.

    Args:
        tree: EXPLAIN with its mode and format.
        bound: the query inside; None: that of a semantic table.
        inner: the statement inside, ready to run.
    """
    inside, query = tree.statement, isinstance(tree.statement, Query)

    def explained() -> Explained:
        if bound is None:
            assert isinstance(inside, CreateSemanticTable | Refresh)
            return semantic_tables.explained(session, inside, piece)
        report = session.explanation(bound, session.settings.with_values(**dict(bound.options)))
        target = inside.path if isinstance(inside, CopyQuery) else ".".join(getattr(inside, "name", ()))
        return report if query else report.below(Step(WRITES[type(inside)], target))

    def plan_lines() -> list[str]:
        return written(explained(), tree.format).splitlines()

    def run() -> Outcome:
        if tree.mode == "SAMPLE":
            assert bound is not None
            return _sampled(session, bound, tree)
        if tree.mode == "ANALYZE":
            return _analyzed(session, tree, explained(), inner)
        return text_outcome(plan_lines(), None)

    source = piece.script
    return PreparedStatement(
        run, lambda: "\n".join(plan_lines()), lambda: explained().quote, source, session.store(source)
    )


def _analyzed(session: Session, tree: Explain, predicted: Explained, inner: Callable[[], PreparedStatement]) -> Outcome:
    """Runs the statement: what was predicted before, which the run may teach otherwise, beside what happened."""
    call_counts: dict[tuple[str, str], int] = {}

    def count(event: Any) -> None:
        if getattr(event, "kind", "") == "call" and event.question != "Write":
            about = event.text, event.source
            call_counts[about] = call_counts.get(about, 0) + 1

    stop = session.on_event(count)
    try:
        outcome = inner().run()
    finally:
        stop()
    measured = Measured(outcome.cost, outcome.table.num_rows, tuple(outcome.notes), call_counts)
    return text_outcome(written(predicted, tree.format, measured).splitlines(), outcome)


def _sampled(session: Session, bound: BoundStatement, tree: Explain) -> Outcome:
    """The plan priced with the answers for n random rows, which are paid for and kept."""
    settings = session.settings.with_values(**dict(bound.options))
    plan = session.plan(bound, settings)
    calls = session.foresight.limit(plan, settings)
    knowledge = session.foresight.knowledge(settings, calls)
    sampled: Sampled | None = None
    outcome = text_outcome([], None)
    if isinstance(plan, Block) and plan.filter.formula is not None:
        block, n = plan, tree.sample or 0

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
    text = written(explanation(bound, plan, knowledge, calls), tree.format, None, sampled)
    outcome.table, outcome.types = text_table(text.splitlines()), ["VARCHAR"]
    return outcome
