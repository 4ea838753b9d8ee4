"""Traces for routers: every adapter of this process on fixed questions, judged against their references.

The routers of the papers' tables are trained on questions that are not among those their rows are about: `PART` of `fixed.py`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from uql.benchmarks.nl import fixed
from uql.benchmarks.nl.suites import SUITES, Asked, opened

if TYPE_CHECKING:
    from uql.llm.providers.base import Provider
    from uql.nl.plan.dag import Operator
    from uql.nl.routers.traces import Trace

PART = "developed"


def run(
    shared: Path,
    model: str | Provider,
    *,
    part: str = PART,
    limit: int | None = None,
    tell: Callable[[Trace], None] = lambda trace: None,
) -> list[Trace]:
    """Asks each adapter the questions of a part, without decomposing them.

    Args:
        model: that plans and writes.
        part: of `fixed.py`.
        limit: questions a suite at most; None: all.
        tell: is told each trace as it is made.
    """
    from uql.nl.adapters import open_adapters
    from uql.nl.routers.collect import Training, collect

    made: list[Trace] = []
    for name, ids in fixed.PARTS[part].items():
        found = SUITES[name]
        asked = [q for q in found.questions(shared) if q.id in ids and found.words(q)][:limit]
        with tempfile.TemporaryDirectory() as folder:
            for number, one in enumerate(asked):
                operator, modality = operator_of(one)
                training = Training(one.words, found.words(one), operator, modality)
                with opened(found, one, shared, Path(folder) / str(number), model) as con:
                    made += collect(con.session, [training], open_adapters(), planner=model, tell=tell)
    return made


def operator_of(asked: Asked) -> tuple[Operator, str]:
    """The operator and the modality of a question: that which it needs beside tables, if any.

    >>> from types import SimpleNamespace as Q
    >>> operator_of(Q(modalities=("table", "image")))[1]
    'image'
    """
    from uql.nl.plan.dag import Operator

    for modality, operator in (("image", Operator.IMAGE), ("text", Operator.TEXT)):
        if modality in asked.modalities:
            return operator, modality
    return Operator.TABLE, "table"
