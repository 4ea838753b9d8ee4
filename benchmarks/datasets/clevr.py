"""CLEVR-like scenes: pictures of 3 to 10 solids with their scene files, drawn by numpy from a seed.

Counts, shapes, sizes, materials and colours are uniform as in the generator of Johnson et al., "CLEVR: A Diagnostic Dataset for
Compositional Language and Elementary Visual Reasoning" (CVPR 2017); the scene's JSON has its keys. Rays are cast at spheres, boxes
and cylinders on a floor; no renderer is needed. `python -m uql.benchmarks.datasets.clevr FOLDER N` writes data.parquet and labels.parquet.
"""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

SHAPES = ("cube", "sphere", "cylinder")
SIZES = {"large": 0.7, "small": 0.35}  # half of the height
MATERIALS = ("rubber", "metal")
COLOURS = {
    "gray": (87, 87, 87),
    "red": (173, 35, 35),
    "blue": (42, 75, 215),
    "green": (29, 105, 20),
    "brown": (129, 74, 25),
    "purple": (129, 38, 192),
    "cyan": (41, 208, 208),
    "yellow": (255, 238, 51),
}
FEWEST, MOST = 3, 10  # objects of a scene
SPREAD = 3.0  # places are in [−3, 3]²
GAP = 0.25  # between two objects, at least
VISIBLE = 40  # pixels of every object that are seen, at least
CAMERA = np.array([7.2, -6.6, 5.4], dtype=np.float32)
LIGHT = np.array([-0.45, -0.55, 0.75], dtype=np.float32) / np.float32(1.0335)
FLOOR = np.array([150, 150, 148], dtype=np.float32)
FOCAL = 1.55  # widths of half the picture
DIRECTIONS = {"right": (0.656, 0.754, 0.0), "behind": (-0.754, 0.656, 0.0), "above": (0.0, 0.0, 1.0)}


@dataclass(frozen=True, slots=True)
class _View:
    """The camera's rays: (h, w, 3) unit vectors, and the axes right, up, forward."""

    rays: Floats
    axes: Floats

    def pixel(self, point: Floats) -> tuple[float, float, float]:
        """Column, row and depth of a point."""
        x, y, depth = (float(v) for v in self.axes @ (point - CAMERA))
        h, w, _ = self.rays.shape
        scale = FOCAL * w / 2
        return w / 2 + scale * x / depth, h / 2 - scale * y / depth, depth


@cache
def _view(width: int, height: int) -> _View:
    forward = np.array([0, 0, 0.2], dtype=np.float32) - CAMERA
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0, 0, 1]).astype(np.float32)
    right /= np.linalg.norm(right)
    up = np.cross(right, forward).astype(np.float32)
    x = (np.arange(width, dtype=np.float32) + 0.5 - width / 2) / (FOCAL * width / 2)
    y = -(np.arange(height, dtype=np.float32) + 0.5 - height / 2) / (FOCAL * width / 2)
    rays = forward + x[None, :, None] * right + y[:, None, None] * up
    rays /= np.linalg.norm(rays, axis=2, keepdims=True)
    return _View(rays.astype(np.float32), np.stack([right, up, forward]).astype(np.float32))


# ------------------------------------------------------------------------------------------------------------- scenes
def make_scene(rng: np.random.Generator, index: int = 0) -> dict[str, Any]:
    """One scene in the layout of CLEVR's scene files, without pixel coordinates."""
    n = int(rng.integers(FEWEST, MOST + 1))
    objects: list[dict[str, Any]] = []
    while len(objects) < n:
        size = str(rng.choice(list(SIZES)))
        for _ in range(50):
            x, y = rng.uniform(-SPREAD, SPREAD, 2)
            if all(_apart(x, y, size, other) for other in objects):
                break
        else:  # no room: begin again
            objects.clear()
            continue
        objects.append(
            {
                "shape": str(rng.choice(SHAPES)),
                "size": size,
                "material": str(rng.choice(MATERIALS)),
                "color": str(rng.choice(list(COLOURS))),
                "3d_coords": [float(x), float(y), SIZES[size]],
                "rotation": float(rng.uniform(0, 360)),
            }
        )
    return {
        "image_index": index,
        "image_filename": f"scene_{index:06d}.png",
        "objects": objects,
        "directions": {name: list(v) for name, v in DIRECTIONS.items()},
        "relationships": _relationships(objects),
    }


def _apart(x: float, y: float, size: str, other: dict[str, Any]) -> bool:
    ox, oy, _ = other["3d_coords"]
    return bool(np.hypot(x - ox, y - oy) > SIZES[size] + SIZES[other["size"]] + GAP)


