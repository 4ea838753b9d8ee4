"""What is known of a plan before it runs, and the plan chosen by it: the one builder for EXPLAIN, quotes and the run. It asks no model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING

import duckdb
import numpy as np

from uql.base.schema import Field, Modality
from uql.base.sql_text import literal, number_of
from uql.compiler.bound import (
    Bound,
    BoundDerived,
    BoundItem,
    BoundJoin,
    BoundSelect,
    BoundSource,
    BoundTable,
    BoundUnion,
)
from uql.compiler.choice import Alternative, Terms, choose, has_ways, ways_by_rates
from uql.compiler.cost import (
    MEDIA_BYTES,
    BlockStatistics,
    Pace,
    PromptTokens,
    Quote,
    Range,
    Site,
    Unit,
    blocks,
    plain_prompt_tokens,
    quote,
    rows_out,
)
from uql.compiler.formula import FALSE, OPEN, TRUE, Formula, Masks, conjunction, conjuncts, masks_of
from uql.compiler.join_plans import fields_read, with_sources
from uql.compiler.orders import distinct_share, learned
from uql.compiler.pair_attribute import attribute_comparison
from uql.compiler.physical import (
    Block,
    Correlated,
    Goal,
    OuterJoin,
    PhysicalPlan,
    SqlQuery,
    Stage,
    SubQueries,
    UnionPlan,
    asked_joins,
    inner_plans,
)
from uql.compiler.sql import query_sql
from uql.compiler.subqueries import aliases, in_expressions, is_semantic_query
from uql.compiler.syntax import Call, Cast, Column, Expr, InQuery, Null, Number, Star, TypeName
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.compiler.walk import columns, is_semantic, rewrite
from uql.compiler.worlds import simulate
from uql.engine.execute import Pilot
from uql.kernels.duck import Duck, quote as quoted
from uql.kernels.estimates.sample import DEFAULT_METHOD
from uql.kernels.sampling_inputs import FEWEST_ROWS, LEAST_BUDGET
from uql.kernels.video_moments import EVERY
from uql.llm.prompts.several import LONGEST
from uql.pricing.contents import content
from uql.pricing.model_prices import unit_of
from uql.sampling.two_stage import first_stage

if TYPE_CHECKING:
    from uql.base.settings import Settings
    from uql.llm.providers.base import Price, Provider
    from uql.pricing.learned import Statistics
    from uql.pricing.recall import Recall

PILOT_SHARE, PILOT_ROWS, LEAST_ROWS = 0.05, 64, 8  # of the rows; at most; at least, else none
RIDERS = ("select_with_where", "group_with_where")
CLIPS_SEEN = 32  # whose frames are counted before a run
UNKNOWN_SHARE = 1 / 3  # of the rows that a condition keeps which cannot be looked at before the run
UNKNOWN = Range(0.0, UNKNOWN_SHARE, 1.0)
TRIED = 8  # rows of a request whose price is shown where no number was measured
MOST_SEEN = 20_000  # rows of a block that are looked at one by one


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
    rows_apart: bool = False  # rows of one request are decisions of their own
    rows_measured: bool = True  # else what TRIED of them would save is shown
    prompt: PromptTokens = plain_prompt_tokens
    form: float = 0.0  # tokens of a reply around each answer
    weighs_pairs: bool = True  # can the model weigh two texts against each other?
    watches: bool = False  # does it take videos as files?
    models: Mapping[str, Provider] = field(default_factory=dict)  # of a cascade, by name
    pilots: dict[int, Pilot] = field(default_factory=dict)  # by the identity of the block
    recall: Recall | None = None  # what the ledger answers of rows
    # blocks are kept, so that no other has their identity
    _block_cache: dict[int, tuple[Block, BlockStatistics]] = field(default_factory=dict)
    _like: dict[int, tuple[Block, Block]] = field(default_factory=dict)  # of a block chosen: that as written
    _run_for: dict[int, tuple[Column, ...]] = field(default_factory=dict)  # of a block run once for each value: which

    def __call__(self, block: Block) -> BlockStatistics:
        if id(block) in self._block_cache:
            return self._block_cache[id(block)][1]
        _, original = self._like.get(id(block), (block, block))
        if id(original) not in self._block_cache:
            self._block_cache[id(original)] = (original, self._look(original))
        return self._block_cache[id(original)][1]

    @property
    def terms(self) -> Terms:
        """What choices depend on besides a block."""
        unit = unit_of(self.price)
        untried = self.costs and not self.rows_measured
        rows = TRIED if untried else self.rows_at_once
        terms = terms_of(self.settings, unit, unit != Unit(), self.budget, rows, self.rows_apart)
        return replace(terms, rows_measured=not untried)

    def of_model(self, price: Price | None, prompt: PromptTokens, form: float) -> Knowledge:
        """The same of another model.

        Args:
            price: its own.
            prompt: counts its requests, in tokens.
            form: tokens of its replies around each answer.
        """
        cache = {
            i: (block, replace(known, prompt=prompt, form=form)) for i, (block, known) in self._block_cache.items()
        }
        return replace(self, price=price, prompt=prompt, form=form, _block_cache=cache)

    @property
    def costs(self) -> bool:
        """Is the model's price known, and above 0?"""
        return self.price is not None and bool(self.price.input or self.price.output)

    def rows_of(self, table: str) -> int:
        """The rows of a table; 0 where there is none, which the run says."""
        try:
            return int(Duck(self.cursor).scalar(f"SELECT system.main.COUNT(*) FROM {quoted(table)}"))
        except duckdb.Error:
            return 0

    @property
    def rows_left_aside(self) -> str | None:
        """Why rows share no request though the settings say so and the model could."""
        why = needs_probabilities(self.settings, self.rows_apart)
        if self.rows_at_once == 1 or why is None or self.settings.rows_per_request == "auto":
            return None
        return (
            f"rows_per_request = {self.settings.rows_per_request} is left aside: {why} needs the probability of each answer, "
            "and rows that share a request have none"
        )

    def chosen(self, written: PhysicalPlan) -> tuple[PhysicalPlan, tuple[Alternative, ...]]:
        """The plan that runs, and what else there was to choose from."""
        others: list[Alternative] = []
        plans: dict[int, PhysicalPlan] = {}  # what stands in several places stays one

        def one(part: PhysicalPlan) -> PhysicalPlan:
            if id(part) not in plans:
                plans[id(part)] = new(part)
            return plans[id(part)]

        def new(part: PhysicalPlan) -> PhysicalPlan:
            if isinstance(part, UnionPlan):
                return replace(part, left=one(part.left), right=one(part.right))
            if not isinstance(part, Block):
                return part
            block = part
            if self.terms.rows > 1 or has_ways(part) or (self.watches and self(part).watched):
                choice = choose(part, self._with_pilot(part), self.terms)
                others.extend(choice.alternatives)
                block = choice.block
            for run in part.inner.repeated:
                self._run_for |= dict.fromkeys(blocks(run.plan), run.columns)
            correlated = (
                replace(sub, derived=tuple((alias, one(below)) for alias, below in sub.derived))
                for sub in part.inner.correlated
            )
            inner = SubQueries(
                tuple((alias, one(below)) for alias, below in part.inner.derived),
                tuple((bound, one(below)) for bound, below in part.inner.nested),
                tuple(correlated),
                tuple(replace(run, plan=one(run.plan)) for run in part.inner.repeated),
            )
            block = replace(block, inner=inner)
            self._like[id(block)] = (block, part)
            return block

        return one(written), tuple(others)

    def pilot(self, written: Block, rows: int) -> int:
        """The rows of a block's `rows` whose answers settle how it is run; 0 where it does not depend on them."""
        entry = self._block_cache.get(id(self._like.get(id(written), (written, written))[1]))
        return pilot_rows(rows) if entry is not None and entry[1].pilot else 0

    def settled(self, block: Block, written: Block, rows: int, answers: Masks | None) -> Block:
        """As in `Plans`."""
        statistics = replace(self(written), rows=Range.exactly(rows), pairs=(), answers=whole(answers))
        done = replace(block, scan=replace(block.scan, join=None))  # its pairs are asked: what is left is over its rows
        return replace(choose(done, statistics, self.terms).block, scan=block.scan)

    def _with_pilot(self, block: Block) -> BlockStatistics:
        """What is known of a block, and the rows that it asks of a pilot before its plan is settled."""
        statistics, terms = self(block), self.terms
        pilot = pilot_rows(statistics.rows.expected)
        fits = terms.budget is None or statistics.rows.expected <= terms.budget
        ways = ways_by_rates(block, statistics, terms) if pilot and fits else ()
        if ways:
            statistics = replace(statistics, pilot=pilot, ways=ways)
            self._block_cache[id(block)] = (block, statistics)
        return statistics

    def _look(self, block: Block) -> BlockStatistics:
        fields = fields_read(block)
        stages = [*block.requests, *(Stage((c,)) for c in block.summaries.columns)]
        stages += [stage for join in asked_joins(block) for stage in stages_of(join)]
        sizes = {s.input_columns: sum(size_of(fields[c]) for c in s.input_columns if c in fields) for s in stages}
        pilot = self.pilots.get(id(block))
        frames = self._frames(block, [c for s in stages for c in s.input_columns if c in fields], fields)
        site, pair_sites = self._sites(block) if not frames else (None, ())
        rows, pairs = self._rows(block)
        concrete = {}
        if site is not None and not site.after and block.scan.join is None and site.n:
            decided = np.flatnonzero((site.leaves != OPEN).all(axis=1)).tolist()
            concrete = {i: float(np.mean(site.leaves[i] == TRUE)) for i in decided}
        sites = [s for s in pair_sites if s is not None]
        return BlockStatistics(
            rows,
            sizes,
            pairs,
            answers=pilot.answers if pilot is not None else self._remembered(block),
            share=pilot.share if pilot is not None else None,
            until=pilot.until if pilot is not None else None,
            rates=block.filter.rates(self.memory.rates),
            copies={**self._copies(site, rows), **(pilot.copies if pilot is not None else {})},
            frames=frames,
            watched=frozenset(frames) if self.watches else frozenset(),
            output=self.memory.output_tokens(),
            guided=self._guided(block.requests if block.aggregate.present else block.filter.stages, block, rows),
            first_stage=self._first_stage(block, rows),
            examples=self._has_examples(rows),
            concrete=concrete,
            pair_sides=self._pair_sides(block),
            weighs_pairs=self.weighs_pairs,
            recall=self.settings.recall,
            budget=self.budget,
            unshared_columns=unshared_columns(fields),
            prompt=self.prompt,
            form=self.form,
            learns="order_while_running" not in self.settings.disabled_rules,
            site=site if len(sites) == len(pair_sites) else None,
            pair_sites=tuple(sites),
        )

    def quote(self, plan: PhysicalPlan) -> Quote:
        """The price of a plan that was chosen, without a budget; the calls of each of its blocks are known from then on."""
        simulation = simulate(plan, self._with_answers)
        if simulation is not None:
            for i, block in blocks(plan).items():
                self._block_cache[i] = (block, replace(self(block), calls=simulation.blocks[i]))
            return simulation.quote
        for part in parts_of(plan):  # the rows of a block come from answers: those of the blocks inside it may not
            self.quote(part)
        return quote(plan, self)

    def spent(self, plan: PhysicalPlan, budget: int | None) -> Range | None:
        """The calls that a plan makes within a budget; None where DuckDB does not show its rows before the run."""
        simulation = simulate(plan, self._with_answers, budget) if budget is not None else None
        return None if simulation is None else simulation.quote.calls

    def _with_answers(self, block: Block) -> BlockStatistics:
        """What is known of a block, with what the ledger answers of its rows and of the pairs of its joins."""
        statistics, fields = self(block), fields_read(block)
        if self.recall is None or statistics.site is None:
            return statistics
        stages = (*block.filter.stages, *block.values.stages, *block.values.late)
        pairs = zip(statistics.pair_sites, asked_joins(block), strict=True)
        unnamed = [c for c in block.values.groups if not c.labels]
        return replace(
            statistics,
            named_before={c.text: self.recall.ever_paid(c) for c in unnamed},
            site=self.recall.answered(statistics.site, block.filter.formula, stages, fields),
            pair_sites=tuple(self.recall.answered(site, j.formula, stages_of(j), fields) for site, j in pairs),
        )

    # ----------------------------------------------------------------------------------------------- rows as DuckDB has them
    def _site(
        self,
        block: Block,
        source: BoundSource | None,
        terms: list[Expr],
        formula: Formula | None,
        virtuals: list[VirtualColumn],
        inner: tuple[tuple[str, PhysicalPlan], ...],
        pairs: bool = False,
    ) -> Site | None:
        """Rows of a FROM clause, with what they show to these questions; None where there are too many, or DuckDB cannot tell them."""
        sources = {alias: _whole(plan, alias) for alias, plan in inner}
        if any(part is None for part in sources.values()):
            return None
        change = {alias: part for alias, part in sources.items() if part is not None}
        hidden = frozenset(
            Column(a, i.name) for a, p in change.items() for i in p.query.items if isinstance(i.expr, Null)
        )

        def open_(expr: Expr) -> bool:
            later = any(is_semantic_query(b.query) or b.correlated for b in in_expressions(expr))
            return later or is_semantic(expr) or not hidden.isdisjoint(columns(expr))

        plain = [t for t in terms if not open_(t)]
        leaves = formula.leaves if formula is not None else ()
        own = {i: leaf.expr for i, leaf in enumerate(leaves) if not open_(leaf.expr)}
        groups_by = [key.expr for key in (block.project.items if block.stops_at_first else block.aggregate.keys)]
        if block.filter.goal is Goal.FIRST and not groups_by:
            groups_by = list(self._run_for.get(id(block), ()))
        keys = [] if pairs or any(map(open_, groups_by)) else groups_by
        inputs = dict.fromkeys(c.inputs for c in virtuals)
        asked = {i: leaf for i, leaf in enumerate(leaves) if leaf.semantic and not any(in_expressions(leaf.expr))}
        by_answers = [leaf.expr for leaf in asked.values()]
        unasked = {
            i: rewrite(leaf.expr, _without_answer) for i, leaf in asked.items() if all(c.by_row for c in leaf.columns)
        }
        unasked = {i: expr for i, expr in unasked.items() if not open_(expr)}
        needed = dict.fromkeys(c for one in (*inputs, *map(columns, by_answers)) for c in one)
        items = [BoundItem(c, c.label, "") for c in needed]
        items += [BoundItem(expr, f"__l{i}", "BOOLEAN") for i, expr in {**own, **unasked}.items()]
        items += [BoundItem(expr, f"__k{i}", "") for i, expr in enumerate(keys)]
        items += [BoundItem(Column(alias, ROW), f"__r{i}", "UBIGINT") for i, alias in enumerate(change)]
        join = block.scan.join
        one_side = join is not None and join.kind in ("SEMI", "ANTI")  # its pairs have the numbers of its rows
        numbered = one_side or (not pairs and join is None)
        numbered = numbered and len(block.scan.columns) <= MOST_NUMBERED
        items += [BoundItem(_row_number(block), ROW, "UBIGINT")] if numbered else []
        in_order = block.filter.goal is Goal.FIRST or (block.filter.formula is None and not block.aggregate.present)
        order = block.order.keys if in_order and not pairs else ()
        order = tuple(takewhile(lambda key: not open_(key.expr), order))
        where = with_sources(source, change) if source is not None else None
        query = BoundSelect(tuple(items) or (_ONE,), where, conjunction(plain), order_by=order)
        fields = fields_read(block)
        parts = [content(one, fields) for one in inputs] + [f"CAST(__l{i} AS BOOLEAN)" for i in (*own, *unasked)]
        parts += [f"__r{i}" for i in range(len(change))] + ([ROW] if numbered else [])
        parts += [number_of((f"__k{i}", "") for i in range(len(keys)))] if keys else []
        sql = f"SELECT * FROM ({query_sql(query)}) LIMIT {MOST_SEEN + 1}"
        try:
            table = self.recall.table(sql, virtuals, fields) if self.recall is not None else ""
            kept = f"{quoted(table)} ORDER BY rowid ASC" if table else f"({sql})"
            rows = Duck(self.cursor).arrow(f"SELECT {', '.join(parts) or '1'} FROM {kept}")
        except duckdb.Error:  # the values that a model will give stand as NULL here: not each statement takes that
            return None
        if rows.num_rows > MOST_SEEN:
            return None
        masks = np.full((len(leaves), rows.num_rows), OPEN, dtype=np.uint8)
        for j, i in enumerate(own, start=len(inputs)):
            masks[i] = masks_of(rows.column(j).to_pylist())
        cells = {one: np.asarray(rows.column(j), dtype=np.uint64) for j, one in enumerate(inputs)}
        for j, i in enumerate(unasked, start=len(inputs) + len(own)):
            empty = np.flatnonzero(np.logical_and.reduce([cells[c.inputs] == 0 for c in leaves[i].columns]))
            masks[i, empty] = masks_of(rows.column(j).take(empty).to_pylist())
        groups = np.asarray(rows.column(rows.num_columns - 1), dtype=np.uint64) if keys else None
        selectivity = Range.exactly(1)
        for term in terms:
            if term not in plain:
                after = inner or block.scan.join is not None
                selectivity = selectivity * (UNKNOWN if after else self._subquery_selectivity(term, block, plain))
        first = len(inputs) + len(own) + len(unasked)
        of_rows = (rows.column(first + i) for i in range(len(change) + numbered))
        numbers = [np.asarray(n.fill_null(0), dtype=np.uint64) for n in of_rows]  # NULL: no partner in an outer join
        of_inner = tuple(zip(change, numbers, strict=False))
        own_rows = numbers[-1] if numbered else None
        return Site(rows.num_rows, cells, masks, groups, selectivity, of_inner, own_rows, hidden, table)

    def _sites(self, block: Block) -> tuple[Site | None, tuple[Site | None, ...]]:
        """The candidates of a block, and the pairs of each join that is asked."""
        terms = conjuncts(block.scan.where)
        virtuals = [c for s in block.requests for c in s.columns]
        virtuals += [*block.values.groups, *block.summaries.columns]
        pairs: list[Site | None] = []
        source = block.scan.source
        join = block.scan.join
        if join is not None:
            if not (isinstance(join.left, BoundSource) and isinstance(join.right, BoundSource)):
                return None, (None,)
            sides = [t for part in (join.left_where, join.right_where) if part is not None for t in conjuncts(part)]
            kind = "INNER" if join.pairs is not None else "CROSS"
            both = BoundJoin(kind, join.left, join.right, join.pairs)
            own = [c for stage in join.stages for c in stage.columns]
            pairs.append(self._site(block, both, sides, join.formula, own, block.inner.derived, pairs=True))
            if join.kind in ("SEMI", "ANTI"):
                source = join.left
            else:
                source = replace(both, kind=join.kind if join.pairs is not None or join.kind == "CROSS" else "INNER")
            terms = [*terms, *(sides if join.kind in ("INNER", "CROSS") else conjuncts(join.left_where))]
        plain = [
            t for t in conjuncts(block.scan.where) if not any(is_semantic_query(b.query) for b in in_expressions(t))
        ]
        for part in block.inner.correlated:
            if block.scan.source is None or set(aliases(block.scan.source)) & set(aliases(part.source)):
                return None, (None,)
            both = BoundJoin("CROSS", block.scan.source, part.source)
            where = [*plain, *conjuncts(part.own), *conjuncts(part.pairs)]
            own = [c for stage in stages_of(part) for c in stage.columns]
            pairs.append(
                self._site(block, both, where, part.formula, own, (*block.inner.derived, *part.derived), pairs=True)
            )
        return self._site(block, source, terms, block.filter.formula, virtuals, block.inner.derived), tuple(pairs)

    def _guided(self, stages: Sequence[Stage], block: Block, rows: Range) -> bool:
        """Has a search, or a sample, features of the rows to learn from?"""
        fields = fields_read(block)
        texts = any(c in fields and fields[c].type != "BLOB" for stage in stages for c in stage.input_columns)
        return texts and self.settings.method != "uniform" and rows.expected >= FEWEST_ROWS

    def _first_stage(self, block: Block, rows: Range) -> int | None:
        """The rows of the first stage of a large table's sample, unless what its sums add up is too uneven for one."""
        settings, guided = self.settings, self._guided(block.requests, block, rows)
        if not (block.aggregate.present and guided) or self.budget is None or settings.error is not None:
            return None
        return first_stage(int(rows.low), self.budget) if settings.method in (None, DEFAULT_METHOD) else None

    def _has_examples(self, rows: Range) -> bool:
        """Does a search ask for example rows first?"""
        enough = rows.expected >= FEWEST_ROWS and (self.budget is None or self.budget >= LEAST_BUDGET)
        return enough and self.settings.examples is True and self.settings.method != "uniform"

    def _remembered(self, block: Block) -> Masks | None:
        """Answers to a whole WHERE, from earlier queries that asked it."""
        answers = self.memory.answers(block.filter.name) if block.filter.formula is not None else None
        return whole(answers)

    def _copies(self, site: Site | None, rows: Range) -> dict[tuple[Column, ...], float]:
        """Rows that show a stage the same cells, on the average: these are asked once, and NULLs never."""
        if site is None or site.after or not site.n or not rows.expected:
            return {}
        averages = {}
        for reads, codes in site.cells.items():
            copies = site.n / max(1, len(np.unique(codes[codes != 0])))
            share = min(1.0, rows.expected / site.n)  # of the candidates, where sub-queries leave fewer
            averages[reads] = share / distinct_share(share, copies)
        return averages

    def _frames(self, block: Block, columns: Sequence[Column], fields: Mapping[Column, Field]) -> dict[Column, float]:
        """Frames of each video among these columns, on the average over the first rows."""
        videos = [c for c in dict.fromkeys(columns) if fields[c].modality is Modality.VIDEO]
        frames = {}
        for c in videos:
            query = BoundSelect((BoundItem(c, "v", ""),), block.scan.source, None, limit=CLIPS_SEEN)
            sql = (
                f"SELECT system.main.avg(system.main.len(__uql_frames(v, {literal(EVERY)}))) FROM ({query_sql(query)})"
            )
            try:
                frames[c] = float(Duck(self.cursor).scalar(sql) or 1)
            except duckdb.Error:  # a source that is not there before the run
                frames[c] = 1.0
        return frames

    def _distinct(self, block: Block, columns: tuple[Column, ...], plain: list[Expr]) -> float:
        """Distinct contents of some columns among the candidates, those without any left out."""
        keys = tuple(BoundItem(c, c.label, "") for c in columns)
        inner = query_sql(BoundSelect(keys, block.scan.source, conjunction(plain), distinct=True))
        condition = " OR ".join(f"{quoted(c.label)} IS NOT NULL" for c in columns)
        return float(Duck(self.cursor).scalar(f"SELECT system.main.count(*) FROM ({inner}) WHERE {condition}") or 0)

    def _pair_sides(self, block: Block) -> tuple[float, ...]:
        """Distinct rows of each side of a condition on pairs; one table joined with itself is one side."""
        virtuals = block.filter.columns
        pairs = [c for c in virtuals if c.is_pair_condition]
        if not self.weighs_pairs:  # two columns of one table may be compared too
            pairs += [
                c for c in virtuals if len(c.reads) == 2 and not c.holes and attribute_comparison(c.text) is not None
            ]
        if not pairs or block.inner.derived or block.scan.join is not None or block.inner.correlated:
            return ()
        inputs = pairs[0].inputs
        tables = dict.fromkeys(c.table for c in inputs)
        plain = [t for t in conjuncts(block.scan.where) if not list(in_expressions(t))]
        sides = (
            [tuple(c for c in inputs if c.table == table) for table in tables]
            if len(tables) > 1
            else [(c,) for c in inputs]
        )
        columns = {tuple(c.name for c in side): side for side in sides}  # one table joined with itself is asked once
        return tuple(self._distinct(block, side, plain) for side in columns.values())

    # -------------------------------------------------------------------------------------------------- numbers of rows
    def _rows(self, block: Block) -> tuple[Range, tuple[Range, ...]]:
        """The candidates of a block, and the pairs of each join that is asked."""
        derived = {alias: self._out(plan) for alias, plan in block.inner.derived}
        plain = [
            t for t in conjuncts(block.scan.where) if not any(is_semantic_query(b.query) for b in in_expressions(t))
        ]
        later = [t for t in conjuncts(block.scan.where) if t not in plain]
        hidden = False
        pairs: tuple[Range, ...] = ()
        if block.scan.join is not None:
            rows, pairs = self._joined(block.scan.join, derived)
            hidden = hidden or block.scan.where is not None
        elif not derived:
            rows = Range.exactly(self._count(block.scan.source, conjunction(plain)))
        else:
            rows = self._guess(block.scan.source, derived)
            hidden = hidden or block.scan.where is not None
        for part in block.inner.correlated:
            pairs = (*pairs, self._sub_pairs(block, part, rows, conjunction(plain)))
        for term in later:
            rows = rows * (
                UNKNOWN if derived or block.scan.join is not None else self._subquery_selectivity(term, block, plain)
            )
        return (rows * UNKNOWN if hidden else rows), pairs

    def _subquery_selectivity(self, term: Expr, block: Block, plain: list[Expr]) -> Range:
        """The share of the candidates that a condition on a sub-query keeps, which has not been run."""
        match term:
            case InQuery(operand=Column() as key, query=Bound() as part):
                inner = next((plan for own, plan in block.inner.nested if own is part), None)
                if inner is None:
                    return UNKNOWN
                out, keys = self._out(inner), max(1.0, self._distinct(block, (key,), plain))
                is_key = keys >= self._count(block.scan.source, conjunction(plain))
                most = min(1.0, out.high / keys) if is_key else 1.0
                share = Range(min(most, out.low / keys) if is_key else 0.0, min(most, out.expected / keys), most)
                return Range(1 - share.high, 1 - share.expected, 1 - share.low) if term.negated else share
        return UNKNOWN

    def _sub_pairs(self, block: Block, part: Correlated, rows: Range, where: Expr | None) -> Range:
        """The pairs of a block's rows with those of a sub-query that reads them: DuckDB's count where it is available."""
        around, own = set(aliases(block.scan.source)), set(aliases(part.source))
        if block.scan.source is not None and not (block.inner.derived or part.derived or around & own):
            joined = BoundJoin("CROSS", block.scan.source, part.source)
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
        star = BoundItem(Call("system.main.count", (Star(),)), "n", "BIGINT")
        return float(Duck(self.cursor).scalar(query_sql(BoundSelect((star,), source, where, aggregated=True))) or 0)

    def _guess(self, source: BoundSource | None, derived: dict[str, Range]) -> Range:
        """The rows of a FROM clause in which some sources have not been run."""
        if isinstance(source, BoundJoin):
            left, right = self._guess(source.left, derived), self._guess(source.right, derived)
            both = left * right
            if source.kind == "POSITIONAL":
                return Range.of(max, left, right)
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
                    float(Duck(self.cursor).scalar(f"SELECT system.main.count(*) FROM ({query_sql(query)})") or 0)
                )
        raise TypeError(f"not a physical plan: {plan!r}")


