"""Clips with known contents, for tests: a grey ground, and a red square in some seconds."""

from __future__ import annotations

import io
from fractions import Fraction

import av
import numpy as np
from PIL import Image
from row_model import RowModel

from uql.llm.providers.base import Answer, Capabilities

RED = (220, 20, 20)


def clip(
    path, *, seconds=10, red=(3, 5), size=(96, 64), rate=5, codec="libx264", times=None, container=None, ground=None
):
    """Writes a clip; `times` are those of its frames in milliseconds, where the rate varies.

    `ground`: a level by which no frame equals one of another clip, nor another of its own.
    """
    with av.open(str(path), "w", format=container) as made:
        stream = made.add_stream(codec, rate=rate, options={"g": "25", "sc_threshold": "0"})
        stream.width, stream.height = size
        stream.pix_fmt = "yuv420p"
        if times is not None:
            stream.codec_context.time_base = stream.time_base = Fraction(1, 1000)
        for i in range(seconds * rate if times is None else len(times)):
            second = i / rate if times is None else times[i] / 1000
            pixels = np.full((size[1], size[0], 3), 90, np.uint8)
            pixels[: 1 + i % 3, :1] = 200  # no two frames in a row are equal
            if ground is not None:
                pixels[:], pixels[-8:, : 4 * (1 + i // rate)] = ground, 255 - 8 * (i // rate % 2)
            if red[0] <= second < red[1]:
                pixels[size[1] // 4 : size[1] // 2, size[0] // 4 : size[0] // 2] = RED
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            if times is not None:
                frame.pts, frame.time_base = times[i], stream.codec_context.time_base
            made.mux(stream.encode(frame))
        made.mux(stream.encode())
    return path


def pdf(pages):
    """A PDF with these texts, by hand: a page a text; one of "" is a red square without a word."""
    fonts = b"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    kids = " ".join(f"{3 + 2 * i} 0 R" for i in range(len(pages)))
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode()]
    for i, text in enumerate(pages):
        lines = "".join(f"({line}) Tj 0 -16 Td " for line in text.splitlines())
        stream = f"BT /F1 12 Tf 72 700 Td {lines}ET".encode() if text else b"1 0 0 rg 100 100 300 300 re f"
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R %s >>" % (4 + 2 * i, fonts)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    out, places = b"%PDF-1.4\n", []
    for n, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (n, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end


class Watcher(RowModel):
    """Says of a frame or page whether there is red in it, of a text whether the question's last word is in it."""

    name, is_local = "watcher", True

    def __init__(self):
        self.capabilities = Capabilities(images=True)
        self.seen = []

    def _one(self, question, row):
        (cell,) = row.cells
        self.seen.append(cell)
        if isinstance(cell.value, bytes):
            pixels = np.asarray(Image.open(io.BytesIO(cell.value)).convert("RGB")).astype(int)
            return Answer(bool(((pixels[..., 0] - pixels[..., 1]) > 90).any()), 1.0)
        return Answer(question.text.split()[-1] in cell.value, 1.0)
