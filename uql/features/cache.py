"""Vectors of texts on disk: one folder a (key, embedder), found by the texts' content, so that only new texts are
embedded.

A folder holds segments (`*.vectors.npy` float16, `*.hashes.npy`) and `manifest.json`, which names them and the
embedder. Files are
written beside their place and moved into it, the manifest last: a killed run leaves the former state and a stray
segment, which the
next writer removes: so one writer at a time (`alone`).
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from uql.base import json_file
from uql.base.errors import DataError
from uql.features.embedder import LONGEST, Embedder, ImageEmbedder

Half = NDArray[np.float16]
Progress = Callable[[int, int], None]

VERSION = 1
CHUNK = 8192  # texts embedded between two calls of `progress`
SEGMENTS = 16  # more are merged into one


def content_hashes(texts: Sequence[str | None]) -> NDArray[np.void]:
    """(n,) 16 bytes a text: equal texts (of which the first 20,000 characters are read) have equal hashes."""
    joined = b"".join(
        blake2b((text or "")[:LONGEST].encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts
    )
    return np.frombuffer(joined, dtype=np.dtype((np.void, 16)))


def distinct(hashes: NDArray[np.void]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The position of each distinct hash's first row, in the order of rows; and for each row its hash's number in that
    order."""
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return first[order].astype(np.int64), number[inverse.ravel()]


