"""Text that is safe to print: values of a table may hold control characters that a terminal obeys."""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Sequence

_BIDI = set("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def printable(text: str) -> str:
    """One line that does nothing to a terminal: control characters and changes of direction are written as escapes.

    >>> printable("two\\nlines\\x1b[31m")
    'two\\\\nlines\\\\x1b[31m'
    """
    if text.isascii() and text.isprintable():
        return text
    out = []
    for char in text:
        if char in _BIDI or unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp"):
            out.append(char.encode("unicode_escape").decode("ascii"))
        else:
            out.append(char)
    return "".join(out)


def aligned(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """A line for each row, the cells of a column below each other; those of the columns `right` end together.

    >>> aligned([("name", "n"), ("Ada", "12")], right=(1,))
    ['name   n', 'Ada   12']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def printable_lines(text: str) -> str:
    """As `printable`, for a text of several lines, with tabs.

    >>> printable_lines("two\\n\\tlines\\x1b[31m") == "two\\n\\tlines" + r"\\x1b[31m"
    True
    """
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))
