"""What can be said of a query before it runs: its plan, its price, and what earlier runs taught."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

    from uql.compiler.bound import BoundStatement
    from uql.compiler.cost import Quote
    from uql.compiler.explain import Explained
    from uql.compiler.physical import PhysicalPlan
    from uql.explaining import Knowledge
    from uql.llm.providers.base import Provider
    from uql.settings import Settings
    from uql.statistics import Statistics

CALLS_AGGREGATE, CALLS_ROWS = 128, 256


class Foresight:
    """Of one connection. No model is asked here.

    Args:
        model: given as a provider, else None and the settings name one.
        models: those of a cascade that were given as providers, by name.
    """

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, model: Provider | None, models: Mapping[str, Provider]
    ) -> None:
        self._cursor, self._model, self._models = cursor, model, models
        self._memories: dict[str, Statistics] = {}  # by model and database

    def explained(self, bound: BoundStatement, plan: PhysicalPlan, settings: Settings) -> Explained:
        """What EXPLAIN says."""
        from uql.explaining import explanation

        calls = limit_of(plan, settings)
        return explanation(bound, plan, self.knowledge(settings, calls), calls)

    def quoted(self, plan: PhysicalPlan, settings: Settings) -> Quote:
        """The price."""
        from uql.explaining import price

        calls = limit_of(plan, settings)
        return price(plan, self.knowledge(settings, calls), calls)

    def knowledge(self, settings: Settings, calls: int | None) -> Knowledge:
        """What is known before a run: of tables from DuckDB, of terms from earlier runs, of the model from its provider."""
        from uql.explaining import Knowledge
        from uql.pricing import pace_of, price_known, prompt_of, rows_of, weighs_pairs

        memory = self.remembered(settings)
        return Knowledge(
            self._cursor,
            memory,
            price=price_known(self._model, settings),
            pace=pace_of(self._model, settings, memory.seconds_a_call()),
            settings=settings,
            budget=calls,
            rows_at_once=rows_of(self._model, settings),
            prompt=prompt_of(self._model, settings),
            weighs_pairs=weighs_pairs(self._model, settings),
            models=self._models,
        )

    def remembered(self, settings: Settings) -> Statistics:
        """What earlier queries taught of this model on this database, read from the ledger once."""
        from uql.statistics import Statistics, scope_of

        scope = scope_of(self._cursor, self._model, settings)
        if scope not in self._memories:
            self._memories[scope] = Statistics.load(settings, scope)
        return self._memories[scope]


def limit_of(plan: PhysicalPlan, settings: Settings) -> int | None:
    """The calls that a query may make: the setting, else 128 where it has aggregates only and 256 where not."""
    from uql.compiler.physical import Block

    if settings.exact or settings.budget == "all":
        return None
    if settings.budget is not None:
        return int(settings.budget)
    aggregates = isinstance(plan, Block) and plan.aggregated and not plan.derived
    return CALLS_AGGREGATE if aggregates else CALLS_ROWS
