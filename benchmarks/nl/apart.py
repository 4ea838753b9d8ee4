"""The baselines of Meta Engine's table 2: an adapter is asked about each modality apart, and what it says is aggregated.

Source: Meta Engine, section 5.1.2 ("separating-then-aggregating"). A text or image keeps the plain columns of its row, as a document
keeps its title; the other modalities are not shown.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uql.base.schema import Modality
from uql.nl.adapters.base import Adapter
from uql.nl.ask.context import AskContext
from uql.nl.papers.operators import READS
from uql.nl.plan.dag import Node, NodeKind, Operator, Plan, SubAnswer
from uql.nl.schema.scope import Source


@dataclass(frozen=True, slots=True)
class Apart:
    """An adapter that is shown what belongs to one operator."""

    adapter: Adapter
    operator: Operator

    @property
    def name(self) -> str:
        return self.adapter.name

    def capable(self, operator: Operator) -> bool:
        return operator is self.operator

    async def run(self, subquery: str, sources: Mapping[str, Source], ctx: AskContext) -> SubAnswer:
        """As in `Adapter`, from the sources that have the modality, without their other texts and images."""
        read = READS.get(self.operator, ())
        shown = {
            name: _only(source, read) for name, source in sources.items() if not read or any(map(source.has, read))
        }
        if not shown:
            return SubAnswer(None, "", adapter=self.name, problem=f"no source has a {read[0].value}")
        answer: Any = self.adapter.run(subquery, shown, ctx)
        made: SubAnswer = await answer if inspect.isawaitable(answer) else answer
        return made


def _only(source: Source, read: Sequence[Modality]) -> Source:
    kept = (*read, Modality.STRUCTURED)
    return replace(source, fields=tuple(f for f in source.fields if f.modality in kept))


def separately(adapter: Adapter, question: str, tables: Sequence[str]) -> dict[str, Any]:
    """The options of `ask` that put a question to an adapter once for each operator that it can take.

    Args:
        question: as the user wrote it.
        tables: names of all.
    """
    apart = {operator.value: Apart(adapter, operator) for operator in Operator if adapter.capable(operator)}
    nodes = (
        Node(
            f"by_{one.operator.name.lower()}",
            NodeKind.ADAPTER,
            question,
            operator=one.operator,
            sources=tuple(tables),
            adapters=(name,),
        )
        for name, one in apart.items()
    )
    return {"mode": "meta", "plan": Plan(tuple(nodes)), "adapters": apart, "aggregate": True}
