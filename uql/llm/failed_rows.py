"""The rows of a run for which the model gave no answer: 8 bytes of memory each, the rest stays in the ledger."""

from __future__ import annotations

from collections.abc import Sequence

from uql.llm.first_steps import NEVER, FirstSteps
from uql.llm.ledger import Ledger
from uql.llm.ledger_rows import Failed
from uql.llm.run_record import Run


class FailedRows:
    """Of one sitting of a run that keeps its draws: those of the sittings before are read once."""

    def __init__(self, ledger: Ledger, run: Run) -> None:
        self._ledger, self._run = ledger, run
        self._known, self._n_known = FirstSteps(), 0
        self._is_read = not (run.root or run.again)

    def add(self, failed: Sequence[Failed]) -> None:
        """Keep these too."""
        if failed:
            self._ledger.fail(failed)
            self._note([one.key for one in failed])

    def _note(self, keys: list[bytes]) -> None:
        self._n_known += len(keys)
        self._known.note(keys, 0)

    async def of(self, keys: Sequence[bytes]) -> dict[bytes, Failed]:
        """Those among the keys of rows."""
        if not self._is_read:
            self._is_read = True
            if known := await self._ledger.failed_keys(self._run.drawn_by):
                self._note(known)
        if not self._n_known:
            return {}
        hits = [key for key, step in zip(keys, self._known.of(keys), strict=True) if step != NEVER]
        return await self._ledger.failures(self._run.drawn_by, hits)
