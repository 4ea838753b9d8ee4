"""The tokens of a quote beside those of the requests that are then sent, counted by a server at four bytes a token."""

from __future__ import annotations

import json
from typing import Any

import pytest

import uql
from tests.llm.loopback import serve

CHAT = 11  # tokens around two messages
QUESTIONS = {
    "a condition": """SELECT COUNT(*) FROM notes WHERE "the note is a complaint" """,
    "labels": """SELECT "the topic"::ENUM('cards', 'transfers', 'other') AS topic FROM notes""",
    "a value": """SELECT "the name of the currency" AS currency FROM notes""",
    "a number": """SELECT "the amount"::DOUBLE AS amount FROM notes""",
    "two at once": """SELECT "the amount"::DOUBLE AS amount, "the name of the currency" AS currency FROM notes""",
}


def filled(schema: dict[str, Any]) -> Any:
    """A value that the schema takes."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            return {name: filled(of) for name, of in schema["properties"].items()}
        case "array":
            item = schema["items"]
            return [filled(item) | {"row": n} for n in range(1, 9)]
        case "boolean":
            return True
        case "number" | "integer":
            return 3
    return "euro"


@pytest.mark.thorough
@pytest.mark.parametrize("rows", [1, 8])
@pytest.mark.parametrize("kind", QUESTIONS)
def test_the_input_tokens_of_a_quote_are_those_that_the_requests_have(kind: str, rows: int) -> None:
    sent = 0

    def chat(body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        nonlocal sent
        form = body.get("response_format")
        schema = form["json_schema"]["schema"] if form else None
        words = "".join(message["content"] for message in body["messages"])
        tokens = CHAT + len((words + (json.dumps(schema) if schema else "")).encode()) // 4
        sent += tokens
        message = {"role": "assistant", "content": json.dumps(filled(schema)) if schema else "true"}
        return {
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": tokens, "completion_tokens": 5},
        }

    with serve({"/v1/chat/completions": chat}) as server:
        from uql.llm.providers.openai_api import OpenAI

        model = OpenAI("m", api_key="k", url=f"{server.url}/v1", api="chat")
        with uql.connect(model=model, ledger=":memory:", progress=False) as con:
            con.sql("SELECT i AS id, 'note number ' || i || ' of a customer' AS text FROM range(64) t(i)").create(
                "notes"
            )
            result = con.uql(f"{QUESTIONS[kind]} WITH (exact, rows_per_request = {rows})")
            quote = result.quote()
            result.run()
    assert result.cost.input_tokens == sent
    assert quote.input_tokens.expected == pytest.approx(sent, rel=0.12)
