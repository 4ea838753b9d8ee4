"""How precise WHERE is on a small model: conditions beside rows that nearly meet them.

    python -m uql.benchmarks.local_model --conditions [name …]

Each condition stands for a label; the rows are some with this label, more of labels next to it (other questions about withdrawals, other
complaints about luggage), and a few of any other. Half of the conditions are those on which forms and margins may be tried, half those on
which they are checked. Printed of each: AUC of the log-odds, precision and recall of the model's yes, and the precision of the three rows
that LIMIT 3 would return: the first ones with a yes, and those with the highest log-odds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uql.base.settings import Settings
from uql.llm.gate import Gate
from uql.llm.questions import Cell, Predicate, Row

YES, NEAR, OTHERS = 4, 6, 2  # rows of each condition
LIMIT = 3
LEAST = 1e-6  # of a probability, in log-odds


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition over data d and labels l: its truth and the rows next to it as SQL."""

    name: str
    data: str
    shown: str  # SQL of the text shown
    text: str
    truth: str
    near: str
    among: str = "true"  # of the labelled rows, those it is asked of
    check: bool = False


def _one_of(column: str, *values: str) -> str:
    return f"{column} IN ({', '.join(chr(39) + value + chr(39) for value in values)})"


CONDITIONS = (
    Condition("withdrawal fee", "banking77", "d.text", "the customer was charged a fee for a cash withdrawal",
              _one_of("l.intent", "cash_withdrawal_charge"),
              _one_of("l.intent", "declined_cash_withdrawal", "pending_cash_withdrawal", "wrong_amount_of_cash_received",
                      "cash_withdrawal_not_recognised", "card_payment_fee_charged", "transfer_fee_charged")),
    Condition("lost luggage", "airline_tweets", "d.text", "the airline lost the passenger's luggage", _one_of("l.reason", "Lost Luggage"),
              _one_of("l.reason", "Damaged Luggage", "Late Flight", "Bad Flight", "longlines"), "l.reason IS NOT NULL"),
    Condition("account access", "abcd", "d.text", "the client could not get into their account", _one_of("l.flow", "account_access"),
              _one_of("l.flow", "manage_account", "troubleshoot_site", "subscription_inquiry"), "l.flow IS NOT NULL"),
    Condition("bus ticket", "sgd", "d.text[:250]", "the customer wants a bus ticket", _one_of("l.first_intent", "FindBus"),
              _one_of("l.first_intent", "FindTrains", "SearchOnewayFlight", "GetCarsAvailable", "GetRide")),
    Condition("technology", "bbc_news", "d.text[:200]", "the article is about a technology product or the internet",
              _one_of("l.topic", "tech"), _one_of("l.topic", "business", "entertainment")),
    Condition("contactless", "banking77", "d.text", "contactless payment does not work", _one_of("l.intent", "contactless_not_working"),
              _one_of("l.intent", "card_not_working", "apple_pay_or_google_pay", "virtual_card_not_working", "declined_card_payment"),
              check=True),
    Condition("charged twice", "banking77", "d.text", "the customer was charged twice for the same transaction",
              _one_of("l.intent", "transaction_charged_twice"),
              _one_of("l.intent", "card_payment_fee_charged", "extra_charge_on_statement", "card_payment_not_recognised",
                      "direct_debit_payment_not_recognised"), check=True),
    Condition("cancelled flight", "airline_tweets", "d.text", "the passenger's flight was cancelled",
              _one_of("l.reason", "Cancelled Flight"),
              _one_of("l.reason", "Late Flight", "Flight Booking Problems", "Customer Service Issue"),
              "l.reason IS NOT NULL", check=True),
    Condition("delivery", "abcd", "d.text", "the client's order has not arrived or its delivery went wrong",
              _one_of("l.flow", "shipping_issue"), _one_of("l.flow", "product_defect", "order_issue", "purchase_dispute"),
              "l.flow IS NOT NULL", check=True),
    Condition("politics", "bbc_news", "d.text[:200]", "the article is about politics or the government", _one_of("l.topic", "politics"),
              _one_of("l.topic", "business", "tech"), check=True),
)  # fmt: skip


