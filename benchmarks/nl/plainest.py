"""The plainest answers to questions on financial reports, without a model: what a system has to beat on TAT-QA and FinMMR.

TAT-QA: the row of the table whose heading shares the most words with the question, in the columns of the years that it names (else the
first figure); with a word of change, difference, average or sum that of the figures; with the scale that the page names. FinMMR: pictures
are not looked at, so what is answered is the figure in the sentence of the text that shares the most words with the question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from types import MappingProxyType

import duckdb

from uql.benchmarks.nl import metrics
from uql.benchmarks.nl.suites import SUITES, Asked
from uql.benchmarks.runner.suite import Table

_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_FIGURE = re.compile(r"\(?-?[$£€]?\s?\d[\d,]*\.?\d*\)?")
_SCALES = MappingProxyType({"in thousands": "thousand", "in millions": "million", "in billions": "billion"})
_COMMON = frozenset({"what", "is", "the", "of", "in", "for", "was", "were", "are", "by", "to", "a", "an", "and", "how", "much", "many",
                     "did", "from", "between", "company", "total", "amount"})  # fmt: skip


def words(text: str) -> set[str]:
    """The words of a text that say what it is about."""
    return set(re.findall(r"[a-z]+", text.lower())) - _COMMON


def figures(texts: Sequence[str]) -> list[float]:
    """What texts say, of those that are figures; brackets are a minus."""
    return [value for text in texts if (value := metrics.figure(text)) is not None]


def of_table(question: str, table: Sequence[Sequence[str]], paragraphs: Sequence[str]) -> str:
    """The answer that the table's headings lead to.

    >>> of_table("What was the change in sales from 2018 to 2019?", [["", "2019", "2018"], ["Sales", "30", "20"], ["Costs", "9", "8"]], [])
    '10'
    """
    asked, years = words(question), list(dict.fromkeys(_YEAR.findall(question)))
    rows = [row for row in table if words(row[0]) and figures(row[1:])]
    if not rows:
        return ""
    best = max(rows, key=lambda row: len(asked & words(row[0])) / (1 + len(words(row[0]) - asked)))
    columns = [
        i
        for year in years
        for i in range(1, len(best))
        if any(year in row[i] for row in table if row is not best and i < len(row))
    ]
    values = figures([best[i] for i in columns]) or figures(best[1:])
    if not values:
        return ""
    low = question.lower()
    last, first = (values[0], values[1]) if len(values) > 1 else (values[0], values[0])
    if len(years) > 1 and years[0] < years[1]:
        last, first = first, last
    if "percent" in low and len(values) > 1 and first:
        return f"{100 * (last - first) / abs(first):.2f} percent"
    scale = next(
        (
            scale
            for said, scale in _SCALES.items()
            if said in " ".join([*(c for row in table for c in row), *paragraphs]).lower()
        ),
        "",
    )
    if re.search("change|difference|increase|decrease", low):
        value = last - first
    elif "average" in low:
        value = fmean(values[:2])
    elif "sum" in low:
        value = sum(values[:2])
    else:
        value = values[0]
    return f"{value:g} {scale}".strip() if abs(value) < 1e5 else f"{value:.2f} {scale}".strip()


def of_text(question: str, text: str) -> str:
    """The figure in the sentence that shares the most words with the question; "" where there is none.

    >>> of_text("How high was the rent?", "Sales were 30. The rent was 12 a month.")
    '12'
    """
    sentences = [part for part in re.split(r"(?<=[.;:?])\s+|\n", text) if _FIGURE.search(part)]
    if not sentences:
        return ""
    best = max(sentences, key=lambda sentence: len(words(question) & words(sentence)))
    figure: str = _FIGURE.findall(best)[-1]
    return figure.strip("()")


def scores(name: str, shared: Path) -> list[tuple[str, float, float]]:
    """(kind of answer, exact match, F1) of each question of a suite.

    Args:
        name: tatqa or finmmr.
        shared: the folder of the data.
    """
    asked = SUITES[name].questions(shared)
    with duckdb.connect() as con:
        if name == "tatqa":
            pages = {
                i: (t, p)
                for i, t, p in con.execute(
                    f"SELECT context_id, \"table\", paragraphs FROM '{shared}/tatqa/contexts.parquet'"
                ).fetchall()
            }
            return [(a.output, *_judged(of_table(a.words, *pages[a.place]), a)) for a in asked]
        texts = dict(
            con.execute(f"SELECT question_id, meta->>'context' FROM '{shared}/finmmr/questions.parquet'").fetchall()
        )
    found = [metrics.finmmr(of_text(a.words, texts[a.id] or ""), a.reference) for a in asked]
    return [(a.output, right, right) for a, right in zip(asked, found, strict=True)]


def _judged(said: str, asked: Asked) -> tuple[float, float]:
    reference, scale = asked.reference
    exact, f1 = metrics.tatqa(said, reference, scale)
    return exact, f1


def numbers(found: Sequence[tuple[str, float, float]]) -> dict[str, float]:
    """Of each kind of answer, and of all: how many there are, and the shares that are right."""
    held: dict[str, float] = {}
    for kind in (*dict.fromkeys(kind for kind, _, _ in found), "all"):
        own = [(exact, f1) for k, exact, f1 in found if kind in (k, "all")]
        exact, f1 = (fmean(pair[i] for pair in own) for i in (0, 1))
        held |= {f"{kind}: questions": float(len(own)), f"{kind}: exact match": exact, f"{kind}: F1": f1}
    return held


def table(name: str, held: Mapping[str, float]) -> Table:
    """A row for each kind of answer."""
    rows = []
    for kind in dict.fromkeys(key.partition(":")[0] for key in held):
        shares = (f"{100 * held[f'{kind}: {measure}']:.1f} %" for measure in ("exact match", "F1"))
        rows.append((kind, f"{held[f'{kind}: questions']:,.0f}", *shares))
    head = ("answer", "questions", "exact match", "F1")
    return Table(f"{name}: the plainest answers, without a model", head, tuple(rows))
