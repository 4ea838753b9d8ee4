"""Answers as JSON text, or as columns of the ledger, and back: types are kept."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from uql.llm.providers.base import Answer
from uql.operators.replies import is_share

Column = str | bytes | int | float | None
COLUMNS = 5  # of `to_row`
TEXT_OF: dict[bool | None, str] = {True: "true", False: "false", None: "null"}  # what needs no JSON
PLAIN: dict[Column, bool | None] = {form: value for value, text in TEXT_OF.items() for form in (text, text.encode())}
_TAGS = ("$date", "$datetime", "$time", "$interval", "$decimal", "$bytes", "$float", "$dict")


def _pack(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"$float": repr(value)}
        case datetime():
            return {"$datetime": value.isoformat()}
        case date():
            return {"$date": value.isoformat()}
        case time():
            return {"$time": value.isoformat()}
        case timedelta():
            return {"$interval": [value.days, value.seconds, value.microseconds]}
        case Decimal():
            return {"$decimal": str(value)}
        case bytes():
            return {"$bytes": base64.b64encode(value).decode()}
        case list() | tuple():
            return [_pack(item) for item in value]
        case dict():
            packed = {str(key): _pack(item) for key, item in value.items()}
            return {"$dict": packed} if any(tag in packed for tag in _TAGS) else packed
    raise TypeError(f"an answer of type {type(value).__name__} cannot be kept")


def _unpack(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpack(item) for item in value]
    if isinstance(value, str):
        value.encode()  # fails for half a surrogate pair
        return value
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((tag, content),) = value.items()
        match tag:
            case "$date":
                return date.fromisoformat(content)
            case "$datetime":
                return datetime.fromisoformat(content)
            case "$time":
                return time.fromisoformat(content)
            case "$interval":
                return timedelta(*content)
            case "$decimal":
                return Decimal(content)
            case "$bytes":
                return base64.b64decode(content)
            case "$float":
                return float(content)
            case "$dict":
                return {_unpack(key): _unpack(item) for key, item in content.items()}
    return {_unpack(key): _unpack(item) for key, item in value.items()}


def dumps(answer: Answer) -> str:
    """The value, probability and distribution of an answer that has no problem, and what its call cost."""
    record: dict[str, Any] = {"v": _pack(answer.value)}
    if not math.isnan(answer.probability):
        record["p"] = answer.probability
    if answer.distribution is not None:
        record["d"] = answer.distribution
    if answer.paid is not None:
        record["c"] = answer.paid
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def to_row(answer: Answer) -> tuple[Column, ...]:
    """An answer that has no problem as text, probability, input tokens, output tokens and USD.

    The text is true, false or null, or what `dumps` makes of value and distribution: a damaged one is not taken for another value.

    >>> to_row(Answer(True, 0.5, paid=(50, 1, 0.01)))
    ('true', 0.5, 50, 1, 0.01)
    """
    if isinstance(answer.value, bool | None) and answer.distribution is None:
        text = TEXT_OF[answer.value]
    else:
        text = dumps(replace(answer, probability=math.nan, paid=None))
    probability = None if math.isnan(answer.probability) else answer.probability
    return (text, probability, *(answer.paid or (None, None, None)))


def loads(
    text: Column,
    probability: Column = None,
    input_tokens: Column = None,
    output_tokens: Column = None,
    usd: Column = None,
) -> Answer:
    """The answer in a text of `dumps`, or in the columns of `to_row`.

    Args:
        text: of `dumps`, or the first column of `to_row`.
        probability: the next column, in [0, 1].
        input_tokens: and what was paid: three columns, NULL where nothing is written of it.
        output_tokens: see there.
        usd: see there.
    Raises: ValueError where it is damaged.
    """
    try:
        sure = math.nan if probability is None else _probability(probability)
        paid = None if input_tokens is None else _paid(input_tokens, output_tokens, usd)
        if text in PLAIN:
            return Answer(PLAIN[text], sure, None, None, paid)
        record = json.loads(text if isinstance(text, str) else bytes(text).decode())  # type: ignore[arg-type]
        distribution, cost = record.get("d"), record.get("c")
        return Answer(
            value=_unpack(record["v"]),
            probability=_probability(record["p"]) if "p" in record else sure,
            distribution=None if distribution is None else tuple(map(_probability, distribution)),
            paid=paid if cost is None else _paid(*cost),
        )
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"the answer cannot be read: {type(error).__name__}") from error


def _number(value: Any) -> float:
    if not isinstance(value, float | int) or not math.isfinite(value):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def _probability(value: Any) -> float:
    if not is_share(value):  # NaN and infinity are not in the range either
        raise ValueError(f"{value!r} is not a probability")
    return float(value)


@lru_cache(maxsize=4096, typed=True)  # many calls cost the same
def _paid(input_tokens: Any, output_tokens: Any, usd: Any) -> tuple[int, int, float | None]:
    if not (isinstance(input_tokens, int) and isinstance(output_tokens, int)):
        raise TypeError(f"{input_tokens!r} and {output_tokens!r} are not numbers of tokens")
    cost_usd = None if usd is None else _number(usd)
    if min(input_tokens, output_tokens, cost_usd or 0) < 0:
        raise ValueError("a call cost less than nothing")
    return input_tokens, output_tokens, cost_usd


def readable(rows: Iterable[tuple[Any, ...]]) -> tuple[dict[bytes, Answer], list[bytes]]:
    """Answers by key, and the keys of the rows that are damaged. Equal ones are one object, but for lists and dicts.

    Args:
        rows: key, the arguments of `loads`, and whatever else.
    """
    answers: dict[bytes, Answer] = {}
    damaged: list[bytes] = []
    read: dict[tuple[Any, ...], Answer] = {}
    for row in rows:
        stored = row[1 : 1 + COLUMNS]
        answer = read.get(stored)
        if answer is None:
            try:
                answer = loads(*stored)
            except ValueError:
                damaged.append(row[0])
                continue
            if not isinstance(answer.value, list | dict):
                read[stored] = answer
        answers[row[0]] = answer
    return answers, damaged
