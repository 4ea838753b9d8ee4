"""The dates and years that stand in a question, as values of SQL."""

from __future__ import annotations

import re
from datetime import date

from uql.nl.small.meaning.likeness import MONTHS

_MONTH = "|".join(f"{month}|{month[:3]}" for month in MONTHS)
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})(?:-(\d{1,2}))?\b")
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\.?,? (\d{{4}})\b", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"\b({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?,? (\d{{4}})\b", re.IGNORECASE)
_DOTTED = re.compile(r"\b(\d{1,2})\.(\d{1,2})\.(\d{4})\b")
_YEAR = re.compile(r"(?<![$€£.,\d])\b(?:1\d{3}|20\d{2})\b(?![.,%]\d| ?%)")
_AMOUNT = re.compile(
    r"(?<!earlier )(?<!later )(?<!older )(?<!newer )(?<!younger )(?:\bthan|\bover|\bunder|\babove|\bbelow|\bat least|\bat most|\bexceed\w*"
    r"|\bup to) $",
    re.IGNORECASE,
)


def days_of(question: str) -> list[str]:
    """The days and years that a question names, years as they stand.

    >>> days_of("between 3 May 2023 and June 1st, 2024, since 1999")
    ['2023-05-03', '2024-06-01', '2023', '2024', '1999']
    """
    found = [(y, m, d) for y, m, d in _ISO.findall(question) if d]
    found += [(y, _number(m), d) for d, m, y in _DAY_FIRST.findall(question)]
    found += [(y, _number(m), d) for m, d, y in _MONTH_FIRST.findall(question)]
    found += [(y, m, d) for d, m, y in _DOTTED.findall(question)]
    days = []
    for parts in found:
        try:
            days.append(date(*map(int, parts)).isoformat())
        except ValueError:
            continue  # no such day
    return list(dict.fromkeys([*days, *years_of(question)]))


def years_of(question: str) -> list[str]:
    """The years that a question names: no number that something is compared with.

    >>> years_of("since 1999, in 2024, more than 2000 euros"), years_of("older than 1950")
    (['1999', '2024'], ['1950'])
    """
    return [found[0] for found in _YEAR.finditer(question) if not _AMOUNT.search(question[: found.start()])]


def _number(month: str) -> int:
    return next(n for n, name in enumerate(MONTHS, 1) if name.lower().startswith(month.lower()[:3]))
