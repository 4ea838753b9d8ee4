"""The five shapes of a reply: all that a provider ever sees of an operator.

A provider forces a shape (by a JSON schema, a grammar, log-probabilities of labels, a vendor's own endpoint) and reads it. What all
providers share stands here: the JSON schema of a shape, and the reading of a JSON value.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, ClassVar

from uql.operators.texts import SHORT, short
from uql.operators.types import json_schema, parse_type, read as read_value

NONE = "none of these"  # the label that says no label fits
DEEPEST = 100  # levels of a JSON value that are read
# what an answer may be, beside lists and objects of them
SCALAR = bool | int | float | str | bytes | Decimal | date | time | timedelta
ONE_WORD = 24  # tokens of a reply that is one word, at most, in JSON


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a question has no answer, in the words of `Failure.kind`."""

    kind: str
    message: str
    raw: str = ""


@dataclass(slots=True)
class Answer:
    """The answer to one question about one row.

    `value` is None where the row does not say. `probability` is P(yes) of a YesNo, else that of the value; NaN where unknown.
    `distribution` is over the labels of a OneOf (and "none of these", last) or the levels of a Level.
    """

    value: Any = None
    probability: float = float("nan")
    distribution: tuple[float, ...] | None = None
    problem: Problem | None = None
    # input, output tokens, USD of its call
    paid: tuple[int, int, float | None] | None = field(default=None, compare=False)

    def at_cost(self, paid: tuple[int, int, float | None]) -> Answer:
        """The same, paid for by a call of this cost."""
        return Answer(self.value, self.probability, self.distribution, self.problem, paid)


