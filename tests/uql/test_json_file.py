"""A file of JSON is read where it is one, and what is none is an error at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from uql.base import json_file


def test_what_was_written_is_read_and_no_file_is_empty(tmp_path: Path) -> None:
    assert json_file.read(tmp_path / "none.json") == {}
    json_file.write(tmp_path / "one.json", {"a": [1, 2]})
    assert json_file.read(tmp_path / "one.json") == {"a": [1, 2]}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX")
@pytest.mark.timeout(20)
def test_a_pipe_is_an_error_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(OSError, match="not a file"):
        json_file.read(tmp_path / "pipe.json")


def test_another_value_than_an_object_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(ValueError):
        json_file.read(tmp_path / "list.json")
