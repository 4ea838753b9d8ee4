"""A chat model that obeys whatever it reads, inside the delimiters too: the worst that a row can make of a model.

What a hostile row orders happens in what the model says of that row, and in whatever else of the reply the row can reach: it may claim
the numbers of other rows, name its own twice, leave it out, answer in another type, or add keys. The answers to the other rows are what
the model would say without it.
"""

from __future__ import annotations

from typing import Any

from gullible import ORDER, Gullible

LIES: tuple[Any, ...] = (True, "obeyed", 666, None, [], {"a": {}}, "x" * 3000, -1, [[["no"]]], "none of these")


class Obedient(Gullible):
    """`obeyed` counts the rows that gave an order."""

    def __init__(self) -> None:
        super().__init__()
        self.obeyed = 0

    def _value(self, schema: dict[str, Any], text: str, obeys: bool) -> Any:
        said = super()._value(schema, text, obeys)
        if ORDER not in text or not isinstance(said, dict) or "rows" in said:
            return said
        self.obeyed += 1
        lie = LIES[self.obeyed % len(LIES)]
        return {**dict.fromkeys(said, lie), "q9": True, "type": "BOOLEAN"} if self.obeyed % 3 else {"obeyed": lie}

    def _word(self, text: str, obeys: bool) -> str:
        if ORDER not in text:
            return super()._word(text, obeys)
        self.obeyed += 1
        return str(LIES[self.obeyed % len(LIES)])

    def _row(self, schema: dict[str, Any], n: int, found: tuple[str, str, str], obeys: bool) -> dict[str, Any]:
        held = super()._row(schema, n, found, obeys)
        if ORDER in found[2]:
            held["row"] = [n, 1, str(n), n + 1, -1, True, 10**9, f"{n} HIJACK"][self.obeyed % 8]
        return held
