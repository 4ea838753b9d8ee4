"""A plan as a person reads it: the tree of its steps, how each quoted text was read, the columns sent, and the price.

`steps` makes the tree once; `text` prints it here, `formats.py` as JSON and Mermaid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from uql.compiler import cost, physical
from uql.compiler.bound import BoundItem, BoundStatement
from uql.compiler.choice import Alternative
from uql.compiler.expression_text import show
from uql.compiler.formula import conjunction
from uql.compiler.join_plans import aliases_in, describe_join, fields_of, sources_of
from uql.compiler.orders import cost_of
from uql.compiler.subqueries import aliases, fields_in
from uql.compiler.syntax import ScalarQuery
from uql.compiler.virtual import VirtualColumn
from uql.operators import COMPARE

Knowledge = Callable[[physical.Block], cost.BlockStatistics]
Notes = tuple[str, ...]
Schema = tuple[tuple[str, str], ...]  # names and DuckDB types of columns
DUCKDB = "duckdb"
Asked = Mapping[tuple[str, str], int]  # calls by the first question put, and the tables that the rows come from


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a plan: what is done, with what, and what else is to say of it."""

    operator: str
    what: str = ""
    notes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()  # columns shown to the model
    calls: cost.Range | None = None  # rows asked, if no budget limits them
    inputs: tuple[Step, ...] = ()
    questions: tuple[VirtualColumn, ...] = ()
    source: str = ""  # the tables that the rows asked come from, as events name them
    measured: int | None = None  # rows asked by a run
    within: float = 1.0  # share of the calls that the budget is expected to allow
    tokens: cost.Tokens | None = None  # in and out, of these calls
    rows: cost.Range | None = None  # that it gives; None: not known
    kernel: str = DUCKDB  # what runs it: a module of `uql.kernels`, or DuckDB
    gives: Schema | None = None  # its columns, where they are other ones than those of the rows below it

    @property
    def asks(self) -> tuple[str, ...]:
        """The texts of its questions."""
        return tuple(c.text for c in self.questions)

    @property
    def schema(self) -> Schema:
        """The columns that it gives: its own or those of the last step below it, and the answers to its questions."""
        below = self.inputs[-1].schema if self.inputs else ()
        own = below if self.gives is None else self.gives
        answers = dict.fromkeys((c.text, c.type) for c in self.questions)
        return (*own, *(answer for answer in answers if answer not in own))

    @property
    def predicted(self) -> float:
        """Calls expected of a run, within its budget."""
        return self.calls.expected * self.within if self.calls is not None else 0.0

    @property
    def line(self) -> str:
        notes = [*self.notes]
        if self.reads:
            notes.append(f"reads {', '.join(self.reads)}")
        if self.calls is not None:
            notes.append(f"{number(self.calls)} calls")
        if self.measured is not None and self.calls is not None:
            if self.within < 1:
                notes.append(f"{self.predicted:,.0f} within the budget")
            notes.append(f"measured {self.measured:,}, q-error {q_error(self.predicted, self.measured):.2f}")
        head = f"{self.operator} {self.what}".rstrip()
        return f"{head}  [{'; '.join(notes)}]" if notes else head


@dataclass(frozen=True, slots=True)
class Explained:
    """All that EXPLAIN says of a statement, before it is printed."""

    step: Step
    readings: tuple[str, ...]
    quote: cost.Quote
    budget: int | None
    warnings: tuple[str, ...]
    alternatives: tuple[Alternative, ...] = ()
    answered_from: str = ""  # the run that answers it for no call
    limit: str = ""  # what ends the sampling, in the place of the budget
    unit: cost.Unit | None = None  # USD of a token; None: the model has no price

    def below(self, step: Step) -> Explained:
        """The same with one more step, which takes the rows."""
        return replace(self, step=replace(step, inputs=(self.step,)))


