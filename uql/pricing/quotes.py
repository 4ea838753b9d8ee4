"""A query before it runs: its plan, its price, and what earlier runs taught."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from uql.base.duckdb_connections import CurrentDatabase

if TYPE_CHECKING:
    from uql.base.settings import Settings
    from uql.compiler.bound import BoundStatement
    from uql.compiler.cost import Quote
    from uql.compiler.explain import Explained
    from uql.compiler.physical import PhysicalPlan
    from uql.llm.open_ledgers import Ledgers
    from uql.llm.providers.base import Provider
    from uql.pricing.known import Knowledge
    from uql.pricing.learned import Statistics
    from uql.sources.catalog import Catalog

MONEY_SPENT = 0.8  # of `max_cost`, as calls: their price is an estimate, and each request reserves its upper bound


class Foresight:
    """Of one connection. No model is asked here.

    Args:
        given: the provider that answers under these settings; None: the settings name one.
        models: those of a cascade that were given as providers, by name.
        ledgers: those of its session.
    """

    def __init__(
        self,
        catalog: Catalog,
        given: Callable[[Settings], Provider | None],
        models: Mapping[str, Provider],
        ledgers: Ledgers,
    ) -> None:
        self._catalog, self._given, self._models, self._ledgers = catalog, given, models, ledgers
        self._providers: dict[str | None, Provider] = {}  # those that runs have opened by name; not asked here
        self._limit: tuple[PhysicalPlan, Settings, int | None] | None = None  # of the last statement
        self._memories: dict[str, Statistics] = {}  # by model and database

    def explained(self, bound: BoundStatement, plan: PhysicalPlan, settings: Settings) -> Explained:
        """What EXPLAIN says.

        Args:
            bound: the statement.
            plan: of its query.
            settings: of the statement.
        """
        from uql.pricing.explanation import explanation

        calls = self.limit(plan, settings)
        sample = default_limit(plan, settings) if self._by_money(settings) else None
        with self._recalling(self.knowledge(settings, calls)) as knowledge:
            report = explanation(bound, plan, knowledge, calls, sample)
        refusals = self._refusals(settings) if bound.semantic else ()
        return replace(report, warnings=(*report.warnings, *refusals))

    def _refusals(self, settings: Settings) -> tuple[str, ...]:
        """That a run would be refused, since a model has no price by which `max_cost` could be kept. A plug-in says it once it is open."""
        from uql.llm.prices import unpriced
        from uql.llm.providers import BUILT_IN
        from uql.pricing.model_prices import price_known

        if settings.max_cost is None:
            return ()
        given, asked_first = self._given(settings), settings.models[:1]
        names = settings.models or ((settings.model,) if settings.model else ())
        models = {given.name: given} if given is not None else {name: self._models.get(name) for name in names}
        return tuple(
            f"the run would {f'end where it first asks {name}' if name in asked_first else 'be refused'}: UQL402: {unpriced(name).message}"
            for name, model in models.items()
            if (model is not None or name.partition(":")[0] in BUILT_IN)
            and price_known(model, settings.with_values(model=name)) is None
        )

    def quoted(self, plan: PhysicalPlan, settings: Settings, *, with_ledger: bool = True) -> Quote:
        """The price.

        Args:
            plan: the physical plan.
            with_ledger: answers that the ledger has cost nothing; else as if no row was ever asked.
        """
        from uql.pricing.explanation import money, price

        calls = self.limit(plan, settings)
        knowledge = self.knowledge(settings, calls)
        with self._recalling(knowledge) if with_ledger else nullcontext(knowledge) as known:
            return price(plan, known, calls).paid_by(*money(settings))

    def limit(self, plan: PhysicalPlan, settings: Settings) -> int | None:
        """The calls that a query may make; None: without limit.

        Those of the budget. Where none is set and the model has a price, money decides: every row is asked where that costs at most
        `exact_below` USD and takes at most `exact_seconds`, and `max_cost` allows as many calls as it pays for. What is learned from
        runs plays no part, so that the same statement has the same limit again. A provider of the caller's own in this process keeps
        the default budget, as models without a price do.
        """
        default = default_limit(plan, settings)
        if not self._by_money(settings):
            return default
        if self._limit is None or self._limit[0] is not plan or self._limit[1] != settings:
            self._limit = (plan, settings, self._limit_by_money(plan, settings, default))
        return self._limit[2]

    def _by_money(self, settings: Settings) -> bool:
        """May money decide how many rows are asked?"""
        providers = [self._given(settings), *(self._models.get(name) for name in settings.models)]
        own = any(model is not None and model.is_local for model in providers)
        return settings.budget is None and not settings.exact and settings.error is None and not own

    def _limit_by_money(self, plan: PhysicalPlan, settings: Settings, default: int | None) -> int | None:
        from uql.compiler.physical import SqlQuery
        from uql.pricing.explanation import price, price_alone, scores_usd
        from uql.pricing.learned import Statistics

        knowledge = self.knowledge(settings, None, Statistics())
        if isinstance(plan, SqlQuery) or not knowledge.costs:
            return default
        whole = price(plan, knowledge, None)
        if whole.usd is None or whole.seconds is None or not whole.calls.high:
            return default
        most = settings.max_cost
        if whole.usd.high <= min(settings.exact_below, most or settings.exact_below):
            longest = min(settings.exact_seconds, settings.max_seconds or settings.exact_seconds)
            if whole.seconds.expected <= longest:
                return None
        if most is None:
            return default
        if whole.usd.high <= MONEY_SPENT * most:
            return None
        without_scores = price_alone(plan, knowledge, None)
        assert without_scores.usd is not None
        beside = scores_usd(plan, knowledge)  # of the small model, whose calls the budget does not count
        calls = max(1, int((MONEY_SPENT * most - beside) * without_scores.calls.expected / without_scores.usd.expected))
        if beside or not settings.models:
            return calls
        both = int(MONEY_SPENT * most * whole.calls.expected / whole.usd.expected)
        # the small one may not be worth its calls
        both_usd = price(plan, self.knowledge(settings, both, Statistics()), both).usd
        return both if both_usd is not None and both_usd.expected <= most else calls

    @contextmanager
    def _recalling(self, knowledge: Knowledge) -> Iterator[Knowledge]:
        """With what the ledger answers, where the model is at hand that keys are made for."""
        from uql.kernels.duck import Duck
        from uql.pricing.recall import Recall

        settings = knowledge.settings
        model = self._given(settings) or self._providers.get(settings.model)
        if (
            model is None
            or settings.models
            or isinstance(settings.examples, str)
            or not self._ledgers.exists(settings.ledger)
        ):
            yield knowledge
        else:
            with self._ledgers.open(settings.ledger) as ledger:
                duck = Duck(self._catalog.cursor)
                try:
                    described = knowledge.memory.descriptions if settings.describe else None
                    knowledge.recall = Recall(model, ledger, duck, described)
                    yield knowledge
                finally:
                    duck.close()

    def knowledge(
        self,
        settings: Settings,
        calls: int | None,
        memory: Statistics | None = None,
        model: Provider | None = None,
    ) -> Knowledge:
        """What is known before a run: of tables from DuckDB, of terms from earlier runs, of the model from its provider.

        Args:
            calls: that the run may make; None: any number.
            memory: what earlier runs taught; None: what the ledger remembers.
            model: the provider that is asked, where it is open; else what is known of it by its name.
        """
        from uql.pricing.known import Knowledge
        from uql.pricing.model_prices import (
            form_of,
            pace_of,
            price_known,
            rows_apart,
            rows_measured,
            rows_of,
            watches,
            weighs_pairs,
        )
        from uql.pricing.prompt_sizes import prompt_tokens

        memory = memory or self.remembered(settings)
        if model is not None:
            self._providers[settings.model] = model
        model = model or self._given(settings)
        model_settings = settings
        # a cascade: the large one answers what is not a condition
        if model is None and settings.models and settings.model is None:
            model, model_settings = self._models.get(settings.models[1]), settings.with_values(model=settings.models[1])
        return Knowledge(
            self._catalog.cursor,
            memory,
            price=price_known(model, model_settings),
            pace=pace_of(model, model_settings, memory.seconds_a_call()),
            settings=settings,
            budget=calls,
            rows_at_once=rows_of(model, model_settings, memory.rows),
            rows_apart=rows_apart(model, model_settings),
            rows_measured=rows_measured(model, model_settings, memory.rows),
            prompt=prompt_tokens(model, model_settings),
            form=form_of(model, model_settings),
            weighs_pairs=weighs_pairs(model, model_settings),
            watches=watches(model, model_settings),
            models=self._models,
        )

    def remembered(self, settings: Settings, database: CurrentDatabase | None = None) -> Statistics:
        """What earlier queries taught of this model on a database, by default the current one; read from the ledger once."""
        from uql.pricing.learned import Statistics, scope_of

        scope = scope_of(database or self._catalog.database, self._given(settings), settings)
        if scope not in self._memories:
            self._memories[scope] = Statistics.load(settings, scope)
        return self._memories[scope]


def default_limit(plan: PhysicalPlan, settings: Settings) -> int | None:
    """The calls that the settings allow a query, whatever they cost; None: without limit."""
    from uql.compiler.physical import Block

    return settings.calls(aggregates=isinstance(plan, Block) and plan.aggregate.present and not plan.inner.derived)
