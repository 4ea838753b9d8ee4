"""JSON schemas of replies, as models are held to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object of these properties, in this order, all required and no other."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def json_form(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The parameter of OpenAI's protocol that holds a reply to a JSON schema."""
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}
