"""Videos and documents as tables of their parts: frames(clip) and pages(document) in FROM.

DuckDB runs a function of each session that lists the parts of a file, rows of small values: a frame or a page stands there as a name,
`frame:12.5@clip.mp4` or `page:3@report.pdf`, and is read when a model or a feature needs it. Bytes of a BLOB column are written to a folder
of the session once, and are named by their digest.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from uql.base.extras import need
from uql.base.media_types import Unreadable
from uql.sources import parts_reader
from uql.sources.confined import Reply, exchange, replies

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

PART = re.compile(r"(frame|page):([0-9.]+|\?)@(.+)", re.DOTALL)  # a part by its second or number, and its file
BLOB = "blob:"  # begins the name of a file that the session wrote
WHOLE = "?"  # the place of the one row that stands for a file whose parts cannot be listed
NEEDS = {"frames": ("videos", "video", "av", "PIL"), "pages": ("pages", "documents", "pypdfium2", "PIL")}
_names = count(1)  # of the functions: one of a name in a database, which sessions share


class Files(Protocol):
    """Finds the files that values name; `Media` is one."""

    deadline: float

    def path(self, name: str) -> Path | Unreadable: ...
    def fetched(self, name: str) -> bytes | Unreadable: ...


class Parts:
    """The parts of files for one session.

    Attributes:
        media: finds the files of the statement that runs. Each statement gives its own, before DuckDB runs a query of it.
        files: makes what finds files outside of a run.
    """

    SIGNATURES: ClassVar[dict[str, tuple[int, str]]] = {  # arguments beside the file, and the rows that are given
        "frames": (1, "STRUCT(t DOUBLE, image VARCHAR)[]"),
        "pages": (0, 'STRUCT(page INTEGER, "text" VARCHAR, image VARCHAR)[]'),
    }

    def __init__(self) -> None:
        self.media: Files | None = None
        self.files: Callable[[], Files] | None = None
        self._folder: Path | None = None
        self._listed: dict[tuple[object, ...], Reply | Unreadable] = {}
        self._failed: dict[str, Unreadable] = {}  # by the name of the one row
        self._fetched: dict[str, Path] = {}
        self._registered = False

    def close(self) -> None:
        """Deletes the files that were written."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None

    def begin(self) -> None:
        """Makes it ready for a statement that reads parts. The files are found before DuckDB runs, which cannot be asked meanwhile."""
        if self._registered and self.files is not None:
            self.media = self.files()

    def register(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Gives a session the macros __uql_frames(clip, every) and __uql_pages(document). A second time does nothing."""
        if self._registered:
            return
        create: Any = getattr(cursor, "create_function", None)  # none in a process that only checks statements
        for name, (more, rows) in self.SIGNATURES.items():
            own = f"__uql_{name}_{next(_names)}"
            types = ["BLOB", "VARCHAR", *["VARCHAR"] * more]
            extra = ", every" * more
            if create is None:
                cursor.execute(f"CREATE OR REPLACE TEMP MACRO __uql_{name}(file{extra}) AS []::{rows}")
                continue
            create(own, self._function(name), types, rows, type="arrow", null_handling="special")
            blob = "typeof(file) = 'BLOB'"
            cursor.execute(
                f"CREATE OR REPLACE TEMP MACRO __uql_{name}(file{extra}) AS {own}("
                f"CASE WHEN {blob} THEN TRY_CAST(file AS BLOB) END, CASE WHEN NOT {blob} THEN file::VARCHAR END{extra})"
            )
        self._registered = True
        self.begin()

    def _function(self, name: str) -> Callable[..., pa.Array]:
        """What DuckDB calls with a batch of files. It holds the session weakly: the database, which outlives it, holds the function."""
        own = weakref.ref(self)

        def listed(data: Any, path: Any, every: list[str]) -> pa.Array:
            parts = own()
            if parts is None:
                raise RuntimeError("the session of this function is closed")
            return parts._rows(name, data, path, every)

        if name == "frames":
            return lambda data, path, every: listed(data, path, every.to_pylist())
        return lambda data, path: listed(data, path, [""] * len(path))

    def _rows(self, name: str, data: pa.ChunkedArray, path: pa.ChunkedArray, every: list[str]) -> pa.Array:
        import pyarrow as pa

        need(*NEEDS[name])
        files = [
            self._stored(d) if p is None and d is not None else p
            for d, p in zip(data.to_pylist(), path.to_pylist(), strict=True)
        ]
        found = self._list(name, files, every)
        for file, reply in zip(files, found, strict=True):
            if isinstance(reply, Unreadable):
                self._failed[f"{name[:-1]}:{WHOLE}@{file}"] = reply
        if name == "frames":
            kind = pa.list_(pa.struct([("t", pa.float64()), ("image", pa.string())]))
        else:
            kind = pa.list_(pa.struct([("page", pa.int32()), ("text", pa.string()), ("image", pa.string())]))
        return pa.array([None if f is None else _listed(name, f, r) for f, r in zip(files, found, strict=True)], kind)

    # ------------------------------------------------------------------------------------------------------- listing
    def _list(self, name: str, files: list[str | None], every: list[str]) -> list[Reply | Unreadable | None]:
        """What the reader lists of each file; None for None. Raises ValueError where `every` is no time."""
        want = "moments" if name == "frames" else "pages"
        for text in dict.fromkeys(every):
            if text:
                parts_reader.seconds_of(text)
        found: list[Reply | Unreadable | None] = [None] * len(files)
        keys: dict[tuple[object, ...], list[int]] = {}
        for i, (file, text) in enumerate(zip(files, every, strict=True)):
            path = self._path(file) if file is not None else None
            if isinstance(path, Path):
                state = path.stat()
                keys.setdefault((want, str(path), text, state.st_size, state.st_mtime_ns), []).append(i)
            else:
                found[i] = path
        missing = [key for key in keys if key not in self._listed]
        asked = [{"want": want, "path": key[1], "every": key[2]} for key in missing]
        self._listed.update(zip(missing, self._read(asked), strict=True))
        for key, places in keys.items():
            for i in places:
                found[i] = self._listed[key]
        return found

    @property
    def _media(self) -> Files:
        assert self.media is not None
        return self.media

    def _stored(self, data: bytes) -> str:
        """The name of bytes, written to the folder of the session."""
        name = blake2b(data, digest_size=16).hexdigest()
        path = self._made() / name
        if not path.exists():
            path.write_bytes(data)
        return BLOB + name

    def _made(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="uql-media-"))
        return self._folder

    def _path(self, file: str) -> Path | Unreadable:
        """Where a file lies that a value names."""
        if file.startswith(BLOB):
            path = self._folder / Path(file).name.removeprefix(BLOB) if self._folder is not None else None
            if path is None or not path.is_file():
                return Unreadable("this part belongs to the bytes of another session: take it from its column again")
            return path
        if "://" not in file:
            return self._media.path(file)
        if file not in self._fetched:
            data = self._media.fetched(file)
            if isinstance(data, Unreadable):
                return data
            self._fetched[file] = self._made() / self._stored(data).removeprefix(BLOB)
        return self._fetched[file]

    # ------------------------------------------------------------------------------------------------------- reading
    def images(self, names: Sequence[str]) -> list[bytes | Unreadable]:
        """(n,) the JPEG of each frame or page that a name of this module stands for. Those of one file are read in their order.

        Raises ConfigError where the readers are not installed.
        """
        found: dict[str, bytes | Unreadable] = {}
        wanted: list[tuple[str, float, str]] = []
        asked: list[dict[str, Any]] = []
        for name in dict.fromkeys(names):
            match = PART.fullmatch(name)
            assert match is not None
            kind, place, file = match.groups()
            need(*NEEDS[f"{kind}s"])
            path = self._path(file)
            if isinstance(path, Unreadable):
                found[name] = path
            elif place == WHOLE:
                reason = Unreadable(f"{file} was not readable when its {kind}s were listed")
                found[name] = self._failed.get(name, reason)
            else:
                wanted.append((str(path), float(place), name))
        for path_, at, name in sorted(wanted):
            asked.append({"want": name.partition(":")[0], "path": path_, "at": at})
        for (_, _, name), reply in zip(sorted(wanted), self._read(asked), strict=True):
            found[name] = reply if isinstance(reply, Unreadable) else bytes(reply["data"])
        return [found[name] for name in names]

    def _read(self, asked: list[dict[str, Any]]) -> list[Reply | Unreadable]:
        """(n,) the replies of the reader; what could not be read names its file."""
        requests = [json.dumps(request).encode() for request in asked]
        found: list[Reply | Unreadable] = []
        if requests:
            deadline = self._media.deadline
            found = replies(requests, _process, "file", deadline=deadline, at_once=parts_reader.AT_ONCE)
        return [
            Unreadable(f"{Path(request['path']).name} cannot be read: {reply.message}")
            if isinstance(reply, Unreadable)
            else reply
            for request, reply in zip(asked, found, strict=True)
        ]


def _process(part: Sequence[bytes], deadline: float) -> tuple[list[Reply], str]:
    return exchange(parts_reader.COMMAND, part, parts_reader.SECONDS, deadline)


def _listed(name: str, file: str, reply: Reply | Unreadable | None) -> list[dict[str, Any]]:
    """The rows of one file: where it cannot be read, one row whose image says so when it is asked for."""
    if not isinstance(reply, dict):
        place = {"t": None} if name == "frames" else {"page": None, "text": None}
        return [{**place, "image": f"{name[:-1]}:{WHOLE}@{file}"}]
    if name == "frames":
        return [{"t": t, "image": f"frame:{str(t).removesuffix('.0')}@{file}"} for t in reply["moments"]]
    return [{"page": n, "text": text, "image": f"page:{n}@{file}"} for n, text in enumerate(reply["pages"], 1)]
