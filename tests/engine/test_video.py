"""Videos: rows of frames, in MP4, WebM, Matroska and MOV, by path and in BLOBs, and files that are not what they seem."""

from __future__ import annotations

import resource
import time

import numpy as np
import pytest

pytest.importorskip("av")

import av
from clips import Watcher, clip

import uql
from uql.base.errors import BindError, DataError, PlanError
from uql.base.media_types import Unreadable, media_type
from uql.base.schema import Modality
from uql.llm.providers.base import Capabilities
from uql.sources import parts, parts_reader
from uql.sources.media import Media

FORMATS = {"a.mp4": "libx264", "b.webm": "libvpx-vp9", "c.mkv": "libx264", "d.mov": "libx264"}
RED = '"there is red"'


@pytest.fixture
def folder(tmp_path):
    for name, codec in FORMATS.items():
        clip(tmp_path / name, codec=codec)
    return tmp_path


def connect(place, model=None, **settings):
    settings = {"budget": "all", "ledger": ":memory:"} | settings
    return uql.connect(place / "shop.duckdb", model=model or Watcher(), **settings)


def table(con, names):
    con.sql(f"CREATE OR REPLACE TABLE clips AS SELECT unnest({list(names)}) AS clip")
    con.sql("COMMENT ON COLUMN clips.clip IS 'video of a square'")


def test_the_bytes_of_the_four_formats_are_known(folder):
    kinds = [media_type((folder / name).read_bytes()) for name in FORMATS]
    assert kinds == ["video/mp4", "video/webm", "video/x-matroska", "video/quicktime"]


@pytest.mark.parametrize("source", ["clips, unnest(frames(clip, every = '1 s')) AS f", "clips, frames(clip) AS f"])
def test_each_frame_is_a_row_with_its_second(folder, source):
    con = connect(folder)
    table(con, FORMATS)
    counted = con.uql(
        f"SELECT clip, COUNT(*) AS n, MIN(t) AS first, MAX(f.t) AS last FROM {source} WHERE {RED} GROUP BY clip ORDER BY clip"
    )
    assert counted.fetchall() == [(name, 2, 3.0, 4.0) for name in FORMATS]
    assert con.uql(f"SELECT COUNT(*) AS n FROM {source}").fetchall() == [(40,)]


def test_the_share_of_time_the_moments_and_the_clips_where_it_is_so(folder):
    con = connect(folder)
    clip(folder / "e.mp4", red=(50, 51))
    table(con, [*FORMATS, "e.mp4"])
    source = "clips, unnest(frames(clip, every = '500 ms')) AS f"
    share = con.uql(f"SELECT AVG(CASE WHEN {RED} THEN 1 ELSE 0 END) AS share FROM {source}").fetchall()
    assert share[0][0] == pytest.approx(4 * 4 / 100)
    clips = con.uql(f"SELECT DISTINCT clip FROM {source} WHERE {RED} ORDER BY clip").fetchall()
    assert clips == [(name,) for name in FORMATS]
    first = con.uql(f"SELECT t FROM {source} WHERE {RED} AND clip = 'a.mp4' ORDER BY t LIMIT 1").fetchall()
    assert first == [(3.0,)]


@pytest.mark.thorough
def test_a_clip_in_bytes_a_cast_path_and_a_clip_that_is_named(folder):
    con = connect(folder)
    con.sql(f"CREATE TABLE held AS SELECT from_hex('{(folder / 'a.mp4').read_bytes().hex()}') AS clip, 1 AS t")
    assert con.uql(f"SELECT f.t FROM held, frames(clip) AS f WHERE {RED} ORDER BY f.t").fetchall() == [(3.0,), (4.0,)]
    con.sql("CREATE TABLE named AS SELECT 'a.mp4' AS clip")
    assert con.uql(f"SELECT COUNT(*) FROM named, frames(clip::VIDEO) AS f WHERE {RED}").fetchall() == [(2,)]
    assert con.uql(f"SELECT COUNT(*) FROM frames('b.webm', every = '250 ms') AS f WHERE {RED}").fetchall() == [(8,)]
    second = con.uql(f"SELECT moment FROM frames('b.webm') AS f(moment, picture) WHERE {RED} ORDER BY 1").fetchall()
    assert second == [(3.0,), (4.0,)]


