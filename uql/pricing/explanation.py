"""EXPLAIN and quotes: what a plan will do and what it costs, by what is known before it runs (`known`). No model is asked here."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING

from uql.compiler.choice import Alternative
from uql.compiler.cost import BYTES_PER_TOKEN, NOTHING, Quote, Range, Unit, blocks, calls_of, stage_tokens
from uql.compiler.explain import Explained, explained
from uql.compiler.formula import Formula
from uql.compiler.join_plans import fields_read
from uql.compiler.physical import Block, Goal, Order, PhysicalPlan, SemFilter, Values, asking, stages
from uql.compiler.virtual import Virtual
from uql.kernels import descriptions
from uql.kernels.cascade import CANDIDATES, labelled_rows
from uql.kernels.sampling_inputs import FEWEST_ROWS
from uql.llm.prices import price_of
from uql.pricing.error_target import share_asked
from uql.pricing.model_prices import form_of, price_known
from uql.pricing.prompt_sizes import prompt_tokens
from uql.sampling.promise import PILOT

if TYPE_CHECKING:
    from uql.base.settings import Settings
    from uql.compiler.bound import BoundStatement
    from uql.pricing.known import Knowledge

PROPOSED = "the model describes it first: 1 call"
PROOF = 3.0  # -log 0.05: draws without a miss, over the share of misses that they rule out
LUCK = 0.8  # of what a recall takes, where the search finds its rows early
LEAST_UNSURE, UNSURE = 0.0, 0.3  # of the rows, of which a small model is not sure


def price(plan: PhysicalPlan, knowledge: Knowledge, budget: int | None) -> Quote:
    """The price of a plan within its budget; USD where the price of the model is known.

    Args:
        knowledge: what is known before the run.
        budget: calls; None: without limit.
    """
    return _predicted(plan, knowledge, budget)[1]


def _predicted(
    plan: PhysicalPlan, knowledge: Knowledge, budget: int | None
) -> tuple[PhysicalPlan, Quote, tuple[Alternative, ...]]:
    """The plan that runs, its price, and what else there was to choose from."""
    best, others = knowledge.chosen(plan)
    quote, models = _with_cascade(best, price_alone(best, knowledge, budget), knowledge, budget)
    cost = knowledge.price
    if cost is not None:
        others = tuple(replace(a, quote=a.quote.priced(cost.usd(1, 0), cost.usd(0, 1))) for a in others)
    return best, quote, (*models, *others)


def price_alone(plan: PhysicalPlan, knowledge: Knowledge, budget: int | None) -> Quote:
    """The price where the model, of two the large one, is asked alone.

    Args:
        knowledge: what is known before the run.
        budget: calls; None: without limit.
    """
    quote = knowledge.quote(plan).sampled(knowledge.memory.repeats)
    share = share_asked(plan, knowledge)
    spent = (
        knowledge.spent(plan, budget) if share is None and budget is not None and quote.calls.high > budget else None
    )
    targeted = share or _share_of_target(plan, quote, knowledge)
    if targeted is not None:
        quote = quote.sampled(targeted).beside(Range(0.0, 0.0, 1.0))  # a call for example rows
    if share is not None:  # it grows beyond the default budget, and ends within one that is given
        budget = knowledge.settings.budget and budget
    proposals = Range.exactly(sum(description == PROPOSED for description in _descriptions(plan, knowledge).values()))
    quote = quote.beside(proposals).within(budget, spent, max(1, asking(plan))).beside(_audit_calls(plan, knowledge))
    cost = knowledge.price
    quote = quote.timed(knowledge.pace)
    return _with_vectors(quote.priced(cost.usd(1, 0), cost.usd(0, 1)) if cost is not None else quote, plan, knowledge)


def _share_of_target(plan: PhysicalPlan, quote: Quote, knowledge: Knowledge) -> Range | None:
    """The share of the calls for every row after which a search's recall, or its precision too, may hold; None where it has neither.

    With a recall r alone it asks s of n rows that match until r of them are found, and about PROOF / ((1 - r) s) random ones that prove
    it, wherever s is: at least both where their sum is least. A precision alone adds rows after all calls.
    """
    settings = knowledge.settings
    if not isinstance(plan, Block) or not is_promised(plan, settings) or not knowledge(plan).guided:
        return None
    if settings.recall is None:
        return Range.exactly(1.0)
    calls, rows = max(1.0, quote.calls.expected), max(1.0, knowledge(plan).rows.expected)
    least = PILOT / calls
    if settings.precision is None:
        least = LUCK * 2 * math.sqrt(PROOF * settings.recall / max(1e-9, 1 - settings.recall) / rows)
    least = min(1.0, least)
    return Range(least, (1 + least) / 2, 1.0)


def _with_vectors(quote: Quote, plan: PhysicalPlan, knowledge: Knowledge) -> Quote:
    """The price with the vectors of the rows, where not all rows are asked and a vendor's embedder says which ones.

    At least nothing, since vectors are kept beside the database.
    """
    embedder = knowledge.settings.embedder
    if embedder in (None, "static") or not isinstance(plan, Block) or not quote.calls.expected < quote.every.expected:
        return quote
    statistics = knowledge(plan)
    if not statistics.guided:
        return quote
    shown = max((statistics.sizes.get(stage.input_columns, 0.0) for stage in plan.filter.stages), default=0.0)
    tokens = statistics.rows.times(shown / BYTES_PER_TOKEN)
    tokens = replace(tokens, low=0.0)
    cost = price_of(embedder, knowledge.settings)
    usd = quote.usd + tokens.times(cost.usd(1, 0)) if quote.usd is not None and cost is not None else quote.usd
    return replace(quote, embedded=tokens, usd=usd)


def _descriptions(plan: PhysicalPlan, knowledge: Knowledge) -> dict[str, str]:
    """What EXPLAIN says of the description of each text, by the text; none where the settings want none."""
    phrases: dict[str, str] = {}
    for block in blocks(plan).values() if knowledge.settings.describe else ():
        fields = fields_read(block)
        for column in descriptions.described([c for stage in block.requests for c in stage.columns]):
            comments = descriptions.comments(column, fields)
            proposed = knowledge.memory.descriptions.get(descriptions.key(column))
            phrases[column.text] = (
                f"described by its columns' comments: {comments}"
                if comments
                else f"described by the model: {proposed}"
                if proposed
                else PROPOSED
            )
    return phrases


def _audit_calls(plan: PhysicalPlan, knowledge: Knowledge) -> Range:
    """The calls for the judged rows of `audit`, which the model answers beside the budget."""
    if knowledge.settings.audit is None or not isinstance(plan, Block) or plan.filter.formula is None:
        return NOTHING
    if not plan.aggregate.present:
        return NOTHING
    rows = knowledge.rows_of(knowledge.settings.audit)
    return Range(rows, rows, rows * len(plan.filter.stages))


def money(settings: Settings) -> tuple[float | None, float | None]:
    """The tokens and the USD that end a run; USD not where two models are paid, of whose calls one alone counts."""
    return settings.max_tokens, None if settings.models else settings.max_cost


def explanation(
    statement: BoundStatement, plan: PhysicalPlan, knowledge: Knowledge, budget: int | None, sample: int | None = None
) -> Explained:
    """All that EXPLAIN says.

    Args:
        plan: as it was planned, before the choice among its alternatives.
        knowledge: what is known before the run.
        budget: calls; None: without limit.
        sample: the calls of the default budget, where money decides between it and every row; None: it does not.
    """
    best, priced, alternatives = _predicted(plan, knowledge, budget)
    report = explained(statement, best, knowledge, priced.paid_by(*money(knowledge.settings)), budget)
    readings = [f'"{text}": {phrase}' for text, phrase in _descriptions(best, knowledge).items()]
    report = replace(report, readings=(*report.readings, *readings))
    if knowledge.rows_left_aside is not None:
        report = replace(report, warnings=(*report.warnings, knowledge.rows_left_aside))
    if knowledge.settings.budget is None and share_asked(best, knowledge) is not None:
        error = knowledge.settings.error
        target = f"what error = {error:g} takes, at most half more than its pilot foretells"
        report = replace(report, limit=target, budget=None)
    scores = scores_usd(best, knowledge)
    short = _too_little(priced, scores, knowledge.settings)
    if short:
        report = replace(report, warnings=(*report.warnings, short))
    if sample is not None and knowledge.costs:
        limit = "" if short else _why_so_many(knowledge.settings, budget, sample, scores)
        report = replace(report, limit=limit)
        alternatives = (*_by_money(best, knowledge, budget, sample), *alternatives)
    cost = knowledge.price
    unit = Unit(cost.usd(1, 0), cost.usd(0, 1)) if cost is not None else None
    return replace(report, alternatives=alternatives, unit=unit)


def _too_little(quote: Quote, scores: float, settings: Settings) -> str:
    """That max_cost ends the run before its end, in words; "": it does not. `scores`: USD of the small model's."""
    max_cost = settings.max_cost
    if max_cost is None or quote.usd is None or quote.usd.expected <= max_cost:
        return ""
    if scores > max_cost:
        return (
            f"max_cost = {max_cost:g} does not pay for the scores of {settings.models[0]}, about {scores:.4f} USD: "
            "the run is refused, but where the ledger has them"
        )
    calls = int(quote.calls.expected * max_cost / quote.usd.expected)
    pays = f"about {calls:,} of {quote.calls.expected:,.0f} calls" if calls else "no call"
    return f"max_cost = {max_cost:g} pays for {pays}: the run ends there, and its result is partial"


