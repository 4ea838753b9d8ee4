"""Batch APIs at half the price: requests are put together, handed in, and waited for (`WITH (batch = true)`).

A `Batches` takes the place of a provider's HTTP client: prompts, replies and what goes wrong with a row are read as ever. The ledger
knows which requests are in which batch, so that a statement given again after its process was killed waits for the same batch. Before a
batch is handed in the ledger notes its mark: where no reply came, the vendor's list is searched for the mark. Anthropic's batches take
none: its list has times and counts alone, so a batch of as many requests that was made at that time is waited for, and its results
tell whether it holds them.

Wire formats: OpenAI's Batch API (a file of lines, /v1/batches) and Anthropic's Message Batches, as `types/batch_create_params.py` of the
Python package openai 3.57.0 and `types/messages/batch_create_params.py` of anthropic 2.14.0 have them.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from uql.base.errors import UnknownModelError, UQLError
from uql.llm.failures import TRANSIENT
from uql.llm.ledger import Ledger
from uql.llm.ledger_database import Database, upsert
from uql.llm.providers.base import CallError
from uql.llm.providers.http_client import Client, Response
from uql.llm.providers.wire import call, posted, replied

QUIET_S = 0.25  # without a new request, after which those that wait are handed in
LOOKS_S = [1.0, 60.0]  # between two looks at a batch: a tenth of its age, in these bounds
UNREACHED_S = 3600.0  # without a look at a batch that succeeds: its rows have failed, and the next run takes it up
DAMAGED = 3  # times that results are fetched which cannot be read
MARK = "uql-"  # begins the mark of a batch, which stands in the ledger until its id is known
EXPIRED = 500, {"error": {"message": "the batch ended without this request", "code": "expired"}}
CLOCKS_S = 600  # at most between the note of a batch and the time that its vendor says it was made
Results = dict[str, tuple[int, dict[str, Any]]]  # status and body of each reply, by the id of the request


@dataclass(frozen=True, slots=True)
class _Note:
    """What the ledger says of a batch whose id it never learnt.

    Attributes:
        mark: that the batch was handed in with.
        requests: how many it holds.
        at: when it was handed in, in seconds since 1970.
        others: ids of the batches that the ledger knows.
    """

    mark: str
    requests: int
    at: float
    others: frozenset[str]


class _OpenAI:
    """Chat completions and responses: an uploaded file, a batch that names it, a file of results and one of errors."""

    paths = ("/chat/completions", "/responses")  # whose requests it takes
    most = 50_000  # requests of one batch

    async def submit(
        self, client: Client, path: str, requests: Mapping[str, Any], mark: str, identity: Mapping[str, str]
    ) -> str:
        """Hand requests in, bodies by id, all of one path; the id of their batch. The identity is the provider's, for messages."""
        lines = (
            json.dumps({"custom_id": id, "method": "POST", "url": f"/v1{path}", "body": body})
            for id, body in requests.items()
        )
        upload = partial(client.upload, "/files", fields={"purpose": "batch"}, name="uql.jsonl", data="\n".join(lines))
        file = await call(upload, **identity)
        job = {
            "input_file_id": file["id"],
            "endpoint": f"/v1{path}",
            "completion_window": "24h",
            "metadata": {"mark": mark},
        }
        return str((await posted(client, "/batches", job, **identity))["id"])

    async def find(self, client: Client, note: _Note, identity: Mapping[str, str]) -> str | None:
        """The id of the batch that has the mark; None where the vendor has none."""
        async for job in _listed(client, "/batches", "after", identity):
            if (job.get("metadata") or {}).get("mark") == note.mark:
                return str(job["id"])
        return None

    async def results(self, client: Client, batch: str, identity: Mapping[str, str]) -> Results | None:
        """The replies; None while it is under way.

        Raises: CallError where it was refused as a whole; ValueError where the replies are damaged.
        """
        job = await call(partial(client.get, f"/batches/{batch}"), **identity)
        if job["status"] not in ("completed", "expired", "cancelled", "failed"):
            return None
        if job["status"] == "failed":
            errors = (job.get("errors") or {}).get("data") or [{}]
            raise CallError("bad_request", f"the batch was refused: {errors[0].get('message', 'no reason is given')}")
        replies: Results = {}
        for file in (job.get("output_file_id"), job.get("error_file_id")):
            for line in await _lines(client, f"/files/{file}/content", identity) if file else ():
                reply = line.get("response")
                replies[line["custom_id"]] = (reply["status_code"], reply["body"]) if reply else EXPIRED
        return replies


