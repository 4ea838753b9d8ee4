"""What people said of pairs goes before what was told of them from the attribute of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uql.compiler.virtual import VirtualColumn

if TYPE_CHECKING:
    from uql.kernels.answers import Rids
    from uql.kernels.base import Context
    from uql.kernels.relation import Relation


def heard(column: VirtualColumn, rids: Rids, relation: Relation, ctx: Context) -> None:
    """Puts the answers of people about these pairs in the place of those that were told from their rows."""
    question = relation.question(column)
    if not len(rids) or not ctx.gate.people.knows(question):
        return
    said = ctx.gate.people.answers(question, relation.rows(rids, [column]))
    held = relation[column]
    for i, answer in said.items():
        rid = int(rids[i])
        held.values[rid], held.probabilities[rid] = answer.value, answer.probability
        held.failed[rid], held.asked[rid] = False, True
    held.origin.mark_people(rids[sorted(said)])