class VectorCache:
    """The vectors of one (key, embedder), in memory-mapped files; in memory alone where `folder` is None."""

    def __init__(self, folder: Path | None, embedder: str) -> None:
        self.folder, self.embedder = folder, embedder
        self._names: list[str] = []
        self._hashes: list[NDArray[np.void]] = []
        self._vectors: list[Half] = []
        if folder is not None:
            self._read(folder)

    def __len__(self) -> int:
        return sum(map(len, self._hashes))

    def vectors(
        self,
        texts: Sequence[Any],
        hashes: NDArray[np.void],
        embedder: Embedder | ImageEmbedder,
        progress: Progress | None = None,
    ) -> Half:
        """(n, d) float16 of distinct texts or images, in order; those not in the cache are embedded and kept.

        Args:
            texts: what the embedder takes, no two of equal content.
            embedder: whose `name` the cache was opened for.
            progress: called with (texts done, texts to embed).
        """
        at, is_cached = self.find(hashes)
        new = np.flatnonzero(~is_cached)
        if len(new):
            self.append(hashes[new], self._embedded(texts, new, embedder, progress))
            at, is_cached = self.find(hashes)
        if len(self._vectors) == 1 and len(at) == len(self._vectors[0]) and bool((at == np.arange(len(at))).all()):
            return self._vectors[0]
        out = np.empty((len(texts), self._vectors[0].shape[1] if self._vectors else 0), np.float16)
        start = 0
        for part in self._vectors:
            mine = np.flatnonzero((at >= start) & (at < start + len(part)))
            out[mine] = part[at[mine] - start]
            start += len(part)
        return out

    @staticmethod
    def _embedded(
        texts: Sequence[Any], new: NDArray[np.int64], embedder: Embedder | ImageEmbedder, progress: Progress | None
    ) -> Iterator[Half]:
        """The vectors of the texts at `new`, some at a time."""
        for start in range(0, len(new), CHUNK):
            if progress is not None:
                progress(start, len(new))
            yield embedder.embed([texts[i] for i in new[start : start + CHUNK]]).astype(np.float16)
        if progress is not None:
            progress(len(new), len(new))

    def find(self, hashes: NDArray[np.void]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Where each hash is, and whether it is known."""
        if not len(self):
            return np.zeros(len(hashes), np.int64), np.zeros(len(hashes), bool)
        cached_hashes = np.concatenate(self._hashes).view("S16").ravel()
        queries = np.ascontiguousarray(hashes).view("S16").ravel()
        order = np.argsort(cached_hashes, kind="stable")
        place = np.minimum(np.searchsorted(cached_hashes[order], queries), len(cached_hashes) - 1)
        at = order[place]
        return at, cached_hashes[at] == queries

    def append(self, hashes: NDArray[np.void], parts: Iterable[Half]) -> None:
        """Keep the vectors of distinct texts, which come in parts; those of a folder never lie in memory whole."""
        if self.folder is None:
            self._hashes.append(hashes)
            self._vectors.append(np.concatenate(list(parts)))
            return
        earlier: list[Half] = []
        if len(self._vectors) >= SEGMENTS:
            hashes = np.concatenate([*self._hashes, hashes])
            earlier = self._vectors
            self._names, self._hashes, self._vectors = [], [], []
        name = secrets.token_hex(8)
        save_array(self.folder / f"{name}.hashes.npy", np.frombuffer(hashes.tobytes(), np.uint8).reshape(-1, 16))
        save_parts(self.folder / f"{name}.vectors.npy", len(hashes), chain(earlier, parts))
        self._names.append(name)
        self._hashes.append(hashes)
        self._vectors.append(np.load(self.folder / f"{name}.vectors.npy", mmap_mode="r"))
        manifest = {
            "version": VERSION,
            "embedder": self.embedder,
            "rows": len(self),
            "dimensions": int(self._vectors[-1].shape[1]),
            "segments": self._names,
        }
        save_bytes(self.folder / "manifest.json", json.dumps(manifest, indent=1).encode())
        self._sweep(self.folder)

    def _read(self, folder: Path) -> None:
        manifest = read_json(folder / "manifest.json")
        if manifest.get("version") != VERSION or manifest.get("embedder") != self.embedder:
            return  # another embedder, or none: its files are swept at the next write
        names, width = manifest.get("segments"), manifest.get("dimensions")
        width = width if isinstance(width, int) else 0
        for name in names if isinstance(names, list) else ():
            try:
                hashes = read_array(folder / f"{name}.hashes.npy", (None, 16)).astype(np.uint8)
                vectors = read_array(folder / f"{name}.vectors.npy", (len(hashes), width))
            except (OSError, ValueError, EOFError):
                continue  # a damaged segment is made again
            self._names.append(str(name))
            self._hashes.append(np.frombuffer(hashes.tobytes(), np.dtype((np.void, 16))))
            self._vectors.append(vectors)

    def _sweep(self, folder: Path) -> None:
        """Remove segments that the manifest does not name."""
        for path in [*folder.glob("*.npy"), *folder.glob("*.part")]:
            if path.name.split(".")[0] not in self._names:
                with contextlib.suppress(OSError):  # another process reads it, or removed it first
                    path.unlink()


def own_folder(cache_dir: Path | None, key: str) -> Path | None:
    """The folder of a key; None where nothing is kept, or where it holds what UQL does not make: a link, a pipe, a device. Who sent the
    database may have put it there, to have files of another folder replaced.

    Args:
        cache_dir: the folder of vectors.
        key: names the table and columns.
    """
    if cache_dir is None:
        return None
    folder = cache_dir / blake2b(key.encode(), digest_size=8).hexdigest()
    inside = (Path(root, name) for root, folders, files in os.walk(folder) for name in (*folders, *files))
    places = (folder, folder.with_name(f"{folder.name}.lock"), *inside)
    return folder if all(map(_is_plain, places)) else None


def _is_plain(place: Path) -> bool:
    """Is this a file, a folder, or nothing? Asked once: another process may move or remove it at the same moment."""
    try:
        mode = place.lstat().st_mode
    except OSError:
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


@contextlib.contextmanager
def alone(folder: Path | None) -> Iterator[None]:
    """One thread of one process at a time makes the vectors of a folder; the next one finds them made. None waits where the
    place cannot be written, or the platform has no locks."""
    with contextlib.ExitStack() as held:
        if folder is not None:
            with contextlib.suppress(OSError, ImportError):
                import fcntl

                folder.parent.mkdir(parents=True, exist_ok=True)
                fcntl.flock(held.enter_context(folder.with_name(f"{folder.name}.lock").open("a")), fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _written(path: Path) -> Iterator[BinaryIO]:
    """A file that is written whole or not at all. Raises DataError (UQL510) where the folder cannot be written or the disk is full."""
    part = path.with_name(f"{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise DataError(
            f"the vectors of the rows cannot be written to {path.parent}: {error.strerror or error}",
            code="UQL510",
            help="free some space on the disk, or make the folder writable",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def save_bytes(path: Path, data: bytes) -> None:
    """Write a file whole or not at all. Raises: DataError (UQL510)."""
    with _written(path) as file:
        file.write(data)


def save_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array whole or not at all. Raises: DataError (UQL510)."""
    with _written(path) as file:
        np.save(file, array, allow_pickle=False)


def save_parts(path: Path, n: int, parts: Iterable[Half]) -> None:
    """Write an array of n rows, which come in parts, whole or not at all.

    Args:
        path: of the .npy file.
        n: rows of all parts.
        parts: (rows, d) each, in order; stored as little-endian float16.
    Raises: DataError (UQL510).
    """
    with _written(path) as file:
        for i, rows in enumerate(parts):
            if i == 0:
                shape = {"descr": "<f2", "fortran_order": False, "shape": (n, rows.shape[1])}
                np.lib.format.write_array_header_1_0(file, shape)
            file.write(np.ascontiguousarray(rows, "<f2").data)


def forget_pages(array: NDArray[Any]) -> None:
    """Let the pages of a file go that reading a memory-mapped array brought in; they are read again when needed."""
    owner: Any = array
    while owner is not None and not isinstance(owner, mmap.mmap):
        owner = getattr(owner, "base", None)
    if owner is not None and hasattr(mmap, "MADV_DONTNEED"):
        owner.madvise(mmap.MADV_DONTNEED)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty where there is none, or it cannot be read."""
    try:
        return json_file.read(path)
    except (OSError, ValueError):
        return {}


def read_array(path: Path, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """The array of numbers in a file, mapped into memory, so that it is no larger than the file.

    Args:
        shape: that it must have; None: any length.
    Raises: OSError, ValueError, EOFError where it is another.
    """
    array: Any = np.load(path, mmap_mode="r")
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "uif" or array.ndim != len(shape):
        raise ValueError("another array")
    if any(wanted not in (None, length) for length, wanted in zip(array.shape, shape, strict=True)):
        raise ValueError(f"an array of the shape {array.shape}")
    return array
