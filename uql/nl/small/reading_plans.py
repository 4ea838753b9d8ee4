"""Candidates with typed slots, for questions that need a text or an image read: each votes by its normal form, so none is run to vote."""

from __future__ import annotations

from uql.base.errors import UQLError
from uql.nl.ask.plan_checks import check_plan, said
from uql.nl.plan import read_plan as forms
from uql.nl.plan.dag import Node, NodeKind
from uql.nl.prompts import Wording
from uql.nl.prompts import slots as words
from uql.nl.prompts.statements import create_tables
from uql.nl.small.candidates import TEMPERATURE, Asked, Candidate, Writer
from uql.nl.small.evidence import hinted
from uql.nl.small.near_names import near_value, values_of
from uql.nl.small.slots import Slots, equalities, parse, render, with_value
from uql.nl.small.slots_grammar import grammar

CHARS = 5_000  # of the tables in a prompt
_TRIED = "candidate"  # name of the node that a candidate is checked as


class ReadingPlans(Writer):
    """Writes queries with typed slots."""

    kind = "slots"

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._grammar = grammar(asked.scope)
        self._schema = create_tables(asked.scope, chars=CHARS, modalities=True)

    @property
    def possible(self) -> bool:
        """Is there a text or an image to read?"""
        return bool(self._grammar)

    def wording(self, n: int, failure: tuple[str, str] | None) -> Wording:
        asked = self.asked
        question = asked.ctx.question
        return words.wording(
            hinted(question, asked.scope) if asked.uses("hints") else question,
            self._schema,
            self._grammar,
            rules=asked.ctx.rules,
            why=asked.why,
            temperature=TEMPERATURE if n else 0.0,
            seed=n,
            failure=failure,
        )

    async def read(self, reply: str) -> Candidate:
        asked = self.asked
        try:
            slots = parse(reply)
            if slots is None:
                return Candidate("", nothing=True)
            if asked.uses("values"):
                slots = await self._with_known_values(slots)
            uql = render(slots, asked.scope)
            plan = forms.finished([Node(_TRIED, NodeKind.UQL, uql)], asked.kept)
            checked = check_plan(plan, asked.ctx.sources, asked.ctx.settings)
        except UQLError as error:
            return Candidate("", reply.strip(), reads=True, problem=said(error))
        if checked.problems:
            return Candidate("", uql, reads=True, problem="; ".join(problem.message for problem in checked.problems))
        against = asked.evidence.against_reading(uql) if asked.uses("evidence") else []
        return Candidate("", checked.plan[_TRIED].body, slots.normal_form, reads=True, against=tuple(against))

    async def _with_known_values(self, slots: Slots) -> Slots:
        """The slots with each value that no row has as the column spells it, or with the one column that holds it."""
        asked = self.asked
        for place, (table, column, value) in equalities(slots).items():
            held = await values_of(asked.ctx, asked.scope, column, table)
            if not held or value in held[0][1]:
                continue
            named = [
                (name, matched, text)
                for name, source in asked.scope.sources.items()
                for matched, text in source.matches
                if text.lower() == value.lower()
            ]
            if (near := near_value(value, held[0][1])) is not None:
                slots = with_value(slots, place, table, column, near)
            elif len(named) == 1:
                slots = with_value(slots, place, *named[0])
        return slots
