"""Servers on 127.0.0.1 that speak a vendor's protocol, and check what a real one would refuse."""

from __future__ import annotations

import asyncio
import json
import math
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

Handler = Callable[[dict[str, Any], dict[str, str]], Any]


class Server:
    """What a loopback server was sent: bodies and headers, in order."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []


@contextmanager
def serve(routes: dict[str, Handler], latency_s: float = 0.0) -> Iterator[Server]:
    """A server whose handlers get body and headers, and give a dict (200), a Response, or (status, dict)."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    told = Server(f"http://127.0.0.1:{port}")

    def endpoint(handler: Handler) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            raw = await request.body()
            form = re.search(r"boundary=(\S+)", request.headers.get("content-type", ""))
            body = form_fields(raw, form[1]) if form else json.loads(raw) if raw else {}
            told.bodies.append(body)
            told.headers.append(dict(request.headers))
            if latency_s:
                await asyncio.sleep(latency_s)
            made = handler(body, dict(request.headers))
            if isinstance(made, Response):
                return made
            status, held = made if isinstance(made, tuple) else (200, made)
            return JSONResponse(held, status_code=status)

        return answer

    app = Starlette(routes=[Route(path, endpoint(h), methods=["GET", "POST"]) for path, h in routes.items()])
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        threading.Event().wait(0.005)
    try:
        yield told
    finally:
        server.should_exit = True
        thread.join(5)


def form_fields(raw: bytes, boundary: str) -> dict[str, Any]:
    """The plain fields of a form, and the text of its file."""
    found: dict[str, Any] = {"fields": {}}
    for part in raw.decode().split(f"--{boundary}")[1:-1]:
        head, _, value = part.strip("\r\n").partition("\r\n\r\n")
        name = re.search(r' name="(\w+)"', head)
        assert name is not None
        if "filename=" in head:
            found[name[1]] = value
        else:
            found["fields"][name[1]] = value
    return found


def row_text(user: str) -> str:
    """The row between the delimiters of a user's message."""
    found = re.search(r"<(\w{4}|data-\w{8})>\n(.*?)\n</\1>", user, re.DOTALL)
    return found.group(2) if found else user


def value_for(schema: dict[str, Any], text: str) -> Any:
    """A value that fits a schema and depends on the row: what a well-behaved model says."""
    n = len(text)
    if "enum" in schema:
        return [v for v in schema["enum"] if v is not None][n % len([v for v in schema["enum"] if v is not None])]
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    match kinds[0]:
        case "boolean":
            return n % 2 == 0
        case "integer":
            return n
        case "number":
            return n / 2
        case "array":
            return [value_for(schema["items"], text)]
        case "object":
            return {key: value_for(inner, text) for key, inner in schema["properties"].items()}
    return f"text of {n}"


def plain(system: str, text: str) -> str:
    """A reply without a schema: the word that is asked for, else a text."""
    if "true/false" in system and "JSON" not in system:
        return "true" if len(text) % 2 == 0 else "false"
    return f"a text about {len(text)}"


BOUNDS = {"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"}


def strict(schema: dict[str, Any], root: bool = True) -> bool:
    """As strict mode wants it: an object at the root, every object closed, every property required, no bounds."""
    if (root and schema.get("type") != "object") or BOUNDS & set(schema):
        return False
    if schema.get("type") in ("object", ["object", "null"]):
        closed = schema.get("additionalProperties") is False and sorted(schema.get("required", [])) == sorted(
            schema["properties"]
        )
        return closed and all(strict(inner, root=False) for inner in schema["properties"].values())
    return strict(schema["items"], root=False) if "items" in schema else True


def chat_reply(content: str, *, tokens: bool, finish: str = "stop", used: tuple[int, int] = (30, 5)) -> dict[str, Any]:
    """A chat completion; with log-probabilities of 0.9 on each token said."""
    logprobs = None
    if tokens:
        pieces = re.findall(r"\s*\w+|\W", content)
        steps = []
        for piece in pieces:
            other = {"true": "false", "false": "true"}.get(piece.strip(), "x")
            tops = [(piece, 0.9), (piece.replace(piece.strip(), other) if piece.strip() else "x", 0.1)]
            steps.append({"token": piece, "logprob": math.log(0.9), "bytes": None,
                          "top_logprobs": [{"token": t, "logprob": math.log(p), "bytes": None} for t, p in tops]})  # fmt: skip
        logprobs = {"content": steps, "refusal": None}
    message = {"role": "assistant", "content": content, "refusal": None}
    return {
        "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": logprobs}],
        "usage": {"prompt_tokens": used[0], "completion_tokens": used[1], "total_tokens": sum(used)},
    }  # fmt: skip


