"""Which rows of a block the ledger answers, told before the run: a look for a question that is new, else at a few hundred rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

import duckdb
import numpy as np

from uql.compiler.cost import LedgerCoverage, Range
from uql.compiler.join_plans import fields_of
from uql.compiler.physical import Block, Stage, asked_joins, inner_plans
from uql.compiler.virtual import VirtualColumn
from uql.engine import sharded
from uql.engine.execute import candidates_sql
from uql.kernels import descriptions
from uql.kernels.duck import Duck
from uql.kernels.relation import Relation
from uql.llm.ledger import Ledger
from uql.llm.ledger_keys import question_key, row_key
from uql.llm.providers.base import Provider
from uql.pricing.contents import content

MOST_LOOKED_UP = 400  # rows of a block; of more, a random sample of as many
SURE = 2.0  # standard deviations of the share of the rows that were not looked up


def ledger_coverage(
    block: Block, model: Provider, ledger: Ledger, duck: Duck, described: Mapping[str, str] | None = None
) -> tuple[LedgerCoverage, ...]:
    """What the ledger knows of the candidates of a block, question by question. Empty where other answers decide which rows there are,
    and where shards hold them.

    Args:
        model: by which the keys of answers are made.
        duck: where candidate rows are materialised.
        described: what the model proposed of quoted texts, by `descriptions.key`; None: texts stand without a description.
    """
    if inner_plans(block) or asked_joins(block) or sharded.table_of(block, duck) is not None:
        return ()
    coverage = []
    relation: Relation | None = None
    for stage in dict.fromkeys((*block.filter.stages, *block.values.stages, *block.values.late)):
        with suppress(duckdb.Error):  # the run says it
            relation = relation or Relation(duck, "", 0, fields_of(block))  # puts questions, before its rows are wanted
            _describe(stage, relation, described)
            columns = [c for c in stage.columns if _was_asked(c, relation, model, ledger)]
            if not columns:
                continue
            if not relation.name:
                name, n = duck.create(candidates_sql(block))
                relation = Relation(duck, name, n, fields_of(block))
                _describe(stage, relation, described)
            coverage += list(_looked_up(stage, columns, relation, model, ledger))
    return tuple(coverage)


def _describe(stage: Stage, relation: Relation, described: Mapping[str, str] | None) -> None:
    """Gives the texts of a stage the descriptions that a run would, as far as they are known."""
    if described is None:
        return
    for column in descriptions.described(stage.columns):
        relation[column].prompt.meaning = descriptions.initial_description(column, relation.fields, described)


def _was_asked(column: VirtualColumn, relation: Relation, model: Provider, ledger: Ledger) -> bool:
    """Was a question asked of any row?"""
    if not column.by_row or column.label_query is not None or column.is_pair_condition:
        return False
    digest = ledger.key(question_key(model, relation.question(column)))
    return ledger.work(
        lambda db: db.execute("SELECT 1 FROM questions WHERE digest = ?", (digest,)).fetchone() is not None
    )


def _looked_up(
    stage: Stage, columns: list[VirtualColumn], relation: Relation, model: Provider, ledger: Ledger
) -> Iterator[LedgerCoverage]:
    rids = np.arange(relation.n, dtype=np.int64)
    if relation.n > MOST_LOOKED_UP:
        rids = np.sort(np.random.default_rng(0).choice(rids, MOST_LOOKED_UP, replace=False))
    if not len(rids):
        return
    rows = [row_key(row) for row in relation.rows(rids, stage.columns)]
    codes = relation.fetch(rids, [content(stage.input_columns)]).column(0).to_numpy().astype(np.uint64)
    for column in columns:
        head = question_key(model, relation.question(column))
        keys = [ledger.key(head, row) for row in rows]
        answers = ledger.answers(keys)
        hits = np.array([key in answers for key in keys])
        p, m = float(hits.mean()), len(hits)
        off = SURE * ((p * (1 - p) + 1 / m) / m) ** 0.5
        yield LedgerCoverage(stage.columns, column, codes[hits], codes, Range(max(0.0, p - off), p, min(1.0, p + off)))
