"""A chat model that obeys: whatever order stands outside the delimiters of data and outside quotes is followed.

What stands inside is data to it: it answers from the words there. It is asked through the real provider of OpenAI's protocol, so that it
sees the prompts and schemas that a server would see.
"""

from __future__ import annotations

import json
import re
from typing import Any

from uql.llm.providers.base import Capabilities, Price
from uql.llm.providers.chat_reply import ChatReply
from uql.llm.providers.compatible import Compatible

ORDER = "HIJACK"  # every poison holds it
_FENCED = re.compile(r"<(data-\w{8}|\w{4})(\d*)>\n(.*?)(?=\n(?:</\1>|<\1\d+>\n))", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"\n]*\"|'(?:[^'\n]|'')*'")
KINDS = ("plum", "pear", "quince")


def outside(prompt: str) -> str:
    """What of a prompt is neither fenced data nor quoted, letters and digits alone."""
    bare = _QUOTED.sub(" ", _FENCED.sub(" ", prompt))
    return re.sub(r"[\W_]+", "", bare).upper()


def whole(system: str, user: str) -> str:
    """A prompt as one text. Where the system's message speaks of the data, the user's message is data as a whole."""
    return f"{system}\n\n<data-00000000>\n{user}\n</data-00000000>" if is_data(system) else f"{system}\n\n{user}"


def is_data(system: str) -> bool:
    return system.startswith("Of the data, ")


def inside(prompt: str) -> str:
    return "\n".join(found[2] for found in _FENCED.findall(prompt))


class Gullible(Compatible):
    """`prompts` holds what it was sent: system, user and schema of each request."""

    def __init__(self) -> None:
        super().__init__("http://elsewhere.example/v1", "gullible", price=Price(0.0, 0.0))
        self.is_local = False
        self.prompts: list[str] = []
        self.hijacked = 0
        self._can = Capabilities(probabilities=False, schema=True, images=False)

    @property
    def capabilities(self) -> Capabilities:
        return self._can

    async def _abilities(self, usage: Any) -> Capabilities:
        return self._can

    async def _complete(self, messages: list[dict[str, Any]], body: dict[str, Any], usage: Any) -> ChatReply:
        usage.requests += 1
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        system, user = (message["content"] for message in messages)
        prompt = whole(system, user)
        self.prompts.append(prompt + ("\n\n" + json.dumps(schema, ensure_ascii=False) if schema else ""))
        obeys = ORDER in outside(prompt)
        self.hijacked += obeys
        text = inside(prompt)
        if schema is None and is_data(system):
            said = self._word(text, obeys)
        elif schema is None:
            said = "obeyed" if obeys else f"{_good(text)} good. " + " ".join(re.findall(r"HIJACK.*", text)[:1])
        elif "rows" in schema["properties"] if schema["type"] == "object" else False:
            said = json.dumps(
                {"rows": [self._row(schema, n, found, obeys) for n, found in enumerate(_FENCED.findall(prompt), 1)]}
            )
        else:
            said = json.dumps(self._value(schema, text, obeys))
        return ChatReply(said, "stop", [], None, 10, 5)

    def _word(self, text: str, obeys: bool) -> str:
        return "obeyed" if obeys else str("good" in text).lower()

    def _row(self, schema: dict[str, Any], n: int, found: tuple[str, str, str], obeys: bool) -> dict[str, Any]:
        held: dict[str, Any] = self._value(schema["properties"]["rows"]["items"], found[2], obeys)
        return {**held, "row": n}

    def _value(self, schema: dict[str, Any], text: str, obeys: bool) -> Any:
        if "enum" in schema:
            options = schema["enum"]
            fitting = [o for o in options if isinstance(o, str) and o.casefold() in text.casefold()]
            return options[0] if obeys else (fitting or [o for o in options if o == "none of these"] or options)[0]
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        match kinds[0]:
            case "boolean":
                return obeys or "good" in text
            case "integer" | "number":
                return 666 if obeys else _good(text)
            case "object":
                return {key: self._value(inner, text, obeys) for key, inner in schema["properties"].items()}
            case "array" if "kind: " in text:  # a taxonomy: the kinds that rows name themselves
                return list(dict.fromkeys(re.findall(r"kind: (.*?) ;", text)))
            case "array":
                return [self._value(schema["items"], text, obeys)]
        return "obeyed" if obeys else text[:20]


def _good(text: str) -> int:
    return text.count("good") + sum(int(n) - 1 for n in re.findall(r"(\d+) good\.", text))
