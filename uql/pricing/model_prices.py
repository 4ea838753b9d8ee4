"""Prices and pace of a model before it is asked: from a provider that is at hand, else by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from uql.compiler.cost import FORM_TOKENS, Pace, Range, Unit
from uql.llm.prices import price_of
from uql.llm.providers import server_abilities as remembered
from uql.llm.providers.base import Price, Provider, RowsProvider

if TYPE_CHECKING:
    from uql.base.settings import Settings
    from uql.kernels.cascade import Cascade

LOCAL_SECONDS = Range(0.0, 0.5, 10.0)  # of a call to a model on this machine that was not timed yet
IN_FLIGHT = {
    "local": 1,
    "openai": 256,
    "ollama": 64,
    "": 8,
}  # requests to a model that is not open yet; 64 of the others
ROWS_APART = (
    32  # of a request, where they are decisions of their own: Jev takes 64,000 tokens, and rows here up to 1,000
)
REMOTE_SECONDS = Range(0.2, 1.0, 5.0)


def price_known(model: Provider | None, settings: Settings) -> Price | None:
    """USD per million tokens, None where it is unknown. No model is opened or called."""
    price = model.price if model is not None else price_of(settings.model or "", settings)
    return price.halved() if price is not None and settings.batch else price


def cascade_of(settings: Settings, providers: Mapping[str, Provider]) -> Cascade | None:
    """The cascade that the settings name, None where they name none; `providers` are by name."""
    if not settings.models or "cascade" in settings.disabled_rules:
        return None
    small, large = settings.models
    from uql.kernels.cascade import Cascade

    return Cascade(
        providers.get(small, small),
        providers.get(large, large),
        settings.accuracy,
        settings.confidence,
        (small, large),
        small_share(settings, providers),
    )


def small_share(settings: Settings, providers: Mapping[str, Provider]) -> float:
    """What a request of the small model costs beside one of the large; 0 where a price is not known."""
    small, large = (price_known(providers.get(m), settings.with_values(model=m)) for m in settings.models)
    if small is None or large is None or not large.input:
        return 0.0
    return unit_of(small).input / unit_of(large).input if small.input else 0.0


def form_of(model: Provider | None, settings: Settings) -> int:
    """Tokens of a reply around each answer: a model elsewhere answers in JSON."""
    local = model.is_local if model is not None else (settings.model or "").partition(":")[0] in ("local", "oracle", "")
    return 0 if local else FORM_TOKENS


def weighs_pairs(model: Provider | None, settings: Settings) -> bool:
    """Can the model weigh two texts against each other? Those of this process cannot."""
    return not is_in_process(settings) if model is None else model.capabilities.weighs_pairs


def watches(model: Provider | None, settings: Settings) -> bool:
    """Does the model take videos as files? One that is not open yet: as it said when it was tried, or as its vendor's models do."""
    can = remembered.load(settings.model or "") if model is None else model.capabilities
    return (settings.model or "").startswith("gemini:") if can is None else can.video is True


def is_in_process(settings: Settings) -> bool:
    """Do the settings name a model of this process?"""
    return (settings.model or "").partition(":")[0].partition("?")[0] == "local"


def takes_rows(model: Provider | None, settings: Settings) -> bool:
    """May several rows share a request to this model? Not to one of this process."""
    return not is_in_process(settings) if model is None else isinstance(model, RowsProvider)


def rows_apart(model: Provider | None, settings: Settings) -> bool:
    """Are the rows of a request to this model decisions of their own? They are by the protocol of decision models."""
    kind = (settings.model or "").partition(":")[0]
    return kind == "systemone" if model is None else model.capabilities.rows_apart


def rows_of(model: Provider | None, settings: Settings, measured: int | None = None) -> int:
    """Rows that a request to this model may hold: as the settings say; under 'auto' as measured, else one, or ROWS_APART.

    Args:
        measured: by `uql eval --packed`; None: it was not.
    """
    rows = settings.rows_per_request
    unmeasured = ROWS_APART if rows_apart(model, settings) else 1
    rows = measured or unmeasured if rows == "auto" else int(rows)
    return rows if takes_rows(model, settings) else 1


def rows_measured(model: Provider | None, settings: Settings, measured: int | None) -> bool:
    """False where rows could share requests, and under 'auto' do not, since nobody measured whether that changes answers.

    Args:
        measured: by `uql eval --packed`; None: it was not.
    """
    settled = (model is not None and model.is_local) or rows_apart(model, settings) or not takes_rows(model, settings)
    return measured is not None or settings.rows_per_request != "auto" or settled


def unit_of(price: Price | None) -> Unit:
    """What plans are compared by: USD where they cost something, else tokens."""
    if price is None or not (price.input or price.output):
        return Unit()
    return Unit(price.input / 1e6, price.output / 1e6)


def pace_of(model: Provider | None, settings: Settings, measured: Range | None) -> Pace:
    """Requests in flight, what the provider allows a minute, and the seconds of a call: measured before, else a guess.

    Args:
        model: None: it is guessed from its name.
        measured: seconds of a call; None: never measured.
    """
    name = settings.model or ""
    local = model.is_local if model is not None else name.partition(":")[0] in ("local", "oracle")
    each = measured or (LOCAL_SECONDS if local else REMOTE_SECONDS)
    if model is None:
        return Pace(settings.concurrency or IN_FLIGHT.get(name.partition(":")[0].partition("?")[0], 64), each)
    limits = model.limits
    return Pace(settings.concurrency or limits.concurrency, each, limits.requests_per_minute, limits.tokens_per_minute)
