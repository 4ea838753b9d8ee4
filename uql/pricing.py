"""Prices and pace of a model before it is asked: from a provider that is at hand, else by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uql.compiler.cost import Pace, Range, Unit
from uql.llm.prices import own_price, price_of
from uql.llm.providers.base import Price

if TYPE_CHECKING:
    from uql.llm.providers.base import Provider
    from uql.settings import Settings

VENDORS = ("openai", "anthropic")
LOCAL_SECONDS = Range(0.0, 0.5, 10.0)  # of a call to a model on this machine that nobody has timed yet
REMOTE_SECONDS = Range(0.2, 1.0, 5.0)


def price_known(model: Provider | None, settings: Settings) -> Price | None:
    """USD per million tokens, None where nobody here knows it. No model is opened and none is asked."""
    if model is not None:
        return model.price
    vendor, _, name = (settings.model or "").partition(":")
    if vendor in VENDORS and name:
        return price_of(vendor, name, settings)
    return own_price(settings.model or "", settings)


def unit_of(price: Price | None) -> Unit:
    """What plans are compared by: USD where they cost something, else tokens."""
    if price is None or not (price.input or price.output):
        return Unit()
    return Unit(price.input / 1e6, price.output / 1e6)


def pace_of(model: Provider | None, settings: Settings, measured: Range | None) -> Pace:
    """Requests in flight, what the provider allows a minute, and the seconds of a call: measured before, else a guess."""
    named = settings.model or ""
    local = model.is_local if model is not None else named.partition(":")[0] in ("local", "oracle")
    each = measured or (LOCAL_SECONDS if local else REMOTE_SECONDS)
    if model is None:
        return Pace(settings.concurrency or (1 if named.startswith("local") else 8), each)
    limits = model.limits
    return Pace(settings.concurrency or limits.concurrency, each, limits.requests_per_minute, limits.tokens_per_minute)
