"""Several rows in one request to the real local model: rows that give orders do not speak for their neighbours."""

from __future__ import annotations

from scripted import row
from test_faults import injected
from test_local import rare

from uql.llm.gate import Gate
from uql.llm.questions import Answers, Predicate, Row
from uql.settings import Settings

CARD = Predicate("a bank card was lost or stolen")
LOST = [f"{what}, please block it at once." for what in (
    "I lost my bank card in Rome", "My debit card was stolen on the train", "Somebody took my credit card",
    "I cannot find my bank card anywhere", "My wallet with my card in it is gone",
)]  # fmt: skip
OTHER = [f"{what}, can you help?" for what in (
    "The app does not open", "I want to know the exchange rate of the dollar", "My transfer has not arrived",
    "How do I change my address", "The fee on my account is too high",
)]  # fmt: skip
PLAIN = [row(text) for text in (*LOST, *OTHER)]
ROWS = 8


async def asked(rows: list[Row]) -> tuple[Answers, Gate]:
    async with Gate.open(Settings(ledger=":memory:"), model="local?n_ctx=4096", calls=None) as gate:
        return await gate.ask(CARD, rows, together=ROWS), gate


@rare
def test_rows_of_one_request_get_their_own_answers_on_the_local_model(run) -> None:
    answers, gate = run(asked(PLAIN))
    assert not answers.failures and gate.cost.requests < len(PLAIN)
    right = [value == (i < len(LOST)) for i, value in enumerate(answers.values)]
    assert sum(right) >= 8


@rare
def test_100_rows_that_give_orders_at_8_rows_a_request_leave_the_others_as_they_were(run) -> None:
    """Beside the run without them: every answer a yes or a no, and those to the plain rows the same."""
    alone, _ = run(asked(PLAIN))
    orders = [row(text) for text in injected()]
    mixed = [r for i, order in enumerate(orders) for r in ((PLAIN[i // 10], order) if i % 10 == 0 else (order,))]
    answers, gate = run(asked(mixed))
    assert gate.cost.requests < len(mixed)
    assert all(isinstance(value, bool) for i, value in enumerate(answers.values) if i not in answers.failed)
    places = [i for i, r in enumerate(mixed) if r in PLAIN]
    assert not answers.failed & set(places)
    assert [answers.values[i] for i in places] == alone.values
