"""The environments of other engines: made with pinned versions, one folder each, since their needs conflict."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from uql.base.errors import ConfigError

RESULTS = Path(__file__).parent / "results.jsonl"  # kept from the last run of all peers
TORCH = "torch==2.13.0"  # with GPU libraries where the index of pip has that build alone: see README.md
PYTHONS = ("python3.12", "python3.13", "python3.14", "python3.11", "python3")


@dataclass(frozen=True, slots=True)
class Peer:
    """Another engine: its pinned packages, the Pythons that its versions run on, and its worker."""

    name: str
    packages: tuple[str, ...]
    least: tuple[int, int]
    below: tuple[int, int]
    settings: tuple[str, ...] = ("default", "recommended")

    @property
    def worker(self) -> Path:
        return Path(__file__).parent / "workers" / f"{self.name}_worker.py"

    @property
    def distribution(self) -> str:
        return self.packages[0].partition("==")[0]


PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "lotus",
            ("lotus-ai==1.2.4", "faiss-cpu==1.15.1", TORCH),
            (3, 10),
            (3, 13),
            ("default", "recommended", "cascade"),
        ),
        Peer(  # it says 3.8, and imports from 3.12 on
            "palimpzest", ("palimpzest==0.9.0", TORCH), (3, 12), (3, 13), ("default", "recommended", "mincost")
        ),
        Peer("thalamusdb", ("thalamusdb==0.1.15",), (3, 12), (3, 15), ("default", "recommended", "bounded")),
        Peer("jevdb", ("jevdb==0.1.0",), (3, 10), (3, 14), ("default",)),
    )
}


def home() -> Path:
    """$UQL_HOME/peers, else in the user's data folder."""
    given = os.environ.get("UQL_HOME")
    if given:
        return Path(given).expanduser() / "peers"
    from platformdirs import user_data_path

    return user_data_path("uql") / "peers"


def python_of(peer: Peer) -> Path:
    """The interpreter of a peer's environment, there or not."""
    return home() / peer.name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def version_of(peer: Peer) -> str | None:
    """The version that is installed; None where there is none."""
    python = python_of(peer)
    if not python.exists():
        return None
    code = f"from importlib.metadata import version; print(version({peer.distribution!r}))"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, timeout=60)
    return done.stdout.strip() or None


def find(names: tuple[str, ...]) -> list[Peer]:
    """Peers by name; all where none is named. Raises ConfigError that lists them."""
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise ConfigError(f"there is no peer {unknown[0]!r}", code="UQL402", help=f"peers: {', '.join(PEERS)}")
    return [PEERS[name] for name in names or PEERS]


def install(peer: Peer, python: str | None, say: Callable[[str], None]) -> None:
    """Makes a peer's environment anew.

    Raises: ConfigError (UQL402) where no Python fits or pip cannot install it, with pip's last words.
    """
    used = python or fitting(peer)
    folder = home() / peer.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    say(f"{peer.name}: {', '.join(peer.packages)} for {used} in {folder}")
    _run([used, "-m", "venv", str(folder)], peer)
    pip = [str(python_of(peer)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, *peer.packages], peer)


def remove(peer: Peer) -> None:
    """Deletes a peer's environment."""
    shutil.rmtree(home() / peer.name, ignore_errors=True)


def fitting(peer: Peer) -> str:
    """A Python on this machine that the peer's version runs on. Raises ConfigError that says which would."""
    for name in (sys.executable, *PYTHONS, *_managed()):
        path = shutil.which(name)
        version = _version(path) if path is not None else None
        if path is not None and version is not None and peer.least <= version < peer.below:
            return path
    wanted = f"Python {'.'.join(map(str, peer.least))} or later and below {'.'.join(map(str, peer.below))}"
    raise ConfigError(f"{peer.name} needs {wanted}, and none is here", code="UQL402", help="name one with --python")


def _managed() -> list[str]:
    """Pythons that pyenv and uv keep, whose names on the path answer only where they are chosen."""
    folders = (
        Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions",
        Path(os.environ.get("UV_PYTHON_INSTALL_DIR", Path.home() / ".local" / "share" / "uv" / "python")),
    )
    return [str(python) for folder in folders for python in sorted(folder.glob("*/bin/python3"), reverse=True)]


def _version(python: str) -> tuple[int, int] | None:
    code = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60)
    words = done.stdout.split()
    return (int(words[0]), int(words[1])) if done.returncode == 0 and len(words) == 2 else None


def _run(command: list[str], peer: Peer) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
        raise ConfigError(f"{peer.name} cannot be installed: {' '.join(said[-3:])[:500]}", code="UQL402")
