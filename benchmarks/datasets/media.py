"""Clips, recordings and documents with known contents, made by numpy, PyAV and a speech synthesiser from a seed.

`python -m uql.benchmarks.datasets.media FOLDER` makes 200 clips of 20 s, 100 recordings and 100 documents of 5 pages, with their truth as
`frames.parquet` (clip, t, what is seen), `utterances.parquet` (call, n, text, topic) and `pages.parquet` (doc, page, text, topic).
The synthesiser is eSpeak NG, from the wheel `espeakng_loader`.
"""

from __future__ import annotations

import argparse
import ctypes
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT, RATE = 160, 120, 10  # of a clip; frames a second
SIDE, RADIUS = 28, 16  # of the red square, of the blue circle
GROUNDS = {"grass": (70, 140, 60), "sand": (200, 180, 120), "stone": (130, 130, 135), "water": (60, 120, 150)}
RED, BLUE = (215, 30, 30), (30, 40, 220)

UTTERANCES = {  # by topic
    "refund": ("I want my money back for this order.", "Please give me a full refund today."),
    "delivery": ("The package has not arrived yet.", "My delivery is two weeks late."),
    "password": ("I forgot my password again.", "The website does not accept my password."),
    "thanks": ("Thank you very much for your help.", "You have been very kind, thank you."),
    "weather": ("It is raining here this morning.", "The sun is shining in the garden."),
    "food": ("We had chicken and rice for dinner.", "The restaurant has very good bread."),
}
PAGES = {
    "prices": "The price of wheat rose by {n} percent. Traders expect further increases next year.",
    "flood": "The river flooded the lower town. {n} houses stood under water for three days.",
    "school": "The school welcomed {n} new pupils. Two teachers retired after long service.",
    "bridge": "The old bridge was repaired at a cost of {n} thousand crowns.",
    "music": "The choir sang in {n} concerts. The organ was tuned before the festival.",
    "forest": "In the forest {n} oaks were felled. Young trees were planted in spring.",
}


# -------------------------------------------------------------------------------------------------------------- clips
def clips(folder: Path, n: int = 200, seconds: int = 20, seed: int = 0) -> list[dict[str, Any]]:
    """Writes `clip000.mp4` … and returns what is seen at each whole second: clip, t, ground, red_at_wall, circle, dark.

    Args:
        n: clips.
        seconds: of each.
        seed: of what happens in them.
    """
    import av

    rng = np.random.default_rng(seed)
    truth: list[dict[str, Any]] = []
    for i in range(n):
        scene = _Scene(rng, seconds)
        name = f"clip{i:03}.mp4"
        with av.open(str(folder / name), "w") as made:
            stream = made.add_stream("libx264", rate=RATE, options={"preset": "ultrafast", "crf": "20"})
            stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
            for f in range(seconds * RATE):
                made.mux(stream.encode(av.VideoFrame.from_ndarray(scene.drawn(f / RATE, rng), format="rgb24")))
            made.mux(stream.encode())
        truth += [{"clip": name, "t": float(t), **scene.seen(float(t))} for t in range(seconds)]
    return truth


class _Scene:
    """What happens in a clip: a red square goes to and fro between the walls in some, a blue circle and darkness come for a while."""

    def __init__(self, rng: np.random.Generator, seconds: int) -> None:
        self.ground = str(rng.choice(list(GROUNDS)))
        self.has_square = rng.random() < 0.4
        self.period, self.phase = rng.uniform(8, 14), rng.uniform(0, 1)
        self.top = int(rng.integers(5, HEIGHT - SIDE - 5))
        self.circle = self._interval(rng, 0.5, seconds, 3, 9)
        self.dark = self._interval(rng, 0.25, seconds, 2, 6)
        self.centre = rng.integers([50, 30], [WIDTH - 50, HEIGHT - 30])

    @staticmethod
    def _interval(rng: np.random.Generator, share: float, seconds: int, low: float, high: float) -> tuple[float, float]:
        """When something is seen, with probability `share`, for `low` to `high` seconds."""
        start = rng.uniform(-1, seconds - low) + 0.05
        return (start, start + rng.uniform(low, high)) if rng.random() < share else (0.0, 0.0)

    def _left(self, t: float) -> float:
        """The left edge of the square: it stays at each wall for a fifth of its way there and back."""
        wave = abs(2 * ((t / self.period + self.phase) % 1.0) - 1)
        return float(np.clip((wave - 0.1) / 0.8, 0, 1)) * (WIDTH - SIDE)

    def seen(self, t: float) -> dict[str, Any]:
        at_wall = self.has_square and self._left(t) in (0.0, float(WIDTH - SIDE))
        return {
            "ground": self.ground,
            "red_at_wall": bool(at_wall),
            "circle": bool(self.circle[0] <= t < self.circle[1]),
            "dark": bool(self.dark[0] <= t < self.dark[1]),
        }

    def drawn(self, t: float, rng: np.random.Generator) -> NDArray[np.uint8]:
        """(120, 160, 3) the frame at a second."""
        pixels = np.empty((HEIGHT, WIDTH, 3), np.float32)
        pixels[:] = GROUNDS[self.ground]
        if self.has_square:
            left = round(self._left(t))
            pixels[self.top : self.top + SIDE, left : left + SIDE] = RED
        if self.circle[0] <= t < self.circle[1]:
            y, x = np.ogrid[:HEIGHT, :WIDTH]
            pixels[(x - self.centre[0]) ** 2 + (y - self.centre[1]) ** 2 < RADIUS**2] = BLUE
        if self.dark[0] <= t < self.dark[1]:
            pixels *= 0.2
        return np.clip(pixels + rng.normal(0, 4, pixels.shape), 0, 255).astype(np.uint8)


