"""Images as vectors: a provider's multimodal embedding where it has one, else histograms of colours and gradients.

The fallback knows colours and shapes of edges, nothing of what is seen: it groups pictures that look alike, and a
condition's text is near none of them. It needs Pillow and numpy alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uql.base.extras import install
from uql.features.cache import Half, Progress, VectorCache, alone, distinct, own_folder
from uql.features.embedder import Embedder, ImageEmbedder, Matrix, unit_rows
from uql.features.table import Block, TableFeatures, folder_name, stacked
from uql.llm.pictures import opened

SIDE = 96  # pixels a side to which every picture is scaled
CELL = 12  # pixels a side of a cell of gradients
ORIENTATIONS = 8
HUES, SATURATIONS, VALUES = 12, 3, 3  # bins of the whole picture's colours
QUARTER = (8, 2, 2)  # bins of each quarter's
WITHOUT_PILLOW = f"Pillow is not installed: pictures are not looked at ({install('images')})"


class ImageDescriptors:
    """Colour histograms of the whole picture and its quarters (hue, saturation, value; roots of shares), and histograms
    of gradients in 8 × 8 cells; the three parts of equal length.

    Source: Swain & Ballard (1991), colour histograms; Dalal & Triggs (2005), histograms of oriented gradients.
    Raises: ImportError where Pillow is not installed.
    """

    name = f"colours-gradients-{SIDE}-1"
    colours = HUES * SATURATIONS * VALUES + 4 * QUARTER[0] * QUARTER[1] * QUARTER[2]  # columns; then come the edges
    dimensions = colours + 64 * ORIENTATIONS

    def __init__(self) -> None:
        import PIL.Image  # noqa: F401

    def embed(self, images: Sequence[bytes | None]) -> Matrix:
        """(n, 748) float32, rows of length 1; zeros for None and for bytes that are not a picture."""
        out = np.zeros((len(images), self.dimensions), np.float32)
        for i, image in enumerate(images):
            pixels = None if image is None else _pixels(image)
            if pixels is not None:
                out[i] = _described(*pixels)
        return unit_rows(out)


def _pixels(image: bytes) -> tuple[NDArray[np.uint8], Matrix] | None:
    """Hue, saturation and value (96, 96, 3) in 0 … 255, and brightness (96, 96); None for what is not a picture."""
    from PIL import Image

    try:
        with opened(image) as picture:
            picture.draft("RGB", (2 * SIDE, 2 * SIDE))
            small = picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    except (OSError, ValueError, SyntaxError):
        return None
    return np.asarray(small.convert("HSV")), np.asarray(small.convert("L"), np.float32)


def _described(hsv: NDArray[np.uint8], grey: Matrix) -> Matrix:
    half = SIDE // 2
    quarters = [hsv[y : y + half, x : x + half] for y in (0, half) for x in (0, half)]
    parts = [
        _colours(hsv, (HUES, SATURATIONS, VALUES)),
        np.concatenate([_colours(part, QUARTER) for part in quarters]),
        _gradients(grey),
    ]
    return np.concatenate([part / (float(np.linalg.norm(part)) or 1.0) for part in parts])


def _colours(hsv: NDArray[np.uint8], bins: tuple[int, int, int]) -> Matrix:
    """(bins,) roots of the shares of the pixels."""
    place = [hsv[..., i].astype(np.int64) * n // 256 for i, n in enumerate(bins)]
    flat = (place[0] * bins[1] + place[1]) * bins[2] + place[2]
    counts = np.bincount(flat.ravel(), minlength=bins[0] * bins[1] * bins[2])
    return np.sqrt(counts / flat.size).astype(np.float32)


def _gradients(grey: Matrix) -> Matrix:
    """(64 · 8,) of each cell, how strong its edges are in each direction; no cell above a fifth of the whole."""
    down, right = np.gradient(grey)
    strength = np.hypot(down, right)
    angle = np.mod(np.arctan2(down, right), np.pi)
    bin_of = np.minimum((angle * ORIENTATIONS / np.pi).astype(np.int64), ORIENTATIONS - 1)
    cells = SIDE // CELL
    row = np.arange(SIDE) // CELL
    place = (row[:, None] * cells + row[None, :]) * ORIENTATIONS + bin_of
    histogram = np.bincount(place.ravel(), strength.ravel().astype(np.float64), minlength=cells * cells * ORIENTATIONS)
    share = histogram / (float(np.linalg.norm(histogram)) or 1.0)
    return np.minimum(share, 0.2).astype(np.float32)


@dataclass(frozen=True)
class Multimodal:
    """A provider's embedder that takes images into the space of its texts."""

    inner: Any  # an Embedder that `embeds_images`

    @property
    def name(self) -> str:
        return f"{self.inner.name} of images"

    def embed(self, images: Sequence[bytes | None]) -> Matrix:
        matrix: Matrix = self.inner.embed_images(images)
        return matrix


