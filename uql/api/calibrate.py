"""A condition is calibrated for a model with rows that a stronger judge has labelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from uql.api.labelled_rows import labelled_rows
from uql.base.errors import DataError
from uql.llm import calibration
from uql.llm.calibration import Calibration, Floats
from uql.operators.types import TRUTH_WORDS
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
    examples, label_values = labelled_rows(con.session, rows, label)
    labels = [_flag(one, label) for one in label_values]
    return finished(_calibrate(con, condition, examples, labels, keep))


def _flag(value: object, label: str) -> bool:
    flag = TRUTH_WORDS.get(str(value).strip().lower())
    if flag is None:
        raise DataError(
            f"the label {value!r} in {label!r} is neither yes nor no", code="UQL517", help="true, false, 1, 0, yes, no"
        )
    return flag


async def _calibrate(con: Connection, condition: str, rows: list[Row], labels: list[bool], keep: bool) -> Calibration:
    from uql.llm.gate import Gate
    from uql.llm.questions import Predicate

    async with Gate.open(con.configured, model=con.model) as gate:
        con.session.hear(gate)
        gate.calibrated = False
        answers = await gate.ask(Predicate(condition), rows)
        provider = await gate.provider()
        if not (answers.probabilities == answers.probabilities).any():
            raise DataError(f"{provider.name} gives no probabilities to calibrate", code="UQL517")
        fit = calibration.fit(list(answers.probabilities), labels)
        if keep:
            measures = _held_against(answers.probabilities, labels, fit.better)
            calibration.keep(gate.ledger, provider.name, condition, fit if fit.better else None, measures)
        return fit


def _held_against(probabilities: Floats, labels: list[bool], calibrated: bool) -> dict[str, float]:
    """What the labels say of the probabilities as queries will get them: calibrated, from lines fitted to other rows."""
    from uql.sampling.calibration import calibration as audit

    mask = ~np.isnan(probabilities)
    p, truth = probabilities[mask], np.array(labels, dtype=np.float64)[mask]
    if calibrated:
        p = 1 / (1 + np.exp(-calibration.left_out_odds(p, truth)))
    measures = audit(p, truth)
    return {"rows": measures.rows, "bias": measures.bias, "error": measures.error, "z": measures.z}