def test_a_clip_without_a_name_and_a_left_join(folder):
    con = connect(folder)
    table(con, ["a.mp4"])
    con.sql("INSERT INTO clips VALUES (NULL)")
    assert con.uql("SELECT COUNT(*) AS n FROM clips, frames(clip) AS f").fetchall() == [(10,)]
    assert con.uql("SELECT COUNT(*) AS n FROM clips LEFT JOIN frames(clip) AS f ON TRUE").fetchall() == [(11,)]


def test_frames_are_decoded_only_when_they_are_asked(folder, monkeypatch):
    real, asked = parts._process, []

    def watched(part, deadline):
        asked.extend(b'"frame"' in request for request in part)
        return real(part, deadline)

    monkeypatch.setattr(parts, "_process", watched)
    con = connect(folder)
    table(con, FORMATS)
    assert con.uql("SELECT COUNT(*) AS n, MAX(t) AS t FROM clips, frames(clip) AS f").fetchall() == [(40, 9.0)]
    assert asked == [False] * 4
    con.uql(f"SELECT clip FROM clips, frames(clip) AS f WHERE {RED} AND t = 3 ORDER BY clip").fetchall()
    assert sum(asked) == 4


@pytest.mark.thorough
def test_a_count_over_many_frames_is_an_estimate_with_an_interval(folder):
    con = connect(folder, budget=64, seed=3)
    for i in range(6):
        clip(folder / f"long{i}.mp4", seconds=60, red=(7 * i, 7 * i + 12))
    table(con, [f"long{i}.mp4" for i in range(6)])
    found = con.uql(f"SELECT COUNT(*) AS n FROM clips, frames(clip) AS f WHERE {RED}")
    estimate = found.estimates["n"]
    assert not estimate.exact
    assert estimate.low <= 72 <= estimate.high
    assert found.cost.calls <= 64


# --------------------------------------------------------------------------------------------------------- bad input
def spoil(folder):
    whole = (folder / "a.mp4").read_bytes()
    (folder / "no moov.mp4").write_bytes(whole[: len(whole) // 2])
    (folder / "text.mp4").write_text("hello")
    (folder / "empty.mp4").write_bytes(b"")
    (folder / "playlist.mp4").write_text("#EXTM3U\n#EXTINF:1,\n/etc/passwd\n")
    return ["no moov.mp4", "text.mp4", "empty.mp4", "playlist.mp4", "../x.mp4", "none.mp4", "https://example.org/a.mp4"]


def test_a_file_that_is_no_whole_video_is_one_row_with_an_error(folder):
    con, bad = connect(folder), spoil(folder)
    table(con, ["a.mp4", *bad])
    found = con.uql(
        f"SELECT clip, t, {RED}::BOOLEAN AS red FROM clips, frames(clip) AS f WHERE t IS NULL OR t = 3 ORDER BY clip"
    )
    assert found.fetchall() == sorted([(name, None, None) for name in bad] + [("a.mp4", 3.0, True)])
    messages = " ".join(error.message for error in found.errors)
    for why in [
        "no MP4",
        "lies outside",
        "there is no file",
        "addresses are not fetched",
        "no moov.mp4 cannot be read",
    ]:
        assert why in messages
    assert len(found.errors) == len(bad)


@pytest.mark.parametrize("query", ["SELECT clip, t FROM {}", "CREATE TABLE times AS SELECT clip, t FROM {}"])
def test_a_query_without_a_text_says_which_files_gave_no_frames(folder, query):
    con, bad = connect(folder), spoil(folder)
    table(con, ["a.mp4", *bad])
    statement = query.format("clips, frames(clip) AS f")
    (note,) = con.uql(statement).notes
    assert note.startswith("7 files have a row of NULLs in place of parts (count(*) counts it too, WHERE error IS NULL")
    table(con, ["a.mp4"])
    assert con.uql("SELECT clip, t FROM clips, frames(clip) AS f").notes == []


def test_sound_alone_is_no_video(folder):
    import av
    import numpy as np

    with av.open(str(folder / "sound.mp4"), "w") as made:
        stream = made.add_stream("aac", rate=16000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 16000), np.float32), format="fltp", layout="mono")
        frame.sample_rate = 16000
        made.mux(stream.encode(frame))
        made.mux(stream.encode())
    con = connect(folder)
    table(con, ["sound.mp4"])
    found = con.uql(f"SELECT {RED}::BOOLEAN AS red FROM clips, frames(clip) AS f")
    assert found.fetchall() == [(None,)]
    assert "no video stream" in found.errors[0].message


