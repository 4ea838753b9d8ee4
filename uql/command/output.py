"""Where the rows of a query go: standard output, or a file that appears whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from uql.command.outcome import UsageError
from uql.engine.outcome import Outcome

Format = Literal["table", "csv", "json", "jsonl", "markdown", "parquet"]
SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".md": "markdown",
    ".parquet": "parquet",
}


def format_of_file(path: Path, otherwise: Format) -> Format:
    """The format that a file's name chooses; `otherwise` where it has no suffix, or .txt. Raises: UsageError for any other."""
    suffix = path.suffix.lower()
    if suffix in ("", ".txt") or (path.exists() and not path.is_file()):
        return otherwise
    if suffix not in SUFFIXES:
        raise UsageError(f"{path.name} has a format that cannot be written", help=f"formats: {', '.join(SUFFIXES)}")
    return SUFFIXES[suffix]


@dataclass(frozen=True, slots=True)
class Output:
    """An open place for one result; `path` is None for standard output."""

    stream: IO[str]
    format: str
    path: Path | None = None
    whole: bool = False  # all rows and cells of a table, as in a file

    @staticmethod
    @contextlib.contextmanager
    def open(path: Path | None, format: str) -> Iterator[Output]:
        """Open the place before anything is asked, so that an answer that was paid for is never lost to a bad path.

        A file is written under another name beside its own and renamed when it is whole; on an error the old one stays.
        """
        if path is None or str(path) == "-":
            if format == "parquet":
                raise UsageError("Parquet goes to a file", help="-o name.parquet")
            yield Output(sys.stdout, format)
            return
        if path.is_dir():
            raise UsageError(f"{path} is a folder", help="-o takes the name of a file")
        try:
            if path.exists() and not path.is_file():  # /dev/stderr, a named pipe
                with _full_disk_named(path), path.open("w", encoding="utf-8", newline="") as stream:
                    yield Output(stream, format, path)
                return
            if path.exists() and not os.access(path, os.W_OK):
                raise PermissionError(13, "Permission denied", str(path))
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from None
        temporary = Path(name)
        try:
            with _full_disk_named(path), os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                output = Output(stream, format, temporary)
                yield output
            if temporary.stat().st_size:
                temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
                temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def text(self, text: str) -> None:
        self.stream.write(text.rstrip("\n") + "\n")

    def rows(self, outcome: Outcome) -> None:
        """Write the rows in the format; nothing for a statement that gives none."""
        from uql.show import render

        data, estimates = outcome.table, outcome.estimates
        if not data.num_columns:
            return
        if self.format == "table":
            whole = self.whole or self.path is not None
            rows, width = (max(data.num_rows, 1), 1_000_000) if whole else (render.MAX_ROWS, None)
            self.text(render.table(data, types=outcome.types, estimates=estimates, max_rows=rows, width=width))
        elif self.format == "parquet" and self.path is not None:
            render.write_parquet(outcome.noted(), self.path, estimates=estimates)
        else:
            render.WRITERS[self.format](data, self.stream, estimates=estimates)


@contextlib.contextmanager
def _full_disk_named(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise
        help = "what was answered is in the ledger: the same statement with another -o makes no new calls"
        raise UsageError(f"cannot write {path}: {error.strerror}", help=help) from None


def print_json(value: Any) -> None:
    """What `--json` prints of a command that is not a query."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
