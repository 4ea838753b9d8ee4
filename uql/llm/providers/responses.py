"""OpenAI's Responses endpoint: a chat request in its words.

Nothing is stored at the vendor (`store` is false). There is no seed, and no sound can be shown.
"""

from __future__ import annotations

from typing import Any

PATH = "/responses"
LEAST_TOKENS = 16  # that the endpoint lets a reply be limited to


def body(messages: list[dict[str, Any]], chat: dict[str, Any]) -> dict[str, Any]:
    """The body of a request.

    Args:
        messages: one of the system and one of the user, as of chat completions.
        chat: the parameters of a chat completion beside them; `max_tokens` is the cap of the reply, `seed` is left out.

    >>> body([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}], {"max_tokens": 5})["input"]
    [{'role': 'user', 'content': [{'type': 'input_text', 'text': 'Hi'}]}]
    """
    system, user = messages
    content = user["content"] if isinstance(user["content"], list) else [{"type": "text", "text": user["content"]}]
    request: dict[str, Any] = {
        "instructions": system["content"],
        "input": [{"role": "user", "content": [_part(part) for part in content]}],
        "max_output_tokens": max(LEAST_TOKENS, chat["max_tokens"]),
        "store": False,
    }
    if "temperature" in chat:
        request["temperature"] = chat["temperature"]
    if "response_format" in chat:
        request["text"] = {"format": {"type": "json_schema", **chat["response_format"]["json_schema"]}}
    if "logprobs" in chat:
        request |= {"include": ["message.output_text.logprobs"], "top_logprobs": chat["top_logprobs"]}
    if "reasoning_effort" in chat:
        request["reasoning"] = {"effort": chat["reasoning_effort"]}
    return request


def _part(part: dict[str, Any]) -> dict[str, Any]:
    match part["type"]:
        case "image_url":
            return {"type": "input_image", "image_url": part["image_url"]["url"], "detail": "auto"}
    return {"type": "input_text", "text": part["text"]}
