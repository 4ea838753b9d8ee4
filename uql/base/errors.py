"""Every error a user can meet, as one tree.

    UQLError
    ├── UQLSyntaxError          UQL1xx  the text is not UQL
    ├── BindError               UQL2xx  a name or a type does not fit
    │   ├── UnknownTableError   UQL201
    │   └── UnknownColumnError  UQL202
    ├── PlanError               UQL3xx  no legal plan
    ├── ModelError              UQL4xx  models, budgets, configuration of both
    │   ├── BudgetError         UQL401  more calls needed than the budget leaves
    │   ├── AuthError           UQL403  key missing or refused: always raised, whatever on_error says
    │   ├── QuotaError          UQL404
    │   ├── UnknownModelError   UQL405
    │   ├── BackendError        UQL406  the backend cannot be reached
    │   └── ModelReplyError     UQL407  a reply that cannot be read (one row: NULL and a failure)
    ├── DataError               UQL5xx  files, tables, values
    ├── GuardError              UQL62x  a statement that a model wrote is not one harmless query, or was stopped
    ├── QuestionError           UQL63x  a question in words: no plan, no valid answer, an adapter that failed
    └── ConfigError             UQL6xx… see `code`

Each says what is wrong, where in the text, and what to write instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


def line_column(text: str, at: int) -> tuple[int, int]:
    """The line and the column of a place in a text; both count from 1."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _caret(text: str, start: int, end: int) -> str:
    """The line of `text` that holds `start`, with carets under start … end."""
    start = max(0, min(start, len(text)))
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    stop = len(text) if stop < 0 else stop
    line, column = line_column(text, start)
    width = max(1, min(end, stop) - start)
    window, offset = text[begin:stop], start - begin
    if len(window) > 160:  # a window around the place
        cut = max(0, offset - 60)
        window, offset = window[cut : cut + 160], offset - cut
    pad = "".join("\t" if c == "\t" else " " for c in window[:offset])
    return f"  line {line}, column {column}\n    {window}\n    {pad}{'^' * min(width, max(1, len(window) - offset))}"


@dataclass(frozen=True, slots=True)
class Span:
    """Character offsets of a piece of the text: `text[start:end]`."""

    start: int
    end: int


class UQLError(Exception):
    """Base of all errors of UQL.

    Args:
        message: what is wrong, one line.
        code: "UQL101" …; each class has a default.
        text: the statement.
        start: of the place in it, as a character offset.
        end: of the place.
        span: the place, in one.
        help: what to write instead.
    """

    code = "UQL000"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        text: str | None = None,
        start: int = -1,
        end: int = -1,
        span: Span | None = None,
        help: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        if span is not None:
            start, end = span.start, span.end
        self.text, self.start, self.end, self.help = text, start, end, help

    def located(self, span: Span) -> None:
        """Takes a place in the statement, where it has none."""
        if self.start < 0:
            self.start, self.end = span.start, span.end

    def at(self, text: str) -> UQLError:
        """The same error, now knowing the statement its place is in."""
        if self.text is None:
            self.text = text
        return self

    def __str__(self) -> str:
        parts = [f"{self.code}: {self.message}"]
        if self.text is not None and self.start >= 0:
            parts.append(_caret(self.text, self.start, max(self.end, self.start + 1)))
        if self.help:
            parts.append(f"  help: {self.help}")
        return "\n".join(parts)

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows in the place of a traceback (IPython asks for it); `error.__traceback__` is there as ever."""
        return f"{type(self).__name__}: {self}".splitlines()


class UQLSyntaxError(UQLError):
    code = "UQL100"


class BindError(UQLError):
    code = "UQL200"


class UnknownTableError(BindError):
    code = "UQL201"


class UnknownColumnError(BindError):
    code = "UQL202"


class PlanError(UQLError):
    code = "UQL300"


class ModelError(UQLError):
    code = "UQL400"


class BudgetError(ModelError):
    """More calls are needed than the budget leaves; nothing was sent."""

    code = "UQL401"


class AuthError(ModelError):
    code = "UQL403"


class QuotaError(ModelError):
    code = "UQL404"


class UnknownModelError(ModelError):
    code = "UQL405"


class BackendError(ModelError):
    code = "UQL406"


class ModelReplyError(ModelError):
    code = "UQL407"


class DataError(UQLError):
    code = "UQL500"


class QuestionError(UQLError):
    """A question in natural language without a valid plan or without a valid answer."""

    code = "UQL630"


class GuardError(UQLError):
    """A statement that a model wrote is refused (UQL620), or was stopped while it ran (UQL621)."""

    code = "UQL620"


class ConfigError(UQLError):
    """A setting that does not exist, or has a value that it cannot have."""

    code = "UQL105"


_NO_MEMORY = ("can't start new thread", "failed to map segment", "cannot allocate memory", "Cannot allocate memory")


def out_of_memory(error: Exception) -> DataError:
    """What the user is told where memory has run out (UQL526)."""
    return DataError(
        f"there is not enough memory: {str(error).strip().splitlines()[0] if str(error).strip() else 'an allocation failed'}",
        code="UQL526",
        help="select fewer columns and rows, close other programs, or let DuckDB work on disk: SET memory_limit = '2GB'",
    )


@contextmanager
def memory_errors() -> Iterator[None]:
    """Turns a MemoryError of the block, and what else is raised where no memory is left, into DataError (UQL526); where a tree is too
    deep, BindError (UQL213)."""
    try:
        yield
    except MemoryError as error:
        raise out_of_memory(error) from error
    except RecursionError as error:
        raise BindError(
            "the query is nested too deeply", code="UQL213", help="split it with WITH name AS (…)"
        ) from error
    except (RuntimeError, ImportError) as error:  # a thread without a stack, a library that cannot be loaded
        if not any(sign in str(error) for sign in _NO_MEMORY):
            raise
        raise out_of_memory(error) from error
