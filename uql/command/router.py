"""`uql router collect | train`: run the adapters on sub-queries with known answers, and learn from that which one to try first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import uql
from uql.command import options
from uql.command.outcome import UsageError, command, narrate, new_app, say
from uql.nl.adapters import available, open_adapters
from uql.nl.routers.stat import StatRouter
from uql.nl.routers.traces import Trace, read_traces, write_traces

app = new_app("Routers rank the adapters for each part of a question. They are learned offline, from traces.")


@command(app)
def collect(
    database: Annotated[Path, typer.Argument(help="DuckDB file with the tables that the sub-queries are about.")],
    questions: Annotated[
        Path, typer.Argument(help="Columns subquery, answer, operator; modality and sources where wanted.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the traces go.")] = Path("traces.parquet"),
    model: options.Model = None,
    adapters: Annotated[str, typer.Option(help="Names with commas between; all that are installed.")] = "",
) -> None:
    """Run every capable adapter on every sub-query."""
    from uql.nl.routers.collect import collect as collected, read_training

    options.existing(database)
    training = read_training(questions)
    chosen = open_adapters([name.strip() for name in adapters.split(",") if name.strip()] or available())

    def tell(trace: Trace) -> None:
        narrate(f"{trace.quality:.2f} {trace.adapter}: {trace.subquery[:80]}")

    with uql.connect(database, model=model) as con:
        traces = collected(con.session, training, chosen, tell=tell)
    write_traces(output, traces)
    say(output)


@command(app)
def train(
    traces: Annotated[Path, typer.Argument(help="Parquet of `uql router collect`.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="NAME.json; layers go to NAME.npz.")] = Path(
        "router.json"
    ),
    kind: Annotated[str, typer.Option(help="ml: a network over the sub-query; stat: the best by operator.")] = "ml",
    adapters: Annotated[
        str, typer.Option(help="Fit only the last layer of an ML router for these adapters; needs --from.")
    ] = "",
    start: Annotated[Path | None, typer.Option("--from", help="Router whose layers are kept.")] = None,
    embedder: Annotated[str | None, typer.Option(help="As the setting; by default the static one.")] = None,
    seed: Annotated[int, typer.Option(help="Of the layers before training.")] = 0,
) -> None:
    """Learn a router from traces and write it."""
    from uql.nl.routers import embedder_of, load_router
    from uql.nl.routers.ml import MLRouter

    examples = read_traces(traces)
    if kind not in ("ml", "stat"):
        raise UsageError(f"--kind {kind} is not possible", "ml or stat")
    if kind == "stat":
        stat = StatRouter.fit(examples)
        stat.save(output)
        for operator, means in stat.means.items():
            best = sorted(means, key=lambda name: -means[name])
            narrate(f"{operator}: " + ", ".join(f"{name} {means[name]:.3f}" for name in best))
        say(output)
        return
    encoder = embedder_of(embedder)
    if start is not None:
        before = load_router(start, encoder)
        if not isinstance(before, MLRouter):
            raise UsageError(f"{start} has no layers", "train without --from")
        names = [n.strip() for n in adapters.split(",") if n.strip()] or sorted({t.adapter for t in examples})
        router = before.with_adapters(examples, names)
    else:
        router = MLRouter.fit(examples, encoder, seed=seed)
    router.save(output)
    narrate(f"{router.trained_on} sub-queries, adapters {', '.join(router.adapters)}, loss {router.loss:.4f}")
    say(output.with_suffix(".json"))