def _without_answer(node: Expr) -> Expr:
    """A text whose row has nothing to show is NULL at no call."""
    return Cast(Null(), TypeName(node.column.type)) if isinstance(node, Virtual) else node


def parts_of(plan: PhysicalPlan) -> tuple[PhysicalPlan, ...]:
    """The plans inside a plan."""
    if isinstance(plan, UnionPlan):
        return plan.left, plan.right
    return inner_plans(plan) if isinstance(plan, Block) else ()


def stages_of(join: OuterJoin | Correlated) -> tuple[Stage, ...]:
    """The requests about the pairs of a join, or of a sub-query that reads columns around it."""
    return (*join.stages, *(join.values if isinstance(join, Correlated) else ()))


_ONE = BoundItem(Number("1"), "__one", "INTEGER")
ROW = "__row"  # the number of a row of an inner query, by what the query reads of it
MOST_NUMBERED = 100  # columns: a number made of thousands takes as long as the plan


def _row_number(block: Block) -> Expr:
    join = block.scan.join
    own = aliases(join.left) if join is not None and isinstance(join.left, BoundSource) else ()
    return Call("system.main.hash", tuple(c for c in block.scan.columns if not own or c.table in own) or (Number("1"),))


def _whole(plan: PhysicalPlan, alias: str) -> BoundDerived | None:
    """The rows that an inner query gives if all pass, values of the model NULL; None where they are groups of rows, or too wide."""
    if isinstance(plan, UnionPlan):
        left, right = _whole(plan.left, alias), _whole(plan.right, alias)
        if left is None or right is None:
            return None
        items = (*plan.items, BoundItem(Column("", ROW), ROW, "UBIGINT"))
        return BoundDerived(BoundUnion(items, left.query, right.query, all=True), alias, ())
    if isinstance(plan, SqlQuery):  # its rows are there for sure
        items = (
            *(BoundItem(Column(alias, i.name), i.name, i.type) for i in plan.query.items),
            BoundItem(Number("0"), ROW, "UBIGINT"),
        )
        return BoundDerived(BoundSelect(items, BoundDerived(plan.query, alias, ())), alias, ())
    if not isinstance(plan, Block) or plan.aggregate.present or plan.scan.join is not None or plan.scan.source is None:
        return None
    sources = {own: _whole(below, own) for own, below in plan.inner.derived}
    change = {own: part for own, part in sources.items() if part is not None}
    if len(change) < len(sources) or len(plan.scan.columns) > MOST_NUMBERED:
        return None

    def plain(expr: Expr) -> bool:
        return not is_semantic(expr) and not any(is_semantic_query(b.query) for b in in_expressions(expr))

    items = tuple(i if plain(i.expr) else replace(i, expr=Null()) for i in plan.project.items)
    items = (*items, BoundItem(_row_number(plan), ROW, "UBIGINT"))
    terms = conjunction([t for t in conjuncts(plan.scan.where) if plain(t)])
    return BoundDerived(BoundSelect(items, with_sources(plan.scan.source, change), terms), alias, ())


