"""`uql plans serve FOLDER`: a model that plans by replaying plans written by hand, on this machine only."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from uql.command.outcome import command, narrate, new_app

app = new_app("Plans written by hand as a model, for benchmarks and tests.")


@command(app)
def serve(
    folder: Annotated[Path, typer.Argument(help="Files NAME.uql with plans, one a question.")],
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8798,
    labels: Annotated[Path | None, typer.Option(help="An oracle file that reads rows; none: it only plans.")] = None,
    context: Annotated[int, typer.Option(min=1, help="Tokens of a request and its reply.")] = 128_000,
    fault: Annotated[str | None, typer.Option(help="An error once a question: step, truncated or column.")] = None,
) -> None:
    """Plan the questions of the files, by OpenAI (/v1/chat/completions, /v1/responses), Anthropic (/v1/messages) and Gemini."""
    from uql.base.errors import ConfigError
    from uql.benchmarks.nl import plans, replay_server
    from uql.benchmarks.nl.replay import FAULTS, Replay
    from uql.benchmarks.peers.server import serve_app
    from uql.llm.providers.oracle import Oracle

    chosen = next((each for each in FAULTS if each == fault), None)
    if fault is not None and chosen is None:
        raise ConfigError(f"--fault {fault} is not possible", help=f"--fault is one of {', '.join(FAULTS)}")
    fixtures = plans.read_folder(folder)
    reader = None if labels is None else Oracle(labels)
    service = replay_server.Service(Replay(fixtures, fault=chosen), reader, context)
    told = f"plans {len(fixtures)} questions as #{replay_server.MODEL}; Ctrl-C ends it"
    with contextlib.suppress(KeyboardInterrupt):
        serve_app(lambda: replay_server.app(service), port, lambda address: narrate(f"{address} {told}"))