def image_embedder(embedder: Embedder | None) -> ImageEmbedder | None:
    """What embeds images beside this embedder of texts: itself where it is multimodal, else the descriptors; None
    without Pillow."""
    if getattr(embedder, "embeds_images", False):
        return Multimodal(embedder)
    try:
        return ImageDescriptors()
    except ImportError:
        return None


@dataclass(frozen=True, slots=True)
class Named:
    """An image that is read only where its vector is not kept: its name, and 16 bytes that change with what the name means."""

    name: str
    digest: bytes


@dataclass(frozen=True)
class _Reading:
    """An embedder that reads the images of names first."""

    inner: ImageEmbedder
    load: Callable[[Sequence[str]], Sequence[bytes | None]]

    @property
    def name(self) -> str:
        return self.inner.name

    def embed(self, images: Sequence[bytes | Named | None]) -> Matrix:
        names = [image.name for image in images if isinstance(image, Named)]
        read = iter(self.load(names) if names else ())
        return self.inner.embed([next(read) if isinstance(image, Named) else image for image in images])


def image_hashes(images: Sequence[bytes | Named | None]) -> NDArray[np.void]:
    """(n,) 16 bytes an image: equal files have equal hashes."""
    joined = b"".join(
        image.digest if isinstance(image, Named) else blake2b(image or b"", digest_size=16).digest() for image in images
    )
    return np.frombuffer(joined, dtype=np.dtype((np.void, 16)))


def image_features(
    images: Iterable[Sequence[bytes | Named | None]],
    *,
    load: Callable[[Sequence[str]], Sequence[bytes | None]] | None = None,
    key: str = "",
    cache_dir: Path | None = None,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
    by_hash: dict[bytes, TableFeatures] | None = None,
) -> TableFeatures:
    """The features of N images, which come some at a time, so that they need not be in memory at once.

    Args:
        images: chunks of files in memory, or names; None and bytes that are not a picture are allowed.
        load: reads the files of names; None: there are no names.
        key: names the table and columns: images of one key share a cache.
        cache_dir: where vectors are kept; None keeps nothing.
        embedder: of the run's texts; where it is multimodal it embeds the images too, and texts can be compared with
        them.
        progress: called with (images done, images to embed) of a chunk.
        by_hash: features by the hashes of all images, kept by the caller: those of the same images are made once.
    """
    used = image_embedder(embedder)
    if used is None:
        n = sum(len(part) for part in images)
        return TableFeatures(np.zeros((n, 0), np.float32), (), WITHOUT_PILLOW)
    folder = own_folder(cache_dir, f"{key} (images)")
    folder = folder and folder / folder_name(used.name)
    reading = used if load is None else _Reading(used, load)
    vectors: list[Half] = []
    all_of = blake2b(f"{key} {used.name}".encode(), digest_size=16)
    with alone(folder):
        cache = VectorCache(folder, used.name)
        for part in images:
            hashes = image_hashes(part)
            all_of.update(hashes.tobytes())
            first, index = distinct(hashes)
            once = cache.vectors([part[i] for i in first], hashes[first], reading, progress)
            vectors.append(np.asarray(once)[index])
    if not vectors:
        return TableFeatures(np.zeros((0, 0), np.float32), ())
    if by_hash is None:
        return _stacked(vectors, used, embedder)
    if all_of.digest() not in by_hash:
        by_hash[all_of.digest()] = _stacked(vectors, used, embedder)
    return by_hash[all_of.digest()]


def _stacked(vectors: list[Half], used: ImageEmbedder, embedder: Embedder | None) -> TableFeatures:
    every = np.concatenate(vectors)
    rows = np.arange(len(every), dtype=np.int64)
    if isinstance(used, Multimodal) and embedder is not None:
        block = Block.of(embedder, every, rows)
        return TableFeatures(stacked((block,), len(rows)), (block,))
    # what varies little, as colours on a grey ground, counts as much as edges: each part is scaled by its spread
    colours, edges = every[:, : ImageDescriptors.colours], every[:, ImageDescriptors.colours :]
    blocks = [Block.of(NO_TEXTS, np.ascontiguousarray(part), rows) for part in (colours, edges)]
    return TableFeatures(stacked(blocks, len(rows)), ())


class _NoTexts:
    """Stands for the embedder of a space in which no text has a place."""

    name = "none"

    def embed(self, texts: Sequence[str | None]) -> Matrix:
        raise TypeError("colours and gradients have no texts")


NO_TEXTS = _NoTexts()


def together(texts: TableFeatures, images: TableFeatures) -> TableFeatures:
    """Rows that hold both: their features side by side, of equal weight; texts are compared with the texts."""
    parts = [part.matrix for part in (texts, images) if part.matrix.shape[1]]
    note = "; ".join(part.note for part in (texts, images) if part.note)
    if len(parts) < 2:
        matrix = parts[0] if parts else texts.matrix
    else:
        matrix = np.ascontiguousarray(np.concatenate(parts, axis=1) / np.float32(np.sqrt(2.0)))
    return TableFeatures(matrix, texts.blocks + images.blocks if texts.matrix.shape[1] else images.blocks, note)
