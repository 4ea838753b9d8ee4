"""Packages that only some features need: asked for before any work is done for the feature."""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from urllib.parse import unquote, urlsplit

from uql.base.errors import ConfigError

DISTRIBUTION = "uql-engine"


def need(what: str, extra: str, *modules: str) -> None:
    """Raises ConfigError (UQL610) where one of the modules is not installed.

    Args:
        what: what needs them, in the plural: "plots".
        extra: of the distribution, that installs them.
        modules: as they are imported.
    """
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        packages = f"the package{'s' * (len(missing) > 1)} {' and '.join(missing)}"
        raise ConfigError(f"{what} need {packages}", code="UQL610", help=install(extra))


@cache
def install(extra: str) -> str:
    """The command that installs an extra: of the checkout, the wheel or the index that this copy was installed from."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        stated = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        stated = {}
    return install_command(extra, stated)


def install_command(extra: str, stated: dict[str, object]) -> str:
    """The command for a copy whose `direct_url.json` (PEP 610) holds `stated`; {} where it came from an index.

    >>> install_command("ui", {})
    "pip install 'uql-engine[ui]'"
    >>> install_command("ui", {"url": "file:///home/me/uql", "dir_info": {"editable": True}})
    "pip install -e '/home/me/uql[ui]'"
    >>> install_command("ui", {"url": "file:///tmp/uql_engine-0.1.0-py3-none-any.whl"})
    "pip install 'uql-engine[ui] @ file:///tmp/uql_engine-0.1.0-py3-none-any.whl'"
    """
    url = str(stated.get("url") or "")
    folder = stated.get("dir_info")
    if isinstance(folder, dict) and url.startswith("file:"):
        editable = "-e " if folder.get("editable") else ""
        return f"pip install {editable}'{unquote(urlsplit(url).path)}[{extra}]'"
    return f"pip install '{DISTRIBUTION}[{extra}]{f' @ {url}' if url else ''}'"
