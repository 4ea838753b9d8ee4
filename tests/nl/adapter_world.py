"""A small run for tests of adapters: three sources, a scripted model, a workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from llm.scripted import Scripted

from uql.base.schema import Field, Modality
from uql.base.settings import Settings
from uql.llm.gate import Gate
from uql.llm.providers.base import Answer, Capabilities, Request
from uql.llm.questions import Write
from uql.nl.ask.context import AskContext
from uql.nl.guard.workspace import Workspace
from uql.nl.schema.scope import Source

PIXEL = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    b"\x00\x00\x00\rIDATx\x9cc\xf8\xff\xff?\x00\x05\xfe\x02\xfe\xa3\x9a\xb2\x81\x00\x00\x00\x00IEND\xaeB`\x82"
)
TABLES = {
    "teams": pa.table(
        {"name": ["Heat", "Suns", "Jazz"], "founded": [1988, 1968, 1974], "owner_phone": ["1", "2", "3"]}
    ),
    "reports": pa.table(
        {"game": [1, 2], "report": ["The Heat beat the Suns by ten points in Miami.", "The Jazz lost at home."]}
    ),
    "logos": pa.table({"team": ["Heat", "Suns"], "logo": pa.array([PIXEL, PIXEL + b"2"], pa.binary())}),
}
SOURCES = {
    "teams": Source(
        "teams",
        "teams",
        (Field("name", "VARCHAR"), Field("founded", "BIGINT"), Field("owner_phone", "VARCHAR", private=True)),
        3,
        "basketball teams",
        {"name": ("Heat", "Suns"), "founded": ("1988", "1968")},
    ),
    "reports": Source(
        "reports", "reports", (Field("game", "BIGINT"), Field("report", "VARCHAR", Modality.TEXT)), 2, "game reports"
    ),
    "logos": Source("logos", "logos", (Field("team", "VARCHAR"), Field("logo", "BLOB", Modality.IMAGE)), 2),
}
Reply = Callable[[str, str, Request], Any]  # task, text, the request → the reply


def scripted(reply: Reply, **more: Any) -> Scripted:
    """A model that answers each Write by a function; everything else by length."""

    def script(request: Request, number: int) -> list[Answer]:
        return [
            Answer(reply(q.task, q.text, request)) if isinstance(q, Write) else Answer(None) for q in request.questions
        ]

    made = Scripted(script, **more)
    made.capabilities = Capabilities(probabilities=True, images=True, context=4_096)
    return made


@contextmanager
def run_of(model: Scripted, *names: str, calls: int | None = None) -> Iterator[AskContext]:
    """A run over some of the sources. Use inside a coroutine, after `await ctx.gate.provider()`."""
    settings = Settings(ledger=":memory:")
    sources = {name: SOURCES[name] for name in names or SOURCES}
    gate = Gate.open(settings, model=model, calls=calls)
    with Workspace(lambda origin: TABLES[origin], sources, settings) as workspace:
        yield AskContext("", sources, gate, workspace)
