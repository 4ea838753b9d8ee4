"""Files in FROM: which DuckDB reader a path needs, and what can be wrong with it before DuckDB looks."""

from __future__ import annotations

import glob
from pathlib import Path

from uql.base.errors import DataError
from uql.base.sql_text import literal

READERS = {
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".parquet": "read_parquet",
    ".json": "read_json",
    ".jsonl": "read_json",
    ".ndjson": "read_json",
}
ENDINGS: dict[str, tuple[str, ...]] = {
    "image": (".png", ".jpg", ".jpeg", ".webp", ".gif"),
    "audio": (".wav", ".mp3", ".flac", ".ogg", ".opus", ".m4a"),
    "video": (".mp4", ".m4v", ".webm", ".mkv", ".mov"),
    "document": (".pdf", ".docx", ".html", ".htm"),
    "text": (".txt", ".md", ".text"),
    "sqlite": (".sqlite", ".sqlite3", ".db"),
    "table": tuple(READERS),
}
_PACKED = {".gz", ".zst"}


def reader(path: str) -> str | None:
    """The DuckDB table function for a path, None when the ending is not one that can be read.

    >>> reader("reviews.CSV"), reader("reviews.jsonl.gz"), reader("notes.txt")
    ('read_csv', 'read_json', None)
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in _PACKED:
        suffixes.pop()
    return READERS.get(suffixes[-1]) if suffixes else None


def file_sql(path: str) -> str:
    """What stands for the file in DuckDB SQL.

    Raises: DataError: UQL501 no such file; UQL503 a file of no bytes, or of no known format.
    """
    path = str(Path(path).expanduser()) if path.startswith("~/") else path  # as DuckDB does
    function = reader(path)
    if function is None and Path(path).is_dir():
        raise DataError(
            f"{path} is a folder",
            code="UQL503",
            help=f"FROM '{path.rstrip('/')}/*.csv' reads its tables, FROM read_text('{path.rstrip('/')}/*.txt') its texts, "
            f"FROM read_blob('{path.rstrip('/')}/*') its pictures, recordings and documents; in Python, "
            f"con.register('name', '{path}') takes all of them",
        )
    if function is None:
        formats = ", ".join(sorted(READERS))
        kinds = {kind for kind, endings in ENDINGS.items() if path.lower().endswith(endings)}
        other = (
            "read_blob" if kinds & {"image", "audio", "video", "document"} else "read_text" if "text" in kinds else ""
        )
        other = "read_xlsx" if path.lower().endswith(".xlsx") else other
        way = f"FROM {other}({literal(path)}) reads it; " if other else ""
        raise DataError(f"{path} has a format that cannot be read", code="UQL503", help=f"{way}formats: {formats}")
    if "://" not in path:
        paths = glob.glob(path, recursive=True) if glob.has_magic(path) and not Path(path).exists() else [path]
        files = [Path(name) for name in paths if Path(name).is_file()]
        if not files:
            kind = "is a folder" if Path(path).is_dir() else "there is no such file"
            raise DataError(f"{path}: {kind}", code="UQL501", help=_nearby(path))
        if all(file.stat().st_size == 0 for file in files):
            raise DataError(f"{path} is empty (0 bytes)", code="UQL503", help="a CSV file needs at least a header line")
    return f"{function}({literal(path)})"


def file_literal(path: str | Path) -> str:
    """A string of SQL that names one file to DuckDB's readers, and no pattern, whatever signs its name has.

    >>> file_literal("is it?.csv"), file_literal("a[1].csv")
    ("'is it[?].csv'", "'a[[]1].csv'")
    """
    return literal(glob.escape(str(path)))


def _nearby(path: str) -> str:
    """The files of the same folder that can be read, or the folder that is missing."""
    folder = Path(path).parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file() and reader(entry.name))
    listing = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    where = "this folder" if str(folder) == "." else str(folder)
    return f"files of {where} that can be read: {listing}" if names else f"no file of {where} can be read"
