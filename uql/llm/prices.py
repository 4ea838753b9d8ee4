"""What a model costs, by its name: the user's own prices, else the genai-prices package, else the table shipped here (prices.toml)."""

from __future__ import annotations

import re
import tomllib
from datetime import datetime
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from uql.base import toml_file
from uql.base.endpoints import origin
from uql.base.errors import ConfigError, ModelError
from uql.base.settings import Settings
from uql.base.vendors import VENDORS
from uql.llm.providers.address import LOOPBACK
from uql.llm.providers.base import Price

SELLERS = {origin(vendor.url): vendor.seller for vendor in VENDORS.values() if vendor.url}
FREE = ("local", "ollama", "scripted")  # kinds of models without a price per token
SOLD_AS = {"azure": "openai"}  # vendors whose models cost what another's table says
_VERSION = re.compile(r"-(latest|\d{4}-\d\d-\d\d|\d{8})$")  # of a model, at the end of its name


def price_of(name: str, settings: Settings | None = None) -> Price | None:
    """USD per million tokens of a model, None where it is unknown. Nothing is opened or asked.

    Args:
        name: as the setting `model` has it.
        settings: with the user's own prices, which come first.
    """
    own = None if settings is None else settings.price(name.partition("?")[0])
    if own is not None:
        return Price(own.input, own.output, own.cached)
    if name.startswith(("http://", "https://")):
        url, _, model = name.partition("#")
        if urlsplit(url).hostname in LOOPBACK:
            return Price(0.0, 0.0)
        try:
            seller = SELLERS.get(origin(url))
        except ConfigError:
            return None
    else:
        kind, _, model = name.partition(":")
        if kind.partition("?")[0] in FREE:
            return Price(0.0, 0.0)
        if kind == "oracle":
            return _oracle_price(model)
        if kind == "systemone" and model.startswith(("http://", "https://")):
            return price_of(model, settings)
        seller = VENDORS[kind].seller if kind in VENDORS else None
    model = model.partition("?")[0]
    if not seller or not model:
        return None
    return _packaged(seller, model) or _shipped(seller, model)


def unpriced(name: str) -> ModelError:
    """The refusal of a run with a `max_cost` that asks a model whose price is unknown."""
    return ModelError(
        f"max_cost is set, and the price of {name} is not known",
        code="UQL402",
        help="give its price in the configuration (prices), or leave max_cost out",
    )


def _oracle_price(path: str) -> Price | None:
    """What the file of an oracle says that its answers cost; None where it cannot be read: opening it says why."""
    try:
        file = Path(path).expanduser()
        return _stated_at(file, file.stat().st_mtime_ns)
    except (OSError, ValueError, AttributeError, TypeError):
        return None


@lru_cache(maxsize=16)
def _stated_at(file: Path, changed: int) -> Price:
    """`changed`: when the file was, in ns; to parse it takes as long as all else that a quote does."""
    table = toml_file.parsed(toml_file.content(file)).get("price", {})
    return Price(float(table.get("input", 0.0)), float(table.get("output", 0.0)))


@cache
def _packaged(vendor: str, model: str, at: datetime | None = None) -> Price | None:
    """The price that the genai-prices package has. `at`: some change with the date or the hour; None: now."""
    try:
        from genai_prices import Usage, calc_price
    except ImportError:
        return None
    try:
        calculation = calc_price(
            Usage(input_tokens=1000, output_tokens=1000), model, provider_id=vendor, genai_request_timestamp=at
        )
    except LookupError:
        return None
    listed = calculation.model_price
    if listed.input_mtok is None:
        return None
    cached, written = (_first_tier(price) for price in (listed.cache_read_mtok, listed.cache_write_mtok))
    return Price(float(calculation.input_price) * 1000, float(calculation.output_price) * 1000, cached, written)


def _first_tier(price: Any) -> float | None:
    """Of a price that grows with the request: that of a short one."""
    return None if price is None else float(getattr(price, "base", price))


def _shipped(vendor: str, model: str) -> Price | None:
    """The price in prices.toml of a model, or of its name without a date or `-latest`."""
    if vendor == "openrouter":
        maker, _, model = model.partition("/")
        vendor = {"mistralai": "mistral"}.get(maker, maker)
    listed = shipped().get(SOLD_AS.get(vendor, vendor), {})
    rates = listed.get(model) or listed.get(_VERSION.sub("", model)) or listed.get("*")
    return None if rates is None else Price(**rates)


@cache
def shipped() -> dict[str, dict[str, dict[str, float]]]:
    """The tables of prices.toml: vendor → model → USD per million tokens."""
    tables = tomllib.loads((files("uql.llm") / "prices.toml").read_text(encoding="utf-8"))
    return {vendor: listed for vendor, listed in tables.items() if isinstance(listed, dict)}
