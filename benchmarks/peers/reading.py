"""Finds in somebody else's prompt what it asks, and about which rows of an oracle's data.

Other engines write prompts of their own around a condition and a row. Both are looked for by content alone: a text of the
oracle's answers, its pieces between holes in order, and the rows whose text stands in the prompt. Everything is compared by its
letters and digits, so that quotes, line breaks and escapes do not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from uql.base.errors import DataError

PIECE = 24  # letters that begin a row's text, by which it is looked up
_WORD = re.compile(r"[^\W_]+")
_HOLE = re.compile(r"\{[^{}]*\}")
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[nrt\"/])?")  # once or several times: a text may hold escapes of its own


def plain(text: str) -> str:
    """The words of a text in small letters with one space between, JSON's escapes undone.

    >>> plain('It\\\\'s \\\\"fine\\\\",\\\\n  really')
    'it s fine really'
    """
    undone = _ESCAPE.sub(lambda m: chr(int(m.group(1), 16)) if m.group(1) else " ", text)
    return " ".join(_WORD.findall(undone)).casefold()


@dataclass(frozen=True, slots=True)
class Found:
    """A row of the data in a prompt: its number and where in the prompt it stands."""

    row: int
    start: int
    end: int


class Prompts:
    """Reads prompts against one oracle: the texts that it answers, and the text of each of its rows."""

    def __init__(self, questions: Iterable[str], texts: Iterable[str]) -> None:
        self._questions = {text: [p for part in _HOLE.split(text) if (p := plain(part))] for text in questions}
        self._texts = [plain(text) for text in texts]
        self._by_piece: dict[str, list[int]] = {}
        seen: set[str] = set()
        for row, text in enumerate(self._texts):
            if text and text not in seen:  # of equal texts the first row stands for all
                seen.add(text)
                self._by_piece.setdefault(text[:PIECE], []).append(row)
        self._lengths = sorted({len(piece) for piece in self._by_piece}, reverse=True)

    def question(self, prompt: str) -> str:
        """The text whose pieces stand in the prompt in order: the longest one, less what stands between its pieces.

        Raises: DataError (UQL502) where there is none.
        """
        said = plain(prompt)
        gaps = {text: gap for text, pieces in self._questions.items() if (gap := _gap(pieces, said)) is not None}
        if not gaps:
            known = "; ".join(sorted(self._questions))
            raise DataError("the prompt asks nothing that the oracle knows", code="UQL502", help=f"it knows: {known}")
        return max(gaps, key=lambda text: (sum(map(len, self._questions[text])) - gaps[text], text))

    def rows(self, prompt: str, question: str = "") -> list[Found]:
        """The rows whose text stands in the prompt, in its order; a text within the question or a longer one's place is left out."""
        said = f" {plain(prompt)} "
        asked = [
            match.span() for piece in self._questions.get(question, ()) for match in re.finditer(re.escape(piece), said)
        ]
        hits = []
        for start in range(1, len(said)):
            if said[start - 1] != " ":
                continue
            for length in self._lengths:
                for row in self._by_piece.get(said[start : start + length], ()):
                    end = start + len(self._texts[row])
                    inside = any(first <= start and end <= last for first, last in asked)
                    if not inside and said.startswith(self._texts[row], start) and said[end] == " ":
                        hits.append(Found(row, start, end))
        hits.sort(key=lambda hit: (hit.start, hit.start - hit.end))
        found: list[Found] = []
        for hit in hits:
            if not found or hit.start >= found[-1].end:
                found.append(hit)
        return found


def _gap(pieces: list[str], said: str) -> int | None:
    """The fewest letters between pieces that stand in a text in order; None where they do not."""
    if not pieces:
        return None
    least, start = None, said.find(pieces[0])
    while start >= 0:
        at, between = start + len(pieces[0]), 0
        for piece in pieces[1:]:
            found = said.find(piece, at)
            if found < 0:
                return least
            between, at = between + found - at, found + len(piece)
        least = between if least is None else min(least, between)
        start = said.find(pieces[0], start + 1)
    return least
