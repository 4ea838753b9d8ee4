"""ollama:MODEL, openrouter:MODEL, azure:DEPLOYMENT, mistral:MODEL …: hosts of OpenAI's protocol, by name.

Each is the server of a known address, with the key of a variable of its own, which is sent to that address alone.
"""

from __future__ import annotations

import os
from functools import partial

from uql.base.errors import BackendError, ConfigError
from uql.base.settings import Settings
from uql.base.vendors import VENDORS
from uql.llm.prices import price_of
from uql.llm.providers import HOSTED, gemini_api
from uql.llm.providers.address import address
from uql.llm.providers.base import CallError, Limits
from uql.llm.providers.compatible import Compatible
from uql.llm.providers.http_client import VENDOR_URL, client, vendor_key
from uql.llm.providers.wire import call

HOSTS = {name: VENDORS[name] for name in HOSTED}


def open_provider(spec: str, settings: Settings) -> Compatible:
    """The model of a named host.

    Args:
        spec: HOST:MODEL.
    Raises: ConfigError where the address of the host is not set; AuthError without its key.
    """
    kind, _, model = spec.partition(":")
    host = HOSTS[kind]
    url = address_of(kind)
    key = vendor_key(host.key_env, host.title, offline=settings.offline) if host.key_env else None
    price = price_of(spec, settings)
    provider = Compatible(url, model, api_key=key, timeout_s=settings.timeout_s, price=price)
    if url == host.url:  # elsewhere another model may have the same name
        provider.name = spec
    return provider


async def models_of(place: str, settings: Settings) -> list[str]:
    """The names of the models that a server says it has, sorted.

    Args:
        place: a name of `HOSTS`, "openai", "gemini", or http(s)://host/v1.
        settings: holds the user's endpoints, with the variables of their keys.
    Raises: ConfigError, AuthError as on opening a model there; BackendError where the server cannot be reached or lists nothing.
    """
    path, seconds = "/models", settings.timeout_s
    if place.startswith(("http://", "https://")):
        at = address(f"{place}#any", settings, Limits())
        url, asking = at.url, client(at.url, api_key=at.api_key, timeout_s=seconds)
    elif place == "openai":
        url = VENDOR_URL
        asking = client(url, api_key=vendor_key("OPENAI_API_KEY", "OpenAI"), timeout_s=seconds, vendor=True)
    elif place == "gemini":
        url, path = gemini_api.VENDOR_URL, "/models?pageSize=1000"
        asking = gemini_api.client(vendor_key(gemini_api.KEY, gemini_api.TITLE), seconds)
    elif place in HOSTS:
        host, url = HOSTS[place], address_of(place)
        key = vendor_key(host.key_env, host.title) if host.key_env else None
        asking = client(url, api_key=key, timeout_s=seconds)
    else:
        places = ", ".join(("openai", "gemini", *HOSTS))
        raise ConfigError(f"there is no server {place!r}", code="UQL402", help=f"{places}, or http(s)://host/v1")
    try:
        reply = await call(partial(asking.get, path), name=place, model="any")
    except CallError as error:
        raise BackendError(f"{place} lists no models: {error}", help=f"is a server running at {url}?") from error
    finally:
        await asking.close()
    listed = reply.get("data") or reply.get("models")
    entries = listed if isinstance(listed, list) else ()
    names = [str(m.get("id") or m.get("name") or "") for m in entries if isinstance(m, dict)]
    return sorted(name.removeprefix("models/") for name in names if name)


def address_of(kind: str) -> str:
    """The base URL of a host's API.

    Raises: ConfigError where the variable that holds it is not set, or is not an http(s) address.
    """
    host = HOSTS[kind]
    stated = os.environ.get(host.url_env, "").strip().rstrip("/") if host.url_env else ""
    if kind == "ollama" and stated and "://" not in stated:
        stated = f"http://{stated}"
    if not stated:
        if host.url:
            return host.url
        raise ConfigError(
            f"the address of {host.title} is not set",
            code="UQL402",
            help=f"set {host.url_env}, as https://NAME.openai.azure.com",
        )
    if not stated.startswith(("http://", "https://")):
        raise ConfigError(f"{host.url_env} = {stated!r} is not an http(s) address", code="UQL402")
    ending = "/openai/v1" if kind == "azure" else "/v1"
    return stated if stated.endswith("/v1") else f"{stated}{ending}"
