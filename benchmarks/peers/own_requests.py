"""What this engine asks an endpoint of OpenAI's protocol: a word, or a JSON object to a schema. The answers come from an oracle.

A word is asked for by a system prompt that begins with "Of the data" (`uql.llm.prompts.fused`), and is one of the forms of `replies.py`.
An object has a key for each question about a row, an attribute that decides a condition on pairs, or example rows. A server is first tried
with an object of one key, `ok`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

TRIAL = "ok"
_KEY = re.compile(r"^(q\d+): ", re.MULTILINE)


def properties_of(body: Mapping[str, Any]) -> dict[str, Any] | None:
    """The properties of the object that a request wants; None where it wants none."""
    form = body.get("response_format")
    named = form.get("json_schema") if isinstance(form, dict) else None
    schema = named.get("schema") if isinstance(named, dict) else None
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else None


def is_trial(properties: Mapping[str, Any]) -> bool:
    """Is it the request that tries what a server can do?"""
    return set(properties) == {TRIAL}


def instructions(prompt: str) -> dict[str, str]:
    """What is asked under each key of the object.

    >>> instructions("Answer as JSON with keys q1, q2.\\nq1: true/false: it is so\\nq2: Which is the kind?")
    {'q1': 'true/false: it is so\\n', 'q2': 'Which is the kind?'}
    """
    parts = _KEY.split(prompt)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def as_property(value: Any, schema: Mapping[str, Any]) -> Any:
    """A value as a property of the object takes it: of several labels the one that it names, in the quotes that they stand in.

    >>> as_property("positive", {"type": "string", "enum": ["'positive'", "'negative'"]}), as_property(3.0, {"type": "integer"})
    ("'positive'", 3)
    """
    kinds = schema.get("type")
    if "integer" in (kinds if isinstance(kinds, list) else [kinds]) and value is not None:
        return int(value)
    labels = [label for label in schema.get("enum", ()) if isinstance(label, str)]
    if not labels:
        return value
    name = str(value).casefold()
    return next((label for label in labels if label.strip("\"'").casefold() == name), labels[-1])
