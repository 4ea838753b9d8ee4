"""What is known of the statement as a whole while its blocks are bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from uql.compiler.bind.scope import CatalogLike
from uql.compiler.bind.types import DuckTypes
from uql.compiler.bound import Reading
from uql.compiler.syntax import Span
from uql.schema import Table
from uql.settings import Settings


@dataclass(slots=True)
class Statement:
    """One statement: its text, catalog and settings, and what is gathered on the way."""

    text: str
    catalog: CatalogLike
    frames: Mapping[str, object]
    settings: Settings
    types: DuckTypes
    readings: list[Reading] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    semantic: bool = False

    @property
    def aggregates(self) -> frozenset[str]:
        return self.catalog.aggregates

    def read(self, span: Span, text: str, read_as: str, detail: str = "") -> None:
        """Notes how a quoted text was read, each place once (an alias is bound wherever it is named)."""
        if span.start < 0 or not any(reading.span == span for reading in self.readings):
            self.readings.append(Reading(span, text, read_as, detail))

    def warn(self, message: str) -> None:
        if message not in self.warnings:
            self.warnings.append(message)

    def seen(self, table: Table) -> Table:
        return self.tables.setdefault(table.sql, table)
