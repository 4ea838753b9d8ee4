"""con.register: folders, globs, SQLite databases and data frames as tables of a session."""

from __future__ import annotations

import io
import sqlite3
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image
from row_model import RowModel

import uql
from uql.base.errors import DataError
from uql.llm.providers.base import Answer


class Reader(RowModel):
    """Says of a picture that it is red, of a text its first word."""

    def _one(self, question, row):
        value = next(cell.value for cell in row.cells if cell.value is not None and cell.name != "file")
        if isinstance(value, bytes):
            red, _, blue = Image.open(io.BytesIO(value)).convert("RGB").getpixel((0, 0))
            return Answer(red > blue, 1.0)
        return Answer(value.split()[0])


@pytest.fixture
def con():
    with uql.connect(model=Reader(), ledger=":memory:", budget="all") as con:
        yield con


@pytest.fixture
def folder(tmp_path):
    for name, colour in (("a.png", "red"), ("b.jpg", "blue"), ("deep/c.PNG", "red")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 4), colour).save(tmp_path / name, "JPEG" if name.endswith("jpg") else "PNG")
    (tmp_path / ".hidden.png").write_bytes(b"x")
    (tmp_path / "readme.txt").write_text("alpha is the first word of this text")
    return tmp_path


def test_a_folder_of_pictures_is_a_table_of_them(con, folder):
    assert con.register("shots", folder) == ("shots",)
    assert con.uql('SELECT file FROM shots WHERE "it is red" ORDER BY file').fetchall() == [("a.png",), ("deep/c.PNG",)]
    assert con.sql("SELECT COUNT(*) FROM shots").fetchall() == [(3,)]


def test_links_that_lead_out_of_a_folder_are_left_out_and_said(con, folder, tmp_path_factory, caplog):
    """Whoever sends a folder chooses where its links lead: to a key of the user's, which a model would be shown."""
    secret = tmp_path_factory.mktemp("home") / "id.txt"
    secret.write_text("the key of the user")
    (folder / "note.txt").symlink_to(secret)
    (folder / "again.txt").symlink_to(folder / "readme.txt")
    (folder / "loop.txt").symlink_to(folder / "loop.txt")
    (folder / "deep" / "up.txt").symlink_to(Path("../..") / secret.parent.name / "id.txt")
    con.register("notes", folder, "text")
    texts = {text for (text,) in con.sql("SELECT text FROM notes").fetchall()}
    assert "the key of the user" not in texts and "alpha is the first word of this text" in texts
    assert "links in" in caplog.text and "lead out of it" in caplog.text
    con.register("all_notes", folder / "*.txt", "text")
    assert ("the key of the user",) in con.sql("SELECT text FROM all_notes").fetchall()


def test_a_name_of_a_file_is_no_pattern(con, tmp_path, tmp_path_factory):
    """Else each such file would be read several times, and with it links that lead out of the folder."""
    folder, secret = tmp_path / "sent", tmp_path_factory.mktemp("home") / "id.txt"
    folder.mkdir()
    secret.write_text("the key of the user")
    (folder / "note.txt").symlink_to(secret)
    names = ["*.txt", "a[b].txt", "ab.txt", "n?te.txt"]
    for name in names:
        (folder / name).write_text(name)
        (folder / name).with_suffix(".csv").write_text(f"name\n{name}\n")
    con.register("notes", folder, "text")
    expected = [(name, name) for name in names]
    assert con.sql("SELECT file, text FROM notes WHERE file LIKE '%.txt' ORDER BY file").fetchall() == expected
    for kind in ("table", "csv"):
        con.register("rows", folder if kind == "table" else folder / "*.[c]sv", kind)
        assert con.sql("SELECT name FROM rows ORDER BY name").fetchall() == [(name,) for name in names]
    con.register("one", folder / "a[b].csv")
    assert con.sql("SELECT name FROM one").fetchall() == [("a[b].txt",)]


