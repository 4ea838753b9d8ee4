"""GROUP BY "…" MANY: a row may be in several groups, and counts are of memberships."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from uql.compiler.bound import BoundItem
from uql.compiler.syntax import Expr
from uql.compiler.virtual import Virtual, VirtualColumn
from uql.kernels.answers import Rids
from uql.kernels.duck import quote
from uql.kernels.relation import Relation
from uql.llm.questions import NONE


def many_of(expr: Expr) -> VirtualColumn | None:
    """The text of several groups a row that a key is; None for any other key."""
    return expr.column if isinstance(expr, Virtual) and expr.column.many else None


def each(column: VirtualColumn, listed: str) -> str:
    """SQL of one row a membership, from SQL of the list of a row's groups; a row in none is in the group that says so."""
    return f"system.main.unnest(CASE WHEN {listed} = [] THEN ['{NONE}'] ELSE coalesce({listed}, [NULL]) END) AS {quote(column.name)}"


@dataclass(frozen=True, slots=True)
class Membership:
    """One group over lists of groups: its label for each MANY key, the codes of the lists it is in, a row that is in it."""

    labels: tuple[str | None, ...]
    codes: tuple[int, ...]
    row: int


def memberships(
    keys: Sequence[BoundItem],
    codes: Sequence[int],
    representatives: Rids,
    columns: Sequence[VirtualColumn],
    relation: Relation,
) -> list[Membership]:
    """The groups, from groups of rows that have equal lists.

    Args:
        codes: (groups,) of the rows with equal lists and other keys.
        representatives: (groups,) one row of each.
    """
    exprs = [key.expr for key in keys]
    table: pa.Table = relation.evaluate(exprs, representatives, columns)
    values = [table.column(i).to_pylist() for i in range(len(exprs))]
    by_key: dict[tuple[object, ...], tuple[list[int], int]] = {}
    is_many = [many_of(e) is not None for e in exprs]
    for i, code in enumerate(codes):
        combined: list[tuple[object, ...]] = [()]
        for flag, column in zip(is_many, values, strict=True):
            value = column[i]
            options = [None] if value is None else (list(value) or [NONE]) if flag else [value]
            combined = [(*before, option) for before in combined for option in options]
        for key in dict.fromkeys(combined):
            by_key.setdefault(key, ([], int(representatives[i])))[0].append(code)
    result = []
    for key, (members, row) in by_key.items():
        labels = tuple(None if v is None else str(v) for v, flag in zip(key, is_many, strict=True) if flag)
        result.append(Membership(labels, tuple(members), row))
    return result
