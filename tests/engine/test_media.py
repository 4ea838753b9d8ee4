"""Images, sounds and documents: in BLOBs, by paths and addresses, sent as they are taken, refused where they are not."""

from __future__ import annotations

import base64
import io
import socket
import zlib
from pathlib import Path

import docx
import pytest
from PIL import Image
from row_model import RowModel

import uql
from uql.base.errors import PlanError
from uql.base.media_types import Unreadable, media_type
from uql.base.schema import Modality
from uql.features.images import ImageDescriptors
from uql.llm.pictures import MOST_PIXELS, fitted
from uql.llm.providers.base import Answer, Capabilities
from uql.llm.questions import Predicate
from uql.sources import web
from uql.sources.documents import texts
from uql.sources.media import MOST_BYTES, Media


class Eyes(RowModel):
    """Says of a picture whether it is red, of a sound whether it is WAV, of a text its first word."""

    name, is_local = "eyes", True

    def __init__(self, **can):
        self.capabilities = Capabilities(**can)
        self.seen = []

    def _one(self, question, row):
        (cell,) = row.cells
        self.seen.append(cell)
        if isinstance(question, Predicate):
            if cell.media_type.startswith("image/"):
                red, green, blue = Image.open(io.BytesIO(cell.value)).convert("RGB").getpixel((0, 0))
                return Answer(red > max(green, blue), 1.0)
            return Answer(cell.media_type == "audio/wav", 1.0)
        return Answer(cell.value.split()[0])


def picture(colour, size=(6, 4), kind="PNG"):
    made = io.BytesIO()
    Image.new("RGB", size, colour).save(made, kind)
    return made.getvalue()


def pdf(text):
    """A PDF of one page with this text, by hand."""
    stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = b"%PDF-1.4\n", []
    for n, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (n, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % len(out)
    return out + b"xref\n0 6\n0000000000 65535 f \n" + table + end


WAV = b"RIFF\x24\0\0\0WAVEfmt "
MP3 = b"ID3\x04" + bytes(20)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pics").mkdir()
    (tmp_path / "pics" / "a.png").write_bytes(picture("red"))
    (tmp_path / "pics" / "b.jpg").write_bytes(picture("blue", kind="JPEG"))
    (tmp_path / "pics" / "no picture.png").write_text("hello")
    (tmp_path / ".git").mkdir()
    for hidden in (".hidden.png", ".git/a.png"):
        (tmp_path / hidden).write_bytes(picture("red"))
    (tmp_path / "linked.png").symlink_to(".hidden.png")
    (tmp_path / "x.wav").write_bytes(WAV)
    (tmp_path / "y.mp3").write_bytes(MP3)
    return tmp_path


def connect(place, model=None, **settings):
    return uql.connect(place / "shop.duckdb", model=model or Eyes(), ledger=":memory:", budget="all", **settings)


def test_paths_in_a_column_whose_comment_says_image_are_read_beside_the_database(folder):
    con = connect(folder)
    con.sql("CREATE TABLE t AS SELECT unnest(['pics/a.png', 'pics/b.jpg', NULL]) AS photo")
    con.sql("COMMENT ON COLUMN t.photo IS 'image of the thing'")
    found = con.uql('SELECT photo, "it is red" IS NULL AS unknown FROM t WHERE "it is red" OR photo IS NULL')
    assert found.fetchall() == [("pics/a.png", False), (None, True)]
    assert found.cost.calls == 2
    assert not found.errors


def test_a_cast_to_image_reads_the_paths_of_a_column(folder):
    con = connect(folder)
    con.sql("CREATE TABLE t AS SELECT unnest(['pics/a.png', 'pics/b.jpg']) AS photo")
    found = con.uql('SELECT photo::IMAGE AS photo FROM t WHERE "it is red"')
    assert found.fetchall() == [("pics/a.png",)]
    assert con.uql('SELECT COUNT(*) AS n FROM t WHERE "it is red" AND photo::IMAGE IS NOT NULL').fetchall() == [(1,)]


BAD = {
    "pics/none.png": "there is no file",
    "../../etc/passwd": "lies outside",
    "/etc/passwd": "lies outside",
    "pics/no picture.png": "is not an image",
    "https://example.org/a.png": "addresses are not fetched",
    ".hidden.png": "is hidden",
    "pics/../.git/a.png": "is hidden",
    "linked.png": "is hidden",
}


def test_a_path_that_gives_no_picture_is_a_row_with_an_error_and_nobody_is_asked(folder):
    con = connect(folder)
    con.sql(f"CREATE TABLE t AS SELECT unnest({['pics/a.png', *BAD]}) AS photo")
    found = con.uql('SELECT photo::IMAGE AS p, "it is red" AS red FROM t WHERE "it is red" IS NOT NULL')
    assert [row[0] for row in found.fetchall()] == ["pics/a.png"]
    assert found.cost.calls == 1
    assert len({e.row for e in found.errors}) == len(BAD)
    for error, why in zip(found.errors, BAD.values(), strict=False):
        assert error.kind == "unreadable"
        assert why in error.message
    assert not found.exact


def test_under_try_an_unreadable_file_is_part_of_the_value(folder):
    con = connect(folder)
    con.sql("CREATE TABLE t AS SELECT 'pics/none.png' AS photo")
    ((said,),) = con.uql('SELECT (TRY "it is red"::BOOLEAN) AS said FROM t WHERE photo::IMAGE IS NOT NULL').fetchall()
    assert said["value"] is None
    assert "there is no file" in said["error"]


def test_uql_folder_says_where_paths_begin(folder):
    con = connect(folder, folder=str(folder / "pics"))
    con.sql("CREATE TABLE t AS SELECT 'a.png' AS photo")
    assert con.uql('SELECT photo::IMAGE FROM t WHERE "it is red"').fetchall() == [("a.png",)]


def test_a_folder_that_is_named_may_be_hidden_itself(folder):
    con = connect(folder, folder=str(folder / ".git"))
    con.sql("CREATE TABLE t AS SELECT 'a.png' AS photo")
    assert con.uql('SELECT photo FROM t WHERE photo::IMAGE IS NOT NULL AND "it is red"').fetchall() == [("a.png",)]


def test_sounds_are_known_by_their_first_bytes_or_by_a_cast(folder):
    con = connect(folder, listen=True)
    con.sql("CREATE TABLE files AS SELECT unnest(['x.wav', 'y.mp3']) AS clip")
    con.sql(
        f"CREATE TABLE blobs AS SELECT 1 AS id, from_hex('{WAV.hex()}') AS clip UNION ALL SELECT 2, from_hex('{MP3.hex()}')"
    )
    assert con.uql('SELECT clip::AUDIO FROM files WHERE "it is WAV"').fetchall() == [("x.wav",)]
    assert con.uql('SELECT id FROM blobs WHERE "it is WAV"').fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("can", "column", "words"), [("audio", "clip::AUDIO", "sounds"), ("images", "clip::IMAGE", "images")]
)
def test_a_model_that_takes_no_such_thing_is_said_at_planning(folder, can, column, words):
    model = Eyes(**{can: False})
    con = connect(folder, model, listen=True)
    con.sql("CREATE TABLE files AS SELECT unnest(['x.wav', 'y.mp3']) AS clip")
    with pytest.raises(PlanError) as error:
        con.uql(f'SELECT {column} FROM files WHERE "it is WAV"').fetchall()
    assert error.value.code == "UQL304"
    assert words in error.value.message
    assert not model.seen


