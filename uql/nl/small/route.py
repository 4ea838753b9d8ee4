"""How a small model answers: several statements of SQL, some of which read texts or images, and one vote by their rows.

Where no result leads, the first is answered, the others are offered as readings, and a note says how sure it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import count

import sqlglot
from sqlglot import exp

from uql.base.arrow_values import cells_of, rows_of
from uql.base.errors import BudgetError, GuardError, QuestionError
from uql.base.names import free_name
from uql.base.schema import Field
from uql.nl.ask.aggregator import speaks
from uql.nl.ask.context import AskContext
from uql.nl.ask.executor import limit_of
from uql.nl.ask.plan_checks import Checked, check_plan, vega_type
from uql.nl.ask.planner import Planned, wants_plot
from uql.nl.plan import read_plan as forms
from uql.nl.plan.dag import Node, NodeKind
from uql.nl.schema.scope import Scope, Source
from uql.nl.small.statements import Statements
from uql.nl.small.vote import Candidate, CandidateContext, Vote, is_settled, tally

CANDIDATES = 5  # at most, where the user does not say
OFFERED = 3  # readings
_WORDS = {"line": "line", "trend": "line", "pie": "arc", "scatter": "point", "area": "area"}
_MARK = re.compile(rf"\b({'|'.join(_WORDS)})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Decision:
    """The plan that answers a question.

    Attributes:
        doubts: that its answer states.
        readings: what the question may mean, where the candidates do not agree; the first is the plan's.
    """

    planned: Planned
    doubts: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()


async def plan_by_vote(
    ctx: AskContext,
    scope: Scope,
    *,
    most: int = CANDIDATES,
    without: Collection[str] = (),
    done_nodes: Sequence[Node] = (),
    used_names: Collection[str] = (),
    why: str = "",
    plots: bool = True,
) -> Decision:
    """The plan that the candidates agree on, or that most of them give.

    Args:
        ctx: the run, or a step of it with a question of its own.
        scope: the tables that a plan may name.
        most: candidates.
        without: mechanisms that are switched off (`candidates.SWITCHES`).
        done_nodes: nodes that have run; the plan may read them.
        used_names: names that no new node may have.
        why: what went wrong with the plan before.
        plots: a question for a picture gets one.
    Raises: QuestionError (UQL630) where no candidate runs; BudgetError where there is none for the first.
    """
    whole = _with_results(ctx, scope, done_nodes)
    off = frozenset(without)
    plot = plots and wants_plot(ctx.question, whole)
    context = CandidateContext(ctx, whole, tuple(done_nodes), off, plot, why)
    voting = _Voting(context, 1 if "sampling" in off else most)
    await voting.run()
    vote = tally(voting.writer.candidates)
    winner = vote.leader
    if winner is None:
        failed = dict.fromkeys(f"{' '.join(c.text.split())}: {c.problem}" for c in voting.writer.candidates)
        raise QuestionError(
            f"no candidate for a plan runs: {'; '.join([*failed][:2]) or voting.cut}",
            help="ask in other words, or write UQL",
        )
    used = {name.lower() for name in (*ctx.sources, *used_names, *(node.name for node in done_nodes))}
    checked = _plan(context, winner, used)
    notes = [*_doubts(voting, vote), *(await _ties(context, winner))]
    return Decision(Planned(checked, 1), tuple(notes), _readings(vote))


class _Voting:
    """The candidates of one question, and what they decide."""

    def __init__(self, context: CandidateContext, most: int) -> None:
        self.most = most
        self.writer = Statements(context)
        self.cut = ""  # why there are fewer candidates, where the budget ended them

    async def run(self) -> None:
        """Writes candidates until one result leads whatever the others say. Raises BudgetError for the first."""
        candidates = self.writer.candidates
        try:
            while len(candidates) < self.most and not is_settled(candidates, self.most - len(candidates)):
                await self.writer.write()
        except BudgetError as error:
            if all(candidate.key is None for candidate in candidates):
                raise
            self.cut = limit_of(self.writer.context.ctx) or error.message


def _with_results(ctx: AskContext, scope: Scope, done_nodes: Sequence[Node]) -> Scope:
    """The scope with the existing results."""
    result_fields: dict[str, tuple[Field, ...]] = {
        n.name: ctx.workspace.fields(n.name)
        for n in done_nodes
        if n.kind is not NodeKind.ANSWER and ctx.workspace.has(n.name)
    }
    results = {name: Source(name, name, fields, ctx.workspace.rows(name)) for name, fields in result_fields.items()}
    return Scope({**scope.sources, **results}, scope.links, scope.relevant)


def _plan(context: CandidateContext, winner: Candidate, used: Collection[str]) -> Checked:
    """The plan of a candidate: its statement, and the plot where one is asked for."""
    ctx = context.ctx
    name = next(f"step{n}" for n in count(1) if f"step{n}" not in used)
    kind = NodeKind.UQL if winner.reads else NodeKind.SQL
    node = Node(name, kind, winner.text, may_be_empty=True)
    checked = check_plan(forms.finished([node], context.done_nodes), ctx.sources, ctx.settings)
    fields = checked.fields.get(name)
    one_row = winner.table is not None and winner.table.num_rows == 1
    if context.plot and fields and not (one_row and all(vega_type(f) == "quantitative" for f in fields)):
        plot = _plot_of(ctx.question, free_name("plot", used), name, fields)
        if plot is not None:
            checked = check_plan(forms.finished([node, plot], context.done_nodes), ctx.sources, ctx.settings)
    if checked.problems:
        raise QuestionError(f"the plan cannot be run: {'; '.join(map(str, checked.problems))}")
    return checked


def _plot_of(question: str, name: str, rows: str, fields: Sequence[Field]) -> Node | None:
    """A plot of the rows of another node, of the kind that the question names, else bars; None without two columns, one of them numbers.

    Args:
        rows: the name of the node that makes the rows.
    """
    columns = [f for f in fields if not f.is_unstructured]
    numbers = [f for f in columns if vega_type(f) == "quantitative"]
    if len(columns) < 2 or not numbers:
        return None
    y = numbers[-1]
    x, *more = [f for f in columns if f is not y]
    match = _MARK.search(question)
    item = {
        "kind": "plot",
        "name": name,
        "input": rows,
        "mark": _WORDS[match[1].lower()] if match is not None else "bar",
        "x": x.name,
        "y": y.name,
        "color": more[0].name if len(more) == 1 else "",
        "title": " ".join(question.split())[:80],
    }
    return forms.node_of(item, 1)


# ------------------------------------------------------------------------------------------------------ what is said of it
def _doubts(voting: _Voting, vote: Vote) -> list[str]:
    """How many candidates agree where none leads, and what the others found; that a limit left fewer of them."""
    notes = []
    if not vote.leads:
        failed = sum(bool(candidate.problem) for candidate in voting.writer.candidates)
        alternatives = "; ".join(f"{_rows(c)} by {c.text}" if c.table is not None else c.text for c in vote.others[:2])
        notes.append(
            f"not sure: {vote.agree} of {vote.of} candidates give this"
            + (f", {failed} failed" if failed else "")
            + (f"; others: {alternatives}" if alternatives else "")
        )
    if voting.cut:
        notes.append(f"only {len(voting.writer.candidates)} of {voting.most} candidates voted: {voting.cut}")
    return notes


def _readings(vote: Vote) -> tuple[str, ...]:
    """What the question may mean, where no candidate leads; the leader's first."""
    if vote.leads or vote.leader is None or not vote.others:
        return ()
    return tuple(" ".join(candidate.text.split()) for candidate in (vote.leader, *vote.others)[:OFFERED])


