"""What the kept runs of rivals say: COUNT at equal error (sampling/rivals.jsonl), and sets of rows with a stated precision and recall
(promise/results.jsonl, and held_out.jsonl with more seeds of fewer predicates)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from statistics import fmean, geometric_mean, median

from uql.benchmarks.promise.__main__ import DELTA, TARGET, Cell
from uql.benchmarks.runner.suite import Table
from uql.benchmarks.runner.summary import number
from uql.benchmarks.sampling.rivals import BUDGETS, FEWEST, OURS, RivalRow
from uql.llm.prices import price_of

MODEL, CHEAP_MODEL = "openai:gpt-5", "openai:gpt-5-nano"  # whose prices USD are at
MOST = 1e7  # calls that are written in full
STATES_NOTHING = "csv and bigquery state nothing, so that nothing they state is false: what they miss is what a user would have to know"
GOAL = 1.5  # the best rival's calls over our own


@dataclass(frozen=True, slots=True)
class CountSummary:
    """A method of COUNT over all predicates, at the error that the engine has with its first budget.

    Attributes:
        calls: those that it needs, by predicate, along the line through its errors, wherever it leads.
        without: predicates on which it has none to give: most runs fail, or the error does not fall.
        bounded_calls: geometric mean of the calls between FEWEST and every row; every row where it has none to give.
        usd: of all predicates, of the bounded calls.
        failures: share of the runs without an answer.
    """

    method: str
    calls: tuple[float, ...]
    without: int
    bounded_calls: float
    usd: float
    failures: float


def usd(model: str, tokens: float) -> float:
    """USD of one call that shows so many tokens and is answered by one."""
    price = price_of(model)
    assert price is not None, model
    return (tokens * price.input + price.output) / 1e6


def count_summaries(rows: Sequence[RivalRow], *, clipped: bool = False) -> list[CountSummary]:
    """A summary of each method; `clipped`: of estimates clipped to what the answers allow."""
    errors = {row.predicate: _error(row, 0, clipped) for row in rows if row.method == OURS}
    summaries = []
    for method in dict.fromkeys(row.method for row in rows):
        own = [row for row in rows if row.method == method and row.predicate in errors]
        calls = [
            float(BUDGETS[0]) if method == OURS else row.calls_for(errors[row.predicate], clipped=clipped)
            for row in own
        ]
        bounded = [row.bounded(each) for row, each in zip(own, calls, strict=True)]
        cost = sum(each * usd(MODEL, row.tokens) for each, row in zip(bounded, own, strict=True))
        failed = fmean(share for row in own for share in row.failures)
        reached = tuple(each for each in calls if each is not None)
        summaries.append(
            CountSummary(method, reached, len(calls) - len(reached), geometric_mean(bounded), cost, failed)
        )
    return summaries


def calls_text(calls: float | None) -> str:
    """Calls for a table: none where there are none to give, a power of ten where no table has so many rows.

    >>> calls_text(1234.5), calls_text(4.8e36), calls_text(None)
    ('1,234', '10^37', 'none')
    """
    if calls is None:
        return "none"
    return number(calls, 0) if calls < MOST else f"10^{log10(calls):.0f}"


def _error(row: RivalRow, n: int, clipped: bool) -> float:
    error = (row.clipped_errors if clipped else row.errors)[n]
    assert error is not None, f"{row.predicate}, {row.method}"
    return error


def best_count(summaries: Sequence[CountSummary]) -> tuple[str, float]:
    """The rival with the fewest bounded calls, and how many times ours they are."""
    ours = next(each for each in summaries if each.method == OURS)
    best = min((each for each in summaries if each.method != OURS), key=lambda each: each.bounded_calls)
    return best.method, best.bounded_calls / ours.bounded_calls


def count_tables(rows: Sequence[RivalRow]) -> list[Table]:
    """Calls for the engine's error by method and by predicate, and errors by budget."""
    predicates = list(dict.fromkeys(row.predicate for row in rows))
    seeds = sorted({row.seeds for row in rows})
    of_seeds = f"{' or '.join(map(str, seeds))} seeds of {len(predicates)} predicates"
    summary = []
    for plain, clipped in zip(count_summaries(rows), count_summaries(rows, clipped=True), strict=True):
        summary.append((
            plain.method,
            calls_text(median(plain.calls)) if plain.calls else "–",
            calls_text(geometric_mean(plain.calls)) if plain.calls else "–",
            str(plain.without), number(plain.bounded_calls, 0), number(clipped.bounded_calls, 0),
            number(plain.bounded_calls / BUDGETS[0], 2),
            number(plain.failures, 2), number(plain.usd, 2),
        ))  # fmt: skip
    head = (
        "method", "calls, median", "geometric mean", "predicates without", "bounded", "bounded, estimates clipped", "over uql",
        "runs that fail", "USD",
    )  # fmt: skip
    best, times = best_count(count_summaries(rows))
    notes = (
        f"calls for the error that uql has with {BUDGETS[0]}, along the line through a method's errors, wherever it leads",
        "predicates without: more than half of the runs fail, or the error does not fall with the calls: no calls are given",
        f"bounded: between {FEWEST} and every row of the table, and every row on the predicates without",
        "estimates clipped: to at least the rows that said yes, at most all rows less those that said no; in all methods, or in none",
        "a run without an answer is in no error; its share stands under runs that fail",
        f"USD: of the bounded calls on all predicates at the prices of {MODEL}, one token out",
        _goal("the best rival", best, times),
    )
    return [
        Table(f"COUNT: calls at the error of uql with {BUDGETS[0]}, {of_seeds}", head, tuple(summary), notes),
        _by_predicate(rows, predicates),
        _by_budget(rows),
    ]