def test_documents_are_read_as_text(folder):
    (folder / "a.html").write_text(
        "<!doctype html><title>t</title><body><script>bad()</script><p>Alpha one</p><p>two</p>"
    )
    written = docx.Document()
    written.add_paragraph("Beta paragraph")
    written.save(folder / "b.docx")
    (folder / "c.pdf").write_bytes(pdf("Gamma page"))
    (folder / "d.pdf").write_bytes(b"%PDF-1.4 broken")
    model = Eyes()
    con = connect(folder, model)
    con.sql("CREATE TABLE t AS SELECT unnest(['a.html', 'b.docx', 'c.pdf', 'd.pdf']) AS page")
    con.sql("COMMENT ON COLUMN t.page IS 'document'")
    found = con.uql('SELECT page, "the first word" AS w FROM t ORDER BY page')
    assert found.fetchall() == [("a.html", "t"), ("b.docx", "Beta"), ("c.pdf", "Gamma"), ("d.pdf", None)]
    assert [e.kind for e in found.errors] == ["unreadable"]
    assert "bad()" not in next(c.value for c in model.seen if "Alpha" in c.value)


def test_a_page_beyond_what_is_read_says_so_and_not_that_it_is_empty(folder):
    (folder / "deep.html").write_text("<html><body>first words" + "<div>" * 5_000 + "deep words" + "</div>" * 5_000)
    (folder / "long.html").write_text("<html><p>" + "word " * 2_500_000)
    con = connect(folder)
    con.sql("CREATE TABLE t AS SELECT unnest(['deep.html', 'long.html']) AS page")
    con.sql("COMMENT ON COLUMN t.page IS 'document'")
    found = con.uql('SELECT page, "the first word" AS w FROM t')
    assert [row[1] for row in found.fetchall()] == [None, None]
    assert ["Excessive depth" in e.message or "limit exceeded" in e.message for e in found.errors] == [True, True]