# --------------------------------------------------------------------------------------------- what a choice depends on
def terms_of(
    settings: Settings, unit: Unit, in_usd: bool, calls: int | None, rows: int = 1, apart: bool = False
) -> Terms:
    """What choices depend on under these settings.

    No riders where a failure would end the run, which must not happen for a row that the query does not need, and none beside a cascade,
    whose small model is asked conditions alone.

    Args:
        unit: what a call costs.
        in_usd: `unit` is in USD, else in tokens.
        calls: of the budget; None: all.
        rows: that a request may hold; one where their probabilities are needed.
        apart: they are decisions of their own.
    """
    off = settings.disabled_rules + (RIDERS if settings.on_error == "raise" or _has_cascade(settings) else ())
    rows = 1 if needs_probabilities(settings, apart) is not None else rows
    by_price = settings.rows_per_request == "auto" and not apart
    return Terms(unit, calls, off, in_usd, rows, by_price, rows_apart=apart)


def _has_cascade(settings: Settings) -> bool:
    return bool(settings.models) and "cascade" not in settings.disabled_rules


def needs_probabilities(settings: Settings, apart: bool) -> str | None:
    """What needs the probability of each answer, which answers of rows that share a request do not have; None: nothing.

    `apart`: they are decisions of their own, which have it; not those of both models of a cascade.
    """
    if _has_cascade(settings):
        return "a cascade"
    return "soft = on" if settings.soft and not apart else None


def pilot_rows(rows: float) -> int:
    """The rows of a pilot among so many; 0 where there are too few for one."""
    count = min(PILOT_ROWS, int(PILOT_SHARE * rows))
    return count if count >= LEAST_ROWS else 0


def unshared_columns(fields: Mapping[Column, Field]) -> frozenset[Column]:
    """The columns whose rows share no request: pictures, sounds, and texts so long that one fills it."""
    return frozenset(c for c, f in fields.items() if _is_media(f) or f.mean_chars > LONGEST / 2)


def whole(masks: Masks | None) -> Masks | None:
    """Complete answers in the likely shares, from rows asked in part; None where some term has none."""
    if masks is None or not ((masks == TRUE) | (masks == FALSE)).any(axis=1).all():
        return None
    return learned(masks)


def size_of(field: Field) -> float:
    """Mean bytes of a column as a model is shown it; an image or a sound counts for those whose tokens it takes."""
    return MEDIA_BYTES if _is_media(field) else field.mean_bytes


def _is_media(field: Field) -> bool:
    return field.type == "BLOB" or field.modality in (Modality.IMAGE, Modality.AUDIO, Modality.VIDEO)
