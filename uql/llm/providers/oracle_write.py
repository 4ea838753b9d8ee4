"""What an oracle writes: a taxonomy from the labels of the rows shown, its example rows, a deterministic summary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uql.llm.questions import NONE, Row, Write
from uql.operators.types import parse_type

ROW = "row"  # the cell that holds a row's number, where a summary is to cite it
_LABEL_TASKS = {"taxonomy"}


def written(
    question: Write,
    labels_of: Callable[[str, Sequence[Row]], list[str]],
    examples: Mapping[str, Mapping[str, Any]],
    attribute_of: Callable[[str], Any],
) -> Any:
    """The reply to a Write, in the shape of its schema; a text where it has none.

    Args:
        labels_of: the labels of rows for a question's text.
        examples: example rows by text, those that meet it under "yes", the others under "no".
        attribute_of: the attribute by which the rows of a pair are compared, for a question's text.
    """
    schema = None if question.schema is None else json.loads(question.schema)
    if question.task in _LABEL_TASKS:
        labels = labels_of(question.text, question.shown)
        return "\n".join(labels) if schema is None else shaped(schema, {"": labels})
    if question.task == "examples":
        own_examples = examples.get(question.text, {})
        texts = {side: [str(text) for text in own_examples.get(side, ())] for side in ("yes", "no")}
        return json.dumps(texts) if schema is None else shaped(schema, texts)
    if question.task == "same":  # no two labels of the truth are one
        return [False] * len(question.parameters)
    if question.task == "attribute":
        return attribute_of(question.text)
    if dict(question.parameters).get("type", "").startswith("ENUM"):
        return _label(question, labels_of)
    text = _summary(question)
    return text if schema is None else shaped(schema, {"": [text]})


def _label(question: Write, labels_of: Callable[[str, Sequence[Row]], list[str]]) -> str:
    """The label that most of the rows shown have, or most parts of the group; NONE where that is none of those asked for."""
    if dict(question.parameters)["stage"] == "reduce":
        said = [str(cell.value) for row in question.shown for cell in row.cells]
    else:
        said = [label for row in question.shown for label in labels_of(question.text, [row])]
    options = {label.casefold(): label for label in parse_type(dict(question.parameters)["type"]).labels}
    counts = Counter(options.get(label.casefold(), NONE) for label in said)
    return max([NONE, *options.values()], key=counts.__getitem__)


def _summary(question: Write) -> str:
    """Says how many rows were shown, and begins with the first words of the first in order of their text, citing it."""
    entries = sorted(
        (" ".join(str(c.value) for c in row.cells if c.name != ROW), _number(row)) for row in question.shown
    )
    text, number = entries[0] if entries else ("nothing", "")
    first = " ".join(text.split()[:12])
    return f"{question.text}: {len(question.shown)} rows, the first {first}{f' [{number}]' if number else ''}"


def _number(row: Row) -> str:
    return next((str(c.value) for c in row.cells if c.name == ROW), "")


def shaped(schema: dict[str, Any], values: dict[str, list[str]]) -> Any:
    """A value that fits a JSON schema, its arrays and texts filled with `values`: those of a property's name, else of "".

    >>> shaped({"type": "object", "properties": {"groups": {"type": "array", "items": {"type": "string"}}}}, {"": ["a"]})
    {'groups': ['a']}
    """
    return _fill(schema, "", values)


def _fill(schema: dict[str, Any], name: str, values: dict[str, list[str]]) -> Any:
    texts = values.get(name, values.get("", []))
    kinds = schema.get("type")
    kind = next((k for k in kinds if k != "null"), "null") if isinstance(kinds, list) else kinds
    match kind:
        case "object":
            return {key: _fill(inner, key, values) for key, inner in schema.get("properties", {}).items()}
        case "array":
            items = schema.get("items", {"type": "string"})
            most = schema.get("maxItems", len(texts))
            return [_item(items, text) for text in texts[:most]]
        case "string" | None:
            allowed = schema.get("enum")
            return allowed[0] if allowed else (texts[0] if texts else "")
        case "integer" | "number":
            return 0
        case "boolean":
            return False
    return None


def _item(schema: dict[str, Any], text: str) -> Any:
    """One entry of an array: the text, or an object whose first text property holds it."""
    if schema.get("type") != "object":
        return text
    item: dict[str, Any] = {}
    placed = False
    for key, inner in schema.get("properties", {}).items():
        if not placed and inner.get("type") == "string":
            item[key], placed = text, True
        else:
            item[key] = _fill(inner, key, {"": []})
    return item