def test_documents_in_bytes_are_read_too(folder):
    con = connect(folder)
    con.sql(f"CREATE TABLE b AS SELECT from_hex('{pdf('Delta page').hex()}') AS page")
    assert con.uql('SELECT "the first word" AS w FROM b').fetchall() == [("Delta",)]


def test_one_document_that_ends_its_reader_does_not_take_the_others_with_it(monkeypatch):
    from uql.sources import documents

    real, calls = documents._process, []

    def dies_on_first(part, deadline):
        calls.append(len(part))
        return ([], "ended with -9") if len(calls) == 1 else real(part, deadline)

    monkeypatch.setattr(documents, "_process", dies_on_first)
    lost, kept = texts([pdf("lost"), pdf("kept page")])
    assert isinstance(lost, Unreadable)
    assert "ended with -9" in lost.message
    assert kept.split() == ["kept", "page"]


# ----------------------------------------------------------------------------------------------------------- pictures
def test_a_large_picture_is_sent_smaller_and_a_small_one_as_it_is():
    small = picture("red")
    assert fitted(small, "image/png") == (small, "image/png")
    large, kind = fitted(picture("red", (4000, 1000)), "image/png")
    assert kind == "image/jpeg"
    assert Image.open(io.BytesIO(large)).size == (MOST_PIXELS, MOST_PIXELS // 4)
    with pytest.raises(ValueError, match="cannot be read"):
        fitted(b"\x89PNG\r\n\x1a\n....", "image/png")
    assert base64.b64encode(large)


@pytest.mark.skipif(
    not Path("/proc/self/maps").exists(), reason="there are no files whose size the system does not state"
)
def test_a_file_is_read_up_to_the_limit_whatever_size_the_system_states(monkeypatch):
    monkeypatch.setitem(MOST_BYTES, Modality.DOCUMENT, 100)
    assert Path("/proc/self/maps").stat().st_size == 0
    (found,) = Media(Path("/proc/self")).load(["maps"], Modality.DOCUMENT)
    assert isinstance(found, Unreadable) and "more than 100 bytes" in found.message


@pytest.mark.parametrize("kind", ["EPS", "TIFF", "BMP", "ICNS"])
def test_a_file_of_a_format_that_no_model_takes_is_not_opened(kind, monkeypatch):
    """Pillow reads over forty formats, one of them by a program."""
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", lambda *a, **k: pytest.fail("Ghostscript is started"))
    data = picture("red", (64, 64), kind)
    with pytest.raises(ValueError, match="cannot be read"):
        fitted(data, "image/png")
    assert not ImageDescriptors().embed([data]).any()


def test_a_picture_that_unpacks_to_too_much_has_no_vector(recwarn):
    """1.4 kB, and 360 MB in memory."""
    bomb = io.BytesIO()
    Image.new("1", (11_000, 11_000)).save(bomb, "PNG", optimize=True)
    assert not ImageDescriptors().embed([bomb.getvalue()]).any()
    with pytest.raises(ValueError, match="11000 × 11000 pixels, which is too many"):
        fitted(bomb.getvalue(), "image/png")
    assert not recwarn.list


def animated(side: int) -> bytes:
    """A WebP of two frames of one pixel on a canvas of so many pixels a side."""
    one = io.BytesIO()
    Image.new("RGB", (1, 1)).save(one, "WEBP", lossless=True)
    canvas = (side - 1).to_bytes(3, "little") * 2
    frame = bytes(16) + one.getvalue()[12:]
    parts = [(b"VP8X", b"\x02\0\0\0" + canvas), (b"ANIM", bytes(6)), *[(b"ANMF", frame)] * 2]
    body = b"".join(name + len(data).to_bytes(4, "little") + data for name, data in parts)
    return b"RIFF" + (len(body) + 4).to_bytes(4, "little") + b"WEBP" + body


def line_of_pixels(height: int) -> bytes:
    """A PNG of one pixel a line, without the lines."""
    parts = [
        (b"IHDR", (1).to_bytes(4, "big") + height.to_bytes(4, "big") + bytes((8, 0, 0, 0, 0))),
        (b"IDAT", zlib.compress(bytes(9))),
    ]
    chunks = (
        len(data).to_bytes(4, "big") + name + data + zlib.crc32(name + data).to_bytes(4, "big") for name, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize("data", [animated(8_000), line_of_pixels(79_000_000)], ids=["canvases", "lines"])
def test_a_picture_that_takes_more_memory_than_its_pixels_is_not_unpacked(data):
    """136 bytes took 1.3 GB: a WebP has several canvases of its size; 74 bytes took 600 MB: a line has an address."""
    assert fitted(animated(2_000), "image/webp")[1] in ("image/png", "image/jpeg")
    with pytest.raises(ValueError, match="which is too many"):
        fitted(data, media_type(data))


# ---------------------------------------------------------------------------------------------------------- addresses
REFUSED = {
    "http://example.org/a.png": "only https",
    "file:///etc/passwd": "only https",
    "https://user:word@example.org/a.png": "only https",
    "https://127.0.0.1/a.png": "private network",
    "https://169.254.169.254/latest/meta-data": "private network",
    "https://[::1]/a.png": "private network",
    "https://[::ffff:10.0.0.1]/a.png": "private network",
    "https://10.1.2.3:8443/a.png": "private network",
    "https://[::127.0.0.1]/a.png": "private network",
    "https://[::ffff:0:127.0.0.1]/a.png": "private network",
    "https://[64:ff9b::127.0.0.1]/a.png": "private network",
    "https://[64:ff9b::a00:1]/a.png": "private network",
    "https://[64:ff9b:1::127.0.0.1]/a.png": "private network",
    "https://[2002:7f00:1::]/a.png": "private network",
    "https://[2002:c0a8:101::1]/a.png": "private network",
    "https://[2001:0:4136:e378:8000:63bf:80ff:fffe]/a.png": "private network",
    "https://[3fff::1]/a.png": "private network",
    "https://192.0.0.8/a.png": "private network",
    "https://192.88.99.1/a.png": "private network",
    "https://[2600::5efe:10.0.0.1]/a.png": "private network",
    "https://[2600::200:5efe:127.0.0.1]/a.png": "private network",
    "https://[fec0::1]/a.png": "private network",
    "https://[fe80::1]/a.png": "private network",
    "https://[ff02::1]/a.png": "private network",
    "https://[4000::1]/a.png": "private network",
    "https://0.0.0.0/a.png": "private network",
    "https://100.64.0.1/a.png": "private network",
}


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822", "2002:5db8:d822::1"])
def test_an_address_of_a_public_network_is_not_refused(address):
    assert web.addresses(address, 443) == [address]


@pytest.mark.parametrize(("url", "why"), REFUSED.items())
def test_an_address_that_reaches_inward_is_refused(tmp_path, url, why):
    (found,) = Media(tmp_path, urls=True).load([url], Modality.IMAGE)
    assert isinstance(found, Unreadable)
    assert why in found.message


def test_a_name_that_resolves_to_this_machine_is_refused(monkeypatch):
    inward = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 443)),
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.168.1.1", 443)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: inward)
    assert "private network" in web.fetch("https://innocent.example/a.png", 100).message