def scores_usd(plan: PhysicalPlan, knowledge: Knowledge) -> float:
    """What the small model's scores of every row cost, where a statement with a precision or a recall has them; else 0."""
    scores = _scores(plan, knowledge)
    usd = _by_model(scores, knowledge.settings.models[0], knowledge).usd if scores.calls.high else None
    return 0.0 if usd is None else usd.expected


def _scores(plan: PhysicalPlan, knowledge: Knowledge) -> Quote:
    """The small model's answers to every condition about every row, of each SELECT with a precision or a recall that they guide."""
    scores = Quote(NOTHING, NOTHING, NOTHING)
    for block in blocks(plan).values() if knowledge.settings.models else ():
        if not is_promised(block, knowledge.settings) or knowledge(block).rows.expected < FEWEST_ROWS:
            continue
        known = replace(_of_small(knowledge)(block), calls=None, answers=None, rates=None)
        for column in block.filter.columns:
            where = SemFilter(Formula.of(Virtual(column)), stages((column,)), block.filter.goal)
            alone = replace(block, filter=where, values=Values(), order=Order())
            for stage, count in calls_of(alone, known).by_stage.items():
                scores += Quote(count, *stage_tokens(stage, count, known))
    return scores


def _of_small(knowledge: Knowledge) -> Knowledge:
    """What is known, of the small one of two models."""
    name = knowledge.settings.models[0]
    model, settings = knowledge.models.get(name), knowledge.settings.with_values(model=name)
    return knowledge.of_model(price_known(model, settings), prompt_tokens(model, settings), form_of(model, settings))


