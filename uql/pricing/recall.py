"""What the ledger answers of the rows of a plan, told before the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from uql.base.schema import Field
from uql.compiler.cost import Site
from uql.compiler.formula import Formula
from uql.compiler.physical import Stage, stages as apart
from uql.compiler.subqueries import in_expressions
from uql.compiler.syntax import Column
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import columns
from uql.kernels import descriptions, sem_classify
from uql.kernels.duck import Duck
from uql.kernels.relation import Relation
from uql.kernels.sem_filter import truth_of
from uql.llm.ledger import Ledger
from uql.llm.ledger_keys import collected, distinct, question_key
from uql.llm.providers.base import Answer, Provider


@dataclass(frozen=True, slots=True)
class Recall:
    """The answers of one model.

    Attributes:
        model: by which the keys of answers are made.
        duck: where rows are materialised.
        described: what the model proposed of quoted texts, by `descriptions.key`; None: texts stand without a description.
    """

    model: Provider
    ledger: Ledger
    duck: Duck
    described: Mapping[str, str] | None = None

    def table(self, sql: str, questions: Sequence[VirtualColumn], fields: dict[Column, Field]) -> str:
        """A temporary table of these rows where one of these questions was ever asked of a row; "" where none was.

        Args:
            sql: the rows.
            questions: about them.
            fields: what they read.
        """
        stages = apart(tuple(questions))
        empty = self._relation("", 0, stages, fields)
        return self.duck.create(sql)[0] if any(self._was_asked(c, empty) for s in stages for c in s.columns) else ""

    def answered(
        self, site: Site, formula: Formula | None, stages: Sequence[Stage], fields: dict[Column, Field]
    ) -> Site:
        """The rows with the terms that the ledger's answers decide, and the questions that it answers.

        Args:
            formula: of the condition on the rows, whose terms are those of `site`.
            stages: the requests about them, as the run makes them.
        """
        if not site.table:
            return site
        relation = self._relation(site.table, site.n, stages, fields)
        for stage in stages:
            self._look_up(stage, site, relation)
        masks = site.leaves.copy()
        for i, leaf in enumerate(formula.leaves if formula is not None else ()):
            if not leaf.semantic or not site.hidden.isdisjoint(columns(leaf.expr)) or any(in_expressions(leaf.expr)):
                continue
            rids = np.flatnonzero(np.logical_and.reduce([relation[c].asked_mask for c in leaf.columns]))
            masks[i, rids] = truth_of(leaf, rids, relation)
        answered = [(c, relation[c].asked_mask) for stage in stages for c in stage.columns]
        return replace(site, leaves=masks, answered=tuple(answered))

    def ever_paid(self, column: VirtualColumn) -> int:
        """The calls that were ever made for a text, whatever groups its answers were put to: new names may be the same ones."""
        sql = (
            "SELECT COALESCE(SUM(c.rows), 0) FROM subjects s JOIN call_rows c ON c.subject = s.id "
            "WHERE s.kind = 'call' AND s.question <> 'Write' AND s.model = ? AND s.text = ?"
        )
        return int(self.ledger.work(lambda db: db.execute(sql, (self.model.name, column.text)).fetchone()[0]))

    def _relation(self, table: str, n: int, stages: Sequence[Stage], fields: dict[Column, Field]) -> Relation:
        """Rows whose texts have the labels and the descriptions that a run would give them, as far as they are known."""
        relation = Relation(self.duck, table, n, fields)
        sem_classify.label_queries([c for stage in stages for c in stage.columns], relation)
        for stage in stages if self.described is not None else ():
            for column in descriptions.described(stage.columns):
                meaning = descriptions.initial_description(column, fields, self.described or {})
                relation[column].prompt.meaning = meaning
        return relation

    def _was_asked(self, column: VirtualColumn, relation: Relation) -> bool:
        """Was a question asked of any row, alone or beside others?"""
        if not column.by_row:
            return False
        question = relation.question(column)
        digests = [self.ledger.key(question_key(self.model, question, together=both)) for both in (False, True)]
        sql = "SELECT 1 FROM questions WHERE digest IN (?, ?)"
        return self.ledger.work(lambda db: db.execute(sql, digests).fetchone() is not None)

    def _look_up(self, stage: Stage, site: Site, relation: Relation) -> None:
        """Takes the answers to the questions of a request; rows of equal content are looked up once."""
        asked = [c for c in stage.columns if self._was_asked(c, relation)]
        codes = site.content(stage.columns)
        there = np.flatnonzero(codes != 0)
        if not asked or not len(there) or not site.hidden.isdisjoint(stage.input_columns):
            return
        _, first, place = np.unique(codes[there], return_index=True, return_inverse=True)
        rows = relation.rows(there[first], stage.columns)
        for column in asked:
            question = relation.question(column)
            alone, shared = (question_key(self.model, question, together=both) for both in (False, True))
            answers: list[Answer | None] = [None] * len(rows)
            together = [shared] if stage.rows > 1 else []
            places = range(len(rows))
            for chunk in distinct(
                rows, places, [alone], self.ledger, ask_null=False, most=len(rows), together=together
            ):
                found = self.ledger.answers(chunk.all_keys)
                of_keys = zip(*chunk.single_keys, *chunk.keys, strict=True)
                chunk.fill([answers], [[found.get(single) or found.get(own) for single, own in of_keys]])
            values = np.empty(len(rows), dtype=object)
            values[:] = collected(question, answers).values
            relation[column].values[there] = values[place]
            relation[column].asked_mask[there] = np.array([answer is not None for answer in answers])[place]