@dataclass(frozen=True, slots=True)
class YesNo:
    """Yes or no. Answered by a bool and the probability of yes."""

    tokens: ClassVar[int] = ONE_WORD  # that the value may have in JSON, at most

    def holds(self, value: Any) -> bool:
        """May an answer have this value, not counting NULL?"""
        return isinstance(value, bool)

    def json_schema(self) -> dict[str, Any]:
        return {"type": "boolean"}

    def read(self, value: Any) -> Answer:
        """The answer in a JSON value; a problem where it is of another shape."""
        if isinstance(value, bool):
            return Answer(value)
        if isinstance(value, str) and value.strip().lower().rstrip(".") in ("yes", "no", "true", "false"):
            return Answer(value.strip().lower()[0] in "yt")
        return _wrong("true or false was wanted", value)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of the labels, or, of `many`, a list of them. Answered by labels.

    `letters` are shown in the labels' place where the prompt gives each label one: a reply is then one token.
    """

    labels: tuple[str, ...] = ()
    none_of_these: bool = False
    many: bool = False
    letters: tuple[str, ...] = ()

    @property
    def options(self) -> list[str]:
        """The labels, each once, "none of these" last where it is allowed."""
        return list(dict.fromkeys((*self.labels, *([NONE] if self.none_of_these else []))))

    @property
    def option_texts(self) -> dict[str, str]:
        """Each option as models see it. Not to be changed by the caller."""
        return dict(zip(self.labels, self.letters, strict=True)) if self.letters else _lines(self)

    @property
    def tokens(self) -> int:
        """Tokens that the value may have in JSON, at most."""
        if self.letters:
            return ONE_WORD
        if self.many:
            return 20 + sum(len(label) // 2 + 4 for label in self.labels)
        return 20 + max((len(label) // 2 for label in self.options), default=8)

    def holds(self, value: Any) -> bool:
        """May an answer have this value, not counting NULL? Labels are told apart where they are read."""
        labels = value if self.many and isinstance(value, list) else [value]
        return all(isinstance(label, str) for label in labels)

    def offers(self, value: str | list[str]) -> bool:
        """Is it an option, or a list of options?"""
        return set(value if isinstance(value, list) else [value]) <= set(self.options)

    def json_schema(self) -> dict[str, Any]:
        if self.many:
            lines = [self.option_texts[label] for label in self.labels]
            return {"type": "array", "items": {"type": "string", "enum": lines}}
        return {"type": "string", "enum": list(self.option_texts.values())}

    def find(self, value: Any) -> str | None:
        """The option that a reply names, as it was shown or as it is, but for case, spaces, quotes and a last dot."""
        if not isinstance(value, str):
            return None
        bare = value.strip().casefold()
        by_line = {line.casefold(): option for option, line in self.option_texts.items()}
        by_name = {} if self.letters else {option.casefold(): option for option in reversed(self.options)}
        for words in (bare, bare.strip("\"'").rstrip(".")):  # as it is first: a label may end with a dot
            for names in (by_line, by_name):
                if words in names:
                    return names[words]
        return None

    def read(self, value: Any) -> Answer:
        """The answer in a JSON value; a problem where it names none of the labels."""
        if self.many:
            labels = [self.find(item) for item in value] if isinstance(value, list) else [None]
            if all(label in self.labels for label in labels):
                return Answer(list(dict.fromkeys(labels)))
        elif (label := self.find(value)) is not None:
            return Answer(label)
        if self.letters:
            return _wrong(f"{' or '.join(self.letters)} was wanted", value)
        return _wrong(f"one of the labels ({', '.join(list(self.option_texts.values())[:20])}) was wanted", value)


@lru_cache(maxsize=256)
def _lines(reply: OneOf) -> dict[str, str]:
    """Each option as models see it, in a menu as in a schema: one short line without double quotes, no two the same."""
    lines: dict[str, str] = {}
    in_use: set[str] = set()
    for option in reply.options:
        line = plain = short(option).replace('"', "'") or "(empty)"
        n = 1
        while line.casefold() in in_use:
            n += 1
            line = f"{plain[: SHORT - 6]} ({n})"
        in_use.add(line.casefold())
        lines[option] = line
    return lines


@dataclass(frozen=True, slots=True)
class Level:
    """A level from 0 to levels − 1. Answered by the expected level, a float."""

    levels: int = 10
    tokens: ClassVar[int] = ONE_WORD  # that the value may have in JSON, at most

    def holds(self, value: Any) -> bool:
        """May an answer have this value, not counting NULL?"""
        return isinstance(value, int | float) and 0 <= value <= self.levels - 1

    def json_schema(self) -> dict[str, Any]:
        return {"type": "integer", "enum": list(range(self.levels))} if self.levels <= 20 else {"type": "integer"}

    def read(self, value: Any) -> Answer:
        """The answer in a JSON value; a problem where it is not a level."""
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
        if isinstance(value, str) and value.strip().isdecimal():
            number = float(value)
        if number is None or not 0 <= number <= self.levels - 1:
            return _wrong(f"a level from 0 to {self.levels - 1} was wanted", value)
        return Answer(float(number))


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a DuckDB type, or None where the row does not say."""

    type: str = "VARCHAR"
    tokens: ClassVar[int] = 400  # that the value may have in JSON, at most

    def holds(self, value: Any) -> bool:
        """May an answer have this value? DuckDB casts it to the type, and what it cannot cast is a failure of the row."""
        return isinstance(value, SCALAR | list | tuple | dict)

    def json_schema(self) -> dict[str, Any]:
        kind = parse_type(self.type)
        # the fields of a struct may be null: one of nulls alone is read as NULL
        return json_schema(kind, nullable=kind.kind != "struct")

    def read(self, value: Any) -> Answer:
        """The answer in a JSON value; a problem where it is not of the type."""
        try:
            return Answer(read_value(value, parse_type(self.type)))
        except (ValueError, ArithmeticError) as error:
            return Answer(problem=Problem("wrong_type", str(error) or "the number is out of range", str(value)))


@dataclass(frozen=True, slots=True)
class Text:
    """A text, or JSON of a schema. It is always alone in its request. Answered by a str, or by the parsed JSON value.

    `schema` is JSON text; `grammar` is one of llama.cpp, that a model in this process holds its reply to. Above `temperature` 0
    the text is drawn by chance, by `seed`.
    """

    schema: str | None = None
    max_tokens: int = 512
    grammar: str = ""
    temperature: float = 0.0
    seed: int = 0
    BOOLEAN: ClassVar[str] = json.dumps({"type": "boolean"})  # the schema of a yes or no

    @property
    def tokens(self) -> int:
        """Tokens that the reply may have, at most."""
        return self.max_tokens

    def holds(self, value: Any) -> bool:
        """May an answer have this value?"""
        return self.schema is not None or isinstance(value, str)

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string"} if self.schema is None else json.loads(self.schema)

    def read(self, value: Any) -> Answer:
        """The text, or the JSON value where there is a schema; of an object also where words or a code fence stand around it."""
        if not isinstance(value, str):
            return Answer(value if self.schema is not None else str(value))
        text = value.strip()
        if not text:
            return Answer(problem=Problem("empty", "the reply was empty"))
        if self.schema is None:
            return Answer(text)
        try:
            return Answer(json_value(text))
        except ValueError as error:
            json_object = parsed(text)
            return Answer(json_object) if json_object is not None else Answer(problem=not_json(text, error))