def _goal(what: str, best: str, times: float) -> str:
    reached = "reached" if times >= GOAL else "not reached"
    return f"{what} ({best}) takes {times:.2f} times the calls of uql: the goal of {GOAL} is {reached}"


def _by_predicate(rows: Sequence[RivalRow], predicates: Sequence[str]) -> Table:
    by_place = {(row.predicate, row.method): row for row in rows}
    methods = [m for m in dict.fromkeys(row.method for row in rows) if m != OURS]
    lines = []
    for predicate in predicates:
        ours = by_place[predicate, OURS]
        error = _error(ours, 0, False)
        calls = [calls_text(by_place[predicate, method].calls_for(error)) for method in methods]
        lines.append((predicate, f"{ours.rows:,}", number(error), *calls))
    head = ("predicate", "rows", "error of uql", *methods)
    return Table("COUNT: calls by predicate, not clipped", head, tuple(lines))


def _by_budget(rows: Sequence[RivalRow]) -> Table:
    lines = []
    for method in dict.fromkeys(row.method for row in rows):
        own = [row for row in rows if row.method == method]
        cells = []
        for n in range(len(BUDGETS)):
            plain = [e for row in own if n < len(row.errors) and (e := row.errors[n])]
            clipped = [e for row in own if n < len(row.clipped_errors) and (e := row.clipped_errors[n])]
            lacking = len(own) - len(plain)
            cells.append(
                f"{geometric_mean(plain):.3f}; {geometric_mean(clipped):.3f}" + (f" ({lacking} without)" if lacking else "")
                if plain else "–"
            )  # fmt: skip
        lines.append((method, *cells))
    notes = (
        "root mean square relative error, geometric mean over the predicates on which some run has an answer: not clipped; clipped",
    )
    return Table("COUNT: error by calls", ("method", *(f"{b:,} calls" for b in BUDGETS)), tuple(lines), notes)


# ------------------------------------------------------------------------------------------------------------ stated sets
@dataclass(frozen=True, slots=True)
class SetSummary:
    """A method that returns sets, over all predicates: geometric mean of its calls, predicates on which its statement fails."""

    method: str
    calls: float
    usd: float
    missed: int
    runs: int
    failing: int
    predicates: int


def set_summaries(cells: Sequence[Cell]) -> list[SetSummary]:
    """A summary of each method."""
    summaries = []
    for method in dict.fromkeys(cell.method for cell in cells):
        own = [cell for cell in cells if cell.method == method]
        cost = sum(c.calls * usd(MODEL, c.tokens) + c.rows * usd(CHEAP_MODEL, c.tokens) for c in own)
        summaries.append(
            SetSummary(
                method,
                geometric_mean([c.calls for c in own]),
                cost,
                sum(c.missed for c in own),
                sum(c.seeds for c in own),
                sum(c.fails for c in own),
                len(own),
            )
        )
    return summaries


def best_sets(summaries: Sequence[SetSummary]) -> tuple[str, float]:
    """The rival with the fewest calls of those whose statement fails on no predicate, and how many times ours they are."""
    ours = next(each for each in summaries if each.method == "uql")
    held = [each for each in summaries if not each.method.startswith("uql") and not each.failing]
    best = min(held, key=lambda each: each.calls)
    return best.method, best.calls / ours.calls


def set_tables(cells: Sequence[Cell]) -> list[Table]:
    """Calls, USD and broken statements by method, and the calls by predicate."""
    summaries = set_summaries(cells)
    rows = [
        (
            each.method, number(each.calls, 0), number(each.calls / summaries[0].calls, 2), f"{each.missed} of {each.runs}",
            f"{each.failing} of {each.predicates}", number(each.usd, 2),
        )
        for each in summaries
    ]  # fmt: skip
    kinds = ", ".join(dict.fromkeys(cell.cheap for cell in cells))
    seeds = ", ".join(map(str, sorted({cell.seeds for cell in cells})))
    notes = (
        f"both targets {TARGET}, δ {DELTA}; cheap model: {kinds}; at most {max(c.rows for c in cells):,} rows",
        "missed: sets with a precision or a recall below its target; a predicate fails where that is oftener than chance explains",
        *([STATES_NOTHING] if any(each.method == "csv" for each in summaries) else []),
        f"USD: on all predicates at the prices of {MODEL}, and of {CHEAP_MODEL} for the cheap model, which every row is shown to",
        _goal("the best rival whose statement fails on no predicate", *best_sets(summaries)),
    )
    head = ("method", "dear calls, geometric mean", "over uql", "missed", "predicates that fail", "USD")
    of_seeds = f"{seeds} seeds of {summaries[0].predicates} predicates"
    return [
        Table(f"Sets with a stated precision and recall, {of_seeds}", head, tuple(rows), notes),
        _sets_by_predicate(cells, of_seeds),
    ]


def _sets_by_predicate(cells: Sequence[Cell], of_seeds: str) -> Table:
    by_place = {(cell.predicate, cell.method): cell for cell in cells}
    methods = list(dict.fromkeys(cell.method for cell in cells))
    lines = []
    for predicate in dict.fromkeys(cell.predicate for cell in cells):
        own = [by_place.get((predicate, method)) for method in methods]
        lines.append(
            (predicate, *("–" if c is None else f"{c.calls:,.0f}" + (" fails" if c.fails else "") for c in own))
        )
    return Table(f"Dear calls by predicate, {of_seeds}", ("predicate", *methods), tuple(lines))