def test_recordings_and_videos_of_a_folder_are_tables_of_them(con, tmp_path):
    for name in ("a.flac", "b.ogg", "c.m4a", "d.mp4", "e.webm", "f.mkv", "g.mov"):
        (tmp_path / name).write_bytes(b"....")
    con.register("films", tmp_path)
    con.register("calls", tmp_path, "audio")
    assert con.sql("SELECT file FROM films").fetchall() == [("d.mp4",), ("e.webm",), ("f.mkv",), ("g.mov",)]
    columns = con.sql(
        "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE comment IN ('video', 'audio')"
    )
    assert sorted(columns.fetchall()) == [("calls", "audio", "audio"), ("films", "video", "video")]


def test_a_picture_that_is_none_is_a_row_with_an_error_of_its_own(con, folder):
    (folder / "d.png").write_text("no picture")
    con.register("shots", folder / "*.png")
    found = con.uql('SELECT file, "it is red" USING (image) IS TRUE AS red FROM shots ORDER BY file')
    assert found.fetchall() == [("a.png", True), ("d.png", False)]
    assert [(e.kind, e.row) for e in found.errors] == [("unreadable", 1)]


def test_texts_are_read_and_a_bad_one_is_null(con, folder):
    (folder / "bad.txt").write_bytes(b"\xff\xfe\x00bad")
    con.register("notes", folder / "*.txt")
    found = con.uql('SELECT file, "the first word" USING (text) AS w FROM notes ORDER BY file')
    assert found.fetchall() == [("bad.txt", None), ("readme.txt", "alpha")]
    assert found.cost.calls == 1
    assert con.sql("SELECT file, error FROM notes ORDER BY file").fetchall() == [
        ("bad.txt", "it is not UTF-8"),
        ("readme.txt", None),
    ]


def test_texts_in_another_encoding_are_a_warning_when_they_become_a_table(con, tmp_path, caplog):
    for name, content in (("a.txt", "Köln".encode()), ("b.txt", "Köln".encode("latin-1")), ("c.txt", b"")):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "d.txt").write_bytes(b"x" * 65_535 + "ö".encode())  # a letter on the edge of what is looked at
    con.register("notes", tmp_path)
    assert "notes: 1 of 4 texts are not UTF-8, as b.txt" in caplog.text


def test_the_type_is_said_where_the_endings_do_not_tell(con, tmp_path):
    (tmp_path / "log.1").write_text('{"id": 1, "x": 2}\n{"id": 3, "x": 4}\n')
    (tmp_path / "log.2").write_text('{"id": 5, "x": 6}\n')
    con.register("log", tmp_path, type="jsonl")
    assert con.uql("SELECT id, x FROM log ORDER BY id").fetchall() == [(1, 2), (3, 4), (5, 6)]
    con.register("words", tmp_path / "log.2", type="texts")
    assert con.uql("SELECT file FROM words").fetchall() == [("log.2",)]
    (tmp_path / "log.2").write_text('{"id": 5, "x"\n')
    with pytest.raises(DataError, match="log"):
        con.uql("SELECT id FROM log").fetchall()


def test_documents_are_read_as_text_row_by_row(con, tmp_path):
    (tmp_path / "x.html").write_text("<!doctype html><p>beta page</p>")
    (tmp_path / "y.pdf").write_bytes(b"%PDF-1.4 broken")
    con.register("pages", tmp_path)
    found = con.uql('SELECT file, "the first word" USING (document) AS w FROM pages ORDER BY file')
    assert found.fetchall() == [("x.html", "beta"), ("y.pdf", None)]
    assert [e.kind for e in found.errors] == ["unreadable"]


