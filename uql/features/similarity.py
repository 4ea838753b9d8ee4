"""Columns of similarity between a table's rows and a condition, made when the query comes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from uql.features.embedder import Matrix
from uql.features.table import TableFeatures

WEIGHT = 0.35  # of a standardised similarity column, where rows have a mean squared norm of 1


def with_similarity(
    features: TableFeatures, condition: str, yes: Sequence[str] = (), no: Sequence[str] = ()
) -> tuple[Matrix, NDArray[np.float64]]:
    """The rows' features with the columns z, zp and zh for one condition, and the prior score of each row.

    z is the cosine of a row and the condition's text, zp the mean cosine with the example rows that meet it, zh is zp
    less the mean
    cosine with those that do not; all after the table's mean is taken away, standardised, times 0.35.

    Args:
        features: of the N rows.
        condition: the text of the condition, or several joined by a space for a formula.
        yes: texts that would meet the condition (none of the data); without them the prior is z.
        no: texts that would not.
    Returns: (N, d + 1..3) float32 in C order, and (N,) the prior, higher where a row more likely meets the condition.
    Source: example rows as in Gao et al. (2022), HyDE.
    """
    columns = [features.cosines([condition])[:, 0]]
    if yes:
        columns.append(features.cosines(yes).mean(axis=1))
        if no:
            columns.append(columns[-1] - features.cosines(no).mean(axis=1))
    if not len(features.matrix):
        return np.zeros((0, features.matrix.shape[1] + len(columns)), np.float32), np.zeros(0)
    prior = columns[1] if yes else columns[0]
    scaled = [WEIGHT * (c - c.mean()) / (c.std() or 1.0) for c in columns]
    matrix = np.concatenate([features.matrix, np.stack(scaled, axis=1).astype(np.float32)], axis=1)
    return np.ascontiguousarray(matrix, np.float32), prior.astype(np.float64)
