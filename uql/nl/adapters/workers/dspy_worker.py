"""DSPy in an environment of its own: a signature program with ChainOfThought."""

from __future__ import annotations

from typing import Any

CHARS = 12_000  # of the evidence
IMAGES = 16


def answer(order: dict[str, Any]) -> dict[str, Any]:
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
    pictures = [
        dspy.Image(row[column])
        for source in order["sources"]
        for row in source["rows"]
        for column in source["images"]
        if row[column] is not None
    ][:IMAGES]
    image_inputs = {"images": pictures} if pictures else {}
    images = "images: list[dspy.Image], " if pictures else ""
    signature = dspy.Signature(
        f"evidence: str, {images}question: str -> answer: str, found: bool",
        "Answer the question from the evidence alone, as shortly as it can be said. Where it is not there, found is False.",
    )
    prediction = dspy.ChainOfThought(signature)(
        evidence=evidence(order["sources"]), question=order["subquery"], **image_inputs
    )
    if not prediction.found or not str(prediction.answer).strip():
        return {"text": str(prediction.answer), "problem": "not in the evidence"}
    return {"text": str(prediction.answer).strip(), "sources": [source["name"] for source in order["sources"]]}


def evidence(sources: list[dict[str, Any]]) -> str:
    """The rows of every source, as many as fit."""
    share = CHARS // max(1, len(sources))
    parts = []
    for source in sources:
        parts.append(f"{source['name']}: {source['description']}\n" + "\n".join(source["texts"])[:share])
    return "\n\n".join(parts)