def explained(
    statement: BoundStatement, plan: physical.PhysicalPlan, knowledge: Knowledge, quote: cost.Quote, budget: int | None
) -> Explained:
    """What EXPLAIN says; no model is asked.

    Args:
        knowledge: what is known of each block.
        quote: the price of the plan.
        budget: calls; None: all.
    """
    lines = dict.fromkeys(f'"{r.text}": {_reading(r.read_as, r.detail)}' for r in statement.readings)
    beyond = budget is not None and quote.every.high > budget
    warnings = [*statement.warnings]
    refused = _refused(plan, quote, budget)
    if refused is not None:
        warnings.append(refused)
    return Explained(steps(plan, knowledge, beyond), tuple(lines), quote, budget, tuple(warnings))


def _refused(plan: physical.PhysicalPlan, quote: cost.Quote, budget: int | None) -> str | None:
    """Why a run is refused (UQL401), or may be, before anything is sent."""
    if budget is None or quote.every.high <= budget or not isinstance(plan, physical.Block):
        return None
    values = any(not stage.of_pairs for stage in (*plan.values.stages, *plan.values.late))
    pairs = any(stage.of_pairs for stage in plan.values.stages)
    if plan.filter.goal is physical.Goal.EVERY and values:
        sure = quote.every.low > budget
        why = "each row needs a value"
    elif plan.filter.goal is physical.Goal.SEARCH and plan.has_window:
        sure, why = not pairs, "a window looks at every row that passes"
    elif plan.filter.goal is physical.Goal.SEARCH and plan.values.stages and plan.order.by_score:
        sure, why = True, "the order needs the value of each row that passes"
    elif plan.aggregate.sets:
        sure, why = True, "ROLLUP, CUBE and GROUPING SETS need each row"
    else:
        return None
    reach = "does not reach" if sure else "may not reach"
    return f"{why} and the budget {reach} them all: a run {'would' if sure else 'may'} be refused (UQL401)"


def text(explanation: Explained) -> str:
    """The text of EXPLAIN."""
    lines = [*tree(explanation.step)]
    if explanation.readings:
        lines += ["", "Quoted texts, as they were read:", *(f"  {reading}" for reading in explanation.readings)]
    free = [f"Price: 0 new calls: {explanation.answered_from}"]
    lines += [
        "",
        *(free if explanation.answered_from else quote_lines(explanation.quote, explanation.budget, explanation.limit)),
    ]
    if explanation.alternatives:
        lines += ["", "Alternatives:", *(f"  {line}" for line in map(alternative_line, explanation.alternatives))]
    lines += [f"Warning: {w}" for w in explanation.warnings]
    return "\n".join(lines)


def tree(step: Step, depth: int = 0) -> list[str]:
    """A step and those below it, indented by two spaces; a chain of steps reads from the last one to the first."""
    lines = ["  " * depth + step.line]
    for below in step.inputs:
        lines += tree(below, depth + 1)
    return lines


def quote_lines(quote: cost.Quote, budget: int | None, limit: str = "") -> list[str]:
    """The price, low–high in parentheses where they differ.

    Args:
        budget: calls; None: all.
        limit: what is said in the place of the budget.
    """
    if not quote.every.high:
        return ["Price: nothing; 0 new calls"]
    budget_text = "all, every row is asked" if budget is None else f"{budget:,} calls"
    if budget is not None and quote.every.high > budget:
        budget_text += f"; with budget = 'all': {number(quote.every)} calls"
    return [
        f"USD: {number(quote.usd, 4) if quote.usd is not None else 'unknown, the model has no price'}",
        f"Calls: {number(quote.calls)}" + (f" in {number(quote.requests)} requests" if quote.shared.high else ""),
        f"Tokens: {number(quote.input_tokens)} in, {number(quote.output_tokens)} out",
        *([f"Embeddings: {number(quote.embedded)} tokens"] if quote.embedded.high else []),
        *([f"Seconds: {number(quote.seconds, 1)}"] if quote.seconds is not None else []),
        f"Budget: {limit or budget_text}",
    ]


def q_error(predicted: float, measured: float) -> float:
    """How many times too high or too low a prediction was; both are at least 1 here, so that nothing divides by 0.

    >>> q_error(50, 100), q_error(100, 50), q_error(0, 0)
    (2.0, 2.0, 1.0)
    """
    a, b = max(predicted, 1.0), max(measured, 1.0)
    return max(a / b, b / a)


