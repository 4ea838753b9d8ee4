"""The table of failures: every cause, what it looks like, and what happens. The gate and the limiter read it; docs/models.md prints it.

A fault of the wire is sent again, with jittered pauses or as late as the provider says. A reply that cannot be read is
tried once more with the error shown to the model. What no second try changes fails the row at once: its answer is NULL with the
reason. What concerns every row ends the run, whatever on_error says. A failure is never an answer: the ledger keeps it for the same
run drawn again alone, and none of the wire.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Then(StrEnum):
    """What happens to a row, or to the run."""

    AGAIN = "sent again"
    SHOWN = "tried again with the error shown"
    FAILS = "the row fails"
    ENDS = "the run ends"


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of failure.

    Attributes:
        kind: of `Failure.kind`, or the error that ends the run.
        signs: by which it is known.
        then: what happens.
        tries: sends of a row in all, before it is given up.
    """

    kind: str
    signs: str
    then: Then
    tries: int = 1


FAILURES: tuple[Cause, ...] = (
    Cause("rate_limit", "429; Retry-After is kept", Then.AGAIN, 8),
    Cause("server", "5xx, 529, 409", Then.AGAIN, 5),
    Cause(
        "connection", "refused, reset, broken, not made in time; the run ends where nothing is reached", Then.AGAIN, 4
    ),
    Cause("timeout", "no reply within timeout_s, 408", Then.AGAIN, 3),
    Cause("truncated", "the reply is cut: no whole JSON, or at its limit of tokens", Then.SHOWN, 2),
    Cause("wrong_type", "a value of another type, no label of the list, too few answers", Then.SHOWN, 2),
    Cause("empty", "a reply without text", Then.SHOWN, 2),
    Cause("refusal", "the model declines", Then.FAILS),
    Cause("content_filter", "the provider holds question or answer back", Then.FAILS),
    Cause("too_long", "413, or more than the context", Then.FAILS),
    Cause("bad_request", "another 4xx", Then.FAILS),
    Cause("AuthError", "401, 403, no key", Then.ENDS),
    Cause("QuotaError", "402, insufficient_quota, billing", Then.ENDS),
    Cause("UnknownModelError", "404", Then.ENDS),
    Cause("BackendError", "a redirect, or a server that is not there", Then.ENDS),
)
TRIES = {cause.kind: cause.tries for cause in FAILURES if cause.then is Then.AGAIN}
TRANSIENT = tuple(TRIES)  # of the wire
FINAL = tuple(cause.kind for cause in FAILURES if cause.then is Then.FAILS)  # asking again changes nothing