def test_the_error_of_a_broken_video_is_in_words(folder):
    whole = clip(folder / "whole.mp4", seconds=2).read_bytes()
    (folder / "codec.mp4").write_bytes(whole.replace(b"avc1", b"zzzz"))
    (folder / "head.mp4").write_bytes(whole[:200])
    film = clip(folder / "whole.mkv", seconds=2).read_bytes()
    first = film.index(b"\x1f\x43\xb6\x75")  # of the clusters that hold frames
    (folder / "head.mkv").write_bytes(film[: first + 12])
    con = connect(folder)
    table(con, ["codec.mp4", "head.mp4", "head.mkv"])
    codec, head, *frames = [row[0] for row in con.uql("SELECT error FROM clips, frames(clip) AS f").fetchall()]
    assert "of no codec that is known" in codec and "Errno" not in head and set(frames) == {None}
    found = con.uql(f"SELECT t FROM clips, frames(clip) AS f WHERE {RED}")
    messages = [e.message for e in found.errors]
    assert len(messages) == 2 + len(frames) and sum("no frame can be decoded" in m for m in messages) == len(frames)


def test_a_video_that_breaks_off_gives_the_frames_before(folder):
    whole = clip(folder / "whole.mkv", seconds=20, red=(0, 20), rate=10, size=(192, 128)).read_bytes()
    (folder / "cut.mkv").write_bytes(whole[: len(whole) * 6 // 10])
    con = connect(folder)
    table(con, ["cut.mkv"])
    found = con.uql(f"SELECT t, {RED}::BOOLEAN AS red FROM clips, frames(clip) AS f ORDER BY t")
    red = [answer for _, answer in found.fetchall()]
    assert red[0] is True and red[-1] is None
    assert set(red) == {True, None} and red == sorted(red, key=lambda r: r is None)
    assert "breaks off" in found.errors[-1].message or "no frame" in found.errors[-1].message


def test_a_variable_rate_shows_the_frame_that_stands_at_a_second(folder):
    clip(folder / "v.mkv", times=[0, 100, 4_000, 4_100, 9_000], red=(4, 5))
    con = connect(folder)
    table(con, ["v.mkv"])
    rows = con.uql(f"SELECT t FROM clips, frames(clip) AS f WHERE {RED} ORDER BY t").fetchall()
    assert rows == [(4.0,), (5.0,), (6.0,), (7.0,), (8.0,)]


@pytest.mark.thorough
def test_a_frame_of_8k_is_sent_smaller(folder):
    clip(folder / "8k.mp4", size=(7680, 4320), seconds=1, rate=1, red=(0, 1))
    model = Watcher()
    con = connect(folder, model)
    table(con, ["8k.mp4"])
    assert con.uql(f"SELECT COUNT(*) AS n FROM clips, frames(clip) AS f WHERE {RED}").fetchall() == [(1,)]
    assert len(model.seen[0].value) < 1_000_000


@pytest.mark.thorough
def test_an_hour_opens_at_once_and_ten_hours_are_listed(folder):
    clip(folder / "hour.mp4", seconds=3600, rate=1, red=(1800, 1810))
    clip(folder / "ten.mkv", times=[0, 36_000_000 - 1000], rate=1)
    con = connect(folder)
    table(con, ["hour.mp4"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    assert con.uql("SELECT COUNT(*) AS n FROM clips, frames(clip) AS f").fetchall() == [(3600,)]
    assert time.monotonic() - began < 2.0 + 8.0  # on a busy machine
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
    rows = con.uql(f"SELECT t FROM clips, frames(clip) AS f WHERE {RED} AND t >= 1795 ORDER BY t LIMIT 1").fetchall()
    assert rows == [(1800.0,)]
    table(con, ["ten.mkv"])
    assert con.uql("SELECT COUNT(*) >= 35999 AS n FROM clips, frames(clip) AS f").fetchall() == [(True,)]
    found = con.uql(f"SELECT {RED}::BOOLEAN AS red FROM clips, frames(clip, every = '1 ms') AS f")
    assert found.fetchall() == [(None,)]
    assert "more than 200,000 frames" in found.errors[0].message


def test_a_reader_that_ends_loses_one_frame(folder, monkeypatch):
    real, calls = parts._process, []

    def dies_on_first(part, deadline):
        if b'"frame"' not in part[0]:
            return real(part, deadline)
        calls.append(len(part))
        return ([], "ended with -9") if len(calls) == 1 else real(part, deadline)

    monkeypatch.setattr(parts, "_process", dies_on_first)
    con = connect(folder)
    table(con, ["a.mp4"])
    found = con.uql(f"SELECT {RED}::BOOLEAN AS red FROM clips, frames(clip) AS f WHERE t BETWEEN 2 AND 4 ORDER BY t")
    assert sorted(found.fetchall(), key=str) == [(None,), (True,), (True,)]
    assert "ended with -9" in found.errors[0].message


def test_keyframes_alone(folder):
    con = connect(folder)
    table(con, ["a.mp4"])
    assert con.uql("SELECT t FROM clips, frames(clip, every = 'keyframe') AS f ORDER BY t").fetchall() == [
        (0.0,),
        (5.0,),
    ]


def test_a_frame_of_each_shot(folder):
    """Shots of 3, 2.5 and 4 s, each of its own blocks, with a red square that moves over them and noise."""
    rng = np.random.default_rng(0)
    with av.open(str(folder / "shots.mp4"), "w") as made:
        stream = made.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 80, 60, "yuv420p"
        for blocks, frames in zip(rng.integers(0, 255, (3, 5, 5, 3)), (30, 25, 40), strict=True):
            for i in range(frames):
                pixels = np.kron(blocks, np.ones((12, 16, 1), int)) + rng.integers(-8, 8, (60, 80, 3))
                pixels[20:30, i : i + 10] = (220, 20, 20)
                frame = av.VideoFrame.from_ndarray(np.clip(pixels, 0, 255).astype(np.uint8), format="rgb24")
                made.mux(stream.encode(frame))
        made.mux(stream.encode())
    con = connect(folder)
    table(con, ["shots.mp4", "a.mp4"])
    rows = con.uql("SELECT clip, t FROM clips, frames(clip, every = 'shot') AS f ORDER BY clip, t").fetchall()
    assert rows == [("a.mp4", 0.0), ("shots.mp4", 0.0), ("shots.mp4", 3.0), ("shots.mp4", 5.5)]
    assert con.uql(f"SELECT COUNT(*) AS n FROM clips, frames(clip, every = 'shots') AS f WHERE {RED}").fetchall() == [
        (3,)
    ]


# ------------------------------------------------------------------------------------------------------------ errors
@pytest.mark.parametrize(
    "query",
    [
        'SELECT "what is seen" FROM clips',
        'SELECT "what is seen", COUNT(*) FROM clips GROUP BY 1',
        'SELECT clip FROM clips ORDER BY "how red it is"',
        'SELECT * FROM clips AS a JOIN clips AS b ON "the same is seen"',
        "SELECT \"there is red\"::ENUM('much', 'little') FROM clips",
    ],
)
def test_a_video_is_asked_for_yes_or_no_alone_and_the_error_says_what_to_write(folder, query):
    con = connect(folder)
    table(con, FORMATS)
    with pytest.raises(BindError, match="frame by frame") as error:
        con.uql(query).fetchall()
    assert "every = '1 s')) AS f WHERE" in str(error.value)


@pytest.mark.parametrize(
    ("source", "help"),
    [
        ("clips, unnest(frames(clop)) AS f", "did you mean clip? "),
        ('clips, unnest(frames("clop")) AS f', "did you mean clip? "),
        ("clips, unnest(framse(clip)) AS f", "write FROM t, unnest(frames(t.file)) AS p"),
        ("page('a.pdf')", "write FROM t, unnest(pages(t.file)) AS p"),
        ('frames("a.mp4")', "stands in single quotes: frames('a.mp4')"),
    ],
)
def test_a_mistyped_column_or_function_is_answered_with_the_right_one(folder, source, help):
    con = connect(folder)
    table(con, ["a.mp4"])
    with pytest.raises(uql.UQLError) as error:
        con.uql(f"SELECT * FROM {source}").fetchall()
    assert help in (error.value.help or "")


@pytest.mark.parametrize("call", ["frames(clip, 'x')", "frames(clip, evry = '1 s')", "frames()", "pages(clip, 2)"])
def test_other_arguments_are_refused(folder, call):
    con = connect(folder)
    table(con, FORMATS)
    with pytest.raises(BindError, match="takes one file"):
        con.uql(f"SELECT COUNT(*) AS n FROM clips, unnest({call}) AS f").fetchall()


@pytest.mark.parametrize("every", ["soon", "0 s", "-1 s", "1 day ago"])
def test_a_time_that_is_none_is_refused(folder, every):
    con = connect(folder)
    table(con, FORMATS)
    with pytest.raises(DataError, match="UQL509: DuckDB: every = "):
        con.uql(f"SELECT COUNT(*) AS n FROM clips, frames(clip, every = '{every}') AS f").fetchall()


def test_a_model_without_eyes_is_refused_before_anything_is_read(folder):
    blind = Watcher()
    blind.capabilities = Capabilities(images=False)
    con = connect(folder, blind)
    table(con, FORMATS)
    with pytest.raises(PlanError, match="takes no images"):
        con.uql(f"SELECT COUNT(*) AS n FROM clips, frames(clip) AS f WHERE {RED}").fetchall()


def test_a_frame_of_bytes_that_this_session_has_not_seen_is_an_error_in_its_row(folder):
    con = connect(folder)
    con.sql("CREATE TABLE kept AS SELECT 'frame:1@blob:" + "0" * 32 + "' AS picture")
    con.sql("COMMENT ON COLUMN kept.picture IS 'image'")
    found = con.uql(f"SELECT {RED}::BOOLEAN AS red FROM kept")
    assert found.fetchall() == [(None,)]
    assert "another session" in found.errors[0].message


@pytest.mark.parametrize("place", ["1.2.3", ".", "...", "1.", "9" * 400])
@pytest.mark.parametrize("kind", ["frame", "page"])
def test_a_name_whose_place_is_no_number_is_a_failure_of_its_row(folder, kind, place):
    """Whoever wrote the rows chose it."""
    reader = parts.Parts()
    reader.media = Media(folder, parts=reader)
    (found,) = reader.media.load([f"{kind}:{place}@a.mp4"], Modality.IMAGE)
    assert isinstance(found, Unreadable)


def test_two_sessions_of_one_database_have_their_own_files(folder):
    first, second = connect(folder), None
    table(first, ["a.mp4"])
    second = uql.attach(first.session.duck, model=Watcher(), ledger=":memory:", budget="all")
    for con in (first, second, first):
        assert con.uql(f"SELECT COUNT(*) AS n FROM clips, frames(clip) AS f WHERE {RED}").fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("text", "seconds"), [("90 s", 90.0), ("1.5", 1.5), ("1 min", 60.0), ("2 h", 7200.0), ("250ms", 0.25)]
)
def test_times_between_frames(text, seconds):
    assert parts_reader.seconds_of(text) == seconds


@pytest.fixture
def asked(monkeypatch):
    """The requests for a frame that the reading process gets."""
    real, requests = parts._process, []

    def watched(part, deadline):
        requests.extend(request for request in part if b'"frame"' in request)
        return real(part, deadline)

    monkeypatch.setattr(parts, "_process", watched)
    return requests


@pytest.mark.thorough
def test_frames_are_read_once_in_a_session(folder, asked):
    clip(folder / "long.mp4", seconds=120, rate=2, red=(20, 60))
    con = connect(folder, budget=32, seed=1)
    table(con, ["long.mp4"])
    con.uql(f"SELECT COUNT(*) AS n FROM clips, frames(clip) AS f WHERE {RED}").fetchall()
    assert len(asked) == len({bytes(request) for request in asked}) == 120  # for the features of all
    asked.clear()
    con.uql('SELECT COUNT(*) AS n FROM clips, frames(clip) AS f WHERE "it is bright there"').fetchall()
    assert asked == []
    clip(folder / "long.mp4", seconds=120, rate=3, red=(20, 60))
    con.uql('SELECT COUNT(*) AS n FROM clips, frames(clip) AS f WHERE "it is dark there"').fetchall()
    assert len(asked) == 120  # the file is another one


def test_frames_beyond_what_a_session_keeps_are_read_again(folder, asked, monkeypatch):
    monkeypatch.setattr(parts, "KEPT_BYTES", 1)
    con = connect(folder)
    table(con, ["a.mp4"])
    for text in ("there is red", "it is bright there"):
        asked.clear()
        con.uql(f'SELECT COUNT(*) AS n FROM clips, frames(clip) AS f WHERE "{text}" AND t < 3').fetchall()
        assert len(asked) >= 2
