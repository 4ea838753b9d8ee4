"""Clips, recordings and documents with known contents: what is written down of them is what the readers find there."""

from __future__ import annotations

import io
import wave

import numpy as np
import pytest

pytest.importorskip("av")
pytest.importorskip("pypdfium2")

from clips import Watcher
from PIL import Image

import uql
from uql.benchmarks.datasets.media import clips, documents, recordings
from uql.benchmarks.media.__main__ import CLIPS, TEXTS
from uql.compiler.parser import parse


def connect(folder):
    return uql.connect(folder / "m.duckdb", model=Watcher(), ledger=":memory:", budget="all")


def pixels(con, names):
    return [np.asarray(Image.open(io.BytesIO(data))).astype(int) for data in con.session.catalog.parts.images(names)]


def test_what_is_written_down_of_clips_is_seen_in_them(tmp_path):
    truth = clips(tmp_path, n=6, seconds=8, seed=3)
    con = connect(tmp_path)
    con.sql(f"CREATE TABLE clips AS SELECT unnest({sorted({row['clip'] for row in truth})}) AS clip")
    rows = con.uql("SELECT clip, t, f.image FROM clips, frames(clip) AS f ORDER BY clip, t").fetchall()
    assert [row[:2] for row in rows] == [(row["clip"], row["t"]) for row in truth]
    assert {row["dark"] for row in truth} == {row["circle"] for row in truth} == {True, False}
    for row, seen in zip(truth, pixels(con, [image for *_, image in rows]), strict=True):
        assert (seen.mean() < 60) == row["dark"]
        red, _, blue = (seen[..., i] for i in range(3))
        scale = 0.2 if row["dark"] else 1.0
        assert ((blue - red > 120 * scale).sum() > 300) == row["circle"]
        if row["red_at_wall"]:
            assert max((red - blue)[:, :3].max(), (red - blue)[:, -3:].max()) > 80 * scale


def test_the_pages_of_documents_hold_their_texts(tmp_path):
    truth = documents(tmp_path, n=2, pages=3, seed=1)
    con = connect(tmp_path)
    con.sql("CREATE TABLE reports AS SELECT unnest(['report000.pdf', 'report001.pdf']) AS doc")
    rows = con.uql("SELECT doc, page, text FROM reports, pages(doc) AS p ORDER BY doc, page").fetchall()
    assert [(doc, page, " ".join(text.split())) for doc, page, text in rows] == [
        (r["doc"], r["page"], r["text"]) for r in truth
    ]


def test_recordings_hold_speech_at_the_seconds_that_are_written_down(tmp_path):
    pytest.importorskip("espeakng_loader")
    truth = recordings(tmp_path, n=1, said=2, seed=1)
    with wave.open(str(tmp_path / "call000.wav")) as file:
        rate = file.getframerate()
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(float)
    for row in truth:
        start = int(row["t"] * rate)
        assert np.abs(samples[start : start + rate]).max() > 3_000
        assert start == 0 or np.abs(samples[start - rate // 2 : start]).max() < 100  # a pause before it


@pytest.mark.parametrize("question", [*CLIPS, *TEXTS], ids=lambda q: q.text[:40])
def test_each_question_of_the_suite_is_a_statement(question):
    parse(question.text)
