"""A prepared statement: bound, checked, and not run yet. It runs once, however many ask for its rows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uql.compiler.cost import Quote
    from uql.engine.outcome import Outcome


class PreparedStatement:
    """What the session gives for a statement, and what a `Result` shows.

    Args:
        run: runs the statement; called once at most.
        explain: the plan as text. Makes no call.
        quote: the price. Makes no call.
        store: keeps an outcome as a table of the database under a name.
        again: the statement as a continuation of a run, by its id; None where nothing is kept of it.
    """

    def __init__(
        self,
        run: Callable[[], Outcome],
        explain: Callable[[], str],
        quote: Callable[[], Quote],
        text: str,
        store: Callable[[str, Outcome], None],
        again: Callable[[str], PreparedStatement] | None = None,
    ) -> None:
        self._run, self.explain, self.quote, self.text, self.store, self.again = run, explain, quote, text, store, again
        self._outcome: Outcome | None = None
        self._running = threading.Lock()

    def run(self) -> Outcome:
        """Runs the statement, the first time only; a second thread waits for the first."""
        with self._running:
            if self._outcome is None:
                self._outcome = self._run()
        return self._outcome

    def then(self, outcome: Outcome) -> PreparedStatement:
        """The statement with another outcome: what it did with its rows."""
        return PreparedStatement(lambda: outcome, self.explain, self.quote, self.text, self.store, self.again)

    @property
    def has_run(self) -> bool:
        """Is the outcome available already?"""
        return self._outcome is not None