def rows_of(condition: Condition, folder: Path, seed: int) -> list[tuple[str, bool]]:
    """The texts of a condition and whether it is true of each, mixed, the same for the same seed."""
    import duckdb

    source = f"'{folder}/{condition.data}/data.parquet' d JOIN '{folder}/{condition.data}/labels.parquet' l USING (id)"
    truth, near = (f"coalesce({sql}, false)" for sql in (condition.truth, condition.near))
    kinds = ((truth, YES), (f"{near} AND NOT {truth}", NEAR), (f"NOT {near} AND NOT {truth}", OTHERS))
    found: list[tuple[str, bool]] = []
    with duckdb.connect() as con:
        for where, n in kinds:
            sql = (
                f"SELECT {condition.shown} FROM {source} WHERE {where} AND {condition.among} "
                f"ORDER BY hash(CAST(id AS VARCHAR) || '{seed}') LIMIT {n}"
            )
            found += [(str(text), where == truth) for (text,) in con.execute(sql).fetchall()]
    return [found[i] for i in np.random.default_rng(seed).permutation(len(found))]


def precision_of_limit(odds: NDArray[np.float64], truth: NDArray[np.bool_], limit: int = LIMIT) -> tuple[float, float]:
    """Precision of the first rows with a yes, and of those with the highest log-odds among the rows with a yes; NaN without one.

    >>> precision_of_limit(np.array([1.0, 0.2, 3.0, -1.0]), np.array([False, False, True, True]), 2)
    (0.0, 0.5)
    """
    yes = np.flatnonzero(odds > 0)
    if not len(yes):
        return float("nan"), float("nan")
    best = yes[np.argsort(-odds[yes], kind="stable")]
    return float(truth[yes[:limit]].mean()), float(truth[best[:limit]].mean())


def auc(scores: NDArray[np.float64], truth: NDArray[np.bool_]) -> float:
    """The chance that a yes scores above a no, ties half: Mann and Whitney (1947).

    >>> auc(np.array([0.9, 0.4, 0.6, 0.1]), np.array([True, True, False, False]))
    0.75
    """
    yes, no = scores[truth], scores[~truth]
    above = (yes[:, None] > no[None, :]).mean() + 0.5 * (yes[:, None] == no[None, :]).mean()
    return float(above)


async def measure(names: Sequence[str], folder: Path, *, model: str, seed: int, ledger: str = ":memory:") -> None:
    """Prints a line for each condition, and the means of either half."""
    print(
        f"{'condition':18} {'half':6} {'rows':>5} {'AUC':>6} {'precision':>10} {'recall':>7} {'first 3':>8} {'best 3':>7}"
    )
    means: dict[str, list[list[float]]] = {"chosen": [], "check": []}
    async with Gate.open(Settings(model=model, ledger=ledger, budget="all")) as gate:
        for condition in CONDITIONS:
            if names and condition.name not in names:
                continue
            shown = rows_of(condition, folder, seed)
            answers = await gate.ask(Predicate(condition.text), [Row((Cell("text", text),)) for text, _ in shown])
            truth = np.array([yes for _, yes in shown])
            p = np.clip(answers.probabilities, LEAST, 1 - LEAST)
            odds = np.log(p) - np.log1p(-p)
            said = odds > 0
            precision = float(truth[said].mean()) if said.any() else float("nan")
            found = [auc(odds, truth), precision, float(said[truth].mean()), *precision_of_limit(odds, truth)]
            half = "check" if condition.check else "chosen"
            means[half].append(found)
            print(f"{condition.name:18} {half:6} {len(shown):5} " + _line(found), flush=True)
    for half, lines in means.items():
        if lines:
            print(f"{'mean':18} {half:6} {'':5} " + _line([float(v) for v in np.nanmean(lines, axis=0)]))


def _line(found: Sequence[float]) -> str:
    return f"{found[0]:6.2f} {found[1]:10.2f} {found[2]:7.2f} {found[3]:8.2f} {found[4]:7.2f}"


def run(names: Sequence[str], folder: Path, *, model: str, seed: int) -> None:
    asyncio.run(measure(names, folder, model=model, seed=seed))
