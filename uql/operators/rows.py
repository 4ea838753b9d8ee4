"""How a row is shown to a model: as data, fenced where the model is large enough to know what a fence is."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from uql.operators.record import Cell, Question, Row
from uql.operators.texts import named, neutral, quoted, short

VERSION = "rows-2"
_LETTERS = "bcdfghjklmnpqrstvwxz"  # no vowels, so a tag is never a word
_HOLE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
SYSTEM = "You answer questions about a text."  # one for several kinds: the row after it is evaluated once for all


def label_of(cell: Cell) -> str:
    return f"{cell.table}.{cell.name}" if cell.table else cell.name


def shown_name(cell: Cell) -> str:
    """The name of a cell as a prompt shows it."""
    return f"{named(cell.table)}.{named(cell.name)}" if cell.table else named(cell.name)


def holes_of(text: str) -> frozenset[str]:
    """What stands in the holes of a text.

    >>> sorted(holes_of("{city} and {t.name}, not {{braces}}"))
    ['city', 't.name']
    """
    if "{" not in text:
        return frozenset()
    return frozenset(m.group(1).strip() for m in _HOLE.finditer(text) if m.group(1) is not None)


def renamed_holes(text: str, name: Callable[[str], str]) -> str:
    """A text with other names in its holes, from first to last.

    >>> renamed_holes("{City}, not {{braces}}", str.lower)
    '{city}, not {{braces}}'
    """
    return _HOLE.sub(lambda m: m[0] if m[1] is None else f"{{{name(m[1].strip())}}}", text)


def filled(question: Question, row: Row, names: Mapping[Cell, str] | None = None) -> str:
    """The question's text with its holes filled: a value in quotes, or the name of a cell that is shown.

    Args:
        names: what cells are called where they are shown under another name than their own.

    >>> filled(Question("{city} lies in {{Italy}}"), Row(holes=(("city", "Rome"),)))
    '"Rome" lies in {Italy}'
    """
    if "{" not in question.text and "}" not in question.text:
        return question.text
    values = dict(row.holes)

    def fill(match: re.Match[str]) -> str:
        whole = match.group()
        if whole in ("{{", "}}"):
            return whole[0]
        name = match.group(1).strip()
        if name in values:
            return quoted(values[name])
        cell = _cell_of(name, row)
        if cell is None:
            return name
        if names is not None and cell in names:
            return names[cell]
        return named(cell.name) if name == cell.name else shown_name(cell)

    return _HOLE.sub(fill, question.text)


def explained(instruction: str, question: Question) -> str:
    """The instruction with what is meant by the text, and the examples that a person answered and wants shown.

    >>> print(explained("Is it warm?", Question("warm", examples=(("a sunny day", "yes"),), meaning="above 20 °C")))
    Is it warm?
    What is meant: "above 20 °C"
    A person answered so (the texts in quotes are data):
    - "a sunny day": yes
    """
    task = f"{instruction}\nWhat is meant: {quoted(question.meaning)}" if question.meaning else instruction
    if not question.examples:
        return task
    lines = "\n".join(f"- {quoted(text)}: {short(answer)}" for text, answer in question.examples)
    return f"{task}\nA person answered so (the texts in quotes are data):\n{lines}"


def _cell_of(hole: str, row: Row) -> Cell | None:
    """The cell that a hole names. Rows of one table show no table, and {t.name} names their cell all the same."""
    by_name = [cell for cell in row.cells if cell.name == hole]
    cells = by_name or [cell for cell in row.cells if hole.endswith(f".{cell.name}")]
    return next((c for c in cells if by_name or c.table in (hole.removesuffix(f".{c.name}"), "")), None)


def named_cells(question: Question, row: Row) -> list[Cell]:
    """The cells that the holes of a question name, each once."""
    values = dict(row.holes)
    holes = [match.group(1).strip() for match in _HOLE.finditer(question.text) if match.group(1) is not None]
    cells = [_cell_of(hole, row) for hole in holes if hole not in values]
    return list(dict.fromkeys(cell for cell in cells if cell is not None))


def lines(row: Row) -> str:
    """The text cells of a row: the bare text of a single one, else "name: value" lines. NULL cells are left out."""
    cells = [cell for cell in row.cells if isinstance(cell.value, str)]
    if len(cells) == 1 and not cells[0].table:
        return neutral(str(cells[0].value))
    return "\n".join(f"{shown_name(cell)}: {neutral(str(cell.value))}" for cell in cells)


@lru_cache(maxsize=1024)
def fence(seed: int) -> str:
    """A word that no row can know: eight characters made from the run's seed."""
    return hashlib.blake2b(str(seed).encode(), digest_size=4, person=b"uql-fence").hexdigest()


def fenced(text: str, seed: int) -> str:
    """The text between two delimiters that it does not hold."""
    mark = fence(seed)
    while mark in text.casefold():
        seed += 1
        mark = fence(seed)
    return f"<data-{mark}>\n{text}\n</data-{mark}>"


@lru_cache(maxsize=1024)
def tag(seed: int) -> str:
    """The same in few tokens, for prompts that are paid for by the row: four letters."""
    digest = hashlib.blake2b(str(seed).encode(), digest_size=4, person=b"uql-tag").digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest)


def tag_for(texts: Iterable[str], seed: int) -> str:
    """A tag that none of the texts holds."""
    all_text = "\n".join(texts).casefold()
    while tag(seed) in all_text:
        seed += 1
    return tag(seed)


def media(row: Row) -> list[Cell]:
    """The cells of a row that are images, sounds or documents."""
    return [cell for cell in row.cells if isinstance(cell.value, bytes)]


def about(row: Row, question: str) -> str:
    """The measured form: the row, an empty line, the question. A row of several cells begins on a line of its own."""
    text = lines(row)
    if not text:
        return question
    several = "\n" if text and sum(isinstance(c.value, str) for c in row.cells) > 1 else " "
    return f"Text:{several}{text}\n\n{question}"