class _Anthropic:
    """Messages: a batch holds its requests, and its results are lines."""

    paths = ("/v1/messages",)
    most = 100_000

    async def submit(
        self, client: Client, path: str, requests: Mapping[str, Any], mark: str, identity: Mapping[str, str]
    ) -> str:
        job = {"requests": [{"custom_id": id, "params": body} for id, body in requests.items()]}
        return str((await posted(client, f"{path}/batches", job, **identity))["id"])

    async def find(self, client: Client, note: _Note, identity: Mapping[str, str]) -> str | None:
        """The id of the batch that can be the one: of as many requests, made at the time nearest to the note."""
        found: dict[str, float] = {}
        async for job in _listed(client, f"{self.paths[0]}/batches", "after_id", identity):
            apart_s = datetime.fromisoformat(job["created_at"]).timestamp() - note.at
            if apart_s < -CLOCKS_S:  # those that follow are older
                break
            if apart_s <= CLOCKS_S and sum(job["request_counts"].values()) == note.requests:
                found[str(job["id"])] = abs(apart_s)
        return min(found.keys() - note.others, key=found.__getitem__, default=None)

    async def results(self, client: Client, batch: str, identity: Mapping[str, str]) -> Results | None:
        at = f"{self.paths[0]}/batches/{batch}"
        if (await call(partial(client.get, at), **identity))["processing_status"] != "ended":
            return None
        replies: Results = {}
        for line in await _lines(client, f"{at}/results", identity):
            match line["result"]:
                case {"type": "succeeded", "message": reply}:
                    replies[line["custom_id"]] = 200, reply
                case {"type": "errored", "error": error}:
                    refused = (error.get("error") or {}).get("type") == "invalid_request_error"
                    replies[line["custom_id"]] = (400 if refused else 500), error
                case _:
                    replies[line["custom_id"]] = EXPIRED
        return replies


OPENAI, ANTHROPIC = _OpenAI(), _Anthropic()
Service = _OpenAI | _Anthropic


async def _listed(client: Client, path: str, after: str, identity: Mapping[str, str]) -> AsyncIterator[dict[str, Any]]:
    """The vendor's batches, the newest first. Raises what a call raises.

    Args:
        after: the parameter that names the batch after which a page begins.
    """
    at, more = "", True
    while more:
        page = await call(partial(client.get, f"{path}?limit=100{at}"), **identity)
        for job in page["data"]:
            yield job
            at = f"&{after}={job['id']}"
        more = bool(page["data"]) and page.get("has_more") is True


async def _lines(client: Client, path: str, identity: Mapping[str, str]) -> list[dict[str, Any]]:
    """The objects of a file of lines. Raises CallError; ValueError where it is damaged."""
    content = (await replied(partial(client.get, path), **identity)).content
    try:
        return [json.loads(line) for line in content.splitlines() if line.strip()]
    except RecursionError as error:
        raise ValueError("too deep") from error


@dataclass(slots=True)
class _Request:
    """One that is waited for."""

    path: str
    body: Mapping[str, Any]
    replies: list[asyncio.Future[Any]] = field(default_factory=list)

    @property
    def pending(self) -> bool:
        return any(not reply.done() for reply in self.replies)


