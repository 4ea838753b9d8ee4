"""docs/peers.md, from the kept results of the peers: `python -m uql.benchmarks.headline` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from uql.benchmarks.peers import verdicts
from uql.benchmarks.peers.environments import RESULTS
from uql.benchmarks.peers.suite import tokens_of
from uql.benchmarks.runner.records import read
from uql.benchmarks.runner.summary import Cell, Summary, cells, number, spread

NAMES = {  # of peers/results.jsonl → as pages call them
    "lotus-default": "LOTUS", "lotus-cascade": "LOTUS, cascade", "palimpzest-default": "Palimpzest", "thalamusdb-default": "ThalamusDB",
    "jevdb-default": "JEVDB", "uql": "UQL", "uql-exact": "UQL, every row",
}  # fmt: skip
MOVIE = ("lotus-default", "palimpzest-default", "thalamusdb-default", "jevdb-default", "uql", "uql-exact")
JOINED = ("lotus-default", "lotus-cascade", "uql", "uql-exact")
ALL_PAIRS = ("q5", "q6", "q7")
PAGE = """# Beside its peers

Made by `python -m uql.benchmarks.headline` from `benchmarks/peers/results.jsonl`: SemBench's ten movie questions, its MMQA ones over
texts, and two joins, put to each engine's own code, over the same rows, with the same simulated model behind an endpoint. It counts calls
and tokens of every engine, UQL's too, from the requests as they come, with the schema or the tools that some carry; a token is four
letters for all, and – stands where UQL was asked in process. Versions, questions, settings and what differs stand with
[all tables](../benchmarks/tables-kept.md#peers). `uql bench peers install` (5.8 GB each for LOTUS
and Palimpzest where PyTorch comes with its GPU libraries, 1.8 GB where it comes without) and `uql bench run peers` make them again.

## Ten movie questions, with a model that is always right

{movie}

UQL's figures with its default budget are means of {seeds} seeds. LOTUS asks each pair of a join, and Palimpzest where all are wanted, so
their calls are mostly those of Q5 to Q7 (ten pairs, ten pairs, all pairs): the row without them says what the rest costs. JEVDB asks a
decision model, which takes up to 100 judgments in a request: its {judgments} judgments are {requests} requests. ThalamusDB has no value
that a model reads (Q9, Q10), and ended at its own limit of 600 seconds on Q7.

## Wins and losses

Of questions that both engines were asked. Better and worse: the means differ by more than two standard errors where there are several
seeds, and at all where there are not.

{wins}

The same with a model that errs on 10 % of the rows:

{wins_with_errors}

## Joins beside LOTUS's cascade

144 pairs of reviews (do they express the same sentiment?), 144 of a question to a bank and a matter (is it about it?). The cascade joins
by the similarity of word vectors, maps the left rows as LOTUS's documentation has it, and asks the model where neither is sure, for a
recall and a precision of 0.9. UQL asks each pair, since its budget of 256 calls holds all of them, and returns what the model says.
benchmarks/peers/README.md compares both at the cascade's number of calls.

{joins}

## With a model that errs on 10 % of the rows

Mean score over the questions that every engine of a line was asked. Which rows the model errs on differs between engines, since it depends
on how a row is shown, and with each seed.

{errs}

