"""A vendor's batch API on 127.0.0.1: OpenAI's files and batches, Anthropic's message batches. Every request in a batch is billed."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

from loopback import chat, messages, serve
from starlette.responses import Response


class BatchServer:
    """What a test says of it, and what it did.

    Attributes:
        looks: at a batch before it has ended.
        held: while true no batch ends.
        expire: requests of the first batch that it ends without, by their place.
        refused: what the vendor says against a batch as a whole.
        damaged: results that are no lines of JSON.
        strange: id, requests and time of batches of other programs that Anthropic's list has.
    """

    def __init__(self) -> None:
        self.looks, self.held, self.expire, self.refused, self.damaged = 1, False, (), "", False
        self.strange: list[tuple[str, int, float]] = []
        self.batches: list[dict[str, Any]] = []
        self.files: list[str] = []
        self.direct = 0

    @property
    def billed(self) -> list[str]:
        return [json.dumps(body, sort_keys=True) for batch in self.batches for _, body in batch["requests"]]

    def routes(self) -> dict[str, Any]:
        return {
            "/v1/files": self._upload,
            "/v1/batches": lambda body, _: self._of_file(body) if body else self._listed(),
            "/v1/chat/completions": self._direct(chat),
            "/v1/messages": self._direct(messages),
            "/v1/messages/batches": lambda body, _: (
                self._create([(r["custom_id"], r["params"]) for r in body["requests"]]) if body else self._of_messages()
            ),
            **{f"/v1/batches/b{n}": self._look(n) for n in range(40)},
            **{f"/v1/files/out{n}/content": self._output(n, failed=False) for n in range(40)},
            **{f"/v1/files/err{n}/content": self._output(n, failed=True) for n in range(40)},
            **{f"/v1/messages/batches/b{n}": self._look(n) for n in range(40)},
            **{f"/v1/messages/batches/b{n}/results": self._results(n) for n in range(40)},
        }

    def _direct(self, handler: Any) -> Any:
        def answer(body: Any, headers: Any) -> Any:
            self.direct += 1
            return handler(body, headers)

        return answer

    def _upload(self, body: dict[str, Any], headers: dict[str, str]) -> Any:
        assert body["fields"] == {"purpose": "batch"}
        self.files.append(body["file"])
        return {"id": f"file{len(self.files)}", "object": "file"}

    def _of_file(self, body: dict[str, Any]) -> dict[str, Any]:
        made = self._create(
            [(line["custom_id"], line["body"]) for line in map(json.loads, self.files[-1].splitlines())]
        )
        self.batches[-1]["metadata"] = body["metadata"]
        return made

    def _listed(self) -> dict[str, Any]:
        held = [{"id": f"b{n}", "metadata": batch.get("metadata")} for n, batch in enumerate(self.batches)]
        return {"object": "list", "data": [{"id": "of another", "metadata": None}, *held], "has_more": False}

    def _of_messages(self) -> dict[str, Any]:
        """Anthropic's list, the newest first, with batches of other programs."""
        made = [(f"b{n}", len(batch["requests"]), batch["at"]) for n, batch in enumerate(self.batches)]
        n, at = made[-1][1:]
        strange = [("of another", n, at - 86_400), ("a larger one", n + 1, at), *self.strange]
        listed = [
            {"id": id, "created_at": datetime.fromtimestamp(at, UTC).isoformat(), "request_counts": {"processing": n, "errored": 0}}
            for id, n, at in sorted([*made, *strange], key=lambda batch: -batch[2])
        ]  # fmt: skip
        return {"data": listed, "has_more": False}

    def _create(self, requests: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({id for id, _ in requests}) == len(requests), "ids are unique in a batch"
        self.batches.append({"requests": requests, "looks": 0, "at": time.time()})
        return {"id": f"b{len(self.batches) - 1}", "status": "validating", "processing_status": "in_progress"}

    def _look(self, n: int) -> Any:
        def look(body: Any, headers: Any) -> Any:
            if n >= len(self.batches):
                return 404, {"error": {"message": "no such batch"}}
            batch = self.batches[n]
            batch["looks"] += 1
            if self.held or batch["looks"] <= self.looks:
                return {"id": f"b{n}", "status": "in_progress", "processing_status": "in_progress"}
            if self.refused:
                return {"id": f"b{n}", "status": "failed", "errors": {"data": [{"message": self.refused}]}}
            return {
                "id": f"b{n}", "status": "expired" if self.expire else "completed", "processing_status": "ended",
                "output_file_id": f"out{n}", "error_file_id": f"err{n}" if self._gone(n) else None,
            }  # fmt: skip

        return look

    def _gone(self, n: int) -> set[int]:
        return set(self.expire) if n == 0 else set()

    def _said(self, n: int, handler: Any, headers: dict[str, str]) -> list[tuple[int, str, int, Any]]:
        """Place, id, status and body of each reply of a batch."""
        found = []
        for i, (id, body) in enumerate(self.batches[n]["requests"]):
            made = handler(body, headers)
            status, held = made if isinstance(made, tuple) else (200, made)
            found.append((i, id, status, held))
        return found

    def _output(self, n: int, *, failed: bool) -> Any:
        def lines(body: Any, headers: dict[str, str]) -> Any:
            made = []
            for i, id, status, held in self._said(n, chat, headers):
                gone = i in self._gone(n)
                if gone and failed:
                    made.append(
                        {"custom_id": id, "response": None, "error": {"code": "batch_expired", "message": "late"}}
                    )
                elif not gone and not failed:
                    made.append({"custom_id": id, "response": {"status_code": status, "body": held}, "error": None})
            return self._lines(made)

        return lines

    def _results(self, n: int) -> Any:
        def lines(body: Any, headers: dict[str, str]) -> Any:
            made = []
            for i, id, status, held in self._said(n, messages, headers):
                if i in self._gone(n):
                    result: Any = {"type": "expired"}
                elif status == 200:
                    result = {"type": "succeeded", "message": held}
                else:
                    result = {"type": "errored", "error": held}
                made.append({"custom_id": id, "result": result})
            return self._lines(made)

        return lines

    def _lines(self, made: list[Any]) -> Response:
        text = "\n".join(map(json.dumps, reversed(made)))  # in no order that one could rely on
        return Response("{" * 9 if self.damaged else text, media_type="application/jsonl")


def serving(server: BatchServer) -> Any:
    return serve(server.routes())
