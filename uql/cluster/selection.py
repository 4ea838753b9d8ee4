"""Which of its rows a shard is asked for."""

from __future__ import annotations

from dataclasses import dataclass

SCORE = "__score"  # the column of the cosine of a row that is near


@dataclass(frozen=True, slots=True)
class Below:
    """The rows whose numbers have hashes of at most `bound`."""

    bound: int


@dataclass(frozen=True, slots=True)
class Head:
    """The first `limit` rows by SQL of an ORDER BY, in which `__row` settles ties."""

    order: str
    limit: int


@dataclass(frozen=True, slots=True)
class Near:
    """The rows of a table that are nearest to a text in meaning.

    Attributes:
        table: of the lake.
        place: the name under which a query has `__uql_place`.
        text_sql: SQL of the text of the table's rows.
        text: what they are near to.
        most: rows; of equally near ones the first.
        score: the least cosine of a row with the text.
    """

    table: str
    place: str
    text_sql: str
    text: str
    most: int
    score: float = -1.0


Selection = Below | Head | Near
