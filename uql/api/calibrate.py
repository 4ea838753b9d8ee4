"""A condition is calibrated for a model with rows that a stronger judge has labelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from uql.api.labelled_rows import WORDS, labelled_rows
from uql.base.errors import DataError
from uql.llm import calibration
from uql.llm.calibration import Calibration, Floats
from uql.session.events import finished

if TYPE_CHECKING:
    from uql.api.connection import Connection
    from uql.llm.questions import Row


def calibrate(con: Connection, condition: str, rows: str, *, label: str = "label", keep: bool = True) -> Calibration:
    """Asks the model of a connection a condition about labelled rows and fits its probabilities to the labels.

    Args:
        condition: as it stands in queries, without the quotes.
        rows: a table, a file, or a SELECT in DuckDB's SQL: the columns that the model is shown, and the label.
        label: the column that says whether the condition is so.
        keep: use it from now on for this condition and model, where it is better on rows left out.
    Returns: what was fitted, with its accuracy and loss on rows left out, and those of the probabilities as they are.
    Raises: DataError (UQL517) with too few labelled rows, or where the model gives no probabilities.
    """
    shown, said = labelled_rows(con.session, rows, label)
    labels = [_flag(one, label) for one in said]
    return finished(_calibrate(con, condition, shown, labels, keep))


def _flag(value: object, label: str) -> bool:
    said = WORDS.get(str(value).strip().lower())
    if said is None:
        raise DataError(
            f"the label {value!r} in {label!r} is neither yes nor no", code="UQL517", help="true, false, 1, 0, yes, no"
        )
    return said


async def _calibrate(con: Connection, condition: str, rows: list[Row], labels: list[bool], keep: bool) -> Calibration:
    from uql.llm.gate import Gate
    from uql.llm.questions import Predicate

    async with Gate.open(con.configured, model=con.model) as gate:
        gate.calibrated = False
        answers = await gate.ask(Predicate(condition), rows)
        provider = await gate.provider()
        if not (answers.probabilities == answers.probabilities).any():
            raise DataError(f"{provider.name} gives no probabilities to calibrate", code="UQL517")
        found = calibration.fit(list(answers.probabilities), labels)
        if keep:
            held = _held_against(answers.probabilities, labels, found.better)
            calibration.keep(gate.ledger, provider.name, condition, found if found.better else None, held)
        return found


def _held_against(probabilities: Floats, labels: list[bool], calibrated: bool) -> dict[str, float]:
    """What the labels say of the probabilities as queries will get them: calibrated, from lines fitted to other rows."""
    from uql.sampling.calibration import calibration as audit

    told = ~np.isnan(probabilities)
    p, truth = probabilities[told], np.array(labels, dtype=np.float64)[told]
    if calibrated:
        p = 1 / (1 + np.exp(-calibration.left_out_odds(p, truth)))
    found = audit(p, truth)
    return {"rows": found.rows, "bias": found.bias, "error": found.error, "z": found.z}
