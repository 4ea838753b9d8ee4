"""`python -m uql.benchmarks.nl plans | ehrxqa | discovery | routing | ask | papers | plain | traces | report`.

`plans`: the plans written by hand with readers of the labels. `ehrxqa`: one statement a question over a hospital of 18 tables.
`discovery`: the tables and columns that a prompt shows, of those needed. `routing`: which modality.
`ask SUITE --model M --system S`: questions answered by a system; rows go to a file and are not made twice.
`papers meta-engine | caesura | m2ex`: the tables of a paper in its layout, planned by the replaying model behind OpenAI's protocol.
`plain --model M --route R`: questions that plain columns answer, over small databases, by the routes of a small model; needs no data.
`traces --model M`: what each adapter makes of fixed questions, to train a router on. `report`: the papers' tables from the rows.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from uql.benchmarks.nl import (
    discovery,
    ehrxqa,
    fixed,
    handwritten,
    plain_columns,
    report,
    routing,
    systems,
    traces,
)
from uql.benchmarks.nl.suites import SUITES

if TYPE_CHECKING:
    from uql.nl.routers.traces import Trace

PAPER_SUITES = {
    "meta-engine": ("rotowire", "artwork"),
    "caesura": ("rotowire", "artwork"),
    "m2ex": ("rotowire", "artwork", "ehrxqa"),
}
REPLAYED = "#replay"  # ends the name of the replaying model, whose port is another each time
WHAT = ("plans", "ehrxqa", "discovery", "routing", "ask", "papers", "plain", "traces", "report")


def main(arguments: list[str] | None = None) -> int:
    """Prints the tables. Exit code 1 where fewer than 98 % of the plans by hand are right; 2 where the data is not there."""
    parser = argparse.ArgumentParser(prog="uql.benchmarks.nl", description=__doc__)
    parser.add_argument("what", choices=WHAT, nargs="?", default="plans")
    parser.add_argument(
        "suites",
        nargs="*",
        default=[],
        help=f"for plans of {', '.join(handwritten.SUITES)}; for ask of {', '.join(SUITES)}",
    )
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("UQL_DATA", "../shared/data")))
    parser.add_argument("--model", help="that plans")
    parser.add_argument(
        "--system", action="append", choices=systems.SYSTEMS, help="several times for several; dag by default"
    )
    parser.add_argument(
        "--route",
        action="append",
        choices=tuple(plain_columns.ROUTES),
        help="for plain, several times for several",
    )
    parser.add_argument("--limit", type=int, help="questions a suite at most, evenly spread")
    parser.add_argument(
        "--fixed",
        nargs="?",
        const="first",
        choices=[*fixed.SETS, *fixed.PARTS],
        help="only fixed questions (fixed.py): a set of 40, or a part of one",
    )
    parser.add_argument("--only", action="append", default=[], help="the id of a question, several times for several")
    parser.add_argument("--router", type=Path, help="of `uql router train`, for stat_router and ml_router")
    parser.add_argument("--output", type=Path, default=Path("traces.parquet"), help="where the traces go")
    parser.add_argument("--judge", help="model that judges Semantic Hit; without, it is not judged")
    parser.add_argument("--rows", type=Path, default=Path("nl-rows.jsonl"), help="where the rows of ask are kept")
    given = parser.parse_args(arguments)
    if given.what == "plain":
        return _plain(given)
    shared = given.data.resolve()
    if not (shared / "rotowire").is_dir():
        print(f"no data in {shared}: set UQL_DATA or --data", file=sys.stderr)
        return 2
    known = {"plans": handwritten.SUITES, "papers": tuple(report.PAPERS)}.get(given.what, tuple(SUITES))
    unknown = [name for name in given.suites if name not in known]
    if unknown:
        parser.error(f"there is no suite {unknown[0]}; there are {', '.join(known)}")
    match given.what:
        case "plans":
            return _plans(given.suites or list(known), shared)
        case "ehrxqa":
            with tempfile.TemporaryDirectory() as work:
                print(ehrxqa.report(ehrxqa.run(shared, Path(work))))
        case "discovery":
            from uql.features.static import static_embedder

            print(discovery.report(discovery.run(shared, static_embedder())))
        case "routing":
            from uql.nl.routers import embedder_of

            print(routing.report([routing.run(name, shared, embedder_of(None)) for name in ("mmqa-routing", "m2qa")]))
        case "ask":
            return _ask(given, shared)
        case "papers":
            _papers(given, shared)
        case "traces":
            return _traces(given, shared)
        case "report":
            print(report.tables(systems.read(given.rows), given.model))
    return 0


def _plans(suites: list[str], shared: Path) -> int:
    right = judged = 0
    for name in suites:
        rows = handwritten.run(name, shared)
        print(handwritten.report(name, rows), flush=True)
        right += sum(bool(r.right) for r in rows)
        judged += sum(r.right is not None for r in rows)
    print(f"all: {right} of {judged} answers equal the reference ({right / max(1, judged):.1%})")
    return 0 if right >= 0.98 * judged else 1


def _ask(given: argparse.Namespace, shared: Path) -> int:
    router = None
    if given.router is not None:
        from uql.nl.routers import load_router

        router = load_router(given.router)
    for suite in given.suites or (list(fixed.CHECKED) if given.fixed else list(SUITES)):
        for system in given.system or ["dag"]:
            why = systems.reason(suite, system, given.model)
            if not why and systems.takes_router(system) and router is None:
                why = "needs --router"
            if why:
                print(f"{suite}, {system}: not run: {why}", flush=True)
                continue
            known = systems.read(given.rows)
            systems.run(
                suite,
                shared,
                system=system,
                model=given.model,
                limit=given.limit,
                only=given.only or (fixed.questions(suite, given.fixed) if given.fixed else ()),
                router=router,
                judge=given.judge,
                done=known,
                tell=_told(given.rows),
            )
    rows = systems.read(given.rows)
    if given.fixed:
        print(report.planning(rows))
    print(report.tables(rows, given.model))
    return 0


def _papers(given: argparse.Namespace, shared: Path) -> None:
    """Asks what the tables need and the file of rows does not have, and prints them."""
    from uql.benchmarks.nl import plans, replay_server
    from uql.benchmarks.nl.replay import Replay

    fixtures = [*plans.read_folder(plans.FOLDER), *ehrxqa.fixtures(ehrxqa.questions(shared))]
    with replay_server.served(replay_server.Service(Replay(fixtures))) as address:
        model = f"{address}/v1{REPLAYED}"
        for paper in given.suites or list(report.PAPERS):
            parts = systems.ABLATIONS if paper == "meta-engine" else ()
            for suite, system in itertools.product(PAPER_SUITES[paper], given.system or (*systems.MODES, *parts)):
                done = [replace(row, model=model) for row in systems.read(given.rows) if row.model.endswith(REPLAYED)]
                tell = _told(given.rows)
                systems.run(
                    suite, shared, system=system, model=model, limit=given.limit, only=given.only, done=done, tell=tell
                )
            replayed = [row for row in systems.read(given.rows) if row.model.endswith(REPLAYED)]
            print(
                report.PAPERS[paper]([row for row in replayed if row.suite in PAPER_SUITES[paper]], model), flush=True
            )


def _plain(given: argparse.Namespace) -> int:
    if given.model is None:
        print("plain needs a model that plans: --model", file=sys.stderr)
        return 2

    def tell(row: plain_columns.Row) -> None:
        plain_columns.write(given.rows, row)
        said = f"{row.said[:80]} {'; '.join(row.notes)[:120]}"
        print(f"{row.question} {row.route}: {row.verdict}, {row.calls} calls, {row.seconds:.1f} s: {said}", flush=True)

    routes = given.route or ["default"]
    plain_columns.run(given.model, routes, only=given.only, done=plain_columns.read(given.rows), tell=tell)
    print(plain_columns.report(plain_columns.read(given.rows)))
    return 0


def _traces(given: argparse.Namespace, shared: Path) -> int:
    from uql.nl.routers.traces import write_traces

    if given.model is None:
        print("traces need a model that plans: --model", file=sys.stderr)
        return 2

    def tell(trace: Trace) -> None:
        print(f"{trace.quality:.2f} {trace.adapter} ({trace.seconds:.1f} s): {trace.subquery[:80]}", flush=True)

    write_traces(given.output, traces.run(shared, given.model, limit=given.limit, tell=tell))
    print(f"{given.output}: uql router train {given.output} -o router.json, then ask --router router.json")
    return 0


def _told(path: Path) -> Callable[[systems.Row], None]:
    def tell(row: systems.Row) -> None:
        systems.write(path, [row])
        mark = "right" if row.right == 1.0 else f"wrong ({row.error})"
        print(
            f"{row.suite} {row.question} {row.system}: {mark}, {row.calls} calls, {row.seconds:.1f} s: {row.said[:80]}",
            flush=True,
        )

    return tell


if __name__ == "__main__":
    sys.exit(main())
