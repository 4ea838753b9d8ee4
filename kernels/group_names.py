"""Names that a model wrote: cleaned before they enter an instruction, and what near-duplicates have in common."""

from __future__ import annotations

MOST_CHARS = 80


def one_line(text: str) -> str:
    """At most 80 printable characters of one line.

    >>> one_line("  a\\n  b ")
    'a b'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:MOST_CHARS].strip()


def stem(label: str) -> str:
    """What two spellings of one label have in common: case, plural, spaces, hyphens and articles left out.

    >>> stem("The Lost-Cards"), stem("lost card"), stem("companies"), stem("glass")
    ('lost card', 'lost card', 'company', 'glass')
    """
    words = "".join(c if c.isalnum() else " " for c in label.casefold()).split()
    content_words = [w for w in words if w not in ("a", "an", "the")] or words
    return " ".join(map(_singular, content_words))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
