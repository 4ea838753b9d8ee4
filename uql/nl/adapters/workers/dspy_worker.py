"""DSPy in an environment of its own: a signature program with ChainOfThought. One order on stdin, one answer on stdout."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

CHARS = 12_000  # of the evidence


def answered(order: dict[str, Any]) -> dict[str, Any]:
    import dspy  # type: ignore[import-not-found,unused-ignore]

    there = order["endpoint"]
    dspy.configure(
        lm=dspy.LM(
            f"openai/{there['model']}",
            api_base=there["url"],
            api_key=there["token"],
            temperature=0.0,
            max_tokens=600,
            cache=False,
        ),
        adapter=dspy.JSONAdapter(),
    )
    signature = dspy.Signature(
        "evidence: str, question: str -> answer: str, found: bool",
        "Answer the question from the evidence alone, as shortly as it can be said. Where it is not there, found is False.",
    )
    said = dspy.ChainOfThought(signature)(evidence=evidence(order["sources"]), question=order["subquery"])
    if not said.found or not str(said.answer).strip():
        return {"text": str(said.answer), "problem": "not in the evidence"}
    return {"text": str(said.answer).strip(), "sources": [source["name"] for source in order["sources"]]}


def evidence(sources: list[dict[str, Any]]) -> str:
    """The rows of every source, as many as fit."""
    share = CHARS // max(1, len(sources))
    parts = []
    for source in sources:
        lines = [
            json.dumps({k: v for k, v in row.items() if v is not None}, ensure_ascii=False) for row in source["rows"]
        ]
        parts.append(f"{source['name']}: {source['description']}\n" + "\n".join(lines)[:share])
    return "\n\n".join(parts)


def main() -> None:
    order = json.loads(sys.stdin.readline())
    with contextlib.redirect_stdout(sys.stderr):  # what the library prints is not an answer
        reply = answered(order)
    print(json.dumps(reply, default=str), flush=True)


if __name__ == "__main__":
    main()