CHAT_KEYS = {
    "model",
    "messages",
    "temperature",
    "seed",
    "max_tokens",
    "max_completion_tokens",
    "response_format",
    "logprobs",
    "top_logprobs",
}


def chat(body: dict[str, Any], headers: dict[str, str]) -> Any:
    """OpenAI's chat completions: refuses unknown parameters, a missing key, schemas that are not strict."""
    if not headers.get("authorization", "").startswith("Bearer "):
        return 401, {"error": {"message": "no key", "code": "invalid_api_key"}}
    wrong = set(body) - CHAT_KEYS
    if wrong or [m["role"] for m in body["messages"]] != ["system", "user"]:
        return 400, {"error": {"message": f"unknown parameter {wrong}", "type": "invalid_request_error"}}
    user = body["messages"][1]["content"]
    text = row_text(user if isinstance(user, str) else user[0]["text"])
    wanted = body.get("response_format")
    if wanted is None:
        return chat_reply(plain(body["messages"][0]["content"], text), tokens=bool(body.get("logprobs")))
    schema = wanted["json_schema"]
    if (
        wanted["type"] != "json_schema"
        or not schema["strict"]
        or not strict(schema["schema"])
        or not re.fullmatch(r"[\w-]{1,64}", schema["name"])
    ):
        return 400, {"error": {"message": "schema is not strict", "type": "invalid_request_error"}}
    return chat_reply(json.dumps(value_for(schema["schema"], text)), tokens=bool(body.get("logprobs")))


RESPONSE_KEYS = {
    "model",
    "instructions",
    "input",
    "max_output_tokens",
    "store",
    "temperature",
    "text",
    "include",
    "top_logprobs",
    "reasoning",
}


def response_reply(parts: list[dict[str, Any]], status: str = "completed", **more: Any) -> dict[str, Any]:
    """A response that says these parts, after an item of reasoning."""
    output = [{"type": "reasoning", "id": "r", "summary": []}]
    if parts:
        output.append({"type": "message", "id": "m", "role": "assistant", "status": status, "content": parts})
    usage = {
        "input_tokens": 25,
        "output_tokens": 9,
        "total_tokens": 34,
        "output_tokens_details": {"reasoning_tokens": 4},
    }
    return {"id": "resp", "object": "response", "created_at": 1, "model": "m", "status": status, "error": None,
            "incomplete_details": None, "output": output, "usage": usage, **more}  # fmt: skip


def responses(body: dict[str, Any], headers: dict[str, str]) -> Any:
    """OpenAI's responses: refuses unknown parameters, parts of other protocols, schemas that are not strict, tiny caps."""
    if not headers.get("authorization", "").startswith("Bearer "):
        return 401, {"error": {"message": "no key", "code": "invalid_api_key"}}

    def bad(message: str) -> Any:
        return 400, {"error": {"message": message, "type": "invalid_request_error"}}

    wrong = set(body) - RESPONSE_KEYS
    if wrong or body["store"] is not False or body["max_output_tokens"] < 16:
        return bad(f"unknown parameter {wrong}")
    (item,) = body["input"]
    kinds = {part["type"] for part in item["content"]}
    if item["role"] != "user" or not kinds <= {"input_text", "input_image"}:
        return bad(f"input of {kinds}")
    for part in item["content"]:
        if part["type"] == "input_image" and not (part["image_url"].startswith("data:image/") and part["detail"]):
            return bad("an image is a URL with a detail")
    text = row_text(item["content"][0]["text"])
    form = body.get("text", {}).get("format")
    said = plain(body["instructions"], text)
    if form is not None:
        if form["type"] != "json_schema" or not form["strict"] or not form["name"] or not strict(form["schema"]):
            return bad("schema is not strict")
        said = json.dumps(value_for(form["schema"], text))
    told = "message.output_text.logprobs" in body.get("include", ())
    if told != ("top_logprobs" in body):
        return bad("top_logprobs without include")
    steps = chat_reply(said, tokens=True)["choices"][0]["logprobs"]["content"] if told else []
    if "refuse" in text:
        return response_reply([{"type": "refusal", "refusal": "I cannot."}])
    return response_reply([{"type": "output_text", "text": said, "annotations": [], "logprobs": steps}])


