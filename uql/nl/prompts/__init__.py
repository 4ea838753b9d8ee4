"""The prompts of planning and answering, one file a task. Each has a version, which is part of the ledger's key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wording:
    """One request: the words, the JSON schema of the reply, and the tokens it may have."""

    task: str
    version: str
    system: str
    user: str
    schema: Schema | None = None
    max_tokens: int = 512


def obj(properties: Mapping[str, Schema], *, required: Sequence[str] | None = None) -> Schema:
    """The schema of an object of these properties, in this order, all required unless said otherwise."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties) if required is None else list(required),
        "additionalProperties": False,
    }


def text(most: int = 300) -> Schema:
    return {"type": "string", "maxLength": most}


def one_of(values: Sequence[str]) -> Schema:
    return {"type": "string", "enum": list(values)}


def array(items: Schema, most: int, least: int = 0) -> Schema:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


BOOLEAN: Schema = {"type": "boolean"}


def rules_text(rules: Sequence[str]) -> str:
    """The rules of the use case as a prompt shows them; "" without any."""
    return "Rules of this use case:\n" + "\n".join(f"- {rule}" for rule in rules) + "\n\n" if rules else ""
