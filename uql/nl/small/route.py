"""Which route answers a question: the plan in lines where a text or an image is read, else the vote of candidates.

The plan in lines comes first. Where it reads nothing it is one candidate of the vote, and where it refuses it is a candidate that failed:
it is evidence, not the decision.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

from uql.base.errors import BudgetError, QuestionError
from uql.nl.ask.context import AskContext
from uql.nl.ask.executor import Executor, Limits
from uql.nl.ask.plan_checks import check_plan
from uql.nl.ask.planner import Planned, Planner
from uql.nl.plan import read_plan as forms
from uql.nl.plan.dag import Node, NodeKind, Plan
from uql.nl.small.candidates import Candidates, doubts, is_plain
from uql.nl.small.vote import Ballot, is_empty, key_of

LINES = "lines"  # the candidate that the plan in lines is


@dataclass(frozen=True, slots=True)
class Decision:
    """The plan that answers a question.

    Attributes:
        doubts: that its answer states.
        by_vote: its statement has run and most candidates agree with it, so nothing is left to mend.
    """

    planned: Planned
    doubts: tuple[str, ...] = ()
    by_vote: bool = False


async def plan_by_vote(
    ctx: AskContext, planner: Planner, *, most: int, lines: bool = True, repair: bool = True
) -> Decision:
    """The plan that answers the question, by the vote where plain columns answer it.

    Args:
        most: candidates in plain SQL.
        lines: the planner's own plan is a candidate too, and decides where it reads texts or images.
        repair: a candidate that fails goes back once.
    Raises: QuestionError (UQL630) where no candidate runs and the planner has no plan; BudgetError.
    """
    planned: Planned | None = None
    ballots: list[Ballot] = []
    if lines:
        try:
            planned = await planner.plan()
        except QuestionError:
            ballots = [Ballot(LINES, None)]
        else:
            plan = planned.checked.plan
            if not planned.cannot and (not is_plain(planned.checked, planner.scope) or len(_results(plan)) > 1):
                return Decision(planned)
            ballots = [Ballot(LINES, None) if planned.cannot else await _ballot(plan, ctx)]
    candidates = Candidates(ctx, planner.scope, most, repair)
    try:
        vote = await candidates.vote(ballots)
    except BudgetError:
        if planned is None or planned.cannot:
            raise
        return Decision(planned)
    if vote.leader is None or candidates.needs_reading:
        planned = planned or await planner.plan()
        return Decision(planned)
    notes = doubts(vote, candidates)
    if planned is not None and planned.cannot:
        notes.append(planned.cannot)
    if planned is not None and any(ballot.key == vote.leader.key for ballot in ballots):
        return Decision(planned, tuple(notes), by_vote=True)
    decided = candidates.named(vote.leader.name)
    assert decided is not None  # the leader is no ballot from elsewhere
    taken = {name.lower() for name in ctx.sources}
    name = next(name for n in count(1) if (name := f"step{n}") not in taken)
    node = Node(name, NodeKind.SQL, decided.sql, may_be_empty=True)
    checked = check_plan(forms.finished([node]), ctx.sources, ctx.settings)
    tries = planned.tries if planned is not None else 1
    return Decision(Planned(checked, tries), tuple(notes), by_vote=True)


async def _ballot(plan: Plan, ctx: AskContext) -> Ballot:
    """What a plan without texts gives, run once and forgotten."""
    quiet = replace(ctx.step(LINES), emit=lambda event: None)
    executor = Executor(quiet, limits=Limits(replans=0))
    await executor.run(plan)
    found = [executor.outputs[name].table for name in _results(plan) if name in executor.outputs]
    ctx.workspace.drop(list(executor.outputs))
    table = found[0] if found else None
    return Ballot(LINES, None) if table is None else Ballot(LINES, key_of(table), is_empty(table))


def _results(plan: Plan) -> tuple[str, ...]:
    """The nodes that the answer is written from."""
    return next((node.inputs for node in plan.nodes if node.kind is NodeKind.ANSWER), ())
