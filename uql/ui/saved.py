"""Saved queries: a name and a text each, in a file beside the ledger, so that every page and every day finds them."""

from __future__ import annotations

import json
import os
from pathlib import Path

from uql.base.errors import DataError
from uql.base.postgres_url import is_postgres
from uql.llm.ledger_sqlite import default_path

MOST = 1_000  # queries
LONGEST_NAME = 80  # characters


class Saved:
    """Saved queries by name.

    Args:
        ledger: as the setting: a path, ":memory:" (nothing is kept after the session), or None for the usual one, beside which the
            file stands too where the ledger is in a server.
    """

    def __init__(self, ledger: str | None) -> None:
        path = Path(ledger).expanduser() if ledger and not is_postgres(ledger) else default_path()
        self.path = None if ledger == ":memory:" else path.with_name("saved_queries.json")
        self._texts: dict[str, str] = {}

    def texts(self) -> dict[str, str]:
        """Name → text, as the file holds them now. Raises: DataError (UQL503) where it cannot be read."""
        if self.path is not None and self.path.exists():
            try:
                found = json.loads(self.path.read_text("utf-8"))
                self._texts = {str(name): str(text) for name, text in found.items()}
            except (OSError, ValueError, AttributeError) as error:
                raise DataError(f"{self.path} cannot be read: {error}", code="UQL503", help="move it away") from error
        return dict(self._texts)

    def keep(self, name: str, text: str) -> dict[str, str]:
        """Saves a text under a name, or forgets the name where the text is empty; all that is saved then.

        Raises: DataError (UQL503) where it cannot be written, or there are too many.
        """
        name = name.strip()[:LONGEST_NAME]
        texts = {key: value for key, value in self.texts().items() if key != name}
        if text.strip() and name:
            texts[name] = text
        if len(texts) > MOST:
            raise DataError(f"at most {MOST:,} queries are saved", code="UQL503", help="forget some of them")
        self._texts = texts
        if self.path is not None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                part = self.path.with_suffix(".part")
                with open(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                    json.dump(texts, file, ensure_ascii=False, indent=1)
                part.replace(self.path)
            except OSError as error:
                raise DataError(f"{self.path} cannot be written: {error}", code="UQL503") from error
        return texts
