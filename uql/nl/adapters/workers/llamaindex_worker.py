"""LlamaIndex in an environment of its own: the rows as documents, the nearest retrieved, an answer from them. A baseline.

One order on stdin, one answer on stdout. Model and embedder are those of the gate's endpoint.
"""

from __future__ import annotations

import contextlib
import json
import sys
import urllib.request
from typing import Any

NEAREST = 8


def post(there: dict[str, str], path: str, body: dict[str, Any]) -> dict[str, Any]:
    """One request to the gate's endpoint. Raises urllib.error.HTTPError where it is refused.

    Args:
        there: the `url` and `token` of the endpoint.
        path: of the endpoint.
        body: sent as JSON.
    """
    request = urllib.request.Request(
        f"{there['url']}/{path}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {there['token']}"},
    )
    with urllib.request.urlopen(request, timeout=150) as reply:
        made: dict[str, Any] = json.load(reply)
    return made


def answered(order: dict[str, Any]) -> dict[str, Any]:
    from llama_index.core import Document, VectorStoreIndex  # type: ignore[import-not-found,unused-ignore]
    from llama_index.core.embeddings import BaseEmbedding  # type: ignore[import-not-found,unused-ignore]
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata  # type: ignore[import-not-found,unused-ignore]

    there = order["endpoint"]

    class Gate(CustomLLM):  # type: ignore[misc,unused-ignore]
        @property
        def metadata(self) -> Any:
            return LLMMetadata(context_window=8192, num_output=400, model_name=there["model"])

        def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
            body = {"model": there["model"], "max_tokens": 400, "messages": [{"role": "user", "content": prompt}]}
            said = post(there, "chat/completions", body)["choices"][0]["message"]["content"]
            return CompletionResponse(text=said)

        def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
            yield self.complete(prompt)

    class Near(BaseEmbedding):  # type: ignore[misc,unused-ignore]
        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return [
                d["embedding"] for d in post(there, "embeddings", {"model": there["model"], "input": texts})["data"]
            ]

        def _get_text_embedding(self, text: str) -> list[float]:
            return self._get_text_embeddings([text])[0]

        def _get_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    documents = [
        Document(text=json.dumps(row, ensure_ascii=False), metadata={"source": source["name"]})
        for source in order["sources"]
        for row in source["rows"]
    ]
    if not documents:
        return {"text": "", "problem": "there are no rows"}
    index = VectorStoreIndex.from_documents(documents, embed_model=Near(embed_batch_size=64))
    reply = index.as_query_engine(llm=Gate(), similarity_top_k=NEAREST).query(order["subquery"])
    named = sorted({node.metadata["source"] for node in reply.source_nodes})
    return {"text": str(reply).strip(), "sources": named}


def main() -> None:
    order = json.loads(sys.stdin.readline())
    with contextlib.redirect_stdout(sys.stderr):  # what the library prints is not an answer
        reply = answered(order)
    print(json.dumps(reply, default=str), flush=True)


if __name__ == "__main__":
    main()
