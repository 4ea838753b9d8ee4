"""What `--max-cost` leaves: no run may spend more than the runs before it left, and one that it cuts short is no result."""

from __future__ import annotations

from typing import Any

from uql.api.result import Result
from uql.base.errors import UQLError


class SpentError(UQLError):
    """A run was cut short by what `--max-cost` left: it is not written down, and `--resume` runs it again."""

    code = "UQL401"


class Purse:
    """USD that the runs of this process may still spend; None: there is no limit."""

    left: float | None = None

    @property
    def empty(self) -> bool:
        return self.left is not None and self.left <= 0

    def settings(self, paid: float | None = 0.0) -> dict[str, Any]:
        """The limit as a setting of the engine, less what the run that is under way has paid. Raises SpentError at 0."""
        if self.left is None:
            return {}
        if self.left <= (paid or 0.0):
            raise self.spent(paid)
        return {"max_cost": self.left - (paid or 0.0)}

    def spent(self, usd: float | None) -> SpentError:
        """What ends a run that paid so much."""
        self.take(usd)
        return SpentError("--max-cost ended a run before it was done")

    def take(self, usd: float | None) -> None:
        """Pays for a run."""
        if self.left is not None:
            self.left -= usd or 0.0

    def check(self, result: Result) -> None:
        """Raises SpentError where the limit ended a run before it was done: it asked nothing, or spent most of what was left."""
        if self.left is not None and result.partial:
            cost = result.cost
            if cost.calls == 0 or 2 * (cost.usd or 0.0) > self.left:
                raise self.spent(cost.usd)


PURSE = Purse()
