"""Addresses of ledgers in a PostgreSQL server: told apart from paths, and shown without their password."""

from __future__ import annotations

import re
from urllib.parse import unquote

_SCHEME = re.compile(r"(?i)postgres(ql)?://")
_SECRETS = re.compile(r"(?i)[?&](password|sslpassword|oauth_client_secret)=[^&#]*")


def is_postgres(ledger: str | None) -> bool:
    """Is it the URL of a server, not the path of a file?"""
    return ledger is not None and _SCHEME.match(ledger) is not None


def without_password(ledger: str) -> str:
    """What may be printed of a ledger: its path, or its URL without a password, however the URL is written.

    >>> without_password("postgresql://ada:p/w@1@db.example/team?sslmode=require&password=x")
    'postgresql://ada@db.example/team?sslmode=require'
    """
    if not is_postgres(ledger):
        return ledger
    scheme, _, rest = ledger.partition("://")
    who, at, place = rest.rpartition("@")  # the last one: an @ of the password may stand there as it is
    place = _SECRETS.sub(lambda found: "?" if found[0][0] == "?" else "", place)
    return f"{scheme}://{who.partition(':')[0]}{at}{place.replace('?&', '?').rstrip('?')}"


def password_in(url: str) -> str:
    """What stands between the user's name and the host, decoded; "" where nothing does.

    >>> password_in("postgresql://ada:p%2Fw@db.example/team")
    'p/w'
    """
    return unquote(url.partition("://")[2].rpartition("@")[0].partition(":")[2])
