"""How many rows of a part, at most, are not what the part says of them: proved on random ones of its rows."""

from __future__ import annotations

import math

import numpy as np

from uql.sampling.base import Floats


class ErrorsLeft:
    """Errors among the rows of a part that were not asked: at most `remaining`, wrong with probability at most `delta`.

    A random row is drawn with a chance q of its own; an error counts 1/q. If the part had E errors to begin with, that is E − errors seen
    on average, whatever the chances are. The capital of who bets that it is less, 1 + λ·(E − errors seen − 1/q) times what it was, is a
    martingale for the true E: it ever exceeds 1/δ with probability at most δ, however often one looks and whichever other rows are asked in
    between. So each E for which it does is refuted, and with it each larger one, since the capital grows with E.

    Args:
        free: rows of the part, none of them asked.
        delta: in (0, 1).
    Source: Ville (1939); Waudby-Smith & Ramdas (2024), betting, without replacement; weighted draws as in Shekhar, Xu,
    Lipton, Liang & Ramdas (2023), risk-limiting financial audits via weighted sampling without replacement.
    """

    def __init__(self, free: int, delta: float) -> None:
        self.free, self.n_errors = free, 0
        self.evidence = math.log(1 / delta)  # that a proof takes
        self._most = free  # errors to begin with, by the proof so far
        # (5, draws): errors seen before it, 1/q of the row and the largest one of all rows, λ, is it an error
        self._draws: Floats = np.zeros((5, 0))

    @property
    def remaining(self) -> int:
        """Errors among the rows not asked, at most."""
        return max(0, min(self._most - self.n_errors, self.free))

    def ask(self, errors: Floats) -> None:
        """Takes rows that were chosen by anything but chance: (n,) 1 where a row is an error."""
        self.free -= len(errors)
        self.n_errors += int(errors.sum())

    def draw(self, errors: Floats, worth: Floats, largest: Floats, bet: float) -> None:
        """Takes random rows of those not asked, in the order in which they were drawn.

        Args:
            errors: (n,) 1 where a row is an error.
            worth: (n,) 1/q of each, by the chances when it was drawn.
            largest: (n,) the largest 1/q of any row then.
            bet: λ, fixed before they were drawn.
        """
        before = self.n_errors + np.concatenate([[0.0], np.cumsum(errors)[:-1]])
        more = np.stack([before, worth, largest, np.full(len(errors), bet), errors])
        self._draws = np.concatenate([self._draws, more], axis=1)
        self.ask(errors)
        low, high = self.n_errors, min(self._most, self.n_errors + self.free) + 1
        while low < high:
            middle = (low + high) // 2
            if self._log_capital(middle) >= self.evidence:
                high = middle
            else:
                low = middle + 1
        self._most = min(self._most, low - 1)

    @property
    def n_draws(self) -> int:
        """Random rows so far."""
        return int(self._draws.shape[1])

    @property
    def n_hits(self) -> int:
        """Errors among them."""
        return int(self._draws[4].sum())

    def against(self, remaining: int) -> float:
        """The evidence so far that fewer than `remaining` errors are left; `evidence` proves it."""
        return self._log_capital(self.n_errors + remaining)

    def _log_capital(self, errors: int) -> float:
        """Log of the capital if the part had so many errors to begin with; no bet loses more than there is."""
        before, worth, largest, bet, hit = self._draws
        mean = errors - before
        with np.errstate(divide="ignore"):
            bet = np.minimum(bet, 1 / np.maximum(largest - mean, 0.0))
            return float(np.log(np.maximum(1 + bet * (mean - worth * hit), 0.0)).sum())
