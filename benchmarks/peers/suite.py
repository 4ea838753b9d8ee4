"""Other engines beside this one: SemBench's movie questions, the same rows, the same simulated model."""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial

import duckdb

from uql.benchmarks.peers.environments import PEERS, Peer, version_of
from uql.benchmarks.peers.running import Served, Worker, installed
from uql.benchmarks.runner.records import Measured, Record
from uql.benchmarks.runner.suite import Choice, Suite, Table, Task, is_simulated
from uql.benchmarks.runner.summary import Summary, cells, number, spread
from uql.benchmarks.sembench.run import judge
from uql.benchmarks.sembench.scenarios import Query
from uql.benchmarks.sembench.suite import run as run_uql
from uql.benchmarks.sembench.suite import scenario

MODELS = ("labels", "labels-10")
OURS: dict[str, dict[str, str]] = {"uql": {}, "uql-exact": {"budget": "all"}}
SYSTEMS = (*OURS, *(f"{peer.name}-{setting}" for peer in PEERS.values() for setting in peer.settings))
NOTES = (
    "calls and tokens of the peers are counted where the model is asked; a token is four letters for all",
    "tokens of uql are of row and question alone, since its oracle is in process and sees no prompt: compare calls, not tokens, with it",
    "rows beyond a question's LIMIT are left out; which answers of labels-10 are wrong depends on how a row is shown: not the same for all",
    "one request of thalamusdb's join shows up to ten rows a side: it is as many calls as it holds pairs",
    "uql asks with its own budget (128 or 256 calls), uql-exact asks every row; peers ask what they ask",
    "recommended: lotus with 64 requests at a time and temperature 0, palimpzest without critics and mixtures, thalamusdb without "
    "its limit of 1,000 calls",
)


def tasks(choice: Choice) -> Iterator[Task]:
    """Every question for each system that is installed; the others with the reason."""
    reasons = {peer.name: installed(peer) for peer in PEERS.values()}
    for model in choice.models or MODELS:
        if not is_simulated(model):
            yield Task("movie", "uql", "all", model, None, seeds=1, reason="peers are compared with label tables only")
            continue
        held = scenario("movie", choice, model)
        for query in held.queries:
            for system, settings in OURS.items():
                if choice.wants(system, query.name):
                    yield Task(
                        "movie",
                        system,
                        query.name,
                        model,
                        partial(run_uql, held, query, model, choice, settings),
                        seeds=1,
                        group="peers",
                    )
            for peer in PEERS.values():
                for setting in peer.settings:
                    system = f"{peer.name}-{setting}"
                    if choice.wants(system, query.name):
                        yield Task(
                            "movie",
                            system,
                            query.name,
                            model,
                            None if reasons[peer.name] else partial(run, peer, query, model, setting, choice),
                            seeds=1,
                            reason=reasons[peer.name],
                            group="peers",
                        )


@lru_cache(maxsize=8)
def served(model: str, choice: Choice) -> Served:
    """The oracle of a model behind its endpoint, until this process ends."""
    found = Served(scenario("movie", choice, model).queries[0].oracle).start()
    atexit.register(found.stop)
    return found


@lru_cache(maxsize=32)
def worker(peer: Peer, model: str, choice: Choice) -> Worker:
    """A peer's worker, until this process ends."""
    reviews = choice.work / "peers" / "reviews.jsonl"
    reviews.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as con:
        data = choice.data / "movie_reviews" / "data.parquet"
        con.execute(f"COPY (SELECT id, movie, text FROM '{data}' ORDER BY id) TO '{reviews}' (FORMAT json)")
    log = choice.work / "peers" / f"{peer.name}-{model}.log"
    log.unlink(missing_ok=True)
    found = Worker(peer, reviews, f"{served(model, choice).url}/v1", log)
    atexit.register(found.stop)
    return found


