"""Pictures as vectors: what the descriptors see, the cache, a multimodal embedder, a search among pictures."""

import io
import json

import numpy as np
import pytest
from PIL import Image, ImageDraw

import uql
from uql.features import images as module
from uql.features.images import ImageDescriptors, image_features, image_hashes, together
from uql.features.similarity import with_similarity
from uql.features.table import table_features

COLOURS = {"red": (200, 30, 30), "blue": (30, 60, 200)}


def picture(colour, shape, seed):
    """A disc or a square at a random place on grey."""
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", (120, 90), (150, 150, 150))
    x, y, r = (int(v) for v in (rng.integers(25, 95), rng.integers(25, 65), rng.integers(12, 22)))
    draw = ImageDraw.Draw(image)
    (draw.ellipse if shape == "disc" else draw.rectangle)((x - r, y - r, x + r, y + r), fill=COLOURS[colour])
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def gallery(n=80):
    kinds = [(colour, shape) for colour in COLOURS for shape in ("disc", "square")]
    labels = [kinds[i % 4] for i in range(n)]
    return [picture(*label, seed) for seed, label in enumerate(labels)], labels


def test_descriptors_are_unit_rows_and_zeros_for_what_is_no_picture():
    found = ImageDescriptors().embed([picture("red", "disc", 0), None, b"no picture", b"\x89PNG\r\n\x1a\nbroken"])
    assert found.shape == (4, ImageDescriptors.dimensions) and found.dtype == np.float32
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 0, 0, 0], abs=1e-5)


@pytest.mark.parametrize("part", [0, 1])
def test_pictures_alike_are_near_each_other(part):
    images, labels = gallery()
    matrix = image_features([images]).matrix
    assert (matrix**2).sum(axis=1).mean() == pytest.approx(1, abs=1e-2)
    y = np.array([label[part] == labels[0][part] for label in labels])
    distances = ((matrix[:, None] - matrix[None]) ** 2).sum(axis=2) + 99 * np.eye(len(y))
    assert (y[distances.argmin(axis=1)] == y).mean() > (0.95 if part == 0 else 0.6)


class Counting(ImageDescriptors):
    seen = 0

    def embed(self, images):
        Counting.seen += len(images)
        return super().embed(images)


def test_a_picture_is_embedded_once_and_chunks_change_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ImageDescriptors", Counting)
    images, _ = gallery(30)
    whole = image_features([images], key="t", cache_dir=tmp_path)
    assert Counting.seen == 30
    again = image_features([images[:7], images[7:], images[:1]], key="t", cache_dir=tmp_path)
    assert Counting.seen == 30 and len(again.matrix) == 31
    assert np.allclose(abs(again.matrix[0]), abs(again.matrix[30]))
    assert whole.blocks == ()  # colours have no texts
    assert image_features([], key="t", cache_dir=tmp_path).matrix.shape == (0, 0)


def test_equal_files_have_equal_hashes():
    a, b = picture("red", "disc", 0), picture("red", "disc", 1)
    found = image_hashes([a, b, a, None])
    assert found[0] == found[2] and len({bytes(h) for h in found}) == 3


class Pair:
    """A multimodal embedder in a space of two axes: red and blue."""

    name, embeds_images = "vendor:multimodal-2", True

    def embed(self, texts):
        rows = [[float("red" in (t or "")), float("blue" in (t or "")), 0.1] for t in texts]
        return np.array(rows, np.float32) / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed_images(self, images):
        means = [np.asarray(Image.open(io.BytesIO(i)).convert("RGB"), float).mean(axis=(0, 1)) for i in images]
        rows = [[m[0] - 140, m[2] - 140, 0.1] for m in means]
        return np.array(rows, np.float32) / np.linalg.norm(rows, axis=1, keepdims=True)


def test_a_multimodal_embedder_compares_pictures_with_texts():
    images, labels = gallery(40)
    found = image_features([images], embedder=Pair())
    _, prior = with_similarity(found, "the picture shows something red")
    red = np.array([colour == "red" for colour, _ in labels])
    assert prior[red].min() > prior[~red].max()


def test_an_embedder_of_texts_alone_leaves_pictures_to_the_descriptors():
    class Texts:
        name = "texts"

        def embed(self, texts):
            raise AssertionError("pictures are no texts")

    assert image_features([gallery(8)[0]], embedder=Texts()).matrix.shape[1] > 0


def test_without_pillow_pictures_are_left_out_and_it_is_said(monkeypatch):
    monkeypatch.setattr(module, "image_embedder", lambda embedder: None)
    found = image_features([gallery(4)[0]])
    assert found.matrix.shape == (4, 0) and "Pillow" in found.note


def test_rows_of_text_and_picture_have_both():
    images, labels = gallery(40)
    texts = table_features([f"a {shape} number {i}" for i, (_, shape) in enumerate(labels)])
    both = together(texts, image_features([images]))
    assert both.matrix.shape[1] > texts.matrix.shape[1] and both.blocks == texts.blocks
    assert (both.matrix**2).sum(axis=1).mean() == pytest.approx(1, abs=1e-2)


@pytest.mark.thorough
def test_a_search_among_pictures_learns_from_the_answers(tmp_path):
    import duckdb
    import pyarrow as pa

    rng = np.random.default_rng(0)
    red = rng.random(300) < 0.15
    images = [picture("red" if r else "blue", "disc", i) for i, r in enumerate(red)]
    with duckdb.connect() as con:
        con.register("rows", pa.table({"id": range(300), "picture": images, "red": red}))
        con.sql("SELECT id, picture FROM rows").write_parquet(str(tmp_path / "data.parquet"))
        con.sql("SELECT id, red FROM rows").write_parquet(str(tmp_path / "labels.parquet"))
    text = "the picture shows a red disc"
    lines = [
        'data = "data.parquet"',
        'labels = "labels.parquet"',
        'key = "id"',
        "[answers]",
        f'{json.dumps(text)} = "red"',
    ]
    (tmp_path / "oracle.toml").write_text("\n".join(lines))
    con = uql.connect(model=f"oracle:{tmp_path}/oracle.toml", ledger=":memory:")
    con.sql(f"SELECT * FROM '{tmp_path}/data.parquet'").create("pictures")
    found = con.uql(f'SELECT id FROM pictures WHERE "{text}" WITH (budget = 80)').fetchall()
    assert len(found) >= 0.85 * red.sum()  # 80 random rows would hold a quarter
    count = con.uql(f'SELECT COUNT(*) AS n FROM pictures WHERE "{text}" WITH (budget = 64)').estimates["n"]
    assert count.method == "asd" and count.low <= red.sum() <= count.high
