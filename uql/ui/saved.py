"""What a page keeps from one day to the next, in files beside the ledger: saved queries, and the tabs that were open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uql.base import json_file
from uql.base.errors import DataError
from uql.base.postgres_url import is_postgres
from uql.llm.ledger_sqlite import default_path

MOST = 1_000  # queries
LONGEST_NAME = 80  # characters
MOST_DATABASES = 100  # whose tabs are kept, the latest ones


class JsonFile:
    """A JSON object in a file beside the ledger, which only the user can read.

    Args:
        ledger: as the setting: a path, ":memory:" (nothing is kept after the session), or None for the usual one, beside which the
            file stands too where the ledger is in a server.
        name: of the file.
    """

    def __init__(self, ledger: str | None, name: str) -> None:
        path = Path(ledger).expanduser() if ledger and not is_postgres(ledger) else default_path()
        self.path = None if ledger == ":memory:" else path.with_name(name)
        self._held: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        """The object as the file holds it now. Raises: DataError (UQL503) where it cannot be read."""
        if self.path is not None:
            try:
                self._held = json_file.read(self.path)
            except (OSError, ValueError) as error:
                raise DataError(f"{self.path} cannot be read: {error}", code="UQL503", help="move it away") from error
        return dict(self._held)

    def write(self, values: dict[str, Any]) -> None:
        """Puts the object into the file. Raises: DataError (UQL503) where it cannot be written."""
        self._held = values
        try:
            if self.path is not None:
                json_file.write(self.path, values)
        except OSError as error:
            raise DataError(f"{self.path} cannot be written: {error}", code="UQL503") from error


class Saved:
    """Saved queries: a name and a text each. Every page finds them. `ledger`: as of JsonFile."""

    def __init__(self, ledger: str | None) -> None:
        self.file = JsonFile(ledger, "saved_queries.json")

    def texts(self) -> dict[str, str]:
        """Name → text. Raises: DataError (UQL503) where the file cannot be read."""
        return {name: str(text) for name, text in self.file.read().items()}

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
        self.file.write(texts)
        return texts


class Tabs:
    """The statements of the tabs that were open last over a database, whatever port the page had.

    Args:
        ledger: as of JsonFile.
        database: its path, or the folder that a session without one was started in.
    """

    def __init__(self, ledger: str | None, database: str) -> None:
        self.file = JsonFile(ledger, "open_tabs.json")
        self.database = database

    def texts(self) -> list[str]:
        """The text of each tab. Raises: DataError (UQL503) where the file cannot be read."""
        tabs = self.file.read().get(self.database)
        return [str(text) for text in tabs] if isinstance(tabs, list) else []

    def keep(self, texts: list[str]) -> None:
        """Keeps the texts in place of those before. Raises: DataError (UQL503) where they cannot be written."""
        others = [(name, tabs) for name, tabs in self.file.read().items() if name != self.database]
        self.file.write(dict([*others, (self.database, texts)][-MOST_DATABASES:]))