def run(peer: Peer, query: Query, model: str, setting: str, choice: Choice, seed: int = 0) -> Measured:
    """A peer's answer to one question."""
    asked = served(model, choice)
    asked.stats(reset=True)
    said = worker(peer, model, choice).run(query.name, setting)
    counted = asked.stats()
    rows = [tuple(row) for row in said.get("rows", [])][: query.limit]  # thalamusdb gives more than its LIMIT
    problem = str(said.get("problem", ""))
    if not problem and counted["refused"]:
        problem = f"{counted['refused']} prompts could not be read: {counted['last_refusal'][:120]}"
    return Measured(
        sorted(map(str, rows)),
        0.0 if "rows" not in said else judge(query, rows),
        query.measure,
        counted["calls"],
        counted["requests"],
        0,
        counted["input_tokens"],
        counted["output_tokens"],
        0.0,
        float(said.get("seconds", 0.0)),
        {"rows": float(len(rows))},
        problem=problem,
        versions={peer.distribution: version_of(peer) or "none"},
    )


def tables(records: Sequence[Record]) -> list[Table]:
    """For each model: every question with each system, and who was best at quality and at calls."""
    found = []
    held = cells(records)
    for model in dict.fromkeys(cell[3] for cell in held):
        own = {(c[1], c[2]): s for c, s in held.items() if c[3] == model and not s.reason}
        systems = list(dict.fromkeys(system for system, _ in own))
        queries = sorted({query for _, query in own}, key=lambda q: (len(q), q))
        rows, problems = [], []
        for query in queries:
            row = [query, next((s.measure for (_, q), s in own.items() if q == query and s.measure), "")]
            for system in systems:
                summary = own.get((system, query))
                if summary is None:
                    row.append("–")
                    continue
                cost = f"{number(summary.mean('calls'), 0)} calls, {number(summary.seconds, 1)} s"
                row.append(f"{spread(summary.qualities)} ({cost})")
                problems += [f"{system} on {query}: {problem}" for problem in summary.problems[:1]]
            rows.append(tuple(row))
        total = ["mean or sum", ""]
        for system in systems:
            mine = [s for (name, _), s in own.items() if name == system]
            quality = sum(s.mean("quality") for s in mine) / len(mine)
            calls, seconds = sum(s.mean("calls") for s in mine), sum(s.seconds for s in mine)
            tokens = sum(s.mean("tokens") for s in mine)
            total.append(
                f"{quality:.3f} ({len(mine)} asked; {calls:,.0f} calls, {tokens:,.0f} tokens, {seconds:,.0f} s)"
            )
        missing = {f"not run: {c[1]}: {s.reason}" for c, s in held.items() if c[3] == model and s.reason}
        head = ("question", "measure", *systems)
        notes = (*NOTES, *_won(own, queries, systems), *problems, *sorted(missing))
        found.append(Table(f"Movie questions, model {model}", head, (*rows, tuple(total)), notes))
    return found


def _won(own: Mapping[tuple[str, str], Summary], queries: Sequence[str], systems: Sequence[str]) -> list[str]:
    """Where another engine had the better answer than uql, or as good a one for fewer calls."""
    lines = []
    for query in queries:
        mine = own.get(("uql", query))
        if mine is None:
            continue
        for system in systems:
            other = own.get((system, query))
            if system in OURS or other is None:
                continue
            gain, calls = other.mean("quality") - mine.mean("quality"), other.mean("calls") - mine.mean("calls")
            if gain > 1e-9:
                lines.append(f"{system} is better than uql on {query} by {gain:.3f}, with {calls:+,.0f} calls")
            elif abs(gain) <= 1e-9 and calls < 0:
                lines.append(f"{system} is as good as uql on {query} with {-calls:,.0f} calls fewer")
    return lines


SUITE = Suite(
    "peers",
    "lotus-ai, palimpzest and thalamusdb beside this engine: the movie questions, the same rows, the same simulated model",
    SYSTEMS,
    MODELS,
    tasks,
    tables,
    needs=("movie_reviews",),
)
