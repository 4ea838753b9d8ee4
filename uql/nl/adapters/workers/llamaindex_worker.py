"""LlamaIndex in an environment of its own: the rows as documents, the nearest retrieved with their images, an answer from them. A baseline.

Model and embedder are those of the gate's endpoint.
"""

from __future__ import annotations

import base64
import json
import urllib.request
from typing import Any

NEAREST = 8


def post(there: dict[str, str], path: str, body: dict[str, Any]) -> dict[str, Any]:
    """One request to the gate's endpoint. Raises urllib.error.HTTPError where it is refused.

    Args:
        there: the `url` and `token` of the endpoint.
        body: sent as JSON.
    """
    request = urllib.request.Request(
        f"{there['url']}/{path}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {there['token']}"},
    )
    with urllib.request.urlopen(request, timeout=150) as reply:
        content: dict[str, Any] = json.load(reply)
    return content


def answer(order: dict[str, Any]) -> dict[str, Any]:
    from llama_index.core import Document, VectorStoreIndex  # type: ignore[import-not-found,unused-ignore]
    from llama_index.core.embeddings import BaseEmbedding  # type: ignore[import-not-found,unused-ignore]
    from llama_index.core.llms import ChatMessage, ImageBlock, TextBlock  # type: ignore[import-not-found,unused-ignore]
    from llama_index.llms.openai_like import OpenAILike  # type: ignore[import-not-found,unused-ignore]

    there = order["endpoint"]
    model = OpenAILike(
        model=there["model"],
        api_base=there["url"],
        api_key=there["token"],
        is_chat_model=True,
        context_window=8192,
        max_tokens=400,
        temperature=0.0,
    )

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

    documents, pictures = [], {}
    for source in order["sources"]:
        for row, text in zip(source["rows"], source["texts"], strict=True):
            one = Document(text=text, metadata={"source": source["name"]})
            documents.append(one)
            urls = (row[column] for column in source["images"] if row[column] is not None)
            pictures[one.doc_id] = [base64.b64decode(url.partition(",")[2]) for url in urls]
    if not documents:
        return {"text": "", "problem": "there are no rows"}
    index = VectorStoreIndex.from_documents(documents, embed_model=Near(embed_batch_size=64))
    question = order["subquery"]
    nodes = index.as_retriever(similarity_top_k=NEAREST).retrieve(question)
    images = [picture for node in nodes for picture in pictures[node.node.ref_doc_id]]
    if images:
        prompt = f"Context:\n{chr(10).join(node.text for node in nodes)}\nAnswer from the context and its images alone: {question}"
        blocks = [TextBlock(text=prompt), *(ImageBlock(image=picture) for picture in images)]
        reply: Any = model.chat([ChatMessage(role="user", blocks=blocks)]).message.content
    else:
        reply = index.as_query_engine(llm=model, similarity_top_k=NEAREST).query(question)
    return {"text": str(reply).strip(), "sources": sorted({node.metadata["source"] for node in nodes})}
