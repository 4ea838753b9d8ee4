"""What can be said of a query before it runs: its plan, its price, and what earlier runs taught."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from uql.base.settings import Settings
    from uql.compiler.bound import BoundStatement
    from uql.compiler.cost import Quote
    from uql.compiler.explain import Explained
    from uql.compiler.physical import PhysicalPlan
    from uql.llm.open_ledgers import Ledgers
    from uql.llm.providers.base import Provider
    from uql.pricing.known import Knowledge
    from uql.pricing.learned import Statistics


class Foresight:
    """Of one connection. No model is asked here.

    Args:
        model: given as a provider, else None and the settings name one.
        models: those of a cascade that were given as providers, by name.
        ledgers: those of its session.
    """

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        model: Provider | None,
        models: Mapping[str, Provider],
        ledgers: Ledgers,
    ) -> None:
        self._cursor, self._model, self._models, self._ledgers = cursor, model, models, ledgers
        self._opened: dict[str | None, Provider] = {}  # those that runs have opened by name; not asked here
        self._memories: dict[str, Statistics] = {}  # by model and database

    def explained(self, bound: BoundStatement, plan: PhysicalPlan, settings: Settings) -> Explained:
        """What EXPLAIN says.

        Args:
            bound: the statement.
            plan: of its query.
            settings: of the statement.
        """
        from uql.pricing.explanation import explanation

        calls = limit_of(plan, settings)
        with self._recalling(self.knowledge(settings, calls)) as known:
            return explanation(bound, plan, known, calls)

    def quoted(self, plan: PhysicalPlan, settings: Settings) -> Quote:
        """The price."""
        from uql.pricing.explanation import price

        calls = limit_of(plan, settings)
        with self._recalling(self.knowledge(settings, calls)) as known:
            return price(plan, known, calls)

    @contextmanager
    def _recalling(self, known: Knowledge) -> Iterator[Knowledge]:
        """With what the ledger answers, where the model is at hand that keys are made for."""
        from uql.kernels.duck import Duck
        from uql.pricing.recall import answered

        settings = known.settings
        model = self._model or self._opened.get(settings.model)
        if (
            model is None
            or settings.models
            or isinstance(settings.examples, str)
            or not self._ledgers.exists(settings.ledger)
        ):
            yield known
        else:
            with self._ledgers.open(settings.ledger) as ledger:
                duck = Duck(self._cursor)
                try:
                    known.recall = lambda block: answered(block, model, ledger, duck)
                    yield known
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
        from uql.pricing.model_prices import pace_of, price_known, prompt_of, rows_of, weighs_pairs

        memory = memory or self.remembered(settings)
        if model is not None:
            self._opened[settings.model] = model
        model = model or self._model
        named = settings
        if (
            model is None and settings.models and settings.model is None
        ):  # a cascade: the large one answers what is not a condition
            model, named = self._models.get(settings.models[1]), settings.with_values(model=settings.models[1])
        return Knowledge(
            self._cursor,
            memory,
            price=price_known(model, named),
            pace=pace_of(model, named, memory.seconds_a_call()),
            settings=settings,
            budget=calls,
            rows_at_once=rows_of(model, named),
            prompt=prompt_of(model, named),
            weighs_pairs=weighs_pairs(model, named),
            models=self._models,
        )

    def remembered(self, settings: Settings) -> Statistics:
        """What earlier queries taught of this model on this database, read from the ledger once."""
        from uql.pricing.learned import Statistics, scope_of

        scope = scope_of(self._cursor, self._model, settings)
        if scope not in self._memories:
            self._memories[scope] = Statistics.load(settings, scope)
        return self._memories[scope]


def limit_of(plan: PhysicalPlan, settings: Settings) -> int | None:
    """The calls that a query may make; None: without limit."""
    from uql.compiler.physical import Block

    return settings.calls(aggregates=isinstance(plan, Block) and plan.aggregate.present and not plan.inner.derived)
