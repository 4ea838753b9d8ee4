"""A cheap model and a dear one: the dear one is right, the cheap one errs where it is unsure."""

from __future__ import annotations

from hashlib import blake2b

from row_model import RowModel

from uql.llm.providers.base import Answer, Capabilities, Limits, Price, Problem
from uql.llm.questions import Extract


def drawn(text: str) -> float:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") / 2**64


def is_good(text: str) -> bool:
    return drawn(text) < 0.3


class Dear(RowModel):
    name, is_local = "dear", True
    limits, price, capabilities = Limits(concurrency=64), Price(10, 40), Capabilities(probabilities=True)
    unreadable = 0.0

    def __init__(self):
        self.calls = 0

    def _one(self, question, row):
        self.calls += 1
        text = row.cells[0].value
        if isinstance(question, Extract):
            return Answer("a value")
        if drawn("unreadable " + self.name + text) < self.unreadable:
            return Answer(problem=Problem("unreadable", "neither yes nor no"))
        return self.said(text)

    def said(self, text):
        return Answer(is_good(text), float(is_good(text)))


class Cheap(Dear):
    """Wrong about one row in twelve, and then unsure of most of them."""

    name, price = "cheap", Price(1, 4)

    def said(self, text):
        sure = 0.55 + 0.44 * drawn("sure " + text)
        yes = is_good(text) != (drawn("wrong " + text) < 0.3 * (1 - sure))
        return Answer(yes, sure if yes else 1 - sure)


def measured(found: set[int], right: set[int]) -> tuple[float, float]:
    return len(found & right) / max(len(found), 1), len(found & right) / max(len(right), 1)