Not measured: pictures and sounds, peers with a vendor's model.
"""


def page() -> str:
    """The page of what the results file holds."""
    summaries = cells([record for record in read(RESULTS) if not record.reason])
    movie = _of(summaries, "movie", "labels")
    own = [summary for cell, summary in movie.items() if cell[1] == "jevdb-default"]
    return PAGE.format(
        movie=_movie(movie),
        seeds=max(len(summary.records) for cell, summary in movie.items() if cell[1] == "uql"),
        judgments=number(sum(summary.mean("calls") for summary in own), 0),
        requests=number(sum(summary.mean("requests") for summary in own), 0),
        wins=_wins(summaries, "labels"),
        wins_with_errors=_wins(summaries, "labels-10"),
        joins=_joins(summaries),
        errs=_errs(summaries),
    )


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *rows))


def _of(summaries: Mapping[Cell, Summary], table: str, model: str) -> dict[Cell, Summary]:
    return {cell: summary for cell, summary in summaries.items() if (cell[0], cell[3]) == (table, model)}


def _movie(summaries: Mapping[Cell, Summary]) -> str:
    """A column for each engine: scores, calls, tokens."""
    own = {system: {c[2]: s for c, s in summaries.items() if c[1] == system} for system in MOVIE}
    rest = {system: [s for query, s in asked.items() if query not in ALL_PAIRS] for system, asked in own.items()}
    rows = [
        ["mean score", *(number(fmean(s.mean("quality") for s in own[system].values())) for system in MOVIE)],
        ["model calls", *(total(own[system].values(), "calls") for system in MOVIE)],
        ["model calls without Q5 to Q7", *(total(rest[system], "calls") for system in MOVIE)],
        ["tokens", *(number(sum(map(tokens_of, own[system].values())), 0) for system in MOVIE)],
        ["tokens without Q5 to Q7", *(number(sum(map(tokens_of, rest[system])), 0) for system in MOVIE)],
    ]
    return markdown(["", *(NAMES[system] for system in MOVIE)], rows)


def total(summaries: Iterable[Summary], name: str) -> str:
    """The sum of a number over questions."""
    return number(sum(summary.mean(name) for summary in summaries), 0)


def compared(
    summaries: Mapping[Cell, Summary], model: str = "labels"
) -> Iterator[tuple[str, str, dict[str, list[str]]]]:
    """Other engine, scenario, and column → the questions that both were asked, with a model that is always right or, `labels-10`, errs."""
    for table, title in (("movie", "movie"), ("mmqa", "MMQA"), ("joins", "joins")):
        by_system = verdicts.by_engine(_of(summaries, table, model), "uql", ("uql", "uql-exact"))
        yield from ((NAMES[system], title, columns) for system, columns in by_system.items() if system in NAMES)


def _wins(summaries: Mapping[Cell, Summary], model: str) -> str:
    """A line for each scenario and engine."""
    rows = [
        [f"{engine}, {title}", *(", ".join(columns[name]) or "–" for name in verdicts.HEAD[1:])]
        for engine, title, columns in compared(summaries, model)
    ]
    return markdown(["UQL beside", *verdicts.HEAD[1:]], rows)


def _joins(summaries: Mapping[Cell, Summary]) -> str:
    """A line for each join and model: score, calls and tokens of each engine."""
    rows = []
    for model in ("labels", "labels-10"):
        own = _of(summaries, "joins", model)
        for query in dict.fromkeys(cell[2] for cell in own):
            by_system = {cell[1]: summary for cell, summary in own.items() if cell[2] == query}
            rows.append([query, model, *(_cell(by_system.get(system)) for system in JOINED)])
    return markdown(["join", "model", *(NAMES[system] for system in JOINED)], rows)


def _cell(summary: Summary | None) -> str:
    if summary is None:
        return "–"
    calls, tokens = number(summary.mean("calls"), 0), number(tokens_of(summary), 0)
    seeds = len(summary.records)
    return f"{spread(summary.qualities)}, {calls} calls, {tokens} tokens" + (f" ({seeds} seeds)" if seeds > 1 else "")


def _errs(summaries: Mapping[Cell, Summary]) -> str:
    """A line for each scenario."""
    rows = []
    for table, title in (("movie", "movie"), ("mmqa", "MMQA")):
        by_system = with_errors(summaries, table)
        questions = len(by_system["uql"])
        rows.append([f"{title}, {questions} questions", *(_mean(by_system[system]) for system in MOVIE)])
    return markdown(["", *(NAMES[system] for system in MOVIE)], rows)


def with_errors(summaries: Mapping[Cell, Summary], table: str) -> dict[str, list[Summary]]:
    """Engine → the questions of a scenario that all were asked, with a model that errs on 10 % of the rows."""
    own = _of(summaries, table, "labels-10")
    by_system = {system: {c[2]: s for c, s in own.items() if c[1] == system} for system in MOVIE}
    shared = sorted(set.intersection(*(set(queries) for queries in by_system.values())))
    return {system: [queries[query] for query in shared] for system, queries in by_system.items()}


def _mean(own: Sequence[Summary]) -> str:
    seeds = sorted({len(summary.records) for summary in own})
    said = f"{seeds[0]} seed{'s' * (seeds[0] > 1)}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
    return f"{fmean(summary.mean('quality') for summary in own):.3f} ({said})"
