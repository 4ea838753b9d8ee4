"""`uql oracle serve FILE.toml`: a label table behind OpenAI's protocol, on this machine only."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from uql.command.outcome import command, narrate, new_app

app = new_app("Label tables as models, for benchmarks and tests.")


@command(app)
def serve(
    file: Annotated[Path, typer.Argument(help="An oracle file, as `--model oracle:FILE.toml` takes it.")],
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8799,
    column: Annotated[str, typer.Option(help="The column whose text is looked for in prompts.")] = "text",
) -> None:
    """Answer /v1/chat/completions from the labels; /stats has calls and tokens, POST /stats sets them to 0."""
    from uql.benchmarks.peers import server
    from uql.llm.providers.oracle import Oracle

    oracle = Oracle(file)
    oracle.check()
    service = server.Service(oracle, column)
    known = f"answers {len(service.oracle.answers)} questions about {len(service.texts):,} rows"
    with contextlib.suppress(KeyboardInterrupt):
        server.serve(service, port, lambda address: narrate(f"{address} {known}; Ctrl-C ends it"))
