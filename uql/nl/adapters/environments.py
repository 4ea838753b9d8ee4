"""Environments of adapters that need packages of their own: made once, with pinned versions, under $UQL_HOME/adapters.

`uql adapters install NAME` asks before it fetches anything. A worker is a script of this package, run by the environment's interpreter.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from uql.base.errors import ConfigError, DataError
from uql.base.user_folder import user_folder
from uql.nl.adapters.process import ProcessAdapter

WORKERS = Path(__file__).parent / "workers"
READY = "installed.json"  # in the folder of an environment that is whole
PIP_S = 1_800.0


@dataclass(frozen=True, slots=True)
class AdapterSpec:
    """An adapter with an environment of its own.

    Attributes:
        name: of it, and of its worker's script.
        packages: pinned.
        module: imported to see that they work.
        about: one line.
        megabytes: that its environment takes, about.
    """

    name: str
    packages: tuple[str, ...]
    module: str
    about: str
    megabytes: int


KNOWN = {
    known.name: known
    for known in (
        AdapterSpec(
            "lotus",
            ("lotus-ai==1.2.4", "torch==2.13.0"),  # the build without GPU libraries, where pip finds it
            "lotus",
            "LOTUS: sem_map over images, sem_agg over the rows",
            6_300,
        ),
        AdapterSpec(
            "dspy",
            ("dspy==3.4.1",),
            "dspy",
            "DSPy: a signature with ChainOfThought",
            400,
        ),
        AdapterSpec(
            "llamaindex",
            ("llama-index-core==0.14.25", "llama-index-llms-openai-like==0.8.1"),
            "llama_index.llms.openai_like",
            "LlamaIndex: retrieval, then an answer; a baseline",
            300,
        ),
    )
}


def folder(name: str) -> Path:
    """Where the environment of an adapter is."""
    return user_folder() / "adapters" / adapter_spec(name).name


def adapter_spec(name: str) -> AdapterSpec:
    """Raises: ConfigError (UQL642) naming those there are."""
    if name not in KNOWN:
        raise ConfigError(
            f"there is no adapter {name!r} to install", code="UQL642", help=f"there are {', '.join(KNOWN)}"
        )
    return KNOWN[name]


def installed(name: str) -> bool:
    """Is the environment there, with the packages of this version?"""
    ready = folder(name) / READY
    return ready.is_file() and json.loads(ready.read_text(encoding="utf-8"))["packages"] == list(
        adapter_spec(name).packages
    )


def adapter(name: str) -> ProcessAdapter:
    """The adapter of an environment that is there. Raises ConfigError (UQL642) where it is not, saying how to get it."""
    if not installed(name):
        raise ConfigError(f"the adapter {name} is not installed", code="UQL642", help=f"uql adapters install {name}")
    place = folder(name)
    command = (str(_python(place)), "-I", str(WORKERS / "worker.py"), str(WORKERS / f"{name}_worker.py"))
    return ProcessAdapter(name, command, place / "home")


def install(name: str, *, tell: Callable[[str], None] = lambda text: None, python: str = sys.executable) -> Path:
    """Makes the environment of an adapter, unless it is there. An earlier try that broke off is begun anew.

    Args:
        tell: is told what goes on.
        python: the interpreter that it is made with.
    Raises: ConfigError (UQL642) on an unknown name; DataError (UQL513) where pip or the packages fail, with their last words.
    """
    what, place = adapter_spec(name), folder(name)
    if installed(name):
        return place
    if place.exists():
        shutil.rmtree(place)
    place.parent.mkdir(parents=True, exist_ok=True)
    tell(f"making {place}")
    _run([python, "-P", "-m", "venv", str(place)], name)  # -P: not what the current folder calls so
    tell(f"fetching {', '.join(what.packages)}")
    made = [str(_python(place)), "-P"]
    _run([*made, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what.packages], name)
    tell("trying it")
    _run([*made, "-c", f"import {what.module}"], name)
    (place / READY).write_text(
        json.dumps({"packages": what.packages, "python": sys.version.split()[0]}), encoding="utf-8"
    )
    return place


def remove(name: str) -> bool:
    """Deletes the environment of an adapter; False where there is none."""
    place = folder(name)
    if not place.exists():
        return False
    shutil.rmtree(place)
    return True


def _python(place: Path) -> Path:
    return place / "bin" / "python"


def _run(command: list[str], name: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DataError(f"the adapter {name} cannot be installed: {error}", code="UQL513") from error
    if done.returncode != 0:
        output = (done.stderr or done.stdout).strip().splitlines()
        raise DataError(
            f"the adapter {name} cannot be installed: {output[-1][:300] if output else 'no reason given'}",
            code="UQL513",
        )
