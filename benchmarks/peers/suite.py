"""Other engines beside this one: SemBench's movie questions, the same rows, the same simulated model."""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import duckdb

from uql.benchmarks.peers import verdicts
from uql.benchmarks.peers.environments import PEERS, Peer, version_of
from uql.benchmarks.peers.joins import TABLES, joins
from uql.benchmarks.peers.running import Served, Worker, installed
from uql.benchmarks.runner.records import Measured, Record
from uql.benchmarks.runner.suite import MODELS as ERRORS, Choice, Suite, Table, Task, is_simulated
from uql.benchmarks.runner.summary import Cell, Summary, cells, number, spread
from uql.benchmarks.sembench.run import judge
from uql.benchmarks.sembench.scenarios import SCENARIOS, Query, Scenario
from uql.benchmarks.sembench.suite import MOST_CALLS, SEEDS, run as run_uql, scenario as sembench_scenario

MODELS = ("labels", "labels-10")
HELPER = "labels-10"  # what a cascade asks first
ERROR_SEEDS = 20  # of a model that errs: each makes other answers wrong
JOINED = ("uql", "uql-exact", "lotus-default", "lotus-cascade")  # systems that the joins are put to
TITLES = {"movie": "Movie questions", "mmqa": "MMQA questions", "joins": "Joins"}
OURS: dict[str, dict[str, str]] = {"uql": {}, "uql-exact": {"budget": "all"}}
ENDPOINT = {"asked": "endpoint"}  # of our runs whose prompts the endpoint saw
SYSTEMS = (*OURS, *(f"{peer.name}-{setting}" for peer in PEERS.values() for setting in peer.settings))
TEXTS = {"ben_piazza": "*", "ben_piazza_texts": "*", "lizzy_caplan_texts": "*", "tampa_international_airport": "*"}
COLUMNS = {"destinations.toml": "Destinations"}  # that a prompt shows, where it is not `text`
SHOWN = "logos.toml"  # the oracle of questions over pictures
PICTURES = "the peers' endpoint reads texts, no pictures"
NOTES = (
    "calls and tokens of all are counted where the model is asked, from the requests as they come; a token is four letters for all",
    "rows beyond a question's LIMIT are left out; which answers of labels-10 are wrong depends on the seed and on how a row is shown",
    "a call of jevdb is one judgment: a request to its decision model carries up to 100, and its tokens are those of the whole request",
    "one request of thalamusdb's join shows up to ten rows a side: it is as many calls as it holds pairs",
    f"uql asks with its own budget (128 or 256 calls): means of {SEEDS} seeds; uql-exact asks every row; peers ask what they ask",
    f"with labels-10 each seed makes other answers wrong: {ERROR_SEEDS} seeds, of movie q7 one but for uql",
    "seconds of several seeds are of a machine with much other work",
    "–: not run; lotus asks each of 65,536 pairs on movie q5 to q7, palimpzest on q7, for six to nine minutes: with defaults alone",
    "thalamusdb-default ends at its own limits, 1,000 requests or 600 seconds, which movie q7 reaches",
    "tokens –: some questions (those over pictures, and runs kept from before) were asked of uql's oracle in process, which sees no prompt",
)
JOIN_NOTES = (
    "144 pairs of reviews, 144 of a question and a matter",
    "the cascade of lotus: recall and precision of 0.9, a similarity join of static word vectors, left rows mapped as its "
    "documentation has it (to the sentiment, to the matter of the question)",
    "uql asks each pair, as its budget of 256 calls holds all of them; where a budget does not, it asks the nearest pairs, or an attribute",
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
        for name in (*SCENARIOS, "joins"):
            held = scenario(name, choice, model)
            for query in held.queries:
                yield from _asked(held, query, model, choice, reasons)


@lru_cache(maxsize=8)
def scenario(name: str, choice: Choice, model: str) -> Scenario:
    """One of SemBench's scenarios, or the joins, with an oracle that errs as the model's name says."""
    if name != "joins":
        return sembench_scenario(name, choice, model)
    work = choice.work / "joins" / model
    work.mkdir(parents=True, exist_ok=True)
    return joins(choice.data, work, ERRORS[model])


def _asked(held: Scenario, query: Query, model: str, choice: Choice, reasons: Mapping[str, str]) -> Iterator[Task]:
    """One question, put to every system."""
    errs = ERRORS[model] > 0
    for system, settings in OURS.items():
        if choice.wants(system, query.name):
            run_it = partial(run_ours, held, query, choice, settings)
            given = {"budget": "default", **settings, **({} if query.oracle.name == SHOWN else ENDPOINT)}
            calls = MOST_CALLS if system == "uql" else None
            seeds = ERROR_SEEDS if errs else SEEDS if system == "uql" else 1
            yield Task(held.name, system, query.name, model, run_it, given, seeds, calls, group="peers")
    for peer in PEERS.values():
        for setting in peer.settings:
            system = f"{peer.name}-{setting}"
            if choice.wants(system, query.name) and (held.name != "joins" or system in JOINED):
                reason = reasons[peer.name] or (PICTURES if query.oracle.name == SHOWN else "")
                run_peer = None if reason else partial(run, peer, held.name, query, setting, choice)
                given = {"setting": setting}
                seeds = ERROR_SEEDS if errs else SEEDS if held.name == "joins" and setting == "cascade" else 1
                yield Task(
                    held.name, system, query.name, model, run_peer, given, seeds, None, reason=reason, group="peers"
                )


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
    scenario("joins", choice, MODELS[0])  # writes its tables
    sources = {"reviews": ("id, movie, text", choice.data / "movie_reviews" / "data.parquet")}
    sources |= {name: (what, choice.data / "sembench_mmqa" / f"{name}.parquet") for name, what in TEXTS.items()}
    sources |= {name: ("*", choice.work / "joins" / MODELS[0] / f"{name}.parquet") for name in TABLES}
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


def run_ours(held: Scenario, query: Query, choice: Choice, settings: Mapping[str, str], seed: int = 0) -> Measured:
    """This engine's answer to one question, asked of the endpoint as a peer asks; of pictures, in this process."""
    if query.oracle.name == SHOWN:
        return run_uql(held, query, MODELS[0], choice, settings, seed)
    asked = served(query.oracle)
    asked.reset(seed)
    found = run_uql(held, query, f"{asked.url}/v1#oracle", choice, settings, seed)
    counted = asked.stats()
    names = ("calls", "requests", "input_tokens", "output_tokens")
    return replace(found, **{name: counted[name] for name in names}, problem=found.problem or refused(counted))


def refused(counted: Mapping[str, Any]) -> str:
    """What is wrong where the endpoint could not read a prompt; empty where it could read all."""
    if not counted["refused"]:
        return ""
    return f"{counted['refused']} prompts could not be read: {counted['last_refusal'][:120]}"


def run(peer: Peer, name: str, query: Query, setting: str, choice: Choice, seed: int = 0) -> Measured:
    """A peer's answer to one question."""
    asked = served(query.oracle)
    helper = served(helper_of(name, query, choice)) if setting == "cascade" else None
    if helper is asked:  # a model that is its own helper is counted once
        helper = None
    for each in filter(None, (asked, helper)):
        each.reset(seed)
    cheap = helper or asked
    said = worker(peer, choice).run(f"{name}_{query.name}", setting, f"{asked.url}/v1", f"{cheap.url}/v1", seed)
    counted = asked.stats()
    cheaper = helper.stats()["calls"] if helper is not None else 0
    rows = [tuple(row) for row in said.get("rows", [])][: query.limit]  # thalamusdb gives more than its LIMIT
    problem = str(said.get("problem", "")) or refused(counted)
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
    """For each scenario and model: every question with each engine as it comes, with its other settings, and who is better at what."""
    found = []
    held = cells(records)
    for name, model in dict.fromkeys((cell[0], cell[3]) for cell in held):
        mine = {cell: summary for cell, summary in held.items() if (cell[0], cell[3]) == (name, model)}
        plain = [c[1] for c in mine if c[1] in OURS or c[1].endswith("-default") or name == "joins"]
        other = [c[1] for c in mine if c[1] not in plain]
        what = f"{TITLES.get(name, name)}, model {model}"
        found.append(
            _table(what, mine, list(dict.fromkeys(plain)), NOTES if name != "joins" else (*NOTES[:2], *JOIN_NOTES))
        )
        if any(not s.reason for c, s in mine.items() if c[1] in other):
            found.append(_table(f"{what}: other settings", mine, ["uql", *dict.fromkeys(other)], SETTINGS))
        found.append(verdicts.table(f"{what}: uql beside each engine", mine, "uql", tuple(OURS)))
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
        tokens = number(sum(map(tokens_of, all_of)), 0)
        total.append(f"{quality:.3f} ({len(all_of)} asked; {calls:,.0f} calls, {tokens} tokens, {seconds:,.0f} s)")
    reasons: dict[tuple[str, str], list[str]] = {}
    for c, s in mine.items():
        if s.reason and c[1] in systems:
            reasons.setdefault((c[1], s.reason), []).append(c[2])
    missing = [f"not run: {system} on {', '.join(asked)}: {why}" for (system, why), asked in reasons.items()]
    head = ("question", "measure", *ran)
    return Table(title, head, (*rows, tuple(total)), (*notes, *problems, *missing))


def tokens_of(summary: Summary) -> float:
    """The mean of the tokens that the endpoint counted; NaN where some runs did not go through it."""
    counted = all(r.system not in OURS or r.settings.get("asked") == ENDPOINT["asked"] for r in summary.records)
    return summary.mean("tokens") if counted else float("nan")


def _cost(summary: Summary) -> str:
    cheaper = summary.mean("cheaper calls")
    also = f" + {cheaper:,.0f}" if cheaper > 0 else ""
    return f"{number(summary.mean('calls'), 0)}{also} calls, {number(summary.seconds, 1)} s"


SUITE = Suite(
    "peers",
    "lotus-ai, palimpzest, thalamusdb and jevdb beside this engine: SemBench's movie and MMQA questions, same rows, same simulated model",
    SYSTEMS,
    MODELS,
    tasks,
    tables,
    needs=("movie_reviews", "sembench_mmqa", "banking77"),
)