def _by_model(quote: Quote, model: str, knowledge: Knowledge) -> Quote:
    """The price at what a model takes."""
    price = price_known(knowledge.models.get(model), knowledge.settings.with_values(model=model))
    return replace(quote, usd=None) if price is None else quote.priced(price.usd(1, 0), price.usd(0, 1))


def _why_so_many(settings: Settings, budget: int | None, sample: int, scores: float) -> str:
    """What money made of the budget, in words; "": nothing. `scores`: USD of the small model's."""
    if budget == sample:
        return ""
    if budget is not None and scores:
        beside = f"beside {scores:.4f} USD for the scores of {settings.models[0]}"
        return f"{budget:,} calls of {settings.models[1]}, what max_cost = {settings.max_cost:g} pays for {beside}"
    if budget is not None:
        return f"{budget:,} calls, what max_cost = {settings.max_cost:g} pays for"
    if settings.max_cost is None:
        return f"all, every row is asked: it costs no more than exact_below = {settings.exact_below:g} USD"
    return f"all, every row is asked: max_cost = {settings.max_cost:g} pays for them"


def _by_money(plan: PhysicalPlan, knowledge: Knowledge, budget: int | None, sample: int) -> tuple[Alternative, ...]:
    """Every row beside a sample of so many calls, each with its price and what it gives; empty where the sample holds every row."""
    settings, n = knowledge.settings, budget if budget is not None else sample
    whole, part = price_alone(plan, knowledge, None), price_alone(plan, knowledge, n)
    if whole.calls.high <= n or not isinstance(plan, Block):
        return ()
    rows = max(whole.calls.expected, n)
    half = NormalDist().inv_cdf((1 + settings.confidence) / 2) * (0.25 / n * (1 - n / rows)) ** 0.5
    width = f"an estimate, the interval of a COUNT at most ± {half:.1%} of the rows at {settings.confidence:.0%}"
    gives = width if plan.aggregate.present else "as far as they reach"
    limit = f"within max_cost = {settings.max_cost:g}" if settings.max_cost is not None else "cheap and quick enough"
    dear = f"above exact_seconds = {settings.exact_seconds:g}"
    if whole.usd is not None and whole.usd.high > settings.exact_below:
        dear = f"above exact_below = {settings.exact_below:g} USD"
    if settings.max_cost is not None:
        dear = f"more than max_cost = {settings.max_cost:g} pays for"
    every = Alternative("every row", whole, budget is None, f"exact; {f'chosen: {limit}' if budget is None else dear}")
    some = Alternative(f"{n:,} rows", part, budget is not None, f"{gives}{'' if budget is None else '; chosen'}")
    return (every, some) if budget is None else (some, every)


