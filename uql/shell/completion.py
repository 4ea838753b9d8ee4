"""What the shell completes: keywords, tables, columns, settings, commands, and within "…" the texts that were asked before."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from uql.base.settings import NAMES
from uql.compiler.lexer import WORDS

_WORD = re.compile(r"[.\w]*\Z")
_OPEN_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)\Z')
_AFTER_FROM = re.compile(r"\b(?:from|join)\s+[\w.]*\Z", re.IGNORECASE)
_SETTING = re.compile(r"\b(?:set|reset)\s+uql\.\w*\Z|\bwith\s*\([^()]*\Z", re.IGNORECASE)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)+)"')


class UQLCompleter(Completer):
    """Completes by the place of the cursor.

    Args:
        tables: gives the names of the tables.
        columns: gives the columns of the tables that a statement names.
        texts: gives the texts asked before, newest first.
        commands: the dot commands with what they do.
    """

    def __init__(
        self,
        tables: Callable[[], Sequence[str]],
        columns: Callable[[str], Sequence[str]],
        texts: Callable[[], Sequence[str]],
        commands: dict[str, str],
    ) -> None:
        self._tables, self._columns, self._texts, self._commands = tables, columns, texts, commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if before.startswith("."):
            for name, says in self._commands.items():
                if name.startswith(before):
                    yield Completion(name, -len(before), display_meta=says)
            return
        if before.count('"') % 2:
            opening = _OPEN_TEXT.search(before)
            begun = opening[1] if opening else ""
            for text in self._texts():
                if text.lower().startswith(begun.lower()) and text != begun:
                    yield Completion(text + '"', -len(begun), display=text, display_meta="asked before")
            return
        match = _WORD.search(before)
        word = match[0] if match else ""
        for name, kind in self._names(before, document.text):
            if name.lower().startswith(word.lower()) and name != word:
                yield Completion(name, -len(word), display_meta=kind)

    def _names(self, before: str, text: str) -> Iterable[tuple[str, str]]:
        if _SETTING.search(before):
            prefix = "uql." if re.search(r"\buql\.\w*\Z", before, re.IGNORECASE) else ""
            yield from ((prefix + name, "setting") for name in sorted(NAMES))
            return
        if _AFTER_FROM.search(before):
            yield from ((name, "table") for name in self._tables())
            return
        yield from ((name, "column") for name in self._columns(text))
        yield from ((name, "table") for name in self._tables())
        if _WORD.search(before)[0]:  # type: ignore[index]
            yield from ((name, "") for name in sorted(WORDS))


def texts_in(statement: str) -> list[str]:
    """The quoted texts of a statement that have more than one word: those that were probably asked.

    >>> texts_in('SELECT "the mood" AS m FROM "t" WHERE a = "b"')
    ['the mood']
    """
    return [text for text in _QUOTED.findall(statement) if " " in text.strip()]
