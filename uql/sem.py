"""`uql.sem("…")`: a quoted text as the value of a parameter, so that no query is made by string formatting."""

from __future__ import annotations

from uql.compiler.virtual import SemText


def sem(text: str, type: str | None = None) -> SemText:
    """A quoted text as a parameter: `con.uql("SELECT * FROM t WHERE $crit", crit=uql.sem("asked to cancel"))`.

    Args:
        text: the text, with holes {column} if it needs them.
        type: DuckDB type of its value; None: what its place asks for.
    Raises: BindError where the text is empty or no text.
    """
    return SemText(text, type)
