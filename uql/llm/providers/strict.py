"""JSON schemas of writing requests in the form that vendors' strict structured output takes.

Its root is an object, every object is closed with all properties required, and there are no patterns
and no bounds on lengths, counts and numbers: what a reply breaks of those is found where it is read.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from uql.llm.prompts.json_schema import closed
from uql.operators.replies import Answer, Problem, Text, parsed

COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "uniqueItems")
BOUNDS = frozenset((*COUNTS, "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
VALUE = "value"  # the key under which a root stands that is not an object


@lru_cache(maxsize=64)
def schema(text: str) -> dict[str, Any]:
    """The schema of a request's JSON text. Not to be changed by the caller.

    >>> schema('{"type": "array", "items": {"type": "string", "maxLength": 9}}')["properties"]
    {'value': {'type': 'array', 'items': {'type': 'string'}}}
    """
    plain = _plain(json.loads(text))
    if plain.get("type") == "object":
        return dict(plain)
    return closed({VALUE: plain})


def _plain(node: Any) -> Any:
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("properties", "$defs"):
            plain[key] = {name: _plain(part) for name, part in value.items()}
        elif key in ("enum", "const"):
            plain[key] = value
        elif key not in BOUNDS:
            plain[key] = _plain(value)
    if "properties" in plain:
        plain |= {"required": list(plain["properties"]), "additionalProperties": False}
    return plain


def read(reply: str, shape: Text) -> Answer:
    """The answer in a reply to `schema(shape.schema)`."""
    assert shape.schema is not None
    if json.loads(shape.schema).get("type") == "object":
        return shape.read(reply)
    answer = parsed(reply)
    if answer is None or VALUE not in answer:
        return Answer(problem=Problem("truncated", f"a JSON object with the key {VALUE} was wanted", reply))
    return Answer(answer[VALUE])
