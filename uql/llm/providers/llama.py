"""llama.cpp in this process: one loaded model a file, asked in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from uql.base.errors import BackendError, ConfigError
from uql.base.extras import install

T = TypeVar("T")


class Engine:
    """A loaded model with one slot: a second question about a row finds the row evaluated.

    Raises: BackendError where llama.cpp cannot load the file, ConfigError where xllamacpp is not installed.
    """

    def __init__(self, path: Path, *, n_ctx: int, threads: int) -> None:
        self.path, self.n_ctx = path, n_ctx
        self.threads = (
            threads or len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else threads or os.cpu_count() or 1
        )
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="uql-llama")
        self._server: Any = None
        self.api_key = secrets.token_urlsafe(24)  # of the loopback port that the library opens

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` in the engine's thread, the model loaded. A cancelled wait leaves the work to end by itself."""
        return await asyncio.wrap_future(self._pool.submit(self._loaded, work))

    def _loaded(self, work: Callable[[], T]) -> T:
        if self._server is None:
            self._server = self._load()
        return work()

    def _load(self) -> Any:
        try:
            import xllamacpp
        except ImportError as error:
            raise ConfigError("local models need xllamacpp", code="UQL402", help=install("local")) from error
        params = xllamacpp.CommonParams()
        params.model.path = str(self.path)
        params.n_ctx = self.n_ctx
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self.threads
        params.api_keys = [self.api_key]
        params.verbosity = -1
        params.warmup = False
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise BackendError(
                f"{self.path} cannot be loaded: {error}", help="is it a whole GGUF file of a chat model?"
            ) from error

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        """A request in the form of OpenAI's chat completions; only inside `run`."""
        reply: dict[str, Any] = self._server.handle_chat_completions(body)
        return reply

    async def address(self) -> str:
        """The loopback address at which the library serves the same model, for `self.api_key`."""
        return await self.run(lambda: str(self._server.listening_address))


_engines: dict[tuple[str, int, int], Engine] = {}
_lock = threading.Lock()


async def engine(path: Path, *, n_ctx: int, threads: int) -> Engine:
    """The engine of a file, made when first asked for and kept until the process ends. The least recent of three is dropped.

    Args:
        path: of the GGUF file.
        n_ctx: tokens of the context.
        threads: CPU threads.
    """
    key = (str(path.resolve()), n_ctx, threads)
    with _lock:
        found = _engines.pop(key, None) or Engine(path, n_ctx=n_ctx, threads=threads)
        _engines[key] = found
        while len(_engines) > 2:
            _engines.pop(next(iter(_engines)))
    return found
