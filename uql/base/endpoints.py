"""Where models are and what they cost, as the user's own configuration says: endpoints with their keys, prices.

[endpoints."https://gateway.example"]     # an origin: scheme, host, port
key_env = "GATEWAY_KEY"                   # the variable that holds its key; the key goes to this origin alone
requests_per_minute = 600
tokens_per_minute = 100000
concurrency = 32

[prices."https://gateway.example/v1#m"]   # or "openai:m": USD per million tokens
input = 0.5
output = 2.0
cached = 0.05                             # optional: input that the vendor has in its prompt cache
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

from uql.base.errors import ConfigError

PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server of the user's: its key's variable, and what it allows."""

    origin: str
    key_env: str | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    concurrency: int | None = None


@dataclass(frozen=True, slots=True)
class NamedPrice:
    """What a model costs, in USD per million tokens."""

    model: str
    input: float
    output: float
    cached: float | None = None  # input read from the vendor's prompt cache; None: as other input


def origin(url: str) -> str:
    """Scheme, host and port of an address.

    >>> origin("https://Host.example/v1"), origin("http://127.0.0.1:8080/v1#m")
    ('https://host.example:443', 'http://127.0.0.1:8080')
    """
    parts = urlsplit(url)
    try:
        port = parts.port or PORTS[parts.scheme]
    except (ValueError, KeyError):
        port = None
    if port is None or not parts.hostname:
        raise ConfigError(f"{url!r} is not an http(s) address", help="as https://host.example or http://127.0.0.1:8080")
    return f"{parts.scheme}://{parts.hostname}:{port}"


def endpoints(value: Any) -> tuple[Endpoint, ...]:
    """The endpoints of a table of the configuration. Raises ConfigError naming what cannot be."""
    if isinstance(value, tuple) and all(isinstance(item, Endpoint) for item in value):
        return value
    servers = []
    for url, entry in _tables("endpoints", value):
        choices = {"key_env", "requests_per_minute", "tokens_per_minute", "concurrency"}
        _check_keys(f'endpoints."{url}"', entry, choices)
        key = entry.get("key_env")
        if key is not None and not (isinstance(key, str) and key.isidentifier()):
            raise ConfigError(
                f'endpoints."{url}": key_env = … names a variable of the environment',
                help="it never holds the key itself",
            )
        rates = {n: _number(f'endpoints."{url}"', n, v, above=0) for n, v in entry.items() if n != "key_env"}
        most = rates.pop("concurrency", None)
        servers.append(Endpoint(origin(url), key, **rates, concurrency=None if most is None else max(1, int(most))))
    return tuple(servers)


def prices(value: Any) -> tuple[NamedPrice, ...]:
    """The prices of a table of the configuration. Raises ConfigError naming what cannot be."""
    if isinstance(value, tuple) and all(isinstance(item, NamedPrice) for item in value):
        return value
    price_list = []
    for model, entry in _tables("prices", value):
        _check_keys(f'prices."{model}"', entry, {"input", "output", "cached"})
        if not {"input", "output"} <= set(entry):
            raise ConfigError(f'prices."{model}" needs input and output', help="USD per million tokens")
        stated = {name: _number(f'prices."{model}"', name, value) for name, value in entry.items()}
        price_list.append(NamedPrice(model, **stated))
    return tuple(price_list)


def _tables(name: str, value: Any) -> list[tuple[str, Mapping[str, Any]]]:
    if not isinstance(value, Mapping) or not all(isinstance(entry, Mapping) for entry in value.values()):
        raise ConfigError(f"{name} is a table of tables of the user's file", help="see docs/models.md")
    return list(value.items())


def _check_keys(place: str, entry: Mapping[str, Any], choices: set[str]) -> None:
    for name in entry:
        if name not in choices:
            raise ConfigError(f"{place}: there is no {name!r}", help=f"choices: {', '.join(sorted(choices))}")


def _number(place: str, name: str, value: Any, *, above: float | None = None) -> float:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if not fits or value < 0 or (above is not None and value <= above):
        raise ConfigError(f"{place}: {name} = {value!r} is not possible", help="a number above 0")
    return float(value)