def is_promised(plan: Block, settings: Settings) -> bool:
    """Does a statement about the rows that a WHERE chooses have a precision or a recall, which a small model helps to reach?"""
    columns = plan.filter.columns
    chooses = not plan.aggregate.present and plan.filter.goal is not Goal.FIRST and plan.scan.join is None
    promised = settings.precision is not None or settings.recall is not None
    return promised and chooses and bool(columns) and all(c.is_condition for c in columns)


def _with_promise(
    plan: PhysicalPlan, scores: Quote, large_quote: Quote, knowledge: Knowledge
) -> tuple[Quote, tuple[Alternative, ...]]:
    """The price of a score of every row by the small model and the calls of the large one, beside those of each alone."""
    small, large = knowledge.settings.models
    every = price_alone(plan, knowledge, None)
    # it may end once the targets hold, not before the rows that teach what a score is worth
    least = large_quote.sampled(Range(min(1.0, PILOT / max(1.0, large_quote.calls.expected)), 1.0, 1.0))
    scores, answers = _by_model(scores, small, knowledge), _by_model(least, large, knowledge)
    usd = None if scores.usd is None or answers.usd is None else scores.usd + answers.usd
    two = replace((answers + replace(scores, every=NOTHING)).timed(knowledge.pace), usd=usd)
    sample: tuple[Alternative, ...] = ()
    if answers.calls.expected < every.calls.expected:
        what = f"{large} alone, {answers.calls.expected:,.0f} rows"
        sample = (Alternative(what, answers, False, "states what these calls allow, without the scores"),)
    targets = [
        f"{name} ≥ {share:.0%}"
        for name in ("precision", "recall")
        if (share := getattr(knowledge.settings, name)) is not None
    ]
    stated = f"chosen: {' and '.join(targets)}, or what the calls allow to state"
    return two, (
        Alternative(f"{small} scores all rows, {large} answers a sample", two, True, stated),
        *sample,
        Alternative(f"{large} alone, all rows", _by_model(every, large, knowledge), False, "exact"),
        Alternative(f"{small} alone, all rows", scores, False, "nothing is stated"),
    )


