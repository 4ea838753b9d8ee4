"""Answers as JSON text and back, types kept: what the ledger holds."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from uql.llm.providers.base import Answer

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
                return {key: _unpack(item) for key, item in content.items()}
    return {key: _unpack(item) for key, item in value.items()}


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


def loads(text: str | bytes) -> Answer:
    """The answer in a row of the ledger. Raises ValueError where the row is damaged."""
    try:
        record = json.loads(text if isinstance(text, str) else bytes(text).decode())
        distribution, paid = record.get("d"), record.get("c")
        return Answer(
            value=_unpack(record["v"]),
            probability=float(record.get("p", "nan")),
            distribution=None if distribution is None else tuple(map(float, distribution)),
            paid=None if paid is None else (paid[0], paid[1], paid[2]),
        )
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"the answer cannot be read: {type(error).__name__}") from error


def readable(rows: Iterable[tuple[bytes, bytes]]) -> tuple[dict[bytes, Answer], list[bytes]]:
    """Answers by key, and the keys of the rows that are damaged."""
    answers: dict[bytes, Answer] = {}
    damaged: list[bytes] = []
    for key, text in rows:
        try:
            answers[key] = loads(text)
        except ValueError:
            damaged.append(key)
    return answers, damaged
