"""Adapters that run in a process of their own, in an environment of their own: JSON lines over stdin and stdout, killed on time-out.

To the worker goes one line, `{"subquery", "operator"?, "sources": [{"name", "description", "columns", "rows", "row_count"}], "endpoint":
{"url", "token", "model"}}`; from it comes one, `{"value"?, "text", "sources"?, "confidence"?, "problem"?}`. It starts with an empty
environment, and reaches the model through the gate's endpoint alone, so that one budget and one ledger count its calls.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
import decimal
import itertools
import json
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from uql.base.arrow_values import rows_of
from uql.base.errors import QuestionError
from uql.base.extras import need
from uql.base.schema import Modality
from uql.llm.serve import endpoint
from uql.nl.ask.context import AskContext
from uql.nl.plan.dag import Operator, SubAnswer
from uql.nl.schema.scope import Source

TIMEOUT_S = 180.0
ROWS = 200  # of a source that are sent
IMAGE_BYTES = 8_000_000  # of a source's images that are sent
LONGEST_REPLY = 1_000_000  # bytes
STDERR = 2_000  # characters of what a worker complained, kept for the error


@dataclass(frozen=True, slots=True)
class ProcessAdapter:
    """An adapter in another process; for every operator.

    Attributes:
        name: of the adapter.
        command: the program and its arguments; the interpreter of the adapter's environment and its worker.
        home: a folder that the worker may write to, its HOME.
        timeout_s: of one sub-query, the start of the process included.
    """

    name: str
    command: Sequence[str]
    home: Path
    timeout_s: float = TIMEOUT_S

    def capable(self, operator: Operator) -> bool:
        return True

    async def run(self, subquery: str, sources: Mapping[str, Source], ctx: AskContext) -> SubAnswer:
        """As in `Adapter`, in a process of its own, which is sent the sources whole.

        Raises: QuestionError (UQL640) where the worker cannot be started, dies, or replies what is not an answer; UQL641 where it was
            killed on time-out.
        """
        order: dict[str, Any] = {"subquery": subquery, "sources": [_source_body(s, ctx) for s in sources.values()]}
        async with endpoint(ctx.gate, model=ctx.planner, embed=vectors) as there:
            reply = await self._spoken(order | {"endpoint": asdict(there)})
        problem = reply.get("problem")
        text = str(reply.get("text") or "").strip()
        source_names = tuple(name for name in map(str, reply.get("sources") or sources) if name in sources)
        if problem or (not text and reply.get("value") is None):
            return SubAnswer(
                None, text, source_names, self.name, problem=str(problem or "the worker gave no answer")[:300]
            )
        confidence = reply.get("confidence")
        sure = float(confidence) if isinstance(confidence, int | float) and 0 <= confidence <= 1 else None
        value = reply.get("value")
        return SubAnswer(value if value is not None else text, text or str(value), source_names, self.name, sure)

    async def _spoken(self, order: dict[str, Any]) -> dict[str, Any]:
        """The reply of a fresh worker to one order; the worker is gone afterwards, with its children."""
        self.home.mkdir(parents=True, exist_ok=True)
        try:
            worker = await asyncio.create_subprocess_exec(
                *self.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self.home,
                env=environment(self.home),
                start_new_session=True,
                limit=LONGEST_REPLY,
            )
        except OSError as error:
            raise QuestionError(
                f"the adapter {self.name} cannot be started: {error}",
                code="UQL640",
                help=f"uql adapters install {self.name}",
            ) from error
        assert worker.stdin is not None and worker.stdout is not None and worker.stderr is not None
        complained = asyncio.create_task(worker.stderr.read())
        try:
            async with asyncio.timeout(self.timeout_s):
                with contextlib.suppress(ConnectionError):
                    worker.stdin.write(json.dumps(order).encode() + b"\n")
                    await worker.stdin.drain()
                line = await worker.stdout.readline()
        except TimeoutError:
            raise QuestionError(
                f"the adapter {self.name} was killed: no answer within {self.timeout_s:g} s", code="UQL641"
            ) from None
        except ValueError as error:
            raise QuestionError(
                f"the adapter {self.name} replied more than {LONGEST_REPLY:,} bytes", code="UQL640"
            ) from error
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.name == "nt":  # no process groups there
                    worker.kill()
                else:
                    os.killpg(worker.pid, signal.SIGKILL)
            await worker.wait()
            stderr = (await complained).decode("utf-8", "replace")[-STDERR:].strip()
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            last = stderr.splitlines()[-1] if stderr else "it said nothing"
            raise QuestionError(f"the adapter {self.name} gave no answer: {last[:300]}", code="UQL640") from None
        if not isinstance(reply, dict):
            raise QuestionError(f"the adapter {self.name} replied no object", code="UQL640")
        return reply


def environment(home: Path) -> dict[str, str]:
    """All that a worker's environment holds: no key, no setting of the caller's; what its libraries need to stay off the network."""
    return {
        "HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "PYTHONNOUSERSITE": "1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_MODE": "PRODUCTION",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "DO_NOT_TRACK": "1",
        "NO_PROXY": "127.0.0.1",
        "OMP_NUM_THREADS": "1",
    }


def vectors(texts: list[str]) -> list[list[float]]:
    """Vectors of texts for a worker: of the static embedder, else counts of hashed words."""
    from uql.features.static import static_embedder

    embedder = static_embedder()
    if embedder is not None:
        return [[float(x) for x in row] for row in embedder.embed(texts)]
    need("vectors without wordllama", "routers", "sklearn")
    from sklearn.feature_extraction.text import HashingVectorizer

    counts = HashingVectorizer(n_features=256, alternate_sign=True, norm="l2").transform(texts).toarray()
    return [[float(x) for x in row] for row in counts]


def _source_body(source: Source, ctx: AskContext) -> dict[str, Any]:
    """A source as a worker sees it: columns that are not private, its first rows, images as data: addresses."""
    kinds = (Modality.STRUCTURED, Modality.TEXT, Modality.IMAGE)
    fields = [f for f in source.visible_fields if f.modality in kinds]
    rows = rows_of(ctx.workspace.table(source.name, columns=[f.name for f in fields], limit=ROWS))
    sizes = itertools.accumulate(sum(len(v) for v in row.values() if isinstance(v, bytes)) for row in rows)
    rows = [row for row, size in zip(rows, sizes, strict=True) if size <= IMAGE_BYTES]
    return {
        "name": source.name,
        "description": source.description,
        "columns": [{"name": f.name, "type": f.type, "holds": f.modality.value} for f in fields],
        "rows": [{name: cell(value) for name, value in row.items()} for row in rows],
        "row_count": source.row_count,
    }


def cell(value: Any) -> Any:
    """A value as JSON holds it: an image as a data: address."""
    if isinstance(value, bytes):
        from uql.nl.adapters.base import media

        return f"data:{media(value)};base64,{base64.b64encode(value).decode('ascii')}"
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return float(value)
    return value if value is None or isinstance(value, bool | int | float | str | list) else str(value)
