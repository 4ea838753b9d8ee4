"""Periods beside each other, and what changes from one to the next.

In lines:

    WHERE year(d) IN (2023, 2024) … GROUP BY year(d) … SELECT sum(amount)      2023 against 2024
    GROUP BY month(d) … SELECT change(sum(amount))                             against the month before, and in percent
    GROUP BY month(d) … SELECT running(sum(amount))                            the total up to each month
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from uql.nl.small.meaning.dates import years_of

CHANGE, RUNNING = "change", "running"
_UNITS = "year|quarter|month|week|day"
_BESIDE = re.compile(
    r"\b(?:vs\.?|versus|compare[ds]?|comparing|comparison|against|than in)\b"
    r"|\b(?:improve|increase|decrease|grow|grew|rise|rose|fall|fell|drop|decline|change|develop|differ|higher|lower|better|worse)\w*\b"
)
_FROM_TO = re.compile(r"\bfrom (\d{4}) to (\d{4})\b|\bbetween (\d{4}) and (\d{4})\b")
_OVER = re.compile(rf"\b({_UNITS})[- ](?:over|on|by|to)[- ]\1\b", re.IGNORECASE)
_BEFORE = re.compile(
    r"\b(?:(?:with |and )?(?:the )?(?:change|growth|difference|increase|decrease)s? )?"
    rf"(?:against|versus|vs|compared (?:to|with)|over|from|to) (?:the |each )?(?:previous|preceding|prior|last) ({_UNITS})\b",
    re.IGNORECASE,
)
_GROWTH = re.compile(r"\b(?:growth(?: rate)?|change|increase|decrease)s?\b(?: in| of)?", re.IGNORECASE)
_RUNNING = re.compile(
    r"\b(?:(?:,? ?(?:plus|with|and) )?(?:a |the )?)(?:running|cumulative|cumulated) (?:total|sum|count|number)?s?(?: of)?\b"
    r"|\bcumulatively\b",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"^\W*(?:which|who|whose|list|show)\b|\bhow (?:much|many) (?:more|less|fewer)\b|\bdifference\b", re.IGNORECASE
)
_TREND = re.compile(
    r"(?:(\bhow (?:did|has|have|do|does|is|are|was|were)\b.*?)\b(?:develop|evolv|chang|grow|grew|improv|increas|decreas)\w*"
    r"|\btrends?(?: of| in)?\b)"
    rf"(?=.*\b(?:by|per|each|every|over) (?:the )?(?:{_UNITS}|time|years|months)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Periods:
    """The years that are set beside each other, and what is made of the figures of each period: change, running or nothing."""

    years: tuple[str, ...] = ()
    kind: str = ""


def periods_in(question: str) -> tuple[str, Periods]:
    """A question without the words for how something changes, and what it asks of periods.

    >>> periods_in("revenue 2023 vs 2024")
    ('revenue in 2023 and 2024', Periods(years=('2023', '2024'), kind=''))
    >>> periods_in("Month over month growth of sales in 2024")
    ('sales in 2024 per month', Periods(years=(), kind='change'))
    >>> periods_in("monthly cost with change against the previous month")[1].kind
    'change'
    """
    if _RUNNING.search(question):
        return " ".join(_RUNNING.sub(" total ", question).split()), Periods(kind=RUNNING)
    before = _OVER.search(question) or _BEFORE.search(question)
    if before is not None:
        unit = before[1].lower()
        plain = _GROWTH.sub(" ", question[: before.start()] + question[before.end() :]).strip(" ?.!")
        plain = plain if re.search(rf"\b(?:per|each|every|by) {unit}\b", plain) else f"{plain} per {unit}"
        return " ".join(plain.split()), Periods(kind=CHANGE)
    years = years_of(question)
    if len(years) > 1 and not _OTHER.search(question) and (found := _BESIDE.search(question.lower())) is not None:
        spans = _FROM_TO.search(question)
        kept = question[: found.start()] + question[found.end() :]
        kept = kept.replace(spans[0], f"in {' and '.join(filter(None, spans.groups()))}") if spans is not None else kept
        kept = re.sub(r"(?<!\bin )(?<!\bof )(?<!\bfor )\b(\d{4}),? (?=\d{4}\b)", r"in \1 and ", " ".join(kept.split()))
        return kept, Periods(tuple(sorted(dict.fromkeys(years))))
    return " ".join(_TREND.sub(r"\1 ", question).split()), Periods()
