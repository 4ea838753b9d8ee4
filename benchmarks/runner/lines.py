"""Files of lines of JSON that a run adds to and another run goes on with: a line that a kill left half written harms nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from uql.base.errors import ConfigError, DataError


def append(path: Path, held: Mapping[str, Any], *, allow_nan: bool = False) -> None:
    """Adds one line. The system has all of it when this returns; what a kill cut off before it is taken away.

    Raises: ValueError for an infinite number or NaN, which JSON does not have, where they are not allowed.
    """
    line = json.dumps(held, ensure_ascii=False, default=str, allow_nan=allow_nan).encode() + b"\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                _end_line(file)
        file.write(line)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """One run at a time adds to a file, which is made where it is not there; where the platform has no locks, none is taken.

    Raises: ConfigError (UQL402) where another run has it; OSError where it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        try:
            import fcntl
        except ImportError:
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(
                f"another run writes to {path}", code="UQL402", help="wait for it to end, or name another file with -o"
            ) from None
        yield


def _end_line(file: BinaryIO) -> None:
    """Ends the last line of a file; one that a killed run left half written is taken away: it would be none for ever."""
    file.seek(0)
    held = file.read()
    start = held.rfind(b"\n") + 1
    try:
        json.loads(held[start:])
    except ValueError:
        file.truncate(start)
    else:
        file.write(b"\n")


def read(path: Path) -> Iterator[tuple[int, Any]]:
    """(number of the line, what it holds) of a file, of which a last line that was cut off is left out; none where there is no file.

    Raises: DataError (UQL501) for a line that is no JSON, named by file and number.
    """
    if not path.exists():
        return
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            held = json.loads(line)
        except ValueError as error:  # not JSON, or not UTF-8
            if number == len(lines):
                return
            raise wrong(path, number, str(error)) from None
        yield number, held


def wrong(path: Path, number: int, why: str) -> DataError:
    """What is said of a line that is none."""
    return DataError(
        f"{path}, line {number} is not a benchmark result: {why}",
        code="UQL501",
        help="delete the line; --resume runs what is missing",
    )