def _rows(candidate: Candidate) -> str:
    table = candidate.table
    assert table is not None
    value = cells_of(table.column(0)) if table.num_columns == 1 else rows_of(table)
    return (speaks(value) if table.num_rows <= 3 else None) or f"{table.num_rows:,} rows"


async def _ties(context: CandidateContext, winner: Candidate) -> list[str]:
    """That rows which are not shown tie with the last one that is, where DuckDB alone can tell."""
    if winner.reads or not context.uses("ties") or (check := tie_check(winner.text)) is None:
        return []
    sql, limit = check
    try:
        rows = await context.ctx.workspace.sql(sql, tables=list(context.scope.sources))
    except GuardError:
        return []
    places = rows.column(0).to_pylist()
    if len(places) <= limit or places[-1] != places[-2]:
        return []
    return [f"other rows tie with the last of the {limit:,} shown" if limit > 1 else "other rows tie with this one"]


def tie_check(sql: str) -> tuple[str, int] | None:
    """A statement whose rows tell whether others tie with the last that this one shows, and its LIMIT; None where it has none to check.

    >>> tie_check("SELECT name FROM t ORDER BY height DESC LIMIT 1")
    ('SELECT height AS place FROM t ORDER BY height DESC LIMIT 2', 1)
    >>> tie_check("SELECT name FROM t") is None, tie_check("SELECT count(*) FROM t LIMIT 5") is None
    (True, True)
    """
    tree = sqlglot.parse_one(sql, read="duckdb")
    limit, order = tree.args.get("limit"), tree.args.get("order")
    if not isinstance(tree, exp.Select) or limit is None or order is None or tree.args.get("distinct") is not None:
        return None
    most = limit.expression
    if not isinstance(most, exp.Literal) or most.is_string or len(order.expressions) != 1:
        return None
    by = order.expressions[0].this
    aliases = {item.alias.lower(): item.this for item in tree.expressions if isinstance(item, exp.Alias)}
    if isinstance(by, exp.Column) and not by.table:
        by = aliases.get(by.name.lower(), by)
    if isinstance(by, exp.Literal):  # ORDER BY 2
        return None
    check = tree.copy()
    check.set("expressions", [exp.alias_(by.copy(), "place")])
    check.args["order"].expressions[0].set("this", by.copy())
    n = int(most.this)
    return check.limit(n + 1).sql(dialect="duckdb"), n