# --------------------------------------------------------------------------------------------------------- recordings
def recordings(folder: Path, n: int = 100, said: int = 4, seed: int = 0) -> list[dict[str, Any]]:
    """Writes `call000.wav` … and returns what is said in each: call, n, t (the second at which it begins), text, topic.

    Args:
        n: recordings.
        said: utterances of each, of different topics.
        seed: of what is said.
    """
    rng, speak = np.random.default_rng(seed), _Speaker()
    truth: list[dict[str, Any]] = []
    for i in range(n):
        name, parts, at = f"call{i:03}.wav", [], 0.0
        for k, topic in enumerate(rng.choice(list(UTTERANCES), said, replace=False)):
            text = str(rng.choice(UTTERANCES[topic]))
            truth.append({"call": name, "n": k, "t": at, "text": text, "topic": str(topic)})
            sound = np.concatenate([speak(text), np.zeros(speak.rate, np.int16)])
            parts.append(sound)
            at += len(sound) / speak.rate
        with wave.open(str(folder / name), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(speak.rate)
            file.writeframes(np.concatenate(parts).tobytes())
    return truth


class _Speaker:
    """eSpeak NG: a text in, samples at `rate` out."""

    def __init__(self) -> None:
        import espeakng_loader

        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        self.rate = int(self._library.espeak_Initialize(2, 0, espeakng_loader.get_data_path().encode(), 0))
        self._samples: list[NDArray[np.int16]] = []
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
        self._callback = kind(self._take)
        self._library.espeak_SetSynthCallback(self._callback)
        self._library.espeak_SetVoiceByName(b"en-us")
        self._library.espeak_SetParameter(1, 130, 0)  # words a minute

    def _take(self, samples: Any, n: int, _: Any) -> int:
        if samples and n:
            self._samples.append(np.ctypeslib.as_array(samples, (n,)).copy())
        return 0

    def __call__(self, text: str) -> NDArray[np.int16]:
        self._samples.clear()
        held = text.encode()
        self._library.espeak_Synth(held, len(held) + 1, 0, 0, 0, 1, None, None)
        self._library.espeak_Synchronize()
        return np.concatenate(self._samples)


# ---------------------------------------------------------------------------------------------------------- documents
def documents(folder: Path, n: int = 100, pages: int = 5, seed: int = 0) -> list[dict[str, Any]]:
    """Writes `report000.pdf` … and returns what stands on each page: doc, page, text, topic.

    Args:
        n: documents.
        pages: of each, of different topics.
        seed: of what stands there.
    """
    rng = np.random.default_rng(seed)
    truth: list[dict[str, Any]] = []
    for i in range(n):
        name, texts = f"report{i:03}.pdf", []
        for page, topic in enumerate(rng.choice(list(PAGES), pages, replace=False), 1):
            text = f"Report {i} of the town, page {page}. " + PAGES[topic].format(n=int(rng.integers(2, 99)))
            texts.append(text)
            truth.append({"doc": name, "page": page, "text": text, "topic": str(topic)})
        (folder / name).write_bytes(pdf(texts))
    return truth


def pdf(texts: Sequence[str]) -> bytes:
    """A PDF with a page of each text, in lines of sentences."""
    kids = " ".join(f"{3 + 2 * i} 0 R" for i in range(len(texts)))
    fonts = "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(texts)} >>"]
    for i, text in enumerate(texts):
        shown = "".join(f"({line}) Tj 0 -16 Td " for line in text.replace(". ", ".\n").splitlines())
        stream = f"BT /F1 12 Tf 72 700 Td {shown}ET"
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {4 + 2 * i} 0 R {fonts} >>")
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF"
    return out + end.encode()


def main(argv: Sequence[str] | None = None) -> int:
    """Makes all of them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    parser = argparse.ArgumentParser("python -m uql.benchmarks.datasets.media", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="share of the 200 clips, 100 recordings and 100 documents"
    )
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    given.folder.mkdir(parents=True, exist_ok=True)
    many = {name: max(1, round(n * given.scale)) for name, n in (("clips", 200), ("calls", 100), ("reports", 100))}
    made = {
        "frames": clips(given.folder, many["clips"], seed=given.seed),
        "utterances": recordings(given.folder, many["calls"], seed=given.seed),
        "pages": documents(given.folder, many["reports"], seed=given.seed),
    }
    for name, rows in made.items():
        pq.write_table(pa.Table.from_pylist(rows), given.folder / f"{name}.parquet")
        print(f"{given.folder / name}.parquet: {len(rows):,} rows")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
