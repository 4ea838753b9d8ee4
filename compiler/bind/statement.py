"""What is known of the statement as a whole while its blocks are bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from uql.base.duckdb_functions import AggregateFunctions
from uql.base.errors import BindError
from uql.base.schema import Field, Table
from uql.base.settings import Settings
from uql.base.sql_text import quote
from uql.compiler.bind.scope import CatalogLike
from uql.compiler.bind.types import DuckTypes
from uql.compiler.bound import BoundQuery, Reading
from uql.compiler.syntax import Span, TableName
from uql.operators.statement_text import is_statement

MOST_COPIES = 2_000  # in one statement


@dataclass(slots=True)
class Statement:
    """One statement: its text, catalog and settings, and what is gathered on the way."""

    text: str
    catalog: CatalogLike
    frames: Mapping[str, object]
    settings: Settings
    types: DuckTypes
    plain: bool = False  # no text for a model stands in it: of tables, names and types of columns will do
    readings: list[Reading] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    semantic: bool = False
    conditions: frozenset[str] = frozenset()  # texts that are BOOLEAN wherever nothing else settles their type
    widths: Mapping[str, str] = field(default_factory=dict)  # texts that need several types: the widest
    # of texts without a type: what places of their names need
    types_by_name: Mapping[str, str] = field(default_factory=dict)
    by_name: dict[str, set[str]] = field(default_factory=dict)  # the same as it is found: types of numbers and times
    typed: dict[str, set[str]] = field(default_factory=dict)  # the types of numbers and times that each text needs
    needed: set[str] = field(default_factory=set)  # texts that stand as conditions, by themselves or under a name
    open: set[str] = field(default_factory=set)  # texts whose type nothing settles in some block
    copies: int = 0  # of what names stand for, made inside another copy
    commons: list[tuple[BoundQuery, TableName]] = field(
        default_factory=list
    )  # those of WITH, at each place that names one

    def copy(self, copies: int, span: Span) -> None:
        """Counts copies of what a name stands for. Raises: BindError (UQL212) where names of names double too often."""
        self.copies += copies
        if self.copies > MOST_COPIES:
            raise BindError(
                f"names that stand for other names are copied more than {MOST_COPIES:,} times",
                code="UQL212",
                span=span,
                help="use each name once in the next one, or store the rows of a step in a table",
            )

    def open_texts(self, field: Field | None) -> tuple[str, ...]:
        """The texts whose answers are the values of a column of a sub-query, where nothing settles their type."""
        if field is None or not field.is_answer or field.type != "VARCHAR":
            return ()
        return tuple(text for text in field.source_texts if text in self.open - self.conditions)

    def statements(self, field: Field | None) -> tuple[str, ...]:
        """The texts whose answers are the values of a column of a sub-query, BOOLEAN by their words alone."""
        if field is None or not field.is_answer or field.type != "BOOLEAN":
            return ()
        return tuple(text for text in field.source_texts if is_statement(text) and text not in self.conditions)

    def type_by_name(self, texts: Iterable[str], type: str) -> None:
        """Gives texts without a type the one that a place of their name needs, when the statement is bound again.

        What is true or false is BOOLEAN, as a number 1 and 0.

        Args:
            texts: of `open_texts`, or of `statements`.
            type: of a number, date or time; BOOLEAN; VARCHAR for words; of a column that INSERT fills with them, any.
        """
        for text in texts:
            if type == "BOOLEAN" or (is_statement(text) and type != "VARCHAR"):
                self.needed.add(text)
            else:
                self.by_name.setdefault(text, set()).add(type)

    @property
    def aggregates(self) -> AggregateFunctions:
        return self.catalog.aggregates

    def read(self, span: Span, text: str, read_as: str, detail: str = "") -> None:
        """Notes how a quoted text was read, each place once (an alias is bound wherever it is named).

        Args:
            span: of the text; one without a place is always noted.
            text: without its quotes.
            read_as: "column", "text", … as in `Reading`.
            detail: what the place meant.
        """
        if span.start < 0 or not any(reading.span == span for reading in self.readings):
            self.readings.append(Reading(span, text, read_as, detail))

    def warn(self, message: str) -> None:
        if message not in self.warnings:
            self.warnings.append(message)

    @property
    def reads_frames(self) -> bool:
        """Does it read a data frame of the caller's, which DuckDB knows by another name?"""
        return any(
            table.name in self.frames and not table.sql.lower().endswith(quote(table.name).lower())
            for table in self.tables.values()
        )

    def register_table(self, table: Table) -> Table:
        return self.tables.setdefault(table.sql, table)