class Reply:
    def __init__(self, status, body=b"", location=""):
        self.status, self.headers, self._body = status, {"Location": location}, io.BytesIO(body)

    def read(self, n):
        return self._body.read(n)


def served(monkeypatch, pages):
    """Addresses answered from a dictionary, in place of the network."""
    asked = []

    class Pinned:
        def __init__(self, host, port, address, timeout):
            self.host = host

        def request(self, method, path, headers):
            asked.append(f"https://{self.host}{path}")

        def getresponse(self):
            return pages[asked[-1]]

        def close(self):
            pass

    monkeypatch.setattr(web, "_Pinned", Pinned)
    monkeypatch.setattr(web, "addresses", lambda host, port: web_addresses(host))
    return asked


def web_addresses(host):
    if host == "inside.example":
        raise PermissionError(f"{host} is an address of a private network")
    return ["93.184.216.34"]


def test_an_address_is_fetched_when_allowed_and_redirects_are_checked_again(monkeypatch, tmp_path):
    asked = served(
        monkeypatch,
        {
            "https://a.example/1": Reply(302, location="/2"),
            "https://a.example/2": Reply(200, picture("red")),
            "https://a.example/in": Reply(302, location="https://inside.example/x"),
            "https://a.example/big": Reply(200, bytes(30_000_000)),
            "https://a.example/gone": Reply(404),
        },
    )
    (found,) = Media(tmp_path, urls=True).load(["https://a.example/1"], Modality.IMAGE)
    assert found == picture("red")
    assert asked == ["https://a.example/1", "https://a.example/2"]
    rest = Media(tmp_path, urls=True).load([f"https://a.example/{name}" for name in ("in",)], Modality.IMAGE)
    assert "private network" in rest[0].message
    assert "more than" in Media(tmp_path, urls=True).load(["https://a.example/big"], Modality.IMAGE)[0].message
    assert "404" in Media(tmp_path, urls=True).load(["https://a.example/gone"], Modality.IMAGE)[0].message


def test_a_project_file_neither_opens_addresses_nor_names_the_folder(tmp_path, monkeypatch):
    from uql.base import config
    from uql.base.errors import ConfigError

    monkeypatch.chdir(tmp_path)
    for line in ("urls = true", 'folder = "/"'):
        (tmp_path / "uql.toml").write_text(line)
        with pytest.raises(ConfigError, match="project's file"):
            config.load()