def test_a_text_beside_documents_is_one_of_them_and_what_is_left_out_is_said(con, tmp_path, caplog):
    (tmp_path / "x.html").write_text("<!doctype html><p>beta page</p>")
    for name in ("a.txt", "b.md"):
        (tmp_path / name).write_text(f"gamma stands in {name}")
    (tmp_path / "list.csv").write_text("id\n1\n")
    con.register("pages", tmp_path)
    found = con.uql('SELECT file, "the first word" USING (document) AS w FROM pages ORDER BY file')
    assert found.fetchall() == [("a.txt", "gamma"), ("b.md", "gamma"), ("x.html", "beta")]
    assert "1 of 4 were left out: .csv 1" in caplog.text
    caplog.clear()
    con.register("notes", tmp_path, type="text")
    con.register("letters", tmp_path / "*.txt")
    assert con.uql("SELECT text FROM letters").fetchall() == [("gamma stands in a.txt",)]
    assert not caplog.text, "all files of the pattern are there"


def test_plain_texts_need_no_reader_of_documents(monkeypatch):
    from uql.base import extras
    from uql.sources.documents import texts

    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    assert texts([b"plain words"]) == ["plain words"]


def test_tables_of_several_files_are_one(con, tmp_path):
    (tmp_path / "a.csv").write_text("id,x\n1,2\n")
    (tmp_path / "b.jsonl").write_text('{"id": 3, "x": 4}\n')
    con.register("t", tmp_path)
    assert con.uql("SELECT id, x FROM t ORDER BY id").fetchall() == [(1, 2), (3, 4)]


def test_a_sqlite_database_gives_its_tables(con, tmp_path):
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE items (id INTEGER, note TEXT, weight)")
        made.executemany(
            "INSERT INTO items VALUES (?, ?, ?)", [(1, "gamma is a long enough text to read", 1), (2, None, 2.5)]
        )
        made.execute("CREATE TABLE empty (id INTEGER)")
    made.close()
    assert con.register("shop", path) == ("shop_items", "shop_empty")
    assert con.uql('SELECT id, "the first word" AS w, weight FROM shop_items ORDER BY id').fetchall() == [
        (1, "gamma", 1.0),
        (2, None, 2.5),
    ]
    assert con.uql("SELECT COUNT(*) FROM shop_empty").fetchall() == [(0,)]


@pytest.mark.parametrize("name", ["made?mode=rwc&x=.db", "half#.db", "100%41.db"])
def test_the_name_of_a_sqlite_database_is_its_name_and_no_part_of_an_address(con, tmp_path, name):
    with sqlite3.connect(tmp_path / "x.db") as made:
        made.execute("CREATE TABLE items AS SELECT 7 AS id")
    made.close()
    (tmp_path / "x.db").rename(tmp_path / name)
    con.register("items", tmp_path / name)
    assert con.uql("SELECT id FROM items").fetchall() == [(7,)]
    assert [file.name for file in tmp_path.iterdir() if file.suffix in (".db", "")] == [name]


def test_a_data_frame_is_a_table_under_its_name(con):
    con.register("frame", pd.DataFrame({"id": [1, 2], "text": ["delta is what this row begins with", None]}))
    assert con.uql('SELECT id, "the first word" AS w FROM frame ORDER BY id').fetchall() == [(1, "delta"), (2, None)]


@pytest.mark.parametrize(
    ("name", "type", "code"),
    [
        ("nothing", None, "UQL501"),
        ("odd", None, "UQL503"),
        ("odd", "film", "UQL505"),
        ("odd/x.xyz", "sqlite", "UQL503"),
    ],
)
def test_what_is_no_source_is_said(con, tmp_path, name, type, code):
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "x.xyz").write_text("?" * 200)
    with pytest.raises(DataError) as error:
        con.register("t", tmp_path / name, type)
    assert error.value.code == code


def test_without_the_reader_of_a_document_the_extra_is_named(con, tmp_path, monkeypatch):
    from uql.base import extras
    from uql.base.errors import ConfigError

    (tmp_path / "x.html").write_text("<!doctype html><p>beta page</p>")
    con.register("pages", tmp_path)
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="lxml") as error:
        con.uql('SELECT "the first word" USING (document) AS w FROM pages').fetchall()
    assert error.value.help.startswith("pip install") and "[documents]" in error.value.help
