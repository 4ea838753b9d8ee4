"""EXPLAIN and quotes: what is known of a plan before it runs, from DuckDB and from earlier answers. No model is asked here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from uql.compiler.bound import Bound, BoundItem, BoundJoin, BoundSelect, BoundSource, BoundTable
from uql.compiler.choice import Alternative, choose
from uql.compiler.cost import PROMPT_TOKENS, Known, Pace, Quote, Range, Unit, calls_of, quote, rows_out
from uql.compiler.explain import Explained, explained
from uql.compiler.formula import Masks, conjunction, conjuncts
from uql.compiler.fusions import apart
from uql.compiler.orders import distinct_share
from uql.compiler.physical import (
    Block,
    Correlated,
    Goal,
    OuterJoin,
    PhysicalPlan,
    SqlQuery,
    Stage,
    UnionPlan,
    asked_joins,
)
from uql.compiler.planner import condition_name, term_rates
from uql.compiler.sql import query_sql, render
from uql.compiler.stated import stated
from uql.compiler.subqueries import aliases, in_expressions, is_semantic_query
from uql.compiler.syntax import Call, Column, Expr, InQuery, Star
from uql.compiler.virtual import Kind
from uql.engine import Pilot, fields_read
from uql.kernels.cascade import CANDIDATES, labelled_rows
from uql.kernels.duck import Duck
from uql.kernels.duck import quote as quoted
from uql.kernels.guide import FEWEST_ROWS, LEAST_BUDGET
from uql.planning import COUNTED, alone, chars_of, left_aside, needs_probabilities, terms_of, whole
from uql.pricing import price_known, unit_of

if TYPE_CHECKING:
    import duckdb

    from uql.compiler.bound import BoundStatement
    from uql.llm.providers.base import Price, Provider
    from uql.settings import Settings
    from uql.statistics import Statistics

LEAST_UNSURE, UNSURE = 0.05, 0.3  # of the rows, of which a small model is not sure
UNKNOWN_SHARE = 1 / 3  # of the rows that a condition keeps which cannot be looked at before the run
UNKNOWN = Range(0.0, UNKNOWN_SHARE, 1.0)


@dataclass(slots=True)
class Knowledge:
    """What is known of each block of a plan; counts are DuckDB's, each made once."""

    cursor: duckdb.DuckDBPyConnection
    memory: Statistics
    settings: Settings
    price: Price | None = None
    pace: Pace = field(default_factory=Pace)
    budget: int | None = None
    rows_at_once: int = 1  # that a request to the model may hold
    prompt: float = PROMPT_TOKENS  # of a request to the model, without the row and the questions
    weighs_pairs: bool = True  # can the model weigh two texts against each other?
    models: Mapping[str, Provider] = field(default_factory=dict)  # of a cascade, by name
    pilots: dict[int, Pilot] = field(default_factory=dict)  # by the identity of the block
    _found: dict[int, tuple[Block, Known]] = field(
        default_factory=dict
    )  # blocks are kept, so that no other has their identity

    def __call__(self, block: Block) -> Known:
        if id(block) not in self._found:
            self._found[id(block)] = (block, self._look(block))
        return self._found[id(block)][1]

    def same(self, block: Block, as_known: Known) -> None:
        """Another way to run a block that is known already."""
        self._found[id(block)] = (block, as_known)

    def _look(self, block: Block) -> Known:
        fields = fields_read(block)
        asked = [*block.filter_stages, *block.row_stages, *block.late_stages, *(Stage((c,)) for c in block.summaries)]
        for join in asked_joins(block):
            asked += (*join.stages, *(join.values if isinstance(join, Correlated) else ()))
        chars = {s.shown: sum(chars_of(fields[c]) for c in s.shown if c in fields) for s in asked}
        pilot = self.pilots.get(id(block))
        rows, pairs = self._rows(block)
        return Known(
            rows,
            chars,
            pairs,
            answers=pilot.answers if pilot is not None else self._remembered(block),
            share=pilot.share if pilot is not None else None,
            until=pilot.until if pilot is not None else None,
            rates=term_rates(block, self.memory.rates),
            copies={**self._copies(block, rows), **(pilot.copies if pilot is not None else {})},
            output=self.memory.output_tokens(),
            guided=self._guided(block, rows),
            examples=self._has_examples(rows),
            concrete=self._concrete(block, rows),
            pair_sides=self._pair_sides(block),
            weighs_pairs=self.weighs_pairs,
            budget=self.budget,
            alone=alone(fields),
            prompt=self.prompt,
        )

    def _guided(self, block: Block, rows: Range) -> bool:
        """Has a search features of the rows to learn from?"""
        fields = fields_read(block)
        texts = any(c in fields and fields[c].type != "BLOB" for stage in block.filter_stages for c in stage.shown)
        return texts and self.settings.method != "uniform" and rows.expected >= FEWEST_ROWS

    def _has_examples(self, rows: Range) -> bool:
        """Does a search ask for example rows first?"""
        enough = rows.expected >= FEWEST_ROWS and (self.budget is None or self.budget >= LEAST_BUDGET)
        return enough and self.settings.examples is True and self.settings.method != "uniform"

    def _remembered(self, block: Block) -> Masks | None:
        """Answers to a whole WHERE, from earlier queries that asked it."""
        found = self.memory.answers(condition_name(block)) if block.formula is not None else None
        return whole(found)

    def _copies(self, block: Block, rows: Range) -> dict[tuple[Column, ...], float]:
        """Rows that show a stage the same cells, on the average: these are asked once, and NULLs never."""
        if block.derived or block.outer_join is not None or block.correlated or not 0 < rows.expected <= COUNTED:
            return {}
        found = {}
        plain = [t for t in conjuncts(block.pushed) if not any(is_semantic_query(b.query) for b in in_expressions(t))]
        candidates = max(1.0, self._count(block.source, conjunction(plain)))
        alone = apart(block)
        asked = (*alone.filter_stages, *alone.row_stages, *block.filter_stages, *block.row_stages)
        for shown in dict.fromkeys(stage.shown for stage in asked):
            copies = max(1.0, candidates / max(1.0, self._distinct(block, shown, plain)))
            share = min(1.0, rows.expected / candidates)  # of the candidates, where sub-queries leave fewer
            found[shown] = share / distinct_share(share, copies)
        return found

    def _distinct(self, block: Block, shown: tuple[Column, ...], plain: list[Expr]) -> float:
        """Distinct contents of some columns among the candidates, those without any left out."""
        keys = tuple(BoundItem(c, c.label, "") for c in shown)
        inner = render(query_sql(BoundSelect(keys, block.source, conjunction(plain), distinct=True)))
        said = " OR ".join(f"{quoted(c.label)} IS NOT NULL" for c in shown)
        return float(Duck(self.cursor).scalar(f"SELECT count(*) FROM ({inner}) WHERE {said}") or 0)

    def _concrete(self, block: Block, rows: Range) -> dict[int, float]:
        """The share of the candidates for which each term of WHERE that DuckDB decides is true, by its place."""
        leaves = block.formula.leaves if block.formula is not None else ()
        if block.derived or block.outer_join is not None or block.correlated or not 0 < rows.expected <= COUNTED:
            return {}
        plain = [t for t in conjuncts(block.pushed) if not list(in_expressions(t))]
        own = {
            i: leaf.expr for i, leaf in enumerate(leaves) if not leaf.semantic and not list(in_expressions(leaf.expr))
        }
        if not own:
            return {}
        whole = max(1.0, self._count(block.source, conjunction(plain)))
        return {i: self._count(block.source, conjunction([*plain, expr])) / whole for i, expr in own.items()}

    def _pair_sides(self, block: Block) -> tuple[float, ...]:
        """Distinct rows of each side of a condition on pairs; one table joined with itself is one side."""
        asked = [c for stage in block.filter_stages for c in stage.columns]
        pairs = [c for c in asked if c.is_pair_condition]
        if not self.weighs_pairs:  # two columns of one table may be compared too
            pairs += [c for c in asked if len(c.reads) == 2 and not c.holes and stated(c.text) is not None]
        if not pairs or block.derived or block.outer_join is not None or block.correlated:
            return ()
        shown = (*pairs[0].reads, *pairs[0].holes)
        tables = dict.fromkeys(c.table for c in shown)
        plain = [t for t in conjuncts(block.pushed) if not list(in_expressions(t))]
        sides = (
            [tuple(c for c in shown if c.table == table) for table in tables]
            if len(tables) > 1
            else [(c,) for c in shown]
        )
        columns = {tuple(c.name for c in side): side for side in sides}  # one table joined with itself is asked once
        return tuple(self._distinct(block, side, plain) for side in columns.values())

    # -------------------------------------------------------------------------------------------------- numbers of rows
    def _rows(self, block: Block) -> tuple[Range, tuple[Range, ...]]:
        """The candidates of a block, and the pairs of each join that is asked."""
        derived = {alias: self._out(plan) for alias, plan in block.derived}
        plain = [t for t in conjuncts(block.pushed) if not any(is_semantic_query(b.query) for b in in_expressions(t))]
        later = [t for t in conjuncts(block.pushed) if t not in plain]
        hidden = False
        pairs: tuple[Range, ...] = ()
        if block.outer_join is not None:
            rows, pairs = self._joined(block.outer_join, derived)
            hidden = hidden or block.pushed is not None
        elif not derived:
            rows = Range.exactly(self._count(block.source, conjunction(plain)))
        else:
            rows = self._guess(block.source, derived)
            hidden = hidden or block.pushed is not None
        for part in block.correlated:
            pairs = (*pairs, self._sub_pairs(block, part, rows, conjunction(plain)))
        for term in later:
            rows = rows * (UNKNOWN if derived or block.outer_join is not None else self._kept(term, block, plain))
        return (rows * UNKNOWN if hidden else rows), pairs

    def _kept(self, term: Expr, block: Block, plain: list[Expr]) -> Range:
        """The share of the candidates that a condition on a sub-query keeps, which has not been run."""
        match term:
            case InQuery(operand=Column() as key, query=Bound() as part):
                found = next((plan for own, plan in block.nested if own is part), None)
                if found is None:
                    return UNKNOWN
                out, keys = self._out(found), max(1.0, self._distinct(block, (key,), plain))
                is_key = keys >= self._count(block.source, conjunction(plain))
                most = min(1.0, out.high / keys) if is_key else 1.0
                share = Range(min(most, out.low / keys) if is_key else 0.0, min(most, out.expected / keys), most)
                return Range(1 - share.high, 1 - share.expected, 1 - share.low) if term.negated else share
        return UNKNOWN

    def _sub_pairs(self, block: Block, part: Correlated, rows: Range, where: Expr | None) -> Range:
        """The pairs of a block's rows with those of a sub-query that reads them: DuckDB's count where it can be had."""
        around, own = set(aliases(block.source)), set(aliases(part.source))
        if block.source is not None and not (block.derived or part.derived or around & own):
            joined = BoundJoin("CROSS", block.source, part.source)
            terms = [t for t in (where, part.own, part.pairs) if t is not None]
            if not any(True for _ in in_expressions(*terms)):
                return Range.exactly(self._count(joined, conjunction(terms)))
        both = rows * self._guess(part.source, {alias: self._out(plan) for alias, plan in part.derived})
        if part.pairs is None and part.own is None:
            return both
        return Range(0, max(rows.expected, both.expected / max(rows.expected, 1.0)), both.high)

    def _joined(self, join: OuterJoin, derived: dict[str, Range]) -> tuple[Range, tuple[Range, ...]]:
        """The rows of a join, and the pairs of it and of those inside it, innermost first."""
        left, before = self._side(join.left, join.left_where, derived)
        right, after = self._side(join.right, join.right_where, derived)
        inside = (*before, *after)
        if isinstance(join.left, BoundSource) and isinstance(join.right, BoundSource) and not derived:
            kind = "INNER" if join.pairs is not None else "CROSS"
            where = conjunction([part for part in (join.left_where, join.right_where) if part is not None])
            pairs = Range.exactly(self._count(BoundJoin(kind, join.left, join.right, join.pairs), where))
        else:
            pairs = left * right
            if join.pairs is not None:
                pairs = Range(0, min(pairs.expected, max(left.expected, right.expected, 1.0)), pairs.high)
        match join.kind:
            case "LEFT":
                rows = Range(left.low, left.expected, max(left.high, pairs.high))
            case "RIGHT":
                rows = Range(right.low, right.expected, max(right.high, pairs.high))
            case "FULL":
                most = max(left.high + right.high, pairs.high)
                rows = Range(max(left.low, right.low), max(left.expected, right.expected), most)
            case "SEMI" | "ANTI":
                rows = Range(0, left.expected / 2, left.high)
            case _:
                rows = pairs if join.formula is None else Range(0, pairs.expected * UNKNOWN_SHARE, pairs.high)
        return rows, (*inside, pairs)

    def _side(
        self, side: BoundSource | OuterJoin, where: Expr | None, derived: dict[str, Range]
    ) -> tuple[Range, tuple[Range, ...]]:
        if isinstance(side, OuterJoin):
            return self._joined(side, derived)
        if where is None:
            return self._guess(side, derived), ()
        if any(alias in derived for alias in aliases(side)):
            rows = self._guess(side, derived)
            return Range(0, rows.expected * UNKNOWN_SHARE, rows.high), ()
        return Range.exactly(self._count(side, where)), ()

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


