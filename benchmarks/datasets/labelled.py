"""The labelled data sets behind the sampling benchmark: texts, labels, and the predicates of EXAMPLES.toml."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def data_folder() -> Path:
    """$UQL_DATA, or ../shared/data beside the repository. Raises: FileNotFoundError with what to set."""
    folder = Path(os.environ.get("UQL_DATA", "../shared/data"))
    if not (folder / "banking77" / "data.parquet").exists():
        raise FileNotFoundError(
            f"no labelled data in {folder}: set UQL_DATA to the folder that holds banking77, imdb, …"
        )
    return folder


@dataclass(frozen=True)
class Predicate:
    """One predicate with its condition and example rows, as EXAMPLES.toml has it; `label` is the value of `column`
    that is a yes."""

    name: str
    data: str
    column: str
    label: str
    condition: str
    yes: tuple[str, ...]
    no: tuple[str, ...]

    def truth(self) -> NDArray[np.float64]:
        """(N,) 1 where the label of the row is the predicate's."""
        return np.array([value == self.label for value in labels(self.data, self.column)], np.float64)


def predicates() -> list[Predicate]:
    """All of EXAMPLES.toml, which lies beside the data folder."""
    with (data_folder().resolve().parent / "EXAMPLES.toml").open("rb") as file:
        entries = tomllib.load(file)
    return [
        Predicate(
            name,
            e["data"],
            e["column"],
            e["truth"].split("'")[1],
            e["condition"],
            tuple(e["yes"]),
            tuple(e["no"]),
        )
        for name, e in entries.items()
    ]


@lru_cache(maxsize=1)
def texts(data: str) -> list[str]:
    """(N,) the texts of a data set."""
    import pyarrow.parquet as pq

    found: list[str] = pq.read_table(data_folder() / data / "data.parquet", columns=["text"])["text"].to_pylist()
    return found


def labels(data: str, column: str) -> list[str]:
    """(N,) a label of each row as text, in the order of the texts."""
    import pyarrow.parquet as pq

    found = pq.read_table(data_folder() / data / "labels.parquet", columns=[column])[column].to_pylist()
    return [str(value) for value in found]
