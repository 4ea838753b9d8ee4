"""Columns and tables as every stage sees them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Modality(StrEnum):
    STRUCTURED = "structured"
    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class Field:
    """One column: its DuckDB type, what it holds, and what COMMENT ON says of it."""

    name: str
    type: str
    modality: Modality = Modality.STRUCTURED
    description: str = ""
    mean_chars: float = 0.0  # mean length of the value as text, over a sample
    private: bool = False  # a comment "private": never shown to a model
    mean_bytes: float = 0.0  # as mean_chars, in UTF-8: a token is about four bytes of any script
    by_name: bool = False  # shown only to a text that names it: other columns hold its content
    # of a sub-query's: the texts that its values come from
    source_texts: tuple[str, ...] = field(default=(), compare=False)
    is_answer: bool = field(default=False, compare=False)  # of a sub-query's: its values are the answers to a text

    @property
    def holds_words(self) -> bool:
        """Are its values strings, whatever DuckDB calls their type? `"NULL"`: of a frame, without a value."""
        return self.type in ("VARCHAR", "JSON", '"NULL"') or self.type.startswith("ENUM(")

    @property
    def is_unstructured(self) -> bool:
        return self.modality is not Modality.STRUCTURED


ROWID = Field("rowid", "BIGINT")


@dataclass(frozen=True, slots=True)
class Table:
    """A table, view, file or data frame that may stand after FROM."""

    name: str  # as the user wrote it
    sql: str  # what stands for it in DuckDB SQL, quoted
    fields: tuple[Field, ...]
    row_count: int | None = None
    description: str = ""
    estimated_by: str | None = None  # made by TO from an estimate: what a result that reads it is `based_on`
    has_rowid: bool = False  # a table of DuckDB's: its rows are numbered, in a column that no star shows

    @property
    def readable(self) -> tuple[Field, ...]:
        """The fields that a statement may name: rowid too."""
        return (*self.fields, ROWID) if self.has_rowid and self.field(ROWID.name) is None else self.fields

    def field(self, name: str) -> Field | None:
        """The column of this name: exact spelling first, then case-insensitively."""
        for f in self.fields:
            if f.name == name:
                return f
        low = name.lower()
        for f in self.fields:
            if f.name.lower() == low:
                return f
        return None