def _values(join: OuterJoin | Correlated) -> tuple[Stage, ...]:
    return join.values if isinstance(join, Correlated) else ()


def chosen(
    plan: PhysicalPlan, knowledge: Knowledge, budget: int | None
) -> tuple[PhysicalPlan, tuple[Alternative, ...]]:
    """The plan that runs, by what is known before, and what else there was to choose from."""
    unit = unit_of(knowledge.price)
    terms = terms_of(knowledge.settings, unit, unit != Unit(), budget, knowledge.rows_at_once)
    others: list[Alternative] = []
    made: dict[int, PhysicalPlan] = {}  # what stands in several places stays one

    def one(part: PhysicalPlan) -> PhysicalPlan:
        if id(part) not in made:
            made[id(part)] = new(part)
        return made[id(part)]

    def new(part: PhysicalPlan) -> PhysicalPlan:
        if isinstance(part, UnionPlan):
            return replace(part, left=one(part.left), right=one(part.right))
        if not isinstance(part, Block):
            return part
        known = knowledge(part)
        choice = choose(part, known, terms)
        others.extend(choice.alternatives)
        correlated = tuple(
            replace(sub, derived=tuple((alias, one(below)) for alias, below in sub.derived)) for sub in part.correlated
        )
        block = replace(
            choice.block,
            derived=tuple((alias, one(below)) for alias, below in part.derived),
            nested=tuple((bound, one(below)) for bound, below in part.nested),
            correlated=correlated,
            repeated=tuple(replace(run, plan=one(run.plan)) for run in part.repeated),
        )
        knowledge.same(block, known)
        return block

    return one(plan), tuple(others)


