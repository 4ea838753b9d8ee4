"""Documents as tables of pages: their text, their picture, and files that are not what they seem."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

pytest.importorskip("pypdfium2")
pytest.importorskip("av")  # of the module of clips

import docx
import pypdf
from clips import Watcher, pdf
from pypdf import generic

import uql
from uql.sources.documents import texts

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


def test_a_value_of_bytes_that_cannot_be_read_is_not_named_by_a_digest(folder):
    con = connect(folder, ["farm.pdf"])
    con.sql("CREATE TABLE bytes_ AS SELECT '%PDF-1.4 broken'::BLOB AS doc")
    ((why,),) = con.uql("SELECT error FROM bytes_, pages(doc) AS p").fetchall()
    assert why.startswith("the file of this value cannot be read: ")


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


def form(text, name, value):
    """A PDF of one page with a text field, filled in by a program that drew nothing for it."""
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf([text])))
    field = {"/Type": "/Annot", "/Subtype": "/Widget", "/FT": "/Tx"}
    held = generic.DictionaryObject({generic.NameObject(k): generic.NameObject(v) for k, v in field.items()})
    texts = {"/T": name, "/V": value, "/DA": "1 0 0 rg /Helv 40 Tf"}
    held.update({generic.NameObject(k): generic.TextStringObject(v) for k, v in texts.items()})
    held[generic.NameObject("/Rect")] = generic.ArrayObject([generic.FloatObject(x) for x in (72, 400, 500, 460)])
    fields = generic.ArrayObject([writer._add_object(held)])
    writer.pages[0][generic.NameObject("/Annots")] = fields
    writer._root_object[generic.NameObject("/AcroForm")] = generic.DictionaryObject(
        {generic.NameObject("/Fields"): fields, generic.NameObject("/NeedAppearances"): generic.BooleanObject(True)}
    )
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


def test_what_was_filled_into_a_form_stands_on_its_page(folder):
    (folder / "form.pdf").write_bytes(form("Application", "name of the miller", "Ada Lovelace"))
    con = connect(folder, ["form.pdf", "farm.pdf"])
    pages = con.uql("SELECT text FROM reports, pages(doc) AS p WHERE doc = 'form.pdf'").fetchall()
    assert pages == [("Application\nname of the miller: Ada Lovelace",)]
    query = "SELECT doc, page FROM reports, pages(doc) AS p WHERE"
    assert con.uql(f'{query} "it names a Lovelace" USING (text)').fetchall() == [("form.pdf", 1)]
    assert con.uql(f'{query} "there is red in {{image}}"').fetchall() == [("form.pdf", 1)], "it is drawn too"
    assert con.uql('SELECT doc FROM reports WHERE "it names a Lovelace" USING (doc)').fetchall() == [("form.pdf",)]


def test_a_document_behind_other_bytes_is_one_and_a_turned_page_is_read(folder):
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf(["Of the mill", "Of the farm"])))
    writer.pages[0].rotate(180)
    made = io.BytesIO()
    writer.write(made)
    (folder / "behind.pdf").write_bytes(b"\r\nX-Sent: yes\r\n" + made.getvalue())
    con = connect(folder, ["behind.pdf"])
    assert con.uql("SELECT page, text FROM reports, pages(doc) AS p ORDER BY page").fetchall() == [
        (1, "Of the mill"),
        (2, "Of the farm"),
    ]
    assert con.uql('SELECT COUNT(*) AS n FROM reports WHERE "it speaks of the farm" USING (doc)').fetchall() == [(1,)]


def test_the_page_of_a_long_document_is_cited(folder):
    (folder / "long.pdf").write_bytes(pdf([f"This is entry number {n}" for n in range(2000)]))
    con = connect(folder, ["long.pdf"])
    found = con.uql(
        'SELECT page FROM reports, pages(doc) AS p WHERE "it is the entry with the number 1777" USING (text)'
    )
    assert found.fetchall() == [(1778,)]


def test_why_a_document_is_not_read_whole_is_in_words(folder):
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf(["secret"])))
    writer.encrypt("word", algorithm="RC4-128")
    made = io.BytesIO()
    writer.write(made)
    latin = "Größe".encode("latin-1")
    assert [found.message for found in texts([made.getvalue(), latin])] == [
        "the document cannot be read: it is encrypted",
        "the document cannot be read: it is no PDF, DOCX, HTML or text in UTF-8",
    ]


def test_the_parts_of_a_word_document_are_read_in_their_order():
    document = docx.Document()
    document.add_paragraph("Prices of the mill")
    row = document.add_table(1, 2).rows[0]
    row.cells[0].text, row.cells[1].text = "flour", "12"
    document.add_paragraph("Prices of the farm")
    made = io.BytesIO()
    document.save(made)
    assert texts([made.getvalue()]) == ["Prices of the mill\nflour\t12\nPrices of the farm"]
