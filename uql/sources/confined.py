"""Readers of files that a user's data names, in processes of their own with limits: such a file may be made to harm.

A request is bytes, sent after their length in 8 bytes. A reply is one line of JSON, followed by as many bytes as its `bytes` says.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread
from typing import Any

from uql.base.media_types import Unreadable

MEMORY_BYTES = 2_000_000_000
Reply = dict[str, Any]  # `error` says why there is nothing else; `data` are the bytes that came behind the line
Process = Callable[[Sequence[bytes], float], tuple[list[Reply], str]]


def replies(
    requests: Sequence[bytes], process: Process, what: str, *, deadline: float, at_once: int
) -> list[Reply | Unreadable]:
    """(n,) the reply to each request. One that ends its process, or takes too long, is lost; the others are read.

    Args:
        requests: (n,) what the process is sent.
        process: answers some of them in one process, as `exchange` does.
        what: is read, in the singular: "document".
        deadline: by the monotonic clock.
        at_once: requests to one process.
    """
    answers: list[Reply | Unreadable] = []
    while len(answers) < len(requests):
        if time.monotonic() >= deadline:
            answers += [Unreadable(f"the {what} is not read: no time is left")] * (len(requests) - len(answers))
            break
        part = requests[len(answers) : len(answers) + at_once]
        read, ended = process(part, deadline)
        answers += [Unreadable(reply["error"]) if "error" in reply else reply for reply in read]
        if len(read) < len(part):
            answers.append(Unreadable(f"the {what} cannot be read: its reader {ended}"))
    return answers


def exchange(command: Sequence[str], part: Sequence[bytes], seconds: float, deadline: float) -> tuple[list[Reply], str]:
    """The replies of one process before it ended, and how it ended.

    Args:
        command: of Python.
        part: the requests.
        seconds: for one request.
        deadline: by the monotonic clock.
    """
    read: list[Reply] = []
    received: Queue[Reply | None] = Queue()
    with subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={}
    ) as process:
        threads = [Thread(target=_send, args=(process, part)), Thread(target=_receive, args=(process, received))]
        for thread in threads:
            thread.start()
        ended = ""
        while len(read) < len(part):
            limit = min(seconds, max(0.0, deadline - time.monotonic()))
            try:
                reply = received.get(timeout=limit)
            except Empty:
                ended = f"took longer than {limit:.3g} s"
                break
            if reply is None:
                break
            read.append(reply)
        if len(read) < len(part):
            process.kill()
        for thread in threads:
            thread.join()
    return read, ended or f"ended with {process.returncode}"


def _send(process: subprocess.Popen[bytes], part: Sequence[bytes]) -> None:
    assert process.stdin is not None
    with suppress(OSError):  # the process has ended
        for data in part:
            process.stdin.write(len(data).to_bytes(8, "big") + data)
    with suppress(OSError):
        process.stdin.close()


def _receive(process: subprocess.Popen[bytes], received: Queue[Reply | None]) -> None:
    """Its replies, then None for the end of its output."""
    assert process.stdout is not None
    for line in process.stdout:
        if not line.endswith(b"\n"):
            break
        reply: Reply = json.loads(line)
        if "bytes" in reply:
            reply["data"] = process.stdout.read(reply["bytes"])
            if len(reply["data"]) < reply["bytes"]:
                break
        received.put(reply)
    received.put(None)


# ------------------------------------------------------------------------------------------------------ in the process
def serve(answer: Callable[[bytes], Reply], cpu_seconds: float, memory: int = MEMORY_BYTES) -> None:
    """Answers requests from the input until it ends, within limits of memory and time; nothing is written to files.

    Args:
        answer: the reply to a request, its bytes under `data`. What it raises ends the process.
        cpu_seconds: of all requests.
        memory: bytes of the process's addresses.
    """
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_seconds), int(cpu_seconds)))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    for request in _requests():
        reply = answer(request)
        data = reply.pop("data", None)
        line = reply if data is None else {**reply, "bytes": len(data)}
        sys.stdout.buffer.write(json.dumps(line).encode() + b"\n" + (data or b""))
        sys.stdout.buffer.flush()


def _requests() -> Iterator[bytes]:
    source = sys.stdin.buffer
    while head := source.read(8):
        yield source.read(int.from_bytes(head, "big"))
