"""What people said of pairs goes before what was told of them from the attribute of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from uql.compiler.virtual import VirtualColumn

if TYPE_CHECKING:
    from uql.kernels.base import Context, Relation, Rids


def heard(column: VirtualColumn, rids: Rids, relation: Relation, ctx: Context) -> None:
    """Puts the answers of people about these pairs in the place of those that were told from their rows."""
    question = relation.question(column)
    if not len(rids) or not ctx.gate.people.knows(question):
        return
    said = ctx.gate.people.answers(question, relation.rows(rids, [column]))
    mine = relation.by_people.setdefault(column.id, np.zeros(relation.n, dtype=bool))
    for i, answer in said.items():
        rid = int(rids[i])
        relation.values[column.id][rid] = answer.value
        relation.probabilities[column.id][rid] = answer.probability
        relation.failed[column.id][rid], relation.asked[column.id][rid] = False, True
        mine[rid] = True
