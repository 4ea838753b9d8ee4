"""llama.cpp in this process: one loaded model a file, asked in a thread of its own.

The reply to a prompt does not depend on the prompts before it, though their common prefix is not evaluated again. A token's
numbers must then be the same in every batch. They are when

- weights keep the layout of the file: in the repacked one, the last n % 4 tokens of a batch go through another kernel;
- flash attention is off: on a CPU it rounds by the size of the batch;
- no batch is smaller than 8 tokens, for these go through another kernel. `Engine.chat` sees to it.

Measured on 2 cores with the 1.5B model: see docs/security.md.
"""

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
from uql.base.user_folder import user_folder
from uql.llm.providers.prompt_states import PromptStates

T = TypeVar("T")
BATCH = 512  # tokens that llama.cpp evaluates at once
LEAST = 8  # tokens of a batch; fewer are rounded otherwise
CUT = 64  # characters at the end of a prompt: more than LEAST tokens
CACHED_MIB = 512  # memory for evaluated prompts beside the one in the slot


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
        self._begun: list[Any] | None = None  # messages of the last request, where it asked for one token
        self._states: PromptStates | None = None
        self.api_key = secrets.token_urlsafe(24)  # of the loopback port that the library opens

    @property
    def loaded(self) -> bool:
        """Is the model in memory?"""
        return self._server is not None

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
        params.no_extra_bufts = True
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.n_ubatch = BATCH
        params.cache_ram_mib = CACHED_MIB
        params.slot_save_path = f"{states_folder()}{os.sep}"
        params.verbosity = -1
        params.warmup = False
        model = (str(self.path.resolve()), self.path.stat().st_mtime_ns, xllamacpp.__version__)
        self._states = PromptStates(states_folder(), *model, self.n_ctx, self.threads)
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise BackendError(
                f"{self.path} cannot be loaded: {error}", help="is it a whole GGUF file of a chat model?"
            ) from error

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        """A request in the form of OpenAI's chat completions, its reply independent of the requests before; only inside `run`.

        Where too few tokens are left to evaluate, a shorter prompt comes between, so that less of this one is found evaluated; where
        that is not enough, all of it is evaluated. A prompt that was sent for one token, and now for all, has always one token left.
        A reply that is drawn by chance may be rounded otherwise, so that several to one prompt cost their own tokens alone.
        """
        one = body["max_tokens"] == 1
        goes_on = not one and body["messages"] == self._begun
        by_chance = body.get("temperature", 0.0) > 0
        self._begun = body["messages"] if one else None
        reply = self._reply(body)
        if _too_few(reply) and not goes_on and not by_chance:
            *before, last = body["messages"]
            self._reply({**body, "messages": [*before, {**last, "content": last["content"][:-CUT]}], "max_tokens": 1})
            reply = self._reply(body)
            if _too_few(reply):
                reply = self._reply({**body, "cache_prompt": False})
        return reply

    def chat_keeping_state(self, body: dict[str, Any]) -> dict[str, Any]:
        """As `chat`; later processes find evaluated what their prompts have in common with this one."""
        assert self._states is not None, "a loaded model has states"
        address, messages = self._server.listening_address, body["messages"]
        self._states.restore(address, self.api_key, messages)
        reply = self.chat(body)
        self._states.save(address, self.api_key, messages, _evaluated(reply))
        return reply

    def _reply(self, body: dict[str, Any]) -> dict[str, Any]:
        reply: dict[str, Any] = self._server.handle_chat_completions(body)
        return reply

    async def address(self) -> str:
        """The loopback address at which the library serves the same model, for `self.api_key`."""
        return await self.run(lambda: str(self._server.listening_address))


def _too_few(reply: dict[str, Any]) -> bool:
    """Was the last batch of the prompt smaller than LEAST? False where there is no count, as in an error."""
    return 0 < _evaluated(reply) % BATCH < LEAST


def _evaluated(reply: dict[str, Any]) -> int:
    """Tokens of the prompt that were not found evaluated; 0 in an error."""
    evaluated: int = reply.get("timings", {}).get("prompt_n", 0)
    return evaluated


def states_folder() -> Path:
    """Where evaluated prompts are kept for later processes."""
    return user_folder() / "prompts"


_engines: dict[tuple[str, int, int], Engine] = {}
_lock = threading.Lock()


def is_loaded(path: Path, *, n_ctx: int, threads: int) -> bool:
    """Is the file in memory?

    Args:
        path: of the GGUF file.
        n_ctx: tokens of the context.
        threads: CPU threads.
    """
    entry = _engines.get((str(path.resolve()), n_ctx, threads))
    return entry is not None and entry.loaded


async def engine(path: Path, *, n_ctx: int, threads: int) -> Engine:
    """The engine of a file, made when first asked for and kept until the process ends. The least recent of three is dropped.

    Args:
        path: of the GGUF file.
        n_ctx: tokens of the context.
        threads: CPU threads.
    """
    key = (str(path.resolve()), n_ctx, threads)
    with _lock:
        entry = _engines.pop(key, None) or Engine(path, n_ctx=n_ctx, threads=threads)
        _engines[key] = entry
        while len(_engines) > 2:
            _engines.pop(next(iter(_engines)))
    return entry
