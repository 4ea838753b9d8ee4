"""The forms in which other engines want an answer, told by words of their prompts, and the answers in them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_LABELLED = re.compile(r"(?:^|\n)\s*([LR]\d+):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Form:
    """A form of reply: words of the prompt that ask for it, and how an answer is written."""

    name: str
    asked_by: re.Pattern[str]
    written: Callable[[Any, str], str]
    yes_no: bool


def _lotus(value: Any, prompt: str) -> str:
    return f"Answer: {bool(value)}"


def _digit(value: Any, prompt: str) -> str:
    return "1" if value else "0"


def _truth(value: Any, prompt: str) -> str:
    """For Palimpzest: reasoning may stand first, the answer is the last word of the last line."""
    return f"ANSWER: {'TRUE' if value else 'FALSE'}\n---"


_FIELD = re.compile(r"OUTPUT FIELDS:\s*\n\s*-\s*([A-Za-z_]\w*)")


def _fields(value: Any, prompt: str) -> str:
    """For Palimpzest: a JSON object of the fields wanted."""
    names = _FIELD.findall(prompt)
    name = names[-1] if names else "answer"
    return f"ANSWER:\n{json.dumps({name: value})}\n---"


def _value(value: Any, prompt: str) -> str:
    return "" if value is None else str(value)


def _word(value: Any, prompt: str) -> str:
    return "true" if value else "false"


PAIRS = "pairs"
FORMS = (
    Form("word", re.compile(r"\AOf the data, true/false:"), _word, True),
    Form(PAIRS, re.compile(r"Write only the IDs of matching pairs"), _value, True),
    Form("digit", re.compile(r"Answer with 1 for yes, 0 for no"), _digit, True),
    Form("lotus", re.compile(r"answer should be either True or False"), _lotus, True),
    Form("truth", re.compile(r"answer must be TRUE or FALSE"), _truth, True),
    Form("fields", re.compile(r"OUTPUT FIELDS:"), _fields, False),
    Form("value", re.compile(r""), _value, False),
)


def form_of(prompt: str) -> Form:
    """The first form that the prompt asks for; a bare value where it asks for none.

    >>> form_of("Does it hold? Answer with 1 for yes, 0 for no.").name
    'digit'
    """
    return next(form for form in FORMS if form.asked_by.search(prompt))


def labelled(prompt: str) -> list[tuple[str, str]]:
    """(label, text) of items that a prompt lists as L0, L1, …, R0, …

    >>> labelled("L0:\\na\\nR0:\\nb")
    [('L0', 'a'), ('R0', 'b')]
    """
    parts = _LABELLED.split(prompt)
    return [(label, text.strip()) for label, text in zip(parts[1::2], parts[2::2], strict=True)]
