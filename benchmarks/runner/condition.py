"""The small language of `uql bench compare --fail-if`: `f1 < -0.02 or calls > 1.1x`.

    condition   either (or either)*         either      both (and both)*       both   ( condition ) | name op bound
    name        a measure (f1, `relative error`, quality; in any case), calls, requests, tokens, usd, seconds, or a number of the lines
    op          <  <=  >  >=
    bound       0.02    the difference  b − a
                1.1x    the ratio       b ÷ a
                5%      the difference in hundredths of a

A comparison whose number does not exist on both sides is false, one whose number nothing has is refused; a ratio to 0 is infinite
unless both are 0.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from uql.base.errors import ConfigError

_TOKEN = re.compile(
    r"\s*(?:(\(|\)|<=|>=|<|>)|`([^`]*)`|([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?:([xX])(?![\w.])|\s*(%))?|([A-Za-z_][\w.@-]*))"
)
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
Means = Mapping[str, float]
DEEPEST = 50  # parentheses within one another


@dataclass(frozen=True, slots=True)
class Comparison:
    name: str
    op: str
    bound: float
    unit: str  # "", "x" or "%"

    def change(self, before: Means, after: Means) -> float | None:
        """How the number changed, in the unit of the bound; None where one side does not have it."""
        name = self.name.casefold()
        first = [value for key, value in before.items() if key.casefold() == name]
        second = [value for key, value in after.items() if key.casefold() == name]
        if not first or not second:
            return None
        a, b = first[0], second[0]
        if self.unit == "":
            return b - a
        ratio = (1.0 if b == 0 else math.inf) if a == 0 else b / a
        return ratio if self.unit == "x" else 100 * (ratio - 1)

    def failing(self, before: Means, after: Means) -> list[str]:
        found = self.change(before, after)
        if found is None or not _COMPARE[self.op](found, self.bound):
            return []
        said = f"{found:.4g}x" if self.unit == "x" else f"{found:+.4g}{self.unit}"
        return [f"{self.name} {said} is {self.op} {self.bound:g}{self.unit}"]

    @property
    def names(self) -> set[str]:
        """The numbers that are looked at."""
        return {self.name.casefold()}


@dataclass(frozen=True, slots=True)
class Every:
    parts: tuple[Condition, ...]

    def failing(self, before: Means, after: Means) -> list[str]:
        found = [part.failing(before, after) for part in self.parts]
        return [said for each in found for said in each] if all(found) else []

    @property
    def names(self) -> set[str]:
        return set().union(*(part.names for part in self.parts))


@dataclass(frozen=True, slots=True)
class Some:
    parts: tuple[Condition, ...]

    def failing(self, before: Means, after: Means) -> list[str]:
        return [said for part in self.parts for said in part.failing(before, after)]

    @property
    def names(self) -> set[str]:
        return set().union(*(part.names for part in self.parts))


Condition = Comparison | Every | Some


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # sign, name, number, end
    text: str
    at: int
    unit: str = ""


def parse(text: str) -> Condition:
    """The condition of a text. Raises ConfigError (UQL402) with the place of what cannot be read.

    >>> parse("f1 < -0.02 or calls > 1.1x").failing({"f1": 0.9, "calls": 100}, {"f1": 0.9, "calls": 120})
    ['calls 1.2x is > 1.1x']
    """
    return _Reader(text).condition()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.next, self.depth = text, _tokens(text), 0, 0

    def condition(self) -> Condition:
        found = self._or()
        if self._peek().kind != "end":
            raise self._wrong("the end, 'and' or 'or'")
        return found

    def _or(self) -> Condition:
        parts = [self._and()]
        while self._take("name", "or"):
            parts.append(self._and())
        return parts[0] if len(parts) == 1 else Some(tuple(parts))

    def _and(self) -> Condition:
        parts = [self._one()]
        while self._take("name", "and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def _one(self) -> Condition:
        if self.depth < DEEPEST and self._take("sign", "("):
            self.depth += 1
            found = self._or()
            self.depth -= 1
            if not self._take("sign", ")"):
                raise self._wrong("')'")
            return found
        name = self._peek()
        if name.kind != "name" or name.text.lower() in ("and", "or"):
            raise self._wrong("the name of a number, as f1 or calls")
        self.next += 1
        op = self._peek()
        if op.text not in _COMPARE:
            raise self._wrong("one of < <= > >=")
        self.next += 1
        bound = self._peek()
        if bound.kind != "number":
            raise self._wrong("a number, as -0.02, 1.1x or 5%")
        self.next += 1
        return Comparison(name.text, op.text, float(bound.text), bound.unit)

    def _peek(self) -> _Token:
        return self.tokens[self.next]

    def _take(self, kind: str, text: str) -> bool:
        found = self._peek().kind == kind and self._peek().text.lower() == text
        self.next += found
        return found

    def _wrong(self, wanted: str) -> ConfigError:
        token = self._peek()
        said = repr(token.text) if token.kind != "end" else "the end"
        return ConfigError(
            f"--fail-if, column {token.at + 1}: {said} where {wanted} should stand\n    {self.text}\n    {' ' * token.at}^",
            code="UQL402",
            help="as 'f1 < -0.02 or calls > 1.1x'",
        )


def _tokens(text: str) -> list[_Token]:
    found, at = [], 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None:
            place = at + len(text[at:]) - len(text[at:].lstrip())
            raise ConfigError(
                f"--fail-if, column {place + 1}: {text[place]!r} cannot be read\n    {text}\n    {' ' * place}^",
                code="UQL402",
                help="as 'f1 < -0.02 or calls > 1.1x'",
            )
        sign, quoted, number, times, percent, name = match.groups()
        unit = "x" if times else percent
        start = match.end() - len(match.group().lstrip())
        if sign:
            found.append(_Token("sign", sign, start))
        elif number:
            found.append(_Token("number", number, start, unit or ""))
        else:
            found.append(_Token("name", quoted if quoted is not None else name, start))
        at = match.end()
    return [*found, _Token("end", "", len(text))]
