"""Evaluated prompts on disk: a later process need not evaluate the tables of a database again.

llama.cpp saves and restores the state of its slot, and finds by itself how far the next prompt begins with the same tokens. A state is a
means to save time alone: where it cannot be read or written, the prompt is evaluated. What the file of a state holds goes to a parser of
llama.cpp and decides what the model reads, so the end of its name is a keyed hash of it: only what this user saved is restored.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from uql.base.own_key import own_key

KEPT = 8  # states; 10 to 110 MB each with the 1.5B model. The least recent go first
HEAD = 256  # characters of the user's turn that prompts over the same tables have in common
LEAST = 128  # tokens that were evaluated, from which a state is saved
TIMEOUT_S = 30.0
OF_A_STATE = re.compile(r"[0-9a-f]{32}([-.].*)?")  # names of files
Messages = Sequence[Mapping[str, str]]


class PromptStates:
    """The states of one loaded model, readable by their owner alone."""

    def __init__(self, folder: Path, *parts: object) -> None:
        """Args: folder: of the files, made when first needed. parts: on which a state depends beside its prompt: model, context …"""
        self.folder, self._parts = folder, parts
        self._names: set[str] = set()  # restored or saved by this process, whose memory has them

    def restore(self, address: str, api_key: str, messages: Messages) -> None:
        """Puts the state of a prompt that begins alike into the slot, where an earlier process left one.

        Args:
            address, api_key: of the loaded model's server in this process.
        """
        name = self._name(messages)
        if name in self._names:
            return
        self._names.add(name)
        with contextlib.suppress(OSError):
            self.folder.chmod(0o700)  # from here on nobody else writes there
            for path in self.folder.glob(f"{name}-*"):
                if path.name == _signed(path, name):
                    _slot("restore", path.name, address, api_key)
                    os.utime(path)

    def save(self, address: str, api_key: str, messages: Messages, evaluated: int) -> None:
        """Keeps the state of the slot after a prompt of which at least `LEAST` tokens had to be evaluated.

        Args:
            address, api_key: as of `restore`.
            evaluated: tokens.
        """
        if evaluated < LEAST or own_key(make=True) is None:
            return
        name = self._name(messages)
        part = f"{name}.{os.getpid()}"
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.chmod(0o700)
            try:
                _slot("save", part, address, api_key)
                (self.folder / part).chmod(0o600)
                (self.folder / part).replace(self.folder / (_signed(self.folder / part, name) or part))
            finally:
                (self.folder / part).unlink(missing_ok=True)
            states = [path for path in self.folder.iterdir() if OF_A_STATE.fullmatch(path.name)]
            for old in sorted(states, key=lambda path: path.lstat().st_mtime)[:-KEPT]:
                old.unlink(missing_ok=True)

    def _name(self, messages: Messages) -> str:
        *before, last = (message["content"] for message in messages)
        return hashlib.sha256(repr((self._parts, before, last[:HEAD])).encode()).hexdigest()[:32]


def _signed(path: Path, name: str) -> str | None:
    """The name that a file of this content has where this user saved it as the state of a name; None where the user has no key."""
    key = own_key()
    if key is None:
        return None
    with path.open("rb") as state:
        digest = hashlib.file_digest(state, lambda: hashlib.blake2b(name.encode(), key=key, digest_size=16))
    return f"{name}-{digest.hexdigest()}"


def _slot(action: str, name: str, address: str, api_key: str) -> None:
    """Saves or restores the one slot. Raises OSError where that fails."""
    request = urllib.request.Request(
        f"{address}/slots/0?action={action}",
        data=json.dumps({"filename": name}).encode(),
        headers={"Authorization": f"Bearer {api_key}", "Content-Type": "application/json"},
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    direct.open(request, timeout=TIMEOUT_S).close()
