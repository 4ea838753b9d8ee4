"""Videos that are in order, but not as most are: times, rotation, pixel formats, sound beside them; and damage within them."""

from __future__ import annotations

import struct
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("av")

import av
from clips import RED as RED_PIXEL, Watcher, clip

import uql
from uql.sources import parts_reader

RED = '"there is red"'
FRAMES = "clips, unnest(frames(clip)) AS f"
SEEN = f"SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE {RED}) AS red, MIN(CASE WHEN {RED} THEN t END) AS first FROM {FRAMES}"


def connect(folder, name):
    con = uql.connect(folder / "shop.duckdb", model=Watcher(), ledger=":memory:", budget="all")
    con.sql(f"CREATE OR REPLACE TABLE clips AS SELECT '{name}' AS clip")
    con.sql("COMMENT ON COLUMN clips.clip IS 'video'")
    return con


def made(path, codec="libx264", pixels="yuv420p", start=0.0, **options):
    """Ten seconds with red from 3 to 5, as `clips.clip` makes them, in another codec and pixel format."""
    with av.open(str(path), "w") as film:
        stream = film.add_stream(codec, rate=5, options={"g": "10", **options})
        stream.width, stream.height, stream.pix_fmt = 96, 64, pixels
        stream.codec_context.time_base = stream.time_base = Fraction(1, 1000)
        for i in range(50):
            shown = np.full((64, 96, 3), 90, np.uint8)
            shown[: 1 + i % 3, :1] = 200
            if 3 <= i / 5 < 5:
                shown[16:32, 24:48] = RED_PIXEL
            frame = av.VideoFrame.from_ndarray(shown, format="rgb24").reformat(format=pixels)
            frame.pts, frame.time_base = round((start + i / 5) * 1000), Fraction(1, 1000)
            film.mux(stream.encode(frame))
        film.mux(stream.encode())
    return path


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("late.mkv", {"start": 100.0}),
        ("late.mp4", {"start": 100.0}),
        ("b.mp4", {"bf": "3"}),
        ("ten.mp4", {"pixels": "yuv420p10le"}),
        ("full.mp4", {"pixels": "yuv444p"}),
        ("lossless.mkv", {"codec": "ffv1", "pixels": "bgr0"}),
        ("alpha.mov", {"codec": "qtrle", "pixels": "argb"}),
        ("alpha.webm", {"codec": "libvpx-vp9", "pixels": "yuva420p"}),
        ("prores.mov", {"codec": "prores_ks", "pixels": "yuv422p10le"}),
    ],
)
def test_the_seconds_of_a_video_begin_at_its_first_frame_in_any_codec(tmp_path, name, options):
    if options.get("codec", "libx264") not in av.codecs_available:
        pytest.skip(f"this PyAV has no {options['codec']}")
    made(tmp_path / name, **options)
    found = connect(tmp_path, name).uql(SEEN)
    assert found.fetchall() == [(10, 2, 3.0)] and not found.errors


@pytest.mark.parametrize("seconds", [0.2, 0.4])
def test_a_video_of_one_or_two_frames_is_one_moment(tmp_path, seconds):
    clip(tmp_path / "short.mp4", times=[int(200 * i) for i in range(round(seconds / 0.2))], red=(0, 1))
    found = connect(tmp_path, "short.mp4")
    assert found.uql(SEEN).fetchall() == [(1, 1, 0.0)]
    assert found.uql(f"SELECT t FROM clips WHERE {RED}").fetchall() == [(0.0,)]


