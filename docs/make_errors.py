"""Write docs/errors.md from docs/error_codes.py; with --check say whether it is current (exit code 1 when not)."""

from __future__ import annotations

import sys

from error_codes import ERROR_CODES
from generated import main

HEAD = """# Errors

Made from `docs/error_codes.py` by `python docs/make_errors.py`; a test fails when it is stale, when a code of the source
is missing here, and when a statement below does not raise its code.

Every error has a code, a message, where possible the place in the statement, and a help line that says what to write instead. In
Python: `error.code`, `error.message`, `error.help`; all are subclasses of `uql.UQLError`.

The statements run over these tables:

```sql
CREATE TABLE reviews (id INTEGER, film VARCHAR, stars INTEGER, body VARCHAR);
CREATE TABLE films (title VARCHAR, year INTEGER, plot VARCHAR);
```
"""

ROOMS = {
    "UQL1": "The text of the statement, and settings",
    "UQL2": "Names and types",
    "UQL3": "Plans",
    "UQL4": "Models, budgets, the ledger",
    "UQL5": "Files, tables, rows",
    "UQL6": "Questions in natural language, and optional packages",
}


def page() -> str:
    """The whole of docs/errors.md."""
    parts, before = [HEAD], ""
    for code, entry in sorted(ERROR_CODES.items()):
        if code[:4] != before:
            before = code[:4]
            parts.append(f"## {before}xx: {ROOMS[before]}\n")
        example = f"```sql\n{entry.statement}\n```" if entry.statement else f"Example: {entry.situation}"
        parts.append(f"### {code}\n\n{entry.cause}\n\n{example}\n\nCure: {entry.cure}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main(__file__, page))
