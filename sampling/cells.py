"""Cells of a wave: a partition of the free rows into runs, from each of which two rows are drawn at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from uql.sampling.base import Floats, Indices, Matrix

TREE_COMPONENTS = 24


@dataclass(frozen=True, slots=True)
class Cells:
    """Rows sorted cell by cell.

    Attributes:
        order: (M,) the free rows.
        starts: (H,) the position in `order` at which each cell begins; every cell has at least two rows.
    """

    order: Indices
    starts: Indices

    @property
    def sizes(self) -> Indices:
        """(H,) rows in each cell."""
        return np.diff(self.starts, append=len(self.order))

    def draw_pairs(self, rng: np.random.Generator) -> Indices:
        """(H, 2) two different rows of each cell, at random."""
        sizes = self.sizes
        first = (rng.random(len(sizes)) * sizes).astype(np.int64)
        second = (rng.random(len(sizes)) * (sizes - 1)).astype(np.int64)
        second += second >= first
        return self.order[np.stack([self.starts + first, self.starts + second], axis=1)]

    def means(self, values: Floats) -> Floats:
        """(H,) the mean of (N,) `values` in each cell."""
        return np.add.reduceat(values[self.order], self.starts) / self.sizes


def runs_of_equal_mass(rows: Indices, score: Floats, mass: Floats, cells: int) -> Cells:
    """Sort rows by score, descending, and cut them into `cells` runs of about equal mass, of at least two rows each.

    Args:
        rows: (M,) with M ≥ 2·cells.
        score: (M,) of each of them.
        mass: (M,) positive.
    """
    sort = np.argsort(-score.astype(np.float32))  # single precision sorts several times faster
    total = np.cumsum(mass[sort])
    ends = np.searchsorted(total, total[-1] * np.arange(1, cells) / cells, side="left") + 1
    step = 2 * np.arange(cells - 1)
    ends = np.maximum.accumulate(ends - step) + step  # two rows at least between cuts
    ends = np.clip(ends, 2 + step, len(rows) - 2 * (cells - 1) + step)
    return Cells(rows[sort], np.concatenate([[0], ends]).astype(np.int64))


def balanced_tree(rows: Indices, features: Matrix, cells: int) -> Cells:
    """Split the largest part at the median of its widest component until there are `cells` parts of at least two rows.

    Args:
        rows: (M,) with M ≥ 2·cells.
        features: (N, d) of all rows; the first 24 components are looked at.
    """
    parts, tight = [rows], len(rows) < 4 * cells
    while len(parts) < cells:
        largest = max(range(len(parts)), key=lambda i: len(parts[i]))
        part = parts.pop(largest)
        view = features[part, :TREE_COMPONENTS]
        half = len(part) // 2
        half -= half % 2 if tight else 0  # else a part of three rows might have to be split
        if view.shape[1]:
            part = part[np.argpartition(view[:, int(view.var(axis=0).argmax())], half)]
        parts[largest:largest] = [part[:half], part[half:]]
    starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
    return Cells(np.concatenate(parts), starts.astype(np.int64))