def decisions(body: dict[str, Any], headers: dict[str, str]) -> Any:
    """OpenAI's Decisions endpoint; a row that says "refuse" has its first question refused."""
    if set(body) - {"model", "input", "questions"} or not 1 <= len(body["questions"]) <= 400:
        return 400, {"error": {"message": "bad request", "type": "invalid_request_error"}}
    if body["model"] not in ("gpt-6-luna", "gpt-decides"):
        return 400, {"error": {"message": "model not supported", "type": "invalid_request_error"}}
    whole = body["input"][-1]["content"][0]["text"]
    rows = re.findall(r"<(\w{4})(\d+)>\n(.*?)(?=\n(?:</\1>|<\1\d+>\n))", whole, re.DOTALL)
    of = {f"<{mark}{number}>": text for mark, number, text in rows}
    answers: list[dict[str, Any]] = []
    for n, question in enumerate(body["questions"]):
        name = question["name"]
        about = re.match(r"Of row (<\w+>): ", question["instructions"])
        text = of[about.group(1)] if about else row_text(whole)
        if n == 0 and "refuse" in text:
            answers.append({"type": "refusal", "name": name})
        elif question["type"] == "predicate":
            answers.append({"type": "predicate", "name": name, "probability": 0.75 if len(text) % 2 == 0 else 0.25})
        elif question["type"] == "choice":
            values = [c["value"] for c in question["choices"]]
            if not 2 <= len(values) <= 255 or len(set(values)) != len(values):
                return 400, {"error": {"message": "between 2 and 255 choices", "type": "invalid_request_error"}}
            shares = [
                {"value": v, "probability": 0.8 if i == 0 else 0.2 / (len(values) - 1)} for i, v in enumerate(values)
            ]
            answers.append(
                {"type": "choice", "name": name, "choice": values[0], "confidence": 0.8, "probabilities": shares}
            )
        else:
            levels = [
                {"label": lv["label"], "value": i, "probability": 1 / len(question["levels"])}
                for i, lv in enumerate(question["levels"])
            ]
            answers.append({"type": "score", "name": name, "score": 0.5, "confidence": 0.1, "probabilities": levels})
    usage = {"input_tokens": 40, "output_tokens": len(answers), "total_tokens": 40 + len(answers),
             "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
             "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
    return {"answers": answers, "model": body["model"], "usage": usage}


def systemone(body: dict[str, Any], headers: dict[str, str]) -> Any:
    """A decision model; its answers depend on the record alone: on the state, or on what a question's instructions hold of it."""
    if set(body) != {"model", "state", "questions"} or not body["questions"]:
        return 422, {"detail": [{"loc": ["body"], "msg": "bad request", "type": "missing"}]}
    answers: dict[str, Any] = {}
    for name, question in body["questions"].items():
        said = question["instructions"]
        said = said.get("question") if isinstance(said, dict) and isinstance(said.get("question"), dict) else said
        text = str(said["record"] if isinstance(said, dict) and "record" in said else body["state"])
        even = len(text) % 2 == 0
        if question["type"] == "noul":
            answers[name] = {"type": "noul", "noul": 0.75 if even else 0.25}
            continue
        criteria = question["criteria"]
        names = list(criteria) if question["type"] == "choice" else [str(i) for i in range(len(criteria))]
        if not 2 <= len(names) <= (255 if question["type"] == "choice" else 10):
            return 422, {"detail": [{"loc": ["body", "questions", name], "msg": "too many", "type": "too_long"}]}
        at = len(text) % len(names)
        shares = {n: 0.8 if i == at else 0.2 / (len(names) - 1) for i, n in enumerate(names)}
        held: dict[str, Any] = {"type": question["type"], "probabilities": shares, "confidence": 0.7}
        if question["type"] == "choice":
            answers[name] = {**held, "choice": names[at]}
        else:
            score = sum(i * shares[n] for i, n in enumerate(names))
            answers[name] = {**held, "score": score, "legend": dict(zip(names, criteria, strict=True))}
    return {"model": body["model"], "answers": answers, "usage": {"input_tokens": 40, "output_tokens": len(answers)}}


def messages(body: dict[str, Any], headers: dict[str, str]) -> Any:
    """Anthropic's Messages: refuses the parameters that were removed."""
    if not headers.get("authorization", "").startswith("Bearer ") or "anthropic-version" not in headers:
        return 401, {"type": "error", "error": {"type": "authentication_error", "message": "no key"}}
    wrong = set(body) - {"model", "max_tokens", "messages", "system", "output_config"}
    if wrong or body["max_tokens"] < 1:
        return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": f"{wrong}: not permitted"}}
    text = row_text(next(part["text"] for part in body["messages"][0]["content"] if part["type"] == "text"))
    wanted = body.get("output_config", {}).get("format")
    if wanted is not None and not strict(wanted["schema"]):
        return 400, {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "additionalProperties must be false"},
        }
    said = json.dumps(value_for(wanted["schema"], text)) if wanted else plain(body["system"][0]["text"], text)
    stop = "refusal" if "refuse" in text else "end_turn"
    return {"id": "m", "type": "message", "role": "assistant", "model": body["model"], "content": [{"type": "text", "text": said}],
            "stop_reason": stop, "stop_sequence": None,
            "usage": {"input_tokens": 20, "output_tokens": 6, "cache_read_input_tokens": 10}}  # fmt: skip


