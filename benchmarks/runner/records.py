"""One line of a results file: what was run, with which versions and settings, what it answered, how good that was, what it cost."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from importlib import import_module, metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uql.benchmarks.runner import lines

if TYPE_CHECKING:
    from uql.llm.run_record import Cost

PACKAGES = ("duckdb", "numpy", "scikit-learn", "faiss-cpu", "pyarrow")  # that can move a number


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run gave. `quality` is in `measure`: higher is better but for the measures of `LOWER_IS_BETTER`."""

    answer: Any = None  # of JSON types, or turned into text
    quality: float | None = None
    measure: str = ""
    calls: int = 0
    requests: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0  # None: a price is unknown
    seconds: float = 0.0
    numbers: Mapping[str, float] = field(default_factory=dict)  # what else a table prints
    text: str = ""  # what a program printed
    problem: str = ""  # why there is no answer
    versions: Mapping[str, str] = field(default_factory=dict)  # of a system that runs elsewhere

    @classmethod
    def at_cost(
        cls, cost: Cost, answer: Any, quality: float | None, measure: str, seconds: float, numbers: Mapping[str, float]
    ) -> Measured:
        """A run whose calls, tokens and USD are those of a cost.

        Args:
            cost: its seconds are those that it waited for answers, and are left out.
            seconds: that the run took.
        """
        shared = {f.name for f in fields(cls)} & {f.name for f in fields(cost)} - {"seconds"}
        amounts = {name: getattr(cost, name) for name in shared}
        return cls(answer, quality, measure, seconds=seconds, numbers=numbers, **amounts)


_WORDS = ("suite", "table", "system", "query", "model", "answer_hash", "measure", "text", "problem", "reason")
_COUNTS = ("seed", "calls", "requests", "cached", "input_tokens", "output_tokens")
TYPES: dict[str, tuple[type, ...]] = {  # of what a line holds
    **dict.fromkeys(_WORDS, (str,)),
    **dict.fromkeys(_COUNTS, (int,)),
    **dict.fromkeys(("settings", "versions", "numbers"), (dict,)),
    **{name: (int, float, type(None)) for name in ("quality", "usd")},
    "seconds": (int, float),
}
ALWAYS = ("settings", "versions", "answer_hash", "quality", "usd")  # in every line, empty or not
LOWER_IS_BETTER = frozenset({"relative error", "EMD"})


@dataclass(frozen=True, slots=True)
class Record:
    """A run with its place. A line without a seed's run (`reason` set) stands for a task that cannot be run."""

    suite: str
    table: str
    system: str
    query: str
    model: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    answer_hash: str = ""
    quality: float | None = None
    measure: str = ""
    calls: int = 0
    requests: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0
    seconds: float = 0.0
    numbers: Mapping[str, float] = field(default_factory=dict)
    text: str = ""
    problem: str = ""
    reason: str = ""

    @property
    def place(self) -> tuple[str, ...]:
        """What tells a run from others in one file."""
        return (
            self.suite,
            self.table,
            self.system,
            self.query,
            self.model,
            str(self.seed),
            settings_key(self.settings),
        )

    @property
    def cell(self) -> tuple[str, str, str, str]:
        """Table, system, query and model: what several seeds share."""
        return (self.table, self.system, self.query, self.model)

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


def settings_key(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True, default=str)


def hash_of(answer: Any) -> str:
    """Sixteen hexadecimal digits of an answer: equal answers have equal ones.

    >>> hash_of([(1, "a")]) == hash_of([[1, "a"]])
    True
    """
    text = json.dumps(answer, sort_keys=True, default=str, separators=(",", ":"))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


PARTS = ("uql", "uql.compiler", "uql.kernels", "uql.sampling")  # of the engine


@lru_cache(maxsize=1)
def source() -> str:
    """Ten hexadecimal digits of the engine's own source: a version that is being worked on is not one program."""
    digest = hashlib.blake2b(digest_size=5)
    for part in PARTS:
        (folder,) = (Path(path) for path in import_module(part).__path__)
        for file in sorted(folder.rglob("*.py")):
            digest.update(file.relative_to(folder).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Of this program, of Python, of the packages that can move a number, and the processors of the machine."""
    import uql

    found = {
        "uql": uql.__version__,
        "source": source(),
        "python": platform.python_version(),
        "cpus": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "processor": processor(),
    }
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "none"
    return found


def processor() -> str:
    """Architecture, name, family, model and stepping of this machine's processor, as far as it says them."""
    try:
        cpu_lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        cpu_lines = []
    said = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in cpu_lines)}
    parts = (said.get(name, "") for name in ("model name", "cpu family", "model", "stepping"))
    return " ".join(filter(None, (platform.machine(), *parts)))


def write(path: Path, record: Record) -> None:
    """Appends one line, without what is empty in it; it is written before the next run begins."""
    lines.append(path, {k: v for k, v in asdict(record).items() if v not in ("", {}, None) or k in ALWAYS})


def finite(numbers: Mapping[str, float]) -> dict[str, float]:
    """Without infinite numbers and NaN, which JSON does not have."""
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


def read(paths: Path | Sequence[Path]) -> list[Record]:
    """All records of some files; a last line that was cut off is left out.

    A later run of the same place replaces the earlier one; a reason why there is none replaces no run.
    Raises: DataError (UQL501) for a line that is none, named by file and number.
    """
    found: dict[tuple[str, ...], Record] = {}
    for path in [paths] if isinstance(paths, Path) else paths:
        for record in _records(path):
            before = found.get(record.place)
            if before is None or before.reason or not record.reason:
                found[record.place] = record
    return list(found.values())


def _records(path: Path) -> Iterator[Record]:
    for number, held in lines.read(path):
        if not isinstance(held, dict):
            raise lines.wrong(path, number, "it holds no names")
        known = {name: value for name, value in held.items() if name in TYPES}
        for name, value in known.items():
            if not isinstance(value, TYPES[name]) or isinstance(value, bool):
                raise lines.wrong(path, number, f"{name} = {json.dumps(value)[:40]} is none of its kind")
        numbers = known.get("numbers", {}).values()
        if any(isinstance(value, bool) or not isinstance(value, int | float) for value in numbers):
            raise lines.wrong(path, number, "every value of numbers must be a number")
        try:
            yield Record(**known)
        except TypeError as error:
            raise lines.wrong(path, number, str(error).removeprefix("Record.__init__() ")) from None
