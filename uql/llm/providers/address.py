"""The address of a server and its model, http(s)://host/v1#MODEL, with the key and the limits that the user's configuration states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from uql.base import keys
from uql.base.endpoints import origin
from uql.base.errors import ConfigError
from uql.base.settings import Settings
from uql.llm.providers.base import Limits
from uql.llm.providers.http_client import account_of

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a model is served.

    Attributes:
        url: without the model and without a slash at its end.
        api_key: from the variable that the user's configuration names for the server's origin; None: it names none.
    """

    url: str
    model: str
    api_key: str | None
    limits: Limits

    @property
    def is_local(self) -> bool:
        """Rows stay on this machine."""
        return urlsplit(self.url).hostname in LOOPBACK


def address(text: str, settings: Settings, limits: Limits) -> Address:
    """The parts of an address.

    Args:
        text: http(s)://host[:port][/path]#MODEL.
        settings: holds the user's endpoints.
        limits: of such a server where the user's configuration states none.
    Raises: ConfigError where a part is missing, the address holds a key, or the variable of the key is not set.
    """
    url, _, model = text.partition("#")
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query:
        raise ConfigError(
            f"the address of a model holds no key: {parts.scheme}://{parts.hostname}…",
            code="UQL402",
            help="name the key's variable in the user's configuration: endpoints.\"https://host\".key_env",
        )
    if not parts.hostname or not model:
        raise ConfigError(f"the address of a model is http(s)://host/v1#MODEL, not {text!r}", code="UQL402")
    url = url.rstrip("/")
    place = origin(url)
    own = next((e for e in settings.endpoints if e.origin == place), None)
    if own is None:
        return Address(url, model, None, limits)
    key = keys.find(own.key_env) if own.key_env and not settings.offline else None
    if own.key_env and not key and not settings.offline:
        raise ConfigError(
            f"{place} has its key in the variable {own.key_env}, which is not set",
            code="UQL402",
            help=f"uql keys set {own.key_env}, or set it in the environment",
        )
    stated = replace(
        limits,
        concurrency=own.concurrency or limits.concurrency,
        requests_per_minute=own.requests_per_minute,
        tokens_per_minute=own.tokens_per_minute,
        account=account_of(key),
    )
    return Address(url, model, key, stated)
