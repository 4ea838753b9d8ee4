"""Shards as actors of Ray, spread over the nodes: one that is lost is started again from the files, and its call repeated."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import duckdb

from uql.base.errors import ConfigError, DataError, UQLError
from uql.base.extras import need
from uql.base.sql_text import first_line
from uql.cluster.lake import Lake
from uql.cluster.shard import Shard

REACH_S = 10.0  # to connect to the address
LOOK_S = 5.0  # between two looks at the shards that have not answered
SILENT_S = 300.0  # without a sign of life of a shard: time to start it again on another node
RESTARTS = 50  # of a shard: one whose process ends each time is given up
SIGNS = "signs"  # the thread of an actor that gives them, beside the one that works
HOST_AND_PORT = re.compile(r"(?:ray://)?\[?([^/]+?)\]?:(\d+)")


class _Watch:
    """Looks at shards that are waited for: each gives a sign of life while its call runs."""

    def __init__(self, actors: Sequence[Any]) -> None:
        import ray

        self._wait, self._actors = ray.wait, actors
        self._signs: list[Any] = [None] * len(actors)
        self._seen = [time.monotonic()] * len(actors)

    def look(self) -> None:
        """Raises: DataError (UQL503) where a shard has been silent for too long."""
        now = time.monotonic()
        for n, actor in enumerate(self._actors):
            if self._signs[n] is None or self._wait([self._signs[n]], timeout=0)[0]:
                self._signs[n] = actor.usage.options(concurrency_group=SIGNS).remote()
                self._seen[n] = now
            elif now - self._seen[n] > SILENT_S:
                raise DataError(
                    f"shard {n} gives no sign of life for {SILENT_S:.0f} s",
                    code="UQL503",
                    help="'ray status' says which nodes are there; what was answered is in the ledger: run the statement again",
                )


def on_ray(
    lake: Lake, address: str, shards: int | None
) -> tuple[int, Callable[..., list[Any]], Callable[..., Awaitable[list[Any]]], Callable[[], None]]:
    """The number of actors, and what `Cluster` calls: `call`, `work` and `close`.

    Args:
        lake: of which each shard opens its part.
        address: of a Ray cluster, as `ray.init` takes it.
        shards: actors; None: one for each core of the cluster.
    Raises: ConfigError (UQL105) where Ray does not answer or start, (UQL610) where it is not installed.
    """
    need("clusters", "cluster", "ray")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    begun = not ray.is_initialized()
    if begun:
        _start(address)
    n = shards or max(1, int(ray.cluster_resources().get("CPU", 1)))
    actor = ray.remote(
        max_restarts=RESTARTS, max_task_retries=-1, scheduling_strategy="SPREAD", concurrency_groups={SIGNS: 1}
    )(Shard)
    actors = [actor.remote(lake, i, n) for i in range(n)]

    def call(method: str, arguments: Sequence[tuple[Any, ...] | None]) -> list[Any]:
        with _as_errors():
            asked = [(one, a) for one, a in zip(actors, arguments, strict=True) if a is not None]
            sent = [getattr(one, method).remote(*a) for one, a in asked]
            watch, left = _Watch([one for one, _ in asked]), sent
            while left:
                done, left = ray.wait(left, timeout=LOOK_S)
                ray.get(done)  # raises the error of the first that fails
                if not done:
                    watch.look()
            return list(ray.get(sent))

    async def work(do: Callable[..., Awaitable[Any]], *arguments: Any) -> list[Any]:
        with _as_errors():
            sent = [one.work.remote(do, *arguments) for one in actors]
            answers: list[Any] | None = None
            try:
                answers = await _answers([asyncio.wrap_future(one.future()) for one in sent], _Watch(actors))
            finally:
                if answers is None:  # one shard failed, or this process is interrupted: the others stop too
                    for one, under_way in zip(actors, sent, strict=True):
                        ray.cancel(under_way)
                        ray.kill(one, no_restart=False)
            return answers

    def close() -> None:
        if not ray.is_initialized():
            return
        with suppress(ray.exceptions.RayError):  # it is gone
            for one in actors:
                ray.kill(one)
        if begun:
            ray.shutdown()

    return n, call, work, close


async def _answers(futures: Sequence[asyncio.Future[Any]], watch: _Watch) -> list[Any]:
    left = set(futures)
    while left:
        done, left = await asyncio.wait(left, timeout=LOOK_S, return_when=asyncio.FIRST_EXCEPTION)
        for one in done:
            one.result()
        if not done:
            watch.look()
    return [one.result() for one in futures]


def _start(address: str) -> None:
    import ray

    own: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    try:
        if found := HOST_AND_PORT.fullmatch(address):  # Ray tries for minutes
            socket.create_connection((found[1], int(found[2])), REACH_S).close()
        ray.init(address=address, log_to_driver=False, logging_level="error", **own)
    except Exception as error:  # Ray raises a bare Exception where a node does not start
        ray.shutdown()  # what has started ends
        raise ConfigError(
            f"there is no Ray cluster at {address}: {first_line(error)}",
            code="UQL105",
            help="'ray start --head' on one machine and 'ray start --address=HOST:6379' on the others make one; "
            "cluster = 'local' starts one on this machine, 'process' does without Ray",
        ) from error


@contextmanager
def _as_errors() -> Iterator[None]:
    """What Ray raises, as errors of UQL; those of a shard's own DuckDB and of UQL in it as they are."""
    from ray.exceptions import RayError, RayTaskError

    try:
        yield
    except RayTaskError as error:
        if isinstance(error.cause, (UQLError, duckdb.Error, MemoryError)):
            raise error.cause from None
        raise DataError(
            f"a shard failed: {type(error.cause).__name__}: {first_line(error.cause)}",
            code="UQL503",
            help="is the same version of UQL installed on all machines? What was answered is in the ledger",
        ) from error
    except (RayError, ConnectionError) as error:
        raise DataError(
            f"the cluster lost a shard and could not start it again: {first_line(error)}",
            code="UQL503",
            help="'ray status' says which nodes are there; open the connection anew and run the statement again: what was answered "
            "is in the ledger",
        ) from error
