"""Prices of vendors' models, from the genai-prices package where it is installed; else, and for unknown models, unknown."""

from __future__ import annotations

from functools import cache

from uql.llm.providers.base import Price


@cache
def price_of(vendor: str, model: str) -> Price | None:
    """USD per million tokens of a model ("openai", "anthropic"), None where nobody here knows it."""
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    try:
        found = calc_price(Usage(input_tokens=1000, output_tokens=1000), model, provider_id=vendor)
    except LookupError:
        return None
    return Price(float(found.input_price) * 1000, float(found.output_price) * 1000)