def tall(data):
    """The bytes of an MP4 whose header says that it is shown a quarter turn clockwise, as telephones write it."""
    data = bytearray(data)
    at = data.index(b"tkhd") + 44
    assert struct.unpack(">9i", data[at : at + 36]) == (1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
    data[at : at + 36] = struct.pack(">9i", 0, 1 << 16, 0, -1 << 16, 0, 0, 64 << 16, 0, 1 << 30)
    return bytes(data)


def test_a_frame_is_shown_upright_as_its_header_says(tmp_path):
    clip(tmp_path / "wide.mp4")
    (tmp_path / "tall.mp4").write_bytes(tall((tmp_path / "wide.mp4").read_bytes()))
    import io

    from PIL import Image

    pictures = [
        np.asarray(Image.open(io.BytesIO(parts_reader.Video(str(tmp_path / name)).frame(3.0))).convert("RGB"), int)
        for name in ("wide.mp4", "tall.mp4")
    ]
    wide, upright = (np.argwhere(p[..., 0] - p[..., 1] > 90).mean(axis=0) for p in pictures)
    assert [p.shape for p in pictures] == [(64, 96, 3), (96, 64, 3)]
    assert upright == pytest.approx([wide[1], 63 - wide[0]], abs=2), "what was at the left is at the top"


def test_damage_within_a_video_loses_the_seconds_that_it_hits(tmp_path):
    """Five frames a second, each a picture of its own; those around the second 1 are zeros."""
    made(tmp_path / "hurt.mov", codec="mjpeg", pixels="yuvj420p")
    with av.open(str(tmp_path / "hurt.mov")) as film:
        packets = [(float(p.pts * p.time_base), p.pos, p.size) for p in film.demux(video=0) if p.pts is not None]
    data = bytearray((tmp_path / "hurt.mov").read_bytes())
    for second, at, size in packets:
        if 0 < second < 2:
            data[at : at + size] = bytes(size)
    (tmp_path / "hurt.mov").write_bytes(data)
    con = connect(tmp_path, "hurt.mov")
    found = con.uql(f"SELECT t, {RED}::BOOLEAN AS red FROM {FRAMES} ORDER BY t")
    assert found.fetchall() == [(float(t), None if t == 1 else 3 <= t < 5) for t in range(10)]
    assert [(e.row, e.message) for e in found.errors] == [
        (1, "hurt.mov cannot be read: the video is damaged at 0.000 s")
    ]


@pytest.mark.thorough
def test_a_clip_whose_frames_cannot_be_read_is_a_row_with_errors_and_no_matter_of_the_budget(tmp_path):
    clip(tmp_path / "cut.webm", seconds=10, red=(8, 9), codec="libvpx")
    data = (tmp_path / "cut.webm").read_bytes()
    (tmp_path / "cut.webm").write_bytes(data[: len(data) // 2])
    found = connect(tmp_path, "cut.webm").uql(f"SELECT clip FROM clips WHERE {RED}")
    assert found.fetchall() == [] and found.errors
    assert "breaks off" in found.errors[0].message
    assert not any("budget" in note for note in found.notes), found.notes
    assert any("gave no answer" in note for note in found.notes)


@pytest.mark.parametrize("every", ["keyframe", "shot", "1 s"])
def test_a_file_cut_in_its_first_frame_says_so(tmp_path, every):
    made(tmp_path / "whole.mp4", codec="mjpeg", pixels="yuvj420p")
    with av.open(str(tmp_path / "whole.mp4")) as source, av.open(
        str(tmp_path / "parts.mp4"), "w", options={"movflags": "frag_keyframe+empty_moov"}
    ) as target:  # fmt: skip
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None:
                packet.stream = stream
                target.mux(packet)
    data = (tmp_path / "parts.mp4").read_bytes()
    (tmp_path / "cut.mp4").write_bytes(data[: data.index(b"mdat") + 40])
    con = connect(tmp_path, "cut.mp4")
    found = con.uql(f"SELECT {RED}::BOOLEAN AS red FROM clips, unnest(frames(clip, every = '{every}')) AS f")
    assert {red for (red,) in found.fetchall()} == {None}
    assert {e.message.partition("cannot be read: ")[2] for e in found.errors} <= {
        "its video stream holds no frames",
        "no frame can be decoded there",
    }
