"""The answer to a question, with all it rests on: its plan, each step, the UQL to run again, the rows, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uql.base.arrow_values import rows_of
from uql.base.errors import DataError
from uql.llm.run_record import Cost
from uql.nl.ask import rerun
from uql.nl.ask.aggregator import Citation, speaks
from uql.nl.ask.outputs import Output, Step
from uql.nl.papers.operators import Ranked
from uql.nl.plan.dag import NodeKind, Plan
from uql.nl.schema.semantic_model import FILE, Verified, keep

if TYPE_CHECKING:
    import pyarrow as pa

    from uql.engine.provenance import Why
    from uql.show.plots import Plot

_SHAPES = {
    NodeKind.UQL: ("[", "]"),
    NodeKind.SQL: ("[", "]"),
    NodeKind.PYTHON: ("[[", "]]"),
    NodeKind.PLOT: ("[/", "/]"),
    NodeKind.ADAPTER: ("{{", "}}"),
    NodeKind.ANSWER: ("([", "])"),
}

ROWS_SHOWN = 40  # of each result, on a terminal
_WITHOUT_ROWS = (NodeKind.PLOT, NodeKind.ANSWER)


@dataclass(frozen=True, slots=True)
class PlanView:
    """A plan as text and as a Mermaid diagram, with what became of each node."""

    plan: Plan | None
    states: Mapping[str, str] = field(default_factory=dict)
    operators: Mapping[str, tuple[Ranked, ...]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """One paragraph a node: its name, kind and inputs, then its body."""
        if self.plan is None:
            return "no plan"
        parts = []
        for node in self.plan.nodes:
            reads = f" ← {', '.join(node.inputs)}" if node.inputs else ""
            state = f" [{self.states[node.name]}]" if node.name in self.states else ""
            lines = [f"{node.name}: {node.kind.value}{reads}{state}"]
            lines += [f"  {line}" for line in node.body.splitlines()]
            lines += [
                f"  {r.operator.value} {r.confidence:.2f} over {', '.join(r.sources)}"
                for r in self.operators.get(node.name, ())
            ]
            parts.append("\n".join(lines))
        return "\n".join(parts)

    @property
    def mermaid(self) -> str:
        """A diagram in Mermaid's language, an arrow from each node to those that read it."""
        lines = ["flowchart TD"]
        if self.plan is None:
            return lines[0]
        names = {node.name: f"n{i}" for i, node in enumerate(self.plan.nodes)}
        for node in self.plan.nodes:
            left, right = _SHAPES[node.kind]
            body = " ".join(node.body.split())
            body = body if len(body) <= 120 else body[:119] + "…"
            label = f"{node.name} ({node.kind.value})" + (f"<br/>{_escaped(body)}" if body else "")
            lines.append(f'  {names[node.name]}{left}"{label}"{right}')
        for node in self.plan.nodes:
            lines += [f"  {names[name]} --> {names[node.name]}" for name in node.inputs]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text