def price(plan: PhysicalPlan, knowledge: Knowledge, budget: int | None) -> Quote:
    """The price of a plan within its budget; USD where the price of the model is known."""
    return _priced(chosen(plan, knowledge, budget)[0], knowledge, budget)


def _priced(plan: PhysicalPlan, knowledge: Knowledge, budget: int | None) -> Quote:
    found = quote(plan, knowledge).within(budget)
    cost = knowledge.price
    found = found.timed(knowledge.pace)
    return found.priced(cost.usd(1, 0), cost.usd(0, 1)) if cost is not None else found


def explanation(statement: BoundStatement, plan: PhysicalPlan, knowledge: Knowledge, budget: int | None) -> Explained:
    """All that EXPLAIN says."""
    best, alternatives = chosen(plan, knowledge, budget)
    priced_whole, models = _with_cascade(best, _priced(best, knowledge, budget), knowledge)
    found = explained(statement, best, knowledge, priced_whole, budget)
    cost = knowledge.price
    if cost is not None:
        priced = (replace(a, quote=a.quote.priced(cost.usd(1, 0), cost.usd(0, 1))) for a in alternatives)
        alternatives = tuple(priced)
    if knowledge.rows_at_once > 1 and needs_probabilities(knowledge.settings) is not None:
        aside = f"rows_per_request = {knowledge.settings.rows_per_request}{left_aside(knowledge.settings)}"
        found = replace(found, warnings=(*found.warnings, aside))
    return replace(found, alternatives=(*models, *alternatives))


