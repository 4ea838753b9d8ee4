"""Evaluated prompts on disk, with a stand-in for the server of llama.cpp that writes and reads the files of its slot."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from uql.base.own_key import key_file
from uql.llm.providers.prompt_states import HEAD, KEPT, LEAST, PromptStates

KEY = "key"


class Slot:
    """A server with one slot. `state` is what it has evaluated."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state, self.restored = folder, "", 0
        slot = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                name = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["filename"]
                ok = self.headers["Authorization"] == f"Bearer {KEY}"
                if ok and self.path.endswith("action=save"):
                    (slot.folder / name).write_text(slot.state)
                elif ok:
                    slot.state = (slot.folder / name).read_text()
                    slot.restored += 1
                self.send_response(200 if ok else 401)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def ask(self, states: PromptStates, user: str, *, evaluated: int = LEAST, system: str = "You write SQL.") -> str:
        """What the slot holds as a prompt begins; the prompt is evaluated and saved then."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        states.restore(self.address, KEY, messages)
        begun, self.state = self.state, user
        states.save(self.address, KEY, messages, evaluated)
        return begun


@pytest.fixture(autouse=True)
def key_of_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the key of whoever runs the tests."""
    monkeypatch.setattr("uql.base.own_key.user_file", lambda: tmp_path / "config" / "uql.toml")


@pytest.fixture
def slot(tmp_path: Path) -> Iterator[Slot]:
    slot = Slot(tmp_path / "prompts")
    yield slot
    slot.close()


TABLES = "CREATE TABLE shops (id INTEGER, name VARCHAR);".ljust(HEAD)


def test_a_later_process_begins_with_the_state_of_the_same_tables(slot: Slot) -> None:
    assert slot.ask(PromptStates(slot.folder, "model"), f"{TABLES} How many?") == ""
    slot.state = ""
    later = PromptStates(slot.folder, "model")
    assert slot.ask(later, f"{TABLES} Which?") == f"{TABLES} How many?"
    slot.ask(later, f"{TABLES} Who?")
    assert slot.restored == 1  # the memory of a process has what it evaluated itself


@pytest.mark.parametrize(("model", "system", "tables"), [("other", "You write SQL.", TABLES), ("model", "You write.", TABLES),
                                                         ("model", "You write SQL.", TABLES.upper())])  # fmt: skip
def test_another_model_instruction_or_database_begins_anew(slot: Slot, model: str, system: str, tables: str) -> None:
    slot.ask(PromptStates(slot.folder, "model"), TABLES)
    slot.state = ""
    assert slot.ask(PromptStates(slot.folder, model), tables, system=system) == ""


def test_a_prompt_of_which_little_was_evaluated_is_not_saved(slot: Slot) -> None:
    slot.ask(PromptStates(slot.folder, "model"), TABLES, evaluated=LEAST - 1)
    assert not slot.folder.exists()


def test_the_files_are_readable_by_their_owner_alone(slot: Slot) -> None:
    slot.ask(PromptStates(slot.folder, "model"), TABLES)
    (file,) = slot.folder.iterdir()
    assert stat.S_IMODE(slot.folder.stat().st_mode) == 0o700 and stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_least_recent_states_go_first(slot: Slot) -> None:
    states = PromptStates(slot.folder, "model")
    for n in range(KEPT):
        slot.ask(states, f"table {n}".ljust(HEAD))
    for n, file in enumerate(sorted(slot.folder.iterdir(), key=lambda path: path.read_text())):
        os.utime(file, (n, n))
    slot.state = ""
    assert slot.ask(PromptStates(slot.folder, "model"), "table 0".ljust(HEAD), evaluated=0).startswith("table 0")
    slot.ask(states, "another".ljust(HEAD))
    texts = {path.read_text().strip() for path in slot.folder.iterdir()}
    assert len(texts) == KEPT and {"table 0", "another"} < texts and "table 1" not in texts


def test_where_no_state_can_be_saved_or_read_the_prompt_is_evaluated(slot: Slot) -> None:
    slot.folder.write_text("a file stands in the way")
    assert slot.ask(PromptStates(slot.folder, "model"), TABLES) == ""
    slot.folder.unlink()
    slot.ask(PromptStates(slot.folder, "model"), TABLES)
    slot.close()
    assert slot.ask(PromptStates(slot.folder, "model"), TABLES) == TABLES  # of the slot itself: nobody answers


@pytest.mark.parametrize("how", ["other content", "another's name", "a link", "cut off", "no key"])
def test_a_state_that_somebody_else_wrote_is_not_restored(slot: Slot, how: str, tmp_path: Path) -> None:
    slot.ask(PromptStates(slot.folder, "model"), TABLES)
    (file,) = slot.folder.iterdir()
    match how:
        case "other content":
            file.write_text("HIJACK")
        case "another's name":
            slot.ask(PromptStates(slot.folder, "other"), "HIJACK".ljust(HEAD))
            (other,) = (path for path in slot.folder.iterdir() if path != file)
            other.replace(file)
        case "a link":
            (tmp_path / "elsewhere").write_text("HIJACK")
            file.unlink()
            file.symlink_to(tmp_path / "elsewhere")
        case "cut off":
            file.write_text(file.read_text()[:-1])
        case _:
            key_file().unlink()
    slot.state = ""
    assert slot.ask(PromptStates(slot.folder, "model"), TABLES, evaluated=0) == "" and slot.restored == 0


def test_a_folder_that_others_may_write_to_is_closed_before_a_state_is_read(slot: Slot) -> None:
    slot.ask(PromptStates(slot.folder, "model"), TABLES)
    slot.folder.chmod(0o777)
    slot.ask(PromptStates(slot.folder, "model"), TABLES, evaluated=0)
    assert slot.restored == 1 and stat.S_IMODE(slot.folder.stat().st_mode) == 0o700


def test_files_that_are_no_states_stay(slot: Slot) -> None:
    slot.folder.mkdir()
    mine = [slot.folder / f"prompt {n}.txt" for n in range(2 * KEPT)]
    for path in mine:
        path.write_text("mine")
    slot.ask(PromptStates(slot.folder, "model"), TABLES)
    assert all(path.read_text() == "mine" for path in mine)
