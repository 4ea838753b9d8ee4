"""Images, sounds and documents that values name: files under one folder, and addresses where the user allows them.

A value that cannot be read is `Unreadable` with the reason, never an error of the whole query.
"""

from __future__ import annotations

import math
import time
from collections.abc import Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from uql.base.media_types import Unreadable, media_type, modality
from uql.base.schema import Modality
from uql.sources.documents import texts
from uql.sources.parts import NAME, Parts
from uql.sources.recent import Recent
from uql.sources.web import fetch

MOST_BYTES = {
    Modality.IMAGE: 20_000_000,
    Modality.AUDIO: 50_000_000,
    Modality.VIDEO: 14_000_000,  # that is sent as a file: 20 MB with its base64, which vendors take in a request
    Modality.DOCUMENT: 100_000_000,
}
MOST_FETCHED = 1_000_000_000  # bytes of a video
KEPT_BYTES = 256_000_000  # of what was read, kept for the next question about it
AT_ONCE = 8  # addresses
SHOWN = 80  # characters of a value in a message

Loaded = bytes | str | Unreadable


class Media:
    """Reads what values name. One of these serves one run.

    Args:
        folder: paths in data are read below it; one that leads out of it is refused.
        urls: may https addresses be fetched?
        seconds: that the run has; None: without limit.
        parts: reads frames, pages and what is said in recordings; None: those of no session.
        listen: are recordings shown as they are, and not as their words?
        given: the only paths and addresses that may be read; None: any.
    """

    def __init__(
        self,
        folder: Path,
        *,
        urls: bool = False,
        seconds: float | None = None,
        parts: Parts | None = None,
        listen: bool = False,
        given: Container[str] | None = None,
    ) -> None:
        self.folder, self.urls, self.listen, self.given = folder.resolve(), urls, listen, given
        self.parts = Parts() if parts is None else parts
        self.deadline = math.inf if seconds is None else time.monotonic() + seconds  # by the monotonic clock
        self._cache: Recent[Loaded] = Recent(KEPT_BYTES)

    def load(self, values: Sequence[str | bytes | None], kind: Modality) -> list[Loaded | None]:
        """(n,) the bytes of an image or a sound, the text of a document, or why there is none; NULL stays None.

        Args:
            values: (n,) paths, addresses, or the bytes themselves.
        """
        uncached = dict.fromkeys(v for v in values if v is not None and (v, kind) not in self._cache)
        part = [v for v in uncached if isinstance(v, str) and NAME.fullmatch(v)]
        contents: dict[str | bytes, Loaded] = dict(zip(part, self.parts.images(part), strict=True))
        missing = [v for v in uncached if v not in contents]
        if len(missing) > 1:
            with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="uql-media") as pool:
                read = list(pool.map(lambda v: self._bytes(v, kind), missing))
        else:
            read = [self._bytes(v, kind) for v in missing]
        contents.update(zip(missing, read, strict=True))
        if kind is Modality.DOCUMENT:
            documents = {v: d for v, d in contents.items() if isinstance(d, bytes)}
            contents |= dict(zip(documents, texts(list(documents.values()), self._remaining_s()), strict=True))
        result = [None if v is None else contents[v] if v in contents else self._cache[v, kind] for v in values]
        for value in missing:
            self._cache.keep((value, kind), contents[value])
        return result

    def _remaining_s(self) -> float:
        """Seconds that the run has left."""
        return self.deadline - time.monotonic()

    def _bytes(self, value: str | bytes, kind: Modality) -> bytes | Unreadable:
        most = MOST_BYTES[kind]
        if isinstance(value, bytes):
            return value if len(value) <= most else Unreadable(f"the {kind} has more than {most:,} bytes")
        name = value.strip()
        data = self.fetched(name, most) if "://" in name else self._file(name, most)
        if isinstance(data, bytes) and kind is not Modality.DOCUMENT and modality(media_type(data)) is not kind:
            return Unreadable(f"{_short(name)} is not an {kind} of a known format")
        return data

    def fetched(self, name: str, most: int = MOST_FETCHED) -> bytes | Unreadable:
        """What stands at an address, where addresses are allowed.

        Args:
            most: bytes.
        """
        if self._is_foreign(name):
            return self._refused(name)
        if not self.urls:
            return Unreadable(
                f"{_short(name)} is an address, and addresses are not fetched: SET uql.urls = true allows it"
            )
        return fetch(name, most, self._remaining_s())

    def path(self, name: str) -> Path | Unreadable:
        """Where the file lies that a value names."""
        if self._is_foreign(name):
            return self._refused(name)
        try:
            path = (self.folder / name).resolve()
            if not path.is_relative_to(self.folder):
                return Unreadable(f"{_short(name)} lies outside {self.folder}; SET uql.folder names another folder")
            if any(part.startswith(".") for part in path.relative_to(self.folder).parts):
                return Unreadable(
                    f"{_short(name)} is hidden: files and folders whose names begin with a dot are not read"
                )
            if not path.is_file():
                return Unreadable(
                    f"there is no file {_short(name)} in {self.folder}; SET uql.folder names another folder"
                )
            return path
        except (OSError, ValueError) as error:
            return Unreadable(f"{_short(name)} cannot be read: {error}")

    def _is_foreign(self, name: str) -> bool:
        return self.given is not None and name.strip() not in self.given

    def _refused(self, name: str) -> Unreadable:
        return Unreadable(f"{_short(name)} is not read: it stands in no column whose comment says that it names files")

    def _file(self, name: str, most: int) -> bytes | Unreadable:
        path = self.path(name)
        if isinstance(path, Unreadable):
            return path
        try:
            with path.open("rb") as file:
                data = file.read(most + 1)  # the size that the system states may be 0, as below /proc
        except OSError as error:
            return Unreadable(f"{_short(name)} cannot be read: {error}")
        return data if len(data) <= most else Unreadable(f"{_short(name)} has more than {most:,} bytes")


def _short(name: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