def with_measured(step: Step, calls_by_text: Asked, within: float = 1.0) -> Step:
    """The steps with the calls that a run made for each, found by its questions and the tables of its rows.

    What several steps ask of the same tables is shared out among them as predicted.

    Args:
        step: the last step, with those below it.
        calls_by_text: calls by the first question put, and the tables that the rows come from.
        within: the share of all calls that the budget is expected to allow.
    """
    asking = list(_asking(step))
    askers = Counter(text for s in asking for text in s.asks)

    def rows(own: Step, text: str) -> int:
        if askers[text] == 1:
            return sum(n for (other, _), n in calls_by_text.items() if other == text)
        same = [s for s in asking if text in s.asks and s.source == own.source]
        whole = sum(s.predicted for s in same)
        return round(calls_by_text.get((text, own.source), 0) * (own.predicted / whole if whole else 1 / len(same)))

    def one(own: Step) -> Step:
        calls = max((rows(own, text) for text in own.asks), default=None) if own.calls is not None else None
        return replace(own, inputs=tuple(one(below) for below in own.inputs), measured=calls, within=within)

    return one(step)


def _asking(step: Step) -> Iterator[Step]:
    if step.calls is not None and step.asks:
        yield step
    for below in step.inputs:
        yield from _asking(below)


def alternative_line(alternative: Alternative) -> str:
    """One way to run the query, with its price and why it was taken or not."""
    quote = alternative.quote
    usd = f"{number(quote.usd, 4)} USD, " if quote.usd is not None else ""
    tokens = f"{quote.input_tokens.expected:,.0f} tokens in, {quote.output_tokens.expected:,.0f} out"
    seconds = f", {number(quote.seconds)} s" if quote.seconds is not None else ""
    return f"{alternative.what}: {usd}{number(quote.calls)} calls, {tokens}{seconds}; {alternative.why}"


def number(r: cost.Range, places: int = 0) -> str:
    """expected (low–high), or the number alone where it is certain."""
    low, expected, high = (f"{x:,.{places}f}" for x in (r.low, r.expected, r.high))
    return low if low == high else f"{expected} ({low}–{high})"


def _reading(read_as: str, detail: str) -> str:
    words = {"virtual": "asked of the model:", "string": "a string", "column": "the column"}
    return f"{words.get(read_as, read_as)} {detail}".rstrip()


# ------------------------------------------------------------------------------------------------------------ the steps
def steps(plan: physical.PhysicalPlan, knowledge: Knowledge, beyond: bool = False) -> Step:
    """The tree of a plan's steps, the last one outermost.

    Args:
        knowledge: what is known of each block.
        beyond: there may be more to ask than the budget allows.
    """
    match plan:
        case physical.SqlQuery():
            return Step("DuckDB", "the whole query", ("no model is asked",), gives=_items(plan.query.items))
        case physical.UnionPlan():
            left, right = steps(plan.left, knowledge, beyond), steps(plan.right, knowledge, beyond)
            name = plan.op.capitalize() + ("All" if plan.all else "")
            rows = _union_rows(plan, left.rows, right.rows)
            step = Step(name, inputs=(left, right), rows=rows, gives=_items(plan.items))
            if plan.order.keys:
                step = Step("Sort", plan.order.line, inputs=(step,), rows=step.rows)
            return _limited(plan.order, step)
        case physical.Block():
            return _block(plan, knowledge, beyond)
    raise TypeError(f"not a physical plan: {plan!r}")


def _union_rows(plan: physical.UnionPlan, left: cost.Range | None, right: cost.Range | None) -> cost.Range | None:
    if left is None or right is None:
        return None
    most = left + right if plan.op.upper() == "UNION" else left
    return most if plan.all and most is not left else replace(most, low=0.0)


