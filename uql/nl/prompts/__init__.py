"""The prompts of planning and answering, one file a task. Each has a version, which is part of the ledger's key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from uql.operators.texts import short

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wording:
    """One request: the words, the JSON schema of the reply, a grammar of llama.cpp instead of a schema.

    `task` names the prompt, for traces and scripted replies; `version` is that of the words, where they may change. `max_tokens` 0 leaves
    the size of the reply to the room of the model. A `temperature` above 0 draws the reply by chance, by `seed`,
    from models that take one. `check` says what of a reply that fits the schema is wrong all the same; "": nothing. The rules of the use
    case stand before the words of one that is `ruled`.
    """

    task: str
    version: str
    system: str
    user: str
    schema: Schema | None = None
    max_tokens: int = 0
    grammar: str = ""
    temperature: float = 0.0
    seed: int = 0
    check: Callable[[Any], str] | None = field(default=None, compare=False)
    ruled: bool = False


def text(most: int = 300) -> Schema:
    return {"type": "string", "maxLength": most}


def one_of(values: Sequence[str]) -> Schema:
    return {"type": "string", "enum": list(values)}


def array(items: Schema, most: int, least: int = 0) -> Schema:
    """The schema of a list.

    Args:
        items: the schema of each.
        most, least: items.
    """
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


BOOLEAN: Schema = {"type": "boolean"}
NAME: Schema = {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,24}$"}  # of a node or a column


def rules_text(rules: Sequence[str]) -> str:
    """The rules of the use case as a prompt shows them; "" without any."""
    return "Rules of this use case:\n" + "\n".join(f"- {rule}" for rule in rules) + "\n\n" if rules else ""


_KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def misfit(value: Any, schema: Schema, where: str = "the reply") -> str | None:
    """What of a value does not fit a schema of this module; None: it fits. Bounds are not looked at.

    Args:
        value: read from JSON.
        schema: made by the functions of this module.
        where: the value, in the message.

    >>> from uql.llm.prompts.json_schema import closed
    >>> misfit({"a": 1}, closed({"a": BOOLEAN}))
    'the reply.a is not of the type boolean'
    """
    if "anyOf" in schema:
        faults = [misfit(value, option, where) for option in schema["anyOf"]]
        wrong_kinds = [fault for fault in faults if fault is not None and ".kind is" in fault]
        return None if None in faults else next((fault for fault in faults if fault not in wrong_kinds), faults[0])
    kind = schema.get("type", "string")
    if not any(type(value) is python_type for python_type in _KINDS[kind]):
        return f"{where} is not of the type {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is {short(repr(value))}, none of {', '.join(map(str, schema['enum'][:12]))}"
    if kind == "object":
        for name, part in schema["properties"].items():
            if name not in value:
                return f"{where} has no {name}"
            if (wrong := misfit(value[name], part, f"{where}.{name}")) is not None:
                return wrong
    if kind == "array":
        wrongs = (misfit(item, schema["items"], f"{where}[{i}]") for i, item in enumerate(value))
        return next((wrong for wrong in wrongs if wrong is not None), None)
    return None
