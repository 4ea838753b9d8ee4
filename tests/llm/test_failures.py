"""Every line of the table of failures: what happens is what the table says, and the page prints the same table."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted import Scripted, row

from uql.base.errors import AuthError, BackendError, ModelError, QuotaError, UnknownModelError
from uql.base.settings import Settings
from uql.llm.failures import FAILURES, Cause, Then
from uql.llm.gate import Gate
from uql.llm.providers.base import Answer, CallError, Problem
from uql.llm.questions import Predicate

SO = Predicate("it is so")
ROWS = [row(str(n)) for n in range(3)]
BAD = ROWS[1].cells[0].value
ENDING: dict[str, type[ModelError]] = {
    "AuthError": AuthError,
    "QuotaError": QuotaError,
    "UnknownModelError": UnknownModelError,
    "BackendError": BackendError,
}


def gate(provider: Scripted, on_error: str = "null") -> Gate:
    settings = Settings(ledger=":memory:", concurrency=1).with_values(on_error=on_error)
    return Gate.open(settings, model=provider, calls=None)


def sends(provider: Scripted) -> int:
    return sum(call.row.cells[0].value == BAD for call in provider.calls)


def failing(cause: Cause, reply: bool, times: int | None):
    """Fails on one row `times` times (None: always): the whole request, or its one answer."""
    left = [times]

    def script(request, number):
        if request.row.cells[0].value != BAD or left[0] == 0:
            return None
        if left[0] is not None:
            left[0] -= 1
        if cause.then is Then.ENDS:
            return ENDING[cause.kind]("no")
        if reply:
            return [Answer(problem=Problem(cause.kind, "it went wrong", "raw"))]
        return CallError(cause.kind, "it went wrong")

    return script


OF_ROWS = [c for c in FAILURES if c.then is not Then.ENDS]
OF_REPLIES = [c for c in OF_ROWS if c.then is not Then.AGAIN]


@pytest.mark.parametrize(
    ("cause", "reply"),
    [*((c, False) for c in OF_ROWS), *((c, True) for c in OF_REPLIES)],
    ids=lambda v: v.kind if isinstance(v, Cause) else "answer" if v else "request",
)
def test_a_lasting_failure_is_tried_as_often_as_the_table_says_and_fails_its_row_alone(
    run, cause: Cause, reply: bool
) -> None:
    async def go() -> None:
        provider = Scripted(failing(cause, reply, None))
        async with gate(provider) as g:
            answers = await g.ask(SO, ROWS)
            assert sends(provider) == cause.tries
            (failure,) = answers.failures
            assert failure.index == 1 and failure.kind == cause.kind and answers.values[1] is None
            assert None not in (answers.values[0], answers.values[2])
            assert g.cost.failed == 1 and g.cost.calls == cause.tries + 2
            again = await g.ask(SO, ROWS, model=Scripted())
            assert not again.failures, "no failure is kept"

    run(go())


@pytest.mark.parametrize("cause", [c for c in OF_ROWS if c.tries > 1], ids=lambda c: c.kind)
def test_a_passing_failure_is_overcome(run, cause: Cause) -> None:
    async def go() -> None:
        provider = Scripted(failing(cause, cause.then is Then.SHOWN, cause.tries - 1))
        async with gate(provider) as g:
            answers = await g.ask(SO, ROWS)
            assert not answers.failures and sends(provider) == cause.tries and g.cost.failed == 0
            shown = [call.errors for call in provider.calls if call.row.cells[0].value == BAD]
            told = [errors for errors in shown if any(errors)]
            assert len(told) == (1 if cause.then is Then.SHOWN else 0), "an error of the wire is not shown to the model"

    run(go())


@pytest.mark.parametrize("cause", [c for c in FAILURES if c.then is Then.ENDS], ids=lambda c: c.kind)
@pytest.mark.parametrize("on_error", ["null", "drop", "raise"])
def test_what_concerns_every_row_ends_the_run_whatever_on_error_says(run, cause: Cause, on_error: str) -> None:
    async def go() -> None:
        provider = Scripted(failing(cause, False, None))
        async with gate(provider, on_error) as g:
            with pytest.raises(ENDING[cause.kind]):
                await g.ask(SO, ROWS)
            assert sends(provider) == 1 and len(provider.calls) == 2

    run(go())


def test_the_page_prints_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    lines = [f"| {cause.kind} | {cause.signs} | {_what(cause)} |" for cause in FAILURES]
    table = "\n".join(["| cause | signs | what happens |", "|---|---|---|", *lines])
    assert table in page, f"the page has to print\n{table}"


def _what(cause: Cause) -> str:
    match cause.then:
        case Then.AGAIN:
            return f"sent again, {cause.tries} times in all; then the row fails"
        case Then.SHOWN:
            return "tried once more with the error shown; then the row fails"
        case Then.FAILS:
            return "the row fails at once"
    return "the run ends at once"