@dataclass(slots=True)
class Answer:
    """The answer to a question.

    Attributes:
        question: as it was asked.
        text: the answer in words; "" where there is none.
        cannot: why it cannot be answered from this data, or was not; "" where it was.
        value: the answer as data: a value, a list, a row as a dictionary, or rows.
        json: summary, details, source, inference, extra.
        tables: the results behind the answer, by the names of their nodes; `results` has those of every node.
        notes: remarks on the answer: estimates that it or an earlier step rests on with their intervals, rows that were
            not asked or gave no answer. `exact` is whether there are none.
        rests_on: the names of the nodes that the answer was written from; none where there is no answer.
        plots: of the plot nodes.
        plan: as text and Mermaid.
        steps: of every node that ran, in that order: prompts, UQL, rows, time, cost.
        readings: where the question is ambiguous, up to three precise ones, the first of which was answered.
        citations: figures and names of the text with the cells they are, and `rows(i)` the rows behind each; `unsupported` are
            figures that stand in no result.
        behind: those rows, by node and row of its result.
        cost: of all, planning and writing included; `seconds` is the time from question to answer.
        partial: what limit was reached; "" where none was.
        tries: how often a plan was written until it was valid; 0 where none was needed; `replans` after that.
        signs: of the complexity checker, where it was asked.
        semantic_model: the file that `verify` adds to.
    """

    question: str
    text: str = ""
    cannot: str = ""
    value: Any = None
    json: Mapping[str, Any] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    rests_on: tuple[str, ...] = ()
    plots: list[Plot] = field(default_factory=list)
    plan: PlanView = field(default_factory=lambda: PlanView(None))
    steps: list[Step] = field(default_factory=list)
    readings: tuple[str, ...] = ()
    citations: list[Citation] = field(default_factory=list)
    unsupported: list[str] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)
    seconds: float = 0.0
    partial: str = ""
    tries: int = 0
    replans: int = 0
    signs: tuple[str, ...] = ()
    mode: str = "dag"
    warnings: list[str] = field(default_factory=list)
    results: dict[str, Output] = field(default_factory=dict, repr=False)
    behind: dict[tuple[str, int], list[dict[str, Any]]] = field(default_factory=dict, repr=False)
    origins: Mapping[str, str] = field(default_factory=dict, repr=False)
    semantic_model: Path = field(default=Path(FILE), repr=False)

    @property
    def answered(self) -> bool:
        return not self.cannot

    @property
    def exact(self) -> bool:
        """Does it rest on no estimate, and on every row?"""
        return self.answered and not self.notes and not self.partial

    @property
    def uql(self) -> str:
        """The statements of the plan, to be read, edited and run again: each stores its rows under its node's name.

        What Python made stands there as rows, so that statements that read it run again too; what an adapter said, in a comment.
        """
        if self.plan.plan is None:
            return ""
        lines: list[str] = []
        for node in self.plan.plan.nodes:
            output = self.results.get(node.name)
            sub = output.sub if output is not None else None
            if node.kind in (NodeKind.UQL, NodeKind.SQL):
                lines.append(rerun.statement(node.body, node.name, self.origins))
            elif sub is not None and sub.uql:
                lines += [rerun.statement(text, name, self.origins) for name, text in sub.steps]
                lines.append(rerun.statement(sub.uql, node.name, self.origins))
            elif sub is not None:
                lines.append(f"-- {node.name} was answered by {sub.adapter}: {' '.join(sub.text.split())}")
                lines += [] if output is None or output.table is None else rerun.written_out(output.table, node.name)
            elif node.kind is NodeKind.PYTHON:
                lines += [f"-- {node.name} is made by Python:", *(f"--   {line}" for line in node.body.splitlines())]
                if output is not None and output.table is not None:
                    lines += rerun.written_out(output.table, node.name)
        return "\n".join(lines)

    @property
    def shown(self) -> str:
        """What a terminal shows: the words, and the rows where they say more; rows of several columns stand for themselves."""
        from uql.show import render

        said = len(self.tables) == 1 and speaks(self.value) == self.text
        rows = isinstance(self.value, list) and any(isinstance(row, dict) for row in self.value)
        lines = [] if said and rows else [self.text]
        lines += [str(self.json[key]) for key in ("details", "inference") if self.json.get(key)]
        if isinstance(self.value, list | dict) and (rows or self.plots or not said):
            for name, table in self.tables.items():
                if not table.num_rows:
                    continue
                ran = self.results[name].outcome
                fields = {f.name: f.type for f in self.results[name].fields}
                types = [fields.get(column, "") for column in table.column_names]
                types = ran.types if ran is not None and len(ran.types) == len(types) else types
                estimates = ran.estimates if ran is not None else {}
                lines.append(render.table(table, types=types, estimates=estimates, max_rows=ROWS_SHOWN, width=None))
        return "\n".join(lines)

    def why(self, citation: Citation | int) -> Why | dict[str, Any]:
        """What a figure of the answer rests on: the answers of the model behind its row, else the row itself.

        Args:
            citation: one of `citations`, or its position.
        Raises: DataError (UQL515) where there is none.
        """
        citation = self._citation(citation)
        output = self.results[citation.node]
        trace = output.outcome.trace if output.outcome is not None else None
        if trace is not None and citation.row < len(trace.behind):
            return trace.why(citation.row)
        if output.table is not None and citation.row < output.table.num_rows:
            row: dict[str, Any] = rows_of(output.table.slice(citation.row, 1))[0]
            return row
        return {"answer": output.sub.text if output.sub is not None else output.value}

    def rows(self, citation: Citation | tuple[str, int] | int) -> list[dict[str, Any]]:
        """The rows of the database behind a figure of the answer, at most 20: what was read or counted for its cell.

        A row of one table is a dictionary of its columns, of a join one of such by table. Empty where they cannot be told (Python,
        adapters, statements of several parts); `why` then has the row of the result.

        Args:
            citation: one of `citations`, or its position; or a row of a result, as its name and the row's number from 0.
        Raises: DataError (UQL515) where there is none.
        """
        if not isinstance(citation, tuple):
            entry = self._citation(citation)
            citation = entry.node, entry.row
        return list(self.behind.get(citation, ()))

    def _citation(self, citation: Citation | int) -> Citation:
        if not isinstance(citation, int):
            return citation
        if not 0 <= citation < len(self.citations):
            raise DataError(f"there is no citation {citation}", code="UQL515", help=f"there are {len(self.citations)}")
        return self.citations[citation]

    def to_json(self) -> dict[str, Any]:
        """The answer as JSON: what `uql ask --json` prints."""
        return {
            "question": self.question,
            "answered": self.answered,
            "answer": self.text,
            "reason": self.cannot,
            "value": self.value,
            **{
                key: self.json.get(key, [] if key == "source" else "")
                for key in ("summary", "details", "source", "inference", "extra")
            },
            "readings": list(self.readings),
            "citations": [
                {"text": c.text, "node": c.node, "row": c.row, "column": c.column, "rows": self.rows(c)}
                for c in self.citations
            ],
            "unsupported": self.unsupported,
            "uql": self.uql,
            "plan": self.plan.text,
            "steps": [_step(step) for step in self.steps],
            "cost": {
                "calls": self.cost.calls,
                "cached": self.cost.cached,
                "input_tokens": self.cost.input_tokens,
                "output_tokens": self.cost.output_tokens,
                "usd": self.cost.usd,
                "seconds": round(self.seconds, 3),
            },
            "exact": self.exact,
            "notes": self.notes,
            "partial": self.partial,
        }

    def verify(self) -> Path:
        """Keeps the question with its UQL in `uql.model.toml`: call it when a person has approved them.

        From then on prompts for like questions show it. Nothing else that a model wrote is kept there.
        Returns: the file.
        Raises: DataError where there is no answer, or not one that a statement gives; ConfigError where the file has other UQL for it.
        """
        nodes = [] if self.plan.plan is None else [n for n in self.plan.plan.nodes if n.kind not in _WITHOUT_ROWS]
        if not self.answered or not nodes:
            raise DataError("there is no answer to verify", help="ask again")
        if any(n.kind not in (NodeKind.UQL, NodeKind.SQL) for n in nodes) or self.rests_on != (nodes[-1].name,):
            raise DataError(
                "the answer is not the rows of one statement: it cannot be verified",
                help=f"write [[verified]] into {self.semantic_model} by hand",
            )
        uql = rerun.one_statement([(n.name, n.body) for n in nodes], self.origins)
        keep(self.semantic_model, Verified(self.question, uql))
        return self.semantic_model

    def save(self, folder: str | Path) -> list[Path]:
        """Writes answer.json, answer.uql, plan.mmd, each table as CSV and each plot as SVG and PNG into a folder."""

        into = Path(folder)
        into.mkdir(parents=True, exist_ok=True)
        paths = [into / "answer.json", into / "answer.uql", into / "plan.mmd"]
        paths[0].write_text(
            json.dumps(self.to_json(), default=as_json, ensure_ascii=False, indent=2) + "\n", encoding="utf-8"
        )
        paths[1].write_text(self.uql + "\n", encoding="utf-8")
        paths[2].write_text(self.plan.mermaid + "\n", encoding="utf-8")
        for name, table in self.tables.items():
            from uql.show.render import WRITERS

            path = into / f"{name}.csv"
            with path.open("w", encoding="utf-8", newline="") as stream:
                WRITERS["csv"](table, stream, estimates={})
            paths.append(path)
        for i, plot in enumerate(self.plots, 1):
            for ending in (".svg", ".png"):
                paths.append(plot.save(into / f"plot{i}{ending}"))
        return paths

    def __str__(self) -> str:
        if not self.answered:
            return "\n".join([f"This cannot be answered: {self.cannot}", *self.notes])
        return self.text + (f" ({'; '.join(self.notes)})" if self.notes else "")

    def __repr__(self) -> str:
        return f"<uql.Answer {str(self)[:80]!r}, {len(self.steps)} steps, {self.cost.calls} calls>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p><pre>{escape(self.plan.text)}</pre>"


def as_json(value: Any) -> Any:
    """What JSON has no form of: decimals, as sums of integers are, as numbers, bytes as how many they are, all else as text.

    >>> from datetime import date
    >>> as_json(Decimal("32")), as_json(Decimal("1.5")), as_json(date(2024, 5, 1)), as_json(b"PNG")
    (32, 1.5, '2024-05-01', '3 bytes')
    """
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return f"{len(value):,} bytes" if isinstance(value, bytes) else str(value)


def _step(step: Step) -> dict[str, Any]:
    return {
        "node": step.node,
        "kind": step.kind,
        "state": step.state,
        "body": step.body,
        "problem": step.problem,
        "tries": step.tries,
        "rows": step.rows,
        "seconds": round(step.seconds, 3),
        "calls": step.cost.calls,
        "usd": step.cost.usd,
        "adapter": step.adapter,
        "prompts": [{"task": p.task, "prompt": p.prompt, "reply": p.reply} for p in step.prompts],
    }


def _escaped(text: str) -> str:
    return text.replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