Shape = YesNo | OneOf | Level | Value | Text
ROUNDING = 1e-6  # of probabilities, beyond [0, 1]


def fitting(answer: Answer, shape: Shape) -> Answer:
    """An answer as a provider gives it; a problem where no reply of this shape has such a value, without shares that are none.

    >>> fitting(Answer("perhaps", 2.0), YesNo()).problem.kind, fitting(Answer(True, 2.0), YesNo())
    ('wrong_type', Answer(value=True, probability=nan, distribution=None, problem=None, paid=None))
    """
    value, shares = answer.value, answer.distribution
    if answer.problem is not None:
        return answer
    if value is not None:
        holds = shape.holds(value)
        if holds and isinstance(shape, OneOf) and shape.options and not shape.offers(value):
            holds = shape.none_of_these and isinstance(value, str)
            value = NONE if holds else value  # whatever else it is
        if not holds:
            return _wrong("an answer of another kind was wanted", value)
    if isinstance(value, str):
        value = well_formed(value)
    unknown = answer.probability != answer.probability
    probability = answer.probability if unknown or is_share(answer.probability) else float("nan")
    if shares is not None and not all(map(is_share, shares)):
        shares = None
    same = value is answer.value and probability is answer.probability and shares is answer.distribution
    return answer if same else Answer(value, probability, shares, paid=answer.paid)


def is_share(value: Any) -> bool:
    """Is it a number in [0, 1], but for rounding?"""
    return isinstance(value, int | float) and -ROUNDING <= value <= 1 + ROUNDING


def json_value(text: str) -> Any:
    """The value of a JSON text that a model wrote. Raises ValueError where it is not JSON, or nests deeper than DEEPEST.

    >>> json_value("[1, null]")
    [1, None]
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deep") from None
    if text.count("[") + text.count("{") > DEEPEST:
        inner = [value]
        for _ in range(DEEPEST):
            inner = [
                item for node in inner if isinstance(node, list | dict)
                for item in (node.values() if isinstance(node, dict) else node)
            ]  # fmt: skip
        if inner:
            raise ValueError("it nests too deep")
    if "\\ud" in text.lower():
        value = json.loads(well_formed(json.dumps(value, ensure_ascii=False)))
    return value


def not_json(text: str, error: Exception) -> Problem:
    """What is wrong with a reply that should be JSON: it was cut, or it is other words, as those of a model that declines.

    >>> not_json('{"a": [1, ', ValueError()).kind, not_json("{'a': 1}", ValueError()).kind, not_json("I cannot.", ValueError()).kind
    ('truncated', 'wrong_type', 'wrong_type')
    """
    if ("{" in text or "[" in text) and not text.rstrip("` \n").endswith(("}", "]")):
        return Problem("truncated", f"the reply is not JSON: {error}", text)
    return Problem("wrong_type", f"the reply is not JSON ({error}): {short(text)!r}", text)


def well_formed(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair that stands alone: no file and no column can hold one."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def parsed(reply: str) -> dict[str, Any] | None:
    """The JSON object of a reply, also where words or a code fence stand around it; None where there is none."""
    text = reply.strip()
    for candidate in (
        text,
        *re.findall(r"```(?:json)?\s*(.*?)```", text, re.DOTALL),
        text[text.find("{") : text.rfind("}") + 1],
    ):
        try:
            value = json_value(candidate)
        except ValueError:
            continue
        if isinstance(value, dict):
            return value
    return None


def _wrong(expected: str, value: Any) -> Answer:
    return Answer(problem=Problem("wrong_type", f"{expected}, not {value!r}", str(value)))