class Batches:
    """A client that hands requests in by batches.

    Args:
        client: of the vendor. It is left open.
        service: its batch API.
        ledger: knows the batches under way.
    """

    def __init__(self, client: Client, service: Service, ledger: Ledger, *, name: str, model: str) -> None:
        self._client, self._service, self._ledger = client, service, ledger
        self._identity = {"name": name, "model": model}
        self._new: dict[bytes, _Request] = {}
        self._open: dict[str, dict[bytes, _Request]] = {}  # by batch
        self._tasks: set[asyncio.Task[None]] = set()

    async def post(self, path: str, *, body: Mapping[str, Any]) -> Any:
        """The response to a JSON body, when its batch has ended; at once where the vendor takes no such batches.

        Raises what handing in and looking at the batch raise: CallError, AuthError, QuotaError, UnknownModelError.
        """
        if path not in self._service.paths:
            return await self._client.post(path, body=body)
        key = self._ledger.key(
            self._identity["name"].encode(), path.encode(), json.dumps(body, sort_keys=True).encode()
        )
        if not self._new:
            self._start(self._hand_in())
        request = self._new.setdefault(key, _Request(path, body))
        request.replies.append(asyncio.get_running_loop().create_future())
        return await request.replies[-1]

    async def get(self, path: str) -> Any:
        """As the vendor's client."""
        return await self._client.get(path)

    async def close(self) -> None:
        """Looks at no batch any more, and ends the vendor's connections."""
        for task in self._tasks:
            task.cancel()
        await self._client.close()

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # those who waited were told

    async def _hand_in(self) -> None:
        """Waits until no request has come for a moment, then hands in those that no batch holds."""
        n_before = -1
        while n_before < len(self._new) < self._service.most:
            n_before = len(self._new)
            await asyncio.sleep(QUIET_S)
        requests, self._new = self._new, {}
        try:
            for batch, batch_keys in (await self._under_way(requests)).items():
                self._follow(batch, {key: requests.pop(key) for key in batch_keys})
            for path in dict.fromkeys(request.path for request in requests.values()):
                keys = [key for key, request in requests.items() if request.path == path and request.pending]
                for start in range(0, len(keys), self._service.most):
                    part = {key: requests[key] for key in keys[start : start + self._service.most]}
                    bodies = {key.hex(): request.body for key, request in part.items()}
                    batch = await self._submit(path, bodies, part)
                    await self._note(batch, part)
                    self._follow(batch, part)
        except BaseException as error:  # nobody waits for ever
            _fail(requests.values(), error)
            raise

    async def _submit(self, path: str, bodies: Mapping[str, Any], keys: Iterable[bytes]) -> str:
        """Hand a batch in, its mark noted before; the note goes where the vendor has refused it."""
        mark = MARK + secrets.token_hex(16)
        await self._note(mark, keys)
        try:
            return await self._service.submit(self._client, path, bodies, mark, self._identity)
        except (UQLError, CallError) as error:
            if not (isinstance(error, CallError) and error.kind in TRANSIENT):
                await self._forget(keys)
            raise

    async def _under_way(self, request_keys: Iterable[bytes]) -> dict[str, list[bytes]]:
        """The requests that a batch holds already, by batch: of this process, or of one that was killed."""
        keys, by_batch = list(request_keys), dict[str, list[bytes]]()
        for key, batch in await self._ledger.read(lambda db: list(db.by_key("batches", "key, batch", keys))):
            by_batch.setdefault(batch, []).append(key)
        for mark in [batch for batch in by_batch if batch.startswith(MARK)]:  # handed in by a process that got no reply
            note = await self._ledger.read(partial(_noted, mark))
            held, found = by_batch.pop(mark), await self._service.find(self._client, note, self._identity)
            if found is not None:
                await self._note(found, held)
                by_batch.setdefault(found, []).extend(held)
        return by_batch

    async def _note(self, batch: str, requests: Iterable[bytes]) -> None:
        rows = [(key, batch, self._identity["name"], time.time()) for key in requests]

        def work(db: Database) -> None:
            db.executemany(upsert("batches", "key", "batch", "model", "at"), rows)

        await self._ledger.transact(work)

    async def _forget(self, requests: Iterable[bytes]) -> None:
        keys = [(key,) for key in requests]

        def work(db: Database) -> None:
            db.executemany("DELETE FROM batches WHERE key = ?", keys)

        await self._ledger.transact(work)

    def _follow(self, batch: str, requests: dict[bytes, _Request]) -> None:
        is_open = batch in self._open
        waited = self._open.setdefault(batch, {})
        for key, request in requests.items():
            first = waited.setdefault(key, request)
            if first is not request:
                first.replies += request.replies
        if not is_open:
            self._start(self._wait(batch))

    async def _wait(self, batch: str) -> None:
        """Looks at a batch until it has ended, and gives each request its reply."""
        began, damaged, results = time.monotonic(), 0, None
        reached = began
        requests = self._open[batch]
        try:
            while results is None and any(request.pending for request in requests.values()):
                try:
                    results = await self._service.results(self._client, batch, self._identity)
                    reached = time.monotonic()
                except UnknownModelError:  # the vendor no longer has it
                    results = {}
                except CallError as error:
                    if error.kind not in TRANSIENT or time.monotonic() - reached > UNREACHED_S:
                        raise
                except ValueError as error:
                    damaged += 1
                    if damaged == DAMAGED:
                        raise CallError("server", f"the results of the batch are damaged: {error}") from error
                if results is None:
                    least, most = LOOKS_S
                    await asyncio.sleep(min(most, max(least, (time.monotonic() - began) / 10)))
            del self._open[batch]
            if results is not None:
                await self._forget(requests)
                for key, request in requests.items():
                    _reply(request, *results.get(key.hex(), EXPIRED))
        except BaseException as error:
            self._open.pop(batch, None)
            try:
                if isinstance(error, CallError) and error.kind not in TRANSIENT:  # it will not end in another way
                    await self._forget(requests)
            finally:
                _fail(requests.values(), error)
            raise


def _noted(mark: str, db: Database) -> _Note:
    """What the ledger says of the batch that has a mark."""
    [(requests, at)] = db.execute("SELECT COUNT(*), MIN(at) FROM batches WHERE batch = ?", (mark,)).fetchall()
    others = db.execute("SELECT DISTINCT batch FROM batches WHERE batch <> ?", (mark,)).fetchall()
    return _Note(mark, requests, at, frozenset(id for (id,) in others))


def _reply(request: _Request, status: Any, body: Any) -> None:
    """Give a request its reply from the results. A status that is not a number is a server error of this request only."""
    status = status if type(status) is int else EXPIRED[0]
    for reply in request.replies:
        if not reply.done():
            reply.set_result(Response(status, json.dumps(body).encode()))


def _fail(requests: Iterable[_Request], error: BaseException) -> None:
    """Fails all waiting requests. An error that is not one of UQL's counts as a reply that cannot be read."""
    fault = (
        error if isinstance(error, UQLError | CallError) else CallError("wrong_type", f"the batch API said {error!r}")
    )
    for request in requests:
        for reply in request.replies:
            if not reply.done():
                reply.set_exception(fault)