def _with_cascade(plan: PhysicalPlan, alone: Quote, knowledge: Knowledge) -> tuple[Quote, tuple[Alternative, ...]]:
    """The price with a small and a large model, beside that of the large one alone, where the settings name two."""
    settings = knowledge.settings
    if not settings.models or "cascade" in settings.disabled_rules or not isinstance(plan, Block):
        return alone, ()
    questions = [c for stage in plan.filter_stages for c in stage.columns]
    asked = [r.expected for s, r in calls_of(plan, knowledge(plan)).by_stage.items() if s in plan.filter_stages]
    calls, rows = sum(asked), knowledge(plan).rows.expected
    each = labelled_rows(settings.accuracy, settings.confidence)
    fits = knowledge.budget is None or 2 * (rows + each) * len(questions) <= knowledge.budget
    if not questions or any(c.kind is not Kind.CONDITION for c in questions) or rows < CANDIDATES * each or not fits:
        return alone, ()
    if plan.goal is Goal.FIRST and max(asked) < each:  # LIMIT is expected to stop it before the small model is asked
        return alone, ()
    small, large = (price_known(knowledge.models.get(m), settings.with_values(model=m)) for m in settings.models)
    labelled = each * len(questions)
    share = Range(LEAST_UNSURE, UNSURE, 1.0).times(calls) + Range.exactly(labelled)
    part = share.times(1 / max(1.0, alone.calls.expected))

    def both(tokens: Range) -> Range:
        return Range(tokens.low * (1 + part.low), tokens.expected * (1 + part.expected), tokens.high * (1 + part.high))

    two = replace(alone, calls=alone.calls + share, input_tokens=both(alone.input_tokens))
    two = replace(two, output_tokens=both(alone.output_tokens), every=two.calls).timed(knowledge.pace)
    usd = None
    if small is not None and large is not None:
        alone = alone.priced(large.usd(1, 0), large.usd(0, 1))
        cheap = alone.priced(small.usd(1, 0), small.usd(0, 1)).usd
        assert cheap is not None and alone.usd is not None
        usd = Range(
            cheap.low + alone.usd.low * part.low,
            cheap.expected + alone.usd.expected * part.expected,
            cheap.high + alone.usd.high * part.high,
        )
    two = replace(two, usd=usd)
    cheaper = usd is None or alone.usd is None or usd.expected < alone.usd.expected
    names = settings.models
    why = (
        "a price is not known: the small one goes first"
        if usd is None
        else "the cheaper one, as long as the small one is sure"
    )
    one = Alternative(
        f"{names[0]} first, {names[1]} where it is not sure", two, cheaper, f"chosen: {why}" if cheaper else "dearer"
    )
    other = Alternative(f"{names[1]} alone", alone, not cheaper, "dearer" if cheaper else "chosen: the cheaper one")
    return (two, (one, other)) if cheaper else (alone, (other, one))
