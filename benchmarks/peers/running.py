"""A running oracle and running workers: a task goes to a worker as a line of JSON, its rows come back as one."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from uql.base.errors import BackendError
from uql.benchmarks.peers.environments import Peer, python_of, version_of

START_S, TASK_S = 60.0, 1800.0


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class Served:
    """`uql oracle serve` in a process of its own, for as long as the block lasts."""

    oracle: Path
    column: str = "text"  # whose text is looked for in prompts
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Served:
        command = [sys.executable, "-m", "uql.cli", "oracle", "serve", str(self.oracle)]
        command += ["--port", str(self.port), "--column", self.column]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            try:
                self.stats()
                return self
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.1)
        self.stop()
        raise BackendError(f"uql oracle serve {self.oracle} did not answer on port {self.port}", code="UQL403")

    def reset(self, seed: int) -> None:
        """Counts anew; the seed decides which answers are wrong."""
        request = urllib.request.Request(f"{self.url}/stats?seed={seed}", method="POST")
        urllib.request.urlopen(request, timeout=10).close()

    def stats(self) -> dict[str, Any]:
        """Calls, tokens and refused prompts since the last reset."""
        request = urllib.request.Request(f"{self.url}/stats")
        with urllib.request.urlopen(request, timeout=10) as reply:
            found: dict[str, Any] = json.load(reply)
        return found

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None

    def __enter__(self) -> Served:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


@dataclass
class Worker:
    """A peer's worker: `tables` are files of JSON lines by name, `log` is where what it says goes."""

    peer: Peer
    tables: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def run(self, query: str, setting: str, url: str, helper: str = "", seed: int = 0) -> dict[str, Any]:
        """Rows and seconds of one question, asked of the model at `url`, or the problem that kept the peer from answering.

        Args:
            helper: where a cheaper model answers, for settings that take one.
            seed: of what the peer draws, where it lets that be set.
        """
        process = self._there()
        assert process.stdin is not None
        try:
            task = {"query": query, "setting": setting, "url": url, "helper": helper, "seed": seed}
            process.stdin.write(json.dumps(task).encode() + b"\n")
            process.stdin.flush()
            line = self._line(process)
        except BrokenPipeError:
            line = b""
        if not line:
            self.stop()
            said = [each for each in self.log.read_text(errors="replace").splitlines() if each.strip()]
            return {"problem": f"{self.peer.name} ended: {said[-1][:300] if said else 'without a word'}"}
        found: dict[str, Any] = json.loads(line)
        return found

    def _line(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], TASK_S)[0]:
            return b""
        return process.stdout.readline()

    def _there(self) -> subprocess.Popen[bytes]:
        if self.process is None or self.process.poll() is not None:
            environment = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT")}
            environment |= {
                "OPENAI_API_KEY": "none",
                "HF_HUB_OFFLINE": "1",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "OMP_NUM_THREADS": "1",
            }
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with self.log.open("ab") as log:
                self.process = subprocess.Popen(
                    [str(python_of(self.peer)), str(self.peer.worker)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=environment,
                )
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps({"tables": self.tables}).encode() + b"\n")
        return self.process

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def installed(peer: Peer) -> str:
    """Why a peer cannot be run; empty where it can."""
    return "" if version_of(peer) else f"it is not installed: uql bench peers install {peer.name}"