def _relationships(objects: list[dict[str, Any]]) -> dict[str, list[list[int]]]:
    """For each object, those that lie to its right, to its left, behind and in front of it."""
    places = np.array([o["3d_coords"] for o in objects])
    found: dict[str, list[list[int]]] = {}
    for name, opposite in (("right", "left"), ("behind", "front")):
        along = places @ np.array(DIRECTIONS[name])
        found[name] = [[j for j in range(len(objects)) if along[j] > along[i] + 0.2] for i in range(len(objects))]
        found[opposite] = [[j for j in range(len(objects)) if along[j] < along[i] - 0.2] for i in range(len(objects))]
    return found


# ------------------------------------------------------------------------------------------------------------ drawing
def draw(scene: dict[str, Any], width: int = 320, height: int = 240) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The picture (height, width, 3), and how many pixels of each object are seen."""
    view = _view(width, height)
    floor_at = CAMERA[2] / np.maximum(-view.rays[..., 2], 1e-3)
    image = np.broadcast_to(FLOOR, view.rays.shape).copy()
    image *= np.clip(1.15 - 0.02 * floor_at, 0.55, 1.05)[..., None]
    depth = np.full((height, width), np.inf, dtype=np.float32)
    owner = np.full((height, width), -1, dtype=np.int16)
    for o in scene["objects"]:
        _shadow(o, image, floor_at, view)
    for i, o in enumerate(scene["objects"]):
        centre = np.array(o["3d_coords"], dtype=np.float32)
        column, row, away = view.pixel(centre)
        o["pixel_coords"] = [round(column), round(row), away]
        rows, columns = _window(column, row, SIZES[o["size"]] * 1.8, away, width, height)
        rays = view.rays[rows, columns]
        t, normals = _hit(o, centre, rays)
        nearer = t < depth[rows, columns]
        depth[rows, columns][nearer] = t[nearer]
        owner[rows, columns][nearer] = i
        image[rows, columns][nearer] = _shaded(o, normals[nearer], rays[nearer])
    seen = np.bincount(owner[owner >= 0], minlength=len(scene["objects"]))
    return np.clip(image, 0, 255).astype(np.uint8), seen


def _window(column: float, row: float, reach: float, away: float, width: int, height: int) -> tuple[slice, slice]:
    size = reach * FOCAL * width / 2 / away
    rows = slice(max(0, int(row - size)), min(height, int(row + size) + 1))
    return rows, slice(max(0, int(column - size)), min(width, int(column + size) + 1))


def _shadow(o: dict[str, Any], image: Floats, floor_at: Floats, view: _View) -> None:
    size = SIZES[o["size"]]
    x, y, _ = o["3d_coords"]
    away = np.array([-LIGHT[0], -LIGHT[1]]) * size * 0.6
    column, row, far = view.pixel(np.array([x + away[0], y + away[1], 0], dtype=np.float32))
    rows, columns = _window(column, row, size * 2.4, far, image.shape[1], image.shape[0])
    points = CAMERA[:2] + view.rays[rows, columns, :2] * floor_at[rows, columns, None]
    distance = ((points - (np.array([x, y]) + away)) ** 2).sum(axis=2) / (1.3 * size) ** 2
    image[rows, columns] *= (1 - 0.55 * np.exp(-(distance**2)))[..., None].astype(np.float32)


def _hit(o: dict[str, Any], centre: Floats, rays: Floats) -> tuple[Floats, Floats]:
    """(h, w) distance to the object along each ray, infinite where it is missed, and (h, w, 3) the normals there."""
    size, origin = SIZES[o["size"]], CAMERA - centre
    with np.errstate(divide="ignore", invalid="ignore"):
        if o["shape"] == "sphere":
            return _sphere(origin, rays, size)
        angle = np.deg2rad(o["rotation"])
        turn = np.array([[np.cos(angle), np.sin(angle), 0], [-np.sin(angle), np.cos(angle), 0], [0, 0, 1]], np.float32)
        if o["shape"] == "cube":
            half = np.array([size, size, size], np.float32) / np.float32(np.sqrt(2))
            t, normals = _box(turn @ (origin + np.array([0, 0, size - half[2]], np.float32)), rays @ turn.T, half)
        else:
            t, normals = _cylinder(turn @ origin, rays @ turn.T, size)
    return t, normals @ turn


def _sphere(origin: Floats, rays: Floats, radius: float) -> tuple[Floats, Floats]:
    b = rays @ origin
    inside = b * b - (origin @ origin - radius * radius)
    t = np.where(inside > 0, -b - np.sqrt(np.maximum(inside, 0)), np.inf).astype(np.float32)
    points = origin + rays * np.where(np.isfinite(t), t, 0)[..., None]
    return t, (points / radius).astype(np.float32)


def _box(origin: Floats, rays: Floats, half: Floats) -> tuple[Floats, Floats]:
    one, two = (-half - origin) / rays, (half - origin) / rays
    near, far = np.minimum(one, two), np.maximum(one, two)
    axis = near.argmax(axis=2)
    t = near.max(axis=2)
    t = np.where(t < far.min(axis=2), t, np.inf).astype(np.float32)
    normals = np.zeros_like(rays)
    np.put_along_axis(normals, axis[..., None], -np.sign(np.take_along_axis(rays, axis[..., None], 2)), 2)
    return t, normals


def _cylinder(origin: Floats, rays: Floats, radius: float) -> tuple[Floats, Floats]:
    a = (rays[..., :2] ** 2).sum(axis=2)
    b = rays[..., :2] @ origin[:2]
    inside = b * b - a * (origin[:2] @ origin[:2] - radius * radius)
    side = np.where(inside > 0, (-b - np.sqrt(np.maximum(inside, 0))) / a, np.inf)
    height = origin[2] + rays[..., 2] * np.where(np.isfinite(side), side, 0)
    side = np.where(np.isfinite(side) & (abs(height) <= radius), side, np.inf)
    top = (radius - origin[2]) / rays[..., 2]
    at_top = origin[:2] + rays[..., :2] * top[..., None]
    top = np.where((at_top**2).sum(axis=2) <= radius * radius, top, np.inf)
    t = np.minimum(side, top).astype(np.float32)
    points = origin + rays * np.where(np.isfinite(t), t, 0)[..., None]
    normals = np.where((top < side)[..., None], np.array([0, 0, 1]), points * np.array([1, 1, 0]) / radius)
    return t, normals.astype(np.float32)


def _shaded(o: dict[str, Any], normals: Floats, rays: Floats) -> Floats:
    colour = np.array(COLOURS[o["color"]], dtype=np.float32)
    facing = np.clip(normals @ LIGHT, 0, 1)[:, None]
    mirrored = rays - 2 * (rays * normals).sum(axis=1, keepdims=True) * normals
    shine = np.clip(mirrored @ LIGHT, 0, 1)[:, None]
    if o["material"] == "metal":
        sky = np.clip(mirrored[:, 2:], 0, 1)
        return np.asarray(colour * (0.35 + 0.55 * facing) + 60 * sky + 190 * shine**24, dtype=np.float32)
    return np.asarray(colour * (0.45 + 0.7 * facing) + 18 * shine**6, dtype=np.float32)


# ------------------------------------------------------------------------------------------------------------- output
def scenes(n: int, seed: int = 0, width: int = 320, height: int = 240) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """n pictures as PNG bytes with their scenes; every object is seen by VISIBLE pixels at least."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    least = VISIBLE * width * height / (320 * 240)
    for index in range(n):
        while True:
            scene = make_scene(rng, index)
            picture, seen = draw(scene, width, height)
            if seen.min() >= least:
                break
        held = io.BytesIO()
        Image.fromarray(picture).save(held, "PNG", compress_level=1)
        yield held.getvalue(), scene


def counts(scene: dict[str, Any]) -> dict[str, int]:
    """How many objects a scene has, and how many of each shape.

    >>> counts({"objects": [{"shape": "cube"}, {"shape": "sphere"}, {"shape": "cube"}]})
    {'obj_count': 3, 'cubes': 2, 'spheres': 1, 'cylinders': 0}
    """
    shapes = [o["shape"] for o in scene["objects"]]
    return {"obj_count": len(shapes), **{f"{shape}s": shapes.count(shape) for shape in SHAPES}}


def write(folder: Path, n: int, seed: int = 0, width: int = 320, height: int = 240) -> None:
    """Writes data.parquet (id, image) and labels.parquet (id, obj_count, cubes, spheres, cylinders, scene)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    made = list(scenes(n, seed, width, height))
    pq.write_table(pa.table({"id": list(range(n)), "image": [image for image, _ in made]}), folder / "data.parquet")
    labels = [{"id": i, **counts(scene), "scene": json.dumps(scene)} for i, (_, scene) in enumerate(made)]
    pq.write_table(pa.Table.from_pylist(labels), folder / "labels.parquet")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="uql.benchmarks.datasets.clevr", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("n", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    write(given.folder, given.n, given.seed)


if __name__ == "__main__":
    main()