def _block(block: physical.Block, knowledge: Knowledge, beyond: bool) -> Step:
    statistics = knowledge(block)
    calls = cost.calls_of(block, statistics)
    values, order, summaries = block.values, block.order, block.summaries
    items = _items(block.project.items)

    def ask_step(
        operator: str, stage: physical.Stage, below: Step, notes: Notes = (), what: str = "", after: Notes = ()
    ) -> Step:
        ask = _ask(stage, calls.by_stage, statistics, block.scan.tables, (*notes, *stage.notes, *after), (below,))
        return replace(ask, operator=operator, what=what or stage.line, rows=below.rows)

    step = _source(block, statistics, knowledge, beyond)
    if block.filter.formula is not None:
        step = replace(_filter(block, statistics, calls, beyond, step), rows=calls.passing)
    late = block.filter.left_over(values.late)
    for stage in calls.by_stage:
        groups = [c for c in stage.columns if c in values.groups]
        if groups:
            rides = any(c.id in block.filter.riders for c in groups)
            apart = ("asked apart of the first rows, of the others in the request of the WHERE",) if rides else ()
            first = ("a taxonomy from some rows first: 1 call",)
            step = ask_step(groups[0].operator.shown_as, stage, step, first, values.groups_line(stage), apart)
        elif stage.of_pairs:
            nearest = (f"of each row and the {cost.NEIGHBOURS} nearest to it in meaning",)
            step = ask_step(stage.columns[0].operator.shown_as, stage, step, nearest)
        elif stage not in late and any(c in s.columns for s in values.stages for c in stage.columns):
            step = ask_step("SemMap", stage, step)
    along = tuple(c for s in block.filter.stages for c in s.riders if c not in values.groups)
    if along:
        rider = physical.Stage(along)
        top = Step("SemMap", rider.line, ("in the request of the WHERE",), _labels(rider), questions=along)
        step = replace(top, inputs=(step,), rows=step.rows, kernel="sem_filter")
    if block.aggregate.present:
        sampled = ("from a sample, with an interval",) if beyond and calls.total.high else ()
        line = block.project.line + block.aggregate.line
        rows = cost.groups_of(block, calls.passing)
        step = Step("Aggregate", line, sampled, inputs=(step,), rows=rows, kernel="estimates.aggregate", gives=items)
    if summaries.columns:
        column, notes = summaries.columns[0], summaries.notes(bool(block.aggregate.keys))
        reads = _labels(physical.Stage((column,)))
        tokens = cost.written_tokens(calls.summaries, cost.SUMMARY_ROWS, column.operator, statistics)
        top = Step(column.operator.shown_as, summaries.line, notes, reads, calls.summaries, tokens=tokens)
        step = replace(top, inputs=(step,), rows=step.rows, kernel=column.operator.kernel, gives=items)
    for operator, condition in (("Having", block.aggregate.having), ("Qualify", block.project.qualify)):
        if condition is not None:
            step = Step(operator, show(condition), inputs=(step,), rows=_some(step.rows))
    if block.project.distinct:
        below = Step("Project", block.project.line, inputs=(step,), rows=step.rows, gives=items)
        step = Step("Distinct", inputs=(below,), rows=_some(step.rows))
    if order.keys:
        compared = calls.comparisons if calls.comparisons.high else None
        notes = ("scores, then comparisons of two at the cut of LIMIT",) if compared is not None else ()
        read = cost.written_tokens(compared, 2, COMPARE, statistics) if compared is not None else None
        top = Step("Sort", order.line, notes, calls=compared, inputs=(step,), tokens=read, rows=step.rows)
        step = replace(top, kernel=COMPARE.kernel) if order.by_score else top
    step = _limited(order, step)
    for stage in late:
        step = ask_step("SemMap", stage, step, ("of the rows returned only",))
    done = block.project.distinct or block.aggregate.present
    return step if done else Step("Project", block.project.line, inputs=(step,), rows=step.rows, gives=items)


def _items(items: tuple[BoundItem, ...]) -> Schema:
    return tuple((item.name, item.type) for item in items)


def _some(rows: cost.Range | None) -> cost.Range | None:
    """As many of the rows at most, perhaps none."""
    return replace(rows, low=0.0) if rows is not None else None


