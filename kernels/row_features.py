"""Features of a relation's rows: embeddings of what a virtual column reads, from the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from uql.base.schema import Field, Modality
from uql.compiler.syntax import Column
from uql.features.images import Named, together
from uql.features.store import FeatureStore
from uql.features.table import TableFeatures
from uql.kernels.answers import Rids
from uql.kernels.duck import quote
from uql.kernels.media import loaded
from uql.kernels.relation import Relation
from uql.sampling.two_stage import first_rows

PICTURES_AT_ONCE = 256  # rows whose pictures are in memory at once


class RowFeatures:
    """Features of the rows of relations, made when first asked for, kept by the store between queries."""

    def __init__(self, store: FeatureStore) -> None:
        self.store = store
        self._cache: dict[tuple[str, tuple[Column, ...]], TableFeatures | None] = {}
        self.first_stages: dict[str, tuple[Rids, Relation]] = {}  # by a relation's name: random rows, and those alone

    def of(self, relation: Relation, reads: tuple[Column, ...]) -> TableFeatures | None:
        """The features of a relation's rows as these columns show them; None where they hold neither text nor picture."""
        if not reads or not relation.n:
            return None
        key = (relation.name, reads)
        if key not in self._cache:
            table = self._table(relation, reads)
            self._cache[key] = table if table is not None and table.matrix.shape[1] else None
        return self._cache[key]

    def first_stage(self, relation: Relation, n: int) -> tuple[Rids, Relation]:
        """n random rows, the same for every statement so that their features are kept, and a relation of them alone."""
        rows = first_rows(relation.n, n)
        name, _ = relation.duck.create(
            f"SELECT r.* FROM {quote(relation.name)} AS r JOIN __stage AS s ON r.rowid = s.__rid ORDER BY s.__rid",
            {"__stage": pa.table({"__rid": rows})},
        )
        stage = rows, Relation(relation.duck, name, n, relation.fields, f"{relation.source}, {n:,} random rows")
        self.first_stages[relation.name] = stage
        return stage

    def at_hand(
        self, relation: Relation, reads: tuple[Column, ...], fact: Callable[[str, Callable[[], bool]], bool]
    ) -> TableFeatures | None:
        """The same where an earlier step or query has made them already; None where making them would be new work.


        Args:
            reads: the columns whose text is embedded.
            fact: tells whether an earlier query had made them when the rows of this run were first drawn (`Context.fact`).
        """
        if not reads or not relation.n:
            return None
        if (relation.name, reads) not in self._cache:
            name = _named(relation, reads)
            pictures = any(_may_be_picture(relation.fields.get(c)) for c in reads)
            if pictures or not fact(f"features of {name}", lambda: self.store.has(name)):
                return None
        return self.of(relation, reads)

    def _table(self, relation: Relation, reads: tuple[Column, ...]) -> TableFeatures | None:
        pictures = tuple(c for c in reads if _may_be_picture(relation.fields.get(c)))
        texts = tuple(c for c in reads if c not in pictures)
        features = None
        if texts:
            features = self.store.table(relation.texts(texts), _named(relation, texts))
        for column in pictures:
            key = f"{relation.source}: {column.label}"
            part = self.store.images(_pictures(column, relation), key, partial(_read, column, relation))
            features = part if features is None else together(features, part)
        return features


def _named(relation: Relation, texts: tuple[Column, ...]) -> str:
    """The key of features in the store."""
    return f"{relation.source}: {', '.join(c.label for c in texts)}"


def _may_be_picture(field: Field | None) -> bool:
    return field is not None and (field.type == "BLOB" or field.modality is Modality.IMAGE)


def _pictures(column: Column, relation: Relation) -> Iterator[list[bytes | Named | None]]:
    """The files of a column of pictures, some rows at a time; None where there is none, or it cannot be read.

    Those that the loader knows by a digest stay names: their vectors may be kept, and then they are not read.
    """
    media = relation.duck.media
    for start in range(0, relation.n, PICTURES_AT_ONCE):
        rows = np.arange(start, min(start + PICTURES_AT_ONCE, relation.n), dtype=np.int64)
        values = relation.fetch(rows, [quote(column.label)]).column(0).to_pylist()
        digests = [None] * len(values) if media is None else media.parts.digests(values)
        names = [None if d is None else Named(v, d) for v, d in zip(values, digests, strict=True)]
        read = iter(_read(column, relation, [v for v, name in zip(values, names, strict=True) if name is None]))
        yield [next(read) if name is None else name for name in names]


def _read(column: Column, relation: Relation, values: Sequence[Any]) -> list[bytes | None]:
    """(n,) the files of values of a column."""
    contents, _ = loaded(list(values), relation.fields.get(column), relation.duck.media)
    return [v if isinstance(v, bytes) else None for v in contents]
