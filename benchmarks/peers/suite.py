"""Other engines beside this one: SemBench's movie questions, the same rows, the same simulated model."""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

import duckdb

from uql.benchmarks.peers.environments import PEERS, Peer, version_of
from uql.benchmarks.peers.running import Served, Worker, installed
from uql.benchmarks.runner.records import Measured, Record
from uql.benchmarks.runner.suite import Choice, Suite, Table, Task, is_simulated
from uql.benchmarks.runner.summary import Cell, Summary, cells, number, spread
from uql.benchmarks.sembench.run import judge
from uql.benchmarks.sembench.scenarios import SCENARIOS, Query, Scenario
from uql.benchmarks.sembench.suite import MOST_CALLS, SEEDS, run as run_uql, scenario

MODELS = ("labels", "labels-10")
HELPER = "labels-10"  # what a cascade asks first
OURS: dict[str, dict[str, str]] = {"uql": {}, "uql-exact": {"budget": "all"}}
SYSTEMS = (*OURS, *(f"{peer.name}-{setting}" for peer in PEERS.values() for setting in peer.settings))
TEXTS = {"ben_piazza": "*", "ben_piazza_texts": "*", "lizzy_caplan_texts": "*", "tampa_international_airport": "*"}
COLUMNS = {"destinations.toml": "Destinations"}  # that a prompt shows, where it is not `text`
PICTURES = "the peers' endpoint reads texts, no pictures"
NOTES = (
    "calls and tokens of the peers are counted where the model is asked; a token is four letters for all",
    "tokens of uql are of row and question alone, since its oracle is in process and sees no prompt: compare calls, not tokens, with it",
    "rows beyond a question's LIMIT are left out; which answers of labels-10 are wrong depends on how a row is shown: not the same for all",
    "a call of jevdb is one judgment: a request to its decision model carries up to 100, and its tokens are those of the whole request",
    "one request of thalamusdb's join shows up to ten rows a side: it is as many calls as it holds pairs",
    f"uql asks with its own budget (128 or 256 calls): means of {SEEDS} seeds; uql-exact asks every row; peers ask what they ask",
    "–: not run; lotus asks each of 65,536 pairs on movie q5 to q7, palimpzest on q7, for six to nine minutes: with defaults alone",
    "thalamusdb-default ends at its own limits, 1,000 requests or 600 seconds, which movie q7 reaches",
)
SETTINGS = (
    "recommended: lotus with 64 requests at a time and temperature 0, palimpzest without critics and mixtures, thalamusdb without "
    "its limit of 1,000 calls",
    f"cascade: lotus with {HELPER} as the cheaper model, whose calls stand behind a +, static word vectors for joins, recall and precision "
    "of 0.9; the rest as it comes",
    "mincost: palimpzest with the policy MinCost in place of MaxQuality; bounded: thalamusdb until bounds of an aggregate are 0.1 apart",
)


def tasks(choice: Choice) -> Iterator[Task]:
    """Every question for each system that is installed; the others with the reason."""
    reasons = {peer.name: installed(peer) for peer in PEERS.values()}
    for model in choice.models or MODELS:
        if not is_simulated(model):
            yield Task("movie", "uql", "all", model, None, seeds=1, reason="peers are compared with label tables only")
            continue
        for name in SCENARIOS:
            held = scenario(name, choice, model)
            for query in held.queries:
                yield from _asked(held, query, model, choice, reasons)


def _asked(held: Scenario, query: Query, model: str, choice: Choice, reasons: Mapping[str, str]) -> Iterator[Task]:
    """One question, put to every system."""
    for system, settings in OURS.items():
        if choice.wants(system, query.name):
            run_it = partial(run_uql, held, query, model, choice, settings)
            given = {"budget": "default", **settings}
            calls = MOST_CALLS if system == "uql" else None
            seeds = SEEDS if system == "uql" else 1
            yield Task(held.name, system, query.name, model, run_it, given, seeds, calls, group="peers")
    for peer in PEERS.values():
        for setting in peer.settings:
            system = f"{peer.name}-{setting}"
            if choice.wants(system, query.name):
                reason = reasons[peer.name] or (PICTURES if query.oracle.name == "logos.toml" else "")
                run_peer = None if reason else partial(run, peer, held.name, query, model, setting, choice)
                given = {"setting": setting}
                yield Task(held.name, system, query.name, model, run_peer, given, 1, None, reason=reason, group="peers")


@lru_cache(maxsize=16)
def served(oracle: Path) -> Served:
    """An oracle behind its endpoint, until this process ends."""
    found = Served(oracle, COLUMNS.get(oracle.name, "text")).start()
    atexit.register(found.stop)
    return found