def _filter(
    block: physical.Block, statistics: cost.BlockStatistics, calls: cost.Calls, beyond: bool, below: Step
) -> Step:
    """WHERE: one line where one request a row answers it, else a line for each stage under it, in the order asked."""
    stages, notes, tables = block.filter.stages, _filter_notes(block, statistics, beyond), block.scan.tables
    if len(stages) == 1 and all(c.is_condition for c in stages[0].columns):
        only = stages[0]
        step = _ask(only, calls.by_stage, statistics, tables, (*notes, *only.notes), (below,))
        return replace(step, operator=only.columns[0].operator.shown_as, what=block.filter.line)
    places = [(f"asked {_ordinal(i)}",) if len(stages) > 1 else () for i in range(1, len(stages) + 1)]
    asks = [_ask(s, calls.by_stage, statistics, tables, (*p, *s.notes)) for s, p in zip(stages, places, strict=True)]
    questions = tuple(c for stage in stages for c in stage.columns)
    top = Step("SemFilter", block.filter.line, notes, inputs=(*asks, below), kernel="sem_filter")
    return replace(top, questions=questions)


def _source(block: physical.Block, statistics: cost.BlockStatistics, knowledge: Knowledge, beyond: bool) -> Step:
    inner: list[Step] = []
    first: dict[int, Step] = {}
    for alias, plan in block.inner.derived:
        same = first.get(id(plan))
        if same is not None:
            inner.append(Step("Derived", alias, (f"the rows of {same.what}",), gives=same.schema))
        else:
            first[id(plan)] = _derived(alias, plan, knowledge, beyond)
            inner.append(first[id(plan)])
    calls = cost.calls_of(block, statistics).by_stage
    pairs = dict(zip(physical.asked_joins(block), statistics.pairs, strict=True))
    for part in block.inner.correlated:
        below = [_derived(alias, plan, knowledge, beyond) for alias, plan in part.derived]
        rows_of = ", ".join(dict.fromkeys([block.scan.tables, *sorted(set(aliases(part.source)))]))
        below = [_ask(s, calls, statistics, rows_of) for s in (*part.stages, *part.values)] + below
        notes = (f"{number(pairs[part])} pairs from DuckDB", "its answers are one value a row")
        what = show(ScalarQuery(part.part))[1:-1]
        inner.append(Step("SubQuery", what, notes, inputs=tuple(below), kernel="correlated"))
    for run in block.inner.repeated:
        once = f"run once for each value of {', '.join(c.label for c in run.columns)}"
        below_run = (steps(run.plan, knowledge, beyond),)
        what = show(ScalarQuery(run.part))[1:-1]
        inner.append(Step("SubQuery", what, (once,), inputs=below_run, kernel="correlated"))
    for bound, plan in block.inner.nested:
        inner.append(Step("SubQuery", show(ScalarQuery(bound))[1:-1], inputs=(steps(plan, knowledge, beyond),)))
    rows, join = f"{number(statistics.rows)} rows", block.scan.join
    types = fields_of(block)
    scanned = tuple((c.label, types[c].type) for c in block.scan.columns if c in types)
    if join is None:
        stage = (
            ()
            if statistics.first_stage is None
            else (f"sampled from a first stage of {statistics.first_stage:,} random rows",)
        )
        return Step("DuckDB", block.scan.line, (rows, *stage), inputs=tuple(inner), rows=statistics.rows, gives=scanned)
    step = _join(join, pairs, calls, statistics, tuple(inner))
    step = replace(step, notes=(*step.notes, rows), rows=statistics.rows, gives=scanned)
    return (
        Step("DuckDB", block.scan.line, inputs=(step,), rows=statistics.rows) if block.scan.where is not None else step
    )


def _derived(alias: str, plan: physical.PhysicalPlan, knowledge: Knowledge, beyond: bool) -> Step:
    below = steps(plan, knowledge, beyond)
    return Step("Derived", alias, inputs=(below,), rows=below.rows)