def _unsure(block: Block, knowledge: Knowledge) -> tuple[Range, Range]:
    """Calls for a block's conditions that a small model may answer, and those of the large one beside them: what is asked of both, and
    the rows of which the small one is not sure. It begins once so many rows are certain that it pays to learn when it is."""
    settings, statistics = knowledge.settings, knowledge(block)
    each = labelled_rows(settings.accuracy, settings.confidence)
    conditions = more = Range.exactly(0)
    for stage, calls in calls_of(block, statistics).by_stage.items():
        n = len(stage.columns)
        rows = Range.of(max, statistics.rows, calls) if stage not in block.filter.stages else statistics.rows
        fits = knowledge.budget is None or 2 * (rows.expected + each) * n <= knowledge.budget
        if not all(c.is_condition for c in stage.columns) or not calls.high or not fits:
            continue
        stops = stage in block.filter.stages and block.filter.goal is Goal.FIRST

        def begins(rows: float, calls: float, stops: bool = stops) -> bool:
            return rows >= CANDIDATES * each and (calls >= each or not stops)

        unsure = Range(LEAST_UNSURE, UNSURE, 1.0) * calls + Range.exactly(each * n)
        more += Range(
            unsure.low if begins(rows.low, calls.low) else 0.0,
            unsure.expected if begins(rows.expected, calls.expected) else 0.0,
            unsure.high if begins(rows.high, calls.high) else 0.0,
        )
        conditions += calls
    return conditions, more


def _with_cascade(
    plan: PhysicalPlan, large_quote: Quote, knowledge: Knowledge, budget: int | None
) -> tuple[Quote, tuple[Alternative, ...]]:
    """The price with a small and a large model, beside that of the large one alone, where the settings name two.

    Args:
        large_quote: of the large one alone.
        budget: calls; None: without limit.
    """
    settings = knowledge.settings
    if not settings.models or "cascade" in settings.disabled_rules:
        return large_quote, ()
    scores = _scores(plan, knowledge)
    if scores.calls.high:
        return _with_promise(plan, scores, large_quote, knowledge)
    if isinstance(plan, Block) and is_promised(plan, settings):
        return large_quote, ()
    asked = [_unsure(block, knowledge) for block in blocks(plan).values()]
    conditions, more = (sum((pair[i] for pair in asked), Range.exactly(0)) for i in (0, 1))
    if not more.expected:
        return replace(large_quote, calls=large_quote.calls + more, every=large_quote.every + more), ()
    large = price_known(knowledge.models.get(settings.models[1]), settings.with_values(model=settings.models[1]))
    small_quote = price_alone(plan, _of_small(knowledge), budget)
    calls = max(1.0, large_quote.calls.expected)
    part, by_small = more.times(1 / calls), min(1.0, conditions.expected / calls)

    def both(small: Range, large: Range) -> Range:
        return small.times(by_small) + large.times(1 - by_small) + large * part

    tokens_in = both(small_quote.input_tokens, large_quote.input_tokens)
    tokens_out = both(small_quote.output_tokens, large_quote.output_tokens)
    two = replace(large_quote, calls=large_quote.calls + more, every=large_quote.calls + more)
    two = replace(two, input_tokens=tokens_in, output_tokens=tokens_out).timed(knowledge.pace)
    usd = None
    if small_quote.usd is not None and large is not None:
        large_quote = large_quote.priced(large.usd(1, 0), large.usd(0, 1))
        assert large_quote.usd is not None
        usd = both(small_quote.usd, large_quote.usd)
    two = replace(two, usd=usd)
    cheaper = usd is None or large_quote.usd is None or usd.expected < large_quote.usd.expected
    names = settings.models
    why = (
        "a price is not known: the small one goes first"
        if usd is None
        else "the cheaper one, as long as the small one is sure"
    )
    one = Alternative(
        f"{names[0]} first, {names[1]} where it is not sure", two, cheaper, f"chosen: {why}" if cheaper else "dearer"
    )
    other = Alternative(
        f"{names[1]} alone", large_quote, not cheaper, "dearer" if cheaper else "chosen: the cheaper one"
    )
    fast = Alternative(f"{names[0]} alone", small_quote, False, "nothing is stated of its answers")
    return (two, (one, other, fast)) if cheaper else (large_quote, (other, one, fast))
