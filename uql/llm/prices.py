"""Prices: those of the user's configuration, else of vendors' models from the genai-prices package where it is installed, else unknown."""

from __future__ import annotations

from functools import cache

from uql.base.settings import Settings
from uql.llm.providers.base import Price


def price_of(vendor: str, model: str, settings: Settings | None = None, *, name: str = "") -> Price | None:
    """USD per million tokens of a model, None where it is unknown.

    Args:
        vendor: as genai-prices calls it: "openai", "anthropic", "google" …
        model: as the vendor calls it.
        settings: with the user's own prices, which come first.
        name: of the model in these; "": VENDOR:MODEL.
    """
    return own_price(name or f"{vendor}:{model}", settings) or _listed(vendor, model)


def own_price(name: str, settings: Settings | None) -> Price | None:
    """What the user's configuration says that a model costs, None where it says nothing."""
    found = None if settings is None else settings.price(name)
    return None if found is None else Price(found.input, found.output)


@cache
def _listed(vendor: str, model: str) -> Price | None:
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    try:
        found = calc_price(Usage(input_tokens=1000, output_tokens=1000), model, provider_id=vendor)
    except LookupError:
        return None
    return Price(float(found.input_price) * 1000, float(found.output_price) * 1000)
