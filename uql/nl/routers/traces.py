"""Traces: what each adapter made of each training sub-query, and the quality from which routers learn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from uql.base.errors import DataError
from uql.nl.plan.dag import Operator

WEIGHTS = {"f1": 0.35, "semantic_hit": 0.35, "hit": 0.15, "coverage": 0.15}
MODALITIES = ("table", "text", "image")


@dataclass(frozen=True, slots=True)
class Trace:
    """One adapter, one sub-query.

    Attributes:
        subquery: as the adapter got it.
        operator: Meta Engine's; modality: table, text or image.
        adapter: who answered.
        f1, hit, coverage, semantic_hit: measures of the answer, each 0 to 1.
        calls, tokens, seconds: what it took, the writing of the answer with it.
        answer: in words; "" where there was none.
    """

    subquery: str
    operator: str
    modality: str
    adapter: str
    f1: float = 0.0
    hit: float = 0.0
    coverage: float = 0.0
    semantic_hit: float = 0.0
    calls: int = 0
    seconds: float = 0.0
    answer: str = ""
    tokens: int = 0

    @property
    def quality(self) -> float:
        """0.35 F1 + 0.35 Semantic Hit + 0.15 Hit + 0.15 Coverage.

        >>> Trace("q", "TableAnalytics", "table", "uql", f1=1, hit=1).quality
        0.5
        """
        return round(sum(weight * float(getattr(self, name)) for name, weight in WEIGHTS.items()), 12)


@dataclass(frozen=True, slots=True)
class ScoredSubquery:
    """A sub-query with the quality of each adapter that was tried on it."""

    subquery: str
    operator: str
    modality: str
    quality: dict[str, float]


def scored_subqueries(traces: Iterable[Trace], adapters: Sequence[str] | None = None) -> list[ScoredSubquery]:
    """The traces by sub-query, in the order first seen; of an adapter tried several times on one the mean.

    Args:
        adapters: others are left out; sub-queries that none of these was tried on too. None: all.
    """
    qualities: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for trace in traces:
        if adapters is None or trace.adapter in adapters:
            by_adapter = qualities.setdefault((trace.subquery, trace.operator, trace.modality), {})
            by_adapter.setdefault(trace.adapter, []).append(trace.quality)
    return [
        ScoredSubquery(*key, {name: sum(v) / len(v) for name, v in by_adapter.items()})
        for key, by_adapter in qualities.items()
    ]


def write_traces(path: str | Path, traces: Sequence[Trace]) -> None:
    """Writes traces as Parquet."""
    pq.write_table(pa.Table.from_pylist([asdict(trace) for trace in traces], schema=_schema()), path)


def read_traces(path: str | Path) -> list[Trace]:
    """Reads traces. Raises DataError (UQL514) where the file is no Parquet, or a column or value is not right."""
    if not Path(path).exists():
        raise DataError(f"there is no file {path}", code="UQL514", help="uql router collect makes one")
    try:
        rows = pq.read_table(path).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"the traces {path} cannot be read: {str(error).splitlines()[0]}", code="UQL514") from error
    columns = {f.name for f in fields(Trace)}
    missing = [name for name in ("subquery", "operator", "adapter") if rows and name not in rows[0]]
    if missing or not rows:
        raise DataError(
            f"the traces {path} have no {missing[0] if missing else 'rows'}",
            code="UQL514",
            help="columns: subquery, operator, modality, adapter, f1, hit, coverage, semantic_hit",
        )
    return [_trace({k: v for k, v in row.items() if k in columns and v is not None}, path) for row in rows]


def _trace(row: dict[str, Any], path: str | Path) -> Trace:
    trace = Trace(**({"modality": modality_of(str(row["operator"]))} | row))
    operators = [operator.value for operator in Operator]
    if trace.operator not in operators or trace.modality not in MODALITIES:
        raise DataError(
            f"the traces {path} hold the operator {trace.operator!r} and the modality {trace.modality!r}",
            code="UQL514",
            help=f"operators: {', '.join(operators)}; modalities: {', '.join(MODALITIES)}",
        )
    return trace


def modality_of(operator: str) -> str:
    """What an operator reads, where nothing more is given."""
    return {Operator.TEXT.value: "text", Operator.IMAGE.value: "image"}.get(operator, "table")


def _schema() -> Any:
    kinds = {"str": pa.string(), "float": pa.float64(), "int": pa.int64()}
    return pa.schema([(f.name, kinds[str(f.type)]) for f in fields(Trace)])