def _join(
    join: physical.OuterJoin,
    pairs: dict[physical.OuterJoin | physical.Correlated, cost.Range],
    calls: dict[physical.Stage, cost.Range],
    statistics: cost.BlockStatistics,
    inner: tuple[Step, ...],
) -> Step:
    """A join that is asked: under it its questions, then the joins inside it."""
    inside = tuple(
        _join(side, pairs, calls, statistics, ())
        for side in (join.left, join.right)
        if isinstance(side, physical.OuterJoin)
    )
    before = conjunction([part for part in (join.left_where, join.right_where) if part is not None])
    where = f" WHERE {show(before)}" if before is not None else ""
    notes = (f"{number(pairs[join])} pairs from DuckDB",)
    asks = tuple(_ask(s, calls, statistics, f"{join.kind} join") for s in join.stages)
    step = Step("SemJoin", describe_join(join) + where, notes, inputs=(*asks, *inside, *inner), kernel="sem_join")
    visible = aliases_in(join)
    fields = fields_in(*sources_of(join)).items()
    return replace(step, gives=tuple((c.label, f.type) for c, f in fields if c.table in visible))


def _ask(
    stage: physical.Stage,
    calls: Mapping[physical.Stage, cost.Range],
    statistics: cost.BlockStatistics,
    tables: str,
    notes: Notes | None = None,
    inputs: tuple[Step, ...] = (),
) -> Step:
    """The step of a stage. `tables`: those of the rows that it asks."""
    notes = stage.notes if notes is None else notes
    rows = calls.get(stage)
    tokens = cost.stage_tokens(stage, rows, statistics) if rows is not None else None
    step = Step("Ask", stage.line, notes, _labels(stage), rows, inputs, stage.columns, tables, tokens=tokens)
    return replace(step, kernel=stage.columns[0].operator.kernel)


def _labels(stage: physical.Stage) -> tuple[str, ...]:
    """The columns shown to the model."""
    return tuple(c.label for c in physical.Stage(stage.columns).input_columns)


BY_WORDS = "from the attribute that it compares, asked of each row: this model is near chance on two texts side by side"
BY_ATTRIBUTE = "from one attribute a side if one decides it; else a search, pairs near in meaning first"


def _filter_notes(block: physical.Block, statistics: cost.BlockStatistics, beyond: bool) -> tuple[str, ...]:
    assert block.filter.formula is not None
    notes = []
    if block.filter.goal is physical.Goal.FIRST:
        notes.append(f"stops at {block.order.rows_needed:,} rows")
    if block.stops_at_first and not beyond:
        notes.append("stops at the first row of each result")
    if cost.by_words(block, statistics):
        notes.append(BY_WORDS)
    elif block.filter.goal is physical.Goal.SEARCH and beyond:
        pairs = any(c.is_pair_condition for c in block.filter.columns)
        notes.append(BY_ATTRIBUTE if pairs else "a search, as far as the budget reaches")
    if statistics.pilot:
        notes.append(
            f"{statistics.pilot} random rows are asked every question first; their answers settle what is asked together"
        )
    if len(block.filter.stages) > 1:
        informed = statistics.answers is not None or statistics.rates is not None
        notes.append("a row that is decided is asked nothing more" if not informed else _why(block, statistics))
    return tuple(notes)


def _why(block: physical.Block, statistics: cost.BlockStatistics) -> str:
    """The order chosen beside the written one, in calls a row."""
    assert block.filter.formula is not None
    answers = cost.model_answers(block.filter.formula, statistics)
    chosen = block.filter.stages
    ids = [min(c.id for c in s.columns) for s in chosen]
    written_order = sorted(range(len(ids)), key=ids.__getitem__)
    now = cost_of(block.filter.formula, chosen, answers, [1.0] * len(chosen), range(len(chosen)))
    then = cost_of(block.filter.formula, chosen, answers, [1.0] * len(chosen), written_order)
    if now == then:
        return f"the written order is the cheapest: {now:.2f} calls a row"
    return f"this order: {now:.2f} calls a row; the written order: {then:.2f}"


def _limited(order: physical.Order, below: Step) -> Step:
    if not order.limit_line:
        return below
    return Step("Limit", order.limit_line, inputs=(below,), rows=below.rows and below.rows.capped(order.rows_needed))


def _ordinal(n: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(n, f"{n}th")