GENERATE_KEYS = {"temperature", "seed", "maxOutputTokens", "responseMimeType", "responseJsonSchema", "responseLogprobs", "logprobs",
                 "thinkingConfig"}  # fmt: skip


def generate_reply(text: str, *, tokens: bool = False, finish: str = "STOP", **used: int) -> dict[str, Any]:
    """A reply of Gemini's generateContent; with log-probabilities where they are wanted."""
    candidate: dict[str, Any] = {"content": {"parts": [{"text": text}] if text else [], "role": "model"}, "index": 0}
    if tokens:
        steps = chat_reply(text, tokens=True)["choices"][0]["logprobs"]["content"]
        tops = [
            [{"token": t["token"], "logProbability": t["logprob"]} for t in step["top_logprobs"][1:]] for step in steps
        ]
        chosen = [{"token": step["token"], "logProbability": step["logprob"], "tokenId": 1} for step in steps]
        candidate["logprobsResult"] = {
            "chosenCandidates": chosen,
            "topCandidates": [{"candidates": top} for top in tops],
        }
    usage = {"promptTokenCount": 20, "candidatesTokenCount": 6, "totalTokenCount": 26, **used}
    return {"candidates": [{**candidate, "finishReason": finish}], "usageMetadata": usage, "modelVersion": "m"}


def google_error(status: int, message: str, state: str = "INVALID_ARGUMENT", *details: dict[str, Any]) -> Any:
    """An error as Google's APIs state it."""
    return status, {"error": {"code": status, "message": message, "status": state, "details": list(details)}}


def generate(body: dict[str, Any], headers: dict[str, str]) -> Any:
    """Gemini's generateContent: refuses a missing key, unknown parameters, and schemas that are not closed."""
    if "authorization" in headers or not headers.get("x-goog-api-key"):
        return google_error(401, "Expected OAuth 2 access token", "UNAUTHENTICATED")
    (content,) = body["contents"]
    config = body["generationConfig"]
    wrong = (set(body) - {"contents", "systemInstruction", "generationConfig"}) | (set(config) - GENERATE_KEYS)
    wrong |= {name for part in content["parts"] for name in set(part) - {"text", "inlineData", "videoMetadata"}}
    if wrong or content["role"] != "user" or ("logprobs" in config) != ("responseLogprobs" in config):
        return google_error(400, f"Invalid JSON payload received. Unknown name {wrong}")
    text = row_text(content["parts"][-1]["text"])
    schema = config.get("responseJsonSchema")
    if schema is not None and (config.get("responseMimeType") != "application/json" or not strict(schema)):
        return google_error(400, "response_json_schema is not as it should be")
    said = json.dumps(value_for(schema, text)) if schema else plain(body["systemInstruction"]["parts"][0]["text"], text)
    if "refuse" in text:
        return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 20}}
    return generate_reply(said, tokens="responseLogprobs" in config)
