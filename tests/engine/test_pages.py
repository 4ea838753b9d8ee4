"""Documents as tables of pages: their text, their picture, and files that are not what they seem."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

pytest.importorskip("pypdfium2")
pytest.importorskip("av")  # of the module of clips

import pypdf
from clips import Watcher, pdf

import uql

TEXTS = ["Annual report of the mill", "The flood of May\nstopped all wheels", "", "Prices rose", "Thanks to the miller"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mill.pdf").write_bytes(pdf(TEXTS))
    (tmp_path / "farm.pdf").write_bytes(pdf(["Of the farm", "Nothing of a flood"]))
    return tmp_path


def connect(place, names=("mill.pdf", "farm.pdf")):
    con = uql.connect(place / "shop.duckdb", model=Watcher(), ledger=":memory:", budget="all")
    con.sql(
        f"CREATE TABLE reports AS SELECT unnest({list(names)}) AS doc, 'a long text that stands beside each document' AS note"
    )
    con.sql("COMMENT ON COLUMN reports.doc IS 'document'")
    return con


def test_each_page_is_a_row_with_its_number_and_text(folder):
    con = connect(folder)
    rows = con.uql("SELECT doc, page, text FROM reports, unnest(pages(doc)) AS p ORDER BY doc, page").fetchall()
    expected = [("farm.pdf", 1, "Of the farm"), ("farm.pdf", 2, "Nothing of a flood")]
    expected += [("mill.pdf", n, text or None) for n, text in enumerate(TEXTS, 1)]
    assert rows == expected


def test_a_condition_on_pages_reads_their_texts_and_cites_the_page(folder):
    con = connect(folder)
    found = con.uql(
        'SELECT doc, page FROM reports, pages(doc) AS p WHERE "it speaks of a flood" USING (text) ORDER BY ALL'
    )
    assert found.fetchall() == [("farm.pdf", 2), ("mill.pdf", 2)]
    assert found.cost.calls == 6  # the page without words is not asked
    model = con.session.model
    assert {cell.name for cell in model.seen} == {"text"}


def test_without_using_neither_the_whole_document_nor_the_picture_is_read(folder):
    con = connect(folder)
    con.sql("ALTER TABLE reports DROP note")
    found = con.uql("SELECT page FROM reports, pages(doc) AS p WHERE \"it speaks of a flood\" AND doc = 'mill.pdf'")
    assert found.fetchall() == [(2,)]


def test_a_page_is_seen_where_the_text_names_its_image(folder):
    con = connect(folder)
    rows = con.uql('SELECT page FROM reports, pages(doc) AS p WHERE "there is red" USING (image)').fetchall()
    assert rows == [(3,)]
    assert con.session.model.seen[0].media_type == "image/jpeg"


def test_documents_in_bytes_and_one_that_is_named(folder):
    con = connect(folder)
    con.sql(f"CREATE TABLE held AS SELECT from_hex('{pdf(['one', 'two']).hex()}') AS doc")
    assert con.uql("SELECT page, text FROM held, pages(doc) AS p ORDER BY page").fetchall() == [(1, "one"), (2, "two")]
    assert con.uql("SELECT COUNT(*) AS n FROM pages('mill.pdf') AS p").fetchall() == [(5,)]


def test_encrypted_broken_and_foreign_files_are_rows_with_errors(folder):
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf(["secret"])))
    writer.encrypt("word", algorithm="RC4-128")
    writer.write(folder / "locked.pdf")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    (folder / "text.pdf").write_text("hello")
    bad = ["locked.pdf", "broken.pdf", "text.pdf", "none.pdf"]
    con = connect(folder, [*bad, "farm.pdf"])
    found = con.uql(
        'SELECT doc, page, "there is red in {image}"::BOOLEAN AS red FROM reports, pages(doc) AS p ORDER BY doc, page'
    )
    assert found.fetchall() == [
        ("broken.pdf", None, None), ("farm.pdf", 1, False), ("farm.pdf", 2, False),
        ("locked.pdf", None, None), ("none.pdf", None, None), ("text.pdf", None, None),
    ]  # fmt: skip
    messages = " ".join(error.message for error in found.errors)
    for why in [
        "it is encrypted",
        "broken.pdf cannot be read",
        "text.pdf cannot be read: it is no PDF",
        "there is no file",
    ]:
        assert why in messages


def test_the_reason_stands_in_the_column_error(folder):
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    con = connect(folder, ["broken.pdf", "farm.pdf"])
    rows = con.uql(
        "SELECT doc, error LIKE 'broken.pdf cannot be read%' AS why FROM reports, pages(doc) AS p ORDER BY ALL"
    )
    assert rows.fetchall() == [("broken.pdf", True), ("farm.pdf", None), ("farm.pdf", None)]


NOT_CLOSED = """
import sys, uql
con = uql.connect(ledger=":memory:")
con.execute("CREATE TABLE reports AS SELECT content AS doc FROM read_blob(?)", [sys.argv[1]])
print(con.uql("SELECT page FROM reports, pages(doc) AS p").fetchall())
"""


def test_bytes_that_were_read_are_gone_with_a_process_that_closes_nothing(folder, tmp_path):
    own = tmp_path / "temporary"
    own.mkdir()
    told = [sys.executable, "-c", NOT_CLOSED, str(folder / "farm.pdf")]
    env = {**os.environ, "TMPDIR": str(own)}
    done = subprocess.run(told, capture_output=True, text=True, timeout=120, env=env)
    assert done.stdout.endswith("[(1,), (2,)]\n"), done.stderr
    assert not list(own.iterdir())