@lru_cache(maxsize=8)
def worker(peer: Peer, choice: Choice) -> Worker:
    """A peer's worker, until this process ends."""
    folder = choice.work / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    sources = {"reviews": ("id, movie, text", choice.data / "movie_reviews" / "data.parquet")}
    sources |= {name: (what, choice.data / "sembench_mmqa" / f"{name}.parquet") for name, what in TEXTS.items()}
    with duckdb.connect() as con:
        for name, (what, source) in sources.items():
            con.execute(f"COPY (SELECT {what} FROM '{source}' ORDER BY ALL) TO '{folder / name}.jsonl' (FORMAT json)")
    log = folder / f"{peer.name}.log"
    log.unlink(missing_ok=True)
    found = Worker(peer, {name: str(folder / f"{name}.jsonl") for name in sources}, log)
    atexit.register(found.stop)
    return found


def helper_of(name: str, query: Query, choice: Choice) -> Path:
    """The oracle of the cheaper model for a question."""
    queries = scenario(name, choice, HELPER).queries
    return next(other.oracle for other in queries if other.name == query.name)


def run(peer: Peer, name: str, query: Query, model: str, setting: str, choice: Choice, seed: int = 0) -> Measured:
    """A peer's answer to one question."""
    asked = served(query.oracle)
    helper = served(helper_of(name, query, choice)) if setting == "cascade" else None
    if helper is asked:  # a model that is its own helper is counted once
        helper = None
    for each in filter(None, (asked, helper)):
        each.stats(reset=True)
    cheap = helper or asked
    said = worker(peer, choice).run(f"{name}_{query.name}", setting, f"{asked.url}/v1", f"{cheap.url}/v1")
    counted = asked.stats()
    cheaper = helper.stats()["calls"] if helper is not None else 0
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
        {"rows": float(len(rows)), "cheaper calls": float(cheaper)},
        problem=problem,
        versions={peer.distribution: version_of(peer) or "none"},
    )


def tables(records: Sequence[Record]) -> list[Table]:
    """For each scenario and model: every question with each engine as it comes, and with its other settings."""
    found = []
    held = cells(records)
    for name, model in dict.fromkeys((cell[0], cell[3]) for cell in held):
        mine = {cell: summary for cell, summary in held.items() if (cell[0], cell[3]) == (name, model)}
        plain = [c[1] for c in mine if c[1] in OURS or c[1].endswith("-default")]
        other = [c[1] for c in mine if c[1] not in plain]
        what = f"{'Movie' if name == 'movie' else 'MMQA'} questions, model {model}"
        found.append(_table(what, mine, list(dict.fromkeys(plain)), NOTES))
        if any(not s.reason for c, s in mine.items() if c[1] in other):
            found.append(_table(f"{what}: other settings", mine, ["uql", *dict.fromkeys(other)], SETTINGS))
    return found


def _table(title: str, mine: Mapping[Cell, Summary], systems: Sequence[str], notes: Sequence[str]) -> Table:
    own = {(c[1], c[2]): s for c, s in mine.items() if not s.reason}
    ran = [system for system in systems if any(name == system for name, _ in own)]
    queries = sorted({query for _, query in own}, key=lambda q: (len(q.rstrip("abcdefg")), q))
    rows, problems = [], []
    for query in queries:
        row = [query, next((s.measure for (_, q), s in own.items() if q == query and s.measure), "")]
        for system in ran:
            summary = own.get((system, query))
            row.append("–" if summary is None else f"{spread(summary.qualities)} ({_cost(summary)})")
            problems += [f"{system} on {query}: {p}" for p in (summary.problems[:1] if summary else [])]
        rows.append(tuple(row))
    total = ["mean or sum", ""]
    for system in ran:
        all_of = [s for (name, _), s in own.items() if name == system]
        quality = sum(s.mean("quality") for s in all_of) / len(all_of)
        calls, seconds = sum(s.mean("calls") for s in all_of), sum(s.seconds for s in all_of)
        tokens = sum(s.mean("tokens") for s in all_of)
        total.append(f"{quality:.3f} ({len(all_of)} asked; {calls:,.0f} calls, {tokens:,.0f} tokens, {seconds:,.0f} s)")
    reasons: dict[tuple[str, str], list[str]] = {}
    for c, s in mine.items():
        if s.reason and c[1] in systems:
            reasons.setdefault((c[1], s.reason), []).append(c[2])
    missing = [f"not run: {system} on {', '.join(asked)}: {why}" for (system, why), asked in reasons.items()]
    head = ("question", "measure", *ran)
    return Table(title, head, (*rows, tuple(total)), (*notes, *_won(own, queries, ran), *problems, *missing))


def _cost(summary: Summary) -> str:
    cheaper = summary.mean("cheaper calls")
    also = f" + {cheaper:,.0f}" if cheaper > 0 else ""
    return f"{number(summary.mean('calls'), 0)}{also} calls, {number(summary.seconds, 1)} s"


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
    "lotus-ai, palimpzest, thalamusdb and jevdb beside this engine: SemBench's movie and MMQA questions, same rows, same simulated model",
    SYSTEMS,
    MODELS,
    tasks,
    tables,
    needs=("movie_reviews", "sembench_mmqa"),
)
