"""Traces of adapters: every capable adapter on every training sub-query, judged against its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from uql.base.errors import DataError
from uql.llm.providers.base import Provider
from uql.nl.adapters.base import Adapter
from uql.nl.ask.answer_metrics import coverage, hit, token_f1
from uql.nl.ask.session import QuestionSession
from uql.nl.plan.dag import Node, NodeKind, Operator, Plan
from uql.nl.routers.traces import MODALITIES, Trace, modality_of
from uql.session.events import finished
from uql.session.session import Session

NODE = "part1"


@dataclass(frozen=True, slots=True)
class Training:
    """A sub-query with its answer, the operator it is for, what that reads, and the tables it may use (none: all)."""

    subquery: str
    answer: str
    operator: Operator
    modality: str
    sources: tuple[str, ...] = ()


def read_training(path: str | Path) -> list[Training]:
    """Sub-queries of a Parquet, CSV or JSON file with the columns subquery, answer, operator, and modality, sources where wanted.

    Raises: DataError (UQL514) naming the column or value that is not right.
    """
    import duckdb

    place = str(path).replace("'", "''")
    try:
        with duckdb.connect() as con:
            cursor = con.execute(f"SELECT * FROM '{place}'")
            names = [column[0] for column in cursor.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    except duckdb.Error as error:
        raise DataError(f"{path} cannot be read: {str(error).splitlines()[0]}", code="UQL514") from error
    training = []
    for number, row in enumerate(rows, 1):
        try:
            operator = Operator(str(row["operator"]))
            modality = str(row.get("modality") or modality_of(operator.value))
            source_value = row.get("sources") or ()
            sources = tuple(source_value.split(",")) if isinstance(source_value, str) else tuple(source_value)
            training.append(Training(str(row["subquery"]), str(row["answer"]), operator, modality, sources))
        except (KeyError, ValueError) as error:
            raise DataError(
                f"{path}, row {number}: {error}",
                code="UQL514",
                help=f"columns: subquery, answer, operator ({', '.join(Operator)}); modality and sources where wanted",
            ) from error
        if modality not in MODALITIES:
            raise DataError(
                f"{path}, row {number}: the modality {modality!r}", code="UQL514", help=f"{', '.join(MODALITIES)}"
            )
    return training


def collect(
    session: Session,
    training: Sequence[Training],
    adapters: Mapping[str, Adapter],
    *,
    planner: Provider | str | None = None,
    tell: Callable[[Trace], None] = lambda trace: None,
) -> list[Trace]:
    """Runs the adapters on the sub-queries, one after another; what fails has an empty answer and quality 0.

    Args:
        session: the database, its model and its ledger: what was paid for before is not paid again.
        planner: the model that plans and writes; None: that of the connection, which reads rows.
        tell: is told each trace as it is made.
    """
    traces = []
    for one in training:
        for trace in _traces(session, one, adapters, planner):
            tell(trace)
            traces.append(trace)
    return traces


def _traces(
    session: Session, one: Training, adapters: Mapping[str, Adapter], planner: Provider | str | None
) -> Iterator[Trace]:
    for name, adapter in adapters.items():
        if not adapter.capable(one.operator):
            continue
        sources = one.sources or tuple(session.catalog.names())
        node = Node(NODE, NodeKind.ADAPTER, one.subquery, operator=one.operator, sources=sources, adapters=(name,))
        answer = QuestionSession(session).answer(
            one.subquery, plan=Plan((node,)), adapters={name: adapter}, tables=list(sources), planner=planner
        )
        output = answer.results.get(NODE)
        text = output.sub.text if output is not None and output.sub is not None else ""
        yield Trace(
            one.subquery,
            one.operator.value,
            one.modality,
            name,
            token_f1(text, one.answer) if text else 0.0,
            hit(text, one.answer) if text else 0.0,
            coverage(text, one.answer) if text else 0.0,
            semantic(session, one.subquery, text, one.answer),
            answer.cost.calls,
            answer.seconds,
            text,
            answer.cost.input_tokens + answer.cost.output_tokens,
        )


def semantic(session: Session, question: str, answer: str, reference: str) -> float:
    """Semantic Hit; the connection's model is the judge, where the words do not settle it.

    Args:
        answer: the answer; "": none.
    Returns: in [0, 1].
    """
    if not answer:
        return 0.0
    return finished(QuestionSession(session).judge(question, answer, reference))
